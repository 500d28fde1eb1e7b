/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collective access: all ranks of a file move data with one call.
 *
 * Long extents each rank moves by itself, without a copy in between. Short extents that lie close
 * together go through an image of the file (twophase.c), so that the file system gets a few long
 * transfers. All ranks decide from the same words, which they exchange first.
 */
#include <sys/stat.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/io/io.h"

/* Extents that are shorter on average go through the image, if at least one byte in SPARSE of the
 * range is accessed. A system call for a longer one costs less than its second copy. A hint may
 * ask for it; but not for a longer range of which hardly anything is accessed. */
enum { EXTENT_SHORT = 8192, SPARSE = 4, SPARSE_ASKED = 1024, RANGE_SHORT = 1 << 20 };

/* The words of a rank on its part of an access, and its hints. */
struct part {
	int64_t error, writes;
	int64_t from, to, bytes; /* its range of the file and the data in it */
	int64_t extent;          /* bytes of an extent on average */
	int64_t apart;           /* it has to access the file by itself */
	int64_t choice;          /* enum mpi_hint_choice */
	int64_t aggregators, buffer, unit;
};

/* ---- this rank's part ------------------------------------------------------------------------ */

/* The mean of the first extents stands for all. */
int64_t mpi_transfer_mean(const struct mpi_transfer *a)
{
	struct mpi_extents places;
	uint64_t bytes = 0;

	mpi_view_extents(&places, &a->file->view, a->from, a->from + a->bytes);
	mpi_extents_peek(&places);
	for (int i = 0; i < places.n; i++)
		bytes += places.extent[i].bytes;
	return places.n ? (int64_t)(bytes / (uint64_t)places.n) : INT64_MAX;
}

static int64_t unit_of(const struct mpi_file *file)
{
	struct stat st;

	int64_t unit = file->hints.striping_unit;

	if (!unit && fstat(file->fd, &st) == 0)
		unit = st.st_blksize;
	return unit > 0 && unit <= MPI_TWOPHASE_MOST ? unit : 4096;
}

static struct part describe_part(const struct mpi_transfer *a, int err)
{
	const struct mpi_file *file = a->file;
	struct part p = { .error = mpi_error_class_of(err),
			  .writes = a->writes,
			  .from = INT64_MAX,
			  .extent = INT64_MAX,
			  .apart = file->atomic || !file->view.sorted,
			  .choice = a->writes ? file->hints.cb_write : file->hints.cb_read,
			  .aggregators = file->hints.cb_nodes,
			  .buffer = file->hints.cb_buffer_size };

	if (file->comm->rank == 0)
		p.unit = unit_of(file);
	if (err || a->bytes == 0)
		return p;
	mpi_transfer_range(a, &p.from, &p.to);
	p.bytes = (int64_t)a->bytes;
	p.extent = mpi_transfer_mean(a);
	return p;
}

/* ---- the decision ---------------------------------------------------------------------------- */

static int agree_on_parts(const struct part *part, int n, int err)
{
	if (err)
		return err;
	for (int i = 0; i < n; i++)
		if (part[i].error)
			return mpi_fail((int)part[i].error, "another rank failed: %s",
					mpi_error_text((int)part[i].error));
	for (int i = 1; i < n; i++)
		if (part[i].writes != part[0].writes)
			return mpi_fail(MPI_ERR_NOT_SAME, "whether it reads or writes differs "
							  "among the ranks of the file");
	return MPI_SUCCESS;
}

/* Whether the ranges of the ranks have no gaps and follow each other. */
static bool are_blocks(const struct part *part, int n)
{
	int64_t end = 0;

	for (int i = 0; i < n; i++) {
		if (part[i].bytes == 0)
			continue;
		if (part[i].from < end || part[i].bytes != part[i].to - part[i].from)
			return false;
		end = part[i].to;
	}
	return true;
}

/* Whether the extents are close together, and short. The sums are rough on purpose: they cannot
 * overflow. `asked`: by a hint. */
static bool is_worth_it(const struct part *part, int n, int64_t range, bool asked)
{
	double extents = 0, bytes = 0;

	for (int i = 0; i < n; i++) {
		if (part[i].bytes)
			extents += (double)part[i].bytes / (double)part[i].extent;
		bytes += (double)part[i].bytes;
	}
	if (asked)
		return range <= RANGE_SHORT || bytes * SPARSE_ASKED >= (double)range;
	return bytes < extents * EXTENT_SHORT && bytes * SPARSE >= (double)range &&
	       !are_blocks(part, n);
}

/* Whether the image is used, and how. The same on all ranks. */
static bool use_image(const struct part *part, int n, struct mpi_twophase *how)
{
	enum mpi_hint_choice choice = (enum mpi_hint_choice)part[0].choice;

	*how = (struct mpi_twophase){ .from = INT64_MAX,
				      .aggregators = (int)part[0].aggregators,
				      .buffer = part[0].buffer,
				      .unit = part[0].unit };
	for (int i = 0; i < n; i++) {
		how->from = part[i].from < how->from ? part[i].from : how->from;
		how->to = part[i].to > how->to ? part[i].to : how->to;
		if (part[i].apart)
			return false;
	}
	if (choice == MPI_HINT_DISABLE || how->to <= how->from)
		return false;
	return is_worth_it(part, n, how->to - how->from, choice == MPI_HINT_ENABLE);
}

/* ---- the access ------------------------------------------------------------------------------ */

static int exchange_access(const struct mpi_transfer *a, int err)
{
	struct mpi_file *file = a->file;
	struct part mine = describe_part(a, err);
	int rc = mpi_coll_allgather_bytes(&mine, file->parts, sizeof(mine), file->comm);

	return agree_on_parts(file->parts, file->comm->size, err ? err : rc);
}

size_t mpi_transfer_parts(const struct mpi_comm *comm)
{
	return (size_t)comm->size * sizeof(struct part);
}

int mpi_transfer_together(struct mpi_transfer *a, int err)
{
	struct mpi_file *file = a->file;
	const struct part *part = file->parts;
	struct mpi_comm *comm = file->comm;
	struct mpi_twophase how;

	if (comm->size == 1)
		return err ? err : mpi_transfer_alone(a);
	err = exchange_access(a, err);
	if (!err && use_image(part, comm->size, &how) && mpi_twophase_ready(file, &how))
		err = mpi_twophase_run(a, &how);
	else if (!err)
		err = mpi_transfer_alone(a);
	return mpi_file_agree(comm, err, 0, "");
}
