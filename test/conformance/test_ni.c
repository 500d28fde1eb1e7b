/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Library and network interfaces: PtlInit, PtlNIInit, limits, process ids, identities, distance and
 * status registers (report sections 3.4 to 3.8).
 */
#include "ptest.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ptl_handle_ni_t init_default(void)
{
	ptl_handle_ni_t ni;

	pt_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
	return ni;
}

static void init_is_repeatable_and_counts_interfaces(void)
{
	int n = -1, again = -1;

	pt_ok(PtlInit(&n));
	pt_true(n >= 1);
	pt_ok(PtlInit(&again));
	pt_true(again == n || again == -1);
	PtlFini();
}

static void init_works_again_after_fini(void)
{
	ptl_process_id_t id;
	ptl_handle_ni_t ni;
	int n;

	for (int i = 0; i < 3; i++) {
		pt_ok(PtlInit(&n));
		ni = init_default();
		pt_ok(PtlGetId(ni, &id));
		PtlFini();
	}
}

/* The least that our documentation promises for an NI without wishes. */
static void default_limits_are_generous(void)
{
	ptl_ni_limits_t got;

	memset(&got, 0xff, sizeof(got));
	pt_open_with(NULL, &got);
	pt_true(got.max_mes >= 1 << 20);
	pt_true(got.max_mds >= 1 << 20);
	pt_true(got.max_eqs >= 4096);
	pt_true(got.max_ac_index >= 63);
	pt_true(got.max_pt_index >= 255);
	pt_true(got.max_md_iovecs >= 1 << 16);
	pt_true(got.max_me_list >= 1);
	pt_true(got.max_getput_md >= 4096);
}

static void actual_may_be_null(void)
{
	ptl_ni_limits_t want = { 10, 10, 10, 10, 10, 10, 10, 10 };

	pt_open_with(&want, NULL);
	pt_bind(NULL, 0, 0, PTL_EQ_NONE);
}

static const ptl_ni_limits_t small_limits = { 5, 6, 3, 2, 7, 4, 3, 16 };

/* P3.3 3.5.1: desired is a hint; what is given must not be more than was asked for. */
static void desired_limits_are_not_exceeded(void)
{
	ptl_ni_limits_t want = small_limits, got;

	memset(&got, 0xff, sizeof(got));
	pt_open_with(&want, &got);
	pt_true(got.max_mes >= 0 && got.max_mes <= want.max_mes);
	pt_true(got.max_mds >= 0 && got.max_mds <= want.max_mds);
	pt_true(got.max_eqs >= 0 && got.max_eqs <= want.max_eqs);
	pt_true(got.max_ac_index >= 0 && got.max_ac_index <= want.max_ac_index);
	pt_true(got.max_pt_index >= 0 && got.max_pt_index <= want.max_pt_index);
	pt_true(got.max_md_iovecs >= 0 && got.max_md_iovecs <= want.max_md_iovecs);
	pt_true(got.max_me_list >= 0 && got.max_me_list <= want.max_me_list);
	pt_true(got.max_getput_md >= 0 && got.max_getput_md <= want.max_getput_md);
	pt_is(memcmp(&want, &small_limits, sizeof(want)), 0);
}

static void limits_in_force_are_those_reported(void)
{
	ptl_ni_limits_t want = small_limits, got;
	ptl_handle_me_t me[8];
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;
	ptl_pt_index_t last;

	pt_open_with(&want, &got);
	last = (ptl_pt_index_t)got.max_pt_index;
	for (int i = 0; i < got.max_mes; i++)
		pt_ok(PtlMEAttach(pt_ni, (ptl_pt_index_t)i % (last + 1), pt_any, 0, 0, PTL_RETAIN,
				  PTL_INS_AFTER, &me[i]));
	pt_code(PtlMEAttach(pt_ni, last, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me[7]),
		PTL_NO_SPACE);
	pt_ok(PtlMEUnlink(me[0]));
	pt_ok(PtlMEAttach(pt_ni, last, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me[0]));
	for (int i = 0; i < got.max_mds; i++)
		pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	pt_code(PtlMDBind(pt_ni, pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, &md), PTL_NO_SPACE);
	for (int i = 0; i < got.max_eqs; i++)
		pt_eq(8);
	pt_code(PtlEQAlloc(pt_ni, 8, PTL_EQ_HANDLER_NONE, &eq), PTL_NO_SPACE);
}

