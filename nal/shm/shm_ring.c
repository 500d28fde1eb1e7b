/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rings (shm_ring.h) of a region: where they are, how large they are, and how they are
 * emptied for the next peer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/config.h"
#include "base/cpu.h"
#include "base/shared.h"
#include "nal/shm/shm.h"

static uint64_t round_pow2(uint64_t n)
{
	uint64_t p = 4096;

	while (p < n)
		p *= 2;
	return p;
}

static uint64_t dirty_bytes(uint32_t ring_bytes)
{
	return ptl_page_up(ring_bytes / SHM_LINE / 8);
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

#define PIPE_LEAST (64u * 1024) /* if `ulimit -f` leaves little room */

/* Choose the sizes of channels that take `most` bytes in all, and return how many there are.
 * Given the bytes that they take, it returns the same again. */
static uint32_t channels_in(uint64_t most, uint32_t *ring_bytes, uint32_t *pipe_bytes)
{
	uint64_t n;

	*ring_bytes = ring_bytes_wanted();
	*pipe_bytes = pipe_bytes_wanted();
	while (*pipe_bytes > PIPE_LEAST &&
	       SHM_CHANNELS * block_bytes(*ring_bytes, *pipe_bytes) > most)
		*pipe_bytes /= 2;
	n = most / block_bytes(*ring_bytes, *pipe_bytes);
	return n < SHM_CHANNELS ? (uint32_t)n : SHM_CHANNELS;
}

size_t shm_area_bytes(void)
{
	return ptl_page_up(sizeof(struct shm_area));
}

uint64_t shm_channel_bytes(uint64_t most)
{
	uint32_t ring, pipe, n = channels_in(most, &ring, &pipe);

	return n * block_bytes(ring, pipe);
}

void shm_area_init(struct shm_area *a, const struct ptl_view *v)
{
	a->sizes.channels = channels_in(v->far_size, &a->sizes.ring_bytes, &a->sizes.pipe_bytes);
}

static bool pow2(uint32_t n)
{
	return n && !(n & (n - 1));
}

int shm_area_check(const struct ptl_view *v, struct shm_sizes *sizes)
{
	const struct shm_area *a = (const struct shm_area *)v->nal;

	if (v->size - (uint64_t)(v->nal - (char *)v->r) < sizeof(*a))
		return -EPROTO;
	/* Read once: the region may change at any time. The sizes are checked where they are
	 * used. */
	*sizes = *(const volatile struct shm_sizes *)&a->sizes;
	return 0;
}

int shm_ring_init(struct shm_ring *r, const struct ptl_view *v, int fd, uint32_t channel,
		  const struct shm_sizes *sizes)
{
	struct shm_area *a = (struct shm_area *)v->nal;
	const uint32_t ring = sizes->ring_bytes, pipe = sizes->pipe_bytes;
	uint64_t bytes = block_bytes(ring, pipe);
	char *block;
	int err;

	if (!pow2(ring) || !pow2(pipe) || ring < SHM_RING_LEAST || pipe < 4096)
		return -EPROTO;
	/* only its owner reserves memory for a region */
	err = fd == v->fd ? base_shared_reserve(fd, v->far_off + channel * bytes, bytes) : 0;
	if (err)
		return err;
	block = ptl_region_segment(v, fd, channel * bytes, bytes);
	if (!block)
		return -errno;
	memset(r, 0, sizeof(*r));
	r->ch = &a->channel[channel];
	r->lines = block;
	r->dirty = (uint64_t *)(void *)(block + ring);
	r->pipe = block + ring + dirty_bytes(ring);
	r->count = ring / SHM_LINE;
	r->chunk = pipe / SHM_SLOTS;
	r->lap = SHM_LAP_LEAST;
	return 0;
}

static size_t mapped_ring_bytes(const struct shm_ring *r)
{
	return block_bytes(r->count * SHM_LINE, r->chunk * SHM_SLOTS);
}

void shm_ring_unmap(struct shm_ring *r)
{
	if (r->lines)
		munmap(r->lines, mapped_ring_bytes(r));
	r->lines = NULL;
}

void shm_ring_reset(struct shm_ring *r, bool bounded)
{
	struct shm_channel *ch = r->ch;

	/* a thread that has just left the library may still poll it (shm_rings_pending) */
	__atomic_store_n(&ch->head, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ch->tail, 0, __ATOMIC_RELAXED);
	atomic_store_explicit(&ch->want_space, 0, memory_order_relaxed);
	ch->pad_from = ch->pad_to = 0;
	__atomic_store_n(&r->lazy_to, 0, __ATOMIC_RELAXED);
	ch->messages = ch->head_seen = ch->head_read_at = 0;
	memset(ch->claims, 0, sizeof(ch->claims));
	memset(ch->slot, 0, sizeof(ch->slot));
	atomic_store_explicit(&ch->slots_busy, 0, memory_order_relaxed);
	base_shared_clear(r->lines, mapped_ring_bytes(r), bounded);
}
