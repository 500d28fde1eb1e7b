/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The link over a simulated network, between processes of one host and in real time. The delays
 * and faults of packets follow the model of nal/net/dgram/sim, as PTL_SIM sets it. It needs no
 * rights and no other network.
 *
 *   sim.c        the operations of the NAL: opening, cards, addresses
 *   sim_link.c   packets: the sender holds them until they get to the receiver's link, the
 *                receiver until they are through
 *   sim_rules.c  PTL_SIM
 *
 * Packets go by datagrams over the loopback interface, from an address that nothing else uses.
 * The sender's process simulates the sender's side of the network and everything that happens
 * by chance. The receiver's process simulates the receiver's link and its queue, where packets
 * of many senders meet. Neither tells the other anything: only packets are on the wire. The
 * time that this host takes comes on top.
 *
 * A thread that waits for packets is woken by a descriptor. It is readable when packets have
 * come, and when a held packet is due, no matter which thread sent it or what that thread does
 * by then.
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

/* An outgoing or incoming packet. */
struct sim_packet {
	uint16_t port; /* of the other process */
	uint32_t len;
	uint8_t bytes[];
};

struct sim_link {
	struct net net;    /* first: the machine's callbacks get it */
	int fd;            /* the socket */
	int timer;         /* set to when the next held packet is due */
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

/* Parse the value of PTL_SIM, NULL for none. Returns NULL, or a sentence that says what is
 * wrong with it, valid until the thread's next call. */
const char *sim_rules_take(struct sim_rules *r, const char *text);
/* Write the rules as text for people. */
void sim_rules_describe(const struct sim_rules *r, char *text, size_t len);

/* ---- sim_link.c ------------------------------------------------------------------------------ */

/* The address of a process on the loopback interface. */
struct sockaddr_in sim_at(uint16_t port);

/* Make `timer` and `both` for the open socket. Returns 0 or -errno. */
int sim_link_begin(struct sim_link *l);
/* Send the packets that are still held when they are due, for at most a second. Free the
 * packets that wait. */
void sim_link_end(struct sim_link *l);

/* Of net_link. */
void *sim_room(void *link, size_t len);
void sim_transmit(void *link, const struct dgram_packet *p);
void sim_flush(void *link);
unsigned int sim_receive(void *link, struct net *n);

#endif