/* Whatever comes and goes, attached or bound: up to the limit there is a descriptor, and not one
 * more. */
static void every_descriptor_can_be_had(void)
{
	enum { MOST = 40 };
	ptl_ni_limits_t want = { MOST, MOST, 3, 2, 7, 4, MOST, 16 }, got;
	ptl_handle_me_t me[MOST] = { 0 };
	ptl_handle_md_t md[MOST], gone[MOST], extra;
	int live = 0;

	pt_open_with(&want, &got);
	for (int i = 0; i < MOST; i++)
		gone[i] = PTL_HANDLE_INVALID;
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		int k = live ? (int)(random() % live) : 0;
		bool wave = round / 500 % 2; /* now most are there, now few */

		if (live && random() % 4 < (wave ? 3 : 1)) {
			gone[random() % MOST] = md[k];
			pt_ok(me[k] ? PtlMEUnlink(me[k]) : PtlMDUnlink(md[k]));
			live--;
			me[k] = me[live];
			md[k] = md[live];
		} else if (live == got.max_mds) {
			pt_code(PtlMDBind(pt_ni, pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN,
					  &extra),
				PTL_NO_SPACE);
		} else {
			me[live] = 0;
			if (random() % 2)
				pt_ok(PtlMEAttach(pt_ni, 0, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
						  &me[live]));
			if (me[live])
				pt_ok(PtlMDAttach(me[live], pt_md(NULL, 0, 0, PTL_EQ_NONE),
						  PTL_RETAIN, &md[live]));
			else
				md[live] = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
			for (int i = 0; i < live; i++)
				pt_true(md[i] != md[live]);
			live++;
		}
		pt_code(PtlMDUnlink(gone[random() % MOST]), PTL_MD_INVALID);
	}
}

/* The number is what says where it lies: an entry and its descriptor are neighbours, whatever is
 * bound besides. */
static void an_entry_has_the_descriptor_beside_it(void)
{
	enum { LISTED = 100, BOUND = 7, NUMBER = 0xfffff << 8 };
	ptl_handle_me_t me[LISTED];
	ptl_handle_md_t md;

	pt_open();
	for (int again = 0; again < 3; again++) {
		for (int i = 0; i < BOUND; i++)
			pt_bind(NULL, 0, 0, PTL_EQ_NONE);
		for (int i = 0; i < LISTED; i++) {
			pt_ok(PtlMEAttach(pt_ni, 0, pt_any, (ptl_match_bits_t)i, 0, PTL_RETAIN,
					  PTL_INS_AFTER, &me[i]));
			pt_ok(PtlMDAttach(me[i], pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, &md));
			pt_is(md & NUMBER, me[i] & NUMBER);
		}
		for (int i = 0; i < LISTED;
		     i++) /* in the order that would hand them on crosswise */
			pt_ok(PtlMEUnlink(me[again % 2 ? i : LISTED - 1 - i]));
	}
}

static void absurd_desired_limits_are_survived(void)
{
	ptl_ni_limits_t want, got;

	memset(&want, 0x80, sizeof(want)); /* all negative */
	pt_open_with(&want, &got);
	pt_true(got.max_mes >= 0 && got.max_mds >= 0 && got.max_eqs >= 0);
	pt_true(got.max_ac_index >= 0 && got.max_pt_index >= 0);
	pt_close();
	memset(&want, 0x7f, sizeof(want)); /* all huge */
	pt_open_with(&want, &got);
	pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	pt_eq(10);
}

static void repeated_ni_init_returns_the_same_handle(void)
{
	ptl_ni_limits_t want = small_limits, first, second;
	ptl_process_id_t before, after;
	ptl_handle_ni_t again;

	pt_open_with(NULL, &first);
	pt_ok(PtlGetId(pt_ni, &before));
	memset(&second, 0, sizeof(second));
	pt_ok(PtlNIInit(PTL_IFACE_DEFAULT, before.pid + 1, &want, &second, &again));
	pt_is(again, pt_ni);
	pt_is(memcmp(&first, &second, sizeof(first)), 0);
	pt_ok(PtlGetId(pt_ni, &after));
	pt_is(after.pid, before.pid);
	pt_ok(PtlNIFini(again));
}

