/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The client of server.c: leaves a text in its own memory, tells the server where, and waits until
 * the server has fetched it and put the answer in its place.
 * Run it with: client NID:PID TEXT
 */
#include <portals3.h>
#include <stdio.h>
#include <stdlib.h>

#include "service.h"

enum { TEXT_BITS = 0x1000, PATIENCE_MS = 10000 };

static ptl_handle_ni_t ni;

static void check(int code, const char *what)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "client: %s: %s\n", what, PtlErrorStr((unsigned)code));
	exit(1);
}

/* A put to a process that is not there fails, a put that no entry matches is dropped without a
 * word: who must not wait for ever gives a limit. */
static void wait_for(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev;
	int which, code;

	do {
		code = PtlEQPoll(&eq, 1, PATIENCE_MS, &ev, &which);
		if (code == PTL_EQ_EMPTY) {
			fputs("client: the server does not answer\n", stderr);
			exit(1);
		}
		check(code, "PtlEQPoll");
		if (ev.ni_fail_type != PTL_NI_OK) {
			fprintf(stderr, "client: no connection to the server: %s\n",
				PtlNIFailStr(ni, ev.ni_fail_type));
			exit(1);
		}
	} while (ev.type != kind);
}

int main(int argc, char **argv)
{
	static char text[SERVICE_TEXT];
	ptl_md_t md = { .start = text,
			.length = sizeof(text),
			.threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_OP_GET | PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE };
	ptl_handle_eq_t eq;
	ptl_handle_me_t me;
	ptl_handle_md_t request;
	ptl_process_id_t server;
	int interfaces;

	if (argc != 3 || sscanf(argv[1], "%u:%u", &server.nid, &server.pid) != 2) {
		fputs("usage: client NID:PID TEXT\n", stderr);
		return 2;
	}
	check(PtlInit(&interfaces), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	check(PtlEQAlloc(ni, 16, PTL_EQ_HANDLER_NONE, &eq), "PtlEQAlloc");

	/* The text, for the server and nobody else: it may get it and put its answer there. */
	snprintf(text, sizeof(text), "%s", argv[2]);
	md.eq_handle = eq;
	check(PtlMEAttach(ni, SERVICE_INDEX, server, TEXT_BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
	      "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");

	/* The request: no bytes, only hdr_data. */
	md.length = 0;
	check(PtlMDBind(ni, md, PTL_RETAIN, &request), "PtlMDBind");
	check(PtlPut(request, PTL_NO_ACK_REQ, server, SERVICE_INDEX, 0, SERVICE_REQUEST, 0,
		     TEXT_BITS),
	      "PtlPut");
	wait_for(eq, PTL_EVENT_GET_END);
	wait_for(eq, PTL_EVENT_PUT_END);
	puts(text);
	check(PtlNIFini(ni), "PtlNIFini");
	PtlFini();
	return 0;
}
