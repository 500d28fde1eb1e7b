/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives over several nodes on two levels: inside a node through the memory of its hub,
 * between nodes by messages of the masters, one from each node. The masters are a communicator
 * to the algorithms by messages, so these choose among themselves as ever; its context is that
 * of all ranks, and a tag of its own tells its messages from those.
 *
 * The order in which a reduction is made follows from which ranks are on which node, and nothing
 * else.
 *
 * When a rank has died, what the others lack for want of it their master passes on as such
 * inside the node; to other nodes it sends nothing any more (plan.h). Memory that runs out is
 * passed on in both, by hubs and by plans that are lost.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/coll/shm/hub_impl.h"

int mpi_hub_nodes(const struct mpi_hub *h)
{
	return h->nodes;
}

bool mpi_hub_crowded(const struct mpi_hub *h)
{
	return h->crowded;
}

/* ---- between masters ------------------------------------------------------------------------- */

/* What the masters do until they are done with it has a tag of its own. */
static int begin_nested(struct mpi_plan *p)
{
	int tag = p->tag;

	p->tag = MPI_TAG_MASTERS;
	return tag;
}

/* The first error, those of messages included. */
static int end_nested(struct mpi_plan *p, int tag, int rc)
{
	mpi_plan_wait(p);
	p->tag = tag;
	return mpi_first(rc, p->rc);
}

static int masters_bcast(struct mpi_plan *p, struct mpi_hub *h, void *data, size_t bytes, int node)
{
	int tag = begin_nested(p);

	return end_nested(
		p, tag, mpi_intra_bcast(p, data, (MPI_Count)bytes, mpi_bytes(), node, &h->masters));
}

/* Memory that has run out inside a node lacks between nodes as well, and so does a rank. */
static int heard_error(struct mpi_plan *p, int rc)
{
	if (mpi_hub_lacking(rc))
		mpi_plan_lose(p, rc);
	else
		mpi_plan_note(p, rc);
	return rc;
}

/* ---- inside a node --------------------------------------------------------------------------- */

static int inside(struct mpi_hub *h, int rc, void *data, size_t bytes, int seat)
{
	return h->n > 1 ? mpi_hub_bcast(h, rc, data, bytes, seat) : rc;
}

