/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Calls of collectives that look wrong and are not, by what arrives; args.py has their return
 * codes. Addresses as displacements, with MPI_BOTTOM, are right. Programs in use have the rest: no
 * datatype where there are no elements, a rank's own data where they are to go, and pointers
 * without a value for buffers in which nothing is.
 *
 * Each round has another form of each call: blocking, non-blocking, persistent.
 *
 * "tame" leaves out what MPICH 4.0 does not let pass: most of it, and MPI_BOTTOM for both buffers.
 */
#include "paths.h"

enum { N = 3, MOST = 16 }; /* ints in a block; ranks */

static int in[MOST * N], out[MOST * N];

/* The form with large counts. */
#define LARGE(name, small, ...)                                                                    \
	(way == WAY_BLOCKING ? MPI_##name##_c(__VA_ARGS__)                                         \
	 : way == WAY_NON_BLOCKING                                                                 \
		 ? way_wait(MPI_I##small##_c(__VA_ARGS__, &way_request))                           \
		 : way_start(MPI_##name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &way_request)))

#define DO(call)                                                                                   \
	do {                                                                                       \
		int code_ = call;                                                                  \
                                                                                                   \
		if (code_)                                                                         \
			return tap_wrong("%s, form %d, returned %d", #call, way, code_);           \
	} while (0)

static void fill(void)
{
	for (int i = 0; i < MOST * N; i++) {
		in[i] = (int)value_of(tap_rank, i);
		out[i] = -1;
	}
}

/* In `at` is what rank `from` has at `first` in its `in`. */
static bool right(const int *at, int from, int first, int n)
{
	for (int i = 0; i < n; i++)
		if (at[i] != (int)value_of(from, first + i))
			return false;
	return true;
}

/* Block i of `out` came from rank i, the block number `block` there. */
static const char *blocks(const char *what, int block)
{
	for (int i = 0; i < tap_size; i++)
		if (!right(out + i * N, i, block * N, N))
			return tap_wrong("%s, form %d: the block of rank %d is wrong", what, way,
					 i);
	fill();
	return NULL;
}

#define BLOCKS(what, block)                                                                        \
	do {                                                                                       \
		const char *wrong_ = blocks(what, block);                                          \
                                                                                                   \
		if (wrong_)                                                                        \
			return wrong_;                                                             \
	} while (0)

/* ---- addresses as displacements -------------------------------------------------------------- */

static MPI_Comm ring;
static int three[MOST], root;
static MPI_Count ints_c[MOST], bytes_c[MOST];
static MPI_Aint at_in[MOST], at_out[MOST];
static MPI_Datatype types[MOST];

/* Before and after this rank in a ring. */
static const char *neighbours(const char *what)
{
	const int from[2] = { (tap_rank + tap_size - 1) % tap_size, (tap_rank + 1) % tap_size };

	for (int i = 0; i < 2; i++)
		if (!right(out + i * N, from[i], (1 - i) * N, N))
			return tap_wrong("%s, form %d: block %d is wrong", what, way, i);
	fill();
	return NULL;
}

static const char *with_neighbours(int round)
{
	const char *wrong;

	way = round % WAYS;
	fill();
	DO(MPI_Neighbor_alltoallw(MPI_BOTTOM, three, at_in, types, MPI_BOTTOM, three, at_out, types,
				  ring));
	wrong = neighbours("MPI_Neighbor_alltoallw");
	if (wrong)
		return wrong;
#if MPI_VERSION >= 4
	DO(LARGE(Neighbor_alltoallw, neighbor_alltoallw, MPI_BOTTOM, ints_c, at_in, types,
		 MPI_BOTTOM, ints_c, at_out, types, ring));
	wrong = neighbours("MPI_Neighbor_alltoallw_c");
	if (wrong)
		return wrong;
	DO(LARGE(Neighbor_alltoallv, neighbor_alltoallv, MPI_BOTTOM, bytes_c, at_in, MPI_BYTE,
		 MPI_BOTTOM, bytes_c, at_out, MPI_BYTE, ring));
	wrong = neighbours("MPI_Neighbor_alltoallv_c");
	if (wrong)
		return wrong;
	DO(LARGE(Neighbor_allgatherv, neighbor_allgatherv, in + N, bytes_c[0], MPI_BYTE, MPI_BOTTOM,
		 bytes_c, at_out, MPI_BYTE, ring));
	for (int i = 0; i < 2; i++)
		if (!right(out + i * N, (tap_rank + (i ? 1 : tap_size - 1)) % tap_size, N, N))
			return tap_wrong("MPI_Neighbor_allgatherv_c, form %d", way);
#endif
	return NULL;
}

#if MPI_VERSION >= 4
static const char *with_all(int round)
{
	way = round % WAYS;
	root = round % tap_size;
	fill();
	DO(LARGE(Alltoallw, alltoallw, MPI_BOTTOM, ints_c, at_in, types, MPI_BOTTOM, ints_c, at_out,
		 types, MPI_COMM_WORLD));
	BLOCKS("MPI_Alltoallw_c", tap_rank);
	DO(LARGE(Alltoallv, alltoallv, MPI_BOTTOM, bytes_c, at_in, MPI_BYTE, MPI_BOTTOM, bytes_c,
		 at_out, MPI_BYTE, MPI_COMM_WORLD));
	BLOCKS("MPI_Alltoallv_c", tap_rank);
	memcpy(out, in, sizeof(out));
	DO(LARGE(Alltoallw, alltoallw, MPI_IN_PLACE, NULL, NULL, NULL, MPI_BOTTOM, ints_c, at_out,
		 types, MPI_COMM_WORLD));
	BLOCKS("MPI_Alltoallw_c in place", tap_rank);
	DO(LARGE(Allgatherv, allgatherv, in, bytes_c[0], MPI_BYTE, MPI_BOTTOM, bytes_c, at_out,
		 MPI_BYTE, MPI_COMM_WORLD));
	BLOCKS("MPI_Allgatherv_c", 0);
	DO(LARGE(Gatherv, gatherv, in, bytes_c[0], MPI_BYTE, MPI_BOTTOM, bytes_c, at_out, MPI_BYTE,
		 root, MPI_COMM_WORLD));
	if (tap_rank == root)
		BLOCKS("MPI_Gatherv_c", 0);
	DO(LARGE(Scatterv, scatterv, MPI_BOTTOM, bytes_c, at_in, MPI_BYTE, out, bytes_c[0],
		 MPI_BYTE, root, MPI_COMM_WORLD));
	return right(out, root, tap_rank * N, N) ? NULL : tap_wrong("MPI_Scatterv_c, form %d", way);
}
#endif

/* ---- no datatype for no elements ------------------------------------------------------------- */

/* To the next rank only. */
static const char *no_types(int round)
{
	const int to = (tap_rank + 1) % tap_size, from = (tap_rank + tap_size - 1) % tap_size;
	int to_count[MOST] = { 0 }, from_count[MOST] = { 0 }, zero[MOST] = { 0 };
	MPI_Datatype to_type[MOST], from_type[MOST];
	MPI_Aint zero_a[MOST] = { 0 };

	way = round % WAYS;
	fill();
	for (int i = 0; i < tap_size; i++)
		to_type[i] = from_type[i] = MPI_DATATYPE_NULL;
	to_count[to] = from_count[from] = N;
	to_type[to] = from_type[from] = MPI_INT;
	DO(MPI_Alltoallw(in, to_count, zero, to_type, out, from_count, zero, from_type,
			 MPI_COMM_WORLD));
	if (!right(out, from, 0, N))
		return tap_wrong("MPI_Alltoallw, form %d", way);
	fill();
	/* to the one after, from the one before */
	DO(MPI_Neighbor_alltoallw(
		in, (int[]){ 0, N }, zero_a, (MPI_Datatype[]){ MPI_DATATYPE_NULL, MPI_INT }, out,
		(int[]){ N, 0 }, zero_a, (MPI_Datatype[]){ MPI_INT, MPI_DATATYPE_NULL }, ring));
	return right(out, from, 0, N) ? NULL : tap_wrong("MPI_Neighbor_alltoallw, form %d", way);
}

/* ---- a rank's own data where they are to go -------------------------------------------------- */

/* Without MPI_IN_PLACE: some ranks, or all, have theirs there; of several datatypes, too. */
static const char *in_its_place(int round)
{
	const bool here = round / WAYS % 2 || tap_rank % 2;
	int *block = here ? out + tap_rank * N : in;
	int displs[MOST];
	MPI_Datatype all;

	way = round % WAYS;
	root = round % tap_size;
	fill();
	for (int i = 0; i < tap_size; i++)
		displs[i] = i * N;
	MPI_Type_contiguous(N, MPI_INT, &all);
	MPI_Type_commit(&all);

#define OWN memcpy(block, in, sizeof(int) * N)
	OWN;
	DO(MPI_Allgather(block, N, MPI_INT, out, N, MPI_INT, MPI_COMM_WORLD));
	BLOCKS("MPI_Allgather", 0);
	OWN;
	DO(MPI_Allgather(block, 1, all, out, N, MPI_INT, MPI_COMM_WORLD));
	BLOCKS("MPI_Allgather of another datatype", 0);
	OWN;
	DO(MPI_Allgatherv(block, N, MPI_INT, out, three, displs, MPI_INT, MPI_COMM_WORLD));
	BLOCKS("MPI_Allgatherv", 0);
	block = tap_rank == root ? out + tap_rank * N : in;
	OWN;
	DO(MPI_Gather(block, N, MPI_INT, out, N, MPI_INT, root, MPI_COMM_WORLD));
	if (tap_rank == root)
		BLOCKS("MPI_Gather", 0);
	fill();
	OWN;
	DO(MPI_Gatherv(block, N, MPI_INT, out, three, displs, MPI_INT, root, MPI_COMM_WORLD));
	if (tap_rank == root)
		BLOCKS("MPI_Gatherv", 0);
	fill();
	block = tap_rank == root ? in + tap_rank * N : out;
	DO(MPI_Scatter(in, N, MPI_INT, block, N, MPI_INT, root, MPI_COMM_WORLD));
	if (!right(block, root, tap_rank * N, N))
		return tap_wrong("MPI_Scatter, form %d", way);
	fill();
	DO(MPI_Scatterv(in, three, displs, MPI_INT, block, N, MPI_INT, root, MPI_COMM_WORLD));
	if (!right(block, root, tap_rank * N, N))
		return tap_wrong("MPI_Scatterv, form %d", way);
	MPI_Type_free(&all);
	return NULL;
}

/* ---- buffers in which nothing is ------------------------------------------------------------- */

/* Of some ranks the pointer happens to be MPI_IN_PLACE; in an intercommunicator, too, which has
 * none. */
static const char *nothing(int round)
{
	int zero[MOST] = { 0 };
	MPI_Datatype none[MOST];
	void *b = tap_rank % 2 ? (void *)(uintptr_t)1 : NULL;
	void *other = round / WAYS % 2 ? b : in;

	way = round % WAYS;
	for (int i = 0; i < MOST; i++)
		none[i] = MPI_DATATYPE_NULL;
	for (int i = 0; i < cm_count; i++) {
		MPI_Comm c = cms[i].comm;
		int r = !cms[i].inter      ? round % cms[i].n
			: cms[i].here > 0  ? 0
			: cms[i].rank == 0 ? MPI_ROOT
					   : MPI_PROC_NULL;

		DO(MPI_Bcast(b, 0, MPI_INT, r, c));
		DO(MPI_Gather(other, 0, MPI_INT, b, 0, MPI_INT, r, c));
		DO(MPI_Gatherv(b, 0, MPI_INT, other, zero, zero, MPI_INT, r, c));
		DO(MPI_Scatter(b, 0, MPI_INT, other, 0, MPI_INT, r, c));
		DO(MPI_Scatterv(other, zero, zero, MPI_INT, b, 0, MPI_INT, r, c));
		DO(MPI_Allgather(b, 0, MPI_INT, other, 0, MPI_INT, c));
		DO(MPI_Allgatherv(other, 0, MPI_INT, b, zero, zero, MPI_INT, c));
		DO(MPI_Alltoall(b, 0, MPI_INT, other, 0, MPI_INT, c));
		DO(MPI_Alltoallv(other, zero, zero, MPI_INT, b, zero, zero, MPI_INT, c));
		DO(MPI_Alltoallw(b, zero, zero, none, other, zero, zero, none, c));
		DO(MPI_Reduce(b, other, 0, MPI_INT, MPI_SUM, r, c));
		DO(MPI_Allreduce(other, b, 0, MPI_INT, MPI_SUM, c));
		DO(MPI_Reduce_scatter_block(b, other, 0, MPI_INT, MPI_SUM, c));
		DO(MPI_Reduce_scatter(other, b, zero, MPI_INT, MPI_SUM, c));
		if (cms[i].inter)
			continue;
		DO(MPI_Scan(b, other, 0, MPI_INT, MPI_SUM, c));
		DO(MPI_Exscan(other, b, 0, MPI_INT, MPI_SUM, c));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const int yes = 1;

	tap_start(argc, argv, 2 * WAYS);
	MPI_Cart_create(MPI_COMM_WORLD, 1, &tap_size, &yes, 0, &ring);
	cms_make();
	for (int i = 0; i < cm_count; i++)
		MPI_Comm_set_errhandler(cms[i].comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
	for (int i = 0; i < MOST; i++) {
		three[i] = N;
		ints_c[i] = N;
		bytes_c[i] = N * sizeof(int);
		types[i] = MPI_INT;
		MPI_Get_address(in + i * N, &at_in[i]);
		MPI_Get_address(out + i * N, &at_out[i]);
	}
	tap_case("addresses as displacements, with neighbours", with_neighbours);
	if (!tap_tame) {
#if MPI_VERSION >= 4
		tap_case("addresses as displacements", with_all);
#endif
		tap_case("no datatype for no elements", no_types);
		tap_case("a rank's own data where they are to go", in_its_place);
		tap_case("buffers in which nothing is", nothing);
	}
	MPI_Comm_free(&ring);
	cms_free();
	return tap_end();
}
