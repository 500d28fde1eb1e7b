/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A key-value space: texts by key. Each is put once, and never changed or removed.
 */
#ifndef MPIEXEC_KVS_H
#define MPIEXEC_KVS_H

#include <stddef.h>

/* Empty when zeroed. */
struct kvs {
	struct kvs_pair **buckets;
	size_t n_buckets, n_pairs;
};

/* Keys and values are given with their lengths and copied. Returns 0, -EEXIST or -ENOMEM. */
int kvs_put(struct kvs *kvs, const char *key, size_t key_len, const char *value, size_t value_len);

/* Returns the value, terminated, or NULL. */
const char *kvs_get(const struct kvs *kvs, const char *key, size_t key_len);

/* Make it empty. */
void kvs_clear(struct kvs *kvs);

#endif
