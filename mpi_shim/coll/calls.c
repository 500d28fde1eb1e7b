/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The calls of all ranks, and the sentence about those that disagree. See calls.h.
 */
#include "mpi_shim/coll/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/pt2pt/p2p.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

/* ---- a call as 64 bits ----------------------------------------------------------------------- */

/* Kind (5 bits), whether it is non-blocking (1), operation (5), root + 1 (17), bytes + 1 (36).
 * The last three are 0 where ranks need not agree. */
#define LATER_AT   5
#define OP_AT      6
#define ROOT_AT    11
#define BYTES_AT   28
#define KIND_MASK  0x1fu
#define OP_MASK    0x1fu
#define ROOT_MASK  0x1ffffu
#define BYTES_MOST ((UINT64_C(1) << 36) - 2) /* and more */

#define COMPARE_MS 100

#define OP_OF_USER 0x1f /* the ABI gives this value of the last five bits to no operation */

static unsigned int number_of_op(const struct mpi_op *op)
{
	if (!op)
		return 0;
	return op->predefined ? op->obj.handle & OP_MASK : OP_OF_USER;
}

static uint64_t pack_call(enum mpi_call_kind kind, bool later, int root, const struct mpi_op *op,
			  MPI_Count bytes)
{
	const uint64_t length = (uint64_t)bytes < BYTES_MOST ? (uint64_t)bytes : BYTES_MOST;

	return (uint64_t)kind | (uint64_t)later << LATER_AT | (uint64_t)number_of_op(op) << OP_AT |
	       (uint64_t)(root + 1) << ROOT_AT |
	       (bytes == MPI_CALL_ANY_BYTES ? 0 : (length + 1) << BYTES_AT);
}

static unsigned int call_kind(uint64_t call)
{
	return call & KIND_MASK;
}

static int root_of(uint64_t call)
{
	return (int)(call >> ROOT_AT & ROOT_MASK) - 1;
}

static uint64_t mix(uint64_t history, uint64_t more)
{
	uint64_t x = (history ^ more) * UINT64_C(0x9e3779b97f4a7c15);

	return x ^ x >> 29;
}

/* The mark as messages of this call carry it. */
static uint64_t mark_of(const struct mpi_calls *a, bool exact)
{
	const uint64_t high = a->history >> 32;

	return (a->number & 0xffff) << 48 | (high & 0xffff) << 32 | (exact ? MPI_MARK_EXACT : 0) |
	       (uint64_t)call_kind(a->call) << 23 | high >> 25 << 16;
}

void mpi_calls_announce(struct mpi_schedule *p, struct mpi_comm *comm, enum mpi_call_kind kind,
			int root, const struct mpi_op *op, MPI_Count bytes)
{
	struct mpi_calls *a = &comm->calls;

	if (comm->inter) {
		root = MPI_CALL_ANY_ROOT;
		op = NULL;
		bytes = MPI_CALL_ANY_BYTES;
	}
	a->number++;
	a->call = pack_call(kind, !p->now, root, op, bytes);
	a->kept[a->number % MPI_CALLS_KEPT] = a->call;
	a->history = mix(a->history, a->call);
	a->mark = mark_of(a, bytes != MPI_CALL_ANY_BYTES);
	p->mark = a->mark;
	if (comm->shmcoll)
		mpi_shmcoll_advertise_call(comm->shmcoll);
}

/* ---- in words -------------------------------------------------------------------------------- */

