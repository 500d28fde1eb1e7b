/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A process that job control has stopped is let run until it has left a critical section:
 * nal/shm/shm_stopped.c. Whatever anybody else tells it meanwhile is what counts afterwards.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nal/shm/shm.h"

enum { MASK = 0xff, INSIDE = 7, ELSEWHERE = 0x100 };

/* The memory that the processes of a case share. */
static struct stage {
	_Atomic uint32_t word;        /* the critical section's */
	_Atomic bool may_leave;       /* it */
	_Atomic uint64_t turns;       /* that the process makes, inside and after */
	_Atomic unsigned int handled; /* signals */
} * stage;

static pid_t stopped;

static void handle(int signo)
{
	(void)signo;
	stage->handled++;
}

static void turn(void)
{
	stage->turns++;
	usleep(100);
}

static void *be_stopped_inside(void *unused)
{
	stage->word = INSIDE | ELSEWHERE;
	raise(SIGSTOP); /* this thread goes no further, whichever it is */
	while (!stage->may_leave)
		turn();
	stage->word = ELSEWHERE;
	for (;;)
		turn();
	return unused;
}

static void be_stopped_in_a_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, be_stopped_inside, NULL);
	pthread_join(thread, NULL);
}

static char state_of_stopped(void)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)stopped);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state;
}

static void begin(bool in_a_thread, bool may_leave)
{
	int status;

	stage->word = stage->handled = 0;
	stage->turns = 0;
	stage->may_leave = may_leave;
	stopped = fork();
	assert_true(stopped >= 0);
	if (!stopped) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGUSR1, handle);
		if (in_a_thread)
			be_stopped_in_a_thread();
		be_stopped_inside(NULL);
	}
	assert_int_equal(waitpid(stopped, &status, WUNTRACED), stopped);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(stage->word, INSIDE | ELSEWHERE);
	assert_int_equal(stage->turns, 0);
}

static void let_run(void)
{
	while ((stage->word & MASK) == INSIDE) /* once, if it gets a core soon */
		shm_let_run(stopped, &stage->word, MASK, INSIDE);
}

static bool goes_on(uint64_t turns)
{
	const uint64_t from = stage->turns;

	for (int i = 0; i < 3000 && stage->turns < from + turns; i++)
		usleep(1000);
	return stage->turns >= from + turns;
}

static bool stands_still(void)
{
	uint64_t turns;

	for (int i = 0; i < 3000 && state_of_stopped() != 'T'; i++)
		usleep(1000);
	turns = stage->turns;
	usleep(20000);
	return state_of_stopped() == 'T' && stage->turns == turns;
}

static int end(void **state)
{
	(void)state;
	kill(stopped, SIGKILL);
	waitpid(stopped, NULL, 0);
	return 0;
}

static void it_leaves_and_is_stopped_again(void **state)
{
	int status;

	(void)state;
	begin(false, true);
	let_run();
	assert_int_equal(stage->word, ELSEWHERE);
	assert_true(stands_still());
	/* its parent hears nothing of it */
	assert_int_equal(waitpid(stopped, &status, WNOHANG | WUNTRACED | WCONTINUED), 0);
	kill(stopped, SIGCONT);
	assert_true(goes_on(10));
}

static void so_does_one_of_its_threads(void **state)
{
	(void)state;
	begin(true, true);
	let_run();
	assert_true(stands_still());
	kill(stopped, SIGCONT);
	assert_true(goes_on(10));
}

/* Another process, which tells the one that is let run something while it still is inside. */
static void meanwhile(void (*tell)(void))
{
	pid_t teller = fork();

	assert_true(teller >= 0);
	if (!teller) {
		if (!goes_on(3))
			_exit(1);
		tell();
		goes_on(3);
		stage->may_leave = true;
		_exit(0);
	}
	let_run();
	assert_int_equal(waitpid(teller, NULL, 0), teller);
}

static void go_on(void)
{
	kill(stopped, SIGCONT);
}

static void who_continues_it_meanwhile_has_the_last_word(void **state)
{
	(void)state;
	begin(false, false);
	meanwhile(go_on);
	assert_true(goes_on(10));
	assert_int_not_equal(state_of_stopped(), 'T');
}

static void go_on_and_stop(void)
{
	kill(stopped, SIGCONT);
	kill(stopped, SIGSTOP);
}

static void and_who_stops_it_again(void **state)
{
	(void)state;
	begin(false, false);
	meanwhile(go_on_and_stop);
	assert_true(stands_still());
	kill(stopped, SIGCONT);
	assert_true(goes_on(10));
}

static void send_signal(void)
{
	kill(stopped, SIGUSR1);
}

static void no_signal_is_lost(void **state)
{
	(void)state;
	begin(false, false);
	meanwhile(send_signal);
	assert_true(stands_still());
	assert_int_equal(stage->handled, 1);
}

static void one_that_is_traced_or_gone_is_left_alone(void **state)
{
	(void)state;
	begin(false, true);
	assert_int_equal(ptrace(PTRACE_SEIZE, stopped, NULL, NULL), 0);
	assert_false(shm_let_run(stopped, &stage->word, MASK, INSIDE));
	kill(stopped, SIGKILL);
	waitpid(stopped, NULL, 0);
	assert_false(shm_let_run(stopped, &stage->word, MASK, INSIDE));
}

/* As a peer does it, who is no ancestor: some systems allow less than others. */
static bool may_trace(void)
{
	begin(false, true);
	for (int i = 0; i < 100 && (stage->word & MASK) == INSIDE; i++) {
		shm_let_run(stopped, &stage->word, MASK, INSIDE);
		usleep(1000);
	}
	end(NULL);
	return (stage->word & MASK) != INSIDE;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(it_leaves_and_is_stopped_again, end),
		cmocka_unit_test_teardown(so_does_one_of_its_threads, end),
		cmocka_unit_test_teardown(who_continues_it_meanwhile_has_the_last_word, end),
		cmocka_unit_test_teardown(and_who_stops_it_again, end),
		cmocka_unit_test_teardown(no_signal_is_lost, end),
		cmocka_unit_test(one_that_is_traced_or_gone_is_left_alone),
	};

	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (stage == MAP_FAILED)
		return 1;
	alarm(100);
	if (!may_trace()) {
		puts("1..0 # SKIP no process may trace another here");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
