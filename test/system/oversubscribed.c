/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * More processes than cores: everybody talks to everybody and finishes, nobody is starved, and who
 * waits leaves the cores to others.
 */
#include "ptest.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { PORTAL = 8, BIG = 50000 };

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static unsigned char out[BIG], in[PT_MAX_PROCS][BIG];

/* The number of the message and of its sender; a sender's messages come in order. */
static ptl_hdr_data_t label(int rank, int number)
{
	return (uint64_t)rank << 32 | (uint64_t)number;
}

static void all_to_all(int messages)
{
	ptl_handle_eq_t arrivals, sent;
	int next[PT_MAX_PROCS] = { 0 }, acks = 0;
	ptl_handle_md_t md;
	ptl_event_t ev;

	pt_open();
	arrivals = pt_eq((ptl_size_t)(pt_size * messages) + 16);
	sent = pt_eq((ptl_size_t)(pt_size * messages) + 16);
	for (int i = 0; i < pt_size; i++)
		pt_post(PORTAL, (ptl_match_bits_t)i,
			pt_md(in[i], BIG,
			      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
			      arrivals),
			PTL_RETAIN, NULL);
	pt_fill(out, BIG, 1, 0);
	md = pt_bind(out, BIG, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, sent);
	pt_barrier();
	for (int k = 0; k < messages; k++)
		for (int i = 1; i <= pt_size; i++)
			pt_ok(PtlPutRegion(md, 0, k % 10 == 9 ? BIG : 64, PTL_ACK_REQ,
					   pt_id((pt_rank + i) % pt_size), PORTAL, 0,
					   (ptl_match_bits_t)pt_rank, 0, label(pt_rank, k)));
	for (int i = 0; i < pt_size * messages; i++) {
		int from;

		ev = pt_next(arrivals, PTL_EVENT_PUT_END);
		from = (int)(ev.hdr_data >> 32);
		pt_is(ev.initiator.pid, pt_id(from).pid);
		next[from]++;
	}
	for (int i = 0; i < pt_size; i++) {
		pt_is(next[i], messages);
		pt_holds(in[i], BIG, 1, 0);
	}
	for (; acks < pt_size * messages; acks++)
		pt_next(sent, PTL_EVENT_ACK);
	pt_barrier();
}

static void eight_processes_talk_to_each_other(void)
{
	all_to_all(500);
}

static void thirty_two_processes_talk_to_each_other(void)
{
	all_to_all(60);
}

/*
 * Pairs of ranks throw a ball for two seconds. A pair that has both cores throws far more often
 * than one that has to take turns, so numbers say little; what counts is how long a pair stands
 * still.
 */
static void no_pair_is_starved(void)
{
	ptl_handle_eq_t arrivals;
	uint64_t throws = 0, most = 0, least = ~(uint64_t)0;
	double now, end, before, longest = 0;
	ptl_handle_md_t md;

	pt_open();
	arrivals = pt_eq(64);
	pt_post(PORTAL, 0,
		pt_md(in[0], 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		      arrivals),
		PTL_RETAIN, NULL);
	md = pt_bind(out, 8, 0, PTL_EQ_NONE);
	pt_barrier();
	before = pt_lived();
	end = before + 2;
	if (pt_rank % 2 == 0)
		pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_id(pt_rank ^ 1), PORTAL, 0, 0, 0, 0));
	for (bool last = false; !last; throws++) {
		last = pt_next(arrivals, PTL_EVENT_PUT_END).hdr_data == 1;
		now = pt_lived();
		longest = now - before > longest ? now - before : longest;
		before = now;
		if (!last || pt_rank % 2 == 1)
			pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_id(pt_rank ^ 1), PORTAL, 0, 0, 0,
				     last || (pt_rank % 2 == 0 && now > end)));
	}
	*pt_word(pt_rank) = throws;
	pt_barrier();
	for (int i = 0; i < pt_size; i += 2) {
		most = *pt_word(i) > most ? *pt_word(i) : most;
		least = *pt_word(i) < least ? *pt_word(i) : least;
	}
	if (pt_rank == 0)
		fprintf(stderr, "# %d processes: from %llu to %llu throws each in 2 s\n", pt_size,
			(unsigned long long)least, (unsigned long long)most);
	pt_truef(longest < pt_patience(0.5), "no ball for %.2f s, %llu in all", longest,
		 (unsigned long long)throws);
}

/* All but one wait for a second, in PtlEQWait or in PtlEQPoll: they use next to no CPU time. */
static void who_waits_uses_no_cpu_time(void)
{
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	double cpu;
	int which;

	pt_open();
	eq = pt_eq(4);
	pt_post(PORTAL, 0, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	pt_barrier();
	cpu = cpu_seconds();
	if (pt_rank == 0) {
		double end = pt_now() + 1;

		while (pt_now() < end)
			pt_pause();
		for (int i = 1; i < pt_size; i++)
			pt_ok(PtlPut(pt_bind(NULL, 0, 0, PTL_EQ_NONE), PTL_NO_ACK_REQ, pt_id(i),
				     PORTAL, 0, 0, 0, 0));
	} else if (pt_rank % 2) {
		pt_next(eq, PTL_EVENT_PUT_END);
	} else {
		pt_ok(PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &ev, &which));
	}
	cpu = cpu_seconds() - cpu;
	pt_truef(pt_rank == 0 || cpu < 0.05 * pt_slow(),
		 "waiting for a second used %.0f ms of CPU "
		 "time",
		 cpu * 1e3);
	pt_barrier();
}

/* A ball round a ring on one core, whose ranks do not wait but look until it is there: a look in
 * vain does not keep the core from the one that has it. */
static void who_looks_in_vain_gives_turns_away(void)
{
	enum { LAPS = 300 };
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	cpu_set_t all, one;
	double cpu;
	int core = 0;

	pt_ok(sched_getaffinity(0, sizeof(all), &all));
	while (!CPU_ISSET(core, &all))
		core++;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	pt_ok(sched_setaffinity(0, sizeof(one), &one));
	pt_open();
	eq = pt_eq(64);
	pt_post(PORTAL, 0, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	md = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	pt_barrier();
	cpu = cpu_seconds();
	for (int lap = 0; lap < LAPS; lap++) {
		ptl_event_t ev;
		int which;

		if (pt_rank || lap)
			while ((pt_rank % 2 ? PtlEQGet(eq, &ev)
					    : PtlEQPoll(&eq, 1, 0, &ev, &which)) == PTL_EQ_EMPTY)
				continue;
		pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_id((pt_rank + 1) % pt_size), PORTAL, 0, 0, 0,
			     0));
	}
	cpu = cpu_seconds() - cpu;
	/* a slice is 3 ms, and would be used in each lap */
	pt_truef(cpu < 0.25 * pt_slow(), "%d laps used %.0f ms of CPU time", LAPS, cpu * 1e3);
	pt_barrier();
}

static const struct pt_test tests[] = {
	PT_CASE(eight_processes_talk_to_each_other, 8),
	PT_CASE(thirty_two_processes_talk_to_each_other, 32),
	{ "no_pair_of_eight_is_starved", no_pair_is_starved, 8, 0 },
	{ "no_pair_of_thirty_two_is_starved", no_pair_is_starved, 32, 0 },
	PT_CASE(who_waits_uses_no_cpu_time, 4),
	PT_CASE(who_looks_in_vain_gives_turns_away, 4),
	{ "thirty_one_waiting_use_no_cpu_time", who_waits_uses_no_cpu_time, 32, 0 },
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
