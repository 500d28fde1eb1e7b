/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The claim of a rank's name: one process has it, and a socket in its way is no such process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/rt_backend.h"
#include "runtime/rt_claim.h"

static char name[64];
static struct sockaddr_un address;
static socklen_t len = sizeof(address);

/* Leave a socket that has the name and does not listen. */
static int bind_name(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct rt_claim claimed;

	len = sizeof(address);
	assert_int_equal(rt_claim(name, &claimed), 0);
	assert_int_equal(getsockname(claimed.fd, (struct sockaddr *)&address, &len), 0);
	rt_unclaim(&claimed);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	return fd;
}

static void one_process_has_the_name(void **state)
{
	struct rt_claim first, other;

	(void)state;
	assert_int_equal(rt_claim(name, &first), 0);
	for (int i = 0; i < 2 * SOMAXCONN + 100; i++) /* more than a queue holds */
		assert_int_equal(rt_claim(name, &other), RT_NOT_A_RANK);
	assert_int_equal(other.fd, -1);
	rt_unclaim(&first);
	assert_int_equal(rt_claim(name, &other), 0);
	rt_unclaim(&other);
}

static void *listen_later(void *fd)
{
	poll(NULL, 0, 50);
	listen(*(int *)fd, 5);
	return NULL;
}

static void a_holder_may_not_listen_yet(void **state)
{
	struct rt_claim claimed;
	int fd = bind_name();
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, listen_later, &fd), 0);
	assert_int_equal(rt_claim(name, &claimed), RT_NOT_A_RANK);
	pthread_join(thread, NULL);
	close(fd);
}

static void a_full_queue_is_an_error(void **state)
{
	int fd = bind_name(), filler = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct rt_claim claimed;

	(void)state;
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(connect(filler, (struct sockaddr *)&address, len), 0);
	assert_int_equal(rt_claim(name, &claimed), -EAGAIN);
	close(filler);
	close(fd);
}

/* A holder that has used up its files cannot accept, and does when it can again. */
static void a_holder_without_files_answers(void **state)
{
	int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct rlimit before, none;
	struct rt_claim first, other;

	(void)state;
	len = sizeof(address);
	assert_int_equal(rt_claim(name, &first), 0);
	assert_int_equal(getsockname(first.fd, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect(caller, (struct sockaddr *)&address, len), 0);
	assert_int_equal(rt_claim(name, &other), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (int i = 0; i < SOMAXCONN + 100; i++)
		assert_int_equal(rt_claim(name, &other), RT_NOT_A_RANK);
	rt_unclaim(&first);
	assert_int_equal(rt_claim(name, &other), 0);
	rt_unclaim(&other);
	close(caller);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_process_has_the_name),
		cmocka_unit_test(a_holder_without_files_answers),
		cmocka_unit_test(a_holder_may_not_listen_yet),
		cmocka_unit_test(a_full_queue_is_an_error),
	};

	snprintf(name, sizeof(name), "test %d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
