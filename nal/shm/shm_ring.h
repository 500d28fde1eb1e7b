/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rings of the shared-memory NAL: single producer, single consumer, in lines of 64 bytes.
 * A header's line is valid if its seq is its own line number + 1. Lines that held payload may
 * contain anything. So before a header is published, the line after its message is invalidated
 * if it last held payload: the next header is polled there. The bitmap tells this without
 * touching the line. Every message passes through this code, so it is inline.
 */
#ifndef SHM_RING_H
#define SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/cpu.h"
#include "nal/shm/shm_wire.h"

#define SHM_RING_LEAST 32768u /* bytes of the smallest ring */
/* Lines after which an empty ring starts over, so that they stay in the nearest caches.
 * Starting over costs a read of the consumer's line. So a producer with a core to itself does
 * it later; where many share a core, all their rings must fit. */
#define SHM_LAP_LEAST 96u
#define SHM_LAP_ALONE 320u
/* A ring starts over only if the lap has room for some messages: the skipped lines must be
 * consumed before the ring has room behind its new start. */
#define SHM_LAP_ROOM       4u
#define SHM_SLOTS          8 /* of a pipe */
#define SHM_LENGTH_CLASSES 5 /* classes of long messages, by length */

/*
 * A chunk of a message on its way to the region's owner through the pipe. The source fills
 * slots that are not full. The process that changes the channel's slots_busy from 0 may drain
 * the full ones and free them.
 */
struct shm_slot {
	_Alignas(64) _Atomic uint32_t full;
	uint32_t delivery, gen;
	uint32_t at_source; /* the delivery is in the source's region */
	uint32_t chunk;
};

/* From one peer to the region's owner. */
struct shm_channel {
	/* written by the consumer, under the owner's lock */
	uint64_t head; /* lines consumed */
	uint64_t messages;
	/* written by the producer, under the lock of the producer's own region */
	_Alignas(64) uint64_t tail; /* lines written */
	uint64_t head_seen;         /* head when last read */
	uint64_t head_read_at;      /* tail when head was last read in order to start over */
	uint64_t pad_from, pad_to;  /* lines skipped at the end of the last lap that had any */
	/* 1: the producer has something that did not fit */
	_Alignas(64) _Atomic uint32_t want_space;
	/* Written by the consumer: long messages of a class (shm_path_of) go by claims, not
	 * through the pipe. */
	_Atomic uint32_t claims[SHM_LENGTH_CLASSES];
	struct shm_slot slot[SHM_SLOTS];
	_Alignas(64) _Atomic uint32_t slots_busy;
};

/* One end of a ring: a channel of some mapped region. */
struct shm_ring {
	struct shm_channel *ch;
	char *lines;
	uint64_t *dirty; /* bit per line: last held payload */
	char *pipe;
	uint32_t count; /* lines, a power of two */
	uint32_t chunk; /* bytes of a pipe slot */
	uint32_t lap;   /* the producer's: SHM_LAP_LEAST or SHM_LAP_ALONE */
	/* Up to this line there are only lazy messages, if it is beyond the head. For the
	 * owner of the ring's region; written under its lock. */
	uint64_t lazy_to;
};

static inline struct shm_msg *shm_ring_line(const struct shm_ring *r, uint64_t at)
{
	return (struct shm_msg *)(void *)(r->lines + (at & (r->count - 1)) * SHM_LINE);
}

/* Return whether a message begins at line `at`. */
static inline bool shm_ring_any_at(const struct shm_ring *r, uint64_t at)
{
	/* acquire: pairs with the release in shm_ring_publish_as */
	return __atomic_load_n(&shm_ring_line(r, at)->seq, __ATOMIC_ACQUIRE) == (uint32_t)at + 1;
}

/* Return whether there is a message to consume. */
static inline bool shm_ring_any(const struct shm_ring *r)
{
	return shm_ring_any_at(r, __atomic_load_n(&r->ch->head, __ATOMIC_RELAXED));
}

/* Return the line of the first message that was not found lazy. */
static inline uint64_t shm_ring_unseen(const struct shm_ring *r)
{
	uint64_t head = __atomic_load_n(&r->ch->head, __ATOMIC_RELAXED);
	uint64_t lazy_to = __atomic_load_n(&r->lazy_to, __ATOMIC_RELAXED);

	return lazy_to > head ? lazy_to : head;
}

