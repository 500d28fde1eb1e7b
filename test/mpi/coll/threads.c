/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives of several threads at the same time, each on a communicator of its own, blocking,
 * non-blocking and persistent ones, with predefined operations and users', which call MPI
 * themselves.
 */
#include "test/mpi/coll_check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define THREADS 4
#define N       3000

static MPI_Comm comms[THREADS];

/* Not commutative: x * m + b and after it another of that kind, modulo 2^16; m is the upper half
 * of the number, b the lower one. */
static unsigned after(unsigned first, unsigned second)
{
	unsigned m = (first >> 16) * (second >> 16), b = (first & 0xffff) * (second >> 16) + second;

	return m << 16 | (b & 0xffff);
}

/* It looks at its datatype, which takes the library's lock again. */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
	unsigned *a = in, *b = inout;
	int size;

	MPI_Type_size(*type, &size);
	for (int i = 0; i < *n && size == 4; i++)
		b[i] = after(a[i], b[i]);
}

struct work {
	int thread, rounds;
	const char *wrong;
};

/* Twice the same persistent collectives; `key` is what rank 0 has. */
static const char *persistent(int t, unsigned key, unsigned *in, unsigned *out)
{
#if MPI_VERSION >= 4
	unsigned sum = 0, mine = 0, want;
	MPI_Request request[2];

	MPI_Alltoall_init(in, 1, MPI_UNSIGNED, out, 1, MPI_UNSIGNED, comms[t], MPI_INFO_NULL,
			  &request[0]);
	MPI_Allreduce_init(&mine, &sum, 1, MPI_UNSIGNED, MPI_SUM, comms[t], MPI_INFO_NULL,
			   &request[1]);
	for (unsigned again = 0; again < 2; again++) {
		for (int r = 0; r < tap_size; r++)
			in[r] = key + again + (unsigned)(tap_rank * 100 + r);
		mine = key + again + (unsigned)tap_rank;
		MPI_Startall(2, request);
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		for (int r = 0; r < tap_size; r++)
			if (out[r] != key + again + (unsigned)(r * 100 + tap_rank))
				return "persistent alltoall";
		want = (unsigned)tap_size * (key + again) +
		       (unsigned)(tap_size * (tap_size - 1) / 2);
		if (sum != want)
			return "persistent allreduce";
	}
	MPI_Request_free(&request[0]);
	MPI_Request_free(&request[1]);
#else
	(void)t, (void)key, (void)in, (void)out;
#endif
	return NULL;
}

/* Predefined operations and equal blocks: those that need no messages inside a node. */
static const char *predefined(int t, int n, unsigned key, unsigned *in, unsigned *out)
{
	unsigned ranks = (unsigned)tap_size, all = ranks * (ranks - 1) / 2;

	for (int i = 0; i < n; i++)
		in[i] = key + (unsigned)(tap_rank + i);
	MPI_Allreduce(in, out, n, MPI_UNSIGNED, MPI_SUM, comms[t]);
	for (int i = 0; i < n; i++)
		if (out[i] != ranks * (key + (unsigned)i) + all)
			return "allreduce by a predefined operation";
	MPI_Reduce(in, out, n, MPI_UNSIGNED, MPI_MAX, 0, comms[t]);
	for (int i = 0; tap_rank == 0 && i < n; i++)
		if (out[i] != key + ranks - 1 + (unsigned)i)
			return "reduce by a predefined operation";
	for (int r = 0; r < tap_size; r++)
		in[r] = key + (unsigned)(tap_rank * 100 + r);
	MPI_Alltoall(in, 1, MPI_UNSIGNED, out, 1, MPI_UNSIGNED, comms[t]);
	for (int r = 0; r < tap_size; r++)
		if (out[r] != key + (unsigned)(r * 100 + tap_rank))
			return "alltoall";
	return persistent(t, key, in, out);
}

