/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rings of the shared-memory NAL: single producer, single consumer, in lines of 64 bytes. A
 * header's line is valid when its seq is its own line number + 1. Lines that held payload may
 * look like anything, so before a header is published the line after the message, where the next
 * header will be looked for, is made invalid if it last held payload; the bitmap says so without
 * touching the line. All of this is on the way of every message, which is why it is in a header.
 */
#ifndef SHM_RING_H
#define SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/cpu.h"
#include "nal/shm/shm_wire.h"

#define SHM_RING_LEAST 32768u /* bytes of the smallest there is */
/* Lines after which an empty ring begins again: they stay in the nearest caches. To begin again
 * costs a look at the consumer's line, so a producer that has a core to itself does so later;
 * where many share one, all their rings lie there. */
#define SHM_LAP_LEAST 96u
#define SHM_LAP_ALONE 320u
/* What was skipped is taken before there is room behind where the ring began again, so that has
 * room for some messages. */
#define SHM_LAP_ROOM       4u
#define SHM_SLOTS          8 /* of a pipe */
#define SHM_LENGTH_CLASSES 5 /* classes of long messages, by length */
#define SHM_SPLICE_FROM    2 /* the first of them that pipes of the kernel are for */

/*
 * A chunk of a message on its way to the region's owner through the pipe. The source fills slots
 * that are not full; whoever moves the channel's slots_busy from 0 may take out what is there,
 * and makes them free.
 */
struct shm_slot {
	_Alignas(64) _Atomic uint32_t full;
	uint32_t delivery, gen;
	uint32_t at_source; /* the landing is in the source's region */
	uint32_t chunk;
};

enum shm_splice_answer { SHM_SPLICE_UNASKED, SHM_SPLICE_AGREED, SHM_SPLICE_REFUSED };

/*
 * Some chunks of a message on their way to the region's owner through a pipe of the kernel
 * (shm_splice.c). One message's at a time: the pipe is empty before `full` is 0 again. The
 * source fills it in; whoever moves `busy` from 0 takes out what is there, or moves it and
 * empties the pipe.
 */
struct shm_spliced {
	_Alignas(64) _Atomic uint32_t offer; /* descriptor of the pipe in the source, + 1 */
	_Atomic uint32_t full;
	uint64_t inode; /* of the pipe */
	uint32_t delivery, gen;
	uint32_t at_source; /* the landing is in the source's region */
	uint32_t first, chunks;
	uint32_t bytes; /* that were put in; the chunks' others are in place */
	_Alignas(64) _Atomic uint32_t busy;
	_Atomic uint32_t answer; /* the destination's: enum shm_splice_answer */
};

/* From one peer to the region's owner. */
struct shm_channel {
	/* written by the consumer: under the owner's lock */
	uint64_t head; /* lines taken */
	uint64_t messages;
	/* written by the producer: under the producer's own region's lock */
	_Alignas(64) uint64_t tail; /* lines written */
	uint64_t head_seen;         /* what head was when last looked at */
	uint64_t looked;            /* what tail was when head was last looked at to begin again */
	uint64_t pad_from, pad_to;  /* lines that were skipped at the end of a lap, lately */
	/* 1: the producer has something it could not put in */
	_Alignas(64) _Atomic uint32_t want_space;
	/* written by the consumer: long messages, by length (shm_path_of), go by claims, not
	 * through the pipe */
	_Atomic uint32_t claims[SHM_LENGTH_CLASSES];
	/* ... of a consumer that decides: those both ways at once, too, not by a pipe of the
	 * kernel */
	_Atomic uint32_t unspliced[SHM_LENGTH_CLASSES];
	struct shm_slot slot[SHM_SLOTS];
	_Alignas(64) _Atomic uint32_t slots_busy;
	struct shm_spliced spliced;
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
	/* Up to this line are lazy messages only, if the head is before it. The owner's of the
	 * rings in its region; written under its lock. */
	uint64_t lazy_to;
};

static inline struct shm_msg *shm_ring_line(const struct shm_ring *r, uint64_t at)
{
	return (struct shm_msg *)(void *)(r->lines + (at & (r->count - 1)) * SHM_LINE);
}

