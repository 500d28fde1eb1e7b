/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Yields that know what they cost.
 */
#include "base/yield.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/cpu.h"

/* The ranks of one job have turns of some milliseconds when a few of them compute on one core.
 * Turns longer than this are those of many other processes. */
#define LATE_NS 10000000u
/* how long not to yield afterwards, as a multiple of that turn, and at most */
#define PAUSE_TURNS   20
#define PAUSE_MOST_NS 2000000000u

/* Any thread's: all threads of the process have the same neighbours. */
static _Atomic uint64_t paused_until;

bool base_yield_helps(void)
{
	uint64_t until = atomic_load_explicit(&paused_until, memory_order_relaxed);

	return until == 0 || base_now_ns() >= until;
}

bool base_yield(void)
{
	uint64_t before, turn, pause;

	if (!base_yield_helps())
		return false;
	before = base_now_ns();
	sched_yield();
	turn = base_now_ns() - before;
	if (turn < LATE_NS)
		return true;
	pause = turn < PAUSE_MOST_NS / PAUSE_TURNS ? turn * PAUSE_TURNS : PAUSE_MOST_NS;
	atomic_store_explicit(&paused_until, before + turn + pause, memory_order_relaxed);
	return true;
}
