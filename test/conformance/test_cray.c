/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The additions of Cray XT to Portals 3.3: entry and MD in one step, the conditional post, swaps of
 * regions, looking into a queue, and the spellings its clients use.
 */
#include "ptest.h"

#include <cnos_mpi_os.h>
#include <stdlib.h>
#include <string.h>

enum { PORTAL = 27 };

static void entry_and_md_are_attached_in_one_step(void)
{
	ptl_handle_me_t a, b, c;
	ptl_handle_md_t md;

	pt_open();
	pt_ok(PtlMEMDAttach(pt_ni, PORTAL, pt_any, 1, 0, PTL_UNLINK, PTL_INS_AFTER,
			    pt_tagged('B', 0, PTL_MD_OP_PUT), PTL_RETAIN, &b, &md));
	pt_ok(PtlMEMDAttach(pt_ni, PORTAL, pt_any, 1, 0, PTL_UNLINK, PTL_INS_BEFORE,
			    pt_tagged('A', 0, PTL_MD_OP_PUT), PTL_RETAIN, &a, &md));
	pt_ok(PtlMEMDInsert(b, pt_any, 1, 0, PTL_UNLINK, PTL_INS_BEFORE,
			    pt_tagged('M', 0, PTL_MD_OP_PUT), PTL_RETAIN, &c, &md));
	pt_shoot(PORTAL, 1, 0);
	pt_taken("A");
	pt_ok(PtlMEUnlink(a));
	pt_shoot(PORTAL, 1, 0);
	pt_taken("M");
	pt_ok(PtlMDUnlink(md)); /* takes c along */
	pt_shoot(PORTAL, 1, 0);
	pt_taken("B");
	pt_code(PtlMEUnlink(c), PTL_ME_INVALID);
}

/* All or nothing: an illegal MD leaves no entry behind. */
static void a_failed_step_leaves_nothing(void)
{
	ptl_md_t bad = pt_md(NULL, 5, 0, PTL_EQ_NONE), good = pt_md(NULL, 0, 0, PTL_EQ_NONE);
	ptl_handle_me_t base, me = 4711;
	ptl_handle_md_t md = 4712;

	pt_open();
	pt_ok(PtlMEAttach(pt_ni, PORTAL, pt_any, 0, 0, PTL_UNLINK, PTL_INS_AFTER, &base));
	pt_code(PtlMEMDAttach(pt_ni, PORTAL, pt_any, 0, 0, PTL_UNLINK, PTL_INS_AFTER, bad,
			      PTL_RETAIN, &me, &md),
		PTL_MD_ILLEGAL);
	pt_code(PtlMEMDInsert(base, pt_any, 0, 0, PTL_UNLINK, PTL_INS_AFTER, bad, PTL_RETAIN, &me,
			      &md),
		PTL_MD_ILLEGAL);
	pt_code(PtlMEMDPost(pt_ni, base, pt_any, 0, 0, PTL_UNLINK, PTL_INS_AFTER, bad, PTL_RETAIN,
			    &me, &md, PTL_EQ_NONE),
		PTL_MD_ILLEGAL);
	pt_code(PtlMEMDAttach(pt_ni, 100000, pt_any, 0, 0, PTL_UNLINK, PTL_INS_AFTER, good,
			      PTL_RETAIN, &me, &md),
		PTL_PT_INDEX_INVALID);
	pt_code(PtlMEMDPost(pt_ni, base, pt_any, 0, 0, PTL_UNLINK, PTL_INS_AFTER, good, PTL_RETAIN,
			    &me, &md, 12345),
		PTL_EQ_INVALID);
	pt_is(me, 4711);
	pt_is(md, 4712);
	pt_is(pt_status(PTL_SR_MES_CUR), 1);
	pt_is(pt_status(PTL_SR_MDS_CUR), 0);
}

