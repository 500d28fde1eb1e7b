/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Long equal blocks, and long data between two ranks. Each rank writes into the area where its
 * data are. Every rank then copies what it needs straight out of the others' memory, once, by a
 * CMA read (process_vm_readv). Each starts at a different rank. No rank goes on before all have
 * what they need. The kernel does not read some memory for others, such as that of devices. If
 * one rank cannot read, all are told so and take another path.
 *
 * Ranks advertise whether they have read all in the flags of an operation of its own. No rank
 * goes beyond it before all have seen these flags. A rank may stop waiting because a rank has
 * died. It says so in its flag before its caller can write to data that are still being read. A
 * rank that reads checks the flags afterwards. So no rank takes torn data for valid ones.
 * Writing into another's memory is done only between two ranks: one that stops waiting knows
 * that the other is dead and writes no more.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "mpi_shim/core/cma.h"
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"

/* Bytes that are read at a time, before they are used in a computation. */
#define FOLD_BYTES (64 << 10)

/* The memory that a rank offers, on the line of its flag. */
struct offer {
	uint64_t at;    /* address in its memory */
	uint64_t to;    /* where others may write; 0: nowhere */
	uint64_t bytes; /* of a block; 0: its length is wrong, and it is left out */
	int64_t pid;
};

static_assert(sizeof(struct offer) <= MPI_SHMCOLL_FEW, "an offer lies on the line of a flag");

static struct offer *offer_of(const struct mpi_shmcoll *h, int i)
{
	return (struct offer *)(void *)mpi_shmcoll_cell(h, i, sizeof(struct offer));
}

static void offer_memory(struct mpi_shmcoll *h, int rc, const void *at, void *to, size_t bytes)
{
	mpi_shmcoll_begin(h, false);
	rc = mpi_first(rc, mpi_shmcoll_reserve(h));
	*offer_of(h, h->me) = (struct offer){ (uintptr_t)at, (uintptr_t)to, bytes, h->pid };
	mpi_shmcoll_raise(h, rc);
	mpi_shmcoll_wake(h);
}

/* Copy `bytes` bytes, from `skip` on, of what local rank i offers, as soon as it does, to
 * `here`. With `give`, copy from `here` into that rank's memory instead. Every offer must be
 * `block` bytes long. Giving does nothing if that rank receives nothing, or another length. */
static int copy_part_of_rank(struct mpi_shmcoll *h, int i, size_t block, size_t skip, char *here,
			     size_t bytes, bool give)
{
	int rc = mpi_shmcoll_await_flag(h, i);
	struct offer o;
	bool done;

	if (rc)
		return rc;
	o = *offer_of(h, i);
	if (o.bytes == 0 || (give && (!o.to || o.bytes != block)))
		return MPI_SUCCESS;
	if (o.bytes != block)
		return mpi_shmcoll_check_equal((MPI_Count)o.bytes, (MPI_Count)block);
	if (mpi_world.threaded)
		mpi_unlock();
	done = mpi_cma_copy((pid_t)o.pid, (give ? o.to : o.at) + skip, here, bytes, give);
	if (mpi_world.threaded)
		mpi_lock();
	if (done)
		return MPI_SUCCESS;
	if (errno == ESRCH)
		return mpi_fail(MPI_ERR_PROC_ABORTED, "the process of rank %d has ended",
				h->rank[i]);
	return MPI_ERR_OTHER;
}

static int take_block_part(struct mpi_shmcoll *h, int i, size_t block, size_t skip, char *to,
			   size_t bytes)
{
	return copy_part_of_rank(h, i, block, skip, to, bytes, false);
}

/* Read a whole block. */
static int read_from_rank(struct mpi_shmcoll *h, int i, size_t bytes, size_t skip, char *to)
{
	return take_block_part(h, i, bytes, skip, to, bytes);
}

/* An error for a dead rank has precedence over all others. */
static int worse(int a, int b)
{
	return b == MPI_ERR_PROC_ABORTED ? b : mpi_first(a, b);
}

/* Wait until all have what they need, or all know of the worst error. A failed read counts only
 * while all ranks live: a rank that knows of a dead rank has left. */
static int settle_reading(struct mpi_shmcoll *h, int rc)
{
	mpi_shmcoll_leave(h, MPI_SUCCESS);
	mpi_shmcoll_begin(h, false);
	rc = worse(rc, mpi_shmcoll_reserve(h));
	mpi_shmcoll_advertise_paths(h);
	mpi_shmcoll_raise(h, rc);
	mpi_shmcoll_wake(h);
	for (int i = 0; i < h->n; i++)
		if (i != h->me)
			rc = worse(rc, mpi_shmcoll_await_flag(h, i));
	mpi_shmcoll_hear_paths(h);
	if (mpi_shmcoll_no_memory(rc) && mpi_shmcoll_failed(h) >= 0)
		rc = mpi_shmcoll_missing(h, mpi_shmcoll_failed(h));
	if (rc == MPI_ERR_PROC_ABORTED) {
		mpi_shmcoll_raise(h, rc);
		atomic_thread_fence(memory_order_seq_cst);
	} else {
		h->left = h->number - 1;
	}
	return mpi_shmcoll_leave(h, rc);
}

