/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Writes what this process waits for. The body is made in memory of this process and copied to
 * the file between two changes of its sequence number. The time since which nothing has changed
 * begins anew when any wait, message or operation has come or gone. It does so, too, when this
 * process was stopped or had no processor: it may have messages that it has not seen.
 */
#include "mpi_shim/core/waiting.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "base/shared.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/progress.h"
#include "mpi_shim/core/world.h"

#define GAP_MS 2000 /* longer between two beats: this process did not run */
#define OTHERS 2

struct mpi_wait *mpi_waits;

static struct base_waits *file;
static struct base_waits_body body;
static uint64_t signature; /* of the body */
static void (*describe_also[OTHERS])(struct base_waits_body *body);
static int others_also;
/* The wait for one request, which has no struct of its own. */
static struct mpi_wait plain;

/* ---- frames ---------------------------------------------------------------------------------- */

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *arg)
{
	struct mpi_wait *w = arg;
	const uint64_t ip = _Unwind_GetIP(context);

	if (!ip || w->frames == BASE_WAITS_FRAMES)
		return _URC_END_OF_STACK;
	w->frame[w->frames++] = ip;
	return _URC_NO_REASON;
}

static void keep_frames(struct mpi_wait *w)
{
	if (!w->frames)
		_Unwind_Backtrace(add_frame, w);
}

void mpi_waits_seen(void)
{
	for (struct mpi_wait *w = mpi_waits; w; w = w->next)
		if (w->thread == base_thread() && w->since_ms)
			keep_frames(w);
}

/* ---- operations ------------------------------------------------------------------------------ */

