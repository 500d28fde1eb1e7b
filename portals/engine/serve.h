/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Serving a request at the target, for all NALs. A NAL matches the request here, has swaps and
 * atomic operations done here, and learns here how to answer the initiator. The NAL itself
 * moves the bytes and the answers. Locked.
 */
#ifndef PTL_SERVE_H
#define PTL_SERVE_H

#include "portals/engine/atomic.h"
#include "portals/engine/debug.h"

/* Most bytes of elements in one swap or atomic operation. */
#define PTL_SERVE_SWAP_MOST 8192u

void ptl_serve_say(const struct ptl_ni *ni, const struct ptl_request *q,
		   const struct ptl_delivery *l, int why, const char *end);

/* As ptl_engine_match(), and print the outcome if debug output asks for it. `end` is the end
 * of the line for an accepted request; NULL: no line. */
static inline int ptl_serve_match(const struct ptl_ni *ni, struct ptl_engine *e,
				  const struct ptl_request *q, struct ptl_delivery *l,
				  const char *end)
{
	int why = ptl_engine_match(e, q, l);

	if (ptl_debugs(ni, PTL_DBG_DROP | PTL_DBG_PARSE | PTL_DBG_DELIVERY | PTL_DBG_MOVE))
		ptl_serve_say(ni, q, l, why, end);
	return why;
}

/* The answer to the initiator of a put when its bytes are stored, or were not. */
static inline enum ptl_answer ptl_serve_put_answer(const struct ptl_delivery *l, ptl_ni_fail_t fail)
{
	if (fail != PTL_NI_OK)
		return PTL_ANSWER_FAILED;
	return l->ack ? PTL_ANSWER_ACK : PTL_ANSWER_QUIET;
}

/* How the NAL reads and writes the l->mlength bytes of a delivery. The _runs functions move
 * only the bytes that the runs name there, packed at `bytes`. `server` is the NAL's.
 * PTL_NI_OK, or the failure. */
struct ptl_serve_memory {
	ptl_ni_fail_t (*read)(void *server, const struct ptl_delivery *l, void *bytes);
	ptl_ni_fail_t (*write)(void *server, const struct ptl_delivery *l, const void *bytes);
	ptl_ni_fail_t (*read_runs)(void *server, const struct ptl_delivery *l,
				   const ptl_atomic_runs_t *runs, char *bytes);
	ptl_ni_fail_t (*write_runs)(void *server, const struct ptl_delivery *l,
				    const ptl_atomic_runs_t *runs, const char *bytes);
};

/* Swap, or with `atomic` calculate, with an operand of l->rlength bytes. The old contents go
 * to `old`. It is atomic against other such operations, because all hold this region's lock. */
ptl_ni_fail_t ptl_serve_swap(const struct ptl_serve_memory *memory, void *server,
			     const struct ptl_delivery *l, unsigned int atomic,
			     unsigned int element, const char *operand, char *old);

/* The same for the elements of runs. `runs` is valid, and the operand follows it. The old
 * contents go to `old`, except for a put that only stores. If it fails, nothing has changed or
 * the memory is gone. */
ptl_ni_fail_t ptl_serve_swap_runs(const struct ptl_serve_memory *memory, void *server,
				  const struct ptl_delivery *l, unsigned int atomic,
				  unsigned int element, const ptl_atomic_runs_t *runs, char *old);

#endif
