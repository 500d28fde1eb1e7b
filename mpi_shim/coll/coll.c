/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Common parts of the collectives: trees, packed forms, exchanges of blocks.
 */
#include "mpi_shim/coll/coll_impl.h"

#include "base/config.h"
#include "base/log.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/pt2pt/protocol.h"

static void end_with_comm(struct mpi_comm *comm)
{
	mpi_shmcoll_free(comm->shmcoll);
	comm->shmcoll = NULL;
	mpi_calls_free(comm);
	if (comm->counted)
		mpi_others_count(comm, -1);
}

void mpi_coll_init(void)
{
	mpi_comm_at_end(end_with_comm);
	mpi_coll_setting = mpi_coll_parse(base_config()->ptl_mpi_coll, base_warn);
	mpi_schedules_init();
	mpi_arrivals_go_to(MPI_ARRIVAL_FLAG, mpi_shmcoll_inline);
}

/* ---- trees ----------------------------------------------------------------------------------- */

/* By digits of a rank's number in base `radix`: the parent has the lowest nonzero digit
 * cleared. */
void mpi_tree_make(struct mpi_tree *t, int root, int radix, const struct mpi_comm *comm)
{
	long n = comm->size, self = (comm->rank - root + n) % n;
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

/* ---- packed forms ---------------------------------------------------------------------------- */

int mpi_packed_init(struct mpi_schedule *p, struct mpi_packed *k, const void *buf, MPI_Count count,
		    struct mpi_type *type, bool fill)
{
	if (__builtin_mul_overflow(count, type->size, &k->bytes))
		return mpi_fail(MPI_ERR_COUNT, "%lld elements are more than memory can hold",
				(long long)count);
	k->direct = type->dense || k->bytes == 0;
	if (k->direct) {
		k->data = (char *)((uintptr_t)buf + (uintptr_t)type->true_lb);
		return MPI_SUCCESS;
	}
	k->data = mpi_schedule_bytes(p, k->bytes);
	if (!k->data)
		return MPI_ERR_NO_MEM;
	if (fill)
		mpi_schedule_pack(p, type, buf, count, k->data);
	return MPI_SUCCESS;
}

void mpi_packed_store(struct mpi_schedule *p, const struct mpi_packed *k, void *buf,
		      MPI_Count count, struct mpi_type *type)
{
	if (!k->direct)
		mpi_schedule_unpack(p, type, buf, count, k->data);
}

/* ---- many messages at once ------------------------------------------------------------------- */

void mpi_vec_copy_own(struct mpi_schedule *p, const struct mpi_vec *send,
		      const struct mpi_vec *recv, int rank)
{
	/* one address may mean two places: with MPI_BOTTOM */
	if (mpi_vec_at(send, rank) != mpi_vec_at(recv, rank) ||
	    mpi_vec_type(send, rank) != mpi_vec_type(recv, rank))
		mpi_schedule_copy(p, mpi_vec_at(send, rank), mpi_vec_count(send, rank),
				  mpi_vec_type(send, rank), mpi_vec_at(recv, rank),
				  mpi_vec_count(recv, rank), mpi_vec_type(recv, rank));
}

void mpi_vec_exchange(struct mpi_schedule *p, const struct mpi_vec *sends,
		      const struct mpi_vec *recvs, struct mpi_comm *comm)
{
	int peers = comm->inter ? comm->remote_size : comm->size;
	int n = peers > comm->size ? peers : comm->size;
	int self = comm->inter ? -1 : comm->rank;

	/* In step i every rank sends to the rank i above it and receives from the rank i below
	 * it. So both ends of a message are in the same batch. */
	for (int batch = 0; batch < n; batch += MPI_EXCHANGES) {
		int end = n - batch < MPI_EXCHANGES ? n : batch + MPI_EXCHANGES;

		for (int i = batch; i < end; i++) {
			int from = (comm->rank - i + n) % n;

			if (from < peers && from != self && mpi_vec_bytes(recvs, from) > 0)
				mpi_schedule_recv(p, mpi_vec_at(recvs, from),
						  mpi_vec_count(recvs, from),
						  mpi_vec_type(recvs, from), from, comm);
		}
		for (int i = batch; i < end; i++) {
			int to = (comm->rank + i) % n;

			if (to < peers && to != self && mpi_vec_bytes(sends, to) > 0)
				mpi_schedule_send(p, mpi_vec_at(sends, to),
						  mpi_vec_count(sends, to), mpi_vec_type(sends, to),
						  to, comm);
		}
		mpi_schedule_wait(p);
	}
}
