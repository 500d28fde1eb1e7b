/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Scan and MPI_Exscan. Data go upwards only, so that lower ranks need not wait for others:
 * through shared memory, or from each rank to the one 1, 2, 4, ... ranks on, log2 P rounds, or
 * where processors are short from rank to rank, P - 1 messages, of which some go piece by piece.
 * All keep the order of ranks.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll_plans.h"
#include "mpi_shim/core/error.h"

/* From rank to rank in short messages, so that ranks calculate with one piece each. What is more
 * than a few of them is moved faster as one long message. */
#define SEGMENT_BYTES (32 << 10)
#define SEGMENTS      4

struct scan {
	struct mpi_schedule *schedule;
	const char *own;
	char *result;
	bool exclusive;
	MPI_Count count;
	struct mpi_type *type;
	struct mpi_op *op;
	struct mpi_comm *comm;
};

static void copy_vector(const struct scan *s, const char *from, char *to)
{
	if (from != to)
		mpi_schedule_copy(s->schedule, from, s->count, s->type, to, s->count, s->type);
}

static void apply(const struct scan *s, const char *in, char *inout)
{
	mpi_schedule_apply(s->schedule, s->op, in, inout, s->count, s->type);
}

/* NULL: there is no memory. */
static char *room_for_vector(const struct scan *s)
{
	return mpi_schedule_typed(s->schedule, s->count, s->type);
}

/* Whether the rank makes a sum of what comes and its own. */
static bool sums_up(const struct scan *s)
{
	const bool last = s->comm->rank + 1 == s->comm->size;

	return s->comm->rank > 0 && !(s->exclusive && last);
}

/* Each rank hands on what the next one needs; `other` is room for what it needs for that and is
 * no result of its own. */
static void hand_on(const struct scan *s, char *other)
{
	const int rank = s->comm->rank;
	const bool last = rank + 1 == s->comm->size, sums = sums_up(s);
	/* of the lower ranks, and of them and this one: one of the two is the result */
	char *in = s->exclusive ? s->result : other, *sum = s->exclusive ? other : s->result;

	if (sums)
		copy_vector(s, s->own, sum);
	if (rank > 0)
		mpi_schedule_recv(s->schedule, in, s->count, s->type, rank - 1, s->comm);
	/* for what the piece before has sent, too: nobody runs far ahead */
	mpi_schedule_wait(s->schedule);
	if (sums)
		apply(s, in, sum);
	if (!last)
		mpi_schedule_send(s->schedule, rank ? sum : s->own, s->count, s->type, rank + 1,
				  s->comm);
	if (rank == 0 && !s->exclusive)
		copy_vector(s, s->own, s->result);
}

/* A buffer's piece; it may be at no address where nothing is to be written. */
static char *segment_at(const struct scan *s, const char *buf, MPI_Count at)
{
	return (char *)((uintptr_t)buf + (uintptr_t)(at * s->type->extent));
}

static int chain(const struct scan *s)
{
	char *other = sums_up(s) ? room_for_vector(s) : NULL;
	struct scan segment = *s;

	if (sums_up(s) && !other)
		return MPI_ERR_NO_MEM;
	/* of one that does not block each piece would have to wait for a call */
	if (s->schedule->now && s->op->predefined &&
	    mpi_coll_bytes(s->count, s->type) <= SEGMENTS * SEGMENT_BYTES)
		segment.count = SEGMENT_BYTES / s->type->size;
	for (MPI_Count at = 0; at < s->count; at += segment.count) {
		if (segment.count > s->count - at)
			segment.count = s->count - at;
		segment.own = segment_at(s, s->own, at);
		segment.result = segment_at(s, s->result, at);
		hand_on(&segment, segment_at(s, other, at));
	}
	return MPI_SUCCESS;
}

