/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reduction operations as objects: predefined ones, users' ones, and applying an operation.
 */
#include "mpi_shim/coll/op.h"

#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/coll/schedule.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/world.h"

static const struct {
	MPI_Op handle;
	const char *name;
	bool reduces; /* the others are for one-sided communication only */
} names[] = {
	{ MPI_SUM, "MPI_SUM", true },          { MPI_MIN, "MPI_MIN", true },
	{ MPI_MAX, "MPI_MAX", true },          { MPI_PROD, "MPI_PROD", true },
	{ MPI_BAND, "MPI_BAND", true },        { MPI_BOR, "MPI_BOR", true },
	{ MPI_BXOR, "MPI_BXOR", true },        { MPI_LAND, "MPI_LAND", true },
	{ MPI_LOR, "MPI_LOR", true },          { MPI_LXOR, "MPI_LXOR", true },
	{ MPI_MINLOC, "MPI_MINLOC", true },    { MPI_MAXLOC, "MPI_MAXLOC", true },
	{ MPI_REPLACE, "MPI_REPLACE", false }, { MPI_NO_OP, "MPI_NO_OP", false },
};
#define NAMES (sizeof(names) / sizeof(names[0]))

static struct mpi_op predefined[NAMES];

int mpi_ops_init(void)
{
	mpi_pool_setup(MPI_KIND_OP, sizeof(struct mpi_op), NULL);
	for (size_t i = 0; i < NAMES; i++) {
		predefined[i].predefined = true;
		/* MPI_REPLACE depends on the order of arrival */
		predefined[i].commutative = names[i].reduces;
		mpi_object_predefine(&predefined[i], MPI_KIND_OP,
				     (uint32_t)(uintptr_t)names[i].handle);
	}
	return MPI_SUCCESS;
}

void mpi_ops_fini(void)
{
	mpi_schedules_fini();
	for (size_t i = 0; i < NAMES; i++)
		mpi_predefined[predefined[i].obj.handle] = NULL;
}

static int create_op(MPI_User_function *fn, MPI_User_function_c *fn_c, int commute,
		     struct mpi_op **op)
{
	struct mpi_op *o;

	if (!fn && !fn_c)
		return mpi_fail(MPI_ERR_ARG, "the function of a reduction operation is NULL");
	o = mpi_object_new(MPI_KIND_OP);
	if (!o)
		return mpi_fail(MPI_ERR_NO_MEM, "no memory for a reduction operation");
	o->commutative = commute != 0;
	o->fn = fn;
	o->fn_c = fn_c;
	*op = o;
	return MPI_SUCCESS;
}

int mpi_op_create(MPI_User_function *user_fn, int commute, struct mpi_op **op)
{
	return create_op(user_fn, NULL, commute, op);
}

int mpi_op_create_c(MPI_User_function_c *user_fn, int commute, struct mpi_op **op)
{
	return create_op(NULL, user_fn, commute, op);
}

int mpi_op_free(struct mpi_op **op)
{
	if ((*op)->predefined)
		return mpi_fail(MPI_ERR_OP, "a predefined operation cannot be freed");
	mpi_object_rename(&(*op)->obj);
	mpi_object_release(*op);
	*op = NULL;
	return MPI_SUCCESS;
}

int mpi_op_commutative(struct mpi_op *op, int *commute)
{
	*commute = op->commutative;
	return MPI_SUCCESS;
}

const char *mpi_op_name(const struct mpi_op *op)
{
	for (size_t i = 0; i < NAMES; i++)
		if (op == &predefined[i])
			return names[i].name;
	return "the operation";
}

int mpi_op_check(const struct mpi_op *op, const struct mpi_type *type)
{
	if (!op->predefined || mpi_op_loop_of(op, type) || mpi_op_pair(op, type, NULL, NULL, 0))
		return MPI_SUCCESS;
	if (!type->predefined)
		return mpi_fail(MPI_ERR_OP,
				"%s is not defined on derived datatypes: make an operation "
				"with MPI_Op_create",
				mpi_op_name(op));
	return mpi_fail(MPI_ERR_OP, "%s is not defined on %s", mpi_op_name(op), type->name);
}

/* Most elements given at once to a user's function with an int count: the function may well add
 * to that count. */
#define AT_ONCE (1 << 30)

/* Call a user's function with the global lock released: it may call MPI. It may also free the
 * operation, which must outlive the call. */
static void call_user(struct mpi_op *op, const char *in, char *inout, MPI_Count count,
		      struct mpi_type *type)
{
	MPI_Datatype handle = mpi_handle_of(type);
	MPI_Aint extent = type->extent;

	mpi_object_keep(op);
	mpi_object_keep(type);
	mpi_unlock_for_callback();
	if (op->fn_c) {
		op->fn_c((void *)(uintptr_t)in, inout, &count, &handle);
	} else {
		while (count > 0) {
			int n = count < AT_ONCE ? (int)count : AT_ONCE;
			int length = n;

			op->fn((void *)(uintptr_t)in, inout, &length, &handle);
			in += n * extent;
			inout += n * extent;
			count -= n;
		}
	}
	mpi_lock_after_callback();
	mpi_object_release(type);
	mpi_object_release(op);
}

int mpi_op_apply(struct mpi_op *op, const void *in, void *inout, MPI_Count count,
		 struct mpi_type *type)
{
	mpi_op_loop *loop;

	if (count == 0)
		return MPI_SUCCESS;
	if (!op->predefined) {
		call_user(op, in, inout, count, type);
		return MPI_SUCCESS;
	}
	loop = mpi_op_loop_of(op, type);
	if (loop)
		loop(in, inout, (size_t)count);
	else if (!mpi_op_pair(op, type, in, inout, (size_t)count))
		return mpi_op_check(op, type);
	return MPI_SUCCESS;
}

int mpi_reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count, struct mpi_type *datatype,
		     struct mpi_op *op)
{
	int rc = mpi_coll_check(inbuf, count, datatype, "inbuf");

	if (!rc)
		rc = mpi_coll_check(inoutbuf, count, datatype, "inoutbuf");
	if (!rc)
		rc = mpi_coll_check_alias(inbuf, count, datatype, inoutbuf, count, datatype);
	if (!rc)
		rc = mpi_op_check(op, datatype);
	return rc ? rc : mpi_op_apply(op, inbuf, inoutbuf, count, datatype);
}
