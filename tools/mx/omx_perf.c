/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * omx_perf: how long messages take between two endpoints of Open-MX. Options and output are those
 * of the tool of that name that came with Open-MX.
 */
#include <getopt.h>
#include <time.h>

#include "bench.h"

const char *const face_tool = "omx_perf";

struct perf_options {
	struct bench_place place;
	struct bench_lengths lengths;
	struct bench_row row;
	uint32_t pause; /* between lengths, in milliseconds */
};

static void print_perf_usage(FILE *to)
{
	fputs("usage: omx_perf [options]                   receive\n"
	      "       omx_perf [options] -d HOST           send, and print the times\n"
	      "\n"
	      "  -b N         the local board (any)\n"
	      "  -e N         the local endpoint id, or any (0 to receive, any to send)\n"
	      "  -s           serve one sender after the other\n"
	      "  -v           say what is sent or received\n"
	      "to send:\n"
	      "  -d HOST      the receiver's host, HOST:BOARD, or NIC id with 0x before it\n"
	      "  -r N         the receiver's endpoint id (0)\n"
	      "  -S BYTES     the first length (0)\n"
	      "  -E BYTES     lengths are less than that (4194305)\n"
	      "  -M FACTOR    from one length to the next (2)\n"
	      "  -I BYTES     added to that (0)\n"
	      "  -N N         rounds of each length (1000)\n"
	      "  -W N         rounds before these (10)\n"
	      "  -P MS        pause between lengths (0)\n"
	      "  -U           one way: the receiver answers with empty messages\n"
	      "  -Y           synchronous sends\n"
	      "  -w           sleep instead of polling\n"
	      "  -y           yield the processor between polls\n"
	      "  -a           buffers at multiples of 64 KiB\n"
	      "\n"
	      "  --version    the version\n"
	      "  -h, --help   this text\n",
	      to);
}

static bool take_perf_row_option(struct perf_options *o, int c)
{
	switch (c) {
	case 'S':
		o->lengths.start = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'E':
		o->lengths.end = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'M':
		o->lengths.factor = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'I':
		o->lengths.step = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'N':
		o->row.rounds = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'W':
		o->row.warmup = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'P':
		o->pause = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'U':
		o->row.kind = BENCH_UNIDIRECTIONAL;
		return true;
	case 'Y':
		o->row.sync = true;
		return true;
	case 'w':
		o->row.wait = FACE_SLEEP;
		return true;
	case 'y':
		o->row.wait = FACE_YIELD;
		return true;
	case 'a':
		o->row.aligned = true;
		return true;
	default:
		return false;
	}
}

static bool take_perf_place_option(struct perf_options *o, int c)
{
	switch (c) {
	case 'b':
		o->place.board = bench_number(c, optarg, UINT32_MAX);
		return true;
	case 'e':
		o->place.eid = bench_eid(optarg);
		return true;
	case 'd':
		o->place.host = optarg;
		return true;
	case 'r':
		o->place.remote_eid = bench_number(c, optarg, UINT32_MAX);
		return true;
	case 's':
		o->place.slave = true;
		return true;
	case 'v':
		o->place.verbose = true;
		return true;
	default:
		return false;
	}
}

static void read_perf_options(struct perf_options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 1 },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "d:b:e:r:sS:E:M:I:N:W:P:UYwyvah", options, NULL)) !=
	       -1) {
		if (take_perf_place_option(o, c) || take_perf_row_option(o, c))
			continue;
		if (c == 1)
			puts("omx_perf (Postern) " POSTERN_VERSION);
		else
			print_perf_usage(c == 'h' ? stdout : stderr);
		exit(c == 1 || c == 'h' ? 0 : 2);
	}
	if (optind < argc) {
		print_perf_usage(stderr);
		exit(2);
	}
}

static void send_perf_rows(face_endpoint ep, struct perf_options *o)
{
	struct timespec pause = { o->pause / 1000, (long)(o->pause % 1000) * 1000000 };
	double directions = o->row.kind == BENCH_UNIDIRECTIONAL ? 1 : 2;
	uint32_t length = 0;
	face_addr to;

	printf("Starting sender to %s...\n", o->place.host);
	to = bench_connect(ep, &o->place);
	for (uint32_t i = 0; bench_next_length(&o->lengths, i, length, &length); i++) {
		double us, speed;

		o->row.length = length;
		us = bench_send_row(ep, to, &o->row);
		speed = directions * o->row.rounds * length / us;
		if (o->place.verbose)
			printf("Total Duration: %.0f us\n", us);
		printf("length %9u:\t%.3f us\t%.2f MB/s\t %.2f MiB/s\n", length,
		       us / directions / o->row.rounds, speed, speed / 1.048576);
		fflush(stdout);
		if (o->pause)
			nanosleep(&pause, NULL);
	}
	bench_send_end(ep, to);
}

int main(int argc, char **argv)
{
	struct perf_options o = {
		.place = { .board = OMX_ANY_NIC, .eid = BENCH_USUAL_EID, .key = 0x12345678 },
		.lengths = { .end = 4194305, .factor = 2 },
		.row = { .kind = BENCH_PINGPONG, .rounds = 1000, .warmup = 10 },
	};
	face_endpoint ep;

	read_perf_options(&o, argc, argv);
	if (o.row.rounds == 0)
		o.row.rounds = 1;
	if (o.place.eid == BENCH_USUAL_EID)
		o.place.eid = o.place.host ? FACE_ANY : 0;
	ep = bench_open(&o.place);
	if (o.place.host) {
		send_perf_rows(ep, &o);
	} else {
		puts("Starting receiver...");
		bench_say_where(ep, "Waiting for parameters on");
		bench_serve(ep, &o.place);
	}
	bench_close(ep);
	return 0;
}