/* Return whether to tell the producer of room: it found the ring full, and now half is free.
 * So it is told once per half, not once per message. */
static inline bool shm_ring_space_due(const struct shm_ring *r)
{
	return atomic_load_explicit(&r->ch->want_space, memory_order_relaxed) &&
	       __atomic_load_n(&r->ch->tail, __ATOMIC_RELAXED) -
			       __atomic_load_n(&r->ch->head, __ATOMIC_RELAXED) <=
		       r->count / 2;
}

/* Mark the `n` contiguous lines from `first` on: they hold payload. */
static inline void shm_ring_set_dirty(struct shm_ring *r, uint32_t first, uint32_t n)
{
	while (n) {
		uint32_t at = first % 64, some = 64 - at;
		uint64_t ones = UINT64_MAX << at;

		if (n < some) {
			some = n;
			ones &= (1ull << (at + n)) - 1;
		}
		r->dirty[first / 64] |= ones;
		first += some;
		n -= some;
	}
}

static inline bool shm_ring_clear_dirty(struct shm_ring *r, uint32_t line)
{
	uint64_t bit = 1ull << line % 64;
	bool was = r->dirty[line / 64] & bit;

	if (was)
		r->dirty[line / 64] &= ~bit;
	return was;
}

/* Return the tail's line within the lap. */
static inline uint32_t shm_ring_at(const struct shm_ring *r)
{
	return (uint32_t)(r->ch->tail & (r->count - 1));
}

/*
 * Return how many lines, from the tail to the end of the lap, a message of `size` bytes must
 * or should skip. Lines of an earlier lap come from the second-level caches of both sides,
 * which takes twice as long. So a ring that was seen empty starts over soon.
 */
static inline uint32_t shm_ring_skip(const struct shm_ring *r, uint32_t size)
{
	uint32_t at = shm_ring_at(r), left = r->count - at, n = shm_lines(size, at);

	if (n > left)
		return left;
	/* a header has 16 bits for the count of skipped lines */
	return at >= r->lap && left <= UINT16_MAX && r->ch->head_seen == r->ch->tail &&
			       at >= SHM_LAP_ROOM * shm_lines(size, 0)
		       ? left
		       : 0;
}

/* Check whether the consumer has consumed everything. Rarely, as the line belongs to the
 * consumer. */
static inline void shm_ring_read_head(struct shm_ring *r)
{
	struct shm_channel *ch = r->ch;

	if (shm_ring_at(r) < r->lap || ch->tail - ch->head_read_at < r->lap)
		return;
	ch->head_read_at = ch->tail;
	/* acquire: see shm_ring_room_behind */
	ch->head_seen = __atomic_load_n(&ch->head, __ATOMIC_ACQUIRE);
}

/* Return whether there is room for a message of `size` bytes behind *skip lines
 * (shm_ring_place_behind). Producer's lock held. */
static inline bool shm_ring_room_behind(struct shm_ring *r, uint32_t size, uint32_t *skip)
{
	uint64_t need;

	shm_ring_read_head(r);
	*skip = shm_ring_skip(r, size);
	need = r->ch->tail + *skip + shm_lines(size, *skip ? 0 : shm_ring_at(r));

	/* The sanitizer cannot know that a thread of another process may have read head last. */
#if !defined(__SANITIZE_THREAD__)
	if (need - r->ch->head_seen <= r->count)
		return true;
#endif
	/* acquire: lines up to head were read before they are written again */
	r->ch->head_seen = __atomic_load_n(&r->ch->head, __ATOMIC_ACQUIRE);
	return need - r->ch->head_seen <= r->count;
}

static inline bool shm_ring_room(struct shm_ring *r, uint32_t size)
{
	uint32_t skip;

	return shm_ring_room_behind(r, size, &skip);
}

/* Return the lines of messages that were not consumed when the head was last read. */
static inline uint64_t shm_ring_held(const struct shm_ring *r)
{
	const struct shm_channel *ch = r->ch;

	return ch->tail - ch->head_seen -
	       (ch->head_seen <= ch->pad_from ? ch->pad_to - ch->pad_from : 0);
}

/* Return whether the consumer leaves so much in the ring that somebody should process it.
 * Producer's lock held. */
