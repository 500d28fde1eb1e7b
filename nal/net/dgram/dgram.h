/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reliable messages over unreliable datagrams, as a machine without input or output of its own:
 * a link gives it packets and the time, and it says which packets to send and when to wake it.
 * There is no socket, no clock, no thread and no environment in here, so what runs on a network
 * runs in a simulation, byte for byte. doc/wire-dgram.md describes the protocol.
 *
 * A *message* is a header of at most NET_HEADER_MAX bytes, which mean nothing to the machine,
 * and a body. Messages of a pair of machines are delivered in order and exactly once. A short
 * body comes with its header. Of a longer one, the receiver says at delivery how much it takes
 * and where that goes (the
 * *landing*); it is fetched from the sender's memory and put there directly, in any order, behind
 * or between whatever is delivered meanwhile. A message ends exactly once on each side: on the
 * sender's when the receiver has all it wants of it, on the receiver's when the landing is full;
 * or with a reason why not. Answers to requests are messages, too: that is for the owner to do.
 *
 * Who calls what. The *owner* is who made the machine: a link together with what it serves. It
 * calls one function of a machine at a time (a lock of its own sees to that), with a time that
 * never goes back. The machine calls back only from within such a call, on the same thread, and
 * only as each callback's comment says. A callback may call dgram_send, dgram_peer, dgram_watch,
 * dgram_resume and whatever only looks; nothing else. What is sent from a callback goes out with
 * the next dgram_run.
 *
 * A round of the owner is:
 * 	for each packet that has arrived: dgram_receive(m, now, from, packet, len)
 * 	dgram_run(m, now)		gives packets to the link by room() and transmit()
 * 	hand the packets collected to the kernel
 * 	sleep until dgram_wake(m), or until something arrives or is to be sent
 */
#ifndef DGRAM_H
#define DGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "nal/net/carrier.h"
#include "nal/net/dgram/dgram_wire.h"

struct dgram;

/* ---- what the owner provides ----------------------------------------------------------------- */

struct dgram_packet {
	uint32_t peer;             /* NET_NONE: to somebody who is no peer (yet) */
	const struct net_addr *to; /* good until transmit() returns */
	uint8_t *head;             /* what room() gave */
	size_t head_len;
	/* What comes behind the head: memory of the owner, where a body is sent from. The iovecs
	 * are good until transmit() returns; the memory they point to until the next call of a
	 * function of the machine. */
	const struct iovec *body;
	int segments;
	size_t body_len;
	/* tries a path MTU: must not be fragmented, may be lost, may be refused by the kernel */
	bool probe;
	bool anywhere; /* the receiver does not look at where it comes from */
};

#define DGRAM_SEGMENTS 16 /* most in one packet */

struct dgram_ops {
	/* -- packets out; called by dgram_run, and by dgram_close -- */

	/* Room for the head of one packet that is `len` bytes long in all, at most (and at most
	 * DGRAM_MTU_MAX), that stays with the link from transmit() until it is sent; a link may
	 * copy the body behind it. NULL: no more for now; dgram_run stops and goes on when it is
	 * called again. Without a transmit() the room is not used. */
	void *(*room)(void *user, size_t len);
	void (*transmit)(void *user, const struct dgram_packet *p);

	/* Writes 16 bytes to `tag`: over head[0..24) and head[40..head_len), and, where whole
	 * packets are protected, over the body. NULL: no tags; nobody should run without them
	 * but on a network that checks and keeps out everything itself. */
	void (*seal)(void *user, const uint8_t *head, size_t head_len, const struct iovec *body,
		     int segments, uint8_t tag[NET_TAG_BYTES]);
	/* Is the tag of this packet right? Called by dgram_receive before anything is made of
	 * the packet but head_len, which lies within it. */
	bool (*verify)(void *user, const uint8_t *packet, size_t head_len, size_t len);

	/* -- messages in; called by dgram_receive and dgram_run -- */

	/* A message of `peer`, the next in order. */
	enum net_verdict (*deliver)(void *user, uint32_t peer, const struct net_in *in,
				    struct net_delivery *delivery);
	/* A landing is full, or it never will be and its memory is no longer written to. Once for
	 * each NET_PULL. */
	void (*landed)(void *user, uint32_t peer, void *cookie, enum net_status s);

	/* -- ends of messages out; called by dgram_receive, dgram_run and dgram_destroy -- */

