/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Memory runs out at one rank in the middle of a blocking collective: no rank waits for ever,
 * who is told that all went well has the right result, and the collectives that follow on the
 * communicator are right at all ranks. Every rank in turn, for every collective, first for large
 * blocks of memory, then for all but small ones. And while two groups make a communicator
 * between them.
 */
#include <mpi.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/job_check.h"

/* ---- an allocator that can be told to fail --------------------------------------------------- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static _Thread_local size_t limit;   /* from so many bytes on there are none; 0: there are */
static _Thread_local size_t exactly; /* there are none of so many bytes, either */
static _Thread_local int denied;

static bool deny(size_t bytes)
{
	if ((!limit || bytes < limit) && (!exactly || bytes != exactly))
		return false;
	denied++;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	return deny(bytes) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return deny(n * bytes) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
	return deny(bytes) ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return deny(bytes) ? NULL : __libc_memalign(align, bytes);
}

int posix_memalign(void **to, size_t align, size_t bytes)
{
	*to = deny(bytes) ? NULL : __libc_memalign(align, bytes);
	return *to ? 0 : ENOMEM;
}

/* ---- the collectives ------------------------------------------------------------------------- */

#define MOST      40000 /* elements of a block */
#define RANKS     8
#define UNTOUCHED (-1)

static int in[MOST * RANKS * 2], out[MOST * RANKS * 2];
static int wide[MOST * RANKS * 2];
static MPI_Datatype gaps; /* an int and room for another */
static MPI_Comm ring;
static MPI_Comm pair; /* between two halves of all */
static int counts[RANKS], displs[RANKS];

/* Element i of the block that rank r gives to another. */
static int given(int r, int to, int i)
{
	return r * 1000 + to * 100 + i % 100;
}

static void give(int n, int blocks)
{
	for (int b = 0; b < blocks; b++)
		for (int i = 0; i < n; i++)
			in[b * n + i] = given(job_rank, b, i);
}

/* Block b as it comes from rank r, which gave it as its block for `to`. */
static bool has(const int *at, int n, int step, int r, int to)
{
	for (int i = 0; i < n; i++)
		if (at[(ptrdiff_t)i * step] != given(r, to, i))
			return false;
	return true;
}

/* The sum over the first `ranks` ranks of what they give for `to`. */
static bool has_sum(const int *at, int n, int ranks, int to)
{
	for (int i = 0; i < n; i++) {
		int sum = 0;

		for (int r = 0; r < ranks; r++)
			sum += given(r, to, i);
		if (at[i] != sum)
			return false;
	}
	return true;
}

static bool has_all(int n)
{
	bool right = true;

	for (int r = 0; r < job_size; r++)
		right &= has(out + r * n, n, 1, r, 0);
	return right;
}

/* Each makes the call with blocks of n, and says by *right what came. */

static int bcast(int n, bool *right)
{
	int root = job_size - 1, rc;

	for (int i = 0; i < n; i++)
		out[i] = job_rank == root ? given(root, 0, i) : UNTOUCHED;
	rc = MPI_Bcast(out, n, MPI_INT, root, MPI_COMM_WORLD);
	*right = has(out, n, 1, root, 0);
	return rc;
}

static int bcast_gaps(int n, bool *right)
{
	int rc;

	for (int i = 0; i < n; i++)
		out[2 * i] = job_rank == 1 ? given(1, 0, i) : UNTOUCHED;
	rc = MPI_Bcast(out, n, gaps, 1, MPI_COMM_WORLD);
	*right = has(out, n, 2, 1, 0);
	return rc;
}

static int gather(int n, bool *right)
{
	int rc = MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, 0, MPI_COMM_WORLD);

	*right = job_rank || has_all(n);
	return rc;
}

static int scatter(int n, bool *right)
{
	int rc = MPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, 0, MPI_COMM_WORLD);

	*right = has(out, n, 1, 0, job_rank);
	return rc;
}

static int allgather(int n, bool *right)
{
	int rc = MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);

	*right = has_all(n);
	return rc;
}

