/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The least that the comparisons with the bare fabrics need: two ranks that put to each other,
 * without the floors, fills and checks of ptlperf, which take minutes on an emulated processor.
 *
 *   fabprobe latency BYTES TRIPS      microseconds of a half round trip, the mean; both spin
 *   fabprobe typical BYTES TRIPS      the same, the median of single trips
 *   fabprobe bandwidth BYTES COUNT    GB/s of a stream of puts, WINDOW in flight, until the last
 *                                     body was taken
 *   fabprobe burst BYTES FILE         rank 0 puts BURST messages, then makes FILE; rank 1, which
 *                                     sees it, takes them all. The two functions do nothing
 *                                     else: a tool that counts instructions is told to count in
 *                                     put_burst and in take_burst
 */
#include <cnos_mpi_os.h>
#include <fcntl.h>
#include <p3rt/p3rt.h>
#include <portals3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { INDEX = 6, BITS = 1, WINDOW = 64, WARM_UP = 16, BURST = 12, DONE = 2 };

struct ends {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_process_id_t other;
	unsigned int rank;
	char *bytes;
	size_t size;
	bool sleeps;
};

static void check(int code, const char *what)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "fabprobe: %s: %s\n", what, PtlErrorStr((unsigned)code));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put(struct ends *e, ptl_match_bits_t bits)
{
	check(PtlPut(e->md, PTL_NO_ACK_REQ, e->other, INDEX, 0, bits, 0, 0), "PtlPut");
}

/* Spins, or sleeps, for `count` events of a kind. */
static void expect(struct ends *e, ptl_event_kind_t kind, size_t count)
{
	ptl_event_t ev;

	while (count) {
		int code = e->sleeps ? PtlEQWait(e->eq, &ev) : PtlEQGet(e->eq, &ev);

		if (code == PTL_EQ_EMPTY)
			continue;
		check(code, "PtlEQGet");
		if (ev.ni_fail_type != PTL_NI_OK) {
			fprintf(stderr, "fabprobe: an operation failed: %s\n",
				PtlNIFailStr(e->ni, ev.ni_fail_type));
			exit(1);
		}
		count -= ev.type == kind;
	}
}

