/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reduction operations, and the collectives that the rest of the MPI library needs. These run
 * on the collective context of an intracommunicator and block; ranks may die meanwhile. They
 * return MPI_SUCCESS or the class of the error, with its text kept. Do not call them on an
 * intercommunicator.
 */
#ifndef MPI_SHIM_COLL_H
#define MPI_SHIM_COLL_H

#include <mpi.h>

#include "mpi_shim/core/object.h"
#include "mpi_shim/datatype/type.h"

struct mpi_op {
	struct mpi_obj obj;
	bool commutative;
	bool predefined;
	MPI_User_function *fn; /* the user's, or NULL */
	MPI_User_function_c *fn_c;
};

/* Read PTL_MPI_COLL. */
void mpi_coll_init(void);

int mpi_ops_init(void);
void mpi_ops_fini(void);

static inline struct mpi_op *mpi_op_of(MPI_Op handle)
{
	return mpi_object_of(handle, MPI_KIND_OP);
}

/* inout = in op inout, element by element, `count` elements of `type`. */
int mpi_op_apply(struct mpi_op *op, const void *in, void *inout, MPI_Count count,
		 struct mpi_type *type);

/* For making communicators; intracommunicators only. All of them block. */
int mpi_coll_barrier(struct mpi_comm *comm);
/* The last collective of a communicator. If a rank has died it waits for the living ones, and
 * then returns MPI_ERR_PROC_ABORTED. */
int mpi_coll_last_barrier(struct mpi_comm *comm);
int mpi_coll_bcast_bytes(void *buf, size_t bytes, int root, struct mpi_comm *comm);
int mpi_coll_allgather_bytes(const void *in, void *out, size_t bytes_each, struct mpi_comm *comm);
/* Bitwise and, or maximum, of n words over all ranks, in place. */
int mpi_coll_allreduce_and(uint64_t *word, int n, struct mpi_comm *comm);
int mpi_coll_allreduce_max(int64_t *word, int n, struct mpi_comm *comm);

#endif
