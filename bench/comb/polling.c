/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The polling method. A number of messages is always under way: each that arrives is answered by
 * another one. The partner answers at once; the worker does a piece of work, looks what has
 * arrived, answers, and so on. Long pieces leave it more of the processor and the messages less
 * of its time.
 *
 * Where the worker only receives, its answers are a word, and so are the partner's where it only
 * sends. The first word of a message is not data: it says whether there will be more. A
 * repetition is the loop without messages, with the partner waiting in a receive, and the loop
 * with them.
 */
#include <mpi.h>
#include <stddef.h>
#include <string.h>

#include "../ptlperf/clock.h"
#include "comb.h"

enum { START_TAG = 1, READY_TAG, SLOT_TAG /* and as many as there are slots */ };
/* short repetitions, many of them: what others do on the machine then spoils few */
enum { LEAST_POLLS = 10, LEAST_REPEAT = 3, REPEAT = 15, MOST_REPEAT = 100 };
enum { STOP = 0, GO_ON = 1 };

struct series {
	struct perf_samples dry, wet, loss, bandwidth;
	struct comb_cpu cpu;
};

static MPI_Request receive[COMB_MOST_BATCH], send[COMB_MOST_BATCH];
static MPI_Status
	statuses[COMB_MOST_BATCH]; /* for compilers that think MPI_STATUSES_IGNORE an address */

static int length(const struct comb_point *p, int whole)
{
	return whole ? (int)p->size : (int)sizeof(int);
}

static void post_receive(const struct comb_point *p, int slot)
{
	MPI_Irecv(comb_rx(slot), length(p, comb_receives(p)), MPI_BYTE, !comb_rank, SLOT_TAG + slot,
		  MPI_COMM_WORLD, &receive[slot]);
}

static void post_send(const struct comb_point *p, int slot, int word)
{
	/* what was sent in this slot before has been answered; this does not wait */
	MPI_Wait(&send[slot], MPI_STATUS_IGNORE);
	memcpy(comb_tx(slot), &word, sizeof(word));
	MPI_Isend(comb_tx(slot), length(p, comb_sends(p)), MPI_BYTE, !comb_rank, SLOT_TAG + slot,
		  MPI_COMM_WORLD, &send[slot]);
}

static int word_of(int slot)
{
	int word;

	memcpy(&word, comb_rx(slot), sizeof(word));
	return word;
}

static void start_receives(const struct comb_point *p)
{
	for (int i = 0; i < p->batch; i++) {
		send[i] = MPI_REQUEST_NULL;
		post_receive(p, i);
	}
}

/* ---- the partner ---- */

/* Answers until each slot has been told to stop. */
static void answer(const struct comb_point *p)
{
	int going = p->batch, done[COMB_MOST_BATCH], count;

	while (going) {
		MPI_Waitsome(p->batch, receive, &count, done, statuses);
		for (int i = 0; i < count; i++) {
			if (word_of(done[i]) == STOP) {
				going--;
				continue;
			}
			post_receive(p, done[i]);
			post_send(p, done[i], GO_ON);
		}
	}
	MPI_Waitall(p->batch, send, statuses);
}

