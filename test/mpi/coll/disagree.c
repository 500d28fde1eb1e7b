/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ranks that call different collectives, or the same with other lengths, roots or operations.
 * All hear of it, at the latest in the next collective that has to wait for all; none hangs, and
 * the communicator can be freed.
 *
 * With an argument "fatal NAME" it runs one case on MPI_COMM_WORLD, whose errors end the job:
 * coll_disagree.sh looks at what is printed.
 */
#include "test/mpi/coll_check.h"

#define MOST 100000 /* ints */

static int in[MOST * 2], out[MOST * 2];

struct mismatch {
	const char *name;
	int class; /* what is wrong, as a class; MPI_SUCCESS: it follows from where it is found */
	int (*call)(MPI_Comm comm, int odd);
};

/* The blocks of all ranks have room in `in` and `out`. */
static int few(int odd, int a, int b)
{
	return odd ? a : b;
}

static int allreduce_count(MPI_Comm c, int odd)
{
	return MPI_Allreduce(in, out, few(odd, 10, 100), MPI_INT, MPI_SUM, c);
}

static int allreduce_word(MPI_Comm c, int odd)
{
	return MPI_Allreduce(in, out, few(odd, 1, 2), MPI_INT, MPI_SUM, c);
}

static int allreduce_long(MPI_Comm c, int odd)
{
	return MPI_Allreduce(in, out, few(odd, 10, MOST), MPI_INT, MPI_SUM, c);
}

static int allreduce_op(MPI_Comm c, int odd)
{
	return MPI_Allreduce(in, out, 10, MPI_INT, odd ? MPI_MAX : MPI_SUM, c);
}

static int allreduce_type(MPI_Comm c, int odd)
{
	return MPI_Allreduce(in, out, 10, odd ? MPI_INT : MPI_DOUBLE, MPI_SUM, c);
}

static int bcast_more(MPI_Comm c, int odd)
{
	return MPI_Bcast(in, few(odd, 100, 10), MPI_INT, 0, c);
}

static int bcast_less(MPI_Comm c, int odd)
{
	return MPI_Bcast(in, few(odd, 10, 100), MPI_INT, 0, c);
}

static int bcast_word(MPI_Comm c, int odd)
{
	return MPI_Bcast(in, few(odd, 1, 100), MPI_INT, 0, c);
}

static int bcast_long(MPI_Comm c, int odd)
{
	return MPI_Bcast(in, few(odd, 10, MOST), MPI_INT, 0, c);
}

static int bcast_root(MPI_Comm c, int odd)
{
	return MPI_Bcast(in, 10, MPI_INT, odd, c);
}

static int bcast_nothing(MPI_Comm c, int odd)
{
	return MPI_Bcast(in, few(odd, 0, 10), MPI_INT, 0, c);
}

static int kinds(MPI_Comm c, int odd)
{
	if (odd)
		return MPI_Allreduce(in, out, 10, MPI_INT, MPI_SUM, c);
	return MPI_Bcast(in, 10, MPI_INT, 0, c);
}

static int barrier(MPI_Comm c, int odd)
{
	if (odd)
		return MPI_Allreduce(in, out, 10, MPI_INT, MPI_SUM, c);
	return MPI_Barrier(c);
}

static int left_out(MPI_Comm c, int odd)
{
	int rc = odd ? MPI_SUCCESS : MPI_Bcast(in, 10, MPI_INT, 0, c);

	return rc ? rc : MPI_Allreduce(in, out, 5, MPI_INT, MPI_SUM, c);
}

static int gather_count(MPI_Comm c, int odd)
{
	return MPI_Gather(in, few(odd, 100, 10), MPI_INT, out, few(odd, 100, 10), MPI_INT, 0, c);
}

static int scatter_count(MPI_Comm c, int odd)
{
	return MPI_Scatter(in, few(odd, 100, 10), MPI_INT, out, few(odd, 100, 10), MPI_INT, 0, c);
}

static int allgather_count(MPI_Comm c, int odd)
{
	return MPI_Allgather(in, few(odd, 100, 10), MPI_INT, out, few(odd, 100, 10), MPI_INT, c);
}

static int alltoall_count(MPI_Comm c, int odd)
{
	return MPI_Alltoall(in, few(odd, 2000, 10), MPI_INT, out, few(odd, 2000, 10), MPI_INT, c);
}

static int alltoall_long(MPI_Comm c, int odd)
{
	return MPI_Alltoall(in, few(odd, 10, 10000), MPI_INT, out, few(odd, 10, 10000), MPI_INT, c);
}

static int reduce_root(MPI_Comm c, int odd)
{
	return MPI_Reduce(in, out, 10, MPI_INT, MPI_SUM, odd, c);
}

static int reduce_op(MPI_Comm c, int odd)
{
	return MPI_Reduce(in, out, 1, MPI_INT, odd ? MPI_MIN : MPI_SUM, 0, c);
}

static int scan_count(MPI_Comm c, int odd)
{
	return MPI_Scan(in, out, few(odd, 1, 20), MPI_INT, MPI_SUM, c);
}

static int scatter_reduced(MPI_Comm c, int odd)
{
	return MPI_Reduce_scatter_block(in, out, few(odd, 20, 30), MPI_INT, MPI_SUM, c);
}

static int wait_for(int rc, MPI_Request *r)
{
	return rc ? rc : MPI_Wait(r, MPI_STATUS_IGNORE);
}

