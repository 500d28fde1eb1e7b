/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw. Equal short blocks between many ranks: Bruck's algorithm,
 * log2 P messages from each rank instead of P - 1. Others directly, several at once; long ones one
 * pair at a time.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"

/* Blocks up to here by Bruck's algorithm, with at least so many ranks; from there on in pairs. */
#define SHORT_BYTES         256
#define SHORT_BYTES_CROWDED (16 << 10)
#define BRUCK_RANKS         8
#define BRUCK_RANKS_CROWDED 4
#define LONG_BYTES          (64 << 10)

/* ---- Bruck: equal blocks ------------------------------------------------------------------------- */

/* Between `blocks` and `out`: those of the n whose number has `bit`, in order. */
static MPI_Count select_blocks(char *blocks, MPI_Count bytes, int n, int bit, char *out, bool put)
{
	MPI_Count at = 0;

	for (int i = bit; i < n; i++) {
		char *block = blocks + i * bytes;

		if (!(i & bit))
			continue;
		memcpy(put ? block : out + at, put ? out + at : block, (size_t)bytes);
		at += bytes;
	}
	return at;
}

/*
 * Block i is for the rank i after this one. In the round of each bit, the blocks with the bit in their
 * number go that many ranks on; in the end block i has come from the rank i before.
 */
static int bruck(const struct mpi_vec *send, const struct mpi_vec *recv, struct mpi_comm *comm)
{
	int n = comm->size, rank = comm->rank, rc = MPI_SUCCESS;
	MPI_Count bytes = mpi_vec_bytes(recv, 0);
	struct mpi_tmp tmp;
	char *data = mpi_tmp_bytes(&tmp, 3 * n * bytes), *out, *in;

	if (!data)
		return MPI_ERR_NO_MEM;
	out = data + n * bytes;
	in = out + n * bytes;
	mpi_type_pack_bytes(send->type, mpi_vec_at(send, rank), send->count * (n - rank), 0, data,
			    (size_t)(bytes * (n - rank)));
	mpi_type_pack_bytes(send->type, send->buf, send->count * rank, 0, data + bytes * (n - rank),
			    (size_t)(bytes * rank));
	for (int bit = 1; bit < n; bit *= 2) {
		MPI_Count some = select_blocks(data, bytes, n, bit, out, false);

		rc = mpi_first(rc, mpi_coll_sendrecv(out, some, mpi_bytes(), (rank + bit) % n, in,
						     some, mpi_bytes(), (rank - bit + n) % n,
						     MPI_TAG_ALLTOALL, comm));
		select_blocks(data, bytes, n, bit, in, true);
	}
	for (int i = 0; i < n; i++)
		mpi_type_unpack_bytes(recv->type, mpi_vec_at(recv, (rank - i + n) % n), recv->count,
				      0, data + i * bytes, (size_t)bytes);
	mpi_tmp_free(&tmp);
	return rc;
}

/* ---- directly ------------------------------------------------------------------------------------ */

static int copy_own(const struct mpi_vec *send, const struct mpi_vec *recv, int rank)
{
	return mpi_type_copy(mpi_vec_at(send, rank), mpi_vec_count(send, rank),
			     mpi_vec_type(send, rank), mpi_vec_at(recv, rank),
			     mpi_vec_count(recv, rank), mpi_vec_type(recv, rank));
}

static int pairwise(const struct mpi_vec *send, const struct mpi_vec *recv, struct mpi_comm *comm)
{
	int n = comm->size, rank = comm->rank, rc = MPI_SUCCESS;

	for (int i = 1; i < n; i++) {
		int to = (rank + i) % n, from = (rank - i + n) % n;

		rc = mpi_first(
			rc, mpi_coll_sendrecv(mpi_vec_at(send, to), mpi_vec_count(send, to),
					      mpi_vec_type(send, to), to, mpi_vec_at(recv, from),
					      mpi_vec_count(recv, from), mpi_vec_type(recv, from),
					      from, MPI_TAG_ALLTOALL, comm));
	}
	return rc;
}

