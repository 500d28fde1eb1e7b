/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * More ranks than cores that share no memory, each a node of its own to MPI: they know of each
 * other that they want the same cores, so none of them keeps its own while it waits. A rank that
 * does has its engine's lock given to it for good, which portals-stat counts; PORTALS_STAT is
 * its path.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BARRIERS = 2000 };

/* The count in the line of our portals-stat that says `what`; 0: there is none. */
static unsigned long counted(const char *what)
{
	unsigned long n = 0;
	char line[512];
	FILE *stat;

	snprintf(line, sizeof(line), "'%s' %d", PORTALS_STAT, (int)getpid());
	stat = popen(line, "r");
	while (stat && fgets(line, sizeof(line), stat))
		if (strstr(line, what))
			n = strtoul(line, NULL, 10);
	if (stat)
		pclose(stat);
	return n;
}

static unsigned long most(unsigned long n)
{
	unsigned long all;

	MPI_Allreduce(&n, &all, 1, MPI_UNSIGNED_LONG, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

int main(int argc, char **argv)
{
	unsigned long packets, kept;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < BARRIERS; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	packets = most(counted("packets sent"));
	kept = most(counted("given to one thread for good"));
	if (rank == 0 && size <= sysconf(_SC_NPROCESSORS_ONLN))
		printf("1..0 # SKIP %d ranks are not oversubscribed here\n", size);
	else if (rank == 0)
		printf("1..1\n%s 1 - no oversubscribed rank keeps its core while it waits for the "
		       "network\n"
		       "# at most %lu packets were sent, %lu locks kept\n",
		       packets >= BARRIERS && !kept ? "ok" : "not ok", packets, kept);
	MPI_Finalize();
	return rank == 0 && (packets < BARRIERS || kept) && size > sysconf(_SC_NPROCESSORS_ONLN);
}
