/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The library's objects: endpoints, the edges that leave them, the messages that wait in them.
 *
 * An endpoint has two locks, so that a thread that sends and one that receives do not meet: `tx`
 * guards the sending side, `rx` the receiving side. Order: dp_lib.lock, rx, tx, dp_lib.lookups.
 * No lock is held while a thread sleeps.
 *
 * Endpoints are never freed, only used again. A thread that holds a pointer locks the side it
 * needs and then checks that the descriptor still leads there.
 */
#ifndef DP_SHIM_CORE_H
#define DP_SHIM_CORE_H

#include <portals3.h>
#include <portals3_ext.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cpu.h"
#include "dp_shim/dp_wire.h"
#include <dp.h>

enum {
	DP_PORTAL_DATA = 48,
	DP_PORTAL_LOOKUP,
	DP_PORTAL_CREDIT,
	DP_PORTAL_CONTROL,
	DP_BLOCKS = 4,
	DP_EVENTS = 32,     /* taken at once */
	DP_PAGE_FDS = 1024, /* descriptors in a page of the table */
	DP_PAGES = 4096,
	DP_FIRST_WAIT_MS = 10000, /* the first write waits so long for its target's endpoint */
	DP_REFRESH_MS = 200,      /* age at which a lookup's answer is asked for again */
};

#define DP_POOL_BYTES    ((size_t)1 << 20)
#define DP_POOL_MOST     ((size_t)1 << 32)
#define DP_POOL_MESSAGES 4000
#define DP_MESSAGES_MOST (1u << 20)

/* One sender's edge, at the receiver. */
struct dp_sender {
	struct dp_sender *next; /* of the same hash */
	uint32_t nid, dpid;
	uint32_t instance, target; /* low bits, as in its last message */
	uint32_t expected;         /* number of its next message */
	/* flow control */
	bool flows, asking;
	uint32_t word;
	uint32_t flow_instance;
	uint32_t need; /* units, when it asks */
	ptl_process_id_t process;
	struct dp_total granted, freed, returned;
	uint64_t asked_at; /* order of waiting senders */
	uint64_t taken_at; /* ms: when credit was asked back */
	struct dp_sender *next_flow;
};

/* A message in the pool. */
struct dp_token {
	char *at;
	uint32_t length;
	uint32_t stored; /* with padding */
	struct dp_sender *from;
	uint8_t block;
	bool charged;
	bool freed; /* by a plain read */
};

/* A part of the pool: a memory descriptor that is filled, emptied and armed again. */
struct dp_block {
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	char *base;
	uint64_t turn;  /* number of this arming, of all armings of the pool's blocks */
	int arrived;    /* messages since then */
	int live;       /* of these, not yet free */
	uint64_t bytes; /* of those that arrived */
	bool inactive;  /* all that it accepted have arrived, and it accepts nothing more */
};

/* An arrival that others precede that have not arrived. */
struct dp_held {
	uint64_t turn, offset;
	ptl_event_t event;
};

enum { DP_SENDERS = 64 }; /* buckets */

struct dp_pool {
	char *base;
	size_t size; /* of all blocks */
	size_t block_bytes;
	bool own; /* mapped by the library */
	size_t longest;
	int threshold; /* messages of a block */
	struct dp_block block[DP_BLOCKS];
	ptl_handle_eq_t eq;
	uint64_t turns;       /* armings so far */
	uint64_t current;     /* the turn whose block is filled */
	struct dp_held *held; /* by place, from held_first on */
	unsigned int held_first, held_count, held_room;
	/* ms: when an answer was used or asked for */
	struct dp_token *ring;
	uint64_t mask, flushed, read, filled;
};

/* An endpoint elsewhere, as the sending side knows it. Guarded by dp_lib.lookups. */
struct dp_peer {
	struct dp_peer *next;
	uint32_t nid, dpid;
	bool open;
	bool answered; /* once at least */
	struct dp_record record;
	ptl_process_id_t process;
	uint64_t answered_at; /* ms */
	uint64_t asked_at;
	unsigned int pending; /* lookups under way */
	bool explained;       /* why its node is out of reach */
};

/* An edge that leaves an endpoint. */
struct dp_edge {
	struct dp_edge *next;
	struct dp_peer *peer;
	uint32_t nid, dpid;
	bool known; /* it was open once: writes do not wait any more */
	bool open;  /* as far as is known */
	bool out_of_reach;
	bool flow;  /* the receiver grants credit */
	bool asked; /* for credit */
	uint32_t number;
	ptl_process_id_t process;
	uint64_t instance;
	uint64_t match_bits;
	size_t longest;
	uint64_t checked_at; /* ms: when an answer was last used or asked for */
	uint32_t word;
	struct dp_total spent; /* what was sent or given back */
	struct dp_total returned;
	uint64_t asked_at;
};

enum { DP_EDGES = 64 }; /* buckets */

