/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How much may be in flight. The window grows as in NewReno (RFC 5681). A lost packet alone
 * does not shrink it: frames are lost by chance, too. A loss counts as a sign of a full queue
 * when round trips have become longer, or when many packets of one round trip are lost, as
 * happens with a short queue. The window then becomes what the path was seen to carry,
 * bandwidth times shortest round trip, as in TCP Westwood+ (Mascolo and others, 2001). The
 * bandwidth is the best of the last round trips, as in BBR (Cardwell and others, 2016).
 */
#include "nal/net/dgram/dgram_core.h"

#define SECOND 1000000000ull

/* QUEUE_NS: a round trip met a queue if it exceeds the shortest, and a quarter of it, by more
 * than this; processors add less. LONG_QUEUE_NS: a queue so long that a longer one is of no
 * use. */
#define QUEUE_NS      (100 * DGRAM_US)
#define LONG_QUEUE_NS (10 * DGRAM_MS)

/* Losses in a round trip. More than one in MANY_LOST packets, and at least LEAST_LOST, is not
 * chance. More than one in SOME_LOST: the window does not grow. */
#define MANY_LOST  8u
#define SOME_LOST  32u
#define LEAST_LOST 4u

/* Round trips after an answer to losses during which the window grows slowly. */
#define CALM_ROUNDS 16u

/* An old bandwidth is forgotten after this many round trips, or up to twice as many. */
#define RATE_ROUNDS 8u

/* The window's limit: what can be in flight and the receiver can hold, but at least two
 * packets. */
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
	c->undo = 0;
	c->least_rtt[0] = c->least_rtt[1] = UINT64_MAX;
	c->rate_since = m->now;
	c->rate_bytes = c->rate_best[0] = c->rate_best[1] = 0;
	c->calm = 0;
}

void dgram_cc_longer(struct dgram *m, struct dgram_rec *r)
{
	r->cwnd = (uint32_t)dgram_max64(r->cwnd, first_window(m, r));
}

/* Round trips up to this length met no significant queue. */
static uint64_t unqueued(const struct dgram_rec *r)
{
	return r->min_rtt + r->min_rtt / 4 + QUEUE_NS;
}

/* Do packets wait in a queue? They do if all recent round trips were longer by `more` than
 * without one. A single shorter one would have passed the queue; processors delay only some of
 * them. */
static bool queued(const struct dgram_rec *r, uint64_t more)
{
	const struct dgram_conn *c = r->conn;

	return dgram_min64(c->least_rtt[0], c->least_rtt[1]) > unqueued(r) + more;
}

/* Is more than one of `share` packets of this round trip lost? */
static bool lossy(const struct dgram_conn *c, uint32_t share)
{
	return c->round_lost >= LEAST_LOST &&
	       (uint64_t)c->round_lost * share > c->round_acked + c->round_lost;
}

/* Count a packet. A round trip ends when a packet sent after its beginning has arrived. */
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
	/* BBR, section 4.3.1.2: while more packets in flight carry more bytes in the same
	 * time, the path is not full */
	c->full = r->rate < c->rate_then + c->rate_then / 4;
	c->rate_then = r->rate;
}

/* By how much the window grows for `bytes` bytes that arrived. */
static uint64_t growth(struct dgram_rec *r, uint32_t bytes)
{
	/* the queue is not full yet, but long enough */
	if (r->cwnd < r->ssthresh && r->conn->full && queued(r, LONG_QUEUE_NS))
		r->ssthresh = r->cwnd;
	if (r->cwnd < r->ssthresh)
		return bytes; /* RFC 5681 section 3.1, equation 2, with L as large as needed */
	if (r->conn->lossy || queued(r, LONG_QUEUE_NS))
		return 0;
	/* no queue now, nor for a long time: there is room for more than equation 3 allows */
	if (r->conn->calm >= CALM_ROUNDS && !queued(r, 0))
		return bytes / 8;
	return dgram_max64((uint64_t)r->mtu * bytes / r->cwnd, 1);
}

void dgram_cc_acked(struct dgram *m, struct dgram_rec *r, uint64_t pn, uint32_t bytes)
{
	struct dgram_conn *c = r->conn;

	c->rate_bytes += bytes;
	count_round(r, pn);
	/* RFC 9002 sections 7.8 and 7.3.2: not for packets that did not fill the window, nor
	 * for those sent before the last loss was answered */
	if (c->limited && pn >= c->recovery)
		r->cwnd = (uint32_t)dgram_min64(r->cwnd + growth(r, bytes), most(m, r));
}

void dgram_cc_rate(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	uint64_t elapsed = m->now - c->rate_since, sample;

	if (elapsed < r->srtt || elapsed < 10 * DGRAM_US)
		return;
	sample = c->rate_bytes * SECOND / elapsed;
	c->rate_since = m->now;
	c->rate_bytes = 0;
	c->rate_best[0] = dgram_max64(c->rate_best[0], sample);
	r->rate = dgram_max64(r->rate, sample);
	/* with little to send the path was not tested: such a sample can only be too low */
	if (!c->limited || ++c->rate_rounds < RATE_ROUNDS)
		return;
	r->rate = dgram_max64(c->rate_best[0], c->rate_best[1]);
	c->rate_best[1] = c->rate_best[0];
	c->rate_best[0] = c->rate_rounds = 0;
}

/* Bytes that the path carries in a round trip of `rtt`, but at least `least`. */
static uint32_t bytes_carried(const struct dgram_rec *r, uint64_t rtt, uint64_t least)
{
	uint64_t bytes = r->rate / DGRAM_MS * rtt / 1000;

	least = dgram_max64(least, 2ull * r->mtu);
	return (uint32_t)dgram_max64(least, dgram_min64(bytes, r->cwnd));
}

/* Was the packet lost because the path is full? */
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
	c->undo = 0;
	c->calm = 0;
	/* a queue that cannot be seen is short, and leaves no room for delays by processors */
	r->ssthresh =
		bytes_carried(r, queued(r, 0) ? unqueued(r) / 8 * 7 : r->min_rtt, r->cwnd / 2);
	r->cwnd = r->ssthresh;
}

void dgram_cc_timeout(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	(void)m;
	/* RFC 5681 section 3.1, equation 4: only the first of several in a row */
	if (c->backoff <= 1) {
		c->undo = r->ssthresh;
		r->ssthresh = bytes_carried(r, r->min_rtt, c->flight_bytes / 2);
	}
	r->cwnd = r->mtu; /* the loss window */
	c->recovery = r->tx_pn;
}

/* RFC 4015 section 3.2: the time-out was too early, so its answer to congestion was none. The
 * window itself stays short, and grows again by slow start. */
void dgram_cc_not_lost(struct dgram_rec *r, uint64_t pn)
{
	struct dgram_conn *c = r->conn;

	if (pn >= c->recovery)
		return;
	r->ssthresh = (uint32_t)dgram_max64(r->ssthresh, c->undo);
	c->undo = 0;
}

/* RFC 2861 section 3.1: halve the window for every time-out without use. */
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
