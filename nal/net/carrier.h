/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The words that net.h and its carriers have in common: peers, messages, what became of them. A
 * carrier moves messages, a header with a body, in order and exactly once between two processes:
 * the datagram machine (dgram/dgram.h) or the one over fabrics (rdma/rdma.h).
 */
#ifndef NET_CARRIER_H
#define NET_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_HEADER_MAX 96u /* of a message */
#define NET_TAG_BYTES  16u /* what says that a packet is the peer's, */
#define NET_TAG_OFFSET 24u /* and where it is in the packet */

#define NET_NONE  UINT32_MAX /* no peer */
#define NET_NEVER UINT64_MAX /* a time that does not come */

/* Where a peer is reached: the link's own encoding, compared and copied as a whole. */
struct net_addr {
	uint64_t word[3];
};

/* A process: nid << 32 | pid. */
typedef uint64_t net_id_t;

/* What the other side of a connection says of itself; the key vouches for it. */
struct net_who {
	net_id_t id;
	uint64_t incarnation;
	uint32_t uid, jid;
};

/* Why something did not happen. */
enum net_status {
	NET_OK = 0,
	NET_REFUSED, /* the receiver did not want the message (NET_DROP) */
	NET_FAILED,  /* this message alone; not of this machine, which loses the connection then */
	NET_UNREACHABLE, /* no answer to the first packets, for cfg.dead_ns */
	NET_DEAD,        /* the peer has been silent for cfg.dead_ns */
	/* the peer lost the connection: another process is there, or it gave us up */
	NET_RESTARTED,
	NET_CLOSED,    /* the peer said that it closes */
	NET_NO_MEMORY, /* we could not go on for want of memory; the connection is lost */
	NET_ENDED,     /* this machine is being destroyed */
};

const char *net_status_text(enum net_status s);

/* A stretch of the owner's memory: in one piece at `base`, or, with base NULL, wherever
 * ops.pieces(user, cookie, ...) says. */
struct net_mem {
	void *base;
	void *cookie;
};

/* ---- messages -------------------------------------------------------------------------------- */

/* A message that has arrived. The pointers lead into the packet or into memory of the machine, and
 * are good until deliver() returns. */
struct net_in {
	const void *header;
	uint32_t header_len;
	const void *body; /* all of it; NULL: body_len is 0, or it can be pulled */
	uint64_t body_len;
};

/* Where a body goes: filled by deliver() when it returns NET_PULL. */
struct net_delivery {
	struct net_mem mem;
	uint64_t length; /* 1 to body_len: the first bytes of the body; the others are not sent */
	void *cookie;    /* for landed() */
};

enum net_verdict {
	/* taken, with the body if there is one here. Of one that is not here nothing is wanted,
	 * and the sender is told so with NET_OK and length 0 */
	NET_DONE,
	/* not wanted: the sender of a body that is not here hears NET_REFUSED, unless it is on
	 * its way without being asked for (nal/net/rdma): then NET_OK, as of one that is here */
	NET_DROP,
	NET_PULL, /* not with a body that is here: it is to be moved to the landing */
	/* not now. Nothing more of this peer is delivered until dgram_resume; what was is kept,
	 * and the peer stops sending when some messages are */
	NET_LATER,
};

struct net_out {
	const void *header; /* copied */
	uint32_t header_len;
	/* The body. It must stay as it is until sent() says that the message is over, unless `copy`
	 * is set: then it is copied now. */
	struct net_mem body;
	uint64_t body_len;
	bool copy;    /* body_len is at most NET_COPY_MAX */
	void *cookie; /* for sent(); NULL: nobody is told */
	/* of a body that is too long to come with its header: as many of its first bytes are
	 * sent before the receiver asks, or cfg.push_bytes if that is more. UINT64_MAX for
	 * replies, which are always wanted */
	uint64_t push;
};

#define NET_COPY_MAX 65536u

/* ---- what can be seen ------------------------------------------------------------------------ */

/* Why packets and frames were not used. */
#define NET_DROPS(X)                                                                               \
	X(MALFORMED, "malformed")           /* not a packet of ours, or cut short */               \
	X(BAD_TAG, "bad tag")               /* forged, or damaged on its way */                    \
	X(UNKNOWN, "unknown connection")    /* a token that is not, or no longer, in use */        \
	X(DUPLICATE, "duplicate")           /* arrived before; network or replay */                \
	X(TOO_OLD, "older than the window") /* may have arrived before */                          \
	X(NOT_ACCEPTED,                                                                            \
	  "not accepted") /* a HELLO for somebody else, of somebody unwanted or from nowhere */    \
	X(STALE_HELLO, "stale handshake") /* HELLO or WELCOME of an attempt that is over */        \
	X(BAD_ACK, "bad acknowledgement") /* of packets that were never sent */                    \
	X(NO_CREDIT, "beyond the credit") /* a message we did not say we take */                   \
	X(NO_ROOM, "no room")         /* too much waits for an earlier message, or no memory */    \
	X(EARLY, "before its header") /* a piece of a body nobody knows yet */                     \
	X(OUTSIDE, "outside its landing") /* a piece of a body beyond what was asked for */

enum net_drop {
#define NET_DROP_NAME(name, text) NET_DROP_##name,
	NET_DROPS(NET_DROP_NAME)
#undef NET_DROP_NAME
		NET_DROP_COUNT
};

const char *net_drop_text(enum net_drop d);

struct net_stats {
	uint64_t packets_out, packets_in; /* in: those used */
	uint64_t bytes_out, bytes_in;
	uint64_t messages_out, messages_in;
	uint64_t lost_packets;   /* taken for lost, and what was in them sent again */
	uint64_t spurious;       /* of these: had arrived all the same */
	uint64_t timeouts;       /* retransmission time-outs */
	uint64_t probes;         /* tail-loss probes */
	uint64_t resets, opened; /* connections lost, made */
	uint64_t drops[NET_DROP_COUNT];
	uint32_t peers, open, active; /* known; connected; with something on its way or just done */
	size_t bytes;                 /* of memory in use by the machine */
};

#endif
