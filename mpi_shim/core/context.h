/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Context numbers. The match bits have 13 bits for them; a communicator takes an even number,
 * for the user's messages, and the next one, for collectives: 4096 communicators at a time,
 * those of the system and one that is never used included. All members of a communicator use the
 * same number, so it is agreed on when one is made.
 *
 * How: each process has a mask of free numbers, the agreement ands them over all members and
 * takes the lowest bit that is left. Threads that make communicators on different parents at the
 * same time must not agree on the same number, and must not wait for each other: a process may
 * be in the first one here and in the second one there. So
 *
 *  - a process offers the numbers of one half of its mask, the eager half, in the first round,
 *    to one agreement at a time; any other offers nothing and its round comes out empty. This is
 *    the only round that may wait for a member that has not yet called, and one round is what an
 *    agreement takes as a rule.
 *  - An agreement whose first round came out empty draws a ticket: the greatest of its members'
 *    logical clocks, each of which its process uses once only, so that no two tickets are equal.
 *    Then it offers in each further round the other half of the mask (and the eager half if
 *    nobody has it) if its ticket is the lowest in this process and nobody else is in such a
 *    round, else nothing. All members of it are there, so these rounds end, and the agreement
 *    with the lowest ticket of all has the masks of all its members in the end; a later one has
 *    a higher ticket wherever they meet, so none waits for ever.
 *
 * A member that has no use for a number, as it has no memory, say, tells the others so in the
 * first round, and they are not given one, either.
 *
 * When all members made an offer and no number is left of it, there is none: MPI_ERR_OTHER on
 * all.
 *
 * A context is free again in a process when the communicator's last reference is gone there, so
 * after all operations on it. A message nobody has received (a program's error) could still wait
 * for a receive on it; so freed numbers rest until the process has run out of others, and an
 * agreement takes rested ones if the members have any in common.
 */
#ifndef MPI_SHIM_CONTEXT_H
#define MPI_SHIM_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#define MPI_CONTEXT_SLOTS 4096u
#define MPI_CONTEXT_WORLD 0u
#define MPI_CONTEXT_SELF  2u
#define MPI_CONTEXT_NONE  8190u /* the last one: never used */

enum {
	MPI_CONTEXT_WORDS = MPI_CONTEXT_SLOTS / 64,
	MPI_CONTEXT_EAGER_WORDS = 16, /* the eager "half": 1024 numbers */
	MPI_AGREE_WORDS = 2 * MPI_CONTEXT_WORDS + 1
};

void mpi_contexts_init(void);
void mpi_context_release(uint32_t context);
/* Numbers for communicators that are free in this process. */
int mpi_contexts_free(void);

/*
 * One agreement, as steps, so that it can be waited for or not:
 *
 *   mpi_agree_begin(&a, ...);
 *   do {
 *           mpi_agree_offer(&a);
 *           reduce a.word[0 .. a.n - 1] over all members, by maximum (as int64_t) if a.max, else
 *           by "and"
 *   } while (!mpi_agree_judge(&a));
 *   a.error, a.context[0 .. want - 1]
 *
 * When the reduction fails, mpi_agree_abandon ends it instead.
 */
struct mpi_agree {
	int want;
	int stage;
	bool has_eager, has_late;
	uint64_t ticket;
	struct mpi_agree *next; /* those that have a ticket */
	bool max;
	int n;
	uint64_t word[MPI_AGREE_WORDS];
	int error;
	uint32_t context[2];
};

/* `err`: what has gone wrong here, upon which there are no numbers for any member: those that do
 * not know have MPI_ERR_OTHER. */
void mpi_agree_begin(struct mpi_agree *a, int err, int want);
void mpi_agree_offer(struct mpi_agree *a);
bool mpi_agree_judge(struct mpi_agree *a);
void mpi_agree_abandon(struct mpi_agree *a);

#endif
