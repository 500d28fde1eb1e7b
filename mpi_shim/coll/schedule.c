/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The operations of schedules, and how they are carried out: see schedule.h. Their buffers are
 * in schedule_memory.c.
 */
#include "mpi_shim/coll/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "mpi_shim/coll/calls.h"
#include "mpi_shim/coll/coll.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/pt2pt/p2p.h"
#include "mpi_shim/coll/schedule_memory.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

enum kind { SEND, RECV, WAIT, COPY, APPLY, PACK, UNPACK };

/* One operation; its kind says which fields are used. */
struct mpi_schedule_op {
	uint8_t kind;
	int peer;
	struct mpi_comm *comm;
	const void *from;
	void *to;
	MPI_Count count, to_count;
	struct mpi_type *type, *to_type;
	struct mpi_op *op;
};

void mpi_schedule_record(struct mpi_schedule *p, int rc)
{
	if (!rc)
		return;
	if (p->comm && (rc == MPI_ERR_PROC_ABORTED || p->comm->calls.found))
		p->failed = p->gone = p->comm->failed = true;
	if (p->rc)
		return;
	p->rc = rc;
	if (p->request)
		mpi_request_fail(p->request, rc, "%s", mpi_fail_text());
}

/* ---- messages under way ---------------------------------------------------------------------- */

void mpi_schedule_fail(struct mpi_schedule *p, int rc)
{
	mpi_schedule_record(p, rc);
	p->failed = true;
}

/* The message has ended. */
static void finish_message_of_schedule(struct mpi_schedule *p, struct mpi_request *r)
{
	const bool receives = r->kind == MPI_REQ_RECV;
	int rc;

	if (__builtin_expect(r->differs, 0))
		mpi_schedule_record(p, mpi_calls_refuse(p->comm ? p->comm : r->comm, r));

	if (p->failed && r->error != MPI_ERR_PROC_ABORTED)
		r->error = MPI_SUCCESS; /* there was no memory for the data */
	r->whole = NULL; /* shares its place with r->schedule, which the release checks */
	rc = mpi_request_finish(r, MPI_STATUS_IGNORE);
	if (rc == MPI_ERR_NO_MEM || (receives && rc == MPI_ERR_OTHER))
		mpi_schedule_fail(p, rc);
	else
		mpi_schedule_record(p, rc);
}

/* Make room for one more message. If memory runs out, wait for the messages under way; their
 * entries are then free. */
static void make_room_for_message(struct mpi_schedule *p)
{
	int room = 2 * p->open_room;
	struct mpi_request **more;

	if (p->opens < p->open_room)
		return;
	more = malloc((size_t)room * sizeof(*more));
	if (!more) {
		mpi_schedule_record(p,
				    mpi_fail_memory("a collective with so many messages at once"));
		while (p->opens > 0) {
			struct mpi_request *r = p->open[--p->opens];

			mpi_request_wait(r);
			finish_message_of_schedule(p, r);
		}
		return;
	}
	memcpy(more, p->open, (size_t)p->opens * sizeof(*more));
	if (p->open != p->few)
		free(p->open);
	p->open = more;
	p->open_room = room;
}

static int start_message(const struct mpi_schedule *p, const struct mpi_schedule_op *a,
			 struct mpi_request **r)
{
	enum mpi_send_mode mode = p->failed ? MPI_SEND_NO_MEMORY : MPI_SEND_STANDARD;
	/* without memory nothing is received, however long it is */
	const uint64_t mark = p->failed ? p->mark & ~(uint64_t)MPI_MARK_EXACT : p->mark;

	if (a->kind == RECV)
		return mpi_start_recv(a->to, a->count, a->type, a->peer, p->tag, a->comm,
				      mark | (a->comm->context + 1), r);
	return mpi_start_send(a->from, a->count, a->type, a->peer, p->tag, a->comm,
			      mark | (a->comm->context + 1), mode, r);
}