	/* A message that was given a cookie is over: it was delivered, and the peer took
	 * `length` bytes of its body (NET_OK), or nothing of it. Its body's memory is no longer
	 * read. Once for each. */
	void (*sent)(void *user, uint32_t peer, void *cookie, uint64_t length, enum net_status s);

	/* A message to a peer that never answered, of those that were given to us the oldest
	 * first, just before its end is told: nothing of it was sent. True: the owner has taken
	 * it, to send it in another way, and hears nothing more of it. NULL: it never does.
	 * Called by dgram_receive and dgram_run. */
	bool (*unsent)(void *user, uint32_t peer, const struct net_out *o);

	/* -- peers; called by dgram_receive and dgram_run -- */

	/* A process that is no peer yet calls. True: let it in. Who knows where it is makes it a
	 * peer here, and has to if `from` is NULL. */
	bool (*accept)(void *user, const struct net_who *who, const struct net_addr *from);
	/* A connection stands; before the first message of it is delivered or is sent. */
	void (*up)(void *user, uint32_t peer, const struct net_who *who);
	/* It does not any more, or could not be made: every message and landing has been told
	 * already, by sent() and landed(). What the owner itself expects of that process
	 * (answers) will not come. A message sent to the peer from now on makes a new
	 * connection. */
	void (*lost)(void *user, uint32_t peer, enum net_status s);

	/* The longest datagram that the link carries to this address, if that depends on it;
	 * NULL: cfg.mtu to all. Called by dgram_run. */
	uint32_t (*longest)(void *user, const struct net_addr *to);
	/* Up to which length a datagram to this address goes as one. A longer one, if `longest`
	 * says that there may be, goes in segments that have to arrive joined, and is lost with
	 * any of them. NULL: all go as one. Called by dgram_run and dgram_receive. */
	uint32_t (*whole)(void *user, const struct net_addr *to);

	/* -- memory -- */

	/* Where bytes [offset, offset + len) of a stretch with this cookie are: fills at most
	 * `max` iovecs from the front, returns their number. They may cover less than len, never
	 * nothing. Called by dgram_run for bodies and by dgram_receive for landings. */
	int (*segments)(void *user, void *cookie, uint64_t offset, uint64_t len, struct iovec *iov,
			int max);
};

struct dgram_cfg {
	net_id_t id;          /* who we are */
	uint64_t incarnation; /* of this process: differs from that of any other that had this id */
	uint64_t seed;        /* for tokens: random where packets may be forged */
	uint32_t uid, jid;
	uint32_t mtu; /* the longest datagram the link carries, DGRAM_MTU_MIN to DGRAM_MTU_MAX */
	uint32_t mtu_start; /* sent without trying first; 0: DGRAM_MTU_MIN */

	/* 0 stands for what dgram_defaults says */
	uint64_t rto_start_ns; /* retransmission time-out before the first measurement */
	uint64_t rto_min_ns;
	uint64_t rto_max_ns;
	uint64_t ack_delay_ns; /* how long a single packet may wait for its acknowledgement */
	uint64_t keepalive_ns; /* a connection that is silent so long is asked for a sign of life */
	uint64_t dead_ns;      /* without an answer for so long the peer is lost */
	uint64_t linger_ns;    /* how long an idle connection keeps what it needs when it is busy */
	/* most bytes in flight to one peer, such as its socket's buffer takes; 0: what packet
	 * numbers allow */
	uint32_t window;
	uint32_t push_bytes; /* of a long body: sent before the receiver asks */
	uint32_t credit;     /* messages a peer may send ahead of what was delivered: 16 to 1024 */
	uint32_t backlog;    /* messages to one peer that may wait in dgram_send */
	/* of memory for messages to one peer, from which on dgram_congested is true */
	size_t crowd_bytes;
	uint32_t max_peers;
	/* of messages that wait for an earlier one, or for dgram_resume, over all peers */
	size_t early_bytes;
};

/* ---- the machine ----------------------------------------------------------------------------- */

/* Sets everything but what has to be given: id, incarnation, seed, mtu. */
void dgram_defaults(struct dgram_cfg *cfg);

/* The machine copies *ops and *cfg. NULL: no memory, or *cfg makes no sense. */
struct dgram *dgram_create(const struct dgram_ops *ops, void *user, const struct dgram_cfg *cfg);