/* Before a round `sum` is of this rank and of all that are less than `distance` below. */
static int scan_by_doubling(const struct scan *s)
{
	const int rank = s->comm->rank, n = s->comm->size;
	char *in = room_for_vector(s), *sum = s->exclusive ? room_for_vector(s) : s->result;

	if (!in || (s->exclusive && !sum))
		return MPI_ERR_NO_MEM;
	copy_vector(s, s->own, sum);
	for (int distance = 1; distance < n; distance *= 2) {
		if (rank >= distance)
			mpi_schedule_recv(s->schedule, in, s->count, s->type, rank - distance,
					  s->comm);
		if (rank + distance < n)
			mpi_schedule_send(s->schedule, sum, s->count, s->type, rank + distance,
					  s->comm);
		mpi_schedule_wait(s->schedule);
		if (rank < distance)
			continue;
		if (s->exclusive && distance == 1)
			copy_vector(s, in, s->result);
		else if (s->exclusive)
			apply(s, in, s->result);
		if (!s->exclusive || rank + 2 * distance < n)
			apply(s, in, sum);
	}
	return MPI_SUCCESS;
}

static int scan(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
		struct mpi_type *type, struct mpi_op *op, struct mpi_comm *comm, bool exclusive)
{
	struct scan s = { .schedule = p,
			  .own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf,
			  .result = recvbuf,
			  .exclusive = exclusive,
			  .count = count,
			  .type = type,
			  .op = op,
			  .comm = comm };
	struct mpi_shmcoll *shmcoll;

	if (count == 0)
		return MPI_SUCCESS;
	shmcoll = mpi_coll_bytes(count, type) <= MPI_SHMCOLL_BYTES
			  ? mpi_shmcoll_for_op(p, MPI_COLL_SCAN_SHM, comm, count, type, op,
					       MPI_SHMCOLL_BYTES, 0)
			  : NULL;
	if (shmcoll)
		return mpi_shmcoll_scan(shmcoll, s.own, recvbuf, count, type, op, exclusive);
	if (mpi_coll_choose(MPI_COLL_BIT(SCAN, LINEAR) | MPI_COLL_BIT(SCAN, DOUBLING),
			    mpi_coll_oversubscribed()
				    ? MPI_COLL_SCAN_LINEAR
				    : MPI_COLL_SCAN_DOUBLING) == MPI_COLL_SCAN_LINEAR)
		return chain(&s);
	return scan_by_doubling(&s);
}

static int check_scan(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *type,
		      struct mpi_op *op, struct mpi_comm *comm, bool result)
{
	int rc = mpi_coll_refuse_inter(comm);

	if (!rc && (result || sendbuf == MPI_IN_PLACE))
		rc = mpi_coll_check(recvbuf, count, type, "recvbuf");
	if (!rc && sendbuf != MPI_IN_PLACE) {
		rc = mpi_coll_check(sendbuf, count, type, "sendbuf");
		if (!rc && result)
			rc = mpi_coll_check_alias(sendbuf, count, type, recvbuf, count, type);
	}
	return rc ? rc : mpi_op_check(op, type);
}

int mpi_scan_schedule(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
		      struct mpi_type *datatype, struct mpi_op *op, struct mpi_comm *comm)
{
	int rc = check_scan(sendbuf, recvbuf, count, datatype, op, comm, true);

	if (rc)
		return rc;
	mpi_calls_tell(p, comm, MPI_CALL_SCAN, MPI_CALL_ANY_ROOT, op,
		       mpi_coll_bytes(count, datatype));
	return scan(p, sendbuf, recvbuf, count, datatype, op, comm, false);
}

int mpi_exscan_schedule(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
			struct mpi_type *datatype, struct mpi_op *op, struct mpi_comm *comm)
{
	/* there is no result on rank 0 */
	int rc = check_scan(sendbuf, recvbuf, count, datatype, op, comm, comm->rank > 0);

	if (rc)
		return rc;
	mpi_calls_tell(p, comm, MPI_CALL_EXSCAN, MPI_CALL_ANY_ROOT, op,
		       mpi_coll_bytes(count, datatype));
	return scan(p, sendbuf, recvbuf, count, datatype, op, comm, true);
}
