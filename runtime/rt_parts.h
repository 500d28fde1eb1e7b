/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Values of any length and bytes in a PMI launcher's store. A value is stored escaped, in as many
 * parts as the launcher's limit requires: key K holds "N:first part", keys K:1 to K:N-1 the
 * others.
 */
#ifndef RUNTIME_RT_PARTS_H
#define RUNTIME_RT_PARTS_H

#include <stddef.h>

#include "runtime/pmi1_wire.h"

/* The launcher's store: how one part is written and read. */
struct rt_parts {
	void *link;
	int key_max, value_max; /* characters it stores, without a terminator */
	int (*put)(void *link, const char *key, const char *part);
	/* -ENOENT: nobody put it. The text is valid until the next call. */
	int (*get)(void *link, const char *key, struct pmi1_text *part);
};

enum { RT_PARTS_KEY_LEAST = 8, RT_PARTS_VALUE_LEAST = 16 }; /* the least that a store must offer */

/* As rt.h has them. */
int rt_parts_put(const struct rt_parts *parts, const char *key, const char *value);
int rt_parts_get(const struct rt_parts *parts, const char *key, char *value, size_t size);

#endif
