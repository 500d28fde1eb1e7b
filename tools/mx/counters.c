/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * mx_counters, omx_counters: what the endpoints of this host have counted since they were opened.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

struct counter_options {
	uint32_t board; /* MX_ANY_NIC: all */
	bool clear;
	bool shared; /* only those of shared memory */
	bool quiet;  /* only those that are not 0 */
};

/* The sums of one board. */
struct counter_sums {
	uint32_t board;
	bool clear;
	uint32_t sum[MX_SEEN_COUNTERS];
};

static void print_counters_usage(FILE *to)
{
	fprintf(to,
		"usage: %s [options]\n"
		"\n"
		"Shows what the open endpoints of this host, of processes of this user, have\n"
		"counted.\n"
		"\n"
		"  -b N         only those of the board with this number\n"
		"  -a           of all boards, as without -b\n"
		"  -c           set them to 0\n"
		"  -s           only those of shared memory\n"
		"  -q           only those that are not 0%s\n"
		"  -v           all%s\n"
		"\n"
		"  --version    the version\n"
		"  -h, --help   this text\n",
		report_tool, report_omx ? ", as without -v" : "",
		report_omx ? "" : ", as without -q");
}

static void read_counter_options(struct counter_options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 1 },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "b:acsqvh", options, NULL)) != -1)
		switch (c) {
		case 'b':
			o->board = report_board_option(optarg);
			break;
		case 'a':
			o->board = MX_ANY_NIC;
			break;
		case 'c':
			o->clear = true;
			break;
		case 's':
			o->shared = true;
			break;
		case 'q':
		case 'v':
			o->quiet = c == 'q';
			break;
		case 1:
			printf("%s (Postern) " POSTERN_VERSION "\n", report_tool);
			exit(0);
		default:
			print_counters_usage(c == 'h' ? stdout : stderr);
			exit(c == 'h' ? 0 : 2);
		}
	if (optind < argc) {
		print_counters_usage(stderr);
		exit(2);
	}
}

static void add_endpoint_counters(const struct report_endpoint *found, void *arg)
{
	struct counter_sums *sums = arg;

	if (found->seen->board != sums->board)
		return;
	for (unsigned int i = 0; i < MX_SEEN_COUNTERS; i++) {
		sums->sum[i] += mx_seen_value(found->seen, i);
		if (sums->clear)
			atomic_store_explicit(&found->seen->cleared[i],
					      atomic_load_explicit(&found->seen->counter[i],
								   memory_order_relaxed),
					      memory_order_relaxed);
	}
}

static char *counter_labels(uint32_t *count)
{
	char *labels;

	report_check(mx_get_info(NULL, MX_COUNTERS_COUNT, NULL, 0, count, sizeof(*count)),
		     "counters");
	labels = calloc(*count + 1, MX_MAX_STR_LEN);
	if (!labels) {
		fprintf(stderr, "%s: out of memory\n", report_tool);
		exit(1);
	}
	report_check(
		mx_get_info(NULL, MX_COUNTERS_LABELS, NULL, 0, labels, *count * MX_MAX_STR_LEN),
		"counters");
	return labels;
}

static void show_board_counters(uint32_t board, const struct counter_options *o)
{
	struct counter_sums sums = { .board = board, .clear = o->clear };
	char name[MX_MAX_HOSTNAME_LEN];
	uint32_t count;
	char *labels = counter_labels(&count);

	report_board_name(board, name);
	report_each_endpoint(o->clear, add_endpoint_counters, &sums);
	if (!o->clear)
		printf("%s (board #%u)\n", name, board);
	for (uint32_t i = 0; i < count && i < MX_SEEN_COUNTERS && !o->clear; i++) {
		const char *label = labels + (size_t)i * MX_MAX_STR_LEN;

		if ((o->quiet && sums.sum[i] == 0) || (o->shared && !strcasestr(label, "shared")))
			continue;
		if (report_omx)
			printf("%03u: %9u %s\n", i, sums.sum[i], label);
		else
			printf("%s: %u\n", label, sums.sum[i]);
	}
	free(labels);
}

int main(int argc, char **argv)
{
	struct counter_options o = { .board = MX_ANY_NIC };
	uint32_t boards;

	report_name(argv[0]);
	o.quiet = report_omx;
	read_counter_options(&o, argc, argv);
	report_start();
	boards = report_boards();
	if (o.board != MX_ANY_NIC && o.board >= boards) {
		fprintf(stderr, "%s: there is no board %u\n", report_tool, o.board);
		return 1;
	}
	for (uint32_t i = 0; i < boards; i++)
		if (o.board == MX_ANY_NIC || o.board == i)
			show_board_counters(i, &o);
	mx_finalize();
	return 0;
}
