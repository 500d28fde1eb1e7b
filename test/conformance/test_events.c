/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Events: which come, in which order, and what every field says, for each operation at both sides;
 * the options that suppress some; and the other order of things under PTL_CRAY=1 (report sections
 * 3.11.1 to 3.11.4, and the choices that clients depend on).
 */
#include "ptest.h"

#include <stdlib.h>
#include <string.h>

enum { PORTAL = 25, LEN = 100, SIZE = 300 };

static const ptl_match_bits_t bits = 0xfedcba9876543210;
static const ptl_hdr_data_t hdr = 0x0123456789abcdef;

/* The two sides of one operation: an MD each, with a queue each. */
static struct {
	ptl_handle_eq_t there_eq, here_eq;
	ptl_handle_md_t there, here;
	char there_bytes[SIZE], here_bytes[LEN];
} t;

/* Posts the target's MD and binds the initiator's, with the thresholds and options given. */
static void set_up(int there_threshold, unsigned int there_options, int here_threshold,
		   unsigned int here_options, ptl_unlink_t unlink)
{
	ptl_handle_me_t me;
	ptl_md_t md;

	pt_open();
	t.there_eq = pt_eq(32);
	t.here_eq = pt_eq(32);
	if (pt_is_target()) {
		md = pt_md(t.there_bytes, SIZE, PTL_MD_MANAGE_REMOTE | there_options, t.there_eq);
		md.threshold = there_threshold;
		md.user_ptr = &t.there;
		pt_ok(PtlMEAttach(pt_ni, PORTAL, pt_any, 0, ~(ptl_match_bits_t)0, PTL_UNLINK,
				  PTL_INS_AFTER, &me));
		pt_ok(PtlMDAttach(me, md, unlink, &t.there));
	}
	if (pt_is_initiator()) {
		md = pt_md(t.here_bytes, LEN, here_options, t.here_eq);
		md.threshold = here_threshold;
		md.user_ptr = &t.here;
		pt_ok(PtlMDBind(pt_ni, md, unlink, &t.here));
	}
	pt_barrier();
}

/* The fields that all events of an operation have in common, whatever the side. */
static void check_common(const ptl_event_t *ev, ptl_process_id_t peer, ptl_handle_md_t md,
			 const void *user_ptr, const void *start)
{
	ptl_uid_t uid;

	pt_ok(PtlGetUid(pt_ni, &uid));
	pt_is(ev->initiator.nid, peer.nid);
	pt_is(ev->initiator.pid, peer.pid);
	pt_is(ev->uid, uid);
	pt_is(ev->pt_index, PORTAL);
	pt_is(ev->match_bits, bits);
	pt_is(ev->rlength, LEN);
	pt_is(ev->mlength, LEN);
	pt_is(ev->md_handle, md);
	pt_true(ev->md.user_ptr == user_ptr);
	pt_true(ev->md.start == start);
	pt_is(ev->ni_fail_type, PTL_NI_OK);
}

static void check_target(const ptl_event_t *start, const ptl_event_t *end, ptl_hdr_data_t data,
			 int threshold)
{
	for (const ptl_event_t *ev = start;; ev = end) {
		check_common(ev, pt_initiator(), t.there, &t.there, t.there_bytes);
		pt_is(ev->offset, 40);
		pt_is(ev->hdr_data, data);
		pt_is(ev->md.length, SIZE);
		pt_is(ev->md.threshold, threshold);
		if (ev == end)
			break;
	}
	pt_is(start->link, end->link);
	pt_true(start->sequence != end->sequence);
}

static void check_pair(const ptl_event_t *start, const ptl_event_t *end, ptl_process_id_t peer)
{
	check_common(start, peer, t.here, &t.here, t.here_bytes);
	check_common(end, peer, t.here, &t.here, t.here_bytes);
	pt_is(start->link, end->link);
	pt_is(start->offset, 0);
	pt_is(end->offset, 0);
}

/* ---- one operation each ---------------------------------------------------------------------- */

