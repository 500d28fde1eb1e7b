/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Neighbourhood collectives, blocking, non-blocking and persistent, in a job: on grids with and
 * without ends, with dimensions of one and two processes, on random graphs and on random
 * directed graphs with edges that are there twice. Every rank knows the whole topology, and so
 * what it must receive.
 */
#include "paths.h"

#define DEGREE 12 /* most neighbours */
#define RANKS  64
#define ROOM   40 /* ints for each block */

/* The pairs of ranks that send to each other. */
static struct {
	MPI_Comm comm;
	bool cart;
	int in[RANKS], out[RANKS];
	int source[RANKS][DEGREE], dest[RANKS][DEGREE];
} t;

static int me;
static int sent[DEGREE * ROOM + ROOM], got[DEGREE * ROOM + ROOM];

/* ---- topologies ------------------------------------------------------------------------------ */

/* Others take the block of the one before for that of the one after where these are one process. */
static void make_cart(void)
{
	int dims[3] = { 0 }, periods[3], ndims = 1 + draw_below(3);

	MPI_Dims_create(tap_size, ndims, dims);
	if (draw_below(2)) { /* the small dimension first */
		int d = dims[0];

		dims[0] = dims[ndims - 1];
		dims[ndims - 1] = d;
	}
	for (int i = 0; i < 3; i++)
		periods[i] = draw_below(2) && !(tap_tame && i < ndims && dims[i] < 3);
	MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &t.comm);
	t.cart = true;
	for (int r = 0; r < tap_size; r++) {
		int at[3], to[3];

		t.in[r] = t.out[r] = 2 * ndims;
		MPI_Cart_coords(t.comm, r, 3, at);
		for (int i = 0; i < 2 * ndims; i++) {
			int d = i / 2, *n = &t.dest[r][i];

			memcpy(to, at, sizeof(to));
			to[d] += i % 2 ? 1 : -1;
			if (!periods[d] && (to[d] < 0 || to[d] >= dims[d]))
				*n = MPI_PROC_NULL;
			else
				MPI_Cart_rank(t.comm, to, n);
			t.source[r][i] = *n;
		}
	}
}

static void link(int a, int b)
{
	/* MPICH 4.0 receives what comes along equal edges in reverse order */
	for (int i = 0; tap_tame && i < t.out[a]; i++)
		if (t.dest[a][i] == b)
			return;
	t.dest[a][t.out[a]++] = b;
	t.source[b][t.in[b]++] = a;
}

static void make_graph(void)
{
	int index[RANKS], edge[RANKS * DEGREE], n = 0;

	for (int i = 0; i < 2 * tap_size; i++) {
		int a = draw_below(tap_size), b = draw_below(tap_size);

		if (a == b || t.out[a] == DEGREE || t.out[b] == DEGREE)
			continue;
		link(a, b);
		link(b, a);
	}
	for (int r = 0; r < tap_size; r++) {
		memcpy(t.source[r], t.dest[r],
		       sizeof(t.dest[r])); /* there is one list of neighbours */
		for (int i = 0; i < t.out[r]; i++)
			edge[n++] = t.dest[r][i];
		index[r] = n;
	}
	MPI_Graph_create(MPI_COMM_WORLD, tap_size, index, edge, 0, &t.comm);
}

static void make_dist_graph(void)
{
	for (int i = 0; i < 3 * tap_size; i++) {
		int a = draw_below(tap_size), b = draw_below(tap_size);

		if (t.out[a] < DEGREE && t.in[b] < DEGREE)
			link(a, b);
	}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, t.in[me], t.source[me], MPI_UNWEIGHTED,
				       t.out[me], t.dest[me], MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
				       &t.comm);
}

static void make(void)
{
	memset(&t, 0, sizeof(t));
	me = tap_rank;
	switch (draw_below(3)) {
	case 0:
		make_cart();
		break;
	case 1:
		make_graph();
		break;
	default:
		make_dist_graph();
	}
}

/* The block of its source that comes in as block i here. */
static int block_of(int i)
{
	int s = t.source[me][i], nth = 0;

	if (t.cart)
		return i ^ 1;
	for (int k = 0; k < i; k++)
		nth += t.source[me][k] == s;
	for (int k = 0; k < t.out[s]; k++)
		if (t.dest[s][k] == me && nth-- == 0)
			return k;
	return -1;
}

/* ---- data ------------------------------------------------------------------------------------ */

static int number(int owner, int block, int i)
{
	return (int)value_of(owner, 1000 * block + i);
}

static void fill(void)
{
	for (int i = 0; i < DEGREE * ROOM + ROOM; i++) {
		sent[i] = number(me, i / ROOM, i % ROOM);
		got[i] = -i;
	}
}

/* Block i is here at `at`: `n` ints that are block `block` of its source; from then on nothing
 * to `end`. */
