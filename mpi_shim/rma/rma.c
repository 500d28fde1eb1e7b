/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * One-sided operations in progress: see rma.h. Records are found by number and never move.
 */
#include "mpi_shim/rma/rma.h"

#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/waiting.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/rma/cma.h"

/* Answers that may be outstanding: the queue has room for all. */
#define ANSWERS_MOST 2048
/* Parts of more bytes are large, and at most LARGE_MOST of them are in progress. More would not
 * be faster, but would have to be copied and polled. */
#define LARGE      4096
#define LARGE_MOST 8
/* Above WHOLE_MOST bytes we ask Portals whether segments are better, but not above CUT_MOST. As
 * a whole, longer data are copied once, by both sides at once: that begins late but is over
 * sooner. At 64 KiB either may be faster: cma.c finds out. */
#define WHOLE_MOST 16384
#define CUT_MOST   32768
/* An operation that is alone and not too long for segments goes in segments of this length. */
#define ALONE_MOST 8192
/* Bytes in progress at a time of parts that go by a ring as a whole: more would wait for room in
 * the ring. Segments of long parts may wait: a bound for them is no faster. */
#define RING_BYTES 98304
/* Puts of at most so many bytes end in the order in which they were sent. */
#define ALONG_MOST 32768
#define CHUNK      256 /* records allocated at a time */
#define CHUNKS     4096

#define NUMBER_SHIFT 32
#define INDEX_MASK   0xffffffffull

/* The address space in two halves, each as long as a memory descriptor can be. */
#define HALF ((uintptr_t)PTL_MAX_TRANS_SZ)

static ptl_handle_eq_t answers_eq = PTL_EQ_NONE;

static struct {
	ptl_handle_me_t last; /* accepts what no other entry does */
	ptl_handle_md_t out[2], in[2];
	uint32_t next_number;
	uint32_t answers, large; /* outstanding answers; those for large parts */
	struct mpi_rma *chunk[CHUNKS];
	uint32_t chunks, free; /* index + 1 */
	uint32_t in_use;
} rma;

static int portals(int err, const char *what)
{
	return mpi_fail(err == PTL_NO_SPACE ? MPI_ERR_NO_MEM : MPI_ERR_OTHER, "%s: %s", what,
			PtlErrorStr((unsigned int)err));
}

/* ---- the portal ------------------------------------------------------------------------------ */

static int bind_all(ptl_handle_md_t *half, unsigned int options)
{
	for (int i = 0; i < 2; i++) {
		ptl_md_t md = {
			/* address 0 is not a valid one and is left out */
			.start = (void *)(i ? HALF : (uintptr_t)1),
			.length = HALF - !i,
			.threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_EVENT_START_DISABLE | options,
			.eq_handle = answers_eq,
		};
		int err = PtlMDBind(mpi_world.ni, md, PTL_RETAIN, &half[i]);

		if (err != PTL_OK)
			return portals(err, "no memory descriptor for one-sided operations");
	}
	return MPI_SUCCESS;
}

static void check_targets(void);
static void handle_answer(const ptl_event_t *ev);
static int answer_offered(const ptl_arrival_t *end);

