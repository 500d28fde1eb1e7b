/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which of two ways or three to do the same is fastest, where nobody can tell beforehand and it
 * changes while a program runs. For most of the time it is only counted how often it is done.
 * Then the time of some is taken, of some more that go another way, each of the others in turn,
 * and what was faster stays:
 *
 *   RESTS --> PRESENT --> SETTLES --> OTHER --> RESTS
 *             timed                   timed
 *
 * It rests the longer the worse the other way was.
 */
#ifndef BASE_TUNER_H
#define BASE_TUNER_H

#include <stdbool.h>
#include <stdint.h>

#define BASE_TUNER_RUNS 5 /* that are timed */

enum base_tuner_phase {
	BASE_TUNER_RESTS,
	BASE_TUNER_PRESENT,
	BASE_TUNER_SETTLES,
	BASE_TUNER_OTHER
};

/* How often to try, and when to change. */
struct base_tuner_rule {
	uint8_t runs;         /* that are timed: odd, BASE_TUNER_RUNS at most */
	bool all;             /* the other way has to be better in all of them, not by the median */
	bool rarer;           /* each change in a row makes the rest after it twice as long */
	uint32_t share;       /* of all time a trial may cost one part in so many */
	uint32_t first;       /* rest before the first trial */
	uint32_t changed;     /* ... after a change */
	uint32_t least, most; /* ... after none */
};

struct base_tuner {
	const struct base_tuner_rule *rule;
	enum base_tuner_phase phase;
	uint32_t left;                     /* how many more it takes */
	uint8_t paths, now;                /* how many there are; the one that the next goes */
	uint8_t other;                     /* the one to try, or in a trial the one to go back to */
	uint8_t changes;                   /* the last trials that changed the way, in a row */
	uint64_t cost[2][BASE_TUNER_RUNS]; /* as it was, the other way */
};

/* `now`: which of the `ways` it goes to begin with, from 0 on. */
void base_tuner_init(struct base_tuner *w, unsigned int paths, unsigned int now);
/* The same by a rule of one's own, which stays where it is. */
void base_tuner_init_by(struct base_tuner *w, const struct base_tuner_rule *rule,
			unsigned int paths, unsigned int now);

static inline bool base_tuner_timed(const struct base_tuner *w)
{
	return w->phase == BASE_TUNER_PRESENT || w->phase == BASE_TUNER_OTHER;
}

/* It was done once more, at this cost if that is timed. */
void base_tuner_ended(struct base_tuner *w, uint64_t cost);

#endif
