/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The helper thread. A socket cannot ring the doorbell that the application's threads sleep
 * on, so this thread does. The thread itself sleeps in the kernel. It is notified of arrivals
 * only while the socket is armed: once per sleep of the application, and all the time while
 * nobody else polls.
 *
 * The thread stands aside while the application polls, which it sees from the interface's
 * count of rounds. It checks again soon at first, as an application that computes is in the
 * library only for moments. It checks less and less often while the application goes on
 * polling. Where the two share one core it checks rarely: checks would cost the application
 * more than help gives it.
 *
 * While the application sleeps in a wait, the thread rests. It rests until something is due
 * that the sleeper may have left to it by then, or until it hears that the application goes
 * on. Without that notice it would come too late to help.
 *
 * While the application computes, the thread does its work, if PTL_PROGRESS and the cores
 * allow that. If they do not, it still gives signs of life to peers, but only after a while.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/config.h"
#include "base/cpu.h"
#include "base/wake.h"
#include "nal/net/net.h"

#define ASIDE_LEAST_NS 20000ull      /* between checks of an application that polls: at first */
#define ASIDE_MOST_NS  2000000ull    /* and when it goes on, or when we cannot help it */
#define AGAIN_NS       100000ull     /* to the second of two checks */
#define SLACK_NS       1000ul        /* that the kernel may add to a sleep; its default is 50 us */
#define AWAY_NS        500000000ull  /* computing this long: the thread works in any mode */
#define REST_NS        1000000000ull /* at most */
#define WORK_UNIT_NS   1000000ull    /* unit of sleeps between work without an event */
#define BATCH_MOST     64            /* rounds at most with the lock held */

enum { ON_EVENT, ON_SOCKET };

/* The thread's observations of the application. */
struct sight {
	uint32_t rounds; /* rounds of progress at the last check */
	/* when it was first seen to compute while we may not work; 0: it was not */
	uint64_t left;
	uint64_t aside; /* until the next check of an application that polls */
	bool slept;
	bool again; /* the next check follows soon after the last one */
	bool roams; /* this process may run on more than one core */
};

void net_thread_arm(struct net *n)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.u32 = ON_SOCKET };
	struct net_thread *t = &n->thread;

	if (t->fd < 0)
		return;
	if (epoll_ctl(t->epoll_fd, t->listed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, t->fd, &ev) == 0)
		t->listed = true;
	t->polls = 0;
}

void net_thread_disarm(struct net *n)
{
	struct net_thread *t = &n->thread;

	if (!t->listed)
		return;
	epoll_ctl(t->epoll_fd, EPOLL_CTL_DEL, t->fd, NULL);
	t->listed = false;
	/* the thread may rest, relying on notification, and nobody tells it when the
	 * application goes on to compute */
	base_wake_call(&t->event);
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

/* Should the application get help soon after it stops polling? */
static bool hurries(const struct net *n, const struct sight *s)
{
	return s->roams && may_work(n);
}

/* The application polled just now: how long to leave it alone. Each time half as long again,
 * so that it computes without help for at most half of the time that it polled before. An
 * application that is seen polling each time may have been away in between, again and again.
 * So at last every other check follows soon after the one before it. */
static uint64_t stand_aside(const struct net *n, struct sight *s)
{
	uint64_t ns = s->aside;

	if (!hurries(n, s))
		return ASIDE_MOST_NS;
	if (ns >= ASIDE_MOST_NS) {
		s->again = !s->again;
		return s->again ? AGAIN_NS : ASIDE_MOST_NS;
	}
	s->aside += s->aside / 2;
	return ns;
}

/* Do what there is to do. Returns how long the thread may sleep then. */
static uint64_t thread_work(struct net *n)
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
	until = (until - now + WORK_UNIT_NS - 1) / WORK_UNIT_NS * WORK_UNIT_NS;
	return until > REST_NS ? REST_NS : until;
}

/* The application sleeps in a wait: how long to leave it alone. */
static uint64_t rest(struct net *n, struct sight *s)
{
	struct net_thread *t = &n->thread;
	uint64_t now, wake;

	/* only now the sleeper has published what it waits for */
	if (!s->slept) {
		s->slept = true;
		return ASIDE_MOST_NS;
	}
	/* seq_cst: either the application sees that we rest, or we see that it no longer
	 * sleeps; partner: net_thread_rouse */
	atomic_store_explicit(&t->rests, true, memory_order_seq_cst);
	if (!atomic_load_explicit(&n->ni->view.r->stat.waiters, memory_order_seq_cst)) {
		atomic_store_explicit(&t->rests, false, memory_order_relaxed);
		return ASIDE_MOST_NS;
	}
	s->aside = ASIDE_LEAST_NS;
	now = base_now_ns();
	wake = atomic_load_explicit(&t->wake, memory_order_relaxed);
	if (wake > now + REST_NS)
		return REST_NS;
	return (wake > now ? wake - now : 0) + ASIDE_MOST_NS;
}