static void a_post_waits_for_an_empty_queue(void)
{
	ptl_handle_me_t behind, me;
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;

	pt_open();
	eq = pt_eq(8);
	behind = pt_post(PORTAL, 0, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
			 PTL_RETAIN, NULL);
	pt_ok(PtlPut(pt_bind(NULL, 0, 0, PTL_EQ_NONE), PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0,
		     0));
	pt_until(PtlEQPeek(eq, &(ptl_event_t){ 0 }) == PTL_OK, 10);
	pt_code(PtlMEMDPost(pt_ni, behind, pt_any, 0, 0, PTL_UNLINK, PTL_INS_BEFORE,
			    pt_tagged('P', 0, PTL_MD_OP_PUT), PTL_UNLINK, &me, &md, eq),
		PTL_MD_NO_UPDATE);
	pt_is(pt_status(PTL_SR_MES_CUR), 1);
	pt_next(eq, PTL_EVENT_PUT_END);
	pt_ok(PtlMEMDPost(pt_ni, behind, pt_any, 0, 0, PTL_UNLINK, PTL_INS_BEFORE,
			  pt_tagged('P', 0, PTL_MD_OP_PUT), PTL_UNLINK, &me, &md, eq));
	pt_shoot(PORTAL, 0, 0);
	pt_is((uintptr_t)pt_next(pt_shots_eq(), PTL_EVENT_PUT_END).md.user_ptr, 'P');
	pt_quiet(eq);
	pt_ok(PtlMEUnlink(me));
	pt_ok(PtlMEMDPost(pt_ni, behind, pt_any, 0, 0, PTL_UNLINK, PTL_INS_BEFORE,
			  pt_tagged('Q', 0, PTL_MD_OP_PUT), PTL_UNLINK, &me, &md, PTL_EQ_NONE));
}

/* Message k is received k-th whether a posted receive took it or not. */
static void conditional_posts_keep_messages_in_order(void)
{
	enum { COUNT = 20000, BREATH = 500 };
	ptl_handle_eq_t unexpected, posted;
	ptl_handle_me_t behind = PTL_INVALID_HANDLE, me;
	ptl_handle_md_t md;
	uint64_t next = 0, hits = 0;
	ptl_event_t ev;
	ptl_md_t once;
	int rc;

	pt_open();
	unexpected = pt_eq(COUNT + 16);
	posted = pt_eq(8);
	once = pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, posted);
	once.threshold = 1;
	if (pt_is_target())
		behind = pt_post(
			PORTAL, 0,
			pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, unexpected),
			PTL_RETAIN, NULL);
	pt_barrier();
	for (uint64_t i = 0; i < COUNT && pt_is_initiator(); i++) {
		static ptl_handle_md_t from = PTL_INVALID_HANDLE;

		if (from == PTL_INVALID_HANDLE)
			from = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
		if (i % BREATH == 0) /* so that some receives are posted in time */
			pt_until(*pt_word(0) == i, 20);
		pt_ok(PtlPut(from, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, i));
	}
	while (pt_is_target() && next < COUNT) {
		rc = PtlMEMDPost(pt_ni, behind, pt_any, 0, 0, PTL_UNLINK, PTL_INS_BEFORE, once,
				 PTL_UNLINK, &me, &md, unexpected);
		if (rc == PTL_OK) {
			pt_is(pt_next(posted, PTL_EVENT_PUT_END).hdr_data, next);
			pt_next(posted, PTL_EVENT_UNLINK);
			hits++;
			*pt_word(0) = ++next;
			continue;
		}
		pt_is(rc, PTL_MD_NO_UPDATE);
		while (next < COUNT && PtlEQGet(unexpected, &ev) == PTL_OK) {
			pt_is(ev.hdr_data, next);
			*pt_word(0) = ++next;
		}
	}
	if (pt_is_target())
		pt_true(hits > 0);
}

static void peeking_leaves_the_event_in_place(void)
{
	ptl_event_t first, second, taken;
	ptl_handle_md_t from;
	ptl_handle_eq_t eq;

	pt_open();
	eq = pt_eq(8);
	pt_post(PORTAL, 0, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	from = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	pt_code(PtlEQPeek(eq, &first), PTL_EQ_EMPTY);
	pt_ok(PtlPut(from, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 1));
	pt_ok(PtlPut(from, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 2));
	pt_until(PtlEQPeek(eq, &first) == PTL_OK, 10);
	pt_ok(PtlEQPeek(eq, &second));
	pt_is(first.hdr_data, 1);
	pt_is(second.hdr_data, 1);
	pt_is(first.sequence, second.sequence);
	pt_ok(PtlEQWait(eq, &taken));
	pt_is(taken.sequence, first.sequence);
	pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, 2);
	pt_code(PtlEQPeek(eq, &first), PTL_EQ_EMPTY);
}

