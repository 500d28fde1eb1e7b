/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The process's part in the MPI job: its Portals interface, its peers, the global lock, and
 * counters.
 *
 * The global lock guards everything in mpi_shim/. Entry points take it when threads may run
 * concurrently (MPI_THREAD_MULTIPLE). It is released around waits and user callbacks.
 */
#ifndef MPI_SHIM_WORLD_H
#define MPI_SHIM_WORLD_H

#include <mpi.h>
#include <portals3.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The shim's counters: performance variables of MPI_T. X(NAME, text) */
#define MPI_COUNT_TABLE(X)                                                                         \
	X(SENT_SHORT, "messages sent by the short protocol")                                       \
	X(SENT_LONG, "messages sent by the long protocol")                                         \
	X(SENT_LONG_NO_CREDIT, "short messages sent by the long protocol for want of credit")      \
	X(SENDS_QUEUED, "sends that waited for a slot in the receiver's event queue")              \
	X(RECV_EXPECTED, "messages that found their receive posted")                               \
	X(RECV_UNEXPECTED_SHORT, "short messages that came before their receive")                  \
	X(RECV_UNEXPECTED_LONG, "long messages that came before their receive")                    \
	X(UNEXPECTED_NOW, "unexpected messages waiting")                                           \
	X(UNEXPECTED_MOST, "most unexpected messages ever waiting")                                \
	X(UNEXPECTED_BYTES, "bytes of unexpected messages held")                                   \
	X(UNEXPECTED_BYTES_MOST, "most bytes of unexpected messages ever held")                    \
	X(UNEXPECTED_MEMORY, "memory of short unexpected messages that wait, entries included")    \
	X(UNEXPECTED_MEMORY_MOST, "most memory of short unexpected messages ever")                 \
	X(BLOCKS_RELINKED, "times a block for unexpected messages was emptied and linked again")   \
	X(MESSAGES_MOVED, "unexpected messages moved out of a block to free it")                   \
	X(CREDITS_RETURNED, "messages that gave credit back to senders")                           \
	X(POSTS_RETRIED, "receives posted again because a message arrived meanwhile")

enum mpi_count {
#define MPI_COUNT_ENUM_(name, text) MPI_COUNT_##name,
	MPI_COUNT_TABLE(MPI_COUNT_ENUM_)
#undef MPI_COUNT_ENUM_
		MPI_COUNT_COUNT_
};

enum mpi_phase { MPI_PHASE_BEFORE, MPI_PHASE_RUNNING, MPI_PHASE_AFTER };

/*
 * MPI_Init and sessions open the library, any number of times, beside and after each other. The
 * first one starts what is local, and what needs no other process. Portals is opened, and the
 * others are met, when the first is to communicate: connect. That is once in a process, as all
 * processes of the job do it together. So Portals stays open until the process ends, and a
 * session after MPI_Finalize finds it open.
 */
struct mpi_world {
	_Atomic int phase; /* enum mpi_phase: RUNNING while anything is open */
	_Atomic int model; /* enum mpi_phase: BEFORE MPI_Init, AFTER MPI_Finalize */
	int sessions;      /* that are open */
	_Atomic bool connected;
	/* Opens Portals, if it is not yet, and waits until all processes of the job do. Releases
	 * the lock meanwhile. MPI_SUCCESS or mpi_fail(...). */
	int (*connect)(void);
	/* Nothing is open any more. */
	void (*all_closed)(void);
	bool threaded; /* MPI_THREAD_MULTIPLE, or sessions: entry points lock */
	int level;     /* what MPI_Init_thread provided */
	int rank, size;
	int processes; /* known to this one: the ranks, and those of other jobs (process.h) */
	uint32_t jid;  /* the job's Portals id */
	ptl_handle_ni_t ni;
	ptl_process_id_t *id; /* by number (process.h) */
	pthread_t main_thread;
	pthread_mutex_t lock;
	bool yield_due; /* yield the processor once the lock is released */
	uint64_t counts[MPI_COUNT_COUNT_];
};

extern struct mpi_world mpi_world;

static inline void mpi_lock(void)
{
	if (mpi_world.threaded)
		pthread_mutex_lock(&mpi_world.lock);
}

/* Releases the lock and yields the processor. */
void mpi_unlock_and_yield(void) __attribute__((cold));

static inline void mpi_unlock(void)
{
	if (!mpi_world.threaded)
		return;
	if (__builtin_expect(mpi_world.yield_due, 0))
		mpi_unlock_and_yield();
	else
		pthread_mutex_unlock(&mpi_world.lock);
}

/* For a callback of the user's, which may call MPI. */
static inline void mpi_unlock_for_callback(void)
{
	mpi_unlock();
}

static inline void mpi_lock_after_callback(void)
{
	mpi_lock();
}

/* Count what is open: a session or, `sessions` NULL, the world model. The lock is held. The last
 * one that closes calls all_closed. */
void mpi_world_open(int *sessions);
void mpi_world_close(int *sessions);

/* Returns which of the launcher's programs this process runs; 0 if unknown. Asks Portals the
 * first time. */
int mpi_world_program(void);

/* Ends the job with this exit code (1 if its low 8 bits are 0), after one line to stderr. */
_Noreturn void mpi_abort_job(int code, const char *message);

#endif
