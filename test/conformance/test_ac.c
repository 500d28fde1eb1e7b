/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Access control: which requester may use which portal under which index (report sections 2.3 and
 * 3.12).
 */
#include "ptest.h"

#include <string.h>

enum { PORTAL = 20, AC = 1 };

static void open_with_entry(void)
{
	ptl_handle_me_t me;

	pt_open();
	if (pt_is_target()) {
		pt_ok(PtlMEAttach(pt_ni, PORTAL, pt_any, 0, 0, PTL_UNLINK, PTL_INS_AFTER, &me));
		pt_entry(me, 'A');
		pt_ok(PtlMEAttach(pt_ni, PORTAL + 1, pt_any, 0, 0, PTL_UNLINK, PTL_INS_AFTER, &me));
		pt_entry(me, 'B');
	}
}

static void shoot_ac(ptl_ac_index_t ac)
{
	pt_shoot_at(pt_target(), PORTAL, ac, 0, 0, 1);
}

/* The rule of the section's default: same user, any job, any portal. */
static void every_default_entry_admits_the_own_user(void)
{
	ptl_ni_limits_t limits;

	open_with_entry();
	pt_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &limits, &pt_ni));
	pt_barrier();
	if (pt_is_initiator()) {
		shoot_ac(0);
		shoot_ac(1);
		shoot_ac((ptl_ac_index_t)limits.max_ac_index);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("AAA");
	pt_ok(PtlNIFini(pt_ni));
}

static void indexes_beyond_the_table_are_dropped_by_the_target(void)
{
	ptl_ni_limits_t limits;

	open_with_entry();
	pt_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &limits, &pt_ni));
	pt_barrier();
	if (pt_is_initiator()) {
		shoot_ac((ptl_ac_index_t)limits.max_ac_index + 1);
		shoot_ac(0x80000000u);
		shoot_ac(0xffffffffu);
		shoot_ac(0);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("---A");
	pt_ok(PtlNIFini(pt_ni));
}

