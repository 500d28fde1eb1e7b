/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Events for tools: see events.h.
 */
#include "mpi_shim/core/events.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/progress.h"
#include "mpi_shim/core/request.h"

uint32_t mpi_events_watched;
void (*mpi_events_reader)(bool free);
uint64_t mpi_events_raised, mpi_events_raised_of[MPI_EVENTS];

static struct mpi_event_record *ring;
static bool held;
static void (*changed)(void);

int64_t mpi_event_time(void)
{
	return (int64_t)base_now_ns();
}

const struct mpi_event_record *mpi_event_at(uint64_t number)
{
	return &ring[number % MPI_EVENTS_KEPT];
}

static struct mpi_event_record *next_record(enum mpi_event kind)
{
	struct mpi_event_record *e = &ring[mpi_events_raised++ % MPI_EVENTS_KEPT];

	mpi_events_raised_of[kind]++;
	e->ns = mpi_event_time();
	e->kind = kind;
	return e;
}

void mpi_events_flush(void)
{
	if (!held)
		mpi_events_reader(false);
}

/* From a place without restrictions, unless events are held. */
static void read_freely(void)
{
	if (!held)
		mpi_events_reader(true);
}

void mpi_events_hold(void)
{
	held = true;
}

void mpi_events_let_go(void)
{
	held = false;
}

static int comm_number(const struct mpi_comm *c)
{
	return c ? (int)c->obj.handle : 0;
}

static bool is_context_of(const struct mpi_comm *c, uint64_t context)
{
	return c->obj.handle && ((c->context ^ context) & 0x1ffe) == 0;
}

/* The communicator of a message. Only its context is known before it has met its receive. */
static int comm_of_context(uint64_t context)
{
	const struct mpi_comm *c;

	if (is_context_of(&mpi_comm_world, context))
		return comm_number(&mpi_comm_world);
	if (is_context_of(&mpi_comm_self, context))
		return comm_number(&mpi_comm_self);
	for (uint32_t i = 0; (c = mpi_pool_at(MPI_KIND_COMM, i)); i++)
		if (is_context_of(c, context))
			return comm_number(c);
	return 0;
}

void mpi_event_message(enum mpi_event kind, uint64_t context, int source, int tag, MPI_Count bytes,
		       bool waited)
{
	next_record(kind)->message = (struct mpi_event_message){
		.bytes = bytes,
		.comm = comm_of_context(context),
		.source = source,
		.tag = tag,
		.collective = (int)(context & 1),
		.waited = waited,
	};
	mpi_events_flush();
}

static bool of_collective(const struct mpi_request *r)
{
	return r->kind == MPI_REQ_HOOK ||
	       (r->kind <= MPI_REQ_RECV && r->comm && ((r->context ^ r->comm->context) & 1));
}

static enum mpi_event_what what_of(const struct mpi_request *r)
{
	if (of_collective(r))
		return MPI_WHAT_COLLECTIVE;
	switch (r->kind) {
	case MPI_REQ_SEND:
		return MPI_WHAT_SEND;
	case MPI_REQ_RECV:
		return MPI_WHAT_RECEIVE;
	case MPI_REQ_GENERALIZED:
		return MPI_WHAT_GENERALIZED;
	default:
		return MPI_WHAT_ONE_SIDED;
	}
}

/* Whether the request has a peer, a tag and a length. */
static bool has_message(const struct mpi_request *r)
{
	return r->comm && (r->kind == MPI_REQ_SEND || r->kind == MPI_REQ_RECV);
}

void mpi_event_done(const struct mpi_request *r)
{
	const bool message = has_message(r), came = r->kind == MPI_REQ_RECV;

	next_record(MPI_EVENT_DONE)->done = (struct mpi_event_done){
		.bytes = message ? r->bytes : 0,
		.comm = comm_number(r->comm),
		.peer = !message ? MPI_ANY_SOURCE
			: came   ? r->source
				 : r->peer,
		.tag = !message ? MPI_ANY_TAG
		       : came   ? r->came
				: r->tag,
		.what = what_of(r),
		.error = r->error,
	};
	mpi_events_flush();
}

static void record_wait(enum mpi_event kind, struct mpi_event_wait wait)
{
	if (mpi_event_watched(kind))
		next_record(kind)->wait = wait;
}

void mpi_event_wait(enum mpi_event kind, const struct mpi_request *r, int requests)
{
	struct mpi_event_wait wait = {
		.requests = requests,
		.peer = MPI_ANY_SOURCE,
		.tag = MPI_ANY_TAG,
		.what = MPI_WHAT_SEVERAL,
	};

	if (r) {
		wait.comm = comm_number(r->comm);
		wait.what = what_of(r);
	}
	if (r && has_message(r)) {
		wait.peer = r->peer;
		wait.tag = r->tag;
	}
	record_wait(kind, wait);
	read_freely();
}

void mpi_event_wait_probe(enum mpi_event kind, const struct mpi_comm *comm, int source, int tag)
{
	record_wait(kind, (struct mpi_event_wait){
				  .comm = comm_number(comm),
				  .peer = source,
				  .tag = tag,
				  .what = MPI_WHAT_PROBE,
			  });
	mpi_events_flush();
}

void mpi_event_wait_collective(enum mpi_event kind, const struct mpi_comm *comm)
{
	record_wait(kind, (struct mpi_event_wait){
				  .comm = comm_number(comm),
				  .peer = MPI_ANY_SOURCE,
				  .tag = MPI_ANY_TAG,
				  .what = MPI_WHAT_COLLECTIVE,
			  });
	mpi_events_flush();
}

void mpi_event_file_now(enum mpi_event kind, const struct mpi_event_file *file)
{
	next_record(kind)->file = *file;
	read_freely();
}

/* ---- watching -------------------------------------------------------------------------------- */

void mpi_events_at_change(void (*of_change)(void))
{
	changed = of_change;
}

void mpi_events_start(void)
{
	mpi_request_plain = mpi_event_watched(MPI_EVENT_DONE) ? MPI_PLAIN_NEVER : MPI_PLAIN_PARTS;
	mpi_progress_mode_changed();
	if (changed)
		changed();
}

bool mpi_events_watch(uint32_t kinds)
{
	if (!ring && kinds)
		ring = calloc(MPI_EVENTS_KEPT, sizeof(*ring));
	if (!ring && kinds)
		return false;
	mpi_events_watched = kinds;
	mpi_events_start();
	return true;
}
