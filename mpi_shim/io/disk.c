/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Bytes of files: system calls that are interrupted, move less than asked for, or fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/io/io.h"

/* ---- errors ---------------------------------------------------------------------------------- */

static int class_of_errno(int number)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR:
	case ENXIO:
	case ENODEV:
		return MPI_ERR_NO_SUCH_FILE;
	case EACCES:
	case EPERM:
		return MPI_ERR_ACCESS;
	case EROFS:
		return MPI_ERR_READ_ONLY;
	case ENOSPC:
		return MPI_ERR_NO_SPACE;
	case EDQUOT:
		return MPI_ERR_QUOTA;
	case EEXIST:
		return MPI_ERR_FILE_EXISTS;
	case EISDIR:
	case ENAMETOOLONG:
	case ELOOP:
	case ESPIPE:
		return MPI_ERR_BAD_FILE;
	case EBUSY:
	case ETXTBSY:
		return MPI_ERR_FILE_IN_USE;
	case ENOMEM:
		return MPI_ERR_NO_MEM;
	case EOPNOTSUPP:
	case ENOLCK:
		return MPI_ERR_UNSUPPORTED_OPERATION;
	default:
		return MPI_ERR_IO;
	}
}

int mpi_disk_error(const char *name, const char *doing, int number)
{
	errno = number;
	return mpi_fail(class_of_errno(number), "%s %s: %m (errno %d)", doing, name, number);
}

int mpi_disk_failed(const struct mpi_file *file, bool writes, int64_t at, uint64_t bytes,
		    int number)
{
	errno = number;
	return mpi_fail(class_of_errno(number), "%s %llu bytes at offset %lld of %s: %m (errno %d)",
			writes ? "writing" : "reading", (unsigned long long)bytes, (long long)at,
			file->name, number);
}

/* ---- transfers ------------------------------------------------------------------------------- */

/* Runs of memory in one system call, and the bytes that the kernel moves at most. */
enum { RUNS_MOST = 128, BYTES_MOST = 0x7ffff000 };

/* The next runs of memory, `bytes` bytes at most. */
static int gather_runs(const struct mpi_extents *memory, uint64_t bytes, struct iovec *iov)
{
	int n = 0;

	for (int i = memory->i; i < memory->n && n < RUNS_MOST && bytes; i++, n++) {
		uint64_t some = memory->extent[i].bytes;

		if (some > bytes)
			some = bytes;
		iov[n].iov_base = (void *)(uintptr_t)memory->extent[i].at;
		iov[n].iov_len = (size_t)some;
		bytes -= some;
	}
	return n;
}

static void skip_runs(struct mpi_extents *memory, uint64_t bytes)
{
	while (bytes) {
		const struct mpi_extent *e = mpi_extents_peek(memory);
		uint64_t some;

		if (!e)
			return;
		some = e->bytes < bytes ? e->bytes : bytes;
		mpi_extents_skip(memory, some);
		bytes -= some;
	}
}

/* One system call. Returns the bytes moved, or the negative number of the error. */
static ssize_t call_once(const struct mpi_file *file, bool writes, int64_t at,
			 const struct iovec *iov, int n)
{
	ssize_t moved;
	int number;

	if (!file->atomic)
		mpi_unlock();
	do
		moved = writes ? pwritev2(file->fd, iov, n, at, 0)
			       : preadv2(file->fd, iov, n, at, 0);
	while (moved < 0 && errno == EINTR);
	number = errno;
	if (!file->atomic)
		mpi_lock();
	return moved < 0 ? -number : moved;
}

int mpi_disk_move(struct mpi_file *file, bool writes, int64_t at, uint64_t bytes,
		  struct mpi_extents *memory, uint64_t *moved)
{
	struct iovec iov[RUNS_MOST];

	while (bytes && mpi_extents_peek(memory)) {
		int n = gather_runs(memory, bytes < BYTES_MOST ? bytes : BYTES_MOST, iov);
		ssize_t some = call_once(file, writes, at, iov, n);

		if (some < 0)
			return mpi_disk_failed(file, writes, at, bytes, (int)-some);
		if (some == 0 && writes)
			return mpi_disk_failed(file, writes, at, bytes, EIO);
		if (some == 0)
			break;
		skip_runs(memory, (uint64_t)some);
		at += some;
		bytes -= (uint64_t)some;
		*moved += (uint64_t)some;
	}
	return MPI_SUCCESS;
}

int mpi_disk_read(struct mpi_file *file, int64_t at, void *to, size_t bytes, uint64_t *moved)
{
	struct mpi_extents memory;

	mpi_extents_begin(&memory, mpi_bytes(), (int64_t)(uintptr_t)to, 0, bytes);
	return mpi_disk_move(file, false, at, bytes, &memory, moved);
}

int mpi_disk_write(struct mpi_file *file, int64_t at, const void *from, size_t bytes,
		   uint64_t *moved)
{
	struct mpi_extents memory;

	mpi_extents_begin(&memory, mpi_bytes(), (int64_t)(uintptr_t)from, 0, bytes);
	return mpi_disk_move(file, true, at, bytes, &memory, moved);
}

int mpi_disk_size(const struct mpi_file *file, int64_t *bytes)
{
	struct stat st;
	off_t end;

	if (fstat(file->fd, &st) != 0)
		return mpi_disk_error(file->name, "asking for the size of", errno);
	*bytes = st.st_size;
	if (!S_ISBLK(st.st_mode))
		return MPI_SUCCESS;
	end = lseek(file->fd, 0, SEEK_END);
	if (end < 0)
		return mpi_disk_error(file->name, "asking for the size of", errno);
	*bytes = end;
	return MPI_SUCCESS;
}
