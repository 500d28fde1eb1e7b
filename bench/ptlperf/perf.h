/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The common part of all tests of ptlperf: the context of one process, the failure and watchdog
 * calls, and the entry point of each test. Both ranks run the same tests in the same order; rank 0
 * measures and prints, rank 1 answers.
 */
#ifndef PERF_PERF_H
#define PERF_PERF_H

#include <portals3.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "clock.h"
#include "options.h"
#include "stats.h"

struct perf_board;
struct perf_report;

/* Bandwidths of the bare machine for one size, GB/s; 0 where not measured. */
struct perf_copy_floor {
	size_t size;
	double attach, claims, pipe;
};

#define PERF_COPY_SIZES 8

/* The speed of the machine itself, measured in the same run. 0: not measured. */
struct perf_floor {
	bool cacheline_done, ring_done, copy_done;
	double cacheline_ns; /* half round trip of one line */
	double ring_rate;    /* messages per second through a bare ring */
	double memcpy_small, memcpy_large;
	struct perf_copy_floor copy[PERF_COPY_SIZES];
	int copies;
};

struct perf {
	struct perf_options opt;
	int rank;                 /* 0 or 1 */
	pid_t child;              /* of rank 0 when it started rank 1 itself, else 0 */
	bool in_job;              /* started by a launcher, as one of two */
	int core;                 /* pinned to, or -1 */
	struct perf_board *board; /* memory shared with the other rank, or NULL */
	int board_fd;
	uint32_t turn;     /* of the board's line */
	bool moved;        /* a figure was marked: perf_mark */
	double line_worst; /* of all measurements of this test so far, for what is made of them */

	ptl_handle_ni_t ni;
	ptl_ni_limits_t limits;
	ptl_process_id_t self, other;
	ptl_handle_eq_t ctl_eq;    /* control messages */
	ptl_handle_md_t ctl_md;    /* zero bytes, what control puts are made from */
	ptl_handle_eq_t eq;        /* everything measured */
	ptl_handle_me_t credit_me; /* flow control, link.h */

	unsigned char *tx, *rx; /* buf_len bytes each, page aligned */
	size_t buf_len;

	bool failed; /* a test did not show what it must */
	struct perf_floor floor;
	struct perf_report *report; /* rank 0 */
};

/* ---- watch.c: failing, and noticing that nothing moves ---- */

void perf_watch_start(struct perf *p);
/* Says what is going on now and restarts the deadline. */
void perf_watch(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void perf_watch_stop(void);
void perf_fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void perf_fail_code(int code, const char *what) __attribute__((noreturn));

static inline void perf_ok(int code, const char *what)
{
	if (__builtin_expect(code != PTL_OK, 0))
		perf_fail_code(code, what);
}

/* ---- the tests, each run by both ranks ---- */

void perf_latency(struct perf *p);
void perf_bandwidth(struct perf *p);
void perf_bidirectional(struct perf *p);
void perf_rate(struct perf *p);
void perf_get(struct perf *p);
void perf_getput(struct perf *p);
void perf_match(struct perf *p);
void perf_calls(struct perf *p);
void perf_floor(struct perf *p);
void perf_bypass(struct perf *p);
void perf_model(struct perf *p);
void perf_loggp(struct perf *p);
void perf_rwapi(struct perf *p);
void perf_udp(struct perf *p);
void perf_eth(struct perf *p);

/* Measure the part of the floor a test compares itself with, unless that is done already. */
void perf_floor_cacheline(struct perf *p);
void perf_floor_ring(struct perf *p);
void perf_floor_copy(struct perf *p);
/* The copy floor of `size`, or NULL. */
const struct perf_copy_floor *perf_floor_of(const struct perf *p, size_t size);

#endif
