/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The datagram machine, inside. A peer is a record of fixed size; what a connection needs while
 * something is on its way (the active part) hangs off it and is let go when nothing has been for
 * a while.
 *
 *   dgram.c        making and ending a machine, the API
 *   dgram_peer.c   records, their active parts, timers
 *   dgram_open.c   connections: handshake, loss, goodbye
 *   dgram_out.c    building packets
 *   dgram_in.c     taking packets apart
 *   dgram_reassembly.c   messages in order, landings
 *   dgram_msg.c    messages out: queue, bodies, ends
 *   dgram_loss.c   what became of packets: acknowledgements, round-trip times, losses, time-outs
 *   dgram_cc.c     how much may be in flight
 *   dgram_mtu.c    how long a packet may be
 *   dgram_mem.c    small memory, maps
 *   dgram_wire.c   decoders and encoders
 */
#ifndef DGRAM_CORE_H
#define DGRAM_CORE_H

#include <string.h>

#include "nal/net/dgram/dgram.h"
#include "nal/net/silence.h"

#define DGRAM_US 1000ull
#define DGRAM_MS 1000000ull

/* Packets between the oldest in flight and the newest, and how far back duplicates are told. */
#define DGRAM_WINDOW (DGRAM_ACK_WORDS * 64u)

/* How long the word that a short body is there waits for a packet it can go with: an answer may
 * be on its way. */
#define DGRAM_GATHER_NS (20 * DGRAM_US)

/* What a peer may send before its first acknowledgement says more. */
#define DGRAM_CREDIT_FIRST 16u

/* ---- dgram_mem.c ----------------------------------------------------------------------------- */

#define DGRAM_POOLS 5

struct dgram_pool {
	void *free;
	uint32_t spare; /* on the list */
};

/* Memory of `bytes` bytes, not zeroed; NULL. The same number is given back with it. */
void *dgram_alloc(struct dgram *m, size_t bytes);
void dgram_free(struct dgram *m, void *p, size_t bytes);
/* Like realloc, for arrays that grow. */
void *dgram_regrow(struct dgram *m, void *p, size_t old_bytes, size_t bytes);
void dgram_pools_drain(struct dgram *m);

/* From numbers of messages to what is known of them: open addressing, at most half full. */
struct dgram_map {
	struct dgram_slot {
		void *value; /* NULL: free */
		uint32_t key;
	} * slot;
	uint32_t size, used; /* size: 0 or a power of two */
};

void *dgram_map_get(const struct dgram_map *map, uint32_t key);
bool dgram_map_put(struct dgram *m, struct dgram_map *map, uint32_t key, void *value);
void dgram_map_remove(struct dgram_map *map, uint32_t key);
void dgram_map_fini(struct dgram *m, struct dgram_map *map);

/* ---- messages out ---------------------------------------------------------------------------- */

enum dgram_msg_state {
	DGRAM_MSG_QUEUED, /* its header was never sent */
	DGRAM_MSG_FLIGHT,
	DGRAM_MSG_LOST, /* to be sent again */
	DGRAM_MSG_ACKED,
};

/* A message of ours. It is in the ring conn->msg until it is delivered, and, if its body does
 * not come with the header, in conn->bodies until the receiver tells the end. */
struct dgram_msg {
	uint32_t number;
	uint8_t state; /* enum dgram_msg_state */
	uint8_t header_len;
	bool with_body; /* the body travels with the header */
	bool over;      /* sent() was called, or would have been; memory stays for `refs` */
	bool flowing;   /* on conn->flow */
	bool asked;     /* the receiver said how much it takes */
	uint32_t refs;  /* in ring, map, flow, packets in flight and lost pieces */
	uint32_t room;  /* bytes of this allocation */
	uint64_t body_len;
	uint64_t limit; /* of the body may be sent: pushed or asked for */
	uint64_t next;  /* of the body was sent at least once */
	struct net_mem body;
	void *cookie;
	struct dgram_msg *flow;
	uint8_t bytes[]; /* header, then a copied body */
};

/* A PULL to be told reliably. */
struct dgram_ctl {
	uint8_t state; /* enum dgram_msg_state */
	uint8_t reason;
	uint32_t number;
	uint64_t length;
};

/* A piece of a body that has to be sent again. */
struct dgram_segment {
	struct dgram_msg *msg;
	uint64_t offset;
	uint32_t length;
};

/* ---- packets out ----------------------------------------------------------------------------- */

enum dgram_sent_state {
	DGRAM_SENT_NONE,
	DGRAM_SENT_FLIGHT,
	DGRAM_SENT_LOST, /* taken for lost; kept a while to see whether that was right */
};

