/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Datatypes through the public functions, also those that MPI-3 removed: what the entry points add to
 * test_type.c, and messages of derived types. One process, which talks to itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int class_of(int code)
{
	int error_class = -1;

	assert_int_equal(MPI_Error_class(code, &error_class), MPI_SUCCESS);
	return error_class;
}

#define assert_ok(call)            assert_int_equal(call, MPI_SUCCESS)
#define assert_class(class_, call) assert_int_equal(class_of(call), class_)

static void invalid_handles_and_arguments_have_their_class(void **state)
{
	MPI_Datatype t, stale, types[] = { MPI_INT, MPI_DATATYPE_NULL };
	int one[] = { 1, 1 }, position = 0, size;
	MPI_Aint at[] = { 0, 8 };
	char c = 0;

	(void)state;
	assert_class(MPI_ERR_TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t));
	assert_class(MPI_ERR_TYPE, MPI_Type_contiguous(1, (MPI_Datatype)(uintptr_t)0x12345678, &t));
	assert_class(MPI_ERR_TYPE,
		     MPI_Type_contiguous(1, (MPI_Datatype)(uintptr_t)MPI_COMM_WORLD, &t));
	assert_class(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &t));
	assert_class(MPI_ERR_ARG, MPI_Type_contiguous(1, MPI_INT, NULL));
	assert_class(MPI_ERR_TYPE, MPI_Type_create_struct(2, one, at, types, &t));
	assert_class(MPI_ERR_ARG, MPI_Type_create_struct(1, NULL, at, types, &t));
	assert_class(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &size));
	t = MPI_INT;
	assert_class(MPI_ERR_TYPE, MPI_Type_free(&t));
	assert_ok(MPI_Type_contiguous(1, MPI_CHAR, &t));
	assert_class(MPI_ERR_TYPE, MPI_Pack(&c, 1, t, &c, 1, &position, MPI_COMM_SELF));
	assert_class(MPI_ERR_TYPE, MPI_Send(&c, 1, t, MPI_PROC_NULL, 0, MPI_COMM_SELF));
	assert_class(MPI_ERR_COMM, MPI_Pack(&c, 1, MPI_CHAR, &c, 1, &position, MPI_COMM_NULL));
	stale = t;
	assert_ok(MPI_Type_free(&t));
	assert_ptr_equal(t, MPI_DATATYPE_NULL);
	assert_class(MPI_ERR_TYPE, MPI_Type_commit(&stale));
}

static void large_constructors_show_in_the_envelope(void **state)
{
	MPI_Datatype t, old[1];
	MPI_Count ni, na, nl, nd, large[3], size, lb, extent;
	int i, a, d, combiner, plain_size;

	(void)state;
	assert_ok(MPI_Type_vector_c((MPI_Count)1 << 33, 1, 2, MPI_INT, &t));
	assert_ok(MPI_Type_get_envelope_c(t, &ni, &na, &nl, &nd, &combiner));
	assert_int_equal(combiner, MPI_COMBINER_VECTOR);
	assert_true(ni == 0 && na == 0 && nl == 3 && nd == 1);
	assert_ok(MPI_Type_get_contents_c(t, 0, 0, 3, 1, NULL, NULL, large, old));
	assert_true(large[0] == (MPI_Count)1 << 33 && large[1] == 1 && large[2] == 2);
	assert_class(MPI_ERR_TYPE, MPI_Type_get_envelope(t, &i, &a, &d, &combiner));
	assert_ok(MPI_Type_size(t, &plain_size));
	assert_int_equal(plain_size, MPI_UNDEFINED);
	assert_ok(MPI_Type_size_c(t, &size));
	assert_true(size == (MPI_Count)4 << 33);
	assert_ok(MPI_Type_get_extent_c(t, &lb, &extent));
	assert_true(lb == 0 && extent == ((MPI_Count)8 << 33) - 4);
	assert_ok(MPI_Type_get_true_extent_x(t, &lb, &extent));
	assert_true(lb == 0 && extent == ((MPI_Count)8 << 33) - 4);
	assert_ok(MPI_Type_free(&t));
	assert_ok(MPI_Type_vector(3, 1, 2, MPI_INT, &t));
	assert_ok(MPI_Type_get_envelope_c(t, &ni, &na, &nl, &nd, &combiner));
	assert_true(ni == 3 && na == 0 && nl == 0 && nd == 1);
	assert_ok(MPI_Type_free(&t));
}

