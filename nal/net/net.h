/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The common part of the network NALs: it turns Portals requests into messages and back. A
 * *carrier* moves messages, each a header with a body, with the notions of
 * nal/net/dgram/dgram.h. One carrier is the datagram machine itself. A link (nal/udp) feeds
 * it, and the link knows only sockets and addresses. The other carrier works over fabrics with
 * remote memory access (nal/net/rdma). The lock of the interface's region guards all of it.
 *
 *   net.c        an interface on the network: opening, closing, progress, peers
 *   net_dgram.c  the datagram machine as a carrier
 *   net_start.c  initiator: operations become messages, answers and replies end them
 *   net_serve.c  target: messages become requests to the engine, deliveries, answers
 *   net_failover.c   failover: peers that another NAL is to reach
 *   net_rank.c   the job's ranks: the addresses that they published
 *   net_hold.c   names that one process of the host holds at a time
 *   net_socket.c datagram sockets: the lengths of their queues
 *   net_mem.c    memory descriptors: their ranges of memory
 *   net_seal.c   keys and tags
 *   net_thread.c the helper thread: wakes sleepers, works while the application computes
 *   net_fault.c  tests: faults on demand
 *   net_wire.c   decoders
 *
 * The data of a get's reply and of a put move between the wire and the application's memory as
 * nal/net/dgram says. Short data is copied when it is sent, so that the sender may go on.
 *
 * Functions on a struct net need the region's lock, except those that open or close it. None
 * of them waits for the network, except net_stop, which waits a bounded time.
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
#define NET_COPY_MOST 16384u /* bytes of a message, at most, that are copied when it is sent */

struct net;

/* A link: one socket, its addresses, and packets in both directions. */
struct net_link {
	const char *name;

	/* Set *addr to the address of `id`, from what the job published or from the id alone.
	 * False: this link does not reach it. */
	bool (*address)(void *link, ptl_process_id_t id, struct net_addr *addr);

	/* As in dgram_ops; flush() hands the transmitted packets to the kernel. */
	void *(*room)(void *link, size_t len);
	void (*transmit)(void *link, const struct dgram_packet *p);
	void (*flush)(void *link);
	uint32_t (*longest)(void *link, const struct net_addr *to); /* NULL: the same to all */
	uint32_t (*whole)(void *link, const struct net_addr *to); /* NULL: any length goes as one */

	/* Pass arrived packets to net_packet(), a bounded number per call. Returns how many
	 * there were. */
	unsigned int (*receive)(void *link, struct net *n);
};

/* A carrier of messages. Each function is called with the lock held and returns without
 * waiting; n->now is the time. The carrier calls net_deliver, net_delivered, net_sent,
 * net_segments, net_up and net_peer_failed, as described in struct dgram_ops. */
struct net_carrier {
	/* The carrier reads the time itself, by net_now(), when something happens: a round
	 * that finds nothing need not. */
	bool own_time;

	/* find: as dgram_peer_find. connect: the peer for a process that is reachable by what
	 * the job published or by its id, or NET_NONE */
	uint32_t (*find)(const struct net *n, net_id_t id);
	uint32_t (*connect)(struct net *n, net_id_t id);

	/* As their counterparts in dgram.h */
	int (*send)(struct net *n, uint32_t peer, const struct net_out *o);
	bool (*congested)(const struct net *n, uint32_t peer); /* NULL: never */
	void (*watch)(struct net *n, uint32_t peer, int change);
	void (*resume)(struct net *n, uint32_t peer);

	/* Process what has arrived, a bounded amount; returns how much there was. */
	unsigned int (*receive)(struct net *n);
	/* Do what is due, and send what there is to send. */
	void (*run)(struct net *n);
	/* Time when run() is due. */
	uint64_t (*wake)(const struct net *n);
	/* Prepare for a sleep, so that an arrival wakes the sleeper by the descriptor given to
	 * net_begin. False: something has arrived already. NULL: nothing to prepare. *wake is
	 * when run() is due, and may change. */
	bool (*arm)(struct net *n, uint64_t *wake);

	/* Is anything of ours still in flight? */
	bool (*unfinished)(const struct net *n);
	/* Add its counters to the statistics page. */
	void (*count)(struct net *n);
	/* Tell the peers that we close; only destroy may follow. */
	void (*goodbye)(struct net *n);
	void (*destroy)(struct net *n);
};

