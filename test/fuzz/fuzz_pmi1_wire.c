/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Feeds the PMI-1 decoder and the value codec. A decoded value must lie within the line, and must
 * come out the same after it was written and read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/pmi1_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
	if (!truth)
		abort();
}

static bool same_text(struct pmi1_text a, struct pmi1_text b)
{
	return a.len == b.len && !memcmp(a.ptr, b.ptr, a.len);
}

static void check_texts(const struct pmi1_msg *msg, const char *line, size_t size)
{
	require(msg->name.ptr >= line && msg->name.ptr + msg->name.len <= line + size);
	for (unsigned field = PMI1_N_NUMS; field < PMI1_N_FIELDS; field++) {
		struct pmi1_text text = msg->text[field];

		if (!pmi1_has(msg, field))
			continue;
		require(text.ptr >= line && text.ptr + text.len <= line + size);
		require(!memchr(text.ptr, ' ', text.len) && !memchr(text.ptr, '\n', text.len));
	}
}

static void check_again(const struct pmi1_msg *msg)
{
	static char line[PMI1_LINE_MAX];
	struct pmi1_msg again;
	int n = pmi1_encode(msg, line, sizeof(line));

	if (msg->cmd >= PMI1_CMD_MULTI) {
		require(n < 0);
		return;
	}
	require(n > 0 && line[n - 1] == '\n');
	require(!pmi1_decode(line, (size_t)n, &again));
	require(again.cmd == msg->cmd && again.present == msg->present);
	for (unsigned field = 0; field < PMI1_N_FIELDS; field++) {
		if (!pmi1_has(msg, field))
			continue;
		if (field < PMI1_N_NUMS)
			require(again.num[field] == msg->num[field]);
		else
			require(same_text(again.text[field], msg->text[field]));
	}
}

static void check_codec(const char *bytes, size_t size)
{
	char *text = malloc(size * 3 + 1);
	char *back = malloc(size + 1);
	int n;

	require(text && back);
	n = pmi1_escape(bytes, size, text, size * 3);
	require(n >= 0);
	require(pmi1_unescape(text, (size_t)n, back, size) == (int)size);
	require(!memcmp(bytes, back, size));
	n = pmi1_unescape(bytes, size, back, size);
	if (n >= 0) /* a second reading of the input: as something escaped already */
		require(pmi1_escape(back, (size_t)n, text, size * 3) <= (int)size * 3);
	free(text);
	free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *line = (const char *)data;
	struct pmi1_msg msg;

	if (!pmi1_decode(line, size, &msg)) {
		check_texts(&msg, line, size);
		check_again(&msg);
	}
	check_codec(line, size);
	return 0;
}
