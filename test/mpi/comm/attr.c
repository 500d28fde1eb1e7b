/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Attributes: what is predefined, when callbacks are called and with what, what their errors do;
 * last, that those of MPI_COMM_SELF are deleted first in MPI_Finalize, while MPI still works.
 */
#include "test/mpi/job_check.h"

static struct {
	int copies, deletes;
	int fail_copy, fail_delete;
	int order[16];
} seen;

static int extra;

static int copy_fn(MPI_Comm comm, int keyval, void *extra_state, void *in, void *out, int *flag)
{
	(void)comm;
	(void)keyval;
	CHECK(extra_state == &extra);
	seen.copies++;
	if (seen.fail_copy)
		return seen.fail_copy;
	*(void **)out = (char *)in + 1;
	*flag = 1;
	return MPI_SUCCESS;
}

static int delete_fn(MPI_Comm comm, int keyval, void *value, void *extra_state)
{
	int size;

	(void)keyval;
	CHECK(extra_state == &extra);
	MPI_Comm_size(comm, &size); /* the communicator is still one */
	CHECK(size > 0);
	if (seen.fail_delete)
		return seen.fail_delete;
	seen.order[seen.deletes++ % 16] = (int)(long)value;
	return MPI_SUCCESS;
}

static long get(MPI_Comm comm, int keyval)
{
	void *value = NULL;
	int flag;

	MPI_Comm_get_attr(comm, keyval, &value, &flag);
	return flag ? (long)value : -1;
}

static void predefined_ones_are_there_on_every_communicator(void)
{
	MPI_Comm copy;
	int *value, flag;

	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	for (int i = 0; i < 3; i++) {
		MPI_Comm comm = i == 0 ? MPI_COMM_WORLD : i == 1 ? MPI_COMM_SELF : copy;

		MPI_Comm_get_attr(comm, MPI_TAG_UB, &value, &flag);
		CHECK(flag && *value == 2147483647);
		MPI_Comm_get_attr(comm, MPI_IO, &value, &flag);
		CHECK(flag && *value == MPI_ANY_SOURCE);
		MPI_Comm_get_attr(comm, MPI_HOST, &value, &flag);
		CHECK(flag && *value == MPI_PROC_NULL);
		MPI_Comm_get_attr(comm, MPI_WTIME_IS_GLOBAL, &value, &flag);
		CHECK(flag);
		MPI_Comm_get_attr(comm, MPI_UNIVERSE_SIZE, &value, &flag);
		CHECK(flag && *value >= job_size);
		MPI_Comm_get_attr(comm, MPI_APPNUM, &value, &flag);
		CHECK(flag && *value == 0);
		MPI_Comm_get_attr(comm, MPI_LASTUSEDCODE, &value, &flag);
		CHECK(flag && *value >= MPI_ERR_LASTCODE);
	}
	MPI_Comm_free(&copy);
}

static void callbacks_run_on_set_delete_dup_and_free(void)
{
	MPI_Comm a, b;
	int key;

	memset(&seen, 0, sizeof(seen));
	MPI_Comm_create_keyval(copy_fn, delete_fn, &key, &extra);
	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	CHECK_EQUAL(get(a, key), -1);
	MPI_Comm_set_attr(a, key, (void *)10);
	CHECK_EQUAL(get(a, key), 10);
	MPI_Comm_set_attr(a, key, (void *)20);
	CHECK_EQUAL(seen.deletes, 1);
	CHECK_EQUAL(seen.order[0], 10);
	MPI_Comm_dup(a, &b);
	CHECK_EQUAL(seen.copies, 1);
	CHECK_EQUAL(get(b, key), 21);
	MPI_Comm_delete_attr(b, key);
	CHECK_EQUAL(seen.order[1], 21);
	CHECK_EQUAL(get(b, key), -1);
	MPI_Comm_free(&b);
	CHECK_EQUAL(seen.deletes, 2);
	/* the key is freed, the attribute stays and its callback with it */
	MPI_Comm_free_keyval(&key);
	CHECK_EQUAL(key, MPI_KEYVAL_INVALID);
	MPI_Comm_dup(a, &b);
	CHECK_EQUAL(seen.copies, 2);
	MPI_Comm_free(&b);
	MPI_Comm_free(&a);
	CHECK_EQUAL(seen.deletes, 4);
	CHECK_EQUAL(seen.order[2], 21);
	CHECK_EQUAL(seen.order[3], 20);
}

