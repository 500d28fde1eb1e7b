/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Shared by the programs of this folder: one that fails says where, and ends its job.
 */
#ifndef TEST_MPI_DYNAMIC_CHECK_H
#define TEST_MPI_DYNAMIC_CHECK_H

#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REQUIRE(truth)                                                                             \
	do {                                                                                       \
		if (!(truth)) {                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #truth);                \
			MPI_Abort(MPI_COMM_WORLD, 1);                                              \
		}                                                                                  \
	} while (0)

static inline int class_of(int code)
{
	int class = -1;

	MPI_Error_class(code, &class);
	return class;
}

/* Exchanges messages with each process of the other side, both short and long, and runs
 * collectives. */
static inline void use_inter(MPI_Comm inter)
{
	enum { LONG = 1 << 18 };
	int rank, size, theirs, sum = -1, one = 1;
	int *out = malloc(LONG * sizeof(int)), *in = malloc(LONG * sizeof(int));

	REQUIRE(out && in);
	MPI_Comm_rank(inter, &rank);
	MPI_Comm_size(inter, &size);
	MPI_Comm_remote_size(inter, &theirs);
	for (int to = 0; to < theirs; to++)
		for (int n = 1; n <= LONG; n *= 64) {
			MPI_Request r[2];
			MPI_Status status;

			for (int i = 0; i < n; i++)
				out[i] = 1000 * rank + i;
			memset(in, 0xff, LONG * sizeof(int));
			MPI_Irecv(in, LONG, MPI_INT, to, n, inter, &r[0]);
			MPI_Isend(out, n, MPI_INT, to, n, inter, &r[1]);
			MPI_Wait(&r[0], &status);
			MPI_Wait(&r[1], MPI_STATUS_IGNORE);
			MPI_Get_count(&status, MPI_INT, &sum);
			REQUIRE(sum == n && status.MPI_SOURCE == to);
			for (int i = 0; i < n; i++)
				REQUIRE(in[i] == 1000 * to + i);
		}
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
	REQUIRE(sum == theirs);
	MPI_Barrier(inter);
	free(out);
	free(in);
}

/* The same in an intracommunicator of both. */
static inline void use_intra(MPI_Comm intra)
{
	int rank, size, got = -1, sum = -1;
	MPI_Comm half;
	int *all;

	MPI_Comm_rank(intra, &rank);
	MPI_Comm_size(intra, &size);
	all = malloc((size_t)size * sizeof(int));
	REQUIRE(all);
	MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 7, &got, 1, MPI_INT,
		     (rank + size - 1) % size, 7, intra, MPI_STATUS_IGNORE);
	REQUIRE(got == (rank + size - 1) % size);
	for (int i = 0; i < 20; i++) {
		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, intra);
		REQUIRE(sum == size * (size - 1) / 2);
		MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, intra);
		for (int j = 0; j < size; j++)
			REQUIRE(all[j] == j);
		got = rank == i % size ? i : -1;
		MPI_Bcast(&got, 1, MPI_INT, i % size, intra);
		REQUIRE(got == i);
	}
	MPI_Comm_split(intra, rank % 2, rank, &half);
	MPI_Barrier(half);
	MPI_Comm_disconnect(&half);
	free(all);
}

static inline int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* The number of lines of a file. */
static inline int count_lines(const char *path)
{
	FILE *f = fopen(path, "r");
	int n = 0, c;

	while (f && (c = getc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

/* Text by a file, which another process waits for. */
static inline void put_text(const char *path, const char *text)
{
	char fresh[4096];
	FILE *f;

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	f = fopen(fresh, "w");
	REQUIRE(f && fputs(text, f) >= 0 && fclose(f) == 0 && rename(fresh, path) == 0);
}

static inline void get_text(const char *path, char *text, size_t size)
{
	FILE *f;

	for (int i = 0; !(f = fopen(path, "r")) && i < 60000; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	REQUIRE(f && fgets(text, (int)size, f));
	fclose(f);
}

#endif