static int allgatherv(int n, bool *right)
{
	int rc;

	for (int r = 0; r < job_size; r++)
		displs[r] = r * (counts[r] = n);
	rc = MPI_Allgatherv(in, n, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD);
	*right = has_all(n);
	return rc;
}

static int alltoall(int n, bool *right)
{
	int rc = MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);

	*right = true;
	for (int r = 0; r < job_size; r++)
		*right &= has(out + r * n, n, 1, r, job_rank);
	return rc;
}

static int alltoall_in_place(int n, bool *right)
{
	int rc;

	memcpy(out, in, sizeof(int) * (size_t)(n * job_size));
	rc = MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
	*right = true;
	for (int r = 0; r < job_size; r++)
		*right &= has(out + r * n, n, 1, r, job_rank);
	return rc;
}

static int reduce(int n, bool *right)
{
	int root = job_size - 1;
	int rc = MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);

	*right = job_rank != root || has_sum(out, n, job_size, 0);
	return rc;
}

static int allreduce(int n, bool *right)
{
	int rc = MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

	*right = has_sum(out, n, job_size, 0);
	return rc;
}

static int reduce_scatter(int n, bool *right)
{
	int rc;

	for (int r = 0; r < job_size; r++)
		counts[r] = n;
	rc = MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	*right = has_sum(out, n, job_size, job_rank);
	return rc;
}

