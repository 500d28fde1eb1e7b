/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The fate of packets. Every packet has its own number, even one that carries lost contents
 * again, so an acknowledgement always says which one arrived. A packet is taken for lost when
 * later ones have arrived and some time has passed (RFC 8985). If nothing arrives at all,
 * first one packet is sent to find out (tail-loss probe). After that every packet in flight is
 * taken for lost (RFC 6298).
 */
#include "nal/net/dgram/dgram_core.h"

#define FIRST_ROOM 8u

static struct dgram_sent *at_pn(const struct dgram_conn *c, uint64_t pn)
{
	struct dgram_sent *s;

	if (!c->sent_room)
		return NULL;
	s = &c->sent[pn & (c->sent_room - 1)];
	return s->pn == pn && s->state != DGRAM_SENT_NONE ? s : NULL;
}

static void forget_packet(struct dgram *m, struct dgram_sent *s)
{
	if (s->data)
		dgram_msg_unref(m, s->data);
	s->data = NULL;
	s->state = DGRAM_SENT_NONE;
}

/* How long packets taken for lost are kept. After time-outs, or as long as nothing was measured,
 * the round trip may be much longer than what is known of it. */
static uint64_t kept_for(const struct dgram *m, const struct dgram_rec *r)
{
	return r->srtt && !r->conn->backoff ? 2 * r->srtt + m->cfg.ack_delay_ns : m->cfg.dead_ns;
}

/* Move past the oldest packets that need no tracking. Packets taken for lost are kept for
 * about a round trip: if one of them arrives after all, the network reorders packets, or the
 * round trip takes longer than the timer. */
static void trim(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	uint64_t keep = kept_for(m, r);

	for (; c->oldest < r->tx_pn; c->oldest++) {
		struct dgram_sent *s = at_pn(c, c->oldest);

		if (!s)
			continue;
		if (s->state == DGRAM_SENT_FLIGHT ||
		    (m->now - s->lost_at < keep && r->tx_pn - c->oldest < DGRAM_WINDOW / 2))
			return;
		forget_packet(m, s);
	}
}

void dgram_sent_forget(struct dgram *m, struct dgram_conn *c)
{
	for (uint32_t i = 0; i < c->sent_room; i++)
		if (c->sent[i].state != DGRAM_SENT_NONE)
			forget_packet(m, &c->sent[i]);
	c->flight = 0;
	c->flight_bytes = 0;
}

struct dgram_sent *dgram_sent_place(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	uint32_t room = c->sent_room;
	struct dgram_sent *more, *s;

	if (r->tx_pn - c->oldest >= c->sent_room)
		trim(m, r);
	if (r->tx_pn - c->oldest >= DGRAM_WINDOW - 64)
		return NULL;
	while (r->tx_pn - c->oldest >= room)
		room = room ? 2 * room : FIRST_ROOM;
	if (room != c->sent_room) {
		more = dgram_alloc(m, room * sizeof(*more));
		if (!more)
			return NULL;
		memset(more, 0, room * sizeof(*more));
		for (uint32_t i = 0; i < c->sent_room; i++)
			if (c->sent[i].state != DGRAM_SENT_NONE)
				more[c->sent[i].pn & (room - 1)] = c->sent[i];
		dgram_free(m, c->sent, c->sent_room * sizeof(*c->sent));
		c->sent = more;
		c->sent_room = room;
	}
	s = &c->sent[r->tx_pn & (room - 1)];
	*s = (struct dgram_sent){ 0 };
	return s;
}

void dgram_sent_out(struct dgram *m, struct dgram_rec *r, struct dgram_sent *s)
{
	struct dgram_conn *c = r->conn;

	s->state = DGRAM_SENT_FLIGHT;
	s->at = m->now;
	if (!c->flight)
		c->loss_at = NET_NEVER;
	c->flight++;
	if (!s->probe)
		c->flight_bytes += s->bytes;
	c->last_at = m->now;
	if (!c->waiting_since)
		c->waiting_since = m->now | 1;
}

/* ---- round-trip times ------------------------------------------------------------------------ */

