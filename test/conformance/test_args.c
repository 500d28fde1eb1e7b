/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every function with every kind of wrong argument: before PtlInit, NULL, handles that are
 * stale, of another kind, of another interface, or invented, and processes that cannot be meant.
 * Each gives its code (report section 3.14), changes nothing, and never crashes.
 */
#include "ptest.h"

#include <p3rt/p3rt.h>
#include <portals3_ext.h>
#include <stdlib.h>
#include <string.h>

/* A set of live objects that everything else about a call is right with. */
static struct {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_handle_me_t me, bare_me; /* with and without MD */
	ptl_process_id_t self;
	char bytes[64];
} live = { PTL_INVALID_HANDLE,
	   PTL_INVALID_HANDLE,
	   PTL_INVALID_HANDLE,
	   PTL_INVALID_HANDLE,
	   PTL_INVALID_HANDLE,
	   { 1, 2 },
	   "" };

static ptl_handle_any_t out; /* where handles would go */
static ptl_event_t event;
static int which;
static const uint64_t word;

/* ---- every function that takes a handle, as a function of that handle ------------------------ */

static int ni_fini(ptl_handle_any_t h)
{
	return PtlNIFini(h);
}
static int ni_status(ptl_handle_any_t h)
{
	return PtlNIStatus(h, 0, &(ptl_sr_value_t){ 0 });
}
static int ni_dist(ptl_handle_any_t h)
{
	return PtlNIDist(h, live.self, &(unsigned long){ 0 });
}
static int ni_handle(ptl_handle_any_t h)
{
	return PtlNIHandle(h, &out);
}
static int get_uid(ptl_handle_any_t h)
{
	return PtlGetUid(h, &(ptl_uid_t){ 0 });
}
static int get_id(ptl_handle_any_t h)
{
	return PtlGetId(h, &(ptl_process_id_t){ 0, 0 });
}
static int get_jid(ptl_handle_any_t h)
{
	return PtlGetJid(h, &(ptl_jid_t){ 0 });
}
static int progress(ptl_handle_any_t h)
{
	return PtlProgress(h, 0);
}

static int me_attach(ptl_handle_any_t h)
{
	return PtlMEAttach(h, 1, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out);
}

static int me_attach_any(ptl_handle_any_t h)
{
	return PtlMEAttachAny(h, &(ptl_pt_index_t){ 0 }, pt_any, 0, 0, PTL_RETAIN, &out);
}

static int me_insert(ptl_handle_any_t h)
{
	return PtlMEInsert(h, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out);
}

static int me_unlink(ptl_handle_any_t h)
{
	return PtlMEUnlink(h);
}

static int md_attach(ptl_handle_any_t h)
{
	return PtlMDAttach(h, pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, &out);
}

static int md_attach_eq(ptl_handle_any_t h)
{
	return PtlMDAttach(live.bare_me, pt_md(NULL, 0, 0, h), PTL_RETAIN, &out);
}

static int md_bind(ptl_handle_any_t h)
{
	return PtlMDBind(h, pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, &out);
}

static int md_bind_eq(ptl_handle_any_t h)
{
	return PtlMDBind(live.ni, pt_md(NULL, 0, 0, h), PTL_RETAIN, &out);
}

static int md_unlink(ptl_handle_any_t h)
{
	return PtlMDUnlink(h);
}

static int md_update(ptl_handle_any_t h)
{
	ptl_md_t old, new = pt_md(NULL, 0, 0, PTL_EQ_NONE);

	return PtlMDUpdate(h, &old, &new, PTL_EQ_NONE);
}

static int md_update_eq(ptl_handle_any_t h)
{
	ptl_md_t new = pt_md(NULL, 0, 0, PTL_EQ_NONE);

	return PtlMDUpdate(live.md, NULL, &new, h);
}

static int md_update_new_eq(ptl_handle_any_t h)
{
	ptl_md_t new = pt_md(NULL, 0, 0, h);

	return PtlMDUpdate(live.md, NULL, &new, PTL_EQ_NONE);
}

static int eq_alloc(ptl_handle_any_t h)
{
	return PtlEQAlloc(h, 4, NULL, &out);
}
static int eq_free(ptl_handle_any_t h)
{
	return PtlEQFree(h);
}
static int eq_get(ptl_handle_any_t h)
{
	return PtlEQGet(h, &event);
}
static int eq_wait(ptl_handle_any_t h)
{
	return PtlEQWait(h, &event);
}
static int eq_wait_timeout(ptl_handle_any_t h)
{
	return PtlEQWait_timeout(h, &event, 1);
}
static int eq_peek(ptl_handle_any_t h)
{
	return PtlEQPeek(h, &event);
}

