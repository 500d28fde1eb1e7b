/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives without messages, after "Efficient Barrier using Remote Memory Operations on
 * VIA-Based Clusters" (Gupta, Tipparaju, Nieplocha, Panda). Inside a node the ranks of a
 * communicator share a few pages in which each has flags on cache lines of its own. Between
 * nodes the master of each node, its first rank, puts the number of the barrier into a word of
 * its partner's, one-sidedly, round by round (recursive doubling, what is over a power of two of
 * nodes folded in before and out after); the partner looks at the word until it is that number
 * or a greater one, for a fast partner may be in the next barrier already. With a flag a few
 * bytes of data travel: short reductions, scans and broadcasts inside a node.
 *
 * Other collectives over several nodes are made of these: inside a node without messages,
 * between nodes by the algorithms for messages among the masters.
 *
 * Operations are numbered by each rank for itself, as all call them in the same order. What an
 * operation writes lies in one of MPI_SHMCOLL_DEPTH places, by its number, so that ranks that need
 * not wait for others run ahead of them by as many operations at most; of those with eight bytes
 * or less, by MPI_SHMCOLL_SMALL_SLOTS.
 *
 * With fewer processors than ranks it is not known who runs when: there the last rank to arrive
 * does the master's work, so that every rank has to be given a processor just once for a
 * barrier. Likewise masters that share too few processors put the number to all others at once,
 * or if they are many up a tree and down again: that has the fewest waits.
 *
 * A hub is made by the first collectives that would use it, all ranks together; it goes with its
 * communicator. Where the memory cannot be shared there is none, and messages are sent.
 */
#ifndef MPI_SHIM_SHMCOLL_H
#define MPI_SHIM_SHMCOLL_H

#include <portals3_ext.h>
#include <stdbool.h>

#include "mpi_shim/coll/coll.h"

#define MPI_SHMCOLL_BYTES 4096 /* data of a rank in one operation that can be ahead of others */
#define MPI_SHMCOLL_LONG  (256 << 10) /* most data of a rank in one; longer ones go in pieces */
/* Up to so many ranks with a processor each look at each other's flags, instead of at the
 * master's. */
#define MPI_SHMCOLL_FEW_RANKS 4
/* Longest vectors that are reduced, piece by piece. */
#define MPI_SHMCOLL_REDUCE (4 << 20)
/* Blocks of so many bytes at least up to MPI_SHMCOLL_FEW_RANKS read; two of them, and any number
 * where processors are short, if that was faster lately. */
#define MPI_SHMCOLL_READ_BYTES (32 << 10)
/* Up to here what one of two ranks that have a processor each gives the other goes through the
 * shared pages; what is longer both copy a part of, each out of the other's memory or into it,
 * as far as that is faster than a message. */
#define MPI_SHMCOLL_TWO_BYTES   (32 << 10)
#define MPI_SHMCOLL_BCAST_MOST  (1 << 20)
#define MPI_SHMCOLL_REDUCE_MOST (16 << 20)
/* From where on two ranks do the same of an allreduction, of which each needs what the other
 * makes. */
#define MPI_SHMCOLL_TAKE_BYTES (128 << 10)

struct mpi_shmcoll;
struct mpi_schedule;
struct mpi_vec;

/*
 * The hub of an intracommunicator, for the collective that is called now, by all its ranks;
 * NULL: messages. With several nodes it serves the barrier and what has a function mpi_nodes_*;
 * all but these are for one node. It is made after a few collectives, or `now`.
 */
struct mpi_shmcoll *mpi_shmcoll_of(struct mpi_comm *comm, bool now);
int mpi_shmcoll_nodes(const struct mpi_shmcoll *shmcoll);
/* Whether it has more ranks on this node than there are processors. */
bool mpi_shmcoll_oversubscribed(const struct mpi_shmcoll *shmcoll);
/* Whether all ranks would have one hub, on one node, if nothing is missing; the same on all. */
bool mpi_shmcoll_takes_node(const struct mpi_comm *comm);
void mpi_shmcoll_free(struct mpi_shmcoll *shmcoll);

/* Says to the others on this node what is called now (calls.h). */
void mpi_shmcoll_tell_call(struct mpi_shmcoll *shmcoll);
/* Looks at what the others on this node call. True: some of them disagree, and that is settled. */
bool mpi_shmcoll_compare(struct mpi_shmcoll *shmcoll);

/* A put of another node's master, taken off before it is delivered: as PtlEQPollMany asks for. */
int mpi_shmcoll_inline(const ptl_arrival_t *put);

int mpi_shmcoll_barrier(struct mpi_shmcoll *shmcoll);
/* All ranks pass the same number of bytes. `rc`: what went wrong before; of the root's the
 * others hear. */
int mpi_shmcoll_bcast(struct mpi_shmcoll *shmcoll, int rc, void *data, size_t bytes, int root);

/* Predefined operations on dense types, up to MPI_SHMCOLL_REDUCE bytes, in the order of ranks; `in`
 * and `out` may be the same. `rc`: what went wrong before, at the root: it has no room for the
 * result. */
