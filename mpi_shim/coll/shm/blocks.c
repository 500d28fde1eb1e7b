/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives with a block for each rank, in the shared-memory area. Each rank writes the
 * blocks that it gives, all wait for each other, and each rank copies the blocks meant for it.
 */
#include <string.h>

#include "base/copy.h"
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"

/* Begin an operation with a cell for the data of each rank. */
static int begin_blocks(struct mpi_shmcoll *h, bool wide)
{
	int rc;

	mpi_shmcoll_begin(h, wide);
	if (!wide)
		return mpi_shmcoll_reserve(h);
	rc = mpi_shmcoll_reserve_long(h);
	mpi_shmcoll_left_long(h, h->long_turn);
	/* the line of the flag, too: a rank that is behind may still have to read the paths of
	 * blocks there */
	return mpi_first(rc, mpi_shmcoll_reserve(h));
}

int mpi_shmcoll_check_equal(MPI_Count sent, MPI_Count received)
{
	if (sent == received)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_TRUNCATE,
			"%lld bytes are sent where %lld are received: all blocks have to be equal",
			(long long)sent, (long long)received);
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Bytes of each block that travel in one operation. */
struct segment {
	size_t at, bytes;
};

static void pack_segment(const struct mpi_vec *v, int i, const struct segment *p, char *to)
{
	const struct mpi_type *t = mpi_vec_type(v, i);

	if (t->dense)
		memcpy(to, mpi_vec_at(v, i) + t->true_lb + p->at, p->bytes);
	else
		mpi_type_pack_bytes(t, mpi_vec_at(v, i), mpi_vec_count(v, i), p->at, to, p->bytes);
}

static void unpack_segment(const struct mpi_vec *v, int i, const struct segment *p,
			   const char *from)
{
	const struct mpi_type *t = mpi_vec_type(v, i);

	if (t->dense)
		memcpy(mpi_vec_at(v, i) + t->true_lb + p->at, from, p->bytes);
	else
		mpi_type_unpack_bytes(t, mpi_vec_at(v, i), mpi_vec_count(v, i), p->at, from,
				      p->bytes);
}

/* The part of a segment that is in a block of so many bytes; blocks may be shorter than
 * others. */
static struct segment part_of_block(const struct segment *p, MPI_Count block)
{
	const size_t left = (MPI_Count)p->at < block ? (size_t)block - p->at : 0;

	return (struct segment){ p->at, left < p->bytes ? left : p->bytes };
}

static void pack_part(const struct mpi_vec *v, int i, const struct segment *p, char *to)
{
	const struct segment part = part_of_block(p, mpi_vec_bytes(v, i));

	if (part.bytes)
		pack_segment(v, i, &part, to);
}

/* The part of a segment that is received into block i, for which sent[i] bytes arrive. `sent`
 * NULL: as many as the block has. */
static struct segment received_segment(const struct segment *p, const struct mpi_vec *v, int i,
				       const uint64_t *sent)
{
	const MPI_Count room = mpi_vec_bytes(v, i);

	return part_of_block(p, sent && sent[i] < (uint64_t)room ? (MPI_Count)sent[i] : room);
}

/* Unpack the others' segments. Each is at offset `at` in its rank's cell, which has `all`
 * bytes. For ranks below this one the offset is smaller by `less`. */
static void unpack_others(const struct mpi_shmcoll *h, const struct mpi_vec *v,
			  const uint64_t *sent, const struct segment *p, size_t all, size_t at,
			  size_t less)
{
	const char *first = mpi_shmcoll_cell(h, 0, all) + at;
	const size_t step = h->n > 1 ? (size_t)(mpi_shmcoll_cell(h, 1, all) + at - first) : 0;
	const bool few = !v->counts && base_are_few(p->bytes) && v->type->dense;
	const MPI_Count stride = few ? v->count * v->type->extent : 0;
	char *to = few ? v->buf + v->type->true_lb + p->at : NULL;
	struct segment part;

	for (int i = 0; i < h->n; i++) {
		const char *from = first + (size_t)i * step - (i < h->me ? less : 0);

		if (i == h->me)
			continue;
		if (few) {
			base_copy_few(to + i * stride, from, p->bytes);
			continue;
		}
		part = received_segment(p, v, i, sent);
		if (part.bytes)
			unpack_segment(v, i, &part, from);
	}
}

