/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The harness of the tests of MX: see mx_check.h.
 */
#include "mx_check.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int mxc_rank;
mx_endpoint_t mxc_ep;
mx_endpoint_addr_t mxc_peer, mxc_self;
uint64_t mxc_nic;
pid_t mxc_child;

static const char *mxc_only; /* a part of the names of the cases to run; NULL: all */

static int sock = -1;
static const char *running = "the start";

double mxc_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void mxc_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("not ok - %s (process %d)\n# %s:%d: ", running, mxc_rank, file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	if (mxc_child > 0)
		kill(mxc_child, SIGKILL);
	_exit(1);
}

void mxc_equal(uint64_t a, uint64_t b, const char *ta, const char *tb, const char *file, int line)
{
	if (a != b)
		mxc_fail(file, line, "%s is %llu, expected %s = %llu", ta, (unsigned long long)a,
			 tb, (unsigned long long)b);
}

void mxc_barrier(void)
{
	char c = 1;

	if (sock < 0)
		return;
	if (write(sock, &c, 1) != 1 || read(sock, &c, 1) != 1)
		mxc_fail(__FILE__, __LINE__, "the other process is gone");
}

/* Tests side by side on a host must not see each other's ids. */
static void choose_pids(void)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", 20000 + (int)(getpid() % 100) * 64);
	setenv("PTL_MX_PID", text, 0);
}

static void open_endpoint(void)
{
	mx_set_error_handler(MX_ERRORS_RETURN);
	mxc_ok(mx_init());
	mxc_ok(mx_open_endpoint(0, (uint32_t)mxc_rank, MXC_KEY, NULL, 0, &mxc_ep));
	mxc_ok(mx_get_endpoint_addr(mxc_ep, &mxc_self));
	mxc_ok(mx_decompose_endpoint_addr(mxc_self, &mxc_nic, NULL));
}

void mxc_start_alone(int argc, char **argv)
{
	mxc_only = argc > 1 ? argv[1] : NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	choose_pids();
	mx_set_error_handler(MX_ERRORS_RETURN);
}

void mxc_start(int argc, char **argv)
{
	int pair[2];

	mxc_only = argc > 1 ? argv[1] : NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	choose_pids();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		mxc_fail(__FILE__, __LINE__, "socketpair: %s", strerror(errno));
	mxc_child = fork();
	mxc_rank = mxc_child == 0;
	if (!mxc_child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	sock = pair[mxc_rank];
	close(pair[!mxc_rank]);
	open_endpoint();
	mxc_barrier();
	mxc_ok(mx_connect(mxc_ep, mxc_nic, !mxc_rank, MXC_KEY, MX_INFINITE, &mxc_peer));
	mxc_barrier();
}

int mxc_end(void)
{
	int status = 0;

	running = "the end";
	mxc_barrier();
	mxc_ok(mx_close_endpoint(mxc_ep));
	mxc_ok(mx_finalize());
	if (mxc_rank)
		_exit(0);
	if (mxc_child > 0 && (waitpid(mxc_child, &status, 0) != mxc_child || status))
		mxc_fail(__FILE__, __LINE__, "the other process ended with %#x",
			 (unsigned int)status);
	return 0;
}

void mxc_run(const struct mxc_case *cases, size_t count)
{
	if (!mxc_rank)
		printf("1..%zu\n", count);
	for (size_t i = 0; i < count; i++) {
		double start = mxc_now();

		running = cases[i].name;
		if (!mxc_only || strstr(running, mxc_only))
			cases[i].run();
		mxc_barrier();
		if (!mxc_rank)
			printf("ok %zu - %s\n# %.2f s\n", i + 1, running, mxc_now() - start);
	}
}

/* ---- memory ---------------------------------------------------------------------------------- */

static unsigned char pattern(size_t i, unsigned int seed)
{
	return (unsigned char)((i * 131 + (i >> 8) * 17 + seed * 29) & 0xff);
}

void mxc_fill(void *p, size_t length, unsigned int seed)
{
	unsigned char *to = p;

	for (size_t i = 0; i < length; i++)
		to[i] = pattern(i, seed);
}

void mxc_holds_at(const void *p, size_t length, unsigned int seed, const char *file, int line)
{
	const unsigned char *from = p;

	for (size_t i = 0; i < length; i++)
		if (from[i] != pattern(i, seed))
			mxc_fail(file, line, "byte %zu of %zu is %#x, expected %#x", i, length,
				 from[i], pattern(i, seed));
}

/* ---- requests -------------------------------------------------------------------------------- */

mx_request_t mxc_isend(const void *p, size_t length, mx_endpoint_addr_t to, uint64_t match)
{
	mx_segment_t s = { (void *)(uintptr_t)p, (uint32_t)length };
	mx_request_t r;

	mxc_ok(mx_isend(mxc_ep, &s, 1, to, match, (void *)(uintptr_t)match, &r));
	return r;
}

mx_request_t mxc_issend(const void *p, size_t length, mx_endpoint_addr_t to, uint64_t match)
{
	mx_segment_t s = { (void *)(uintptr_t)p, (uint32_t)length };
	mx_request_t r;

	mxc_ok(mx_issend(mxc_ep, &s, 1, to, match, (void *)(uintptr_t)match, &r));
	return r;
}

mx_request_t mxc_irecv(void *p, size_t length, uint64_t match, uint64_t mask)
{
	mx_segment_t s = { p, (uint32_t)length };
	mx_request_t r;

	mxc_ok(mx_irecv(mxc_ep, &s, 1, match, mask, (void *)(uintptr_t)match, &r));
	return r;
}

mx_status_t mxc_wait_at(mx_request_t request, const char *file, int line)
{
	mx_status_t st = { 0 };
	uint32_t result = 0;

	mxc_equal(mx_wait(mxc_ep, &request, MXC_SECONDS * 1000, &st, &result), MX_SUCCESS,
		  "mx_wait", "MX_SUCCESS", file, line);
	if (!result)
		mxc_fail(file, line, "a request did not end within %d s", MXC_SECONDS);
	mxc_equal((uintptr_t)request, 0, "the request after mx_wait", "NULL", file, line);
	return st;
}

bool mxc_test(mx_request_t *request, mx_status_t *status)
{
	uint32_t result = 0;

	mxc_ok(mx_test(mxc_ep, request, status, &result));
	return result;
}
