/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The life of endpoints: ids, descriptors, copies of them, children, and what bad arguments get.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "dp_test.h"

static void an_id_is_had_once(void)
{
	int fd = dp_opened(7);

	pt_is(dp_id(fd), 7);
	dp_fails(dp_open(7), EADDRINUSE);
	dp_close(fd);
	fd = dp_opened(7);
	pt_is(dp_id(fd), 7);
	close(fd);
	/* at once, although only the library's thread sees that it was closed */
	for (int i = 0; i < 50; i++) {
		fd = dp_opened(7);
		close(fd);
	}
	fd = dp_opened(7);
	dp_close(fd);
	dp_fails(dp_id(fd), EBADF);
}

static void an_id_is_had_once_on_a_node(void)
{
	int fd = -1;

	if (pt_rank == 0)
		fd = dp_opened(7);
	pt_barrier();
	if (pt_rank == 1)
		dp_fails(dp_open(7), EADDRINUSE);
	pt_barrier();
	if (pt_rank == 0)
		close(fd);
	pt_barrier();
	if (pt_rank == 1)
		pt_until((fd = dp_open(7)) >= 0, 10);
	pt_barrier();
}

static void an_id_of_0_is_any(void)
{
	int a = dp_opened(0), b = dp_opened(0);

	pt_true(dp_id(a) > 0 && dp_id(b) > 0 && dp_id(a) != dp_id(b));
	pt_true(dp_id(a) <= DP_MAX_DPID);
	dp_target(a, dp_nid(), dp_id(b));
	dp_send_value(a, 5);
	dp_next_value(b, 5);
}

static void bad_arguments_get_their_code(void)
{
	dpmmap_t shape = { .base = NULL };
	char *at, byte = 1;
	int fd, pipes[2], number;

	/* before the first dp_open */
	dp_fails(dp_write(0, &byte, 1), EBADF);
	dp_fails(dp_read(0, &at), EBADF);
	dp_fails(dp_fsync(0, 1), EBADF);
	dp_fails(dp_mmap(0, &shape), EBADF);
	dp_fails(dp_id(0), EBADF);
	dp_fails(dp_from(0, &byte, NULL, NULL), EBADF);
	dp_fails(dp_ctl(0, DP_LOST, &byte), EBADF);
	dp_target(0, 0, 1);
	dp_close(0);
	dp_fails(dp_open(-1), EINVAL);
	dp_fails(dp_open(DP_MAX_DPID + 1), EINVAL);
	pt_is(dp_nid(), 0);
	pt_is(dp_nodes(), 1);
	fd = dp_opened(DP_MAX_DPID);
	pt_is(pipe(pipes), 0);
	const int bad[] = { -1, -1000, pipes[0], 1 << 20, 1 << 30, 0x7fffffff };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		dp_fails(dp_write(bad[i], &byte, 1), EBADF);
		dp_fails(dp_read(bad[i], &at), EBADF);
		dp_fails(dp_fsync(bad[i], 1), EBADF);
		dp_fails(dp_mmap(bad[i], &shape), EBADF);
		dp_fails(dp_id(bad[i]), EBADF);
		dp_target(bad[i], 0, 1);
		dp_close(bad[i]);
	}
	pt_is(fcntl(pipes[0], F_GETFD), 0); /* is still open */
	dp_fails(dp_write(fd, &byte, 1), ENOTCONN);
	dp_target(fd, 1, 1);
	dp_fails(dp_write(fd, &byte, 1), EHOSTUNREACH);
	dp_target(fd, -2, 1);
	dp_fails(dp_write(fd, &byte, 1), EHOSTUNREACH);
	dp_target(fd, 0, 0);
	dp_fails(dp_write(fd, &byte, 1), ENOTCONN);
	dp_target(fd, 0, DP_MAX_DPID);
	dp_fails(dp_write(fd, &byte, -1), EINVAL);
	dp_fails(dp_write(fd, NULL, 1), EFAULT);
	dp_fails(dp_write(fd, &byte, DP_MAX_MESSAGE + 1), EMSGSIZE);
	dp_fails(dp_read(fd, NULL), EFAULT);
	dp_fails(dp_fsync(fd, -1), EINVAL);
	pt_is(dp_fsync(fd, 0), 0);
	pt_is(dp_fsync(fd, 1000), 0);
	dp_fails(dp_from(fd, &byte, &number, &number), EINVAL);
	dp_fails(dp_ctl(fd, 0, &byte), EINVAL);
	dp_fails(dp_ctl(fd, 99, &byte), EINVAL);
	dp_fails(dp_ctl(fd, DP_LOST, NULL), EFAULT);
	number = 2;
	dp_fails(dp_ctl(fd, DP_FLOW, &number), EINVAL);
	number = 3;
	dp_fails(dp_ctl(fd, DP_WATCH, &number), EINVAL);
	dp_fails(dp_mmap(fd, NULL), EFAULT);
	dp_target(fd, -1, 1);
	dp_fails(dp_write(fd, &byte, 1), ENOTCONN);
	pt_is(dp_write(dp_opened_to(5, DP_MAX_DPID), NULL, 0), 0);
	pt_is(dp_read(fd, &at), 0);
}

