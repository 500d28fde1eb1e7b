/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How much memory may be locked. A device's registered memory is locked memory. The limit is
 * checked before messages fail on it.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "nal/net/rdma/rdma.h"

#define LITTLE (32u << 20) /* bytes for messages; several megabytes of each may be under way */

static bool may_lock_any(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { .effective = 0 } };

	return syscall(SYS_capget, &h, d) == 0 && d[0].effective & 1u << CAP_IPC_LOCK;
}

uint64_t rdma_may_lock(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_MEMLOCK, &r) != 0 || r.rlim_cur == RLIM_INFINITY || may_lock_any())
		return UINT64_MAX;
	return r.rlim_cur;
}

/* Bytes that are locked for devices already. */
static uint64_t locked(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024;
}

void rdma_warn_of_lock_limit(const char *who)
{
	uint64_t limit = rdma_may_lock(), taken;

	if (limit == UINT64_MAX)
		return;
	taken = locked();
	if (limit < taken + LITTLE)
		base_warn("%s: only %llu KiB of memory may be locked, of which %llu are already: "
			  "long "
			  "messages will be slow; " RDMA_RAISE_LOCK,
			  who, (unsigned long long)limit / 1024, (unsigned long long)taken / 1024);
}
