/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Feeds the PMI-2 decoder. A decoded value must lie within the message, and must come out the
 * same after it was written and read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/pmi2_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
	if (!truth)
		abort();
}

/* False: a text has a ";", which is never written. */
static bool check_texts(const struct pmi2_msg *msg, const char *body, size_t size)
{
	bool plain = true;

	for (unsigned field = PMI2_N_NUMS; field < PMI2_N_FIELDS; field++) {
		struct pmi1_text text = msg->text[field];

		if (!pmi2_has(msg, field))
			continue;
		require(text.ptr >= body && text.ptr + text.len <= body + size);
		require(!memchr(text.ptr, '\n', text.len));
		plain &= !memchr(text.ptr, ';', text.len);
	}
	return plain;
}

static void check_again(const struct pmi2_msg *msg, bool plain)
{
	static char block[PMI2_MESSAGE_MAX];
	struct pmi2_msg again;
	int n = pmi2_encode(msg, block, sizeof(block));

	if (msg->cmd >= PMI2_CMD_UNKNOWN || !plain) {
		require(n < 0);
		return;
	}
	require(n > PMI2_HEAD && pmi2_length(block) == n - PMI2_HEAD);
	require(!pmi2_decode(block + PMI2_HEAD, (size_t)n - PMI2_HEAD, &again));
	require(again.cmd == msg->cmd && again.present == msg->present);
	for (unsigned field = 0; field < PMI2_N_FIELDS; field++) {
		if (!pmi2_has(msg, field))
			continue;
		if (field < PMI2_N_NUMS)
			require(again.num[field] == msg->num[field]);
		else
			require(again.text[field].len == msg->text[field].len &&
				!memcmp(again.text[field].ptr, msg->text[field].ptr,
					msg->text[field].len));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *body = (const char *)data;
	struct pmi2_msg msg;

	if (size >= PMI2_HEAD)
		require(pmi2_length(body) <= PMI2_MESSAGE_MAX - PMI2_HEAD);
	if (size < PMI2_MESSAGE_MAX / 2 && !pmi2_decode(body, size, &msg))
		check_again(&msg, check_texts(&msg, body, size));
	return 0;
}