static void swaps_of_regions(void)
{
	static unsigned char there[100], put[100], get[100];
	ptl_handle_md_t put_md, get_md;
	ptl_handle_eq_t here;

	pt_open();
	here = pt_eq(16);
	pt_fill(there, 100, 1, 0);
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_md(there, 100, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		pt_fill(put, 100, 2, 0);
		pt_fill(get, 100, 3, 0);
		put_md = pt_bind(put, 100, 0, here);
		get_md = pt_bind(get, 100, 0, here);
		pt_ok(PtlGetPutRegion(get_md, 80, put_md, 10, 16, pt_target(), PORTAL, 0, 0, 50,
				      0));
		pt_await(here, PT_SENT | PT_REPLIED, NULL);
		pt_holds(get, 80, 3, 0);
		pt_holds(get + 80, 16, 1, 50);
		pt_holds(get + 96, 4, 3, 96);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_holds(there, 50, 1, 0);
		pt_holds(there + 50, 16, 2, 10);
		pt_holds(there + 66, 34, 1, 66);
	}
}

static void swap_regions_outside_are_illegal(void)
{
	const ptl_size_t huge = ~(ptl_size_t)0;
	ptl_ni_limits_t limits;
	ptl_handle_md_t md, big;
	ptl_process_id_t id;
	static char bytes[100];
	char *many;

	pt_open_with(NULL, &limits);
	id = pt_id(0);
	md = pt_bind(bytes, 100, 0, PTL_EQ_NONE);
	many = calloc(2, (size_t)limits.max_getput_md);
	big = pt_bind(many, 2 * (ptl_size_t)limits.max_getput_md, 0, PTL_EQ_NONE);
	pt_code(PtlGetPutRegion(md, 90, md, 0, 11, id, PORTAL, 0, 0, 0, 0), PTL_MD_ILLEGAL);
	pt_code(PtlGetPutRegion(md, 0, md, 90, 11, id, PORTAL, 0, 0, 0, 0), PTL_MD_ILLEGAL);
	pt_code(PtlGetPutRegion(md, huge, md, 0, 2, id, PORTAL, 0, 0, 0, 0), PTL_MD_ILLEGAL);
	pt_code(PtlGetPutRegion(md, 0, md, huge, 2, id, PORTAL, 0, 0, 0, 0), PTL_MD_ILLEGAL);
	pt_code(PtlGetPutRegion(md, 5, md, 5, huge, id, PORTAL, 0, 0, 0, 0), PTL_MD_ILLEGAL);
	pt_code(PtlGetPutRegion(big, 0, big, 0, (ptl_size_t)limits.max_getput_md + 1, id, PORTAL, 0,
				0, 0, 0),
		PTL_MD_ILLEGAL);
	pt_ok(PtlGetPutRegion(big, 5, big, 5, (ptl_size_t)limits.max_getput_md, id, PORTAL, 0, 0, 0,
			      0));
}

static void unlink_events_can_be_asked_for_explicitly(void)
{
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;

	pt_open();
	eq = pt_eq(8);
	md = pt_bind(NULL, 0, PTL_MD_EVENT_MANUAL_UNLINK_ENABLE, eq);
	pt_ok(PtlMDUnlink(md));
	pt_is(pt_next(eq, PTL_EVENT_UNLINK).md_handle, md);
	md = pt_bind(NULL, 0, PTL_MD_EVENT_AUTO_UNLINK_ENABLE, eq);
	pt_ok(PtlMDUnlink(md));
	pt_quiet(eq);
}

static void auto_unlink_can_be_an_option(void)
{
	ptl_handle_md_t md;
	ptl_md_t once;

	pt_open();
	once = pt_tagged('A', 0, PTL_MD_OP_PUT | PTL_MD_FLAG_AUTO_UNLINK);
	once.threshold = 1;
	pt_post(PORTAL, 0, once, PTL_RETAIN, &md);
	pt_shoot(PORTAL, 0, 0);
	pt_shoot(PORTAL, 0, 0);
	pt_taken("A-");
	pt_code(PtlMDUnlink(md), PTL_MD_INVALID);
}

