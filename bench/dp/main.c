/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * dp_bench: Directed Point measured as its paper did, on the calls of dp.h alone. The command
 * line, the tests, and what they print. dp_bench(1) explains what is measured.
 */
#define _GNU_SOURCE
#include <cnos_mpi_os.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <p3rt/p3rt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { IDLE = 1000, TESTS = 7 };

void bench_fail(const char *what)
{
	fprintf(stderr, "dp_bench: %s failed: %s\n", what, strerror(errno));
	exit(1);
}

void bench_record(struct bench *b, const char *test, const char *variant, size_t size,
		  const char *unit, double value)
{
	if (b->results == sizeof(b->result) / sizeof(b->result[0]))
		return;
	b->result[b->results].test = test;
	snprintf(b->result[b->results].variant, sizeof(b->result[0].variant), "%s", variant);
	b->result[b->results].size = size;
	b->result[b->results].unit = unit;
	b->result[b->results++].value = value;
}

void bench_target(const struct bench *b)
{
	dp_target(b->fd, b->peer_nid, b->rank == 0 ? DATA + 1 : DATA);
	dp_target(b->orders, b->peer_nid, b->rank == 0 ? ORDERS + 1 : ORDERS);
}

/* ---- latency --------------------------------------------------------------------------------- */

static const int latency_sizes[] = { 1, 8, 64, 512, 1500, 4096, 16384, 65536 };
enum { LATENCY_SIZES = sizeof(latency_sizes) / sizeof(latency_sizes[0]) };

static void test_latency(struct bench *b)
{
	static const char *const names[] = { "spinning", "asleep", "poll, dp_read", "poll, read" };

	printf("\n== latency: one way, us; puts: the same by bare Portals\n");
	printf("%8s %10s %10s %10s %14s %11s %10s\n", "bytes", "puts", "spinning", "x puts",
	       "asleep", "poll+dp_read", "poll+read");
	for (int i = 0; i < LATENCY_SIZES; i += b->quick ? 3 : 1) {
		int size = latency_sizes[i];
		double raw = bench_raw_one_way(b, size), way[WAITINGS];

		for (int w = 0; w < WAITINGS; w++) {
			way[w] = bench_one_way(b, size, (enum waiting)w);
			bench_record(b, "latency", names[w], (size_t)size, "ns", way[w]);
		}
		bench_record(b, "latency", "puts", (size_t)size, "ns", raw);
		printf("%8d %10.2f %10.2f %10.2f %14.2f %11.2f %10.2f\n", size, raw / 1e3,
		       way[BY_SPINNING] / 1e3, way[BY_SPINNING] / raw, way[BY_SLEEPING] / 1e3,
		       way[BY_POLL] / 1e3, way[BY_POLL_AND_READ] / 1e3);
		fflush(stdout);
	}
}

/* ---- the model ------------------------------------------------------------------------------- */

struct packet {
	double os, async, ur, latency, gs, gr, one_way;
};

static double positive(double ns)
{
	return ns > 0 ? ns : 0;
}

static struct packet measure_packet(struct bench *b, int size)
{
	struct packet k;
	const char *const names[] = { "Os", "Or", "Ur", "L", "gs", "gr", "one way" };

	k.one_way = bench_one_way(b, size, BY_SPINNING);
	k.os = bench_write(b, size);
	k.async = positive(bench_write_self(b, size) - k.os);
	k.ur = bench_pick_up(b, size);
	k.gs = bench_gap_sent(b, size);
	k.gr = bench_gap_received(b, size);
	k.latency = positive(k.one_way - k.os - k.async - k.ur);
	const double values[] = { k.os, k.async, k.ur, k.latency, k.gs, k.gr, k.one_way };

	for (int i = 0; i < 7; i++)
		bench_record(b, "parameter", names[i], (size_t)size, "ns", values[i]);
	printf("%8d %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %10.1f\n", size, k.os, k.async, k.ur,
	       k.latency, k.gs, k.gr, k.one_way);
	fflush(stdout);
	return k;
}

/* Both formulas of the paper beside the measured time. */
static void predict(struct bench *b, const struct packet *p, int packet, size_t bytes,
		    double answer)
{
	const size_t packets = (bytes + (size_t)packet - 1) / (size_t)packet;
	const double k = (double)packets;
	const double gap = p->gs > p->gr ? p->gs : p->gr;
	const double network = p->os + (k - 1) * gap + p->latency + p->async + p->ur;
	const double receiver = p->os + p->latency + k * (p->async + p->ur);
	const double is = bench_message(b, bytes, packet) - answer;
	char variant[16];

	snprintf(variant, sizeof(variant), "%d", packet);
	bench_record(b, "predicted, network", variant, bytes, "ns", network);
	bench_record(b, "predicted, receiver", variant, bytes, "ns", receiver);
	bench_record(b, "message", variant, bytes, "ns", is);
	printf("%9zu %8d %12.1f %12.1f %12.1f %+8.1f%% %+8.1f%%\n", bytes, packet, network / 1e3,
	       receiver / 1e3, is / 1e3, 100 * (network / is - 1), 100 * (receiver / is - 1));
	fflush(stdout);
}

