/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How long a peer has been silent, without the time this process did not listen. A process
 * that was stopped, or had no time to listen, must not take its peers for dead before it has
 * listened. So the time by which it was late does not count as silence. Only the last
 * SILENCE_STOPS stops are left out. Therefore a process that is always late, or stopped again
 * and again, still finds dead peers. An answer that lies unread is no silence either: silence
 * counts up to the time when everything that had arrived was read. Times are in nanoseconds.
 * No function blocks; the caller's lock guards the structure.
 */
#ifndef NET_SILENCE_H
#define NET_SILENCE_H

#include <stdint.h>
#include <string.h>

enum { SILENCE_STOPS = 4 };

struct silence {
	struct {
		uint64_t until, missed; /* end of a stop; its length */
	} stop[SILENCE_STOPS];          /* newest first */
	uint64_t listened;              /* everything that had arrived then has been read */
};

/* Record that everything that had arrived at time `at` has been read. */
static inline void silence_listened(struct silence *s, uint64_t at)
{
	if (at > s->listened)
		s->listened = at;
}

/* Record a stop if the timer that was due at `due` runs late by more than an eighth of
 * dead_ns. Timers take a peer for dead after dead_ns of silence. */
static inline void silence_check(struct silence *s, uint64_t due, uint64_t now, uint64_t dead_ns)
{
	uint64_t from = due > s->stop[0].until ? due : s->stop[0].until;

	if (now - from <= dead_ns / 8)
		return;
	memmove(&s->stop[1], &s->stop[0], sizeof(s->stop) - sizeof(s->stop[0]));
	s->stop[0].until = now;
	s->stop[0].missed = now - from;
}

/* When the silence since `since` would have begun if we had listened all the time. */
static inline uint64_t silence_since(const struct silence *s, uint64_t since)
{
	uint64_t missed = 0;

	for (int i = 0; i < SILENCE_STOPS && s->stop[i].until > since; i++) {
		uint64_t after = s->stop[i].until - since;

		missed += after < s->stop[i].missed ? after : s->stop[i].missed;
	}
	return since + missed;
}

/* How long a peer that was last heard at `since` has been silent, as far as we listened. */
static inline uint64_t silence_so_far(const struct silence *s, uint64_t since)
{
	since = silence_since(s, since);
	return s->listened > since ? s->listened - since : 0;
}

#endif
