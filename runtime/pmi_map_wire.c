/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reads the text of PMI_process_mapping, block by block.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/pmi_map_wire.h"

enum { NUMBER_MAX = 1 << 24 };

struct reader {
	const char *at, *end;
};

struct block {
	int first, hosts, ranks;
};

static bool accept_text(struct reader *r, const char *word)
{
	const size_t len = strlen(word);

	if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
		return false;
	r->at += len;
	return true;
}

static bool read_map_number(struct reader *r, int *number)
{
	const char *start = r->at;

	*number = 0;
	for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
		*number = *number * 10 + (*r->at - '0');
		if (*number > NUMBER_MAX)
			return false;
	}
	return r->at > start;
}

/* Read ",(FIRST,HOSTS,RANKS)". */
static bool read_block(struct reader *r, struct block *b)
{
	return accept_text(r, ",(") && read_map_number(r, &b->first) && accept_text(r, ",") &&
	       read_map_number(r, &b->hosts) && accept_text(r, ",") &&
	       read_map_number(r, &b->ranks) && accept_text(r, ")");
}

/* The ranks are placed host by host; sees each step. */
struct walk {
	int rank, size;  /* looked for */
	int next;        /* rank that is placed next */
	int host;        /* to count the ranks of; -1: find that of the rank */
	int below, here; /* of its ranks: below the rank, and all */
};

static void place(struct walk *w, int host, int ranks)
{
	const int n = ranks < w->size - w->next ? ranks : w->size - w->next;

	if (w->host < 0 && w->rank >= w->next && w->rank < w->next + n)
		w->host = host;
	if (host == w->host) {
		w->here += n;
		if (w->next + n <= w->rank)
			w->below += n;
		else if (w->next <= w->rank)
			w->below += w->rank - w->next;
	}
	w->next += n;
}

/* Place ranks by all blocks once. 0 or -EPROTO. */
static int walk_once(struct reader r, struct walk *w)
{
	struct block b;

	while (w->next < w->size && r.at < r.end && *r.at == ',') {
		if (!read_block(&r, &b))
			return -EPROTO;
		for (int i = 0; i < b.hosts && b.ranks && w->next < w->size; i++)
			place(w, b.first + i, b.ranks);
	}
	return w->next == w->size || (accept_text(&r, ")") && r.at == r.end) ? 0 : -EPROTO;
}

static int walk_all(struct reader r, struct walk *w)
{
	for (w->next = 0; w->next < w->size;) {
		const int before = w->next;
		int err = walk_once(r, w);

		if (err || w->next == before)
			return -EPROTO;
	}
	return 0;
}

int pmi_map_local(const char *text, size_t len, int rank, int size, int *local_rank,
		  int *local_size)
{
	struct reader r = { text, text + len };
	struct walk find = { .rank = rank, .size = size, .host = -1 }, count = find;

	if (rank < 0 || rank >= size || size > PMI_MAP_RANKS_MAX || !accept_text(&r, "(vector") ||
	    walk_all(r, &find))
		return -EPROTO;
	count.host = find.host;
	if (walk_all(r, &count))
		return -EPROTO;
	*local_rank = count.below;
	*local_size = count.here;
	return 0;
}
