/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Latency and bandwidth of an MPI between two ranks, measured as ptlperf measures Portals (same
 * timer, same statistics, same windows), for a comparison in one run. Only MPI-1 calls, so that it
 * compiles with any MPI. Both ranks map SHARED-FILE, 256 bytes of zeroes at least, to see beside each
 * figure how far apart their cores are. Prints JSON, one figure per line.
 * Usage: mpi_pingpong SHARED-FILE MIN-MS-PER-POINT SIZE ...
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptlperf/clock.h"
#include "ptlperf/line.h"
#include "ptlperf/stats.h"

enum { MOST_SAMPLES = 200000, MOST_WINDOW = 64, REPEAT = 5, TAG = 1, ACK_TAG = 2 };
#define MOST_SIZE ((size_t)4 << 20)

static int rank;
static char *tx, *rx;
static struct perf_line *line;
static uint32_t turn;
static double line_ns[REPEAT];
static uint64_t ticks[MOST_SAMPLES];
static double all[REPEAT * MOST_SAMPLES];

/* One repetition: `count` samples of messages of `size` bytes, rank 0's ticks in ticks[]. */
typedef void run_fn(int size, int count);

/* As ptlperf: several round trips of short messages in a sample. */
static int trips_of(int size)
{
	return size <= 4096 ? 16 : 1;
}

static void round_trip(int size)
{
	if (rank) {
		MPI_Recv(rx, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(tx, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
	} else {
		MPI_Send(tx, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
		MPI_Recv(rx, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void ping_pong(int size, int count)
{
	uint64_t last = perf_now(), now;

	for (int i = 0; i < count; i++) {
		for (int t = trips_of(size); t; t--)
			round_trip(size);
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
}

/* As ptlperf: 4 MiB in flight, 4 to 64 messages. */
static int window_of(int size)
{
	int window = (4 << 20) / size;

	return window < 4 ? 4 : window > MOST_WINDOW ? MOST_WINDOW : window;
}

static void windows(int size, int count)
{
	MPI_Request request[MOST_WINDOW];
	MPI_Status status[MOST_WINDOW];
	int window = window_of(size);
	uint64_t last = perf_now(), now;
	char ack = 0;

	for (int i = 0; i < count; i++) {
		for (int w = 0; w < window; w++) {
			if (rank)
				MPI_Irecv(rx, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request[w]);
			else
				MPI_Isend(tx, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request[w]);
		}
		MPI_Waitall(window, request, status);
		if (rank) {
			MPI_Send(&ack, 1, MPI_BYTE, 0, ACK_TAG, MPI_COMM_WORLD);
			continue;
		}
		MPI_Recv(&ack, 1, MPI_BYTE, 1, ACK_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
}

/* All ranks, after each run. */
static double look_at_line(void)
{
	return perf_line_look(line, &turn, !rank);
}

static double timed(run_fn *run, int size, int count, double *line_at)
{
	uint64_t start;
	double took;

	MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	start = perf_now();
	if (!count)
		return 0;
	run(size, count);
	took = perf_ns(perf_now() - start);
	*line_at = look_at_line();
	return took;
}

/* Rank 1 runs what rank 0 decides until that is nothing. */
static void follow(run_fn *run, int size)
{
	int count;

	do {
		MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_WORLD);
		if (count) {
			run(size, count);
			look_at_line();
		}
	} while (count);
}

static int find_count(run_fn *run, int size, double min_ns)
{
	int count = 16;

	for (;;) {
		double took = timed(run, size, count, &line_ns[0]), more;

		if (took >= 0.8 * min_ns || count == MOST_SAMPLES)
			return count;
		more = count * (took > 0.1 * min_ns ? 1.1 * min_ns / took : 10);
		count = more < MOST_SAMPLES ? (int)more : MOST_SAMPLES;
	}
}

static struct perf_stats measure(run_fn *run, int size, double min_ns)
{
	struct perf_stats stats = { 0 };
	size_t total = 0;
	int count;

	if (rank) {
		follow(run, size);
		return stats;
	}
	count = find_count(run, size, min_ns);
	for (int r = 0; r < REPEAT; r++) {
		timed(run, size, count, &line_ns[r]);
		for (int i = 0; i < count; i++)
			all[total++] = perf_ns(ticks[i]);
	}
	timed(run, size, 0, &line_ns[0]);
	perf_stats_of(all, total, &stats);
	return stats;
}

static void print(const char *test, int size, const char *unit, double median, double p99,
		  double best)
{
	static const char *separator = "";
	struct perf_stats lines;

	perf_stats_of(line_ns, REPEAT, &lines);
	printf("%s{\"test\": \"%s\", \"size\": %d, \"unit\": \"%s\", \"median\": %.3f, "
	       "\"p99\": %.3f, \"best\": %.3f, \"cacheline\": %.1f, \"cacheline_worst\": %.1f}",
	       separator, test, size, unit, median, p99, best, lines.median, line_ns[REPEAT - 1]);
	separator = ",\n";
}

static void point(int size, double min_ns)
{
	struct perf_stats s = measure(ping_pong, size, min_ns);
	double bytes = (double)size * window_of(size ? size : 1), half = 0.5 / trips_of(size);

	if (!rank)
		print("latency", size, "ns", s.median * half, s.p99 * half, s.min * half);
	if (!size)
		return;
	s = measure(windows, size, min_ns);
	if (!rank)
		print("bandwidth", size, "GB/s", bytes / s.median, bytes / s.p99, bytes / s.min);
}

/* What arrives is what was sent. */
static void verify(int size)
{
	memset(rx, 0, MOST_SIZE);
	for (int i = 0; i < size; i++)
		tx[i] = (char)(i * 31 + rank);
	round_trip(size);
	for (int i = 0; i < size; i++) {
		if (rx[i] != (char)(i * 31 + !rank)) {
			fprintf(stderr, "mpi_pingpong: wrong data at byte %d of %d\n", i, size);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
}

static struct perf_line *map(const char *path)
{
	int fd = open(path, O_RDWR);
	void *at = mmap(NULL, sizeof(struct perf_line), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED) {
		fprintf(stderr, "mpi_pingpong: cannot map %s: %m\n", path);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	close(fd);
	return at;
}

int main(int argc, char **argv)
{
	double min_ns = (argc > 2 ? atof(argv[2]) : 0) * 1e6;
	int ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	perf_clock_init();
	tx = aligned_alloc(4096, MOST_SIZE);
	rx = aligned_alloc(4096, MOST_SIZE);
	if (ranks != 2 || argc < 3 || !tx || !rx) {
		fprintf(stderr, "usage: mpiexec -n 2 mpi_pingpong SHARED-FILE MIN-MS SIZE ...\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	line = map(argv[1]);
	if (!rank)
		printf("{\"results\": [\n");
	for (int i = 3; i < argc; i++) {
		int size = atoi(argv[i]);

		if (size < 0 || (size_t)size > MOST_SIZE)
			continue;
		verify(size);
		point(size, min_ns);
	}
	if (!rank)
		printf("\n]}\n");
	free(tx);
	free(rx);
	MPI_Finalize();
	return 0;
}
