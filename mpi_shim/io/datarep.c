/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Data representations and the conversion of data: native, internal, external32 (MPI-4 §14.5.2),
 * and those that programs register with functions of their own.
 */
#include "mpi_shim/io/datarep.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/datatype/body.h"
#include "mpi_shim/impl.h"

static struct mpi_datarep internal = { .name = "internal", .kind = MPI_DATAREP_NATIVE };
static struct mpi_datarep external32 = { .next = &internal,
					 .name = "external32",
					 .kind = MPI_DATAREP_EXTERNAL32 };
static struct mpi_datarep native = { .next = &external32,
				     .name = "native",
				     .kind = MPI_DATAREP_NATIVE };
/* Registered ones come first. */
static struct mpi_datarep *all_reps = &native;

/* ---- names ----------------------------------------------------------------------------------- */

static struct mpi_datarep *rep_of_name(const char *name)
{
	struct mpi_datarep *rep = all_reps;

	while (rep && strcmp(rep->name, name) != 0)
		rep = rep->next;
	return rep;
}

int mpi_datarep_find(const char *name, const struct mpi_datarep **rep)
{
	*rep = rep_of_name(name);
	if (*rep)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_UNSUPPORTED_DATAREP,
			"the data representation \"%.*s\" is not known; MPI_Register_datarep "
			"defines one",
			MPI_MAX_DATAREP_STRING, name);
}

const struct mpi_datarep *mpi_datarep_native(void)
{
	return &native;
}

const char *mpi_datarep_name(const struct mpi_datarep *rep)
{
	return rep->name;
}

bool mpi_datarep_converts(const struct mpi_datarep *rep, bool writes)
{
	if (rep->kind == MPI_DATAREP_REGISTERED)
		return writes ? rep->write || rep->write_c : rep->read || rep->read_c;
	return rep->kind == MPI_DATAREP_EXTERNAL32;
}

static int register_rep(const struct mpi_datarep *made, const char *name)
{
	size_t length = strnlen(name, MPI_MAX_DATAREP_STRING);
	struct mpi_datarep *rep;

	if (length == 0 || length == MPI_MAX_DATAREP_STRING)
		return mpi_fail(MPI_ERR_ARG,
				"the name of a data representation has 1 to %d characters",
				MPI_MAX_DATAREP_STRING - 1);
	if (rep_of_name(name))
		return mpi_fail(MPI_ERR_DUP_DATAREP,
				"the data representation \"%s\" is defined already", name);
	rep = malloc(sizeof(*rep));
	if (!rep)
		return mpi_fail_memory("a data representation");
	*rep = *made;
	rep->kind = MPI_DATAREP_REGISTERED;
	rep->next = all_reps;
	memcpy(rep->name, name, length + 1);
	all_reps = rep;
	return MPI_SUCCESS;
}

int mpi_register_datarep(const char *datarep, MPI_Datarep_conversion_function *read_conversion_fn,
			 MPI_Datarep_conversion_function *write_conversion_fn,
			 MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state)
{
	struct mpi_datarep rep = { .read = read_conversion_fn,
				   .write = write_conversion_fn,
				   .extent = dtype_file_extent_fn,
				   .state = extra_state };

	return register_rep(&rep, datarep);
}

int mpi_register_datarep_c(const char *datarep,
			   MPI_Datarep_conversion_function_c *read_conversion_fn,
			   MPI_Datarep_conversion_function_c *write_conversion_fn,
			   MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state)
{
	struct mpi_datarep rep = { .read_c = read_conversion_fn,
				   .write_c = write_conversion_fn,
				   .extent = dtype_file_extent_fn,
				   .state = extra_state };

	return register_rep(&rep, datarep);
}

void mpi_datareps_fini(void)
{
	while (all_reps != &native) {
		struct mpi_datarep *rep = all_reps;

		all_reps = rep->next;
		free(rep);
	}
}

/* ---- functions of the program ---------------------------------------------------------------- */

int mpi_datarep_basic(const struct mpi_datarep *rep, const struct mpi_type *basic, MPI_Count *bytes)
{
	MPI_Aint extent = 0;
	int rc;

	mpi_unlock_for_callback();
	rc = rep->extent(mpi_handle_of(basic), &extent, rep->state);
	mpi_lock_after_callback();
	if (rc != MPI_SUCCESS || extent < 0)
		return mpi_fail(MPI_ERR_CONVERSION,
				"the extent function of the data representation \"%s\" failed for "
				"%s",
				rep->name, basic->name);
	*bytes = extent;
	return MPI_SUCCESS;
}

