/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Setting up the two processes. A spare process is forked before the library is touched, because a
 * forked child may not use a library its parent has initialized; in a job of two it is not needed
 * and ends, started alone it becomes rank 1. The board is a memfd: the forked process inherits it,
 * a rank started by a launcher opens it through /proc.
 */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <p3rt/p3rt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link.h"

/* ---- where to run ---- */

/* Does /sys call `cpu` a hardware thread of the core that `other` is one of? */
static bool same_core(int cpu, int other)
{
	char path[96], text[128] = "";
	FILE *f;
	int first, second;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		 other);
	f = fopen(path, "re");
	if (!f)
		return cpu == other;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	for (char *s = strtok(text, ",\n"); s; s = strtok(NULL, ",\n")) {
		int n = sscanf(s, "%d-%d", &first, &second);

		if (n >= 1 && cpu >= first && cpu <= (n == 2 ? second : first))
			return true;
	}
	return cpu == other;
}

/* The first allowed core for rank 0, the next that is another physical core for rank 1. */
static int choose_core(const cpu_set_t *allowed, int rank)
{
	int first = -1, spare = -1;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, allowed))
			continue;
		if (first < 0)
			first = cpu;
		else if (!same_core(cpu, first))
			return rank ? cpu : first;
		else if (spare < 0)
			spare = cpu;
	}
	return rank ? spare : first;
}