static const char *look(const char *name, int i, int at, int n, int block, int end)
{
	int s = t.source[me][i];

	if (s == MPI_PROC_NULL)
		n = 0;
	for (int k = 0; at + k < end; k++) {
		int want = k < n ? number(s, block, k) : -(at + k);

		if (got[at + k] != want)
			return tap_wrong("%s, %s: int %d of block %d of %d from %d is %d, not %d",
					 name, t.cart ? "a grid" : "a graph", k, i, n, s,
					 got[at + k], want);
	}
	return NULL;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static const char *allgather(int round)
{
	int n = round % ROOM;
	const char *wrong = NULL;

	MPI_Neighbor_allgather(sent, n, MPI_INT, got, n, MPI_INT, t.comm);
	for (int i = 0; i < t.in[me] && !wrong; i++)
		wrong = look("allgather", i, i * n, n, 0, (i + 1) * n);
	return wrong;
}

static int length(int owner, int block)
{
	return (int)(value_of(owner, -100 - block) % ROOM);
}

static const char *allgatherv(int round)
{
	int counts[DEGREE + 1], displs[DEGREE + 1];
	const char *wrong = NULL;

	(void)round;
	for (int i = 0; i < t.in[me]; i++) {
		int s = t.source[me][i];

		counts[i] = s == MPI_PROC_NULL ? 3 : length(s, 0);
		displs[i] = (t.in[me] - 1 - i) * ROOM;
	}
	MPI_Neighbor_allgatherv(sent, length(me, 0), MPI_INT, got, counts, displs, MPI_INT, t.comm);
	for (int i = 0; i < t.in[me] && !wrong; i++)
		wrong = look("allgatherv", i, displs[i], counts[i], 0, displs[i] + ROOM);
	return wrong;
}

static const char *alltoall(int round)
{
	const char *wrong = NULL;

	(void)round;
	MPI_Neighbor_alltoall(sent, ROOM, MPI_INT, got, ROOM, MPI_INT, t.comm);
	for (int i = 0; i < t.in[me] && !wrong; i++)
		wrong = look("alltoall", i, i * ROOM, ROOM,
			     t.source[me][i] == MPI_PROC_NULL ? 0 : block_of(i), (i + 1) * ROOM);
	return wrong;
}

static const char *alltoallv(int round)
{
	int scounts[DEGREE + 1], sdispls[DEGREE + 1], rcounts[DEGREE + 1], rdispls[DEGREE + 1];
	const char *wrong = NULL;

	(void)round;
	for (int i = 0; i < t.out[me]; i++) {
		scounts[i] = length(me, i);
		sdispls[i] = i * ROOM;
	}
	for (int i = 0; i < t.in[me]; i++) {
		int s = t.source[me][i];

		rcounts[i] = s == MPI_PROC_NULL ? 2 : length(s, block_of(i));
		rdispls[i] = (t.in[me] - 1 - i) * ROOM;
	}
	MPI_Neighbor_alltoallv(sent, scounts, sdispls, MPI_INT, got, rcounts, rdispls, MPI_INT,
			       t.comm);
	for (int i = 0; i < t.in[me] && !wrong; i++)
		wrong = look("alltoallv", i, rdispls[i], rcounts[i],
			     t.source[me][i] == MPI_PROC_NULL ? 0 : block_of(i), rdispls[i] + ROOM);
	return wrong;
}

/* Every second block as one element of a type. */
static const char *alltoallw(int round)
{
	int ones[DEGREE + 1], rooms[DEGREE + 1];
	MPI_Aint sdispls[DEGREE + 1], rdispls[DEGREE + 1];
	MPI_Datatype stypes[DEGREE + 1], rtypes[DEGREE + 1], whole;
	const char *wrong = NULL;

	(void)round;
	if (tap_tame) /* MPICH 4.0 mixes up the types otherwise */
		way = WAY_BLOCKING;
	MPI_Type_contiguous(ROOM, MPI_INT, &whole);
	MPI_Type_commit(&whole);
	for (int i = 0; i <= DEGREE; i++) {
		ones[i] = i % 2 ? 1 : ROOM;
		stypes[i] = i % 2 ? whole : MPI_INT;
		rooms[i] = i % 2 ? ROOM : 1;
		rtypes[i] = i % 2 ? MPI_INT : whole;
		sdispls[i] = i * ROOM * (MPI_Aint)sizeof(int);
		rdispls[i] = sdispls[i];
	}
	MPI_Neighbor_alltoallw(sent, ones, sdispls, stypes, got, rooms, rdispls, rtypes, t.comm);
	for (int i = 0; i < t.in[me] && !wrong; i++)
		wrong = look("alltoallw", i, i * ROOM, ROOM,
			     t.source[me][i] == MPI_PROC_NULL ? 0 : block_of(i), (i + 1) * ROOM);
	MPI_Type_free(&whole);
	return wrong;
}

static const char *(*body)(int round);

static const char *on_some(int round)
{
	const char *wrong;

	make();
	fill();
	ways_draw();
	wrong = body(round);
	MPI_Comm_free(&t.comm);
	return wrong;
}

static void each(const char *name, const char *(*of)(int round))
{
	body = of;
	tap_case(name, on_some);
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 40);
	each("neighbor_allgather", allgather);
	each("neighbor_allgatherv", allgatherv);
	each("neighbor_alltoall", alltoall);
	each("neighbor_alltoallv", alltoallv);
	each("neighbor_alltoallw", alltoallw);
	return tap_end();
}
