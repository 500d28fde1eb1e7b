/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reordering the ranks of a topology, so that neighbours are on one node, and there share a
 * cache. A placement is taken if fewer neighbours than in the old order are apart; else the
 * order stays.
 */
#ifndef MPI_SHIM_PLACEMENT_H
#define MPI_SHIM_PLACEMENT_H

struct mpi_comm;

struct mpi_placement {
	int n;             /* the first ranks of the communicator, which the topology takes */
	int *node, *cache; /* by old rank: where it is; cache -1: unknown */
	int *order;        /* by new rank: the old one; at first the same */
	int *rank;         /* by old rank: the new one */
	int *work;         /* n ints of temporary memory */
};

/* Find where the first n ranks of comm are. Collective: the ranks say which cache they use. An
 * error is one on all ranks. */
int mpi_placement_agree(struct mpi_placement *p, struct mpi_comm *comm, int n);
/* The same with nodes alone, which every rank knows. An error is this rank's. */
int mpi_placement_local(struct mpi_placement *p, const struct mpi_comm *comm, int n);
void mpi_placement_end(struct mpi_placement *p);

/* Set the order for a grid, or for a graph in the form of MPI_Graph_create. MPI_ERR_NO_MEM, this
 * rank's: the order has not changed, and the others do not know. */
int mpi_placement_grid(struct mpi_placement *p, int ndims, const int *dims, const int *periods);
int mpi_placement_graph(struct mpi_placement *p, const int *index, const int *edge);

#endif
