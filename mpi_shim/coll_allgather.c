/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Allgather and MPI_Allgatherv. Short blocks: recursive doubling if the number of ranks is a power of two,
 * else Bruck's algorithm; where processors are short, to rank 0 and down a tree. Long blocks go round
 * a ring.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"

/* Of all blocks together: from here on a ring. */
#define RING_BYTES          (128 << 10)
#define RING_BYTES_DOUBLING (512 << 10)
#define RING_BYTES_CROWDED  (16 << 20)

/* Neighbours in a ring; every block is passed on once. */
static int ring(const struct mpi_vec *v, struct mpi_comm *comm)
{
	int n = comm->size, rank = comm->rank, rc = MPI_SUCCESS;
	int right = (rank + 1) % n, left = (rank + n - 1) % n;

	for (int i = 0; i < n - 1; i++) {
		int give = (rank - i + n) % n, take = (rank - i - 1 + n) % n;

		rc = mpi_first(rc, mpi_coll_sendrecv(mpi_vec_at(v, give), mpi_vec_count(v, give),
						     v->type, right, mpi_vec_at(v, take),
						     mpi_vec_count(v, take), v->type, left,
						     MPI_TAG_ALLGATHER, comm));
	}
	return rc;
}

/* Equal blocks, a power of two of them. */
static int doubling(const struct mpi_vec *v, struct mpi_comm *comm)
{
	int rc = MPI_SUCCESS;

	for (int bit = 1; bit < comm->size; bit *= 2) {
		int partner = comm->rank ^ bit;
		int have = comm->rank & -bit, want = have ^ bit;

		rc = mpi_first(rc, mpi_coll_sendrecv(mpi_vec_at(v, have), v->count * bit, v->type,
						     partner, mpi_vec_at(v, want), v->count * bit,
						     v->type, partner, MPI_TAG_ALLGATHER, comm));
	}
	return rc;
}

/* Equal blocks; in `data` the own one is the first, and those of the ranks above follow. */
static int bruck(const struct mpi_vec *v, struct mpi_comm *comm)
{
	int n = comm->size, rank = comm->rank, rc = MPI_SUCCESS;
	MPI_Count bytes = mpi_vec_bytes(v, rank);
	struct mpi_tmp tmp;
	char *data = mpi_tmp_bytes(&tmp, n * bytes);

	if (!data)
		return MPI_ERR_NO_MEM;
	mpi_type_pack_bytes(v->type, mpi_vec_at(v, rank), v->count, 0, data, (size_t)bytes);
	for (int step = 1; step < n; step *= 2) {
		MPI_Count some = (step < n - step ? step : n - step) * bytes;

		rc = mpi_first(rc, mpi_coll_sendrecv(data, some, mpi_bytes(), (rank - step + n) % n,
						     data + step * bytes, some, mpi_bytes(),
						     (rank + step) % n, MPI_TAG_ALLGATHER, comm));
	}
	mpi_type_unpack_bytes(v->type, mpi_vec_at(v, rank), v->count * (n - rank), 0, data,
			      (size_t)(bytes * (n - rank)));
	mpi_type_unpack_bytes(v->type, v->buf, v->count * rank, 0, data + bytes * (n - rank),
			      (size_t)(bytes * rank));
	mpi_tmp_free(&tmp);
	return rc;
}

/* All blocks as bytes one after the other. */
static void pack_all(const struct mpi_vec *v, char *data, int n)
{
	for (int i = 0; i < n; i++) {
		mpi_type_pack_bytes(v->type, mpi_vec_at(v, i), mpi_vec_count(v, i), 0, data,
				    (size_t)mpi_vec_bytes(v, i));
		data += mpi_vec_bytes(v, i);
	}
}

static void unpack_all(const struct mpi_vec *v, const char *data, int n, int except)
{
	for (int i = 0; i < n; i++) {
		if (i != except)
			mpi_type_unpack_bytes(v->type, mpi_vec_at(v, i), mpi_vec_count(v, i), 0,
					      data, (size_t)mpi_vec_bytes(v, i));
		data += mpi_vec_bytes(v, i);
	}
}

