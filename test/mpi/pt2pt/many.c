/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * COUNT receives posted at once, then COUNT messages that came before their receive, matched in
 * random order: each gets its own, in bounded time, and a second and third time needs no more
 * memory. Two ranks. Arguments: SEED COUNT.
 */
#include "test/mpi/pt2pt/check.h"

static int count = 100000;
static int *order, *value;
static MPI_Request *request;
static long after_first;

static void shuffle(void)
{
	for (int i = 0; i < count; i++)
		order[i] = i;
	for (int i = count - 1; i > 0; i--) {
		int j = draw_below(i + 1), t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}

/* Round 0 fills pools that are kept for later. Memory that is shared with the other rank does
 * not count: it is touched bit by bit, up to what the event queues need. */
static const char *check_memory(int round)
{
	long now = allocated_kib();

	if (round == 0)
		after_first = now;
	if (round == 2)
		printf("# rank %d: %ld KiB after the first round, %ld KiB after the third\n",
		       tap_rank, after_first, now);
	return now > after_first + 1024 + SANITIZER_KIB
		       ? tap_wrong("memory grew by %ld KiB", now - after_first)
		       : NULL;
}

static const char *posted(int round)
{
	double start = time_now();

	shuffle();
	for (int i = 0; i < count && tap_rank == 1; i++) {
		value[i] = -1;
		/* every hundredth takes any source */
		MPI_Irecv(&value[i], 1, MPI_INT, i % 100 ? 0 : MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
			  &request[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < count && tap_rank == 0; i++)
		MPI_Send(&order[i], 1, MPI_INT, 1, order[i], MPI_COMM_WORLD);
	if (tap_rank == 1) {
		MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
		for (int i = 0; i < count; i++)
			if (value[i] != i)
				return tap_wrong("receive %d got %d", i, value[i]);
		if (round == 0)
			printf("# %d posted receives: %.2f s\n", count, time_now() - start);
	}
	return check_memory(round);
}

static const char *unexpected(int round)
{
	double start = time_now();
	long long left;

	shuffle();
	for (int i = 0; i < count && tap_rank == 0; i++) {
		value[i] = i;
		MPI_Isend(&value[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &request[i]);
	}
	if (tap_rank == 0) {
		MPI_Send(NULL, 0, MPI_INT, 1, count, MPI_COMM_WORLD);
		MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
		return check_memory(round);
	}
	/* the last of them: all others are here now */
	MPI_Recv(NULL, 0, MPI_INT, 0, count, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < count; i++) {
		int got = -1;

		MPI_Recv(&got, 1, MPI_INT, i % 100 ? 0 : MPI_ANY_SOURCE, order[i], MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (got != order[i])
			return tap_wrong("message %d was %d", order[i], got);
	}
	if (round == 0)
		printf("# %d unexpected messages: %.2f s\n", count, time_now() - start);
	left = counter("mpi_unexpected_now");
	MPI_Barrier(MPI_COMM_WORLD); /* before the next round's come */
	if (left > 1)                /* one may be of rank 0 in the barrier */
		return tap_wrong("%lld messages are left", left);
	return check_memory(round);
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 1);
	if (tap_size != 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	if (argc > 2)
		count = atoi(argv[2]);
	order = malloc((size_t)count * sizeof(*order));
	value = malloc((size_t)count * sizeof(*value));
	request = malloc((size_t)count * sizeof(MPI_Request));
	if (!order || !value || !request)
		MPI_Abort(MPI_COMM_WORLD, 3);
	tap_rounds_set(3);
	tap_case("many: posted receives, matched in random order", posted);
	tap_case("many: unexpected messages, matched in random order", unexpected);
	free(order);
	free(value);
	free(request);
	return tap_end();
}
