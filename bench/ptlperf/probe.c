/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The single costs of messages, each in an exchange of its own (probe.h). A sample is one exchange.
 */
#include "probe.h"

#include <string.h>

#include "link.h"

/* How long a rank computes: long enough for the other one to take over and to move the data
 * alone. */
#define AWAY_NS    20000
#define AWAY_TIMES 16 /* what the message takes when both take part */
/* Of both, however long messages take: on a busy machine they take turns of the scheduler. */
#define MOST_AWAY_NS  2e7
#define MOST_PAUSE_NS 5e6

static double at_most(double value, double most)
{
	return value < most ? value : most;
}

static inline void put(struct perf *p, ptl_handle_md_t md)
{
	perf_ok(PtlPut(md, PTL_NO_ACK_REQ, p->other, PERF_PT_DATA, 0, PERF_BITS, 0, 0), "PtlPut");
}

static inline void compute(uint64_t ticks)
{
	uint64_t start = perf_now();

	while (perf_now() - start < ticks)
		;
}

/* ---- data: what rank 0 sends goes to rank 1 and the other way round, whoever begins ---- */

static void prepare(struct perf *p, void *arg, uint64_t seed)
{
	struct perf_probe *b = arg;

	perf_fill(p->tx, b->size, 2 * seed + (uint64_t)p->rank);
	memset(p->rx, 0xee, b->size);
}

static void verify(struct perf *p, void *arg, uint64_t seed)
{
	struct perf_probe *b = arg;

	perf_verify(p->rx, b->size, 2 * seed + !p->rank, "put");
}

/* Where messages go one way only. */
static void verify_outsider(struct perf *p, void *arg, uint64_t seed)
{
	struct perf_probe *b = arg;

	if ((unsigned)p->rank == b->outsider)
		verify(p, arg, seed);
}

void perf_probe_open(struct perf *p, struct perf_probe *b, size_t size, double one_way_ns)
{
	double away = at_most(AWAY_NS + AWAY_TIMES * one_way_ns, MOST_AWAY_NS);
	size_t most = ((size_t)2 << 20) / (size ? size : 1);

	if (p->rank) /* rank 0 has measured, and decides */
		away = (double)perf_ctl_recv(p);
	else
		perf_ctl_send(p, (uint64_t)away);
	memset(b, 0, sizeof(*b));
	b->size = size;
	b->burst = most < PERF_MOST_BURST ? (unsigned)most : PERF_MOST_BURST;
	b->burst = b->burst < 4 ? 4 : b->burst;
	b->away = perf_ticks(away);
	b->me = perf_expose(p, PERF_BITS, p->rx, size, p->eq, NULL);
	b->md = perf_bind(p, p->tx, size, PERF_QUIET);
	b->empty = perf_bind(p, p->tx, 0, PERF_QUIET);
}

void perf_probe_close(struct perf *p, struct perf_probe *b)
{
	perf_withdraw(p, b->me);
	perf_release(p, b->md);
	perf_release(p, b->empty);
}

/* ---- a put to a target that waits ---- */

static void put_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct perf_probe *b = arg;

	for (size_t i = 0; i < samples; i++) {
		uint64_t start = perf_now();

		put(p, b->md);
		ticks[i] = perf_now() - start;
		perf_expect(p, PTL_EVENT_PUT_END);
	}
}

static void put_run1(struct perf *p, void *arg, size_t samples)
{
	struct perf_probe *b = arg;

	for (; samples; samples--) {
		perf_expect(p, PTL_EVENT_PUT_END);
		put(p, b->md);
	}
}

void perf_probe_put(struct perf *p, struct perf_probe *b, struct perf_result *r)
{
	const struct perf_pattern pattern = { "the call that sends", prepare, put_run0, put_run1,
					      verify };

	perf_measure(p, &pattern, b, r);
}

/* ---- a put to oneself ---- */

static void self_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct perf_probe *b = arg;

	for (size_t i = 0; i < samples; i++) {
		uint64_t start = perf_now();

		perf_ok(PtlPut(b->md, PTL_NO_ACK_REQ, p->self, PERF_PT_DATA, 0, PERF_BITS, 0, 0),
			"PtlPut to oneself");
		ticks[i] = perf_now() - start;
		perf_expect(p, PTL_EVENT_PUT_END);
	}
}

static void self_run1(struct perf *p, void *arg, size_t samples)
{
	(void)p;
	(void)arg;
	(void)samples;
}

static void verify_self(struct perf *p, void *arg, uint64_t seed)
{
	struct perf_probe *b = arg;

	if (!p->rank)
		perf_verify(p->rx, b->size, 2 * seed, "put to oneself");
}

void perf_probe_put_self(struct perf *p, struct perf_probe *b, struct perf_result *r)
{
	const struct perf_pattern pattern = { "a put to oneself", prepare, self_run0, self_run1,
					      verify_self };
	ptl_handle_me_t me = { 0 };

	if (!p->rank)
		me = perf_expose_to(p, p->self, PERF_BITS, p->rx, b->size, p->eq, NULL);
	perf_measure(p, &pattern, b, r);
	if (!p->rank)
		perf_withdraw(p, me);
}

/* ---- a put to a target that computes, and the event it finds ---- */

