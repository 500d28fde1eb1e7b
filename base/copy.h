/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Copies of a few bytes, for which a call costs more than the copy.
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

#endif
