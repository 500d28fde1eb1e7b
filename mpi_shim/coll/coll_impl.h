/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What the collectives share: checks of arguments, temporary buffers, blocks of a user's vector,
 * and the algorithms inside one group, from which those of intercommunicators are made.
 *
 * Order and tags: all ranks call the collectives of a communicator in the same order, and every
 * algorithm sends the messages between two ranks in the order the other receives them. So one
 * tag for each plan is enough (schedule.h).
 */
#ifndef MPI_SHIM_COLL_IMPL_H
#define MPI_SHIM_COLL_IMPL_H

#include <assert.h>
#include <string.h>

#include "mpi_shim/coll/algorithms.h"
#include "mpi_shim/coll/calls.h"
#include "mpi_shim/coll/coll.h"
#include "mpi_shim/coll/shm/shmcoll.h"
#include "mpi_shim/coll/op.h"
#include "mpi_shim/coll/schedule.h"
#include "mpi_shim/core/world.h"

/* ---- which algorithm ------------------------------------------------------------------------- */

/* What PTL_MPI_COLL says. */
extern struct mpi_coll_setting mpi_coll_setting;

/* PTL_MPI_COLL asks for it. */
static inline bool mpi_coll_wanted(enum mpi_algorithm c)
{
	return mpi_coll_setting.wanted >> c & 1;
}

/* Of the algorithms that `can` do what is called, the one that is wanted, else `best`; it is
 * counted. */
static inline enum mpi_algorithm mpi_coll_choose(uint64_t can, enum mpi_algorithm best)
{
	uint64_t wanted = mpi_coll_setting.wanted & can;
	enum mpi_algorithm c = wanted ? (enum mpi_algorithm)__builtin_ctzll(wanted) : best;

	mpi_coll_counts[c]++;
	return c;
}

/* The first error is kept. */
static inline int mpi_first(int a, int b)
{
	return a ? a : b;
}

/*
 * More processes on this machine than processors: then a message costs a switch of processes,
 * and the algorithm with the fewest messages wins over the one with the fewest rounds. The same
 * on all ranks.
 */
bool mpi_coll_oversubscribed(void);
/* What ranks of one machine do among themselves can be chosen there, wherever the others are. */
bool mpi_coll_oversubscribed_here(void);

/* Peers that mpi_vec_exchange() has messages for at a time: enough to keep all busy, few enough
 * for event queues. */
#define MPI_EXCHANGES 32

/*
 * Where a collective is started and ended in calls of their own, ranks compute in between and
 * pass nothing on. So up to so many ranks send what they have straight to all that need it, in
 * the first step, and none waits for another that has started as well; what is longer than
 * MPI_DIRECT_BYTES is worth fewer messages. (An alltoall in place swaps one block after the
 * other all the same, and a reduction whose operation does not commute goes by rank 0.)
 */
#define MPI_DIRECT_RANKS 8
#define MPI_DIRECT_BYTES (16 << 10)

/* Of `count` elements, or more than any. */
static inline MPI_Count mpi_coll_bytes(MPI_Count count, const struct mpi_type *type)
{
	MPI_Count bytes;

	return __builtin_mul_overflow(count, type->size, &bytes) ? INT64_MAX : bytes;
}

static inline bool mpi_coll_directly(const struct mpi_schedule *p, const struct mpi_comm *comm,
				     MPI_Count bytes)
{
	return !p->now && comm->size <= MPI_DIRECT_RANKS && bytes <= MPI_DIRECT_BYTES;
}

/* The same where each rank has a block for each other, or for all, of so many bytes: then it
 * costs messages, but moves no more; as many ranks as exchange blocks at once. */
#define MPI_DIRECT_BLOCK (4 << 10)

static inline bool mpi_coll_blocks_directly(const struct mpi_schedule *p,
					    const struct mpi_comm *comm, MPI_Count block)
{
	return !p->now && (comm->size <= MPI_DIRECT_RANKS ||
			   (comm->size <= MPI_EXCHANGES && block >= MPI_DIRECT_BLOCK));
}

/* ---- trees ----------------------------------------------------------------------------------- */

#define MPI_TREE_CHILDREN 96

/*
 * A rank's place in the tree over all ranks. Counted from the root on, the ranks below this one
 * follow it, those in and below the first child first: so the order of ranks can be kept.
 */
struct mpi_tree {
	int parent; /* rank in the communicator; of the root: MPI_PROC_NULL */
	int n;
	int child[MPI_TREE_CHILDREN]; /* ranks in the communicator */
	int below[MPI_TREE_CHILDREN]; /* ranks in and below each */
};

/* Of so many branches: 2 make a binomial tree, more a flatter one, and every level is a wait. */
void mpi_tree_make(struct mpi_tree *t, int root, int branches, const struct mpi_comm *comm);
/* Of a tree where processors are short; up to MPI_DIRECT_RANKS are all below the root. */
#define MPI_TREE_BRANCHES 8
static_assert(MPI_TREE_BRANCHES >= MPI_DIRECT_RANKS, "a tree of few ranks is flat");

