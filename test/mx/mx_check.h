/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Common parts of the tests of MX: two processes, each with an endpoint, that run the same cases in
 * step and report them as TAP. The peer is a child that is forked before anything else; under
 * mpiexec it is rank 1. A check that fails says where, and ends both.
 */
#ifndef MX_CHECK_H
#define MX_CHECK_H

#include <mx_extensions.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

extern int mxc_rank;         /* 0 or 1 */
extern mx_endpoint_t mxc_ep; /* this process's endpoint */
extern mx_endpoint_addr_t mxc_peer, mxc_self;
extern uint64_t mxc_nic; /* of both */
extern pid_t mxc_child;

enum { MXC_KEY = 0x1234, MXC_SECONDS = 60 };

/* Starts the peer and opens endpoints 0 and 1, connected. argv[1]: a part of the names of the cases
 * to run. */
void mxc_start(int argc, char **argv);
/* Ends both; the exit code of main. */
int mxc_end(void);
/* One process, which opens its own endpoints. */
void mxc_start_alone(int argc, char **argv);

struct mxc_case {
	const char *name;
	void (*run)(void);
};
void mxc_run(const struct mxc_case *cases, size_t count);
#define MXC_RUN(cases) mxc_run(cases, sizeof(cases) / sizeof((cases)[0]))
#define MXC_CASE(fn)                                                                               \
	{                                                                                          \
#fn, fn                                                                            \
	}

/* Both processes come here. They exchange a word outside of MX. */
void mxc_barrier(void);

void mxc_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));
#define mxc_true(cond) ((cond) ? (void)0 : mxc_fail(__FILE__, __LINE__, "expected: %s", #cond))
#define mxc_is(a, b)   mxc_equal((uint64_t)(a), (uint64_t)(b), #a, #b, __FILE__, __LINE__)
#define mxc_ok(call)   mxc_is(call, MX_SUCCESS)
void mxc_equal(uint64_t a, uint64_t b, const char *ta, const char *tb, const char *file, int line);

double mxc_now(void); /* seconds */
/* Waits until `cond`, with progress of `ep`. */
#define mxc_until(ep, cond)                                                                        \
	do {                                                                                       \
		double mxc_end_ = mxc_now() + MXC_SECONDS;                                         \
		while (!(cond)) {                                                                  \
			mx_progress(ep);                                                           \
			if (mxc_now() > mxc_end_)                                                  \
				mxc_fail(__FILE__, __LINE__, "not within time: %s", #cond);        \
		}                                                                                  \
	} while (0)

void mxc_fill(void *p, size_t length, unsigned int seed);
void mxc_holds_at(const void *p, size_t length, unsigned int seed, const char *file, int line);
#define mxc_holds(p, length, seed) mxc_holds_at(p, length, seed, __FILE__, __LINE__)

/* One segment. */
mx_request_t mxc_isend(const void *p, size_t length, mx_endpoint_addr_t to, uint64_t match);
mx_request_t mxc_issend(const void *p, size_t length, mx_endpoint_addr_t to, uint64_t match);
mx_request_t mxc_irecv(void *p, size_t length, uint64_t match, uint64_t mask);
mx_status_t mxc_wait_at(mx_request_t request, const char *file, int line);
#define mxc_wait(request) mxc_wait_at(request, __FILE__, __LINE__)
bool mxc_test(mx_request_t *request, mx_status_t *status);

#endif
