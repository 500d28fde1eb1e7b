/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What a hub is made of, for the files that make it, wait in it and work with it. See hub.h.
 */
#ifndef MPI_SHIM_HUB_IMPL_H
#define MPI_SHIM_HUB_IMPL_H

#include <assert.h>
#include <portals3.h>
#include <stdatomic.h>
#include <stdint.h>

#include "mpi_shim/hub.h"

#define MPI_HUB_DEPTH  32
#define MPI_HUB_FEW    48                   /* bytes that lie on the line of the flag */
#define MPI_HUB_STRIDE (MPI_HUB_BYTES + 64) /* so that equal places do not share cache sets */
#define MPI_HUB_WORDS  18 /* of a master: rounds between up to 65536 nodes, in, out */

/* ---- in shared memory: what others write is not trusted to be more than a number or data --------------- */

struct mpi_hub_count {
	_Alignas(64) _Atomic uint32_t n;
};

struct mpi_hub_seat {
	_Alignas(64) _Atomic uint64_t left; /* operations that this rank has left */
	_Atomic uint32_t asleep;            /* it is to be sent something */
};

struct mpi_hub_flag {
	_Alignas(64) _Atomic uint64_t number;
	uint64_t unused;
	char data[MPI_HUB_FEW]; /* aligned for any type */
};

static_assert(sizeof(struct mpi_hub_flag) == 64, "a flag has a cache line of its own");

/* Then seats[n], flags[DEPTH][n], results[DEPTH], places[DEPTH][n + 1]; the last place is the result's. */
struct mpi_hub_shared {
	_Alignas(64) uint64_t token;
	_Alignas(64) _Atomic uint64_t release;     /* the last operation that all may leave */
	_Alignas(64) _Atomic uint32_t sleepers;    /* ranks that are asleep, or nearly */
	struct mpi_hub_count count[MPI_HUB_DEPTH]; /* ranks that have arrived */
};

/* ---- in this process --------------------------------------------------------------------------------- */

struct mpi_hub {
	struct mpi_comm *comm; /* not referenced: it has the hub */
	uint64_t number;       /* of the operation under way */
	uint64_t free_to;      /* up to this operation places are known to be free */
	bool crowded;          /* fewer processors than ranks: the last to arrive is the master */
	bool spin;             /* a processor for every rank */
	bool broken;           /* a rank has died: messages from now on */
	int n, me;             /* ranks on this node */
	int *rank;             /* their ranks in the communicator */
	int nodes, node;
	int *master;                   /* rank in the communicator of each node's first one */
	uint64_t patience_ns;          /* how long a wait goes on before it sleeps */
	struct mpi_hub_shared *shared; /* NULL if n is 1 */
	size_t bytes;
	struct mpi_hub_seat *seats;
	struct mpi_hub_flag *flags, *results;
	char *places;
	struct mpi_hub_seat own_seat; /* where there is nobody to share with */
	struct mpi_hub_flag own_flags[MPI_HUB_DEPTH];
	ptl_handle_me_t me_handle;
	_Atomic uint64_t word[MPI_HUB_WORDS]; /* masters of other nodes put numbers here */
};

/* hub_wait.c: until *word >= least. MPI_ERR_PROC_ABORTED: a rank that could make it so has died. */
int mpi_hub_await(struct mpi_hub *h, const _Atomic uint64_t *word, uint64_t least);
/* After something others may wait for: those that sleep look again. */
void mpi_hub_wake(struct mpi_hub *h);
/* A number into a word of the master of a node. */
int mpi_hub_put(struct mpi_hub *h, int node, int word, uint64_t number);

#endif
