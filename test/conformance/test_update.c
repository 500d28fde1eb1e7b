/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PtlMDUpdate: query, update, and the update that happens only while an event queue is empty, with
 * which MPI posts receives without losing a message (report section 3.10.5).
 */
#include "ptest.h"

#include <string.h>

enum { PORTAL = 22 };

static void a_query_tells_what_was_given(void)
{
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;
	ptl_md_t want, old;
	static char c[100];

	pt_open();
	eq = pt_eq(4);
	want = pt_md(c, 100, PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_MAX_SIZE, eq);
	want.threshold = 17;
	want.max_size = 10;
	want.user_ptr = &md;
	pt_ok(PtlMDBind(pt_ni, want, PTL_RETAIN, &md));
	old = pt_query(md);
	pt_true(old.start == want.start && old.user_ptr == want.user_ptr);
	pt_is(old.length, 100);
	pt_is(old.threshold, 17);
	pt_is(old.max_size, 10);
	pt_is(old.options, want.options);
	pt_is(old.eq_handle, eq);
	pt_ok(PtlMDUpdate(md, NULL, NULL, PTL_EQ_NONE));
}

static void an_update_replaces_everything_and_rewinds(void)
{
	static char a[8], b[8];
	ptl_handle_md_t md, from;
	ptl_handle_eq_t eq, eq2;
	ptl_md_t new, old;
	ptl_event_t ev;
	static char c[4];

	pt_open();
	eq = pt_eq(8);
	eq2 = pt_eq(8);
	pt_post(PORTAL, 0, pt_md(a, 8, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq), PTL_RETAIN,
		&md);
	from = pt_bind(c, 4, 0, PTL_EQ_NONE);
	pt_fill(c, 4, 1, 0);
	pt_ok(PtlPut(from, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0));
	pt_next(eq, PTL_EVENT_PUT_END);
	new = pt_md(b, 8, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_EVENT_START_DISABLE, eq2);
	new.threshold = 2;
	new.user_ptr = b;
	pt_ok(PtlMDUpdate(md, &old, &new, PTL_EQ_NONE));
	pt_true(old.start == a);
	pt_is(old.eq_handle, eq);
	pt_ok(PtlPut(from, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0));
	ev = pt_next(eq2, PTL_EVENT_PUT_END);
	pt_is(ev.offset, 0);
	pt_true(ev.md.user_ptr == b);
	pt_is(ev.md_handle, md);
	pt_holds(b, 4, 1, 0);
	pt_quiet(eq);
	pt_ok(PtlEQFree(eq)); /* no longer used by the MD */
}

static void the_unlink_flag_survives_an_update(void)
{
	ptl_handle_md_t md;
	ptl_md_t new;

	pt_open();
	new = pt_tagged('A', 0, PTL_MD_OP_PUT);
	pt_post(PORTAL, 0, new, PTL_UNLINK, &md);
	new.threshold = 1;
	pt_ok(PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE));
	pt_shoot(PORTAL, 0, 0);
	pt_taken("A");
	pt_code(PtlMDUnlink(md), PTL_MD_INVALID);
}

static void an_update_to_threshold_zero_parks_the_md(void)
{
	ptl_handle_md_t md;
	ptl_md_t new;

	pt_open();
	new = pt_tagged('A', 4, PTL_MD_OP_PUT);
	pt_post(PORTAL, 0, new, PTL_UNLINK, &md);
	new.threshold = 0;
	pt_ok(PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE));
	pt_shoot(PORTAL, 0, 1);
	pt_taken("-");
	pt_quiet(pt_shots_eq()); /* no UNLINK */
	pt_code(PtlPut(md, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0), PTL_MD_INVALID);
	new.threshold = PTL_MD_THRESH_INF;
	pt_ok(PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE));
	pt_shoot(PORTAL, 0, 1);
	pt_taken("A");
}

static void an_update_revives_an_md_that_was_full(void)
{
	ptl_handle_md_t md;
	ptl_md_t new;

	pt_open();
	new = pt_tagged('A', 10, PTL_MD_OP_PUT | PTL_MD_MAX_SIZE);
	new.max_size = 8;
	pt_post(PORTAL, 0, new, PTL_RETAIN, &md);
	pt_shoot(PORTAL, 0, 5);
	pt_shoot(PORTAL, 0, 5);
	pt_taken("A-");
	pt_ok(PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE));
	pt_shoot(PORTAL, 0, 5);
	pt_taken("A");
}