static void a_freed_key_still_names_the_attributes_that_have_it(void)
{
	int key, kept, err;
	MPI_Comm a;

	memset(&seen, 0, sizeof(seen));
	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN);
	MPI_Comm_create_keyval(copy_fn, delete_fn, &key, &extra);
	kept = key;
	MPI_Comm_set_attr(a, key, (void *)10);
	MPI_Comm_free_keyval(&key);
	key = kept;
	CHECK_EQUAL(MPI_Comm_free_keyval(&key), MPI_SUCCESS);
	CHECK_EQUAL(get(a, kept), 10);
	CHECK_EQUAL(MPI_Comm_delete_attr(a, kept), MPI_SUCCESS);
	CHECK_EQUAL(seen.deletes, 1);
	err = MPI_Comm_delete_attr(a, kept); /* with the last attribute the key has gone */
	MPI_Error_class(err, &err);
	CHECK_EQUAL(err, MPI_ERR_KEYVAL);
	MPI_Comm_free(&a);
}

static int freed;

static int frees_its_key(MPI_Comm comm, int keyval, void *value, void *extra_state)
{
	int key = keyval;

	(void)value;
	(void)extra_state;
	if (freed++)
		return MPI_SUCCESS;
	MPI_Comm_free_keyval(&key);
	return MPI_Comm_delete_attr(comm, keyval);
}

static void a_key_may_go_while_its_attribute_is_set_anew(void)
{
	MPI_Comm a;
	int key;

	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, frees_its_key, &key, NULL);
	MPI_Comm_set_attr(a, key, (void *)1);
	CHECK_EQUAL(MPI_Comm_set_attr(a, key, (void *)2), MPI_SUCCESS);
	CHECK_EQUAL(get(a, key), 2);
	CHECK_EQUAL(freed, 2);
	MPI_Comm_free(&a);
	CHECK_EQUAL(freed, 3);
}

static void the_named_callbacks_copy_or_do_not(void)
{
	MPI_Comm a, b;
	int copied, not_copied;

	MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &copied, NULL);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &not_copied, NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	MPI_Comm_set_attr(a, copied, (void *)1);
	MPI_Comm_set_attr(a, not_copied, (void *)2);
	MPI_Comm_dup(a, &b);
	CHECK_EQUAL(get(b, copied), 1);
	CHECK_EQUAL(get(b, not_copied), -1);
	MPI_Comm_free(&b);
	MPI_Comm_split(a, 0, 0, &b);
	CHECK_EQUAL(get(b, copied), -1);
	MPI_Comm_free(&b);
	MPI_Comm_free(&a);
	MPI_Comm_free_keyval(&copied);
	MPI_Comm_free_keyval(&not_copied);
}

static void the_error_of_a_callback_is_the_functions(void)
{
	MPI_Comm a, b = MPI_COMM_NULL;
	int key, plain, err;

	memset(&seen, 0, sizeof(seen));
	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN);
	MPI_Comm_create_keyval(copy_fn, delete_fn, &key, &extra);
	MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &plain, NULL);
	MPI_Comm_set_attr(a, plain, (void *)1);
	MPI_Comm_set_attr(a, key, (void *)5);
	seen.fail_copy = MPI_ERR_OTHER;
	err = MPI_Comm_dup(a, &b);
	CHECK(err != MPI_SUCCESS);
	seen.fail_copy = 0;
	seen.fail_delete = MPI_ERR_OTHER;
	CHECK(MPI_Comm_delete_attr(a, key) != MPI_SUCCESS);
	CHECK_EQUAL(get(a, key), 5);
	CHECK(MPI_Comm_set_attr(a, key, (void *)6) != MPI_SUCCESS);
	CHECK(MPI_Comm_free(&a) != MPI_SUCCESS);
	CHECK(a != MPI_COMM_NULL);
	seen.fail_delete = 0;
	CHECK_EQUAL(MPI_Comm_free(&a), MPI_SUCCESS);
	CHECK_EQUAL(seen.deletes, 1);
	MPI_Comm_free_keyval(&key);
	MPI_Comm_free_keyval(&plain);
}

static int type_copy(MPI_Datatype type, int keyval, void *extra_state, void *in, void *out,
		     int *flag)
{
	(void)type;
	(void)keyval;
	(void)extra_state;
	*(void **)out = (char *)in + 100;
	*flag = 1;
	return MPI_SUCCESS;
}

