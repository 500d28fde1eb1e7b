/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rings: single producer, single consumer, in lines of 64 bytes. A header's line is valid when its
 * seq is its own line number + 1. Lines that held payload may look like anything, so before a header is
 * published the line after it, where the next header will be looked for, is made invalid if it last
 * held payload; the bitmap says so without touching the line.
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
	while (bytes < 4ull * (uint64_t)base_config()->ptl_shm_eager || bytes < 32768)
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
	    page_up(sizeof(*a)) + SHM_CHANNELS * block_bytes(a->ring_bytes, a->pipe_bytes) != size)
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
}

void shm_ring_reset(struct shm_ring *r)
{
	memset(r->ch, 0, sizeof(*r->ch));
	madvise(r->lines,
		r->count * (size_t)SHM_LINE + dirty_bytes(r->count * SHM_LINE) +
			(size_t)r->chunk * SHM_SLOTS,
		MADV_REMOVE);
}

static void set_dirty(struct shm_ring *r, uint32_t line)
{
	r->dirty[line / 64] |= 1ull << line % 64;
}

static bool clear_dirty(struct shm_ring *r, uint32_t line)
{
	uint64_t bit = 1ull << line % 64;
	bool was = r->dirty[line / 64] & bit;

	if (was)
		r->dirty[line / 64] &= ~bit;
	return was;
}

/* Lines from the tail to the end of the lap that a message of n lines must skip. */
static uint32_t skip(const struct shm_ring *r, uint32_t n)
{
	uint32_t left = r->count - (uint32_t)(r->ch->tail & (r->count - 1));

	return n <= left ? 0 : left;
}

bool shm_ring_room(struct shm_ring *r, uint32_t size)
{
	uint32_t n = shm_lines(size);
	/* one line more than needed stays free: the one after, which is looked at next */
	uint64_t need = r->ch->tail + skip(r, n) + n + 1;

#if !defined(                                                                                      \
	__SANITIZE_THREAD__) /* who saw head last may be a thread of another process: it cannot know */
	if (need - r->ch->head_seen <= r->count)
		return true;
#endif
	/* acquire: the lines up to head were read before they are written again */
	r->ch->head_seen = __atomic_load_n(&r->ch->head, __ATOMIC_ACQUIRE);
	return need - r->ch->head_seen <= r->count;
}

/* The line at the tail holds a header of n lines, all but its seq. */
static void publish(struct shm_ring *r, uint32_t n)
{
	uint64_t tail = r->ch->tail;
	uint32_t next = (uint32_t)((tail + n) & (r->count - 1));

	if (clear_dirty(r, next))
		__atomic_store_n(&shm_ring_line(r, next)->seq, (uint32_t)(tail + n),
				 __ATOMIC_RELAXED);
	clear_dirty(r, (uint32_t)(tail & (r->count - 1)));
	r->ch->tail = tail + n;
	/* release: partner of shm_ring_any's acquire */
	__atomic_store_n(&shm_ring_line(r, tail)->seq, (uint32_t)tail + 1, __ATOMIC_RELEASE);
	base_prefetch_write(shm_ring_line(r, tail + n + 1));
}

struct shm_msg *shm_ring_place(struct shm_ring *r, uint32_t size)
{
	uint32_t pad = skip(r, shm_lines(size));

	if (pad) {
		struct shm_msg *m = shm_ring_line(r, r->ch->tail);

		m->kind = SHM_PAD;
		m->size = (uint16_t)pad;
		publish(r, pad);
	}
	return shm_ring_line(r, r->ch->tail);
}

char *shm_ring_payload(struct shm_ring *r, struct shm_msg *m)
{
	uint32_t n = shm_lines(m->size), first;

	if (n == 1)
		return (char *)m->data;
	first = (uint32_t)((r->ch->tail + 1) & (r->count - 1));
	for (uint32_t i = 0; i < n - 1; i++)
		set_dirty(r, first + i);
	return r->lines + (size_t)first * SHM_LINE;
}

void shm_ring_publish(struct shm_ring *r, const struct shm_msg *m)
{
	publish(r, shm_lines(m->size));
}