static inline bool shm_ring_filling(struct shm_ring *r)
{
	if (shm_ring_held(r) <= r->count / 2)
		return false;
	/* acquire: see shm_ring_room_behind */
	r->ch->head_seen = __atomic_load_n(&r->ch->head, __ATOMIC_ACQUIRE);
	return shm_ring_held(r) > r->count / 2;
}

/*
 * Advance the tail by a message of n lines. Return the seq to publish its header with, which
 * is in the first of them. The consumer polls that line and takes it away while it is written.
 * So the header is filled last and in one go: the line then moves once.
 */
static inline uint32_t shm_ring_claim(struct shm_ring *r, uint32_t n)
{
	uint64_t tail = r->ch->tail;
	uint32_t next = (uint32_t)((tail + n) & (r->count - 1));

	/* This header's own line was cleaned by the message before it; only so may it be the
	 * next line of a full ring. */
	if (shm_ring_clear_dirty(r, next))
		__atomic_store_n(&shm_ring_line(r, next)->seq, (uint32_t)(tail + n),
				 __ATOMIC_RELAXED);
	__atomic_store_n(&r->ch->tail, tail + n, __ATOMIC_RELAXED); /* others read it */
	return (uint32_t)tail + 1;
}

/* The header is complete except for its seq. */
static inline void shm_ring_publish_as(struct shm_msg *m, uint32_t seq)
{
	/* release: pairs with the acquire in shm_ring_any_at */
	__atomic_store_n(&m->seq, seq, __ATOMIC_RELEASE);
}

/* The line at the tail holds a header of n lines, complete except for its seq. */
static inline void shm_ring_publish_lines(struct shm_ring *r, uint32_t n)
{
	struct shm_msg *m = shm_ring_line(r, r->ch->tail);

	shm_ring_publish_as(m, shm_ring_claim(r, n));
}

/* Return the place for the header of a message, behind `pad` skipped lines, for which there
 * must be room. The caller fills it in place, except for seq, and calls shm_ring_publish. */
static inline struct shm_msg *shm_ring_place_behind(struct shm_ring *r, uint32_t pad)
{
	if (__builtin_expect(pad, 0)) {
		struct shm_msg *m = shm_ring_line(r, r->ch->tail);

		m->kind = SHM_PAD;
		m->size = (uint16_t)pad;
		r->ch->pad_from = r->ch->tail;
		r->ch->pad_to = r->ch->tail + pad;
		/* A header left in those lines until sequence numbers recur would look valid. */
		shm_ring_set_dirty(r, shm_ring_at(r) + 1, pad - 1);
		shm_ring_publish_lines(r, pad);
	}
	return shm_ring_line(r, r->ch->tail);
}

/* The same for a message of `size` bytes. */
static inline struct shm_msg *shm_ring_place(struct shm_ring *r, uint32_t size)
{
	return shm_ring_place_behind(r, shm_ring_skip(r, size));
}

/* Return the place for a payload of `size` bytes, more than fit in a header. */
static inline char *shm_ring_payload_lines(struct shm_ring *r, uint32_t size)
{
	uint32_t at = shm_ring_at(r), first = shm_payload_line(at);

	shm_ring_set_dirty(r, at + 1, shm_lines(size, at) - 1);
	return r->lines + (size_t)first * SHM_LINE;
}

#define SHM_ASK_MOST 1024

/* Prefetch the lines that a message of `size` bytes would be written to, SHM_ASK_MOST at most.
 * Return the line of its header. */
static inline const void *shm_ring_ask(const struct shm_ring *r, uint32_t size)
{
	const struct shm_msg *m = shm_ring_line(r, r->ch->tail);
	uint32_t first = shm_payload_line(shm_ring_at(r)) & (r->count - 1);
	const char *payload = r->lines + (size_t)first * SHM_LINE;

	base_prefetch_write(m);
	for (uint32_t i = 0; size > SHM_INLINE && i < size; i += SHM_LINE)
		base_prefetch_write(payload + i);
	return m;
}

/* Return the place for its payload; m->size is set. */
static inline char *shm_ring_payload(struct shm_ring *r, struct shm_msg *m)
{
	return m->size <= SHM_INLINE ? (char *)m->data : shm_ring_payload_lines(r, m->size);
}

static inline void shm_ring_publish(struct shm_ring *r, const struct shm_msg *m)
{
	shm_ring_publish_lines(r, shm_lines(m->size, shm_ring_at(r)));
}

#endif
