/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A network interface of this process, and how a call enters and leaves it.
 */
#ifndef PTL_NI_H
#define PTL_NI_H

#include "base/cpu.h"
#include "portals/engine/arena.h"
#include "portals/engine/engine.h"
#include "portals/engine/lock.h"

struct nal_ops;
struct ptl_wait;

#define PTL_NETS PTL_STAT_NETS /* network NALs an interface can have */
#define PTL_LOST 64            /* reasons that are kept */

/* What a NAL last found out about a peer that it cannot reach, or that has ended. */
struct ptl_lost {
	const struct nal_ops *nal; /* NULL: nothing */
	ptl_process_id_t id;
	uint64_t number; /* the later, the greater */
	ptl_ni_fail_t fail;
	char why[200];
};

/* An address of this host, and where it is. */
struct ptl_address {
	int family; /* AF_INET or AF_INET6; AF_PACKET: there is only a hardware address */
	unsigned char bytes[16];
	unsigned int scope; /* the network interface's number, */
	char ifname[16];    /* and name */
};

struct ptl_ni {
	uint32_t index; /* interface number, part of every handle */
	ptl_process_id_t id;
	uint32_t uid, jid;
	/* state word of objects never used yet: handles do not outlive their interface */
	uint32_t gen;
	int refs; /* PtlNIInit calls not yet undone; guarded by the NI table's mutex */
	int memfd;
	struct ptl_view view;
	struct ptl_engine engine; /* the owner's context; guarded by the region lock */
	struct ptl_arena arena;   /* likewise */
	int neighbours;           /* processes of our job on this node, as far as known */
	/* ids of a job whose ranks were not started together: one that is not there yet will
	 * come */
	ptl_process_id_t *awaited;
	unsigned int nawaited;
	_Atomic uint64_t
		spin_ns; /* how long a wait spins before it sleeps; 0 when cores are short */
	struct ptl_address address; /* that the nid comes from */
	ptl_pid_t first_pid;        /* where nobody asks for one: the first to try */
	bool cards;                /* the ranks of its job will tell each other how to reach them */
	const struct nal_ops *nal; /* the host (nal.h) */
	void *nal_state;
	/* Network NALs that want progress from the application's calls, in bits as net[] has
	 * them */
	_Atomic uint32_t polled;
	uint32_t net_turn; /* rounds of progress since they had some */
	uint32_t nnets;
	struct ptl_net {
		const struct nal_ops *nal;
		void *state;
		struct net *net; /* what those on nal/net have there, once it is begun */
		uint64_t region; /* offset of its part of the region */
	} net[PTL_NETS];
	struct ptl_left_out { /* NALs that are not used, for reports */
		const struct nal_ops *nal;
		char why[120];
	} left_out[PTL_NETS + 1];
	uint32_t nleft_out;
	struct ptl_lost lost[PTL_LOST];
	uint64_t nlost; /* numbers given */
	/* ids of the job's processes that shared memory may not lead to: see ptl_apart() */
	struct ptl_apart {
		ptl_process_id_t id;
		bool network; /* they see another network; else it is another user's */
	} * apart;
	unsigned int napart;
	bool apart_known; /* all others of the job on this node are where we are */
	/* set by a NAL's open() that failed: why, for the report; NULL: a line said it */
	const char *unopened;
	const struct nal_ops
		*order[PTL_NETS + 1]; /* those that may take new peers, ends with NULL */
	_Atomic unsigned int debug;   /* PTL_DBG_ subjects to print */
	/* event handlers by queue, and the first event each has not seen; NULL until one is used */
	ptl_eq_handler_t *handler;
	uint64_t *handled;
	struct ptl_wait *waits; /* in progress, in PtlEQWait and its like; eq.c */
	uint32_t nhandlers;     /* queues that have one */
	_Atomic bool handlers;  /* there is one */
	/* Calls the handlers for events they have not seen. Not locked; any thread of the owner. */
	void (*run_handlers)(struct ptl_ni *ni);
	_Atomic bool in_handler; /* a thread is running them */
	uint32_t poll_turn;      /* where the next PtlEQPoll starts looking */
	uint32_t vain;       /* looks in a row that found nothing, where cores are short; eq.c */
	uint64_t vain_since; /* when the first of them was */
	/* Who the lock is biased to (lock.h): the thread, and in the lowest bits its place.
	 * Written in plain mode only, with the lock; who reads something old in it finds out
	 * from the lock word. */
	_Atomic uintptr_t bias;
	bool may_bias;
	uint32_t bias_round; /* `rounds` when it was */
	/* the thread that took the lock last, how often in a row, how often it must, and what
	 * peers had delivered */
	uintptr_t streak_thread;
	uint32_t streak, streak_need;
	uint64_t streak_helped;
	uintptr_t bias_thread[PTL_BIAS_THREADS];    /* whose the places are */
	_Atomic uintptr_t never_bias[PTL_NETS + 1]; /* the NALs' own threads */
	_Atomic uint32_t
		rounds; /* of progress so far: shows the helper thread that the application polls */
};

/* The interfaces that are open, and whether PtlInit was called. Any thread reads; api/init.c alone
 * writes. */
extern struct ptl_ni *_Atomic ptl_ni_table[PTL_MAX_INTERFACES];
extern atomic_bool ptl_initialized;

bool ptl_is_init(void);

/* The state a network NAL keeps of this interface, and the number of its peer i in the engine's
 * records. */
static inline struct ptl_net *ptl_net_of(struct ptl_ni *ni, const struct nal_ops *nal)
{
	uint32_t k = 0;

	while (k + 1 < PTL_NETS && ni->net[k].nal != nal)
		k++;
	return &ni->net[k];
}

