/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * RWAPI and MPI in one process: both know the same ranks, and neither takes the other's messages.
 *
 * with_mpi [ROUNDS]
 */
#include "check.h"

#include <string.h>

#include <mpi.h>

enum { LENGTH = 50000 };

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 300, mpi_rank, mpi_size, sum, result;
	rwapi_net_t local, mine, theirs;
	unsigned char *from, *to;
	int next, previous;

	MPI_Init(&argc, &argv);
	begin(1);
	MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
	check(mpi_rank == rank && mpi_size == size);
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	from = rwapi_alloc(LENGTH, &local);
	to = rwapi_alloc(LENGTH, &mine);
	check(from && to);
	send_kind(previous, KIND_NET, 0, mine);
	expect_kind(next, KIND_NET, NULL, &theirs);
	for (int i = 0; i < rounds; i++) {
		int got = -1;

		memset(from, i & 255, LENGTH);
		check(rwapi_write(next, local, theirs, i % 2 ? LENGTH : 100) > 0);
		send_kind(next, KIND_NOTICE, (uint32_t)i, 0);
		/* MPI polls while the message of RWAPI arrives, and the other way round */
		MPI_Sendrecv(&i, 1, MPI_INT, next, 5, &got, 1, MPI_INT, previous, 5, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		check(got == i);
		expect_kind(previous, KIND_NOTICE, NULL, NULL);
		check(to[0] == (i & 255) && to[99] == (i & 255));
		check(i % 2 == 0 || to[LENGTH - 1] == (i & 255));
		MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		check(sum == i * size);
	}
	passed("messages of both in turn");
	result = end(RWAPI_OK);
	MPI_Allreduce(&result, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return sum != 0;
}
