/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The two things a process takes from a stranger before it trusts it: the hello on the socket, and
 * the header of the region whose memfd came with it.
 */
#include <stdlib.h>
#include <string.h>

#include "nal/shm/shm_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ptl_region r;
	struct shm_hello h;
	struct ptl_view v;

	if (shm_hello_decode(data, size, &h) == 0 &&
	    (h.kind < SHM_HELLO_CONNECT || h.kind > SHM_HELLO_REFUSE))
		abort();
	memset(&r, 0, sizeof(r));
	memcpy(&r, data, size < sizeof(r) ? size : sizeof(r));
	/* whatever it says, a header that passes must lie within what is mapped */
	if (ptl_region_check(&v, &r, sizeof(r)) == 0)
		abort();
	if (ptl_region_check(&v, &r, r.stat.region_size) < 0)
		return 0;
	if (r.far_off + r.far_size > r.stat.region_size || v.size > r.part_off[0])
		abort();
	for (int k = 0; k < PTL_PARTS; k++)
		if (r.part_off[k] + r.part_size[k] > r.far_off)
			abort();
	return 0;
}
