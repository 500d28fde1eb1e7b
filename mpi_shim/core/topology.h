/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Topologies: what is cached on a communicator, and who a process's neighbours are, which
 * neighbourhood collectives need to know.
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

/* A topology is shared by a communicator and its duplicates. */
struct mpi_topology *mpi_topology_keep(struct mpi_topology *t);
void mpi_topology_release(struct mpi_topology *t);

/* Sources and destinations of this process; 0 where there is no topology. */
int mpi_neighbors_in(const struct mpi_comm *comm);
int mpi_neighbors_out(const struct mpi_comm *comm);

/* comm's topology if it has one of this kind, else NULL, and MPI_ERR_TOPOLOGY's text is kept. */
const struct mpi_topology *mpi_topology_of(const struct mpi_comm *comm, int kind);

#endif
