/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A network interface of this process, and how a call enters and leaves it.
 */
#ifndef PTL_NI_H
#define PTL_NI_H

#include "portals/arena.h"
#include "portals/engine.h"
#include "portals/lock.h"

struct nal_ops;

struct ptl_ni {
	uint32_t index; /* interface number, part of every handle */
	ptl_process_id_t id;
	uint32_t uid, jid;
	uint32_t
		gen; /* state word of objects never used yet: handles do not outlive their interface */
	int refs;    /* PtlNIInit calls not yet undone; guarded by the NI table's mutex */
	int memfd;
	struct ptl_view view;
	struct ptl_engine engine; /* the owner's context; guarded by the region lock */
	struct ptl_arena arena;   /* likewise */
	int neighbours;           /* processes of our job on this node, as far as known */
	/* ids of a job whose ranks were not started together: one that is not there yet will come */
	ptl_process_id_t *awaited;
	unsigned int nawaited;
	_Atomic uint64_t
		spin_ns; /* how long a wait spins before it sleeps; 0 when cores are short */
	const struct nal_ops *nal;
	void *nal_state;
	_Atomic unsigned int debug; /* PTL_DBG_ subjects to print */
	/* event handlers by queue, and the first event each has not seen; NULL until one is used */
	ptl_eq_handler_t *handler;
	uint64_t *handled;
	uint32_t *eq_waiters;    /* threads in PtlEQWait and PtlEQPoll, by queue */
	uint32_t nhandlers;      /* queues that have one */
	_Atomic bool handlers;   /* there is one */
	_Atomic bool in_handler; /* a thread is running them */
	uint32_t poll_turn;      /* where the next PtlEQPoll starts looking */
	_Atomic uint32_t
		rounds; /* of progress so far: shows the helper thread that the application polls */
};

bool ptl_is_init(void);

/* Takes the lock of our own region. */
static inline void ptl_lock(struct ptl_ni *ni)
{
	uint32_t holder;

	if (!ptl_lock_try(ni->view.r, PTL_LOCK_OWNER, &holder))
		ptl_lock_wait(ni);
}

/* The interface a handle of `kind` names, or NULL; not locked. */
struct ptl_ni *ptl_ni_of(ptl_handle_any_t handle, enum ptl_kind kind);

/* The same, and takes its lock. Leave with ptl_leave. */
struct ptl_ni *ptl_enter(ptl_handle_any_t handle, enum ptl_kind kind);
void ptl_leave(struct ptl_ni *ni);

static inline uint32_t ptl_handle_index(ptl_handle_any_t handle)
{
	return handle >> 8 & 0xfffff;
}

/* The live object a handle names, NULL if stale or invented. Locked. */
struct ptl_me *ptl_me_of(struct ptl_ni *ni, ptl_handle_me_t handle);
struct ptl_md *ptl_md_of(struct ptl_ni *ni, ptl_handle_md_t handle);
struct ptl_eq *ptl_eq_of(struct ptl_ni *ni, ptl_handle_eq_t handle);

/* Calls the handlers for events they have not seen. Not locked; any thread of the owner. */
void ptl_run_handlers(struct ptl_ni *ni);
/* Is some handler's queue filling up? Then no more messages are to be taken in. Locked. */
bool ptl_handlers_behind(const struct ptl_ni *ni);

uint32_t ptl_md_alloc(struct ptl_ni *ni);
int ptl_md_make(struct ptl_ni *ni, const ptl_md_t *user, ptl_unlink_t unlink_op, uint32_t *index);
bool ptl_eq_idle(struct ptl_ni *ni, ptl_handle_eq_t handle, int *err);

/* ME creation behind PtlMEAttach and PtlMEInsert. Locked. */
int ptl_me_make(struct ptl_ni *ni, uint32_t pt_index, uint32_t base, ptl_process_id_t match_id,
		ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
		ptl_ins_pos_t position, uint32_t *index);

static inline ptl_handle_ni_t ptl_ni_handle(const struct ptl_ni *ni)
{
	return ptl_handle(PTL_KIND_NI, ni->index, 0, ni->gen);
}

/* Does the handle, of any kind, name a live object? Locked. */
bool ptl_names_object(struct ptl_ni *ni, ptl_handle_any_t handle);

static inline ptl_handle_me_t ptl_me_handle(const struct ptl_ni *ni, uint32_t i)
{
	return ptl_handle(PTL_KIND_ME, ni->index, i, ni->view.me[i].state);
}

static inline ptl_handle_md_t ptl_md_handle(const struct ptl_ni *ni, uint32_t i)
{
	return ptl_handle(PTL_KIND_MD, ni->index, i, ni->view.md[i].state);
}

#endif
