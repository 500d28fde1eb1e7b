/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A peer that the first NAL of PTL_NAL does not lead to, though it has an address of it, is
 * reached by the next one: what was begun meanwhile goes there, all of it once and in order, in
 * both directions. So is one that it no longer leads to. PTL_NAL of this test names two, and
 * PTL_FAULT loses all packets of the first.
 */
#include <linux/filter.h>
#include <portals3_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/support/ptest.h"

enum { PUTS = 4, GETS = 5, SWAPS = 6, NUMBERED = 60, FEW = 5, LONGEST = 100000 };

static unsigned char served[LONGEST], swapped[8], place[NUMBERED * LONGEST];

static size_t length(uint64_t i)
{
	static const size_t some[] = { 8, 0, 3000, 20000, LONGEST };

	return some[i % 5];
}

/* Of number i: by an MD of its own or of segments, with an ack or not, or injected. */
static void start_put(ptl_process_id_t to, uint64_t i, struct pt_buf *buf, ptl_handle_eq_t eq)
{
	static unsigned char inject[8];
	ptl_handle_md_t md;

	if (i % 5 == 0 && i % 2) {
		pt_fill(inject, sizeof(inject), i, 0);
		pt_ok(PtlPutInject(pt_ni, inject, sizeof(inject), PTL_INJECT_NOW, to, PUTS, 0, 0, 0,
				   i));
		return;
	}
	*buf = pt_buf_new(length(i), i % 3 && length(i) ? 7 : 0);
	pt_buf_fill(buf, i);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(buf, PTL_MD_EVENT_START_DISABLE, eq), PTL_RETAIN, &md));
	pt_ok(PtlPut(md, i % 4 ? PTL_NO_ACK_REQ : PTL_ACK_REQ, to, PUTS, 0, 0, 0, i));
}

/* Its events, each once: it has ended, and was acknowledged if that was asked for. */
static void end_put(uint64_t i, struct pt_buf *buf, ptl_handle_eq_t eq)
{
	if (!buf->block && length(i))
		return;
	if (i % 4)
		pt_next(eq, PTL_EVENT_SEND_END);
	else
		pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
	pt_quiet(eq);
	pt_buf_free(buf);
}

/* The numbered puts, one behind the other in memory, each once and in their order. */
static void take_puts(ptl_handle_eq_t eq)
{
	uint64_t starts = 0, ends = 0;
	size_t offset = 0;
	ptl_event_t ev;

	while (ends < NUMBERED) {
		pt_at(__FILE__, __LINE__, "waiting for numbered puts");
		pt_ok(PtlEQWait(eq, &ev));
		pt_is(ev.ni_fail_type, PTL_NI_OK);
		if (ev.type == PTL_EVENT_PUT_END) {
			pt_holds(place + ev.offset, ev.mlength, ev.hdr_data, 0);
			ends++;
			continue;
		}
		pt_is(ev.type, PTL_EVENT_PUT_START);
		pt_is(ev.hdr_data, starts);
		pt_is(ev.offset, offset);
		pt_is(ev.mlength, length(starts));
		offset += ev.mlength;
		starts++;
	}
	pt_quiet(eq);
}