static void expose(struct ends *e, ptl_match_bits_t bits, void *bytes, size_t size)
{
	ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = { .start = bytes,
			.length = size,
			.threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
				   PTL_MD_EVENT_START_DISABLE,
			.eq_handle = e->eq };
	ptl_handle_me_t me;

	check(PtlMEAttach(e->ni, INDEX, anybody, bits, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
	      "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
}

static void open_ends(struct ends *e, size_t size, unsigned int quiet)
{
	ptl_md_t md = { .length = size, .threshold = PTL_MD_THRESH_INF };
	unsigned int ranks;
	int interfaces;

	check(PtlInit(&interfaces), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &e->ni), "PtlNIInit");
	check(PtlGetRank(e->ni, &e->rank, &ranks), "PtlGetRank");
	if (ranks != 2) {
		fputs("fabprobe: it takes two ranks: mpiexec -n 2 fabprobe ...\n", stderr);
		exit(2);
	}
	check(PtlGetRankId(e->ni, 1 - e->rank, &e->other), "PtlGetRankId");
	check(PtlEQAlloc(e->ni, 4 * WINDOW, PTL_EQ_HANDLER_NONE, &e->eq), "PtlEQAlloc");
	e->size = size;
	e->bytes = aligned_alloc(4096, (2 * size + 8191) & ~(size_t)4095);
	if (!e->bytes) {
		fputs("fabprobe: out of memory\n", stderr);
		exit(1);
	}
	memset(e->bytes, 1, 2 * size + 1);
	expose(e, BITS, e->bytes + size, size);
	expose(e, DONE, NULL, 0);
	md.start = e->bytes;
	md.options = PTL_MD_EVENT_START_DISABLE | quiet;
	md.eq_handle = e->eq;
	check(PtlMDBind(e->ni, md, PTL_RETAIN, &e->md), "PtlMDBind");
	cnos_barrier_init(e->ni);
	cnos_barrier();
}

/* ---- the four -------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* When each trip began goes to `times`, if that is not NULL. The clock, which is slow on an
 * emulated processor, is looked at while the message is on its way. */
static void trips(struct ends *e, size_t count, double *times)
{
	for (size_t i = 0; i < count; i++) {
		if (e->rank == 0)
			put(e, BITS);
		if (times)
			times[i] = now();
		expect(e, PTL_EVENT_PUT_END, 1);
		if (e->rank == 1)
			put(e, BITS);
	}
}

static void latency(struct ends *e, size_t count)
{
	double start;

	trips(e, WARM_UP, NULL); /* connects, too */
	start = now();
	trips(e, count, NULL);
	if (e->rank == 0)
		printf("%.3f\n", 1e6 * (now() - start) / (2 * (double)count));
}

static void typical(struct ends *e, size_t count)
{
	double *us = calloc(count + 1, sizeof(*us));

	if (!us)
		exit(1);
	trips(e, WARM_UP, NULL);
	trips(e, count + 1, e->rank == 0 ? us : NULL);
	for (size_t i = 0; i < count; i++)
		us[i] = 1e6 * (us[i + 1] - us[i]) / 2;
	qsort(us, count, sizeof(*us), by_value);
	if (e->rank == 0)
		printf("%.3f\n", us[count / 2]);
	free(us);
}

static void stream(struct ends *e, size_t count)
{
	size_t flying = 0;

	for (size_t i = 0; i < count; i++) {
		if (flying == WINDOW) {
			expect(e, PTL_EVENT_SEND_END, 1);
			flying--;
		}
		put(e, BITS);
		flying++;
	}
	expect(e, PTL_EVENT_SEND_END, flying);
}

static void bandwidth(struct ends *e, size_t count)
{
	double start;

	/* the target does the work, by reading; who only waits leaves it the processor, as the
	 * bare device's tools do */
	e->sleeps = e->rank == 0;
	if (e->rank == 1) {
		expect(e, PTL_EVENT_PUT_END, 8 + count);
		return;
	}
	stream(e, 8);
	start = now();
	stream(e, count);
	printf("%.4f\n", 1e-9 * (double)(count * e->size) / (now() - start));
}

void put_burst(struct ends *e);
void take_burst(struct ends *e);

__attribute__((noinline)) void put_burst(struct ends *e)
{
	for (int i = 0; i < BURST; i++)
		put(e, BITS);
}

__attribute__((noinline)) void take_burst(struct ends *e)
{
	expect(e, PTL_EVENT_PUT_END, BURST);
}

static void burst(struct ends *e, const char *file)
{
	int fd;

	trips(e, WARM_UP, NULL);
	if (e->rank == 0) {
		put_burst(e);
		fd = open(file, O_CREAT | O_WRONLY, 0600);
		if (fd >= 0)
			close(fd);
		printf("%d\n", BURST);
		return;
	}
	while (access(file, F_OK) != 0)
		;
	take_burst(e);
}

int main(int argc, char **argv)
{
	struct ends e = { .rank = 0 };
	const char *what = argc == 4 ? argv[1] : "";
	size_t size = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
	size_t count = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;

	if (strcmp(what, "burst") != 0 &&
	    (count == 0 || (strcmp(what, "latency") != 0 && strcmp(what, "typical") != 0 &&
			    strcmp(what, "bandwidth") != 0))) {
		fputs("usage: mpiexec -n 2 fabprobe latency BYTES TRIPS | typical BYTES TRIPS | "
		      "bandwidth BYTES COUNT | burst BYTES FILE\n",
		      stderr);
		return 2;
	}
	open_ends(&e, size, *what == 'b' && what[1] == 'a' ? 0 : PTL_MD_EVENT_END_DISABLE);
	if (!strcmp(what, "latency"))
		latency(&e, count);
	else if (!strcmp(what, "typical"))
		typical(&e, count);
	else if (!strcmp(what, "bandwidth"))
		bandwidth(&e, count);
	else
		burst(&e, argv[3]);
	cnos_barrier();
	PtlNIFini(e.ni);
	free(e.bytes);
	PtlFini();
	return 0;
}
