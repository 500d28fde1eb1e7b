/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Bcast by messages. Short messages go down a tree. Long ones are scattered down the tree
 * and gathered round a ring (van de Geijn). Each rank then sends and receives about twice the
 * message, however many ranks there are. Data with gaps are packed once, at the root.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll_schedules.h"

/* From LONG_BYTES on the scatter and the ring pay, with at least LONG_RANKS ranks. */
#define LONG_BYTES (256 << 10)
#define LONG_RANKS 8

/* Longest message in short segments through shared memory, where each rank has a processor.
 * With two ranks only the first segment is short: the other rank begins soon, and then both
 * copy at the same time. */
#define PIPE_BYTES  (128 << 10)
#define FIRST_BYTES (32 << 10)
/* Longest message on two levels. */
#define NODES_BYTES (1 << 20)

/* The rank `relative` positions after the root. */
static int rank_at(const struct mpi_comm *comm, int root, int relative)
{
	return (int)(((long)root + relative) % comm->size);
}

static void bcast_down_tree(struct mpi_schedule *p, char *data, MPI_Count bytes, int root,
			    int branches, struct mpi_comm *comm)
{
	struct mpi_tree t;

	mpi_tree_make(&t, root, branches, comm);
	if (t.parent >= 0) {
		mpi_schedule_recv(p, data, bytes, mpi_bytes(), t.parent, comm);
		mpi_schedule_wait(p);
	}
	/* the child with the most ranks below it first */
	for (int i = t.n - 1; i >= 0; i--)
		mpi_schedule_send(p, data, bytes, mpi_bytes(), t.child[i], comm);
	mpi_schedule_wait(p);
}

/* Where the part of the rank `relative` begins; the last parts may be shorter or empty. */
static MPI_Count bytes_of_part(MPI_Count bytes, int relative, const struct mpi_comm *comm)
{
	MPI_Count each = (bytes + comm->size - 1) / comm->size;
	MPI_Count begin = each * relative;

	return begin < bytes ? begin : bytes;
}

/* Scatter down the tree: each rank gets its own part and those of the ranks below it. */
static void scatter(struct mpi_schedule *p, char *data, MPI_Count bytes, int root,
		    struct mpi_comm *comm)
{
	int relative = rank_at(comm, comm->size - root, comm->rank);
	MPI_Count begin, end;
	int bit = 1;

	while (!(relative & bit) && bit < comm->size)
		bit *= 2;
	if (relative) {
		begin = bytes_of_part(bytes, relative, comm);
		end = bytes_of_part(bytes, relative + bit, comm);
		mpi_schedule_recv(p, data + begin, end - begin, mpi_bytes(),
				  rank_at(comm, root, relative - bit), comm);
		mpi_schedule_wait(p);
	}
	while ((bit /= 2) > 0) {
		if (relative + bit >= comm->size)
			continue;
		begin = bytes_of_part(bytes, relative + bit, comm);
		end = bytes_of_part(bytes, relative + 2 * bit, comm);
		mpi_schedule_send(p, data + begin, end - begin, mpi_bytes(),
				  rank_at(comm, root, relative + bit), comm);
	}
	mpi_schedule_wait(p);
}

static void bcast_round_ring(struct mpi_schedule *p, char *data, MPI_Count bytes, int root,
			     struct mpi_comm *comm)
{
	int relative = rank_at(comm, comm->size - root, comm->rank);
	int right = rank_at(comm, comm->rank, 1), left = rank_at(comm, comm->rank, comm->size - 1);

	for (int i = 0; i < comm->size - 1; i++) {
		int mine = rank_at(comm, relative, comm->size - i);
		int theirs = rank_at(comm, relative, comm->size - i - 1);
		MPI_Count m = bytes_of_part(bytes, mine, comm),
			  t = bytes_of_part(bytes, theirs, comm);

		mpi_schedule_sendrecv(p, data + m, bytes_of_part(bytes, mine + 1, comm) - m,
				      mpi_bytes(), right, data + t,
				      bytes_of_part(bytes, theirs + 1, comm) - t, mpi_bytes(), left,
				      comm);
	}
}

static enum mpi_algorithm choose_bcast(const struct mpi_schedule *p, MPI_Count bytes,
				       const struct mpi_comm *comm)
{
	enum mpi_algorithm best = MPI_COLL_BCAST_BINOMIAL;

	if (mpi_coll_oversubscribed(comm) || mpi_coll_directly(p, comm, bytes))
		best = MPI_COLL_BCAST_TREE;
	else if (bytes >= LONG_BYTES && comm->size >= LONG_RANKS)
		best = MPI_COLL_BCAST_RING;
	return mpi_coll_choose(MPI_COLL_BIT(BCAST, BINOMIAL) | MPI_COLL_BIT(BCAST, TREE) |
				       MPI_COLL_BIT(BCAST, RING),
			       best);
}