/* Says goodbye to every peer that is connected: packets to be sent, as many as there is room()
 * for. Returns how many are left to tell. Nothing else may be done with the machine afterwards
 * than to call this again, or dgram_destroy. */
uint32_t dgram_close(struct dgram *m, uint64_t now);

/* Ends every message and landing with NET_ENDED (no lost()) and frees the machine. Takes NULL. */
void dgram_destroy(struct dgram *m);

/* The peer `id`; makes it known with address *addr if it is not, else the address is left as it
 * is. No packet is sent. NET_NONE: no memory, or cfg.max_peers are known and all of them of use.
 * Peers are numbered from 0, and a number stays with its id, until it is needed for another one
 * when there is no connection, or attempt at one, and nothing is expected. */
uint32_t dgram_peer(struct dgram *m, net_id_t id, const struct net_addr *addr);
/* It is at the address given by dgram_peer, wherever packets that say they are its come from:
 * the tag says nothing of that. Else it is where they do when a connection is made. */
void dgram_peer_fix(struct dgram *m, uint32_t peer);
/* The same without making it known. */
uint32_t dgram_peer_find(const struct dgram *m, net_id_t id);

/* Puts a message in the queue of messages to `peer`; makes a connection if there is none.
 * Nothing is sent before dgram_run. 0; -EAGAIN: cfg.backlog messages wait already; -ENOMEM;
 * -EINVAL: no such peer, header or body too long. If not 0, nothing has happened and nobody will
 * be told. */
int dgram_send(struct dgram *m, uint64_t now, uint32_t peer, const struct net_out *o);

/* So much waits for this peer that its owner had better not have more copied for it. */
bool dgram_congested(const struct dgram *m, uint32_t peer);

/* The next so many packets came in one piece, for the network or this host had joined them: so
 * many at once the path holds. */
void dgram_joined(struct dgram *m, uint32_t packets);

/* A datagram arrived. `packet` may be anything, is only read, and is not needed afterwards;
 * bodies are copied from it to their landings. `from` is NULL where that was not asked: packets
 * that dgram_packet_names() is true of then go by what is known of their sender, or are dropped
 * if nothing is. */
void dgram_receive(struct dgram *m, uint64_t now, const struct net_addr *from, const void *packet,
		   size_t len);

/* The network gave back a packet of ours, or what it kept of it, because nobody is where it
 * went. Only a greeting that still waits for its answer, whole and with its tag, says anything:
 * that peer is unreachable. */
void dgram_refused(struct dgram *m, uint64_t now, const void *packet, size_t len);

/* Does what is due: timers, then packets, as many as there is something to say in and the
 * network and the link can take. True: it is to be called again when they were sent, for the
 * link had no more room and there is more to send, or for what could wait until then. */
bool dgram_run(struct dgram *m, uint64_t now);

/* The same before a sleep: what waits a moment for company goes out, too, for it is not worth to
 * be woken for. */
bool dgram_settle(struct dgram *m, uint64_t now);

/* When dgram_run has to be called at the latest if nothing arrives and nothing is sent; 0: at once;
 * NET_NEVER. */
uint64_t dgram_wake(const struct dgram *m);

/* So many more, or fewer, things are expected of this peer that the machine does not know of,
 * such as an answer: while any is, silence is noticed even if nothing is on its way. */
void dgram_watch(struct dgram *m, uint32_t peer, int change);

/* deliver() said NET_LATER to this peer's message: it is asked again, by the next dgram_run. */
void dgram_resume(struct dgram *m, uint32_t peer);

/* ---- what can be seen ------------------------------------------------------------------------ */

void dgram_stats(const struct dgram *m, struct net_stats *s);

struct dgram_peer_info {
	struct net_who who; /* id; the rest as of the last connection */
	struct net_addr addr;
	bool open;
	uint64_t srtt_ns, rttvar_ns, min_rtt_ns, rto_ns; /* 0: not measured */
	uint64_t cwnd, in_flight;                        /* bytes */
	uint32_t mtu;
	/* messages that are not over on our side, and ends of others it has not heard of */
	uint32_t queued;
	uint32_t deliveries; /* bodies on their way to us */
	uint64_t lost_packets;
	uint64_t heard_ns; /* when we last heard of it */
};

/* False: no such peer. */
bool dgram_peer_info(const struct dgram *m, uint32_t peer, struct dgram_peer_info *info);

#endif
