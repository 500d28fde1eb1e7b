/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * For tests of files that run as a job, beside check.h: a folder for the files, the bytes that are
 * really in them, and all forms of reading and writing behind one prototype.
 */
#ifndef TEST_MPI_IO_FILE_CHECK_H
#define TEST_MPI_IO_FILE_CHECK_H

#include "test/mpi/pt2pt/check.h"

/* The same folder on all ranks, in /tmp. The end removes it and what is in it. */
void folder_make(void);
void folder_end(void);
/* A path in the folder, the same on all ranks; valid until the next call but seven. */
const char *path_of(const char *name);

/* The whole of a file, malloc'd; *bytes gets its length. NULL: it cannot be read. */
char *bytes_of(const char *path, size_t *bytes);
/* Makes a file with these bytes. False: it cannot be made. */
bool file_make(const char *path, const void *bytes, size_t n);
/* Descriptors of this process that lead into the folder. */
int descriptors(void);

/* Open a file on a communicator; errors are returned. */
int open_file(MPI_Comm comm, const char *path, int amode, MPI_File *file);

enum form_place { FORM_AT, FORM_POINTER, FORM_SHARED, FORM_ORDERED };

/* A form of reading or writing: two functions with and without _c, or a pair of begin and end. The
 * offset is that of the explicit forms. Both directions wait until the access is over. */
struct form {
	const char *name;
	enum form_place place;
	bool collective;
	int (*write)(MPI_File file, MPI_Offset at, const void *buf, int n, MPI_Datatype type,
		     MPI_Status *status);
	int (*read)(MPI_File file, MPI_Offset at, void *buf, int n, MPI_Datatype type,
		    MPI_Status *status);
};
extern const struct form forms[];
extern const int form_count;

#endif
