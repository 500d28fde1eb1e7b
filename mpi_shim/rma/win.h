/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Windows: memory that other ranks read and change without help from its owner.
 *
 * There are two paths to a target's memory. If the library allocated the window and the target
 * is on this node, its memory is mapped here, and operations are loads and stores. All other
 * operations are puts, gets or atomics of Portals, or CMA copies (cma.h). Each window is an
 * entry of the RMA portal. The upper half of its match bits is the window's number at the
 * target. The lower half is ignored there: it is the initiator's record of the operation and
 * comes back in the answer (rma.h). So the target's process is never needed.
 *
 * Accumulates must be atomic against each other, so all ranks of a window use one path for
 * them. The path is processor instructions if all ranks have the whole window mapped
 * (`direct`), else atomics of Portals.
 *
 * Each rank has a struct mpi_win_control. It holds the lock words of passive targets and the
 * table of the memory attached to a dynamic window. It is reached by the same two paths. Post
 * and complete are words in the shared memory, or messages (win_pscw.c).
 *
 * Ranks are those of the window. Functions return an MPI error class, with the text kept by
 * mpi_fail(), and are called with the library's lock held.
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
	uint32_t number; /* number in the match bits; 0: a free slot */
	uint32_t me;     /* the owner's */
};

#define MPI_REGIONS_MOST 1024

/* `after` is incremented before a change, `before` after it. A reader reads `before`, the
 * regions and `after` in this order. If both counts are equal, it has not seen a half change. */
struct mpi_regions {
	_Atomic uint64_t before;
	struct mpi_region region[MPI_REGIONS_MOST];
	_Atomic uint64_t after;
};

/*
 * Words of a rank that the other ranks change. The lock is a ticket lock: a process takes the
 * next ticket from `users`. It has the lock shared when `read` reaches its ticket, and
 * exclusively when `write` does. A reader admits the next reader at once. So nobody is
 * overtaken.
 */
struct mpi_win_control {
	_Alignas(64) _Atomic uint32_t users;
	_Atomic uint32_t read, write;
	_Atomic uint32_t sleepers; /* on `read` and `write`; direct windows only */
	/* guards elements without atomic instructions, or many elements; window rank + 1 of
	 * the holder, 0: free */
	_Alignas(64) _Atomic uint32_t elements;
	/* the owner is changing elements by atomic instructions: window rank + 1 of the target,
	 * or 0 */
	_Alignas(64) _Atomic uint32_t at_work;
	/* dynamic windows only; else the struct ends before it */
	_Alignas(64) struct mpi_regions regions;
};
#define MPI_CONTROL_BYTES offsetof(struct mpi_win_control, regions)

/*
 * Words that one rank writes in the memory of another: how many epochs it has posted for that
 * rank, and how many it has completed there. After each control there is one pair for each rank.
 * Only windows with shared data have them.
 */
struct mpi_win_pair {
	_Atomic uint64_t posted, completed;
};

/* Properties of a rank's part, exchanged when the window is made. */
struct mpi_win_part {
	int64_t size, unit;
	uint32_t number;  /* match bits of its memory; 0: none */
	uint32_t control; /* match bits of its control */
	int32_t error;    /* error class if it cannot take part */
	int16_t flavor;   /* must be the same on all ranks */
	int16_t tight;    /* as in struct mpi_win; one rank that wants it decides for all */
	/* for cma.c: its process, 0 if CMA may not be used; a token and its address there; the
	 * address of the window */
	int64_t pid;
	uint64_t token, token_at, address;
};

