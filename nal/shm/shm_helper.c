/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The helper thread of an interface. It sleeps in the kernel until a peer wants to connect,
 * dies or closes, a doorbell rings, or a long message is left to nobody. Otherwise it never
 * polls. With CMA peers deliver by themselves, so data does not need it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/log.h"
#include "nal/shm/shm_helper.h"

#define PAUSE_MOST_MS 32
#define QUIET_MOST    8
#define POLL_MS       4 /* between polls of our rings after leaves from a biased lock */

/* ---- the thread ------------------------------------------------------------------------------ */

static void handle(struct shm_helper *l, uint64_t datum)
{
	uint32_t what = (uint32_t)(datum >> 32), i = (uint32_t)datum;
	struct shm_peer *p = what >= ON_DEATH ? l->s->peer[i] : NULL;

	switch (what) {
	case ON_EVENT:
		base_wake_heard(&l->event);
		break;
	case ON_LISTEN:
		shm_accept_caller(l);
		break;
	case ON_CALLER:
		if (l->caller[i].fd >= 0)
			shm_hear_caller(l, i);
		break;
	case ON_DEATH:
		if (p && shm_peer_ended(l->s, i))
			shm_connection_failed(l, p, "its process has ended");
		break;
	case ON_PEER:
		if (p && p->sock >= 0)
			shm_hear(l, p);
		break;
	}
}

static void back_off(struct shm_helper *l)
{
	l->pause_ms = l->pause_ms ? 2 * l->pause_ms : 1;
	if (l->pause_ms > PAUSE_MOST_MS)
		l->pause_ms = PAUSE_MOST_MS;
}

/* Move a long message that nobody inside the library moves. Back off while the application
 * makes progress. Stay awake for a while after the last one, so that a stream of them need not
 * wake the thread each time. */
static void background(struct shm_helper *l)
{
	struct ptl_ni *ni = l->s->ni;
	uint32_t rounds = atomic_load_explicit(&ni->rounds, memory_order_relaxed);
	bool any;

	if (shm_attends(&ni->view) || rounds != l->rounds) {
		l->rounds = rounds;
		l->quiet = 0;
		back_off(l);
		return;
	}
	ptl_lock(ni);
	any = ni->nal->progress(ni);
	l->rounds = atomic_load_explicit(&ni->rounds, memory_order_relaxed);
	if (any || shm_long_any(l->s))
		l->quiet = 0;
	else if (++l->quiet > QUIET_MOST)
		atomic_store(&l->kicked, false);
	ptl_leave(ni);
	if (any)
		l->pause_ms = 0;
	else
		back_off(l);
}

/* Check whether a leave from a biased lock left something behind. If the application was
 * inside since the last poll, it has left again since, or will. A lock that was unused for all
 * that time loses its bias. Peers that deliver while the application computes need not revoke
 * it first. */
static void helper_poll(struct shm_helper *l, bool unused)
{
	struct ptl_ni *ni = l->s->ni;
	uint32_t rounds = atomic_load_explicit(&ni->rounds, memory_order_relaxed);

	if (rounds == l->polled_rounds && !shm_attends(&ni->view) &&
	    (unused || shm_rings_pending(l->s))) {
		ptl_lock(ni);
		if (unused)
			ptl_lock_end_bias(ni);
		ni->nal->progress(ni);
		rounds = atomic_load_explicit(&ni->rounds, memory_order_relaxed);
		ptl_leave(ni);
	}
	l->polled_rounds = rounds;
}

/* Poll every POLL_MS while the application goes on leaving. The state steps from UNSEEN to
 * POLLED to ASLEEP, with a poll for each step and a last one after it. A thread that left on
 * an older value of the state may have missed a step. A poll later than its leave by at least
 * one POLL_MS then follows. */
static void poll_after_leaves(struct shm_helper *l)
{
	uint32_t left = atomic_load(&l->s->left);

	if (base_now_ns() < l->poll_at)
		return;
	helper_poll(l, left == SHM_LEFT_POLLED);
	l->poll_at = base_now_ns() + POLL_MS * 1000000ull;
	l->poll_owed = left != SHM_LEFT_ASLEEP;
	if (l->poll_owed)
		atomic_compare_exchange_strong(&l->s->left, &left, left - 1);
}

static bool polls_for_leaves(const struct shm_helper *l)
{
	return l->poll_owed ||
	       atomic_load_explicit(&l->s->left, memory_order_relaxed) != SHM_LEFT_ASLEEP;
}

/* A peer's state may have changed: wake threads that wait for it. */
static void changed(struct shm_helper *l)
{
	pthread_mutex_lock(&l->mutex);
	atomic_fetch_add(&l->changes, 1);
	pthread_cond_broadcast(&l->cond);
	pthread_mutex_unlock(&l->mutex);
}

static void *shm_helper_main(void *arg)
{
	struct shm_helper *l = arg;
	struct ptl_ni *ni = l->s->ni;
	struct epoll_event ev[16];
	bool later = false, callers;
	uint64_t asleep_at;
	int n, wait;

	ptl_lock_never_bias(ni);
	for (;;) {
		wait = atomic_load(&l->kicked) ? l->pause_ms : -1;
		if ((wait < 0 || wait > POLL_MS) && polls_for_leaves(l))
			wait = POLL_MS;
		callers = false;
		for (uint32_t i = 0; i < MAX_CALLERS; i++)
			callers |= l->caller[i].fd >= 0;
		if (later)
			wait = 1;
		else if (wait < 0 && callers)
			wait = CALLERS_WAIT_MS;
		/* checked after the eventfd was read and before it is waited for */
		if (atomic_load(&l->stop))
			return NULL;
		asleep_at = base_now_ns();
		n = epoll_wait(l->epoll_fd, ev, 16, wait);
		if (n > 0 || later) {
			ptl_lock(ni);
			for (int i = 0; i < n; i++)
				handle(l, ev[i].data.u64);
			later = shm_call_all(l);
			ni->nal->progress(ni);
			ptl_leave(ni);
			changed(l);
		}
		if (callers)
			shm_hang_up_on_silent(l, asleep_at);
		if (polls_for_leaves(l))
			poll_after_leaves(l);
		if (atomic_load(&l->kicked))
			background(l);
		else
			l->pause_ms = 1;
	}
}

