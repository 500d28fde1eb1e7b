/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The shared file pointer: records of all ranks at once, each in a place of its own; the order of
 * ranks; seeking. Usage: [SEED [ROUNDS]].
 */
#include "test/mpi/io/file_check.h"

#include <unistd.h>

enum { RECORDS = 40, INTS = 3 };

static MPI_File file;

/* A record says whose it is and which, so that one that is torn or lost is found. */
static void fill_record(int *record, int rank, int i)
{
	record[0] = rank;
	record[1] = i;
	record[2] = (int)value_of(rank, i);
}

static const char *wrong_record(const int *record)
{
	if (record[0] < 0 || record[0] >= tap_size || record[1] < 0 || record[1] >= RECORDS)
		return tap_wrong("a record of rank %d, number %d", record[0], record[1]);
	CHECK_INT(record[2], (int)value_of(record[0], record[1]));
	return NULL;
}

static const struct form *shared_form(int round)
{
	const struct form *f = NULL;

	for (int i = 0, n = 0; i < form_count; i++)
		if (forms[i].place == FORM_SHARED && n++ == round % 4)
			f = &forms[i];
	return f;
}

static const char *count_records(const char *path)
{
	static int seen[64][RECORDS];
	size_t bytes;
	char *have = bytes_of(path, &bytes);
	const char *wrong = NULL;

	memset(seen, 0, sizeof(seen));
	CHECK(have);
	CHECK_INT(bytes, tap_size * RECORDS * INTS * 4);
	for (int i = 0; i < tap_size * RECORDS && !wrong; i++) {
		int record[INTS];

		memcpy(record, have + (size_t)i * sizeof(record), sizeof(record));
		wrong = wrong_record(record);
		if (!wrong && seen[record[0]][record[1]]++)
			wrong = tap_wrong("a record is there twice");
	}
	free(have);
	return wrong;
}

/* All write at once; then all read at once, and have read each record once together. */
static const char *everyone_at_once(int round)
{
	const char *path = path_of("records"), *wrong;
	const struct form *f = shared_form(round);
	int record[INTS], got = 0, all = 0, n;
	MPI_Datatype type;
	MPI_Status status;

	MPI_Type_contiguous(INTS, MPI_INT, &type);
	MPI_Type_commit(&type);
	CHECK_OK(open_file(MPI_COMM_WORLD, path,
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	CHECK_OK(MPI_File_set_view(file, 0, type, type, "native", MPI_INFO_NULL));
	for (int i = 0; i < RECORDS; i++) {
		fill_record(record, tap_rank, i);
		CHECK_OK(f->write(file, 0, record, 1, type, &status));
		CHECK_OK(MPI_Get_count(&status, type, &n));
		CHECK_INT(n, 1);
	}
	CHECK_OK(MPI_File_sync(file));
	if ((wrong = count_records(path)))
		return wrong;
	CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
	for (;;) {
		CHECK_OK(f->read(file, 0, record, 1, type, &status));
		CHECK_OK(MPI_Get_count(&status, type, &n));
		if (n == 0)
			break;
		if ((wrong = wrong_record(record)))
			return wrong;
		got++;
	}
	MPI_Allreduce(&got, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK_INT(all, tap_size * RECORDS);
	CHECK_OK(MPI_File_close(&file));
	MPI_Type_free(&type);
	return NULL;
}

/* Ranks write different amounts; the file has them in the order of ranks, whoever came first. */
static const char *in_order(int round)
{
	const char *path = path_of("order");
	int mine[8], back[8], at = 0;
	const struct form *f = NULL;
	MPI_Offset position = -1;
	MPI_Status status;
	size_t bytes;
	char *have;

	for (int i = 0, n = 0; i < form_count; i++)
		if (forms[i].place == FORM_ORDERED && n++ == round % 4)
			f = &forms[i];
	CHECK_OK(open_file(MPI_COMM_WORLD, path,
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	CHECK_OK(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	for (int i = 0; i < 8; i++)
		mine[i] = (int)value_of(tap_rank, i);
	for (int k = 0; k < 3; k++)
		CHECK_OK(f->write(file, 0, mine, (tap_rank + k) % 4, MPI_INT, &status));
	CHECK_OK(MPI_File_sync(file));
	have = bytes_of(path, &bytes);
	CHECK(have);
	for (int k = 0; k < 3; k++)
		for (int r = 0; r < tap_size; r++)
			for (int i = 0; i < (r + k) % 4; i++, at++) {
				int n;

				CHECK((size_t)(at + 2) * 4 <= bytes);
				memcpy(&n, have + 4 + (size_t)at * 4, 4);
				CHECK_INT(n, (int)value_of(r, i));
			}
	CHECK_INT(bytes, 4 + 4 * at);
	free(have);
	CHECK_OK(MPI_File_get_position_shared(file, &position));
	CHECK_INT(position, at);
	CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
	CHECK_OK(f->read(file, 0, back, tap_rank % 4, MPI_INT, &status));
	CHECK(memcmp(back, mine, (size_t)(tap_rank % 4) * 4) == 0);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

static const char *seeking(int round)
{
	const char *path = path_of("seek");
	MPI_Offset position = -1;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_WORLD, path,
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	CHECK_OK(MPI_File_set_size(file, 4 + 10 * 4 + 1));
	CHECK_OK(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	CHECK_OK(MPI_File_seek_shared(file, 5, MPI_SEEK_SET));
	CHECK_OK(MPI_File_get_position_shared(file, &position));
	CHECK_INT(position, 5);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_seek_shared(file, -2, MPI_SEEK_CUR));
	CHECK_OK(MPI_File_get_position_shared(file, &position));
	CHECK_INT(position, 3);
	MPI_Barrier(MPI_COMM_WORLD);
	/* the end is within the eleventh: behind it */
	CHECK_OK(MPI_File_seek_shared(file, -1, MPI_SEEK_END));
	CHECK_OK(MPI_File_get_position_shared(file, &position));
	CHECK_INT(position, 10);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_CLASS(MPI_File_seek_shared(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
	CHECK_OK(MPI_File_get_position_shared(file, &position));
	CHECK_INT(position, 10);
	/* the individual pointer is another one */
	CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_END));
	CHECK_OK(MPI_File_get_position(file, &position));
	CHECK_INT(position, 11);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
	CHECK_OK(MPI_File_get_position_shared(file, &position));
	CHECK_INT(position, 0);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* Rank 0, whose memory has the pointer, computes while the others use it. */
static const char *owner_computes(int round)
{
	const char *path = path_of("computes");
	int done = 0, flag = 0;
	MPI_Request request = MPI_REQUEST_NULL;
	volatile unsigned long work = 0;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_WORLD, path,
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	if (tap_rank != 0) {
		for (int i = 0; i < 10; i++)
			CHECK_OK(MPI_File_write_shared(file, &i, 1, MPI_INT, MPI_STATUS_IGNORE));
		MPI_Send(&done, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
	}
	for (int i = 1; tap_rank == 0 && i < tap_size; i++) {
		MPI_Irecv(&done, 0, MPI_INT, i, 0, MPI_COMM_WORLD, &request);
		for (flag = 0; !flag; work++)
			if (work % 1000000 == 0)
				MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
	}
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 4);
	folder_make();
	tap_rounds_set(4);
	tap_case("records of all ranks at once", everyone_at_once);
	tap_case("in the order of ranks", in_order);
	tap_rounds_set(1);
	tap_case("seeking", seeking);
	tap_case("rank 0 computes meanwhile", owner_computes);
	folder_end();
	return tap_end();
}
