/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Partitioned communication around a ring of ranks, which may be one: any numbers of partitions on
 * both sides, in any order, from threads; which send belongs to which receive; partitions that land
 * while the receiver computes; requests that are wrong or do not fit. Given a third argument:
 * MPI_THREAD_MULTIPLE.
 */
#include <pthread.h>

#include "test/mpi/pt2pt/check.h"

#define LIMIT_S 30.0
#define THREADS 4
#define BIG     (4 << 20)
#define LANDING 16 /* partitions of that */

static int next, before; /* the neighbours */
static unsigned char *big_out, *big_in;

/* ---- any partitions -------------------------------------------------------------------------- */

#define INTS_MOST 60000

static int out[2 * INTS_MOST], in[2 * INTS_MOST];

struct layout {
	int partitions, count; /* elements in a partition */
	int gap;               /* of an int, in ints: 1 is dense */
	MPI_Datatype type;
};

static struct layout layout_of(int ints)
{
	struct layout l = { .partitions = 1 + draw_below(40), .gap = 1 + draw_below(2) };

	while (ints % l.partitions)
		l.partitions--;
	l.count = ints / l.partitions;
	MPI_Type_create_resized(MPI_INT, 0, l.gap * (MPI_Aint)sizeof(int), &l.type);
	MPI_Type_commit(&l.type);
	return l;
}

static bool is_here(const struct layout *l, int partition, int start)
{
	for (int i = partition * l->count; i < (partition + 1) * l->count; i++)
		if (in[i * l->gap] != (int)value_of(before, start * INTS_MOST + i))
			return false;
	return true;
}

static void shuffle(int *a, int n)
{
	for (int i = 0; i < n; i++)
		a[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = draw_below(i + 1), t = a[i];

		a[i] = a[j];
		a[j] = t;
	}
}

static void make_ready(const int *order, int n, int way, MPI_Request r)
{
	if (way == 0) {
		MPI_Pready_list(n, order, r);
	} else if (way == 1) {
		MPI_Pready_range(n / 2, n - 1, r);
		if (n > 1)
			MPI_Pready_range(0, n / 2 - 1, r);
	} else {
		for (int i = 0; i < n; i++)
			MPI_Pready(order[i], r);
	}
}

static const char *one_start(const struct layout *s, const struct layout *r, int start,
			     MPI_Request *both)
{
	int order[40], flag;
	MPI_Status status[2];

	shuffle(order, s->partitions);
	for (int i = 0; i < s->partitions * s->count; i++)
		out[i * s->gap] = (int)value_of(tap_rank, start * INTS_MOST + i);
	memset(in, 0xff, sizeof(in));
	if (start % 2) {
		CHECK_OK(MPI_Startall(2, both));
	} else {
		CHECK_OK(MPI_Start(&both[0]));
		CHECK_OK(MPI_Start(&both[1]));
	}
	make_ready(order, s->partitions, draw_below(3), both[0]);
	for (int i = 0; i < r->partitions; i++) {
		CHECK_OK(MPI_Parrived(both[1], i, &flag));
		CHECK(!flag || is_here(r, i, start));
	}
	CHECK_OK(MPI_Waitall(2, both, status));
	CHECK_INT(status[1].MPI_SOURCE, before);
	CHECK_INT(status[1].MPI_TAG, 5);
	CHECK_INT(count_of(&status[1]), r->partitions * r->count * (int)sizeof(int));
	for (int i = 0; i < r->partitions; i++) {
		CHECK(is_here(r, i, start));
		CHECK_OK(MPI_Parrived(both[1], i, &flag));
		CHECK_INT(flag, 1);
	}
	return NULL;
}

static const char *any_partitions(int round)
{
	const int ints = round % 3 ? 1 + draw_below(2000) : 1 + draw_below(INTS_MOST);
	struct layout s = layout_of(ints), r = layout_of(ints);
	MPI_Request both[2];
	const char *wrong = NULL;

	CHECK_OK(MPI_Psend_init(out, s.partitions, s.count, s.type, next, 5, MPI_COMM_WORLD,
				MPI_INFO_NULL, &both[0]));
	CHECK_OK(MPI_Precv_init(in, r.partitions, r.count, r.type, before, 5, MPI_COMM_WORLD,
				MPI_INFO_NULL, &both[1]));
	MPI_Type_free(&s.type);
	MPI_Type_free(&r.type);
	for (int start = 0; start < 3 && !wrong; start++)
		wrong = one_start(&s, &r, start, both);
	CHECK_OK(MPI_Request_free(&both[0]));
	CHECK_OK(MPI_Request_free(&both[1]));
	CHECK(both[0] == MPI_REQUEST_NULL);
	return wrong;
}