/* Is there a message at line `at`, where one would begin? */
static inline bool shm_ring_any_at(const struct shm_ring *r, uint64_t at)
{
	/* acquire: partner of the publish's release */
	return __atomic_load_n(&shm_ring_line(r, at)->seq, __ATOMIC_ACQUIRE) == (uint32_t)at + 1;
}

/* Is there a message to be taken? */
static inline bool shm_ring_any(const struct shm_ring *r)
{
	return shm_ring_any_at(r, __atomic_load_n(&r->ch->head, __ATOMIC_RELAXED));
}

/* Where the first message is that nobody has found lazy. */
static inline uint64_t shm_ring_unseen(const struct shm_ring *r)
{
	uint64_t head = __atomic_load_n(&r->ch->head, __ATOMIC_RELAXED);
	uint64_t lazy_to = __atomic_load_n(&r->lazy_to, __ATOMIC_RELAXED);

	return lazy_to > head ? lazy_to : head;
}

/* The producer found the ring full, and now it is no longer: half of it is free, so that it is
 * told once per half and not for each message. */
static inline bool shm_ring_space_due(const struct shm_ring *r)
{
	return atomic_load_explicit(&r->ch->want_space, memory_order_relaxed) &&
	       __atomic_load_n(&r->ch->tail, __ATOMIC_RELAXED) -
			       __atomic_load_n(&r->ch->head, __ATOMIC_RELAXED) <=
		       r->count / 2;
}

/* The `n` lines from `first` on, which are in one piece, hold payload. */
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

/* The tail's place in the lap. */
static inline uint32_t shm_ring_at(const struct shm_ring *r)
{
	return (uint32_t)(r->ch->tail & (r->count - 1));
}

/*
 * Lines from the tail to the end of the lap that a message of `size` bytes must skip, or had
 * better: lines of an earlier lap come from both sides' second caches, which takes twice as
 * long, so a ring that was seen empty begins again soon.
 */
static inline uint32_t shm_ring_skip(const struct shm_ring *r, uint32_t size)
{
	uint32_t at = shm_ring_at(r), left = r->count - at, n = shm_lines(size, at);

	if (n > left)
		return left;
	/* a header has 16 bits for what is skipped */
	return at >= r->lap && left <= UINT16_MAX && r->ch->head_seen == r->ch->tail &&
			       at >= SHM_LAP_ROOM * shm_lines(size, 0)
		       ? left
		       : 0;
}

/* Has the consumer taken all there was? Looked at now and then, as its line is the consumer's. */
static inline void shm_ring_look_empty(struct shm_ring *r)
{
	struct shm_channel *ch = r->ch;

	if (shm_ring_at(r) < r->lap || ch->tail - ch->looked < r->lap)
		return;
	ch->looked = ch->tail;
	/* acquire: see shm_ring_room */
	ch->head_seen = __atomic_load_n(&ch->head, __ATOMIC_ACQUIRE);
}

/* Is there room for a message of `size` bytes, behind *skip lines (shm_ring_place_behind)?
 * Producer's lock held. */
static inline bool shm_ring_room_behind(struct shm_ring *r, uint32_t size, uint32_t *skip)
{
	uint64_t need;

	shm_ring_look_empty(r);
	*skip = shm_ring_skip(r, size);
	need = r->ch->tail + *skip + shm_lines(size, *skip ? 0 : shm_ring_at(r));

	/* the sanitizer cannot know that a thread of another process may have seen head last */
#if !defined(__SANITIZE_THREAD__)
	if (need - r->ch->head_seen <= r->count)
		return true;
#endif
	/* acquire: the lines up to head were read before they are written again */
	r->ch->head_seen = __atomic_load_n(&r->ch->head, __ATOMIC_ACQUIRE);
	return need - r->ch->head_seen <= r->count;
}

static inline bool shm_ring_room(struct shm_ring *r, uint32_t size)
{
	uint32_t skip;

	return shm_ring_room_behind(r, size, &skip);
}

/* Lines of messages that had not been taken when the head was last looked at. */
static inline uint64_t shm_ring_held(const struct shm_ring *r)
{
	const struct shm_channel *ch = r->ch;

	return ch->tail - ch->head_seen -
	       (ch->head_seen <= ch->pad_from ? ch->pad_to - ch->pad_from : 0);
}

