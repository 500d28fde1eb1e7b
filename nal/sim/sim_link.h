/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The link over a simulated network, between processes of one host and in real time: what
 * packets cost and what happens to them follows the model of nal/net/dgram/sim, by PTL_SIM. No
 * rights are needed, and no other network.
 *
 *   sim.c        the operations of the NAL: opening, cards, addresses
 *   sim_link.c   packets: held by who sends them until they get to the receiver's link, and
 *                there until they are through
 *   sim_rules.c  PTL_SIM
 *
 * Packets go by datagrams over the loopback interface, from an address that nothing else uses.
 * Everything the sender's side of the network does is done in the sender's process, and so is
 * what happens by chance; what the receiver's link and its queue do, where packets of many
 * senders meet, in the receiver's. Neither tells the other anything: there is nothing on the
 * wire but packets. The time that this host takes comes on top.
 *
 * Whoever waits for packets is woken by a descriptor that is readable when some have come and
 * when a packet that is held is due, whoever sent it and whatever that thread does by then.
 */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include <netinet/in.h>

#include "nal/net/dgram/sim/sim_model.h"
#include "nal/net/net.h"

struct sim_rules {
	struct sim_model net;
	uint64_t seed;
	uint32_t mtu; /* longest packet */
};

/* On its way out, or in. */
struct sim_packet {
	uint16_t port; /* whose */
	uint32_t len;
	uint8_t bytes[];
};

struct sim_link {
	struct net net;    /* first: it is what the machine's callbacks get */
	int fd;            /* the socket, */
	int timer;         /* set to when the next packet that is held is due, */
	int both;          /* an epoll of the two */
	uint64_t timer_at; /* NET_NEVER: it is not set */
	uint16_t port;
	ptl_nid_t own_nid;
	struct net_ranks ranks;
	bool by_id; /* others are where their ids say */

	struct sim_rules rules;
	uint64_t random;
	struct sim_counts counts;
	uint64_t counted;           /* of these, on the statistics page */
	uint64_t link_out, link_in; /* when they are free again */
	struct sim_queue out, in;
	size_t in_bytes;
	struct sim_packet *room; /* what room() gave */
	uint8_t *arrived;        /* SIM_LONGEST bytes */
};

#define SIM_LONGEST   65536u
#define SIM_MTU_MOST  65000u
#define SIM_MTU_USUAL 1472u

/* ---- sim_rules.c ----------------------------------------------------------------------------- */

/* Takes the value of PTL_SIM, NULL for none. NULL, or a sentence that says what is wrong with
 * it, good until the next call of the thread. */
const char *sim_rules_take(struct sim_rules *r, const char *text);
void sim_rules_describe(const struct sim_rules *r, char *text, size_t len);

/* ---- sim_link.c ------------------------------------------------------------------------------ */

/* Where processes are on the loopback interface. */
struct sockaddr_in sim_at(uint16_t port);

/* Makes `timer` and `both`, for the socket that there is. 0, or -errno. */
int sim_link_begin(struct sim_link *l);
/* Sends what is still on its way out when it is time for it, for at most a second, and frees
 * what waits. */
void sim_link_end(struct sim_link *l);

/* Of net_link. */
void *sim_room(void *link, size_t len);
void sim_transmit(void *link, const struct dgram_packet *p);
void sim_flush(void *link);
unsigned int sim_receive(void *link, struct net *n);

#endif
