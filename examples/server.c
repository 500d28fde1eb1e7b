/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A server that needs no launcher: it takes a well-known pid, and clients name it by nid:pid. A
 * request is a put of no bytes at all, whose hdr_data says under which match bits the client keeps
 * the text. The server gets the text when it is ready for it, and puts the answer back: however
 * many requests arrive, they need no memory here but a place in the event queue.
 * Run it with: server PID REQUESTS
 */
#include <ctype.h>
#include <portals3.h>
#include <stdio.h>
#include <stdlib.h>

#include "service.h"

static ptl_handle_ni_t ni;
static ptl_handle_eq_t requests; /* events of requests that arrive */
static ptl_handle_eq_t work;     /* events of the one that is being served */
static ptl_handle_md_t text_md;
static char text[SERVICE_TEXT];

static void check(int code, const char *what)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "server: %s: %s\n", what, PtlErrorStr((unsigned)code));
	exit(1);
}

/* Waits for the event; 0 when the operation failed, which is that client's loss and not ours. */
static int wait_for(ptl_handle_eq_t eq, ptl_event_kind_t kind, ptl_event_t *ev)
{
	do {
		check(PtlEQWait(eq, ev), "PtlEQWait");
		if (ev->ni_fail_type != PTL_NI_OK) {
			fprintf(stderr, "server: a client failed: %s\n",
				PtlNIFailStr(ni, ev->ni_fail_type));
			return 0;
		}
	} while (ev->type != kind);
	return 1;
}

/* Anybody may put a request here. The entry has no memory: PTL_MD_TRUNCATE cuts what is sent to
 * nothing, and the event with initiator and hdr_data is all we want. */
static void take_requests(void)
{
	ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = { .threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE };
	ptl_handle_me_t me;

	check(PtlEQAlloc(ni, 1024, PTL_EQ_HANDLER_NONE, &requests), "PtlEQAlloc");
	md.eq_handle = requests;
	check(PtlMEAttach(ni, SERVICE_INDEX, anybody, SERVICE_REQUEST, 0, PTL_RETAIN, PTL_INS_AFTER,
			  &me),
	      "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
}

/* The descriptor that texts are fetched into and answers sent from. */
static void prepare_work(void)
{
	ptl_md_t md = { .start = text, .length = sizeof(text), .threshold = PTL_MD_THRESH_INF };

	check(PtlEQAlloc(ni, 16, PTL_EQ_HANDLER_NONE, &work), "PtlEQAlloc");
	md.eq_handle = work;
	check(PtlMDBind(ni, md, PTL_RETAIN, &text_md), "PtlMDBind");
}

static void serve(ptl_process_id_t client, ptl_match_bits_t bits)
{
	ptl_event_t ev;

	while (PtlEQGet(work, &ev) == PTL_OK)
		; /* what a client that failed left behind */
	check(PtlGet(text_md, client, SERVICE_INDEX, 0, bits, 0), "PtlGet");
	if (!wait_for(work, PTL_EVENT_REPLY_END, &ev))
		return;
	text[sizeof(text) - 1] = '\0';
	printf("request of nid %u pid %u: \"%s\"\n", client.nid, client.pid, text);
	for (char *c = text; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	check(PtlPut(text_md, PTL_ACK_REQ, client, SERVICE_INDEX, 0, bits, 0, 0), "PtlPut");
	wait_for(work, PTL_EVENT_ACK, &ev);
}

int main(int argc, char **argv)
{
	ptl_process_id_t self;
	ptl_event_t ev;
	int interfaces;

	if (argc != 3) {
		fputs("usage: server PID REQUESTS\n", stderr);
		return 2;
	}
	check(PtlInit(&interfaces), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, (ptl_pid_t)strtoul(argv[1], NULL, 10), NULL, NULL, &ni),
	      "PtlNIInit with that pid");
	check(PtlGetId(ni, &self), "PtlGetId");
	prepare_work();
	take_requests();
	printf("serving at %u:%u\n", self.nid, self.pid);
	fflush(stdout);
	for (long left = strtol(argv[2], NULL, 10); left > 0; left--)
		if (wait_for(requests, PTL_EVENT_PUT_END, &ev))
			serve(ev.initiator, ev.hdr_data);
	check(PtlNIFini(ni), "PtlNIFini");
	PtlFini();
	return 0;
}
