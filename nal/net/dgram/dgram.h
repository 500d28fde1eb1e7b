/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reliable messages over unreliable datagrams: a machine without input or output of its own. A
 * link gives it packets and the time. It says which packets to send and when to wake it. It
 * uses no socket, clock, thread or environment, so what runs on a network also runs in a
 * simulation, byte for byte. doc/wire-dgram.md describes the protocol.
 *
 * A *message* is a header of at most NET_HEADER_MAX bytes, opaque to the machine, and a body.
 * Messages between two machines are delivered in order and exactly once. A short body comes
 * with its header. For a longer one, the receiver says at delivery how much it accepts and
 * where those bytes go (the *delivery*). The machine fetches them from the sender's memory and
 * writes them there directly, in any order, interleaved with other messages. A message ends
 * exactly once on each side: on the sender's when the receiver has all it wants, on the
 * receiver's when the delivery is complete; or on either with a reason for failure. Answers to
 * requests are messages, too: the owner sends them.
 *
 * Calls: the *owner* created the machine; it is a link together with the code that it serves.
 * The owner calls one function of a machine at a time, guarded by a lock of its own, with a
 * time that never goes back. The machine calls back only within such a call, on the same
 * thread, and only as each callback's comment says. A callback may call dgram_send,
 * dgram_peer, dgram_watch, dgram_resume and functions that only read; nothing else. Messages
 * sent from a callback go out with the next dgram_run. No function blocks.
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
	uint32_t peer;             /* NET_NONE: the receiver is not a peer (yet) */
	const struct net_addr *to; /* valid until transmit() returns */
	uint8_t *head;             /* as room() returned it */
	size_t head_len;
	/* Bytes behind the head: memory of the owner, from which a body is sent. The iovecs
	 * are valid until transmit() returns. The memory they point to is valid until the next
	 * call of a function of the machine. */
	const struct iovec *body;
	int segments;
	size_t body_len;
	/* probes the path MTU: must not be fragmented, may be lost or refused by the kernel */
	bool probe;
	bool anywhere; /* the receiver ignores the source address */
};

#define DGRAM_SEGMENTS 16 /* at most in one packet */

struct dgram_ops {
	/* -- packets out; called by dgram_run, and by dgram_close -- */

	/* Room for the head of one packet. The whole packet has at most `len` bytes (and at
	 * most DGRAM_MTU_MAX). The room stays with the link from transmit() until the packet
	 * is sent; a link may copy the body behind the head. NULL: no more for now; dgram_run
	 * stops, and goes on when it is called again. Without a transmit() the room is not
	 * used. */
	void *(*room)(void *user, size_t len);
	void (*transmit)(void *user, const struct dgram_packet *p);

	/* Write 16 bytes to `tag`: over head[0..24) and head[40..head_len), and over the body
	 * if whole packets are protected. NULL: no tags. Run without them only on a network
	 * that itself checks and keeps out everything foreign. */
	void (*seal)(void *user, const uint8_t *head, size_t head_len, const struct iovec *body,
		     int segments, uint8_t tag[NET_TAG_BYTES]);
	/* Is the tag of this packet right? dgram_receive calls this before it uses anything of
	 * the packet except head_len, which lies within the packet. */
	bool (*verify)(void *user, const uint8_t *packet, size_t head_len, size_t len);

	/* -- messages in; called by dgram_receive and dgram_run -- */

	/* The next message of `peer` in order. */
	enum net_verdict (*deliver)(void *user, uint32_t peer, const struct net_in *in,
				    struct net_delivery *delivery);
	/* A delivery is complete, or it never will be and its memory is no longer written to.
	 * Called once for each NET_PULL. */
	void (*delivered)(void *user, uint32_t peer, void *cookie, enum net_status s);

	/* -- ends of messages out; called by dgram_receive, dgram_run and dgram_destroy -- */

	/* A message with a cookie is over: it was delivered and the peer accepted `length`
	 * bytes of its body (NET_OK), or nothing of it. The memory of its body is no longer
	 * read. Called once for each. */
	void (*sent)(void *user, uint32_t peer, void *cookie, uint64_t length, enum net_status s);

