/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The headers of messages over datagrams. The first two bytes are the length of the body, the
 * rest is the header. A decoded header must come out of the encoder as it went in.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nal/net/dgram/dgram_wire.h"
#include "nal/net/net_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct net_msg *m, uint64_t body_len)
{
	uint8_t again[NET_HEADER_MAX];
	struct net_msg second;
	uint32_t len = net_msg_encode(again, m);

	if (len > sizeof(again) || net_msg_decode(again, len, body_len, &second) < 0 ||
	    memcmp(m, &second, sizeof(second)) != 0)
		abort();
	if (m->kind != NET_PUT && m->kind != NET_REPLY && body_len > NET_SWAP_MOST)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t header[NET_HEADER_MAX];
	struct net_msg m;
	uint64_t body_len;

	if (size < 2 || size - 2 > sizeof(header))
		return 0;
	body_len = base_get16(data);
	memcpy(header, data + 2, size - 2);
	if (net_msg_decode(header, size - 2, body_len, &m) == 0)
		check(&m, body_len);
	return 0;
}
