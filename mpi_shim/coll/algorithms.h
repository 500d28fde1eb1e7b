/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The algorithms of MPI's collectives, in one table, and the meaning of PTL_MPI_COLL. The table
 * makes the words of that setting, the counters of each algorithm, and a section of portals(7).
 *
 * This file needs no other part of the MPI: portals(7) is made from it. It does not choose an
 * algorithm; select.c and the collectives do. Nothing here blocks or takes a lock.
 */
#ifndef MPI_SHIM_ALGORITHMS_H
#define MPI_SHIM_ALGORITHMS_H

#include <stddef.h>
#include <stdint.h>

/* X(COLLECTIVE, ALGORITHM, "word of PTL_MPI_COLL", "what it is"). The rows of a collective are
 * adjacent. */
#define MPI_COLL_TABLE(X)                                                                          \
	X(BARRIER, SHM, "barrier=shm", "flags in shared memory, puts between nodes")               \
	X(BARRIER, DISSEMINATION, "barrier=dissemination", "a message from each rank in a round")  \
	X(BARRIER, LINEAR, "barrier=linear", "a message from each rank to all")                    \
	X(BARRIER, TREE, "barrier=tree", "up and down a tree")                                     \
	X(BCAST, SHM, "bcast=shm", "through shared memory, messages between nodes")                \
	X(BCAST, READ, "bcast=read",                                                               \
	  "each copies a half out of the other's memory or into it; blocking, two ranks on one "   \
	  "node")                                                                                  \
	X(BCAST, BINOMIAL, "bcast=binomial", "down a binomial tree")                               \
	X(BCAST, TREE, "bcast=tree", "down a tree with 8 branches")                                \
	X(BCAST, RING, "bcast=ring", "scattered down a binomial tree, gathered round a ring")      \
	X(GATHER, SHM, "gather=shm", "through shared memory")                                      \
	X(GATHER, BINOMIAL, "gather=binomial", "up a binomial tree; equal blocks")                 \
	X(GATHER, LINEAR, "gather=linear", "from each rank to the root")                           \
	X(SCATTER, SHM, "scatter=shm", "through shared memory")                                    \
	X(SCATTER, BINOMIAL, "scatter=binomial", "down a binomial tree; equal blocks")             \
	X(SCATTER, LINEAR, "scatter=linear", "from the root to each rank")                         \
	X(ALLGATHER, SHM, "allgather=shm",                                                         \
	  "through shared memory, messages between nodes, there equal blocks")                     \
	X(ALLGATHER, READ, "allgather=read",                                                       \
	  "each rank reads the others' memory; blocking, equal blocks, on one node")               \
	X(ALLGATHER, DOUBLING, "allgather=doubling",                                               \
	  "recursive doubling; equal blocks, a power of two of ranks")                             \
	X(ALLGATHER, BRUCK, "allgather=bruck", "Bruck's algorithm; equal blocks")                  \
	X(ALLGATHER, RING, "allgather=ring", "round a ring")                                       \
	X(ALLGATHER, LINEAR, "allgather=linear", "from each rank to all")                          \
	X(ALLGATHER, ROOT, "allgather=root", "to rank 0 and from there to all")                    \
	X(ALLTOALL, SHM, "alltoall=shm", "through shared memory; unequal blocks: up to 128 ranks") \
	X(ALLTOALL, READ, "alltoall=read",                                                         \
	  "each rank reads the others' memory; blocking, equal blocks, not in place, on one "      \
	  "node")                                                                                  \
	X(ALLTOALL, BRUCK, "alltoall=bruck", "Bruck's algorithm; equal blocks, not in place")      \
	X(ALLTOALL, PAIRWISE, "alltoall=pairwise", "one pair at a time; not in place")             \
	X(ALLTOALL, LINEAR, "alltoall=linear", "directly, many at once; not in place")             \
	X(ALLTOALL, SWAP, "alltoall=swap", "pairs swap their blocks; in place")                    \
	X(REDUCE, SHM, "reduce=shm",                                                               \
	  "through shared memory, messages between nodes; predefined operations up to 4 MiB")      \
	X(REDUCE, READ, "reduce=read",                                                             \
	  "the root reads and the other rank reads and writes the other's memory; blocking, "      \
	  "predefined operations, two ranks on one node")                                          \
	X(REDUCE, BINOMIAL, "reduce=binomial", "up a binomial tree")                               \
	X(REDUCE, TREE, "reduce=tree", "up a tree with 8 branches")                                \
	X(REDUCE, PARTS, "reduce=parts",                                                           \
	  "recursive halving, then to the root; predefined operations that commute, an element "   \
	  "for each rank at least")                                                                \
	X(ALLREDUCE, SHM, "allreduce=shm",                                                         \
	  "through shared memory, messages between nodes; predefined operations up to 4 MiB")      \
	X(ALLREDUCE, READ, "allreduce=read",                                                       \
	  "each rank reads a half of the other's memory, and a half of the result; blocking, "     \
	  "predefined operations, two ranks on one node")                                          \
	X(ALLREDUCE, LINEAR, "allreduce=linear", "from each rank to all; up to 32 ranks")          \
	X(ALLREDUCE, DOUBLING, "allreduce=doubling", "recursive doubling")                         \
	X(ALLREDUCE, PARTS, "allreduce=parts",                                                     \
	  "recursive halving and doubling (Rabenseifner); predefined operations that commute, "    \
	  "an element for each rank at least")                                                     \
	X(ALLREDUCE, ROOT, "allreduce=root", "reduced to rank 0 and broadcast from there")         \
	X(REDUCE_SCATTER, SHM, "reduce_scatter=shm",                                               \
	  "through shared memory; predefined operations, up to 4 MiB for each rank")               \
	X(REDUCE_SCATTER, HALVING, "reduce_scatter=halving",                                       \
	  "recursive halving; operations that commute")                                            \
	X(REDUCE_SCATTER, PAIRWISE, "reduce_scatter=pairwise",                                     \
	  "each part straight to its rank; operations that commute")                               \
	X(REDUCE_SCATTER, ROOT, "reduce_scatter=root",                                             \
	  "reduced to rank 0 and scattered from there")                                            \
	X(SCAN, SHM, "scan=shm", "through shared memory; predefined operations up to 4 KiB")       \
	X(SCAN, DOUBLING, "scan=doubling", "from each rank to the one 1, 2, 4, ... ranks on")      \
	X(SCAN, LINEAR, "scan=linear", "from rank to rank")