/* Bytes of an MD, contiguous or not. It is the first member of what the machine's callbacks
 * get as a cookie. */
struct net_span {
	uint32_t md;
	uint64_t offset;
	void *staged; /* if not NULL: these bytes instead of the MD's */
};

/* Parameters of a swap or atomic request. */
struct net_swap {
	uint8_t atomic, element;
	uint32_t span;     /* for runs */
	uint64_t body_len; /* bytes sent */
};

/* A body in transfer. */
struct net_body {
	struct net_span span;
	uint32_t op, op_gen; /* outgoing put: our operation; PTL_NIL: none */
	bool acked;          /* the target's final response is here, or not expected */
	struct net_msg word;
	struct ptl_delivery l; /* a request or reply in progress on an MD of ours */
	uint32_t peer;
	struct net_swap swap;
	bool in_line, done; /* incoming: it ends in order (net_serve.c); it is complete */
	enum net_status how;
	struct net_body *next; /* in the line, or on the free list */
};

struct net_peer {
	struct net_who who;
	bool watched;          /* its liveness was asked for: its silence is noticed from then on */
	bool gone;             /* the connection failed, and there is no new one */
	bool met;              /* a connection stands */
	struct net *to, *from; /* NAL it failed over to; from, until we met it; or NULL */
	char *why;             /* why `to` has it */
	bool stays;            /* one of its messages could not fail over, so no later one does */
	uint32_t expected;     /* number of answers expected */
	struct net_body *line, *line_end; /* puts that are not over, or wait for an earlier one */
	bool held;                        /* it got NET_LATER */
};

struct net {
	struct ptl_ni *ni;
	struct ptl_net *slot;
	uint32_t bit;     /* 1 << the slot's number, for ni->polled */
	const char *name; /* of the NAL */
	const struct net_carrier *carrier;
	bool begun;
	bool warned; /* about a peer that failed over */
	/* for the datagram machine: */
	const struct net_link *link;
	void *link_state;
	const struct net_ranks *ranks; /* ranks with one fixed address each; NULL: none */
	struct dgram *m;
	struct net_keys {
		unsigned char head[16], body[16];
		bool full;
	} keys;
	struct net_fault *fault; /* NULL: none */
	struct net_peer *peer;   /* NET_PEERS, indexed by the carrier's peer numbers */
	uint32_t npeers;         /* all peer numbers are less than this */
	struct ptl_stat_peer *stat;
	struct net_stats shown; /* our counters as the statistics page has them */
	ptl_process_id_t last;  /* the last process looked up */
	uint32_t last_peer;     /* its number; NET_NONE: none */
	struct net_body *spare;
	struct net_body **body_of;     /* by operation: bodies that are sent from where they are */
	uint32_t nheld;                /* peers that got NET_LATER because of event handlers */
	uint64_t now;                  /* time of the call in progress, as the machine sees it */
	bool now_read;                 /* `now` was read in this call */
	uint64_t clock_read_at, stood; /* when the clock was read; total time we were stopped */
	uint64_t active;      /* when something last happened; 0: after the clock was last read */
	uint32_t empty_polls; /* polls that found nothing since then */
	uint32_t counted;     /* rounds since the counters were copied to the statistics page */
	bool refused;         /* the network reports that nobody is there */
	unsigned int hits;    /* rounds in a row that found something */
	/* everything that had arrived at `listened` was received; since `listening`, `heard`
	 * packets were */
	uint64_t listened, listening;
	uint32_t heard;
	struct net_thread {
		int epoll_fd, fd;
		struct base_wake event;
		pthread_t thread;
		bool runs;
		_Atomic bool stop;
		bool listed;        /* the socket is in the thread's epoll set */
		uint32_t polls;     /* polls by the application since then */
		_Atomic bool rests; /* the application slept when the thread last checked */
		_Atomic uint64_t
			wake; /* when the sleeping application has work due (CLOCK_MONOTONIC) */
	} thread;
};

/* ---- net.c ----------------------------------------------------------------------------------- */

/* Bytes of a network NAL's share of the region. */
size_t net_region_bytes(void);

