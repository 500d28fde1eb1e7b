/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Atomic mode. An access locks its range of the file with the locks of open file descriptions
 * (F_OFD_SETLKW). They hold against other processes, against other files of this process, and on
 * all nodes if the file system can. A lock is held only with the library's lock, so that no two
 * threads wait for each other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/io/io.h"

static int set_lock(const struct mpi_file *file, short type, int64_t from, int64_t to)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = from, .l_len = to - from
	};
	int rc;

	do
		rc = fcntl(file->fd, F_OFD_SETLKW, &lock);
	while (rc != 0 && errno == EINTR);
	return rc == 0 ? 0 : errno;
}

int mpi_disk_lock(struct mpi_file *file, bool writes, int64_t from, int64_t to)
{
	int number = set_lock(file, writes ? F_WRLCK : F_RDLCK, from, to);

	if (!number)
		return MPI_SUCCESS;
	if (number == EINVAL || number == ENOLCK || number == EOPNOTSUPP || number == ENOSYS) {
		errno = number;
		return mpi_fail(MPI_ERR_UNSUPPORTED_OPERATION,
				"the file system of %s has no locks, which atomic mode needs: %m "
				"(errno %d)",
				file->name, number);
	}
	return mpi_disk_error(file->name, "locking", number);
}

void mpi_disk_unlock(struct mpi_file *file, int64_t from, int64_t to)
{
	set_lock(file, F_UNLCK, from, to);
}

/* ---- file systems that have none ------------------------------------------------------------- */

/* Whether the file is on NFS that keeps its locks on each node. */
static bool locks_stay_here(const struct mpi_file *file)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	bool stay = false;
	char *line = NULL;
	size_t room = 0;
	struct stat st;

	while (mounts && !stay && fstat(file->fd, &st) == 0 && getline(&line, &room, mounts) > 0)
		stay = mpi_locks_stay_here(line, major(st.st_dev), minor(st.st_dev));
	if (mounts)
		fclose(mounts);
	free(line);
	return stay;
}

/* Try a lock: a file system that has none says so here, and not in the middle of an access. */
static int try_lock(struct mpi_file *file)
{
	int err;

	if (!mpi_file_on_one_node(file->comm) && locks_stay_here(file))
		return mpi_fail(MPI_ERR_UNSUPPORTED_OPERATION,
				"%s is on NFS that is mounted without locks among nodes, which "
				"atomic mode needs: mount it with local_lock=none",
				file->name);
	err = mpi_disk_lock(file, mpi_file_writable(file), 0, 1);
	if (!err)
		mpi_disk_unlock(file, 0, 1);
	return err;
}

/* ---- the calls ------------------------------------------------------------------------------- */

int mpi_file_set_atomicity(struct mpi_file *fh, int flag)
{
	int err = flag ? try_lock(fh) : MPI_SUCCESS;

	err = mpi_file_agree(fh->comm, err, flag != 0, "the flag");
	if (!err)
		fh->atomic = flag != 0;
	return err;
}

int mpi_file_get_atomicity(struct mpi_file *fh, int *flag)
{
	*flag = fh->atomic;
	return MPI_SUCCESS;
}