static void test_model(struct bench *b)
{
	static const int packets[] = { 8, 64, 512, 1500, 4096, 16384, 65536 };
	static const size_t bytes[] = { 10000, 100000, 1000000, 10000000 };
	struct packet of[7];
	double answer;

	printf("\n== model: parameters of a packet, ns\n%8s %9s %9s %9s %9s %9s %9s %10s\n",
	       "bytes", "Os", "Or", "Ur", "L", "gs", "gr", "one way");
	for (int i = 0; i < 7; i++)
		of[i] = measure_packet(b, packets[i]);
	answer = bench_one_way(b, 4, BY_SPINNING);
	printf("\n%9s %8s %12s %12s %12s %9s %9s\n", "bytes", "packet", "network/us", "receiver/us",
	       "measured/us", "error", "error");
	for (int i = 3; i < 7; i++)
		for (size_t m = 0; m < sizeof(bytes) / sizeof(bytes[0]); m += b->quick ? 2 : 1)
			predict(b, &of[i], packets[i], bytes[m], answer);
	printf("   network: Os + (k - 1) max(gs, gr) + L + Or + Ur; receiver: Os + L + k (Or + "
	       "Ur)\n");
}

/* ---- sockets --------------------------------------------------------------------------------- */

static const char *const socket_names[SOCKETS] = { "UDP", "AF_UNIX", "TCP" };

static void show_time(double ns)
{
	if (ns < 0)
		printf(" %10s", "-");
	else
		printf(" %10.2f", ns / 1e3);
}

static void test_sockets(struct bench *b)
{
	static const size_t bytes[] = { 10000, 100000, 1000000, 10000000 };
	double answer;

	printf("\n== sockets: one way, us, both sides spinning\n%8s %10s %10s %10s %10s\n", "bytes",
	       "DP", "UDP", "AF_UNIX", "TCP");
	for (int i = 0; i < LATENCY_SIZES; i += b->quick ? 3 : 1) {
		const size_t size = (size_t)latency_sizes[i];

		printf("%8zu", size);
		show_time(bench_one_way(b, latency_sizes[i], BY_SPINNING));
		for (int k = 0; k < SOCKETS; k++) {
			double both = bench_by_socket(b, (enum bench_socket)k, size, size);

			if (both >= 0)
				bench_record(b, "sockets", socket_names[k], size, "ns", both / 2);
			show_time(both < 0 ? both : both / 2);
		}
		printf("\n");
		fflush(stdout);
	}
	answer = bench_by_socket(b, SOCKET_TCP, 4, 4) / 2;
	printf("long messages by TCP, us and MB/s:\n");
	for (size_t m = 0; m < sizeof(bytes) / sizeof(bytes[0]); m += b->quick ? 2 : 1) {
		double ns = bench_by_socket(b, SOCKET_TCP, bytes[m], 4) - answer;

		bench_record(b, "message", "TCP", bytes[m], "ns", ns);
		printf("%9zu %12.1f %10.1f\n", bytes[m], ns / 1e3, 1e3 * (double)bytes[m] / ns);
		fflush(stdout);
	}
}

/* ---- streams --------------------------------------------------------------------------------- */

static void test_bandwidth(struct bench *b)
{
	static const int flushes[] = { 1, 16, 256 };
	static const int sizes[] = { 1500, 16384, 65536 };
	char variant[32];
	double lost;

	printf("\n== bandwidth: MB/s of what arrived, %% lost; flush: messages flushed at once\n");
	printf("%8s %6s %10s %8s %12s %8s\n", "bytes", "flush", "raw", "lost", "flow control",
	       "lost");
	for (int i = 0; i < 3; i++) {
		for (int f = 0; f < 3; f++) {
			double rate[2], share[2];

			/* unflushed messages must leave room for flow control */
			if ((size_t)sizes[i] * (size_t)flushes[f] > POOL_BYTES / 4)
				continue;
			for (int flow = 0; flow < 2; flow++) {
				rate[flow] = bench_stream(b, sizes[i], flow, flushes[f], &lost);
				share[flow] = lost;
				snprintf(variant, sizeof(variant), "%s, flush %d",
					 flow ? "flow control" : "raw", flushes[f]);
				bench_record(b, "bandwidth", variant, (size_t)sizes[i], "MB/s",
					     rate[flow]);
				bench_record(b, "lost", variant, (size_t)sizes[i], "%", lost);
			}
			printf("%8d %6d %10.1f %7.2f%% %12.1f %7.2f%%\n", sizes[i], flushes[f],
			       rate[0], share[0], rate[1], share[1]);
			fflush(stdout);
		}
	}
}

