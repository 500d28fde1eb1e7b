/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Proofs that a process has the job's secret: BLAKE2b tags with a key derived from it. They are
 * made only a few times for each connection, so their cost does not matter.
 */
#include <sodium.h>
#include <string.h>

#include "base/bytes.h"
#include "nal/verbs/verbs_wire.h"

static_assert(VERBS_TAG_BYTES == crypto_generichash_BYTES_MIN, "the tag");
static_assert(sizeof(struct verbs_key) == crypto_generichash_KEYBYTES, "the key");

void verbs_key_make(struct verbs_key *k, const void *secret, size_t len)
{
	static const char name[] = "Postern verbs connections, version 1";
	crypto_generichash_state st;

	crypto_generichash_init(&st, NULL, 0, sizeof(k->bytes));
	crypto_generichash_update(&st, (const unsigned char *)name, sizeof(name));
	crypto_generichash_update(&st, secret, len);
	crypto_generichash_final(&st, k->bytes, sizeof(k->bytes));
}

static void tag_of_call(const struct verbs_key *k, const struct verbs_wire_call *call,
			uint8_t tag[VERBS_TAG_BYTES])
{
	crypto_generichash(tag, VERBS_TAG_BYTES, (const unsigned char *)call,
			   offsetof(struct verbs_wire_call, tag), k->bytes, sizeof(k->bytes));
}

static void tag_of_word(const struct verbs_key *k, const struct verbs_wire_call *call,
			uint64_t number, const struct verbs_wire_word *word,
			uint8_t tag[VERBS_TAG_BYTES])
{
	crypto_generichash_state st;
	uint8_t n[8];

	base_put64(n, number);
	crypto_generichash_init(&st, k->bytes, sizeof(k->bytes), VERBS_TAG_BYTES);
	crypto_generichash_update(&st, (const unsigned char *)call, sizeof(*call));
	crypto_generichash_update(&st, (const unsigned char *)word,
				  offsetof(struct verbs_wire_word, number));
	crypto_generichash_update(&st, n, sizeof(n));
	crypto_generichash_final(&st, tag, VERBS_TAG_BYTES);
}

void verbs_seal_call(const struct verbs_key *k, struct verbs_wire_call *call)
{
	tag_of_call(k, call, call->tag);
}

void verbs_seal_word(const struct verbs_key *k, const struct verbs_wire_call *call, uint64_t number,
		     struct verbs_wire_word *word)
{
	tag_of_word(k, call, number, word, word->tag);
}

bool verbs_check_call(const struct verbs_key *k, const struct verbs_wire_call *call)
{
	uint8_t tag[VERBS_TAG_BYTES];

	tag_of_call(k, call, tag);
	return sodium_memcmp(tag, call->tag, sizeof(tag)) == 0;
}

bool verbs_check_word(const struct verbs_key *k, const struct verbs_wire_call *call,
		      uint64_t number, const struct verbs_wire_word *word)
{
	uint8_t tag[VERBS_TAG_BYTES];

	tag_of_word(k, call, number, word, tag);
	return sodium_memcmp(tag, word->tag, sizeof(tag)) == 0;
}
