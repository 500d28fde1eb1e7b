/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How an error gets from the function that finds it to the user. That function returns
 * mpi_fail(class, text). The entry point passes the code to mpi_raise, which runs the error
 * handler. The text is kept per thread, until the thread's next failure.
 */
#ifndef MPI_SHIM_ERROR_H
#define MPI_SHIM_ERROR_H

#include <mpi.h>

#include "mpi_shim/core/handle.h"

struct mpi_comm;
struct mpi_errhandler;

/*
 * Keeps the text for the entry point of this thread and returns `code`, an error class or a
 * code of MPI_Add_error_code. The text is one line: the cause and, if possible, a remedy,
 * without a function name.
 */
int mpi_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Shows compilers and analysers that a failure is not MPI_SUCCESS, so that they follow the
 * right branch. */
#define mpi_fail(...) mpi_no_success(mpi_fail(__VA_ARGS__))
static inline int mpi_no_success(int code)
{
	return code == MPI_SUCCESS ? MPI_ERR_UNKNOWN : code;
}

/* Keeps the text "no memory for ..." and returns MPI_ERR_NO_MEM. */
int mpi_fail_memory(const char *for_what) __attribute__((cold));
#define mpi_fail_memory(for_what) mpi_no_success(mpi_fail_memory(for_what))

/*
 * Ends an entry point that failed: runs the error handler of `comm` and returns the code for
 * the caller. The global lock is held on entry and is released. MPI_ERRORS_ARE_FATAL prints
 * rank, function, communicator and the kept text, and ends the job.
 *
 * `comm` NULL: the error has no communicator. If the thread's failure was marked with
 * mpi_fail_on, that communicator's handler runs. Else the error belongs to MPI_COMM_SELF (MPI-4
 * §9.3). While MPI_COMM_SELF has its initial handler, the error goes to MPI_COMM_WORLD, as in
 * MPI-1 to MPI-3.
 */
int mpi_raise(struct mpi_comm *comm, const char *function, int code) __attribute__((cold));

/* Runs the error handler of comm on `code`, as mpi_raise does, but keeps the lock. */
void mpi_raise_locked(struct mpi_comm *comm, const char *function, int code);

/*
 * The parts from which the handlers of other objects are made. mpi_raise_fatal ends the job
 * with "rank R of N: FUNCTION on OBJECT: CAUSE"; `where` is " on OBJECT". mpi_raised follows a
 * handler that has returned: it releases the lock and returns `code`.
 */
#define MPI_WHERE (MPI_MAX_OBJECT_NAME + 64)
_Noreturn void mpi_raise_fatal(const char *where, const char *function, int code)
	__attribute__((cold));
int mpi_raised(int code) __attribute__((cold));

/*
 * Runs a handler that a call was given and that is attached to no object yet, such as that of
 * MPI_Session_init. The handler gets the null handle. Works before MPI_Init and after
 * MPI_Finalize. The lock is not held.
 */
void mpi_raise_given(const struct mpi_errhandler *handler, const char *function, int code)
	__attribute__((cold));

/* Follows mpi_fail: marks the failure as that of a request on this communicator, window or
 * file (handle; 0: none). So its error handler runs, even if the function that finds the failure
 * has no communicator. */
void mpi_fail_on(uint32_t handle);
/* Returns the object marked with mpi_fail_on, if it still exists and is of this kind; else
 * NULL. */
void *mpi_failed_on(enum mpi_kind kind);

/* The text that this thread kept last, "" if none. A request that failed stores it, so that a
 * later wait repeats it. */
const char *mpi_fail_text(void);

/* Follows mpi_fail: MPI_Error_string has the kept text for `code` in this thread, until the next
 * call of this function. For files, whose errors are returned by default. */
void mpi_fail_explain(int code);
/* The text that mpi_fail_explain has kept for `code`; NULL: none. */
const char *mpi_fail_explained(int code);

/* Returns the class of a class or code, MPI_ERR_UNKNOWN for any other number. */
int mpi_error_class_of(int code);
/* Returns one line about a class or code, never NULL. Valid until the code is removed. */
const char *mpi_error_text(int code);
/* The value of the attribute MPI_LASTUSEDCODE. */
int *mpi_error_last_used(void);

#endif
