/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Neighbourhood collectives: each rank exchanges blocks directly with its neighbours in the
 * communicator's topology, with all at once.
 *
 * In a Cartesian topology the neighbours are, for each dimension, the previous and the next
 * process. Data sent to the previous process arrive there from its next one. With one or two
 * processes in a periodic dimension both are the same process. Then the order in which blocks
 * are received has to tell them apart.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll_schedules.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/topology.h"

struct neighbors {
	int in, out;
	const int *source, *dest;
	int crossed; /* block i is received as number i ^ crossed */
};

static int of_cart(struct mpi_schedule *p, struct mpi_comm *comm, struct neighbors *n)
{
	int dims = comm->topology->cart.ndims, rc = MPI_SUCCESS;
	int *rank = (int *)(void *)mpi_schedule_bytes(p, 2 * (MPI_Count)sizeof(int) * dims);

	if (!rank || p->failed)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < dims && !rc; i++)
		rc = mpi_cart_shift(comm, i, 1, &rank[2 * i], &rank[2 * i + 1]);
	*n = (struct neighbors){ 2 * dims, 2 * dims, rank, rank, 1 };
	return rc;
}

static int of_graph(const struct mpi_comm *comm, struct neighbors *n)
{
	const struct mpi_topology *t = comm->topology;
	int begin = comm->rank ? t->graph.index[comm->rank - 1] : 0;
	int degree = t->graph.index[comm->rank] - begin;

	*n = (struct neighbors){ degree, degree, t->graph.edge + begin, t->graph.edge + begin, 0 };
	return MPI_SUCCESS;
}

static int find_neighbors(struct mpi_schedule *p, struct mpi_comm *comm, struct neighbors *n)
{
	const struct mpi_topology *t = comm->topology;

	if (!t)
		return mpi_fail(MPI_ERR_TOPOLOGY, "the communicator has no topology");
	if (t->kind == MPI_CART)
		return of_cart(p, comm, n);
	if (t->kind == MPI_GRAPH)
		return of_graph(comm, n);
	*n = (struct neighbors){ t->dist.in, t->dist.out, t->dist.source, t->dist.dest, 0 };
	return MPI_SUCCESS;
}

/* Send block i of `send` to destination i, and receive block i of `recv` from source i. */
static int exchange_with_neighbors(struct mpi_schedule *p, enum mpi_call_kind kind,
				   const struct mpi_vec *send, const struct mpi_vec *recv,
				   struct mpi_comm *comm)
{
	struct neighbors n;
	int rc = find_neighbors(p, comm, &n);

	if (!rc)
		rc = mpi_vec_check(recv, n.in, "recvbuf");
	if (!rc)
		rc = mpi_vec_check(send, n.out, "sendbuf");
	if (rc)
		return rc;
	mpi_calls_announce(p, comm, kind, MPI_CALL_ANY_ROOT, NULL, MPI_CALL_ANY_BYTES);
	for (int j = 0; j < n.in; j++) {
		int i = j ^ n.crossed;

		if (n.source[i] != MPI_PROC_NULL)
			mpi_schedule_recv(p, mpi_vec_at(recv, i), mpi_vec_count(recv, i),
					  mpi_vec_type(recv, i), n.source[i], comm);
	}
	for (int i = 0; i < n.out; i++)
		if (n.dest[i] != MPI_PROC_NULL)
			mpi_schedule_send(p, mpi_vec_at(send, i), mpi_vec_count(send, i),
					  mpi_vec_type(send, i), n.dest[i], comm);
	return MPI_SUCCESS;
}

static struct mpi_vec same_block(const void *buf, MPI_Count count, struct mpi_type *type)
{
	return (struct mpi_vec){
		.buf = (char *)(uintptr_t)buf, .count = count, .type = type, .same = true
	};
}

int mpi_neighbor_allgather_schedule(struct mpi_schedule *p, const void *sendbuf,
				    MPI_Count sendcount, struct mpi_type *sendtype, void *recvbuf,
				    MPI_Count recvcount, struct mpi_type *recvtype,
				    struct mpi_comm *comm)
{
	struct mpi_vec send = same_block(sendbuf, sendcount, sendtype);
	struct mpi_vec recv = { .buf = recvbuf, .count = recvcount, .type = recvtype };

	return exchange_with_neighbors(p, MPI_CALL_NEIGHBOR_ALLGATHER, &send, &recv, comm);
}

int mpi_neighbor_allgatherv_schedule(struct mpi_schedule *p, const void *sendbuf,
				     MPI_Count sendcount, struct mpi_type *sendtype, void *recvbuf,
				     const MPI_Count *recvcounts, const MPI_Aint *displs,
				     struct mpi_type *recvtype, struct mpi_comm *comm)
{
	static const MPI_Count none[1];
	struct mpi_vec send = same_block(sendbuf, sendcount, sendtype);
	struct mpi_vec recv = { .buf = recvbuf,
				.counts = recvcounts ? recvcounts : none,
				.displs = displs,
				.type = recvtype };

	return exchange_with_neighbors(p, MPI_CALL_NEIGHBOR_ALLGATHERV, &send, &recv, comm);
}

int mpi_neighbor_alltoall_schedule(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
				   struct mpi_type *sendtype, void *recvbuf, MPI_Count recvcount,
				   struct mpi_type *recvtype, struct mpi_comm *comm)
{
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.count = sendcount,
				.type = sendtype };
	struct mpi_vec recv = { .buf = recvbuf, .count = recvcount, .type = recvtype };

	return exchange_with_neighbors(p, MPI_CALL_NEIGHBOR_ALLTOALL, &send, &recv, comm);
}

int mpi_neighbor_alltoallv_schedule(struct mpi_schedule *p, const void *sendbuf,
				    const MPI_Count *sendcounts, const MPI_Aint *sdispls,
				    struct mpi_type *sendtype, void *recvbuf,
				    const MPI_Count *recvcounts, const MPI_Aint *rdispls,
				    struct mpi_type *recvtype, struct mpi_comm *comm)
{
	static const MPI_Count none[1];
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.counts = sendcounts ? sendcounts : none,
				.displs = sdispls,
				.type = sendtype };
	struct mpi_vec recv = { .buf = recvbuf,
				.counts = recvcounts ? recvcounts : none,
				.displs = rdispls,
				.type = recvtype };

	return exchange_with_neighbors(p, MPI_CALL_NEIGHBOR_ALLTOALLV, &send, &recv, comm);
}

int mpi_neighbor_alltoallw_schedule(struct mpi_schedule *p, const void *sendbuf,
				    const MPI_Count *sendcounts, const MPI_Aint *sdispls,
				    struct mpi_type *const *sendtypes, void *recvbuf,
				    const MPI_Count *recvcounts, const MPI_Aint *rdispls,
				    struct mpi_type *const *recvtypes, struct mpi_comm *comm)
{
	static struct mpi_type *const none[1];
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.counts = sendcounts,
				.displs = sdispls,
				.types = sendtypes ? sendtypes : none };
	struct mpi_vec recv = { .buf = recvbuf,
				.counts = recvcounts,
				.displs = rdispls,
				.types = recvtypes ? recvtypes : none };

	return exchange_with_neighbors(p, MPI_CALL_NEIGHBOR_ALLTOALLW, &send, &recv, comm);
}
