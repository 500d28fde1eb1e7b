/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Datatypes through the public functions, also those that MPI-3 removed: what the entry points
 * add to test_type.c, and messages of derived types. One process, which talks to itself.
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

/* ---- the large-count form of each constructor ------------------------------------------------ */

#define MANY (((MPI_Count)1 << 31) + 1) /* below zero as an int */

/* All inquiries, in each form; `t` is freed. */
static void is_large(MPI_Datatype t, MPI_Count size, MPI_Count lb, MPI_Count extent,
		     MPI_Count true_lb, MPI_Count true_extent)
{
	MPI_Count s = -2, l = -2, e = -2;
	MPI_Aint al = -2, ae = -2;
	int i = -2;

	assert_ok(MPI_Type_size_c(t, &s));
	assert_int_equal(s, size);
	assert_ok(MPI_Type_size_x(t, &s));
	assert_int_equal(s, size);
	assert_ok(MPI_Type_size(t, &i));
	assert_int_equal(i, size > 2147483647 ? MPI_UNDEFINED : size);
	assert_ok(MPI_Type_get_extent_c(t, &l, &e));
	assert_true(l == lb && e == extent);
	l = e = -2;
	assert_ok(MPI_Type_get_extent_x(t, &l, &e));
	assert_true(l == lb && e == extent);
	assert_ok(MPI_Type_get_extent(t, &al, &ae));
	assert_true(al == lb && ae == extent);
	assert_ok(MPI_Type_get_true_extent_c(t, &l, &e));
	assert_true(l == true_lb && e == true_extent);
	l = e = -2;
	assert_ok(MPI_Type_get_true_extent_x(t, &l, &e));
	assert_true(l == true_lb && e == true_extent);
	assert_ok(MPI_Type_get_true_extent(t, &al, &ae));
	assert_true(al == true_lb && ae == true_extent);
	assert_ok(MPI_Type_free(&t));
}

static void large_constructors_count_beyond_an_int(void **state)
{
	const MPI_Count lengths[] = { MANY, 1 }, places[] = { 0, MANY + 5 },
			far[] = { 0, 8 * MANY }, sizes[] = { MANY, 4 }, parts[] = { MANY - 1, 2 },
			starts[] = { 1, 1 }, end[] = { MANY - 1, 1 }, whole[] = { 2 * MANY };
	const int block[] = { MPI_DISTRIBUTE_BLOCK }, usual[] = { MPI_DISTRIBUTE_DFLT_DARG },
		  two[] = { 2 };
	const MPI_Datatype types[] = { MPI_INT, MPI_DOUBLE };
	MPI_Datatype t;

	(void)state;
	assert_ok(MPI_Type_contiguous_c(MANY, MPI_INT, &t));
	is_large(t, 4 * MANY, 0, 4 * MANY, 0, 4 * MANY);
	assert_ok(MPI_Type_vector_c(2, MANY, 2 * MANY, MPI_INT, &t));
	is_large(t, 8 * MANY, 0, 12 * MANY, 0, 12 * MANY);
	assert_ok(MPI_Type_create_hvector_c(MANY, 2, 16, MPI_INT, &t));
	is_large(t, 8 * MANY, 0, 16 * MANY - 8, 0, 16 * MANY - 8);
	assert_ok(MPI_Type_create_hvector_c(2, MANY, 8 * MANY, MPI_INT, &t));
	is_large(t, 8 * MANY, 0, 12 * MANY, 0, 12 * MANY);
	assert_ok(MPI_Type_indexed_c(2, lengths, places, MPI_INT, &t));
	is_large(t, 4 * (MANY + 1), 0, 4 * (MANY + 6), 0, 4 * (MANY + 6));
	assert_ok(MPI_Type_create_hindexed_c(2, lengths, far, MPI_INT, &t));
	is_large(t, 4 * (MANY + 1), 0, 8 * MANY + 4, 0, 8 * MANY + 4);
	assert_ok(MPI_Type_create_indexed_block_c(2, MANY, places, MPI_INT, &t));
	is_large(t, 8 * MANY, 0, 4 * (2 * MANY + 5), 0, 4 * (2 * MANY + 5));
	assert_ok(MPI_Type_create_hindexed_block_c(2, MANY, far, MPI_INT, &t));
	is_large(t, 8 * MANY, 0, 12 * MANY, 0, 12 * MANY);
	assert_ok(MPI_Type_create_struct_c(2, lengths, far, types, &t));
	is_large(t, 4 * MANY + 8, 0, 8 * MANY + 8, 0, 8 * MANY + 8);
	assert_ok(MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t));
	is_large(t, 8 * (MANY - 1), 0, 16 * MANY, 20, 16 * (MANY - 2) + 8);
	assert_ok(MPI_Type_create_subarray_c(2, sizes, starts, end, MPI_ORDER_C, MPI_INT, &t));
	is_large(t, 4, 0, 16 * MANY, 16 * (MANY - 1) + 4, 4);
	assert_ok(MPI_Type_create_darray_c(2, 1, 1, whole, block, usual, two, MPI_ORDER_C, MPI_INT,
					   &t));
	is_large(t, 4 * MANY, 0, 8 * MANY, 4 * MANY, 4 * MANY);
	assert_ok(MPI_Type_create_resized_c(MPI_INT, -MANY, 3 * MANY, &t));
	is_large(t, 4, -MANY, 3 * MANY, 0, 4);
}

