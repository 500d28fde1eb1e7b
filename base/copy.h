/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Three kinds of copies: a few bytes, where a call costs more than the copy; some KiB into
 * lines that another core holds; and some KiB into lines that this core holds.
 */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Copy 4 to 16 bytes, as two words that overlap. */
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
/* The processor copies short lengths quickly with its copy instruction, too. */
extern bool base_short_rep;
extern bool base_wide; /* the processor has vectors of a cache line */
/* Copy at least 256 bytes that do not overlap. Requires base_wide. */
void base_copy_wide(void *to, const void *from, uint64_t len);
#endif

#define BASE_COPY_SEGMENT 2048

/*
 * Copy into memory that another core touched last, and where somebody waits for the data. The
 * processor's copy instruction writes such lines without reading them first. memcpy uses it
 * from about 4 KiB on. But more than 2 KiB in one go start slowly, which costs a fifth of the
 * time that 4 KiB take between cores near each other. Longer copies, and copies followed by
 * others, are faster in one go, above all if the other core is far.
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
 * As memmove, into memory that this core touched last. From about 4 KiB on memmove uses the
 * processor's copy instruction, which starts slowly. While both buffers are in the nearest
 * cache, vectors take two thirds of its time. They are slower for longer copies, and into
 * lines that another core holds.
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
