/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Statuses, handles as integers, and the sizes and values that the standard's binary interface has
 * for C and Fortran, in a job of one process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) assert_int_equal(call, MPI_SUCCESS)

/* ---- statuses -------------------------------------------------------------------------------- */

static void fields_of_a_status_have_functions(void **state)
{
	MPI_Status s;
	int v = -1;

	(void)state;
	memset(&s, 0, sizeof(s));
	OK(MPI_Status_set_source(&s, 3));
	OK(MPI_Status_set_tag(&s, 4));
	OK(MPI_Status_set_error(&s, MPI_ERR_TAG));
	assert_int_equal(s.MPI_SOURCE, 3);
	assert_int_equal(s.MPI_TAG, 4);
	assert_int_equal(s.MPI_ERROR, MPI_ERR_TAG);
	OK(MPI_Status_get_source(&s, &v));
	assert_int_equal(v, 3);
	OK(MPI_Status_get_tag(&s, &v));
	assert_int_equal(v, 4);
	OK(MPI_Status_get_error(&s, &v));
	assert_int_equal(v, MPI_ERR_TAG);
}

static void counts_follow_the_datatype(void **state)
{
	MPI_Status s;
	MPI_Count large = -1;
	int n = -1;

	(void)state;
	memset(&s, 0, sizeof(s));
	OK(MPI_Status_set_elements(&s, MPI_INT, 6));
	OK(MPI_Get_count(&s, MPI_INT, &n));
	assert_int_equal(n, 6);
	OK(MPI_Get_count(&s, MPI_DOUBLE, &n));
	assert_int_equal(n, 3);
	OK(MPI_Status_set_elements(&s, MPI_INT, 5));
	OK(MPI_Get_count(&s, MPI_DOUBLE, &n));
	assert_int_equal(n, MPI_UNDEFINED);
	OK(MPI_Status_set_elements_c(&s, MPI_CHAR, 5000000000));
	OK(MPI_Get_count(&s, MPI_CHAR, &n));
	assert_int_equal(n, MPI_UNDEFINED);
	OK(MPI_Get_count_c(&s, MPI_CHAR, &large));
	assert_int_equal(large, 5000000000);
	OK(MPI_Get_elements_x(&s, MPI_CHAR, &large));
	assert_int_equal(large, 5000000000);
}

static void elements_count_inside_of_datatypes(void **state)
{
	MPI_Datatype pair;
	MPI_Status s;
	int n = -1;

	(void)state;
	OK(MPI_Type_create_struct(2, (int[]){ 1, 1 }, (MPI_Aint[]){ 0, 8 },
				  (MPI_Datatype[]){ MPI_DOUBLE, MPI_INT }, &pair));
	OK(MPI_Type_commit(&pair));
	memset(&s, 0, sizeof(s));
	for (int elements = 0; elements < 7; elements++) {
		OK(MPI_Status_set_elements(&s, pair, elements));
		OK(MPI_Get_elements(&s, pair, &n));
		assert_int_equal(n, elements);
		OK(MPI_Get_count(&s, pair, &n));
		assert_int_equal(n, elements % 2 ? MPI_UNDEFINED : elements / 2);
	}
	OK(MPI_Type_free(&pair));
}

static void cancelled_is_beside_the_count(void **state)
{
	MPI_Status s;
	int n = -1, flag = -1;

	(void)state;
	memset(&s, 0, sizeof(s));
	OK(MPI_Status_set_elements(&s, MPI_INT, 6));
	OK(MPI_Status_set_cancelled(&s, 1));
	OK(MPI_Test_cancelled(&s, &flag));
	assert_true(flag);
	OK(MPI_Status_set_elements(&s, MPI_INT, 7));
	OK(MPI_Test_cancelled(&s, &flag));
	assert_true(flag);
	OK(MPI_Status_set_cancelled(&s, 0));
	OK(MPI_Get_count(&s, MPI_INT, &n));
	assert_int_equal(n, 7);
}

static void statuses_go_to_fortran_and_back(void **state)
{
	MPI_Fint f[MPI_F_STATUS_SIZE], again[MPI_F_STATUS_SIZE] = { 0 };
	MPI_F08_status f08, other;
	MPI_Status s, back;
	int class = -1;

	(void)state;
	memset(&s, 0, sizeof(s));
	s.MPI_SOURCE = 3;
	s.MPI_TAG = 4;
	OK(MPI_Status_set_elements(&s, MPI_INT, 5));
	OK(MPI_Status_c2f(&s, f));
	assert_int_equal(f[MPI_F_SOURCE], 3);
	assert_int_equal(f[MPI_F_TAG], 4);
	OK(MPI_Status_f2c(f, &back));
	assert_memory_equal(&s, &back, sizeof(s));
	OK(MPI_Status_c2f08(&s, &f08));
	assert_int_equal(f08.MPI_TAG, 4);
	OK(MPI_Status_f082c(&f08, &back));
	assert_memory_equal(&s, &back, sizeof(s));
	OK(MPI_Status_f2f08(f, &other));
	assert_memory_equal(&f08, &other, sizeof(f08));
	OK(MPI_Status_f082f(&other, again));
	assert_memory_equal(f, again, sizeof(f));
	OK(MPI_Error_class(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &back), &class));
	assert_int_equal(class, MPI_ERR_ARG);
}

