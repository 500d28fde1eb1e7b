/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How long a packet may be: path MTU discovery as in RFC 8899. Probes, which may be lost, try
 * lengths.
 */
#include "nal/net/dgram/dgram_core.h"

#define SECOND 1000000000ull

/* RFC 8899 section 5.1.2 */
#define MAX_PROBES  3
#define RAISE_TIMER (600 * SECOND)

#define CUT_PROBES 2   /* for lengths that go in segments: most networks do not join them */
#define CUT_WORTH  8   /* try one if this many times its length are to be sent */
#define CUT_US     100 /* and it takes no longer than this: 5 Gbit/s */

/* UDP payload on usual networks: loopback, jumbo frames, Ethernet, PPPoE, tunnels; with IPv4
 * and with IPv6. */
static const uint32_t usual[] = {
	32768, 16384, 8972, 8952, 4068, 1472, 1464, 1452, 1444, 1400, 1352
};

static uint32_t longest(const struct dgram *m, const struct dgram_rec *r)
{
	uint32_t l = m->ops.longest ? m->ops.longest(m->user, &r->addr) : m->cfg.mtu;

	return l < DGRAM_MTU_MIN ? DGRAM_MTU_MIN : l > m->cfg.mtu ? m->cfg.mtu : l;
}

static uint32_t whole_packet(const struct dgram *m, const struct dgram_rec *r)
{
	uint32_t l = m->ops.whole ? m->ops.whole(m->user, &r->addr) : UINT32_MAX;

	return (uint32_t)dgram_min64(l, longest(m, r));
}

static uint32_t next_lower(uint32_t than)
{
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (usual[i] < than)
			return usual[i];
	return 0;
}

/* Is a packet of this length worth a few lost probes? On a slow path packets cost less than
 * the wire does. There the long packet would delay others, as it fills the path's queues. */
static bool worth_cutting(const struct dgram_rec *r, uint32_t size)
{
	const struct dgram_msg *body = r->conn->flow;

	return body && body->next < body->limit &&
	       body->limit - body->next > (uint64_t)CUT_WORTH * size &&
	       r->rate / 1000000 * CUT_US > size;
}

/* Try the longest possible length first (RFC 8899 section 5.3.2): on most paths it is right.
 * Only bodies are long enough to profit. A length that goes in segments is tried when the
 * longest one that goes as one has arrived. */
uint32_t dgram_mtu_wanted(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	if (c->mtu_out || r->mtu >= m->cfg.mtu || m->now < r->mtu_again ||
	    !(c->flow || c->segment_count))
		return 0;
	if (!c->mtu_probe) {
		uint32_t most_of_all = longest(m, r), as_one = whole_packet(m, r);

		if (r->mtu >= most_of_all) {
			r->mtu_again = m->now + RAISE_TIMER;
			return 0;
		}
		if (r->mtu >= as_one && !worth_cutting(r, most_of_all))
			return 0;
		c->mtu_probe = r->mtu < as_one ? as_one : most_of_all;
		c->mtu_tries = 0;
	}
	return c->mtu_probe;
}

void dgram_mtu_arrived(struct dgram *m, struct dgram_rec *r, uint32_t size)
{
	struct dgram_conn *c = r->conn;

	c->mtu_out = false;
	/* a probe from before the link came to carry less? */
	if (size <= r->mtu || size > longest(m, r))
		return;
	r->mtu = size;
	dgram_cc_longer(m, r);
	c->mtu_probe = 0;
	c->cut_lost = 0;
	r->mtu_again = m->now + (size == whole_packet(m, r) ? 0 : RAISE_TIMER);
}

void dgram_mtu_lost(struct dgram *m, struct dgram_rec *r, uint32_t size)
{
	struct dgram_conn *c = r->conn;
	bool cut = size > whole_packet(m, r);

	c->mtu_out = false;
	if (size != c->mtu_probe || ++c->mtu_tries < (cut ? CUT_PROBES : MAX_PROBES))
		return;
	c->mtu_probe = cut ? 0 : next_lower(size);
	c->mtu_tries = 0;
	if (c->mtu_probe <= r->mtu) {
		c->mtu_probe = 0;
		r->mtu_again = m->now + RAISE_TIMER;
	}
}

/* The link may now carry less than when r->mtu was found. Then packets that long arrive no
 * more. */
static void fall_in(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	uint32_t most = longest(m, r);

	if (r->mtu <= most)
		return;
	r->mtu = most;
	c->mtu_probe = 0;
	c->long_lost = c->cut_lost = 0;
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
		if (c->cut_lost && size > whole_packet(m, r))
			c->cut_lost--;
		return;
	}
	fall_in(m, r);
	if (size > r->mtu) /* sent before the length changed */
		return;
	if (!c->long_lost++)
		c->long_since = m->now;
	if (c->long_lost < BLACK_LOST || m->now - c->long_since < BLACK_RTOS * dgram_rto(m, r))
		return;
	c->long_lost = 0;
	if (r->mtu > whole_packet(m, r))
		r->mtu = whole_packet(m, r);
	else
		r->mtu = r->mtu > m->cfg.mtu_start ? m->cfg.mtu_start : DGRAM_MTU_MIN;
	r->mtu_again = m->now + RAISE_TIMER / 10;
	c->mtu_probe = 0;
}

/* A lost segment, or one that the network does not join, costs the whole packet each time. So
 * permit no more than one loss among CUT_RARE packets, and no three in a row. */
#define CUT_RARE 64u
#define CUT_MOST 2u

void dgram_mtu_overtaken(struct dgram *m, struct dgram_rec *r, uint32_t size)
{
	struct dgram_conn *c = r->conn;
	uint32_t as_one = whole_packet(m, r);

	if (size <= as_one || size > r->mtu)
		return;
	c->cut_lost += CUT_RARE;
	if (c->cut_lost <= CUT_MOST * CUT_RARE)
		return;
	r->mtu = as_one;
	r->mtu_again = m->now + RAISE_TIMER / 10;
	c->mtu_probe = 0;
	c->cut_lost = 0;
}