static int later_count(MPI_Comm c, int odd)
{
	MPI_Request r;

	return wait_for(MPI_Iallreduce(in, out, few(odd, 10, 30), MPI_INT, MPI_SUM, c, &r), &r);
}

static int later_kinds(MPI_Comm c, int odd)
{
	MPI_Request r;

	if (odd)
		return wait_for(MPI_Ibarrier(c, &r), &r);
	return wait_for(MPI_Iallgather(in, 4, MPI_INT, out, 4, MPI_INT, c, &r), &r);
}

static int later_or_now(MPI_Comm c, int odd)
{
	MPI_Request r;

	if (odd)
		return MPI_Barrier(c);
	return wait_for(MPI_Ibarrier(c, &r), &r);
}

static int kept_op(MPI_Comm c, int odd)
{
	MPI_Request r;
	int rc = MPI_Allreduce_init(in, out, 8, MPI_INT, odd ? MPI_MAX : MPI_SUM, c, MPI_INFO_NULL,
				    &r);

	if (!rc)
		rc = MPI_Start(&r);
	rc = wait_for(rc, &r);
	if (r != MPI_REQUEST_NULL)
		MPI_Request_free(&r);
	return rc;
}

static int copy_or_barrier(MPI_Comm c, int odd)
{
	MPI_Comm copy = MPI_COMM_NULL;
	int rc;

	if (!odd)
		return MPI_Barrier(c);
	rc = MPI_Comm_split(c, 0, 0, &copy);
	if (!rc)
		MPI_Comm_free(&copy);
	return rc;
}

static const struct mismatch cases[] = {
	{ "allreduce_count", MPI_ERR_TRUNCATE, allreduce_count },
	{ "allreduce_word", MPI_ERR_TRUNCATE, allreduce_word },
	{ "allreduce_long", MPI_ERR_TRUNCATE, allreduce_long },
	{ "allreduce_op", MPI_SUCCESS, allreduce_op },
	{ "allreduce_type", MPI_ERR_TRUNCATE, allreduce_type },
	{ "bcast_more", MPI_ERR_TRUNCATE, bcast_more },
	{ "bcast_less", MPI_ERR_TRUNCATE, bcast_less },
	{ "bcast_word", MPI_ERR_TRUNCATE, bcast_word },
	{ "bcast_long", MPI_ERR_TRUNCATE, bcast_long },
	{ "bcast_root", MPI_SUCCESS, bcast_root },
	{ "bcast_nothing", MPI_SUCCESS, bcast_nothing },
	{ "kinds", MPI_ERR_ARG, kinds },
	{ "barrier", MPI_ERR_ARG, barrier },
	{ "left_out", MPI_ERR_ARG, left_out },
	{ "gather_count", MPI_ERR_TRUNCATE, gather_count },
	{ "scatter_count", MPI_ERR_TRUNCATE, scatter_count },
	{ "allgather_count", MPI_ERR_TRUNCATE, allgather_count },
	{ "alltoall_count", MPI_ERR_TRUNCATE, alltoall_count },
	{ "alltoall_long", MPI_ERR_TRUNCATE, alltoall_long },
	{ "reduce_root", MPI_SUCCESS, reduce_root },
	{ "reduce_op", MPI_SUCCESS, reduce_op },
	{ "scan_count", MPI_ERR_TRUNCATE, scan_count },
	{ "reduce_scatter_count", MPI_ERR_TRUNCATE, scatter_reduced },
	{ "iallreduce_count", MPI_ERR_TRUNCATE, later_count },
	{ "ibarrier_or_iallgather", MPI_ERR_ARG, later_kinds },
	{ "ibarrier_or_barrier", MPI_ERR_ARG, later_or_now },
	{ "allreduce_init_op", MPI_SUCCESS, kept_op },
	{ "split_or_barrier", MPI_ERR_ARG, copy_or_barrier },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static const struct mismatch *now;

static int class_of(int code)
{
	int class;

	MPI_Error_class(code, &class);
	return class;
}

/* Before there is shared memory of all ranks, after that, and in the very call that makes it. The
 * first error is what counts. */
static const char *all_hear(int round)
{
	static const int before[] = { 0, 8, 3 };
	const int odd = round % tap_size == tap_rank;
	const char *wrong = NULL;
	int class;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int i = 0; i < before[round / 2 % 3]; i++)
		MPI_Barrier(comm);
	class = class_of(now->call(comm, odd));
	/* a rank that needed nobody hears of it here */
	if (class == MPI_SUCCESS)
		class = class_of(MPI_Barrier(comm));
	if (class == MPI_SUCCESS)
		wrong = tap_wrong("rank %d has not heard of it", tap_rank);
	else if (now->class != MPI_SUCCESS && class != now->class && class != MPI_ERR_ARG)
		wrong = tap_wrong("the class is %d, not %d", class, now->class);
	else if (class_of(MPI_Barrier(comm)) == MPI_SUCCESS)
		wrong = "a barrier is made after that";
	if (MPI_Comm_free(&comm) != MPI_SUCCESS)
		wrong = "the communicator cannot be freed";
	return wrong;
}

static int run_fatal(const char *name)
{
	int rank;

	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 10; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	for (size_t i = 0; i < CASES; i++)
		if (strcmp(cases[i].name, name) == 0)
			cases[i].call(MPI_COMM_WORLD, rank == 1);
	MPI_Finalize();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "fatal") == 0)
		return run_fatal(argv[2]);
	tap_start(argc, argv, 6);
	for (size_t i = 0; i < CASES; i++) {
		now = &cases[i];
		tap_case(now->name, all_hear);
	}
	return tap_end();
}
