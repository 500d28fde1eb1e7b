/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How much may be in flight, and how long a packet may be. The window grows as in NewReno (RFC 5681); when packets
 * are lost it becomes what the path was seen to carry, bandwidth times shortest round trip, as in TCP
 * Westwood+ (Mascolo and others, 2001), but not less than half of what it was: loss that does not come from a full
 * queue then costs no speed. Path MTU discovery is RFC 8899: packets that may be lost try lengths.
 */
#include "nal/dgram/dgram_core.h"

#define SECOND 1000000000ull

/* More than can be in flight, or the receiver can hold, is of no use. Two packets always may. */
static uint32_t most(const struct dgram *m, const struct dgram_rec *r)
{
	uint32_t all = r->mtu * (DGRAM_WINDOW - 64);

	if (m->cfg.window && m->cfg.window < all)
		all = m->cfg.window > 2 * r->mtu ? m->cfg.window : 2 * r->mtu;
	return all;
}

/* RFC 6928 section 2 */
static uint32_t first_window(const struct dgram *m, const struct dgram_rec *r)
{
	uint32_t ten = 10 * r->mtu, least = 2 * r->mtu;

	if (least < 14600)
		least = 14600;
	if (ten > least)
		ten = least;
	return ten < most(m, r) ? ten : most(m, r);
}

void dgram_cc_open(struct dgram *m, struct dgram_rec *r)
{
	r->srtt = r->rttvar = r->min_rtt = r->rate = 0;
	r->mtu = m->cfg.mtu_start;
	r->mtu_again = 0;
	r->cwnd = first_window(m, r);
	r->ssthresh = UINT32_MAX;
	r->conn->recovery = 0;
	r->conn->rate_since = m->now;
	r->conn->rate_bytes = 0;
}

void dgram_cc_acked(struct dgram *m, struct dgram_rec *r, uint64_t pn, uint32_t bytes)
{
	struct dgram_conn *c = r->conn;
	uint64_t cwnd = r->cwnd;

	c->rate_bytes += bytes;
	/* RFC 9002 sections 7.8 and 7.3.2: not for packets that did not fill the window, nor for those sent before the
	 * last loss was answered */
	if (!c->limited || pn < c->recovery)
		return;
	if (cwnd < r->ssthresh)
		cwnd += bytes; /* RFC 5681 section 3.1, equation 2, with L as long as it takes */
	else
		cwnd += dgram_max64((uint64_t)r->mtu * bytes / cwnd, 1); /* equation 3 */
	r->cwnd = (uint32_t)dgram_min64(cwnd, most(m, r));
}

void dgram_cc_rate(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	uint64_t took = m->now - c->rate_since, sample;

	if (took < r->srtt || took < 10 * DGRAM_US)
		return;
	sample = c->rate_bytes * SECOND / took;
	c->rate_since = m->now;
	c->rate_bytes = 0;
	/* with little to send the path was not tried: such a sample can only be too low */
	if (sample > r->rate)
		r->rate = r->rate ? (3 * r->rate + sample) / 4 : sample;
	else if (c->limited)
		r->rate = (7 * r->rate + sample) / 8;
}

/* Westwood+, section 2: what the path carries without a queue. */
static uint32_t carried(const struct dgram_rec *r, uint32_t least)
{
	uint64_t bytes = r->rate / DGRAM_MS * r->min_rtt / 1000;

	return (uint32_t)dgram_max64(least, dgram_min64(bytes, r->cwnd));
}

void dgram_cc_lost(struct dgram *m, struct dgram_rec *r, uint64_t pn)
{
	(void)m;
	/* RFC 9002 section 7.3.2: one answer to the losses of one round trip */
	if (pn < r->conn->recovery)
		return;
	r->conn->recovery = r->tx_pn;
	r->ssthresh = carried(r, r->cwnd / 2 > 2 * r->mtu ? r->cwnd / 2 : 2 * r->mtu);
	r->cwnd = r->ssthresh;
}

void dgram_cc_timeout(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	(void)m;
	/* RFC 5681 section 3.1, equation 4: only the first of several in a row */
	if (c->backoff <= 1)
		r->ssthresh = (uint32_t)dgram_max64(c->flight_bytes / 2, 2ull * r->mtu);
	r->cwnd = r->mtu; /* the loss window */
	c->recovery = r->tx_pn;
}

