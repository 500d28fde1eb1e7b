/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Events of the tool interface that take two ranks, and threads: waits, requests, messages.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "test/mpi/job_check.h"

enum { LIMIT_S = 60, AWAITED = 1, NOW = 2, LONG = 300000 };

static MPI_Comm tool_comm; /* of the callbacks alone */

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The elements in the order in which they are described. */
struct of_message {
	MPI_Count bytes;
	int comm, source, tag, collective, waited;
};
struct of_wait {
	int requests, comm, peer, tag, what;
};
struct of_done {
	MPI_Count bytes;
	int comm, peer, tag, what, error;
};

static MPI_T_event_registration watch_event(const char *name, MPI_T_cb_safety safety,
					    MPI_T_event_cb_function *fn, void *data)
{
	MPI_T_event_registration r = NULL;
	int index = -1;

	CHECK_EQUAL(MPI_T_event_get_index(name, &index), MPI_SUCCESS);
	CHECK_EQUAL(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r), MPI_SUCCESS);
	CHECK_EQUAL(MPI_T_event_register_callback(r, safety, MPI_INFO_NULL, data, fn), MPI_SUCCESS);
	return r;
}

static void forget(MPI_T_event_registration r)
{
	CHECK_EQUAL(MPI_T_event_handle_free(r, NULL, NULL), MPI_SUCCESS);
}

/* ---- waits ----------------------------------------------------------------------------------- */

struct wait_log {
	int begins, ends, what, peer, tag, requests, comm;
};

/* Rank 1 sends what rank 0 waits for when this message says that it waits. */
static void say_that_it_waits(MPI_T_event_instance instance, MPI_T_event_registration r,
			      MPI_T_cb_safety safety, void *data)
{
	struct wait_log *log = data;
	struct of_wait w;

	(void)r;
	CHECK_EQUAL(safety, MPI_T_CB_REQUIRE_NONE);
	CHECK_EQUAL(MPI_T_event_copy(instance, &w), MPI_SUCCESS);
	if (w.comm == MPI_Comm_toint(tool_comm)) /* this callback's own */
		return;
	log->begins++;
	log->what = w.what;
	log->peer = w.peer;
	log->tag = w.tag;
	log->requests = w.requests;
	log->comm = w.comm;
	MPI_Send(NULL, 0, MPI_BYTE, 1, NOW, tool_comm);
}

static void count_end_of_wait(MPI_T_event_instance instance, MPI_T_event_registration r,
			      MPI_T_cb_safety safety, void *data)
{
	struct wait_log *log = data;
	struct of_wait w;

	(void)r;
	(void)safety;
	CHECK_EQUAL(MPI_T_event_copy(instance, &w), MPI_SUCCESS);
	if (w.comm != MPI_Comm_toint(tool_comm))
		log->ends++;
}

/* Send `value` when rank 0 waits. */
static void send_when_awaited(int value)
{
	double end = now_s() + LIMIT_S;
	int flag = 0;

	while (!flag && now_s() < end)
		MPI_Iprobe(0, NOW, tool_comm, &flag, MPI_STATUS_IGNORE);
	CHECK(flag);
	if (flag)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, NOW, tool_comm, MPI_STATUS_IGNORE);
	MPI_Send(&value, 1, MPI_INT, 0, AWAITED, MPI_COMM_WORLD);
}