/* ---- checks: MPI_SUCCESS or mpi_fail --------------------------------------------------------- */

/* A buffer that is read or written here; `name` is the parameter's. MPI_IN_PLACE is refused, unless
 * the buffer is empty. */
int mpi_coll_check(const void *buf, MPI_Count count, const struct mpi_type *type, const char *name);
/* Two buffers of which one is written must not begin with the same byte, unless one is empty. */
int mpi_coll_check_alias(const void *a, MPI_Count a_count, const struct mpi_type *a_type,
			 const void *b, MPI_Count b_count, const struct mpi_type *b_type);
/* `root` is a rank, or in an intercommunicator MPI_ROOT or MPI_PROC_NULL. */
int mpi_coll_check_root(int root, const struct mpi_comm *comm);
int mpi_coll_refuse_inter(const struct mpi_comm *comm);

/* ---- packed forms ---------------------------------------------------------------------------- */

/* Some elements of a buffer as the bytes of a message: in place if they lie so, else in a copy. */
struct mpi_packed {
	char *data;
	MPI_Count bytes;
	bool direct;
};

/* With `fill` the copy has the data, else it is to be received into. MPI_SUCCESS or mpi_fail. */
int mpi_packed_init(struct mpi_schedule *p, struct mpi_packed *k, const void *buf, MPI_Count count,
		    struct mpi_type *type, bool fill);
/* After receiving: back into their places, if they are not there. */
void mpi_packed_store(struct mpi_schedule *p, const struct mpi_packed *k, void *buf,
		      MPI_Count count, struct mpi_type *type);

/* ---- vectors of blocks, one for each rank ---------------------------------------------------- */

struct mpi_vec {
	char *buf;
	MPI_Count count; /* of every block, if `counts` is NULL */
	const MPI_Count *counts;
	const MPI_Aint
		*displs; /* in extents, with `types` in bytes; NULL: blocks follow each other */
	struct mpi_type *type;
	struct mpi_type *const *types; /* NULL: all blocks have `type` */
	bool same;                     /* one block, of which each has to get a copy */
};

static inline struct mpi_type *mpi_vec_type(const struct mpi_vec *v, int i)
{
	return v->types ? v->types[i] : v->type;
}

static inline MPI_Count mpi_vec_count(const struct mpi_vec *v, int i)
{
	return v->counts ? v->counts[i] : v->count;
}

static inline char *mpi_vec_at(const struct mpi_vec *v, int i)
{
	if (v->types)
		return v->buf + v->displs[i];
	if (v->same)
		return v->buf;
	return v->buf + (v->displs ? v->displs[i] : i * v->count) * v->type->extent;
}

static inline MPI_Count mpi_vec_bytes(const struct mpi_vec *v, int i)
{
	return mpi_vec_count(v, i) * mpi_vec_type(v, i)->size;
}

/* The bytes of the longest of n blocks. */
static inline MPI_Count mpi_vec_longest(const struct mpi_vec *v, int n)
{
	MPI_Count most = mpi_vec_bytes(v, 0);

	for (int i = 1; i < n && v->counts; i++)
		most = mpi_vec_bytes(v, i) > most ? mpi_vec_bytes(v, i) : most;
	return most;
}

/* Checks what is significant of n blocks (mpi_coll_check of each). */
int mpi_vec_check(const struct mpi_vec *v, int n, const char *name);
/*
 * Whether a rank's own data lie where block i is, byte for byte: programs older than MPI_IN_PLACE
 * have that for it. Of an empty block it does not matter.
 */
bool mpi_coll_in_its_place(const void *buf, MPI_Count count, const struct mpi_type *type,
			   const struct mpi_vec *v, int i);

/* A rank's block for itself to where it receives it, if that is another place. */
void mpi_vec_copy_own(struct mpi_schedule *p, const struct mpi_vec *send,
		      const struct mpi_vec *recv, int rank);
/* Every rank's blocks to all ranks that can be sent to, several at once, but not the block for
 * the rank itself; empty blocks do not travel. */
void mpi_vec_exchange(struct mpi_schedule *p, const struct mpi_vec *sends,
		      const struct mpi_vec *recvs, struct mpi_comm *comm);

/* ---- inside a group -------------------------------------------------------------------------- */
/*
 * `comm` is an intracommunicator and the arguments are checked. The send buffer is MPI_IN_PLACE
 * where the public function allows it. What they return went wrong in making the plan.
 */

/*
 * The hub, if it is the way for a blocking collective in which each rank gives so many bytes,
 * `most` at most where each rank has a processor, or on several nodes `across` (0: not there),
 * unless `hub` is wanted; NULL: messages. The same on all ranks.
 */
