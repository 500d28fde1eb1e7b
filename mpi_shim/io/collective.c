/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collective access: all ranks of a file move data with one call.
 */
#include "mpi_shim/core/error.h"
#include "mpi_shim/io/io.h"

int mpi_transfer_together(struct mpi_transfer *a, int err)
{
	if (!err)
		err = mpi_transfer_alone(a);
	return mpi_file_agree(a->file->comm, err, a->writes, "whether it reads or writes");
}