static void ni_inits_are_counted(void)
{
	ptl_process_id_t id;
	ptl_handle_ni_t ni;
	int n;

	pt_ok(PtlInit(&n));
	ni = init_default();
	pt_is(init_default(), ni);
	pt_is(init_default(), ni);
	pt_ok(PtlNIFini(ni));
	pt_ok(PtlNIFini(ni));
	pt_ok(PtlGetId(ni, &id));
	pt_ok(PtlNIFini(ni));
	pt_code(PtlGetId(ni, &id), PTL_NI_INVALID);
	pt_code(PtlNIFini(ni), PTL_NI_INVALID);
	PtlFini();
}

/* Handles of an interface's former life are not those of its next one. */
static void handles_do_not_outlive_the_interface(void)
{
	ptl_handle_ni_t old_ni;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_handle_me_t me;
	ptl_event_t ev;
	ptl_md_t old;

	pt_open();
	eq = pt_eq(4);
	me = pt_post(3, 0, pt_md(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, &md);
	old_ni = pt_ni;
	pt_close();
	pt_open();
	pt_eq(4);
	pt_post(3, 0, pt_md(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE), PTL_RETAIN, NULL);
	pt_code(PtlEQGet(eq, &ev), PTL_EQ_INVALID);
	pt_code(PtlMDUpdate(md, &old, NULL, PTL_EQ_NONE), PTL_MD_INVALID);
	pt_code(PtlMEUnlink(me), PTL_ME_INVALID);
	pt_code(PtlMDUnlink(md), PTL_MD_INVALID);
	pt_code(PtlNIFini(old_ni), PTL_NI_INVALID);
}

static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0;

	pt_true(f != NULL);
	for (int c; (c = getc(f)) != EOF;)
		n += c == '\n';
	fclose(f);
	return n;
}

static void init_and_use(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	char byte = 1;
	int n;

	pt_ok(PtlInit(&n));
	pt_ni = init_default();
	eq = pt_eq(100);
	pt_post(1, 7, pt_md(&byte, 1, PTL_MD_OP_PUT, eq), PTL_RETAIN, NULL);
	md = pt_bind(&byte, 1, 0, PTL_EQ_NONE);
	pt_ok(PtlGetId(pt_ni, &(ptl_process_id_t){ 0, 0 }));
	pt_ok(PtlMDUnlink(md));
	PtlFini();
}

static void fini_gives_everything_back(void)
{
	int files, maps, threads = pt_entries("/proc/self/task");

	for (int i = 0; i < 5; i++)
		init_and_use();
	files = pt_entries("/proc/self/fd");
	maps = mappings();
	for (int i = 0; i < 100; i++)
		init_and_use();
	pt_is(pt_entries("/proc/self/fd"), files);
	if (pt_slow() > 1)
		return; /* sanitizers have mappings and a thread of their own */
	pt_truef(mappings() <= maps + 3, "%d mappings, then %d after 100 lives", maps, mappings());
	pt_until(pt_entries("/proc/self/task") == threads, 5);
}

static void any_pid_is_unique_on_the_node(void)
{
	pt_open();
	pt_true(pt_id(pt_rank).pid != PTL_PID_ANY);
	pt_true(pt_id(pt_rank).nid != PTL_NID_ANY);
	for (int i = 0; i < pt_size; i++) {
		pt_is(pt_id(i).nid, pt_id(pt_rank).nid);
		pt_true(i == pt_rank || pt_id(i).pid != pt_id(pt_rank).pid);
	}
}

static int init_with_pid(ptl_pid_t pid, ptl_handle_ni_t *ni)
{
	int n;

	pt_ok(PtlInit(&n));
	return PtlNIInit(PTL_IFACE_DEFAULT, pid, NULL, NULL, ni);
}

/* Some pid that is free now, found by asking for any. */
static ptl_pid_t free_pid(void)
{
	ptl_process_id_t id;
	ptl_handle_ni_t ni;

	pt_ok(init_with_pid(PTL_PID_ANY, &ni));
	pt_ok(PtlGetId(ni, &id));
	pt_ok(PtlNIFini(ni));
	return id.pid;
}

