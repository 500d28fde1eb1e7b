/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The state of RWAPI in this process, and what its files offer each other.
 *
 * Invariant of order: a short message leaves this process only when all long writes that were
 * started before it to the same process have been acknowledged. Short writes need no wait: their
 * bytes are in place before the next message of the pair is matched.
 *
 *   rwapi_write --+-- short: PtlPutInject -------------------------------> block of the target
 *                 +-- long: PtlPutRegion, a record until its ACK --------> block of the target
 *   rwapi_send ---+-- PtlPutInject, no bytes ----------------------------> queue of the target
 *                 +-- a long write is not acknowledged: held back, sent by progress or the keeper
 */
#ifndef RWAPI_IMPL_H
#define RWAPI_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <portals3_ext.h>
#include <rwapi.h>

#include "rwapi_shim/arena.h"
#include "rwapi_shim/lock.h"
#include "rwapi_shim/rwapi_wire.h"

enum {
	RW_WRITES = 512,                   /* long writes under way at most */
	RW_PINGS = 64,                     /* pings under way at most */
	RW_RECORDS = RW_WRITES + RW_PINGS, /* two events each, in a queue twice as long */
	RW_INJECT_MOST = 32768,            /* longer writes are never taken at once */
	RW_SHARE_MOST = 256,               /* short messages under way to a process at most */
	RW_SHARE_LEAST = 4,
	RW_SLOTS = 16384,  /* of all shares together, unless they are the least */
	RW_REPORTS = 4096, /* refused writes that are remembered until a call */
	RW_SLICE_MS = 100, /* a wait looks up so often */
	RW_ENTRIES = 6,
	RW_CHECK_MS = 500,  /* and asks its peers whether they live so often */
	RW_CHECKED = 8,     /* so many of them at a time */
	RW_POLLS = 1 << 18, /* a program that polls asks after so many rounds without success */
};

/* A block of rwapi_alloc(). */
struct rw_block {
	struct rw_block *next_by_name, *next_by_start;
	struct rw_part *part;
	uint64_t length; /* as it was asked for */
	uint32_t name;
	uint32_t sending; /* long writes from it whose bytes are still needed */
	bool freeing;     /* rwapi_free() waits: it is no block any more for others */
	ptl_handle_me_t me;
};

/* A long write or a ping, from its start until its last event. */
struct rw_record {
	struct rw_record *prev, *next; /* of the same process, in the order of the starts */
	struct rw_record *chain;       /* of the same hash of sids, or the next unused record */
	struct rw_block *block;
	rwapi_sid_t sid; /* 0: a ping */
	uint64_t order;  /* of its process, see rw_peer.started */
	int node;
	uint16_t generation;
	bool live;
	bool sent;             /* the bytes are not needed any more */
	bool saw_end, saw_ack; /* its events */
	bool listed;           /* its process's short messages wait for it */
};

/* A short message that is held back. */
struct rw_held {
	struct rw_held *next;
	rwapi_small_t small;
	uint64_t after; /* long writes to the process up to this one go first */
};

struct rw_peer {
	ptl_process_id_t id;
	/* short messages to it */
	uint64_t sent, credited; /* started; taken in there, as far as is known */
	struct rw_held *held_first, *held_last;
	/* long writes to it */
	uint64_t started;
	struct rw_record *first, *last;
	/* short messages from it */
	uint64_t arrived, received, granted; /* into the list; by the program; credit given */
	unsigned int stage;                  /* of rwapi_finalize() that it has reached */
	bool quiet;                          /* something went to it that nothing confirmed yet */
	bool pinging;
	bool dead;
};

/* A short message that waits for rwapi_receive(). */
struct rw_arrived {
	int node;
	rwapi_small_t small;
};

enum rw_phase { RW_BEFORE, RW_STARTING, RW_RUNNING, RW_ENDING, RW_AFTER };

struct rw_failed {
	rwapi_sid_t sid;
	int error;
};

struct rw_world {
	struct rw_lock lock; /* guards all below; never held while a thread waits in Portals */
	_Atomic int phase;
	int rank, size;
	ptl_handle_ni_t ni;
	bool owns_portals; /* Portals was not open before */
	/* events: short messages, credit and stages; ends of long writes; refused writes */
	ptl_handle_eq_t queue[3];
	ptl_handle_md_t md; /* the whole arena, for writes */
	struct rw_peer *peer;
	uint64_t share;
	uint64_t held; /* short messages that are held back */
	int lost;      /* peers that have ended or cannot be reached */
	int reported;  /* of how many rwapi_wait() has told */
	int checked;   /* the last one that was asked whether it lives */
	uint64_t next_check_ms;
	/* hash from process ids to ranks */
	int *rank_of;
	uint32_t rank_mask;
	/* list of arrived messages: a ring of a power of two */
	struct rw_arrived *arrived;
	uint64_t arrived_head, arrived_tail, arrived_room;
	/* blocks */
	struct rw_arena arena;
	struct rw_block **by_name, **by_start;
	uint32_t blocks, block_mask; /* how many; of both hashes */
	uint32_t next_name;
	/* writes */
	struct rw_record record[RW_RECORDS];
	struct rw_record *unused;
	struct rw_record *by_sid[RW_RECORDS];
	uint32_t writing, pings; /* records in use */
	rwapi_sid_t last_sid;
	struct rw_failed *failed; /* sorted by sid */
	uint64_t nfailed, failed_room;
	int worst;          /* what rwapi_finalize() returns */
	unsigned int stage; /* of it that this process has reached */
	bool retry;         /* something could not be sent for lack of memory */
	bool closed;        /* the program has closed Portals: nothing comes any more */
	/* Threads that sleep in Portals without the lock, and whether something came since that one
	 * of them may wait for, which another thread took in. */
	uint32_t sleepers;
	bool news;
	/* match entries of init.c, all but those of blocks */
	ptl_handle_me_t entry[RW_ENTRIES];
	int entries, queues; /* attached; made */
	bool has_md;
	/* rounds of progress: they show the keeper that the program calls in */
	_Atomic uint64_t rounds;
};

