/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Tests of two ranks. Rank 0 says what to do and how often, and takes the time: from before the
 * first message until after the last one it receives. How often is found by trials, whose last
 * one also checks the bytes.
 */
#include "bench.h"

#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int bench_rank, bench_size;

struct pair {
	int other;
	size_t bytes;
	bool small;
	uint64_t count;
	unsigned char mark; /* the bytes of the last message */
};

static unsigned char *from, *to;
static rwapi_net_t local, theirs;
static uint64_t early; /* last bytes that were there before others */

/* ---- helpers --------------------------------------------------------------------------------- */

void bench_fail(const char *fmt, ...)
{
	va_list ap;

	fputs("rwapi_bench: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	_Exit(1); /* without leaving the job: that ends it */
}

uint64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(int err, const char *what)
{
	if (err < 0)
		bench_fail("%s: %s", what, rwapi_strerror(err));
}

void bench_send(int node, uint64_t first, uint64_t second)
{
	must(rwapi_send(node, (rwapi_small_t){ .word = { first, second } }), "rwapi_send");
}

rwapi_small_t bench_receive(int node)
{
	rwapi_small_t small;
	int from_node, found;

	do {
		found = rwapi_receive(&from_node, &small);
	} while (found == 0);
	must(found, "rwapi_receive");
	if (from_node != node)
		bench_fail("a message of rank %d, not of %d", from_node, node);
	return small;
}

void bench_areas(size_t longest)
{
	rwapi_net_t mine;

	if (bench_rank > 1)
		return;
	from = rwapi_alloc(longest, &local);
	to = rwapi_alloc(longest, &mine);
	if (!from || !to)
		bench_fail("no memory for two areas of %zu bytes", longest);
	memset(from, 0, longest);
	memset(to, 0, longest);
	bench_send(!bench_rank, mine, 0);
	theirs = bench_receive(!bench_rank).word[0];
}

/* ---- a message ------------------------------------------------------------------------------- */

static inline rwapi_sid_t write_message(const struct pair *p)
{
	rwapi_sid_t sid = rwapi_write(p->other, local, theirs, p->bytes);

	if (sid < 0)
		must((int)sid, "rwapi_write");
	return sid;
}

static inline void send_message(const struct pair *p)
{
	if (!p->small)
		write_message(p);
	bench_send(p->other, p->mark, 0);
}

static inline void receive_message(const struct pair *p)
{
	bench_receive(p->other);
}

/* Let the bytes of the next message differ from those of the last one. */
static void change_mark(struct pair *p)
{
	p->mark++;
	memset(from, p->mark, p->bytes);
}

static void check_bytes(const struct pair *p)
{
	for (size_t i = 0; i < p->bytes; i++)
		if (to[i] != p->mark)
			bench_fail("byte %zu of %zu is wrong", i, p->bytes);
}

/* ---- the tests: what each rank does, `count` times ------------------------------------------- */

static void ping_pong(const struct pair *p)
{
	for (uint64_t i = 0; i < p->count; i++) {
		if (bench_rank)
			receive_message(p);
		send_message(p);
		if (!bench_rank)
			receive_message(p);
	}
}

static void bidirectional(const struct pair *p)
{
	for (uint64_t i = 0; i < p->count; i++) {
		send_message(p);
		receive_message(p);
	}
}

static void burst(const struct pair *p)
{
	for (uint64_t i = 0; i < p->count; i++)
		if (bench_rank)
			receive_message(p);
		else
			send_message(p);
	/* the answer, so that the last message is included */
	if (bench_rank)
		bench_send(0, 0, 0);
	else
		bench_receive(1);
}

static void stream(const struct pair *p)
{
	for (uint64_t i = 0; i < p->count && !bench_rank; i++)
		write_message(p);
	if (bench_rank)
		receive_message(p);
	bench_send(p->other, 0, 0);
	if (!bench_rank)
		receive_message(p);
}

/* Wait for the last byte, then for all others: they come in no order. Data of datagrams need
 * calls, and these must leave messages alone. */
static void look_for(size_t bytes, unsigned char mark)
{
	const volatile unsigned char *at = to;

	while (at[bytes - 1] != mark)
		must(rwapi_wait(0), "rwapi_wait");
	for (size_t i = 0; i < bytes; i++) {
		early += at[i] != mark;
		while (at[i] != mark)
			must(rwapi_wait(0), "rwapi_wait");
	}
}

static void wait_until_sent(rwapi_sid_t sid)
{
	int sent;

	do {
		sent = rwapi_issent(sid);
		must(sent, "rwapi_issent");
	} while (!sent);
}

static void look(const struct pair *p)
{
	unsigned char mark = p->mark;

	for (uint64_t i = 0; i < p->count; i++) {
		mark++;
		if (bench_rank)
			look_for(p->bytes, mark);
		memset(from, mark, p->bytes);
		wait_until_sent(write_message(p));
		if (!bench_rank)
			look_for(p->bytes, mark);
	}
}

static void (*const run[])(const struct pair *) = {
	[TEST_PING_PONG] = ping_pong, [TEST_BIDIRECTIONAL] = bidirectional,
	[TEST_BURST] = burst,         [TEST_STREAM] = stream,
	[TEST_LOOK] = look,
};

/* ---- runs ------------------------------------------------------------------------------------ */

/* The time of `count` rounds, ns; both ranks call it. */
static double time_rounds(enum bench_test test, struct pair *p)
{
	uint64_t start;

	if (test == TEST_LOOK) {
		p->mark = 0;
		memset(to, 0, p->bytes);
	} else {
		change_mark(p);
	}
	/* both are here: the areas may be written */
	bench_send(p->other, 0, 0);
	bench_receive(p->other);
	start = bench_now();
	run[test](p);
	start = bench_now() - start;
	if (!p->small && test != TEST_LOOK && (bench_rank || test <= TEST_BIDIRECTIONAL))
		check_bytes(p);
	/* and before they are changed */
	bench_send(p->other, 0, 0);
	bench_receive(p->other);
	return (double)start;
}

/* Rank 0 tells how many rounds come next, 0: no more. */
static bool agree_count(struct pair *p)
{
	if (bench_rank)
		p->count = bench_receive(0).word[0];
	else
		bench_send(1, p->count, 0);
	return p->count != 0;
}

/* Rounds that take about as long as a run should. */
static uint64_t find_count(enum bench_test test, struct pair *p, double seconds)
{
	double ns = 0, wanted = seconds * 1e9;

	for (p->count = 1; ns < wanted / 20; p->count *= 2) {
		agree_count(p);
		ns = time_rounds(test, p);
	}
	p->count = (uint64_t)((double)p->count / 2 * wanted / ns);
	return p->count ? p->count : 1;
}

void bench_pair(enum bench_test test, size_t bytes, bool small, const struct bench_options *o)
{
	struct pair p = { .other = !bench_rank, .bytes = bytes, .small = small };
	const int each =
		test == TEST_BURST || test == TEST_STREAM ? 1 : 2; /* messages of a round */
	double ns[BENCH_RUNS];

	if (bench_rank) {
		while (agree_count(&p))
			time_rounds(test, &p);
		return;
	}
	early = 0;
	p.count = find_count(test, &p, o->seconds);
	for (int i = 0; i < o->runs; i++) {
		agree_count(&p);
		ns[i] = time_rounds(test, &p) / (double)p.count / each;
	}
	bench_point(bench_test_name[test],
		    small               ? "short"
		    : test == TEST_LOOK ? "looked at"
					: "write",
		    bytes, ns, o->runs);
	if (early)
		printf("%12s bytes behind the last one came later %llu times\n", "",
		       (unsigned long long)early);
	p.count = 0;
	agree_count(&p);
}