/* A packet that asks for acknowledgement, and what was in it. */
struct dgram_sent {
	uint64_t pn;
	uint64_t at; /* sent, or taken for lost */
	uint32_t bytes;
	uint8_t state; /* enum dgram_sent_state */
	bool probe;    /* of the path MTU: its loss says nothing about congestion */
	uint16_t msgs, ctls;
	uint32_t data_len;
	uint32_t msg, ctl; /* the first */
	struct dgram_msg *data;
	uint64_t data_offset;
};
static_assert(sizeof(struct dgram_sent) <= 64, "a cache line per packet in flight");

/* ---- messages in ----------------------------------------------------------------------------- */

/* A message that waits for an earlier one, or for dgram_resume. */
struct dgram_early {
	uint32_t room; /* bytes of this allocation */
	uint8_t header_len;
	uint32_t body_now;
	uint64_t body_len;
	uint8_t bytes[];
};

/* Received stretches of a body beyond its first gap, in order, apart from each other. */
struct dgram_range {
	uint64_t from, to;
};

#define DGRAM_RANGES 1024u /* most in one landing */

struct dgram_reassembly {
	uint32_t number;
	uint32_t nranges, range_room;
	uint64_t length;
	uint64_t done; /* of its first bytes */
	struct dgram_range *range;
	struct net_mem mem;
	void *cookie;
};

/* ---- connections ----------------------------------------------------------------------------- */

enum dgram_state {
	DGRAM_IDLE,    /* no connection */
	DGRAM_OPENING, /* HELLOs go out */
	DGRAM_OPEN,
};

/* The active part. */
struct dgram_conn {
	/* handshake */
	uint64_t hello_at, hello_since; /* next, first */
	uint32_t hellos;
	bool welcome;    /* to be sent: */
	uint64_t caller; /* token of the HELLO it answers */
	struct net_addr caller_addr;

	/* packets out */
	struct dgram_sent *sent; /* by packet number */
	uint32_t sent_room;
	uint32_t flight;       /* packets in flight */
	uint64_t flight_bytes; /* without MTU probes */
	uint64_t oldest;       /* nothing before this packet is waited for */
	uint64_t newest_acked;
	uint64_t rack_at, rack_pn,
		rack_rtt;       /* RFC 8985 section 6.1: of the latest packet sent that arrived */
	uint32_t reo_mult;      /* reordering window in quarters of min_rtt */
	bool reordered;         /* a packet taken for lost arrived */
	bool limited;           /* the congestion window held something back */
	uint64_t loss_at;       /* when the next packet counts as lost; NET_NEVER */
	uint64_t last_at;       /* last packet sent that is to be acknowledged */
	uint64_t waiting_since; /* for any acknowledgement; 0: none is due */
	uint32_t backoff;       /* time-outs in a row; 1: a tail-loss probe is out */
	uint32_t probes;        /* packets that may be sent beyond the window */
	uint64_t recovery;      /* losses of packets before this one were answered */
	uint64_t rate_since, rate_bytes; /* acknowledged, for the rate */
	uint64_t rate_best[2];           /* of the last round trips, of those before them */
	uint32_t rate_rounds;
	uint64_t least_rtt[2]; /* of this round trip's packets, of the one's before */
	uint64_t round; /* a round trip is over when this packet, or a later one, has arrived */
	uint32_t round_acked, round_lost; /* packets, in this one */
	uint64_t rate_then;               /* when it began */
	uint32_t calm;                    /* of them since losses were answered */
	bool lossy, full;                 /* the one before: too much was lost; it was no faster */
	bool ping;
	uint32_t mtu_probe; /* size being tried, 0: none */
	uint8_t mtu_tries;
	bool mtu_out;        /* the probe is in flight */
	uint32_t long_lost;  /* packets above DGRAM_MTU_MIN in a row, */
	uint64_t long_since; /* since then */
	uint32_t cut_lost;   /* how often packets in segments are lost: see dgram_mtu_overtaken */

	/* messages out */
	struct dgram_msg **msg; /* ring by number, [msg_base, rec->tx_number) */
	uint32_t msg_room, msg_base, msg_unsent, msg_lost;
	size_t msg_bytes;    /* of those that are not over */
	uint32_t credit_end; /* first message that may not be sent */
	struct dgram_ctl *ctl;
	uint32_t ctl_room, ctl_base, ctl_unsent, ctl_next, ctl_lost;
	uint64_t ctl_at; /* when those not sent yet go out at the latest */
	struct dgram_map bodies;
	struct dgram_msg *flow, **flow_end; /* with more of their body to send */
	struct dgram_segment *segment;      /* ring */
	uint32_t segment_room, segment_head, segment_count;
	uint64_t persist_at; /* asks for credit, or whether messages that arrived were delivered */
	uint32_t persists;   /* how often in a row */

