/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * For test programs that run as an MPI job: cases in TAP, which fail if a check fails on any
 * rank. Plain MPI: except where a program says so, these tests must pass with any
 * implementation.
 */
#ifndef TEST_MPI_JOB_CHECK_H
#define TEST_MPI_JOB_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int job_rank, job_size, job_failed, job_cases, job_all_failed;

/* Says what is wrong, at most ten times. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition) && job_failed++ < 10)                                             \
			fprintf(stderr, "# rank %d, %s:%d: %s\n", job_rank, __FILE__, __LINE__,    \
				#condition);                                                       \
	} while (0)

#define CHECK_EQUAL(is, should)                                                                    \
	do {                                                                                       \
		long is_ = (long)(is), should_ = (long)(should);                                   \
		if (is_ != should_ && job_failed++ < 10)                                           \
			fprintf(stderr, "# rank %d, %s:%d: %s is %ld, not %ld\n", job_rank,        \
				__FILE__, __LINE__, #is, is_, should_);                            \
	} while (0)

static inline void job_start(int *argc, char ***argv, int level)
{
	int got;

	MPI_Init_thread(argc, argv, level, &got);
	MPI_Comm_rank(MPI_COMM_WORLD, &job_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &job_size);
	if (got < level) {
		fprintf(stderr, "# the thread level is not provided\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static inline void job_case(const char *name, void (*body)(void))
{
	int failed;

	job_failed = 0;
	body();
	MPI_Allreduce(&job_failed, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	job_cases++;
	job_all_failed += failed != 0;
	if (job_rank == 0) {
		printf("%sok %d - %s\n", failed ? "not " : "", job_cases, name);
		fflush(stdout);
	}
}

#define CASE(body) job_case(#body, body)

/* For main to return. */
static inline int job_end(void)
{
	if (job_rank == 0)
		printf("1..%d\n", job_cases);
	MPI_Finalize();
	return job_all_failed != 0;
}

/* The same numbers on all ranks. */
static inline unsigned job_draw(void)
{
	static unsigned long long x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (unsigned)(x >> 11);
}

/* The ranks of a communicator in MPI_COMM_WORLD, malloc'd. */
static inline int *job_members(MPI_Comm comm)
{
	MPI_Group all, part;
	int n, *from, *to;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Comm_group(comm, &part);
	MPI_Group_size(part, &n);
	from = malloc(sizeof(int) * (size_t)(n + 1));
	to = malloc(sizeof(int) * (size_t)(n + 1));
	for (int i = 0; i < n; i++)
		from[i] = i;
	MPI_Group_translate_ranks(part, n, from, all, to);
	free(from);
	MPI_Group_free(&part);
	MPI_Group_free(&all);
	return to;
}

/* A communicator works: its messages go round, mixed with nothing. */
static inline void job_try(MPI_Comm comm)
{
	int rank, size, inter, from, sum = 0;

	MPI_Comm_test_inter(comm, &inter);
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	if (inter) {
		int remote;

		MPI_Comm_remote_size(comm, &remote);
		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
		CHECK_EQUAL(sum, remote * (remote - 1) / 2);
		return;
	}
	MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 7, &from, 1, MPI_INT,
		     (rank + size - 1) % size, 7, comm, MPI_STATUS_IGNORE);
	CHECK_EQUAL(from, (rank + size - 1) % size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
	CHECK_EQUAL(sum, size * (size - 1) / 2);
}

#endif
