/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Opening, closing, deleting and sizing files: all access modes, what may not be opened, ranks that
 * disagree, and that nothing is left behind. Usage: [SEED [ROUNDS]].
 */
#include "test/mpi/io/file_check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CREATE = MPI_MODE_CREATE, RDWR = MPI_MODE_RDWR, RDONLY = MPI_MODE_RDONLY };

static MPI_File file;

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* The text that MPI_Error_string has of an error just returned. */
static const char *text_of(int error)
{
	static char text[MPI_MAX_ERROR_STRING];
	int length;

	if (MPI_Error_string(error, text, &length) != MPI_SUCCESS)
		text[0] = '\0';
	return text;
}

/* ---- modes ----------------------------------------------------------------------------------- */

static const char *creates(int round)
{
	const char *path = path_of("created");
	int amode = 0;
	MPI_Group group;
	int size;

	CHECK_OK(open_file(MPI_COMM_WORLD, path, CREATE | MPI_MODE_EXCL | RDWR, &file));
	CHECK(exists(path));
	CHECK_OK(MPI_File_get_amode(file, &amode));
	CHECK_INT(amode, CREATE | MPI_MODE_EXCL | RDWR);
	CHECK_OK(MPI_File_get_group(file, &group));
	MPI_Group_size(group, &size);
	CHECK_INT(size, tap_size);
	MPI_Group_free(&group);
	CHECK_OK(MPI_File_close(&file));
	CHECK(exists(path));
	CHECK_INT(descriptors(), 0);
	CHECK_CLASS(open_file(MPI_COMM_WORLD, path, CREATE | MPI_MODE_EXCL | RDWR, &file),
		    MPI_ERR_FILE_EXISTS);
	CHECK_OK(open_file(MPI_COMM_WORLD, path, CREATE | RDWR, &file));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_close(&file));
	CHECK_INT(descriptors(), 0);
	MPI_Barrier(MPI_COMM_WORLD);
	if (tap_rank == round % tap_size)
		CHECK_OK(MPI_File_delete(path, MPI_INFO_NULL));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(!exists(path));
	return NULL;
}

static const char *deletes_on_close(int round)
{
	const char *path = path_of("deleted");

	(void)round;
	CHECK_OK(open_file(MPI_COMM_WORLD, path, CREATE | RDWR | MPI_MODE_DELETE_ON_CLOSE, &file));
	CHECK(exists(path));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_close(&file));
	CHECK(!exists(path));
	return NULL;
}

static const char *appends(int round)
{
	const char *path = path_of("appended");
	MPI_Offset position = -1;
	char *have, byte = 'x';
	size_t bytes;

	(void)round;
	if (tap_rank == 0)
		CHECK(file_make(path, "0123456789", 10));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(open_file(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_APPEND, &file));
	CHECK_OK(MPI_File_get_position(file, &position));
	CHECK_INT(position, 10);
	CHECK_OK(MPI_File_get_position_shared(file, &position));
	CHECK_INT(position, 10);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_write_shared(file, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_File_close(&file));
	have = bytes_of(path, &bytes);
	CHECK_INT(bytes, 10 + tap_size);
	for (int i = 0; i < tap_size; i++)
		CHECK_INT(have[10 + i], 'x');
	free(have);
	MPI_Barrier(MPI_COMM_WORLD);
	if (tap_rank == 0)
		unlink(path);
	return NULL;
}

static const char *wrong_modes(int round)
{
	static const int wrong[] = { 0,
				     CREATE,
				     RDONLY | RDWR,
				     MPI_MODE_WRONLY | RDWR,
				     RDONLY | CREATE,
				     RDONLY | MPI_MODE_EXCL,
				     RDWR | MPI_MODE_SEQUENTIAL,
				     RDWR | 1 << 20 };
	const char *path = path_of("never");

	(void)round;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_CLASS(open_file(MPI_COMM_WORLD, path, wrong[i], &file), MPI_ERR_AMODE);
	CHECK(!exists(path));
	return NULL;
}

