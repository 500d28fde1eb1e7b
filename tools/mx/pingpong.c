/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * mx_pingpong: how long messages take between two endpoints of MX. Options and output are those of
 * the tool of that name that came with MX.
 */
#include <getopt.h>

#include "bench.h"

const char *const face_tool = "mx_pingpong";

struct pingpong_options {
	struct bench_place place;
	struct bench_lengths lengths;
	struct bench_row row;
	const char *file;
};

static void print_pingpong_usage(FILE *to)
{
	fputs("usage: mx_pingpong [options]                receive\n"
	      "       mx_pingpong [options] -d HOST        send, and print the times\n"
	      "\n"
	      "  -n NIC_ID    the local board, by its NIC id in hexadecimal\n"
	      "  -b N         the local board, by its number (any)\n"
	      "  -e N         the local endpoint id, or any (1 to receive, any to send)\n"
	      "  -f N         the key of both endpoints (0x12345)\n"
	      "  -s           serve one sender after the other\n"
	      "to send:\n"
	      "  -d HOST      the receiver's host, HOST:BOARD, or NIC id with 0x before it\n"
	      "  -r N         the receiver's endpoint id (1)\n"
	      "  -S BYTES     the first length (0)\n"
	      "  -E BYTES     lengths are less than that (128)\n"
	      "  -I BYTES     from one length to the next (1)\n"
	      "  -M FACTOR    from one length to the next, instead of -I\n"
	      "  -L FILE      lengths, one a line, instead of all these\n"
	      "  -N N         rounds of each length (1000)\n"
	      "  -W N         rounds before these (10)\n"
	      "  -R           synchronous sends\n"
	      "  -V           verify the bytes\n"
	      "  -w           sleep instead of polling\n"
	      "\n"
	      "  --version    the version\n"
	      "  -h, --help   this text\n",
	      to);
}

static double pingpong_factor(const char *text)
{
	char *end;
	double factor = strtod(text, &end);

	if (*text && !*end && factor >= 1 && factor < 1e9)
		return factor;
	fprintf(stderr, "mx_pingpong: -M %s: not a number from 1 on\n", text);
	exit(2);
}

/* Options that say which rows there are. */
static bool take_row_option(struct pingpong_options *o, int c)
{
	switch (c) {
	case 'S':
		o->lengths.start = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'E':
		o->lengths.end = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'I':
		o->lengths.step = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'M':
		o->lengths.factor = pingpong_factor(optarg);
		o->lengths.step = 0;
		return true;
	case 'L':
		o->file = optarg;
		return true;
	case 'N':
		o->row.rounds = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'W':
		o->row.warmup = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'R':
		o->row.sync = true;
		return true;
	case 'V':
		o->row.verify = true;
		return true;
	case 'w':
		o->row.wait = FACE_SLEEP;
		return true;
	default:
		return false;
	}
}

static bool take_place_option(struct pingpong_options *o, int c)
{
	switch (c) {
	case 'n':
		o->place.board = bench_board(optarg);
		return true;
	case 'b':
		o->place.board = bench_number(c, optarg, UINT32_MAX);
		return true;
	case 'e':
		o->place.eid = bench_eid(optarg);
		return true;
	case 'f':
		o->place.key = bench_number(c, optarg, UINT32_MAX);
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
	default:
		return false;
	}
}

static void read_pingpong_options(struct pingpong_options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 1 },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "n:b:e:d:r:f:sS:E:I:M:L:N:VwW:Rh", options, NULL)) !=
	       -1) {
		if (take_place_option(o, c) || take_row_option(o, c))
			continue;
		if (c == 1)
			puts("mx_pingpong (Postern) " POSTERN_VERSION);
		else
			print_pingpong_usage(c == 'h' ? stdout : stderr);
		exit(c == 1 || c == 'h' ? 0 : 2);
	}
	if (optind < argc) {
		print_pingpong_usage(stderr);
		exit(2);
	}
}

static void send_pingpong(face_endpoint ep, struct pingpong_options *o)
{
	face_addr to = bench_connect(ep, &o->place);
	uint32_t length = 0;

	printf("Starting pingpong send to host %s\n", o->place.host);
	if (o->row.verify)
		puts("Verifying results");
	printf("Running %u iterations.\n", o->row.rounds);
	puts("   Length   Latency(us)    Bandwidth(MB/s)");
	for (uint32_t i = 0; bench_next_length(&o->lengths, i, length, &length); i++) {
		double us;

		o->row.length = length;
		us = bench_send_row(ep, to, &o->row);
		printf("%9u   %9.3f       %8.3f\n", length, us / o->row.rounds / 2,
		       2.0 * o->row.rounds * length / us);
		fflush(stdout);
	}
	bench_send_end(ep, to);
}

int main(int argc, char **argv)
{
	struct pingpong_options o = {
		.place = { .board = MX_ANY_NIC,
			   .eid = BENCH_USUAL_EID,
			   .key = 0x12345,
			   .remote_eid = 1 },
		.lengths = { .end = 128, .step = 1 },
		.row = { .kind = BENCH_PINGPONG, .rounds = 1000, .warmup = 10 },
	};
	face_endpoint ep;

	read_pingpong_options(&o, argc, argv);
	if (o.file)
		bench_read_lengths(&o.lengths, o.file);
	if (o.row.rounds == 0)
		o.row.rounds = 1;
	if (o.place.eid == BENCH_USUAL_EID)
		o.place.eid = o.place.host ? FACE_ANY : 1;
	ep = bench_open(&o.place);
	if (o.place.host) {
		send_pingpong(ep, &o);
	} else {
		bench_say_where(ep, "Starting pingpong receiver on");
		bench_serve(ep, &o.place);
	}
	bench_close(ep);
	free(o.lengths.list);
	return 0;
}
