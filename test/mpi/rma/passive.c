/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A target that calls nothing: the last rank computes for two seconds, and meanwhile the others
 * lock its memory, read, write and accumulate there, in windows of every flavour. It goes on
 * computing until it sees in its memory that they have done. Usage: [SEED [ROUNDS]].
 */
#include <sched.h>

#include "test/mpi/pt2pt/check.h"

enum { FLAVORS = 4, DOUBLES = 20000, ADDS = 50 };
#define COMPUTES_S 2.0
#define LIMIT_S    60.0 /* to give up after */

static MPI_Win win;
static double *memory;

static void make_window(int flavor)
{
	MPI_Aint bytes = DOUBLES * (MPI_Aint)sizeof(double);

	if (flavor == 0) {
		memory = malloc((size_t)bytes);
		MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	} else if (flavor == 1) {
		MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	} else if (flavor == 2) {
		MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	} else {
		memory = malloc((size_t)bytes);
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
		MPI_Win_attach(win, memory, bytes);
	}
	memset(memory, 0, (size_t)bytes);
}

static void free_window(int flavor)
{
	if (flavor == 3)
		MPI_Win_detach(win, memory);
	MPI_Win_free(&win);
	if (flavor == 0 || flavor == 3)
		free(memory);
}

/* False: the others have not come to their end. */
static bool compute(void)
{
	const volatile double *done = &memory[1];
	volatile double x = 1;
	double start = time_now();

	while (time_now() < start + COMPUTES_S || *done < tap_size - 1) {
		for (int i = 0; i < 1000; i++)
			x = x * 1.0000001;
		if (time_now() > start + LIMIT_S)
			return false;
	}
	return true;
}

/* Every way to the target, of ranks but the last. */
static const char *visit(int target, MPI_Aint base)
{
	static double mine[DOUBLES], back[DOUBLES];
	double one = 1, old;
	MPI_Datatype every_second;
	MPI_Request request;
	int n = DOUBLES / tap_size / 2;
	MPI_Aint part = base + 64 + (MPI_Aint)tap_rank * n * 2 * (MPI_Aint)sizeof(double);

	MPI_Type_vector(n - 8, 1, 2, MPI_DOUBLE, &every_second);
	MPI_Type_commit(&every_second);
	for (int i = 0; i < n; i++)
		mine[i] = tap_rank * 1000 + i;
	CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
	CHECK_OK(MPI_Put(mine, n, MPI_DOUBLE, target, part, n, MPI_DOUBLE, win));
	CHECK_OK(MPI_Win_unlock(target, win));
	CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
	CHECK_OK(MPI_Rget(back, n, MPI_DOUBLE, target, part, n, MPI_DOUBLE, win, &request));
	CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	CHECK(memcmp(mine, back, (size_t)n * sizeof(double)) == 0);
	CHECK_OK(MPI_Put(mine, n - 8, MPI_DOUBLE, target, part, 1, every_second, win));
	CHECK_OK(MPI_Win_flush(target, win));
	CHECK_OK(MPI_Get(back, n - 8, MPI_DOUBLE, target, part, 1, every_second, win));
	CHECK_OK(MPI_Win_flush_local(target, win));
	CHECK(memcmp(mine, back, (size_t)(n - 8) * sizeof(double)) == 0);
	for (int i = 0; i < ADDS; i++)
		CHECK_OK(MPI_Accumulate(&one, 1, MPI_DOUBLE, target, base, 1, MPI_DOUBLE, MPI_SUM,
					win));
	CHECK_OK(MPI_Win_flush(target, win));
	CHECK_OK(MPI_Fetch_and_op(&one, &old, MPI_DOUBLE, target, base, MPI_SUM, win));
	CHECK_OK(MPI_Win_unlock(target, win));
	CHECK(old >= ADDS);
	CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
	CHECK_OK(MPI_Accumulate(&one, 1, MPI_DOUBLE, target, base + (MPI_Aint)sizeof(double), 1,
				MPI_DOUBLE, MPI_SUM, win));
	CHECK_OK(MPI_Win_unlock(target, win));
	MPI_Type_free(&every_second);
	return NULL;
}

static const char *target_computes(int flavor)
{
	int target = tap_size - 1;
	const char *wrong = NULL;
	MPI_Aint base = 0;

	make_window(flavor);
	if (flavor == 3)
		MPI_Get_address(memory, &base);
	MPI_Bcast(&base, 1, MPI_AINT, target, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (tap_rank != target)
		wrong = visit(target, base);
	else if (!compute())
		wrong = tap_wrong("flavour %d: nothing happens without calls of the target's",
				  flavor);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!wrong && tap_rank == target && memory[0] != (ADDS + 1) * (tap_size - 1))
		wrong = tap_wrong("flavour %d: the sum is %g", flavor, memory[0]);
	free_window(flavor);
	return wrong;
}

