/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The arguments of a call that reads or writes, and how it is carried out.
 */
#ifndef MPI_SHIM_IO_CALLS_H
#define MPI_SHIM_IO_CALLS_H

#include "mpi_shim/io/io.h"
#include "mpi_shim/core/request.h"

/* Where a call reads or writes. */
enum mpi_io_at { MPI_AT_OFFSET, MPI_AT_POINTER, MPI_AT_SHARED, MPI_AT_ORDERED };

struct mpi_io {
	enum mpi_io_at at;
	bool writes;
	MPI_Offset offset; /* MPI_AT_OFFSET */
	void *buf;
	MPI_Count count;
	struct mpi_type *type;
};

/* The buffer of a call that writes: one structure serves both directions. It is not changed. */
static inline void *mpi_io_buffer(const void *buf)
{
	return (void *)(uintptr_t)buf;
}

/* Fill in the status of a call that has moved so many bytes. */
static inline void mpi_io_status(MPI_Status *status, MPI_Count bytes)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	mpi_status_none(status, MPI_ANY_SOURCE);
	mpi_status_set_bytes(status, bytes, false);
}

/* The first steps of a call: moves its file pointer, and prepares the access. `together`: as below.
 * After success mpi_transfer_end is due. */
int mpi_io_begin(struct mpi_file *file, const struct mpi_io *io, bool together,
		 struct mpi_transfer *a);
/* Carry out a call and wait for its end. `together`: a collective one; all ranks take part to its
 * end, whatever error one of them has. *bytes: what was moved of the program's data. */
int mpi_io_run(struct mpi_file *file, const struct mpi_io *io, bool together, MPI_Count *bytes);

/* End a request of a file with an error, whose text is kept, or without. */
void mpi_io_complete(struct mpi_request *r, int err, MPI_Count bytes);

/* ---- uring.c --------------------------------------------------------------------------------- */

/* Let the kernel carry out an access that is prepared. The request ends when it is over. False: it
 * cannot, and the caller has to. */
bool mpi_uring_start(const struct mpi_transfer *a, struct mpi_request *r);
/* Wait for all that are under way. */
void mpi_uring_fini(void);

#endif
