/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The post-work-wait method. In a cycle the worker posts a batch of receives, sends or both,
 * works, and waits for all of them; each phase is timed. Cycles without messages, where it does
 * nothing but the same work, alternate with these, so that what others do on the machine meets
 * both; in every other pair the one without comes first.
 *
 * Messages are to arrive in the work phase, not before it: the partner has its receives posted
 * before a cycle begins, and sends when the worker's last act of the post phase, an empty
 * message, tells it to. While the worker works without messages the partner waits in a receive.
 */
#include <mpi.h>
#include <stddef.h>

#include "../ptlperf/clock.h"
#include "comb.h"

enum { DATA_TAG = 1, CYCLE_TAG, READY_TAG, GO_TAG };
enum { LEAST_PAIRS = 8, MOST_PAIRS = 20000, BARE_SHARE = 8 };

struct series {
	struct perf_samples post, work, wait, dry, bare, whole, loss, work_loss;
	struct comb_cpu cpu;
};

static MPI_Request request[2 * COMB_MOST_BATCH];
static MPI_Status statuses[2 * COMB_MOST_BATCH];

static int post_receives(const struct comb_point *p, int at)
{
	for (int i = 0; i < p->batch; i++)
		MPI_Irecv(comb_rx(i), (int)p->size, MPI_BYTE, !comb_rank, DATA_TAG, MPI_COMM_WORLD,
			  &request[at++]);
	return at;
}

static int post_sends(const struct comb_point *p, int at)
{
	for (int i = 0; i < p->batch; i++)
		MPI_Isend(comb_tx(i), (int)p->size, MPI_BYTE, !comb_rank, DATA_TAG, MPI_COMM_WORLD,
			  &request[at++]);
	return at;
}

/* ---- the partner ---- */