static void the_spellings_exist(void)
{
	static const ptl_interface_t interfaces[] = {
		IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS),
		IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_QK, PTL_IFACE_SS),
		CRAY_USER_NAL,
		CRAY_QK_NAL,
		CRAY_KERN_NAL,
		CRAY_ACCEL,
		PTL_IFACE_DEFAULT,
	};
	ptl_handle_ni_t ni;
	int rc;

	pt_open();
	for (size_t i = 0; i < sizeof(interfaces) / sizeof(interfaces[0]); i++) {
		rc = PtlNIInit(interfaces[i], PTL_PID_ANY, NULL, NULL, &ni);
		pt_true(rc == PTL_OK || rc == PTL_IFACE_DUP);
		pt_ok(PtlNIFini(ni));
	}
	pt_is(PTL_NOACK_REQ, PTL_NO_ACK_REQ);
	pt_true(PTL_IFACE_DUP != PTL_OK && PTL_EQ_IN_USE != PTL_OK && PTL_VAL_FAILED != PTL_OK);
	pt_true(PTL_MAX_TRANS_SZ > 0);
}

static void errors_and_events_have_texts(void)
{
	pt_open();
	for (int i = 0; i < PTL_MAX_ERRNO; i++) {
		pt_true(ptl_err_str[i] && *ptl_err_str[i]);
		pt_true(PtlErrorStr((unsigned)i) && *PtlErrorStr((unsigned)i));
	}
	for (int i = 0; i < PTL_EVENT_MAX; i++)
		pt_true(ptl_event_str[i] &&
			strcmp(ptl_event_str[i], PtlEventKindStr((ptl_event_kind_t)i)) == 0);
	for (ptl_ni_fail_t i = 0; i < PTL_NI_FAIL_MAX; i++)
		pt_true(*PtlNIFailStr(pt_ni, i));
	pt_true(PtlErrorStr(0xffffffffu) && PtlErrorStr(PTL_MAX_ERRNO));
	pt_true(PtlEventKindStr((ptl_event_kind_t)1000) != NULL);
	pt_true(PtlNIFailStr(PTL_INVALID_HANDLE, 1000000) != NULL);
}

/* Dumps of anything never crash, and go where p3_out says. */
static void debug_calls_print_to_p3_out(void)
{
	ptl_handle_me_t me;
	char *text = NULL;
	size_t len = 0;

	PtlNIDebug(PTL_INVALID_HANDLE, PTL_DBG_NONE); /* legal before PtlInit */
	pt_open();
	me = pt_post(PORTAL, 5, pt_md(NULL, 0, PTL_MD_OP_PUT, pt_eq(4)), PTL_RETAIN, NULL);
	p3_out = open_memstream(&text, &len);
	pt_ok(PtlTblDump(pt_ni, PORTAL));
	pt_code(PtlTblDump(pt_ni, -1), PTL_PT_INDEX_INVALID);
	pt_code(PtlTblDump(pt_ni, 1 << 30), PTL_PT_INDEX_INVALID);
	pt_code(PtlTblDump(PTL_INVALID_HANDLE, 0), PTL_NI_INVALID);
	pt_ok(PtlMEDump(me));
	pt_code(PtlMEDump(PTL_INVALID_HANDLE), PTL_ME_INVALID);
	pt_ok(PtlNIEqDump(pt_ni));
	pt_code(PtlNIEqDump(PTL_INVALID_HANDLE), PTL_NI_INVALID);
	fclose(p3_out);
	p3_out = stderr;
	pt_true(len > 0);
	free(text);
	pt_is(PtlNIDebug(pt_ni, PTL_DBG_ALL), PTL_DBG_NONE);
	pt_is(PtlNIDebug(pt_ni, PTL_DBG_NONE), PTL_DBG_ALL);
}

static const struct pt_test tests[] = {
	PT_CASE(entry_and_md_are_attached_in_one_step, 1),
	PT_CASE(a_failed_step_leaves_nothing, 1),
	PT_CASE(a_post_waits_for_an_empty_queue, 1),
	PT_CASE(conditional_posts_keep_messages_in_order, 2),
	PT_CASE(peeking_leaves_the_event_in_place, 1),
	PT_MODES(swaps_of_regions),
	PT_CASE(swap_regions_outside_are_illegal, 1),
	PT_CASE(unlink_events_can_be_asked_for_explicitly, 1),
	PT_CASE(auto_unlink_can_be_an_option, 1),
	PT_CASE(the_spellings_exist, 1),
	PT_CASE(errors_and_events_have_texts, 1),
	PT_CASE(debug_calls_print_to_p3_out, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
