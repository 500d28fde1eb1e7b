/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reduction operations beyond coll.h: whether an operation is defined on a type, and the loops
 * of the predefined ones. Nothing here blocks, takes a lock or allocates memory.
 */
#ifndef MPI_SHIM_OP_H
#define MPI_SHIM_OP_H

#include "mpi_shim/coll/coll.h"

/* inout[i] = in[i] op inout[i] for n elements. They do not overlap, and may be unaligned. */
typedef void mpi_op_loop(const void *restrict in, void *restrict inout, size_t n);

/* The loop of a predefined operation on a predefined type; NULL if the operation is not defined
 * on it. */
mpi_op_loop *mpi_op_loop_of(const struct mpi_op *op, const struct mpi_type *type);

/*
 * MPI_MINLOC and MPI_MAXLOC on pairs that have no name (MPI_Type_get_value_index), element by
 * element. False: another operation, or not such a pair. n may be 0 to ask only that.
 */
bool mpi_op_pair(const struct mpi_op *op, const struct mpi_type *type, const char *in, char *inout,
		 size_t n);

/* The name in mpi.h; "the operation" for a user's operation. */
const char *mpi_op_name(const struct mpi_op *op);

/* MPI_SUCCESS, or MPI_ERR_OP (text kept) if `op` is not defined on `type`. */
int mpi_op_check(const struct mpi_op *op, const struct mpi_type *type);

#endif
