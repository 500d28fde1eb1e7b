/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * refuse NAME[,NAME...] ERRNO COMMAND...: runs a command to which the system refuses these calls
 * with this errno, as containers' filters do (1 EPERM, 38 ENOSYS), and to all that it starts.
 * Exit code 125: the calls are unknown, or no filters are permitted here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CALLS_MOST = 100, CANNOT = 125, NOT_STARTED = 127 };

#define CALL(call)                                                                                 \
	{                                                                                          \
		.name = #call, .number = SYS_##call                                                \
	}

static const struct {
	const char *name;
	int number;
} calls[] = {
	CALL(accept4),
	CALL(bind),
	CALL(brk),
	CALL(capget),
	CALL(clock_gettime),
	CALL(clock_nanosleep),
	CALL(clone),
	CALL(clone3),
	CALL(close_range),
	CALL(connect),
	CALL(copy_file_range),
	CALL(epoll_create1),
	CALL(epoll_ctl),
	CALL(epoll_pwait),
	CALL(epoll_pwait2),
	CALL(eventfd2),
	CALL(faccessat),
	CALL(faccessat2),
	CALL(fallocate),
	CALL(fchmod),
	CALL(fcntl),
	CALL(flock),
	CALL(fstat),
	CALL(fstatfs),
	CALL(ftruncate),
	CALL(futex_waitv),
	CALL(get_mempolicy),
	CALL(getcpu),
	CALL(getdents64),
	CALL(getpeername),
	CALL(getpgid),
	CALL(getpriority),
	CALL(getrandom),
	CALL(getrusage),
	CALL(getsid),
	CALL(getsockname),
	CALL(getsockopt),
	CALL(gettid),
	CALL(inotify_init1),
	CALL(io_uring_setup),
	CALL(ioctl),
	CALL(kcmp),
	CALL(kill),
	CALL(landlock_create_ruleset),
	CALL(listen),
	CALL(lseek),
	CALL(madvise),
	CALL(mbind),
	CALL(membarrier),
	CALL(memfd_create),
	CALL(mincore),
	CALL(mkdirat),
	CALL(mlock),
	CALL(mlock2),
	CALL(move_pages),
	CALL(mremap),
	CALL(msync),
	CALL(munlock),
	CALL(openat2),
	CALL(perf_event_open),
	CALL(personality),
	CALL(pidfd_getfd),
	CALL(pidfd_open),
	CALL(pidfd_send_signal),
	CALL(pipe2),
	CALL(ppoll),
	CALL(prctl),
	CALL(preadv),
	CALL(prlimit64),
	CALL(process_madvise),
	CALL(process_vm_readv),
	CALL(process_vm_writev),
	CALL(pselect6),
	CALL(ptrace),
	CALL(pwritev),
	CALL(readlinkat),
	CALL(recvfrom),
	CALL(recvmmsg),
	CALL(recvmsg),
	CALL(rseq),
	CALL(sched_getaffinity),
	CALL(sched_setaffinity),
	CALL(sched_setscheduler),
	CALL(sched_yield),
	CALL(sendmmsg),
	CALL(sendmsg),
	CALL(sendto),
	CALL(set_mempolicy),
	CALL(set_robust_list),
	CALL(setns),
	CALL(setpgid),
	CALL(setpriority),
	CALL(setrlimit),
	CALL(setsid),
	CALL(setsockopt),
	CALL(shutdown),
	CALL(signalfd4),
	CALL(socket),
	CALL(socketpair),
	CALL(statx),
	CALL(sysinfo),
	CALL(tgkill),
	CALL(timer_create),
	CALL(timerfd_create),
	CALL(uname),
	CALL(unlinkat),
	CALL(unshare),
	CALL(userfaultfd),
	CALL(wait4),
	CALL(waitid),
#ifdef __x86_64__
	CALL(access),
	CALL(alarm),
	CALL(arch_prctl),
	CALL(epoll_wait),
	CALL(fork),
	CALL(open),
	CALL(pipe),
	CALL(poll),
	CALL(readlink),
	CALL(select),
	CALL(time),
	CALL(vfork),
#endif
};

static int number_of(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].name, name))
			return calls[i].number;
	return -1;
}

static int cannot(const char *what)
{
	fprintf(stderr, "refuse: %s\n", what);
	return CANNOT;
}

int main(int argc, char **argv)
{
	struct sock_filter code[CALLS_MOST * 2 + 2];
	struct sock_fprog filter = { .filter = code };
	unsigned short n = 0;
	unsigned int err;

	if (argc < 4)
		return cannot("refuse NAME[,NAME...] ERRNO COMMAND...");
	err = (unsigned int)strtoul(argv[2], NULL, 10) & SECCOMP_RET_DATA;
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ",")) {
		int number = number_of(name);

		if (number < 0 || n > CALLS_MOST * 2)
			return cannot(name);
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned int)number, 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return cannot(strerror(errno));
	execvp(argv[3], argv + 3);
	fprintf(stderr, "refuse: %s: %s\n", argv[3], strerror(errno));
	return NOT_STARTED;
}
