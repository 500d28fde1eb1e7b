/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives one after the other, by chance, while the last rank is killed at some moment: what
 * ends well has given the right result; each survivor hears of the death within seconds, even if
 * others have heard before and call no more collectives of that communicator; whoever goes on
 * calling them gets errors; and those who live can still send messages and make a communicator
 * of their own. For mpiexec --keep-going. Usage: SEED leave|stay.
 *
 * Or, of four ranks over a network: one hears of a death from another, and has never had to do
 * with the dead one itself. Usage: SEED hear. Or one is waited for that nobody has had to do
 * with: SEED stranger. Or even and odd ranks make intercommunicators meanwhile, whose leaders
 * live: SEED bridge.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define LIMIT_S 60
#define MOST    (1 << 16) /* ints of a rank */
#define RANKS   8
#define AFTER   20 /* collectives of one that stays */

enum what {
	BARRIER,
	BCAST,
	REDUCE,
	ALLREDUCE,
	ALLGATHER,
	ALLTOALL,
	GATHER,
	SCATTER,
	SCAN,
	IBARRIER,
	IALLREDUCE,
	WHATS,
	BRIDGE = WHATS
};
static const char *const names[] = { "barrier",   "bcast",    "reduce",     "allreduce",
				     "allgather", "alltoall", "gather",     "scatter",
				     "scan",      "ibarrier", "iallreduce", "intercommunicator" };

static int rank, size, in[RANKS * MOST], out[RANKS * MOST];
static unsigned long long state;

static int below(int n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (int)((state >> 33) % (unsigned int)n);
}

/* All draw the same. */
struct call {
	enum what what;
	int n, root, number;
};

static struct call draw(int number)
{
	static const int lengths[] = { 1, 2, 100, 1500, 5000, MOST };
	struct call c;

	c.what = (enum what)below(WHATS);
	c.n = lengths[below(below(4) ? 4 : 6)];
	c.root = below(size - 1);
	c.number = number;
	return c;
}

static int value(const struct call *c, int of, int i)
{
	return c->number + of * 1000 + i % 997;
}

static int wait_for(int err, MPI_Request *request)
{
	return err ? err : MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* In every other one blocks could differ. */
static int alltoall(const struct call *c, MPI_Comm comm)
{
	int counts[RANKS], displs[RANKS];

	if (c->number % 2)
		return MPI_Alltoall(in, c->n, MPI_INT, out, c->n, MPI_INT, comm);
	for (int i = 0; i < size; i++) {
		counts[i] = c->n;
		displs[i] = i * c->n;
	}
	return MPI_Alltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, comm);
}

static int carry_out(const struct call *c, MPI_Comm comm)
{
	MPI_Request request;

	for (int i = 0; i < c->n * (c->what == ALLTOALL || c->what == SCATTER ? size : 1); i++)
		in[i] = value(c, rank, i);
	switch (c->what) {
	case BCAST:
		return MPI_Bcast(rank == c->root ? in : out, c->n, MPI_INT, c->root, comm);
	case REDUCE:
		return MPI_Reduce(in, out, c->n, MPI_INT, MPI_SUM, c->root, comm);
	case ALLREDUCE:
		return MPI_Allreduce(in, out, c->n, MPI_INT, MPI_SUM, comm);
	case ALLGATHER:
		return MPI_Allgather(in, c->n, MPI_INT, out, c->n, MPI_INT, comm);
	case ALLTOALL:
		return alltoall(c, comm);
	case GATHER:
		return MPI_Gather(in, c->n, MPI_INT, out, c->n, MPI_INT, c->root, comm);
	case SCATTER:
		return MPI_Scatter(in, c->n, MPI_INT, out, c->n, MPI_INT, c->root, comm);
	case SCAN:
		return MPI_Scan(in, out, c->n, MPI_INT, MPI_SUM, comm);
	case IBARRIER:
		return wait_for(MPI_Ibarrier(comm, &request), &request);
	case IALLREDUCE:
		return wait_for(MPI_Iallreduce(in, out, c->n, MPI_INT, MPI_SUM, comm, &request),
				&request);
	default:
		return MPI_Barrier(comm);
	}
}

