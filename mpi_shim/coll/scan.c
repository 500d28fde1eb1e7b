/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Scan and MPI_Exscan. Data go upwards only, so lower ranks need not wait for others. All
 * algorithms keep the order of ranks:
 *
 *   - through shared memory;
 *   - from each rank to the one 1, 2, 4, ... ranks above, log2 P rounds;
 *   - from rank to rank, P - 1 messages, on oversubscribed machines; some go in segments.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll_schedules.h"
#include "mpi_shim/core/error.h"

/* Segments in the chain from rank to rank. They are short messages, so that ranks compute at
 * the same time, each with one segment. A vector of more than SEGMENTS of them goes faster as
 * one long message. */
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

/* NULL: out of memory. */
static char *room_for_vector(const struct scan *s)
{
	return mpi_schedule_typed(s->schedule, s->count, s->type);
}

/* Whether the rank combines what it receives with its own vector. */
static bool sums_up(const struct scan *s)
{
	const bool last = s->comm->rank + 1 == s->comm->size;

	return s->comm->rank > 0 && !(s->exclusive && last);
}

/* Send the next rank what it needs. `other` is memory for a vector that this takes but that is
 * not the result of this rank. */
static void hand_on(const struct scan *s, char *other)
{
	const int rank = s->comm->rank;
	const bool last = rank + 1 == s->comm->size, sums = sums_up(s);
	/* the sum of the lower ranks, and that with this one; one of the two is the result */
	char *in = s->exclusive ? s->result : other, *sum = s->exclusive ? other : s->result;

	if (sums)
		copy_vector(s, s->own, sum);
	if (rank > 0)
		mpi_schedule_recv(s->schedule, in, s->count, s->type, rank - 1, s->comm);
	/* wait also for what the segment before has sent: so no rank runs far ahead */
	mpi_schedule_wait(s->schedule);
	if (sums)
		apply(s, in, sum);
	if (!last)
		mpi_schedule_send(s->schedule, rank ? sum : s->own, s->count, s->type, rank + 1,
				  s->comm);
	if (rank == 0 && !s->exclusive)
		copy_vector(s, s->own, s->result);
}

/* A segment of a buffer, whose address need not be valid if nothing is written. */
static char *scan_segment_at(const struct scan *s, const char *buf, MPI_Count at)
{
	return (char *)((uintptr_t)buf + (uintptr_t)(at * s->type->extent));
}

static int chain(const struct scan *s)
{
	char *other = sums_up(s) ? room_for_vector(s) : NULL;
	struct scan segment = *s;

	if (sums_up(s) && !other)
		return MPI_ERR_NO_MEM;
	/* without blocking, each segment would have to wait for a call */
	if (s->schedule->now && s->op->predefined &&
	    mpi_coll_bytes(s->count, s->type) <= SEGMENTS * SEGMENT_BYTES)
		segment.count = SEGMENT_BYTES / s->type->size;
	for (MPI_Count at = 0; at < s->count; at += segment.count) {
		if (segment.count > s->count - at)
			segment.count = s->count - at;
		segment.own = scan_segment_at(s, s->own, at);
		segment.result = scan_segment_at(s, s->result, at);
		hand_on(&segment, scan_segment_at(s, other, at));
	}
	return MPI_SUCCESS;
}

/* Before a round `sum` covers this rank and the lower ones nearer than `distance`. */
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
			    mpi_coll_oversubscribed(comm)
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
	mpi_calls_announce(p, comm, MPI_CALL_SCAN, MPI_CALL_ANY_ROOT, op,
			   mpi_coll_bytes(count, datatype));
	return scan(p, sendbuf, recvbuf, count, datatype, op, comm, false);
}

int mpi_exscan_schedule(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
			struct mpi_type *datatype, struct mpi_op *op, struct mpi_comm *comm)
{
	/* rank 0 has no result */
	int rc = check_scan(sendbuf, recvbuf, count, datatype, op, comm, comm->rank > 0);

	if (rc)
		return rc;
	mpi_calls_announce(p, comm, MPI_CALL_EXSCAN, MPI_CALL_ANY_ROOT, op,
			   mpi_coll_bytes(count, datatype));
	return scan(p, sendbuf, recvbuf, count, datatype, op, comm, true);
}
