/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Accumulate and its variants. Origin and result become arrays of elements of the target
 * data's one predefined type, laid out as in C. The target's data are processed run by run. By
 * Portals a run is atomics of the right type. If Portals has no such type, the elements are
 * compared and swapped until all are done.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/coll/op.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/rma/rma.h"
#include "mpi_shim/datatype/body.h"

/* A buffer of the call. */
struct side {
	void *buf;
	MPI_Count count;
	struct mpi_type *type;
};

struct accumulate {
	struct mpi_win *win;
	int rank;
	MPI_Aint disp;
	MPI_Count count;
	struct mpi_type *type;
	struct mpi_op *op;
	MPI_Op op_handle;
	struct side origin, result; /* result.type NULL: nothing comes back */
	/* worked out */
	struct mpi_rma_place place;
	struct mpi_type *basic;
	size_t stride; /* bytes from element to element in the arrays */
	size_t n;
	const char *in; /* remaining elements; NULL with MPI_NO_OP */
	char *out;
	struct mpi_rma_batch *batch;
	size_t packed; /* bytes of the target's data processed */
};

/* ---- types ----------------------------------------------------------------------------------- */

static struct mpi_type *leaf_of(struct mpi_type *t);

static struct mpi_type *find_leaf(struct mpi_type *t)
{
	struct mpi_type *found = NULL;

	for (size_t i = 0; i < t->body->n_types; i++) {
		struct mpi_type *member = t->body->types[i], *leaf;
		MPI_Count times;

		mpi_type_member(t, i, &times);
		if (!times || !member->size)
			continue;
		leaf = leaf_of(member);
		if (!leaf || (found && leaf != found))
			return NULL;
		found = leaf;
	}
	return found;
}

/*
 * The predefined type of all data of t. NULL: t has data of several types, or none. The result
 * is cached: a type may contain another one many times, and that one likewise.
 */
static struct mpi_type *leaf_of(struct mpi_type *t)
{
	if (t->predefined)
		return t;
	if (!t->body->leaf_known) {
		t->body->leaf = find_leaf(t);
		t->body->leaf_known = true;
	}
	return t->body->leaf;
}

static int check_side(const struct accumulate *a, const struct side *s, const char *what)
{
	MPI_Count here, there = a->count * a->type->size;

	if (__builtin_mul_overflow(s->count, s->type->size, &here) || here != there)
		return mpi_fail(MPI_ERR_TYPE, "the %s and the target are not of the same length",
				what);
	if (there && leaf_of(s->type) != a->basic)
		return mpi_fail(MPI_ERR_TYPE,
				"the %s and the target are not of the same predefined type", what);
	return MPI_SUCCESS;
}

static int check_op(const struct accumulate *a)
{
	if (!a->op->predefined)
		return mpi_fail(MPI_ERR_OP, "one-sided operations take predefined operations only");
	if (a->op_handle == MPI_NO_OP && !a->result.type)
		return mpi_fail(MPI_ERR_OP, "MPI_NO_OP is for operations that fetch");
	return MPI_SUCCESS;
}

static int check_types(struct accumulate *a)
{
	MPI_Count bytes;
	int err = MPI_SUCCESS;

	if (__builtin_mul_overflow(a->count, a->type->size, &bytes))
		return mpi_fail(MPI_ERR_COUNT, "the elements are more than memory can hold");
	a->basic = leaf_of(a->type);
	if (!a->basic && bytes)
		return mpi_fail(MPI_ERR_TYPE,
				"the target's data are not of one predefined type alone");
	if (a->op_handle != MPI_NO_OP)
		err = check_side(a, &a->origin, "origin");
	if (!err && a->result.type)
		err = check_side(a, &a->result, "result");
	if (!err && bytes && a->op_handle != MPI_NO_OP && a->op_handle != MPI_REPLACE)
		err = mpi_op_check(a->op, a->basic);
	return err;
}

/* ---- arrays of elements ---------------------------------------------------------------------- */

static bool in_place(const struct accumulate *a, const struct side *s)
{
	return s->type->dense && a->basic->dense;
}

static char *first_byte_of_side(const struct side *s)
{
	return (char *)((uintptr_t)s->buf + (size_t)s->type->true_lb);
}

