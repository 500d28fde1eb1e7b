/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Pack and MPI_Unpack, and copies between typed buffers of one process. Packed data are
 * the bytes of the type map in its order and nothing else, as on the wire.
 */
#include "mpi_shim/datatype/body.h"

#include <string.h>

#include "mpi_shim/impl.h"
#include "mpi_shim/core/error.h"

enum { BOUNCE = 16384 };

int mpi_type_bytes(const struct mpi_type *t, MPI_Count count, MPI_Count each, MPI_Count *bytes)
{
	int rc = mpi_type_usable(t);

	if (rc != MPI_SUCCESS)
		return rc;
	if (count < 0)
		return mpi_fail(MPI_ERR_COUNT, "the count is %lld, but cannot be negative",
				(long long)count);
	if (__builtin_mul_overflow(count, each, bytes))
		return mpi_fail(MPI_ERR_COUNT, "%lld elements of %lld bytes exceed 2^63 bytes",
				(long long)count, (long long)each);
	return MPI_SUCCESS;
}

int mpi_pack_room(MPI_Count position, MPI_Count size, MPI_Count bytes)
{
	if (position < 0 || size < 0 || position > size)
		return mpi_fail(MPI_ERR_ARG,
				"position %lld lies outside of the packed buffer of %lld bytes",
				(long long)position, (long long)size);
	if (bytes > size - position)
		return mpi_fail(MPI_ERR_TRUNCATE,
				"%lld bytes at position %lld do not fit the packed buffer of %lld "
				"bytes; MPI_Pack_size tells what is needed",
				(long long)bytes, (long long)position, (long long)size);
	return MPI_SUCCESS;
}

/* The checks of packing and unpacking. *bytes is the length of the data. */
static int check_position(const struct mpi_type *t, MPI_Count count, MPI_Count position,
			  MPI_Count size, MPI_Count *bytes)
{
	int rc;

	if (!t->committed)
		return mpi_fail(MPI_ERR_TYPE, "the datatype is not committed; MPI_Type_commit it");
	rc = mpi_type_bytes(t, count, t->size, bytes);
	return rc != MPI_SUCCESS ? rc : mpi_pack_room(position, size, *bytes);
}

int mpi_pack(const void *inbuf, MPI_Count incount, struct mpi_type *datatype, void *outbuf,
	     MPI_Count outsize, MPI_Count *position, struct mpi_comm *comm)
{
	MPI_Count bytes = 0;
	int rc = check_position(datatype, incount, *position, outsize, &bytes);

	(void)comm; /* all processes have the same representation */
	if (rc != MPI_SUCCESS)
		return rc;
	if (bytes > 0)
		mpi_type_pack_bytes(datatype, inbuf, incount, 0, (char *)outbuf + *position,
				    (size_t)bytes);
	*position += bytes;
	return MPI_SUCCESS;
}

int mpi_unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
	       MPI_Count outcount, struct mpi_type *datatype, struct mpi_comm *comm)
{
	MPI_Count bytes = 0;
	int rc = check_position(datatype, outcount, *position, insize, &bytes);

	(void)comm;
	if (rc != MPI_SUCCESS)
		return rc;
	if (bytes > 0)
		mpi_type_unpack_bytes(datatype, outbuf, outcount, 0,
				      (const char *)inbuf + *position, (size_t)bytes);
	*position += bytes;
	return MPI_SUCCESS;
}

int mpi_pack_size(MPI_Count incount, struct mpi_type *datatype, struct mpi_comm *comm,
		  MPI_Count *size)
{
	MPI_Count bytes = 0;
	int rc = mpi_type_bytes(datatype, incount, datatype->size, &bytes);

	(void)comm;
	if (rc == MPI_SUCCESS)
		*size = bytes;
	return rc;
}

/* ---- from type to type ----------------------------------------------------------------------- */

static const char *first_byte_of_data(const struct mpi_type *t, const void *buf)
{
	return (const char *)((uintptr_t)buf + (size_t)t->true_lb);
}

static char *first_byte_of(const struct mpi_type *t, void *buf)
{
	return (char *)((uintptr_t)buf + (size_t)t->true_lb);
}

int mpi_type_copy(const void *from, MPI_Count from_count, const struct mpi_type *from_type,
		  void *to, MPI_Count to_count, const struct mpi_type *to_type)
{
	char bounce[BOUNCE];
	MPI_Count bytes = 0, room = 0;
	int rc = mpi_type_bytes(from_type, from_count, from_type->size, &bytes);
	size_t n;

	if (rc == MPI_SUCCESS)
		rc = mpi_type_bytes(to_type, to_count, to_type->size, &room);
	if (rc != MPI_SUCCESS)
		return rc;
	n = (size_t)(bytes < room ? bytes : room);
	if (n > 0 && to_type->dense) {
		mpi_type_pack_bytes(from_type, from, from_count, 0, first_byte_of(to_type, to), n);
	} else if (n > 0 && from_type->dense) {
		mpi_type_unpack_bytes(to_type, to, to_count, 0, first_byte_of_data(from_type, from),
				      n);
	} else {
		for (size_t at = 0, k; at < n; at += k) {
			k = n - at < BOUNCE ? n - at : BOUNCE;
			mpi_type_pack_bytes(from_type, from, from_count, at, bounce, k);
			mpi_type_unpack_bytes(to_type, to, to_count, at, bounce, k);
		}
	}
	if (bytes > room)
		return mpi_fail(MPI_ERR_TRUNCATE,
				"%lld bytes came for a buffer of %lld bytes; the rest was dropped",
				(long long)bytes, (long long)room);
	return MPI_SUCCESS;
}
