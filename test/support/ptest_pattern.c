/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The pattern of bytes that tests send. This file is compiled with optimization and without
 * sanitizers in every build: the callers copy and compare whole blocks, which sanitizers check.
 */
#include "ptest.h"

unsigned char pt_pattern(uint64_t seed, size_t i)
{
	return (unsigned char)(((uint32_t)i + (uint32_t)seed * 0x9e3779b9u) * 2654435761u >> 24);
}

void pt_pattern_block(unsigned char *to, size_t len, uint64_t seed, size_t from)
{
	for (size_t i = 0; i < len; i++)
		to[i] = pt_pattern(seed, from + i);
}
