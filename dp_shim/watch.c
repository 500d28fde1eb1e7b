/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The two threads of the library. The watcher waits in Portals for messages to watched
 * endpoints, and for the control messages of flow control. The server waits in epoll for what
 * programs do with descriptors: plain writes, plain reads, the close of the last copy.
 *
 * While an endpoint is spinning the watcher does not wait in Portals: there it would be woken
 * for every message of the interface. It sleeps a millisecond at a time, and looks whether the
 * program still looks for messages itself; if not, the endpoint is watched again. Meanwhile it
 * keeps out of Portals, whose lock is the spinning thread's, unless flow control needs it. Nor does
 * it poll in Portals before it sleeps: the thread that it wakes may need the processor.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "dp_shim/core.h"

enum {
	TICK_US = 1000,
	FEW = 64, /* watched endpoints that are looked at every tick; more: every TICKS */
	TICKS = 10,
	TICKS_OUTSIDE = 64, /* between looks for control messages that nobody waits for */
	AWAIT_MOST = 4096,
	AWAIT_LEFT = 64, /* of these, queues of closed endpoints */
	EPOLL_EVENTS = 32,
	PLAIN_MOST = 16, /* plain writes of an endpoint in a round */
	PLAIN_MS = 2,    /* until a plain write that has to wait is tried again */
};

static int end_fd = -1;    /* tells the server to end */
static bool more_is_plain; /* the next round of the server need not wait */

/* ---- the watcher ----------------------------------------------------------------------------- */

void dp_kick(void)
{
	const struct dp_control c = { .kind = DP_CONTROL_KICK };

	/* seq_cst, both: either the watcher sees the change, or we see that it waits */
	atomic_fetch_add(&dp_lib.changes, 1);
	if (atomic_load(&dp_lib.watcher_waits))
		dp_control_send(dp_lib.id, &c);
}

/* The endpoint of this process with a DPID. Requires dp_lib.lock. */
static struct dp_ep *endpoint_with_id(uint32_t dpid)
{
	struct dp_ep *ep = dp_lib.open;

	while (ep && ep->dpid != dpid)
		ep = ep->next;
	return ep;
}

static void handle_control(const ptl_event_t *event)
{
	struct dp_control c;
	struct dp_ep *ep;

	if (event->type != PTL_EVENT_PUT_END ||
	    !dp_wire_control(event->match_bits, event->hdr_data, (uint32_t)dp_lib.nodes, &c) ||
	    c.kind == DP_CONTROL_KICK)
		return;
	pthread_mutex_lock(&dp_lib.lock);
	ep = endpoint_with_id(c.to);
	if (ep && c.kind == DP_CONTROL_TAKE) {
		pthread_mutex_lock(&ep->tx);
		if (c.target == ((uint32_t)ep->instance & DP_ASKER_MASK))
			dp_credit_give_back(ep, &c, event->initiator);
		pthread_mutex_unlock(&ep->tx);
	} else if (ep) {
		pthread_mutex_lock(&ep->rx);
		if (c.kind == DP_CONTROL_ASK)
			dp_flow_asked(ep, &c, event->initiator);
		else
			dp_flow_returned(ep, &c, event->initiator);
		pthread_mutex_unlock(&ep->rx);
	}
	pthread_mutex_unlock(&dp_lib.lock);
}

static void handle_controls(void)
{
	ptl_event_t event[8];
	int n;

	do {
		PtlEQPollMany(&dp_lib.control_eq, 1, PTL_TIME_LOOK, NULL, event, 8, &n);
		for (int i = 0; i < n; i++)
			handle_control(&event[i]);
	} while (n == 8);
}

/* Take what has come and show the oldest. Requires rx. */
static void watch_endpoint(struct dp_ep *ep)
{
	if (ep->flow && ep->nasking)
		ep->nasking = dp_flow_serve(ep);
	if (atomic_load_explicit(&ep->state, memory_order_relaxed) != DP_WATCHED)
		return;
	dp_see_shown(ep);
	if (dp_collect(ep))
		dp_show(ep);
}

/* Does the program still look for messages itself? */
static bool judge_spinning(struct dp_ep *ep)
{
	uint32_t calls = atomic_load_explicit(&ep->calls, memory_order_relaxed);

	/* whoever has the lock is looking */
	if (calls == ep->calls_seen && pthread_mutex_trylock(&ep->rx) == 0) {
		if (ep->watch == DP_WATCH_AUTO && !ep->dozing)
			atomic_store_explicit(&ep->state, DP_WATCHED, memory_order_relaxed);
		pthread_mutex_unlock(&ep->rx);
	}
	ep->calls_seen = calls;
	return atomic_load_explicit(&ep->state, memory_order_relaxed) == DP_SPINNING;
}

