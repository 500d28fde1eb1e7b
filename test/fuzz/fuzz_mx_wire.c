/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Feeds the decoders of MX. Every decoded value must be within its bounds, and must come
 * out the same after it was encoded and decoded again.
 */
#include <stdlib.h>
#include <string.h>

#include "mx_shim/mx_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
	if (!truth)
		abort();
}

static uint64_t word_at(const uint8_t *data, size_t size, size_t i)
{
	uint64_t word = 0;

	if (size >= 8 * (i + 1))
		memcpy(&word, data + 8 * i, 8);
	return word;
}

static void check_header(uint64_t hdr_data, uint64_t rlength)
{
	struct mxs_header h;

	if (!mxs_header_decode(hdr_data, rlength, &h))
		return;
	require(h.eid < MXS_IDS && h.tag <= MXS_TAG_MASK && h.to_tag <= MXS_TAG_LOW);
	require(h.number < MXS_NUMBERS);
	require(h.kind != MXS_PULL || (h.length && h.length <= MXS_PULL_MOST));
	require(h.kind > MXS_SYNC || h.length <= MXS_EAGER_MOST);
	require(h.kind != MXS_DIRECT || h.length > MXS_PULL_MOST);
	require(mxs_header_encode(&h) == hdr_data);
}

static void check_control(uint64_t bits, uint64_t hdr_data)
{
	struct mxs_control c;

	if (!mxs_control_decode(bits, hdr_data, &c))
		return;
	require(c.eid < MXS_IDS && c.to_eid < MXS_IDS);
	require(c.kind != MXS_CONTROL_DONE || c.a < MXS_NUMBERS);
	require(mxs_control_bits(&c) == bits && mxs_control_data(&c) == hdr_data);
	require(((bits ^ mxs_control_match(c.to_eid, c.to_tag)) & ~mxs_control_ignore()) == 0);
}

static void check_record(const uint8_t *data, size_t size)
{
	unsigned char again[MXS_RECORD_BYTES];
	struct mxs_record r;

	if (!mxs_record_decode(data, size, &r))
		return;
	require(r.answer != MXS_ANSWER_OK || (r.session && r.portal <= MXS_PT_DATA_LAST));
	mxs_record_encode(&r, again);
	require(!memcmp(again, data, sizeof(again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_header(word_at(data, size, 0), word_at(data, size, 1));
	check_control(word_at(data, size, 0), word_at(data, size, 1));
	check_record(data, size);
	return 0;
}
