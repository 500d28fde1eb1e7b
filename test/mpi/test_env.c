/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI's inquiries of itself and its surroundings, in a job of one process: life from before
 * MPI_Init to after MPI_Finalize, environment, info and errors, and functions that were removed.
 * test_handles.c has statuses and the binary interface.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OK(call) assert_int_equal(call, MPI_SUCCESS)

/* ---- before MPI_Init ------------------------------------------------------------------------- */

static void versions_can_be_asked_before_init(void **state)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int major = -1, minor = -1, len = -1;

	(void)state;
	OK(MPI_Get_version(&major, &minor));
	assert_int_equal(major, MPI_VERSION);
	assert_int_equal(minor, MPI_SUBVERSION);
	OK(MPI_Abi_get_version(&major, &minor));
	assert_int_equal(major, 1);
	assert_int_equal(minor, 0);
	OK(MPI_Get_library_version(text, &len));
	assert_int_equal(len, strlen(text));
	assert_non_null(strstr(text, "Postern"));
}

static void info_and_handlers_can_be_made_before_init(void **state)
{
	MPI_Info info = MPI_INFO_NULL;
	char value[8];
	int flag = 0, len = sizeof(value);

	(void)state;
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "key", "value"));
	OK(MPI_Info_get_string(info, "key", &len, value, &flag));
	assert_true(flag);
	assert_string_equal(value, "value");
	OK(MPI_Info_free(&info));
	assert_ptr_equal(info, MPI_INFO_NULL);
}

static MPI_Info kept_info = MPI_INFO_NULL;
static MPI_Errhandler kept_handler = MPI_ERRHANDLER_NULL;

static void ignore_an_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
}

/* Before MPI_Init; at the end the same is there. */
static void info_and_handlers_are_kept(void **state)
{
	(void)state;
	OK(MPI_Info_create(&kept_info));
	OK(MPI_Info_set(kept_info, "key", "kept"));
	OK(MPI_Comm_create_errhandler(ignore_an_error, &kept_handler));
}

static void info_and_handlers_outlive_finalize(void **state)
{
	char value[8] = "";
	MPI_Info copy = MPI_INFO_NULL;
	int flag = 0, len = sizeof(value);

	(void)state;
	OK(MPI_Info_dup(kept_info, &copy));
	OK(MPI_Info_free(&kept_info));
	OK(MPI_Info_get_string(copy, "key", &len, value, &flag));
	assert_true(flag);
	assert_string_equal(value, "kept");
	OK(MPI_Info_free(&copy));
	OK(MPI_Errhandler_free(&kept_handler));
}

static void *make_and_free_infos(void *good)
{
	for (int i = 0; i < 2000; i++) {
		MPI_Info info;
		int keys = 0;

		MPI_Info_create(&info);
		MPI_Info_set(info, "key", "value");
		MPI_Info_get_nkeys(info, &keys);
		MPI_Info_free(&info);
		*(int *)good += keys;
	}
	return NULL;
}

/* Before, while and after MPI runs. */
static void info_objects_are_for_all_threads_at_any_time(void **state)
{
	pthread_t thread[4];
	int good[4] = { 0 };

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, make_and_free_infos, &good[i]),
				 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(good[i], 2000);
	}
}

static void nothing_has_begun_or_ended_before_init(void **state)
{
	int flag = -1;

	(void)state;
	OK(MPI_Initialized(&flag));
	assert_int_equal(flag, 0);
	OK(MPI_Finalized(&flag));
	assert_int_equal(flag, 0);
}

/* The status of a child that runs `fn`, and the last line it wrote to stderr. */
static int in_child(void (*fn)(void), char line[512])
{
	int fds[2], status = -1;
	ssize_t n, have = 0;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	close(fds[1]);
	while ((n = read(fds[0], line + have, (size_t)(511 - have))) > 0)
		have += n;
	line[have] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void call_too_early(void)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

static void set_a_null_key(void)
{
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, NULL, "value");
}