static void explicit_pid_is_honoured_and_exclusive(void)
{
	ptl_process_id_t id;
	ptl_handle_ni_t ni = PTL_HANDLE_INVALID;
	ptl_pid_t pid;

	if (pt_rank == 0)
		*pt_word(0) = free_pid();
	pt_barrier();
	pid = (ptl_pid_t)*pt_word(0);
	if (pt_rank == 0) {
		pt_ok(init_with_pid(pid, &ni));
		pt_ok(PtlGetId(ni, &id));
		pt_is(id.pid, pid);
	}
	pt_barrier();
	if (pt_rank == 1)
		pt_code(init_with_pid(pid, &ni), PTL_PID_INVALID);
	pt_barrier();
	if (pt_rank == 0)
		pt_ok(PtlNIFini(ni));
	pt_barrier();
	if (pt_rank == 1) {
		pt_ok(init_with_pid(pid, &ni));
		pt_ok(PtlGetId(ni, &id));
		pt_is(id.pid, pid);
	}
	PtlFini();
}

/* A process that asks for a pid in use does not get it, and takes nothing from its owner. */
static void a_pid_that_was_asked_for_in_vain_is_still_reached(void)
{
	static unsigned char delivery, sent = 'x';
	ptl_handle_eq_t eq = PTL_EQ_NONE;
	ptl_process_id_t id;

	if (pt_rank == 0) {
		*pt_word(0) = free_pid();
		pt_ok(init_with_pid((ptl_pid_t)*pt_word(0), &pt_ni));
		eq = pt_eq(4);
		pt_post(3, 1, pt_md(&delivery, 1, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	if (pt_rank == 1) {
		pt_code(init_with_pid((ptl_pid_t)*pt_word(0), &pt_ni), PTL_PID_INVALID);
		pt_ok(init_with_pid(PTL_PID_ANY, &pt_ni));
		pt_ok(PtlGetId(pt_ni, &id));
		id.pid = (ptl_pid_t)*pt_word(0);
		pt_ok(PtlPut(pt_bind(&sent, 1, PTL_MD_EVENT_START_DISABLE, PTL_EQ_NONE),
			     PTL_NO_ACK_REQ, id, 3, 0, 1, 0, 0));
	} else {
		pt_next(eq, PTL_EVENT_PUT_END);
		pt_is(delivery, 'x');
	}
	pt_barrier();
	pt_ok(PtlNIFini(pt_ni));
	PtlFini();
}

static void well_known_pids_work(void)
{
	/* the last one above what the kernel gives to who wants any port */
	static const ptl_pid_t pids[] = { 30, 1234, 65501 };
	ptl_process_id_t id;
	ptl_handle_ni_t ni;

	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
		pt_until(init_with_pid(pids[i], &ni) == PTL_OK, 20); /* somebody else may have it */
		pt_ok(PtlGetId(ni, &id));
		pt_is(id.pid, pids[i]);
		pt_ok(PtlNIFini(ni));
	}
}

static void pid_of_a_killed_process_is_free_again(void)
{
	ptl_handle_ni_t ni;
	ptl_pid_t pid;

	if (pt_rank == 0) {
		*pt_word(0) = free_pid();
		pt_expect_killed(0);
		pt_ok(init_with_pid((ptl_pid_t)*pt_word(0), &ni));
		*pt_word(1) = 1;
		kill(getpid(), SIGKILL);
	}
	pt_until(*pt_word(1), 20);
	pid = (ptl_pid_t)*pt_word(0);
	pt_until(init_with_pid(pid, &ni) == PTL_OK, 5);
	PtlFini();
}

static void the_pid_wildcard_is_not_a_pid(void)
{
	ptl_process_id_t id;
	ptl_handle_ni_t ni;

	pt_ok(init_with_pid(PTL_PID_ANY, &ni));
	pt_ok(PtlGetId(ni, &id));
	pt_true(id.pid != PTL_PID_ANY);
	PtlFini();
}

static void wrong_interfaces_are_refused(void)
{
	ptl_handle_ni_t ni = 12345;
	int n;

	pt_ok(PtlInit(&n));
	pt_code(PtlNIInit((ptl_interface_t)n, PTL_PID_ANY, NULL, NULL, &ni), PTL_IFACE_INVALID);
	pt_code(PtlNIInit(1000000, PTL_PID_ANY, NULL, NULL, &ni), PTL_IFACE_INVALID);
	pt_code(PtlNIInit((ptl_interface_t)-1, PTL_PID_ANY, NULL, NULL, &ni), PTL_IFACE_INVALID);
	pt_code(PtlNIInit((ptl_interface_t)1 << 31, PTL_PID_ANY, NULL, NULL, &ni),
		PTL_IFACE_INVALID);
	pt_is(ni, 12345);
	PtlFini();
}

static void every_interface_has_its_own_objects(void)
{
	ptl_handle_ni_t ni[64], of;
	ptl_handle_eq_t eq[64];
	int n;

	pt_ok(PtlInit(&n));
	pt_true(n <= 64);
	for (int i = 0; i < n; i++) {
		pt_ok(PtlNIInit((ptl_interface_t)i, PTL_PID_ANY, NULL, NULL, &ni[i]));
		pt_ok(PtlEQAlloc(ni[i], 4, PTL_EQ_HANDLER_NONE, &eq[i]));
		for (int k = 0; k < i; k++) {
			pt_true(ni[k] != ni[i]);
			pt_true(eq[k] != eq[i]);
		}
	}
	for (int i = 0; i < n; i++) {
		pt_ok(PtlNIHandle(eq[i], &of));
		pt_is(of, ni[i]);
		pt_ok(PtlNIFini(ni[i]));
	}
	PtlFini();
}

static void ni_handle_of_every_kind(void)
{
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_handle_me_t me;

	pt_open();
	eq = pt_eq(4);
	me = pt_post(3, 0, pt_md(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, &md);
	pt_ok(PtlNIHandle(pt_ni, &ni));
	pt_is(ni, pt_ni);
	pt_ok(PtlNIHandle(eq, &ni));
	pt_is(ni, pt_ni);
	pt_ok(PtlNIHandle(md, &ni));
	pt_is(ni, pt_ni);
	pt_ok(PtlNIHandle(me, &ni));
	pt_is(ni, pt_ni);
	pt_ok(PtlMEUnlink(me));
	pt_code(PtlNIHandle(me, &ni), PTL_HANDLE_INVALID);
	pt_code(PtlNIHandle(md, &ni), PTL_HANDLE_INVALID);
}

static void distance_of_processes(void)
{
	unsigned long self = 77, peer = 77;
	ptl_process_id_t id;

	pt_open();
	pt_ok(PtlNIDist(pt_ni, pt_id(pt_rank), &self));
	pt_ok(PtlNIDist(pt_ni, pt_id(!pt_rank), &peer));
	pt_true(self <= peer);
	pt_code(PtlNIDist(pt_ni, pt_any, &self), PTL_PROCESS_INVALID);
	id = pt_id(0);
	id.pid = PTL_PID_ANY;
	pt_code(PtlNIDist(pt_ni, id, &self), PTL_PROCESS_INVALID);
	id = pt_id(0);
	id.nid = PTL_NID_ANY;
	pt_code(PtlNIDist(pt_ni, id, &self), PTL_PROCESS_INVALID);
}

static void ids_are_those_of_the_user(void)
{
	ptl_uid_t uid = 0x55555555;
	ptl_jid_t jid = PTL_JID_ANY, again;

	pt_open();
	pt_ok(PtlGetUid(pt_ni, &uid));
	pt_is(uid, geteuid());
	pt_ok(PtlGetJid(pt_ni, &jid));
	pt_true(jid != PTL_JID_ANY);
	pt_ok(PtlGetJid(pt_ni, &again));
	pt_is(again, jid);
}

static void job_id_comes_from_the_environment(void)
{
	ptl_jid_t jid;

	setenv("PTL_MY_JID", "4711", 1);
	pt_open();
	pt_ok(PtlGetJid(pt_ni, &jid));
	pt_is(jid, 4711);
}

static void job_id_comes_from_the_runtime(void)
{
	ptl_jid_t jid;
	int n;

	pt_ok(PtlInit(&n));
	pt_ok(PtlSetJID(815));
	pt_open();
	pt_ok(PtlGetJid(pt_ni, &jid));
	pt_is(jid, 815);
}

static bool is_own_address(ptl_nid_t nid)
{
	struct ifaddrs *all;
	bool found = false;

	pt_is(getifaddrs(&all), 0);
	for (struct ifaddrs *a = all; a; a = a->ifa_next) {
		struct sockaddr_in *in = (struct sockaddr_in *)(void *)a->ifa_addr;

		if (in && in->sin_family == AF_INET && ntohl(in->sin_addr.s_addr) == nid)
			found = true;
	}
	freeifaddrs(all);
	return found;
}

static void nid_is_an_ipv4_address_of_this_host(void)
{
	pt_open();
	pt_truef(is_own_address(pt_id(0).nid), "nid %#x is no address of this host", pt_id(0).nid);
}

static void nid_is_that_of_the_chosen_interface(void)
{
	unsigned int nid = 0;

	setenv("PTL_IFACE", "lo", 1);
	pt_open();
	pt_is(pt_id(0).nid, 0x7f000001);
	pt_is(p3tcp_my_nid("lo", &nid), 0);
	pt_is(nid, 0x7f000001);
	pt_true(p3tcp_my_nid("no-such-if0", &nid) != 0);
}

static void drop_count_starts_at_zero_and_counts(void)
{
	ptl_handle_md_t md;
	static char c;

	pt_open();
	if (pt_is_target())
		pt_is(pt_status(PTL_SR_DROP_COUNT), 0);
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(&c, 1, 0, PTL_EQ_NONE);
		for (int i = 0; i < 5; i++)
			pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), 9, 0, 0, 0, 0));
	}
	pt_finish();
	if (pt_is_target())
		pt_wait_drops(5);
}