	/* packets and messages in */
	uint64_t floor;        /* the peer does not wait for packets before this */
	uint64_t newest_at;    /* when rec->rx_pn arrived */
	uint32_t unacked;      /* packets that ask for an acknowledgement since the last one */
	uint64_t ack_at;       /* NET_NEVER: none is owed */
	uint32_t acked_number; /* delivered, as last told */
	uint32_t acked_credit;
	struct dgram_early **early; /* ring by number */
	uint32_t nearly;
	struct dgram_map lands;
	uint64_t idle_since;
	uint64_t seen[DGRAM_ACK_WORDS]; /* by packet number */
};

#define DGRAM_F_CONFIRMED 0x01u /* the peer has used our token: it knows the connection */
#define DGRAM_F_BLOCKED   0x02u /* deliver() said NET_LATER */
#define DGRAM_F_RESUME    0x04u /* ask it again */
#define DGRAM_F_READY     0x08u /* on the list of peers to be looked at by dgram_run */
#define DGRAM_F_BYE       0x10u /* was told goodbye */
#define DGRAM_F_FAILED    0x20u /* for want of memory; dgram_run ends the connection */
#define DGRAM_F_FIXED     0x40u /* the owner said where it is */

/* A peer. This is all that is kept of one with whom nothing is going on, connected or not. */
struct dgram_rec {
	net_id_t id;
	struct net_addr addr;
	struct dgram_conn *conn;
	uint64_t mine, theirs; /* tokens of the connection */
	uint64_t next;         /* our token for the next one; never used for two */
	uint64_t incarnation;
	uint32_t uid, jid;
	uint64_t tx_pn;                /* next packet number */
	uint64_t rx_pn;                /* highest that arrived */
	uint32_t tx_number, rx_number; /* next messages */
	uint64_t heard;                /* last packet */
	uint64_t due;                  /* timer */
	uint32_t heap;                 /* place among the timers, from 1; 0: none */
	uint32_t hash_next;            /* index + 1 */
	uint32_t ready_next;
	uint32_t watch;
	uint64_t srtt, rttvar, min_rtt; /* 0: not measured */
	uint64_t rate;                  /* best of late, bytes per second, 0: not known */
	uint64_t lost_packets;
	uint64_t mtu_again; /* when to look for a longer MTU once more */
	uint32_t cwnd, ssthresh;
	uint32_t mtu;
	uint8_t state; /* enum dgram_state */
	uint8_t flags; /* DGRAM_F_* */
};
static_assert(sizeof(struct dgram_rec) <= 256,
	      "a process of a job of 65,536 that has talked to all others keeps 16 MiB of them");

#define DGRAM_CHUNK 16u

#define DGRAM_RESETS 16u

struct dgram {
	struct dgram_ops ops;
	void *user;
	struct dgram_cfg cfg;
	struct dgram_rec **chunk;
	uint32_t nchunks, npeers;
	uint32_t forget;  /* the next that may be, when there are too many */
	uint32_t *bucket; /* index + 1 of the first peer */
	uint32_t nbuckets;
	uint32_t *heap;
	uint32_t heap_n, heap_room;
	uint32_t ready, ready_last; /* NET_NONE: none */
	/* An acknowledgement that waits until what came with it was answered: that the one
	 * packet in flight has arrived. While it waits, not for long, no timer of its peer is
	 * looked at or set. */
	struct {
		struct dgram_rec *from; /* NULL: there is none */
		struct dgram_frame ack;
		uint64_t at; /* when it came */
	} late;
	uint32_t joined; /* packets that come in one piece now */
	bool full;       /* the link had no room */
	bool ending;     /* nothing more is sent */
	uint64_t now;
	uint64_t ahead; /* controls that are due so soon go out now */
	struct silence silence;
	uint64_t random;
	uint32_t nresets;
	struct dgram_reset {
		struct net_addr to;
		uint64_t token, unknown;
	} resets[DGRAM_RESETS];
	size_t early_bytes;
	struct dgram_pool pool[DGRAM_POOLS];
	struct net_stats stats;
};

static inline struct dgram_rec *dgram_rec(const struct dgram *m, uint32_t peer)
{
	return &m->chunk[peer / DGRAM_CHUNK][peer % DGRAM_CHUNK];
}

/* A token names its record in the lower half. */
static inline uint32_t dgram_index(const struct dgram_rec *r)
{
	return (uint32_t)r->next;
}