static void partner(const struct comb_point *p)
{
	char more;

	for (;;) {
		MPI_Recv(&more, 1, MPI_CHAR, COMB_WORKER, START_TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (!more)
			return;
		start_receives(p);
		MPI_Send(NULL, 0, MPI_CHAR, COMB_WORKER, READY_TAG, MPI_COMM_WORLD);
		for (int i = 0; i < p->batch; i++)
			post_send(p, i, GO_ON);
		answer(p);
	}
}

/* ---- the worker ---- */

static void tell_partner(char more)
{
	MPI_Send(&more, 1, MPI_CHAR, COMB_PARTNER, START_TAG, MPI_COMM_WORLD);
}

/* How many messages had arrived and were answered. */
static int look(const struct comb_point *p)
{
	int done[COMB_MOST_BATCH], count;

	MPI_Testsome(p->batch, receive, &count, done, statuses);
	for (int i = 0; i < count; i++) {
		post_receive(p, done[i]);
		post_send(p, done[i], GO_ON);
	}
	return count;
}

/* Not timed: the messages that are under way are the last ones. */
static void drain(const struct comb_point *p)
{
	MPI_Waitall(p->batch, receive, statuses);
	for (int i = 0; i < p->batch; i++)
		post_send(p, i, STOP);
	MPI_Waitall(p->batch, send, statuses);
}

static double dry_loop(const struct comb_point *p, uint64_t count, uint64_t polls,
		       struct comb_cpu *cpu)
{
	uint64_t start;
	double took;

	comb_cpu_mark(cpu);
	start = perf_now();
	for (uint64_t i = 0; i < polls; i++)
		comb_work_run(p->work, count);
	took = perf_ns(perf_now() - start);
	comb_cpu_add(cpu, &cpu->dry);
	return took;
}

static double wet_loop(const struct comb_point *p, uint64_t count, uint64_t polls,
		       struct comb_cpu *cpu, uint64_t *messages)
{
	uint64_t start;
	double took;

	*messages = 0;
	tell_partner(1);
	start_receives(p);
	/* it may have been asleep */
	MPI_Recv(NULL, 0, MPI_CHAR, COMB_PARTNER, READY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	comb_cpu_mark(cpu);
	start = perf_now();
	for (uint64_t i = 0; i < polls; i++) {
		comb_work_run(p->work, count);
		*messages += (uint64_t)look(p);
	}
	took = perf_ns(perf_now() - start);
	comb_cpu_add(cpu, &cpu->wet);
	drain(p);
	return took;
}

static void repetition(const struct comb_point *p, uint64_t count, uint64_t polls, struct series *s)
{
	double bytes = (double)p->size * (p->side == COMB_BOTH ? 2 : 1), dry, wet;
	uint64_t messages;

	dry = dry_loop(p, count, polls, &s->cpu);
	wet = wet_loop(p, count, polls, &s->cpu, &messages);
	comb_keep(&s->dry, dry);
	comb_keep(&s->wet, wet);
	comb_keep(&s->loss, wet / dry);
	comb_keep(&s->bandwidth, bytes * (double)messages / wet);
}

static void measure(const struct comb_point *p, struct series *s, double ns)
{
	uint64_t count = comb_work_count(p->work, p->interval), start;
	double polls = ns / (2 * REPEAT * p->interval);

	if (polls < LEAST_POLLS)
		polls = LEAST_POLLS;
	comb_cpu_start(&s->cpu);
	start = perf_now();
	for (int i = 0; i < LEAST_REPEAT || (i < MOST_REPEAT && perf_ns(perf_now() - start) < ns);
	     i++)
		repetition(p, count, (uint64_t)polls, s);
}

static void conclude(struct series *s, struct comb_result *out)
{
	out->cpu_availability = comb_cpu_availability(&s->cpu);
	comb_availability(&s->loss, out);
	out->work_dry = comb_median(&s->dry);
	out->time = comb_median(&s->wet);
	out->bandwidth = comb_median(&s->bandwidth);
	perf_samples_fini(&s->dry);
	perf_samples_fini(&s->wet);
	perf_samples_fini(&s->loss);
	perf_samples_fini(&s->bandwidth);
}

void comb_polling(const struct comb_point *p, double ns, struct comb_result *out)
{
	struct series s = { 0 };

	comb_fill(p);
	MPI_Barrier(MPI_COMM_WORLD);
	if (comb_rank == COMB_PARTNER) {
		partner(p);
	} else {
		measure(p, &s, ns);
		conclude(&s, out);
		tell_partner(0);
	}
	comb_verify(p, sizeof(int));
	MPI_Barrier(MPI_COMM_WORLD);
}
