/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Small memory. Messages and active parts come and go all the time, so their blocks are kept
 * in a few sizes. Also maps from message numbers to pointers.
 */
#include "nal/net/dgram/dgram_core.h"

#include <stdlib.h>

static const size_t pool_bytes[DGRAM_POOLS] = { 128, 256, 512, 1024, 2048 };

/* Blocks kept of each size; all are freed when no peer has an active part. */
#define SPARE 128u

static int pool_of_size(size_t bytes)
{
	for (int i = 0; i < DGRAM_POOLS; i++)
		if (bytes <= pool_bytes[i])
			return i;
	return -1;
}

void *dgram_alloc(struct dgram *m, size_t bytes)
{
	int i = pool_of_size(bytes);
	void *p;

	if (i >= 0 && m->pool[i].free) {
		p = m->pool[i].free;
		memcpy(&m->pool[i].free, p, sizeof(void *));
		m->pool[i].spare--;
		return p;
	}
	if (i >= 0)
		bytes = pool_bytes[i];
	p = malloc(bytes);
	if (p)
		m->stats.bytes += bytes;
	return p;
}

void dgram_free(struct dgram *m, void *p, size_t bytes)
{
	int i = pool_of_size(bytes);

	if (!p)
		return;
	if (i >= 0 && m->pool[i].spare < SPARE) {
		memcpy(p, &m->pool[i].free, sizeof(void *));
		m->pool[i].free = p;
		m->pool[i].spare++;
		return;
	}
	m->stats.bytes -= i >= 0 ? pool_bytes[i] : bytes;
	free(p);
}

void *dgram_regrow(struct dgram *m, void *p, size_t old_bytes, size_t bytes)
{
	void *more = dgram_alloc(m, bytes);

	if (!more)
		return NULL;
	if (p)
		memcpy(more, p, old_bytes < bytes ? old_bytes : bytes);
	dgram_free(m, p, old_bytes);
	return more;
}

void dgram_pools_drain(struct dgram *m)
{
	for (int i = 0; i < DGRAM_POOLS; i++) {
		while (m->pool[i].free) {
			void *p = m->pool[i].free;

			memcpy(&m->pool[i].free, p, sizeof(void *));
			m->stats.bytes -= pool_bytes[i];
			free(p);
		}
		m->pool[i].spare = 0;
	}
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* Numbers come in sequence, so neighbours share cache lines. */
static uint32_t home(const struct dgram_map *map, uint32_t key)
{
	return key & (map->size - 1);
}

void *dgram_map_get(const struct dgram_map *map, uint32_t key)
{
	if (!map->used)
		return NULL;
	for (uint32_t i = home(map, key); map->slot[i].value; i = (i + 1) & (map->size - 1))
		if (map->slot[i].key == key)
			return map->slot[i].value;
	return NULL;
}

static void put_in_map(struct dgram_map *map, uint32_t key, void *value)
{
	uint32_t i = home(map, key);

	while (map->slot[i].value)
		i = (i + 1) & (map->size - 1);
	map->slot[i].key = key;
	map->slot[i].value = value;
	map->used++;
}

static bool grow_map(struct dgram *m, struct dgram_map *map)
{
	struct dgram_map more = { .size = map->size ? 2 * map->size : 8 };

	more.slot = dgram_alloc(m, more.size * sizeof(*more.slot));
	if (!more.slot)
		return false;
	memset(more.slot, 0, more.size * sizeof(*more.slot));
	for (uint32_t i = 0; i < map->size; i++)
		if (map->slot[i].value)
			put_in_map(&more, map->slot[i].key, map->slot[i].value);
	dgram_map_fini(m, map);
	*map = more;
	return true;
}

bool dgram_map_put(struct dgram *m, struct dgram_map *map, uint32_t key, void *value)
{
	if (2 * (map->used + 1) > map->size && !grow_map(m, map))
		return false;
	put_in_map(map, key, value);
	return true;
}

/* Move back entries that the removed one displaced (Knuth, volume 3, section 6.4, algorithm
 * R). */
void dgram_map_remove(struct dgram_map *map, uint32_t key)
{
	uint32_t mask = map->size - 1, hole, i;

	if (!map->used)
		return;
	for (hole = home(map, key); map->slot[hole].key != key; hole = (hole + 1) & mask)
		if (!map->slot[hole].value)
			return;
	if (!map->slot[hole].value)
		return;
	for (i = (hole + 1) & mask; map->slot[i].value; i = (i + 1) & mask) {
		uint32_t at = home(map, map->slot[i].key);

		if (((i - at) & mask) >= ((i - hole) & mask)) {
			map->slot[hole] = map->slot[i];
			hole = i;
		}
	}
	map->slot[hole].value = NULL;
	map->used--;
}

void dgram_map_fini(struct dgram *m, struct dgram_map *map)
{
	dgram_free(m, map->slot, map->size * sizeof(*map->slot));
	*map = (struct dgram_map){ 0 };
}
