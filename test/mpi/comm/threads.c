/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_THREAD_MULTIPLE: threads make and use communicators at the same time, each on a parent of
 * its own, in orders that differ between ranks.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "test/mpi/job_check.h"

enum { THREADS = 4, ROUNDS = 150 };

static MPI_Comm parent[THREADS];
static atomic_int wrong;

static void *make_many(void *arg)
{
	int t = (int)(long)arg, rank, size;

	MPI_Comm_rank(parent[t], &rank);
	MPI_Comm_size(parent[t], &size);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm comm, part;
		int sum = 0, one = 1, n;

		if ((i + t) % 3) {
			MPI_Comm_dup(parent[t], &comm);
		} else {
			MPI_Request request;

			MPI_Comm_idup(parent[t], &comm, &request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		}
		MPI_Comm_split(comm, rank % 2, 0, &part);
		MPI_Comm_size(part, &n);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part);
		if (sum != n)
			wrong++;
		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
		if (sum != size * (size - 1) / 2)
			wrong++;
		MPI_Comm_free(&comm);
		MPI_Comm_free(&part);
	}
	return NULL;
}

static void run_threads(void *(*body)(void *))
{
	pthread_t thread[THREADS];

	wrong = 0;
	/* each rank starts them in another order */
	for (int i = 0; i < THREADS; i++) {
		int t = (i + job_rank) % THREADS;

		pthread_create(&thread[t], NULL, body, (void *)(long)t);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	CHECK_EQUAL(wrong, 0);
}

static void threads_make_communicators_on_parents_of_their_own(void)
{
	for (int t = 0; t < THREADS; t++)
		MPI_Comm_dup(MPI_COMM_WORLD, &parent[t]);
	run_threads(make_many);
	for (int t = 0; t < THREADS; t++)
		MPI_Comm_free(&parent[t]);
}

static void *group_many(void *arg)
{
	int t = (int)(long)arg, one = 1;
	MPI_Group group;

	MPI_Comm_group(MPI_COMM_WORLD, &group);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm comm;
		int sum = 0;

		MPI_Comm_create_group(MPI_COMM_WORLD, group, t, &comm);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
		if (sum != job_size)
			wrong++;
		MPI_Comm_free(&comm);
	}
	MPI_Group_free(&group);
	return NULL;
}

static void threads_make_groups_of_one_parent_with_tags_of_their_own(void)
{
	run_threads(group_many);
}

/* A communicator of this process alone is agreed on without a message, while other threads wait
 * for some. */
static MPI_Comm mine[THREADS];

static void *group_and_dup_own(void *arg)
{
	int t = (int)(long)arg;
	MPI_Group group;

	MPI_Comm_group(MPI_COMM_WORLD, &group);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm comm;

		MPI_Comm_create_group(MPI_COMM_WORLD, group, t, &comm);
		MPI_Barrier(comm);
		MPI_Comm_free(&comm);
		MPI_Comm_dup(mine[t], &comm);
		MPI_Comm_free(&comm);
	}
	MPI_Group_free(&group);
	return NULL;
}

static void one_thread_alone_does_not_stop_those_with_others(void)
{
	for (int t = 0; t < THREADS; t++)
		MPI_Comm_dup(MPI_COMM_SELF, &mine[t]);
	run_threads(group_and_dup_own);
	for (int t = 0; t < THREADS; t++)
		MPI_Comm_free(&mine[t]);
}

/* Thread 0 waits in a duplication that rank 1 comes to last; the others must be able to go on. */
static atomic_int others_done;

static void *wait_or_make(void *arg)
{
	int t = (int)(long)arg;
	MPI_Comm comm;

	if (t == 0) {
		if (job_rank == 1)
			while (others_done < THREADS - 1)
				sched_yield();
		MPI_Comm_dup(parent[0], &comm);
		MPI_Comm_free(&comm);
		return NULL;
	}
	make_many(arg);
	others_done++;
	return NULL;
}

static void a_late_rank_of_one_does_not_stop_the_others(void)
{
	for (int t = 0; t < THREADS; t++)
		MPI_Comm_dup(MPI_COMM_WORLD, &parent[t]);
	others_done = 0;
	run_threads(wait_or_make);
	for (int t = 0; t < THREADS; t++)
		MPI_Comm_free(&parent[t]);
}

int main(int argc, char **argv)
{
	job_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	CASE(threads_make_communicators_on_parents_of_their_own);
	CASE(threads_make_groups_of_one_parent_with_tags_of_their_own);
	CASE(one_thread_alone_does_not_stop_those_with_others);
	CASE(a_late_rank_of_one_does_not_stop_the_others);
	return job_end();
}