static int sum(const struct call *c, int ranks, int i)
{
	return ranks * (c->number + i % 997) + 1000 * (ranks * (ranks - 1) / 2);
}

/* The value of int i of `out`, after a collective that succeeded. */
static int expected(const struct call *c, int i)
{
	switch (c->what) {
	case BCAST:
		return value(c, c->root, i);
	case ALLGATHER:
	case GATHER:
		return value(c, i / c->n, i % c->n);
	case ALLTOALL:
		return value(c, i / c->n, rank * c->n + i % c->n);
	case SCATTER:
		return value(c, c->root, rank * c->n + i);
	case SCAN:
		return sum(c, rank + 1, i);
	default:
		return sum(c, size, i);
	}
}

static int right(const struct call *c)
{
	int n = c->n;

	if (c->what == BARRIER || c->what == IBARRIER || (c->what == BCAST && rank == c->root) ||
	    ((c->what == REDUCE || c->what == GATHER) && rank != c->root))
		return 1;
	if (c->what == ALLGATHER || c->what == GATHER || c->what == ALLTOALL)
		n *= size;
	for (int i = 0; i < n; i++)
		if (out[i] != expected(c, i)) {
			printf("# rank %d: %s %d of %d from %d: int %d is %d, not %d\n", rank,
			       names[c->what], c->number, c->n, c->root, i, out[i], expected(c, i));
			fflush(stdout);
			return 0;
		}
	return 1;
}

static int class_of(int err)
{
	int class = MPI_SUCCESS;

	if (err)
		MPI_Error_class(err, &class);
	return class;
}

static void die(int number)
{
	(void)number;
	kill(getpid(), SIGKILL);
}

static struct call last; /* under way */

static void stuck(int number)
{
	(void)number;
	printf("Bail out! rank %d waits for ever: %s %d of %d ints, root %d\n", rank,
	       names[last.what], last.number, last.n, last.root);
	fflush(stdout);
	kill(getpid(), SIGABRT);
}

/* In a moment the last rank is dead, and some seconds later it is too late for the others. */
static void start(int us)
{
	const struct itimerval t = { .it_value.tv_usec = us };

	if (rank == size - 1)
		setitimer(ITIMER_REAL, &t, NULL);
	else
		alarm(LIMIT_S);
}

/* Collectives until one is an error, and if wanted more after that. Bits: 1 a wrong result, 2 a
 * wrong class, 4 one that ended well after the error. */
static int call_them(MPI_Comm comm, int stay)
{
	int wrong = 0, class;

	for (int number = 0;; number++) {
		last = draw(number);
		class = class_of(carry_out(&last, comm));
		if (class)
			break;
		wrong |= !right(&last);
	}
	if (class != MPI_ERR_PROC_ABORTED)
		wrong |= 2;
	for (int i = 1; stay && i <= AFTER; i++) {
		last = draw(last.number + 1);
		class = class_of(carry_out(&last, comm));
		if (class != MPI_ERR_PROC_ABORTED)
			wrong |= class ? 2 : 4;
	}
	return wrong;
}

/* Two sides that live, which find each other by a communicator that the dead one is in. */
static int across(MPI_Comm living)
{
	MPI_Comm side, inter, merged;
	int wrong, one = 1, all = 0;

	MPI_Comm_split(living, rank % 2, rank, &side);
	if (MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, !(rank % 2), 5, &inter))
		return 1;
	wrong = MPI_Intercomm_merge(inter, rank % 2, &merged);
	wrong |= MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, merged) || all != size - 1;
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&side);
	return wrong;
}

/* The survivors' own communicator, on which all is well; with the dead one they make none. */
static int among_the_living(void)
{
	int dead = size - 1, wrong, one = 1, all = 0;
	MPI_Group world, living;
	MPI_Comm comm;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	wrong = class_of(MPI_Comm_create_group(MPI_COMM_WORLD, world, 1, &comm)) !=
		MPI_ERR_PROC_ABORTED;
	MPI_Group_excl(world, 1, &dead, &living);
	if (MPI_Comm_create_group(MPI_COMM_WORLD, living, 0, &comm))
		return 8;
	for (int i = 0; i < 10; i++) {
		wrong |= MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm) || all != size - 1;
		wrong |= MPI_Barrier(comm) != MPI_SUCCESS;
	}
	wrong |= across(comm);
	MPI_Comm_free(&comm);
	MPI_Group_free(&living);
	MPI_Group_free(&world);
	return wrong ? 8 : 0;
}

