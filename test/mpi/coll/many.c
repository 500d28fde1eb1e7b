/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Many non-blocking and persistent collectives under way at once, in a job: started in one order
 * on each communicator, ended by each rank in an order of its own, with messages and blocking
 * collectives in between; communicators, datatypes and operations that are freed meanwhile;
 * progress without waiting.
 */
#include "test/mpi/coll_check.h"

#define MOST  9000 /* ints; every sixteenth is as long as that */
#define ASIDE 12   /* under way at once */

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	unsigned *a = in, *b = inout;

	(void)type;
	for (int i = 0; i < *n; i++)
		b[i] += a[i];
}

/* One that is under way. */
struct aside {
	const struct cm *c;
	int kind, n, root, base;
	int *in, *out;
	MPI_Request request;
};

enum { BARRIER, BCAST, ALLREDUCE, REDUCE, ALLGATHER, ALLTOALL, SCAN, GATHER, KINDS };

/* The number that rank r contributes at place i. */
static int given(const struct aside *a, int r, int i)
{
	return a->base + 31 * r + i;
}

static int blocks(const struct aside *a)
{
	return a->kind == ALLGATHER || a->kind == ALLTOALL || a->kind == GATHER ? a->c->n : 1;
}

static void prepare(struct aside *a, int base)
{
	int all;

	a->c = draw_intra();
	a->kind = draw_below(KINDS);
	a->n = 1 + (draw_below(16) ? draw_below(40) : draw_below(MOST / a->c->n));
	a->root = draw_below(a->c->n);
	a->base = base;
	all = a->n * blocks(a);
	a->in = malloc((size_t)all * sizeof(int));
	a->out = malloc((size_t)all * sizeof(int));
	if (!a->in || !a->out)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(struct aside *a)
{
	for (int i = 0; i < a->n * blocks(a); i++) {
		a->in[i] = given(a, a->c->rank, i);
		a->out[i] = a->kind == BCAST && a->c->rank == a->root ? given(a, a->root, i) : -1;
	}
}

static void start(struct aside *a, MPI_Op op)
{
	MPI_Comm comm = a->c->comm;

	switch (a->kind) {
	case BARRIER:
		MPI_Ibarrier(comm, &a->request);
		break;
	case BCAST:
		MPI_Ibcast(a->out, a->n, MPI_INT, a->root, comm, &a->request);
		break;
	case ALLREDUCE:
		MPI_Iallreduce(a->in, a->out, a->n, MPI_INT, op, comm, &a->request);
		break;
	case REDUCE:
		MPI_Ireduce(a->in, a->out, a->n, MPI_INT, op, a->root, comm, &a->request);
		break;
	case ALLGATHER:
		MPI_Iallgather(a->in, a->n, MPI_INT, a->out, a->n, MPI_INT, comm, &a->request);
		break;
	case ALLTOALL:
		MPI_Ialltoall(a->in, a->n, MPI_INT, a->out, a->n, MPI_INT, comm, &a->request);
		break;
	case SCAN:
		MPI_Iscan(a->in, a->out, a->n, MPI_INT, op, comm, &a->request);
		break;
	default:
		MPI_Igather(a->in, a->n, MPI_INT, a->out, a->n, MPI_INT, a->root, comm,
			    &a->request);
	}
}

#if MPI_VERSION >= 4
static void init(struct aside *a, MPI_Op op)
{
	MPI_Comm comm = a->c->comm;
	MPI_Info none = MPI_INFO_NULL;
	int *in = a->in, *out = a->out, n = a->n;

	switch (a->kind) {
	case BARRIER:
		MPI_Barrier_init(comm, none, &a->request);
		break;
	case BCAST:
		MPI_Bcast_init(out, n, MPI_INT, a->root, comm, none, &a->request);
		break;
	case ALLREDUCE:
		MPI_Allreduce_init(in, out, n, MPI_INT, op, comm, none, &a->request);
		break;
	case REDUCE:
		MPI_Reduce_init(in, out, n, MPI_INT, op, a->root, comm, none, &a->request);
		break;
	case ALLGATHER:
		MPI_Allgather_init(in, n, MPI_INT, out, n, MPI_INT, comm, none, &a->request);
		break;
	case ALLTOALL:
		MPI_Alltoall_init(in, n, MPI_INT, out, n, MPI_INT, comm, none, &a->request);
		break;
	case SCAN:
		MPI_Scan_init(in, out, n, MPI_INT, op, comm, none, &a->request);
		break;
	default:
		MPI_Gather_init(in, n, MPI_INT, out, n, MPI_INT, a->root, comm, none, &a->request);
	}
}
#endif

/* The value that must be at place i; *any: any value. */
static int wanted(const struct aside *a, int i, bool *any)
{
	int sum = 0, last = a->kind == SCAN ? a->c->rank : a->c->n - 1;

	*any = a->kind == BARRIER ||
	       ((a->kind == REDUCE || a->kind == GATHER) && a->c->rank != a->root);
	switch (a->kind) {
	case BCAST:
		return given(a, a->root, i);
	case ALLGATHER:
	case GATHER:
		return given(a, i / a->n, i % a->n);
	case ALLTOALL:
		return given(a, i / a->n, a->c->rank * a->n + i % a->n);
	default:
		for (int r = 0; r <= last; r++)
			sum += given(a, r, i);
		return sum;
	}
}

static const char *look(const struct aside *a)
{
	for (int i = 0; i < a->n * blocks(a); i++) {
		bool any;
		int want = wanted(a, i, &any);

		if (!any && a->out[i] != want)
			return tap_wrong("%s, kind %d of %d, root %d: int %d is %d, not %d",
					 a->c->name, a->kind, a->n, a->root, i, a->out[i], want);
	}
	return NULL;
}

static const char *look_at_all(struct aside *a, int n)
{
	const char *wrong = NULL;

	for (int i = 0; i < n; i++) {
		if (!wrong)
			wrong = look(&a[i]);
		free(a[i].in);
		free(a[i].out);
	}
	return wrong;
}

/* Ends them as this rank likes: its numbers are not those of the others. */
static void end_all(struct aside *a, int n)
{
	uint64_t mine = mix(value_of(tap_rank, 99));
	MPI_Request r[ASIDE];
	int which, done = 0;

	if (mine % 3 == 0) { /* one by one, the last started first */
		for (int i = n - 1; i >= 0; i--)
			MPI_Wait(&a[i].request, MPI_STATUS_IGNORE);
		return;
	}
	for (int i = 0; i < n; i++)
		r[i] = a[i].request;
	if (mine % 3 == 1) {
		while (!done)
			MPI_Testall(n, r, &done, MPI_STATUSES_IGNORE);
	} else {
		for (int i = 0; i < n; i++)
			MPI_Waitany(n, r, &which, MPI_STATUS_IGNORE);
	}
	for (int i = 0; i < n; i++)
		a[i].request = r[i];
}

/* A message round the ring, and sometimes a blocking collective. */
static const char *in_between(int i)
{
	int right = (tap_rank + 1) % tap_size, left = (tap_rank + tap_size - 1) % tap_size;
	int got = -1, sum = -1;

	MPI_Sendrecv(&i, 1, MPI_INT, right, 3, &got, 1, MPI_INT, left, 3, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	if (got != i)
		return tap_wrong("the message in between was %d, not %d", got, i);
	if (draw_below(3))
		return NULL;
	MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	return sum == i * tap_size ? NULL : tap_wrong("the sum in between was %d", sum);
}

static const char *many(int round)
{
	struct aside a[ASIDE];
	const char *wrong = NULL, *w;
	MPI_Op op;

	MPI_Op_create(add, 1, &op);
	for (int i = 0; i < ASIDE; i++) {
		prepare(&a[i], 100000 * round + 1000 * i);
		fill(&a[i]);
		start(&a[i], draw_below(2) ? op : MPI_SUM);
		if (draw_below(3) == 0 && (w = in_between(i)))
			wrong = w;
	}
	MPI_Op_free(&op); /* it goes when the last that needs it is over */
	end_all(a, ASIDE);
	w = look_at_all(a, ASIDE);
	return wrong ? wrong : w;
}

#if MPI_VERSION >= 4
/* Started several times, in an order that differs from time to time, with other data each time. */
static const char *persistent(int round)
{
	struct aside a[ASIDE];
	const char *wrong = NULL;
	MPI_Op op;

	MPI_Op_create(add, 1, &op);
	for (int i = 0; i < ASIDE; i++) {
		prepare(&a[i], 0);
		init(&a[i], draw_below(2) ? op : MPI_SUM);
	}
	MPI_Op_free(&op);
	for (int time = 0; time < 4; time++) {
		int first = draw_below(ASIDE);

		for (int i = 0; i < ASIDE; i++) {
			struct aside *b = &a[(first + i) % ASIDE];

			b->base = 10000 * (round + 7 * time) + 100 * i;
			fill(b);
			MPI_Start(&b->request);
		}
		end_all(a, ASIDE);
		for (int i = 0; i < ASIDE && !wrong; i++)
			wrong = look(&a[i]);
	}
	for (int i = 0; i < ASIDE; i++) {
		MPI_Request_free(&a[i].request);
		if (a[i].request != MPI_REQUEST_NULL)
			wrong = tap_wrong("a freed request is not MPI_REQUEST_NULL");
	}
	look_at_all(a, ASIDE);
	return wrong;
}
#endif

/* The communicator and the datatype are freed as soon as it is started. */
static const char *freed_meanwhile(int round)
{
	int n = 1 + draw_length(3000), root = draw_below(tap_size), sum = 0;
	int *data = malloc(2 * (size_t)n * sizeof(int));
	const char *wrong = NULL;
	MPI_Request r[2];
	MPI_Datatype type;
	MPI_Comm comm;

	for (int i = 0; i < 2 * n; i++)
		data[i] = tap_rank == root ? round + i : -1;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Type_vector(n, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Ibcast(data, 1, type, root, comm, &r[0]);
	MPI_Iallreduce(&tap_rank, &sum, 1, MPI_INT, MPI_SUM, comm, &r[1]);
	MPI_Type_free(&type);
	MPI_Comm_free(&comm);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 2 * n && !wrong; i++)
		if (data[i] != (i % 2 && tap_rank != root ? -1 : round + i))
			wrong = tap_wrong("int %d of %d is %d", i, 2 * n, data[i]);
	if (sum != tap_size * (tap_size - 1) / 2)
		wrong = tap_wrong("the sum is %d", sum);
	free(data);
	return wrong;
}

/* Rank 0 only looks for messages; that is progress enough for the barrier of the others. */
static const char *progress(int round)
{
	MPI_Request r;
	int done = 0, flag;

	MPI_Ibarrier(MPI_COMM_WORLD, &r);
	if (tap_rank == 0) {
		for (int i = 1; i < tap_size; i++) {
			flag = 0;
			while (!flag)
				MPI_Iprobe(MPI_ANY_SOURCE, 12, MPI_COMM_WORLD, &flag,
					   MPI_STATUS_IGNORE);
			MPI_Recv(&flag, 1, MPI_INT, MPI_ANY_SOURCE, 12, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		}
	} else {
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		MPI_Send(&round, 1, MPI_INT, 0, 12, MPI_COMM_WORLD);
		return NULL;
	}
	while (!done)
		MPI_Test(&r, &done, MPI_STATUS_IGNORE);
	return NULL;
}

/* Statuses of collectives are empty. */
static const char *status(int round)
{
	MPI_Request r;
	MPI_Status s;
	int count = -1, cancelled = 1;

	(void)round;
	MPI_Ibarrier(MPI_COMM_WORLD, &r);
	MPI_Wait(&r, &s);
	MPI_Get_count(&s, MPI_INT, &count);
	MPI_Test_cancelled(&s, &cancelled);
	if (count != 0 || cancelled || s.MPI_SOURCE != MPI_ANY_SOURCE || s.MPI_TAG != MPI_ANY_TAG)
		return tap_wrong("source %d, tag %d, count %d, cancelled %d", s.MPI_SOURCE,
				 s.MPI_TAG, count, cancelled);
	return r == MPI_REQUEST_NULL ? NULL : "the request is not MPI_REQUEST_NULL";
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 20);
	cms_make();
	tap_case("many non-blocking collectives at once", many);
#if MPI_VERSION >= 4
	/* MPICH 4.0 copies some of the data when they are made, not when they start */
	if (!tap_tame)
		tap_case("persistent collectives, started again and again", persistent);
#endif
	tap_case("communicators and datatypes freed meanwhile", freed_meanwhile);
	tap_case("a barrier goes on while a rank looks for messages", progress);
	if (!tap_tame) /* MPICH 4.0 leaves other values there */
		tap_case("statuses are empty", status);
	cms_free();
	return tap_end();
}
