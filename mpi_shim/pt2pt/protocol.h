/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The message protocols, after "Design, Implementation, and Performance of MPI on Portals 3.0"
 * (sections 3 and 5). This header is shared by the files that implement them; the rest of the
 * shim uses p2p.h.
 *
 *   RECV portal   posted receives, in order; then one entry that takes the headers of long
 *                 messages (length 0, truncating); then the blocks that short messages go
 *                 into.
 *   READ portal   the buffer of each long send, under a number of its own.
 *   CREDIT portal the credit that receivers return: an empty put with the counters in its
 *                 header data.
 *   FLAG portal   flags of a communicator's shared-memory collective area (shmcoll.h); the ranks
 *                 that have failed, as others report them (peers.c); the calls in which ranks
 *                 wait for this one (calls.c).
 *   CANCEL portal requests of senders to cancel their long messages (cancel.c).
 *
 *   short    one put; the bytes go to the posted receive or into a block.
 *   long     one put of all bytes, with the buffer exposed on READ. A posted receive takes the
 *            bytes and acknowledges them. Without one only the header is taken and nothing is
 *            acknowledged; the receiver gets the data when it has a use for it. So a long send
 *            ends with its acknowledgement or with a get. Synchronous sends are long ones of
 *            any length.
 *
 * Receives of short messages are not posted to Portals at all: they wait in a list of this
 * library (posted.c). A short message that arrives while the process is in Portals goes to the
 * inline handler before it is stored in a block. The handler puts it straight into the receive
 * that waits for it (unexpected.c). Short messages are sent lazily, since nothing can use them
 * before the receiver's next call. Any other receive is posted by PtlMEMDPost, with the queue
 * of unexpected messages as its condition. So a message that arrives meanwhile is handled
 * first.
 *
 * No message is ever dropped. At each receiver, each sender has a share of the blocks' bytes
 * and of the event queue's slots, and spends them message by message. Without bytes a message
 * takes the long protocol; without a slot it waits in the sender. The receiver counts the
 * events it has consumed and the bytes it has room for again, and advertises both at half a
 * share. Two of the three blocks always have room for all shares. This holds because the
 * receiver empties a full block before it handles any later event, and so before it returns
 * credit for later messages. Messages not received yet move to memory of their own.
 *
 * So a message needs its bytes of the blocks only until its event is handled. They are returned
 * then, however long the message waits for its receive. So many waiting messages do not slow
 * later ones. A limit on all waiting messages bounds the memory (PTL_MPI_KEEP_KIB). Beyond it,
 * a message's bytes are returned when it is received, or when the total is below the limit
 * again. No more than all shares can come then; a sender that has spent its share uses the long
 * protocol.
 *
 * All functions need the global lock.
 */
#ifndef MPI_SHIM_PROTOCOL_H
#define MPI_SHIM_PROTOCOL_H

#include <mpi.h>
#include <portals3_ext.h>

#include "mpi_shim/core/object.h"
#include "mpi_shim/core/process.h"
#include "mpi_shim/core/progress.h"
#include "mpi_shim/core/request.h"
#include "mpi_shim/core/world.h"

/* Blocks for short unexpected messages. All but one of them are given out as credit. */
#define MPI_BLOCKS 3

/* Match bits of CREDIT: the rank that returns it, and whether it is credit for cancel requests. */
#define MPI_CREDIT_CANCELS (UINT64_C(1) << 32)

/* Match bits of FLAG: one byte for each rank of MPI_COMM_WORLD, not 0 if the rank has failed. */
#define MPI_DEATH_BITS UINT64_MAX

/* Match bits of FLAG: the calls of ranks that wait for this one (calls.c). */
#define MPI_CALLS_BITS (UINT64_MAX - 1)

/* Match bits of an empty put to CREDIT that only ends a wait; they are those of no rank. */
#define MPI_SHMCOLL_WAKE_BITS (UINT64_MAX - 1)

/* Match bits of an empty put to CREDIT: a process of another job needs this one no more. */
#define MPI_LEAVE_BITS (UINT64_MAX - 2)

/* Match bits: protocol (3) | context (13) | source's rank in the communicator (16) | tag (32).
 * MPI_BITS_NO_MEMORY, in the protocol, marks an empty message of a collective: its sender is
 * out of memory, or did not get the data it depends on. */
enum mpi_protocol { MPI_PROTO_SHORT = 1, MPI_PROTO_LONG = 2 };

#define MPI_BITS_PROTO     (7ull << 61)
#define MPI_BITS_NO_MEMORY (1ull << 63)
#define MPI_BITS_CTX       (0x1fffull << 48)
#define MPI_BITS_SOURCE    (0xffffull << 32)
#define MPI_BITS_TAG       0xffffffffull

