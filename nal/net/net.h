/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What the network NALs have in common: Portals requests as messages, and back. A *carrier*
 * moves messages, headers with bodies, and has the notions of nal/net/dgram/dgram.h: the
 * datagram machine itself, which is fed by a link that knows sockets and addresses and nothing
 * else (nal/udp), or the one over fabrics with remote memory access (nal/net/rdma). All of it is
 * guarded by the lock of the interface's region.
 *
 *   net.c        an interface on the network: opening, closing, progress, peers
 *   net_dgram.c  the datagram machine as a carrier
 *   net_start.c  initiator: operations become messages, answers and replies end them
 *   net_serve.c  target: messages become requests to the engine, landings, answers
 *   net_failover.c   peers that another NAL is to reach
 *   net_rank.c   where the ranks of a job are, by what they published
 *   net_hold.c   names that one process of the host has at a time
 *   net_socket.c queues of datagram sockets
 *   net_mem.c    memory descriptors as stretches of memory
 *   net_seal.c   keys and tags
 *   net_thread.c the helper thread: wakes who sleeps, works while the application computes
 *   net_fault.c  faults on demand, for tests
 *   net_wire.c   decoders
 *
 * A get's reply and a put's data go to and from the application's memory where nal/net/dgram
 * says; what is short is copied when it is sent, so that its sender may go on.
 */
#ifndef NET_H
#define NET_H

#include <pthread.h>

#include "base/wake.h"
#include "nal/nal.h"
#include "nal/net/dgram/dgram.h"
#include "nal/net/net_wire.h"
#include "portals/engine/ni.h"

#define NET_PEERS     65536u /* known at the same time, at most */
#define NET_COPY_MOST 16384u /* bytes of a message that are copied when it is sent */

struct net;

/* A link: one socket, addresses, and packets in both directions. */
struct net_link {
	const char *name;

	/* Where `id` is reached by what the job told or by its id alone; false: not by this
	 * link. */
	bool (*address)(void *link, ptl_process_id_t id, struct net_addr *addr);

	/* As dgram_ops has them; what was transmitted is handed to the kernel by flush(). */
	void *(*room)(void *link, size_t len);
	void (*transmit)(void *link, const struct dgram_packet *p);
	void (*flush)(void *link);
	uint32_t (*longest)(void *link, const struct net_addr *to); /* NULL: the same to all */
	uint32_t (*whole)(void *link, const struct net_addr *to);   /* NULL: whatever its length */

	/* Gives what has arrived to net_packet(), a bounded number at a time; how many there
	 * were. */
	unsigned int (*receive)(void *link, struct net *n);

	/* From now on the socket becomes readable for all that arrives. False: something has
	 * arrived. NULL: it always does. */
	bool (*arm)(void *link);
};

/* What carries messages. Each is called with the lock and returns without waiting; n->now is the
 * time. What the carrier calls: net_deliver, net_landed, net_sent, net_segments, net_up and
 * net_lost, as struct dgram_ops has them. */
struct net_carrier {
	/* It looks at the time itself when something happens, by net_now(): a round in vain need
	 * not. */
	bool own_time;

	/* dgram_peer_find; and a peer for a process that can be reached by what the job told or by
	 * its id, or NET_NONE */
	uint32_t (*find)(const struct net *n, net_id_t id);
	uint32_t (*connect)(struct net *n, net_id_t id);

	/* As those of dgram.h */
	int (*send)(struct net *n, uint32_t peer, const struct net_out *o);
	bool (*oversubscribed)(const struct net *n, uint32_t peer); /* NULL: never */
	void (*watch)(struct net *n, uint32_t peer, int change);
	void (*resume)(struct net *n, uint32_t peer);

	/* Takes in what has arrived, a bounded amount; how much there was. */
	unsigned int (*receive)(struct net *n);
	/* Does what is due and sends what there is to send. */
	void (*run)(struct net *n);
	/* When run() is due. */
	uint64_t (*wake)(const struct net *n);
	/* Before a sleep, from which the descriptor given to net_begin wakes when something
	 * arrives: what that takes. False: something has arrived. NULL: nothing. *wake is when
	 * run() is due, and may change. */
	bool (*arm)(struct net *n, uint64_t *wake);

	/* Is anything of ours still on its way? */
	bool (*unfinished)(const struct net *n);
	/* Its counters to the statistics page. */
	void (*count)(struct net *n);
	/* Tells the peers that we close; nothing else follows but destroy. */
	void (*goodbye)(struct net *n);
	void (*destroy)(struct net *n);
};

