/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A graph of directed points: five channels among three processes. Each process gives the
 * endpoints in its part of the table, sends a line over each edge that leaves it, and prints
 * those that arrive.
 *
 *     process 0: endpoints 1, 2     process 1: 5, 6     process 2: 8, 9
 *     1 -> 5    2 -> 8    5 -> 1    6 -> 9    9 -> 2
 *
 *     mpiexec -n 3 dp_channels
 *
 * Without a launcher: dp_channels 0, dp_channels 1 and dp_channels 2, each in its terminal.
 */
#include <dp.h>
#include <poll.h>
#include <portals3.h>
#include <p3rt/p3rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	int dpid, process;
} endpoints[] = { { 1, 0 }, { 2, 0 }, { 5, 1 }, { 6, 1 }, { 8, 2 }, { 9, 2 } };

static const struct {
	int from, to;
} edges[] = { { 1, 5 }, { 2, 8 }, { 5, 1 }, { 6, 9 }, { 9, 2 } };

enum {
	ENDPOINTS = sizeof(endpoints) / sizeof(endpoints[0]),
	EDGES = sizeof(edges) / sizeof(edges[0])
};

static int fds[16]; /* by DPID; -1: it is another process's */

/* The rank in a job, or what the command line says. */
static int own_number(int argc, char **argv)
{
	unsigned int rank = 0, size;
	ptl_handle_ni_t ni;

	if (argc > 1)
		return atoi(argv[1]);
	/* the interface that DP has opened */
	if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK) {
		PtlGetRank(ni, &rank, &size);
		PtlNIFini(ni);
	}
	return (int)rank;
}

/* All nodes are one here: with several a table says on which node each endpoint is. */
static int send_lines(void)
{
	char line[64];

	for (int i = 0; i < EDGES; i++) {
		int fd = fds[edges[i].from];

		if (fd < 0)
			continue;
		snprintf(line, sizeof(line), "over the channel <%d,%d> -> <%d,%d>", edges[i].from,
			 dp_nid(), edges[i].to, dp_nid());
		dp_target(fd, dp_nid(), edges[i].to);
		if (dp_write(fd, line, (int)strlen(line) + 1) < 0) {
			perror("dp_write");
			return -1;
		}
	}
	return 0;
}

/* How many edges end here? */
static int edges_in(void)
{
	int n = 0;

	for (int i = 0; i < EDGES; i++)
		n += fds[edges[i].to] >= 0;
	return n;
}

/* Wait for them all as for any descriptors. */
static int receive_lines(int own)
{
	struct pollfd set[ENDPOINTS];
	int n = 0, nid, dpid, missing = edges_in(), wrong = 0;
	char *line;

	for (int i = 0; i < ENDPOINTS; i++)
		if (fds[endpoints[i].dpid] >= 0)
			set[n++] =
				(struct pollfd){ .fd = fds[endpoints[i].dpid], .events = POLLIN };
	while (missing > 0) {
		if (poll(set, (nfds_t)n, 30000) <= 0)
			return 1;
		for (int i = 0; i < n; i++) {
			if (!(set[i].revents & POLLIN) || dp_read(set[i].fd, &line) < 0)
				continue;
			dp_from(set[i].fd, line, &nid, &dpid);
			printf("process %d, endpoint %d, from <%d,%d>: %s\n", own, dp_id(set[i].fd),
			       dpid, nid, line);
			wrong += dpid != atoi(strchr(line, '<') + 1);
			dp_fsync(set[i].fd, 1);
			missing--;
		}
	}
	return wrong;
}

int main(int argc, char **argv)
{
	int own, wrong;

	for (int i = 0; i < 16; i++)
		fds[i] = -1;
	if (dp_nid() < 0) /* starts the library */
		return 1;
	own = own_number(argc, argv);
	for (int i = 0; i < ENDPOINTS; i++) {
		if (endpoints[i].process != own)
			continue;
		fds[endpoints[i].dpid] = dp_open(endpoints[i].dpid);
		if (fds[endpoints[i].dpid] < 0) {
			perror("dp_open");
			return 1;
		}
	}
	/* a first write waits until its target is open, so nothing else has to be agreed on */
	if (send_lines() < 0)
		return 1;
	wrong = receive_lines(own);
	for (int i = 0; i < ENDPOINTS; i++)
		dp_close(fds[endpoints[i].dpid]);
	return wrong;
}