/* Pack the origin's elements at `to`. */
static int gather_elements(const struct accumulate *a, char *to)
{
	size_t bytes = a->n * (size_t)a->basic->size;
	char *packed = to;

	if (!a->basic->dense)
		packed = malloc(bytes + 1);
	if (!packed)
		return mpi_fail_memory("the elements of an accumulate");
	mpi_type_pack_bytes(a->origin.type, a->origin.buf, a->origin.count, 0, packed, bytes);
	if (packed != to) {
		memset(to, 0, a->n * a->stride);
		mpi_type_unpack_bytes(a->basic, to, (MPI_Count)a->n, 0, packed, bytes);
		free(packed);
	}
	return MPI_SUCCESS;
}

/* Set a->in and a->out. *tmp holds the arrays that cannot use the user's memory. */
static int make_arrays(struct accumulate *a, void **tmp)
{
	bool in = a->op_handle != MPI_NO_OP && !in_place(a, &a->origin);
	bool out = a->result.type && !in_place(a, &a->result);
	size_t bytes = a->n * a->stride;
	char *more = NULL;

	*tmp = NULL;
	if (in || out) {
		*tmp = more = malloc(bytes * ((size_t)in + out) + 1);
		if (!more)
			return mpi_fail_memory("the elements of an accumulate");
	}
	if (in) {
		a->in = more;
		more += bytes;
	} else if (a->op_handle != MPI_NO_OP) {
		a->in = first_byte_of_side(&a->origin);
	}
	if (out)
		a->out = more;
	else if (a->result.type)
		a->out = first_byte_of_side(&a->result);
	return in ? gather_elements(a, *tmp) : MPI_SUCCESS;
}

/* ---- runs of the target's data --------------------------------------------------------------- */

/* Runs of whole elements. */
typedef int elements_fn(struct accumulate *a, const struct mpi_runs *r);

struct walk {
	struct accumulate *a;
	elements_fn *fn;
};

static void went(struct accumulate *a, size_t n)
{
	if (a->in)
		a->in += n * a->stride;
	if (a->out)
		a->out += n * a->stride;
}

/* Elements with gaps: process those whose first data byte is among these bytes. */
static int beginning_in(struct walk *w, MPI_Aint at, size_t bytes)
{
	struct accumulate *a = w->a;
	size_t size = (size_t)a->basic->size, first = (size - a->packed % size) % size;
	int err = MPI_SUCCESS;

	a->packed += bytes;
	for (size_t i = first; i < bytes && !err; i += size) {
		struct mpi_runs one = { at + (MPI_Aint)i, 0, a->stride, 1 };

		err = w->fn(a, &one);
		went(a, 1);
	}
	return err;
}

static int some_runs(void *arg, const struct mpi_runs *r)
{
	struct walk *w = arg;
	struct accumulate *a = w->a;
	int err = MPI_SUCCESS;

	if (a->basic->dense) {
		err = w->fn(a, r);
		went(a, r->bytes / a->stride * r->count);
		return err;
	}
	for (size_t i = 0; i < r->count && !err; i++)
		err = beginning_in(w, r->offset + (MPI_Aint)i * r->stride, r->bytes);
	return err;
}

static int each_run_of_target(struct accumulate *a, elements_fn *fn)
{
	struct walk w = { a, fn };

	return mpi_type_runs(a->type, a->count, some_runs, &w);
}

/* ---- mapped memory --------------------------------------------------------------------------- */

static int runs_direct(struct accumulate *a, const struct mpi_runs *r)
{
	const char *in = a->in;
	char *out = a->out;
	int err = MPI_SUCCESS;

	for (size_t i = 0; i < r->count && !err; i++) {
		err = mpi_rma_direct(a->win, a->place.t,
				     a->place.here + r->offset + (MPI_Aint)i * r->stride, in, out,
				     r->bytes / a->stride, a->basic, a->op);
		in += in ? r->bytes : 0;
		out += out ? r->bytes : 0;
	}
	return err;
}

static int direct(struct accumulate *a)
{
	void *tmp;
	int err = make_arrays(a, &tmp);
	char *out = a->out;

	if (!err)
		err = each_run_of_target(a, runs_direct);
	if (!err && a->result.type && !in_place(a, &a->result))
		mpi_rma_store(out, a->basic, a->result.buf, a->result.count, a->result.type);
	free(tmp);
	return err;
}

