/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The engine's context and its writes. The owner of a region writes plainly: if it dies the region
 * is of no use to anybody. Another process that runs the engine on the owner's behalf notes the old
 * value of each word before it changes it and commits once per message, so that whoever takes the
 * lock over from a dead runner can put the words back (kill -9 between any two instructions leaves
 * a prefix of the stores below, in program order).
 */
#ifndef PTL_UNDO_H
#define PTL_UNDO_H

#include <portals3_ext.h>
#include <string.h>

#include "portals/engine/region.h"

struct ptl_engine {
	struct ptl_view *v;
	struct ptl_undo *undo; /* NULL: we own the region */
	uint32_t noted;        /* entries in it */
	bool posted;           /* an event was posted: wake sleepers after the lock is released */
	int taken; /* what the taker said of all, the most: 0, PTL_HANDLED or PTL_HANDLED_ENOUGH */
	ptl_inline_handler_t
		inline_handler; /* of the call that makes progress (PtlEQPollMany); NULL: none */
};

static inline void ptl_undo_note(struct ptl_engine *e, void *word, uint64_t old, uint64_t wide)
{
	struct ptl_undo *u = e->undo;
	uint32_t n = e->noted++;

	assert(n < PTL_UNDO_MAX); /* a message changes some thirty words */
	u->entry[n].where = (uint64_t)((char *)word - (char *)e->v->r) | wide;
	u->entry[n].old = old;
	/* release: the entry is whole before it counts; partner is the order of a dying
	 * process's stores */
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

/* From here on what was written stays. */
static inline void ptl_commit(struct ptl_engine *e)
{
	if (e->undo) {
		e->noted = 0;
		atomic_store_explicit(&e->undo->n, 0, memory_order_release);
	}
}

/* The word that an entry of the log is about; NULL: there is none there. `shift`: of who
 * wrote it. */
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

/* Puts back what was written since the last commit; by the runner itself, or after its death by the
 * one who took the lock over. `shift`: of the runner, which had what we have mapped, as the owner
 * extends parts with the lock only. */
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
