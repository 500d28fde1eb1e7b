/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The card of a rank: its provider and its endpoint's address, as `provider:hex`. The cards of
 * all NALs are in one line with semicolons between them. So semicolons in the names of layered
 * providers (udp;ofi_rxd) are written as +.
 */
#ifndef OFI_WIRE_H
#define OFI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nal/net/rdma/rdma_link.h"

#define OFI_PROVIDER_MAX 32u

/* An endpoint's address, in its provider's format. */
struct ofi_addr {
	uint8_t bytes[RDMA_ADDRESS_MAX];
	size_t len;
};

/* Parse a card: provider (ended with 0) and address. False: not a card. */
bool ofi_card_parse(const char *card, size_t len, char provider[OFI_PROVIDER_MAX],
		    struct ofi_addr *addr);

/* Write a card. False: it does not fit, and nothing is written. */
bool ofi_card_format(char *text, size_t len, const char *provider, const struct ofi_addr *addr);

#endif
