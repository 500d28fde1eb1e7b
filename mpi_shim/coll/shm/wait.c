/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How a rank waits for a number in the shared-memory area, and is woken. With a processor of
 * its own it polls. Without one it yields between two polls, which costs only a process switch.
 * After a while it sleeps in Portals, until another rank sends it an empty message. The more
 * often waits are long, the sooner it sleeps. All the while the library makes progress, and
 * finds out that a rank has died.
 *
 * A wait is long if it lasts longer than ranks need that all sleep and wake each other. A
 * shorter one makes the next more patient even if it ended in a sleep. Otherwise ranks that
 * have slept once would wait for each other's awakenings ever after, each too long for their
 * patience.
 */
#include <portals3_ext.h>
#include <string.h>

#include "base/barrier.h"
#include "base/config.h"
#include "base/cpu.h"
#include "base/yield.h"
#include "mpi_shim/coll/calls.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/events.h"
#include "mpi_shim/core/waiting.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"
#include "mpi_shim/pt2pt/protocol.h"

#define PATIENCE_MOST_NS  1000000
#define PATIENCE_LEAST_NS 5000
#define POLLS             20   /* polls between two rounds of progress, with a processor */
#define YIELDS            8    /* yields between two rounds of progress */
#define POLL_RELEASE_NS   2000 /* a yield takes at least as long */
/* by then a store is seen, almost always; if not, a sleep has an end */
#define SEEN_NS 5000

static bool word_reached(const _Atomic uint64_t *word, uint64_t least)
{
	/* pairs with the release of the writer; words that Portals writes carry no data */
	return (atomic_load_explicit(word, memory_order_acquire) & ~MPI_SHMCOLL_NO_MEMORY) >= least;
}

/* Portals writes the word: it does not change without progress. */
static bool from_portals(const struct mpi_shmcoll *h, const _Atomic uint64_t *word)
{
	return word >= h->word && word < h->word + MPI_SHMCOLL_WORDS;
}

/* Poll a few times, or once after a yield. */
static bool poll_word(const struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least)
{
	if (!h->spin) {
		base_yield();
		return word_reached(word, least);
	}
	for (int i = 0; i < POLLS; i++) {
		base_cpu_relax();
		if (word_reached(word, least))
			return true;
	}
	return false;
}

/* Poll until the word is reached, or for h->patience_ns after *since, which is 0 at first. */
static bool be_patient(const struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least,
		       uint64_t *since)
{
	/* Ranks that put to or get from our memory wait for our progress meanwhile. They wait
	 * twice as long if they find us outside Portals, between two rounds. So watch the word
	 * from inside progress; but first poll it alone, as it may be about to be written. */
	const bool watch = h->spin && mpi_exposed && !mpi_world.threaded;
	uint64_t now;

	for (unsigned int i = 1;; i++) {
		bool done;

		if (mpi_world.threaded)
			mpi_unlock();
		done = watch && i > 1 ? word_reached(word, least) : poll_word(h, word, least);
		if (mpi_world.threaded)
			mpi_lock();
		if (done)
			return true;
		if (watch)
			mpi_progress_watch(word, least);
		else if (h->spin || i % YIELDS == 0)
			mpi_progress(false);
		now = base_now_ns();
		if (!*since)
			*since = now;
		if (now - *since >= h->patience_ns || (!h->spin && !base_yield_helps()))
			return word_reached(word, least);
	}
}

void mpi_shmcoll_poll_release(const struct mpi_shmcoll *h)
{
	uint64_t since;

	if (base_config()->ptl_spin_us == 0)
		return;
	since = base_now_ns();
	do
		base_cpu_relax();
	while (!word_reached(&h->shared->release, h->number << MPI_SHMCOLL_MARK_BITS) &&
	       base_now_ns() - since < POLL_RELEASE_NS);
}

/* Adapt the patience of the next wait to the one that has ended. */
static void learn(struct mpi_shmcoll *h, bool was_long)
{
	if (!was_long && h->patience_ns < PATIENCE_MOST_NS)
		h->patience_ns *= 2;
	else if (was_long && h->patience_ns / 2 >= PATIENCE_LEAST_NS)
		h->patience_ns /= 2;
}

