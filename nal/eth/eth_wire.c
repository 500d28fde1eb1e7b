/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See eth_wire.h.
 */
#include "nal/eth/eth_wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

/* Not a group address: that of one host, or zeros (as on the loopback interface). */
static bool unicast(const uint8_t *mac)
{
	return !(mac[0] & 1);
}

int eth_frame_decode(const void *frame, size_t len, struct eth_frame *f)
{
	const struct eth_wire_frame *w = frame;

	if (len < sizeof(*w) || w->version != ETH_VERSION || w->zero || !unicast(w->source))
		return -EPROTO;
	f->length = base_get16(w->length);
	if (!f->length || f->length > len - sizeof(*w))
		return -EPROTO;
	memcpy(f->destination, w->destination, sizeof(f->destination));
	memcpy(f->source, w->source, sizeof(f->source));
	f->type = (uint16_t)(w->type[0] << 8 | w->type[1]);
	f->to = base_get32(w->to);
	f->from = base_get32(w->from);
	f->packet = (const uint8_t *)frame + sizeof(*w);
	return 0;
}

void eth_frame_encode(struct eth_wire_frame *w, const struct eth_frame *f)
{
	memcpy(w->destination, f->destination, sizeof(w->destination));
	memcpy(w->source, f->source, sizeof(w->source));
	w->type[0] = (uint8_t)(f->type >> 8);
	w->type[1] = (uint8_t)f->type;
	w->version = ETH_VERSION;
	w->zero = 0;
	base_put16(w->length, f->length);
	base_put32(w->to, f->to);
	base_put32(w->from, f->from);
}

/* Read at most `most` hexadecimal digits. Returns how many there were. */
static size_t number(const char *text, const char *end, size_t most, uint32_t *value)
{
	size_t n = 0;

	*value = 0;
	while (n < most && text + n < end && base_hex_digit(text[n]) >= 0)
		*value = *value << 4 | (uint32_t)base_hex_digit(text[n++]);
	return n;
}

int eth_card_decode(const char *text, size_t len, struct eth_card *c)
{
	const char *end = text + len;
	uint32_t value;
	size_t n;

	for (int i = 0; i < ETH_MAC_BYTES; i++) {
		if (number(text, end, 2, &value) != 2)
			return -EPROTO;
		c->mac[i] = (uint8_t)value;
		text += 2;
		if (text == end || *text++ != (i + 1 < ETH_MAC_BYTES ? ':' : '/'))
			return -EPROTO;
	}
	n = number(text, end, 4, &value);
	if (!n || text + n == end || text[n] != '/')
		return -EPROTO;
	c->type = (uint16_t)value;
	text += n + 1;
	n = number(text, end, 8, &c->endpoint);
	return n && text + n == end && c->endpoint && unicast(c->mac) ? 0 : -EPROTO;
}

void eth_card_encode(const struct eth_card *c, char *text, size_t len)
{
	const uint8_t *m = c->mac;

	snprintf(text, len, "%02x:%02x:%02x:%02x:%02x:%02x/%04x/%x", m[0], m[1], m[2], m[3], m[4],
		 m[5], c->type, c->endpoint);
}