/* A round of the watcher. */
struct round {
	ptl_handle_eq_t eqs[AWAIT_MOST];
	int n;
	bool spinning; /* an endpoint is, or a sender waits for credit */
};

/* Look at all endpoints, at those that are watched only if `all`. */
static void check_all(struct round *r, bool all)
{
	r->n = 0;
	r->eqs[r->n++] = dp_lib.control_eq;
	r->spinning = false;
	pthread_mutex_lock(&dp_lib.lock);
	dp_reap_left();
	for (const struct dp_left *l = dp_lib.left; l && r->n < AWAIT_LEFT; l = l->next)
		r->eqs[r->n++] = l->eq;
	for (struct dp_ep *ep = dp_lib.open; ep; ep = ep->next) {
		bool spins = atomic_load_explicit(&ep->state, memory_order_relaxed) == DP_SPINNING;

		if (!all && !spins && !ep->nasking)
			continue;
		/* a program that spins is not kept from its lock */
		if (spins && !ep->nasking && judge_spinning(ep)) {
			r->spinning = true;
			continue;
		}
		pthread_mutex_lock(&ep->rx);
		watch_endpoint(ep);
		if (ep->nasking ||
		    atomic_load_explicit(&ep->state, memory_order_relaxed) == DP_SPINNING)
			r->spinning = true;
		else if (r->n < AWAIT_MOST)
			r->eqs[r->n++] = ep->pool.eq;
		pthread_mutex_unlock(&ep->rx);
	}
	pthread_mutex_unlock(&dp_lib.lock);
}

static void *watch_endpoints(void *unused)
{
	static struct round r;
	unsigned int ticks = 0, outside = 0;
	int which, watched = 0;
	bool all = true;

	(void)unused;
	while (!atomic_load(&dp_lib.ending)) {
		uint32_t changes = atomic_load(&dp_lib.changes);

		if (!r.spinning || atomic_load(&dp_lib.flows) || ++outside % TICKS_OUTSIDE == 0)
			handle_controls();
		check_all(&r, all);
		if (all)
			watched = r.n;
		if (r.spinning) {
			usleep(TICK_US);
			all = watched <= FEW || ++ticks % TICKS == 0;
			continue;
		}
		if (!all) { /* nothing spins any more: now the others count */
			all = true;
			continue;
		}
		atomic_store(&dp_lib.watcher_waits, true);
		if (changes == atomic_load(&dp_lib.changes))
			PtlEQAwait(r.eqs, r.n, PTL_TIME_ASLEEP, &which);
		atomic_store(&dp_lib.watcher_waits, false);
	}
	return NULL;
}

/* ---- the server ------------------------------------------------------------------------------ */

/* Try to send a plain write. False: it has to wait. */
static bool send_plain_write(struct dp_ep *ep)
{
	enum dp_wait wait;
	int err = dp_send_now(ep, ep->plain, ep->plain_length, &wait);

	if (err == EAGAIN &&
	    (wait != DP_WAIT_LOOKUP || base_now_ms() - ep->plain_since < DP_FIRST_WAIT_MS))
		return false;
	if (err)
		atomic_fetch_add(&ep->unsent, 1);
	ep->plain_length = -1;
	return true;
}