static void partner(const struct comb_point *p)
{
	char more;

	for (;;) {
		int posted = 0;

		MPI_Recv(&more, 1, MPI_CHAR, COMB_WORKER, CYCLE_TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (!more)
			return;
		if (comb_receives(p))
			posted = post_receives(p, 0);
		MPI_Send(NULL, 0, MPI_CHAR, COMB_WORKER, READY_TAG, MPI_COMM_WORLD);
		if (comb_sends(p)) {
			MPI_Recv(NULL, 0, MPI_CHAR, COMB_WORKER, GO_TAG, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			posted = post_sends(p, posted);
		}
		MPI_Waitall(posted, request, statuses);
	}
}

/* ---- the worker ---- */

static void tell_partner(char more)
{
	MPI_Send(&more, 1, MPI_CHAR, COMB_PARTNER, CYCLE_TAG, MPI_COMM_WORLD);
	if (more)
		MPI_Recv(NULL, 0, MPI_CHAR, COMB_PARTNER, READY_TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
}

static int post(const struct comb_point *p)
{
	int posted = 0;

	if (comb_receives(p)) {
		posted = post_receives(p, posted);
		MPI_Send(NULL, 0, MPI_CHAR, COMB_PARTNER, GO_TAG, MPI_COMM_WORLD);
	}
	if (comb_sends(p))
		posted = post_sends(p, posted);
	return posted;
}

/* With `messages`, MPI_Test is called in the middle if the point wants that. */
static void work(const struct comb_point *p, uint64_t count, int messages)
{
	int done;

	if (!p->tests) {
		comb_work_run(p->work, count);
		return;
	}
	comb_work_run(p->work, count / 2);
	if (messages)
		MPI_Test(&request[0], &done, MPI_STATUS_IGNORE);
	comb_work_run(p->work, count - count / 2);
}

/* The messages with nothing between post and wait. */
static void bare_cycle(const struct comb_point *p, struct series *s)
{
	uint64_t start;

	tell_partner(1);
	start = perf_now();
	MPI_Waitall(post(p), request, statuses);
	comb_keep(&s->bare, perf_ns(perf_now() - start));
}

static double dry_cycle(const struct comb_point *p, uint64_t count, struct series *s)
{
	uint64_t start;
	double took;

	comb_cpu_mark(&s->cpu);
	start = perf_now();
	work(p, count, 0);
	took = perf_ns(perf_now() - start);
	comb_cpu_add(&s->cpu, &s->cpu.dry);
	comb_keep(&s->dry, took);
	return took;
}

static double wet_cycle(const struct comb_point *p, uint64_t count, struct series *s)
{
	uint64_t start, posted_at, worked_at, end;
	int posted;

	tell_partner(1);
	comb_cpu_mark(&s->cpu);
	start = perf_now();
	posted = post(p);
	posted_at = perf_now();
	work(p, count, 1);
	worked_at = perf_now();
	MPI_Waitall(posted, request, statuses);
	end = perf_now();
	comb_cpu_add(&s->cpu, &s->cpu.wet);
	comb_keep(&s->post, perf_ns(posted_at - start));
	comb_keep(&s->work, perf_ns(worked_at - posted_at));
	comb_keep(&s->wait, perf_ns(end - worked_at));
	comb_keep(&s->whole, perf_ns(end - start));
	return perf_ns(end - start);
}

static void pair(const struct comb_point *p, uint64_t count, struct series *s, int dry_first)
{
	double dry = 0, wet;

	if (dry_first)
		dry = dry_cycle(p, count, s);
	wet = wet_cycle(p, count, s);
	if (!dry_first)
		dry = dry_cycle(p, count, s);
	comb_keep(&s->loss, wet / dry);
	comb_keep(&s->work_loss, s->work.value[s->work.count - 1] / dry);
}

static void bare_cycles(const struct comb_point *p, struct series *s, double ns)
{
	uint64_t start = perf_now();

	for (int i = 0; i < LEAST_PAIRS || (i < MOST_PAIRS && perf_ns(perf_now() - start) < ns);
	     i++)
		bare_cycle(p, s);
}

static void measure(const struct comb_point *p, struct series *s, double ns)
{
	uint64_t count = comb_work_count(p->work, p->interval), start;

	bare_cycles(p, s, ns / BARE_SHARE);
	comb_verify(p, 0);
	comb_cpu_start(&s->cpu);
	start = perf_now();
	for (int i = 0; i < LEAST_PAIRS || (i < MOST_PAIRS && perf_ns(perf_now() - start) < ns);
	     i++)
		pair(p, count, s, i % 2);
}

static void conclude(const struct comb_point *p, struct series *s, struct comb_result *out)
{
	double bytes = (double)p->size * p->batch * (p->side == COMB_BOTH ? 2 : 1);
	out->cpu_availability = comb_cpu_availability(&s->cpu);
	comb_availability(&s->loss, out);
	out->work_availability = 100 / comb_median(&s->work_loss);
	out->work_dry = comb_median(&s->dry);
	out->work = comb_median(&s->work);
	out->post = comb_median(&s->post);
	out->wait = comb_median(&s->wait);
	out->transfer = comb_median(&s->bare);
	out->wait_share = 100 * out->wait / out->transfer;
	out->bandwidth = bytes / comb_median(&s->whole);
}

static void series_fini(struct series *s)
{
	struct perf_samples *all[] = { &s->post, &s->work,  &s->wait, &s->dry,
				       &s->bare, &s->whole, &s->loss, &s->work_loss };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		perf_samples_fini(all[i]);
}

void comb_pww(const struct comb_point *p, double ns, struct comb_result *out)
{
	struct series s = { 0 };

	comb_fill(p);
	MPI_Barrier(MPI_COMM_WORLD);
	if (comb_rank == COMB_PARTNER) {
		partner(p);
		comb_verify(p, 0);
	} else {
		measure(p, &s, ns);
		conclude(p, &s, out);
		tell_partner(0);
	}
	series_fini(&s);
	MPI_Barrier(MPI_COMM_WORLD);
}
