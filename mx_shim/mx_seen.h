/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Endpoints as the tools of other processes see them: a small file without a name that each process
 * with an endpoint has open, found by its name in /proc/PID/fd. The process writes it without a
 * lock; mx_endpoint_info and mx_counters map and read it.
 */
#ifndef MX_SHIM_MX_SEEN_H
#define MX_SHIM_MX_SEEN_H

#include <stdatomic.h>
#include <stdint.h>

#define MX_SEEN_FILE "postern-mx" /* a memfd, or a deleted file (base/shared.h) */

enum {
	MX_SEEN_MAGIC = 0x6d780001, /* changes with the layout */
	MX_SEEN_ENDPOINTS = 512,    /* of one process; more are not shown */
	MX_SEEN_COUNTERS = 32,
};

/* An endpoint, or a place for one. */
struct mx_seen {
	_Atomic uint32_t
		open; /* set last, cleared first: a reader that sees it may read the rest */
	uint32_t board, eid;
	_Atomic uint32_t
		counter[MX_SEEN_COUNTERS]; /* since it was opened; only its endpoint writes */
	_Atomic uint32_t cleared[MX_SEEN_COUNTERS]; /* their values when a tool cleared them */
};

struct mx_seen_file {
	uint32_t magic;
	uint32_t pid; /* a child has the file, too, but no endpoint */
	struct mx_seen endpoint[MX_SEEN_ENDPOINTS];
};

/* The place of an endpoint that was opened, until mx_seen_close. Where tools cannot be served it is
 * memory of the process alone. NULL: memory is exhausted. Any thread may call. */
struct mx_seen *mx_seen_open(uint32_t board, uint32_t eid);
void mx_seen_close(struct mx_seen *seen); /* NULL is permitted */

/* For the endpoint itself, whose lock keeps other writers out. */
static inline void mx_seen_count(struct mx_seen *seen, unsigned int which)
{
	uint32_t value = atomic_load_explicit(&seen->counter[which], memory_order_relaxed);

	atomic_store_explicit(&seen->counter[which], value + 1, memory_order_relaxed);
}

/* A counter as tools show it. */
static inline uint32_t mx_seen_value(struct mx_seen *seen, unsigned int which)
{
	return atomic_load_explicit(&seen->counter[which], memory_order_relaxed) -
	       atomic_load_explicit(&seen->cleared[which], memory_order_relaxed);
}

#endif
