/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See rdma_wire.h.
 */
#include "nal/net/rdma/rdma_wire.h"

#include <errno.h>
#include <string.h>

static int decode_hello(const uint8_t *at, size_t len, struct rdma_msg *m)
{
	const struct rdma_wire_hello *w = (const void *)at;

	if (len < sizeof(*w) || !base_all_zero(w->zero, sizeof(w->zero)) || m->to || m->token ||
	    m->seq || m->consumed)
		return -EPROTO;
	m->from = base_get64(w->from);
	m->whom = base_get64(w->whom);
	m->incarnation = base_get64(w->incarnation);
	m->own_token = base_get64(w->token);
	m->greeting = base_get64(w->greeting);
	m->uid = base_get32(w->uid);
	m->jid = base_get32(w->jid);
	m->number = base_get16(w->number);
	m->allowed = base_get16(w->allowed);
	m->link_address_len = base_get16(w->address_len);
	m->link_address = at + sizeof(*w);
	if (!m->allowed || m->link_address_len > RDMA_ADDRESS_MAX ||
	    len != sizeof(*w) + m->link_address_len)
		return -EPROTO;
	return 0;
}

static int decode_short(const uint8_t *at, size_t len, uint8_t header_len, struct rdma_msg *m)
{
	if (header_len > len || header_len > NET_HEADER_MAX)
		return -EPROTO;
	m->header = at;
	m->header_len = header_len;
	m->length = len - header_len;
	m->body = m->length ? at + header_len : NULL;
	return 0;
}

static int decode_long(const uint8_t *at, size_t len, struct rdma_msg *m)
{
	const struct rdma_wire_long *w = (const void *)at;

	if (len < sizeof(*w) || w->readable > 1 || !base_all_zero(w->zero, sizeof(w->zero)))
		return -EPROTO;
	m->header = at + sizeof(*w);
	m->header_len = w->header_len;
	m->readable = w->readable;
	m->id = base_get32(w->id);
	m->length = base_get64(w->length);
	m->address = base_get64(w->address);
	m->key = base_get64(w->key);
	if (!m->length || m->header_len > NET_HEADER_MAX || len != sizeof(*w) + m->header_len)
		return -EPROTO;
	return !m->readable && (m->address || m->key) ? -EPROTO : 0;
}

static int decode_begin(const uint8_t *at, size_t len, uint8_t header_len, struct rdma_msg *m)
{
	const struct rdma_wire_begin *w = (const void *)at;

	if (len < sizeof(*w) + header_len || header_len > NET_HEADER_MAX)
		return -EPROTO;
	m->header = at + sizeof(*w);
	m->header_len = header_len;
	m->length = base_get64(w->length);
	m->body = at + sizeof(*w) + header_len;
	m->here = len - sizeof(*w) - header_len;
	return m->here && m->here <= m->length && m->length <= RDMA_PARTS_MOST ? 0 : -EPROTO;
}

static int decode_long_header(const uint8_t *at, size_t len, struct rdma_msg *m)
{
	m->body = at;
	m->length = len;
	return len ? 0 : -EPROTO;
}

static void take_body(const struct rdma_wire_body *w, struct rdma_msg *m)
{
	m->id = base_get32(w->id);
	m->status = w->status;
	m->length = base_get64(w->length);
	m->offset = base_get64(w->offset);
}

/* Is each entry a valid report of a message that is over? */
static bool good_overs(const struct rdma_wire_body *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!base_all_zero(w[i].zero, sizeof(w[i].zero)) || w[i].status > NET_ENDED ||
		    !base_all_zero(w[i].offset, sizeof(w[i].offset)))
			return false;
	return true;
}

static int decode_overs(const uint8_t *at, size_t len, struct rdma_msg *m)
{
	const struct rdma_wire_body *w = (const void *)at;
	size_t n = len / sizeof(*w);

	if (!n || n > RDMA_OVERS || len % sizeof(*w) || !good_overs(w, (uint32_t)n))
		return -EPROTO;
	take_body(w, m);
	m->more = w + 1;
	m->nmore = (uint32_t)n - 1;
	return 0;
}

void rdma_decode_over(struct rdma_msg *m, uint32_t i)
{
	take_body((const struct rdma_wire_body *)m->more + i, m);
}

static int decode_body(const uint8_t *at, size_t len, struct rdma_msg *m)
{
	const struct rdma_wire_body *w = (const void *)at;
	size_t bytes;

	if (len < sizeof(*w) || !base_all_zero(w->zero, sizeof(w->zero)))
		return -EPROTO;
	bytes = len - sizeof(*w);
	take_body(w, m);
	if (m->kind == RDMA_SEGMENT) {
		m->body = at + sizeof(*w);
		return m->length && m->length == bytes && !m->status &&
				       m->offset + m->length > m->offset
			       ? 0
			       : -EPROTO;
	}
	return bytes || m->offset || m->status || !m->length ? -EPROTO : 0;
}

