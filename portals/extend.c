/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What portals3_ext.h adds to Portals 3.3.
 */
#include <errno.h>

#include <portals3_ext.h>

#include "nal/nal.h"
#include "portals/debug.h"
#include "portals/job.h"
#include "runtime/rt.h"

int PtlPutInject(ptl_handle_ni_t ni_handle, const void *data, ptl_size_t length,
		 ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
		 ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	struct ptl_start s = {
		.kind = PTL_REQ_PUT,
		.inject = data ? data : "",
		.md = PTL_NIL,
		.length = length,
		.target = target_id,
		.pt_index = pt_index,
		.ac_index = ac_index,
		.match_bits = match_bits,
		.remote_offset = remote_offset,
		.hdr_data = hdr_data,
	};
	struct ptl_ni *ni;
	int err;

	if (!data && length)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	if (target_id.nid == PTL_NID_ANY || target_id.pid == PTL_PID_ANY) {
		err = PTL_PROCESS_INVALID;
	} else {
		if (ptl_debugs(ni, PTL_DBG_API | PTL_DBG_REQUEST))
			ptl_debug(
				ni,
				"inject of %llu bytes to nid 0x%08x pid %u portal %u bits %016llx",
				(unsigned long long)length, target_id.nid, target_id.pid, pt_index,
				(unsigned long long)match_bits);
		err = ni->nal->send(ni, &s);
		if (err == PTL_PROCESS_INVALID) { /* the first message to it */
			ni->nal->connect(ni, target_id);
			err = ni->nal->send(ni, &s);
		}
	}
	ptl_leave(ni);
	return err;
}

int PtlJobAbort(int code, const char *message)
{
	return rt_abort(code, message) == 0 ? PTL_OK : PTL_FAIL;
}

int PtlJobFence(void)
{
	return ptl_job_fence() == 0 ? PTL_OK : PTL_FAIL;
}
