/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Messages over fabrics that deliver reliably and can read a peer's memory: a carrier for
 * nal/net (net.h) beside the datagram machine. The notion of a message is the same: a header
 * and a body. A short body comes with the header, or in the packets behind it. A long body is
 * read from the sender's memory to where the receiver wants it. doc/wire-rdma.md describes the
 * packets.
 *
 * Each message is delivered once and in order, or nal/net is told that the connection has
 * ended. The devices are not its business, but that of links (rdma_link.h). Neither is the
 * matching of messages. All functions run with the lock of the interface's region held unless
 * they say otherwise, and none of those waits for a peer.
 *
 *   rdma.c       opening, closing, progress: what nal/net calls
 *   rdma_peer.c  peers: greetings, tokens, silence, failure
 *   rdma_out.c   outgoing packets and messages
 *   rdma_in.c    incoming packets
 *   rdma_body.c  bodies that take more than a packet: reads, segments, parts
 *   rdma_reg.c   registered memory: for one body, or as long as a memory descriptor exists
 *   rdma_lock.c  how much memory may be locked
 *   rdma_wire.c  decoders
 */
#ifndef RDMA_H
#define RDMA_H

#include <string.h>

#include "nal/net/net.h"
#include "nal/net/rdma/rdma_link.h"
#include "nal/net/rdma/rdma_wire.h"
#include "nal/net/silence.h"

/* A memory descriptor whose memory is registered, or will be after more use (rdma_reg.c). */
struct rdma_kept {
	struct rdma_kept *next; /* in its bucket */
	uint32_t md, filled;
	uint64_t start, length;
	enum rdma_use use;
	uint32_t users;
	uint64_t moved; /* bytes, before it is registered */
	struct rdma_mr mr;
};

#define RDMA_KEPT_BUCKETS 64u

/* An outgoing message that is long or could not be sent at once. It exists until the message is
 * over. */
struct rdma_out {
	struct rdma_out *next, *all;
	struct rdma_peer *peer;
	uint8_t header[NET_HEADER_MAX];
	uint32_t header_len;
	struct net_mem mem;
	uint64_t len;
	void *copy; /* a copy of the bytes that were not sent at once */
	void *cookie;
	bool parts; /* it takes several packets; those up to segment_at were sent */
	bool is_long;
	uint32_t id; /* of a long one that was sent: its index in rdma.longs; RDMA_NO_ID before */
	struct rdma_mr mr;                /* also of a long one */
	uint64_t segment_at, segment_end; /* still to be sent in segments */
};

#define RDMA_NO_ID UINT32_MAX

/* An incoming body. */
struct rdma_body {
	struct rdma_body *next, *all; /* next: in the peer's list, oldest first */
	struct rdma_peer *peer;       /* NULL: given up, but reads are not over */
	uint32_t id;                  /* the sender's */
	struct net_mem mem;
	uint64_t len;
	void *cookie;
	bool reads; /* else it comes in segments, and `done` bytes are here */
	uint64_t address, key;
	uint64_t asked, done;
	uint32_t flying; /* reads that are not over */
	struct rdma_mr mr;
	enum net_status how; /* not NET_OK: it will end so; of one that is over: how it ended */
};

/* A message that has partly arrived. The rest comes in the next packets with data. */
struct rdma_coming {
	struct net_mem mem;
	uint64_t wanted, len, done; /* bytes to deliver, of all (0: no message), that came */
	void *cookie;
	bool has_delivery;   /* else the whole body is dropped */
	enum net_status how; /* it will end so */
};

/* The header and length of the last BEGIN: a message that has the same needs to say neither. */
struct rdma_began {
	uint8_t header[NET_HEADER_MAX];
	uint32_t header_len;
	uint64_t length; /* 0: there was none */
};

/* A packet with a message, or a part of one, that nal/net does not want yet; or any packet that
 * came before its turn. */
struct rdma_late {
	struct rdma_late *next;
	size_t len;
	uint8_t bytes[];
};

enum rdma_state {
	RDMA_IDLE,    /* known, no connection */
	RDMA_CALLING, /* greeted */
	RDMA_UP,
	RDMA_ENDING, /* failed, but reads into our memory are not over */
};

