/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A region is mapped as far as it is used. Tested is how much of the address space an interface and
 * its peers take. Tables that become longer, and queues that come late, serve as those that were
 * there from the beginning, also for peers that have less of them mapped.
 */
#include "ptest.h"

#include <portals3_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Both of several times what a table begins with. */
enum {
	PORTAL = 9,
	OTHER = 10,
	ENTRIES = 100000,
	OPERATIONS = 20000,
	LANDINGS = 6000,
	LONG = 40000
};

/* The address space of this process, in MiB. */
static long address_space(void)
{
	char line[256];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	if (!f)
		pt_skip("/proc is not mounted");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmSize: %ld", &kib) == 1)
			break;
	fclose(f);
	return kib / 1024;
}

static void an_interface_and_seven_peers_take_little_address_space(void)
{
	long before = address_space(), most;
	char c = 0;

	if (pt_slow() > 1)
		pt_skip("sanitizers take terabytes");
	pt_open();
	pt_post(PORTAL, 0, pt_md(&c, 1, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
		PTL_RETAIN, NULL);
	pt_barrier();
	for (int i = 0; i < pt_size; i++) {
		ptl_handle_eq_t eq = pt_eq(16);
		ptl_handle_md_t md = pt_bind(&c, 1, 0, eq);

		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_id(i), PORTAL, 0, 0, 0, 0));
		pt_await(eq, PT_ACKED, NULL);
	}
	pt_barrier();
	most = address_space() - before;
	fprintf(stderr, "# %ld MiB for 8 processes\n", most);
	pt_truef(most < 500, "%ld MiB", most); /* glibc's own memory for the helper thread in it */
}

/* The initiator has the target's tables as they were when it connected, and looks up the entries by
 * itself. */
static void entries_that_come_late_are_found(void)
{
	static char bytes[ENTRIES], byte;
	ptl_handle_eq_t eq = PTL_EQ_NONE;

	pt_open_target(PORTAL);
	if (pt_is_initiator()) {
		eq = pt_eq(16);
		pt_ok(PtlPut(pt_bind(&byte, 1, 0, eq), PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 0,
			     0));
		pt_await(eq, PT_ACKED, NULL);
		*pt_word(0) = 1;
	}
	if (pt_is_target()) {
		pt_until(*pt_word(0), 60);
		for (uint64_t i = 1; i <= ENTRIES; i++)
			pt_post(OTHER, i,
				pt_md(&bytes[i - 1], 1, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
				      PTL_EQ_NONE),
				PTL_RETAIN, NULL);
		*pt_word(1) = 1;
	}
	if (pt_is_initiator()) {
		pt_until(*pt_word(1), 60);
		for (uint64_t i = 1; i <= ENTRIES; i += i < 100 ? 1 : 997) {
			ptl_handle_md_t from = pt_bind(&byte, 1, 0, eq);

			pt_ok(PtlPut(from, PTL_ACK_REQ, pt_target(), OTHER, 0, i, 0, i));
			pt_await(eq, PT_ACKED, NULL);
			pt_ok(PtlMDUnlink(from));
		}
	}
	pt_finish();
}

/* The queue's events are where the initiator has nothing mapped yet. */
static void a_large_queue_that_comes_late_gets_events(void)
{
	enum { EVENTS = 1 << 18 };
	ptl_handle_eq_t eq = pt_open_target(PORTAL), large;

	if (pt_is_target()) {
		pt_ok(PtlEQAlloc(pt_ni, EVENTS, PTL_EQ_HANDLER_NONE, &large));
		pt_post(OTHER, 7,
			pt_md(NULL, 0,
			      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
			      large),
			PTL_RETAIN, NULL);
		*pt_word(0) = 1;
	}
	if (pt_is_initiator()) {
		ptl_handle_md_t none = pt_bind(NULL, 0, 0, eq);

		pt_until(*pt_word(0), 60);
		for (int i = 0; i < 100; i++) {
			pt_ok(PtlPut(none, PTL_ACK_REQ, pt_target(), OTHER, 0, 7, 0,
				     (ptl_hdr_data_t)i));
			pt_await(eq, PT_ACKED, NULL);
		}
	}
	pt_finish();
	if (pt_is_target())
		for (int i = 0; i < 100; i++)
			pt_is(pt_next(large, PTL_EVENT_PUT_END).hdr_data, i);
}

