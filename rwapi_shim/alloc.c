/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Blocks: memory of the arena, a name, and a match entry for writes of peers. Names count up,
 * from a number that differs between ranks. So the address of a block that was freed, or that is
 * another rank's, hardly ever names a block, and a write to it is refused.
 */
#include "rwapi_shim/impl.h"

#include <sys/resource.h>

#define ARENA_MOST ((uint64_t)1 << 45)

/* Address space for all blocks: several times the memory there is, since it has gaps. */
static uint64_t arena_length(void)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t most = memory * 4;
	struct rlimit limit;

	if (most > ARENA_MOST)
		most = ARENA_MOST;
	/* others need address space, too */
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    most > limit.rlim_cur / 4)
		most = limit.rlim_cur / 4;
	return most;
}

int rw_blocks_init(void)
{
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = rw.queue[RW_QUEUE_ENDS],
	};
	int err;

	rw.block_mask = 255;
	rw.by_name = calloc(rw.block_mask + 1, sizeof(*rw.by_name));
	rw.by_start = calloc(rw.block_mask + 1, sizeof(*rw.by_start));
	if (!rw.by_name || !rw.by_start || !rw_arena_init(&rw.arena, arena_length()))
		return RWAPI_ENOMEM;
	/* multiples of an odd number of 24 bits: far apart for any number of ranks */
	rw.next_name = ((uint32_t)rw.rank + 1) * 0x9e3779u & RW_NAME_MASK;
	md.start = rw.arena.base;
	md.length = rw.arena.length;
	err = PtlMDBind(rw.ni, md, PTL_RETAIN, &rw.md);
	rw.has_md = err == PTL_OK;
	return rw_error_of(err);
}

void rw_blocks_detach(void)
{
	for (uint32_t i = 0; rw.by_name && i <= rw.block_mask; i++)
		for (const struct rw_block *b = rw.by_name[i]; b; b = b->next_by_name)
			while (PtlMEUnlink(b->me) == PTL_ME_IN_USE)
				PtlProgress(rw.ni, 1);
	/* what still uses it has no bytes: pings to peers that are given up */
	if (rw.has_md)
		PtlMDUnlink(rw.md);
}

void rw_blocks_fini(void)
{
	for (uint32_t i = 0; rw.by_name && i <= rw.block_mask; i++)
		while (rw.by_name[i]) {
			struct rw_block *next = rw.by_name[i]->next_by_name;

			free(rw.by_name[i]);
			rw.by_name[i] = next;
		}
	free(rw.by_name);
	free(rw.by_start);
	rw.by_name = rw.by_start = NULL;
	rw_arena_fini(&rw.arena);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static struct rw_block **bucket_of_name(uint32_t name)
{
	return &rw.by_name[name & rw.block_mask];
}

static struct rw_block **bucket_of_start(const void *start)
{
	return &rw.by_start[((uintptr_t)start >> 6) * 0x9e3779b1u >> 7 & rw.block_mask];
}

static struct rw_block *block_of_name(uint32_t name)
{
	struct rw_block *b = *bucket_of_name(name);

	while (b && b->name != name)
		b = b->next_by_name;
	return b;
}

static struct rw_block *block_of_start(const void *start)
{
	struct rw_block *b = *bucket_of_start(start);

	while (b && rw_part_start(&rw.arena, b->part) != start)
		b = b->next_by_start;
	return b;
}

struct rw_block *rw_block_of(rwapi_net_t local, size_t size)
{
	struct rw_block *b = block_of_name(rw_net_name(local));
	uint64_t offset = rw_net_offset(local);

	if (!b || b->freeing || offset > b->length || size > b->length - offset)
		return NULL;
	return b;
}

static void insert_block(struct rw_block *b)
{
	struct rw_block **name = bucket_of_name(b->name);
	struct rw_block **start = bucket_of_start(rw_part_start(&rw.arena, b->part));

	b->next_by_name = *name;
	*name = b;
	b->next_by_start = *start;
	*start = b;
}

static void remove_block(const struct rw_block *b)
{
	struct rw_block **at = bucket_of_name(b->name);

	while (*at != b)
		at = &(*at)->next_by_name;
	*at = b->next_by_name;
	at = bucket_of_start(rw_part_start(&rw.arena, b->part));
	while (*at != b)
		at = &(*at)->next_by_start;
	*at = b->next_by_start;
}

/* Double the tables when there are as many blocks as buckets. Without memory they stay. */
static void grow_tables(void)
{
	size_t buckets = ((size_t)rw.block_mask + 1) * 2;
	struct rw_block **by_name, **by_start, **old = rw.by_name;
	uint32_t old_mask = rw.block_mask;

	if (rw.blocks <= rw.block_mask)
		return;
	by_name = calloc(buckets, sizeof(*by_name));
	by_start = calloc(buckets, sizeof(*by_start));
	if (!by_name || !by_start) {
		free(by_name);
		free(by_start);
		return;
	}
	free(rw.by_start);
	rw.by_name = by_name;
	rw.by_start = by_start;
	rw.block_mask = (uint32_t)buckets - 1;
	for (uint32_t i = 0; i <= old_mask; i++)
		for (struct rw_block *b = old[i], *next; b; b = next) {
			next = b->next_by_name;
			insert_block(b);
		}
	free(old);
}

/* ---- allocating ------------------------------------------------------------------------------ */

/* A name that no block has; 0 if all are in use. */
static uint32_t new_name(void)
{
	if (rw.blocks >= RW_NAME_MASK)
		return 0;
	do {
		rw.next_name = (rw.next_name + 1) & RW_NAME_MASK;
	} while (!rw.next_name || block_of_name(rw.next_name));
	return rw.next_name;
}

/* Let peers write to the block. Its entry stands before the one that takes what fits nowhere. */
static bool attach_write_block(struct rw_block *b)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	const ptl_md_t md = {
		.start = rw_part_start(&rw.arena, b->part),
		.length = b->length,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE |
			   PTL_MD_EVENT_END_DISABLE,
		.eq_handle = PTL_EQ_NONE,
	};

	return PtlMEMDAttach(rw.ni, RW_PT_WRITE, any, b->name, RW_IGNORE_TAG, PTL_RETAIN,
			     PTL_INS_BEFORE, md, PTL_RETAIN, &b->me, NULL) == PTL_OK;
}