static void statuses_count_elements(void **state)
{
	struct {
		int i;
		double d;
	} in[3] = { { 1, 1.5 }, { 2, 2.5 }, { 3, 3.5 } }, out[3] = { { 0 } };
	int length[] = { 1, 1 }, twice[] = { 1, 1, 1 }, n;
	MPI_Aint at[] = { 0, 8 }, part[] = { 0, 8, 16 };
	MPI_Datatype types[] = { MPI_INT, MPI_DOUBLE }, some[] = { MPI_INT, MPI_DOUBLE, MPI_INT };
	MPI_Datatype pair, prefix;
	MPI_Status status;
	MPI_Count large;

	(void)state;
	assert_ok(MPI_Type_create_struct(2, length, at, types, &pair));
	assert_ok(MPI_Type_create_struct(3, twice, part, some, &prefix));
	assert_ok(MPI_Type_commit(&pair));
	assert_ok(MPI_Type_commit(&prefix));
	/* one and a half of the pairs */
	assert_ok(MPI_Sendrecv(in, 1, prefix, 0, 5, out, 3, pair, 0, 5, MPI_COMM_SELF, &status));
	assert_true(out[0].i == 1 && out[0].d == 1.5 && out[1].i == 2 && out[1].d == 0);
	assert_ok(MPI_Get_count(&status, pair, &n));
	assert_int_equal(n, MPI_UNDEFINED);
	assert_ok(MPI_Get_elements(&status, pair, &n));
	assert_int_equal(n, 3);
	assert_ok(MPI_Get_elements_x(&status, pair, &large));
	assert_int_equal(large, 3);
	assert_ok(MPI_Get_count(&status, MPI_BYTE, &n));
	assert_int_equal(n, 16);
	assert_ok(MPI_Status_set_elements(&status, pair, 6));
	assert_ok(MPI_Get_count(&status, pair, &n));
	assert_int_equal(n, 3);
	assert_ok(MPI_Status_set_elements_c(&status, pair, ((MPI_Count)1 << 40) + 1));
	assert_ok(MPI_Get_elements_c(&status, pair, &large));
	assert_true(large == ((MPI_Count)1 << 40) + 1);
	assert_ok(MPI_Get_elements(&status, pair, &n));
	assert_int_equal(n, MPI_UNDEFINED);
	assert_ok(MPI_Type_free(&pair));
	assert_ok(MPI_Type_free(&prefix));
}

/* ---- attributes --------------------------------------------------------------------------------------- */

static int copies, deletes;

static int copy_doubled(MPI_Datatype t, int keyval, void *extra, void *in, void *out, int *flag)
{
	(void)t, (void)keyval, (void)extra;
	copies++;
	*(void **)out = (void *)(2 * (intptr_t)in);
	*flag = 1;
	return MPI_SUCCESS;
}

static int count_delete(MPI_Datatype t, int keyval, void *value, void *extra)
{
	(void)t, (void)keyval, (void)value, (void)extra;
	deletes++;
	return MPI_SUCCESS;
}

static void dup_copies_attributes(void **state)
{
	MPI_Datatype t, copy;
	int key, flag;
	void *value;

	(void)state;
	assert_ok(MPI_Type_create_keyval(copy_doubled, count_delete, &key, NULL));
	assert_ok(MPI_Type_contiguous(2, MPI_INT, &t));
	assert_ok(MPI_Type_set_attr(t, key, (void *)21));
	assert_ok(MPI_Type_dup(t, &copy));
	assert_int_equal(copies, 1);
	assert_ok(MPI_Type_get_attr(copy, key, &value, &flag));
	assert_true(flag && (intptr_t)value == 42);
	assert_ok(MPI_Type_free(&t));
	assert_int_equal(deletes, 1);
	assert_ok(MPI_Type_free(&copy));
	assert_int_equal(deletes, 2);
	assert_ok(MPI_Type_free_keyval(&key));
}

/* ---- messages ----------------------------------------------------------------------------------------- */

enum { SIDE = 700 };

/* A matrix goes by columns and comes by rows, in a message much longer than any protocol's limit. */
static void a_message_transposes_a_matrix(void **state)
{
	double *in = malloc(sizeof(double[SIDE][SIDE])), *out = malloc(sizeof(double[SIDE][SIDE]));
	MPI_Datatype column, columns;
	MPI_Status status;
	int n;

	(void)state;
	for (int i = 0; i < SIDE * SIDE; i++)
		in[i] = i;
	assert_ok(MPI_Type_vector(SIDE, 1, SIDE, MPI_DOUBLE, &column));
	assert_ok(MPI_Type_create_resized(column, 0, sizeof(double), &columns));
	assert_ok(MPI_Type_commit(&columns));
	assert_ok(MPI_Sendrecv(in, SIDE, columns, 0, 1, out, SIDE * SIDE, MPI_DOUBLE, 0, 1,
			       MPI_COMM_SELF, &status));
	for (int i = 0; i < SIDE * SIDE; i++)
		assert_true(out[i] == (double)(i % SIDE * SIDE + i / SIDE));
	memset(in, 0, sizeof(double[SIDE][SIDE]));
	assert_ok(MPI_Sendrecv(out, SIDE * SIDE, MPI_DOUBLE, 0, 1, in, SIDE, columns, 0, 1,
			       MPI_COMM_SELF, &status));
	assert_ok(MPI_Get_count(&status, columns, &n));
	assert_int_equal(n, SIDE);
	for (int i = 0; i < SIDE * SIDE; i++)
		assert_true(in[i] == i);
	assert_ok(MPI_Type_free(&column));
	assert_ok(MPI_Type_free(&columns));
	free(in);
	free(out);
}