/* Set up *n for an open interface. `fd` becomes readable when there is something to receive.
 * The longest datagram is `mtu` bytes. A receiver can hold `window` bytes before it polls.
 * NULL, or the reason for failure. Not locked. */
const char *net_start(struct net *n, const struct nal_job *job, int fd, uint32_t mtu,
		      uint32_t window);
/* End what net_start began. Waits a bounded time for what is in flight. Not locked. */
void net_stop(struct net *n);

/* As net_start, for other carriers. NULL, or the reason for failure: then net_stop frees what
 * there is. `fd` -1: the carrier has none, and its arm() says when it must be polled. Not
 * locked. */
const char *net_begin(struct net *n, const struct net_carrier *carrier, const char *name, int fd);
void net_forked(struct net *n);

/* Functions of nal_ops. */
bool net_knows(struct net *n, ptl_process_id_t target);
bool net_connect(struct net *n, ptl_process_id_t target);
/* Is the peer `target` alive as far as we know? Its silence is noticed from now on. */
bool net_lives(struct net *n, ptl_process_id_t target);
bool net_progress(struct net *n);
uint64_t net_arm(struct net *n);

/* Read the clock into n->now, without the time we were stopped. */
void net_read_clock(struct net *n);
/* Time of this call, for a carrier with own_time. */
static inline uint64_t net_now(struct net *n)
{
	if (!n->now_read)
		net_read_clock(n);
	return n->now;
}
/* dgram_ops.up and .peer_failed; `why` says more than the status, or is NULL. */
void net_up(void *user, uint32_t peer, const struct net_who *who);
void net_peer_failed(struct net *n, uint32_t peer, enum net_status s, const char *why);
/* Peer number of an operation's target; NET_NONE: this NAL does not reach it. */
uint32_t net_peer_of(struct net *n, ptl_process_id_t id);
/* May bytes be copied for a peer? Not if too much waits for it already. */
bool net_may_copy(const struct net *n, uint32_t peer);
/* One answer more (1) or less (-1) is expected of a peer. */
void net_expect(struct net *n, uint32_t peer, int change);
struct ptl_answerer net_who(const struct net *n, uint32_t peer);

/* NULL: out of memory. */
struct net_body *net_body_get(struct net *n, uint32_t peer);
void net_body_put(struct net *n, struct net_body *b);

/* ---- net_dgram.c ----------------------------------------------------------------------------- */

extern const struct net_carrier net_dgram_carrier;

/* The next `packets` packets arrived joined. */
void net_joined(struct net *n, uint32_t packets);
/* Process a packet from the link; `from` as in dgram_receive(). */
void net_packet(struct net *n, const struct net_addr *from, const void *packet, size_t len);
/* A packet of ours, or its beginning, came back: nothing listens at its destination. */
void net_refused(struct net *n, const void *packet, size_t len);
/* Create the machine. NULL, or the reason for failure. */
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
/* A reply's delivery, or a put's body, is over. */
void net_reply_delivered(struct net *n, struct net_body *b, enum net_status s);
void net_put_sent(struct net *n, struct net_body *b, enum net_status s);
ptl_ni_fail_t net_fail(enum net_status s);

/* ---- net_serve.c ----------------------------------------------------------------------------- */

/* dgram_ops.deliver, .delivered, .sent */
enum net_verdict net_deliver(void *user, uint32_t peer, const struct net_in *in,
			     struct net_delivery *delivery);
void net_delivered(void *user, uint32_t peer, void *cookie, enum net_status s);
void net_sent(void *user, uint32_t peer, void *cookie, uint64_t length, enum net_status s);

/* ---- net_failover.c -------------------------------------------------------------------------- */

/* dgram_ops.unsent: may be called for messages to a peer that could not be reached, before
 * net_peer_failed reports it. */
bool net_failover(void *user, uint32_t peer, const struct net_out *o);
/* The peer could not be reached: fail over to another NAL. */
void net_unreached(struct net *n, uint32_t peer, const char *why);
/* The peer was reached. */
void net_reached(struct net *n, uint32_t peer);
void net_forget_passing(struct net_peer *p);
/* The NAL closes: no peer fails over to it any more, and earlier failovers to it are undone. */
void net_forget_path(struct net *n);
/* Why the peer failed over; NULL: it did not. */
const char *net_failed_over(const struct net *n, ptl_process_id_t id);

