/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Put and get. If the target's memory is mapped here, they are copies. Otherwise each long run
 * of bytes of the target's datatype is a put or get of Portals. It uses the user's memory if
 * its data are contiguous, else a packed copy. Short runs go together (runs.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/rma/rma.h"
#include "mpi_shim/rma/cma.h"

/* ---- where to -------------------------------------------------------------------------------- */

static int no_epoch(const struct mpi_win *win, int rank)
{
	if (win->access == MPI_ACCESS_START)
		return mpi_fail(MPI_ERR_RMA_SYNC, "rank %d is not in the group of MPI_Win_start",
				rank);
	if (win->access == MPI_ACCESS_LOCK)
		return mpi_fail(MPI_ERR_RMA_SYNC, "rank %d is not locked", rank);
	return mpi_fail(MPI_ERR_RMA_SYNC, "no access epoch is open: MPI_Win_fence, MPI_Win_start, "
					  "MPI_Win_lock or MPI_Win_lock_all begins one");
}

static inline bool may_access(struct mpi_win *win, const struct mpi_win_target *t)
{
	switch (win->access) {
	case MPI_ACCESS_LOCK_ALL:
		return true;
	case MPI_ACCESS_LOCK:
		return t->lock != 0;
	case MPI_ACCESS_START:
		return t->started;
	case MPI_ACCESS_FENCE:
		win->fence_used = true;
		return true;
	default:
		return false;
	}
}

/* Compute the range of the data of `count` elements. False: beyond any address space. */
static bool span(const struct mpi_type *type, MPI_Count count, MPI_Aint *low, MPI_Aint *high)
{
	MPI_Aint more;

	*low = type->true_lb;
	*high = type->true_lb + type->true_extent;
	if (count <= 1)
		return true;
	if (__builtin_mul_overflow(count - 1, type->extent, &more))
		return false;
	return !__builtin_add_overflow(more < 0 ? *low : *high, more, more < 0 ? low : high);
}

static int out_of_range(const struct mpi_win *win, int rank, MPI_Aint disp)
{
	const struct mpi_win_target *t = &win->target[rank];

	return mpi_fail(MPI_ERR_RMA_RANGE,
			"the data at displacement %lld are not within the %lld bytes of the window "
			"of rank %d, whose displacement unit is %lld",
			(long long)disp, (long long)t->size, rank, (long long)t->unit);
}

static int locate_dynamic(struct mpi_win *win, struct mpi_win_target *t, MPI_Aint disp,
			  MPI_Aint low, MPI_Aint high, struct mpi_rma_place *place)
{
	size_t bytes = (size_t)(high - low);
	uint64_t offset;

	place->far = (uint64_t)disp;
	if (mpi_win_find_region(win, t, (uint64_t)disp + (uint64_t)low, 1, &bytes, &place->number,
				&offset) != MPI_SUCCESS ||
	    bytes < (size_t)(high - low))
		place->number = 0; /* perhaps in several regions: run by run */
	else
		place->offset = offset - (uint64_t)low;
	return MPI_SUCCESS;
}

int mpi_rma_locate(struct mpi_win *win, int rank, MPI_Aint disp, MPI_Count count,
		   const struct mpi_type *type, struct mpi_rma_place *place, bool *none)
{
	struct mpi_win_target *t;
	MPI_Aint low, high, at;

	*none = rank == MPI_PROC_NULL;
	if (*none)
		return MPI_SUCCESS;
	t = &win->target[rank];
	place->t = t;
	if (!may_access(win, t))
		return no_epoch(win, rank);
	if (disp < 0 && win->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		return mpi_fail(MPI_ERR_DISP, "the displacement %lld is negative", (long long)disp);
	*none = count == 0 || type->size == 0;
	if (*none)
		return MPI_SUCCESS;
	if (!span(type, count, &low, &high))
		return out_of_range(win, rank, disp);
	place->here = NULL;
	if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return locate_dynamic(win, t, disp, low, high, place);
	if (__builtin_mul_overflow(disp, t->unit, &at) || __builtin_add_overflow(low, at, &low) ||
	    __builtin_add_overflow(high, at, &high) || low < 0 || high > t->size)
		return out_of_range(win, rank, disp);
	place->number = t->number;
	place->offset = (uint64_t)at;
	if (t->base)
		place->here = t->base + at;
	return MPI_SUCCESS;
}

int mpi_rma_find(struct mpi_win *win, const struct mpi_rma_place *place, MPI_Aint at,
		 size_t element, size_t *bytes, uint32_t *number, uint64_t *offset)
{
	*number = place->number;
	*offset = place->offset + (uint64_t)at;
	if (*number)
		return MPI_SUCCESS;
	return mpi_win_find_region(win, place->t, place->far + (uint64_t)at, element, bytes, number,
				   offset);
}

/* ---- requests -------------------------------------------------------------------------------- */

int mpi_rma_request_done(struct mpi_request **request)
{
	struct mpi_request *r = mpi_request_new(MPI_REQ_RMA);

	if (!r)
		return MPI_ERR_NO_MEM;
	r->peer = MPI_PROC_NULL;
	r->done = true;
	*request = r;
	return MPI_SUCCESS;
}

int mpi_rma_request(struct mpi_rma *op, struct mpi_request **request)
{
	struct mpi_request *r = mpi_request_new(MPI_REQ_RMA);

	if (!r)
		return MPI_ERR_NO_MEM;
	r->peer = MPI_PROC_NULL;
	r->win = op->win->obj.handle;
	op->request = mpi_object_keep(r);
	*request = r;
	return MPI_SUCCESS;
}

/* ---- runs ------------------------------------------------------------------------------------ */

struct runs {
	const struct mpi_rma_place *place;
	char *local;
	bool put;
	struct mpi_rma_batch *batch;
};

static int add_runs(void *arg, const struct mpi_runs *those)
{
	struct runs *r = arg;
	int err = mpi_rma_batch_add(r->batch, r->place, r->put ? r->local : NULL,
				    r->put ? NULL : r->local, those);

	r->local += those->bytes * those->count;
	return err;
}

/* ---- common to put and get ------------------------------------------------------------------- */

struct transfer {
	void *buf;
	MPI_Count count;
	struct mpi_type *type;
	int rank;
	MPI_Aint disp;
	MPI_Count target_count;
	struct mpi_type *target_type;
	bool put;
};

static int check_sizes(const struct transfer *x)
{
	MPI_Count here, there;

	if (__builtin_mul_overflow(x->count, x->type->size, &here) ||
	    __builtin_mul_overflow(x->target_count, x->target_type->size, &there))
		return mpi_fail(MPI_ERR_COUNT, "the elements are more than memory can hold");
	if (here == there)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_TYPE,
			"%lld bytes at the origin and %lld bytes at the target: the types do not "
			"match",
			(long long)here, (long long)there);
}

/* The address of data without gaps. */
static char *local_dense(const struct transfer *x)
{
	return (char *)((uintptr_t)x->buf + (size_t)x->type->true_lb);
}

/* Copy to or from a target whose memory is mapped here. */
static void copy_mapped(const struct transfer *x, char *there)
{
	size_t n = (size_t)(x->count * x->type->size);
	char *here;

	if (x->type->dense && x->target_type->dense) {
		here = local_dense(x);
		there += x->target_type->true_lb;
		if (n == 8)
			memcpy(x->put ? there : here, x->put ? here : there, 8);
		else if (x->put)
			memmove(there, here, n);
		else
			base_move_back(here, there, n);
	} else if (x->put) {
		mpi_type_copy(x->buf, x->count, x->type, there, x->target_count, x->target_type);
	} else {
		mpi_type_copy(there, x->target_count, x->target_type, x->buf, x->count, x->type);
	}
}

/* Set *data to the packed data's source or destination. Data with gaps get a copy, which is
 * freed with the record. */
static int local_data(struct mpi_rma *op, const struct transfer *x, char **data)
{
	size_t n = (size_t)(x->count * x->type->size);

	if (x->type->dense) {
		*data = local_dense(x);
		return MPI_SUCCESS;
	}
	op->tmp = malloc(n);
	if (!op->tmp)
		return mpi_fail_memory("a packed copy of the data");
	*data = op->tmp;
	if (x->put) {
		mpi_type_pack_bytes(x->type, x->buf, x->count, 0, op->tmp, n);
		return MPI_SUCCESS;
	}
	op->packed = op->tmp;
	op->buf = x->buf;
	op->count = x->count;
	op->type = mpi_object_keep(x->type);
	return MPI_SUCCESS;
}

static int in_runs(struct mpi_rma *op, const struct transfer *x, const struct mpi_rma_place *place,
		   char *local)
{
	struct mpi_rma_batch b;
	struct runs r = { place, local, x->put, &b };
	int err;

	mpi_rma_batch_begin(&b, op, true, x->put ? PTL_ATOMIC_SWAP : PTL_ATOMIC_FETCH,
			    PTL_ATOMIC_UINT8, 1);
	err = mpi_type_runs(x->target_type, x->target_count, add_runs, &r);
	return err ? err : mpi_rma_batch_end(&b);
}

/* Transfer all but the first `gone` bytes, contiguous on both sides. */
static int in_one_segment(struct mpi_rma *op, const struct transfer *x,
			  const struct mpi_rma_place *place, char *local, size_t gone)
{
	size_t n = (size_t)(x->count * x->type->size) - gone;
	uint64_t offset = place->offset + (uint64_t)x->target_type->true_lb + gone;

	return x->put ? mpi_rma_put(op, local + gone, n, place->number, offset)
		      : mpi_rma_get(op, local, n, place->number, offset);
}

static size_t along(struct mpi_win *win, const struct transfer *x,
		    const struct mpi_rma_place *place, bool segments)
{
	/* attached memory may be gone, and only an answer reports that */
	if (!x->put || !x->type->dense || !x->target_type->dense || !place->number ||
	    win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return 0;
	return mpi_rma_put_along(win, x->rank, local_dense(x), (size_t)(x->count * x->type->size),
				 place->number, place->offset + (uint64_t)x->target_type->true_lb,
				 segments);
}

/* `segments`: they are faster than the whole. */
static int transfer_by_portals(struct mpi_win *win, const struct transfer *x,
			       const struct mpi_rma_place *place, bool segments,
			       struct mpi_request **request)
{
	struct mpi_rma *op;
	char *local;
	size_t gone = request ? 0 : along(win, x, place, segments);
	int err;

	if (gone == (size_t)(x->count * x->type->size))
		return MPI_SUCCESS;
	op = mpi_rma_begin(win, x->rank);
	if (!op)
		return MPI_ERR_NO_MEM;
	op->segments = segments;
	err = local_data(op, x, &local);
	if (!err && request)
		err = mpi_rma_request(op, request);
	if (!err)
		err = x->target_type->dense && place->number
			      ? in_one_segment(op, x, place, local, gone)
			      : in_runs(op, x, place, local);
	if (err)
		mpi_rma_fail(op, err);
	mpi_rma_started(op);
	return err;
}

/* As transfer_by_portals(), or by CMA. */
static int far(struct mpi_win *win, const struct transfer *x, const struct mpi_rma_place *place,
	       struct mpi_request **request)
{
	const size_t n = (size_t)(x->count * x->type->size);
	enum mpi_rma_path path;
	uint64_t since;
	int err;

	if (!x->type->dense || !x->target_type->dense || !mpi_rma_cma_has(place->t, n))
		return transfer_by_portals(win, x, place, false, request);
	path = mpi_rma_cma_begin(win, n, x->put, request, &since);
	if (path == MPI_RMA_BY_KERNEL &&
	    mpi_rma_cma_copy(place->t, place->offset + (uint64_t)x->target_type->true_lb,
			     local_dense(x), n, x->put))
		err = request ? mpi_rma_request_done(request) : MPI_SUCCESS;
	else
		err = transfer_by_portals(win, x, place, path == MPI_RMA_IN_SEGMENTS, request);
	mpi_rma_cma_end(win, n, since);
	return err;
}

/* `request` may be NULL: none is wanted. */
static int transfer(struct mpi_win *win, const struct transfer *x, struct mpi_request **request)
{
	struct mpi_rma_place place;
	bool none;
	int err = mpi_rma_locate(win, x->rank, x->disp, x->target_count, x->target_type, &place,
				 &none);

	if (!err && x->rank != MPI_PROC_NULL)
		err = check_sizes(x);
	if (err)
		return err;
	if (!none && !place.here)
		return far(win, x, &place, request);
	if (!none)
		copy_mapped(x, place.here);
	return request ? mpi_rma_request_done(request) : MPI_SUCCESS;
}

/* ---- the calls ------------------------------------------------------------------------------- */

int mpi_put(const void *origin_addr, MPI_Count origin_count, struct mpi_type *origin_datatype,
	    int target_rank, MPI_Aint target_disp, MPI_Count target_count,
	    struct mpi_type *target_datatype, struct mpi_win *win)
{
	struct transfer x = { (void *)(uintptr_t)origin_addr,
			      origin_count,
			      origin_datatype,
			      target_rank,
			      target_disp,
			      target_count,
			      target_datatype,
			      true };

	return transfer(win, &x, NULL);
}

int mpi_get(void *origin_addr, MPI_Count origin_count, struct mpi_type *origin_datatype,
	    int target_rank, MPI_Aint target_disp, MPI_Count target_count,
	    struct mpi_type *target_datatype, struct mpi_win *win)
{
	struct transfer x = { origin_addr, origin_count, origin_datatype, target_rank,
			      target_disp, target_count, target_datatype, false };

	return transfer(win, &x, NULL);
}

int mpi_rput(const void *origin_addr, MPI_Count origin_count, struct mpi_type *origin_datatype,
	     int target_rank, MPI_Aint target_disp, MPI_Count target_count,
	     struct mpi_type *target_datatype, struct mpi_win *win, struct mpi_request **request)
{
	struct transfer x = { (void *)(uintptr_t)origin_addr,
			      origin_count,
			      origin_datatype,
			      target_rank,
			      target_disp,
			      target_count,
			      target_datatype,
			      true };

	return transfer(win, &x, request);
}

int mpi_rget(void *origin_addr, MPI_Count origin_count, struct mpi_type *origin_datatype,
	     int target_rank, MPI_Aint target_disp, MPI_Count target_count,
	     struct mpi_type *target_datatype, struct mpi_win *win, struct mpi_request **request)
{
	struct transfer x = { origin_addr, origin_count, origin_datatype, target_rank,
			      target_disp, target_count, target_datatype, false };

	return transfer(win, &x, request);
}