static const char *one_round(int t, int round, MPI_Op op, unsigned *in, unsigned *out)
{
	int n = 1 + (round * 37 + t * 11) % N, root = round % tap_size;
	unsigned want, sum, key = 0x10003u * (unsigned)(t * 1000 + round + 1);
	MPI_Request request[3];

	for (int i = 0; i < n; i++)
		in[i] = key + (unsigned)(tap_rank * 7 + i);
	MPI_Allreduce(in, out, n, MPI_UNSIGNED, op, comms[t]);
	for (int i = 0; i < n; i++) {
		want = key + (unsigned)i;
		for (int r = 1; r < tap_size; r++)
			want = after(want, key + (unsigned)(r * 7 + i));
		if (out[i] != want)
			return "allreduce";
	}
	if (tap_rank == root)
		memcpy(out, in, (size_t)n * sizeof(*in));
	MPI_Bcast(out, n, MPI_UNSIGNED, root, comms[t]);
	for (int i = 0; i < n; i++)
		if (out[i] != key + (unsigned)(root * 7 + i))
			return "bcast";
	MPI_Iallreduce(in, out, n, MPI_UNSIGNED, op, comms[t], &request[0]);
	MPI_Ibarrier(comms[t], &request[1]);
	MPI_Ireduce(in, &sum, 1, MPI_UNSIGNED, MPI_SUM, root, comms[t], &request[2]);
	MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
	want = key;
	for (int r = 1; r < tap_size; r++)
		want = after(want, key + (unsigned)(r * 7));
	if (out[0] != want)
		return "iallreduce";
	want = (unsigned)tap_size * key + (unsigned)(7 * tap_size * (tap_size - 1) / 2);
	if (tap_rank == root && sum != want)
		return "ireduce";
	MPI_Barrier(comms[t]);
	MPI_Allgather(in, 1, MPI_UNSIGNED, out, 1, MPI_UNSIGNED, comms[t]);
	for (int r = 0; r < tap_size; r++)
		if (out[r] != key + (unsigned)(r * 7))
			return "allgather";
	return predefined(t, n, 0x40u * (unsigned)(t * 1000 + round + 1), in, out);
}

static void *run(void *arg)
{
	struct work *w = arg;
	unsigned *in = malloc(N * sizeof(*in)), *out = malloc(N * sizeof(*out));
	MPI_Op op;

	MPI_Op_create(compose, 0, &op);
	for (int i = 0; i < w->rounds && !w->wrong; i++)
		w->wrong = one_round(w->thread, i, op, in, out);
	MPI_Op_free(&op);
	free(in);
	free(out);
	return NULL;
}

static const char *at_once(int round)
{
	struct work work[THREADS];
	pthread_t thread[THREADS];
	const char *wrong = NULL;

	(void)round;
	for (int i = 0; i < THREADS; i++) {
		work[i] = (struct work){ .thread = i, .rounds = 60 };
		pthread_create(&thread[i], NULL, run, &work[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		if (work[i].wrong)
			wrong = tap_wrong("thread %d: %s", i, work[i].wrong);
	}
	return wrong;
}

/* ---- started while a function of the user's runs --------------------------------------------- */

#define LIMIT_S 20.0

static _Atomic bool in_function, has_started;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool await(const _Atomic bool *flag)
{
	double end = now() + LIMIT_S;

	while (!atomic_load(flag))
		if (now() > end)
			return false;
	return true;
}

/* At the root it ends when another thread has started a barrier. */
static void slow_sum(void *in, void *inout, int *n, MPI_Datatype *type)
{
	unsigned *a = in, *b = inout;

	(void)type;
	for (int i = 0; i < *n; i++)
		b[i] += a[i];
	if (tap_rank > 0)
		return;
	atomic_store(&in_function, true);
	await(&has_started);
}

static const char *complete(MPI_Request *request)
{
	double end = now() + LIMIT_S;
	int done = 0;

	while (!done) {
		MPI_Test(request, &done, MPI_STATUS_IGNORE);
		if (!done && now() > end)
			return "does not end";
	}
	return NULL;
}

static void *start_barrier(void *arg)
{
	const char **wrong = arg;
	MPI_Request request;

	if (tap_rank == 0 && !await(&in_function))
		*wrong = "the function was not called";
	MPI_Ibarrier(comms[1], &request);
	atomic_store(&has_started, true);
	if (!*wrong)
		*wrong = complete(&request);
	return NULL;
}

static const char *started_meanwhile(int round)
{
	unsigned in = (unsigned)(tap_rank + round), out = 0, want = 0;
	const char *wrong[2] = { NULL, NULL };
	MPI_Request request;
	pthread_t other;
	MPI_Op op;

	atomic_store(&in_function, false);
	atomic_store(&has_started, false);
	MPI_Op_create(slow_sum, 1, &op);
	pthread_create(&other, NULL, start_barrier, &wrong[1]);
	MPI_Ireduce(&in, &out, 1, MPI_UNSIGNED, op, 0, comms[0], &request);
	wrong[0] = complete(&request);
	pthread_join(other, NULL);
	MPI_Op_free(&op);
	if (wrong[0] || wrong[1])
		return tap_wrong("the %s %s", wrong[0] ? "reduction" : "barrier",
				 wrong[0] ? wrong[0] : wrong[1]);
	for (int r = 0; r < tap_size; r++)
		want += (unsigned)(r + round);
	return tap_rank == 0 && out != want ? "the sum is wrong" : NULL;
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	tap_start(argc, argv, 3);
	if (provided != MPI_THREAD_MULTIPLE) {
		printf("Bail out! no MPI_THREAD_MULTIPLE\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	tap_case("collectives of four threads at once", at_once);
	tap_case("one that starts while another is in a user's function", started_meanwhile);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&comms[i]);
	return tap_end();
}
