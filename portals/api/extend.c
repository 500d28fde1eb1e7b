/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The job calls of portals3_ext.h. Its put is in move.c, its waits are in eq.c.
 */
#include <errno.h>
#include <portals3_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int PtlJobLeave(void)
{
	return ptl_job_part() == 0 ? PTL_OK : PTL_FAIL;
}

int PtlJobProgram(int *number)
{
	if (!number)
		return PTL_SEGV;
	return rt_program(number) == 0 ? PTL_OK : PTL_FAIL;
}

int PtlJobSpawn(const ptl_command_t *commands, int n, const char *message, char *why,
		ptl_size_t size)
{
	struct rt_command *copy;
	int err;

	if (!commands || n < 1 || !message || !why || !size)
		return PTL_SEGV;
	copy = calloc((size_t)n, sizeof(*copy));
	if (!copy) {
		snprintf(why, size, "out of memory");
		return PTL_FAIL;
	}
	for (int i = 0; i < n; i++)
		copy[i] =
			(struct rt_command){ commands[i].file, commands[i].argv, commands[i].count,
					     commands[i].wdir, commands[i].path, commands[i].host,
					     commands[i].soft };
	err = rt_spawn(copy, n, message, why, size);
	if (err && !*why)
		snprintf(why, size, "%s", strerror(-err));
	free(copy);
	return err ? PTL_FAIL : PTL_OK;
}

int PtlJobMessage(char *text, ptl_size_t size)
{
	if (!text || !size)
		return PTL_SEGV;
	return rt_message(text, size) == 0 ? PTL_OK : PTL_FAIL;
}

int PtlJobUniverse(int *size)
{
	if (!size)
		return PTL_SEGV;
	return rt_universe(size) == 0 ? PTL_OK : PTL_FAIL;
}

static int name_result(int err)
{
	switch (err) {
	case 0:
		return PTL_OK;
	case -EEXIST:
		return PTL_ME_IN_USE;
	case -ENOENT:
		return PTL_HANDLE_INVALID;
	case -E2BIG:
	case -ERANGE:
		return PTL_NO_SPACE;
	default:
		return PTL_FAIL;
	}
}

int PtlNamePublish(const char *name, const char *text)
{
	return name && text ? name_result(rt_publish(name, text)) : PTL_SEGV;
}

int PtlNameLookup(const char *name, char *text, ptl_size_t size)
{
	return name && text && size ? name_result(rt_lookup(name, text, size)) : PTL_SEGV;
}

int PtlNameUnpublish(const char *name)
{
	return name ? name_result(rt_unpublish(name)) : PTL_SEGV;
}
