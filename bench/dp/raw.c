/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A ping-pong of puts without DP between the same two processes: what DP is laid beside. Each
 * side spins on PtlEQGet, and DP's thread is kept from waiting for messages meanwhile. Offsets are
 * the sender's, so that nothing has to be given back.
 */
#include <portals3_ext.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { PORTAL = 60 };

struct raw {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq, sent;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	ptl_process_id_t peer;
	char *place;
};

static void need(int err, const char *what)
{
	if (err != PTL_OK)
		bench_fail(what);
}

/* Each tells the other its process id. */
static void open_raw(struct bench *b, struct raw *r, int size)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_process_id_t own;
	ptl_md_t md = { .threshold = PTL_MD_THRESH_INF };
	char *at;

	r->place = calloc(1, (size_t)size + 1);
	if (!r->place)
		bench_fail("calloc");
	need(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &r->ni), "PtlNIInit");
	need(PtlEQAlloc(r->ni, 64, PTL_EQ_HANDLER_NONE, &r->eq), "PtlEQAlloc");
	need(PtlEQAlloc(r->ni, 64, PTL_EQ_HANDLER_NONE, &r->sent), "PtlEQAlloc");
	md.start = r->place;
	md.length = (ptl_size_t)size;
	md.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_ACK_DISABLE |
		     PTL_MD_EVENT_START_DISABLE;
	md.eq_handle = r->eq;
	need(PtlMEMDAttach(r->ni, PORTAL, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN,
			   &r->me, NULL),
	     "PtlMEMDAttach");
	md.start = b->buffer;
	md.options = PTL_MD_EVENT_START_DISABLE;
	md.eq_handle = r->sent;
	need(PtlMDBind(r->ni, md, PTL_RETAIN, &r->md), "PtlMDBind");
	need(PtlGetId(r->ni, &own), "PtlGetId");
	if (dp_write(b->orders, &own, sizeof(own)) < 0 ||
	    dp_read(b->orders, &at) != (int)sizeof(own))
		bench_fail("an address");
	memcpy(&r->peer, at, sizeof(r->peer));
	dp_fsync(b->orders, 1);
}

static void close_raw(const struct raw *r)
{
	PtlMEUnlink(r->me);
	PtlMDUnlink(r->md);
	PtlEQFree(r->eq);
	PtlEQFree(r->sent);
	PtlNIFini(r->ni);
	free(r->place);
}

static void put(const struct bench *b, const struct raw *r, int size)
{
	ptl_event_t event;
	int err = PtlPutInject(r->ni, b->buffer, (ptl_size_t)size, PTL_INJECT_NOW, r->peer, PORTAL,
			       0, 0, 0, 0);

	if (err == PTL_NO_SPACE) {
		while (PtlEQGet(r->sent, &event) == PTL_OK)
			;
		err = PtlPut(r->md, PTL_NO_ACK_REQ, r->peer, PORTAL, 0, 0, 0, 0);
	}
	need(err, "PtlPut");
}

static void take(const struct raw *r)
{
	ptl_event_t event;

	while (PtlEQGet(r->eq, &event) == PTL_EQ_EMPTY)
		;
}

double bench_raw_one_way(struct bench *b, int size)
{
	double *sample = calloc((size_t)b->rounds, sizeof(*sample));
	struct perf_stats s;
	struct raw r;

	if (!sample)
		bench_fail("calloc");
	bench_order(b, (struct order){ .kind = ORDER_RAW, .size = size, .count = b->rounds });
	open_raw(b, &r, size);
	bench_watch(b, DP_WATCH_NEVER);
	for (int i = 0; i < b->rounds; i++) {
		uint64_t start = perf_now();

		put(b, &r, size);
		take(&r);
		sample[i] = perf_ns(perf_now() - start) / 2;
	}
	perf_stats_of(sample, (size_t)b->rounds, &s);
	bench_watch(b, DP_WATCH_AUTO);
	/* the other side has taken ours when its answer is here */
	close_raw(&r);
	free(sample);
	return s.middle;
}

void bench_raw_answer(struct bench *b, int size, int count)
{
	struct raw r;

	open_raw(b, &r, size);
	bench_watch(b, DP_WATCH_NEVER);
	for (int i = 0; i < count; i++) {
		take(&r);
		put(b, &r, size);
	}
	bench_watch(b, DP_WATCH_AUTO);
	close_raw(&r);
}
