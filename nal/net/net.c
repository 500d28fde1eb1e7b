/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * An interface on the network: opening and closing it, its part of progress, and the table of
 * its peers.
 */
#define _GNU_SOURCE
#include "nal/net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "base/cpu.h"
#include "portals/engine/debug.h"

#define LINGER_NS    2000000000ull /* time for what is still in flight when an interface closes */
#define QUIET_NS     50000000ull   /* without traffic, before only the helper thread polls */
#define QUIET_POLLS  1024          /* polls that find nothing before QUIET_NS is checked */
#define COUNT_EVERY  4096          /* rounds between copies of the counters */
#define SHORTEST_NS  20000         /* least length of a sleep */
#define TIME_EVERY   16 /* rounds that find nothing between readings of the clock; a power of two */
#define DISARM_POLLS 256 /* polls before the helper thread is no longer notified of arrivals */
#define QUEUED_MOST  (1u << 16)    /* packets that the queue of a link may hold */
#define STOPPED_NS   2000000000ull /* without reading the clock: this process was stopped */

size_t net_region_bytes(void)
{
	return NET_PEERS * sizeof(struct ptl_stat_peer);
}

/* The machine's time stops while this process is stopped: a process that was stopped for a
 * minute has not waited in vain for its peers. The helper thread reads the clock at least once
 * a second. */
void net_read_clock(struct net *n)
{
	uint64_t now = base_now_ns();

	if (n->clock_read_at && now - n->clock_read_at > STOPPED_NS)
		n->stood += now - n->clock_read_at - STOPPED_NS;
	n->clock_read_at = now;
	n->now = now - n->stood;
	n->now_read = true;
	if (!n->active)
		n->active = n->now;
}

/* Reading the clock is most of the cost of a round that finds nothing. */
static void begin_call(struct net *n, bool read_clock)
{
	n->now_read = false;
	if (read_clock)
		net_read_clock(n);
}

/* ---- peers ----------------------------------------------------------------------------------- */

struct ptl_answerer net_who(const struct net *n, uint32_t peer)
{
	const struct net_who *who = &n->peer[peer].who;

	return (struct ptl_answerer){
		.id = { (ptl_nid_t)(who->id >> 32), (ptl_pid_t)who->id },
		.uid = who->uid,
		.jid = who->jid,
	};
}

/* Assign the carrier's peer number to this process. */
static void note_peer(struct net *n, uint32_t peer, const struct net_who *who)
{
	struct ptl_stat *s = &n->ni->view.r->stat;
	struct ptl_stat_peer *st = &n->stat[peer];

	if (n->peer[peer].who.id != who->id) {
		net_forget_passing(&n->peer[peer]);
		memset(&n->peer[peer], 0, sizeof(n->peer[peer]));
		memset(st, 0, sizeof(*st));
	}
	n->peer[peer].who = *who;
	st->id = (ptl_process_id_t){ (ptl_nid_t)(who->id >> 32), (ptl_pid_t)who->id };
	st->state = 2;
	strncpy(st->nal, n->name, sizeof(st->nal) - 1);
	if (peer >= n->npeers)
		n->npeers = peer + 1;
	s->net_peer_high[n->slot - n->ni->net] = n->npeers;
}

/* From now on the application's calls poll the network, too. */
static inline void poll_it(struct net *n)
{
	n->active = 0;
	n->empty_polls = 0;
	/* the sleeper is awake, and may compute next */
	if (__builtin_expect(atomic_load_explicit(&n->thread.rests, memory_order_seq_cst), 0))
		net_thread_rouse(n);
	if (__builtin_expect(!(atomic_load_explicit(&n->ni->polled, memory_order_relaxed) & n->bit),
			     0))
		atomic_fetch_or_explicit(&n->ni->polled, n->bit, memory_order_relaxed);
}

/* From now on an arrival wakes the helper thread, provided that the carrier is polled by *wake
 * at the latest, which may change. False: something has arrived already. */
static bool arm_net(struct net *n, uint64_t *wake)
{
	net_thread_arm(n);
	return !n->carrier->arm || n->carrier->arm(n, wake);
}

static void stop_polling(struct net *n)
{
	uint64_t wake;

	atomic_fetch_and_explicit(&n->ni->polled, ~n->bit, memory_order_relaxed);
	if (!arm_net(n, &wake))
		poll_it(n);
}

