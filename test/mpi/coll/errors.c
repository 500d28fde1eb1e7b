/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Wrong arguments of collectives give the error class of what is wrong, and the call can be made
 * again. One process.
 */
#include "test/mpi/coll_check.h"

static int a[8], b[8], counts[1] = { 1 }, negative[1] = { -1 }, displs[1];
static MPI_Datatype bare[1]; /* not committed */
static MPI_Datatype ints[1];

static int class_of(int code)
{
	int class = MPI_SUCCESS;

	if (code)
		MPI_Error_class(code, &class);
	return class;
}

static const char *expect(int want, int code, const char *what)
{
	int class = class_of(code);

	return class == want ? NULL : tap_wrong("%s: class %d, not %d", what, class, want);
}

#define EXPECT(want, call)                                                                         \
	do {                                                                                       \
		const char *wrong_ = expect(want, call, #call);                                    \
                                                                                                   \
		if (wrong_)                                                                        \
			return wrong_;                                                             \
	} while (0)

#define W MPI_COMM_SELF
#define I MPI_INT

static const char *bad_counts(int round)
{
	(void)round;
	EXPECT(MPI_ERR_COUNT, MPI_Bcast(a, -1, I, 0, W));
	EXPECT(MPI_ERR_COUNT, MPI_Gather(a, -1, I, b, 1, I, 0, W));
	EXPECT(MPI_ERR_COUNT, MPI_Gather(a, 1, I, b, -1, I, 0, W));
	EXPECT(MPI_ERR_COUNT, MPI_Gatherv(a, 1, I, b, negative, displs, I, 0, W));
	EXPECT(MPI_ERR_COUNT, MPI_Scatter(a, -1, I, b, 1, I, 0, W));
	EXPECT(MPI_ERR_COUNT, MPI_Scatter(a, 1, I, b, -1, I, 0, W));
	EXPECT(MPI_ERR_COUNT, MPI_Scatterv(a, negative, displs, I, b, 1, I, 0, W));
	EXPECT(MPI_ERR_COUNT, MPI_Allgather(a, -1, I, b, 1, I, W));
	EXPECT(MPI_ERR_COUNT, MPI_Allgatherv(a, 1, I, b, negative, displs, I, W));
	EXPECT(MPI_ERR_COUNT, MPI_Alltoall(a, 1, I, b, -1, I, W));
	EXPECT(MPI_ERR_COUNT, MPI_Alltoallv(a, negative, displs, I, b, counts, displs, I, W));
	EXPECT(MPI_ERR_COUNT, MPI_Alltoallw(a, counts, displs, ints, b, negative, displs, ints, W));
	EXPECT(MPI_ERR_COUNT, MPI_Reduce(a, b, -1, I, MPI_SUM, 0, W));
	EXPECT(MPI_ERR_COUNT, MPI_Allreduce(a, b, -1, I, MPI_SUM, W));
	EXPECT(MPI_ERR_COUNT, MPI_Reduce_scatter(a, b, negative, I, MPI_SUM, W));
	EXPECT(MPI_ERR_COUNT, MPI_Reduce_scatter_block(a, b, -1, I, MPI_SUM, W));
	EXPECT(MPI_ERR_COUNT, MPI_Scan(a, b, -1, I, MPI_SUM, W));
	EXPECT(MPI_ERR_COUNT, MPI_Exscan(a, b, -1, I, MPI_SUM, W));
	EXPECT(MPI_ERR_COUNT, MPI_Reduce_local(a, b, -1, I, MPI_SUM));
#if MPI_VERSION >= 4
	{
		/* more bytes than a number has, 4 of them in 64 bits */
		const MPI_Count huge = ((MPI_Count)1 << 62) + 1, many[] = { huge };
		const MPI_Aint at[] = { 0 };

		EXPECT(MPI_ERR_COUNT, MPI_Bcast_c(a, huge, I, 0, W));
		EXPECT(MPI_ERR_COUNT, MPI_Allreduce_c(a, b, huge, I, MPI_SUM, W));
		EXPECT(MPI_ERR_COUNT, MPI_Alltoallv_c(a, many, at, I, b, many, at, I, W));
		EXPECT(MPI_ERR_COUNT,
		       MPI_Reduce_scatter_block_c(MPI_IN_PLACE, b, huge, I, MPI_SUM, W));
	}
#endif
	return NULL;
}

static const char *bad_types(int round)
{
	MPI_Datatype none = MPI_DATATYPE_NULL, t = bare[0];

	(void)round;
	EXPECT(MPI_ERR_TYPE, MPI_Bcast(a, 1, none, 0, W));
	EXPECT(MPI_ERR_TYPE, MPI_Bcast(a, 1, t, 0, W));
	EXPECT(MPI_ERR_TYPE, MPI_Gather(a, 1, none, b, 1, I, 0, W));
	EXPECT(MPI_ERR_TYPE, MPI_Gather(a, 1, I, b, 1, t, 0, W));
	EXPECT(MPI_ERR_TYPE, MPI_Gatherv(a, 1, I, b, counts, displs, none, 0, W));
	EXPECT(MPI_ERR_TYPE, MPI_Scatter(a, 1, I, b, 1, none, 0, W));
	EXPECT(MPI_ERR_TYPE, MPI_Scatterv(a, counts, displs, t, b, 1, I, 0, W));
	EXPECT(MPI_ERR_TYPE, MPI_Allgather(a, 1, I, b, 1, none, W));
	EXPECT(MPI_ERR_TYPE, MPI_Allgatherv(a, 1, none, b, counts, displs, I, W));
	EXPECT(MPI_ERR_TYPE, MPI_Alltoall(a, 1, none, b, 1, I, W));
	EXPECT(MPI_ERR_TYPE, MPI_Alltoallv(a, counts, displs, I, b, counts, displs, none, W));
	EXPECT(MPI_ERR_TYPE, MPI_Alltoallw(a, counts, displs, ints, b, counts, displs, bare, W));
	EXPECT(MPI_ERR_TYPE, MPI_Reduce(a, b, 1, none, MPI_SUM, 0, W));
	EXPECT(MPI_ERR_TYPE, MPI_Allreduce(a, b, 1, none, MPI_SUM, W));
	EXPECT(MPI_ERR_TYPE, MPI_Reduce_scatter(a, b, counts, none, MPI_SUM, W));
	EXPECT(MPI_ERR_TYPE, MPI_Reduce_scatter_block(a, b, 1, none, MPI_SUM, W));
	EXPECT(MPI_ERR_TYPE, MPI_Scan(a, b, 1, none, MPI_SUM, W));
	EXPECT(MPI_ERR_TYPE, MPI_Exscan(a, b, 1, none, MPI_SUM, W));
	return NULL;
}

static const char *bad_roots(int round)
{
	(void)round;
	for (int root = -10; root < 5; root++) {
		if (root == 0)
			continue;
		EXPECT(MPI_ERR_ROOT, MPI_Bcast(a, 1, I, root, W));
		EXPECT(MPI_ERR_ROOT, MPI_Gather(a, 1, I, b, 1, I, root, W));
		EXPECT(MPI_ERR_ROOT, MPI_Gatherv(a, 1, I, b, counts, displs, I, root, W));
		EXPECT(MPI_ERR_ROOT, MPI_Scatter(a, 1, I, b, 1, I, root, W));
		EXPECT(MPI_ERR_ROOT, MPI_Scatterv(a, counts, displs, I, b, 1, I, root, W));
		EXPECT(MPI_ERR_ROOT, MPI_Reduce(a, b, 1, I, MPI_SUM, root, W));
	}
	return NULL;
}

static const char *bad_ops(int round)
{
	MPI_Op none = MPI_OP_NULL;

	(void)round;
	EXPECT(MPI_ERR_OP, MPI_Reduce(a, b, 1, I, none, 0, W));
	EXPECT(MPI_ERR_OP, MPI_Reduce(a, b, 1, MPI_2INT, MPI_SUM, 0, W));
	EXPECT(MPI_ERR_OP, MPI_Allreduce(a, b, 1, I, none, W));
	EXPECT(MPI_ERR_OP, MPI_Allreduce(a, b, 1, I, MPI_MINLOC, W));
	EXPECT(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_BAND, W));
	EXPECT(MPI_ERR_OP, MPI_Reduce_scatter(a, b, counts, I, none, W));
	EXPECT(MPI_ERR_OP, MPI_Reduce_scatter_block(a, b, 1, MPI_BYTE, MPI_SUM, W));
	EXPECT(MPI_ERR_OP, MPI_Scan(a, b, 1, MPI_C_DOUBLE_COMPLEX, MPI_MAX, W));
	EXPECT(MPI_ERR_OP, MPI_Exscan(a, b, 1, I, none, W));
	EXPECT(MPI_ERR_OP, MPI_Reduce_local(a, b, 1, I, MPI_REPLACE));
	return NULL;
}

