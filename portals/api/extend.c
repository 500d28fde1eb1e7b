/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The job calls of portals3_ext.h. Its put is in move.c, its waits are in eq.c.
 */
#include <portals3_ext.h>

#include "portals/job/job.h"
#include "runtime/rt.h"

int PtlJobAbort(int code, const char *message)
{
	return rt_abort(code, message) == 0 ? PTL_OK : PTL_FAIL;
}

int PtlJobFence(void)
{
	return ptl_job_fence() == 0 ? PTL_OK : PTL_FAIL;
}

int PtlJobProgram(int *number)
{
	if (!number)
		return PTL_SEGV;
	return rt_program(number) == 0 ? PTL_OK : PTL_FAIL;
}
