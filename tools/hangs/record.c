/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The decoder of base/waits.h.
 */
#include "tools/hangs/record.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 100 };

static uint32_t at_most(uint32_t n, uint32_t most)
{
	return n < most ? n : most;
}

/* A name is printed to terminals. */
static void clean_name(char *name, size_t size)
{
	name[size - 1] = '\0';
	for (char *c = name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* Times are subtracted from each other. */
static int64_t clean_time(int64_t ms)
{
	const int64_t most = INT64_C(1) << 52;

	return ms < 0 ? 0 : ms > most ? most : ms;
}

static void check_wait(struct base_wait *w, uint32_t ops)
{
	w->kind = w->kind < BASE_WAIT_KINDS ? w->kind : BASE_WAIT_ANY;
	w->op = w->op < ops ? w->op : BASE_WAITS_NONE;
	w->frames = at_most(w->frames, BASE_WAITS_FRAMES);
	w->since_ms = clean_time(w->since_ms);
	if (w->peer < 0)
		w->peer = BASE_WAITS_ANY;
}

static void check_body(struct base_waits_body *b)
{
	b->beat_ms = clean_time(b->beat_ms);
	b->since_ms = clean_time(b->since_ms);
	for (uint32_t i = 0; i < at_most(b->waits, BASE_WAITS_MOST); i++)
		check_wait(&b->wait[i], at_most(b->ops, BASE_WAITS_OPS));
	for (uint32_t i = 0; i < at_most(b->ops, BASE_WAITS_OPS); i++) {
		if (b->op[i].kind >= BASE_WAIT_OP_KINDS)
			b->op[i].kind = BASE_WAIT_OP_OTHER;
		if (b->op[i].peer < 0)
			b->op[i].peer = BASE_WAITS_ANY;
		b->op[i].since_ms = clean_time(b->op[i].since_ms);
	}
	for (uint32_t i = 0; i < at_most(b->comms, BASE_WAITS_COMMS); i++)
		clean_name(b->comm[i].name, sizeof(b->comm[i].name));
}

bool record_decode(const struct base_waits *file, struct record *to)
{
	if (file->magic != BASE_WAITS_MAGIC || file->version != BASE_WAITS_VERSION)
		return false;
	to->pid = file->pid;
	to->rank = file->rank;
	to->size = file->size;
	to->threaded = file->threaded != 0;
	to->job = file->job;
	to->ever = file->body.beat_ms > 0;
	to->body = file->body;
	check_body(&to->body);
	return to->rank >= 0 && to->rank < to->size && to->size <= 1 << 16;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_sequence(int fd, uint32_t *sequence)
{
	return pread(fd, sequence, sizeof(*sequence), offsetof(struct base_waits, sequence)) ==
	       sizeof(*sequence);
}

/* Reads the file between two equal, even sequence numbers. */
static bool read_whole(int fd, struct base_waits *file)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t before, after;

		if (!read_sequence(fd, &before) ||
		    pread(fd, file, sizeof(*file), 0) != sizeof(*file) ||
		    !read_sequence(fd, &after))
			return false;
		if (before == after && !(before & 1))
			return true;
	}
	return false;
}

bool record_read(const struct record_file *file, struct record *to)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct base_waits raw;
	bool ok;

	if (fd < 0)
		return false;
	ok = read_whole(fd, &raw) && record_decode(&raw, to);
	close(fd);
	return ok;
}

/* ---- finding it ------------------------------------------------------------------------------ */

/* Whether the target of a link in /proc/PID/fd is such a file: a memfd, or a deleted one. */
static bool is_waits_file(const char *target)
{
	static const char memfd[] = "/memfd:" BASE_WAITS_MEMFD, name[] = BASE_WAITS_MEMFD "-";
	const char *last = strrchr(target, '/');

	return !strncmp(target, memfd, sizeof(memfd) - 1) ||
	       (last && !strncmp(last + 1, name, sizeof(name) - 1));
}

bool record_find(pid_t pid, struct record_file *file)
{
	char dir[32], path[320], target[256];
	const struct dirent *entry;
	bool found = false;
	ssize_t len;
	DIR *d;

	file->path[0] = '\0';
	snprintf(dir, sizeof(dir), "/proc/%d/fd", (int)pid);
	d = opendir(dir);
	while (d && !found && (entry = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		if (len <= 0)
			continue;
		target[len] = '\0';
		found = is_waits_file(target) && strlen(path) < sizeof(file->path);
		if (found)
			memcpy(file->path, path, strlen(path) + 1);
	}
	if (d)
		closedir(d);
	return found;
}
