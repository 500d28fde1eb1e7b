/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Allgather and MPI_Allgatherv. Among few ranks, a collective started and ended by separate
 * calls sends each block straight to all ranks. Short blocks use recursive doubling if the
 * number of ranks is a power of two, else Bruck's algorithm. On oversubscribed machines they go
 * to rank 0 and down a tree. Long blocks go round a ring.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll_schedules.h"

/* Bytes of all blocks together from which on they go round a ring. */
#define RING_BYTES                (128 << 10)
#define RING_BYTES_DOUBLING       (512 << 10)
#define RING_BYTES_OVERSUBSCRIBED (16 << 20)

/* Longest block that goes without messages, where each rank has a processor. Few ranks do not
 * wait long for each other, so they use segments for any length. With many ranks, the data that
 * all copy at the same time are in the nearest caches. */
#define SHMCOLL_BYTES      (64 << 10)
#define SHMCOLL_BYTES_MANY (1 << 20)
#define MANY_RANKS         13
/* Longest block on two levels. */
#define NODES_BYTES (64 << 10)

/* Exchange with the neighbours in a ring; every block is forwarded once. */
static void allgather_round_ring(struct mpi_schedule *p, const struct mpi_vec *v,
				 struct mpi_comm *comm)
{
	int n = comm->size, rank = comm->rank;
	int right = (rank + 1) % n, left = (rank + n - 1) % n;

	for (int i = 0; i < n - 1; i++) {
		int give = (rank - i + n) % n, take = (rank - i - 1 + n) % n;

		mpi_schedule_sendrecv(p, mpi_vec_at(v, give), mpi_vec_count(v, give), v->type,
				      right, mpi_vec_at(v, take), mpi_vec_count(v, take), v->type,
				      left, comm);
	}
}

/* Equal blocks; their number is a power of two. */
static void allgather_by_doubling(struct mpi_schedule *p, const struct mpi_vec *v,
				  struct mpi_comm *comm)
{
	for (int bit = 1; bit < comm->size; bit *= 2) {
		int partner = comm->rank ^ bit;
		int have = comm->rank & -bit, want = have ^ bit;

		mpi_schedule_sendrecv(p, mpi_vec_at(v, have), v->count * bit, v->type, partner,
				      mpi_vec_at(v, want), v->count * bit, v->type, partner, comm);
	}
}

/* Equal blocks; in `data` the own block is the first, and those of the ranks above follow. */
static int allgather_by_bruck(struct mpi_schedule *p, const struct mpi_vec *v,
			      struct mpi_comm *comm)
{
	int n = comm->size, rank = comm->rank;
	MPI_Count bytes = mpi_vec_bytes(v, rank);
	char *data = mpi_schedule_bytes(p, n * bytes);

	if (!data)
		return MPI_ERR_NO_MEM;
	mpi_schedule_pack(p, v->type, mpi_vec_at(v, rank), v->count, data);
	for (int step = 1; step < n; step *= 2) {
		MPI_Count some = (step < n - step ? step : n - step) * bytes;

		mpi_schedule_sendrecv(p, data, some, mpi_bytes(), (rank - step + n) % n,
				      data + step * bytes, some, mpi_bytes(), (rank + step) % n,
				      comm);
	}
	mpi_schedule_unpack(p, v->type, mpi_vec_at(v, rank), v->count * (n - rank), data);
	mpi_schedule_unpack(p, v->type, v->buf, v->count * rank, data + bytes * (n - rank));
	return MPI_SUCCESS;
}

/* Pack all blocks as bytes, one after the other. */
static void pack_all(struct mpi_schedule *p, const struct mpi_vec *v, char *data, int n)
{
	for (int i = 0; i < n; i++) {
		mpi_schedule_pack(p, v->type, mpi_vec_at(v, i), mpi_vec_count(v, i), data);
		data += mpi_vec_bytes(v, i);
	}
}

static void unpack_all(struct mpi_schedule *p, const struct mpi_vec *v, const char *data, int n,
		       int except)
{
	for (int i = 0; i < n; i++) {
		if (i != except)
			mpi_schedule_unpack(p, v->type, mpi_vec_at(v, i), mpi_vec_count(v, i),
					    data);
		data += mpi_vec_bytes(v, i);
	}
}

int mpi_vec_bcast(struct mpi_schedule *p, const struct mpi_vec *v, int n, int except, bool have,
		  struct mpi_comm *comm)
{
	MPI_Count bytes = 0;
	char *data;
	int rc;

