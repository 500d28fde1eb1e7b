/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Choosing the fastest of two or more paths that do the same, where nobody can tell beforehand
 * and it changes while a program runs. Most of the time the tuner only counts uses. Then it
 * times some uses of the present path, and some of another path, each of the others in turn.
 * The faster path stays:
 *
 *   RESTS --> PRESENT --> SETTLES --> OTHER --> RESTS
 *             timed                   timed
 *
 * The worse the other path was, the longer the tuner rests. No locks: one thread at a time.
 */
#ifndef BASE_TUNER_H
#define BASE_TUNER_H

#include <stdbool.h>
#include <stdint.h>

#define BASE_TUNER_RUNS 5 /* most timed uses in a phase */

enum base_tuner_phase {
	BASE_TUNER_RESTS,
	BASE_TUNER_PRESENT,
	BASE_TUNER_SETTLES,
	BASE_TUNER_OTHER
};

/* When to try another path, and when to change. */
struct base_tuner_rule {
	uint8_t runs;         /* timed uses: odd, at most BASE_TUNER_RUNS */
	bool all;             /* the other path must win in all of them, not by the median */
	bool rarer;           /* each change in a row doubles the rest after it */
	uint32_t share;       /* a trial may cost one part in this many of all time */
	uint32_t first;       /* rest, in uses, before the first trial */
	uint32_t changed;     /* rest after a change */
	uint32_t least, most; /* rest after no change */
};

struct base_tuner {
	const struct base_tuner_rule *rule;
	enum base_tuner_phase phase;
	uint32_t left;                     /* uses left in this phase */
	uint8_t paths, now;                /* number of paths; the path of the next use */
	uint8_t other;                     /* the path to try, or in a trial the one to return to */
	uint8_t changes;                   /* trials in a row that changed the path */
	uint64_t cost[2][BASE_TUNER_RUNS]; /* of the present path, of the other path */
};

/* Start with path `now` of `paths`, counted from 0. */
void base_tuner_init(struct base_tuner *w, unsigned int paths, unsigned int now);
/* The same with a rule of the caller's, which must stay valid. */
void base_tuner_init_by(struct base_tuner *w, const struct base_tuner_rule *rule,
			unsigned int paths, unsigned int now);

static inline bool base_tuner_timed(const struct base_tuner *w)
{
	return w->phase == BASE_TUNER_PRESENT || w->phase == BASE_TUNER_OTHER;
}

/* Record one more use, with its cost if it was timed. */
void base_tuner_ended(struct base_tuner *w, uint64_t cost);

#endif