static uint64_t mix_in(uint64_t h, uint64_t more)
{
	h = (h ^ more) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static int32_t tag_of(int tag)
{
	return tag == MPI_ANY_TAG ? BASE_WAITS_ANY : tag;
}

static int32_t world_peer(const struct mpi_comm *comm, int rank)
{
	if (rank < 0 || !comm || rank >= comm->remote_size)
		return BASE_WAITS_ANY;
	return mpi_comm_peer(comm, rank);
}

static enum base_wait_op_kind op_kind_of(const struct mpi_request *r)
{
	if (r->kind == MPI_REQ_SEND)
		return BASE_WAIT_OP_SEND;
	if (r->kind == MPI_REQ_RECV)
		return BASE_WAIT_OP_RECV;
	return r->kind == MPI_REQ_HOOK && r->comm ? BASE_WAIT_OP_COLLECTIVE : BASE_WAIT_OP_OTHER;
}

/* Whether the operation ends by itself, or by something that is none of MPI's business. */
static bool moves(const struct mpi_request *r)
{
	if (op_kind_of(r) == BASE_WAIT_OP_OTHER)
		return true;
	return mpi_request_ops[r->kind].moves && mpi_request_ops[r->kind].moves(r);
}

/* When the operation was first listed. */
static int64_t first_seen(uint32_t handle, int64_t now)
{
	const bool current = now - body.beat_ms <= GAP_MS; /* else handles may be used again */

	for (uint32_t i = 0; current && i < body.ops && i < BASE_WAITS_OPS; i++)
		if (body.op[i].handle == handle)
			return body.op[i].since_ms;
	return now - BASE_WAITS_BEAT_MS;
}

/* Lists an operation, unless it is listed. Returns its index, or BASE_WAITS_NONE. */
static uint32_t list_op(struct base_waits_body *b, const struct mpi_request *r, uint32_t flags)
{
	struct base_wait_op *op;
	uint32_t i = 0;

	while (i < b->ops && i < BASE_WAITS_OPS && b->op[i].handle != r->obj.handle)
		i++;
	if (i < BASE_WAITS_OPS && i < b->ops) {
		b->op[i].flags |= flags;
		return i;
	}
	if (b->ops++ >= BASE_WAITS_OPS)
		return BASE_WAITS_NONE;
	op = &b->op[i];
	*op = (struct base_wait_op){
		.kind = op_kind_of(r),
		.flags = flags | (moves(r) ? BASE_WAIT_OP_MOVES : 0),
		.context = r->comm ? r->comm->context : 0,
		.handle = r->obj.handle,
		.peer = BASE_WAITS_ANY,
		.tag = BASE_WAITS_ANY,
		.since_ms = first_seen(r->obj.handle, b->beat_ms),
	};
	if (op->kind != BASE_WAIT_OP_SEND && op->kind != BASE_WAIT_OP_RECV)
		return i;
	op->context = (uint32_t)r->context & 0x1fff;
	op->peer = world_peer(r->comm, r->peer);
	op->tag = tag_of(r->tag);
	op->bytes = r->bytes;
	return i;
}

static void list_any(struct base_waits_body *b, const struct mpi_wait *w)
{
	for (int i = 0; i < w->n; i++) {
		const struct mpi_request *r = mpi_object_of(w->any[i], MPI_KIND_REQUEST);

		if (r && !r->done)
			list_op(b, r, BASE_WAIT_OP_AWAITED);
	}
}

/* Another job may end a wait on such a communicator. It is not looked at. */
static bool is_with_other_jobs(const struct mpi_comm *comm)
{
	return comm && comm->others;
}

/* After those that are awaited. */
static void list_other_ops(struct base_waits_body *b)
{
	const struct mpi_request *r;

	for (uint32_t i = 0; (r = mpi_pool_at(MPI_KIND_REQUEST, i)); i++) {
		if (!r->obj.handle || r->done)
			continue;
		list_op(b, r, 0);
		b->moving += moves(r) || is_with_other_jobs(r->comm);
	}
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* Whether the thread's wait is a part of another one, which says more. */
static bool is_part(const struct mpi_wait *w)
{
	for (const struct mpi_wait *outer = w->next; outer; outer = outer->next)
		if (outer->thread == w->thread)
			return true;
	return false;
}

static void list_wait(struct base_waits_body *b, struct mpi_wait *w)
{
	struct base_wait *to;

	if (!w->since_ms)
		w->since_ms = b->beat_ms - BASE_WAITS_BEAT_MS;
	if (w->thread == base_thread())
		keep_frames(w);
	b->moving += is_with_other_jobs(w->comm);
	if (b->waits++ >= BASE_WAITS_MOST)
		return;
	to = &b->wait[b->waits - 1];
	*to = (struct base_wait){
		.kind = w->kind,
		.op = BASE_WAITS_NONE,
		.context = w->comm ? w->comm->context : 0,
		.peer = w->peer,
		.tag = tag_of(w->tag),
		.frames = (uint32_t)w->frames,
		.since_ms = w->since_ms,
	};
	memcpy(to->frame, w->frame, sizeof(to->frame));
	if (w->kind == BASE_WAIT_REQUEST)
		to->op = list_op(b, w->request, BASE_WAIT_OP_AWAITED);
	if (w->kind == BASE_WAIT_ANY)
		list_any(b, w);
}

/* The handle of a request is used again, after some others. */
static void list_plain_wait(struct base_waits_body *b, const struct mpi_request *awaited)
{
	if (plain.request != awaited || plain.number != awaited->obj.handle ||
	    b->beat_ms - body.beat_ms > GAP_MS)
		plain.since_ms = 0;
	plain.kind = BASE_WAIT_REQUEST;
	plain.request = awaited;
	plain.number = awaited->obj.handle;
	plain.thread = base_thread();
	plain.frames = 0;
	list_wait(b, &plain);
}

/* ---- communicators --------------------------------------------------------------------------- */

static uint32_t members_of(const struct mpi_comm *comm)
{
	uint64_t h = 0; /* the same on both sides of an intercommunicator */

	for (int i = 0; i < comm->local->size; i++)
		h += mix_in(1, (uint64_t)mpi_group_world(comm->local, i));
	for (int i = 0; comm->inter && i < comm->remote->size; i++)
		h += mix_in(1, (uint64_t)mpi_group_world(comm->remote, i));
	return (uint32_t)(h >> 16);
}

static bool is_mentioned(const struct base_waits_body *b, uint32_t context)
{
	for (uint32_t i = 0; i < b->waits && i < BASE_WAITS_MOST; i++)
		if (b->wait[i].context == context)
			return true;
	for (uint32_t i = 0; i < b->ops && i < BASE_WAITS_OPS; i++)
		if ((b->op[i].context & ~1u) == context)
			return true;
	return false;
}

static void list_comm(struct base_waits_body *b, const struct mpi_comm *comm, bool mentioned)
{
	struct base_wait_comm *to;

	if (!comm->local || is_mentioned(b, comm->context) != mentioned ||
	    b->comms++ >= BASE_WAITS_COMMS)
		return;
	to = &b->comm[b->comms - 1];
	*to = (struct base_wait_comm){
		.context = comm->context,
		.size = comm->size,
		.rank = comm->rank,
		.members = members_of(comm),
		.calls = comm->calls.number,
	};
	snprintf(to->name, sizeof(to->name), "%.*s", BASE_WAITS_NAME - 1, comm->name);
}

/* Those that waits and operations name come first. */
static void list_comms(struct base_waits_body *b)
{
	const struct mpi_comm *comm;

	for (int mentioned = 1; mentioned >= 0; mentioned--) {
		list_comm(b, &mpi_comm_world, mentioned);
		list_comm(b, &mpi_comm_self, mentioned);
		for (uint32_t i = 0; (comm = mpi_pool_at(MPI_KIND_COMM, i)); i++)
			if (comm->obj.handle)
				list_comm(b, comm, mentioned);
	}
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A number that changes when a wait, a message or an operation comes or goes. */
static uint64_t signature_of(const struct base_waits_body *b)
{
	uint64_t h = mix_in(b->ops, (uint64_t)b->messages << 32 | b->waits);

	for (const struct mpi_wait *w = mpi_waits; w; w = w->next)
		h = mix_in(mix_in(h, w->number), w->thread);
	if (!mpi_waits)
		h = mix_in(h, plain.number);
	for (int i = MPI_COUNT_SENT_SHORT; i <= MPI_COUNT_RECV_UNEXPECTED_LONG; i++)
		h = mix_in(h, mpi_world.counts[i]);
	for (uint32_t i = 0; i < b->ops && i < BASE_WAITS_OPS; i++)
		h = mix_in(h, (uint64_t)b->op[i].flags << 32 | b->op[i].handle);
	return h;
}

static void publish(const struct base_waits_body *b)
{
	const uint32_t sequence = atomic_load_explicit(&file->sequence, memory_order_relaxed);

	atomic_store_explicit(&file->sequence, sequence + 1, memory_order_relaxed);
	/* no store to the body before that one */
	atomic_thread_fence(memory_order_release);
	memcpy(&file->body, b, sizeof(*b));
	atomic_store_explicit(&file->sequence, sequence + 2, memory_order_release);
}

void mpi_waiting_write(const struct mpi_request *awaited)
{
	static struct base_waits_body next;
	const int64_t now = mpi_now_ms();
	uint64_t sign;

	if (!file || (!mpi_waits && (!awaited || awaited->done)))
		return;
	memset(&next, 0, sizeof(next));
	next.beat_ms = now;
	if (!mpi_waits)
		list_plain_wait(&next, awaited);
	for (struct mpi_wait *w = mpi_waits; w; w = w->next)
		if (!is_part(w))
			list_wait(&next, w);
	list_other_ops(&next);
	for (int i = 0; i < others_also; i++)
		describe_also[i](&next);
	list_comms(&next);
	sign = signature_of(&next);
	next.since_ms = body.since_ms;
	file->threaded = mpi_world.threaded;
	if (sign != signature || now - body.beat_ms > GAP_MS)
		next.since_ms = now;
	signature = sign;
	body = next;
	publish(&body);
}

void mpi_waiting_describe_also(void (*describe)(struct base_waits_body *body))
{
	for (int i = 0; i < others_also; i++)
		if (describe_also[i] == describe)
			return;
	assert(others_also < OTHERS);
	describe_also[others_also++] = describe;
}

/* ---- start and end --------------------------------------------------------------------------- */

/* The descriptor stays open: it is how the file is found. */
static int file_fd = -1;

void mpi_waiting_init(void)
{
	const struct base_shared_span all = { 0, sizeof(*file) };
	ptl_jid_t jid = PTL_JID_NONE;
	char why[320];

	body = (struct base_waits_body){ .beat_ms = 0 };
	signature = 0;
	file_fd = base_shared_make(BASE_WAITS_MEMFD, sizeof(*file), &all, 1, why, sizeof(why));
	if (file_fd < 0)
		return;
	file = base_shared_map(file_fd, 0, sizeof(*file));
	if (!file) {
		close(file_fd);
		file_fd = -1;
		return;
	}
	PtlGetJid(mpi_world.ni, &jid);
	file->version = BASE_WAITS_VERSION;
	file->pid = (int32_t)getpid();
	file->rank = mpi_world.rank;
	file->size = mpi_world.size;
	file->threaded = mpi_world.threaded;
	file->job = jid;
	/* a reader that sees the magic number sees the rest */
	atomic_thread_fence(memory_order_release);
	__atomic_store_n(&file->magic, BASE_WAITS_MAGIC, __ATOMIC_RELEASE);
}

void mpi_waiting_fini(void)
{
	others_also = 0;
	if (!file)
		return;
	munmap(file, sizeof(*file));
	close(file_fd);
	file = NULL;
	file_fd = -1;
}
