/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Handles that were freed, were never given out or are of another kind: each use is an error of
 * the right class, and harms nothing.
 */
#include "job_check.h"

static int class_of(int err)
{
	int class = -1;

	MPI_Error_class(err, &class);
	return class;
}

static void *invented(unsigned long n)
{
	return (void *)n;
}

static void communicators(void)
{
	MPI_Comm a, b, copy, other;
	int n;

	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	copy = a;
	MPI_Comm_free(&a);
	CHECK_EQUAL(class_of(MPI_Comm_size(copy, &n)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_free(&copy)), MPI_ERR_COMM);
	MPI_Comm_dup(MPI_COMM_WORLD, &b);
	CHECK(b != copy);
	CHECK_EQUAL(class_of(MPI_Comm_dup(copy, &other)), MPI_ERR_COMM);
	MPI_Comm_free(&b);
	CHECK_EQUAL(class_of(MPI_Comm_rank(MPI_COMM_NULL, &n)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_rank((MPI_Comm)invented(0), &n)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_rank((MPI_Comm)invented(0xfff), &n)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_rank((MPI_Comm)invented(0x123456789abc), &n)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_rank((MPI_Comm)(void *)MPI_GROUP_EMPTY, &n)), MPI_ERR_COMM);
	other = MPI_COMM_WORLD;
	CHECK_EQUAL(class_of(MPI_Comm_free(&other)), MPI_ERR_COMM);
	CHECK(other == MPI_COMM_WORLD);
	CHECK_EQUAL(class_of(MPI_Comm_remote_size(MPI_COMM_WORLD, &n)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &other)), MPI_ERR_COMM);
}

/* Calls of each family with a communicator that is none. */
static void no_communicator(MPI_Comm comm)
{
	int in[8], out[8] = { 0 }, n, flag, dims = 1, periods = 0;
	MPI_Request request;
	MPI_Group group;
	MPI_Comm other;
	MPI_Info info;
	MPI_Win win;
	char name[MPI_MAX_OBJECT_NAME];

	CHECK_EQUAL(class_of(MPI_Send(out, 1, MPI_INT, 0, 1, comm)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Bsend(out, 1, MPI_INT, 0, 1, comm)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Isend(out, 1, MPI_INT, 0, 1, comm, &request)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Recv(in, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE)),
		    MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Recv_init(in, 1, MPI_INT, 0, 1, comm, &request)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Iprobe(0, 1, comm, &flag, MPI_STATUS_IGNORE)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Barrier(comm)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Ibarrier(comm, &request)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, comm)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Bcast_init(in, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &request)),
		    MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Win_create(in, 4, 1, MPI_INFO_NULL, comm, &win)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Pack_size(1, MPI_INT, comm, &n)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_size(comm, &n)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_dup(comm, &other)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_idup(comm, &other, &request)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_split(comm, 0, 0, &other)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_compare(comm, MPI_COMM_SELF, &n)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_group(comm, &group)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_get_name(comm, name, &n)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_get_info(comm, &info)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_get_attr(comm, MPI_TAG_UB, in, &flag)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Cart_create(comm, 1, &dims, &periods, 0, &other)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Topo_test(comm, &n)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_disconnect(&comm)), MPI_ERR_COMM);
	CHECK_EQUAL(class_of(MPI_Comm_free(&comm)), MPI_ERR_COMM);
}

/* An operation keeps its communicator; the freed handle names nothing meanwhile. */
static void a_communicator_in_use(void)
{
	MPI_Comm comm, copy;
	MPI_Request request, persistent;
	int in = -1, again = -1, out = job_rank;

	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	copy = comm;
	MPI_Irecv(&in, 1, MPI_INT, 0, 1, comm, &request);
	MPI_Recv_init(&again, 1, MPI_INT, 0, 3, comm, &persistent);
	MPI_Send(&out, 0, MPI_INT, 0, 2, comm); /* nobody receives it */
	MPI_Send(&out, 1, MPI_INT, 0, 1, comm);
	MPI_Send(&out, 1, MPI_INT, 0, 3, comm);
	MPI_Comm_free(&comm);
	no_communicator(copy);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK_EQUAL(in, job_rank);
	CHECK_EQUAL(MPI_Start(&persistent), MPI_SUCCESS);
	MPI_Wait(&persistent, MPI_STATUS_IGNORE);
	CHECK_EQUAL(again, job_rank);
	MPI_Request_free(&persistent);
	no_communicator(copy);
}

static int handled, handled_size;
static MPI_Comm handled_comm;

static void note_error(MPI_Comm *comm, int *code, ...)
{
	handled = class_of(*code);
	handled_comm = *comm;
	if (MPI_Comm_size(*comm, &handled_size))
		handled_size = -1;
}