extern struct rw_world rw;

enum { RW_QUEUE_MAIN, RW_QUEUE_ENDS, RW_QUEUE_REFUSED, RW_QUEUES };

/* Enter a call: true, and the lock is held, if RWAPI runs. */
static inline bool rw_enter(void)
{
	if (atomic_load_explicit(&rw.phase, memory_order_acquire) != RW_RUNNING)
		return false;
	rw_lock(&rw.lock);
	if (atomic_load_explicit(&rw.phase, memory_order_relaxed) == RW_RUNNING)
		return true;
	rw_unlock(&rw.lock);
	return false;
}

static inline void rw_leave(void)
{
	rw_unlock(&rw.lock);
}

static inline bool rw_is_node(int node)
{
	return node >= 0 && node < rw.size;
}

/* ---- progress.c; all with the lock held ------------------------------------------------------ */

/* Take in what is there. True: yield, after the unlock. With `all`, credit is given for all that
 * has been taken in, not only for what the program received. */
bool rw_progress(bool all);
/* Release the lock, sleep until something comes or RW_SLICE_MS have passed, take it in. Credit
 * is given for all. */
void rw_progress_wait(void);
/* Around a sleep in Portals without the lock. */
static inline void rw_sleep_begins(void)
{
	rw.sleepers++;
	rw.news = false;
}

static inline void rw_sleep_ends(void)
{
	rw.sleepers--;
	rw.news = false;
}

/* The rank of a process, -1: it is not of the job. */
int rw_rank_of(ptl_process_id_t id);
/* A process has ended or cannot be reached. */
void rw_peer_lost(int node);
/* The times at which a wait asks its peers whether they live. */
struct rw_checks {
	uint64_t next_ms;
};
void rw_checks_begin(struct rw_checks *c);
bool rw_checks_due(struct rw_checks *c);
/* While a program waits: ask some peers whether they live, in turn, every RW_CHECK_MS. */
void rw_check_peers(void);
void rw_check_sometimes(void);
/* Have all others ended, or can none be reached? */
static inline bool rw_is_alone(void)
{
	return rw.size > 1 && rw.lost == rw.size - 1;
}
/* The hash of rw_rank_of(). False: no memory. */
bool rw_ranks_init(void);
/* A failure of Portals as one of RWAPI. */
int rw_error_of(int err);

/* ---- send.c ---------------------------------------------------------------------------------- */

/* Send what is held back and may go. */
void rw_release_held(int node);
void rw_drop_held(int node);
/* Send a control message without acknowledgement. RWAPI_OK, RWAPI_EPEER or RWAPI_ENOMEM. */
int rw_control(int node, enum rw_control kind, uint64_t value, ptl_inject_t when);

/* ---- write.c --------------------------------------------------------------------------------- */

void rw_records_init(void);
/* Nothing will end any more: all under way have failed. */
void rw_records_lost(void);
/* A SEND_END or ACK event. */
void rw_write_event(const ptl_event_t *ev);
/* Send a ping unless one is under way. */
void rw_ping(int node);
void rw_write_failed(rwapi_sid_t sid, int error);
/* Is it a long write that has not ended? */
bool rw_is_pending(rwapi_sid_t sid);

/* ---- receive.c ------------------------------------------------------------------------------- */

/* Room for `count` more messages in the list. False: no memory. */
bool rw_arrived_reserve(uint64_t count);
void rw_arrived_put(int node, const rwapi_small_t *small);
/* Give the process credit, if enough has gathered. */
void rw_grant(int node, bool all);

/* ---- alloc.c --------------------------------------------------------------------------------- */

int rw_blocks_init(void);
/* Take the blocks and the arena away from Portals. */
void rw_blocks_detach(void);
void rw_blocks_fini(void);
/* The block of a local address, if `size` bytes there are inside of it. */
struct rw_block *rw_block_of(rwapi_net_t local, size_t size);

/* ---- keeper.c -------------------------------------------------------------------------------- */

/* Something is held back: the thread watches. The first call makes it. */
void rw_keeper_wake(void);
void rw_keeper_stop(void);

#endif
