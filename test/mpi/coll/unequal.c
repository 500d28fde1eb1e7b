/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * An allgather in which one rank gives less than all expect: all hear of that, and nothing behind
 * its buffer is read. An alltoallv in which one gives less or more: a rank that expects more has
 * the rest of its buffer untouched, a rank that expects less hears of that.
 */
#include "test/mpi/coll_check.h"

#define MOST 4096 /* ints of a rank */

static int value(int rank, int i)
{
	return rank * 10007 + i;
}

static const char *one_gives_less(int round)
{
	int n = 2 + draw_below(MOST), bad = round % tap_size, class;
	int mine = tap_rank == bad ? n / 2 : n;
	int *in = malloc(sizeof(int) * (size_t)mine);
	int *out = calloc((size_t)(n * tap_size), sizeof(int));
	const char *wrong = "no memory";
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	/* what ranks have in common is made in the course of the first operations */
	for (int i = 0; i < 8 * (round % 2); i++)
		MPI_Barrier(comm);
	if (in && out) {
		for (int i = 0; i < mine; i++)
			in[i] = value(tap_rank, i);
		MPI_Error_class(MPI_Allgather(in, mine, MPI_INT, out, n, MPI_INT, comm), &class);
		/* a rank that needs the block of another alone may hear of it in the next one */
		if (class == MPI_SUCCESS)
			MPI_Error_class(MPI_Barrier(comm), &class);
		wrong = class == MPI_ERR_TRUNCATE || class == MPI_ERR_ARG
				? NULL
				: tap_wrong("rank %d gives less: error class %d", bad, class);
	}
	MPI_Comm_free(&comm);
	free(in);
	free(out);
	return wrong;
}

/* Of `bad` for each rank. */
static const char *look_at(const int *out, int n, int bad, int given)
{
	for (int i = 0; i < n * tap_size; i++) {
		int want = i / n == bad && i % n >= given ? -1 : value(i / n, tap_rank * n + i % n);

		if (out[i] != want)
			return tap_wrong("%d ints of each, %d of rank %d: int %d of rank %d is %d",
					 n, given, bad, i % n, i / n, out[i]);
	}
	return NULL;
}

static const char *one_gives_another_length(int round)
{
	int n = round % 2 ? 1 + draw_below(20) : 2000 + draw_below(MOST * 8),
	    bad = round % tap_size;
	int given = 1 + draw_below(2 * n), class, want; /* nothing would be no message */
	int *in = malloc(sizeof(int) * 2 * (size_t)(n * tap_size));
	int *out = malloc(sizeof(int) * (size_t)(n * tap_size));
	int sent[64], got[64], from[64], to[64];
	const char *wrong = "no memory";

	if (in && out) {
		for (int r = 0; r < tap_size; r++) {
			sent[r] = tap_rank == bad && r != bad ? given : n;
			got[r] = n;
			from[r] = 2 * r * n;
			to[r] = r * n;
			for (int i = 0; i < 2 * n; i++)
				in[2 * r * n + i] = value(tap_rank, r * n + i);
		}
		for (int i = 0; i < n * tap_size; i++)
			out[i] = -1;
		MPI_Error_class(MPI_Alltoallv(in, sent, from, MPI_INT, out, got, to, MPI_INT,
					      MPI_COMM_WORLD),
				&class);
		want = given > n && tap_rank != bad ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
		if (class != want)
			wrong = tap_wrong("rank %d gives %d of %d: error class %d", bad, given, n,
					  class);
		else
			wrong = look_at(out, n, bad, tap_rank == bad ? n : given);
	}
	free(in);
	free(out);
	return wrong;
}

int main(int argc, char **argv)
{
	static int warm[1024];

	MPI_Init(&argc, &argv);
	tap_start(argc, argv, 40);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	/* what ranks have in common is made in the course of the first operations */
	for (int i = 0; i < 16; i++)
		MPI_Allgather(&tap_rank, 1, MPI_INT, warm, 1, MPI_INT, MPI_COMM_WORLD);
	tap_case("all hear of a rank that gives less than they expect", one_gives_less);
	tap_case("who gives an alltoallv more or less spoils nothing else",
		 one_gives_another_length);
	return tap_end();
}
