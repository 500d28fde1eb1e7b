/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The engine handles an interface's objects when a message arrives, an answer comes back, or a
 * peer dies. It knows regions, not networks. A NAL calls ptl_engine_match with a request. It
 * then moves the bytes to or from the place the delivery names, by any means it has, and calls
 * ptl_engine_done.
 *
 * Every function here runs with the region's lock held, over any mapped region, in the owner
 * or in a peer; those of an operation's start run in the owner only. No function blocks. Writes
 * that a peer may do go through undo.h, except those of counters.
 */
#ifndef PTL_ENGINE_H
#define PTL_ENGINE_H

#include "portals/engine/match.h"

/* Kind of a delivery, beyond enum ptl_req_kind. */
#define PTL_DELIVERY_REPLY 4

/* The result of offering a put to the application's inline handler before it is stored. */
enum ptl_inline {
	PTL_INLINE_NOT, /* the handler was not called */
	PTL_INLINE_DECLINED,
	PTL_INLINE_HANDLED, /* the message is over */
};

/* Offer a put that wants no acknowledgement to the inline handler, in the simple case: it is
 * admitted, its portal's list is short, and the first entry that names it has room. In other
 * cases ptl_engine_match finds the entry and offers the put, too. There must be an inline
 * handler. */
enum ptl_inline ptl_engine_inline(struct ptl_engine *e, uint32_t pt_index, uint32_t ac_index,
				  uint32_t uid, uint32_t jid, uint64_t remote_offset,
				  ptl_arrival_t *put);

#define PTL_MATCH_HANDLED (-1)

/* All of section 2.2 of 3.3: checks, access control, matching, and START event. Matching also
 * changes offset, threshold and activity, atomically. Returns 0 with *l filled, or PTL_DROP_*
 * + 1, counted. PTL_MATCH_HANDLED: the inline handler handled q->data, and the message is over. */
int ptl_engine_match(struct ptl_engine *e, const struct ptl_request *q, struct ptl_delivery *l);

/* The bytes of *l are in place, or moving them failed. Post the END event, end the pending
 * operation, unlink the MD if due. */
void ptl_engine_done(struct ptl_engine *e, const struct ptl_delivery *l, ptl_ni_fail_t fail);

/* Allocate a delivery record in the region, for a message that takes more than one step.
 * PTL_NIL: none is free. */
uint32_t ptl_delivery_alloc(struct ptl_engine *e, const struct ptl_delivery *from);
void ptl_delivery_free(struct ptl_engine *e, uint32_t index);

/* The process that answers, for the initiator's events. */
struct ptl_answerer {
	ptl_process_id_t id;
	uint32_t uid, jid;
};

enum ptl_answer {
	PTL_ANSWER_ACK = 0, /* stored, and the target's MD acknowledges */
	PTL_ANSWER_QUIET,   /* done, but no ack is due: disabled, or the request was dropped */
	PTL_ANSWER_FAILED,  /* storing failed, `fail` says why */
};

/* The target's final response to a put, or to a get that brings no reply. Frees the operation.
 * False: no such operation. */
bool ptl_engine_answer(struct ptl_engine *e, uint32_t op, uint32_t gen, enum ptl_answer what,
		       uint64_t mlength, ptl_ni_fail_t fail, const struct ptl_answerer *who);

/* A reply of `mlength` bytes is here for `op`: the checks of section 8.2, threshold,
 * REPLY_START. True: *l is filled. End it with ptl_engine_done, then ptl_op_free; with
 * `whole`, before the lock is released. False: the reply was dropped and counted. */
bool ptl_engine_reply(struct ptl_engine *e, uint32_t op, uint32_t gen, uint64_t mlength, bool whole,
		      const struct ptl_answerer *who, struct ptl_delivery *l);

/* For a reply that takes more than one step: save *l in the operation, and restore it. */
void ptl_engine_reply_keep(struct ptl_engine *e, uint32_t op, const struct ptl_delivery *l);
void ptl_engine_reply_kept(const struct ptl_view *v, uint32_t op, const struct ptl_answerer *who,
			   struct ptl_delivery *l);

