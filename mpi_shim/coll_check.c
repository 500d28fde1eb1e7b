/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Arguments of collectives: what each rank can see to be wrong, before the first message.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"

int mpi_coll_check(const void *buf, MPI_Count count, const struct mpi_type *type, const char *name)
{
	if (count < 0)
		return mpi_fail(MPI_ERR_COUNT,
				"the count that goes with %s is %lld: it must not be "
				"negative",
				name, (long long)count);
	if (!type)
		return mpi_fail(MPI_ERR_TYPE, "the datatype that goes with %s is not a datatype",
				name);
	if (!type->committed && type->predefined)
		return mpi_fail(MPI_ERR_TYPE, "%s, which goes with %s, does not exist here",
				type->name, name);
	if (!type->committed)
		return mpi_fail(MPI_ERR_TYPE,
				"the datatype that goes with %s is not committed: call "
				"MPI_Type_commit first",
				name);
	if (mpi_coll_bytes(count, type) == INT64_MAX)
		return mpi_fail(MPI_ERR_COUNT,
				"%s would have %lld elements of %lld bytes: no memory has so many",
				name, (long long)count, (long long)type->size);
	if (buf == MPI_IN_PLACE)
		return mpi_fail(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE, which is not allowed here",
				name);
	/* a derived type may hold absolute addresses, with MPI_BOTTOM as buffer */
	if (!buf && count > 0 && type->size > 0 && type->predefined)
		return mpi_fail(MPI_ERR_BUFFER, "%s is NULL", name);
	return MPI_SUCCESS;
}

int mpi_coll_check_alias(const void *a, MPI_Count a_count, const struct mpi_type *a_type,
			 const void *b, MPI_Count b_count, const struct mpi_type *b_type)
{
	if (a_count == 0 || b_count == 0 || a_type->size == 0 || b_type->size == 0)
		return MPI_SUCCESS;
	/* a byte of the data in both, even with datatypes that have absolute addresses */
	if ((uintptr_t)a + (uintptr_t)a_type->true_lb == (uintptr_t)b + (uintptr_t)b_type->true_lb)
		return mpi_fail(MPI_ERR_BUFFER,
				"the send and the receive buffer are the same: use MPI_IN_PLACE");
	return MPI_SUCCESS;
}

int mpi_coll_check_root(int root, const struct mpi_comm *comm)
{
	int n = comm->inter ? comm->remote_size : comm->size;

	if (comm->inter && (root == MPI_ROOT || root == MPI_PROC_NULL))
		return MPI_SUCCESS;
	if (root < 0 || root >= n)
		return mpi_fail(MPI_ERR_ROOT, "the root is %d: it must be 0 to %d", root, n - 1);
	return MPI_SUCCESS;
}

int mpi_coll_refuse_inter(const struct mpi_comm *comm)
{
	if (comm->inter)
		return mpi_fail(MPI_ERR_COMM, "not defined on intercommunicators");
	return MPI_SUCCESS;
}

int mpi_vec_check(const struct mpi_vec *v, int n, const char *name)
{
	int rc = MPI_SUCCESS;

	/* a rank without neighbours may have no buffer */
	if (n == 0)
		return MPI_SUCCESS;
	if (!v->counts && !v->types)
		return mpi_coll_check(v->buf, v->count, v->type, name);
	if (!v->counts || !v->displs)
		return mpi_fail(MPI_ERR_ARG, "an array that goes with %s is NULL", name);
	for (int i = 0; i < n && !rc; i++)
		rc = mpi_coll_check(v->buf, mpi_vec_count(v, i), mpi_vec_type(v, i), name);
	return rc;
}