/* Both are the same to the last byte of an element; they go. */
static void are_the_same(MPI_Datatype large, MPI_Datatype plain)
{
	char from[256], a[256] = "", b[256] = "", back[256] = "", want[256] = "";
	MPI_Count position = 0, size = 0;
	int at = 0, room = 0;

	for (int i = 0; i < 256; i++)
		from[i] = (char)(i + 1);
	assert_ok(MPI_Type_commit(&large));
	assert_ok(MPI_Type_commit(&plain));
	assert_ok(MPI_Pack_size_c(1, large, MPI_COMM_SELF, &size));
	assert_ok(MPI_Pack_size(1, plain, MPI_COMM_SELF, &room));
	assert_int_equal(size, room);
	assert_ok(MPI_Pack_c(from, 1, large, a, sizeof(a), &position, MPI_COMM_SELF));
	assert_ok(MPI_Pack(from, 1, plain, b, sizeof(b), &at, MPI_COMM_SELF));
	assert_true(position > 0 && position == at);
	assert_memory_equal(a, b, sizeof(a));
	size = position;
	position = at = 0;
	assert_ok(MPI_Unpack_c(a, size, &position, back, 1, large, MPI_COMM_SELF));
	assert_ok(MPI_Unpack(b, (int)size, &at, want, 1, plain, MPI_COMM_SELF));
	assert_true(position == size && at == size);
	assert_memory_equal(back, want, sizeof(back));
	assert_memory_equal(&back[20], &from[20], 4); /* there is something in each at this place */
	assert_ok(MPI_Type_free(&large));
	assert_ok(MPI_Type_free(&plain));
}

static void large_constructors_make_the_same_types_as_plain_ones(void **state)
{
	const MPI_Count lengths_c[] = { 1, 3 }, places_c[] = { 1, 4 }, far_c[] = { 4, 20 },
			sizes_c[] = { 3, 5 }, parts_c[] = { 2, 4 }, starts_c[] = { 1, 0 };
	const int lengths[] = { 1, 3 }, places[] = { 1, 4 }, sizes[] = { 3, 5 }, parts[] = { 2, 4 },
		  starts[] = { 1, 0 };
	const MPI_Aint far[] = { 4, 20 };
	const int how[] = { MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK },
		  usual[] = { MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG },
		  grid[] = { 2, 1 };
	const MPI_Datatype types[] = { MPI_INT, MPI_SHORT };
	MPI_Datatype a, b;

	(void)state;
	assert_ok(MPI_Type_contiguous_c(6, MPI_INT, &a));
	assert_ok(MPI_Type_contiguous(6, MPI_INT, &b));
	are_the_same(a, b);
	assert_ok(MPI_Type_create_hvector_c(3, 2, 10, MPI_INT, &a));
	assert_ok(MPI_Type_create_hvector(3, 2, 10, MPI_INT, &b));
	are_the_same(a, b);
	assert_ok(MPI_Type_indexed_c(2, lengths_c, places_c, MPI_INT, &a));
	assert_ok(MPI_Type_indexed(2, lengths, places, MPI_INT, &b));
	are_the_same(a, b);
	assert_ok(MPI_Type_create_hindexed_c(2, lengths_c, far_c, MPI_INT, &a));
	assert_ok(MPI_Type_create_hindexed(2, lengths, far, MPI_INT, &b));
	are_the_same(a, b);
	assert_ok(MPI_Type_create_indexed_block_c(2, 2, places_c, MPI_INT, &a));
	assert_ok(MPI_Type_create_indexed_block(2, 2, places, MPI_INT, &b));
	are_the_same(a, b);
	assert_ok(MPI_Type_create_hindexed_block_c(2, 2, far_c, MPI_INT, &a));
	assert_ok(MPI_Type_create_hindexed_block(2, 2, far, MPI_INT, &b));
	are_the_same(a, b);
	assert_ok(MPI_Type_create_struct_c(2, lengths_c, far_c, types, &a));
	assert_ok(MPI_Type_create_struct(2, lengths, far, types, &b));
	are_the_same(a, b);
	assert_ok(MPI_Type_create_subarray_c(2, sizes_c, parts_c, starts_c, MPI_ORDER_C, MPI_INT,
					     &a));
	assert_ok(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &b));
	are_the_same(a, b);
	assert_ok(MPI_Type_create_darray_c(2, 1, 2, sizes_c, how, usual, grid, MPI_ORDER_C, MPI_INT,
					   &a));
	assert_ok(
		MPI_Type_create_darray(2, 1, 2, sizes, how, usual, grid, MPI_ORDER_C, MPI_INT, &b));
	are_the_same(a, b);
}

