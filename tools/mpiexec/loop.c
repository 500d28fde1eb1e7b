/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * epoll behind the few functions of loop.h.
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "tools/mpiexec/loop.h"

enum { BATCH = 64, SIGNALS = 65 };

static int epoll_fd = -1;
static struct timer *timers;

static void (*take_signal)(int sig);
static sigset_t found;   /* the mask before */
static sigset_t blocked; /* while this program runs */
static sigset_t let_in;  /* while it waits */
static volatile sig_atomic_t came[SIGNALS];
static struct {
	bool set;
	struct sigaction before;
} actions[SIGNALS];

int loop_init(void)
{
	sigprocmask(SIG_BLOCK, NULL, &found);
	blocked = let_in = found;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd < 0 ? -errno : 0;
}

int loop_add(struct watch *watch, int fd, uint32_t events,
	     void (*ready)(struct watch *watch, uint32_t events))
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	*watch = (struct watch){ .fd = fd, .ready = ready };
	return 0;
}

int loop_change(struct watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	if (watch->fd < 0)
		return 0;
	return epoll_ctl(epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) ? -errno : 0;
}

int loop_remove(struct watch *watch)
{
	int fd = watch->fd;

	if (fd >= 0)
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	watch->fd = -1;
	return fd;
}

void loop_close(struct watch *watch)
{
	int fd = loop_remove(watch);

	if (fd >= 0)
		close(fd);
}

/* ---- timers ---------------------------------------------------------------------------------- */

static int64_t loop_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void loop_timer(struct timer *timer, double seconds, void (*over)(void))
{
	if (!timer->over) {
		timer->next = timers;
		timers = timer;
	}
	timer->over = over;
	timer->due = loop_now() + (int64_t)(seconds * 1e9);
}

/* Milliseconds to the next timer, -1 if there is none. */
static int next_due(void)
{
	const int64_t most = 3600 * (int64_t)1000;
	int64_t first = 0;
	int64_t ms;

	for (const struct timer *timer = timers; timer; timer = timer->next)
		if (timer->due && (!first || timer->due < first))
			first = timer->due;
	if (!first)
		return -1;
	ms = (first - loop_now() + 999999) / 1000000;
	return ms < 0 ? 0 : (int)(ms < most ? ms : most);
}

static void run_timers(void)
{
	const int64_t t = timers ? loop_now() : 0;

	for (struct timer *timer = timers; timer; timer = timer->next) {
		if (!timer->due || timer->due > t)
			continue;
		timer->due = 0;
		timer->over();
	}
}

/* ---- signals --------------------------------------------------------------------------------- */

static void note_signal(int sig)
{
	came[sig] = 1;
}

void loop_signals(const int *signals, int count, void (*take)(int sig))
{
	struct sigaction note = { .sa_handler = note_signal };

	take_signal = take;
	for (int i = 0; i < count; i++) {
		int sig = signals[i];

		sigaddset(&blocked, sig);
		sigdelset(&let_in, sig);
		sigaction(sig, NULL, &actions[sig].before);
		actions[sig].set = actions[sig].before.sa_handler != SIG_IGN || sig == SIGCHLD;
	}
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	for (int i = 0; i < count; i++)
		if (actions[signals[i]].set)
			sigaction(signals[i], &note, NULL);
}

void loop_signals_back(void)
{
	for (int sig = 1; sig < SIGNALS; sig++)
		if (actions[sig].set)
			sigaction(sig, &actions[sig].before, NULL);
	sigprocmask(SIG_SETMASK, &found, NULL);
}

static void deliver_signals(void)
{
	/* the wait lets signals in only when nothing else was ready */
	sigprocmask(SIG_SETMASK, &let_in, NULL);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	/* a continued process does not stop for an earlier signal, as in the kernel */
	if (came[SIGCONT])
		came[SIGTSTP] = 0;
	for (int sig = 1; sig < SIGNALS; sig++) {
		if (!came[sig])
			continue;
		came[sig] = 0;
		take_signal(sig);
	}
}

static void deliver_events(const struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++) {
		struct watch *watch = events[i].data.ptr;

		if (watch->fd >= 0)
			watch->ready(watch, events[i].events);
	}
}

static int loop_once(int ms)
{
	struct epoll_event events[BATCH];
	int n = epoll_pwait(epoll_fd, events, BATCH, ms, &let_in);

	if (n < 0 && errno != EINTR)
		return -errno;
	deliver_events(events, n);
	run_timers();
	deliver_signals();
	return 0;
}

void loop_poll(void)
{
	loop_once(0); /* what fails here fails again in the wait */
}

int loop_wait(void)
{
	return loop_once(next_due());
}
