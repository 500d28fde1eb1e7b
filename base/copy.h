/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Copies of a few bytes, for which a call costs more than the copy, of some KiB into lines that
 * another core has, and into such that this one has.
 */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* 4 to 16 bytes, as two words that overlap. */
static inline void base_copy_few(void *to, const void *from, uint64_t len)
{
	const char *f = from;
	char *t = to;

	if (len >= 8) {
		uint64_t first, last;

		memcpy(&first, f, 8);
		memcpy(&last, f + len - 8, 8);
		memcpy(t, &first, 8);
		memcpy(t + len - 8, &last, 8);
	} else {
		uint32_t first, last;

		memcpy(&first, f, 4);
		memcpy(&last, f + len - 4, 4);
		memcpy(t, &first, 4);
		memcpy(t + len - 4, &last, 4);
	}
}

static inline bool base_are_few(uint64_t len)
{
	return len - 4 <= 12;
}

#if defined(__x86_64__)
extern bool
	base_short_rep; /* the processor's instruction that copies is fast when it is short, too */
extern bool base_wide;  /* it has vectors as long as a cache line */
/* At least 256 bytes that do not overlap, if it has. */
void base_copy_wide(void *to, const void *from, uint64_t len);
#endif

#define BASE_COPY_SEGMENT 2048

/*
 * Into memory that another core was the last to touch, where somebody waits for it. The
 * processor's own instruction writes such lines without reading them first, which memcpy makes
 * use of from about 4 KiB on. But more than 2 KiB in one go begin slowly, and that is a fifth of
 * the time that 4 KiB take from one core to another near it. What is longer, and what others
 * follow, is faster in one go, above all if the other core is far.
 */
static inline void base_copy_over(void *to, const void *from, uint64_t len)
{
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (len > BASE_COPY_SEGMENT && len <= 2 * BASE_COPY_SEGMENT && base_short_rep) {
		while (len) {
			uint64_t n = len < BASE_COPY_SEGMENT ? len : BASE_COPY_SEGMENT;

			len -= n;
			__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
		}
		return;
	}
#endif
	memcpy(to, from, len);
}

#define BASE_COPY_WIDE_LEAST 2048
#define BASE_COPY_WIDE_MOST  16384

/*
 * As memmove, into memory that this core was the last to touch. From about 4 KiB on memmove uses
 * the processor's own instruction, which begins slowly; while both buffers are in the nearest
 * cache vectors take two thirds of its time. Longer copies, and those into lines that another
 * core has, are slower by vectors.
 */
static inline void base_move_back(void *to, const void *from, uint64_t len)
{
#if defined(__x86_64__)
	if (len >= BASE_COPY_WIDE_LEAST && len <= BASE_COPY_WIDE_MOST && base_wide &&
	    (uintptr_t)to - (uintptr_t)from >= len && (uintptr_t)from - (uintptr_t)to >= len) {
		base_copy_wide(to, from, len);
		return;
	}
#endif
	memmove(to, from, len);
}

#endif
