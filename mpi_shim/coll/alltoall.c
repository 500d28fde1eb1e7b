/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw. Inside a node they use shared memory or reads,
 * as shmcoll.h says. With messages, equal short blocks between many ranks use Bruck's
 * algorithm: log2 P messages from each rank instead of P - 1. Other blocks go directly, several
 * at once; long ones between nodes go one pair at a time.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll_schedules.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/node.h"

/* Blocks up to SHORT_BYTES use Bruck's algorithm, with at least BRUCK_RANKS ranks. From
 * LONG_BYTES on they go in pairs between nodes. */
#define SHORT_BYTES                256
#define SHORT_BYTES_OVERSUBSCRIBED (16 << 10)
#define BRUCK_RANKS                8
#define BRUCK_RANKS_OVERSUBSCRIBED 4
#define LONG_BYTES                 (64 << 10)

/* Limit for shared memory, where each rank has a processor: of a block if ranks are few, else
 * of all blocks of a rank. */
#define SHMCOLL_BYTES (128 << 10)

/* ---- Bruck: equal blocks --------------------------------------------------------------------- */

/* Copy the blocks whose number has `bit`, of n blocks, in order: from `blocks` to `out`, or
 * back with `put`. */
static MPI_Count select_blocks(struct mpi_schedule *p, char *blocks, MPI_Count bytes, int n,
			       int bit, char *out, bool put)
{
	MPI_Count at = 0;

	/* a run of `bit` blocks has the bit, the next run does not */
	for (int i = bit; i < n; i += 2 * bit) {
		char *block = blocks + i * bytes;
		MPI_Count run = (i + bit < n ? bit : n - i) * bytes;

		mpi_schedule_copy(p, put ? out + at : block, run, mpi_bytes(),
				  put ? block : out + at, run, mpi_bytes());
		at += run;
	}
	return at;
}

/*
 * Block i is for the rank i above this one. In the round of each bit, the blocks with the bit
 * in their number go up by that many ranks. At the end block i is from the rank i below.
 */
static int alltoall_by_bruck(struct mpi_schedule *p, const struct mpi_vec *send,
			     const struct mpi_vec *recv, struct mpi_comm *comm)
{
	int n = comm->size, rank = comm->rank;
	MPI_Count bytes = mpi_vec_bytes(recv, 0);
	char *data = mpi_schedule_bytes(p, 3 * n * bytes), *out, *in;

	if (!data)
		return MPI_ERR_NO_MEM;
	out = data + n * bytes;
	in = out + n * bytes;
	mpi_schedule_pack(p, send->type, mpi_vec_at(send, rank), send->count * (n - rank), data);
	mpi_schedule_pack(p, send->type, send->buf, send->count * rank, data + bytes * (n - rank));
	for (int bit = 1; bit < n; bit *= 2) {
		MPI_Count some = select_blocks(p, data, bytes, n, bit, out, false);

		mpi_schedule_sendrecv(p, out, some, mpi_bytes(), (rank + bit) % n, in, some,
				      mpi_bytes(), (rank - bit + n) % n, comm);
		select_blocks(p, data, bytes, n, bit, in, true);
	}
	for (int i = 0; i < n; i++)
		mpi_schedule_unpack(p, recv->type, mpi_vec_at(recv, (rank - i + n) % n),
				    recv->count, data + i * bytes);
	return MPI_SUCCESS;
}

/* ---- directly -------------------------------------------------------------------------------- */

static void alltoall_pairwise(struct mpi_schedule *p, const struct mpi_vec *send,
			      const struct mpi_vec *recv, struct mpi_comm *comm)
{
	int n = comm->size, rank = comm->rank;

	for (int i = 1; i < n; i++) {
		int to = (rank + i) % n, from = (rank - i + n) % n;

		mpi_schedule_sendrecv(p, mpi_vec_at(send, to), mpi_vec_count(send, to),
				      mpi_vec_type(send, to), to, mpi_vec_at(recv, from),
				      mpi_vec_count(recv, from), mpi_vec_type(recv, from), from,
				      comm);
	}
}

/* In step i two ranks swap if their numbers sum up to i (mod P). Each pair swaps in one step;
 * each block is sent from a copy. */