static void other_calls_before_init_end_the_process(void **state)
{
	char line[512];
	int status;

	(void)state;
	status = in_child(call_too_early, line);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	assert_non_null(strstr(line, "MPI_Comm_rank was called before MPI_Init"));
}

static void errors_before_init_are_fatal(void **state)
{
	char line[512];
	int status;

	(void)state;
	status = in_child(set_a_null_key, line);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	assert_non_null(strstr(line, "MPI_Info_set: key is a null pointer"));
}

/* ---- sessions, before MPI_Init --------------------------------------------------------------- */

static int session_error;

static void note_an_error_of_a_session(MPI_Session *session, int *code, ...)
{
	session_error = *session == MPI_SESSION_NULL ? *code : -1;
}

static void errors_of_session_init_go_to_the_handler_that_is_given(void **state)
{
	MPI_Errhandler of_sessions = MPI_ERRHANDLER_NULL;
	MPI_Session session = MPI_SESSION_NULL;

	(void)state;
	session_error = 0;
	OK(MPI_Session_create_errhandler(note_an_error_of_a_session, &of_sessions));
	assert_int_equal(MPI_Session_init(MPI_INFO_NULL, of_sessions, NULL), MPI_ERR_ARG);
	assert_int_equal(session_error, MPI_ERR_ARG);
	assert_int_equal(MPI_Session_init((MPI_Info)MPI_INT, MPI_ERRORS_RETURN, &session),
			 MPI_ERR_INFO);
	assert_ptr_equal(session, MPI_SESSION_NULL);
	OK(MPI_Errhandler_free(&of_sessions));
}

static void begin_a_session_nowhere(void)
{
	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, NULL);
}

static void ask_a_session_that_is_none(void)
{
	int n;

	MPI_Session_get_num_psets(MPI_SESSION_NULL, MPI_INFO_NULL, &n);
}

static void use_the_world_in_a_session(void)
{
	MPI_Session session;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void sessions_that_are_wrong_end_the_process(void **state)
{
	char line[512];
	int status;

	(void)state;
	status = in_child(begin_a_session_nowhere, line);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	assert_non_null(strstr(line, "MPI_Session_init: session is a null pointer"));
	status = in_child(ask_a_session_that_is_none, line);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	assert_non_null(strstr(line, "MPI_Session_get_num_psets was called "));
	status = in_child(use_the_world_in_a_session, line);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	assert_non_null(strstr(line, "MPI_Barrier: comm"));
}

static void a_session_opens_the_library_and_closes_it(void **state)
{
	MPI_Session session = MPI_SESSION_NULL;
	MPI_Datatype type;
	int was[2], is[2], n = 0;

	(void)state;
	OK(MPI_Initialized(&was[0]));
	OK(MPI_Finalized(&was[1]));
	OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
	OK(MPI_Type_contiguous(3, MPI_INT, &type));
	OK(MPI_Type_free(&type));
	OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n));
	assert_true(n >= 3);
	OK(MPI_Session_finalize(&session));
	assert_ptr_equal(session, MPI_SESSION_NULL);
	OK(MPI_Initialized(&is[0]));
	OK(MPI_Finalized(&is[1]));
	assert_memory_equal(is, was, sizeof(is));
}

/* ---- while it runs --------------------------------------------------------------------------- */

static void *not_the_main_thread(void *answer)
{
	MPI_Is_thread_main(answer);
	return NULL;
}

static void the_thread_that_began_is_the_main_one(void **state)
{
	pthread_t thread;
	int flag = -1, other = -1, level = -1;

	(void)state;
	OK(MPI_Query_thread(&level));
	assert_int_equal(level, MPI_THREAD_MULTIPLE);
	OK(MPI_Is_thread_main(&flag));
	assert_int_equal(flag, 1);
	pthread_create(&thread, NULL, not_the_main_thread, &other);
	pthread_join(thread, NULL);
	assert_int_equal(other, 0);
	OK(MPI_Initialized(&flag));
	assert_int_equal(flag, 1);
}

