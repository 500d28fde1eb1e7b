/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Heat on a ring that is divided among the ranks: each writes its border cells into its
 * neighbours' memory, with a short message behind as the notice. Start it with
 * `mpiexec -n 4 rwapi_halo`; the same program runs on any transport.
 */
#include <rwapi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 500, ROW = CELLS + 2, STEPS = 300 }; /* a cell of each neighbour at either end */
enum { OF_LEFT, OF_RIGHT, NOTICE };                 /* kinds of messages */

static rwapi_net_t address[2]; /* of the neighbours' rows */
static int notices[2];         /* for the next even step, and the next odd one */

/* Wait for a message and file it: a neighbour may be ahead, so any kind may come at any time. */
static void take_in(void)
{
	rwapi_small_t small;
	int node;

	if (rwapi_wait(-1) != 1 || rwapi_receive(&node, &small) != 1)
		exit(1);
	if (small.word[1] == NOTICE)
		notices[small.word[0] % 2]++;
	else
		address[small.word[1]] = small.word[0];
}

static void heat(double *to, const double *from, int cells)
{
	for (int i = 1; i <= cells; i++)
		to[i] = from[i] + 0.25 * (from[i - 1] - 2 * from[i] + from[i + 1]);
}

/* Write one cell of this rank to a cell of another, and tell. */
static void give(int node, rwapi_net_t local, rwapi_net_t remote, int step)
{
	rwapi_small_t notice = { .word = { (uint64_t)step, NOTICE } };
	rwapi_sid_t sid = rwapi_write(node, local, remote, sizeof(double));

	if (sid < 0 || rwapi_send(node, notice) < 0)
		exit(1);
	while (rwapi_issent(sid) == 0)
		;
}

/* The same on one process, to compare. */
static void alone(double *whole, int cells)
{
	double *row[2] = { whole, calloc((size_t)cells + 2, sizeof(double)) };

	for (int step = 0; step < STEPS; step++) {
		row[0][0] = row[0][cells];
		row[0][cells + 1] = row[0][1];
		heat(row[1], row[0], cells);
		for (int i = 1; i <= cells; i++)
			row[0][i] = row[1][i];
	}
	free(row[1]);
}

int main(int argc, char **argv)
{
	int rank, size, left, right, wrong = 0;
	double *row[2], *whole;
	rwapi_net_t mine;

	if (rwapi_init(argc, argv))
		return 1;
	rank = rwapi_rank();
	size = rwapi_size();
	left = (rank + size - 1) % size;
	right = (rank + 1) % size;
	row[0] = rwapi_alloc(2 * ROW * sizeof(double), &mine);
	whole = calloc((size_t)size * CELLS + 2, sizeof(double));
	if (!row[0] || !whole) {
		free(whole);
		return 1;
	}
	row[1] = row[0] + ROW;
	for (int i = 1; i <= size * CELLS; i++)
		whole[i] = i % 97;
	for (int i = 1; i <= CELLS; i++)
		row[0][i] = whole[rank * CELLS + i];
	/* each tells both neighbours its address, and which side of theirs it is on */
	rwapi_send(left, (rwapi_small_t){ .word = { mine, OF_RIGHT } });
	rwapi_send(right, (rwapi_small_t){ .word = { mine, OF_LEFT } });
	while (!address[OF_LEFT] || !address[OF_RIGHT])
		take_in();
	/* rows take turns: a neighbour may be a step ahead, and writes to the other row then */
	for (int step = 0; step < STEPS; step++) {
		rwapi_net_t now = step % 2 * (ROW * sizeof(double)), cell = sizeof(double);

		give(left, mine + now + cell, address[OF_LEFT] + now + (CELLS + 1) * cell, step);
		give(right, mine + now + CELLS * cell, address[OF_RIGHT] + now, step);
		while (notices[step % 2] < 2)
			take_in();
		notices[step % 2] = 0;
		heat(row[!(step % 2)], row[step % 2], CELLS);
	}
	alone(whole, size * CELLS);
	for (int i = 1; i <= CELLS; i++)
		wrong += row[STEPS % 2][i] != whole[rank * CELLS + i];
	if (wrong)
		fprintf(stderr, "rank %d: %d of %d cells are wrong\n", rank, wrong, CELLS);
	else if (rank == 0)
		printf("%d steps on %d ranks: as on one\n", STEPS, size);
	free(whole);
	return rwapi_finalize() != RWAPI_OK || wrong;
}