/* Settle the reads of this rank, which are over. False: some rank could not read, and all use
 * another path from now on. */
static bool all_could(struct mpi_schedule *p, struct mpi_shmcoll *h, int rc, int *result)
{
	int all = settle_reading(h, rc == MPI_ERR_TRUNCATE ? MPI_SUCCESS : rc);

	*result = mpi_first(rc, all);
	if (!mpi_shmcoll_no_memory(all))
		return true;
	h->reads = false;
	/* the other path may need no memory */
	p->failed = false;
	p->rc = MPI_SUCCESS;
	return false;
}

/* ---- whether it can be done ------------------------------------------------------------------ */

bool mpi_shmcoll_try_reading(struct mpi_shmcoll *h)
{
	const uint64_t mine = h->shared->token + (uint64_t)h->me;
	uint64_t good = base_config()->ptl_shm_cma != BASE_CMA_OFF;
	int rc;

	h->pid = getpid();
	offer_memory(h, MPI_SUCCESS, &mine, NULL, sizeof(mine));
	rc = mpi_shmcoll_await_all(h);
	for (int i = 0; i < h->n && good && !rc; i++) {
		const struct offer *o = offer_of(h, i);
		uint64_t seen;

		good = i == h->me ||
		       (mpi_cma_copy((pid_t)o->pid, o->at, &seen, sizeof(seen), false) &&
			seen == h->shared->token + (uint64_t)i);
	}
	good &= mpi_shmcoll_leave(h, rc) == MPI_SUCCESS;
	return mpi_coll_allreduce_and(&good, 1, h->comm) == MPI_SUCCESS && good;
}

