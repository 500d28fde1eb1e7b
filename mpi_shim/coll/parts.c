/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reductions in parts: see parts.h.
 */
#include "mpi_shim/coll/parts.h"

/* From here on vectors are reduced in parts. On an oversubscribed machine only an allreduce is,
 * and only if its vector is longer than a short message. */
#define LONG_BYTES                (8 << 10)
#define LONG_BYTES_OVERSUBSCRIBED ((32 << 10) + 1)

bool mpi_coll_divisible(MPI_Count count, const struct mpi_op *op, const struct mpi_comm *comm)
{
	/* a user's function may expect the whole vector at once */
	return op->predefined && op->commutative && count >= comm->size;
}

bool mpi_coll_in_parts(MPI_Count count, const struct mpi_type *type, const struct mpi_op *op,
		       const struct mpi_comm *comm)
{
	MPI_Count least = mpi_coll_oversubscribed(comm) ? LONG_BYTES_OVERSUBSCRIBED : LONG_BYTES;

	return mpi_coll_divisible(count, op, comm) &&
	       count >= (least + type->size - 1) / type->size;
}

struct mpi_fold mpi_fold_of(const struct mpi_comm *comm)
{
	struct mpi_fold f = { .power = 1 };

	while (f.power <= comm->size / 2)
		f.power *= 2;
	f.rest = comm->size - f.power;
	if (comm->rank >= 2 * f.rest)
		f.rank = comm->rank - f.rest;
	else
		f.rank = comm->rank & 1 ? comm->rank / 2 : -1;
	return f;
}

void mpi_fold_in(struct mpi_work *w, const struct mpi_fold *f)
{
	struct mpi_comm *comm = w->comm;

	if (comm->rank >= 2 * f->rest)
		return;
	if (f->rank < 0) {
		mpi_schedule_send(w->schedule, w->mine, w->count, w->type, comm->rank + 1, comm);
		mpi_schedule_wait(w->schedule);
		return;
	}
	mpi_schedule_recv(w->schedule, w->theirs, w->count, w->type, comm->rank - 1, comm);
	mpi_schedule_wait(w->schedule);
	mpi_schedule_apply(w->schedule, w->op, w->theirs, w->mine, w->count, w->type);
}

void mpi_fold_out(struct mpi_work *w, const struct mpi_fold *f)
{
	struct mpi_comm *comm = w->comm;

	if (comm->rank >= 2 * f->rest)
		return;
	if (f->rank < 0)
		mpi_schedule_recv(w->schedule, w->mine, w->count, w->type, comm->rank + 1, comm);
	else
		mpi_schedule_send(w->schedule, w->mine, w->count, w->type, comm->rank - 1, comm);
	mpi_schedule_wait(w->schedule);
}

void mpi_halving(struct mpi_work *w, const struct mpi_fold *f)
{
	int begin = 0;

	for (int bit = f->power / 2; bit > 0; bit /= 2) {
		int partner = mpi_fold_worker(f, f->rank ^ bit), middle = begin + bit;
		bool upper = f->rank & bit;
		int give = upper ? begin : middle, keep = upper ? middle : begin;
		MPI_Count give_at = mpi_part(w, f, give), keep_at = mpi_part(w, f, keep);
		MPI_Count give_count = mpi_part(w, f, give + bit) - give_at;
		MPI_Count keep_count = mpi_part(w, f, keep + bit) - keep_at;
		char *in = mpi_element(w, w->theirs, keep_at);

		mpi_schedule_sendrecv(w->schedule, mpi_element(w, w->mine, give_at), give_count,
				      w->type, partner, in, keep_count, w->type, partner, w->comm);
		mpi_schedule_apply(w->schedule, w->op, in, mpi_element(w, w->mine, keep_at),
				   keep_count, w->type);
		begin = keep;
	}
}
