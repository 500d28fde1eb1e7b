/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Groups, communicators and the small objects that hang on them. All guarded by the global lock.
 */
#ifndef MPI_SHIM_OBJECT_H
#define MPI_SHIM_OBJECT_H

#include <mpi.h>

#include "mpi_shim/handle.h"

struct mpi_group {
	struct mpi_obj obj;
	int size;
	int rank;   /* of this process, MPI_UNDEFINED if not a member */
	int *world; /* rank in MPI_COMM_WORLD by rank in the group; NULL: the same */
};

static inline int mpi_group_world(const struct mpi_group *g, int rank)
{
	return g->world ? g->world[rank] : rank;
}

struct mpi_errhandler {
	struct mpi_obj obj;
	int serves; /* enum mpi_kind it was created for; MPI_KIND_NONE: predefined, any */
	void (*comm_fn)(MPI_Comm *comm, int *code, ...);
};

/* Cached attributes, in the order they were set. */
struct mpi_attr {
	struct mpi_attr *next;
	struct mpi_keyval *keyval;
	void *value;
};

struct mpi_info {
	struct mpi_obj obj;
	int count, room;
	struct mpi_info_pair {
		char *key, *value;
	} * pair; /* in the order they were set */
};

struct mpi_topology; /* cart, graph or dist_graph */

/* A communicator has two contexts of the match bits: `context` for the user's messages and
 * context + 1 for collectives. */
struct mpi_comm {
	struct mpi_obj obj;
	uint32_t context;
	int rank, size;  /* in the local group */
	int remote_size; /* ranks that can be sent to: of the remote group in an intercommunicator */
	bool inter;
	struct mpi_group *local;
	struct mpi_group *remote;    /* the local group in an intracommunicator */
	struct mpi_comm *local_comm; /* intercommunicator: its local side, for collectives */
	struct mpi_errhandler *handler;
	struct mpi_attr *attrs;
	struct mpi_topology *topology;
	struct mpi_info *info;
	char name[MPI_MAX_OBJECT_NAME];
};

extern struct mpi_comm mpi_comm_world, mpi_comm_self;
extern struct mpi_group mpi_group_empty;

/* World rank of a rank that can be sent to. */
static inline int mpi_comm_peer(const struct mpi_comm *c, int rank)
{
	return mpi_group_world(c->remote, rank);
}

/* Before and after everything: the predefined communicators, groups, error handlers, keyvals. */
int mpi_objects_init(void);
void mpi_objects_fini(void);

/* MPI_Comm_delete attributes and the like, in MPI_Finalize: first those of MPI_COMM_SELF (MPI-4 §11.2.4). */
int mpi_attrs_delete(void *object, enum mpi_kind kind, struct mpi_attr **attrs);

#endif
