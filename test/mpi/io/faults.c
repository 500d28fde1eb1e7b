/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * System calls that fail, are interrupted, or move less than asked for; and more bytes than one of
 * them moves. This program has functions of the C library's names, which do as they are told.
 * Usage: [SEED [ROUNDS]].
 */
#include "test/mpi/io/file_check.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
	int number; /* calls fail with this errno, from the one on that `after` says */
	int after;
	int interrupts; /* so many calls are interrupted first */
	size_t most;    /* bytes that a call moves at most; 0: all */
	bool pretend;   /* nothing is moved, but counted */
	uint64_t pretended;
	int64_t end; /* the highest byte of the file, plus 1 */
} fault;

static bool fails(void)
{
	if (fault.interrupts > 0) {
		fault.interrupts--;
		errno = EINTR;
		return true;
	}
	if (fault.number && fault.after-- <= 0) {
		errno = fault.number;
		return true;
	}
	return false;
}

static ssize_t vector(long call, int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	struct iovec some[256];
	size_t left = fault.most ? fault.most : SIZE_MAX, sum = 0;
	int used = 0;

	if (fails())
		return -1;
	for (; used < n && used < 256 && left; used++) {
		some[used] = iov[used];
		if (some[used].iov_len > left)
			some[used].iov_len = left;
		left -= some[used].iov_len;
		sum += some[used].iov_len;
	}
	if (!fault.pretend)
		return syscall(call, fd, some, (long)used, at, 0L, (long)flags);
	if (sum > 0x7ffff000)
		sum = 0x7ffff000;
	fault.pretended += sum;
	if (at + (int64_t)sum > fault.end)
		fault.end = at + (int64_t)sum;
	return (ssize_t)sum;
}

ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	return vector(SYS_pwritev2, fd, iov, n, at, flags);
}

ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	return vector(SYS_preadv2, fd, iov, n, at, flags);
}

