/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The copy loops behind packing. All repetitions of a segment are copied together, so that the
 * innermost loop is long. Blocks of the usual sizes have loops of their own. A part of packed
 * data is found by division (loops, blocks) or bisection (lists), never by walking.
 *
 * The typed side is an address, not a pointer: with MPI_BOTTOM it is an offset from nothing.
 * Sums wrap. They are correct because every byte of a type lies within an MPI_Aint of its
 * start.
 */
#include "mpi_shim/datatype/body.h"

#include <string.h>

enum {
	LINE = 64,
	/* bytes of packed data: so much is copied of each entry of a list before the next */
	TILE_BYTES = 8192,
	TILE_BLOCKS = 256,
	SHORT_LIST = 32, /* entries; longer lists are copied one repetition at a time */
	SHORT_LOOP = 8,  /* an inner loop shorter than this is better as the outer one */
	ODD = 128,       /* bytes; up to here a block of any length is copied without a call */
};

#define ALWAYS static inline __attribute__((always_inline))

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A loop over blocks: their number, and their distance at the destination and at the source. */
struct loop {
	size_t n, to, from;
};

/* Copy 1 to ODD bytes, by words that may overlap. */
ALWAYS void odd_block(char *restrict to, const char *restrict from, size_t length)
{
	if (length >= 16) {
		for (size_t i = 0; i + 16 < length; i += 16)
			memcpy(to + i, from + i, 16);
		memcpy(to + length - 16, from + length - 16, 16);
	} else if (length >= 8) {
		memcpy(to, from, 8);
		memcpy(to + length - 8, from + length - 8, 8);
	} else if (length >= 4) {
		memcpy(to, from, 4);
		memcpy(to + length - 4, from + length - 4, 4);
	} else {
		to[0] = from[0];
		to[length / 2] = from[length / 2];
		to[length - 1] = from[length - 1];
	}
}

/*
 * Copy a block. The constants choose how, so that loops over blocks of one length have no
 * branches:
 * - `fixed`: as a constant number of bytes.
 * - `word`: as two words of `word` bytes that may overlap; word <= length <= 2 * word.
 * - both zero: as the length demands.
 */
ALWAYS void block(char *restrict to, const char *restrict from, const size_t fixed,
		  const size_t word, size_t length)
{
	if (fixed) {
		memcpy(to, from, fixed);
	} else if (word) {
		memcpy(to, from, word);
		memcpy(to + length - word, from + length - word, word);
	} else if (length <= ODD) {
		odd_block(to, from, length);
	} else {
		memcpy(to, from, length);
	}
}

/* CALL(fixed, word) with the constants for this length. */
#define DISPATCH(length, CALL)                                                                     \
	switch (length) {                                                                          \
	case 1:                                                                                    \
		CALL(1, 0);                                                                        \
		break;                                                                             \
	case 2:                                                                                    \
		CALL(2, 0);                                                                        \
		break;                                                                             \
	case 4:                                                                                    \
		CALL(4, 0);                                                                        \
		break;                                                                             \
	case 8:                                                                                    \
		CALL(8, 0);                                                                        \
		break;                                                                             \
	case 16:                                                                                   \
		CALL(16, 0);                                                                       \
		break;                                                                             \
	case 24:                                                                                   \
		CALL(24, 0);                                                                       \
		break;                                                                             \
	case 32:                                                                                   \
		CALL(32, 0);                                                                       \
		break;                                                                             \
	case 48:                                                                                   \
		CALL(48, 0);                                                                       \
		break;                                                                             \
	case 64:                                                                                   \
		CALL(64, 0);                                                                       \
		break;                                                                             \
	default:                                                                                   \
		if ((length) < 4)                                                                  \
			CALL(0, 2);                                                                \
		else if ((length) < 8)                                                             \
			CALL(0, 4);                                                                \
		else if ((length) < 16)                                                            \
			CALL(0, 8);                                                                \
		else if ((length) <= 32)                                                           \
			CALL(0, 16);                                                               \
		else if ((length) <= 64)                                                           \
			CALL(0, 32);                                                               \
		else                                                                               \
			CALL(0, 0);                                                                \
	}