static uint32_t find_peer(struct net *n, ptl_process_id_t id)
{
	struct net_who who = { .id = net_id(id), .uid = PTL_UID_ANY, .jid = PTL_JID_ANY };
	uint32_t peer;

	if (n->last_peer != NET_NONE && n->last.nid == id.nid && n->last.pid == id.pid)
		return n->last_peer;
	peer = n->carrier->find(n, who.id);
	if (peer == NET_NONE)
		return NET_NONE;
	/* the machine knows a calling process before the connection stands */
	if (n->peer[peer].who.id != who.id)
		note_peer(n, peer, &who);
	if (n->peer[peer].to)
		return NET_NONE;
	n->last = id;
	return n->last_peer = peer;
}

uint32_t net_peer_of(struct net *n, ptl_process_id_t id)
{
	uint32_t peer = find_peer(n, id);

	begin_call(n, !n->carrier->own_time);
	if (peer != NET_NONE)
		poll_it(n);
	return peer;
}

bool net_knows(struct net *n, ptl_process_id_t target)
{
	return find_peer(n, target) != NET_NONE;
}

bool net_lives(struct net *n, ptl_process_id_t target)
{
	uint32_t peer = net_peer_of(n, target);

	if (peer == NET_NONE || n->peer[peer].gone)
		return false;
	if (!n->peer[peer].watched && n->stat[peer].state == 1) {
		n->peer[peer].watched = true;
		n->carrier->watch(n, peer, 1);
	}
	return true;
}

bool net_connect(struct net *n, ptl_process_id_t target)
{
	struct net_who who = { .id = net_id(target), .uid = PTL_UID_ANY, .jid = PTL_JID_ANY };
	uint32_t peer = n->carrier->connect(n, who.id);

	n->last_peer = NET_NONE;
	/* for a connected peer, the table already knows more */
	if (peer != NET_NONE && n->peer[peer].who.id != who.id)
		note_peer(n, peer, &who);
	return peer != NET_NONE && !n->peer[peer].to;
}

bool net_may_copy(const struct net *n, uint32_t peer)
{
	return !n->carrier->congested || !n->carrier->congested(n, peer);
}

void net_expect(struct net *n, uint32_t peer, int change)
{
	n->peer[peer].expected += (uint32_t)change;
	n->carrier->watch(n, peer, change);
}

struct net_body *net_body_get(struct net *n, uint32_t peer)
{
	struct net_body *b = n->spare;

	if (b)
		n->spare = b->next;
	else
		b = aligned_alloc(_Alignof(struct net_body), sizeof(*b));
	if (!b)
		return NULL;
	b->in_line = b->done = false;
	b->span.staged = NULL;
	b->peer = peer;
	return b;
}

void net_body_put(struct net *n, struct net_body *b)
{
	b->next = n->spare;
	n->spare = b;
}

/* ---- called by the carrier ------------------------------------------------------------------- */

void net_up(void *user, uint32_t peer, const struct net_who *who)
{
	struct net *n = user;

	note_peer(n, peer, who);
	n->stat[peer].state = 1;
	n->peer[peer].gone = false;
	n->last_peer = NET_NONE;
	net_reached(n, peer);
	ptl_found(n->ni, n->slot->nal, n->stat[peer].id);
	poll_it(n);
	if (ptl_debugs(n->ni, PTL_DBG_SETUP))
		ptl_debug(n->ni, "connected to nid 0x%08x pid %u by %s", n->stat[peer].id.nid,
			  n->stat[peer].id.pid, n->name);
}

/* A silent peer may live and be unreachable: only its own message says that it has ended. */
static void record_peer_failure(struct net *n, ptl_process_id_t id, enum net_status s,
				const char *why)
{
	const double seconds = (double)base_config()->ptl_net_dead_ms / 1000;
	char text[200];

	if (s == NET_CLOSED)
		snprintf(text, sizeof(text), "it has closed its interface");
	else if (s == NET_RESTARTED)
		snprintf(
			text, sizeof(text),
			"another process is at its address, or it has given us up after a silence");
	else if (why)
		snprintf(text, sizeof(text), "%s", why);
	else if (s == NET_DEAD)
		snprintf(text, sizeof(text),
			 "no sign of life for %g s: it has ended or stands still, or the way there "
			 "is cut "
			 "(a filter, a cable)",
			 seconds);
	else
		snprintf(text, sizeof(text),
			 "no answer for %g s: no way there (a filter? PTL_IFACE and PTL_NAL choose "
			 "another), "
			 "or it has ended",
			 seconds);
	ptl_peer_failed(n->ni, n->slot->nal, id,
			s == NET_CLOSED ? PTL_NI_PEER_DEAD : PTL_NI_UNREACHABLE, text);
}

