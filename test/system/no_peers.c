/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The thread of the shared memory of a process that has no peers there sleeps, whatever calls
 * the process makes; with one peer it looks after those who left. Its switches are counted while
 * the lock is biased to the caller (portals/engine/lock.h).
 */
#include "ptest.h"

#include <dirent.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PORTAL = 4, NAPS = 60, NAP_NS = 2000000, CALLS = 200 };

static bool read_file(const char *task, const char *name, char *text, size_t size)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", task, name);
	f = fopen(path, "r");
	if (!f)
		return false;
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
	return true;
}

/* How often the thread went to sleep. */
static unsigned long sleeps(void)
{
	unsigned long n = 0;
	char text[4096], *at;
	struct dirent *e;
	DIR *d = opendir("/proc/self/task");

	pt_true(d);
	while ((e = readdir(d)))
		if (read_file(e->d_name, "comm", text, sizeof(text)) &&
		    strncmp(text, "postern-shm", strlen("postern-shm")) == 0 &&
		    read_file(e->d_name, "status", text, sizeof(text)) &&
		    (at = strstr(text, "\nvoluntary_ctxt_switches:")))
			n += strtoul(strchr(at, ':') + 1, NULL, 10);
	closedir(d);
	return n;
}

/* The thread is started, but may not have run yet: wait until it sleeps. */
static unsigned long first_sleeps(void)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	double end = pt_now() + 60;
	unsigned long n;

	while (!(n = sleeps()) && pt_now() < end)
		nanosleep(&nap, NULL);
	return n;
}

/* Calls, again and again, with a thread's chance to run in between. */
static unsigned long sleeps_meanwhile(void)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	ptl_handle_eq_t none = pt_eq(8);
	unsigned long before = first_sleeps();
	ptl_event_t ev;

	pt_true(before > 0);
	for (int i = 0; i < NAPS; i++) {
		for (int k = 0; k < CALLS; k++)
			pt_code(PtlEQGet(none, &ev), PTL_EQ_EMPTY);
		nanosleep(&nap, NULL);
	}
	return sleeps() - before;
}

static void the_thread_sleeps_without_peers(void)
{
	unsigned long n;

	pt_open();
	n = sleeps_meanwhile();
	pt_truef(n < NAPS / 10, "it slept %lu times in %d naps of ours", n, NAPS);
	pt_close();
}

static bool may_be_biased(void)
{
#if defined(__x86_64__)
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return commands > 0 && commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED;
#else
	return false;
#endif
}

/* It owes a look after who left the library, for what a peer may have pushed at that moment. */
static void the_thread_looks_with_one_peer(void)
{
	ptl_handle_eq_t eq;
	unsigned long n;

	if (!may_be_biased()) {
		fprintf(stderr, "# no lock is biased here\n");
		return;
	}
	pt_open();
	eq = pt_eq(8);
	pt_post(PORTAL, 0, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	pt_barrier();
	pt_ok(PtlPut(pt_bind(NULL, 0, 0, PTL_EQ_NONE), PTL_NO_ACK_REQ, pt_id(!pt_rank), PORTAL, 0,
		     0, 0, 0));
	pt_next(eq, PTL_EVENT_PUT_END);
	n = sleeps_meanwhile();
	pt_truef(n >= NAPS / 10, "it slept %lu times in %d naps of ours", n, NAPS);
	pt_barrier();
	pt_close();
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = {
		PT_CASE(the_thread_sleeps_without_peers, 1),
		PT_CASE(the_thread_looks_with_one_peer, 2),
	};

	return PT_MAIN(argc, argv, tests);
}