static void datatypes_have_attributes_too(void)
{
	MPI_Datatype type, copy;
	void *value;
	int key, flag;

	MPI_Type_create_keyval(type_copy, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
	MPI_Type_contiguous(3, MPI_INT, &type);
	MPI_Type_set_attr(type, key, (void *)7);
	MPI_Type_dup(type, &copy);
	MPI_Type_get_attr(copy, key, &value, &flag);
	CHECK(flag && value == (void *)107);
	MPI_Type_delete_attr(copy, key);
	MPI_Type_get_attr(copy, key, &value, &flag);
	CHECK(!flag);
	MPI_Type_free(&copy);
	MPI_Type_free(&type);
	MPI_Type_free_keyval(&key);
}

/* The names of MPI-1. */
static void old_names_mean_the_same(void)
{
	MPI_Comm copy;
	void *value = NULL;
	int key = MPI_KEYVAL_INVALID, flag = -1;

	memset(&seen, 0, sizeof(seen));
	MPI_Keyval_create(copy_fn, delete_fn, &key, &extra);
	MPI_Attr_put(MPI_COMM_WORLD, key, (void *)5);
	MPI_Attr_get(MPI_COMM_WORLD, key, &value, &flag);
	CHECK(flag && value == (void *)5);
	CHECK_EQUAL(get(MPI_COMM_WORLD, key), 5);
	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	CHECK_EQUAL(seen.copies, 1);
	CHECK_EQUAL(get(copy, key), 6);
	MPI_Attr_delete(copy, key);
	MPI_Attr_get(copy, key, &value, &flag);
	CHECK(!flag);
	MPI_Attr_delete(MPI_COMM_WORLD, key);
	CHECK_EQUAL(seen.deletes, 2);
	MPI_Keyval_free(&key);
	CHECK_EQUAL(key, MPI_KEYVAL_INVALID);
	MPI_Comm_free(&copy);
}

static void wrong_keys_are_refused(void)
{
	int key, type_key, invalid = MPI_KEYVAL_INVALID, tag_ub = MPI_TAG_UB, flag, old;
	void *value;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
	CHECK_EQUAL(MPI_Comm_set_attr(MPI_COMM_WORLD, type_key, NULL), MPI_ERR_KEYVAL);
	CHECK_EQUAL(MPI_Type_set_attr(MPI_INT, key, NULL), MPI_ERR_KEYVAL);
	CHECK_EQUAL(MPI_Comm_get_attr(MPI_COMM_WORLD, 123456, &value, &flag), MPI_ERR_KEYVAL);
	CHECK_EQUAL(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL), MPI_ERR_KEYVAL);
	CHECK_EQUAL(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB), MPI_ERR_KEYVAL);
	CHECK_EQUAL(MPI_Comm_free_keyval(&invalid), MPI_ERR_KEYVAL);
	CHECK_EQUAL(MPI_Comm_free_keyval(&tag_ub), MPI_ERR_KEYVAL);
	old = key;
	CHECK_EQUAL(MPI_Comm_free_keyval(&key), MPI_SUCCESS);
	CHECK_EQUAL(MPI_Comm_free_keyval(&old), MPI_ERR_KEYVAL);
	/* the number is not given again at once */
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	CHECK(key != old);
	MPI_Comm_free_keyval(&key);
	MPI_Type_free_keyval(&type_key);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* ---- in MPI_Finalize ------------------------------------------------------------------------- */

static int deleted[3], deletions, wrong_at_end;

static int at_end(MPI_Comm comm, int keyval, void *value, void *extra_state)
{
	int sum = 0, finalized, result;

	(void)keyval;
	(void)extra_state;
	MPI_Finalized(&finalized);
	MPI_Comm_compare(comm, MPI_COMM_SELF, &result);
	MPI_Allreduce(&job_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	wrong_at_end += finalized || result != MPI_IDENT || sum != job_size * (job_size - 1) / 2;
	deleted[deletions++] = (int)(long)value;
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	int key[3], failed;

	job_start(&argc, &argv, MPI_THREAD_SINGLE);
	CASE(predefined_ones_are_there_on_every_communicator);
	CASE(callbacks_run_on_set_delete_dup_and_free);
	CASE(a_freed_key_still_names_the_attributes_that_have_it);
	CASE(a_key_may_go_while_its_attribute_is_set_anew);
	CASE(the_named_callbacks_copy_or_do_not);
	CASE(the_error_of_a_callback_is_the_functions);
	CASE(datatypes_have_attributes_too);
	CASE(old_names_mean_the_same);
	CASE(wrong_keys_are_refused);
	for (int i = 0; i < 3; i++) {
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &key[i], NULL);
		MPI_Comm_set_attr(MPI_COMM_SELF, key[i], (void *)(long)(i + 1));
	}
	MPI_Finalize();
	failed = wrong_at_end || deletions != 3 || deleted[0] != 3 || deleted[1] != 2 ||
		 deleted[2] != 1;
	if (failed)
		fprintf(stderr, "# rank %d: %d deleted at the end, first %d\n", job_rank, deletions,
			deleted[0]);
	if (job_rank == 0) {
		printf("%sok %d - those_of_comm_self_are_deleted_last_set_first_while_mpi_works\n",
		       failed ? "not " : "", ++job_cases);
		printf("1..%d\n", job_cases);
	}
	return job_all_failed || failed;
}
