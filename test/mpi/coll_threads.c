/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives of several threads at the same time, each on a communicator of its own, with users'
 * operations that call MPI themselves.
 */
#include "coll_check.h"

#include <pthread.h>
#include <unistd.h>

#define THREADS 4
#define N       3000

static MPI_Comm comms[THREADS];

/* Not commutative: the left operand times 3 plus the right one. It looks at its datatype, which takes the
 * library's lock again. */
static void triple(void *in, void *inout, int *n, MPI_Datatype *type)
{
	unsigned *a = in, *b = inout;
	int size;

	MPI_Type_size(*type, &size);
	for (int i = 0; i < *n && size == 4; i++)
		b[i] = 3 * a[i] + b[i];
}

struct work {
	int thread, rounds;
	const char *wrong;
};

static const char *one_round(int t, int round, MPI_Op op, unsigned *in, unsigned *out)
{
	int n = 1 + (round * 37 + t * 11) % N, root = round % tap_size;
	unsigned want, key = (unsigned)(t * 1000 + round);

	for (int i = 0; i < n; i++)
		in[i] = key + (unsigned)(tap_rank * 7 + i);
	MPI_Allreduce(in, out, n, MPI_UNSIGNED, op, comms[t]);
	for (int i = 0; i < n; i++) {
		want = key + (unsigned)i;
		for (int r = 1; r < tap_size; r++)
			want = 3 * want + key + (unsigned)(r * 7 + i);
		if (out[i] != want)
			return "allreduce";
	}
	if (tap_rank == root)
		memcpy(out, in, (size_t)n * sizeof(*in));
	MPI_Bcast(out, n, MPI_UNSIGNED, root, comms[t]);
	for (int i = 0; i < n; i++)
		if (out[i] != key + (unsigned)(root * 7 + i))
			return "bcast";
	MPI_Barrier(comms[t]);
	MPI_Allgather(in, 1, MPI_UNSIGNED, out, 1, MPI_UNSIGNED, comms[t]);
	for (int r = 0; r < tap_size; r++)
		if (out[r] != key + (unsigned)(r * 7))
			return "allgather";
	return NULL;
}

static void *run(void *arg)
{
	struct work *w = arg;
	unsigned *in = malloc(N * sizeof(*in)), *out = malloc(N * sizeof(*out));
	MPI_Op op;

	MPI_Op_create(triple, 0, &op);
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

int main(int argc, char **argv)
{
	int provided;

	/* a thread that fails leaves the others waiting */
	alarm(100);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	tap_start(argc, argv, 3);
	if (provided != MPI_THREAD_MULTIPLE) {
		printf("Bail out! no MPI_THREAD_MULTIPLE\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	tap_case("collectives of four threads at once", at_once);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&comms[i]);
	return tap_end();
}