struct mpi_shmcoll *mpi_shmcoll_for(const struct mpi_schedule *p, enum mpi_algorithm shmcoll,
				    struct mpi_comm *comm, MPI_Count bytes, MPI_Count most,
				    MPI_Count across);
/* The same for one in which each rank reads out of the others' memory what is too long for
 * shared memory: of few ranks, and where processors are short, blocks of MPI_SHMCOLL_READ_BYTES and
 * more, else of more than `most`. */
struct mpi_shmcoll *mpi_shmcoll_for_reading(const struct mpi_schedule *p, enum mpi_algorithm read,
					    struct mpi_comm *comm, MPI_Count bytes, MPI_Count most);
/* The same for two ranks of which one has so many bytes for the other, or each: more than
 * `above`, `most` at most. */
struct mpi_shmcoll *mpi_shmcoll_for_taking(const struct mpi_schedule *p, enum mpi_algorithm read,
					   struct mpi_comm *comm, MPI_Count bytes, MPI_Count above,
					   MPI_Count most);
/* Whether a hub calculates this, and either operand of two may be the first. */
bool mpi_shmcoll_folds_in_any_order(const struct mpi_type *type, const struct mpi_op *op);
struct mpi_shmcoll *mpi_shmcoll_for_op(const struct mpi_schedule *p, enum mpi_algorithm shmcoll,
				       struct mpi_comm *comm, MPI_Count count,
				       const struct mpi_type *type, const struct mpi_op *op,
				       MPI_Count most, MPI_Count across);

struct mpi_shmcoll *mpi_shmcoll_for_barrier(const struct mpi_schedule *p, struct mpi_comm *comm);

void mpi_intra_barrier(struct mpi_schedule *p, struct mpi_comm *comm);
int mpi_intra_bcast(struct mpi_schedule *p, void *buf, MPI_Count count, struct mpi_type *type,
		    int root, struct mpi_comm *comm);
/* To the root's vector from `sendbuf`; only the root's `recv` is looked at. Linear. */
void mpi_intra_gatherv(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
		       struct mpi_type *sendtype, const struct mpi_vec *recv, int root,
		       struct mpi_comm *comm);
void mpi_intra_scatterv(struct mpi_schedule *p, const struct mpi_vec *send, void *recvbuf,
			MPI_Count recvcount, struct mpi_type *recvtype, int root,
			struct mpi_comm *comm);
int mpi_intra_allgather(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			struct mpi_type *sendtype, const struct mpi_vec *recv,
			struct mpi_comm *comm);
/* A vector of n blocks (of one type) from rank 0, which has it (`have`), to the others, which
 * leave out the block `except` (-1: none). */
int mpi_vec_bcast(struct mpi_schedule *p, const struct mpi_vec *v, int n, int except, bool have,
		  struct mpi_comm *comm);
int mpi_intra_reduce(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
		     struct mpi_type *type, struct mpi_op *op, int root, struct mpi_comm *comm);
/* Whether a reduction is of a kind to be divided among the ranks, and whether it is long enough
 * as well. */
bool mpi_coll_divisible(MPI_Count count, const struct mpi_op *op, const struct mpi_comm *comm);
bool mpi_coll_in_parts(MPI_Count count, const struct mpi_type *type, const struct mpi_op *op,
		       const struct mpi_comm *comm);
int mpi_intra_allreduce(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
			struct mpi_type *type, struct mpi_op *op, struct mpi_comm *comm);

/* ---- between two groups ---------------------------------------------------------------------- */

void mpi_inter_barrier(struct mpi_schedule *p, struct mpi_comm *comm);
int mpi_inter_bcast(struct mpi_schedule *p, void *buf, MPI_Count count, struct mpi_type *type,
		    int root, struct mpi_comm *comm);
void mpi_inter_gatherv(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
		       struct mpi_type *sendtype, const struct mpi_vec *recv, int root,
		       struct mpi_comm *comm);
void mpi_inter_scatterv(struct mpi_schedule *p, const struct mpi_vec *send, void *recvbuf,
			MPI_Count recvcount, struct mpi_type *recvtype, int root,
			struct mpi_comm *comm);
int mpi_inter_allgatherv(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			 struct mpi_type *sendtype, const struct mpi_vec *recv,
			 struct mpi_comm *comm);
int mpi_inter_reduce(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
		     struct mpi_type *type, struct mpi_op *op, int root, struct mpi_comm *comm);
int mpi_inter_allreduce(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
			struct mpi_type *type, struct mpi_op *op, struct mpi_comm *comm);
/* The remote group's result, `recv` says how it is divided among the local ranks. */
int mpi_inter_reduce_scatter(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
			     const struct mpi_vec *parts, struct mpi_op *op, struct mpi_comm *comm);

#endif
