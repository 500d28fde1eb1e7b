/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Several threads of each rank with one window: each puts, gets and adds on its own, in one epoch that all share,
 * while others send messages. Usage: [SEED [ROUNDS]].
 */
#include <pthread.h>

#include "test/mpi/p2p/p2p_check.h"

enum { THREADS = 3, STEPS = 150, LONGS = 2000 };

static MPI_Win win;
static long *memory;
static const char *wrongs[THREADS];

/* memory[0] counts; each thread of each rank has a place for one number, and a long one. */
static MPI_Aint place(int rank, int thread)
{
	return 1 + rank * THREADS + thread;
}

static MPI_Aint long_place(int rank, int thread)
{
	return 1 + tap_size * THREADS + (MPI_Aint)(rank * THREADS + thread) * LONGS;
}

static const char *work(int thread)
{
	static long mine[THREADS][LONGS], back[THREADS][LONGS];
	int target = (tap_rank + thread) % tap_size, to = (tap_rank + 1) % tap_size,
	    from = (tap_rank + tap_size - 1) % tap_size;
	long one = 1, old, last = -1, number;

	for (int i = 0; i < STEPS; i++) {
		CHECK_OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, win));
		CHECK_OK(MPI_Win_flush(0, win));
		CHECK(old > last);
		last = old;
		number = i;
		CHECK_OK(MPI_Put(&number, 1, MPI_LONG, target, place(tap_rank, thread), 1, MPI_LONG,
				 win));
		CHECK_OK(MPI_Win_flush(target, win));
		number = -1;
		CHECK_OK(MPI_Get(&number, 1, MPI_LONG, target, place(tap_rank, thread), 1, MPI_LONG,
				 win));
		CHECK_OK(MPI_Win_flush(target, win));
		CHECK_INT(number, i);
		if (i % 10 == 0) {
			MPI_Request r;

			for (int k = 0; k < LONGS; k++)
				mine[thread][k] = i + k + thread;
			CHECK_OK(MPI_Rput(mine[thread], LONGS, MPI_LONG, target,
					  long_place(tap_rank, thread), LONGS, MPI_LONG, win, &r));
			CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
			CHECK_OK(MPI_Win_flush(target, win));
			CHECK_OK(MPI_Rget(back[thread], LONGS, MPI_LONG, target,
					  long_place(tap_rank, thread), LONGS, MPI_LONG, win, &r));
			CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
			CHECK(memcmp(mine[thread], back[thread], sizeof(mine[thread])) == 0);
		}
		number = i;
		CHECK_OK(MPI_Sendrecv_replace(&number, 1, MPI_LONG, to, thread, from, thread,
					      MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		CHECK_INT(number, i);
	}
	return NULL;
}

static void *run(void *arg)
{
	int thread = *(int *)arg;
	const char *wrong = work(thread);

	wrongs[thread] = wrong ? strdup(wrong) : NULL;
	return NULL;
}

static const char *together(int round)
{
	MPI_Aint bytes = (1 + tap_size * THREADS * (1 + LONGS)) * (MPI_Aint)sizeof(long);
	int number[THREADS];
	pthread_t thread[THREADS];
	const char *wrong = NULL;
	long count;

	if (round % 2)
		MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	else
		MPI_Win_create(memory = malloc((size_t)bytes), bytes, sizeof(long), MPI_INFO_NULL,
			       MPI_COMM_WORLD, &win);
	memset(memory, 0, (size_t)bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		pthread_create(&thread[i], NULL, run, &number[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		wrong = wrong ? wrong : wrongs[i];
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	count = memory[0];
	MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	MPI_Win_free(&win);
	if (round % 2 == 0)
		free(memory);
	if (!wrong && count != (long)tap_size * THREADS * STEPS)
		wrong = tap_wrong("the counter is at %ld", count);
	return wrong;
}

/* ---- attached memory that changes ------------------------------------------------------------------- */

static MPI_Aint theirs;
static _Atomic int at_work;

/* The first thread attaches and detaches, the others use what stays. */
static const char *use_attached(int thread)
{
	static long mine[THREADS];
	int target = (tap_rank + 1) % tap_size;
	MPI_Aint at = theirs + thread * (MPI_Aint)sizeof(long);

	for (int i = 0; thread > 0 && i < STEPS; i++) {
		mine[thread] = i;
		CHECK_OK(MPI_Put(&mine[thread], 1, MPI_LONG, target, at, 1, MPI_LONG, win));
		CHECK_OK(MPI_Win_flush(target, win));
		mine[thread] = -1;
		CHECK_OK(MPI_Get(&mine[thread], 1, MPI_LONG, target, at, 1, MPI_LONG, win));
		CHECK_OK(MPI_Win_flush(target, win));
		CHECK_INT(mine[thread], i);
	}
	if (thread > 0)
		return NULL;
	while (at_work > 0) {
		static long more[4];

		for (int i = 0; i < 4; i++)
			CHECK_OK(MPI_Win_attach(win, &more[i], sizeof(long)));
		for (int i = 0; i < 4; i++)
			CHECK_OK(MPI_Win_detach(win, &more[i]));
	}
	return NULL;
}

static void *run_attached(void *arg)
{
	int thread = *(int *)arg;
	const char *wrong = use_attached(thread);

	wrongs[thread] = wrong ? strdup(wrong) : NULL;
	at_work--;
	return NULL;
}

static const char *attaching(int round)
{
	static long attached_memory[THREADS];
	int number[THREADS];
	pthread_t thread[THREADS];
	const char *wrong = NULL;
	MPI_Aint here;

	(void)round;
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_attach(win, attached_memory, sizeof(attached_memory));
	MPI_Get_address(attached_memory, &here);
	MPI_Sendrecv(&here, 1, MPI_AINT, (tap_rank + tap_size - 1) % tap_size, 0, &theirs, 1,
		     MPI_AINT, (tap_rank + 1) % tap_size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Win_lock_all(0, win);
	at_work = THREADS - 1;
	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		pthread_create(&thread[i], NULL, run_attached, &number[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		wrong = wrong ? wrong : wrongs[i];
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_free(&win);
	return wrong;
}

int main(int argc, char **argv)
{
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	if (level < MPI_THREAD_MULTIPLE) {
		printf("1..0 # SKIP no MPI_THREAD_MULTIPLE\n");
		return 0;
	}
	tap_start(argc, argv, 2);
	tap_case("threads share a window", together);
	tap_case("threads use a dynamic window that changes", attaching);
	return tap_end();
}
