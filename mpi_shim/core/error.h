/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How an error gets from where it is first known to the user: the internal function that finds it
 * returns mpi_fail(class, text), and the entry point hands that to mpi_raise, which runs the error
 * handler.
 */
#ifndef MPI_SHIM_ERROR_H
#define MPI_SHIM_ERROR_H

#include <mpi.h>

#include "mpi_shim/core/handle.h"

struct mpi_comm;
struct mpi_errhandler;

/*
 * Keeps the text (one line, cause and if possible remedy, no function name) for the entry point of
 * this thread and returns `code`, an error class or a code of MPI_Add_error_code.
 */
int mpi_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Lets compilers and analysers see that a failure is not MPI_SUCCESS, so that they follow the
 * right way. */
#define mpi_fail(...) mpi_no_success(mpi_fail(__VA_ARGS__))
static inline int mpi_no_success(int code)
{
	return code == MPI_SUCCESS ? MPI_ERR_UNKNOWN : code;
}

/* The same for memory that could not be had: MPI_ERR_NO_MEM. */
int mpi_fail_memory(const char *for_what) __attribute__((cold));
#define mpi_fail_memory(for_what) mpi_no_success(mpi_fail_memory(for_what))

/*
 * At the end of an entry point that failed; the global lock is held and is let go. Runs the
 * error handler of `comm` (NULL: the one errors without a communicator go to) and returns the
 * code for the caller. MPI_ERRORS_ARE_FATAL prints rank, function, communicator and the kept
 * text, and ends the job.
 *
 * Errors without a communicator belong to MPI_COMM_SELF (MPI-4 §9.3); as long as that has the
 * handler it began with they go to MPI_COMM_WORLD's, where MPI-1 to MPI-3 put them.
 */
int mpi_raise(struct mpi_comm *comm, const char *function, int code) __attribute__((cold));

/* Runs comm's handler on `code`, as mpi_raise does, but keeps the lock. */
void mpi_raise_locked(struct mpi_comm *comm, const char *function, int code);

/*
 * What handlers of other objects are made of. The end of the job, with "rank R of N: FUNCTION on
 * OBJECT: CAUSE", of which `where` is " on OBJECT"; and after a handler that has returned: lets the
 * lock go, returns `code`.
 */
#define MPI_WHERE (MPI_MAX_OBJECT_NAME + 64)
_Noreturn void mpi_raise_fatal(const char *where, const char *function, int code)
	__attribute__((cold));
int mpi_raised(int code) __attribute__((cold));

/*
 * Runs a handler that is given with a call and attached to nothing yet, as that of
 * MPI_Session_init, with the null handle. Before MPI_Init and after MPI_Finalize, too. No lock is
 * held.
 */
void mpi_raise_given(const struct mpi_errhandler *handler, const char *function, int code)
	__attribute__((cold));

/* After mpi_fail: what failed is a request on the communicator or window of this handle (0: on
 * neither), so that its error handler runs even if the function that finds out has none. */
void mpi_fail_on(uint32_t handle);
/* This object, if it is of this kind and still there; else NULL. */
void *mpi_failed_on(enum mpi_kind kind);

/* The text kept last by this thread, for a request that failed: what a later wait repeats. "" if
 * none. */
const char *mpi_fail_text(void);

/* The class of a class or code; MPI_ERR_UNKNOWN for what is neither. */
int mpi_error_class_of(int code);
/* One line on a class or code, never NULL. Valid until the code is removed. */
const char *mpi_error_text(int code);
/* What the attribute MPI_LASTUSEDCODE shows. */
int *mpi_error_last_used(void);

#endif