/* Uses the low 13 bits of the context. */
static inline uint64_t mpi_bits(enum mpi_protocol proto, uint64_t context, int source, int tag)
{
	/* In halves: a 32-bit argument on the stack would be read with 64 bits. That read would
	 * wait for all earlier stores, including those to other processes' memory. */
	uint32_t high =
		(uint32_t)proto << 29 | ((uint32_t)context & 0x1fff) << 16 | (uint16_t)source;

	return (uint64_t)high << 32 | (uint32_t)tag;
}

/* The fields that a receive may leave open, besides the protocol. Bit 0 of the index: the
 * source; bit 1: the tag. */
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

/* Returns an index of mpi_open_bits. */
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

/* Header data: the sender's world rank (16 bits; MPI_PROCESS_OTHER: it is of another job), a
 * collective's mark (12 bits, calls.h), and a number (36 bits). For a long message the number is
 * that on READ, for a short one of a collective the rest of the mark. `context` has the mark above
 * the context. */
#define MPI_HDR_NUMBERS ((UINT64_C(1) << 36) - 1)

static inline uint64_t mpi_hdr(uint64_t number, uint64_t context, int to)
{
	return number << 28 | (context & MPI_MARK_HEADER) | (uint64_t)mpi_own_number_at(to);
}

static inline int mpi_hdr_rank(uint64_t hdr)
{
	return (int)(hdr & 0xffff);
}

static inline uint64_t mpi_hdr_number(uint64_t hdr)
{
	return hdr >> 28;
}

/* Whether a message has a mark, and one other than `mark`. */
static inline bool mpi_mark_differs(uint64_t mark, uint64_t hdr, bool is_long)
{
	if (!(hdr & MPI_MARK_HEADER))
		return false;
	return ((hdr ^ mark) & MPI_MARK_HEADER) ||
	       (!is_long && (uint32_t)mpi_hdr_number(hdr) != (uint32_t)(mark >> 32));
}

/* Most processes of other jobs that are connected at a time. */
#define MPI_OTHERS_MOST 256

/* A sender may use this of a receiver's memory: bytes of the blocks, slots of the queue. */
struct mpi_shares {
	uint32_t bytes, slots;
};

/* This process's knowledge of another one: as a receiver of its messages and as a sender to it.
 * Counters wrap around. */
struct mpi_peer {
	uint32_t sent_bytes, sent_slots;             /* credit spent */
	struct mpi_shares share, given;              /* of this one at it, of it at this one */
	uint32_t returned_bytes, returned_slots;     /* credit returned, as last advertised to us */
	uint32_t consumed_bytes, consumed_slots;     /* its messages: credit consumed */
	uint32_t advertised_bytes, advertised_slots; /* its messages: credit advertised to it */
	uint32_t late_bytes; /* its messages: event handled, bytes not returned yet */
	uint32_t cancels, returned_cancels; /* our cancel requests to it: sent, and returned */
	uint32_t consumed_cancels, advertised_cancels; /* its cancel requests to us */
	struct mpi_request *queue, *queue_end;         /* sends that wait, in order */
	struct mpi_peer *next_owed;                    /* list of peers to which credit is owed */
	bool owed;                                     /* on that list */
	bool dead;        /* its process has ended, or it cannot be reached */
	bool asked;       /* something waits for it: check that it lives */
	bool greeted;     /* an empty put was sent to it, to find out whether it lives */
	uint8_t notified; /* how many of the ranks to be told of its death were told */
	/* of a process of another job: */
	uint32_t comms; /* communicators that it is in, with this one */
	bool stays;     /* one of them was freed, not disconnected: it stays connected */
	/* this process has told it that it leaves; it has told so */
	bool leave_sent, leave_came;
};

/* A message that has arrived before its receive. */
struct mpi_unexpected {
	struct mpi_link {
		struct mpi_unexpected *next, *prev;
	} link[MPI_OPEN_KINDS]; /* by key, see unexpected.c */
	union {
		struct mpi_link of_block; /* other messages in the same block */
		char few[16];             /* or the data, if this short: not left in the block */
		ptl_handle_me_t claim;    /* or, of a long message: its claim, see cancel.c */
	};
	uint64_t bits, hdr;
	ptl_process_id_t from;
	MPI_Count bytes;         /* of the message */
	void *data;              /* short: in a block, in `few`, or malloc'd */
	struct mpi_block *block; /* NULL: data is not in a block */
};

