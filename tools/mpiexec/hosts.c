/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The decoder of lists of machines. An IPv6 address has colons of its own: with a number it stands
 * in brackets, which are no part of its name.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mpiexec/hosts.h"

/* A part of the text, and the line that messages name; 0: it is a list. */
struct word {
	const char *at;
	size_t len;
	int line;
};

static int refuse_word(struct hosts_error *why, const struct word *word, const char *reason)
{
	char where[32] = "";
	char shown[64];
	size_t n = word->len < sizeof(shown) - 1 ? word->len : sizeof(shown) - 1;

	for (size_t i = 0; i < n; i++)
		shown[i] = (char)(word->at[i] >= ' ' && word->at[i] <= '~' ? word->at[i] : '?');
	shown[n] = '\0';
	if (word->line)
		snprintf(where, sizeof(where), "line %d: ", word->line);
	snprintf(why->text, sizeof(why->text), "%s\"%s\" %s", where, shown, reason);
	return -EINVAL;
}

/* A decimal number from 1 to the most slots that a host can have; 0: it is none. */
static int read_slots(const char *at, size_t len)
{
	int n = 0;

	if (!len || len > 6)
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (at[i] < '0' || at[i] > '9')
			return 0;
		n = n * 10 + (at[i] - '0');
	}
	return n <= HOST_SLOTS_MOST ? n : 0;
}

/* Characters of host names, of addresses with a zone (fe80::1%eth0), and of user@host. */
static bool is_name(const char *at, size_t len)
{
	if (!len || len > HOST_NAME_MOST || at[0] == '-')
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = at[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr(".-_:%@", c))))
			return false;
	}
	return true;
}

int hosts_add(struct hosts *hosts, const char *name, size_t len, int slots)
{
	struct host *more;
	char *copy;

	if (hosts->n == HOSTS_MOST)
		return -E2BIG;
	more = realloc(hosts->all, ((size_t)hosts->n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	hosts->all = more;
	copy = strndup(name, len);
	if (!copy)
		return -ENOMEM;
	more[hosts->n++] = (struct host){ copy, slots };
	return 0;
}

static int add_named(struct hosts *hosts, const struct word *name, int slots,
		     struct hosts_error *why)
{
	int err;

	if (!is_name(name->at, name->len))
		return refuse_word(why, name, "is no name of a host");
	err = hosts_add(hosts, name->at, name->len, slots);
	return err == -E2BIG ? refuse_word(why, name, "is one host too many") : err;
}

/* "name", "name:2", "[fe80::1]", "[fe80::1]:2" or "fe80::1". */
static int add_host(struct hosts *hosts, struct word word, struct hosts_error *why)
{
	const char *end = word.at + word.len;
	const char *colon = memchr(word.at, ':', word.len);
	const char *bracket = memchr(word.at, ']', word.len);
	struct word name = word;
	int slots = 0;

	if (word.len && *word.at == '[' && bracket) {
		name.at++;
		name.len = (size_t)(bracket - name.at);
		colon = bracket + 1 < end ? bracket + 1 : NULL;
		if (colon && *colon != ':')
			return refuse_word(why, &word, "is no host");
	} else if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1))) {
		colon = NULL; /* an address without a number */
	} else if (colon) {
		name.len = (size_t)(colon - word.at);
	}
	if (colon) {
		slots = read_slots(colon + 1, (size_t)(end - colon - 1));
		if (!slots)
			return refuse_word(why, &word,
					   "needs a number from 1 to 16384 behind its colon");
	}
	return add_named(hosts, &name, slots, why);
}

