/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Partitioned communication: the requests, and how partitions travel. See partitioned.h.
 */
#include "mpi_shim/pt2pt/partitioned.h"

#include <limits.h>
#include <portals3_ext.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

static uint64_t numbers; /* the last number of an entry on the PART portal */

/* ---- errors ---------------------------------------------------------------------------------- */

/* Ends the start in progress, if there is one, with the error that stays. */
static void end_broken(struct mpi_request *r)
{
	if (r->done || !r->active)
		return;
	r->error = r->partitioned->broken;
	mpi_request_done(r);
}

/* All later starts fail likewise. The text is the kept one. */
static void break_with(struct mpi_request *r, int code)
{
	mpi_request_fail(r, code, "%s", mpi_fail_text());
	r->partitioned->broken = code;
	r->error = MPI_SUCCESS;
}

static int differ(const struct mpi_request *r, uint64_t partitions, uint64_t total)
{
	const struct mpi_partitioned *p = r->partitioned;
	const bool sends = r->kind == MPI_REQ_PSEND;

	return mpi_fail(MPI_ERR_TRUNCATE,
			"the partitioned %s of rank %d with tag %d has %llu partitions, together "
			"%llu bytes; the %s of this rank has %d partitions, together %lld bytes",
			sends ? "receive" : "send", r->peer, p->tag, (unsigned long long)partitions,
			(unsigned long long)total, sends ? "send" : "receive", p->partitions,
			(long long)p->total);
}

/* ---- entries on the PART portal -------------------------------------------------------------- */

/* Exposes memory under p->number to the peer. */
static int expose_to_peer(struct mpi_partitioned *p, void *start, MPI_Count bytes, uint32_t events)
{
	struct mpi_request *r = p->r;
	ptl_md_t md = {
		.start = bytes ? start : NULL,
		.length = (ptl_size_t)bytes,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE |
			   PTL_MD_ACK_DISABLE,
		.user_ptr = r,
	};
	int err = mpi_events_reserve(r, events);

	if (err)
		return err;
	md.eq_handle = mpi_queues.eq[r->eq].handle;
	err = PtlMEMDAttach(mpi_world.ni, MPI_PT_PART, mpi_world.id[p->world], p->number, 0,
			    PTL_UNLINK, PTL_INS_AFTER, md, PTL_RETAIN, &r->me, NULL);
	if (err != PTL_OK) {
		mpi_events_release(r, events);
		return mpi_fail(MPI_ERR_NO_MEM, "no room for one more partitioned operation: %s",
				PtlErrorStr((unsigned int)err));
	}
	p->events = events;
	p->linked = true;
	return MPI_SUCCESS;
}

/* False: the entry is in use. */
static bool unlink_entry(struct mpi_request *r)
{
	struct mpi_partitioned *p = r->partitioned;

	if (!p->linked)
		return true;
	if (p->in_flight || PtlMEUnlink(r->me) == PTL_ME_IN_USE)
		return false;
	if (r->kind == MPI_REQ_PSEND)
		PtlMDUnlink(r->md);
	mpi_events_release(r, p->events);
	p->linked = false;
	return true;
}

static char *partitions_of(const struct mpi_request *r)
{
	return r->partitioned->staging ? r->partitioned->staging
				       : (char *)r->buf + r->type->true_lb;
}

/* Where a unit begins in the packed form of the message. */
static MPI_Count start_of(const struct mpi_partitioned *p, int unit)
{
	return unit < p->units ? p->unit_bytes * unit : p->total;
}

