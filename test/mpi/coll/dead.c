/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The last rank dies while the others wait for it in a barrier: all get MPI_ERR_PROC_ABORTED,
 * and no collective after that waits for ever. For mpiexec --keep-going. With an argument: the
 * same with MPI_THREAD_MULTIPLE.
 */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define LIMIT_S 20.0
#define MOST    10000 /* ints for each rank */

static int rank, size, cases, failed;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Rank 0 sums up, message by message, over those that live. */
static void result(const char *name, bool wrong)
{
	int bad = wrong;

	if (wrong) {
		printf("# %s: rank %d\n", name, rank);
		fflush(stdout);
	}
	if (rank) {
		MPI_Send(&bad, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
		return;
	}
	for (int i = 1; i < size - 1; i++) {
		int one;

		MPI_Recv(&one, 1, MPI_INT, i, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		bad += one;
	}
	failed += bad != 0;
	printf("%sok %d - a dead rank: %s\n", bad ? "not " : "", ++cases, name);
	fflush(stdout);
}

static int class_of(int err)
{
	int class = MPI_SUCCESS;

	if (err)
		MPI_Error_class(err, &class);
	return class;
}

/* While all live: are there several nodes of several ranks, and is this the last rank's? */
static void look_around(bool *several, bool *mine)
{
	int node_size, last = rank, all_last;
	MPI_Comm node;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &node_size);
	MPI_Allreduce(&last, &all_last, 1, MPI_INT, MPI_MAX, node);
	MPI_Comm_free(&node);
	*several = node_size > 1 && node_size < size;
	*mine = *several && all_last == size - 1;
}

/* With several nodes of several ranks: whether all collectives are errors at the node of the
 * dead one. Of two long reductions the second has, in the area, the place of the first. */
static bool missed(bool several, bool mine)
{
	int in[5000] = { 0 }, out[5000];
	bool all = true;

	for (int i = 0; i < 32 && several; i++) {
		int err = i % 31 ? MPI_Barrier(MPI_COMM_WORLD)
				 : MPI_Reduce(in, out, 5000, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);

		if (mine && class_of(err) != MPI_ERR_PROC_ABORTED)
			all = false;
	}
	return all;
}

int main(int argc, char **argv)
{
	static int in[16 * MOST], out[16 * MOST];
	int provided, class, value = rank, sum;
	MPI_Comm other;
	bool several, mine;
	double start;

	MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
			&provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	look_around(&several, &mine);
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	for (int i = 0; i < 10; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Alltoall(in, MOST, MPI_INT, out, MOST, MPI_INT, other);
	}
	if (rank == size - 1)
		raise(SIGKILL);
	result("no collective does without it", !missed(several, mine));
	start = now();
	class = class_of(MPI_Barrier(MPI_COMM_WORLD));
	result("a barrier ends with MPI_ERR_PROC_ABORTED",
	       class != MPI_ERR_PROC_ABORTED || now() - start > LIMIT_S);
	start = now();
	class = class_of(MPI_Alltoall(in, MOST, MPI_INT, out, MOST, MPI_INT, other));
	result("an alltoall ends with MPI_ERR_PROC_ABORTED",
	       class != MPI_ERR_PROC_ABORTED || now() - start > LIMIT_S);
	start = now();
	for (int i = 0; i < 3; i++) {
		MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
		MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	}
	result("later collectives end", now() - start > LIMIT_S);
	MPI_Finalize();
	if (rank == 0)
		printf("1..%d\n", cases);
	return failed != 0;
}