/* RFC 6298 sections 2.2 and 2.3 */
static void measure(struct dgram *m, struct dgram_rec *r, uint64_t rtt, uint64_t delay)
{
	r->min_rtt = r->min_rtt ? dgram_min64(r->min_rtt, rtt) : rtt;
	/* RFC 9002 section 5.3: subtract at most the largest delay, and stay above min_rtt */
	delay = dgram_min64(delay, m->cfg.ack_delay_ns);
	if (rtt >= r->min_rtt + delay)
		rtt -= delay;
	if (!rtt)
		rtt = 1;
	r->conn->least_rtt[0] = dgram_min64(r->conn->least_rtt[0], rtt);
	if (!r->srtt) {
		r->srtt = rtt;
		r->rttvar = rtt / 2;
	} else {
		uint64_t off = r->srtt > rtt ? r->srtt - rtt : rtt - r->srtt;

		r->rttvar = r->rttvar - r->rttvar / 4 + off / 4;
		r->srtt = r->srtt - r->srtt / 8 + rtt / 8;
	}
}

uint64_t dgram_rto(const struct dgram *m, const struct dgram_rec *r)
{
	if (!r->srtt)
		return m->cfg.rto_start_ns;
	/* RFC 6298 sections 2.3 to 2.5; the acknowledgement may be delayed, too. The bound must
	 * not fall below the round trip, or every packet would be sent again. */
	return dgram_min64(dgram_max64(r->srtt + dgram_max64(4 * r->rttvar, m->cfg.ack_delay_ns),
				       m->cfg.rto_min_ns),
			   dgram_max64(m->cfg.rto_max_ns, 2 * r->srtt));
}

/* RFC 8985 section 7.2 */
static uint64_t probe_after(const struct dgram *m, const struct dgram_rec *r)
{
	uint64_t pto = 2 * r->srtt + (r->conn->flight == 1 ? m->cfg.ack_delay_ns : 0);

	if (!r->srtt)
		return m->cfg.rto_start_ns;
	/* time that a busy receiver may take to poll */
	pto = dgram_max64(pto, m->cfg.ack_delay_ns + DGRAM_MS);
	return dgram_min64(pto, dgram_rto(m, r));
}

/* ---- loss ------------------------------------------------------------------------------------ */

static void message_lost(struct dgram_conn *c, uint32_t number)
{
	struct dgram_msg *msg;

	if (number - c->msg_base >= c->msg_unsent - c->msg_base)
		return;
	msg = c->msg[number & (c->msg_room - 1)];
	if (msg->state == DGRAM_MSG_FLIGHT) {
		msg->state = DGRAM_MSG_LOST;
		c->msg_lost++;
	}
}

static void control_lost(struct dgram_conn *c, uint32_t i)
{
	struct dgram_ctl *ctl;

	if (i - c->ctl_base >= c->ctl_unsent - c->ctl_base)
		return;
	ctl = &c->ctl[i & (c->ctl_room - 1)];
	if (ctl->state == DGRAM_MSG_FLIGHT) {
		ctl->state = DGRAM_MSG_LOST;
		c->ctl_lost++;
	}
}

static void no_longer_in_flight(struct dgram_conn *c, const struct dgram_sent *s)
{
	c->flight--;
	if (!s->probe)
		c->flight_bytes -= s->bytes;
}

/* Take a packet for lost: its contents are to be sent again. */
static void take_packet_for_lost(struct dgram *m, struct dgram_rec *r, struct dgram_sent *s,
				 bool by_timer)
{
	struct dgram_conn *c = r->conn;

	no_longer_in_flight(c, s);
	s->state = DGRAM_SENT_LOST;
	s->lost_at = m->now;
	s->by_timer = by_timer;
	m->stats.lost_packets++;
	r->lost_packets++;
	if (s->probe) {
		dgram_mtu_lost(m, r, s->bytes);
		return;
	}
	dgram_mtu_seen(m, r, s->bytes, false);
	for (uint32_t i = 0; i < s->msgs; i++)
		message_lost(c, s->msg + i);
	for (uint32_t i = 0; i < s->ctls; i++)
		control_lost(c, s->ctl + i);
	if (s->data)
		dgram_segment_add(m, r, s->data, s->data_offset, s->data_len);
}

/* RFC 8985 section 6.2, step 4: how much later a packet may arrive than one that was sent
 * after it. */