/* Computes the units from what the sender has. */
static void set_units(struct mpi_partitioned *p, int partitions, int per_unit)
{
	p->per_unit = per_unit;
	p->units = partitions ? (partitions - 1) / per_unit + 1 : 1;
	p->unit_bytes = partitions ? p->total / partitions * per_unit : 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int measure_partitions(const struct mpi_type *type, MPI_Count count, int partitions,
			      struct mpi_partitioned *p)
{
	MPI_Count elements;
	int err = mpi_message_bytes(type, count, &p->part);

	if (err)
		return err;
	if (__builtin_mul_overflow(p->part, partitions, &p->total) ||
	    __builtin_mul_overflow(count, partitions, &elements))
		return mpi_fail(MPI_ERR_COUNT, "%d partitions of %lld elements are too many",
				partitions, (long long)count);
	return MPI_SUCCESS;
}

static bool get_arrays(struct mpi_partitioned *p, const struct mpi_type *type, bool sends)
{
	if (!type->dense && p->total > 0 && !(p->staging = malloc((size_t)p->total)))
		return false;
	if (!sends)
		return true; /* the units are not known yet */
	p->ready = calloc((size_t)p->partitions + 1, 1);
	p->unready = calloc((size_t)p->units, sizeof(*p->unready));
	p->moved = calloc((size_t)p->units, 1);
	return p->ready && p->unready && p->moved;
}

void mpi_partitioned_release(struct mpi_partitioned *p)
{
	free(p->staging);
	free(p->ready);
	free(p->unready);
	free(p->moved);
	free(p);
}

static void free_request(struct mpi_request *r)
{
	if (r->partitioned)
		mpi_partitioned_release(r->partitioned);
	r->partitioned = NULL;
}

/* Makes the request of either side. */
static int make(enum mpi_request_kind kind, void *buf, int partitions, MPI_Count count,
		struct mpi_type *type, int peer, int tag, struct mpi_comm *comm,
		struct mpi_request **request)
{
	struct mpi_request *r = mpi_request_new(kind);
	struct mpi_partitioned *p;
	int err;

	if (!r)
		return MPI_ERR_NO_MEM;
	r->persistent = r->done = true;
	r->peer = peer;
	r->tag = tag;
	r->buf = buf;
	r->type = mpi_object_keep(type);
	r->comm = mpi_object_keep(comm);
	r->partitioned = p = calloc(1, sizeof(*p));
	err = p ? measure_partitions(type, count, partitions, p)
		: mpi_fail_memory("a partitioned operation");
	if (err) {
		mpi_object_release(r);
		return err;
	}
	r->count = count * partitions;
	p->r = r;
	p->world = peer == MPI_PROC_NULL ? peer : mpi_comm_peer(comm, peer);
	p->tag = tag;
	p->partitions = partitions;
	p->number = ++numbers;
	set_units(p, partitions, partitions ? (partitions - 1) / MPI_PART_UNITS + 1 : 1);
	if (!get_arrays(p, type, kind == MPI_REQ_PSEND)) {
		mpi_object_release(r);
		return mpi_fail_memory("a partitioned operation");
	}
	*request = r;
	return MPI_SUCCESS;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void end_send_if_over(struct mpi_request *r)
{
	const struct mpi_partitioned *p = r->partitioned;

	if (r->done || p->in_flight || (!p->broken && (p->left || p->over < p->units)))
		return;
	r->error = p->broken;
	mpi_request_done(r);
}

/* Puts units [first, end) into the receiver's buffer. False: no memory now. */
static bool put_units(struct mpi_request *r, int first, int end)
{
	struct mpi_partitioned *p = r->partitioned;
	const MPI_Count from = start_of(p, first), bytes = start_of(p, end) - from;
	const uint64_t hdr = (uint64_t)end << 32 | (uint32_t)first;
	int err = PTL_NO_SPACE;

	if (bytes <= (MPI_Count)mpi_proto.short_most)
		err = PtlPutInject(mpi_world.ni, bytes ? partitions_of(r) + from : NULL,
				   (ptl_size_t)bytes, PTL_INJECT_NOW, mpi_world.id[p->world],
				   MPI_PT_PART, 0, p->theirs, (ptl_size_t)from, hdr);
	if (err == PTL_NO_SPACE) {
		err = PtlPutRegion(r->md, (ptl_size_t)from, (ptl_size_t)bytes, PTL_NO_ACK_REQ,
				   mpi_world.id[p->world], MPI_PT_PART, 0, p->theirs,
				   (ptl_size_t)from, hdr);
		p->in_flight += err == PTL_OK;
	}
	if (err == PTL_PROCESS_INVALID)
		break_with(r, mpi_unreachable(p->world));
	else if (err != PTL_OK)
		return false;
	memset(p->moved + first, 1, (size_t)(end - first));
	p->over += end - first;
	return true;
}

/* Puts all units that are ready, neighbours together. */
static void put_ready(struct mpi_request *r)
{
	struct mpi_partitioned *p = r->partitioned;
	int first = 0, end;

	if (r->done || p->gos < p->starts || p->over == p->units)
		return;
	for (; first < p->units; first = end) {
		end = first + 1;
		if (p->unready[first] || p->moved[first])
			continue;
		while (end < p->units && !p->unready[end] && !p->moved[end])
			end++;
		if (!put_units(r, first, end))
			break; /* the next check of the peers tries again */
	}
	end_send_if_over(r);
}

/* The receiver is ready for a start, or refuses all. */
static void handle_go(struct mpi_request *r)
{
	struct mpi_partitioned *p = r->partitioned;

	p->gos++;
	p->theirs = p->go_in.number;
	if (p->theirs) {
		put_ready(r);
		return;
	}
	if (p->go_in.total != (uint64_t)p->total)
		break_with(r, differ(r, p->go_in.partitions, p->go_in.total));
	else
		break_with(r, mpi_fail(MPI_ERR_OTHER,
				       "the partitioned receive of rank %d has failed there",
				       r->peer));
	end_broken(r);
}

static void psend_event(struct mpi_request *r, const ptl_event_t *ev)
{
	struct mpi_partitioned *p = r->partitioned;

	if (ev->type == PTL_EVENT_PUT_END) {
		if (ev->ni_fail_type == PTL_NI_OK && ev->mlength == sizeof(p->go_in) && !r->freed)
			handle_go(r);
		return;
	}
	if (ev->type != PTL_EVENT_SEND_END)
		return;
	p->in_flight--;
	if (ev->ni_fail_type != PTL_NI_OK && !p->broken)
		break_with(r, mpi_fail(MPI_ERR_PROC_ABORTED, "rank %d did not take a partition: %s",
				       r->peer, mpi_failed_text(p->world, ev->ni_fail_type)));
	end_send_if_over(r);
}

/* Sets up the memory that partitions are put from, and that gos come to. */
static int connect_send(struct mpi_request *r)
{
	struct mpi_partitioned *p = r->partitioned;
	ptl_md_t md = {
		.start = p->total ? partitions_of(r) : NULL,
		.length = (ptl_size_t)p->total,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.user_ptr = r,
	};
	int err = expose_to_peer(p, &p->go_in, sizeof(p->go_in), 1 + (uint32_t)p->units);

	if (err)
		return err;
	md.eq_handle = mpi_queues.eq[r->eq].handle;
	if (PtlMDBind(mpi_world.ni, md, PTL_RETAIN, &r->md) == PTL_OK)
		return MPI_SUCCESS;
	PtlMEUnlink(r->me);
	mpi_events_release(r, p->events);
	p->linked = false;
	return mpi_fail_memory("a partitioned send");
}

int mpi_psend_init(const void *buf, int partitions, MPI_Count count, struct mpi_type *datatype,
		   int dest, int tag, struct mpi_comm *comm, struct mpi_info *info,
		   struct mpi_request **request)
{
	struct mpi_request *r;
	int err = make(MPI_REQ_PSEND, (void *)(uintptr_t)buf, partitions, count, datatype, dest,
		       tag, comm, &r);

	(void)info;
	if (err)
		return err;
	if (dest != MPI_PROC_NULL) {
		err = connect_send(r);
		if (!err)
			err = mpi_partitioned_offer(r->partitioned);
		if (err) {
			unlink_entry(r);
			mpi_object_release(r);
			return err;
		}
	}
	*request = r;
	return MPI_SUCCESS;
}

static int launch_send(struct mpi_request *r)
{
	struct mpi_partitioned *p = r->partitioned;

	r->done = false;
	r->error = MPI_SUCCESS;
	p->starts++;
	p->left = p->partitions;
	memset(p->ready, 0, (size_t)p->partitions);
	if (p->world == MPI_PROC_NULL) {
		p->over = p->units;
		end_send_if_over(r);
		return MPI_SUCCESS;
	}
	p->over = 0;
	memset(p->moved, 0, (size_t)p->units);
	for (int u = 0, rest = p->partitions; u < p->units; u++, rest -= p->per_unit)
		p->unready[u] = rest < p->per_unit ? rest : p->per_unit;
	if (p->broken)
		end_broken(r);
	else
		put_ready(r); /* without partitions there is one empty unit */
	return MPI_SUCCESS;
}

/* ---- ready partitions ------------------------------------------------------------------------ */

static struct mpi_request *request_of_kind(MPI_Request handle, enum mpi_request_kind kind)
{
	struct mpi_request *r = mpi_object_of(handle, MPI_KIND_REQUEST);

	if (r && r->kind == kind)
		return r;
	mpi_fail(MPI_ERR_REQUEST, "the request is not that of a partitioned %s",
		 kind == MPI_REQ_PSEND ? "send" : "receive");
	return NULL;
}

static int check_partition(const struct mpi_request *r, int partition)
{
	if (partition >= 0 && partition < r->partitioned->partitions)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_ARG, "there is no partition %d: the operation has %d", partition,
			r->partitioned->partitions);
}

/* Checks that a partition may become ready now. */
static int check_ready(const struct mpi_request *r, int partition)
{
	int err = check_partition(r, partition);

	if (err)
		return err;
	if (!r->active)
		return mpi_fail(MPI_ERR_REQUEST, "the partitioned send is not started");
	if (r->partitioned->ready[partition])
		return mpi_fail(MPI_ERR_ARG, "partition %d is ready already", partition);
	return MPI_SUCCESS;
}

static void mark_ready(struct mpi_request *r, int partition)
{
	struct mpi_partitioned *p = r->partitioned;
	const size_t from = (size_t)p->part * (size_t)partition;

	p->ready[partition] = 1;
	p->left--;
	p->unready[partition / p->per_unit]--;
	if (p->staging && p->part)
		mpi_type_pack_bytes(r->type, r->buf, r->count, from, p->staging + from,
				    (size_t)p->part);
}

/* Sends what has become ready. The receiver may have said meanwhile that it is, too. */
static int send_ready(struct mpi_request *r)
{
	const struct mpi_partitioned *p = r->partitioned;

	if (p->gos < p->starts && p->world != MPI_PROC_NULL)
		mpi_progress(false);
	put_ready(r);
	end_send_if_over(r);
	if (mpi_world.threaded)
		mpi_progress_wake();
	return MPI_SUCCESS;
}

int mpi_pready(int partition, MPI_Request request)
{
	struct mpi_request *r = request_of_kind(request, MPI_REQ_PSEND);
	int err = r ? check_ready(r, partition) : MPI_ERR_REQUEST;

	if (err)
		return err;
	mark_ready(r, partition);
	return send_ready(r);
}

int mpi_pready_range(int partition_low, int partition_high, MPI_Request request)
{
	struct mpi_request *r = request_of_kind(request, MPI_REQ_PSEND);
	int err = r ? MPI_SUCCESS : MPI_ERR_REQUEST;

	if (!err)
		err = check_partition(r, partition_low);
	if (!err)
		err = check_partition(r, partition_high);
	for (int i = partition_low; !err && i <= partition_high; i++)
		err = check_ready(r, i);
	if (err)
		return err;
	for (int i = partition_low; i <= partition_high; i++)
		mark_ready(r, i);
	return send_ready(r);
}

int mpi_pready_list(int length, const int array_of_partitions[], MPI_Request request)
{
	struct mpi_request *r = request_of_kind(request, MPI_REQ_PSEND);
	int err = r ? MPI_SUCCESS : MPI_ERR_REQUEST, marked = 0;

	for (; !err && marked < length; marked++) {
		err = check_ready(r, array_of_partitions[marked]);
		if (!err)
			mark_ready(r, array_of_partitions[marked]);
	}
	if (r && marked > 0)
		send_ready(r);
	return err;
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Tells the sender that the buffer is ready for this start, or that it never will be. */
static void send_go(struct mpi_partitioned *p)
{
	const struct mpi_part_go go = { .number = p->broken ? 0 : p->number,
					.total = (uint64_t)p->total,
					.partitions = (uint64_t)p->partitions };
	int err = PtlPutInject(mpi_world.ni, &go, sizeof(go), PTL_INJECT_LAZY,
			       mpi_world.id[p->world], MPI_PT_PART, 0, p->theirs, 0, 0);

	p->go_due = err == PTL_NO_SPACE; /* the next check of the peers tries again */
	if (err == PTL_PROCESS_INVALID && !p->broken) {
		break_with(p->r, mpi_unreachable(p->world));
		end_broken(p->r);
	}
}

/* Whether an offer can have come from this library. */
static bool is_sound(const struct mpi_part_offer *o)
{
	return o->number && o->partitions <= INT_MAX && o->per_unit >= 1 &&
	       o->per_unit <= INT_MAX &&
	       (!o->partitions || (o->partitions - 1) / o->per_unit < MPI_PART_UNITS) &&
	       o->total <= INT64_MAX && (o->partitions ? o->total % o->partitions : o->total) == 0;
}

static int take_offer(struct mpi_partitioned *p, const struct mpi_part_offer *o)
{
	if (!is_sound(o))
		return mpi_fail(MPI_ERR_OTHER, "rank %d offers a partitioned send of another kind",
				p->r->peer);
	p->theirs = o->number;
	if (o->total != (uint64_t)p->total)
		return differ(p->r, o->partitions, o->total);
	set_units(p, (int)o->partitions, (int)o->per_unit);
	p->moved = calloc((size_t)p->units, 1);
	if (!p->moved)
		return mpi_fail_memory("a partitioned receive");
	return expose_to_peer(p, partitions_of(p->r), p->total, (uint32_t)p->units);
}

void mpi_partitioned_matched(struct mpi_partitioned *p, const struct mpi_part_offer *offer)
{
	struct mpi_request *r = p->r;
	int err = take_offer(p, offer);

	if (err)
		break_with(r, err);
	/* a sender that cannot be served learns of it at once */
	if (p->theirs && (p->broken || (r->active && !r->done)))
		send_go(p);
	if (p->broken)
		end_broken(r);
}

void mpi_partitioned_unmatched(struct mpi_partitioned *p, int code)
{
	break_with(p->r, code);
	end_broken(p->r);
}

int mpi_precv_init(void *buf, int partitions, MPI_Count count, struct mpi_type *datatype,
		   int source, int tag, struct mpi_comm *comm, struct mpi_info *info,
		   struct mpi_request **request)
{
	struct mpi_request *r;
	int err = make(MPI_REQ_PRECV, buf, partitions, count, datatype, source, tag, comm, &r);

	(void)info;
	if (err)
		return err;
	if (source != MPI_PROC_NULL) {
		err = mpi_partitioned_await(r->partitioned);
		if (err) {
			mpi_object_release(r);
			return err;
		}
	}
	*request = r;
	return MPI_SUCCESS;
}

static int launch_recv(struct mpi_request *r)
{
	struct mpi_partitioned *p = r->partitioned;

	r->done = false;
	r->error = MPI_SUCCESS;
	r->source = r->peer;
	r->came = p->world == MPI_PROC_NULL ? MPI_ANY_TAG : p->tag;
	r->bytes = p->world == MPI_PROC_NULL ? 0 : p->total;
	p->over = 0;
	if (p->moved)
		memset(p->moved, 0, (size_t)p->units);
	if (p->world == MPI_PROC_NULL) {
		mpi_request_done(r);
		return MPI_SUCCESS;
	}
	if (p->broken)
		end_broken(r);
	else if (p->theirs)
		send_go(p);
	return MPI_SUCCESS;
}

/* Units have come. Nothing is believed that the sender of this library would not send. */
static void precv_event(struct mpi_request *r, const ptl_event_t *ev)
{
	struct mpi_partitioned *p = r->partitioned;
	const uint32_t first = (uint32_t)ev->hdr_data, end = (uint32_t)(ev->hdr_data >> 32);

	if (ev->type != PTL_EVENT_PUT_END || ev->ni_fail_type != PTL_NI_OK || r->done || r->freed ||
	    first >= end || end > (uint32_t)p->units ||
	    ev->offset != (ptl_size_t)start_of(p, (int)first) ||
	    ev->mlength != (ptl_size_t)(start_of(p, (int)end) - start_of(p, (int)first)))
		return;
	for (uint32_t u = first; u < end; u++) {
		p->over += !p->moved[u];
		p->moved[u] = 1;
	}
	if (p->staging)
		mpi_type_unpack_bytes(r->type, r->buf, r->count, (size_t)ev->offset,
				      p->staging + ev->offset, (size_t)ev->mlength);
	if (p->over == p->units)
		mpi_request_done(r);
}

/* Whether all units are here that have a part of this partition. */
static bool has_arrived(const struct mpi_partitioned *p, int partition)
{
	const MPI_Count from = p->part * partition;

	if (!p->moved || p->over == p->units)
		return p->moved != NULL;
	for (int u = p->unit_bytes ? (int)(from / p->unit_bytes) : 0; u < p->units; u++) {
		if (p->part && start_of(p, u) >= from + p->part)
			break;
		if (!p->moved[u])
			return false;
	}
	return true;
}

int mpi_parrived(MPI_Request request, int partition, int *flag)
{
	struct mpi_request *r = NULL;
	int err;

	*flag = 1;
	if (request == MPI_REQUEST_NULL)
		return MPI_SUCCESS;
	r = request_of_kind(request, MPI_REQ_PRECV);
	err = r ? check_partition(r, partition) : MPI_ERR_REQUEST;
	if (err || !r->active || r->done)
		return err;
	if (!has_arrived(r->partitioned, partition))
		mpi_progress(false);
	/* a start that has failed is for the wait to say */
	*flag = r->done || has_arrived(r->partitioned, partition);
	return MPI_SUCCESS;
}

/* ---- ends ------------------------------------------------------------------------------------ */

void mpi_partitioned_check(struct mpi_request *r)
{
	struct mpi_partitioned *p = r->partitioned;

	if (r->freed || p->world == MPI_PROC_NULL)
		return;
	if (p->go_due)
		send_go(p);
	/* a receive without an offer ends with the message that it waits for */
	if (r->done || (r->kind == MPI_REQ_PRECV && !p->theirs))
		return;
	if (!p->broken && mpi_failed_source(r->comm, r->peer) >= 0)
		break_with(r, mpi_fail(MPI_ERR_PROC_ABORTED,
				       r->kind == MPI_REQ_PSEND
					       ? "rank %d did not take all partitions: %s"
					       : "not all partitions from rank %d have come: %s",
				       r->peer, mpi_failed_text(p->world, PTL_NI_OK)));
	if (p->broken) {
		if (!p->in_flight && unlink_entry(r))
			end_broken(r);
		return;
	}
	if (r->kind == MPI_REQ_PSEND)
		put_ready(r);
}

int mpi_partitioned_free(struct mpi_request *r)
{
	struct mpi_partitioned *p = r->partitioned;

	if (r->active)
		return mpi_fail(MPI_ERR_REQUEST, "the partitioned operation is active: complete it "
						 "before its request is freed");
	mpi_object_retire(&r->obj);
	r->freed = true;
	if (p->events) { /* some may still name it */
		r->done = false;
		mpi_request_done_later(r);
		mpi_progress(false);
		return MPI_SUCCESS;
	}
	if (r->kind == MPI_REQ_PRECV && p->world != MPI_PROC_NULL && !p->theirs && !p->broken) {
		p->r = NULL; /* still takes its offer */
		r->partitioned = NULL;
	}
	mpi_object_release(r);
	return MPI_SUCCESS;
}

const struct mpi_request_ops mpi_psend_ops = {
	.launch = launch_send,
	.event = psend_event,
	.settled = unlink_entry,
	.free = free_request,
};

const struct mpi_request_ops mpi_precv_ops = {
	.launch = launch_recv,
	.event = precv_event,
	.settled = unlink_entry,
	.free = free_request,
};
