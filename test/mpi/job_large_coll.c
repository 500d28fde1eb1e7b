/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The large-count form of every collective, blocking, non-blocking and persistent: with a few
 * ints that lie displacements of more than 2^31 away from the address that is given, and with
 * more elements than an int can count, of a type that has no size. MPICH 4.0 fails here:
 * persistent gathers, and Reduce_scatter_block of so many.
 */
#include "job_check.h"

#include <stdint.h>

enum { RANKS = 8, N = 3, GAP = 4, ROOM = RANKS * GAP };
#define MANY (((MPI_Count)1 << 31) + 1) /* below zero as an int */
#define FAR  ((MPI_Aint)1 << 33)        /* zero as an int */

/* The data of the calls: n elements of this type from each to each, reduced by op. */
static MPI_Count n;
static MPI_Datatype type;
static MPI_Op op;

static MPI_Comm ring;
static int in[ROOM], out[ROOM], want[ROOM];
static MPI_Request request;

/* Of v- and w-variants: blocks with gaps between them, from far_in and far_out on. */
static int *far_in, *far_out;
static MPI_Count counts[RANKS];
static MPI_Aint at[RANKS], bytes_at[RANKS];
static MPI_Datatype types[RANKS];

static void add_nothing(void *a, void *b, MPI_Count *length, MPI_Datatype *of)
{
	(void)a, (void)b, (void)length, (void)of;
}

/* A function that counts with an int is called several times. */
static MPI_Count seen;
static const char *next_in, *next_inout; /* where the next call of an operation begins */
static MPI_Aint step;

static void add_in_parts(void *a, void *b, int *length, MPI_Datatype *of)
{
	(void)of;
	CHECK(*length > 0);
	if (next_in) {
		CHECK(a == next_in);
		CHECK(b == next_inout);
		next_in += *length * step;
		next_inout += *length * step;
	}
	seen += *length;
}

static int number(int rank, int i)
{
	return 100 * rank + i;
}

static void fill(void)
{
	for (int i = 0; i < ROOM; i++) {
		in[i] = number(job_rank, i);
		out[i] = -1;
	}
}

static void want_nothing(void)
{
	for (int i = 0; i < ROOM; i++)
		want[i] = -1;
}

/* From place `to` on come the elements of `rank` from place `from` on. */
static void want_of(int to, int rank, int from)
{
	for (int i = 0; i < N && type == MPI_INT; i++)
		want[to + i] = number(rank, from + i);
}

/* The sum of the ranks from first to last - 1, from place `from` on. */
static void want_sum(int first, int last, int from)
{
	for (int i = 0; i < N && type == MPI_INT && first < last; i++) {
		want[i] = 0;
		for (int rank = first; rank < last; rank++)
			want[i] += number(rank, from + i);
	}
}

static void look(const char *name, int err)
{
	if (err == MPI_SUCCESS && memcmp(out, want, sizeof(out)) == 0)
		return;
	if (job_failed++ == 0)
		fprintf(stderr, "# rank %d: %s of %lld: error %d, or not what should be there\n",
			job_rank, name, (long long)n, err);
}

