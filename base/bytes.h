/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Bytes of packets and cards: little-endian numbers that need not be aligned, hexadecimal digits,
 * bytes that must be 0.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint64_t base_get64(const void *from)
{
	const uint8_t *b = from;

	return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
	       (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
	       (uint64_t)b[7] << 56;
}

static inline uint32_t base_get32(const void *from)
{
	const uint8_t *b = from;

	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint16_t base_get16(const void *from)
{
	const uint8_t *b = from;

	return (uint16_t)(b[0] | b[1] << 8);
}

static inline void base_put64(void *to, uint64_t v)
{
	uint8_t *b = to;

	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)(v >> 8 * i);
}

static inline void base_put32(void *to, uint32_t v)
{
	uint8_t *b = to;

	for (int i = 0; i < 4; i++)
		b[i] = (uint8_t)(v >> 8 * i);
}

static inline void base_put16(void *to, uint32_t v)
{
	uint8_t *b = to;

	b[0] = (uint8_t)v;
	b[1] = (uint8_t)(v >> 8);
}

/* Are all of these bytes 0? */
static inline bool base_all_zero(const void *bytes, size_t len)
{
	const uint8_t *b = bytes;
	uint8_t any = 0;

	for (size_t i = 0; i < len; i++)
		any |= b[i];
	return !any;
}

/* Value of a hexadecimal digit in small letters; -1: it is none. */
static inline int base_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
