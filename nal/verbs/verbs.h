/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The verbs link: InfiniBand, RoCE and iWARP by libibverbs, for the machine in nal/net/rdma.
 * Processes are connected when they first talk, by the RDMA connection manager, which knows all
 * three kinds.
 *
 *   verbs.c        the operations of the NAL: opening, cards, closing
 *   verbs_dev.c    which device and port; what all connections share: completion queue, receive
 *                  buffers
 *   verbs_path.c    ways to processes, and calling them again
 *   verbs_conn.c   connections: making them, proving who is there, breaking them
 *   verbs_move.c   packets, reads and what completes; registration
 *   verbs_wire.c   decoders; verbs_proof.c  tags
 *
 * What a peer costs is a connection: its queue of work, of VERBS_DEPTH entries, and struct
 * verbs_conn. Receive buffers are everybody's, from one shared receive queue, and so is the
 * completion queue. How far ahead a peer may be is the machine's business (credits); should all
 * be ahead at the same time, who finds no buffer is told so by the device, and tries again.
 *
 * All of it runs with the lock of the interface's region held.
 */
#ifndef VERBS_H
#define VERBS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "nal/net/rdma/rdma.h"
#include "nal/verbs/verbs_wire.h"

#define VERBS_DEPTH                                                                                \
	15u /* work requests of a connection; with one more for the device a power of two */
#define VERBS_INLINE 208u  /* bytes that fit into one, asked for */
#define VERBS_PACKET 8448u /* longest packet, and length of a receive buffer */
#define VERBS_BUSY_ALL                                                                             \
	2048u /* work requests of all connections, which the completion queue has room for */
#define VERBS_QUIET   7u    /* sends in a row that the device need not tell us of */
#define VERBS_BUCKETS 1024u /* of connections by their number */
#define VERBS_READ    (1u << 20)
#define VERBS_CALLERS 256u /* callers that have proved nothing yet, at most */

struct verbs;
struct verbs_conn;

/* How one process is reached. */
struct verbs_path {
	struct verbs_path *next;
	struct verbs_address address;
	net_id_t id;
	uint32_t refs;           /* the machine's */
	bool broken;             /* it is of no use any more, and will not be found */
	bool wanted;             /* somebody sends */
	bool gave_way;           /* our last call was given up for the peer's */
	struct verbs_conn *conn; /* NULL: none */
	uint64_t call_at;        /* not before */
	uint32_t calls;          /* in vain */
};

enum verbs_state {
	VERBS_ADDRESS,  /* its address, */
	VERBS_ROUTE,    /* then the path to it is being looked for */
	VERBS_CALLING,  /* an answer is waited for */
	VERBS_UNPROVEN, /* it called us; what it says first will show who it is */
	VERBS_UP,
	VERBS_LEAVING, /* what is under way may end */
	VERBS_BROKEN,  /* what was under way comes back with errors, and then it goes */
};

/* One work request under way. */
struct verbs_wr {
	void *item; /* NULL: nobody waits for it */
	bool read, busy;
	uint8_t covers; /* quiet ones before it, of which its completion tells */
};

struct verbs_conn {
	struct verbs_conn *next, *next_number;
	struct verbs_path *path; /* NULL: not known, or not its connection any more */
	enum verbs_state state;
	bool gone, told; /* the peer has closed it; the machine knows that it broke */
	bool firm;       /* our call, not given up for the peer's */
	struct rdma_cm_id *cm;
	struct ibv_qp *qp;
	uint32_t slot, serial; /* in v->conn; and the connections are counted as they begin */
	uint32_t posted, done; /* of those that tell us when they are over, */
	uint32_t quiet;        /* and the others that are under way, as far as we know, */
	uint32_t in_row;       /* of which so many were the last */
	uint64_t until;        /* leaving or unproven: how long */
	const char *why;
	struct verbs_wire_call call; /* as it was sent, whoever did */
	struct verbs_call caller;
	uint64_t number; /* the answer's */
	struct verbs_wr wr[VERBS_DEPTH + 1];
};

struct verbs {
	struct rdma rdma; /* first */
	struct ptl_ni *ni;
	/* made by open() */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct verbs_address own;
	uint32_t scope; /* of link-local addresses */
	/* made by join() */
	struct ibv_context *context; /* the listener's */
	uint8_t port;
	bool iwarp;
	int gid; /* where the last connection comes from; -1: there was none that has one */
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	int epoll_fd;
	uint8_t *buffer; /* receive buffers */
	struct ibv_mr *buffer_mr;
	uint32_t buffers;
	uint32_t *spare; /* those to be given to the shared receive queue again */
	uint32_t nspare;
	uint32_t copied, reads;
	struct verbs_key key;
	struct net_ranks ranks;
	bool by_id;
	struct verbs_path *paths;
	struct verbs_conn *conns, *by_number[VERBS_BUCKETS];
	struct verbs_conn **conn; /* by slot */
	uint32_t slots, serial;
	uint32_t calling; /* ways that are wanted and have no connection */
	uint32_t unproven;
	uint32_t busy;        /* work requests under way */
	uint32_t rounds;      /* of poll() without a look at the connection manager */
	bool armed, restless; /* some connection is to be looked at: reap() */
	bool joined, closing;
	bool has_stash;
	struct ibv_wc stash;     /* taken out of the completion queue before its turn */
	struct ibv_send_wr work; /* being posted, */
	struct ibv_sge segment;  /* and its bytes */
	struct verbs_counts {
		uint64_t calls, made, taken, refused, broken, up;
		uint64_t reg_failed;
	} counts;
};

