/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A descriptor that wakes a thread which sleeps on descriptors. No call here blocks.
 */
#ifndef BASE_WAKE_H
#define BASE_WAKE_H

struct base_wake {
	int fd;   /* readable after a call; -1: not open */
	int call; /* the write end, or the same descriptor */
};

#define BASE_WAKE_CLOSED                                                                           \
	{                                                                                          \
		-1, -1                                                                             \
	}

/* 0, or -errno. */
int base_wake_open(struct base_wake *w);
void base_wake_call(const struct base_wake *w);
/* Consume the calls so far: the descriptor is readable again only after another call. */
void base_wake_heard(const struct base_wake *w);
/* No effect if it is not open. */
void base_wake_close(struct base_wake *w);

#endif
