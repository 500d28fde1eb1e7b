/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Cuts values into parts and joins them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "runtime/rt.h"
#include "runtime/rt_parts.h"

enum { PARTS_MAX = 9999, KEY_SIZE = RT_KEY_MAX + sizeof(":9999"), HEAD = sizeof("9999:") - 1 };

/* Make the key of part `part`. */
static int part_key(const struct rt_parts *parts, const char *key, int part, char *out)
{
	int n = part ? snprintf(out, KEY_SIZE, "%s:%d", key, part)
		     : snprintf(out, KEY_SIZE, "%s", key);

	if (n >= (int)KEY_SIZE || n > parts->key_max) {
		base_warn("the key \"%s\" is longer than the %d characters the launcher stores",
			  key, parts->key_max);
		return -EINVAL;
	}
	return 0;
}

static int put_all(const struct rt_parts *parts, const char *key, const char *text, size_t len)
{
	size_t room = (size_t)parts->value_max - HEAD; /* the same in all parts */
	size_t count = len ? (len + room - 1) / room : 1;
	char *part;
	int err = 0;

	if (count > PARTS_MAX)
		return -E2BIG;
	part = malloc(room + HEAD + 1);
	if (!part)
		return -ENOMEM;
	for (size_t i = 0; i < count && !err; i++) {
		char name[KEY_SIZE];
		size_t n = len < room ? len : room;
		size_t head = i ? 0 : (size_t)sprintf(part, "%zu:", count);

		memcpy(part + head, text, n);
		part[head + n] = '\0';
		text += n;
		len -= n;
		err = part_key(parts, key, (int)i, name);
		if (!err)
			err = parts->put(parts->link, name, part);
	}
	free(part);
	return err;
}

int rt_parts_put(const struct rt_parts *parts, const char *key, const char *value)
{
	size_t len = strlen(value);
	char *text = malloc(len * 3 + 1);
	int n;

	if (!text)
		return -ENOMEM;
	n = pmi1_escape(value, len, text, len * 3 + 1);
	if (n >= 0)
		n = put_all(parts, key, text, (size_t)n);
	free(text);
	return n;
}

static int get_one(const struct rt_parts *parts, const char *key, int part, struct pmi1_text *text)
{
	char name[KEY_SIZE];
	int err = part_key(parts, key, part, name);

	return err ? err : parts->get(parts->link, name, text);
}

/* Remove "N:" from the first part. */
static int split_head(struct pmi1_text *text, int *count)
{
	int n = 0;

	while (text->len && text->ptr[0] >= '0' && text->ptr[0] <= '9' && n <= PARTS_MAX) {
		n = n * 10 + text->ptr[0] - '0';
		text->ptr++;
		text->len--;
	}
	if (!text->len || text->ptr[0] != ':' || n < 1 || n > PARTS_MAX)
		return -EPROTO;
	text->ptr++;
	text->len--;
	*count = n;
	return 0;
}

/* Collect the escaped text of all parts in memory that the caller frees. */
static int get_all(const struct rt_parts *parts, const char *key, char **out, size_t *out_len)
{
	struct pmi1_text text;
	char *all = NULL;
	size_t len = 0;
	int count = 1;
	int err;

	err = get_one(parts, key, 0, &text);
	if (!err)
		err = split_head(&text, &count);
	for (int i = 0; !err; i++) {
		char *more = realloc(all, len + text.len + 1);

		if (!more) {
			err = -ENOMEM;
			break;
		}
		all = more;
		memcpy(all + len, text.ptr, text.len);
		len += text.len;
		if (i + 1 == count)
			break;
		err = get_one(parts, key, i + 1, &text);
	}
	if (err) {
		free(all);
		return err;
	}
	*out = all;
	*out_len = len;
	return 0;
}

int rt_parts_get(const struct rt_parts *parts, const char *key, char *value, size_t size)
{
	char *text, *plain;
	size_t len;
	int n = get_all(parts, key, &text, &len);

	if (n)
		return n;
	plain = malloc(len + 1);
	n = plain ? pmi1_unescape(text, len, plain, len + 1) : -ENOMEM;
	if (n >= 0 && (size_t)n >= size)
		n = -ERANGE;
	if (n >= 0) {
		memcpy(value, plain, (size_t)n);
		value[n] = '\0';
	}
	free(plain);
	free(text);
	return n < 0 ? n : 0;
}
