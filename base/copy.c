/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Questions about copies that the processor is asked once, and the copy by its widest vectors.
 */
#include "base/copy.h"

#if defined(__x86_64__)
#include <cpuid.h>

#define FSRM (1u << 4)

bool base_short_rep, base_wide;

static void __attribute__((constructor)) ask_processor(void)
{
	unsigned int a, b, c, d;

	base_short_rep = __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & FSRM;
	__builtin_cpu_init();
	/* the first processors with such vectors lack these instructions, and are slower for a
	 * while after using the vectors */
	base_wide = __builtin_cpu_supports("avx512vbmi2");
}

#define STEP 256 /* bytes: four vectors */

typedef char vector __attribute__((vector_size(64), aligned(1), may_alias));

static inline __attribute__((target("avx512f"))) void copy_step(char *to, const char *from)
{
	const vector *f = (const vector *)(const void *)from;
	vector *t = (vector *)(void *)to;
	vector v0 = f[0], v1 = f[1], v2 = f[2], v3 = f[3];

	t[0] = v0;
	t[1] = v1;
	t[2] = v2;
	t[3] = v3;
}

__attribute__((target("avx512f"))) void base_copy_wide(void *to, const void *from, uint64_t len)
{
	const char *f = from;
	char *t = to;

	for (uint64_t at = 0; at < len - STEP; at += STEP)
		copy_step(t + at, f + at);
	copy_step(t + len - STEP, f + len - STEP);
}
#endif
