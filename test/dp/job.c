/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ranks that pass a token round by DP, for jobs.sh: in a job, or each told which it is. With
 * "idle" the last rank opens Portals only, and the others look for an endpoint that may be there.
 * "address" prints the node id as an address.
 */
#include <cnos_mpi_os.h>
#include <dp.h>
#include <errno.h>
#include <fcntl.h>
#include <p3rt/p3rt.h>
#include <portals3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 200 };

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void ring(int rank, int size)
{
	int fd = dp_open(rank + 1), token = 0;
	char *at;

	need(fd >= 0, "dp_open");
	dp_target(fd, dp_nid(), (rank + 1) % size + 1);
	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0)
			need(dp_write(fd, &token, sizeof(token)) == sizeof(token), "dp_write");
		need(dp_read(fd, &at) == sizeof(token), "dp_read");
		memcpy(&token, at, sizeof(token));
		token++;
		dp_fsync(fd, 1);
		if (rank > 0)
			need(dp_write(fd, &token, sizeof(token)) == sizeof(token), "dp_write");
	}
	if (rank == 0)
		need(token == ROUNDS * size, "the token");
	/* the end of the program sends what is under way */
}

static void print_address(void)
{
	ptl_process_id_t id;
	ptl_handle_ni_t ni;
	int interfaces;

	need(PtlInit(&interfaces) == PTL_OK &&
		     PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK &&
		     PtlGetId(ni, &id) == PTL_OK,
	     "Portals");
	printf("%u.%u.%u.%u\n", id.nid >> 24, id.nid >> 16 & 255, id.nid >> 8 & 255, id.nid & 255);
	PtlFini();
}

/* The last rank sleeps in Portals; nobody finds an endpoint there, and all others are found. */
static void idle(int rank, int size)
{
	ptl_handle_ni_t ni;
	int interfaces, fd;

	if (rank == size - 1) {
		need(PtlInit(&interfaces) == PTL_OK &&
			     PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK,
		     "Portals");
		cnos_barrier();
		PtlFini();
		return;
	}
	ring(rank, size - 1);
	fd = dp_open(0);
	need(fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "dp_open");
	dp_target(fd, dp_nid(), 4711);
	need(dp_write(fd, "x", 1) == -1 && errno == EAGAIN, "a write to nobody");
	cnos_barrier();
}

int main(int argc, char **argv)
{
	int rank, size;

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "address")) {
		print_address();
		return 0;
	}
	rank = argc > 3 ? atoi(argv[2]) : cnos_get_rank();
	size = argc > 3 ? atoi(argv[3]) : cnos_get_size();
	if (!strcmp(argv[1], "idle"))
		idle(rank, size);
	else
		ring(rank, size);
	return 0;
}