int mpi_vec_bcast(const struct mpi_vec *v, int n, int except, bool have, struct mpi_comm *comm)
{
	struct mpi_tmp tmp;
	MPI_Count bytes = 0;
	char *data;
	int rc;

	if (!v->counts && v->type->dense && v->type->extent == v->type->size)
		return mpi_intra_bcast(v->buf, n * v->count, v->type, 0, comm);
	for (int i = 0; i < n; i++)
		bytes += mpi_vec_bytes(v, i);
	data = mpi_tmp_bytes(&tmp, bytes);
	if (!data)
		return MPI_ERR_NO_MEM;
	if (have)
		pack_all(v, data, n);
	rc = mpi_intra_bcast(data, bytes, mpi_bytes(), 0, comm);
	if (!have)
		unpack_all(v, data, n, except);
	mpi_tmp_free(&tmp);
	return rc;
}

/* To rank 0 and down the tree: 2(P - 1) messages. The own block is in `v`. */
static int through_root(const struct mpi_vec *v, struct mpi_comm *comm)
{
	const void *from = comm->rank == 0 ? MPI_IN_PLACE : mpi_vec_at(v, comm->rank);
	int rc = mpi_intra_gatherv(from, mpi_vec_count(v, comm->rank), v->type, v, 0, comm);

	return mpi_first(rc, mpi_vec_bcast(v, comm->size, comm->rank, comm->rank == 0, comm));
}

int mpi_intra_allgather(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
			const struct mpi_vec *recv, struct mpi_comm *comm)
{
	int n = comm->size, rc = MPI_SUCCESS;
	MPI_Count bytes = 0;

	for (int i = 0; recv->counts && i < n; i++)
		bytes += mpi_vec_bytes(recv, i);
	if (!recv->counts)
		bytes = n * mpi_vec_bytes(recv, 0);
	if (bytes == 0)
		return MPI_SUCCESS;
	if (sendbuf != MPI_IN_PLACE)
		rc = mpi_type_copy(sendbuf, sendcount, sendtype, mpi_vec_at(recv, comm->rank),
				   mpi_vec_count(recv, comm->rank), recv->type);
	if (n == 1)
		return rc;
	if (mpi_coll_crowded() && n > 2 && bytes < RING_BYTES_CROWDED)
		return mpi_first(rc, through_root(recv, comm));
	if (recv->counts)
		return mpi_first(rc, bytes < RING_BYTES && n > 2 ? through_root(recv, comm)
								 : ring(recv, comm));
	if (!(n & (n - 1)) && bytes < RING_BYTES_DOUBLING)
		return mpi_first(rc, doubling(recv, comm));
	return mpi_first(rc, bytes < RING_BYTES ? bruck(recv, comm) : ring(recv, comm));
}

static int allgather(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
		     const struct mpi_vec *recv, struct mpi_comm *comm)
{
	bool in_place = sendbuf == MPI_IN_PLACE && !comm->inter;
	int rc = mpi_vec_check(recv, comm->inter ? comm->remote_size : comm->size, "recvbuf");

	if (!rc && !in_place)
		rc = mpi_coll_check(sendbuf, sendcount, sendtype, "sendbuf");
	if (rc)
		return rc;
	if (comm->inter)
		return mpi_inter_allgatherv(sendbuf, sendcount, sendtype, recv, comm);
	if (!in_place)
		rc = mpi_coll_check_alias(sendbuf, sendcount, sendtype,
					  mpi_vec_at(recv, comm->rank),
					  mpi_vec_count(recv, comm->rank), recv->type);
	return rc ? rc : mpi_intra_allgather(sendbuf, sendcount, sendtype, recv, comm);
}

int mpi_allgather(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
		  void *recvbuf, MPI_Count recvcount, struct mpi_type *recvtype,
		  struct mpi_comm *comm)
{
	struct mpi_vec recv = { .buf = recvbuf, .count = recvcount, .type = recvtype };

	return allgather(sendbuf, sendcount, sendtype, &recv, comm);
}

int mpi_allgatherv(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
		   void *recvbuf, const MPI_Count *recvcounts, const MPI_Aint *displs,
		   struct mpi_type *recvtype, struct mpi_comm *comm)
{
	struct mpi_vec recv = {
		.buf = recvbuf, .counts = recvcounts, .displs = displs, .type = recvtype
	};

	return allgather(sendbuf, sendcount, sendtype, &recv, comm);
}