static void a_second_init_is_an_error(void **state)
{
	int class = -1, rc;

	(void)state;
	rc = MPI_Init(NULL, NULL);
	OK(MPI_Error_class(rc, &class));
	assert_int_equal(class, MPI_ERR_OTHER);
}

static void time_goes_forward(void **state)
{
	double start = MPI_Wtime(), now = start;

	(void)state;
	assert_true(MPI_Wtick() > 0 && MPI_Wtick() < 1e-3);
	while (now == start)
		now = MPI_Wtime();
	assert_true(now > start);
}

static void the_processor_has_a_name(void **state)
{
	char name[MPI_MAX_PROCESSOR_NAME], host[MPI_MAX_PROCESSOR_NAME] = "";
	int len = -1;

	(void)state;
	OK(MPI_Get_processor_name(name, &len));
	gethostname(host, sizeof(host) - 1);
	assert_string_equal(name, host);
	assert_int_equal(len, strlen(host));
}

static void memory_is_aligned_and_writable(void **state)
{
	static const MPI_Aint sizes[] = { 0, 1, 100, 4096, 1 << 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *p = NULL;

		OK(MPI_Alloc_mem(sizes[i], MPI_INFO_NULL, &p));
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 64, 0);
		memset(p, 1, (size_t)sizes[i]);
		OK(MPI_Free_mem(p));
	}
}

static void memory_is_aligned_as_asked_for(void **state)
{
	static const struct {
		const char *value;
		uintptr_t aligned;
	} wanted[] = { { "4096", 4096 }, { "1048576", 1048576 }, { "8", 64 },
		       { "100", 64 },    { "much", 64 },         { "99999999999999999999", 64 } };

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		MPI_Info info;
		char *p = NULL;

		OK(MPI_Info_create(&info));
		OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", wanted[i].value));
		OK(MPI_Alloc_mem(100, info, &p));
		OK(MPI_Info_free(&info));
		assert_int_equal((uintptr_t)p % wanted[i].aligned, 0);
		OK(MPI_Free_mem(p));
	}
}

static void addresses_are_numbers(void **state)
{
	double x[4] = { 0 };
	MPI_Aint a, b;

	(void)state;
	OK(MPI_Get_address(&x[0], &a));
	OK(MPI_Get_address(&x[3], &b));
	assert_ptr_equal((void *)a, &x[0]);
	assert_int_equal(MPI_Aint_diff(b, a), 3 * sizeof(double));
	assert_int_equal(MPI_Aint_add(a, 3 * sizeof(double)), b);
}

static void hardware_is_described(void **state)
{
	MPI_Info info = MPI_INFO_NULL;
	int keys = 0;

	(void)state;
	OK(MPI_Get_hw_resource_info(&info));
	OK(MPI_Info_get_nkeys(info, &keys));
	assert_true(keys > 0);
	for (int i = 0; i < keys; i++) {
		char key[MPI_MAX_INFO_KEY], value[16];
		int flag = 0, len = sizeof(value);

		OK(MPI_Info_get_nthkey(info, i, key));
		assert_non_null(strstr(key, "://"));
		OK(MPI_Info_get_string(info, key, &len, value, &flag));
		assert_true(flag && (!strcmp(value, "true") || !strcmp(value, "false")));
	}
	OK(MPI_Info_free(&info));
}

static void nobody_started_this_process_with_spawn(void **state)
{
	MPI_Comm parent = MPI_COMM_SELF;

	(void)state;
	OK(MPI_Comm_get_parent(&parent));
	assert_ptr_equal(parent, MPI_COMM_NULL);
}

static void hints_for_profilers_are_taken(void **state)
{
	(void)state;
	OK(MPI_Pcontrol(0));
	OK(MPI_Pcontrol(2, "anything", 1.0));
}

/* ---- info, errors ---------------------------------------------------------------------------- */

