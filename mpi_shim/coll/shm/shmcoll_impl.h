/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Internals of the shared-memory collective area ("the area"): its layout, and what the files
 * that make it, wait in it and compute with it share. See shmcoll.h.
 *
 * Only the files of this folder include it. Functions that await something may block; while
 * they do they make progress, and they find out that a rank has died. They return MPI_SUCCESS
 * or the class of the error, with its text kept (mpi_fail()). `rc` as a parameter is an earlier
 * error that the others must learn of.
 */
#ifndef MPI_SHIM_SHMCOLL_IMPL_H
#define MPI_SHIM_SHMCOLL_IMPL_H

#include <assert.h>
#include <portals3.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/tuner.h"
#include "mpi_shim/coll/shm/shmcoll.h"

#define MPI_SHMCOLL_DEPTH       32
#define MPI_SHMCOLL_SMALL_SLOTS 512 /* small operations that a rank may run ahead */
#define MPI_SHMCOLL_SMALL_SLOT  8   /* bytes of data in one */
#define MPI_SHMCOLL_FEW         48  /* bytes of data on the flag's cache line */
#define MPI_SHMCOLL_STRIDE                                                                         \
	(MPI_SHMCOLL_BYTES + 64) /* so that equal cells do not share cache sets */
#define MPI_SHMCOLL_LONGS 2      /* cells for long data of each rank, used in turn */
/* Bytes of a cell for long data. Shorter segments stay in nearer caches. Only alltoalls and
 * reduce-scatters fill a cell, as they have the most barriers, and only where a barrier costs
 * process switches. */
#define MPI_SHMCOLL_ROOM (3 * MPI_SHMCOLL_LONG)
/* so that equal cells do not share cache sets */
#define MPI_SHMCOLL_LONG_STRIDE (MPI_SHMCOLL_ROOM + 64)
/* Up to this many bytes of each rank are placed next to those of the others, so that they cover
 * few pages. */
#define MPI_SHMCOLL_DENSE    512
#define MPI_SHMCOLL_BRANCHES 32 /* of the tree of node leaders */
/* Words of a node leader, for up to 65536 nodes. It has one for its parent and one for each
 * child in the tree. The other algorithms need fewer: a word for each round, or for each of a
 * few nodes. */
#define MPI_SHMCOLL_WORDS (1 + 4 * (MPI_SHMCOLL_BRANCHES - 1))
/* Classes of long blocks by length: powers of two from MPI_SHMCOLL_READ_BYTES on. Allgathers
 * and alltoalls have classes of their own. */
#define MPI_SHMCOLL_PATH_LENGTHS 6
#define MPI_SHMCOLL_PATHS        (2 * MPI_SHMCOLL_PATH_LENGTHS)

/* In an advertised number: a rank is missing, now and for ever. Above any number. */
#define MPI_SHMCOLL_MISSING (UINT64_C(1) << 63)
/* In an advertised number: memory has run out, and no data come with this one number. With both
 * bits: ranks disagree, for ever. */
#define MPI_SHMCOLL_NO_MEMORY (UINT64_C(1) << 62)

/* An advertised number is followed by this many bits of the mark (calls.h) of its call. The
 * rest of 62 bits lasts for weeks of only the shortest operations. Then operations fail, as the
 * number looks like MPI_SHMCOLL_NO_MEMORY. */
#define MPI_SHMCOLL_MARK_BITS 16

