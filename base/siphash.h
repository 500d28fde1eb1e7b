/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * SipHash-2-4 with 128 bits of key and of result: a keyed hash, by which two that have the key
 * prove so, and protect what they say.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>

enum { BASE_SIPHASH_BYTES = 16 };

void base_siphash(const unsigned char key[BASE_SIPHASH_BYTES], const void *data, size_t len,
		  unsigned char out[BASE_SIPHASH_BYTES]);

#endif
