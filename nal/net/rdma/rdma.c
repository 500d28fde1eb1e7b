/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The machine as a carrier of messages: the functions that nal/net calls. A list of busy peers
 * holds the work. A peer that cannot go on (no credit, no room in the link) gets another turn
 * when something has arrived or ended. If the link had no room, it also gets one soon.
 */
#include "nal/net/rdma/rdma.h"

#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/cpu.h"
#include "base/random.h"

#define CREDIT_OWN 256u       /* where the link has no preference */
#define GOODBYE_NS 200000000u /* for the last packets */
#define RETRY_NS   20000u     /* the link had no room: try again, if nothing else happens */

static uint32_t find(const struct net *n, net_id_t id)
{
	const struct rdma_peer *p = rdma_peer_find((const struct rdma *)n, id);

	return p ? p->number : NET_NONE;
}

static uint32_t connect_by_rdma(struct net *n, net_id_t id)
{
	struct rdma *d = rdma_of(n);
	struct rdma_peer *p = rdma_peer_find(d, id);
	void *path;

	if (p)
		return p->number;
	path = d->link->reach(d->state, id, NULL, 0);
	if (!path)
		return NET_NONE;
	p = rdma_peer_add(d, id);
	if (!p) {
		d->link->leave(d->state, path);
		return NET_NONE;
	}
	p->path = path;
	return p->number;
}

static void watch(struct net *n, uint32_t peer, int change)
{
	struct rdma *d = rdma_of(n);
	struct rdma_peer *p = d->peer[peer];

	p->watch += (uint32_t)change;
	if (change > 0 && p->state == RDMA_IDLE)
		rdma_call(d, p);
	rdma_await(d, p);
}

static void resume(struct net *n, uint32_t peer)
{
	struct rdma *d = rdma_of(n);

	d->peer[peer]->held = false;
	rdma_busy(d, d->peer[peer]);
}

static unsigned int receive(struct net *n)
{
	struct rdma *d = rdma_of(n);

	return d->link->poll(d->state);
}

/* Give every busy peer one turn. Peers that cannot go on stay in the list. */
static __attribute__((noinline)) void run_busy_peers(struct rdma *d)
{
	struct rdma_peer *p = d->busy, *next;
	bool more;

	d->busy = d->busy_end = NULL;
	for (; p; p = next) {
		next = p->next_busy;
		p->busy = false;
		if (p->failure != NET_OK)
			rdma_peer_fail(d, p);
		rdma_take_late(d, p);
		more = rdma_fetch_more(d, p);
		if (rdma_push(d, p) || more)
			rdma_busy(d, p);
		rdma_await(d, p);
	}
}

static void run(struct net *n)
{
	struct rdma *d = rdma_of(n);

	if (d->busy)
		run_busy_peers(d);
	if (d->check_at <= n->now)
		rdma_check(d);
	d->retry_at = d->busy ? net_now(n) + RETRY_NS : NET_NEVER;
}

static uint64_t wake(const struct net *n)
{
	const struct rdma *d = (const struct rdma *)n;

	return d->retry_at < d->check_at ? d->retry_at : d->check_at;
}

static bool arm(struct net *n, uint64_t *until)
{
	struct rdma *d = rdma_of(n);
	uint64_t within = NET_NEVER;

	if (!d->link->arm(d->state, &within))
		return false;
	if (within != NET_NEVER && n->now + within < *until)
		*until = n->now + within;
	return true;
}

static bool unfinished(const struct net *n)
{
	const struct rdma *d = (const struct rdma *)n;

	for (uint32_t i = 0; i < d->npeers; i++) {
		const struct rdma_peer *p = d->peer[i];

		if (p->queue || p->longs || p->bodies ||
		    (p->coming.len && p->coming.has_delivery) || p->stuck ||
		    (p->state == RDMA_UP && p->flying))
			return true;
	}
	return false;
}

static void count(struct net *n)
{
	struct rdma *d = rdma_of(n);
	uint64_t *c = n->ni->view.r->stat.counts;

	c[PTL_COUNT_PACKETS_OUT] += d->stats.packets_out - n->shown.packets_out;
	c[PTL_COUNT_PACKETS_IN] += d->stats.packets_in - n->shown.packets_in;
	for (int i = 0; i < NET_DROP_COUNT; i++)
		c[PTL_COUNT_DGRAM_MALFORMED + i] += d->stats.drops[i] - n->shown.drops[i];
	n->shown = d->stats;
}

