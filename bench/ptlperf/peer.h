/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The two processes of a run, and the memory they share besides Portals.
 */
#ifndef PERF_PEER_H
#define PERF_PEER_H

#include <stdatomic.h>
#include <stdint.h>

#include "line.h"
#include "perf.h"

#define PERF_RING_LINES  1024
#define PERF_PIPE_BYTES  ((size_t)256 << 10)
#define PERF_CHUNK_BYTES ((size_t)32 << 10)
#define PERF_PIPE_SLOTS  (PERF_PIPE_BYTES / PERF_CHUNK_BYTES)

/* One message of the bare ring: a line whose sequence number is written last. */
struct perf_slot {
	_Alignas(64) _Atomic uint32_t seq;
	uint32_t pad;
	uint64_t payload[7];
};

/* Plain shared memory in which the bare machine is measured. Each word that is written has a
 * pair of cache lines of its own, because processors fetch lines in pairs. */
struct perf_board {
	uint64_t magic;
	struct {
		_Alignas(64) pid_t pid; /* as the system names the process */
		void *tx, *rx;          /* its buffers, addresses in its own space */
	} side[2];
	struct perf_line line;
	_Alignas(128) _Atomic uint64_t head;    /* producer's, ring and pipe */
	_Alignas(128) _Atomic uint64_t tail;    /* consumer's */
	_Alignas(128) _Atomic uint64_t claimed; /* message << 32 | next chunk */
	_Alignas(128) _Atomic uint64_t done;    /* chunks copied since the start */
	_Alignas(128) _Atomic int refused;      /* errno of a cross-memory attach that failed */
	_Alignas(128) struct perf_slot slot[PERF_RING_LINES];
	_Alignas(4096) unsigned char pipe[PERF_PIPE_BYTES];
};

/* Another look at a word that the other rank counts up; pairs with its release. */
static inline uint64_t perf_look(_Atomic uint64_t *word)
{
	perf_relax();
	return atomic_load_explicit(word, memory_order_acquire);
}

/*
 * Finds the other rank: in a job of two the launcher's, else a process started here. Pins this
 * process, opens the interface, and returns with the control channel standing and, where both are
 * on one machine, the board mapped. The tests' data calls are in link.h.
 */
void perf_peer_start(struct perf *p);
/* Waits for the other rank, closes the interface; the exit status of the run so far. */
int perf_peer_stop(struct perf *p);

#endif
