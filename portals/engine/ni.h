/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A network interface of this process, and the ways into and out of it for calls.
 */
#ifndef PTL_NI_H
#define PTL_NI_H

#include "base/cpu.h"
#include "portals/engine/arena.h"
#include "portals/engine/engine.h"
#include "portals/engine/lock.h"

struct nal_ops;
struct ptl_wait;

#define PTL_NETS         PTL_STAT_NETS /* most network NALs of an interface */
#define PTL_FAILED_PEERS 64            /* failure reasons kept */

/* The last failure of a NAL to reach a peer, or the end of that peer. */
struct ptl_failed_peer {
	const struct nal_ops *nal; /* NULL: the entry is unused */
	ptl_process_id_t id;
	uint64_t number; /* later ones are greater */
	ptl_ni_fail_t fail;
	char why[200];
};

/* An address of this host, and its network interface. */
struct ptl_address {
	int family; /* AF_INET or AF_INET6; AF_PACKET: there is only a hardware address */
	unsigned char bytes[16];
	unsigned int scope; /* number of the network interface */
	char ifname[16];    /* and its name */
};

struct ptl_ni {
	uint32_t index; /* interface number, part of every handle */
	ptl_process_id_t id;
	uint32_t uid, jid;
	/* state word of objects never used yet, so that handles do not outlive their interface */
	uint32_t gen;
	int refs; /* PtlNIInit calls not yet undone; guarded by the NI table's mutex */
	int memfd;
	struct ptl_view view;
	struct ptl_engine engine; /* the owner's context; guarded by the region lock */
	struct ptl_arena arena;   /* likewise */
	int neighbours;           /* processes of our job on this node, as far as known */
	/* ids of a job whose ranks are not started together: an id that is not there yet will
	 * come */
	ptl_process_id_t *awaited;
	unsigned int nawaited;
	/* nanoseconds that a wait spins before it sleeps; 0 where the cores are oversubscribed */
	_Atomic uint64_t spin_ns;
	struct ptl_address address; /* source of the nid */
	ptl_pid_t first_pid;        /* the first pid to try if none is asked for */
	bool cards;                 /* the ranks of the job exchange cards */
	const struct nal_ops *nal;  /* the host (nal.h) */
	void *nal_state;
	/* network NALs that want progress from the application's calls: bit k is net[k] */
	_Atomic uint32_t polled;
	uint32_t net_turn; /* rounds of progress since the network NALs had theirs */
	uint32_t nnets;
	struct ptl_net {
		const struct nal_ops *nal;
		void *state;
		struct net *net; /* state of those built on nal/net, once begun */
		uint64_t region; /* offset of its part of the region */
	} net[PTL_NETS];
	struct ptl_left_out { /* NALs that are not used, for reports */
		const struct nal_ops *nal;
		char why[120];
	} left_out[PTL_NETS + 1];
	uint32_t nleft_out;
	struct ptl_failed_peer failed_peer[PTL_FAILED_PEERS];
	uint64_t nfailed_peers; /* numbers given so far */
	/* ids of ranks on this node that shared memory may not reach: see ptl_apart() */
	struct ptl_apart {
		ptl_process_id_t id;
		bool network; /* in another network namespace; else another user's */
	} * apart;
	unsigned int napart;
	bool apart_known; /* all other ranks of the job on this node are where we are */
	/* set by a NAL's open() that failed: the reason, for the report; NULL: it was printed */
	const char *unopened;
	/* NALs that may get new peers; ends with NULL */
	const struct nal_ops *order[PTL_NETS + 1];
	_Atomic unsigned int debug; /* PTL_DBG_ subjects to print */
	/* event handlers by queue, and the first event that each has not seen; NULL until one
	 * is used */
	ptl_eq_handler_t *handler;
	uint64_t *handled;
	struct ptl_wait *waits; /* in progress, in PtlEQWait and the like; eq.c */
	uint32_t nhandlers;     /* queues that have a handler */
	_Atomic bool handlers;  /* there is a handler */
	/* Call the handlers for events they have not seen. Not locked; any thread of the owner. */
	void (*run_handlers)(struct ptl_ni *ni);
	_Atomic bool in_handler; /* a thread is running them */
	uint32_t poll_turn;      /* the queue at which the next PtlEQPoll starts */
	/* polls in a row that found nothing, where the cores are oversubscribed (eq.c); time
	 * of the first */
	uint32_t vain;
	uint64_t vain_since;
	/* The thread that the lock is biased to (lock.h), with its slot in the lowest bits. It
	 * is written in plain mode only, under the lock. A thread that reads an old value
	 * learns it from the lock word. */
	_Atomic uintptr_t bias;
	bool may_bias;
	uint32_t bias_round; /* `rounds` when it was biased */
	/* the last thread to take the lock, how often in a row, how often it must, and the
	 * number of proxy deliveries then */
	uintptr_t streak_thread;
	uint32_t streak, streak_need;
	uint64_t streak_helped;
	uintptr_t bias_thread[PTL_BIAS_THREADS];    /* threads of the slots */
	_Atomic uintptr_t never_bias[PTL_NETS + 1]; /* the NALs' own threads */
	/* rounds of progress so far: they show the helper thread that the application polls */
	_Atomic uint32_t rounds;
};