int mpi_shmcoll_failed(const struct mpi_shmcoll *h)
{
	for (int i = 0; i < h->nodes && h->me == 0; i++)
		if (i != h->node && mpi_failed_source(h->comm, h->leader_of[i]) >= 0)
			return h->leader_of[i];
	return mpi_failed_any(h->comm);
}

bool mpi_shmcoll_can_order_all(void)
{
	return base_barrier_join();
}

/*
 * Order the announcement of a sleep before the last read of the word. The other side writes the
 * word, then reads whether anybody sleeps. Both need a full barrier in between. From here the
 * kernel can give that barrier to all of them. So the writers, which must be fast, need none.
 */
static void order_all(const struct mpi_shmcoll *h)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!h->fence)
		base_barrier_all(SEEN_NS);
}

/* Sleep until something arrives. A writer of the awaited word sees that it must send a
 * message. */
static void sleep_once(struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least)
{
	struct mpi_shmcoll_slot *slot = &h->slots[h->me];

	if (h->shared) {
		atomic_store_explicit(&slot->asleep, 1, memory_order_relaxed);
		/* before the read of the word; the writer reads this after it has written the
		 * word */
		atomic_fetch_add_explicit(&h->shared->sleepers, 1, memory_order_seq_cst);
	}
	order_all(h);
	if (!word_reached(word, least))
		mpi_progress(true);
	if (h->shared) {
		atomic_fetch_sub_explicit(&h->shared->sleepers, 1, memory_order_relaxed);
		atomic_store_explicit(&slot->asleep, 0, memory_order_relaxed);
	}
}

/* The number reached may say that a rank or memory is missing, or that ranks disagree. Returns
 * that error. */
static int verdict(struct mpi_shmcoll *h, const _Atomic uint64_t *word)
{
	uint64_t number = atomic_load_explicit(word, memory_order_relaxed);

	if (number < MPI_SHMCOLL_NO_MEMORY)
		return MPI_SUCCESS;
	if (number < MPI_SHMCOLL_MISSING)
		return mpi_fail(MPI_ERR_OTHER, "memory has run out at another rank");
	if (number & MPI_SHMCOLL_NO_MEMORY)
		return mpi_calls_fail(h->comm);
	return mpi_fail(MPI_ERR_PROC_ABORTED,
			"a rank took no part: its process has ended, or it cannot be reached");
}

int mpi_shmcoll_missing(const struct mpi_shmcoll *h, int rank)
{
	return mpi_fail(MPI_ERR_PROC_ABORTED, "rank %d took no part: %s", rank,
			mpi_failed_text(mpi_comm_peer(h->comm, rank), PTL_NI_OK));
}

/* True for a word of an operation of the area; windows wait for other words (win_pscw.c). */
static bool of_operation(const struct mpi_shmcoll *h, const _Atomic uint64_t *word)
{
	const char *at = (const char *)word, *shared = (const char *)h->shared;

	return from_portals(h, word) || (shared && at >= shared && at < shared + h->bytes);
}

/* Why the word will never be reached; MPI_SUCCESS: it may be, or has been. The calls of the
 * others are compared only after a sleep that was not the last. A read of each rank's line
 * would cost a short wait more than the sleep does. */
static int hopeless(struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least, bool slept)
{
	int dead = mpi_shmcoll_failed(h);
	bool disagree = false;

	if (dead < 0 && slept) {
		h->awaited = of_operation(h, word) ? word : NULL;
		disagree = mpi_calls_broken(h->comm);
		h->awaited = NULL;
	}
	if (word_reached(word, least))
		return MPI_SUCCESS;
	if (dead >= 0)
		return mpi_shmcoll_missing(h, dead);
	return disagree ? mpi_calls_fail(h->comm) : MPI_SUCCESS;
}

static void begin_wait_in_area(struct mpi_wait *wait, const struct mpi_shmcoll *h,
			       const _Atomic uint64_t *word, uint64_t least)
{
	mpi_wait_begin(wait, BASE_WAIT_COLLECTIVE, h->comm, BASE_WAITS_ANY, BASE_WAITS_ANY,
		       (uintptr_t)word ^ least << 20);
}

/* Portals itself waits best for a word that it writes. */
static int await_put(struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least)
{
	struct mpi_wait wait;
	int rc = MPI_SUCCESS;

	begin_wait_in_area(&wait, h, word, least);
	while (!rc && !word_reached(word, least))
		rc = mpi_progress(true) ? MPI_SUCCESS : hopeless(h, word, least, true);
	mpi_wait_end(&wait);
	return rc ? rc : verdict(h, word);
}

