/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The engine's context and its writes. The owner of a region writes without a log: if it dies,
 * nobody needs the region. A peer that runs the engine on the owner's behalf logs the old
 * value of each word before it changes it, and commits once per message. The process that
 * takes the lock over from a dead peer puts the old values back. A kill -9 between any two
 * instructions leaves a prefix of the stores below, in program order.
 */
#ifndef PTL_UNDO_H
#define PTL_UNDO_H

#include <portals3_ext.h>
#include <string.h>

#include "portals/engine/region.h"

struct ptl_engine {
	struct ptl_view *v;
	struct ptl_undo *undo; /* NULL: we own the region */
	uint32_t noted;        /* entries in the log */
	bool posted;           /* an event was posted: wake sleepers after the unlock */
	/* The largest result of the inline handler: 0, PTL_HANDLED or PTL_HANDLED_ENOUGH. */
	int handled;
	/* Of the call that makes progress (PtlEQPollMany); NULL: none. */
	ptl_inline_handler_t inline_handler;
	/* The queues of that call: the handler sees only what their descriptors get, so that
	 * several libraries of a process can each have one. */
	const ptl_handle_eq_t *inline_eqs;
	int inline_neqs;
};

static inline void ptl_undo_note(struct ptl_engine *e, void *word, uint64_t old, uint64_t wide)
{
	struct ptl_undo *u = e->undo;
	uint32_t n = e->noted++;

	assert(n < PTL_UNDO_MAX); /* a message changes about thirty words */
	u->entry[n].where = (uint64_t)((char *)word - (char *)e->v->r) | wide;
	u->entry[n].old = old;
	/* release: the entry is complete before it counts, in the order of a dying process's
	 * stores */
	atomic_store_explicit(&u->n, n + 1, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void ptl_set32(struct ptl_engine *e, uint32_t *word, uint32_t value)
{
	if (e->undo)
		ptl_undo_note(e, word, *word, 0);
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline void ptl_set64(struct ptl_engine *e, uint64_t *word, uint64_t value)
{
	if (e->undo)
		ptl_undo_note(e, word, *word, 1);
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Commit: the writes so far stay. */
static inline void ptl_commit(struct ptl_engine *e)
{
	if (e->undo) {
		e->noted = 0;
		atomic_store_explicit(&e->undo->n, 0, memory_order_release);
	}
}

/* The word that a log entry names; NULL: no such word. `shift` belongs to the process that
 * wrote the entry. */
static inline char *ptl_undo_word(const struct ptl_view *v, const int64_t *shift, uint64_t where,
				  uint64_t width)
{
	if (where < v->size)
		return where + width <= v->size ? (char *)v->r + where : NULL;
	for (int k = 0; k < PTL_PARTS; k++) {
		uint64_t at = where - (uint64_t)shift[k];

		if (at < v->part[k].bytes && at + width <= v->part[k].bytes)
			return v->part[k].at + at;
	}
	return NULL;
}

/* Put back the writes since the last commit. The peer that wrote them calls it, or after its
 * death the process that took the lock over. `shift` belongs to the writer. The writer had
 * mapped what we have mapped, because the owner extends parts only under the lock. */
static inline void ptl_rollback(struct ptl_view *v, const int64_t *shift)
{
	struct ptl_undo *u = &v->r->undo;
	uint32_t n = atomic_load_explicit(&u->n, memory_order_acquire);

	if (n > PTL_UNDO_MAX)
		n = PTL_UNDO_MAX;
	while (n--) {
		uint64_t where = u->entry[n].where;
		uint64_t width = where & 1 ? 8 : 4; /* the last word of a part may be a short one */
		char *word = ptl_undo_word(v, shift, where & ~1ull, width);

		if (word)
			memcpy(word, &u->entry[n].old, width);
	}
	atomic_store_explicit(&u->n, 0, memory_order_release);
}

#endif
