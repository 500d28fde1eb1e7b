/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Cards of the libfabric NAL. An accepted card must be written as it was read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nal/ofi/ofi_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char provider[OFI_PROVIDER_MAX], again[OFI_PROVIDER_MAX + 2 * RDMA_ADDRESS_MAX + 2];
	struct ofi_addr addr;

	if (size >= sizeof(again) || !ofi_card_parse((const char *)data, size, provider, &addr))
		return 0;
	if (!ofi_card_format(again, sizeof(again), provider, &addr) || strlen(again) != size ||
	    memcmp(again, data, size) != 0)
		abort();
	return 0;
}
