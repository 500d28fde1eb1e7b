/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Picking messages up, and giving them back to the pool, makes no system call.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "dp_test.h"

static void on_call(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	_exit(info->si_syscall);
}

/* From now on any system call but the last one ends the process. */
static bool forbid_calls(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };
	struct sigaction action = { .sa_sigaction = on_call, .sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &action, NULL);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void picking_up_takes_no_system_call(void)
{
	int fd = dp_opened_to(1, 1), mode = DP_WATCH_NEVER, sum = 0;
	char bytes[1500] = { 1 }, *at;

	if (pt_slow() > 1)
		pt_skip("sanitizers make system calls");
	pt_is(dp_ctl(fd, DP_WATCH, &mode), 0);
	/* once, so that nothing is there for the first time */
	for (int i = 0; i < 300; i++)
		pt_is(dp_write(fd, bytes, 1500), 1500);
	for (int i = 0; i < 300; i++)
		pt_is(dp_read(fd, &at), 1500);
	pt_is(dp_fsync(fd, 300), 300);
	for (int i = 0; i < 300; i++)
		pt_is(dp_write(fd, bytes, 1500), 1500);
	if (!forbid_calls())
		pt_skip("system call filters are not permitted");
	for (int i = 0; i < 300; i++) {
		sum += dp_read(fd, &at);
		sum += dp_fsync(fd, 1);
	}
	/* the harness would make calls */
	_exit(sum == 300 * 1501 ? 0 : 1);
}

static const struct pt_test tests[] = {
	PT_CASE(picking_up_takes_no_system_call, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
