/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What the processor is asked once about copies.
 */
#include "base/copy.h"

#if defined(__x86_64__)
#include <cpuid.h>

#define FSRM (1u << 4)

bool base_short_rep;

static void __attribute__((constructor)) ask(void)
{
	unsigned int a, b, c, d;

	base_short_rep = __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & FSRM;
}
#endif
