/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Several threads of each rank with one window: each puts, gets and adds on its own, in one
 * epoch that all share, while others send messages; and epochs of post and of start at once.
 * Usage: [SEED [ROUNDS]].
 */
#include <pthread.h>
#include <unistd.h>

#include "test/mpi/pt2pt/check.h"

enum { THREADS = 3, STEPS = 150, LONGS = 2000 };

static MPI_Win win;
static long *memory;

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

/* The work of one of the threads, and whether it was right. */
struct task {
	pthread_t thread;
	int number;
	const char *(*body)(int thread);
	const char *wrong;
};

static void *run(void *arg)
{
	struct task *task = arg;
	const char *wrong = task->body(task->number);

	task->wrong = wrong ? strdup(wrong) : NULL;
	return NULL;
}

static const char *run_threads(const char *(*body)(int thread))
{
	struct task task[THREADS];
	const char *wrong = NULL;

	for (int i = 0; i < THREADS; i++) {
		task[i] = (struct task){ .number = i, .body = body };
		pthread_create(&task[i].thread, NULL, run, &task[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(task[i].thread, NULL);
		wrong = wrong ? wrong : task[i].wrong;
	}
	return wrong;
}

static const char *together(int round)
{
	MPI_Aint bytes = (1 + tap_size * THREADS * (1 + LONGS)) * (MPI_Aint)sizeof(long);
	const char *wrong;
	long count;

	if (round % 2)
		MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	else
		MPI_Win_create(memory = malloc((size_t)bytes), bytes, sizeof(long), MPI_INFO_NULL,
			       MPI_COMM_WORLD, &win);
	memset(memory, 0, (size_t)bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	wrong = run_threads(work);
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

/* ---- attached memory that changes ------------------------------------------------------------ */

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

static const char *use_and_leave(int thread)
{
	const char *wrong = use_attached(thread);

	at_work--;
	return wrong;
}

static const char *attaching(int round)
{
	static long attached_memory[THREADS];
	const char *wrong;
	MPI_Aint here;

	(void)round;
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_attach(win, attached_memory, sizeof(attached_memory));
	MPI_Get_address(attached_memory, &here);
	MPI_Sendrecv(&here, 1, MPI_AINT, (tap_rank + tap_size - 1) % tap_size, 0, &theirs, 1,
		     MPI_AINT, (tap_rank + 1) % tap_size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Win_lock_all(0, win);
	at_work = THREADS - 1;
	wrong = run_threads(use_and_leave);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_free(&win);
	return wrong;
}

/* ---- post and start at once ------------------------------------------------------------------ */

enum { EPOCHS = 400, LATE_EPOCHS = 200 };

/* The first thread exposes its memory to the last rank and its own, the second accesses, the
 * third sends messages. */
static const char *work_at_once(int thread)
{
	int to = (tap_rank + 1) % tap_size, from = (tap_rank + tap_size - 1) % tap_size;
	MPI_Group all, next, last;
	int origins[] = { tap_rank, from }, targets[] = { to, tap_rank };
	long got, own;

	MPI_Win_get_group(win, &all);
	MPI_Group_incl(all, 2, targets, &next);
	MPI_Group_incl(all, 2, origins, &last);
	for (long i = 1; i <= EPOCHS; i++) {
		if (thread == 0) {
			memory[0] = i;
			CHECK_OK(MPI_Win_post(last, 0, win));
			CHECK_OK(MPI_Win_wait(win));
			CHECK_INT(memory[1], -i);
			CHECK_INT(memory[2], -i);
		} else if (thread == 1) {
			long number = -i;

			CHECK_OK(MPI_Win_start(next, 0, win));
			CHECK_OK(MPI_Get(&got, 1, MPI_LONG, to, 0, 1, MPI_LONG, win));
			CHECK_OK(MPI_Get(&own, 1, MPI_LONG, tap_rank, 0, 1, MPI_LONG, win));
			CHECK_OK(MPI_Put(&number, 1, MPI_LONG, to, 1, 1, MPI_LONG, win));
			CHECK_OK(MPI_Put(&number, 1, MPI_LONG, tap_rank, 2, 1, MPI_LONG, win));
			CHECK_OK(MPI_Win_complete(win));
			CHECK_INT(got, i);
			CHECK_INT(own, i);
		} else {
			got = i;
			CHECK_OK(MPI_Sendrecv_replace(&got, 1, MPI_LONG, to, thread, from, thread,
						      MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		}
	}
	MPI_Group_free(&all);
	MPI_Group_free(&next);
	MPI_Group_free(&last);
	return NULL;
}

/* The first thread exposes its memory to its own rank, so late that the second, which accesses
 * it, sleeps. */
static const char *work_alone(int thread)
{
	MPI_Group all, self;

	MPI_Win_get_group(win, &all);
	MPI_Group_incl(all, 1, &tap_rank, &self);
	for (long i = 1; i <= LATE_EPOCHS; i++) {
		if (thread == 0) {
			usleep(1500);
			CHECK_OK(MPI_Win_post(self, 0, win));
			CHECK_OK(MPI_Win_wait(win));
			CHECK_INT(memory[0], i);
		} else if (thread == 1) {
			CHECK_OK(MPI_Win_start(self, 0, win));
			CHECK_OK(MPI_Put(&i, 1, MPI_LONG, tap_rank, 0, 1, MPI_LONG, win));
			CHECK_OK(MPI_Win_complete(win));
		}
	}
	MPI_Group_free(&all);
	MPI_Group_free(&self);
	return NULL;
}

static const char *expose_and_access(int round, const char *(*body)(int thread))
{
	const MPI_Aint bytes = 3 * sizeof(long);
	const char *wrong;

	if (round % 2)
		MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	else
		MPI_Win_create(memory = malloc((size_t)bytes), bytes, sizeof(long), MPI_INFO_NULL,
			       MPI_COMM_WORLD, &win);
	wrong = run_threads(body);
	MPI_Win_free(&win);
	if (round % 2 == 0)
		free(memory);
	return wrong;
}

static const char *at_once(int round)
{
	return expose_and_access(round, work_at_once);
}

static const char *alone(int round)
{
	return expose_and_access(round, work_alone);
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
	tap_case("threads expose and access at once", at_once);
	tap_case("a thread waits for what another one of its rank says", alone);
	return tap_end();
}
