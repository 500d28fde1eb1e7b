/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How much may be in flight. The window grows as in NewReno (RFC 5681). A lost packet alone does
 * not make it smaller: frames are lost by chance, too. It is taken for a sign of a full queue
 * when round trips have become longer, or when many of one round trip are lost, which is what a
 * short queue does. The window then becomes what the path was seen to carry, bandwidth times
 * shortest round trip, as in TCP Westwood+ (Mascolo and others, 2001), the bandwidth being the
 * best of the last round trips, as in BBR (Cardwell and others, 2016).
 */
#include "nal/net/dgram/dgram_core.h"

#define SECOND 1000000000ull

/* How much longer than the shortest a round trip is when packets wait in a queue, beyond what
 * processors add; and when they wait so long that a longer queue is of no use. */
#define QUEUE_NS      (100 * DGRAM_US)
#define LONG_QUEUE_NS (10 * DGRAM_MS)

/* Of the packets of a round trip: more than one in so many, and not only a few, are not lost by
 * chance; and when so many are it is no time for more. */
#define MANY_LOST  8u
#define SOME_LOST  32u
#define LEAST_LOST 4u

/* Round trips after an answer to losses in which the window grows slowly. */
#define CALM_ROUNDS 16u

/* Round trips after which an old bandwidth is forgotten: this many, up to twice. */
#define RATE_ROUNDS 8u

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
	struct dgram_conn *c = r->conn;

	r->srtt = r->rttvar = r->min_rtt = r->rate = 0;
	r->mtu = m->cfg.mtu_start;
	r->mtu_again = 0;
	r->cwnd = first_window(m, r);
	r->ssthresh = UINT32_MAX;
	c->recovery = c->round = 0;
	c->least_rtt[0] = c->least_rtt[1] = UINT64_MAX;
	c->rate_since = m->now;
	c->rate_bytes = c->rate_best[0] = c->rate_best[1] = 0;
	c->calm = 0;
}

void dgram_cc_longer(struct dgram *m, struct dgram_rec *r)
{
	r->cwnd = (uint32_t)dgram_max64(r->cwnd, first_window(m, r));
}

/* A round trip that took no longer met no queue to speak of. */
static uint64_t unqueued(const struct dgram_rec *r)
{
	return r->min_rtt + r->min_rtt / 4 + QUEUE_NS;
}

/* Packets wait on their way: all of late took longer by `more` than without. One that did not
 * would have passed the queue, while processors make some of them take long. */
static bool queued(const struct dgram_rec *r, uint64_t more)
{
	const struct dgram_conn *c = r->conn;

	return dgram_min64(c->least_rtt[0], c->least_rtt[1]) > unqueued(r) + more;
}

/* More than one of `share` packets of this round trip are lost. */
static bool lossy(const struct dgram_conn *c, uint32_t share)
{
	return c->round_lost >= LEAST_LOST &&
	       (uint64_t)c->round_lost * share > c->round_acked + c->round_lost;
}

/* A round trip is over when a packet sent after its beginning has arrived. */
static void count_round(struct dgram_rec *r, uint64_t pn)
{
	struct dgram_conn *c = r->conn;

	c->round_acked++;
	if (pn < c->round)
		return;
	c->round = r->tx_pn;
	c->lossy = lossy(c, SOME_LOST);
	c->round_acked = c->round_lost = 0;
	c->calm++;
	c->least_rtt[1] = c->least_rtt[0];
	c->least_rtt[0] = UINT64_MAX;
	/* BBR, section 4.3.1.2: while more packets in flight carry more bytes in the same time
	 * the path is not full */
	c->full = r->rate < c->rate_then + c->rate_then / 4;
	c->rate_then = r->rate;
}

/* By how much the window grows for so many bytes that arrived. */
static uint64_t growth(struct dgram_rec *r, uint32_t bytes)
{
	/* a queue that is not full yet is long enough */
	if (r->cwnd < r->ssthresh && r->conn->full && queued(r, LONG_QUEUE_NS))
		r->ssthresh = r->cwnd;
	if (r->cwnd < r->ssthresh)
		return bytes; /* RFC 5681 section 3.1, equation 2, with L as long as it takes */
	if (r->conn->lossy || queued(r, LONG_QUEUE_NS))
		return 0;
	/* nothing waits anywhere, and has not for long: there is room for more than equation 3
	 * says */
	if (r->conn->calm >= CALM_ROUNDS && !queued(r, 0))
		return bytes / 8;
	return dgram_max64((uint64_t)r->mtu * bytes / r->cwnd, 1);
}

void dgram_cc_acked(struct dgram *m, struct dgram_rec *r, uint64_t pn, uint32_t bytes)
{
	struct dgram_conn *c = r->conn;

	c->rate_bytes += bytes;
	count_round(r, pn);
	/* RFC 9002 sections 7.8 and 7.3.2: not for packets that did not fill the window, nor for
	 * those sent before the last loss was answered */
	if (c->limited && pn >= c->recovery)
		r->cwnd = (uint32_t)dgram_min64(r->cwnd + growth(r, bytes), most(m, r));
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
	c->rate_best[0] = dgram_max64(c->rate_best[0], sample);
	r->rate = dgram_max64(r->rate, sample);
	/* with little to send the path was not tried: such a sample can only be too low */
	if (!c->limited || ++c->rate_rounds < RATE_ROUNDS)
		return;
	r->rate = dgram_max64(c->rate_best[0], c->rate_best[1]);
	c->rate_best[1] = c->rate_best[0];
	c->rate_best[0] = c->rate_rounds = 0;
}

/* What the path carries when a round trip takes `rtt`, but not less than `least`. */
static uint32_t carried(const struct dgram_rec *r, uint64_t rtt, uint64_t least)
{
	uint64_t bytes = r->rate / DGRAM_MS * rtt / 1000;

	least = dgram_max64(least, 2ull * r->mtu);
	return (uint32_t)dgram_max64(least, dgram_min64(bytes, r->cwnd));
}

/* Is it for want of room on the path? */
static bool congested(const struct dgram_rec *r)
{
	const struct dgram_conn *c = r->conn;

	if (lossy(c, MANY_LOST) && c->round_lost * MANY_LOST > c->flight)
		return true;
	return queued(r, 0) && (r->cwnd >= r->ssthresh || c->full);
}

void dgram_cc_lost(struct dgram *m, struct dgram_rec *r, uint64_t pn)
{
	struct dgram_conn *c = r->conn;

	(void)m;
	c->round_lost++;
	/* RFC 9002 section 7.3.2: one answer to the losses of one round trip */
	if (pn < c->recovery || !congested(r))
		return;
	c->recovery = r->tx_pn;
	c->calm = 0;
	/* a queue that nobody sees is short, and has no room for what processors let wait */
	r->ssthresh = carried(r, queued(r, 0) ? unqueued(r) / 8 * 7 : r->min_rtt, r->cwnd / 2);
	r->cwnd = r->ssthresh;
}

void dgram_cc_timeout(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	(void)m;
	/* RFC 5681 section 3.1, equation 4: only the first of several in a row */
	if (c->backoff <= 1)
		r->ssthresh = carried(r, r->min_rtt, c->flight_bytes / 2);
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
