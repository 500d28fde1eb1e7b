/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PMI-2 messages to structs and back. Everything that arrives from the launcher is checked here,
 * and nowhere else.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "runtime/pmi2_wire.h"

#define WORD(name, word) [PMI2_##name] = (word),
static const char *const field_words[PMI2_N_FIELDS] = { PMI2_NUM_TABLE(WORD)
								PMI2_TEXT_TABLE(WORD) };

static const struct cmd {
	const char *word;
	unsigned required;
} cmds[] = {
#define CMD(name, word, required) [PMI2_CMD_##name] = { (word), (required) },
	PMI2_CMD_TABLE(CMD)
};
#define N_CMDS (sizeof(cmds) / sizeof(cmds[0]))

_Static_assert(N_CMDS == PMI2_CMD_UNKNOWN, "the table holds every named command");
_Static_assert(PMI2_N_FIELDS <= 32, "fields are bits of an unsigned");

static bool is_printable(struct pmi1_text text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] < ' ' || text.ptr[i] > '~')
			return false;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int pmi2_length(const char *head)
{
	int i = 0, len = 0, digits = 0;

	while (i < PMI2_HEAD && head[i] == ' ')
		i++;
	for (; i < PMI2_HEAD && is_digit(head[i]); i++, digits++)
		len = len * 10 + head[i] - '0';
	while (i < PMI2_HEAD && head[i] == ' ')
		i++;
	return digits && i == PMI2_HEAD && len <= PMI2_MESSAGE_MAX - PMI2_HEAD ? len : -EPROTO;
}

/* Decimal int with an optional minus sign, nothing before or after. */
static bool parse_pmi2_num(struct pmi1_text text, int *num)
{
	size_t i = text.len && text.ptr[0] == '-';
	const bool minus = i;
	long value = 0;

	if (i == text.len)
		return false;
	for (; i < text.len; i++) {
		if (!is_digit(text.ptr[i]))
			return false;
		value = value * 10 + (text.ptr[i] - '0');
		if (value > INT_MAX)
			return false;
	}
	*num = (int)(minus ? -value : value);
	return true;
}

/* The length up to the ";" that ends a value; a doubled one belongs to it. SIZE_MAX: none does. */
static size_t value_length(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] != ';')
			continue;
		if (i + 1 == len || text[i + 1] != ';')
			return i;
		i++;
	}
	return (size_t)-1;
}

/* Split off the next "name=value;". Returns 1, 0 at the end of the message, or -EPROTO. */
static int next_field(struct pmi1_text *rest, struct pmi1_text *name, struct pmi1_text *value)
{
	const char *equals = rest->len ? memchr(rest->ptr, '=', rest->len) : NULL;
	size_t len;

	if (!rest->len)
		return 0;
	if (!equals || equals == rest->ptr)
		return -EPROTO;
	*name = (struct pmi1_text){ rest->ptr, (size_t)(equals - rest->ptr) };
	rest->len -= name->len + 1;
	rest->ptr = equals + 1;
	len = value_length(rest->ptr, rest->len);
	if (len == (size_t)-1 || memchr(name->ptr, ';', name->len))
		return -EPROTO;
	*value = (struct pmi1_text){ rest->ptr, len };
	rest->ptr += len + 1;
	rest->len -= len + 1;
	return is_printable(*name) && is_printable(*value) ? 1 : -EPROTO;
}

static int store_field(struct pmi2_msg *msg, struct pmi1_text name, struct pmi1_text value)
{
	unsigned field = 0;

	while (field < PMI2_N_FIELDS && !pmi1_text_is(name, field_words[field]))
		field++;
	if (field == PMI2_N_FIELDS)
		return 0;
	if (msg->present & PMI2_HAS(field))
		return -EPROTO;
	if (field < PMI2_N_NUMS && !parse_pmi2_num(value, &msg->num[field]))
		return -EPROTO;
	if ((field == PMI2_KEY || field == PMI2_JOBID) && !value.len)
		return -EPROTO;
	if (field >= PMI2_N_NUMS)
		msg->text[field] = value;
	msg->present |= PMI2_HAS(field);
	return 0;
}

