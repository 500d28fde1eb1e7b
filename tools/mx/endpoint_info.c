/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * mx_endpoint_info, omx_endpoint_info: who has which endpoint of this host open.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* The open endpoints of one board. */
struct open_list {
	uint32_t board;
	uint32_t count, room;
	struct open_entry {
		uint32_t eid, pid;
		char command[64];
	} * entry;
};

static void print_endpoint_info_usage(FILE *to)
{
	fprintf(to,
		"usage: %s [options]\n"
		"\n"
		"Shows the endpoints of this host that are open, of processes of this user.\n"
		"\n"
		"  -b N         only those of the board with this number\n"
		"  -a           of all boards, as without -b\n"
		"  -v           those that are not open, too\n"
		"\n"
		"  --version    the version\n"
		"  -h, --help   this text\n",
		report_tool);
}

static void add_open_endpoint(const struct report_endpoint *found, void *arg)
{
	struct open_list *list = arg;

	if (found->seen->board != list->board)
		return;
	if (list->count == list->room) {
		list->room = list->room ? 2 * list->room : 32;
		list->entry = realloc(list->entry, list->room * sizeof(*list->entry));
		if (!list->entry) {
			fprintf(stderr, "%s: out of memory\n", report_tool);
			exit(1);
		}
	}
	list->entry[list->count] =
		(struct open_entry){ .eid = found->seen->eid, .pid = found->pid };
	snprintf(list->entry[list->count].command, sizeof(list->entry->command), "%s",
		 found->command);
	list->count++;
}

static int order_by_eid(const void *a, const void *b)
{
	const struct open_entry *l = a, *r = b;

	return l->eid < r->eid ? -1 : l->eid > r->eid;
}

static void show_open_endpoint(const struct open_entry *entry)
{
	if (report_omx)
		printf("  %u\topen by pid %u (%s)\n", entry->eid, entry->pid, entry->command);
	else
		printf("%u\t\t %u\t %s\n", entry->eid, entry->pid, entry->command);
}

static void show_closed_endpoint(uint32_t eid)
{
	printf(report_omx ? "  %u\tnot open\n" : "%u\t\t -\t -\n", eid);
}

static void show_board_endpoints(uint32_t board, bool verbose)
{
	struct open_list list = { .board = board };
	char name[MX_MAX_HOSTNAME_LEN], mac[REPORT_MAC_LEN];
	uint64_t nic_id = report_board_name(board, name);
	uint32_t next = 0;

	report_each_endpoint(false, add_open_endpoint, &list);
	if (list.entry)
		qsort(list.entry, list.count, sizeof(*list.entry), order_by_eid);
	printf("%s (board #%u addr %s)\n", name, board, report_mac(nic_id, mac));
	puts("===================================================================");
	if (!report_omx)
		puts("Endpoint\t PID\t Command\t Info");
	for (uint32_t i = 0; list.entry && i < list.count; i++) {
		for (; verbose && next < list.entry[i].eid; next++)
			show_closed_endpoint(next);
		show_open_endpoint(&list.entry[i]);
		next = list.entry[i].eid + 1;
	}
	for (; verbose && next < report_endpoints(); next++)
		show_closed_endpoint(next);
	printf(report_omx ? "%u endpoints open\n"
			  : "There are currently %u regular endpoints open\n",
	       list.count);
	free(list.entry);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 1 },
		{ 0 },
	};
	uint32_t board = MX_ANY_NIC, boards;
	bool verbose = false;
	int c;

	report_name(argv[0]);
	while ((c = getopt_long(argc, argv, "b:avh", options, NULL)) != -1)
		switch (c) {
		case 'b':
			board = report_board_option(optarg);
			break;
		case 'a':
			board = MX_ANY_NIC;
			break;
		case 'v':
			verbose = true;
			break;
		case 1:
			printf("%s (Postern) " POSTERN_VERSION "\n", report_tool);
			return 0;
		default:
			print_endpoint_info_usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	if (optind < argc) {
		print_endpoint_info_usage(stderr);
		return 2;
	}
	report_start();
	boards = report_boards();
	if (board != MX_ANY_NIC && board >= boards) {
		fprintf(stderr, "%s: there is no board %u\n", report_tool, board);
		return 1;
	}
	if (!report_omx)
		printf("%u boards installed, which support up to %u endpoints each.\n", boards,
		       report_endpoints());
	for (uint32_t i = 0; i < boards; i++)
		if (board == MX_ANY_NIC || board == i)
			show_board_endpoints(i, verbose);
	mx_finalize();
	return 0;
}
