/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Memory that the ranks of a node share (node_segment.h), made by the first of them. This file
 * decides its layout, and that all ranks have it or none.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "base/shared.h"
#include "mpi_shim/coll/coll.h"
#include "mpi_shim/core/node.h"
#include "mpi_shim/core/node_segment.h"
#include "mpi_shim/rma/win.h"
#include "mpi_shim/core/world.h"

#define LARGE_PAGE ((size_t)2 << 20)
#define HEAD       128 /* bytes before the first control: the token */

/* Layout of the node segment. */
struct layout {
	int first; /* the rank that makes it */
	/* all ranks are on this node: it begins with the controls, each followed by its pairs */
	bool alone;
	size_t control; /* bytes of a control */
	size_t stride;  /* bytes of a control and its pairs */
	size_t bytes;
};

static bool here(const struct mpi_win *win, int rank)
{
	return mpi_is_here(win->target[rank].world);
}

bool mpi_win_one_node(const struct mpi_win *win)
{
	for (int i = 0; i < win->size; i++)
		if (!here(win, i))
			return false;
	return true;
}

static size_t rounded(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* Lay out the segment. False: it exceeds an address space. `offset` gets bytes by rank; it is
 * used with `data` only. */
static bool lay_out_segment(const struct mpi_win *win, bool data, struct layout *l, size_t *offset)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	*l = (struct layout){ .first = -1, .alone = true };
	for (int i = 0; i < win->size; i++) {
		if (!here(win, i))
			l->alone = false;
		else if (l->first < 0)
			l->first = i;
	}
	l->bytes = HEAD;
	l->control = win->flavor == MPI_WIN_FLAVOR_DYNAMIC
			     ? rounded(sizeof(struct mpi_win_control), page)
			     : rounded(MPI_CONTROL_BYTES, 128);
	l->stride = l->control;
	if (data)
		l->stride += rounded((size_t)win->size * sizeof(struct mpi_win_pair), 128);
	if (l->alone)
		l->bytes = rounded(HEAD + (size_t)win->size * l->stride, page);
	for (int i = 0; i < win->size && data; i++) {
		if (!here(win, i))
			continue;
		if (!win->tight)
			l->bytes = rounded(l->bytes, page);
		offset[i] = l->bytes;
		if (__builtin_add_overflow(l->bytes, (size_t)win->target[i].size, &l->bytes) ||
		    l->bytes > (size_t)1 << 46)
			return false;
	}
	l->bytes = rounded(l->bytes, page);
	return true;
}

static struct mpi_win_control *control_of(const struct mpi_win *win, const struct layout *l,
					  int rank)
{
	char *start = win->segment;

	return (struct mpi_win_control *)(void *)(start + HEAD + (size_t)rank * l->stride);
}

/* The pair that `from` writes in the memory of `rank`. */
static struct mpi_win_pair *pair_of(const struct mpi_win *win, const struct layout *l, int rank,
				    int from)
{
	char *control = (char *)control_of(win, l, rank);

	return (struct mpi_win_pair *)(void *)(control + l->control) + from;
}

static void fill_in_targets(struct mpi_win *win, const struct layout *l, bool data,
			    const size_t *offset)
{
	char *start = win->segment;

	for (int i = 0; i < win->size; i++) {
		struct mpi_win_target *t = &win->target[i];

		if (!here(win, i))
			continue;
		if (l->alone)
			t->control = control_of(win, l, i);
		if (l->alone && data) {
			t->there = pair_of(win, l, i, win->rank);
			t->here = pair_of(win, l, win->rank, i);
		}
		if (data)
			t->base = start + offset[i];
	}
	if (l->alone)
		win->control = mpi_win_self(win)->control;
	/* this rank's own part is in its core file, like all of its data */
	if (data)
		base_shared_show(start + offset[win->rank], (size_t)win->target[win->rank].size);
}

/* Map the segment, on all ranks or on none. */
static int obtain(struct mpi_win *win, const struct layout *l, struct mpi_node_segment_key *all,
		  bool *mapped)
{
	struct mpi_node_segment_key mine = { .token = 0 };
	uint64_t ok;
	int err;

	win->segment_bytes = l->bytes;
	if (l->first == win->rank)
		win->segment = mpi_node_segment_offer(l->bytes, &mine);
	err = mpi_coll_allgather_bytes(&mine, all, sizeof(mine), win->comm);
	if (!err && l->first != win->rank)
		win->segment = mpi_node_segment_join(l->bytes, &all[l->first]);
	ok = win->segment != NULL;
	if (!err)
		err = mpi_coll_allreduce_and(&ok, 1, win->comm);
	mpi_node_segment_settle(&mine);
	*mapped = !err && ok;
	if (*mapped && l->bytes >= 2 * LARGE_PAGE)
		madvise(win->segment, l->bytes, MADV_HUGEPAGE); /* if the machine has them */
	return err;
}

int mpi_win_share(struct mpi_win *win, bool data, bool *mapped)
{
	struct mpi_node_segment_key *all = calloc((size_t)win->size, sizeof(*all));
	size_t *offset = calloc((size_t)win->size, sizeof(*offset));
	struct layout l = { .bytes = 0 };
	uint64_t ok = all && offset && lay_out_segment(win, data, &l, offset) &&
		      (data || l.alone) &&
		      (base_config()->ptl_mpi_rma == BASE_RMA_AUTO ||
		       win->flavor == MPI_WIN_FLAVOR_SHARED);
	int err = mpi_coll_allreduce_and(&ok, 1, win->comm);

	*mapped = false;
	if (!err && ok)
		err = obtain(win, &l, all, mapped);
	if (*mapped)
		fill_in_targets(win, &l, data, offset);
	else
		mpi_win_unshare(win);
	free(all);
	free(offset);
	return err;
}

void mpi_win_unshare(struct mpi_win *win)
{
	mpi_node_segment_leave(win->segment, win->segment_bytes);
	win->segment = NULL;
}