static void put_with_ack(void)
{
	ptl_event_t ev[PTL_EVENT_MAX];
	ptl_jid_t jid;

	set_up(5, PTL_MD_OP_PUT, 7, 0, PTL_RETAIN);
	pt_ok(PtlGetJid(pt_ni, &jid));
	*pt_word(pt_rank) = jid;
	if (pt_is_initiator()) {
		pt_ok(PtlPut(t.here, PTL_ACK_REQ, pt_target(), PORTAL, 0, bits, 40, hdr));
		pt_await(t.here_eq, PT_ACKED, ev);
		check_pair(&ev[PTL_EVENT_SEND_START], &ev[PTL_EVENT_SEND_END], pt_initiator());
		pt_is(ev[PTL_EVENT_SEND_START].jid, jid);
		pt_is(ev[PTL_EVENT_SEND_START].hdr_data, hdr);
		pt_is(ev[PTL_EVENT_SEND_END].hdr_data, hdr);
		check_common(&ev[PTL_EVENT_ACK], pt_target(), t.here, &t.here, t.here_bytes);
		pt_is(ev[PTL_EVENT_ACK].hdr_data, 0);
		pt_is(ev[PTL_EVENT_ACK].md.threshold, 5);
		pt_quiet(t.here_eq);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_await(t.there_eq, PT_PUT, ev);
		check_target(&ev[PTL_EVENT_PUT_START], &ev[PTL_EVENT_PUT_END], hdr, 4);
		pt_is(ev[PTL_EVENT_PUT_END].jid, *pt_word(0));
		pt_quiet(t.there_eq);
	}
}

static void put_without_ack(void)
{
	ptl_event_t start, end;

	set_up(5, PTL_MD_OP_PUT, 7, 0, PTL_RETAIN);
	if (pt_is_initiator()) {
		pt_ok(PtlPut(t.here, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, bits, 40, hdr));
		start = pt_next(t.here_eq, PTL_EVENT_SEND_START);
		end = pt_next(t.here_eq, PTL_EVENT_SEND_END);
		check_pair(&start, &end, pt_initiator());
		pt_is(end.md.threshold, 6);
	}
	pt_finish();
	if (pt_is_initiator())
		pt_quiet(t.here_eq);
	if (pt_is_target()) {
		start = pt_next(t.there_eq, PTL_EVENT_PUT_START);
		end = pt_next(t.there_eq, PTL_EVENT_PUT_END);
		check_target(&start, &end, hdr, 4);
		pt_quiet(t.there_eq);
	}
}

static void get(void)
{
	ptl_event_t start, end;

	set_up(5, PTL_MD_OP_GET, 7, 0, PTL_RETAIN);
	if (pt_is_initiator()) {
		pt_ok(PtlGet(t.here, pt_target(), PORTAL, 0, bits, 40));
		start = pt_next(t.here_eq, PTL_EVENT_REPLY_START);
		end = pt_next(t.here_eq, PTL_EVENT_REPLY_END);
		check_pair(&start, &end, pt_target());
		pt_is(end.hdr_data, 0);
		pt_is(end.md.threshold, 6);
		pt_quiet(t.here_eq);
	}
	pt_finish();
	if (pt_is_target()) {
		start = pt_next(t.there_eq, PTL_EVENT_GET_START);
		end = pt_next(t.there_eq, PTL_EVENT_GET_END);
		check_target(&start, &end, 0, 4);
		pt_quiet(t.there_eq);
	}
}

static void getput(void)
{
	ptl_event_t ev[PTL_EVENT_MAX], start, end;
	ptl_handle_eq_t get_eq;
	ptl_handle_md_t get_md;
	static char back[LEN];

	set_up(5, PTL_MD_OP_GET | PTL_MD_OP_PUT, 7, 0, PTL_RETAIN);
	if (pt_is_initiator()) {
		get_eq = pt_eq(8);
		get_md = pt_bind(back, LEN, 0, get_eq);
		pt_ok(PtlGetPut(get_md, t.here, pt_target(), PORTAL, 0, bits, 40, hdr));
		pt_await(t.here_eq, PT_SENT, ev);
		check_pair(&ev[PTL_EVENT_SEND_START], &ev[PTL_EVENT_SEND_END], pt_initiator());
		pt_is(ev[PTL_EVENT_SEND_END].hdr_data, hdr);
		pt_is(ev[PTL_EVENT_SEND_END].md.threshold, 6);
		pt_await(get_eq, PT_REPLIED, ev);
		check_common(&ev[PTL_EVENT_REPLY_START], pt_target(), get_md, NULL, back);
		check_common(&ev[PTL_EVENT_REPLY_END], pt_target(), get_md, NULL, back);
		pt_is(ev[PTL_EVENT_REPLY_END].link, ev[PTL_EVENT_REPLY_START].link);
		pt_quiet(get_eq);
		pt_quiet(t.here_eq);
	}
	pt_finish();
	if (pt_is_target()) {
		start = pt_next(t.there_eq, PTL_EVENT_GETPUT_START);
		end = pt_next(t.there_eq, PTL_EVENT_GETPUT_END);
		check_target(&start, &end, hdr, 4);
		pt_quiet(t.there_eq);
	}
}