/* ---- what a flush has ended ------------------------------------------------------------------ */

enum { STREAMS = 200, STREAM_BYTES = 133140 };

/* Puts of all lengths behind each other, to places of their own; every byte is the stream's
 * number. */
static const char *stream(MPI_Aint base, int number)
{
	static const int bytes[] = { 8, 8, 3, 1000, 8, 5000, 70000, 8, 33000, 20000, 1, 4096, 8 };
	static char data[70000];
	MPI_Aint at = base;

	memset(data, number, sizeof(data));
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		CHECK_OK(MPI_Put(data, bytes[i], MPI_BYTE, 1, at, bytes[i], MPI_BYTE, win));
		at += bytes[i];
	}
	CHECK_OK(MPI_Win_flush(1, win));
	return NULL;
}

static const char *streams(MPI_Aint base, _Atomic int *word)
{
	const char *wrong = NULL;

	MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
	for (int i = 1; i <= STREAMS && !wrong; i++) {
		wrong = stream(base, i);
		*word = 2 * i;
		for (double start = time_now(); *word == 2 * i && !wrong; sched_yield())
			if (time_now() > start + LIMIT_S)
				wrong = tap_wrong("nobody has looked at stream %d", i);
	}
	MPI_Win_unlock(1, win);
	return wrong;
}

/* Looks at its memory as soon as a flush is over, and has called nothing meanwhile. */
static const char *look(_Atomic int *word)
{
	const char *wrong = NULL;

	for (int i = 1; i <= STREAMS; i++) {
		double start = time_now();

		for (; *word != 2 * i; sched_yield())
			if (time_now() > start + LIMIT_S)
				return tap_wrong("no stream");
		for (int k = 0; k < STREAM_BYTES && !wrong; k++)
			if (((char *)memory)[k] != (char)i)
				wrong = tap_wrong("stream %d: byte %d", i, k);
		++*word;
	}
	return wrong;
}

static const char *flushed(int flavor)
{
	const char *wrong = NULL;
	_Atomic int *word;
	MPI_Win words;
	MPI_Aint base = 0;

	MPI_Win_allocate_shared(sizeof(*word), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &words);
	MPI_Win_shared_query(words, 0, &(MPI_Aint){ 0 }, &(int){ 0 }, &word);
	make_window(flavor);
	if (flavor == 3)
		MPI_Get_address(memory, &base);
	MPI_Bcast(&base, 1, MPI_AINT, 1, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (tap_rank == 0)
		wrong = streams(base, word);
	else if (tap_rank == 1)
		wrong = look(word);
	MPI_Barrier(MPI_COMM_WORLD);
	free_window(flavor);
	MPI_Win_free(&words);
	return wrong;
}

/* ---- the origin waits ------------------------------------------------------------------------ */

/* More than a sender may have sent that nobody takes in. */
enum { MESSAGES = 20000 };
#define SENDS_S 20.0

/* The holder of a lock sends all this to the rank that waits for the lock, and unlocks. */
static const char *send_and_unlock(void)
{
	static MPI_Request request[MESSAGES];
	double start = time_now();
	int done = 0;

	for (int i = 0; i < MESSAGES; i++)
		MPI_Isend(memory, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request[i]);
	while (!done && time_now() < start + SENDS_S)
		CHECK_OK(MPI_Testall(MESSAGES, request, &done, MPI_STATUSES_IGNORE));
	CHECK_OK(MPI_Win_unlock(0, win));
	if (!done)
		MPI_Waitall(MESSAGES, request, MPI_STATUSES_IGNORE);
	CHECK(done);
	return NULL;
}

static const char *wait_for_lock(void)
{
	static MPI_Request request[MESSAGES];
	static int data[MESSAGES];

	for (int i = 0; i < MESSAGES; i++)
		MPI_Irecv(&data[i], 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request[i]);
	MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
	CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
	CHECK_OK(MPI_Win_unlock(0, win));
	MPI_Waitall(MESSAGES, request, MPI_STATUSES_IGNORE);
	return NULL;
}

static const char *messages_meanwhile(int flavor)
{
	const char *wrong = NULL;

	make_window(flavor);
	MPI_Barrier(MPI_COMM_WORLD);
	if (tap_rank == 1) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		wrong = send_and_unlock();
	} else if (tap_rank == 0) {
		wrong = wait_for_lock();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	free_window(flavor);
	return wrong;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, FLAVORS);
	tap_case("one-sided operations go on while their target computes", target_computes);
	tap_case("what was flushed is there, though the target calls nothing", flushed);
	tap_case("messages come in while a lock is waited for", messages_meanwhile);
	return tap_end();
}
