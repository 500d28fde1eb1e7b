/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The life of an endpoint: open, mmap, ctl, close.
 *
 * Its descriptor is one end of a pair of sockets. The other end is bound to a name made of node
 * id and DPID, which the kernel gives to one process only, and gives back when that process
 * ends. When the last copy of the descriptor is closed, the library's end hangs up.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/random.h"
#include "dp_shim/core.h"

enum {
	FIRST_FREE = 0x800000, /* ids that dp_open(0) gives */
	FREE_TRIES = 4096,
	CHILD_MS = 300, /* a new child lets go of what it inherited within this time */
	SOCKET_BYTES = 4 * DP_MAX_MESSAGE,
};

/* ---- descriptors ----------------------------------------------------------------------------- */

static int bind_dpid_name(const struct dp_ep *ep)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "dp-%u-%u-%d-%u",
			 (unsigned int)geteuid(), dp_lib.job, dp_lib.nid, ep->dpid);

	return bind(ep->kept, (const struct sockaddr *)&name,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

static int bind_any_name(struct dp_ep *ep)
{
	static uint32_t next = FIRST_FREE;

	for (int i = 0; i < FREE_TRIES; i++) {
		ep->dpid = next;
		next = next == DP_MAX_DPID ? FIRST_FREE : next + 1;
		if (bind_dpid_name(ep) == 0)
			return 0;
		if (errno != EADDRINUSE)
			return -1;
	}
	return -1;
}

static int make_sockets(struct dp_ep *ep)
{
	const int bytes = SOCKET_BYTES;
	struct stat st;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -1;
	ep->fd = fds[0];
	ep->kept = fds[1];
	for (int i = 0; i < 2; i++)
		setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (fstat(ep->fd, &st) == 0) {
		ep->inode = st.st_ino;
		return 0;
	}
	close(fds[0]);
	close(fds[1]);
	return -1;
}

bool dp_hung_up(const struct dp_ep *ep)
{
	struct pollfd p = { .fd = ep->kept, .events = 0 };

	return poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR | POLLNVAL);
}

/* Close the endpoints whose descriptors are gone: its thread may not have come to that. */
static bool sweep_closed(void)
{
	bool any = false;

	for (struct dp_ep *ep = dp_lib.open, *next; ep; ep = next) {
		next = ep->next;
		if (!dp_hung_up(ep))
			continue;
		dp_release(ep);
		any = true;
	}
	return any;
}

/* ---- open ------------------------------------------------------------------------------------ */

static struct dp_ep *get_endpoint(void)
{
	struct dp_ep *ep = dp_lib.unused;

	if (ep) {
		dp_lib.unused = ep->next;
		return ep;
	}
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return NULL;
	pthread_mutex_init(&ep->rx, NULL);
	pthread_mutex_init(&ep->tx, NULL);
	return ep;
}

static void unget_endpoint(struct dp_ep *ep)
{
	ep->next = dp_lib.unused;
	dp_lib.unused = ep;
}

/* Sockets and a name. 0, or -1 with errno and nothing left. */
static int claim_dpid(struct dp_ep *ep, uint32_t dpid)
{
	int err;

	if (make_sockets(ep) < 0)
		return -1;
	ep->dpid = dpid;
	if ((dpid ? bind_dpid_name(ep) : bind_any_name(ep)) == 0)
		return 0;
	err = errno;
	close(ep->fd);
	close(ep->kept);
	errno = err;
	return -1;
}

/* Obstacles that may be gone soon: endpoints whose descriptors were closed, and the copy of
 * a name that a new child process has. */
static int claim_again(struct dp_ep *ep, uint32_t dpid)
{
	const int err = errno;

	if (err != EADDRINUSE && err != EMFILE)
		return -1;
	if (sweep_closed() && claim_dpid(ep, dpid) == 0)
		return 0;
	while (errno == EADDRINUSE && base_now_ms() - dp_lib.forked_at < CHILD_MS) {
		usleep(1000);
		if (claim_dpid(ep, dpid) == 0)
			return 0;
	}
	errno = err;
	return -1;
}

void dp_publish(struct dp_ep *ep)
{
	const struct dp_record r = { .open = true,
				     .flow = ep->flow,
				     .nid = (uint32_t)dp_lib.nid,
				     .longest = (uint32_t)ep->pool.longest,
				     .instance = ep->instance };

	dp_wire_put_record(ep->record, &r);
}

static int attach_record(struct dp_ep *ep)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	const ptl_md_t md = { .start = ep->record,
			      .length = sizeof(ep->record),
			      .threshold = PTL_MD_THRESH_INF,
			      .options = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE |
					 PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
			      .eq_handle = PTL_EQ_NONE };

	dp_publish(ep);
	/* before the entry for all that are not here */
	if (PtlMEMDAttach(dp_lib.ni, DP_PORTAL_LOOKUP, any, ep->dpid, 0, PTL_RETAIN, PTL_INS_BEFORE,
			  md, PTL_RETAIN, &ep->record_me, NULL) == PTL_OK)
		return 0;
	errno = ENOMEM;
	return -1;
}

