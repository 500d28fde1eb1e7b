/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What all operations of a hub are made of: numbers, places for data, flags, and the meeting of all ranks of a
 * node. See hub.h.
 */
#include <sched.h>

#include "mpi_shim/coll_impl.h"
#include "mpi_shim/hub_impl.h"

/* ---- places ----------------------------------------------------------------------------------------- */

static struct mpi_hub_flag *flag_of(const struct mpi_hub *h, int i)
{
	return &h->flags[h->number % MPI_HUB_DEPTH * (size_t)h->n + (size_t)i];
}

static struct mpi_hub_note *note_of(const struct mpi_hub *h, int i)
{
	return &h->notes[(size_t)i * MPI_HUB_NOTES + h->number % MPI_HUB_NOTES];
}

/* The number by which rank i says that it is here. */
static _Atomic uint64_t *number_of(const struct mpi_hub *h, int i)
{
	return h->note ? &note_of(h, i)->number : &flag_of(h, i)->number;
}

char *mpi_hub_long_place(const struct mpi_hub *h, int turn, int i, size_t bytes)
{
	size_t n = (size_t)h->n + 1;

	return h->longs + (size_t)turn * n * MPI_HUB_LONG_STRIDE +
	       (size_t)i * (bytes <= MPI_HUB_DENSE ? mpi_hub_lines(bytes) : MPI_HUB_LONG_STRIDE);
}

char *mpi_hub_place(const struct mpi_hub *h, int i, size_t bytes)
{
	size_t depth = h->number % MPI_HUB_DEPTH, n = (size_t)h->n + 1;

	if (h->note)
		return note_of(h, i)->data;
	if (h->wide)
		return mpi_hub_long_place(h, h->long_turn, i, bytes);
	if (bytes > MPI_HUB_FEW)
		return h->places + (depth * n + (size_t)i) * MPI_HUB_STRIDE;
	return i < h->n ? flag_of(h, i)->data : h->results[depth].data;
}

static int await_left(struct mpi_hub *h, uint64_t least)
{
	int rc = MPI_SUCCESS;

	for (int i = 0; i < h->n && !rc; i++)
		if (i != h->me)
			rc = mpi_hub_await(h, &h->seats[i].left, least);
	return rc;
}

int mpi_hub_reserve(struct mpi_hub *h)
{
	uint64_t depth = h->note ? MPI_HUB_NOTES : MPI_HUB_DEPTH, least = UINT64_MAX;
	int rc;

	if (h->number <= h->left + depth)
		return MPI_SUCCESS;
	rc = await_left(h, h->number - depth);
	if (rc)
		return rc;
	for (int i = 0; i < h->n; i++) {
		uint64_t left = atomic_load_explicit(&h->seats[i].left, memory_order_acquire);

		if (i != h->me && left < least)
			least = left;
	}
	h->left = least;
	return MPI_SUCCESS;
}

int mpi_hub_reserve_long(struct mpi_hub *h)
{
	uint64_t last;

	h->long_turn = (h->long_turn + 1) % MPI_HUB_LONGS;
	last = h->long_left[h->long_turn];
	return last <= h->left ? MPI_SUCCESS : await_left(h, last);
}

void mpi_hub_left_long(struct mpi_hub *h, int turn)
{
	h->long_left[turn] = h->number;
}

/* ---- flags ------------------------------------------------------------------------------------------ */

int mpi_hub_leave(struct mpi_hub *h, int rc)
{
	/* pairs with the look at it in await_left() */
	atomic_store_explicit(&h->seats[h->me].left, h->number, memory_order_release);
	mpi_hub_wake(h);
	return rc;
}

/* A number as it is told to others. */
static uint64_t telling(const struct mpi_hub *h, int rc)
{
	if (rc == MPI_ERR_PROC_ABORTED)
		return h->number | MPI_HUB_MISSING;
	return h->number | (mpi_hub_lacking(rc) ? MPI_HUB_LACKING : 0);
}

void mpi_hub_raise(struct mpi_hub *h, int rc)
{
	atomic_store_explicit(number_of(h, h->me), telling(h, rc), memory_order_release);
}