/* A rank of the communicator has died, or ranks disagree. */
static int __attribute__((cold, noinline)) leave_message_out(struct mpi_schedule *p)
{
	int rc;

	if (!mpi_comm_failed(p->comm))
		return MPI_SUCCESS;
	rc = mpi_fail_comm(p->comm);
	mpi_schedule_record(p, rc);
	return rc;
}

/* Begin a message. Even an empty one needs memory for its request if it is a receive, or a send
 * that does not go at once. Without that memory it is left out, and its other side waits for
 * it. */
static void begin_message(struct mpi_schedule *p, const struct mpi_schedule_op *a)
{
	struct mpi_schedule_op empty = { .kind = a->kind, .peer = a->peer, .comm = a->comm };
	struct mpi_request *r = NULL;
	int rc = MPI_ERR_NO_MEM;

	/* the death may be known since the schedule began: what arrived then for a collective
	 * inside this one is not for it */
	if (__builtin_expect(p->comm && p->comm->failed, 0) && leave_message_out(p))
		return;
	make_room_for_message(p);
	if (!p->failed)
		rc = start_message(p, a, &r);
	if (rc == MPI_ERR_NO_MEM) {
		mpi_schedule_fail(p, rc);
		empty.from = empty.to = p->small;
		empty.type = mpi_type_of(MPI_BYTE);
		rc = start_message(p, &empty, &r);
	}
	mpi_schedule_record(p, rc);
	if (!rc && r != &mpi_request_sent) {
		r->whole = p->comm;
		p->open[p->opens++] = r;
	}
}

/* True if all messages under way have ended; with `block`, wait for them. */
static bool ended(struct mpi_schedule *p, bool block)
{
	for (int i = 0; i < p->opens; i++) {
		if (block)
			mpi_request_wait(p->open[i]);
		else if (!p->open[i]->done)
			return false;
	}
	for (int i = 0; i < p->opens; i++)
		finish_message_of_schedule(p, p->open[i]);
	p->opens = 0;
	return true;
}

/* ---- operations ------------------------------------------------------------------------------ */

static void do_scheduled(struct mpi_schedule *p, const struct mpi_schedule_op *a)
{
	if (p->failed && (p->gone || (a->kind != SEND && a->kind != RECV)))
		return;
	switch (a->kind) {
	case SEND:
	case RECV:
		begin_message(p, a);
		break;
	case COPY:
		mpi_schedule_record(p, mpi_type_copy(a->from, a->count, a->type, a->to, a->to_count,
						     a->to_type));
		break;
	case APPLY:
		mpi_schedule_record(p, mpi_op_apply(a->op, a->from, a->to, a->count, a->type));
		break;
	case PACK:
		mpi_type_pack_bytes(a->type, a->from, a->count, 0, a->to,
				    (size_t)(a->count * a->type->size));
		break;
	case UNPACK:
		mpi_type_unpack_bytes(a->type, a->to, a->count, 0, a->from,
				      (size_t)(a->count * a->type->size));
		break;
	default:
		break;
	}
}

static void keep_object(void *object)
{
	if (object)
		mpi_object_keep(object);
}

static void write_down(struct mpi_schedule *p, const struct mpi_schedule_op *a)
{
	if (p->op_count == p->room) {
		int room = p->room ? 2 * p->room : 32;
		struct mpi_schedule_op *more = realloc(p->ops, (size_t)room * sizeof(*more));

		if (!more) {
			mpi_schedule_record(p, mpi_fail_memory("the steps of a collective"));
			return;
		}
		p->ops = more;
		p->room = room;
	}
	p->ops[p->op_count++] = *a;
	keep_object(a->type);
	keep_object(a->to_type);
	keep_object(a->op);
	keep_object(a->comm);
}

static void step_or_note(struct mpi_schedule *p, const struct mpi_schedule_op *a)
{
	if (p->now)
		do_scheduled(p, a);
	else
		write_down(p, a);
}