static void wrong_status_registers_are_refused(void)
{
	ptl_sr_value_t value = 4242;

	pt_open();
	pt_code(PtlNIStatus(pt_ni, 0x900, &value), PTL_SR_INDEX_INVALID);
	pt_code(PtlNIStatus(pt_ni, 0x80000000u, &value), PTL_SR_INDEX_INVALID);
	pt_code(PtlNIStatus(pt_ni, 0xffffffffu, &value), PTL_SR_INDEX_INVALID);
	pt_code(PtlNIStatus(pt_ni, PTL_SR_LAST_, &value), PTL_SR_INDEX_INVALID);
	pt_code(PtlNIStatus(pt_ni, PTL_SR_MLIST_LEN(4000), &value), PTL_SR_INDEX_INVALID);
	pt_is(value, 4242);
	for (ptl_sr_index_t i = 0; i < PTL_SR_LAST_; i++)
		pt_ok(PtlNIStatus(pt_ni, i, &value));
}

static void traffic_registers_count(void)
{
	ptl_handle_eq_t eq;
	static char from[100], to[60];

	pt_open();
	eq = pt_eq(16);
	pt_post(4, 0, pt_md(to, sizeof(to), PTL_MD_OP_PUT | PTL_MD_TRUNCATE, eq), PTL_RETAIN, NULL);
	memset(from, 1, sizeof(from));
	pt_ok(PtlPut(pt_bind(from, sizeof(from), 0, PTL_EQ_NONE), PTL_NO_ACK_REQ, pt_id(0), 4, 0, 0,
		     0, 0));
	pt_next(eq, PTL_EVENT_PUT_START);
	pt_next(eq, PTL_EVENT_PUT_END);
	pt_is(pt_status(PTL_SR_SEND_COUNT), 1);
	pt_is(pt_status(PTL_SR_SEND_LENGTH), 100);
	pt_is(pt_status(PTL_SR_RECV_COUNT), 1);
	pt_is(pt_status(PTL_SR_RECV_LENGTH), 60);
}

