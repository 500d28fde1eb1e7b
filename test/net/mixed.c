/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A job of several nodes with several ranks each: those of one node share memory and use nothing
 * else, those of different ones use the network and nothing else, as portals-stat says;
 * PORTALS_STAT is its path. A node is a network namespace, or an address in one (PTL_IFACE).
 * Usage: mixed NETWORK, the name of the NAL between nodes.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES = 20, RANKS = 64, NAME = 128 };

struct place {
	int pid;
	char node[NAME];
};

/* The peers in the output of portals-stat. */
struct seen {
	int shared[RANKS]; /* by shared memory: their processes */
	int nshared, nnetwork, nother;
};

static void say_where(struct place *p)
{
	const char *address = getenv("PTL_IFACE");
	ssize_t len;

	memset(p, 0, sizeof(*p));
	p->pid = (int)getpid();
	len = readlink("/proc/self/ns/net", p->node, sizeof(p->node) / 2);
	snprintf(p->node + (len > 0 ? len : 0), sizeof(p->node) / 2, " %s", address ? address : "");
}

static void exchange(int rank, int size)
{
	static char out[100000], in[100000];
	const int lengths[] = { 1, 5000, sizeof(out) };

	for (int step = 1; step < size; step++)
		for (int i = 0; i < MESSAGES; i++)
			MPI_Sendrecv(out, lengths[i % 3], MPI_CHAR, (rank + step) % size, i, in,
				     lengths[i % 3], MPI_CHAR, (rank + size - step) % size, i,
				     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void look(struct seen *s, const char *network)
{
	char line[512], by[32];
	FILE *stat;

	memset(s, 0, sizeof(*s));
	snprintf(line, sizeof(line), "'%s' %d", PORTALS_STAT, (int)getpid());
	stat = popen(line, "r");
	while (stat && fgets(line, sizeof(line), stat)) {
		unsigned long to, from;
		const char *messages;
		int pid;

		if (strncmp(line, "  peer ", 7) || strstr(line, "(itself)"))
			continue;
		messages = strstr(line, " messages to it");
		if (sscanf(line, "  peer nid %*s pid %*u, process %d, by %31s", &pid, by) == 2 &&
		    !strcmp(by, "shm") && s->nshared < RANKS)
			s->shared[s->nshared++] = pid;
		else if (sscanf(line, "  peer nid %*s pid %*u, by %31[^:]: %lu messages to it, %lu",
				by, &to, &from) == 3 &&
			 !strcmp(by, network) && messages && to && from)
			s->nnetwork++;
		else
			s->nother++;
	}
	if (stat)
		pclose(stat);
}

/* Is it so for this rank: all of its node by shared memory, all others over the network? */
static int right(const struct place *all, int rank, int size, const struct seen *s)
{
	int here = 0, found = 0;

	for (int i = 0; i < size; i++) {
		if (i == rank || strcmp(all[i].node, all[rank].node))
			continue;
		here++;
		for (int j = 0; j < s->nshared; j++)
			found += s->shared[j] == all[i].pid;
	}
	if (here && here < size - 1 && found == here && s->nshared == here &&
	    s->nnetwork == size - 1 - here && !s->nother)
		return 1;
	printf("# rank %d: %d more ranks on its node, %d elsewhere; %d of %d by shared memory, %d "
	       "over the "
	       "network, %d otherwise\n",
	       rank, here, size - 1 - here, found, s->nshared, s->nnetwork, s->nother);
	return 0;
}

int main(int argc, char **argv)
{
	struct place mine, all[RANKS];
	struct seen seen;
	int rank, size, ok, all_ok;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 2 || size > RANKS)
		MPI_Abort(MPI_COMM_WORLD, 2);
	say_where(&mine);
	MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
	exchange(rank, size);
	look(&seen, argv[1]);
	ok = right(all, rank, size, &seen);
	fflush(stdout);
	MPI_Allreduce(&ok, &all_ok, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (rank == 0)
		printf("1..1\n%s 1 - nodes share memory within and use %s between\n",
		       all_ok ? "ok" : "not ok", argv[1]);
	MPI_Finalize();
	return !all_ok;
}
