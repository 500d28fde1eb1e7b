/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Messages of peers to RWAPI, with the state of their sender. Any control message, and any write
 * that found no memory, is refused, or gives what the state allows and says it again when it is
 * encoded. Addresses come apart and together again.
 */
#include <stdlib.h>
#include <string.h>

#include "rwapi_shim/rwapi_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint64_t bits, hdr, least, most;
	int64_t last;
	uint32_t stage;
};

static void must_hold(bool holds)
{
	if (!holds)
		abort();
}

static void control(const struct input *in)
{
	const struct rw_control_limits limits = { in->least, in->most, in->last & INT64_MAX,
						  in->stage % 3 };
	struct rw_control_in out;

	if (!rw_control_decode(in->bits, in->hdr, &limits, &out))
		return;
	must_hold(rw_control_bits(out.kind, 0) == in->bits && out.value == in->hdr);
	must_hold(out.kind != RW_CREDIT || (out.value >= in->least && out.value <= in->most));
	must_hold(out.kind != RW_REFUSED ||
		  (out.value >= 1 && out.value <= (uint64_t)limits.last_sid));
	must_hold(out.kind != RW_DONE || (out.value == limits.stage + 1 && out.value <= RW_STAGES));
	must_hold(out.kind != RW_PING);
}

static void refusal(const struct input *in)
{
	rwapi_sid_t sid;

	if (!rw_refusal_decode(in->bits, in->hdr, &sid))
		return;
	must_hold(sid > 0 && in->hdr == (RW_QUIET | (uint64_t)sid));
	must_hold(rw_write_bits(0, (uint32_t)(in->bits & RW_NAME_MASK)) ==
		  (in->bits & ((1ull << 56) - 1)));
}

static void address(const struct input *in)
{
	rwapi_small_t small;

	must_hold(rw_net(rw_net_name(in->bits), rw_net_offset(in->bits)) == in->bits);
	must_hold(rw_net_name(in->bits) <= RW_NAME_MASK);
	must_hold(rw_bits_tag(rw_write_bits(in->stage, rw_net_name(in->bits))) == in->stage);
	rw_small_of(in->bits, in->hdr, &small);
	must_hold(small.word[0] == in->bits && small.word[1] == in->hdr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { 0 };

	memcpy(&in, data, size < sizeof(in) ? size : sizeof(in));
	control(&in);
	refusal(&in);
	address(&in);
	return 0;
}
