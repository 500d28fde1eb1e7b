/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The agreement on context numbers, with processes and threads that are simulated: each process
 * is a copy of context.c's variables, and a scheduler lets whoever can go on do one step, in
 * random order. It tries orders that threads of a real job cannot be made to take on demand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/fake_world.h"

/* for its variables */
#include "mpi_shim/core/context.c"

enum { PROCESSES = 6, JOBS = 40, STEPS = 4000000 };

static unsigned char process[PROCESSES][sizeof(here)];

/* One agreement, and where each member is in it. */
struct job {
	unsigned members; /* mask */
	int thread;       /* the agreements of a thread come one after the other */
	int want;
	unsigned lacks; /* mask of those that have no use for a number */
	bool started[PROCESSES], offered[PROCESSES], done[PROCESSES];
	int rounds;
	struct mpi_agree a[PROCESSES];
};

static struct job job[JOBS];

static void enter(int p)
{
	memcpy(&here, process[p], sizeof(here));
	mpi_world.rank = p;
}

static void leave(int p)
{
	memcpy(process[p], &here, sizeof(here));
}

static void boot(void)
{
	memset(job, 0, sizeof(job));
	for (int p = 0; p < PROCESSES; p++) {
		mpi_contexts_init();
		leave(p);
	}
}

static bool member(const struct job *j, int p)
{
	return j->members >> p & 1;
}

/* All members have made their offer: what the reduction gives everyone. */
static void reduce(struct job *j)
{
	uint64_t word[MPI_AGREE_WORDS];
	int first = __builtin_ctz(j->members), n = j->a[first].n;

	memcpy(word, j->a[first].word, sizeof(word));
	for (int p = 0; p < PROCESSES; p++) {
		if (!member(j, p))
			continue;
		assert_int_equal(j->a[p].n, n);
		for (int i = 0; i < n; i++) {
			uint64_t w = j->a[p].word[i];

			if (!j->a[p].max)
				word[i] &= w;
			else if (w > word[i])
				word[i] = w;
		}
	}
	for (int p = 0; p < PROCESSES; p++)
		if (member(j, p))
			memcpy(j->a[p].word, word, sizeof(word));
	j->rounds++;
}

static bool all_offered(const struct job *j)
{
	for (int p = 0; p < PROCESSES; p++)
		if (member(j, p) && !j->offered[p])
			return false;
	return true;
}

/* Is the thread of this process free for job i? Threads take their jobs in order. */
static bool may_start(int i, int p)
{
	for (int k = 0; k < i; k++)
		if (job[k].thread == job[i].thread && member(&job[k], p) && !job[k].done[p])
			return false;
	return true;
}

/* Members whose reduction is complete and who have not looked yet. */
static unsigned to_judge[JOBS];

/* One step of process p in job i; false: it can do nothing now. */
static bool step(int i, int p)
{
	struct job *j = &job[i];

	if (!member(j, p) || j->done[p])
		return false;
	if (to_judge[i] >> p & 1) {
		to_judge[i] &= ~(1u << p);
		enter(p);
		j->done[p] = mpi_agree_judge(&j->a[p]);
		leave(p);
		return true;
	}
	if (j->offered[p] || to_judge[i] || (!j->started[p] && !may_start(i, p)))
		return false;
	enter(p);
	if (!j->started[p])
		mpi_agree_begin(&j->a[p], j->lacks >> p & 1 ? MPI_ERR_NO_MEM : MPI_SUCCESS,
				j->want);
	j->started[p] = true;
	mpi_agree_offer(&j->a[p]);
	leave(p);
	j->offered[p] = true;
	if (all_offered(j)) {
		reduce(j);
		memset(j->offered, 0, sizeof(j->offered));
		to_judge[i] = j->members;
	}
	return true;
}

/* Runs all jobs to their end. */
static void run(int jobs)
{
	memset(to_judge, 0, sizeof(to_judge));
	for (long n = 0; n < STEPS; n++) {
		bool left = false;

		for (int i = 0; i < jobs && !left; i++)
			for (int p = 0; p < PROCESSES; p++)
				left |= member(&job[i], p) && !job[i].done[p];
		if (!left)
			return;
		step(rand() % jobs, rand() % PROCESSES);
	}
	fail_msg("an agreement does not end");
}

/* All members of a job have the same numbers, and no process has one twice. */
static void assert_agreed(int jobs)
{
	static bool used[PROCESSES][MPI_CONTEXT_SLOTS];

	memset(used, 0, sizeof(used));
	for (int i = 0; i < jobs; i++) {
		int first = __builtin_ctz(job[i].members);

		for (int p = 0; p < PROCESSES; p++) {
			if (!member(&job[i], p))
				continue;
			if (job[i].lacks & job[i].members) {
				assert_int_equal(job[i].a[p].error, job[i].lacks >> p & 1
									    ? MPI_ERR_NO_MEM
									    : MPI_ERR_OTHER);
				continue;
			}
			assert_int_equal(job[i].a[p].error, MPI_SUCCESS);
			for (int k = 0; k < job[i].want; k++) {
				uint32_t c = job[i].a[p].context[k];

				assert_int_equal(c, job[i].a[first].context[k]);
				assert_true(c > MPI_CONTEXT_SELF && c % 2 == 0);
				assert_true(c / 2 < MPI_CONTEXT_SLOTS);
				assert_false(used[p][c / 2]);
				used[p][c / 2] = true;
			}
		}
	}
}