/* a is before b, of numbers that wrap (RFC 1982 section 3.2) */
static inline bool dgram_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline void net_drop(struct dgram *m, enum net_drop why)
{
	m->stats.drops[why]++;
}

static inline uint64_t dgram_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t dgram_max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t dgram_silence(const struct dgram *m, uint64_t since)
{
	since = silence_since(&m->silence, since);
	return m->now > since ? m->now - since : 0;
}

/* ---- dgram_in.c ------------------------------------------------------------------------------ */

/* The acknowledgement that waits, if one does, is taken in as of when it came. */
void dgram_catch_up(struct dgram *m);

/* ---- dgram_peer.c ---------------------------------------------------------------------------- */

uint64_t dgram_random(struct dgram *m);
uint64_t dgram_token(struct dgram *m, uint32_t index);
struct dgram_rec *dgram_rec_add(struct dgram *m, net_id_t id, const struct net_addr *addr);
/* The active part, made if it is not there; NULL: no memory. */
struct dgram_conn *dgram_conn_get(struct dgram *m, struct dgram_rec *r);
/* Nothing of it is in use any more. */
void dgram_conn_free(struct dgram *m, struct dgram_conn *c);
/* dgram_run is to look at it. */
void dgram_ready(struct dgram *m, struct dgram_rec *r);
/* A packet of its was taken: the same, unless all that dgram_run would do is to set the timer,
 * which is done here: who waits for what came need not wait for that. */
void dgram_after(struct dgram *m, struct dgram_rec *r);
/* The timer: the record is looked at when `at` has come, or before. */
void dgram_due(struct dgram *m, struct dgram_rec *r, uint64_t at);
/* The first peer whose timer is due, its timer cleared; NULL: none. */
struct dgram_rec *dgram_due_next(struct dgram *m, uint64_t now);
/* When to ask for a sign of life of an open connection. */
uint64_t dgram_keepalive_at(const struct dgram *m, const struct dgram_rec *r);
/* Sets the timer to what the connection waits for next; lets go of the active part if its time
 * is over. */
void dgram_rearm(struct dgram *m, struct dgram_rec *r);

/* ---- dgram_open.c ---------------------------------------------------------------------------- */

void dgram_open_start(struct dgram *m, struct dgram_rec *r);
void dgram_open_hello(struct dgram *m, const struct net_addr *from, const struct dgram_hello *h);
void dgram_open_welcome(struct dgram *m, uint64_t to, const struct net_addr *from,
			const struct dgram_hello *h);
/* Our own HELLO came back: nobody is there. */
void dgram_open_refused(struct dgram *m, const struct dgram_hello *h);
void dgram_open_reset(struct dgram *m, uint64_t to, uint64_t unknown);
/* A FRAMES packet to our next token begins with this CONFIRM. True: there is a connection now. */
bool dgram_open_confirm(struct dgram *m, struct dgram_rec *r, const struct net_addr *from,
			const struct dgram_frame *f);
/* To be told that `unknown` is. */
void dgram_open_unknown(struct dgram *m, const struct net_addr *to, uint64_t token,
			uint64_t unknown);
/* The connection, or the attempt, is over. The active part is gone afterwards, unless callbacks
 * made a new one. */
void dgram_lose(struct dgram *m, struct dgram_rec *r, enum net_status s);

/* ---- dgram_out.c ----------------------------------------------------------------------------- */

/* Sends what there is to say to a peer, some packets at most. True: there is more. */
bool dgram_output(struct dgram *m, struct dgram_rec *r);
/* HELLO or WELCOME with one of our tokens; false: no room. */
bool dgram_output_hello(struct dgram *m, struct dgram_rec *r, enum dgram_type type);
bool dgram_output_bye(struct dgram *m, struct dgram_rec *r);
bool dgram_output_resets(struct dgram *m);

/* ---- dgram_reassembly.c ---------------------------------------------------------------------- */

/* A message, piece of a body, has come. False: it could not be taken, and its packet is not
 * acknowledged. */
bool dgram_reassembly_msg(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f);
bool dgram_reassembly_data(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f);
/* Delivers what waited. */
void dgram_reassembly_resume(struct dgram *m, struct dgram_rec *r);
/* Ends all landings. */
void dgram_reassembly_fail(struct dgram *m, uint32_t peer, struct dgram_conn *c, enum net_status s);
uint32_t dgram_credit(const struct dgram *m);

/* ---- dgram_msg.c ----------------------------------------------------------------------------- */

