/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The message protocols, after "Design, Implementation, and Performance of MPI on Portals 3.0"
 * (sections 3 and 5), shared by the files that carry them out.
 *
 *   RECV portal   posted receives, in order; then one entry that takes the headers of long
 *                 messages (length 0, truncating); then the blocks that short messages fall
 *                 into.
 *   READ portal   the buffer of each long send, under a number of its own.
 *   CREDIT portal what receivers give back: an empty put, the counters in its header data.
 *   FLAG portal   words of a communicator's hub (shmcoll.h); which ranks have died, as others know
 *                 (peers.c); in which calls ranks wait for this one (calls.c).
 *   CANCEL portal long messages that their senders withdraw (cancel.c).
 *
 *   short    one put; the bytes go to the posted receive or into a block.
 *   long     one put of everything, the buffer exposed on READ. A posted receive takes it and
 *            acknowledges that; otherwise nothing is taken but the header, nothing is
 *            acknowledged, and the receiver gets the data when it has a use for it. So a long
 *            send ends with its acknowledgement or with a get. Synchronous sends are long ones
 *            of any length.
 *
 * Receives of short messages are not posted at all: they wait in a list of this library
 * (posted.c). A message that comes while we are in Portals is offered to us before it falls into
 * a block, and goes straight to the receive that waits for it (unexpected.c); short messages are
 * sent lazily, for nobody can do anything with them before the receiver's next call. Any other
 * is posted by PtlMEMDPost with the queue of unexpected messages as its condition, so that a
 * message that arrives meanwhile is looked at first.
 *
 * Nothing is ever lost, because each sender has, at each receiver, a share of the blocks' bytes
 * and of the event queue's slots, and spends them message by message: without bytes a message
 * goes the long way, without a slot it waits in the sender. The receiver counts what it has
 * taken out of the queue and what it has room for again and, at half a share, tells. Two of the
 * three blocks always have room for all shares: a full one is emptied (moved to memory of their
 * own, what nobody has received yet) before it handles any event, and so gives any credit, of
 * what comes after it.
 *
 * So a message needs its bytes of the blocks only until its event is handled, and they are given
 * back then, however long it waits for its receive: many that wait do not make those slow that
 * come after them. What bounds the memory is a limit on all that waits (PTL_MPI_KEEP_KIB).
 * Beyond it a message's bytes are given back when it is received, or when there is less than the
 * limit again: no more can come then than all shares, and who has used up its own goes the long
 * way.
 */
#ifndef MPI_SHIM_PROTOCOL_H
#define MPI_SHIM_PROTOCOL_H

#include <mpi.h>
#include <portals3_ext.h>

#include "mpi_shim/core/object.h"
#include "mpi_shim/core/progress.h"
#include "mpi_shim/core/request.h"
#include "mpi_shim/core/world.h"

/* Blocks for short unexpected messages; all but one of them are given out as credit. */
#define MPI_BLOCKS 3

/* Match bits of CREDIT: the rank that gives it, and whether it is for withdrawals. */
#define MPI_CREDIT_CANCELS (UINT64_C(1) << 32)

/* Match bits of FLAG: a byte for each rank of MPI_COMM_WORLD, of those that have died not 0. */
#define MPI_DEATH_BITS UINT64_MAX

/* Match bits of FLAG: what ranks that wait for this one have called (calls.c). */
#define MPI_CALLS_BITS (UINT64_MAX - 1)

/* An empty put to CREDIT that only ends a wait; whose bits are those of no rank. */
#define MPI_SHMCOLL_WAKE_BITS (UINT64_MAX - 1)

/* Match bits: protocol (3) | context (13) | source's rank in the communicator (16) | tag (32).
 * In the protocol of a message of a collective that is empty because its sender has no memory,
 * or lacks what it depends on: MPI_BITS_NO_MEMORY. */
enum mpi_protocol { MPI_PROTO_SHORT = 1, MPI_PROTO_LONG = 2 };

#define MPI_BITS_PROTO     (7ull << 61)
#define MPI_BITS_NO_MEMORY (1ull << 63)
#define MPI_BITS_CTX       (0x1fffull << 48)
#define MPI_BITS_SOURCE    (0xffffull << 32)
#define MPI_BITS_TAG       0xffffffffull

/* Of the context, the last 13 bits. */
static inline uint64_t mpi_bits(enum mpi_protocol proto, uint64_t context, int source, int tag)
{
	/* in halves: an argument of 32 bits that was put on the stack would be read with 64, and
	 * wait for all stores before it, those to other processes' memory included */
	uint32_t high =
		(uint32_t)proto << 29 | ((uint32_t)context & 0x1fff) << 16 | (uint16_t)source;

	return (uint64_t)high << 32 | (uint32_t)tag;
}

/* What a receive may leave open besides the protocol; bit 0 of the index: the source, bit 1: the
 * tag. */
#define MPI_OPEN_KINDS 4
static const uint64_t mpi_open_bits[MPI_OPEN_KINDS] = {
	MPI_BITS_PROTO,
	MPI_BITS_PROTO | MPI_BITS_SOURCE,
	MPI_BITS_PROTO | MPI_BITS_TAG,
	MPI_BITS_PROTO | MPI_BITS_SOURCE | MPI_BITS_TAG,
};