static void the_condition_is_an_empty_queue(void)
{
	ptl_handle_md_t md, from;
	ptl_handle_eq_t eq, own;
	ptl_md_t new, old;
	static char a[8], b[8];
	ptl_event_t ev;

	pt_open();
	eq = pt_eq(8);
	own = pt_eq(8);
	md = pt_bind(a, 8, 0, own);
	pt_post(PORTAL, 0, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	from = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	new = pt_md(b, 8, 0, own);
	pt_ok(PtlMDUpdate(md, NULL, &new, eq)); /* not even the MD's own queue */
	pt_true(pt_query(md).start == b);
	pt_ok(PtlPut(from, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0));
	pt_ok(PtlPut(from, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0));
	pt_next(eq, PTL_EVENT_PUT_END);
	new.start = a;
	pt_until(PtlMDUpdate(md, NULL, &new, eq) == PTL_MD_NO_UPDATE, 10);
	pt_true(pt_query(md).start == b);
	memset(&old, 0x77, sizeof(old));
	pt_code(PtlMDUpdate(md, &old, &new, eq), PTL_MD_NO_UPDATE);
	pt_ok(PtlEQWait(eq, &ev));
	pt_ok(PtlMDUpdate(md, &old, &new, eq));
	pt_true(old.start == b);
	pt_true(pt_query(md).start == a);
}

static void wrong_arguments_change_nothing(void)
{
	ptl_handle_eq_t eq, gone;
	ptl_handle_md_t md;
	ptl_md_t new;
	static char a[8];

	pt_open();
	eq = pt_eq(8);
	gone = pt_eq(8);
	pt_ok(PtlEQFree(gone));
	md = pt_bind(a, 8, 0, eq);
	new = pt_md(NULL, 9, 0, eq);
	pt_code(PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE), PTL_MD_ILLEGAL);
	new = pt_md(a, ~(ptl_size_t)0, 0, eq);
	pt_code(PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE), PTL_MD_ILLEGAL);
	new = pt_md(NULL, 4, PTL_MD_IOVEC, eq);
	pt_code(PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE), PTL_MD_ILLEGAL);
	new = pt_md(a, 4, 0, gone);
	pt_code(PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE), PTL_EQ_INVALID);
	new = pt_md(a, 4, 0, eq);
	pt_code(PtlMDUpdate(md, NULL, &new, gone), PTL_EQ_INVALID);
	pt_code(PtlMDUpdate(md, NULL, &new, PTL_INVALID_HANDLE), PTL_EQ_INVALID);
	pt_code(PtlMDUpdate(md ^ 0x00ff0000, NULL, &new, PTL_EQ_NONE), PTL_MD_INVALID);
	pt_is(pt_query(md).length, 8);
	pt_true(pt_query(md).start == a);
	pt_is(pt_query(md).eq_handle, eq);
}

/* The caller says how much room there is; the answer has the MD's own start and number. */
static void a_vector_can_be_queried(void)
{
	ptl_md_iovec_t room[4];
	struct pt_buf buf;
	ptl_handle_md_t md;
	ptl_md_t old;

	pt_open();
	buf = pt_buf_new(1000, 3);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&buf, 0, PTL_EQ_NONE), PTL_RETAIN, &md));
	memset(room, 0, sizeof(room));
	old = pt_md(room, 4, PTL_MD_IOVEC, PTL_EQ_NONE);
	pt_ok(PtlMDUpdate(md, &old, NULL, PTL_EQ_NONE));
	pt_is(old.length, 3);
	for (int i = 0; i < 3; i++) {
		pt_true(room[i].iov_base == buf.iov[i].iov_base);
		pt_is(room[i].iov_len, buf.iov[i].iov_len);
	}
	memset(room, 0, sizeof(room));
	old = pt_md(room, 2, PTL_MD_IOVEC, PTL_EQ_NONE);
	pt_ok(PtlMDUpdate(md, &old, NULL, PTL_EQ_NONE));
	pt_is(old.length, 3);
	pt_true(room[1].iov_base == buf.iov[1].iov_base);
	pt_true(room[2].iov_base == NULL); /* no more than there was room for */
}

static void plain_and_scattered_memory_can_replace_each_other(void)
{
	struct pt_buf plain, scattered, from;
	ptl_handle_md_t md, send;
	ptl_handle_eq_t eq;
	ptl_md_t new;
	const unsigned int options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE;

	pt_open();
	eq = pt_eq(8);
	plain = pt_buf_new(500, 0);
	scattered = pt_buf_new(500, 9);
	from = pt_buf_new(500, 0);
	pt_buf_fill(&from, 3);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&from, 0, PTL_EQ_NONE), PTL_RETAIN, &send));
	pt_post(PORTAL, 0, pt_buf_md(&plain, options, eq), PTL_RETAIN, &md);
	for (int i = 0; i < 200; i++) {
		struct pt_buf *to = i & 1 ? &plain : &scattered;

		new = pt_buf_md(to, options, eq);
		pt_ok(PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE));
		pt_buf_fill(to, 99);
		pt_ok(PtlPut(send, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0));
		pt_next(eq, PTL_EVENT_PUT_END);
		pt_buf_holds(to, 0, 500, 3, 0);
		pt_buf_guarded(to);
	}
}