/* Bytes of an MD, wherever they are. The first member of what the machine's callbacks get as a
 * cookie. */
struct net_span {
	uint32_t md;
	uint64_t offset;
	void *staged; /* not the MD's bytes but these */
};

/* What a request that swaps or calculates is for. */
struct net_swap {
	uint8_t atomic, element;
	uint32_t span;     /* of runs */
	uint64_t body_len; /* of what was sent */
};

/* A body on its way. */
struct net_body {
	struct net_span span;
	uint32_t op, op_gen; /* out, a put: our operation, PTL_NIL: none */
	bool acked;          /* the target's last word is here, or not expected */
	struct net_msg word;
	struct ptl_delivery l; /* a request or reply in progress on an MD of ours */
	uint32_t peer;
	struct net_swap swap;
	bool in_line, done; /* in: it ends in turn (net_serve.c); it is complete, */
	enum net_status how;
	struct net_body *next; /* in line; of those that are free */
};

struct net_peer {
	struct net_who who;
	bool watched; /* somebody asked whether it lives: its silence is noticed from then on */
	bool gone;    /* the connection was lost, and there is no other */
	bool met;     /* a connection stands */
	struct net *to,
		*from;     /* without one: who has it now; who could not reach it, until we have */
	char *why;         /* it is passed on to `to` */
	bool stays;        /* one of its messages could not be passed on: so no later one is */
	uint32_t expected; /* answers */
	struct net_body *line, *line_end; /* puts that are not over, or wait for one that is not */
	bool held;                        /* it was told to wait */
};

struct net {
	struct ptl_ni *ni;
	struct ptl_net *slot;
	uint32_t bit;     /* of the slot's number, for ni->polled */
	const char *name; /* of the NAL */
	const struct net_carrier *carrier;
	bool begun;
	bool warned; /* of a peer that was passed on */
	/* the datagram machine's: */
	const struct net_link *link;
	void *link_state;
	const struct net_ranks *ranks; /* who is at one address and nowhere else; NULL: nobody */
	struct dgram *m;
	struct net_keys {
		unsigned char head[16], body[16];
		bool full;
	} keys;
	struct net_fault *fault; /* NULL: none */
	struct net_peer *peer;   /* NET_PEERS, by the carrier's numbers, */
	uint32_t npeers;         /* which are less than this */
	struct ptl_stat_peer *stat;
	struct net_stats shown; /* what the statistics page has of our counters */
	ptl_process_id_t last;  /* the one talked to last, */
	uint32_t last_peer;     /* NET_NONE: nobody */
	struct net_body *spare;
	struct net_body **body_of; /* by operation: of those whose bytes stay where they are */
	uint32_t nheld;            /* peers told to wait for event handlers */
	uint64_t now;              /* of the call in progress, as the machine knows it: */
	bool told;                 /* that was looked up in this call */
	uint64_t looked, stood; /* when the clock was looked at; how long we were stopped in all */
	uint64_t active;        /* when something last happened; 0: since the clock was looked at */
	uint32_t looks;         /* in vain, since */
	uint32_t counted;       /* rounds since the counters were copied to the statistics page */
	bool refused;           /* the network says that nobody is there */
	unsigned int hits;      /* rounds in a row that found something */
	struct net_thread {
		int epoll_fd, fd;
		struct base_wake event;
		pthread_t thread;
		bool runs;
		_Atomic bool stop;
		bool listed;        /* the socket is in the set that it waits for */
		uint32_t looks;     /* of the application's since then */
		_Atomic bool rests; /* the application slept when it last looked */
		_Atomic uint64_t
			wake; /* what the application, asleep, would do next (CLOCK_MONOTONIC) */
	} thread;
};

/* ---- net.c ----------------------------------------------------------------------------------- */

/* Bytes of its part of the region. */
size_t net_region_bytes(void);

/* Makes *n for an interface that is open; `fd` becomes readable when there is something to
 * receive, the longest datagram is `mtu` long, and a receiver can hold `window` bytes before it
 * looks. NULL, or why not. Not locked. */
const char *net_start(struct net *n, const struct nal_job *job, int fd, uint32_t mtu,
		      uint32_t window);
/* Ends what net_start began, after a bounded time for what is on its way. Not locked. */
void net_stop(struct net *n);