struct mpi_win_target {
	char *base;                      /* its memory, mapped here; NULL: not mapped */
	struct mpi_win_control *control; /* likewise */
	MPI_Aint size, unit;
	uint32_t number, control_number;
	pid_t pid;        /* CMA reaches the memory of this process; 0: it does not */
	uint64_t address; /* address of the window's memory in that process */
	int world;
	uint8_t lock;      /* held by us: 0, 1 for shared, 2 for exclusive */
	bool lock_nocheck; /* MPI_MODE_NOCHECK: no lock was taken */
	bool started;      /* in the group of MPI_Win_start */
	uint32_t pending;  /* operations of this rank in progress */
	bool along;        /* puts without a record await an answer (mpi_rma_put_along) */
	int error;         /* error of a failed operation; the next synchronization returns it */
	struct mpi_regions *regions; /* dynamic: its table as last read */
	/* Post and start by words: `there` is the pair that this rank writes, `here` the pair
	 * that it reads; NULL: by messages. `posts` and `starts` count the epochs posted for
	 * that rank and started there. */
	struct mpi_win_pair *there, *here;
	uint64_t posts, starts;
};

/* The ranks of an epoch; there is room for all ranks of the window. */
struct mpi_win_group {
	int *rank;
	int size;
};

/* Access epochs. The one that a fence opens need not be used. */
enum mpi_access {
	MPI_ACCESS_NONE,
	MPI_ACCESS_FENCE,
	MPI_ACCESS_START,
	MPI_ACCESS_LOCK,
	MPI_ACCESS_LOCK_ALL
};

/* A run: operations that cma.c times together. It lasts from the first operation that has a
 * choice of path until no operation of this process on the window is in progress. */
struct mpi_win_run {
	/* tuner of the length class it measures; NULL: there is no run */
	struct base_tuner *path;
	enum base_tuner_phase phase; /* the tuner's phase when the run began */
	bool timed;
	bool yields; /* to operations of another class that are as long */
	uint64_t longest, bytes, ns;
};

struct mpi_win {
	struct mpi_obj obj;
	struct mpi_comm *comm; /* its own */
	int rank, size;
	int flavor, model;
	int unit; /* value of the attribute; MPI_UNDEFINED if it is longer than an int */
	bool direct;
	bool tight;      /* shared memory has no gaps between the ranks' parts */
	bool fence_used; /* operations were started in a fence's epoch */
	uint8_t access;  /* enum mpi_access */
	int locks;       /* targets locked by MPI_Win_lock */
	void *base;
	MPI_Aint bytes;
	struct mpi_win_target *target;
	uint32_t pending; /* sum over all targets */
	int along;        /* targets with `along` set */
	struct mpi_win_run run;
	struct mpi_errhandler *handler;
	struct mpi_attr *attrs;
	struct mpi_info *info;
	/* MPI_Win_start, MPI_Win_post */
	struct mpi_win_group started, posted;
	bool exposed;    /* by MPI_Win_post */
	bool in_shmcoll; /* a thread waits in `shmcoll` for post or complete */
	bool words;      /* post and complete by words; else by messages */
	/* the communicator's shared-memory collective area, to wait for words; NULL: none */
	struct mpi_shmcoll *shmcoll;
	struct mpi_request **completes; /* receives of the messages of MPI_Win_complete */
	/* this rank's memory and entries for the two paths */
	uint64_t token; /* CMA: proves to other ranks that they read this process; 0: not offered */
	void *segment;
	size_t segment_bytes;
	struct mpi_win_control *control; /* this rank's; in the segment or malloc'd */
	bool own_control;
	ptl_handle_me_t me, control_me;
	char name[MPI_MAX_OBJECT_NAME];
};

static inline struct mpi_win_target *mpi_win_self(const struct mpi_win *win)
{
	return &win->target[win->rank];
}

/* ---- win.c ----------------------------------------------------------------------------------- */

/* The window of `handle`; NULL: not a window. */
static inline struct mpi_win *mpi_win_of(MPI_Win handle)
{
	return mpi_object_of(handle, MPI_KIND_WIN);
}

/* ---- win_shared.c ---------------------------------------------------------------------------- */

