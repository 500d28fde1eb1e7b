/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Handles that were freed, were never given out or are of another kind: each use is an error of the right class,
 * and harms nothing.
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

/* An operation keeps its communicator; the freed handle cannot be freed again meanwhile. */
static void a_communicator_in_use(void)
{
	MPI_Comm comm, copy;
	MPI_Request request;
	int in = -1, out = job_rank;

	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	copy = comm;
	MPI_Irecv(&in, 1, MPI_INT, 0, 1, comm, &request);
	MPI_Send(&out, 0, MPI_INT, 0, 2, comm); /* nobody receives it */
	MPI_Send(&out, 1, MPI_INT, 0, 1, comm);
	MPI_Comm_free(&comm);
	comm = copy;
	CHECK_EQUAL(class_of(MPI_Comm_free(&comm)), MPI_ERR_COMM);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK_EQUAL(in, job_rank);
	CHECK_EQUAL(class_of(MPI_Comm_free(&copy)), MPI_ERR_COMM);
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

/* What was begun goes on; nobody can wait for it, which would last for ever. */
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
	MPI_Errhandler e, copy, none = MPI_ERRHANDLER_NULL;
	MPI_Comm comm;
	int err;

	MPI_Comm_create_errhandler(handler, &e);
	copy = e;
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_set_errhandler(comm, e);
	MPI_Errhandler_free(&e);
	CHECK(e == MPI_ERRHANDLER_NULL);
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
	CASE(groups);
	CASE(a_group_in_use);
	CASE(a_request_in_use);
	CASE(a_generalized_request_is_completed_after_it_was_freed);
	CASE(infos);
	CASE(error_handlers);
	return job_end();
}
