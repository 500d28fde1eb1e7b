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
	int claimed = -1;

	len = sizeof(address);
	assert_int_equal(rt_claim(name, &claimed), 0);
	assert_int_equal(getsockname(claimed, (struct sockaddr *)&address, &len), 0);
	rt_unclaim(&claimed);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	return fd;
}

static void one_process_has_the_name(void **state)
{
	int first = -1, other = -1;

	(void)state;
	assert_int_equal(rt_claim(name, &first), 0);
	for (int i = 0; i < 100; i++) /* more than a short queue holds */
		assert_int_equal(rt_claim(name, &other), RT_NOT_A_RANK);
	assert_int_equal(other, -1);
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
	int fd = bind_name(), claimed = -1;
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
	int claimed = -1;

	(void)state;
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(connect(filler, (struct sockaddr *)&address, len), 0);
	assert_int_equal(rt_claim(name, &claimed), -EAGAIN);
	close(filler);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_process_has_the_name),
		cmocka_unit_test(a_holder_may_not_listen_yet),
		cmocka_unit_test(a_full_queue_is_an_error),
	};

	snprintf(name, sizeof(name), "test %d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
