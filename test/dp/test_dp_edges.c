/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Edges between endpoints of one and of several processes: many targets, many senders, targets
 * that come late, move, or die. Threads that share an endpoint.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "dp_test.h"

static void one_descriptor_has_ten_targets(void)
{
	enum { TARGETS = 10, ROUNDS = 200 };
	int from = dp_opened(100), to[TARGETS];

	for (int i = 0; i < TARGETS; i++)
		to[i] = dp_opened(i + 1);
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < TARGETS; i++) {
			dp_target(from, 0, i + 1);
			dp_send_value(from, (uint64_t)(round * TARGETS + i));
		}
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < TARGETS; i++)
			dp_next_value(to[i], (uint64_t)(round * TARGETS + i));
}

static void ten_senders_are_in_order_each(void)
{
	enum { EACH = 300 };
	int fd = dp_opened(pt_rank + 1), dpid;
	uint64_t next[PT_MAX_PROCS] = { 0 }, value;
	char *at;

	pt_barrier();
	if (pt_rank > 0) {
		dp_target(fd, 0, 1);
		for (uint64_t i = 0; i < EACH; i++)
			dp_send_value(fd, i);
	} else {
		for (int i = 0; i < EACH * (pt_size - 1); i++) {
			pt_is(dp_read(fd, &at), 8);
			memcpy(&value, at, sizeof(value));
			pt_is(dp_from(fd, at, NULL, &dpid), 0);
			pt_is(value, next[dpid - 2]++);
			pt_is(dp_fsync(fd, 1), 1);
		}
	}
	pt_barrier();
}

static void the_first_write_waits_for_its_target(void)
{
	int fd = -1;

	if (pt_rank == 0) {
		fd = dp_opened_to(1, 2);
		pt_barrier();
		dp_send_value(fd, 1); /* it is not open yet, perhaps */
	} else {
		pt_barrier();
		fd = dp_opened(2);
		dp_next_value(fd, 1);
	}
	pt_barrier();
}

/* The second process closes the endpoint, the third opens it: messages go there after a while,
 * although the sender keeps its target. */
static void a_target_moves(void)
{
	int fd = -1;
	char *at;

	if (pt_rank == 0)
		fd = dp_opened(1);
	if (pt_rank == 1)
		fd = dp_opened(2);
	pt_barrier();
	if (pt_rank == 0) {
		dp_target(fd, 0, 2);
		dp_send_value(fd, 0);
	}
	if (pt_rank == 1) {
		dp_next_value(fd, 0);
		dp_close(fd);
	}
	pt_barrier();
	if (pt_rank == 2)
		fd = dp_opened(2);
	pt_barrier();
	if (pt_rank == 0) {
		for (uint64_t i = 1; !*pt_word(0); i++) {
			dp_send_value(fd, i);
			pt_pause();
		}
	}
	if (pt_rank == 2) {
		pt_is(dp_read(fd, &at), 8);
		*pt_word(0) = 1;
	}
	pt_barrier();
}

static void a_target_opens_again_in_its_process(void)
{
	int a = dp_opened_to(1, 2), b = dp_opened(2);
	uint64_t lost;
	char *at;

	for (uint64_t i = 0; i < 5; i++) {
		dp_send_value(a, i);
		dp_next_value(b, i);
		if (i % 2)
			dp_close(b);
		else
			close(b);
		b = dp_opened(2);
		pt_is(fcntl(b, F_SETFL, O_NONBLOCK), 0);
		pt_until((dp_send_value(a, 99), dp_read(b, &at) == 8), 10);
		while (dp_read(b, &at) == 8)
			;
		/* nobody has lost what was for the one before */
		pt_is(dp_ctl(b, DP_LOST, &lost), 0);
		pt_is(lost, 0);
		dp_fsync(b, 1000000);
		pt_is(fcntl(b, F_SETFL, 0), 0);
	}
}

static void a_sender_opens_again(void)
{
	int b = dp_opened(2);
	uint64_t lost;

	for (int round = 0; round < 10; round++) {
		int a = dp_opened_to(1, 2);

		for (uint64_t i = 0; i < 7; i++)
			dp_send_value(a, i);
		dp_close(a);
	}
	for (int round = 0; round < 10; round++)
		for (uint64_t i = 0; i < 7; i++)
			dp_next_value(b, i);
	pt_is(dp_ctl(b, DP_LOST, &lost), 0);
	pt_is(lost, 0);
}

