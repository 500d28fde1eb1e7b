/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The cost of single calls: rank 0 alone, without the other rank, times small batches of each. This
 * is where a message passing library's own time goes: it posts an entry for each receive, that
 * entry is unlinked by its message, and the queue is looked at in between. Puts to oneself measure
 * the cost of a message within one process.
 */
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "report.h"

#define BATCH     64
#define CATCHALLS 4
#define CROWD     10000
#define POST_BITS UINT64_C(0x0001000700000000) /* context, source; the tag is the number */
#define IGNORED   (UINT64_C(7) << 61)

struct calls {
	size_t batch; /* calls of the row in a sample */
	ptl_process_id_t self;
	ptl_handle_me_t catchall[CATCHALLS], me[BATCH], crowd[CROWD];
	ptl_handle_md_t md[BATCH], out; /* `out`: a put of 8 bytes */
	ptl_md_t exposed, once;         /* of entries: for ever; for one message */
};

/* ---- what is called ---- */

static void eq_get(struct perf *p, struct calls *c)
{
	ptl_event_t ev;

	for (size_t i = 0; i < c->batch; i++)
		if (PtlEQGet(p->eq, &ev) != PTL_EQ_EMPTY)
			perf_fail("an event that nobody waits for");
}

static void eq_poll(struct perf *p, struct calls *c)
{
	ptl_event_t ev;
	int which;

	for (size_t i = 0; i < c->batch; i++)
		if (PtlEQPoll(&p->eq, 1, 0, &ev, &which) != PTL_EQ_EMPTY)
			perf_fail("an event that nobody waits for");
}

static void bind(struct perf *p, struct calls *c)
{
	for (size_t i = 0; i < c->batch; i++)
		perf_ok(PtlMDBind(p->ni, c->exposed, PTL_RETAIN, &c->md[i]), "PtlMDBind");
}

static void md_unlink(struct perf *p, struct calls *c)
{
	(void)p;
	for (size_t i = 0; i < c->batch; i++)
		perf_ok(PtlMDUnlink(c->md[i]), "PtlMDUnlink");
}

static void md_update(struct perf *p, struct calls *c)
{
	(void)p;
	for (size_t i = 0; i < c->batch; i++)
		perf_ok(PtlMDUpdate(c->md[i], NULL, &c->exposed, PTL_EQ_NONE), "PtlMDUpdate");
}

static void me_attach(struct perf *p, struct calls *c)
{
	for (size_t i = 0; i < c->batch; i++)
		perf_ok(PtlMEAttach(p->ni, PERF_PT_DATA, c->self, POST_BITS + i, IGNORED,
				    PTL_UNLINK, PTL_INS_BEFORE, &c->me[i]),
			"PtlMEAttach");
}

static void md_attach(struct perf *p, struct calls *c)
{
	(void)p;
	for (size_t i = 0; i < c->batch; i++)
		perf_ok(PtlMDAttach(c->me[i], c->exposed, PTL_UNLINK, NULL), "PtlMDAttach");
}

static void me_unlink(struct perf *p, struct calls *c)
{
	(void)p;
	for (size_t i = 0; i < c->batch; i++)
		perf_ok(PtlMEUnlink(c->me[i]), "PtlMEUnlink");
}

static void post_one(struct perf *p, struct calls *c, uint64_t tag, ptl_handle_me_t *me)
{
	perf_ok(PtlMEMDPost(p->ni, c->catchall[0], c->self, POST_BITS + tag, IGNORED, PTL_UNLINK,
			    PTL_INS_BEFORE, c->once, PTL_UNLINK, me, NULL, p->eq),
		"PtlMEMDPost");
}

static void post(struct perf *p, struct calls *c)
{
	for (size_t i = 0; i < c->batch; i++)
		post_one(p, c, i, &c->me[i]);
}

/* A put to oneself and its event. */
static void put(struct perf *p, struct calls *c, ptl_match_bits_t bits)
{
	ptl_event_t ev;
	int rc;

	perf_ok(PtlPut(c->out, PTL_NO_ACK_REQ, c->self, PERF_PT_DATA, 0, bits, 0, 0), "PtlPut");
	while ((rc = PtlEQGet(p->eq, &ev)) == PTL_EQ_EMPTY)
		;
	perf_ok(rc, "PtlEQGet");
	if (ev.type != PTL_EVENT_PUT_END || ev.match_bits != bits)
		perf_wrong_event(&ev, PTL_EVENT_PUT_END);
}

static void unlinked(struct perf *p)
{
	ptl_event_t ev;

	perf_ok(PtlEQGet(p->eq, &ev), "PtlEQGet");
	if (ev.type != PTL_EVENT_UNLINK)
		perf_wrong_event(&ev, PTL_EVENT_UNLINK);
}

static void put_kept(struct perf *p, struct calls *c)
{
	for (size_t i = 0; i < c->batch; i++)
		put(p, c, POST_BITS);
}

/* As put_kept(), but the entry is posted for the put and goes with it. */
static void post_put(struct perf *p, struct calls *c)
{
	for (size_t i = 0; i < c->batch; i++) {
		post_one(p, c, i, &c->me[i]);
		put(p, c, POST_BITS + i);
		unlinked(p);
	}
}

/* ---- what is there before and taken away after, not timed ---- */

static void attach(struct perf *p, struct calls *c)
{
	me_attach(p, c);
	md_attach(p, c);
}

static void put_posted(struct perf *p, struct calls *c)
{
	for (size_t i = 0; i < c->batch; i++) {
		put(p, c, POST_BITS + i);
		unlinked(p);
	}
}

static void crowd(struct perf *p, struct calls *c)
{
	for (size_t i = 0; i < CROWD; i++)
		post_one(p, c, BATCH + i, &c->crowd[i]);
}