static void a_type_freed_while_in_use_still_works(void **state)
{
	int in[6] = { 1, 2, 3, 4, 5, 6 }, out[6] = { 0 };
	MPI_Datatype t;
	MPI_Request request;

	(void)state;
	assert_ok(MPI_Type_vector(3, 1, 2, MPI_INT, &t));
	assert_ok(MPI_Type_commit(&t));
	assert_ok(MPI_Irecv(out, 1, t, 0, 2, MPI_COMM_SELF, &request));
	assert_ok(MPI_Type_free(&t));
	assert_ok(MPI_Send(in, 3, MPI_INT, 0, 2, MPI_COMM_SELF));
	assert_ok(MPI_Wait(&request, MPI_STATUS_IGNORE));
	assert_memory_equal(out, ((int[]){ 1, 0, 2, 0, 3, 0 }), sizeof(out));
}

static void packed_data_is_received_as_its_elements(void **state)
{
	char buf[64];
	int i = 7, position = 0, size, got_i = 0;
	double d = 2.5, got_d = 0;
	MPI_Datatype types[] = { MPI_INT, MPI_DOUBLE }, t;
	MPI_Aint at[2];

	(void)state;
	assert_ok(MPI_Pack_size(1, MPI_DOUBLE, MPI_COMM_SELF, &size));
	assert_true(size >= 8);
	assert_ok(MPI_Pack(&i, 1, MPI_INT, buf, sizeof(buf), &position, MPI_COMM_SELF));
	assert_ok(MPI_Pack(&d, 1, MPI_DOUBLE, buf, sizeof(buf), &position, MPI_COMM_SELF));
	MPI_Get_address(&got_i, &at[0]);
	MPI_Get_address(&got_d, &at[1]);
	assert_ok(MPI_Type_create_struct(2, (int[]){ 1, 1 }, at, types, &t));
	assert_ok(MPI_Type_commit(&t));
	assert_ok(MPI_Sendrecv(buf, position, MPI_PACKED, 0, 3, MPI_BOTTOM, 1, t, 0, 3,
			       MPI_COMM_SELF, MPI_STATUS_IGNORE));
	assert_true(got_i == 7 && got_d == 2.5);
	assert_ok(MPI_Type_free(&t));
}

static void external32_through_the_api(void **state)
{
	unsigned char out[4], wanted[4] = { 0, 0, 1, 2 };
	MPI_Aint position = 0, size = 0;
	MPI_Count large = 0;
	int i = 0x102;

	(void)state;
	assert_ok(MPI_Pack_external_size("external32", 1, MPI_INT, &size));
	assert_int_equal(size, 4);
	assert_ok(MPI_Pack_external("external32", &i, 1, MPI_INT, out, 4, &position));
	assert_memory_equal(out, wanted, 4);
	i = 0;
	assert_ok(MPI_Unpack_external_c("external32", out, 4, &large, &i, 1, MPI_INT));
	assert_int_equal(i, 0x102);
	assert_int_equal(large, 4);
}

/* ---- what MPI-3 removed ------------------------------------------------------------------------------- */

#ifdef MPI_UB
static void old_structs_have_the_bounds_of_their_markers(void **state)
{
	int length[] = { 1, 2, 1 };
	MPI_Aint at[] = { -4, 0, 24 }, extent, lb, ub;
	MPI_Datatype types[] = { MPI_LB, MPI_INT, MPI_UB }, t, hv;

	(void)state;
	assert_ok(MPI_Type_struct(3, length, at, types, &t));
	assert_ok(MPI_Type_extent(t, &extent));
	assert_ok(MPI_Type_lb(t, &lb));
	assert_ok(MPI_Type_ub(t, &ub));
	assert_true(extent == 28 && lb == -4 && ub == 24);
	assert_ok(MPI_Type_hvector(2, 1, 100, t, &hv));
	assert_ok(MPI_Type_extent(hv, &extent));
	assert_int_equal(extent, 128);
	assert_ok(MPI_Type_free(&hv));
	assert_ok(MPI_Type_free(&t));
}
#endif

static int start(void **state)
{
	(void)state;
	MPI_Init(NULL, NULL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	return MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static int stop(void **state)
{
	(void)state;
	return MPI_Finalize();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(invalid_handles_and_arguments_have_their_class),
		cmocka_unit_test(large_constructors_show_in_the_envelope),
		cmocka_unit_test(statuses_count_elements),
		cmocka_unit_test(dup_copies_attributes),
		cmocka_unit_test(a_message_transposes_a_matrix),
		cmocka_unit_test(a_type_freed_while_in_use_still_works),
		cmocka_unit_test(packed_data_is_received_as_its_elements),
		cmocka_unit_test(external32_through_the_api),
#ifdef MPI_UB
		cmocka_unit_test(old_structs_have_the_bounds_of_their_markers),
#endif
	};

	return cmocka_run_group_tests(tests, start, stop);
}
