/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The parts of all operations of the shared-memory area: numbers, cells for data, flags, and
 * the barrier of all ranks of a node. See shmcoll.h.
 */
#include <sched.h>

#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"

/* ---- cells ----------------------------------------------------------------------------------- */

static struct mpi_shmcoll_flag *flag_of(const struct mpi_shmcoll *h, int i)
{
	return &h->flags[h->number % MPI_SHMCOLL_DEPTH * (size_t)h->n + (size_t)i];
}

static struct mpi_shmcoll_small_slot *note_of(const struct mpi_shmcoll *h, int i)
{
	return &h->notes[(size_t)i * MPI_SHMCOLL_SMALL_SLOTS + h->number % MPI_SHMCOLL_SMALL_SLOTS];
}

/* The word in which rank i advertises that it is here. */
static _Atomic uint64_t *number_of_slot(const struct mpi_shmcoll *h, int i)
{
	return h->note ? &note_of(h, i)->number : &flag_of(h, i)->number;
}

char *mpi_shmcoll_long_cell(const struct mpi_shmcoll *h, int turn, int i, size_t bytes)
{
	size_t n = (size_t)h->n + 1;

	return h->longs + (size_t)turn * n * MPI_SHMCOLL_LONG_STRIDE +
	       (size_t)i * (bytes <= MPI_SHMCOLL_DENSE ? mpi_shmcoll_lines(bytes)
						       : MPI_SHMCOLL_LONG_STRIDE);
}

char *mpi_shmcoll_cell(const struct mpi_shmcoll *h, int i, size_t bytes)
{
	size_t depth = h->number % MPI_SHMCOLL_DEPTH, n = (size_t)h->n + 1;

	if (h->note)
		return note_of(h, i)->data;
	if (h->wide)
		return mpi_shmcoll_long_cell(h, h->long_turn, i, bytes);
	if (bytes > MPI_SHMCOLL_FEW)
		return h->places + (depth * n + (size_t)i) * MPI_SHMCOLL_STRIDE;
	return i < h->n ? flag_of(h, i)->data : h->results[depth].data;
}

static int await_left(struct mpi_shmcoll *h, uint64_t least)
{
	int rc = MPI_SUCCESS;

	for (int i = 0; i < h->n && !rc; i++)
		if (i != h->me)
			rc = mpi_shmcoll_await(h, &h->slots[i].left, least);
	return rc;
}

int mpi_shmcoll_reserve(struct mpi_shmcoll *h)
{
	uint64_t depth = h->note ? MPI_SHMCOLL_SMALL_SLOTS : MPI_SHMCOLL_DEPTH, least = UINT64_MAX;
	int rc;

	if (h->number <= h->left + depth)
		return MPI_SUCCESS;
	rc = await_left(h, h->number - depth);
	if (rc)
		return rc;
	for (int i = 0; i < h->n; i++) {
		uint64_t left = atomic_load_explicit(&h->slots[i].left, memory_order_acquire);

		if (i != h->me && left < least)
			least = left;
	}
	h->left = least;
	return MPI_SUCCESS;
}

int mpi_shmcoll_reserve_long(struct mpi_shmcoll *h)
{
	uint64_t last;

	h->long_turn = (h->long_turn + 1) % MPI_SHMCOLL_LONGS;
	last = h->long_left[h->long_turn];
	return last <= h->left ? MPI_SUCCESS : await_left(h, last);
}

void mpi_shmcoll_left_long(struct mpi_shmcoll *h, int turn)
{
	h->long_left[turn] = h->number;
}

/* ---- flags ----------------------------------------------------------------------------------- */

int mpi_shmcoll_leave(struct mpi_shmcoll *h, int rc)
{
	/* pairs with the read in await_left() */
	atomic_store_explicit(&h->slots[h->me].left, h->number, memory_order_release);
	mpi_shmcoll_wake(h);
	return rc;
}

/* The number without a mark: an advertised number is never less. */
static uint64_t advertised_least(const struct mpi_shmcoll *h)
{
	return h->number << MPI_SHMCOLL_MARK_BITS;
}

/* The number as it is advertised to others, with the mark and the error. */
static uint64_t telling(const struct mpi_shmcoll *h, int rc)
{
	const uint64_t advertised = advertised_least(h) | h->mark;

	if (__builtin_expect(rc == MPI_SUCCESS, 1))
		return advertised;
	if (h->comm->calls.found)
		return advertised | MPI_SHMCOLL_MISSING | MPI_SHMCOLL_NO_MEMORY;
	if (rc == MPI_ERR_PROC_ABORTED)
		return advertised | MPI_SHMCOLL_MISSING;
	return advertised | (mpi_shmcoll_no_memory(rc) ? MPI_SHMCOLL_NO_MEMORY : 0);
}

void mpi_shmcoll_raise(struct mpi_shmcoll *h, int rc)
{
	atomic_store_explicit(number_of_slot(h, h->me), telling(h, rc), memory_order_release);
}