/* For other carriers, in place of net_start. NULL, or why not: then net_stop frees what there
 * is. `fd` -1: the carrier has none, its arm() says when it wants to be looked at. Not locked. */
const char *net_begin(struct net *n, const struct net_carrier *carrier, const char *name, int fd);
void net_forked(struct net *n);

/* Of nal_ops. */
bool net_knows(struct net *n, ptl_process_id_t target);
bool net_connect(struct net *n, ptl_process_id_t target);
/* Is `target`, a peer, there as far as we know? Its silence is noticed from now on. */
bool net_lives(struct net *n, ptl_process_id_t target);
bool net_progress(struct net *n);
uint64_t net_arm(struct net *n);

/* Sees the time, as the carrier is to know it. */
void net_tell_time(struct net *n);
/* The time of this call, for a carrier with own_time. */
static inline uint64_t net_now(struct net *n)
{
	if (!n->told)
		net_tell_time(n);
	return n->now;
}
/* dgram_ops.up and .lost; `why` says more than the status, or is NULL. */
void net_up(void *user, uint32_t peer, const struct net_who *who);
void net_lost(struct net *n, uint32_t peer, enum net_status s, const char *why);
/* The target of an operation; NET_NONE: not ours. */
uint32_t net_peer_of(struct net *n, ptl_process_id_t id);
/* May bytes be copied for a peer, or does it not take in what there is? */
bool net_may_copy(const struct net *n, uint32_t peer);
/* Something is (1), or is no longer (-1), expected of a peer. */
void net_expect(struct net *n, uint32_t peer, int change);
struct ptl_answerer net_who(const struct net *n, uint32_t peer);

/* NULL: no memory. */
struct net_body *net_body_get(struct net *n, uint32_t peer);
void net_body_put(struct net *n, struct net_body *b);

/* ---- net_dgram.c ----------------------------------------------------------------------------- */

extern const struct net_carrier net_dgram_carrier;

/* The next so many packets came in one piece. */
void net_joined(struct net *n, uint32_t packets);
/* A packet that the link received; `from` as dgram_receive() has it. */
/* Packets so far that were of no use: of strangers, damaged, late. */
uint64_t net_dropped(const struct net *n);
void net_packet(struct net *n, const struct net_addr *from, const void *packet, size_t len);
/* A packet of ours that came back, or its beginning: nothing listens where it went. */
void net_refused(struct net *n, const void *packet, size_t len);
/* Makes the machine; NULL, or why not. */
const char *net_dgram_create(struct net *n, uint32_t mtu, uint32_t window);

static inline net_id_t net_id(ptl_process_id_t id)
{
	return (net_id_t)id.nid << 32 | id.pid;
}

/* ---- net_start.c ----------------------------------------------------------------------------- */

/* nal_ops.send */
int net_send(struct net *n, const struct ptl_start *s);
void net_take_answer(struct net *n, uint32_t peer, const struct net_msg *msg);
enum net_verdict net_take_reply(struct net *n, uint32_t peer, const struct net_msg *msg,
				const struct net_in *in, struct net_delivery *delivery);
/* A reply's landing, or a put's body, is over. */
void net_reply_landed(struct net *n, struct net_body *b, enum net_status s);
void net_put_sent(struct net *n, struct net_body *b, enum net_status s);
ptl_ni_fail_t net_fail(enum net_status s);

/* ---- net_serve.c ----------------------------------------------------------------------------- */

/* dgram_ops.deliver, .landed, .sent */
enum net_verdict net_deliver(void *user, uint32_t peer, const struct net_in *in,
			     struct net_delivery *delivery);
void net_landed(void *user, uint32_t peer, void *cookie, enum net_status s);
void net_sent(void *user, uint32_t peer, void *cookie, uint64_t length, enum net_status s);

/* ---- net_failover.c -------------------------------------------------------------------------- */

/* dgram_ops.unsent: may be called for messages to a peer that could not be reached, before
 * net_lost says so. */
bool net_failover(void *user, uint32_t peer, const struct net_out *o);
/* The peer could not be reached: it is passed on. */
void net_unreached(struct net *n, uint32_t peer, const char *why);
/* It was. */
void net_reached(struct net *n, uint32_t peer);
void net_forget_passing(struct net_peer *p);
/* The NAL closes: nobody is passed on to it any more, and who was is not. */
void net_forget_path(struct net *n);
/* Why the peer was passed on; NULL: it was not. */
const char *net_failed_over(const struct net *n, ptl_process_id_t id);