/* Says that it goes, computes, and takes what has come meanwhile. */
static inline void stay_away(struct perf *p, struct perf_probe *b, uint64_t *ticks)
{
	uint64_t start;
	ptl_event_t ev;
	int rc;

	put(p, b->empty);
	compute(b->away);
	do { /* the call that finds it is what counts */
		start = perf_now();
		rc = PtlEQGet(p->eq, &ev);
	} while (rc == PTL_EQ_EMPTY);
	if (ticks)
		*ticks = perf_now() - start;
	perf_ok(rc, "PtlEQGet");
	if (ev.type != PTL_EVENT_PUT_END || ev.ni_fail_type != PTL_NI_OK)
		perf_wrong_event(&ev, PTL_EVENT_PUT_END);
}

/* Sends when the other one has gone. */
static inline void surprise(struct perf *p, struct perf_probe *b, uint64_t *ticks)
{
	uint64_t start;

	perf_expect(p, PTL_EVENT_PUT_END);
	compute(b->away / 8);
	start = perf_now();
	put(p, b->md);
	if (ticks)
		*ticks = perf_now() - start;
}

static void away_run(struct perf *p, struct perf_probe *b, size_t samples, uint64_t *ticks)
{
	for (size_t i = 0; i < samples; i++) {
		if ((unsigned)p->rank == b->outsider)
			stay_away(p, b, ticks ? &ticks[i] : NULL);
		else
			surprise(p, b, ticks ? &ticks[i] : NULL);
	}
}

static void away_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	away_run(p, arg, samples, ticks);
}

static void away_run1(struct perf *p, void *arg, size_t samples)
{
	away_run(p, arg, samples, NULL);
}

void perf_probe_put_away(struct perf *p, struct perf_probe *b, struct perf_result *r)
{
	const struct perf_pattern pattern = { "a put to a target that computes", prepare, away_run0,
					      away_run1, verify_outsider };

	b->outsider = 1;
	perf_measure(p, &pattern, b, r);
}

void perf_probe_take(struct perf *p, struct perf_probe *b, struct perf_result *r)
{
	const struct perf_pattern pattern = { "taking a message that is there", prepare, away_run0,
					      away_run1, verify_outsider };

	b->outsider = 0;
	perf_measure(p, &pattern, b, r);
}

/* ---- messages straight one after the other ---- */

static inline void expect_all(struct perf *p, unsigned count)
{
	for (; count; count--)
		perf_expect(p, PTL_EVENT_PUT_END);
}

static inline uint64_t send_burst(struct perf *p, struct perf_probe *b)
{
	uint64_t start = perf_now(), end;

	for (unsigned i = 0; i < b->burst; i++)
		put(p, b->md);
	end = perf_now();
	perf_expect(p, PTL_EVENT_PUT_END); /* the other one has all */
	return end - start;
}

static inline uint64_t take_burst(struct perf *p, struct perf_probe *b)
{
	uint64_t start, end;

	perf_expect(p, PTL_EVENT_PUT_END);
	start = perf_now();
	expect_all(p, b->burst - 1);
	end = perf_now();
	put(p, b->empty);
	return end - start;
}

static void burst_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct perf_probe *b = arg;

	for (size_t i = 0; i < samples; i++)
		ticks[i] = b->outsider ? send_burst(p, b) : take_burst(p, b);
}

static void burst_run1(struct perf *p, void *arg, size_t samples)
{
	struct perf_probe *b = arg;

	for (; samples; samples--)
		(void)(b->outsider ? take_burst(p, b) : send_burst(p, b));
}

static void burst(struct perf *p, struct perf_probe *b, unsigned outsider, struct perf_result *r)
{
	const struct perf_pattern pattern = { "a burst", prepare, burst_run0, burst_run1,
					      verify_outsider };

	b->outsider = outsider;
	perf_measure(p, &pattern, b, r);
}

void perf_probe_send_burst(struct perf *p, struct perf_probe *b, struct perf_result *r)
{
	burst(p, b, 1, r);
}

void perf_probe_take_burst(struct perf *p, struct perf_probe *b, struct perf_result *r)
{
	burst(p, b, 0, r);
}

/* ---- the parametrized round trip ---- */

static void train_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct perf_probe *b = arg;

	for (size_t i = 0; i < samples; i++) {
		uint64_t start = perf_now(), paused = 0;

		for (unsigned n = 1; n < b->burst; n++) {
			put(p, b->md);
			if (b->pause) {
				uint64_t from = perf_now();

				compute(b->pause);
				paused += perf_now() - from;
			}
		}
		put(p, b->md);
		perf_expect(p, PTL_EVENT_PUT_END);
		ticks[i] = perf_now() - start - paused;
	}
}

static void train_run1(struct perf *p, void *arg, size_t samples)
{
	struct perf_probe *b = arg;

	for (; samples; samples--) {
		expect_all(p, b->burst);
		put(p, b->md);
	}
}

void perf_probe_train(struct perf *p, struct perf_probe *b, unsigned count, double pause_ns,
		      struct perf_result *r)
{
	const struct perf_pattern pattern = { "a train of messages and its answer", prepare,
					      train_run0, train_run1, verify };
	unsigned burst_of_others = b->burst;

	b->burst = count;
	b->pause = pause_ns > 0 ? perf_ticks(at_most(pause_ns, MOST_PAUSE_NS)) : 0;
	perf_measure(p, &pattern, b, r);
	b->burst = burst_of_others;
}