static int by_chance(int seed, int stay)
{
	MPI_Comm comm;
	int wrong;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Barrier(MPI_COMM_WORLD);
	start(1 + seed * 7919 % 20000);
	wrong = call_them(comm, stay);
	wrong |= among_the_living();
	MPI_Comm_free(&comm);
	return wrong;
}

/* Rank 1 alone has to do with rank 3; rank 2 waits for rank 0, which waits until that has ended. */
static int hear(void)
{
	int number = 0, err = MPI_SUCCESS;

	if (rank == 3)
		MPI_Ssend(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
	if (rank == 1)
		MPI_Recv(&number, 1, MPI_INT, 3, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	start(200000);
	if (rank == 0)
		MPI_Recv(&number, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 0)
		return 0;
	if (rank == 1)
		err = MPI_Recv(&number, 1, MPI_INT, 3, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 2)
		err = MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (rank == 2)
		MPI_Send(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
	while (rank == 3)
		pause();
	return class_of(err) == MPI_ERR_PROC_ABORTED ? 0 : 2;
}

static int stranger(void)
{
	int number;

	start(200000);
	while (rank == size - 1)
		pause();
	return class_of(MPI_Recv(&number, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE)) == MPI_ERR_PROC_ABORTED
		       ? 0
		       : 2;
}

/* All of them are asked for by all who live, so that none may hang; the last ones are long after
 * the death. */
static int bridge(int seed)
{
	MPI_Comm side, inter;
	int class = 0, wrong = 0;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
	MPI_Comm_set_errhandler(side, MPI_ERRORS_RETURN);
	MPI_Barrier(MPI_COMM_WORLD);
	start(1 + seed * 7919 % 20000);
	for (int i = 0; i < AFTER; i++) {
		last = (struct call){ BRIDGE, 0, 0, i };
		class = class_of(
			MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, !(rank % 2), 5, &inter));
		if (class == MPI_SUCCESS)
			MPI_Comm_free(&inter);
		else if (class != MPI_ERR_PROC_ABORTED)
			wrong |= 2;
		usleep(10000);
	}
	if (class != MPI_ERR_PROC_ABORTED)
		wrong |= 2;
	MPI_Comm_free(&side);
	return wrong;
}

static void tell(int number, int wrong, const char *what)
{
	printf("%sok %d - a rank dies among collectives: %s\n", wrong ? "not " : "", number, what);
}

int main(int argc, char **argv)
{
	const int seed = argc > 1 ? atoi(argv[1]) : 1;
	const char *what = argc > 2 ? argv[2] : "leave";
	int wrong, all = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	state = (unsigned long long)seed * 1000003u;
	signal(SIGALRM, rank == size - 1 ? die : stuck);
	if (strcmp(what, "stranger") == 0)
		wrong = stranger();
	else if (strcmp(what, "bridge") == 0)
		wrong = bridge(seed);
	else
		wrong = strcmp(what, "hear") == 0 ? hear()
						  : by_chance(seed, strcmp(what, "stay") == 0);
	alarm(0);
	if (rank)
		MPI_Send(&wrong, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
	for (int i = 1; rank == 0 && i < size - 1; i++) {
		MPI_Recv(&all, 1, MPI_INT, i, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		wrong |= all;
	}
	if (rank == 0) {
		tell(1, wrong & 1, "what ends well is right");
		tell(2, wrong & 2, "all hear of it, with MPI_ERR_PROC_ABORTED");
		tell(3, wrong & 4, "after the first error there are errors alone");
		tell(4, wrong & 8, "the others make a communicator of their own");
		printf("1..4\n");
		fflush(stdout);
	}
	MPI_Finalize();
	return wrong != 0;
}
