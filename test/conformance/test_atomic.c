/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PtlAtomic and PtlFetchAtomic: every operation on every type beside a model of it, what is
 * refused, and that nothing comes between the reading and the writing.
 */
#include <portals3_ext.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ptest.h"

enum { PORTAL = 17, ELEMENTS = 24, MOST = 32, BYTES = ELEMENTS * MOST };

/* ---- the model: one element at a time, in 128 bits or a long double -------------------------- */

static const struct type {
	ptl_atomic_type_t type;
	size_t size;
	bool is_signed, floats;
} types[] = {
	{ PTL_ATOMIC_INT8, 1, true, false },      { PTL_ATOMIC_UINT8, 1, false, false },
	{ PTL_ATOMIC_INT16, 2, true, false },     { PTL_ATOMIC_UINT16, 2, false, false },
	{ PTL_ATOMIC_INT32, 4, true, false },     { PTL_ATOMIC_UINT32, 4, false, false },
	{ PTL_ATOMIC_INT64, 8, true, false },     { PTL_ATOMIC_UINT64, 8, false, false },
	{ PTL_ATOMIC_FLOAT, 4, true, true },      { PTL_ATOMIC_DOUBLE, 8, true, true },
	{ PTL_ATOMIC_BLOCK16, 16, false, false }, { PTL_ATOMIC_BLOCK32, 32, false, false },
};
enum { TYPES = sizeof(types) / sizeof(types[0]), OPS = PTL_ATOMIC_CSWAP };

static bool block(const struct type *t)
{
	return t->size > 8;
}

static bool defined(const struct type *t, int op)
{
	if (op >= PTL_ATOMIC_SWAP)
		return true;
	return !block(t) && (!t->floats || op <= PTL_ATOMIC_MAX);
}

static uint64_t load(const struct type *t, const unsigned char *p)
{
	uint64_t v = 0;

	memcpy(&v, p, t->size);
	if (t->is_signed && !t->floats && t->size < 8 && v >> (8 * t->size - 1))
		v |= ~0ull << (8 * t->size);
	return v;
}

static uint64_t whole(int op, bool is_signed, uint64_t a, uint64_t b)
{
	bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;

	switch (op) {
	case PTL_ATOMIC_SUM:
		return a + b;
	case PTL_ATOMIC_PROD:
		return a * b;
	case PTL_ATOMIC_MIN:
		return less ? a : b;
	case PTL_ATOMIC_MAX:
		return less ? b : a;
	case PTL_ATOMIC_BAND:
		return a & b;
	case PTL_ATOMIC_BOR:
		return a | b;
	case PTL_ATOMIC_BXOR:
		return a ^ b;
	case PTL_ATOMIC_LAND:
		return a && b;
	case PTL_ATOMIC_LOR:
		return a || b;
	default:
		return !a != !b;
	}
}

static double real(int op, double a, double b)
{
	switch (op) {
	case PTL_ATOMIC_SUM:
		return a + b;
	case PTL_ATOMIC_PROD:
		return a * b;
	case PTL_ATOMIC_MIN:
		return a < b ? a : b;
	default:
		return a > b ? a : b;
	}
}

static double load_real(const struct type *t, const unsigned char *p)
{
	float f;
	double d;

	if (t->size == 4) {
		memcpy(&f, p, 4);
		return f;
	}
	memcpy(&d, p, 8);
	return d;
}

static void model(const struct type *t, int op, unsigned char *old, const unsigned char *compare,
		  const unsigned char *new)
{
	if (op == PTL_ATOMIC_FETCH ||
	    (op == PTL_ATOMIC_CSWAP && memcmp(old, compare, t->size) != 0))
		return;
	if (op >= PTL_ATOMIC_SWAP) {
		memcpy(old, new, t->size);
	} else if (t->floats) {
		double d = real(op, load_real(t, old), load_real(t, new));
		float f = (float)d;

		memcpy(old, t->size == 4 ? (void *)&f : (void *)&d, t->size);
	} else {
		uint64_t v = whole(op, t->is_signed, load(t, old), load(t, new));

		memcpy(old, &v, t->size);
	}
}

/* Small whole numbers for floating point, so that nothing is rounded; any bits else, zero now
 * and then. */