	if (!v->counts && v->type->dense && v->type->extent == v->type->size)
		return mpi_intra_bcast(p, v->buf, n * v->count, v->type, 0, comm);
	for (int i = 0; i < n; i++)
		bytes += mpi_vec_bytes(v, i);
	data = mpi_schedule_bytes(p, bytes);
	if (!data)
		return MPI_ERR_NO_MEM;
	if (have)
		pack_all(p, v, data, n);
	rc = mpi_intra_bcast(p, data, bytes, mpi_bytes(), 0, comm);
	if (!have)
		unpack_all(p, v, data, n, except);
	return rc;
}

/* Send to rank 0 and down the tree: 2(P - 1) messages. The own block is in `v`. */
static int allgather_through_root(struct mpi_schedule *p, const struct mpi_vec *v,
				  struct mpi_comm *comm)
{
	const void *from = comm->rank == 0 ? MPI_IN_PLACE : mpi_vec_at(v, comm->rank);

	mpi_intra_gatherv(p, from, mpi_vec_count(v, comm->rank), v->type, v, 0, comm);
	return mpi_vec_bcast(p, v, comm->size, comm->rank, comm->rank == 0, comm);
}

static void allgather_linear(struct mpi_schedule *p, const struct mpi_vec *v, struct mpi_comm *comm)
{
	struct mpi_vec mine = { .buf = mpi_vec_at(v, comm->rank),
				.count = mpi_vec_count(v, comm->rank),
				.type = v->type,
				.same = true };

	mpi_vec_exchange(p, &mine, v, comm);
}

static enum mpi_algorithm choose_allgather(const struct mpi_schedule *p, const struct mpi_vec *recv,
					   MPI_Count bytes, const struct mpi_comm *comm)
{
	uint64_t can = MPI_COLL_BIT(ALLGATHER, RING) | MPI_COLL_BIT(ALLGATHER, LINEAR) |
		       MPI_COLL_BIT(ALLGATHER, ROOT);
	bool equal = !recv->counts, power = !(comm->size & (comm->size - 1));
	enum mpi_algorithm best = MPI_COLL_ALLGATHER_RING;

	if (equal)
		can |= MPI_COLL_BIT(ALLGATHER, BRUCK);
	if (equal && power)
		can |= MPI_COLL_BIT(ALLGATHER, DOUBLING);
	if (mpi_coll_blocks_directly(p, comm, bytes / comm->size))
		best = MPI_COLL_ALLGATHER_LINEAR;
	else if (comm->size > 2 &&
		 (mpi_coll_oversubscribed(comm) ? bytes < RING_BYTES_OVERSUBSCRIBED
						: !equal && bytes < RING_BYTES))
		best = MPI_COLL_ALLGATHER_ROOT;
	else if (equal && power && bytes < RING_BYTES_DOUBLING)
		best = MPI_COLL_ALLGATHER_DOUBLING;
	else if (equal && bytes < RING_BYTES)
		best = MPI_COLL_ALLGATHER_BRUCK;
	return mpi_coll_choose(can, best);
}

int mpi_intra_allgather(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			struct mpi_type *sendtype, const struct mpi_vec *recv,
			struct mpi_comm *comm)
{
	int n = comm->size;
	MPI_Count bytes = 0;

	for (int i = 0; recv->counts && i < n; i++)
		bytes += mpi_vec_bytes(recv, i);
	if (!recv->counts)
		bytes = n * mpi_vec_bytes(recv, 0);
	if (bytes == 0)
		return MPI_SUCCESS;
	if (sendbuf != MPI_IN_PLACE)
		mpi_schedule_copy(p, sendbuf, sendcount, sendtype, mpi_vec_at(recv, comm->rank),
				  mpi_vec_count(recv, comm->rank), recv->type);
	if (n == 1)
		return MPI_SUCCESS;
	switch (choose_allgather(p, recv, bytes, comm)) {
	case MPI_COLL_ALLGATHER_LINEAR:
		allgather_linear(p, recv, comm);
		return MPI_SUCCESS;
	case MPI_COLL_ALLGATHER_ROOT:
		return allgather_through_root(p, recv, comm);
	case MPI_COLL_ALLGATHER_BRUCK:
		return allgather_by_bruck(p, recv, comm);
	case MPI_COLL_ALLGATHER_DOUBLING:
		allgather_by_doubling(p, recv, comm);
		return MPI_SUCCESS;
	default:
		allgather_round_ring(p, recv, comm);
		return MPI_SUCCESS;
	}
}

static MPI_Count allgather_shmcoll_bytes(const struct mpi_comm *comm)
{
	if (comm->size <= MPI_SHMCOLL_FEW_RANKS)
		return INT64_MAX;
	return comm->size < MANY_RANKS ? SHMCOLL_BYTES : SHMCOLL_BYTES_MANY;
}

