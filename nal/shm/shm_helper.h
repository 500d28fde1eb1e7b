/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What the two files of the helper thread share: what it does (shm_helper.c), and how processes
 * connect (shm_connect.c).
 */
#ifndef SHM_HELPER_H
#define SHM_HELPER_H

#include "base/wake.h"
#include "nal/shm/shm.h"

#define MAX_CALLERS     128
#define CALLERS_WAIT_MS 1000 /* between two looks at whether callers are silent */

/* What an epoll event is about; the low half of its datum is an index. */
enum { ON_EVENT, ON_LISTEN, ON_CALLER, ON_DEATH, ON_PEER };

/* A connection accepted, whose hello has not come yet. */
struct caller {
	int fd; /* -1: unused */
	uint64_t since;
};

struct shm_helper {
	struct shm *s;
	int listen_fd, epoll_fd;
	struct base_wake event;
	pthread_t thread;
	pthread_mutex_t mutex; /* for the condition only; nothing is taken inside it */
	pthread_cond_t cond;
	_Atomic uint32_t changes; /* of any peer's state */
	_Atomic bool stop;
	_Atomic bool kicked;
	uint32_t rounds; /* of progress by the application, when last looked */
	uint32_t quiet;  /* looks in a row that found no long message */
	int pause_ms;
	bool looks;           /* again, once, after which it may sleep */
	uint64_t look_at;     /* when the next look is due */
	uint32_t look_rounds; /* `rounds` at the last look */
	struct caller caller[MAX_CALLERS];
};

/* ---- shm_connect.c --------------------------------------------------------------------------- */

/* Takes the address of the pid wanted, or of the first free one. PTL_OK, PTL_PID_INVALID, or
 * PTL_NO_SPACE after a warning. */
int shm_claim_pid(int fd, struct ptl_ni *ni, ptl_pid_t want);
/* The thread is to hear of this descriptor. */
void shm_watch(struct shm_helper *l, int fd, uint32_t what, uint32_t index);

/* The following are the thread's, with the lock held, but for shm_hang_up_on_silent(). */

/* A peer is not connected, or no more; `why`, if it has not ended. */
void shm_lose(struct shm_helper *l, struct shm_peer *p, const char *why);
/* Calls those that are to be called. True if some peer must be called again later. */
bool shm_call_all(struct shm_helper *l);
/* Something came from a peer, or it has hung up. */
void shm_hear(struct shm_helper *l, struct shm_peer *p);
void shm_accept_caller(struct shm_helper *l);
void shm_hear_caller(struct shm_helper *l, uint32_t i);
/* `asleep_at`: when the last wait began. */
void shm_hang_up_on_silent(struct shm_helper *l, uint64_t asleep_at);

#endif