int mpi_shmcoll_reduce(struct mpi_shmcoll *shmcoll, int rc, const void *in, void *out,
		       MPI_Count count, struct mpi_type *type, struct mpi_op *op, int root);
int mpi_shmcoll_allreduce(struct mpi_shmcoll *shmcoll, const void *in, void *out, MPI_Count count,
			  struct mpi_type *type, struct mpi_op *op);

/* The same, up to MPI_SHMCOLL_BYTES, of all lower ranks and, unless it is exclusive, this one. */
int mpi_shmcoll_scan(struct mpi_shmcoll *shmcoll, const void *in, void *out, MPI_Count count,
		     struct mpi_type *type, struct mpi_op *op, bool exclusive);

/*
 * The same of blocks, one for each rank, as `parts` says, which lie one behind the other in
 * `in`; this rank's result goes to `out`, which is no part of `in`. `rc`: what went wrong before
 * here: it has no room for that.
 */
int mpi_shmcoll_reduce_scatter(struct mpi_shmcoll *shmcoll, int rc, const void *in, void *out,
			       const struct mpi_vec *parts, struct mpi_op *op);

/*
 * Equal blocks of any length, which go in pieces; those of an allgather may differ, as all ranks
 * know all of them. In place: allgather's `in` is its block in `recv`, alltoall's `send` is
 * `recv`, gather's `in` and scatter's `out` at the root are MPI_IN_PLACE. `rc` of a gather is as
 * that of a reduction.
 */
int mpi_shmcoll_allgather(struct mpi_shmcoll *shmcoll, const void *in, MPI_Count count,
			  struct mpi_type *type, const struct mpi_vec *recv);
int mpi_shmcoll_alltoall(struct mpi_shmcoll *shmcoll, const struct mpi_vec *send,
			 const struct mpi_vec *recv);
int mpi_shmcoll_gather(struct mpi_shmcoll *shmcoll, int rc, const void *in, MPI_Count count,
		       struct mpi_type *type, const struct mpi_vec *recv, size_t bytes, int root);
int mpi_shmcoll_scatter(struct mpi_shmcoll *shmcoll, const struct mpi_vec *send, void *out,
			MPI_Count count, struct mpi_type *type, size_t bytes, int root);

/* Blocks of any length, of which each rank knows those that it has to do with; what it has for
 * itself is not copied. In place as above. Up to so many ranks (said in algorithms.h, too).
 * False, for all: there are too many gaps between long ones, which have to go another way. */
#define MPI_SHMCOLL_HEADERS 128
bool mpi_shmcoll_alltoallv(struct mpi_shmcoll *shmcoll, const struct mpi_vec *send,
			   const struct mpi_vec *recv, int *rc);

/*
 * Equal blocks (of `send`: the same for all, or one for each rank) that each rank reads out of
 * the others' memory; not in place but for allgather. Only if the hub can do that. False, for
 * all: some of these blocks cannot be read, or there is no memory to pack them. They have to go
 * another way, and so will all others.
 */
bool mpi_shmcoll_reads(const struct mpi_shmcoll *shmcoll);
/* Blocks of MPI_SHMCOLL_READ_BYTES at least begin, the same for all ranks or not, and may go either
 * way: whether they are read now, by what was faster lately. The same on all ranks. */
bool mpi_shmcoll_path_reads(struct mpi_shmcoll *shmcoll, size_t bytes, bool to_all);
bool mpi_shmcoll_read(struct mpi_schedule *p, struct mpi_shmcoll *shmcoll,
		      const struct mpi_vec *send, const struct mpi_vec *recv, int *rc);

/* What one of two ranks has, of which each copies a part, or calculates with it. False: as
 * above. */
bool mpi_shmcoll_read_bcast(struct mpi_schedule *p, struct mpi_shmcoll *shmcoll, void *data,
			    size_t bytes, int root, int *rc);
bool mpi_shmcoll_read_reduce(struct mpi_schedule *p, struct mpi_shmcoll *shmcoll, const void *in,
			     void *out, MPI_Count count, struct mpi_type *type, struct mpi_op *op,
			     int root, int *rc);
bool mpi_shmcoll_read_allreduce(struct mpi_schedule *p, struct mpi_shmcoll *shmcoll, const void *in,
				void *out, MPI_Count count, struct mpi_type *type,
				struct mpi_op *op, int *rc);

/* The same on two levels, with messages between nodes. */
int mpi_nodes_bcast(struct mpi_schedule *p, struct mpi_shmcoll *shmcoll, int rc, void *data,
		    size_t bytes, int root);
int mpi_nodes_reduce(struct mpi_schedule *p, struct mpi_shmcoll *shmcoll, const void *in, void *out,
		     MPI_Count count, struct mpi_type *type, struct mpi_op *op, int root);
int mpi_nodes_allreduce(struct mpi_schedule *p, struct mpi_shmcoll *shmcoll, const void *in,
			void *out, MPI_Count count, struct mpi_type *type, struct mpi_op *op);
int mpi_nodes_allgather(struct mpi_schedule *p, struct mpi_shmcoll *shmcoll, const void *in,
			MPI_Count count, struct mpi_type *type, const struct mpi_vec *recv);

#endif
