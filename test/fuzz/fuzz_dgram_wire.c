/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The decoders of datagrams, given a datagram: whatever they accept lies within it, adds up, and
 * is encoded again as the bytes that it was.
 */
#include <stdlib.h>
#include <string.h>

#include "nal/net/dgram/dgram_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int truth)
{
	if (!truth)
		abort();
}

/* A frame took the bytes [from, to) of the head. */
static void check_frame(const uint8_t *data, size_t size, const struct dgram_head *h,
			const struct dgram_frame *f, size_t from, size_t to)
{
	uint8_t again[64] = { 0 };
	size_t len;

	expect(to > from && to <= h->head_len);
	if (f->kind == DGRAM_FRAME_PAD)
		return;
	len = dgram_frame_encode(again, f);
	expect(len <= to - from && !memcmp(again, data + from, len));
	switch (f->kind) {
	case DGRAM_FRAME_MSG:
		expect(f->hdr_len <= NET_HEADER_MAX);
		expect(f->bytes == data + from + len);
		expect(len + f->hdr_len + f->body_now == to - from);
		break;
	case DGRAM_FRAME_ACK:
		expect(f->words <= DGRAM_ACK_WORDS && len + 8 * f->words == to - from);
		break;
	case DGRAM_FRAME_DATA:
		expect(to == h->head_len && f->bytes == data + to);
		expect(f->body_now == size - h->head_len);
		break;
	default:
		expect(len == to - from);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dgram_hello hello;
	struct dgram_frame f = { 0 };
	struct dgram_head h;
	uint8_t again[64];
	uint64_t unknown;
	size_t at = sizeof(struct dgram_wire_head), from = at;
	int more;

	expect(dgram_packet_length(data, size) <= size);
	expect(size > sizeof(struct dgram_wire_head) || !dgram_packet_names(data, size));
	if (dgram_head_decode(data, size, &h))
		return 0;
	expect(h.head_len >= at && h.head_len <= size);
	dgram_head_encode(again, &h);
	expect(!memcmp(again, data, NET_TAG_OFFSET));
	if (!dgram_hello_decode(data, size, &hello)) {
		expect(dgram_hello_encode(again, &hello) == size - at);
		expect(!memcmp(again, data + at, size - at));
	}
	dgram_reset_decode(data, size, &unknown);
	if (h.type != DGRAM_FRAMES)
		return 0;
	for (; (more = dgram_frame_decode(data, size, &h, &at, &f)) > 0; from = at)
		check_frame(data, size, &h, &f, from, at);
	/* one that makes sense is as long as it says */
	expect(more || dgram_packet_length(data, size) == size);
	return 0;
}
