/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * One-sided operations on data of many runs, which go in fewer messages than runs: random
 * datatypes, regular and not, with runs of a byte and runs of kilobytes, forwards and backwards,
 * at the target, at the origin or at both, beside a model that knows nothing of messages: the
 * list of the elements' places. The bytes between them must stay. There must be fewer messages, in
 * order. Usage: [SEED [ROUNDS [tame]]].
 */
#include "test/mpi/pt2pt/check.h"

enum { WORDS = 60000, ELEMENTS_MOST = 6000, OPS = 4 };
enum kind { PUT, GET, SUM, FETCH_SUM, REPLACE, KINDS };

/* A datatype of elements of 4 bytes, and where they are, in elements from the buffer on. */
struct layout {
	MPI_Datatype type;
	int n, at[ELEMENTS_MOST];
};

static MPI_Win win;
static int *window, *model, *here, *result, *want;
static struct layout *there, *local;

/* ---- datatypes ------------------------------------------------------------------------------- */

/* Blocks of one length, one stride apart, which may be negative. */
static void draw_vector(struct layout *l, int n)
{
	int block = draw_below(3) ? 1 + draw_below(4) : 1 + draw_below(700);
	int gap, count, first = 0;

	block = block < n ? block : n;
	count = n / block;
	gap = block + 1 + draw_below(count > 1 ? (WORDS / 2 - n) / count : 1);
	if (draw_below(4) == 0) {
		first = gap * (count - 1);
		gap = -gap;
	}
	for (int i = 0; i < count; i++)
		for (int k = 0; k < block; k++)
			l->at[l->n++] = first + i * gap + k;
	MPI_Type_create_hvector(count, block, gap * 4, MPI_INT, &l->type);
	if (first) {
		MPI_Datatype moved;
		MPI_Aint disp = (MPI_Aint)first * 4;
		int one = 1;

		MPI_Type_create_hindexed(1, &one, &disp, l->type, &moved);
		MPI_Type_free(&l->type);
		l->type = moved;
	}
}

/* Blocks of different lengths at different distances, not always upwards; or regular for a
 * while, then not. */
static void draw_indexed(struct layout *l, int n)
{
	int *length = calloc((size_t)n, sizeof(int)), *disp = calloc((size_t)n, sizeof(int));
	int blocks = 0, at = 0, left = n, regular = draw_below(2);
	int usual = 1 + draw_below(3), step = draw_below((WORDS / 2 - n) / n + 2);

	while (left > 0) {
		int some = draw_below(20) ? 1 + draw_below(5) : 1 + draw_below(600);

		some = regular ? usual : some;
		some = some < left ? some : left;
		length[blocks] = some;
		disp[blocks++] = at;
		at += some +
		      (regular && draw_below(5) ? step : draw_below((WORDS / 2 - n) / n + 2));
		left -= some;
	}
	for (int i = 1; i < blocks; i += 2)
		if (draw_below(3) == 0) { /* the second of two comes first */
			int d = disp[i], k = length[i];

			disp[i] = disp[i - 1];
			length[i] = length[i - 1];
			disp[i - 1] = d;
			length[i - 1] = k;
		}
	for (int i = 0; i < blocks; i++)
		for (int k = 0; k < length[i]; k++)
			l->at[l->n++] = disp[i] + k;
	MPI_Type_indexed(blocks, length, disp, MPI_INT, &l->type);
	free(length);
	free(disp);
}

/* As many elements as `n`, or for 0 as it likes. */
static void draw_layout(struct layout *l, int n)
{
	int any = n ? n : 1 + draw_below(draw_below(3) ? 300 : ELEMENTS_MOST - 1);
	int what = draw_below(n ? 2 : 3);

	l->n = 0;
	if (what == 0)
		draw_indexed(l, any);
	else if (what == 1 && !n)
		draw_vector(l, any);
	else {
		for (l->n = 0; l->n < any; l->n++)
			l->at[l->n] = l->n;
		MPI_Type_contiguous(any, MPI_INT, &l->type);
	}
	MPI_Type_commit(&l->type);
}

/* ---- operations ------------------------------------------------------------------------------ */

