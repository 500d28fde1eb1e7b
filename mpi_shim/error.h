/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How an error gets from where it is first known to the user: the internal function that finds it
 * returns mpi_fail(class, text), and the entry point hands that to mpi_raise, which runs the error
 * handler.
 */
#ifndef MPI_SHIM_ERROR_H
#define MPI_SHIM_ERROR_H

struct mpi_comm;

/*
 * Keeps the text (one line, cause and if possible remedy, no function name) for the entry point of
 * this thread and returns `code`, an error class or a code of MPI_Add_error_code.
 */
int mpi_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/*
 * At the end of an entry point that failed; the global lock is held and is let go. Runs the error handler of
 * `comm` (NULL: the one errors without a communicator go to, MPI-4 §9.3) and returns the code for the caller.
 * MPI_ERRORS_ARE_FATAL prints rank, function, communicator and the kept text, and ends the job.
 */
int mpi_raise(struct mpi_comm *comm, const char *function, int code) __attribute__((cold));

/* The text kept last by this thread, for a request that failed: what a later wait repeats. */
const char *mpi_fail_text(void);

#endif
