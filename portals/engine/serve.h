/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What a target does with a request, whoever brings it: NALs match it here, have what swaps or
 * calculates done here, and learn here what the initiator is to be told. They bring the bytes and
 * the answers. Locked.
 */
#ifndef PTL_SERVE_H
#define PTL_SERVE_H

#include "portals/engine/atomic.h"
#include "portals/engine/debug.h"

/* Bytes of elements that one request swaps or calculates with, at most. */
#define PTL_SERVE_SWAP_MOST 8192u

void ptl_serve_say(const struct ptl_ni *ni, const struct ptl_request *q,
		   const struct ptl_delivery *l, int why, const char *end);

/* As ptl_engine_match(), and says what became of the request, where that is asked for. `end` is
 * what the line of an accepted one ends with; NULL: it gets none. */
static inline int ptl_serve_match(const struct ptl_ni *ni, struct ptl_engine *e,
				  const struct ptl_request *q, struct ptl_delivery *l,
				  const char *end)
{
	int why = ptl_engine_match(e, q, l);

	if (ptl_debugs(ni, PTL_DBG_DROP | PTL_DBG_PARSE | PTL_DBG_DELIVERY | PTL_DBG_MOVE))
		ptl_serve_say(ni, q, l, why, end);
	return why;
}

/* What the initiator of a put is told when its bytes are stored, or were not. */
static inline enum ptl_answer ptl_serve_put_answer(const struct ptl_delivery *l, ptl_ni_fail_t fail)
{
	if (fail != PTL_NI_OK)
		return PTL_ANSWER_FAILED;
	return l->ack ? PTL_ANSWER_ACK : PTL_ANSWER_QUIET;
}

/* How the NAL reaches l->mlength bytes at the place of a landing; of runs, those that they name
 * there, packed at `bytes`. `server` is the NAL's. PTL_NI_OK, or why not. */
struct ptl_serve_memory {
	ptl_ni_fail_t (*read)(void *server, const struct ptl_delivery *l, void *bytes);
	ptl_ni_fail_t (*write)(void *server, const struct ptl_delivery *l, const void *bytes);
	ptl_ni_fail_t (*read_runs)(void *server, const struct ptl_delivery *l,
				   const ptl_atomic_runs_t *runs, char *bytes);
	ptl_ni_fail_t (*write_runs)(void *server, const struct ptl_delivery *l,
				    const ptl_atomic_runs_t *runs, const char *bytes);
};

/* Swaps, or with `atomic` calculates, with an operand of l->rlength bytes. What was there comes to
 * `old`. Atomic against others because all of them hold this region's lock. */
ptl_ni_fail_t ptl_serve_swap(const struct ptl_serve_memory *memory, void *server,
			     const struct ptl_delivery *l, unsigned int atomic,
			     unsigned int element, const char *operand, char *old);

/* The same of the elements of runs, behind which the operand is; they are valid. What was there
 * comes to `old`, but for a put that only stores. If it fails nothing has changed, or the memory is
 * gone. */
ptl_ni_fail_t ptl_serve_swap_runs(const struct ptl_serve_memory *memory, void *server,
				  const struct ptl_delivery *l, unsigned int atomic,
				  unsigned int element, const ptl_atomic_runs_t *runs, char *old);

#endif
