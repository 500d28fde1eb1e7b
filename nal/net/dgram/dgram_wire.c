/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Datagrams to host structures and back: see dgram_wire.h. Input to the decoders is untrusted;
 * input to the encoders has been checked.
 */
#include "nal/net/dgram/dgram_wire.h"

#include <errno.h>
#include <string.h>

int dgram_head_decode(const void *packet, size_t len, struct dgram_head *h)
{
	struct dgram_wire_head w;
	uint32_t head_len;

	if (len < sizeof(w) || len > DGRAM_MTU_MAX)
		return -EPROTO;
	memcpy(&w, packet, sizeof(w));
	head_len = base_get16(w.head_len);
	if (w.version != DGRAM_VERSION || w.type < DGRAM_HELLO || w.type > DGRAM_RESET ||
	    head_len < sizeof(w) || head_len > len)
		return -EPROTO;
	/* only FRAMES packets have payload and packet numbers */
	if (w.type == DGRAM_FRAMES ? !base_get64(w.pn) : head_len != len || base_get64(w.pn))
		return -EPROTO;
	/* far below where they would wrap */
	if (base_get64(w.pn) > DGRAM_PN_MAX)
		return -EPROTO;
	h->type = w.type;
	h->head_len = head_len;
	h->gap = base_get32(w.gap);
	h->to = base_get64(w.to);
	h->pn = base_get64(w.pn);
	return 0;
}

/* In place: a wide copy of bytes just written by narrower stores would have to wait for them. */
size_t dgram_head_encode(uint8_t *to, const struct dgram_head *h)
{
	struct dgram_wire_head *w = (struct dgram_wire_head *)to;

	w->version = DGRAM_VERSION;
	w->type = h->type;
	base_put16(w->head_len, h->head_len);
	base_put32(w->gap, h->gap);
	base_put64(w->to, h->to);
	base_put64(w->pn, h->pn);
	memset(w->tag, 0, sizeof(w->tag));
	return sizeof(*w);
}

int dgram_hello_decode(const void *packet, size_t len, struct dgram_hello *hello)
{
	struct dgram_wire_hello w;

	if (len != sizeof(struct dgram_wire_head) + sizeof(w))
		return -EPROTO;
	memcpy(&w, (const uint8_t *)packet + sizeof(struct dgram_wire_head), sizeof(w));
	if (!base_get64(w.token))
		return -EPROTO;
	hello->from = base_get64(w.from);
	hello->whom = base_get64(w.whom);
	hello->incarnation = base_get64(w.incarnation);
	hello->token = base_get64(w.token);
	hello->uid = base_get32(w.uid);
	hello->jid = base_get32(w.jid);
	return 0;
}

size_t dgram_hello_encode(uint8_t *to, const struct dgram_hello *hello)
{
	struct dgram_wire_hello w = { .from = { 0 } };

	base_put64(w.from, hello->from);
	base_put64(w.whom, hello->whom);
	base_put64(w.incarnation, hello->incarnation);
	base_put64(w.token, hello->token);
	base_put32(w.uid, hello->uid);
	base_put32(w.jid, hello->jid);
	memcpy(to, &w, sizeof(w));
	return sizeof(w);
}

int dgram_reset_decode(const void *packet, size_t len, uint64_t *unknown)
{
	if (len != sizeof(struct dgram_wire_head) + sizeof(struct dgram_wire_reset))
		return -EPROTO;
	*unknown = base_get64((const uint8_t *)packet + sizeof(struct dgram_wire_head));
	return 0;
}

/* Each of these decodes a frame whose first byte is at `b`, with `room` bytes left in the
 * head. Returns the bytes that it takes there, or 0 if it is malformed. */

static size_t short_frame(const uint8_t *b, size_t room)
{
	return room >= DGRAM_FRAME_SHORT && base_all_zero(b + 1, DGRAM_FRAME_SHORT - 1)
		       ? DGRAM_FRAME_SHORT
		       : 0;
}

