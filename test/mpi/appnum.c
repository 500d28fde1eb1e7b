/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Says which program of its job each rank takes itself for, in the order of ranks.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int rank, size, flag, *value, *all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	all = malloc((size_t)size * sizeof(*all));
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, (void *)&value, &flag);
	if (!flag || !all)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Gather(value, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; rank == 0 && i < size; i++)
		printf("%d%c", all[i], i + 1 < size ? ' ' : '\n');
	free(all);
	MPI_Finalize();
	return 0;
}