/* A failure on a communicator that has been freed calls its error handler, which gets a handle that
 * names it. */
static void an_error_on_a_freed_communicator(void)
{
	MPI_Errhandler e;
	MPI_Comm comm, copy;
	MPI_Request request;
	int in = -1, out[2] = { 1, 2 };

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_errhandler(note_error, &e);
	MPI_Comm_set_errhandler(comm, e);
	copy = comm;
	MPI_Recv_init(&in, 1, MPI_INT, (job_rank + job_size - 1) % job_size, 1, comm, &request);
	MPI_Start(&request);
	MPI_Send(out, 2, MPI_INT, (job_rank + 1) % job_size, 1, comm);
	MPI_Comm_free(&comm);
	MPI_Errhandler_free(&e);
	handled = 0;
	CHECK_EQUAL(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
	CHECK_EQUAL(handled, MPI_ERR_TRUNCATE);
	CHECK_EQUAL(handled_size, job_size);
	CHECK(handled_comm != copy);
	CHECK_EQUAL(class_of(MPI_Comm_free(&handled_comm)), MPI_ERR_COMM);
	MPI_Request_free(&request);
	CHECK_EQUAL(class_of(MPI_Comm_size(copy, &out[0])), MPI_ERR_COMM);
}

/* Calls of each family with a datatype that is none. */
static void no_datatype(MPI_Datatype type, MPI_Win win)
{
	int in[8], out[8] = { 0 }, n, at = 0, blocks = 1;
	MPI_Aint lb, extent, place = 0;
	MPI_Datatype other;
	MPI_Request request;
	char name[MPI_MAX_OBJECT_NAME];

	CHECK_EQUAL(class_of(MPI_Send(out, 1, type, 0, 1, MPI_COMM_SELF)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Irecv(in, 1, type, 0, 1, MPI_COMM_SELF, &request)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Send_init(out, 1, type, 0, 1, MPI_COMM_SELF, &request)),
		    MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Bcast(in, 1, type, 0, MPI_COMM_SELF)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Ibcast(in, 1, type, 0, MPI_COMM_SELF, &request)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Alltoallw(out, &blocks, &at, &type, in, &blocks, &at, &type,
					   MPI_COMM_SELF)),
		    MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Put(out, 1, type, 0, 0, 1, type, win)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Accumulate(out, 1, type, 0, 0, 1, type, MPI_SUM, win)),
		    MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Pack(out, 1, type, in, sizeof(in), &at, MPI_COMM_SELF)),
		    MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Pack_size(1, type, MPI_COMM_SELF, &n)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Type_contiguous(2, type, &other)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Type_create_struct(1, &blocks, &place, &type, &other)),
		    MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Type_dup(type, &other)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Type_get_envelope(type, &n, &n, &n, &n)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Type_size(type, &n)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Type_get_extent(type, &lb, &extent)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Type_get_name(type, name, &n)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Type_commit(&type)), MPI_ERR_TYPE);
	CHECK_EQUAL(class_of(MPI_Type_free(&type)), MPI_ERR_TYPE);
}

