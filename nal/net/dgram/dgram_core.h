/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The inside of the datagram machine; only files of this folder include it, and the tests. A
 * peer is a record of fixed size. A connection needs more while something is in flight: the
 * active part. It hangs off the record, and is freed when the connection has been idle for a
 * while. The rules of dgram.h hold: one call at a time, and no function blocks.
 *
 *   dgram.c        making and ending a machine, the API
 *   dgram_peer.c   records, their active parts, timers
 *   dgram_open.c   connections: handshake, loss, goodbye
 *   dgram_out.c    building packets
 *   dgram_in.c     taking packets apart
 *   dgram_reassembly.c   messages in order, deliveries
 *   dgram_msg.c    messages out: queue, bodies, ends
 *   dgram_loss.c   fate of packets: acknowledgements, round-trip times, losses, time-outs
 *   dgram_cc.c     congestion control: bytes in flight
 *   dgram_mtu.c    path MTU: lengths of packets
 *   dgram_mem.c    memory: small blocks, maps
 *   dgram_wire.c   decoders and encoders
 */
#ifndef DGRAM_CORE_H
#define DGRAM_CORE_H

#include <string.h>

#include "nal/net/dgram/dgram.h"
#include "nal/net/silence.h"

#define DGRAM_US 1000ull
#define DGRAM_MS 1000000ull

/* Most packet numbers between the oldest packet in flight and the newest one. Duplicates are
 * recognized as far back. */
#define DGRAM_WINDOW (DGRAM_ACK_WORDS * 64u)

/* How long the end of a short body waits for a packet that can carry it: an answer may follow
 * soon. */
#define DGRAM_GATHER_NS (20 * DGRAM_US)

/* Messages that may be sent before the peer's first acknowledgement gives more credit. */
#define DGRAM_CREDIT_FIRST 16u

/* ---- dgram_mem.c ----------------------------------------------------------------------------- */

#define DGRAM_POOLS 5

struct dgram_pool {
	void *free;
	uint32_t spare; /* blocks on the list */
};

/* Memory of `bytes` bytes, not zeroed; NULL: out of memory. Free it with the same size. */
void *dgram_alloc(struct dgram *m, size_t bytes);
void dgram_free(struct dgram *m, void *p, size_t bytes);
/* As realloc, for arrays that grow. */
void *dgram_regrow(struct dgram *m, void *p, size_t old_bytes, size_t bytes);
void dgram_pools_drain(struct dgram *m);

/* Map from message numbers to pointers: open addressing, at most half full. */
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

/* A message of ours. It is in the ring conn->msg until it is delivered. If its body does not
 * come with the header, it is also in conn->bodies until the receiver reports the end. */
struct dgram_msg {
	uint32_t number;
	uint8_t state; /* enum dgram_msg_state */
	uint8_t header_len;
	bool with_body; /* the body travels with the header */
	bool over;      /* sent() was called, or was not needed; memory stays until `refs` is 0 */
	bool flowing;   /* on conn->flow */
	bool asked;     /* the receiver said how much it accepts */
	uint32_t refs;  /* from ring, map, flow, packets in flight and lost segments */
	uint32_t room;  /* bytes of this allocation */
	uint64_t body_len;
	uint64_t limit; /* bytes of the body that may be sent: pushed or asked for */
	uint64_t next;  /* bytes of the body that were sent at least once */
	struct net_mem body;
	void *cookie;
	struct dgram_msg *flow;
	uint8_t bytes[]; /* header, then a copied body */
};

/* A PULL that must arrive. */
struct dgram_ctl {
	uint8_t state; /* enum dgram_msg_state */
	uint8_t reason;
	uint32_t number;
	uint64_t length;
};

/* A segment of a body that must be sent again. */
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

