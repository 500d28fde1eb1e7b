/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How fast the bare machine copies from one process to the other: memcpy within one, cross-memory
 * attach by one side, the same with both sides claiming 32 KiB chunks, and a pipeline of two
 * memcpy through a small ring that stays in the caches. Rank 0 has the source, rank 1 the
 * destination, as in the bandwidth test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "link.h"
#include "peer.h"
#include "report.h"

#define SMALL_COPY ((size_t)128 << 10)
#define LARGE_COPY ((size_t)64 << 20)
#define LEAST      ((size_t)64 << 10)
#define MOST       ((size_t)4 << 20)

struct copy {
	size_t size;
	uint64_t messages; /* published so far, of claims */
};

/* ---- memcpy, one core ---- */

struct local_copy {
	unsigned char *from, *to;
	size_t size;
};

static void local_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct local_copy *c = arg;
	uint64_t last = perf_now();

	(void)p;
	for (size_t i = 0; i < samples; i++) {
		uint64_t now;

		memcpy(c->to, c->from, c->size);
		__asm__ volatile("" ::: "memory"); /* each copy happens */
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
}

static void local_run1(struct perf *p, void *arg, size_t samples)
{
	(void)p;
	(void)arg;
	(void)samples;
}

static double local(struct perf *p, size_t size, const char *variant)
{
	const struct perf_pattern pattern = { "memcpy", NULL, local_run0, local_run1, NULL };
	struct perf_point pt = { .test = "floor",
				 .variant = variant,
				 .size = size,
				 .unit = "GB/s",
				 .is_rate = true,
				 .scale = (double)size };
	struct local_copy c = { p->tx, p->rx, size };
	struct perf_result r;

	perf_measure(p, &pattern, &c, &r);
	perf_record(p, &pt, &r);
	return perf_values_of(&pt, &r).median;
}

/* ---- cross-memory attach ---- */

static void prepare(struct perf *p, void *arg, uint64_t seed)
{
	struct copy *c = arg;
	struct perf_board *b = p->board;

	if (!p->rank) {
		perf_fill(p->tx, c->size, seed);
	} else {
		memset(p->rx, 0xee, c->size);
		/* Rank 0 has not begun, and rank 1 is here. */
		atomic_store(&b->head, 0);
		atomic_store(&b->tail, 0);
		atomic_store(&b->done, 0);
		atomic_store(&b->claimed, 0);
	}
	c->messages = 0;
}

static void verify(struct perf *p, void *arg, uint64_t seed)
{
	struct copy *c = arg;

	if (p->rank && !atomic_load(&p->board->refused))
		perf_verify(p->rx, c->size, seed, "copy");
}

/* Rank 1 pulls or rank 0 pushes [at, at + len); notes a refusal by the system. */
static void attach(struct perf *p, size_t at, size_t len)
{
	struct perf_board *b = p->board;
	pid_t pid = b->side[!p->rank].pid;
	struct iovec mine = { (p->rank ? p->rx : p->tx) + at, len };
	struct iovec theirs = { (char *)(p->rank ? b->side[0].tx : b->side[1].rx) + at, len };
	ssize_t n = p->rank ? process_vm_readv(pid, &mine, 1, &theirs, 1, 0)
			    : process_vm_writev(pid, &mine, 1, &theirs, 1, 0);

	if (n != (ssize_t)len)
		atomic_store(&b->refused, n < 0 ? errno : EIO);
}

/* Rank 1 copies alone and says so by the tail; rank 0 waits for each message. */
static void attach_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct perf_board *b = p->board;
	uint64_t last = perf_now();

	(void)arg;
	for (size_t i = 0; i < samples; i++) {
		uint64_t now;

		atomic_store_explicit(&b->head, i + 1, memory_order_release);
		while (atomic_load_explicit(&b->tail, memory_order_acquire) != i + 1)
			perf_relax();
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
}

static void attach_run1(struct perf *p, void *arg, size_t samples)
{
	struct perf_board *b = p->board;
	struct copy *c = arg;

	for (size_t i = 0; i < samples; i++) {
		while (atomic_load_explicit(&b->head, memory_order_acquire) != i + 1)
			perf_relax();
		attach(p, 0, c->size);
		atomic_store_explicit(&b->tail, i + 1, memory_order_release);
	}
}

/* ---- both sides claim chunks ---- */

/* Takes chunks of message `m` while there are any; the claim word is message << 32 | chunk, so a
 * side that is late cannot take a chunk of a message it does not know of. */
static void claim(struct perf *p, const struct copy *c, uint64_t m)
{
	struct perf_board *b = p->board;
	uint64_t word = atomic_load(&b->claimed), chunks = c->size / PERF_CHUNK_BYTES;

	while (word >> 32 == m && (word & 0xffffffff) < chunks) {
		if (!atomic_compare_exchange_weak(&b->claimed, &word, word + 1))
			continue;
		attach(p, (word & 0xffffffff) * PERF_CHUNK_BYTES, PERF_CHUNK_BYTES);
		atomic_fetch_add(&b->done, 1);
		word = atomic_load(&b->claimed);
	}
}

