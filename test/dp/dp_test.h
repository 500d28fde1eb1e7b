/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Shared by the tests of Directed Point: processes are those of the harness, outside a job, on
 * one node.
 */
#ifndef TEST_DP_TEST_H
#define TEST_DP_TEST_H

#include <dp.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "ptest.h"

/* expr returns -1 and errno is code */
#define dp_fails(expr, code)                                                                       \
	do {                                                                                       \
		pt_at(__FILE__, __LINE__, #expr);                                                  \
		errno = 0;                                                                         \
		long long got_ = (expr);                                                           \
		int errno_ = errno;                                                                \
		pt_truef(got_ == -1 && errno_ == (code), "line %d: %s is %lld, errno %d (%s)",     \
			 __LINE__, #expr, got_, errno_, strerror(errno_));                         \
	} while (0)

static inline int dp_opened(int dpid)
{
	int fd = dp_open(dpid);

	pt_truef(fd >= 0, "dp_open(%d): %s", dpid, strerror(errno));
	return fd;
}

/* An endpoint that writes to another one of node 0. */
static inline int dp_opened_to(int dpid, int to)
{
	int fd = dp_opened(dpid);

	dp_target(fd, 0, to);
	return fd;
}

static inline void dp_send_value(int fd, uint64_t value)
{
	int got = dp_write(fd, &value, sizeof(value));

	pt_truef(got == sizeof(value), "dp_write: %d, %s", got, strerror(errno));
}

/* The next message is this value. */
static inline void dp_next_value(int fd, uint64_t want)
{
	uint64_t value;
	char *at;

	pt_is(dp_read(fd, &at), sizeof(value));
	memcpy(&value, at, sizeof(value));
	pt_is(value, want);
	pt_is(dp_fsync(fd, 1), 1);
}

/* Is the descriptor readable now? */
static inline bool dp_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

#endif
