/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI handles and the objects behind them. A predefined handle is a number below 0x1000 (MPI
 * 5.0 ABI). A handle of the user's is a number of 32 bits, cast to a pointer: kind, generation,
 * index of the object in its pool. So a stale or invented handle is detected without touching
 * the memory it points to, and MPI_*_toint returns the number itself.
 *
 * The global lock (world.h) guards pools and objects. No function here blocks.
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
	MPI_KIND_FILE,
	MPI_KIND_SESSION,
	MPI_KIND_END
};

#define MPI_HANDLE_PREDEFINED 0x1000u /* handles below this are predefined */
#define MPI_INDEX_BITS        22
#define MPI_GEN_BITS          6
#define MPI_POOL_CHUNK        256u
#define MPI_POOL_CHUNKS       ((1u << MPI_INDEX_BITS) / MPI_POOL_CHUNK)

/* First member of every object. */
struct mpi_obj {
	uint32_t handle; /* 0 while free */
	uint16_t kind;
	uint16_t gen;
	int32_t refs;         /* 1 for the handle, 1 for each operation or object that uses it */
	uint32_t index;       /* in its pool */
	struct mpi_obj *next; /* next free object */
};

struct mpi_pool {
	char **chunk;   /* MPI_POOL_CHUNKS pointers; NULL until used */
	uint32_t size;  /* of an object */
	uint32_t count; /* objects ever made */
	struct mpi_obj *free;
	uint32_t in_use;               /* objects alive */
	void (*destroy)(void *object); /* releases what the object owns; may be NULL */
};

extern struct mpi_pool mpi_pools[MPI_KIND_END];
extern struct mpi_obj *mpi_predefined[MPI_HANDLE_PREDEFINED];

/* Sets the size of objects and how they end. Called once per kind, before its first object. */
void mpi_pool_setup(enum mpi_kind kind, size_t size, void (*destroy)(void *object));
/* Frees the memory of all pools at the end of MPI_Finalize. A pool of info objects or error
 * handlers stays while the user still has some. */
void mpi_pools_fini(void);

/* Returns a zeroed object with one reference. NULL: out of memory, no text kept. */
void *mpi_object_new(enum mpi_kind kind);
/* Adds a chunk to the pool and returns a free object, still on the free list. NULL: out of
 * memory. */
struct mpi_obj *mpi_pool_grow(struct mpi_pool *p);
/* Makes a statically allocated object predefined under `handle`. */
void mpi_object_predefine(void *object, enum mpi_kind kind, uint32_t handle);
/* Ends an object whose last reference was released. A predefined object gets its reference
 * back. */
void mpi_object_end(struct mpi_obj *o);

/* Returns an object to its pool. Its contents have been released. */
static inline void mpi_object_give_back(struct mpi_obj *o)
{
	struct mpi_pool *p = &mpi_pools[o->kind];

	o->handle = 0;
	o->gen++;
	o->next = p->free;
	p->free = o;
	p->in_use--;
}

/* Sets the handle of the object's present generation. */
static inline void mpi_object_name(struct mpi_obj *o, enum mpi_kind kind)
{
	o->handle = (uint32_t)kind << (MPI_INDEX_BITS + MPI_GEN_BITS) |
		    (o->gen & ((1u << MPI_GEN_BITS) - 1u)) << MPI_INDEX_BITS | o->index;
}

/* As mpi_object_new, but does not zero the object. */
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

/* Retires the handle, since the user has freed the object: no handle names it from now on,
 * however long the shim keeps it. Predefined handles stay. */
static inline void mpi_object_retire(struct mpi_obj *o)
{
	if (o->handle >= MPI_HANDLE_PREDEFINED)
		o->handle = MPI_HANDLE_PREDEFINED; /* names no object of any kind */
}

/*
 * Gives the object another handle, since the user has freed it. For objects that callbacks or
 * MPI_Type_get_contents may still show to the user: these return the new handle. An object with
 * no other reference keeps its handle, as it is released next.
 */
static inline void mpi_object_rename(struct mpi_obj *o)
{
	if (o->handle < MPI_HANDLE_PREDEFINED || o->refs == 1)
		return;
	o->gen++;
	mpi_object_name(o, (enum mpi_kind)o->kind);
}

/* Drops one reference; the last one ends the object. Predefined objects stay. NULL is ignored. */
static inline void mpi_object_release(void *object)
{
	struct mpi_obj *o = object;

	if (o && --o->refs == 0)
		mpi_object_end(o);
}

/* Returns object number i of a pool, in use or not (its handle is 0); NULL after the last. */
void *mpi_pool_at(enum mpi_kind kind, uint32_t i);

/* Returns the object that a handle names; NULL if it names none of this kind. */
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

/* Returns the handle of an object; the caller chooses the pointer type. */
static inline void *mpi_handle_of(const void *object)
{
	return (void *)(uintptr_t)((const struct mpi_obj *)object)->handle;
}

/* Returns the error for a handle that names no object of this kind, and keeps a text. `name`:
 * the argument, in words. */
int mpi_bad_handle(enum mpi_kind kind, const void *handle, const char *name) __attribute__((cold));
/* Returns MPI_SUCCESS, or the error for freeing a predefined object. `name`: the argument, in
 * words. */
int mpi_check_own(const struct mpi_obj *object, const char *name);

#endif
