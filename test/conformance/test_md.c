/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Memory descriptors: what is a legal one, thresholds, activity, automatic and explicit unlinking
 * (report sections 3.10.1 to 3.10.4). PtlMDUpdate has a file of its own.
 */
#include "ptest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PORTAL = 21 };

static int bind(ptl_md_t md)
{
	ptl_handle_md_t h;
	int rc = PtlMDBind(pt_ni, md, PTL_RETAIN, &h);

	if (rc == PTL_OK)
		pt_ok(PtlMDUnlink(h));
	return rc;
}

static void illegal_memory_is_refused(void)
{
	static char c[16];

	pt_open();
	pt_code(bind(pt_md(NULL, 0, 0, PTL_EQ_NONE)), PTL_OK);
	pt_code(bind(pt_md(c, 0, 0, PTL_EQ_NONE)), PTL_OK);
	pt_code(bind(pt_md(NULL, 1, 0, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	pt_code(bind(pt_md(c, ~(ptl_size_t)0, 0, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	pt_code(bind(pt_md(c, -(ptl_size_t)(uintptr_t)c + 1, 0, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
}

static void illegal_vectors_are_refused(void)
{
	ptl_ni_limits_t limits;
	ptl_md_iovec_t *v, two[2];
	size_t most;
	static char c[16];

	pt_open_with(NULL, &limits);
	most = (size_t)limits.max_md_iovecs;
	v = calloc(most + 1, sizeof(*v));
	pt_true(v != NULL);
	pt_code(bind(pt_md(v, most, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_OK);
	pt_code(bind(pt_md(v, most + 1, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	pt_code(bind(pt_md(v, ~(ptl_size_t)0, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	pt_code(bind(pt_md(v, (ptl_size_t)1 << 60, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	pt_code(bind(pt_md(NULL, 2, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	pt_code(bind(pt_md(NULL, 0, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_OK);
	two[0] = (ptl_md_iovec_t){ c, 8 };
	two[1] = (ptl_md_iovec_t){ NULL, 1 };
	pt_code(bind(pt_md(two, 2, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	two[1] = (ptl_md_iovec_t){ c, ~(ptl_size_t)0 };
	pt_code(bind(pt_md(two, 2, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	two[1] = (ptl_md_iovec_t){ c, ~(ptl_size_t)0 - 7 };
	pt_code(bind(pt_md(two, 2, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	free(v);
}

static void event_queues_are_checked(void)
{
	ptl_handle_ni_t other;
	ptl_handle_eq_t eq, foreign;
	int n;

	pt_open();
	eq = pt_eq(4);
	pt_code(bind(pt_md(NULL, 0, 0, PTL_INVALID_HANDLE)), PTL_EQ_INVALID);
	pt_code(bind(pt_md(NULL, 0, 0, 12345)), PTL_EQ_INVALID);
	pt_ok(PtlEQFree(eq));
	pt_code(bind(pt_md(NULL, 0, 0, eq)), PTL_EQ_INVALID);
	pt_ok(PtlInit(&n));
	if (n < 2)
		return;
	pt_ok(PtlNIInit(1, PTL_PID_ANY, NULL, NULL, &other));
	pt_ok(PtlEQAlloc(other, 4, PTL_EQ_HANDLER_NONE, &foreign));
	pt_code(bind(pt_md(NULL, 0, 0, foreign)), PTL_MD_ILLEGAL);
	pt_ok(PtlNIFini(other));
}

static void md_and_vector_are_copied(void)
{
	static char a[8], b[8], wrong[8];
	ptl_md_iovec_t v[2] = { { a, 8 }, { b, 8 } };
	ptl_handle_eq_t eq;
	static char from[16];
	ptl_md_t md;

	pt_open();
	eq = pt_eq(8);
	md = pt_md(v, 2, PTL_MD_OP_PUT | PTL_MD_IOVEC | PTL_MD_EVENT_START_DISABLE, eq);
	pt_post(PORTAL, 0, md, PTL_RETAIN, NULL);
	v[0] = v[1] = (ptl_md_iovec_t){ wrong, 1 };
	memset(&md, 0, sizeof(md));
	pt_fill(from, 16, 1, 0);
	pt_ok(PtlPut(pt_bind(from, 16, 0, PTL_EQ_NONE), PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0,
		     0));
	pt_next(eq, PTL_EVENT_PUT_END);
	pt_holds(a, 8, 1, 0);
	pt_holds(b, 8, 1, 8);
}

static void unhandled_handles_are_accepted(void)
{
	ptl_handle_me_t me;

	pt_open();
	pt_ok(PtlMEAttach(pt_ni, PORTAL, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	pt_ok(PtlMDAttach(me, pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, NULL));
	pt_ok(PtlMEUnlink(me));
}

/* ---- thresholds ------------------------------------------------------------------------------ */

static ptl_handle_md_t limited(void *p, ptl_size_t len, int threshold, ptl_handle_eq_t eq,
			       ptl_unlink_t unlink)
{
	ptl_md_t md = pt_md(p, len, 0, eq);
	ptl_handle_md_t h;

	md.threshold = threshold;
	pt_ok(PtlMDBind(pt_ni, md, unlink, &h));
	return h;
}

static void target_for_everything(char *place)
{
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_md(place, 8, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
}

static void a_put_uses_one_and_its_ack_another(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	static char place[8], c[8];

	pt_open();
	target_for_everything(place);
	if (pt_is_initiator()) {
		eq = pt_eq(16);
		md = limited(c, 8, 10, eq, PTL_RETAIN);
		pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
		pt_await(eq, PT_SENT, NULL);
		pt_is(pt_query(md).threshold, 9);
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
		pt_await(eq, PT_ACKED, NULL);
		pt_is(pt_query(md).threshold, 7);
		pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 0, 0));
		pt_await(eq, PT_REPLIED, NULL);
		pt_is(pt_query(md).threshold, 6);
		pt_ok(PtlGetPut(md, md, pt_target(), PORTAL, 0, 0, 0, 0));
		pt_await(eq, PT_SENT | PT_REPLIED, NULL);
		pt_is(pt_query(md).threshold, 4);
	}
	pt_finish();
}

static void an_infinite_threshold_stays(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	static char place[8], c[8];

	pt_open();
	target_for_everything(place);
	if (pt_is_initiator()) {
		eq = pt_eq(16);
		md = limited(c, 8, PTL_MD_THRESH_INF, eq, PTL_UNLINK);
		for (int i = 0; i < 5; i++) {
			pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
			pt_await(eq, PT_ACKED, NULL);
		}
		pt_is(pt_query(md).threshold, PTL_MD_THRESH_INF);
	}
	pt_finish();
}

static void an_inactive_md_initiates_nothing(void)
{
	ptl_handle_md_t md, active;
	ptl_handle_eq_t eq;
	static char c[8];

	pt_open();
	eq = pt_eq(16);
	active = pt_bind(c, 8, 0, PTL_EQ_NONE);
	for (int threshold = 0; threshold >= -9; threshold -= 3) {
		md = limited(c, 8, threshold, eq, PTL_UNLINK);
		pt_is(pt_query(md).threshold, 0);
		pt_code(PtlPut(md, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0), PTL_MD_INVALID);
		pt_code(PtlPutRegion(md, 0, 1, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0),
			PTL_MD_INVALID);
		pt_code(PtlGet(md, pt_id(0), PORTAL, 0, 0, 0), PTL_MD_INVALID);
		pt_code(PtlGetRegion(md, 0, 1, pt_id(0), PORTAL, 0, 0, 0), PTL_MD_INVALID);
		pt_code(PtlGetPut(md, active, pt_id(0), PORTAL, 0, 0, 0, 0), PTL_MD_INVALID);
		pt_code(PtlGetPut(active, md, pt_id(0), PORTAL, 0, 0, 0, 0), PTL_MD_INVALID);
		pt_ok(PtlMDUnlink(md));
	}
	pt_quiet(eq);
}

/* With threshold 1 the put itself is the last operation: its ack finds an inactive MD. */
static void an_ack_beyond_the_threshold_is_dropped_and_counted(void)
{
	ptl_handle_eq_t eq = PTL_EQ_NONE;
	ptl_handle_md_t md;
	static char place[8], c[8];

	pt_open();
	target_for_everything(place);
	if (pt_is_initiator()) {
		eq = pt_eq(16);
		md = limited(c, 8, 1, eq, PTL_RETAIN);
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
		pt_await(eq, PT_SENT, NULL);
		pt_code(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0),
			PTL_MD_INVALID);
	}
	pt_finish();
	if (pt_is_initiator()) {
		pt_wait_drops(1);
		pt_quiet(eq);
	}
}

static void a_target_threshold_counts_accepted_requests(void)
{
	ptl_md_t md;

	pt_open();
	if (pt_is_target()) {
		md = pt_tagged('A', 4, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
		md.threshold = 2;
		pt_post(PORTAL, 0, md, PTL_RETAIN, NULL);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		pt_shoot(PORTAL, 0, 5); /* too long: rejected, uses nothing */
		pt_shoot(PORTAL, 0, 4);
		pt_shoot(PORTAL, 0, 5);
		pt_shoot(PORTAL, 0, 4);
		pt_shoot(PORTAL, 0, 4);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("-A-A-");
}

/* ---- max_size -------------------------------------------------------------------------------- */

static ptl_handle_md_t bounded(ptl_size_t length, ptl_size_t max_size, unsigned int options)
{
	ptl_md_t md = pt_tagged('A', length, PTL_MD_OP_PUT | options);
	ptl_handle_md_t h;

	md.max_size = max_size;
	pt_post(PORTAL, 0, md, PTL_RETAIN, &h);
	return h;
}

static void an_md_with_too_little_room_left_becomes_inactive(void)
{
	pt_open();
	if (pt_is_target())
		bounded(100, 30, PTL_MD_MAX_SIZE);
	pt_barrier();
	if (pt_is_initiator()) {
		pt_shoot(PORTAL, 0, 40); /* 60 left */
		pt_shoot(PORTAL, 0, 30); /* 30 left: not less than max_size */
		pt_shoot(PORTAL, 0, 1);  /* 29 left: inactive now */
		pt_shoot(PORTAL, 0, 1);
		pt_shoot(PORTAL, 0, 0);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("AAA--");
}

static void max_size_means_nothing_without_its_option(void)
{
	pt_open();
	if (pt_is_target())
		bounded(100, 30, 0);
	pt_barrier();
	if (pt_is_initiator()) {
		pt_shoot(PORTAL, 0, 90);
		pt_shoot(PORTAL, 0, 10);
		pt_shoot(PORTAL, 0, 0);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("AAA");
}

/* Evaluated after an operation: the first message that fits is never lost. */
static void a_region_shorter_than_max_size_takes_one_message(void)
{
	pt_open();
	if (pt_is_target())
		bounded(20, 30, PTL_MD_MAX_SIZE);
	pt_barrier();
	if (pt_is_initiator()) {
		pt_shoot(PORTAL, 0, 15);
		pt_shoot(PORTAL, 0, 1);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("A-");
}

static void messages_longer_than_max_size_fit_if_there_is_room(void)
{
	pt_open();
	if (pt_is_target())
		bounded(100, 10, PTL_MD_MAX_SIZE);
	pt_barrier();
	if (pt_is_initiator())
		pt_shoot(PORTAL, 0, 80);
	pt_finish();
	if (pt_is_target())
		pt_taken("A");
}

/* ---- automatic unlink ------------------------------------------------------------------------ */

static void unlink_is_the_last_event_and_comes_once(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t end, un;
	static char place[8], c[8];
	ptl_md_t old;

	pt_open();
	target_for_everything(place);
	if (pt_is_initiator()) {
		eq = pt_eq(16);
		md = limited(c, 8, 2, eq, PTL_UNLINK);
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
		pt_await(eq, PT_ACKED, NULL);
		un = pt_next(eq, PTL_EVENT_UNLINK);
		pt_is(un.md_handle, md);
		pt_code(PtlMDUnlink(md), PTL_MD_INVALID);
		pt_code(PtlMDUpdate(md, &old, NULL, PTL_EQ_NONE), PTL_MD_INVALID);
		pt_code(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0),
			PTL_MD_INVALID);
		md = limited(c, 8, 1, eq, PTL_UNLINK);
		pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 0, 0));
		pt_next(eq, PTL_EVENT_REPLY_START);
		end = pt_next(eq, PTL_EVENT_REPLY_END);
		un = pt_next(eq, PTL_EVENT_UNLINK);
		pt_is(un.md_handle, md);
		pt_is(end.md_handle, md);
		pt_code(PtlMDUnlink(md), PTL_MD_INVALID);
		pt_quiet(eq);
		pt_ok(PtlEQFree(eq));
	}
	pt_finish();
}

/* Each MD has that many PUT_ENDs and then its UNLINK; the two may mix. */
static void expect_ends_then_unlink(ptl_handle_eq_t eq, ptl_handle_md_t a, int a_ends,
				    ptl_handle_md_t b, int b_ends)
{
	ptl_event_t ev;
	int unlinks = 0;

	while (unlinks < 2) {
		pt_ok(PtlEQWait(eq, &ev));
		pt_true(ev.md_handle == a || ev.md_handle == b);
		if (ev.type == PTL_EVENT_PUT_END) {
			*(ev.md_handle == a ? &a_ends : &b_ends) -= 1;
		} else if (ev.type == PTL_EVENT_UNLINK) {
			pt_is(ev.md_handle == a ? a_ends : b_ends, 0);
			unlinks++;
		} else {
			pt_is(ev.type, PTL_EVENT_PUT_START);
		}
	}
	pt_is(a_ends, 0);
	pt_is(b_ends, 0);
}

static void a_used_up_target_md_unlinks_itself(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md, next;
	ptl_md_t t;
	static char place[100];

	pt_open();
	eq = pt_eq(64);
	if (pt_is_target()) {
		t = pt_md(place, 100, PTL_MD_OP_PUT | PTL_MD_MAX_SIZE, eq);
		t.max_size = 50;
		pt_post(PORTAL, 0, t, PTL_UNLINK, &md);
		t = pt_md(place, 100, PTL_MD_OP_PUT, eq);
		t.threshold = 1;
		pt_post(PORTAL, 0, t, PTL_UNLINK, &next);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		pt_shoot(PORTAL, 0, 10);
		pt_shoot(PORTAL, 0, 41);
		pt_shoot(PORTAL, 0, 1);
		pt_shoot(PORTAL, 0, 1);
	}
	pt_finish();
	if (pt_is_target()) {
		expect_ends_then_unlink(eq, md, 2, next, 1);
		pt_wait_drops(1);
		pt_quiet(eq);
		pt_is(pt_status(PTL_SR_MLIST_LEN(PORTAL)), 0);
		pt_code(PtlMDUnlink(md), PTL_MD_INVALID);
		pt_ok(PtlEQFree(eq));
	}
}

static void a_retained_md_stays_and_can_be_revived(void)
{
	ptl_handle_md_t md;
	ptl_md_t t, new;

	pt_open();
	if (pt_is_target()) {
		t = pt_tagged('A', 4, PTL_MD_OP_PUT);
		t.threshold = 1;
		pt_post(PORTAL, 0, t, PTL_RETAIN, &md);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		pt_shoot(PORTAL, 0, 4);
		pt_shoot(PORTAL, 0, 4);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_taken("A-");
		new = pt_query(md);
		pt_is(new.threshold, 0);
		new.threshold = 1;
		pt_ok(PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE));
	}
	pt_barrier();
	if (pt_is_initiator())
		pt_shoot(PORTAL, 0, 4);
	pt_finish();
	if (pt_is_target()) {
		pt_taken("A");
		pt_ok(PtlMDUnlink(md));
	}
}

/* Only an operation unlinks, not a threshold that was 0 from the start. */
static void threshold_zero_at_creation_does_not_unlink(void)
{
	ptl_handle_md_t md;
	ptl_md_t t;

	pt_open();
	t = pt_tagged('A', 4, PTL_MD_OP_PUT);
	t.threshold = 0;
	pt_post(PORTAL, 0, t, PTL_UNLINK, &md);
	pt_shoot(PORTAL, 0, 0);
	pt_taken("-");
	pt_is(pt_query(md).threshold, 0);
	t.threshold = 1;
	pt_ok(PtlMDUpdate(md, NULL, &t, PTL_EQ_NONE));
	pt_shoot(PORTAL, 0, 0);
	pt_taken("A");
	pt_code(PtlMDUnlink(md), PTL_MD_INVALID);
}

/* Messages of very different length in flight together: still exactly one UNLINK, at the end. */
static void overlapping_messages_unlink_once_and_last(void)
{
	enum { ROUNDS = 40, N = 8, LONG = 1 << 20 };
	static char place[N * LONG], from[LONG];
	ptl_handle_md_t md, h;
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	ptl_md_t t;
	int ends;

	pt_open();
	eq = pt_eq(64);
	md = pt_bind(from, sizeof(from), 0, PTL_EQ_NONE);
	for (int r = 0; r < ROUNDS; r++) {
		if (pt_is_target()) {
			t = pt_md(place, sizeof(place), PTL_MD_OP_PUT, eq);
			t.threshold = N;
			pt_post(PORTAL, 0, t, PTL_UNLINK, &h);
		}
		pt_barrier();
		for (int i = 0; i < N && pt_is_initiator(); i++)
			pt_ok(PtlPutRegion(md, 0, (i + r) % 3 ? 8 : LONG, PTL_NO_ACK_REQ,
					   pt_target(), PORTAL, 0, 0, 0, 0));
		for (ends = 0; ends < N && pt_is_target();) {
			pt_ok(PtlEQWait(eq, &ev));
			pt_true(ev.type == PTL_EVENT_PUT_START || ev.type == PTL_EVENT_PUT_END);
			ends += ev.type == PTL_EVENT_PUT_END;
		}
		if (pt_is_target()) {
			pt_is(pt_next(eq, PTL_EVENT_UNLINK).md_handle, h);
			pt_quiet(eq);
			pt_code(PtlMDUnlink(h), PTL_MD_INVALID);
		}
		pt_barrier();
	}
}

/* ---- explicit unlink ------------------------------------------------------------------------- */

static void explicit_unlink_makes_no_event(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	char c;

	pt_open();
	eq = pt_eq(4);
	for (int i = PTL_RETAIN; i <= PTL_UNLINK; i++) {
		pt_ok(PtlMDBind(pt_ni, pt_md(&c, 1, 0, eq), (ptl_unlink_t)i, &md));
		pt_ok(PtlMDUnlink(md));
		pt_code(PtlMDUnlink(md), PTL_MD_INVALID);
		pt_post(PORTAL, 0, pt_md(&c, 1, PTL_MD_OP_PUT, eq), (ptl_unlink_t)i, &md);
		pt_ok(PtlMDUnlink(md));
		pt_code(PtlMDUnlink(md), PTL_MD_INVALID);
	}
	pt_quiet(eq);
}

/*
 * While long puts arrive, PtlMDUnlink is tried all the time. It may say MD_IN_USE or PTL_OK, but
 * once it says OK every put that started must have ended, and nothing may come any more.
 */
static void an_md_is_never_unlinked_between_start_and_end(void)
{
	enum { ROUNDS = 60, LONG = 4 << 20 };
	static unsigned char place[LONG], from[LONG];
	ptl_handle_md_t md, h;
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	int rc, open_ops;

	pt_open();
	eq = pt_eq(4 * ROUNDS); /* all at once, if the connection took that long */
	memset(from, 0x42, sizeof(from));
	md = pt_bind(from, sizeof(from), 0, PTL_EQ_NONE);
	for (int r = 0; r < ROUNDS; r++) {
		memset(place, 0, sizeof(place));
		if (pt_is_target())
			pt_post(PORTAL, 0,
				pt_md(place, LONG, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq),
				PTL_RETAIN, &h);
		pt_barrier();
		if (pt_is_initiator()) {
			pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
			pt_barrier();
			pt_barrier();
			continue;
		}
		for (int i = 0; i < r * 20; i++)
			PtlProgress(pt_ni, 0);
		while ((rc = PtlMDUnlink(h)) == PTL_MD_IN_USE)
			PtlProgress(pt_ni, 0);
		pt_is(rc, PTL_OK);
		for (open_ops = 0; PtlEQGet(eq, &ev) == PTL_OK;)
			open_ops += ev.type == PTL_EVENT_PUT_START ? 1 : -1;
		pt_is(open_ops, 0);
		pt_true(place[0] == 0 || place[LONG - 1] == 0x42);
		rc = place[0];
		pt_barrier();
		PtlProgress(pt_ni, 0);
		pt_quiet(eq);
		pt_is(place[0], rc);
		pt_barrier();
	}
}

static void an_entry_is_never_unlinked_between_start_and_end(void)
{
	enum { ROUNDS = 60, LONG = 4 << 20 };
	static unsigned char place[LONG], from[LONG];
	ptl_handle_me_t me = PTL_INVALID_HANDLE;
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	int rc, open_ops;

	pt_open();
	eq = pt_eq(4 * ROUNDS); /* all at once, if the connection took that long */
	md = pt_bind(from, sizeof(from), 0, PTL_EQ_NONE);
	for (int r = 0; r < ROUNDS; r++) {
		if (pt_is_target())
			me = pt_post(PORTAL, 0, pt_md(place, LONG, PTL_MD_OP_PUT, eq), PTL_RETAIN,
				     NULL);
		pt_barrier();
		if (pt_is_initiator())
			pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
		for (int i = 0; i < r * 20 && pt_is_target(); i++)
			PtlProgress(pt_ni, 0);
		if (pt_is_target()) {
			while ((rc = PtlMEUnlink(me)) == PTL_ME_IN_USE)
				PtlProgress(pt_ni, 0);
			pt_is(rc, PTL_OK);
			for (open_ops = 0; PtlEQGet(eq, &ev) == PTL_OK;)
				open_ops += ev.type == PTL_EVENT_PUT_START ? 1 : -1;
			pt_is(open_ops, 0);
		}
		pt_barrier();
	}
}

/* An outstanding ack does not hold an MD; it must not reach the next one in the same place. */
static void a_late_ack_does_not_reach_another_md(void)
{
	enum { ROUNDS = 2000 };
	ptl_handle_eq_t eq;
	ptl_handle_md_t md, next;
	static char place[8], c[8];
	ptl_event_t ev;
	int rc;

	pt_open();
	target_for_everything(place);
	eq = pt_eq(ROUNDS * 4);
	for (int i = 0; i < ROUNDS && pt_is_initiator(); i++) {
		md = pt_bind(c, 8, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, eq);
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
		while ((rc = PtlMDUnlink(md)) == PTL_MD_IN_USE)
			PtlProgress(pt_ni, 0);
		pt_is(rc, PTL_OK);
		next = pt_bind(c, 8, 0, eq);
		pt_true(next != md);
		while (PtlEQGet(eq, &ev) == PTL_OK) {
			pt_is(ev.type, PTL_EVENT_ACK);
			pt_true(ev.md_handle != next);
		}
		pt_ok(PtlMDUnlink(next));
	}
	pt_finish();
}

static void handles_of_unlinked_mds_stay_invalid(void)
{
	ptl_handle_md_t old[64], md;
	ptl_md_t q;

	pt_open();
	for (int i = 0; i < 64; i++) {
		old[i] = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
		pt_ok(PtlMDUnlink(old[i]));
	}
	md = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	for (int i = 0; i < 64; i++) {
		pt_true(md != old[i]);
		pt_code(PtlMDUnlink(old[i]), PTL_MD_INVALID);
		pt_code(PtlMDUpdate(old[i], &q, NULL, PTL_EQ_NONE), PTL_MD_INVALID);
		pt_code(PtlPut(old[i], PTL_NO_ACK_REQ, pt_id(0), 0, 0, 0, 0, 0), PTL_MD_INVALID);
	}
}

static const struct pt_test tests[] = {
	PT_CASE(illegal_memory_is_refused, 1),
	PT_CASE(illegal_vectors_are_refused, 1),
	PT_CASE(event_queues_are_checked, 1),
	PT_CASE(md_and_vector_are_copied, 1),
	PT_CASE(unhandled_handles_are_accepted, 1),
	PT_MODES(a_put_uses_one_and_its_ack_another),
	PT_MODES(an_infinite_threshold_stays),
	PT_CASE(an_inactive_md_initiates_nothing, 1),
	PT_MODES(an_ack_beyond_the_threshold_is_dropped_and_counted),
	PT_MODES(a_target_threshold_counts_accepted_requests),
	PT_MODES(an_md_with_too_little_room_left_becomes_inactive),
	PT_MODES(max_size_means_nothing_without_its_option),
	PT_MODES(a_region_shorter_than_max_size_takes_one_message),
	PT_MODES(messages_longer_than_max_size_fit_if_there_is_room),
	PT_MODES(unlink_is_the_last_event_and_comes_once),
	PT_MODES(a_used_up_target_md_unlinks_itself),
	PT_MODES(a_retained_md_stays_and_can_be_revived),
	PT_CASE(threshold_zero_at_creation_does_not_unlink, 1),
	PT_CASE(overlapping_messages_unlink_once_and_last, 2),
	PT_CASE(explicit_unlink_makes_no_event, 1),
	PT_CASE(an_md_is_never_unlinked_between_start_and_end, 2),
	PT_CASE(an_entry_is_never_unlinked_between_start_and_end, 2),
	PT_MODES(a_late_ack_does_not_reach_another_md),
	PT_CASE(handles_of_unlinked_mds_stay_invalid, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
