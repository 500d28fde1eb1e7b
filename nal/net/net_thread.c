/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The helper thread. A socket cannot ring the bell that the application's threads sleep on, so this thread does.
 * It sleeps in the kernel itself, and is told of what arrives only when the socket is armed: once per sleep of the
 * application, and all the time while nobody else looks. It stands aside while the application polls, which it
 * sees from the interface's count of rounds, looking up every few milliseconds. While it sleeps in a wait, the thread
 * rests: until something is due that the sleeper may have left to it by then, or until it hears that the application
 * goes on, for whom it would be late otherwise.
 *
 * While the application computes the thread does its work where PTL_PROGRESS and the cores allow that. Where they do
 * not it still gives signs of life to peers, if only after a while.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/config.h"
#include "base/cpu.h"
#include "nal/net/net.h"

#define ASIDE_MS   2    /* between looks at an application that polls */
#define AWAY_MS    500  /* after which it works in any mode */
#define REST_MS    1000 /* at most */
#define BATCH_MOST 64   /* rounds with the lock held */

enum { ON_EVENT, ON_SOCKET };

void net_thread_arm(struct net *n)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.u32 = ON_SOCKET };
	struct net_thread *t = &n->thread;

	if (t->fd < 0)
		return;
	if (epoll_ctl(t->epoll_fd, t->listed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, t->fd, &ev) == 0)
		t->listed = true;
	t->looks = 0;
}

void net_thread_disarm(struct net *n)
{
	struct net_thread *t = &n->thread;
	uint64_t one = 1;

	if (!t->listed)
		return;
	epoll_ctl(t->epoll_fd, EPOLL_CTL_DEL, t->fd, NULL);
	t->listed = false;
	/* it may rest in the belief that it is told, and nobody says when the application goes on to compute */
	(void)!write(t->event_fd, &one, sizeof(one));
}

static bool may_work(const struct net *n)
{
	switch (base_config()->ptl_progress) {
	case BASE_PROGRESS_THREAD:
		return true;
	case BASE_PROGRESS_POLL:
		return false;
	default:
		return n->ni->spin_ns;
	}
}

/* Does what there is to do; until when it may sleep then, in milliseconds. */
static int work(struct net *n)
{
	struct ptl_ni *ni = n->ni;
	uint64_t until, now;
	int rounds = 0;

	ptl_lock(ni);
	while (net_progress(n) && ++rounds < BATCH_MOST && !ptl_lock_contended(ni->view.r))
		;
	until = net_arm(n);
	ptl_leave(ni);
	now = base_now_ns();
	if (until <= now)
		return 0;
	until = (until - now + 999999) / 1000000;
	return until > REST_MS ? REST_MS : (int)until;
}

/* The application sleeps in a wait: how long it is left alone, in milliseconds. */
static int rest(struct net *n, bool *slept)
{
	struct net_thread *t = &n->thread;
	uint64_t now, wake;

	/* it says only now what it waits for */
	if (!*slept) {
		*slept = true;
		return ASIDE_MS;
	}
	/* seq_cst: either it sees that we rest, or we that it does not sleep any more; partner: net_thread_rouse */
	atomic_store_explicit(&t->rests, true, memory_order_seq_cst);
	if (!atomic_load_explicit(&n->ni->view.r->stat.waiters, memory_order_seq_cst)) {
		atomic_store_explicit(&t->rests, false, memory_order_relaxed);
		return ASIDE_MS;
	}
	now = base_now_ns();
	wake = atomic_load_explicit(&t->wake, memory_order_relaxed);
	if (wake > now + REST_MS * 1000000ull)
		return REST_MS;
	return (wake > now ? (int)((wake - now) / 1000000) : 0) + ASIDE_MS;
}

void net_thread_rouse(struct net *n)
{
	uint64_t one = 1;

	if (atomic_exchange_explicit(&n->thread.rests, false, memory_order_seq_cst))
		(void)!write(n->thread.event_fd, &one, sizeof(one));
}

/* One turn: waits, and sees who is to do what. */
static int turn(struct net *n, bool fired, uint32_t *rounds, uint64_t *left, bool *slept)
{
	struct ptl_ni *ni = n->ni;
	struct ptl_region *r = ni->view.r;
	uint32_t now = atomic_load_explicit(&ni->rounds, memory_order_relaxed);
	bool polls = now != *rounds || ptl_lock_attended(r);
	uint32_t bit = 1u << (n->slot - ni->net);

	*rounds = now;
	atomic_store_explicit(&n->thread.rests, false, memory_order_relaxed);
	/* who sleeps has armed the socket itself; once it is awake it may go on to compute */
	if (atomic_load_explicit(&r->stat.waiters, memory_order_seq_cst)) {
		*left = 0;
		if (!fired)
			return rest(n, slept);
		*slept = false;
		atomic_fetch_or(&ni->polled, bit);
		ptl_ring(r);
		return ASIDE_MS;
	}
	*slept = false;
	if (!(atomic_load_explicit(&ni->polled, memory_order_relaxed) & bit))
		return work(n); /* nobody else looks at all */
	if (polls) {
		*left = 0;
		return ASIDE_MS;
	}
	if (may_work(n))
		return work(n);
	if (!*left)
		*left = base_now_ns();
	if (base_now_ns() - *left < AWAY_MS * 1000000ull)
		return AWAY_MS / 2;
	return work(n);
}

static void *helper(void *arg)
{
	struct net *n = arg;
	struct epoll_event ev[4];
	uint32_t rounds = 0;
	uint64_t left = 0, count;
	bool slept = false;
	int wait = 0;

	ptl_lock_never_bias(n->ni);
	while (!atomic_load(&n->thread.stop)) {
		int k = epoll_wait(n->thread.epoll_fd, ev, 4, wait);
		bool fired = false;

		for (int i = 0; i < k; i++)
			if (ev[i].data.u32 == ON_SOCKET)
				fired = true;
			else
				(void)!read(n->thread.event_fd, &count, sizeof(count));
		if (!atomic_load(&n->thread.stop))
			wait = turn(n, fired, &rounds, &left, &slept);
	}
	return NULL;
}

static int begin(struct net *n)
{
	sigset_t all, old;
	int err;

	/* the application's signals are for the application's threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&n->thread.thread, NULL, helper, n);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int net_thread_start(struct net *n, int fd)
{
	struct net_thread *t = &n->thread;
	struct epoll_event on_event = { .events = EPOLLIN, .data.u32 = ON_EVENT };
	int err = 0;

	t->fd = fd;
	t->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (t->event_fd < 0 || t->epoll_fd < 0 ||
	    epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->event_fd, &on_event) < 0)
		err = errno;
	if (!err)
		err = begin(n);
	if (err) {
		if (t->event_fd >= 0)
			close(t->event_fd);
		if (t->epoll_fd >= 0)
			close(t->epoll_fd);
		return err;
	}
	t->runs = true;
	pthread_setname_np(t->thread, "postern-net");
	return 0;
}

void net_thread_stop(struct net *n)
{
	struct net_thread *t = &n->thread;
	uint64_t one = 1;

	if (!t->runs)
		return;
	atomic_store(&t->stop, true);
	(void)!write(t->event_fd, &one, sizeof(one));
	pthread_join(t->thread, NULL);
	close(t->event_fd);
	close(t->epoll_fd);
	t->runs = false;
}