/* What the master has, however long, to all of its node. */
static int inside_all(struct mpi_hub *h, int rc, char *data, size_t bytes)
{
	for (size_t n; bytes > 0; data += n, bytes -= n) {
		n = bytes < MPI_HUB_LONG ? bytes : MPI_HUB_LONG;
		rc = mpi_first(rc, inside(h, rc, data, n, 0));
	}
	return rc;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int bcast(struct mpi_plan *p, struct mpi_hub *h, int rc, void *data, size_t bytes, int root)
{
	struct mpi_hub_home home = h->home[root];
	bool first = home.node == h->node && home.seat != 0;

	/* the master has it from the root, or the root from nobody */
	if (first)
		rc = heard_error(p, inside(h, rc, data, bytes, home.seat));
	if (h->me == 0)
		rc = mpi_first(rc, masters_bcast(p, h, data, bytes, home.node));
	return first ? rc : inside(h, rc, data, bytes, 0);
}

int mpi_nodes_bcast(struct mpi_plan *p, struct mpi_hub *h, int rc, void *data, size_t bytes,
		    int root)
{
	char *at = data;

	for (size_t n; bytes > 0; at += n, bytes -= n) {
		n = bytes < MPI_HUB_LONG ? bytes : MPI_HUB_LONG;
		rc = mpi_first(rc, bcast(p, h, rc, at, n, root));
	}
	return rc;
}

int mpi_nodes_allreduce(struct mpi_plan *p, struct mpi_hub *h, const void *in, void *out,
			MPI_Count count, struct mpi_type *type, struct mpi_op *op)
{
	int rc = MPI_SUCCESS;

	if (h->n > 1)
		rc = heard_error(p, mpi_hub_reduce(h, rc, in, out, count, type, op, 0));
	if (h->me == 0) {
		int tag = begin_nested(p);
		const void *from = h->n > 1 || in == out ? MPI_IN_PLACE : in;

		rc = mpi_first(rc, end_nested(p, tag,
					      mpi_intra_allreduce(p, from, out, count, type, op,
								  &h->masters)));
	}
	return inside_all(h, rc, out, (size_t)(count * type->size));
}

int mpi_nodes_reduce(struct mpi_plan *p, struct mpi_hub *h, const void *in, void *out,
		     MPI_Count count, struct mpi_type *type, struct mpi_op *op, int root)
{
	struct mpi_hub_home home = h->home[root];
	bool here = home.node == h->node;
	void *sum = out;
	int rc, tag;

	/* the result of this node, at its master */
	if (h->me == 0 && h->comm->rank != root)
		sum = mpi_plan_typed(p, count, type);
	rc = p->rc;
	if (h->n > 1)
		rc = heard_error(p, mpi_hub_reduce(h, rc, in, sum, count, type, op, 0));
	else if (in != sum && !p->lost)
		memcpy(sum, in, (size_t)(count * type->size));
	if (h->me == 0) {
		tag = begin_nested(p);
		rc = mpi_first(rc, end_nested(p, tag,
					      mpi_intra_reduce(p, here ? MPI_IN_PLACE : sum,
							       here ? sum : NULL, count, type, op,
							       home.node, &h->masters)));
	}
	if (here && home.seat != 0 && h->me == 0)
		mpi_plan_send(p, sum, count, type, root, h->comm);
	else if (here && home.seat != 0 && h->me == home.seat)
		mpi_plan_recv(p, out, count, type, h->rank[0], h->comm);
	mpi_plan_wait(p);
	return rc;
}

/* ---- equal blocks ---------------------------------------------------------------------------- */

/* The blocks of all ranks, node by node, as bytes. */
struct blocks {
	struct mpi_plan *plan;
	struct mpi_hub *hub;
	char *data;
	MPI_Count bytes;   /* of each */
	MPI_Count *counts; /* of each node's blocks together */
	MPI_Aint *displs;
};

static void lay_out_blocks(struct blocks *b)
{
	const struct mpi_hub *h = b->hub;

	b->data = mpi_plan_bytes(b->plan, h->comm->size * b->bytes);
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
	const struct mpi_hub_home *home = &b->hub->home[rank];

	return b->data + b->displs[home->node] + home->seat * b->bytes;
}

/* Of this node's ranks to its master. What does not fit stays out, for the rank itself to hear
 * of alone. */
static int gather_inside(const struct blocks *b, int lacking, int wrong, const void *in,
			 MPI_Count count, struct mpi_type *type)
{
	struct mpi_hub *h = b->hub;
	struct mpi_vec here = { .buf = b->data + b->displs[h->node],
				.count = b->bytes,
				.type = mpi_bytes() };
	int rc = lacking;

	if (h->n > 1)
		rc = mpi_hub_gather(h, lacking, in, count, type, &here, (size_t)b->bytes, 0);
	else if (!wrong && !lacking)
		mpi_type_pack_bytes(type, in, count, 0, here.buf, (size_t)b->bytes);
	return rc == wrong ? MPI_SUCCESS : rc;
}

static int masters_allgather(const struct blocks *b)
{
	struct mpi_hub *h = b->hub;
	struct mpi_vec all = { .buf = b->data,
			       .count = b->counts[0],
			       .counts = b->counts,
			       .displs = b->displs,
			       .type = mpi_bytes() };
	int tag = begin_nested(b->plan);
	bool equal = true;

	/* with as many ranks on each node the blocks are equal, for which there are more
	 * algorithms */
	for (int i = 1; i < h->nodes; i++)
		equal &= b->counts[i] == b->counts[0];
	if (equal)
		all.counts = all.displs = NULL;
	return end_nested(
		b->plan, tag,
		mpi_intra_allgather(b->plan, MPI_IN_PLACE, 0, mpi_bytes(), &all, &h->masters));
}

int mpi_nodes_allgather(struct mpi_plan *p, struct mpi_hub *h, const void *in, MPI_Count count,
			struct mpi_type *type, const struct mpi_vec *recv)
{
	struct blocks b = { .plan = p, .hub = h, .bytes = mpi_vec_bytes(recv, 0) };
	int wrong = mpi_hub_check_equal(count * type->size, b.bytes), rc;

	lay_out_blocks(&b);
	rc = heard_error(
		p, gather_inside(&b, h->me == 0 ? p->rc : MPI_SUCCESS, wrong, in, count, type));
	if (h->me == 0)
		rc = mpi_first(rc, masters_allgather(&b));
	rc = mpi_first(p->rc, rc);
	rc = mpi_first(wrong, inside_all(h, rc, b.data, (size_t)(h->comm->size * b.bytes)));
	for (int i = 0; i < h->comm->size && !rc; i++)
		mpi_type_unpack_bytes(recv->type, mpi_vec_at(recv, i), recv->count, 0,
				      block_of_rank(&b, i), (size_t)b.bytes);
	return rc;
}
