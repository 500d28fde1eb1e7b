/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The verbs link: InfiniBand, RoCE and iWARP through libibverbs, for the machine in
 * nal/net/rdma. Processes are connected when they first talk. The RDMA connection manager
 * connects them, and handles all three kinds of device.
 *
 *   verbs.c        the operations of the NAL: opening, cards, closing
 *   verbs_dev.c    which device and port; what all connections share: completion queue, receive
 *                  buffers
 *   verbs_path.c   paths to processes, and calling them again
 *   verbs_conn.c   connections: making them, proving who is there, breaking them
 *   verbs_move.c   packets, reads and completions; registration
 *   verbs_wire.c   decoders; verbs_proof.c  tags
 *
 * Each peer costs a connection: its work queue of VERBS_DEPTH entries, and struct verbs_conn.
 * All connections share the receive buffers, in one shared receive queue, and the completion
 * queue. The machine limits how far ahead a peer may be (credits). If all are ahead at the same
 * time, the device tells a sender that there is no buffer, and the sender's device tries again.
 *
 * A packet reaches the machine only when its sender has proved that it has the job's secret.
 * Credits, long messages and silence are the machine's. All of it runs with the lock of the
 * interface's region held.
 */
#ifndef VERBS_H
#define VERBS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "nal/net/rdma/rdma.h"
#include "nal/verbs/verbs_wire.h"

/* Work requests of a connection. With one more for the device they are a power of two. */
#define VERBS_DEPTH    15u
#define VERBS_INLINE   208u  /* bytes that fit into one; requested */
#define VERBS_PACKET   8448u /* longest packet, and length of a receive buffer */
#define VERBS_BUSY_ALL 2048u /* work requests of all connections that fit in the completion queue */
#define VERBS_QUIET    7u    /* sends in a row without a completion */
#define VERBS_BUCKETS  1024u /* of connections by their number */
#define VERBS_READ     (1u << 20)
#define VERBS_CALLERS  256u /* most callers that have proved nothing yet */

struct verbs;
struct verbs_conn;

/* How one process is reached. */
struct verbs_path {
	struct verbs_path *next;
	struct verbs_address address;
	net_id_t id;
	uint32_t refs;           /* the machine's */
	bool broken;             /* it is of no use any more, and will not be found */
	bool wanted;             /* something is to be sent */
	bool gave_way;           /* our last call was given up for the peer's */
	struct verbs_conn *conn; /* NULL: none */
	uint64_t call_at;        /* not before */
	uint32_t calls;          /* failed ones */
};

enum verbs_state {
	VERBS_ADDRESS,  /* its address is being resolved */
	VERBS_ROUTE,    /* the route to it is being resolved */
	VERBS_CALLING,  /* waiting for an answer */
	VERBS_UNPROVEN, /* it called us; its first packet will prove who it is */
	VERBS_UP,
	VERBS_LEAVING, /* operations under way may end */
	VERBS_BROKEN,  /* operations under way come back with errors; then it is freed */
};

/* One work request under way. */
struct verbs_wr {
	void *item; /* NULL: nobody waits for it */
	bool read, busy;
	uint8_t covers; /* sends without a completion before it, which its completion covers */
};

struct verbs_conn {
	struct verbs_conn *next, *next_number;
	struct verbs_path *path; /* NULL: not known, or not its connection any more */
	enum verbs_state state;
	bool gone, reported; /* the peer has closed it; the machine knows that it failed */
	bool firm;           /* our call, not given up for the peer's */
	struct rdma_cm_id *cm;
	struct ibv_qp *qp;
	uint32_t slot, serial; /* index in v->conn; a count of connections as they begin */
	uint32_t posted, done; /* work requests that get a completion */
	uint32_t quiet;        /* others under way, as far as we know */
	uint32_t in_row;       /* of these: posted since the last one with a completion */
	uint64_t until;        /* when leaving or unproven: how long */
	const char *why;
	struct verbs_wire_call call; /* as it was sent, by either side */
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
	int gid; /* GID index of the last connection; -1: none had one */
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
	uint32_t calling; /* wanted paths without a connection */
	uint32_t unproven;
	uint32_t busy;        /* work requests under way */
	uint32_t rounds;      /* of poll() since the connection manager was polled */
	bool armed, restless; /* restless: reap() must check some connection */
	bool joined, closing;
	bool has_stash;
	struct ibv_wc stash;     /* taken from the completion queue before its turn */
	struct ibv_send_wr work; /* being posted */
	struct ibv_sge segment;  /* its bytes */
	struct verbs_counts {
		uint64_t calls, made, taken, refused, broken, up;
		uint64_t reg_failed;
	} counts;
};

