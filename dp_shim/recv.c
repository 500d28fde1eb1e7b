/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The receiving side: dp_read, dp_fsync, dp_from, and the picture of the oldest message in the
 * endpoint's socket.
 *
 * A program that looks for messages itself finds them in the pool without a system call; the
 * endpoint is *spinning*. Else it is *watched*: the library's thread puts a copy of the oldest
 * message that waits into the socket, so that the descriptor is readable and a plain read gets
 * the message. dp_read takes the copy out again; if it is gone, a plain read had the message.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "dp_shim/core.h"

enum {
	POLLS = 32,     /* without letting go of the lock */
	EMPTY_MOST = 3, /* such results in a row within EMPTY_NS: the program spins */
	EMPTY_NS = 20000,
	SPIN_FIRST_NS = 2000, /* before the endpoint counts as spinning, ... */
	SPIN_MORE_NS = 20000, /* ... and the descriptor is asked whether it blocks */
	SLEEP_FIRST_MS = 2,   /* in Portals: the quickest wake-up; no signal ends it */
};

/* ---- the socket ------------------------------------------------------------------------------ */

void dp_show(struct dp_ep *ep)
{
	const struct dp_pool *pool = &ep->pool;
	const struct dp_token *t = &pool->ring[pool->read & pool->mask];

	if (!ep->shown && pool->read != pool->filled)
		ep->shown = send(ep->kept, t->at, t->length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

void dp_see_shown(struct dp_ep *ep)
{
	int left;

	/* while the reader is woken the kernel counts 1 byte */
	if (!ep->shown || ioctl(ep->kept, SIOCOUTQ, &left) < 0 || left > 1)
		return;
	ep->shown = false;
	dp_drop_oldest(ep);
}

/* Take the copy of the oldest message out of the socket. False: a plain read has done so. */
static bool take_shown(struct dp_ep *ep, int fd)
{
	ssize_t n = recv(fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC);

	ep->shown = false;
	if (n >= 0)
		return true;
	dp_drop_oldest(ep);
	return false;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void set_state(struct dp_ep *ep, enum dp_state state)
{
	if (atomic_load_explicit(&ep->state, memory_order_relaxed) == (int)state)
		return;
	atomic_store_explicit(&ep->state, (int)state, memory_order_relaxed);
	dp_kick();
}

static void start_spinning(struct dp_ep *ep)
{
	/* a thread that sleeps in the kernel is woken by the watcher only */
	if (ep->watch == DP_WATCH_AUTO && !ep->asleep)
		set_state(ep, DP_SPINNING);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The oldest message that waits, or NULL. */
static inline struct dp_token *find_waiting(struct dp_ep *ep, int fd)
{
	struct dp_pool *pool = &ep->pool;

	while (pool->read != pool->filled || dp_collect(ep)) {
		if (__builtin_expect(!ep->shown, 1) || take_shown(ep, fd))
			return &pool->ring[pool->read & pool->mask];
	}
	return NULL;
}

/* A look in vain. */
static void count_empty(struct dp_ep *ep)
{
	uint64_t now;

	if (atomic_load_explicit(&ep->state, memory_order_relaxed) == DP_SPINNING)
		return;
	now = base_now_ns();
	if (!ep->empty || now - ep->empty_since > EMPTY_NS) {
		ep->empty = 0;
		ep->empty_since = now;
	}
	if (++ep->empty >= EMPTY_MOST)
		start_spinning(ep);
}

/* The watching thread only compares it with what it was. */
static inline void count_poll(struct dp_ep *ep)
{
	atomic_store_explicit(&ep->calls,
			      atomic_load_explicit(&ep->calls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* Look again and again for some time; the lock is let go of now and then. */
static bool poll_for(struct dp_ep *ep, int fd, uint64_t ns)
{
	const uint64_t end = base_now_ns() + ns;
	bool yield;

	do {
		count_poll(ep);
		for (int i = 0; i < POLLS; i++) {
			if (dp_collect(ep))
				return true;
			if (ep->yield_due)
				break;
			base_cpu_relax();
		}
		yield = ep->yield_due;
		pthread_mutex_unlock(&ep->rx);
		if (yield)
			sched_yield();
		pthread_mutex_lock(&ep->rx);
		if (!dp_is_still(ep, fd))
			return false;
	} while (base_now_ns() < end);
	return false;
}

static void begin_sleep(struct dp_ep *ep)
{
	atomic_fetch_add_explicit(&ep->sleepers, 1, memory_order_relaxed);
	pthread_mutex_unlock(&ep->rx);
}

static void end_sleep(struct dp_ep *ep)
{
	/* release: dp_release() waits for this before it takes away what the thread used */
	atomic_fetch_sub_explicit(&ep->sleepers, 1, memory_order_release);
	pthread_mutex_lock(&ep->rx);
}

/* Sleep in Portals for a while. */
static void sleep_short(struct dp_ep *ep)
{
	ptl_handle_eq_t eq = ep->pool.eq;
	int which;

	ep->dozing++;
	begin_sleep(ep);
	PtlEQAwait(&eq, 1, SLEEP_FIRST_MS, &which);
	end_sleep(ep);
	ep->dozing--;
}

/* Sleep in the kernel, as read(2) would, until the watching thread shows a message. */
static int sleep_long(struct dp_ep *ep, int fd)
{
	ssize_t n;
	int err;

	set_state(ep, DP_WATCHED);
	ep->asleep++;
	begin_sleep(ep);
	n = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC);
	err = errno;
	end_sleep(ep);
	if (--ep->asleep == 0 && ep->watch == DP_WATCH_NEVER)
		set_state(ep, DP_SPINNING);
	errno = err;
	return n < 0 ? -1 : 0;
}

static bool is_nonblocking(struct dp_ep *ep, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	ep->nonblocking = flags >= 0 && flags & O_NONBLOCK;
	return ep->nonblocking;
}

/* Poll a while as if the descriptor blocked, if it did so when last asked. To ask takes a system
 * call, and a peer that finds this process outside of Portals that long delivers by itself. */
static bool poll_unasked(struct dp_ep *ep, int fd)
{
	if (ep->nonblocking)
		return false;
	if (poll_for(ep, fd, SPIN_FIRST_NS))
		return true;
	if (!dp_lib.spin_ns)
		return false;
	start_spinning(ep);
	return poll_for(ep, fd, SPIN_MORE_NS);
}

/* There is no message: wait until one may be there. -1 with errno: give up. */
static int wait_for_message(struct dp_ep *ep, int fd)
{
	count_empty(ep);
	if (poll_unasked(ep, fd) || !dp_is_still(ep, fd))
		return 0;
	if (is_nonblocking(ep, fd)) {
		errno = EAGAIN;
		return -1;
	}
	start_spinning(ep);
	if (poll_for(ep, fd, dp_lib.spin_ns) || !dp_is_still(ep, fd))
		return 0;
	sleep_short(ep);
	if (!dp_is_still(ep, fd) || dp_collect(ep) || ep->watch == DP_WATCH_NEVER)
		return 0;
	return sleep_long(ep, fd);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct dp_token *wait_for_token(struct dp_ep *ep, int fd)
{
	struct dp_token *t = find_waiting(ep, fd);

	while (__builtin_expect(!t, 0)) {
		int err = wait_for_message(ep, fd);

		if (!dp_is_still(ep, fd)) {
			errno = EBADF;
			return NULL;
		}
		if (err < 0)
			return NULL;
		t = find_waiting(ep, fd);
	}
	return t;
}

int dp_read(int fd, char **address)
{
	struct dp_ep *ep = dp_enter_rx(fd);
	struct dp_token *t;
	int length = -1;

	if (!ep)
		return -1;
	if (!address) {
		pthread_mutex_unlock(&ep->rx);
		errno = EFAULT;
		return -1;
	}
	count_poll(ep);
	t = wait_for_token(ep, fd);
	if (t) {
		ep->pool.read++;
		ep->empty = 0;
		*address = t->at;
		length = (int)t->length;
		if (atomic_load_explicit(&ep->state, memory_order_relaxed) == DP_WATCHED &&
		    (ep->pool.read != ep->pool.filled || dp_collect(ep)))
			dp_show(ep);
	}
	pthread_mutex_unlock(&ep->rx);
	return length;
}

int dp_fsync(int fd, int n)
{
	struct dp_ep *ep = dp_enter_rx(fd);

	if (!ep)
		return -1;
	if (n < 0)
		errno = EINVAL;
	else
		n = dp_flush(ep, n);
	pthread_mutex_unlock(&ep->rx);
	return n < 0 ? -1 : n;
}

int dp_from(int fd, const char *address, int *nid, int *dpid)
{
	struct dp_ep *ep = dp_enter_rx(fd);
	const struct dp_token *found = NULL;

	if (!ep)
		return -1;
	for (uint64_t i = ep->pool.read; i-- > ep->pool.flushed && !found;) {
		const struct dp_token *t = &ep->pool.ring[i & ep->pool.mask];

		if (t->at == address && !t->freed)
			found = t;
	}
	if (found && nid)
		*nid = (int)found->from->nid;
	if (found && dpid)
		*dpid = (int)found->from->dpid;
	pthread_mutex_unlock(&ep->rx);
	if (found)
		return 0;
	errno = EINVAL;
	return -1;
}