static void object_registers_count(void)
{
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;

	pt_open();
	eq = pt_eq(4);
	me = pt_post(11, 0, pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, NULL);
	pt_post(11, 0, pt_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, NULL);
	md = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	pt_is(pt_status(PTL_SR_MES_CUR), 2);
	pt_is(pt_status(PTL_SR_MDS_CUR), 3);
	pt_is(pt_status(PTL_SR_EQS_CUR), 1);
	pt_is(pt_status(PTL_SR_MLIST_LEN(11)), 2);
	pt_ok(PtlMEUnlink(me));
	pt_ok(PtlMDUnlink(md));
	pt_ok(PtlEQFree(eq));
	pt_is(pt_status(PTL_SR_MES_CUR), 1);
	pt_is(pt_status(PTL_SR_MDS_CUR), 1);
	pt_is(pt_status(PTL_SR_EQS_CUR), 0);
	pt_is(pt_status(PTL_SR_MES_MAX), 2);
	pt_is(pt_status(PTL_SR_MLIST_LEN(11)), 1);
	pt_is(pt_status(PTL_SR_MLIST_MAX(11)), 2);
}

/* Towards nobody: refused at once, or failed in the END event. If the bytes were taken before it
 * was known, failed in the acknowledgement; never silence. */
static void put_and_get_to_nobody_fail(void)
{
	ptl_process_id_t nobody;
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	char c = 0;
	int rc;

	pt_open();
	nobody = pt_id(0);
	nobody.pid =
		nobody.pid == 65521 ? 65522 : 65521; /* no port that the kernel gives to anybody */
	eq = pt_eq(16);
	md = pt_bind(&c, 1, 0, eq);
	rc = PtlPut(md, PTL_ACK_REQ, nobody, 4, 0, 0, 0, 0);
	if (rc == PTL_OK) {
		do
			pt_ok(PtlEQWait(eq, &ev));
		while (ev.type != PTL_EVENT_ACK &&
		       (ev.type != PTL_EVENT_SEND_END || ev.ni_fail_type == PTL_NI_OK));
		pt_true(ev.ni_fail_type != PTL_NI_OK);
	} else {
		pt_is(rc, PTL_PROCESS_INVALID);
	}
	rc = PtlGet(md, nobody, 4, 0, 0, 0);
	if (rc == PTL_OK) {
		do
			pt_ok(PtlEQWait(eq, &ev));
		while (ev.type != PTL_EVENT_REPLY_END);
		pt_true(ev.ni_fail_type != PTL_NI_OK);
		pt_is(ev.md_handle, md);
	} else {
		pt_is(rc, PTL_PROCESS_INVALID);
	}
	pt_quiet(eq);
}