/* Only one direction, and no seeking in a file that is sequential. */
static const char *modes_hold(int round)
{
	const char *path = path_of("modes");
	MPI_Offset at;
	int n = 0;

	(void)round;
	if (tap_rank == 0)
		CHECK(file_make(path, "abcd", 4));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(open_file(MPI_COMM_WORLD, path, RDONLY, &file));
	CHECK_CLASS(MPI_File_write_at(file, 0, &n, 4, MPI_BYTE, MPI_STATUS_IGNORE),
		    MPI_ERR_READ_ONLY);
	CHECK_CLASS(MPI_File_write_all(file, &n, 4, MPI_BYTE, MPI_STATUS_IGNORE),
		    MPI_ERR_READ_ONLY);
	CHECK_CLASS(MPI_File_set_size(file, 2), MPI_ERR_READ_ONLY);
	CHECK_CLASS(MPI_File_preallocate(file, 2), MPI_ERR_READ_ONLY);
	CHECK_OK(MPI_File_read_at(file, 0, &n, 4, MPI_BYTE, MPI_STATUS_IGNORE));
	CHECK(memcmp(&n, "abcd", 4) == 0);
	CHECK_OK(MPI_File_close(&file));
	CHECK_OK(open_file(MPI_COMM_WORLD, path, MPI_MODE_WRONLY, &file));
	CHECK_CLASS(MPI_File_read(file, &n, 4, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
	CHECK_OK(MPI_File_close(&file));
	CHECK_OK(open_file(MPI_COMM_WORLD, path, RDONLY | MPI_MODE_SEQUENTIAL, &file));
	CHECK_CLASS(MPI_File_read_at(file, 0, &n, 4, MPI_BYTE, MPI_STATUS_IGNORE),
		    MPI_ERR_UNSUPPORTED_OPERATION);
	CHECK_CLASS(MPI_File_read(file, &n, 4, MPI_BYTE, MPI_STATUS_IGNORE),
		    MPI_ERR_UNSUPPORTED_OPERATION);
	CHECK_CLASS(MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
	CHECK_CLASS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
	CHECK_CLASS(MPI_File_get_position_shared(file, &at), MPI_ERR_UNSUPPORTED_OPERATION);
	CHECK_CLASS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL),
		    MPI_ERR_DISP);
	CHECK_OK(MPI_File_read_ordered(file, &n, tap_rank == 0 ? 2 : 0, MPI_BYTE,
				       MPI_STATUS_IGNORE));
	CHECK_OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native",
				   MPI_INFO_NULL));
	CHECK_OK(MPI_File_read_ordered(file, &n, tap_rank == 0 ? 2 : 0, MPI_BYTE,
				       MPI_STATUS_IGNORE));
	if (tap_rank == 0)
		CHECK(memcmp(&n, "cd", 2) == 0);
	CHECK_OK(MPI_File_close(&file));
	MPI_Barrier(MPI_COMM_WORLD);
	if (tap_rank == 0)
		unlink(path);
	return NULL;
}

/* ---- ranks that disagree --------------------------------------------------------------------- */

