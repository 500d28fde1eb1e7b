/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How fast an MPI reads and writes files, in GB/s of all ranks: contiguous, strided, and a
 * subarray; independently and together. Beside them the same contiguous bytes by plain pwrite and
 * pread, and how much of the processor a 64 MiB non-blocking write leaves to the program.
 *
 * Usage: files LINE-FILE MIN-MS REPEAT NAME FOLDER [BLOCK...]
 * NAME: of the kind of file system, for the figures. FOLDER: where the file is made. BLOCK: bytes
 * of a block of the strided access.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ptlperf/clock.h"
#include "measure.h"

enum { RANK_BYTES = 1 << 20, LONG_BYTES = 64 << 20 };

static char path[512];
static const char *kind;
static char *memory;

/* ---- accesses -------------------------------------------------------------------------------- */

struct job {
	MPI_File file;
	int fd;
	bool together, writes, plain;
};

static void access_file(const struct job *j)
{
	off_t at = (off_t)bench_rank * RANK_BYTES;
	int err;

	if (j->plain) {
		ssize_t moved = j->writes ? pwrite(j->fd, memory, RANK_BYTES, at)
					  : pread(j->fd, memory, RANK_BYTES, at);

		if (moved != RANK_BYTES)
			bench_fail("%s: %zd bytes instead of %d", path, moved, RANK_BYTES);
		return;
	}
	if (j->together && j->writes)
		err = MPI_File_write_at_all(j->file, 0, memory, RANK_BYTES, MPI_BYTE,
					    MPI_STATUS_IGNORE);
	else if (j->together)
		err = MPI_File_read_at_all(j->file, 0, memory, RANK_BYTES, MPI_BYTE,
					   MPI_STATUS_IGNORE);
	else if (j->writes)
		err = MPI_File_write_at(j->file, 0, memory, RANK_BYTES, MPI_BYTE,
					MPI_STATUS_IGNORE);
	else
		err = MPI_File_read_at(j->file, 0, memory, RANK_BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
	if (err != MPI_SUCCESS)
		bench_fail("%s: error %d", path, err);
}

static void run(void *arg, int count, uint64_t *ticks)
{
	uint64_t last, now;

	MPI_Barrier(MPI_COMM_WORLD);
	last = perf_now();
	for (int i = 0; i < count; i++) {
		access_file(arg);
		MPI_Barrier(MPI_COMM_WORLD);
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

static void measure_access(struct job *j, const char *variant, long size)
{
	struct perf_stats s = bench_measure(run, j, BENCH_EACH);
	double bytes = (double)RANK_BYTES * bench_ranks;
	char test[64], label[64];

	snprintf(test, sizeof(test), "files_%s%s",
		 j->plain      ? "plain_"
		 : j->together ? "together_"
			       : "alone_",
		 j->writes ? "write" : "read");
	snprintf(label, sizeof(label), "%s, %s", kind, variant);
	bench_print(test, label, size, "GB/s", bytes / s.median, bytes / s.p99, bytes / s.min);
}

/* ---- views ----------------------------------------------------------------------------------- */

/* Blocks of all ranks in turn. */
static MPI_Datatype strided(int block, MPI_Offset *disp)
{
	MPI_Datatype bytes, t;

	MPI_Type_contiguous(block, MPI_BYTE, &bytes);
	MPI_Type_create_resized(bytes, 0, (MPI_Aint)block * bench_ranks, &t);
	MPI_Type_free(&bytes);
	*disp = (MPI_Offset)block * bench_rank;
	return t;
}

/* A matrix of 1024 rows, of which each rank has a band of columns. */
static MPI_Datatype subarray(MPI_Offset *disp)
{
	int rows = 1024, columns = RANK_BYTES / 1024;
	int size[2] = { rows, columns * bench_ranks }, part[2] = { rows, columns };
	int start[2] = { 0, columns * bench_rank };
	MPI_Datatype t;

	MPI_Type_create_subarray(2, size, part, start, MPI_ORDER_C, MPI_BYTE, &t);
	*disp = 0;
	return t;
}

/* Write first: so there is what is read. */
static void both_ways(struct job *j, const char *variant, long size)
{
	j->writes = true;
	measure_access(j, variant, size);
	j->writes = false;
	measure_access(j, variant, size);
}

static void with_view(struct job *j, MPI_Datatype view, MPI_Offset disp, const char *variant,
		      long size)
{
	MPI_Type_commit(&view);
	MPI_File_set_view(j->file, disp, MPI_BYTE, view, "native", MPI_INFO_NULL);
	MPI_Type_free(&view);
	for (int together = 0; together < 2; together++) {
		j->together = together;
		both_ways(j, variant, size);
	}
}

static void contiguous(struct job *j)
{
	MPI_Datatype view;

	j->plain = true;
	both_ways(j, "contiguous", RANK_BYTES);
	j->plain = false;
	MPI_Type_contiguous(RANK_BYTES, MPI_BYTE, &view);
	with_view(j, view, (MPI_Offset)bench_rank * RANK_BYTES, "contiguous", RANK_BYTES);
}

/* ---- overlap --------------------------------------------------------------------------------- */

/* Counts what the program can do in some time. */
static double work(double ticks)
{
	volatile uint64_t n = 0;
	uint64_t begin = perf_now();

	while ((double)(perf_now() - begin) < ticks)
		n++;
	return (double)n;
}

/* The part of its work, in percent, that the program can do while 64 MiB are written, as long as
 * the write lasts. One rank: the others wait. */
static void overlap(const struct job *j)
{
	char *data = malloc(LONG_BYTES);
	double alone, free_rate, done;
	MPI_Request r;
	uint64_t begin;

	if (!data)
		bench_fail("out of memory");
	memset(data, 1, LONG_BYTES);
	MPI_File_write_at(j->file, 0, data, LONG_BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
	begin = perf_now();
	MPI_File_write_at(j->file, 0, data, LONG_BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
	alone = (double)(perf_now() - begin);
	free_rate = work(alone) / alone;
	begin = perf_now();
	MPI_File_iwrite_at(j->file, 0, data, LONG_BYTES, MPI_BYTE, &r);
	done = work(alone);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	done /= free_rate * (double)(perf_now() - begin);
	bench_print("files_overlap", kind, LONG_BYTES, "%", 100 * done, 100 * done, 100 * done);
	free(data);
}

int main(int argc, char **argv)
{
	char **arg = bench_start(&argc, &argv, "NAME FOLDER [BLOCK...]");
	struct job j = { .file = MPI_FILE_NULL };

	if (!arg[0] || !arg[1])
		bench_fail("NAME or FOLDER is missing");
	kind = *arg++;
	snprintf(path, sizeof(path), "%s/postern-files-bench", *arg++);
	memory = malloc(RANK_BYTES);
	if (!memory)
		bench_fail("out of memory");
	memset(memory, 1, RANK_BYTES);
	if (MPI_File_open(MPI_COMM_WORLD, path,
			  MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
			  &j.file) != MPI_SUCCESS)
		bench_fail("%s cannot be made", path);
	j.fd = open(path, O_RDWR);
	contiguous(&j);
	for (; *arg; arg++) {
		MPI_Offset disp;
		int block = atoi(*arg);
		MPI_Datatype view;

		if (block < 1 || RANK_BYTES % block)
			bench_fail("BLOCK must divide %d, not %s", RANK_BYTES, *arg);
		view = strided(block, &disp);
		with_view(&j, view, disp, "strided", block);
	}
	{
		MPI_Offset disp;
		MPI_Datatype view = subarray(&disp);

		with_view(&j, view, disp, "subarray", RANK_BYTES / 1024);
	}
	MPI_File_set_view(j.file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
	if (bench_rank == 0)
		overlap(&j);
	close(j.fd);
	MPI_File_close(&j.file);
	free(memory);
	bench_end();
	return 0;
}
