/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Memory that the ranks of a node have in common: a file without a name, made by the first of them, which the
 * others open through /proc while it waits for them. It is gone with the last process that has it mapped,
 * however that ends.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "mpi_shim/coll.h"
#include "mpi_shim/win.h"
#include "mpi_shim/world.h"

#define LARGE_PAGE ((size_t)2 << 20)

/* Where a file is to be found; whether it is the right one shows from device and inode. */
struct place {
	int64_t pid, fd;
	uint64_t device, inode;
	uint64_t bytes;
};

/* What lies where in the file. */
struct layout {
	int first;    /* rank that makes it */
	bool alone;   /* all ranks are on this node */
	bool control; /* then it begins with the controls */
	size_t stride;
	size_t bytes;
};

static bool here(const struct mpi_win *win, int rank)
{
	return mpi_world.id[win->target[rank].world].nid == mpi_world.id[mpi_world.rank].nid;
}

static size_t rounded(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* False: more than an address space. offset, if not NULL, by rank. */
static bool lay_out(const struct mpi_win *win, bool data, bool tight, struct layout *l,
		    size_t *offset)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	*l = (struct layout){ .first = -1, .alone = true };
	for (int i = 0; i < win->size; i++) {
		if (!here(win, i))
			l->alone = false;
		else if (l->first < 0)
			l->first = i;
	}
	l->control = l->alone;
	l->stride = win->flavor == MPI_WIN_FLAVOR_DYNAMIC
			    ? rounded(sizeof(struct mpi_win_control), page)
			    : rounded(MPI_CONTROL_BYTES, 128);
	if (l->control)
		l->bytes = rounded((size_t)win->size * l->stride, page);
	for (int i = 0; i < win->size && data; i++) {
		if (!here(win, i))
			continue;
		if (!tight)
			l->bytes = rounded(l->bytes, page);
		offset[i] = l->bytes;
		if (__builtin_add_overflow(l->bytes, (size_t)win->target[i].size, &l->bytes) ||
		    l->bytes > (size_t)1 << 46)
			return false;
	}
	l->bytes = rounded(l->bytes ? l->bytes : 1, page);
	return true;
}

/* The file, or -1. */
static int make(const struct layout *l, struct place *p)
{
	int fd = memfd_create("postern-window", MFD_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)l->bytes) < 0 || fstat(fd, &st) < 0) {
		close(fd);
		return -1;
	}
	*p = (struct place){ getpid(), fd, st.st_dev, st.st_ino, l->bytes };
	return fd;
}

/* The file that another process has; -1: it cannot be had. */
static int find(const struct place *p)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%lld/fd/%lld", (long long)p->pid, (long long)p->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_dev == p->device && st.st_ino == p->inode)
		return fd;
	close(fd);
	return -1;
}

static void *map(int fd, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (bytes >= 2 * LARGE_PAGE)
		madvise(at, bytes, MADV_HUGEPAGE); /* if the machine has them for such memory */
	return at;
}

static void fill_in(struct mpi_win *win, const struct layout *l, bool data, const size_t *offset)
{
	char *start = win->segment;

	for (int i = 0; i < win->size; i++) {
		struct mpi_win_target *t = &win->target[i];

		if (!here(win, i))
			continue;
		if (l->control)
			t->control =
				(struct mpi_win_control *)(void *)(start + (size_t)i * l->stride);
		if (data)
			t->base = start + offset[i];
	}
	if (l->control)
		win->control = mpi_win_self(win)->control;
}

/* All ranks have it, or none. The file of the first one stays open until everybody has opened it. */
static int obtain(struct mpi_win *win, const struct layout *l, struct place *all, bool *mapped)
{
	struct place mine = { 0 };
	uint64_t ok;
	int fd = -1, err;

	if (l->first == win->rank)
		fd = make(l, &mine);
	err = mpi_coll_allgather_bytes(&mine, all, sizeof(mine), win->comm);
	if (!err && l->first != win->rank && all[l->first].bytes == l->bytes)
		fd = find(&all[l->first]);
	if (fd >= 0)
		win->segment = map(fd, l->bytes);
	win->segment_bytes = l->bytes;
	ok = win->segment != NULL;
	if (!err)
		err = mpi_coll_allreduce_and(&ok, 1, win->comm);
	if (fd >= 0)
		close(fd);
	*mapped = !err && ok;
	return err;
}

int mpi_win_share(struct mpi_win *win, bool data, bool tight, bool *mapped)
{
	struct place *all = calloc((size_t)win->size, sizeof(*all));
	size_t *offset = calloc((size_t)win->size, sizeof(*offset));
	struct layout l = { .bytes = 0 };
	uint64_t ok = all && offset && lay_out(win, data, tight, &l, offset) && (data || l.alone) &&
		      (base_config()->ptl_mpi_rma != BASE_RMA_PORTALS ||
		       win->flavor == MPI_WIN_FLAVOR_SHARED);
	int err = mpi_coll_allreduce_and(&ok, 1, win->comm);

	*mapped = false;
	if (!err && ok)
		err = obtain(win, &l, all, mapped);
	if (*mapped)
		fill_in(win, &l, data, offset);
	else
		mpi_win_unshare(win);
	free(all);
	free(offset);
	return err;
}

void mpi_win_unshare(struct mpi_win *win)
{
	if (win->segment)
		munmap(win->segment, win->segment_bytes);
	win->segment = NULL;
}
