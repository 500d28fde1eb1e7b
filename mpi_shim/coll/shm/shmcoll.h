/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The shared-memory collective area ("the area"): collectives without messages. The method is
 * that of "Efficient Barrier using Remote Memory Operations on VIA-Based Clusters" (Gupta,
 * Tipparaju, Nieplocha, Panda).
 *
 * Inside a node the ranks of a communicator share a few pages, in which each rank has flags on
 * cache lines of its own. Between nodes each node has a leader, its first rank. In each round a
 * leader puts the number of the barrier into a word of its partner, one-sidedly. The rounds are
 * those of recursive doubling; nodes over a power of two are folded in before and out after.
 * The partner polls the word until it holds that number or a greater one: a fast partner may
 * already be in the next barrier. A flag carries a few bytes of data: short reductions, scans
 * and broadcasts inside a node use them.
 *
 * Other collectives over several nodes combine these: inside a node without messages, between
 * nodes by the message algorithms among the leaders.
 *
 * Each rank numbers the operations for itself, as all ranks call them in the same order. An
 * operation writes to one of MPI_SHMCOLL_DEPTH cells, chosen by its number. So ranks that need
 * not wait for others run ahead of them by at most that many operations. For operations of
 * eight bytes or less the limit is MPI_SHMCOLL_SMALL_SLOTS.
 *
 * With fewer processors than ranks nobody knows which rank runs when. There the last rank to
 * arrive does the leader's work, so each rank needs a processor just once per barrier. Likewise
 * leaders that share too few processors put the number to all others at once. If they are many
 * they send it up a tree and down again. Both forms need the fewest waits.
 *
 * The first collectives that would use an area make it, all ranks together. It is freed with
 * its communicator. If the memory cannot be shared there is no area, and messages are sent.
 *
 * Guarantee: all ranks get the same answer from every function that decides whether the area or
 * a path is used. Do not use the area for intercommunicators or for non-blocking collectives.
 * All collectives below block until this rank's part is done. They return MPI_SUCCESS or the
 * class of the error, with its text kept (mpi_fail()); those that return a bool put it in *rc.
 */
#ifndef MPI_SHIM_SHMCOLL_H
#define MPI_SHIM_SHMCOLL_H

#include <portals3_ext.h>
#include <stdbool.h>

#include "mpi_shim/coll/coll.h"

#define MPI_SHMCOLL_BYTES 4096 /* data of a rank in an operation that may run ahead of others */
#define MPI_SHMCOLL_LONG  (256 << 10) /* most data of a rank in one; longer data go in segments */
/* Up to this many ranks, each with a processor of its own, poll each other's flags. More ranks
 * poll the leader's. */
#define MPI_SHMCOLL_FEW_RANKS 4
/* Longest vectors that are reduced, segment by segment. */
#define MPI_SHMCOLL_REDUCE (4 << 20)
/* Up to MPI_SHMCOLL_FEW_RANKS ranks read blocks of at least this many bytes. Two ranks, and any
 * number of oversubscribed ones, do so only if reading was faster lately. */
#define MPI_SHMCOLL_READ_BYTES (32 << 10)
/* Limits for two ranks with a processor each. Up to MPI_SHMCOLL_TWO_BYTES data go through the
 * shared pages. For longer data each rank copies a part, out of the other's memory or into it.
 * The other two limits are where a message becomes faster. */
#define MPI_SHMCOLL_TWO_BYTES   (32 << 10)
#define MPI_SHMCOLL_BCAST_MOST  (1 << 20)
#define MPI_SHMCOLL_REDUCE_MOST (16 << 20)
/* From here on two ranks split an allreduce: each makes a half of the result and needs the half
 * of the other. */
#define MPI_SHMCOLL_TAKE_BYTES (128 << 10)

struct mpi_shmcoll;
struct mpi_schedule;
struct mpi_vec;

/*
 * The area of an intracommunicator, for the collective that all its ranks call now. NULL: use
 * messages. With several nodes the area serves the barrier and the functions mpi_nodes_*; all
 * other functions are for one node. The area is made after a few collectives, or at once if
 * `now` is true. Making it blocks: all ranks of the communicator take part.
 */
struct mpi_shmcoll *mpi_shmcoll_of(struct mpi_comm *comm, bool now);
int mpi_shmcoll_nodes(const struct mpi_shmcoll *shmcoll);
/* Whether the area has more ranks on this node than the node has processors. */
bool mpi_shmcoll_oversubscribed(const struct mpi_shmcoll *shmcoll);
/* Whether all ranks are on one node and would share one area, if nothing fails. The same on all
 * ranks. */
bool mpi_shmcoll_takes_node(const struct mpi_comm *comm);
void mpi_shmcoll_free(struct mpi_shmcoll *shmcoll);

/* Advertise this rank's current call to the other ranks of the node (calls.h). */
void mpi_shmcoll_advertise_call(struct mpi_shmcoll *shmcoll);
/* Compare the calls of the other ranks of the node. True: some of them disagree, and the
 * disagreement has been recorded. */
