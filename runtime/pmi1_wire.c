/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PMI-1 lines to structs and back. Everything that arrives from the other end is checked here,
 * and nowhere else.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "runtime/pmi1_wire.h"

#define WORD(name, word) [PMI1_##name] = (word),
static const char *const field_words[PMI1_N_FIELDS] = { PMI1_NUM_TABLE(WORD)
								PMI1_TEXT_TABLE(WORD) };

static const struct cmd {
	const char *word;
	unsigned required;
} cmds[] = {
#define CMD(name, word, required) [PMI1_CMD_##name] = { (word), (required) },
	PMI1_CMD_TABLE(CMD)
};
#define N_CMDS (sizeof(cmds) / sizeof(cmds[0]))

_Static_assert(N_CMDS == PMI1_CMD_MULTI, "the table holds every named command");
_Static_assert(PMI1_N_FIELDS <= 32, "fields are bits of an unsigned");

const char *pmi1_cmd_word(enum pmi1_cmd cmd)
{
	return (unsigned)cmd < N_CMDS ? cmds[cmd].word : "?";
}

static bool printable(struct pmi1_text text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
			return false;
	return true;
}

/* Decimal int with an optional minus sign, nothing before or after. */
static bool parse_pmi_num(struct pmi1_text text, int *num)
{
	size_t i = text.len && text.ptr[0] == '-';
	long value = 0;

	if (i == text.len)
		return false;
	for (bool minus = i; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
		value = value * 10 + (minus ? '0' - text.ptr[i] : text.ptr[i] - '0');
		if (value > INT_MAX || value < INT_MIN)
			return false;
	}
	*num = (int)value;
	return true;
}

/* Split off the next "name=value". Returns 1, 0 at the end of the line, or -EPROTO. */
static int next_pair(struct pmi1_text *rest, struct pmi1_text *name, struct pmi1_text *value)
{
	const char *end, *equals;

	while (rest->len && rest->ptr[0] == ' ') {
		rest->ptr++;
		rest->len--;
	}
	if (!rest->len)
		return 0;
	end = memchr(rest->ptr, ' ', rest->len);
	if (!end)
		end = rest->ptr + rest->len;
	equals = memchr(rest->ptr, '=', (size_t)(end - rest->ptr));
	if (!equals || equals == rest->ptr)
		return -EPROTO;
	*name = (struct pmi1_text){ rest->ptr, (size_t)(equals - rest->ptr) };
	*value = (struct pmi1_text){ equals + 1, (size_t)(end - equals - 1) };
	rest->len -= (size_t)(end - rest->ptr);
	rest->ptr = end;
	return printable(*name) && printable(*value) ? 1 : -EPROTO;
}

static int take_field(struct pmi1_msg *msg, struct pmi1_text name, struct pmi1_text value)
{
	for (unsigned field = 0; field < PMI1_N_FIELDS; field++) {
		if (!pmi1_text_is(name, field_words[field]))
			continue;
		if (msg->present & PMI1_HAS(field))
			return -EPROTO;
		if (field < PMI1_N_NUMS) {
			if (!parse_pmi_num(value, &msg->num[field]))
				return -EPROTO;
		} else {
			if ((field == PMI1_KEY || field == PMI1_KVSNAME) && !value.len)
				return -EPROTO;
			msg->text[field] = value;
		}
		msg->present |= PMI1_HAS(field);
		return 0;
	}
	return 0;
}

static int take_command_name(struct pmi1_msg *msg, struct pmi1_text word, struct pmi1_text name)
{
	if (!name.len)
		return -EPROTO;
	msg->name = name;
	msg->cmd = PMI1_CMD_UNKNOWN;
	if (pmi1_text_is(word, "mcmd")) {
		msg->cmd = PMI1_CMD_MULTI;
		return 0;
	}
	if (!pmi1_text_is(word, "cmd"))
		return -EPROTO;
	for (unsigned cmd = 0; cmd < N_CMDS; cmd++)
		if (pmi1_text_is(name, cmds[cmd].word))
			msg->cmd = cmd;
	return 0;
}

