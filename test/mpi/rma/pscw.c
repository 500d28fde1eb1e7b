/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Post, start, complete and wait, and fences: who accesses whom is drawn anew for each epoch,
 * and the ranks run ahead of each other as far as that lets them. The values that a target stored
 * before its post are there after a start. The values that others put are there after the wait.
 * Usage: [SEED [TIMES [tame|words]]].
 */
#include <sched.h>
#include <unistd.h>

#include "test/mpi/pt2pt/check.h"

enum { FLAVORS = 3, EPOCHS = 60, RANKS_MOST = 8 };
#define LIMIT_S 60.0 /* to give up after */

static MPI_Win win;
static MPI_Group world;
/* the number of the epoch; the sum of what others add; what each rank puts */
static int *memory;
enum { NUMBER, SUM, PUTS };

static void make_window(int flavor)
{
	MPI_Aint bytes = (PUTS + tap_size) * (MPI_Aint)sizeof(int);

	if (flavor == 0)
		MPI_Win_create(memory = malloc((size_t)bytes), bytes, sizeof(int), MPI_INFO_NULL,
			       MPI_COMM_WORLD, &win);
	else if (flavor == 1)
		MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	else
		MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
					&win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_get_group(win, &world);
}

static void free_window(int flavor)
{
	MPI_Group_free(&world);
	MPI_Win_free(&win);
	if (flavor == 0)
		free(memory);
}

/* ---- epochs of many groups ------------------------------------------------------------------- */

static bool accesses[RANKS_MOST][RANKS_MOST]; /* origin, target */
static int order[RANKS_MOST];

static void draw_accesses(void)
{
	/* MPICH 4.0 hangs unless all access all */
	int density = tap_tame ? 1 : 1 + draw_below(4);

	for (int i = 0; i < tap_size; i++) {
		int other = draw_below(i + 1);

		order[i] = order[other];
		order[other] = i;
		for (int j = 0; j < tap_size; j++)
			accesses[i][j] = draw_below(density) == 0;
	}
}

/* Some ranks are late now and then, and some so late that the others have gone to sleep. */
static void draw_delay(void)
{
	for (int i = 0; i < tap_size; i++) {
		int how = draw_below(24);

		if (i != tap_rank)
			continue;
		if (how == 0)
			usleep(1500);
		for (int k = 0; how < 4 && k < 5; k++)
			sched_yield();
	}
}

/* The origins that access this rank, or the targets that it accesses. */
static MPI_Group group_of(bool origins)
{
	int rank[RANKS_MOST], n = 0;
	MPI_Group group;

	for (int i = 0; i < tap_size; i++) {
		/* the groups are in different orders */
		int r = order[origins ? i : tap_size - 1 - i];

		if (origins ? accesses[r][tap_rank] : accesses[tap_rank][r])
			rank[n++] = r;
	}
	MPI_Group_incl(world, n, rank, &group);
	return group;
}

static const char *access_targets(int number, MPI_Group targets, int assertion)
{
	static int seen[RANKS_MOST];
	int one = number * (tap_rank + 1), mine = -number;

	CHECK_OK(MPI_Win_start(targets, assertion, win));
	for (int j = 0; j < tap_size; j++) {
		if (!accesses[tap_rank][j])
			continue;
		CHECK_OK(MPI_Get(&seen[j], 1, MPI_INT, j, NUMBER, 1, MPI_INT, win));
		CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, j, SUM, 1, MPI_INT, MPI_SUM, win));
		CHECK_OK(MPI_Put(&mine, 1, MPI_INT, j, PUTS + tap_rank, 1, MPI_INT, win));
	}
	CHECK_OK(MPI_Win_complete(win));
	for (int j = 0; j < tap_size; j++)
		if (accesses[tap_rank][j] && seen[j] != number)
			return tap_wrong("epoch %d: rank %d is in epoch %d", number, j, seen[j]);
	return NULL;
}