static int eq_poll(ptl_handle_any_t h)
{
	ptl_handle_eq_t eqs[3] = { live.eq, h, live.eq };

	return PtlEQPoll(eqs, 3, 0, &event, &which);
}

static int ac_entry(ptl_handle_any_t h)
{
	return PtlACEntry(h, 1, pt_any, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY);
}

static int put(ptl_handle_any_t h)
{
	return PtlPut(h, PTL_NO_ACK_REQ, live.self, 100, 0, 0, 0, 0);
}

static int put_region(ptl_handle_any_t h)
{
	return PtlPutRegion(h, 0, 0, PTL_NO_ACK_REQ, live.self, 100, 0, 0, 0, 0);
}

static int get(ptl_handle_any_t h)
{
	return PtlGet(h, live.self, 100, 0, 0, 0);
}
static int get_region(ptl_handle_any_t h)
{
	return PtlGetRegion(h, 0, 0, live.self, 100, 0, 0, 0);
}

static int getput_get(ptl_handle_any_t h)
{
	return PtlGetPut(h, live.md, live.self, 100, 0, 0, 0, 0);
}

static int getput_put(ptl_handle_any_t h)
{
	return PtlGetPut(live.md, h, live.self, 100, 0, 0, 0, 0);
}

static int getput_region_get(ptl_handle_any_t h)
{
	return PtlGetPutRegion(h, 0, live.md, 0, 0, live.self, 100, 0, 0, 0, 0);
}

static int getput_region_put(ptl_handle_any_t h)
{
	return PtlGetPutRegion(live.md, 0, h, 0, 0, live.self, 100, 0, 0, 0, 0);
}

static int memd_attach(ptl_handle_any_t h)
{
	return PtlMEMDAttach(h, 1, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
			     pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, &out, &out);
}

static int memd_insert(ptl_handle_any_t h)
{
	return PtlMEMDInsert(h, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
			     pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, &out, &out);
}

static int post(ptl_handle_ni_t ni, ptl_handle_me_t base, ptl_handle_eq_t eq)
{
	return PtlMEMDPost(ni, base, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
			   pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, &out, &out, eq);
}

static int memd_post_ni(ptl_handle_any_t h)
{
	return post(h, live.me, PTL_EQ_NONE);
}
static int memd_post_me(ptl_handle_any_t h)
{
	return post(live.ni, h, PTL_EQ_NONE);
}
static int memd_post_eq(ptl_handle_any_t h)
{
	return post(live.ni, live.me, h);
}

/* ---- what is not in the report --------------------------------------------------------------- */

static int get_rank(ptl_handle_any_t h)
{
	return PtlGetRank(h, &(unsigned){ 0 }, &(unsigned){ 0 });
}

static int get_rank_id(ptl_handle_any_t h)
{
	return PtlGetRankId(h, 0, &(ptl_process_id_t){ 0, 0 });
}

static int get_nid_map(ptl_handle_any_t h)
{
	return PtlGetNIDMap(h, &(ptl_nid_t){ 0 }, 1);
}

static int get_pid_map(ptl_handle_any_t h)
{
	return PtlGetPIDMap(h, &(ptl_pid_t){ 0 }, 1);
}

static int tbl_dump(ptl_handle_any_t h)
{
	return PtlTblDump(h, 1);
}
static int me_dump(ptl_handle_any_t h)
{
	return PtlMEDump(h);
}
static int eq_dump(ptl_handle_any_t h)
{
	return PtlNIEqDump(h);
}

static int inject(ptl_handle_any_t h)
{
	return PtlPutInject(h, NULL, 0, PTL_INJECT_NOW, live.self, 100, 0, 0, 0, 0);
}

static int piece_length(ptl_handle_any_t h)
{
	return PtlPieceLength(h, live.self, &(ptl_size_t){ 0 });
}

static int peer_reason(ptl_handle_any_t h)
{
	char text[8];

	return PtlPeerReason(h, live.self, &(ptl_ni_fail_t){ 0 }, text, sizeof(text));
}

static int atomic(ptl_handle_any_t h)
{
	return PtlAtomic(h, 0, 8, PTL_NO_ACK_REQ, live.self, 100, 0, 0, 0, 0, PTL_ATOMIC_SUM,
			 PTL_ATOMIC_INT64);
}

static int fetch_atomic(ptl_handle_md_t get_md, ptl_handle_md_t put_md)
{
	return PtlFetchAtomic(get_md, 0, put_md, 0, 8, live.self, 100, 0, 0, 0, 0, PTL_ATOMIC_SUM,
			      PTL_ATOMIC_INT64);
}

static int fetch_atomic_get(ptl_handle_any_t h)
{
	return fetch_atomic(h, live.md);
}
static int fetch_atomic_put(ptl_handle_any_t h)
{
	return fetch_atomic(live.md, h);
}

