/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The messages of processes while verbs connects them. The first byte says what the rest is: a
 * call, an answer, a refusal, a confirmation, the text of a card, or an address. An accepted
 * message must come out as it went in.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nal/verbs/verbs_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_address(const struct verbs_address *a)
{
	char text[VERBS_TEXT_MOST];
	struct verbs_address again;
	struct sockaddr_storage s;

	verbs_address_format(a, text, sizeof(text));
	if (!verbs_address_parse(text, strlen(text), &again) ||
	    memcmp(a, &again, sizeof(again)) != 0)
		abort();
	verbs_address_to(a, 0, &s);
	if (!verbs_address_from((const struct sockaddr *)&s, &again) ||
	    memcmp(a, &again, sizeof(again)) != 0)
		abort();
}

static void check_call(const void *bytes, size_t len)
{
	struct verbs_wire_call w;
	struct verbs_call call, again;

	if (!verbs_call_decode(bytes, len, &call))
		return;
	check_address(&call.address);
	verbs_call_encode(&w, &call, 7);
	if (!verbs_call_decode(&w, sizeof(w), &again) || call.id != again.id ||
	    memcmp(&call.address, &again.address, sizeof(again.address)) != 0)
		abort();
}

static void check_word(const void *bytes, size_t len, enum verbs_word kind)
{
	struct verbs_wire_word w;
	enum verbs_refusal why, again;

	if (!verbs_word_decode(bytes, len, kind, &why))
		return;
	verbs_word_encode(&w, kind, why, 7);
	if (!verbs_word_decode(&w, sizeof(w), kind, &again) || why != again ||
	    verbs_word_number(&w) != 7)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct verbs_address a;

	if (!size)
		return 0;
	switch (data[0]) {
	case 0:
		check_call(data + 1, size - 1);
		break;
	case VERBS_ANSWER:
	case VERBS_REFUSAL:
	case VERBS_CONFIRM:
		check_word(data + 1, size - 1, (enum verbs_word)data[0]);
		break;
	case 4:
		if (verbs_address_parse((const char *)data + 1, size - 1, &a))
			check_address(&a);
		break;
	default:
		if (verbs_address_decode(data + 1, size - 1, &a))
			check_address(&a);
	}
	return 0;
}
