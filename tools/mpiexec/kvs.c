/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A hash table with chains that doubles when it is full.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mpiexec/kvs.h"

struct kvs_pair {
	struct kvs_pair *next;
	uint64_t hash;
	size_t key_len;
	char text[]; /* key, value, terminator */
};

static uint64_t hash_kvs_key(const char *key, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)key[i]) * 0x100000001b3;
	return hash;
}

static int grow_kvs(struct kvs *kvs)
{
	size_t size = kvs->n_buckets ? kvs->n_buckets * 2 : 256;
	struct kvs_pair **more = calloc(size, sizeof(struct kvs_pair *));

	if (!more)
		return -ENOMEM;
	for (size_t i = 0; i < kvs->n_buckets; i++) {
		while (kvs->buckets[i]) {
			struct kvs_pair *pair = kvs->buckets[i];

			kvs->buckets[i] = pair->next;
			pair->next = more[pair->hash % size];
			more[pair->hash % size] = pair;
		}
	}
	free(kvs->buckets);
	kvs->buckets = more;
	kvs->n_buckets = size;
	return 0;
}

static struct kvs_pair *find_pair_of_key(const struct kvs *kvs, const char *key, size_t len,
					 uint64_t hash)
{
	struct kvs_pair *pair = kvs->n_buckets ? kvs->buckets[hash % kvs->n_buckets] : NULL;

	while (pair && (pair->hash != hash || pair->key_len != len || memcmp(pair->text, key, len)))
		pair = pair->next;
	return pair;
}

int kvs_put(struct kvs *kvs, const char *key, size_t key_len, const char *value, size_t value_len)
{
	uint64_t hash = hash_kvs_key(key, key_len);
	struct kvs_pair *pair;

	if (find_pair_of_key(kvs, key, key_len, hash))
		return -EEXIST;
	if (kvs->n_pairs == kvs->n_buckets && grow_kvs(kvs))
		return -ENOMEM;
	pair = malloc(sizeof(*pair) + key_len + value_len + 1);
	if (!pair)
		return -ENOMEM;
	pair->hash = hash;
	pair->key_len = key_len;
	memcpy(pair->text, key, key_len);
	memcpy(pair->text + key_len, value, value_len);
	pair->text[key_len + value_len] = '\0';
	pair->next = kvs->buckets[hash % kvs->n_buckets];
	kvs->buckets[hash % kvs->n_buckets] = pair;
	kvs->n_pairs++;
	return 0;
}

const char *kvs_get(const struct kvs *kvs, const char *key, size_t key_len)
{
	const struct kvs_pair *pair =
		find_pair_of_key(kvs, key, key_len, hash_kvs_key(key, key_len));

	return pair ? pair->text + key_len : NULL;
}

void kvs_clear(struct kvs *kvs)
{
	for (size_t i = 0; i < kvs->n_buckets; i++) {
		while (kvs->buckets[i]) {
			struct kvs_pair *pair = kvs->buckets[i];

			kvs->buckets[i] = pair->next;
			free(pair);
		}
	}
	free(kvs->buckets);
	*kvs = (struct kvs){ .n_pairs = 0 };
}
