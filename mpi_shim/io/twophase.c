/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Two-phase access ("Data Sieving and Collective I/O in ROMIO", Thakur, Gropp, Lusk), by memory
 * that all ranks of a node share.
 *
 * The memory is an image of a part of the file, and goes over the range of the access in rounds. To
 * write, each rank copies its extents to their places in the image; then each aggregator writes its
 * part of the image. To read it is the other way round. There are two halves: ranks fill one of
 * them while aggregators still write the other. So a round needs one agreement of the ranks, which
 * tells errors to all as well.
 *
 * Bytes between the extents are never written. An aggregator writes its part in one transfer only
 * if the extents cover the whole round. Each rank adds up hash(end) - hash(begin) of its extents.
 * If they cover the round once, these sums add up to that of the round. Else they do not, but for
 * one case in 2^64. If there are gaps ranks mark their extents in a map of bytes, and aggregators
 * write the runs of marked bytes.
 *
 * Needs all ranks on one node. A range that is sparse in its data goes through it as well, if it is
 * asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/comm/comm.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/node.h"
#include "mpi_shim/core/node_segment.h"
#include "mpi_shim/io/io.h"

enum {
	PAGE = 4096,
	PACKED = 256 << 10 /* memory with gaps is packed into so many bytes at a time */
};

/* A rank's word to the others in a round. */
struct slot {
	_Alignas(64) uint64_t sum; /* hashes of its extents */
	int64_t end;               /* the end of the file, if it has found it */
};

/* The shared memory as this process has it: slots of both halves, maps, images. */
struct mpi_image {
	char *memory; /* NULL: it could not be made, and need not be tried again */
	size_t bytes;
	int64_t half; /* bytes of the image in a half */
	struct slot *slot[2];
	unsigned char *map[2];
	char *data[2];
};

/* ---- the shared memory ----------------------------------------------------------------------- */

