/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See barrier.h.
 */
#define _GNU_SOURCE
#include "base/barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpu.h"

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

bool base_barrier_join(void)
{
	const long all =
		MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED |
		MEMBARRIER_CMD_PRIVATE_EXPEDITED | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
	const long commands = membarrier(MEMBARRIER_CMD_QUERY);

	return commands > 0 && (commands & all) == all &&
	       membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 &&
	       membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

static void wait_until(uint64_t end)
{
	while (base_now_ns() < end)
		base_cpu_relax();
}

void base_barrier_own(uint64_t ns)
{
	const uint64_t end = base_now_ns() + ns;

	if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
		wait_until(end);
}

void base_barrier_all(uint64_t ns)
{
	const uint64_t end = base_now_ns() + ns;

	/* where this is forbidden to us but not to the joined processes, time alone does it */
	membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
	wait_until(end);
}
