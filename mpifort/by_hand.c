/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Bindings that cannot be generated from the prototypes: functions with procedures, attributes,
 * strings and special addresses as arguments. Functions that MPI-3 removed are in removed.c.
 */
#include "mpifort.h"

#include <stdlib.h>
#include <string.h>

/* Declare a binding, which no header does, and begin it. */
#define BINDING(name, ...)                                                                         \
	MPIFORT_ENTRY void MPIFORT_NAME(name)(__VA_ARGS__);                                        \
	MPIFORT_ENTRY void MPIFORT_NAME(name)(__VA_ARGS__)
#define FUNCTION(type, name, ...)                                                                  \
	MPIFORT_ENTRY type MPIFORT_NAME(name)(__VA_ARGS__);                                        \
	MPIFORT_ENTRY type MPIFORT_NAME(name)(__VA_ARGS__)

/* ---- starting, time, addresses --------------------------------------------------------------- */

BINDING(mpi_init_, int *ierror)
{
	mpifort_done(ierror, MPIFORT_CALL(Init)(NULL, NULL));
}
MPIFORT_SAME(mpi_init_f08_, mpi_init_);

BINDING(mpi_init_thread_, int *required, int *provided, int *ierror)
{
	mpifort_done(ierror, MPIFORT_CALL(Init_thread)(NULL, NULL, *required, provided));
}
MPIFORT_SAME(mpi_init_thread_f08_, mpi_init_thread_);

BINDING(mpi_pcontrol_, int *level)
{
	MPIFORT_CALL(Pcontrol)(*level);
}
MPIFORT_SAME(mpi_pcontrol_f08_, mpi_pcontrol_);

FUNCTION(double, mpi_wtime_, void)
{
	return MPIFORT_CALL(Wtime)();
}
MPIFORT_SAME(mpi_wtime_f08_, mpi_wtime_);

FUNCTION(double, mpi_wtick_, void)
{
	return MPIFORT_CALL(Wtick)();
}
MPIFORT_SAME(mpi_wtick_f08_, mpi_wtick_);

FUNCTION(MPI_Aint, mpi_aint_add_, MPI_Aint *base, MPI_Aint *disp)
{
	return MPIFORT_CALL(Aint_add)(*base, *disp);
}
MPIFORT_SAME(mpi_aint_add_f08_, mpi_aint_add_);

FUNCTION(MPI_Aint, mpi_aint_diff_, MPI_Aint *addr1, MPI_Aint *addr2)
{
	return MPIFORT_CALL(Aint_diff)(*addr1, *addr2);
}
MPIFORT_SAME(mpi_aint_diff_f08_, mpi_aint_diff_);

/* Programs call it to make the compiler believe that a buffer may have changed. */
BINDING(mpi_f_sync_reg_, void *buf)
{
	(void)buf;
}
BINDING(mpi_f_sync_reg_f08ts_, CFI_cdesc_t *buf)
{
	(void)buf;
}

BINDING(mpi_status_f2f08_, int *f_status, int *f08_status, int *ierror)
{
	if (mpifort_is_sentinel(f_status) || mpifort_is_sentinel(f08_status)) {
		mpifort_done(ierror, mpifort_raise(MPI_ERR_ARG));
		return;
	}
	memcpy(f08_status, f_status, sizeof(MPI_Status));
	mpifort_done(ierror, MPI_SUCCESS);
}
MPIFORT_SAME(mpi_status_f2f08_f08_, mpi_status_f2f08_);
MPIFORT_SAME(mpi_status_f082f_, mpi_status_f2f08_);
MPIFORT_SAME(mpi_status_f082f_f08_, mpi_status_f2f08_);

/* ---- functions of the program ---------------------------------------------------------------- */

/* Outputs are set only if C made something. */
#define GIVE(out, what) (rc == MPI_SUCCESS ? (void)(*(out) = (what)) : (void)0)

BINDING(mpi_op_create_, mpifort_function *user_fn, int *commute, int *op, int *ierror)
{
	MPI_User_function *function = mpifort_op_of(user_fn);
	MPI_Op made = MPI_OP_NULL;
	int rc = MPI_ERR_OTHER;

	if (function)
		rc = MPIFORT_CALL(Op_create)(function, *commute != 0, &made);
	GIVE(op, mpifort_of_op(made));
	mpifort_done(ierror, rc);
}
MPIFORT_SAME(mpi_op_create_f08_, mpi_op_create_);