static int eq_await(ptl_handle_any_t h)
{
	ptl_handle_eq_t eqs[3] = { live.eq, h, live.eq };

	return PtlEQAwait(eqs, 3, 0, &which);
}

static int eq_poll_many(ptl_handle_any_t h)
{
	ptl_handle_eq_t eqs[3] = { live.eq, h, live.eq };

	return PtlEQPollMany(eqs, 3, 0, NULL, &event, 1, &which);
}

static int eq_poll_watch(ptl_handle_any_t h)
{
	ptl_handle_eq_t eqs[3] = { live.eq, h, live.eq };

	return PtlEQPollWatch(eqs, 3, &word, 1, NULL, &event, 1, &which);
}

enum kind { NI, ME, MD, EQ, ANY };

struct call {
	const char *name;
	int (*call)(ptl_handle_any_t h);
	enum kind kind;
	int code;          /* for a handle that is none of the right kind */
	bool none_is_fine; /* PTL_EQ_NONE has a meaning there */
};

#define CALL(fn, kind, code)                                                                       \
	{                                                                                          \
#fn, fn, kind, code, false                                                         \
	}

static const struct call calls[] = {
	CALL(ni_fini, NI, PTL_NI_INVALID),
	CALL(ni_status, NI, PTL_NI_INVALID),
	CALL(ni_dist, NI, PTL_NI_INVALID),
	CALL(get_uid, NI, PTL_NI_INVALID),
	CALL(get_id, NI, PTL_NI_INVALID),
	CALL(get_jid, NI, PTL_NI_INVALID),
	CALL(me_attach, NI, PTL_NI_INVALID),
	CALL(me_attach_any, NI, PTL_NI_INVALID),
	CALL(md_bind, NI, PTL_NI_INVALID),
	CALL(eq_alloc, NI, PTL_NI_INVALID),
	CALL(ac_entry, NI, PTL_NI_INVALID),
	CALL(memd_attach, NI, PTL_NI_INVALID),
	CALL(memd_post_ni, NI, PTL_NI_INVALID),
	CALL(get_rank, NI, PTL_NI_INVALID),
	CALL(get_rank_id, NI, PTL_NI_INVALID),
	CALL(get_nid_map, NI, PTL_NI_INVALID),
	CALL(get_pid_map, NI, PTL_NI_INVALID),
	CALL(tbl_dump, NI, PTL_NI_INVALID),
	CALL(eq_dump, NI, PTL_NI_INVALID),
	CALL(inject, NI, PTL_NI_INVALID),
	CALL(piece_length, NI, PTL_NI_INVALID),
	CALL(peer_reason, NI, PTL_NI_INVALID),
	CALL(ni_handle, ANY, PTL_HANDLE_INVALID),
	CALL(progress, ANY, PTL_HANDLE_INVALID),
	CALL(me_insert, ME, PTL_ME_INVALID),
	CALL(me_unlink, ME, PTL_ME_INVALID),
	CALL(md_attach, ME, PTL_ME_INVALID),
	CALL(memd_insert, ME, PTL_ME_INVALID),
	CALL(memd_post_me, ME, PTL_ME_INVALID),
	CALL(me_dump, ME, PTL_ME_INVALID),
	CALL(md_unlink, MD, PTL_MD_INVALID),
	CALL(md_update, MD, PTL_MD_INVALID),
	CALL(put, MD, PTL_MD_INVALID),
	CALL(put_region, MD, PTL_MD_INVALID),
	CALL(get, MD, PTL_MD_INVALID),
	CALL(get_region, MD, PTL_MD_INVALID),
	CALL(getput_get, MD, PTL_MD_INVALID),
	CALL(getput_put, MD, PTL_MD_INVALID),
	CALL(getput_region_get, MD, PTL_MD_INVALID),
	CALL(getput_region_put, MD, PTL_MD_INVALID),
	CALL(atomic, MD, PTL_MD_INVALID),
	CALL(fetch_atomic_get, MD, PTL_MD_INVALID),
	CALL(fetch_atomic_put, MD, PTL_MD_INVALID),
	CALL(eq_free, EQ, PTL_EQ_INVALID),
	CALL(eq_get, EQ, PTL_EQ_INVALID),
	CALL(eq_wait, EQ, PTL_EQ_INVALID),
	CALL(eq_wait_timeout, EQ, PTL_EQ_INVALID),
	CALL(eq_peek, EQ, PTL_EQ_INVALID),
	CALL(eq_poll, EQ, PTL_EQ_INVALID),
	CALL(eq_await, EQ, PTL_EQ_INVALID),
	CALL(eq_poll_many, EQ, PTL_EQ_INVALID),
	CALL(eq_poll_watch, EQ, PTL_EQ_INVALID),
	{ "md_attach_eq", md_attach_eq, EQ, PTL_EQ_INVALID, true },
	{ "md_bind_eq", md_bind_eq, EQ, PTL_EQ_INVALID, true },
	{ "md_update_eq", md_update_eq, EQ, PTL_EQ_INVALID, true },
	{ "md_update_new_eq", md_update_new_eq, EQ, PTL_EQ_INVALID, true },
	{ "memd_post_eq", memd_post_eq, EQ, PTL_EQ_INVALID, true },
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static void open_live(void)
{
	pt_open();
	live.ni = pt_ni;
	live.self = pt_id(0);
	live.eq = pt_eq(8);
	live.me = pt_post(1, 0, pt_md(live.bytes, 64, 0, live.eq), PTL_RETAIN, NULL);
	live.md = pt_bind(live.bytes, 64, 0, PTL_EQ_NONE);
	pt_ok(PtlMEAttach(pt_ni, 2, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &live.bare_me));
}

/* The objects of open_live exist and work, and there are no others. */
static void check_live(void)
{
	pt_is(pt_status(PTL_SR_MES_CUR), 2);
	pt_is(pt_status(PTL_SR_MDS_CUR), 2);
	pt_is(pt_status(PTL_SR_EQS_CUR), 1);
	pt_is(pt_query(live.md).length, 64);
	pt_quiet(live.eq);
}

static void expect(const struct call *c, ptl_handle_any_t h, int code, const char *what)
{
	int rc;

	pt_at(__FILE__, __LINE__, c->name);
	rc = c->call(h);
	if (rc != code)
		pt_fail(__FILE__, __LINE__, "%s with %s (%#x) gave %s instead of %s", c->name, what,
			h, pt_code_name(rc), pt_code_name(code));
}

/* ---- tests over the table -------------------------------------------------------------------- */

static void before_init_everything_says_so(void)
{
	for (size_t i = 0; i < CALLS; i++) {
		expect(&calls[i], PTL_INVALID_HANDLE, PTL_NO_INIT, "no library");
		expect(&calls[i], 0, PTL_NO_INIT, "no library");
		expect(&calls[i], 0x01020304, PTL_NO_INIT, "no library");
	}
	pt_code(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &out), PTL_NO_INIT);
	pt_code(PtlGetRank(PTL_INVALID_HANDLE, &(unsigned){ 0 }, &(unsigned){ 0 }), PTL_NO_INIT);
}

