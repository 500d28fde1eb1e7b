/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A biased lock that a peer takes away again and again (portals/engine/lock.h), while the owner's
 * threads come and go on one processor: after the end of a thread kernels forget that its process,
 * which runs there on, takes part in membarrier(2).
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu.h"
#include "nal/nal.h"
#include "portals/engine/ni.h"

enum { LINES = 64, CALLS = 2000, CANNOT = 77 };

#define CASE_NS 2000000000u

/* The memory that the two processes share. */
static struct stage {
	struct ptl_region region;
	_Atomic uint32_t inside; /* somebody holds the lock */
	_Atomic uint64_t ended, revoked, wrong;
	_Atomic bool over;
	/* written by both: the owner's store to the lock's `inside` waits behind its others */
	struct {
		_Alignas(64) _Atomic uint32_t owners, peers;
	} line[LINES];
} * stage;

static struct ptl_ni ni;
static cpu_set_t cpus;
static uint32_t seed = 1;

static bool nobody_is_dead(struct ptl_ni *unused, uint32_t token)
{
	(void)unused;
	(void)token;
	return false;
}

static const struct nal_ops nal = { .holder_dead = nobody_is_dead };

static uint32_t draw(uint32_t below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % below;
}

static void pin(int which)
{
	cpu_set_t one;
	int n = 0;

	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &cpus) && n++ == which)
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* With the lock, for a moment. */
static void stay(void)
{
	const uint32_t looks = draw(20);

	if (atomic_load_explicit(&stage->inside, memory_order_relaxed))
		stage->wrong++;
	atomic_store_explicit(&stage->inside, 1, memory_order_relaxed);
	for (uint32_t i = 0; i < looks; i++)
		base_cpu_relax();
	if (!atomic_load_explicit(&stage->inside, memory_order_relaxed))
		stage->wrong++;
	atomic_store_explicit(&stage->inside, 0, memory_order_relaxed);
}

static void *call(void *unused)
{
	for (int i = 0; i < CALLS; i++) {
		for (int k = 0; k < LINES; k++)
			atomic_store_explicit(&stage->line[k].owners, (uint32_t)i,
					      memory_order_relaxed);
		ptl_lock(&ni);
		stay();
		ni.rounds += 2000; /* as if it had lasted: it is biased again soon */
		ptl_unlock(&ni);
	}
	return unused;
}

static void own(bool in_turn, pid_t parent)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	pin(1);
	ptl_lock_allow_bias(&ni);
	if (!ni.may_bias)
		_exit(CANNOT);
	while (!stage->over) {
		if (pthread_create(&thread, NULL, call, NULL))
			_exit(1);
		if (!in_turn)
			call(NULL);
		pthread_join(thread, NULL);
		call(NULL);
		stage->ended++;
		usleep(200); /* outside for longer than it takes to take the lock away */
	}
	_exit(0);
}

static void take_away(void)
{
	struct ptl_region *r = &stage->region;
	uint32_t word = atomic_load_explicit(&r->lock, memory_order_relaxed);

	for (int k = 0; k < LINES; k++)
		atomic_store_explicit(&stage->line[k].peers, word, memory_order_relaxed);
	if (!(word & PTL_LOCK_BIASED) || word & PTL_LOCK_TOKEN ||
	    !ptl_lock_revoke(r, word, PTL_LOCK_PEER(0)))
		return;
	stay();
	ptl_unlock_plain(r);
	stage->revoked++;
}

static void nobody_is_inside_with_another(bool in_turn)
{
	const uint64_t end = base_now_ns() + CASE_NS;
	pid_t me = getpid(), owner, ended = 0;
	int status = 0;

	memset(stage, 0, sizeof(*stage));
	ni = (struct ptl_ni){ .view.r = &stage->region, .nal = &nal, .spin_ns = 1000 };
	owner = fork();
	assert_true(owner >= 0);
	if (!owner)
		own(in_turn, me);
	pin(0);
	while (base_now_ns() < end && !(ended = waitpid(owner, &status, WNOHANG)))
		take_away();
	stage->over = true;
	/* with two holders of the lock it may wait for ever */
	for (int i = 0; i < 10000 && !ended; i++) {
		ended = waitpid(owner, &status, WNOHANG);
		usleep(1000);
	}
	if (!ended) {
		kill(owner, SIGKILL);
		waitpid(owner, &status, 0);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
		skip(); /* no lock is biased here */
	printf("# %llu times taken away, threads ended %llu times\n",
	       (unsigned long long)stage->revoked, (unsigned long long)stage->ended);
	assert_int_equal(stage->wrong, 0);
	assert_int_equal(status, 0);
	assert_true(stage->ended > 0 && stage->revoked > 0);
}

static void threads_in_turn(void **state)
{
	(void)state;
	nobody_is_inside_with_another(true);
}

static void threads_at_the_same_time(void **state)
{
	(void)state;
	nobody_is_inside_with_another(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_in_turn),
		cmocka_unit_test(threads_at_the_same_time),
	};

	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (stage == MAP_FAILED)
		return 1;
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (CPU_COUNT(&cpus) < 2) {
		puts("1..0 # SKIP it takes two processors");
		return 0;
	}
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