/* False: use messages. */
static bool allgather_by_shmcoll(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
				 struct mpi_type *sendtype, const struct mpi_vec *recv,
				 struct mpi_comm *comm, int *rc)
{
	bool in_place = sendbuf == MPI_IN_PLACE, equal = !recv->counts;
	struct mpi_vec mine = { .buf = in_place ? mpi_vec_at(recv, comm->rank)
						: (char *)(uintptr_t)sendbuf,
				.count = in_place ? mpi_vec_count(recv, comm->rank) : sendcount,
				.type = in_place ? recv->type : sendtype,
				.same = true };
	MPI_Count bytes = mpi_vec_longest(recv, comm->size);
	struct mpi_shmcoll *shmcoll =
		equal ? mpi_shmcoll_for_reading(p, MPI_COLL_ALLGATHER_READ, comm, bytes,
						allgather_shmcoll_bytes(comm))
		      : NULL;

	if (shmcoll && mpi_shmcoll_read(p, shmcoll, &mine, recv, rc))
		return true;
	/* where each rank has a processor, unequal blocks go as messages from the length at
	 * which equal ones are read: a message is copied once */
	shmcoll = mpi_shmcoll_for(p, MPI_COLL_ALLGATHER_SHM, comm, bytes,
				  equal ? allgather_shmcoll_bytes(comm) : MPI_SHMCOLL_READ_BYTES,
				  equal ? NODES_BYTES : 0);
	if (shmcoll && mpi_shmcoll_nodes(shmcoll) > 1)
		*rc = mpi_nodes_allgather(p, shmcoll, mine.buf, mine.count, mine.type, recv);
	else if (shmcoll)
		*rc = mpi_shmcoll_allgather(shmcoll, mine.buf, mine.count, mine.type, recv);
	return shmcoll;
}

/* The length that all ranks must agree on: the bytes of each block, or of all if they differ. A
 * rank's own block counts with the length that it sends, which may not be the one that it
 * expects of itself: the others receive the former. */
static MPI_Count bytes_of_call(MPI_Count sent, const struct mpi_vec *recv,
			       const struct mpi_comm *comm)
{
	MPI_Count all = 0;

	if (!recv->counts)
		return sent;
	for (int i = 0; i < comm->size; i++)
		all += i == comm->rank ? sent : mpi_vec_bytes(recv, i);
	return all;
}

static int allgather(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
		     struct mpi_type *sendtype, const struct mpi_vec *recv, struct mpi_comm *comm)
{
	bool in_place = sendbuf == MPI_IN_PLACE && !comm->inter;
	int rc = mpi_vec_check(recv, comm->inter ? comm->remote_size : comm->size, "recvbuf");

	if (!rc && !in_place)
		rc = mpi_coll_check(sendbuf, sendcount, sendtype, "sendbuf");
	if (rc)
		return rc;
	if (!comm->inter && mpi_coll_in_its_place(sendbuf, sendcount, sendtype, recv, comm->rank))
		sendbuf = MPI_IN_PLACE;
	in_place = sendbuf == MPI_IN_PLACE && !comm->inter;
	if (!comm->inter && !in_place)
		rc = mpi_coll_check_alias(sendbuf, sendcount, sendtype,
					  mpi_vec_at(recv, comm->rank),
					  mpi_vec_count(recv, comm->rank), recv->type);
	if (rc)
		return rc;
	mpi_calls_announce(p, comm, recv->counts ? MPI_CALL_ALLGATHERV : MPI_CALL_ALLGATHER,
			   MPI_CALL_ANY_ROOT, NULL,
			   comm->inter ? MPI_CALL_ANY_BYTES
				       : bytes_of_call(in_place ? mpi_vec_bytes(recv, comm->rank)
								: sendcount * sendtype->size,
						       recv, comm));
	if (comm->inter)
		return mpi_inter_allgatherv(p, sendbuf, sendcount, sendtype, recv, comm);
	if (allgather_by_shmcoll(p, sendbuf, sendcount, sendtype, recv, comm, &rc))
		return rc;
	return mpi_intra_allgather(p, sendbuf, sendcount, sendtype, recv, comm);
}

int mpi_allgather_schedule(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			   struct mpi_type *sendtype, void *recvbuf, MPI_Count recvcount,
			   struct mpi_type *recvtype, struct mpi_comm *comm)
{
	struct mpi_vec recv = { .buf = recvbuf, .count = recvcount, .type = recvtype };

	return allgather(p, sendbuf, sendcount, sendtype, &recv, comm);
}

int mpi_allgatherv_schedule(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			    struct mpi_type *sendtype, void *recvbuf, const MPI_Count *recvcounts,
			    const MPI_Aint *displs, struct mpi_type *recvtype,
			    struct mpi_comm *comm)
{
	struct mpi_vec recv = {
		.buf = recvbuf, .counts = recvcounts, .displs = displs, .type = recvtype
	};

	return allgather(p, sendbuf, sendcount, sendtype, &recv, comm);
}