void mpi_schedule_send(struct mpi_schedule *p, const void *buf, MPI_Count count,
		       struct mpi_type *type, int dest, struct mpi_comm *comm)
{
	step_or_note(p, &(struct mpi_schedule_op){ .kind = SEND,
						   .peer = dest,
						   .comm = comm,
						   .from = buf,
						   .count = count,
						   .type = type });
}

void mpi_schedule_recv(struct mpi_schedule *p, void *buf, MPI_Count count, struct mpi_type *type,
		       int source, struct mpi_comm *comm)
{
	step_or_note(p, &(struct mpi_schedule_op){ .kind = RECV,
						   .peer = source,
						   .comm = comm,
						   .to = buf,
						   .count = count,
						   .type = type });
}

void mpi_schedule_wait(struct mpi_schedule *p)
{
	if (p->now)
		ended(p, true);
	else
		write_down(p, &(struct mpi_schedule_op){ .kind = WAIT });
}

void mpi_schedule_sendrecv(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			   struct mpi_type *sendtype, int dest, void *recvbuf, MPI_Count recvcount,
			   struct mpi_type *recvtype, int source, struct mpi_comm *comm)
{
	mpi_schedule_recv(p, recvbuf, recvcount, recvtype, source, comm);
	mpi_schedule_send(p, sendbuf, sendcount, sendtype, dest, comm);
	mpi_schedule_wait(p);
}

void mpi_schedule_copy(struct mpi_schedule *p, const void *from, MPI_Count from_count,
		       struct mpi_type *from_type, void *to, MPI_Count to_count,
		       struct mpi_type *to_type)
{
	step_or_note(p, &(struct mpi_schedule_op){ .kind = COPY,
						   .from = from,
						   .to = to,
						   .count = from_count,
						   .to_count = to_count,
						   .type = from_type,
						   .to_type = to_type });
}

void mpi_schedule_apply(struct mpi_schedule *p, struct mpi_op *op, const void *in, void *inout,
			MPI_Count count, struct mpi_type *type)
{
	step_or_note(p, &(struct mpi_schedule_op){ .kind = APPLY,
						   .op = op,
						   .from = in,
						   .to = inout,
						   .count = count,
						   .type = type });
}

void mpi_schedule_pack(struct mpi_schedule *p, struct mpi_type *type, const void *buf,
		       MPI_Count count, void *data)
{
	step_or_note(p,
		     &(struct mpi_schedule_op){
			     .kind = PACK, .from = buf, .to = data, .count = count, .type = type });
}

void mpi_schedule_unpack(struct mpi_schedule *p, struct mpi_type *type, void *buf, MPI_Count count,
			 const void *data)
{
	step_or_note(
		p, &(struct mpi_schedule_op){
			   .kind = UNPACK, .from = data, .to = buf, .count = count, .type = type });
}

/* ---- carrying out ---------------------------------------------------------------------------- */

/* Check for a dead rank where the schedule would begin something. */
static inline int check_schedule_for_failure(struct mpi_schedule *p)
{
	return __builtin_expect(p->comm->failed || mpi_proto.any_dead, 0) ? leave_message_out(p)
									  : MPI_SUCCESS;
}

/* Advance as far as possible without waiting; true: to the end. */
static bool advance_schedule(struct mpi_schedule *p)
{
	if (!p->gone)
		check_schedule_for_failure(p);
	for (; p->at < p->op_count; p->at++) {
		if (p->ops[p->at].kind != WAIT)
			do_scheduled(p, &p->ops[p->at]);
		else if (!ended(p, false))
			return false;
	}
	return ended(p, false);
}

static void free_schedule(struct mpi_schedule *p)
{
	for (int i = 0; i < p->op_count; i++) {
		mpi_object_release(p->ops[i].type);
		mpi_object_release(p->ops[i].to_type);
		mpi_object_release(p->ops[i].op);
		mpi_object_release(p->ops[i].comm);
	}
	free(p->ops);
	if (p->open != p->few)
		free(p->open);
	mpi_schedule_memory_fini(p);
	mpi_object_release(p->comm);
	free(p);
}