	/* A peer never answered. Called for each message to it, oldest first, just before the
	 * end of the message is reported; nothing of it was sent. True: the owner sends it
	 * another way, and gets no further report. NULL: always false. Called by dgram_receive
	 * and dgram_run. */
	bool (*unsent)(void *user, uint32_t peer, const struct net_out *o);

	/* -- peers; called by dgram_receive and dgram_run -- */

	/* A process that is not yet a peer calls. True: admit it. An owner that knows its
	 * address makes it a peer here; it must do so if `from` is NULL. */
	bool (*accept)(void *user, const struct net_who *who, const struct net_addr *from);
	/* A connection stands. Called before its first message is delivered or sent. */
	void (*up)(void *user, uint32_t peer, const struct net_who *who);
	/* The connection has failed, or could not be made. sent() and delivered() have reported
	 * every message and delivery already. Answers that the owner itself expects of that
	 * process will not come. A message sent to the peer from now on makes a new
	 * connection. */
	void (*peer_failed)(void *user, uint32_t peer, enum net_status s);

	/* Longest datagram, in bytes, that the link carries to this address. NULL: cfg.mtu for
	 * all. Called by dgram_run. */
	uint32_t (*longest)(void *user, const struct net_addr *to);
	/* Longest datagram, in bytes, to this address that goes as one. A longer one, if
	 * `longest` permits it, goes in segments that must arrive joined, and is lost with any
	 * of them. NULL: all go as one. Called by dgram_run and dgram_receive. */
	uint32_t (*whole)(void *user, const struct net_addr *to);

	/* -- memory -- */

	/* Location of bytes [offset, offset + len) of the memory range with this cookie. Fills
	 * at most `max` iovecs from the front and returns their number. They may cover less
	 * than `len`, but never nothing. Called by dgram_run for bodies and by dgram_receive
	 * for deliveries. */
	int (*segments)(void *user, void *cookie, uint64_t offset, uint64_t len, struct iovec *iov,
			int max);
};

struct dgram_cfg {
	net_id_t id;          /* our own id */
	uint64_t incarnation; /* of this process: unlike that of any other process with this id */
	uint64_t seed;        /* for tokens; must be random where packets may be forged */
	uint32_t uid, jid;
	uint32_t mtu;       /* longest datagram the link carries, DGRAM_MTU_MIN to DGRAM_MTU_MAX */
	uint32_t mtu_start; /* used without probing first; 0: DGRAM_MTU_MIN */

	/* 0 means the value of dgram_defaults */
	uint64_t rto_start_ns; /* retransmission time-out before the first measurement */
	uint64_t rto_min_ns;
	uint64_t rto_max_ns;
	uint64_t ack_delay_ns; /* how long a single packet may wait for its acknowledgement */
	uint64_t keepalive_ns; /* a connection that is silent this long is probed */
	uint64_t dead_ns;      /* without an answer for this long, the peer has failed */
	uint64_t linger_ns;    /* how long an idle connection keeps its active part */
	/* most bytes in flight to one peer, such as the size of its socket's buffer; 0: only
	 * packet numbers limit it */
	uint32_t window;
	uint32_t push_bytes; /* bytes of a long body that are sent before the receiver asks */
	uint32_t credit;     /* messages a peer may send ahead of those delivered: 16 to 1024 */
	uint32_t backlog;    /* messages to one peer that may wait in dgram_send */
	/* bytes held for messages to one peer above which dgram_congested is true */
	size_t congested_bytes;
	uint32_t max_peers;
	/* bytes held, over all peers, for messages that wait for an earlier one or for
	 * dgram_resume */
	size_t early_bytes;
};

/* ---- the machine ----------------------------------------------------------------------------- */

/* Set every member except those that the owner must give: id, incarnation, seed, mtu. */
void dgram_defaults(struct dgram_cfg *cfg);

/* The machine copies *ops and *cfg. NULL: out of memory, or *cfg is invalid. */
struct dgram *dgram_create(const struct dgram_ops *ops, void *user, const struct dgram_cfg *cfg);

/* Say goodbye to every connected peer, by as many packets as there is room() for. Returns how
 * many peers are left. Afterwards the only valid calls are this one and dgram_destroy. */
uint32_t dgram_close(struct dgram *m, uint64_t now);

/* End every message and delivery with NET_ENDED (no peer_failed()), and free the machine. Accepts
 * NULL. */