/* Go to the next segment; false: there is none. */
static bool next_segment(struct segment *p, MPI_Count total, size_t most)
{
	p->at += p->bytes;
	p->bytes = (size_t)total - p->at < most ? (size_t)total - p->at : most;
	return p->bytes > 0;
}

/* Bytes of a segment if so many blocks share `room` bytes; whole cache lines. */
static size_t bytes_of_block_segment(size_t room, int blocks)
{
	return room / (size_t)blocks & ~(size_t)63;
}

/* ---- to all ---------------------------------------------------------------------------------- */

/* Wait until all ranks are here. Meanwhile copy the rank's block for itself, which needs no
 * other rank. */
static int copy_with_node_barrier(struct mpi_shmcoll *h, int rc, const struct mpi_vec *from,
				  const struct mpi_vec *to, const struct segment *p)
{
	bool has_leader = mpi_shmcoll_has_leader(h);

	if (h->wide)
		mpi_shmcoll_advertise_paths(h);
	if (has_leader) {
		rc = mpi_first(rc, mpi_shmcoll_node_barrier(h));
	} else {
		mpi_shmcoll_raise(h, rc);
		mpi_shmcoll_wake(h);
	}
	if (from && !rc && from->type->dense && mpi_vec_type(to, h->me)->dense)
		memcpy(mpi_vec_at(to, h->me) + to->type->true_lb + p->at,
		       mpi_vec_at(from, h->me) + from->type->true_lb + p->at, p->bytes);
	else if (from && !rc && p->at == 0) /* with the first segment, as a whole */
		rc = mpi_type_copy(mpi_vec_at(from, h->me), from->count, from->type,
				   mpi_vec_at(to, h->me), mpi_vec_count(to, h->me), to->type);
	if (!has_leader)
		rc = mpi_first(mpi_shmcoll_await_all(h), rc);
	if (h->wide)
		mpi_shmcoll_hear_paths(h);
	return rc;
}

static int allgather_segment(struct mpi_shmcoll *h, int wrong, const struct mpi_vec *mine,
			     bool copy, const struct mpi_vec *recv, const struct segment *p)
{
	const struct segment part = part_of_block(p, mpi_vec_bytes(recv, h->me));
	int rc = mpi_first(begin_blocks(h, p->bytes > MPI_SHMCOLL_FEW), wrong);

	if (!rc && part.bytes)
		pack_segment(mine, h->me, &part, mpi_shmcoll_cell(h, h->me, p->bytes));
	rc = copy_with_node_barrier(h, rc, copy && part.bytes ? mine : NULL, recv, &part);
	if (!rc)
		unpack_others(h, recv, NULL, p, p->bytes, 0, 0);
	return mpi_shmcoll_leave(h, rc);
}

int mpi_shmcoll_allgather(struct mpi_shmcoll *h, const void *in, MPI_Count count,
			  struct mpi_type *type, const struct mpi_vec *recv)
{
	struct mpi_vec mine = {
		.buf = (char *)(uintptr_t)in, .count = count, .type = type, .same = true
	};
	const MPI_Count bytes = mpi_vec_longest(recv, h->n);
	int rc = mpi_shmcoll_check_equal(count * type->size, mpi_vec_bytes(recv, h->me));
	/* two buffers may both be MPI_BOTTOM */
	bool copy = in != mpi_vec_at(recv, h->me) || type != recv->type;
	struct segment p = { 0 };

	/* after an error, too: the others count on this rank */
	while (next_segment(&p, bytes, bytes_of_block_segment(MPI_SHMCOLL_LONG, 1)))
		rc = mpi_first(rc, allgather_segment(h, rc, &mine, copy, recv, &p));
	mpi_shmcoll_path_ended(h, (size_t)bytes);
	return rc;
}

/* A segment of each of many blocks, all in one cell at once, would be a thin slice. Memory that
 * is read and written a few pages here and a few there takes longer. Below this size the blocks
 * of only some ranks go at once, in long segments. */
#define SLICE_LEAST (64 << 10)

