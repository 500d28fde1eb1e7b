/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The kernel's view of descriptors, and the ordinary calls on them.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "dp_test.h"

/* Poll for `ms` at most. */
static bool readable_within(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && p.revents & POLLIN;
}

static bool selected(int fd)
{
	struct timeval none = { 0, 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &none) == 1;
}

static void poll_tells_of_messages(void)
{
	int fd = dp_opened_to(1, 1);
	char *at;

	pt_true(!dp_readable(fd) && !selected(fd));
	dp_send_value(fd, 1);
	dp_send_value(fd, 2);
	pt_true(readable_within(fd, 5000));
	pt_true(selected(fd));
	pt_is(dp_read(fd, &at), 8);
	pt_true(readable_within(fd, 5000));
	pt_is(dp_read(fd, &at), 8);
	pt_true(!dp_readable(fd) && !selected(fd));
	pt_is(dp_fsync(fd, 2), 2);
	dp_send_value(fd, 3);
	pt_true(readable_within(fd, 5000));
	dp_next_value(fd, 3);
	pt_true(!dp_readable(fd));
}

static void plain_read_gets_a_message_each(void)
{
	int fd = dp_opened_to(1, 1);
	char bytes[64], out[64];

	memset(out, 'x', sizeof(out));
	for (int length = 0; length <= 40; length += 8) {
		pt_is(dp_write(fd, out, length), length);
		pt_is(dp_write(fd, out, length + 3), length + 3);
	}
	for (int length = 0; length <= 40; length += 8) {
		memset(bytes, 0, sizeof(bytes));
		pt_is(read(fd, bytes, sizeof(bytes)), length);
		pt_memory(bytes, out, (size_t)length);
		/* a short buffer cuts it */
		pt_is(read(fd, bytes, 2), 2);
	}
	pt_until(!dp_readable(fd), 5);
	/* plain reads have flushed what they had */
	pt_is(dp_fsync(fd, 100), 0);
	pt_is(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	dp_fails(read(fd, bytes, sizeof(bytes)), EAGAIN);
}

static void poll_works_after_spinning(void)
{
	int fd = dp_opened_to(1, 1), copy = dup(fd);
	char *at;

	pt_is(fcntl(copy, F_SETFL, O_NONBLOCK), 0);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 1000; i++)
			dp_fails(dp_read(fd, &at), EAGAIN);
		dp_send_value(fd, (uint64_t)round);
		pt_true(readable_within(fd, 5000));
		dp_next_value(fd, (uint64_t)round);
		pt_true(!dp_readable(fd));
	}
}

static void the_program_says_who_watches(void)
{
	int fd = dp_opened_to(1, 1), mode = DP_WATCH_NEVER;

	pt_is(dp_ctl(fd, DP_WATCH, &mode), 0);
	dp_send_value(fd, 1);
	pt_true(!readable_within(fd, 50));
	mode = DP_WATCH_ALWAYS;
	pt_is(dp_ctl(fd, DP_WATCH, &mode), 0);
	pt_true(dp_readable(fd));
	dp_next_value(fd, 1);
}

static void epoll_tells_of_messages(void)
{
	struct epoll_event e = { .events = EPOLLIN }, edge = { .events = EPOLLIN | EPOLLET }, got;
	int a = dp_opened_to(1, 2), b = dp_opened_to(2, 1), level = epoll_create1(0);
	int edges = epoll_create1(0), pipes[2];
	char *at, byte = 0;

	pt_is(pipe(pipes), 0);
	e.data.fd = b;
	pt_is(epoll_ctl(level, EPOLL_CTL_ADD, b, &e), 0);
	e.data.fd = pipes[0];
	pt_is(epoll_ctl(level, EPOLL_CTL_ADD, pipes[0], &e), 0);
	edge.data.fd = b;
	pt_is(epoll_ctl(edges, EPOLL_CTL_ADD, b, &edge), 0);
	pt_is(epoll_wait(level, &got, 1, 0), 0);
	for (int i = 0; i < 10; i++) {
		dp_send_value(a, (uint64_t)i);
		pt_is(epoll_wait(edges, &got, 1, 5000), 1);
		pt_is(epoll_wait(level, &got, 1, 5000), 1);
		pt_is(got.data.fd, b);
		pt_is(epoll_wait(edges, &got, 1, 0), 0);
		dp_next_value(b, (uint64_t)i);
		pt_is(epoll_wait(level, &got, 1, 0), 0);
	}
	pt_is(write(pipes[1], &byte, 1), 1);
	pt_is(epoll_wait(level, &got, 1, 5000), 1);
	pt_is(got.data.fd, pipes[0]);
	/* several wait: an edge for those that are left, too */
	dp_send_value(a, 20);
	dp_send_value(a, 21);
	pt_is(epoll_wait(edges, &got, 1, 5000), 1);
	pt_is(dp_read(b, &at), 8);
	pt_is(epoll_wait(edges, &got, 1, 5000), 1);
	pt_is(dp_read(b, &at), 8);
}

