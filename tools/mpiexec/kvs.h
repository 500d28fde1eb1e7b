/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A key-value space: texts by key, each put once.
 */
#ifndef MPIEXEC_KVS_H
#define MPIEXEC_KVS_H

#include <stddef.h>

/* Zeroed it is empty. */
struct kvs {
	struct kvs_pair **buckets;
	size_t n_buckets, n_pairs;
};

/* Keys and values are given with their lengths and copied. 0, -EEXIST or -ENOMEM. */
int kvs_put(struct kvs *kvs, const char *key, size_t key_len, const char *value, size_t value_len);

/* The value, terminated, or NULL. */
const char *kvs_get(const struct kvs *kvs, const char *key, size_t key_len);

/* Empties it. */
void kvs_clear(struct kvs *kvs);

#endif