int mpi_rma_init(void)
{
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t nothing = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE,
		.eq_handle = PTL_EQ_NONE,
	};
	int err;

	if (answers_eq != PTL_EQ_NONE)
		return MPI_SUCCESS;
	mpi_rma_cma_init();
	mpi_peers_check_also(check_targets);
	mpi_waiting_describe_also(mpi_win_describe_locks);
	mpi_arrivals_go_to(MPI_ARRIVAL_ANSWER, answer_offered);
	err = PtlMEMDAttach(mpi_world.ni, MPI_PT_RMA, any, 0, UINT64_MAX, PTL_RETAIN, PTL_INS_AFTER,
			    nothing, PTL_RETAIN, &rma.last, NULL);
	if (err != PTL_OK)
		return portals(err, "cannot set up the portal of one-sided operations");
	err = PtlEQAlloc(mpi_world.ni, ANSWERS_MOST + 8, PTL_EQ_HANDLER_NONE, &answers_eq);
	if (err != PTL_OK) {
		answers_eq = PTL_EQ_NONE;
		return portals(err, "no event queue for one-sided operations");
	}
	mpi_progress_add_queue(answers_eq, handle_answer);
	/* sent data need no event besides the acknowledgement; while a process waits, the inline
	 * handler takes answers without an event */
	err = bind_all(rma.out, PTL_MD_EVENT_END_DISABLE | PTL_MD_INLINE);
	if (!err)
		err = bind_all(rma.in, PTL_MD_INLINE);
	return err;
}

static void free_chunks(struct mpi_rma *op)
{
	struct mpi_rma_chunk *c;

	while ((c = op->chunks)) {
		op->chunks = c->next;
		free(c);
	}
}

void mpi_rma_fini(void)
{
	for (uint32_t i = 0; i < rma.chunks; i++) {
		for (int k = 0; k < CHUNK; k++) {
			free_chunks(&rma.chunk[i][k]);
			free(rma.chunk[i][k].tmp);
		}
		free(rma.chunk[i]);
	}
	memset(&rma, 0, sizeof(rma));
	answers_eq = PTL_EQ_NONE;
}

int mpi_rma_expose(void *start, uint64_t bytes, uint32_t *number, ptl_handle_me_t *me)
{
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = {
		.start = bytes ? start : NULL,
		.length = bytes,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		.eq_handle = PTL_EQ_NONE,
	};
	int err;

	if (++rma.next_number == 0)
		rma.next_number = 1;
	err = PtlMEMDInsert(rma.last, any, (uint64_t)rma.next_number << NUMBER_SHIFT, INDEX_MASK,
			    PTL_UNLINK, PTL_INS_BEFORE, md, PTL_UNLINK, me, NULL);
	if (err != PTL_OK)
		return portals(err, "the memory cannot be shown to others");
	*number = rma.next_number;
	mpi_exposed++;
	return MPI_SUCCESS;
}

void mpi_rma_hide(ptl_handle_me_t me)
{
	/* a process that broke the rules or died may have a long transfer in progress: Portals
	 * ends it */
	while (PtlMEUnlink(me) == PTL_ME_IN_USE) {
		mpi_progress(false);
		mpi_yield();
	}
	mpi_exposed--;
}

/* ---- records --------------------------------------------------------------------------------- */

static struct mpi_rma *record_at(uint32_t index)
{
	return index < rma.chunks * CHUNK ? &rma.chunk[index / CHUNK][index % CHUNK] : NULL;
}

static bool grow_records(void)
{
	struct mpi_rma *c;

	if (rma.chunks == CHUNKS)
		return false;
	c = calloc(CHUNK, sizeof(*c));
	if (!c)
		return false;
	for (uint32_t i = CHUNK; i-- > 0;) {
		c[i].index = rma.chunks * CHUNK + i;
		c[i].next = rma.free;
		rma.free = c[i].index + 1;
	}
	rma.chunk[rma.chunks++] = c;
	return true;
}

struct mpi_rma *mpi_rma_begin(struct mpi_win *win, int rank)
{
	struct mpi_rma *op;

	if (!rma.free && !grow_records()) {
		mpi_fail(MPI_ERR_NO_MEM, "no memory for another one-sided operation");
		return NULL;
	}
	op = record_at(rma.free - 1);
	rma.free = op->next;
	rma.in_use++;
	op->win = win;
	op->rank = rank;
	op->parts = 1;
	op->starting = true;
	op->error = MPI_SUCCESS;
	win->target[rank].pending++;
	win->pending++;
	return op;
}