/* A packet that asks for acknowledgement, and its contents. */
struct dgram_sent {
	uint64_t pn;
	uint64_t at;      /* when sent */
	uint64_t lost_at; /* when taken for lost */
	uint32_t bytes;
	uint8_t state; /* enum dgram_sent_state */
	bool probe;    /* probes the path MTU: its loss says nothing about congestion */
	uint16_t msgs, ctls;
	bool by_timer; /* taken for lost as nothing arrived, not as later ones did */
	uint32_t data_len;
	uint32_t msg, ctl; /* number of the first */
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

/* Received ranges of a body beyond its first gap, in ascending order. No two overlap or touch. */
struct dgram_range {
	uint64_t from, to;
};

#define DGRAM_RANGES 1024u /* at most in one delivery */

struct dgram_reassembly {
	uint32_t number;
	uint32_t nranges, range_room;
	uint64_t length;
	uint64_t done; /* bytes received from the start without a gap */
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
	uint64_t hello_at, hello_since; /* next HELLO, first HELLO */
	uint32_t hellos;
	bool welcome;    /* a WELCOME is to be sent */
	uint64_t caller; /* token of the HELLO it answers */
	struct net_addr caller_addr;

	/* packets out */
	struct dgram_sent *sent; /* ring by packet number */
	uint32_t sent_room;
	uint32_t flight;       /* packets in flight */
	uint64_t flight_bytes; /* without MTU probes */
	uint64_t oldest;       /* no packet before this one is waited for */
	uint64_t newest_acked;
	uint64_t rack_at, rack_pn,
		rack_rtt;       /* RFC 8985 section 6.1: the latest sent packet that has arrived */
	uint32_t reo_mult;      /* reordering window in quarters of min_rtt */
	bool reordered;         /* a packet taken for lost arrived */
	bool limited;           /* the congestion window held something back */
	uint64_t loss_at;       /* when the next packet counts as lost; NET_NEVER */
	uint64_t last_at;       /* last packet sent that is to be acknowledged, or time-out */
	uint64_t waiting_since; /* since when an acknowledgement is awaited; 0: none is */
	uint32_t backoff;       /* time-outs in a row; 1: a tail-loss probe is out */
	uint32_t probes;        /* packets that may be sent beyond the window */
	uint64_t recovery;      /* losses of packets before this one were answered */
	uint32_t undo; /* ssthresh before the last time-outs; 0: there is nothing to undo */
	uint64_t rate_since, rate_bytes; /* bytes acknowledged since then, to measure the rate */
	uint64_t rate_best[2];           /* best of the last round trips; of those before them */
	uint32_t rate_rounds;
	uint64_t least_rtt[2]; /* shortest of this round trip; of the one before */
	uint64_t round;        /* a round trip ends when this packet, or a later one, has arrived */
	uint32_t round_acked, round_lost; /* packets of this round trip */
	uint64_t rate_then;               /* rate when it began */
	uint32_t calm;                    /* round trips since losses were answered */
	bool lossy, full; /* previous round trip: too many losses; rate did not grow */
	bool ping;
	uint32_t mtu_probe; /* size being tried, 0: none */
	uint8_t mtu_tries;
	bool mtu_out;        /* the probe is in flight */
	uint32_t long_lost;  /* packets above DGRAM_MTU_MIN lost in a row */
	uint64_t long_since; /* when the first of them was lost */
	uint32_t cut_lost;   /* score of lost packets in segments: see dgram_mtu_overtaken */

	/* messages out */
	struct dgram_msg **msg; /* ring by number, [msg_base, rec->tx_number) */
	uint32_t msg_room, msg_base, msg_unsent, msg_lost;
	size_t msg_bytes;    /* bytes of messages that are not over */
	uint32_t credit_end; /* first message that may not be sent */
	struct dgram_ctl *ctl;
	uint32_t ctl_room, ctl_base, ctl_unsent, ctl_next, ctl_lost;
	uint64_t ctl_at; /* when unsent PULLs go out at the latest */
	struct dgram_map bodies;
	struct dgram_msg *flow, **flow_end; /* messages with more body to send */
	struct dgram_segment *segment;      /* ring */
	uint32_t segment_room, segment_head, segment_count;
	uint64_t persist_at; /* when to ask for credit, or what was delivered */
	uint32_t persists;   /* times in a row */