ALWAYS void row(char *restrict to, const char *restrict from, struct loop l, const size_t fixed,
		const size_t word, size_t length)
{
	for (; l.n >= 4; l.n -= 4, to += 4 * l.to, from += 4 * l.from) {
		block(to, from, fixed, word, length);
		block(to + l.to, from + l.from, fixed, word, length);
		block(to + 2 * l.to, from + 2 * l.from, fixed, word, length);
		block(to + 3 * l.to, from + 3 * l.from, fixed, word, length);
	}
	for (; l.n > 0; l.n--, to += l.to, from += l.from)
		block(to, from, fixed, word, length);
}

ALWAYS void grid_of(char *to, const char *from, struct loop outer, struct loop inner, size_t tile,
		    const size_t fixed, const size_t word, size_t length)
{
	if (tile == 0) {
		for (; outer.n > 0; outer.n--, to += outer.to, from += outer.from)
			row(to, from, inner, fixed, word, length);
		return;
	}
	while (outer.n > 0) {
		struct loop some = outer;

		if (some.n > tile)
			some.n = tile;
		for (size_t i = 0; i < inner.n; i++)
			row(to + i * inner.to, from + i * inner.from, some, fixed, word, length);
		outer.n -= some.n;
		to += some.n * outer.to;
		from += some.n * outer.from;
	}
}

static size_t prefetch_distance(size_t step)
{
	return (MPI_Aint)step < 0 ? 0 - step : step;
}

/*
 * Return how many steps of the outer loop go inside at a time; 0: none. That pays if the inner
 * loop is short. It also pays if the inner loop steps from line to line of memory and the outer
 * one from byte to byte, as in a transposition: each line is then fetched once.
 */
static size_t outer_tile(const struct loop *outer, const struct loop *inner, size_t length)
{
	size_t outer_step, inner_step;

	if (outer->n < 2)
		return 0;
	if (inner->n < SHORT_LOOP && outer->n > inner->n)
		return TILE_BLOCKS;
	outer_step = prefetch_distance(outer->to < outer->from ? outer->to : outer->from);
	inner_step = prefetch_distance(inner->to > inner->from ? inner->to : inner->from);
	if (length < LINE && inner_step >= LINE && outer_step < LINE && outer_step > 0)
		return (LINE + outer_step - 1) / outer_step;
	return 0;
}