/* ---- unlinking ------------------------------------------------------------------------------- */

static void unlink_events_carry_their_cause(void)
{
	ptl_event_t ev[PTL_EVENT_MAX], un;

	set_up(1, PTL_MD_OP_PUT, 2, 0, PTL_UNLINK);
	if (pt_is_initiator()) {
		pt_ok(PtlPut(t.here, PTL_ACK_REQ, pt_target(), PORTAL, 0, bits, 40, hdr));
		pt_await(t.here_eq, PT_ACKED, ev);
		un = pt_next(t.here_eq, PTL_EVENT_UNLINK);
		pt_true(un.link == ev[PTL_EVENT_ACK].sequence ||
			un.link == ev[PTL_EVENT_ACK].link ||
			un.link == ev[PTL_EVENT_SEND_END].sequence ||
			un.link == ev[PTL_EVENT_SEND_END].link);
		pt_is(un.md_handle, t.here);
		pt_true(un.md.user_ptr == &t.here);
		pt_is(un.match_bits, bits);
		pt_is(un.pt_index, PORTAL);
		pt_quiet(t.here_eq);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_await(t.there_eq, PT_PUT, ev);
		un = pt_next(t.there_eq, PTL_EVENT_UNLINK);
		pt_true(un.link == ev[PTL_EVENT_PUT_END].sequence ||
			un.link == ev[PTL_EVENT_PUT_END].link);
		pt_is(un.md_handle, t.there);
		pt_true(un.md.user_ptr == &t.there);
		pt_is(un.md.threshold, 0);
		pt_is(un.match_bits, bits);
		pt_is(un.pt_index, PORTAL);
		pt_is(un.hdr_data, hdr);
		pt_is(un.mlength, LEN);
		pt_is(un.initiator.pid, pt_initiator().pid);
		pt_quiet(t.there_eq);
	}
}

/* As the reference implementation's own test programs assert it. */
static void a_get_with_threshold_one_logs_reply_and_unlink(void)
{
	set_up(PTL_MD_THRESH_INF, PTL_MD_OP_GET, 1, 0, PTL_UNLINK);
	if (pt_is_initiator()) {
		pt_ok(PtlGet(t.here, pt_target(), PORTAL, 0, bits, 0));
		pt_next(t.here_eq, PTL_EVENT_REPLY_START);
		pt_next(t.here_eq, PTL_EVENT_REPLY_END);
		pt_next(t.here_eq, PTL_EVENT_UNLINK);
		pt_quiet(t.here_eq);
	}
	pt_finish();
}

/* ---- options --------------------------------------------------------------------------------- */

static void expect_put_with(unsigned int options, unsigned int here, unsigned int there)
{
	set_up(1, PTL_MD_OP_PUT | options, 2, options, PTL_UNLINK);
	if (pt_is_initiator()) {
		pt_ok(PtlPut(t.here, PTL_ACK_REQ, pt_target(), PORTAL, 0, bits, 0, 0));
		pt_await(t.here_eq, here, NULL);
		pt_next(t.here_eq, PTL_EVENT_UNLINK);
		pt_quiet(t.here_eq);
	}
	pt_finish();
	if (pt_is_target()) {
		if (there)
			pt_await(t.there_eq, there, NULL);
		pt_next(t.there_eq, PTL_EVENT_UNLINK);
		pt_quiet(t.there_eq);
	}
}

static void start_events_can_be_disabled(void)
{
	expect_put_with(PTL_MD_EVENT_START_DISABLE,
			PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK),
			PT_BIT(PTL_EVENT_PUT_END));
}

static void end_events_can_be_disabled(void)
{
	expect_put_with(PTL_MD_EVENT_END_DISABLE,
			PT_BIT(PTL_EVENT_SEND_START) | PT_BIT(PTL_EVENT_ACK),
			PT_BIT(PTL_EVENT_PUT_START));
}

/* The flags name START and END events only. */
static void ack_and_unlink_come_with_both_disabled(void)
{
	expect_put_with(PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
			PT_BIT(PTL_EVENT_ACK), 0);
}