static int reduce_scatter_in_place(int n, bool *right)
{
	int rc;

	for (int i = 0; i < n * job_size; i++)
		out[i] = in[i];
	rc = MPI_Reduce_scatter_block(MPI_IN_PLACE, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	*right = has_sum(out, n, job_size, job_rank);
	return rc;
}

static int scan(int n, bool *right)
{
	int rc = MPI_Scan(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

	*right = has_sum(out, n, job_rank + 1, 0);
	return rc;
}

static int exscan(int n, bool *right)
{
	int rc = MPI_Exscan(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

	*right = job_rank == 0 || has_sum(out, n, job_rank, 0);
	return rc;
}

/* The data given, with gaps, which have to be packed; counts and displacements. */
static void give_wide(int n)
{
	for (int b = 0; b < job_size; b++) {
		displs[b] = b * (counts[b] = n);
		for (int i = 0; i < n; i++)
			wide[2 * (b * n + i)] = given(job_rank, b, i);
	}
}

static int gatherv(int n, bool *right)
{
	int rc;

	give_wide(n);
	rc = MPI_Gatherv(wide, n, gaps, out, counts, displs, MPI_INT, 0, MPI_COMM_WORLD);
	*right = job_rank || has_all(n);
	return rc;
}

static int scatterv(int n, bool *right)
{
	int rc;

	give_wide(n);
	rc = MPI_Scatterv(wide, counts, displs, gaps, out, n, MPI_INT, 0, MPI_COMM_WORLD);
	*right = has(out, n, 1, 0, job_rank);
	return rc;
}

static int neighbors(int n, bool *right)
{
	int rc;

	give_wide(n);
	rc = MPI_Neighbor_alltoall(wide, n, gaps, out, n, MPI_INT, ring);
	*right = has(out, n, 1, (job_rank + job_size - 1) % job_size, 1) &&
		 has(out + n, n, 1, (job_rank + 1) % job_size, 0);
	return rc;
}

/* Its memory is there when it is made, and not when it is started. */
static int persistent(int n, bool *right)
{
	size_t now = limit;
	MPI_Request r;
	int rc;

	give_wide(n);
	limit = 0;
	MPI_Gatherv_init(wide, n, gaps, out, counts, displs, MPI_INT, 0, MPI_COMM_WORLD,
			 MPI_INFO_NULL, &r);
	limit = now;
	rc = MPI_Start(&r);
	if (!rc)
		rc = MPI_Wait(&r, MPI_STATUS_IGNORE);
	limit = 0;
	*right = job_rank || has_all(n);
	/* and it can be started again */
	CHECK_EQUAL(MPI_Start(&r), MPI_SUCCESS);
	CHECK_EQUAL(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
	CHECK(job_rank || has_all(n));
	MPI_Request_free(&r);
	return rc;
}

/* The lower half is the other one's. */
static bool lower(void)
{
	return job_rank < job_size / 2;
}

/* Sums of what the ranks of the other half give for `to`. */
static bool has_other_sum(int n, int to)
{
	int from = lower() ? job_size / 2 : 0, end = lower() ? job_size : job_size / 2;

	for (int i = 0; i < n; i++) {
		int sum = 0;

		for (int r = from; r < end; r++)
			sum += given(r, to, i);
		if (out[i] != sum)
			return false;
	}
	return true;
}

static int inter_allreduce(int n, bool *right)
{
	int rc = MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, pair);

	*right = has_other_sum(n, 0);
	return rc;
}

static int inter_reduce_scatter(int n, bool *right)
{
	int local, rc, total = n * (job_size / 2) * (job_size - job_size / 2);

	/* the same total on both sides */
	MPI_Comm_size(pair, &local);
	for (int r = 0; r < local; r++)
		counts[r] = total / local;
	for (int i = 0; i < total; i++)
		in[i] = given(job_rank, 0, i % 4);
	rc = MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, pair);
	*right = true; /* the others' sum, of which there are four values */
	for (int i = 0; i < total / local; i++) {
		int from = lower() ? job_size / 2 : 0, end = lower() ? job_size : job_size / 2;
		int rank, sum = 0;

		MPI_Comm_rank(pair, &rank);
		for (int r = from; r < end; r++)
			sum += given(r, 0, (rank * (total / local) + i) % 4);
		*right &= out[i] == sum;
	}
	return rc;
}

static const struct collective {
	const char *name;
	int (*call)(int n, bool *right);
} collectives[] = {
	{ "bcast", bcast },
	{ "bcast with gaps", bcast_gaps },
	{ "gather", gather },
	{ "scatter", scatter },
	{ "gatherv", gatherv },
	{ "gatherv that is persistent", persistent },
	{ "scatterv", scatterv },
	{ "neighbor_alltoall", neighbors },
	{ "allgather", allgather },
	{ "allgatherv", allgatherv },
	{ "alltoall", alltoall },
	{ "alltoall in place", alltoall_in_place },
	{ "reduce", reduce },
	{ "allreduce", allreduce },
	{ "reduce_scatter", reduce_scatter },
	{ "reduce_scatter in place", reduce_scatter_in_place },
	{ "scan", scan },
	{ "exscan", exscan },
	{ "allreduce between groups", inter_allreduce },
	{ "reduce_scatter between groups", inter_reduce_scatter },
};

/* ---- with and without memory ----------------------------------------------------------------- */

static int call(const struct collective *c, int n, bool *right)
{
	give(n, job_size);
	for (int i = 0; i < 2 * n * job_size; i++)
		out[i] = UNTOUCHED;
	return c->call(n, right);
}

static const struct collective *now;

/* Memory that was used before is not used again: all of it makes room for one block, of 16 MiB, too
 * long for anything else. */
static void use_up_kept(void)
{
	MPI_Request r;

	MPI_Bcast_init(out, (16 << 20) / (int)sizeof(int), gaps, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
		       &r);
	MPI_Request_free(&r);
}

/* Blocks of n. */
static void without(int poor, size_t least, int n)
{
	bool right;
	int rc, class = MPI_SUCCESS, was_denied;

	give(n, job_size);
	MPI_Barrier(MPI_COMM_WORLD);
	use_up_kept();
	denied = 0;
	if (job_rank == poor)
		limit = least;
	rc = call(now, n, &right);
	limit = 0;
	was_denied = denied;
	if (rc)
		MPI_Error_class(rc, &class);
	CHECK(rc || right);
	if (rc)
		CHECK(class == (job_rank == poor ? MPI_ERR_NO_MEM : MPI_ERR_OTHER));
	CHECK(!rc || job_rank != poor || was_denied);
	/* who has no memory for its data says so */
	CHECK(rc || least < 2048 || !was_denied);
	for (int i = 0; i < 2; i++) {
		CHECK_EQUAL(call(now, 16 + i, &right), MPI_SUCCESS);
		CHECK(right);
	}
}

static void each_rank_in_turn(void)
{
	const size_t limits[] = { 2048, 256 };
	const int sizes[] = { 700, 9000 };
	bool right;
	int n;

	for (int i = 0; i < 6; i++) {
		CHECK_EQUAL(call(now, 1 + i, &right), MPI_SUCCESS);
		CHECK(right);
	}
	for (int s = 0; s < 2; s++) {
		n = sizes[s];
		for (int l = 0; l < 2; l++)
			for (int poor = 0; poor < job_size; poor++, n += 64)
				without(poor, limits[l], n);
	}
}

static void halves(void)
{
	MPI_Comm half;

	MPI_Comm_split(MPI_COMM_WORLD, lower(), job_rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, lower() ? job_size / 2 : 0, 7, &pair);
	MPI_Comm_free(&half);
	MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
}

/* ---- communicators between groups ------------------------------------------------------------ */

static MPI_Comm side; /* this half */
static MPI_Group side_group;

static int pair_create(MPI_Comm *made)
{
	return MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, lower() ? job_size / 2 : 0, 8, made);
}

static int pair_of_groups(MPI_Comm *made)
{
	return MPI_Comm_create(pair, side_group, made);
}

static int pair_split(MPI_Comm *made)
{
	return MPI_Comm_split(pair, 0, 0, made);
}

static int merge(MPI_Comm *made)
{
	return MPI_Intercomm_merge(pair, lower(), made);
}

/* No memory at one rank for what it is to learn of the other side, be it the leader or who hears
 * of it: no rank has a communicator, and none waits for one. */
static void pair_without(int (*make)(MPI_Comm *), size_t bytes, int poor)
{
	MPI_Comm made = MPI_COMM_NULL;
	int rc, was_denied, class = MPI_SUCCESS;

	MPI_Barrier(MPI_COMM_WORLD);
	denied = 0;
	exactly = job_rank == poor ? bytes : 0;
	rc = make(&made);
	exactly = 0;
	was_denied = denied;
	MPI_Error_class(rc, &class);
	CHECK(job_rank != poor || was_denied);
	CHECK(made == MPI_COMM_NULL);
	if (job_rank == poor)
		CHECK_EQUAL(class, MPI_ERR_NO_MEM);
	else if (lower() == (poor < job_size / 2))
		CHECK_EQUAL(class, MPI_ERR_OTHER);
	else
		CHECK(rc != MPI_SUCCESS);
	CHECK_EQUAL(make(&made), MPI_SUCCESS);
	if (made != MPI_COMM_NULL)
		MPI_Comm_free(&made);
}

static int split(MPI_Comm *made)
{
	return MPI_Comm_split(MPI_COMM_WORLD, 0, 0, made);
}

static int of_group(MPI_Comm *made)
{
	return MPI_Comm_create(MPI_COMM_WORLD, side_group, made);
}

static int by_members(MPI_Comm *made)
{
	return MPI_Comm_create_group(MPI_COMM_WORLD, side_group, 9, made);
}

#define DIMS 7

/* Topologies, whose sizes are those of core/topology.c and of the lists of edges. */
static int grid(MPI_Comm *made)
{
	int dims[DIMS] = { job_size, 1, 1, 1, 1, 1, 1 }, periods[DIMS] = { 0 };

	return MPI_Cart_create(MPI_COMM_WORLD, DIMS, dims, periods, 0, made);
}

#define EDGES 12

/* Each rank names edges from it to rank 0: it lays out two ends of each, gets one of its own, and
 * rank 0 one of everybody's as well. */
static int edges(MPI_Comm *made)
{
	int to[EDGES] = { 0 }, degree = EDGES;

	return MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &job_rank, &degree, to, MPI_UNWEIGHTED,
				     MPI_INFO_NULL, 0, made);
}