/* Takes the memory that queues and vectors are made of, to the last piece a queue can be made
 * of. */
static void take_all_room(void)
{
	ptl_handle_eq_t eq;

	for (ptl_size_t count = (ptl_size_t)1 << 31; count; count /= 2)
		while (PtlEQAlloc(pt_ni, count, PTL_EQ_HANDLER_NONE, &eq) == PTL_OK)
			;
}

/* A vector for which there is no room is refused, and the MD is as it was, in events' eyes and
 * in fact. */
static void an_update_without_room_changes_nothing(void)
{
	enum { SEGMENTS = 4000 };
	static ptl_md_iovec_t many[SEGMENTS], seen[SEGMENTS];
	static char byte;
	struct pt_buf to, from;
	ptl_handle_md_t md, send;
	ptl_handle_eq_t eq;
	ptl_md_t new, old;

	pt_open();
	eq = pt_eq(8);
	to = pt_buf_new(500, 9);
	from = pt_buf_new(500, 0);
	pt_buf_fill(&from, 3);
	pt_buf_fill(&to, 99);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&from, 0, PTL_EQ_NONE), PTL_RETAIN, &send));
	pt_post(PORTAL, 0,
		pt_buf_md(&to, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
			  eq),
		PTL_RETAIN, &md);
	take_all_room();
	for (int i = 0; i < SEGMENTS; i++)
		many[i] = (ptl_md_iovec_t){ &byte, 1 };
	new = pt_md(many, SEGMENTS, PTL_MD_OP_GET | PTL_MD_IOVEC, PTL_EQ_NONE);
	old = (ptl_md_t){ .start = seen, .length = SEGMENTS, .options = PTL_MD_IOVEC };
	pt_code(PtlMDUpdate(md, &old, &new, PTL_EQ_NONE), PTL_NO_SPACE);
	pt_true(old.start == seen && old.length == SEGMENTS && !seen[0].iov_base);
	pt_is(pt_query(md).length, 9);
	pt_is(pt_query(md).eq_handle, eq);
	pt_is(pt_query(md).threshold, PTL_MD_THRESH_INF);
	pt_code(PtlEQFree(eq), PTL_EQ_IN_USE);
	pt_ok(PtlPut(send, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0));
	pt_next(eq, PTL_EVENT_PUT_END);
	pt_buf_holds(&to, 0, 500, 3, 0);
	pt_buf_guarded(&to);
}

