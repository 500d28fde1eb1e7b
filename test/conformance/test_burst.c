/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Bursts: whoever starts thousands of long puts and gets without looking at an event gets them all
 * done, each once and whole, and nobody's wait for another's (report sections 2.1 and 3.13).
 */
#include "ptest.h"

enum { COUNT = 400, ROUNDS = 2 };

static void to_all_others(void)
{
	for (int i = 1; i < pt_size; i++)
		pt_burst_start((pt_rank + i) % pt_size, COUNT);
	for (int i = 1; i < pt_size; i++)
		pt_burst_ended((pt_rank + i) % pt_size, COUNT, false);
	for (int i = 1; i < pt_size; i++)
		pt_burst_served((pt_rank + i) % pt_size, COUNT);
	pt_barrier();
}

static void bursts_between_all_end_whole(void)
{
	pt_open();
	pt_burst_open(COUNT);
	pt_barrier();
	for (int i = 0; i < ROUNDS; i++)
		to_all_others();
}

/* Rank 0 starts them and computes; the others wait in the library from the start. */
static void a_burst_to_waiting_targets_ends_without_its_initiator(void)
{
	pt_open();
	pt_burst_open(COUNT);
	pt_barrier();
	if (pt_rank == 0) {
		for (int i = 1; i < pt_size; i++)
			pt_burst_start(i, COUNT);
		pt_until(*pt_word(0) == (uint64_t)pt_size - 1, 30);
		for (int i = 1; i < pt_size; i++)
			pt_burst_ended(i, COUNT, false);
	} else {
		pt_burst_served(0, COUNT);
		*pt_word(0) += 1;
	}
}

/* The other way round: the targets compute, and rank 0 gets it all done. */
static void a_burst_to_computing_targets_ends_without_them(void)
{
	pt_open();
	pt_burst_open(COUNT);
	pt_barrier();
	if (pt_rank == 0) {
		for (int i = 1; i < pt_size; i++)
			pt_burst_start(i, COUNT);
		for (int i = 1; i < pt_size; i++)
			pt_burst_ended(i, COUNT, false);
		*pt_word(0) = 1;
	} else {
		pt_until(*pt_word(0), 30);
		pt_burst_served(0, COUNT);
	}
}

/* Rank 0's first 800 are for itself, the others' are behind them. */
static void a_burst_to_oneself_is_in_nobodys_way(void)
{
	pt_open();
	pt_burst_open(COUNT);
	pt_barrier();
	pt_burst_start(pt_rank, COUNT);
	pt_burst_start(1 - pt_rank, COUNT);
	pt_burst_ended(1 - pt_rank, COUNT, false);
	pt_burst_served(1 - pt_rank, COUNT);
	pt_burst_ended(pt_rank, COUNT, false);
	pt_burst_served(pt_rank, COUNT);
}

static const struct pt_test tests[] = {
	PT_LONG(bursts_between_all_end_whole, 4, 120),
	PT_LONG(a_burst_to_waiting_targets_ends_without_its_initiator, 3, 120),
	PT_LONG(a_burst_to_computing_targets_ends_without_them, 3, 120),
	PT_LONG(a_burst_to_oneself_is_in_nobodys_way, 2, 120),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