static void info_keys_can_be_measured_and_deleted(void **state)
{
	MPI_Info info;
	int flag = -1, len = -1, class = -1;

	(void)state;
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "key", "value"));
	OK(MPI_Info_get_valuelen(info, "key", &len, &flag));
	assert_true(flag && len == 5);
	OK(MPI_Info_delete(info, "key"));
	OK(MPI_Info_get_valuelen(info, "key", &len, &flag));
	assert_false(flag);
	OK(MPI_Error_class(MPI_Info_delete(info, "key"), &class));
	assert_int_equal(class, MPI_ERR_INFO_NOKEY);
	OK(MPI_Info_free(&info));
}

static void the_environment_is_told_of_other_arguments(void **state)
{
	char program[] = "program", first[] = "first", *argv[] = { program, first, NULL };
	char value[16] = "";
	MPI_Info info = MPI_INFO_NULL;
	int flag = 0, len = sizeof(value);

	(void)state;
	OK(MPI_Info_create_env(2, argv, &info));
	OK(MPI_Info_get_string(info, "command", &len, value, &flag));
	assert_true(flag);
	assert_string_equal(value, "program");
	OK(MPI_Info_free(&info));
}

static void errors_of_the_programs_own_come_and_go(void **state)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int class = -1, code = -1, of = -1, len = -1;

	(void)state;
	OK(MPI_Add_error_class(&class));
	assert_true(class > MPI_ERR_LASTCODE);
	OK(MPI_Add_error_code(class, &code));
	OK(MPI_Add_error_string(code, "of our own"));
	OK(MPI_Error_class(code, &of));
	assert_int_equal(of, class);
	OK(MPI_Error_string(code, text, &len));
	assert_string_equal(text, "of our own");
	assert_int_equal(len, 10);
	OK(MPI_Remove_error_string(code));
	OK(MPI_Error_string(code, text, &len));
	assert_int_equal(len, 0);
	OK(MPI_Error_class(MPI_Remove_error_class(class), &of)); /* it has a code */
	assert_int_equal(of, MPI_ERR_ARG);
	OK(MPI_Remove_error_code(code));
	OK(MPI_Remove_error_class(class));
	OK(MPI_Error_class(MPI_Add_error_code(class, &code), &of));
	assert_int_equal(of, MPI_ERR_ARG);
}

static void ignore_an_error_of_a_file(MPI_File *file, int *code, ...)
{
	(void)file;
	(void)code;
}

static void ignore_an_error_of_a_session(MPI_Session *session, int *code, ...)
{
	(void)session;
	(void)code;
}

/* They are no good for communicators. */
static void handlers_of_files_and_sessions_can_be_made(void **state)
{
	MPI_Errhandler made[2], is = MPI_ERRHANDLER_NULL;
	int class = -1;

	(void)state;
	OK(MPI_File_create_errhandler(ignore_an_error_of_a_file, &made[0]));
	OK(MPI_Session_create_errhandler(ignore_an_error_of_a_session, &made[1]));
	for (int i = 0; i < 2; i++) {
		OK(MPI_Error_class(MPI_Comm_set_errhandler(MPI_COMM_WORLD, made[i]), &class));
		assert_int_equal(class, MPI_ERR_ARG);
		OK(MPI_Errhandler_free(&made[i]));
		assert_ptr_equal(made[i], MPI_ERRHANDLER_NULL);
	}
	OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &is));
	assert_ptr_equal(is, MPI_ERRORS_RETURN);
	OK(MPI_Errhandler_free(&is));
}

/* ---- what only libpostern-mpi.so has --------------------------------------------------------- */