int rdma_decode(const void *packet, size_t len, struct rdma_msg *m)
{
	const struct rdma_wire_head *w = packet;
	const uint8_t *rest = (const uint8_t *)packet + sizeof(*w);

	if (len < sizeof(*w) || w->what >> 4 != RDMA_VERSION ||
	    (w->header_len && !rdma_is_short(packet, len) && (w->what & 0xf) != RDMA_BEGIN))
		return -EPROTO;
	if (!rdma_is_short(packet, len)) /* few members of a SHORT one are used */
		memset(m, 0, offsetof(struct rdma_msg, link_address)); /* greetings set the rest */
	m->kind = w->what & 0xf;
	m->to = base_get16(w->to);
	m->token = base_get64(w->token);
	m->seq = base_get16(w->seq);
	m->consumed = base_get16(w->consumed);
	len -= sizeof(*w);
	switch (m->kind) {
	case RDMA_HELLO:
	case RDMA_WELCOME:
		return decode_hello(rest, len, m);
	case RDMA_SHORT:
		return decode_short(rest, len, w->header_len, m);
	case RDMA_LONG:
		return decode_long(rest, len, m);
	case RDMA_PULL:
	case RDMA_SEGMENT:
		return decode_body(rest, len, m);
	case RDMA_OVER:
		return decode_overs(rest, len, m);
	case RDMA_NOTE:
	case RDMA_PING:
	case RDMA_BYE:
		return len ? -EPROTO : 0;
	case RDMA_BEGIN:
		return decode_begin(rest, len, w->header_len, m);
	case RDMA_MORE:
		return decode_long_header(rest, len, m);
	}
	return -EPROTO;
}

static uint32_t encode_hello(uint8_t *to, const struct rdma_msg *m)
{
	struct rdma_wire_hello w = { .tag = { 0 } };

	base_put64(w.from, m->from);
	base_put64(w.whom, m->whom);
	base_put64(w.incarnation, m->incarnation);
	base_put64(w.token, m->own_token);
	base_put64(w.greeting, m->greeting);
	base_put32(w.uid, m->uid);
	base_put32(w.jid, m->jid);
	base_put16(w.number, m->number);
	base_put16(w.allowed, m->allowed);
	base_put16(w.address_len, (uint16_t)m->link_address_len);
	memcpy(to, &w, sizeof(w));
	return sizeof(w);
}

static void encode_head(struct rdma_wire_head *w, const struct rdma_msg *m, uint8_t kind)
{
	w->what = (uint8_t)(RDMA_VERSION << 4 | kind);
	w->header_len = kind == RDMA_SHORT || kind == RDMA_BEGIN ? (uint8_t)m->header_len : 0;
	base_put16(w->to, m->to);
	base_put16(w->seq, m->seq);
	base_put16(w->consumed, m->consumed);
	base_put64(w->token, m->token);
}

uint32_t rdma_encode_short(uint8_t *to, const struct rdma_msg *m)
{
	encode_head((void *)to, m, RDMA_SHORT);
	return RDMA_BEFORE_SHORT;
}

static uint32_t encode_long(uint8_t *to, const struct rdma_msg *m)
{
	struct rdma_wire_long w = { .header_len = (uint8_t)m->header_len, .readable = m->readable };

	base_put32(w.id, m->id);
	base_put64(w.length, m->length);
	base_put64(w.address, m->address);
	base_put64(w.key, m->key);
	memcpy(to, &w, sizeof(w));
	return sizeof(w);
}

static uint32_t encode_body(uint8_t *to, const struct rdma_msg *m)
{
	struct rdma_wire_body w = { .status = m->status };

	base_put32(w.id, m->id);
	base_put64(w.length, m->length);
	base_put64(w.offset, m->offset);
	memcpy(to, &w, sizeof(w));
	return sizeof(w);
}

uint32_t rdma_encode_over(uint8_t *to, uint32_t id, uint8_t status, uint64_t length)
{
	return encode_body(to, &(struct rdma_msg){ .id = id, .status = status, .length = length });
}

uint32_t rdma_encode(uint8_t *to, const struct rdma_msg *m)
{
	uint32_t len = sizeof(struct rdma_wire_head);

	if (m->kind == RDMA_SHORT)
		return rdma_encode_short(to, m);
	encode_head((void *)to, m, m->kind);
	to += len;
	switch (m->kind) {
	case RDMA_HELLO:
	case RDMA_WELCOME:
		return len + encode_hello(to, m);
	case RDMA_LONG:
		return len + encode_long(to, m);
	case RDMA_PULL:
	case RDMA_SEGMENT:
	case RDMA_OVER:
		return len + encode_body(to, m);
	case RDMA_BEGIN:
		base_put64(to, m->length);
		return RDMA_BEFORE_BEGIN;
	}
	return len;
}
