/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Bcast. Short messages go down a tree. Long ones are scattered down the tree and gathered
 * round a ring (van de Geijn): each rank then sends and receives about twice the message, however many
 * ranks there are. Data with gaps are packed once, at the root.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/impl.h"

/* From here on the scatter and the ring pay, if there are at least so many ranks. */
#define LONG_BYTES (256 << 10)
#define LONG_RANKS 8

/* Rank `relative` places after the root. */
static int at(const struct mpi_comm *comm, int root, int relative)
{
	return (int)(((long)root + relative) % comm->size);
}

static int tree(char *data, MPI_Count bytes, int root, struct mpi_comm *comm)
{
	struct mpi_request *requests[MPI_TREE_CHILDREN] = { NULL };
	struct mpi_tree t;
	int rc = MPI_SUCCESS;

	mpi_tree_make(&t, root, comm);
	if (t.parent >= 0)
		rc = mpi_coll_recv(data, bytes, mpi_bytes(), t.parent, MPI_TAG_BCAST, comm, NULL);
	/* the child with the most ranks below it first */
	for (int i = t.n - 1; i >= 0; i--)
		rc = mpi_first(rc, mpi_coll_isend(data, bytes, mpi_bytes(), t.child[i],
						  MPI_TAG_BCAST, comm, &requests[i]));
	return mpi_first(rc, mpi_coll_waitall(requests, t.n));
}

/* Where the part of the rank `relative` begins; the last ones may be shorter or empty. */
static MPI_Count part(MPI_Count bytes, int relative, const struct mpi_comm *comm)
{
	MPI_Count each = (bytes + comm->size - 1) / comm->size;
	MPI_Count begin = each * relative;

	return begin < bytes ? begin : bytes;
}

/* Down the tree: each rank gets the parts of itself and of the ranks below it. */
static int scatter(char *data, MPI_Count bytes, int root, struct mpi_comm *comm)
{
	int relative = at(comm, comm->size - root, comm->rank);
	int bit = 1, rc = MPI_SUCCESS;
	MPI_Count begin, end;

	while (!(relative & bit) && bit < comm->size)
		bit *= 2;
	if (relative) {
		begin = part(bytes, relative, comm);
		end = part(bytes, relative + bit, comm);
		rc = mpi_coll_recv(data + begin, end - begin, mpi_bytes(),
				   at(comm, root, relative - bit), MPI_TAG_BCAST, comm, NULL);
	}
	while ((bit /= 2) > 0) {
		if (relative + bit >= comm->size)
			continue;
		begin = part(bytes, relative + bit, comm);
		end = part(bytes, relative + 2 * bit, comm);
		rc = mpi_first(rc,
			       mpi_coll_send(data + begin, end - begin, mpi_bytes(),
					     at(comm, root, relative + bit), MPI_TAG_BCAST, comm));
	}
	return rc;
}

static int ring(char *data, MPI_Count bytes, int root, struct mpi_comm *comm)
{
	int relative = at(comm, comm->size - root, comm->rank);
	int right = at(comm, comm->rank, 1), left = at(comm, comm->rank, comm->size - 1);
	int rc = MPI_SUCCESS;

	for (int i = 0; i < comm->size - 1; i++) {
		int mine = at(comm, relative, comm->size - i);
		int theirs = at(comm, relative, comm->size - i - 1);
		MPI_Count m = part(bytes, mine, comm), t = part(bytes, theirs, comm);

		rc = mpi_first(rc, mpi_coll_sendrecv(data + m, part(bytes, mine + 1, comm) - m,
						     mpi_bytes(), right, data + t,
						     part(bytes, theirs + 1, comm) - t, mpi_bytes(),
						     left, MPI_TAG_BCAST, comm));
	}
	return rc;
}

int mpi_intra_bcast(void *buf, MPI_Count count, struct mpi_type *type, int root,
		    struct mpi_comm *comm)
{
	struct mpi_packed p;
	int rc;

	if (comm->size == 1 || count == 0 || type->size == 0)
		return MPI_SUCCESS;
	rc = mpi_packed_init(&p, buf, count, type, comm->rank == root);
	if (rc)
		return rc;
	if (p.bytes >= LONG_BYTES && comm->size >= LONG_RANKS && !mpi_coll_crowded()) {
		rc = scatter(p.data, p.bytes, root, comm);
		rc = mpi_first(rc, ring(p.data, p.bytes, root, comm));
	} else {
		rc = tree(p.data, p.bytes, root, comm);
	}
	if (comm->rank != root)
		mpi_packed_store(&p, buf, count, type);
	mpi_packed_fini(&p);
	return rc;
}

static int by_hub(struct mpi_hub *hub, void *buf, MPI_Count count, struct mpi_type *type, int root,
		  struct mpi_comm *comm)
{
	struct mpi_packed p;
	int rc = mpi_packed_init(&p, buf, count, type, comm->rank == root);

	if (rc)
		return rc;
	rc = mpi_hub_bcast(hub, p.data, (size_t)p.bytes, root);
	if (!rc && comm->rank != root)
		mpi_packed_store(&p, buf, count, type);
	mpi_packed_fini(&p);
	return rc;
}

int mpi_bcast(void *buffer, MPI_Count count, struct mpi_type *datatype, int root,
	      struct mpi_comm *comm)
{
	int rc = mpi_coll_check_root(root, comm);
	struct mpi_hub *hub;

	if (!rc && root != MPI_PROC_NULL)
		rc = mpi_coll_check(buffer, count, datatype, "buffer");
	if (rc)
		return rc;
	hub = mpi_hub_for(comm, count, datatype);
	if (hub)
		return by_hub(hub, buffer, count, datatype, root, comm);
	return (comm->inter ? mpi_inter_bcast : mpi_intra_bcast)(buffer, count, datatype, root,
								 comm);
}