static int swap_in_place(struct mpi_schedule *p, const struct mpi_vec *v, struct mpi_comm *comm)
{
	int n = comm->size;
	MPI_Count most = 0;
	char *data;

	for (int i = 0; i < n; i++)
		if (i != comm->rank && mpi_vec_bytes(v, i) > most)
			most = mpi_vec_bytes(v, i);
	data = mpi_schedule_bytes(p, most);
	if (!data)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < n; i++) {
		int peer = (i - comm->rank + n) % n;
		MPI_Count bytes = mpi_vec_bytes(v, peer), count = mpi_vec_count(v, peer);
		struct mpi_type *type = mpi_vec_type(v, peer);

		if (peer == comm->rank || bytes == 0)
			continue;
		mpi_schedule_pack(p, type, mpi_vec_at(v, peer), count, data);
		mpi_schedule_sendrecv(p, data, bytes, mpi_bytes(), peer, mpi_vec_at(v, peer), count,
				      type, peer, comm);
	}
	return MPI_SUCCESS;
}

/* Whether to use Bruck's algorithm for equal blocks. */
static bool by_bruck(MPI_Count bytes, const struct mpi_comm *comm)
{
	if (mpi_coll_oversubscribed(comm))
		return bytes <= SHORT_BYTES_OVERSUBSCRIBED &&
		       comm->size >= BRUCK_RANKS_OVERSUBSCRIBED;
	return bytes <= SHORT_BYTES && comm->size >= BRUCK_RANKS;
}

static enum mpi_algorithm choose_alltoall(const struct mpi_schedule *p, bool equal, bool in_place,
					  MPI_Count bytes, const struct mpi_comm *comm)
{
	uint64_t can = MPI_COLL_BIT(ALLTOALL, PAIRWISE) | MPI_COLL_BIT(ALLTOALL, LINEAR);
	enum mpi_algorithm best = MPI_COLL_ALLTOALL_LINEAR;

	if (in_place)
		return mpi_coll_choose(0, MPI_COLL_ALLTOALL_SWAP);
	if (equal)
		can |= MPI_COLL_BIT(ALLTOALL, BRUCK);
	if (equal && mpi_coll_blocks_directly(p, comm, bytes))
		best = MPI_COLL_ALLTOALL_LINEAR;
	else if (equal && by_bruck(bytes, comm))
		best = MPI_COLL_ALLTOALL_BRUCK;
	else if (equal && bytes >= LONG_BYTES && !mpi_coll_one_node(comm))
		best = MPI_COLL_ALLTOALL_PAIRWISE;
	return mpi_coll_choose(can, best);
}

static MPI_Count alltoall_shmcoll_bytes(const struct mpi_comm *comm)
{
	if (comm->size == 2)
		return INT64_MAX;
	return SHMCOLL_BYTES / (comm->size <= MPI_SHMCOLL_FEW_RANKS ? 1 : comm->size);
}

/* The area for blocks that may differ. It pays only on oversubscribed machines, as all ranks
 * need a barrier before they know the lengths. */
static struct mpi_shmcoll *shmcoll_for_headers(const struct mpi_schedule *p, struct mpi_comm *comm)
{
	if (comm->size > MPI_SHMCOLL_HEADERS ||
	    (!mpi_coll_oversubscribed(comm) && !mpi_coll_wanted(MPI_COLL_ALLTOALL_SHM)))
		return NULL;
	return mpi_shmcoll_for(p, MPI_COLL_ALLTOALL_SHM, comm, 1, 1, 0);
}

static int alltoall(struct mpi_schedule *p, const struct mpi_vec *send, const struct mpi_vec *recv,
		    struct mpi_comm *comm)
{
	bool equal = !recv->counts, in_place = send->buf == MPI_IN_PLACE;
	MPI_Count bytes = equal ? mpi_vec_bytes(recv, 0) : 0;
	struct mpi_shmcoll *shmcoll;
	int rc;

	if (comm->inter) {
		mpi_vec_exchange(p, send, recv, comm);
		return MPI_SUCCESS;
	}
	if (equal && bytes == 0)
		return MPI_SUCCESS;
	if (equal && !in_place) {
		shmcoll = mpi_shmcoll_for_reading(p, MPI_COLL_ALLTOALL_READ, comm, bytes,
						  alltoall_shmcoll_bytes(comm));
		if (shmcoll && mpi_shmcoll_read(p, shmcoll, send, recv, &rc))
			return rc;
	}
	shmcoll = equal ? mpi_shmcoll_for(p, MPI_COLL_ALLTOALL_SHM, comm, bytes,
					  alltoall_shmcoll_bytes(comm), 0)
			: shmcoll_for_headers(p, comm);
	if (shmcoll && equal)
		return mpi_shmcoll_alltoall(shmcoll, in_place ? recv : send, recv);
	if (shmcoll && mpi_shmcoll_alltoallv(shmcoll, in_place ? recv : send, recv, &rc)) {
		if (!in_place)
			mpi_vec_copy_own(p, send, recv, comm->rank);
		return rc;
	}
	if (shmcoll) /* it was counted, but another algorithm is used */
		mpi_coll_counts[MPI_COLL_ALLTOALL_SHM]--;
	switch (choose_alltoall(p, equal, in_place, bytes, comm)) {
	case MPI_COLL_ALLTOALL_SWAP:
		return swap_in_place(p, recv, comm);
	case MPI_COLL_ALLTOALL_BRUCK:
		return alltoall_by_bruck(p, send, recv, comm);
	case MPI_COLL_ALLTOALL_PAIRWISE:
		mpi_vec_copy_own(p, send, recv, comm->rank);
		alltoall_pairwise(p, send, recv, comm);
		return MPI_SUCCESS;
	default:
		mpi_vec_copy_own(p, send, recv, comm->rank);
		mpi_vec_exchange(p, send, recv, comm);
		return MPI_SUCCESS;
	}
}

