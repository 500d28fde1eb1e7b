/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets through the simulated network. A transmitted packet waits in `out` until it has left
 * the sender's link and travelled; then it is sent. A packet that arrived waits in `in` until
 * it is through the receiver's link.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/cpu.h"
#include "nal/sim/sim_link.h"

#define ADDRESS      0x7f53494du /* 127.83.73.77 */
#define AT_ONCE      64u         /* packets taken in */
#define REST_MOST_NS 1000000000ull
#define IN_MOST      (64u << 20) /* bytes that wait for the receiver's link */

struct sockaddr_in sim_at(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(ADDRESS) };
}

static struct sim_packet *new_link_packet(size_t len)
{
	return malloc(sizeof(struct sim_packet) + len);
}

/* ---- when something is due ------------------------------------------------------------------- */

static int add_descriptor(const struct sim_link *l, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return fd < 0 || epoll_ctl(l->both, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

int sim_link_begin(struct sim_link *l)
{
	int err;

	l->timer_at = NET_NEVER;
	l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	l->both = epoll_create1(EPOLL_CLOEXEC);
	err = add_descriptor(l, l->fd);
	return err ? err : add_descriptor(l, l->timer);
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
				  .tv_nsec = (long)(ns % 1000000000u) };
}

/* Set the timer that wakes a sleeping thread when the next held packet is due. */
static void set_timer(struct sim_link *l)
{
	uint64_t at = l->out.n ? l->out.heap[0].at : NET_NEVER;
	struct itimerspec when = { .it_value = { 0, 0 } }; /* never */

	if (l->in.n && l->in.heap[0].at < at)
		at = l->in.heap[0].at;
	if (at == l->timer_at)
		return;
	l->timer_at = at;
	if (at != NET_NEVER)
		when.it_value = time_of(at + l->net.stood);
	timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Add the faults since the last call to the statistics page. */
static void count_packets(struct sim_link *l)
{
	const struct sim_counts *c = &l->counts;
	uint64_t all = c->lost + c->duplicated + c->reordered + c->delayed + c->corrupted +
		       c->truncated + c->overflowed + c->too_long;

	l->net.ni->view.r->stat.counts[PTL_COUNT_FAULTS] += all - l->counted;
	l->counted = all;
}

/* ---- out ------------------------------------------------------------------------------------- */

void *sim_room(void *link, size_t len)
{
	struct sim_link *l = link;

	free(l->room);
	l->room = new_link_packet(len);
	return l->room ? l->room->bytes : NULL;
}

static void carry_over_link(struct sim_link *l, struct sim_packet *p, uint64_t left)
{
	uint64_t at;

	if (sim_travel(&l->rules.net, &l->random, &l->counts, left, &at)) {
		sim_damage(&l->rules.net, &l->random, &l->counts, p->bytes, &p->len);
		if (sim_queue_put(&l->out, at, p, 0))
			return;
	}
	free(p);
}

/* Make the packet to send. Its head is where room() said, or elsewhere if the packet was held
 * back (net_fault.c). NULL: out of memory. */
static struct sim_packet *gather_packet(struct sim_link *l, const struct dgram_packet *packet)
{
	struct sim_packet *p = l->room;

	l->room = NULL;
	if (!p || packet->head != p->bytes) {
		free(p);
		p = new_link_packet(packet->head_len + packet->body_len);
		if (!p)
			return NULL;
		memcpy(p->bytes, packet->head, packet->head_len);
	}
	p->port = (uint16_t)packet->to->word[0];
	p->len = (uint32_t)packet->head_len;
	for (int i = 0; i < packet->segments; i++) {
		memcpy(p->bytes + p->len, packet->body[i].iov_base, packet->body[i].iov_len);
		p->len += (uint32_t)packet->body[i].iov_len;
	}
	return p;
}

void sim_transmit(void *link, const struct dgram_packet *packet)
{
	struct sim_link *l = link;
	const struct sim_model *m = &l->rules.net;
	struct sim_packet *p = gather_packet(l, packet), *twin;
	uint64_t left, later;

	if (!p)
		return;
	left = sim_leave(m, &l->link_out, l->net.now, p->len);
	if (m->path_mtu && p->len > m->path_mtu) {
		l->counts.too_long++;
		free(p);
		return;
	}
	if (sim_doubles(m, &l->random, &l->counts, left, &later)) {
		twin = new_link_packet(p->len);
		if (twin) {
			memcpy(twin, p, sizeof(*p) + p->len);
			carry_over_link(l, twin, later);
		}
	}
	carry_over_link(l, p, left);
}

/* Send the first travelling packet, which is due. */
static void hand_packets_over(struct sim_link *l)
{
	struct sim_packet *p = sim_queue_take(&l->out).packet;
	struct sockaddr_in to = sim_at(p->port);

	/* the host drops what it cannot take, as a network does */
	sendto(l->fd, p->bytes, p->len, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
	free(p);
}

void sim_flush(void *link)
{
	struct sim_link *l = link;

	while (l->out.n && l->out.heap[0].at <= l->net.now)
		hand_packets_over(l);
	set_timer(l);
	count_packets(l);
}

void sim_link_end(struct sim_link *l)
{
	uint64_t now = base_now_ns(), end = now + REST_MOST_NS;

	while (l->out.n && l->out.heap[0].at + l->net.stood <= end) {
		struct timespec at = time_of(l->out.heap[0].at + l->net.stood);

		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
			;
		hand_packets_over(l);
	}
	while (l->out.n)
		free(sim_queue_take(&l->out).packet);
	while (l->in.n)
		free(sim_queue_take(&l->in).packet);
	free(l->out.heap);
	free(l->in.heap);
	free(l->room);
}

/* ---- in -------------------------------------------------------------------------------------- */

/* Take in a packet that has come to our link. False: there is none. */
static bool take_packets_in(struct sim_link *l)
{
	const struct sockaddr_in own = sim_at(l->port);
	struct sockaddr_in from = own;
	socklen_t size = sizeof(from);
	struct sim_packet *p;
	uint64_t at;
	ssize_t len = recvfrom(l->fd, l->arrived, SIM_LONGEST, MSG_DONTWAIT,
			       (struct sockaddr *)&from, &size);

	if (len < 0)
		return false;
	/* a stranger's packet takes no time on the link; waiting packets may not take all memory */
	if (from.sin_addr.s_addr != own.sin_addr.s_addr) {
		net_packet(&l->net, NULL, l->arrived, 0);
		return true;
	}
	if (l->in_bytes > IN_MOST) {
		l->counts.overflowed++;
		return true;
	}
	net_read_clock(&l->net);
	at = l->net.now;
	if (!sim_enter(&l->rules.net, &l->link_in, &l->counts, false, (size_t)len, &at))
		return true;
	p = new_link_packet((size_t)len);
	if (!p)
		return true;
	p->port = ntohs(from.sin_port);
	p->len = (uint32_t)len;
	memcpy(p->bytes, l->arrived, (size_t)len);
	if (sim_queue_put(&l->in, at, p, 0))
		l->in_bytes += p->len;
	else
		free(p);
	return true;
}

unsigned int sim_receive(void *link, struct net *n)
{
	struct sim_link *l = link;
	unsigned int got = 0;

	while (got < AT_ONCE && take_packets_in(l))
		got++;
	for (; l->in.n && l->in.heap[0].at <= n->now; got++) {
		struct sim_packet *p = sim_queue_take(&l->in).packet;
		struct net_addr from = { { p->port, 0, 0 } };

		l->in_bytes -= p->len;
		net_packet(n, &from, p->bytes, p->len);
		free(p);
	}
	sim_flush(l);
	return got;
}