static void before_ni_init_there_is_no_object(void)
{
	int n;

	pt_ok(PtlInit(&n));
	for (size_t i = 0; i < CALLS; i++) {
		if (calls[i].none_is_fine || calls[i].call == memd_post_me)
			continue; /* another handle is wrong already */
		expect(&calls[i], 0, calls[i].code, "no interface");
		expect(&calls[i], PTL_INVALID_HANDLE, calls[i].code, "no interface");
	}
	PtlFini();
}

static void special_handles_are_no_objects(void)
{
	static const ptl_handle_any_t none[] = { PTL_INVALID_HANDLE, PTL_HANDLE_NONE, PTL_EQ_NONE };

	open_live();
	for (size_t i = 0; i < CALLS; i++)
		for (size_t k = 0; k < 3; k++)
			if (none[k] != PTL_EQ_NONE || !calls[i].none_is_fine)
				expect(&calls[i], none[k], calls[i].code, "a special handle");
	check_live();
}

static void handles_of_another_kind_are_refused(void)
{
	ptl_handle_any_t of[4];

	open_live();
	of[NI] = live.ni;
	of[ME] = live.me;
	of[MD] = live.md;
	of[EQ] = live.eq;
	for (size_t i = 0; i < CALLS; i++)
		for (enum kind k = NI; k <= EQ; k++)
			if (calls[i].kind != ANY && calls[i].kind != k)
				expect(&calls[i], of[k], calls[i].code, "another kind");
	check_live();
}

static void stale_handles_are_refused(void)
{
	enum { EACH = 40 };
	static ptl_handle_any_t stale[3 * EACH];
	ptl_handle_md_t md;

	open_live();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < EACH; i++) {
			pt_ok(PtlMEAttach(pt_ni, 5, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
					  &stale[i]));
			stale[EACH + i] = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
			stale[2 * EACH + i] = pt_eq(2);
		}
		for (int i = 0; i < EACH; i++) {
			pt_ok(PtlMEUnlink(stale[i]));
			pt_ok(PtlMDUnlink(stale[EACH + i]));
			pt_ok(PtlEQFree(stale[2 * EACH + i]));
		}
		for (size_t i = 0; i < CALLS; i++)
			for (int k = 0; k < 3 * EACH; k++)
				expect(&calls[i], stale[k], calls[i].code, "a stale handle");
	}
	/* the places of stale objects may be taken again: the old handles stay dead */
	md = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	for (size_t i = 0; i < CALLS; i++)
		for (int k = 0; k < 3 * EACH; k++)
			expect(&calls[i], stale[k], calls[i].code, "a stale handle");
	pt_ok(PtlMDUnlink(md));
	check_live();
}

