/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The file that shows tools which endpoints this process has: see mx_seen.h. It is made with the
 * first endpoint and stays until the process ends.
 */
#include "mx_seen.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/shared.h"

/* Guards the choice of places and what stands below it. It is a leaf. */
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mx_seen_file *seen_file;
static bool seen_refused; /* it cannot be made, and that has been said */

/* The file of this process, which a child makes anew. Called with the lock. */
static struct mx_seen_file *file_of_process(void)
{
	struct base_shared_span soon = { 0, sizeof(*seen_file) };
	char why[256] = "";
	int fd;

	if (seen_refused || (seen_file && seen_file->pid == (uint32_t)getpid()))
		return seen_refused ? NULL : seen_file;
	seen_file = NULL;
	fd = base_shared_make(MX_SEEN_FILE, sizeof(*seen_file), &soon, 1, why, sizeof(why));
	if (fd >= 0)
		seen_file = base_shared_map(fd, 0, sizeof(*seen_file));
	if (!seen_file) {
		base_warn("mx_endpoint_info cannot see this process: %s",
			  fd < 0 ? why : "its memory cannot be mapped");
		if (fd >= 0)
			close(fd);
		seen_refused = true;
		return NULL;
	}
	/* the descriptor stays open: it is how tools find the file */
	seen_file->pid = (uint32_t)getpid();
	seen_file->magic = MX_SEEN_MAGIC;
	return seen_file;
}

static struct mx_seen *free_seen_place(struct mx_seen_file *file)
{
	for (unsigned int i = 0; file && i < MX_SEEN_ENDPOINTS; i++)
		if (!atomic_load_explicit(&file->endpoint[i].open, memory_order_relaxed))
			return &file->endpoint[i];
	return NULL;
}

struct mx_seen *mx_seen_open(uint32_t board, uint32_t eid)
{
	struct mx_seen *seen;

	pthread_mutex_lock(&seen_lock);
	seen = free_seen_place(file_of_process());
	if (!seen)
		seen = calloc(1, sizeof(*seen));
	if (seen) {
		seen->board = board;
		seen->eid = eid;
		for (unsigned int i = 0; i < MX_SEEN_COUNTERS; i++) {
			atomic_store_explicit(&seen->counter[i], 0, memory_order_relaxed);
			atomic_store_explicit(&seen->cleared[i], 0, memory_order_relaxed);
		}
		/* pairs with the acquire of tools that read the file */
		atomic_store_explicit(&seen->open, 1, memory_order_release);
	}
	pthread_mutex_unlock(&seen_lock);
	return seen;
}

/* Is this a place of the file, and not memory of the process alone? Called with the lock. */
static bool is_seen_place(const struct mx_seen *seen)
{
	return seen_file && (uintptr_t)seen >= (uintptr_t)seen_file->endpoint &&
	       (uintptr_t)seen < (uintptr_t)(seen_file->endpoint + MX_SEEN_ENDPOINTS);
}

void mx_seen_close(struct mx_seen *seen)
{
	if (!seen)
		return;
	pthread_mutex_lock(&seen_lock);
	if (!is_seen_place(seen))
		free(seen);
	else if (seen_file->pid == (uint32_t)getpid()) /* it is not the parent's */
		atomic_store_explicit(&seen->open, 0, memory_order_release);
	pthread_mutex_unlock(&seen_lock);
}
