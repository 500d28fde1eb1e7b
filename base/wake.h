/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What wakes a thread that sleeps on descriptors.
 */
#ifndef BASE_WAKE_H
#define BASE_WAKE_H

struct base_wake {
	int fd;   /* readable when somebody called; -1: not open */
	int call; /* the other end, or the same */
};

#define BASE_WAKE_CLOSED                                                                           \
	{                                                                                          \
		-1, -1                                                                             \
	}

/* 0, or -errno. */
int base_wake_open(struct base_wake *w);
void base_wake_call(const struct base_wake *w);
/* The calls so far are heard: from now on it is readable when there is another one. */
void base_wake_heard(const struct base_wake *w);
/* Without effect if it is not open. */
void base_wake_close(struct base_wake *w);

#endif