static const char *same_buffers(int round)
{
	(void)round;
	/* but for what is in its place: see coll_lenient.c */
	EXPECT(MPI_ERR_BUFFER, MPI_Gather(a, 2, I, a, 1, I, 0, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Scatter(a, 2, I, a, 1, I, 0, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Allgather(a, 2, I, a, 1, I, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Alltoall(a, 1, I, a, 1, I, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Reduce(a, a, 1, I, MPI_SUM, 0, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Allreduce(a, a, 1, I, MPI_SUM, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Reduce_scatter_block(a, a, 1, I, MPI_SUM, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Scan(a, a, 1, I, MPI_SUM, W));
	/* nothing is written */
	EXPECT(MPI_SUCCESS, MPI_Allreduce(a, a, 0, I, MPI_SUM, W));
	EXPECT(MPI_SUCCESS, MPI_Gather(a, 0, I, a, 0, I, 0, W));
	return NULL;
}

static const char *misplaced(int round)
{
	(void)round;
	EXPECT(MPI_ERR_BUFFER, MPI_Bcast(MPI_IN_PLACE, 1, I, 0, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Gather(a, 1, I, MPI_IN_PLACE, 1, I, 0, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Scatter(MPI_IN_PLACE, 1, I, b, 1, I, 0, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Allgather(a, 1, I, MPI_IN_PLACE, 1, I, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Alltoall(a, 1, I, MPI_IN_PLACE, 1, I, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Allreduce(a, MPI_IN_PLACE, 1, I, MPI_SUM, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Reduce(a, MPI_IN_PLACE, 1, I, MPI_SUM, 0, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Scan(a, MPI_IN_PLACE, 1, I, MPI_SUM, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Allreduce(NULL, b, 1, I, MPI_SUM, W));
	EXPECT(MPI_ERR_BUFFER, MPI_Bcast(NULL, 1, I, 0, W));
	return NULL;
}

/* With MPI_BOTTOM and absolute addresses a NULL buffer is right, also for both buffers. */
static const char *bottom(int round)
{
	MPI_Datatype from, to;
	MPI_Aint at;
	int one = 1;

	MPI_Get_address(&a[1], &at);
	MPI_Type_create_hindexed(1, &one, &at, I, &from);
	MPI_Get_address(&b[2], &at);
	MPI_Type_create_hindexed(1, &one, &at, I, &to);
	MPI_Type_commit(&from);
	MPI_Type_commit(&to);
	a[1] = 1234 + round;
	b[2] = 0;
	EXPECT(MPI_SUCCESS, MPI_Gather(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, to, 0, W));
	if (b[2] != 1234 + round)
		return tap_wrong("gather from and to absolute addresses gave %d", b[2]);
	b[2] = 0;
	EXPECT(MPI_SUCCESS, MPI_Alltoall(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, to, W));
	if (b[2] != 1234 + round)
		return tap_wrong("alltoall from and to absolute addresses gave %d", b[2]);
	MPI_Type_free(&from);
	MPI_Type_free(&to);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 2);
	ints[0] = MPI_INT;
	MPI_Type_contiguous(2, MPI_INT, &bare[0]);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	tap_case("negative and excessive counts: MPI_ERR_COUNT", bad_counts);
	tap_case("no datatype, or one not committed: MPI_ERR_TYPE", bad_types);
	tap_case("a root that does not exist: MPI_ERR_ROOT", bad_roots);
	tap_case("an operation that is none, or not on this type: MPI_ERR_OP", bad_ops);
	tap_case("one buffer as two: MPI_ERR_BUFFER", same_buffers);
	tap_case("MPI_IN_PLACE or NULL where it must not be: MPI_ERR_BUFFER", misplaced);
	tap_case("absolute addresses", bottom);
	MPI_Type_free(&bare[0]);
	return tap_end();
}
