/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The event loop: file descriptors, timers and signals, and what to call when it is their turn. One
 * thread, one loop. It makes do with epoll: signalfd and timerfd are refused in some containers.
 */
#ifndef MPIEXEC_LOOP_H
#define MPIEXEC_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Embedded in what the event is about; must stay where it is while it is added. */
struct watch {
	int fd; /* -1: not watched; events still under way are then not delivered */
	void (*ready)(struct watch *watch, uint32_t events);
};

/* A moment to come; zeroed at first, and must stay where it is. */
struct timer {
	int64_t due; /* nanoseconds of the monotonic clock; 0: not set */
	void (*over)(void);
	struct timer *next; /* of those that were ever set */
};

/* All return 0 or -errno. */
int loop_init(void);

/*
 * These signals are blocked from now on and `take` is called for them in loop_wait. One that was
 * ignored still is, except SIGCHLD. The mask before and what each signal did before are for
 * loop_signals_back, in a child.
 */
void loop_signals(const int *signals, int count, void (*take)(int sig));
void loop_signals_back(void);

/* Calls `over` in loop_wait, once, when the time has passed; sets it anew if it was set. */
void loop_timer(struct timer *timer, double seconds, void (*over)(void));
int loop_add(struct watch *watch, int fd, uint32_t events,
	     void (*ready)(struct watch *watch, uint32_t events));
int loop_change(struct watch *watch, uint32_t events);

/* Stops watching and closes the descriptor; without effect on one that is not watched. */
void loop_close(struct watch *watch);

/* Stops watching and returns the descriptor. */
int loop_remove(struct watch *watch);

/* Waits for events and delivers them. */
int loop_wait(void);

/* The structure a watch is embedded in. */
#define watch_of(watch, type, member) ((type *)(void *)((char *)(watch)-offsetof(type, member)))

#endif
