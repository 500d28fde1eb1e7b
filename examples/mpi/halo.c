/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Poisson's equation on the unit square by conjugate gradients. The grid is divided among the
 * ranks in both directions; before each product with the matrix they exchange the values at
 * their common borders. Its right-hand side is chosen so that the solution is known, x(1 - x)y(1
 * - y), which the differences on a grid describe without an error: what comes out is compared
 * with it. Compile and run it with: mpicc -O2 -o halo halo.c -lm && mpiexec -n 4 ./halo 200
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { UP, DOWN, LEFT, RIGHT, SIDES };

/* This rank's part of the grid; its fields have a frame one wide for the neighbours' values. */
static int points;           /* of the whole grid, in each direction */
static int rows, columns;    /* of this part */
static int first[2];         /* its first row and column in the whole grid */
static int neighbour[SIDES]; /* MPI_PROC_NULL at the edge of the square */
static MPI_Comm grid;
static MPI_Datatype column;

static size_t at(int row, int col)
{
	return (size_t)(row + 1) * (size_t)(columns + 2) + (size_t)(col + 1);
}

/* Of `points` in a row, how many the process at `place` of `places` has, and which is the first. */
static int share(int place, int places, int *begin)
{
	*begin = (int)((long)points * place / places);
	return (int)((long)points * (place + 1) / places) - *begin;
}

static void divide(void)
{
	int dims[2] = { 0, 0 }, periods[2] = { 0, 0 }, place[2], ranks, rank;

	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Dims_create(ranks, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
	MPI_Comm_rank(grid, &rank);
	MPI_Cart_coords(grid, rank, 2, place);
	MPI_Cart_shift(grid, 0, 1, &neighbour[UP], &neighbour[DOWN]);
	MPI_Cart_shift(grid, 1, 1, &neighbour[LEFT], &neighbour[RIGHT]);
	rows = share(place[0], dims[0], &first[0]);
	columns = share(place[1], dims[1], &first[1]);
	MPI_Type_vector(rows, 1, columns + 2, MPI_DOUBLE, &column);
	MPI_Type_commit(&column);
}

static double *new_field(void)
{
	double *field = calloc((size_t)(rows + 2) * (size_t)(columns + 2), sizeof(*field));

	if (!field) {
		fprintf(stderr, "halo: out of memory for %d x %d points\n", rows, columns);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return field;
}

/* Each message carries the side it is sent from as its tag: with two ranks in a direction both
 * borders may be with the same neighbour. */
static void exchange(double *f)
{
	MPI_Request request[2 * SIDES];

	MPI_Irecv(&f[at(-1, 0)], columns, MPI_DOUBLE, neighbour[UP], DOWN, grid, &request[0]);
	MPI_Irecv(&f[at(rows, 0)], columns, MPI_DOUBLE, neighbour[DOWN], UP, grid, &request[1]);
	MPI_Irecv(&f[at(0, -1)], 1, column, neighbour[LEFT], RIGHT, grid, &request[2]);
	MPI_Irecv(&f[at(0, columns)], 1, column, neighbour[RIGHT], LEFT, grid, &request[3]);
	MPI_Isend(&f[at(0, 0)], columns, MPI_DOUBLE, neighbour[UP], UP, grid, &request[4]);
	MPI_Isend(&f[at(rows - 1, 0)], columns, MPI_DOUBLE, neighbour[DOWN], DOWN, grid,
		  &request[5]);
	MPI_Isend(&f[at(0, 0)], 1, column, neighbour[LEFT], LEFT, grid, &request[6]);
	MPI_Isend(&f[at(0, columns - 1)], 1, column, neighbour[RIGHT], RIGHT, grid, &request[7]);
	MPI_Waitall(2 * SIDES, request, MPI_STATUSES_IGNORE);
}

/* The five-point formula for minus the second derivatives, times the square of the grid's width. */
static void apply(const double *f, double *to)
{
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < columns; c++)
			to[at(r, c)] = 4 * f[at(r, c)] - f[at(r - 1, c)] - f[at(r + 1, c)] -
				       f[at(r, c - 1)] - f[at(r, c + 1)];
}

static double dot(const double *a, const double *b)
{
	double part = 0, sum;

	for (int r = 0; r < rows; r++)
		for (int c = 0; c < columns; c++)
			part += a[at(r, c)] * b[at(r, c)];
	MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, grid);
	return sum;
}

/* to = a + factor * b */
static void add(double *to, const double *a, double factor, const double *b)
{
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < columns; c++)
			to[at(r, c)] = a[at(r, c)] + factor * b[at(r, c)];
}

/* Both factors of the solution and of the right-hand side have this form. */
static double bump(int index)
{
	double x = (index + 1.0) / (points + 1.0);

	return x * (1 - x);
}

static void right_hand_side(double *to)
{
	double square = 1 / ((points + 1.0) * (points + 1.0));

	for (int r = 0; r < rows; r++)
		for (int c = 0; c < columns; c++)
			to[at(r, c)] = 2 * square * (bump(first[0] + r) + bump(first[1] + c));
}

/* `residual` holds the right-hand side. The number of steps taken. */
static int solve(double *solution, double *residual)
{
	double *direction = new_field(), *product = new_field();
	double now = dot(residual, residual), end = now * 1e-24, last;
	int step = 0;

	add(direction, residual, 0, residual);
	while (now > end && step < 10 * points) {
		exchange(direction);
		apply(direction, product);
		last = now / dot(direction, product);
		add(solution, solution, last, direction);
		add(residual, residual, -last, product);
		last = now;
		now = dot(residual, residual);
		add(direction, residual, now / last, direction);
		step++;
	}
	free(direction);
	free(product);
	return step;
}

static double largest_error(const double *solution)
{
	double part = 0, largest;

	for (int r = 0; r < rows; r++)
		for (int c = 0; c < columns; c++)
			part = fmax(part, fabs(solution[at(r, c)] -
					       bump(first[0] + r) * bump(first[1] + c)));
	MPI_Allreduce(&part, &largest, 1, MPI_DOUBLE, MPI_MAX, grid);
	return largest;
}

int main(int argc, char **argv)
{
	double *solution, *residual, error, start;
	int rank, ranks, steps;

	MPI_Init(&argc, &argv);
	points = argc > 1 ? atoi(argv[1]) : 200;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (points < ranks || points > 20000) {
		fputs("usage: mpiexec -n RANKS halo [POINTS], RANKS to 20000\n", stderr);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	divide();
	solution = new_field();
	residual = new_field();
	right_hand_side(residual);
	start = MPI_Wtime();
	steps = solve(solution, residual);
	error = largest_error(solution);
	MPI_Comm_rank(grid, &rank);
	if (!rank)
		printf("%d x %d points on %d ranks: %d steps, %.3f s, largest error %.1e: %s\n",
		       points, points, ranks, steps, MPI_Wtime() - start, error,
		       error < 1e-10 ? "right" : "WRONG");
	free(solution);
	free(residual);
	MPI_Type_free(&column);
	MPI_Comm_free(&grid);
	MPI_Finalize();
	return error >= 1e-10;
}