static void make(const struct type *t, unsigned char *p, uint64_t seed)
{
	for (int i = 0; i < ELEMENTS; i++, p += t->size) {
		float f = (float)((int)(pt_random(&seed) % 2001) - 1000);
		double d = f;

		if (t->floats)
			memcpy(p, t->size == 4 ? (void *)&f : (void *)&d, t->size);
		else if (pt_random(&seed) % 4 == 0)
			memset(p, 0, t->size);
		else
			pt_fill(p, t->size, pt_random(&seed), 0);
	}
}

/* ---- every operation on every type ----------------------------------------------------------- */

static void initiate(const struct type *t, int op, bool fetch, unsigned char *place,
		     uint64_t offset)
{
	unsigned char operand[2 * BYTES], got[BYTES] = { 0 }, before[BYTES];
	size_t n = ELEMENTS * t->size, at = op == PTL_ATOMIC_CSWAP ? n : 0;
	ptl_handle_eq_t eq = pt_eq(8);
	ptl_handle_md_t from, to;

	memcpy(before, place, n);
	make(t, operand + at, (uint64_t)op * 100 + t->type + 50 * fetch);
	if (at) /* what every other element is compared with is what is there */
		for (size_t i = 0; i < n; i++)
			operand[i] = (unsigned char)(place[i] + (i / t->size % 2));
	from = pt_bind(operand, at + n, 0, eq);
	to = pt_bind(got, n, 0, eq);
	if (fetch) {
		pt_ok(PtlFetchAtomic(to, 0, from, 0, n, pt_target(), PORTAL, 0, 9, offset, 77,
				     (ptl_atomic_op_t)op, t->type));
		pt_await(eq, PT_SENT | PT_REPLIED, NULL);
		pt_memory(got, before, n);
	} else {
		pt_ok(PtlAtomic(from, 0, n, PTL_ACK_REQ, pt_target(), PORTAL, 0, 9, offset, 77,
				(ptl_atomic_op_t)op, t->type));
		pt_await(eq, PT_ACKED, NULL);
	}
	for (size_t i = 0; i < n; i += t->size)
		model(t, op, place + i, operand + i, operand + at + i);
	pt_ok(PtlMDUnlink(from));
	pt_ok(PtlMDUnlink(to));
	pt_ok(PtlEQFree(eq));
}