/* Operations and other datatypes keep a datatype; the freed handle names nothing meanwhile. */
static void a_datatype_in_use(void)
{
	int in[4] = { -1, -1, -1, -1 }, out[4] = { 1, 2, 3, 4 }, n;
	MPI_Datatype pair, copy, two, shown, shown_again;
	MPI_Request request;
	MPI_Win win;

	MPI_Win_create(in, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_fence(0, win);
	MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	MPI_Type_contiguous(1, pair, &two);
	copy = pair;
	MPI_Irecv(in, 1, pair, 0, 1, MPI_COMM_SELF, &request);
	MPI_Type_free(&pair);
	no_datatype(copy, win);
	MPI_Send(out, 2, MPI_INT, 0, 1, MPI_COMM_SELF);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK(in[0] == 1 && in[1] == -1 && in[2] == 2 && in[3] == -1);
	/* what it is a part of shows it, by handles that are to be freed */
	CHECK_EQUAL(MPI_Type_get_contents(two, 1, 0, 1, &n, NULL, &shown), MPI_SUCCESS);
	CHECK_EQUAL(MPI_Type_get_contents(two, 1, 0, 1, &n, NULL, &shown_again), MPI_SUCCESS);
	CHECK(shown != copy);
	CHECK_EQUAL(MPI_Type_size(shown, &n), MPI_SUCCESS);
	CHECK_EQUAL(n, 8);
	copy = shown;
	CHECK_EQUAL(MPI_Type_free(&shown), MPI_SUCCESS);
	CHECK_EQUAL(MPI_Type_size(shown_again, &n), MPI_SUCCESS);
	CHECK_EQUAL(MPI_Type_free(&shown_again), MPI_SUCCESS);
	no_datatype(copy, win);
	MPI_Type_free(&two);
	no_datatype(copy, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	MPI_Win_free(&win);
}

static MPI_Datatype op_type;
static int op_size;

static void add(void *in, void *inout, int *len, MPI_Datatype *type)
{
	op_type = *type;
	if (MPI_Type_size(*type, &op_size))
		op_size = -1;
	for (int i = 0; i < 2 * *len; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

/* A reduction under way keeps its operation and datatype, and the operation is shown what names
 * the datatype. */
static void an_operation_in_use(void)
{
	int in[2] = { 0, 0 }, out[2] = { 1, job_rank }, root = 0, flag;
	MPI_Datatype pair, type_copy;
	MPI_Request request;
	MPI_Op op, copy;

	MPI_Op_create(add, 1, &op);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	copy = op;
	type_copy = pair;
	MPI_Allreduce_init(out, in, 1, pair, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
	MPI_Op_free(&op);
	MPI_Type_free(&pair);
	CHECK_EQUAL(class_of(MPI_Op_commutative(copy, &flag)), MPI_ERR_OP);
	CHECK_EQUAL(class_of(MPI_Reduce(out, in, 1, MPI_INT, copy, root, MPI_COMM_SELF)),
		    MPI_ERR_OP);
	CHECK_EQUAL(class_of(MPI_Reduce_local(out, in, 1, MPI_INT, copy)), MPI_ERR_OP);
	CHECK_EQUAL(class_of(MPI_Op_free(&copy)), MPI_ERR_OP);
	op_size = 8;
	for (int i = 0; i < 2; i++) {
		MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		CHECK_EQUAL(in[0], job_size);
		CHECK_EQUAL(in[1], job_size * (job_size - 1) / 2);
		CHECK_EQUAL(op_size, 8);
		CHECK(op_type != type_copy);
	}
	MPI_Request_free(&request);
}

static void groups(void)
{
	MPI_Group one, two, copy;
	int n;

	MPI_Comm_group(MPI_COMM_WORLD, &one);
	MPI_Comm_group(MPI_COMM_WORLD, &two);
	copy = one;
	MPI_Group_free(&one);
	CHECK(one == MPI_GROUP_NULL);
	CHECK_EQUAL(class_of(MPI_Group_size(copy, &n)), MPI_ERR_GROUP);
	CHECK_EQUAL(MPI_Group_size(two, &n), MPI_SUCCESS);
	CHECK_EQUAL(n, job_size);
	MPI_Group_free(&two);
	CHECK_EQUAL(class_of(MPI_Group_free(&copy)), MPI_ERR_GROUP);
	CHECK_EQUAL(class_of(MPI_Group_free(&one)), MPI_ERR_GROUP);
	CHECK_EQUAL(class_of(MPI_Group_size(MPI_GROUP_NULL, &n)), MPI_ERR_GROUP);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	CHECK_EQUAL(n, job_size);
	one = MPI_GROUP_EMPTY;
	CHECK_EQUAL(MPI_Group_size(one, &n), MPI_SUCCESS);
	CHECK_EQUAL(n, 0);
}

/* A communicator that was made of a group keeps it; the freed handle is none all the same. */
static void a_group_in_use(void)
{
	MPI_Group group, copy, again;
	MPI_Comm comm;
	int n;

	MPI_Comm_group(MPI_COMM_WORLD, &group);
	MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
	copy = group;
	MPI_Group_free(&group);
	CHECK_EQUAL(class_of(MPI_Group_size(copy, &n)), MPI_ERR_GROUP);
	CHECK_EQUAL(class_of(MPI_Group_free(&copy)), MPI_ERR_GROUP);
	MPI_Comm_group(comm, &again);
	MPI_Comm_free(&comm);
	CHECK_EQUAL(MPI_Group_size(again, &n), MPI_SUCCESS);
	CHECK_EQUAL(n, job_size);
	MPI_Group_free(&again);
}

/* An operation that was begun goes on; nobody can wait for it, which would last for ever. */
static void a_request_in_use(void)
{
	MPI_Request request, copy;
	MPI_Status status;
	int in = -1, out = job_rank, flag = 0;

	MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
	copy = request;
	CHECK_EQUAL(MPI_Request_free(&request), MPI_SUCCESS);
	CHECK(request == MPI_REQUEST_NULL);
	CHECK_EQUAL(class_of(MPI_Wait(&copy, &status)), MPI_ERR_REQUEST);
	CHECK_EQUAL(class_of(MPI_Test(&copy, &flag, &status)), MPI_ERR_REQUEST);
	CHECK_EQUAL(class_of(MPI_Waitall(1, &copy, &status)), MPI_ERR_REQUEST);
	CHECK_EQUAL(class_of(MPI_Cancel(&copy)), MPI_ERR_REQUEST);
	CHECK_EQUAL(class_of(MPI_Request_free(&copy)), MPI_ERR_REQUEST);
	MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
	while (in == -1)
		MPI_Iprobe(0, 2, MPI_COMM_SELF, &flag, &status);
	CHECK_EQUAL(in, job_rank);
	/* a persistent one, whether it is under way or not */
	for (int active = 0; active < 2; active++) {
		MPI_Recv_init(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
		if (active)
			MPI_Start(&request);
		copy = request;
		CHECK_EQUAL(MPI_Request_free(&request), MPI_SUCCESS);
		CHECK_EQUAL(class_of(MPI_Start(&copy)), MPI_ERR_REQUEST);
	}
	in = -1;
	MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
	while (in == -1)
		MPI_Iprobe(0, 2, MPI_COMM_SELF, &flag, &status);
}

static int query(void *state, MPI_Status *status)
{
	(void)state;
	memset(status, 0, sizeof(*status));
	return MPI_SUCCESS;
}

static int frees;

static int count_free(void *state)
{
	(void)state;
	frees++;
	return MPI_SUCCESS;
}

static int nothing(void *state, int complete)
{
	(void)state, (void)complete;
	return MPI_SUCCESS;
}

/* A generalized request may be freed before it is completed, by its handle. */
static void a_generalized_request_is_completed_after_it_was_freed(void)
{
	MPI_Request request, copy;

	MPI_Grequest_start(query, count_free, nothing, NULL, &request);
	copy = request;
	CHECK_EQUAL(MPI_Request_free(&request), MPI_SUCCESS);
	CHECK_EQUAL(frees, 0);
	CHECK_EQUAL(MPI_Grequest_complete(copy), MPI_SUCCESS);
	CHECK_EQUAL(frees, 1);
	CHECK_EQUAL(class_of(MPI_Grequest_complete(copy)), MPI_ERR_REQUEST);
}

static void infos(void)
{
	MPI_Info info, copy;

	MPI_Info_create(&info);
	copy = info;
	MPI_Info_free(&info);
	CHECK(info == MPI_INFO_NULL);
	CHECK_EQUAL(class_of(MPI_Info_set(copy, "a", "b")), MPI_ERR_INFO);
	CHECK_EQUAL(class_of(MPI_Info_free(&copy)), MPI_ERR_INFO);
	CHECK_EQUAL(class_of(MPI_Info_free(&info)), MPI_ERR_INFO);
	CHECK_EQUAL(class_of(MPI_Info_set(MPI_INFO_NULL, "a", "b")), MPI_ERR_INFO);
	CHECK_EQUAL(class_of(MPI_Info_set(MPI_INFO_ENV, "a", "b")), MPI_ERR_INFO);
}

static void handler(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
}

static void error_handlers(void)
{
	MPI_Errhandler e, copy, shown, none = MPI_ERRHANDLER_NULL;
	MPI_Comm comm;
	int err;

	MPI_Comm_create_errhandler(handler, &e);
	copy = e;
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_set_errhandler(comm, e);
	MPI_Errhandler_free(&e);
	CHECK(e == MPI_ERRHANDLER_NULL);
	CHECK_EQUAL(class_of(MPI_Comm_set_errhandler(MPI_COMM_SELF, copy)), MPI_ERR_ERRHANDLER);
	/* the communicator shows it, by handles that are to be freed */
	CHECK_EQUAL(MPI_Comm_get_errhandler(comm, &shown), MPI_SUCCESS);
	CHECK(shown != copy);
	CHECK_EQUAL(MPI_Comm_set_errhandler(comm, shown), MPI_SUCCESS);
	CHECK_EQUAL(MPI_Errhandler_free(&shown), MPI_SUCCESS);
	err = class_of(MPI_Errhandler_free(&copy));
	CHECK(err == MPI_ERR_ERRHANDLER || err == MPI_ERR_ARG);
	CHECK_EQUAL(class_of(MPI_Send(&err, -1, MPI_INT, 0, 0, comm)), MPI_ERR_COUNT);
	MPI_Comm_free(&comm);
	err = class_of(MPI_Comm_set_errhandler(MPI_COMM_SELF, none));
	CHECK(err == MPI_ERR_ERRHANDLER || err == MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
	job_start(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CASE(communicators);
	CASE(a_communicator_in_use);
	CASE(an_error_on_a_freed_communicator);
	CASE(a_datatype_in_use);
	CASE(an_operation_in_use);
	CASE(groups);
	CASE(a_group_in_use);
	CASE(a_request_in_use);
	CASE(a_generalized_request_is_completed_after_it_was_freed);
	CASE(infos);
	CASE(error_handlers);
	return job_end();
}