int pmi1_decode(const char *line, size_t len, struct pmi1_msg *out)
{
	struct pmi1_msg msg = { .present = 0 };
	struct pmi1_text rest = { line, len };
	struct pmi1_text name, value;
	int found;

	if (rest.len && rest.ptr[rest.len - 1] == '\n')
		rest.len--;
	if (len > PMI1_LINE_MAX || next_pair(&rest, &name, &value) != 1 ||
	    take_command_name(&msg, name, value))
		return -EPROTO;
	while ((found = next_pair(&rest, &name, &value)) == 1)
		if (take_field(&msg, name, value))
			return -EPROTO;
	if (found < 0)
		return found;
	if (msg.cmd < N_CMDS && (msg.present & cmds[msg.cmd].required) != cmds[msg.cmd].required)
		return -EPROTO;
	*out = msg;
	return 0;
}

void pmi1_begin(struct pmi1_msg *msg, enum pmi1_cmd cmd)
{
	const char *word = pmi1_cmd_word(cmd);

	*msg = (struct pmi1_msg){ .cmd = cmd, .name = { word, strlen(word) } };
}

void pmi1_set_num(struct pmi1_msg *msg, enum pmi1_field field, int num)
{
	msg->num[field] = num;
	msg->present |= PMI1_HAS(field);
}

void pmi1_set_text(struct pmi1_msg *msg, enum pmi1_field field, const char *text)
{
	msg->text[field] = (struct pmi1_text){ text, strlen(text) };
	msg->present |= PMI1_HAS(field);
}

struct writer {
	char *buf;
	size_t size, len;
	bool full;
};

static void write_bytes(struct writer *w, const char *bytes, size_t len)
{
	if (len > w->size - w->len) {
		w->full = true;
		return;
	}
	memcpy(w->buf + w->len, bytes, len);
	w->len += len;
}

static void write_field(struct writer *w, const struct pmi1_msg *msg, unsigned field)
{
	char num[16];

	write_bytes(w, " ", 1);
	write_bytes(w, field_words[field], strlen(field_words[field]));
	write_bytes(w, "=", 1);
	if (field < PMI1_N_NUMS)
		write_bytes(w, num, (size_t)snprintf(num, sizeof(num), "%d", msg->num[field]));
	else
		write_bytes(w, msg->text[field].ptr, msg->text[field].len);
}

int pmi1_encode(const struct pmi1_msg *msg, char *buf, size_t size)
{
	struct writer w = { .buf = buf, .size = size };

	if (msg->cmd >= N_CMDS ||
	    (msg->present & cmds[msg->cmd].required) != cmds[msg->cmd].required)
		return -EINVAL;
	write_bytes(&w, "cmd=", 4);
	write_bytes(&w, cmds[msg->cmd].word, strlen(cmds[msg->cmd].word));
	for (unsigned field = 0; field < PMI1_N_FIELDS; field++) {
		if (!(msg->present & PMI1_HAS(field)))
			continue;
		if (field >= PMI1_N_NUMS && !printable(msg->text[field]))
			return -EINVAL;
		write_field(&w, msg, field);
	}
	write_bytes(&w, "\n", 1);
	return w.full || w.len > PMI1_LINE_MAX ? -EMSGSIZE : (int)w.len;
}

/* Few enough to be safe with every launcher, whatever it does with a value. */
static bool is_plain_char(char c)
{
	return isascii(c) && (isalnum((unsigned char)c) || (c && strchr("_-.:,/+@", c)));
}

int pmi1_escape(const char *in, size_t len, char *out, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	struct writer w = { .buf = out, .size = size };

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)in[i];
		char code[3] = { '~', digits[c >> 4], digits[c & 15] };

		if (is_plain_char(in[i]))
			write_bytes(&w, &in[i], 1);
		else
			write_bytes(&w, code, sizeof(code));
	}
	return w.full || w.len > INT_MAX ? -EMSGSIZE : (int)w.len;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int pmi1_unescape(const char *in, size_t len, char *out, size_t size)
{
	struct writer w = { .buf = out, .size = size };

	for (size_t i = 0; i < len; i++) {
		char c = in[i];

		if (c == '~') {
			int high = i + 1 < len ? hex_digit(in[i + 1]) : -1;
			int low = i + 2 < len ? hex_digit(in[i + 2]) : -1;

			if (high < 0 || low < 0)
				return -EPROTO;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (!is_plain_char(c)) {
			return -EPROTO;
		}
		write_bytes(&w, &c, 1);
	}
	return w.full || w.len > INT_MAX ? -EMSGSIZE : (int)w.len;
}