static void nothing_is_held_after_all(void)
{
	for (int p = 0; p < PROCESSES; p++) {
		enter(p);
		assert_null(here.eager_holder);
		assert_null(here.late_holder);
		assert_null(here.pending);
	}
}

static void alone_an_agreement_takes_one_round(void **state)
{
	(void)state;
	boot();
	job[0] = (struct job){ .members = 0x3f, .want = 1 };
	run(1);
	assert_agreed(1);
	assert_int_equal(job[0].rounds, 1);
}

static void numbers_taken(int p, int n)
{
	enter(p);
	assert_int_equal(mpi_contexts_free(), MPI_CONTEXT_SLOTS - 3 - n);
}

static void who_has_no_use_for_a_number_tells_the_others_in_one_round(void **state)
{
	(void)state;
	for (int poor = 0; poor < PROCESSES; poor++) {
		boot();
		job[0] = (struct job){ .members = 0x3f, .want = 2, .lacks = 1u << poor };
		job[1] = (struct job){ .members = 0x3f, .want = 1 };
		run(2);
		assert_agreed(2);
		assert_int_equal(job[0].rounds, 1);
		nothing_is_held_after_all();
		numbers_taken(poor, 1);
	}
}

static void threads_on_overlapping_parents_all_end_and_none_shares_a_number(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		int jobs = 1 + rand() % JOBS, threads = 1 + rand() % 5;

		boot();
		for (int i = 0; i < jobs; i++)
			job[i] = (struct job){ .members = 1u + (unsigned)rand() % 0x3f,
					       .thread = rand() % threads,
					       .want = 1 + rand() % 2,
					       .lacks = rand() % 8 ? 0 : (unsigned)rand() & 0x3f };
		run(jobs);
		assert_agreed(jobs);
		nothing_is_held_after_all();
	}
}

/* Process 0 waits in the one of thread 1, with what it offers eagerly, for process 1, which
 * cannot come before its only thread has done the one of thread 0. */
static void a_late_member_of_one_does_not_stop_the_other(void **state)
{
	(void)state;
	boot();
	job[0] = (struct job){ .members = 3, .thread = 0, .want = 1 };
	job[1] = (struct job){ .members = 3, .thread = 1, .want = 1 };
	memset(to_judge, 0, sizeof(to_judge));
	assert_true(step(1, 0));
	for (int n = 0; n < 1000 && !(job[0].done[0] && job[0].done[1]); n++) {
		step(0, 0);
		step(0, 1);
	}
	assert_true(job[0].done[0] && job[0].done[1]);
	run(2);
	assert_agreed(2);
	assert_int_equal(job[1].rounds, 1);
}

static void take_all_but(int p, int n)
{
	enter(p);
	for (uint32_t s = 0; s < MPI_CONTEXT_SLOTS && mpi_contexts_free() > n; s++)
		take_context_slot(s);
	leave(p);
}

static void the_last_numbers_are_found_and_then_all_are_told_that_there_are_none(void **state)
{
	(void)state;
	boot();
	for (int p = 0; p < PROCESSES; p++)
		take_all_but(p, 3);
	job[0] = (struct job){ .members = 7, .want = 2 };
	job[1] = (struct job){ .members = 7, .want = 1 };
	run(2);
	assert_agreed(2);
	memset(&job[0], 0, sizeof(job[0]));
	job[0] = (struct job){ .members = 14, .want = 1 };
	run(1);
	for (int p = 1; p < 4; p++)
		assert_int_equal(job[0].a[p].error, MPI_ERR_OTHER);
	nothing_is_held_after_all();
	/* of two that are wanted one is not enough, and stays free */
	enter(5);
	assert_int_equal(mpi_contexts_free(), 3);
}

static void a_freed_number_rests_until_the_others_were_used(void **state)
{
	uint32_t first, next;

	(void)state;
	boot();
	job[0] = (struct job){ .members = 3, .want = 1 };
	run(1);
	first = job[0].a[0].context[0];
	for (int n = 0; n < 1000; n++) {
		next = job[0].a[0].context[0];
		for (int p = 0; p < 2; p++) {
			enter(p);
			mpi_context_release(next);
			leave(p);
		}
		job[0] = (struct job){ .members = 3, .want = 1 };
		run(1);
		assert_int_not_equal(job[0].a[0].context[0], first);
	}
	enter(0);
	assert_int_equal(mpi_contexts_free(), MPI_CONTEXT_SLOTS - 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone_an_agreement_takes_one_round),
		cmocka_unit_test(who_has_no_use_for_a_number_tells_the_others_in_one_round),
		cmocka_unit_test(threads_on_overlapping_parents_all_end_and_none_shares_a_number),
		cmocka_unit_test(a_late_member_of_one_does_not_stop_the_other),
		cmocka_unit_test(
			the_last_numbers_are_found_and_then_all_are_told_that_there_are_none),
		cmocka_unit_test(a_freed_number_rests_until_the_others_were_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