static void copies_lead_to_the_same_endpoint(void)
{
	int fd = dp_opened_to(3, 3), copy = dup(fd), high = fcntl(fd, F_DUPFD_CLOEXEC, 1500);

	pt_true(copy >= 0);
	if (high < 0)
		high = dup(fd);
	pt_is(dp_id(copy), 3);
	pt_is(dp_id(high), 3);
	dp_send_value(copy, 1);
	dp_next_value(high, 1);
	close(fd);
	/* it lives on */
	dp_fails(dp_open(3), EADDRINUSE);
	dp_send_value(high, 2);
	dp_next_value(copy, 2);
	close(copy);
	close(high);
	fd = dp_opened(3);
	copy = dup(fd);
	dp_close(fd);
	dp_fails(dp_id(copy), EBADF);
	pt_is(read(copy, &high, sizeof(high)), 0);
	pt_true(dp_opened(3) >= 0);
}

static void it_closes_when_a_program_is_started(void)
{
	int fd = dp_opened(3);

	pt_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* In the child: what it may do with an endpoint, which is nothing. */
static void use_in_child(int fd)
{
	char *at, byte = 0;
	bool ok = dp_write(fd, &byte, 1) == -1 && errno == EBADF;

	ok = ok && dp_read(fd, &at) == -1 && errno == EBADF;
	ok = ok && dp_open(9) == -1 && errno == EPERM;
	dp_close(fd);
	_exit(ok ? 0 : 1);
}

static void a_child_cannot_use_it(void)
{
	int fd = dp_opened_to(3, 3), status, pipes[2];
	char byte;
	pid_t child;

	child = fork();
	if (child == 0)
		use_in_child(fd);
	pt_is(waitpid(child, &status, 0), child);
	pt_is(status, 0);
	dp_send_value(fd, 4);
	dp_next_value(fd, 4);
	pt_is(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		close(pipes[1]);
		if (read(pipes[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	/* the child has it open, and dp_close closes all the same */
	dp_close(fd);
	fd = dp_opened(3);
	close(pipes[1]);
	pt_is(waitpid(child, &status, 0), child);
	dp_close(fd);
}

static void a_thousand_are_open_at_once(void)
{
	enum { MANY = 1000 };
	static int fds[MANY];
	struct rlimit limit;
	int before;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < 2 * MANY + 100)
		pt_skip("only %d descriptors", (int)limit.rlim_cur);
	dp_close(dp_opened(1));
	before = pt_entries("/proc/self/fd");
	for (int i = 0; i < MANY; i++)
		fds[i] = dp_opened(i + 1);
	for (int i = 0; i < MANY; i++) {
		dp_target(fds[i], 0, MANY - i);
		dp_send_value(fds[i], (uint64_t)i);
	}
	for (int i = 0; i < MANY; i++)
		dp_next_value(fds[i], (uint64_t)(MANY - 1 - i));
	for (int i = 0; i < MANY; i++)
		dp_close(fds[i]);
	pt_is(pt_entries("/proc/self/fd"), before);
}

/* Processor time of this thread, ns: other processes have no part in it. */
static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The least that a message took in many batches: sent, received and flushed by a program that
 * looks for messages itself. */
static uint64_t least_ns_of_a_message(int fd)
{
	enum { BATCHES = 40, MESSAGES = 200 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < BATCHES; i++) {
		uint64_t start = thread_ns();

		for (uint64_t k = 0; k < MESSAGES; k++) {
			dp_send_value(fd, k);
			dp_next_value(fd, k);
		}
		start = (thread_ns() - start) / MESSAGES;
		least = start < least ? start : least;
	}
	return least;
}

static void idle_ones_cost_a_busy_one_nothing(void)
{
	enum { MANY = 1000, TRIES = 10 };
	static int fds[MANY];
	struct rlimit limit;
	uint64_t alone, beside;
	int fd, mode = DP_WATCH_NEVER;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < 2 * MANY + 100)
		pt_skip("only %d descriptors", (int)limit.rlim_cur);
	fd = dp_opened_to(1, 1);
	pt_is(dp_ctl(fd, DP_WATCH, &mode), 0);
	alone = least_ns_of_a_message(fd);
	for (int i = 0; i < MANY; i++)
		fds[i] = dp_opened(i + 2);
	beside = least_ns_of_a_message(fd);
	/* a machine that was busy with something else meanwhile may get less so */
	for (int i = 0; i < TRIES && beside > alone + alone / 4; i++)
		beside = least_ns_of_a_message(fd);
	pt_truef(beside <= alone + alone / 4, "%llu ns beside %d idle ones, %llu ns alone",
		 (unsigned long long)beside, MANY, (unsigned long long)alone);
	for (int i = 0; i < MANY; i++)
		dp_close(fds[i]);
	dp_close(fd);
}

static void descriptors_run_out(void)
{
	struct rlimit limit;
	int fd = -1, last = -1, n = 0;

	dp_close(dp_opened(1));
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)pt_entries("/proc/self/fd") + 20;
	setrlimit(RLIMIT_NOFILE, &limit);
	while ((fd = dp_open(0)) >= 0) {
		last = fd;
		pt_true(++n < 100);
	}
	pt_is(errno, EMFILE);
	pt_true(n > 2);
	dp_close(last);
	fd = dp_opened(0);
	dp_target(fd, 0, dp_id(fd));
	dp_send_value(fd, 1);
	dp_next_value(fd, 1);
}

static void a_pool_of_few_delivers(int fd, unsigned int messages)
{
	dpmmap_t shape = { .messages = messages };

	pt_is(dp_mmap(fd, &shape), 0);
	for (uint64_t i = 0; i < 3ull * messages; i++) {
		dp_send_value(fd, i);
		dp_next_value(fd, i);
	}
}

static void a_pool_is_as_asked_for(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	dpmmap_t shape = { .base = NULL };
	int fd = dp_opened_to(3, 3);
	char *own, *at;

	pt_is(dp_mmap(fd, &shape), 0);
	pt_is(shape.size, 1 << 20);
	pt_is(shape.messages, 4000);
	pt_is(shape.max_message, DP_MAX_MESSAGE);
	pt_true(shape.base != NULL);
	shape = (dpmmap_t){ .size = 1, .messages = 1, .max_message = 100 };
	pt_is(dp_mmap(fd, &shape), 0);
	pt_true(shape.size >= 4 * 2 * 100 && shape.messages == 4);
	a_pool_of_few_delivers(fd, 1);
	a_pool_of_few_delivers(fd, 16);
	shape = (dpmmap_t){ .flags = 1 };
	dp_fails(dp_mmap(fd, &shape), EINVAL);
	shape = (dpmmap_t){ .max_message = DP_MAX_MESSAGE + 1 };
	dp_fails(dp_mmap(fd, &shape), EINVAL);
	own = mmap(NULL, 64 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pt_true(own != MAP_FAILED);
	shape = (dpmmap_t){ .base = own + 8, .size = 32 * page, .max_message = 4096 };
	dp_fails(dp_mmap(fd, &shape), EINVAL);
	shape = (dpmmap_t){ .base = own, .size = page };
	dp_fails(dp_mmap(fd, &shape), EINVAL);
	shape = (dpmmap_t){ .base = own, .size = 64 * page, .max_message = 4096 };
	pt_is(dp_mmap(fd, &shape), 0);
	pt_true(shape.base == own && shape.size == 64 * page);
	dp_send_value(fd, 6);
	shape = (dpmmap_t){ .base = NULL };
	dp_fails(dp_mmap(fd, &shape), EBUSY);
	pt_is(dp_read(fd, &at), 8);
	pt_true(at >= own && at < own + 64 * page);
	dp_fails(dp_mmap(fd, &shape), EBUSY);
	pt_is(dp_fsync(fd, 1), 1);
	pt_is(dp_mmap(fd, &shape), 0);
	dp_send_value(fd, 7);
	dp_next_value(fd, 7);
}

static void a_target_says_what_it_takes(void)
{
	dpmmap_t shape = { .max_message = 1000 };
	char bytes[1001] = { 0 };
	size_t packet;
	int a = dp_opened(1), b = dp_opened_to(2, 1);

	pt_is(dp_mmap(a, &shape), 0);
	pt_is(dp_ctl(b, DP_PACKET, &packet), 0);
	pt_is(packet, DP_MAX_MESSAGE);
	pt_is(dp_write(b, bytes, 1000), 1000);
	dp_fails(dp_write(b, bytes, 1001), EMSGSIZE);
	pt_is(dp_ctl(b, DP_PACKET, &packet), 0);
	pt_is(packet, 1000);
}

static const struct pt_test tests[] = {
	PT_CASE(an_id_is_had_once, 1),
	PT_CASE(an_id_is_had_once_on_a_node, 2),
	PT_CASE(an_id_of_0_is_any, 1),
	PT_CASE(bad_arguments_get_their_code, 1),
	PT_CASE(copies_lead_to_the_same_endpoint, 1),
	PT_CASE(it_closes_when_a_program_is_started, 1),
	PT_CASE(a_child_cannot_use_it, 1),
	PT_CASE(a_thousand_are_open_at_once, 1),
	PT_CASE(idle_ones_cost_a_busy_one_nothing, 1),
	PT_CASE(descriptors_run_out, 1),
	PT_CASE(a_pool_is_as_asked_for, 1),
	PT_CASE(a_target_says_what_it_takes, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
