/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The contract between the message machine of fabrics with remote memory access (rdma.h) and a
 * *link*. A link knows one library or kind of device (nal/ofi, nal/verbs). It moves packets of
 * bounded length between two processes, reliably, and in order unless it says otherwise. It
 * reads a peer's memory where it can. Everything else is the machine's: proof of identity,
 * credits, long bodies, silence.
 *
 * All of it runs with the lock of the interface's region held, in the application's threads and
 * in the helper thread: one call at a time. The machine calls the link through struct
 * rdma_link. The link calls back with the functions at the end of this file, only from poll().
 * The machine may send and read inside these callbacks.
 *
 * A *path* is the link's record of how one process is reached: reach() makes it, leave()
 * releases it. A process that has called us is reached by the address in its greeting. A link
 * that has connections may find that this path is the one the greeting came by.
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

#define RDMA_LINK_WORDS  9u  /* of a packet or read, for the link's use while it is under way */
#define RDMA_ADDRESS_MAX 96u /* bytes of a link's own address */

/* Why an operation that was started did not happen. */
enum rdma_end {
	RDMA_OK = 0,
	RDMA_FAILED, /* this operation, because of its arguments; the path still works */
	RDMA_BROKEN, /* the path: the peer is gone, or the fabric between us */
};

/* The result of a registration. `handle` and `local` are the link's own. */
struct rdma_mr {
	void *handle;           /* NULL: not registered */
	void *local;            /* goes with local buffers: a descriptor or lkey, for example */
	uint64_t key;           /* for peers */
	uint64_t addr;          /* its first byte as peers name it: an address or an offset */
	struct rdma_kept *kept; /* the machine's own: it is part of a kept registration */
};

/* An outgoing packet. The machine owns it; bytes and len do not change until rdma_sent. */
struct rdma_packet {
	uint8_t *bytes;
	uint32_t len;       /* at most limits.packet */
	struct rdma_mr *mr; /* of the memory `bytes` lies in, if limits.local_mr */
	/* Nothing is sent behind it. A link that quits waits for its arrival, unless ends_last
	 * is set. */
	bool last;
	bool headerless; /* headerless: its bytes are a message's and nothing else */
	/* Goes beside a headerless packet. A link that knows paths sends only the lower 32 bits. */
	uint64_t word;
	uint64_t link_word[RDMA_LINK_WORDS]; /* the link's own, while it is under way */
	/* the machine's own, from here */
	uint32_t serial; /* of the connection it went by, or was to make */
	struct rdma_peer *peer;
	struct rdma_packet *next, *all;
	bool small; /* its memory is not registered: only a link that copies it gets it */
};

/* Bytes of a peer's memory to read into ours. The machine owns it; nothing changes until
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

/* The use of registered memory. */
enum rdma_use {
	RDMA_LOCAL,  /* packets and destinations of reads: the device itself writes and reads it */
	RDMA_REMOTE, /* a body: peers read it */
};

/* The abilities of the link; fixed when join() gives it to the machine. */
struct rdma_limits {
	uint32_t packet; /* longest packet; RDMA_PACKET_MIN at least */
	/* Up to this length send() takes the bytes at once (inject, inline): the packet is free
	 * when it returns, and rdma_sent is not called. */
	uint32_t copied;
	/* Packets with data that a peer may send us ahead; 0: the machine's own choice. */
	uint32_t credit;
	/* A body that is too long for a packet, but not longer than this, is sent in several
	 * packets. It is RDMA_PARTS_MOST at most. */
	uint64_t eager;
	uint64_t read;  /* longest single read; 0: it cannot read, long bodies come in packets */
	uint32_t reads; /* most reads in flight for one body; 0: the machine's own choice */
	bool local_mr;  /* local buffers have to be registered */
	/* rdma_sent is called for a last packet, however short it is. All packets before it are
	 * over then, too. */
	bool ends_last;
	bool any_order; /* a peer's packets may overtake each other */
	/* Packets may be headerless, and are cheapest if their length is a multiple of this. 0:
	 * none may. */
	uint32_t frame;
};

#define RDMA_PACKET_MIN 1024u

struct rdma_link {
	const char *name; /* of the NAL */

	/* Make a path to process `id`. `address` is what the process's own own_address() gave:
	 * len bytes that came with its greeting. With NULL, the job's information or the id
	 * alone gives the address. Does not block; the peer need not be there. NULL: this link
	 * does not lead there. A second call for the same process may return the same path,
	 * which must then be left twice. */
	void *(*reach)(void *link, net_id_t id, const void *address, size_t len);
	/* Release a path: nothing more will be sent there. Operations under way still end with
	 * rdma_sent and rdma_moved, and soon: a link that can breaks the connection. The
	 * machine waits for reads, but for a bounded time. */
	void (*leave)(void *link, void *path);

	/* Write our own address for greetings, at most RDMA_ADDRESS_MAX bytes. Returns their
	 * number. */
	size_t (*own_address)(void *link, void *to);

	/* Start to send. Returns 0. -EAGAIN: no room, or the connection is still being made;
	 * try again after the next poll. Another -errno: the path failed, as rdma_broken would
	 * report. */
	int (*send)(void *link, void *path, struct rdma_packet *p);

	/* Start to read; returns as send(). NULL if limits.read is 0. */
	int (*read)(void *link, void *path, struct rdma_read *r);

	/* The text of the -errno that send() or read() has just returned. NULL: it is one of
	 * errno(3). */
	const char *(*error)(void *link, int err);

	/* Register memory, which stays mapped until it is unregistered. Returns 0 or -errno;
	 * -ENOMEM: too much locked memory. On failure the link has printed a remedy once,
	 * unless `quietly`. NULL if the link cannot read and local_mr is false. */
	int (*reg)(void *link, void *base, size_t len, enum rdma_use use, bool quietly,
		   struct rdma_mr *mr);
	void (*unreg)(void *link, struct rdma_mr *mr);

	/* Process a bounded number of arrivals and completions, and return their number. Drives
	 * the progress of a provider with manual progress. */
	unsigned int (*poll)(void *link);

	/* Called before a sleep. The descriptor given to rdma_start becomes readable when
	 * something arrives. False: something is there already; poll again. Sets `*within_ns`
	 * if the link must be polled earlier in any case. */
	bool (*arm)(void *link, uint64_t *within_ns);

	/* Close everything that sends and receives. No callbacks follow. True: the link uses
	 * none of the machine's memory any more; the machine unregisters it after that. False:
	 * it can close only after memory was unregistered, and is called again then. False
	 * again: it cannot close. The packets and reads it has are left to it for good. */
	bool (*quit)(void *link);
};

/* ---- the link calls -------------------------------------------------------------------------- */

/* A packet has arrived. The bytes are valid until the function returns. `path`: the packet's
 * path, or NULL if the link does not know it. */
void rdma_arrived(struct rdma *d, void *path, const void *bytes, size_t len);

/* The same for a headerless packet and the word beside it. */
void rdma_arrived_headerless(struct rdma *d, void *path, uint64_t word, const void *bytes,
			     size_t len);

/* A packet's bytes are no longer needed. For RDMA_BROKEN, `why` is what the library or device
 * said. */
void rdma_sent(struct rdma *d, struct rdma_packet *p, enum rdma_end end, const char *why);

/* A read is over. */
void rdma_moved(struct rdma *d, struct rdma_read *r, enum rdma_end end, const char *why);

/* A path failed without an operation under way. Operations that were under way still end with
 * rdma_sent and rdma_moved. */
void rdma_broken(struct rdma *d, void *path, const char *why);

#endif