static const char *const kind_names[MPI_CALL_KINDS] = {
	[MPI_CALL_BARRIER] = "MPI_Barrier",
	[MPI_CALL_BCAST] = "MPI_Bcast",
	[MPI_CALL_GATHER] = "MPI_Gather",
	[MPI_CALL_GATHERV] = "MPI_Gatherv",
	[MPI_CALL_SCATTER] = "MPI_Scatter",
	[MPI_CALL_SCATTERV] = "MPI_Scatterv",
	[MPI_CALL_ALLGATHER] = "MPI_Allgather",
	[MPI_CALL_ALLGATHERV] = "MPI_Allgatherv",
	[MPI_CALL_ALLTOALL] = "MPI_Alltoall",
	[MPI_CALL_ALLTOALLV] = "MPI_Alltoallv",
	[MPI_CALL_ALLTOALLW] = "MPI_Alltoallw",
	[MPI_CALL_REDUCE] = "MPI_Reduce",
	[MPI_CALL_ALLREDUCE] = "MPI_Allreduce",
	[MPI_CALL_REDUCE_SCATTER] = "MPI_Reduce_scatter",
	[MPI_CALL_REDUCE_SCATTER_BLOCK] = "MPI_Reduce_scatter_block",
	[MPI_CALL_SCAN] = "MPI_Scan",
	[MPI_CALL_EXSCAN] = "MPI_Exscan",
	[MPI_CALL_NEIGHBOR_ALLGATHER] = "MPI_Neighbor_allgather",
	[MPI_CALL_NEIGHBOR_ALLGATHERV] = "MPI_Neighbor_allgatherv",
	[MPI_CALL_NEIGHBOR_ALLTOALL] = "MPI_Neighbor_alltoall",
	[MPI_CALL_NEIGHBOR_ALLTOALLV] = "MPI_Neighbor_alltoallv",
	[MPI_CALL_NEIGHBOR_ALLTOALLW] = "MPI_Neighbor_alltoallw",
	[MPI_CALL_MAKE] = "a function that makes communicators, windows or files",
	[MPI_CALL_LAST] = "MPI_Finalize or MPI_Win_free",
};

/* A number from outside may be no valid kind. */
static const char *kind_name(unsigned int kind)
{
	return kind < MPI_CALL_KINDS && kind_names[kind] ? kind_names[kind] : "something else";
}

static const char *op_name(uint64_t call)
{
	const uintptr_t number = call >> OP_AT & OP_MASK;
	const struct mpi_op *op = number == OP_OF_USER ? NULL : mpi_op_of((MPI_Op)(number | 0x20));

	return op ? mpi_op_name(op) : "an operation of its own";
}

/* The call's name and length. */
static void name_call(uint64_t call, char *text, size_t room)
{
	const char *name = kind_name(call_kind(call));
	const char *later = call >> LATER_AT & 1 ? ", not blocking," : "";
	const uint64_t bytes = call >> BYTES_AT;

	if (bytes && call_kind(call) != MPI_CALL_BARRIER && call_kind(call) < MPI_CALL_MAKE)
		snprintf(text, room, "%s%s of %s%llu bytes", name, later,
			 bytes > BYTES_MOST ? "at least " : "", (unsigned long long)bytes - 1);
	else
		snprintf(text, room, "%s%s", name, later);
}

/* Write the first difference between the calls of two ranks of the communicator. */
static void compare_calls(struct mpi_disagreement *d, int rank, uint64_t theirs, int me,
			  uint64_t mine)
{
	const uint64_t differ = theirs ^ mine;
	const char *name = kind_name(call_kind(mine));
	char their_text[80], my_text[80];

	if (differ & (KIND_MASK | 1u << LATER_AT)) {
		d->class = MPI_ERR_ARG;
		name_call(theirs, their_text, sizeof(their_text));
		name_call(mine, my_text, sizeof(my_text));
		snprintf(d->text, sizeof(d->text), "rank %d called %s, rank %d %s", rank,
			 their_text, me, my_text);
	} else if (differ >> ROOT_AT & ROOT_MASK) {
		d->class = MPI_ERR_ROOT;
		snprintf(d->text, sizeof(d->text),
			 "rank %d called %s with root %d, rank %d with root %d", rank, name,
			 root_of(theirs), me, root_of(mine));
	} else if (differ >> OP_AT & OP_MASK) {
		d->class = MPI_ERR_OP;
		snprintf(d->text, sizeof(d->text), "rank %d called %s with %s, rank %d with %s",
			 rank, name, op_name(theirs), me, op_name(mine));
	} else {
		d->class = MPI_ERR_TRUNCATE;
		name_call(theirs, their_text, sizeof(their_text));
		snprintf(d->text, sizeof(d->text), "rank %d called %s, rank %d of %s%llu", rank,
			 their_text, me, mine >> BYTES_AT > BYTES_MOST ? "at least " : "",
			 (unsigned long long)(mine >> BYTES_AT) - 1);
	}
}