static void put_back(struct mpi_rma *op)
{
	free_chunks(op);
	free(op->tmp);
	op->tmp = NULL;
	op->packed = NULL;
	op->win = NULL;
	op->forsaken = op->held = op->reported = op->segments = false;
	op->next = rma.free;
	rma.free = op->index + 1;
	rma.in_use--;
}

void mpi_rma_store(const char *from, const struct mpi_type *basic, void *buf, MPI_Count count,
		   const struct mpi_type *type)
{
	const MPI_Count n = count * type->size;
	char one[64];

	if (!basic || basic->dense) {
		mpi_type_unpack_bytes(type, buf, count, 0, from, (size_t)n);
		return;
	}
	for (MPI_Count at = 0; at < n; at += basic->size, from += basic->extent) {
		mpi_type_pack_bytes(basic, from, 1, 0, one, (size_t)basic->size);
		mpi_type_unpack_bytes(type, buf, count, (size_t)at, one, (size_t)basic->size);
	}
}

/* End an operation: no more answers are waited for. */
static void op_over(struct mpi_rma *op)
{
	struct mpi_win_target *t = &op->win->target[op->rank];
	struct mpi_request *r = op->request;

	if (op->packed && !op->error)
		mpi_rma_store(op->packed, op->basic, op->buf, op->count, op->type);
	mpi_object_release(op->type);
	mpi_object_release(op->basic);
	op->type = op->basic = NULL;
	op->packed = NULL;
	t->pending--;
	op->win->pending--;
	if (op->error && !r && !op->held && !op->reported && !t->error)
		t->error = op->error;
	op->request = NULL;
	if (!r)
		return;
	if (op->error)
		mpi_request_fail(
			r, op->error, "a one-sided operation to rank %d failed: %s", op->rank,
			op->error == MPI_ERR_PROC_ABORTED
				? mpi_failed_text(op->win->target[op->rank].world, PTL_NI_OK)
				: mpi_error_text(op->error));
	mpi_request_done(r);
	mpi_object_release(r);
}

static void part_over(struct mpi_rma *op)
{
	if (--op->parts > 0)
		return;
	if (!op->forsaken)
		op_over(op);
	if (!op->held)
		put_back(op);
}

void mpi_rma_started(struct mpi_rma *op)
{
	op->starting = false;
	part_over(op);
}

void mpi_rma_fail(struct mpi_rma *op, int error)
{
	op->error = error;
	op->reported = true;
	if (op->request) { /* release both references: the caller gets no request */
		mpi_object_release(op->request);
		mpi_object_release(op->request);
	}
	op->request = NULL;
}

int mpi_rma_wait(struct mpi_rma *op)
{
	int err;

	op->held = true;
	op->starting = false;
	part_over(op);
	while (op->parts && !op->forsaken)
		mpi_progress_queue(&answers_eq);
	err = op->error;
	op->held = false;
	if (!op->parts)
		put_back(op);
	if (err)
		mpi_fail(err, "the operation failed: %s", mpi_error_text(err));
	return err;
}

static bool is_large(uint64_t bytes)
{
	return bytes > LARGE;
}

/* The record of the operation whose part of `bytes` bytes was answered. NULL: not one of ours. */
static struct mpi_rma *answered(uint64_t bits, uint64_t bytes)
{
	struct mpi_rma *op = record_at((uint32_t)(bits & INDEX_MASK));

	if (!op || !op->win)
		return NULL;
	if (!op->forsaken) {
		rma.answers--;
		rma.large -= is_large(bytes);
		op->large -= is_large(bytes);
	}
	return op;
}

/* Inline handler: an answer without an event, of a part that succeeded. */
static int answer_offered(const ptl_arrival_t *end)
{
	struct mpi_rma *op = record_at((uint32_t)(end->match_bits & INDEX_MASK));

	/* unpacking takes long, and other threads would wait for the library meanwhile */
	if (op && op->packed)
		return 0;
	op = answered(end->match_bits, end->length);
	if (op)
		part_over(op);
	return 1;
}

