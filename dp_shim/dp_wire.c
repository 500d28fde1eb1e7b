/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Encoders and decoders of what DP sends: see dp_wire.h.
 */
#include "dp_shim/dp_wire.h"

#include "base/bytes.h"
#include <dp.h>

enum { RECORD_MAGIC = 0x31705064 }; /* "dPp1" */
enum { RECORD_OPEN = 1, RECORD_FLOW = 2 };

#define UNITS_MASK    ((1ull << DP_UNITS_BITS) - 1)
#define MESSAGES_MASK ((1u << DP_MESSAGES_BITS) - 1)
/* more than any pool has */
#define SHARE_MOST ((uint64_t)1 << 32)

/* ---- messages -------------------------------------------------------------------------------- */

uint64_t dp_wire_match_bits(const struct dp_header *h)
{
	return (uint64_t)h->charged << 63 | (uint64_t)(h->sender & DP_SENDER_MASK) << 44 |
	       (uint64_t)(h->target & DP_TARGET_MASK) << 24 | h->to;
}

uint64_t dp_wire_header_data(const struct dp_header *h)
{
	return (uint64_t)h->nid << 48 | (uint64_t)h->dpid << 24 |
	       (uint64_t)(h->number & DP_NUMBER_MASK) << 4 | h->padding;
}

bool dp_wire_header(uint64_t match_bits, uint64_t header_data, uint64_t length, uint32_t nodes,
		    struct dp_header *h)
{
	struct dp_header got = {
		.charged = match_bits >> 63,
		.sender = (uint32_t)(match_bits >> 44) & DP_SENDER_MASK,
		.target = (uint32_t)(match_bits >> 24) & DP_TARGET_MASK,
		.to = (uint32_t)match_bits & DP_DPID_MASK,
		.nid = (uint32_t)(header_data >> 48),
		.dpid = (uint32_t)(header_data >> 24) & DP_DPID_MASK,
		.number = (uint32_t)(header_data >> 4) & DP_NUMBER_MASK,
		.padding = (uint32_t)header_data & 15,
	};

	if (!got.to || !got.dpid || got.nid >= nodes)
		return false;
	/* a message of 0 bytes is one of padding alone, so that each has a place of its own */
	if (!length || length % DP_ALIGN || got.padding > DP_ALIGN || got.padding > length ||
	    (got.padding == DP_ALIGN && length != DP_ALIGN))
		return false;
	*h = got;
	return true;
}

/* ---- lookups --------------------------------------------------------------------------------- */

/*
 *   0        4        8        12       16                24                32
 *   +--------+--------+--------+--------+-----------------+-----------------+
 *   | magic  | flags  | NID    | longest| instance        | 0               |
 *   +--------+--------+--------+--------+-----------------+-----------------+
 */
void dp_wire_put_record(void *to, const struct dp_record *r)
{
	uint8_t *at = to;

	base_put32(at, RECORD_MAGIC);
	base_put32(at + 4, (r->open ? RECORD_OPEN : 0) | (r->flow ? RECORD_FLOW : 0));
	base_put32(at + 8, r->nid);
	base_put32(at + 12, r->longest);
	base_put64(at + 16, r->instance);
	base_put64(at + 24, 0);
}

bool dp_wire_record(const void *from, size_t length, struct dp_record *r)
{
	const uint8_t *at = from;
	struct dp_record got;
	uint32_t flags;

	if (length != DP_RECORD_BYTES || base_get32(at) != RECORD_MAGIC || base_get64(at + 24))
		return false;
	flags = base_get32(at + 4);
	got.open = flags & RECORD_OPEN;
	got.flow = flags & RECORD_FLOW;
	got.nid = base_get32(at + 8);
	got.longest = base_get32(at + 12);
	got.instance = base_get64(at + 16);
	if (flags & ~(uint32_t)(RECORD_OPEN | RECORD_FLOW) || got.nid >= DP_NIDS)
		return false;
	if (got.open && (!got.instance || !got.longest || got.longest > DP_MAX_MESSAGE))
		return false;
	if (!got.open && (got.flow || got.instance || got.longest))
		return false;
	*r = got;
	return true;
}

/* ---- flow control ---------------------------------------------------------------------------- */

uint64_t dp_wire_put_total(struct dp_total t)
{
	return t.units << DP_MESSAGES_BITS | (t.messages & MESSAGES_MASK);
}

struct dp_total dp_wire_total(uint64_t word)
{
	return (struct dp_total){ word >> DP_MESSAGES_BITS, (uint32_t)word & MESSAGES_MASK };
}

struct dp_total dp_total_minus(struct dp_total a, struct dp_total b)
{
	return (struct dp_total){ (a.units - b.units) & UNITS_MASK,
				  (a.messages - b.messages) & MESSAGES_MASK };
}

struct dp_total dp_total_plus(struct dp_total a, struct dp_total b)
{
	return (struct dp_total){ (a.units + b.units) & UNITS_MASK,
				  (a.messages + b.messages) & MESSAGES_MASK };
}

bool dp_wire_share(uint64_t word, struct dp_total spent, struct dp_total *share)
{
	struct dp_total left = dp_total_minus(dp_wire_total(word), spent);

	if (left.units > SHARE_MOST / DP_ALIGN || left.messages > MESSAGES_MASK / 2)
		return false;
	*share = left;
	return true;
}

uint64_t dp_wire_control_bits(const struct dp_control *c)
{
	return (uint64_t)c->kind << 60 | (uint64_t)(c->target & DP_TARGET_MASK) << 40 |
	       (uint64_t)c->to << 16 | c->word;
}

uint64_t dp_wire_control_data(const struct dp_control *c)
{
	if (c->kind == DP_CONTROL_ASK)
		return (uint64_t)c->nid << 48 | (uint64_t)c->dpid << 24 |
		       (uint64_t)(c->need & DP_NEED_MASK) << 10 | (c->sender & DP_ASKER_MASK);
	return c->kind == DP_CONTROL_BACK ? dp_wire_put_total(c->total) : 0;
}

bool dp_wire_control(uint64_t bits, uint64_t data, uint32_t nodes, struct dp_control *c)
{
	struct dp_control got = {
		.kind = (enum dp_control_kind)(bits >> 60),
		.target = (uint32_t)(bits >> 40) & DP_TARGET_MASK,
		.to = (uint32_t)(bits >> 16) & DP_DPID_MASK,
		.word = (uint32_t)bits & (DP_WORDS - 1),
	};

	if (got.kind >= DP_CONTROL_KINDS)
		return false;
	if (got.kind == DP_CONTROL_ASK) {
		got.nid = (uint32_t)(data >> 48);
		got.dpid = (uint32_t)(data >> 24) & DP_DPID_MASK;
		got.sender = (uint32_t)data & DP_ASKER_MASK;
		got.need = (uint32_t)(data >> 10) & DP_NEED_MASK;
		if (!got.dpid || got.nid >= nodes || !got.need ||
		    got.need > DP_MAX_MESSAGE / DP_ALIGN)
			return false;
	} else if (got.kind == DP_CONTROL_BACK) {
		got.total = dp_wire_total(data);
	} else if (data) {
		return false;
	}
	if (got.kind == DP_CONTROL_KICK ? got.to || got.target || got.word : !got.to)
		return false;
	*c = got;
	return true;
}