/* A message shows only the kind and length of the other side's call. */
static void compare_message(struct mpi_disagreement *d, int rank, const struct mpi_request *r,
			    int me)
{
	const uint64_t hdr = r->number;
	const unsigned int theirs = (hdr & MPI_MARK_KIND) >> 23;
	const unsigned int mine = (r->context & MPI_MARK_KIND) >> 23;

	if (theirs != mine) {
		d->class = MPI_ERR_ARG;
		snprintf(d->text, sizeof(d->text), "rank %d called %s, rank %d %s", rank,
			 kind_name(theirs), me, kind_name(mine));
	} else if (r->sent != r->room) {
		d->class = MPI_ERR_TRUNCATE;
		snprintf(d->text, sizeof(d->text),
			 "rank %d sent %lld bytes of %s where rank %d expects %lld", rank,
			 (long long)r->sent, kind_name(mine), me, (long long)r->room);
	} else {
		d->class = MPI_ERR_ARG;
		snprintf(
			d->text, sizeof(d->text),
			"ranks %d and %d called %s with different roots, operations or lengths, or "
			"different collectives before it",
			rank, me, kind_name(mine));
	}
}

/* ---- keeping and sending a disagreement ----------------------------------------------------- */

/* For a communicator without memory to keep its own. */
static struct mpi_disagreement unknown = {
	MPI_ERR_ARG, "ranks of the communicator called different collectives"
};

static void keep_disagreement(struct mpi_comm *comm, const struct mpi_disagreement *d)
{
	comm->calls.found = malloc(sizeof(*comm->calls.found));
	if (comm->calls.found)
		*comm->calls.found = *d;
	else
		comm->calls.found = &unknown;
	comm->failed = true;
}

static void send_disagreement_to_all(struct mpi_comm *comm)
{
	for (int i = 0; i < comm->remote_size; i++)
		if (comm->inter || i != comm->rank)
			mpi_send_notice(comm->calls.found, sizeof(*comm->calls.found), i,
					MPI_TAG_DISAGREE, comm, comm->context + 1);
}

/* Keep the disagreement and send it, unless one is kept already. Returns the class, as
 * mpi_fail(). */
static int settle_disagreement(struct mpi_comm *comm, const struct mpi_disagreement *d)
{
	if (!comm->calls.found) {
		keep_disagreement(comm, d);
		send_disagreement_to_all(comm);
		/* this rank's side of an intercommunicator */
		if (comm->inter && !comm->local_comm->calls.found) {
			keep_disagreement(comm->local_comm, d);
			send_disagreement_to_all(comm->local_comm);
		}
	}
	return mpi_calls_fail(comm);
}

int mpi_calls_refuse_calls(struct mpi_comm *comm, int rank, uint64_t theirs, uint64_t mine)
{
	struct mpi_disagreement d = { .class = MPI_ERR_ARG };

	if (theirs)
		compare_calls(&d, rank, theirs, comm->rank, mine);
	else
		snprintf(d.text, sizeof(d.text),
			 "rank %d called other collectives than rank %d, which is in %s", rank,
			 comm->rank, kind_name(call_kind(mine)));
	return settle_disagreement(comm, &d);
}

int mpi_calls_refuse(struct mpi_comm *comm, const struct mpi_request *r)
{
	struct mpi_disagreement d;
	int world = mpi_hdr_rank(r->number), rank;

	/* the shared-memory area shows more of the call */
	if (comm->shmcoll && mpi_shmcoll_compare(comm->shmcoll))
		return mpi_calls_fail(comm);
	rank = world < mpi_world.size ? mpi_group_rank_in(comm->remote, world) : MPI_UNDEFINED;
	if (rank == MPI_UNDEFINED)
		rank = r->source;
	compare_message(&d, rank, r, comm->rank);
	return settle_disagreement(comm, &d);
}

int mpi_calls_fail(struct mpi_comm *comm)
{
	const struct mpi_disagreement *d;

	/* the rank that found the disagreement has sent the sentence before */
	if (!comm->calls.found && !mpi_calls_broken(comm)) {
		mpi_progress(false);
		if (!mpi_calls_broken(comm))
			keep_disagreement(comm, &unknown);
	}
	d = comm->calls.found ? comm->calls.found : &unknown;
	return mpi_fail(d->class, "%s", d->text);
}