static int finish(int err)
{
	return err ? err : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The same call in each way, a persistent one twice. */
#define EACH_WAY(name, iname, ...)                                                                 \
	do {                                                                                       \
		int err_;                                                                          \
                                                                                                   \
		fill();                                                                            \
		look(#name "_c", name##_c(__VA_ARGS__));                                           \
		fill();                                                                            \
		look(#iname "_c", finish(iname##_c(__VA_ARGS__, &request)));                       \
		err_ = name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &request);                        \
		for (int i_ = 0; i_ < 2; i_++) {                                                   \
			fill();                                                                    \
			look(#name "_init_c", finish(err_ ? err_ : MPI_Start(&request)));          \
		}                                                                                  \
		CHECK_EQUAL(MPI_Request_free(&request), MPI_SUCCESS);                              \
		want_nothing();                                                                    \
	} while (0)

/* ---- movement -------------------------------------------------------------------------------- */

static void from_and_to_a_root(int root)
{
	bool me = job_rank == root;

	if (!me)
		want_of(0, root, 0);
	EACH_WAY(MPI_Bcast, MPI_Ibcast, me ? in : out, n, type, root, MPI_COMM_WORLD);
	for (int i = 0; i < job_size && me; i++)
		want_of(i * N, i, 0);
	EACH_WAY(MPI_Gather, MPI_Igather, in, n, type, out, n, type, root, MPI_COMM_WORLD);
	for (int i = 0; i < job_size && me; i++)
		want_of(i * GAP, i, 0);
	EACH_WAY(MPI_Gatherv, MPI_Igatherv, in, n, type, far_out, counts, at, type, root,
		 MPI_COMM_WORLD);
	want_of(0, root, job_rank * N);
	EACH_WAY(MPI_Scatter, MPI_Iscatter, in, n, type, out, n, type, root, MPI_COMM_WORLD);
	want_of(0, root, job_rank * GAP);
	EACH_WAY(MPI_Scatterv, MPI_Iscatterv, far_in, counts, at, type, out, n, type, root,
		 MPI_COMM_WORLD);
}

static void from_all_to_all(void)
{
	for (int i = 0; i < job_size; i++)
		want_of(i * N, i, 0);
	EACH_WAY(MPI_Allgather, MPI_Iallgather, in, n, type, out, n, type, MPI_COMM_WORLD);
	for (int i = 0; i < job_size; i++)
		want_of(i * GAP, i, 0);
	EACH_WAY(MPI_Allgatherv, MPI_Iallgatherv, in, n, type, far_out, counts, at, type,
		 MPI_COMM_WORLD);
	for (int i = 0; i < job_size; i++)
		want_of(i * N, i, job_rank * N);
	EACH_WAY(MPI_Alltoall, MPI_Ialltoall, in, n, type, out, n, type, MPI_COMM_WORLD);
	for (int i = 0; i < job_size; i++)
		want_of(i * GAP, i, job_rank * GAP);
	EACH_WAY(MPI_Alltoallv, MPI_Ialltoallv, far_in, counts, at, type, far_out, counts, at, type,
		 MPI_COMM_WORLD);
	for (int i = 0; i < job_size; i++)
		want_of(i * GAP, i, job_rank * GAP);
	EACH_WAY(MPI_Alltoallw, MPI_Ialltoallw, far_in, counts, bytes_at, types, far_out, counts,
		 bytes_at, types, MPI_COMM_WORLD);
}

/* Block 0 goes to the left and comes from there, where it was block 1; and the other way about. */
static void between_neighbours(void)
{
	int left = (job_rank + job_size - 1) % job_size, right = (job_rank + 1) % job_size;

	want_of(0, left, 0);
	want_of(N, right, 0);
	EACH_WAY(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, in, n, type, out, n, type, ring);
	want_of(0, left, 0);
	want_of(GAP, right, 0);
	EACH_WAY(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, in, n, type, far_out, counts,
		 at, type, ring);
	want_of(0, left, N);
	want_of(N, right, 0);
	EACH_WAY(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, in, n, type, out, n, type, ring);
	want_of(0, left, GAP);
	want_of(GAP, right, 0);
	EACH_WAY(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, far_in, counts, at, type, far_out,
		 counts, at, type, ring);
	want_of(0, left, GAP);
	want_of(GAP, right, 0);
	EACH_WAY(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, far_in, counts, bytes_at, types,
		 far_out, counts, bytes_at, types, ring);
}

/* ---- reductions ------------------------------------------------------------------------------ */

static void reductions(void)
{
	int root = job_size - 1;

	if (job_rank == root)
		want_sum(0, job_size, 0);
	EACH_WAY(MPI_Reduce, MPI_Ireduce, in, out, n, type, op, root, MPI_COMM_WORLD);
	want_sum(0, job_size, 0);
	EACH_WAY(MPI_Allreduce, MPI_Iallreduce, in, out, n, type, op, MPI_COMM_WORLD);
	want_sum(0, job_size, job_rank * N);
	EACH_WAY(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, in, out, n, type, op,
		 MPI_COMM_WORLD);
	want_sum(0, job_size, job_rank * N);
	EACH_WAY(MPI_Reduce_scatter, MPI_Ireduce_scatter, in, out, counts, type, op,
		 MPI_COMM_WORLD);
	want_sum(0, job_rank + 1, 0);
	EACH_WAY(MPI_Scan, MPI_Iscan, in, out, n, type, op, MPI_COMM_WORLD);
	want_sum(0, job_rank, 0);
	EACH_WAY(MPI_Exscan, MPI_Iexscan, in, out, n, type, op, MPI_COMM_WORLD);
	/* without communication */
	fill();
	for (int i = 0; i < N && type == MPI_INT; i++)
		want[i] = number(job_rank, i) - 1;
	look("MPI_Reduce_local_c", MPI_Reduce_local_c(in, out, n, type, op));
	want_nothing();
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void setup(MPI_Count how_many, MPI_Datatype of, MPI_Op by)
{
	n = how_many;
	type = of;
	op = by;
	for (int i = 0; i < RANKS; i++) {
		counts[i] = n;
		types[i] = type;
		at[i] = FAR + (MPI_Aint)i * GAP;
		bytes_at[i] = at[i] * (MPI_Aint)sizeof(int);
	}
	/* what has no size is nowhere */
	far_in = type == MPI_INT ? (int *)((uintptr_t)in - sizeof(int) * (uintptr_t)FAR) : in;
	far_out = type == MPI_INT ? (int *)((uintptr_t)out - sizeof(int) * (uintptr_t)FAR) : out;
	want_nothing();
}

static void all_of_them(void)
{
	from_and_to_a_root(0);
	from_and_to_a_root(job_size - 1);
	from_all_to_all();
	between_neighbours();
	reductions();
}

static void a_few_ints_far_away(void)
{
	setup(N, MPI_INT, MPI_SUM);
	all_of_them();
}

static void more_than_an_int_can_count(void)
{
	MPI_Datatype empty;
	MPI_Op nothing;

	MPI_Type_contiguous(0, MPI_INT, &empty);
	MPI_Type_commit(&empty);
	MPI_Op_create_c(add_nothing, 1, &nothing);
	setup(MANY, empty, nothing);
	all_of_them();
	MPI_Op_free(&nothing);
	MPI_Type_free(&empty);
}

static void a_function_with_an_int_is_called_in_parts(void)
{
	MPI_Datatype empty;
	MPI_Op parts;

	MPI_Type_contiguous(0, MPI_INT, &empty);
	MPI_Type_commit(&empty);
	MPI_Op_create(add_in_parts, 1, &parts);
	setup(MANY, empty, parts);
	seen = 0;
	all_of_them();
	CHECK(job_size == 1 || seen >= MANY);
	MPI_Op_free(&parts);
	MPI_Type_free(&empty);
}

/* The parts follow each other by the extent of a type with gaps. */
static void the_parts_are_where_their_elements_are(void)
{
	MPI_Datatype empty, gaps;
	MPI_Op parts;

	MPI_Type_contiguous(0, MPI_INT, &empty);
	MPI_Type_create_resized(empty, 0, 16, &gaps);
	MPI_Type_commit(&gaps);
	MPI_Op_create(add_in_parts, 1, &parts);
	seen = 0;
	step = 16;
	next_in = (const char *)in;
	next_inout = (const char *)out;
	CHECK_EQUAL(MPI_Reduce_local_c(in, out, 2 * MANY, gaps, parts), MPI_SUCCESS);
	CHECK(seen == 2 * MANY);
	CHECK((uintptr_t)next_in - (uintptr_t)in == 32 * (uintptr_t)MANY);
	next_in = next_inout = NULL;
	MPI_Op_free(&parts);
	MPI_Type_free(&gaps);
	MPI_Type_free(&empty);
}

int main(int argc, char **argv)
{
	int periodic = 1;

	job_start(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Cart_create(MPI_COMM_WORLD, 1, &job_size, &periodic, 0, &ring);
	CASE(a_few_ints_far_away);
	CASE(more_than_an_int_can_count);
	CASE(a_function_with_an_int_is_called_in_parts);
	CASE(the_parts_are_where_their_elements_are);
	MPI_Comm_free(&ring);
	return job_end();
}
