/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Context numbers and the agreement on them: see context.h.
 */
#include "mpi_shim/core/context.h"

#include <mpi.h>
#include <stddef.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/world.h"

enum { WORDS = MPI_CONTEXT_WORDS, EAGER = MPI_CONTEXT_EAGER_WORDS };
enum { RANK_BITS = 16, JOB_BITS = 16 }; /* bits of a ticket below the clock */
enum stage { FIRST, TICKET, LATE, DONE };

static struct {
	uint64_t free[WORDS];
	/* Those not used since the process last ran out of rested numbers; a subset of `free`. */
	uint64_t rested[WORDS];
	const struct mpi_agree *eager_holder;
	const struct mpi_agree *late_holder;
	struct mpi_agree *pending; /* agreements with a ticket */
	uint64_t clock;
	uint64_t job; /* bits of the job's id: ranks of two jobs may agree on a number */
} here;

static void take_context_slot(uint32_t slot)
{
	here.free[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	here.rested[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

void mpi_contexts_init(void)
{
	memset(&here, 0, sizeof(here));
	here.job = (mpi_world.jid ^ mpi_world.jid >> JOB_BITS) & ((1u << JOB_BITS) - 1);
	memset(here.free, 0xff, sizeof(here.free));
	memset(here.rested, 0xff, sizeof(here.rested));
	take_context_slot(MPI_CONTEXT_WORLD / 2);
	take_context_slot(MPI_CONTEXT_SELF / 2);
	take_context_slot(MPI_CONTEXT_NONE / 2);
}

void mpi_context_release(uint32_t context)
{
	uint32_t slot = context / 2;

	if (context > MPI_CONTEXT_SELF && context < MPI_CONTEXT_NONE)
		here.free[slot / 64] |= UINT64_C(1) << slot % 64;
}

int mpi_contexts_free(void)
{
	int n = 0;

	for (int i = 0; i < WORDS; i++)
		n += __builtin_popcountll(here.free[i]);
	return n;
}

/* ---- agreement ------------------------------------------------------------------------------- */

/* word[]: rested numbers, then free ones, then one word of flags. WELL: this process can use a
 * number. OFFERED: it had numbers to offer. */
#define WELL    UINT64_C(1)
#define OFFERED (~WELL)

static void offer_numbers(struct mpi_agree *a, int words)
{
	a->max = false;
	a->n = 2 * words + 1;
	memset(a->word, 0, (size_t)a->n * sizeof(a->word[0]));
	a->word[2 * words] = a->error ? 0 : WELL;
}

/* Adds words [from, to) of the masks to an offer of `words` words per mask. */
static void add_words_to_offer(struct mpi_agree *a, int words, int from, int to)
{
	uint64_t any = 0;

	for (int i = from; i < to; i++)
		any |= here.rested[i];
	if (!any)
		memcpy(here.rested + from, here.free + from,
		       (size_t)(to - from) * sizeof(here.free[0]));
	memcpy(a->word + from, here.rested + from, (size_t)(to - from) * sizeof(here.free[0]));
	memcpy(a->word + words + from, here.free + from,
	       (size_t)(to - from) * sizeof(here.free[0]));
	a->word[2 * words] |= OFFERED;
}

static void offer_first(struct mpi_agree *a)
{
	offer_numbers(a, EAGER);
	if (a->error || here.eager_holder)
		return;
	here.eager_holder = a;
	a->has_eager = true;
	add_words_to_offer(a, EAGER, 0, EAGER);
}

static bool is_next(const struct mpi_agree *a)
{
	for (const struct mpi_agree *b = here.pending; b; b = b->next)
		if (b->ticket < a->ticket)
			return false;
	return true;
}

static void offer_late(struct mpi_agree *a)
{
	offer_numbers(a, WORDS);
	if (here.late_holder || !is_next(a))
		return;
	here.late_holder = a;
	a->has_late = true;
	add_words_to_offer(a, WORDS, EAGER, WORDS);
	if (!here.eager_holder) {
		here.eager_holder = a;
		a->has_eager = true;
		add_words_to_offer(a, WORDS, 0, EAGER);
	}
}

static void hand_back(struct mpi_agree *a)
{
	if (a->has_eager)
		here.eager_holder = NULL;
	if (a->has_late)
		here.late_holder = NULL;
	a->has_eager = a->has_late = false;
}

static void forget_agreement(struct mpi_agree *a)
{
	for (struct mpi_agree **p = &here.pending; *p; p = &(*p)->next)
		if (*p == a) {
			*p = a->next;
			break;
		}
	a->stage = DONE;
}

/* Picks the lowest `want` numbers of a mask. False: it has fewer. */
static bool pick(struct mpi_agree *a, const uint64_t *mask, int words)
{
	int n = 0;

	for (int i = 0; i < words; i++)
		for (uint64_t w = mask[i]; w; w &= w - 1) {
			a->context[n++] = 2 * ((uint32_t)i * 64 + (uint32_t)__builtin_ctzll(w));
			if (n == a->want)
				return true;
		}
	return false;
}

static bool judge_offers(struct mpi_agree *a)
{
	int words = (a->n - 1) / 2;

	hand_back(a);
	if (!(a->word[2 * words] & WELL)) {
		forget_agreement(a);
		if (a->error == MPI_SUCCESS)
			a->error =
				mpi_fail(MPI_ERR_OTHER, "another rank cannot take part in making "
							"the communicator");
		return true;
	}
	if (pick(a, a->word, words) || pick(a, a->word + words, words)) {
		for (int i = 0; i < a->want; i++)
			take_context_slot(a->context[i] / 2);
		a->error = MPI_SUCCESS;
		forget_agreement(a);
		return true;
	}
	if (a->stage == FIRST) {
		a->stage = TICKET;
		return false;
	}
	if (!(a->word[2 * words] & OFFERED))
		return false;
	forget_agreement(a);
	a->error = mpi_fail(MPI_ERR_OTHER,
			    "no communicator number is free in all processes; of the %u, %d are "
			    "free in this one: free communicators that are no longer needed",
			    MPI_CONTEXT_SLOTS, mpi_contexts_free());
	return true;
}

void mpi_agree_begin(struct mpi_agree *a, int err, int want)
{
	a->want = want;
	a->stage = FIRST;
	a->has_eager = a->has_late = false;
	a->next = NULL;
	a->error = err;
}

void mpi_agree_offer(struct mpi_agree *a)
{
	if (a->stage == FIRST) {
		offer_first(a);
	} else if (a->stage == LATE) {
		offer_late(a);
	} else {
		a->max = true;
		a->n = 1;
		a->word[0] = (uint64_t)++here.clock << (RANK_BITS + JOB_BITS) |
			     here.job << RANK_BITS | (uint64_t)mpi_world.rank;
	}
}

bool mpi_agree_judge(struct mpi_agree *a)
{
	if (a->stage != TICKET)
		return judge_offers(a);
	a->ticket = a->word[0];
	if (here.clock < a->ticket >> (RANK_BITS + JOB_BITS))
		here.clock = a->ticket >> (RANK_BITS + JOB_BITS);
	a->next = here.pending;
	here.pending = a;
	a->stage = LATE;
	return false;
}

void mpi_agree_abandon(struct mpi_agree *a)
{
	hand_back(a);
	forget_agreement(a);
}
