/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The first Portals program: rank 0 puts a text into rank 1's memory, then gets one from there.
 * Rank 1 only says where its memory is; it takes no part in moving the data.
 * Run it with: mpiexec -n 2 hello_put
 */
#include <cnos_mpi_os.h>
#include <p3rt/p3rt.h>
#include <portals3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX = 4, INBOX = 1, SHELF = 2 }; /* portal index; match bits of the two entries */

static const char hello[] = "hello from rank 0, put into your memory";
static const char reply[] = "this stood in rank 1's memory and was fetched with a get";

static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;
static ptl_process_id_t peer; /* the other rank */

static void check(int code, const char *what)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "hello_put: %s: %s\n", what, PtlErrorStr((unsigned)code));
	exit(1);
}

/* Waits for an event of this kind; others on the way to it are fine. */
static ptl_event_t wait_for(ptl_event_kind_t kind)
{
	ptl_event_t ev;

	do {
		check(PtlEQWait(eq, &ev), "PtlEQWait");
		if (ev.ni_fail_type != PTL_NI_OK) {
			fprintf(stderr, "hello_put: operation failed: %s\n",
				PtlNIFailStr(ni, ev.ni_fail_type));
			exit(1);
		}
	} while (ev.type != kind);
	return ev;
}

/* Makes memory reachable: a match entry says who may come with which bits, the memory descriptor
 * attached to it says what they find there and may do. */
static void expose(ptl_match_bits_t bits, ptl_md_t md)
{
	ptl_handle_me_t me;

	check(PtlMEAttach(ni, INDEX, peer, bits, 0, PTL_UNLINK, PTL_INS_AFTER, &me), "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
}

static void rank_1(void)
{
	static char inbox[64], shelf[sizeof(reply)];
	ptl_md_t md = { .start = inbox,
			.length = sizeof(inbox),
			.threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_OP_PUT,
			.eq_handle = eq };
	ptl_event_t ev;

	expose(INBOX, md);
	memcpy(shelf, reply, sizeof(reply));
	md.start = shelf;
	md.length = sizeof(shelf);
	md.options = PTL_MD_OP_GET;
	expose(SHELF, md);
	cnos_barrier(); /* a put that finds no entry is dropped: post first, then let rank 0 go */

	ev = wait_for(PTL_EVENT_PUT_END);
	printf("rank 1: %llu bytes arrived: \"%s\"\n", (unsigned long long)ev.mlength, inbox);
	if (strcmp(inbox, hello) != 0)
		exit(1);
	wait_for(PTL_EVENT_GET_END);
}

static void rank_0(void)
{
	static char out[sizeof(hello)], in[sizeof(reply)];
	ptl_md_t md = {
		.start = out, .length = sizeof(out), .threshold = PTL_MD_THRESH_INF, .eq_handle = eq
	};
	ptl_handle_md_t put_md, get_md;

	memcpy(out, hello, sizeof(hello));
	check(PtlMDBind(ni, md, PTL_RETAIN, &put_md), "PtlMDBind");
	md.start = in;
	md.length = sizeof(in);
	check(PtlMDBind(ni, md, PTL_RETAIN, &get_md), "PtlMDBind");
	cnos_barrier();

	/* The whole of put_md goes to whatever entry matches; ACK says that it is there. */
	check(PtlPut(put_md, PTL_ACK_REQ, peer, INDEX, 0, INBOX, 0, 0), "PtlPut");
	wait_for(PTL_EVENT_ACK);
	check(PtlGet(get_md, peer, INDEX, 0, SHELF, 0), "PtlGet");
	wait_for(PTL_EVENT_REPLY_END);
	printf("rank 0: fetched: \"%s\"\n", in);
	if (strcmp(in, reply) != 0)
		exit(1);
}

int main(void)
{
	unsigned rank, size;
	int interfaces;

	check(PtlInit(&interfaces), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	if (PtlGetRank(ni, &rank, &size) != PTL_OK || size != 2) {
		fputs("hello_put: needs two ranks: mpiexec -n 2 hello_put\n", stderr);
		return 2;
	}
	check(PtlGetRankId(ni, !rank, &peer), "PtlGetRankId");
	check(PtlEQAlloc(ni, 16, PTL_EQ_HANDLER_NONE, &eq), "PtlEQAlloc");
	cnos_barrier_init(ni); /* the job's barrier, from cnos_mpi_os.h */
	if (rank)
		rank_1();
	else
		rank_0();
	cnos_barrier(); /* nobody leaves while the other may still need its memory */
	check(PtlNIFini(ni), "PtlNIFini");
	PtlFini();
	return 0;
}