static size_t confirm(const uint8_t *b, size_t room, struct dgram_frame *f)
{
	struct dgram_wire_confirm w;

	if (room < sizeof(w))
		return 0;
	memcpy(&w, b, sizeof(w));
	f->body_len = base_get64(w.token);
	f->incarnation = base_get64(w.incarnation);
	f->uid = base_get32(w.uid);
	f->jid = base_get32(w.jid);
	return base_all_zero(w.zero, sizeof(w.zero)) && f->body_len ? sizeof(w) : 0;
}

static size_t decode_ack(const uint8_t *b, size_t room, struct dgram_frame *f)
{
	struct dgram_wire_ack w;

	if (room < sizeof(w))
		return 0;
	memcpy(&w, b, sizeof(w));
	f->words = w.words;
	f->credit = base_get16(w.credit);
	f->number = base_get32(w.delivered);
	f->body_len = base_get32(w.newest);
	f->delay_us = base_get32(w.delay);
	f->bytes = b + sizeof(w);
	if (f->words > DGRAM_ACK_WORDS || room - sizeof(w) < 8 * f->words)
		return 0;
	return sizeof(w) + 8 * f->words;
}

static size_t msg(const uint8_t *b, size_t room, struct dgram_frame *f)
{
	size_t len = offsetof(struct dgram_wire_msg, body_len);

	if (room < len)
		return 0;
	f->hdr_len = b[offsetof(struct dgram_wire_msg, hdr_len)];
	f->body_now = base_get16(b + offsetof(struct dgram_wire_msg, body_now));
	f->number = base_get32(b + offsetof(struct dgram_wire_msg, number));
	f->body_len = f->body_now;
	if (f->body_now == DGRAM_BODY_LATER) {
		if (room < sizeof(struct dgram_wire_msg))
			return 0;
		f->body_now = 0;
		f->body_len = base_get64(b + len);
		if (!f->body_len)
			return 0;
		len = sizeof(struct dgram_wire_msg);
	}
	f->bytes = b + len;
	if (f->hdr_len > NET_HEADER_MAX || room - len < f->hdr_len + f->body_now)
		return 0;
	return len + f->hdr_len + f->body_now;
}

static size_t decode_pull(const uint8_t *b, size_t room, struct dgram_frame *f)
{
	struct dgram_wire_pull w;

	if (room < sizeof(w))
		return 0;
	memcpy(&w, b, sizeof(w));
	f->reason = w.reason;
	f->number = base_get32(w.number);
	f->body_len = base_get64(w.length);
	if (w.reason > DGRAM_PULL_REFUSE || !base_all_zero(w.zero, sizeof(w.zero)) ||
	    (w.reason == DGRAM_PULL_ACCEPT && !f->body_len) ||
	    (w.reason == DGRAM_PULL_REFUSE && f->body_len))
		return 0;
	return sizeof(w);
}

/* The last frame: its payload is everything after the head. */
static size_t data(const uint8_t *b, size_t room, size_t payload, struct dgram_frame *f)
{
	struct dgram_wire_data w;

	if (room != sizeof(w))
		return 0;
	memcpy(&w, b, sizeof(w));
	f->body_now = base_get16(w.length);
	f->number = base_get32(w.number);
	f->body_len = base_get64(w.offset);
	f->bytes = b + sizeof(w);
	if (w.zero || !f->body_now || f->body_now != payload ||
	    f->body_len > UINT64_MAX - f->body_now)
		return 0;
	return sizeof(w);
}

int dgram_frame_decode(const void *packet, size_t len, const struct dgram_head *h, size_t *at,
		       struct dgram_frame *f)
{
	const uint8_t *b = (const uint8_t *)packet + *at;
	size_t room = h->head_len - *at, payload = len - h->head_len, consumed;