static void a_process_elsewhere_makes_it_readable(void)
{
	int fd = dp_opened(pt_rank + 1);

	pt_barrier();
	dp_target(fd, 0, 2 - pt_rank);
	for (int i = 0; i < 200; i++) {
		if (pt_rank == 0)
			dp_send_value(fd, (uint64_t)i);
		pt_true(readable_within(fd, 10000));
		dp_next_value(fd, (uint64_t)i);
		if (pt_rank == 1)
			dp_send_value(fd, (uint64_t)i);
	}
	pt_barrier();
}

static void a_plain_write_is_a_message(void)
{
	int a = dp_opened_to(1, 2), b = dp_opened(2), nid, dpid;
	char one[] = "one", two[] = "two", three[] = "three", *at;
	struct iovec parts[] = { { one, 3 }, { two, 3 }, { three, 5 } };
	uint64_t unsent;

	pt_is(write(a, "hello", 5), 5);
	pt_is(dp_read(b, &at), 5);
	pt_memory(at, "hello", 5);
	pt_is(dp_from(b, at, &nid, &dpid), 0);
	pt_true(nid == 0 && dpid == 1);
	pt_is(writev(a, parts, 3), 11);
	pt_is(dp_read(b, &at), 11);
	pt_memory(at, "onetwothree", 11);
	pt_is(dp_ctl(a, DP_UNSENT, &unsent), 0);
	pt_is(unsent, 0);
	dp_target(a, -1, 0);
	pt_is(write(a, "hello", 5), 5);
	pt_until(dp_ctl(a, DP_UNSENT, &unsent) == 0 && unsent == 1, 10);
	/* written and closed: it is sent all the same */
	dp_target(a, 0, 2);
	pt_is(write(a, "last", 4), 4);
	close(a);
	pt_is(dp_read(b, &at), 4);
}

static void a_plain_write_waits_for_its_target(void)
{
	int a = dp_opened_to(1, 2), b;

	pt_is(write(a, "12345678", 8), 8);
	b = dp_opened(2);
	pt_true(readable_within(b, 9000));
	char *at;
	pt_is(dp_read(b, &at), 8);
}

static void o_nonblock_is_of_all_copies(void)
{
	int fd = dp_opened_to(1, 1), copy = dup(fd);
	char *at;

	pt_is(fcntl(copy, F_SETFL, O_NONBLOCK), 0);
	dp_fails(dp_read(fd, &at), EAGAIN);
	dp_target(fd, 0, 99);
	dp_fails(dp_write(fd, "x", 1), EAGAIN);
	pt_is(fcntl(fd, F_SETFL, 0), 0);
	dp_target(fd, 0, 1);
	dp_send_value(copy, 1);
	dp_next_value(copy, 1);
}

static void on_alarm(int signal)
{
	(void)signal;
}

static void a_signal_ends_a_wait(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval soon = { { 0, 100000 }, { 0, 100000 } }, never = { { 0, 0 }, { 0, 0 } };
	int fd = dp_opened(1);
	char *at;

	pt_is(sigaction(SIGALRM, &action, NULL), 0);
	pt_is(setitimer(ITIMER_REAL, &soon, NULL), 0);
	dp_fails(dp_read(fd, &at), EINTR);
	pt_is(setitimer(ITIMER_REAL, &never, NULL), 0);
}

static const struct pt_test tests[] = {
	PT_CASE(poll_tells_of_messages, 1),      PT_CASE(plain_read_gets_a_message_each, 1),
	PT_CASE(poll_works_after_spinning, 1),   PT_CASE(the_program_says_who_watches, 1),
	PT_CASE(epoll_tells_of_messages, 1),     PT_CASE(a_process_elsewhere_makes_it_readable, 2),
	PT_CASE(a_plain_write_is_a_message, 1),  PT_CASE(a_plain_write_waits_for_its_target, 1),
	PT_CASE(o_nonblock_is_of_all_copies, 1), PT_CASE(a_signal_ends_a_wait, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