static void a_killed_peer_is_survived(void)
{
	int fd = dp_opened(pt_rank + 1), flow = 1;

	pt_expect_killed(1);
	pt_is(dp_ctl(fd, DP_FLOW, &flow), 0);
	pt_barrier();
	if (pt_rank == 1) {
		dp_next_value(fd, 1);
		*pt_word(0) = 1;
		for (;;)
			pause();
	}
	if (pt_rank == 0) {
		dp_target(fd, 0, 2);
		dp_send_value(fd, 1);
		pt_until(*pt_word(0), 10);
		kill(pt_os_pid(1), SIGKILL);
		for (int i = 0; i < 20000; i++)
			dp_send_value(fd, 2);
		/* and to another */
		dp_target(fd, 0, 3);
		dp_send_value(fd, 3);
		pt_until(*pt_word(1), 10);
	} else {
		dp_next_value(fd, 3);
		*pt_word(1) = 1;
	}
}

/* The second process writes to both others and is killed at some moment; they go on. */
static void others_go_on_when_one_is_killed(void)
{
	int fd = dp_opened(pt_rank + 1), on = 1;
	unsigned int us = (unsigned int)(pt_now() * 1e6) % 20000;

	pt_expect_killed(1);
	pt_is(dp_ctl(fd, DP_FLOW, &on), 0);
	pt_barrier();
	if (pt_rank == 1) {
		for (uint64_t i = 0;; i++) {
			dp_target(fd, 0, i % 2 ? 1 : 3);
			dp_send_value(fd, UINT64_MAX);
		}
	}
	dp_target(fd, 0, pt_rank ? 1 : 3);
	for (uint64_t i = 0; i < 3000; i++) {
		uint64_t value;
		char *at;

		if (pt_rank == 0 && i == 20) {
			usleep(us);
			kill(pt_os_pid(1), SIGKILL);
		}
		if (pt_rank == 0)
			dp_send_value(fd, i);
		do {
			pt_is(dp_read(fd, &at), 8);
			memcpy(&value, at, sizeof(value));
			pt_is(dp_fsync(fd, 1), 1);
		} while (value == UINT64_MAX);
		pt_is(value, i);
		if (pt_rank == 2)
			dp_send_value(fd, i);
	}
}

/* Send to the stopped process until the library takes no more, close, and talk to the third. */
static void close_with_messages_under_way(void)
{
	static char bytes[DP_MAX_MESSAGE];
	int fd = dp_opened_to(1, 2);

	dp_send_value(fd, 1);
	pt_until(*pt_word(0), 10);
	kill(pt_os_pid(1), SIGSTOP);
	pt_is(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 1000 && dp_write(fd, bytes, sizeof(bytes)) > 0; i++)
		continue;
	dp_close(fd);
	fd = dp_opened_to(1, 3);
	dp_send_value(fd, 3);
	*pt_word(1) = 1;
	pt_until(*pt_word(2), 60); /* while rank 1 is stopped */
	kill(pt_os_pid(1), SIGCONT);
}

static void a_close_waits_for_nobody(void)
{
	int fd = -1;

	if (pt_rank > 0)
		fd = dp_opened(pt_rank + 1);
	pt_barrier();
	if (pt_rank == 0) {
		close_with_messages_under_way();
	} else if (pt_rank == 1) {
		dp_next_value(fd, 1);
		*pt_word(0) = 1;
	} else {
		pt_until(*pt_word(1), 60);
		dp_next_value(fd, 3);
		*pt_word(2) = 1;
	}
	pt_barrier();
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { MIXED = 100000 };

static struct {
	int fd;
	uint64_t rounds;
	_Atomic uint64_t left;
	_Atomic uint8_t seen[MIXED];
	_Atomic int code;
	_Atomic bool inside;
} shared;

static void see(const void *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	pt_true(value < MIXED);
	pt_is(atomic_fetch_add(&shared.seen[value], 1), 0);
	atomic_fetch_sub(&shared.left, 1);
}

static void *read_plainly(void *unused)
{
	uint64_t value;

	(void)unused;
	while (atomic_load(&shared.left)) {
		if (read(shared.fd, &value, sizeof(value)) == sizeof(value))
			see(&value);
		else
			sched_yield();
	}
	return NULL;
}

static void *read_in_pool(void *unused)
{
	char *at;

	(void)unused;
	while (atomic_load(&shared.left)) {
		if (dp_read(shared.fd, &at) == 8) {
			see(at);
			pt_is(dp_fsync(shared.fd, 1), 1);
		} else {
			sched_yield();
		}
	}
	return NULL;
}

static void each_message_is_had_once(void)
{
	int from = dp_opened_to(2, 1), on = 1;
	pthread_t a, b;

	shared.fd = dp_opened(1);
	shared.rounds = pt_rounds(MIXED);
	atomic_store(&shared.left, shared.rounds);
	pt_is(dp_ctl(from, DP_FLOW, &on), 0);
	pt_is(dp_ctl(shared.fd, DP_FLOW, &on), 0);
	pt_is(fcntl(shared.fd, F_SETFL, O_NONBLOCK), 0);
	pt_is(pthread_create(&a, NULL, read_plainly, NULL), 0);
	pt_is(pthread_create(&b, NULL, read_in_pool, NULL), 0);
	for (uint64_t i = 0; i < shared.rounds; i++)
		dp_send_value(from, i);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	for (uint64_t i = 0; i < shared.rounds; i++)
		pt_is(shared.seen[i], 1);
}

static void *wait_in_read(void *unused)
{
	char *at;

	(void)unused;
	atomic_store(&shared.inside, true);
	errno = 0;
	if (dp_read(shared.fd, &at) == -1)
		atomic_store(&shared.code, errno);
	return NULL;
}

static void a_reader_learns_of_the_close(void)
{
	for (int round = 0; round < 6; round++) {
		pthread_t thread;
		double asleep = pt_now() + (round % 3) * 0.02;

		shared.fd = dp_opened(1);
		shared.code = 0;
		shared.inside = false;
		pt_is(pthread_create(&thread, NULL, wait_in_read, NULL), 0);
		pt_until(shared.inside, 10);
		/* the thread may spin by then, or sleep */
		while (pt_now() < asleep)
			sched_yield();
		dp_close(shared.fd);
		pthread_join(thread, NULL);
		pt_is(shared.code, EBADF);
	}
}

static void *send_all(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < shared.rounds; i++)
		dp_send_value(shared.fd, i);
	return NULL;
}

