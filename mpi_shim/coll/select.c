/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Choice of an algorithm for a collective. It depends on PTL_MPI_COLL, on whether the machine
 * is oversubscribed, and on whether the shared-memory area can carry the collective.
 */
#include "mpi_shim/coll/coll_impl.h"

#include "mpi_shim/core/node.h"

struct mpi_coll_setting mpi_coll_setting;
uint64_t mpi_coll_counts[MPI_COLL_COUNT_];

bool mpi_coll_oversubscribed_here(void)
{
	if (mpi_coll_setting.prefer != MPI_COLL_AUTO)
		return mpi_coll_setting.prefer == MPI_COLL_MESSAGES;
	return mpi_node_short();
}

bool mpi_coll_one_node(const struct mpi_comm *comm)
{
	return !comm->others && mpi_one_node();
}

bool mpi_coll_oversubscribed(const struct mpi_comm *comm)
{
	/* jobs may see this differently, but must choose the same algorithms */
	if (comm->others)
		return false;
	if (mpi_coll_setting.prefer != MPI_COLL_AUTO)
		return mpi_coll_setting.prefer == MPI_COLL_MESSAGES;
	/* Ranks of several machines may see different numbers of processors, but must choose
	 * the same algorithms. */
	return mpi_one_node() && mpi_node_short();
}

/* Two levels are worth it from this mean number of ranks per node on. */
#define NODE_RANKS 4

/* ---- without messages ------------------------------------------------------------------------ */

static bool ruled_out(enum mpi_algorithm c)
{
	return mpi_coll_setting.ruled_out >> c & 1;
}

static struct mpi_shmcoll *counted(enum mpi_algorithm c, struct mpi_shmcoll *shmcoll)
{
	if (shmcoll)
		mpi_coll_counts[c]++;
	return shmcoll;
}

/* Whether to use two levels; there are two if some node of several has several ranks. */
static bool pays_across(int nodes, const struct mpi_comm *comm, MPI_Count bytes, MPI_Count most,
			bool wanted)
{
	if (nodes == comm->size || most == 0)
		return false;
	return wanted || (comm->size >= NODE_RANKS * nodes && bytes <= most);
}

struct mpi_shmcoll *mpi_shmcoll_for(const struct mpi_schedule *p, enum mpi_algorithm shmcoll,
				    struct mpi_comm *comm, MPI_Count bytes, MPI_Count most,
				    MPI_Count across)
{
	bool wanted = mpi_coll_wanted(shmcoll);
	struct mpi_shmcoll *h;
	int nodes;

	if (!p->now || bytes <= 0 || comm->inter || ruled_out(shmcoll))
		return NULL;
	h = mpi_shmcoll_of(comm, false);
	nodes = h ? mpi_shmcoll_nodes(h) : 0;
	/* on an oversubscribed node two copies in the caches cost less than messages, however
	 * long they are */
	if (nodes == 1 && bytes > most && !mpi_shmcoll_oversubscribed(h) && !wanted)
		h = NULL;
	if (nodes > 1 && !pays_across(nodes, comm, bytes, across, wanted))
		h = NULL;
	return counted(shmcoll, h);
}

struct mpi_shmcoll *mpi_shmcoll_for_reading(const struct mpi_schedule *p, enum mpi_algorithm read,
					    struct mpi_comm *comm, MPI_Count bytes, MPI_Count most)
{
	bool wanted = mpi_coll_wanted(read), either, few;
	struct mpi_shmcoll *h;

	if (!p->now || bytes <= 0 || comm->inter || ruled_out(read))
		return NULL;
	/* otherwise mpi_shmcoll_for makes the area; it is called next */
	h = wanted ? mpi_shmcoll_of(comm, false) : comm->shmcoll;
	if (!h || !mpi_shmcoll_reads(h))
		return NULL;
	/* Oversubscribed ranks copy through pages in their caches while they hold a processor.
	 * Two ranks copy at the same time, each on its own. Reading may take half as long, or
	 * twice. */
	either = comm->size == 2 || mpi_shmcoll_oversubscribed(h);
	few = either || comm->size <= MPI_SHMCOLL_FEW_RANKS;
	if (!wanted && (few ? bytes < MPI_SHMCOLL_READ_BYTES : bytes <= most))
		return NULL;
	if (!wanted && either &&
	    !mpi_shmcoll_path_reads(h, (size_t)bytes, read == MPI_COLL_ALLGATHER_READ))
		return NULL;
	return counted(read, h);
}