static void begin_endpoint(struct dp_ep *ep)
{
	ep->instance = 0;
	while (!ep->instance && base_random(&ep->instance, sizeof(ep->instance)))
		;
	ep->record_me = PTL_INVALID_HANDLE;
	ep->words_me = PTL_INVALID_HANDLE;
	ep->words_eq = PTL_EQ_NONE;
	ep->sent_eq = PTL_EQ_NONE;
	ep->target_error = ENOTCONN;
	ep->plain_length = -1;
	atomic_store_explicit(&ep->state, DP_WATCHED, memory_order_relaxed);
}

/* Make all that is behind the descriptor. Both locks are held. */
static int fill_endpoint(struct dp_ep *ep)
{
	struct epoll_event events = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				      .data.ptr = ep };
	dpmmap_t want = { .base = NULL };

	begin_endpoint(ep);
	dp_pool_shape(&want);
	if (!ep->instance) {
		errno = EIO;
		return -1;
	}
	if (dp_pool_open(ep, &ep->pool, &want) < 0)
		return -1;
	if (!dp_table_set(ep->fd, ep)) {
		errno = EMFILE;
		return -1;
	}
	if (attach_record(ep) < 0)
		return -1;
	return epoll_ctl(dp_lib.epoll, EPOLL_CTL_ADD, ep->kept, &events);
}

static void lock_both(struct dp_ep *ep)
{
	pthread_mutex_lock(&ep->rx);
	pthread_mutex_lock(&ep->tx);
}

static void unlock_both(struct dp_ep *ep)
{
	pthread_mutex_unlock(&ep->tx);
	pthread_mutex_unlock(&ep->rx);
}

static int open_endpoint(struct dp_ep *ep)
{
	int fd = ep->fd, err = 0;

	lock_both(ep);
	ep->next = dp_lib.open;
	dp_lib.open = ep;
	if (fill_endpoint(ep) < 0)
		err = errno;
	else
		atomic_store_explicit(&ep->open, true, memory_order_release);
	unlock_both(ep);
	if (!err) {
		dp_kick();
		return fd;
	}
	dp_release(ep);
	close(fd);
	errno = err;
	return -1;
}

static int open_dpid_locked(uint32_t dpid)
{
	struct dp_ep *ep;

	if (dp_start() < 0)
		return -1;
	ep = get_endpoint();
	if (!ep) {
		errno = ENOMEM;
		return -1;
	}
	if (claim_dpid(ep, dpid) < 0 && claim_again(ep, dpid) < 0) {
		unget_endpoint(ep);
		return -1;
	}
	return open_endpoint(ep);
}

int dp_open(int dpid)
{
	int fd;

	if (dpid < 0 || dpid > DP_MAX_DPID) {
		errno = EINVAL;
		return -1;
	}
	pthread_mutex_lock(&dp_lib.lock);
	fd = open_dpid_locked((uint32_t)dpid);
	pthread_mutex_unlock(&dp_lib.lock);
	return fd;
}

/* ---- close ----------------------------------------------------------------------------------- */

static void unlist_endpoint(const struct dp_ep *ep)
{
	struct dp_ep **at = &dp_lib.open;

	while (*at && *at != ep)
		at = &(*at)->next;
	if (*at)
		*at = ep->next;
}

static void free_senders(struct dp_ep *ep)
{
	for (int i = 0; i < DP_SENDERS; i++) {
		while (ep->sender[i]) {
			struct dp_sender *s = ep->sender[i];

			ep->sender[i] = s->next;
			free(s);
		}
	}
}

/* Forget all but the locks, the state of threads, and `calls`. Both locks are held. */
static void clear_endpoint(struct dp_ep *ep)
{
	free_senders(ep);
	ep->last_sender = NULL;
	ep->flows = NULL;
	ep->allowed = (struct dp_total){ 0, 0 };
	ep->asks = 0;
	ep->nasking = false;
	ep->lost = 0;
	if (ep->flow)
		atomic_fetch_sub(&dp_lib.flows, 1);
	ep->flow = ep->has_flow = false;
	ep->shown = ep->nonblocking = ep->yield_due = false;
	ep->watch = DP_WATCH_AUTO;
	ep->empty = 0;
	atomic_store(&ep->unsent, 0);
	free(ep->plain);
	ep->plain = NULL;
	ep->plain_length = -1;
	ep->fd = ep->kept = -1;
}

/* Threads that sleep outside the locks use what is taken away now. They come soon: those in the
 * kernel are woken, those in Portals wait for some ms at most. */
static void wait_for_sleepers(struct dp_ep *ep)
{
	shutdown(ep->kept, SHUT_RDWR);
	/* acquire: pairs with the release of end_sleep() */
	while (atomic_load_explicit(&ep->sleepers, memory_order_acquire))
		sched_yield();
}

