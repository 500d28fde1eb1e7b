/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See ofi_wire.h.
 */
#include "nal/ofi/ofi_wire.h"

#include <string.h>

#include "base/bytes.h"

bool ofi_card_parse(const char *card, size_t len, char provider[OFI_PROVIDER_MAX],
		    struct ofi_addr *addr)
{
	const char *colon = memchr(card, ':', len);
	size_t name = colon ? (size_t)(colon - card) : 0, digits;

	if (!name || name >= OFI_PROVIDER_MAX)
		return false;
	digits = len - name - 1;
	if (!digits || digits % 2 || digits / 2 > sizeof(addr->bytes))
		return false;
	for (size_t i = 0; i < digits / 2; i++) {
		int high = base_hex_digit(colon[1 + 2 * i]), low = base_hex_digit(colon[2 + 2 * i]);

		if (high < 0 || low < 0)
			return false;
		addr->bytes[i] = (uint8_t)(high << 4 | low);
	}
	addr->len = digits / 2;
	for (size_t i = 0; i < name; i++) {
		if (card[i] <= ' ' || card[i] > '~' || card[i] == ';')
			return false;
		provider[i] = card[i] == '+' ? ';' : card[i];
	}
	provider[name] = '\0';
	return true;
}

bool ofi_card_format(char *text, size_t len, const char *provider, const struct ofi_addr *addr)
{
	static const char hex[] = "0123456789abcdef";
	size_t name = strlen(provider);

	if (!name || name >= OFI_PROVIDER_MAX || !addr->len || addr->len > sizeof(addr->bytes) ||
	    len < name + 2 + 2 * addr->len)
		return false;
	for (size_t i = 0; i < name; i++)
		*text++ = provider[i] == ';' ? '+' : provider[i];
	*text++ = ':';
	for (size_t i = 0; i < addr->len; i++) {
		*text++ = hex[addr->bytes[i] >> 4];
		*text++ = hex[addr->bytes[i] & 15];
	}
	*text = '\0';
	return true;
}
