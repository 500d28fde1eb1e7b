/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Common parts of the collectives: temporary buffers, packed forms, exchanges of blocks; and the collectives
 * on plain bytes and words with which communicators are made.
 */
#include "mpi_shim/coll/coll_impl.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/config.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/pt2pt/protocol.h"

struct base_coll_setting mpi_coll_setting;

static void end_with_comm(struct mpi_comm *comm)
{
	mpi_hub_free(comm->hub);
	comm->hub = NULL;
	mpi_calls_free(comm);
}

void mpi_coll_init(void)
{
	mpi_comm_at_end(end_with_comm);
	mpi_coll_setting = *base_coll();
	mpi_plans_init();
	mpi_arrivals_go_to(MPI_ARRIVAL_FLAG, mpi_hub_offered);
}

static int ranks_here(void)
{
	static int known;
	int here = 0;

	if (known)
		return known;
	for (int i = 0; i < mpi_world.size; i++)
		here += mpi_world.id[i].nid == mpi_world.id[mpi_world.rank].nid;
	known = here;
	return here;
}

bool mpi_coll_one_node(void)
{
	return ranks_here() == mpi_world.size;
}

bool mpi_coll_short_here(void)
{
	static signed char known = -1;

	if (known < 0)
		known = ranks_here() > sysconf(_SC_NPROCESSORS_ONLN);
	return known;
}

bool mpi_coll_crowded_here(void)
{
	if (mpi_coll_setting.prefer != BASE_COLL_AUTO)
		return mpi_coll_setting.prefer == BASE_COLL_MESSAGES;
	return mpi_coll_short_here();
}

bool mpi_coll_crowded(void)
{
	if (mpi_coll_setting.prefer != BASE_COLL_AUTO)
		return mpi_coll_setting.prefer == BASE_COLL_MESSAGES;
	/* Ranks of several machines may not see the same number of processors, but must choose the
	 * same algorithms. */
	return mpi_coll_one_node() && mpi_coll_short_here();
}

/* ---- trees --------------------------------------------------------------------------------------- */

/* Digits of a rank's number in base `radix`: its parent has the lowest that is not 0 cleared. */
void mpi_tree_make(struct mpi_tree *t, int root, int radix, const struct mpi_comm *comm)
{
	long n = comm->size, self = (comm->rank - root + n) % n;
	long step = 1;

	t->n = 0;
	t->parent = MPI_PROC_NULL;
	for (; step < n && self % (step * radix) == 0; step *= radix) {
		for (long child = self + step; child < self + step * radix && child < n;
		     child += step) {
			t->child[t->n] = (int)((child + root) % n);
			t->below[t->n++] = (int)(step < n - child ? step : n - child);
		}
	}
	if (self > 0)
		t->parent = (int)((self - self % (step * radix) + root) % n);
}

/* ---- packed forms -------------------------------------------------------------------------------- */

int mpi_packed_init(struct mpi_plan *p, struct mpi_packed *k, const void *buf, MPI_Count count,
		    struct mpi_type *type, bool fill)
{
	if (__builtin_mul_overflow(count, type->size, &k->bytes))
		return mpi_fail(MPI_ERR_COUNT, "%lld elements are more than memory can hold",
				(long long)count);
	k->direct = type->dense || k->bytes == 0;
	if (k->direct) {
		k->data = (char *)((uintptr_t)buf + (uintptr_t)type->true_lb);
		return MPI_SUCCESS;
	}
	k->data = mpi_plan_bytes(p, k->bytes);
	if (!k->data)
		return MPI_ERR_NO_MEM;
	if (fill)
		mpi_plan_pack(p, type, buf, count, k->data);
	return MPI_SUCCESS;
}

void mpi_packed_store(struct mpi_plan *p, const struct mpi_packed *k, void *buf, MPI_Count count,
		      struct mpi_type *type)
{
	if (!k->direct)
		mpi_plan_unpack(p, type, buf, count, k->data);
}

/* ---- many messages at once ----------------------------------------------------------------------- */

void mpi_vec_copy_own(struct mpi_plan *p, const struct mpi_vec *send, const struct mpi_vec *recv,
		      int rank)
{
	/* one address may mean two places: that of MPI_BOTTOM */
	if (mpi_vec_at(send, rank) != mpi_vec_at(recv, rank) ||
	    mpi_vec_type(send, rank) != mpi_vec_type(recv, rank))
		mpi_plan_copy(p, mpi_vec_at(send, rank), mpi_vec_count(send, rank),
			      mpi_vec_type(send, rank), mpi_vec_at(recv, rank),
			      mpi_vec_count(recv, rank), mpi_vec_type(recv, rank));
}

void mpi_vec_exchange(struct mpi_plan *p, const struct mpi_vec *sends, const struct mpi_vec *recvs,
		      struct mpi_comm *comm)
{
	int peers = comm->inter ? comm->remote_size : comm->size;
	int n = peers > comm->size ? peers : comm->size;
	int self = comm->inter ? -1 : comm->rank;

