/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A hash table with chains that doubles when it is full. It lives as long as mpiexec.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mpiexec/kvs.h"

struct pair {
	struct pair *next;
	uint64_t hash;
	size_t key_len;
	char text[]; /* key, value, terminator */
};

static struct pair **buckets;
static size_t n_buckets, n_pairs;

static uint64_t hash_key(const char *key, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)key[i]) * 0x100000001b3;
	return hash;
}

static int grow(void)
{
	size_t size = n_buckets ? n_buckets * 2 : 256;
	struct pair **more = calloc(size, sizeof(struct pair *));

	if (!more)
		return -ENOMEM;
	for (size_t i = 0; i < n_buckets; i++) {
		while (buckets[i]) {
			struct pair *pair = buckets[i];

			buckets[i] = pair->next;
			pair->next = more[pair->hash % size];
			more[pair->hash % size] = pair;
		}
	}
	free(buckets);
	buckets = more;
	n_buckets = size;
	return 0;
}

static struct pair *find(const char *key, size_t len, uint64_t hash)
{
	struct pair *pair = n_buckets ? buckets[hash % n_buckets] : NULL;

	while (pair && (pair->hash != hash || pair->key_len != len || memcmp(pair->text, key, len)))
		pair = pair->next;
	return pair;
}

int kvs_put(const char *key, size_t key_len, const char *value, size_t value_len)
{
	uint64_t hash = hash_key(key, key_len);
	struct pair *pair;

	if (find(key, key_len, hash))
		return -EEXIST;
	if (n_pairs == n_buckets && grow())
		return -ENOMEM;
	pair = malloc(sizeof(*pair) + key_len + value_len + 1);
	if (!pair)
		return -ENOMEM;
	pair->hash = hash;
	pair->key_len = key_len;
	memcpy(pair->text, key, key_len);
	memcpy(pair->text + key_len, value, value_len);
	pair->text[key_len + value_len] = '\0';
	pair->next = buckets[hash % n_buckets];
	buckets[hash % n_buckets] = pair;
	n_pairs++;
	return 0;
}

const char *kvs_get(const char *key, size_t key_len)
{
	const struct pair *pair = find(key, key_len, hash_key(key, key_len));

	return pair ? pair->text + key_len : NULL;
}