/* Round bytes up to whole cache lines. */
static inline size_t mpi_shmcoll_lines(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

/* This rank is out of memory, or has heard that another is. */
static inline bool mpi_shmcoll_no_memory(int rc)
{
	return rc == MPI_ERR_NO_MEM || rc == MPI_ERR_OTHER;
}

/* ---- in shared memory: others' writes are only trusted to be numbers or data ----------------- */

/* Arrivals in the lower half, and the sum of the marks that came with them in the upper half.
 * So the last rank to arrive sees whether all agree without a read of each mark. */
struct mpi_shmcoll_count {
	_Alignas(64) _Atomic uint64_t n;
};

struct mpi_shmcoll_slot {
	_Alignas(64) _Atomic uint64_t left;    /* last operation that this rank has left */
	_Atomic uint32_t asleep;               /* it sleeps: send it a message */
	_Atomic uint64_t calls;                /* number of its last collective */
	_Atomic uint64_t call[MPI_CALLS_KEPT]; /* the last ones, by number */
};

static_assert(sizeof(struct mpi_shmcoll_slot) == 64, "a slot has a cache line of its own");

struct mpi_shmcoll_flag {
	_Alignas(64) _Atomic uint64_t number;
	uint64_t paths;             /* of local rank 0, in barriers of long blocks: path.c */
	char data[MPI_SHMCOLL_FEW]; /* aligned for any type */
};

static_assert(sizeof(struct mpi_shmcoll_flag) == 64, "a flag has a cache line of its own");

/* Data of ranks that need not wait for the others. Four lie on a cache line, so that a rank
 * that is behind gets several at once. */
struct mpi_shmcoll_small_slot {
	_Alignas(16) _Atomic uint64_t number;
	char data[MPI_SHMCOLL_SMALL_SLOT];
};

static_assert(sizeof(struct mpi_shmcoll_small_slot) == 16, "small slots share cache lines");

/* Then slots[n], cpus[n], flags[DEPTH][n], results[DEPTH], notes[n][SMALL_SLOTS],
 * places[DEPTH][n + 1]; the last cell is the result's; longs[LONGS][n + 1] likewise. */
struct mpi_shmcoll_shared {
	_Alignas(64) uint64_t token;
	_Alignas(64) _Atomic uint64_t release;  /* the last operation that all may leave */
	_Alignas(64) _Atomic uint32_t sleepers; /* ranks that sleep, or are about to */
	struct mpi_shmcoll_count count[MPI_SHMCOLL_DEPTH]; /* arrivals of ranks, never reset */
};

/* ---- in this process ------------------------------------------------------------------------- */

/* Node of a rank, and its local rank there. */
struct mpi_shmcoll_home {
	int node, slot;
};

struct mpi_shmcoll_paths {
	/* of each class: through pages or by reads; ns for 1024 bytes */
	struct base_tuner of[MPI_SHMCOLL_PATHS];
	uint64_t now, next;      /* a bit for each class: blocks are read */
	struct base_tuner *path; /* of the current operation, on local rank 0; NULL: no choice */
	uint64_t since, waited;  /* 0: the operation is not timed */
};

struct mpi_shmcoll {
	struct mpi_comm *comm;           /* not referenced: it owns the area */
	uint64_t number;                 /* of the current operation on this node */
	uint64_t mark;                   /* low bits of what is advertised with the number */
	const _Atomic uint64_t *awaited; /* awaited, while others' calls are compared; or NULL */
	uint64_t crossing;               /* number of the current barrier between nodes */
	uint64_t left;                   /* all others are known to have left this operation */
	bool oversubscribed;             /* fewer processors than ranks: the last to arrive leads */
	bool spin;                       /* every rank has a processor */
	uint32_t processors;             /* of this machine */
	bool fence; /* a waker must order its write and its read of sleepers itself */
	bool reads; /* every rank can read the memory of all others */
	pid_t pid;  /* this process, for CMA reads */
	int n, me;  /* ranks on this node */
	int *rank;  /* their ranks in the communicator */
	int nodes, node;
	int *leader_of;                /* node leaders: ranks in the communicator */
	struct mpi_shmcoll_home *home; /* of each rank of the communicator */
	MPI_Count *counts;             /* for each node, during an operation; nodes.c */
	MPI_Aint *displs;
	struct mpi_comm leaders;           /* of all nodes, on a node leader; nodes.c */
	uint64_t patience_ns;              /* how long a wait polls before it sleeps */
	struct mpi_shmcoll_shared *shared; /* NULL if n is 1 */
	size_t bytes;
	struct mpi_shmcoll_slot *slots;
	_Atomic int32_t *cpus; /* processor of each rank at its last arrival, if oversubscribed */
	struct mpi_shmcoll_flag *flags, *results;
	struct mpi_shmcoll_small_slot *notes;
	char *places, *longs;
	bool wide;                             /* the current operation uses a cell for long data */
	bool note;                             /* it uses a small slot */
	int long_turn;                         /* index of the cell for long data used last */
	uint64_t long_left[MPI_SHMCOLL_LONGS]; /* the operation that used each last */
	/* values of the counts when no rank is missing and all agree */
	uint64_t arrivals[MPI_SHMCOLL_DEPTH];
	struct mpi_shmcoll_paths paths;
	struct mpi_shmcoll_slot own_slot; /* when this rank is alone on its node */
	struct mpi_shmcoll_flag own_flags[MPI_SHMCOLL_DEPTH];
	ptl_handle_me_t me_handle;
	_Atomic uint64_t word[MPI_SHMCOLL_WORDS]; /* leaders of other nodes put numbers here */
};

/* ---- node_barrier.c -------------------------------------------------------------------------- */

/* Begin the next operation. `wide`: its data lie in one of a few cells for long data, for which
 * all ranks must wait. */
static inline void mpi_shmcoll_begin(struct mpi_shmcoll *h, bool wide)
{
	h->number++;
	h->wide = wide;
	h->note = false;
}

/* The same for an operation in which some ranks go on without the others; `bytes` of each
 * rank. */
static inline void mpi_shmcoll_begin_ahead(struct mpi_shmcoll *h, size_t bytes)
{
	mpi_shmcoll_begin(h, bytes > MPI_SHMCOLL_BYTES);
	h->note = bytes <= MPI_SHMCOLL_SMALL_SLOT;
}

/* The cell of local rank i, if all ranks have `bytes` bytes; i = n is the result's. Cells that
 * are used in turn let ranks run ahead. Where all ranks wait for each other, a few cells for
 * long data stay in the caches. */
char *mpi_shmcoll_cell(const struct mpi_shmcoll *h, int i, size_t bytes);
/* Wait until this rank's cell is free: all ranks have left the operation that used it before. */
int mpi_shmcoll_reserve(struct mpi_shmcoll *h);
/* Wait for the next cell for long data, which then becomes the current one (long_turn); all
 * ranks call it. mpi_shmcoll_left_long() records that the current operation is the last one to
 * use the cell of a turn. */
int mpi_shmcoll_reserve_long(struct mpi_shmcoll *h);
void mpi_shmcoll_left_long(struct mpi_shmcoll *h, int turn);
/* As mpi_shmcoll_cell(), for a cell for long data. */
char *mpi_shmcoll_long_cell(const struct mpi_shmcoll *h, int turn, int i, size_t bytes);

/* Raise this rank's flag: a rank that sees it also sees what this rank has written. With an
 * error the flag says that a rank or memory is missing here. A rank that may sleep must be
 * woken then, or by leaving. */
void mpi_shmcoll_raise(struct mpi_shmcoll *h, int rc);
int mpi_shmcoll_await_flag(struct mpi_shmcoll *h, int i);
int mpi_shmcoll_await_all(struct mpi_shmcoll *h);
/* Write the paths for long blocks next to this rank's flag, before it is raised. They hold
 * after the next barrier of such blocks. */
void mpi_shmcoll_advertise_paths(struct mpi_shmcoll *h);
/* Take over the paths of local rank 0; all flags have been seen. */
void mpi_shmcoll_hear_paths(struct mpi_shmcoll *h);
/* This rank needs nothing of the current operation any more. Returns rc. */
int mpi_shmcoll_leave(struct mpi_shmcoll *h, int rc);

/* Whether one rank acts for all at a barrier. Then mpi_shmcoll_arrive() is true at that rank,
 * which must release the others; the others await the release. */
bool mpi_shmcoll_has_leader(const struct mpi_shmcoll *h);
bool mpi_shmcoll_arrive(struct mpi_shmcoll *h, int *rc);
void mpi_shmcoll_release(struct mpi_shmcoll *h, int rc);
int mpi_shmcoll_await_release(struct mpi_shmcoll *h);
/* Wait until all ranks of the node are here. */
int mpi_shmcoll_node_barrier(struct mpi_shmcoll *h);

/* ---- shmcoll.c: up to MPI_SHMCOLL_BYTES ------------------------------------------------------ */

int mpi_shmcoll_reduce_short(struct mpi_shmcoll *h, int rc, const void *in, void *out,
			     MPI_Count count, struct mpi_type *type, struct mpi_op *op, int root);
int mpi_shmcoll_allreduce_short(struct mpi_shmcoll *h, const void *in, void *out, MPI_Count count,
				struct mpi_type *type, struct mpi_op *op);

/* ---- blocks.c -------------------------------------------------------------------------------- */

/* Check that a block is sent and received with as many bytes. Returns MPI_SUCCESS or
 * mpi_fail(). */
int mpi_shmcoll_check_equal(MPI_Count sent, MPI_Count received);
/* An alltoall whose blocks may differ, without the own blocks. Each rank i has sent[i] bytes
 * for this one, and no block is longer than `longest`. With `sent` NULL all blocks are equal,
 * and the own one is copied. */
int mpi_shmcoll_alltoall_segments(struct mpi_shmcoll *h, int rc, const struct mpi_vec *send,
				  const struct mpi_vec *recv, const uint64_t *sent,
				  MPI_Count longest);
/* Number of barriers of that alltoall; `longest` must not be 0. */
uint64_t mpi_shmcoll_alltoall_barriers(const struct mpi_shmcoll *h, uint64_t longest);

/* ---- read.c ---------------------------------------------------------------------------------- */

/* Test whether each rank can read the memory of all others. Called by all ranks, on one node;
 * the same result on all. */
bool mpi_shmcoll_try_reading(struct mpi_shmcoll *h);

/* ---- path.c ---------------------------------------------------------------------------------- */

void mpi_shmcoll_path_init(struct mpi_shmcoll *h);
/* The operation on blocks of so many bytes is over. */
void mpi_shmcoll_path_ended(struct mpi_shmcoll *h, size_t bytes);

/* ---- wait.c ---------------------------------------------------------------------------------- */

/* A dead rank of the communicator; -1: none is known. */
int mpi_shmcoll_failed(const struct mpi_shmcoll *h);
/* Record the error that this rank is dead. Returns MPI_ERR_PROC_ABORTED. */
int mpi_shmcoll_missing(const struct mpi_shmcoll *h, int rank);

/* Wait until *word >= least. MPI_ERR_PROC_ABORTED: a rank that could have made it so has died. */
int mpi_shmcoll_await(struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least);
/* Poll for the release, at most as long as a process switch takes. It must be awaited still. */
void mpi_shmcoll_poll_release(const struct mpi_shmcoll *h);
/* Whether this process takes part in barriers ordered by others (base_barrier_all()). */
bool mpi_shmcoll_can_order_all(void);
/* Wake the ranks that sleep, after a write that others may wait for. */
void mpi_shmcoll_wake(struct mpi_shmcoll *h);
/* Put a number into a word of the leader of a node. Makes progress and may block while the
 * queue to it is full. */
int mpi_shmcoll_put(struct mpi_shmcoll *h, int node, int word, uint64_t number);

#endif
