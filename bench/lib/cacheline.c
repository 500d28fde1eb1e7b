/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How far apart two cores are now: prints what a cache line takes from one to the other, in ns. For
 * figures during which nobody can look at it.
 * Usage: cacheline CORE CORE
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ptlperf/line.h"

static int pin(const char *core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)atoi(core), &set);
	if (!sched_setaffinity(0, sizeof(set), &set))
		return 0;
	fprintf(stderr, "cacheline: cannot run on core %s: %m\n", core);
	return -1;
}

int main(int argc, char **argv)
{
	struct perf_line *line = mmap(NULL, sizeof(*line), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t turn = 0;
	pid_t child;

	if (argc != 3 || line == MAP_FAILED) {
		fputs("usage: cacheline CORE CORE\n", stderr);
		return 2;
	}
	perf_clock_init();
	if (pin(argv[1]) || (child = fork()) < 0)
		return 1;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pin(argv[2]))
			_exit(1);
		perf_line_look(line, &turn, 0);
		_exit(0);
	}
	printf("%.1f\n", perf_line_look(line, &turn, 1));
	return waitpid(child, NULL, 0) != child;
}