static inline uint32_t mpi_bits_hash(uint64_t bits)
{
	uint64_t h = bits * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 32);
}

/* An index of mpi_open_bits. */
static inline unsigned int mpi_open_of(int source, int tag)
{
	return (source == MPI_ANY_SOURCE) | (unsigned int)(tag == MPI_ANY_TAG) << 1;
}

static inline int mpi_bits_source(uint64_t bits)
{
	return (int)(bits >> 32 & 0xffff);
}

static inline int mpi_bits_tag(uint64_t bits)
{
	return (int)(uint32_t)bits;
}

static inline bool mpi_bits_long(uint64_t bits)
{
	return bits >> 61 & MPI_PROTO_LONG;
}

/* Header data: the sender's world rank (16 bits); of a collective's message its mark (12 bits,
 * calls.h); and a number (36 bits): of a long message that on READ, of a short one of a collective
 * the rest of the mark. `context` has the mark above the context. */
#define MPI_HDR_NUMBERS ((UINT64_C(1) << 36) - 1)

static inline uint64_t mpi_hdr(uint64_t number, uint64_t context)
{
	return number << 28 | (context & MPI_MARK_HEADER) | (uint64_t)mpi_world.rank;
}

static inline int mpi_hdr_rank(uint64_t hdr)
{
	return (int)(hdr & 0xffff);
}

static inline uint64_t mpi_hdr_number(uint64_t hdr)
{
	return hdr >> 28;
}

/* Whether a message, if it has a mark at all, has another one than `mark`. */
static inline bool mpi_mark_differs(uint64_t mark, uint64_t hdr, bool is_long)
{
	if (!(hdr & MPI_MARK_HEADER))
		return false;
	return ((hdr ^ mark) & MPI_MARK_HEADER) ||
	       (!is_long && (uint32_t)mpi_hdr_number(hdr) != (uint32_t)(mark >> 32));
}

/* What this process knows of another: as a receiver of ours and as a sender to us. Counters
 * wrap. */
struct mpi_peer {
	uint32_t sent_bytes, sent_slots;             /* spent */
	uint32_t returned_bytes, returned_slots;     /* given back, as last told */
	uint32_t consumed_bytes, consumed_slots;     /* of its messages: taken out */
	uint32_t advertised_bytes, advertised_slots; /* ... and told */
	uint32_t late_bytes;                /* of its messages: seen, and not given back yet */
	uint32_t cancels, returned_cancels; /* of messages to it: made, and given back */
	uint32_t consumed_cancels, advertised_cancels; /* ... of its messages */
	struct mpi_request *queue, *queue_end;         /* sends that wait, in order */
	struct mpi_peer *next_owed;                    /* of those to be told */
	bool owed;                                     /* is on that list */
	bool dead;    /* its process has ended, or it cannot be reached */
	bool asked;   /* something waits for it: see whether it lives */
	bool greeted; /* it has been sent something, for nothing else has come about */
	uint8_t told; /* of the ranks that are to hear of its death, so many have */
};

/* A message nobody has asked for yet. */
struct mpi_unexpected {
	struct mpi_link {
		struct mpi_unexpected *next, *prev;
	} link[MPI_OPEN_KINDS]; /* by key, see unexpected.c */
	union {
		struct mpi_link of_block; /* those in the same block */
		char few[16];             /* or data of so few bytes, that is not left there */
		ptl_handle_me_t claim;    /* long, and taken: see cancel.c */
	};
	uint64_t bits, hdr;
	ptl_process_id_t from;
	MPI_Count bytes;         /* of the message */
	void *data;              /* short: in a block, in `few`, or malloc'd */
	struct mpi_block *block; /* NULL: data is not in one */
};

struct mpi_protocol_state {
	struct mpi_peer *peer; /* by world rank */
	uint32_t share_bytes, share_slots, share_cancels;
	size_t short_most;          /* longest message of the short protocol */
	MPI_Count local_most;       /* longest receive that is not posted to Portals */
	ptl_handle_eq_t unexpected; /* events of unexpected messages and of credit */
	ptl_handle_me_t long_me;    /* posted receives go before it */
	bool any_dead;              /* of the peers */
	bool ending;                /* MPI_Finalize: ranks that are gone have ended */
	uint64_t next_number;       /* of long messages */
};

extern struct mpi_protocol_state mpi_proto;

/* What messages want of progress. */
extern const struct mpi_progress_hooks mpi_message_hooks;

void mpi_messages_init(void); /* probe.c */

/* Takes everything out of the queue of unexpected messages. Returns whether there was anything. */
static inline bool mpi_drain_unexpected(void)
{
	return mpi_progress_drain(&mpi_proto.unexpected);
}

/* ---- unexpected.c ---------------------------------------------------------------------------- */

size_t mpi_pool_bytes(void); /* of all blocks */
int mpi_unexpected_init(void);
void mpi_unexpected_fini(void);

