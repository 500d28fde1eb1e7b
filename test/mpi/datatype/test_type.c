/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Datatypes: what random types (prop_type.c) do not come to. Predefined types, errors, limits,
 * life and names, contents of types made with large counts, Fortran's kinds, and external32 byte
 * by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mpi_shim/impl.h"
#include "mpi_shim/datatype/type.h"
#include "type_alone.h"

static struct mpi_type *of(MPI_Datatype handle)
{
	struct mpi_type *t = mpi_type_of(handle);

	assert_non_null(t);
	return t;
}

static void drop(struct mpi_type *t)
{
	assert_int_equal(mpi_type_free(&t), MPI_SUCCESS);
	assert_null(t);
}

static int start(void **state)
{
	(void)state;
	alone_attr_copies = alone_attr_deletes = alone_attr_result = 0;
	return mpi_types_init();
}

/* Every test leaves no type behind. */
static int stop(void **state)
{
	(void)state;
	mpi_types_fini();
	assert_int_equal(mpi_pools[MPI_KIND_TYPE].in_use, 0);
	mpi_pools_fini();
	return 0;
}

/* ---- predefined ------------------------------------------------------------------------------ */

static void fixed_size_handles_tell_their_size(void **state)
{
	int found = 0;

	(void)state;
	for (uintptr_t h = 0x240; h < 0x300; h++) {
		const struct mpi_type *t = mpi_type_of((MPI_Datatype)h);

		if (!t || t->size == MPI_UNDEFINED)
			continue;
		assert_int_equal(t->size, 1 << (h >> 3 & 7));
		assert_true(t->dense && t->committed && t->predefined);
		found++;
	}
	assert_int_equal(found, 12 + 16);
}

static void types_that_do_not_exist_here_have_no_size_and_are_refused(void **state)
{
	struct mpi_type *t = of(MPI_REAL2), *made;
	MPI_Count size = 0, position = 0;
	char c = 0;

	(void)state;
	assert_int_equal(mpi_type_size(t, &size), MPI_SUCCESS);
	assert_int_equal(size, MPI_UNDEFINED);
	assert_false(t->committed);
	assert_int_equal(mpi_type_commit(&t), MPI_ERR_TYPE);
	assert_int_equal(mpi_type_contiguous(2, t, &made), MPI_ERR_TYPE);
	assert_int_equal(
		mpi_type_create_struct(1, (MPI_Count[]){ 1 }, (MPI_Count[]){ 0 }, &t, &made),
		MPI_ERR_TYPE);
	assert_int_equal(mpi_pack(&c, 1, t, &c, 1, &position, NULL), MPI_ERR_TYPE);
	assert_int_equal(mpi_pack_size(1, t, NULL, &size), MPI_ERR_TYPE);
}

static void pairs_lie_as_in_c(void **state)
{
	struct {
		long double value;
		int index;
	} p = { 1.5L, 7 };
	const struct mpi_type *value, *index;
	struct mpi_type *t = of(MPI_LONG_DOUBLE_INT);
	MPI_Aint offset;

	(void)state;
	assert_int_equal(t->extent, sizeof(p));
	assert_int_equal(t->size, sizeof(long double) + sizeof(int));
	assert_true(mpi_type_pair(t, &value, &index, &offset));
	assert_ptr_equal(value, of(MPI_LONG_DOUBLE));
	assert_ptr_equal(index, of(MPI_INT));
	assert_int_equal(offset, (char *)&p.index - (char *)&p);
	assert_false(mpi_type_pair(of(MPI_INT), &value, &index, &offset));
	assert_null(mpi_type_basic(t));
	assert_ptr_equal(mpi_type_basic(of(MPI_2INT)), of(MPI_INT));
}

static void of_several_names_a_type_has_the_standards_first(void **state)
{
	char name[MPI_MAX_OBJECT_NAME];
	int n;

	(void)state;
	mpi_type_get_name(of(MPI_LONG_LONG), name, &n);
	assert_string_equal(name, "MPI_LONG_LONG_INT");
	mpi_type_get_name(of(MPI_C_FLOAT_COMPLEX), name, &n);
	assert_string_equal(name, "MPI_C_COMPLEX");
}

static void names_can_be_asked_for_and_set(void **state)
{
	char name[MPI_MAX_OBJECT_NAME], long_name[2 * MPI_MAX_OBJECT_NAME];
	struct mpi_type *t;
	int n;

	(void)state;
	assert_int_equal(mpi_type_get_name(of(MPI_UNSIGNED_LONG_LONG), name, &n), MPI_SUCCESS);
	assert_string_equal(name, "MPI_UNSIGNED_LONG_LONG");
	assert_int_equal(n, strlen(name));
	assert_int_equal(mpi_type_contiguous(3, of(MPI_INT), &t), MPI_SUCCESS);
	mpi_type_get_name(t, name, &n);
	assert_int_equal(n, 0);
	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(mpi_type_set_name(t, long_name), MPI_SUCCESS);
	mpi_type_get_name(t, name, &n);
	assert_int_equal(n, MPI_MAX_OBJECT_NAME - 1);
	drop(t);
}