struct rdma_peer {
	uint32_t number;
	enum rdma_state state;
	struct net_who who;
	void *path;
	uint32_t serial;    /* changes when a connection is made and when the path is left */
	uint16_t to;        /* its number for us and */
	uint64_t token;     /* its token: our packets carry both */
	uint64_t own_token; /* the token that its packets must carry */
	uint64_t greeting;  /* of our HELLO */
	uint16_t seq_out, seq_in;
	uint32_t consumed,
		advertised; /* packets with data: consumed from it, and advertised to it */
	uint32_t sent, its_consumed,
		allowed; /* ours: sent, consumed by it; how far ahead we may be */
	struct rdma_out *queue, *queue_end;       /* not sent yet */
	struct rdma_out *segments, *segments_end; /* segments of these are wanted */
	struct rdma_coming coming;
	struct rdma_began began_out, began_in;
	struct rdma_body *bodies;
	struct rdma_body *overs, *overs_end; /* it must be told that these are over */
	uint32_t reading, novers;            /* bodies that are read, and overs */
	struct rdma_late *late, *late_end;
	struct rdma_late *early; /* before their turn, in no order */
	uint16_t gap_at;         /* seq_in at the last check */
	uint64_t gap;            /* since when it has this value, with packets behind it */
	struct rdma_packet *stuck, *stuck_end; /* the link had no room for them */
	uint32_t longs;                        /* sent, not over */
	uint32_t flying;                       /* packets the link has */
	uint32_t held;                         /* nal/net said "later" */
	uint32_t watch;
	bool busy;    /* in the list of peers that have something to do */
	bool awaited; /* something is expected of it: its silence counts */
	bool want_note;
	bool spoke;                            /* since `heard` */
	enum net_status failure;               /* not NET_OK: the path failed, not reported yet */
	char why[160];                         /* what the link said */
	uint64_t heard, pinged, called, since; /* times; since: of the attempt, or of the failure */
	struct rdma_peer *next_busy;
	struct rdma_peer *next_id; /* with the same hash */
};

struct rdma {
	struct net net; /* first: callbacks of the machine get it */
	const struct rdma_link *link;
	void *state; /* the link's */
	struct rdma_limits limits;
	uint64_t incarnation, dead_ns;
	struct rdma_peer **peer;
	uint32_t npeers, peer_room;
	struct rdma_peer **hash;
	uint32_t hash_room; /* a power of two */
	struct rdma_peer *busy, *busy_end;
	uint64_t retry_at; /* when busy peers get another turn at the latest; NET_NEVER */
	uint64_t check_at; /* of the next check for silence; NET_NEVER */
	struct silence silence;
	struct rdma_slab *slabs;
	struct rdma_packet *free_packets;
	uint32_t packets, free_count;
	/* No more memory could be registered for packets. Not tried again before some is
	 * released. */
	bool full;
	struct rdma_packet *free_small, *all_small;
	struct rdma_packet scratch; /* for packets that the link copies */
	struct rdma_slot {
		struct rdma_out *out;
		uint32_t gen, next_free;
	} * longs; /* by id */
	uint32_t longs_room, longs_free;
	struct rdma_out *free_outs, *all_outs;
	struct rdma_body *free_bodies, *all_bodies;
	struct rdma_read *free_reads, *all_reads;
	struct net_stats stats;
	struct rdma_kept *kept[RDMA_KEPT_BUCKETS];
	uint32_t nkept;
	bool quitting;
};

/* ---- for links: of nal_ops.join, .close, .forked --------------------------------------------- */

/* Make *d, which is zeroed, for an open interface. After arm(), `fd` becomes readable when
 * something arrives; with -1, arm() says when to poll. Returns NULL, or the reason of the
 * failure. The caller must call rdma_stop in any case. Called without the lock. */
const char *rdma_start(struct rdma *d, struct ptl_ni *ni, struct ptl_net *slot,
		       const struct rdma_link *link, void *state, const struct rdma_limits *limits,
		       const struct nal_job *job, int fd);
/* End it: wait a bounded time for outgoing packets, then call quit(). Called without the lock. */
void rdma_stop(struct rdma *d);

static inline struct rdma *rdma_of(struct net *n)
{
	return (struct rdma *)n;
}

/* ---- rdma_peer.c ----------------------------------------------------------------------------- */

/* The record of a process; NULL: not known. */
struct rdma_peer *rdma_peer_find(const struct rdma *d, net_id_t id);
/* Make a process known. NULL: out of memory, or too many peers. */
struct rdma_peer *rdma_peer_add(struct rdma *d, net_id_t id);
/* Give the peer a turn in the next run(). */
void rdma_busy(struct rdma *d, struct rdma_peer *p);
/* Something is to be sent: see to it that a connection is made if there is none. */
void rdma_call(struct rdma *d, struct rdma_peer *p);
/* Update whether the peer's silence counts. */
void rdma_await(struct rdma *d, struct rdma_peer *p);
/* Mark the connection as failed. The next run() tells nal/net. */
void rdma_break(struct rdma *d, struct rdma_peer *p, enum net_status s, const char *why);
/* The text of an error of send() or read(), as the link means it. */
static inline const char *rdma_error(const struct rdma *d, int err)
{
	return d->link->error ? d->link->error(d->state, err) : strerror(-err);
}
/* Do what is left to do for a connection that failed. */
void rdma_peer_fail(struct rdma *d, struct rdma_peer *p);
/* Handle a decoded greeting, whose tag is not checked yet. */
void rdma_greeted(struct rdma *d, const struct rdma_msg *m, const void *packet, size_t len);
/* Check for silence, for greetings without an answer, and for registered memory whose
 * descriptors are gone. */
void rdma_check(struct rdma *d);
/* Schedule a check. */
void rdma_check_soon(struct rdma *d);
void rdma_peers_free(struct rdma *d);

/* ---- rdma_out.c ------------------------------------------------------------------------------ */

