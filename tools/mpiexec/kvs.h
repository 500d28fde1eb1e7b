/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The job's key-value space: texts by key, each put once.
 */
#ifndef MPIEXEC_KVS_H
#define MPIEXEC_KVS_H

#include <stddef.h>

/* Keys and values are given with their lengths and copied. 0, -EEXIST or -ENOMEM. */
int kvs_put(const char *key, size_t key_len, const char *value, size_t value_len);

/* The value, terminated, or NULL. */
const char *kvs_get(const char *key, size_t key_len);

#endif
