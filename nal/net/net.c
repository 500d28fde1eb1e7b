/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The machine of an interface: opening and closing it, feeding it, and the table of its peers.
 */
#define _GNU_SOURCE
#include "nal/net/net.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/config.h"
#include "base/cpu.h"
#include "portals/debug.h"

#define LINGER_NS   2000000000ull /* for what is still on its way when an interface closes */
#define QUIET_NS    50000000ull   /* without any traffic, before the helper thread looks alone */
#define LOOKS_MOST  1024          /* in vain, before that is looked at */
#define COUNT_EVERY 4096          /* rounds between copies of the counters */
#define SHORTEST_NS 20000         /* of a sleep */
#define STOPPED_NS  2000000000ull /* without a look at the time: we were not running */
#define BACKLOG     (1u << 20)

size_t net_region_bytes(void)
{
	return NET_PEERS * sizeof(struct ptl_stat_peer);
}

/* The machine's time stands still while we do: a process that was stopped for a minute has not waited in vain for
 * its peers. The helper thread looks at least once a second. */
static void tell_time(struct net *n)
{
	uint64_t now = base_now_ns();

	if (n->looked && now - n->looked > STOPPED_NS)
		n->stood += now - n->looked - STOPPED_NS;
	n->looked = now;
	n->now = now - n->stood;
}

static dgram_id_t id_of(ptl_process_id_t id)
{
	return (dgram_id_t)id.nid << 32 | id.pid;
}

/* ---- peers ------------------------------------------------------------------------------------ */

struct ptl_answerer net_who(const struct net *n, uint32_t peer)
{
	const struct dgram_who *who = &n->peer[peer].who;

	return (struct ptl_answerer){
		.id = { (ptl_nid_t)(who->id >> 32), (ptl_pid_t)who->id },
		.uid = who->uid,
		.jid = who->jid,
	};
}

/* Room in our table for a peer of the machine's. */
static bool note_peer(struct net *n, uint32_t peer, const struct dgram_who *who)
{
	struct ptl_stat *s = &n->ni->view.r->stat;
	struct ptl_stat_peer *st = &n->stat[peer];

	if (peer >= n->npeers) {
		uint32_t more = n->npeers ? 2 * n->npeers : 16;
		struct net_peer *p;

		while (more <= peer)
			more *= 2;
		p = realloc(n->peer, more * sizeof(*p));
		if (!p)
			return false;
		memset(p + n->npeers, 0, (more - n->npeers) * sizeof(*p));
		n->peer = p;
		n->npeers = more;
	}
	n->peer[peer].who = *who;
	n->peer[peer].noted = true;
	st->id = (ptl_process_id_t){ (ptl_nid_t)(who->id >> 32), (ptl_pid_t)who->id };
	st->state = 2;
	strncpy(st->nal, n->link->name, sizeof(st->nal) - 1);
	if (peer >= s->net_peer_high[n->slot - n->ni->net])
		s->net_peer_high[n->slot - n->ni->net] = peer + 1;
	return true;
}

