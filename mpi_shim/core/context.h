/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Context numbers, and how the members of a new communicator agree on one. The match bits have
 * 13 bits for them. A communicator uses an even number for the user's messages and the next odd
 * one for collectives. So there are 4096 communicators at a time, including the system's and
 * one that is never used. All members of a communicator use the same number.
 *
 * Each process has a mask of free numbers. The agreement combines the masks of all members by
 * "and" and takes the lowest bit that is left. Threads may make communicators on different
 * parents at the same time. They must not agree on the same number. They must not wait for each
 * other either: one process may have begun the first agreement, and another one the second. So:
 *
 * - In the first round a process offers the numbers of one half of its mask, the eager half.
 *   It offers them to one agreement at a time; any other agreement gets an empty offer, and
 *   its round comes out empty. Only this round may wait for a member that has not called yet.
 *   Most agreements take one round.
 * - An agreement whose first round came out empty draws a ticket: the greatest of its
 *   members' logical clocks. Each process uses a clock value only once, and adds its rank and
 *   bits of its job, so no two tickets are equal. In each further round a process offers the
 *   other half of its mask, and the eager half too if no agreement holds it. It does so only
 *   if the ticket is the lowest in this process and no other agreement is in such a round;
 *   else it offers nothing. All members have called by then, so these rounds end. The
 *   agreement with the lowest ticket of all
 *   gets the masks of all its members in the end. A later agreement has a higher ticket
 *   wherever the two meet, so none waits for ever.
 *
 * A member that cannot use a number, for example because it is out of memory, says so in the
 * first round. Then no member gets a number.
 *
 * When all members made an offer and no number is left in common, all members get
 * MPI_ERR_OTHER.
 *
 * A process frees a context when the last reference to the communicator is released there,
 * which is after all operations on it. A message that was never received (an error of the
 * program) could still match a receive on a reused context. So freed numbers rest until the
 * process has run out of others. An agreement prefers rested numbers, if the members have any
 * in common.
 *
 * All functions need the global lock, and none blocks: the caller does the reduction.
 */
#ifndef MPI_SHIM_CONTEXT_H
#define MPI_SHIM_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#define MPI_CONTEXT_SLOTS 4096u
#define MPI_CONTEXT_WORLD 0u
#define MPI_CONTEXT_SELF  2u
#define MPI_CONTEXT_NONE  8190u /* the last number, never used */

enum {
	MPI_CONTEXT_WORDS = MPI_CONTEXT_SLOTS / 64,
	MPI_CONTEXT_EAGER_WORDS = 16, /* the eager "half": 1024 numbers */
	MPI_AGREE_WORDS = 2 * MPI_CONTEXT_WORDS + 1
};

void mpi_contexts_init(void);
void mpi_context_release(uint32_t context);
/* Returns how many communicator numbers are free in this process. */
int mpi_contexts_free(void);

/*
 * One agreement, as steps, so that the caller may block in the reductions or not:
 *
 *   mpi_agree_begin(&a, ...);
 *   do {
 *           mpi_agree_offer(&a);
 *           reduce a.word[0 .. a.n - 1] over all members, by maximum (as int64_t) if a.max, else
 *           by "and"
 *   } while (!mpi_agree_judge(&a));
 *   a.error, a.context[0 .. want - 1]
 *
 * When the reduction fails, mpi_agree_abandon ends the agreement instead.
 */
struct mpi_agree {
	int want;
	int stage;
	bool has_eager, has_late;
	uint64_t ticket;
	struct mpi_agree *next; /* list of the agreements that have a ticket */
	bool max;
	int n;
	uint64_t word[MPI_AGREE_WORDS];
	int error;
	uint32_t context[2];
};

/* `err`: the error that this member has met, or MPI_SUCCESS. After an error no member gets a
 * number; members without an error of their own get MPI_ERR_OTHER. `want`: 1 or 2 numbers. */
void mpi_agree_begin(struct mpi_agree *a, int err, int want);
void mpi_agree_offer(struct mpi_agree *a);
bool mpi_agree_judge(struct mpi_agree *a);
void mpi_agree_abandon(struct mpi_agree *a);

#endif
