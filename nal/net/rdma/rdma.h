/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Messages over fabrics that deliver reliably and can read a peer's memory: a carrier for
 * nal/net (net.h) beside the datagram machine, with the same notion of a message: a header, and
 * a body that comes with it, or in the packets behind it, if it is short, else is fetched from
 * the sender's memory to where the receiver wants it. doc/wire-rdma.md describes the packets.
 *
 *   rdma.c       opening, closing, progress: what nal/net calls
 *   rdma_peer.c  peers: greetings, tokens, silence, loss
 *   rdma_out.c   packets and messages out
 *   rdma_in.c    packets in
 *   rdma_body.c  bodies that take more than a packet: reads, pieces, parts
 *   rdma_reg.c   registered memory: for one body, or as long as a memory descriptor is there
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

/* A memory descriptor whose memory is registered, or will be when it has been used more
 * (rdma_reg.c). */
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

/* A message out, from when it cannot be sent at once, or is long, until it is over. */
struct rdma_out {
	struct rdma_out *next, *all;
	struct rdma_peer *peer;
	uint8_t header[NET_HEADER_MAX];
	uint32_t header_len;
	struct net_mem mem;
	uint64_t len;
	void *copy; /* the bytes that were not sent at once, where they were copied */
	void *cookie;
	bool parts; /* it takes several packets, of which those up to segment_at were sent */
	bool is_long;
	uint32_t id; /* of a long one that was sent: its place in rdma.longs, RDMA_NO_ID before */
	struct rdma_mr mr;                /* likewise */
	uint64_t segment_at, segment_end; /* what is still to be sent in pieces */
};

#define RDMA_NO_ID UINT32_MAX

/* A body on its way to us. */
struct rdma_body {
	struct rdma_body *next, *all; /* next: of the peer's, oldest first */
	struct rdma_peer *peer;       /* NULL: given up, but reads are not over */
	uint32_t id;                  /* the sender's */
	struct net_mem mem;
	uint64_t len;
	void *cookie;
	bool reads; /* else it comes in pieces, of which `done` bytes are here */
	uint64_t address, key;
	uint64_t asked, done;
	uint32_t flying; /* reads that are not over */
	struct rdma_mr mr;
	enum net_status how; /* not NET_OK: it is to end so; of one that is over, how it did */
};

/* A message of which some bytes are here, and the others come in the next packets with data. */
struct rdma_coming {
	struct net_mem mem;
	uint64_t wanted, len, done; /* bytes that land, of all (0: there is none), that came */
	void *cookie;
	bool lands;          /* else nothing of it is wanted */
	enum net_status how; /* it is to end so */
};

/* How the last BEGIN began: a message with the same header and length needs to say neither. */
struct rdma_began {
	uint8_t header[NET_HEADER_MAX];
	uint32_t header_len;
	uint64_t length; /* 0: there was none */
};

/* A packet with a message, or part of one, that nal/net does not want yet; or any that came
 * before its turn. */
struct rdma_late {
	struct rdma_late *next;
	size_t len;
	uint8_t bytes[];
};

enum rdma_state {
	RDMA_IDLE,    /* known, no connection */
	RDMA_CALLING, /* greeted */
	RDMA_UP,
	RDMA_ENDING, /* lost, but reads into our memory are not over */
};

struct rdma_peer {
	uint32_t number;
	enum rdma_state state;
	struct net_who who;
	void *path;
	uint32_t serial;    /* another one whenever a connection is made, or the way left */
	uint16_t to;        /* its number for us, and */
	uint64_t token;     /* its token: what our packets carry */
	uint64_t own_token; /* what its packets have to carry */
	uint64_t greeting;  /* of our HELLO */
	uint16_t seq_out, seq_in;
	uint32_t taken, told; /* packets with data we took from it, and of how many it knows */
	uint32_t sent, its_taken, allowed;  /* ours: sent, taken by it; how far ahead we may be */
	struct rdma_out *queue, *queue_end; /* not sent yet */
	struct rdma_out *segments, *segments_end; /* of which pieces are wanted */
	struct rdma_coming coming;
	struct rdma_began began_out, began_in;
	struct rdma_body *bodies;
	struct rdma_body *overs, *overs_end; /* of which it is to be told that they are over */
	uint32_t reading, novers;            /* bodies that are read, and overs */
	struct rdma_late *late, *late_end;
	struct rdma_late *early; /* before their turn, in no order */
	uint16_t gap_at;         /* seq_in when it was last looked at, */
	uint64_t gap;            /* and since when it is that, with packets behind it */
	struct rdma_packet *stuck, *stuck_end; /* the link had no room for them */
	uint32_t longs;                        /* sent, not over */
	uint32_t flying;                       /* packets the link has */
	uint32_t held;                         /* nal/net said "later" */
	uint32_t watch;
	bool busy;    /* in the list of those with something to do */
	bool awaited; /* something is expected of it: its silence counts */
	bool want_note;
	bool spoke;           /* since `heard` */
	enum net_status lost; /* not NET_OK: the way broke, but nobody was told yet; */
	char why[160];        /* what the link said */
	uint64_t heard, pinged, called,
		since; /* times; since: of the attempt, or when it was lost */
	struct rdma_peer *next_busy;
	struct rdma_peer *next_id; /* with the same hash */
};

