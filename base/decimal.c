/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Decimal numbers in environment variables: see decimal.h.
 */
#define _GNU_SOURCE
#include "base/decimal.h"

#include <locale.h>
#include <stdlib.h>

double base_decimal(const char *text, char **end)
{
	locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	double value;

	if (plain == (locale_t)0)
		return strtod(text, end);
	value = strtod_l(text, end, plain);
	freelocale(plain);
	return value;
}
