/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How long a packet may be: path MTU discovery as in RFC 8899. Packets that may be lost try lengths.
 */
#include "nal/dgram/dgram_core.h"

#define SECOND 1000000000ull

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
	dgram_cc_longer(m, r);
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
