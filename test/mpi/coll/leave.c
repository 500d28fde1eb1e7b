/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A rank starts a non-blocking collective and then computes, without a call of MPI, until all
 * others have ended theirs, which it sees in memory they share: so theirs must end without it.
 */
#include "test/mpi/coll_check.h"

#include <stdatomic.h>
#include <time.h>

#define FEW     8           /* ranks up to which all go in one step, if they are short */
#define SHORT   (16 << 10)  /* bytes of such */
#define BLOCK   (4 << 10)   /* bytes from which blocks of more ranks do */
#define MOST    (512 << 10) /* bytes of all blocks */
#define LIMIT_S 20.0

static int *in, *out;
static _Atomic int *ended; /* calls that ranks have ended so far, in memory of all */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int value(int rank, int i)
{
	return rank * 10007 + i;
}

enum what { BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL, GATHER, SCATTER, WHATS };
static const char *const names[] = { "barrier",   "bcast",    "reduce", "allreduce",
				     "allgather", "alltoall", "gather", "scatter" };

static void start(enum what what, int n, int root, MPI_Request *request)
{
	MPI_Comm comm = MPI_COMM_WORLD;

	switch (what) {
	case BCAST:
		MPI_Ibcast(tap_rank == root ? in : out, n, MPI_INT, root, comm, request);
		break;
	case REDUCE:
		MPI_Ireduce(in, out, n, MPI_INT, MPI_SUM, root, comm, request);
		break;
	case ALLREDUCE:
		MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, comm, request);
		break;
	case ALLGATHER:
		MPI_Iallgather(in, n, MPI_INT, out, n, MPI_INT, comm, request);
		break;
	case ALLTOALL:
		MPI_Ialltoall(in, n, MPI_INT, out, n, MPI_INT, comm, request);
		break;
	case GATHER:
		MPI_Igather(in, n, MPI_INT, out, n, MPI_INT, root, comm, request);
		break;
	case SCATTER:
		MPI_Iscatter(in, n, MPI_INT, out, n, MPI_INT, root, comm, request);
		break;
	default:
		MPI_Ibarrier(comm, request);
		break;
	}
}

static int sum(int i)
{
	return tap_size * i + 10007 * (tap_size * (tap_size - 1) / 2);
}

/* The value of int i of `out` in the end. */
static int expected(enum what what, int n, int root, int i)
{
	switch (what) {
	case BCAST:
		return value(root, i);
	case REDUCE:
	case ALLREDUCE:
		return sum(i);
	case ALLTOALL:
		return value(i / n, tap_rank * n + i % n);
	case SCATTER:
		return value(root, tap_rank * n + i);
	default:
		return value(i / n, i % n);
	}
}

static const char *check(enum what what, int n, int root)
{
	bool one = what == REDUCE || what == GATHER;
	bool all = what == ALLGATHER || what == ALLTOALL || what == GATHER;

	if (what == BARRIER || (one && tap_rank != root) || (what == BCAST && tap_rank == root))
		return NULL;
	for (int i = 0; i < (all ? tap_size * n : n); i++)
		if (out[i] != expected(what, n, root, i))
			return tap_wrong("%s of %d: int %d is %d, not %d", names[what], n, i,
					 out[i], expected(what, n, root, i));
	return NULL;
}

/* Computes until the others are done. */
static bool others_end(int before)
{
	double end = now() + LIMIT_S;

	while (atomic_load(ended) < before + tap_size - 1)
		if (now() > end)
			return false;
	return true;
}

/* Ints of a rank, or of each of its blocks. */
static int length(enum what what)
{
	int most = MOST / tap_size / (int)sizeof(int);

	if (what < ALLGATHER)
		return 1 + draw_below(SHORT / (int)sizeof(int));
	if (tap_size > FEW && (what == ALLGATHER || what == ALLTOALL))
		return BLOCK / (int)sizeof(int) + draw_below(most - BLOCK / (int)sizeof(int));
	return 1 + (draw_below(2) ? draw_below(64) : draw_below(most));
}

static const char *leave(enum what what)
{
	int n = length(what), root = draw_below(tap_size);
	int away = draw_below(tap_size), before;
	const char *wrong = NULL;
	MPI_Request request;

	for (int i = 0; i < n * tap_size; i++) {
		in[i] = value(tap_rank, i);
		out[i] = -1;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	before = atomic_load(ended);
	MPI_Barrier(MPI_COMM_WORLD);
	start(what, n, root, &request);
	if (tap_rank == away && !others_end(before))
		wrong = tap_wrong("%s of %d ints: the others do not end while rank %d computes",
				  names[what], n, away);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	atomic_fetch_add(ended, 1);
	return wrong ? wrong : check(what, n, root);
}

static const char *each(int round)
{
	/* of more ranks only blocks go in one step */
	int first = tap_size > FEW ? ALLGATHER : 0;

	return leave((enum what)(first + round % (WHATS - first)));
}

int main(int argc, char **argv)
{
	MPI_Win win;
	MPI_Aint bytes;
	int unit;

	MPI_Init(&argc, &argv);
	tap_start(argc, argv, 24);
	in = malloc(MOST);
	out = malloc(MOST);
	MPI_Win_allocate_shared(tap_rank ? 0 : 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &ended, &win);
	MPI_Win_shared_query(win, 0, &bytes, &unit, &ended);
	if (!in || !out || bytes != 64) {
		printf("Bail out! no memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (tap_rank == 0)
		atomic_store(ended, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	tap_case("a collective ends at the others while one rank computes", each);
	MPI_Win_free(&win);
	free(in);
	free(out);
	return tap_end();
}
