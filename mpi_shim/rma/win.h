/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Windows: memory that other ranks read and change without this one's help.
 *
 * There are two ways to a target's memory. Where the window was allocated by the library and the
 * target is on this node, its memory is mapped here, and operations are loads and stores.
 * Everything else is a put, get or atomic of Portals: each window is an entry of the RMA portal,
 * whose match bits are the window's number at the target (upper half) and anything (lower half:
 * the initiator's record of the operation comes back in the acknowledgement or reply, see
 * rma.h). So the target's process is never needed.
 *
 * Accumulates must be atomic against each other, so all ranks of a window use one way for them:
 * instructions of the processor if all of them have all of the window mapped (`direct`), else
 * atomics of Portals. The lock words of passive targets, and what is attached to a dynamic
 * window, are in a struct mpi_win_control of each rank, which is reached by the same two ways.
 * Post and complete are words there, or messages (win_pscw.c).
 */
#ifndef MPI_SHIM_WIN_H
#define MPI_SHIM_WIN_H

#include <portals3.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/tuner.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/request.h"

/* Memory attached to a dynamic window. */
struct mpi_region {
	uint64_t base, size;
	uint32_t number; /* of the match bits; 0: a free place */
	uint32_t me;     /* the owner's */
};

#define MPI_REGIONS_MOST 1024

/* `after` is counted up before a change, `before` after it: who reads them in this order,
 * everything between, has seen no half change if they are equal. */
struct mpi_regions {
	_Atomic uint64_t before;
	struct mpi_region region[MPI_REGIONS_MOST];
	_Atomic uint64_t after;
};

/*
 * What a rank keeps for the others. The lock is one of tickets: who wants it takes the next of
 * `users`, and has it shared when `read` has come to it, exclusively when `write` has. A reader
 * lets the next reader in at once. So nobody is overtaken.
 */
struct mpi_win_control {
	_Alignas(64) _Atomic uint32_t users;
	_Atomic uint32_t read, write;
	_Atomic uint32_t sleepers; /* on `read` and `write`; direct windows only */
	/* guards elements that have no atomic instructions, or are many: world rank + 1 of the
	 * holder */
	_Alignas(64) _Atomic uint32_t elements;
	/* the owner changes elements of this rank's memory by atomic instructions: rank + 1 */
	_Alignas(64) _Atomic uint32_t at_work;
	/* of a dynamic window; else the struct ends here */
	_Alignas(64) struct mpi_regions regions;
};
#define MPI_CONTROL_BYTES offsetof(struct mpi_win_control, regions)

/*
 * What one rank has said to another, in the memory of the other: how many epochs it has posted
 * for it, and how many it has completed there. One of these for each rank lies behind a control;
 * windows with their memory in common only.
 */
struct mpi_win_pair {
	_Atomic uint64_t posted, completed;
};

/* What each rank tells of its part when the window is made. */
struct mpi_win_part {
	int64_t size, unit;
	uint32_t number;  /* of the match bits of its memory; 0: there is none */
	uint32_t control; /* of those of its control */
	int32_t error;    /* it cannot: the class */
	int16_t flavor;   /* must be the same */
	int16_t tight;    /* as in struct mpi_win; if one wants it, so it is */
	/* for cma.c: its process, 0 if that is not to be reached so; a number in its memory;
	 * where the window is */
	int64_t pid;
	uint64_t token, token_at, address;
};

struct mpi_win_target {
	char *base;                      /* its memory, mapped here; NULL: it is not */
	struct mpi_win_control *control; /* likewise */
	MPI_Aint size, unit;
	uint32_t number, control_number;
	pid_t pid; /* the kernel copies from and to its memory, which is ... (cma.c); 0: not */
	uint64_t address; /* ... there in its process */
	int world;
	uint8_t lock;      /* held by us: 0, 1 for shared, 2 for exclusive */
	bool lock_nocheck; /* ... and no lock was taken */
	bool started;      /* in the group of MPI_Win_start */
	uint32_t pending;  /* operations of ours under way */
	bool along;        /* ... and puts that went along (rma.h) */
	int error;         /* of one of them that failed; told by the next synchronization */
	struct mpi_regions *regions; /* dynamic: as last seen */
	/* post and start by words: what this rank says there and hears here (NULL: messages);
	 * epochs that it has posted for that rank, and started there */
	struct mpi_win_pair *there, *here;
	uint64_t posts, starts;
};

/* Ranks in the window, of an epoch; there is room for all. */
struct mpi_win_group {
	int *rank;
	int size;
};

/* Access epochs. A fence opens one that need not be used. */
enum mpi_access {
	MPI_ACCESS_NONE,
	MPI_ACCESS_FENCE,
	MPI_ACCESS_START,
	MPI_ACCESS_LOCK,
	MPI_ACCESS_LOCK_ALL
};

/* Operations that cma.c times: from the first that has a choice to when nothing of this process
 * is under way any more. */
struct mpi_win_run {
	struct base_tuner *path;     /* of the class it is for; NULL: there is no run */
	enum base_tuner_phase phase; /* that was in when it began */
	bool timed;
	bool yields; /* ... to operations of another class that are as long */
	uint64_t longest, bytes, ns;
};