static bool run_schedule(struct mpi_hook *s)
{
	struct mpi_schedule *p = (struct mpi_schedule *)s;
	struct mpi_request *r = p->request;

	if (!advance_schedule(p))
		return false;
	if (!r->persistent) {
		r->schedule = NULL;
		free_schedule(p);
	}
	mpi_request_done(r);
	return true;
}

static void init(struct mpi_schedule *p, struct mpi_comm *comm, int tag, bool now)
{
	p->now = now;
	p->failed = p->gone = false;
	p->comm = comm;
	p->tag = tag;
	p->mark = 0;
	p->rc = MPI_SUCCESS;
	p->request = NULL;
	p->ops = NULL;
	p->op_count = p->room = p->at = 0;
	p->open = p->few;
	p->opens = 0;
	p->open_room = MPI_SCHEDULE_FEW;
	mpi_schedule_memory_init(p);
}

int mpi_schedule_begin(struct mpi_schedule *p, struct mpi_comm *comm)
{
	init(p, comm, MPI_TAG_BLOCKING, true);
	return check_schedule_for_failure(p);
}

void mpi_schedule_begin_last(struct mpi_schedule *p)
{
	init(p, NULL, MPI_TAG_LAST, true);
}

int mpi_schedule_end(struct mpi_schedule *p, int rc)
{
	if (p->opens)
		ended(p, true);
	if (p->open != p->few)
		free(p->open);
	mpi_schedule_memory_fini(p);
	if (rc)
		mpi_schedule_record(p, rc); /* an error of the area counts for the next ones too */
	return rc ? rc : p->rc;
}

struct mpi_schedule *mpi_schedule_new(struct mpi_comm *comm)
{
	struct mpi_schedule *p = aligned_alloc(64, sizeof(*p));

	if (!p) {
		mpi_fail_memory("a collective");
		return NULL;
	}
	init(p, comm, MPI_TAG_SCHEDULES + (int)(comm->schedules++ & MPI_TAG_SCHEDULES_MASK), false);
	p->steps.run = run_schedule;
	mpi_object_keep(comm);
	return p;
}

/* Make the request of a schedule that has been made. */
static int with_request(struct mpi_schedule *p, int rc, struct mpi_request **request)
{
	struct mpi_request *r;

	if (!rc)
		rc = p->rc;
	r = rc ? NULL : mpi_request_new(MPI_REQ_HOOK);
	if (!r) {
		free_schedule(p);
		return rc ? rc : MPI_ERR_NO_MEM;
	}
	r->comm = mpi_object_keep(p->comm);
	r->schedule = p;
	p->request = r;
	*request = r;
	return MPI_SUCCESS;
}

int mpi_schedule_start(struct mpi_schedule *p, int rc, struct mpi_request **request)
{
	rc = with_request(p, rc, request);
	if (!rc)
		mpi_hooks_start(&p->steps);
	return rc;
}

int mpi_schedule_keep(struct mpi_schedule *p, int rc, struct mpi_request **request)
{
	rc = with_request(p, rc, request);
	if (!rc)
		p->request->persistent = p->request->done = true;
	return rc;
}

/* MPI_Start. */
static int launch(struct mpi_request *r)
{
	struct mpi_schedule *p = r->schedule;

	p->at = 0;
	p->failed = p->gone = false;
	p->rc = MPI_SUCCESS;
	p->request->done = false;
	p->request->error = MPI_SUCCESS;
	mpi_hooks_start(&p->steps);
	return MPI_SUCCESS;
}

static void free_of_request(struct mpi_request *r)
{
	if (r->schedule)
		free_schedule(r->schedule);
}

void mpi_schedules_init(void)
{
	mpi_request_ops[MPI_REQ_HOOK] = (struct mpi_request_ops){
		.launch = launch,
		.free = free_of_request,
	};
}