static const char *check_exposed(int number)
{
	int sum = 0;

	for (int i = 0; i < tap_size; i++) {
		int want = accesses[i][tap_rank] ? -number : 0;

		if (memory[PUTS + i] != want)
			return tap_wrong("epoch %d: %d of rank %d, not %d", number,
					 memory[PUTS + i], i, want);
		sum += accesses[i][tap_rank] ? number * (i + 1) : 0;
	}
	CHECK_INT(memory[SUM], sum);
	return NULL;
}

static const char *await_origins(bool wait)
{
	double start = time_now();
	int flag = 0;

	if (wait) {
		CHECK_OK(MPI_Win_wait(win));
		return NULL;
	}
	while (!flag) {
		CHECK_OK(MPI_Win_test(win, &flag));
		CHECK(time_now() < start + LIMIT_S);
	}
	return NULL;
}

static const char *epoch(int number)
{
	int how = draw_below(4);
	bool no_check = draw_below(8) == 0, wait = draw_below(3) > 0;
	MPI_Group origins, targets;
	const char *wrong, *w;

	draw_accesses();
	origins = group_of(true);
	targets = group_of(false);
	memset(memory, 0, (size_t)(PUTS + tap_size) * sizeof(int));
	memory[NUMBER] = number;
	draw_delay();
	CHECK_OK(MPI_Win_post(origins,
			      (no_check ? MPI_MODE_NOCHECK : 0) | (how == 0 ? MPI_MODE_NOSTORE : 0),
			      win));
	if (no_check)
		MPI_Barrier(MPI_COMM_WORLD);
	draw_delay();
	wrong = access_targets(number, targets, no_check ? MPI_MODE_NOCHECK : 0);
	w = await_origins(wait);
	wrong = wrong ? wrong : w;
	w = check_exposed(number);
	MPI_Group_free(&origins);
	MPI_Group_free(&targets);
	return wrong ? wrong : w;
}

/* Between epochs of this kind others, of all ranks. */
static const char *between(int how)
{
	int to = (tap_rank + 1) % tap_size, one = 1;

	memory[SUM] = 0;
	if (how == 0) {
		CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
		CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, to, SUM, 1, MPI_INT, MPI_SUM, win));
		CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
		CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
		CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, to, SUM, 1, MPI_INT, MPI_SUM, win));
		CHECK_OK(MPI_Win_unlock(to, win));
		MPI_Barrier(MPI_COMM_WORLD);
	}
	CHECK_INT(memory[SUM], 1);
	return NULL;
}

static const char *many_groups(int round)
{
	const int flavor = round % FLAVORS;
	const char *wrong = NULL;

	make_window(flavor);
	for (int i = 1; i <= EPOCHS && !wrong; i++) {
		int how = draw_below(20);

		wrong = epoch(i);
		if (!wrong && how < 2)
			wrong = between(how);
	}
	free_window(flavor);
	return wrong;
}

/* ---- what is said when ----------------------------------------------------------------------- */

