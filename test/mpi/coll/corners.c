/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Legal calls of collectives that few programs make: operations of users on datatypes whose
 * elements overlap or take no room, buffers that are NULL where nothing is in them.
 */
#include "paths.h"

/* Elements of `type` that are `ints` ints each, `off` apart; they may be anywhere. */
static int op_ints, op_off, op_extent;

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	int *a = in, *b = inout;

	(void)type;
	for (int i = 0; i < *n; i++)
		for (int k = 0; k < op_ints; k++)
			b[i * op_extent + k * op_off] += a[i * op_extent + k * op_off];
}

/* Sums of `count` such elements on all ranks, at the root and everywhere. */
static const char *sums(int ints, int off, int extent, int count, int round)
{
	enum { ROOM = 64 };
	int in[ROOM], out[ROOM], root = round % tap_size;
	MPI_Datatype vector, type;
	const char *wrong = NULL;
	MPI_Op op;

	op_ints = ints;
	op_off = off;
	op_extent = extent;
	MPI_Type_vector(ints, 1, off, MPI_INT, &vector);
	MPI_Type_create_resized(vector, 0, extent * (MPI_Aint)sizeof(int), &type);
	MPI_Type_commit(&type);
	MPI_Op_create(add, 1, &op);
	for (int all = 0; all < 2; all++) {
		for (int i = 0; i < ROOM; i++) {
			in[i] = 100 * tap_rank + i;
			out[i] = -1;
		}
		if (all)
			MPI_Allreduce(in, out, count, type, op, MPI_COMM_WORLD);
		else
			MPI_Reduce(in, out, count, type, op, root, MPI_COMM_WORLD);
		for (int i = 0; i < count && (all || tap_rank == root); i++)
			for (int k = 0; k < ints && !wrong; k++) {
				int at = i * extent + k * off;
				int want = 50 * tap_size * (tap_size - 1) + tap_size * at;

				if (out[at] != want)
					wrong = tap_wrong("%s: int %d is %d, not %d",
							  all ? "allreduce" : "reduce", at, out[at],
							  want);
			}
	}
	MPI_Op_free(&op);
	MPI_Type_free(&type);
	MPI_Type_free(&vector);
	return wrong;
}

/* One column of a matrix behind the other: each row of the matrix has an int of each. */
static const char *interleaved(int round)
{
	ways_draw();
	return sums(4, 4, 1, 4, round);
}

static const char *overlapping(int round)
{
	ways_draw();
	return sums(3, 1, 1, 1, round);
}

static const char *no_extent(int round)
{
	ways_draw();
	return sums(3, 1, 0, 1, round);
}

static MPI_Aint absolute; /* where the only int of an element is, counted from address 0 */

static void add_absolute(void *in, void *inout, int *n, MPI_Datatype *type)
{
	int *a = (int *)((uintptr_t)in + (uintptr_t)absolute);
	int *b = (int *)((uintptr_t)inout + (uintptr_t)absolute);

	(void)n;
	(void)type;
	*b += *a;
}

/* The address of the buffer is that of no buffer. */
static const char *bottom(int round)
{
	int value = tap_rank + 1,
	    wanted[] = { (tap_rank + 1) * (tap_rank + 2) / 2, tap_rank * (tap_rank + 1) / 2,
			 tap_size * (tap_size + 1) / 2 };
	MPI_Datatype type;
	MPI_Op op;

	ways_draw();
	MPI_Get_address(&value, &absolute);
	MPI_Type_create_hindexed_block(1, 1, &absolute, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Op_create(add_absolute, 1, &op);
	if (round % 3 == 0)
		MPI_Scan(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD);
	else if (round % 3 == 1)
		MPI_Exscan(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD);
	else
		MPI_Allreduce(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD);
	MPI_Op_free(&op);
	MPI_Type_free(&type);
	if (value != wanted[round % 3] && (round % 3 != 1 || tap_rank > 0))
		return tap_wrong("%d, not %d", value, wanted[round % 3]);
	return NULL;
}

static const char *empty_type(int round)
{
	int in = 1, out = 2;
	MPI_Datatype none;
	MPI_Op op;

	ways_draw();
	op_ints = 0;
	MPI_Type_contiguous(0, MPI_INT, &none);
	MPI_Type_commit(&none);
	MPI_Op_create(add, 1, &op);
	MPI_Reduce(&in, &out, 3, none, op, round % tap_size, MPI_COMM_WORLD);
	MPI_Allreduce(&in, &out, 3, none, op, MPI_COMM_WORLD);
	MPI_Op_free(&op);
	MPI_Type_free(&none);
	return out == 2 ? NULL : "an element without data has some";
}

/* Only the last rank gets anything. */
static const char *nothing_for_most(int round)
{
	int counts[64] = { 0 }, in[2] = { tap_rank, 1 }, out[2] = { -1, -1 }, last = tap_size - 1;
	int err;

	(void)round;
	ways_draw();
	counts[last] = 2;
	err = MPI_Reduce_scatter(in, tap_rank == last ? out : NULL, counts, MPI_INT, MPI_SUM,
				 MPI_COMM_WORLD);
	if (err)
		return tap_wrong("error %d", err);
	if (tap_rank == last && (out[0] != last * tap_size / 2 || out[1] != tap_size))
		return tap_wrong("%d and %d", out[0], out[1]);
	return NULL;
}

/* A star whose centre hears from all others and tells nobody. */
static const char *nobody_around(int round)
{
	int others[64], zero = 0, in[64], mine[2] = { tap_rank, -tap_rank }, err;
	bool centre = tap_rank == 0;
	MPI_Comm star;

	(void)round;
	ways_draw();
	for (int i = 1; i < tap_size; i++)
		others[i - 1] = i;
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, centre ? tap_size - 1 : 0, others,
				       MPI_UNWEIGHTED, centre ? 0 : 1, &zero, MPI_UNWEIGHTED,
				       MPI_INFO_NULL, 0, &star);
	MPI_Comm_set_errhandler(star, MPI_ERRORS_RETURN);
	err = MPI_Neighbor_alltoall(centre ? NULL : mine, 1, MPI_INT, centre ? in : NULL, 1,
				    MPI_INT, star);
	if (!err)
		err = MPI_Neighbor_allgather(mine, 1, MPI_INT, centre ? in : NULL, 1, MPI_INT,
					     star);
	MPI_Comm_free(&star);
	if (err)
		return tap_wrong("error %d", err);
	for (int i = 1; centre && i < tap_size; i++)
		if (in[i - 1] != i)
			return tap_wrong("from %d came %d", i, in[i - 1]);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 12);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	tap_case("a user's operation on elements that interleave", interleaved);
	tap_case("a user's operation on a datatype longer than its extent", overlapping);
	tap_case("a user's operation on a datatype without extent", no_extent);
	tap_case("buffers at address 0", bottom);
	tap_case("a user's operation on a datatype without data", empty_type);
	tap_case("reduce_scatter: who gets nothing may have no buffer", nothing_for_most);
	tap_case("neighbours: who has none may have no buffer", nobody_around);
	return tap_end();
}
