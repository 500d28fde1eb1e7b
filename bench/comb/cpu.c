/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Processor time of the worker: of its whole process by getrusage, of the thread that works by
 * that thread's clock, because what getrusage says of one thread is as coarse as the kernel's
 * tick. The clock on the wall does not show what an MPI does in threads of its own on other
 * cores; this does.
 */
#include <sys/resource.h>
#include <time.h>

#include "comb.h"

static double of_process(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return ((double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec) * 1e9 +
	       ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec) * 1e3;
}

static double of_thread(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void comb_cpu_start(struct comb_cpu *c)
{
	*c = (struct comb_cpu){ .process = of_process(), .thread = of_thread() };
}

void comb_cpu_mark(struct comb_cpu *c)
{
	c->mark = of_thread();
}

void comb_cpu_add(struct comb_cpu *c, double *to)
{
	*to += of_thread() - c->mark;
}

double comb_cpu_availability(struct comb_cpu *c)
{
	double process = of_process() - c->process, thread = of_thread() - c->thread;
	double others = process > thread ? process - thread : 0;

	return c->wet > 0 ? 100 * c->dry / (c->wet + others) : 0;
}