/* From now on the application's calls look at the network, too. */
static void poll_it(struct net *n)
{
	uint32_t bit = 1u << (n->slot - n->ni->net);

	n->active = n->now;
	n->looks = 0;
	if (!(atomic_load_explicit(&n->ni->polled, memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(&n->ni->polled, bit, memory_order_relaxed);
}

static void stop_polling(struct net *n)
{
	uint32_t bit = 1u << (n->slot - n->ni->net);

	atomic_fetch_and_explicit(&n->ni->polled, ~bit, memory_order_relaxed);
	net_thread_arm(n);
}

static uint32_t find(struct net *n, ptl_process_id_t id)
{
	struct dgram_who who = { .id = id_of(id), .uid = PTL_UID_ANY, .jid = PTL_JID_ANY };
	uint32_t peer;

	if (n->last_peer != DGRAM_NONE && n->last.nid == id.nid && n->last.pid == id.pid)
		return n->last_peer;
	peer = dgram_peer_find(n->m, who.id);
	/* the machine knows who called us before the connection stands */
	if (peer >= NET_PEERS ||
	    ((peer >= n->npeers || !n->peer[peer].noted) && !note_peer(n, peer, &who)))
		return DGRAM_NONE;
	n->last = id;
	return n->last_peer = peer;
}

uint32_t net_peer_of(struct net *n, ptl_process_id_t id)
{
	uint32_t peer = find(n, id);

	tell_time(n);
	if (peer != DGRAM_NONE)
		poll_it(n);
	return peer;
}

bool net_knows(struct net *n, ptl_process_id_t target)
{
	return find(n, target) != DGRAM_NONE;
}

bool net_lives(struct net *n, ptl_process_id_t target)
{
	uint32_t peer = net_peer_of(n, target);

	if (peer == DGRAM_NONE || n->peer[peer].gone)
		return false;
	if (!n->peer[peer].watched && n->stat[peer].state == 1) {
		n->peer[peer].watched = true;
		dgram_watch(n->m, peer, 1);
	}
	return true;
}

bool net_connect(struct net *n, ptl_process_id_t target)
{
	struct dgram_who who = { .id = id_of(target), .uid = PTL_UID_ANY, .jid = PTL_JID_ANY };
	struct dgram_addr addr;
	uint32_t peer;

	if (!n->link->address(n->link_state, target, &addr))
		return false;
	peer = dgram_peer(n->m, who.id, &addr);
	n->last_peer = DGRAM_NONE;
	return peer != DGRAM_NONE && peer < NET_PEERS && note_peer(n, peer, &who);
}

void net_expect(struct net *n, uint32_t peer, int change)
{
	n->peer[peer].expected += (uint32_t)change;
	dgram_watch(n->m, peer, change);
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

/* ---- called by the machine -------------------------------------------------------------------- */

static void *room(void *user, size_t len)
{
	struct net *n = user;

	return n->link->room(n->link_state, len);
}

static void transmit(void *user, const struct dgram_packet *p)
{
	struct net *n = user;

	if (n->fault)
		net_fault_transmit(n, p);
	else
		n->link->transmit(n->link_state, p);
}

/* Who has the key is of the job, or trusted by who gave it the file. */
static bool accept_peer(void *user, const struct dgram_who *who, const struct dgram_addr *from)
{
	const struct net *n = user;

	(void)from;
	return who->id != id_of(n->ni->id);
}

static void up(void *user, uint32_t peer, const struct dgram_who *who)
{
	struct net *n = user;

	/* accept() comes before there is a number; a peer that cannot be noted is not heard */
	if (peer >= NET_PEERS || !note_peer(n, peer, who))
		return;
	n->stat[peer].state = 1;
	n->peer[peer].gone = false;
	n->last_peer = DGRAM_NONE;
	poll_it(n);
	if (ptl_debugs(n->ni, PTL_DBG_SETUP))
		ptl_debug(n->ni, "connected to nid 0x%08x pid %u by %s", n->stat[peer].id.nid,
			  n->stat[peer].id.pid, n->link->name);
}

static void lost(void *user, uint32_t peer, enum dgram_status s)
{
	struct net *n = user;
	struct ptl_answerer who = net_who(n, peer);
	uint64_t *counts = n->ni->view.r->stat.counts;

	if (ptl_debugs(n->ni, PTL_DBG_SETUP))
		ptl_debug(n->ni, "nid 0x%08x pid %u: %s", who.id.nid, who.id.pid,
			  dgram_status_text(s));
	if (n->stat[peer].state == 1 && s != DGRAM_CLOSED)
		counts[PTL_COUNT_PEERS_LOST]++;
	n->stat[peer].state = 2;
	n->peer[peer].gone = true;
	if (n->peer[peer].watched)
		dgram_watch(n->m, peer, -1);
	n->peer[peer].watched = false;
	ptl_engine_peer_lost(&n->ni->engine, ptl_net_peer(n->ni, n->slot, peer), net_fail(s), &who);
	if (n->peer[peer].expected)
		dgram_watch(n->m, peer, -(int)n->peer[peer].expected);
	n->peer[peer].expected = 0;
	if (n->peer[peer].held)
		n->nheld--;
	n->peer[peer].held = false;
}

static const struct dgram_ops machine_ops = {
	.room = room,
	.transmit = transmit,
	.seal = net_seal,
	.verify = net_verify,
	.deliver = net_deliver,
	.landed = net_landed,
	.sent = net_sent,
	.accept = accept_peer,
	.up = up,
	.lost = lost,
	.pieces = net_pieces,
};

/* ---- progress --------------------------------------------------------------------------------- */

void net_packet(struct net *n, const struct dgram_addr *from, const void *packet, size_t len)
{
	dgram_receive(n->m, n->now, from, packet, len);
}

void net_run(struct net *n)
{
	bool more;

	do {
		more = dgram_run(n->m, n->now);
		if (n->fault)
			net_fault_release(n);
		n->link->flush(n->link_state);
	} while (more);
}

/* Event handlers have caught up: who was told to wait goes on. */
static void resume(struct net *n)
{
	if (ptl_handlers_behind(n->ni))
		return;
	for (uint32_t i = 0; i < n->npeers && n->nheld; i++)
		if (n->peer[i].held) {
			n->peer[i].held = false;
			n->nheld--;
			dgram_resume(n->m, i);
		}
}

/* The order is the machine's. */
static_assert(PTL_COUNT_DGRAM_OUTSIDE - PTL_COUNT_DGRAM_MALFORMED + 1 == (int)DGRAM_DROP_COUNT,
	      "one counter for each reason");

static void copy_counts(struct net *n)
{
	uint64_t *c = n->ni->view.r->stat.counts;
	struct dgram_stats s;

	/* other links of the interface count there, too */
	n->counted = 0;
	dgram_stats(n->m, &s);
	c[PTL_COUNT_PACKETS_OUT] += s.packets_out - n->shown.packets_out;
	c[PTL_COUNT_PACKETS_IN] += s.packets_in - n->shown.packets_in;
	c[PTL_COUNT_PACKETS_LOST] += s.lost_packets - n->shown.lost_packets;
	c[PTL_COUNT_TIMEOUTS] += s.timeouts - n->shown.timeouts;
	for (int i = 0; i < DGRAM_DROP_COUNT; i++)
		c[PTL_COUNT_DGRAM_MALFORMED + i] += s.drops[i] - n->shown.drops[i];
	n->shown = s;
}

static uint64_t wake_at(const struct net *n)
{
	uint64_t wake = dgram_wake(n->m), fault = net_fault_wake(n);

	return wake < fault ? wake : fault;
}

/* Nothing for a while, and nothing is due: a look at the socket is a system call too many. */
static void calm_down(struct net *n)
{
	n->looks = 0;
	if (n->now - n->active > QUIET_NS && !n->nheld && wake_at(n) > n->now + QUIET_NS)
		stop_polling(n);
}

bool net_progress(struct net *n)
{
	unsigned int got;

	tell_time(n);
	got = n->link->receive(n->link_state, n);
	n->hits = got ? n->hits + 1 : 0;
	if (n->nheld)
		resume(n);
	if (got || wake_at(n) <= n->now)
		net_run(n);
	if (got)
		poll_it(n);
	else if (++n->looks > LOOKS_MOST)
		calm_down(n);
	if (++n->counted > COUNT_EVERY)
		copy_counts(n);
	return got;
}

uint64_t net_arm(struct net *n)
{
	uint64_t wake;

	copy_counts(n);
	tell_time(n);
	if (n->nheld)
		resume(n);
	if (wake_at(n) <= n->now)
		net_run(n);
	wake = wake_at(n);
	net_thread_arm(n);
	/* handlers that are behind, or a machine that cannot say what it has to: soon again, but not at once */
	if (n->nheld || wake < n->now + SHORTEST_NS)
		wake = n->now + SHORTEST_NS;
	return wake == DGRAM_NEVER ? wake : wake + n->stood;
}

/* ---- opening and closing ---------------------------------------------------------------------- */

static const char *make_machine(struct net *n, uint32_t mtu, uint32_t window)
{
	const struct ptl_ni *ni = n->ni;
	struct dgram_cfg cfg;
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return "getrandom failed";
	dgram_defaults(&cfg);
	cfg.id = id_of(ni->id);
	cfg.incarnation = random[0] | 1;
	cfg.seed = random[1];
	cfg.uid = ni->uid;
	cfg.jid = ni->jid;
	cfg.mtu = mtu;
	cfg.window = window;
	cfg.backlog = BACKLOG;
	cfg.max_peers = NET_PEERS;
	cfg.dead_ns = (uint64_t)base_config()->ptl_net_dead_ms * 1000000ull;
	n->m = dgram_create(&machine_ops, n, &cfg);
	return n->m ? NULL : "out of memory";
}

static void free_all(struct net *n)
{
	struct net_body *b, *next;

	for (b = n->spare; b; b = next) {
		next = b->next;
		free(b);
	}
	if (n->body_of)
		munmap(n->body_of, n->ni->view.nops * sizeof(*n->body_of));
	free(n->peer);
	net_fault_destroy(n->fault);
}

const char *net_start(struct net *n, const struct nal_job *job, int fd, uint32_t mtu,
		      uint32_t window)
{
	struct ptl_ni *ni = n->ni;
	struct ptl_stat *s = &ni->view.r->stat;
	const char *why;

	if (!job->secret_len)
		return "there is no secret of the job's; the launcher's exchange gave none, and "
		       "PTL_KEY_FILE names no file";
	net_keys_make(&n->keys, job->secret, job->secret_len);
	n->fault = net_fault_create(base_config()->ptl_fault);
	n->last_peer = DGRAM_NONE;
	tell_time(n);
	n->stat = (struct ptl_stat_peer *)(void *)(ni->view.nal + n->slot->region);
	n->body_of = mmap(NULL, ni->view.nops * sizeof(*n->body_of), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (n->body_of == MAP_FAILED) {
		n->body_of = NULL;
		return "out of memory";
	}
	why = make_machine(n, mtu, window);
	if (why)
		return why;
	ptl_lock(ni);
	s->net_peer_off[n->slot - ni->net] = (uint64_t)((char *)n->stat - (char *)ni->view.r);
	ptl_leave(ni);
	return net_thread_start(n, fd) == 0 ? NULL : "its helper thread cannot be started";
}

/* Is anything of ours still on its way? */
static bool unfinished(const struct net *n)
{
	struct dgram_peer_info info;

	for (uint32_t i = 0; i < n->npeers; i++)
		if (dgram_peer_info(n->m, i, &info) && (info.queued || info.landings))
			return true;
	return false;
}

/* What peers are still owed gets a moment. */
static void linger(struct net *n)
{
	uint64_t end = base_now_ns() + LINGER_NS;
	bool more = true;

	while (more && base_now_ns() < end) {
		ptl_lock(n->ni);
		net_progress(n);
		more = unfinished(n);
		ptl_leave(n->ni);
		if (more)
			usleep(50);
	}
}

static void say_goodbye(struct net *n)
{
	uint32_t left;

	net_fault_destroy(n->fault);
	n->fault = NULL;
	do {
		left = dgram_close(n->m, n->now);
		n->link->flush(n->link_state);
	} while (left);
}

void net_stop(struct net *n)
{
	if (n->m) {
		linger(n);
		net_thread_stop(n);
		ptl_lock(n->ni);
		atomic_fetch_and_explicit(&n->ni->polled, ~(1u << (n->slot - n->ni->net)),
					  memory_order_relaxed);
		tell_time(n);
		say_goodbye(n);
		copy_counts(n);
		dgram_destroy(n->m);
		ptl_leave(n->ni);
	}
	free_all(n);
}

void net_forked(struct net *n)
{
	if (!n->thread.runs)
		return;
	close(n->thread.event_fd);
	close(n->thread.epoll_fd);
}