/* While a long put is under way the MD cannot be updated: START and END show the same memory. */
static void an_md_with_a_pending_operation_is_not_updated(void)
{
	enum { ROUNDS = 40, LONG = 4 << 20 };
	static char a[LONG], b[LONG], from[LONG];
	ptl_handle_md_t md, send;
	ptl_handle_eq_t eq;
	ptl_event_t start, end;
	ptl_md_t new;
	int rc;

	pt_open();
	eq = pt_eq(64);
	send = pt_bind(from, LONG, 0, eq);
	if (pt_is_target())
		pt_post(PORTAL, 0, pt_md(a, LONG, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq),
			PTL_RETAIN, &md);
	for (int r = 0; r < ROUNDS; r++) {
		memset(from, r + 1, LONG);
		pt_barrier();
		if (pt_is_initiator()) {
			pt_ok(PtlPut(send, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
			pt_barrier();
			pt_await(eq, PT_SENT, NULL);
			continue;
		}
		for (int i = 0; i < r * 20; i++)
			PtlProgress(pt_ni, 0);
		new = pt_md(r & 1 ? a : b, LONG, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
		rc = PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE);
		pt_true(rc == PTL_OK || rc == PTL_MD_NO_UPDATE);
		start = pt_next(eq, PTL_EVENT_PUT_START);
		end = pt_next(eq, PTL_EVENT_PUT_END);
		pt_true(start.md.start == end.md.start);
		pt_is(((char *)end.md.start)[0], (char)(r + 1));
		pt_is(((char *)end.md.start)[LONG - 1], (char)(r + 1));
		pt_barrier();
		pt_ok(PtlMDUpdate(md, NULL, &new, PTL_EQ_NONE));
	}
}

/*
 * The race of MPI: a receive is posted in front of an entry for unexpected messages, parked, and
 * activated only if no unexpected message came meanwhile. Message k must then be received k-th,
 * whether by a posted receive or as unexpected.
 */
enum { MESSAGES = 20000, ROOM = 300000, BREATH = 500 };

struct receiver {
	ptl_handle_me_t unexpected_me;
	ptl_handle_eq_t unexpected, posted;
	uint64_t next;
	int used_posted;
	char *room;
};

static void drain_unexpected(struct receiver *r)
{
	ptl_event_t ev;

	while (PtlEQGet(r->unexpected, &ev) == PTL_OK) {
		if (ev.type != PTL_EVENT_PUT_END)
			continue;
		pt_is(ev.hdr_data, r->next);
		*pt_word(0) = ++r->next;
	}
}

/* One receive: parked in front of the unexpected entry, then activated or given up. */
static void receive_one(struct receiver *r)
{
	ptl_handle_me_t me;
	ptl_handle_md_t h;
	ptl_event_t ev;
	ptl_md_t md = pt_md(r->room, ROOM, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, r->posted);
	int rc;

	md.threshold = 0;
	pt_ok(PtlMEInsert(r->unexpected_me, pt_any, 0, 0, PTL_UNLINK, PTL_INS_BEFORE, &me));
	pt_ok(PtlMDAttach(me, md, PTL_UNLINK, &h));
	md.threshold = 1;
	drain_unexpected(r);
	while (r->next < MESSAGES) {
		rc = PtlMDUpdate(h, NULL, &md, r->unexpected);
		if (rc == PTL_OK)
			break;
		pt_is(rc, PTL_MD_NO_UPDATE);
		drain_unexpected(r);
	}
	if (r->next == MESSAGES) {
		pt_ok(PtlMDUnlink(h));
		return;
	}
	ev = pt_next(r->posted, PTL_EVENT_PUT_END);
	pt_truef(ev.hdr_data == r->next, "the posted receive got message %llu instead of %llu",
		 (unsigned long long)ev.hdr_data, (unsigned long long)r->next);
	pt_next(r->posted, PTL_EVENT_UNLINK);
	*pt_word(0) = ++r->next;
	r->used_posted++;
}

static void send_all(char *room)
{
	ptl_handle_eq_t eq = pt_eq(256);
	ptl_handle_md_t md = pt_bind(room, ROOM, PTL_MD_EVENT_START_DISABLE, eq);
	uint64_t seed = 5;

	for (uint64_t i = 0; i < MESSAGES; i++) {
		if (i % BREATH == 0) /* so that some receives are posted in time */
			pt_until(*pt_word(0) == i, 20);
		pt_ok(PtlPutRegion(md, 0, i % 500 ? pt_random(&seed) % 64 : ROOM, PTL_NO_ACK_REQ,
				   pt_target(), PORTAL, 0, 0, 0, i));
		if (i >= 100)
			pt_next(eq, PTL_EVENT_SEND_END);
	}
	for (int i = 0; i < 100; i++)
		pt_next(eq, PTL_EVENT_SEND_END);
}

static void conditional_updates_keep_messages_in_order(void)
{
	static char room[ROOM];
	struct receiver r = { .room = room };
	ptl_md_t md;

	pt_open();
	if (pt_is_target()) {
		r.unexpected = pt_eq(MESSAGES * 2);
		r.posted = pt_eq(64);
		md = pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE, r.unexpected);
		r.unexpected_me = pt_post(PORTAL, 0, md, PTL_RETAIN, NULL);
	}
	pt_barrier();
	if (pt_is_initiator())
		send_all(room);
	while (pt_is_target() && r.next < MESSAGES)
		receive_one(&r);
	if (pt_is_target()) {
		pt_is(pt_status(PTL_SR_DROP_COUNT), 0);
		pt_true(r.used_posted > 0);
	}
}

static const struct pt_test tests[] = {
	PT_CASE(a_query_tells_what_was_given, 1),
	PT_CASE(an_update_replaces_everything_and_rewinds, 1),
	PT_CASE(the_unlink_flag_survives_an_update, 1),
	PT_CASE(an_update_to_threshold_zero_parks_the_md, 1),
	PT_CASE(an_update_revives_an_md_that_was_full, 1),
	PT_CASE(the_condition_is_an_empty_queue, 1),
	PT_CASE(wrong_arguments_change_nothing, 1),
	PT_CASE(a_vector_can_be_queried, 1),
	PT_CASE(plain_and_scattered_memory_can_replace_each_other, 1),
	PT_CASE(an_update_without_room_changes_nothing, 1),
	PT_CASE(an_md_with_a_pending_operation_is_not_updated, 2),
	PT_CASE(conditional_updates_keep_messages_in_order, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
