/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A short message behind a long write leaves while its sender computes; the thread that sends it
 * is made only when a message is held back, and sleeps while none is.
 *
 * keeper
 */
#include "check.h"

#include <dirent.h>
#include <string.h>

enum { LENGTH = 8 << 20, ROUNDS = 20 };

enum { THREADS = 32 };
static int known[THREADS], nknown;

/* The threads of this process. */
static int list_threads(int *tid)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	check(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			check(n < THREADS);
			tid[n++] = atoi(entry->d_name);
		}
	closedir(dir);
	return n;
}

static bool is_known(int tid)
{
	for (int i = 0; i < nknown; i++)
		if (known[i] == tid)
			return true;
	return false;
}

/* How often a thread has gone to sleep so far. */
static long sleeps_of(int tid)
{
	char name[64], line[128];
	long n = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/status", tid);
	f = fopen(name, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "voluntary_ctxt_switches:", 24))
			n = atol(line + 24);
	if (f)
		fclose(f);
	return n;
}

/* The same of all threads that were made since the known ones; *count is their number. */
static long sleeps_of_new(int *count)
{
	int tid[THREADS], n = list_threads(tid);
	long sum = 0;

	*count = 0;
	for (int i = 0; i < n; i++)
		if (!is_known(tid[i])) {
			sum += sleeps_of(tid[i]);
			++*count;
		}
	return sum;
}

/* Until the new threads sleep and nothing wakes them for a while. */
static void until_quiet(void)
{
	uint64_t start = now_ns();
	int count;
	long before, now = sleeps_of_new(&count);

	do {
		uint64_t from = now_ns();

		check(seconds_since(start) < DEADLINE_S);
		before = now;
		while (seconds_since(from) < 0.1)
			;
		now = sleeps_of_new(&count);
	} while (now != before);
}

/* Compute, without a call of RWAPI, until the other's byte has changed or the time is over. */
static void compute_until(const volatile unsigned char *byte, unsigned char value)
{
	uint64_t start = now_ns();

	while (*byte != value)
		check(seconds_since(start) < DEADLINE_S);
}

int main(void)
{
	rwapi_net_t local, mine, theirs;
	unsigned char *from, *to;
	int other, count;

	begin(3);
	check(size == 2);
	other = !rank;
	from = rwapi_alloc(LENGTH, &local);
	to = rwapi_alloc(LENGTH, &mine);
	check(from && to);
	memset(to, 0, LENGTH);
	send_kind(other, KIND_NET, 0, mine);
	expect_kind(other, KIND_NET, NULL, &theirs);
	barrier();
	nknown = list_threads(known);
	for (int i = 0; i < 1000; i++) {
		check(rwapi_write(other, local, theirs, 64) > 0);
		send_kind(other, KIND_COUNT, 0, 0);
		expect_kind(other, KIND_COUNT, NULL, NULL);
	}
	sleeps_of_new(&count);
	check(count == 0);
	passed("short writes and messages need no thread");
	for (int i = 1; i <= ROUNDS; i++) {
		if (rank == 0) {
			memset(from, i, LENGTH);
			check(rwapi_write(1, local, theirs, LENGTH) > 0);
			send_kind(1, KIND_NOTICE, 0, 0);
			compute_until(to, (unsigned char)i);
			expect_kind(1, KIND_DONE, NULL, NULL);
		} else {
			expect_kind(0, KIND_NOTICE, NULL, NULL);
			check(to[0] == i && to[LENGTH - 1] == i);
			from[0] = (unsigned char)i;
			check(rwapi_write(0, local, theirs, 1) > 0);
			send_kind(0, KIND_DONE, 0, 0);
		}
	}
	passed("a message that was held back leaves while its sender computes");
	sleeps_of_new(&count);
	check(rank || count == 1);
	until_quiet();
	passed("nothing wakes while nothing is held back");
	return end(RWAPI_OK);
}