/* Number of blocks in a cell. With many ranks a cell has the own block, too: all are copied
 * faster as one. With few it leaves the own one out and has longer segments. */
static int blocks_of_shmcoll(const struct mpi_shmcoll *h)
{
	return h->n > MPI_SHMCOLL_FEW_RANKS ? h->n : h->n - 1;
}

/* Where the segment for rank `to` is in the cell of local rank `from`. */
static char *block_at(const struct mpi_shmcoll *h, int from, int to, const struct segment *p)
{
	int blocks = blocks_of_shmcoll(h), i = blocks < h->n && to > from ? to - 1 : to;

	return mpi_shmcoll_cell(h, from, p->bytes * (size_t)blocks) + (size_t)i * p->bytes;
}

static int alltoall_segment(struct mpi_shmcoll *h, int wrong, const struct mpi_vec *send,
			    const struct mpi_vec *recv, const uint64_t *sent,
			    const struct segment *p)
{
	size_t all = p->bytes * (size_t)blocks_of_shmcoll(h);
	int rc = mpi_first(begin_blocks(h, all > MPI_SHMCOLL_FEW), wrong);

	if (!rc && !sent && h->n > MPI_SHMCOLL_FEW_RANKS && send->type->dense &&
	    (MPI_Count)p->bytes == mpi_vec_bytes(send, 0))
		memcpy(mpi_shmcoll_cell(h, h->me, all), send->buf + send->type->true_lb, all);
	else
		for (int i = 0; i < h->n && !rc; i++)
			if (i != h->me)
				pack_part(send, i, p, block_at(h, h->me, i, p));
	rc = copy_with_node_barrier(h, rc, send != recv && !sent ? send : NULL, recv, p);
	if (!rc)
		unpack_others(h, recv, sent, p, all, (size_t)h->me * p->bytes,
			      blocks_of_shmcoll(h) < h->n ? p->bytes : 0);
	return mpi_shmcoll_leave(h, rc);
}

/* In step s two ranks swap if their numbers sum up to s (mod n). Each pair swaps in one of n
 * steps, and so does each rank with itself. */
static int partner_in(const struct mpi_shmcoll *h, int step)
{
	return (step - h->me + h->n) % h->n;
}

/* Swap the segments of some ranks' blocks: those of the steps from `first` on, before `end`. */
static int swap_segments(struct mpi_shmcoll *h, int wrong, const struct mpi_vec *send,
			 const struct mpi_vec *recv, const uint64_t *sent, const struct segment *p,
			 int first, int end)
{
	const size_t all = p->bytes * (size_t)(end - first);
	const int own_step = 2 * h->me % h->n;
	const bool own = send != recv && !sent && own_step >= first && own_step < end;
	int rc = mpi_first(begin_blocks(h, true), wrong);

	for (int s = first; s < end && !rc; s++)
		if (partner_in(h, s) != h->me)
			pack_part(send, partner_in(h, s), p,
				  mpi_shmcoll_cell(h, h->me, all) + (size_t)(s - first) * p->bytes);
	rc = copy_with_node_barrier(h, rc, own ? send : NULL, recv, p);
	for (int s = first; s < end && !rc; s++) {
		const int i = partner_in(h, s);
		const struct segment part = received_segment(p, recv, i, sent);

		if (i != h->me && part.bytes)
			unpack_segment(recv, i, &part,
				       mpi_shmcoll_cell(h, i, all) +
					       (size_t)(s - first) * p->bytes);
	}
	return mpi_shmcoll_leave(h, rc);
}

/* The number of steps whose segments fit a cell. */
static int steps_of(size_t segment)
{
	return (int)(MPI_SHMCOLL_ROOM / segment);
}

/* Swap the segments of all ranks' blocks, some steps at a time. */
static int swap_all(struct mpi_shmcoll *h, int wrong, const struct mpi_vec *send,
		    const struct mpi_vec *recv, const uint64_t *sent, const struct segment *p)
{
	const int each = steps_of(p->bytes);
	int rc = wrong;

	for (int s = 0; s < h->n; s += each)
		rc = mpi_first(rc, swap_segments(h, rc, send, recv, sent, p, s,
						 h->n - s > each ? s + each : h->n));
	return rc;
}