int mpi_intra_bcast(struct mpi_schedule *p, void *buf, MPI_Count count, struct mpi_type *type,
		    int root, struct mpi_comm *comm)
{
	struct mpi_packed k;
	int rc;

	if (comm->size == 1 || count == 0 || type->size == 0)
		return MPI_SUCCESS;
	rc = mpi_packed_init(p, &k, buf, count, type, comm->rank == root);
	if (rc)
		return rc;
	switch (choose_bcast(p, k.bytes, comm)) {
	case MPI_COLL_BCAST_RING:
		scatter(p, k.data, k.bytes, root, comm);
		bcast_round_ring(p, k.data, k.bytes, root, comm);
		break;
	case MPI_COLL_BCAST_TREE:
		bcast_down_tree(p, k.data, k.bytes, root, MPI_TREE_BRANCHES, comm);
		break;
	default:
		bcast_down_tree(p, k.data, k.bytes, root, 2, comm);
		break;
	}
	if (comm->rank != root)
		mpi_packed_store(p, &k, buf, count, type);
	return MPI_SUCCESS;
}

static int bcast_by_shmcoll(struct mpi_schedule *p, struct mpi_shmcoll *shmcoll, void *buf,
			    MPI_Count count, struct mpi_type *type, int root, struct mpi_comm *comm)
{
	MPI_Count most = MPI_SHMCOLL_LONG;
	struct mpi_packed k;
	int rc = mpi_packed_init(p, &k, buf, count, type, comm->rank == root);

	if (rc)
		return rc;
	rc = p->rc;
	/* short segments: one rank copies in while another copies out; but each segment costs
	 * waits for each other */
	if (!mpi_shmcoll_oversubscribed(shmcoll) && comm->size == 2)
		most = FIRST_BYTES;
	else if (!mpi_shmcoll_oversubscribed(shmcoll) && k.bytes <= PIPE_BYTES)
		most = MPI_SHMCOLL_BYTES;
	if (mpi_shmcoll_nodes(shmcoll) > 1)
		rc = mpi_nodes_bcast(p, shmcoll, rc, k.data, (size_t)k.bytes, root);
	else
		for (MPI_Count n, i = 0; i < k.bytes; i += n) {
			n = k.bytes - i < most ? k.bytes - i : most;
			rc = mpi_shmcoll_bcast(shmcoll, rc, k.data + i, (size_t)n, root);
			if (comm->size == 2)
				most = MPI_SHMCOLL_LONG;
		}
	if (!rc && comm->rank != root)
		mpi_packed_store(p, &k, buf, count, type);
	return rc;
}

/* Two ranks copy a half each. False: use another algorithm. */
static bool bcast_by_reading(struct mpi_schedule *p, void *buf, MPI_Count count,
			     struct mpi_type *type, MPI_Count bytes, int root,
			     struct mpi_comm *comm, int *rc)
{
	struct mpi_shmcoll *shmcoll = mpi_shmcoll_for_taking(
		p, MPI_COLL_BCAST_READ, comm, bytes, MPI_SHMCOLL_TWO_BYTES, MPI_SHMCOLL_BCAST_MOST);
	struct mpi_packed k;

	if (!shmcoll)
		return false;
	/* after an error, too: the other rank counts on this one */
	mpi_packed_init(p, &k, buf, count, type, comm->rank == root);
	if (!mpi_shmcoll_read_bcast(p, shmcoll, k.data, (size_t)bytes, root, rc))
		return false;
	if (!*rc && comm->rank != root)
		mpi_packed_store(p, &k, buf, count, type);
	return true;
}

int mpi_bcast_schedule(struct mpi_schedule *p, void *buffer, MPI_Count count,
		       struct mpi_type *datatype, int root, struct mpi_comm *comm)
{
	int rc = mpi_coll_check_root(root, comm);
	struct mpi_shmcoll *shmcoll;
	MPI_Count bytes;

	if (!rc && root != MPI_PROC_NULL)
		rc = mpi_coll_check(buffer, count, datatype, "buffer");
	if (rc)
		return rc;
	mpi_calls_announce(p, comm, MPI_CALL_BCAST, root, NULL,
			   comm->inter ? MPI_CALL_ANY_BYTES : mpi_coll_bytes(count, datatype));
	if (comm->inter)
		return mpi_inter_bcast(p, buffer, count, datatype, root, comm);
	if (__builtin_mul_overflow(count, datatype->size, &bytes))
		bytes = 0;
	if (bcast_by_reading(p, buffer, count, datatype, bytes, root, comm, &rc))
		return rc;
	shmcoll = bytes ? mpi_shmcoll_for(p, MPI_COLL_BCAST_SHM, comm, bytes,
					  comm->size == 2 ? MPI_SHMCOLL_TWO_BYTES : INT64_MAX,
					  NODES_BYTES)
			: NULL;
	if (shmcoll)
		return bcast_by_shmcoll(p, shmcoll, buffer, count, datatype, root, comm);
	return mpi_intra_bcast(p, buffer, count, datatype, root, comm);
}
