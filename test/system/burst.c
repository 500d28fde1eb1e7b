/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Bursts of long messages between several processes while one of them is stopped, or killed, in
 * the middle of its own. Its messages with all others are older than theirs with each other, and
 * must not block those; when it goes on, all of its messages arrive; when it is dead, all of them
 * end.
 */
#include "ptest.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OTHERS = 3, COUNT = 400 };

enum word { STARTED, GONE, AMONG_OTHERS, PID };

static void with_all_others(void)
{
	for (int i = 1; i < OTHERS; i++)
		pt_burst_start((pt_rank + i) % OTHERS, COUNT);
	for (int i = 1; i < OTHERS; i++) {
		pt_burst_ended((pt_rank + i) % OTHERS, COUNT, false);
		pt_burst_served((pt_rank + i) % OTHERS, COUNT);
	}
}

/* The last rank: starts a burst with each other one, sees to none of the ends, but does the most
 * it can. */
static void start_with_all(void)
{
	for (int i = 0; i < OTHERS; i++)
		pt_burst_start(i, COUNT);
	*pt_word(STARTED) += 1;
}

/* The others': theirs to and from the last rank come first. Then that one gets the signal. */
static void start_and_send(int signal)
{
	pt_burst_start(OTHERS, COUNT);
	*pt_word(STARTED) += 1;
	if (pt_rank == 0) {
		pt_until(*pt_word(STARTED) == OTHERS + 1, 60);
		kill((pid_t)*pt_word(PID), signal);
		*pt_word(GONE) = 1;
	}
	pt_until(*pt_word(GONE), 60);
}

static void end_with_all(void)
{
	for (int i = 0; i < OTHERS; i++) {
		pt_burst_ended(i, COUNT, false);
		pt_burst_served(i, COUNT);
	}
}

static void open_all(void)
{
	pt_open();
	pt_burst_open(COUNT);
	if (pt_rank == OTHERS)
		*pt_word(PID) = (uint64_t)getpid();
	pt_barrier();
}

static void others_end_theirs_while_one_stands_still(void)
{
	open_all();
	if (pt_rank == OTHERS) {
		start_with_all();
		end_with_all();
		return;
	}
	start_and_send(SIGSTOP);
	with_all_others();
	*pt_word(AMONG_OTHERS) += 1;
	if (pt_rank == 0) {
		pt_until(*pt_word(AMONG_OTHERS) == OTHERS, 60);
		kill((pid_t)*pt_word(PID), SIGCONT);
	}
	pt_burst_ended(OTHERS, COUNT, false);
	pt_burst_served(OTHERS, COUNT);
}

/* Its place at the barriers is taken by its parent. */
static void be_killed(void)
{
	int status;
	pid_t pid = fork();

	pt_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_all();
		start_with_all();
		/* never, for some of the others look at nothing before it is dead */
		end_with_all();
		pause();
	}
	pt_is(waitpid(pid, &status, 0), pid);
	pt_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	pt_barrier(); /* pt_close */
}

static void what_a_killed_one_left_ends_and_others_go_on(void)
{
	int failed;

	if (pt_rank == OTHERS) {
		be_killed();
		return;
	}
	open_all();
	start_and_send(SIGKILL);
	failed = pt_burst_ended(OTHERS, COUNT, true);
	failed += pt_burst_cut_off(OTHERS);
	with_all_others();
	fprintf(stderr, "# rank %d: %d operations failed\n", pt_rank, failed);
}

static const struct pt_test tests[] = {
	PT_LONG(others_end_theirs_while_one_stands_still, OTHERS + 1, 120),
	PT_LONG(what_a_killed_one_left_ends_and_others_go_on, OTHERS + 1, 120),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