int fsync(int fd)
{
	return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t size)
{
	return fails() ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static MPI_File file;

static const char *text_of(int error)
{
	static char text[MPI_MAX_ERROR_STRING];
	int length;

	if (MPI_Error_string(error, text, &length) != MPI_SUCCESS)
		text[0] = '\0';
	return text;
}

static const struct {
	int number, class;
} causes[] = {
	{ EACCES, MPI_ERR_ACCESS },
	{ EPERM, MPI_ERR_ACCESS },
	{ EROFS, MPI_ERR_READ_ONLY },
	{ ENOSPC, MPI_ERR_NO_SPACE },
	{ EDQUOT, MPI_ERR_QUOTA },
	{ ENOENT, MPI_ERR_NO_SUCH_FILE },
	{ EISDIR, MPI_ERR_BAD_FILE },
	{ EEXIST, MPI_ERR_FILE_EXISTS },
	{ ETXTBSY, MPI_ERR_FILE_IN_USE },
	{ EBUSY, MPI_ERR_FILE_IN_USE },
	{ EIO, MPI_ERR_IO },
	{ EFBIG, MPI_ERR_IO },
	{ ENOMEM, MPI_ERR_NO_MEM },
	{ EOPNOTSUPP, MPI_ERR_UNSUPPORTED_OPERATION },
};

enum { CAUSES = sizeof(causes) / sizeof(causes[0]) };

/* Class, file, place and the system's word for it; what was moved before counts. */
static const char *causes_are_told(int round)
{
	const char *path = path_of("causes"), *text;
	char bytes[40] = "0123456789";
	MPI_Status status;
	int n = -1, error;

	CHECK_OK(open_file(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, &file));
	fault.most = 16;
	fault.after = 2;
	fault.number = causes[round].number;
	error = MPI_File_write_at(file, 100, bytes, 40, MPI_BYTE, &status);
	fault.number = 0;
	fault.most = 0;
	CHECK_CLASS(error, causes[round].class);
	text = text_of(error);
	if (!strstr(text, path) || !strstr(text, "132") ||
	    !strstr(text, strerror(causes[round].number)))
		return tap_wrong("a text without name, place or cause: %s", text);
	MPI_Get_count(&status, MPI_BYTE, &n);
	CHECK_INT(n, 32);
	fault.number = causes[round].number;
	CHECK_CLASS(MPI_File_sync(file),
		    causes[round].class == MPI_ERR_READ_ONLY ? MPI_SUCCESS : causes[round].class);
	CHECK_CLASS(MPI_File_set_size(file, 5), causes[round].class);
	fault.number = 0;
	CHECK_OK(MPI_File_close(&file));
	unlink(path);
	return NULL;
}

/* The request has the error of a non-blocking access, and a split collective that of its end. */
static const char *errors_come_late(int round)
{
	const char *path = path_of("late");
	MPI_Request request;
	MPI_Status status;
	int n = 5;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_SELF, path,
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	fault.number = ENOSPC;
	CHECK_OK(MPI_File_iwrite_at(file, 0, &n, 1, MPI_INT, &request));
	CHECK_CLASS(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
	CHECK(request == MPI_REQUEST_NULL);
	CHECK_OK(MPI_File_iwrite(file, &n, 1, MPI_INT, &request));
	CHECK_CLASS(MPI_Waitall(1, &request, &status), MPI_ERR_IN_STATUS);
	CHECK_CLASS(status.MPI_ERROR, MPI_ERR_NO_SPACE);
	CHECK_OK(MPI_File_write_all_begin(file, &n, 1, MPI_INT));
	CHECK_CLASS(MPI_File_write_all_end(file, &n, &status), MPI_ERR_NO_SPACE);
	fault.number = 0;
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* One rank's part of a collective access fails: all know it. */
static const char *one_fails_for_all(int round)
{
	const char *path = path_of("one");
	int n = tap_rank, failing = round % tap_size;

	CHECK_OK(open_file(MPI_COMM_WORLD, path,
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	if (tap_rank == failing)
		fault.number = EDQUOT;
	CHECK_CLASS(MPI_File_write_at_all(file, 4 * tap_rank, &n, 1, MPI_INT, MPI_STATUS_IGNORE),
		    MPI_ERR_QUOTA);
	CHECK_CLASS(MPI_File_write_ordered(file, &n, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_QUOTA);
	CHECK_CLASS(MPI_File_sync(file), MPI_ERR_QUOTA);
	fault.number = 0;
	CHECK_OK(MPI_File_write_at_all(file, 4 * tap_rank, &n, 1, MPI_INT, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* Memory with gaps and a view with gaps, by calls that move three bytes at most. */
static const char *short_transfers(int round)
{
	const char *path = path_of("short");
	int memory[64], back[64];
	MPI_Datatype in_memory, in_file;
	MPI_Status status;
	int n = -1;

	CHECK_OK(open_file(MPI_COMM_SELF, path,
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	MPI_Type_vector(8, round % 3 + 1, 4, MPI_INT, &in_memory);
	MPI_Type_vector(2, 3, 5, MPI_INT, &in_file);
	MPI_Type_commit(&in_memory);
	MPI_Type_commit(&in_file);
	CHECK_OK(MPI_File_set_view(file, 7, MPI_INT, in_file, "native", MPI_INFO_NULL));
	for (int i = 0; i < 64; i++) {
		memory[i] = (int)draw();
		back[i] = -1;
	}
	fault.most = 3;
	fault.interrupts = 5;
	CHECK_OK(MPI_File_write_at(file, 1, memory, 1, in_memory, &status));
	MPI_Get_count(&status, in_memory, &n);
	CHECK_INT(n, 1);
	fault.interrupts = 5;
	CHECK_OK(MPI_File_read_at(file, 1, back, 1, in_memory, &status));
	MPI_Get_count(&status, in_memory, &n);
	CHECK_INT(n, 1);
	fault.most = 0;
	for (int i = 0; i < 64; i++)
		CHECK_INT(back[i], i < 32 && i % 4 <= round % 3 ? memory[i] : -1);
	MPI_Type_free(&in_memory);
	MPI_Type_free(&in_file);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* More bytes than an int counts and a system call moves, to places behind 2^32. Nothing is moved,
 * and no memory touched. */
static const char *large_accesses(int round)
{
	const char *path = path_of("large");
	const MPI_Count bytes = ((MPI_Count)5 << 30) + 13;
	const MPI_Offset at = (MPI_Offset)9 << 33;
	MPI_Datatype row;
	MPI_Status status;
	MPI_Count n = -1;
	void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)round;
	CHECK(memory != MAP_FAILED);
	CHECK_OK(open_file(MPI_COMM_SELF, path,
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	fault.pretend = true;
	fault.pretended = 0;
	CHECK_OK(MPI_File_write_at_c(file, at, memory, bytes, MPI_BYTE, &status));
	CHECK_INT(fault.pretended, bytes);
	CHECK_INT(fault.end, at + bytes);
	CHECK_OK(MPI_Get_count_c(&status, MPI_BYTE, &n));
	CHECK_INT(n, bytes);
	MPI_Type_contiguous(1 << 16, MPI_BYTE, &row);
	MPI_Type_commit(&row);
	fault.pretended = 0;
	CHECK_OK(MPI_File_read_at(file, at, memory, 70000, row, &status));
	CHECK_INT(fault.pretended, (int64_t)70000 << 16);
	CHECK_OK(MPI_Get_count_c(&status, row, &n));
	CHECK_INT(n, 70000);
	fault.pretend = false;
	MPI_Type_free(&row);
	CHECK_OK(MPI_File_close(&file));
	munmap(memory, (size_t)bytes);
	return NULL;
}

/* A hole of 5 GiB, for real; and places that no file has. */
static const char *far_places(int round)
{
	const char *path = path_of("far");
	const MPI_Offset at = (MPI_Offset)5 << 30;
	MPI_Offset size = -1;
	int n = 77, back = 0;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_SELF, path,
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	CHECK_OK(MPI_File_write_at(file, at, &n, 4, MPI_BYTE, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_File_seek(file, -4, MPI_SEEK_END));
	CHECK_OK(MPI_File_read(file, &back, 4, MPI_BYTE, MPI_STATUS_IGNORE));
	CHECK_INT(back, 77);
	CHECK_OK(MPI_File_get_size(file, &size));
	CHECK_INT(size, at + 4);
	CHECK_CLASS(MPI_File_write_at(file, INT64_MAX, &n, 1, MPI_BYTE, MPI_STATUS_IGNORE),
		    MPI_ERR_ARG);
	CHECK_OK(MPI_File_set_view(file, 8, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
	CHECK_CLASS(MPI_File_write_at(file, INT64_MAX / 8, &n, 1, MPI_DOUBLE, MPI_STATUS_IGNORE),
		    MPI_ERR_ARG);
	CHECK_CLASS(MPI_File_write_at(file, INT64_MAX / 2, &n, 1, MPI_DOUBLE, MPI_STATUS_IGNORE),
		    MPI_ERR_ARG);
	CHECK_CLASS(MPI_File_get_byte_offset(file, INT64_MAX / 2, &size), MPI_ERR_ARG);
	CHECK_CLASS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
	CHECK_CLASS(MPI_File_seek(file, 0, 4711), MPI_ERR_ARG);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 1);
	folder_make();
	if (tap_rank == 0 && tap_size > 1)
		printf("# the cases of one process are those of rank 0\n");
	tap_rounds_set(tap_rank == 0 ? CAUSES : 0);
	tap_case("errors have a class, and a text with name, place and cause", causes_are_told);
	tap_rounds_set(tap_rank == 0);
	tap_case("errors of requests and split collectives", errors_come_late);
	tap_rounds_set(tap_size);
	tap_case("a failure of one rank is that of all", one_fails_for_all);
	tap_rounds_set(tap_rank == 0 ? 3 : 0);
	tap_case("short and interrupted transfers", short_transfers);
	tap_rounds_set(tap_rank == 0);
	tap_case("more than 2^31 bytes", large_accesses);
	tap_case("places behind 2^32 and 2^63", far_places);
	folder_end();
	return tap_end();
}
