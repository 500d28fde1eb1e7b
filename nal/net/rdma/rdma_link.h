/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The contract between the message machine of fabrics with remote memory access (rdma.h) and a
 * *link*: what knows one library or kind of device (nal/ofi, nal/verbs). A link moves packets of
 * bounded length, reliably, and in order where it does not say otherwise, between two processes,
 * and reads a peer's memory where it can. Everything that Portals is about, that peers are who
 * they say, credits, long bodies, silence, is the machine's.
 *
 * All of it runs with the lock of the interface's region held, in the application's threads and
 * in the helper thread: one call at a time. The machine calls the link by struct rdma_link; the
 * link calls back by the functions at the end of this file, from poll() only. The machine may
 * send and read from within them.
 *
 * A *way* is the link's record of how one process is reached: made by reach(), let go of by
 * leave(). A process that has called us is reached by what its greeting says of it; a link that
 * has connections may find that it is the one that greeting came by.
 */
#ifndef RDMA_LINK_H
#define RDMA_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nal/net/carrier.h"

struct rdma;
struct rdma_peer;
struct rdma_body;
struct rdma_kept;

#define RDMA_LINK_WORDS  9u  /* of a packet or read, for the link while it is on its way */
#define RDMA_ADDRESS_MAX 96u /* bytes of a link's own address */

/* Why something that was started did not happen. */
enum rdma_end {
	RDMA_OK = 0,
	RDMA_FAILED, /* this operation, because of what it was given; the way is as it was */
	RDMA_BROKEN, /* the way: the peer is gone, or the fabric between us */
};

/* What a link said of memory when it registered it. `handle` and `local` are the link's own. */
struct rdma_mr {
	void *handle;           /* NULL: not registered */
	void *local;            /* what goes with local buffers, such as a descriptor or lkey */
	uint64_t key;           /* for peers */
	uint64_t addr;          /* as peers name its first byte: its address, or an offset */
	struct rdma_kept *kept; /* the machine's own: it is part of what stays registered */
};

/* A packet on its way out. The machine owns it; bytes and len stay until rdma_sent. */
struct rdma_packet {
	uint8_t *bytes;
	uint32_t len;       /* at most limits.packet */
	struct rdma_mr *mr; /* of the memory `bytes` lies in, if limits.local_mr */
	/* nothing is sent behind it: a link that quits waits for its arrival, unless it
	 * ends_last */
	bool last;
	bool bare; /* its bytes are a message's and nothing else, and */
	uint64_t
		word; /* this goes beside them, the lower 32 bits of it by a link that knows ways */
	uint64_t link_word[RDMA_LINK_WORDS]; /* the link's own, while it is on its way */
	/* the machine's own, from here */
	uint32_t serial; /* of the connection it went by, or was to make */
	struct rdma_peer *peer;
	struct rdma_packet *next, *all;
	bool small; /* its memory is not registered: it goes only to a link that copies it */
};

/* Bytes of a peer's memory to be read into ours. The machine owns it; all stays until
 * rdma_moved. */
struct rdma_read {
	void *to;
	uint64_t len;                        /* at most limits.read */
	struct rdma_mr *mr;                  /* of the memory `to` lies in, if limits.local_mr */
	uint64_t from, key;                  /* as the peer's registration gave them */
	uint64_t link_word[RDMA_LINK_WORDS]; /* the link's own */
	/* the machine's own, from here */
	struct rdma_body *body;
	struct rdma_read *next, *all;
};

/* What registered memory is for. */
enum rdma_use {
	RDMA_LOCAL,  /* packets and landings: the device itself writes and reads it */
	RDMA_REMOTE, /* a body: peers read it */
};

