/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Attribute keys and attribute lists, which attr.c implements for the entry points of MPI in
 * attr_api.c. The global lock is held. It is released around the user's callbacks, so a list
 * may change during a call. Errors are MPI_ERR_* with a kept text (error.h).
 */
#ifndef MPI_SHIM_ATTR_H
#define MPI_SHIM_ATTR_H

#include "mpi_shim/core/object.h"

enum mpi_attr_on { MPI_ATTR_ON_COMM, MPI_ATTR_ON_TYPE, MPI_ATTR_ON_WIN };

struct mpi_keyval {
	int refs; /* 1 for the key itself, 1 for each attribute set under it */
	int number, place;
	bool freed;
	enum mpi_attr_on on;
	/* NULL is MPI_*_NULL_*_FN; 1 is MPI_*_DUP_FN. */
	union {
		MPI_Comm_copy_attr_function *comm;
		MPI_Type_copy_attr_function *type;
		MPI_Win_copy_attr_function *win;
	} copy;
	union {
		MPI_Comm_delete_attr_function *comm;
		MPI_Type_delete_attr_function *type;
		MPI_Win_delete_attr_function *win;
	} delete;
	void *extra;
};

/* Makes a key, with NULL callbacks, and puts its number in *number. NULL: out of memory, no
 * text kept. */
struct mpi_keyval *mpi_keyval_new(enum mpi_attr_on on, void *extra, int *number);
int mpi_keyval_drop(enum mpi_attr_on on, int *number);

int mpi_attr_store(void *object, enum mpi_attr_on on, struct mpi_attr **list, int number,
		   void *value);
int mpi_attr_load(enum mpi_attr_on on, struct mpi_attr *list, int number, void *value, int *flag);
int mpi_attr_remove(void *object, enum mpi_attr_on on, struct mpi_attr **list, int number);

void mpi_keyvals_fini(void);

#endif