/* More partitions than travel one by one. */
static const char *very_many(int round)
{
	const int n = 5000, receives = round % 2 ? 8 : 5000;
	MPI_Request both[2];
	int flag = 0;

	CHECK_OK(MPI_Psend_init(out, n, 2, MPI_INT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL, both));
	CHECK_OK(MPI_Precv_init(in, receives, 2 * n / receives, MPI_INT, before, 0, MPI_COMM_WORLD,
				MPI_INFO_NULL, &both[1]));
	CHECK_OK(MPI_Startall(2, both));
	for (int i = n - 1; i >= 0; i--) {
		out[2 * i] = out[2 * i + 1] = tap_rank * n + i;
		if (i)
			CHECK_OK(MPI_Pready(i, both[0]));
	}
	for (double until = time_now() + LIMIT_S; !flag && time_now() < until;)
		CHECK_OK(MPI_Parrived(both[1], receives - 1, &flag));
	CHECK_INT(flag, 1);
	CHECK_INT(in[2 * n - 1], before * n + n - 1);
	CHECK_OK(MPI_Parrived(both[1], 0, &flag));
	CHECK(!flag);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_Pready(0, both[0]));
	CHECK_OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
	for (int i = 0; i < n; i++)
		CHECK_INT(in[2 * i], before * n + i);
	MPI_Request_free(&both[0]);
	MPI_Request_free(&both[1]);
	return NULL;
}

/* ---- which belongs to which ------------------------------------------------------------------ */

#define PAIRS 12

static const char *in_order(int round)
{
	MPI_Request s[PAIRS], r[PAIRS];
	int got[PAIRS], sent[PAIRS], order[PAIRS], nth[3] = { 0 };

	/* tag i % 3; receives of a tag are made in order, the tags in any */
	for (int i = 0; i < PAIRS; i++) {
		sent[i] = tap_rank * 1000 + round * 100 + i;
		CHECK_OK(MPI_Psend_init(&sent[i], 1, 1, MPI_INT, next, i % 3 ? i % 3 << 29 : 0,
					MPI_COMM_WORLD, MPI_INFO_NULL, &s[i]));
	}
	shuffle(order, PAIRS);
	for (int i = 0; i < PAIRS; i++) {
		int tag = order[i] % 3, at = 3 * nth[tag]++ + tag;

		CHECK_OK(MPI_Precv_init(&got[at], 1, 1, MPI_INT, before, tag ? tag << 29 : 0,
					MPI_COMM_WORLD, MPI_INFO_NULL, &r[at]));
	}
	CHECK_OK(MPI_Startall(PAIRS, r));
	CHECK_OK(MPI_Startall(PAIRS, s));
	for (int i = PAIRS - 1; i >= 0; i--)
		CHECK_OK(MPI_Pready(0, s[i]));
	CHECK_OK(MPI_Waitall(PAIRS, s, MPI_STATUSES_IGNORE));
	CHECK_OK(MPI_Waitall(PAIRS, r, MPI_STATUSES_IGNORE));
	for (int i = 0; i < PAIRS; i++) {
		CHECK_INT(got[i], before * 1000 + round * 100 + i);
		CHECK_OK(MPI_Request_free(&s[i]));
		CHECK_OK(MPI_Request_free(&r[i]));
	}
	return NULL;
}