static uint64_t reordering_window(const struct dgram_rec *r)
{
	return dgram_min64(r->min_rtt / 4 * r->conn->reo_mult, r->srtt);
}

/* RFC 8985 section 6.2, step 5 */
static void detect(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	uint64_t window = reordering_window(r);

	c->loss_at = NET_NEVER;
	for (uint64_t pn = c->oldest; pn < c->rack_pn; pn++) {
		struct dgram_sent *s = at_pn(c, pn);
		uint64_t by;

		if (!s || s->state != DGRAM_SENT_FLIGHT || s->at > c->rack_at)
			continue;
		by = s->at + c->rack_rtt + window;
		/* RFC 9002 section 6.1.1: while packets arrive in order, three later ones
		 * suffice */
		if (by <= m->now || (!c->reordered && c->newest_acked >= pn + 3)) {
			bool probe = s->probe;

			take_packet_for_lost(m, r, s, false);
			if (!probe) {
				dgram_cc_lost(m, r, pn);
				dgram_mtu_overtaken(m, r, s->bytes);
			}
		} else {
			c->loss_at = dgram_min64(c->loss_at, by);
		}
	}
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

/* The contents of the packet have arrived. */
static void contents_arrived(struct dgram_conn *c, const struct dgram_sent *s)
{
	for (uint32_t i = 0; i < s->msgs; i++)
		dgram_msg_acked(c, s->msg + i);
	for (uint32_t i = 0; i < s->ctls; i++)
		dgram_ctl_acked(c, s->ctl + i);
	if (s->state == DGRAM_SENT_LOST && s->data)
		dgram_segment_forget(c, s);
}

static void sent_arrived(struct dgram *m, struct dgram_rec *r, struct dgram_sent *s)
{
	struct dgram_conn *c = r->conn;

	if (s->state == DGRAM_SENT_FLIGHT) {
		no_longer_in_flight(c, s);
		/* RFC 8985 section 6.2, step 2 */
		if (s->at > c->rack_at || (s->at == c->rack_at && s->pn > c->rack_pn)) {
			c->rack_at = s->at;
			c->rack_pn = s->pn;
			c->rack_rtt = m->now - s->at;
		}
		if (!s->probe) {
			dgram_mtu_seen(m, r, s->bytes, true);
			dgram_cc_acked(m, r, s->pn, s->bytes);
		}
	} else if (s->by_timer) {
		m->stats.spurious++;
		dgram_cc_not_lost(r, s->pn);
	} else {
		m->stats.spurious++;
		c->reordered = true;
		if (c->reo_mult < 64)
			c->reo_mult++;
	}
	if (s->probe)
		dgram_mtu_arrived(m, r, s->bytes);
	contents_arrived(c, s);
	forget_packet(m, s);
}

static bool bit(const struct dgram_frame *f, uint64_t i)
{
	return f->bytes[i / 8] >> i % 8 & 1;
}

/* Can the acknowledgement be true of what we sent? */
static bool plausible(const struct dgram_rec *r, const struct dgram_frame *f)
{
	const struct dgram_conn *c = r->conn;

	return f->body_len && f->body_len < r->tx_pn && !dgram_before(c->msg_unsent, f->number);
}

void dgram_acked(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f)
{
	struct dgram_conn *c = r->conn;
	uint64_t newest = f->body_len, bits = 64ull * f->words;
	uint64_t base = newest > bits ? newest - bits : 1; /* first packet that it reports */
	uint32_t end = f->number + f->credit;
	struct dgram_sent *s;
	bool any = false;

	if (!plausible(r, f)) {
		net_drop(m, NET_DROP_BAD_ACK);
		return;
	}
	if (dgram_before(c->credit_end, end)) {
		c->credit_end = end;
	}
	if (dgram_before(c->msg_base, f->number)) {
		dgram_msg_delivered(m, r, f->number);
		c->persists = 0;
	}
	/* also one taken for lost, as no other packet has its number: where a round trip takes
	 * longer than the timer nothing else would ever be measured */
	s = at_pn(c, newest);
	if (s)
		measure(m, r, m->now - s->at, (uint64_t)f->delay_us * DGRAM_US);
	c->newest_acked = dgram_max64(c->newest_acked, newest);
	for (uint64_t pn = dgram_max64(base, c->oldest); pn <= newest; pn++) {
		s = at_pn(c, pn);
		if (!s || (pn != newest && !bit(f, pn + bits - newest)))
			continue;
		sent_arrived(m, r, s);
		any = true;
	}
	if (!any)
		return;
	c->backoff = 0;
	c->waiting_since = c->flight ? m->now | 1 : 0;
	dgram_cc_rate(m, r);
	detect(m, r);
	trim(m, r);
}

bool dgram_acks_all(const struct dgram_rec *r, const struct dgram_frame *f)
{
	const struct dgram_conn *c = r->conn;
	const struct dgram_sent *s = at_pn(c, c->oldest);

	return c->flight == 1 && !c->backoff && f->body_len == c->oldest && s &&
	       s->state == DGRAM_SENT_FLIGHT;
}

/* ---- timers ---------------------------------------------------------------------------------- */

static uint64_t timeout_at(const struct dgram *m, const struct dgram_rec *r)
{
	const struct dgram_conn *c = r->conn;
	uint32_t doubled = c->backoff > 1 ? c->backoff - 1 : 0;
	uint64_t rto = dgram_rto(m, r);

	if (!c->backoff)
		return c->last_at + probe_after(m, r);
	/* RFC 6298 section 5.5 */
	return c->last_at + dgram_min64(rto << (doubled < 16 ? doubled : 16),
					dgram_max64(rto, m->cfg.rto_max_ns));
}

uint64_t dgram_loss_due(const struct dgram *m, const struct dgram_rec *r)
{
	const struct dgram_conn *c = r->conn;
	uint64_t at;

	if (!c->flight)
		return NET_NEVER;
	at = dgram_min64(c->loss_at, timeout_at(m, r));
	return dgram_min64(at, silence_since(&m->silence, c->waiting_since) + m->cfg.dead_ns);
}

static struct dgram_sent *oldest_in_flight(const struct dgram_rec *r)
{
	for (uint64_t pn = r->conn->oldest; pn < r->tx_pn; pn++) {
		struct dgram_sent *s = at_pn(r->conn, pn);

		if (s && s->state == DGRAM_SENT_FLIGHT)
			return s;
	}
	return NULL;
}

/* RFC 8985 section 7.3: send one more packet, whatever the window says. It carries the
 * contents of the oldest one, as that is needed most. If the oldest was not lost, its contents
 * arrive twice. */
static void tail_probe(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	struct dgram_sent *s = oldest_in_flight(r);

	m->stats.probes++;
	c->backoff = 1;
	c->probes = 1;
	c->last_at = m->now;
	if (s)
		take_packet_for_lost(m, r, s, true);
	/* it may hold nothing that is to be sent again */
	c->ping = !s || !(s->msgs || s->ctls || (s->data && s->data->asked));
}

/* RFC 6298 sections 5.4 to 5.6, and RFC 8985 section 6.3: take everything in flight for lost. */
static void timed_out(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	m->stats.timeouts++;
	dgram_cc_timeout(m, r);
	for (uint64_t pn = c->oldest; pn < r->tx_pn; pn++) {
		struct dgram_sent *s = at_pn(c, pn);

		if (s && s->state == DGRAM_SENT_FLIGHT)
			take_packet_for_lost(m, r, s, true);
	}
	c->loss_at = NET_NEVER;
	c->backoff++;
	c->probes = 2;
	c->ping = true;
	c->last_at = m->now;
}

bool dgram_loss_timers(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	if (c->persist_at <= m->now) {
		c->persist_at = NET_NEVER;
		c->ping = !c->flight;
	}
	/* briefly nothing may be in flight, if the link had no room to send again */
	if (c->waiting_since && silence_so_far(&m->silence, c->waiting_since) >= m->cfg.dead_ns) {
		dgram_peer_fail(m, r, NET_DEAD);
		return false;
	}
	if (!c->flight)
		return true;
	if (c->loss_at <= m->now) {
		detect(m, r);
		trim(m, r);
	}
	if (c->flight && timeout_at(m, r) <= m->now) {
		if (!c->backoff)
			tail_probe(m, r);
		else
			timed_out(m, r);
	}
	return true;
}