/* With PTL_INVALID_HANDLE the Set calls are about the interface to come; any other handle is one
 * or is wrong. */
static void set_calls_refuse_what_is_no_interface(void)
{
	ptl_handle_any_t bad[] = { 0, PTL_HANDLE_NONE, PTL_EQ_NONE, 0, 0, 0 };
	ptl_handle_ni_t other;
	int n;

	open_live();
	bad[3] = live.md;
	bad[4] = live.eq;
	pt_ok(PtlInit(&n));
	pt_ok(PtlNIInit(1, PTL_PID_ANY, NULL, NULL, &other));
	pt_ok(PtlNIFini(other));
	bad[5] = other;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		pt_code(PtlSetRank(bad[i], 0, 1), PTL_NI_INVALID);
		pt_code(PtlSetRank(bad[i], (unsigned)-1, (unsigned)-1), PTL_NI_INVALID);
		pt_code(PtlSetNIDMap(bad[i], &live.self.nid, 1), PTL_NI_INVALID);
		pt_code(PtlSetPIDMap(bad[i], &live.self.pid, 1), PTL_NI_INVALID);
	}
	check_live();
}

static bool is_live(ptl_handle_any_t h)
{
	return h == live.ni || h == live.eq || h == live.md || h == live.me || h == live.bare_me;
}

/* The attached MD's handle is not kept; ask what a number names before calling it invented. */
static bool is_invented(ptl_handle_any_t h)
{
	ptl_handle_ni_t ni;

	return !is_live(h) && h != PTL_EQ_NONE && PtlNIHandle(h, &ni) == PTL_HANDLE_INVALID;
}

static void invented_handles_are_refused(void)
{
	enum { TRIES = 1000000 };
	ptl_handle_any_t base[5], h;
	uint64_t seed = 20060112;
	int skipped = 0;

	open_live();
	base[0] = live.ni;
	base[1] = live.eq;
	base[2] = live.md;
	base[3] = live.me;
	for (int i = 0; i < TRIES; i++) {
		uint64_t r = pt_random(&seed);
		const struct call *c = &calls[r % CALLS];

		/* wild numbers, and real handles with a few bits changed */
		h = (ptl_handle_any_t)(r >> 32);
		if (i & 1)
			h = base[h % 4] ^ (1u << (h >> 8) % 32) ^
			    ((h & 0x80) ? 1u << (h >> 16) % 32 : 0);
		if (!is_invented(h)) {
			skipped++;
			continue;
		}
		expect(c, h, c->code, "an invented handle");
	}
	pt_true(skipped < TRIES / 20);
	check_live();
}

/* Each object knows its interface: what another one owns is refused where two must belong
 * together. */
