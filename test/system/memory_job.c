/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * memory_job use | size MIB | dump OWN_BYTES: what test_memory.sh starts. Messages of all
 * lengths, collectives and windows with shared memory; the last rank's word is "right". `size`:
 * no rank takes more address space than that. `dump`: prints, from rank 0, how many KiB of
 * shared memory a core file would have, a window of OWN_BYTES of each rank in it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void fail(const char *what)
{
	printf("rank %d: wrong: %s\n", rank, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void right(int is, const char *what)
{
	if (!is)
		fail(what);
}

static void exchange(void)
{
	int to = (rank + 1) % size, from = (rank + size - 1) % size;

	for (int n = 1; n <= 1 << 22; n *= 32) {
		unsigned char *a = malloc((size_t)n), *b = malloc((size_t)n);

		if (!a || !b)
			fail("no memory");
		memset(a, rank + 1, (size_t)n);
		MPI_Sendrecv(a, n, MPI_BYTE, to, 1, b, n, MPI_BYTE, from, 1, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		right(b[0] == from + 1 && b[n - 1] == from + 1, "a message");
		free(a);
		free(b);
	}
}

static void collectives(void)
{
	static double many[1 << 17];
	int all = 0, *of = calloc((size_t)size, sizeof(*of));

	if (!of)
		fail("no memory");
	for (int i = 0; i < 10; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		right(all == size * (size - 1) / 2, "a sum");
	}
	MPI_Allgather(&rank, 1, MPI_INT, of, 1, MPI_INT, MPI_COMM_WORLD);
	right(of[size - 1] == size - 1, "a gathering");
	many[(1 << 17) - 1] = rank;
	MPI_Allreduce(MPI_IN_PLACE, many, 1 << 17, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	right((int)many[(1 << 17) - 1] == size - 1, "a long maximum");
	free(of);
}

static void windows(void)
{
	int *of, one = 1, unit, *other;
	MPI_Aint bytes;
	MPI_Win win;

	MPI_Win_allocate(4096, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &of, &win);
	*of = 0;
	MPI_Win_fence(0, win);
	MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
	MPI_Win_fence(0, win);
	right(rank || *of == size, "a sum in a window");
	MPI_Win_free(&win);

	MPI_Win_allocate_shared(4096, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &of, &win);
	MPI_Win_fence(0, win);
	*of = rank;
	MPI_Win_fence(0, win);
	MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &other);
	right(*other == (rank + 1) % size, "a word of another rank");
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
}

/* In KiB. */
static long address_space(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPeak: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

/* KiB of shared memory of files without a name that core files have. */
static long dumped(void)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	long kib = 0, sum = 0;
	int shared = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (strchr(line, '-') && strchr(line, '-') < strchr(line, ' '))
			shared = strstr(line, "postern-") && strstr(line, "(deleted)");
		else if (strncmp(line, "Size:", 5) == 0)
			kib = strtol(line + 5, NULL, 10);
		else if (shared && strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, " dd"))
			sum += kib;
	}
	if (f)
		fclose(f);
	return sum;
}

int main(int argc, char **argv)
{
	long most;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	exchange();
	collectives();
	windows();
	if (argc > 2 && strcmp(argv[1], "size") == 0) {
		most = address_space() / 1024;
		MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
		if (!rank)
			printf("%ld MiB\n", most);
		right(most > 0 && most <= strtol(argv[2], NULL, 10), "the address space");
	} else if (argc > 2 && strcmp(argv[1], "dump") == 0) {
		void *mine;
		MPI_Win win;

		MPI_Win_allocate_shared(strtol(argv[2], NULL, 10), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
					&mine, &win);
		if (!rank)
			printf("%ld KiB\n", dumped());
		MPI_Win_free(&win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1)
		printf("right\n");
	MPI_Finalize();
	return 0;
}