void net_peer_failed(struct net *n, uint32_t peer, enum net_status s, const char *why)
{
	struct ptl_answerer who = net_who(n, peer);
	uint64_t *counts = n->ni->view.r->stat.counts;

	if (ptl_debugs(n->ni, PTL_DBG_SETUP))
		ptl_debug(n->ni, "nid 0x%08x pid %u: %s%s%s", who.id.nid, who.id.pid,
			  net_status_text(s), why ? ": " : "", why ? why : "");
	record_peer_failure(n, who.id, s, why);
	if (n->stat[peer].state == 1 && s != NET_CLOSED)
		counts[PTL_COUNT_PEERS_LOST]++;
	n->stat[peer].state = 2;
	n->peer[peer].gone = true;
	n->peer[peer].met = false;
	if (n->peer[peer].watched)
		n->carrier->watch(n, peer, -1);
	n->peer[peer].watched = false;
	ptl_engine_peer_failed(&n->ni->engine, ptl_net_peer(n->ni, n->slot, peer), net_fail(s),
			       &who);
	if (n->peer[peer].expected)
		n->carrier->watch(n, peer, -(int)n->peer[peer].expected);
	n->peer[peer].expected = 0;
	if (n->peer[peer].held)
		n->nheld--;
	n->peer[peer].held = false;
	if (s == NET_UNREACHABLE)
		net_unreached(n, peer, why ? why : net_status_text(s));
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Event handlers have caught up: resume the peers that got NET_LATER. */
static void resume(struct net *n)
{
	if (ptl_handlers_behind(n->ni))
		return;
	for (uint32_t i = 0; i < n->npeers && n->nheld; i++)
		if (n->peer[i].held) {
			n->peer[i].held = false;
			n->nheld--;
			n->carrier->resume(n, i);
		}
}

/* Nothing has arrived for a while, and nothing is due: stop the system calls that poll the
 * socket. */
static void calm_down(struct net *n)
{
	n->empty_polls = 0;
	/* a carrier without a descriptor cannot wake anybody, so polling goes on */
	if (n->thread.fd >= 0 && n->now - n->active > QUIET_NS && !n->nheld &&
	    n->carrier->wake(n) > n->now + QUIET_NS)
		stop_polling(n);
}

static void count_peers(struct net *n)
{
	n->counted = 0;
	n->carrier->count(n);
}

/* Record up to when this process has listened. Packets wait in a queue: a poll that finds nothing
 * has seen all that had arrived, and so have as many polls as the queue has room. */
static void record_listened(struct net *n, unsigned int got)
{
	n->heard += got;
	if (got && n->heard < QUEUED_MOST)
		return;
	n->listened = got ? n->listening : n->now;
	n->listening = n->now;
	n->heard = 0;
}

bool net_progress(struct net *n)
{
	unsigned int got;

	begin_call(n, !n->carrier->own_time || !(~n->empty_polls & (TIME_EVERY - 1)));
	if (n->thread.listed && ++n->thread.polls > DISARM_POLLS)
		net_thread_disarm(n);
	got = n->carrier->receive(n);
	record_listened(n, got);
	n->hits = got ? n->hits + 1 : 0;
	if (n->nheld)
		resume(n);
	/* timers become due only as time passes */
	if (got || (n->now_read && n->carrier->wake(n) <= n->now))
		n->carrier->run(n);
	if (got)
		poll_it(n);
	else if (++n->empty_polls > QUIET_POLLS)
		calm_down(n);
	if (++n->counted > COUNT_EVERY)
		count_peers(n);
	return got;
}

uint64_t net_arm(struct net *n)
{
	uint64_t wake;

	count_peers(n);
	net_read_clock(n);
	if (n->nheld)
		resume(n);
	if (n->carrier->wake(n) <= n->now) {
		/* timers take silence for death: listen first */
		unsigned int got = n->carrier->receive(n);

		record_listened(n, got);
		n->carrier->run(n);
		if (got) {
			poll_it(n);
			return 0; /* there may be events */
		}
	}
	wake = n->carrier->wake(n);
	if (!arm_net(n, &wake))
		return 0;
	/* handlers that are behind, or a machine that cannot send what it has: soon again, but
	 * not at once */
	if (n->nheld || wake < n->now + SHORTEST_NS)
		wake = n->now + SHORTEST_NS;
	if (wake != NET_NEVER)
		wake += n->stood;
	atomic_store_explicit(&n->thread.wake, wake, memory_order_relaxed);
	return wake;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void free_all(struct net *n)
{
	struct net_body *b, *next;

	for (b = n->spare; b; b = next) {
		next = b->next;
		free(b);
	}
	if (n->body_of)
		munmap(n->body_of, n->ni->view.nops * sizeof(*n->body_of));
	for (uint32_t i = 0; n->peer && i < n->npeers; i++)
		free(n->peer[i].why);
	if (n->peer)
		munmap(n->peer, NET_PEERS * sizeof(*n->peer));
}

/* Zeroed memory; only pages that are used take memory. NULL: out of memory. */
static void *new_table(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

const char *net_begin(struct net *n, const struct net_carrier *carrier, const char *name, int fd)
{
	static _Thread_local char why[120];
	struct ptl_ni *ni = n->ni;
	struct ptl_stat *s = &ni->view.r->stat;
	int err;

	n->carrier = carrier;
	n->name = name;
	n->last_peer = NET_NONE;
	n->bit = 1u << (n->slot - ni->net);
	net_read_clock(n);
	n->stat = (struct ptl_stat_peer *)(void *)(ni->view.nal + n->slot->region);
	n->body_of = new_table(ni->view.nops * sizeof(*n->body_of));
	n->peer = new_table(NET_PEERS * sizeof(*n->peer));
	if (!n->body_of || !n->peer)
		return "out of memory";
	n->begun = true;
	ptl_lock(ni);
	n->slot->net = n;
	s->net_peer_off[n->slot - ni->net] = (uint64_t)((char *)n->stat - (char *)ni->view.r);
	if (fd < 0)
		poll_it(n);
	ptl_leave(ni);
	err = net_thread_start(n, fd);
	if (!err)
		return NULL;
	snprintf(why, sizeof(why), "its helper thread cannot be started: %s", strerror(err));
	return why;
}

const char *net_start(struct net *n, const struct nal_job *job, int fd, uint32_t mtu,
		      uint32_t window)
{
	const char *why;

	if (!job->secret_len)
		return "there is no secret of the job's; the launcher's exchange gave none, and "
		       "PTL_KEY_FILE names no file";
	net_keys_make(&n->keys, job->secret, job->secret_len);
	why = net_dgram_create(n, mtu, window);
	return why ? why : net_begin(n, &net_dgram_carrier, n->link->name, fd);
}

/* Give what we still owe to peers some time. */
static void linger_net(struct net *n)
{
	uint64_t end = base_now_ns() + LINGER_NS;
	bool more = true;

	while (more && base_now_ns() < end) {
		ptl_lock(n->ni);
		net_progress(n);
		more = n->carrier->unfinished(n);
		ptl_leave(n->ni);
		if (more)
			usleep(50);
	}
}

void net_stop(struct net *n)
{
	if (n->begun) {
		linger_net(n);
		net_thread_stop(n);
		ptl_lock(n->ni);
		atomic_fetch_and_explicit(&n->ni->polled, ~n->bit, memory_order_relaxed);
		net_read_clock(n);
		n->carrier->goodbye(n);
		count_peers(n);
		n->carrier->destroy(n);
		/* the helper threads of other NALs still run */
		n->slot->net = NULL;
		net_forget_path(n);
		ptl_leave(n->ni);
	} else if (n->carrier) {
		n->carrier->destroy(n);
	}
	free_all(n);
}

void net_forked(struct net *n)
{
	if (!n->thread.runs)
		return;
	base_wake_close(&n->thread.event);
	close(n->thread.epoll_fd);
}