/* net_carrier.send */
int rdma_send(struct net *n, uint32_t peer, const struct net_out *o);
/* Allocate the first packets, before bodies take the memory that may be registered. False: out
 * of memory. */
bool rdma_reserve(struct rdma *d);
/* Return a packet to its free list. */
void rdma_packet_put(struct rdma *d, struct rdma_packet *k);
/* Send what can be sent to one peer. True: more is left that cannot go now. */
bool rdma_push(struct rdma *d, struct rdma_peer *p);
/* Send a packet without data on an open connection: m->kind and its members. False: out of
 * memory; the connection is marked as failed. */
bool rdma_say(struct rdma *d, struct rdma_peer *p, struct rdma_msg *m);
/* Send a greeting, by the path that the peer has. */
void rdma_greet(struct rdma *d, struct rdma_peer *p, uint8_t kind, uint64_t greeting);
/* The long message `id` to this peer, or NULL. */
struct rdma_out *rdma_long(const struct rdma *d, const struct rdma_peer *p, uint32_t id);
/* End a message: free its record and report it to nal/net, if it has a cookie. */
void rdma_out_over(struct rdma *d, struct rdma_out *o, uint64_t length, enum net_status s);
/* End all messages to a peer. */
void rdma_outs_end(struct rdma *d, struct rdma_peer *p, enum net_status s);
/* The peer wants the first `length` bytes of a long message in segments. */
void rdma_want_segments(struct rdma *d, struct rdma_out *o, uint64_t length);
/* Free the memory of messages and packets; only when the link uses none of it. */
void rdma_outs_free(struct rdma *d);
/* Unregister the memory of packets and of all outgoing messages. */
void rdma_outs_unreg(struct rdma *d);

/* ---- rdma_in.c ------------------------------------------------------------------------------- */

/* Deliver the messages that waited, as far as nal/net wants them now. */
void rdma_take_late(struct rdma *d, struct rdma_peer *p);
/* Drop the packets of a peer that wait. */
void rdma_late_free(struct rdma_peer *p);

/* ---- rdma_body.c ----------------------------------------------------------------------------- */

/* Register a message's body for peers. False: not possible. */
bool rdma_expose(struct rdma *d, struct rdma_out *o);
/* Fetch the body of a long message to this delivery. */
void rdma_fetch(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m,
		const struct net_delivery *l);
/* Start reads that could not be started before. True: some are left. */
bool rdma_fetch_more(struct rdma *d, struct rdma_peer *p);
/* Take a segment that was asked for. */
void rdma_take_segment(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m);
/* Begin a message whose body comes with it, in consecutive packets. The body goes to this
 * delivery; NULL: drop it. */
void rdma_begin(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m,
		const struct net_delivery *l);
/* Take the next bytes of the message that is coming. */
void rdma_take_more(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m);
/* Tell a peer which messages are over. */
void rdma_report_overs(struct rdma *d, struct rdma_peer *p);
/* End all bodies of a peer, which has no reads in flight. */
void rdma_bodies_end(struct rdma *d, struct rdma_peer *p, enum net_status s);
/* Does a read from this peer still write to our memory? */
bool rdma_reads_flying(const struct rdma_peer *p);
/* Free the records; only when the link uses none of them. */
void rdma_bodies_free(struct rdma *d);
/* Unregister the destinations of all bodies. */
void rdma_bodies_unreg(struct rdma *d);
/* Copy `len` bytes from `offset` of `mem` to a packet. */
void rdma_copy_out(struct rdma *d, void *to, const struct net_mem *mem, uint64_t offset,
		   uint64_t len);

/* ---- rdma_reg.c ------------------------------------------------------------------------------ */

/* As rdma_link.reg. If it fails, unused kept registrations are released and it is tried again. */
int rdma_reg(struct rdma *d, void *base, size_t len, enum rdma_use use, struct rdma_mr *mr);
/* The same for a body. `span`, if not NULL, names the memory descriptor that the body is in: a
 * kept registration of it is used. */
int rdma_reg_body(struct rdma *d, const struct net_span *span, void *base, size_t len,
		  enum rdma_use use, struct rdma_mr *mr);
/* Undo either. Does nothing if *mr is not registered. */
void rdma_unreg(struct rdma *d, struct rdma_mr *mr);
/* Release the memory of descriptors that are gone. True: others are kept. */
bool rdma_reg_check(struct rdma *d);
/* Unregister all kept memory that is not in use. */
void rdma_reg_free(struct rdma *d);

/* ---- rdma_lock.c ----------------------------------------------------------------------------- */

/* The bytes of memory that this process may lock; UINT64_MAX: no limit. */
uint64_t rdma_may_lock(void);
/* Warn if too few of them are left. Called when the NAL or provider `who` has registered what
 * it always needs. */
void rdma_warn_of_lock_limit(const char *who);
#define RDMA_RAISE_LOCK                                                                            \
	"raise the limit (ulimit -l unlimited, memlock in /etc/security/limits.conf, "             \
	"LimitMEMLOCK of a service)"

#endif
