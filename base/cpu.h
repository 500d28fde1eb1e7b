/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The few functions that depend on the processor. None of them blocks.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdint.h>
#include <time.h>

/* Call in a loop that waits for another core. */
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

/* Identify the calling thread within its process: an address that is not 0 and has its two
 * lowest bits 0. */
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

/* Prefetch a line that will be written soon. */
static inline void base_prefetch_write(const void *line)
{
#if defined(__x86_64__)
	/* For a generic processor the compiler's builtin only prefetches for reading. This
	 * instruction is in all such processors; the oldest ignore it. */
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

/* Milliseconds, a few off, at a fifth of the cost. */
static inline uint64_t base_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

#endif
