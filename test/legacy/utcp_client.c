/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A client as they were written for Sandia's reference implementation over TCP: its header names,
 * ranks from the environment or the launcher, texts from ptl_err_str[]. Every rank puts a number
 * into every other rank's slot, reads its neighbour's slots back, and counts its own; all calls and
 * their order are those such programs used. It must build and run without edits.
 */
#include <portals3.h>
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>
#include <p3api/debug.h>

#include <stdio.h>
#include <stdlib.h>

#define MAX_RANKS 64
#define SLOT_PT   33
#define SLOT_BITS 0xabcdULL
#define HERE_BITS 0xbeefULL
#define RETRY_MS  100

#define PTL_CHECK(call)                                                                            \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_ != PTL_OK) {                                                               \
			fprintf(stderr, "%s: %s\n", #call, ptl_err_str[rc_]);                      \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static unsigned long slots[MAX_RANKS];
static unsigned long fetched[MAX_RANKS];

static char here[3][MAX_RANKS]; /* who has come to which barrier */

static ptl_handle_ni_t ni_h = PTL_INVALID_HANDLE;
static ptl_handle_eq_t slot_eq_h = PTL_EQ_NONE;
static ptl_handle_eq_t my_eq_h = PTL_EQ_NONE;
static ptl_handle_eq_t here_eq_h = PTL_EQ_NONE;

static void wait_for(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev;

	do {
		PTL_CHECK(PtlEQWait(eq, &ev));
		if (ev.ni_fail_type != PTL_NI_OK) {
			fprintf(stderr, "%s: %s\n", PtlEventKindStr(ev.type),
				PtlNIFailStr(ni_h, ev.ni_fail_type));
			exit(1);
		}
	} while (ev.type != kind);
}

static void expose(ptl_match_bits_t bits, void *start, ptl_size_t length, ptl_handle_eq_t eq_h)
{
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_handle_me_t me_h;
	ptl_handle_md_t md_h;
	ptl_md_t md;

	PTL_CHECK(PtlMEAttach(ni_h, SLOT_PT, any, bits, 0, PTL_RETAIN, PTL_INS_AFTER, &me_h));
	md.start = start;
	md.length = length;
	md.threshold = PTL_MD_THRESH_INF;
	md.max_size = 0;
	md.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	md.user_ptr = NULL;
	md.eq_handle = eq_h;
	PTL_CHECK(PtlMDAttach(me_h, md, PTL_RETAIN, &md_h));
}

static ptl_handle_md_t bind_mine(void *start, ptl_size_t length, int threshold)
{
	ptl_handle_md_t md_h;
	ptl_md_t md;

	md.start = start;
	md.length = length;
	md.threshold = threshold;
	md.max_size = 0;
	md.options = 0;
	md.user_ptr = NULL;
	md.eq_handle = my_eq_h;
	PTL_CHECK(PtlMDBind(ni_h, md, PTL_UNLINK, &md_h));
	return md_h;
}

/* SEND_START, SEND_END, ACK, UNLINK: a threshold of two unlinks after the ack. */
static void put_mine(ptl_process_id_t to, unsigned my_rank)
{
	unsigned long mine = 1000 + my_rank;
	ptl_handle_md_t md_h = bind_mine(&mine, sizeof(mine), 2);

	PTL_CHECK(PtlPut(md_h, PTL_ACK_REQ, to, SLOT_PT, 0, SLOT_BITS, my_rank * sizeof(mine), 0));
	wait_for(my_eq_h, PTL_EVENT_ACK);
	wait_for(my_eq_h, PTL_EVENT_UNLINK);
}

/* REPLY_START, REPLY_END, UNLINK: a threshold of one. */
static void get_slots(ptl_process_id_t from, unsigned nranks)
{
	ptl_handle_md_t md_h = bind_mine(fetched, nranks * sizeof(fetched[0]), 1);

	PTL_CHECK(PtlGet(md_h, from, SLOT_PT, 0, SLOT_BITS, 0));
	wait_for(my_eq_h, PTL_EVENT_REPLY_END);
	wait_for(my_eq_h, PTL_EVENT_UNLINK);
}

/* A message to a process that exposes nothing yet is dropped without a word: send until it is
 * acked. */
static void tell(ptl_process_id_t to, int barrier, unsigned my_rank)
{
	ptl_handle_eq_t eq_h;
	ptl_handle_md_t md_h;
	ptl_event_t ev;
	ptl_md_t md;
	char yes = 1;
	int which, rc;

	PTL_CHECK(PtlEQAlloc(ni_h, 16, PTL_EQ_HANDLER_NONE, &eq_h));
	md.start = &yes;
	md.length = 1;
	md.threshold = PTL_MD_THRESH_INF;
	md.max_size = 0;
	md.options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE;
	md.user_ptr = NULL;
	md.eq_handle = eq_h;
	PTL_CHECK(PtlMDBind(ni_h, md, PTL_RETAIN, &md_h));
	do {
		PTL_CHECK(PtlPut(md_h, PTL_ACK_REQ, to, SLOT_PT, 0, HERE_BITS,
				 (ptl_size_t)barrier * MAX_RANKS + my_rank, 0));
		rc = PtlEQPoll(&eq_h, 1, RETRY_MS, &ev, &which);
	} while (rc == PTL_EQ_EMPTY);
	PTL_CHECK(rc);
	PTL_CHECK(PtlMDUnlink(md_h));
	PTL_CHECK(PtlEQFree(eq_h));
}

static void barrier(int number, unsigned my_rank, unsigned nranks)
{
	ptl_process_id_t id;
	ptl_event_t ev;
	unsigned there;
	int which;

	for (unsigned i = 0; i < nranks; i++) {
		PTL_CHECK(PtlGetRankId(ni_h, i, &id));
		tell(id, number, my_rank);
	}
	do {
		PtlEQPoll(&here_eq_h, 1, RETRY_MS, &ev, &which);
		there = 0;
		for (unsigned i = 0; i < nranks; i++)
			there += ((volatile char *)here[number])[i];
	} while (there < nranks);
}

int main(void)
{
	ptl_process_id_t id, any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_ni_limits_t limits;
	unsigned rank, nranks;
	unsigned long distance;
	ptl_uid_t uid;
	int num_if, bad = 0;

	PTL_CHECK(PtlInit(&num_if));
	PtlNIDebug(PTL_INVALID_HANDLE, PTL_DBG_NONE);
	PTL_CHECK(PtlSetRank(PTL_INVALID_HANDLE, (unsigned)-1, (unsigned)-1));
	PTL_CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &limits, &ni_h));
	PTL_CHECK(PtlGetRank(ni_h, &rank, &nranks));
	PTL_CHECK(PtlGetUid(ni_h, &uid));
	PTL_CHECK(PtlACEntry(ni_h, 0, any, uid, PTL_JID_ANY, PTL_PT_INDEX_ANY));
	PTL_CHECK(PtlEQAlloc(ni_h, 64, PTL_EQ_HANDLER_NONE, &my_eq_h));
	if (nranks > MAX_RANKS)
		return 1;
	PTL_CHECK(PtlEQAlloc(ni_h, 4 * MAX_RANKS, PTL_EQ_HANDLER_NONE, &slot_eq_h));
	PTL_CHECK(PtlEQAlloc(ni_h, 16 * MAX_RANKS, PTL_EQ_HANDLER_NONE, &here_eq_h));
	expose(SLOT_BITS, slots, sizeof(slots), slot_eq_h);
	expose(HERE_BITS, here, sizeof(here), here_eq_h);
	PTL_CHECK(PtlGetRankId(ni_h, rank, &id));
	printf("rank %u of %u is nid %#x pid %u\n", rank, nranks, id.nid, id.pid);

	for (unsigned i = 0; i < nranks; i++) {
		PTL_CHECK(PtlGetRankId(ni_h, i, &id));
		PTL_CHECK(PtlNIDist(ni_h, id, &distance));
	}
	barrier(0, rank, nranks);
	for (unsigned i = 0; i < nranks; i++) {
		PTL_CHECK(PtlGetRankId(ni_h, i, &id));
		put_mine(id, rank);
	}
	for (unsigned i = 0; i < nranks; i++)
		wait_for(slot_eq_h, PTL_EVENT_PUT_END);
	for (unsigned i = 0; i < nranks; i++)
		bad += slots[i] != 1000 + i;
	PTL_CHECK(PtlGetRankId(ni_h, (rank + 1) % nranks, &id));
	barrier(1, rank, nranks);
	get_slots(id, nranks);
	for (unsigned i = 0; i < nranks; i++)
		bad += fetched[i] != 1000 + i;
	barrier(2, rank, nranks);
	PTL_CHECK(PtlNIFini(ni_h));
	PtlFini();
	printf("rank %u: %s\n", rank, bad ? "WRONG" : "right");
	return bad != 0;
}
