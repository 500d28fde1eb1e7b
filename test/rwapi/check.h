/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Helpers of the jobs that test RWAPI. A check that fails ends its process, and with it the job;
 * rank 0 says after each case, when all ranks have come so far, that it passed. Messages carry a
 * kind, so that a rank can wait for one and keep the others.
 */
#ifndef RWAPI_CHECK_H
#define RWAPI_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rwapi.h>

enum { DEADLINE_S = 100 };

/* The lowest 8 bits of word[0] are the kind, the rest is the case's. */
enum kind { KIND_BARRIER = 1, KIND_NET, KIND_NOTICE, KIND_COUNT, KIND_DONE, KIND_GO };

#define check(holds)                                                                               \
	do {                                                                                       \
		if (!(holds))                                                                      \
			check_failed(__FILE__, __LINE__, #holds);                                  \
	} while (0)

__attribute__((noreturn)) void check_failed(const char *file, int line, const char *what);

extern int rank, size;

/* Init, and how many cases there will be. */
void begin(int cases);
/* All ranks have come so far: a case of this name has passed. */
void passed(const char *name);
/* Finalize with this result; returns main's exit code. */
int end(int expected);

uint64_t now_ns(void);
double seconds_since(uint64_t start_ns);
/* Reproducible numbers, a sequence for each seed. */
uint64_t next_random(uint64_t *seed);

void send_kind(int node, enum kind kind, uint32_t value, uint64_t word);
/* Wait for a message of this kind, from `node` or, with -1, anybody. Returns its sender. */
int expect_kind(int node, enum kind kind, uint32_t *value, uint64_t *word);
/* Is there one? Takes in what comes. */
bool has_kind(int node, enum kind kind);
void barrier(void);
/* Until the write is sent; its result. */
int until_sent(rwapi_sid_t sid);

void fill(unsigned char *at, size_t length, uint64_t seed);
/* The first byte that is not what fill() wrote; `length` if none. */
size_t first_wrong(const unsigned char *at, size_t length, uint64_t seed);

#endif
