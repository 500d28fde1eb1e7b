/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Debug output by subject (PtlNIDebug, PTL_DEBUG): one line on p3_out for each thing that
 * happened. While a subject is off it costs one test of a word.
 */
#ifndef PTL_DEBUG_H
#define PTL_DEBUG_H

#include <stdio.h>

#include "portals/engine/ni.h"

static inline bool ptl_debugs(const struct ptl_ni *ni, unsigned int subject)
{
	return __builtin_expect(atomic_load_explicit(&ni->debug, memory_order_relaxed) & subject,
				0);
}

__attribute__((format(printf, 2, 3))) void ptl_debug(const struct ptl_ni *ni, const char *format,
						     ...);

/* The stream for these lines. */
FILE *ptl_debug_file(void);

#endif
