/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A sender that stands still after it has cancelled a message: MPI_Irecv of the receiver does
 * not wait for it. For two ranks, run so that the bytes of messages follow on their own.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/mpi/pt2pt/check.h"

#define SOME    3000
#define MUCH    (1 << 20)
#define STANDS  3.0 /* seconds */
#define ALLOWED 1.5 /* for a call that waits for nothing */

static unsigned char in[MUCH], out[MUCH];
static pid_t sender;

/* It goes on when the receiver has had its time, whatever that waits for. */
static void *wake_sender(void *unused)
{
	const struct timespec t = { (time_t)STANDS, 0 };

	nanosleep(&t, NULL);
	kill(sender, SIGCONT);
	return unused;
}

/* False: /proc says that it does not stand still. */
static bool is_stopped(pid_t pid)
{
	char path[64], text[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return true;
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return !strchr(text, ')') || strchr(text, ')')[2] == 'T';
}

/* Until the sender stands still: what wakes it before is lost. */
static void until_stopped(void)
{
	int pid;

	MPI_Recv(&pid, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	sender = pid;
	while (!is_stopped(sender))
		sched_yield();
}

static void stand_still(void)
{
	raise(SIGSTOP);
}

static void say_who(void)
{
	int pid = (int)getpid();

	MPI_Send(&pid, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
}

static const char *after_cancelling(int round)
{
	double end = time_now() + 0.2, start;
	int flag = 0, gone = 0;
	pthread_t waker;
	MPI_Request r;
	MPI_Status s;

	if (tap_rank == 0) {
		MPI_Issend(out, SOME, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &r);
		while (time_now() < end && !flag) /* its sending has ended */
			MPI_Test(&r, &flag, &s);
		CHECK_INT(flag, 0);
		say_who();
		MPI_Cancel(&r);
		stand_still();
		MPI_Wait(&r, &s);
		MPI_Test_cancelled(&s, &gone);
		fill_bytes(out, SOME, round);
		MPI_Send(out, SOME, MPI_BYTE, 1, gone ? 1 : 3, MPI_COMM_WORLD);
		CHECK_INT(gone, 1);
	}
	if (tap_rank != 1)
		return NULL;
	until_stopped();
	pthread_create(&waker, NULL, wake_sender, NULL);
	start = time_now();
	MPI_Irecv(in, round % 2 ? SOME : MUCH, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &r);
	start = time_now() - start;
	pthread_join(waker, NULL);
	MPI_Wait(&r, &s);
	CHECK_INT(count_of(&s), SOME);
	CHECK_INT(wrong_byte(in, SOME, round), -1);
	CHECK(start < ALLOWED);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 2);
	tap_case("stopped: after a send was cancelled", after_cancelling);
	return tap_end();
}