/* ---- by Portals ------------------------------------------------------------------------------ */

/* The operation of Portals; 0: Portals has none. */
static ptl_atomic_op_t atomic_op(MPI_Op op)
{
	static const struct {
		MPI_Op mpi;
		ptl_atomic_op_t portals;
	} ops[] = {
		{ MPI_SUM, PTL_ATOMIC_SUM },      { MPI_PROD, PTL_ATOMIC_PROD },
		{ MPI_MIN, PTL_ATOMIC_MIN },      { MPI_MAX, PTL_ATOMIC_MAX },
		{ MPI_BAND, PTL_ATOMIC_BAND },    { MPI_BOR, PTL_ATOMIC_BOR },
		{ MPI_BXOR, PTL_ATOMIC_BXOR },    { MPI_LAND, PTL_ATOMIC_LAND },
		{ MPI_LOR, PTL_ATOMIC_LOR },      { MPI_LXOR, PTL_ATOMIC_LXOR },
		{ MPI_REPLACE, PTL_ATOMIC_SWAP }, { MPI_NO_OP, PTL_ATOMIC_FETCH },
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (ops[i].mpi == op)
			return ops[i].portals;
	return 0;
}

/* The type of Portals to move elements of a size; 0: none. */
static ptl_atomic_type_t atomic_block_of(size_t size)
{
	switch (size) {
	case 1:
		return PTL_ATOMIC_UINT8;
	case 2:
		return PTL_ATOMIC_UINT16;
	case 4:
		return PTL_ATOMIC_UINT32;
	case 8:
		return PTL_ATOMIC_UINT64;
	case 16:
		return PTL_ATOMIC_BLOCK16;
	case 32:
		return PTL_ATOMIC_BLOCK32;
	default:
		return 0;
	}
}

/* The type with which Portals calculates; 0: none. */
static ptl_atomic_type_t atomic_number_of(const struct mpi_type *basic, MPI_Op op)
{
	ptl_atomic_type_t by_size = basic->size <= 8 ? atomic_block_of((size_t)basic->size) : 0;

	if (!by_size)
		return 0;
	switch (basic->body->basic) {
	case MPI_BASIC_UNSIGNED:
		return by_size;
	case MPI_BASIC_SIGNED:
		return by_size - 1;
	case MPI_BASIC_BYTES:
		if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR)
			return by_size;
		return basic != mpi_type_of(MPI_CHAR) ? 0 : CHAR_MIN < 0 ? by_size - 1 : by_size;
	case MPI_BASIC_FLOAT:
		if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR)
			return 0;
		return basic->size == 4   ? PTL_ATOMIC_FLOAT
		       : basic->size == 8 ? PTL_ATOMIC_DOUBLE
					  : 0;
	default:
		return 0;
	}
}

/* Start an atomic and wait for its answer. */
static int exchange_elements(struct accumulate *a, const void *from, void *to, size_t bytes,
			     uint32_t number, uint64_t offset, ptl_atomic_op_t what,
			     ptl_atomic_type_t type)
{
	struct mpi_rma *op = mpi_rma_begin(a->win, a->rank);

	if (!op)
		return MPI_ERR_NO_MEM;
	op->error = mpi_rma_atomic(op, from, to, bytes, number, offset, what, type);
	return mpi_rma_wait(op);
}

enum { SWAP_MOST = MPI_RMA_ATOMIC_MOST / 2 };

/* Calculate up to SWAP_MOST bytes of elements that Portals cannot calculate with. `out` may be
 * NULL. */