/* ---- for the others -------------------------------------------------------------------------- */

void shm_helper_doorbell(struct shm_peer *p)
{
	if (p->sock >= 0)
		send(p->sock, &(const char){ SHM_DOORBELL }, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void close_fds(struct shm_helper *l)
{
	if (l->listen_fd >= 0)
		close(l->listen_fd);
	base_wake_close(&l->event);
	if (l->epoll_fd >= 0)
		close(l->epoll_fd);
}

void shm_helper_forked(struct ptl_ni *ni)
{
	struct shm *s = shm_of(ni);

	if (!s || !s->helper)
		return;
	close_fds(s->helper);
	for (uint32_t i = 0; i < SHM_CHANNELS; i++) {
		struct shm_peer *p = s->peer[i];

		if (p && p->sock >= 0)
			close(p->sock);
		/* may be another descriptor of the socket */
		if (s->life[i] >= 0)
			close(s->life[i]);
	}
}

void shm_helper_kick(struct shm *s)
{
	if (!s->area->calls_only && !atomic_exchange(&s->helper->kicked, true))
		base_wake_call(&s->helper->event);
}

void shm_helper_left(struct shm *s)
{
	if (atomic_exchange(&s->left, SHM_LEFT_UNSEEN) == SHM_LEFT_ASLEEP)
		base_wake_call(&s->helper->event);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static int start_helper(struct shm_helper *l)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	int err;

	pthread_mutex_init(&l->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->cond, &attr);
	pthread_condattr_destroy(&attr);
	/* the application's threads handle the application's signals */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&l->thread, NULL, shm_helper_main, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_setname_np(l->thread, "postern-shm");
	return err;
}

/* Try everything that the helper thread needs, as it could not report a failure later. 0, or
 * -errno and the name of the refused call. */
static int open_fds(struct shm_helper *l, const char **what)
{
	struct epoll_event ev;
	int err;

	*what = "socket";
	l->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->listen_fd < 0)
		return -errno;
	*what = "eventfd and pipe2";
	err = base_wake_open(&l->event);
	if (err < 0)
		return err;
	*what = "epoll_create1";
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0)
		return -errno;
	*what = "epoll_ctl";
	ev = (struct epoll_event){ .events = EPOLLIN, .data.u64 = (uint64_t)ON_EVENT << 32 };
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->event.fd, &ev) < 0)
		return -errno;
	*what = "epoll_wait";
	return epoll_wait(l->epoll_fd, &ev, 1, 0) < 0 ? -errno : 0;
}

/* The address is ours: let others call from here on. Returns as open_fds does. */
static int listen_there(struct shm_helper *l, const char **what)
{
	/* nobody can have called yet */
	*what = "accept4";
	if (accept4(l->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) < 0 && errno != EINVAL)
		return -errno;
	*what = "listen";
	if (listen(l->listen_fd, 1024) < 0)
		return -errno;
	shm_watch(l, l->listen_fd, ON_LISTEN, 0);
	*what = "pthread_create";
	return -start_helper(l);
}

/* Warn, and return PTL_NO_SPACE. */
static int helper_refused(const char *what, int err)
{
	base_warn("shared memory: %s: %s; %s", what, strerror(-err),
		  err == -EMFILE || err == -ENFILE ? "raise `ulimit -n`"
		  : err == -EAGAIN || err == -ENOMEM
			  ? "raise `ulimit -u` and `ulimit -v`"
			  : "is it refused here (a container's profile)?");
	return PTL_NO_SPACE;
}

int shm_helper_open(struct shm *s, ptl_pid_t want)
{
	struct shm_helper *l = calloc(1, sizeof(*l));
	const char *what;
	int err, failed;

	if (!l)
		return PTL_NO_SPACE;
	l->s = s;
	l->pause_ms = 1;
	l->listen_fd = l->epoll_fd = -1;
	l->event = (struct base_wake)BASE_WAKE_CLOSED;
	for (int i = 0; i < MAX_CALLERS; i++)
		l->caller[i].fd = -1;
	failed = open_fds(l, &what);
	err = failed ? helper_refused(what, failed) : shm_claim_pid(l->listen_fd, s->ni, want);
	if (err == PTL_OK) {
		s->helper = l;
		s->ni->view.r->stat.id = s->ni->id;
		failed = listen_there(l, &what);
		if (failed)
			err = helper_refused(what, failed);
	}
	if (err != PTL_OK) {
		close_fds(l);
		free(l);
		s->helper = NULL;
	}
	return err;
}

void shm_helper_close(struct shm *s)
{
	struct shm_helper *l = s->helper;

	atomic_store(&l->stop, true);
	base_wake_call(&l->event);
	pthread_join(l->thread, NULL);
	for (uint32_t i = 0; i < MAX_CALLERS; i++)
		if (l->caller[i].fd >= 0)
			close(l->caller[i].fd);
	close_fds(l);
	pthread_mutex_destroy(&l->mutex);
	pthread_cond_destroy(&l->cond);
	free(l);
	s->helper = NULL;
}