static void wait_in_recv(int *value)
{
	MPI_Recv(value, 1, MPI_INT, 1, AWAITED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void wait_in_waitany(int *value)
{
	MPI_Request request[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };
	int index = -1;

	MPI_Irecv(value, 1, MPI_INT, 1, AWAITED, MPI_COMM_WORLD, &request[1]);
	MPI_Waitany(2, request, &index, MPI_STATUS_IGNORE);
	CHECK_EQUAL(index, 1);
}

static void wait_in(void (*wait)(int *value), int what, int peer, int tag, MPI_Comm comm)
{
	struct wait_log log = { 0 };
	MPI_T_event_registration begin, end;
	int value = 0;

	if (job_rank == 1) {
		send_when_awaited(4711);
		return;
	}
	if (job_rank != 0)
		return;
	begin = watch_event("mpi_wait_begin", MPI_T_CB_REQUIRE_NONE, say_that_it_waits, &log);
	end = watch_event("mpi_wait_end", MPI_T_CB_REQUIRE_NONE, count_end_of_wait, &log);
	wait(&value);
	forget(begin);
	forget(end);
	CHECK_EQUAL(value, 4711);
	CHECK_EQUAL(log.begins, 1);
	CHECK_EQUAL(log.ends, 1);
	CHECK_EQUAL(log.requests, 1);
	CHECK_EQUAL(log.what, what);
	CHECK_EQUAL(log.peer, peer);
	CHECK_EQUAL(log.tag, tag);
	CHECK_EQUAL(log.comm, comm == MPI_COMM_NULL ? 0 : MPI_Comm_toint(comm));
}

static void a_receive_that_waits_says_so_and_the_callback_may_call_mpi(void)
{
	wait_in(wait_in_recv, 1, 1, AWAITED, MPI_COMM_WORLD);
}

static void waitany_says_that_it_waits_for_one_of_several(void)
{
	wait_in(wait_in_waitany, 5, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_NULL);
}

/* ---- probes and collectives, where callbacks may not call MPI -------------------------------- */

static atomic_int waits_begun;

static void count_begin_of_wait(MPI_T_event_instance instance, MPI_T_event_registration r,
				MPI_T_cb_safety safety, void *data)
{
	struct wait_log *log = data;
	struct of_wait w;

	(void)r;
	(void)safety;
	MPI_T_event_copy(instance, &w);
	log->begins++;
	log->what = w.what;
	log->tag = w.tag;
	waits_begun++;
}

/* A thread of rank 0 passes on that the main thread waits. */
static void *pass_on(void *arg)
{
	double end = now_s() + LIMIT_S;

	while (!waits_begun && now_s() < end)
		sched_yield();
	MPI_Send(NULL, 0, MPI_BYTE, 1, NOW, tool_comm);
	return arg;
}

static void a_probe_says_that_it_waits(void)
{
	struct wait_log log = { 0 };
	MPI_T_event_registration r;
	pthread_t thread;
	int value = 0;

	if (job_rank == 1)
		send_when_awaited(42);
	if (job_rank != 0)
		return;
	waits_begun = 0;
	pthread_create(&thread, NULL, pass_on, NULL);
	r = watch_event("mpi_wait_begin", MPI_T_CB_REQUIRE_THREAD_SAFE, count_begin_of_wait, &log);
	MPI_Probe(1, AWAITED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	forget(r);
	pthread_join(thread, NULL);
	MPI_Recv(&value, 1, MPI_INT, 1, AWAITED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK_EQUAL(value, 42);
	CHECK(log.begins >= 1);
	CHECK_EQUAL(log.what, 6);
	CHECK_EQUAL(log.tag, AWAITED);
}

/* ---- requests -------------------------------------------------------------------------------- */

struct done_log {
	int of_tag[8], what[8];
	long bytes[8];
};

static void count_done(MPI_T_event_instance instance, MPI_T_event_registration r,
		       MPI_T_cb_safety safety, void *data)
{
	struct done_log *log = data;
	struct of_done d;

	(void)r;
	(void)safety;
	CHECK_EQUAL(MPI_T_event_copy(instance, &d), MPI_SUCCESS);
	CHECK_EQUAL(d.error, MPI_SUCCESS);
	if (d.comm != MPI_Comm_toint(tool_comm) || d.tag < 0 || d.tag >= 8)
		return;
	log->of_tag[d.tag]++;
	log->what[d.tag] = d.what;
	log->bytes[d.tag] = (long)d.bytes;
	CHECK_EQUAL(d.peer, 1 - job_rank);
}

static void every_request_says_once_that_it_is_complete(void)
{
	static char out[2][LONG], in[2][LONG];
	struct done_log log = { 0 };
	MPI_T_event_registration r;
	MPI_Request request[4];
	const int peer = 1 - job_rank;

	if (job_rank > 1)
		return;
	r = watch_event("mpi_request_complete", MPI_T_CB_REQUIRE_MPI_RESTRICTED, count_done, &log);
	MPI_Irecv(in[0], 8, MPI_BYTE, peer, 3 + peer, tool_comm, &request[0]);
	MPI_Irecv(in[1], LONG, MPI_BYTE, peer, 5 + peer, tool_comm, &request[1]);
	MPI_Isend(out[0], 8, MPI_BYTE, peer, 3 + job_rank, tool_comm, &request[2]);
	MPI_Isend(out[1], LONG, MPI_BYTE, peer, 5 + job_rank, tool_comm, &request[3]);
	MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
	forget(r);
	for (int of = 3; of <= 5; of += 2) {
		CHECK_EQUAL(log.of_tag[of + job_rank], 1);
		CHECK_EQUAL(log.what[of + job_rank], 0);
		CHECK_EQUAL(log.of_tag[of + peer], 1);
		CHECK_EQUAL(log.what[of + peer], 1);
		CHECK_EQUAL(log.bytes[of + peer], of == 3 ? 8 : LONG);
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 300 };

static atomic_int inside, at_once, matched, unexpected, wrong_levels;
static MPI_T_pvar_session session;
static MPI_T_pvar_handle posted;

static void only_one_at_a_time(MPI_T_event_instance instance, MPI_T_event_registration r,
			       MPI_T_cb_safety safety, void *data)
{
	struct of_message m = { .comm = -1 };
	unsigned long value = 0;

	(void)r;
	if (atomic_fetch_add(&inside, 1))
		at_once++;
	MPI_T_event_copy(instance, &m);
	if (m.comm == MPI_Comm_toint(MPI_COMM_WORLD) && !m.collective)
		atomic_fetch_add((atomic_int *)data, 1);
	wrong_levels += safety > MPI_T_CB_REQUIRE_MPI_RESTRICTED;
	if (MPI_T_pvar_read(session, posted, &value) != MPI_SUCCESS || value > 10 * THREADS)
		wrong_levels++;
	atomic_fetch_sub(&inside, 1);
}

static void *exchange_many(void *arg)
{
	const int tag = 100 + (int)(long)arg, peer = 1 - job_rank;

	for (int i = 0; i < ROUNDS; i++) {
		int out = i, in = -1;

		MPI_Sendrecv(&out, 1, MPI_INT, peer, tag, &in, 1, MPI_INT, peer, tag,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (in != i)
			wrong_levels++;
	}
	return NULL;
}

static void callbacks_of_many_threads_run_one_by_one(void)
{
	pthread_t thread[THREADS];
	MPI_T_event_registration a, b;
	int index, count;

	if (job_rank > 1)
		return;
	CHECK_EQUAL(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
	MPI_T_pvar_get_index("mpi_comm_receives_now", MPI_T_PVAR_CLASS_LEVEL, &index);
	CHECK_EQUAL(MPI_T_pvar_handle_alloc(session, index, &(MPI_Comm){ MPI_COMM_WORLD }, &posted,
					    &count),
		    MPI_SUCCESS);
	a = watch_event("mpi_message_matched", MPI_T_CB_REQUIRE_MPI_RESTRICTED, only_one_at_a_time,
			&matched);
	b = watch_event("mpi_message_unexpected", MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
			only_one_at_a_time, &unexpected);
	for (int t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, exchange_many, (void *)(long)t);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	forget(a);
	forget(b);
	CHECK_EQUAL(MPI_T_pvar_session_free(&session), MPI_SUCCESS);
	CHECK_EQUAL(matched, THREADS * ROUNDS);
	CHECK(unexpected <= THREADS * ROUNDS);
	CHECK_EQUAL(at_once, 0);
	CHECK_EQUAL(wrong_levels, 0);
}

/* Callbacks without restrictions, which give up the locks, while other threads raise events. */
static void callbacks_without_restrictions_run_one_by_one(void)
{
	pthread_t thread[THREADS];
	MPI_T_event_registration a, b;

	if (job_rank > 1)
		return;
	matched = 0;
	MPI_T_pvar_session_create(&session);
	MPI_T_pvar_handle_alloc(session, 0, NULL, &posted, &(int){ 0 });
	a = watch_event("mpi_message_matched", MPI_T_CB_REQUIRE_NONE, only_one_at_a_time, &matched);
	b = watch_event("mpi_message_unexpected", MPI_T_CB_REQUIRE_MPI_RESTRICTED,
			only_one_at_a_time, &unexpected);
	wrong_levels = 0;
	for (int t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, exchange_many, (void *)(long)t);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	forget(a);
	forget(b);
	MPI_T_pvar_session_free(&session);
	CHECK(matched > 0 && matched <= THREADS * ROUNDS);
	CHECK_EQUAL(at_once, 0);
}

int main(int argc, char **argv)
{
	int provided;

	job_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_dup(MPI_COMM_WORLD, &tool_comm);
	CASE(a_receive_that_waits_says_so_and_the_callback_may_call_mpi);
	CASE(waitany_says_that_it_waits_for_one_of_several);
	CASE(a_probe_says_that_it_waits);
	CASE(every_request_says_once_that_it_is_complete);
	CASE(callbacks_of_many_threads_run_one_by_one);
	CASE(callbacks_without_restrictions_run_one_by_one);
	MPI_Comm_free(&tool_comm);
	MPI_T_finalize();
	return job_end();
}
