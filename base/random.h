/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Random bytes that nobody can guess.
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/* Fill `len` bytes. A few bytes never block. False after a warning: the system gives none. */
bool base_random(void *bytes, size_t len);

#endif