/* ---- errors and limits ----------------------------------------------------------------------- */

static void bad_arguments_have_their_class(void **state)
{
	struct mpi_type *i = of(MPI_INT), *t;
	MPI_Count one[] = { 1, 1 }, negative[] = { 1, -1 }, two[] = { 2, 2 };
	int block[] = { MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK }, dflt[] = { 1, 1 };
	int grid[] = { 2, 2 };

	(void)state;
	assert_int_equal(mpi_type_contiguous(-1, i, &t), MPI_ERR_COUNT);
	assert_int_equal(mpi_type_vector(-1, 1, 1, i, &t), MPI_ERR_COUNT);
	assert_int_equal(mpi_type_vector(1, -1, 1, i, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_indexed(2, negative, one, i, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_hindexed_block(1, -1, one, i, &t), MPI_ERR_ARG);
	assert_int_equal(
		mpi_type_create_struct(2, negative, one, (struct mpi_type *[]){ i, i }, &t),
		MPI_ERR_ARG);
	/* a part that starts or ends outside, an empty one, an order that is none, no dimensions */
	assert_int_equal(mpi_type_create_subarray(2, two, two, one, MPI_ORDER_C, i, &t),
			 MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_subarray(2, two, one, negative, MPI_ORDER_C, i, &t),
			 MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_subarray(2, two, negative, one, MPI_ORDER_C, i, &t),
			 MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_subarray(2, two, one, one, 3, i, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_subarray(0, two, one, one, MPI_ORDER_C, i, &t),
			 MPI_ERR_ARG);
	/* a grid of another size, a rank outside, blocks that do not hold the array, no such way */
	assert_int_equal(
		mpi_type_create_darray(3, 0, 2, two, block, dflt, grid, MPI_ORDER_C, i, &t),
		MPI_ERR_ARG);
	assert_int_equal(
		mpi_type_create_darray(4, 4, 2, two, block, dflt, grid, MPI_ORDER_C, i, &t),
		MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_darray(4, 0, 2, (MPI_Count[]){ 9, 2 }, block, dflt, grid,
						MPI_ORDER_C, i, &t),
			 MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_darray(4, 0, 2, two, (int[]){ 1, 2 }, dflt, grid,
						MPI_ORDER_C, i, &t),
			 MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_darray(
				 4, 0, 2, two, (int[]){ MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK },
				 dflt, grid, MPI_ORDER_C, i, &t),
			 MPI_ERR_ARG);
}

static void types_beyond_an_address_space_are_refused(void **state)
{
	struct mpi_type *i = of(MPI_INT), *t, *u;
	MPI_Count most = INT64_MAX, one = 1;

	(void)state;
	assert_int_equal(mpi_type_contiguous(most, i, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_vector(2, 1, most, i, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_vector(most, most, most, i, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_hvector(3, 1, most, i, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_indexed(1, &one, &most, i, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_hindexed(1, &one, &most, i, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_resized(i, most, most, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_subarray(2, (MPI_Count[]){ most, most },
						  (MPI_Count[]){ 1, 1 }, (MPI_Count[]){ 0, 0 },
						  MPI_ORDER_C, i, &t),
			 MPI_ERR_ARG);
	/* nothing, however often, is nothing */
	assert_int_equal(mpi_type_contiguous(0, i, &t), MPI_SUCCESS);
	assert_int_equal(mpi_type_contiguous(most, t, &u), MPI_SUCCESS);
	assert_int_equal(u->size, 0);
	assert_int_equal(mpi_type_elements(u, 0), 0);
	assert_int_equal(mpi_type_elements(u, 4), -1);
	drop(t);
	drop(u);
}

static void counts_beyond_int_work(void **state)
{
	struct mpi_type *t;
	MPI_Count n = (MPI_Count)3 << 32, size = 0;

	(void)state;
	assert_int_equal(mpi_type_vector(n, 1, 2, of(MPI_CHAR), &t), MPI_SUCCESS);
	assert_int_equal(t->size, n);
	assert_int_equal(t->extent, 2 * n - 1);
	assert_int_equal(mpi_pack_size(2, t, NULL, &size), MPI_SUCCESS);
	assert_int_equal(size, 2 * n);
	assert_int_equal(mpi_pack_size(INT64_MAX, t, NULL, &size), MPI_ERR_COUNT);
	drop(t);
}

static void a_long_chain_of_types_ends_without_recursion(void **state)
{
	struct mpi_type *t, *next;

	(void)state;
	assert_int_equal(mpi_type_dup(of(MPI_INT), &t), MPI_SUCCESS);
	for (int i = 0; i < 200000; i++) {
		assert_int_equal(mpi_type_dup(t, &next), MPI_SUCCESS);
		drop(t);
		t = next;
	}
	assert_int_equal(mpi_type_elements(t, 8), 2);
	drop(t);
}

static void nesting_too_deep_is_refused_and_deep_nesting_works(void **state)
{
	struct mpi_type *t, *next;
	MPI_Count one[] = { 1, 1 }, position = 0;
	int rc = MPI_SUCCESS, depth = 0, *buf, *out;

	(void)state;
	assert_int_equal(mpi_type_dup(of(MPI_INT), &t), MPI_SUCCESS);
	for (; depth < 100000; depth++) {
		struct mpi_type *members[] = { of(MPI_INT), t };

		rc = mpi_type_create_struct(2, one, (MPI_Count[]){ 0, 8 }, members, &next);
		if (rc != MPI_SUCCESS)
			break;
		drop(t);
		t = next;
	}
	assert_int_equal(rc, MPI_ERR_TYPE);
	assert_true(depth > 1000);
	assert_int_equal(mpi_type_commit(&t), MPI_SUCCESS);
	assert_int_equal(t->size, 4 * (depth + 1));
	buf = malloc((size_t)t->extent);
	out = malloc((size_t)t->size);
	for (int i = 0; i <= depth; i++)
		buf[2 * i] = i;
	assert_int_equal(mpi_pack(buf, 1, t, out, t->size, &position, NULL), MPI_SUCCESS);
	for (int i = 0; i <= depth; i++)
		assert_int_equal(out[i], i);
	position = 0;
	assert_int_equal(mpi_pack_external("external32", buf, 1, t, out, t->size, &position),
			 MPI_SUCCESS);
	assert_int_equal(mpi_type_elements(t, 4 * depth), depth);
	free(buf);
	free(out);
	drop(t);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void predefined_types_cannot_be_freed(void **state)
{
	struct mpi_type *t = of(MPI_INT);

	(void)state;
	assert_int_equal(mpi_type_free(&t), MPI_ERR_TYPE);
	assert_ptr_equal(t, of(MPI_INT));
	assert_int_equal(mpi_type_create_f90_real(6, MPI_UNDEFINED, &t), MPI_SUCCESS);
	assert_int_equal(mpi_type_free(&t), MPI_ERR_TYPE);
}

static void a_type_outlives_its_handle_where_it_is_used(void **state)
{
	struct mpi_type *inner, *outer, *gone;
	MPI_Datatype handle[1];
	int ints[3];

	(void)state;
	assert_int_equal(mpi_type_vector(2, 1, 2, of(MPI_INT), &inner), MPI_SUCCESS);
	assert_int_equal(mpi_type_contiguous(3, inner, &outer), MPI_SUCCESS);
	gone = inner;
	drop(inner);
	assert_int_equal(alone_attr_deletes, 1);
	assert_int_equal(mpi_type_free(&gone), MPI_ERR_TYPE); /* twice */
	assert_int_equal(mpi_type_get_contents(outer, 1, 0, 0, 1, ints, NULL, NULL, handle),
			 MPI_SUCCESS);
	drop(of(handle[0])); /* the handle that get_contents gave */
	assert_int_equal(alone_attr_deletes, 2);
	drop(outer);
}

static void attributes_go_with_the_last_handle(void **state)
{
	struct mpi_type *inner, *outer;
	MPI_Datatype handle[1];
	int ints[1];

	(void)state;
	assert_int_equal(mpi_type_contiguous(2, of(MPI_INT), &inner), MPI_SUCCESS);
	assert_int_equal(mpi_type_contiguous(2, inner, &outer), MPI_SUCCESS);
	assert_int_equal(mpi_type_get_contents(outer, 1, 0, 0, 1, ints, NULL, NULL, handle),
			 MPI_SUCCESS);
	drop(of(handle[0]));
	assert_int_equal(alone_attr_deletes, 0);
	alone_attr_result = MPI_ERR_OTHER; /* a callback that fails: the type stays */
	assert_int_equal(mpi_type_free(&inner), MPI_ERR_OTHER);
	assert_non_null(inner);
	alone_attr_result = MPI_SUCCESS;
	drop(inner);
	assert_int_equal(alone_attr_deletes, 2);
	drop(outer);
}

static void dup_copies_attributes_and_commitment_and_may_fail(void **state)
{
	struct mpi_type *t, *copy = NULL;

	(void)state;
	assert_int_equal(mpi_type_vector(2, 1, 2, of(MPI_INT), &t), MPI_SUCCESS);
	assert_int_equal(mpi_type_dup(t, &copy), MPI_SUCCESS);
	assert_int_equal(alone_attr_copies, 1);
	assert_false(copy->committed);
	drop(copy);
	assert_int_equal(mpi_type_commit(&t), MPI_SUCCESS);
	alone_attr_result = MPI_ERR_OTHER;
	assert_int_equal(mpi_type_dup(t, &copy), MPI_ERR_OTHER);
	alone_attr_result = MPI_SUCCESS;
	assert_int_equal(mpi_type_dup(t, &copy), MPI_SUCCESS);
	assert_true(copy->committed);
	drop(copy);
	drop(t);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void markers_of_mpi_1_set_bounds(void **state)
{
	struct mpi_type *t, *u;
	struct mpi_type *members[] = { of(MPI_HANDLE_LB), of(MPI_INT), of(MPI_HANDLE_UB) };

	(void)state;
	assert_int_equal(mpi_type_create_struct(3, (MPI_Count[]){ 1, 1, 1 },
						(MPI_Count[]){ -3, 0, 6 }, members, &t),
			 MPI_SUCCESS);
	assert_int_equal(t->lb, -3);
	assert_int_equal(t->extent, 9);
	assert_int_equal(t->true_extent, 4);
	/* {(lb,-3), (int,0), (ub,6)} twice is {(lb,-3), (int,0), (int,9), (ub,15)}; MPI-1.3
	 * §3.12.3 */
	assert_int_equal(mpi_type_contiguous(2, t, &u), MPI_SUCCESS);
	assert_int_equal(u->lb, -3);
	assert_int_equal(u->extent, 18);
	assert_int_equal(u->true_extent, 13);
	drop(u);
	drop(t);
}

static void struct_extents_are_padded_as_in_c(void **state)
{
	struct {
		double d;
		char c;
	} s[2];
	struct mpi_type *members[] = { of(MPI_DOUBLE), of(MPI_CHAR) }, *t;

	(void)state;
	assert_int_equal(mpi_type_create_struct(2, (MPI_Count[]){ 1, 1 }, (MPI_Count[]){ 0, 8 },
						members, &t),
			 MPI_SUCCESS);
	assert_int_equal(t->extent, (char *)&s[1] - (char *)&s[0]);
	assert_int_equal(t->size, 9);
	drop(t);
}

/* ---- layouts --------------------------------------------------------------------------------- */

static void what_lies_together_is_dense(void **state)
{
	MPI_Count one[] = { 1, 2, 1 };
	struct mpi_type *members[] = { of(MPI_INT), of(MPI_SHORT), of(MPI_INT) }, *t, *u;

	(void)state;
	/* a struct of touching members, an indexed type of touching blocks, a vector without
	 * gaps */
	assert_int_equal(mpi_type_create_struct(3, one, (MPI_Count[]){ 4, 8, 12 }, members, &t),
			 MPI_SUCCESS);
	assert_true(t->dense);
	assert_int_equal(t->true_lb, 4);
	assert_int_equal(mpi_type_vector(3, 2, 2, t, &u), MPI_SUCCESS);
	assert_true(u->dense);
	drop(u);
	assert_int_equal(mpi_type_indexed(3, one, (MPI_Count[]){ 0, 1, 3 }, t, &u), MPI_SUCCESS);
	assert_true(u->dense);
	drop(u);
	assert_int_equal(mpi_type_create_resized(t, 0, 24, &u), MPI_SUCCESS);
	assert_false(u->dense);
	drop(u);
	drop(t);
}

static void typed_places_are_copied_as_messages(void **state)
{
	struct mpi_type *column, *row;
	enum { N = 150 };
	int *from = malloc(N * N * sizeof(int)), *to = calloc(N * N, sizeof(int));

	(void)state;
	for (int i = 0; i < N * N; i++)
		from[i] = i;
	/* columns of one become every other element of the rows of the other */
	assert_int_equal(mpi_type_vector(N, 1, N, of(MPI_INT), &column), MPI_SUCCESS);
	assert_int_equal(mpi_type_create_resized(column, 0, sizeof(int), &row), MPI_SUCCESS);
	drop(column);
	assert_int_equal(mpi_type_vector(N / 2, 1, 2, of(MPI_INT), &column), MPI_SUCCESS);
	assert_int_equal(mpi_type_copy(from, N / 2, row, to, N, column), MPI_SUCCESS);
	for (int k = 0; k < N / 2 * N; k++) {
		int element = k / (N / 2), i = k % (N / 2);

		/* each element of `column` spans N - 1 */
		assert_int_equal(to[element * (N - 1) + 2 * i], (k % N) * N + k / N);
	}
	assert_int_equal(mpi_type_copy(from, 2, of(MPI_INT), to, 1, of(MPI_INT)), MPI_ERR_TRUNCATE);
	assert_int_equal(to[0], from[0]);
	drop(column);
	drop(row);
	free(from);
	free(to);
}

static void absolute_addresses_go_with_mpi_bottom(void **state)
{
	int a = 1, out[3] = { 0 };
	long b = 2;
	struct mpi_type *members[] = { of(MPI_INT), of(MPI_LONG) }, *t;
	MPI_Count at[] = { (MPI_Aint)(intptr_t)&a, (MPI_Aint)(intptr_t)&b }, position = 0;

	(void)state;
	assert_int_equal(mpi_type_create_struct(2, (MPI_Count[]){ 1, 1 }, at, members, &t),
			 MPI_SUCCESS);
	assert_int_equal(mpi_type_commit(&t), MPI_SUCCESS);
	assert_int_equal(mpi_pack(MPI_BOTTOM, 1, t, out, sizeof(out), &position, NULL),
			 MPI_SUCCESS);
	assert_int_equal(position, 12);
	a = b = 0;
	position = 0;
	assert_int_equal(mpi_unpack(out, 12, &position, MPI_BOTTOM, 1, t, NULL), MPI_SUCCESS);
	assert_int_equal(a, 1);
	assert_int_equal(b, 2);
	drop(t);
}

/* Irregular blocks more than 4 GiB apart, of which only a few pages are touched. */
static void blocks_may_lie_far_apart(void **state)
{
	enum { N = 40 };
	size_t room = (size_t)5 << 30;
	char *far = mmap(NULL, room, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MPI_Count at[N], length[N];
	double out[2 * N], sum = 0, wanted = 0;
	struct mpi_type *t;
	int n = 0;

	(void)state;
	assert_true(far != MAP_FAILED);
	for (int form = 0; form < 2; form++) {
		for (int i = 0; i < N; i++) {
			length[i] = form ? 1 + i % 2 : 1;
			at[i] = i < N / 2 ? i * i * 64 : (MPI_Count)(room - 4096 * 20) + i * 128;
			for (int k = 0; k < length[i]; k++)
				*(double *)(void *)(far + at[i] + 8 * k) = i + k;
		}
		n = form ? 3 * N / 2 : N;
		assert_int_equal(mpi_type_create_hindexed(N, length, at, of(MPI_DOUBLE), &t),
				 MPI_SUCCESS);
		mpi_type_pack_bytes(t, far, 1, 0, out, sizeof(double) * (size_t)n);
		sum = wanted = 0;
		for (int i = 0; i < n; i++)
			sum += out[i] * (i + 1);
		for (int i = 0, place = 1; i < N; i++) {
			for (int k = 0; k < length[i]; k++)
				wanted += (i + k) * place++;
		}
		assert_true(sum == wanted);
		drop(t);
	}
	munmap(far, room);
}

static void packing_stays_within_its_buffer(void **state)
{
	int in[4] = { 1, 2, 3, 4 }, out[4] = { 0 };
	struct mpi_type *i = of(MPI_INT), *t;
	MPI_Count position = 8;

	(void)state;
	assert_int_equal(mpi_pack(in, 2, i, out, 16, &position, NULL), MPI_SUCCESS);
	assert_int_equal(position, 16);
	assert_int_equal(out[2], 1);
	assert_int_equal(mpi_pack(in, 1, i, out, 16, &position, NULL), MPI_ERR_TRUNCATE);
	assert_int_equal(mpi_unpack(out, 16, &position, in, 1, i, NULL), MPI_ERR_TRUNCATE);
	assert_int_equal(position, 16);
	position = -1;
	assert_int_equal(mpi_pack(in, 1, i, out, 16, &position, NULL), MPI_ERR_ARG);
	position = 0;
	assert_int_equal(mpi_pack(in, -1, i, out, 16, &position, NULL), MPI_ERR_COUNT);
	assert_int_equal(mpi_type_contiguous(2, i, &t), MPI_SUCCESS);
	assert_int_equal(mpi_pack(in, 1, t, out, 16, &position, NULL),
			 MPI_ERR_TYPE); /* uncommitted */
	drop(t);
}

/* ---- contents -------------------------------------------------------------------------------- */

struct envelope {
	MPI_Count integers, addresses, large, types;
	int combiner;
};

static struct envelope envelope_of(struct mpi_type *t)
{
	struct envelope e;

	assert_int_equal(mpi_type_get_envelope(t, &e.integers, &e.addresses, &e.large, &e.types,
					       &e.combiner),
			 MPI_SUCCESS);
	return e;
}

static void assert_envelope(struct mpi_type *t, int combiner, int integers, int addresses,
			    int large, int types)
{
	struct envelope e = envelope_of(t);

	assert_int_equal(e.combiner, combiner);
	assert_int_equal(e.integers, integers);
	assert_int_equal(e.addresses, addresses);
	assert_int_equal(e.large, large);
	assert_int_equal(e.types, types);
}

static void envelopes_differ_with_the_form_that_was_called(void **state)
{
	struct mpi_type *i = of(MPI_INT), *t;
	MPI_Count two[] = { 2, 2 }, one[] = { 1, 1 }, zero[] = { 0, 1 }, large[6];
	int block[] = { MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC }, args[] = { 1, 1 }, ints[16];
	int grid[] = { 2, 2 };
	MPI_Datatype types[2];

	(void)state;
	assert_envelope(i, MPI_COMBINER_NAMED, 0, 0, 0, 0);
	assert_envelope(of(MPI_DOUBLE_INT), MPI_COMBINER_NAMED, 0, 0, 0, 0);

	assert_int_equal(mpi_type_create_hvector(2, 1, 8, i, &t), MPI_SUCCESS);
	assert_envelope(t, MPI_COMBINER_HVECTOR, 2, 1, 0, 1);
	mpi_type_mark_large(t);
	assert_envelope(t, MPI_COMBINER_HVECTOR, 0, 0, 3, 1);
	/* the form without large counts cannot tell */
	assert_int_equal(mpi_type_get_contents(t, 9, 9, 0, 9, ints, NULL, NULL, types),
			 MPI_ERR_TYPE);
	assert_int_equal(mpi_type_get_contents(t, 0, 0, 3, 1, NULL, NULL, large, types),
			 MPI_SUCCESS);
	assert_int_equal(large[0], 2);
	assert_int_equal(large[2], 8);
	assert_ptr_equal(types[0], MPI_INT);
	drop(t);

	assert_int_equal(mpi_type_create_struct(2, one, zero, (struct mpi_type *[]){ i, i }, &t),
			 MPI_SUCCESS);
	assert_envelope(t, MPI_COMBINER_STRUCT, 3, 2, 0, 2);
	mpi_type_mark_large(t);
	assert_envelope(t, MPI_COMBINER_STRUCT, 0, 0, 5, 2);
	drop(t);

	assert_int_equal(mpi_type_create_subarray(2, two, one, zero, MPI_ORDER_C, i, &t),
			 MPI_SUCCESS);
	assert_envelope(t, MPI_COMBINER_SUBARRAY, 8, 0, 0, 1);
	mpi_type_mark_large(t);
	assert_envelope(t, MPI_COMBINER_SUBARRAY, 2, 0, 6, 1);
	assert_int_equal(mpi_type_get_contents(t, 2, 0, 6, 1, ints, NULL, large, types),
			 MPI_SUCCESS);
	assert_int_equal(ints[0], 2);
	assert_int_equal(ints[1], MPI_ORDER_C);
	assert_memory_equal(large, two, sizeof(two));
	assert_memory_equal(large + 4, zero, sizeof(zero));
	drop(t);

	assert_int_equal(
		mpi_type_create_darray(4, 3, 2, two, block, args, grid, MPI_ORDER_FORTRAN, i, &t),
		MPI_SUCCESS);
	assert_envelope(t, MPI_COMBINER_DARRAY, 12, 0, 0, 1);
	mpi_type_mark_large(t);
	assert_envelope(t, MPI_COMBINER_DARRAY, 10, 0, 2, 1);
	assert_int_equal(mpi_type_get_contents(t, 10, 0, 2, 1, ints, NULL, large, types),
			 MPI_SUCCESS);
	assert_memory_equal(ints,
			    ((int[]){ 4, 3, 2, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, 1, 1, 2,
				      2, MPI_ORDER_FORTRAN }),
			    10 * sizeof(int));
	drop(t);
}

static void contents_need_room_and_a_derived_type(void **state)
{
	struct mpi_type *t;
	int ints[3];
	MPI_Datatype types[1];

	(void)state;
	assert_int_equal(mpi_type_get_contents(of(MPI_INT), 9, 9, 9, 9, ints, NULL, NULL, types),
			 MPI_ERR_TYPE);
	assert_int_equal(mpi_type_vector(2, 1, 2, of(MPI_INT), &t), MPI_SUCCESS);
	assert_int_equal(mpi_type_get_contents(t, 2, 0, 0, 1, ints, NULL, NULL, types),
			 MPI_ERR_ARG);
	assert_int_equal(mpi_type_get_contents(t, 3, 0, 0, 0, ints, NULL, NULL, types),
			 MPI_ERR_ARG);
	assert_int_equal(mpi_type_get_contents(t, 3, 0, 0, 1, ints, NULL, NULL, types),
			 MPI_SUCCESS);
	drop(t);
}

/* ---- Fortran's kinds, sizes and pairs -------------------------------------------------------- */

static void kinds_have_the_precision_asked_for(void **state)
{
	struct mpi_type *t, *again;
	int ints[2];

	(void)state;
	assert_int_equal(mpi_type_create_f90_real(6, 37, &t), MPI_SUCCESS);
	assert_ptr_equal(mpi_type_basic(t), of(MPI_REAL4));
	assert_true(t->committed && t->dense && t->size == 4);
	assert_int_equal(mpi_type_create_f90_real(6, 37, &again), MPI_SUCCESS);
	assert_ptr_equal(t, again);
	assert_envelope(t, MPI_COMBINER_F90_REAL, 2, 0, 0, 0);
	assert_int_equal(mpi_type_get_contents(t, 2, 0, 0, 0, ints, NULL, NULL, NULL), MPI_SUCCESS);
	assert_int_equal(ints[0], 6);
	assert_int_equal(ints[1], 37);
	assert_int_equal(mpi_type_create_f90_real(6, 38, &t), MPI_SUCCESS);
	assert_int_equal(t->size, 8);
	assert_int_equal(mpi_type_create_f90_real(MPI_UNDEFINED, 4931, &t), MPI_SUCCESS);
	assert_int_equal(t->size, 16);
	assert_int_equal(mpi_type_create_f90_complex(15, MPI_UNDEFINED, &t), MPI_SUCCESS);
	assert_int_equal(t->size, 16);
	assert_envelope(t, MPI_COMBINER_F90_COMPLEX, 2, 0, 0, 0);
	assert_int_equal(mpi_type_create_f90_real(99, 1, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_create_f90_integer(9, &t), MPI_SUCCESS);
	assert_int_equal(t->size, 4);
	assert_int_equal(mpi_type_create_f90_integer(10, &t), MPI_SUCCESS);
	assert_int_equal(t->size, 8);
	assert_envelope(t, MPI_COMBINER_F90_INTEGER, 1, 0, 0, 0);
	assert_int_equal(mpi_type_create_f90_integer(39, &t), MPI_ERR_ARG);
}

static void types_are_found_by_size(void **state)
{
	struct mpi_type *t;

	(void)state;
	assert_int_equal(mpi_type_match_size(MPI_TYPECLASS_REAL, 8, &t), MPI_SUCCESS);
	assert_ptr_equal(t, of(MPI_REAL8));
	assert_int_equal(mpi_type_match_size(MPI_TYPECLASS_INTEGER, 4, &t), MPI_SUCCESS);
	assert_ptr_equal(t, of(MPI_INTEGER4));
	assert_int_equal(mpi_type_match_size(MPI_TYPECLASS_COMPLEX, 8, &t), MPI_SUCCESS);
	assert_ptr_equal(t, of(MPI_COMPLEX8));
	assert_int_equal(mpi_type_match_size(MPI_TYPECLASS_REAL, 2, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_match_size(MPI_TYPECLASS_REAL, 3, &t), MPI_ERR_ARG);
	assert_int_equal(mpi_type_match_size(0, 4, &t), MPI_ERR_ARG);
}

static void pairs_are_found_by_their_members(void **state)
{
	const struct mpi_type *value, *index;
	struct mpi_type *t, *again;
	MPI_Datatype types[2];
	MPI_Aint offset;

	(void)state;
	assert_int_equal(mpi_type_get_value_index(of(MPI_DOUBLE), of(MPI_INT), &t), MPI_SUCCESS);
	assert_ptr_equal(t, of(MPI_DOUBLE_INT));
	assert_int_equal(mpi_type_get_value_index(of(MPI_INTEGER), of(MPI_INTEGER), &t),
			 MPI_SUCCESS);
	assert_ptr_equal(t, of(MPI_2INTEGER));
	/* others have no name */
	assert_int_equal(mpi_type_get_value_index(of(MPI_SHORT), of(MPI_INT64_T), &t), MPI_SUCCESS);
	assert_int_equal(t->size, 10);
	assert_int_equal(t->extent, 16);
	assert_true(t->predefined && t->committed);
	assert_true(mpi_type_pair(t, &value, &index, &offset));
	assert_int_equal(offset, 8);
	assert_envelope(t, MPI_COMBINER_VALUE_INDEX, 0, 0, 0, 2);
	assert_int_equal(mpi_type_get_contents(t, 0, 0, 0, 2, NULL, NULL, NULL, types),
			 MPI_SUCCESS);
	assert_ptr_equal(types[0], MPI_SHORT);
	assert_ptr_equal(types[1], MPI_INT64_T);
	assert_int_equal(mpi_type_get_value_index(of(MPI_SHORT), of(MPI_INT64_T), &again),
			 MPI_SUCCESS);
	assert_ptr_equal(t, again);
	assert_int_equal(mpi_type_get_value_index(of(MPI_BYTE), of(MPI_INT), &t), MPI_SUCCESS);
	assert_null(t);
	assert_int_equal(mpi_type_get_value_index(of(MPI_DOUBLE), of(MPI_DOUBLE), &t), MPI_SUCCESS);
	assert_null(t);
}

/* ---- external32 ------------------------------------------------------------------------------ */

static void external32_bytes_are(MPI_Datatype type, const void *value, const void *bytes, size_t n)
{
	struct mpi_type *t = of(type);
	unsigned char out[40], back[40] = { 0 };
	MPI_Count position = 0, size = 0;

	assert_int_equal(mpi_pack_external_size("external32", 1, t, &size), MPI_SUCCESS);
	assert_int_equal(size, n);
	assert_int_equal(mpi_pack_external("external32", value, 1, t, out, sizeof(out), &position),
			 MPI_SUCCESS);
	assert_int_equal(position, n);
	assert_memory_equal(out, bytes, n);
	position = 0;
	assert_int_equal(
		mpi_unpack_external("external32", out, (MPI_Count)n, &position, back, 1, t),
		MPI_SUCCESS);
	assert_int_equal(position, n);
	/* padding within a long double means nothing */
	if (type == MPI_LONG_DOUBLE)
		assert_true(memcmp(back, value, 10) == 0);
	else
		assert_memory_equal(back, value, (size_t)t->size);
}

#define EXTERNAL(type, value, ...)                                                                 \
	external32_bytes_are(type, value, (unsigned char[]){ __VA_ARGS__ },                        \
			     sizeof((unsigned char[]){ __VA_ARGS__ }))

static void external32_is_big_endian_with_sizes_of_its_own(void **state)
{
	(void)state;
	EXTERNAL(MPI_INT, &(int){ 0x01020304 }, 1, 2, 3, 4);
	EXTERNAL(MPI_SHORT, &(short){ -2 }, 0xff, 0xfe);
	EXTERNAL(MPI_LONG, &(long){ -3 }, 0xff, 0xff, 0xff, 0xfd);
	EXTERNAL(MPI_UNSIGNED_LONG, &(unsigned long){ 0xfedcba98 }, 0xfe, 0xdc, 0xba, 0x98);
	EXTERNAL(MPI_LONG_LONG, &(long long){ 1 }, 0, 0, 0, 0, 0, 0, 0, 1);
	EXTERNAL(MPI_INT64_T, &(int64_t){ -1 }, 255, 255, 255, 255, 255, 255, 255, 255);
	EXTERNAL(MPI_WCHAR, &(wchar_t){ 0x20ac }, 0x20, 0xac);
	EXTERNAL(MPI_CHAR, "A", 'A');
	EXTERNAL(MPI_C_BOOL, &(_Bool){ 1 }, 1);
	EXTERNAL(MPI_FLOAT, &(float){ 1.5f }, 0x3f, 0xc0, 0, 0);
	EXTERNAL(MPI_DOUBLE, &(double){ -2.0 }, 0xc0, 0, 0, 0, 0, 0, 0, 0);
	EXTERNAL(MPI_C_FLOAT_COMPLEX, ((float[]){ 1.5f, -1.5f }), 0x3f, 0xc0, 0, 0, 0xbf, 0xc0, 0,
		 0);
	EXTERNAL(MPI_FLOAT_INT, (&(struct {
			 float f;
			 int i;
		 }){ 1.5f, 2 }),
		 0x3f, 0xc0, 0, 0, 0, 0, 0, 2);
}

static void external32_has_long_doubles_as_quadruples(void **state)
{
	static const unsigned char third[16] = { 0x3f, 0xfd, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55,
						 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55 };
	struct mpi_type *t = of(MPI_LONG_DOUBLE);
	MPI_Count position = 0;
	long double value = 0, infinite = INFINITY;

	(void)state;
	EXTERNAL(MPI_LONG_DOUBLE, &(long double){ 1.5L }, 0x3f, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0,
		 0, 0, 0, 0, 0);
	EXTERNAL(MPI_LONG_DOUBLE, &(long double){ -0.0L }, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		 0, 0, 0);
	EXTERNAL(MPI_LONG_DOUBLE, &infinite, 0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	/* a third in 113 bits is rounded to the nearest that a long double has */
	assert_int_equal(mpi_unpack_external("external32", third, 16, &position, &value, 1, t),
			 MPI_SUCCESS);
	assert_true(value == 1.0L / 3.0L);
#if __LDBL_MANT_DIG__ == 64
	/* the smallest number, of which the first bit is not there */
	EXTERNAL(MPI_LONG_DOUBLE, &(long double){ __LDBL_DENORM_MIN__ }, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		 2, 0, 0, 0, 0, 0, 0);
#endif
}

static void values_that_external32_cannot_hold_are_errors(void **state)
{
	unsigned char out[4];
	MPI_Count position = 0;
	long large = (long)INT_MAX + 1;
	unsigned long unsigned_large = (unsigned long)UINT_MAX + 1;

	(void)state;
	assert_int_equal(
		mpi_pack_external("external32", &large, 1, of(MPI_LONG), out, 4, &position),
		MPI_ERR_CONVERSION);
	assert_int_equal(mpi_pack_external("external32", &unsigned_large, 1, of(MPI_UNSIGNED_LONG),
					   out, 4, &position),
			 MPI_ERR_CONVERSION);
	assert_int_equal(position, 0);
	assert_int_equal(mpi_pack_external("internal", &large, 1, of(MPI_LONG), out, 4, &position),
			 MPI_ERR_UNSUPPORTED_DATAREP);
	assert_int_equal(
		mpi_pack_external("external32", &large, 2, of(MPI_LONG), out, 4, &position),
		MPI_ERR_TRUNCATE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(fixed_size_handles_tell_their_size),
		TEST(types_that_do_not_exist_here_have_no_size_and_are_refused),
		TEST(pairs_lie_as_in_c),
		TEST(of_several_names_a_type_has_the_standards_first),
		TEST(names_can_be_asked_for_and_set),
		TEST(bad_arguments_have_their_class),
		TEST(types_beyond_an_address_space_are_refused),
		TEST(counts_beyond_int_work),
		TEST(nesting_too_deep_is_refused_and_deep_nesting_works),
		TEST(predefined_types_cannot_be_freed),
		TEST(a_type_outlives_its_handle_where_it_is_used),
		TEST(attributes_go_with_the_last_handle),
		TEST(dup_copies_attributes_and_commitment_and_may_fail),
		TEST(markers_of_mpi_1_set_bounds),
		TEST(struct_extents_are_padded_as_in_c),
		TEST(what_lies_together_is_dense),
		TEST(typed_places_are_copied_as_messages),
		TEST(absolute_addresses_go_with_mpi_bottom),
		TEST(blocks_may_lie_far_apart),
		TEST(packing_stays_within_its_buffer),
		TEST(envelopes_differ_with_the_form_that_was_called),
		TEST(contents_need_room_and_a_derived_type),
		TEST(kinds_have_the_precision_asked_for),
		TEST(types_are_found_by_size),
		TEST(pairs_are_found_by_their_members),
		TEST(external32_is_big_endian_with_sizes_of_its_own),
		TEST(external32_has_long_doubles_as_quadruples),
		TEST(values_that_external32_cannot_hold_are_errors),
		/* last: what it leaves to malloc is costly under MALLOC_PERTURB_ */
		TEST(a_long_chain_of_types_ends_without_recursion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
