/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Two or three simulated processes whose datagram machines are watched closely: what the tests
 * of single mechanisms share.
 */
#ifndef TEST_DGRAM_PAIR_H
#define TEST_DGRAM_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nal/net/dgram/sim/sim.h"

#define MS     1000000ull
#define SECOND 1000000000ull

enum { PAIR_NODES = 3, PAIR_LONG = 8 << 20 };

/* The callbacks that the owner of each machine got. */
struct told {
	uint32_t delivered, landed, sent, up, lost;
	uint32_t order[PAIR_NODES]; /* of the next message, as the headers of each sender count */
	enum net_status sent_status, landed_status, lost_status;
	uint64_t sent_length, lost_at;
	struct net_who who;
	bool later, refuse; /* say NET_LATER to everything; let nobody in */
	uint8_t *delivery;
};

struct pair {
	struct sim *s;
	struct told told[PAIR_NODES];
	uint32_t given[PAIR_NODES][PAIR_NODES];
	uint8_t *source;
	bool knows_places; /* accept() says where a peer is */
	/* packets seen, and what becomes of them */
	uint32_t packets;
	bool (*keep)(struct pair *p, uint32_t from, uint32_t to, uint8_t *packet, size_t len);
	uint32_t drop_from, drop_to; /* for keep: packets with these counts, as it likes */
	uint8_t *record;             /* what was seen: from, to, length, bytes */
	size_t recorded, record_room;
};

/* Settings as the tests want them, to be changed before pair_start. */
void pair_settings(struct sim_cfg *cfg);
void pair_start(struct pair *p, struct sim_cfg *cfg);
void pair_end(struct pair *p);

/* A message with a body of `len` bytes; headers count per pair. Returns what dgram_send does. */
int pair_send(struct pair *p, uint32_t from, uint32_t to, uint64_t len);
/* Time passes. */
void pair_wait(struct pair *p, uint64_t ns);
/* Until *what is `value`, or for a minute; then the test fails. */
void pair_until(struct pair *p, const uint32_t *what, uint32_t value);

struct net_stats pair_stats(struct pair *p, uint32_t node);
struct dgram_peer_info pair_info(struct pair *p, uint32_t node, uint32_t peer);
/* Everything recorded so far arrives again, at whom it was meant for. */
void pair_replay(struct pair *p);

#endif