/* ---- entry ----------------------------------------------------------------------------------- */

/* Advertise the call. The length of equal blocks is the one that a rank sends, even if it
 * expects another one: the others receive the former. */
static void announce_alltoall(struct mpi_schedule *p, const struct mpi_vec *send,
			      const struct mpi_vec *recv, struct mpi_comm *comm)
{
	if (recv->counts)
		mpi_calls_announce(p, comm, recv->types ? MPI_CALL_ALLTOALLW : MPI_CALL_ALLTOALLV,
				   MPI_CALL_ANY_ROOT, NULL, MPI_CALL_ANY_BYTES);
	else
		mpi_calls_announce(p, comm, MPI_CALL_ALLTOALL, MPI_CALL_ANY_ROOT, NULL,
				   mpi_vec_bytes(send->buf == MPI_IN_PLACE ? recv : send, 0));
}

static int checked(struct mpi_schedule *p, const struct mpi_vec *send, const struct mpi_vec *recv,
		   struct mpi_comm *comm)
{
	int n = comm->inter ? comm->remote_size : comm->size;
	int rc = mpi_vec_check(recv, n, "recvbuf");

	if (!rc && (comm->inter || send->buf != MPI_IN_PLACE)) {
		rc = mpi_vec_check(send, n, "sendbuf");
		/* for equal blocks the first is enough */
		for (int i = 0; i < (recv->counts ? n : 1) && !rc; i++)
			rc = mpi_coll_check_alias(mpi_vec_at(send, i), mpi_vec_count(send, i),
						  mpi_vec_type(send, i), mpi_vec_at(recv, i),
						  mpi_vec_count(recv, i), mpi_vec_type(recv, i));
	}
	if (rc)
		return rc;
	announce_alltoall(p, send, recv, comm);
	return alltoall(p, send, recv, comm);
}

int mpi_alltoall_schedule(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			  struct mpi_type *sendtype, void *recvbuf, MPI_Count recvcount,
			  struct mpi_type *recvtype, struct mpi_comm *comm)
{
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.count = sendcount,
				.type = sendtype };
	struct mpi_vec recv = { .buf = recvbuf, .count = recvcount, .type = recvtype };

	return checked(p, &send, &recv, comm);
}

int mpi_alltoallv_schedule(struct mpi_schedule *p, const void *sendbuf, const MPI_Count *sendcounts,
			   const MPI_Aint *sdispls, struct mpi_type *sendtype, void *recvbuf,
			   const MPI_Count *recvcounts, const MPI_Aint *rdispls,
			   struct mpi_type *recvtype, struct mpi_comm *comm)
{
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.counts = sendcounts,
				.displs = sdispls,
				.type = sendtype };
	struct mpi_vec recv = {
		.buf = recvbuf, .counts = recvcounts, .displs = rdispls, .type = recvtype
	};

	return checked(p, &send, &recv, comm);
}

int mpi_alltoallw_schedule(struct mpi_schedule *p, const void *sendbuf, const MPI_Count *sendcounts,
			   const MPI_Aint *sdispls, struct mpi_type *const *sendtypes,
			   void *recvbuf, const MPI_Count *recvcounts, const MPI_Aint *rdispls,
			   struct mpi_type *const *recvtypes, struct mpi_comm *comm)
{
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.counts = sendcounts,
				.displs = sdispls,
				.types = sendtypes };
	struct mpi_vec recv = {
		.buf = recvbuf, .counts = recvcounts, .displs = rdispls, .types = recvtypes
	};

	if (!recvtypes || (!sendtypes && (comm->inter || sendbuf != MPI_IN_PLACE)))
		return mpi_fail(MPI_ERR_ARG, "an array of datatypes is NULL");
	return checked(p, &send, &recv, comm);
}