static void reply_events_can_be_disabled(void)
{
	set_up(1, PTL_MD_OP_GET | PTL_MD_EVENT_END_DISABLE, 1, PTL_MD_EVENT_START_DISABLE,
	       PTL_UNLINK);
	if (pt_is_initiator()) {
		pt_ok(PtlGet(t.here, pt_target(), PORTAL, 0, bits, 0));
		pt_next(t.here_eq, PTL_EVENT_REPLY_END);
		pt_next(t.here_eq, PTL_EVENT_UNLINK);
		pt_quiet(t.here_eq);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_next(t.there_eq, PTL_EVENT_GET_START);
		pt_next(t.there_eq, PTL_EVENT_UNLINK);
		pt_quiet(t.there_eq);
	}
}

static void without_a_queue_operations_happen_unseen(void)
{
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;
	static char there[8] = "", here[8] = "silent";
	ptl_md_t d;

	pt_open();
	eq = pt_eq(8);
	if (pt_is_target()) {
		d = pt_md(there, 8, PTL_MD_OP_PUT, PTL_EQ_NONE);
		d.threshold = 1;
		pt_post(PORTAL, 0, d, PTL_UNLINK, NULL);
		pt_post(PORTAL, 1, pt_md(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, NULL);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(here, 8, 0, PTL_EQ_NONE);
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
		pt_ok(PtlPutRegion(md, 0, 0, PTL_ACK_REQ, pt_target(), PORTAL, 0, 1, 0, 0));
	}
	pt_finish();
	if (pt_is_target()) {
		pt_await(eq, PT_PUT, NULL); /* the first put was started before this one */
		pt_until((PtlProgress(pt_ni, 0), strcmp(there, "silent") == 0), 10);
		pt_until((PtlProgress(pt_ni, 0), pt_status(PTL_SR_MLIST_LEN(PORTAL)) == 1), 10);
	}
}

/* For a vector, length counts entries; start and offset are its own. */
static void events_of_vectors_show_the_vector(void)
{
	struct pt_buf buf;
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	static char bytes[30];

	pt_open();
	eq = pt_eq(8);
	buf = pt_buf_new(1000, 5);
	pt_post(PORTAL, 0, pt_buf_md(&buf, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq), PTL_RETAIN,
		NULL);
	pt_ok(PtlPut(pt_bind(bytes, 30, 0, PTL_EQ_NONE), PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0,
		     500, 0));
	pt_next(eq, PTL_EVENT_PUT_START);
	ev = pt_next(eq, PTL_EVENT_PUT_END);
	pt_is(ev.md.length, 5);
	pt_is(ev.offset, 500);
	pt_is(ev.mlength, 30);
	pt_true(ev.md.options & PTL_MD_IOVEC);
}

static void regions_show_their_offset_at_the_initiator(void)
{
	ptl_event_t ev[PTL_EVENT_MAX];

	set_up(PTL_MD_THRESH_INF, PTL_MD_OP_PUT | PTL_MD_OP_GET, PTL_MD_THRESH_INF, 0, PTL_RETAIN);
	if (pt_is_initiator()) {
		pt_ok(PtlPutRegion(t.here, 30, 50, PTL_ACK_REQ, pt_target(), PORTAL, 0, bits, 5,
				   0));
		pt_await(t.here_eq, PT_ACKED, ev);
		pt_is(ev[PTL_EVENT_SEND_END].offset, 30);
		pt_is(ev[PTL_EVENT_SEND_END].rlength, 50);
		pt_is(ev[PTL_EVENT_SEND_END].mlength, 50);
		pt_is(ev[PTL_EVENT_ACK].offset, 30);
		pt_is(ev[PTL_EVENT_ACK].rlength, 50);
		pt_ok(PtlGetRegion(t.here, 20, 60, pt_target(), PORTAL, 0, bits, 5));
		pt_await(t.here_eq, PT_REPLIED, ev);
		pt_is(ev[PTL_EVENT_REPLY_END].offset, 20);
		pt_is(ev[PTL_EVENT_REPLY_END].rlength, 60);
		pt_is(ev[PTL_EVENT_REPLY_END].mlength, 60);
		pt_true(ev[PTL_EVENT_REPLY_END].md.start == t.here_bytes);
	}
	pt_finish();
}

/* Several operations on one MD: START and END of each are tied by link, and by nothing else. */
static void links_tie_starts_to_their_ends(void)
{
	enum { N = 300 };
	static char there[N * 1000], here[1000];
	struct {
		ptl_seq_t link;
		bool open;
	} seen[N] = { { 0, false } };
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t ev;

	pt_open();
	eq = pt_eq(N * 2);
	if (pt_is_target())
		pt_post(PORTAL, 0, pt_md(there, sizeof(there), PTL_MD_OP_PUT, eq), PTL_RETAIN,
			NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(here, sizeof(here), 0, PTL_EQ_NONE);
		for (uint64_t i = 0; i < N; i++)
			pt_ok(PtlPutRegion(md, 0, i * 331 % 1000, PTL_NO_ACK_REQ, pt_target(),
					   PORTAL, 0, 0, 0, i));
	}
	pt_finish();
	for (int i = 0; i < 2 * N && pt_is_target(); i++) {
		pt_ok(PtlEQWait(eq, &ev));
		pt_true(ev.hdr_data < N);
		if (ev.type == PTL_EVENT_PUT_START) {
			for (int k = 0; k < N; k++)
				pt_true(!seen[k].open || seen[k].link != ev.link);
			seen[ev.hdr_data].link = ev.link;
			seen[ev.hdr_data].open = true;
		} else {
			pt_is(ev.type, PTL_EVENT_PUT_END);
			pt_true(seen[ev.hdr_data].open);
			pt_is(ev.link, seen[ev.hdr_data].link);
		}
	}
}

/* ---- as on Cray ------------------------------------------------------------------------------ */

static void on_cray_a_get_logs_send_and_uses_two(void)
{
	ptl_event_t ev[PTL_EVENT_MAX];

	setenv("PTL_CRAY", "1", 1);
	set_up(PTL_MD_THRESH_INF, PTL_MD_OP_GET, 2, 0, PTL_UNLINK);
	if (pt_is_initiator()) {
		pt_ok(PtlGet(t.here, pt_target(), PORTAL, 0, bits, 40));
		pt_await(t.here_eq, PT_SENT | PT_REPLIED, ev);
		pt_is(ev[PTL_EVENT_REPLY_END].mlength, LEN);
		pt_is(ev[PTL_EVENT_REPLY_END].match_bits, bits);
		pt_next(t.here_eq, PTL_EVENT_UNLINK);
		pt_quiet(t.here_eq);
	}
	pt_finish();
}

static void on_cray_a_get_with_threshold_one_loses_its_reply(void)
{
	setenv("PTL_CRAY", "1", 1);
	set_up(PTL_MD_THRESH_INF, PTL_MD_OP_GET, 1, 0, PTL_RETAIN);
	if (pt_is_initiator()) {
		pt_ok(PtlGet(t.here, pt_target(), PORTAL, 0, bits, 40));
		pt_await(t.here_eq, PT_SENT, NULL);
	}
	pt_finish();
	if (pt_is_initiator()) {
		pt_wait_drops(1);
		pt_quiet(t.here_eq);
	}
}

static void on_cray_events_show_the_threshold_before(void)
{
	ptl_event_t ev[PTL_EVENT_MAX];

	setenv("PTL_CRAY", "1", 1);
	set_up(1, PTL_MD_OP_PUT, 2, 0, PTL_UNLINK);
	if (pt_is_initiator()) {
		pt_ok(PtlPut(t.here, PTL_ACK_REQ, pt_target(), PORTAL, 0, bits, 40, hdr));
		pt_await(t.here_eq, PT_ACKED, ev);
		pt_is(ev[PTL_EVENT_SEND_END].md.threshold, 2);
		pt_is(ev[PTL_EVENT_ACK].md.threshold, 1);
		pt_next(t.here_eq, PTL_EVENT_UNLINK);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_await(t.there_eq, PT_PUT, ev);
		pt_is(ev[PTL_EVENT_PUT_START].md.threshold, 1);
		pt_is(ev[PTL_EVENT_PUT_END].md.threshold, 1);
		pt_next(t.there_eq, PTL_EVENT_UNLINK);
	}
}

static const struct pt_test tests[] = {
	PT_MODES(put_with_ack),
	PT_MODES(put_without_ack),
	PT_MODES(get),
	PT_MODES(getput),
	PT_MODES(unlink_events_carry_their_cause),
	PT_MODES(a_get_with_threshold_one_logs_reply_and_unlink),
	PT_MODES(start_events_can_be_disabled),
	PT_MODES(end_events_can_be_disabled),
	PT_MODES(ack_and_unlink_come_with_both_disabled),
	PT_MODES(reply_events_can_be_disabled),
	PT_MODES(without_a_queue_operations_happen_unseen),
	PT_CASE(events_of_vectors_show_the_vector, 1),
	PT_MODES(regions_show_their_offset_at_the_initiator),
	PT_MODES(links_tie_starts_to_their_ends),
	PT_MODES(on_cray_a_get_logs_send_and_uses_two),
	PT_MODES(on_cray_a_get_with_threshold_one_loses_its_reply),
	PT_MODES(on_cray_events_show_the_threshold_before),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