static const char *run_op(enum kind kind, int target, int disp)
{
	switch (kind) {
	case PUT:
		CHECK_OK(MPI_Put(here, 1, local->type, target, disp, 1, there->type, win));
		break;
	case GET:
		CHECK_OK(MPI_Get(result, 1, local->type, target, disp, 1, there->type, win));
		break;
	case SUM:
		CHECK_OK(MPI_Accumulate(here, 1, local->type, target, disp, 1, there->type, MPI_SUM,
					win));
		break;
	case REPLACE:
		CHECK_OK(MPI_Accumulate(here, 1, local->type, target, disp, 1, there->type,
					MPI_REPLACE, win));
		break;
	default:
		CHECK_OK(MPI_Get_accumulate(here, 1, local->type, result, 1, local->type, target,
					    disp, 1, there->type, MPI_SUM, win));
	}
	CHECK_OK(MPI_Win_flush(target, win));
	return NULL;
}

static void play(enum kind kind, int *target)
{
	for (int i = 0; i < there->n; i++) {
		int *at = &target[there->at[i]], mine = here[local->at[i]];

		if (kind == GET || kind == FETCH_SUM)
			want[local->at[i]] = *at;
		if (kind == SUM || kind == FETCH_SUM)
			*at = (int)((unsigned)*at + (unsigned)mine);
		else if (kind != GET)
			*at = mine;
	}
}

static const char *compare(const int *is, const int *should, enum kind kind, const char *what)
{
	for (int i = 0; i < WORDS; i++)
		if (is[i] != should[i])
			return tap_wrong(
				"operation %d on %d elements: int %d of the %s is %d, not %d",
				(int)kind, there->n, i, what, is[i], should[i]);
	return NULL;
}

