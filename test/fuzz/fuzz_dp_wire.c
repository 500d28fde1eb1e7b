/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Words and records of peers, as DP decodes them. Any words are refused, or they are within
 * their bounds and are the same again when they are encoded. A record is refused, or names an
 * endpoint as it may be. A word of credit never gives more than a pool can have.
 */
#include <stdlib.h>
#include <string.h>

#include <dp.h>

#include "base/bytes.h"
#include "dp_shim/dp_wire.h"

enum { NODES = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_header(uint64_t bits, uint64_t header, uint64_t length)
{
	struct dp_header h;

	if (!dp_wire_header(bits, header, length, NODES, &h))
		return;
	check(h.to && h.to <= DP_MAX_DPID && h.dpid && h.dpid <= DP_MAX_DPID && h.nid < NODES);
	check(h.padding <= DP_ALIGN && h.padding <= length && length % DP_ALIGN == 0);
	check(h.number <= DP_NUMBER_MASK);
	check(dp_wire_match_bits(&h) == bits && dp_wire_header_data(&h) == header);
}

static void check_control(uint64_t bits, uint64_t word)
{
	struct dp_control c;

	if (!dp_wire_control(bits, word, NODES, &c))
		return;
	check(c.kind < DP_CONTROL_KINDS && c.word < DP_WORDS && c.to <= DP_MAX_DPID);
	check(c.kind == DP_CONTROL_KICK || c.to);
	if (c.kind == DP_CONTROL_ASK)
		check(c.nid < NODES && c.dpid && c.need && c.need <= DP_MAX_MESSAGE / DP_ALIGN);
	check(dp_wire_control_bits(&c) == bits && dp_wire_control_data(&c) == word);
}

static void check_share(uint64_t word, uint64_t spent)
{
	struct dp_total share, s = dp_wire_total(spent);

	check(dp_wire_put_total(dp_wire_total(word)) == word);
	if (!dp_wire_share(word, s, &share))
		return;
	check(share.units * DP_ALIGN <= (uint64_t)1 << 32);
	check(dp_wire_put_total(dp_total_plus(s, share)) == word);
}

static void check_record(const uint8_t *data, size_t size)
{
	uint8_t again[DP_RECORD_BYTES];
	struct dp_record r;

	if (!dp_wire_record(data, size, &r))
		return;
	check(size == DP_RECORD_BYTES && r.nid < DP_NIDS);
	check(!r.open || (r.instance && r.longest && r.longest <= DP_MAX_MESSAGE));
	dp_wire_put_record(again, &r);
	check(!memcmp(again, data, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_record(data, size);
	if (size < 24)
		return 0;
	check_header(base_get64(data), base_get64(data + 8), base_get64(data + 16));
	check_control(base_get64(data), base_get64(data + 8));
	check_share(base_get64(data), base_get64(data + 8));
	return 0;
}
