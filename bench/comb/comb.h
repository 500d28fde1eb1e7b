/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * comb: how much of the processor an MPI leaves to the program while messages are under way,
 * after the COMB suite of Lawry, Wilson, Maccabe and Brightwell (2002), with which "MPI on
 * Portals 3.0" was measured. Two ranks: rank 0 works and is measured, rank 1 is its partner and
 * does nothing but exchange messages. Plain C and no more than MPI-2, so that any mpicc compiles
 * it:
 *
 *     cd bench/comb
 *     mpicc -O2 -o comb *.c ../ptlperf/clock.c ../ptlperf/stats.c
 *     mpiexec -n 2 ./comb
 *
 * doc/comb.md explains the numbers.
 */
#ifndef COMB_H
#define COMB_H

#include <stddef.h>
#include <stdint.h>

#include "../ptlperf/stats.h"

enum comb_method { COMB_PWW, COMB_POLLING };
/* The side rank 0 is on; these are bits. */
enum comb_side { COMB_RECEIVE = 1, COMB_SEND = 2, COMB_BOTH = 3 };
enum comb_work { COMB_COMPUTE, COMB_MEMORY };

enum { COMB_MOST_LIST = 32, COMB_MOST_BATCH = 64, COMB_ERROR = 256 };
enum { COMB_WORKER = 0, COMB_PARTNER = 1 };

/* The values of an option, each of which is measured. */
struct comb_list {
	int count;
	double value[COMB_MOST_LIST];
};

struct comb_options {
	struct comb_list methods, sides, sizes, works, tests;
	struct comb_list intervals; /* us; empty: made for each size */
	int batch;
	size_t array;     /* bytes that work of the kind COMB_MEMORY sweeps */
	double ns;        /* to spend on each point */
	const char *json; /* NULL: none; "-": standard output */
	int help;
};

/* The settings of one measurement. */
struct comb_point {
	enum comb_method method;
	enum comb_side side;
	enum comb_work work;
	int tests; /* calls of MPI_Test in the work phase, 0 or 1 */
	int batch; /* messages in a cycle, or under way while polling */
	size_t size;
	double interval; /* ns of work: in a cycle, or between two polls */
};

/* Times in ns, shares in %, GB/s; 0 where a method does not have it. */
struct comb_result {
	double availability, availability_p99, availability_best;
	double work_availability, cpu_availability, wait_share, bandwidth;
	double work_dry, work, post, wait, transfer, time;
};

/* ---- options.c ---- */

extern const char comb_usage[];

/* 0, or -1 with a message that says what is wrong. Does not need MPI. */
int comb_parse(int argc, char **argv, struct comb_options *o, char error[COMB_ERROR]);
/* The work intervals for a size, in ns, where none were asked for: fractions and multiples of
 * what the messages take at 4 GB/s, so that they are the same with every MPI. */
void comb_intervals(const struct comb_options *o, enum comb_method method, size_t size,
		    struct comb_list *out);

/* ---- work.c ---- */

/* Finds out how fast each kind of work is. `array`: bytes to sweep. */
void comb_work_init(size_t array);
void comb_work_fini(void);
/* Iterations that take about so long. */
uint64_t comb_work_count(enum comb_work work, double ns);
void comb_work_run(enum comb_work work, uint64_t count);

/* ---- cpu.c: processor time of the worker ---- */

struct comb_cpu {
	double process, thread; /* ns when the measurement began */
	double mark;
	double dry, wet; /* of the thread that works */
};

void comb_cpu_start(struct comb_cpu *c);
/* Around each piece of work with messages or without. */
void comb_cpu_mark(struct comb_cpu *c);
void comb_cpu_add(struct comb_cpu *c, double *to);
/* In %: work without messages beside the whole process with them. All that other threads did
 * while the measurement lasted counts as done for the messages. */
double comb_cpu_availability(struct comb_cpu *c);

/* ---- common.c ---- */

extern int comb_rank;

/* Room for a batch of messages each way, in memory that has been touched. */
void comb_buffers_init(size_t size, int batch);
void comb_buffers_fini(void);
void *comb_rx(int slot);
void *comb_tx(int slot);
/* Before an exchange of a point's messages, and after it: what was sent is what is there. */
void comb_fill(const struct comb_point *p);
void comb_verify(const struct comb_point *p, int first_byte);
/* Whether messages of the point's size go to this rank. */
int comb_receives(const struct comb_point *p);
/* Whether it sends them. */
int comb_sends(const struct comb_point *p);
void comb_keep(struct perf_samples *s, double value);
double comb_median(struct perf_samples *s);
/* From samples of time with messages / time without. */
void comb_availability(struct perf_samples *loss, struct comb_result *out);
/* Says what is wrong and ends the job. */
void __attribute__((noreturn, format(printf, 1, 2))) comb_fail(const char *format, ...);

/* ---- pww.c, polling.c: all of one point, on both ranks; the result is the worker's ---- */

void comb_pww(const struct comb_point *p, double ns, struct comb_result *out);
void comb_polling(const struct comb_point *p, double ns, struct comb_result *out);

/* ---- report.c: the worker's ---- */

/* 0, or -1 when the JSON cannot be written. */
int comb_report_start(const struct comb_options *o);
void comb_report_point(const struct comb_point *p, const struct comb_result *r);
int comb_report_end(void);

#endif
