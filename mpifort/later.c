/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Work that a call leaves until its request is complete: give a copy back, or free an array
 * that C got in place of the program's. The bindings of MPI_Wait, MPI_Test and so on look here,
 * and only if there is any such work. So such a request must be completed in Fortran.
 */
#include "mpifort.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static struct mpifort_later *list;
_Atomic int mpifort_laters;

void mpifort_later(struct mpifort_later *what, int request)
{
	what->request = request;
	pthread_mutex_lock(&lock);
	what->next = list;
	list = what;
	atomic_fetch_add_explicit(&mpifort_laters, 1, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}

/* Remove one entry of the request from the list, among those with this function; NULL: among
 * all. */
static struct mpifort_later *take_pending(int request, void (*end)(struct mpifort_later *self))
{
	struct mpifort_later **at = &list, *found = NULL;

	pthread_mutex_lock(&lock);
	while (*at && ((*at)->request != request || (end && (*at)->end != end)))
		at = &(*at)->next;
	if (*at) {
		found = *at;
		*at = found->next;
		atomic_fetch_sub_explicit(&mpifort_laters, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void mpifort_later_end_some(int request, void (*end)(struct mpifort_later *self))
{
	struct mpifort_later *what;

	while ((what = take_pending(request, end)))
		what->end(what);
}

void mpifort_later_end(int request)
{
	mpifort_later_end_some(request, NULL);
}

/* ---- arrays of datatypes --------------------------------------------------------------------- */

struct kept_array {
	struct mpifort_later later;
	void *array;
};

static void free_array(struct mpifort_later *self)
{
	struct kept_array *k = (struct kept_array *)self;

	free(k->array);
	free(k);
}

void mpifort_datatypes_keep(struct mpifort_datatypes *t, int request)
{
	struct kept_array *k;

	if (!t->at)
		return;
	if (request == mpifort_of_request(MPI_REQUEST_NULL)) { /* the call failed */
		free(t->at);
		return;
	}
	k = malloc(sizeof(*k));
	if (!k)
		return; /* the array is leaked, but nothing else */
	k->array = t->at;
	k->later.end = free_array;
	mpifort_later(&k->later, request);
}
