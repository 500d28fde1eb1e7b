/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Independent access: one process moves its own bytes, extent by extent.
 *
 * Memory in few long runs is read and written where it is. Memory in short ones is packed into, or
 * unpacked from, a buffer.
 */
#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/io/io.h"

/* Memory whose runs are shorter on average goes through a buffer, of so many bytes at most. */
enum { RUN_SHORT = 2048, BUFFER_MOST = 4 << 20 };

/* Move data bytes [from, to) of the view, extent by extent. *moved is increased. */
static int move_extents(struct mpi_transfer *a, uint64_t from, uint64_t to,
			struct mpi_extents *memory, uint64_t *moved)
{
	const struct mpi_extent *e;
	struct mpi_extents extents;
	int err = MPI_SUCCESS;

	mpi_view_extents(&extents, &a->file->view, from, to);
	while (!err && (e = mpi_extents_peek(&extents))) {
		uint64_t before = *moved, bytes = e->bytes;

		err = mpi_disk_move(a->file, a->writes, e->at, bytes, memory, moved);
		if (*moved - before < bytes)
			break; /* the end of the file */
		mpi_extents_skip(&extents, bytes);
	}
	return err;
}

static bool memory_is_short(const struct mpi_transfer *a)
{
	struct mpi_extents memory;
	uint64_t bytes = 0;

	if (a->type->dense)
		return false;
	mpi_extents_begin(&memory, a->type, (int64_t)(uintptr_t)a->buf, 0, a->bytes);
	mpi_extents_peek(&memory);
	for (int i = 0; i < memory.n; i++)
		bytes += memory.extent[i].bytes;
	return bytes < (uint64_t)memory.n * RUN_SHORT;
}

/* Move the bytes through a buffer. */
static int move_packed(struct mpi_transfer *a)
{
	size_t room = a->bytes < BUFFER_MOST ? (size_t)a->bytes : BUFFER_MOST, some;
	char *buffer = malloc(room);
	struct mpi_extents memory;
	int err = buffer ? MPI_SUCCESS : mpi_fail_memory("a buffer for the data of a file");

	for (uint64_t moved = 0; !err && a->moved < a->bytes; moved = 0) {
		some = a->bytes - a->moved < room ? (size_t)(a->bytes - a->moved) : room;
		if (a->writes)
			mpi_type_pack_bytes(a->type, a->buf, a->count, a->moved, buffer, some);
		mpi_extents_begin(&memory, mpi_bytes(), (int64_t)(uintptr_t)buffer, 0, some);
		err = move_extents(a, a->from + a->moved, a->from + a->moved + some, &memory,
				   &moved);
		if (!a->writes && moved)
			mpi_type_unpack_bytes(a->type, a->buf, a->count, a->moved, buffer,
					      (size_t)moved);
		a->moved += moved;
		if (moved < some)
			break;
	}
	free(buffer);
	return err;
}

static int move_in_place(struct mpi_transfer *a)
{
	struct mpi_extents memory;

	mpi_extents_begin(&memory, a->type, (int64_t)(uintptr_t)a->buf, 0, a->bytes);
	return move_extents(a, a->from, a->from + a->bytes, &memory, &a->moved);
}

void mpi_transfer_range(const struct mpi_transfer *a, int64_t *from, int64_t *to)
{
	const struct mpi_view *v = &a->file->view;

	*from = mpi_view_place(v, a->from);
	*to = mpi_view_place(v, a->from + a->bytes - 1) + 1;
	if (v->sorted)
		return;
	/* runs overlap, or copies of the filetype lie within each other: take all of the latter
	 * that are touched */
	*from = v->disp;
	*to += v->laid->true_extent;
}

int mpi_transfer_alone(struct mpi_transfer *a)
{
	int64_t from = 0, to = 0;
	int err = MPI_SUCCESS;

	if (a->bytes == 0)
		return MPI_SUCCESS;
	if (a->file->atomic) {
		mpi_transfer_range(a, &from, &to);
		err = mpi_disk_lock(a->file, a->writes, from, to);
		if (err)
			return err;
	}
	err = memory_is_short(a) ? move_packed(a) : move_in_place(a);
	if (a->file->atomic)
		mpi_disk_unlock(a->file, from, to);
	return err;
}
