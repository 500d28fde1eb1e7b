/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Events for tools (MPI-4 §15.3.8): what happens to messages, waits, requests and files. A place
 * that raises an event asks first whether any tool watches that kind. While none does, the
 * paths of short messages have not even that branch: the functions and limits that they use
 * anyway are exchanged when the first tool begins to watch.
 *
 * A raised event is copied into a ring with its time, and read from there by api/tool_event.c.
 * It reads at once, except while Portals holds its own lock. The global lock guards all of this.
 */
#ifndef MPI_SHIM_EVENTS_H
#define MPI_SHIM_EVENTS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct mpi_comm;
struct mpi_request;

enum mpi_event {
	MPI_EVENT_UNEXPECTED, /* a message has come before its receive */
	MPI_EVENT_MATCHED,    /* a message has met its receive */
	MPI_EVENT_WAIT_BEGIN, /* a blocking call waits for requests that are not done */
	MPI_EVENT_WAIT_END,
	MPI_EVENT_DONE, /* a request is complete, in whatever call */
	MPI_EVENT_FILE_BEGIN,
	MPI_EVENT_FILE_END,
	MPI_EVENTS
};

/* The data that a tool reads, by kind of event; api/tool_event.c describes them. `comm` and
 * `file` are the numbers of handles (MPI_Comm_fromint); 0: none. */
struct mpi_event_message {
	MPI_Count bytes;
	int comm, source, tag;
	int collective; /* it belongs to a collective */
	int waited;     /* it was here before its receive */
};

struct mpi_event_wait {
	int requests;        /* number of requests waited for */
	int comm, peer, tag; /* where there is one, else 0, MPI_ANY_SOURCE, MPI_ANY_TAG */
	enum mpi_event_what {
		MPI_WHAT_SEND,
		MPI_WHAT_RECEIVE,
		MPI_WHAT_GENERALIZED,
		MPI_WHAT_ONE_SIDED,
		MPI_WHAT_COLLECTIVE,
		MPI_WHAT_SEVERAL,
		MPI_WHAT_PROBE
	} what;
};

struct mpi_event_done {
	MPI_Count bytes;
	int comm, peer, tag;
	int what; /* enum mpi_event_what */
	int error;
};

enum mpi_file_operation {
	MPI_EVENT_FILE_OPEN,
	MPI_EVENT_FILE_CLOSE,
	MPI_EVENT_FILE_READ,
	MPI_EVENT_FILE_WRITE,
	MPI_EVENT_FILE_SYNC,
	MPI_EVENT_FILE_RESIZE,
	MPI_EVENT_FILE_OTHER
};

struct mpi_event_file {
	MPI_Count offset, bytes;
	int file;
	int operation; /* enum mpi_file_operation */
	int collective;
	int error;
};

struct mpi_event_record {
	int64_t ns; /* of CLOCK_MONOTONIC */
	enum mpi_event kind;
	union {
		struct mpi_event_message message;
		struct mpi_event_wait wait;
		struct mpi_event_done done;
		struct mpi_event_file file;
	};
};

/* ---- raising --------------------------------------------------------------------------------- */

/* Bit k: a tool watches events of kind k. */
extern uint32_t mpi_events_watched;

static inline bool mpi_event_watched(enum mpi_event kind)
{
	return __builtin_expect(mpi_events_watched >> kind & 1, 0);
}

/* To be called for watched kinds only. `context` is that of the match bits. */
void mpi_event_message(enum mpi_event kind, uint64_t context, int source, int tag, MPI_Count bytes,
		       bool waited) __attribute__((cold));
void mpi_event_done(const struct mpi_request *r) __attribute__((cold));

/* Around a wait for one request, or for one of several (r NULL). A tool may call anything of
 * MPI in between, as other threads may: the global lock is released meanwhile. */
void mpi_event_wait(enum mpi_event kind, const struct mpi_request *r, int requests)
	__attribute__((cold));
/* The same for a probe, and for a collective in shared memory, with the lock kept: tools may
 * call functions of MPI_T only. */
void mpi_event_wait_probe(enum mpi_event kind, const struct mpi_comm *comm, int source, int tag)
	__attribute__((cold));
void mpi_event_wait_collective(enum mpi_event kind, const struct mpi_comm *comm)
	__attribute__((cold));

/* Around an operation on a file; needs the global lock, and may release it. At the beginning
 * `bytes` are those asked for, at the end those that were moved. A file without a handle yet
 * is 0. Does nothing while no tool watches. */
void mpi_event_file_now(enum mpi_event kind, const struct mpi_event_file *file)
	__attribute__((cold));
static inline void mpi_event_file(enum mpi_event kind, const struct mpi_event_file *file)
{
	if (mpi_event_watched(kind))
		mpi_event_file_now(kind, file);
}

/* Between these, events stay in the ring: Portals may not be called. */
void mpi_events_hold(void);
void mpi_events_let_go(void);

/* Have tools read what was held, from a place where they may call functions of MPI_T only. */
void mpi_events_flush(void);

/* ---- reading --------------------------------------------------------------------------------- */

#define MPI_EVENTS_KEPT 1024 /* a power of two */

/* The reader. `free`: the global lock may be released, and callbacks may call all of MPI. */
extern void (*mpi_events_reader)(bool free);

/* Nanoseconds, as in a record. */
int64_t mpi_event_time(void);

/* The number of events raised so far, of all kinds or of one. Those of the last MPI_EVENTS_KEPT
 * are there. */
extern uint64_t mpi_events_raised, mpi_events_raised_of[MPI_EVENTS];
const struct mpi_event_record *mpi_event_at(uint64_t number);

/* Sets which kinds are watched. False: no memory for the ring. */
bool mpi_events_watch(uint32_t kinds);

/* Sets what is told of a change of mpi_events_watched, and at MPI_Init; once. */
void mpi_events_at_change(void (*changed)(void));
/* Apply mpi_events_watched to a library that has just started. */
void mpi_events_start(void);

#endif
