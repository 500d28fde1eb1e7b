/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Common parts of the reporting tools: their names, boards, and the endpoints of other processes.
 * Each tool has a name of MX and one of Open-MX, and prints as the tool of that name did.
 */
#ifndef TOOLS_MX_REPORT_H
#define TOOLS_MX_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <mx_extensions.h>

#include "mx_shim/mx_seen.h"

/* The name that the tool was called by, and whether that is the one of Open-MX. */
extern const char *report_tool;
extern bool report_omx;

void report_name(const char *argv0);
/* Starts the library. All these end the tool with a message if something fails. */
void report_start(void);
void report_check(mx_return_t ret, const char *what);
/* The number of a board, of an option; ends the tool with status 2 if it is none. */
uint32_t report_board_option(const char *text);
uint32_t report_boards(void);    /* how many there are */
uint32_t report_endpoints(void); /* endpoints of a board */
/* The name and the NIC id of a board. */
uint64_t report_board_name(uint32_t board, char name[MX_MAX_HOSTNAME_LEN]);

#define REPORT_MAC_LEN 18
/* A NIC id as programs print it. */
const char *report_mac(uint64_t nic_id, char text[REPORT_MAC_LEN]);

/* An open endpoint of a process of this host. */
struct report_endpoint {
	uint32_t pid; /* of the operating system */
	const char *command;
	struct mx_seen *seen; /* may be written if `writable` was asked for */
};

/* Calls `show` for every open endpoint of processes that the user may look at. */
void report_each_endpoint(bool writable, void (*show)(const struct report_endpoint *, void *),
			  void *arg);

#endif
