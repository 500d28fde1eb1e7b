/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The few things that depend on the processor.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdint.h>
#include <time.h>

/* In a loop that waits for another core. */
static inline void base_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/* Tells the threads of a process apart: an address of which the two lowest bits are 0, and not 0
 * itself. */
static inline uintptr_t base_thread(void)
{
#if defined(__x86_64__)
	uintptr_t self;

	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
#else
	return (uintptr_t)__builtin_thread_pointer();
#endif
}

/* Asks for a line that will be written soon. */
static inline void base_prefetch_write(const void *line)
{
#if defined(__x86_64__)
	/* what the compiler makes of it for any such processor asks for a line to read; this is
	 * in all of them, and does nothing in the oldest */
	__asm__ volatile("prefetchw %0" ::"m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1, 3);
#endif
}

static inline uint64_t base_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Milliseconds, a few off, for a fifth of the price. */
static inline uint64_t base_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

#endif
