/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * For programs that have a PtlPutInject of their own in front of the library's: that one. Needs
 * _GNU_SOURCE.
 */
#ifndef TEST_MPI_PUT_INJECT_H
#define TEST_MPI_PUT_INJECT_H

#include <dlfcn.h>
#include <portals3_ext.h>

static int next_put_inject(ptl_handle_ni_t ni, const void *data, ptl_size_t length,
			   ptl_inject_t when, ptl_process_id_t target, ptl_pt_index_t pt,
			   ptl_ac_index_t ac, ptl_match_bits_t bits, ptl_size_t offset,
			   ptl_hdr_data_t hdr)
{
	static int (*next)(ptl_handle_ni_t, const void *, ptl_size_t, ptl_inject_t,
			   ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t, ptl_match_bits_t,
			   ptl_size_t, ptl_hdr_data_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "PtlPutInject");
	return next(ni, data, length, when, target, pt, ac, bits, offset, hdr);
}

#endif
