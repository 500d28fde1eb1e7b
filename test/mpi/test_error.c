/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Error classes, codes and texts, and what the error handlers do with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "fake_world.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"

static int setup(void **state)
{
	(void)state;
	return fake_world(3, 8);
}

static int teardown(void **state)
{
	(void)state;
	fake_world_end();
	assert_int_equal(mpi_pools[MPI_KIND_ERRHANDLER].in_use, 0);
	mpi_pools_fini();
	return 0;
}

static void every_class_has_a_text_of_its_own(void **state)
{
	char text[MPI_MAX_ERROR_STRING], other[MPI_MAX_ERROR_STRING];
	int length, class;

	(void)state;
	for (int c = MPI_SUCCESS; c <= MPI_ERR_ABI; c++) {
		assert_int_equal(mpi_error_string(c, text, &length), MPI_SUCCESS);
		assert_int_equal(length, strlen(text));
		assert_true(length > 0);
		assert_int_equal(mpi_error_class(c, &class), MPI_SUCCESS);
		assert_int_equal(class, c);
		for (int d = c + 1; d <= MPI_ERR_ABI; d++) {
			mpi_error_string(d, other, &length);
			assert_string_not_equal(text, other);
		}
	}
	for (int c = MPI_T_ERR_CANNOT_INIT; c <= MPI_T_ERR_PVAR_NO_ATOMIC; c++)
		assert_int_equal(mpi_error_string(c, text, &length), MPI_SUCCESS);
	assert_int_equal(mpi_error_string(-1, text, &length), MPI_ERR_ARG);
	assert_int_equal(mpi_error_string(999, text, &length), MPI_ERR_ARG);
	assert_int_equal(mpi_error_class(MPI_ERR_LASTCODE, &class), MPI_ERR_ARG);
}

static void programs_add_classes_codes_and_texts(void **state)
{
	char text[MPI_MAX_ERROR_STRING], too_long[MPI_MAX_ERROR_STRING + 1];
	int class, code, of_standard, length, got, *last, flag;

	(void)state;
	assert_int_equal(mpi_add_error_class(&class), MPI_SUCCESS);
	assert_true(class > MPI_ERR_LASTCODE);
	assert_int_equal(mpi_add_error_code(class, &code), MPI_SUCCESS);
	assert_int_equal(mpi_add_error_code(MPI_ERR_OTHER, &of_standard), MPI_SUCCESS);
	assert_int_equal(mpi_add_error_code(code, &got), MPI_ERR_ARG);
	mpi_comm_get_attr(&mpi_comm_world, MPI_LASTUSEDCODE, &last, &flag);
	assert_true(flag);
	assert_int_equal(*last, of_standard);
	mpi_error_class(code, &got);
	assert_int_equal(got, class);
	mpi_error_class(of_standard, &got);
	assert_int_equal(got, MPI_ERR_OTHER);
	assert_int_equal(mpi_error_string(code, text, &length), MPI_SUCCESS);
	assert_string_equal(text, "");
	assert_int_equal(mpi_add_error_string(code, "out of cheese"), MPI_SUCCESS);
	mpi_error_string(code, text, &length);
	assert_string_equal(text, "out of cheese");
	assert_int_equal(mpi_add_error_string(MPI_ERR_OTHER, "mine"), MPI_ERR_ARG);
	memset(too_long, 'x', sizeof(too_long));
	too_long[MPI_MAX_ERROR_STRING] = '\0';
	assert_int_equal(mpi_add_error_string(code, too_long), MPI_ERR_ARG);

	assert_int_equal(mpi_remove_error_class(class), MPI_ERR_ARG);
	assert_int_equal(mpi_remove_error_code(code), MPI_ERR_ARG); /* it has a text */
	assert_int_equal(mpi_error_string(code, text, &length), MPI_SUCCESS);
	assert_string_equal(text, "out of cheese");
	assert_int_equal(mpi_remove_error_string(code), MPI_SUCCESS);
	assert_int_equal(mpi_remove_error_string(code), MPI_ERR_ARG);
	assert_int_equal(mpi_remove_error_code(class), MPI_ERR_ARG);
	assert_int_equal(mpi_remove_error_code(code), MPI_SUCCESS);
	assert_int_equal(mpi_remove_error_code(code), MPI_ERR_ARG);
	assert_int_equal(mpi_remove_error_code(of_standard), MPI_SUCCESS);
	assert_int_equal(mpi_add_error_string(class, "cheese"), MPI_SUCCESS);
	assert_int_equal(mpi_remove_error_class(class), MPI_ERR_ARG); /* it has a text */
	assert_int_equal(mpi_remove_error_string(class), MPI_SUCCESS);
	assert_int_equal(mpi_remove_error_class(class), MPI_SUCCESS);
	assert_int_equal(mpi_error_string(class, text, &length), MPI_ERR_ARG);
	mpi_add_error_class(&got);
	assert_true(got > of_standard);
	mpi_remove_error_class(got);
}