/* ---- verbs_dev.c ----------------------------------------------------------------------------- */

/* Make a queue pair on the shared queues, whose sends can carry up to `copied` inline bytes.
 * NULL: errno says why. */
struct ibv_qp *verbs_new_qp(const struct verbs *v, uint32_t copied);

/* Make the listener, on the address of the interface or of the device of PTL_VERBS_DEVICE.
 * `port` 0: any port. Returns NULL, or the reason of the failure; *taken: another program has
 * the port. */
const char *verbs_listen(struct verbs *v, uint16_t port, bool *taken);
/* Make what all connections share. Returns NULL, or the reason of the failure. */
const char *verbs_prepare(struct verbs *v);
/* Fill in the limits of the link, for a job of `ranks` ranks; 0: not known. */
void verbs_limits(const struct verbs *v, uint32_t ranks, struct rdma_limits *l);
/* Undo verbs_prepare() and verbs_listen(), as far as they got. */
void verbs_unprepare(struct verbs *v);
/* Returns NULL, or the reason why no device can be used. */
const char *verbs_no_device(void);
/* Write the devices that libibverbs knows, as text. */
void verbs_list_devices(char *text, size_t len);
/* Warn why memory could not be registered, once. */
void verbs_say_locked(size_t len, int err);

/* ---- verbs_path.c ---------------------------------------------------------------------------- */

/* Of struct rdma_link. */
void *verbs_reach(void *link, net_id_t id, const void *address, size_t len);
void verbs_leave(void *link, void *path);

/* Find the path to an address, except broken ones. NULL: none. */
struct verbs_path *verbs_path_to(struct verbs *v, const struct verbs_address *address);
/* The same, but make it if there is none. NULL: out of memory. */
struct verbs_path *verbs_path_get(struct verbs *v, const struct verbs_address *address,
				  net_id_t id);
/* A path's connection is gone: free the path if nobody uses it. */
void verbs_path_drop(struct verbs *v, struct verbs_path *w);
/* The attempt failed: try again later. */
void verbs_path_later(struct verbs *v, struct verbs_path *w, uint32_t ms);
/* Call every process that is due at this time. Returns when the next call is due. */
uint64_t verbs_path_calls(struct verbs *v, uint64_t now);

/* ---- verbs_conn.c ---------------------------------------------------------------------------- */

/* Call the process at the end of the path. */
void verbs_call(struct verbs *v, struct verbs_path *w);
/* Handle events of the connection manager and the device. Returns how many there were. */
unsigned int verbs_events(struct verbs *v);
/* Handle the first packet of a connection whose peer has proved nothing yet. */
void verbs_confirmed(struct verbs *v, struct verbs_conn *c, const void *bytes, size_t len);
/* Mark a connection as failed: it is of no use from now on. */
void verbs_break(struct verbs *v, struct verbs_conn *c, const char *why);
/* Free the connections that are over; only when the completion queue is empty. */
void verbs_reap(struct verbs *v, uint64_t now);
/* Called at the end. */
void verbs_conn_free(struct verbs *v, struct verbs_conn *c);

/* The MTU of the fabric: at most `most`, and at most `bytes` if this setting is not 0. */
static inline enum ibv_mtu verbs_mtu(enum ibv_mtu most, long bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < most && (!bytes || 256l << mtu <= bytes))
		mtu++;
	return mtu;
}

/* The connection of a queue pair; NULL: none. */
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

/* Send a few bytes of our own, inline. False: the connection failed. */
bool verbs_say(struct verbs *v, struct verbs_conn *c, const void *bytes, uint32_t len);
/* Give receive buffers to the shared queue, if there are `at_least` spare ones. */
void verbs_restock(struct verbs *v, uint32_t at_least);
/* Copy the counts to the statistics page. */
void verbs_show_counts(struct verbs *v);
/* The bytes that a connected peer costs us, as far as we can know. */
uint32_t verbs_peer_bytes(const struct verbs *v);

#endif