static void *init_thread(void *arg)
{
	ptl_handle_ni_t *ni = arg;
	int n;

	pt_ok(PtlInit(&n));
	pt_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, ni));
	return NULL;
}

static void threads_that_init_together_share_the_interface(void)
{
	ptl_process_id_t id;
	ptl_handle_ni_t ni[8];
	pthread_t t[8];

	for (int i = 0; i < 8; i++)
		pt_is(pthread_create(&t[i], NULL, init_thread, &ni[i]), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 8; i++) {
		pt_is(ni[i], ni[0]);
		pt_ok(PtlGetId(ni[0], &id));
		pt_ok(PtlNIFini(ni[i]));
	}
	pt_code(PtlGetId(ni[0], &id), PTL_NI_INVALID);
	PtlFini();
}

static const struct pt_test tests[] = {
	PT_CASE(init_is_repeatable_and_counts_interfaces, 1),
	PT_CASE(init_works_again_after_fini, 1),
	PT_CASE(default_limits_are_generous, 1),
	PT_CASE(actual_may_be_null, 1),
	PT_CASE(desired_limits_are_not_exceeded, 1),
	PT_CASE(limits_in_force_are_those_reported, 1),
	PT_CASE(every_descriptor_can_be_had, 1),
	PT_CASE(an_entry_has_the_descriptor_beside_it, 1),
	PT_CASE(absurd_desired_limits_are_survived, 1),
	PT_CASE(repeated_ni_init_returns_the_same_handle, 1),
	PT_CASE(ni_inits_are_counted, 1),
	PT_CASE(handles_do_not_outlive_the_interface, 1),
	PT_CASE(fini_gives_everything_back, 1),
	PT_CASE(any_pid_is_unique_on_the_node, 8),
	PT_CASE(explicit_pid_is_honoured_and_exclusive, 2),
	PT_CASE(a_pid_that_was_asked_for_in_vain_is_still_reached, 2),
	PT_CASE(well_known_pids_work, 1),
	PT_CASE(pid_of_a_killed_process_is_free_again, 2),
	PT_CASE(the_pid_wildcard_is_not_a_pid, 1),
	PT_CASE(wrong_interfaces_are_refused, 1),
	PT_CASE(every_interface_has_its_own_objects, 1),
	PT_CASE(ni_handle_of_every_kind, 1),
	PT_CASE(distance_of_processes, 2),
	PT_CASE(ids_are_those_of_the_user, 1),
	PT_CASE(job_id_comes_from_the_environment, 1),
	PT_CASE(job_id_comes_from_the_runtime, 1),
	PT_CASE(nid_is_an_ipv4_address_of_this_host, 1),
	PT_CASE(nid_is_that_of_the_chosen_interface, 1),
	PT_MODES(drop_count_starts_at_zero_and_counts),
	PT_CASE(wrong_status_registers_are_refused, 1),
	PT_CASE(traffic_registers_count, 1),
	PT_CASE(object_registers_count, 1),
	PT_CASE(put_and_get_to_nobody_fail, 1),
	PT_CASE(threads_that_init_together_share_the_interface, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