static struct rw_block *make_block(size_t size)
{
	struct rw_block *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->length = size;
	b->name = new_name();
	b->part = b->name ? rw_arena_alloc(&rw.arena, size) : NULL;
	if (!b->part || !attach_write_block(b)) {
		if (b->part)
			rw_arena_free(&rw.arena, b->part);
		free(b);
		return NULL;
	}
	rw.blocks++;
	grow_tables();
	insert_block(b);
	return b;
}

void *rwapi_alloc(size_t size, rwapi_net_t *net)
{
	const struct rw_block *b;
	void *start = NULL;

	if (!net || size > RW_OFFSET_MASK || !rw_enter())
		return NULL;
	b = make_block(size);
	if (b) {
		start = rw_part_start(&rw.arena, b->part);
		*net = rw_net(b->name, 0);
	}
	rw_leave();
	return start;
}

/* ---- freeing --------------------------------------------------------------------------------- */

/* Wait until no bytes are moved out of or into the block, and refuse writes from then on. */
static int detach_block(const struct rw_block *b)
{
	while (PtlMEUnlink(b->me) == PTL_ME_IN_USE) {
		rw_unlock(&rw.lock);
		PtlProgress(rw.ni, 1);
		rw_lock(&rw.lock);
		rw_progress(true);
		if (atomic_load_explicit(&rw.phase, memory_order_relaxed) != RW_RUNNING)
			return RWAPI_ESTATE;
	}
	rw_progress(false);
	while (b->sending) {
		rw_progress_wait();
		if (atomic_load_explicit(&rw.phase, memory_order_relaxed) != RW_RUNNING)
			return RWAPI_ESTATE;
	}
	return RWAPI_OK;
}

static int free_block(const void *start)
{
	struct rw_block *b = block_of_start(start);
	int err;

	if (!b || b->freeing)
		return RWAPI_EINVAL;
	b->freeing = true;
	err = detach_block(b);
	if (err)
		return err;
	remove_block(b);
	rw.blocks--;
	rw_arena_free(&rw.arena, b->part);
	free(b);
	return RWAPI_OK;
}

int rwapi_free(void *block)
{
	int err;

	if (!rw_enter())
		return RWAPI_ESTATE;
	err = block ? free_block(block) : RWAPI_OK;
	rw_leave();
	return err;
}