/* End everything in flight from or to `peer` with failure events. Owner only. */
void ptl_engine_peer_failed(struct ptl_engine *e, uint32_t peer, ptl_ni_fail_t fail,
			    const struct ptl_answerer *who);

/* ---- operations of the initiator ------------------------------------------------------------- */

struct ptl_start {
	enum ptl_req_kind kind;
	bool ack;
	/* of a put or getput: ptl_atomic_op_t, 0 for none; ptl_atomic_type_t */
	uint8_t atomic, element;
	bool lazy;          /* with inject: the target needs it only in its own calls */
	const void *inject; /* a put of bytes copied at once: no MD, no events */
	uint32_t md;        /* get: where the reply goes; put, getput: the source */
	uint32_t get_md;    /* getput: where the old contents go */
	uint64_t offset, get_offset, length;
	uint32_t operand; /* of an atomic: bytes at `offset` to send */
	uint32_t span;    /* of an atomic on runs: bytes that contain them */
	ptl_process_id_t target;
	uint32_t pt_index, ac_index;
	uint64_t match_bits, remote_offset, hdr_data;
};

/* Count the start of an operation on its MD, and post the events that are due. These are
 * SEND_START and, unless `more` data are still to be fetched, SEND_END with `fail`. Owner
 * only. */
void ptl_engine_send(struct ptl_engine *e, const struct ptl_start *s, bool more, ptl_ni_fail_t fail,
		     uint32_t op);

/* Allocate a record for an operation that waits for an answer. Owner only. PTL_NIL: none left. */
uint32_t ptl_op_alloc(struct ptl_engine *e, const struct ptl_start *s, uint32_t peer,
		      uint32_t flags);
/* The record that the next ptl_op_alloc() will return, and its generation then. PTL_NIL: none
 * left. */
uint32_t ptl_op_next(struct ptl_view *v, uint32_t *gen);
void ptl_op_free(struct ptl_engine *e, uint32_t op);
/* Is `op` in use with this generation? It checks indices that come from messages. */
bool ptl_op_valid(const struct ptl_view *v, uint32_t op, uint32_t gen);

/* ---- objects --------------------------------------------------------------------------------- */

/* Unlink an MD, and its ME if that goes with it. Posts no event. */
void ptl_md_release(struct ptl_engine *e, uint32_t md);
void ptl_md_free(struct ptl_engine *e, uint32_t md); /* puts it on the free list */
void ptl_me_release(struct ptl_engine *e, uint32_t me);
/* The state word of a freed object: the next generation, no flags. */
uint32_t ptl_next_gen(uint32_t state);

/* Post an UNLINK event for an explicit unlink, if the MD asks for it (Cray). */
void ptl_engine_unlink_event(struct ptl_engine *e, uint32_t md);

/* A table index as messages carry it. An index out of range stays out of range: the target rejects
 * and counts it. */
static inline uint16_t ptl_clip_index(uint32_t index)
{
	return index > UINT16_MAX ? UINT16_MAX : (uint16_t)index;
}

static inline void ptl_count_drop(struct ptl_engine *e, enum ptl_drop why, uint64_t length)
{
	struct ptl_stat *s = &e->v->r->stat;

	s->drops[why]++;
	s->sr[PTL_SR_DROP_COUNT]++;
	s->sr[PTL_SR_DROP_LENGTH] += length;
}

/* Handles: kind, interface, index, generation. Generation 255 is never used. So
 * PTL_INVALID_HANDLE, PTL_HANDLE_NONE and PTL_EQ_NONE, which end in ff, name no object. */
enum ptl_kind { PTL_KIND_NI, PTL_KIND_ME, PTL_KIND_EQ, PTL_KIND_MD };

static inline uint32_t ptl_handle(enum ptl_kind kind, uint32_t iface, uint32_t index,
				  uint32_t state)
{
	return (uint32_t)kind << 30 | iface << 28 | index << 8 | ptl_obj_gen(state);
}

#endif