/* Free descriptors come from the table's end, which moves as it grows. */
static void descriptors_bound_in_large_numbers_stay_apart(void)
{
	static ptl_handle_md_t md[ENTRIES];
	static char bytes[ENTRIES];

	pt_open();
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < ENTRIES; i++)
			md[i] = pt_bind(&bytes[i], 1, 0, PTL_EQ_NONE);
		for (int i = 0; i < ENTRIES; i++)
			pt_true(pt_query(md[i]).start == &bytes[i]);
		for (int i = 0; i < ENTRIES; i++)
			pt_ok(PtlMDUnlink(md[i]));
	}
	pt_is(pt_status(PTL_SR_MDS_CUR), 0);
}

/* Those of before a growth are taken again, before the table is made longer once more. */
static void descriptors_freed_after_a_growth_serve_again(void)
{
	enum { MANY = 9000, FIRST = 8192 };
	static ptl_handle_md_t md[MANY];
	static char byte;
	uint32_t most = 0;

	pt_open();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++) {
			md[i] = pt_bind(&byte, 1, 0, PTL_EQ_NONE);
			most = most > (md[i] >> 8 & 0xfffff) ? most : md[i] >> 8 & 0xfffff;
		}
		for (int i = 0; i < MANY; i++)
			pt_ok(PtlMDUnlink(md[i]));
	}
	pt_truef(most < 2 * FIRST, "%u", most); /* more than half of it is theirs */
}

/* More operations are under way than the tables have room for in the beginning, and more than are
 * accepted at once. */
static void operations_beyond_the_first_tables_all_end(void)
{
	static char bytes[LONG];
	ptl_handle_eq_t eq;

	pt_open();
	if (pt_rank == 1) {
		pt_post(PORTAL, 0,
			pt_md(bytes, LONG,
			      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE |
				      PTL_MD_EVENT_END_DISABLE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
		pt_barrier();
		pt_until(*pt_word(0), 100);
		pt_is(pt_status(PTL_SR_RECV_COUNT), OPERATIONS); /* none was matched twice */
	} else {
		ptl_handle_md_t few, many;

		eq = pt_eq(4 * OPERATIONS);
		few = pt_bind(bytes, 1, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, eq);
		many = pt_bind(bytes, LONG, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
			       eq);
		pt_barrier();
		for (int i = 0; i < LANDINGS; i++)
			pt_ok(PtlPut(many, PTL_ACK_REQ, pt_id(1), PORTAL, 0, 0, 0, 0));
		for (int i = LANDINGS; i < OPERATIONS; i++)
			pt_ok(PtlPut(few, PTL_ACK_REQ, pt_id(1), PORTAL, 0, 0, 0, 0));
		for (int i = 0; i < OPERATIONS; i++) {
			ptl_event_t ev;

			pt_ok(PtlEQWait(eq, &ev));
			pt_is(ev.type, PTL_EVENT_ACK);
			pt_is(ev.ni_fail_type, PTL_NI_OK);
		}
		*pt_word(0) = 1;
	}
	pt_barrier();
}

static const struct pt_test tests[] = {
	PT_CASE(an_interface_and_seven_peers_take_little_address_space, 8),
	PT_MODES(entries_that_come_late_are_found),
	PT_MODES(a_large_queue_that_comes_late_gets_events),
	PT_CASE(descriptors_bound_in_large_numbers_stay_apart, 1),
	PT_CASE(descriptors_freed_after_a_growth_serve_again, 1),
	PT_LONG(operations_beyond_the_first_tables_all_end, 2, 120),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