/* Converts elements [position, position + n) of the buffer. */
static int call_converter(const struct mpi_datarep *rep, bool writes, void *buf,
			  const struct mpi_type *type, MPI_Count n, void *file, MPI_Count position)
{
	MPI_Datarep_conversion_function *fn = writes ? rep->write : rep->read;
	MPI_Datarep_conversion_function_c *fn_c = writes ? rep->write_c : rep->read_c;
	MPI_Datatype handle = mpi_handle_of(type);
	int rc;

	mpi_unlock_for_callback();
	rc = fn_c ? fn_c(buf, handle, n, file, position, rep->state)
		  : fn(buf, handle, (int)n, file, position, rep->state);
	mpi_lock_after_callback();
	if (rc == MPI_SUCCESS)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_CONVERSION,
			"the conversion function of the data representation \"%s\" failed",
			rep->name);
}

/* Converts `elements` basic elements, in as few calls as an int allows. `each`: bytes of an element
 * of the datatype in the file. */
static int convert_registered(const struct mpi_datarep *rep, bool writes, void *buf,
			      const struct mpi_type *type, MPI_Count elements, char *file,
			      MPI_Count each)
{
	bool large = writes ? rep->write_c != NULL : rep->read_c != NULL;
	MPI_Count inside = type->body->elements, most = elements;
	int err = MPI_SUCCESS;

	if (!large && elements > INT_MAX)
		most = INT_MAX / inside * inside;
	if (most == 0 && elements > 0)
		return mpi_fail(MPI_ERR_CONVERSION,
				"a datatype of %lld elements needs the functions of "
				"MPI_Register_datarep_c",
				(long long)inside);
	for (MPI_Count at = 0, n; at < elements && !err; at += n) {
		n = elements - at < most ? elements - at : most;
		err = call_converter(rep, writes, buf, type, n, file + at / inside * each, at);
	}
	return err;
}

/* ---- external32 ------------------------------------------------------------------------------ */

/* Unpacks the beginning of an element: `bytes` bytes of the file, which are `native` in memory. The
 * element is completed with zeroes, and only its beginning stored. */
static int unpack_beginning(void *buf, MPI_Count index, struct mpi_type *type, const char *file,
			    MPI_Count bytes, MPI_Count native_bytes)
{
	MPI_Count each = type->body->external, position = 0;
	char *whole = calloc(1, (size_t)each);
	char *element = malloc((size_t)type->true_extent);
	char *packed = malloc((size_t)type->size);
	void *origin = (void *)((uintptr_t)element - (uintptr_t)type->true_lb);
	int err = whole && element && packed ? MPI_SUCCESS : mpi_fail_memory("a conversion");

	if (!err) {
		memcpy(whole, file, (size_t)bytes);
		err = mpi_unpack_external("external32", whole, each, &position, origin, 1, type);
	}
	if (!err) {
		mpi_type_pack_bytes(type, origin, 1, 0, packed, (size_t)native_bytes);
		mpi_type_unpack_bytes(type, buf, index + 1, (size_t)(index * type->size), packed,
				      (size_t)native_bytes);
	}
	free(whole);
	free(element);
	free(packed);
	return err;
}

static int convert_external(bool writes, void *buf, MPI_Count count, struct mpi_type *type,
			    char *file, MPI_Count bytes)
{
	MPI_Count each = type->body->external, whole = each ? bytes / each : 0, position = 0;
	struct mpi_datarep_prefix rest = { 0 };
	int err;

	if (writes)
		return mpi_pack_external("external32", buf, count, type, file, bytes, &position);
	err = mpi_unpack_external("external32", file, bytes, &position, buf, whole, type);
	if (!err)
		err = mpi_datarep_measure(&external32, type, bytes - whole * each, &rest);
	if (err || rest.native == 0)
		return err;
	return unpack_beginning(buf, whole, type, file + whole * each, bytes - whole * each,
				rest.native);
}

/* ---- both ------------------------------------------------------------------------------------ */

int mpi_datarep_convert(const struct mpi_datarep *rep, bool writes, void *buf, MPI_Count count,
			struct mpi_type *type, void *file, uint64_t bytes, MPI_Count *converted)
{
	MPI_Count each = 0, whole;
	struct mpi_datarep_prefix p = { 0 };
	int err = mpi_datarep_bytes(rep, type, &each);

	*converted = 0;
	if (err || each == 0 || count == 0)
		return err;
	whole = (MPI_Count)bytes / each < count ? (MPI_Count)bytes / each : count;
	err = mpi_datarep_measure(rep, type, (MPI_Count)bytes - whole * each, &p);
	if (err)
		return err;
	p.elements += whole * type->body->elements;
	if (rep->kind == MPI_DATAREP_EXTERNAL32)
		err = convert_external(writes, buf, count, type, file, (MPI_Count)bytes);
	else
		err = convert_registered(rep, writes, buf, type, p.elements, file, each);
	if (!err)
		*converted = whole * type->size + p.native;
	return err;
}