void mpi_hub_tell_ways(struct mpi_hub *h)
{
	flag_of(h, h->me)->ways = h->ways.next;
}

void mpi_hub_hear_ways(struct mpi_hub *h)
{
	h->ways.now = flag_of(h, 0)->ways;
}

int mpi_hub_await_flag(struct mpi_hub *h, int i)
{
	return mpi_hub_await(h, number_of(h, i), h->number);
}

/* All are in this operation, if rc says so: nobody is in one before it any more, which need not be looked for then. */
static int met(struct mpi_hub *h, int rc)
{
	if (!rc && h->left < h->number - 1)
		h->left = h->number - 1;
	return rc;
}

int mpi_hub_await_all(struct mpi_hub *h)
{
	int rc = MPI_SUCCESS;

	for (int i = 0; i < h->n; i++)
		if (i != h->me)
			rc = mpi_first(rc, mpi_hub_await_flag(h, i));
	return met(h, rc);
}

void mpi_hub_release(struct mpi_hub *h, int rc)
{
	atomic_store_explicit(&h->shared->release, telling(h, rc), memory_order_release);
	mpi_hub_wake(h);
}

int mpi_hub_await_release(struct mpi_hub *h)
{
	return met(h, mpi_hub_await(h, &h->shared->release, h->number));
}

/* ---- meeting ---------------------------------------------------------------------------------------- */

bool mpi_hub_has_master(const struct mpi_hub *h)
{
	return h->crowded || h->n > MPI_HUB_FEW_RANKS;
}

/* The processor where this rank is, which the others are told when it changes: it seldom does. */
static int32_t tell_cpu(struct mpi_hub *h)
{
	_Atomic int32_t *mine = &h->cpus[h->me];
	int32_t cpu = (int32_t)sched_getcpu();

	if (atomic_load_explicit(mine, memory_order_relaxed) != cpu)
		atomic_store_explicit(mine, cpu, memory_order_relaxed);
	return cpu;
}

/* A rank is missing that was on this processor last: it needs our turn. */
static bool keeps_from_running(const struct mpi_hub *h, int32_t cpu)
{
	for (int i = 0; i < h->n; i++)
		if (i != h->me && atomic_load_explicit(&h->cpus[i], memory_order_relaxed) == cpu &&
		    atomic_load_explicit(number_of(h, i), memory_order_relaxed) < h->number)
			return true;
	return false;
}

/* Says that it is here; true: as the last one, or as the master when all others are. */
bool mpi_hub_arrive(struct mpi_hub *h, int *rc)
{
	const size_t depth = h->number % MPI_HUB_DEPTH;
	uint32_t missing;
	int32_t cpu;

	mpi_hub_raise(h, *rc);
	if (!h->crowded) {
		if (h->me == 0) {
			*rc = mpi_first(*rc, mpi_hub_await_all(h));
			return true;
		}
		mpi_hub_wake(h);
		return false;
	}
	/* The last one sees what all have written before they arrived. Once a rank is missing there is no last one any
	 * more, and who waits for it finds that out. */
	h->arrivals[depth] += (uint32_t)h->n;
	cpu = tell_cpu(h);
	missing = h->arrivals[depth] - 1 -
		  atomic_fetch_add_explicit(&h->shared->count[depth].n, 1, memory_order_acq_rel);
	if (missing == 0) {
		met(h, MPI_SUCCESS);
		return true;
	}
	/* they may just be running, and to give the turn away would only bring back who waits as well */
	if (missing < h->processors && !keeps_from_running(h, cpu))
		mpi_hub_look_out(h);
	return false;
}

int mpi_hub_meet(struct mpi_hub *h)
{
	int rc = MPI_SUCCESS;

	if (!mpi_hub_has_master(h)) {
		mpi_hub_raise(h, MPI_SUCCESS);
		mpi_hub_wake(h);
		return mpi_hub_await_all(h);
	}
	if (!mpi_hub_arrive(h, &rc))
		return mpi_hub_await_release(h);
	mpi_hub_release(h, rc);
	return rc;
}