static void no_topology(void)
{
	const size_t topology = 56, end = 3 * sizeof(int), neighbor = 2 * sizeof(int);

	for (int poor = 0; poor < job_size; poor++) {
		size_t ends = EDGES + (poor ? 0 : (size_t)job_size * EDGES);

		pair_without(grid, topology + 3 * DIMS * sizeof(int), poor);
		pair_without(edges, (2 * EDGES + 1) * end, poor);
		pair_without(edges, (ends + 1) * end, poor);
		pair_without(edges, topology + ends * neighbor, poor);
	}
}

/* One rank has no memory to look at the group faster. */
static void made_without(int (*make)(MPI_Comm *), size_t bytes, int poor)
{
	MPI_Comm made = MPI_COMM_NULL;
	int rc;

	MPI_Barrier(MPI_COMM_WORLD);
	denied = 0;
	exactly = job_rank == poor ? bytes : 0;
	rc = make(&made);
	exactly = 0;
	CHECK(job_rank != poor || denied);
	CHECK_EQUAL(rc, MPI_SUCCESS);
	if (made != MPI_COMM_NULL)
		MPI_Comm_free(&made);
}

/* Likewise of one group, with what comm/split.c and comm/create.c have. */
static void no_part(void)
{
	size_t colours = (size_t)job_size * 2 * sizeof(int), ranks = (size_t)job_size * sizeof(int);

	MPI_Comm_group(MPI_COMM_WORLD, &side_group);
	for (int poor = 0; poor < job_size; poor++) {
		pair_without(split, colours, poor);
		pair_without(split, colours + 2 * sizeof(int), poor);
		pair_without(split, ranks + sizeof(int), poor);
		made_without(of_group, ranks, poor);
		made_without(by_members, ranks, poor);
	}
	MPI_Group_free(&side_group);
}

