/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Topologies: what is cached on a communicator, and who a process's neighbours are, which neighbourhood
 * collectives need to know.
 */
#ifndef MPI_SHIM_TOPOLOGY_H
#define MPI_SHIM_TOPOLOGY_H

#include "mpi_shim/core/object.h"

struct mpi_topology {
	int refs;
	int kind; /* MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH */
	union {
		struct {
			int ndims;
			int *dims, *periods, *coords; /* coords: of this process */
		} cart;
		struct {
			int nodes, edges;
			int *index, *edge;
		} graph;
		struct {
			int in, out; /* degrees */
			bool weighted;
			int *source, *source_weight;
			int *dest, *dest_weight;
		} dist;
	};
	int memory[]; /* what the pointers point into */
};

/* A topology with `words` ints of memory, one reference; NULL: no memory. */
struct mpi_topology *mpi_topology_new(int kind, int64_t words);

/* Sources and destinations of this process; 0 where there is no topology. */
int mpi_neighbors_in(const struct mpi_comm *comm);
int mpi_neighbors_out(const struct mpi_comm *comm);

/* comm's topology if it has one of this kind, else NULL, and MPI_ERR_TOPOLOGY's text is kept. */
const struct mpi_topology *mpi_topology_of(const struct mpi_comm *comm, int kind);

/*
 * A communicator of the first n ranks of comm, collective over comm, with a topology, which is taken (and
 * released on failure and where there is no communicator); reordering is not done. `t` NULL: this rank
 * failed to make it, the text is kept as MPI_ERR_NO_MEM.
 */
int mpi_topology_attach(struct mpi_comm *comm, int n, struct mpi_topology *t,
			struct mpi_comm **out);

#endif
