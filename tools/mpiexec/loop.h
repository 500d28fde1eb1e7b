/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The event loop: file descriptors, and what to call when one is ready. One thread, one loop.
 */
#ifndef MPIEXEC_LOOP_H
#define MPIEXEC_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Embedded in what the event is about; must stay where it is while it is added. */
struct watch {
	int fd; /* -1: not watched; events still under way are then not delivered */
	void (*ready)(struct watch *watch, uint32_t events);
};

/* All return 0 or -errno. */
int loop_init(void);
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
