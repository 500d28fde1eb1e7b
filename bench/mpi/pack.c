/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How fast an MPI packs and unpacks typical layouts, in GB/s of packed data, and beside them
 * memcpy of as many bytes. One process; the same source for every MPI.
 *
 * Usage: pack LINE-FILE MIN-MS REPEAT DOUBLES...
 */
#include <stdlib.h>
#include <string.h>

#include "../ptlperf/clock.h"
#include "measure.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* ---- layouts: each makes a type and says how many of it are packed --------------------------- */

/* `n` doubles, every second one. */
static MPI_Datatype strided(int n, int *count)
{
	MPI_Datatype t;

	MPI_Type_vector(n, 1, 2, MPI_DOUBLE, &t);
	*count = 1;
	return t;
}

/* Blocks of 64 bytes, half of the memory. */
static MPI_Datatype blocks(int n, int *count)
{
	MPI_Datatype t;

	MPI_Type_vector(n / 8, 8, 16, MPI_DOUBLE, &t);
	*count = 1;
	return t;
}

static int side(int n)
{
	int k = 1;

	while ((k + 1) * (k + 1) <= n)
		k++;
	return k;
}

/* A column of a square matrix, as many times as there are columns: the packed matrix is
 * transposed. */
static MPI_Datatype transposed(int n, int *count)
{
	MPI_Datatype column, t;
	int k = side(n);

	MPI_Type_vector(k, 1, k, MPI_DOUBLE, &column);
	MPI_Type_create_resized(column, 0, sizeof(double), &t);
	MPI_Type_free(&column);
	*count = k;
	return t;
}

/* One column of a matrix with rows of 8 KiB: every double on a page of its own or shared by two. */
static MPI_Datatype column(int n, int *count)
{
	MPI_Datatype t;

	MPI_Type_vector(n / 8, 1, 1024, MPI_DOUBLE, &t);
	*count = 1;
	return t;
}

/* Doubles at irregular places, in order, every second or so. */
static MPI_Datatype indexed(int n, int *count)
{
	int *at = malloc((size_t)n * sizeof(*at)), place = 0;
	unsigned state = 1;
	MPI_Datatype t;

	for (int i = 0; i < n; i++) {
		at[i] = place;
		state = state * 1664525u + 1013904223u;
		place += 1 + (int)(state >> 30);
	}
	MPI_Type_create_indexed_block(n, 1, at, MPI_DOUBLE, &t);
	free(at);
	*count = 1;
	return t;
}

/* Blocks of 1 to 8 doubles. */
static MPI_Datatype ragged(int n, int *count)
{
	int *at = malloc((size_t)n * sizeof(*at)), *length = malloc((size_t)n * sizeof(*length));
	int place = 0, blocks = 0;
	unsigned state = 1;
	MPI_Datatype t;

	for (int left = n; left > 0; left -= length[blocks++]) {
		state = state * 1664525u + 1013904223u;
		length[blocks] = 1 + (int)(state >> 29);
		if (length[blocks] > left)
			length[blocks] = left;
		at[blocks] = place;
		place += length[blocks] + 1 + (int)(state >> 20 & 3);
	}
	MPI_Type_indexed(blocks, length, at, MPI_DOUBLE, &t);
	free(at);
	free(length);
	*count = 1;
	return t;
}

struct particle {
	double position[3];
	int kind;
	double mass;
	char flag;
};

/* An array of a C struct with gaps. */
static MPI_Datatype structs(int n, int *count)
{
	int length[] = { 3, 1, 1, 1 };
	MPI_Aint at[] = { 0, 24, 32, 40 };
	MPI_Datatype types[] = { MPI_DOUBLE, MPI_INT, MPI_DOUBLE, MPI_CHAR }, raw, t;

	MPI_Type_create_struct(4, length, at, types, &raw);
	MPI_Type_create_resized(raw, 0, sizeof(struct particle), &t);
	MPI_Type_free(&raw);
	*count = n / 5;
	return t;
}

/* The inner part of a cube, a layer of one element left out everywhere. */
static MPI_Datatype cube(int n, int *count)
{
	int k = 1, size[3], part[3], start[3] = { 1, 1, 1 };
	MPI_Datatype t;

	while ((k + 1) * (k + 1) * (k + 1) <= n)
		k++;
	for (int i = 0; i < 3; i++) {
		part[i] = k;
		size[i] = k + 2;
	}
	MPI_Type_create_subarray(3, size, part, start, MPI_ORDER_C, MPI_DOUBLE, &t);
	*count = 1;
	return t;
}

