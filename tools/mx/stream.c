/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * mx_stream: how many bytes a second go from one endpoint of MX to another, or both ways at once.
 * Options are those of the tool of that name that came with MX.
 */
#include <getopt.h>

#include "bench.h"

const char *const face_tool = "mx_stream";

static void print_stream_usage(FILE *to)
{
	fputs("usage: mx_stream [options]                  receive\n"
	      "       mx_stream [options] -d HOST          send, and print the bandwidth\n"
	      "\n"
	      "  -n NIC_ID    the local board, by its NIC id in hexadecimal\n"
	      "  -b N         the local board, by its number (any)\n"
	      "  -e N         the local endpoint id, or any (1 to receive, any to send)\n"
	      "  -f N         the key of both endpoints (0x12345)\n"
	      "  -s           serve one sender after the other\n"
	      "  -v           say what is received\n"
	      "to send:\n"
	      "  -d HOST      the receiver's host, HOST:BOARD, or NIC id with 0x before it\n"
	      "  -r N         the receiver's endpoint id (1)\n"
	      "  -l BYTES     the length of messages (8192)\n"
	      "  -N N         messages (1000)\n"
	      "  -x           both ways at once\n"
	      "  -R           synchronous sends\n"
	      "  -V           verify the bytes\n"
	      "  -w           sleep instead of polling\n"
	      "\n"
	      "  --version    the version\n"
	      "  -h, --help   this text\n",
	      to);
}

static bool take_stream_option(struct bench_place *place, struct bench_row *row, int c)
{
	switch (c) {
	case 'n':
		place->board = bench_board(optarg);
		return true;
	case 'b':
		place->board = bench_number(c, optarg, UINT32_MAX);
		return true;
	case 'e':
		place->eid = bench_eid(optarg);
		return true;
	case 'f':
		place->key = bench_number(c, optarg, UINT32_MAX);
		return true;
	case 'd':
		place->host = optarg;
		return true;
	case 'r':
		place->remote_eid = bench_number(c, optarg, UINT32_MAX);
		return true;
	case 's':
		place->slave = true;
		return true;
	case 'v':
		place->verbose = true;
		return true;
	case 'l':
		row->length = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'N':
		row->rounds = bench_number(c, optarg, INT32_MAX);
		return true;
	case 'x':
		row->kind = BENCH_BOTH;
		return true;
	case 'R':
		row->sync = true;
		return true;
	case 'V':
		row->verify = true;
		return true;
	case 'w':
		row->wait = FACE_SLEEP;
		return true;
	default:
		return false;
	}
}

static void read_stream_options(struct bench_place *place, struct bench_row *row, int argc,
				char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 1 },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "n:b:e:d:r:f:svl:N:xRVwh", options, NULL)) != -1) {
		if (take_stream_option(place, row, c))
			continue;
		if (c == 1)
			puts("mx_stream (Postern) " POSTERN_VERSION);
		else
			print_stream_usage(c == 'h' ? stdout : stderr);
		exit(c == 1 || c == 'h' ? 0 : 2);
	}
	if (optind < argc) {
		print_stream_usage(stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct bench_place place = {
		.board = MX_ANY_NIC, .eid = BENCH_USUAL_EID, .key = 0x12345, .remote_eid = 1
	};
	struct bench_row row = { .kind = BENCH_STREAM, .length = 8192, .rounds = 1000 };
	face_endpoint ep;
	face_addr to;
	double us;

	read_stream_options(&place, &row, argc, argv);
	if (row.rounds == 0)
		row.rounds = 1;
	if (place.eid == BENCH_USUAL_EID)
		place.eid = place.host ? FACE_ANY : 1;
	ep = bench_open(&place);
	if (!place.host) {
		bench_say_where(ep, "Starting stream receiver on");
		bench_serve(ep, &place);
		bench_close(ep);
		return 0;
	}
	to = bench_connect(ep, &place);
	printf("Starting streaming send to host %s\n", place.host);
	printf("Running %u iterations.\n", row.rounds);
	puts("   Length   Latency(us)    Bandwidth(MB/s)");
	us = bench_send_row(ep, to, &row);
	/* the time from one message to the next, and the bytes of all directions */
	printf("%9u   %9.3f       %8.3f\n", row.length, us / row.rounds,
	       (row.kind == BENCH_BOTH ? 2.0 : 1.0) * row.rounds * row.length / us);
	bench_send_end(ep, to);
	bench_close(ep);
	return 0;
}
