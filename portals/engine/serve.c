/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See serve.h.
 */
#include "portals/engine/serve.h"

#define TEXT(name, text) text,

static const char *const drop_text[] = { PTL_DROP_TABLE(TEXT) };

__attribute__((cold)) void ptl_serve_say(const struct ptl_ni *ni, const struct ptl_request *q,
					 const struct ptl_delivery *l, int why, const char *end)
{
	if (why > 0 && ptl_debugs(ni, PTL_DBG_DROP | PTL_DBG_PARSE))
		ptl_debug(ni,
			  "dropped: portal %u bits %016llx, %llu bytes from nid 0x%08x pid %u: %s",
			  q->pt_index, (unsigned long long)q->match_bits,
			  (unsigned long long)q->rlength, q->initiator.nid, q->initiator.pid,
			  drop_text[why - 1]);
	if (!why && end && ptl_debugs(ni, PTL_DBG_DELIVERY | PTL_DBG_PARSE | PTL_DBG_MOVE))
		ptl_debug(ni,
			  "portal %u bits %016llx from nid 0x%08x pid %u: %llu of %llu bytes at "
			  "offset %llu%s",
			  q->pt_index, (unsigned long long)q->match_bits, q->initiator.nid,
			  q->initiator.pid, (unsigned long long)l->mlength,
			  (unsigned long long)q->rlength, (unsigned long long)l->offset, end);
}

ptl_ni_fail_t ptl_serve_swap(const struct ptl_serve_memory *memory, void *server,
			     const struct ptl_delivery *l, unsigned int atomic,
			     unsigned int element, const char *operand, char *old)
{
	char new[PTL_SERVE_SWAP_MOST];
	ptl_ni_fail_t fail = memory->read(server, l, old);

	if (fail != PTL_NI_OK || atomic == PTL_ATOMIC_FETCH)
		return fail;
	if (atomic) {
		ptl_atomic_apply(atomic, element, new, old, operand, l->rlength, l->mlength);
		operand = new;
	}
	return memory->write(server, l, operand);
}

ptl_ni_fail_t ptl_serve_swap_runs(const struct ptl_serve_memory *memory, void *server,
				  const struct ptl_delivery *l, unsigned int atomic,
				  unsigned int element, const ptl_atomic_runs_t *runs, char *old)
{
	const unsigned int op = ptl_atomic_plain(atomic);
	const char *operand = (const char *)runs + ptl_runs_bytes(runs);
	char new[PTL_SERVE_SWAP_MOST];
	ptl_ni_fail_t fail = PTL_NI_OK;

	if (op != PTL_ATOMIC_SWAP || l->kind != PTL_REQ_PUT)
		fail = memory->read_runs(server, l, runs, old);
	if (fail != PTL_NI_OK || op == PTL_ATOMIC_FETCH)
		return fail;
	if (op != PTL_ATOMIC_SWAP) {
		ptl_atomic_apply(op, element, new, old, operand, l->mlength, l->mlength);
		operand = new;
	}
	return memory->write_runs(server, l, runs, operand);
}