	if (!room)
		return payload && f->kind != DGRAM_FRAME_DATA ? -EPROTO : 0;
	memset(f, 0, sizeof(*f));
	f->kind = *b;
	switch (f->kind) {
	case DGRAM_FRAME_PING:
	case DGRAM_FRAME_BYE:
		consumed = short_frame(b, room);
		break;
	case DGRAM_FRAME_PAD:
		consumed = room;
		break;
	case DGRAM_FRAME_CONFIRM:
		consumed = confirm(b, room, f);
		break;
	case DGRAM_FRAME_ACK:
		consumed = decode_ack(b, room, f);
		break;
	case DGRAM_FRAME_MSG:
		consumed = msg(b, room, f);
		break;
	case DGRAM_FRAME_PULL:
		consumed = decode_pull(b, room, f);
		break;
	case DGRAM_FRAME_DATA:
		consumed = data(b, room, payload, f);
		break;
	default:
		consumed = 0;
	}
	*at += consumed;
	return consumed ? 1 : -EPROTO;
}

size_t dgram_packet_length(const void *packet, size_t len)
{
	size_t at = sizeof(struct dgram_wire_head), last = at;
	struct dgram_wire_head w;
	struct dgram_wire_data d;
	struct dgram_head h = { .type = DGRAM_FRAMES };
	struct dgram_frame f = { .kind = 0 };

	if (len < sizeof(w))
		return len;
	memcpy(&w, packet, sizeof(w));
	h.head_len = base_get16(w.head_len);
	if (h.head_len == len || h.head_len < sizeof(w) || h.head_len > len)
		return len;
	if (w.type != DGRAM_FRAMES)
		return h.head_len;
	/* only DATA, the last frame, has bytes behind the head; as its payload is left out
	 * here, decoding it fails and ends the loop */
	while (at < h.head_len) {
		last = at;
		if (dgram_frame_decode(packet, h.head_len, &h, &at, &f) < 0)
			break;
	}
	if (at == h.head_len)
		return at;
	if (f.kind != DGRAM_FRAME_DATA || h.head_len - last != sizeof(d))
		return len;
	memcpy(&d, (const uint8_t *)packet + last, sizeof(d));
	at = h.head_len + base_get16(d.length);
	return at < len ? at : len;
}

bool dgram_packet_names(const void *packet, size_t len)
{
	const uint8_t *b = packet;

	if (len <= sizeof(struct dgram_wire_head))
		return false;
	return b[offsetof(struct dgram_wire_head, type)] != DGRAM_FRAMES ||
	       b[sizeof(struct dgram_wire_head)] == DGRAM_FRAME_CONFIRM;
}

size_t dgram_frame_encode(uint8_t *to, const struct dgram_frame *f)
{
	memset(to, 0, 8);
	to[0] = f->kind;
	switch (f->kind) {
	case DGRAM_FRAME_CONFIRM:
		base_put64(to + 8, f->body_len);
		base_put64(to + 16, f->incarnation);
		base_put32(to + 24, f->uid);
		base_put32(to + 28, f->jid);
		return sizeof(struct dgram_wire_confirm);
	case DGRAM_FRAME_ACK:
		to[1] = (uint8_t)f->words;
		base_put16(to + 2, f->credit);
		base_put32(to + 4, f->number);
		base_put32(to + 8, (uint32_t)f->body_len);
		base_put32(to + 12, f->delay_us);
		return sizeof(struct dgram_wire_ack);
	case DGRAM_FRAME_MSG:
		to[1] = (uint8_t)f->hdr_len;
		base_put32(to + 4, f->number);
		base_put16(to + 2, f->body_now);
		if (f->body_now == f->body_len)
			return offsetof(struct dgram_wire_msg, body_len);
		base_put16(to + 2, DGRAM_BODY_LATER);
		base_put64(to + 8, f->body_len);
		return sizeof(struct dgram_wire_msg);
	case DGRAM_FRAME_PULL:
		to[1] = f->reason;
		base_put32(to + 4, f->number);
		base_put64(to + 8, f->body_len);
		return sizeof(struct dgram_wire_pull);
	case DGRAM_FRAME_DATA:
		base_put16(to + 2, f->body_now);
		base_put32(to + 4, f->number);
		base_put64(to + 8, f->body_len);
		return sizeof(struct dgram_wire_data);
	default:
		return f->kind == DGRAM_FRAME_PAD ? 1 : DGRAM_FRAME_SHORT;
	}
}