/* ---- the binary interface -------------------------------------------------------------------- */

static void sizes_are_told(void **state)
{
	static const char *const keys[] = { "mpi_aint_size", "mpi_count_size", "mpi_offset_size" };
	MPI_Info info = MPI_INFO_NULL;

	(void)state;
	OK(MPI_Abi_get_info(&info));
	for (int i = 0; i < 3; i++) {
		char value[8];
		int flag = 0, len = sizeof(value);

		OK(MPI_Info_get_string(info, keys[i], &len, value, &flag));
		assert_true(flag);
		assert_string_equal(value, "8");
	}
	OK(MPI_Info_free(&info));
}

static void fortran_is_set_once(void **state)
{
	MPI_Info info = MPI_INFO_ENV, set;
	char value[8];
	int flag = 0, len = sizeof(value), class = -1;

	(void)state;
	OK(MPI_Abi_get_fortran_info(&info));
	assert_ptr_equal(info, MPI_INFO_NULL);
	OK(MPI_Info_create(&set));
	OK(MPI_Info_set(set, "mpi_integer_size", "4"));
	OK(MPI_Info_set(set, "unknown", "4"));
	OK(MPI_Abi_set_fortran_info(set));
	OK(MPI_Error_class(MPI_Abi_set_fortran_info(set), &class));
	assert_int_equal(class, MPI_ERR_ABI);
	OK(MPI_Info_free(&set));
	OK(MPI_Abi_get_fortran_info(&info));
	OK(MPI_Info_get_string(info, "mpi_integer_size", &len, value, &flag));
	assert_true(flag);
	assert_string_equal(value, "4");
	OK(MPI_Info_get_string(info, "unknown", &len, value, &flag));
	assert_false(flag);
	OK(MPI_Info_free(&info));
}

static void booleans_are_kept_by_size(void **state)
{
	int32_t yes = -1, no = 0, got_yes = 5, got_no = 5;
	int is_set = -1, class = -1;

	(void)state;
	OK(MPI_Abi_get_fortran_booleans(4, &got_yes, &got_no, &is_set));
	assert_int_equal(is_set, 0);
	OK(MPI_Abi_set_fortran_booleans(4, &yes, &no));
	OK(MPI_Abi_get_fortran_booleans(4, &got_yes, &got_no, &is_set));
	assert_int_equal(is_set, 1);
	assert_int_equal(got_yes, -1);
	assert_int_equal(got_no, 0);
	OK(MPI_Abi_get_fortran_booleans(8, &got_yes, &got_no, &is_set));
	assert_int_equal(is_set, 0);
	OK(MPI_Error_class(MPI_Abi_set_fortran_booleans(4, &yes, &no), &class));
	assert_int_equal(class, MPI_ERR_ABI);
	OK(MPI_Error_class(MPI_Abi_set_fortran_booleans(3, &yes, &no), &class));
	assert_int_equal(class, MPI_ERR_ARG);
}

/* A handle is the same after the way to an integer and back, and to Fortran's INTEGER, which is
 * that integer. */
