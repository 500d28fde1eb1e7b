/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Decimal numbers in environment variables.
 */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

/* As strtod(3), but in the C locale: the decimal point is always a point. */
double base_decimal(const char *text, char **end);

#endif
