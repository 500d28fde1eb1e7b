/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Random one-sided operations with datatypes of many shapes, in epochs of every kind and windows
 * of every flavour, beside a model: all ranks draw the same numbers, so each knows what every
 * window must hold, and what every get must bring. Usage: [SEED [ROUNDS [tame]]].
 *
 * Of each window every rank has segments of its own, one for each of its operations in an epoch,
 * and at the end there is a segment that all accumulate into.
 */
#include "test/mpi/pt2pt/check.h"

enum { OPS = 3, SEGMENT = 256, MIDDLE = 64, COMMON = 96, EPOCHS = 4, MOST = 3 };
enum kind { PUT, GET, SUM, REPLACE, GET_SUM, GET_NO_OP, RPUT, RGET, RSUM, RGET_SUM, KINDS };
enum sync { FENCE, PSCW, LOCK_SHARED, LOCK_EXCLUSIVE, LOCK_ALL, LOCK_ALL_FLUSH, SYNCS };

/* One operation of one rank. */
struct op {
	enum kind kind;
	int target;
	const struct shape *here, *there;
	int count_here, count_there;
	int at;    /* of element 0 at the target, in ints */
	int value; /* owner number of the data */
	struct buf data, result;
	MPI_Request request;
};

static MPI_Win win;
static int *memory, *model; /* ours; of all ranks */
static int ints;            /* in a window */
static int unit, flavor;
static MPI_Aint *address; /* dynamic windows: of each rank's memory */
static MPI_Op common_op;
static struct op *ops; /* of all ranks */

static int *model_of(int rank)
{
	return model + (long)rank * ints;
}

/* ---- windows --------------------------------------------------------------------------------- */