int hosts_add_list(struct hosts *hosts, const char *text, size_t len, struct hosts_error *why)
{
	const char *end = text + len;
	int err = 0;

	for (;;) {
		const char *comma = memchr(text, ',', (size_t)(end - text));
		struct word word = { text, (size_t)((comma ? comma : end) - text), 0 };

		err = add_host(hosts, word, why);
		if (err || !comma)
			return err;
		text = comma + 1;
	}
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static const char *skip_blanks_to(const char *at, const char *end)
{
	while (at < end && is_blank(*at))
		at++;
	return at;
}

/* Take the next word off the line at *at; blanks around its equals sign are part of it. */
static bool next_word(const char **at, const char *end, struct word *word)
{
	const char *next = skip_blanks_to(*at, end);

	word->at = next;
	while (next < end && !is_blank(*next))
		next++;
	*at = next;
	next = skip_blanks_to(next, end);
	if (*at > word->at && next < end && (*next == '=' || (*at)[-1] == '=')) {
		next = skip_blanks_to(next + (*next == '='), end);
		while (next < end && !is_blank(*next))
			next++;
		*at = next;
	}
	word->len = (size_t)(*at - word->at);
	return word->len > 0;
}

static bool is_one_of(const char *at, size_t len, const char *const *names)
{
	for (; *names; names++)
		if (strlen(*names) == len && !memcmp(at, *names, len))
			return true;
	return false;
}

/* A word behind the name: how many ranks the host is for, or the most that it may have. */
static int read_attribute(const struct word *word, struct host *host, int *most,
			  struct hosts_error *why)
{
	static const char *const counts[] = { "slots", "count", "cpu", NULL };
	static const char *const bounds[] = { "max_slots", "max-slots", "maxslots", NULL };
	const char *end = word->at + word->len;
	const char *equals = memchr(word->at, '=', word->len);
	size_t len = equals ? (size_t)(equals - word->at) : 0;
	int n;

	while (len && is_blank(word->at[len - 1]))
		len--;
	if (!is_one_of(word->at, len, counts) && !is_one_of(word->at, len, bounds))
		return refuse_word(why, word,
				   "is not understood; write HOST, HOST:N or HOST slots=N");
	equals = skip_blanks_to(equals + 1, end);
	n = read_slots(equals, (size_t)(end - equals));
	if (!n)
		return refuse_word(why, word, "needs a number from 1 to 16384");
	if (is_one_of(word->at, len, counts))
		host->slots = n;
	else
		*most = n;
	return 0;
}

static int add_line(struct hosts *hosts, const char *at, const char *end, int line,
		    struct hosts_error *why)
{
	struct word word = { .line = line };
	struct host *host;
	int most = 0;
	int err;

	if (!next_word(&at, end, &word))
		return 0;
	err = add_host(hosts, word, why);
	if (err)
		return err;
	host = &hosts->all[hosts->n - 1];
	while (!err && next_word(&at, end, &word))
		err = read_attribute(&word, host, &most, why);
	if (most && (!host->slots || host->slots > most))
		host->slots = most;
	return err;
}

int hosts_add_file(struct hosts *hosts, const char *text, size_t len, struct hosts_error *why)
{
	const char *end = text + len;
	int err = 0;

	for (int line = 1; !err && text < end; line++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;
		const char *comment = memchr(text, '#', (size_t)(line_end - text));

		err = add_line(hosts, text, comment ? comment : line_end, line, why);
		text = line_end + 1;
	}
	return err;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int slots_of(const struct host *host)
{
	return host->slots ? host->slots : 1;
}

int hosts_slots(const struct hosts *hosts)
{
	long sum = 0;

	for (int i = 0; i < hosts->n; i++)
		sum += slots_of(&hosts->all[i]);
	return sum > 1 << 30 ? 1 << 30 : (int)sum;
}

int hosts_deal(const struct hosts *hosts, int ranks, struct hosts *dealt)
{
	for (int i = 0; ranks > 0 && hosts->n; i = (i + 1) % hosts->n) {
		const struct host *host = &hosts->all[i];
		int n = slots_of(host) < ranks ? slots_of(host) : ranks;
		struct host *last = dealt->n ? &dealt->all[dealt->n - 1] : NULL;
		int err = 0;

		if (last && !strcmp(last->name, host->name))
			last->slots += n;
		else
			err = hosts_add(dealt, host->name, strlen(host->name), n);
		if (err)
			return err;
		ranks -= n;
	}
	return 0;
}

void hosts_clear(struct hosts *hosts)
{
	for (int i = 0; i < hosts->n; i++)
		free(hosts->all[i].name);
	free(hosts->all);
	*hosts = (struct hosts){ .n = 0 };
}