enum dp_state {
	DP_WATCHED, /* the library's thread waits for messages and shows them at the descriptor */
	DP_SPINNING /* the program looks for them itself */
};

struct dp_ep {
	struct dp_ep *next; /* of all that are open, or of those to use again */
	_Atomic bool open;
	int fd;   /* as dp_open returned it */
	int kept; /* the library's end */
	ino_t inode;
	uint32_t dpid;
	uint64_t instance;
	_Atomic int sleepers; /* threads that wait without a lock */

	/* the receiving side */
	pthread_mutex_t rx;
	struct dp_pool pool;
	ptl_handle_me_t record_me;
	uint8_t record[DP_RECORD_BYTES];
	struct dp_sender *sender[DP_SENDERS];
	struct dp_sender *last_sender;
	struct dp_sender *flows; /* those that have asked for credit */
	struct dp_total allowed; /* granted to all and not free again */
	uint64_t asks;
	_Atomic bool nasking; /* a sender waits for credit */
	uint64_t lost;
	bool flow;
	bool shown;        /* the oldest message that waits is in the socket, too */
	bool nonblocking;  /* as the descriptor was when last asked */
	bool yield_due;    /* others need the processor: yield without the lock */
	_Atomic int state; /* changed with the lock only */
	int watch;         /* DP_WATCH_* */
	int asleep;        /* threads that a message in the socket wakes */
	int dozing;        /* threads that a message in Portals wakes */
	unsigned int empty;
	uint64_t empty_since;
	_Atomic uint32_t calls; /* that looked for messages */
	uint32_t calls_seen;    /* by the thread that watches */

	/* the sending side */
	pthread_mutex_t tx;
	struct dp_edge *target;
	int target_error; /* why there is none */
	struct dp_edge *edge[DP_EDGES];
	char *bounce;
	uint64_t *words; /* of credit, written by receivers */
	uint32_t words_used;
	ptl_handle_me_t words_me;
	ptl_handle_eq_t words_eq;
	bool has_flow;           /* ep->flow, as the sending side sees it */
	ptl_handle_eq_t sent_eq; /* PTL_EQ_NONE: no message has needed it */
	unsigned int sending;    /* messages that the library holds until they are sent */
	size_t sending_bytes;
	_Atomic uint64_t unsent;
	char *plain;      /* a plain write that waits */
	int plain_length; /* -1: there is none */
	uint64_t plain_since;
};

/* Messages of a closed endpoint that are under way. */
struct dp_left {
	struct dp_left *next;
	ptl_handle_eq_t eq;
	unsigned int sending;
};

struct dp_node {
	bool known;
	ptl_nid_t address;
};

struct dp_lib {
	pthread_mutex_t lock; /* start, the table, the lists of endpoints */
	_Atomic bool started;
	bool child; /* after a fork */
	bool over;  /* the program ends: nothing is opened any more */
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	uint32_t job; /* distinguishes jobs on one host */
	int nid, nodes;
	struct dp_node *node;
	ptl_process_id_t *ranks; /* of a job, else NULL */
	unsigned int nranks;
	ptl_pid_t first_pid;
	unsigned int pids;
	uint64_t spin_ns;
	_Atomic(_Atomic(struct dp_ep *) *) table[DP_PAGES];
	struct dp_ep *open, *unused;
	struct dp_left *left;

	pthread_mutex_t lookups;
	ptl_handle_eq_t lookup_eq;
	uint8_t no_record[DP_RECORD_BYTES];

	pthread_t watcher, server;
	int epoll;
	int claim;          /* keeps the process id */
	uint64_t forked_at; /* ms */
	_Atomic bool ending;
	ptl_handle_eq_t control_eq;
	_Atomic bool watcher_waits;
	_Atomic unsigned int flows; /* endpoints with flow control */
	_Atomic uint32_t changes;
};

extern struct dp_lib dp_lib;

/* ---- start.c, nodes.c ------------------------------------------------------------------------ */

/* Open Portals and start the threads, once. 0, or -1 with errno. Requires dp_lib.lock. */
int dp_start(void);
/* Learn the nodes. 0, or -1 with errno after a warning. */
int dp_nodes_learn(void);
/* The i-th process that may have endpoints of this node. False: there are no more. */
bool dp_node_process(uint32_t nid, unsigned int i, ptl_process_id_t *process);
static inline bool dp_node_known(int nid)
{
	return nid >= 0 && nid < dp_lib.nodes && dp_lib.node[nid].known;
}

/* ---- table.c --------------------------------------------------------------------------------- */

/* The endpoint of a descriptor that is not in the table: of a copy, or NULL. */
struct dp_ep *dp_find_copy(int fd);
/* Set or clear the table. False: no memory, or a number beyond the table. */
bool dp_table_set(int fd, struct dp_ep *ep);
/* Clear all numbers that lead to this endpoint. */
void dp_table_forget(const struct dp_ep *ep);

