/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives whose ranks read each other's memory, while they can, and after one of them no
 * longer can: for
 * PTL_MPI_COLL=allgather=read,alltoall=read,bcast=read,reduce=read,allreduce=read. Then they go
 * by messages, which are short enough to take no attach. Every other alltoall is of absolute
 * addresses, each second of those an alltoallv; every other reduction is in place.
 */
#include <stdlib.h>

#include "test/support/no_attach.h"
#include "test/mpi/coll_check.h"

#define INTS 500

static MPI_Comm gathering, exchanging, giving, adding,
	adding_all; /* each goes another way after the first time */

static int value(int from, int to, int i)
{
	return from * 10007 + to * 101 + i;
}

static const char *wrong_at(const int *out, int to, int round)
{
	for (int from = 0; from < tap_size; from++)
		for (int i = 0; i < INTS; i++)
			if (out[from * INTS + i] != value(from, to, i + round))
				return tap_wrong("int %d of rank %d is %d", i, from,
						 out[from * INTS + i]);
	return NULL;
}

/* INTS integers at `at`, for MPI_BOTTOM. */
static MPI_Datatype absolute(const int *at)
{
	MPI_Datatype type;
	MPI_Aint address;

	MPI_Get_address(at, &address);
	MPI_Type_create_hindexed(1, (const int[]){ INTS }, &address, MPI_INT, &type);
	MPI_Type_commit(&type);
	return type;
}

static const char *allgather(int round)
{
	int *in = malloc(sizeof(int) * INTS);
	int *out = calloc((size_t)(INTS * tap_size), sizeof(int));
	const char *wrong;

	for (int i = 0; i < INTS; i++)
		in[i] = value(tap_rank, 0, i + round);
	MPI_Allgather(in, INTS, MPI_INT, out, INTS, MPI_INT, gathering);
	wrong = wrong_at(out, 0, round);
	free(in);
	free(out);
	return wrong;
}

static const char *alltoall(int round)
{
	int ones[64], places[64];
	int *in = malloc(sizeof(int) * (size_t)(INTS * tap_size));
	int *out = calloc((size_t)(INTS * tap_size), sizeof(int));
	const char *wrong;

	for (int i = 0; i < INTS * tap_size; i++)
		in[i] = value(tap_rank, i / INTS, i % INTS + round);
	for (int i = 0; i < tap_size; i++) {
		ones[i] = 1;
		places[i] = i;
	}
	if (round % 2) {
		MPI_Datatype from = absolute(in), to = absolute(out);

		if (round % 4 == 1)
			MPI_Alltoall(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, to, exchanging);
		else
			MPI_Alltoallv(MPI_BOTTOM, ones, places, from, MPI_BOTTOM, ones, places, to,
				      exchanging);
		MPI_Type_free(&from);
		MPI_Type_free(&to);
	} else {
		MPI_Alltoall(in, INTS, MPI_INT, out, INTS, MPI_INT, exchanging);
	}
	wrong = wrong_at(out, tap_rank, round);
	free(in);
	free(out);
	return wrong;
}

/* Of more than two ranks nobody reads. */
static const char *bcast(int round)
{
	int *data = calloc(INTS, sizeof(int));
	const char *wrong = NULL;

	for (int i = 0; i < INTS && tap_rank == 0; i++)
		data[i] = value(0, 0, i + round);
	MPI_Bcast(data, INTS, MPI_INT, 0, giving);
	for (int i = 0; i < INTS && !wrong; i++)
		if (data[i] != value(0, 0, i + round))
			wrong = tap_wrong("int %d is %d", i, data[i]);
	free(data);
	return wrong;
}

/* n sums of what all ranks gave. */
static const char *wrong_sum(const int *out, int n, int round)
{
	for (int i = 0; i < n; i++) {
		int want = 0;

		for (int from = 0; from < tap_size; from++)
			want += value(from, 0, i + round);
		if (out[i] != want)
			return tap_wrong("int %d is %d, not %d", i, out[i], want);
	}
	return NULL;
}

static const char *reduce(int round)
{
	int *in = malloc(sizeof(int) * INTS), *out = calloc(INTS, sizeof(int));
	const int root = tap_size - 1;
	const bool in_place = round % 2 && tap_rank == root;
	const char *wrong = NULL;

	for (int i = 0; i < INTS; i++)
		(in_place ? out : in)[i] = value(tap_rank, 0, i + round);
	MPI_Reduce(in_place ? MPI_IN_PLACE : in, out, INTS, MPI_INT, MPI_SUM, root, adding);
	if (tap_rank == root)
		wrong = wrong_sum(out, INTS, round);
	free(in);
	free(out);
	return wrong;
}

/* A count of which no half begins with a cache line. */
static const char *allreduce(int round)
{
	int *in = malloc(sizeof(int) * INTS), *out = calloc(INTS, sizeof(int));
	const bool in_place = round % 2;
	const int n = INTS - round % 3;
	const char *wrong;

	for (int i = 0; i < INTS; i++)
		(in_place ? out : in)[i] = value(tap_rank, 0, i + round);
	MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, n, MPI_INT, MPI_SUM, adding_all);
	wrong = wrong_sum(out, n, round);
	free(in);
	free(out);
	return wrong;
}

int main(int argc, char **argv)
{
	int may, all;

	MPI_Init(&argc, &argv);
	tap_start(argc, argv, 4);
	MPI_Comm_dup(MPI_COMM_WORLD, &gathering);
	MPI_Comm_dup(MPI_COMM_WORLD, &exchanging);
	MPI_Comm_dup(MPI_COMM_WORLD, &giving);
	MPI_Comm_dup(MPI_COMM_WORLD, &adding);
	MPI_Comm_dup(MPI_COMM_WORLD, &adding_all);
	tap_case("allgather, all read", allgather);
	tap_case("alltoall, all read", alltoall);
	tap_case("bcast, all read", bcast);
	tap_case("reduce, all read", reduce);
	tap_case("allreduce, all read", allreduce);
	may = tap_rank == tap_size - 1 ? no_attach() : 1;
	MPI_Allreduce(&may, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (!all && tap_rank == 0)
		printf("# system call filters are not permitted here: all go on reading\n");
	tap_case("allgather, one cannot read", allgather);
	tap_case("alltoall, one cannot read", alltoall);
	tap_case("bcast, one cannot read", bcast);
	tap_case("reduce, one cannot read", reduce);
	tap_case("allreduce, one cannot read", allreduce);
	MPI_Comm_free(&gathering);
	MPI_Comm_free(&exchanging);
	MPI_Comm_free(&giving);
	MPI_Comm_free(&adding);
	MPI_Comm_free(&adding_all);
	return tap_end();
}
