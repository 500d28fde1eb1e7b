/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ethernet frames and cards of ranks: any bytes are refused, or decoded to what encodes to the
 * same again.
 */
#include <stdlib.h>
#include <string.h>

#include "nal/eth/eth_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void frame(const uint8_t *data, size_t size)
{
	struct eth_wire_frame again;
	struct eth_frame f;

	if (eth_frame_decode(data, size, &f) < 0)
		return;
	check(f.packet == data + sizeof(again) && f.length && f.length <= size - sizeof(again));
	eth_frame_encode(&again, &f);
	check(!memcmp(&again, data, sizeof(again)));
}

static void card(const char *text, size_t len)
{
	struct eth_card c, second;
	char again[64];

	if (eth_card_decode(text, len, &c) < 0)
		return;
	check(c.endpoint && !(c.mac[0] & 1));
	eth_card_encode(&c, again, sizeof(again));
	check(eth_card_decode(again, strlen(again), &second) == 0);
	check(!memcmp(c.mac, second.mac, sizeof(c.mac)) && c.type == second.type &&
	      c.endpoint == second.endpoint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	frame(data, size);
	card((const char *)data, size);
	return 0;
}
