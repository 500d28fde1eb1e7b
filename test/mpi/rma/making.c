/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The last rank is killed while a window is made, as it maps memory for the first time (the
 * window's), or for the second (the area's): nobody waits for the others in the middle of it for
 * ever, and those that have the window understand each other. Usage: 1|2, for mpiexec
 * --keep-going.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 20.0

static int deadly; /* the call that ends the process */

/* Instead of the C library's. */
void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (fd >= 0 && deadly && --deadly == 0)
		raise(SIGKILL);
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* An epoch of each of the two that live with the other. */
static int meet(MPI_Win win, int other)
{
	int number = other, err;
	MPI_Group all, one;

	MPI_Win_get_group(win, &all);
	MPI_Group_incl(all, 1, &other, &one);
	err = MPI_Win_post(one, 0, win);
	err = err ? err : MPI_Win_start(one, 0, win);
	err = err ? err : MPI_Put(&number, 4, MPI_BYTE, other, 0, 4, MPI_BYTE, win);
	err = err ? err : MPI_Win_complete(win);
	err = err ? err : MPI_Win_wait(win);
	MPI_Group_free(&all);
	MPI_Group_free(&one);
	return err;
}

/* Some may have the area and others not: the dead one is missed all the same. */
static int fence(MPI_Win win)
{
	int class = MPI_SUCCESS, err = MPI_Win_fence(0, win);

	if (err)
		MPI_Error_class(err, &class);
	return class != MPI_ERR_PROC_ABORTED;
}

static void tell(int n, int right, const char *what)
{
	printf("%sok %d - a rank dies in MPI_Win_allocate: %s\n", right ? "" : "not ", n, what);
}

int main(int argc, char **argv)
{
	int number = argc > 1 ? atoi(argv[1]) : 1, rank, err, have[2] = { 0, 0 }, wrong = 0,
	    his = 0;
	MPI_Win win = MPI_WIN_NULL;
	double since;
	int *memory;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 2)
		deadly = number;
	since = now();
	err = MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	if (rank == 2)
		return 1; /* it mapped less often */
	have[0] = !err;
	MPI_Sendrecv(&have[0], 1, MPI_INT, 1 - rank, 0, &have[1], 1, MPI_INT, 1 - rank, 0,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (have[0])
		MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	if (have[0] && have[1])
		wrong = meet(win, 1 - rank) || *memory != rank || fence(win);
	if (have[0])
		wrong |= MPI_Win_free(&win) != MPI_SUCCESS;
	wrong |= now() - since > LIMIT_S;
	MPI_Sendrecv(&wrong, 1, MPI_INT, 1 - rank, 0, &his, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	if (rank == 0) {
		tell(1, number == 2 ? have[0] && have[1] : 1,
		     "the others have the window, if it was made");
		tell(2, !wrong && !his, "they go on, and free it");
		printf("1..2\n");
	}
	MPI_Finalize();
	return wrong;
}
