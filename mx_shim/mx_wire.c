/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Encoding and decoding of what endpoints tell each other: see mx_wire.h.
 */
#include "mx_shim/mx_wire.h"

#include <string.h>

#define RECORD_MAGIC 0x6d7802u /* changes with the format */

static void put32(unsigned char *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t get32(const unsigned char *from)
{
	return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
	       (uint32_t)from[3] << 24;
}

/* ---- messages -------------------------------------------------------------------------------- */

uint64_t mxs_header_encode(const struct mxs_header *h)
{
	uint64_t data = (uint64_t)h->kind << 62 | (uint64_t)h->eid << 54 | (uint64_t)h->tag << 40 |
			(uint64_t)(h->to_tag & MXS_TAG_LOW) << 30 | (uint64_t)h->number << 16;

	return data | (h->kind == MXS_PULL ? h->length - 1 : h->life);
}

bool mxs_header_decode(uint64_t hdr_data, uint64_t rlength, struct mxs_header *h)
{
	h->kind = (enum mxs_wire_kind)(hdr_data >> 62);
	h->eid = hdr_data >> 54 & (MXS_IDS - 1);
	h->tag = hdr_data >> 40 & MXS_TAG_MASK;
	h->to_tag = hdr_data >> 30 & MXS_TAG_LOW;
	h->number = hdr_data >> 16 & (MXS_NUMBERS - 1);
	h->length = (uint32_t)rlength;
	h->life = 0;
	if (h->kind == MXS_PULL) {
		h->length = (uint32_t)(hdr_data & 0xffff) + 1;
		return rlength == 0;
	}
	h->life = hdr_data & MXS_LIFE_MASK;
	if (h->kind == MXS_DIRECT)
		return rlength > MXS_PULL_MOST && rlength <= UINT32_MAX;
	return rlength <= MXS_EAGER_MOST;
}

/* ---- control --------------------------------------------------------------------------------- */

uint64_t mxs_control_bits(const struct mxs_control *c)
{
	return (uint64_t)c->kind << 60 | (uint64_t)c->to_eid << 36 | (uint64_t)c->to_tag << 22 |
	       (uint64_t)c->eid << 14 | c->tag;
}

uint64_t mxs_control_data(const struct mxs_control *c)
{
	return (uint64_t)c->a << 32 | c->b;
}

uint64_t mxs_control_match(uint32_t to_eid, uint32_t to_tag)
{
	return (uint64_t)to_eid << 36 | (uint64_t)to_tag << 22;
}

uint64_t mxs_control_ignore(void)
{
	return UINT64_C(0xf000000000000000) | UINT64_C(0x3fffff);
}

bool mxs_control_decode(uint64_t match_bits, uint64_t hdr_data, struct mxs_control *c)
{
	uint32_t kind = (uint32_t)(match_bits >> 60);

	if (kind < MXS_CONTROL_CREDIT || kind > MXS_CONTROL_WAKE || match_bits >> 44 & 0xffff)
		return false;
	c->kind = (enum mxs_control_kind)kind;
	c->to_eid = match_bits >> 36 & (MXS_IDS - 1);
	c->to_tag = match_bits >> 22 & MXS_TAG_MASK;
	c->eid = match_bits >> 14 & (MXS_IDS - 1);
	c->tag = match_bits & MXS_TAG_MASK;
	c->a = (uint32_t)(hdr_data >> 32);
	c->b = (uint32_t)hdr_data;
	return c->kind != MXS_CONTROL_DONE || c->a < MXS_NUMBERS;
}

/* ---- records --------------------------------------------------------------------------------- */

void mxs_record_encode(const struct mxs_record *r, unsigned char bytes[MXS_RECORD_BYTES])
{
	memset(bytes, 0, MXS_RECORD_BYTES);
	put32(bytes, RECORD_MAGIC);
	put32(bytes + 4, r->answer);
	put32(bytes + 8, r->eid);
	put32(bytes + 12, r->session);
	put32(bytes + 16, r->portal);
	put32(bytes + 20, r->slots);
	put32(bytes + 24, r->bytes);
}

bool mxs_record_decode(const unsigned char *bytes, size_t size, struct mxs_record *r)
{
	uint32_t answer;

	if (size != MXS_RECORD_BYTES || get32(bytes) != RECORD_MAGIC || get32(bytes + 28))
		return false;
	answer = get32(bytes + 4);
	if (answer < MXS_ANSWER_OK || answer > MXS_ANSWER_CLOSED)
		return false;
	r->answer = (enum mxs_answer)answer;
	r->eid = get32(bytes + 8);
	r->session = get32(bytes + 12);
	r->portal = get32(bytes + 16);
	r->slots = get32(bytes + 20);
	r->bytes = get32(bytes + 24);
	if (r->answer != MXS_ANSWER_OK)
		return true;
	return r->eid < MXS_IDS && r->session && r->portal >= MXS_PT_DATA_FIRST &&
	       r->portal <= MXS_PT_DATA_LAST && r->slots <= 65536 && r->bytes <= 1 << 30;
}
