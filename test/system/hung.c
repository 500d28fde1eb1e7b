/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A hung job for portals-stat to look at: a process waits for a get from one that is stopped before
 * it answered. Says "hung" and its process id, and stays so until it is killed.
 */
#include <portals3.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char memory[20000];

static void check(int code, const char *what)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "hung: %s: %s\n", what, PtlErrorStr((unsigned int)code));
	exit(1);
}

static ptl_handle_ni_t open_interface(ptl_process_id_t *id)
{
	ptl_handle_ni_t ni;
	int n;

	check(PtlInit(&n), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	check(PtlGetId(ni, id), "PtlGetId");
	return ni;
}

static void stopped_target(int to)
{
	ptl_process_id_t id;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_interface(&id);
	if (write(to, &id, sizeof(id)) == (ssize_t)sizeof(id))
		raise(SIGSTOP);
	_exit(1);
}

/* A block for unexpected messages in which one of 1000 bytes lies. */
static void hold_unexpected(ptl_handle_ni_t ni, ptl_process_id_t self)
{
	static char block[4096], message[1000];
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = { .start = block,
			.length = sizeof(block),
			.threshold = PTL_MD_THRESH_INF,
			.max_size = 1024,
			.options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE };
	ptl_handle_eq_t eq;
	ptl_handle_me_t me;
	ptl_handle_md_t h;
	ptl_event_t event;

	check(PtlEQAlloc(ni, 16, PTL_EQ_HANDLER_NONE, &eq), "PtlEQAlloc");
	md.eq_handle = eq;
	check(PtlMEAttach(ni, 9, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
	md = (ptl_md_t){ .start = message,
			 .length = sizeof(message),
			 .threshold = PTL_MD_THRESH_INF,
			 .eq_handle = PTL_EQ_NONE };
	check(PtlMDBind(ni, md, PTL_RETAIN, &h), "PtlMDBind");
	check(PtlPut(h, PTL_NO_ACK_REQ, self, 9, 0, 0, 0, 0), "PtlPut");
	check(PtlEQWait(eq, &event), "PtlEQWait");
}

int main(void)
{
	ptl_md_t md = { .start = memory, .length = 12345, .threshold = PTL_MD_THRESH_INF };
	ptl_process_id_t target, id;
	ptl_handle_eq_t eq;
	ptl_handle_md_t h;
	ptl_event_t event;
	int ends[2], status;
	pid_t child;

	if (pipe(ends) < 0)
		return 1;
	child = fork();
	if (child == 0)
		stopped_target(ends[1]);
	if (read(ends[0], &target, sizeof(target)) != (ssize_t)sizeof(target) ||
	    waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status))
		return 1;
	check(PtlEQAlloc(open_interface(&id), 16, PTL_EQ_HANDLER_NONE, &eq), "PtlEQAlloc");
	md.eq_handle = eq;
	check(PtlNIHandle(eq, &h), "PtlNIHandle");
	hold_unexpected(h, id);
	check(PtlMDBind(h, md, PTL_RETAIN, &h), "PtlMDBind");
	check(PtlGet(h, target, 5, 0, 0xfeed, 0), "PtlGet");
	printf("hung %d\n", (int)getpid());
	fflush(stdout);
	PtlEQWait(eq, &event);
	return 1;
}
