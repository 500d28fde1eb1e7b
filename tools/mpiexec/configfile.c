/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Words are separated by blanks. A backslash takes the next character as it is; single and
 * double quotes take the text between them. A backslash at the end of a line continues it on
 * the next line. A line that begins with # is a comment.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mpiexec/configfile.h"

static int read_text(const char *path, char **text)
{
	FILE *file = fopen(path, "re");
	size_t size = 0;
	ssize_t len;
	int err = 0;

	if (!file)
		return -errno;
	*text = NULL;
	errno = 0;
	len = getdelim(text, &size, '\0', file);
	if (ferror(file))
		err = errno ? -errno : -EIO;
	else if (len <= 0)
		err = -ENODATA;
	fclose(file);
	if (err)
		free(*text);
	return err;
}

static int add_word(struct configfile *file, size_t *n, char *word)
{
	char **more = realloc(file->words, (*n + 2) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	file->words = more;
	more[(*n)++] = word;
	more[*n] = NULL;
	return 0;
}

/* Remove the quotes of the word at *at, in place. Sets *end to its end, and *at behind it. */
static bool take_config_word(char **at, char **end)
{
	char *from = *at, *to = *at;
	char quote = 0;

	for (; *from && (quote || !strchr(" \t\r\n", *from)); from++) {
		if (quote && *from == quote)
			quote = 0;
		else if (!quote && (*from == '\'' || *from == '"'))
			quote = *from;
		else if (*from == '\\' && quote != '\'' && from[1] == '\n')
			from++;
		else if (*from == '\\' && quote != '\'' && from[1])
			*to++ = *++from;
		else
			*to++ = *from;
	}
	*at = from;
	*end = to;
	return !quote;
}

static char *skip_blanks(char *at)
{
	for (;; at++) {
		if (*at == '\\' && at[1] == '\n')
			at++;
		else if (!*at || !strchr(" \t\r", *at))
			return at;
	}
}

static int split_words(struct configfile *file)
{
	static char colon[] = ":";
	bool in_line = false;
	char *at = file->text;
	size_t n = 0;
	int err = 0;

	while (!err && *(at = skip_blanks(at))) {
		char *word = at, *end, next;

		if (*at == '\n') {
			in_line = false;
			at++;
			continue;
		}
		if (*at == '#' && !in_line) {
			at += strcspn(at, "\n");
			continue;
		}
		if (!in_line && n)
			err = add_word(file, &n, colon);
		in_line = true;
		if (!take_config_word(&at, &end))
			return -EINVAL;
		/* the end of the word may be where the next blank is */
		next = *at;
		*end = '\0';
		if (!err)
			err = add_word(file, &n, word);
		if (next == '\n')
			in_line = false;
		at += next != '\0';
	}
	return err || n ? err : -ENODATA;
}

int configfile_read(struct configfile *file, const char *path)
{
	int err = read_text(path, &file->text);

	file->words = NULL;
	if (err) {
		file->text = NULL;
		return err;
	}
	err = split_words(file);
	if (err)
		configfile_free(file);
	return err;
}

void configfile_free(struct configfile *file)
{
	free(file->text);
	free(file->words);
	*file = (struct configfile){ .text = NULL };
}