void mpi_shmcoll_advertise_paths(struct mpi_shmcoll *h)
{
	flag_of(h, h->me)->paths = h->paths.next;
}

void mpi_shmcoll_hear_paths(struct mpi_shmcoll *h)
{
	h->paths.now = flag_of(h, 0)->paths;
}

/* The call of local rank i as its slot has it; 0: it is no longer there, or not yet. */
static uint64_t call_of(const struct mpi_shmcoll *h, int i, uint64_t number)
{
	const struct mpi_shmcoll_slot *slot = &h->slots[i];
	uint64_t call, calls = atomic_load_explicit(&slot->calls, memory_order_acquire);

	if (number > calls || number + MPI_CALLS_KEPT <= calls + 1)
		return 0;
	call = atomic_load_explicit(&slot->call[number % MPI_CALLS_KEPT], memory_order_acquire);
	/* the rank may be overwriting it with a later one */
	calls = atomic_load_explicit(&slot->calls, memory_order_relaxed);
	return number + MPI_CALLS_KEPT <= calls + 1 ? 0 : call;
}

/* Compare the last calls of both ranks by number; record a difference. */
static bool calls_differ(struct mpi_shmcoll *h, int i)
{
	struct mpi_comm *comm = h->comm;

	for (uint64_t n = comm->calls.number; n > 0 && comm->calls.number - n < MPI_CALLS_KEPT;
	     n--) {
		const uint64_t mine = call_of(h, h->me, n), theirs = call_of(h, i, n);

		if (mine && theirs && mine != theirs) {
			mpi_calls_refuse_calls(comm, h->rank[i], theirs, mine);
			return true;
		}
	}
	return false;
}

/* Marks show that ranks disagree. Their calls show in what, unless these are too old. */
static int refuse_call_of(struct mpi_shmcoll *h, int i)
{
	if (!calls_differ(h, i))
		mpi_calls_refuse_calls(h->comm, h->rank[i], 0, h->comm->calls.call);
	return mpi_calls_fail(h->comm);
}

/* Check the mark of local rank i, whose flag has been seen. It must be of the same call, or of
 * a later operation. */
static int check_mark(struct mpi_shmcoll *h, int i)
{
	const uint64_t advertised =
		atomic_load_explicit(number_of_slot(h, i), memory_order_relaxed);

	if (__builtin_expect(advertised == (advertised_least(h) | h->mark), 1))
		return MPI_SUCCESS;
	return advertised >> MPI_SHMCOLL_MARK_BITS > h->number ? MPI_SUCCESS : refuse_call_of(h, i);
}

int mpi_shmcoll_await_flag(struct mpi_shmcoll *h, int i)
{
	int rc = mpi_shmcoll_await(h, number_of_slot(h, i), advertised_least(h));

	return rc ? rc : check_mark(h, i);
}

void mpi_shmcoll_advertise_call(struct mpi_shmcoll *h)
{
	const struct mpi_calls *a = &h->comm->calls;
	struct mpi_shmcoll_slot *slot = &h->slots[h->me];

	atomic_store_explicit(&slot->call[a->number % MPI_CALLS_KEPT], a->call,
			      memory_order_release);
	atomic_store_explicit(&slot->calls, a->number, memory_order_release);
	h->mark = a->history >> (64 - MPI_SHMCOLL_MARK_BITS);
}

/* Local rank i has advertised the current number with another mark, or in the form of an
 * operation with more or less data than ours. */
static bool advertises_another(const struct mpi_shmcoll *h, int i)
{
	const uint64_t flag = atomic_load_explicit(&flag_of(h, i)->number, memory_order_relaxed);
	const uint64_t note = atomic_load_explicit(&note_of(h, i)->number, memory_order_relaxed);
	const uint64_t same = h->note ? note : flag, other = h->note ? flag : note;

	return (same >> MPI_SHMCOLL_MARK_BITS == h->number &&
		same != (advertised_least(h) | h->mark)) ||
	       other >> MPI_SHMCOLL_MARK_BITS == h->number;
}

/* Local rank i has called more since, but has never advertised the number awaited of it. */
static bool has_left_out(const struct mpi_shmcoll *h, int i)
{
	const uint64_t calls = atomic_load_explicit(&h->slots[i].calls, memory_order_acquire);

	if (calls < h->comm->calls.number + MPI_CALLS_KEPT)
		return false;
	if (h->awaited != number_of_slot(h, i) && h->awaited != &h->shared->release)
		return false;
	return atomic_load_explicit(number_of_slot(h, i), memory_order_relaxed) <
	       advertised_least(h);
}

bool mpi_shmcoll_compare(struct mpi_shmcoll *h)
{
	for (int i = 0; i < h->n && h->shared; i++) {
		if (i == h->me)
			continue;
		if (calls_differ(h, i))
			return true;
		if (h->awaited && (advertises_another(h, i) || has_left_out(h, i))) {
			mpi_calls_refuse_calls(h->comm, h->rank[i], 0, h->comm->calls.call);
			return true;
		}
	}
	for (int i = 0; i < h->nodes && h->me == 0 && h->awaited; i++)
		if (i != h->node)
			mpi_calls_ask(h->comm, mpi_comm_peer(h->comm, h->leader_of[i]));
	return false;
}