static void removed_functions_do_what_they_did(void **state)
{
	MPI_Datatype row, type;
	MPI_Aint lb = -1, ub = -1, extent = -1, at;
	MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
	int x;

	(void)state;
	OK(MPI_Address(&x, &at));
	assert_ptr_equal((void *)at, &x);
	OK(MPI_Type_hvector(3, 1, 16, MPI_INT, &row));
	OK(MPI_Type_extent(row, &extent));
	assert_int_equal(extent, 36);
	OK(MPI_Type_struct(3, (int[]){ 1, 1, 1 }, (MPI_Aint[]){ -8, 0, 64 },
			   (MPI_Datatype[]){ MPI_LB, row, MPI_UB }, &type));
	OK(MPI_Type_lb(type, &lb));
	OK(MPI_Type_ub(type, &ub));
	OK(MPI_Type_extent(type, &extent));
	assert_int_equal(lb, -8);
	assert_int_equal(ub, 64);
	assert_int_equal(extent, 72);
	OK(MPI_Type_free(&type));
	OK(MPI_Type_hindexed(2, (int[]){ 1, 2 }, (MPI_Aint[]){ 0, 32 }, MPI_INT, &type));
	OK(MPI_Type_extent(type, &extent));
	assert_int_equal(extent, 40);
	OK(MPI_Type_free(&type));
	OK(MPI_Type_free(&row));
	OK(MPI_Errhandler_get(MPI_COMM_WORLD, &handler));
	assert_ptr_equal(handler, MPI_ERRORS_RETURN);
	OK(MPI_Errhandler_set(MPI_COMM_WORLD, handler));
}

static int handled;

static void handle(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	handled = *code;
}

static void old_error_handlers_are_called(void **state)
{
	MPI_Errhandler handler;
	MPI_Comm comm;
	int class = -1, rc;

	(void)state;
	OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
	OK(MPI_Errhandler_create(handle, &handler));
	OK(MPI_Errhandler_set(comm, handler));
	rc = MPI_Send(NULL, -1, MPI_INT, 0, 0, comm);
	OK(MPI_Error_class(rc, &class));
	assert_int_equal(class, MPI_ERR_COUNT);
	assert_int_equal(handled, rc);
	OK(MPI_Errhandler_free(&handler));
	OK(MPI_Comm_free(&comm));
}

/* A receive too short for its message, on a communicator of its own. */
static MPI_Request too_short(MPI_Comm comm, int *into)
{
	static int four[4];
	MPI_Request request;

	OK(MPI_Irecv(into, 1, MPI_INT, 0, 0, comm, &request));
	OK(MPI_Send(four, 4, MPI_INT, 0, 0, comm));
	return request;
}

static void a_failed_request_goes_to_the_handler_of_its_communicator(void **state)
{
	MPI_Errhandler handler;
	MPI_Request request;
	MPI_Status status;
	MPI_Comm comm;
	int class = -1, into, flag = 0, rc;

	(void)state;
	OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
	OK(MPI_Comm_create_errhandler(handle, &handler));
	OK(MPI_Comm_set_errhandler(comm, handler));
	OK(MPI_Errhandler_free(&handler));

	request = too_short(comm, &into);
	handled = 0;
	rc = MPI_Wait(&request, &status);
	OK(MPI_Error_class(rc, &class));
	assert_int_equal(class, MPI_ERR_TRUNCATE);
	assert_int_equal(handled, rc);
	assert_ptr_equal(request, MPI_REQUEST_NULL);

	request = too_short(comm, &into);
	handled = 0;
	rc = MPI_Waitall(1, &request, &status);
	assert_int_equal(rc, MPI_ERR_IN_STATUS);
	assert_int_equal(handled, MPI_ERR_IN_STATUS);
	OK(MPI_Error_class(status.MPI_ERROR, &class));
	assert_int_equal(class, MPI_ERR_TRUNCATE);

	request = too_short(comm, &into);
	handled = 0;
	do
		rc = MPI_Test(&request, &flag, &status);
	while (!rc && !flag);
	assert_int_equal(handled, rc);

	/* an error of another kind is not the communicator's */
	handled = 0;
	rc = MPI_Waitall(-1, &request, &status);
	OK(MPI_Error_class(rc, &class));
	assert_int_equal(class, MPI_ERR_COUNT);
	assert_int_equal(handled, 0);
	OK(MPI_Comm_free(&comm));
}

static void fail_fatally(void)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Send(NULL, 0, MPI_INT, 0, -5, MPI_COMM_WORLD);
}

