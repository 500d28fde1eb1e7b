/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The last rank is killed while it holds locks, or is waited for, or is the target of
 * operations: each synchronization ends within seconds, in MPI_ERR_PROC_ABORTED where the dead
 * one was needed, the others' goes on, and the window can be freed. For mpiexec --keep-going.
 * Usage: create|allocate|portals.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 20.0
#define BYTES   (1 << 20)

static int rank, size, victim, cases, failed;
static char data[BYTES];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* `also`: another class that is right, too. Rank 0 prints. */
static void result(const char *name, int error, int wanted, int also, double since)
{
	int class = MPI_SUCCESS, wrong;

	if (error != MPI_SUCCESS)
		MPI_Error_class(error, &class);
	wrong = (class != wanted && class != also) || now() - since > LIMIT_S;
	if (wrong) {
		printf("# %s: rank %d: error class %d after %.1f s\n", name, rank, class,
		       now() - since);
		fflush(stdout);
	}
	if (rank) {
		MPI_Send(&wrong, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
		return;
	}
	for (int i = 1; i < victim; i++) {
		int one;

		MPI_Recv(&one, 1, MPI_INT, i, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		wrong += one;
	}
	failed += wrong != 0;
	printf("%sok %d - a dead rank: %s\n", wrong ? "not " : "", ++cases, name);
	fflush(stdout);
}

static MPI_Win make(int allocated)
{
	static char memory[BYTES];
	void *base;
	MPI_Win win;

	if (allocated)
		MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	else
		MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	return win;
}

enum { FENCE, START, WAIT, TEST, SAID, AMONG, LOCK, LOCK_ALL, FLUSH, MANY, WINDOWS };

/* Puts of more segments than can be under way, until one ends in an error. */
static int put_until_it_is_dead(MPI_Win win, double since)
{
	MPI_Datatype pieces;
	int err = MPI_SUCCESS;

	MPI_Type_vector(BYTES / 8, 1, 8, MPI_BYTE, &pieces);
	MPI_Type_commit(&pieces);
	while (!err && now() - since < LIMIT_S)
		err = MPI_Put(data, BYTES / 8, MPI_BYTE, victim, 0, 1, pieces, win);
	if (!err)
		err = MPI_Win_flush(victim, win);
	MPI_Type_free(&pieces);
	return err;
}

static void await_dead(MPI_Win win)
{
	double since = now();
	int err = MPI_Win_wait(win);

	result("MPI_Win_wait", err, MPI_ERR_PROC_ABORTED, MPI_ERR_PROC_ABORTED, since);
}

static int test_until_it_ends(MPI_Win win, double since)
{
	int flag = 0, err = MPI_SUCCESS;

	while (!flag && !err && now() - since < LIMIT_S)
		err = MPI_Win_test(win, &flag);
	return err;
}

/* Epochs of the living: each is exposed to the other one, now and then as one that is late. */
static int go_on(MPI_Win win, MPI_Group living)
{
	int err, number, seen = 0;

	for (int i = 1; i <= 20; i++) {
		if (i % 7 == rank)
			usleep(20000);
		err = MPI_Win_post(living, 0, win);
		err = err ? err : MPI_Win_start(living, 0, win);
		number = i;
		err = err ? err : MPI_Put(&number, 4, MPI_BYTE, 1 - rank, 8, 4, MPI_BYTE, win);
		err = err ? err : MPI_Win_complete(win);
		err = err ? err : MPI_Win_wait(win);
		if (err)
			return err;
		MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
		MPI_Get(&seen, 4, MPI_BYTE, rank, 8, 4, MPI_BYTE, win);
		MPI_Win_unlock(rank, win);
		if (seen != i)
			return MPI_ERR_OTHER;
	}
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	int allocated = argc > 1 && strcmp(argv[1], "allocate") == 0, err, one = 1, old, last;
	MPI_Group world, dead, living;
	MPI_Win win[WINDOWS];
	double since;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	victim = size - 1;
	for (int i = 0; i < WINDOWS; i++)
		win[i] = make(allocated);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &victim, &dead);
	MPI_Group_excl(world, 1, &victim, &living);
	if (rank == victim) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win[LOCK]);
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, victim, 0, win[LOCK_ALL]);
		MPI_Win_post(living, 0, win[SAID]);
	} else {
		MPI_Win_post(dead, 0, win[WAIT]);
		MPI_Win_post(dead, 0, win[TEST]);
		MPI_Win_lock(MPI_LOCK_SHARED, victim, 0, win[FLUSH]);
		MPI_Win_lock_all(0, win[MANY]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == victim) {
		usleep(100000); /* the others wait by then, or find it dead */
		raise(SIGKILL);
	}
	if (allocated) /* it dies while they wait */
		await_dead(win[WAIT]);
	if (!allocated) {
		since = now();
		err = put_until_it_is_dead(win[MANY], since);
		result("a put of many pieces", err, MPI_ERR_PROC_ABORTED, MPI_ERR_PROC_ABORTED,
		       since);
		since = now();
		err = MPI_Put(data, BYTES, MPI_BYTE, 1 - rank, 0, BYTES, MPI_BYTE, win[MANY]);
		if (!err)
			err = MPI_Win_flush(1 - rank, win[MANY]);
		result("a put to one that lives", err, MPI_SUCCESS, MPI_SUCCESS, since);
	}
	MPI_Win_unlock_all(win[MANY]);
	since = now();
	err = MPI_Win_fence(0, win[FENCE]);
	result("a fence", err, MPI_ERR_PROC_ABORTED, MPI_SUCCESS,
	       since); /* who let others go may not know */
	since = now();
	err = MPI_Win_start(dead, 0, win[START]);
	result("MPI_Win_start", err, MPI_ERR_PROC_ABORTED, MPI_ERR_PROC_ABORTED, since);
	if (!allocated)
		await_dead(win[WAIT]);
	since = now();
	err = test_until_it_ends(win[TEST], since);
	result("MPI_Win_test", err, MPI_ERR_PROC_ABORTED, MPI_ERR_PROC_ABORTED, since);
	since = now();
	err = MPI_Win_start(dead, 0, win[SAID]);
	result("MPI_Win_start after its post", err, MPI_SUCCESS, MPI_SUCCESS, since);
	since = now();
	err = go_on(win[AMONG], living);
	result("epochs of the others", err, MPI_SUCCESS, MPI_SUCCESS, since);
	since = now();
	err = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win[LOCK]);
	result("a lock it held", err, MPI_ERR_PROC_ABORTED, MPI_ERR_PROC_ABORTED, since);
	since = now();
	err = MPI_Win_lock_all(0, win[LOCK_ALL]);
	result("MPI_Win_lock_all", err, MPI_ERR_PROC_ABORTED, MPI_ERR_PROC_ABORTED, since);
	/* its memory may still be there, but nobody knows what is in it */
	last = allocated ? MPI_SUCCESS : MPI_ERR_PROC_ABORTED;
	since = now();
	err = MPI_Put(data, BYTES, MPI_BYTE, victim, 0, BYTES, MPI_BYTE, win[FLUSH]);
	if (!err)
		err = MPI_Win_flush(victim, win[FLUSH]);
	result("a long put", err, MPI_ERR_PROC_ABORTED, last, since);
	since = now();
	err = MPI_Get(data, 8, MPI_BYTE, victim, 0, 8, MPI_BYTE, win[FLUSH]);
	if (!err)
		err = MPI_Win_flush(victim, win[FLUSH]);
	result("a get", err, MPI_ERR_PROC_ABORTED, last, since);
	since = now();
	err = MPI_Fetch_and_op(&one, &old, MPI_INT, victim, 0, MPI_SUM, win[FLUSH]);
	if (!err)
		err = MPI_Win_flush(victim, win[FLUSH]);
	result("MPI_Fetch_and_op", err, MPI_ERR_PROC_ABORTED, last, since);
	since = now();
	err = MPI_Win_unlock(victim, win[FLUSH]);
	result("unlocking it", err, MPI_ERR_PROC_ABORTED, MPI_SUCCESS, since);
	since = now();
	err = MPI_Win_complete(win[START]);
	result("MPI_Win_complete", err, MPI_ERR_PROC_ABORTED, MPI_SUCCESS, since);
	since = now();
	err = MPI_Win_complete(win[SAID]);
	result("MPI_Win_complete after its post", err, MPI_ERR_PROC_ABORTED, MPI_SUCCESS, since);
	since = now();
	err = MPI_SUCCESS;
	for (int i = 0; i < WINDOWS && !err; i++)
		err = MPI_Win_free(&win[i]);
	result("the windows are freed", err, MPI_SUCCESS, MPI_SUCCESS, since);
	MPI_Group_free(&world);
	MPI_Group_free(&dead);
	MPI_Group_free(&living);
	if (rank == 0)
		printf("1..%d\n", cases);
	MPI_Finalize();
	return failed > 0;
}
