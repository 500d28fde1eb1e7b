/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See coll_check.h.
 */
#include "coll_check.h"

#include <stdarg.h>

int tap_rank, tap_size;
bool tap_tame;
static int tap_cases, tap_failed, tap_rounds;
static uint64_t tap_seed = 1, state, round_key;

/* ---- cases ----------------------------------------------------------------------------------- */

void tap_start(int argc, char **argv, int rounds)
{
	int on;

	MPI_Initialized(&on);
	if (!on)
		MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &tap_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &tap_size);
	if (argc > 1)
		tap_seed = strtoull(argv[1], NULL, 10);
	tap_tame = argc > 3 && strcmp(argv[3], "tame") == 0;
	tap_rounds = argc > 2 ? atoi(argv[2]) : rounds;
}

void tap_rounds_set(int rounds)
{
	tap_rounds = rounds;
}

const char *tap_wrong(const char *format, ...)
{
	static char text[400];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return text;
}

/* To rank 0, message by message: collectives are what is tested. */
static int failures(int mine)
{
	int all = mine;

	if (tap_rank != 0) {
		MPI_Send(&mine, 1, MPI_INT, 0, 77, MPI_COMM_WORLD);
		return mine;
	}
	for (int i = 1; i < tap_size; i++) {
		int one;

		MPI_Recv(&one, 1, MPI_INT, i, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		all += one;
	}
	return all;
}

void tap_case(const char *name, const char *(*body)(int round))
{
	int bad = 0, all;
	uint64_t key = tap_seed;

	for (const char *c = name; *c; c++)
		key = mix(key ^ (unsigned char)*c);
	for (int i = 0; i < tap_rounds; i++) {
		const char *wrong;

		state = round_key = mix(key + (uint64_t)i);
		wrong = body(i);
		if (wrong && bad++ < 3) {
			printf("# %s: rank %d, seed %llu, round %d: %s\n", name, tap_rank,
			       (unsigned long long)tap_seed, i, wrong);
			fflush(stdout);
		}
	}
	all = failures(bad);
	tap_cases++;
	if (tap_rank == 0) {
		printf("%sok %d - %s\n", all ? "not " : "", tap_cases, name);
		fflush(stdout);
		tap_failed += all != 0;
	}
}

int tap_end(void)
{
	if (tap_rank == 0)
		printf("1..%d\n", tap_cases);
	MPI_Finalize();
	return tap_failed ? 1 : 0;
}

/* ---- random numbers -------------------------------------------------------------------------- */

uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t draw(void)
{
	state += 0x9e3779b97f4a7c15u;
	return mix(state);
}

int draw_below(int n)
{
	return (int)(draw() % (uint64_t)n);
}

int draw_length(int most)
{
	int dice = draw_below(20);
	int limit = dice < 14 ? 9 : dice < 19 ? most / 50 + 1 : most + 1;

	return draw_below(limit < most + 1 ? limit : most + 1);
}

uint32_t value_of(int owner, long i)
{
	return (uint32_t)mix(round_key ^ mix((uint64_t)owner << 40 ^ (uint64_t)i));
}

/* ---- communicators --------------------------------------------------------------------------- */

struct cm cms[CMS];
int cm_count;

static struct cm *add(MPI_Comm comm, const char *name)
{
	struct cm *c = &cms[cm_count++];
	int inter;

	*c = (struct cm){ .comm = comm, .name = name };
	MPI_Comm_test_inter(comm, &inter);
	c->inter = inter;
	MPI_Comm_rank(comm, &c->rank);
	MPI_Comm_size(comm, &c->n);
	c->remote = c->n;
	if (inter)
		MPI_Comm_remote_size(comm, &c->remote);
	return c;
}

/* All ranks; all in another order, in which those of a node are not next to each other; and if
 * there are two ranks, the first third and the others. */
void cms_make(void)
{
	int third = (tap_size + 2) / 3, lower = tap_rank < third;
	MPI_Comm half, comm;
	struct cm *c;

	cm_count = 0;
	add(MPI_COMM_WORLD, "world");
	MPI_Comm_split(MPI_COMM_WORLD, 0, tap_rank & 1 ? 2 * tap_size - tap_rank : tap_rank, &comm);
	add(comm, "even ones up, odd ones down");
	if (tap_size < 2)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, lower, tap_rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, lower ? third : 0, 5, &comm);
	MPI_Comm_free(&half);
	c = add(comm, "between two groups");
	c->here = lower ? 0 : 1000;
	c->there = lower ? 1000 : 0;
}

