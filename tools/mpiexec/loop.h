/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The event loop: file descriptors, timers and signals, and the functions to call for them. One
 * thread, one loop. It uses epoll only: some containers refuse signalfd and timerfd.
 */
#ifndef MPIEXEC_LOOP_H
#define MPIEXEC_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Embedded in the object of the event; must not move while it is added. */
struct watch {
	int fd; /* -1: not watched; events still under way are then not delivered */
	void (*ready)(struct watch *watch, uint32_t events);
};

/* A timer; zeroed at first, and must not move. */
struct timer {
	int64_t due; /* nanoseconds of the monotonic clock; 0: not set */
	void (*over)(void);
	struct timer *next; /* in the list of all that were ever set */
};

/* All return 0 or -errno. */
int loop_init(void);

/*
 * Block these signals from now on; loop_wait calls `take` for them. A signal that was ignored
 * still is, except SIGCHLD. loop_signals_back restores the mask and the actions from before, in
 * a child.
 */
void loop_signals(const int *signals, int count, void (*take)(int sig));
void loop_signals_back(void);

/* Call `over` once in the loop when the time has passed. A timer that was set is set anew. */
void loop_timer(struct timer *timer, double seconds, void (*over)(void));
/* Call `ready` for these epoll events of the descriptor. The second function changes the events. */
int loop_add(struct watch *watch, int fd, uint32_t events,
	     void (*ready)(struct watch *watch, uint32_t events));
int loop_change(struct watch *watch, uint32_t events);

/* Stop watching and close the descriptor; does nothing to one that is not watched. */
void loop_close(struct watch *watch);

/* Stop watching and return the descriptor. */
int loop_remove(struct watch *watch);

/* Deliver what there is now. */
void loop_poll(void);

/* Wait for events and deliver them. */
int loop_wait(void);

/* The structure that a watch is embedded in. */
#define watch_of(watch, type, member) ((type *)(void *)((char *)(watch)-offsetof(type, member)))

#endif