static void claim_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct perf_board *b = p->board;
	struct copy *c = arg;
	uint64_t last = perf_now(), chunks = c->size / PERF_CHUNK_BYTES;

	for (size_t i = 0; i < samples; i++) {
		uint64_t now;

		atomic_store(&b->claimed, ++c->messages << 32);
		claim(p, c, c->messages);
		while (atomic_load_explicit(&b->done, memory_order_acquire) != (i + 1) * chunks)
			perf_relax();
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
}

static void claim_run1(struct perf *p, void *arg, size_t samples)
{
	struct perf_board *b = p->board;
	struct copy *c = arg;

	for (uint64_t m = 1; m <= samples; m++) {
		while (atomic_load_explicit(&b->claimed, memory_order_acquire) >> 32 < m)
			perf_relax();
		claim(p, c, m);
	}
}

/* ---- a pipeline of two copies through a small ring ---- */

static void pipe_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct perf_board *b = p->board;
	struct copy *c = arg;
	uint64_t last = perf_now(), head = 0, tail = 0;

	for (size_t i = 0; i < samples; i++) {
		uint64_t now;

		for (size_t at = 0; at < c->size; at += PERF_CHUNK_BYTES, head++) {
			while (head - tail >= PERF_PIPE_SLOTS)
				tail = perf_look(&b->tail);
			memcpy(b->pipe + head % PERF_PIPE_SLOTS * PERF_CHUNK_BYTES, p->tx + at,
			       PERF_CHUNK_BYTES);
			atomic_store_explicit(&b->head, head + 1, memory_order_release);
		}
		/* The message counts when its last byte has arrived. */
		while (tail != head)
			tail = perf_look(&b->tail);
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
}

static void pipe_run1(struct perf *p, void *arg, size_t samples)
{
	struct perf_board *b = p->board;
	struct copy *c = arg;
	uint64_t head = 0, tail = 0;

	for (size_t i = 0; i < samples; i++) {
		for (size_t at = 0; at < c->size; at += PERF_CHUNK_BYTES, tail++) {
			while (head == tail)
				head = perf_look(&b->head);
			memcpy(p->rx + at, b->pipe + tail % PERF_PIPE_SLOTS * PERF_CHUNK_BYTES,
			       PERF_CHUNK_BYTES);
			atomic_store_explicit(&b->tail, tail + 1, memory_order_release);
		}
	}
}

/* ---- all of it ---- */

static double across(struct perf *p, size_t size, const char *variant,
		     void (*run0)(struct perf *, void *, size_t, uint64_t *),
		     void (*run1)(struct perf *, void *, size_t))
{
	const struct perf_pattern pattern = { variant, prepare, run0, run1, verify };
	struct perf_point pt = { .test = "floor",
				 .variant = variant,
				 .size = size,
				 .unit = "GB/s",
				 .is_rate = true,
				 .scale = (double)size };
	struct copy c = { .size = size };
	struct perf_result r;

	perf_measure(p, &pattern, &c, &r);
	if (atomic_load(&p->board->refused))
		return 0;
	perf_record(p, &pt, &r);
	return perf_values_of(&pt, &r).median;
}

/* The sizes asked for that are long enough to be moved in chunks; else a fixed set. */
static void choose_sizes(struct perf *p)
{
	struct perf_floor *f = &p->floor;

	for (int i = 0; p->opt.sizes_given && i < p->opt.sizes.count; i++) {
		size_t size = p->opt.sizes.item[i];

		if (size >= LEAST && size <= MOST && !(size % PERF_CHUNK_BYTES) &&
		    f->copies < PERF_COPY_SIZES)
			f->copy[f->copies++].size = size;
	}
	for (size_t size = LEAST; !p->opt.sizes_given && size <= MOST; size *= 2)
		f->copy[f->copies++].size = size;
}

void perf_floor_copy(struct perf *p)
{
	struct perf_floor *f = &p->floor;
	struct perf_board *b = p->board;

	if (f->copy_done)
		return;
	f->copy_done = true;
	if (!b)
		return;
	choose_sizes(p);
	perf_buffers(p, LARGE_COPY);
	b->side[p->rank].pid = getpid();
	b->side[p->rank].tx = p->tx;
	b->side[p->rank].rx = p->rx;
	atomic_store(&b->refused, 0);
	perf_ctl_barrier(p);
	f->memcpy_small = local(p, SMALL_COPY, "memcpy in cache");
	f->memcpy_large = local(p, LARGE_COPY, "memcpy in memory");
	for (int i = 0; i < f->copies; i++) {
		struct perf_copy_floor *c = &f->copy[i];

		c->pipe = across(p, c->size, "pipe", pipe_run0, pipe_run1);
		c->attach = across(p, c->size, "attach", attach_run0, attach_run1);
		c->claims = across(p, c->size, "claims", claim_run0, claim_run1);
		atomic_store(&b->refused, 0);
		perf_ctl_barrier(p);
	}
}

const struct perf_copy_floor *perf_floor_of(const struct perf *p, size_t size)
{
	for (int i = 0; i < p->floor.copies; i++)
		if (p->floor.copy[i].size == size)
			return &p->floor.copy[i];
	return NULL;
}
