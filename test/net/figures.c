/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * An ordinary MPI program: numbers go round a ring, and are added up among all ranks. The figures
 * that it prints are the same wherever the ranks are, and whatever starts them.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 3, RING = 1000, LONGEST = 200000 };

static int rank, size;

static void fail(const char *what)
{
	fprintf(stderr, "rank %d of %d: %s\n", rank, size, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Each rank adds its number to all of the numbers, in each round. */
static long ring(void)
{
	static long numbers[RING];
	const int next = (rank + 1) % size, last = (rank + size - 1) % size;
	long sum = 0;

	for (int round = 0; round < ROUNDS; round++) {
		if (rank || round)
			MPI_Recv(numbers, RING, MPI_LONG, last, round - !rank, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		for (int i = 0; i < RING; i++)
			numbers[i] += i * (rank + 1);
		MPI_Send(numbers, RING, MPI_LONG, next, round, MPI_COMM_WORLD);
	}
	if (!rank)
		MPI_Recv(numbers, RING, MPI_LONG, last, ROUNDS - 1, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	for (int i = 0; i < RING; i++)
		sum += numbers[i];
	return sum;
}

/* Whole numbers, whose sum is the same in any order. */
static double add_up(int n)
{
	double *mine = malloc((size_t)n * sizeof(*mine)), *all = malloc((size_t)n * sizeof(*all));
	double sum = 0;

	if (!mine || !all)
		fail("out of memory");
	for (int i = 0; i < n; i++)
		mine[i] = (double)((i * 31 + rank * 17) % 1009);
	MPI_Allreduce(mine, all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		sum += all[i] * (i % 7 + 1);
	free(mine);
	free(all);
	return sum;
}

int main(int argc, char **argv)
{
	long passed;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	passed = ring();
	printf("rank %d of %d: ring %ld", rank, size, passed);
	for (int n = 1; n <= LONGEST; n = n * 14 + 1)
		printf(" sum of %d: %.0f", n, add_up(n));
	printf("\n");
	MPI_Finalize();
	return 0;
}
