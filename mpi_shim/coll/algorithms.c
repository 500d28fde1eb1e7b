/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Parsing PTL_MPI_COLL: see algorithms.h.
 */
#include "mpi_shim/coll/algorithms.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *word, *text;
} rows[] = {
#define ROW_(collective, algorithm, word, text) { word, text },
	MPI_COLL_TABLE(ROW_)
#undef ROW_
};
_Static_assert(MPI_COLL_COUNT_ <= 64, "a set of rows is a word of 64 bits");

static const char *const prefer[] = { "auto", "messages", "rounds" };

const char *mpi_algorithm_word(size_t i)
{
	return i < MPI_COLL_COUNT_ ? rows[i].word : NULL;
}

const char *mpi_algorithm_text(size_t i)
{
	return i < MPI_COLL_COUNT_ ? rows[i].text : NULL;
}

static bool same_word(const char *a, size_t len, const char *b)
{
	return strlen(b) == len && !strncasecmp(a, b, len);
}

/* Length of the name of a row's collective. */
static size_t collective(size_t row)
{
	return strcspn(rows[row].word, "=");
}

static bool of_one_collective(size_t a, size_t b)
{
	return collective(a) == collective(b) &&
	       !strncmp(rows[a].word, rows[b].word, collective(a));
}

static void want(struct mpi_coll_setting *s, size_t row)
{
	for (size_t i = 0; i < MPI_COLL_COUNT_; i++) {
		if (!of_one_collective(i, row))
			continue;
		s->wanted &= ~(UINT64_C(1) << i);
		s->ruled_out |= UINT64_C(1) << i;
	}
	s->wanted |= UINT64_C(1) << row;
	s->ruled_out &= ~(UINT64_C(1) << row);
}

/* "alltoall=hub", as the last release has it, is good for this one, too. Returns its length
 * without the algorithm, or 0. */
static size_t parse_renamed(struct mpi_coll_setting *s, const char *word, size_t len)
{
	size_t at = strcspn(word, "=,");

	if (at >= len || !same_word(word + at, len - at, "=hub"))
		return 0;
	for (size_t i = 0; i < MPI_COLL_COUNT_; i++) {
		if (collective(i) == at && !strncasecmp(word, rows[i].word, at) &&
		    !strcmp(rows[i].word + at, "=shm")) {
			want(s, i);
			return at;
		}
	}
	return 0;
}

static bool parse_algorithm(struct mpi_coll_setting *s, const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof(prefer) / sizeof(prefer[0]); i++) {
		if (same_word(word, len, prefer[i])) {
			s->prefer = (enum mpi_coll_prefer)i;
			return true;
		}
	}
	for (size_t i = 0; i < MPI_COLL_COUNT_; i++) {
		if (same_word(word, len, rows[i].word)) {
			want(s, i);
			return true;
		}
	}
	return false;
}

/* List the words that are valid in place of this one: the algorithms if the collective is
 * known, else the collectives. */
static void remedy(const char *word, size_t len, char *text, size_t size)
{
	size_t used = 0, at = strcspn(word, "=,");
	bool known = false;

	for (size_t i = 0; i < MPI_COLL_COUNT_; i++)
		known |= at < len && collective(i) == at && !strncasecmp(word, rows[i].word, at);
	*text = '\0';
	for (size_t i = 0; i < MPI_COLL_COUNT_ && used < size; i++) {
		int n;

		if (known && (collective(i) != at || strncasecmp(word, rows[i].word, at)))
			continue;
		if (!known && i > 0 && of_one_collective(i - 1, i))
			continue;
		n = known ? snprintf(text + used, size - used, ", %s", rows[i].word)
			  : snprintf(text + used, size - used, ", %.*s=...", (int)collective(i),
				     rows[i].word);
		used += n > 0 ? (size_t)n : 0;
	}
}

struct mpi_coll_setting mpi_coll_parse(const char *value, void (*say)(const char *fmt, ...))
{
	struct mpi_coll_setting s = { MPI_COLL_AUTO, 0, 0 };

	for (const char *word = value;;) {
		size_t len = strcspn(word, ","), old = parse_renamed(&s, word, len);
		char text[512];

		if (old) {
			if (say)
				say("PTL_MPI_COLL: \"%.*s\" is now \"%.*s=shm\"; the next "
				    "release does not know the old word",
				    (int)len, word, (int)old, word);
		} else if (!parse_algorithm(&s, word, len) && say) {
			remedy(word, len, text, sizeof(text));
			say("PTL_MPI_COLL: \"%.*s\" is none of auto, messages, rounds%s; it is "
			    "passed over",
			    len < 100 ? (int)len : 100, word, text);
		}
		if (!word[len])
			return s;
		word += len + 1;
	}
}