/* Bytes of a segment if all blocks go at once. */
static size_t slice_of(const struct mpi_shmcoll *h)
{
	return bytes_of_block_segment(h->oversubscribed ? MPI_SHMCOLL_ROOM : MPI_SHMCOLL_LONG,
				      blocks_of_shmcoll(h));
}

/* Whether segments of all blocks at once would be thin, and more than one. */
static bool swaps(const struct mpi_shmcoll *h, uint64_t longest)
{
	return h->oversubscribed && slice_of(h) < SLICE_LEAST && longest > slice_of(h);
}

uint64_t mpi_shmcoll_alltoall_barriers(const struct mpi_shmcoll *h, uint64_t longest)
{
	const uint64_t segment = longest < MPI_SHMCOLL_LONG ? longest : MPI_SHMCOLL_LONG;

	if (!swaps(h, longest))
		return (longest - 1) / slice_of(h) + 1;
	return ((longest - 1) / MPI_SHMCOLL_LONG + 1) *
	       (uint64_t)((h->n - 1) / steps_of(segment) + 1);
}

int mpi_shmcoll_alltoall_segments(struct mpi_shmcoll *h, int rc, const struct mpi_vec *send,
				  const struct mpi_vec *recv, const uint64_t *sent,
				  MPI_Count longest)
{
	const bool swap = swaps(h, (uint64_t)longest);
	const size_t most = swap ? MPI_SHMCOLL_LONG : slice_of(h);
	struct segment p = { 0 };

	while (next_segment(&p, longest, most))
		rc = mpi_first(rc, swap ? swap_all(h, rc, send, recv, sent, &p)
					: alltoall_segment(h, rc, send, recv, sent, &p));
	return rc;
}

int mpi_shmcoll_alltoall(struct mpi_shmcoll *h, const struct mpi_vec *send,
			 const struct mpi_vec *recv)
{
	const MPI_Count bytes = mpi_vec_bytes(recv, 0);
	int rc = mpi_shmcoll_check_equal(mpi_vec_bytes(send, 0), bytes);

	rc = mpi_shmcoll_alltoall_segments(h, rc, send, recv, NULL, bytes);
	mpi_shmcoll_path_ended(h, (size_t)bytes);
	return rc;
}

/* ---- reduced --------------------------------------------------------------------------------- */

/* A rank's blocks for all are adjacent. `wrong`: this rank has no memory for its result. The
 * others need not know of that: they get their data from it all the same. */
static int reduce_scatter_segment(struct mpi_shmcoll *h, int wrong, const char *in, char *out,
				  const struct mpi_vec *parts, struct mpi_op *op,
				  const struct segment *p)
{
	const size_t all = p->bytes * (size_t)h->n;
	const struct segment mine = part_of_block(p, mpi_vec_bytes(parts, h->me));
	const MPI_Count count = (MPI_Count)mine.bytes / parts->type->size;
	int rc = begin_blocks(h, all > MPI_SHMCOLL_FEW);
	size_t block = 0, own = 0;

	for (int i = 0; i < h->n; i++) {
		const struct segment part = part_of_block(p, mpi_vec_bytes(parts, i));

		if (i == h->me)
			own = block + p->at;
		else if (!rc)
			memcpy(mpi_shmcoll_cell(h, h->me, all) + (size_t)i * p->bytes,
			       in + block + p->at, part.bytes);
		block += (size_t)mpi_vec_bytes(parts, i);
	}
	rc = mpi_first(copy_with_node_barrier(h, rc, NULL, NULL, p), wrong);
	for (int i = h->n - 1; i >= 0 && !rc && count; i--) {
		const char *from = i == h->me
					   ? in + own
					   : mpi_shmcoll_cell(h, i, all) + (size_t)h->me * p->bytes;

		if (i == h->n - 1)
			memcpy(out + p->at, from, mine.bytes);
		else
			rc = mpi_op_apply(op, from, out + p->at, count, parts->type);
	}
	return mpi_shmcoll_leave(h, rc);
}

