/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Sends that are cancelled. While the receiver makes no call at all a wait for them ends; and in
 * a stream of sends of all kinds, some cancelled at any time, each is either cancelled or
 * received, in order, however it is received. The same in two threads at a time. For two ranks.
 *
 * "tame" leaves out what MPICH 4.0 and Open MPI 4.1 do not do: to cancel sends.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "test/mpi/pt2pt/check.h"

#define LONG    (300 << 10)
#define QUIET   4 /* sends to a receiver that makes no call; more are limited by PTL_MPI_SLOTS */
#define MANY    6000
#define STREAM  60
#define WINDOW  5
#define END     (-1)
#define STREAMS 2

static MPI_Win win;
static _Atomic int *done; /* of both ranks: the sender's word to a receiver that makes no call */

/* ---- a receiver that makes no call ----------------------------------------------------------- */

enum { EMPTY, SYNC, SYNC_LONGER, STANDARD, GAPS, PERSISTENT, KINDS };

static char data[LONG], in[LONG];

static void start(int kind, int tag, MPI_Datatype gaps, MPI_Request *r)
{
	switch (kind) {
	case EMPTY:
		MPI_Issend(NULL, 0, MPI_BYTE, 1, tag, MPI_COMM_WORLD, r);
		break;
	case SYNC:
		MPI_Issend(data, 1, MPI_BYTE, 1, tag, MPI_COMM_WORLD, r);
		break;
	case SYNC_LONGER:
		MPI_Issend(data, 5000, MPI_BYTE, 1, tag, MPI_COMM_WORLD, r);
		break;
	case STANDARD:
		MPI_Isend(data, LONG, MPI_BYTE, 1, tag, MPI_COMM_WORLD, r);
		break;
	case GAPS:
		MPI_Isend(data, 1, gaps, 1, tag, MPI_COMM_WORLD, r);
		break;
	default:
		MPI_Ssend_init(data, 100, MPI_BYTE, 1, tag, MPI_COMM_WORLD, r);
		MPI_Start(r);
	}
}

static const char *cancel_all(int kind)
{
	MPI_Request r[QUIET];
	MPI_Datatype gaps;
	MPI_Status s;
	int flag, kept = 0;

	MPI_Type_vector(LONG / 4, 1, 4, MPI_BYTE, &gaps);
	MPI_Type_commit(&gaps);
	for (int i = 0; i < QUIET; i++)
		start(kind, i % 2, gaps, &r[i]);
	for (int i = 0; i < QUIET; i++)
		MPI_Cancel(&r[i]);
	for (int i = QUIET - 1; i >= 0; i--) {
		MPI_Wait(&r[i], &s);
		MPI_Test_cancelled(&s, &flag);
		kept += !flag;
		if (kind == PERSISTENT)
			MPI_Request_free(&r[i]);
		CHECK(r[i] == MPI_REQUEST_NULL);
	}
	MPI_Type_free(&gaps);
	CHECK_INT(kept, 0);
	return NULL;
}

