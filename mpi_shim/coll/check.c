/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Checks of the arguments of collectives: what each rank can find before the first message.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"

/* Nothing is mapped below this address (vm.mmap_min_addr): data there mean a NULL buffer. */
#define LOWEST (64 << 10)

static int check_elements(MPI_Count count, const struct mpi_type *type, const char *name)
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
	return MPI_SUCCESS;
}

/*
 * Check a block that begins `at` bytes from `buf`. If it is empty, `buf` may be anything, even
 * an uninitialized pointer. MPI_BOTTOM is valid with absolute addresses: a derived type may
 * hold them, or they may be the displacements.
 */
static int check_buffer(const void *buf, MPI_Aint at, MPI_Count count, const struct mpi_type *type,
			const char *name)
{
	if (count == 0 || type->size == 0)
		return MPI_SUCCESS;
	if (buf == MPI_IN_PLACE)
		return mpi_fail(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE, which is not allowed here",
				name);
	if (!buf && type->predefined && at < LOWEST)
		return mpi_fail(MPI_ERR_BUFFER, "%s is NULL", name);
	return MPI_SUCCESS;
}

int mpi_coll_check(const void *buf, MPI_Count count, const struct mpi_type *type, const char *name)
{
	int rc = check_elements(count, type, name);

	return rc ? rc : check_buffer(buf, 0, count, type, name);
}

int mpi_coll_check_alias(const void *a, MPI_Count a_count, const struct mpi_type *a_type,
			 const void *b, MPI_Count b_count, const struct mpi_type *b_type)
{
	if (a_count == 0 || b_count == 0 || a_type->size == 0 || b_type->size == 0)
		return MPI_SUCCESS;
	/* compare the first byte of the data, which also covers datatypes with absolute
	 * addresses */
	if ((uintptr_t)a + (uintptr_t)a_type->true_lb == (uintptr_t)b + (uintptr_t)b_type->true_lb)
		return mpi_fail(MPI_ERR_BUFFER,
				"the send and the receive buffer are the same: use MPI_IN_PLACE");
	return MPI_SUCCESS;
}

/* Bytes from the buffer to block i; with MPI_BOTTOM this is an address. */
static MPI_Aint offset(const struct mpi_vec *v, int i)
{
	const struct mpi_type *type = mpi_vec_type(v, i);

	return (MPI_Aint)((uint64_t)v->displs[i] * (v->types ? 1 : (uint64_t)type->extent));
}

bool mpi_coll_in_its_place(const void *buf, MPI_Count count, const struct mpi_type *type,
			   const struct mpi_vec *v, int i)
{
	const struct mpi_type *to = mpi_vec_type(v, i);
	const char *at = mpi_vec_at(v, i);

	if (buf == MPI_IN_PLACE || count == 0)
		return false;
	if (type == to)
		return buf == at && count == mpi_vec_count(v, i);
	return type->dense && to->dense && mpi_coll_bytes(count, type) == mpi_vec_bytes(v, i) &&
	       (uintptr_t)buf + (uintptr_t)type->true_lb == (uintptr_t)at + (uintptr_t)to->true_lb;
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
	for (int i = 0; i < n && !rc; i++) {
		const struct mpi_type *type = mpi_vec_type(v, i);
		MPI_Count count = mpi_vec_count(v, i);

		rc = check_elements(count, type, name);
		if (!rc)
			rc = check_buffer(v->buf, offset(v, i), count, type, name);
	}
	return rc;
}