static void test_bidirectional(struct bench *b)
{
	static const int sizes[] = { 1500, 16384, 65536 };

	printf("\n== bidirectional: MB/s each way, with flow control\n%8s %12s %12s\n", "bytes",
	       "one thread", "two threads");
	for (int i = 0; i < 3; i++) {
		double one = bench_both(b, sizes[i], false), two = bench_both(b, sizes[i], true);

		bench_record(b, "bidirectional", "one thread", (size_t)sizes[i], "MB/s", one);
		bench_record(b, "bidirectional", "two threads", (size_t)sizes[i], "MB/s", two);
		printf("%8d %12.1f %12.1f\n", sizes[i], one, two);
		fflush(stdout);
	}
}

/* ---- many endpoints -------------------------------------------------------------------------- */

static size_t resident(void)
{
	unsigned long total = 0, pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%lu %lu", &total, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static int open_idle(int *fds, int from, int count)
{
	while (from < count) {
		fds[from] = dp_open(0);
		if (fds[from] < 0)
			break;
		from++;
	}
	return from;
}

static void test_endpoints(struct bench *b)
{
	static int fds[IDLE];
	double before = bench_one_way(b, 8, BY_SPINNING), after;
	int n = open_idle(fds, 0, IDLE);

	after = bench_one_way(b, 8, BY_SPINNING);
	for (int i = 0; i < n; i++)
		dp_close(fds[i]);
	bench_record(b, "endpoints", "alone", 8, "ns", before);
	bench_record(b, "endpoints", "beside idle ones", 8, "ns", after);
	printf("\n== endpoints: 8 bytes one way: %.2f us alone, %.2f us beside %d that are idle\n",
	       before / 1e3, after / 1e3, n);
}

static void test_memory(struct bench *b)
{
	static const int counts[] = { 1, 100, IDLE };
	static int fds[IDLE];
	size_t before = resident(), now = before;
	char variant[32];
	int n = 0;

	printf("\n== memory: resident bytes more than before\n");
	for (int i = 0; i < 3; i++) {
		n = open_idle(fds, n, counts[i]);
		now = resident();
		snprintf(variant, sizeof(variant), "%d idle", n);
		bench_record(b, "memory", variant, 0, "bytes", (double)(now - before));
		printf("%6d idle endpoints: %9zu, %7zu each\n", n, now - before,
		       (now - before) / (size_t)(n ? n : 1));
	}
	if (n > 0) {
		dp_target(fds[0], dp_nid(), dp_id(fds[0]));
		for (int i = 0; i < 500; i++)
			dp_write(fds[0], b->buffer, 1500);
		bench_record(b, "memory", "750000 bytes wait", 750000, "bytes",
			     (double)(resident() - now));
		printf("750000 bytes wait in one: %zu more\n", resident() - now);
	}
	for (int i = 0; i < n; i++)
		dp_close(fds[i]);
}

/* ---- start ----------------------------------------------------------------------------------- */

static const struct {
	const char *name, *help;
	void (*run)(struct bench *b);
} tests[TESTS] = {
	{ "latency", "one way, by how the receiver waits, beside bare puts", test_latency },
	{ "model", "Os, Or, Ur, L, gs, gr; both formulas beside measured times", test_model },
	{ "sockets", "one way by UDP, AF_UNIX and TCP; long messages by TCP", test_sockets },
	{ "bandwidth", "one way, raw and with flow control", test_bandwidth },
	{ "bidirectional", "both ways, by one thread and by two", test_bidirectional },
	{ "endpoints", "latency beside 1000 idle endpoints", test_endpoints },
	{ "memory", "of idle endpoints, and of waiting bytes", test_memory },
};

static void help(void)
{
	puts("usage: dp_bench [options] [test ...]        (starts its own two processes)\n"
	     "       mpiexec -n 2 dp_bench [options] [test ...]\n\ntests; all if none is named:");
	for (int i = 0; i < TESTS; i++)
		printf("  %-14s %s\n", tests[i].name, tests[i].help);
	puts("\noptions:\n"
	     "      --rounds N      of a ping-pong (2000; quick: 300)\n"
	     "      --quick         fewer and shorter measurements\n"
	     "      --no-pin        leave placement to the system\n"
	     "      --json FILE     also write the results to FILE; - for standard output\n"
	     "  -h, --help\n\ndp_bench(1) explains what is measured and how.");
}

static void write_json(const struct bench *b, const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "we") : stdout;

	if (!f)
		bench_fail(path);
	fprintf(f, "{ \"results\": [\n");
	for (int i = 0; i < b->results; i++)
		fprintf(f,
			"{ \"test\": \"%s\", \"variant\": \"%s\", \"size\": %zu, \"unit\": "
			"\"%s\", \"value\": %.6g }%s\n",
			b->result[i].test, b->result[i].variant, b->result[i].size,
			b->result[i].unit, b->result[i].value, i + 1 < b->results ? "," : "");
	fprintf(f, "] }\n");
	if (fflush(f) || (f != stdout && fclose(f)))
		bench_fail(path);
}

