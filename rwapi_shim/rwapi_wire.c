/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Decoding what peers send: see rwapi_wire.h. Short messages have no form to check; names and
 * offsets of writes are checked by Portals, which matches them.
 */
#include "rwapi_shim/rwapi_wire.h"

static bool credit_is_good(uint64_t value, const struct rw_control_limits *limits)
{
	/* a count never shrinks, and nothing is taken in that was not sent */
	return value >= limits->credit_least && value <= limits->credit_most;
}

static bool sid_is_good(uint64_t value, rwapi_sid_t last)
{
	return value >= 1 && value <= (uint64_t)last;
}

bool rw_control_decode(ptl_match_bits_t bits, ptl_hdr_data_t hdr,
		       const struct rw_control_limits *limits, struct rw_control_in *out)
{
	if (bits & RW_IGNORE_REST)
		return false;
	*out = (struct rw_control_in){ .kind = (enum rw_control)(bits >> 56), .value = hdr };
	switch (out->kind) {
	case RW_CREDIT:
		return credit_is_good(hdr, limits);
	case RW_REFUSED:
		return sid_is_good(hdr, limits->last_sid);
	case RW_DONE:
		return hdr == limits->stage + 1 && hdr <= RW_STAGES;
	case RW_PING: /* has an entry of its own, without events */
	default:
		return false;
	}
}

bool rw_refusal_decode(ptl_match_bits_t bits, ptl_hdr_data_t hdr, rwapi_sid_t *sid)
{
	if (!(hdr & RW_QUIET) || rw_bits_tag(bits) || !(hdr & ~RW_QUIET))
		return false;
	*sid = (rwapi_sid_t)(hdr & ~RW_QUIET);
	return true;
}