static void handle_answer(const ptl_event_t *ev)
{
	struct mpi_rma *op = answered(ev->match_bits, ev->rlength);

	if (!op)
		return;
	if (ev->ni_fail_type != PTL_NI_OK)
		op->error = ev->ni_fail_type == PTL_NI_BAD_ADDRESS ? MPI_ERR_BUFFER
								   : MPI_ERR_PROC_ABORTED;
	else if (ev->mlength != ev->rlength && !op->error)
		op->error = MPI_ERR_RMA_RANGE;
	part_over(op);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static int half(const void *p)
{
	return (uintptr_t)p >= HALF;
}

static uint64_t offset_of(const void *p)
{
	return half(p) ? (uintptr_t)p - HALF : (uintptr_t)p - 1;
}

/* Add n to the counts of parts in progress; n is 1 or -1. */
static void count_bytes(struct mpi_rma *op, uint64_t bytes, int n)
{
	op->parts += (uint32_t)n;
	rma.answers += (uint32_t)n;
	if (is_large(bytes)) {
		op->large += (uint32_t)n;
		rma.large += (uint32_t)n;
	}
}

/* How many parts of `bytes` bytes may be in progress at a time. */
static uint32_t large_most(size_t bytes)
{
	return bytes > WHOLE_MOST || bytes <= RING_BYTES / LARGE_MOST
		       ? LARGE_MOST
		       : RING_BYTES / (uint32_t)bytes;
}

/* Reserve room for one more answer. Blocks and makes progress while there is none. */
static int reserve_answer(struct mpi_rma *op, size_t bytes)
{
	int world = op->win->target[op->rank].world;

	while (rma.answers >= ANSWERS_MOST || (is_large(bytes) && rma.large >= large_most(bytes))) {
		if (mpi_proto.peer[world].dead)
			return mpi_unreachable(world);
		mpi_progress_queue(&answers_eq);
	}
	count_bytes(op, bytes, 1);
	return MPI_SUCCESS;
}

/* Handle the return code of Portals for a part. True: try again, there is room now. */
static bool again(struct mpi_rma *op, size_t bytes, int err, int *result)
{
	int world = op->win->target[op->rank].world;

	*result = MPI_SUCCESS;
	if (err == PTL_OK)
		return false;
	count_bytes(op, bytes, -1);
	if (mpi_proto.peer[world].dead || err == PTL_PROCESS_INVALID) {
		*result = mpi_unreachable(world);
		return false;
	}
	if (err == PTL_NO_SPACE && rma.answers) {
		mpi_progress_queue(&answers_eq);
		*result = reserve_answer(op, bytes);
		return *result == MPI_SUCCESS;
	}
	*result = portals(err, "a one-sided operation cannot be started");
	return false;
}

static ptl_process_id_t process(const struct mpi_rma *op)
{
	return mpi_world.id[op->win->target[op->rank].world];
}

static uint64_t bits_of(const struct mpi_rma *op, uint32_t number)
{
	return (uint64_t)number << NUMBER_SHIFT | op->index;
}

/*
 * Choose the length of the next segment; `bytes` are left of `all`. Behind other operations the
 * longest segments are best, because each segment has a price. An operation that is `alone`
 * waits for its first segment to be copied once before both sides copy. `segments`: it is long,
 * and segments are faster.
 */
static size_t bytes_of_segment(const struct mpi_win_target *t, size_t bytes, size_t all, bool alone,
			       bool segments)
{
	const size_t least = alone && !segments ? ALONE_MOST : WHOLE_MOST;
	ptl_size_t most = 0;

	if (bytes > least && (all <= CUT_MOST || segments))
		PtlPieceLength(mpi_world.ni, mpi_world.id[t->world], &most);
	if (alone && most > least)
		most = least;
	return most && most < bytes ? most : bytes;
}

static int put_segment(struct mpi_rma *op, const void *from, size_t bytes, uint32_t number,
		       uint64_t offset)
{
	int err = reserve_answer(op, bytes);

	if (err)
		return err;
	while (again(op, bytes,
		     PtlPutRegion(rma.out[half(from)], offset_of(from), bytes, PTL_ACK_REQ,
				  process(op), MPI_PT_RMA, 0, bits_of(op, number), offset, 0),
		     &err))
		continue;
	return err;
}

/* Start a put that the target does not answer. It may wait for the target's next call or ours,
 * since nothing depends on it before a later put is answered. It goes by shared memory only,
 * where a put fails only if the target dies. */
static bool inject_rma_put(struct mpi_win_target *t, const void *from, size_t bytes,
			   uint32_t number, uint64_t offset)
{
	return bytes <= ALONG_MOST &&
	       PtlPutInject(mpi_world.ni, from, bytes, PTL_INJECT_HERE, mpi_world.id[t->world],
			    MPI_PT_RMA, 0, (uint64_t)number << NUMBER_SHIFT | INDEX_MASK, offset,
			    0) == PTL_OK;
}

/* A put behind others needs no answer if one of them is still to be answered. An answer takes
 * either side as long as a short put. */
size_t mpi_rma_put_along(struct mpi_win *win, int rank, const void *from, size_t bytes,
			 uint32_t number, uint64_t offset, bool segments)
{
	struct mpi_win_target *t = &win->target[rank];
	size_t n, done = 0;

	while (t->pending && done < bytes) {
		n = bytes_of_segment(t, bytes - done, bytes, false, segments);
		if (!inject_rma_put(t, (const char *)from + done, n, number, offset + done))
			break;
		done += n;
	}
	if (!done)
		return 0;
	win->along += !t->along;
	t->along = true;
	return done;
}

/* Send a put of 0 bytes: its answer confirms all unanswered puts before it. */
static int ask_along(struct mpi_win *win, int rank)
{
	struct mpi_rma *op = mpi_rma_begin(win, rank);
	int err;

	if (!op)
		return MPI_ERR_NO_MEM;
	win->along--;
	win->target[rank].along = false;
	err = put_segment(op, op->few, 0, win->target[rank].control_number, 0);
	if (err)
		mpi_rma_fail(op, err);
	mpi_rma_started(op);
	return err;
}

int mpi_rma_put(struct mpi_rma *op, const void *from, size_t bytes, uint32_t number,
		uint64_t offset)
{
	struct mpi_win_target *t = &op->win->target[op->rank];
	const bool alone = !rma.answers;
	size_t n, done = 0;
	int err;

	do {
		n = bytes_of_segment(t, bytes - done, bytes, alone, op->segments);
		/* the answer to the last segment confirms all */
		if (done + n < bytes &&
		    inject_rma_put(t, (const char *)from + done, n, number, offset + done))
			err = MPI_SUCCESS;
		else
			err = put_segment(op, (const char *)from + done, n, number, offset + done);
		done += n;
	} while (!err && done < bytes);
	return err;
}

static int get_segment(struct mpi_rma *op, void *to, size_t bytes, uint32_t number, uint64_t offset)
{
	int err = reserve_answer(op, bytes);

	if (err)
		return err;
	while (again(op, bytes,
		     PtlGetRegion(rma.in[half(to)], offset_of(to), bytes, process(op), MPI_PT_RMA,
				  0, bits_of(op, number), offset),
		     &err))
		continue;
	return err;
}

int mpi_rma_get(struct mpi_rma *op, void *to, size_t bytes, uint32_t number, uint64_t offset)
{
	const struct mpi_win_target *t = &op->win->target[op->rank];
	const bool alone = !rma.answers;
	size_t n, done = 0;
	int err;

	do {
		n = bytes_of_segment(t, bytes - done, bytes, alone, op->segments);
		err = get_segment(op, (char *)to + done, n, number, offset + done);
		done += n;
	} while (!err && done < bytes);
	return err;
}

/* Try once. `to` NULL: the old value is not wanted. */
static int atomic(const struct mpi_rma *op, const void *from, void *to, size_t bytes, uint64_t bits,
		  uint64_t offset, ptl_atomic_op_t what, ptl_atomic_type_t type)
{
	if (!to)
		return PtlAtomic(rma.out[half(from)], offset_of(from), bytes, PTL_ACK_REQ,
				 process(op), MPI_PT_RMA, 0, bits, offset, 0, what, type);
	return PtlFetchAtomic(rma.in[half(to)], offset_of(to), rma.out[half(from)], offset_of(from),
			      bytes, process(op), MPI_PT_RMA, 0, bits, offset, 0, what, type);
}

int mpi_rma_atomic(struct mpi_rma *op, const void *from, void *to, size_t bytes, uint32_t number,
		   uint64_t offset, ptl_atomic_op_t what, ptl_atomic_type_t type)
{
	uint64_t bits = bits_of(op, number);
	int err = reserve_answer(op, bytes), code;

	if (err)
		return err;
	do {
		code = atomic(op, from, to, bytes, bits, offset, what, type);
	} while (again(op, bytes, code, &err));
	return err;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static int report_error(struct mpi_win_target *t, int rank)
{
	int err = t->error;

	t->error = MPI_SUCCESS;
	if (!err)
		return MPI_SUCCESS;
	if (err == MPI_ERR_RMA_RANGE)
		return mpi_fail(err,
				"an operation to rank %d went to memory that is not in the window "
				"any more",
				rank);
	return mpi_fail(err, "an operation to rank %d failed: %s", rank,
			err == MPI_ERR_PROC_ABORTED ? mpi_failed_text(t->world, PTL_NI_OK)
						    : mpi_error_text(err));
}

int mpi_rma_flush(struct mpi_win *win, int rank)
{
	struct mpi_win_target *t = &win->target[rank];
	const uint64_t since = mpi_rma_cma_flush(win);
	int err = t->along ? ask_along(win, rank) : MPI_SUCCESS, reported;

	while (t->pending)
		mpi_progress_queue(&answers_eq);
	mpi_rma_cma_flushed(win, since);
	reported = report_error(t, rank);
	return err ? err : reported;
}

int mpi_rma_flush_all(struct mpi_win *win)
{
	const uint64_t since = mpi_rma_cma_flush(win);
	int err = MPI_SUCCESS, rc;

	for (int i = 0; win->along && i < win->size; i++) {
		rc = win->target[i].along ? ask_along(win, i) : MPI_SUCCESS;
		err = err ? err : rc;
	}
	while (win->pending)
		mpi_progress_queue(&answers_eq);
	mpi_rma_cma_flushed(win, since);
	for (int i = 0; i < win->size; i++)
		if (win->target[i].error)
			err = report_error(&win->target[i], i);
	return err;
}

/* Give up an operation to a process that was found dead some time ago: no more answers will
 * come. */
static void forsake(struct mpi_rma *op)
{
	op->error = MPI_ERR_PROC_ABORTED;
	op->forsaken = true;
	rma.answers -= op->parts;
	rma.large -= op->large;
	op->large = 0;
	op_over(op);
}

/* Request a check of all targets that an operation waits for, and end the operations to dead
 * ones. */
static void check_targets(void)
{
	struct mpi_peer *p;

	if (!rma.in_use)
		return;
	for (uint32_t i = 0; i < rma.chunks * CHUNK; i++) {
		struct mpi_rma *op = record_at(i);

		if (!op->win || op->forsaken || !op->parts)
			continue;
		p = &mpi_proto.peer[op->win->target[op->rank].world];
		p->asked = true;
		/* an operation that is being started may get more parts */
		if (p->dead && !op->starting)
			forsake(op);
	}
}