static void objects_of_two_interfaces_do_not_mix(void)
{
	ptl_handle_ni_t other;
	ptl_handle_eq_t eq;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	ptl_md_t new;
	int n;

	open_live();
	pt_ok(PtlInit(&n));
	if (n < 2)
		pt_skip("one interface only");
	pt_ok(PtlNIInit(1, PTL_PID_ANY, NULL, NULL, &other));
	pt_ok(PtlEQAlloc(other, 4, NULL, &eq));
	pt_ok(PtlMDBind(other, pt_md(NULL, 0, 0, eq), PTL_RETAIN, &md));
	pt_ok(PtlMEAttach(other, 1, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	pt_code(PtlMDBind(live.ni, pt_md(NULL, 0, 0, eq), PTL_RETAIN, &out), PTL_MD_ILLEGAL);
	pt_code(PtlMDAttach(live.bare_me, pt_md(NULL, 0, 0, eq), PTL_RETAIN, &out), PTL_MD_ILLEGAL);
	new = pt_md(NULL, 0, 0, eq);
	pt_code(PtlMDUpdate(live.md, NULL, &new, PTL_EQ_NONE), PTL_MD_ILLEGAL);
	new.eq_handle = PTL_EQ_NONE;
	pt_true(PtlMDUpdate(live.md, NULL, &new, eq) != PTL_OK);
	pt_code(eq_poll(eq), PTL_EQ_INVALID);
	pt_code(getput_get(md), PTL_MD_ILLEGAL);
	pt_code(getput_put(md), PTL_MD_ILLEGAL);
	pt_code(getput_region_get(md), PTL_MD_ILLEGAL);
	pt_true(post(live.ni, me, PTL_EQ_NONE) != PTL_OK);
	pt_true(post(other, live.me, PTL_EQ_NONE) != PTL_OK);
	pt_ok(PtlNIHandle(md, &out));
	pt_is(out, other);
	pt_ok(PtlNIFini(other));
	for (size_t i = 0; i < CALLS; i++) { /* gone with their interface */
		expect(&calls[i], eq, calls[i].code, "a queue of a closed interface");
		expect(&calls[i], md, calls[i].code, "an MD of a closed interface");
		expect(&calls[i], me, calls[i].code, "an entry of a closed interface");
		expect(&calls[i], other, calls[i].code, "a closed interface");
	}
	check_live();
}

/* ---- pointers -------------------------------------------------------------------------------- */

static void null_pointers_are_refused(void)
{
	ptl_ni_fail_t fail_type;
	char text[8];
	ptl_md_t md = pt_md(NULL, 0, 0, PTL_EQ_NONE);
	ptl_pt_index_t index;

	open_live();
	pt_code(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, NULL), PTL_SEGV);
	pt_code(PtlNIStatus(live.ni, 0, NULL), PTL_SEGV);
	pt_code(PtlNIDist(live.ni, live.self, NULL), PTL_SEGV);
	pt_code(PtlNIHandle(live.md, NULL), PTL_SEGV);
	pt_code(PtlGetUid(live.ni, NULL), PTL_SEGV);
	pt_code(PtlGetId(live.ni, NULL), PTL_SEGV);
	pt_code(PtlGetJid(live.ni, NULL), PTL_SEGV);
	pt_code(PtlMEAttach(live.ni, 1, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, NULL), PTL_SEGV);
	pt_code(PtlMEAttachAny(live.ni, NULL, pt_any, 0, 0, PTL_RETAIN, &out), PTL_SEGV);
	pt_code(PtlMEAttachAny(live.ni, &index, pt_any, 0, 0, PTL_RETAIN, NULL), PTL_SEGV);
	pt_code(PtlMEInsert(live.me, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, NULL), PTL_SEGV);
	pt_code(PtlMEMDAttach(live.ni, 1, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN,
			      NULL, &out),
		PTL_SEGV);
	pt_code(PtlMEMDInsert(live.me, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN,
			      NULL, &out),
		PTL_SEGV);
	pt_code(PtlMEMDPost(live.ni, live.me, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, md,
			    PTL_RETAIN, NULL, &out, PTL_EQ_NONE),
		PTL_SEGV);
	pt_ok(PtlMDUpdate(live.md, NULL, NULL, PTL_EQ_NONE));
	pt_code(PtlMDBind(live.ni, md, PTL_RETAIN, NULL), PTL_SEGV);
	pt_code(PtlEQAlloc(live.ni, 4, NULL, NULL), PTL_SEGV);
	pt_code(PtlEQGet(live.eq, NULL), PTL_SEGV);
	pt_code(PtlEQWait(live.eq, NULL), PTL_SEGV);
	pt_code(PtlEQWait_timeout(live.eq, NULL, 1), PTL_SEGV);
	pt_code(PtlEQPeek(live.eq, NULL), PTL_SEGV);
	pt_code(PtlEQPoll(NULL, 1, 0, &event, &which), PTL_SEGV);
	pt_code(PtlEQPoll(&live.eq, 1, 0, NULL, &which), PTL_SEGV);
	pt_code(PtlEQPoll(&live.eq, 1, 0, &event, NULL), PTL_SEGV);
	pt_code(PtlEQAwait(NULL, 1, 0, &which), PTL_SEGV);
	pt_code(PtlEQAwait(&live.eq, 1, 0, NULL), PTL_SEGV);
	pt_code(PtlEQPollMany(NULL, 1, 0, NULL, &event, 1, &which), PTL_SEGV);
	pt_code(PtlEQPollMany(&live.eq, 1, 0, NULL, NULL, 1, &which), PTL_SEGV);
	pt_code(PtlEQPollMany(&live.eq, 1, 0, NULL, &event, 1, NULL), PTL_SEGV);
	pt_code(PtlEQPollWatch(NULL, 1, &word, 1, NULL, &event, 1, &which), PTL_SEGV);
	pt_code(PtlEQPollWatch(&live.eq, 1, NULL, 1, NULL, &event, 1, &which), PTL_SEGV);
	pt_code(PtlEQPollWatch(&live.eq, 1, &word, 1, NULL, NULL, 1, &which), PTL_SEGV);
	pt_code(PtlEQPollWatch(&live.eq, 1, &word, 1, NULL, &event, 0, &which), PTL_SEGV);
	pt_code(PtlEQPollWatch(&live.eq, 1, &word, 1, NULL, &event, 1, NULL), PTL_SEGV);
	pt_code(PtlPutInject(live.ni, NULL, 1, PTL_INJECT_NOW, live.self, 100, 0, 0, 0, 0),
		PTL_SEGV);
	pt_code(PtlPieceLength(live.ni, live.self, NULL), PTL_SEGV);
	pt_code(PtlPeerReason(live.ni, live.self, NULL, text, sizeof(text)), PTL_SEGV);
	pt_code(PtlPeerReason(live.ni, live.self, &fail_type, NULL, sizeof(text)), PTL_SEGV);
	pt_code(PtlPeerReason(live.ni, live.self, &fail_type, text, 0), PTL_SEGV);
	check_live();
}

/* As the reference implementation checks: pointers, then the library, then handles. */
static void null_is_told_before_all_else(void)
{
	ptl_handle_ni_t ni;
	int n;

	for (int round = 0; round < 2; round++) {
		pt_code(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, NULL), PTL_SEGV);
		pt_code(PtlGetId(PTL_INVALID_HANDLE, NULL), PTL_SEGV);
		pt_code(PtlNIStatus(PTL_INVALID_HANDLE, 0, NULL), PTL_SEGV);
		pt_code(PtlMEAttach(PTL_INVALID_HANDLE, 1 << 20, pt_any, 0, 0, PTL_RETAIN,
				    PTL_INS_AFTER, NULL),
			PTL_SEGV);
		pt_code(PtlEQAlloc(PTL_INVALID_HANDLE, 1, PTL_EQ_HANDLER_NONE, NULL), PTL_SEGV);
		pt_code(PtlEQGet(PTL_INVALID_HANDLE, NULL), PTL_SEGV);
		pt_code(PtlEQPoll(NULL, 0, 0, NULL, NULL), PTL_SEGV);
		pt_code(PtlNIInit(77, PTL_PID_ANY, NULL, NULL, &ni),
			round ? PTL_IFACE_INVALID : PTL_NO_INIT);
		pt_ok(PtlInit(&n));
	}
	PtlFini();
}