/* Does the consumer leave so much in it that it had better be worked off? Producer's lock held. */
static inline bool shm_ring_filling(struct shm_ring *r)
{
	if (shm_ring_held(r) <= r->count / 2)
		return false;
	/* acquire: see shm_ring_room */
	r->ch->head_seen = __atomic_load_n(&r->ch->head, __ATOMIC_ACQUIRE);
	return shm_ring_held(r) > r->count / 2;
}

/*
 * The tail moves on behind a message of n lines; returns the seq that its header, in the first
 * of them, is published with. The consumer looks at that line all the time, and takes it away
 * while it is being written: filled at last and in one go it goes over once.
 */
static inline uint32_t shm_ring_claim(struct shm_ring *r, uint32_t n)
{
	uint64_t tail = r->ch->tail;
	uint32_t next = (uint32_t)((tail + n) & (r->count - 1));

	/* the line of this header is clean since the message before it; only so may it be the
	 * next line of a full ring */
	if (shm_ring_clear_dirty(r, next))
		__atomic_store_n(&shm_ring_line(r, next)->seq, (uint32_t)(tail + n),
				 __ATOMIC_RELAXED);
	__atomic_store_n(&r->ch->tail, tail + n, __ATOMIC_RELAXED); /* others look at it */
	return (uint32_t)tail + 1;
}

/* The header is whole, all but its seq. */
static inline void shm_ring_publish_as(struct shm_msg *m, uint32_t seq)
{
	/* release: partner of shm_ring_any's acquire */
	__atomic_store_n(&m->seq, seq, __ATOMIC_RELEASE);
}

/* The line at the tail holds a header of n lines, all but its seq. */
static inline void shm_ring_publish_lines(struct shm_ring *r, uint32_t n)
{
	struct shm_msg *m = shm_ring_line(r, r->ch->tail);

	shm_ring_publish_as(m, shm_ring_claim(r, n));
}

/* Where the header of a message goes, behind `pad` lines to be skipped, for which there is room.
 * It is filled in place, but for seq, and goes out with shm_ring_publish. */
static inline struct shm_msg *shm_ring_place_behind(struct shm_ring *r, uint32_t pad)
{
	if (__builtin_expect(pad, 0)) {
		struct shm_msg *m = shm_ring_line(r, r->ch->tail);

		m->kind = SHM_PAD;
		m->size = (uint16_t)pad;
		r->ch->pad_from = r->ch->tail;
		r->ch->pad_to = r->ch->tail + pad;
		/* a header that stayed in those behind it until numbers come again would look
		 * valid */
		shm_ring_set_dirty(r, shm_ring_at(r) + 1, pad - 1);
		shm_ring_publish_lines(r, pad);
	}
	return shm_ring_line(r, r->ch->tail);
}

/* The same of a message of `size` bytes. */
static inline struct shm_msg *shm_ring_place(struct shm_ring *r, uint32_t size)
{
	return shm_ring_place_behind(r, shm_ring_skip(r, size));
}

/* Where a payload of `size` bytes, more than a header has room for, goes. */
static inline char *shm_ring_payload_lines(struct shm_ring *r, uint32_t size)
{
	uint32_t at = shm_ring_at(r), first = shm_payload_line(at);

	shm_ring_set_dirty(r, at + 1, shm_lines(size, at) - 1);
	return r->lines + (size_t)first * SHM_LINE;
}

#define SHM_ASK_MOST 1024

/* Asks for the lines that a message of `size` bytes would be written to, of SHM_ASK_MOST at
 * most. Returns that of its header. */
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

/* Where its payload goes; m->size is set. */
static inline char *shm_ring_payload(struct shm_ring *r, struct shm_msg *m)
{
	return m->size <= SHM_INLINE ? (char *)m->data : shm_ring_payload_lines(r, m->size);
}

static inline void shm_ring_publish(struct shm_ring *r, const struct shm_msg *m)
{
	shm_ring_publish_lines(r, shm_lines(m->size, shm_ring_at(r)));
}

#endif