int mpi_shmcoll_reduce_scatter(struct mpi_shmcoll *h, int rc, const void *in, void *out,
			       const struct mpi_vec *parts, struct mpi_op *op)
{
	const size_t most = bytes_of_block_segment(
		h->oversubscribed ? MPI_SHMCOLL_ROOM : MPI_SHMCOLL_LONG, h->n);
	const MPI_Count longest = mpi_vec_longest(parts, h->n);
	struct segment p = { 0 };

	while (next_segment(&p, longest, most))
		rc = mpi_first(rc, reduce_scatter_segment(h, rc, in, out, parts, op, &p));
	return rc;
}

/* ---- from and to the root -------------------------------------------------------------------- */

/* `wrong` is an error with the own block, which does not affect the others' blocks. `rc` is an
 * earlier error that affects all of them. */
static int gather_segment(struct mpi_shmcoll *h, int rc, int wrong, const struct mpi_vec *mine,
			  const struct mpi_vec *recv, const struct segment *p, int root)
{
	rc = mpi_first(rc, begin_blocks(h, p->bytes > MPI_SHMCOLL_BYTES));

	if (!rc && !wrong && h->me != root)
		pack_segment(mine, 0, p, mpi_shmcoll_cell(h, h->me, p->bytes));
	mpi_shmcoll_raise(h, mpi_first(rc, wrong));
	if (h->me == root) {
		rc = mpi_first(rc, mpi_shmcoll_await_all(h));
		if (!rc)
			unpack_others(h, recv, NULL, p, p->bytes, 0, 0);
	}
	return mpi_shmcoll_leave(h, mpi_first(rc, wrong));
}

int mpi_shmcoll_gather(struct mpi_shmcoll *h, int rc, const void *in, MPI_Count count,
		       struct mpi_type *type, const struct mpi_vec *recv, size_t bytes, int root)
{
	struct mpi_vec mine = { .buf = (char *)(uintptr_t)in, .count = count, .type = type };
	struct segment p = { 0 };
	int wrong = MPI_SUCCESS;

	if (in != MPI_IN_PLACE)
		wrong = mpi_shmcoll_check_equal(count * type->size, (MPI_Count)bytes);
	if (h->me == root && in != MPI_IN_PLACE && !rc && !wrong)
		wrong = mpi_type_copy(in, count, type, mpi_vec_at(recv, root), recv->count,
				      recv->type);
	while (next_segment(&p, (MPI_Count)bytes, bytes_of_block_segment(MPI_SHMCOLL_LONG, 1)))
		wrong = mpi_first(wrong, gather_segment(h, rc, wrong, &mine, recv, &p, root));
	return mpi_first(rc, wrong);
}

static int scatter_segment(struct mpi_shmcoll *h, const struct mpi_vec *send,
			   const struct mpi_vec *mine, const struct segment *p, int root)
{
	size_t all = p->bytes * (size_t)h->n;
	int rc = begin_blocks(h, all > MPI_SHMCOLL_BYTES);

	if (h->me == root) {
		for (int i = 0; i < h->n && !rc; i++)
			if (i != root)
				pack_segment(send, i, p,
					     mpi_shmcoll_cell(h, root, all) + (size_t)i * p->bytes);
		mpi_shmcoll_raise(h, rc);
	} else {
		rc = mpi_first(rc, mpi_shmcoll_await_flag(h, root));
		if (!rc)
			unpack_segment(mine, 0, p,
				       mpi_shmcoll_cell(h, root, all) + (size_t)h->me * p->bytes);
	}
	return mpi_shmcoll_leave(h, rc);
}

int mpi_shmcoll_scatter(struct mpi_shmcoll *h, const struct mpi_vec *send, void *out,
			MPI_Count count, struct mpi_type *type, size_t each, int root)
{
	struct mpi_vec mine = { .buf = out, .count = count, .type = type };
	struct segment p = { 0 };
	int rc = MPI_SUCCESS;

	while (next_segment(&p, (MPI_Count)each, bytes_of_block_segment(MPI_SHMCOLL_LONG, h->n)))
		rc = mpi_first(rc, scatter_segment(h, send, &mine, &p, root));
	if (h->me == root && out != MPI_IN_PLACE && !rc)
		rc = mpi_type_copy(mpi_vec_at(send, root), send->count, send->type, out, count,
				   type);
	return rc;
}