static void every_operation(size_t pieces)
{
	struct pt_buf at = pt_buf_new(BYTES + 3, pieces);
	static unsigned char place[BYTES], now[BYTES];
	ptl_handle_eq_t eq;
	ptl_handle_md_t to;

	pt_open();
	pt_buf_fill(&at, 5);
	if (pt_is_target())
		pt_post(PORTAL, 9,
			pt_buf_md(&at, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
				  PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	for (int i = 0; i < TYPES && pt_is_initiator(); i++)
		for (int op = 1; op <= OPS; op++)
			for (int fetch = 0; fetch < 2 && defined(&types[i], op); fetch++) {
				size_t n = ELEMENTS * types[i].size;

				eq = pt_eq(8);
				to = pt_bind(place, n, 0, eq);
				make(&types[i], place, (uint64_t)op);
				pt_ok(PtlPut(to, PTL_ACK_REQ, pt_target(), PORTAL, 0, 9, 3, 0));
				pt_await(eq, PT_ACKED, NULL);
				initiate(&types[i], op, fetch, place, 3);
				to = pt_bind(now, n, 0, eq);
				pt_ok(PtlGet(to, pt_target(), PORTAL, 0, 9, 3));
				pt_await(eq, PT_REPLIED, NULL);
				for (size_t k = 0; k < n; k++)
					pt_truef(now[k] == place[k],
						 "type %d, operation %d, fetch %d: byte %zu is "
						 "%02x, not %02x",
						 (int)types[i].type, op, fetch, k, now[k],
						 place[k]);
			}
	pt_finish();
	if (pt_is_target())
		pt_buf_guarded(&at);
}

static void every_operation_on_every_type(void)
{
	every_operation(0);
}

static void every_operation_on_scattered_memory(void)
{
	every_operation(7);
}

/* ---- elements in runs ------------------------------------------------------------------------ */

enum { SPAN = 3000, RUNS_MOST = 4096 };

/* A list, and behind it elements. */
struct message {
	_Alignas(8) unsigned char bytes[RUNS_MOST];
};

static ptl_atomic_runs_t *list_of(struct message *m)
{
	return (ptl_atomic_runs_t *)(void *)m->bytes;
}

static ptl_atomic_run_t *groups_of(ptl_atomic_runs_t *r)
{
	return (ptl_atomic_run_t *)(r + 1);
}

/* Runs that do not touch each other, of which one may be the only one; how many bytes they are. */
static size_t draw_runs(const struct type *t, ptl_atomic_runs_t *r, uint64_t *seed)
{
	uint32_t at = (uint32_t)(pt_random(seed) % 40),
		 groups = 1 + (uint32_t)(pt_random(seed) % 8);
	size_t sum = 0;

	for (r->groups = 0; r->groups < groups; r->groups++) {
		ptl_atomic_run_t *g = &groups_of(r)[r->groups];

		g->offset = at;
		g->bytes = (uint32_t)t->size * (1 + (uint32_t)(pt_random(seed) % 3));
		g->stride = g->bytes + (uint32_t)(pt_random(seed) % 9);
		g->count = 1 + (uint32_t)(pt_random(seed) % (pt_random(seed) % 3 ? 3 : 100));
		while (g->count > 1 && at + g->stride * g->count > SPAN - 200)
			g->count /= 2;
		if (at + g->stride * g->count > SPAN || sum + g->bytes * g->count > 1500)
			break;
		at += g->stride * g->count + (uint32_t)(pt_random(seed) % 5);
		sum += g->bytes * g->count;
	}
	r->span = at < SPAN ? at : SPAN;
	return sum;
}

/* The value that the target must hold then, and the value before. */
static void model_runs(const struct type *t, int op, unsigned char *place, ptl_atomic_runs_t *r,
		       const unsigned char *operand, unsigned char *was)
{
	for (uint32_t i = 0; i < r->groups; i++) {
		const ptl_atomic_run_t *g = &groups_of(r)[i];

		for (uint32_t k = 0; k < g->count; k++) {
			unsigned char *at = place + g->offset + k * g->stride;

			memcpy(was, at, g->bytes);
			for (uint32_t b = 0; b < g->bytes; b += (uint32_t)t->size)
				model(t, op, at + b, operand + b, operand + b);
			was += g->bytes;
			operand += g->bytes;
		}
	}
}

/* Numbers everywhere, of the type. */
static void make_more(const struct type *t, unsigned char *p, size_t bytes, uint64_t seed)
{
	unsigned char some[BYTES];

	for (size_t at = 0; at < bytes; at += ELEMENTS * t->size) {
		make(t, some, seed + at);
		memcpy(p + at, some,
		       bytes - at < ELEMENTS * t->size ? bytes - at : ELEMENTS * t->size);
	}
}

static void one_on_runs(const struct type *t, int op, bool fetch, unsigned char *place,
			uint64_t *seed)
{
	static struct message m;
	static unsigned char got[RUNS_MOST], was[RUNS_MOST], *operand;
	ptl_atomic_op_t what = (ptl_atomic_op_t)(op | PTL_ATOMIC_RUNS);
	ptl_atomic_runs_t *r = list_of(&m);
	ptl_handle_eq_t eq = pt_eq(8);
	ptl_handle_md_t from, to;
	size_t n = draw_runs(t, r, seed);

	operand = (unsigned char *)&groups_of(r)[r->groups];
	make_more(t, operand, n, pt_random(seed));
	from = pt_bind(&m, sizeof(m), 0, eq);
	to = pt_bind(got, sizeof(got), 0, eq);
	if (fetch)
		pt_ok(PtlFetchAtomic(to, 0, from, 0, n, pt_target(), PORTAL, 0, 9, 3, 77, what,
				     t->type));
	else
		pt_ok(PtlAtomic(from, 0, n, PTL_ACK_REQ, pt_target(), PORTAL, 0, 9, 3, 77, what,
				t->type));
	pt_await(eq, fetch ? PT_SENT | PT_REPLIED : PT_ACKED, NULL);
	model_runs(t, op, place, r, operand, was);
	if (fetch)
		pt_memory(got, was, n);
	pt_ok(PtlMDUnlink(from));
	pt_ok(PtlMDUnlink(to));
	pt_ok(PtlEQFree(eq));
}

static void operations_on_runs(size_t pieces)
{
	struct pt_buf at = pt_buf_new(SPAN + 3, pieces);
	static unsigned char place[SPAN], now[SPAN];
	uint64_t seed = 11;

	pt_open();
	pt_buf_fill(&at, 5);
	if (pt_is_target())
		pt_post(PORTAL, 9,
			pt_buf_md(&at, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
				  PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	for (int round = 0; round < 400 && pt_is_initiator(); round++) {
		const struct type *t = &types[pt_random(&seed) % TYPES];
		int op = 1 + (int)(pt_random(&seed) % (OPS - 1)); /* all but CSWAP */
		ptl_handle_eq_t eq = pt_eq(8);

		if (!defined(t, op))
			op = PTL_ATOMIC_SWAP;
		make_more(t, place, SPAN, pt_random(&seed));
		pt_ok(PtlPut(pt_bind(place, SPAN, 0, eq), PTL_ACK_REQ, pt_target(), PORTAL, 0, 9, 3,
			     0));
		pt_await(eq, PT_ACKED, NULL);
		one_on_runs(t, op, pt_random(&seed) % 2, place, &seed);
		pt_ok(PtlGet(pt_bind(now, SPAN, 0, eq), pt_target(), PORTAL, 0, 9, 3));
		pt_await(eq, PT_REPLIED, NULL);
		for (size_t k = 0; k < SPAN; k++)
			pt_truef(now[k] == place[k],
				 "round %d, type %d, operation %d: byte %zu is %02x, not %02x",
				 round, (int)t->type, op, k, now[k], place[k]);
	}
	pt_finish();
	if (pt_is_target())
		pt_buf_guarded(&at);
}

static void operations_on_runs_change_nothing_between(void)
{
	operations_on_runs(0);
}

static void operations_on_runs_of_scattered_memory(void)
{
	operations_on_runs(7);
}

static void runs_that_do_not_fit_change_nothing(void)
{
	uint32_t words[3] = { 1, 2, 3 };
	ptl_event_t ev[PTL_EVENT_MAX];
	struct message m;
	ptl_atomic_runs_t *r = list_of(&m);
	ptl_handle_eq_t here;
	ptl_handle_md_t md;

	pt_open();
	here = pt_eq(8);
	if (pt_is_target())
		pt_post(PORTAL, 1,
			pt_md(words, 12, PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		memset(&m, 1, sizeof(m));
		*r = (ptl_atomic_runs_t){ .span = 16, .groups = 1 };
		*groups_of(r) = (ptl_atomic_run_t){ 0, 4, 12, 2 };
		md = pt_bind(&m, sizeof(m), 0, here);
		pt_ok(PtlAtomic(md, 0, 8, PTL_ACK_REQ, pt_target(), PORTAL, 0, 1, 0, 0,
				(ptl_atomic_op_t)(PTL_ATOMIC_SUM | PTL_ATOMIC_RUNS),
				PTL_ATOMIC_UINT32));
		pt_await(here, PT_ACKED, ev);
		pt_is(ev[PTL_EVENT_ACK].mlength, 0);
		pt_is(ev[PTL_EVENT_ACK].rlength, 8);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_is(words[0], 1);
		pt_is(words[2], 3);
	}
}

/* A list of one group, 64 bytes of which elements follow. */
static int with_runs(ptl_handle_md_t md, struct message *m, uint32_t span, ptl_atomic_run_t g,
		     size_t length)
{
	*list_of(m) = (ptl_atomic_runs_t){ .span = span, .groups = 1 };
	*groups_of(list_of(m)) = g;
	return PtlAtomic(md, 0, length, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0,
			 (ptl_atomic_op_t)(PTL_ATOMIC_SUM | PTL_ATOMIC_RUNS), PTL_ATOMIC_UINT32);
}

static void wrong_lists_of_runs_are_refused(void)
{
	static struct message m;
	ptl_handle_md_t md;

	pt_open();
	md = pt_bind(&m, sizeof(ptl_atomic_runs_t) + sizeof(ptl_atomic_run_t) + 64, 0, PTL_EQ_NONE);
	pt_code(with_runs(md, &m, 100, (ptl_atomic_run_t){ 0, 8, 20, 4 }, 32), PTL_OK);
	pt_code(with_runs(md, &m, 68, (ptl_atomic_run_t){ 0, 8, 20, 4 }, 32), PTL_OK);
	pt_code(with_runs(md, &m, 67, (ptl_atomic_run_t){ 0, 8, 20, 4 }, 32), PTL_MD_ILLEGAL);
	pt_code(with_runs(md, &m, 100, (ptl_atomic_run_t){ 0, 6, 20, 4 }, 24), PTL_MD_ILLEGAL);
	pt_code(with_runs(md, &m, 100, (ptl_atomic_run_t){ 0, 8, 20, 4 }, 36), PTL_MD_ILLEGAL);
	pt_code(with_runs(md, &m, 100, (ptl_atomic_run_t){ 0, 8, 20, 0 }, 0), PTL_MD_ILLEGAL);
	pt_code(with_runs(md, &m, 100, (ptl_atomic_run_t){ 0, 0, 20, 4 }, 0), PTL_MD_ILLEGAL);
	pt_code(with_runs(md, &m, 100, (ptl_atomic_run_t){ 0, 32, 1, 3 }, 96), PTL_MD_ILLEGAL);
	pt_code(with_runs(md, &m, 100, (ptl_atomic_run_t){ 99, 8, 0, 4 }, 32), PTL_MD_ILLEGAL);
	pt_code(with_runs(md, &m, UINT32_MAX, (ptl_atomic_run_t){ 8, 4, UINT32_MAX, 8 }, 32),
		PTL_MD_ILLEGAL);
	list_of(&m)->groups = UINT32_MAX;
	pt_code(PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0,
			  (ptl_atomic_op_t)(PTL_ATOMIC_SUM | PTL_ATOMIC_RUNS), PTL_ATOMIC_UINT32),
		PTL_MD_ILLEGAL);
	pt_code(PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0,
			  (ptl_atomic_op_t)(PTL_ATOMIC_CSWAP | PTL_ATOMIC_RUNS), PTL_ATOMIC_UINT32),
		PTL_MD_ILLEGAL);
	pt_code(PtlAtomic(md, 86, 0, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0,
			  (ptl_atomic_op_t)(PTL_ATOMIC_SUM | PTL_ATOMIC_RUNS), PTL_ATOMIC_UINT32),
		PTL_MD_ILLEGAL);
}

/* ---- events, lengths, errors ----------------------------------------------------------------- */

static void the_target_sees_a_put_or_a_getput(void)
{
	ptl_event_t ev[PTL_EVENT_MAX];
	ptl_handle_eq_t here, there;
	uint32_t word = 40, mine[2] = { 2, 0 };
	ptl_handle_md_t md;

	pt_open();
	there = pt_eq(8);
	here = pt_eq(16);
	if (pt_is_target())
		pt_post(PORTAL, 1,
			pt_md(&word, 4, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
			      there),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(mine, 8, 0, here);
		pt_ok(PtlAtomic(md, 0, 4, PTL_ACK_REQ, pt_target(), PORTAL, 0, 1, 0, 123,
				PTL_ATOMIC_SUM, PTL_ATOMIC_INT32));
		pt_await(here, PT_ACKED, ev);
		pt_is(ev[PTL_EVENT_ACK].mlength, 4);
		pt_ok(PtlFetchAtomic(md, 4, md, 0, 4, pt_target(), PORTAL, 0, 1, 0, 124,
				     PTL_ATOMIC_SUM, PTL_ATOMIC_INT32));
		pt_await(here, PT_SENT | PT_REPLIED, ev);
		pt_is(ev[PTL_EVENT_REPLY_END].mlength, 4);
		pt_is(mine[1], 42);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_await(there, PT_PUT, ev);
		pt_is(ev[PTL_EVENT_PUT_END].hdr_data, 123);
		pt_await(there, PT_SWAPPED, ev);
		pt_is(ev[PTL_EVENT_GETPUT_END].hdr_data, 124);
		pt_is(word, 44);
		pt_quiet(there);
	}
}

static void what_is_cut_off_is_left_alone(void)
{
	uint32_t words[3] = { 1, 2, 0x03030303 }, mine[4] = { 10, 10, 10, 10 };
	ptl_handle_eq_t here;
	ptl_event_t ev[PTL_EVENT_MAX];

	pt_open();
	here = pt_eq(8);
	if (pt_is_target())
		pt_post(PORTAL, 1,
			pt_md(words, 10, PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		pt_ok(PtlAtomic(pt_bind(mine, 16, 0, here), 0, 16, PTL_ACK_REQ, pt_target(), PORTAL,
				0, 1, 0, 0, PTL_ATOMIC_SUM, PTL_ATOMIC_UINT32));
		pt_await(here, PT_ACKED, ev);
		pt_is(ev[PTL_EVENT_ACK].mlength, 10);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_is(words[0], 11);
		pt_is(words[1], 12);
		pt_is(words[2], 0x03030303);
	}
}

static void what_is_wrong_is_refused(void)
{
	static char bytes[8192];
	ptl_process_id_t any = { PTL_NID_ANY, 1 };
	ptl_ni_limits_t limits;
	ptl_handle_md_t md;
	size_t most;

	pt_open_with(NULL, &limits);
	most = (size_t)limits.max_getput_md;
	md = pt_bind(bytes, sizeof(bytes), 0, PTL_EQ_NONE);
#define ATOMIC(handle, offset, length, to, op, type)                                               \
	PtlAtomic(handle, offset, length, PTL_NO_ACK_REQ, to, PORTAL, 0, 0, 0, 0, op, type)
#define FETCH(get, put, length, op, type)                                                          \
	PtlFetchAtomic(get, 0, put, 0, length, pt_id(0), PORTAL, 0, 0, 0, 0, op, type)
	for (int op = 0; op <= OPS + 1; op++)
		for (int i = 0; i < TYPES; i++) {
			int code = op > 0 && op <= OPS && defined(&types[i], op) ? PTL_OK
										 : PTL_MD_ILLEGAL;

			pt_code(ATOMIC(md, 0, 32, pt_id(0), (ptl_atomic_op_t)op, types[i].type),
				code);
			pt_code(FETCH(md, md, 32, (ptl_atomic_op_t)op, types[i].type), code);
		}
	pt_code(ATOMIC(md, 0, 8, pt_id(0), PTL_ATOMIC_SUM, (ptl_atomic_type_t)0), PTL_MD_ILLEGAL);
	pt_code(ATOMIC(md, 0, 8, pt_id(0), PTL_ATOMIC_SUM, (ptl_atomic_type_t)13), PTL_MD_ILLEGAL);
	pt_code(ATOMIC(md, 0, 8, pt_id(0), (ptl_atomic_op_t)257, PTL_ATOMIC_INT8), PTL_MD_ILLEGAL);
	pt_code(ATOMIC(md, 0, 6, pt_id(0), PTL_ATOMIC_SUM, PTL_ATOMIC_INT32), PTL_MD_ILLEGAL);
	pt_code(ATOMIC(md, 0, most, pt_id(0), PTL_ATOMIC_SUM, PTL_ATOMIC_INT32), PTL_OK);
	pt_code(ATOMIC(md, 0, most + 4, pt_id(0), PTL_ATOMIC_SUM, PTL_ATOMIC_INT32),
		PTL_MD_ILLEGAL);
	pt_code(ATOMIC(md, 0, most, pt_id(0), PTL_ATOMIC_CSWAP, PTL_ATOMIC_INT32), PTL_MD_ILLEGAL);
	pt_code(ATOMIC(md, 0, 1ull << 63, pt_id(0), PTL_ATOMIC_CSWAP, PTL_ATOMIC_INT32),
		PTL_MD_ILLEGAL);
	pt_code(ATOMIC(md, sizeof(bytes) - 12, 8, pt_id(0), PTL_ATOMIC_CSWAP, PTL_ATOMIC_INT64),
		PTL_MD_ILLEGAL);
	pt_code(ATOMIC(md, sizeof(bytes) - 4, 8, pt_id(0), PTL_ATOMIC_SUM, PTL_ATOMIC_INT64),
		PTL_MD_ILLEGAL);
	pt_code(ATOMIC(PTL_INVALID_HANDLE, 0, 8, pt_id(0), PTL_ATOMIC_SUM, PTL_ATOMIC_INT64),
		PTL_MD_INVALID);
	pt_code(FETCH(PTL_INVALID_HANDLE, md, 8, PTL_ATOMIC_SUM, PTL_ATOMIC_INT64), PTL_MD_INVALID);
	pt_code(FETCH(md, PTL_INVALID_HANDLE, 8, PTL_ATOMIC_SUM, PTL_ATOMIC_INT64), PTL_MD_INVALID);
	pt_code(ATOMIC(md, 0, 8, any, PTL_ATOMIC_SUM, PTL_ATOMIC_INT64), PTL_PROCESS_INVALID);
}

/* ---- nothing in between ---------------------------------------------------------------------- */

enum { LANES = 2, ROUNDS = 1500 };

/* Adds 1 to the first word, and by comparing and swapping to the second; every answer comes
 * once. */
static void *lane(void *arg)
{
	uint64_t mine[2] = { 1, 0 }, got = 0, *sum = arg;
	ptl_handle_eq_t eq = pt_eq(16);
	ptl_handle_md_t md = pt_bind(mine, 16, PTL_MD_EVENT_START_DISABLE, eq);
	ptl_handle_md_t back = pt_bind(&got, 8, PTL_MD_EVENT_START_DISABLE, eq);
	const unsigned int both = PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_REPLY_END);
	uint64_t seen = 0;

	for (int i = 0; i < ROUNDS; i++) {
		mine[0] = 1;
		pt_ok(PtlFetchAtomic(back, 0, md, 0, 8, pt_id(pt_size - 1), PORTAL, 0, 0, 0, 0,
				     PTL_ATOMIC_SUM, PTL_ATOMIC_UINT64));
		pt_await(eq, both, NULL);
		*sum += got;
		do {
			mine[0] = seen;
			mine[1] = seen + 1;
			pt_ok(PtlFetchAtomic(back, 0, md, 0, 8, pt_id(pt_size - 1), PORTAL, 0, 0, 8,
					     0, PTL_ATOMIC_CSWAP, PTL_ATOMIC_UINT64));
			pt_await(eq, both, NULL);
			seen = got;
		} while (got != mine[0]);
		seen++;
	}
	return NULL;
}

static void operations_of_several_initiators_are_atomic(void)
{
	uint64_t place[2] = { 0, 0 }, sum[LANES] = { 0 }, n = (uint64_t)pt_size * LANES * ROUNDS;
	pthread_t threads[LANES];

	pt_open();
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_md(place, sizeof(place),
			      PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	for (int i = 0; i < LANES; i++)
		pt_is(pthread_create(&threads[i], NULL, lane, &sum[i]), 0);
	for (int i = 0; i < LANES; i++) {
		pthread_join(threads[i], NULL);
		atomic_fetch_add(pt_word(0), sum[i]);
	}
	pt_barrier();
	PtlProgress(pt_ni, 0); /* whatever thread of ours wrote last, it did so before this */
	if (pt_is_target()) {
		pt_is(place[0], n);
		pt_is(place[1], n);
		pt_is(*pt_word(0), n * (n - 1) / 2);
	}
}

static const struct pt_test tests[] = {
	PT_MODES(every_operation_on_every_type),
	PT_MODES(every_operation_on_scattered_memory),
	PT_MODES(the_target_sees_a_put_or_a_getput),
	PT_MODES(what_is_cut_off_is_left_alone),
	PT_MODES(operations_on_runs_change_nothing_between),
	PT_MODES(operations_on_runs_of_scattered_memory),
	PT_MODES(runs_that_do_not_fit_change_nothing),
	PT_CASE(wrong_lists_of_runs_are_refused, 1),
	PT_CASE(what_is_wrong_is_refused, 1),
	PT_CASE(operations_of_several_initiators_are_atomic, 1),
	{ "operations_of_several_processes_are_atomic", operations_of_several_initiators_are_atomic,
	  4, 0 },
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
