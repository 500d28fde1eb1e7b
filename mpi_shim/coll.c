/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Common parts of the collectives: temporary buffers, packed forms, exchanges of blocks; and the collectives
 * on plain bytes and words with which communicators are made.
 */
#include "mpi_shim/coll_impl.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/config.h"
#include "mpi_shim/error.h"
#include "mpi_shim/world.h"

/* Branches at each fork of a tree when processors are short. */
#define RADIX_CROWDED 8

static bool short_of_processors(void)
{
	/* Ranks of several machines may not see the same number of processors, but must choose the
	 * same algorithms. */
	for (int i = 1; i < mpi_world.size; i++)
		if (mpi_world.id[i].nid != mpi_world.id[0].nid)
			return false;
	return mpi_world.size > sysconf(_SC_NPROCESSORS_ONLN);
}

bool mpi_coll_short_of_processors(void)
{
	static signed char known = -1;

	if (known < 0)
		known = short_of_processors();
	return known;
}

bool mpi_coll_crowded(void)
{
	int setting = base_config()->ptl_mpi_coll;

	if (setting != BASE_COLL_AUTO)
		return setting == BASE_COLL_MESSAGES;
	return mpi_coll_short_of_processors();
}

/* ---- trees --------------------------------------------------------------------------------------- */

/* Digits of a rank's number in base `radix`: its parent has the lowest that is not 0 cleared. */
void mpi_tree_make(struct mpi_tree *t, int root, const struct mpi_comm *comm)
{
	long n = comm->size, self = (comm->rank - root + n) % n;
	int radix = mpi_coll_crowded() ? RADIX_CROWDED : 2;
	long step = 1;

	t->n = 0;
	t->parent = MPI_PROC_NULL;
	for (; step < n && self % (step * radix) == 0; step *= radix) {
		for (long child = self + step; child < self + step * radix && child < n;
		     child += step) {
			t->child[t->n] = (int)((child + root) % n);
			t->below[t->n++] = (int)(step < n - child ? step : n - child);
		}
	}
	if (self > 0)
		t->parent = (int)((self - self % (step * radix) + root) % n);
}

/* ---- temporary buffers --------------------------------------------------------------------------- */

/* Blocks kept for the next collective: fresh memory from the kernel costs as much as a message. */
#define KEPT       2
#define KEPT_BYTES ((MPI_Count)4 << 20)

static struct kept {
	void *memory;
	MPI_Count bytes;
	bool used;
} kept[KEPT];

static void *kept_take(MPI_Count bytes)
{
	for (int i = 0; i < KEPT && bytes <= KEPT_BYTES; i++) {
		struct kept *k = &kept[i];

		if (k->used)
			continue;
		if (k->bytes < bytes) {
			free(k->memory);
			k->memory = malloc((size_t)bytes);
			k->bytes = k->memory ? bytes : 0;
		}
		k->used = k->memory;
		return k->memory;
	}
	return malloc((size_t)bytes);
}

char *mpi_tmp_bytes(struct mpi_tmp *t, MPI_Count bytes)
{
	t->heap = NULL;
	if (bytes <= (MPI_Count)sizeof(t->small))
		return t->small;
	t->heap = kept_take(bytes);
	if (!t->heap)
		mpi_fail(MPI_ERR_NO_MEM, "no memory for a temporary buffer of %lld bytes",
			 (long long)bytes);
	return t->heap;
}

char *mpi_tmp_typed(struct mpi_tmp *t, MPI_Count count, const struct mpi_type *type)
{
	MPI_Aint first = type->true_lb, span, steps;
	char *at;

	/* from the lowest byte of any element to the highest; extents may be negative */
	if (count == 0 || type->true_extent == 0)
		return mpi_tmp_bytes(t, 0);
	t->heap = NULL;
	if (__builtin_mul_overflow(count - 1, type->extent, &steps) ||
	    __builtin_add_overflow(steps < 0 ? -steps : steps, type->true_extent, &span)) {
		mpi_fail(MPI_ERR_NO_MEM, "no memory for a temporary copy of %lld elements",
			 (long long)count);
		return NULL;
	}
	if (steps < 0)
		first += steps;
	at = mpi_tmp_bytes(t, span);
	/* not a pointer into the buffer any more: elements reach into it by their lower bound */
	return at ? (char *)((uintptr_t)at - (uintptr_t)first) : NULL;
}

void mpi_tmp_free(struct mpi_tmp *t)
{
	bool is_kept = false;

	for (int i = 0; i < KEPT && t->heap; i++) {
		if (kept[i].memory == t->heap) {
			kept[i].used = false;
			is_kept = true;
		}
	}
	if (!is_kept)
		free(t->heap);
	t->heap = NULL;
}

void mpi_tmps_fini(void)
{
	for (int i = 0; i < KEPT; i++)
		free(kept[i].memory);
	memset(kept, 0, sizeof(kept));
}

