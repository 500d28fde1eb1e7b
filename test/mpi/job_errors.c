/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * One error of the kind its argument names, for errors.sh to look at what is said. Rank 1 makes
 * it, the others wait.
 */
#include "job_check.h"

static void handler(MPI_Comm *comm, int *code, ...)
{
	char name[MPI_MAX_OBJECT_NAME];
	int length, class;

	MPI_Comm_get_name(*comm, name, &length);
	MPI_Error_class(*code, &class);
	printf("handler: %s, class %s\n", name, class == MPI_ERR_TAG ? "MPI_ERR_TAG" : "another");
	fflush(stdout);
}

static void bad_send(MPI_Comm comm)
{
	printf("returned %d\n", MPI_Send(&job_rank, 1, MPI_INT, 0, -5, comm));
	fflush(stdout);
}

static void bad_send_named(MPI_Comm comm)
{
	MPI_Comm_set_name(comm, "solver grid");
	bad_send(comm);
}

static void bad_type(MPI_Comm comm)
{
	MPI_Datatype type = MPI_DATATYPE_NULL;

	(void)comm;
	printf("returned %d\n", MPI_Type_contiguous(3, type, &type));
	fflush(stdout);
}

static void with_handler(MPI_Comm comm)
{
	MPI_Errhandler e;

	MPI_Comm_create_errhandler(handler, &e);
	MPI_Comm_set_name(comm, "watched");
	MPI_Comm_set_errhandler(comm, e);
	MPI_Errhandler_free(&e);
	bad_send(comm);
}

static void aborting(MPI_Comm comm)
{
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_ABORT);
	bad_send(comm);
}

static void returning(MPI_Comm comm)
{
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	bad_send(comm);
}

static void returning_world(MPI_Comm comm)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	bad_type(comm);
}

static void called(MPI_Comm comm)
{
	MPI_Comm_call_errhandler(comm, MPI_ERR_NO_SPACE);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*make)(MPI_Comm);
	} errors[] = {
		{ "send", bad_send },
		{ "named", bad_send_named },
		{ "type", bad_type },
		{ "handler", with_handler },
		{ "abort", aborting },
		{ "return", returning },
		{ "return-world", returning_world },
		{ "call", called },
	};
	MPI_Comm comm;

	job_start(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (job_rank == 1 && argc > 1 && strcmp(argv[1], errors[i].name) == 0)
			errors[i].make(comm);
	/* those that did not end the job go on */
	MPI_Barrier(comm);
	MPI_Comm_free(&comm);
	MPI_Finalize();
	return 0;
}
