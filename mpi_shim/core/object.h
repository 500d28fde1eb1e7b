/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Groups, communicators and the small objects that hang on them. All guarded by the global lock.
 *
 * An object has `refs`, the references of the shim and the user together. What the user frees
 * while the shim still refers to it must be an error to use or free again, and take nothing away
 * from the shim: the handles of groups and requests go at once (mpi_object_retire), those of
 * communicators, datatypes, operations and error handlers become others (mpi_object_rename).
 * Datatypes and error handlers, of which one handle may be given out often, count in `handles`
 * the references that are the user's.
 */
#ifndef MPI_SHIM_OBJECT_H
#define MPI_SHIM_OBJECT_H

#include <mpi.h>

#include "mpi_shim/core/calls.h"
#include "mpi_shim/core/handle.h"

/* ---- groups ---------------------------------------------------------------------------------- */

struct mpi_group {
	struct mpi_obj obj;
	int size;
	int rank;                /* of this process, MPI_UNDEFINED if not a member */
	int *world;              /* rank in MPI_COMM_WORLD by rank in the group; NULL: the same */
	struct mpi_group *owner; /* referenced, of `world`; NULL: this group */
};

extern struct mpi_group mpi_group_empty;

static inline int mpi_group_world(const struct mpi_group *g, int rank)
{
	return g->world ? g->world[rank] : rank;
}

/* A group of the processes world[0] .. world[size - 1], which is malloc'd and now the group's
 * (freed also on failure). One reference, which may be the user's. NULL: no memory. */
struct mpi_group *mpi_group_make(int size, int *world);
/* The same group once more, for the user, with a handle of its own: it ends when it is freed,
 * whatever lives on of what it came from. */
int mpi_group_export(struct mpi_group *g, struct mpi_group **out);
/* Rank in the group of a process by world rank; MPI_UNDEFINED if it is not a member. */
int mpi_group_rank_in(const struct mpi_group *g, int world);
/* Ranks in the group by world rank (MPI_UNDEFINED: not a member), malloc'd; NULL: no memory. */
int *mpi_group_inverse(const struct mpi_group *g);

/* ---- error handlers -------------------------------------------------------------------------- */

enum mpi_serves {
	MPI_SERVES_ANY, /* predefined */
	MPI_SERVES_COMM,
	MPI_SERVES_WIN,
	MPI_SERVES_FILE,
	MPI_SERVES_SESSION
};

struct mpi_errhandler {
	struct mpi_obj obj;
	enum mpi_serves serves;
	int handles;
	union {
		MPI_Comm_errhandler_function *comm;
		MPI_Win_errhandler_function *win;
		MPI_File_errhandler_function *file;
		MPI_Session_errhandler_function *session;
	} fn; /* NULL: predefined */
};

extern struct mpi_errhandler mpi_errors_are_fatal, mpi_errors_abort, mpi_errors_return;

/* ---- attributes ------------------------------------------------------------------------------ */

/* Cached attributes, the newest first. */
struct mpi_attr {
	struct mpi_attr *next;
	struct mpi_keyval *keyval; /* referenced */
	void *value;
};

/*
 * Runs the delete callbacks, newest first, and drops the attributes of an object that ends. A
 * callback that fails ends this with its code; what was not deleted stays. In MPI_Finalize:
 * first those of MPI_COMM_SELF, while everything still works (MPI-4 §11.2.4).
 */
int mpi_attrs_delete(void *object, enum mpi_kind kind, struct mpi_attr **attrs);
/* Copies those whose copy callback wants it, oldest first, to `to`, the empty list of `copy`. On
 * failure of a callback its code, and *to is empty again. */
int mpi_attrs_copy(void *object, enum mpi_kind kind, struct mpi_attr *from, void *copy,
		   struct mpi_attr **to);

/* ---- info ------------------------------------------------------------------------------------ */

struct mpi_info {
	struct mpi_obj obj;
	int count, room;
	struct mpi_info_pair {
		char *key, *value;
	} * pair; /* in the order they were set */
};

/* The value of a key; NULL if it is not set or info is NULL. */
const char *mpi_info_value(const struct mpi_info *info, const char *key);
/* Sets a key; lengths are checked. MPI_SUCCESS or mpi_fail(...). */
int mpi_info_put(struct mpi_info *info, const char *key, const char *value);

/* ---- communicators --------------------------------------------------------------------------- */

struct mpi_topology; /* cart, graph or dist_graph */

/* A communicator has two contexts of the match bits: `context` for the user's messages and
 * context + 1 for collectives. */
struct mpi_comm {
	struct mpi_obj obj;
	uint32_t context;
	int rank, size; /* in the local group */
	/* ranks that can be sent to: of the remote group in an intercommunicator */
	int remote_size;
	bool inter;
	bool freed; /* the user's handle is gone */
	bool lost; /* a rank died, or ranks disagree: no collective works any more (schedule.h) */
	struct mpi_group *local;
	struct mpi_group *remote;    /* the local group in an intracommunicator */
	struct mpi_comm *local_comm; /* intercommunicator: its local side, for collectives */
	struct mpi_errhandler *handler;
	struct mpi_attr *attrs;
	struct mpi_topology *topology;
	struct mpi_buffer *buffer; /* for buffered sends; NULL: the process's */
	struct mpi_info *info;     /* hints in force; NULL: none */
	uint32_t idups;            /* MPI_Comm_idup calls so far, the same on all ranks */
	uint32_t schedules;        /* collectives so far but blocking ones, the same on all ranks */
	struct mpi_shmcoll *shmcoll; /* shmcoll.h; NULL: not made */
	uint32_t shmcoll_uses; /* collectives that a hub would have served, before it was made */
	struct mpi_calls calls;
	char name[MPI_MAX_OBJECT_NAME];
};

extern struct mpi_comm mpi_comm_world, mpi_comm_self;

/* World rank of a rank that can be sent to. */
static inline int mpi_comm_peer(const struct mpi_comm *c, int rank)
{
	return mpi_group_world(c->remote, rank);
}

/* Once, before the first communicator: what collectives keep with one goes with it. */
void mpi_comm_at_end(void (*end)(struct mpi_comm *comm));

/* Before and after everything: the predefined communicators, groups, error handlers, keyvals.
 * init needs rank, size and level of mpi_world. */
int mpi_objects_init(void);
void mpi_objects_fini(void);

#endif