static void an_element_may_begin_beyond_an_int(void **state)
{
	MPI_Datatype t;
	const char *base;
	int in[2] = { 1, 2 }, out[2] = { 0 };
	MPI_Count position = 0;
	MPI_Aint at;

	(void)state;
	/* two ints, 8 * MANY bytes after the address that is given */
	assert_ok(MPI_Type_create_hindexed_block_c(1, 2, (MPI_Count[]){ 8 * MANY }, MPI_INT, &t));
	assert_ok(MPI_Type_commit(&t));
	MPI_Get_address(in, &at);
	base = (const char *)(at - 8 * MANY);
	assert_ok(MPI_Pack_c(base, 1, t, out, sizeof(out), &position, MPI_COMM_SELF));
	assert_memory_equal(in, out, sizeof(in));
	assert_ok(MPI_Type_free(&t));
}

/* ---- statuses -------------------------------------------------------------------------------- */

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
	assert_ok(MPI_Status_set_elements_x(&status, pair, MANY + 1));
	assert_ok(MPI_Get_count_c(&status, pair, &large));
	assert_int_equal(large, (MANY + 1) / 2);
	assert_ok(MPI_Type_free(&pair));
	assert_ok(MPI_Type_free(&prefix));
}

/* ---- attributes ------------------------------------------------------------------------------ */

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

/* ---- messages -------------------------------------------------------------------------------- */

enum { SIDE = 700 };

/* A matrix goes by columns and comes by rows, in a message much longer than any protocol's
 * limit. */
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
	i = 0;
	position = 0;
	assert_ok(MPI_Unpack_external("external32", out, 4, &position, &i, 1, MPI_INT));
	assert_int_equal(i, 0x102);
	assert_int_equal(position, 4);
	assert_ok(MPI_Pack_external_size_c("external32", MANY, MPI_INT, &large));
	assert_int_equal(large, 4 * MANY);
	memset(out, 0, sizeof(out));
	large = 0;
	assert_ok(MPI_Pack_external_c("external32", &i, 1, MPI_INT, out, 4, &large));
	assert_memory_equal(out, wanted, 4);
	assert_int_equal(large, 4);
}

static void sizes_of_packed_data_are_beyond_an_int(void **state)
{
	MPI_Count size = 0;
	int i = 0;

	(void)state;
	assert_ok(MPI_Pack_size_c(MANY, MPI_INT, MPI_COMM_SELF, &size));
	assert_true(size >= 4 * MANY);
	assert_ok(MPI_Pack_size(2147483647, MPI_INT, MPI_COMM_SELF, &i));
	assert_int_equal(i, MPI_UNDEFINED);
}

/* Of so many elements that have no size nothing comes, in a buffer said to be as long. */
static void packing_counts_beyond_an_int(void **state)
{
	MPI_Count position = 0;
	MPI_Datatype empty;
	char buf[4] = { 7 }, data[4] = { 8 };

	(void)state;
	assert_ok(MPI_Type_contiguous(0, MPI_INT, &empty));
	assert_ok(MPI_Type_commit(&empty));
	assert_ok(MPI_Pack_c(data, MANY, empty, buf, MANY, &position, MPI_COMM_SELF));
	assert_ok(MPI_Unpack_c(buf, MANY, &position, data, MANY, empty, MPI_COMM_SELF));
	assert_ok(MPI_Pack_external_c("external32", data, MANY, empty, buf, MANY, &position));
	assert_ok(MPI_Unpack_external_c("external32", buf, MANY, &position, data, MANY, empty));
	assert_true(position == 0 && buf[0] == 7 && data[0] == 8);
	assert_ok(MPI_Type_free(&empty));
}

