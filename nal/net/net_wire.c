/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See net_wire.h.
 */
#include "nal/net/net_wire.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "nal/net/carrier.h"
#include "portals/engine/atomic.h"
#include "portals/engine/engine.h"

/* As message_sound(), for an atomic on runs. Its list is checked when it is there. */
static bool sound_runs(const struct net_msg *m, uint64_t body_len)
{
	unsigned int plain = ptl_atomic_plain(m->atomic);
	uint64_t least = sizeof(ptl_atomic_runs_t) + (plain == PTL_ATOMIC_FETCH ? 0 : m->length);

	return m->kind != NET_GET && plain != PTL_ATOMIC_CSWAP && m->length <= NET_SWAP_MOST &&
	       ptl_atomic_valid(plain, m->element, m->length) && body_len >= least &&
	       body_len <= NET_SWAP_MOST;
}

/* Is the body as long as the request says? */
static bool message_sound(const struct net_msg *m, uint64_t body_len)
{
	if (ptl_atomic_on_runs(m->atomic))
		return sound_runs(m, body_len);
	if (m->atomic && (m->length > NET_SWAP_MOST || m->kind == NET_GET ||
			  !ptl_atomic_valid(m->atomic, m->element, m->length)))
		return false;
	switch (m->kind) {
	case NET_PUT:
		return body_len == ptl_atomic_operand(m->atomic, m->length) &&
		       (!m->atomic || body_len <= NET_SWAP_MOST);
	case NET_GETPUT:
		return body_len == ptl_atomic_operand(m->atomic, m->length) &&
		       body_len <= NET_SWAP_MOST;
	default:
		return body_len == 0;
	}
}

/* The next 8 bytes. */
static uint64_t next(const uint8_t **at)
{
	*at += 8;
	return base_get64(*at - 8);
}

/* Decode the optional words, each present only if its flag is set. */
static void decode_long_message(const uint8_t *at, uint8_t flags, struct net_msg *m)
{
	if (flags & NET_HAS_OP) {
		m->op = base_get32(at);
		m->op_gen = base_get32(at + 4);
		at += 8;
	}
	if (flags & NET_HAS_OFFSET)
		m->remote_offset = next(&at);
	if (flags & NET_HAS_LENGTH)
		m->length = next(&at);
	if (flags & NET_HAS_DATA)
		m->hdr_data = next(&at);
}

/* How many words of 8 bytes the flags announce: a hexadecimal digit for each choice of the
 * four. */
static size_t said(uint8_t flags)
{
	static_assert(NET_HAS == 0x1e, "four bits above the first");
	return 0x4332322132212110ull >> 4 * (flags >> 1) & 0xf;
}

static int decode_request(const uint8_t *h, size_t len, uint64_t body_len, struct net_msg *m)
{
	uint8_t flags;

	if (len < sizeof(struct net_wire_request))
		return -EPROTO;
	flags = h[offsetof(struct net_wire_request, flags)];
	if (flags & ~(NET_WANT_ACK | NET_HAS) ||
	    len != sizeof(struct net_wire_request) + 8 * said(flags))
		return -EPROTO;
	m->ack = flags & NET_WANT_ACK;
	m->atomic = h[offsetof(struct net_wire_request, atomic)];
	m->element = h[offsetof(struct net_wire_request, element)];
	m->pt_index = base_get16(h + offsetof(struct net_wire_request, pt_index));
	m->ac_index = base_get16(h + offsetof(struct net_wire_request, ac_index));
	m->match_bits = base_get64(h + offsetof(struct net_wire_request, match_bits));
	m->op = PTL_NIL;
	m->length = body_len;
	if (flags & NET_HAS)
		decode_long_message(h + sizeof(struct net_wire_request), flags, m);
	if (ptl_atomic_on_runs(m->atomic)) {
		m->span = (uint32_t)(m->length >> 32);
		m->length = (uint32_t)m->length;
	}
	return message_sound(m, body_len) ? 0 : -EPROTO;
}

static int decode_answer(const struct net_wire_answer *w, uint64_t body_len, struct net_msg *m)
{
	m->what = w->what;
	m->fail = w->fail;
	m->op = base_get32(w->op);
	m->op_gen = base_get32(w->op_gen);
	m->length = base_get64(w->length);
	if (m->kind == NET_REPLY)
		return m->length == body_len ? 0 : -EPROTO;
	if (body_len || m->what > PTL_ANSWER_FAILED || m->fail >= PTL_NI_FAIL_MAX)
		return -EPROTO;
	return (m->what == PTL_ANSWER_FAILED) == (m->fail != PTL_NI_OK) ? 0 : -EPROTO;
}

int net_msg_decode(const void *header, size_t len, uint64_t body_len, struct net_msg *m)
{
	const uint8_t *h = header;

	*m = (struct net_msg){ .kind = 0 };
	if (!len)
		return -EPROTO;
	m->kind = h[0];
	switch (m->kind) {
	case NET_PUT:
	case NET_GET:
	case NET_GETPUT:
		return decode_request(header, len, body_len, m);
	case NET_ANSWER:
	case NET_REPLY:
		if (len != sizeof(struct net_wire_answer))
			return -EPROTO;
		return decode_answer(header, body_len, m);
	}
	return -EPROTO;
}

static uint32_t encode_answer(uint8_t *to, const struct net_msg *m)
{
	struct net_wire_answer w = { .kind = m->kind, .what = m->what, .fail = m->fail };

	base_put32(w.op, m->op);
	base_put32(w.op_gen, m->op_gen);
	base_put64(w.length, m->length);
	memcpy(to, &w, sizeof(w));
	return sizeof(w);
}

uint32_t net_msg_encode(uint8_t *to, const struct net_msg *m)
{
	struct net_wire_request w = { .kind = m->kind };
	uint8_t *at = to + sizeof(w);

	static_assert(NET_REQUEST_MOST <= NET_HEADER_MAX, "it fits");
	if (m->kind == NET_ANSWER || m->kind == NET_REPLY)
		return encode_answer(to, m);
	w.flags = m->ack ? NET_WANT_ACK : 0;
	w.atomic = m->atomic;
	w.element = m->element;
	base_put16(w.pt_index, m->pt_index);
	base_put16(w.ac_index, m->ac_index);
	base_put64(w.match_bits, m->match_bits);
	if (m->op != PTL_NIL || m->op_gen) {
		w.flags |= NET_HAS_OP;
		base_put32(at, m->op);
		base_put32(at + 4, m->op_gen);
		at += 8;
	}
	if (m->remote_offset) {
		w.flags |= NET_HAS_OFFSET;
		base_put64(at, m->remote_offset);
		at += 8;
	}
	/* the body of a plain put is all that is put */
	if (m->kind != NET_PUT || m->atomic) {
		w.flags |= NET_HAS_LENGTH;
		base_put64(at, m->length | (uint64_t)m->span << 32);
		at += 8;
	}
	if (m->hdr_data) {
		w.flags |= NET_HAS_DATA;
		base_put64(at, m->hdr_data);
		at += 8;
	}
	memcpy(to, &w, sizeof(w));
	return (uint32_t)(at - to);
}
