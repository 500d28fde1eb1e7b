/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Operations on files raise events. A tool sees them while it watches, and may call MPI in their
 * callbacks. Usage: [SEED [ROUNDS]].
 */
#include "test/mpi/io/file_check.h"

enum { MODE = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE };
enum { OPEN, CLOSE, READ, WRITE, SYNC, RESIZE };
enum { LONG = 1 << 20 }; /* bytes; by the kernel, where it lets us */

static MPI_File file;
static MPI_T_event_registration watch[2];
static const char *const names[] = { "mpi_file_begin", "mpi_file_end" };

/* The data of the last event of each kind. */
static struct {
	int calls, file, operation, collective, error;
	MPI_Count offset, bytes;
} seen[2];

static void see(MPI_T_event_instance instance, MPI_T_event_registration registration,
		MPI_T_cb_safety safety, void *user_data)
{
	const int kind = registration == watch[1];
	int rank;

	(void)user_data;
	MPI_T_event_read(instance, 0, &seen[kind].offset);
	MPI_T_event_read(instance, 1, &seen[kind].bytes);
	MPI_T_event_read(instance, 2, &seen[kind].file);
	MPI_T_event_read(instance, 3, &seen[kind].operation);
	MPI_T_event_read(instance, 4, &seen[kind].collective);
	MPI_T_event_read(instance, 5, &seen[kind].error);
	if (safety == MPI_T_CB_REQUIRE_NONE && MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS)
		return;
	seen[kind].calls++;
}

/* One operation since the last call of this: it began and ended, as this says. */
static const char *expect(int operation, int collective, MPI_Count offset, MPI_Count asked,
			  MPI_Count moved, int class)
{
	for (int kind = 0; kind < 2; kind++) {
		CHECK_INT(seen[kind].calls, 1);
		CHECK_INT(seen[kind].operation, operation);
		CHECK_INT(seen[kind].collective, collective);
		CHECK_INT(seen[kind].offset, offset);
		CHECK_INT(seen[kind].file, operation == OPEN && kind == 0 ? 0 : seen[1].file);
	}
	CHECK(seen[1].file != 0);
	CHECK_INT(seen[0].bytes, asked);
	CHECK_INT(seen[0].error, MPI_SUCCESS);
	CHECK_INT(seen[1].bytes, moved);
	CHECK_CLASS(seen[1].error, class);
	memset(seen, 0, sizeof(seen));
	return NULL;
}

#define EXPECT(...)                                                                                \
	do {                                                                                       \
		const char *wrong_ = expect(__VA_ARGS__);                                          \
                                                                                                   \
		if (wrong_)                                                                        \
			return wrong_;                                                             \
	} while (0)

static const char *watch_both(void)
{
	int index;

	for (int kind = 0; kind < 2; kind++) {
		CHECK_OK(MPI_T_event_get_index(names[kind], &index));
		CHECK_OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &watch[kind]));
		CHECK_OK(MPI_T_event_register_callback(watch[kind], MPI_T_CB_REQUIRE_NONE,
						       MPI_INFO_NULL, NULL, see));
		CHECK_OK(MPI_T_event_register_callback(watch[kind], MPI_T_CB_REQUIRE_MPI_RESTRICTED,
						       MPI_INFO_NULL, NULL, see));
	}
	return NULL;
}

static const char *operations(int round)
{
	static char bytes[LONG];
	const MPI_Offset mine = (MPI_Offset)tap_rank * LONG;
	MPI_Request request;
	const char *wrong;
	int provided;

	(void)round;
	CHECK_OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
	/* nobody watches */
	CHECK_OK(open_file(MPI_COMM_WORLD, path_of("unseen"), MODE, &file));
	CHECK_OK(MPI_File_close(&file));
	CHECK_INT(seen[0].calls + seen[1].calls, 0);
	if ((wrong = watch_both()))
		return wrong;
	CHECK_OK(open_file(MPI_COMM_WORLD, path_of("seen"), MODE, &file));
	EXPECT(OPEN, 1, 0, 0, 0, MPI_SUCCESS);
	CHECK_OK(MPI_File_write_at(file, mine, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE));
	EXPECT(WRITE, 0, mine, 100, 100, MPI_SUCCESS);
	CHECK_OK(MPI_File_iwrite_at(file, mine, bytes, LONG, MPI_BYTE, &request));
	CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	MPI_Barrier(MPI_COMM_WORLD); /* what was held is read by now */
	EXPECT(WRITE, 0, mine, LONG, LONG, MPI_SUCCESS);
	CHECK_OK(MPI_File_read_at_all(file, mine, bytes, 64, MPI_BYTE, MPI_STATUS_IGNORE));
	EXPECT(READ, 1, mine, 64, 64, MPI_SUCCESS);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_read_at(file, (MPI_Offset)tap_size * LONG - 10, bytes, 64, MPI_BYTE,
				  MPI_STATUS_IGNORE));
	EXPECT(READ, 0, (MPI_Count)tap_size * LONG - 10, 64, 10, MPI_SUCCESS);
	CHECK_OK(MPI_File_sync(file));
	EXPECT(SYNC, 1, 0, 0, 0, MPI_SUCCESS);
	CHECK_OK(MPI_File_set_size(file, 10));
	EXPECT(RESIZE, 1, 0, 0, 0, MPI_SUCCESS);
	CHECK_OK(MPI_File_close(&file));
	EXPECT(CLOSE, 1, 0, 0, 0, MPI_SUCCESS);
	for (int kind = 0; kind < 2; kind++)
		CHECK_OK(MPI_T_event_handle_free(watch[kind], NULL, NULL));
	CHECK_OK(open_file(MPI_COMM_WORLD, path_of("unseen"), MODE, &file));
	CHECK_OK(MPI_File_close(&file));
	CHECK_INT(seen[0].calls + seen[1].calls, 0);
	CHECK_OK(MPI_T_finalize());
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 1);
	folder_make();
	tap_case("operations begin and end", operations);
	folder_end();
	return tap_end();
}