static int64_t up_to_unit(int64_t n, int64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Bytes of a round: buffers of all aggregators, but no more than the range needs. */
static int64_t half_for(const struct mpi_twophase *how)
{
	int64_t range = how->to - how->from, most = MPI_TWOPHASE_MOST, half = PAGE;

	if (how->buffer < MPI_TWOPHASE_MOST / how->aggregators)
		most = how->buffer * how->aggregators;
	while (half < how->unit || (half < most && half < range))
		half *= 2;
	return half;
}

static void lay_out_image(struct mpi_image *image, int ranks, int64_t half)
{
	size_t slots = (size_t)up_to_unit(ranks * (int64_t)sizeof(struct slot), PAGE);

	image->half = half;
	for (int i = 0; i < 2; i++) {
		image->slot[i] = (void *)(image->memory + PAGE + (size_t)i * slots);
		image->map[i] = (void *)(image->memory + PAGE + 2 * slots + (size_t)(i * half));
		image->data[i] = image->memory + PAGE + 2 * slots + (size_t)((2 + i) * half);
	}
}

static size_t bytes_for(int ranks, int64_t half)
{
	size_t slots = (size_t)up_to_unit(ranks * (int64_t)sizeof(struct slot), PAGE);

	return PAGE + 2 * slots + 4 * (size_t)half;
}

/* All ranks map what rank 0 offers. False on all: one of them cannot. */
static bool share_memory(struct mpi_image *image, struct mpi_comm *comm)
{
	struct mpi_node_segment_key key = { .token = 0 };
	int64_t failed;
	int err;

	if (comm->rank == 0)
		image->memory = mpi_node_segment_offer(image->bytes, &key);
	err = mpi_coll_bcast_bytes(&key, sizeof(key), 0, comm);
	if (!err && comm->rank != 0)
		image->memory = mpi_node_segment_join(image->bytes, &key);
	failed = !image->memory;
	err = mpi_coll_allreduce_max(&failed, 1, comm);
	if (comm->rank == 0)
		mpi_node_segment_settle(&key);
	if (!err && !failed)
		return true;
	mpi_node_segment_leave(image->memory, image->bytes);
	image->memory = NULL;
	return false;
}

void mpi_twophase_end(struct mpi_file *file)
{
	if (!file->image)
		return;
	mpi_node_segment_leave(file->image->memory, file->image->bytes);
	free(file->image);
	file->image = NULL;
}

bool mpi_twophase_ready(struct mpi_file *file, const struct mpi_twophase *how)
{
	struct mpi_comm *comm = file->comm;
	struct mpi_image *image = file->image;
	int64_t half = half_for(how), failed;

	if (image && (!image->memory || half <= image->half))
		return image->memory;
	mpi_twophase_end(file);
	image = calloc(1, sizeof(*image));
	failed = !image;
	if (!mpi_file_on_one_node(comm)) {
		file->image = image;
		return false;
	}
	if (mpi_coll_allreduce_max(&failed, 1, comm) || failed || !image) {
		free(image); /* all ranks try again at the next access */
		return false;
	}
	image->bytes = bytes_for(comm->size, half);
	file->image = image;
	if (share_memory(image, comm))
		lay_out_image(image, comm->size, half);
	return image->memory;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

struct rounds {
	struct mpi_transfer *a;
	const struct mpi_twophase *how;
	struct mpi_image *image;
	struct mpi_extents places; /* of the data that are not moved yet, in the file */
	uint64_t moved;            /* between the image and `packed` */
	/* Memory without gaps; or data bytes of it: of `have` bytes `used` are moved. */
	char *packed;
	size_t have, used;
	bool dense;
	int half;         /* of this round */
	int64_t from, to; /* range of this round */
};

static struct slot *words_of(const struct rounds *r, int rank)
{
	return &r->image->slot[r->half][rank];
}

/* ---- extents between memory and image -------------------------------------------------------- */

static uint64_t place_hash(int64_t place)
{
	uint64_t x = (uint64_t)place * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 29;
}

static int packed_begin(struct rounds *r)
{
	const struct mpi_transfer *a = r->a;

	r->dense = a->type->dense;
	if (r->dense) {
		r->packed = (char *)a->buf + a->type->true_lb;
		r->have = (size_t)a->bytes;
		return MPI_SUCCESS;
	}
	r->packed = malloc(PACKED);
	if (!r->packed)
		return mpi_fail_memory("a buffer for the data of a file");
	r->have = a->writes ? 0 : a->bytes < PACKED ? (size_t)a->bytes : PACKED;
	return MPI_SUCCESS;
}

/* Store what was read. */
static void packed_flush(struct rounds *r)
{
	if (!r->dense && !r->a->writes && r->used)
		mpi_type_unpack_bytes(r->a->type, r->a->buf, r->a->count, r->moved - r->used,
				      r->packed, r->used);
	if (!r->dense)
		r->used = 0;
}

/* Make the next bytes of memory ready, if there are none. */
static void packed_next(struct rounds *r)
{
	uint64_t left = r->a->bytes - r->moved;

	if (r->used < r->have)
		return;
	packed_flush(r);
	r->have = left < PACKED ? (size_t)left : PACKED;
	if (r->a->writes)
		mpi_type_pack_bytes(r->a->type, r->a->buf, r->a->count, r->moved, r->packed,
				    r->have);
}

/* Short extents are frequent, and a call takes longer than the copy. */
static inline void copy_extent(char *to, const char *from, size_t bytes)
{
	switch (bytes) {
	case 4:
		memcpy(to, from, 4);
		break;
	case 8:
		memcpy(to, from, 8);
		break;
	case 16:
		memcpy(to, from, 16);
		break;
	case 64:
		memcpy(to, from, 64);
		break;
	default:
		memcpy(to, from, bytes);
	}
}

/* Move the extents of this round that lie before `end`. Returns the sum of their hashes. */
static uint64_t move_round(struct rounds *r, int64_t end)
{
	char *image = r->image->data[r->half];
	bool writes = r->a->writes;
	const struct mpi_extent *e;
	uint64_t sum = 0;

	while ((e = mpi_extents_peek(&r->places)) && e->at < end) {
		uint64_t bytes = e->bytes;
		char *there = image + (e->at - r->from);

		packed_next(r);
		if (bytes > (uint64_t)(end - e->at))
			bytes = (uint64_t)(end - e->at);
		if (bytes > r->have - r->used)
			bytes = r->have - r->used;
		if (writes) {
			copy_extent(there, r->packed + r->used, (size_t)bytes);
			sum += place_hash(e->at + (int64_t)bytes) - place_hash(e->at);
		} else {
			copy_extent(r->packed + r->used, there, (size_t)bytes);
		}
		r->used += (size_t)bytes;
		r->moved += bytes;
		mpi_extents_skip(&r->places, bytes);
	}
	return sum;
}

/* Mark the extents of this round, from where the walk was before it. */
static void mark_extents(const struct rounds *r, struct mpi_extents *places)
{
	const struct mpi_extent *e;

	while ((e = mpi_extents_peek(places)) && e->at < r->to) {
		uint64_t bytes = e->bytes;

		if (bytes > (uint64_t)(r->to - e->at))
			bytes = (uint64_t)(r->to - e->at);
		memset(r->image->map[r->half] + (e->at - r->from), 1, (size_t)bytes);
		mpi_extents_skip(places, bytes);
	}
}

/* ---- aggregators ----------------------------------------------------------------------------- */

/* The place in the file where the part of an aggregator begins, of this round. */
static int64_t share_begin(const struct rounds *r, int aggregator)
{
	int64_t unit = r->how->unit, base = r->from / unit * unit;
	int64_t each = (r->to - base + r->how->aggregators - 1) / r->how->aggregators;
	int64_t before = aggregator * up_to_unit(each, unit);

	if (before >= r->to - base)
		return r->to;
	return base + before < r->from ? r->from : base + before;
}

/* The part of this rank; it may be empty. */
static void find_part(const struct rounds *r, int64_t *from, int64_t *to)
{
	int ranks = r->a->file->comm->size, rank = r->a->file->comm->rank;
	int n = r->how->aggregators, i = (int)((int64_t)rank * n / ranks);

	*from = *to = r->from;
	/* aggregator i is the first rank with this number: they are spread over the ranks */
	if (rank > 0 && (int)((int64_t)(rank - 1) * n / ranks) == i)
		return;
	*from = share_begin(r, i);
	*to = share_begin(r, i + 1);
}

static int write_image(const struct rounds *r, int64_t from, int64_t to)
{
	uint64_t moved = 0;

	return mpi_disk_write(r->a->file, from, r->image->data[r->half] + (from - r->from),
			      (size_t)(to - from), &moved);
}

/* Write the runs of marked bytes of this rank's part, and clear their marks. */
static int write_marked(const struct rounds *r)
{
	unsigned char *map = r->image->map[r->half];
	int64_t at, to;
	int err = MPI_SUCCESS;

	find_part(r, &at, &to);
	while (at < to) {
		unsigned char *first = memchr(map + (at - r->from), 1, (size_t)(to - at)), *end;
		size_t left;

		if (!first)
			break;
		at = r->from + (first - map);
		left = (size_t)(to - at);
		end = memchr(first, 0, left);
		if (!end)
			end = first + left;
		if (!err)
			err = write_image(r, at, at + (end - first));
		memset(first, 0, (size_t)(end - first));
		at += end - first;
	}
	return err;
}

static int write_all(const struct rounds *r)
{
	int64_t from, to;

	find_part(r, &from, &to);
	return from < to ? write_image(r, from, to) : MPI_SUCCESS;
}

static int read_part(const struct rounds *r)
{
	struct slot *mine = words_of(r, r->a->file->comm->rank);
	uint64_t moved = 0;
	int64_t from, to;
	int err;

	find_part(r, &from, &to);
	mine->end = INT64_MAX;
	if (from == to)
		return MPI_SUCCESS;
	err = mpi_disk_read(r->a->file, from, r->image->data[r->half] + (from - r->from),
			    (size_t)(to - from), &moved);
	if (moved < (uint64_t)(to - from))
		mine->end = from + (int64_t)moved;
	return err;
}

/* ---- the two phases -------------------------------------------------------------------------- */

/* Whether the extents of all ranks cover the round. */
static bool is_covered(const struct rounds *r)
{
	uint64_t sum = place_hash(r->to) - place_hash(r->from);

	for (int i = 0; i < r->a->file->comm->size; i++)
		sum -= words_of(r, i)->sum;
	return sum == 0;
}

static int64_t file_end(const struct rounds *r)
{
	int64_t end = INT64_MAX;

	for (int i = 0; i < r->a->file->comm->size; i++)
		if (words_of(r, i)->end < end)
			end = words_of(r, i)->end;
	return end;
}

/*
 * A round returns true on all ranks alike if it is the last. *err: this rank's error; the others
 * get to know it in the next round, or when all are over.
 */
static bool write_round(struct rounds *r, int *err)
{
	struct mpi_comm *comm = r->a->file->comm;
	struct mpi_extents before = r->places;

	words_of(r, comm->rank)->sum = move_round(r, r->to);
	*err = mpi_file_agree(comm, *err, 0, "");
	if (*err)
		return true;
	if (is_covered(r)) {
		*err = write_all(r);
		return false;
	}
	mark_extents(r, &before);
	*err = mpi_file_agree(comm, MPI_SUCCESS, 0, "");
	if (*err)
		return true;
	*err = write_marked(r);
	return false;
}

static bool read_round(struct rounds *r, int *err)
{
	int64_t end;

	*err = mpi_file_agree(r->a->file->comm, read_part(r), 0, "");
	if (*err)
		return true;
	end = file_end(r);
	move_round(r, end < r->to ? end : r->to);
	return end < r->to;
}

static int run_rounds(struct rounds *r)
{
	int64_t unit = r->how->unit, half = r->image->half;
	int64_t step = half / unit * unit;
	bool last = false;
	int err = MPI_SUCCESS;

	for (r->from = r->how->from; !last && r->from < r->how->to; r->from = r->to) {
		int64_t base = r->from / unit * unit;

		r->to = r->how->to - base > step ? base + step : r->how->to;
		last = r->a->writes ? write_round(r, &err) : read_round(r, &err);
		r->half = !r->half;
	}
	return err;
}

int mpi_twophase_run(struct mpi_transfer *a, const struct mpi_twophase *how)
{
	struct rounds r = { .a = a, .how = how, .image = a->file->image };
	int err = packed_begin(&r);

	/* memory may be missing at one rank only */
	err = mpi_file_agree(a->file->comm, err, 0, "");
	if (!err) {
		mpi_view_extents(&r.places, &a->file->view, a->from, a->from + a->bytes);
		err = run_rounds(&r);
		packed_flush(&r);
		a->moved = err && a->writes ? 0 : r.moved;
	}
	if (!r.dense)
		free(r.packed);
	return err;
}