/* The face of a cube that lies across all rows: one double of each. */
static MPI_Datatype face(int n, int *count)
{
	int k = side(n / 8), size[3] = { k, k, 8 }, part[3] = { k, k, 1 }, start[3] = { 0, 0, 3 };
	MPI_Datatype t;

	MPI_Type_create_subarray(3, size, part, start, MPI_ORDER_C, MPI_DOUBLE, &t);
	*count = 1;
	return t;
}

static MPI_Datatype contiguous(int n, int *count)
{
	*count = 1;
	MPI_Datatype t;

	MPI_Type_contiguous(n, MPI_DOUBLE, &t);
	return t;
}

static const struct {
	const char *name;
	MPI_Datatype (*make)(int n, int *count);
} layouts[] = {
	{ "contiguous", contiguous },
	{ "vector of doubles", strided },
	{ "vector of 64 B blocks", blocks },
	{ "transposed matrix", transposed },
	{ "one column", column },
	{ "indexed doubles", indexed },
	{ "indexed 1..8 doubles", ragged },
	{ "array of structs", structs },
	{ "inside of a cube", cube },
	{ "face of a cube", face },
};

/* ---- measuring ------------------------------------------------------------------------------- */

enum { AT_LEAST = 64 << 10 }; /* bytes in a sample */

struct job {
	MPI_Datatype type;
	int count, bytes, room; /* what is packed, and what MPI_Pack wants for it */
	int times;              /* in a sample: the timer is too coarse for a short one */
	char *memory, *packed;
	void (*what)(const struct job *j);
};

static void pack(const struct job *j)
{
	int position = 0;

	MPI_Pack(j->memory, j->count, j->type, j->packed, j->room, &position, MPI_COMM_SELF);
}

static void unpack(const struct job *j)
{
	int position = 0;

	MPI_Unpack(j->packed, j->room, &position, j->memory, j->count, j->type, MPI_COMM_SELF);
}

static void copy(const struct job *j)
{
	memcpy(j->packed, j->memory, (size_t)j->bytes);
	__asm__ volatile("" ::: "memory"); /* or only the last copy need be made */
}

static void run(void *arg, int count, uint64_t *ticks)
{
	struct job *j = arg;
	uint64_t last = perf_now(), now;

	for (int i = 0; i < count; i++) {
		for (int t = j->times; t; t--)
			j->what(j);
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

static void rate(struct job *j, void (*what)(const struct job *j), const char *test,
		 const char *layout)
{
	struct perf_stats s;
	double bytes;

	j->what = what;
	j->times = 1 + AT_LEAST / j->bytes;
	bytes = (double)j->bytes * j->times;
	s = bench_measure(run, j, BENCH_EACH);
	bench_print(test, layout, j->bytes, "GB/s", bytes / s.median, bytes / s.p99, bytes / s.min);
}

/* Buffers for a type, all of them touched. */
static void start(struct job *j)
{
	MPI_Aint lb, extent, true_lb, true_extent;
	size_t room;
	int size;

	MPI_Type_commit(&j->type);
	MPI_Type_get_extent(j->type, &lb, &extent);
	MPI_Type_get_true_extent(j->type, &true_lb, &true_extent);
	MPI_Type_size(j->type, &size);
	MPI_Pack_size(j->count, j->type, MPI_COMM_SELF, &j->room);
	j->bytes = size * j->count;
	room = (size_t)(true_lb + true_extent + extent * (j->count - 1));
	j->memory = malloc(room);
	j->packed = malloc((size_t)j->room);
	if (!j->memory || !j->packed)
		bench_fail("out of memory for %zu bytes and %d packed ones", room, j->room);
	memset(j->memory, 1, room);
	memset(j->packed, 2, (size_t)j->room);
}

static void end(struct job *j)
{
	free(j->memory);
	free(j->packed);
	MPI_Type_free(&j->type);
}

static void measure(size_t layout, int doubles)
{
	struct job j = { 0 };

	j.type = layouts[layout].make(doubles, &j.count);
	start(&j);
	if (layouts[layout].make == contiguous)
		rate(&j, copy, "pack", "memcpy");
	rate(&j, pack, "pack", layouts[layout].name);
	rate(&j, unpack, "unpack", layouts[layout].name);
	end(&j);
}

int main(int argc, char **argv)
{
	char **arg = bench_start(&argc, &argv, "DOUBLES...");

	if (bench_ranks != 1)
		bench_fail("needs one rank");
	for (; *arg; arg++) {
		int doubles = atoi(*arg);

		if (doubles < 64 || doubles > 1 << 24)
			bench_fail("DOUBLES is 64 to %d, not %s", 1 << 24, *arg);
		for (size_t i = 0; i < COUNT_OF(layouts); i++)
			measure(i, doubles);
	}
	bench_end();
	return 0;
}
