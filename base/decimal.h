/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Numbers with a point, in variables of the environment.
 */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

/* strtod(3), whatever the program has made of the locale: the point is a point. */
double base_decimal(const char *text, char **end);

#endif