void dgram_destroy(struct dgram *m);

/* The peer with this id. If it is unknown, it becomes known with address *addr; else its
 * address stays. No packet is sent. NET_NONE: out of memory, or cfg.max_peers are known and
 * all are in use. Peers are numbered from 0. A number stays with its id until it is needed for
 * another id while the peer has no connection, no attempt at one, and nothing is expected of
 * it. */
uint32_t dgram_peer(struct dgram *m, net_id_t id, const struct net_addr *addr);
/* Fix the peer's address to the one given to dgram_peer, wherever its packets come from: the
 * tag does not cover the source. Otherwise the address is taken from the packet that makes a
 * connection. */
void dgram_peer_fix(struct dgram *m, uint32_t peer);
/* As dgram_peer, but never makes it known. */
uint32_t dgram_peer_find(const struct dgram *m, net_id_t id);

/* Queue a message to `peer`; make a connection if there is none. Nothing is sent before
 * dgram_run. Returns 0; -EAGAIN: cfg.backlog messages are queued already; -ENOMEM; -EINVAL: no
 * such peer, or header or body too long. On error nothing has happened and nothing will be
 * reported. */
int dgram_send(struct dgram *m, uint64_t now, uint32_t peer, const struct net_out *o);

/* So much is queued for this peer that the owner should not have more copied for it. */
bool dgram_congested(const struct dgram *m, uint32_t peer);

/* The next `packets` packets arrived joined, by the network or by this host. So the path holds
 * that many at once. */
void dgram_joined(struct dgram *m, uint32_t packets);

/* A datagram arrived. `packet` may be anything, is only read, and is not needed afterwards;
 * bodies are copied from it to their deliveries. `from` is NULL if the link did not ask for
 * it. Then packets for which dgram_packet_names() is true use the known address of their
 * sender. They are dropped if there is none. */
void dgram_receive(struct dgram *m, uint64_t now, const struct net_addr *from, const void *packet,
		   size_t len);

/* The network returned a packet of ours, or a part of it, because nobody is at its
 * destination. Only a HELLO that still waits for its answer, whole and with its tag, has an
 * effect: its peer is unreachable. */
void dgram_refused(struct dgram *m, uint64_t now, const void *packet, size_t len);

/* Everything that had arrived at time `at` has been given to dgram_receive. A peer is taken for
 * dead by its silence up to that time, so without this call never. */
void dgram_listened(struct dgram *m, uint64_t at);

/* Do what is due: timers, then packets, as many as there is content for and the network and
 * the link can take. True: call again after these packets were sent. Either the link had no
 * more room and there is more to send, or some work could wait until then. */
bool dgram_run(struct dgram *m, uint64_t now);

/* As dgram_run, before a sleep. Frames that wait briefly for a packet to travel with go out
 * too, as they are not worth a wake-up. */
bool dgram_settle(struct dgram *m, uint64_t now);

/* Time when dgram_run must be called at the latest if nothing arrives and nothing is sent; 0:
 * at once; NET_NEVER. */
uint64_t dgram_wake(const struct dgram *m);

/* Change by `change` the number of things expected of this peer that the machine does not know
 * of, such as answers. While there are any, silence is noticed even if nothing is in flight. */
void dgram_watch(struct dgram *m, uint32_t peer, int change);

/* After deliver() returned NET_LATER for this peer: the next dgram_run asks it again. */
void dgram_resume(struct dgram *m, uint32_t peer);

/* ---- statistics ------------------------------------------------------------------------------ */

void dgram_stats(const struct dgram *m, struct net_stats *s);

struct dgram_peer_info {
	struct net_who who; /* id; the rest as of the last connection */
	struct net_addr addr;
	bool open;
	uint64_t srtt_ns, rttvar_ns, min_rtt_ns, rto_ns; /* 0: not measured */
	uint64_t cwnd, in_flight;                        /* bytes */
	uint32_t mtu;
	/* our messages that are not over, and PULLs it has not acknowledged */
	uint32_t queued;
	uint32_t deliveries; /* incoming bodies */
	uint64_t lost_packets;
	uint64_t heard_ns; /* when we last heard from it */
};

/* False: no such peer. */
bool dgram_peer_info(const struct dgram *m, uint32_t peer, struct dgram_peer_info *info);

#endif
