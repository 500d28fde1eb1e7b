/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What a hub is made of, for the files that make it, wait in it and work with it. See shmcoll.h.
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
#define MPI_SHMCOLL_SMALL_SLOTS 512 /* operations with a few bytes that can be ahead of others */
#define MPI_SHMCOLL_SMALL_SLOT  8   /* their bytes */
#define MPI_SHMCOLL_FEW         48  /* bytes that lie on the line of the flag */
#define MPI_SHMCOLL_STRIDE                                                                         \
	(MPI_SHMCOLL_BYTES + 64) /* so that equal places do not share cache sets */
#define MPI_SHMCOLL_LONGS 2      /* places for long data, taken in turn */
/* A place for long data. Shorter pieces stay in nearer caches; only alltoalls and
 * reduce-scatters, which meet most often, fill it, and only where to meet costs switches of
 * processes. */
#define MPI_SHMCOLL_ROOM (3 * MPI_SHMCOLL_LONG)
/* so that equal places do not share cache sets */
#define MPI_SHMCOLL_LONG_STRIDE (MPI_SHMCOLL_ROOM + 64)
/* Up to so many bytes of each rank lie next to those of the others in such a place, on few
 * pages. */
#define MPI_SHMCOLL_DENSE    512
#define MPI_SHMCOLL_BRANCHES 32 /* of the tree of masters */
/* Of a master, for up to 65536 nodes: its parent and children in the tree, which are more than
 * rounds, or few nodes. */
#define MPI_SHMCOLL_WORDS (1 + 4 * (MPI_SHMCOLL_BRANCHES - 1))
/* Classes of long blocks: lengths from MPI_SHMCOLL_READ_BYTES on by powers of two, of allgathers
 * and alltoalls. */
#define MPI_SHMCOLL_PATH_LENGTHS 6
#define MPI_SHMCOLL_PATHS        (2 * MPI_SHMCOLL_PATH_LENGTHS)

/* In a number that is told: a rank is missing, now and for ever. It is more than any number. */
#define MPI_SHMCOLL_MISSING (UINT64_C(1) << 63)
/* The same of one number: memory has run out, and there are no data with it. Both: ranks disagree,
 * for ever. */
#define MPI_SHMCOLL_NO_MEMORY (UINT64_C(1) << 62)

/* A number that is told is followed by this many bits of the mark (calls.h) of the call it belongs
 * to. What is left of 62 bits lasts for weeks of nothing but the shortest operations; after that
 * they end in an error, as it looks like MPI_SHMCOLL_NO_MEMORY. */
#define MPI_SHMCOLL_MARK_BITS 16

