/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * mx_info, omx_info: the boards of this host, and the peers that are known.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mx_internals/mx__driver_interface.h>
#include <open-mx.h>

#include "report.h"

struct info_options {
	uint32_t board; /* MX_ANY_NIC: all */
	bool quiet, verbose;
	char **hosts; /* peers that were asked for */
	int hosts_count;
};

static void print_info_usage(FILE *to)
{
	fprintf(to,
		"usage: %s [options] [HOST ...]\n"
		"\n"
		"Shows the boards of this host, and of each HOST the NIC id.\n"
		"\n"
		"  -b N         only the board with this number\n"
		"  -q           only the boards\n"
		"  -v           more about them\n"
		"\n"
		"  --version    the version\n"
		"  -h, --help   this text\n",
		report_tool);
}

static void read_info_options(struct info_options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 1 },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "b:qvh", options, NULL)) != -1)
		switch (c) {
		case 'b':
			o->board = report_board_option(optarg);
			break;
		case 'q':
			o->quiet = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 1:
			printf("%s (Postern) " POSTERN_VERSION "\n", report_tool);
			exit(0);
		case 'h':
			print_info_usage(stdout);
			exit(0);
		default:
			print_info_usage(stderr);
			exit(2);
		}
	o->hosts = argv + optind;
	o->hosts_count = argc - optind;
}

static uint32_t board_number_info(mx_get_info_key_t key, uint32_t board)
{
	uint32_t value;

	report_check(mx_get_info(NULL, key, &board, sizeof(board), &value, sizeof(value)),
		     "information about a board");
	return value;
}

static void board_text_info(const char *label, mx_get_info_key_t key, uint32_t board)
{
	char text[MX_MAX_STR_LEN] = "";

	report_check(mx_get_info(NULL, key, &board, sizeof(board), text, sizeof(text)), label);
	printf("   %s: %s\n", label, text);
}

static void show_board(uint32_t board, bool verbose)
{
	char name[MX_MAX_HOSTNAME_LEN], mac[REPORT_MAC_LEN], iface[OMX_HOSTNAMELEN_MAX] = "none";
	uint64_t nic_id = report_board_name(board, name);
	uint8_t number = (uint8_t)board;

	omx_get_info(NULL, OMX_INFO_BOARD_IFACENAME, &number, sizeof(number), iface, sizeof(iface));
	printf(" %s (board #%u name %s addr %s)\n", name, board, iface, report_mac(nic_id, mac));
	if (!verbose)
		return;
	board_text_info("product code", MX_PRODUCT_CODE, board);
	board_text_info("part number", MX_PART_NUMBER, board);
	board_text_info("serial number", MX_SERIAL_NUMBER, board);
	printf("   ports: %u\n", board_number_info(MX_PORT_COUNT, board));
	printf("   NUMA node: %d\n", (int)board_number_info(MX_NUMA_NODE, board));
	printf("   longest small message: %u\n", board_number_info(MX_PIO_SEND_MAX, board));
	printf("   longest buffered message: %u\n", board_number_info(MX_COPY_SEND_MAX, board));
}

static void show_mx_peer(uint32_t index, uint64_t nic_id)
{
	char name[MX_MAX_HOSTNAME_LEN], mac[REPORT_MAC_LEN];

	if (mx_nic_id_to_hostname(nic_id, name) != MX_SUCCESS)
		snprintf(name, sizeof(name), "?");
	printf("  %u) %s %s\n", index, report_mac(nic_id, mac), name);
}

/* No mapper knows all hosts: listed are the own boards, and what was asked for. */
static bool show_mx_peers(const struct info_options *o, uint32_t boards)
{
	mx_mapper_state_t state = { 0 };
	mx_endpt_handle_t handle = MX__INVALID_HANDLE;
	uint64_t mapper = 0, nic_id;
	char mac[REPORT_MAC_LEN];
	bool found = true;
	uint32_t n = 0;

	report_check(mx_open_board(0, &handle), "board 0");
	report_check(mx__get_mapper_state(handle, &state), "state of the network");
	for (size_t i = 0; i < sizeof(state.mapper_mac); i++)
		mapper = mapper << 8 | state.mapper_mac[i];
	if (state.network_configured)
		printf("\nPeer table is ready, mapper is %s\n", report_mac(mapper, mac));
	else
		puts("\nPeer table is not configured yet");
	puts("================================================");
	for (uint32_t board = 0; board < boards; board++) {
		report_check(mx_board_number_to_nic_id(board, &nic_id), "own board");
		show_mx_peer(n++, nic_id);
	}
	for (int i = 0; i < o->hosts_count; i++) {
		mx_return_t ret = mx_hostname_to_nic_id(o->hosts[i], &nic_id);

		if (ret == MX_SUCCESS) {
			show_mx_peer(n++, nic_id);
			continue;
		}
		fprintf(stderr, "%s: %s: %s\n", report_tool, o->hosts[i], mx_strerror(ret));
		found = false;
	}
	return found;
}

int main(int argc, char **argv)
{
	struct info_options o = { .board = MX_ANY_NIC };
	uint32_t boards, most;
	bool found = true;

	report_name(argv[0]);
	read_info_options(&o, argc, argv);
	report_start();
	omx_set_error_handler(NULL, OMX_ERRORS_RETURN);
	if (!o.quiet)
		printf("%s version: %s (Postern)\n\n", report_omx ? "Open-MX" : "MX",
		       POSTERN_VERSION);
	boards = report_boards();
	if (o.board != MX_ANY_NIC && o.board >= boards) {
		fprintf(stderr, "%s: there is no board %u\n", report_tool, o.board);
		return 1;
	}
	if (omx_get_info(NULL, OMX_INFO_BOARD_MAX, NULL, 0, &most, sizeof(most)) != OMX_SUCCESS)
		most = boards;
	printf("Found %u boards (%u max) supporting %u endpoints each:\n", boards, most,
	       report_endpoints());
	for (uint32_t board = 0; board < boards; board++)
		if (o.board == MX_ANY_NIC || o.board == board)
			show_board(board, o.verbose);
	if (!o.quiet)
		found = show_mx_peers(&o, boards);
	mx_finalize();
	return found ? 0 : 1;
}
