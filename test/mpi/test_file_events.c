/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The events that the library of files raises, raised by hand: a tool sees what was said, once it
 * watches, and may call MPI.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <mpi.h>

#include "mpi_shim/core/events.h"
#include "mpi_shim/core/world.h"

#define OK(call) assert_int_equal(call, MPI_SUCCESS)

static struct {
	int calls;
	MPI_T_cb_safety safety;
	struct mpi_event_file last;
} seen;

static void see(MPI_T_event_instance instance, MPI_T_event_registration registration,
		MPI_T_cb_safety safety, void *user_data)
{
	int rank = -1, in = -1, out = 7;

	(void)registration;
	(void)user_data;
	OK(MPI_T_event_copy(instance, &seen.last));
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_SELF,
			MPI_STATUS_IGNORE));
	assert_int_equal(in, 7);
	seen.safety = safety;
	seen.calls++;
}

static void raise_file(enum mpi_event kind, MPI_Count bytes, int error)
{
	const struct mpi_event_file file = {
		.offset = (MPI_Count)1 << 40,
		.bytes = bytes,
		.file = 4711,
		.operation = MPI_EVENT_FILE_WRITE,
		.collective = 1,
		.error = error,
	};

	mpi_lock();
	mpi_event_file(kind, &file);
	mpi_unlock();
}

static MPI_T_event_registration watch_event(const char *name)
{
	MPI_T_event_registration r = NULL;
	int index = -1;

	OK(MPI_T_event_get_index(name, &index));
	OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r));
	OK(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, see));
	return r;
}

static void operations_on_files_are_seen_while_a_tool_watches(void **state)
{
	MPI_T_event_registration begin, end;
	int provided;

	(void)state;
	OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
	OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
	raise_file(MPI_EVENT_FILE_BEGIN, 10, 0);
	begin = watch_event("mpi_file_begin");
	raise_file(MPI_EVENT_FILE_END, 10, 0);
	assert_int_equal(seen.calls, 0);
	raise_file(MPI_EVENT_FILE_BEGIN, 10, 0);
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.safety, MPI_T_CB_REQUIRE_NONE);
	assert_int_equal(seen.last.bytes, 10);
	end = watch_event("mpi_file_end");
	raise_file(MPI_EVENT_FILE_END, 8, MPI_ERR_NO_SPACE);
	assert_int_equal(seen.calls, 2);
	assert_int_equal(seen.last.offset, (MPI_Count)1 << 40);
	assert_int_equal(seen.last.bytes, 8);
	assert_int_equal(seen.last.file, 4711);
	assert_int_equal(seen.last.operation, 3);
	assert_int_equal(seen.last.collective, 1);
	assert_int_equal(seen.last.error, MPI_ERR_NO_SPACE);
	OK(MPI_T_event_handle_free(begin, NULL, NULL));
	OK(MPI_T_event_handle_free(end, NULL, NULL));
	raise_file(MPI_EVENT_FILE_BEGIN, 10, 0);
	assert_int_equal(seen.calls, 2);
	OK(MPI_T_finalize());
	OK(MPI_Finalize());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_on_files_are_seen_while_a_tool_watches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