/* RFC 2861 section 3.1: what was learnt is worth half as much after every time-out without use. */
void dgram_cc_idle(struct dgram *m, struct dgram_rec *r)
{
	uint64_t idle = m->now - r->conn->last_at, rto = dgram_rto(m, r);
	uint32_t first = first_window(m, r);

	if (!r->conn->last_at)
		return;
	for (; idle > rto && r->cwnd > first; idle -= rto) {
		r->ssthresh = (uint32_t)dgram_max64(r->ssthresh, 3ull * r->cwnd / 4);
		r->cwnd = r->cwnd / 2 > first ? r->cwnd / 2 : first;
	}
}

/* ---- path MTU --------------------------------------------------------------------------------- */

/* RFC 8899 section 5.1.2 */
#define MAX_PROBES  3
#define RAISE_TIMER (600 * SECOND)

/* Lengths of UDP payload on usual networks: loopback, jumbo frames, Ethernet, PPPoE, tunnels; with IPv4
 * and with IPv6. */
static const uint32_t usual[] = {
	32768, 16384, 8972, 8952, 4068, 1472, 1464, 1452, 1444, 1400, 1352
};

static uint32_t longest(const struct dgram *m, const struct dgram_rec *r)
{
	uint32_t l = m->ops.longest ? m->ops.longest(m->user, &r->addr) : m->cfg.mtu;

	return l < DGRAM_MTU_MIN ? DGRAM_MTU_MIN : l > m->cfg.mtu ? m->cfg.mtu : l;
}

static uint32_t next_lower(uint32_t than)
{
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (usual[i] < than)
			return usual[i];
	return 0;
}

/* The longest there may be is tried first (RFC 8899 section 5.3.2): on most paths it is right. Only bodies are long
 * enough to profit. */
uint32_t dgram_mtu_wanted(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	if (c->mtu_out || r->mtu >= m->cfg.mtu || m->now < r->mtu_again ||
	    !(c->flow || c->piece_count))
		return 0;
	if (!c->mtu_probe) {
		uint32_t most_of_all = longest(m, r);

		if (r->mtu >= most_of_all) {
			r->mtu_again = m->now + RAISE_TIMER;
			return 0;
		}
		c->mtu_probe = most_of_all;
		c->mtu_tries = 0;
	}
	return c->mtu_probe;
}

void dgram_mtu_arrived(struct dgram *m, struct dgram_rec *r, uint32_t size)
{
	struct dgram_conn *c = r->conn;

	c->mtu_out = false;
	if (size <= r->mtu)
		return;
	r->mtu = size;
	r->cwnd = (uint32_t)dgram_max64(r->cwnd, first_window(m, r));
	c->mtu_probe = 0;
	r->mtu_again = m->now + RAISE_TIMER;
}

void dgram_mtu_lost(struct dgram *m, struct dgram_rec *r, uint32_t size)
{
	struct dgram_conn *c = r->conn;

	c->mtu_out = false;
	if (size != c->mtu_probe || ++c->mtu_tries < MAX_PROBES)
		return;
	c->mtu_probe = next_lower(size);
	c->mtu_tries = 0;
	if (c->mtu_probe <= r->mtu) {
		c->mtu_probe = 0;
		r->mtu_again = m->now + RAISE_TIMER;
	}
}

/* RFC 8899 section 4.3: short packets arrive, and long ones have not for some time-outs. */
#define BLACK_LOST 6u
#define BLACK_RTOS 4

void dgram_mtu_seen(struct dgram *m, struct dgram_rec *r, uint32_t size, bool arrived)
{
	struct dgram_conn *c = r->conn;

	if (size <= DGRAM_MTU_MIN)
		return;
	if (arrived) {
		c->long_lost = 0;
		return;
	}
	if (!c->long_lost++)
		c->long_since = m->now;
	if (c->long_lost < BLACK_LOST || m->now - c->long_since < BLACK_RTOS * dgram_rto(m, r))
		return;
	c->long_lost = 0;
	r->mtu = r->mtu > m->cfg.mtu_start ? m->cfg.mtu_start : DGRAM_MTU_MIN;
	r->mtu_again = m->now + RAISE_TIMER / 10;
	c->mtu_probe = 0;
}
