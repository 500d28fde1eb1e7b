/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The arguments of the calls that args.py writes: valid arguments, and invalid ones of kinds that
 * no expression can make. See args.c.
 */
#ifndef TEST_MPI_ARGS_H
#define TEST_MPI_ARGS_H

#include <mpi.h>
#include <stddef.h>

struct args_case {
	const char *name;
	void (*run)(void);
};
extern const struct args_case args_cases[];

/* A call returned `rc`; its class has to be `want`. */
void check(int rc, const char *what, int want);
/* Of a call that succeeded. */
void end_request(void);
/* A function without arguments that can be wrong. */
void nothing(void);

/* one process each: the user's own communicators with topologies */
extern MPI_Comm cart, graph, dist, comm, new_comm;
extern MPI_Group group, new_group;
extern MPI_Datatype uncommitted, struct_type, absolute_in, absolute_out, new_type, types[],
	out_types[];
extern MPI_Op new_op;
extern MPI_Info info, new_info;
extern MPI_Errhandler new_handler;
extern MPI_Request request, null_request;
extern MPI_Message message, no_proc;
extern MPI_Status status;
extern MPI_Win win, dynamic, new_win;
extern MPI_File file, new_file;
extern MPI_Session session;
extern MPI_Op user_op;
extern int keyval, type_keyval, win_keyval, out;
extern int ints[], ones[], bad_ints[], out_ints[], ranges[][3], bad_ranges[][3], distribs[],
	dargs[];
extern MPI_Offset out_offsets[];
extern MPI_Count ints_c[], ones_c[], bad_ints_c[], out_counts[];
extern MPI_Aint at_in[], at_out[];
extern MPI_Aint ints_a[], ones_a[], bad_ints_a[], out_aints[];
extern char buffer[], text[], too_long[];

void op_fn(void *in, void *inout, int *len, MPI_Datatype *datatype);
void op_fn_c(void *in, void *inout, MPI_Count *len, MPI_Datatype *datatype);
void handler_fn(MPI_Comm *on, int *code, ...);
int extent_fn(MPI_Datatype datatype, MPI_Aint *extent, void *extra_state);
int query_fn(void *extra_state, MPI_Status *of);
int free_fn(void *extra_state);
int cancel_fn(void *extra_state, int complete);

#endif