/*
 * Map memory that the ranks of one node share: a control for each rank and, with `data`, all
 * pairs and each rank's `size` bytes. Collective. Fills in base, control and pairs of the
 * targets on this node. *mapped: it worked on all nodes; else no rank has any. All ranks get the
 * same result.
 */
int mpi_win_share(struct mpi_win *win, bool data, bool *mapped);
void mpi_win_unshare(struct mpi_win *win);
/* Whether all ranks are on this node. */
bool mpi_win_one_node(const struct mpi_win *win);

/* ---- win_lock.c ------------------------------------------------------------------------------ */

/* Acquire or release the lock of a target, by either path. Acquiring blocks and makes progress
 * meanwhile; releasing by Portals waits for the answers. MPI_ERR_PROC_ABORTED: a rank of the
 * window has died and may have held the lock. */
int mpi_win_take_lock(struct mpi_win *win, struct mpi_win_target *t, bool exclusive);
int mpi_win_give_lock(struct mpi_win *win, struct mpi_win_target *t, bool exclusive);
/*
 * The lock of elements without atomic instructions, or of many elements; direct windows only. A
 * process that changes elements by instructions announces it in its own control, then checks
 * whether the lock is held. A holder that does not use instructions waits for all processes that
 * have announced it.
 */
void mpi_win_lock_elements(struct mpi_win *win, struct mpi_win_target *t);
void mpi_win_unlock_elements(struct mpi_win_target *t);
void mpi_win_await_elements(struct mpi_win *win, struct mpi_win_target *t);

static inline bool mpi_win_begin_elements(struct mpi_win *win, struct mpi_win_target *t)
{
	_Atomic uint32_t *mine = &mpi_win_self(win)->control->at_work;

	/* seq_cst, both: they pair with the exchange in mpi_win_lock_elements and the loads in
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
		/* release: pairs with mpi_win_await_elements */
		atomic_store_explicit(&mpi_win_self(win)->control->at_work, 0,
				      memory_order_release);
}

/* ---- win_dynamic.c --------------------------------------------------------------------------- */

/*
 * Find data at `address` of a target of a dynamic window: number for the match bits, and offset.
 * *bytes is the length wanted. On return it is the length, in whole elements, that is contiguous
 * in attached memory. The next region may continue where this one ends. May fetch the target's
 * table and wait for it. MPI_ERR_RMA_RANGE: not one element is attached.
 */
int mpi_win_find_region(struct mpi_win *win, struct mpi_win_target *t, uint64_t address,
			size_t element, size_t *bytes, uint32_t *number, uint64_t *offset);
void mpi_win_detach_all(struct mpi_win *win);

/* ---- win_sync.c ------------------------------------------------------------------------------ */

/* Order memory: earlier stores of this rank become visible to others, and theirs to this rank. */
static inline void mpi_win_settle(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/* Returns MPI_ERR_RMA_SYNC with the text `what`. */
int mpi_win_wrong(const char *what);
int mpi_win_check_assert(int assert, int allowed);
/* MPI_SUCCESS if no access epoch is open, or only that of a fence that was not used. */
int mpi_win_check_closed(const struct mpi_win *win);
/* MPI_SUCCESS if no open epoch forbids to free the window. */
int mpi_win_check_idle(const struct mpi_win *win);

/* ---- win_pscw.c ------------------------------------------------------------------------------ */

/* Allocate the groups; then, collectively, choose words or messages for post and complete. */
int mpi_win_pscw_init(struct mpi_win *win);
void mpi_win_pscw_connect(struct mpi_win *win);
void mpi_win_pscw_fini(struct mpi_win *win);

/* As mpi_raise (error.h), for a window and its error handler. */
int mpi_raise_win(struct mpi_win *win, const char *function, int code) __attribute__((cold));

struct base_waits_body;
/* Lists the locks that this process holds (core/waiting.h). */
void mpi_win_describe_locks(struct base_waits_body *body);

#endif