static inline uint32_t ptl_net_peer(const struct ptl_ni *ni, const struct ptl_net *net, uint32_t i)
{
	return (uint32_t)(net - ni->net + 1) << 24 | i;
}

static inline bool ptl_same_id(ptl_process_id_t a, ptl_process_id_t b)
{
	return a.nid == b.nid && a.pid == b.pid;
}

/* Keeps why a NAL does not lead to a peer, or PTL_NI_PEER_DEAD: that it has ended. ptl_found(): it
 * does lead there. Locked. */
void ptl_lost(struct ptl_ni *ni, const struct nal_ops *nal, ptl_process_id_t id, ptl_ni_fail_t fail,
	      const char *why);
void ptl_found(struct ptl_ni *ni, const struct nal_ops *nal, ptl_process_id_t id);
/* What this NAL said of it; NULL: nothing. Locked. */
const char *ptl_lost_why(const struct ptl_ni *ni, const struct nal_ops *nal, ptl_process_id_t id);
/* A rank on this node that is in another network namespace, or another user's; NULL: it is neither,
 * or not known. */
const struct ptl_apart *ptl_apart(const struct ptl_ni *ni, ptl_process_id_t id);

/* The application is about to sleep on the bell, after which network NALs ring it when something
 * arrives. Until when it may sleep, 0: not at all. Locked. */
uint64_t ptl_nets_arm(struct ptl_ni *ni);

/* Takes the lock of our own region. */
static inline void ptl_lock(struct ptl_ni *ni)
{
	uintptr_t place = atomic_load_explicit(&ni->bias, memory_order_relaxed) ^ base_thread();
	struct ptl_region *r = ni->view.r;
	uint32_t word;

	if (place < PTL_BIAS_THREADS) {
		atomic_store_explicit(&r->bias[place].inside, 1, memory_order_relaxed);
		/* the processor may turn these two round: see lock.h */
		atomic_signal_fence(memory_order_seq_cst);
		if (atomic_load_explicit(&r->lock, memory_order_relaxed) != PTL_LOCK_TO(place))
			ptl_lock_unbiased(ni, PTL_LOCK_TO(place));
	} else if (!ptl_lock_try(r, PTL_LOCK_OWNER, &word)) {
		ptl_lock_wait(ni);
	}
#if defined(__SANITIZE_THREAD__)
	/* who took the bias away and saw `inside` before us may be a thread of another process:
	 * it cannot know */
	for (int i = 0; i < PTL_BIAS_THREADS; i++)
		(void)atomic_load_explicit(&r->bias[i].inside, memory_order_acquire);
#endif
}

/* Lets go of it. What the caller looks at next (rings, sleepers) it sees as it is after that: in
 * plain mode. True: the mode is biased, and it may see less. */
static inline bool ptl_unlock(struct ptl_ni *ni)
{
	struct ptl_region *r = ni->view.r;
	uint32_t biased = atomic_load_explicit(&r->lock, memory_order_relaxed);

	if (!(biased & PTL_LOCK_BIASED))
		return ptl_unlock_unbiased(ni);
	biased &= ~(PTL_LOCK_TOKEN | PTL_LOCK_WAIT);
	/* release: partner of the revoker's acquire */
	atomic_store_explicit(ptl_lock_inside(r, biased), 0, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&r->lock, memory_order_relaxed) != biased)
		ptl_unlock_revoked(r, biased);
	return true;
}

/* The interface a handle of `kind` names, or NULL; not locked. */
struct ptl_ni *ptl_ni_of(ptl_handle_any_t handle, enum ptl_kind kind);

/* The same, and takes its lock. Leave with ptl_leave. */
struct ptl_ni *ptl_enter(ptl_handle_any_t handle, enum ptl_kind kind);
void ptl_leave(struct ptl_ni *ni);
/* Lazy messages that have arrived may stay where they are. */
void ptl_leave_lazily(struct ptl_ni *ni);

static inline uint32_t ptl_handle_index(ptl_handle_any_t handle)
{
	return handle >> 8 & 0xfffff;
}

/* The live object a handle names, NULL if stale or invented. Locked. */
struct ptl_me *ptl_me_of(struct ptl_ni *ni, ptl_handle_me_t handle);
struct ptl_md *ptl_md_of(struct ptl_ni *ni, ptl_handle_md_t handle);
struct ptl_eq *ptl_eq_of(struct ptl_ni *ni, ptl_handle_eq_t handle);

/* Is some handler's queue filling up? Then no more messages are to be taken in. Locked. */
bool ptl_queues_behind(const struct ptl_ni *ni); /* there are handlers */
static inline bool ptl_handlers_behind(const struct ptl_ni *ni)
{
	return atomic_load_explicit(&ni->handlers, memory_order_relaxed) && ptl_queues_behind(ni);
}

static inline ptl_handle_ni_t ptl_ni_handle(const struct ptl_ni *ni)
{
	return ptl_handle(PTL_KIND_NI, ni->index, 0, ni->gen);
}

/* Does the handle, of any kind, name a live object? Locked. */
bool ptl_names_object(struct ptl_ni *ni, ptl_handle_any_t handle);

static inline ptl_handle_me_t ptl_me_handle(const struct ptl_ni *ni, uint32_t i)
{
	return ptl_handle(PTL_KIND_ME, ni->index, i, ni->view.slot[i].me.state);
}

static inline ptl_handle_md_t ptl_md_handle(const struct ptl_ni *ni, uint32_t i)
{
	return ptl_handle(PTL_KIND_MD, ni->index, i, ni->view.slot[i].md.state);
}

#endif