/* The receiver has the headers in its list (`seen`), or has not looked since they came. */
static const char *quiet(int round)
{
	int kind = round % KINDS, number = round + 1, flag = 0;
	bool seen = round / KINDS % 2;
	const char *wrong = NULL;
	MPI_Status s;

	if (tap_rank > 1)
		return NULL;
	MPI_Sendrecv(NULL, 0, MPI_BYTE, 1 - tap_rank, 9, NULL, 0, MPI_BYTE, 1 - tap_rank, 9,
		     MPI_COMM_WORLD, &s);
	if (tap_rank == 0) {
		if (seen) {
			MPI_Request first;

			MPI_Issend(data, 2, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &first);
			MPI_Recv(NULL, 0, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &s);
			wrong = cancel_all(kind);
			MPI_Cancel(&first);
			MPI_Wait(&first, &s);
			MPI_Test_cancelled(&s, &flag);
			if (!flag && !wrong)
				wrong = tap_wrong("a message that was probed was not cancelled");
		} else {
			wrong = cancel_all(kind);
		}
		atomic_store(done, number);
		MPI_Send(NULL, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
		return wrong;
	}
	if (seen) {
		MPI_Probe(0, 3, MPI_COMM_WORLD, &s);
		MPI_Send(NULL, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
	}
	while (atomic_load(done) != number)
		sched_yield();
	MPI_Recv(in, LONG, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
	CHECK_INT(s.MPI_TAG, 5);
	for (int tag = 0; tag < 4; tag++) {
		MPI_Iprobe(0, tag, MPI_COMM_WORLD, &flag, &s);
		CHECK_INT(flag, 0);
	}
	return NULL;
}

/* More than a receiver has room for at a time; it waits in a call, and is asked for none of
 * them. */
static const char *many(int round)
{
	static MPI_Request r[MANY];
	static MPI_Status s[MANY];
	int flag, kept = 0;

	(void)round;
	if (tap_rank == 0) {
		for (int i = 0; i < MANY; i++)
			MPI_Issend(data, i % 3, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &r[i]);
		for (int i = 0; i < MANY; i++)
			MPI_Cancel(&r[i]);
		MPI_Waitall(MANY, r, s);
		for (int i = 0; i < MANY; i++) {
			MPI_Test_cancelled(&s[i], &flag);
			kept += !flag;
		}
		MPI_Send(NULL, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
		CHECK_INT(kept, 0);
	}
	if (tap_rank == 1) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Iprobe(0, 1, MPI_COMM_WORLD, &flag, s);
		CHECK_INT(flag, 0);
		CHECK(counter("unexpected_now") <= 0); /* -1: it has no such counter */
	}
	return NULL;
}

/* ---- to oneself ------------------------------------------------------------------------------ */

/* Nobody else has anything to do: the first look says what became of it. Of some a message was seen
 * before, or another one of them is received. */
static const char *to_oneself(int round)
{
	const int lengths[] = { 0, 40, 5000, LONG }, n = lengths[round % 4];
	const bool persistent = round / 4 % 2, seen = round / 8 % 2;
	MPI_Request r, other;
	int flag = 0, gone = -1;
	MPI_Status s;

	MPI_Issend(data, n, MPI_BYTE, 0, 0, MPI_COMM_SELF, &other);
	if (persistent)
		MPI_Ssend_init(data, n, MPI_BYTE, 0, 1, MPI_COMM_SELF, &r);
	if (persistent)
		MPI_Start(&r);
	else
		MPI_Issend(data, n, MPI_BYTE, 0, 1, MPI_COMM_SELF, &r);
	if (seen)
		MPI_Probe(0, 1, MPI_COMM_SELF, &s);
	MPI_Cancel(&r);
	if (round % 3 == 0)
		MPI_Request_get_status(r, &flag, &s);
	else
		MPI_Test(&r, &flag, &s);
	CHECK_INT(flag, 1);
	MPI_Test_cancelled(&s, &gone);
	CHECK_INT(gone, 1);
	if (round % 3 == 0)
		MPI_Wait(&r, &s);
	if (persistent)
		MPI_Request_free(&r);
	CHECK(r == MPI_REQUEST_NULL);
	MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, &s);
	CHECK_INT(flag, 0);
	/* one that was received is not */
	MPI_Recv(in, LONG, MPI_BYTE, 0, 0, MPI_COMM_SELF, &s);
	CHECK_INT(count_of(&s), n);
	MPI_Cancel(&other);
	MPI_Test(&other, &flag, &s);
	CHECK_INT(flag, 1);
	MPI_Test_cancelled(&s, &gone);
	CHECK_INT(gone, 0);
	return NULL;
}

/* ---- a stream -------------------------------------------------------------------------------- */

struct stream {
	MPI_Comm comm;
	uint64_t state;
	const char *wrong;
	int most; /* ints in a message: receives of few wait in the library, of many in Portals */
	int cancelled;
};

static struct stream stream[STREAMS];

static int choose(struct stream *t, int n)
{
	t->state = mix(t->state + 1);
	return (int)(t->state % (uint64_t)n);
}

static void send_one(struct stream *t, int *message, MPI_Request *r)
{
	static const int lengths[] = { 1, 2, 100, 5000, 20000 };
	int n = lengths[choose(t, 5)];

	if (n > t->most)
		n = t->most;
	if (choose(t, 3))
		MPI_Issend(message, n, MPI_INT, 1, 1, t->comm, r);
	else
		MPI_Isend(message, n, MPI_INT, 1, 1, t->comm, r);
}

/* Messages of numbers that rise; then which of them were cancelled. */
static void stream_out(struct stream *t)
{
	static int message[STREAMS][STREAM][20000];
	int(*mine)[20000] = message[t - stream];
	MPI_Request r[STREAM];
	MPI_Status s;
	int gone[STREAM], end = END, next = 0;

	for (int i = 0; i < STREAM; i++) {
		mine[i][0] = i;
		send_one(t, mine[i], &r[i]);
		for (; next <= i && choose(t, 3); next++) {
			if (choose(t, 2))
				MPI_Cancel(&r[next + choose(t, i - next + 1)]);
			if (choose(t, 3) == 0)
				MPI_Test(&r[next], &gone[next], &s);
			else
				gone[next] = 0;
			if (!gone[next])
				MPI_Cancel(&r[next]);
			if (r[next] != MPI_REQUEST_NULL)
				MPI_Wait(&r[next], &s);
			MPI_Test_cancelled(&s, &gone[next]);
		}
	}
	for (; next < STREAM; next++) {
		MPI_Wait(&r[next], &s);
		MPI_Test_cancelled(&s, &gone[next]);
	}
	MPI_Send(&end, 1, MPI_INT, 1, 1, t->comm);
	for (int i = 0; i < STREAM; i++)
		t->cancelled += gone[i];
	/* not the next round before the last receives of this one are cancelled */
	MPI_Ssend(gone, STREAM, MPI_INT, 1, 2, t->comm);
}

/* The next number, in any way. */
static int take(struct stream *t, int *buf)
{
	MPI_Message m;
	MPI_Status s;

	switch (choose(t, 3)) {
	case 0:
		MPI_Mprobe(choose(t, 2) ? 0 : MPI_ANY_SOURCE, 1, t->comm, &m, &s);
		sched_yield();
		MPI_Mrecv(buf, t->most, MPI_INT, &m, &s);
		break;
	default:
		MPI_Recv(buf, t->most, MPI_INT, choose(t, 2) ? 0 : MPI_ANY_SOURCE, 1, t->comm, &s);
	}
	return buf[0];
}

static const char *compare(struct stream *t, const int *got, int n)
{
	int gone[STREAM], at = 0;

	MPI_Recv(gone, STREAM, MPI_INT, 0, 2, t->comm, MPI_STATUS_IGNORE);
	for (int i = 0; i < STREAM; i++) {
		if (gone[i])
			continue;
		if (at == n || got[at] != i)
			return tap_wrong("number %d was not cancelled, and %d came instead", i,
					 at == n ? END : got[at]);
		at++;
	}
	return at == n ? NULL : tap_wrong("number %d was cancelled, and came", got[at]);
}

static void stream_in(struct stream *t)
{
	static int buf[STREAMS][WINDOW][20000];
	int(*mine)[20000] = buf[t - stream], got[STREAM + 1], n = 0;
	MPI_Request r[WINDOW];
	int last = 0;

	while (last != END) {
		int posted = choose(t, 2) ? choose(t, WINDOW) + 1 : 0;

		if (choose(t, 3) == 0)
			sched_yield();
		for (int i = 0; i < posted; i++)
			MPI_Irecv(mine[i], t->most, MPI_INT, 0, 1, t->comm, &r[i]);
		for (int i = 0; i < posted; i++) {
			if (last == END)
				MPI_Cancel(&r[i]);
			MPI_Wait(&r[i], MPI_STATUS_IGNORE);
			if (last != END && (last = mine[i][0]) != END && n <= STREAM)
				got[n++] = last;
		}
		if (!posted && (last = take(t, mine[0])) != END && n <= STREAM)
			got[n++] = last;
	}
	t->wrong = compare(t, got, n);
}

static void *run(void *argument)
{
	struct stream *t = argument;

	t->cancelled = 0;
	t->wrong = NULL;
	if (tap_rank == 0)
		stream_out(t);
	else
		stream_in(t);
	return NULL;
}

static int cancelled; /* of all streams */

static const char *one_stream(int round)
{
	stream[0].most = round % 2 ? 20000 : 2000;
	if (tap_rank < 2)
		run(&stream[0]);
	cancelled += stream[0].cancelled;
	return stream[0].wrong;
}

static const char *two_streams(int round)
{
	pthread_t thread[STREAMS];

	if (tap_rank > 1)
		return NULL;
	for (int i = 0; i < STREAMS; i++) {
		stream[i].most = (round + i) % 2 ? 20000 : 2000;
		if (pthread_create(&thread[i], NULL, run, &stream[i]))
			return tap_wrong("no thread");
	}
	for (int i = 0; i < STREAMS; i++)
		pthread_join(thread[i], NULL);
	return stream[0].wrong ? stream[0].wrong : stream[1].wrong;
}

/* The streams would pass if nothing were ever cancelled. */
static const char *some(int round)
{
	(void)round;
	CHECK(tap_rank || cancelled > 0);
	return NULL;
}

int main(int argc, char **argv)
{
	MPI_Aint size;
	int level, unit;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	tap_start(argc, argv, 2 * KINDS);
	MPI_Win_allocate_shared(tap_rank == 0 ? sizeof(*done) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
				&done, &win);
	MPI_Win_shared_query(win, 0, &size, &unit, &done);
	for (int i = 0; i < STREAMS; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &stream[i].comm);
		stream[i].state = mix(draw() + (uint64_t)tap_rank * 7 + (uint64_t)i);
	}
	if (!tap_tame)
		tap_case("cancel: sends to a receiver that makes no call", quiet);
	tap_rounds_set(1);
	if (!tap_tame)
		tap_case("cancel: more sends than the receiver has room for", many);
	tap_rounds_set(16);
	if (!tap_tame)
		tap_case("cancel: a send to oneself, at once", to_oneself);
	tap_rounds_set(40);
	tap_case("cancel: each send is cancelled or received, in order", one_stream);
	tap_rounds_set(1);
	if (!tap_tame)
		tap_case("cancel: some of them are", some);
	tap_rounds_set(20);
	if (level == MPI_THREAD_MULTIPLE)
		tap_case("cancel: the same in two threads", two_streams);
	for (int i = 0; i < STREAMS; i++)
		MPI_Comm_free(&stream[i].comm);
	MPI_Win_free(&win);
	return tap_end();
}