static const char *disagreements(int round)
{
	const char *path = path_of("agreed"), *other = path_of("other"), *none = path_of("no/such");
	int last = tap_rank == tap_size - 1;

	(void)round;
	if (tap_size == 1)
		return NULL;
	CHECK_CLASS(open_file(MPI_COMM_WORLD, path, last ? RDWR | CREATE : MPI_MODE_WRONLY | CREATE,
			      &file),
		    MPI_ERR_NOT_SAME);
	CHECK(!exists(path));
	/* one cannot open it: the others must not have it, nor what was created */
	CHECK_CLASS(open_file(MPI_COMM_WORLD, last ? none : path, RDWR | CREATE, &file),
		    MPI_ERR_NO_SUCH_FILE);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(!exists(path));
	CHECK_INT(descriptors(), 0);
	/* two files */
	MPI_Barrier(MPI_COMM_WORLD);
	if (tap_rank == 0)
		CHECK(file_make(path, "a", 1) && file_make(other, "b", 1));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_CLASS(open_file(MPI_COMM_WORLD, last ? other : path, RDWR, &file), MPI_ERR_NOT_SAME);
	CHECK_INT(descriptors(), 0);
	CHECK_OK(open_file(MPI_COMM_WORLD, path, RDWR, &file));
	CHECK_CLASS(MPI_File_set_size(file, last ? 7 : 8), MPI_ERR_NOT_SAME);
	CHECK_CLASS(MPI_File_set_atomicity(file, last), MPI_ERR_NOT_SAME);
	CHECK_CLASS(MPI_File_seek_shared(file, last, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
	CHECK_CLASS(MPI_File_seek_shared(file, last ? INT64_MIN : 0, MPI_SEEK_SET),
		    MPI_ERR_NOT_SAME);
	CHECK_CLASS(MPI_File_seek_shared(file, 0, last ? MPI_SEEK_SET : MPI_SEEK_CUR),
		    MPI_ERR_NOT_SAME);
	CHECK_CLASS(MPI_File_set_view(file, 0, last ? MPI_INT : MPI_DOUBLE,
				      last ? MPI_INT : MPI_DOUBLE, "native", MPI_INFO_NULL),
		    MPI_ERR_NOT_SAME);
	CHECK_OK(MPI_File_close(&file));
	if (tap_rank == 0)
		unlink(path), unlink(other);
	return NULL;
}

/* ---- what cannot be opened ------------------------------------------------------------------- */

static const char *not_openable(int round)
{
	const char *path = path_of("nothing"), *dir = path_of("dir"), *pipe = path_of("pipe");
	int error;

	(void)round;
	error = open_file(MPI_COMM_WORLD, path, RDONLY, &file);
	CHECK_CLASS(error, MPI_ERR_NO_SUCH_FILE);
	if (!strstr(text_of(error), path))
		return tap_wrong("the text has no name: %s", text_of(error));
	CHECK(strstr(text_of(error), "No such file"));
	CHECK_CLASS(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
	if (tap_rank == 0)
		CHECK(mkdir(dir, 0700) == 0 && mkfifo(pipe, 0600) == 0);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_CLASS(open_file(MPI_COMM_WORLD, dir, RDONLY, &file), MPI_ERR_BAD_FILE);
	CHECK_CLASS(open_file(MPI_COMM_WORLD, dir, RDWR, &file), MPI_ERR_BAD_FILE);
	CHECK_CLASS(MPI_File_delete(dir, MPI_INFO_NULL), MPI_ERR_BAD_FILE);
	CHECK_CLASS(open_file(MPI_COMM_WORLD, pipe, RDONLY, &file), MPI_ERR_BAD_FILE);
	CHECK_CLASS(open_file(MPI_COMM_WORLD, "", RDONLY, &file), MPI_ERR_BAD_FILE);
	CHECK_INT(descriptors(), 0);
	MPI_Barrier(MPI_COMM_WORLD);
	if (tap_rank == 0)
		rmdir(dir), unlink(pipe);
	return NULL;
}

static const char *not_permitted(int round)
{
	const char *path = path_of("locked");

	(void)round;
	if (geteuid() == 0) /* root may open everything */
		return NULL;
	if (tap_rank == 0)
		CHECK(file_make(path, "x", 1) && chmod(path, 0444) == 0);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_CLASS(open_file(MPI_COMM_WORLD, path, RDWR, &file), MPI_ERR_ACCESS);
	CHECK_OK(open_file(MPI_COMM_WORLD, path, RDONLY, &file));
	CHECK_OK(MPI_File_close(&file));
	if (tap_rank == 0)
		unlink(path);
	return NULL;
}

static const char *permissions(int round)
{
	const char *path = path_of("private");
	struct stat st;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "file_perm", round ? "0440" : "0600");
	CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, CREATE | RDWR | MPI_MODE_DELETE_ON_CLOSE, info,
			       &file));
	MPI_Barrier(MPI_COMM_WORLD); /* rank 0 sets the mode after all have opened the file */
	CHECK(stat(path, &st) == 0);
	CHECK_INT(st.st_mode & 0777, round ? 0440 : 0600);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_close(&file));
	MPI_Info_free(&info);
	return NULL;
}

