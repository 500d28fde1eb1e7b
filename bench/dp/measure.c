/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The measurements of dp_bench. As in the paper, a time is the mean of the middle 80 % of the
 * rounds. Bursts are shorter than the pool, so nothing is lost in them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

/* ---- small things ---------------------------------------------------------------------------- */

static void send_message(const struct bench *b, int size)
{
	if (dp_write(b->fd, b->buffer, size) != size)
		bench_fail("dp_write");
}

static int take_message(const struct bench *b)
{
	char *at;
	int n = dp_read(b->fd, &at);

	if (n < 0)
		bench_fail("dp_read");
	dp_fsync(b->fd, 1);
	return n;
}

static void wait_readable(const struct bench *b)
{
	struct pollfd p = { .fd = b->fd, .events = POLLIN };

	while (poll(&p, 1, -1) != 1)
		if (errno != EINTR)
			bench_fail("poll");
}

static void take_by(const struct bench *b, enum waiting waiting)
{
	if (waiting == BY_POLL || waiting == BY_POLL_AND_READ)
		wait_readable(b);
	if (waiting == BY_POLL_AND_READ) {
		if (read(b->fd, b->buffer, DP_MAX_MESSAGE) < 0)
			bench_fail("read");
	} else {
		take_message(b);
	}
}

void bench_watch(const struct bench *b, int mode)
{
	if (dp_ctl(b->fd, DP_WATCH, &mode) < 0)
		bench_fail("dp_ctl");
}

static void set_flow(const struct bench *b, int on)
{
	if (dp_ctl(b->fd, DP_FLOW, &on) < 0)
		bench_fail("dp_ctl");
}

void bench_order(const struct bench *b, struct order o)
{
	if (dp_write(b->orders, &o, sizeof(o)) != sizeof(o))
		bench_fail("dp_write");
}

/* Both have set DP_FLOW. A sender learns of that while it writes. */
static void learn_flow(const struct bench *b)
{
	for (int i = 0; i < 2; i++) {
		send_message(b, 4);
		usleep(20000);
	}
	for (int i = 0; i < 2; i++)
		take_message(b);
}

/* The other process is ready, or has done its part. */
static void meet(const struct bench *b)
{
	char *at, byte = 0;

	if (dp_write(b->orders, &byte, 1) != 1 || dp_read(b->orders, &at) != 1)
		bench_fail("an order");
	dp_fsync(b->orders, 1);
}

static double middle_of(double *sample, int n)
{
	struct perf_stats s;

	perf_stats_of(sample, (size_t)n, &s);
	return s.middle;
}

static double *samples(int n)
{
	double *s = calloc((size_t)n, sizeof(*s));

	if (!s)
		bench_fail("calloc");
	return s;
}

static int watch_mode(enum waiting waiting)
{
	return waiting == BY_POLL || waiting == BY_POLL_AND_READ ? DP_WATCH_ALWAYS : DP_WATCH_AUTO;
}

/* ---- one way --------------------------------------------------------------------------------- */

/* Sleeping: the answer comes so late that a reader has given up spinning. */
static void pause_for(enum waiting waiting)
{
	if (waiting == BY_SLEEPING)
		usleep(400);
}

double bench_one_way(struct bench *b, int size, enum waiting waiting)
{
	int n = waiting == BY_SPINNING ? b->rounds : b->rounds / 4 + 1;
	double *sample = samples(n), one_way;

	bench_order(
		b, (struct order){
			   .kind = ORDER_ECHO, .size = size, .count = n, .waiting = (int)waiting });
	bench_watch(b, watch_mode(waiting));
	meet(b);
	for (int i = 0; i < n; i++) {
		uint64_t start;

		pause_for(waiting);
		start = perf_now();
		send_message(b, size);
		take_by(b, waiting == BY_SLEEPING ? BY_SPINNING : waiting);
		sample[i] = perf_ns(perf_now() - start) / 2;
	}
	one_way = middle_of(sample, n);
	bench_watch(b, DP_WATCH_AUTO);
	free(sample);
	return one_way;
}

static void echo(struct bench *b, const struct order *o)
{
	bench_watch(b, watch_mode((enum waiting)o->waiting));
	meet(b);
	for (int i = 0; i < o->count; i++) {
		take_by(b, (enum waiting)o->waiting);
		send_message(b, o->size);
	}
	bench_watch(b, DP_WATCH_AUTO);
}

/* ---- the parameters -------------------------------------------------------------------------- */

/* Os: the call, while nothing else is under way. */
double bench_write(struct bench *b, int size)
{
	double *sample = samples(b->rounds), os;

	bench_order(b, (struct order){ .kind = ORDER_ECHO, .size = 4, .count = b->rounds });
	meet(b);
	for (int i = 0; i < b->rounds; i++) {
		uint64_t start = perf_now();

		send_message(b, size);
		sample[i] = perf_ns(perf_now() - start) - perf_clock_cost();
		take_message(b);
	}
	os = middle_of(sample, b->rounds);
	free(sample);
	return os > 0 ? os : 0;
}