/* What the link can do; fixed when join() gives it to the machine. */
struct rdma_limits {
	uint32_t packet; /* longest packet; RDMA_PACKET_MIN at least */
	/* up to this a send() takes the bytes at once (inject, inline): rdma_sent is not called,
	 * the packet is free when it returns */
	uint32_t copied;
	/* packets with data a peer may send us ahead; 0: the machine's own choice */
	uint32_t credit;
	/* too long for a packet, but up to this (RDMA_PARTS_MOST at most): sooner sent in
	 * several than read */
	uint64_t eager;
	uint64_t read;  /* longest single read; 0: it cannot read, long bodies come in packets */
	uint32_t reads; /* reads in flight for one body, at most; 0: the machine's own choice */
	bool local_mr;  /* local buffers have to be registered */
	/* of a last packet rdma_sent is called, however short it is: all before it are over, too */
	bool ends_last;
	bool any_order; /* of the packets of a peer one may arrive before those sent earlier */
	/* packets may be bare; what is sent for one is cheapest if it is a multiple of this. 0:
	 * none may */
	uint32_t frame;
};

#define RDMA_PACKET_MIN 1024u

struct rdma_link {
	const char *name; /* of the NAL */

	/* A way to process `id`, whose address is what its own own_address() gave, len bytes
	 * that came with its greeting or, with address NULL, what the job told or the id alone
	 * says. Does not wait; the peer need not be there. NULL: this link does not lead there.
	 * Asked a second time for the same process it may give the same way, which is then to be
	 * left twice. */
	void *(*reach)(void *link, net_id_t id, const void *address, size_t len);
	/* Nothing more will be sent there. What is under way ends with rdma_sent and rdma_moved
	 * as ever, and soon: a link that can breaks the connection. The machine waits for reads,
	 * but not for ever. */
	void (*leave)(void *link, void *path);

	/* Our own address for greetings: at most RDMA_ADDRESS_MAX bytes; their number. */
	size_t (*own_address)(void *link, void *to);

	/* Starts to send. 0; -EAGAIN: no room, or the connection is still being made: again
	 * after the next poll; another -errno: the way is broken, as rdma_broken would say. */
	int (*send)(void *link, void *path, struct rdma_packet *p);

	/* Starts to read. As send(). NULL if limits.read is 0. */
	int (*read)(void *link, void *path, struct rdma_read *r);

	/* What the -errno means that send() or read() has just returned. NULL: it is one of
	 * errno(3). */
	const char *(*error)(void *link, int err);

	/* Registers memory; it stays mapped until unregistered. 0, or -errno (-ENOMEM: too much
	 * locked memory); the link has said what to do about it, once, if not `quietly`. NULL if
	 * it can read nothing and local_mr is false. */
	int (*reg)(void *link, void *base, size_t len, enum rdma_use use, bool quietly,
		   struct rdma_mr *mr);
	void (*unreg)(void *link, struct rdma_mr *mr);

	/* Takes in what has arrived and ended, a bounded number; how many there were. Does what
	 * a manual provider wants done. */
	unsigned int (*poll)(void *link);

	/* Before a sleep: when something arrives the descriptor given to rdma_start becomes
	 * readable. False: something is there already, poll again. `*within_ns` is set if it
	 * must be polled earlier in any case. */
	bool (*arm)(void *link, uint64_t *within_ns);

	/* The end: closes what sends and receives, and nothing more is told. True: nothing of
	 * the machine's memory is used any more, and what was registered is unregistered after
	 * that. False: it can be closed only after that, and is called again then. False once
	 * more: it cannot, and the packets and reads it was given are left to it for good. */
	bool (*quit)(void *link);
};

/* ---- the link calls -------------------------------------------------------------------------- */

/* A packet has arrived. The bytes are good until it returns. `way`: which way, if the link
 * knows, or NULL. */
void rdma_arrived(struct rdma *d, void *path, const void *bytes, size_t len);

/* The same of a bare one. */
void rdma_arrived_headerless(struct rdma *d, void *path, uint64_t word, const void *bytes,
			     size_t len);

/* A packet's bytes are no longer needed. For RDMA_BROKEN `why` says what the library or device
 * said. */
void rdma_sent(struct rdma *d, struct rdma_packet *p, enum rdma_end end, const char *why);

/* A read is over. */
void rdma_moved(struct rdma *d, struct rdma_read *r, enum rdma_end end, const char *why);

/* A way broke while nothing was under way on it. Of what was, rdma_sent and rdma_moved still
 * tell. */
void rdma_broken(struct rdma *d, void *path, const char *why);

#endif