/* Each rank does operations on the window of the next, and looks at all of it after each. */
static const char *round_of_operations(int round)
{
	int target = (tap_rank + 1) % tap_size;
	const char *wrong = NULL, *w;

	MPI_Win_create(window, WORDS * 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (int i = 0; i < WORDS; i++) {
		window[i] = (int)value_of(tap_rank + round, i);
		model[i] = (int)value_of(target + round, i);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int o = 0; o < OPS; o++) {
		enum kind kind = (enum kind)draw_below(KINDS);
		int disp = draw_below(100);

		draw_layout(there, 0);
		draw_layout(local, there->n);
		for (int i = 0; i < WORDS; i++) {
			here[i] = (int)value_of(tap_rank + 77 * o, i);
			result[i] = want[i] = -i;
		}
		w = run_op(kind, target, disp);
		wrong = wrong ? wrong : w;
		play(kind, model + disp);
		w = compare(result, want, kind, "result");
		wrong = wrong ? wrong : w;
		CHECK_OK(MPI_Get(result, WORDS, MPI_INT, target, 0, WORDS, MPI_INT, win));
		CHECK_OK(MPI_Win_flush(target, win));
		w = compare(result, model, kind, "window");
		wrong = wrong ? wrong : w;
		MPI_Type_free(&there->type);
		MPI_Type_free(&local->type);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	return wrong;
}

/* ---- messages -------------------------------------------------------------------------------- */

enum { RUNS = 1024, MESSAGES_MOST = 8 };

static long long messages;

/* One of three operations, and how many requests it takes. */
static const char *count_messages(int what, int target, int count, MPI_Datatype strided)
{
	long long before = counter("PTL_SEND_COUNT");

	if (what == 0)
		CHECK_OK(MPI_Put(here, 2 * RUNS, MPI_INT, target, 0, count, strided, win));
	else if (what == 1)
		CHECK_OK(MPI_Get(result, 2 * RUNS, MPI_INT, target, 0, count, strided, win));
	else
		CHECK_OK(MPI_Accumulate(here, 2 * RUNS, MPI_INT, target, 0, count, strided, MPI_SUM,
					win));
	CHECK_OK(MPI_Win_flush(target, win));
	messages = counter("PTL_SEND_COUNT") - before;
	return NULL;
}

/* The same runs as one element of a datatype, or as many elements of another. */
static const char *runs_in_few_messages(int round)
{
	int target = (tap_rank + 1) % tap_size;
	const char *wrong = NULL;
	MPI_Datatype vector, pair, strided;

	MPI_Type_vector(RUNS, 2, 4, MPI_INT, &vector);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_create_resized(pair, 0, 16, &strided);
	MPI_Type_commit(&vector);
	MPI_Type_commit(&strided);
	for (int i = 0; i < WORDS; i++) {
		window[i] = i;
		here[i] = i + round;
		result[i] = -1;
	}
	MPI_Win_create(window, WORDS * 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_lock_all(0, win);
	for (int what = 0; what < 3 && !wrong; what++) {
		wrong = count_messages(what, target, round % 2 ? RUNS : 1,
				       round % 2 ? strided : vector);
		if (!wrong && messages > MESSAGES_MOST)
			wrong = tap_wrong("operation %d on %d runs took %lld messages", what, RUNS,
					  messages);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Type_free(&vector);
	MPI_Type_free(&pair);
	MPI_Type_free(&strided);
	for (int i = 0; i < 4 * RUNS && !wrong; i++) {
		int put = i / 4 * 2 + i % 4 + round;

		if (window[i] != (i % 4 < 2 ? 2 * put : i))
			wrong = tap_wrong("int %d of the window is %d", i, window[i]);
		if (i < 2 * RUNS && result[i] != i + round)
			wrong = tap_wrong("int %d of the result is %d", i, result[i]);
	}
	return wrong;
}

/* ---- long data ------------------------------------------------------------------------------- */

/* All ranks at the same time, or one after the other while the others wait or compute: data of one
 * run, in segments or not. */
static const char *long_data_come_whole(int round)
{
	int target = (tap_rank + 1) % tap_size, from = (tap_rank + tap_size - 1) % tap_size;
	int off = draw_below(3), end = draw_below(3) ? 1 + off + draw_below(40000) : WORDS;
	const char *wrong = NULL;

	for (int i = 0; i < WORDS; i++) {
		window[i] = -1;
		here[i] = i * 7 + round * 1000 + tap_rank;
		result[i] = -1;
	}
	MPI_Win_create(window, WORDS * 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_lock_all(0, win);
	for (int turn = 0; turn < tap_size; turn++) {
		if (round % 2 == 0 || turn == tap_rank) {
			CHECK_OK(MPI_Put(here + off, end - off, MPI_INT, target, off, end - off,
					 MPI_INT, win));
			CHECK_OK(MPI_Win_flush(target, win));
			CHECK_OK(MPI_Get(result + off, end - off, MPI_INT, target, off, end - off,
					 MPI_INT, win));
			CHECK_OK(MPI_Win_flush(target, win));
		}
		if (round % 4 < 2)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	for (int i = 0; i < WORDS && !wrong; i++) {
		int put = i < off || i >= end ? -1 : i * 7 + round * 1000 + from;

		if (window[i] != put)
			wrong = tap_wrong("int %d of the window is %d, not %d", i, window[i], put);
		if (result[i] != (i < off || i >= end ? -1 : here[i]))
			wrong = tap_wrong("int %d of the result is %d", i, result[i]);
	}
	return wrong;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The last value stored stays, whatever the accumulates' lengths, and each sees the results of
 * those before it. */
static const char *accumulates_in_order(int round)
{
	enum { LONG = 900 };
	int target = (tap_rank + 1) % tap_size, last, had[2] = { 0, 0 };

	MPI_Win_create(window, WORDS * 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < LONG; k++)
			here[k] = round * 100 + i;
		last = -here[0] - 1;
		CHECK_OK(MPI_Accumulate(here, LONG, MPI_INT, target, 0, LONG, MPI_INT, MPI_REPLACE,
					win));
		CHECK_OK(MPI_Fetch_and_op(&last, &had[0], MPI_INT, target, LONG - 1, MPI_REPLACE,
					  win));
		CHECK_OK(
			MPI_Fetch_and_op(NULL, &had[1], MPI_INT, target, LONG - 1, MPI_NO_OP, win));
		CHECK_OK(MPI_Win_flush(target, win));
		CHECK_INT(had[0], here[0]);
		CHECK_INT(had[1], last);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 40);
	window = malloc(WORDS * 4);
	model = malloc(WORDS * 4);
	here = malloc(WORDS * 4);
	result = malloc(WORDS * 4);
	want = malloc(WORDS * 4);
	there = malloc(sizeof(*there));
	local = malloc(sizeof(*local));
	tap_case("operations on many runs", round_of_operations);
	tap_case("a thousand runs take a few messages", runs_in_few_messages);
	tap_case("long data come whole", long_data_come_whole);
	tap_case("accumulates of one rank keep their order", accumulates_in_order);
	free(window);
	free(model);
	free(here);
	free(result);
	free(want);
	free(there);
	free(local);
	return tap_end();
}
