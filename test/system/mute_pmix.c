/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A libpmix whose launcher lets a process join, as rank 1 of the job "job", and knows nothing more:
 * for test_rt.sh, in place of libpmix.so.2. Without the headers of PMIx, which not every build has.
 * With SILENT its launcher never answers.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, NOT_FOUND = -46 }; /* of PMIx */

struct mute_proc {
	char space[256];
	uint32_t rank;
};

int PMIx_Init(struct mute_proc *self, void *info, size_t n_info);
int PMIx_Finalize(const void *info, size_t n_info);
int PMIx_Put(void);
int PMIx_Commit(void);
int PMIx_Fence(void);
int PMIx_Get(void);
int PMIx_Abort(void);
const char *PMIx_Error_string(int status);
const char *PMIx_Get_version(void);

int PMIx_Init(struct mute_proc *self, void *info, size_t n_info)
{
	(void)info;
	(void)n_info;
#ifdef SILENT
	for (;;)
		pause();
#endif
	strcpy(self->space, "job");
	self->rank = 1;
	return OK;
}

int PMIx_Finalize(const void *info, size_t n_info)
{
	(void)info;
	(void)n_info;
	return OK;
}

int PMIx_Put(void)
{
	return NOT_FOUND;
}

int PMIx_Commit(void)
{
	return NOT_FOUND;
}

int PMIx_Fence(void)
{
	return NOT_FOUND;
}

int PMIx_Get(void)
{
	return NOT_FOUND;
}

int PMIx_Abort(void)
{
	return NOT_FOUND;
}

const char *PMIx_Error_string(int status)
{
	return status ? "NOT-FOUND" : "SUCCESS";
}

const char *PMIx_Get_version(void)
{
	return "PMIx 4.0.0, mute";
}