#define BOTH_WAYS(kind, handle)                                                                    \
	do {                                                                                       \
		int number_ = MPI_##kind##_toint(handle);                                          \
                                                                                                   \
		assert_ptr_equal(MPI_##kind##_fromint(number_), handle);                           \
		assert_int_equal(MPI_##kind##_c2f(handle), number_);                               \
		assert_ptr_equal(MPI_##kind##_f2c(number_), handle);                               \
	} while (0)

/* Predefined ones are the numbers of the standard. */
#define NUMBERED(kind, handle, number)                                                             \
	do {                                                                                       \
		assert_int_equal(MPI_##kind##_toint(handle), number);                              \
		BOTH_WAYS(kind, handle);                                                           \
	} while (0)

static void predefined_handles_are_integers_of_the_standard(void **state)
{
	(void)state;
	NUMBERED(Comm, MPI_COMM_NULL, 0x100);
	NUMBERED(Comm, MPI_COMM_WORLD, 0x101);
	NUMBERED(Comm, MPI_COMM_SELF, 0x102);
	NUMBERED(Errhandler, MPI_ERRHANDLER_NULL, 0x140);
	NUMBERED(Errhandler, MPI_ERRORS_RETURN, 0x143);
	NUMBERED(File, MPI_FILE_NULL, 0x118);
	NUMBERED(Group, MPI_GROUP_NULL, 0x108);
	NUMBERED(Group, MPI_GROUP_EMPTY, 0x109);
	NUMBERED(Info, MPI_INFO_NULL, 0x130);
	NUMBERED(Info, MPI_INFO_ENV, 0x131);
	NUMBERED(Message, MPI_MESSAGE_NULL, 0x128);
	NUMBERED(Message, MPI_MESSAGE_NO_PROC, 0x129);
	NUMBERED(Op, MPI_OP_NULL, 0x20);
	NUMBERED(Op, MPI_SUM, 0x21);
	NUMBERED(Request, MPI_REQUEST_NULL, 0x180);
	NUMBERED(Session, MPI_SESSION_NULL, 0x120);
	NUMBERED(Type, MPI_DATATYPE_NULL, 0x200);
	NUMBERED(Type, MPI_INT, 0x209);
	NUMBERED(Type, MPI_DOUBLE, 0x214);
	NUMBERED(Win, MPI_WIN_NULL, 0x110);
}

static void ignore_an_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

/* Each is of use as it came back. */
static void made_handles_survive_as_integers(void **state)
{
	int in = 5, out = -1, n = -1;
	MPI_Comm comm;
	MPI_Datatype type;
	MPI_Errhandler handler;
	MPI_Group group;
	MPI_Info info;
	MPI_Message message;
	MPI_Op op;
	MPI_Request request;
	MPI_Win win;

	(void)state;
	OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
	BOTH_WAYS(Comm, comm);
	OK(MPI_Comm_size(MPI_Comm_fromint(MPI_Comm_toint(comm)), &n));
	assert_int_equal(n, 1);
	OK(MPI_Type_contiguous(3, MPI_INT, &type));
	BOTH_WAYS(Type, type);
	OK(MPI_Type_size(MPI_Type_fromint(MPI_Type_toint(type)), &n));
	assert_int_equal(n, 12);
	OK(MPI_Comm_create_errhandler(ignore_an_error, &handler));
	BOTH_WAYS(Errhandler, handler);
	OK(MPI_Comm_set_errhandler(comm, MPI_Errhandler_fromint(MPI_Errhandler_toint(handler))));
	OK(MPI_Comm_group(comm, &group));
	BOTH_WAYS(Group, group);
	OK(MPI_Group_size(MPI_Group_fromint(MPI_Group_toint(group)), &n));
	assert_int_equal(n, 1);
	OK(MPI_Info_create(&info));
	BOTH_WAYS(Info, info);
	OK(MPI_Info_set(MPI_Info_fromint(MPI_Info_toint(info)), "key", "value"));
	OK(MPI_Op_create(add, 1, &op));
	BOTH_WAYS(Op, op);
	OK(MPI_Reduce_local(&in, &out, 1, MPI_INT, MPI_Op_fromint(MPI_Op_toint(op))));
	assert_int_equal(out, 4);
	OK(MPI_Isend(&in, 1, MPI_INT, 0, 7, comm, &request));
	BOTH_WAYS(Request, request);
	OK(MPI_Mprobe(0, 7, comm, &message, MPI_STATUS_IGNORE));
	BOTH_WAYS(Message, message);
	message = MPI_Message_fromint(MPI_Message_toint(message));
	OK(MPI_Mrecv(&out, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
	assert_int_equal(out, 5);
	request = MPI_Request_fromint(MPI_Request_toint(request));
	OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	OK(MPI_Win_create(&out, sizeof(out), 1, MPI_INFO_NULL, comm, &win));
	BOTH_WAYS(Win, win);
	win = MPI_Win_fromint(MPI_Win_toint(win));
	OK(MPI_Win_free(&win));
	OK(MPI_Op_free(&op));
	OK(MPI_Info_free(&info));
	OK(MPI_Group_free(&group));
	OK(MPI_Errhandler_free(&handler));
	OK(MPI_Type_free(&type));
	OK(MPI_Comm_free(&comm));
}

static int start(void **state)
{
	(void)state;
	OK(MPI_Init(NULL, NULL));
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	return 0;
}

static int end(void **state)
{
	(void)state;
	return MPI_Finalize();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_of_a_status_have_functions),
		cmocka_unit_test(counts_follow_the_datatype),
		cmocka_unit_test(elements_count_inside_of_datatypes),
		cmocka_unit_test(cancelled_is_beside_the_count),
		cmocka_unit_test(statuses_go_to_fortran_and_back),
		cmocka_unit_test(sizes_are_told),
		cmocka_unit_test(fortran_is_set_once),
		cmocka_unit_test(booleans_are_kept_by_size),
		cmocka_unit_test(predefined_handles_are_integers_of_the_standard),
		cmocka_unit_test(made_handles_survive_as_integers),
	};

	return cmocka_run_group_tests(tests, start, end);
}