int mpi_packed_init(struct mpi_packed *p, const void *buf, MPI_Count count,
		    const struct mpi_type *type, bool fill)
{
	p->tmp.heap = NULL;
	if (__builtin_mul_overflow(count, type->size, &p->bytes))
		return mpi_fail(MPI_ERR_COUNT, "%lld elements are more than memory can hold",
				(long long)count);
	if (type->dense || p->bytes == 0) {
		p->data = (char *)((uintptr_t)buf + (uintptr_t)type->true_lb);
		return MPI_SUCCESS;
	}
	p->data = mpi_tmp_bytes(&p->tmp, p->bytes);
	if (!p->data)
		return MPI_ERR_NO_MEM;
	if (fill)
		mpi_type_pack_bytes(type, buf, count, 0, p->data, (size_t)p->bytes);
	return MPI_SUCCESS;
}

void mpi_packed_store(struct mpi_packed *p, void *buf, MPI_Count count, const struct mpi_type *type)
{
	if (!type->dense && p->bytes > 0)
		mpi_type_unpack_bytes(type, buf, count, 0, p->data, (size_t)p->bytes);
}

void mpi_packed_fini(struct mpi_packed *p)
{
	mpi_tmp_free(&p->tmp);
}

/* ---- many messages at once ----------------------------------------------------------------------- */

/* Peers that are exchanged with at a time: enough to keep all busy, few enough for event queues. */
#define BATCH 32

int mpi_vec_exchange(const struct mpi_vec *sends, const struct mpi_vec *recvs,
		     struct mpi_comm *comm, int tag)
{
	struct mpi_request *requests[2 * BATCH];
	int peers = comm->inter ? comm->remote_size : comm->size;
	int n = peers > comm->size ? peers : comm->size;
	int self = comm->inter ? -1 : comm->rank;
	int rc = MPI_SUCCESS;

	/* At step i every rank sends to the one i after it and receives from the one i before it, so
	 * the two ends of a message meet in the same batch. */
	for (int batch = 0; batch < n; batch += BATCH) {
		int end = n - batch < BATCH ? n : batch + BATCH;
		int posted = 0;

		for (int i = batch; i < end; i++) {
			int from = (comm->rank - i + n) % n;

			if (from >= peers || from == self || mpi_vec_bytes(recvs, from) == 0)
				continue;
			requests[posted] = NULL;
			rc = mpi_first(rc, mpi_coll_irecv(mpi_vec_at(recvs, from),
							  mpi_vec_count(recvs, from),
							  mpi_vec_type(recvs, from), from, tag,
							  comm, &requests[posted++]));
		}
		for (int i = batch; i < end; i++) {
			int to = (comm->rank + i) % n;

			if (to >= peers || to == self || mpi_vec_bytes(sends, to) == 0)
				continue;
			requests[posted] = NULL;
			rc = mpi_first(rc, mpi_coll_isend(mpi_vec_at(sends, to),
							  mpi_vec_count(sends, to),
							  mpi_vec_type(sends, to), to, tag, comm,
							  &requests[posted++]));
		}
		rc = mpi_first(rc, mpi_coll_waitall(requests, posted));
	}
	return rc;
}

/* ---- without messages ---------------------------------------------------------------------------- */

struct mpi_hub *mpi_hub_for(struct mpi_comm *comm, MPI_Count count, const struct mpi_type *type)
{
	if (count == 0 || type->size == 0 || count > MPI_HUB_BYTES / type->size || comm->inter)
		return NULL;
	return mpi_hub_of(comm, true);
}

struct mpi_hub *mpi_hub_for_op(struct mpi_comm *comm, MPI_Count count, const struct mpi_type *type,
			       const struct mpi_op *op)
{
	return op->predefined && type->predefined && type->dense ? mpi_hub_for(comm, count, type)
								 : NULL;
}

/* ---- for making communicators ------------------------------------------------------------------- */

int mpi_coll_barrier(struct mpi_comm *comm)
{
	return mpi_intra_barrier(comm);
}

int mpi_coll_bcast_bytes(void *buf, size_t bytes, int root, struct mpi_comm *comm)
{
	return mpi_intra_bcast(buf, (MPI_Count)bytes, mpi_bytes(), root, comm);
}

int mpi_coll_allgather_bytes(const void *in, void *out, size_t bytes_each, struct mpi_comm *comm)
{
	struct mpi_vec v = { .buf = out, .count = (MPI_Count)bytes_each, .type = mpi_bytes() };

	return mpi_intra_allgather(in, v.count, v.type, &v, comm);
}

int mpi_coll_allreduce_and(uint64_t *word, int n, struct mpi_comm *comm)
{
	return mpi_intra_allreduce(MPI_IN_PLACE, word, n, mpi_type_of(MPI_UINT64_T),
				   mpi_op_of(MPI_BAND), comm);
}

int mpi_coll_allreduce_max(int64_t *word, int n, struct mpi_comm *comm)
{
	return mpi_intra_allreduce(MPI_IN_PLACE, word, n, mpi_type_of(MPI_INT64_T),
				   mpi_op_of(MPI_MAX), comm);
}
