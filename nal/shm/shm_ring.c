/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rings (shm_ring.h) of a region: where they are, how large, and empty again for the next peer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/config.h"
#include "base/cpu.h"
#include "nal/shm/shm.h"

static uint64_t round_pow2(uint64_t n)
{
	uint64_t p = 4096;

	while (p < n)
		p *= 2;
	return p;
}

static uint64_t page_up(uint64_t n)
{
	return (n + 4095) & ~4095ull;
}

static uint64_t dirty_bytes(uint32_t ring_bytes)
{
	return page_up(ring_bytes / SHM_LINE / 8);
}

static uint64_t block_bytes(uint32_t ring_bytes, uint32_t pipe_bytes)
{
	return ring_bytes + dirty_bytes(ring_bytes) + pipe_bytes;
}

static uint32_t ring_bytes_wanted(void)
{
	uint64_t bytes = round_pow2((uint64_t)base_config()->ptl_shm_ring_kib * 1024);

	/* the longest eager message must fit several times */
	while (bytes < 4ull * (uint64_t)base_config()->ptl_shm_eager || bytes < SHM_RING_LEAST)
		bytes *= 2;
	return (uint32_t)bytes;
}

static uint32_t pipe_bytes_wanted(void)
{
	return (uint32_t)round_pow2((uint64_t)base_config()->ptl_shm_pipe_kib * 1024);
}

size_t shm_area_bytes(void)
{
	return page_up(sizeof(struct shm_area)) +
	       SHM_CHANNELS * block_bytes(ring_bytes_wanted(), pipe_bytes_wanted());
}

void shm_area_init(struct shm_area *a)
{
	a->ring_bytes = ring_bytes_wanted();
	a->pipe_bytes = pipe_bytes_wanted();
}

static bool pow2(uint32_t n)
{
	return n && !(n & (n - 1));
}

int shm_area_check(const struct ptl_view *v)
{
	const struct shm_area *a = (const struct shm_area *)v->nal;
	uint64_t size = v->arena_off - (uint64_t)(v->nal - (char *)v->r);

	if (size < sizeof(*a) || !pow2(a->ring_bytes) || !pow2(a->pipe_bytes) ||
	    a->ring_bytes < 32768 || a->pipe_bytes < 4096 ||
	    page_up(sizeof(*a)) + SHM_CHANNELS * block_bytes(a->ring_bytes, a->pipe_bytes) > size)
		return -EPROTO;
	return 0;
}

void shm_ring_init(struct shm_ring *r, const struct ptl_view *v, uint32_t channel)
{
	struct shm_area *a = (struct shm_area *)v->nal;
	char *block =
		v->nal + page_up(sizeof(*a)) + channel * block_bytes(a->ring_bytes, a->pipe_bytes);

	r->ch = &a->channel[channel];
	r->lines = block;
	r->dirty = (uint64_t *)(void *)(block + a->ring_bytes);
	r->pipe = block + a->ring_bytes + dirty_bytes(a->ring_bytes);
	r->count = a->ring_bytes / SHM_LINE;
	r->chunk = a->pipe_bytes / SHM_SLOTS;
	r->lap = SHM_LAP_LEAST;
}

void shm_ring_reset(struct shm_ring *r)
{
	struct shm_channel *ch = r->ch;

	/* a thread that has just left the library may still be looking (shm_rings_pending) */
	__atomic_store_n(&ch->head, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ch->tail, 0, __ATOMIC_RELAXED);
	atomic_store_explicit(&ch->want_space, 0, memory_order_relaxed);
	ch->pad_from = ch->pad_to = 0;
	__atomic_store_n(&r->lazy_to, 0, __ATOMIC_RELAXED);
	ch->messages = ch->head_seen = ch->looked = 0;
	memset(ch->claims, 0, sizeof(ch->claims));
	memset(ch->unspliced, 0, sizeof(ch->unspliced));
	memset(ch->slot, 0, sizeof(ch->slot));
	atomic_store_explicit(&ch->slots_busy, 0, memory_order_relaxed);
	memset(&ch->spliced, 0, sizeof(ch->spliced));
	madvise(r->lines,
		r->count * (size_t)SHM_LINE + dirty_bytes(r->count * SHM_LINE) +
			(size_t)r->chunk * SHM_SLOTS,
		MADV_REMOVE);
}
