/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Receives of short messages, which wait in this library and not in Portals. Portals could
 * deliver such a message without us. But making and removing a match entry takes longer than a
 * call of the inline handler, or even a copy out of a block. All these receives were posted
 * later than any receive in Portals: recv.c moves them to Portals when it must post a later one
 * there. So a message that comes here has passed the receives in Portals.
 *
 * A receive is filed under one key, by the fields that it leaves open. A message is searched
 * under the keys in use, and goes to the receive posted first.
 */
#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/pt2pt/protocol.h"

#define KEYS MPI_OPEN_KINDS

struct mpi_bucket {
	struct mpi_request *head, *tail;
};

static struct mpi_bucket *table[KEYS];
static uint32_t in_use[KEYS]; /* number of receives filed, by kind of key */
static unsigned int kinds;    /* bit k: in_use[k] is not 0 */
static uint32_t buckets, filed;
static uint64_t serial;
static struct mpi_request *first, *last; /* all, in the order they were posted */

static struct mpi_bucket *bucket_of_posted(int k, uint64_t key)
{
	return &table[k][mpi_bits_hash(key) & (buckets - 1)];
}

static void append_posted(struct mpi_request *r)
{
	struct mpi_bucket *b = bucket_of_posted(r->open, r->bits);

	r->bucket = b;
	r->chain_next = NULL;
	r->chain_prev = b->tail;
	if (b->tail)
		b->tail->chain_next = r;
	else
		b->head = r;
	b->tail = r;
}

static bool resize_table(uint32_t size)
{
	struct mpi_bucket *wide[KEYS];

	for (int k = 0; k < KEYS; k++) {
		wide[k] = calloc(size, sizeof(*wide[k]));
		if (!wide[k]) {
			while (k-- > 0)
				free(wide[k]);
			return false;
		}
	}
	for (int k = 0; k < KEYS; k++) {
		free(table[k]);
		table[k] = wide[k];
	}
	buckets = size;
	for (struct mpi_request *r = first; r; r = r->next)
		append_posted(r);
	return true;
}

int mpi_posted_init(void)
{
	buckets = filed = 0;
	kinds = 0;
	first = last = NULL;
	return resize_table(64) ? MPI_SUCCESS : mpi_fail_memory("the list of posted receives");
}

void mpi_posted_fini(void)
{
	for (int k = 0; k < KEYS; k++) {
		free(table[k]);
		table[k] = NULL;
	}
}

void mpi_posted_add(struct mpi_request *r)
{
	if (++filed > buckets)
		resize_table(buckets * 2);
	in_use[r->open]++;
	kinds |= 1u << r->open;
	r->serial = ++serial;
	append_posted(r);
	r->next = NULL;
	r->prev = last;
	if (last)
		last->next = r;
	else
		first = r;
	last = r;
}

static inline void leave_list(struct mpi_request *r)
{
	if (r->chain_prev)
		r->chain_prev->chain_next = r->chain_next;
	else
		r->bucket->head = r->chain_next;
	if (r->chain_next)
		r->chain_next->chain_prev = r->chain_prev;
	else
		r->bucket->tail = r->chain_prev;
	if (r->prev)
		r->prev->next = r->next;
	else
		first = r->next;
	if (r->next)
		r->next->prev = r->prev;
	else
		last = r->prev;
	if (--in_use[r->open] == 0)
		kinds &= ~(1u << r->open);
	filed--;
}

void mpi_posted_remove(struct mpi_request *r)
{
	leave_list(r);
}

struct mpi_request *mpi_posted_first(void)
{
	return first;
}

static inline struct mpi_request *find_posted(uint64_t bits)
{
	struct mpi_request *best = NULL, *r;

	for (unsigned int left = kinds; left; left &= left - 1) {
		int k = __builtin_ctz(left);
		uint64_t key = bits & ~mpi_open_bits[k];

		r = bucket_of_posted(k, key)->head;
		while (r && r->bits != key)
			r = r->chain_next;
		if (r && (!best || r->serial < best->serial))
			best = r;
	}
	return best;
}

struct mpi_request *mpi_posted_find(uint64_t bits)
{
	return find_posted(bits);
}

struct mpi_request *mpi_posted_take(uint64_t bits)
{
	struct mpi_request *best = find_posted(bits);

	if (best)
		leave_list(best);
	return best;
}
