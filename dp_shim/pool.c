/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The token buffer pool: four blocks that Portals fills one behind the other, and a ring of
 * tokens that say where each message lies. A block accepts a fixed number of messages at most,
 * so that the event queue never overflows: a lost event would be a block that never empties.
 * A block that accepts nothing more is armed again, at the end of the match list, as soon as its
 * last message is free.
 *
 * The event of a long message may come after those of messages behind it. Blocks are filled one
 * after the other, and each without gaps, so the place of a message tells the order in which
 * messages were matched. An event with a gap before it is held until the gap is filled.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dp_shim/core.h"

enum { QUEUE_SPARE = 64 };

static size_t padded(size_t length)
{
	return (length + DP_ALIGN - 1) / DP_ALIGN * DP_ALIGN;
}

/* ---- making ---------------------------------------------------------------------------------- */

static bool shape_memory(dpmmap_t *want)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t least = 2 * padded(want->max_message);
	size_t block = want->size / DP_BLOCKS / DP_ALIGN * DP_ALIGN;

	if (want->base) {
		want->size = block * DP_BLOCKS;
		return (uintptr_t)want->base % page == 0 && block >= least;
	}
	if (block < least)
		block = least;
	block = (block + page - 1) / page * page;
	want->size = block * DP_BLOCKS;
	return true;
}

bool dp_pool_shape(dpmmap_t *want)
{
	if (want->flags || want->max_message > DP_MAX_MESSAGE || want->size > DP_POOL_MOST ||
	    want->messages > DP_MESSAGES_MOST || (want->base && !want->size))
		return false;
	if (!want->max_message)
		want->max_message = DP_MAX_MESSAGE;
	if (!want->size)
		want->size = DP_POOL_BYTES;
	if (!want->messages)
		want->messages = DP_POOL_MESSAGES;
	want->messages = (want->messages + DP_BLOCKS - 1) / DP_BLOCKS * DP_BLOCKS;
	return shape_memory(want);
}

static ptl_md_t pool_block_md(const struct dp_pool *pool, const struct dp_block *b)
{
	return (ptl_md_t){ .start = b->base,
			   .length = pool->block_bytes,
			   .threshold = pool->threshold,
			   .max_size = padded(pool->longest),
			   .options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_ACK_DISABLE |
				      PTL_MD_EVENT_START_DISABLE,
			   .user_ptr = (void *)(b - pool->block),
			   .eq_handle = pool->eq };
}

/* Let a block accept messages, after all those that do already. */
static int attach_pool_block(const struct dp_ep *ep, struct dp_pool *pool, struct dp_block *b)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	int err =
		PtlMEMDAttach(dp_lib.ni, DP_PORTAL_DATA, any, ep->dpid, DP_IGNORED_BITS, PTL_RETAIN,
			      PTL_INS_AFTER, pool_block_md(pool, b), PTL_RETAIN, &b->me, &b->md);

	if (err != PTL_OK) {
		b->me = PTL_INVALID_HANDLE;
		return err;
	}
	b->turn = pool->turns++;
	b->arrived = b->live = 0;
	b->bytes = 0;
	b->inactive = false;
	return PTL_OK;
}

static int attach_blocks(const struct dp_ep *ep, struct dp_pool *pool)
{
	int err = PTL_OK;

	for (int i = 0; i < DP_BLOCKS && err == PTL_OK; i++) {
		pool->block[i].base = pool->base + (size_t)i * pool->block_bytes;
		err = attach_pool_block(ep, pool, &pool->block[i]);
	}
	return err;
}

