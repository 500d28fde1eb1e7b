/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Feeds the reader of PMI_process_mapping: two bytes of rank, two of size, then the text. The
 * place that it finds must be one among the ranks of a host, and every rank must have one.
 */
#include <stdint.h>
#include <stdlib.h>

#include "runtime/pmi_map_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int rank, ranks, local_rank, local_size, others = 0;
	const char *text = (const char *)data + 4;

	if (size < 4)
		return 0;
	rank = data[0] << 8 | data[1];
	ranks = data[2] << 8 | data[3];
	if (pmi_map_local(text, size - 4, rank, ranks, &local_rank, &local_size))
		return 0;
	if (rank >= ranks || local_rank < 0 || local_rank >= local_size || local_size > ranks)
		abort();
	for (int i = 0; i < ranks && ranks <= 64; i++) {
		int its_rank, its_size;

		if (pmi_map_local(text, size - 4, i, ranks, &its_rank, &its_size))
			abort();
		others += its_rank == local_rank && its_size == local_size;
	}
	if (ranks <= 64 && !others)
		abort();
	return 0;
}
