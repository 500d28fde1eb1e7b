/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * All ranks send COUNT messages of 0 to 32 KiB to rank 0, which looks at nothing for a while and
 * then receives in another order: every byte is right, and rank 0 holds no more than it may.
 * Arguments: SEED COUNT MS.
 */
#include "test/mpi/pt2pt/check.h"

#define LONGEST 32768
#define BATCH   50 /* in progress of each sender */
#define PATTERN (LONGEST + 4099)
#define POOL    (6 << 20)  /* the default, as is that: */
#define KEEP    (32 << 20) /* memory of messages that wait beyond which less credit is given */

static int count = 500, idle_ms = 200;
static unsigned char pattern[PATTERN], got[LONGEST + 1];

static uint32_t key(int rank, int number)
{
	return value_of(rank, number);
}

static int bytes_of(int rank, int number)
{
	uint32_t k = key(rank, number);

	switch (k % 4) {
	case 0:
		return (int)(k >> 8) % 65;
	case 1:
		return (int)(k >> 8) % 2048;
	default:
		return (int)(k >> 8) % (LONGEST + 1);
	}
}

static const unsigned char *start_of(int rank, int number)
{
	return pattern + key(rank, number) / 3 % 4099;
}

/* Tags name the place in the batch, so that they can be received in any order. */
static void send_all(void)
{
	MPI_Request r[BATCH];

	for (int i = 0; i < count; i += BATCH) {
		int n = count - i < BATCH ? count - i : BATCH;

		for (int k = 0; k < n; k++)
			MPI_Isend(start_of(tap_rank, i + k), bytes_of(tap_rank, i + k), MPI_BYTE, 0,
				  k * 1000, MPI_COMM_WORLD, &r[k]);
		MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
	}
}

static const char *receive_one(int rank, int number, int k)
{
	int n = bytes_of(rank, number);
	MPI_Status s;

	got[n] = 0xee;
	MPI_Recv(got, n, MPI_BYTE, rank, k * 1000, MPI_COMM_WORLD, &s);
	if (count_of(&s) != n || memcmp(got, start_of(rank, number), (size_t)n) || got[n] != 0xee)
		return tap_wrong("message %d of rank %d: %d bytes, not %d or other ones", number,
				 rank, count_of(&s), n);
	return NULL;
}

/* Batch by batch, of each the last ranks first, and their messages from a random one backwards. */
static const char *receive_all(void)
{
	const char *wrong = NULL;

	for (int i = 0; i < count; i += BATCH) {
		int n = count - i < BATCH ? count - i : BATCH;

		for (int rank = tap_size - 1; rank > 0; rank--) {
			int last = draw_below(n);

			for (int j = 0; j < n && !wrong; j++) {
				int k = (last + n - j) % n;

				wrong = receive_one(rank, i + k, k);
			}
		}
	}
	return wrong;
}

static const char *flood(int round)
{
	long before = resident_kib(), after = before, now;
	double until = time_now() + idle_ms / 1000.0, start = time_now();
	const char *wrong;
	long long held, senders = tap_size - 1;

	(void)round;
	MPI_Barrier(MPI_COMM_WORLD);
	if (tap_rank) {
		send_all();
		return NULL;
	}
	while (time_now() < until) {
		now = resident_kib();
		after = now > after ? now : after;
	}
	wrong = receive_all();
	now = resident_kib();
	after = now > after ? now : after;
	held = counter("mpi_unexpected_memory_most");
	printf("# %lld messages in %.1f s; held at most %lld bytes; memory %ld KiB more; "
	       "%lld short, %lld long unexpected, at most %lld waiting, %lld moved, %lld blocks "
	       "emptied\n",
	       senders * count, time_now() - start, held, after - before,
	       counter("mpi_recv_unexpected_short"), counter("mpi_recv_unexpected_long"),
	       counter("mpi_unexpected_most"), counter("mpi_messages_moved"),
	       counter("mpi_blocks_relinked"));
	if (wrong)
		return wrong;
	if (held > KEEP + POOL / 3 * 2)
		return tap_wrong("%lld bytes were held at a time", held);
	/* the pool and what was moved out of it; and for each sender, rings, and gaps between
	 * moved messages */
	if (held >= 0 && after - before > (KEEP + 2 * POOL) / 1024 + senders * 512 + SANITIZER_KIB)
		return tap_wrong("memory grew by %ld KiB", after - before);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 1);
	if (argc > 2)
		count = atoi(argv[2]);
	if (argc > 3)
		idle_ms = atoi(argv[3]);
	for (int i = 0; i < PATTERN; i++)
		pattern[i] = (unsigned char)mix((uint64_t)i);
	tap_rounds_set(1);
	tap_case("flood: nothing is lost, and memory stays within its limit", flood);
	return tap_end();
}
