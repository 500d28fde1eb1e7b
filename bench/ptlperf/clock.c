/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Choice and calibration of the benchmark timer.
 */
#include "clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

int perf_clock_is_tsc;
static double ns_per_tick = 1.0;

/* CPUID 8000_0007h EDX bit 8: the counter runs at one rate in every power state. */
static int tsc_is_invariant(void)
{
#if defined(__x86_64__)
	unsigned int eax, ebx, ecx, edx;

	if (__get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx))
		return (edx >> 8) & 1;
#endif
	return 0;
}

void perf_clock_init(void)
{
	uint64_t os_start, os_end, tick_start, tick_end;

	if (!tsc_is_invariant())
		return;
	perf_clock_is_tsc = 1;
	os_start = perf_clock_os();
	tick_start = perf_now();
	do {
		os_end = perf_clock_os();
		tick_end = perf_now();
	} while (os_end - os_start < 20000000u);
	ns_per_tick = (double)(os_end - os_start) / (double)(tick_end - tick_start);
}

double perf_ns(uint64_t ticks)
{
	return (double)ticks * ns_per_tick;
}

uint64_t perf_ticks(double ns)
{
	return (uint64_t)(ns / ns_per_tick);
}

double perf_clock_cost(void)
{
	enum { READS = 10000 };
	uint64_t start = perf_now(), last = start;

	for (int i = 0; i < READS; i++)
		last = perf_now();
	return perf_ns(last - start) / READS;
}
