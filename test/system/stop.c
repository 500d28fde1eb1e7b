/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * One of several processes is stopped with SIGSTOP at random moments of its traffic. The others go
 * on exchanging messages while it stands still, and what was meant for it is done once it goes on.
 * Usage: stop [stops]
 */
#include "ptest.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { OTHERS = 3, PORTAL = 6, PLACE = 100000, WAY = 40 /* turns each must make during a stop */ };

struct stage {
	_Atomic bool over;
	_Atomic uint64_t turns[OTHERS + 1]; /* by rank; the last is the one that is stopped */
};

static struct stage *stage;
static int stops = 300;

static const unsigned int everything = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
static const size_t sizes[] = { 8, 2048, 100, PLACE, 3000 };

struct actor {
	ptl_handle_eq_t eq;
	ptl_handle_md_t out_md, in_md;
	unsigned char *out, *in, *places;
};

/* A place for each rank to write to. */
static struct actor set_out(void)
{
	struct actor a;

	a.out = calloc(2 + OTHERS + 1, PLACE);
	a.in = a.out + PLACE;
	a.places = a.out + 2 * PLACE;
	pt_open();
	a.eq = pt_eq(64);
	a.out_md = pt_bind(a.out, PLACE, PTL_MD_EVENT_START_DISABLE, a.eq);
	a.in_md = pt_bind(a.in, PLACE, PTL_MD_EVENT_START_DISABLE, a.eq);
	for (int i = 0; i <= OTHERS; i++)
		pt_post(PORTAL, (ptl_match_bits_t)i,
			pt_md(a.places + i * PLACE, PLACE, everything, PTL_EQ_NONE), PTL_RETAIN,
			NULL);
	pt_barrier();
	return a;
}

/* Out and back, compared. */
static void turn(struct actor *a, ptl_process_id_t peer, uint64_t number)
{
	size_t n = sizes[number % 5];
	ptl_match_bits_t bits = (ptl_match_bits_t)pt_rank;

	pt_fill(a->out, n, number, 0);
	pt_ok(PtlPutRegion(a->out_md, 0, n, PTL_ACK_REQ, peer, PORTAL, 0, bits, 0, 0));
	pt_await(a->eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
	pt_ok(PtlGetRegion(a->in_md, 0, n, peer, PORTAL, 0, bits, 0));
	pt_await(a->eq, PT_BIT(PTL_EVENT_REPLY_END), NULL);
	pt_holds(a->in, n, number, 0);
	stage->turns[pt_rank]++;
}

/* Also sends to the one that may stand still, without waiting for that. */
static void be_another(void)
{
	struct actor a = set_out();
	ptl_process_id_t still = pt_id(OTHERS);
	ptl_handle_eq_t still_eq = pt_eq(64);
	ptl_handle_md_t md = pt_bind(a.out, 64, PTL_MD_EVENT_START_DISABLE, still_eq);
	ptl_event_t ev;
	int under_way = 0;

	for (uint64_t i = 0; !stage->over; i++) {
		turn(&a, pt_id((pt_rank + 1) % OTHERS), i);
		if (under_way < 8) {
			pt_ok(PtlPut(md, PTL_NO_ACK_REQ, still, PORTAL, 0,
				     (ptl_match_bits_t)pt_rank, 0, 0));
			under_way++;
		}
		while (PtlEQGet(still_eq, &ev) == PTL_OK) {
			pt_is(ev.ni_fail_type, PTL_NI_OK);
			under_way--;
		}
	}
	for (; under_way; under_way--)
		pt_next(still_eq, PTL_EVENT_SEND_END);
	pt_barrier();
	pt_close();
}

static void be_stopped(void)
{
	struct actor a = set_out();

	for (uint64_t i = 0; !stage->over; i++)
		turn(&a, pt_id((int)(i % OTHERS)), i);
	pt_barrier();
	pt_close();
}

static void random_pause(uint64_t *seed, long most_us)
{
	struct timespec ts = { .tv_nsec = (long)(pt_random(seed) % most_us) * 1000 };

	nanosleep(&ts, NULL);
}

static void expect_turns(const char *when, int from, int to, uint64_t more)
{
	uint64_t before[OTHERS + 1];
	double start = pt_lived(), end = start + pt_patience(20);

	for (int i = from; i <= to; i++)
		before[i] = stage->turns[i];
	for (int i = from; i <= to; i++)
		while (stage->turns[i] < before[i] + more) {
			pt_truef(pt_lived() < end, "%s rank %d made %llu turns in %.1f s", when, i,
				 (unsigned long long)(stage->turns[i] - before[i]),
				 pt_lived() - start);
			pt_pause();
		}
}

/* The conductor is one rank more, and no Portals process. */
static void conduct(void)
{
	uint64_t seed = (uint64_t)time(NULL);
	pid_t pid = pt_os_pid(OTHERS);

	for (int i = 0; i < stops; i++) {
		random_pause(&seed, 5000);
		kill(pid, SIGSTOP);
		if (i % 4)
			expect_turns("while a peer was stopped", 0, OTHERS - 1, WAY);
		else /* whatever the others are doing about it */
			random_pause(&seed, 3000);
		kill(pid, SIGCONT);
		expect_turns("after it went on", 0, OTHERS, 3);
	}
	stage->over = true;
}

static void others_go_on_while_one_is_stopped(void)
{
	if (pt_rank < OTHERS) {
		be_another();
	} else if (pt_rank == OTHERS) {
		be_stopped();
	} else {
		pt_barrier(); /* pt_open */
		pt_barrier(); /* set_out */
		conduct();
		pt_barrier();
		pt_barrier(); /* pt_close */
	}
}

int main(int argc, char **argv)
{
	struct pt_test test = { "others_go_on_while_one_is_stopped",
				others_go_on_while_one_is_stopped, OTHERS + 2, 0 };

	if (argc > 1)
		stops = atoi(argv[1]);
	test.seconds = 100 + stops / 3;
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (stage == MAP_FAILED)
		return 1;
	return pt_main(1, argv, &test, 1);
}
