/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Jobs that hang, each in its way, and some that only look like it. hangs.sh compares what is
 * reported of them; it finds the lines of the calls by the words behind them.
 *
 * Usage: hangs WAY [SECONDS]
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LONG (1 << 20) /* bytes of a message that no eager protocol sends */

static int rank, size;
static int word[4];
static char bytes[LONG];

static int other(void)
{
	return (rank + 1) % size;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Computes, in the processor's sense. */
static void compute(double seconds)
{
	const double end = now() + seconds;

	while (now() < end)
		continue;
}

/* ---- deadlocks ------------------------------------------------------------------------------- */

static void receive_both(void)
{
	MPI_Recv(word, 1, MPI_INT, other(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* recv */
	MPI_Send(word, 1, MPI_INT, other(), 5, MPI_COMM_WORLD);
}

static void send_both(void)
{
	MPI_Ssend(word, 1, MPI_INT, other(), 5, MPI_COMM_WORLD); /* ssend */
	MPI_Recv(word, 1, MPI_INT, other(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_long(void)
{
	MPI_Send(bytes, LONG, MPI_BYTE, other(), 7, MPI_COMM_WORLD); /* send */
	MPI_Recv(bytes, LONG, MPI_BYTE, other(), 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void differ_in_tag(void)
{
	if (rank == 0)
		MPI_Send(word, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
	MPI_Recv(word, 4, MPI_INT, other(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* tag */
}

static void differ_in_communicator(void)
{
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_name(comm, "solver");
	if (rank == 0)
		MPI_Send(word, 1, MPI_INT, 1, 5, comm);
	MPI_Recv(word, 1, MPI_INT, other(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* comm */
}

static void miss_collective(void)
{
	if (rank == size - 1)
		MPI_Recv(word, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* missing */
	MPI_Barrier(MPI_COMM_WORLD);                                                 /* barrier */
}

static void wait_all(void)
{
	MPI_Request request[2];

	MPI_Irecv(&word[0], 1, MPI_INT, other(), 1, MPI_COMM_WORLD, &request[0]);
	MPI_Irecv(&word[1], 1, MPI_INT, other(), 2, MPI_COMM_WORLD, &request[1]);
	MPI_Send(word, 1, MPI_INT, other(), 1, MPI_COMM_WORLD);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE); /* waitall */
}

static void wait_any(void)
{
	MPI_Request request[2];
	int which;

	MPI_Irecv(&word[0], 1, MPI_INT, other(), 1, MPI_COMM_WORLD, &request[0]);
	MPI_Irecv(&word[1], 1, MPI_INT, other(), 2, MPI_COMM_WORLD, &request[1]);
	MPI_Waitany(2, request, &which, MPI_STATUS_IGNORE); /* waitany */
}

static void probe_both(void)
{
	MPI_Probe(other(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* probe */
}

/* Each holds the lock of its own window and wants the other's. */
static void lock_both(void)
{
	MPI_Win win;

	MPI_Win_create(word, sizeof(word), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	MPI_Win_flush(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other(), 0, win); /* lock */
}

static void start_both(void)
{
	MPI_Group all, peer;
	MPI_Win win;
	int there = other();

	MPI_Win_create(word, sizeof(word), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &there, &peer);
	MPI_Win_start(peer, 0, win);
	MPI_Win_complete(win); /* complete */
}

static void *receive_other(void *tag)
{
	int *buffer = tag;

	MPI_Recv(buffer, 1, MPI_INT, other(), *buffer, MPI_COMM_WORLD, /* thread */
		 MPI_STATUS_IGNORE);
	return NULL;
}

/* Two threads, and both wait. */
static void wait_in_threads(void)
{
	static int tags[] = { 21, 22 };
	pthread_t thread;

	pthread_create(&thread, NULL, receive_other, &tags[0]);
	receive_other(&tags[1]);
	pthread_join(thread, NULL);
}

/* ---- no deadlocks: they end by themselves ---------------------------------------------------- */

static void wait_for_computing(double seconds)
{
	if (rank == 0)
		compute(seconds);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void wait_for_sleeping(double seconds)
{
	if (rank == 0)
		usleep((useconds_t)(seconds * 1e6));
	MPI_Bcast(word, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

/* Rank 0 hears from outside, and says so to the others. */
static void wait_for_input(void)
{
	char c = 0;

	if (rank == 0) {
		printf("reads\n");
		fflush(stdout);
		if (read(0, &c, 1) != 1)
			MPI_Abort(MPI_COMM_WORLD, 3);
	}
	MPI_Bcast(&c, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
}

/* Rank 0 stops until it is let run on. */
static void wait_for_stopped(void)
{
	if (rank == 0) {
		printf("pid %d\n", (int)getpid());
		fflush(stdout);
		raise(SIGSTOP);
		MPI_Send(word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
	} else if (rank == 1) {
		MPI_Recv(word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* All wait, most of the time, but one message goes round. */
static void go_slowly(double seconds)
{
	const double end = now() + seconds;

	do {
		if (rank == 0) {
			usleep(300000);
			word[0] = now() >= end;
			MPI_Send(word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(word, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(word, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(word, 1, MPI_INT, other(), 0, MPI_COMM_WORLD);
		}
	} while (!word[0]);
}

/* One message, over a link that is slow. */
static void send_slowly(void)
{
	if (rank == 0)
		MPI_Send(bytes, LONG, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
	if (rank == 1)
		MPI_Recv(bytes, LONG, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A program may test for a message, and for other things that are none of MPI's business. */
static void poll_only(double seconds)
{
	const double end = now() + seconds;
	int flag = 0;

	while (now() < end && !flag)
		MPI_Iprobe(other(), 8, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

/* One thread waits for a message that the other one makes the peer send. */
static void wait_for_thread(double seconds)
{
	static int tag = 21;
	pthread_t thread;

	pthread_create(&thread, NULL, receive_other, &tag);
	usleep((useconds_t)(seconds * 1e6));
	MPI_Send(word, 1, MPI_INT, other(), 21, MPI_COMM_WORLD);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*hang)(void);
		void (*ends)(double seconds);
	} ways[] = {
		{ "recv", receive_both, NULL },
		{ "ssend", send_both, NULL },
		{ "send", send_long, NULL },
		{ "tag", differ_in_tag, NULL },
		{ "comm", differ_in_communicator, NULL },
		{ "collective", miss_collective, NULL },
		{ "waitall", wait_all, NULL },
		{ "waitany", wait_any, NULL },
		{ "probe", probe_both, NULL },
		{ "lock", lock_both, NULL },
		{ "complete", start_both, NULL },
		{ "input", wait_for_input, NULL },
		{ "transfer", send_slowly, NULL },
		{ "computing", NULL, wait_for_computing },
		{ "sleeping", NULL, wait_for_sleeping },
		{ "stopped", wait_for_stopped, NULL },
		{ "slow", NULL, go_slowly },
		{ "polls", NULL, poll_only },
		{ "threads", wait_in_threads, NULL },
		{ "thread", NULL, wait_for_thread },
	};
	const double seconds = argc > 2 ? strtod(argv[2], NULL) : 3;
	int level;

	MPI_Init_thread(&argc, &argv,
			argc > 1 && !strncmp(argv[1], "thread", 6) ? MPI_THREAD_MULTIPLE
								   : MPI_THREAD_SINGLE,
			&level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(argv[1], ways[i].name))
			continue;
		if (ways[i].hang)
			ways[i].hang();
		else
			ways[i].ends(seconds);
		MPI_Finalize();
		return 0;
	}
	MPI_Abort(MPI_COMM_WORLD, 2);
	return 2;
}
