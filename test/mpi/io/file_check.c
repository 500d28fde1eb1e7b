/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See file_check.h.
 */
#include "test/mpi/io/file_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ----------------------------------------------------------------------------------- */

static char folder[256];

void folder_make(void)
{
	if (tap_rank == 0) {
		snprintf(folder, sizeof(folder), "/tmp/postern-io-XXXXXX");
		if (!mkdtemp(folder))
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Bcast(folder, sizeof(folder), MPI_CHAR, 0, MPI_COMM_WORLD);
}

void folder_end(void)
{
	const struct dirent *e;
	DIR *dir;

	MPI_Barrier(MPI_COMM_WORLD);
	if (tap_rank != 0)
		return;
	dir = opendir(folder);
	while (dir && (e = readdir(dir))) {
		if (unlinkat(dirfd(dir), e->d_name, 0) != 0)
			unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
	}
	if (dir)
		closedir(dir);
	rmdir(folder);
}

const char *path_of(const char *name)
{
	static char path[8][512];
	static int next;

	next = (next + 1) % 8;
	snprintf(path[next], sizeof(path[next]), "%s/%s", folder, name);
	return path[next];
}

char *bytes_of(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	char *at = NULL;

	*bytes = 0;
	if (f && fstat(fileno(f), &st) == 0) {
		at = malloc((size_t)st.st_size + 1);
		*bytes = fread(at, 1, (size_t)st.st_size, f);
	}
	if (f)
		fclose(f);
	return at;
}

bool file_make(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(bytes, 1, n, f) == n;

	return f && fclose(f) == 0 && ok;
}

int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	char to[512];
	int n = 0;

	while (dir && (e = readdir(dir))) {
		ssize_t length = readlinkat(dirfd(dir), e->d_name, to, sizeof(to));

		n += length > 0 && !strncmp(to, folder, strlen(folder));
	}
	if (dir)
		closedir(dir);
	return n;
}

int open_file(MPI_Comm comm, const char *path, int amode, MPI_File *file)
{
	return MPI_File_open(comm, path, amode, MPI_INFO_NULL, file);
}

/* ---- forms ----------------------------------------------------------------------------------- */

/* With a position, and without one. */
#define AT(f, d, b, n, t)      (f, d, b, n, t
#define AT_NONE(f, d, b, n, t) (f, b, n, t

#define BLOCKING(id, args, count, read_fn, write_fn)                                               \
	static int write_##id(MPI_File f, MPI_Offset d, const void *b, int n, MPI_Datatype t,      \
			      MPI_Status *s)                                                       \
	{                                                                                          \
		(void)d;                                                                           \
		return MPI_File_##write_fn args(f, d, b, (count)n, t), s);                         \
	}                                                                                          \
	static int read_##id(MPI_File f, MPI_Offset d, void *b, int n, MPI_Datatype t,             \
			     MPI_Status *s)                                                        \
	{                                                                                          \
		(void)d;                                                                           \
		return MPI_File_##read_fn args(f, d, b, (count)n, t), s);                          \
	}

#define NONBLOCKING(id, args, count, read_fn, write_fn)                                            \
	static int write_##id(MPI_File f, MPI_Offset d, const void *b, int n, MPI_Datatype t,      \
			      MPI_Status *s)                                                       \
	{                                                                                          \
		MPI_Request r;                                                                     \
		int err = MPI_File_##write_fn args(f, d, b, (count)n, t), &r);                     \
                                                                                                   \
		(void)d;                                                                           \
		return err ? err : MPI_Wait(&r, s);                                                \
	}                                                                                          \
	static int read_##id(MPI_File f, MPI_Offset d, void *b, int n, MPI_Datatype t,             \
			     MPI_Status *s)                                                        \
	{                                                                                          \
		MPI_Request r;                                                                     \
		int err = MPI_File_##read_fn args(f, d, b, (count)n, t), &r);                      \
                                                                                                   \
		(void)d;                                                                           \
		return err ? err : MPI_Wait(&r, s);                                                \
	}

#define SPLIT(id, args, count, read_fn, write_fn, form)                                            \
	static int write_##id(MPI_File f, MPI_Offset d, const void *b, int n, MPI_Datatype t,      \
			      MPI_Status *s)                                                       \
	{                                                                                          \
		int err = MPI_File_##write_fn##_begin##form args(f, d, b, (count)n, t));           \
                                                                                                   \
		(void)d;                                                                           \
		return err ? err : MPI_File_##write_fn##_end(f, b, s);                             \
	}                                                                                          \
	static int read_##id(MPI_File f, MPI_Offset d, void *b, int n, MPI_Datatype t,             \
			     MPI_Status *s)                                                        \
	{                                                                                          \
		int err = MPI_File_##read_fn##_begin##form args(f, d, b, (count)n, t));            \
                                                                                                   \
		(void)d;                                                                           \
		return err ? err : MPI_File_##read_fn##_end(f, b, s);                              \
	}

#define BOTH(KIND, id, args, read_fn, write_fn)                                                    \
	KIND(id, args, int, read_fn, write_fn)                                                     \
	KIND(id##_c, args, MPI_Count, read_fn##_c, write_fn##_c)

/* clang-format off */
BOTH(BLOCKING, at, AT, read_at, write_at)
BOTH(BLOCKING, at_all, AT, read_at_all, write_at_all)
BOTH(BLOCKING, own, AT_NONE, read, write)
BOTH(BLOCKING, all, AT_NONE, read_all, write_all)
BOTH(BLOCKING, shared, AT_NONE, read_shared, write_shared)
BOTH(BLOCKING, ordered, AT_NONE, read_ordered, write_ordered)
BOTH(NONBLOCKING, iat, AT, iread_at, iwrite_at)
BOTH(NONBLOCKING, iat_all, AT, iread_at_all, iwrite_at_all)
BOTH(NONBLOCKING, iown, AT_NONE, iread, iwrite)
BOTH(NONBLOCKING, iall, AT_NONE, iread_all, iwrite_all)
BOTH(NONBLOCKING, ishared, AT_NONE, iread_shared, iwrite_shared)
SPLIT(split_at, AT, int, read_at_all, write_at_all, )
SPLIT(split_at_c, AT, MPI_Count, read_at_all, write_at_all, _c)
SPLIT(split, AT_NONE, int, read_all, write_all, )
SPLIT(split_c, AT_NONE, MPI_Count, read_all, write_all, _c)
SPLIT(split_ordered, AT_NONE, int, read_ordered, write_ordered, )
SPLIT(split_ordered_c, AT_NONE, MPI_Count, read_ordered, write_ordered, _c)

#define ROW(id, place, collective) { #id, place, collective, write_##id, read_##id }
#define ROWS(id, place, collective) ROW(id, place, collective), ROW(id##_c, place, collective)

const struct form forms[] = {
	ROWS(at, FORM_AT, false),
	ROWS(at_all, FORM_AT, true),
	ROWS(own, FORM_POINTER, false),
	ROWS(all, FORM_POINTER, true),
	ROWS(iat, FORM_AT, false),
	ROWS(iat_all, FORM_AT, true),
	ROWS(iown, FORM_POINTER, false),
	ROWS(iall, FORM_POINTER, true),
	ROWS(split_at, FORM_AT, true),
	ROWS(split, FORM_POINTER, true),
	ROWS(shared, FORM_SHARED, false),
	ROWS(ishared, FORM_SHARED, false),
	ROWS(ordered, FORM_ORDERED, true),
	ROWS(split_ordered, FORM_ORDERED, true),
};
/* clang-format on */
const int form_count = sizeof(forms) / sizeof(forms[0]);