static bool get_memory(struct dp_pool *pool, const dpmmap_t *want)
{
	uint64_t tokens = 2 * DP_EVENTS; /* room for a batch beside all messages */

	pool->own = !want->base;
	pool->base = want->base;
	if (pool->own)
		pool->base = mmap(NULL, want->size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pool->base == MAP_FAILED)
		return false;
	while (tokens < 2ull * want->messages)
		tokens *= 2;
	pool->mask = tokens - 1;
	/* mapped, so that what is not used takes no memory */
	pool->ring = mmap(NULL, tokens * sizeof(*pool->ring), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pool->held_room = want->messages;
	pool->held = mmap(NULL, pool->held_room * sizeof(*pool->held), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return pool->ring != MAP_FAILED && pool->held != MAP_FAILED;
}

int dp_pool_open(struct dp_ep *ep, struct dp_pool *pool, const dpmmap_t *want)
{
	int err;

	memset(pool, 0, sizeof(*pool));
	pool->eq = PTL_EQ_NONE;
	for (int i = 0; i < DP_BLOCKS; i++)
		pool->block[i].me = PTL_INVALID_HANDLE;
	pool->size = want->size;
	pool->block_bytes = want->size / DP_BLOCKS;
	pool->longest = want->max_message;
	pool->threshold = (int)(want->messages / DP_BLOCKS);
	if (!get_memory(pool, want)) {
		dp_pool_close(pool);
		errno = ENOMEM;
		return -1;
	}
	err = PtlEQAlloc(dp_lib.ni, want->messages + QUEUE_SPARE, PTL_EQ_HANDLER_NONE, &pool->eq);
	if (err == PTL_OK)
		err = attach_blocks(ep, pool);
	else
		pool->eq = PTL_EQ_NONE;
	if (err != PTL_OK) {
		dp_pool_close(pool);
		errno = ENOMEM;
		return -1;
	}
	return 0;
}

void dp_pool_close(struct dp_pool *pool)
{
	ptl_event_t event;
	int n;

	for (int i = 0; i < DP_BLOCKS; i++)
		while (pool->block[i].me != PTL_INVALID_HANDLE &&
		       PtlMEUnlink(pool->block[i].me) == PTL_ME_IN_USE)
			PtlEQPollMany(&pool->eq, 1, 1, NULL, &event, 1, &n);
	if (pool->eq != PTL_EQ_NONE)
		PtlEQFree(pool->eq);
	if (pool->own && pool->base && pool->base != MAP_FAILED)
		munmap(pool->base, pool->size);
	if (pool->ring && pool->ring != MAP_FAILED)
		munmap(pool->ring, (pool->mask + 1) * sizeof(*pool->ring));
	if (pool->held && pool->held != MAP_FAILED)
		munmap(pool->held, pool->held_room * sizeof(*pool->held));
	memset(pool, 0, sizeof(*pool));
	pool->eq = PTL_EQ_NONE;
}

/* ---- arrival --------------------------------------------------------------------------------- */

struct dp_sender *dp_sender_of(struct dp_ep *ep, uint32_t nid, uint32_t dpid)
{
	struct dp_sender **bucket = &ep->sender[(nid * 31 + dpid) % DP_SENDERS], *s;

	for (s = *bucket; s; s = s->next)
		if (s->dpid == dpid && s->nid == nid)
			return s;
	s = calloc(1, sizeof(*s));
	if (s) {
		s->nid = nid;
		s->dpid = dpid;
		s->instance = s->target = UINT32_MAX; /* none */
		s->next = *bucket;
		*bucket = s;
	}
	return s;
}

/* Count what is missing before this message. The numbers of an edge begin at 0 for each pair of
 * instances; those meant for an earlier instance of ours are none that we have lost. */
static void count_lost(struct dp_ep *ep, struct dp_sender *s, const struct dp_header *h)
{
	if (s->instance != h->sender || s->target != h->target) {
		s->instance = h->sender;
		s->target = h->target;
		s->expected = h->target == (ep->instance & DP_TARGET_MASK) ? 0 : h->number;
	}
	ep->lost += (h->number - s->expected) & DP_NUMBER_MASK;
	s->expected = h->number + 1;
}

static struct dp_sender *sender_in(struct dp_ep *ep, const struct dp_header *h)
{
	struct dp_sender *s = ep->last_sender;

	if (__builtin_expect(!s || s->nid != h->nid || s->dpid != h->dpid, 0)) {
		s = dp_sender_of(ep, h->nid, h->dpid);
		ep->last_sender = s;
	}
	return s;
}

/* A block is empty: it accepts again. */
static void arm_block(struct dp_ep *ep, struct dp_block *b)
{
	if (b->me != PTL_INVALID_HANDLE && PtlMEUnlink(b->me) != PTL_OK)
		return;
	b->me = PTL_INVALID_HANDLE;
	attach_pool_block(ep, &ep->pool, b);
}

/* A message is not here any more. */
static inline void release_in_block(struct dp_ep *ep, struct dp_block *b)
{
	if (--b->live == 0 && b->inactive)
		arm_block(ep, b);
}

static inline struct dp_block *block_of(struct dp_pool *pool, const ptl_event_t *event)
{
	return &pool->block[(uintptr_t)event->md.user_ptr % DP_BLOCKS];
}

/* Account for the next message of the block that is filled now. */
static void count_in_block(struct dp_pool *pool, struct dp_block *b, const ptl_event_t *event)
{
	b->arrived++;
	b->live++;
	b->bytes += event->rlength;
	if (b->arrived < pool->threshold && pool->block_bytes - b->bytes >= padded(pool->longest))
		return;
	b->inactive = true;
	pool->current++;
}

/* The next message becomes a token, or is nothing that a program can read. */
static void take_next(struct dp_ep *ep, const ptl_event_t *event)
{
	struct dp_pool *pool = &ep->pool;
	struct dp_block *b = block_of(pool, event);
	struct dp_sender *s = NULL;
	struct dp_token *t;
	struct dp_header h;

	count_in_block(pool, b, event);
	if (event->ni_fail_type == PTL_NI_OK && event->mlength <= padded(pool->longest) &&
	    dp_wire_header(event->match_bits, event->hdr_data, event->mlength,
			   (uint32_t)dp_lib.nodes, &h))
		s = sender_in(ep, &h);
	if (!s) {
		release_in_block(ep, b);
		return;
	}
	count_lost(ep, s, &h);
	t = &pool->ring[pool->filled++ & pool->mask];
	*t = (struct dp_token){ .at = b->base + event->offset,
				.length = (uint32_t)event->mlength - h.padding,
				.stored = (uint32_t)event->mlength,
				.from = s,
				.block = (uint8_t)(b - pool->block),
				.charged =
					h.charged && h.target == (ep->instance & DP_TARGET_MASK) };
}

static bool is_next_arrival(struct dp_pool *pool, const ptl_event_t *event)
{
	const struct dp_block *b = block_of(pool, event);

	return b->turn == pool->current && b->bytes == event->offset;
}

/* Keep an arrival, by its place. */
static void hold_arrival(struct dp_pool *pool, const ptl_event_t *event)
{
	struct dp_held h = { block_of(pool, event)->turn, event->offset, *event };
	unsigned int i;

	if (pool->held_first + pool->held_count == pool->held_room) {
		memmove(pool->held, pool->held + pool->held_first,
			pool->held_count * sizeof(*pool->held));
		pool->held_first = 0;
	}
	for (i = pool->held_first + pool->held_count++; i > pool->held_first; i--) {
		const struct dp_held *before = &pool->held[i - 1];

		if (before->turn < h.turn || (before->turn == h.turn && before->offset < h.offset))
			break;
		pool->held[i] = *before;
	}
	pool->held[i] = h;
}

static void take_pool_arrival(struct dp_ep *ep, const ptl_event_t *event)
{
	struct dp_pool *pool = &ep->pool;

	if (event->type != PTL_EVENT_PUT_END)
		return;
	if (__builtin_expect(!is_next_arrival(pool, event), 0)) {
		hold_arrival(pool, event);
		return;
	}
	take_next(ep, event);
	while (__builtin_expect(pool->held_count, 0) &&
	       is_next_arrival(pool, &pool->held[pool->held_first].event)) {
		pool->held_count--;
		take_next(ep, &pool->held[pool->held_first++].event);
	}
}

/* Take those that plain reads have freed out of the ring, in which others stand before them. */
static void compact_ring(struct dp_pool *pool)
{
	const uint64_t read = pool->read;
	uint64_t to = pool->flushed;

	for (uint64_t i = pool->flushed; i < pool->filled; i++) {
		if (i == read)
			pool->read = to;
		if (i >= read || !pool->ring[i & pool->mask].freed)
			pool->ring[to++ & pool->mask] = pool->ring[i & pool->mask];
	}
	if (read == pool->filled)
		pool->read = to;
	pool->filled = to;
}

bool dp_collect(struct dp_ep *ep)
{
	struct dp_pool *pool = &ep->pool;
	ptl_event_t event[DP_EVENTS];
	int n = 0;

	if (pool->filled - pool->flushed + pool->held_count + DP_EVENTS > pool->mask)
		compact_ring(pool);
	if (pool->filled - pool->flushed + pool->held_count + DP_EVENTS <= pool->mask)
		PtlEQPollMany(&pool->eq, 1, PTL_TIME_LOOK, NULL, event, DP_EVENTS, &n);
	ep->yield_due = n < 0;
	for (int i = 0; i < n; i++)
		take_pool_arrival(ep, &event[i]);
	return pool->filled != pool->read;
}

/* ---- release --------------------------------------------------------------------------------- */

static void free_token(struct dp_ep *ep, const struct dp_token *t)
{
	release_in_block(ep, &ep->pool.block[t->block]);
	if (t->charged)
		dp_flow_freed(ep, t->from, t->stored);
}

/* Pass over tokens that plain reads have freed. */
static void skip_freed(struct dp_pool *pool)
{
	while (pool->flushed < pool->read && pool->ring[pool->flushed & pool->mask].freed)
		pool->flushed++;
}

int dp_flush(struct dp_ep *ep, int n)
{
	struct dp_pool *pool = &ep->pool;
	int done = 0;

	for (skip_freed(pool); done < n && pool->flushed < pool->read; skip_freed(pool)) {
		/* first: what becomes free may be wanted by a sender at once */
		const struct dp_token t = pool->ring[pool->flushed++ & pool->mask];

		free_token(ep, &t);
		done++;
	}
	return done;
}

void dp_drop_oldest(struct dp_ep *ep)
{
	struct dp_pool *pool = &ep->pool;
	struct dp_token *t = &pool->ring[pool->read++ & pool->mask];

	t->freed = true;
	free_token(ep, t);
	skip_freed(pool);
}