static void disperse(struct perf *p, struct calls *c)
{
	(void)p;
	for (size_t i = 0; i < CROWD; i++)
		perf_ok(PtlMEUnlink(c->crowd[i]), "PtlMEUnlink");
}

typedef void step_fn(struct perf *p, struct calls *c);

/* `first` and `last` once, `before` and `after` around each sample. */
static const struct row {
	const char *name;
	size_t batch;
	step_fn *run, *before, *after, *first, *last;
} rows[] = {
	{ "PtlEQGet, empty", BATCH, eq_get, NULL, NULL, NULL, NULL },
	{ "PtlEQPoll, empty, no wait", BATCH, eq_poll, NULL, NULL, NULL, NULL },
	{ "PtlMDBind", BATCH, bind, NULL, md_unlink, NULL, NULL },
	{ "PtlMDUpdate", BATCH, md_update, NULL, NULL, bind, md_unlink },
	{ "PtlMDUnlink", BATCH, md_unlink, bind, NULL, NULL, NULL },
	{ "PtlMEAttach", BATCH, me_attach, NULL, me_unlink, NULL, NULL },
	{ "PtlMDAttach", BATCH, md_attach, me_attach, me_unlink, NULL, NULL },
	{ "PtlMEUnlink, with its MD", BATCH, me_unlink, attach, NULL, NULL, NULL },
	{ "PtlMEMDPost, up to 4", 4, post, NULL, me_unlink, NULL, NULL },
	{ "PtlMEMDPost, up to 64", BATCH, post, NULL, me_unlink, NULL, NULL },
	{ "PtlMEMDPost, 10000 posted", BATCH, post, NULL, me_unlink, crowd, disperse },
	{ "put to oneself and its event", BATCH, put_kept, NULL, NULL, attach, me_unlink },
	{ "the same into 64 posted", BATCH, put_posted, post, NULL, NULL, NULL },
	{ "... 10000 posted", BATCH, put_posted, post, NULL, crowd, disperse },
	{ "post, put and both events", BATCH, post_put, NULL, NULL, NULL, NULL },
	{ "... 10000 posted", BATCH, post_put, NULL, NULL, crowd, disperse },
};

/* ---- measuring ---- */

#define MOST 20000 /* samples of a row */

static void sample(struct perf *p, struct calls *c, const struct row *r, double *ns)
{
	uint64_t start;

	if (r->before)
		r->before(p, c);
	start = perf_now();
	r->run(p, c);
	*ns = perf_ns(perf_now() - start) - perf_clock_cost();
	if (r->after)
		r->after(p, c);
}

static void measure(struct perf *p, struct calls *c, const struct row *r, double *value)
{
	struct perf_point pt = { .test = "calls", .variant = r->name, .unit = "ns" };
	uint64_t end = perf_now() + perf_ticks(p->opt.min_time_ms * 1e6);
	struct perf_result result = { 0 };
	struct perf_values v;
	size_t n = 0;

	perf_watch("measuring %s", r->name);
	c->batch = r->batch;
	if (r->first)
		r->first(p, c);
	for (int i = 0; i < 16; i++) /* warm */
		sample(p, c, r, value);
	while (n < MOST && (perf_now() < end || n < 16))
		sample(p, c, r, &value[n++]);
	if (r->last)
		r->last(p, c);
	perf_stats_of(value, n, &result.sample);
	pt.scale = 1 / (double)r->batch;
	v = perf_values_of(&pt, &result);
	perf_record(p, &pt, &result);
	perf_say(p, "%30s %10.1f %10.1f", r->name, v.median, v.p99);
}

static void open_calls(struct perf *p, struct calls *c)
{
	ptl_process_id_t anyone = { PTL_NID_ANY, PTL_PID_ANY };

	perf_ok(PtlGetId(p->ni, &c->self), "PtlGetId");
	c->exposed = (ptl_md_t){ .start = p->rx,
				 .length = 64,
				 .threshold = PTL_MD_THRESH_INF,
				 .options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE |
					    PTL_MD_EVENT_START_DISABLE,
				 .eq_handle = p->eq };
	c->once = c->exposed;
	c->once.threshold = 1;
	c->once.options &= ~(unsigned int)PTL_MD_MANAGE_REMOTE;
	for (int i = 0; i < CATCHALLS; i++) {
		perf_ok(PtlMEAttach(p->ni, PERF_PT_DATA, anyone, 0, ~IGNORED, PTL_RETAIN,
				    PTL_INS_AFTER, &c->catchall[i]),
			"PtlMEAttach");
		perf_ok(PtlMDAttach(c->catchall[i], c->exposed, PTL_RETAIN, NULL), "PtlMDAttach");
	}
	c->out = perf_bind(p, p->tx, 8, PERF_ACKS);
}

static void close_calls(struct perf *p, struct calls *c)
{
	perf_release(p, c->out);
	for (int i = 0; i < CATCHALLS; i++)
		perf_withdraw(p, c->catchall[i]);
}

void perf_calls(struct perf *p)
{
	struct calls *c;
	double *value;

	if (p->rank) { /* sleeps in its next barrier */
		perf_ctl_barrier(p);
		return;
	}
	c = malloc(sizeof(*c));
	value = malloc(MOST * sizeof(*value));
	if (!c || !value)
		perf_fail("out of memory for handles and samples");
	memset(c, 0, sizeof(*c));
	perf_buffers(p, 4096);
	perf_title(p, "calls", "time of a call within one process, ns");
	perf_say(p, "%30s %10s %10s", "call", "median", "p99");
	open_calls(p, c);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		measure(p, c, &rows[i], value);
	close_calls(p, c);
	free(value);
	free(c);
	perf_ctl_barrier(p);
}