void net_thread_rouse(struct net *n)
{
	if (atomic_exchange_explicit(&n->thread.rests, false, memory_order_seq_cst))
		base_wake_call(&n->thread.event);
}

/* One round: decide who works. Returns how long the thread may sleep then. */
static uint64_t thread_turn(struct net *n, bool fired, struct sight *s)
{
	struct ptl_ni *ni = n->ni;
	struct ptl_region *r = ni->view.r;
	uint32_t now = atomic_load_explicit(&ni->rounds, memory_order_relaxed);
	bool polls = now != s->rounds || ptl_lock_attended(r);

	s->rounds = now;
	atomic_store_explicit(&n->thread.rests, false, memory_order_relaxed);
	/* the sleeper has armed the socket itself; once awake it may go on to compute */
	if (atomic_load_explicit(&r->stat.waiters, memory_order_seq_cst)) {
		s->left = 0;
		if (!fired)
			return rest(n, s);
		s->slept = false;
		atomic_fetch_or(&ni->polled, n->bit);
		ptl_ring_doorbell(r);
		return ASIDE_MOST_NS;
	}
	s->slept = false;
	if (!(atomic_load_explicit(&ni->polled, memory_order_relaxed) & n->bit))
		return thread_work(n); /* nobody else polls at all */
	if (polls) {
		s->left = 0;
		return stand_aside(n, s);
	}
	s->aside = ASIDE_LEAST_NS;
	if (may_work(n))
		return thread_work(n);
	if (!s->left)
		s->left = base_now_ns();
	if (base_now_ns() - s->left < AWAY_NS)
		return AWAY_NS / 2;
	return thread_work(n);
}

/* Sleep for `ns`, or until a notification. Returns whether the socket gave it. epoll_wait()
 * alone would count milliseconds. */
static bool sleep_for(struct net_thread *t, uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000) };
	struct pollfd set = { .fd = t->epoll_fd, .events = POLLIN };
	struct epoll_event ev[4];
	bool fired = false;

	if (ppoll(&set, 1, &time, NULL) <= 0)
		return false;
	for (int i = epoll_wait(t->epoll_fd, ev, 4, 0); i-- > 0;)
		if (ev[i].data.u32 == ON_SOCKET)
			fired = true;
		else
			base_wake_heard(&t->event);
	return fired;
}

static bool may_roam(void)
{
	cpu_set_t cores;

	return sched_getaffinity(0, sizeof(cores), &cores) < 0 || CPU_COUNT(&cores) > 1;
}

static void *net_helper(void *arg)
{
	struct net *n = arg;
	struct sight s = { .aside = ASIDE_LEAST_NS, .roams = may_roam() };
	uint64_t ns = 0;

	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	ptl_lock_never_bias(n->ni);
	while (!atomic_load(&n->thread.stop)) {
		bool fired = sleep_for(&n->thread, ns);

		if (!atomic_load(&n->thread.stop))
			ns = thread_turn(n, fired, &s);
	}
	return NULL;
}

static int begin_thread(struct net *n)
{
	sigset_t all, old;
	int err;

	/* the application's signals are for the application's threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&n->thread.thread, NULL, net_helper, n);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int net_thread_start(struct net *n, int fd)
{
	struct net_thread *t = &n->thread;
	struct epoll_event on_event = { .events = EPOLLIN, .data.u32 = ON_EVENT };
	int err = -base_wake_open(&t->event);

	t->fd = fd;
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!err &&
	    (t->epoll_fd < 0 || epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->event.fd, &on_event) < 0))
		err = errno;
	if (!err)
		err = begin_thread(n);
	if (err) {
		base_wake_close(&t->event);
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

	if (!t->runs)
		return;
	atomic_store(&t->stop, true);
	base_wake_call(&t->event);
	pthread_join(t->thread, NULL);
	base_wake_close(&t->event);
	close(t->epoll_fd);
	t->runs = false;
}
