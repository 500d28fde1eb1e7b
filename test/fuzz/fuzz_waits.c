/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Feeds the reader of what processes wait for (base/waits.h): the input is the files of two
 * ranks, but for the numbers by which they are known. Whatever they hold, they can be judged
 * and printed.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tools/hangs/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 2 };

static void decode(struct base_waits *raw, int rank, struct rank_seen *r)
{
	raw->magic = BASE_WAITS_MAGIC;
	raw->version = BASE_WAITS_VERSION;
	raw->rank = rank;
	raw->size = RANKS;
	if (!record_decode(raw, &r->record))
		abort();
	r->pid = INT_MAX; /* none */
	for (uint32_t i = 0; i < BASE_WAITS_MOST && i < r->record.body.waits; i++) {
		struct base_wait *w = &r->record.body.wait[i];

		if (w->frames > BASE_WAITS_FRAMES ||
		    (w->op != BASE_WAITS_NONE && w->op >= BASE_WAITS_OPS))
			abort();
		w->frames = 0; /* they would be looked up in a process */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct base_waits raw[RANKS];
	static struct rank_seen ranks[RANKS];
	struct job_seen job = { .size = RANKS, .here = RANKS, .ranks = ranks };
	FILE *nowhere = fopen("/dev/null", "we");

	if (!nowhere)
		abort();
	memset(raw, 0, sizeof(raw));
	memcpy(raw, data, size < sizeof(raw) ? size : sizeof(raw));
	for (int i = 0; i < RANKS; i++)
		decode(&raw[i], i, &ranks[i]);
	job.now_ms = ranks[0].record.body.beat_ms;
	job_is_stuck(&job, 1000);
	report_job(nowhere, &job);
	fclose(nowhere);
	return 0;
}