void dp_release(struct dp_ep *ep)
{
	lock_both(ep);
	atomic_store_explicit(&ep->open, false, memory_order_relaxed);
	dp_table_forget(ep);
	unlist_endpoint(ep);
	unlock_both(ep);
	wait_for_sleepers(ep);
	lock_both(ep);
	if (ep->record_me != PTL_INVALID_HANDLE)
		while (PtlMEUnlink(ep->record_me) == PTL_ME_IN_USE)
			PtlProgress(dp_lib.ni, 1);
	dp_send_close(ep);
	dp_pool_close(&ep->pool);
	close(ep->kept);
	clear_endpoint(ep);
	unlock_both(ep);
	unget_endpoint(ep);
	dp_kick();
}

void dp_close(int fd)
{
	struct dp_ep *ep = dp_table_get(fd);

	if (!ep && atomic_load_explicit(&dp_lib.started, memory_order_acquire))
		ep = dp_find_copy(fd);
	if (!ep)
		return;
	pthread_mutex_lock(&dp_lib.lock);
	if (dp_is_still(ep, fd)) {
		dp_release(ep);
		close(fd);
	}
	pthread_mutex_unlock(&dp_lib.lock);
}

/* ---- mmap, ctl, id --------------------------------------------------------------------------- */

static int change_pool(struct dp_ep *ep, const dpmmap_t *want)
{
	struct dp_pool made;

	dp_see_shown(ep);
	if (dp_collect(ep) || ep->pool.read != ep->pool.flushed) {
		errno = EBUSY;
		return -1;
	}
	if (dp_pool_open(ep, &made, want) < 0)
		return -1;
	/* what came into the old one meanwhile is missed by its number */
	dp_pool_close(&ep->pool);
	ep->pool = made;
	return 0;
}

int dp_mmap(int fd, dpmmap_t *tbp)
{
	struct dp_ep *ep;
	dpmmap_t want = { 0 };
	int err = -1;

	ep = dp_enter_rx(fd);
	if (!ep)
		return -1;
	if (!tbp) {
		errno = EFAULT;
	} else {
		want = *tbp;
		errno = EINVAL;
		if (dp_pool_shape(&want))
			err = change_pool(ep, &want);
	}
	if (err == 0) {
		want.base = ep->pool.base;
		*tbp = want;
		dp_publish(ep);
	}
	pthread_mutex_unlock(&ep->rx);
	if (err == 0)
		dp_kick();
	return err;
}

int dp_id(int fd)
{
	struct dp_ep *ep = dp_enter_rx(fd);
	int dpid;

	if (!ep)
		return -1;
	dpid = (int)ep->dpid;
	pthread_mutex_unlock(&ep->rx);
	return dpid;
}

static int set_flow(struct dp_ep *ep, const int *on)
{
	if (*on != 0 && *on != 1)
		return EINVAL;
	if (ep->flow != *on)
		atomic_fetch_add(&dp_lib.flows, *on ? 1u : -1u);
	ep->flow = *on;
	if (!*on) {
		ep->nasking = false;
		for (struct dp_sender *s = ep->flows; s; s = s->next_flow)
			s->asking = false;
	}
	dp_publish(ep);
	pthread_mutex_lock(&ep->tx);
	ep->has_flow = *on;
	pthread_mutex_unlock(&ep->tx);
	return 0;
}

static int set_watch(struct dp_ep *ep, const int *mode)
{
	if (*mode < DP_WATCH_AUTO || *mode > DP_WATCH_NEVER)
		return EINVAL;
	ep->watch = *mode;
	/* a thread that sleeps in the kernel is still to be woken: it changes the state then */
	atomic_store(&ep->state, *mode == DP_WATCH_NEVER && !ep->asleep ? DP_SPINNING : DP_WATCHED);
	if (*mode != DP_WATCH_NEVER && dp_collect(ep))
		dp_show(ep);
	dp_kick();
	return 0;
}

static size_t longest_packet(struct dp_ep *ep)
{
	size_t longest;

	pthread_mutex_lock(&ep->tx);
	longest = ep->target && ep->target->known ? ep->target->longest : DP_MAX_MESSAGE;
	pthread_mutex_unlock(&ep->tx);
	return longest;
}

static int control_endpoint(struct dp_ep *ep, int what, void *value)
{
	switch (what) {
	case DP_LOST:
		dp_collect(ep);
		*(uint64_t *)value = ep->lost;
		return 0;
	case DP_FLOW:
		return set_flow(ep, value);
	case DP_WATCH:
		return set_watch(ep, value);
	case DP_PACKET:
		*(size_t *)value = longest_packet(ep);
		return 0;
	case DP_UNSENT:
		*(uint64_t *)value = atomic_load(&ep->unsent);
		return 0;
	default:
		return EINVAL;
	}
}

int dp_ctl(int fd, int what, void *value)
{
	struct dp_ep *ep = dp_enter_rx(fd);
	int err;

	if (!ep)
		return -1;
	err = value ? control_endpoint(ep, what, value) : EFAULT;
	pthread_mutex_unlock(&ep->rx);
	if (!err)
		return 0;
	errno = err;
	return -1;
}