static void serve(ptl_handle_eq_t eq)
{
	pt_fill(served, sizeof(served), 77, 0);
	pt_fill(swapped, sizeof(swapped), 79, 0);
	pt_post(PUTS, 0, pt_md(place, sizeof(place), PTL_MD_OP_PUT, eq), PTL_RETAIN, NULL);
	pt_post(GETS, 0,
		pt_md(served, sizeof(served), PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
		PTL_RETAIN, NULL);
	pt_post(SWAPS, 0,
		pt_md(swapped, sizeof(swapped),
		      PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
		PTL_RETAIN, NULL);
}

static bool goes_by(const char *nal)
{
	char what[64];

	snprintf(what, sizeof(what), "by %s: ", nal);
	return pt_stat_lines(getpid(), what, NULL);
}

static void what_one_way_does_not_carry_goes_by_the_next(void)
{
	static unsigned char got[LONGEST], old[8], new[8];
	struct pt_buf buf[NUMBERED] = { { .length = 0 } };
	ptl_handle_eq_t puts, gets, swaps, each[NUMBERED];
	ptl_handle_md_t md, swap;
	ptl_process_id_t to;

	pt_open();
	puts = pt_eq(2 * NUMBERED);
	gets = pt_eq(8);
	swaps = pt_eq(8);
	to = pt_id(1 - pt_rank);
	serve(puts);
	pt_barrier();
	md = pt_bind(got, sizeof(got), PTL_MD_EVENT_START_DISABLE, gets);
	pt_ok(PtlGet(md, to, GETS, 0, 0, 0));
	for (uint64_t i = 0; i < NUMBERED; i++) {
		each[i] = pt_eq(4);
		start_put(to, i, &buf[i], each[i]);
	}
	pt_fill(new, sizeof(new), 78, 0);
	md = pt_bind(old, sizeof(old), PTL_MD_EVENT_START_DISABLE, swaps);
	swap = pt_bind(new, sizeof(new), PTL_MD_EVENT_START_DISABLE, PTL_EQ_NONE);
	pt_ok(PtlGetPut(md, swap, to, SWAPS, 0, 0, 0, 0));
	pt_next(gets, PTL_EVENT_REPLY_END);
	pt_holds(got, sizeof(got), 77, 0);
	for (uint64_t i = 0; i < NUMBERED; i++)
		end_put(i, &buf[i], each[i]);
	pt_next(swaps, PTL_EVENT_REPLY_END);
	pt_holds(old, sizeof(old), 79, 0);
	take_puts(puts);
	pt_quiet(gets);
	pt_true(!goes_by("eth"));
	pt_true(goes_by("udp"));
	pt_true(pt_stat(getpid(), PT_FAULTS) > 0);
	pt_barrier();
	pt_holds(swapped, sizeof(swapped), 78, 0);
	pt_close();
}

/* ... an event of each operation, and no more; and the next attempt is no different. */
static void whom_no_way_leads_to_is_unreachable(void)
{
	static unsigned char bytes[8];
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t ev;

	if (pt_rank == 0)
		setenv("PTL_FAULT", "drop=1", 1);
	pt_open();
	eq = pt_eq(8);
	pt_barrier();
	md = pt_bind(bytes, sizeof(bytes), PTL_MD_EVENT_START_DISABLE, eq);
	for (int i = 0; i < 2 && pt_rank == 0; i++) {
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_id(1), PUTS, 0, 0, 0, 0));
		pt_ok(PtlGet(md, pt_id(1), GETS, 0, 0, 0));
		for (int k = 0; k < 2; k++) {
			pt_at(__FILE__, __LINE__, "waiting for a failure");
			pt_ok(PtlEQWait(eq, &ev));
			pt_is(ev.ni_fail_type, PTL_NI_UNREACHABLE);
		}
	}
	pt_quiet(eq);
	pt_barrier();
}

/* From now on nothing arrives at our UDP sockets. */
static void deafen_udp(void)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &nothing };
	int deaf = 0;

	for (int fd = 0; fd < 1024; fd++) {
		int domain = 0, type = 0;
		socklen_t len = sizeof(int);

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
		    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || domain != AF_INET ||
		    type != SOCK_DGRAM)
			continue;
		pt_is(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
		deaf++;
	}
	pt_true(deaf > 0);
}

/* Operations under way on a connection fail with it; later ones take another path, again once and
 * in order. */
static void a_way_that_no_longer_leads_there_is_left(void)
{
	static unsigned char got[LONGEST];
	ptl_handle_eq_t puts, gets;
	ptl_handle_md_t md;
	ptl_event_t ev;

	setenv("PTL_NAL", "udp,eth", 1);
	unsetenv("PTL_FAULT");
	pt_open();
	puts = pt_eq(2 * NUMBERED);
	gets = pt_eq(8);
	serve(puts);
	pt_barrier();
	if (pt_rank == 0) {
		md = pt_bind(got, sizeof(got), PTL_MD_EVENT_START_DISABLE, gets);
		pt_ok(PtlGet(md, pt_id(1), GETS, 0, 0, 0));
		pt_next(gets, PTL_EVENT_REPLY_END);
		pt_true(goes_by("udp"));
		deafen_udp();
		pt_ok(PtlGet(md, pt_id(1), GETS, 0, 0, 0));
		pt_at(__FILE__, __LINE__, "waiting for a failure");
		pt_ok(PtlEQWait(gets, &ev));
		pt_is(ev.ni_fail_type, PTL_NI_PEER_DEAD);
		memset(got, 0, sizeof(got));
		md = pt_bind(place, length(0), PTL_MD_EVENT_START_DISABLE, PTL_EQ_NONE);
		for (uint64_t i = 0; i < FEW; i++)
			pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_id(1), PUTS, 0, 0, 0, i));
		md = pt_bind(got, sizeof(got), PTL_MD_EVENT_START_DISABLE, gets);
		pt_ok(PtlGet(md, pt_id(1), GETS, 0, 0, 0));
		pt_next(gets, PTL_EVENT_REPLY_END);
		pt_holds(got, sizeof(got), 77, 0);
		pt_quiet(gets);
		pt_true(!goes_by("udp"));
		pt_true(goes_by("eth"));
	} else {
		for (uint64_t i = 0; i < FEW; i++) {
			pt_next(puts, PTL_EVENT_PUT_START);
			pt_ok(PtlEQWait(puts, &ev));
			pt_is(ev.type, PTL_EVENT_PUT_END);
			pt_is(ev.hdr_data, i);
		}
		pt_quiet(puts);
	}
	pt_barrier();
	pt_close();
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = {
		PT_CASE(what_one_way_does_not_carry_goes_by_the_next, 2),
		PT_CASE(whom_no_way_leads_to_is_unreachable, 2),
		PT_CASE(a_way_that_no_longer_leads_there_is_left, 2),
	};

	return PT_MAIN(argc, argv, tests);
}
