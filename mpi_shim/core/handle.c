/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Pools of MPI objects: see handle.h.
 */
#include "mpi_shim/core/handle.h"

#include <stdlib.h>
#include <string.h>

struct mpi_pool mpi_pools[MPI_KIND_END];
struct mpi_obj *mpi_predefined[MPI_HANDLE_PREDEFINED];

void mpi_pool_setup(enum mpi_kind kind, size_t size, void (*destroy)(void *object))
{
	struct mpi_pool *p = &mpi_pools[kind];

	/* Whole cache lines, so that neighbours share none. */
	p->size = (uint32_t)(size + 63) & ~63u;
	p->destroy = destroy;
}

void mpi_pools_fini(void)
{
	for (int kind = 0; kind < MPI_KIND_END; kind++) {
		struct mpi_pool *p = &mpi_pools[kind];

		/* Info objects and error handlers may be used after MPI_Finalize (MPI-4
		 * §11.4.1). */
		if ((kind == MPI_KIND_INFO || kind == MPI_KIND_ERRHANDLER) && p->in_use)
			continue;
		for (uint32_t i = 0; i < p->count; i += MPI_POOL_CHUNK)
			free(p->chunk[i / MPI_POOL_CHUNK]);
		free(p->chunk);
		p->chunk = NULL;
		p->free = NULL;
		p->count = p->in_use = 0;
	}
}

static struct mpi_obj *object_at(const struct mpi_pool *p, uint32_t i)
{
	return (struct mpi_obj *)(void *)(p->chunk[i / MPI_POOL_CHUNK] +
					  (size_t)(i % MPI_POOL_CHUNK) * p->size);
}

void *mpi_pool_at(enum mpi_kind kind, uint32_t i)
{
	return i < mpi_pools[kind].count ? object_at(&mpi_pools[kind], i) : NULL;
}

struct mpi_obj *mpi_pool_grow(struct mpi_pool *p)
{
	char *chunk;

	if (!p->chunk)
		p->chunk = calloc(MPI_POOL_CHUNKS, sizeof(*p->chunk));
	if (!p->chunk || p->count / MPI_POOL_CHUNK == MPI_POOL_CHUNKS)
		return NULL;
	if (posix_memalign((void **)&chunk, 64, (size_t)MPI_POOL_CHUNK * p->size) != 0)
		return NULL;
	memset(chunk, 0, (size_t)MPI_POOL_CHUNK * p->size);
	p->chunk[p->count / MPI_POOL_CHUNK] = chunk;
	for (uint32_t i = MPI_POOL_CHUNK; i-- > 0;) { /* the first object is used first */
		struct mpi_obj *o = object_at(p, p->count + i);

		o->kind = (uint16_t)(p - mpi_pools);
		o->index = p->count + i;
		o->next = p->free;
		p->free = o;
	}
	p->count += MPI_POOL_CHUNK;
	return p->free;
}

void *mpi_object_new(enum mpi_kind kind)
{
	struct mpi_obj *o = mpi_object_take(kind);

	if (o)
		memset(o + 1, 0, mpi_pools[kind].size - sizeof(*o));
	return o;
}

void mpi_object_predefine(void *object, enum mpi_kind kind, uint32_t handle)
{
	struct mpi_obj *o = object;

	o->handle = handle;
	o->kind = (uint16_t)kind;
	o->refs = 1;
	mpi_predefined[handle] = o;
}

void mpi_object_end(struct mpi_obj *o)
{
	if (o->handle < MPI_HANDLE_PREDEFINED) {
		o->refs = 1;
		return;
	}
	if (mpi_pools[o->kind].destroy)
		mpi_pools[o->kind].destroy(o);
	mpi_object_give_back(o);
}
