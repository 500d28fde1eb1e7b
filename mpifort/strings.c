/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Conversion of Fortran strings, which are filled with blanks, to and from C strings.
 */
#include "mpifort.h"

#include <stdlib.h>
#include <string.h>

static size_t without_blanks(const char *text, size_t length)
{
	while (length > 0 && text[length - 1] == ' ')
		length--;
	return length;
}

void mpifort_string_room(struct mpifort_string *s, size_t size, int *rc)
{
	s->at = s->few;
	s->few[0] = '\0';
	if (*rc != MPI_SUCCESS || size <= sizeof(s->few))
		return;
	s->at = malloc(size);
	if (!s->at) {
		s->at = s->few;
		*rc = mpifort_raise(MPI_ERR_NO_MEM);
		return;
	}
	s->at[0] = '\0';
}

void mpifort_string_in(struct mpifort_string *s, const char *text, size_t length, bool strip,
		       int *rc)
{
	length = without_blanks(text, length);
	while (strip && length > 0 && *text == ' ') {
		text++;
		length--;
	}
	mpifort_string_room(s, length + 1, rc);
	if (*rc != MPI_SUCCESS)
		return;
	memcpy(s->at, text, length);
	s->at[length] = '\0';
}

void mpifort_string_out(struct mpifort_string *s, char *text, size_t length)
{
	size_t n = strlen(s->at);

	if (n > length)
		n = length;
	memcpy(text, s->at, n);
	memset(text + n, ' ', length - n);
}

void mpifort_string_end(struct mpifort_string *s)
{
	if (s->at != s->few)
		free(s->at);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

void mpifort_argv_in(struct mpifort_argv *a, const char *text, size_t length, int n, int step,
		     int *rc)
{
	size_t gap = (size_t)step * length, bytes = 0, size;
	const char *from;
	char *to;

	a->at = NULL;
	if (*rc != MPI_SUCCESS)
		return;
	if (n < 0) {
		for (n = 0; without_blanks(text + (size_t)n * gap, length) > 0; n++)
			continue;
	}
	for (int i = 0; i < n; i++)
		bytes += without_blanks(text + (size_t)i * gap, length) + 1;
	a->at = malloc(((size_t)n + 1) * sizeof(*a->at) + bytes);
	if (!a->at) {
		*rc = mpifort_raise(MPI_ERR_NO_MEM);
		return;
	}
	to = (char *)(a->at + n + 1);
	for (int i = 0; i < n; i++) {
		from = text + (size_t)i * gap;
		size = without_blanks(from, length);
		while (size > 0 && *from == ' ') {
			from++;
			size--;
		}
		a->at[i] = to;
		memcpy(to, from, size);
		to[size] = '\0';
		to += size + 1;
	}
	a->at[n] = NULL;
}

void mpifort_argv_end(struct mpifort_argv *a)
{
	free(a->at);
}