static void fatal_errors_name_rank_function_communicator_and_cause(void **state)
{
	char line[512];
	int status;

	(void)state;
	status = in_child(fail_fatally, line);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	assert_non_null(
		strstr(line, "rank 0 of 1: MPI_Send on MPI_COMM_WORLD: tag -5 is negative"));
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static void after_finalize_it_has_ended(void **state)
{
	MPI_Info info;
	int flag = -1, class = -1;

	(void)state;
	OK(MPI_Finalize());
	OK(MPI_Finalized(&flag));
	assert_int_equal(flag, 1);
	OK(MPI_Initialized(&flag));
	assert_int_equal(flag, 1);
	OK(MPI_Error_class(MPI_ERR_TAG, &class));
	assert_int_equal(class, MPI_ERR_TAG);
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "key", "value"));
	OK(MPI_Info_free(&info));
}

static void calls_after_finalize_end_the_process(void **state)
{
	char line[512];
	int status;

	(void)state;
	status = in_child(call_too_early, line);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	assert_non_null(strstr(line, "MPI_Comm_rank was called after MPI_Finalize"));
}

static int start(void **state)
{
	int provided = -1;

	(void)state;
	OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
	assert_int_equal(provided, MPI_THREAD_MULTIPLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_can_be_asked_before_init),
		cmocka_unit_test(info_and_handlers_can_be_made_before_init),
		cmocka_unit_test(info_objects_are_for_all_threads_at_any_time),
		cmocka_unit_test(nothing_has_begun_or_ended_before_init),
		cmocka_unit_test(other_calls_before_init_end_the_process),
		cmocka_unit_test(errors_before_init_are_fatal),
		cmocka_unit_test(errors_of_session_init_go_to_the_handler_that_is_given),
		cmocka_unit_test(sessions_that_are_wrong_end_the_process),
		cmocka_unit_test(a_session_opens_the_library_and_closes_it),
		cmocka_unit_test(info_and_handlers_are_kept),
		/* the order matters from here on: MPI begins once and ends once */
		cmocka_unit_test_setup(the_thread_that_began_is_the_main_one, start),
		cmocka_unit_test(a_second_init_is_an_error),
		cmocka_unit_test(info_objects_are_for_all_threads_at_any_time),
		cmocka_unit_test(time_goes_forward),
		cmocka_unit_test(the_processor_has_a_name),
		cmocka_unit_test(memory_is_aligned_and_writable),
		cmocka_unit_test(memory_is_aligned_as_asked_for),
		cmocka_unit_test(addresses_are_numbers),
		cmocka_unit_test(hardware_is_described),
		cmocka_unit_test(nobody_started_this_process_with_spawn),
		cmocka_unit_test(hints_for_profilers_are_taken),
		cmocka_unit_test(info_keys_can_be_measured_and_deleted),
		cmocka_unit_test(the_environment_is_told_of_other_arguments),
		cmocka_unit_test(errors_of_the_programs_own_come_and_go),
		cmocka_unit_test(handlers_of_files_and_sessions_can_be_made),
		cmocka_unit_test(errors_of_session_init_go_to_the_handler_that_is_given),
		cmocka_unit_test(removed_functions_do_what_they_did),
		cmocka_unit_test(old_error_handlers_are_called),
		cmocka_unit_test(a_failed_request_goes_to_the_handler_of_its_communicator),
		cmocka_unit_test(fatal_errors_name_rank_function_communicator_and_cause),
		cmocka_unit_test(after_finalize_it_has_ended),
		cmocka_unit_test(info_and_handlers_outlive_finalize),
		cmocka_unit_test(errors_of_session_init_go_to_the_handler_that_is_given),
		cmocka_unit_test(sessions_that_are_wrong_end_the_process),
		cmocka_unit_test(a_session_opens_the_library_and_closes_it),
		cmocka_unit_test(info_objects_are_for_all_threads_at_any_time),
		cmocka_unit_test(calls_after_finalize_end_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
