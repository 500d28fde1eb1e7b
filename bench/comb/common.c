/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The common part of comb's two methods: buffers for messages and the check that they arrive whole,
 * samples, and the only way to fail.
 */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comb.h"

enum { PAGE = 4096 };

int comb_rank;
static char *rx, *tx;
static size_t stride;

void comb_fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "comb: rank %d: ", comb_rank);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort(); /* MPI_Abort does not return, but is not declared so */
}

void comb_buffers_init(size_t size, int batch)
{
	size_t bytes;

	stride = (size + PAGE - 1) / PAGE * PAGE;
	bytes = stride * (size_t)batch;
	rx = aligned_alloc(PAGE, bytes);
	tx = aligned_alloc(PAGE, bytes);
	if (!rx || !tx)
		comb_fail("out of memory for %d messages of %zu bytes each way", batch, size);
	memset(rx, 0, bytes);
	memset(tx, 0, bytes);
}

void comb_buffers_fini(void)
{
	free(rx);
	free(tx);
	rx = tx = NULL;
}

void *comb_rx(int slot)
{
	return rx + stride * (size_t)slot;
}

void *comb_tx(int slot)
{
	return tx + stride * (size_t)slot;
}

int comb_receives(const struct comb_point *p)
{
	return p->side & (comb_rank == COMB_WORKER ? COMB_RECEIVE : COMB_SEND);
}

int comb_sends(const struct comb_point *p)
{
	return p->side & (comb_rank == COMB_WORKER ? COMB_SEND : COMB_RECEIVE);
}

static char byte_of(int rank, int slot, size_t at)
{
	return (char)(at * 31 + at / 251 + (size_t)slot * 7 + (size_t)rank * 101 + 1);
}

void comb_fill(const struct comb_point *p)
{
	for (int slot = 0; slot < p->batch; slot++) {
		char *to = comb_tx(slot);

		memset(comb_rx(slot), 0, p->size);
		for (size_t i = 0; i < p->size; i++)
			to[i] = byte_of(comb_rank, slot, i);
	}
}

void comb_verify(const struct comb_point *p, int first_byte)
{
	for (int slot = 0; slot < p->batch && comb_receives(p); slot++) {
		const char *from = comb_rx(slot);

		for (size_t i = (size_t)first_byte; i < p->size; i++)
			if (from[i] != byte_of(!comb_rank, slot, i))
				comb_fail("wrong data at byte %zu of %zu in message %d", i, p->size,
					  slot);
	}
}

void comb_keep(struct perf_samples *s, double value)
{
	if (perf_samples_add(s, value))
		comb_fail("out of memory for %zu samples", s->count);
}

double comb_median(struct perf_samples *s)
{
	struct perf_stats stats;

	perf_stats_of(s->value, s->count, &stats);
	return stats.median;
}

void comb_availability(struct perf_samples *loss, struct comb_result *out)
{
	struct perf_stats stats;

	perf_stats_of(loss->value, loss->count, &stats);
	out->availability = 100 / stats.median;
	out->availability_p99 = 100 / stats.p99;
	out->availability_best = 100 / stats.min;
}
