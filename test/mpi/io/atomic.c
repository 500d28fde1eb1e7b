/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Consistency: in atomic mode an access with gaps is seen whole or not at all, and what was written
 * is there for others after sync, barrier and sync. Usage: [SEED [ROUNDS]].
 */
#include "test/mpi/io/file_check.h"

#include <fcntl.h>
#include <unistd.h>

enum { MODE = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, INTS = 64, TIMES = 50 };

static MPI_File file;

/* All write and read the same places, each its own number everywhere. */
static const char *whole_or_not(int round)
{
	MPI_Datatype every;
	int data[INTS], back[INTS], flag = -1;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_WORLD, path_of("atomic"), MODE, &file));
	MPI_Type_vector(4, 1, 3, MPI_INT, &every);
	MPI_Type_commit(&every);
	CHECK_OK(MPI_File_get_atomicity(file, &flag));
	CHECK_INT(flag, 0);
	CHECK_OK(MPI_File_set_atomicity(file, 1));
	CHECK_OK(MPI_File_get_atomicity(file, &flag));
	CHECK_INT(flag, 1);
	CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, every, "native", MPI_INFO_NULL));
	for (int i = 0; i < INTS; i++)
		data[i] = -1;
	CHECK_OK(MPI_File_write_at_all(file, 0, data, INTS, MPI_INT, MPI_STATUS_IGNORE));
	for (int t = 0; t < TIMES; t++) {
		for (int i = 0; i < INTS; i++)
			data[i] = tap_rank * TIMES + t;
		if (tap_rank % 2 == 0)
			CHECK_OK(
				MPI_File_write_at(file, 0, data, INTS, MPI_INT, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_File_read_at(file, 0, back, INTS, MPI_INT, MPI_STATUS_IGNORE));
		for (int i = 1; i < INTS; i++)
			CHECK_INT(back[i], back[0]);
	}
	MPI_Type_free(&every);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* A lock of another process holds an atomic access back; one that is not atomic passes. */
static const char *locks_of_others(int round)
{
	const char *path = path_of("others");
	int fd, n = 7, token = 0;
	MPI_Request request = MPI_REQUEST_NULL;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 100 };

	(void)round;
	if (tap_size == 1)
		return NULL;
	CHECK_OK(open_file(MPI_COMM_WORLD, path, MODE, &file));
	CHECK_OK(MPI_File_set_atomicity(file, 1));
	if (tap_rank == 0) {
		fd = open(path, O_RDWR);
		CHECK(fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0);
		MPI_Send(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
		MPI_Irecv(&token, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &request);
		MPI_Recv(&n, 0, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		usleep(50000); /* to give a lock that is none the time to show */
		CHECK_OK(MPI_Test(&request, &n, MPI_STATUS_IGNORE));
		CHECK(!n);
		close(fd);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else if (tap_rank == 1) {
		MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK_OK(MPI_File_write_at(file, 100, &n, 1, MPI_INT, MPI_STATUS_IGNORE));
		MPI_Send(&n, 0, MPI_INT, 0, 3, MPI_COMM_WORLD);
		CHECK_OK(MPI_File_write_at(file, 96, &n, 1, MPI_INT, MPI_STATUS_IGNORE));
		MPI_Send(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
	}
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

static const char *seen_after_sync(int round)
{
	int data = 100 * round + tap_rank, back = -1, next = (tap_rank + 1) % tap_size;

	CHECK_OK(open_file(MPI_COMM_WORLD, path_of("sync"), MODE, &file));
	CHECK_OK(MPI_File_write_at(file, 4 * tap_rank, &data, 1, MPI_INT, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_File_sync(file));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_sync(file));
	CHECK_OK(MPI_File_read_at(file, 4 * next, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
	CHECK_INT(back, 100 * round + next);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 1);
	folder_make();
	tap_case("atomic accesses are seen whole", whole_or_not);
	tap_case("locks hold against other processes", locks_of_others);
	tap_rounds_set(3);
	tap_case("what was written is seen after sync", seen_after_sync);
	folder_end();
	return tap_end();
}