/* The sizes are those of lists of processes and ranks, and of colours and keys, as comm/creation.c
 * and split.c there have them. */
static void no_pair(void)
{
	const size_t lower_names = (size_t)(job_size / 2 + 1) * 16;
	const size_t upper_names = (size_t)(job_size - job_size / 2 + 1) * 16;
	size_t inverse = (size_t)job_size * sizeof(int);
	size_t colours = (size_t)(job_size - job_size / 2) * 2 * sizeof(int);

	MPI_Comm_split(MPI_COMM_WORLD, lower(), job_rank, &side);
	MPI_Comm_set_errhandler(side, MPI_ERRORS_RETURN);
	MPI_Comm_group(side, &side_group);
	for (int poor = 0; poor < job_size; poor++) {
		pair_without(pair_create, lower_names, poor);
		pair_without(pair_create, upper_names, poor);
		pair_without(pair_of_groups, lower_names, poor);
		pair_without(pair_of_groups, upper_names, poor);
		pair_without(pair_split, colours, poor);
		/* when all is known */
		pair_without(pair_create, inverse, poor);
		pair_without(merge, inverse, poor);
	}
	MPI_Group_free(&side_group);
	MPI_Comm_free(&side);
}

/* A connection takes memory, and is made when it is first needed: also when a rank that waits
 * for long says so to another. This is not about connections, so all are made while there is
 * memory. */
static void meet_all(void)
{
	for (int r = 0; r < job_size; r++)
		MPI_Sendrecv(NULL, 0, MPI_INT, r, 1, NULL, 0, MPI_INT, r, 1, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;

	job_start(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	meet_all();
	MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &gaps);
	MPI_Type_commit(&gaps);
	halves();
	MPI_Cart_create(MPI_COMM_WORLD, 1, &job_size, &(int){ 1 }, 0, &ring);
	MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
	for (size_t i = 0; i < sizeof(collectives) / sizeof(*collectives); i++) {
		now = &collectives[i];
		if (!only || strcmp(only, now->name) == 0)
			job_case(now->name, each_rank_in_turn);
	}
	job_case("a communicator between groups", no_pair);
	job_case("a part of a communicator", no_part);
	job_case("a topology", no_topology);
	MPI_Comm_free(&ring);
	MPI_Comm_free(&pair);
	MPI_Type_free(&gaps);
	return job_end();
}