/* Puts entry AC in force; the initiator then shoots once at each of two portals. */
static void expect_with(ptl_process_id_t id, ptl_uid_t uid, ptl_jid_t jid, ptl_pt_index_t portal,
			const char *tags)
{
	if (pt_is_target())
		pt_ok(PtlACEntry(pt_ni, AC, id, uid, jid, portal));
	pt_barrier();
	if (pt_is_initiator()) {
		pt_shoot_at(pt_target(), PORTAL, AC, 0, 0, 1);
		pt_shoot_at(pt_target(), PORTAL + 1, AC, 0, 0, 1);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken(tags);
}

/* The target's knowledge of the initiator, which sends it. */
static void initiator_ids(ptl_uid_t *uid, ptl_jid_t *jid)
{
	if (pt_is_initiator()) {
		pt_ok(PtlGetUid(pt_ni, uid));
		pt_ok(PtlGetJid(pt_ni, jid));
		*pt_word(0) = *uid;
		*pt_word(1) = *jid;
	}
	pt_barrier();
	*uid = (ptl_uid_t)*pt_word(0);
	*jid = (ptl_jid_t)*pt_word(1);
}

static void entries_filter_by_process(void)
{
	ptl_process_id_t id, wrong;

	open_with_entry();
	id = pt_initiator();
	expect_with(id, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, "AB");
	wrong = id;
	wrong.pid ^= 1;
	expect_with(wrong, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, "--");
	wrong = id;
	wrong.nid ^= 1;
	expect_with(wrong, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, "--");
	wrong.nid = PTL_NID_ANY;
	expect_with(wrong, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, "AB");
	wrong.pid ^= 1;
	expect_with(wrong, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, "--");
	wrong = id;
	wrong.pid = PTL_PID_ANY;
	expect_with(wrong, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, "AB");
	expect_with(pt_any, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, "AB");
}

static void entries_filter_by_user_and_job(void)
{
	ptl_uid_t uid = 0;
	ptl_jid_t jid = 0;

	open_with_entry();
	initiator_ids(&uid, &jid);
	expect_with(pt_any, uid, PTL_JID_ANY, PTL_PT_INDEX_ANY, "AB");
	expect_with(pt_any, uid + 1, PTL_JID_ANY, PTL_PT_INDEX_ANY, "--");
	expect_with(pt_any, PTL_UID_ANY, jid, PTL_PT_INDEX_ANY, "AB");
	expect_with(pt_any, PTL_UID_ANY, jid ^ 0x10000, PTL_PT_INDEX_ANY, "--");
	expect_with(pt_any, uid, jid, PTL_PT_INDEX_ANY, "AB");
	expect_with(pt_any, uid + 1, jid, PTL_PT_INDEX_ANY, "--");
}

static void entries_filter_by_portal(void)
{
	open_with_entry();
	expect_with(pt_any, PTL_UID_ANY, PTL_JID_ANY, PORTAL, "A-");
	expect_with(pt_any, PTL_UID_ANY, PTL_JID_ANY, PORTAL + 1, "-B");
	expect_with(pt_any, PTL_UID_ANY, PTL_JID_ANY, 0, "--");
}

static void an_entry_concerns_its_index_only(void)
{
	ptl_process_id_t nobody = { 1, 2 };

	open_with_entry();
	if (pt_is_target())
		pt_ok(PtlACEntry(pt_ni, 5, nobody, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
	pt_barrier();
	if (pt_is_initiator()) {
		shoot_ac(4);
		shoot_ac(5);
		shoot_ac(6);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("A-A");
}

/* Gets and swaps pass the same gate; acks and replies do not. */
static void gets_and_swaps_are_checked_and_replies_are_not(void)
{
	ptl_process_id_t nobody = { 1, 2 };
	ptl_handle_eq_t here;
	ptl_handle_md_t md;
	uint64_t there = 7, mine = 0;

	pt_open();
	here = pt_eq(16);
	for (ptl_ac_index_t i = 0; i < 4 && pt_is_initiator() && !pt_is_target(); i++)
		pt_ok(PtlACEntry(pt_ni, i, nobody, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
	if (pt_is_target()) {
		pt_ok(PtlACEntry(pt_ni, 3, nobody, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
		pt_post(PORTAL, 0,
			pt_md(&there, 8, PTL_MD_OP_GET | PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(&mine, 8, PTL_MD_EVENT_START_DISABLE, here);
		pt_ok(PtlGet(md, pt_target(), PORTAL, 3, 0, 0));
		pt_ok(PtlGetPut(md, md, pt_target(), PORTAL, 3, 0, 0, 0));
		pt_next(here, PTL_EVENT_SEND_END);
		pt_ok(PtlGet(md, pt_target(), PORTAL, 2, 0, 0));
		pt_next(here, PTL_EVENT_REPLY_END);
		pt_is(mine, 7);
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 2, 0, 0, 0));
		pt_await(here, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
		pt_quiet(here);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_wait_drops(2);
		pt_is(there, 7);
	}
}

static void arguments_are_checked(void)
{
	ptl_ni_limits_t limits;
	ptl_ac_index_t most;

	pt_open_with(NULL, &limits);
	most = (ptl_ac_index_t)limits.max_ac_index;
	pt_ok(PtlACEntry(pt_ni, most, pt_any, PTL_UID_ANY, PTL_JID_ANY,
			 (ptl_pt_index_t)limits.max_pt_index));
	pt_code(PtlACEntry(pt_ni, most + 1, pt_any, PTL_UID_ANY, PTL_JID_ANY, 0),
		PTL_AC_INDEX_INVALID);
	pt_code(PtlACEntry(pt_ni, 0xffffffffu, pt_any, PTL_UID_ANY, PTL_JID_ANY, 0),
		PTL_AC_INDEX_INVALID);
	pt_code(PtlACEntry(pt_ni, 0, pt_any, PTL_UID_ANY, PTL_JID_ANY,
			   (ptl_pt_index_t)limits.max_pt_index + 1),
		PTL_PT_INDEX_INVALID);
	pt_code(PtlACEntry(pt_ni, 0, pt_any, PTL_UID_ANY, PTL_JID_ANY, 0x80000000u),
		PTL_PT_INDEX_INVALID);
}

static const struct pt_test tests[] = {
	PT_MODES(every_default_entry_admits_the_own_user),
	PT_MODES(indexes_beyond_the_table_are_dropped_by_the_target),
	PT_MODES(entries_filter_by_process),
	PT_MODES(entries_filter_by_user_and_job),
	PT_MODES(entries_filter_by_portal),
	PT_MODES(an_entry_concerns_its_index_only),
	PT_MODES(gets_and_swaps_are_checked_and_replies_are_not),
	PT_CASE(arguments_are_checked, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