static int swap_until_done(struct accumulate *a, const char *in, char *out, size_t n,
			   uint32_t number, uint64_t offset)
{
	ptl_atomic_type_t type = atomic_block_of(a->stride);
	_Alignas(16) char work[2 * SWAP_MOST], got[SWAP_MOST];
	char *old = work, *new = work + n * a->stride;
	bool done[SWAP_MOST] = { false };
	size_t left = n, bytes = n * a->stride;
	int err = exchange_elements(a, in, got, bytes, number, offset, PTL_ATOMIC_FETCH, type);

	memcpy(old, got, bytes);
	while (!err && left) {
		for (size_t i = 0; i < n; i++) {
			char *at = new + i * a->stride;

			memcpy(at, old + i * a->stride, a->stride);
			/* an element that is done does not change any more */
			if (!done[i])
				err = mpi_op_apply(a->op, in + i * a->stride, at, 1, a->basic);
		}
		if (!err)
			err = exchange_elements(a, work, got, bytes, number, offset,
						PTL_ATOMIC_CSWAP, type);
		for (size_t i = 0; i < n && !err; i++) {
			size_t at = i * a->stride;

			if (done[i] || memcmp(got + at, old + at, a->stride) == 0) {
				left -= !done[i];
				if (!done[i] && out)
					memcpy(out + at, got + at, a->stride);
				done[i] = true;
			}
			memcpy(old + at, got + at, a->stride);
		}
	}
	return err;
}

/* The type of the elements for Portals and this operation; 0: none. */
static ptl_atomic_type_t atomic_type(const struct mpi_type *basic, MPI_Op op)
{
	return op == MPI_REPLACE || op == MPI_NO_OP ? atomic_block_of((size_t)basic->extent)
						    : atomic_number_of(basic, op);
}

/* Calculate a run of elements that Portals cannot calculate with, in segments. */
static int swap_run(struct accumulate *a, MPI_Aint at, size_t n, const char *in, char *out)
{
	const size_t most = SWAP_MOST / a->stride * a->stride, all = n * a->stride;
	int err = MPI_SUCCESS;

	for (size_t by = 0, some; by < all && !err; by += some) {
		uint64_t offset;
		uint32_t number;

		some = all - by < most ? all - by : most;
		err = mpi_rma_find(a->win, &a->place, at + (MPI_Aint)by, a->stride, &some, &number,
				   &offset);
		if (!err)
			err = swap_until_done(a, in + by, out ? out + by : NULL, some / a->stride,
					      number, offset);
	}
	return err;
}

static int runs_far(struct accumulate *a, const struct mpi_runs *r)
{
	int err = MPI_SUCCESS;

	if (!atomic_block_of(a->stride))
		return mpi_fail(MPI_ERR_TYPE, "elements of %zu bytes cannot be accumulated",
				a->stride);
	if (a->batch->what && a->batch->type)
		return mpi_rma_batch_add(a->batch, &a->place, a->in, a->out, r);
	for (size_t i = 0; i < r->count && !err; i++)
		err = swap_run(a, r->offset + (MPI_Aint)i * r->stride, r->bytes / a->stride,
			       a->in + i * r->bytes, a->out ? a->out + i * r->bytes : NULL);
	return err;
}

static int each_run_far(struct accumulate *a, struct mpi_rma_batch *batch)
{
	int err;

	a->batch = batch;
	err = each_run_of_target(a, runs_far);
	if (!err)
		err = mpi_rma_batch_end(batch);
	a->batch = NULL;
	return err;
}

static int accumulate_by_portals(struct accumulate *a, struct mpi_request **request)
{
	struct mpi_rma *op = mpi_rma_begin(a->win, a->rank);
	struct mpi_rma_batch batch;
	int err;

	if (!op)
		return MPI_ERR_NO_MEM;
	mpi_rma_batch_begin(&batch, op, false, atomic_op(a->op_handle),
			    atomic_type(a->basic, a->op_handle), a->stride);
	err = make_arrays(a, &op->tmp);
	if (!err && a->result.type && !in_place(a, &a->result)) {
		op->packed = a->out;
		op->buf = a->result.buf;
		op->count = a->result.count;
		op->type = mpi_object_keep(a->result.type);
		op->basic = a->basic->dense ? NULL : mpi_object_keep(a->basic);
	}
	if (!err && request)
		err = mpi_rma_request(op, request);
	if (!err)
		err = each_run_far(a, &batch);
	if (err)
		mpi_rma_fail(op, err);
	mpi_rma_started(op);
	return err;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static int start_accumulate(struct accumulate *a, struct mpi_request **request)
{
	bool none;
	int err = check_op(a);

	if (!err)
		err = mpi_rma_locate(a->win, a->rank, a->disp, a->count, a->type, &a->place, &none);
	if (!err && a->rank != MPI_PROC_NULL)
		err = check_types(a);
	if (err)
		return err;
	if (none)
		return request ? mpi_rma_request_done(request) : MPI_SUCCESS;
	a->stride = (size_t)a->basic->extent;
	a->n = (size_t)(a->count * a->type->size / a->basic->size);
	if (!a->win->direct)
		return accumulate_by_portals(a, request);
	err = direct(a);
	return err || !request ? err : mpi_rma_request_done(request);
}

int mpi_raccumulate(const void *origin_addr, MPI_Count origin_count,
		    struct mpi_type *origin_datatype, int target_rank, MPI_Aint target_disp,
		    MPI_Count target_count, struct mpi_type *target_datatype, struct mpi_op *op,
		    struct mpi_win *win, struct mpi_request **request)
{
	struct accumulate a = {
		.win = win,
		.rank = target_rank,
		.disp = target_disp,
		.count = target_count,
		.type = target_datatype,
		.op = op,
		.op_handle = mpi_handle_of(op),
		.origin = { (void *)(uintptr_t)origin_addr, origin_count, origin_datatype },
	};

	return start_accumulate(&a, request);
}

int mpi_accumulate(const void *origin_addr, MPI_Count origin_count,
		   struct mpi_type *origin_datatype, int target_rank, MPI_Aint target_disp,
		   MPI_Count target_count, struct mpi_type *target_datatype, struct mpi_op *op,
		   struct mpi_win *win)
{
	return mpi_raccumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
			       target_count, target_datatype, op, win, NULL);
}