/* Copies the first bytes of a stretch; those that the owner does not have are zeros. */
void dgram_copy_mem(struct dgram *m, const struct net_mem *mem, uint64_t len, uint8_t *to);

int dgram_msg_add(struct dgram *m, struct dgram_rec *r, const struct net_out *o);
void dgram_msg_unref(struct dgram *m, struct dgram_msg *msg);
/* Its header has arrived; it may have to wait for others there. */
void dgram_msg_acked(struct dgram_conn *c, uint32_t number);
/* All before `number` were delivered. */
void dgram_msg_delivered(struct dgram *m, struct dgram_rec *r, uint32_t number);
/* Its header was sent: the body may follow. */
void dgram_msg_flow(struct dgram_conn *c, struct dgram_msg *msg);
void dgram_msg_unflow(struct dgram *m, struct dgram_conn *c);
void dgram_msg_pulled(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f);
/* Ends all messages. */
void dgram_msg_fail(struct dgram *m, uint32_t peer, struct dgram_conn *c, uint32_t end,
		    enum net_status s);
void dgram_segment_add(struct dgram *m, struct dgram_rec *r, struct dgram_msg *msg, uint64_t offset,
		       uint32_t length);
/* It has arrived all the same. */
void dgram_segment_forget(struct dgram_conn *c, const struct dgram_sent *s);
void dgram_segment_pop(struct dgram *m, struct dgram_conn *c);
/* Are there any that are due? */
static inline bool dgram_ctls_due(const struct dgram *m, const struct dgram_conn *c)
{
	return c->ctl_lost || (c->ctl_unsent != c->ctl_next && c->ctl_at <= m->now + m->ahead);
}
/* Without memory for it the connection fails. */
void dgram_ctl_add(struct dgram *m, struct dgram_rec *r, uint32_t number, uint64_t length,
		   enum dgram_pull_reason reason);
void dgram_ctl_acked(struct dgram_conn *c, uint32_t index);

/* ---- dgram_loss.c ---------------------------------------------------------------------------- */

/* The place to write down a packet that asks for acknowledgement; NULL: too many are in flight,
 * or no memory. */
struct dgram_sent *dgram_sent_place(struct dgram *m, struct dgram_rec *r);
/* That packet, filled, is on its way. */
void dgram_sent_out(struct dgram *m, struct dgram_rec *r, struct dgram_sent *s);
void dgram_acked(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f);
/* Does it say of the only packet in flight, which is the oldest anything can be said of, that it
 * has arrived? */
bool dgram_acks_all(const struct dgram_rec *r, const struct dgram_frame *f);
/* Does what is due by the timers of packets in flight. False: the connection is lost. */
bool dgram_loss_timers(struct dgram *m, struct dgram_rec *r);
/* When they do. */
uint64_t dgram_loss_due(const struct dgram *m, const struct dgram_rec *r);
uint64_t dgram_rto(const struct dgram *m, const struct dgram_rec *r);
/* What was in packets in flight is nowhere needed any more. */
void dgram_sent_forget(struct dgram *m, struct dgram_conn *c);

/* ---- dgram_cc.c ------------------------------------------------------------------------------ */

void dgram_cc_open(struct dgram *m, struct dgram_rec *r);
void dgram_cc_acked(struct dgram *m, struct dgram_rec *r, uint64_t pn, uint32_t bytes);
/* Acknowledgements of one packet were all counted. */
void dgram_cc_rate(struct dgram *m, struct dgram_rec *r);
void dgram_cc_lost(struct dgram *m, struct dgram_rec *r, uint64_t pn);
void dgram_cc_timeout(struct dgram *m, struct dgram_rec *r);
void dgram_cc_idle(struct dgram *m, struct dgram_rec *r);
/* Packets have become longer. */
void dgram_cc_longer(struct dgram *m, struct dgram_rec *r);

/* ---- dgram_mtu.c ----------------------------------------------------------------------------- */

/* Size of an MTU probe to be sent now, 0: none. */
uint32_t dgram_mtu_wanted(struct dgram *m, struct dgram_rec *r);
void dgram_mtu_arrived(struct dgram *m, struct dgram_rec *r, uint32_t size);
void dgram_mtu_lost(struct dgram *m, struct dgram_rec *r, uint32_t size);
/* A packet of so many bytes that was no probe was lost, or arrived: perhaps long ones no longer
 * get through. */
void dgram_mtu_seen(struct dgram *m, struct dgram_rec *r, uint32_t size, bool arrived);
/* A packet of this length was lost, and later ones were not. */
void dgram_mtu_overtaken(struct dgram *m, struct dgram_rec *r, uint32_t size);

#endif
