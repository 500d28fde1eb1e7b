/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The lock of a target: see struct mpi_win_control. Mapped words are changed by instructions
 * and waited for on a futex. Other words are changed by Portals' atomics and polled now and
 * then. A waiting process makes progress. It gives up when a rank of the window has died, as
 * that rank may have been the holder.
 */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/yield.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/waiting.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/rma/rma.h"

#define SPINS        200     /* polls before others get the core */
#define YIELDS       20      /* yields before we sleep */
#define NAP_NS       2000000 /* longest sleep between checks for dead ranks */
#define NAP_MOST     200000  /* longest sleep between polls by Portals */
#define NAP_LEAST    20000
#define OFFSET(word) offsetof(struct mpi_win_control, word)

/* Return a rank of the window that has died, or -1. */
static int any_dead(const struct mpi_win *win)
{
	int dead = -1;

	for (int i = 0; i < win->size; i++) {
		struct mpi_peer *p = &mpi_proto.peer[win->target[i].world];

		p->asked = true;
		if (p->dead)
			dead = i;
	}
	mpi_check_peers_now_and_then();
	return dead;
}

static int fail_for_failed_target(int rank)
{
	return mpi_fail(MPI_ERR_PROC_ABORTED,
			"rank %d of the window has died, and may have held the lock waited for",
			rank);
}

static void nap(uint64_t ns)
{
	struct timespec t = { 0, (long)ns };

	mpi_unlock();
	nanosleep(&t, NULL);
	mpi_lock();
}

/* ---- mapped ---------------------------------------------------------------------------------- */

static void sleep_on(struct mpi_win_control *c, _Atomic uint32_t *word, uint32_t seen)
{
	struct timespec t = { 0, NAP_NS };

	/* seq_cst: counted before the futex reads the word; pairs with wake_waiters() */
	atomic_fetch_add(&c->sleepers, 1);
	mpi_unlock();
	syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
	mpi_lock();
	atomic_fetch_sub(&c->sleepers, 1);
}