/* Check what the entry point does not, as the origin may have no meaning (MPI_NO_OP). */
static int check_origin(const void *addr, MPI_Count count, const struct mpi_type *type)
{
	if (count < 0)
		return mpi_fail(MPI_ERR_COUNT, "origin_count is %lld: it must not be negative",
				(long long)count);
	if (!type)
		return mpi_fail(MPI_ERR_TYPE, "origin_datatype is not a datatype");
	if (!type->committed)
		return mpi_fail(MPI_ERR_TYPE,
				"origin_datatype is not committed: call MPI_Type_commit first");
	if (!addr && count && type->size && type->predefined)
		return mpi_fail(MPI_ERR_BUFFER, "origin_addr is a null pointer, the count is %lld",
				(long long)count);
	return MPI_SUCCESS;
}

int mpi_rget_accumulate(const void *origin_addr, MPI_Count origin_count,
			struct mpi_type *origin_datatype, void *result_addr, MPI_Count result_count,
			struct mpi_type *result_datatype, int target_rank, MPI_Aint target_disp,
			MPI_Count target_count, struct mpi_type *target_datatype, struct mpi_op *op,
			struct mpi_win *win, struct mpi_request **request)
{
	struct accumulate a = {
		.win = win,
		.rank = target_rank,
		.disp = target_disp,
		.count = target_count,
		.type = target_datatype,
		.op = op,
		.op_handle = mpi_handle_of(op),
		.origin = { (void *)(uintptr_t)origin_addr, origin_count, origin_datatype },
		.result = { result_addr, result_count, result_datatype },
	};
	int err = a.op_handle == MPI_NO_OP
			  ? MPI_SUCCESS
			  : check_origin(origin_addr, origin_count, origin_datatype);

	return err ? err : start_accumulate(&a, request);
}

int mpi_get_accumulate(const void *origin_addr, MPI_Count origin_count,
		       struct mpi_type *origin_datatype, void *result_addr, MPI_Count result_count,
		       struct mpi_type *result_datatype, int target_rank, MPI_Aint target_disp,
		       MPI_Count target_count, struct mpi_type *target_datatype, struct mpi_op *op,
		       struct mpi_win *win)
{
	return mpi_rget_accumulate(origin_addr, origin_count, origin_datatype, result_addr,
				   result_count, result_datatype, target_rank, target_disp,
				   target_count, target_datatype, op, win, NULL);
}

/* A call of MPI_Fetch_and_op. */
struct fetch {
	const void *origin;
	void *result;
	struct mpi_type *type;
	int rank;
	MPI_Aint disp;
	struct mpi_op *op;
	MPI_Op handle;
};

