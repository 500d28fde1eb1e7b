/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ranks of a ring write long rows to each other and sleep in rwapi_wait() until they have come,
 * while a thread of each asks for its writes: it takes in the events that the sleepers wait for.
 *
 * polled [ROUNDS]
 */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { ROW = 40000, PER_ROUND_MS = 20 };

static _Atomic rwapi_sid_t asked = 1;
static atomic_bool over;

static void *polls(void *unused)
{
	(void)unused;
	while (!atomic_load(&over)) {
		check(rwapi_issent(atomic_load(&asked)) >= 0);
		sched_yield();
	}
	return NULL;
}

/* Of each neighbour, left and right: its address, and notices. One may be a round ahead. */
static rwapi_net_t of[2];
static int notices[2];

static void notify(int node, enum kind kind, uint64_t word)
{
	check(rwapi_send(node, (rwapi_small_t){ .word = { kind, word } }) == RWAPI_OK);
}

static void take_in(int left)
{
	rwapi_small_t small;
	int node;

	check(rwapi_wait(-1) == 1);
	check(rwapi_receive(&node, &small) == 1);
	if (small.word[0] == KIND_NET)
		of[node != left] = small.word[1];
	else
		notices[node != left]++;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 200, left, right;
	rwapi_net_t local, mine;
	unsigned char *from, *to;
	pthread_t thread;
	uint64_t start;
	const struct timespec late = { .tv_nsec = 3000000 };

	begin(1);
	check(size > 2);
	left = (rank + size - 1) % size;
	right = (rank + 1) % size;
	from = rwapi_alloc(ROW, &local);
	to = rwapi_alloc((size_t)2 * ROW, &mine);
	check(from && to);
	notify(left, KIND_NET, mine + ROW);
	notify(right, KIND_NET, mine);
	while (!of[0] || !of[1])
		take_in(left);
	check(rwapi_write(rank, local, mine, 1) == 1);
	check(pthread_create(&thread, NULL, polls, NULL) == 0);
	start = now_ns();
	for (int i = 0; i < rounds; i++) {
		rwapi_sid_t sid;

		/* the others have gone to sleep by then */
		if (i % size == rank)
			nanosleep(&late, NULL);
		sid = rwapi_write(left, local, of[0], ROW);

		check(sid > 0);
		notify(left, KIND_NOTICE, 0);
		check(rwapi_write(right, local, of[1], ROW) > 0);
		notify(right, KIND_NOTICE, 0);
		atomic_store(&asked, sid);
		while (!notices[0] || !notices[1])
			take_in(left);
		notices[0]--;
		notices[1]--;
	}
	/* not a slice of a wait for each */
	check(seconds_since(start) < 1 + rounds * PER_ROUND_MS / 1000.0);
	atomic_store(&over, true);
	check(pthread_join(thread, NULL) == 0);
	/* no barrier: its messages would come among the notices */
	check(rwapi_finalize() == RWAPI_OK);
	if (rank == 0)
		printf("ok 1 - rows that a sleeper waits for, while a thread takes them "
		       "in\n1..1\n");
	return 0;
}