void cms_free(void)
{
	for (int i = 1; i < cm_count; i++)
		MPI_Comm_free(&cms[i].comm);
}

struct cm *draw_intra(void)
{
	return &cms[draw_below(2)];
}

struct cm *draw_cm(void)
{
	return &cms[draw_below(cm_count)];
}

struct root draw_root(const struct cm *c)
{
	bool upper = draw_below(2) && c->inter;
	int lower_n = c->here <= c->there ? c->n : c->remote;
	int upper_n = c->here <= c->there ? c->remote : c->n;
	struct root r = { .side_first = upper ? 1000 : 0 };

	r.rank = draw_below(upper ? upper_n : lower_n);
	r.me = c->here == r.side_first && c->rank == r.rank;
	r.other = !c->inter || c->here != r.side_first;
	r.argument = r.other ? r.rank : r.me ? MPI_ROOT : MPI_PROC_NULL;
	return r;
}

/* ---- datatypes ------------------------------------------------------------------------------- */

struct shape shapes[SHAPES] = {
	{ .k = 1, .off = { 0 }, .extent = 1 },
	{ .k = 3, .off = { 0, 1, 2 }, .extent = 3 },
	{ .k = 4, .off = { 0, 1, 3, 4 }, .extent = 7 },
	{ .k = 2, .off = { -3, 1 }, .extent = 6 },
	{ .k = 6, .off = { 5, 3, 4, 0, 1, -1 }, .extent = 8 },
	{ .k = 2, .off = { 2, 0 }, .extent = 3 },
};

void shapes_make(void)
{
	shapes[0].type = MPI_INT;
	for (int i = 1; i < SHAPES; i++) {
		struct shape *s = &shapes[i];
		MPI_Aint displs[6], lb = 0;
		int ones[6];
		MPI_Datatype t;

		for (int j = 0; j < s->k; j++) {
			displs[j] = s->off[j] * (MPI_Aint)sizeof(int);
			ones[j] = 1;
			lb = displs[j] < lb ? displs[j] : lb;
		}
		MPI_Type_create_hindexed(s->k, ones, displs, MPI_INT, &t);
		MPI_Type_create_resized(t, lb, s->extent * (MPI_Aint)sizeof(int), &s->type);
		MPI_Type_free(&t);
		MPI_Type_commit(&s->type);
	}
}

void shapes_free(void)
{
	for (int i = 1; i < SHAPES; i++)
		MPI_Type_free(&shapes[i].type);
}

/* ---- buffers --------------------------------------------------------------------------------- */

struct buf buf_new(const struct shape *s, int first, int last)
{
	struct buf b;
	long low = (long)first * s->extent - 16;
	long high = (long)last * s->extent + 16;

	b.n = (size_t)(high - low);
	b.mem = malloc(b.n * sizeof(int));
	b.want = malloc(b.n * sizeof(int));
	if (!b.mem || !b.want) {
		fprintf(stderr, "no memory for a buffer\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	b.base = b.mem - low;
	for (size_t i = 0; i < b.n; i++)
		b.mem[i] = (int)(0xabc00000u + i);
	return b;
}

static void put(int *base, const struct shape *s, int at, int count, int owner, long first_i)
{
	for (int e = 0; e < count; e++)
		for (int j = 0; j < s->k; j++)
			base[(long)(at + e) * s->extent + s->off[j]] =
				(int)value_of(owner, first_i + (long)e * s->k + j);
}

void buf_fill(struct buf *b, const struct shape *s, int at, int count, int owner, long first_i)
{
	put(b->base, s, at, count, owner, first_i);
}

void buf_keep(struct buf *b)
{
	memcpy(b->want, b->mem, b->n * sizeof(int));
}

void buf_want(struct buf *b, const struct shape *s, int at, int count, int owner, long first_i)
{
	put(b->want + (b->base - b->mem), s, at, count, owner, first_i);
}

const char *buf_end(struct buf *b, const char *name)
{
	const char *wrong = NULL;

	for (size_t i = 0; i < b->n && !wrong; i++)
		if (b->mem[i] != b->want[i])
			wrong = tap_wrong("%s: int %ld is %x, not %x", name,
					  (long)i - (long)(b->base - b->mem), b->mem[i],
					  b->want[i]);
	free(b->mem);
	free(b->want);
	return wrong;
}
