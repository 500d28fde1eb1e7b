/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How much memory may be locked, which a device's registered memory is: looked at before messages fail on it.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "nal/rdma/rdma.h"

#define LITTLE                                                                                     \
	(4u << 20) /* with less than four times this messages of usual length come to the limit */

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

void rdma_look_at_lock(const char *who, size_t buffers)
{
	uint64_t limit = rdma_may_lock();

	if (limit / 4 > (buffers > LITTLE ? buffers : LITTLE))
		return;
	base_warn("%s: only %llu KiB of memory may be locked, of which receive buffers take %zu: "
		  "long messages will be slow; " RDMA_RAISE_LOCK,
		  who, (unsigned long long)limit / 1024, buffers / 1024);
}