	/* At step i every rank sends to the one i after it and receives from the one i before it, so
	 * the two ends of a message meet in the same batch. */
	for (int batch = 0; batch < n; batch += MPI_EXCHANGES) {
		int end = n - batch < MPI_EXCHANGES ? n : batch + MPI_EXCHANGES;

		for (int i = batch; i < end; i++) {
			int from = (comm->rank - i + n) % n;

			if (from < peers && from != self && mpi_vec_bytes(recvs, from) > 0)
				mpi_plan_recv(p, mpi_vec_at(recvs, from),
					      mpi_vec_count(recvs, from), mpi_vec_type(recvs, from),
					      from, comm);
		}
		for (int i = batch; i < end; i++) {
			int to = (comm->rank + i) % n;

			if (to < peers && to != self && mpi_vec_bytes(sends, to) > 0)
				mpi_plan_send(p, mpi_vec_at(sends, to), mpi_vec_count(sends, to),
					      mpi_vec_type(sends, to), to, comm);
		}
		mpi_plan_wait(p);
	}
}

/* With so many ranks on a node, in the mean, two levels pay. */
#define NODE_RANKS 4

/* ---- without messages ---------------------------------------------------------------------------- */

static bool ruled_out(enum base_coll c)
{
	return mpi_coll_setting.ruled_out >> c & 1;
}

static struct mpi_hub *counted(enum base_coll c, struct mpi_hub *hub)
{
	if (hub)
		mpi_world.colls[c]++;
	return hub;
}

/* Two levels, if there are: of several nodes one has several ranks. */
static bool pays_across(int nodes, const struct mpi_comm *comm, MPI_Count bytes, MPI_Count most,
			bool wanted)
{
	if (nodes == comm->size || most == 0)
		return false;
	return wanted || (comm->size >= NODE_RANKS * nodes && bytes <= most);
}

struct mpi_hub *mpi_hub_for(const struct mpi_plan *p, enum base_coll hub, struct mpi_comm *comm,
			    MPI_Count bytes, MPI_Count most, MPI_Count across)
{
	bool wanted = mpi_coll_wanted(hub);
	struct mpi_hub *h;
	int nodes;

	if (!p->now || bytes <= 0 || comm->inter || ruled_out(hub))
		return NULL;
	h = mpi_hub_of(comm, false);
	nodes = h ? mpi_hub_nodes(h) : 0;
	/* where processors are short two copies in the caches cost less than messages, however long */
	if (nodes == 1 && bytes > most && !mpi_hub_crowded(h) && !wanted)
		h = NULL;
	if (nodes > 1 && !pays_across(nodes, comm, bytes, across, wanted))
		h = NULL;
	return counted(hub, h);
}

struct mpi_hub *mpi_hub_for_reading(const struct mpi_plan *p, enum base_coll read,
				    struct mpi_comm *comm, MPI_Count bytes, MPI_Count most)
{
	bool wanted = mpi_coll_wanted(read), either, few;
	struct mpi_hub *h;

	if (!p->now || bytes <= 0 || comm->inter || ruled_out(read))
		return NULL;
	/* otherwise made by mpi_hub_for, which is asked next */
	h = wanted ? mpi_hub_of(comm, false) : comm->hub;
	if (!h || !mpi_hub_reads(h))
		return NULL;
	/* that copy through pages in their caches as long as they are given the processors, or at the same time on their own:
	 * which may take half as long, or twice */
	either = comm->size == 2 || mpi_hub_crowded(h);
	few = either || comm->size <= MPI_HUB_FEW_RANKS;
	if (!wanted && (few ? bytes < MPI_HUB_READ_BYTES : bytes <= most))
		return NULL;
	if (!wanted && either &&
	    !mpi_hub_way_reads(h, (size_t)bytes, read == BASE_COLL_ALLGATHER_READ))
		return NULL;
	return counted(read, h);
}

struct mpi_hub *mpi_hub_for_taking(const struct mpi_plan *p, enum base_coll read,
				   struct mpi_comm *comm, MPI_Count bytes, MPI_Count above,
				   MPI_Count most)
{
	bool wanted = mpi_coll_wanted(read);
	struct mpi_hub *h;

	if (!p->now || bytes <= 0 || comm->inter || comm->size != 2 || ruled_out(read))
		return NULL;
	if (!wanted && (bytes <= above || bytes > most))
		return NULL;
	/* otherwise made by mpi_hub_for or mpi_hub_for_op, which is asked next */
	h = wanted ? mpi_hub_of(comm, false) : comm->hub;
	if (!h || !mpi_hub_reads(h) || (!wanted && mpi_hub_crowded(h)))
		return NULL;
	return counted(read, h);
}

/* Whether a hub calculates this. */
static bool folds(const struct mpi_type *type, const struct mpi_op *op)
{
	return op->predefined && type->predefined && type->dense && type->size > 0;
}

static bool is_integer(const struct mpi_type *type)
{
	return mpi_op_loop_of(mpi_op_of(MPI_BAND), type);
}