/* ---- net_rank.c ------------------------------------------------------------------------------ */

/* Where the job's ranks are, sorted by id. */
struct net_ranks {
	struct net_rank {
		ptl_process_id_t id;
		struct net_addr addr;
	} * rank;
	unsigned int count;
};

/* Takes what the ranks published for the NAL `name`; cards that `parse` does not understand are
 * left out. False: no memory. */
bool net_ranks_take(struct net_ranks *r, const struct nal_job *job, const char *name,
		    bool (*parse)(const void *link, const char *card, size_t len,
				  struct net_addr *addr),
		    const void *link);
void net_ranks_free(struct net_ranks *r);
/* NULL: no rank with this id said where it is. */
const struct net_addr *net_ranks_find(const struct net_ranks *r, ptl_process_id_t id);

/* The port of a pid by PTL_PID2PORT_FILE, else the pid itself; 0: it is none. */
uint16_t net_port_of(ptl_pid_t pid);
/* The port that these characters, as "%u" writes them in a card, are the number of; 0: of none. */
uint16_t net_port_parse(const char *text, size_t len);

/* ---- net_hold.c ------------------------------------------------------------------------------ */

/* Takes a name, which is ours until the descriptor is closed, and nobody else's of this network
 * namespace. The descriptor, or
 * -errno: -EADDRINUSE, somebody has it. */
int net_hold(const char *name);
/* Has somebody taken it? */
bool net_held(const char *name);

/* ---- net_socket.c ---------------------------------------------------------------------------- */

/* As long a queue as is wanted: asks for it by the option `force`, or by `ask`, which all may
 * use. */
void net_widen(int fd, int force, int ask);
/* Bytes that a receiver with a socket like this one can hold before it looks. */
uint32_t net_window(int fd);

/* ---- net_mem.c ------------------------------------------------------------------------------- */

/* The stretch as the machine wants it; `body` is its cookie if it has no address. */
struct net_mem net_mem(struct net *n, struct net_body *body);
struct net_mem net_mem_of(struct net *n, struct net_span *span);
/* dgram_ops.pieces */
int net_segments(void *user, void *cookie, uint64_t offset, uint64_t len, struct iovec *iov,
		 int max);
/* Each moves `len` bytes, which lie within the MD. */
void net_copy_in(struct net *n, const struct net_span *to, const void *from, uint64_t len);
void net_copy_out(struct net *n, void *to, const struct net_span *from, uint64_t len);

/* ---- net_seal.c ------------------------------------------------------------------------------ */

/* Whether this build's cryptography works here: NULL, or why not. */
const char *net_seal_unusable(void);
void net_keys_make(struct net_keys *k, const void *secret, size_t len);
/* dgram_ops.seal and .verify */
void net_seal(void *user, const uint8_t *head, size_t head_len, const struct iovec *body,
	      int segments, uint8_t tag[NET_TAG_BYTES]);
bool net_verify(void *user, const uint8_t *packet, size_t head_len, size_t len);
/* The same with keys alone. */
void net_tag(const struct net_keys *k, const uint8_t *head, size_t head_len,
	     const struct iovec *body, int segments, uint8_t tag[NET_TAG_BYTES]);

/* ---- net_thread.c ---------------------------------------------------------------------------- */

/* 0, or an errno. */
int net_thread_start(struct net *n, int fd);
void net_thread_stop(struct net *n);
/* From now on, once, the thread looks after what arrives. */
void net_thread_arm(struct net *n);
/* The application, which slept when the thread went to rest, is awake. */
void net_thread_rouse(struct net *n);
/* The application looks itself, and has for a while: what arrives is not to take the time of
 * telling the thread. */
void net_thread_disarm(struct net *n);

/* ---- net_fault.c ----------------------------------------------------------------------------- */

/* What PTL_FAULT asks for: NULL if nothing, or if it cannot be understood, after a warning. */
struct net_fault *net_fault_create(const char *rules);
void net_fault_destroy(struct net_fault *f);
/* In place of the link's transmit(). */
void net_fault_transmit(struct net *n, const struct dgram_packet *p);
/* Gives the link what is due, and has it flushed. */
void net_fault_release(struct net *n);
/* When the next one is. */
uint64_t net_fault_wake(const struct net *n);

#endif
