/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Types that net.h and its carriers share: peers, messages, results. A carrier delivers
 * messages, each a header with a body, in order and exactly once between two processes. There
 * are two: the datagram machine (dgram/dgram.h) and the carrier over fabrics (rdma/rdma.h).
 * This header holds types and the texts of two enums; it sends nothing and takes no lock.
 */
#ifndef NET_CARRIER_H
#define NET_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_HEADER_MAX 96u /* bytes of a message's header, at most */
#define NET_TAG_BYTES  16u /* bytes of the tag that proves a packet is from the peer */
#define NET_TAG_OFFSET 24u /* offset of the tag in the packet */

#define NET_NONE  UINT32_MAX /* no peer */
#define NET_NEVER UINT64_MAX /* a time that never comes */

/* Address of a peer, in the link's own encoding. It is compared and copied as a whole. */
struct net_addr {
	uint64_t word[3];
};

/* A process id: nid << 32 | pid. */
typedef uint64_t net_id_t;

/* The description that the other side of a connection gives of itself; the key authenticates it. */
struct net_who {
	net_id_t id;
	uint64_t incarnation;
	uint32_t uid, jid;
};

/* Result of a message, delivery or connection. */
enum net_status {
	NET_OK = 0,
	NET_REFUSED,     /* the receiver did not want the message (NET_DROP) */
	NET_FAILED,      /* only this message failed; dgram drops the connection instead */
	NET_UNREACHABLE, /* no answer to the first packets, for cfg.dead_ns */
	NET_DEAD,        /* the peer has been silent for cfg.dead_ns */
	/* the peer dropped the connection: another process is there, or it gave up on us */
	NET_RESTARTED,
	NET_CLOSED,    /* the peer said that it is closing */
	NET_NO_MEMORY, /* out of memory on our side; the connection has failed */
	NET_ENDED,     /* this machine is being destroyed */
};

const char *net_status_text(enum net_status s);

/* A range of the owner's memory: contiguous at `base`, or, if base is NULL, wherever
 * ops.segments(user, cookie, ...) says. */
struct net_mem {
	void *base;
	void *cookie;
};

/* ---- messages -------------------------------------------------------------------------------- */

/* A message that has arrived. The pointers lead into the packet or into memory of the machine.
 * They are valid until deliver() returns. */
struct net_in {
	const void *header;
	uint32_t header_len;
	const void *body; /* the whole body; NULL: body_len is 0, or the body can be pulled */
	uint64_t body_len;
};

/* Destination of a body: deliver() fills it when it returns NET_PULL. */
struct net_delivery {
	struct net_mem mem;
	uint64_t length; /* 1 to body_len: the first bytes of the body; the rest is not sent */
	void *cookie;    /* for delivered() */
};

enum net_verdict {
	/* accepted, with the body if that is here. If it is not here, nothing of it is wanted:
	 * the sender gets NET_OK and length 0 */
	NET_DONE,
	/* not wanted. The sender of a body that is not here gets NET_REFUSED. If the body is
	 * sent unasked (nal/net/rdma), it gets NET_OK, as for a body that is here */
	NET_DROP,
	NET_PULL, /* move the body to the delivery; not for a body that is here */
	/* not now. Deliver nothing more of this peer until dgram_resume. Messages that have
	 * arrived are kept; after some of them the peer stops sending */
	NET_LATER,
};

struct net_out {
	const void *header; /* copied */
	uint32_t header_len;
	/* The body. It must not change until sent() says that the message is over. If `copy`
	 * is set, it is copied now instead. */
	struct net_mem body;
	uint64_t body_len;
	bool copy;    /* body_len is at most NET_COPY_MAX */
	void *cookie; /* for sent(); NULL: sent() is not called */
	/* for a body too long to travel with its header: bytes to send before the receiver
	 * asks, or cfg.push_bytes if that is more. UINT64_MAX for replies: they are always
	 * wanted */
	uint64_t push;
};

#define NET_COPY_MAX 65536u

/* ---- statistics ------------------------------------------------------------------------------ */

/* Why packets and frames were not used. */
#define NET_DROPS(X)                                                                               \
	X(MALFORMED, "malformed")        /* not one of our packets, or truncated */                \
	X(BAD_TAG, "bad tag")            /* forged, or damaged in transit */                       \
	X(UNKNOWN, "unknown connection") /* a token that is not, or no longer, in use */           \
	X(DUPLICATE, "duplicate") /* arrived before: duplicated by the network, or replayed */     \
	X(TOO_OLD, "older than the window") /* may have arrived before */                          \
	X(NOT_ACCEPTED,                                                                            \
	  "not accepted") /* HELLO for another process, from an unwanted one, or from nowhere */   \
	X(STALE_HELLO, "stale handshake") /* HELLO or WELCOME of an attempt that is over */        \
	X(BAD_ACK, "bad acknowledgement") /* of packets that were never sent */                    \
	X(NO_CREDIT, "beyond the credit") /* a message beyond the credit we advertised */          \
	X(NO_ROOM, "no room") /* too many messages wait for an earlier one, or out of memory */    \
	X(EARLY, "before its header")      /* a segment of a body whose header has not arrived */  \
	X(OUTSIDE, "outside its delivery") /* a segment of a body beyond what was asked for */

enum net_drop {
#define NET_DROP_NAME(name, text) NET_DROP_##name,
	NET_DROPS(NET_DROP_NAME)
#undef NET_DROP_NAME
		NET_DROP_COUNT
};

const char *net_drop_text(enum net_drop d);

struct net_stats {
	uint64_t packets_out, packets_in; /* in: only those used */
	uint64_t bytes_out, bytes_in;
	uint64_t messages_out, messages_in;
	uint64_t lost_packets;   /* taken for lost; their contents were sent again */
	uint64_t spurious;       /* of lost_packets: had arrived after all */
	uint64_t timeouts;       /* retransmission time-outs */
	uint64_t probes;         /* tail-loss probes */
	uint64_t resets, opened; /* connections failed, made */
	uint64_t drops[NET_DROP_COUNT];
	uint32_t peers, open, active; /* known; connected; with traffic in flight or just over */
	size_t bytes;                 /* of memory used by the machine */
};

#endif