static enum pmi2_cmd command_of(struct pmi1_text name)
{
	unsigned cmd = 0;

	while (cmd < N_CMDS && !pmi1_text_is(name, cmds[cmd].word))
		cmd++;
	return (enum pmi2_cmd)cmd;
}

int pmi2_decode(const char *body, size_t len, struct pmi2_msg *out)
{
	struct pmi2_msg msg = { .present = 0 };
	struct pmi1_text rest = { body, len };
	struct pmi1_text name, value;
	int found;

	if (len > PMI2_MESSAGE_MAX || next_field(&rest, &name, &value) != 1 ||
	    !pmi1_text_is(name, "cmd") || !value.len)
		return -EPROTO;
	msg.cmd = command_of(value);
	while ((found = next_field(&rest, &name, &value)) == 1)
		if (store_field(&msg, name, value))
			return -EPROTO;
	if (found < 0)
		return found;
	if (msg.cmd < N_CMDS && (msg.present & cmds[msg.cmd].required) != cmds[msg.cmd].required)
		return -EPROTO;
	*out = msg;
	return 0;
}

void pmi2_begin(struct pmi2_msg *msg, enum pmi2_cmd cmd)
{
	*msg = (struct pmi2_msg){ .cmd = cmd };
}

void pmi2_set_num(struct pmi2_msg *msg, enum pmi2_field field, int num)
{
	msg->num[field] = num;
	msg->present |= PMI2_HAS(field);
}

void pmi2_set_text(struct pmi2_msg *msg, enum pmi2_field field, const char *text)
{
	msg->text[field] = (struct pmi1_text){ text, strlen(text) };
	msg->present |= PMI2_HAS(field);
}

struct writer {
	char *buf;
	size_t size, len;
	bool full;
};

static void append_bytes(struct writer *w, const char *bytes, size_t len)
{
	if (len > w->size - w->len) {
		w->full = true;
		return;
	}
	memcpy(w->buf + w->len, bytes, len);
	w->len += len;
}

static void append_pair(struct writer *w, const char *name, struct pmi1_text value)
{
	append_bytes(w, name, strlen(name));
	append_bytes(w, "=", 1);
	append_bytes(w, value.ptr, value.len);
	append_bytes(w, ";", 1);
}

static int append_field(struct writer *w, const struct pmi2_msg *msg, unsigned field)
{
	struct pmi1_text text = msg->text[field];
	char num[16];

	if (field < PMI2_N_NUMS) {
		text.ptr = num;
		text.len = (size_t)snprintf(num, sizeof(num), "%d", msg->num[field]);
	}
	if (!is_printable(text) || (text.len && memchr(text.ptr, ';', text.len)))
		return -EINVAL;
	append_pair(w, field_words[field], text);
	return 0;
}

int pmi2_encode(const struct pmi2_msg *msg, char *buf, size_t size)
{
	struct writer w = { .buf = buf, .size = size };
	char head[16];

	if (msg->cmd >= N_CMDS ||
	    (msg->present & cmds[msg->cmd].required) != cmds[msg->cmd].required)
		return -EINVAL;
	append_bytes(&w, "      ", PMI2_HEAD);
	append_pair(&w, "cmd",
		    (struct pmi1_text){ cmds[msg->cmd].word, strlen(cmds[msg->cmd].word) });
	for (unsigned field = 0; field < PMI2_N_FIELDS; field++)
		if ((msg->present & PMI2_HAS(field)) && append_field(&w, msg, field))
			return -EINVAL;
	if (w.full || w.len > PMI2_MESSAGE_MAX)
		return -EMSGSIZE;
	snprintf(head, sizeof(head), "%6zu", w.len - PMI2_HEAD);
	memcpy(buf, head, PMI2_HEAD);
	return (int)w.len;
}