/* Does it depend on which of two operands is the first? An extreme does, of what is not a number, and of zeros of both signs. */
static bool picks(const struct mpi_type *type, const struct mpi_op *op)
{
	return !is_integer(type) && (op == mpi_op_of(MPI_MAX) || op == mpi_op_of(MPI_MIN) ||
				     op == mpi_op_of(MPI_MAXLOC) || op == mpi_op_of(MPI_MINLOC));
}

bool mpi_hub_folds_either_way(const struct mpi_type *type, const struct mpi_op *op)
{
	return folds(type, op) && !picks(type, op);
}

/* Does the result depend on the order in which all are combined? */
static bool rounds(const struct mpi_comm *comm, const struct mpi_type *type,
		   const struct mpi_op *op)
{
	return comm->size > 2 ? !is_integer(type) : picks(type, op);
}

struct mpi_hub *mpi_hub_for_op(const struct mpi_plan *p, enum base_coll hub, struct mpi_comm *comm,
			       MPI_Count count, const struct mpi_type *type,
			       const struct mpi_op *op, MPI_Count most, MPI_Count across)
{
	bool wanted = mpi_coll_wanted(hub), too_long;
	struct mpi_hub *h;
	int nodes;

	if (!p->now || comm->inter || ruled_out(hub) || count == 0 || !folds(type, op))
		return NULL;
	/* two may read it another time, if there is a hub */
	too_long = count > MPI_HUB_REDUCE / type->size;
	if (too_long && comm->size > 2)
		return NULL;
	/* the first call gives the bits of the later ones */
	h = mpi_hub_of(comm, rounds(comm, type, op));
	nodes = h ? mpi_hub_nodes(h) : 0;
	if (too_long || (nodes == 1 && count > most / type->size && !mpi_hub_crowded(h) && !wanted))
		h = NULL;
	if (nodes > 1 && !pays_across(nodes, comm, count * type->size, across, wanted))
		h = NULL;
	return counted(hub, h);
}

struct mpi_hub *mpi_hub_for_barrier(const struct mpi_plan *p, struct mpi_comm *comm)
{
	if (!p->now || ruled_out(BASE_COLL_BARRIER_HUB))
		return NULL;
	return counted(BASE_COLL_BARRIER_HUB, mpi_hub_of(comm, false));
}

/* ---- for making communicators: by messages ---------------------------------------------------------- */

/* Inside another collective, or on a side of an intercommunicator, it has the mark that is in
 * force. */
static int begin(struct mpi_plan *p, struct mpi_comm *comm, MPI_Count bytes)
{
	int rc = mpi_plan_begin(p, comm);

	if (comm->calls.nested)
		p->mark = comm->calls.mark;
	else if (!rc)
		mpi_calls_tell(p, comm, MPI_CALL_MAKE, MPI_CALL_ANY_ROOT, NULL, bytes);
	return rc;
}

int mpi_coll_barrier(struct mpi_comm *comm)
{
	struct mpi_plan p;
	int rc = begin(&p, comm, 0);

	if (!rc)
		mpi_intra_barrier(&p, comm);
	return mpi_plan_end(&p, rc);
}

int mpi_coll_last_barrier(struct mpi_comm *comm)
{
	struct mpi_plan p;

	mpi_plan_begin_last(&p);
	if (!comm->lost)
		mpi_calls_tell(&p, comm, MPI_CALL_LAST, MPI_CALL_ANY_ROOT, NULL, 0);
	mpi_intra_barrier(&p, comm);
	return mpi_plan_end(&p, MPI_SUCCESS);
}

int mpi_coll_bcast_bytes(void *buf, size_t bytes, int root, struct mpi_comm *comm)
{
	struct mpi_plan p;
	int rc = begin(&p, comm, (MPI_Count)bytes);

	if (!rc)
		rc = mpi_intra_bcast(&p, buf, (MPI_Count)bytes, mpi_bytes(), root, comm);
	return mpi_plan_end(&p, rc);
}

int mpi_coll_allgather_bytes(const void *in, void *out, size_t bytes_each, struct mpi_comm *comm)
{
	struct mpi_vec v = { .buf = out, .count = (MPI_Count)bytes_each, .type = mpi_bytes() };
	struct mpi_plan p;
	int rc = begin(&p, comm, v.count);

	if (!rc)
		rc = mpi_intra_allgather(&p, in, v.count, v.type, &v, comm);
	return mpi_plan_end(&p, rc);
}

static int allreduce_words(void *word, int n, MPI_Datatype type, MPI_Op op, struct mpi_comm *comm)
{
	struct mpi_plan p;
	int rc = begin(&p, comm, n);

	if (!rc)
		rc = mpi_intra_allreduce(&p, MPI_IN_PLACE, word, n, mpi_type_of(type),
					 mpi_op_of(op), comm);
	return mpi_plan_end(&p, rc);
}

int mpi_coll_allreduce_and(uint64_t *word, int n, struct mpi_comm *comm)
{
	return allreduce_words(word, n, MPI_UINT64_T, MPI_BAND, comm);
}

int mpi_coll_allreduce_max(int64_t *word, int n, struct mpi_comm *comm)
{
	return allreduce_words(word, n, MPI_INT64_T, MPI_MAX, comm);
}