/* ---- verbs_dev.c ----------------------------------------------------------------------------- */

/* A queue pair on the shared queues, whose sends take up to `copied` bytes with them. NULL:
 * errno says why. */
struct ibv_qp *verbs_new_qp(const struct verbs *v, uint32_t copied);

/* The listener, on the address of the interface or of the device of PTL_VERBS_DEVICE; `port` 0:
 * any. NULL, or why not; *taken: the port is another program's. */
const char *verbs_listen(struct verbs *v, uint16_t port, bool *taken);
/* What all connections share. NULL, or why not. */
const char *verbs_prepare(struct verbs *v);
void verbs_limits(const struct verbs *v, uint32_t ranks, struct rdma_limits *l);
void verbs_unprepare(struct verbs *v);
/* NULL, or why no device is of use. */
const char *verbs_no_device(void);
void verbs_list_devices(char *text, size_t len);
/* Why memory could not be registered, said once. */
void verbs_say_locked(size_t len, int err);

/* ---- verbs_path.c ---------------------------------------------------------------------------- */

/* Of struct rdma_link. */
void *verbs_reach(void *link, net_id_t id, const void *address, size_t len);
void verbs_leave(void *link, void *path);

/* The way to an address, broken ones aside. NULL: none. */
struct verbs_path *verbs_path_to(struct verbs *v, const struct verbs_address *address);
/* The same, made if need be; NULL: no memory. */
struct verbs_path *verbs_path_get(struct verbs *v, const struct verbs_address *address,
				  net_id_t id);
/* Its connection is gone: frees it if nobody wants it. */
void verbs_path_drop(struct verbs *v, struct verbs_path *w);
/* The attempt has come to nothing: again later. */
void verbs_path_later(struct verbs *v, struct verbs_path *w, uint32_t ms);
/* Calls whoever is to be called at this time; until when there is nothing more to do. */
uint64_t verbs_path_calls(struct verbs *v, uint64_t now);

/* ---- verbs_conn.c ---------------------------------------------------------------------------- */

/* Calls the process at the end of the way. */
void verbs_call(struct verbs *v, struct verbs_path *w);
/* Looks at what the connection manager and the device say; how much it was. */
unsigned int verbs_events(struct verbs *v);
/* The first packet of a connection whose peer has proved nothing yet. */
void verbs_confirmed(struct verbs *v, struct verbs_conn *c, const void *bytes, size_t len);
/* Of no use any more, from now on. */
void verbs_break(struct verbs *v, struct verbs_conn *c, const char *why);
/* Gets rid of those that are over; only when the completion queue is empty. */
void verbs_reap(struct verbs *v, uint64_t now);
/* At the end. */
void verbs_conn_free(struct verbs *v, struct verbs_conn *c);

/* What a packet of the fabric carries, where it could be `most`, and the setting says `bytes`,
 * if it is not 0. */
static inline enum ibv_mtu verbs_mtu(enum ibv_mtu most, long bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < most && (!bytes || 256l << mtu <= bytes))
		mtu++;
	return mtu;
}

static inline struct verbs_conn *verbs_conn_of(const struct verbs *v, uint32_t qp_number)
{
	struct verbs_conn *c = v->by_number[qp_number % VERBS_BUCKETS];

	while (c && c->qp->qp_num != qp_number)
		c = c->next_number;
	return c;
}

/* ---- verbs_move.c ---------------------------------------------------------------------------- */

/* Of struct rdma_link. */
int verbs_send(void *link, void *path, struct rdma_packet *p);
int verbs_read(void *link, void *path, struct rdma_read *r);
int verbs_reg(void *link, void *base, size_t len, enum rdma_use use, bool quietly,
	      struct rdma_mr *mr);
void verbs_unreg(void *link, struct rdma_mr *mr);
unsigned int verbs_poll(void *link);
bool verbs_arm(void *link, uint64_t *within_ns);

/* Sends a few bytes of our own, inline. False: the connection broke. */
bool verbs_say(struct verbs *v, struct verbs_conn *c, const void *bytes, uint32_t len);
/* Gives receive buffers to the shared queue. */
void verbs_restock(struct verbs *v, uint32_t at_least);
/* To the statistics page. */
void verbs_show_counts(struct verbs *v);
/* Bytes that a connected peer costs us, as far as we can know. */
uint32_t verbs_peer_bytes(const struct verbs *v);

#endif