static void a_fatal_error_tells_rank_function_communicator_and_cause(void **state)
{
	(void)state;
	if (!setjmp(fake_abort.back)) {
		mpi_raise(&mpi_comm_world, "MPI_Send",
			  mpi_fail(MPI_ERR_TAG, "tag %d is negative", -5));
		fail();
	}
	assert_int_equal(fake_abort.code, MPI_ERR_TAG);
	assert_string_equal(fake_abort.message,
			    "rank 3 of 8: MPI_Send on MPI_COMM_WORLD: tag -5 is negative");
	/* a code without a text is told by its class's */
	if (!setjmp(fake_abort.back)) {
		mpi_comm_call_errhandler(&mpi_comm_self, MPI_ERR_TRUNCATE);
		fail();
	}
	assert_string_equal(
		fake_abort.message,
		"rank 3 of 8: MPI_Comm_call_errhandler on MPI_COMM_SELF: message longer "
		"than the receive buffer");
}

static struct {
	int calls, code;
	MPI_Comm comm;
} seen;

static void handler(MPI_Comm *comm, int *code, ...)
{
	seen.calls++;
	seen.code = *code;
	seen.comm = *comm;
}

static void a_handler_of_the_users_gets_communicator_and_code(void **state)
{
	struct mpi_errhandler *e = NULL, *got, *again;

	(void)state;
	seen.calls = 0;
	assert_int_equal(mpi_comm_create_errhandler(handler, &e), MPI_SUCCESS);
	assert_int_equal(mpi_comm_set_errhandler(&mpi_comm_world, e), MPI_SUCCESS);
	mpi_comm_get_errhandler(&mpi_comm_world, &got);
	assert_ptr_equal(got, e);
	assert_int_equal(mpi_errhandler_free(&got), MPI_SUCCESS);
	again = e;
	assert_int_equal(mpi_errhandler_free(&e), MPI_SUCCESS);
	assert_null(e);
	assert_int_equal(mpi_errhandler_free(&again), MPI_ERR_ERRHANDLER);

	/* freed, but in force */
	assert_int_equal(mpi_raise(&mpi_comm_world, "MPI_Send", MPI_ERR_RANK), MPI_ERR_RANK);
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.code, MPI_ERR_RANK);
	assert_ptr_equal(seen.comm, MPI_COMM_WORLD);
	assert_int_equal(mpi_comm_call_errhandler(&mpi_comm_world, 12345), MPI_SUCCESS);
	assert_int_equal(seen.code, 12345);
	/* and for errors without a communicator, as long as MPI_COMM_SELF has none of its own */
	mpi_raise(NULL, "MPI_Type_free", MPI_ERR_TYPE);
	assert_int_equal(seen.calls, 3);
	mpi_comm_set_errhandler(&mpi_comm_self, &mpi_errors_return);
	assert_int_equal(mpi_raise(NULL, "MPI_Type_free", MPI_ERR_TYPE), MPI_ERR_TYPE);
	assert_int_equal(seen.calls, 3);
	mpi_comm_set_errhandler(&mpi_comm_self, &mpi_errors_are_fatal);
	mpi_comm_set_errhandler(&mpi_comm_world, &mpi_errors_are_fatal);
}

static void windows_handler(MPI_Win *win, int *code, ...)
{
	(void)win;
	(void)code;
}

static void handlers_are_for_what_they_were_created_for(void **state)
{
	struct mpi_errhandler *e = NULL, *predefined = &mpi_errors_return;

	(void)state;
	assert_int_equal(mpi_win_create_errhandler(windows_handler, &e), MPI_SUCCESS);
	assert_int_equal(mpi_comm_set_errhandler(&mpi_comm_world, e), MPI_ERR_ARG);
	assert_int_equal(mpi_comm_create_errhandler(NULL, &e), MPI_ERR_ARG);
	assert_int_equal(mpi_errhandler_free(&e), MPI_SUCCESS);
	/* MPI_Comm_get_errhandler gives predefined ones, too, which are freed like others */
	assert_int_equal(mpi_errhandler_free(&predefined), MPI_SUCCESS);
	predefined = &mpi_errors_return;
	assert_int_equal(mpi_errhandler_free(&predefined), MPI_SUCCESS);
	assert_ptr_equal(mpi_object_of(MPI_ERRORS_RETURN, MPI_KIND_ERRHANDLER), &mpi_errors_return);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_class_has_a_text_of_its_own),
		cmocka_unit_test(programs_add_classes_codes_and_texts),
		cmocka_unit_test(a_fatal_error_tells_rank_function_communicator_and_cause),
		cmocka_unit_test(a_handler_of_the_users_gets_communicator_and_code),
		cmocka_unit_test(handlers_are_for_what_they_were_created_for),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