/* A name that is not absolute, and another working directory when it is deleted. */
static const char *relative_name(int round)
{
	char here[4096], name[64];
	const char *path = path_of("");

	(void)round;
	CHECK(getcwd(here, sizeof(here)));
	CHECK(chdir(path) == 0);
	snprintf(name, sizeof(name), "relative");
	CHECK_OK(open_file(MPI_COMM_WORLD, name, CREATE | RDWR | MPI_MODE_DELETE_ON_CLOSE, &file));
	CHECK(exists("relative"));
	CHECK(chdir(here) == 0);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_close(&file));
	CHECK(!exists(path_of("relative")));
	return NULL;
}

/* ---- size ------------------------------------------------------------------------------------ */

static const char *sizes(int round)
{
	const char *path = path_of("sized");
	MPI_Offset size = -1;
	struct stat st;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_WORLD, path, CREATE | RDWR | MPI_MODE_DELETE_ON_CLOSE, &file));
	CHECK_OK(MPI_File_set_size(file, 1000));
	CHECK_OK(MPI_File_get_size(file, &size));
	CHECK_INT(size, 1000);
	CHECK_OK(MPI_File_preallocate(file, 500));
	CHECK_OK(MPI_File_get_size(file, &size));
	CHECK_INT(size, 1000);
	CHECK_OK(MPI_File_preallocate(file, 100000));
	CHECK_OK(MPI_File_get_size(file, &size));
	CHECK_INT(size, 100000);
	CHECK(stat(path, &st) == 0 && st.st_blocks * 512 >= 100000);
	CHECK_OK(MPI_File_set_size(file, 10));
	CHECK_OK(MPI_File_get_size(file, &size));
	CHECK_INT(size, 10);
	CHECK_OK(MPI_File_set_size(file, (MPI_Offset)5 << 32));
	CHECK_OK(MPI_File_get_size(file, &size));
	CHECK_INT(size, (MPI_Offset)5 << 32);
	CHECK_CLASS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* A communicator that is not that of all, and one that is freed while the file is open. */
static const char *on_some(int round)
{
	const char *path = path_of("some");
	MPI_Comm half;

	(void)round;
	MPI_Comm_split(MPI_COMM_WORLD, tap_rank % 2, 0, &half);
	if (tap_rank % 2 == 0)
		CHECK_OK(open_file(half, path, CREATE | RDWR | MPI_MODE_DELETE_ON_CLOSE, &file));
	MPI_Comm_free(&half);
	if (tap_rank % 2 == 0) {
		CHECK_OK(MPI_File_write_ordered(file, &tap_rank, 1, MPI_INT, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_File_close(&file));
	}
	return NULL;
}

/* At the end a file is open, with a view and a shared pointer: MPI_Finalize closes it. */
static const char *left_open(int round)
{
	const char *path = path_of("left");
	MPI_Datatype type;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_WORLD, path, CREATE | RDWR, &file));
	MPI_Type_vector(3, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	CHECK_OK(MPI_File_set_view(file, 4, MPI_INT, type, "native", MPI_INFO_NULL));
	MPI_Type_free(&type);
	CHECK_OK(MPI_File_write_shared(file, &tap_rank, 1, MPI_INT, MPI_STATUS_IGNORE));
	MPI_Barrier(MPI_COMM_WORLD);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 1);
	folder_make();
	tap_rounds_set(3);
	tap_case("a file is created by one rank and opened by all", creates);
	tap_rounds_set(1);
	tap_case("a file is deleted when it is closed", deletes_on_close);
	tap_case("file pointers begin at the end", appends);
	tap_case("access modes that are none", wrong_modes);
	tap_case("access modes are kept to", modes_hold);
	tap_case("ranks that disagree all get an error", disagreements);
	tap_case("files that cannot be opened", not_openable);
	tap_case("files without permission", not_permitted);
	tap_rounds_set(2);
	tap_case("permissions of a new file", permissions);
	tap_rounds_set(1);
	tap_case("a relative name", relative_name);
	tap_case("sizes", sizes);
	tap_case("a file of some ranks", on_some);
	tap_case("a file that is left open", left_open);
	folder_end();
	return tap_end();
}
