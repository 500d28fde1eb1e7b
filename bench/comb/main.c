/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Walks through all that was asked for, the same way on both ranks.
 */
#include <mpi.h>
#include <stdio.h>

#include "comb.h"

static void measure(const struct comb_options *o, const struct comb_point *p)
{
	struct comb_result result = { 0 };

	if (p->method == COMB_PWW)
		comb_pww(p, o->ns, &result);
	else
		comb_polling(p, o->ns, &result);
	if (comb_rank == COMB_WORKER)
		comb_report_point(p, &result);
}

static void intervals(const struct comb_options *o, struct comb_point *p)
{
	struct comb_list list;

	comb_intervals(o, p->method, p->size, &list);
	for (int i = 0; i < list.count; i++) {
		p->interval = list.value[i];
		measure(o, p);
	}
}

/* Polling has no MPI_Test in its work. */
static void tests(const struct comb_options *o, struct comb_point *p)
{
	p->tests = 0;
	if (p->method == COMB_POLLING) {
		intervals(o, p);
		return;
	}
	for (int i = 0; i < o->tests.count; i++) {
		p->tests = (int)o->tests.value[i];
		intervals(o, p);
	}
}

static void works(const struct comb_options *o, struct comb_point *p)
{
	for (int i = 0; i < o->works.count; i++) {
		p->work = (enum comb_work)o->works.value[i];
		tests(o, p);
	}
}

static void sizes(const struct comb_options *o, struct comb_point *p)
{
	for (int i = 0; i < o->sizes.count; i++) {
		p->size = (size_t)o->sizes.value[i];
		comb_buffers_init(p->size, p->batch);
		works(o, p);
		comb_buffers_fini();
	}
}

static void all(const struct comb_options *o)
{
	struct comb_point p = { .batch = o->batch };

	for (int m = 0; m < o->methods.count; m++) {
		for (int s = 0; s < o->sides.count; s++) {
			p.method = (enum comb_method)o->methods.value[m];
			p.side = (enum comb_side)o->sides.value[s];
			sizes(o, &p);
		}
	}
}

/* The worker's word on whether to go on, on both ranks. */
static int agreed(int failed)
{
	MPI_Bcast(&failed, 1, MPI_INT, COMB_WORKER, MPI_COMM_WORLD);
	return failed;
}

/* The exit status. */
static int run(const struct comb_options *o)
{
	int failed = 0;

	if (comb_rank == COMB_WORKER)
		failed = comb_report_start(o);
	if (agreed(failed))
		return 1;
	if (comb_rank == COMB_WORKER)
		comb_work_init(o->array);
	all(o);
	if (comb_rank == COMB_WORKER) {
		failed = comb_report_end();
		comb_work_fini();
	}
	return agreed(failed) ? 1 : 0;
}

int main(int argc, char **argv)
{
	char error[COMB_ERROR] = "";
	struct comb_options o;
	int ranks, status = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &comb_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (comb_parse(argc, argv, &o, error)) {
		status = 2;
	} else if (!o.help && ranks != 2) {
		snprintf(error, sizeof(error), "needs 2 ranks, not %d; start it with mpiexec -n 2",
			 ranks);
		status = 1;
	}
	if (o.help && !status && comb_rank == COMB_WORKER)
		fputs(comb_usage, stdout);
	else if (status && comb_rank == COMB_WORKER)
		fprintf(stderr, "comb: %s\n", error);
	else if (!o.help && !status)
		status = run(&o);
	MPI_Finalize();
	return status;
}
