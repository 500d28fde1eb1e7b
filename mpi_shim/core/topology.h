/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Topologies: cached on a communicator, they give a process's neighbours, which neighbourhood
 * collectives need. The global lock guards the reference counts.
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
	int memory[]; /* the memory that the pointers point into */
};

/* Makes a topology with `words` ints of memory and one reference. NULL: out of memory, no text
 * kept. */
struct mpi_topology *mpi_topology_new(int kind, int64_t words);

/* A communicator and its duplicates share a topology. NULL is ignored. */
struct mpi_topology *mpi_topology_keep(struct mpi_topology *t);
void mpi_topology_release(struct mpi_topology *t);

/* Number of sources and destinations of this process; 0 without a topology. */
int mpi_neighbors_in(const struct mpi_comm *comm);
int mpi_neighbors_out(const struct mpi_comm *comm);

/* Returns comm's topology if it is of this kind. Else NULL, and the text of MPI_ERR_TOPOLOGY is
 * kept. */
const struct mpi_topology *mpi_topology_of(const struct mpi_comm *comm, int kind);

#endif
