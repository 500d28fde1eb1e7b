/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Internals that the collectives share: choice of an algorithm, argument checks, temporary
 * buffers and vectors of blocks. It also declares the algorithms inside one group; those of
 * intercommunicators are built from them.
 *
 * Order and tags: all ranks call the collectives of a communicator in the same order. Every
 * algorithm sends the messages between two ranks in the order in which the other receives them.
 * So one tag per schedule is enough (schedule.h).
 *
 * Functions that take a schedule add operations to it. They block only if it is a blocking one.
 * They do not check the user's arguments; the section of checks does.
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

/* The value of PTL_MPI_COLL. */
extern struct mpi_coll_setting mpi_coll_setting;

/* PTL_MPI_COLL asks for this algorithm. */
static inline bool mpi_coll_wanted(enum mpi_algorithm c)
{
	return mpi_coll_setting.wanted >> c & 1;
}

/* Choose among the algorithms in `can`, which can do the call: the wanted one, else `best`. The
 * choice is counted. */
static inline enum mpi_algorithm mpi_coll_choose(uint64_t can, enum mpi_algorithm best)
{
	uint64_t wanted = mpi_coll_setting.wanted & can;
	enum mpi_algorithm c = wanted ? (enum mpi_algorithm)__builtin_ctzll(wanted) : best;

	mpi_coll_counts[c]++;
	return c;
}

/* Keep the first error. */
static inline int mpi_first(int a, int b)
{
	return a ? a : b;
}

/*
 * True if this machine runs more processes than it has processors. Then a message costs a
 * process switch, and the algorithm with the fewest messages beats the one with the fewest
 * rounds. The answer is the same on all ranks: over several machines and jobs it is false, unless
 * PTL_MPI_COLL says otherwise.
 */
bool mpi_coll_oversubscribed(const struct mpi_comm *comm);
/* Whether all ranks are on one node, in one job. The same on all ranks. */
bool mpi_coll_one_node(const struct mpi_comm *comm);
/* The same for this machine alone. It may decide what ranks of one machine do among themselves,
 * wherever the other ranks are. */
bool mpi_coll_oversubscribed_here(void);

/* Peers with which mpi_vec_exchange() has messages under way at a time: enough to keep all
 * busy, few enough for event queues. */
#define MPI_EXCHANGES 32

/*
 * Limits for direct sends in a collective that is started and ended by separate calls. Between
 * these calls ranks compute and forward nothing. So up to MPI_DIRECT_RANKS ranks send their
 * data straight to every rank that needs it, in the first step. No rank then waits for another
 * rank to forward data. Data longer than MPI_DIRECT_BYTES are worth fewer messages.
 *
 * Two cases still do not send directly. An alltoall in place swaps one block after the other. A
 * reduction whose operation does not commute goes through rank 0.
 */
#define MPI_DIRECT_RANKS 8
#define MPI_DIRECT_BYTES (16 << 10)

/* Bytes of `count` elements; INT64_MAX if they overflow. */
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

/* The same decision where each rank has a block of so many bytes for each other rank, or for
 * all. Sending directly then costs messages but moves no more bytes. So it applies to as many
 * ranks as exchange blocks at once. */
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
 * Position of a rank in the tree over all ranks. Counted from the root on, the ranks below this
 * one follow it, and those in and below the first child come first. So a reduction can keep the
 * order of ranks.
 */
struct mpi_tree {
	int parent; /* rank in the communicator; MPI_PROC_NULL at the root */
	int n;
	int child[MPI_TREE_CHILDREN]; /* ranks in the communicator */
	int below[MPI_TREE_CHILDREN]; /* ranks in and below each child */
};

/* Build the tree. 2 branches make a binomial tree, more make a flatter one. Every level costs a
 * wait. */
void mpi_tree_make(struct mpi_tree *t, int root, int branches, const struct mpi_comm *comm);
/* Branches of the tree used on oversubscribed machines. Up to MPI_DIRECT_RANKS ranks are all
 * directly below the root. */
#define MPI_TREE_BRANCHES 8
static_assert(MPI_TREE_BRANCHES >= MPI_DIRECT_RANKS, "a tree of few ranks is flat");

/* ---- checks: MPI_SUCCESS or mpi_fail --------------------------------------------------------- */

/* Check a buffer that is read or written here; `name` is the parameter's name. MPI_IN_PLACE is
 * refused unless the buffer is empty. */
int mpi_coll_check(const void *buf, MPI_Count count, const struct mpi_type *type, const char *name);
/* Check two buffers, one of which is written: they must not begin with the same byte, unless
 * one is empty. */
int mpi_coll_check_alias(const void *a, MPI_Count a_count, const struct mpi_type *a_type,
			 const void *b, MPI_Count b_count, const struct mpi_type *b_type);
/* `root` must be a rank; in an intercommunicator MPI_ROOT and MPI_PROC_NULL are allowed too. */
int mpi_coll_check_root(int root, const struct mpi_comm *comm);
int mpi_coll_refuse_inter(const struct mpi_comm *comm);

/* ---- packed forms ---------------------------------------------------------------------------- */

/* Elements of a buffer as the bytes of a message: the buffer itself if its bytes are
 * contiguous, else a copy. */
struct mpi_packed {
	char *data;
	MPI_Count bytes;
	bool direct;
};

/* With `fill` the copy gets the data, else it is a buffer to receive into. Returns MPI_SUCCESS
 * or mpi_fail(). */
int mpi_packed_init(struct mpi_schedule *p, struct mpi_packed *k, const void *buf, MPI_Count count,
		    struct mpi_type *type, bool fill);