struct mpi_protocol_state {
	struct mpi_peer *peer;   /* by number (process.h) */
	struct mpi_shares share; /* of each rank of this job */
	uint32_t share_cancels;
	struct mpi_shares left;     /* for processes of other jobs, not given yet */
	int others;                 /* processes of other jobs that are connected */
	size_t short_most;          /* bytes of the longest short message */
	MPI_Count at_once_most;     /* bytes of the longest that is sent without a request */
	MPI_Count local_most;       /* bytes of the longest receive not posted to Portals */
	ptl_handle_eq_t unexpected; /* events of unexpected messages and of returned credit */
	ptl_handle_me_t long_me;    /* posted receives are inserted before it */
	bool any_dead;              /* of the peers */
	bool ending;                /* in MPI_Finalize: ranks that are gone have ended */
	uint64_t next_number;       /* of long messages */
};

extern struct mpi_protocol_state mpi_proto;

static inline bool mpi_other_is_connected(int world)
{
	return mpi_proto.peer[world].comms || mpi_proto.peer[world].stays;
}

/* Returns the sender of a message; -1: it is not connected. */
static inline int mpi_hdr_sender(uint64_t hdr, ptl_process_id_t from)
{
	const int world = mpi_process_of(mpi_hdr_rank(hdr), from);

	return __builtin_expect(world >= mpi_world.size, 0) && !mpi_other_is_connected(world)
		       ? -1
		       : world;
}

/* The functions of messages that rounds of progress call. */
extern const struct mpi_progress_hooks mpi_message_hooks;
/* Takes the paths of messages that raise events, or back those that raise none (events.h). */
void mpi_messages_watched(void);

/* Set up kinds of requests, events and matched probes, before any connection. */
void mpi_messages_init(void); /* peers.c */
void mpi_probe_init(void);    /* probe.c */

/* Handles all events of unexpected messages. Returns whether there were any. */
static inline bool mpi_drain_unexpected(void)
{
	return mpi_progress_drain(&mpi_proto.unexpected);
}

/* ---- unexpected.c ---------------------------------------------------------------------------- */

size_t mpi_pool_bytes(void); /* total of all blocks */
int mpi_unexpected_init(void);
void mpi_unexpected_fini(void);

/* The kinds of arrivals that the inline handler gets, other than short messages. */
enum mpi_arrival {
	MPI_ARRIVAL_ANSWER, /* replies and acknowledgements of what this process has sent */
	MPI_ARRIVAL_FLAG,   /* a put to FLAG */
	MPI_ARRIVALS
};
/* Sets the inline handler of a kind. Called once, before any such arrival. */
void mpi_arrivals_go_to(enum mpi_arrival kind, ptl_inline_handler_t inline_handler);

/* Returns the first message that matches `bits`, apart from the fields that index `open` leaves
 * open. It stays on the list. NULL: none. */
struct mpi_unexpected *mpi_unexpected_find(uint64_t bits, unsigned int open);
/* Takes a message off the list. The caller owns it until mpi_unexpected_free, which returns its
 * bytes. *u is NULL when sends were cancelled meanwhile, maybe this one: search again.
 * MPI_SUCCESS, or an error that leaves the message on the list. */
int mpi_unexpected_take(struct mpi_unexpected **u);
void mpi_unexpected_free(struct mpi_unexpected *u);
/* Counts the messages of a context that are on the list. */
struct mpi_unexpected_sum {
	uint64_t messages, bytes;
};
struct mpi_unexpected_sum mpi_unexpected_count(uint32_t context);
/* Takes the cancelled message with these match bits and header data off the list and frees it.
 * False: it is not on the list. */
bool mpi_unexpected_cancel(uint64_t bits, uint64_t hdr, ptl_process_id_t from);

/* ---- cancel.c ------------------------------------------------------------------------------ */

int mpi_cancel_init(void);
void mpi_cancel_fini(void);

/* Returns how many cancel requests may be on their way to a process. */
uint32_t mpi_cancels_at(int world);

/* Claims a long message: from now on its sender cannot cancel it. u->claim is to be unlinked
 * when the message is here. Returns a Portals code. PTL_MD_NO_UPDATE: cancel requests have
 * come, maybe for this message; call mpi_cancel_drain. */
int mpi_cancel_claim(struct mpi_unexpected *u);

/* Handles the cancel requests so far: takes their messages off the list. Returns whether there
 * were any. */
bool mpi_cancel_drain(void);

/* Whether a message was cancelled before its header was seen. Answers so only once per message. */
bool mpi_cancel_early(const struct mpi_unexpected *u);

/* Handles cancel requests that no receive has polled for. Called now and then, with no event in
 * hand. */
void mpi_cancel_check(void);

/* ---- posted.c -------------------------------------------------------------------------------- */

int mpi_posted_init(void);
void mpi_posted_fini(void);

/* The receives that wait in this library, filed under r->bits and r->open, in the order of
 * posting. */
