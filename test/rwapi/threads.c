/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Threads of one process: one writes, one receives, one sends, one allocates and frees.
 *
 * threads [ROUNDS]
 */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { LENGTH = 70000 };

static uint32_t rounds = 500;
static rwapi_net_t local, mine, theirs;
static unsigned char *from, *to;
static int next, previous;

static void *writes(void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < rounds; i++) {
		size_t length = i % 3 ? 100 : LENGTH;
		rwapi_sid_t sid = rwapi_write(next, local, theirs, length);

		check(sid > 0);
		if (i % 7 == 0)
			check(until_sent(sid) == 1);
	}
	return NULL;
}

static void *sends(void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < rounds * 4; i++)
		send_kind(next, KIND_COUNT, i, i);
	return NULL;
}

static void *allocates(void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < rounds; i++) {
		rwapi_net_t net;
		unsigned char *block = rwapi_alloc(1 + i * 37 % 9000, &net);

		check(block);
		block[0] = (unsigned char)i;
		check(block[0] == (unsigned char)i);
		check(rwapi_free(block) == RWAPI_OK);
	}
	return NULL;
}

static void *receives(void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < rounds * 4; i++) {
		uint32_t number;

		expect_kind(previous, KIND_COUNT, &number, NULL);
		check(number == i);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	void *(*const job[])(void *) = { writes, sends, allocates, receives };
	enum { THREADS = sizeof(job) / sizeof(job[0]) };
	pthread_t thread[THREADS];

	if (argc > 1)
		rounds = (uint32_t)atoi(argv[1]);
	begin(1);
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	from = rwapi_alloc(LENGTH, &local);
	to = rwapi_alloc(LENGTH, &mine);
	check(from && to);
	memset(from, 7, LENGTH);
	send_kind(previous, KIND_NET, 0, mine);
	expect_kind(next, KIND_NET, NULL, &theirs);
	barrier();
	for (int i = 0; i < THREADS; i++)
		check(pthread_create(&thread[i], NULL, job[i], NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		check(pthread_join(thread[i], NULL) == 0);
	send_kind(next, KIND_NOTICE, 0, 0);
	expect_kind(previous, KIND_NOTICE, NULL, NULL);
	for (size_t i = 0; i < LENGTH; i++)
		check(to[i] == 7);
	passed("threads that write, send, allocate and receive at once");
	return end(RWAPI_OK);
}