/* After a receive: unpack the copy into the buffer; does nothing if there is no copy. */
void mpi_packed_store(struct mpi_schedule *p, const struct mpi_packed *k, void *buf,
		      MPI_Count count, struct mpi_type *type);

/* ---- vectors of blocks, one for each rank ---------------------------------------------------- */

struct mpi_vec {
	char *buf;
	MPI_Count count; /* of every block, if `counts` is NULL */
	const MPI_Count *counts;
	const MPI_Aint *displs; /* in extents, with `types` in bytes; NULL: blocks are adjacent */
	struct mpi_type *type;
	struct mpi_type *const *types; /* NULL: all blocks have `type` */
	bool same;                     /* one block, sent to every rank */
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

/* Check the significant fields of n blocks (mpi_coll_check() of each). */
int mpi_vec_check(const struct mpi_vec *v, int n, const char *name);
/*
 * Whether a rank's own data already lie where block i is, byte for byte. Programs older than
 * MPI_IN_PLACE use that form for it. For an empty block the answer does not matter.
 */
bool mpi_coll_in_its_place(const void *buf, MPI_Count count, const struct mpi_type *type,
			   const struct mpi_vec *v, int i);

/* Copy a rank's block for itself to where it receives it, if the two places differ. */
void mpi_vec_copy_own(struct mpi_schedule *p, const struct mpi_vec *send,
		      const struct mpi_vec *recv, int rank);
/* Send every rank's blocks to all ranks that it can send to, several at once. The rank's block
 * for itself is left out, and empty blocks are not sent. */
void mpi_vec_exchange(struct mpi_schedule *p, const struct mpi_vec *sends,
		      const struct mpi_vec *recvs, struct mpi_comm *comm);

/* ---- inside a group -------------------------------------------------------------------------- */
/*
 * `comm` is an intracommunicator and the arguments are checked. The send buffer may be
 * MPI_IN_PLACE where the public function allows it. A returned error occurred while the
 * schedule was made.
 */

/*
 * The shared-memory collective area ("the area"), if it should carry a blocking collective in
 * which each rank gives `bytes` bytes. NULL: use messages. The answer is the same on all ranks.
 *
 * On one node, with a processor for each rank, the limit is `most` bytes. On several nodes it
 * is `across` bytes; 0 means that the area has no such collective. If PTL_MPI_COLL asks for
 * `shmcoll` neither limit applies, but `across` must not be 0 there.
 */
struct mpi_shmcoll *mpi_shmcoll_for(const struct mpi_schedule *p, enum mpi_algorithm shmcoll,
				    struct mpi_comm *comm, MPI_Count bytes, MPI_Count most,
				    MPI_Count across);
/* The same for a collective in which each rank reads long blocks out of the others' memory. Few
 * ranks, and oversubscribed ones, read blocks of MPI_SHMCOLL_READ_BYTES or more. All others
 * read blocks of more than `most` bytes. */
struct mpi_shmcoll *mpi_shmcoll_for_reading(const struct mpi_schedule *p, enum mpi_algorithm read,
					    struct mpi_comm *comm, MPI_Count bytes, MPI_Count most);
/* The same for two ranks, where one has `bytes` bytes for the other, or each has. `bytes` must
 * be more than `above` and at most `most`. */
struct mpi_shmcoll *mpi_shmcoll_for_taking(const struct mpi_schedule *p, enum mpi_algorithm read,
					   struct mpi_comm *comm, MPI_Count bytes, MPI_Count above,
					   MPI_Count most);
/* Whether the area computes this operation, and either of two operands may be the first. */
bool mpi_shmcoll_folds_in_any_order(const struct mpi_type *type, const struct mpi_op *op);
struct mpi_shmcoll *mpi_shmcoll_for_op(const struct mpi_schedule *p, enum mpi_algorithm shmcoll,
				       struct mpi_comm *comm, MPI_Count count,
				       const struct mpi_type *type, const struct mpi_op *op,
				       MPI_Count most, MPI_Count across);

struct mpi_shmcoll *mpi_shmcoll_for_barrier(const struct mpi_schedule *p, struct mpi_comm *comm);

void mpi_intra_barrier(struct mpi_schedule *p, struct mpi_comm *comm);
int mpi_intra_bcast(struct mpi_schedule *p, void *buf, MPI_Count count, struct mpi_type *type,
		    int root, struct mpi_comm *comm);
/* Gather from `sendbuf` to the root's vector; `recv` is used at the root only. The algorithm is
 * linear. */
void mpi_intra_gatherv(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
		       struct mpi_type *sendtype, const struct mpi_vec *recv, int root,
		       struct mpi_comm *comm);
void mpi_intra_scatterv(struct mpi_schedule *p, const struct mpi_vec *send, void *recvbuf,
			MPI_Count recvcount, struct mpi_type *recvtype, int root,
			struct mpi_comm *comm);
int mpi_intra_allgather(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			struct mpi_type *sendtype, const struct mpi_vec *recv,
			struct mpi_comm *comm);
/* Broadcast a vector of n blocks, all of one type, from rank 0. `have` is true at rank 0, which
 * has the data. The other ranks leave out the block `except` (-1: none). */
int mpi_vec_bcast(struct mpi_schedule *p, const struct mpi_vec *v, int n, int except, bool have,
		  struct mpi_comm *comm);
int mpi_intra_reduce(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
		     struct mpi_type *type, struct mpi_op *op, int root, struct mpi_comm *comm);
/* Whether a reduction is of a kind that can be divided among the ranks; mpi_coll_in_parts()
 * also asks whether it is long enough. */
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
/* Give the local ranks the remote group's result, divided as `parts` says. */
int mpi_inter_reduce_scatter(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
			     const struct mpi_vec *parts, struct mpi_op *op, struct mpi_comm *comm);

#endif
