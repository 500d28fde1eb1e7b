/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_THREAD_MULTIPLE where processors are short: a thread that yields while it waits is not to
 * keep the others of its process out of MPI, or of Portals, as long as it does not run. Its
 * sched_yield is ours, and lets another thread make a call meanwhile. For two ranks, bound to
 * nothing: they share one processor.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test/mpi/pt2pt/check.h"

#define TURNS    20
#define MESSAGES 300
#define LONGEST  2.0 /* seconds for TURNS, which do not come where looks take long */
#define STEP_NS  50000000
#define STEPS    20 /* a second; who is held still loses one */

enum call { LOCK_ONLY, LOOK, NO_MORE };

static _Thread_local bool watched;
static enum call call; /* what the other thread does when it is asked */
static sem_t asked, answered;
static int turns, kept_out;

/* Interposed: the other thread's call is to end before our turn comes again. */
int sched_yield(void)
{
	if (!watched)
		return (int)syscall(SYS_sched_yield);
	turns++;
	sem_post(&asked);
	for (int i = 0; i < STEPS; i++) {
		struct timespec end;

		clock_gettime(CLOCK_REALTIME, &end);
		end.tv_nsec += STEP_NS;
		end.tv_sec += end.tv_nsec / 1000000000;
		end.tv_nsec %= 1000000000;
		if (sem_timedwait(&answered, &end) == 0)
			return 0;
	}
	kept_out++;
	watched = false; /* until it is in */
	return 0;
}

static void *other(void *unused)
{
	MPI_Status s;
	int n;

	for (;;) {
		sem_wait(&asked);
		if (call == NO_MORE)
			return unused;
		if (call == LOCK_ONLY)
			MPI_Type_size(MPI_INT, &n);
		else
			MPI_Iprobe(1, 9, MPI_COMM_WORLD, &n, &s);
		sem_post(&answered);
	}
}

static void watch(enum call what)
{
	call = what;
	turns = kept_out = 0;
	watched = true;
}

/* One that was kept out has had its call by now. */
static void watch_again(void)
{
	if (watched)
		return;
	sem_wait(&answered);
	watched = true;
}

/* Now and then a turn is given away inside Portals: to a process that holds the region's lock, or
 * to find out whether giving it away disturbs anybody. */
static bool too_often(void)
{
	return kept_out > 2 + turns / 32;
}

static const char *testing(int round)
{
	double end = time_now() + LONGEST;
	MPI_Request r;
	int flag = 0;

	(void)round;
	if (tap_rank == 1) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
	}
	if (tap_rank != 0)
		return NULL;
	MPI_Irecv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &r);
	watch(LOCK_ONLY);
	while (!too_often() && turns < TURNS && time_now() < end + kept_out) { /* a second each */
		MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
		watch_again();
	}
	watched = false;
	MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(turns > 0);
	CHECK(!too_often());
	return NULL;
}

static const char *receiving(int round)
{
	(void)round;
	for (int i = 0; i < MESSAGES && tap_rank == 1; i++) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
	}
	if (tap_rank != 0)
		return NULL;
	watch(LOOK);
	for (int i = 0; i < MESSAGES; i++) {
		MPI_Send(NULL, 0, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
		MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (!too_often())
			watch_again();
	}
	watch_again();
	watched = false;
	CHECK(!too_often());
	return NULL;
}

static void share_a_processor(void)
{
	cpu_set_t mine, one;

	sched_getaffinity(0, sizeof(mine), &mine);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &mine))
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int provided;

	share_a_processor();
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	tap_start(argc, argv, 1);
	sem_init(&asked, 0, 0);
	sem_init(&answered, 0, 0);
	pthread_create(&thread, NULL, other, NULL);
	tap_case("turns: a thread that tests keeps nobody out", testing);
	tap_case("turns: nor does one that waits", receiving);
	call = NO_MORE;
	sem_post(&asked);
	pthread_join(thread, NULL);
	return tap_end();
}