/* Os + Or: a message to oneself has arrived when the call returns. */
double bench_write_self(struct bench *b, int size)
{
	double *sample = samples(b->rounds), t;
	const int own = DATA;

	dp_target(b->fd, dp_nid(), own);
	send_message(b, size);
	take_message(b);
	for (int i = 0; i < b->rounds; i++) {
		uint64_t start = perf_now();

		send_message(b, size);
		sample[i] = perf_ns(perf_now() - start) - perf_clock_cost();
		take_message(b);
	}
	t = middle_of(sample, b->rounds);
	free(sample);
	bench_target(b);
	return t > 0 ? t : 0;
}

static int bursts_of(const struct bench *b)
{
	return b->rounds / 20 + 5;
}

/* Ur: what stands in the pool is picked up. The order that comes behind the burst says that it
 * does. */
double bench_pick_up(struct bench *b, int size)
{
	const int n = bursts_of(b);
	double *sample = samples(n), ur;
	char *at;

	bench_watch(b, DP_WATCH_NEVER);
	bench_order(b, (struct order){ .kind = ORDER_BURSTS, .size = size, .count = n });
	for (int i = 0; i < n; i++) {
		uint64_t start;
		int got = 0;

		if (dp_read(b->orders, &at) < 0)
			bench_fail("dp_read");
		dp_fsync(b->orders, 1);
		start = perf_now();
		for (int k = 0; k < BURST; k++)
			got += dp_read(b->fd, &at) == size;
		sample[i] = (perf_ns(perf_now() - start) - perf_clock_cost()) / BURST;
		if (got != BURST)
			bench_fail("a message");
		dp_fsync(b->fd, BURST);
		dp_write(b->orders, "", 1);
	}
	ur = middle_of(sample, n);
	bench_watch(b, DP_WATCH_AUTO);
	free(sample);
	return ur;
}

static void send_bursts(struct bench *b, const struct order *o)
{
	char *at;

	for (int i = 0; i < o->count; i++) {
		for (int k = 0; k < BURST; k++)
			send_message(b, o->size);
		if (dp_write(b->orders, "", 1) != 1 || dp_read(b->orders, &at) < 0)
			bench_fail("an order");
		dp_fsync(b->orders, 1);
	}
}

/* gs: between packets of a burst, where they are sent. */
double bench_gap_sent(struct bench *b, int size)
{
	const int n = bursts_of(b);
	double *sample = samples(n), gs;

	for (int i = 0; i < n; i++) {
		uint64_t start;

		bench_order(b, (struct order){ .kind = ORDER_DRAIN, .size = size, .count = BURST });
		meet(b);
		start = perf_now();
		for (int k = 0; k < BURST; k++)
			send_message(b, size);
		sample[i] = perf_ns(perf_now() - start) / BURST;
		take_message(b);
	}
	gs = middle_of(sample, n);
	free(sample);
	return gs;
}

static void drain(struct bench *b, const struct order *o)
{
	meet(b);
	for (int i = 0; i < o->count; i++)
		take_message(b);
	send_message(b, 4);
}

/* gr: between packets of a burst, where they arrive. */
double bench_gap_received(struct bench *b, int size)
{
	const int n = bursts_of(b);
	double *sample = samples(n), gr;

	for (int i = 0; i < n; i++) {
		uint64_t start;

		bench_order(b, (struct order){ .kind = ORDER_SEND, .size = size, .count = BURST });
		meet(b);
		take_message(b);
		start = perf_now();
		for (int k = 1; k < BURST; k++)
			take_message(b);
		sample[i] = perf_ns(perf_now() - start) / (BURST - 1);
	}
	gr = middle_of(sample, n);
	free(sample);
	return gr;
}

static void send_some(struct bench *b, const struct order *o)
{
	meet(b);
	for (int i = 0; i < o->count; i++)
		send_message(b, o->size);
}

/* T(M) by packets, with an answer of 4 bytes, whose one-way time the caller takes off. */
double bench_message(struct bench *b, size_t bytes, int packet)
{
	const int n = b->rounds / 100 + 5;
	const int count = (int)((bytes + (size_t)packet - 1) / (size_t)packet);
	double *sample = samples(n), t;

	for (int i = 0; i < n; i++) {
		size_t left = bytes;
		uint64_t start;

		bench_order(b, (struct order){ .kind = ORDER_DRAIN, .count = count });
		meet(b);
		start = perf_now();
		for (int k = 0; k < count; k++, left -= (size_t)packet)
			send_message(b, left < (size_t)packet ? (int)left : packet);
		take_message(b);
		sample[i] = perf_ns(perf_now() - start);
	}
	t = middle_of(sample, n);
	free(sample);
	return t;
}

/* ---- streams --------------------------------------------------------------------------------- */

static int stream_count(const struct bench *b, int size)
{
	size_t bytes = b->quick ? (size_t)10 << 20 : (size_t)100 << 20;
	size_t n = bytes / (size_t)size;

	return n > 200000 ? 200000 : (int)n;
}

