/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Groups, communicators and the small objects that belong to them. The global lock guards all
 * of them.
 *
 * `refs` counts the references of the shim and of the user together. The user may free an
 * object while the shim still refers to it. Then using or freeing it again must be an error,
 * and must take nothing away from the shim. So handles of groups and requests end at once
 * (mpi_object_retire). Those of communicators, datatypes, operations and error handlers change
 * (mpi_object_rename). One handle of a datatype or an error handler may be given out often, so
 * `handles` counts the references that are the user's.
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
	bool others;             /* some members are processes of other jobs */
	int *world;              /* number (process.h) by rank in the group; NULL: identity */
	struct mpi_group *owner; /* owner of `world`, referenced; NULL: this group */
	uint32_t session;        /* handle of the session it is from; 0: none */
};

extern struct mpi_group mpi_group_empty;

static inline int mpi_group_world(const struct mpi_group *g, int rank)
{
	return g->world ? g->world[rank] : rank;
}

/* Makes a group of the processes world[0] .. world[size - 1]. `world` is malloc'd; the group
 * owns it from now on, and it is freed on failure too. NULL: the first `size` world ranks. One
 * reference, which may be the user's. Returns NULL: out of memory, no text kept. */
struct mpi_group *mpi_group_make(int size, int *world);
/* Makes another object of the same group for the user, with a handle of its own. The handle
 * ends when the user frees it, whatever lives on of the original. */
int mpi_group_export(struct mpi_group *g, struct mpi_group **out);
/* Returns the rank in the group of a world rank; MPI_UNDEFINED if it is not a member. */
int mpi_group_rank_in(const struct mpi_group *g, int world);
/* Returns the rank in the group of each world rank (MPI_UNDEFINED: not a member), malloc'd.
 * NULL: out of memory. */
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

/* Cached attributes, newest first. */
struct mpi_attr {
	struct mpi_attr *next;
	struct mpi_keyval *keyval; /* referenced */
	void *value;
};

/*
 * Runs the delete callbacks of an object that ends, newest first, and drops its attributes.
 * When a callback fails, returns its code; the attributes not yet deleted stay. MPI_Finalize
 * begins with MPI_COMM_SELF, while everything still works (MPI-4 §11.2.4).
 */
int mpi_attrs_delete(void *object, enum mpi_kind kind, struct mpi_attr **attrs);
/* Copies the attributes whose copy callback agrees, oldest first, to `to`, the empty list of
 * `copy`. When a callback fails, returns its code, and *to is empty again. */
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
/* Sets a key; checks the lengths. MPI_SUCCESS or mpi_fail(...). */
int mpi_info_put(struct mpi_info *info, const char *key, const char *value);

/* ---- communicators --------------------------------------------------------------------------- */

struct mpi_topology; /* cart, graph or dist_graph */

/* A communicator has two contexts in the match bits: `context` for the user's messages and
 * context + 1 for collectives. */
struct mpi_comm {
	struct mpi_obj obj;
	uint32_t context;
	int rank, size; /* in the local group */
	/* Number of ranks that can be sent to: in an intercommunicator those of the remote
	 * group. */
	int remote_size;
	bool inter;
	bool freed;   /* the user has freed it */
	bool others;  /* some of its processes are of other jobs */
	bool counted; /* they know that it is there (pt2pt/others.c) */
	bool failed; /* a rank died, or ranks disagree: no collective works any more (schedule.h) */
	struct mpi_group *local;
	struct mpi_group *remote;    /* the local group in an intracommunicator */
	struct mpi_comm *local_comm; /* of an intercommunicator: its local side, for collectives */
	struct mpi_errhandler *handler;
	struct mpi_attr *attrs;
	struct mpi_topology *topology;
	struct mpi_buffer *buffer; /* for buffered sends; NULL: the session's or the process's */
	uint32_t session;          /* handle of the session it is from; 0: the world model */
	struct mpi_info *info;     /* hints in force; NULL: none */
	uint32_t idups;            /* MPI_Comm_idup calls so far, the same on all ranks */
	uint32_t schedules; /* collectives so far, except blocking ones, the same on all ranks */
	struct mpi_shmcoll *shmcoll; /* shared-memory collective area (shmcoll.h); NULL: not made */
	uint32_t shmcoll_uses; /* collectives that the area would have served before it was made */
	struct mpi_calls calls;
	char name[MPI_MAX_OBJECT_NAME];
};

extern struct mpi_comm mpi_comm_world, mpi_comm_self;
/* All processes of the job, for the library's own messages: it has no handle. On the collective
 * context of MPI_COMM_WORLD, with tags of its own (comm/comm.h). */
extern struct mpi_comm mpi_comm_job;

/* Returns the world rank of a rank that can be sent to. */
static inline int mpi_comm_peer(const struct mpi_comm *c, int rank)
{
	return mpi_group_world(c->remote, rank);
}

/* Sets the function that releases what collectives keep with a communicator, when that ends.
 * Called once, before the first communicator. */
void mpi_comm_at_end(void (*end)(struct mpi_comm *comm));

/* ---- sessions -------------------------------------------------------------------------------- */

struct mpi_session {
	struct mpi_obj obj;
	int level; /* of threads */
	struct mpi_errhandler *handler;
	struct mpi_buffer *buffer; /* for buffered sends; NULL: none is attached */
};

/* ---- the library ----------------------------------------------------------------------------- */

/* Make and end the groups, the context numbers, the keyvals and mpi_comm_job, before and after
 * everything else. mpi_objects_init needs rank and size of mpi_world. */
int mpi_objects_init(void);
void mpi_objects_fini(void);
/* Make and end the predefined communicators and MPI_INFO_ENV, which are there from MPI_Init to
 * MPI_Finalize. Need the level of mpi_world. */
int mpi_world_objects_init(void);
void mpi_world_objects_fini(void);

#endif
