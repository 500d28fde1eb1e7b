/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The timer of the benchmarks: the time stamp counter where it runs at a constant rate (one
 * instruction, no call), else clock_gettime. Ticks become nanoseconds only after the measurement.
 */
#ifndef PERF_CLOCK_H
#define PERF_CLOCK_H

#include <sched.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

extern int perf_clock_is_tsc;

static inline uint64_t perf_clock_os(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t perf_now(void)
{
#if defined(__x86_64__)
	if (perf_clock_is_tsc)
		return __rdtsc();
#endif
	return perf_clock_os();
}

/* In a spinning loop: leaves the core's resources to its other hardware thread, and after a while,
 * which no message takes on cores of one's own, the core to the process that is waited for. */
static inline void perf_relax(void)
{
	static __thread unsigned turns;

#if defined(__x86_64__)
	_mm_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
	if (!(++turns % 8192))
		sched_yield();
}

/* Chooses and calibrates the timer; takes 20 ms. Call it once, before anything is timed. */
void perf_clock_init(void);
double perf_ns(uint64_t ticks);
uint64_t perf_ticks(double ns);
/* The cost of reading the timer once, in ns. */
double perf_clock_cost(void);

#endif