/* The others complete when they are told to, so that a test before that says no. */
static const char *test_says_when(int flavor)
{
	int flag = 1, number = tap_rank * 7;
	MPI_Group origins, target;
	const char *wrong = NULL;

	if (tap_size == 1)
		return NULL;
	make_window(flavor);
	MPI_Group_excl(world, 1, &(int){ 0 }, &origins);
	MPI_Group_incl(world, 1, &(int){ 0 }, &target);
	for (int round = 0; round < 3 && !wrong; round++) {
		if (tap_rank > 0) {
			CHECK_OK(MPI_Win_start(target, 0, win));
			CHECK_OK(MPI_Put(&number, 1, MPI_INT, 0, PUTS + tap_rank, 1, MPI_INT, win));
			MPI_Recv(NULL, 0, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK_OK(MPI_Win_complete(win));
			continue;
		}
		CHECK_OK(MPI_Win_post(origins, 0, win));
		for (int i = 1; i < tap_size; i++) {
			for (int k = 0; k < 30; k++) {
				CHECK_OK(MPI_Win_test(win, &flag));
				CHECK(!flag);
			}
			MPI_Send(NULL, 0, MPI_INT, i, round, MPI_COMM_WORLD);
		}
		wrong = await_origins(false);
		for (int i = 1; i < tap_size; i++)
			CHECK_INT(memory[PUTS + i], i * 7);
		CHECK_CLASS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
	}
	MPI_Group_free(&origins);
	MPI_Group_free(&target);
	free_window(flavor);
	return wrong;
}

/* ---- fences ---------------------------------------------------------------------------------- */

static bool words; /* no setting forbids them */

/* Each puts to all and changes what it has; and in memory that all have mapped no message is
 * needed for that. */
static const char *fences(int flavor)
{
	enum { TIMES = 40 };
	const long long before = counter("mpi_coll_barrier_shm");

	make_window(flavor);
	CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
	for (int i = 1; i <= TIMES; i++) {
		int mine = i * tap_size + tap_rank;

		draw_delay();
		for (int to = 0; to < tap_size; to++)
			CHECK_OK(MPI_Put(&mine, 1, MPI_INT, to, PUTS + tap_rank, 1, MPI_INT, win));
		CHECK_OK(MPI_Win_fence(0, win));
		for (int from = 0; from < tap_size; from++)
			CHECK_INT(memory[PUTS + from], i * tap_size + from);
		memory[NUMBER] = i;
		CHECK_OK(MPI_Win_fence(0, win));
		CHECK_OK(MPI_Get(&mine, 1, MPI_INT, (tap_rank + i) % tap_size, NUMBER, 1, MPI_INT,
				 win));
		CHECK_OK(MPI_Win_fence(i < TIMES ? 0 : MPI_MODE_NOSUCCEED, win));
		CHECK_INT(mine, i);
	}
	if (flavor != 0 && tap_size > 1 && words)
		CHECK(counter("mpi_coll_barrier_shm") - before == 1 + 3 * TIMES);
	free_window(flavor);
	return NULL;
}

/* ---- groups of nobody, and of strangers ------------------------------------------------------ */

static const char *nobody(int flavor)
{
	int flag = 0;

	make_window(flavor);
	CHECK_OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
	CHECK_OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
	if (!tap_tame) {
		CHECK_CLASS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
		CHECK_CLASS(MPI_Win_post(MPI_GROUP_EMPTY, 0, win), MPI_ERR_RMA_SYNC);
		CHECK_CLASS(MPI_Win_start(MPI_GROUP_EMPTY, 0, win), MPI_ERR_RMA_SYNC);
	}
	CHECK_OK(MPI_Win_complete(win));
	CHECK_OK(MPI_Win_test(win, &flag));
	CHECK(flag);
	CHECK_OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
	CHECK_OK(MPI_Win_wait(win));
	free_window(flavor);
	return NULL;
}

/* A group that is wrong opens no epoch. */
static const char *strangers(int round)
{
	MPI_Comm some;
	MPI_Group all;
	int *at;

	(void)round;
	if (tap_size < 3)
		return NULL;
	MPI_Comm_split(MPI_COMM_WORLD, tap_rank == 0, tap_rank, &some);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, some, &at, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	CHECK_CLASS(MPI_Win_post(all, 0, win), MPI_ERR_GROUP);
	CHECK_CLASS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_start(all, 0, win), MPI_ERR_GROUP);
	CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Put(at, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
	CHECK_OK(MPI_Win_free(&win));
	MPI_Group_free(&all);
	MPI_Comm_free(&some);
	return NULL;
}

int main(int argc, char **argv)
{
	int times;

	tap_start(argc, argv, 1);
	times = argc > 2 ? atoi(argv[2]) : 1;
	words = argc > 3 && strcmp(argv[3], "words") == 0;
	tap_rounds_set(FLAVORS * times);
	tap_case("epochs of groups that change", many_groups);
	tap_rounds_set(FLAVORS);
	tap_case("a test says when the others have completed", test_says_when);
	tap_case("fences, one after the other", fences);
	tap_case("groups of nobody", nobody);
	if (!tap_tame) {
		tap_rounds_set(1);
		tap_case("groups of strangers", strangers);
	}
	return tap_end();
}
