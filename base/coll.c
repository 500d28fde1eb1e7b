/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PTL_MPI_COLL: see coll.h.
 */
#include "base/coll.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/config.h"
#include "base/log.h"

static const struct {
	const char *word, *text;
} rows[] = {
#define ROW_(collective, algorithm, word, text) { word, text },
	BASE_COLL_TABLE(ROW_)
#undef ROW_
};
_Static_assert(BASE_COLL_COUNT_ <= 64, "a set of rows is a word of 64 bits");

static const char *const prefer[] = { "auto", "messages", "rounds" };

const char *base_coll_word(size_t i)
{
	return i < BASE_COLL_COUNT_ ? rows[i].word : NULL;
}

const char *base_coll_text(size_t i)
{
	return i < BASE_COLL_COUNT_ ? rows[i].text : NULL;
}

static bool same(const char *a, size_t len, const char *b)
{
	return strlen(b) == len && !strncasecmp(a, b, len);
}

/* The length of a row's collective. */
static size_t collective(size_t row)
{
	return strcspn(rows[row].word, "=");
}

static bool of_one_collective(size_t a, size_t b)
{
	return collective(a) == collective(b) &&
	       !strncmp(rows[a].word, rows[b].word, collective(a));
}

static void want(struct base_coll_setting *s, size_t row)
{
	for (size_t i = 0; i < BASE_COLL_COUNT_; i++) {
		if (!of_one_collective(i, row))
			continue;
		s->wanted &= ~(UINT64_C(1) << i);
		s->ruled_out |= UINT64_C(1) << i;
	}
	s->wanted |= UINT64_C(1) << row;
	s->ruled_out &= ~(UINT64_C(1) << row);
}

static bool take(struct base_coll_setting *s, const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof(prefer) / sizeof(prefer[0]); i++) {
		if (same(word, len, prefer[i])) {
			s->prefer = (enum base_coll_prefer)i;
			return true;
		}
	}
	for (size_t i = 0; i < BASE_COLL_COUNT_; i++) {
		if (same(word, len, rows[i].word)) {
			want(s, i);
			return true;
		}
	}
	return false;
}

/* What could stand in a word's place: the algorithms if the collective is right, else the collectives. */
static void remedy(const char *word, size_t len, char *text, size_t size)
{
	size_t used = 0, at = strcspn(word, "=,");
	bool known = false;

	for (size_t i = 0; i < BASE_COLL_COUNT_; i++)
		known |= at < len && collective(i) == at && !strncasecmp(word, rows[i].word, at);
	*text = '\0';
	for (size_t i = 0; i < BASE_COLL_COUNT_ && used < size; i++) {
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

struct base_coll_setting base_coll_parse(const char *value, void (*say)(const char *fmt, ...))
{
	struct base_coll_setting s = { BASE_COLL_AUTO, 0, 0 };

	for (const char *word = value;;) {
		size_t len = strcspn(word, ",");
		char text[512];

		if (!take(&s, word, len) && say) {
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

static struct base_coll_setting setting;

static void read_setting(void)
{
	setting = base_coll_parse(base_config()->ptl_mpi_coll, base_warn);
}

const struct base_coll_setting *base_coll(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_setting);
	return &setting;
}
