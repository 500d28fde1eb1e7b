/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Room that is reserved in a file (base/shared.h) while signals come.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/shared.h"

#define BYTES (32ull << 20)

static volatile sig_atomic_t came;

static void count(int sig)
{
	(void)sig;
	came++;
}

/* File systems in memory give up what they are at when one comes. */
static void signals_do_not_take_the_room(void **state)
{
	const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { 0 };
	char path[] = "/dev/shm/postern-test-XXXXXX";
	struct statvfs room;
	struct stat st;
	int fd, err = 0;

	(void)state;
	if (statvfs("/dev/shm", &room) < 0 || room.f_bavail * room.f_frsize < 2 * BYTES)
		skip();
	fd = mkstemp(path);
	if (fd < 0)
		skip();
	unlink(path);
	assert_int_equal(ftruncate(fd, (off_t)BYTES), 0);
	assert_true(base_shared_bounded(fd));
	signal(SIGALRM, count);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 1000 && came < 20 && !err; i++) {
		err = ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)BYTES) < 0;
		if (!err)
			err = base_shared_reserve(fd, 0, BYTES);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	assert_int_equal(err, 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 >= BYTES);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(signals_do_not_take_the_room) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
