/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Data representations: what datarep.c and laid.c share.
 */
#ifndef MPI_SHIM_IO_DATAREP_H
#define MPI_SHIM_IO_DATAREP_H

#include "mpi_shim/io/io.h"

enum mpi_datarep_kind {
	MPI_DATAREP_NATIVE, /* and internal, which is the same here */
	MPI_DATAREP_EXTERNAL32,
	MPI_DATAREP_REGISTERED
};

struct mpi_datarep {
	struct mpi_datarep *next;
	char name[MPI_MAX_DATAREP_STRING];
	enum mpi_datarep_kind kind;
	/* of the program; NULL: the bytes are those in memory */
	MPI_Datarep_conversion_function *read, *write;
	MPI_Datarep_conversion_function_c *read_c, *write_c;
	MPI_Datarep_extent_function *extent;
	void *state;
};

/* Bytes of a basic type or pair in the file. Calls the program's function, without the lock. */
int mpi_datarep_basic(const struct mpi_datarep *rep, const struct mpi_type *basic,
		      MPI_Count *bytes);
/* Whether a type has no other types inside, as far as a file is concerned. */
bool mpi_datarep_is_basic(const struct mpi_type *type);

/* Whole basic elements at the beginning of an element, of which `bytes` bytes are in the file:
 * their number, and their bytes in memory. */
struct mpi_datarep_prefix {
	MPI_Count elements, native;
};
int mpi_datarep_measure(const struct mpi_datarep *rep, const struct mpi_type *type, MPI_Count bytes,
			struct mpi_datarep_prefix *prefix);

#endif