/* Both processes send and receive through one descriptor each, by two threads. */
static void two_threads_share_a_descriptor(void)
{
	pthread_t thread;
	int on = 1;

	shared.fd = dp_opened(pt_rank + 1);
	shared.rounds = pt_rounds(20000);
	pt_is(dp_ctl(shared.fd, DP_FLOW, &on), 0);
	pt_barrier();
	dp_target(shared.fd, 0, 2 - pt_rank);
	pt_is(pthread_create(&thread, NULL, send_all, NULL), 0);
	for (uint64_t i = 0; i < shared.rounds; i++)
		dp_next_value(shared.fd, i);
	pthread_join(thread, NULL);
	pt_barrier();
}

/* Sleepers are woken by messages: in Portals at first, later in the kernel. */
static void a_sleeping_reader_is_woken(void)
{
	int fd = dp_opened(pt_rank + 1);

	pt_barrier();
	dp_target(fd, 0, 2 - pt_rank);
	for (int i = 0; i < 20; i++) {
		double later = pt_now() + (i % 4) * 0.005;

		if (pt_rank == 0) {
			while (pt_now() < later)
				sched_yield();
			dp_send_value(fd, (uint64_t)i);
			dp_next_value(fd, (uint64_t)i);
		} else {
			dp_next_value(fd, (uint64_t)i);
			dp_send_value(fd, (uint64_t)i);
		}
	}
	pt_barrier();
}

static void *take_one(void *unused)
{
	char *at;

	(void)unused;
	pt_is(dp_read(shared.fd, &at), 8);
	return NULL;
}

/* A thread that spins does not leave another one asleep in the kernel. */
static void a_second_reader_leaves_the_first_awake(void)
{
	shared.fd = dp_opened_to(1, 1);
	for (int i = 0; i < 10; i++) {
		pthread_t first, second;

		pt_is(pthread_create(&first, NULL, take_one, NULL), 0);
		usleep(20000);
		pt_is(pthread_create(&second, NULL, take_one, NULL), 0);
		usleep(1000);
		dp_send_value(shared.fd, 1);
		usleep(20000);
		dp_send_value(shared.fd, 2);
		pthread_join(first, NULL);
		pthread_join(second, NULL);
		pt_is(dp_fsync(shared.fd, 2), 2);
	}
}

static const struct pt_test tests[] = {
	PT_CASE(one_descriptor_has_ten_targets, 1),
	PT_CASE(ten_senders_are_in_order_each, 11),
	PT_CASE(the_first_write_waits_for_its_target, 2),
	PT_CASE(a_target_moves, 3),
	PT_CASE(a_target_opens_again_in_its_process, 1),
	PT_CASE(a_sender_opens_again, 1),
	PT_CASE(a_killed_peer_is_survived, 3),
	PT_CASE(others_go_on_when_one_is_killed, 3),
	PT_CASE(a_close_waits_for_nobody, 3),
	PT_CASE(each_message_is_had_once, 1),
	PT_CASE(a_reader_learns_of_the_close, 1),
	PT_CASE(two_threads_share_a_descriptor, 2),
	PT_CASE(a_sleeping_reader_is_woken, 2),
	PT_CASE(a_second_reader_leaves_the_first_awake, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