struct rdma {
	struct net net; /* first: what the machine calls gets it */
	const struct rdma_link *link;
	void *state; /* the link's */
	struct rdma_limits limits;
	uint64_t incarnation, dead_ns;
	struct rdma_peer **peer;
	uint32_t npeers, peer_room;
	struct rdma_peer **hash;
	uint32_t hash_room; /* a power of two */
	struct rdma_peer *busy, *busy_end;
	uint64_t retry_at; /* when who is busy has another turn, if nothing happens before; NEVER */
	uint64_t check_at; /* when silence is looked for; NET_NEVER */
	struct silence silence;
	struct rdma_slab *slabs;
	struct rdma_packet *free_packets;
	uint32_t packets, free_count;
	/* no more memory could be registered for packets; not tried before some is given back */
	bool full;
	struct rdma_packet *free_small, *all_small;
	struct rdma_packet scratch; /* for what the link copies */
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

/* Makes *d, zeroed, for an interface that is open. `fd` becomes readable after arm() when
 * something arrives; -1: arm() says when to look. NULL, or why not. rdma_stop must follow in any
 * case. Not locked. */
const char *rdma_start(struct rdma *d, struct ptl_ni *ni, struct ptl_net *slot,
		       const struct rdma_link *link, void *state, const struct rdma_limits *limits,
		       const struct nal_job *job, int fd);
/* Ends it, after a bounded time for what is on its way; calls quit(). Not locked. */
void rdma_stop(struct rdma *d);

static inline struct rdma *rdma_of(struct net *n)
{
	return (struct rdma *)n;
}

/* ---- rdma_peer.c ----------------------------------------------------------------------------- */

struct rdma_peer *rdma_peer_find(const struct rdma *d, net_id_t id);
/* Makes it known; NULL: no memory, or too many. */
struct rdma_peer *rdma_peer_add(struct rdma *d, net_id_t id);
void rdma_busy(struct rdma *d, struct rdma_peer *p);
/* Something is to be sent: sees to it that there is a connection, or will be. */
void rdma_call(struct rdma *d, struct rdma_peer *p);
/* Whether its silence counts may have changed. */
void rdma_await(struct rdma *d, struct rdma_peer *p);
/* The connection is of no use any more; nal/net is told in the next run. */
void rdma_break(struct rdma *d, struct rdma_peer *p, enum net_status s, const char *why);
/* What the link means by an error of send() or read(). */
static inline const char *rdma_error(const struct rdma *d, int err)
{
	return d->link->error ? d->link->error(d->state, err) : strerror(-err);
}
/* Does what is left to do for one that broke. */
void rdma_lose(struct rdma *d, struct rdma_peer *p);
void rdma_greeted(struct rdma *d, const struct rdma_msg *m, const void *packet, size_t len);
/* Looks for silence, for greetings that were not answered, and for memory of descriptors that
 * are gone. */
void rdma_check(struct rdma *d);
/* There is something to look for. */
void rdma_check_soon(struct rdma *d);
void rdma_peers_free(struct rdma *d);

/* ---- rdma_out.c ------------------------------------------------------------------------------ */

/* net_carrier.send */
int rdma_send(struct net *n, uint32_t peer, const struct net_out *o);
/* Memory for the first packets, before bodies take what may be registered. False: not to be had. */
bool rdma_reserve(struct rdma *d);
void rdma_packet_put(struct rdma *d, struct rdma_packet *k);
/* Sends what can be sent to one peer. True: there is more, but not now. */
bool rdma_push(struct rdma *d, struct rdma_peer *p);
/* A packet without data on an open connection: m->kind and what belongs to it. False: no memory;
 * it is broken. */
bool rdma_say(struct rdma *d, struct rdma_peer *p, struct rdma_msg *m);
/* A greeting, by whatever way there is. */
void rdma_greet(struct rdma *d, struct rdma_peer *p, uint8_t kind, uint64_t greeting);
/* The long message `id` of this peer, or NULL. */
struct rdma_out *rdma_long(const struct rdma *d, const struct rdma_peer *p, uint32_t id);
/* A message is over: its record goes, and whoever has to be told is. */
void rdma_out_over(struct rdma *d, struct rdma_out *o, uint64_t length, enum net_status s);
/* All messages to a peer are. */
void rdma_outs_end(struct rdma *d, struct rdma_peer *p, enum net_status s);
void rdma_want_segments(struct rdma *d, struct rdma_out *o, uint64_t length);
void rdma_outs_free(struct rdma *d);
/* Unregisters the memory of packets, and of the messages there are. */
void rdma_outs_unreg(struct rdma *d);

/* ---- rdma_in.c ------------------------------------------------------------------------------- */

/* Messages that waited; as far as nal/net wants them now. */
void rdma_take_late(struct rdma *d, struct rdma_peer *p);
void rdma_late_free(struct rdma_peer *p);

/* ---- rdma_body.c ----------------------------------------------------------------------------- */

/* Registers a message's body for peers, if that is possible. */
bool rdma_expose(struct rdma *d, struct rdma_out *o);
/* The body of a long message goes to this landing. */
void rdma_fetch(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m,
		const struct net_delivery *l);
/* Starts reads that could not be started yet. True: there are some left. */
bool rdma_fetch_more(struct rdma *d, struct rdma_peer *p);
void rdma_take_segment(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m);
/* A message whose body comes with it, in packets one behind the other, goes to this landing, or,
 * with NULL, nowhere. */
void rdma_begin(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m,
		const struct net_delivery *l);
void rdma_take_more(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m);
/* Tells a peer of messages that are over. */
void rdma_tell_overs(struct rdma *d, struct rdma_peer *p);
/* Ends all bodies of a peer, which has no reads flying. */
void rdma_bodies_end(struct rdma *d, struct rdma_peer *p, enum net_status s);
bool rdma_reads_flying(const struct rdma_peer *p);
void rdma_bodies_free(struct rdma *d);
/* Unregisters where they land. */
void rdma_bodies_unreg(struct rdma *d);
/* Copies bytes of a stretch to a packet. */
void rdma_copy_out(struct rdma *d, void *to, const struct net_mem *mem, uint64_t offset,
		   uint64_t len);

/* ---- rdma_reg.c ------------------------------------------------------------------------------ */

/* As rdma_link.reg; what is kept without need makes room. */
int rdma_reg(struct rdma *d, void *base, size_t len, enum rdma_use use, struct rdma_mr *mr);
/* The same of a body, which is in the memory that `span` says, if that is not NULL: what is
 * registered for good is. */
int rdma_reg_body(struct rdma *d, const struct net_span *span, void *base, size_t len,
		  enum rdma_use use, struct rdma_mr *mr);
/* Undoes either; of what is not registered, nothing. */
void rdma_unreg(struct rdma *d, struct rdma_mr *mr);
/* Lets go of the memory of descriptors that are gone. True: there are others. */
bool rdma_reg_check(struct rdma *d);
void rdma_reg_free(struct rdma *d);

/* ---- rdma_lock.c ----------------------------------------------------------------------------- */

/* Bytes of memory that this process may lock; UINT64_MAX: any. */
uint64_t rdma_may_lock(void);
/* Warns if too few of those are left, now that the NAL or provider `who` has what it always
 * needs. */
void rdma_look_at_lock(const char *who);
#define RDMA_RAISE_LOCK                                                                            \
	"raise the limit (ulimit -l unlimited, memlock in /etc/security/limits.conf, "             \
	"LimitMEMLOCK of a service)"

#endif