static int test_named(const char *name)
{
	for (int i = 0; i < TESTS; i++)
		if (!strcmp(tests[i].name, name))
			return i;
	fprintf(stderr, "dp_bench: no test '%s'\nTry 'dp_bench --help'.\n", name);
	exit(2);
}

static void pin(const struct bench *b)
{
	cpu_set_t have, one;
	int n = 0;

	if (!b->pin || sched_getaffinity(0, sizeof(have), &have) || CPU_COUNT(&have) < 2)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &have) || n++ != b->rank)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

static void open_endpoints(struct bench *b)
{
	dpmmap_t pool = { .size = POOL_BYTES, .messages = POOL_MESSAGES };
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	b->buffer = calloc(1, DP_MAX_MESSAGE);
	/* written to: else messages wait for the first use of their pages */
	pool.base =
		mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pool.base != MAP_FAILED)
		memset(pool.base, 1, POOL_BYTES);
	b->fd = dp_open(DATA + b->rank);
	b->orders = dp_open(ORDERS + b->rank);
	if (!b->buffer || pool.base == MAP_FAILED || b->fd < 0 || b->orders < 0 ||
	    dp_mmap(b->fd, &pool) < 0)
		bench_fail("dp_open");
	bench_target(b);
}

/* In a job of two the other process is a rank, which may be elsewhere; else it is a child. */
static pid_t find_other(struct bench *b, unsigned int size)
{
	pid_t child;

	if (size == 2) {
		b->peer_nid = b->rank == 0 ? dp_nodes() - 1 : 0;
		return 0;
	}
	if (size > 2) {
		fprintf(stderr, "dp_bench: it takes a job of two ranks, or none\n");
		exit(2);
	}
	child = fork();
	if (child < 0)
		bench_fail("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		b->rank = 1;
	}
	b->peer_nid = dp_nid();
	return child;
}

static unsigned int learn_job(struct bench *b)
{
	unsigned int rank = 0, size = 1;
	ptl_handle_ni_t ni;

	/* outside a job nothing is opened before the other process is made */
	if (cnos_get_size() < 2)
		return 1;
	if (dp_nid() < 0 || PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK)
		exit(1);
	PtlGetRank(ni, &rank, &size);
	PtlNIFini(ni);
	b->rank = (int)rank;
	return size;
}

static void run_tests(struct bench *b, char **names, int count)
{
	for (int i = 0; i < (count ? count : TESTS); i++)
		tests[count ? test_named(names[i]) : i].run(b);
	bench_order(b, (struct order){ .kind = ORDER_END });
}

int main(int argc, char **argv)
{
	enum { QUICK = 256, NO_PIN, JSON, ROUNDS };
	static const struct option options[] = { { "quick", no_argument, NULL, QUICK },
						 { "no-pin", no_argument, NULL, NO_PIN },
						 { "json", required_argument, NULL, JSON },
						 { "rounds", required_argument, NULL, ROUNDS },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	static struct bench b = { .pin = true };
	const char *json = NULL;
	pid_t child;
	int c, status = 0;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == QUICK)
			b.quick = true;
		else if (c == NO_PIN)
			b.pin = false;
		else if (c == JSON)
			json = optarg;
		else if (c == ROUNDS && atoi(optarg) > 0)
			b.rounds = atoi(optarg);
		else if (c == 'h')
			return help(), 0;
		else
			return fprintf(stderr, "Try 'dp_bench --help'.\n"), 2;
	}
	for (int i = optind; i < argc; i++)
		test_named(argv[i]);
	if (!b.rounds)
		b.rounds = b.quick ? 300 : 2000;
	perf_clock_init();
	child = find_other(&b, learn_job(&b));
	pin(&b);
	open_endpoints(&b);
	if (b.rank == 1) {
		bench_serve(&b);
		return 0;
	}
	run_tests(&b, argv + optind, argc - optind);
	if (json)
		write_json(&b, json);
	if (child > 0)
		waitpid(child, &status, 0);
	return status ? 1 : 0;
}
