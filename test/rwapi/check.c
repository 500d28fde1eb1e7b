/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Helpers of the jobs that test RWAPI (check.h).
 */
#include "check.h"

#include <sched.h>
#include <string.h>

struct kept {
	struct kept *next;
	int node;
	rwapi_small_t small;
};

int rank, size;
static int cases, done;
static struct kept *first_kept, **last_kept = &first_kept;

void check_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "rank %d: %s:%d: not so: %s\n", rank, file, line, what);
	_Exit(1);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double seconds_since(uint64_t start_ns)
{
	return (double)(now_ns() - start_ns) / 1e9;
}

uint64_t next_random(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void begin(int count)
{
	int err = rwapi_init(0, NULL);

	if (err) {
		fprintf(stderr, "rwapi_init: %s\n", rwapi_strerror(err));
		exit(1);
	}
	rank = rwapi_rank();
	size = rwapi_size();
	cases = count;
}

void send_kind(int node, enum kind kind, uint32_t value, uint64_t word)
{
	rwapi_small_t small = { .word = { (uint64_t)value << 8 | kind, word } };
	int err = rwapi_send(node, small);

	if (err) {
		fprintf(stderr, "rank %d: rwapi_send to %d: %s\n", rank, node, rwapi_strerror(err));
		_Exit(1);
	}
}

static bool fits(const struct kept *k, int node, enum kind kind)
{
	return (node < 0 || k->node == node) && (k->small.word[0] & 255) == kind;
}

static struct kept **find_kept(int node, enum kind kind)
{
	struct kept **at = &first_kept;

	while (*at && !fits(*at, node, kind))
		at = &(*at)->next;
	return at;
}

/* Keep what is there. Returns whether there was anything. */
static bool keep_arrived(void)
{
	struct kept *k = malloc(sizeof(*k));
	int found;

	check(k);
	found = rwapi_receive(&k->node, &k->small);
	check(found == 0 || found == 1);
	if (!found) {
		free(k);
		return false;
	}
	k->next = NULL;
	*last_kept = k;
	last_kept = &k->next;
	return true;
}

bool has_kind(int node, enum kind kind)
{
	while (keep_arrived())
		;
	return *find_kept(node, kind) != NULL;
}

int expect_kind(int node, enum kind kind, uint32_t *value, uint64_t *word)
{
	uint64_t start = now_ns();
	struct kept **at, *k;
	int from;

	while (!*(at = find_kept(node, kind))) {
		if (!keep_arrived()) {
			int found = rwapi_wait(100);

			/* it tells of each process that has ended */
			check(found >= 0 || found == RWAPI_EPEER);
		}
		check(seconds_since(start) < DEADLINE_S);
	}
	k = *at;
	from = k->node;
	if (value)
		*value = (uint32_t)(k->small.word[0] >> 8);
	if (word)
		*word = k->small.word[1];
	*at = k->next;
	if (!k->next)
		last_kept = at;
	free(k);
	return from;
}

void barrier(void)
{
	for (int node = 0; node < size; node++)
		if (rank == 0 && node)
			expect_kind(node, KIND_BARRIER, NULL, NULL);
	if (rank) {
		send_kind(0, KIND_BARRIER, 0, 0);
		expect_kind(0, KIND_BARRIER, NULL, NULL);
	}
	for (int node = 1; node < size && rank == 0; node++)
		send_kind(node, KIND_BARRIER, 0, 0);
}

void passed(const char *name)
{
	barrier();
	if (rank)
		return;
	printf("ok %d - %s\n", ++done, name);
	fflush(stdout);
}

int end(int expected)
{
	int err;

	barrier();
	err = rwapi_finalize();
	if (err != expected) {
		fprintf(stderr, "rank %d: rwapi_finalize: %s, not %s\n", rank, rwapi_strerror(err),
			rwapi_strerror(expected));
		return 1;
	}
	if (rank == 0)
		printf("ok %d - the end\n1..%d\n", done + 1, cases + 1);
	return rank == 0 && done != cases;
}

int until_sent(rwapi_sid_t sid)
{
	uint64_t start = now_ns();
	int sent;

	while ((sent = rwapi_issent(sid)) == 0) {
		check(seconds_since(start) < DEADLINE_S);
		sched_yield();
	}
	return sent;
}

void fill(unsigned char *at, size_t length, uint64_t seed)
{
	for (size_t i = 0; i < length; i += 8) {
		uint64_t word = next_random(&seed);

		memcpy(at + i, &word, length - i < 8 ? length - i : 8);
	}
}

size_t first_wrong(const unsigned char *at, size_t length, uint64_t seed)
{
	for (size_t i = 0; i < length; i += 8) {
		uint64_t word = next_random(&seed);

		if (memcmp(at + i, &word, length - i < 8 ? length - i : 8))
			return i;
	}
	return length;
}