void mpi_posted_add(struct mpi_request *r);
void mpi_posted_remove(struct mpi_request *r);
struct mpi_request *mpi_posted_first(void);
/* Returns the receive posted first among those that match a message. mpi_posted_take also
 * removes it. NULL: none. */
struct mpi_request *mpi_posted_find(uint64_t bits);
struct mpi_request *mpi_posted_take(uint64_t bits);

/* ---- send.c, recv.c -------------------------------------------------------------------------- */

/* Returns the bytes of credit that a short message of this length costs. This is the memory it
 * takes while it waits, including its entry in the list and its part of the tables. */
static inline uint32_t mpi_credit_cost(uint64_t bytes)
{
	return (uint32_t)bytes + 256;
}

/* Counts messages of a world rank: `slots` events were taken from the queue, and there is room
 * for `bytes` more. */
void mpi_credit_consumed(int rank, uint32_t bytes, uint32_t slots);
/* Returns credit to the peers to which enough is owed. */
void mpi_credit_return(void);
/* Returns no credit to a peer that is not connected any more. */
void mpi_credit_forget(const struct mpi_peer *peer);
/* Handles credit that a receiver has returned. */
void mpi_credit_event(const ptl_event_t *ev);
/* mpi_send_flush starts the sends that wait for slots or memory at this peer, in order; it
 * returns whether any started. mpi_send_cancel_due sends the cancel requests that wait. */
bool mpi_send_flush(int rank);
void mpi_send_cancel_due(int rank);

/* ---- peers.c ------------------------------------------------------------------------------- */

/* Checks the processes that something waits for. An operation whose peer was found dead before
 * ends with an error. A send that waits for memory is tried again. Slow: visits all requests. */
void mpi_peers_check(void);
/* Returns the rank of the communicator from which nothing will come, or -1. MPI_ANY_SOURCE: any
 * dead rank, since it may have been the sender. Has the ranks checked. */
int mpi_failed_source(const struct mpi_comm *comm, int source);
/* Returns a rank of the communicator's (remote) group that is known to have died, or -1. Has
 * only those ranks checked that are on this node or have exchanged messages with this one. */
int mpi_failed_any(const struct mpi_comm *comm);
/* Returns the world rank of a member of either group that is known to have died, or -1. */
int mpi_failed_member(const struct mpi_comm *comm);
/*
 * Sets what higher layers add to each check; once, at start. `check` has the peers checked that
 * something other than a request waits for, and ends what waits for dead ones. `hopeless` gets
 * a request of a collective (r->whole) whose peer lives. It returns MPI_SUCCESS, or the error
 * with which the request is to fail all the same (MPI_ERR_*, text kept).
 */
void mpi_peers_check_also(void (*check)(void));
void mpi_peers_ask_of_whole(int (*hopeless)(const struct mpi_request *r));
/* Returns what is known of a failed world rank: "its process has ended", or why it cannot be
 * reached. `fail`: the failure of the operation, or PTL_NI_OK. The text is valid until the next
 * call. */
const char *mpi_failed_text(int world, ptl_ni_fail_t fail);
/* Marks a world rank as dead. Returns MPI_ERR_PROC_ABORTED, with a text kept. */
int mpi_unreachable(int world);
int mpi_peers_init(void);
void mpi_peers_fini(void);

/* ---- others.c ------------------------------------------------------------------------------ */

/* Sets aside what processes of other jobs may use here, of `bytes` bytes of the blocks. Returns
 * the rest, which is the ranks' own. */
size_t mpi_others_init(size_t bytes);
/* Events that processes of other jobs may cause in the queue of unexpected messages. */
uint32_t mpi_others_slots(void);

/* Connects a process of another job, `world`: it may use `given` here, and this process `share`
 * there. Keeps it connected until mpi_other_release. MPI_SUCCESS or an error with a text kept. */
int mpi_other_connect(int world, struct mpi_shares share, struct mpi_shares given);
/* A communicator is made; or none will be, and the link is cut if there is no other one. */
void mpi_other_release(int world);
/* Returns what can be given to each of n processes that are not connected yet. */
struct mpi_shares mpi_others_can_give(int n);

/* Counts the processes of other jobs in a communicator that begins (1) or ends (-1). */
void mpi_others_count(const struct mpi_comm *comm, int change);
/* The communicator's processes stay connected until MPI_Finalize: it is freed. */
void mpi_others_stay(const struct mpi_comm *comm);
/*
 * Tells processes of other jobs that this one leaves them, waits until they leave as well or have
 * ended, and cuts the links. `all`: all that are connected, in MPI_Finalize. Else those that have
 * no communicator with this one any more.
 */
void mpi_others_leave(bool all);
/* A process of another job leaves. */
void mpi_other_left(ptl_process_id_t id);

#endif