static int fetch_in_general(struct mpi_win *win, const struct fetch *f)
{
	struct accumulate a = {
		.win = win,
		.rank = f->rank,
		.disp = f->disp,
		.count = 1,
		.type = f->type,
		.op = f->op,
		.op_handle = f->handle,
		.origin = { (void *)(uintptr_t)f->origin, 1, f->type },
		.result = { f->result, 1, f->type },
	};

	return start_accumulate(&a, NULL);
}

/* One atomic of Portals. */
static int fetch_far(struct mpi_win *win, const struct fetch *f, const struct mpi_rma_place *place)
{
	ptl_atomic_op_t what = atomic_op(f->handle);
	ptl_atomic_type_t type = atomic_type(f->type, f->handle);
	struct mpi_rma *op;
	int err;

	if (!what || !type || !place->number)
		return fetch_in_general(win, f);
	op = mpi_rma_begin(win, f->rank);
	if (!op)
		return MPI_ERR_NO_MEM;
	err = mpi_rma_atomic(op, f->handle == MPI_NO_OP ? f->result : f->origin, f->result,
			     (size_t)f->type->size, place->number, place->offset, what, type);
	if (err)
		mpi_rma_fail(op, err);
	mpi_rma_started(op);
	return err;
}

/* An element without gaps: the shortest path. */
static int fetch_dense(struct mpi_win *win, const struct fetch *f)
{
	struct mpi_rma_place place;
	bool none;
	int err = mpi_rma_locate(win, f->rank, f->disp, 1, f->type, &place, &none);

	if (!err && f->handle != MPI_NO_OP && f->handle != MPI_REPLACE)
		err = mpi_op_check(f->op, f->type);
	if (err || none)
		return err;
	if (!win->direct)
		return fetch_far(win, f, &place);
	return mpi_rma_direct(win, place.t, place.here, f->handle == MPI_NO_OP ? NULL : f->origin,
			      f->result, 1, f->type, f->op);
}

int mpi_fetch_and_op(const void *origin_addr, void *result_addr, struct mpi_type *datatype,
		     int target_rank, MPI_Aint target_disp, struct mpi_op *op, struct mpi_win *win)
{
	struct fetch f = { origin_addr, result_addr, datatype,         target_rank,
			   target_disp, op,          mpi_handle_of(op) };
	int err = MPI_SUCCESS;

	if (!datatype->predefined)
		return mpi_fail(MPI_ERR_TYPE, "the datatype is not predefined");
	if (!op->predefined)
		return mpi_fail(MPI_ERR_OP, "one-sided operations take predefined operations only");
	if (f.handle != MPI_NO_OP)
		err = check_origin(origin_addr, 1, datatype);
	if (err)
		return err;
	return datatype->dense ? fetch_dense(win, &f) : fetch_in_general(win, &f);
}

static int check_comparable(const struct mpi_type *t)
{
	enum mpi_basic kind = t->body->basic;

	if (t->predefined &&
	    (kind == MPI_BASIC_SIGNED || kind == MPI_BASIC_UNSIGNED || kind == MPI_BASIC_BYTES))
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_TYPE,
			"the datatype is none of those that can be compared: integers, "
			"logicals and bytes");
}

int mpi_compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
			 struct mpi_type *datatype, int target_rank, MPI_Aint target_disp,
			 struct mpi_win *win)
{
	struct mpi_rma_place place;
	struct mpi_rma *op;
	uint64_t offset;
	uint32_t number;
	size_t size = (size_t)datatype->size;
	bool none = false;
	int err = check_comparable(datatype);

	if (!err)
		err = mpi_rma_locate(win, target_rank, target_disp, 1, datatype, &place, &none);
	if (err || none)
		return err;
	if (win->direct) {
		mpi_rma_direct_cas(win, place.t, place.here, compare_addr, origin_addr, result_addr,
				   size);
		return MPI_SUCCESS;
	}
	err = mpi_rma_find(win, &place, 0, size, &size, &number, &offset);
	if (err)
		return err;
	op = mpi_rma_begin(win, target_rank);
	if (!op)
		return MPI_ERR_NO_MEM;
	memcpy(op->few, compare_addr, size);
	memcpy(op->few + size, origin_addr, size);
	err = mpi_rma_atomic(op, op->few, result_addr, size, number, offset, PTL_ATOMIC_CSWAP,
			     atomic_block_of(size));
	if (err)
		mpi_rma_fail(op, err);
	mpi_rma_started(op);
	return err;
}