enum mpi_algorithm {
#define MPI_COLL_ENUM_(collective, algorithm, word, text) MPI_COLL_##collective##_##algorithm,
	MPI_COLL_TABLE(MPI_COLL_ENUM_)
#undef MPI_COLL_ENUM_
		MPI_COLL_COUNT_
};

enum mpi_coll_prefer { MPI_COLL_AUTO, MPI_COLL_MESSAGES, MPI_COLL_ROUNDS };

/* The bit of a row in the sets below. */
#define MPI_COLL_BIT(collective, algorithm) (UINT64_C(1) << MPI_COLL_##collective##_##algorithm)

struct mpi_coll_setting {
	enum mpi_coll_prefer prefer;
	uint64_t wanted;    /* at most one row of each collective */
	uint64_t ruled_out; /* the other rows of these collectives */
};

/*
 * Parse a value of PTL_MPI_COLL: words separated by commas. If two words concern the same
 * collective, the last one counts. An unknown word is ignored; if `say` is set, it is called
 * with the words that are valid there.
 */
struct mpi_coll_setting mpi_coll_parse(const char *value, void (*say)(const char *fmt, ...));

/* The word and the text of row i; NULL past the last row. */
const char *mpi_algorithm_word(size_t i);
const char *mpi_algorithm_text(size_t i);

/* Calls of each algorithm: performance variables. */
extern uint64_t mpi_coll_counts[MPI_COLL_COUNT_];

#endif