static void null_for_init_is_survived(void)
{
	int rc = PtlInit(NULL), n;

	pt_true(rc == PTL_SEGV || rc == PTL_OK);
	pt_ok(PtlInit(&n));
	rc = PtlInit(NULL);
	pt_true(rc == PTL_SEGV || rc == PTL_OK);
	PtlFini();
}

static void null_for_the_runtime_calls_is_refused(void)
{
	unsigned rank;

	pt_open();
	pt_code(PtlGetRank(pt_ni, NULL, &rank), PTL_SEGV);
	pt_code(PtlGetRank(pt_ni, &rank, NULL), PTL_SEGV);
	pt_code(PtlGetRankId(pt_ni, 0, NULL), PTL_SEGV);
	pt_code(PtlGetNIDMap(pt_ni, NULL, 1), PTL_SEGV);
	pt_code(PtlGetPIDMap(pt_ni, NULL, 1), PTL_SEGV);
	pt_code(PtlSetNIDMap(PTL_INVALID_HANDLE, NULL, 1), PTL_SEGV);
	pt_code(PtlSetPIDMap(PTL_INVALID_HANDLE, NULL, 1), PTL_SEGV);
	pt_code(PtlGetRankId(pt_ni, 0xffffffffu, &live.self), PTL_FAIL);
	pt_code(PtlGetNIDMap(pt_ni, &live.self.nid, 0xffffffffu), PTL_FAIL);
	pt_code(PtlGetPIDMap(pt_ni, &live.self.pid, 0xffffffffu), PTL_FAIL);
}

/* ---- processes and numbers ------------------------------------------------------------------- */

static void wildcards_are_no_targets(void)
{
	ptl_process_id_t bad[3];

	open_live();
	bad[0] = pt_any;
	bad[1] = (ptl_process_id_t){ live.self.nid, PTL_PID_ANY };
	bad[2] = (ptl_process_id_t){ PTL_NID_ANY, live.self.pid };
	for (int i = 0; i < 3; i++) {
		live.self = bad[i];
		pt_code(put(live.md), PTL_PROCESS_INVALID);
		pt_code(put_region(live.md), PTL_PROCESS_INVALID);
		pt_code(get(live.md), PTL_PROCESS_INVALID);
		pt_code(get_region(live.md), PTL_PROCESS_INVALID);
		pt_code(getput_get(live.md), PTL_PROCESS_INVALID);
		pt_code(getput_region_get(live.md), PTL_PROCESS_INVALID);
	}
	check_live();
}