/* The last message of a stream has a length of its own, and comes until it is answered: it may
 * be lost, too. */
double bench_stream(struct bench *b, int size, bool flow, int flush, double *lost)
{
	const int count = stream_count(b, size);
	struct pollfd p = { .fd = b->orders, .events = POLLIN };
	uint64_t start;
	double ns;
	char *at;
	int got;

	set_flow(b, flow);
	bench_order(b, (struct order){ .kind = ORDER_STREAM,
				       .size = size,
				       .count = count,
				       .flush = flush,
				       .flow = flow });
	meet(b);
	usleep(300000);
	if (flow)
		learn_flow(b);
	bench_target(b);
	start = perf_now();
	for (int i = 0; i < count; i++)
		send_message(b, size);
	do {
		send_message(b, size - 8);
	} while (poll(&p, 1, 1) == 0);
	if (dp_read(b->orders, &at) != (int)sizeof(got))
		bench_fail("an answer");
	ns = perf_ns(perf_now() - start);
	memcpy(&got, at, sizeof(got));
	dp_fsync(b->orders, 1);
	set_flow(b, 0);
	meet(b);
	*lost = 100.0 * (count - got) / count;
	return (double)got * size / ns * 1e3;
}

static void take_stream(struct bench *b, const struct order *o)
{
	int got = 0, held = 0;
	char *at;

	set_flow(b, o->flow);
	meet(b);
	if (o->flow) {
		usleep(300000);
		learn_flow(b);
	}
	while (dp_read(b->fd, &at) == o->size) {
		got++;
		if (++held == o->flush)
			held -= dp_fsync(b->fd, held);
	}
	dp_fsync(b->fd, held + 1);
	if (dp_write(b->orders, &got, sizeof(got)) < 0)
		bench_fail("dp_write");
	meet(b);
	set_flow(b, 0);
	usleep(300000);
	/* what is left of the end */
	if (fcntl(b->fd, F_SETFL, O_NONBLOCK) == 0)
		while (dp_read(b->fd, &at) >= 0)
			dp_fsync(b->fd, 1);
	fcntl(b->fd, F_SETFL, 0);
}

/* ---- both ways ------------------------------------------------------------------------------- */

struct half {
	struct bench *b;
	int size, count;
};

static void *send_half(void *argument)
{
	const struct half *h = argument;

	for (int i = 0; i < h->count; i++)
		send_message(h->b, h->size);
	return NULL;
}

static void exchange(struct bench *b, int size, int count, bool two_threads)
{
	struct half h = { b, size, count };
	pthread_t thread;

	if (two_threads && pthread_create(&thread, NULL, send_half, &h))
		bench_fail("pthread_create");
	for (int i = 0; i < count; i++) {
		if (!two_threads)
			send_message(b, size);
		take_message(b);
	}
	if (two_threads)
		pthread_join(thread, NULL);
}

double bench_both(struct bench *b, int size, bool two_threads)
{
	const int count = stream_count(b, size) / 4 + 1;
	uint64_t start;
	double ns;

	set_flow(b, 1);
	bench_order(b, (struct order){ .kind = ORDER_BOTH,
				       .size = size,
				       .count = count,
				       .flush = two_threads });
	meet(b);
	usleep(300000);
	learn_flow(b);
	start = perf_now();
	exchange(b, size, count, two_threads);
	ns = perf_ns(perf_now() - start);
	set_flow(b, 0);
	meet(b);
	return (double)count * size / ns * 1e3;
}

static void exchange_as_told(struct bench *b, const struct order *o)
{
	set_flow(b, 1);
	meet(b);
	usleep(300000);
	learn_flow(b);
	exchange(b, o->size, o->count, o->flush);
	set_flow(b, 0);
	meet(b);
}

/* ---- process 1 ------------------------------------------------------------------------------- */

static void obey(struct bench *b, const struct order *o)
{
	switch (o->kind) {
	case ORDER_ECHO:
		echo(b, o);
		break;
	case ORDER_DRAIN:
		drain(b, o);
		break;
	case ORDER_SEND:
		send_some(b, o);
		break;
	case ORDER_BURSTS:
		send_bursts(b, o);
		break;
	case ORDER_STREAM:
		take_stream(b, o);
		break;
	case ORDER_BOTH:
		exchange_as_told(b, o);
		break;
	case ORDER_RAW:
		bench_raw_answer(b, o->size, o->count);
		break;
	case ORDER_SOCKETS:
		bench_socket_answer(b, o);
		break;
	default:
		bench_fail("an order");
	}
}

void bench_serve(struct bench *b)
{
	struct order o = { .kind = ORDER_ECHO };
	char *at;

	for (;;) {
		int n = dp_read(b->orders, &at);

		if (n != (int)sizeof(o))
			bench_fail("an order");
		memcpy(&o, at, sizeof(o));
		dp_fsync(b->orders, 1);
		if (o.kind == ORDER_END)
			return;
		obey(b, &o);
	}
}
