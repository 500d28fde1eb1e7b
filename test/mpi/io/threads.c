/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Threads that read and write at the same time: in one file at places of their own, by the shared
 * file pointer, and in atomic mode at the same place through files of their own. Usage: [SEED
 * [ROUNDS]].
 */
#include "test/mpi/io/file_check.h"

#include <pthread.h>
#include <unistd.h>

enum { THREADS = 4, TIMES = 30, INTS = 50 };
enum { MODE = MPI_MODE_RDWR | MPI_MODE_CREATE };

static MPI_File file, own[THREADS];
static int wrong[THREADS];

static int id_of(int thread)
{
	return tap_rank * THREADS + thread;
}

static void *places_of_their_own(void *arg)
{
	int t = *(int *)arg, data[INTS], back[INTS];

	for (int k = 0; k < TIMES; k++) {
		MPI_Offset at = (MPI_Offset)(id_of(t) * TIMES + k) * (MPI_Offset)sizeof(data);

		for (int i = 0; i < INTS; i++)
			data[i] = id_of(t) * 100000 + k * INTS + i;
		wrong[t] |= MPI_File_write_at(file, at, data, INTS, MPI_INT, MPI_STATUS_IGNORE);
		wrong[t] |= MPI_File_read_at(file, at, back, INTS, MPI_INT, MPI_STATUS_IGNORE);
		wrong[t] |= memcmp(data, back, sizeof(data)) != 0;
	}
	return NULL;
}

static void *by_the_shared_pointer(void *arg)
{
	int t = *(int *)arg, mine = id_of(t);

	for (int k = 0; k < TIMES; k++)
		wrong[t] |= MPI_File_write_shared(file, &mine, 1, MPI_INT, MPI_STATUS_IGNORE);
	return NULL;
}

/* Every int of the file is that of one thread. */
static void *atomic_at_one_place(void *arg)
{
	int t = *(int *)arg, data[INTS], back[INTS];

	for (int k = 0; k < TIMES; k++) {
		for (int i = 0; i < INTS; i++)
			data[i] = id_of(t) * TIMES + k;
		wrong[t] |= MPI_File_write_at(own[t], 0, data, INTS, MPI_INT, MPI_STATUS_IGNORE);
		wrong[t] |= MPI_File_read_at(own[t], 0, back, INTS, MPI_INT, MPI_STATUS_IGNORE);
		for (int i = 1; i < INTS; i++)
			wrong[t] |= back[i] != back[0];
	}
	return NULL;
}

static const char *run_threads(void *(*body)(void *))
{
	pthread_t thread[THREADS];
	int number[THREADS];

	for (int t = 0; t < THREADS; t++) {
		wrong[t] = 0;
		number[t] = t;
		pthread_create(&thread[t], NULL, body, &number[t]);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	for (int t = 0; t < THREADS; t++)
		CHECK_INT(wrong[t], 0);
	return NULL;
}

static const char *explicit_places(int round)
{
	const char *result;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_WORLD, path_of("places"), MODE, &file));
	result = run_threads(places_of_their_own);
	CHECK_OK(MPI_File_close(&file));
	return result;
}

static const char *shared_pointer(int round)
{
	const char *path = path_of("pointer"), *result;
	int seen[64 * THREADS] = { 0 };
	size_t bytes;
	char *have;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_WORLD, path, MODE, &file));
	CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	result = run_threads(by_the_shared_pointer);
	CHECK_OK(MPI_File_close(&file));
	have = bytes_of(path, &bytes);
	CHECK_INT((int)bytes, 4 * tap_size * THREADS * TIMES);
	for (int i = 0; i < tap_size * THREADS * TIMES; i++) {
		int id;

		memcpy(&id, have + 4 * i, 4);
		CHECK(id >= 0 && id < tap_size * THREADS);
		seen[id]++;
	}
	free(have);
	for (int i = 0; i < tap_size * THREADS; i++)
		CHECK_INT(seen[i], TIMES);
	return result;
}

static const char *atomic_mode(int round)
{
	const char *path = path_of("atomic"), *result;

	(void)round;
	if (tap_rank == 0)
		CHECK(file_make(path, "", 0));
	MPI_Barrier(MPI_COMM_WORLD);
	for (int t = 0; t < THREADS; t++) {
		CHECK_OK(open_file(MPI_COMM_SELF, path, MPI_MODE_RDWR, &own[t]));
		CHECK_OK(MPI_File_set_atomicity(own[t], 1));
	}
	result = run_threads(atomic_at_one_place);
	for (int t = 0; t < THREADS; t++)
		CHECK_OK(MPI_File_close(&own[t]));
	return result;
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	tap_start(argc, argv, 1);
	folder_make();
	tap_case("threads at places of their own", explicit_places);
	tap_case("threads and the shared file pointer", shared_pointer);
	tap_case("threads in atomic mode at one place", atomic_mode);
	folder_end();
	return tap_end();
}