BINDING(mpi_op_create_c_f08_, mpifort_function *user_fn, int *commute, int *op, int *ierror)
{
	MPI_User_function *function = mpifort_op_of(user_fn);
	MPI_Op made = MPI_OP_NULL;
	int rc = MPI_ERR_OTHER;

	if (function) /* a thunk passes the length on unchanged */
		rc = MPIFORT_CALL(Op_create_c)((MPI_User_function_c *)(mpifort_function *)function,
					       *commute != 0, &made);
	GIVE(op, mpifort_of_op(made));
	mpifort_done(ierror, rc);
}

/* Error handlers of all kinds of objects use the same thunks. */
#define CREATE_ERRHANDLER(lower, Kind, KIND)                                                       \
	BINDING(mpi_##lower##_create_errhandler_, mpifort_function *errhandler_fn,                 \
		int *errhandler, int *ierror)                                                      \
	{                                                                                          \
		mpifort_function *function =                                                       \
			(mpifort_function *)mpifort_errhandler_of(errhandler_fn, MPIFORT_##KIND);  \
		MPI_Errhandler made = MPI_ERRHANDLER_NULL;                                         \
		int rc = MPI_ERR_OTHER;                                                            \
                                                                                                   \
		if (function)                                                                      \
			rc = MPIFORT_CALL(Kind##_create_errhandler)(                               \
				(MPI_##Kind##_errhandler_function *)function, &made);              \
		GIVE(errhandler, mpifort_of_errhandler(made));                                     \
		mpifort_done(ierror, rc);                                                          \
	}                                                                                          \
	MPIFORT_SAME(mpi_##lower##_create_errhandler_f08_, mpi_##lower##_create_errhandler_)
CREATE_ERRHANDLER(comm, Comm, COMM);
CREATE_ERRHANDLER(win, Win, WIN);
CREATE_ERRHANDLER(file, File, FILE);
CREATE_ERRHANDLER(session, Session, SESSION);
MPIFORT_SAME(mpi_errhandler_create_, mpi_comm_create_errhandler_);

BINDING(mpi_grequest_start_, mpifort_function *query_fn, mpifort_function *free_fn,
	mpifort_function *cancel_fn, MPI_Aint *extra_state, int *request, int *ierror)
{
	struct mpifort_grequest *g = malloc(sizeof(*g));
	MPI_Request made = MPI_REQUEST_NULL;
	int rc;

	if (!g) {
		mpifort_done(ierror, mpifort_raise(MPI_ERR_NO_MEM));
		return;
	}
	*g = (struct mpifort_grequest){ query_fn, free_fn, cancel_fn, extra_state };
	rc = MPIFORT_CALL(Grequest_start)(mpifort_query, mpifort_free, mpifort_cancel, g, &made);
	if (rc != MPI_SUCCESS)
		free(g);
	GIVE(request, mpifort_of_request(made));
	mpifort_done(ierror, rc);
}
MPIFORT_SAME(mpi_grequest_start_f08_, mpi_grequest_start_);

/* A data representation is never freed. */
static struct mpifort_datarep *new_datarep(mpifort_function *read, mpifort_function *write,
					   mpifort_function *extent, MPI_Aint *extra)
{
	struct mpifort_datarep *d = malloc(sizeof(*d));

	if (d)
		*d = (struct mpifort_datarep){ read, write, extent, extra };
	else
		mpifort_raise(MPI_ERR_NO_MEM);
	return d;
}

BINDING(mpi_register_datarep_, char *datarep, mpifort_function *read_conversion_fn,
	mpifort_function *write_conversion_fn, mpifort_function *dtype_file_extent_fn,
	MPI_Aint *extra_state, int *ierror, size_t datarep_len)
{
	struct mpifort_datarep *d = new_datarep(read_conversion_fn, write_conversion_fn,
						dtype_file_extent_fn, extra_state);
	int rc = d ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	struct mpifort_string name;

	mpifort_string_in(&name, datarep, datarep_len, false, &rc);
	if (rc == MPI_SUCCESS)
		rc = MPIFORT_CALL(Register_datarep)(
			name.at,
			mpifort_is_null_conversion(read_conversion_fn) ? MPI_CONVERSION_FN_NULL
								       : mpifort_read,
			mpifort_is_null_conversion(write_conversion_fn) ? MPI_CONVERSION_FN_NULL
									: mpifort_write,
			mpifort_extent, d);
	if (rc != MPI_SUCCESS)
		free(d);
	mpifort_string_end(&name);
	mpifort_done(ierror, rc);
}
MPIFORT_SAME(mpi_register_datarep_f08_, mpi_register_datarep_);

BINDING(mpi_register_datarep_c_f08_, char *datarep, mpifort_function *read_conversion_fn,
	mpifort_function *write_conversion_fn, mpifort_function *dtype_file_extent_fn,
	MPI_Aint *extra_state, int *ierror, size_t datarep_len)
{
	struct mpifort_datarep *d = new_datarep(read_conversion_fn, write_conversion_fn,
						dtype_file_extent_fn, extra_state);
	int rc = d ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	struct mpifort_string name;

	mpifort_string_in(&name, datarep, datarep_len, false, &rc);
	if (rc == MPI_SUCCESS)
		rc = MPIFORT_CALL(Register_datarep_c)(
			name.at,
			mpifort_is_null_conversion(read_conversion_fn) ? MPI_CONVERSION_FN_NULL_C
								       : mpifort_read_c,
			mpifort_is_null_conversion(write_conversion_fn) ? MPI_CONVERSION_FN_NULL_C
									: mpifort_write_c,
			mpifort_extent, d);
	if (rc != MPI_SUCCESS)
		free(d);
	mpifort_string_end(&name);
	mpifort_done(ierror, rc);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* It is never freed: attributes that need it may outlive the keyval. */
static struct mpifort_keyval *new_keyval(mpifort_function *copy, mpifort_function *delete, bool old)
{
	struct mpifort_keyval *k = malloc(sizeof(*k));

	if (k)
		*k = (struct mpifort_keyval){ .copy = copy, .delete = delete, .old = old };
	else
		mpifort_raise(MPI_ERR_NO_MEM);
	return k;
}

#define ATTRIBUTES(lower, Kind, handle)                                                            \
	BINDING(mpi_##lower##_create_keyval_, mpifort_function *copy_fn,                           \
		mpifort_function *delete_fn, int *keyval, MPI_Aint *extra_state, int *ierror)      \
	{                                                                                          \
		struct mpifort_keyval *k = new_keyval(copy_fn, delete_fn, false);                  \
		int rc = MPI_ERR_NO_MEM;                                                           \
                                                                                                   \
		if (k) {                                                                           \
			k->extra.wide = *extra_state;                                              \
			rc = MPIFORT_CALL(Kind##_create_keyval)(                                   \
				mpifort_##lower##_copy, mpifort_##lower##_delete, keyval, k);      \
		}                                                                                  \
		if (rc != MPI_SUCCESS)                                                             \
			free(k);                                                                   \
		mpifort_done(ierror, rc);                                                          \
	}                                                                                          \
	MPIFORT_SAME(mpi_##lower##_create_keyval_f08_, mpi_##lower##_create_keyval_);              \
                                                                                                   \
	BINDING(mpi_##lower##_set_attr_, int *lower, int *keyval, MPI_Aint *attribute_val,         \
		int *ierror)                                                                       \
	{                                                                                          \
		struct mpifort_value *v = mpifort_value_new(*attribute_val, false);                \
		int rc = MPI_ERR_NO_MEM;                                                           \
                                                                                                   \
		if (v)                                                                             \
			rc = MPIFORT_CALL(Kind##_set_attr)(mpifort_##handle(*lower), *keyval, v);  \
		if (rc != MPI_SUCCESS)                                                             \
			mpifort_value_free(v);                                                     \
		mpifort_done(ierror, rc);                                                          \
	}                                                                                          \
	MPIFORT_SAME(mpi_##lower##_set_attr_f08_, mpi_##lower##_set_attr_);                        \
                                                                                                   \
	BINDING(mpi_##lower##_get_attr_, int *lower, int *keyval, MPI_Aint *attribute_val,         \
		int *flag, int *ierror)                                                            \
	{                                                                                          \
		void *found;                                                                       \
		int there = 0;                                                                     \
		int rc = MPIFORT_CALL(Kind##_get_attr)(mpifort_##handle(*lower), *keyval, &found,  \
						       &there);                                    \
                                                                                                   \
		GIVE(flag, there != 0);                                                            \
		if (there)                                                                         \
			GIVE(attribute_val, mpifort_value_of(*keyval, found));                     \
		mpifort_done(ierror, rc);                                                          \
	}                                                                                          \
	MPIFORT_SAME(mpi_##lower##_get_attr_f08_, mpi_##lower##_get_attr_)
ATTRIBUTES(comm, Comm, comm);
ATTRIBUTES(type, Type, datatype);
ATTRIBUTES(win, Win, win);

/* The attributes of MPI-1 are INTEGERs of default kind. */
BINDING(mpi_keyval_create_, mpifort_function *copy_fn, mpifort_function *delete_fn, int *keyval,
	int *extra_state, int *ierror)
{
	struct mpifort_keyval *k = new_keyval(copy_fn, delete_fn, true);
	int rc = MPI_ERR_NO_MEM;

	if (k) {
		k->extra.narrow = *extra_state;
		rc = MPIFORT_CALL(Keyval_create)(mpifort_comm_copy, mpifort_comm_delete, keyval, k);
	}
	if (rc != MPI_SUCCESS)
		free(k);
	mpifort_done(ierror, rc);
}

BINDING(mpi_attr_put_, int *comm, int *keyval, int *attribute_val, int *ierror)
{
	struct mpifort_value *v = mpifort_value_new(*attribute_val, true);
	int rc = MPI_ERR_NO_MEM;

	if (v)
		rc = MPIFORT_CALL(Attr_put)(mpifort_comm(*comm), *keyval, v);
	if (rc != MPI_SUCCESS)
		mpifort_value_free(v);
	mpifort_done(ierror, rc);
}

BINDING(mpi_attr_get_, int *comm, int *keyval, int *attribute_val, int *flag, int *ierror)
{
	void *found;
	int there = 0, rc = MPIFORT_CALL(Attr_get)(mpifort_comm(*comm), *keyval, &found, &there);

	GIVE(flag, there != 0);
	if (there)
		GIVE(attribute_val, (int)mpifort_value_of(*keyval, found));
	mpifort_done(ierror, rc);
}

/* ---- strings with a length of their own ------------------------------------------------------ */

BINDING(mpi_info_create_env_, int *info, int *ierror)
{
	MPI_Info made = MPI_INFO_NULL;
	int rc = MPIFORT_CALL(Info_create_env)(0, NULL, &made);

	GIVE(info, mpifort_of_info(made));
	mpifort_done(ierror, rc);
}
MPIFORT_SAME(mpi_info_create_env_f08_, mpi_info_create_env_);

/* In C, lengths count the terminating zero; in Fortran there is none. */
BINDING(mpi_info_get_string_, int *info, char *key, int *buflen, char *value, int *flag,
	int *ierror, size_t key_len, size_t value_len)
{
	struct mpifort_string k, v;
	int length = *buflen > 0 ? *buflen + 1 : *buflen, there = 0, rc = MPI_SUCCESS;

	mpifort_string_in(&k, key, key_len, true, &rc);
	mpifort_string_room(&v, length > 0 ? (size_t)length : 1, &rc);
	if (rc == MPI_SUCCESS)
		rc = MPIFORT_CALL(Info_get_string)(mpifort_info(*info), k.at, &length, v.at,
						   &there);
	GIVE(flag, there != 0);
	if (rc == MPI_SUCCESS && there) {
		if (*buflen > 0)
			mpifort_string_out(&v, value, value_len);
		*buflen = length - 1;
	}
	mpifort_string_end(&v);
	mpifort_string_end(&k);
	mpifort_done(ierror, rc);
}
MPIFORT_SAME(mpi_info_get_string_f08_, mpi_info_get_string_);

BINDING(mpi_session_get_nth_pset_, int *session, int *info, int *n, int *pset_len, char *pset_name,
	int *ierror, size_t pset_name_len)
{
	int length = *pset_len > 0 ? *pset_len + 1 : *pset_len, rc = MPI_SUCCESS;
	struct mpifort_string name;

	mpifort_string_room(&name, length > 0 ? (size_t)length : 1, &rc);
	if (rc == MPI_SUCCESS)
		rc = MPIFORT_CALL(Session_get_nth_pset)(mpifort_session(*session),
							mpifort_info(*info), *n, &length, name.at);
	if (rc == MPI_SUCCESS) {
		if (*pset_len > 0)
			mpifort_string_out(&name, pset_name, pset_name_len);
		*pset_len = length - 1;
	}
	mpifort_string_end(&name);
	mpifort_done(ierror, rc);
}
MPIFORT_SAME(mpi_session_get_nth_pset_f08_, mpi_session_get_nth_pset_);

/* ---- processes ------------------------------------------------------------------------------- */

static bool is_argv_null(const char *argv)
{
	return argv == mpifort_strings_.argv_null || argv == mpifort_strings_.argvs_null;
}

BINDING(mpi_comm_spawn_, char *command, char *argv, int *maxprocs, int *info, int *root, int *comm,
	int *intercomm, int *array_of_errcodes, int *ierror, size_t command_len, size_t argv_len)
{
	MPI_Comm made = MPI_COMM_NULL;
	struct mpifort_string name;
	struct mpifort_argv args = { MPI_ARGV_NULL };
	int rc = MPI_SUCCESS, rank = MPI_PROC_NULL;

	/* the program to start is significant at the root only */
	if (MPIFORT_CALL(Comm_rank)(mpifort_comm(*comm), &rank) == MPI_SUCCESS && rank != *root)
		command_len = 0;
	mpifort_string_in(&name, command, command_len, true, &rc);
	if (command_len > 0 && !is_argv_null(argv))
		mpifort_argv_in(&args, argv, argv_len, -1, 1, &rc);
	if (rc == MPI_SUCCESS)
		rc = MPIFORT_CALL(Comm_spawn)(name.at, args.at, *maxprocs, mpifort_info(*info),
					      *root, mpifort_comm(*comm), &made,
					      mpifort_buffer(array_of_errcodes));
	GIVE(intercomm, mpifort_of_comm(made));
	mpifort_argv_end(&args);
	mpifort_string_end(&name);
	mpifort_done(ierror, rc);
}
MPIFORT_SAME(mpi_comm_spawn_f08_, mpi_comm_spawn_);

/* The arguments of MPI_Comm_spawn_multiple at its root, in C. */
struct programs {
	int n;
	struct mpifort_argv commands;
	struct mpifort_argv *args; /* one for each program, then NULL */
	char ***argvs;
	MPI_Info *infos;
};

static void programs_in(struct programs *p, char *commands, size_t commands_len, char *argvs,
			size_t argvs_len, const int *infos, int *rc)
{
	size_t n = (size_t)p->n;

	mpifort_argv_in(&p->commands, commands, commands_len, p->n, 1, rc);
	p->args = calloc(n + 1, sizeof(*p->args));
	p->argvs = calloc(n + 1, sizeof(*p->argvs));
	p->infos = calloc(n + 1, sizeof(*p->infos));
	if (!p->args || !p->argvs || !p->infos) {
		if (*rc == MPI_SUCCESS)
			*rc = mpifort_raise(MPI_ERR_NO_MEM);
		return;
	}
	for (int i = 0; *rc == MPI_SUCCESS && i < p->n; i++) {
		p->infos[i] = mpifort_info(infos[i]);
		if (is_argv_null(argvs))
			continue;
		mpifort_argv_in(&p->args[i], argvs + (size_t)i * argvs_len, argvs_len, -1, p->n,
				rc);
		p->argvs[i] = p->args[i].at;
	}
}

static void programs_end(struct programs *p)
{
	for (int i = 0; p->args && i < p->n; i++)
		mpifort_argv_end(&p->args[i]);
	free(p->infos);
	free(p->argvs);
	free(p->args);
	mpifort_argv_end(&p->commands);
}

BINDING(mpi_comm_spawn_multiple_, int *count, char *array_of_commands, char *array_of_argv,
	int *array_of_maxprocs, int *array_of_info, int *root, int *comm, int *intercomm,
	int *array_of_errcodes, int *ierror, size_t commands_len, size_t argv_len)
{
	struct programs p = { 0 };
	MPI_Comm made = MPI_COMM_NULL;
	int rc = MPI_SUCCESS, rank = MPI_PROC_NULL;

	MPIFORT_CALL(Comm_rank)(mpifort_comm(*comm), &rank);
	if (rank == *root && *count > 0)
		p.n = *count;
	programs_in(&p, array_of_commands, commands_len, array_of_argv, argv_len, array_of_info,
		    &rc);
	if (rc == MPI_SUCCESS)
		rc = MPIFORT_CALL(Comm_spawn_multiple)(
			*count, p.commands.at,
			is_argv_null(array_of_argv) ? MPI_ARGVS_NULL : p.argvs, array_of_maxprocs,
			p.infos, *root, mpifort_comm(*comm), &made,
			mpifort_buffer(array_of_errcodes));
	GIVE(intercomm, mpifort_of_comm(made));
	programs_end(&p);
	mpifort_done(ierror, rc);
}
MPIFORT_SAME(mpi_comm_spawn_multiple_f08_, mpi_comm_spawn_multiple_);
