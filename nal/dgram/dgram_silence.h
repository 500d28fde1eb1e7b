/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The silence of peers, as far as it counts. A process that was held still, or had no time for us, must not take its
 * peers for dead before it has listened. Who always comes late listens late, and that is no excuse: only the first
 * of several times in a row counts as a stop.
 */
#ifndef DGRAM_SILENCE_H
#define DGRAM_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

struct silence {
	uint64_t
		resumed; /* when we last came much later than we meant to, and had come in time before */
	bool late;       /* the last time */
};

/* A timer is looked at that was due, of those that find out after dead_ns that a peer is dead. */
static inline void silence_look(struct silence *s, uint64_t due, uint64_t now, uint64_t dead_ns)
{
	bool late = now - due > dead_ns / 8;

	if (late && !s->late)
		s->resumed = now;
	s->late = late;
}

/* When the silence since `since` began to count. */
static inline uint64_t silence_since(const struct silence *s, uint64_t since)
{
	return since > s->resumed ? since : s->resumed;
}

#endif