/* So many bytes, on cache lines of their own. */
static inline size_t mpi_shmcoll_lines(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

/* What this rank lacks, or has heard that another does. */
static inline bool mpi_shmcoll_no_memory(int rc)
{
	return rc == MPI_ERR_NO_MEM || rc == MPI_ERR_OTHER;
}

/* ---- in shared memory: what others write is not trusted to be more than a number or data ----- */

/* Arrivals in the lower half; the sum of the marks that came with them in the upper one, so that
 * the last rank to arrive sees without a look at each whether all agree. */
struct mpi_shmcoll_count {
	_Alignas(64) _Atomic uint64_t n;
};

struct mpi_shmcoll_slot {
	_Alignas(64) _Atomic uint64_t left;    /* operations that this rank has left */
	_Atomic uint32_t asleep;               /* it is to be sent something */
	_Atomic uint64_t calls;                /* how many collectives it has called so far */
	_Atomic uint64_t call[MPI_CALLS_KEPT]; /* the last ones, by number */
};

static_assert(sizeof(struct mpi_shmcoll_slot) == 64, "a seat has a cache line of its own");

struct mpi_shmcoll_flag {
	_Alignas(64) _Atomic uint64_t number;
	uint64_t paths;             /* of local rank 0, where long blocks meet: path.c */
	char data[MPI_SHMCOLL_FEW]; /* aligned for any type */
};

static_assert(sizeof(struct mpi_shmcoll_flag) == 64, "a flag has a cache line of its own");

/* What ranks that need not wait give the others: four on a cache line, so that who is behind
 * gets several at once. */
struct mpi_shmcoll_small_slot {
	_Alignas(16) _Atomic uint64_t number;
	char data[MPI_SHMCOLL_SMALL_SLOT];
};

static_assert(sizeof(struct mpi_shmcoll_small_slot) == 16, "notes share cache lines");

/* Then seats[n], cpus[n], flags[DEPTH][n], results[DEPTH], notes[n][NOTES], places[DEPTH][n +
 * 1]; the last place is the result's; longs[LONGS][n + 1] likewise. */
struct mpi_shmcoll_shared {
	_Alignas(64) uint64_t token;
	_Alignas(64) _Atomic uint64_t release;  /* the last operation that all may leave */
	_Alignas(64) _Atomic uint32_t sleepers; /* ranks that are asleep, or nearly */
	struct mpi_shmcoll_count count[MPI_SHMCOLL_DEPTH]; /* arrivals of ranks, ever */
};

/* ---- in this process ------------------------------------------------------------------------- */

/* A rank's node and its number there. */
struct mpi_shmcoll_home {
	int node, slot;
};

struct mpi_shmcoll_paths {
	/* of each class, through pages or to read; what 1024 bytes take, in ns */
	struct base_tuner of[MPI_SHMCOLL_PATHS];
	uint64_t now, next; /* a bit for each class: blocks are read */
	struct base_tuner
		*path; /* of the operation under way, on local rank 0; NULL: it has no choice */
	uint64_t since, waited; /* 0: it is not timed */
};

struct mpi_shmcoll {
	struct mpi_comm *comm;           /* not referenced: it has the hub */
	uint64_t number;                 /* of the operation under way on this node */
	uint64_t mark;                   /* what follows the number */
	const _Atomic uint64_t *awaited; /* for so long that the others are looked at; or NULL */
	uint64_t crossing;               /* of the barrier under way between nodes */
	uint64_t left;                   /* all others are known to have left this operation */
	bool oversubscribed; /* fewer processors than ranks: the last to arrive is the master */
	bool spin;           /* a processor for every rank */
	uint32_t processors; /* of this machine */
	bool fence;          /* who wakes others has to order its write and its look itself */
	bool reads;          /* all can read each other's memory */
	pid_t pid;           /* this process, for that */
	int n, me;           /* ranks on this node */
	int *rank;           /* their ranks in the communicator */
	int nodes, node;
	int *master;                   /* rank in the communicator of each node's first one */
	struct mpi_shmcoll_home *home; /* of each rank of the communicator */
	MPI_Count *counts;             /* for each node, while an operation uses them; nodes.c */
	MPI_Aint *displs;
	struct mpi_comm leaders; /* on a master: those of all nodes, ranked as these; nodes.c */
	uint64_t patience_ns;    /* how long a wait goes on before it sleeps */
	struct mpi_shmcoll_shared *shared; /* NULL if n is 1 */
	size_t bytes;
	struct mpi_shmcoll_slot *slots;
	_Atomic int32_t
		*cpus; /* the processor on which each rank arrived last, if they are crowded */
	struct mpi_shmcoll_flag *flags, *results;
	struct mpi_shmcoll_small_slot *notes;
	char *places, *longs;
	bool wide;                             /* the operation under way has a place of those */
	bool note;                             /* it goes by notes */
	int long_turn;                         /* the place for long data used last */
	uint64_t long_left[MPI_SHMCOLL_LONGS]; /* the operation that used each last */
	/* what counts come to if no rank is missing and all agree */
	uint64_t arrivals[MPI_SHMCOLL_DEPTH];
	struct mpi_shmcoll_paths paths;
	struct mpi_shmcoll_slot own_slot; /* where there is nobody to share with */
	struct mpi_shmcoll_flag own_flags[MPI_SHMCOLL_DEPTH];
	ptl_handle_me_t me_handle;
	_Atomic uint64_t word[MPI_SHMCOLL_WORDS]; /* masters of other nodes put numbers here */
};

/* ---- meet.c ---------------------------------------------------------------------------------- */

/* The next operation; `wide`: its data lie in one of a few wide places, for which all ranks have
 * to wait. */
static inline void mpi_shmcoll_begin(struct mpi_shmcoll *h, bool wide)
{
	h->number++;
	h->wide = wide;
	h->note = false;
}

/* The same for one from which some ranks go on without the others, with so many bytes of each
 * rank. */
static inline void mpi_shmcoll_begin_ahead(struct mpi_shmcoll *h, size_t bytes)
{
	mpi_shmcoll_begin(h, bytes > MPI_SHMCOLL_BYTES);
	h->note = bytes <= MPI_SHMCOLL_SMALL_SLOT;
}

/* Where the data of local rank i lies, if all ranks have `bytes` of them; those of rank n are
 * the result. Places that are taken in turn let ranks run ahead; where all meet, few wide ones
 * stay in the caches. */
char *mpi_shmcoll_cell(const struct mpi_shmcoll *h, int i, size_t bytes);
/* Waits until this rank's place is free: everybody has left the operation that used it before. */
int mpi_shmcoll_reserve(struct mpi_shmcoll *h);
/* The same of the next place for long data, by all ranks, whose turn that is then; and that the
 * operation under way is the last one that uses the place of a turn. */
int mpi_shmcoll_reserve_long(struct mpi_shmcoll *h);
void mpi_shmcoll_left_long(struct mpi_shmcoll *h, int turn);
/* As mpi_shmcoll_cell(), of a place for long data. */
char *mpi_shmcoll_long_cell(const struct mpi_shmcoll *h, int turn, int i, size_t bytes);

/* What this rank has written can be seen by who sees its flag, or that it lacks something for
 * want of a rank or memory. Who may sleep has to be woken then, or by leaving. */
void mpi_shmcoll_raise(struct mpi_shmcoll *h, int rc);
int mpi_shmcoll_await_flag(struct mpi_shmcoll *h, int i);
int mpi_shmcoll_await_all(struct mpi_shmcoll *h);
/* With this rank's flag, before it is raised: which ways long blocks go when the next meeting of
 * such is over. */
void mpi_shmcoll_tell_paths(struct mpi_shmcoll *h);
/* That was what local rank 0 said; all flags have been seen. */
void mpi_shmcoll_hear_paths(struct mpi_shmcoll *h);
/* Nothing of this operation is needed here any more; returns rc. */
int mpi_shmcoll_leave(struct mpi_shmcoll *h, int rc);

/* Whether a rank does something for all when they meet: then one arrives as such (true) and
 * releases the others. */
bool mpi_shmcoll_has_leader(const struct mpi_shmcoll *h);
bool mpi_shmcoll_arrive(struct mpi_shmcoll *h, int *rc);
void mpi_shmcoll_release(struct mpi_shmcoll *h, int rc);
int mpi_shmcoll_await_release(struct mpi_shmcoll *h);
/* Until all ranks of the node are here. */
int mpi_shmcoll_node_barrier(struct mpi_shmcoll *h);

/* ---- shmcoll.c: up to MPI_SHMCOLL_BYTES ------------------------------------------------------ */

int mpi_shmcoll_reduce_short(struct mpi_shmcoll *h, int rc, const void *in, void *out,
			     MPI_Count count, struct mpi_type *type, struct mpi_op *op, int root);
int mpi_shmcoll_allreduce_short(struct mpi_shmcoll *h, const void *in, void *out, MPI_Count count,
				struct mpi_type *type, struct mpi_op *op);

/* ---- blocks.c -------------------------------------------------------------------------------- */

/* Bytes that are sent and received in a block; MPI_SUCCESS or mpi_fail. */
int mpi_shmcoll_check_equal(MPI_Count sent, MPI_Count received);
/* An alltoall without the own blocks, which may differ: each rank has sent[i] bytes for this
 * one, and nobody more than `longest`. NULL: they are equal, and the own one is copied. */
int mpi_shmcoll_alltoall_segments(struct mpi_shmcoll *h, int rc, const struct mpi_vec *send,
				  const struct mpi_vec *recv, const uint64_t *sent,
				  MPI_Count longest);
/* In how many meetings of all ranks, if there is a block. */
uint64_t mpi_shmcoll_alltoall_barriers(const struct mpi_shmcoll *h, uint64_t longest);

/* ---- read.c ---------------------------------------------------------------------------------- */

/* By all ranks of the only node: whether each can read the memory of all others. The same on
 * all. */
bool mpi_shmcoll_try_reading(struct mpi_shmcoll *h);

/* ---- path.c ---------------------------------------------------------------------------------- */

void mpi_shmcoll_path_init(struct mpi_shmcoll *h);
/* The operation is over, of blocks of so many bytes. */
void mpi_shmcoll_path_ended(struct mpi_shmcoll *h, size_t bytes);

/* ---- wait.c ---------------------------------------------------------------------------------- */

/* A rank of the communicator that is dead; -1: none is known. */
int mpi_shmcoll_lost(const struct mpi_shmcoll *h);
/* Keeps that this rank is: MPI_ERR_PROC_ABORTED. */
int mpi_shmcoll_missing(const struct mpi_shmcoll *h, int rank);

/* Until *word >= least. MPI_ERR_PROC_ABORTED: a rank that could make it so has died. */
int mpi_shmcoll_await(struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least);
/* For the release, not longer than a switch of processes takes: then it is still to be awaited. */
void mpi_shmcoll_look_out(const struct mpi_shmcoll *h);
/* Whether this process takes part in barriers that others make. */
bool mpi_shmcoll_can_order_all(void);
/* After something others may wait for: those that sleep look again. */
void mpi_shmcoll_wake(struct mpi_shmcoll *h);
/* A number into a word of the master of a node. */
int mpi_shmcoll_put(struct mpi_shmcoll *h, int node, int word, uint64_t number);

#endif