/* The block with one rank is sent from a copy while the other's takes its place. */
static int swap_block(const struct mpi_vec *v, int peer, struct mpi_comm *comm)
{
	MPI_Count bytes = mpi_vec_bytes(v, peer), count = mpi_vec_count(v, peer);
	struct mpi_type *type = mpi_vec_type(v, peer);
	char *block = mpi_vec_at(v, peer), *data;
	struct mpi_tmp tmp;
	int rc;

	if (bytes == 0)
		return MPI_SUCCESS;
	data = mpi_tmp_bytes(&tmp, bytes);
	if (!data)
		return MPI_ERR_NO_MEM;
	mpi_type_pack_bytes(type, block, count, 0, data, (size_t)bytes);
	rc = mpi_coll_sendrecv(data, bytes, mpi_bytes(), peer, block, count, type, peer,
			       MPI_TAG_ALLTOALL, comm);
	mpi_tmp_free(&tmp);
	return rc;
}

/* In step i those ranks swap whose numbers sum up to i (mod P): each pair in one step. */
static int in_place(const struct mpi_vec *v, struct mpi_comm *comm)
{
	int n = comm->size, rc = MPI_SUCCESS;

	for (int i = 0; i < n; i++) {
		int peer = (i - comm->rank + n) % n;

		if (peer != comm->rank)
			rc = mpi_first(rc, swap_block(v, peer, comm));
	}
	return rc;
}

/* Between equal blocks. */
static bool by_bruck(MPI_Count bytes, const struct mpi_comm *comm)
{
	if (mpi_coll_crowded())
		return bytes <= SHORT_BYTES_CROWDED && comm->size >= BRUCK_RANKS_CROWDED;
	return bytes <= SHORT_BYTES && comm->size >= BRUCK_RANKS;
}

static int alltoall(const struct mpi_vec *send, const struct mpi_vec *recv, struct mpi_comm *comm)
{
	bool equal = !recv->counts;
	MPI_Count bytes = equal ? mpi_vec_bytes(recv, 0) : 0;
	int rc;

	if (comm->inter)
		return mpi_vec_exchange(send, recv, comm, MPI_TAG_ALLTOALL);
	if (equal && bytes == 0)
		return MPI_SUCCESS;
	if (send->buf == MPI_IN_PLACE)
		return in_place(recv, comm);
	if (equal && by_bruck(bytes, comm))
		return bruck(send, recv, comm);
	rc = copy_own(send, recv, comm->rank);
	if (equal && bytes >= LONG_BYTES)
		return mpi_first(rc, pairwise(send, recv, comm));
	return mpi_first(rc, mpi_vec_exchange(send, recv, comm, MPI_TAG_ALLTOALL));
}

/* ---- entry --------------------------------------------------------------------------------------- */

static int checked(const struct mpi_vec *send, const struct mpi_vec *recv, struct mpi_comm *comm)
{
	int n = comm->inter ? comm->remote_size : comm->size;
	int rc = mpi_vec_check(recv, n, "recvbuf");

	if (!rc && (comm->inter || send->buf != MPI_IN_PLACE)) {
		rc = mpi_vec_check(send, n, "sendbuf");
		for (int i = 0; i < n && !rc; i++)
			rc = mpi_coll_check_alias(mpi_vec_at(send, i), mpi_vec_count(send, i),
						  mpi_vec_type(send, i), mpi_vec_at(recv, i),
						  mpi_vec_count(recv, i), mpi_vec_type(recv, i));
	}
	return rc ? rc : alltoall(send, recv, comm);
}

int mpi_alltoall(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype, void *recvbuf,
		 MPI_Count recvcount, struct mpi_type *recvtype, struct mpi_comm *comm)
{
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.count = sendcount,
				.type = sendtype };
	struct mpi_vec recv = { .buf = recvbuf, .count = recvcount, .type = recvtype };

	return checked(&send, &recv, comm);
}

int mpi_alltoallv(const void *sendbuf, const MPI_Count *sendcounts, const MPI_Aint *sdispls,
		  struct mpi_type *sendtype, void *recvbuf, const MPI_Count *recvcounts,
		  const MPI_Aint *rdispls, struct mpi_type *recvtype, struct mpi_comm *comm)
{
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.counts = sendcounts,
				.displs = sdispls,
				.type = sendtype };
	struct mpi_vec recv = {
		.buf = recvbuf, .counts = recvcounts, .displs = rdispls, .type = recvtype
	};

	return checked(&send, &recv, comm);
}

int mpi_alltoallw(const void *sendbuf, const MPI_Count *sendcounts, const MPI_Aint *sdispls,
		  struct mpi_type *const *sendtypes, void *recvbuf, const MPI_Count *recvcounts,
		  const MPI_Aint *rdispls, struct mpi_type *const *recvtypes, struct mpi_comm *comm)
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
	return checked(&send, &recv, comm);
}
