/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * For tests of point-to-point messages that run as a job, beside coll_check.h: checks that end a
 * case, the shim's counters, time, memory.
 */
#ifndef TEST_MPI_P2P_CHECK_H
#define TEST_MPI_P2P_CHECK_H

#include "test/mpi/coll_check.h"

/* In a body: ends the round with what is wrong. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return tap_wrong("%s:%d: not so: %s", __func__, __LINE__, #condition);     \
	} while (0)

/* For two integers: shows them. */
#define CHECK_INT(got, wanted)                                                                     \
	do {                                                                                       \
		long long got_ = (got), wanted_ = (wanted);                                        \
		if (got_ != wanted_)                                                               \
			return tap_wrong("%s:%d: %s is %lld, not %lld", __func__, __LINE__, #got,  \
					 got_, wanted_);                                           \
	} while (0)

/* A call that must end in this error class. */
#define CHECK_CLASS(call, wanted) CHECK_INT(class_of(call), wanted)

#define CHECK_OK(call) CHECK_INT(class_of(call), MPI_SUCCESS)

int class_of(int error);

/* Bytes of message `number`. */
void fill_bytes(void *at, size_t n, int number);
/* -1, or the first that is not as filled. */
long wrong_byte(const void *at, size_t n, int number);

/* In seconds. */
double time_now(void);

/* The contents of MPI_Status. */
int count_of(const MPI_Status *status);

/* A counter of this MPI's own ("sent_short"), a performance variable of MPI_T; -1: this MPI has
 * none of the name. */
long long counter(const char *name);

/* Of this process, in KiB: all its memory, and what is its own and no file's. */
long resident_kib(void);
long allocated_kib(void);

/* The memory that a sanitizer may keep of its own, in KiB. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER_KIB (256 * 1024)
#else
#define SANITIZER_KIB 0
#endif

#endif
