/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets through the simulated network. A packet that was transmitted waits in `out` until it has left the sender's link
 * and travelled, then it is sent; one that arrived waits in `in` until it is through the receiver's link.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cpu.h"
#include "nal/sim/sim_link.h"
#include "portals/stat.h"

#define ADDRESS      0x7f53494du /* 127.83.73.77 */
#define AT_ONCE      64u         /* packets taken in */
#define REST_MOST_NS 1000000000ull

struct sockaddr_in sim_at(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(ADDRESS) };
}

static struct sim_packet *packet_of(size_t len)
{
	return malloc(sizeof(struct sim_packet) + len);
}

/* ---- out -------------------------------------------------------------------------------------- */

void *sim_room(void *link, size_t len)
{
	struct sim_link *l = link;

	free(l->room);
	l->room = packet_of(len);
	return l->room ? l->room->bytes : NULL;
}

static void carry(struct sim_link *l, struct sim_packet *p, uint64_t left)
{
	uint64_t at;

	if (sim_travel(&l->rules.net, &l->random, &l->counts, left, &at)) {
		sim_damage(&l->rules.net, &l->random, &l->counts, p->bytes, &p->len);
		if (sim_queue_put(&l->out, at, p, 0))
			return;
	}
	free(p);
}

static uint64_t faults(const struct sim_counts *c)
{
	return c->lost + c->duplicated + c->reordered + c->delayed + c->corrupted + c->truncated;
}

void sim_transmit(void *link, const struct dgram_packet *packet)
{
	struct sim_link *l = link;
	const struct sim_model *m = &l->rules.net;
	struct sim_packet *p = l->room, *twin;
	uint64_t left, later, before = faults(&l->counts);

	l->room = NULL;
	p->port = (uint16_t)packet->to->word[0];
	p->len = (uint32_t)packet->head_len;
	for (int i = 0; i < packet->pieces; i++) {
		memcpy(p->bytes + p->len, packet->body[i].iov_base, packet->body[i].iov_len);
		p->len += (uint32_t)packet->body[i].iov_len;
	}
	left = sim_leave(m, &l->link_out, l->net.now, p->len);
	if (m->path_mtu && p->len > m->path_mtu) {
		l->counts.too_long++;
		free(p);
		return;
	}
	if (sim_doubles(m, &l->random, &l->counts, left, &later)) {
		twin = packet_of(p->len);
		if (twin) {
			memcpy(twin, p, sizeof(*p) + p->len);
			carry(l, twin, later);
		}
	}
	carry(l, p, left);
	l->net.ni->view.r->stat.counts[PTL_COUNT_FAULTS] += faults(&l->counts) - before;
}

/* The first one of those that travel is there. */
static void hand_over(struct sim_link *l)
{
	struct sim_packet *p = sim_queue_take(&l->out).packet;
	struct sockaddr_in to = sim_at(p->port);

	/* what the host does not take is lost, as by a network */
	sendto(l->fd, p->bytes, p->len, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
	free(p);
}

void sim_flush(void *link)
{
	struct sim_link *l = link;

	while (l->out.n && l->out.heap[0].at <= l->net.now)
		hand_over(l);
}

void sim_link_end(struct sim_link *l)
{
	uint64_t now = base_now_ns(), end = now + REST_MOST_NS;

	for (; l->out.n && l->out.heap[0].at <= end; now = base_now_ns()) {
		uint64_t wait = l->out.heap[0].at > now ? l->out.heap[0].at - now : 0;

		if (wait)
			nanosleep(&(struct timespec){ .tv_sec = (time_t)(wait / 1000000000u),
						      .tv_nsec = (long)(wait % 1000000000u) },
				  NULL);
		else
			hand_over(l);
	}
	while (l->out.n)
		free(sim_queue_take(&l->out).packet);
	while (l->in.n)
		free(sim_queue_take(&l->in).packet);
	free(l->out.heap);
	free(l->in.heap);
	free(l->room);
}

/* ---- in --------------------------------------------------------------------------------------- */

/* What has come to our link; false: nothing. */
static bool take_in(struct sim_link *l)
{
	struct sockaddr_in from = sim_at(0);
	socklen_t size = sizeof(from);
	uint64_t at = l->net.now;
	struct sim_packet *p;
	ssize_t len = recvfrom(l->fd, l->arrived, SIM_LONGEST, MSG_DONTWAIT,
			       (struct sockaddr *)&from, &size);

	if (len < 0)
		return false;
	if (!sim_enter(&l->rules.net, &l->link_in, &l->counts, false, (size_t)len, &at))
		return true;
	p = packet_of((size_t)len);
	if (!p)
		return true;
	p->port = ntohs(from.sin_port);
	p->len = (uint32_t)len;
	memcpy(p->bytes, l->arrived, (size_t)len);
	if (!sim_queue_put(&l->in, at, p, 0))
		free(p);
	return true;
}

unsigned int sim_receive(void *link, struct net *n)
{
	struct sim_link *l = link;
	unsigned int got = 0;

	while (got < AT_ONCE && take_in(l))
		got++;
	for (; l->in.n && l->in.heap[0].at <= n->now; got++) {
		struct sim_packet *p = sim_queue_take(&l->in).packet;
		struct dgram_addr from = { { p->port, 0, 0 } };

		net_packet(n, &from, p->bytes, p->len);
		free(p);
	}
	return got;
}

uint64_t sim_wake(const void *link)
{
	const struct sim_link *l = link;
	uint64_t wake = l->out.n ? l->out.heap[0].at : DGRAM_NEVER;

	return l->in.n && l->in.heap[0].at < wake ? l->in.heap[0].at : wake;
}
