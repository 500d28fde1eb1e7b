/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI handles and the objects behind them. A predefined handle is a number below 0x1000 (MPI 5.0
 * ABI); a handle of the user's is a number of 32 bits in a pointer's clothes: kind, generation,
 * index of the object in its pool. So a stale or invented handle is told from a good one without
 * touching what it points to, and MPI_*_toint is the number itself.
 *
 * Pools and objects are guarded by the global lock (world.h).
 */
#ifndef MPI_SHIM_HANDLE_H
#define MPI_SHIM_HANDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mpi_kind {
	MPI_KIND_NONE,
	MPI_KIND_COMM,
	MPI_KIND_GROUP,
	MPI_KIND_TYPE,
	MPI_KIND_OP,
	MPI_KIND_REQUEST,
	MPI_KIND_ERRHANDLER,
	MPI_KIND_INFO,
	MPI_KIND_MESSAGE,
	MPI_KIND_WIN,
	MPI_KIND_END
};

#define MPI_HANDLE_PREDEFINED 0x1000u /* handles below are */
#define MPI_INDEX_BITS        22
#define MPI_GEN_BITS          6
#define MPI_POOL_CHUNK        256u
#define MPI_POOL_CHUNKS       ((1u << MPI_INDEX_BITS) / MPI_POOL_CHUNK)

/* First member of every object. */
struct mpi_obj {
	uint32_t handle; /* 0 while free */
	uint16_t kind;
	uint16_t gen;
	int32_t refs;         /* the handle is one; operations and objects that use it are others */
	uint32_t index;       /* in its pool */
	struct mpi_obj *next; /* of the free ones */
};

struct mpi_pool {
	char **chunk;   /* MPI_POOL_CHUNKS pointers; NULL until used */
	uint32_t size;  /* of an object */
	uint32_t count; /* objects ever made */
	struct mpi_obj *free;
	uint32_t in_use;               /* objects alive */
	void (*destroy)(void *object); /* what the object owns goes; may be NULL */
};

extern struct mpi_pool mpi_pools[MPI_KIND_END];
extern struct mpi_obj *mpi_predefined[MPI_HANDLE_PREDEFINED];

/* Once at start, before the first object of this kind: what objects are and how they end. */
void mpi_pool_setup(enum mpi_kind kind, size_t size, void (*destroy)(void *object));
/* At the end of MPI_Finalize: the memory of all pools goes, but where the user still has info
 * objects or error handlers. */
void mpi_pools_fini(void);

/* A zeroed object with one reference, or NULL when memory is short. */
void *mpi_object_new(enum mpi_kind kind);
/* A free object, after more were made; NULL when memory is short. */
struct mpi_obj *mpi_pool_grow(struct mpi_pool *p);
/* A statically allocated object becomes predefined under `handle`. */
void mpi_object_predefine(void *object, enum mpi_kind kind, uint32_t handle);
/* The last reference has gone. */
void mpi_object_end(struct mpi_obj *o);

/* Back to its pool; what it owned has gone. */
static inline void mpi_object_give_back(struct mpi_obj *o)
{
	struct mpi_pool *p = &mpi_pools[o->kind];

	o->handle = 0;
	o->gen++;
	o->next = p->free;
	p->free = o;
	p->in_use--;
}

/* Its handle is the one of its generation. */
static inline void mpi_object_name(struct mpi_obj *o, enum mpi_kind kind)
{
	o->handle = (uint32_t)kind << (MPI_INDEX_BITS + MPI_GEN_BITS) |
		    (o->gen & ((1u << MPI_GEN_BITS) - 1u)) << MPI_INDEX_BITS | o->index;
}

/* As mpi_object_new, but what is in it is left as it was. */
static inline void *mpi_object_take(enum mpi_kind kind)
{
	struct mpi_pool *p = &mpi_pools[kind];
	struct mpi_obj *o = p->free;

	if (__builtin_expect(!o, 0) && !(o = mpi_pool_grow(p)))
		return NULL;
	p->free = o->next;
	p->in_use++;
	o->refs = 1;
	mpi_object_name(o, kind);
	return o;
}

static inline void *mpi_object_keep(void *object)
{
	((struct mpi_obj *)object)->refs++;
	return object;
}

/* The user has freed it: no handle names it from now on, however long the shim keeps it.
 * Predefined ones stay. */
static inline void mpi_object_retire(struct mpi_obj *o)
{
	if (o->handle >= MPI_HANDLE_PREDEFINED)
		o->handle = MPI_HANDLE_PREDEFINED; /* of no kind */
}

/*
 * The same for objects that callbacks or MPI_Type_get_contents may still show the user: these
 * give out another handle from now on. What nobody else keeps ends now, and its handle with it.
 */
static inline void mpi_object_rename(struct mpi_obj *o)
{
	if (o->handle < MPI_HANDLE_PREDEFINED || o->refs == 1)
		return;
	o->gen++;
	mpi_object_name(o, (enum mpi_kind)o->kind);
}

/* One reference less; the last one ends the object. Predefined ones stay. NULL: nothing. */
static inline void mpi_object_release(void *object)
{
	struct mpi_obj *o = object;

	if (o && --o->refs == 0)
		mpi_object_end(o);
}

/* Object number i of a pool, in use (its handle is not 0) or not; NULL after the last. */
void *mpi_pool_at(enum mpi_kind kind, uint32_t i);

/* The object a handle names, NULL if it names none of this kind. */
static inline void *mpi_object_of(const void *handle, enum mpi_kind kind)
{
	uintptr_t h = (uintptr_t)handle;
	const struct mpi_pool *p = &mpi_pools[kind];
	uint32_t i = (uint32_t)h & ((1u << MPI_INDEX_BITS) - 1);
	struct mpi_obj *o;

	if (h < MPI_HANDLE_PREDEFINED) {
		o = mpi_predefined[h];
		return o && o->kind == kind ? o : NULL;
	}
	if (h >> (MPI_INDEX_BITS + MPI_GEN_BITS) != (uintptr_t)kind || i >= p->count)
		return NULL;
	o = (struct mpi_obj *)(void *)(p->chunk[i / MPI_POOL_CHUNK] +
				       (size_t)(i % MPI_POOL_CHUNK) * p->size);
	return o->handle == h ? o : NULL;
}

/* The handle of an object, as the pointer type of the caller's choice. */
static inline void *mpi_handle_of(const void *object)
{
	return (void *)(uintptr_t)((const struct mpi_obj *)object)->handle;
}

/* The error of a handle, called `name`, that names no object of this kind (kept text). */
int mpi_bad_handle(enum mpi_kind kind, const void *handle, const char *name) __attribute__((cold));
/* MPI_SUCCESS, or the error of freeing what is predefined. */
int mpi_check_own(const struct mpi_obj *object, const char *name);

#endif
