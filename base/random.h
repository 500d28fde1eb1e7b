/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Bytes that nobody can guess.
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/* False after a warning: the system gives none. A few bytes are there at once. */
bool base_random(void *bytes, size_t len);

#endif