void mpi_calls_free(struct mpi_comm *comm)
{
	if (comm->calls.found != &unknown)
		free(comm->calls.found);
	comm->calls.found = NULL;
}

/* ---- calls of ranks that wait ---------------------------------------------------------------- */

/* The call in which a rank waits for this one. That rank writes it, and may be doing so now. */
struct waiting {
	_Atomic uint64_t context, number, call, sum;
};

static struct waiting *waiting; /* by world rank */

static uint64_t sum_of(uint64_t context, uint64_t number, uint64_t call)
{
	return mix(mix(mix(1, context), number), call);
}

/* The peer of the message may have found a disagreement before, and have left the collective. */
static int is_hopeless(const struct mpi_request *r)
{
	if (mpi_comm_failed(r->whole))
		return mpi_fail_comm(r->whole);
	if (r->kind == MPI_REQ_RECV && r->peer != MPI_PROC_NULL)
		mpi_calls_ask(r->whole, mpi_comm_peer(r->comm, r->peer));
	return MPI_SUCCESS;
}

int mpi_calls_init(void)
{
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = {
		.length = (ptl_size_t)mpi_world.size * sizeof(*waiting),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE |
			   PTL_MD_EVENT_END_DISABLE | PTL_MD_ACK_DISABLE,
		.eq_handle = PTL_EQ_NONE,
	};
	ptl_handle_me_t me;

	mpi_peers_ask_of_whole(is_hopeless);
	waiting = calloc((size_t)mpi_world.size, sizeof(*waiting));
	if (!waiting)
		return mpi_fail_memory("what ranks that wait tell");
	md.start = (void *)waiting;
	if (PtlMEMDAttach(mpi_world.ni, MPI_PT_FLAG, any, MPI_CALLS_BITS, 0, PTL_RETAIN,
			  PTL_INS_AFTER, md, PTL_RETAIN, &me, NULL) != PTL_OK)
		return mpi_fail_memory("what ranks that wait tell");
	return MPI_SUCCESS;
}

void mpi_calls_fini(void)
{
	free(waiting);
	waiting = NULL;
}

void mpi_calls_ask(const struct mpi_comm *comm, int world)
{
	const struct mpi_calls *a = &comm->calls;
	const uint64_t words[] = { comm->context, a->number, a->call,
				   sum_of(comm->context, a->number, a->call) };

	static_assert(sizeof(words) == sizeof(*waiting), "it is put as it lies there");
	if (!comm->inter && !comm->others && a->number)
		PtlPutInject(mpi_world.ni, words, sizeof(words), PTL_INJECT_LAZY,
			     mpi_world.id[world], MPI_PT_FLAG, 0, MPI_CALLS_BITS,
			     (ptl_size_t)mpi_world.rank * sizeof(*waiting), 0);
}

void mpi_calls_forget(uint32_t context)
{
	for (int i = 0; waiting && i < mpi_world.size; i++)
		if (atomic_load_explicit(&waiting[i].context, memory_order_relaxed) == context)
			atomic_store_explicit(&waiting[i].sum, 0, memory_order_relaxed);
}

/* A rank waits for this one in a call that differs from this rank's call of that number. */
static bool is_awaited_elsewhere(struct mpi_comm *comm)
{
	const struct mpi_calls *a = &comm->calls;

	/* processes of other jobs cannot tell */
	for (int i = 0; i < comm->size && !comm->others; i++) {
		const struct waiting *w = &waiting[mpi_comm_peer(comm, i)];
		const uint64_t number = atomic_load_explicit(&w->number, memory_order_relaxed);
		const uint64_t call = atomic_load_explicit(&w->call, memory_order_relaxed);
		uint64_t mine;

		if (atomic_load_explicit(&w->context, memory_order_relaxed) != comm->context ||
		    atomic_load_explicit(&w->sum, memory_order_relaxed) !=
			    sum_of(comm->context, number, call) ||
		    number > a->number || a->number - number >= MPI_CALLS_KEPT)
			continue;
		mine = a->kept[number % MPI_CALLS_KEPT];
		if (mine && mine != call) {
			mpi_calls_refuse_calls(comm, i, call, mine);
			return true;
		}
	}
	return false;
}

