/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The last rank is killed while others wait for it in every way there is: each call ends with
 * MPI_ERR_PROC_ABORTED within seconds, what was sent before is still received, the other ranks
 * go on, and MPI_Finalize ends. For mpiexec --keep-going. With an argument: the same with
 * MPI_THREAD_MULTIPLE.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LONG    (4 << 20)
#define LIMIT_S 20.0
#define QUEUED  6000 /* more short messages than a receiver that does not look takes */

static int rank, size, victim, failed, cases;
static char *data;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Each rank but the victim says what it saw; rank 0 prints. */
static void result(const char *name, int error, int wanted, double since)
{
	int class = MPI_SUCCESS, wrong;
	double took = now() - since;

	if (error != MPI_SUCCESS)
		MPI_Error_class(error, &class);
	wrong = class != wanted || took > LIMIT_S;
	if (wrong) {
		printf("# %s: rank %d: error class %d, not %d, after %.1f s\n", name, rank, class,
		       wanted, took);
		fflush(stdout);
	}
	if (rank) {
		MPI_Send(&wrong, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
		return;
	}
	for (int i = 1; i < victim; i++) {
		int one;

		MPI_Recv(&one, 1, MPI_INT, i, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		wrong += one;
	}
	failed += wrong != 0;
	printf("%sok %d - a dead rank: %s\n", wrong ? "not " : "", ++cases, name);
	fflush(stdout);
}

static int test_until_done(MPI_Request *r)
{
	int flag = 0, err = MPI_SUCCESS;

	while (!flag && !err)
		err = MPI_Test(r, &flag, MPI_STATUS_IGNORE);
	return err;
}

static int probe_until_found(int source)
{
	int flag = 0, err = MPI_SUCCESS;

	while (!flag && !err)
		err = MPI_Iprobe(source, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	return err;
}

/* When all are ready. It has not been in MPI for a while. */
static void end_victim(void)
{
	int pid, err;

	for (int i = 1; i < victim && !rank; i++)
		MPI_Recv(NULL, 0, MPI_CHAR, i, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank) {
		MPI_Send(NULL, 0, MPI_CHAR, 0, 6, MPI_COMM_WORLD);
		return;
	}
	err = MPI_Recv(&pid, 1, MPI_INT, victim, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (err) {
		char text[MPI_MAX_ERROR_STRING];
		int length;

		MPI_Error_string(err, text, &length);
		printf("# it was lost before it was killed: %s\n", text);
		fflush(stdout);
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
	kill(pid, SIGKILL);
}

/* ---- partitioned ----------------------------------------------------------------------------- */

enum { UNMATCHED_SEND, UNMATCHED_RECV, MATCHED_RECV, PARTITIONED };
static MPI_Request part[PARTITIONED];
static char halves[PARTITIONED][2];

static void start_partitioned(void)
{
	MPI_Psend_init(halves[0], 2, 1, MPI_CHAR, victim, 50, MPI_COMM_WORLD, MPI_INFO_NULL,
		       &part[UNMATCHED_SEND]);
	MPI_Precv_init(halves[1], 2, 1, MPI_CHAR, victim, 51, MPI_COMM_WORLD, MPI_INFO_NULL,
		       &part[UNMATCHED_RECV]);
	MPI_Precv_init(halves[2], 2, 1, MPI_CHAR, victim, 52, MPI_COMM_WORLD, MPI_INFO_NULL,
		       &part[MATCHED_RECV]);
	MPI_Startall(PARTITIONED, part);
	MPI_Pready(0, part[UNMATCHED_SEND]);
}

/* Each ends, and so does each later start. */
static void end_partitioned(void)
{
	static const char *const name[PARTITIONED] = { "a partitioned send",
						       "a partitioned receive without a sender",
						       "a partitioned receive" };
	double start = now();

	for (int i = 0; i < PARTITIONED; i++) {
		result(name[i], MPI_Wait(&part[i], MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED, start);
		MPI_Start(&part[i]);
		result("the same again", MPI_Wait(&part[i], MPI_STATUS_IGNORE),
		       MPI_ERR_PROC_ABORTED, start);
		result("and its end", MPI_Request_free(&part[i]), MPI_SUCCESS, start);
	}
}

/* Operations that are under way when the victim dies. */
static void before_and_during(void)
{
	static MPI_Request many[QUEUED], r[5];
	static MPI_Status status[QUEUED];
	double start;
	int err, wrong = 0;
	int value = 0;

	MPI_Isend(data, LONG, MPI_CHAR, victim, 1, MPI_COMM_WORLD, &r[0]);
	MPI_Issend(data, 1, MPI_CHAR, victim, 2, MPI_COMM_WORLD, &r[1]);
	MPI_Issend(data, 1, MPI_CHAR, victim, 2, MPI_COMM_WORLD, &r[4]);
	MPI_Irecv(data, LONG, MPI_CHAR, victim, 3, MPI_COMM_WORLD, &r[2]);
	MPI_Irecv(data + LONG, 1, MPI_CHAR, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &r[3]);
	for (int i = 0; i < QUEUED; i++)
		MPI_Isend(data, 1, MPI_CHAR, victim, 5, MPI_COMM_WORLD, &many[i]);
	start_partitioned();
	/* of what it sends, this is here */
	MPI_Probe(victim, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Probe(victim, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	end_victim();
	start = now();
	MPI_Cancel(&r[4]);
	err = MPI_Wait(&r[4], status);
	MPI_Test_cancelled(status, &value);
	result("a send that is cancelled then",
	       err == MPI_SUCCESS && value ? MPI_ERR_PROC_ABORTED : err, MPI_ERR_PROC_ABORTED,
	       start);
	value = 0;
	result("a long send that was under way", MPI_Wait(&r[0], MPI_STATUS_IGNORE),
	       MPI_ERR_PROC_ABORTED, start);
	result("a synchronous send that was under way", test_until_done(&r[1]),
	       MPI_ERR_PROC_ABORTED, start);
	result("a receive that was posted", MPI_Wait(&r[2], MPI_STATUS_IGNORE),
	       MPI_ERR_PROC_ABORTED, start);
	result("a receive from anybody", test_until_done(&r[3]), MPI_ERR_PROC_ABORTED, start);
	err = MPI_Waitall(QUEUED, many, status);
	for (int i = 0; i < QUEUED && err; i++) {
		int class;

		MPI_Error_class(status[i].MPI_ERROR, &class);
		wrong += class != MPI_SUCCESS && class != MPI_ERR_PROC_ABORTED;
	}
	result("short sends beyond what it took", wrong ? MPI_ERR_OTHER : err, MPI_ERR_IN_STATUS,
	       start);
	/* it had sent this */
	err = MPI_Recv(&value, 1, MPI_INT, victim, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	result("a short message it had sent", value == 4711 || err ? err : MPI_ERR_OTHER,
	       MPI_SUCCESS, now());
	result("a long message it had sent",
	       MPI_Recv(data, LONG, MPI_CHAR, victim, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
	       MPI_ERR_PROC_ABORTED, now());
	end_partitioned();
}

static void after(void)
{
	MPI_Message m;
	MPI_Status s;
	int value, right = (rank + 1) % victim, left = (rank + victim - 1) % victim;
	double start = now();

	result("a receive", MPI_Recv(data, 1, MPI_CHAR, victim, 1, MPI_COMM_WORLD, &s),
	       MPI_ERR_PROC_ABORTED, start);
	start = now();
	result("a long send", MPI_Send(data, LONG, MPI_CHAR, victim, 1, MPI_COMM_WORLD),
	       MPI_ERR_PROC_ABORTED, start);
	start = now();
	result("a short send", MPI_Send(data, 1, MPI_CHAR, victim, 1, MPI_COMM_WORLD),
	       MPI_ERR_PROC_ABORTED, start);
	start = now();
	result("a synchronous send", MPI_Ssend(data, 1, MPI_CHAR, victim, 1, MPI_COMM_WORLD),
	       MPI_ERR_PROC_ABORTED, start);
	start = now();
	result("a probe", MPI_Probe(victim, 1, MPI_COMM_WORLD, &s), MPI_ERR_PROC_ABORTED, start);
	start = now();
	result("a probe that does not wait", probe_until_found(victim), MPI_ERR_PROC_ABORTED,
	       start);
	start = now();
	result("a matched probe of anybody", MPI_Mprobe(MPI_ANY_SOURCE, 98, MPI_COMM_WORLD, &m, &s),
	       MPI_ERR_PROC_ABORTED, start);
	start = now();
	value = rank;
	MPI_Sendrecv_replace(&value, 1, MPI_INT, right, 10, left, 10, MPI_COMM_WORLD, &s);
	result("the others go on", value == left ? MPI_SUCCESS : MPI_ERR_OTHER, MPI_SUCCESS, start);
}

/* Sends something and waits for its end. */
static void die(void)
{
	MPI_Request r;
	int value = 4711, pid = getpid();

	for (int i = 0; i < victim; i++) {
		MPI_Psend_init(halves[0], 2, 1, MPI_CHAR, i, 52, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
		MPI_Start(&r);
		MPI_Pready(0, r);
		MPI_Isend(&value, 1, MPI_INT, i, 8, MPI_COMM_WORLD, &r);
		MPI_Isend(data, LONG, MPI_CHAR, i, 9, MPI_COMM_WORLD, &r);
	}
	MPI_Isend(&pid, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, &r);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
			&provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	victim = size - 1;
	data = calloc(1, LONG + 1);
	if (!data)
		return 2;
	if (rank == victim)
		die();
	before_and_during();
	after();
	MPI_Finalize();
	free(data);
	if (rank == 0)
		printf("1..%d\n", cases);
	return failed != 0;
}