static void grid(char *to, const char *from, struct loop outer, struct loop inner, size_t length)
{
	size_t tile = outer_tile(&outer, &inner, length);

#define GRID(fixed, word) grid_of(to, from, outer, inner, tile, fixed, word, length)
	DISPATCH(length, GRID)
#undef GRID
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Repetitions of a segment: their number, and their distance on the typed and on the packed
 * side. */
struct reps {
	size_t n, mem, packed;
};

static const struct reps once = { .n = 1 };

static void copy_runs(bool packing, uintptr_t mem, char *packed, struct reps outer,
		      struct reps inner, size_t length)
{
	if (packing)
		grid(packed, (const char *)mem, (struct loop){ outer.n, outer.packed, outer.mem },
		     (struct loop){ inner.n, inner.packed, inner.mem }, length);
	else
		grid((char *)mem, packed, (struct loop){ outer.n, outer.mem, outer.packed },
		     (struct loop){ inner.n, inner.mem, inner.packed }, length);
}

ALWAYS void copy_block(bool packing, uintptr_t mem, char *packed, const size_t fixed,
		       const size_t word, size_t length)
{
	if (packing)
		block(packed, (const char *)mem, fixed, word, length);
	else
		block((char *)mem, packed, fixed, word, length);
}

ALWAYS void copy_blocks_of(bool packing, uintptr_t mem, char *packed, const uint32_t *offset32,
			   size_t n, const size_t fixed, const size_t word, size_t length)
{
	const size_t step = fixed ? fixed : length;

	for (; n >= 4; n -= 4, offset32 += 4, packed += 4 * step) {
		for (size_t i = 0; i < 4; i++)
			copy_block(packing, mem + offset32[i], packed + i * step, fixed, word,
				   length);
	}
	for (size_t i = 0; i < n; i++)
		copy_block(packing, mem + offset32[i], packed + i * step, fixed, word, length);
}

static void copy_blocks(bool packing, uintptr_t mem, char *packed, const uint32_t *offset32,
			size_t n, size_t length)
{
	if (packing) {
#define PACK(fixed, word) copy_blocks_of(true, mem, packed, offset32, n, fixed, word, length)
		DISPATCH(length, PACK)
#undef PACK
	} else {
#define UNPACK(fixed, word) copy_blocks_of(false, mem, packed, offset32, n, fixed, word, length)
		DISPATCH(length, UNPACK)
#undef UNPACK
	}
}

static void copy_run_list(bool packing, uintptr_t mem, char *packed, const struct mpi_run *run,
			  size_t n)
{
	size_t first = run[0].start;

	for (size_t i = 0; i < n; i++)
		copy_block(packing, mem + (size_t)run[i].offset, packed + (run[i].start - first), 0,
			   0, run[i + 1].start - run[i].start);
}

static void copy_segment(bool packing, const struct mpi_segment *p, uintptr_t mem, char *packed,
			 struct reps reps);

/* Entry i of a shape of any kind; *start is its position in packed data. */
static struct mpi_segment entry(const struct mpi_shape *s, size_t i, size_t *start)
{
	switch (s->kind) {
	case MPI_SHAPE_BLOCKS:
		*start = i * s->length;
		return (struct mpi_segment){ (MPI_Aint)((size_t)s->base + s->offset32[i]),
					     s->length, NULL };
	case MPI_SHAPE_RUNS:
		*start = s->run[i].start;
		return (struct mpi_segment){ s->run[i].offset,
					     s->run[i + 1].start - s->run[i].start, NULL };
	case MPI_SHAPE_LIST:
		*start = s->start[i];
		return s->segment[i];
	case MPI_SHAPE_LOOP:
		break;
	}
	*start = i * s->each.size;
	return (struct mpi_segment){ (MPI_Aint)(i * (size_t)s->stride), s->each.size,
				     s->each.shape };
}

/* Copy entries [i, i + n) of a shape, once. */
static void copy_entries(bool packing, const struct mpi_shape *s, size_t i, size_t n, uintptr_t mem,
			 char *packed)
{
	size_t first, start;

	switch (s->kind) {
	case MPI_SHAPE_BLOCKS:
		copy_blocks(packing, mem + (size_t)s->base, packed, s->offset32 + i, n, s->length);
		return;
	case MPI_SHAPE_RUNS:
		copy_run_list(packing, mem, packed, s->run + i, n);
		return;
	case MPI_SHAPE_LOOP:
		copy_segment(packing, &s->each, mem + i * (size_t)s->stride, packed,
			     (struct reps){ n, (size_t)s->stride, s->each.size });
		return;
	case MPI_SHAPE_LIST:
		break;
	}
	entry(s, i, &first);
	for (size_t end = i + n; i < end; i++) {
		struct mpi_segment e = entry(s, i, &start);

		copy_segment(packing, &e, mem, packed + (start - first), once);
	}
}

/* Copy each entry for all repetitions, a few KiB of packed data at a time. */
static void copy_across(bool packing, const struct mpi_shape *s, size_t size, uintptr_t mem,
			char *packed, struct reps reps)
{
	size_t tile = TILE_BYTES / size + 1, start;

	while (reps.n > 0) {
		struct reps some = reps;

		if (some.n > tile)
			some.n = tile;
		for (size_t i = 0; i < s->n; i++) {
			struct mpi_segment e = entry(s, i, &start);

			copy_segment(packing, &e, mem, packed + start, some);
		}
		reps.n -= some.n;
		mem += some.n * reps.mem;
		packed += some.n * reps.packed;
	}
}

static void copy_segment(bool packing, const struct mpi_segment *p, uintptr_t mem, char *packed,
			 struct reps reps)
{
	const struct mpi_shape *s = p->shape;
	bool loop;

	mem += (size_t)p->offset;
	if (!s) {
		copy_runs(packing, mem, packed, once, reps, p->size);
		return;
	}
	loop = s->kind == MPI_SHAPE_LOOP;
	if (loop && !s->each.shape) {
		copy_runs(packing, mem, packed, reps,
			  (struct reps){ s->n, (size_t)s->stride, s->each.size }, s->each.size);
		return;
	}
	if (reps.n > 1 && s->n <= (loop ? SHORT_LOOP : SHORT_LIST) && reps.n >= s->n) {
		copy_across(packing, s, p->size, mem, packed, reps);
		return;
	}
	for (; reps.n > 0; reps.n--, mem += reps.mem, packed += reps.packed)
		copy_entries(packing, s, 0, s->n, mem, packed);
}

/* ---- parts of segments ----------------------------------------------------------------------- */

/* The entry that contains byte `from` of the packed data. */
static size_t find_run(const struct mpi_shape *s, size_t from)
{
	size_t low = 0, high = s->n;

	if (s->kind == MPI_SHAPE_LOOP)
		return from / s->each.size;
	if (s->kind == MPI_SHAPE_BLOCKS)
		return from / s->length;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		size_t start = s->kind == MPI_SHAPE_RUNS ? s->run[middle].start : s->start[middle];

		if (start <= from)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Copy bytes [from, from + n) of the packed form of p, n > 0. `packed` is the address of the
 * first. */
static void copy_part_of_segment(bool packing, const struct mpi_segment *p, uintptr_t mem,
				 char *packed, size_t from, size_t n)
{
	const struct mpi_shape *s = p->shape;
	size_t i, last, start, end = from + n;
	struct mpi_segment e;

	mem += (size_t)p->offset;
	if (!s) {
		copy_block(packing, mem + from, packed, 0, 0, n);
		return;
	}
	i = find_run(s, from);
	e = entry(s, i, &start);
	if (start < from || start + e.size > end) {
		n = start + e.size < end ? start + e.size - from : end - from;
		copy_part_of_segment(packing, &e, mem, packed, from - start, n);
		packed += n;
		from += n;
		i++;
		if (from == end)
			return;
	}
	if (end == p->size) {
		copy_entries(packing, s, i, s->n - i, mem, packed);
		return;
	}
	last = find_run(s, end);
	if (last > i)
		copy_entries(packing, s, i, last - i, mem, packed);
	e = entry(s, last, &start);
	if (end > start)
		copy_part_of_segment(packing, &e, mem, packed + (start - from), 0, end - start);
}

static void copy_packed(bool packing, const struct mpi_type *t, uintptr_t mem, MPI_Count count,
			size_t from, char *packed, size_t n)
{
	const struct mpi_segment *p = &t->body->segment;
	struct mpi_shape all;
	struct mpi_segment whole;

	if (n == 0)
		return;
	if (t->dense) {
		copy_block(packing, mem + (size_t)t->true_lb + from, packed, 0, 0, n);
		return;
	}
	if (count == 1) {
		copy_part_of_segment(packing, p, mem, packed, from, n);
		return;
	}
	all = (struct mpi_shape){ .kind = MPI_SHAPE_LOOP,
				  .n = (size_t)count,
				  .stride = t->extent,
				  .each = { .size = p->size, .shape = p->shape } };
	whole = (struct mpi_segment){ p->offset, (size_t)count * p->size, &all };
	copy_part_of_segment(packing, &whole, mem, packed, from, n);
}

void mpi_type_pack_bytes(const struct mpi_type *t, const void *buf, MPI_Count count, size_t from,
			 void *out, size_t n)
{
	copy_packed(true, t, (uintptr_t)buf, count, from, out, n);
}

void mpi_type_unpack_bytes(const struct mpi_type *t, void *buf, MPI_Count count, size_t from,
			   const void *in, size_t n)
{
	/* only read from: `packing` is false */
	copy_packed(false, t, (uintptr_t)buf, count, from, (char *)(uintptr_t)in, n);
}