/* ---- long waits ------------------------------------------------------------------------------ */

static struct mpi_unexpected *first_message(const struct mpi_comm *comm, int tag)
{
	const unsigned int open = mpi_open_of(MPI_ANY_SOURCE, tag);

	return mpi_unexpected_find(mpi_bits(0, comm->context + 1, 0, tag) & ~mpi_open_bits[open],
				   open);
}

/* Take over a sentence of another rank. The message stays in the list: its context is not used
 * again. */
static bool heard_of_disagreement(struct mpi_comm *comm)
{
	const struct mpi_unexpected *u = first_message(comm, MPI_TAG_DISAGREE);
	struct mpi_disagreement d;

	if (!u)
		return false;
	/* there was no memory for the sentence, or the message is malformed */
	d = unknown;
	if (!mpi_bits_long(u->bits) && u->bytes == (MPI_Count)sizeof(d))
		memcpy(&d, u->data, sizeof(d));
	d.text[sizeof(d.text) - 1] = '\0';
	for (char *c = d.text; *c; c++)
		if (*c < ' ')
			*c = '?';
	if (d.class <= MPI_SUCCESS || d.class > MPI_ERR_LASTCODE)
		d.class = MPI_ERR_ARG;
	keep_disagreement(comm, &d);
	return true;
}

/* A message of the current call that has another mark and for which no receive waits. */
static bool meets_another(struct mpi_comm *comm, int tag)
{
	const struct mpi_calls *a = &comm->calls;
	const struct mpi_unexpected *u = first_message(comm, tag);
	struct mpi_request r = { .context = a->mark, .sent = 0, .room = 0 };

	if (!u || mpi_bits_long(u->bits) || !(u->hdr & MPI_MARK_HEADER))
		return false;
	if ((mpi_hdr_number(u->hdr) >> 16 & 0xffff) != (a->number & 0xffff) ||
	    !mpi_mark_differs(a->mark, u->hdr, false))
		return false;
	r.number = u->hdr;
	r.source = mpi_bits_source(u->bits);
	mpi_calls_refuse(comm, &r);
	return true;
}

/* Limit the rate of comparisons: each checks every rank, so not every interrupted wait does
 * it. */
static bool is_due(struct mpi_comm *comm)
{
	const int64_t now = mpi_now_ms();

	if (now - comm->calls.compared_ms < COMPARE_MS)
		return false;
	comm->calls.compared_ms = now;
	return true;
}

/* Check this rank's side of an intercommunicator. */
static bool local_side_broken(struct mpi_comm *comm)
{
	struct mpi_comm *local = comm->local_comm;

	if (!local->calls.found && !heard_of_disagreement(local))
		return false;
	keep_disagreement(comm, local->calls.found);
	return true;
}

bool mpi_calls_broken(struct mpi_comm *comm)
{
	if (comm->calls.found || heard_of_disagreement(comm))
		return true;
	if (comm->inter)
		return local_side_broken(comm);
	/* the side of an intercommunicator has no calls of its own */
	if (!comm->calls.number || !is_due(comm))
		return false;
	if (comm->shmcoll && mpi_shmcoll_compare(comm->shmcoll))
		return true;
	return is_awaited_elsewhere(comm) || meets_another(comm, MPI_TAG_BLOCKING) ||
	       meets_another(comm, MPI_TAG_LEADERS) || meets_another(comm, MPI_TAG_LAST);
}

bool mpi_comm_failed(struct mpi_comm *comm)
{
	comm->failed = comm->failed || mpi_failed_member(comm) >= 0 || mpi_calls_broken(comm);
	return comm->failed;
}

int mpi_fail_comm(struct mpi_comm *comm)
{
	int rank = mpi_failed_member(comm);

	if (comm->calls.found)
		return mpi_calls_fail(comm);
	if (rank < 0)
		return mpi_fail(MPI_ERR_PROC_ABORTED, "a rank is lost");
	return mpi_fail(MPI_ERR_PROC_ABORTED, "%s is lost, and no collective does without it: %s",
			mpi_process_text(rank), mpi_failed_text(rank, PTL_NI_OK));
}
