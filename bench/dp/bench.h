/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * dp_bench: two processes, of which the first measures and the second does as it is told.
 */
#ifndef DP_BENCH_H
#define DP_BENCH_H

#include <dp.h>
#include <portals3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../ptlperf/clock.h"
#include "../ptlperf/stats.h"

/* Endpoints: process 0 has the odd ones, process 1 the even ones. */
enum { DATA = 1, ORDERS = 3, POOL_BYTES = 16 << 20, POOL_MESSAGES = 16000, BURST = 64 };

/* How a receiver waits. */
enum waiting { BY_SPINNING, BY_SLEEPING, BY_POLL, BY_POLL_AND_READ, WAITINGS };

enum order_kind {
	ORDER_END,
	ORDER_ECHO,   /* answer `count` messages of `size` bytes with the same */
	ORDER_DRAIN,  /* take `count` messages, then answer with 4 bytes */
	ORDER_SEND,   /* send `count` messages of `size` bytes */
	ORDER_BURSTS, /* `count` times: BURST messages, an order to look, and an answer to that */
	ORDER_STREAM, /* take what comes until the message with `last`, and tell how many came */
	ORDER_BOTH,   /* send and take `count` messages at once */
	ORDER_RAW,    /* answer puts without DP */
	ORDER_SOCKETS /* answer messages of a kind of socket, `waiting`, with `flush` bytes */
};

struct order {
	int kind, size, count, waiting, flush, flow;
};

struct bench {
	int rank;
	int peer_nid;
	int fd, orders; /* descriptors */
	bool quick, pin;
	int rounds;
	size_t packet;
	char *buffer;
	struct { /* of results */
		const char *test;
		char variant[32];
		size_t size;
		const char *unit;
		double value;
	} result[1024];
	int results;
};

/* measure.c: process 0 */
double bench_one_way(struct bench *b, int size, enum waiting waiting);
double bench_write(struct bench *b, int size);
double bench_write_self(struct bench *b, int size);
double bench_pick_up(struct bench *b, int size);
double bench_gap_sent(struct bench *b, int size);
double bench_gap_received(struct bench *b, int size);
double bench_message(struct bench *b, size_t bytes, int packet);
/* Set DP_WATCH of the endpoint for data. */
void bench_watch(const struct bench *b, int mode);
/* MB/s of what arrived; *lost in per cent */
double bench_stream(struct bench *b, int size, bool flow, int flush, double *lost);
double bench_both(struct bench *b, int size, bool two_threads);
/* process 1 */
void bench_serve(struct bench *b);
void bench_order(const struct bench *b, struct order o);

/* raw.c: the same ping-pong by puts alone */
double bench_raw_one_way(struct bench *b, int size);
void bench_raw_answer(struct bench *b, int size, int count);

/* sockets.c: `bytes` there and `answer` back by a socket, ns; -1: not by this kind */
enum bench_socket { SOCKET_UDP, SOCKET_UNIX, SOCKET_TCP, SOCKETS };
double bench_by_socket(struct bench *b, enum bench_socket kind, size_t bytes, size_t answer);
void bench_socket_answer(struct bench *b, const struct order *o);

/* main.c */
/* Messages go to the other process again. */
void bench_target(const struct bench *b);
void bench_fail(const char *what) __attribute__((noreturn));
void bench_record(struct bench *b, const char *test, const char *variant, size_t size,
		  const char *unit, double value);

#endif