bool mpi_shmcoll_compare(struct mpi_shmcoll *shmcoll);

/* Handle a put of another node's leader inline, before it is delivered; an inline handler for
 * PtlEQPollMany. Returns 0 if the put is not one of these. */
int mpi_shmcoll_inline(const ptl_arrival_t *put);

int mpi_shmcoll_barrier(struct mpi_shmcoll *shmcoll);
/* All ranks pass the same number of bytes. `rc` is an earlier error of the caller; the root's
 * is passed to the others. */
int mpi_shmcoll_bcast(struct mpi_shmcoll *shmcoll, int rc, void *data, size_t bytes, int root);

/* Predefined operations on dense types, up to MPI_SHMCOLL_REDUCE bytes, in the order of ranks.
 * `in` and `out` may be the same. `rc` is an earlier error at the root, which has no memory for
 * the result. */
int mpi_shmcoll_reduce(struct mpi_shmcoll *shmcoll, int rc, const void *in, void *out,
		       MPI_Count count, struct mpi_type *type, struct mpi_op *op, int root);
int mpi_shmcoll_allreduce(struct mpi_shmcoll *shmcoll, const void *in, void *out, MPI_Count count,
			  struct mpi_type *type, struct mpi_op *op);

/* The same, up to MPI_SHMCOLL_BYTES: the result covers all lower ranks and, unless it is
 * exclusive, this one. */
int mpi_shmcoll_scan(struct mpi_shmcoll *shmcoll, const void *in, void *out, MPI_Count count,
		     struct mpi_type *type, struct mpi_op *op, bool exclusive);

/*
 * The same for blocks, one for each rank, as `parts` says; they are adjacent in `in`. This
 * rank's result goes to `out`, which must not overlap `in`. `rc` is an earlier error at this
 * rank, which has no memory for its result.
 */
int mpi_shmcoll_reduce_scatter(struct mpi_shmcoll *shmcoll, int rc, const void *in, void *out,
			       const struct mpi_vec *parts, struct mpi_op *op);

/*
 * Equal blocks of any length, which travel in segments. The blocks of an allgather may differ,
 * as all ranks know all lengths. The forms in place: for allgather `in` is the rank's own block
 * in `recv`. For alltoall `send` is `recv`. At the root, gather's `in` and scatter's `out` are
 * MPI_IN_PLACE. `rc` of a gather is as that of a reduction.
 */
int mpi_shmcoll_allgather(struct mpi_shmcoll *shmcoll, const void *in, MPI_Count count,
			  struct mpi_type *type, const struct mpi_vec *recv);
int mpi_shmcoll_alltoall(struct mpi_shmcoll *shmcoll, const struct mpi_vec *send,
			 const struct mpi_vec *recv);
int mpi_shmcoll_gather(struct mpi_shmcoll *shmcoll, int rc, const void *in, MPI_Count count,
		       struct mpi_type *type, const struct mpi_vec *recv, size_t bytes, int root);
int mpi_shmcoll_scatter(struct mpi_shmcoll *shmcoll, const struct mpi_vec *send, void *out,
			MPI_Count count, struct mpi_type *type, size_t bytes, int root);

/*
 * Blocks of any length; each rank knows only the lengths of those that it sends or receives.
 * The rank's block for itself is not copied. In place as above. At most MPI_SHMCOLL_HEADERS
 * ranks (algorithms.h says so, too).
 *
 * False, on all ranks: there are too many gaps between long blocks. The caller must use another
 * algorithm.
 */
#define MPI_SHMCOLL_HEADERS 128
bool mpi_shmcoll_alltoallv(struct mpi_shmcoll *shmcoll, const struct mpi_vec *send,
			   const struct mpi_vec *recv, int *rc);

/*
 * Equal blocks that each rank reads out of the others' memory. `send` has the same block for
 * all, or one for each rank. In place only for allgather. Call these only if
 * mpi_shmcoll_reads() is true.
 *
 * False, on all ranks: some blocks cannot be read, or there is no memory to pack them. The
 * caller must use another algorithm, and so will all later calls.
 */
bool mpi_shmcoll_reads(const struct mpi_shmcoll *shmcoll);
/* Begin an operation on blocks of at least MPI_SHMCOLL_READ_BYTES, to which two paths are open.
 * `to_all`: a rank gives the same block to all. True: read the blocks; this path was the faster
 * one lately. The same on all ranks. */
bool mpi_shmcoll_path_reads(struct mpi_shmcoll *shmcoll, size_t bytes, bool to_all);
bool mpi_shmcoll_read(struct mpi_schedule *p, struct mpi_shmcoll *shmcoll,
		      const struct mpi_vec *send, const struct mpi_vec *recv, int *rc);

/* Data between two ranks: each rank copies a part of them, or computes with it. False has the
 * meaning above. */
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
