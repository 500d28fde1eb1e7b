/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives over several nodes on two levels. Inside a node they use its shared-memory area;
 * between nodes they use messages of the node leaders. For the message algorithms the leaders
 * are a communicator, so the algorithm is chosen as for any other. Its context is that of all
 * ranks; a tag of its own (MPI_TAG_LEADERS) keeps its messages apart.
 *
 * The order of operands in a reduction depends only on which ranks are on which node.
 *
 * When a rank has died, the leader reports the missing data inside its node. It sends nothing
 * more to other nodes (schedule.h). An error for lack of memory travels on both levels: in
 * areas, and in schedules that have failed.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"

int mpi_shmcoll_nodes(const struct mpi_shmcoll *h)
{
	return h->nodes;
}

bool mpi_shmcoll_oversubscribed(const struct mpi_shmcoll *h)
{
	return h->oversubscribed;
}

/* ---- between node leaders -------------------------------------------------------------------- */

/* Give the messages of the leaders a tag of their own until end_nested(). */
static int begin_nested(struct mpi_schedule *p)
{
	int tag = p->tag;

	p->tag = MPI_TAG_LEADERS;
	return tag;
}

/* Return the first error, those of messages included. */
static int end_nested(struct mpi_schedule *p, int tag, int rc)
{
	mpi_schedule_wait(p);
	p->tag = tag;
	return mpi_first(rc, p->rc);
}

static int leaders_bcast(struct mpi_schedule *p, struct mpi_shmcoll *h, void *data, size_t bytes,
			 int node)
{
	int tag = begin_nested(p);

	return end_nested(
		p, tag, mpi_intra_bcast(p, data, (MPI_Count)bytes, mpi_bytes(), node, &h->leaders));
}

/* Give the schedule an error from inside the node, so that the other nodes learn of it. Without
 * memory the schedule fails; other errors are recorded. */
static int heard_error(struct mpi_schedule *p, int rc)
{
	if (mpi_shmcoll_no_memory(rc))
		mpi_schedule_fail(p, rc);
	else
		mpi_schedule_record(p, rc);
	return rc;
}

/* ---- inside a node --------------------------------------------------------------------------- */

static int inside(struct mpi_shmcoll *h, int rc, void *data, size_t bytes, int slot)
{
	return h->n > 1 ? mpi_shmcoll_bcast(h, rc, data, bytes, slot) : rc;
}