/* The open interfaces, and whether PtlInit was called. Any thread reads them; only api/init.c
 * writes. */
extern struct ptl_ni *_Atomic ptl_ni_table[PTL_MAX_INTERFACES];
extern atomic_bool ptl_initialized;

bool ptl_is_init(void);

/* A network NAL's state of this interface, and the number of its peer i in the engine's records. */
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

/* ptl_peer_failed: record why a NAL cannot reach a peer, or PTL_NI_PEER_DEAD: the peer has ended.
 * ptl_found: the NAL does reach it. Locked. */
void ptl_peer_failed(struct ptl_ni *ni, const struct nal_ops *nal, ptl_process_id_t id,
		     ptl_ni_fail_t fail, const char *why);
void ptl_found(struct ptl_ni *ni, const struct nal_ops *nal, ptl_process_id_t id);
/* The recorded reason of this NAL; NULL: none. Locked. */
const char *ptl_peer_failed_why(const struct ptl_ni *ni, const struct nal_ops *nal,
				ptl_process_id_t id);
/* A rank on this node that is in another network namespace or another user's. NULL: it is
 * neither, or not known. */
const struct ptl_apart *ptl_apart(const struct ptl_ni *ni, ptl_process_id_t id);

/* Call before the application sleeps on the doorbell: the network NALs ring it when something
 * arrives. Returns the time until which it may sleep (CLOCK_MONOTONIC, ns), 0: not at all.
 * Locked. */
uint64_t ptl_nets_arm(struct ptl_ni *ni);

/* Take the lock of our own region. It may wait. */
static inline void ptl_lock(struct ptl_ni *ni)
{
	uintptr_t place = atomic_load_explicit(&ni->bias, memory_order_relaxed) ^ base_thread();
	struct ptl_region *r = ni->view.r;
	uint32_t word;

	if (place < PTL_BIAS_THREADS) {
		atomic_store_explicit(&r->bias[place].inside, 1, memory_order_relaxed);
		/* the processor may reorder these two: see lock.h */
		atomic_signal_fence(memory_order_seq_cst);
		if (atomic_load_explicit(&r->lock, memory_order_relaxed) != PTL_LOCK_TO(place))
			ptl_lock_unbiased(ni, PTL_LOCK_TO(place));
	} else if (!ptl_lock_try(r, PTL_LOCK_OWNER, &word)) {
		ptl_lock_wait(ni);
	}
#if defined(__SANITIZE_THREAD__)
	/* for ThreadSanitizer: a thread that revoked the bias and saw `inside` before us may
	 * be one of another process, which the tool does not see */
	for (int i = 0; i < PTL_BIAS_THREADS; i++)
		(void)atomic_load_explicit(&r->bias[i].inside, memory_order_acquire);
#endif
}

/* Release it. In plain mode the caller's next loads (rings, sleepers) see memory as it is
 * after that. True: the mode is biased, and the loads may see less. */
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

/* The interface that a handle of `kind` names, or NULL; not locked. */
struct ptl_ni *ptl_ni_of(ptl_handle_any_t handle, enum ptl_kind kind);

/* The same, with its lock taken. Leave with ptl_leave. */
struct ptl_ni *ptl_enter(ptl_handle_any_t handle, enum ptl_kind kind);
void ptl_leave(struct ptl_ni *ni);
/* As ptl_leave, but lazy messages that have arrived may stay where they are. */
void ptl_leave_lazily(struct ptl_ni *ni);

static inline uint32_t ptl_handle_index(ptl_handle_any_t handle)
{
	return handle >> 8 & 0xfffff;
}

/* The live object that a handle names; NULL: stale or invented. Locked. */
struct ptl_me *ptl_me_of(struct ptl_ni *ni, ptl_handle_me_t handle);
struct ptl_md *ptl_md_of(struct ptl_ni *ni, ptl_handle_md_t handle);
struct ptl_eq *ptl_eq_of(struct ptl_ni *ni, ptl_handle_eq_t handle);

/* Is some handler's queue filling up? Then no more messages may be accepted. Locked. */
bool ptl_queues_behind(const struct ptl_ni *ni); /* requires handlers */
static inline bool ptl_handlers_behind(const struct ptl_ni *ni)
{
	return atomic_load_explicit(&ni->handlers, memory_order_relaxed) && ptl_queues_behind(ni);
}

static inline ptl_handle_ni_t ptl_ni_handle(const struct ptl_ni *ni)
{
	return ptl_handle(PTL_KIND_NI, ni->index, 0, ni->gen);
}

/* Does a handle of any kind name a live object? Locked. */
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