/* Ordinary receives of any tag and source take no part of it, and the other way round. */
static const char *apart_from_messages(int round)
{
	MPI_Request both[2], any;
	int mine = round, theirs = -1, message = -1;
	MPI_Status status;

	MPI_Irecv(&message, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any);
	MPI_Psend_init(&mine, 1, 1, MPI_INT, next, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
	MPI_Precv_init(&theirs, 1, 1, MPI_INT, before, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
	MPI_Startall(2, both);
	MPI_Pready(0, both[0]);
	CHECK_OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
	CHECK_INT(theirs, round);
	mine = round + 77;
	MPI_Send(&mine, 1, MPI_INT, next, 9, MPI_COMM_WORLD);
	CHECK_OK(MPI_Wait(&any, &status));
	CHECK_INT(message, round + 77);
	CHECK_INT(status.MPI_TAG, 9);
	MPI_Request_free(&both[0]);
	MPI_Request_free(&both[1]);
	MPI_Barrier(MPI_COMM_WORLD); /* no receive of any message is left */
	return NULL;
}

/* A pair that is freed unused does not shift those made later. */
static const char *freed_unused(int round)
{
	int mine[2] = { round, round + 1 }, theirs = -1, never = -1;
	MPI_Request r[2], s[2];

	MPI_Precv_init(&never, 1, 1, MPI_INT, before, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
	CHECK_OK(MPI_Request_free(&r[0]));
	MPI_Precv_init(&theirs, 1, 1, MPI_INT, before, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
	MPI_Psend_init(&mine[0], 1, 1, MPI_INT, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &s[0]);
	CHECK_OK(MPI_Request_free(&s[0]));
	MPI_Psend_init(&mine[1], 1, 1, MPI_INT, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &s[1]);
	MPI_Start(&r[1]);
	MPI_Start(&s[1]);
	MPI_Pready(0, s[1]);
	CHECK_OK(MPI_Wait(&s[1], MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
	CHECK_INT(theirs, round + 1);
	CHECK_INT(never, -1);
	MPI_Request_free(&s[1]);
	MPI_Request_free(&r[1]);
	return NULL;
}

/* ---- while the receiver computes ------------------------------------------------------------- */

/* Rank 0: one partition while rank 1 computes, then the others. */
static void send_to_computing(int round, MPI_Request r)
{
	memset(big_out, 0x55 + round, BIG);
	MPI_Start(&r);
	MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* it has started */
	MPI_Pready(0, r);
	MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Pready_range(1, LANDING - 1, r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

/* Rank 1: whether the first partition comes by itself. */
static bool comes_alone(int round, MPI_Request r)
{
	volatile unsigned char *last = big_in + BIG / LANDING - 1;
	bool there;

	memset(big_in, 0, BIG);
	MPI_Start(&r);
	MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	for (double until = time_now() + LIMIT_S; *last != 0x55 + round && time_now() < until;)
		continue;
	there = *last == 0x55 + round;
	MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	return there;
}

static const char *lands_alone(int round)
{
	MPI_Request r;
	bool there = true;

	if (tap_rank > 1 || tap_size < 2)
		return NULL;
	if (tap_rank == 0)
		MPI_Psend_init(big_out, LANDING, BIG / LANDING, MPI_BYTE, 1, 0, MPI_COMM_WORLD,
			       MPI_INFO_NULL, &r);
	else
		MPI_Precv_init(big_in, LANDING, BIG / LANDING, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
			       MPI_INFO_NULL, &r);
	/* after one start each side knows the other's request, whatever way the offer takes */
	MPI_Start(&r);
	if (tap_rank == 0)
		MPI_Pready_range(0, LANDING - 1, r);
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	if (tap_rank == 0)
		send_to_computing(round, r);
	else
		there = comes_alone(round, r);
	MPI_Request_free(&r);
	CHECK(there);
	for (int i = 0; tap_rank == 1 && i < BIG; i++)
		CHECK_INT(big_in[i], 0x55 + round);
	return NULL;
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
	pthread_t id;
	int number, error;
	MPI_Request send, recv;
};

#define PARTITIONS 64

/* Fills its partitions and waits for as many. */
static void *work(void *arg)
{
	struct worker *w = arg;
	const int part = BIG / PARTITIONS;

	for (int i = w->number; i < PARTITIONS; i += THREADS) {
		memset(big_out + (size_t)i * part, tap_rank + i + 1, (size_t)part);
		w->error |= MPI_Pready(i, w->send);
	}
	for (int i = w->number; i < PARTITIONS; i += THREADS) {
		double until = time_now() + LIMIT_S;
		int flag = 0;

		while (!flag && !w->error && time_now() < until)
			w->error |= MPI_Parrived(w->recv, i, &flag);
		w->error |= !flag ||
			    big_in[(size_t)(i + 1) * part - 1] != (unsigned char)(before + i + 1);
	}
	return NULL;
}

static const char *from_threads(int round)
{
	struct worker w[THREADS] = { 0 };
	MPI_Request both[2];

	(void)round;
	CHECK_OK(MPI_Psend_init(big_out, PARTITIONS, BIG / PARTITIONS, MPI_BYTE, next, 1,
				MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
	CHECK_OK(MPI_Precv_init(big_in, PARTITIONS, BIG / PARTITIONS, MPI_BYTE, before, 1,
				MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
	for (int start = 0; start < 3; start++) {
		CHECK_OK(MPI_Startall(2, both));
		for (int i = 0; i < THREADS; i++) {
			w[i] = (struct worker){ .number = i, .send = both[0], .recv = both[1] };
			pthread_create(&w[i].id, NULL, work, &w[i]);
		}
		CHECK_OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
		for (int i = 0; i < THREADS; i++) {
			pthread_join(w[i].id, NULL);
			CHECK_INT(w[i].error, 0);
		}
	}
	MPI_Request_free(&both[0]);
	MPI_Request_free(&both[1]);
	return NULL;
}

/* ---- at the edges ---------------------------------------------------------------------------- */

static const char *nobody(int round)
{
	MPI_Request both[2];
	MPI_Status status;
	int flag;

	(void)round;
	CHECK_OK(MPI_Psend_init(out, 3, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
				&both[0]));
	CHECK_OK(MPI_Precv_init(in, 3, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
				&both[1]));
	CHECK_OK(MPI_Startall(2, both));
	CHECK_OK(MPI_Wait(&both[1], &status));
	CHECK_INT(status.MPI_SOURCE, MPI_PROC_NULL);
	CHECK_INT(status.MPI_TAG, MPI_ANY_TAG);
	CHECK_INT(count_of(&status), 0);
	CHECK_OK(MPI_Pready_range(0, 1, both[0]));
	CHECK_OK(MPI_Test(&both[0], &flag, &status));
	CHECK_INT(flag, 0); /* partition 2 is not ready */
	CHECK_OK(MPI_Pready(2, both[0]));
	CHECK_OK(MPI_Wait(&both[0], &status));
	MPI_Request_free(&both[0]);
	MPI_Request_free(&both[1]);
	return NULL;
}

static const char *nothing(int round)
{
	/* partitions and elements of the sender and of the receiver: no byte in any of them */
	static const int shape[][4] = {
		{ 0, 5, 0, 5 }, { 3, 0, 2, 0 }, { 0, 1, 4, 0 }, { 4, 0, 0, 2 }
	};
	const int *n = shape[round % 4];
	MPI_Request both[2];
	MPI_Status status;
	int flag;

	CHECK_OK(MPI_Psend_init(out, n[0], n[1], MPI_INT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
				&both[0]));
	CHECK_OK(MPI_Precv_init(in, n[2], n[3], MPI_INT, before, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
				&both[1]));
	for (int start = 0; start < 50; start++) {
		CHECK_OK(MPI_Startall(2, both));
		for (int i = 0; i < n[0]; i++)
			CHECK_OK(MPI_Pready(i, both[0]));
		CHECK_OK(MPI_Wait(&both[1], &status));
		CHECK_INT(count_of(&status), 0);
		CHECK_OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
	}
	if (n[2])
		CHECK_OK(MPI_Parrived(both[1], n[2] - 1, &flag));
	MPI_Request_free(&both[0]);
	MPI_Request_free(&both[1]);
	return NULL;
}

/* Both sides learn of it, each time. */
static const char *do_not_fit(int round)
{
	MPI_Request both[2];

	CHECK_OK(MPI_Psend_init(out, 2, 6, MPI_INT, next, 4, MPI_COMM_WORLD, MPI_INFO_NULL,
				&both[0]));
	CHECK_OK(MPI_Precv_init(in, 3, 4 + (round % 2 ? 1 : -1), MPI_INT, before, 4, MPI_COMM_WORLD,
				MPI_INFO_NULL, &both[1]));
	for (int start = 0; start < 20; start++) {
		CHECK_OK(MPI_Startall(2, both));
		MPI_Pready_range(0, 1, both[0]);
		CHECK_CLASS(MPI_Wait(&both[1], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
		CHECK_CLASS(MPI_Wait(&both[0], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
	}
	CHECK_OK(MPI_Request_free(&both[0]));
	CHECK_OK(MPI_Request_free(&both[1]));
	return NULL;
}

static const char *wrong_calls(int round)
{
	MPI_Request both[2], plain;
	int flag;

	(void)round;
	MPI_Psend_init(out, 2, 1, MPI_INT, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
	MPI_Precv_init(in, 2, 1, MPI_INT, before, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
	MPI_Send_init(out, 1, MPI_INT, next, 6, MPI_COMM_WORLD, &plain);
	CHECK_CLASS(MPI_Pready(0, both[0]), MPI_ERR_REQUEST); /* not started */
	CHECK_OK(MPI_Parrived(both[1], 0, &flag));
	CHECK_INT(flag, 1);
	CHECK_OK(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
	CHECK_INT(flag, 1);
	CHECK_OK(MPI_Startall(2, both));
	CHECK_CLASS(MPI_Start(&both[0]), MPI_ERR_REQUEST);
	CHECK_CLASS(MPI_Pready(2, both[0]), MPI_ERR_ARG);
	CHECK_CLASS(MPI_Pready(-1, both[0]), MPI_ERR_ARG);
	CHECK_CLASS(MPI_Pready_range(1, 2, both[0]), MPI_ERR_ARG);
	CHECK_CLASS(MPI_Pready(0, both[1]), MPI_ERR_REQUEST);
	CHECK_CLASS(MPI_Pready(0, plain), MPI_ERR_REQUEST);
	CHECK_CLASS(MPI_Parrived(both[0], 0, &flag), MPI_ERR_REQUEST);
	CHECK_CLASS(MPI_Parrived(both[1], 2, &flag), MPI_ERR_ARG);
	CHECK_OK(MPI_Pready(1, both[0]));
	CHECK_CLASS(MPI_Pready(1, both[0]), MPI_ERR_ARG); /* ready already */
	CHECK_CLASS(MPI_Pready_range(0, 1, both[0]), MPI_ERR_ARG);
	CHECK_CLASS(MPI_Cancel(&both[0]), MPI_ERR_REQUEST);
	CHECK_CLASS(MPI_Request_free(&both[1]), MPI_ERR_REQUEST); /* active */
	CHECK(both[1] != MPI_REQUEST_NULL);
	CHECK_OK(MPI_Pready(0, both[0]));
	CHECK_OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
	MPI_Request_free(&both[0]);
	MPI_Request_free(&both[1]);
	MPI_Request_free(&plain);
	return NULL;
}

int main(int argc, char **argv)
{
	const bool threads = argc > 3;
	int level;

	MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
	tap_start(threads ? 3 : argc, argv, 6);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	next = (tap_rank + 1) % tap_size;
	before = (tap_rank + tap_size - 1) % tap_size;
	big_out = malloc(BIG);
	big_in = malloc(BIG);
	if (!big_out || !big_in)
		MPI_Abort(MPI_COMM_WORLD, 2);
	tap_case("partitioned: any numbers of partitions, of any datatype", any_partitions);
	tap_case("partitioned: in the order of the calls, by tags", in_order);
	tap_case("partitioned: apart from messages", apart_from_messages);
	tap_case("partitioned: requests that are freed unused", freed_unused);
	tap_case("partitioned: to and from nobody", nobody);
	tap_case("partitioned: no bytes", nothing);
	tap_case("partitioned: sides that do not fit", do_not_fit);
	tap_case("partitioned: wrong calls", wrong_calls);
	tap_rounds_set(2);
	tap_case("partitioned: very many partitions", very_many);
	tap_case("partitioned: they land while the receiver computes", lands_alone);
	if (threads)
		tap_case("partitioned: 64 partitions from 4 threads", from_threads);
	free(big_out);
	free(big_in);
	return tap_end();
}