struct mpi_shmcoll *mpi_shmcoll_for_taking(const struct mpi_schedule *p, enum mpi_algorithm read,
					   struct mpi_comm *comm, MPI_Count bytes, MPI_Count above,
					   MPI_Count most)
{
	bool wanted = mpi_coll_wanted(read);
	struct mpi_shmcoll *h;

	if (!p->now || bytes <= 0 || comm->inter || comm->size != 2 || ruled_out(read))
		return NULL;
	if (!wanted && (bytes <= above || bytes > most))
		return NULL;
	/* otherwise mpi_shmcoll_for or mpi_shmcoll_for_op makes the area; it is called next */
	h = wanted ? mpi_shmcoll_of(comm, false) : comm->shmcoll;
	if (!h || !mpi_shmcoll_reads(h) || (!wanted && mpi_shmcoll_oversubscribed(h)))
		return NULL;
	return counted(read, h);
}

/* Whether the area can compute this operation. */
static bool folds(const struct mpi_type *type, const struct mpi_op *op)
{
	return op->predefined && type->predefined && type->dense && type->size > 0;
}

static bool has_bit_operations(const struct mpi_type *type)
{
	return mpi_op_loop_of(mpi_op_of(MPI_BAND), type);
}

/* Whether the result depends on which of two operands is the first. An extreme does, for a NaN
 * and for zeros of both signs. */
static bool picks(const struct mpi_type *type, const struct mpi_op *op)
{
	return !has_bit_operations(type) &&
	       (op == mpi_op_of(MPI_MAX) || op == mpi_op_of(MPI_MIN) ||
		op == mpi_op_of(MPI_MAXLOC) || op == mpi_op_of(MPI_MINLOC));
}

bool mpi_shmcoll_folds_in_any_order(const struct mpi_type *type, const struct mpi_op *op)
{
	return folds(type, op) && !picks(type, op);
}

/* Whether the result depends on the order in which all operands are combined. */
static bool prefers_rounds(const struct mpi_comm *comm, const struct mpi_type *type,
			   const struct mpi_op *op)
{
	return comm->size > 2 ? !has_bit_operations(type) : picks(type, op);
}

struct mpi_shmcoll *mpi_shmcoll_for_op(const struct mpi_schedule *p, enum mpi_algorithm shmcoll,
				       struct mpi_comm *comm, MPI_Count count,
				       const struct mpi_type *type, const struct mpi_op *op,
				       MPI_Count most, MPI_Count across)
{
	bool wanted = mpi_coll_wanted(shmcoll), too_long;
	struct mpi_shmcoll *h;
	int nodes;

	if (!p->now || comm->inter || ruled_out(shmcoll) || count == 0 || !folds(type, op))
		return NULL;
	/* two ranks may read it in a later call, if there is an area */
	too_long = count > MPI_SHMCOLL_REDUCE / type->size;
	if (too_long && comm->size > 2)
		return NULL;
	/* make the area now if needed: the first call must give the same bits as later ones */
	h = mpi_shmcoll_of(comm, prefers_rounds(comm, type, op));
	nodes = h ? mpi_shmcoll_nodes(h) : 0;
	if (too_long ||
	    (nodes == 1 && count > most / type->size && !mpi_shmcoll_oversubscribed(h) && !wanted))
		h = NULL;
	if (nodes > 1 && !pays_across(nodes, comm, count * type->size, across, wanted))
		h = NULL;
	return counted(shmcoll, h);
}

struct mpi_shmcoll *mpi_shmcoll_for_barrier(const struct mpi_schedule *p, struct mpi_comm *comm)
{
	if (!p->now || ruled_out(MPI_COLL_BARRIER_SHM))
		return NULL;
	return counted(MPI_COLL_BARRIER_SHM, mpi_shmcoll_of(comm, false));
}