/* ---- net_rank.c ------------------------------------------------------------------------------ */

/* Addresses of the job's ranks, sorted by id. */
struct net_ranks {
	struct net_rank {
		ptl_process_id_t id;
		struct net_addr addr;
	} * rank;
	unsigned int count;
};

/* Collect what the ranks published for the NAL `name`. Cards that `parse` does not understand
 * are left out. False: out of memory. */
bool net_ranks_take(struct net_ranks *r, const struct nal_job *job, const char *name,
		    bool (*parse)(const void *link, const char *card, size_t len,
				  struct net_addr *addr),
		    const void *link);
void net_ranks_free(struct net_ranks *r);
/* NULL: no rank with this id published an address. */
const struct net_addr *net_ranks_find(const struct net_ranks *r, ptl_process_id_t id);

/* Port of a pid: from PTL_PID2PORT_FILE, else the pid itself; 0: no valid port. */
uint16_t net_port_of(ptl_pid_t pid);
/* Parse a port number that a card holds as "%u" writes it; 0: not a valid port. */
uint16_t net_port_parse(const char *text, size_t len);

/* ---- net_hold.c ------------------------------------------------------------------------------ */

/* Claim a name within this network namespace. It is ours alone until the descriptor is closed.
 * Returns the descriptor or -errno; -EADDRINUSE: another process holds the name. */
int net_hold(const char *name);
/* Does some process hold the name? */
bool net_held(const char *name);

/* ---- net_socket.c ---------------------------------------------------------------------------- */

/* Make the socket's queue as long as the configuration asks. Uses the privileged option
 * `force`, or else `ask`, which needs no privilege. */
void net_widen(int fd, int force, int ask);
/* Bytes that a receiver with a socket like this one can hold before it polls. */
uint32_t net_window(int fd);

/* ---- net_mem.c ------------------------------------------------------------------------------- */

/* The memory range in the machine's form; `body` is its cookie if it has no single address. */
struct net_mem net_mem(struct net *n, struct net_body *body);
struct net_mem net_mem_of(struct net *n, struct net_span *span);
/* dgram_ops.segments */
int net_segments(void *user, void *cookie, uint64_t offset, uint64_t len, struct iovec *iov,
		 int max);
/* Each copies `len` bytes, which must lie within the MD. */
void net_copy_in(struct net *n, const struct net_span *to, const void *from, uint64_t len);
void net_copy_out(struct net *n, void *to, const struct net_span *from, uint64_t len);

/* ---- net_seal.c ------------------------------------------------------------------------------ */

/* Check that this build's cryptography works here: NULL, or the reason why not. */
const char *net_seal_unusable(void);
void net_keys_make(struct net_keys *k, const void *secret, size_t len);
/* dgram_ops.seal and .verify */
void net_seal(void *user, const uint8_t *head, size_t head_len, const struct iovec *body,
	      int segments, uint8_t tag[NET_TAG_BYTES]);
bool net_verify(void *user, const uint8_t *packet, size_t head_len, size_t len);
/* The same, with keys alone. */
void net_tag(const struct net_keys *k, const uint8_t *head, size_t head_len,
	     const struct iovec *body, int segments, uint8_t tag[NET_TAG_BYTES]);

/* ---- net_thread.c ---------------------------------------------------------------------------- */

/* Returns 0 or an errno. */
int net_thread_start(struct net *n, int fd);
void net_thread_stop(struct net *n);
/* From now on the thread is notified, once, of what arrives. */
void net_thread_arm(struct net *n);
/* The application slept when the thread went to rest, and is now awake. */
void net_thread_rouse(struct net *n);
/* The application has polled for a while: stop notifying the thread of arrivals, which costs
 * time per packet. */
void net_thread_disarm(struct net *n);

/* ---- net_fault.c ----------------------------------------------------------------------------- */

/* Parse PTL_FAULT. NULL: no faults; if the rules cannot be parsed, a warning was printed. */
struct net_fault *net_fault_create(const char *rules);
void net_fault_destroy(struct net_fault *f);
/* In place of the link's transmit(). */
void net_fault_transmit(struct net *n, const struct dgram_packet *p);
/* Hand due packets to the link, and flush it. */
void net_fault_release(struct net *n);
/* When the next packet is due. */
uint64_t net_fault_wake(const struct net *n);

#endif
