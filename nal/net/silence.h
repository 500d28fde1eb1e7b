/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The silence of peers, as far as it counts. A process that was held still, or had no time for
 * us, must not take its peers for dead before it has listened: what it was late by does not
 * count. Who always comes late listens late, and who is held still again and again finds out
 * too: only the last few times are no silence.
 */
#ifndef NET_SILENCE_H
#define NET_SILENCE_H

#include <stdint.h>
#include <string.h>

enum { SILENCE_STOPS = 4 };

struct silence {
	struct {
		uint64_t until,
			lost;  /* when we came much later than we meant to, and by how much */
	} stop[SILENCE_STOPS]; /* the last one first */
};

/* A timer is looked at that was due, of those that find out after dead_ns that a peer is dead. */
static inline void silence_look(struct silence *s, uint64_t due, uint64_t now, uint64_t dead_ns)
{
	uint64_t from = due > s->stop[0].until ? due : s->stop[0].until;

	if (now - from <= dead_ns / 8)
		return;
	memmove(&s->stop[1], &s->stop[0], sizeof(s->stop) - sizeof(s->stop[0]));
	s->stop[0].until = now;
	s->stop[0].lost = now - from;
}

/* When the silence since `since` would have begun, had we listened all the time. */
static inline uint64_t silence_since(const struct silence *s, uint64_t since)
{
	uint64_t lost = 0;

	for (int i = 0; i < SILENCE_STOPS && s->stop[i].until > since; i++) {
		uint64_t after = s->stop[i].until - since;

		lost += after < s->stop[i].lost ? after : s->stop[i].lost;
	}
	return since + lost;
}

#endif
