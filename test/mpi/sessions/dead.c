/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The last rank is killed. A communicator from a group that it is in ends with
 * MPI_ERR_PROC_ABORTED, before MPI_Init was ever called; one of the others is made. For mpiexec
 * --keep-going, by test/mpi/pt2pt/dead.sh.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int rank, size, cases, failed;

static int class_of(int error)
{
	int class = MPI_SUCCESS;

	if (error)
		MPI_Error_class(error, &class);
	return class;
}

/* Among those that live, rank 0 prints how it was for all. */
static void result(const char *name, MPI_Comm alive, int class, int wanted)
{
	int wrong = class != wanted, any = 1;

	if (wrong) {
		printf("# %s: rank %d: error class %d, not %d\n", name, rank, class, wanted);
		fflush(stdout);
	}
	MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, alive);
	failed += any;
	cases++;
	if (rank == 0) {
		printf("%sok %d - a dead rank: %s\n", any ? "not " : "", cases, name);
		fflush(stdout);
	}
}

int main(void)
{
	int last[1][3], made, between, one = 1, sum = 0;
	MPI_Group all, others, dead;
	MPI_Comm comm, alive, none = MPI_COMM_NULL;
	MPI_Session s;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
	MPI_Group_from_session_pset(s, "mpi://WORLD", &all);
	MPI_Group_rank(all, &rank);
	MPI_Group_size(all, &size);
	MPI_Comm_create_from_group(all, "while it lives", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
	MPI_Barrier(comm);
	if (rank == size - 1)
		kill(getpid(), SIGKILL);
	made = class_of(MPI_Comm_create_from_group(all, "when it is dead", MPI_INFO_NULL,
						   MPI_ERRORS_RETURN, &none));
	last[0][0] = last[0][1] = size - 1;
	last[0][2] = 1;
	MPI_Group_range_excl(all, 1, last, &others);
	MPI_Group_range_incl(all, 1, last, &dead);
	MPI_Comm_create_from_group(others, "those that live", MPI_INFO_NULL, MPI_ERRORS_RETURN,
				   &alive);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, alive);
	result("a communicator of the others", alive, sum == size - 1 ? 0 : MPI_ERR_OTHER, 0);
	result("a communicator from a group", alive, made, MPI_ERR_PROC_ABORTED);
	between = class_of(MPI_Intercomm_create_from_groups(
		others, 0, dead, 0, "to the dead", MPI_INFO_NULL, MPI_ERRORS_RETURN, &none));
	result("an intercommunicator from groups", alive, between, MPI_ERR_PROC_ABORTED);
	result("no communicator comes of it", alive, none == MPI_COMM_NULL ? 0 : MPI_ERR_OTHER, 0);
	MPI_Comm_free(&comm);
	MPI_Comm_free(&alive);
	MPI_Group_free(&all);
	MPI_Group_free(&others);
	MPI_Group_free(&dead);
	MPI_Session_finalize(&s);
	if (rank == 0)
		printf("1..%d\n", cases);
	return failed != 0;
}
