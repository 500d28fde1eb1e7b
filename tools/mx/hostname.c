/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * mx_hostname, omx_hostname: the names of this host's boards. They follow from the name of the host
 * and cannot be set.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "report.h"

static void print_hostname_usage(FILE *to)
{
	fprintf(to,
		"usage: %s [options]\n"
		"\n"
		"Shows the names of the boards of this host.\n"
		"\n"
		"  -b N         only the board with this number\n"
		"  -n NAME      refused: names of boards are that of the host\n"
		"\n"
		"  --version    the version\n"
		"  -h, --help   this text\n",
		report_tool);
}

static int refuse_board_name(const char *wanted)
{
	fprintf(stderr, "%s: %s: the name of a board is that of its host and cannot be set\n",
		report_tool, wanted);
	return 1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 1 },
		{ 0 },
	};
	uint32_t board = MX_ANY_NIC, boards;
	int c;

	report_name(argv[0]);
	while ((c = getopt_long(argc, argv, "b:n:h", options, NULL)) != -1)
		switch (c) {
		case 'b':
			board = report_board_option(optarg);
			break;
		case 'n':
			return refuse_board_name(optarg);
		case 1:
			printf("%s (Postern) " POSTERN_VERSION "\n", report_tool);
			return 0;
		default:
			print_hostname_usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	if (optind < argc)
		return refuse_board_name(argv[optind]);
	report_start();
	boards = report_boards();
	if (board != MX_ANY_NIC && board >= boards) {
		fprintf(stderr, "%s: there is no board %u\n", report_tool, board);
		return 1;
	}
	for (uint32_t i = 0; i < boards; i++) {
		char name[MX_MAX_HOSTNAME_LEN];

		if (board != MX_ANY_NIC && board != i)
			continue;
		report_board_name(i, name);
		puts(name);
	}
	mx_finalize();
	return 0;
}