/* Will nothing be written any more? */
static bool at_end(const struct dp_ep *ep)
{
	struct pollfd p = { .fd = ep->kept, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1;
}

/* Take the next plain write from the socket. */
static bool take_plain_write(struct dp_ep *ep)
{
	ssize_t n;

	if (!ep->plain) {
		ep->plain = malloc(DP_MAX_MESSAGE + 1);
		if (!ep->plain)
			return false;
	}
	n = recv(ep->kept, ep->plain, DP_MAX_MESSAGE + 1, MSG_DONTWAIT | MSG_TRUNC);
	/* 0 is the end, too */
	if (n < 0 || (n == 0 && at_end(ep)))
		return false;
	ep->plain_length = n > DP_MAX_MESSAGE ? DP_MAX_MESSAGE + 1 : (int)n;
	ep->plain_since = base_now_ms();
	return true;
}

/* Send plain writes, a few in a round. True: one has to wait. Requires tx. */
static bool serve_plain(struct dp_ep *ep)
{
	int n = 0;

	do {
		if (n == PLAIN_MOST) {
			more_is_plain = true;
			return true;
		}
		if (ep->plain_length >= 0 && !send_plain_write(ep))
			return true;
		n++;
	} while (take_plain_write(ep));
	return false;
}

/* The program did something with a descriptor. True: something has to wait. */
static bool serve_endpoint(struct dp_ep *ep)
{
	bool waits, over;

	pthread_mutex_lock(&ep->tx);
	waits = serve_plain(ep);
	pthread_mutex_unlock(&ep->tx);
	over = !waits && dp_hung_up(ep);
	if (over) {
		dp_release(ep);
		return false;
	}
	pthread_mutex_lock(&ep->rx);
	watch_endpoint(ep);
	pthread_mutex_unlock(&ep->rx);
	return waits;
}

/* Is it open? Events may be of one that was closed meanwhile. Requires dp_lib.lock. */
static bool is_open_endpoint(const struct dp_ep *ep)
{
	const struct dp_ep *e = dp_lib.open;

	while (e && e != ep)
		e = e->next;
	return e;
}

static bool serve_waiting(void)
{
	bool waits = false;

	pthread_mutex_lock(&dp_lib.lock);
	for (struct dp_ep *ep = dp_lib.open, *next; ep; ep = next) {
		next = ep->next;
		if (ep->plain_length >= 0)
			waits = serve_endpoint(ep) || waits;
	}
	pthread_mutex_unlock(&dp_lib.lock);
	return waits;
}

static void *serve_descriptors(void *unused)
{
	struct epoll_event events[EPOLL_EVENTS];
	bool waits = false;

	(void)unused;
	while (!atomic_load(&dp_lib.ending)) {
		const int ms = more_is_plain ? 0 : waits ? PLAIN_MS : -1;
		int n = epoll_wait(dp_lib.epoll, events, EPOLL_EVENTS, ms);

		more_is_plain = false;
		if (waits)
			waits = serve_waiting();
		for (int i = 0; i < n; i++) {
			struct dp_ep *ep = events[i].data.ptr;

			if (!ep)
				continue;
			pthread_mutex_lock(&dp_lib.lock);
			if (is_open_endpoint(ep))
				waits = serve_endpoint(ep) || waits;
			pthread_mutex_unlock(&dp_lib.lock);
		}
	}
	return NULL;
}

/* ---- start and end --------------------------------------------------------------------------- */

static int start_thread(pthread_t *thread, void *(*run)(void *), const char *name)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		pthread_setname_np(*thread, name);
	return err;
}

static int open_epoll(void)
{
	struct epoll_event end = { .events = EPOLLIN, .data.ptr = NULL };

	dp_lib.epoll = epoll_create1(EPOLL_CLOEXEC);
	end_fd = eventfd(0, EFD_CLOEXEC);
	if (dp_lib.epoll < 0 || end_fd < 0)
		return -1;
	return epoll_ctl(dp_lib.epoll, EPOLL_CTL_ADD, end_fd, &end);
}

int dp_threads_start(void)
{
	int err = 0;

	atomic_store(&dp_lib.ending, false);
	if (open_epoll() < 0)
		err = errno;
	if (!err)
		err = start_thread(&dp_lib.watcher, watch_endpoints, "dp-watch");
	if (!err) {
		err = start_thread(&dp_lib.server, serve_descriptors, "dp-serve");
		if (err) {
			atomic_store(&dp_lib.ending, true);
			dp_kick();
			pthread_join(dp_lib.watcher, NULL);
		}
	}
	if (!err)
		return 0;
	if (dp_lib.epoll >= 0)
		close(dp_lib.epoll);
	if (end_fd >= 0)
		close(end_fd);
	dp_lib.epoll = end_fd = -1;
	errno = err;
	base_warn("DP: cannot start its threads: %m");
	errno = err;
	return -1;
}

void dp_threads_stop(void)
{
	const uint64_t one = 1;

	atomic_store(&dp_lib.ending, true);
	dp_kick();
	if (write(end_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(dp_lib.server, NULL);
	pthread_join(dp_lib.watcher, NULL);
	close(end_fd);
	close(dp_lib.epoll);
	dp_lib.epoll = end_fd = -1;
}
