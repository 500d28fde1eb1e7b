/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every MPI function is called with each of its arguments invalid in turn, and must return the
 * right error class; or, if it is not built, say so. So are arguments that belong together, which
 * may be right. One process; each function is a test case. A call that does not come back ends the
 * test with its name.
 */
#include "args.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MPI_Comm cart, graph, dist, comm, new_comm;
MPI_Group group, new_group;
MPI_Datatype uncommitted, struct_type, absolute_in, absolute_out, new_type;
MPI_Datatype types[] = { MPI_INT, MPI_INT };
MPI_Datatype out_types[8];
MPI_Op new_op;
MPI_Info info, new_info;
MPI_Errhandler new_handler;
MPI_Request request, null_request = MPI_REQUEST_NULL;
MPI_Message message, no_proc = MPI_MESSAGE_NO_PROC;
MPI_Status status;
MPI_Win win, dynamic, new_win;
MPI_File file, new_file;
MPI_Offset out_offsets[4];
MPI_Session session;
MPI_Op user_op;
int keyval, type_keyval, win_keyval, out;
int ints[16], ones[16] = { 1, 1 }, bad_ints[16] = { -7, -7 }, out_ints[64];
int ranges[][3] = { { 0, 0, 1 } }, bad_ranges[][3] = { { 0, 7, 1 } };
int distribs[] = { MPI_DISTRIBUTE_BLOCK }, dargs[] = { MPI_DISTRIBUTE_DFLT_DARG };
MPI_Count ints_c[16], ones_c[16] = { 1, 1 }, bad_ints_c[16] = { -7, -7 }, out_counts[64];
MPI_Aint ints_a[16], ones_a[16] = { 1, 1 }, bad_ints_a[16] = { -7, -7 }, out_aints[64];
MPI_Aint at_in[2], at_out[2];
static char window[64];
char buffer[4096], text[MPI_MAX_LIBRARY_VERSION_STRING], too_long[4096];

void op_fn(void *in, void *inout, int *len, MPI_Datatype *datatype)
{
	(void)in, (void)inout, (void)len, (void)datatype;
}

void op_fn_c(void *in, void *inout, MPI_Count *len, MPI_Datatype *datatype)
{
	(void)in, (void)inout, (void)len, (void)datatype;
}

void handler_fn(MPI_Comm *on, int *code, ...)
{
	(void)on, (void)code;
}

int extent_fn(MPI_Datatype datatype, MPI_Aint *extent, void *extra_state)
{
	(void)datatype, (void)extra_state;
	*extent = 1;
	return MPI_SUCCESS;
}

int query_fn(void *extra_state, MPI_Status *of)
{
	(void)extra_state, (void)of;
	return MPI_SUCCESS;
}

int free_fn(void *extra_state)
{
	(void)extra_state;
	return MPI_SUCCESS;
}

int cancel_fn(void *extra_state, int complete)
{
	(void)extra_state, (void)complete;
	return MPI_SUCCESS;
}

/* ---- results --------------------------------------------------------------------------------- */

static const char *now_testing;
static int checks, wrong;

static void name_of(int code, char name[MPI_MAX_ERROR_STRING])
{
	int len;

	if (MPI_Error_string(code, name, &len) != MPI_SUCCESS)
		snprintf(name, MPI_MAX_ERROR_STRING, "no error code at all");
}

void check(int rc, const char *what, int want)
{
	char have_text[MPI_MAX_ERROR_STRING], want_text[MPI_MAX_ERROR_STRING];
	int class = -1;

	checks++;
	alarm(20);
	if (MPI_Error_class(rc, &class) == MPI_SUCCESS && class == want)
		return;
	wrong++;
	name_of(rc, have_text);
	name_of(want, want_text);
	printf("# %s with %s: %d (%s), not %d (%s)\n", now_testing, what, rc, have_text, want,
	       want_text);
}

void end_request(void)
{
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (request != MPI_REQUEST_NULL)
		MPI_Request_free(&request);
}

void nothing(void)
{
	checks++;
}

static void hangs(int sig)
{
	const char *parts[] = { "Bail out! ", now_testing, " does not return\n" };

	(void)sig;
	for (int i = 0; i < 3; i++) {
		if (write(STDOUT_FILENO, parts[i], strlen(parts[i])) < 0)
			break;
	}
	_exit(1);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* An integer there, for MPI_BOTTOM. */
static MPI_Datatype type_at(MPI_Aint address)
{
	MPI_Datatype type;

	MPI_Type_create_hindexed_block(1, 1, &address, MPI_INT, &type);
	MPI_Type_commit(&type);
	return type;
}

static void make_arguments(void)
{
	int one = 1, zero = 0;

	MPI_Cart_create(MPI_COMM_SELF, 1, &one, &zero, 0, &cart);
	MPI_Graph_create(MPI_COMM_SELF, 1, &zero, &zero, 0, &graph);
	MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 0, &zero, MPI_UNWEIGHTED, 0, &zero,
				       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &dist);
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_group(MPI_COMM_SELF, &group);
	MPI_Type_contiguous(2, MPI_INT, &uncommitted);
	MPI_Type_create_struct(1, &one, &(MPI_Aint){ 0 }, types, &struct_type);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
	MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_keyval, NULL);
	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
	MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &win_keyval, NULL);
	MPI_Op_create(op_fn, 1, &user_op);
	MPI_Win_create(window, sizeof(window), 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &dynamic);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN);
	MPI_Win_fence(0, win); /* operations are allowed */
	MPI_File_open(MPI_COMM_SELF, "mpi_args.tmp",
		      MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
		      &file);
	for (int i = 0; i < 2; i++) {
		MPI_Get_address(buffer + 64 * i, &at_in[i]);
		MPI_Get_address(buffer + 2048 + 64 * i, &at_out[i]);
	}
	absolute_in = type_at(at_in[1]);
	absolute_out = type_at(at_out[1]);
	MPI_Info_create(&info);
	MPI_Info_set(info, "key", "value");
	memset(too_long, 'x', sizeof(too_long) - 1);
}

static void free_arguments(void)
{
	MPI_Comm_free(&cart);
	MPI_Comm_free(&graph);
	MPI_Comm_free(&dist);
	MPI_Comm_free(&comm);
	MPI_Group_free(&group);
	MPI_Type_free(&uncommitted);
	MPI_Type_free(&struct_type);
	MPI_Type_free(&absolute_in);
	MPI_Type_free(&absolute_out);
	MPI_Comm_free_keyval(&keyval);
	MPI_Type_free_keyval(&type_keyval);
	MPI_Info_free(&info);
	MPI_File_close(&file);
	MPI_Session_finalize(&session);
	MPI_Win_free(&win);
	MPI_Win_free(&dynamic);
	MPI_Win_free_keyval(&win_keyval);
	MPI_Op_free(&user_op);
}

int main(int argc, char **argv)
{
	int failed = 0, n = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	signal(SIGALRM, hangs);
	setvbuf(stdout, NULL, _IOLBF, 0);
	make_arguments();
	for (const struct args_case *c = args_cases; c->name; c++) {
		now_testing = c->name;
		checks = wrong = 0;
		alarm(20);
		c->run();
		failed += wrong > 0 || checks == 0;
		printf("%s %d - %s: %d calls\n", wrong || !checks ? "not ok" : "ok", ++n, c->name,
		       checks);
	}
	alarm(0);
	free_arguments();
	printf("1..%d\n", n);
	MPI_Finalize();
	return failed > 0;
}