bool mpi_shmcoll_reads(const struct mpi_shmcoll *h)
{
	return h->reads;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A block as bytes that others can read; packed if it has gaps. NULL: out of memory. */
static const char *dense(struct mpi_schedule *p, const struct mpi_vec *v, int n)
{
	const struct mpi_type *t = v->type;
	char *data;

	if (t->dense)
		return v->buf + t->true_lb;
	data = mpi_schedule_bytes(p, n * v->count * t->size);
	if (data)
		mpi_schedule_pack(p, v->type, v->buf, n * v->count, data);
	return data;
}

bool mpi_shmcoll_read(struct mpi_schedule *p, struct mpi_shmcoll *h, const struct mpi_vec *send,
		      const struct mpi_vec *recv, int *result)
{
	const struct mpi_type *t = recv->type;
	size_t bytes = (size_t)mpi_vec_bytes(recv, 0);
	size_t skip = send->same ? 0 : bytes * (size_t)h->me;
	int rc = mpi_shmcoll_check_equal(mpi_vec_bytes(send, 0), (MPI_Count)bytes);
	bool could;
	const char *mine = dense(p, send, send->same ? 1 : h->n);
	char *apart = t->dense ? NULL : mpi_schedule_bytes(p, (MPI_Count)bytes);

	if (p->failed)
		rc = MPI_ERR_NO_MEM;
	offer_memory(h, rc, mine, NULL, rc ? 0 : bytes);
	if (!rc)
		mpi_vec_copy_own(p, send, recv, h->me);
	for (int i = 1; i < h->n && !rc; i++) {
		int from = (h->me + i) % h->n;
		char *to = mpi_vec_at(recv, from);

		rc = read_from_rank(h, from, bytes, skip, apart ? apart : to + t->true_lb);
		if (apart && !rc)
			mpi_schedule_unpack(p, recv->type, to, recv->count, apart);
	}
	could = all_could(p, h, rc, result);
	mpi_shmcoll_path_ended(h, bytes);
	return could;
}

/* ---- from one of two ranks to the other ------------------------------------------------------ */

bool mpi_shmcoll_read_bcast(struct mpi_schedule *p, struct mpi_shmcoll *h, void *data, size_t bytes,
			    int root, int *result)
{
	const bool gives = h->me == root;
	const size_t half = bytes / 2 / 64 * 64, begin = gives ? half : 0;
	int rc = p->failed ? MPI_ERR_NO_MEM : MPI_SUCCESS;

	offer_memory(h, rc, data, gives ? NULL : data, rc ? 0 : bytes);
	if (!rc)
		rc = copy_part_of_rank(h, 1 - h->me, bytes, begin, (char *)data + begin,
				       gives ? bytes - half : half, gives);
	return all_could(p, h, rc, result);
}

/* A vector of `bytes`, and a part of it. */
struct part {
	size_t bytes, begin, end;
};

/* to = the other rank's op `in`, segment by segment while they are in the caches. Both pointers
 * begin where the part does. */
static int take_and_fold(struct mpi_shmcoll *h, const char *in, char *to, const struct part *v,
			 struct mpi_type *type, struct mpi_op *op)
{
	const size_t size = (size_t)type->size, most = FOLD_BYTES / size * size;
	int rc = MPI_SUCCESS;

	for (size_t n, at = v->begin; at < v->end && !rc; at += n, in += n, to += n) {
		n = v->end - at < most ? v->end - at : most;
		rc = take_block_part(h, 1 - h->me, v->bytes, at, to, n);
		if (!rc)
			rc = mpi_op_apply(op, in, to, (MPI_Count)(n / size), type);
	}
	return rc;
}

/* out = the other rank's op out. `out` stays unchanged until all has been read. */
static int take_and_fold_in_place(struct mpi_schedule *p, struct mpi_shmcoll *h, char *out,
				  size_t bytes, struct mpi_type *type, struct mpi_op *op)
{
	char *theirs = mpi_schedule_bytes(p, (MPI_Count)bytes);
	int rc = theirs ? read_from_rank(h, 1 - h->me, bytes, 0, theirs) : MPI_ERR_NO_MEM;

	return rc ? rc : mpi_op_apply(op, theirs, out, (MPI_Count)bytes / type->size, type);
}

/* Compute a part of the root's result, segment by segment, and write it there, unless the
 * root's reduction is in place. `in` begins where the vector does. */
static int fold_and_give(struct mpi_schedule *p, struct mpi_shmcoll *h, const char *in,
			 const struct part *v, int root, struct mpi_type *type, struct mpi_op *op)
{
	const size_t size = (size_t)type->size, all = v->end - v->begin;
	const size_t most = all < FOLD_BYTES ? all : FOLD_BYTES / size * size;
	int rc = mpi_shmcoll_await_flag(h, root);
	char *made;

	if (rc || !offer_of(h, root)->to)
		return rc;
	made = mpi_schedule_bytes(p, (MPI_Count)most);
	if (!made)
		return MPI_ERR_NO_MEM;
	for (size_t n, at = v->begin; at < v->end && !rc; at += n) {
		n = v->end - at < most ? v->end - at : most;
		rc = take_block_part(h, root, v->bytes, at, made, n);
		if (!rc)
			rc = mpi_op_apply(op, in + at, made, (MPI_Count)(n / size), type);
		if (!rc)
			rc = copy_part_of_rank(h, root, v->bytes, at, made, n, true);
	}
	return rc;
}

/* Bytes of `count` elements, rounded down to whole cache lines if elements fit one. */
static size_t whole_lines(MPI_Count count, const struct mpi_type *type)
{
	const MPI_Count line = 64 % type->size == 0 ? 64 / type->size : 1;

	return (size_t)(count / line * line * type->size);
}

bool mpi_shmcoll_read_reduce(struct mpi_schedule *p, struct mpi_shmcoll *h, const void *in,
			     void *out, MPI_Count count, struct mpi_type *type, struct mpi_op *op,
			     int root, int *result)
{
	const size_t bytes = (size_t)(count * type->size);
	/* the other rank's part must also be written to the root */
	const size_t share = whole_lines(count / 4 * 3, type);
	const struct part roots = { bytes, 0, share }, others = { bytes, share, bytes };
	int rc;

	offer_memory(h, MPI_SUCCESS, in, h->me == root && in != out ? out : NULL, bytes);
	if (h->me != root)
		rc = fold_and_give(p, h, in, &others, root, type, op);
	else if (in == out)
		rc = take_and_fold_in_place(p, h, out, bytes, type, op);
	else
		rc = take_and_fold(h, in, out, &roots, type, op);
	return all_could(p, h, rc, result);
}

/*
 * Each rank computes a half of the result, and reads the other half from where the other has
 * it. In place a rank computes its half elsewhere. So nothing has changed if the other cannot
 * compute its half. Once that is known, the rank copies its own half into the result.
 */
bool mpi_shmcoll_read_allreduce(struct mpi_schedule *p, struct mpi_shmcoll *h, const void *in,
				void *out, MPI_Count count, struct mpi_type *type,
				struct mpi_op *op, int *result)
{
	const size_t bytes = (size_t)(count * type->size), half = whole_lines(count / 2, type);
	const struct part mine = { bytes, h->me ? half : 0, h->me ? bytes : half };
	const size_t begin = h->me ? 0 : half, n = bytes - (mine.end - mine.begin);
	const char *source = in;
	char *to = out, *made = to + mine.begin;
	int rc = MPI_SUCCESS;
	bool all;

	if (in == out)
		made = mpi_schedule_bytes(p, (MPI_Count)(mine.end - mine.begin));
	if (p->failed)
		rc = MPI_ERR_NO_MEM;
	offer_memory(h, rc, in, NULL, bytes);
	if (!rc)
		rc = take_and_fold(h, source + mine.begin, made, &mine, type, op);
	mpi_shmcoll_leave(h, MPI_SUCCESS);
	/* an address as if the whole vector lay there */
	offer_memory(h, rc, (const void *)((uintptr_t)made - mine.begin), NULL, bytes);
	if (!rc)
		rc = take_block_part(h, 1 - h->me, bytes, begin, to + begin, n);
	all = all_could(p, h, rc, result);
	if (in == out && all && !*result)
		memcpy(to + mine.begin, made, mine.end - mine.begin);
	return all;
}