static void make_window(void)
{
	MPI_Aint bytes = (MPI_Aint)ints * (MPI_Aint)sizeof(int), mine = 0;

	memory = NULL;
	if (flavor == 0) {
		memory = malloc((size_t)bytes);
		MPI_Win_create(memory, bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	} else if (flavor == 1) {
		MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	} else if (flavor == 2) {
		MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	} else {
		memory = malloc((size_t)bytes);
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
		MPI_Win_attach(win, memory, bytes);
		MPI_Get_address(memory, &mine);
	}
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Allgather(&mine, 1, MPI_AINT, address, 1, MPI_AINT, MPI_COMM_WORLD);
}

static void free_window(void)
{
	if (flavor == 3)
		MPI_Win_detach(win, memory);
	MPI_Win_free(&win);
	if (flavor == 0 || flavor == 3)
		free(memory);
}

static MPI_Aint displacement(int target, int at)
{
	MPI_Aint bytes = (MPI_Aint)at * (MPI_Aint)sizeof(int);

	return flavor == 3 ? address[target] + bytes : bytes / unit;
}

/* ---- operations ------------------------------------------------------------------------------ */

static bool gets(const struct op *o)
{
	return o->kind == GET || o->kind == RGET;
}

static bool fetches(const struct op *o)
{
	return o->kind == GET_SUM || o->kind == RGET_SUM || o->kind == GET_NO_OP;
}

static bool adds(const struct op *o)
{
	return o->kind == SUM || o->kind == RSUM || o->kind == GET_SUM || o->kind == RGET_SUM;
}

/* All ranks draw the operations of all ranks. */
static void draw_op(struct op *o, int origin, int i, bool requests)
{
	int m = 1 + draw_below(MOST);

	*o = (struct op){
		.kind = (enum kind)draw_below(requests ? KINDS : RPUT),
		.target = draw_below(tap_size),
		.here = &shapes[draw_below(SHAPES)],
		.there = &shapes[draw_below(SHAPES)],
		.at = (origin * OPS + i) * SEGMENT + MIDDLE,
		.value = draw_below(1000),
		.request = MPI_REQUEST_NULL,
	};
	o->count_here = m * SHAPE_LCM / o->here->k;
	o->count_there = m * SHAPE_LCM / o->there->k;
}

static void make_data(struct op *o)
{
	o->data = buf_new(o->here, 0, o->count_here);
	o->result = buf_new(o->here, 0, o->count_here);
	if (!gets(o))
		buf_fill(&o->data, o->here, 0, o->count_here, o->value, 0);
	buf_keep(&o->data);
	buf_keep(&o->result);
}

#define THERE(o)                                                                                   \
	(o)->target, displacement((o)->target, (o)->at), (o)->count_there, (o)->there->type, win
#define THERE_OP(o, op)                                                                            \
	(o)->target, displacement((o)->target, (o)->at), (o)->count_there, (o)->there->type, op, win
#define HERE(o)   (o)->data.base, (o)->count_here, (o)->here->type
#define RESULT(o) (o)->result.base, (o)->count_here, (o)->here->type

static int start_op(struct op *o)
{
	MPI_Request *r = &o->request;

	switch (o->kind) {
	case PUT:
		return MPI_Put(HERE(o), THERE(o));
	case GET:
		return MPI_Get(HERE(o), THERE(o));
	case SUM:
		return MPI_Accumulate(HERE(o), THERE_OP(o, MPI_SUM));
	case REPLACE:
		return MPI_Accumulate(HERE(o), THERE_OP(o, MPI_REPLACE));
	case GET_SUM:
		return MPI_Get_accumulate(HERE(o), RESULT(o), THERE_OP(o, MPI_SUM));
	case GET_NO_OP:
		return MPI_Get_accumulate(HERE(o), RESULT(o), THERE_OP(o, MPI_NO_OP));
	case RPUT:
		return MPI_Rput(HERE(o), THERE(o), r);
	case RGET:
		return MPI_Rget(HERE(o), THERE(o), r);
	case RSUM:
		return MPI_Raccumulate(HERE(o), THERE_OP(o, MPI_SUM), r);
	default:
		return MPI_Rget_accumulate(HERE(o), RESULT(o), THERE_OP(o, MPI_SUM), r);
	}
}

/* The change to the model; for its origin also the result. */
static void play(struct op *o, bool mine)
{
	int *at = model_of(o->target) + o->at, n = 0;

	for (int e = 0; e < o->count_there; e++)
		for (int j = 0; j < o->there->k; j++, n++) {
			int *there = &at[(long)e * o->there->extent + o->there->off[j]];
			int here = n / o->here->k * o->here->extent + o->here->off[n % o->here->k];
			int value = (int)value_of(o->value, n);

			if (mine && gets(o))
				o->data.want[&o->data.base[here] - o->data.mem] = *there;
			if (mine && fetches(o))
				o->result.want[&o->result.base[here] - o->result.mem] = *there;
			if (adds(o))
				*there = (int)((unsigned)*there + (unsigned)value);
			else if (!gets(o) && o->kind != GET_NO_OP)
				*there = value;
		}
}

/* Into the segment that all have in common: one operation of the epoch's for everybody. */
static const char *accumulate_common(void)
{
	for (int origin = 0; origin < tap_size; origin++) {
		int target = draw_below(tap_size), at = draw_below(COMMON - 8),
		    n = 1 + draw_below(8);
		int base = tap_size * OPS * SEGMENT, value[8];

		for (int i = 0; i < n; i++) {
			int *there = &model_of(target)[base + at + i];

			value[i] = (int)value_of(origin, i);
			*there = common_op == MPI_SUM ? (int)((unsigned)*there + (unsigned)value[i])
				 : common_op == MPI_MAX ? (*there > value[i] ? *there : value[i])
							: *there ^ value[i];
		}
		if (origin == tap_rank)
			CHECK_OK(MPI_Accumulate(value, n, MPI_INT, target,
						displacement(target, base + at), n, MPI_INT,
						common_op, win));
	}
	return NULL;
}

static const char *start_all(struct op *mine)
{
	for (int i = 0; i < OPS; i++)
		CHECK_OK(start_op(&mine[i]));
	return NULL;
}

static const char *wait_all(struct op *mine)
{
	for (int i = 0; i < OPS; i++)
		CHECK_OK(MPI_Wait(&mine[i].request, MPI_STATUS_IGNORE));
	return NULL;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static const char *locked(struct op *mine, int how)
{
	const char *wrong;

	for (int i = 0; i < OPS; i++) {
		CHECK_OK(MPI_Win_lock(how, mine[i].target, 0, win));
		CHECK_OK(start_op(&mine[i]));
		if (mine[i].request != MPI_REQUEST_NULL)
			CHECK_OK(MPI_Wait(&mine[i].request, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Win_unlock(mine[i].target, win));
	}
	CHECK_OK(MPI_Win_lock_all(0, win));
	wrong = accumulate_common();
	CHECK_OK(MPI_Win_unlock_all(win));
	return wrong;
}

static const char *all_locked(struct op *mine, bool flush)
{
	const char *wrong;

	CHECK_OK(MPI_Win_lock_all(0, win));
	wrong = start_all(mine);
	if (!wrong)
		wrong = accumulate_common();
	if (!wrong)
		wrong = wait_all(mine);
	if (flush) {
		CHECK_OK(MPI_Win_flush_local_all(win));
		for (int i = 0; i < tap_size; i++)
			CHECK_OK(MPI_Win_flush(i, win));
	}
	CHECK_OK(MPI_Win_unlock_all(win));
	return wrong;
}

static const char *active(struct op *mine, bool fence)
{
	const char *wrong;
	MPI_Group all;
	int flag = 0;

	if (fence) {
		CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
	} else {
		MPI_Win_get_group(win, &all);
		CHECK_OK(MPI_Win_post(all, 0, win));
		CHECK_OK(MPI_Win_start(all, 0, win));
		MPI_Group_free(&all);
	}
	wrong = start_all(mine);
	if (!wrong)
		wrong = accumulate_common();
	if (fence) {
		CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
		return wrong;
	}
	CHECK_OK(MPI_Win_complete(win));
	if (tap_rank % 2)
		CHECK_OK(MPI_Win_wait(win));
	else
		while (!flag)
			CHECK_OK(MPI_Win_test(win, &flag));
	return wrong;
}

static const char *epoch(enum sync sync)
{
	bool requests = sync >= LOCK_SHARED;
	struct op *mine = &ops[tap_rank * OPS];
	const char *wrong = NULL, *w;

	for (int i = 0; i < tap_size * OPS; i++)
		draw_op(&ops[i], i / OPS, i % OPS, requests);
	common_op = (MPI_Op[]){ MPI_SUM, MPI_MAX, MPI_BXOR }[draw_below(3)];
	for (int i = 0; i < OPS; i++)
		make_data(&mine[i]);
	if (sync == FENCE || sync == PSCW)
		wrong = active(mine, sync == FENCE);
	else if (sync == LOCK_SHARED || sync == LOCK_EXCLUSIVE)
		wrong = locked(mine, sync == LOCK_SHARED ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE);
	else
		wrong = all_locked(mine, sync == LOCK_ALL_FLUSH);
	for (int i = 0; i < tap_size * OPS; i++)
		play(&ops[i], i / OPS == tap_rank);
	for (int i = 0; i < OPS; i++) {
		static const char *const names[] = { "put",     "get",       "sum",  "replace",
						     "get_sum", "get_no_op", "rput", "rget",
						     "rsum",    "rget_sum" };

		w = buf_end(&mine[i].data, names[mine[i].kind]);
		wrong = wrong ? wrong : w;
		w = buf_end(&mine[i].result, names[mine[i].kind]);
		wrong = wrong ? wrong : w;
	}
	return wrong;
}

/* After everybody's epoch. */
static const char *compare(int e, enum sync sync)
{
	const int *want = model_of(tap_rank);
	const char *wrong = NULL;

	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, tap_rank, 0, win));
	for (int i = 0; i < ints && !wrong; i++)
		if (memory[i] != want[i])
			wrong = tap_wrong(
				"epoch %d (%d), flavour %d, unit %d: int %d of the window is %d, "
				"not %d",
				e, (int)sync, flavor, unit, i, memory[i], want[i]);
	CHECK_OK(MPI_Win_unlock(tap_rank, win));
	MPI_Barrier(MPI_COMM_WORLD);
	return wrong;
}

static const char *epochs(int round)
{
	const char *wrong = NULL, *w;

	ints = tap_size * OPS * SEGMENT + COMMON;
	flavor = round % 4;
	unit = (int[]){ 1, 2, 4 }[draw_below(3)];
	make_window();
	CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, tap_rank, 0, win));
	for (int r = 0; r < tap_size; r++)
		for (int i = 0; i < ints; i++)
			model_of(r)[i] = (int)value_of(r + 5000, i);
	memcpy(memory, model_of(tap_rank), (size_t)ints * sizeof(int));
	CHECK_OK(MPI_Win_unlock(tap_rank, win));
	MPI_Barrier(MPI_COMM_WORLD);
	for (int e = 0; e < EPOCHS; e++) {
		enum sync sync = (enum sync)draw_below(SYNCS);

		w = epoch(sync);
		wrong = wrong ? wrong : w;
		w = compare(e, sync);
		wrong = wrong ? wrong : w;
	}
	free_window();
	return wrong;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 40);
	shapes_make();
	model = calloc((size_t)tap_size * (size_t)(tap_size * OPS * SEGMENT + COMMON), sizeof(int));
	ops = calloc((size_t)tap_size * OPS, sizeof(*ops));
	address = calloc((size_t)tap_size, sizeof(*address));
	tap_case("random operations in random epochs", epochs);
	free(address);
	free(ops);
	free(model);
	shapes_free();
	return tap_end();
}