struct mpi_win {
	struct mpi_obj obj;
	struct mpi_comm *comm; /* its own */
	int rank, size;
	int flavor, model;
	int unit; /* as the attribute shows it, MPI_UNDEFINED if it is longer than that */
	bool direct;
	bool tight;      /* memory in common has no gaps between the ranks' parts */
	bool fence_used; /* in the epoch a fence opened: operations */
	uint8_t access;  /* enum mpi_access */
	int locks;       /* targets locked, not by MPI_Win_lock_all */
	void *base;
	MPI_Aint bytes;
	struct mpi_win_target *target;
	uint32_t pending; /* of all targets */
	int along;        /* targets to which puts went along */
	struct mpi_win_run run;
	struct mpi_errhandler *handler;
	struct mpi_attr *attrs;
	struct mpi_info *info;
	/* MPI_Win_start, MPI_Win_post */
	struct mpi_win_group started, posted;
	bool exposed;    /* by MPI_Win_post */
	bool in_shmcoll; /* a thread waits in the hub for post or complete */
	bool words;      /* post and complete by words, else by messages */
	struct mpi_shmcoll
		*shmcoll; /* the communicator's, to wait for words; NULL: there is none */
	struct mpi_request **completes; /* receives of what MPI_Win_complete sends */
	/* what is ours of the two ways */
	uint64_t token; /* by which others see that it is this process; 0: they shall not */
	void *segment;
	size_t segment_bytes;
	struct mpi_win_control *control; /* ours; in the segment or malloc'd */
	bool own_control;
	ptl_handle_me_t me, control_me;
	char name[MPI_MAX_OBJECT_NAME];
};

static inline struct mpi_win_target *mpi_win_self(const struct mpi_win *win)
{
	return &win->target[win->rank];
}

/* ---- win.c ----------------------------------------------------------------------------------- */

/* `handle` as an object; NULL: not a window. */
static inline struct mpi_win *mpi_win_of(MPI_Win handle)
{
	return mpi_object_of(handle, MPI_KIND_WIN);
}

/* ---- win_shared.c ---------------------------------------------------------------------------- */

/*
 * Memory that the ranks of one node have in common: a control for each and, with `data`, pairs
 * for all and `size` bytes each. Collective. Fills in base, control and pairs of the targets on
 * this node. *mapped: it could be done, on all nodes; else there is none. Agreed by all ranks.
 */
int mpi_win_share(struct mpi_win *win, bool data, bool *mapped);
void mpi_win_unshare(struct mpi_win *win);
/* Are all its ranks on this node? */
bool mpi_win_one_node(const struct mpi_win *win);

/* ---- win_lock.c ------------------------------------------------------------------------------ */

/* The lock of a target, by whichever way. MPI_ERR_PROC_ABORTED: a rank has died, perhaps with
 * it. */
int mpi_win_take_lock(struct mpi_win *win, struct mpi_win_target *t, bool exclusive);
int mpi_win_give_lock(struct mpi_win *win, struct mpi_win_target *t, bool exclusive);
/*
 * The lock of elements without atomic instructions, or of many; direct windows. Who changes
 * elements by instructions says so in its own control, then looks whether the lock is held; who
 * holds it and does not use instructions awaits those who have said so.
 */
void mpi_win_lock_elements(struct mpi_win *win, struct mpi_win_target *t);
void mpi_win_unlock_elements(struct mpi_win_target *t);
void mpi_win_await_elements(struct mpi_win *win, struct mpi_win_target *t);

static inline bool mpi_win_begin_elements(struct mpi_win *win, struct mpi_win_target *t)
{
	_Atomic uint32_t *mine = &mpi_win_self(win)->control->at_work;

	/* seq_cst, both: partners are the exchange in mpi_win_lock_elements and the loads in
	 * mpi_win_await_elements */
	atomic_exchange(mine, (uint32_t)(t - win->target) + 1);
	if (__builtin_expect(!atomic_load(&t->control->elements), 1))
		return false;
	atomic_store_explicit(mine, 0, memory_order_release);
	mpi_win_lock_elements(win, t);
	return true;
}

static inline void mpi_win_end_elements(struct mpi_win *win, struct mpi_win_target *t, bool locked)
{
	if (locked)
		mpi_win_unlock_elements(t);
	else
		/* release: partner of mpi_win_await_elements */
		atomic_store_explicit(&mpi_win_self(win)->control->at_work, 0,
				      memory_order_release);
}

/* ---- win_dynamic.c --------------------------------------------------------------------------- */

/*
 * Where data at `address` of a target of a dynamic window are: number for the match bits and
 * offset. *bytes: how many are wanted, and how many, whole elements, are there in one piece of
 * attached memory; the next one may go on where it ends. MPI_ERR_RMA_RANGE: not one element.
 */
int mpi_win_find_region(struct mpi_win *win, struct mpi_win_target *t, uint64_t address,
			size_t element, size_t *bytes, uint32_t *number, uint64_t *offset);
void mpi_win_detach_all(struct mpi_win *win);

/* ---- win_sync.c ------------------------------------------------------------------------------ */

/* What was stored here is seen there, and what was stored there here. */
static inline void mpi_win_settle(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/* MPI_ERR_RMA_SYNC. */
int mpi_win_wrong(const char *what);
int mpi_win_check_assert(int assert, int allowed);
/* No access epoch is open but that of a fence that was not used. */
int mpi_win_check_closed(const struct mpi_win *win);
/* No epoch is open that would keep the window from being freed. */
int mpi_win_check_idle(const struct mpi_win *win);

/* ---- win_pscw.c ------------------------------------------------------------------------------ */

/* Memory for the groups; and, collectively, the way to say post and complete. */
int mpi_win_pscw_init(struct mpi_win *win);
void mpi_win_pscw_connect(struct mpi_win *win);
void mpi_win_pscw_fini(struct mpi_win *win);

/* As mpi_raise (error.h), on a window and its error handler. */
int mpi_raise_win(struct mpi_win *win, const char *function, int code) __attribute__((cold));

#endif
