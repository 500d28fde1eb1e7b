/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The engine: what happens to an interface's objects when a message arrives, an answer comes
 * back or a peer dies. It knows regions, not networks: a NAL calls ptl_engine_match with a
 * request, moves the bytes to or from where the landing says by whatever means it has, and calls
 * ptl_engine_done. Every function here runs with the region's lock held, over any mapped region,
 * in the owner or in a peer; all writes but those of counters go through undo.h.
 */
#ifndef PTL_ENGINE_H
#define PTL_ENGINE_H

#include "portals/engine/match.h"

/* Kinds of a landing beyond enum ptl_req_kind. */
#define PTL_LAND_REPLY 4

/* What became of a put that the application was offered before it is stored. */
enum ptl_inline {
	PTL_INLINE_NOT, /* it was not asked */
	PTL_INLINE_DECLINED,
	PTL_INLINE_HANDLED, /* the message is over */
};

/* Offers a put that nobody is to be told of where that is plain: it is admitted, its portal's
 * list is short, and the first entry that names it has room. Else ptl_engine_match finds where
 * it goes, and offers it, too. There is a taker. */
enum ptl_inline ptl_engine_inline(struct ptl_engine *e, uint32_t pt_index, uint32_t ac_index,
				  uint32_t uid, uint32_t jid, uint64_t remote_offset,
				  ptl_arrival_t *put);

#define PTL_MATCH_TAKEN (-1)

/* Section 2.2 of 3.3, all of it: checks, access control, matching, and atomically with that
 * offset, threshold and activity; START event. 0 and *l filled, or PTL_DROP_* + 1, counted.
 * PTL_MATCH_TAKEN: the application had a use for q->data, and the message is over. */
int ptl_engine_match(struct ptl_engine *e, const struct ptl_request *q, struct ptl_delivery *l);

/* The bytes of *l are in place, or moving them failed: END event, pending, unlink. */
void ptl_engine_done(struct ptl_engine *e, const struct ptl_delivery *l, ptl_ni_fail_t fail);

/* A landing record in the region, for messages that take more than one step. PTL_NIL: none free. */
uint32_t ptl_delivery_alloc(struct ptl_engine *e, const struct ptl_delivery *from);
void ptl_delivery_free(struct ptl_engine *e, uint32_t index);

/* Who answers, for the events of the initiator. */
struct ptl_answerer {
	ptl_process_id_t id;
	uint32_t uid, jid;
};

enum ptl_answer {
	PTL_ANSWER_ACK = 0, /* stored, and the target's MD acknowledges */
	PTL_ANSWER_QUIET,   /* done, but no ack is due: disabled, or the request was dropped */
	PTL_ANSWER_FAILED,  /* storing failed, `fail` says why */
};

/* The target's last word on a put, or on a get that brings no reply. Frees the operation. False:
 * no such operation. */
bool ptl_engine_answer(struct ptl_engine *e, uint32_t op, uint32_t gen, enum ptl_answer what,
		       uint64_t mlength, ptl_ni_fail_t fail, const struct ptl_answerer *who);

/* A reply of `mlength` bytes is there for `op`: section 8.2's checks, threshold, REPLY_START.
 * True and *l filled (end it with ptl_engine_done, then ptl_op_free; if `whole`, before the lock
 * is let go), false: dropped and counted. */
bool ptl_engine_reply(struct ptl_engine *e, uint32_t op, uint32_t gen, uint64_t mlength, bool whole,
		      const struct ptl_answerer *who, struct ptl_delivery *l);

/* For a reply that takes more than one step: keeps in the operation what *l says, and gives it
 * back. */
void ptl_engine_reply_keep(struct ptl_engine *e, uint32_t op, const struct ptl_delivery *l);
void ptl_engine_reply_kept(const struct ptl_view *v, uint32_t op, const struct ptl_answerer *who,
			   struct ptl_delivery *l);

/* Everything in flight from or to `peer` ends in failure events. Owner only. */
void ptl_engine_peer_lost(struct ptl_engine *e, uint32_t peer, ptl_ni_fail_t fail,
			  const struct ptl_answerer *who);

/* ---- operations of the initiator ------------------------------------------------------------- */

struct ptl_start {
	enum ptl_req_kind kind;
	bool ack;
	uint8_t atomic,
		element;    /* of a put or getput: ptl_atomic_op_t, 0 for none; ptl_atomic_type_t */
	bool lazy;          /* with inject: of use to the target in its own calls only */
	const void *inject; /* a put of bytes that are taken at once: no MD, nobody is told */
	uint32_t md;        /* get: where the reply goes; put, getput: the source */
	uint32_t get_md;    /* getput: where the old contents go */
	uint64_t offset, get_offset, length;
	uint32_t operand; /* of an atomic: bytes at `offset` that are sent */
	uint32_t span;    /* of one on runs: what they are in */
	ptl_process_id_t target;
	uint32_t pt_index, ac_index;
	uint64_t match_bits, remote_offset, hdr_data;
};

/* Counts the start of an operation on its MD and posts the events that are due: SEND_START, and
 * unless `more` data stays to be fetched, SEND_END with `fail`. Owner only. */
void ptl_engine_send(struct ptl_engine *e, const struct ptl_start *s, bool more, ptl_ni_fail_t fail,
		     uint32_t op);

/* A record for an operation that waits for an answer. Owner only. PTL_NIL: none left. */
uint32_t ptl_op_alloc(struct ptl_engine *e, const struct ptl_start *s, uint32_t peer,
		      uint32_t flags);
/* The record that the next ptl_op_alloc() will take, and its generation then; PTL_NIL: none is
 * left. */
uint32_t ptl_op_next(struct ptl_view *v, uint32_t *gen);
void ptl_op_free(struct ptl_engine *e, uint32_t op);
/* Is `op` of this generation in use? (indices from messages are checked here) */
bool ptl_op_valid(const struct ptl_view *v, uint32_t op, uint32_t gen);

/* ---- objects --------------------------------------------------------------------------------- */

/* MD index: free to leave now? Unlinks it, its ME too if that says so. No event. */
void ptl_md_release(struct ptl_engine *e, uint32_t md);
void ptl_md_free(struct ptl_engine *e, uint32_t md); /* for others to have */
void ptl_me_release(struct ptl_engine *e, uint32_t me);
uint32_t ptl_next_gen(uint32_t state); /* state word of a freed object: next generation, no flags */

/* Posts an UNLINK event on an explicit unlink, where the MD asks for it (Cray). */
void ptl_engine_unlink_event(struct ptl_engine *e, uint32_t md);

static inline void ptl_count_drop(struct ptl_engine *e, enum ptl_drop why, uint64_t length)
{
	struct ptl_stat *s = &e->v->r->stat;

	s->drops[why]++;
	s->sr[PTL_SR_DROP_COUNT]++;
	s->sr[PTL_SR_DROP_LENGTH] += length;
}

/* Handles: kind, interface, index, generation. Generation 255 is never used, so that
 * PTL_INVALID_HANDLE, PTL_HANDLE_NONE and PTL_EQ_NONE, which end in ff, name no object. */
enum ptl_kind { PTL_KIND_NI, PTL_KIND_ME, PTL_KIND_EQ, PTL_KIND_MD };

static inline uint32_t ptl_handle(enum ptl_kind kind, uint32_t iface, uint32_t index,
				  uint32_t state)
{
	return (uint32_t)kind << 30 | iface << 28 | index << 8 | ptl_obj_gen(state);
}

#endif