/* What comes while we are in Portals, before an event tells of it, and is no short message. */
enum mpi_arrival {
	MPI_ARRIVAL_ANSWER, /* to what this process has sent */
	MPI_ARRIVAL_FLAG,   /* a put to FLAG */
	MPI_ARRIVALS
};
/* Once, before any can come. */
void mpi_arrivals_go_to(enum mpi_arrival kind, ptl_inline_handler_t inline_handler);

/* The first message of these bits, what `open` names left open; it stays. NULL: none. */
struct mpi_unexpected *mpi_unexpected_find(uint64_t bits, unsigned int open);
/* Takes it off the list; it is the caller's until mpi_unexpected_free, which gives its bytes
 * back. *u is NULL when its sender has withdrawn it: look again. MPI_SUCCESS, or an error that
 * leaves it where it is. */
int mpi_unexpected_take(struct mpi_unexpected **u);
void mpi_unexpected_free(struct mpi_unexpected *u);
/* A message with these words is on the list no more. False: it was not there. */
bool mpi_unexpected_cancel(uint64_t bits, uint64_t hdr, ptl_process_id_t from);

/* ---- cancel.c ------------------------------------------------------------------------------ */

int mpi_cancel_init(void);
void mpi_cancel_fini(void);

/* From now on its sender cannot withdraw this long message: u->claim, which is unlinked when the
 * message is here. PTL_MD_NO_UPDATE: messages have been withdrawn, maybe this one;
 * mpi_cancel_drain. Or another error. */
int mpi_cancel_claim(struct mpi_unexpected *u);

/* Messages withdrawn so far go off the list. Returns whether there were any. */
bool mpi_cancel_drain(void);

/* Was it withdrawn before it was seen? Says so once. */
bool mpi_cancel_early(const struct mpi_unexpected *u);

/* Now and then, with no event in hand: takes in what nobody has looked for. */
void mpi_cancel_look(void);

/* ---- posted.c -------------------------------------------------------------------------------- */

int mpi_posted_init(void);
void mpi_posted_fini(void);

/* Receives waiting in this library, with their r->bits and r->open; in the order they were
 * posted. */
void mpi_posted_add(struct mpi_request *r);
void mpi_posted_remove(struct mpi_request *r);
struct mpi_request *mpi_posted_first(void);
/* The first posted of those that match a message; take: it waits no longer. NULL: none. */
struct mpi_request *mpi_posted_find(uint64_t bits);
struct mpi_request *mpi_posted_take(uint64_t bits);

/* ---- send.c, recv.c -------------------------------------------------------------------------- */

/* What a short message of this length costs of the bytes: the memory it takes while it waits,
 * its place in the list (an entry, and its part of the tables) included. */
static inline uint32_t mpi_credit_cost(uint64_t bytes)
{
	return (uint32_t)bytes + 256;
}

/* Messages of a world rank were taken out of the queue; there is room for so many bytes of its
 * again. */
void mpi_credit_consumed(int rank, uint32_t bytes, uint32_t slots);
/* Gives credit to those for whom it is time. */
void mpi_credit_tell(void);
/* Credit came back. */
void mpi_credit_event(const ptl_event_t *ev);
/* Sends that wait at this peer, for slots or for memory, go: whether any did. Sends to it that
 * were cancelled are withdrawn. */
bool mpi_send_flush(int rank);
void mpi_send_cancel_due(int rank);

/* ---- peers.c ------------------------------------------------------------------------------- */

/* Looks after the processes that something waits for; what has waited for one that was found dead
 * before, ends in an error; what waits for memory is tried again. Slow; looks at all requests. */
void mpi_peers_check(void);
/* The rank in the communicator of which nothing will come, or -1. From anybody: one that is
 * dead, for it may have been the one. */
int mpi_lost_source(const struct mpi_comm *comm, int source);
/* A rank of the communicator's (remote) group that is known to have died, or -1. It does not
 * have processes looked after that this one has had nothing to do with so far. */
int mpi_lost_any(const struct mpi_comm *comm);
/* World rank of one of either group that is known to have died, or -1. */
int mpi_lost_member(const struct mpi_comm *comm);
/*
 * What higher rooms want of each check, once, at start. `check` has the peers looked after that
 * something waits for which is no request, and ends what waits for dead ones. `hopeless` says of a
 * message of a collective (r->whole) whose peer lives: MPI_SUCCESS, or why it is in vain all the
 * same (MPI_ERR_*, kept text).
 */
void mpi_peers_check_also(void (*check)(void));
void mpi_peers_ask_of_whole(int (*hopeless)(const struct mpi_request *r));
/* What is known of a world rank that is lost: "its process has ended", or why it cannot be reached.
 * `fail`: of the operation that failed, or PTL_NI_OK. In memory of this function's, until its next
 * call. */
const char *mpi_lost_text(int world, ptl_ni_fail_t fail);
/* Keeps that this world rank is lost: MPI_ERR_PROC_ABORTED. */
int mpi_unreachable(int world);
int mpi_peers_init(void);
void mpi_peers_fini(void);

#endif
