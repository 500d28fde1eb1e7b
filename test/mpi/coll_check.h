/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * For tests of MPI collectives that run as a job: cases in TAP, seeded random numbers, datatypes
 * of many shapes, and buffers of which every byte is looked at. Plain MPI: these tests compile
 * and must pass with any implementation.
 *
 * All ranks draw the same random numbers, so each knows all parameters of all ranks and works
 * out what it must receive without a message.
 */
#ifndef TEST_MPI_COLL_CHECK_H
#define TEST_MPI_COLL_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cases ----------------------------------------------------------------------------------- */

extern int tap_rank, tap_size; /* in MPI_COMM_WORLD */

/*
 * Without what MPICH 4.0 gets wrong, to see that it passes the rest: datatypes that differ
 * between ranks (its ring for Allgatherv splits by extents); Reduce in place with another root
 * than 0, and Reduce_scatter_block of operations that do not commute (both crash).
 */
extern bool tap_tame;

/* Arguments: [SEED [ROUNDS [tame]]]. Calls MPI_Init, if that was not done. */
void tap_start(int argc, char **argv, int rounds);
/* For the cases that follow. */
void tap_rounds_set(int rounds);
/* Runs body(i) for i from 0 to rounds - 1; it returns what is wrong or NULL. One case. */
void tap_case(const char *name, const char *(*body)(int round));
/* Calls MPI_Finalize; for main to return. */
int tap_end(void);

/* A text for body to return. */
const char *tap_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- random numbers, the same on all ranks --------------------------------------------------- */

uint64_t mix(uint64_t x);
uint64_t draw(void);
/* 0 to n - 1 */
int draw_below(int n);
/* A length: mostly short, sometimes middling, seldom `most`. */
int draw_length(int most);

/* The number that rank or block `owner` has at place i, in the present round. */
uint32_t value_of(int owner, long i);

/* ---- communicators --------------------------------------------------------------------------- */

struct cm {
	MPI_Comm comm;
	const char *name;
	bool inter;
	int rank, n; /* local */
	int remote;  /* ranks to communicate with: of the remote group, or n */
	int here;    /* first owner number of the local group; of the remote one: */
	int there;
};

#define CMS 4
extern struct cm cms[CMS];
extern int cm_count;
void cms_make(void);
void cms_free(void);
/* One of the intracommunicators / any. */
struct cm *draw_intra(void);
struct cm *draw_cm(void);

/* For a collective with root: the root's side and rank, and what this rank passes. */
struct root {
	int side_first; /* owner number of the root's group: cm->here on its side */
	int rank;
	int argument;
	bool me;    /* this rank is the root */
	bool other; /* this rank is one the root communicates with */
};
struct root draw_root(const struct cm *c);

/* ---- datatypes of ints ----------------------------------------------------------------------- */

#define SHAPES    6
#define SHAPE_LCM 12 /* a multiple of every k */

struct shape {
	MPI_Datatype type;
	int k;      /* ints in an element */
	int off[6]; /* where, in ints, in type map order */
	int extent; /* in ints */
};
extern struct shape shapes[SHAPES];
void shapes_make(void);
void shapes_free(void);

/* ---- buffers --------------------------------------------------------------------------------- */

struct buf {
	int *mem, *want; /* what is there, and what should be */
	size_t n;
	int *base; /* what MPI is given */
};

/* Room for elements `first` to `last` - 1 and margins, filled with a pattern that depends on the
 * place. */
struct buf buf_new(const struct shape *s, int first, int last);
/* Numbers first_i... of `owner` into `count` elements from `at` on: in the buffer, or as what is
 * wanted. */
void buf_fill(struct buf *b, const struct shape *s, int at, int count, int owner, long first_i);
void buf_want(struct buf *b, const struct shape *s, int at, int count, int owner, long first_i);
/* After all fills: what is there is what is wanted, but for the buf_want calls that follow. */
void buf_keep(struct buf *b);
/* NULL, or what is wrong; frees. */
const char *buf_end(struct buf *b, const char *name);

#endif
