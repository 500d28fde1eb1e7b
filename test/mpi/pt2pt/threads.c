/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_THREAD_MULTIPLE: threads of two ranks send and receive at once, each in its own way, on
 * one communicator and on one each; threads that wait are woken by what others take in; a thread
 * computes while another waits. Given a number as second argument: MPI_Init_thread gives this
 * level.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "test/mpi/pt2pt/check.h"

#define THREADS 6
#define MOST    70000
#define TIMES   150

static int partner;
static MPI_Comm shared, own[THREADS];

/* The error that a thread found; tap_wrong is for one thread. */
struct thread {
	pthread_t id;
	int number;
	MPI_Comm comm;
	char wrong[200];
};

#define THREAD_CHECK(t, condition)                                                                 \
	do {                                                                                       \
		if (!(condition) && !(t)->wrong[0])                                                \
			snprintf((t)->wrong, sizeof((t)->wrong), "thread %d, line %d: not so: %s", \
				 (t)->number, __LINE__, #condition);                               \
	} while (0)

static int bytes_of(int thread, int i)
{
	uint64_t k = mix((uint64_t)(thread * 100000 + i));

	return (int)(k % 5 == 0 ? k / 5 % MOST : k / 5 % 300);
}

/* ---- ways to exchange ------------------------------------------------------------------------ */

static void by_blocking_calls(struct thread *t, unsigned char *out, unsigned char *in, int n,
			      int tag, MPI_Status *s)
{
	if (tap_rank % 2) {
		MPI_Recv(in, MOST, MPI_BYTE, partner, tag, t->comm, s);
		MPI_Send(out, n, MPI_BYTE, partner, tag, t->comm);
	} else {
		MPI_Ssend(out, n, MPI_BYTE, partner, tag, t->comm);
		MPI_Recv(in, MOST, MPI_BYTE, partner, tag, t->comm, s);
	}
}

static void by_testing(struct thread *t, unsigned char *out, unsigned char *in, int n, int tag,
		       MPI_Status *s)
{
	MPI_Request r[2];
	int flag = 0;

	MPI_Irecv(in, MOST, MPI_BYTE, partner, tag, t->comm, &r[0]);
	MPI_Isend(out, n, MPI_BYTE, partner, tag, t->comm, &r[1]);
	while (!flag)
		MPI_Test(&r[0], &flag, s);
	for (flag = 0; !flag;)
		MPI_Testall(1, &r[1], &flag, MPI_STATUSES_IGNORE);
}

static void by_sendrecv(struct thread *t, unsigned char *out, unsigned char *in, int n, int tag,
			MPI_Status *s)
{
	MPI_Sendrecv(out, n, MPI_BYTE, partner, tag, in, MOST, MPI_BYTE, partner, tag, t->comm, s);
}

static void by_probe(struct thread *t, unsigned char *out, unsigned char *in, int n, int tag,
		     MPI_Status *s)
{
	MPI_Request r;
	int bytes;

	MPI_Isend(out, n, MPI_BYTE, partner, tag, t->comm, &r);
	MPI_Probe(MPI_ANY_SOURCE, tag, t->comm, s);
	MPI_Get_count(s, MPI_BYTE, &bytes);
	MPI_Recv(in, bytes, MPI_BYTE, s->MPI_SOURCE, tag, t->comm, s);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void by_matched_probe(struct thread *t, unsigned char *out, unsigned char *in, int n,
			     int tag, MPI_Status *s)
{
	MPI_Request r;
	MPI_Message m;
	int flag = 0;

	MPI_Issend(out, n, MPI_BYTE, partner, tag, t->comm, &r);
	while (!flag)
		MPI_Improbe(partner, tag, t->comm, &flag, &m, s);
	MPI_Mrecv(in, MOST, MPI_BYTE, &m, s);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void by_waiting_for_any(struct thread *t, unsigned char *out, unsigned char *in, int n,
			       int tag, MPI_Status *s)
{
	MPI_Request r[2];
	MPI_Status one;
	int i;

	MPI_Irecv(in, MOST, MPI_BYTE, partner, tag, t->comm, &r[0]);
	MPI_Isend(out, n, MPI_BYTE, partner, tag, t->comm, &r[1]);
	for (int k = 0; k < 2; k++) {
		MPI_Waitany(2, r, &i, &one);
		if (i == 0)
			*s = one;
	}
}

static void *exchange(void *argument)
{
	static void (*const ways[])(struct thread *, unsigned char *, unsigned char *, int, int,
				    MPI_Status *) = { by_blocking_calls, by_testing,
						      by_sendrecv,       by_probe,
						      by_matched_probe,  by_waiting_for_any };
	struct thread *t = argument;
	unsigned char *out = malloc(MOST), *in = malloc(MOST);
	MPI_Status s;

	for (int i = 0; i < TIMES && !t->wrong[0]; i++) {
		int n = bytes_of(t->number, i), tag = t->number * 10 + i % 3;

		fill_bytes(out, (size_t)n, t->number + i);
		ways[t->number](t, out, in, n, tag, &s);
		THREAD_CHECK(t, s.MPI_SOURCE == partner && s.MPI_TAG == tag);
		THREAD_CHECK(t, count_of(&s) == n);
		THREAD_CHECK(t, wrong_byte(in, (size_t)n, t->number + i) == -1);
	}
	free(out);
	free(in);
	return NULL;
}

static const char *run(void *(*body)(void *), struct thread *t, int n)
{
	for (int i = 0; i < n; i++)
		pthread_create(&t[i].id, NULL, body, &t[i]);
	for (int i = 0; i < n; i++)
		pthread_join(t[i].id, NULL);
	for (int i = 0; i < n; i++)
		if (t[i].wrong[0])
			return tap_wrong("%s", t[i].wrong);
	return NULL;
}

static const char *exchanges(int round)
{
	struct thread t[THREADS];

	if (partner == tap_rank)
		return NULL;
	for (int i = 0; i < THREADS; i++)
		t[i] = (struct thread){ .number = i, .comm = round % 2 ? own[i] : shared };
	return run(exchange, t, THREADS);
}

/* ---- order among threads --------------------------------------------------------------------- */

#define STREAM 3000

static _Atomic int seen[STREAM * 2];

/* Several threads receive the same stream: each sees its part in order, and nothing is seen
 * twice. */
static void *take_stream(void *argument)
{
	struct thread *t = argument;
	int last = -1, value = 0;

	for (int i = 0; i < STREAM / 3; i++) {
		MPI_Recv(&value, 1, MPI_INT, partner, 500, t->comm, MPI_STATUS_IGNORE);
		THREAD_CHECK(t, value > last);
		THREAD_CHECK(t, value >= 0 && value < STREAM && !atomic_fetch_add(&seen[value], 1));
		last = value;
	}
	return NULL;
}

static const char *stream(int round)
{
	struct thread t[3];

	(void)round;
	if (partner == tap_rank)
		return NULL;
	memset(seen, 0, sizeof(seen));
	if (tap_rank % 2) {
		for (int i = 0; i < STREAM; i++)
			MPI_Send(&i, 1, MPI_INT, partner, 500, shared);
		return NULL;
	}
	for (int i = 0; i < 3; i++)
		t[i] = (struct thread){ .number = i, .comm = shared };
	return run(take_stream, t, 3);
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* Were more waits long than may be? Where many processes want each core, time cannot say. */
static bool too_many(int slept, int most)
{
	double load = 0;

	if (slept <= most)
		return false;
	getloadavg(&load, 1);
	if (load < 8.0 * (double)sysconf(_SC_NPROCESSORS_ONLN))
		return true;
	printf("# %d long waits are not judged at a load of %.0f\n", slept, load);
	return false;
}

static _Atomic bool over;

/* Takes in everything, by tests of a request that does not end. */
static void *spin(void *argument)
{
	struct thread *t = argument;
	MPI_Request r;
	int flag = 0;

	MPI_Irecv(NULL, 0, MPI_BYTE, tap_rank, 999, t->comm, &r);
	while (!atomic_load(&over))
		MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
	MPI_Cancel(&r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	return NULL;
}

/* Back and forth while another thread takes the events: a wait must not sleep over them. */
static const char *woken(int round)
{
	struct thread t = { .comm = shared };
	int slept = 0;

	(void)round;
	if (partner == tap_rank)
		return NULL;
	over = false;
	pthread_create(&t.id, NULL, spin, &t);
	for (int i = 0; i < 200; i++) {
		double start = time_now();

		if (tap_rank % 2) {
			MPI_Recv(NULL, 0, MPI_BYTE, partner, 1, shared, MPI_STATUS_IGNORE);
			MPI_Send(NULL, 0, MPI_BYTE, partner, 2, shared);
		} else {
			MPI_Ssend(NULL, 0, MPI_BYTE, partner, 1, shared);
			MPI_Probe(partner, 2, shared, MPI_STATUS_IGNORE);
			MPI_Recv(NULL, 0, MPI_BYTE, partner, 2, shared, MPI_STATUS_IGNORE);
		}
		/* a wait that sleeps over an event looks by itself after 250 ms */
		slept += time_now() - start > 0.24;
	}
	over = true;
	pthread_join(t.id, NULL);
	if (tap_rank == 0)
		printf("# %d of 200 times back and forth took 240 ms or more\n", slept);
	return too_many(slept, 20)
		       ? tap_wrong("%d waits of 200 slept until they looked by themselves", slept)
		       : NULL;
}

static void *take_last(void *argument)
{
	MPI_Recv(NULL, 0, MPI_BYTE, partner, 601, shared, MPI_STATUS_IGNORE);
	return argument;
}

/* long sends whose events take all of the first queue, in mpi_shim/core/progress.c */
#define UNTAKEN 16

/* A thread waits; what another waits for comes to a queue that was not in use when the first
 * began. */
static const char *queue_added(int round)
{
	static char bytes[UNTAKEN][MOST];
	MPI_Request r[UNTAKEN];
	pthread_t id;
	int slept = 0;

	(void)round;
	if (partner == tap_rank)
		return NULL;
	for (int i = 0; i < UNTAKEN && tap_rank % 2 == 0; i++)
		MPI_Issend(bytes[i], MOST, MPI_BYTE, partner, 600, shared, &r[i]);
	if (tap_rank % 2 == 0)
		pthread_create(&id, NULL, take_last, NULL);
	for (int i = 0; i < 20; i++) {
		double start;

		usleep(tap_rank % 2 ? 0 : 10000); /* the thread waits, with the queue not in use */
		start = time_now();
		if (tap_rank % 2)
			MPI_Recv(NULL, 0, MPI_BYTE, partner, 602, shared, MPI_STATUS_IGNORE);
		else
			MPI_Ssend(NULL, 0, MPI_BYTE, partner, 602, shared);
		slept += time_now() - start > 0.1;
	}
	if (tap_rank % 2) {
		MPI_Send(NULL, 0, MPI_BYTE, partner, 601, shared);
		for (int i = 0; i < UNTAKEN; i++)
			MPI_Recv(bytes[i], MOST, MPI_BYTE, partner, 600, shared, MPI_STATUS_IGNORE);
	} else {
		pthread_join(id, NULL);
		MPI_Waitall(UNTAKEN, r, MPI_STATUSES_IGNORE);
	}
	return too_many(slept, 8) ? tap_wrong("%d sends of 20 slept", slept) : NULL;
}

static MPI_Request generalized;

static int query(void *state, MPI_Status *s)
{
	(void)state;
	MPI_Status_set_elements(s, MPI_BYTE, 3);
	MPI_Status_set_cancelled(s, 0);
	return MPI_SUCCESS;
}

static int nothing(void *state)
{
	(void)state;
	return MPI_SUCCESS;
}

static int no_cancel(void *state, int complete)
{
	(void)state;
	(void)complete;
	return MPI_SUCCESS;
}

static void *complete(void *argument)
{
	(void)argument;
	MPI_Grequest_complete(generalized);
	return NULL;
}

static const char *generalized_from_thread(int round)
{
	int slept = 0;
	pthread_t id;
	MPI_Status s;

	(void)round;
	for (int i = 0; i < 40; i++) {
		double start = time_now();

		MPI_Grequest_start(query, nothing, no_cancel, NULL, &generalized);
		pthread_create(&id, NULL, complete, NULL);
		MPI_Request r = generalized;
		MPI_Wait(&r, &s);
		pthread_join(id, NULL);
		CHECK_INT(count_of(&s), 3);
		slept += time_now() - start > 0.24;
	}
	CHECK(!too_many(slept, 19));
	return NULL;
}

/* ---- computing ------------------------------------------------------------------------------- */

static void *compute(void *argument)
{
	volatile uint64_t *sum = argument;

	while (!atomic_load(&over))
		*sum += mix(*sum);
	return NULL;
}

static const char *computing(int round)
{
	static unsigned char out[1 << 20], in[1 << 20];
	uint64_t sum = 1;
	pthread_t id;
	MPI_Status s;

	(void)round;
	if (partner == tap_rank)
		return NULL;
	over = false;
	pthread_create(&id, NULL, compute, &sum);
	for (int i = 0; i < 20; i++) {
		fill_bytes(out, sizeof(out), tap_rank + i);
		MPI_Sendrecv(out, sizeof(out), MPI_BYTE, partner, 1, in, sizeof(in), MPI_BYTE,
			     partner, 1, shared, &s);
		if (wrong_byte(in, sizeof(in), partner + i) != -1)
			break;
	}
	over = true;
	pthread_join(id, NULL);
	CHECK_INT(wrong_byte(in, sizeof(in), partner + 19), -1);
	return NULL;
}

/* ---- levels ---------------------------------------------------------------------------------- */

static int levels(int argc, char **argv, int wanted)
{
	static const int level[] = { MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
				     MPI_THREAD_MULTIPLE };
	int provided = -1, asked = -1, main_thread = 0, ok;

	MPI_Init_thread(&argc, &argv, level[wanted], &provided);
	MPI_Query_thread(&asked);
	MPI_Is_thread_main(&main_thread);
	ok = provided == level[wanted] && asked == provided && main_thread;
	MPI_Finalize();
	printf("%sok 1 - threads: level %d is given when it is asked for\n1..1\n", ok ? "" : "not ",
	       wanted);
	return !ok;
}

int main(int argc, char **argv)
{
	int provided;

	if (argc > 2 && strcmp(argv[1], "level") == 0)
		return levels(argc, argv, atoi(argv[2]));
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	tap_start(argc, argv, 2);
	if (provided != MPI_THREAD_MULTIPLE)
		MPI_Abort(MPI_COMM_WORLD, 1);
	if (tap_rank % 2)
		partner = tap_rank - 1;
	else
		partner = tap_rank + 1 < tap_size ? tap_rank + 1 : tap_rank;
	MPI_Comm_dup(MPI_COMM_WORLD, &shared);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
	tap_case("threads: exchange in six ways at once", exchanges);
	tap_case("threads: share a stream of messages", stream);
	tap_case("threads: are woken by what others take in", woken);
	tap_case("threads: are woken for a queue that is new", queue_added);
	tap_case("threads: wait for what others complete", generalized_from_thread);
	tap_case("threads: compute while others wait", computing);
	MPI_Comm_free(&shared);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&own[i]);
	return tap_end();
}