static void wake_waiters(struct mpi_win_control *c, _Atomic uint32_t *word)
{
	if (atomic_load(&c->sleepers))
		syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static int wait_long(struct mpi_win *win, struct mpi_win_control *c, _Atomic uint32_t *word,
		     uint32_t ticket)
{
	uint32_t seen;
	int dead;

	for (int i = 0; (seen = atomic_load_explicit(word, memory_order_acquire)) != ticket; i++) {
		mpi_progress(false);
		if (i < YIELDS && base_yield_helps()) {
			mpi_unlock();
			base_yield();
			mpi_lock();
			continue;
		}
		dead = any_dead(win);
		if (dead >= 0)
			return fail_for_failed_target(dead);
		sleep_on(c, word, seen);
	}
	return MPI_SUCCESS;
}

static void begin_wait_for_lock(struct mpi_wait *wait, const struct mpi_win *win,
				const struct mpi_win_target *t, uint32_t ticket)
{
	mpi_wait_begin(wait, BASE_WAIT_LOCK, win->comm, t->world, BASE_WAITS_ANY, ticket);
}

static int wait_mapped(struct mpi_win *win, const struct mpi_win_target *t, _Atomic uint32_t *word,
		       uint32_t ticket)
{
	struct mpi_wait wait;
	int err;

	for (int i = 0; i < SPINS; i++)
		if (atomic_load_explicit(word, memory_order_acquire) == ticket)
			return MPI_SUCCESS;
	begin_wait_for_lock(&wait, win, t, ticket);
	err = wait_long(win, t->control, word, ticket);
	mpi_wait_end(&wait);
	return err;
}

static int take_mapped(struct mpi_win *win, const struct mpi_win_target *t, bool exclusive)
{
	struct mpi_win_control *c = t->control;
	uint32_t ticket = atomic_fetch_add(&c->users, 1);
	int err = wait_mapped(win, t, exclusive ? &c->write : &c->read, ticket);

	if (!err && !exclusive) {
		atomic_fetch_add(&c->read, 1);
		wake_waiters(c, &c->read);
	}
	return err;
}

static void give_mapped(struct mpi_win_control *c, bool exclusive)
{
	atomic_fetch_add(&c->write, 1);
	wake_waiters(c, &c->write);
	if (exclusive) {
		atomic_fetch_add(&c->read, 1);
		wake_waiters(c, &c->read);
	}
}

/* ---- by Portals ------------------------------------------------------------------------------ */

/* Add n to a word of the lock; *old is its value before. */
static int add_to_lock(struct mpi_win *win, struct mpi_win_target *t, size_t offset, uint32_t n,
		       uint32_t *old)
{
	struct mpi_rma *op = mpi_rma_begin(win, (int)(t - win->target));
	uint32_t *operand;
	int err;

	if (!op)
		return MPI_ERR_NO_MEM;
	operand = (uint32_t *)(void *)op->few;
	operand[0] = n;
	op->error = mpi_rma_atomic(op, operand, operand + 1, sizeof(n), t->control_number, offset,
				   n ? PTL_ATOMIC_SUM : PTL_ATOMIC_FETCH, PTL_ATOMIC_UINT32);
	err = mpi_rma_wait(op);
	*old = operand[1]; /* records are never freed */
	return err;
}

static int take_far(struct mpi_win *win, struct mpi_win_target *t, bool exclusive)
{
	uint64_t ns = NAP_LEAST;
	uint32_t ticket, now;
	struct mpi_wait wait;
	int err = add_to_lock(win, t, OFFSET(users), 1, &ticket), dead;

	if (err)
		return err;
	begin_wait_for_lock(&wait, win, t, ticket);
	while (!err) {
		err = add_to_lock(win, t, exclusive ? OFFSET(write) : OFFSET(read), 0, &now);
		if (err || now == ticket)
			break;
		dead = any_dead(win);
		if (dead >= 0) {
			err = fail_for_failed_target(dead);
			break;
		}
		mpi_progress(false); /* add_to_lock() polls its own answers only */
		nap(ns);
		ns = ns * 2 < NAP_MOST ? ns * 2 : NAP_MOST;
	}
	mpi_wait_end(&wait);
	return err || exclusive ? err : add_to_lock(win, t, OFFSET(read), 1, &now);
}

static int give_far(struct mpi_win *win, struct mpi_win_target *t, bool exclusive)
{
	uint32_t old;
	int err = add_to_lock(win, t, OFFSET(write), 1, &old);

	return err || !exclusive ? err : add_to_lock(win, t, OFFSET(read), 1, &old);
}

int mpi_win_take_lock(struct mpi_win *win, struct mpi_win_target *t, bool exclusive)
{
	return t->control ? take_mapped(win, t, exclusive) : take_far(win, t, exclusive);
}

int mpi_win_give_lock(struct mpi_win *win, struct mpi_win_target *t, bool exclusive)
{
	if (!t->control)
		return give_far(win, t, exclusive);
	give_mapped(t->control, exclusive);
	return MPI_SUCCESS;
}

/* ---- elements -------------------------------------------------------------------------------- */

void mpi_win_lock_elements(struct mpi_win *win, struct mpi_win_target *t)
{
	_Atomic uint32_t *word = &t->control->elements;
	uint32_t me = (uint32_t)win->comm->rank + 1, holder = 0;

	for (int i = 0; !atomic_compare_exchange_weak_explicit(
		     word, &holder, me, memory_order_seq_cst, memory_order_relaxed);
	     i++) {
		struct mpi_peer *p;

		if (holder && holder <= (uint32_t)win->size && i > SPINS + YIELDS) {
			any_dead(win);
			p = &mpi_proto.peer[win->target[holder - 1].world];
			/* the dead holder's work is half done, but no rank must wait for it */
			if (p->dead && atomic_compare_exchange_strong(word, &holder, me))
				return;
			nap(NAP_LEAST);
		} else if (i > SPINS) {
			mpi_unlock();
			sched_yield();
			mpi_lock();
		}
		holder = 0;
	}
}

void mpi_win_unlock_elements(struct mpi_win_target *t)
{
	atomic_store_explicit(&t->control->elements, 0, memory_order_release);
}

void mpi_win_await_elements(struct mpi_win *win, struct mpi_win_target *t)
{
	const uint32_t there = (uint32_t)(t - win->target) + 1;

	for (int r = 0; r < win->size; r++) {
		_Atomic uint32_t *at_work = &win->target[r].control->at_work;

		for (int i = 0; atomic_load(at_work) == there; i++) {
			if (i < SPINS)
				continue;
			if (i > SPINS + YIELDS && any_dead(win) >= 0 &&
			    mpi_proto.peer[win->target[r].world].dead)
				break;
			mpi_unlock();
			sched_yield();
			mpi_lock();
		}
	}
}
