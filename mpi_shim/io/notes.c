/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Operations on files, as tools see them: core/events.h.
 */
#include "mpi_shim/core/events.h"
#include "mpi_shim/io/io.h"

void mpi_file_raise(enum mpi_event kind, const struct mpi_file *file,
		    enum mpi_file_operation operation, int err)
{
	mpi_event_file(kind, &(struct mpi_event_file){
				     .file = file ? (int)file->obj.handle : 0,
				     .operation = operation,
				     .collective = 1,
				     .error = err,
			     });
}

void mpi_transfer_raise(enum mpi_event kind, const struct mpi_transfer *a, int err)
{
	const bool ends = kind == MPI_EVENT_FILE_END;

	if (!mpi_event_watched(kind))
		return;
	mpi_event_file(kind,
		       &(struct mpi_event_file){
			       .offset = mpi_view_place(&a->file->view, a->from),
			       .bytes = (MPI_Count)(ends ? a->moved : a->bytes),
			       .file = (int)a->file->obj.handle,
			       .operation = a->writes ? MPI_EVENT_FILE_WRITE : MPI_EVENT_FILE_READ,
			       .collective = a->collective,
			       .error = err,
		       });
}