	/* packets and messages in */
	uint64_t floor;        /* the peer waits for no packet before this one */
	uint64_t newest_at;    /* when packet rec->rx_pn arrived */
	uint32_t unacked;      /* packets that ask for acknowledgement since the last one sent */
	uint64_t ack_at;       /* when an acknowledgement is due; NET_NEVER: none is owed */
	uint32_t acked_number; /* rx_number as last sent to the peer */
	uint32_t acked_credit;
	struct dgram_early **early; /* ring by message number */
	uint32_t nearly;
	struct dgram_map reassemblies;
	uint64_t idle_since;
	uint64_t seen[DGRAM_ACK_WORDS]; /* bitmap ring by packet number */
};

#define DGRAM_F_CONFIRMED 0x01u /* the peer has used our token: it knows the connection */
#define DGRAM_F_BLOCKED   0x02u /* deliver() said NET_LATER */
#define DGRAM_F_RESUME    0x04u /* ask it again */
#define DGRAM_F_READY     0x08u /* on the list of peers that dgram_run services */
#define DGRAM_F_BYE       0x10u /* goodbye was sent */
#define DGRAM_F_FAILED    0x20u /* out of memory; dgram_run ends the connection */
#define DGRAM_F_FIXED     0x40u /* the owner fixed its address */

/* A peer. Nothing else is kept of a peer without traffic, connected or not. */
struct dgram_rec {
	net_id_t id;
	struct net_addr addr;
	struct dgram_conn *conn;
	uint64_t mine, theirs; /* tokens of the connection */
	uint64_t next;         /* our token for the next connection; each is used once */
	uint64_t incarnation;
	uint32_t uid, jid;
	uint64_t tx_pn;                /* next packet number */
	uint64_t rx_pn;                /* highest packet number that arrived */
	uint32_t tx_number, rx_number; /* next message numbers */
	uint64_t heard;                /* when its last packet arrived */
	uint64_t due;                  /* when its timer is due */
	uint32_t heap;                 /* position in the heap of timers, from 1; 0: none */
	uint32_t hash_next;            /* index + 1 */
	uint32_t ready_next;
	uint32_t watch;
	uint64_t srtt, rttvar, min_rtt; /* 0: not measured */
	uint64_t rate;                  /* best recent rate, bytes per second; 0: unknown */
	uint64_t lost_packets;
	uint64_t mtu_again; /* when to look for a longer MTU again */
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
	uint32_t forget;  /* where the search for a reusable record goes on */
	uint32_t *bucket; /* index + 1 of the first peer */
	uint32_t nbuckets;
	uint32_t *heap;
	uint32_t heap_n, heap_room;
	uint32_t ready, ready_last; /* NET_NONE: none */
	/* An acknowledgement that waits until the message that came with it was answered. It
	 * says that the one packet in flight has arrived. While it waits, which is short, no
	 * timer of its peer is checked or set. */
	struct {
		struct dgram_rec *from; /* NULL: none waits */
		struct dgram_frame ack;
		uint64_t at; /* when it arrived */
	} late;
	uint32_t joined; /* packets that arrive joined now */
	bool full;       /* the link had no room */
	bool ending;     /* nothing more is sent */
	uint64_t now;
	uint64_t ahead; /* PULLs due within this time go out now */
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

/* The segment that is `i` places behind the head of the queue. */
static inline struct dgram_segment *dgram_segment_at(const struct dgram_conn *c, uint32_t i)
{
	return &c->segment[(c->segment_head + i) & (c->segment_room - 1)];
}

/* The PULL of this number. */
static inline struct dgram_ctl *dgram_ctl_at(const struct dgram_conn *c, uint32_t i)
{
	return &c->ctl[i & (c->ctl_room - 1)];
}

/* The lower half of a token is the number of its record. */
static inline uint32_t dgram_index(const struct dgram_rec *r)
{
	return (uint32_t)r->next;
}

/* Is a before b? These numbers wrap (RFC 1982 section 3.2). */
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

/* ---- dgram_in.c ------------------------------------------------------------------------------ */

/* Process the waiting acknowledgement, if any, as of its arrival. */
void dgram_catch_up(struct dgram *m);

/* ---- dgram_peer.c ---------------------------------------------------------------------------- */

uint64_t dgram_random(struct dgram *m);
uint64_t dgram_token(struct dgram *m, uint32_t index);
struct dgram_rec *dgram_rec_add(struct dgram *m, net_id_t id, const struct net_addr *addr);
/* Get the active part; make it if there is none. NULL: out of memory. */
struct dgram_conn *dgram_conn_get(struct dgram *m, struct dgram_rec *r);
/* Free an active part that is no longer in use. */
void dgram_conn_free(struct dgram *m, struct dgram_conn *c);
/* Have dgram_run service this peer. */
void dgram_ready(struct dgram *m, struct dgram_rec *r);
/* Finish a packet that was received: as dgram_ready. If dgram_run would only set the timer,
 * set it here, so that the receiver of the contents need not wait for that. */
void dgram_after(struct dgram *m, struct dgram_rec *r);
/* Set the timer: the record is serviced at time `at`, or earlier. */
void dgram_due(struct dgram *m, struct dgram_rec *r, uint64_t at);
/* The first peer whose timer is due. Its timer is cleared. NULL: none. */
struct dgram_rec *dgram_due_next(struct dgram *m, uint64_t now);
/* When to probe an open connection for a sign of life. */
uint64_t dgram_keepalive_at(const struct dgram *m, const struct dgram_rec *r);
/* Set the timer to what the connection waits for next. Free the active part if its time is
 * over. */
void dgram_rearm(struct dgram *m, struct dgram_rec *r);

/* ---- dgram_open.c ---------------------------------------------------------------------------- */

void dgram_open_start(struct dgram *m, struct dgram_rec *r);
void dgram_open_hello(struct dgram *m, const struct net_addr *from, const struct dgram_hello *h);
void dgram_open_welcome(struct dgram *m, uint64_t to, const struct net_addr *from,
			const struct dgram_hello *h);
/* Our own HELLO came back: nobody is there. */
void dgram_open_refused(struct dgram *m, const struct dgram_hello *h);
void dgram_open_reset(struct dgram *m, uint64_t to, uint64_t unknown);
/* Process the CONFIRM at the beginning of a FRAMES packet to our next token. True: there is a
 * connection now. */
bool dgram_open_confirm(struct dgram *m, struct dgram_rec *r, const struct net_addr *from,
			const struct dgram_frame *f);
/* Queue a RESET to `token`: the token `unknown` is not in use here. */
void dgram_open_unknown(struct dgram *m, const struct net_addr *to, uint64_t token,
			uint64_t unknown);
/* End the connection, or the attempt at one. The active part is gone afterwards, unless
 * callbacks made a new one. */
void dgram_peer_fail(struct dgram *m, struct dgram_rec *r, enum net_status s);

/* ---- dgram_out.c ----------------------------------------------------------------------------- */

/* Send what there is to send to a peer, a bounded number of packets. True: there is more. */
bool dgram_output(struct dgram *m, struct dgram_rec *r);
/* Send a HELLO or WELCOME with one of our tokens. False: no room. */
bool dgram_output_hello(struct dgram *m, struct dgram_rec *r, enum dgram_type type);
bool dgram_output_bye(struct dgram *m, struct dgram_rec *r);
bool dgram_output_resets(struct dgram *m);

/* ---- dgram_reassembly.c ---------------------------------------------------------------------- */

/* Process a message, or a segment of a body. False: it could not be accepted, and its packet
 * is not acknowledged. */
bool dgram_reassembly_msg(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f);
bool dgram_reassembly_data(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f);
/* Deliver messages that waited. */
void dgram_reassembly_resume(struct dgram *m, struct dgram_rec *r);
/* End all deliveries. */
void dgram_reassembly_fail(struct dgram *m, uint32_t peer, struct dgram_conn *c, enum net_status s);
uint32_t dgram_credit(const struct dgram *m);

/* ---- dgram_msg.c ----------------------------------------------------------------------------- */

/* Copy the first bytes of a memory range. Bytes that the owner does not have become zeros. */
void dgram_copy_mem(struct dgram *m, const struct net_mem *mem, uint64_t len, uint8_t *to);

int dgram_msg_add(struct dgram *m, struct dgram_rec *r, const struct net_out *o);
void dgram_msg_unref(struct dgram *m, struct dgram_msg *msg);
/* Its header has arrived; the peer may have to deliver earlier messages first. */
void dgram_msg_acked(struct dgram_conn *c, uint32_t number);
/* All messages before `number` were delivered. */
void dgram_msg_delivered(struct dgram *m, struct dgram_rec *r, uint32_t number);
/* Its header was sent: the body may follow. */
void dgram_msg_flow(struct dgram_conn *c, struct dgram_msg *msg);
void dgram_msg_unflow(struct dgram *m, struct dgram_conn *c);
void dgram_msg_pulled(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f);
/* End all messages. */
void dgram_msg_fail(struct dgram *m, uint32_t peer, struct dgram_conn *c, uint32_t end,
		    enum net_status s);
void dgram_segment_add(struct dgram *m, struct dgram_rec *r, struct dgram_msg *msg, uint64_t offset,
		       uint32_t length);
/* A segment that was taken for lost has arrived. */
void dgram_segment_forget(struct dgram_conn *c, const struct dgram_sent *s);
void dgram_segment_pop(struct dgram *m, struct dgram_conn *c);
/* Are any PULLs due? */
static inline bool dgram_ctls_due(const struct dgram *m, const struct dgram_conn *c)
{
	return c->ctl_lost || (c->ctl_unsent != c->ctl_next && c->ctl_at <= m->now + m->ahead);
}
/* Queue a PULL. If out of memory, the connection fails. */
void dgram_ctl_add(struct dgram *m, struct dgram_rec *r, uint32_t number, uint64_t length,
		   enum dgram_pull_reason reason);
void dgram_ctl_acked(struct dgram_conn *c, uint32_t index);

/* ---- dgram_loss.c ---------------------------------------------------------------------------- */

/* The record for a packet that asks for acknowledgement. NULL: too many are in flight, or out
 * of memory. */
struct dgram_sent *dgram_sent_place(struct dgram *m, struct dgram_rec *r);
/* The packet, with its record filled, is in flight. */
void dgram_sent_out(struct dgram *m, struct dgram_rec *r, struct dgram_sent *s);
void dgram_acked(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f);
/* Does the acknowledgement say only that the one packet in flight has arrived? That packet is
 * then the oldest one that is still tracked. */
bool dgram_acks_all(const struct dgram_rec *r, const struct dgram_frame *f);
/* Run the timers of packets in flight that are due. False: the connection has failed. */
bool dgram_loss_timers(struct dgram *m, struct dgram_rec *r);
/* When they are due. */
uint64_t dgram_loss_due(const struct dgram *m, const struct dgram_rec *r);
uint64_t dgram_rto(const struct dgram *m, const struct dgram_rec *r);
/* The contents of packets in flight are not needed any more. */
void dgram_sent_forget(struct dgram *m, struct dgram_conn *c);

/* ---- dgram_cc.c ------------------------------------------------------------------------------ */

void dgram_cc_open(struct dgram *m, struct dgram_rec *r);
void dgram_cc_acked(struct dgram *m, struct dgram_rec *r, uint64_t pn, uint32_t bytes);
/* All packets that one received packet acknowledges have been counted. */
void dgram_cc_rate(struct dgram *m, struct dgram_rec *r);
void dgram_cc_lost(struct dgram *m, struct dgram_rec *r, uint64_t pn);
void dgram_cc_timeout(struct dgram *m, struct dgram_rec *r);
/* A packet has arrived that a timer took for lost. */
void dgram_cc_not_lost(struct dgram_rec *r, uint64_t pn);
void dgram_cc_idle(struct dgram *m, struct dgram_rec *r);
/* Packets have become longer. */
void dgram_cc_longer(struct dgram *m, struct dgram_rec *r);

/* ---- dgram_mtu.c ----------------------------------------------------------------------------- */

/* Size of an MTU probe to send now, 0: none. */
uint32_t dgram_mtu_wanted(struct dgram *m, struct dgram_rec *r);
void dgram_mtu_arrived(struct dgram *m, struct dgram_rec *r, uint32_t size);
void dgram_mtu_lost(struct dgram *m, struct dgram_rec *r, uint32_t size);
/* A packet of `size` bytes that was no probe was lost, or arrived. Long ones may no longer get
 * through. */
void dgram_mtu_seen(struct dgram *m, struct dgram_rec *r, uint32_t size, bool arrived);
/* A packet of this length was lost, and later ones were not. */
void dgram_mtu_overtaken(struct dgram *m, struct dgram_rec *r, uint32_t size);

#endif