static inline struct dp_ep *dp_table_get(int fd)
{
	_Atomic(struct dp_ep *) *page;

	if (fd < 0 || fd >= DP_PAGES * DP_PAGE_FDS)
		return NULL;
	/* acquire: pairs with the releases of dp_table_set() */
	page = atomic_load_explicit(&dp_lib.table[fd / DP_PAGE_FDS], memory_order_acquire);
	return page ? atomic_load_explicit(&page[fd % DP_PAGE_FDS], memory_order_acquire) : NULL;
}

/* Lock a side of the endpoint of a descriptor; NULL with EBADF. */
struct dp_ep *dp_enter_rx(int fd);
struct dp_ep *dp_enter_tx(int fd);
/* After a wait without the lock: is it still the descriptor's? */
static inline bool dp_is_still(const struct dp_ep *ep, int fd)
{
	return atomic_load_explicit(&ep->open, memory_order_relaxed) && dp_table_get(fd) == ep;
}

/* ---- endpoint.c ------------------------------------------------------------------------------ */

/* Close an endpoint. Requires dp_lib.lock. */
void dp_release(struct dp_ep *ep);
/* Tell peers what the endpoint is. Requires rx. */
void dp_publish(struct dp_ep *ep);

/* ---- pool.c: all require rx ------------------------------------------------------------------ */

/* Make a pool as *want says, and arm it. 0, or -1 with errno. */
int dp_pool_open(struct dp_ep *ep, struct dp_pool *pool, const dpmmap_t *want);
void dp_pool_close(struct dp_pool *pool);
/* Is what is asked for possible? Fill in defaults. */
bool dp_pool_shape(dpmmap_t *want);
/* Take what has arrived. Returns whether a message waits. */
bool dp_collect(struct dp_ep *ep);
/* The n oldest that were read become free. Returns how many. */
int dp_flush(struct dp_ep *ep, int n);
/* The oldest message that waits was had by a plain read. */
void dp_drop_oldest(struct dp_ep *ep);
/* The sender's entry. NULL: no memory. */
struct dp_sender *dp_sender_of(struct dp_ep *ep, uint32_t nid, uint32_t dpid);

/* ---- recv.c: require rx ---------------------------------------------------------------------- */

/* Put the oldest message into the socket, unless one is there. */
void dp_show(struct dp_ep *ep);
/* Find out whether the message in the socket was read there. */
void dp_see_shown(struct dp_ep *ep);

/* ---- send.c: require tx ---------------------------------------------------------------------- */

/* Send a message now, or fail: EAGAIN, and *wait says for what. */
enum dp_wait { DP_WAIT_NOT, DP_WAIT_LOOKUP, DP_WAIT_CREDIT, DP_WAIT_MEMORY };
int dp_send_now(struct dp_ep *ep, const void *msg, int len, enum dp_wait *wait);
/* Messages that are under way stay so. Requires dp_lib.lock, too. */
void dp_send_close(struct dp_ep *ep);
/* Forget messages of closed endpoints that have been sent. Requires dp_lib.lock. */
void dp_reap_left(void);
/* Wait for those that have not, for a while only, as a target may be stopped. With no lock. */
void dp_finish_left(void);

/* ---- lookup.c -------------------------------------------------------------------------------- */

int dp_lookup_open(void);
/* Require dp_lib.lookups. */
struct dp_peer *dp_peer_of(uint32_t nid, uint32_t dpid);
void dp_peer_ask(struct dp_peer *p, uint64_t now);
void dp_peer_answers(void);
/* No transport leads to any process that may have the endpoint; says why, once. */
bool dp_peer_out_of_reach(struct dp_peer *p);

/* ---- flow.c ---------------------------------------------------------------------------------- */

/* The sending side; require tx. */
bool dp_credit_spend(struct dp_ep *ep, struct dp_edge *e, uint64_t bytes);
int dp_credit_open(struct dp_ep *ep, struct dp_edge *e);
void dp_credit_close(struct dp_ep *ep);
void dp_credit_unspend(struct dp_edge *e, uint64_t bytes);
void dp_credit_give_back(struct dp_ep *ep, const struct dp_control *c, ptl_process_id_t from);
/* The receiving side; require rx. */
void dp_flow_freed(struct dp_ep *ep, struct dp_sender *s, uint64_t bytes);
void dp_flow_asked(struct dp_ep *ep, const struct dp_control *c, ptl_process_id_t from);
void dp_flow_returned(struct dp_ep *ep, const struct dp_control *c, ptl_process_id_t from);
/* Serve those that wait; true: some still do. */
bool dp_flow_serve(struct dp_ep *ep);
void dp_control_send(ptl_process_id_t to, const struct dp_control *c);

/* ---- watch.c --------------------------------------------------------------------------------- */

int dp_threads_start(void);
void dp_threads_stop(void);
/* The watching thread has to look at its list again. */
void dp_kick(void);
/* Has the last copy of the descriptor been closed? */
bool dp_hung_up(const struct dp_ep *ep);

#endif