/* If rc says that all ranks are in this operation, none is in an earlier one any more. Record
 * it, so that nobody need check. */
static int end_of_barrier(struct mpi_shmcoll *h, int rc)
{
	if (!rc && h->left < h->number - 1)
		h->left = h->number - 1;
	return rc;
}

int mpi_shmcoll_await_all(struct mpi_shmcoll *h)
{
	int rc = MPI_SUCCESS;

	for (int i = 0; i < h->n; i++)
		if (i != h->me)
			rc = mpi_first(rc, mpi_shmcoll_await_flag(h, i));
	return end_of_barrier(h, rc);
}

void mpi_shmcoll_release(struct mpi_shmcoll *h, int rc)
{
	atomic_store_explicit(&h->shared->release, telling(h, rc), memory_order_release);
	mpi_shmcoll_wake(h);
}

int mpi_shmcoll_await_release(struct mpi_shmcoll *h)
{
	return end_of_barrier(h, mpi_shmcoll_await(h, &h->shared->release, advertised_least(h)));
}

/* ---- barrier of the node -------------------------------------------------------------------- */

bool mpi_shmcoll_has_leader(const struct mpi_shmcoll *h)
{
	return h->oversubscribed || h->n > MPI_SHMCOLL_FEW_RANKS;
}

/* The processor of this rank; it is advertised to the others when it changes, which is rare. */
static int32_t advertise_cpu(struct mpi_shmcoll *h)
{
	_Atomic int32_t *mine = &h->cpus[h->me];
	int32_t cpu = (int32_t)sched_getcpu();

	if (atomic_load_explicit(mine, memory_order_relaxed) != cpu)
		atomic_store_explicit(mine, cpu, memory_order_relaxed);
	return cpu;
}

/* A missing rank was last on this processor: it needs us to yield. */
static bool keeps_from_running(const struct mpi_shmcoll *h, int32_t cpu)
{
	for (int i = 0; i < h->n; i++)
		if (i != h->me && atomic_load_explicit(&h->cpus[i], memory_order_relaxed) == cpu &&
		    atomic_load_explicit(number_of_slot(h, i), memory_order_relaxed) <
			    advertised_least(h))
			return true;
	return false;
}

/* Find the rank that disagrees: the sum of marks is not that of equal marks. */
static int __attribute__((cold)) find_another(struct mpi_shmcoll *h)
{
	int rc = MPI_SUCCESS;

	for (int i = 0; i < h->n && !rc; i++)
		if (i != h->me)
			rc = check_mark(h, i);
	return rc ? rc : refuse_call_of(h, h->me ? 0 : 1);
}

/* Arrive. True at the last rank, or at the node leader once all others have arrived. */
bool mpi_shmcoll_arrive(struct mpi_shmcoll *h, int *rc)
{
	const size_t depth = h->number % MPI_SHMCOLL_DEPTH;
	/* unequal marks have the same sum as equal ones once in 65536 times */
	const uint64_t mine = 1 | h->mark << 32;
	uint64_t missing;
	int32_t cpu;

	mpi_shmcoll_raise(h, *rc);
	if (!h->oversubscribed) {
		if (h->me == 0) {
			*rc = mpi_first(*rc, mpi_shmcoll_await_all(h));
			return true;
		}
		mpi_shmcoll_wake(h);
		return false;
	}
	/* The last rank sees what all have written before they arrived. Once a rank is missing
	 * there is no last one, and the ranks that wait for it find that out. */
	h->arrivals[depth] += (uint32_t)h->n * mine;
	cpu = advertise_cpu(h);
	missing = h->arrivals[depth] - mine -
		  atomic_fetch_add_explicit(&h->shared->count[depth].n, mine, memory_order_acq_rel);
	if ((uint32_t)missing == 0) {
		*rc = mpi_first(*rc, missing ? find_another(h) : end_of_barrier(h, MPI_SUCCESS));
		return true;
	}
	/* the missing ranks may be running now, and a yield would only bring back a rank that
	 * waits as well */
	if ((uint32_t)missing < h->processors && !keeps_from_running(h, cpu))
		mpi_shmcoll_poll_release(h);
	return false;
}

int mpi_shmcoll_node_barrier(struct mpi_shmcoll *h)
{
	int rc = MPI_SUCCESS;

	if (!mpi_shmcoll_has_leader(h)) {
		mpi_shmcoll_raise(h, MPI_SUCCESS);
		mpi_shmcoll_wake(h);
		return mpi_shmcoll_await_all(h);
	}
	if (!mpi_shmcoll_arrive(h, &rc))
		return mpi_shmcoll_await_release(h);
	mpi_shmcoll_release(h, rc);
	return rc;
}