/* Send the leader's data, of any length, to all ranks of its node. */
static int inside_all(struct mpi_shmcoll *h, int rc, char *data, size_t bytes)
{
	for (size_t n; bytes > 0; data += n, bytes -= n) {
		n = bytes < MPI_SHMCOLL_LONG ? bytes : MPI_SHMCOLL_LONG;
		rc = mpi_first(rc, inside(h, rc, data, n, 0));
	}
	return rc;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int bcast(struct mpi_schedule *p, struct mpi_shmcoll *h, int rc, void *data, size_t bytes,
		 int root)
{
	struct mpi_shmcoll_home home = h->home[root];
	bool first = home.node == h->node && home.slot != 0;

	/* the leader gets the data from the root; a root that is the leader has them */
	if (first)
		rc = heard_error(p, inside(h, rc, data, bytes, home.slot));
	if (h->me == 0)
		rc = mpi_first(rc, leaders_bcast(p, h, data, bytes, home.node));
	return first ? rc : inside(h, rc, data, bytes, 0);
}

int mpi_nodes_bcast(struct mpi_schedule *p, struct mpi_shmcoll *h, int rc, void *data, size_t bytes,
		    int root)
{
	char *at = data;

	for (size_t n; bytes > 0; at += n, bytes -= n) {
		n = bytes < MPI_SHMCOLL_LONG ? bytes : MPI_SHMCOLL_LONG;
		rc = mpi_first(rc, bcast(p, h, rc, at, n, root));
	}
	return rc;
}

int mpi_nodes_allreduce(struct mpi_schedule *p, struct mpi_shmcoll *h, const void *in, void *out,
			MPI_Count count, struct mpi_type *type, struct mpi_op *op)
{
	int rc = MPI_SUCCESS;

	if (h->n > 1)
		rc = heard_error(p, mpi_shmcoll_reduce(h, rc, in, out, count, type, op, 0));
	if (h->me == 0) {
		int tag = begin_nested(p);
		const void *from = h->n > 1 || in == out ? MPI_IN_PLACE : in;

		rc = mpi_first(rc, end_nested(p, tag,
					      mpi_intra_allreduce(p, from, out, count, type, op,
								  &h->leaders)));
	}
	return inside_all(h, rc, out, (size_t)(count * type->size));
}

int mpi_nodes_reduce(struct mpi_schedule *p, struct mpi_shmcoll *h, const void *in, void *out,
		     MPI_Count count, struct mpi_type *type, struct mpi_op *op, int root)
{
	struct mpi_shmcoll_home home = h->home[root];
	bool here = home.node == h->node;
	void *sum = out;
	int rc, tag;

	/* the result of this node, at its leader */
	if (h->me == 0 && h->comm->rank != root)
		sum = mpi_schedule_typed(p, count, type);
	rc = p->rc;
	if (h->n > 1)
		rc = heard_error(p, mpi_shmcoll_reduce(h, rc, in, sum, count, type, op, 0));
	else if (in != sum && !p->failed)
		memcpy(sum, in, (size_t)(count * type->size));
	if (h->me == 0) {
		tag = begin_nested(p);
		rc = mpi_first(rc, end_nested(p, tag,
					      mpi_intra_reduce(p, here ? MPI_IN_PLACE : sum,
							       here ? sum : NULL, count, type, op,
							       home.node, &h->leaders)));
	}
	if (here && home.slot != 0 && h->me == 0)
		mpi_schedule_send(p, sum, count, type, root, h->comm);
	else if (here && home.slot != 0 && h->me == home.slot)
		mpi_schedule_recv(p, out, count, type, h->rank[0], h->comm);
	mpi_schedule_wait(p);
	return rc;
}

/* ---- equal blocks ---------------------------------------------------------------------------- */

/* The blocks of all ranks, node by node, as bytes. */
struct blocks {
	struct mpi_schedule *schedule;
	struct mpi_shmcoll *shmcoll;
	char *data;
	MPI_Count bytes;   /* of each */
	MPI_Count *counts; /* of each node's blocks together */
	MPI_Aint *displs;
};

static void lay_out_blocks(struct blocks *b)
{
	const struct mpi_shmcoll *h = b->shmcoll;

	b->data = mpi_schedule_bytes(b->schedule, h->comm->size * b->bytes);
	b->counts = h->counts;
	b->displs = h->displs;
	memset(b->counts, 0, (size_t)h->nodes * sizeof(*b->counts));
	for (int i = 0; i < h->comm->size; i++)
		b->counts[h->home[i].node] += b->bytes;
	for (MPI_Count i = 0, at = 0; i < h->nodes; at += b->counts[i++])
		b->displs[i] = (MPI_Aint)at;
}

static char *block_of_rank(const struct blocks *b, int rank)
{
	const struct mpi_shmcoll_home *home = &b->shmcoll->home[rank];

	return b->data + b->displs[home->node] + home->slot * b->bytes;
}

/* Gather the blocks of this node's ranks at the leader. A block of a wrong length is left out,
 * and only its own rank gets the error. */
static int gather_inside(const struct blocks *b, int no_memory, int wrong, const void *in,
			 MPI_Count count, struct mpi_type *type)
{
	struct mpi_shmcoll *h = b->shmcoll;
	struct mpi_vec here = { .buf = b->data + b->displs[h->node],
				.count = b->bytes,
				.type = mpi_bytes() };
	int rc = no_memory;

	if (h->n > 1)
		rc = mpi_shmcoll_gather(h, no_memory, in, count, type, &here, (size_t)b->bytes, 0);
	else if (!wrong && !no_memory)
		mpi_type_pack_bytes(type, in, count, 0, here.buf, (size_t)b->bytes);
	return rc == wrong ? MPI_SUCCESS : rc;
}

static int leaders_allgather(const struct blocks *b)
{
	struct mpi_shmcoll *h = b->shmcoll;
	struct mpi_vec all = { .buf = b->data,
			       .count = b->counts[0],
			       .counts = b->counts,
			       .displs = b->displs,
			       .type = mpi_bytes() };
	int tag = begin_nested(b->schedule);
	bool equal = true;

	/* if all nodes have the same number of ranks their blocks are equal, and more
	 * algorithms can be used */
	for (int i = 1; i < h->nodes; i++)
		equal &= b->counts[i] == b->counts[0];
	if (equal)
		all.counts = all.displs = NULL;
	return end_nested(
		b->schedule, tag,
		mpi_intra_allgather(b->schedule, MPI_IN_PLACE, 0, mpi_bytes(), &all, &h->leaders));
}

int mpi_nodes_allgather(struct mpi_schedule *p, struct mpi_shmcoll *h, const void *in,
			MPI_Count count, struct mpi_type *type, const struct mpi_vec *recv)
{
	struct blocks b = { .schedule = p, .shmcoll = h, .bytes = mpi_vec_bytes(recv, 0) };
	int wrong = mpi_shmcoll_check_equal(count * type->size, b.bytes), rc;

	lay_out_blocks(&b);
	rc = heard_error(
		p, gather_inside(&b, h->me == 0 ? p->rc : MPI_SUCCESS, wrong, in, count, type));
	if (h->me == 0)
		rc = mpi_first(rc, leaders_allgather(&b));
	rc = mpi_first(p->rc, rc);
	rc = mpi_first(wrong, inside_all(h, rc, b.data, (size_t)(h->comm->size * b.bytes)));
	for (int i = 0; i < h->comm->size && !rc; i++)
		mpi_type_unpack_bytes(recv->type, mpi_vec_at(recv, i), recv->count, 0,
				      block_of_rank(&b, i), (size_t)b.bytes);
	return rc;
}