/* ---- names, contents, types by their properties ---------------------------------------------- */

static void types_have_names(void **state)
{
	char name[MPI_MAX_OBJECT_NAME] = "";
	MPI_Datatype t;
	int length = -1;

	(void)state;
	assert_ok(MPI_Type_get_name(MPI_INT, name, &length));
	assert_string_equal(name, "MPI_INT");
	assert_int_equal(length, 7);
	assert_ok(MPI_Type_contiguous(2, MPI_INT, &t));
	assert_ok(MPI_Type_get_name(t, name, &length));
	assert_string_equal(name, "");
	assert_int_equal(length, 0);
	assert_ok(MPI_Type_set_name(t, "a pair"));
	assert_ok(MPI_Type_get_name(t, name, &length));
	assert_string_equal(name, "a pair");
	assert_int_equal(length, 6);
	assert_ok(MPI_Type_free(&t));
}

static void contents_are_what_was_given(void **state)
{
	MPI_Datatype t, old[2];
	MPI_Aint at[2];
	int ni, na, nd, combiner, ints[3];

	(void)state;
	assert_ok(MPI_Type_create_struct(2, (int[]){ 3, 4 }, (MPI_Aint[]){ 0, 16 },
					 (MPI_Datatype[]){ MPI_INT, MPI_CHAR }, &t));
	assert_ok(MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner));
	assert_true(ni == 3 && na == 2 && nd == 2 && combiner == MPI_COMBINER_STRUCT);
	assert_ok(MPI_Type_get_contents(t, ni, na, nd, ints, at, old));
	assert_true(ints[0] == 2 && ints[1] == 3 && ints[2] == 4);
	assert_true(at[0] == 0 && at[1] == 16);
	assert_true(old[0] == MPI_INT && old[1] == MPI_CHAR);
	assert_ok(MPI_Type_free(&t));
}

static void types_are_found_by_what_they_hold(void **state)
{
	MPI_Datatype t;
	int size = 0, ni, na, nd, combiner, range;

	(void)state;
	assert_ok(MPI_Type_create_f90_integer(9, &t));
	assert_ok(MPI_Type_size(t, &size));
	assert_int_equal(size, 4);
	assert_ok(MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner));
	assert_true(ni == 1 && na == 0 && nd == 0 && combiner == MPI_COMBINER_F90_INTEGER);
	assert_ok(MPI_Type_get_contents(t, 1, 0, 0, &range, NULL, NULL));
	assert_int_equal(range, 9);
	assert_ok(MPI_Type_create_f90_complex(15, MPI_UNDEFINED, &t));
	assert_ok(MPI_Type_size(t, &size));
	assert_int_equal(size, 16);
	assert_class(MPI_ERR_ARG, MPI_Type_create_f90_integer(100, &t));
	assert_ok(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t));
	assert_ok(MPI_Type_size(t, &size));
	assert_int_equal(size, 8);
	assert_ok(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 2, &t));
	assert_ok(MPI_Type_size(t, &size));
	assert_int_equal(size, 2);
	assert_class(MPI_ERR_ARG, MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &t));
}

/* ---- what MPI-3 removed ---------------------------------------------------------------------- */

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
		cmocka_unit_test(large_constructors_count_beyond_an_int),
		cmocka_unit_test(large_constructors_make_the_same_types_as_plain_ones),
		cmocka_unit_test(an_element_may_begin_beyond_an_int),
		cmocka_unit_test(statuses_count_elements),
		cmocka_unit_test(dup_copies_attributes),
		cmocka_unit_test(a_message_transposes_a_matrix),
		cmocka_unit_test(a_type_freed_while_in_use_still_works),
		cmocka_unit_test(packed_data_is_received_as_its_elements),
		cmocka_unit_test(external32_through_the_api),
		cmocka_unit_test(sizes_of_packed_data_are_beyond_an_int),
		cmocka_unit_test(packing_counts_beyond_an_int),
		cmocka_unit_test(types_have_names),
		cmocka_unit_test(contents_are_what_was_given),
		cmocka_unit_test(types_are_found_by_what_they_hold),
#ifdef MPI_UB
		cmocka_unit_test(old_structs_have_the_bounds_of_their_markers),
#endif
	};

	return cmocka_run_group_tests(tests, start, stop);
}