/* The target judges portal and AC index and offset; the initiator only hears nothing. */
static void wild_indexes_and_offsets_are_dropped_by_the_target(void)
{
	static const uint32_t wild[] = { 65536,      1 << 24,    0x7fffffff,
					 0x80000000, 0xfffffffe, 0xffffffff };
	uint64_t drops = 0;

	open_live();
	pt_post(100, 0, pt_md(live.bytes, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, live.eq),
		PTL_RETAIN, NULL);
	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++, drops += 4) {
		pt_ok(PtlPut(live.md, PTL_ACK_REQ, live.self, wild[i], 0, 0, 0, 0));
		pt_ok(PtlPut(live.md, PTL_ACK_REQ, live.self, 100, wild[i], 0, 0, 0));
		pt_ok(PtlGet(live.md, live.self, wild[i], wild[i], 0, 0));
		pt_ok(PtlPutRegion(live.md, 0, 8, PTL_ACK_REQ, live.self, 100, 0, 0,
				   ~(ptl_size_t)0 - i, 0));
	}
	pt_wait_drops(drops);
	pt_quiet(live.eq);
	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		ptl_sr_value_t value;

		pt_code(PtlMEAttach(pt_ni, wild[i], pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out),
			PTL_PT_INDEX_INVALID);
		pt_code(PtlMEMDAttach(pt_ni, wild[i], pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
				      pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, &out, &out),
			PTL_PT_INDEX_INVALID);
		pt_code(PtlACEntry(pt_ni, wild[i], pt_any, PTL_UID_ANY, PTL_JID_ANY, 0),
			PTL_AC_INDEX_INVALID);
		if (wild[i] != PTL_PT_INDEX_ANY)
			pt_code(PtlACEntry(pt_ni, 1, pt_any, PTL_UID_ANY, PTL_JID_ANY, wild[i]),
				PTL_PT_INDEX_INVALID);
		pt_code(PtlTblDump(pt_ni, (int)wild[i]), PTL_PT_INDEX_INVALID);
		pt_code(PtlNIInit(wild[i], PTL_PID_ANY, NULL, NULL, &out), PTL_IFACE_INVALID);
		pt_code(PtlNIStatus(pt_ni, wild[i], &value), PTL_SR_INDEX_INVALID);
		pt_code(PtlNIStatus(pt_ni, PTL_SR_MLIST_LEN(wild[i]), &value),
			PTL_SR_INDEX_INVALID);
		pt_code(PtlNIStatus(pt_ni, PTL_SR_MLIST_MAX(wild[i]), &value),
			PTL_SR_INDEX_INVALID);
	}
	pt_code(PtlNIStatus(pt_ni, PTL_SR_MLIST_LEN(4096), &(ptl_sr_value_t){ 0 }),
		PTL_SR_INDEX_INVALID);
}

static void odd_enumerators_are_survived(void)
{
	ptl_handle_me_t me;
	ptl_handle_md_t md;

	open_live();
	for (int v = -1; v <= 100; v += 101) {
		if (PtlMEAttach(pt_ni, 1, pt_any, 0, 0, (ptl_unlink_t)v, PTL_INS_AFTER, &me) ==
		    PTL_OK)
			pt_ok(PtlMEUnlink(me));
		if (PtlMEAttach(pt_ni, 1, pt_any, 0, 0, PTL_RETAIN, (ptl_ins_pos_t)v, &me) ==
		    PTL_OK)
			pt_ok(PtlMEUnlink(me));
		if (PtlMDBind(pt_ni, pt_md(NULL, 0, 0, PTL_EQ_NONE), (ptl_unlink_t)v, &md) ==
		    PTL_OK)
			pt_ok(PtlMDUnlink(md));
		if (PtlMDBind(pt_ni, pt_md(NULL, 0, ~0u & ~PTL_MD_IOVEC, PTL_EQ_NONE), PTL_RETAIN,
			      &md) == PTL_OK)
			pt_ok(PtlMDUnlink(md));
		PtlPut(live.md, (ptl_ack_req_t)v, live.self, 100, 0, 0, 0, 0);
	}
	check_live();
}

static const struct pt_test tests[] = {
	PT_CASE(before_init_everything_says_so, 1),
	PT_CASE(before_ni_init_there_is_no_object, 1),
	PT_CASE(special_handles_are_no_objects, 1),
	PT_CASE(handles_of_another_kind_are_refused, 1),
	PT_CASE(stale_handles_are_refused, 1),
	PT_CASE(set_calls_refuse_what_is_no_interface, 1),
	PT_CASE(invented_handles_are_refused, 1),
	PT_CASE(objects_of_two_interfaces_do_not_mix, 1),
	PT_CASE(null_pointers_are_refused, 1),
	PT_CASE(null_is_told_before_all_else, 1),
	PT_CASE(null_for_init_is_survived, 1),
	PT_CASE(null_for_the_runtime_calls_is_refused, 1),
	PT_CASE(wildcards_are_no_targets, 1),
	PT_CASE(wild_indexes_and_offsets_are_dropped_by_the_target, 1),
	PT_CASE(odd_enumerators_are_survived, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