static int await_asleep(struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least)
{
	struct mpi_wait wait;
	int rc = MPI_SUCCESS;

	begin_wait_in_area(&wait, h, word, least);
	for (bool slept = false; !rc && !word_reached(word, least); slept = true) {
		rc = hopeless(h, word, least, slept);
		if (!rc)
			sleep_once(h, word, least);
	}
	mpi_wait_end(&wait);
	return rc;
}

static int await_not_there(struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least)
{
	uint64_t since = 0;
	int rc;

	if (h->comm->calls.found)
		return mpi_calls_fail(h->comm);

	if (from_portals(h, word))
		return await_put(h, word, least);
	if (base_config()->ptl_spin_us != 0 && be_patient(h, word, least, &since)) {
		learn(h, false);
		return verdict(h, word);
	}
	rc = await_asleep(h, word, least);
	learn(h, base_now_ns() - since > PATIENCE_MOST_NS);
	return rc ? rc : verdict(h, word);
}

static int await_measured(struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least)
{
	uint64_t since;
	int rc;

	if (!h->paths.since)
		return await_not_there(h, word, least);
	since = base_now_ns();
	rc = await_not_there(h, word, least);
	h->paths.waited += base_now_ns() - since;
	return rc;
}

static int __attribute__((cold, noinline))
await_watched(struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least)
{
	int rc;

	mpi_event_wait_collective(MPI_EVENT_WAIT_BEGIN, h->comm);
	rc = await_measured(h, word, least);
	mpi_event_wait_collective(MPI_EVENT_WAIT_END, h->comm);
	return rc;
}

int mpi_shmcoll_await(struct mpi_shmcoll *h, const _Atomic uint64_t *word, uint64_t least)
{
	if (word_reached(word, least))
		return verdict(h, word);
	return mpi_events_watched ? await_watched(h, word, least) : await_measured(h, word, least);
}

static void wake_rank(const struct mpi_shmcoll *h, int i)
{
	int world = mpi_comm_peer(h->comm, h->rank[i]);

	/* a credit message of no rank: it is removed from the queue, and that is all */
	PtlPutInject(mpi_world.ni, NULL, 0, PTL_INJECT_NOW, mpi_world.id[world], MPI_PT_CREDIT, 0,
		     MPI_SHMCOLL_WAKE_BITS, 0, 0);
}

void mpi_shmcoll_wake(struct mpi_shmcoll *h)
{
	if (!h->shared)
		return;
	/* pairs with order_all() */
	if (h->fence)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&h->shared->sleepers, memory_order_relaxed) == 0)
		return;
	for (int i = 0; i < h->n; i++)
		if (i != h->me && atomic_load_explicit(&h->slots[i].asleep, memory_order_relaxed) &&
		    atomic_exchange_explicit(&h->slots[i].asleep, 0, memory_order_relaxed))
			wake_rank(h, i);
}

int mpi_shmcoll_inline(const ptl_arrival_t *put)
{
	struct mpi_shmcoll *h = put->user_ptr;
	uint64_t number;

	if (put->hdr_data >= MPI_SHMCOLL_WORDS || put->length != sizeof(number))
		return 0;
	memcpy(&number, put->data, sizeof(number));
	atomic_store_explicit(&h->word[put->hdr_data], number, memory_order_release);
	return 1;
}

/* Put a number. Portals moves the eight aligned bytes in one piece. The word is given twice: by
 * its offset, and for mpi_shmcoll_inline(). */
int mpi_shmcoll_put(struct mpi_shmcoll *h, int node, int word, uint64_t number)
{
	int world = mpi_comm_peer(h->comm, h->leader_of[node]);
	int err;

	for (;;) {
		/* the leader that waits for it makes progress itself */
		err = PtlPutInject(mpi_world.ni, &number, sizeof(number), PTL_INJECT_LAZY,
				   mpi_world.id[world], MPI_PT_FLAG, 0, h->comm->context,
				   (ptl_size_t)word * sizeof(number), (ptl_hdr_data_t)word);
		if (err != PTL_NO_SPACE)
			break;
		mpi_progress(false); /* the queue to it is full until it removes an entry */
		mpi_yield();
	}
	return err == PTL_OK ? MPI_SUCCESS : mpi_unreachable(world);
}
