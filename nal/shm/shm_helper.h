/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Shared by the two files of the helper thread: its loop (shm_helper.c), and how processes
 * connect (shm_connect.c). For no other file.
 */
#ifndef SHM_HELPER_H
#define SHM_HELPER_H

#include "base/wake.h"
#include "nal/shm/shm.h"

#define MAX_CALLERS     128
#define CALLERS_WAIT_MS 1000 /* between two checks for silent callers */

/* The kind of an epoll event; the low half of its datum is an index. */
enum { ON_EVENT, ON_LISTEN, ON_CALLER, ON_DEATH, ON_PEER };

/* An accepted connection whose hello has not arrived yet. */
struct caller {
	int fd; /* -1: unused */
	uint64_t since;
};

struct shm_helper {
	struct shm *s;
	int listen_fd, epoll_fd;
	struct base_wake event;
	pthread_t thread;
	pthread_mutex_t mutex; /* for the condition only; the innermost lock */
	pthread_cond_t cond;
	_Atomic uint32_t changes; /* counts changes of any peer's state */
	_Atomic bool stop;
	_Atomic bool kicked;
	uint32_t rounds; /* the application's progress rounds at the last check */
	uint32_t quiet;  /* checks in a row that found no long message */
	int pause_ms;
	bool poll_owed;         /* one more poll is due before it may sleep */
	uint64_t poll_at;       /* when the next poll is due */
	uint32_t polled_rounds; /* `rounds` at the last poll */
	struct caller caller[MAX_CALLERS];
};

/* ---- shm_connect.c --------------------------------------------------------------------------- */

/* Bind the address of the wanted pid, or of the first free one. PTL_OK, PTL_PID_INVALID, or
 * PTL_NO_SPACE after a warning. */
int shm_claim_pid(int fd, struct ptl_ni *ni, ptl_pid_t want);
/* Let the thread's epoll watch this descriptor. */
void shm_watch(struct shm_helper *l, int fd, uint32_t what, uint32_t index);

/* The following run in the helper thread with the lock held, except shm_hang_up_on_silent(). */

/* A peer is not connected, or no longer; `why`, if it has not ended. */
void shm_connection_failed(struct shm_helper *l, struct shm_peer *p, const char *why);
/* Call every peer that is due. True if some peer must be called again later. */
bool shm_call_all(struct shm_helper *l);
/* Handle what arrived from a peer, or its hanging up. */
void shm_hear(struct shm_helper *l, struct shm_peer *p);
void shm_accept_caller(struct shm_helper *l);
void shm_hear_caller(struct shm_helper *l, uint32_t i);
/* `asleep_at`: when the last wait began, in ns. */
void shm_hang_up_on_silent(struct shm_helper *l, uint64_t asleep_at);

#endif
