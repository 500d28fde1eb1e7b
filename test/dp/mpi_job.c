/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI and DP in one process, on one interface of Portals: messages of both in turns.
 */
#include <dp.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	int rank, size, fd, value, sum, wrong = 0;
	char *at;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	fd = dp_open(rank + 1);
	wrong += fd < 0;
	dp_target(fd, dp_nid(), (rank + 1) % size + 1);
	for (int i = 0; i < 100 && !wrong; i++) {
		value = rank + i;
		wrong += dp_write(fd, &value, sizeof(value)) != sizeof(value);
		MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		wrong += sum != size * (size - 1) / 2 + size * i;
		wrong += dp_read(fd, &at) != sizeof(value);
		memcpy(&value, at, sizeof(value));
		wrong += value != (rank + size - 1) % size + i;
		dp_fsync(fd, 1);
	}
	dp_close(fd);
	if (wrong)
		fprintf(stderr, "rank %d: %d results are wrong\n", rank, wrong);
	MPI_Finalize();
	/* MPI has ended, DP has not */
	fd = dp_open(rank + 100);
	dp_target(fd, dp_nid(), rank + 100);
	wrong += dp_write(fd, "x", 1) != 1 || dp_read(fd, &at) != 1 || *at != 'x';
	return wrong != 0;
}
