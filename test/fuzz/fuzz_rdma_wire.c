/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets of the machine for fabrics. A decoded packet must come out of the encoder as it went in.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nal/net/rdma/rdma_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void within(const uint8_t *data, size_t size, const void *part, uint64_t len)
{
	if (part && ((const uint8_t *)part < data || len > size ||
		     (const uint8_t *)part + len > data + size))
		abort();
}

/* Those of further messages, which are all that is left. */
static void ends(const uint8_t *data, size_t size, struct rdma_msg m)
{
	uint8_t again[RDMA_OVERS * sizeof(struct rdma_wire_body)];
	uint32_t len = 0;

	if (m.nmore >= RDMA_OVERS)
		abort();
	within(data, size, m.nmore ? m.more : NULL, m.nmore * sizeof(struct rdma_wire_body));
	for (uint32_t i = 0; i < m.nmore; i++) {
		rdma_decode_over(&m, i);
		len += rdma_encode_over(again + len, m.id, m.status, m.length);
	}
	if (len != size || memcmp(again, data, len) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[RDMA_HELLO_MAX];
	struct rdma_msg m;
	uint32_t len;

	if (rdma_decode(data, size, &m) < 0)
		return 0;
	within(data, size, m.header, m.header_len);
	within(data, size, m.body, m.kind == RDMA_BEGIN ? m.here : m.length);
	if (m.kind == RDMA_HELLO || m.kind == RDMA_WELCOME)
		within(data, size, m.link_address, m.link_address_len);
	len = rdma_encode(again, &m);
	if (len > sizeof(again) || len > size)
		abort();
	/* greetings have a tag that is written afterwards */
	if (m.kind == RDMA_HELLO || m.kind == RDMA_WELCOME)
		memcpy(again + NET_TAG_OFFSET, data + NET_TAG_OFFSET, NET_TAG_BYTES);
	if (memcmp(again, data, len) != 0)
		abort();
	if (m.kind == RDMA_OVER)
		ends(data + len, size - len, m);
	return 0;
}