static void pin(struct perf *p)
{
	cpu_set_t set;

	p->core = -1;
	if (!p->opt.pin || sched_getaffinity(0, sizeof(set), &set))
		return;
	if (p->opt.core[p->rank] >= 0) {
		p->core = p->opt.core[p->rank];
	} else if (CPU_COUNT(&set) > 1) {
		p->core = choose_core(&set, p->rank);
	} else {
		/* One core: a launcher bound us, or there is no other. */
		if (p->child && !p->rank)
			fputs("ptlperf: only one core may be used; both processes share it and the "
			      "figures show the scheduler\n",
			      stderr);
		return;
	}
	CPU_ZERO(&set);
	CPU_SET((unsigned)p->core, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perf_fail("cannot pin to core %d: %m; choose others with --cores, or --no-pin",
			  p->core);
}

/* ---- the board ---- */

static void *map_board(int fd)
{
	void *at = mmap(NULL, sizeof(struct perf_board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void make_board(struct perf *p)
{
	p->board_fd = memfd_create("ptlperf-board", MFD_CLOEXEC);
	if (p->board_fd < 0 || ftruncate(p->board_fd, sizeof(struct perf_board)))
		perf_fail("cannot make %zu bytes of shared memory: %m", sizeof(struct perf_board));
	p->board = map_board(p->board_fd);
	if (!p->board)
		perf_fail("cannot map shared memory: %m");
	p->board->magic = perf_clock_os() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid();
}

/* Rank 1 of a job: rank 0's board, if it can be reached and is the one meant. */
static struct perf_board *open_board(pid_t pid, int fd, uint64_t magic)
{
	char path[64];
	struct perf_board *board = NULL;
	int own;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	own = open(path, O_RDWR | O_CLOEXEC);
	if (own < 0)
		return NULL;
	if (lseek(own, 0, SEEK_END) == (off_t)sizeof(*board))
		board = map_board(own);
	close(own);
	if (board && board->magic != magic) {
		munmap(board, sizeof(*board));
		board = NULL;
	}
	return board;
}

static void share_board(struct perf *p)
{
	bool near = p->self.nid == p->other.nid;

	perf_watch("sharing memory with the other rank");
	if (!p->rank) {
		perf_ctl_send(p, (uint64_t)getpid() << 32 | (uint32_t)p->board_fd);
		perf_ctl_send(p, p->board->magic);
		if (!perf_ctl_recv(p))
			p->board = NULL;
	} else {
		uint64_t where = perf_ctl_recv(p), magic = perf_ctl_recv(p);

		munmap(p->board, sizeof(*p->board));
		p->board =
			near ? open_board((pid_t)(where >> 32), (int)(uint32_t)where, magic) : NULL;
		perf_ctl_send(p, p->board != NULL);
	}
}

/* ---- the two processes ---- */

static void open_interface(struct perf *p)
{
	int interfaces;

	perf_ok(PtlInit(&interfaces), "PtlInit");
	perf_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &p->limits, &p->ni), "PtlNIInit");
	perf_ok(PtlGetId(p->ni, &p->self), "PtlGetId");
}

/* Reads exactly `len` bytes from the other process; false when it is gone. */
static bool read_all(int fd, void *to, size_t len)
{
	ssize_t n;

	do
		n = recv(fd, to, len, MSG_WAITALL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

static void swap_ids(struct perf *p, int fd)
{
	if (send(fd, &p->self, sizeof(p->self), MSG_NOSIGNAL) != (ssize_t)sizeof(p->self) ||
	    !read_all(fd, &p->other, sizeof(p->other)))
		perf_fail("the other process ended before it had an interface");
}

/* A launcher's variables are for the parent, not for a process that it did not start. */
static void forget_launcher(void)
{
	static const char *const names[] = {
		"PMI_FD",      "PMI_RANK",   "PMI_SIZE",   "PMI_PORT",
		"PMI_SPAWNED", "PTL_MY_RID", "PTL_NIDMAP", "PTL_PIDMAP"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

/* The spare process: waits until it is known whether it is needed. */
static void spare_process(struct perf *p, int fd, pid_t parent)
{
	char go;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || !read_all(fd, &go, 1))
		_exit(0);
	p->rank = 1;
	p->child = 0;
	forget_launcher();
	perf_watch_start(p);
	perf_watch("opening the interface");
	open_interface(p);
	swap_ids(p, fd);
	close(fd);
}

/* Rank and size as the launcher says; alone when there is none. */
static bool in_job(struct perf *p)
{
	unsigned rank = 0, size = 1;

	if (PtlGetRank(p->ni, &rank, &size) != PTL_OK || size < 2)
		return false;
	if (size != 2)
		perf_fail("needs a job of 2 ranks, this one has %u: mpiexec -n 2 ptlperf ...",
			  size);
	p->in_job = true;
	p->rank = (int)rank;
	perf_ok(PtlGetRankId(p->ni, !rank, &p->other), "PtlGetRankId");
	return true;
}

/* The first process: fetches the spare one where there is no job, else sends it home. */
static void first_process(struct perf *p, int fd)
{
	pid_t spare = p->child;

	open_interface(p);
	if (in_job(p)) {
		close(fd);
		waitpid(spare, NULL, 0);
		p->child = 0;
		perf_watch_start(p);
		return;
	}
	perf_watch_start(p);
	perf_watch("starting the second process");
	if (send(fd, "g", 1, MSG_NOSIGNAL) != 1)
		perf_fail("the second process is gone");
	swap_ids(p, fd);
	close(fd);
}

void perf_peer_start(struct perf *p)
{
	pid_t parent = getpid();
	int pair[2];

	make_board(p);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		perf_fail("cannot make a socket pair: %m");
	fflush(NULL);
	p->child = fork();
	if (p->child < 0)
		perf_fail("cannot start the second process: %m");
	if (p->child) {
		close(pair[1]);
		first_process(p, pair[0]);
	} else {
		close(pair[0]);
		spare_process(p, pair[1], parent);
	}
	/* Only now: the rank decides, and the library has seen what it may use. */
	pin(p);
	perf_link_open(p);
	if (p->in_job)
		share_board(p);
}

int perf_peer_stop(struct perf *p)
{
	pid_t child = p->child;
	int status = 0;

	perf_watch("ending");
	perf_ctl_barrier(p);
	perf_link_close(p);
	perf_watch_stop();
	perf_ok(PtlNIFini(p->ni), "PtlNIFini");
	PtlFini();
	if (child > 0 && waitpid(child, &status, 0) == child &&
	    !(WIFEXITED(status) && !WEXITSTATUS(status))) {
		fputs("ptlperf: rank 1 failed while ending\n", stderr);
		return 1;
	}
	return 0;
}
