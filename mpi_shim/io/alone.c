/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Independent access: one process moves its own bytes, extent by extent.
 *
 * Memory in few long runs is read and written where it is. Memory in short ones is packed into, or
 * unpacked from, a buffer.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/io/io.h"

/* Memory whose runs are shorter on average goes through a buffer, of so many bytes at most. */
enum { RUN_SHORT = 2048, BUFFER_MOST = 4 << 20 };
/* Extents that are shorter on average are read with the bytes between them, if at least one byte in
 * SIEVED_SPARSE is wanted. */
enum { SIEVED_SHORT = 2048, SIEVED_SPARSE = 8 };

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

/* ---- data sieving ---------------------------------------------------------------------------- */

/* Whether to read what lies between the extents as well: they are short and close together, or a
 * hint asks for it. */
static bool is_sieved(const struct mpi_transfer *a)
{
	enum mpi_hint_choice choice = a->file->hints.ds_read;
	int64_t from, to;

	if (a->writes || choice == MPI_HINT_DISABLE || !a->file->view.sorted)
		return false;
	mpi_transfer_range(a, &from, &to);
	if ((uint64_t)(to - from) == a->bytes)
		return false;
	return choice == MPI_HINT_ENABLE || (mpi_transfer_mean(a) < SIEVED_SHORT &&
					     (uint64_t)(to - from) / SIEVED_SPARSE <= a->bytes);
}

static void copy_to_runs(struct mpi_extents *memory, const char *from, uint64_t bytes)
{
	const struct mpi_extent *e;

	while (bytes && (e = mpi_extents_peek(memory))) {
		uint64_t some = e->bytes < bytes ? e->bytes : bytes;

		memcpy((void *)(uintptr_t)e->at, from, (size_t)some);
		mpi_extents_skip(memory, some);
		from += some;
		bytes -= some;
	}
}

/* Copy the extents that are in `have` bytes of the file, which begin at `at`. */
static void copy_sieved(struct mpi_transfer *a, struct mpi_extents *extents,
			struct mpi_extents *memory, const char *buffer, int64_t at, uint64_t have)
{
	const struct mpi_extent *e;

	while ((e = mpi_extents_peek(extents)) && (uint64_t)(e->at - at) < have) {
		uint64_t before = (uint64_t)(e->at - at), some = e->bytes;

		if (some > have - before)
			some = have - before;
		copy_to_runs(memory, buffer + before, some);
		mpi_extents_skip(extents, some);
		a->moved += some;
	}
}

static int read_sieved(struct mpi_transfer *a)
{
	int64_t from, to, at;
	struct mpi_extents extents, memory;
	const struct mpi_extent *e;
	uint64_t room, have, wanted;
	char *buffer;
	int err = MPI_SUCCESS;

	mpi_transfer_range(a, &from, &to);
	room = (uint64_t)a->file->hints.ind_rd_buffer_size;
	if (room > BUFFER_MOST)
		room = BUFFER_MOST;
	if (room > (uint64_t)(to - from))
		room = (uint64_t)(to - from);
	buffer = malloc((size_t)room);
	if (!buffer)
		return mpi_fail_memory("a buffer for the data of a file");
	mpi_extents_begin(&memory, a->type, (int64_t)(uintptr_t)a->buf, 0, a->bytes);
	mpi_view_extents(&extents, &a->file->view, a->from, a->from + a->bytes);
	while (!err && (e = mpi_extents_peek(&extents))) {
		at = e->at;
		wanted = (uint64_t)(to - at) < room ? (uint64_t)(to - at) : room;
		have = 0;
		err = mpi_disk_read(a->file, at, buffer, (size_t)wanted, &have);
		copy_sieved(a, &extents, &memory, buffer, at, have);
		if (have < wanted)
			break; /* the end of the file */
	}
	free(buffer);
	return err;
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
	if (is_sieved(a))
		err = read_sieved(a);
	else
		err = memory_is_short(a) ? move_packed(a) : move_in_place(a);
	if (a->file->atomic)
		mpi_disk_unlock(a->file, from, to);
	return err;
}