static void goodbye(struct net *n)
{
	struct rdma *d = rdma_of(n);
	uint64_t end = base_now_ns() + GOODBYE_NS;
	struct rdma_msg m = { .kind = RDMA_BYE };
	bool more = true;

	d->quitting = true;
	for (uint32_t i = 0; i < d->npeers; i++)
		if (d->peer[i]->state == RDMA_UP && d->peer[i]->failure == NET_OK)
			rdma_say(d, d->peer[i], &m);
	while (more && base_now_ns() < end) {
		d->link->poll(d->state);
		more = false;
		for (uint32_t i = 0; i < d->npeers; i++) {
			struct rdma_peer *p = d->peer[i];

			if (p->state != RDMA_UP || p->failure != NET_OK)
				continue;
			rdma_push(d, p);
			more |= p->stuck || p->flying;
		}
	}
}

/* True: the link uses none of our memory any more. */
static bool quit(struct rdma *d)
{
	if (d->link->quit(d->state))
		return true;
	rdma_outs_unreg(d);
	rdma_bodies_unreg(d);
	rdma_reg_free(d);
	return d->link->quit(d->state);
}

static void destroy(struct net *n)
{
	struct rdma *d = rdma_of(n);
	bool over;

	d->quitting = true;
	over = quit(d);
	for (uint32_t i = 0; i < d->npeers; i++) {
		rdma_outs_end(d, d->peer[i], NET_ENDED);
		rdma_bodies_end(d, d->peer[i], NET_ENDED);
	}
	if (over) {
		rdma_outs_free(d);
		rdma_bodies_free(d);
	}
	rdma_reg_free(d);
	rdma_peers_free(d);
}

static const struct net_carrier carrier = {
	.own_time = true,
	.find = find,
	.connect = connect_by_rdma,
	.send = rdma_send,
	.watch = watch,
	.resume = resume,
	.receive = receive,
	.run = run,
	.wake = wake,
	.arm = arm,
	.unfinished = unfinished,
	.count = count,
	.goodbye = goodbye,
	.destroy = destroy,
};

/* Greetings have tags of their own, not those of datagrams. */
static void make_keys(struct rdma *d, const struct nal_job *job)
{
	static const char use[] = "fabric";
	unsigned char secret[sizeof(job->secret) + sizeof(use)];

	memcpy(secret, job->secret, job->secret_len);
	memcpy(secret + job->secret_len, use, sizeof(use));
	net_keys_make(&d->net.keys, secret, job->secret_len + sizeof(use));
	explicit_bzero(secret, sizeof(secret));
}

const char *rdma_start(struct rdma *d, struct ptl_ni *ni, struct ptl_net *slot,
		       const struct rdma_link *link, void *state, const struct rdma_limits *limits,
		       const struct nal_job *job, int fd)
{
	d->net.ni = ni;
	d->net.slot = slot;
	d->link = link;
	d->state = state;
	d->limits = *limits;
	if (!d->limits.credit || d->limits.credit > UINT16_MAX) /* it is sent in 16 bits */
		d->limits.credit = CREDIT_OWN;
	if (d->limits.credit > RDMA_WORD_CREDIT)
		d->limits.frame = 0;
	d->check_at = d->retry_at = NET_NEVER;
	d->longs_free = RDMA_NO_ID;
	d->dead_ns = (uint64_t)base_config()->ptl_net_dead_ms * 1000000ull;
	if (!job->secret_len)
		return "there is no secret of the job's; the launcher's exchange gave none, and "
		       "PTL_KEY_FILE names no file";
	make_keys(d, job);
	if (!base_random(&d->incarnation, sizeof(d->incarnation)))
		return "the system gives no random numbers";
	d->scratch.bytes =
		malloc(d->limits.copied > RDMA_HELLO_MAX ? d->limits.copied : RDMA_HELLO_MAX);
	if (!d->scratch.bytes)
		return "out of memory";
	if (!rdma_reserve(d))
		return "no memory for packets can be registered: see ulimit -l";
	return net_begin(&d->net, &carrier, link->name, fd);
}

void rdma_stop(struct rdma *d)
{
	bool ours = d->net.carrier;

	if (ours)
		net_stop(&d->net);
	else if (d->link)
		d->link->quit(d->state);
	free(d->scratch.bytes);
}
