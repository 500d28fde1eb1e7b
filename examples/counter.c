/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A counter in rank 0's memory that all ranks count up, with nothing but PtlGetPut, the atomic
 * swap. A rank takes the number out by swapping a mark in; whoever gets the mark instead of the
 * number tries again; the owner of the number puts it back, one larger. At any time the number
 * exists exactly once, in the counter or with one rank, so no increment is lost. Rank 0's CPU has
 * no part in it.
 * Run it with: mpiexec -n 4 counter 1000
 */
#include <cnos_mpi_os.h>
#include <p3rt/p3rt.h>
#include <portals3.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { INDEX = 5, COUNTER = 7 };
#define TAKEN UINT64_MAX /* stands where the number was */

static ptl_handle_ni_t ni;

static void check(int code, const char *what)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "counter: %s: %s\n", what, PtlErrorStr((unsigned)code));
	exit(1);
}

struct swap {
	uint64_t in, out; /* the memory of the two descriptors */
	ptl_handle_md_t get_md, put_md;
	ptl_handle_eq_t eq;
	ptl_process_id_t home; /* of the counter */
};

static void swap_init(struct swap *s)
{
	ptl_md_t md = { .start = &s->out,
			.length = 8,
			.threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_EVENT_START_DISABLE,
			.eq_handle = PTL_EQ_NONE };

	check(PtlEQAlloc(ni, 16, PTL_EQ_HANDLER_NONE, &s->eq), "PtlEQAlloc");
	check(PtlGetRankId(ni, 0, &s->home), "PtlGetRankId");
	check(PtlMDBind(ni, md, PTL_RETAIN, &s->put_md), "PtlMDBind");
	md.start = &s->in;
	md.eq_handle = s->eq;
	check(PtlMDBind(ni, md, PTL_RETAIN, &s->get_md), "PtlMDBind");
}

/* Puts `value` into the counter and returns what was there, in one step nobody can come between. */
static uint64_t swap(struct swap *s, uint64_t value)
{
	ptl_event_t ev;

	s->out = value;
	check(PtlGetPut(s->get_md, s->put_md, s->home, INDEX, 0, COUNTER, 0, 0), "PtlGetPut");
	check(PtlEQWait(s->eq, &ev), "PtlEQWait");
	if (ev.type != PTL_EVENT_REPLY_END || ev.ni_fail_type != PTL_NI_OK) {
		fprintf(stderr, "counter: swap failed: %s\n", PtlNIFailStr(ni, ev.ni_fail_type));
		exit(1);
	}
	return s->in;
}

static void increment(struct swap *s)
{
	uint64_t number;

	while ((number = swap(s, TAKEN)) == TAKEN)
		sched_yield(); /* the owner may need this core */
	if (swap(s, number + 1) != TAKEN) {
		fputs("counter: somebody else put a number back: the swap is not atomic\n", stderr);
		exit(1);
	}
}

/* Rank 0's word, for everybody, without any event at rank 0. */
static void expose(uint64_t *word)
{
	ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = { .start = word,
			.length = 8,
			.threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
			.eq_handle = PTL_EQ_NONE };
	ptl_handle_me_t me;

	check(PtlMEAttach(ni, INDEX, anybody, COUNTER, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
	      "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
}

int main(int argc, char **argv)
{
	static uint64_t word; /* rank 0's is the counter */
	struct swap s;
	uint64_t times = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	unsigned rank, size;
	int interfaces, bad = 0;

	check(PtlInit(&interfaces), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	check(PtlGetRank(ni, &rank, &size), "PtlGetRank; start with mpiexec -n 4 counter");
	swap_init(&s);
	cnos_barrier_init(ni);
	if (!rank)
		expose(&word);
	cnos_barrier();
	for (uint64_t i = 0; i < times; i++)
		increment(&s);
	cnos_barrier(); /* all have counted; the number is back in its place */
	if (!rank) {
		uint64_t total = swap(&s, 0);

		printf("%u ranks counted %llu times each: %llu\n", size, (unsigned long long)times,
		       (unsigned long long)total);
		bad = total != size * times;
	}
	check(PtlNIFini(ni), "PtlNIFini");
	PtlFini();
	return bad;
}
