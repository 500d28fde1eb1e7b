/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Keys and tags. The secret that the processes share yields two keys of SipHash-2-4 with a
 * result of 128 bits, a keyed function made for short inputs. One key is for the head of a
 * packet, the other for the bytes behind it. The tag is computed over the head. If whole
 * packets are protected, the body's tag is appended to the head for this.
 */
#include <sodium.h>
#include <string.h>

#include "base/config.h"
#include "nal/net/net.h"

static_assert(crypto_shorthash_siphashx24_BYTES == NET_TAG_BYTES, "the tag");
static_assert(crypto_verify_16_BYTES == NET_TAG_BYTES, "compared");
static_assert(crypto_shorthash_siphashx24_KEYBYTES == sizeof(((struct net_keys *)0)->head), "key");

#define HEAD_AFTER (NET_TAG_OFFSET + NET_TAG_BYTES)
/* without a body the head is as long as the packet */
#define INPUT_MOST (DGRAM_MTU_MAX + NET_TAG_BYTES)

const char *net_seal_unusable(void)
{
	return sodium_init() < 0 ? "libsodium cannot be used: sodium_init failed" : NULL;
}

void net_keys_make(struct net_keys *k, const void *secret, size_t len)
{
	static const char name[] = "Postern datagrams, version 1";
	unsigned char out[sizeof(k->head) + sizeof(k->body)];
	crypto_generichash_state st;

	crypto_generichash_init(&st, NULL, 0, sizeof(out));
	crypto_generichash_update(&st, (const unsigned char *)name, sizeof(name));
	crypto_generichash_update(&st, secret, len);
	crypto_generichash_final(&st, out, sizeof(out));
	memcpy(k->head, out, sizeof(k->head));
	memcpy(k->body, out + sizeof(k->head), sizeof(k->body));
	sodium_memzero(out, sizeof(out));
	k->full = base_config()->ptl_auth == BASE_AUTH_FULL;
}

/* Buffer for the input, which must be contiguous. One per thread, and used only with the lock
 * of an interface held. */
static unsigned char *gather_secret(void)
{
	static _Thread_local unsigned char bytes[INPUT_MOST];

	return bytes;
}

static void tag_head(const struct net_keys *k, const uint8_t *head, size_t head_len,
		     const uint8_t *body_tag, uint8_t *tag)
{
	unsigned char small[512], *in = head_len <= sizeof(small) ? small : gather_secret();
	size_t len = NET_TAG_OFFSET;

	memcpy(in, head, NET_TAG_OFFSET);
	memcpy(in + len, head + HEAD_AFTER, head_len - HEAD_AFTER);
	len += head_len - HEAD_AFTER;
	if (body_tag) {
		memcpy(in + len, body_tag, NET_TAG_BYTES);
		len += NET_TAG_BYTES;
	}
	crypto_shorthash_siphashx24(tag, in, len, k->head);
}

void net_tag(const struct net_keys *k, const uint8_t *head, size_t head_len,
	     const struct iovec *body, int segments, uint8_t tag[NET_TAG_BYTES])
{
	uint8_t body_tag[NET_TAG_BYTES];
	unsigned char *all = NULL;
	size_t len = 0;

	if (!k->full) {
		tag_head(k, head, head_len, NULL, tag);
		return;
	}
	if (segments == 1) {
		all = body[0].iov_base;
		len = body[0].iov_len;
	} else {
		all = gather_secret();
		for (int i = 0; i < segments && body[i].iov_len <= INPUT_MOST - len; i++) {
			memcpy(all + len, body[i].iov_base, body[i].iov_len);
			len += body[i].iov_len;
		}
	}
	crypto_shorthash_siphashx24(body_tag, all, len, k->body);
	tag_head(k, head, head_len, body_tag, tag);
}

void net_seal(void *user, const uint8_t *head, size_t head_len, const struct iovec *body,
	      int segments, uint8_t tag[NET_TAG_BYTES])
{
	const struct net *n = user;

	net_tag(&n->keys, head, head_len, body, segments, tag);
}

bool net_verify(void *user, const uint8_t *packet, size_t head_len, size_t len)
{
	const struct net *n = user;
	struct iovec body = { (void *)(uintptr_t)(packet + head_len), len - head_len };
	uint8_t tag[NET_TAG_BYTES];

	if (head_len < HEAD_AFTER || head_len > len || len > DGRAM_MTU_MAX)
		return false;
	net_tag(&n->keys, packet, head_len, &body, 1, tag);
	return crypto_verify_16(tag, packet + NET_TAG_OFFSET) == 0;
}
