/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Opening a file, by all ranks of a communicator together, closing and deleting it.
 *
 * A file that is created is created by rank 0, before the others open it: so MPI_MODE_EXCL and
 * permissions work as for one process. When one rank cannot open the file none has it, and a file
 * that this call has created is removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/comm/comm.h"
#include "mpi_shim/comm/creation.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/node.h"
#include "mpi_shim/core/progress.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/io/calls.h"
#include "mpi_shim/io/io.h"

/* ---- agreement ------------------------------------------------------------------------------- */

int mpi_file_agree(struct mpi_comm *comm, int err, int64_t same, const char *what)
{
	int64_t word[3] = { mpi_error_class_of(err), same, ~same };
	int rc;

	if (comm->size == 1)
		return err;
	rc = mpi_coll_allreduce_max(word, 3, comm);
	if (err || rc)
		return err ? err : rc;
	if (word[0])
		return mpi_fail((int)word[0], "another rank failed: %s",
				mpi_error_text((int)word[0]));
	if (word[1] != ~word[2])
		return mpi_fail(MPI_ERR_NOT_SAME, "%s differs among the ranks of the file", what);
	return MPI_SUCCESS;
}

/* ---- the object ------------------------------------------------------------------------------ */

/* EINTR: the descriptor is closed all the same. */
static int close_descriptor(struct mpi_file *file)
{
	int rc = file->fd >= 0 ? close(file->fd) : 0;

	file->fd = -1;
	return rc == 0 || errno == EINTR ? MPI_SUCCESS
					 : mpi_disk_error(file->name, "closing", errno);
}

static void destroy_file(void *object)
{
	struct mpi_file *file = object;

	close_descriptor(file);
	mpi_twophase_end(file);
	mpi_view_end(&file->view);
	mpi_object_release(file->handler);
	mpi_object_release(file->info);
	mpi_object_release(file->comm);
	free(file->name);
	free(file->path);
	free(file->parts);
}

__attribute__((constructor(201))) static void set_up_files(void)
{
	mpi_pool_setup(MPI_KIND_FILE, sizeof(struct mpi_file), destroy_file);
}

static char *absolute_path(const char *name)
{
	char *here, *path = NULL;

	if (name[0] == '/')
		return strdup(name);
	here = getcwd(NULL, 0);
	if (here && asprintf(&path, "%s/%s", here, name) < 0)
		path = NULL;
	free(here);
	return path;
}

/* Makes the object, without a descriptor. The communicator is the file's own. NULL: out of memory,
 * with the communicator released. */
static struct mpi_file *file_new(struct mpi_comm *own, const char *name, int amode)
{
	struct mpi_file *file = mpi_object_new(MPI_KIND_FILE);

	if (!file) {
		mpi_object_release(own);
		mpi_fail_memory("a file");
		return NULL;
	}
	file->comm = own;
	file->fd = -1;
	file->amode = amode;
	file->handler = mpi_file_new_handler();
	mpi_view_default(&file->view);
	file->name = strdup(name);
	file->path = absolute_path(name);
	file->parts = malloc(mpi_transfer_parts(own));
	if (file->name && file->path && file->parts)
		return file;
	mpi_object_release(file);
	mpi_fail_memory("a file");
	return NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

enum {
	MODE_ACCESS = MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY,
	MODE_ALL = MODE_ACCESS | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE |
		   MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND
};

static int check_amode(int amode)
{
	int access = amode & MODE_ACCESS;

	if (amode & ~MODE_ALL)
		return mpi_fail(MPI_ERR_AMODE, "the access mode %d has unknown bits", amode);
	if (access != MPI_MODE_RDONLY && access != MPI_MODE_RDWR && access != MPI_MODE_WRONLY)
		return mpi_fail(MPI_ERR_AMODE,
				"the access mode must have exactly one of MPI_MODE_RDONLY, "
				"MPI_MODE_RDWR and MPI_MODE_WRONLY");
	if (access == MPI_MODE_RDONLY && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)))
		return mpi_fail(MPI_ERR_AMODE, "MPI_MODE_RDONLY cannot be used with "
					       "MPI_MODE_CREATE or MPI_MODE_EXCL");
	if (access == MPI_MODE_RDWR && (amode & MPI_MODE_SEQUENTIAL))
		return mpi_fail(MPI_ERR_AMODE,
				"MPI_MODE_RDWR cannot be used with MPI_MODE_SEQUENTIAL");
	return MPI_SUCCESS;
}

/* An attempt of this rank. */
struct attempt {
	struct mpi_file *file;
	unsigned int permissions;
	bool created; /* by this rank: the file was not there */
	/* Of a created file that its owner may not read and write, until all ranks have opened it;
	 * else 0. */
	mode_t mode;
	uint64_t identity;
};

/* Takes the descriptor, unless it is of something that cannot be read and written at any place. */
static int take_descriptor(struct attempt *t, int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	t->file->fd = fd;
	if (fstat(fd, &st) != 0 || flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
		return mpi_disk_error(t->file->name, "opening", errno);
	if (S_ISDIR(st.st_mode))
		return mpi_disk_error(t->file->name, "opening", EISDIR);
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		return mpi_disk_error(t->file->name, "opening", ESPIPE);
	t->identity = (uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 40;
	return MPI_SUCCESS;
}

/* Without O_NONBLOCK a pipe would wait for its other end. */
static int open_as_asked(struct attempt *t, int more)
{
	int amode = t->file->amode, flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK | more, fd;

	flags |= amode & MPI_MODE_RDONLY ? O_RDONLY : amode & MPI_MODE_WRONLY ? O_WRONLY : O_RDWR;
	do
		fd = open(t->file->path, flags, t->permissions);
	while (fd < 0 && errno == EINTR);
	return fd;
}

/* The other ranks open the created file, too, whatever `file_perm` says. */
static void let_others_open(struct attempt *t, int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && (st.st_mode & 0600) != 0600 &&
	    fchmod(fd, (st.st_mode & 07777) | 0600) == 0)
		t->mode = st.st_mode & 07777;
}

/* Rank 0 of a file that may be created. */
static int create_file(struct attempt *t)
{
	int fd = open_as_asked(t, O_CREAT | O_EXCL);

	t->created = fd >= 0;
	if (t->created)
		let_others_open(t, fd);
	if (fd < 0 && errno == EEXIST && !(t->file->amode & MPI_MODE_EXCL))
		fd = open_as_asked(t, O_CREAT);
	if (fd < 0)
		return mpi_disk_error(t->file->name, "creating", errno);
	return take_descriptor(t, fd);
}

static int open_existing(struct attempt *t)
{
	int fd = open_as_asked(t, 0);

	if (fd < 0)
		return mpi_disk_error(t->file->name, "opening", errno);
	return take_descriptor(t, fd);
}

bool mpi_file_on_one_node(const struct mpi_comm *comm)
{
	for (int i = 0; i < comm->size; i++)
		if (!mpi_is_here(mpi_group_world(comm->local, i)))
			return false;
	return true;
}

/* Opens the file on all ranks, or on none. The name must be of the same file everywhere; that can
 * be checked on one node. */
static int open_together(struct attempt *t)
{
	struct mpi_comm *comm = t->file->comm;
	bool creates = t->file->amode & MPI_MODE_CREATE;
	int err = MPI_SUCCESS;
	int64_t identity = 0;

	if (creates && comm->rank == 0)
		err = create_file(t);
	if (creates)
		err = mpi_file_agree(comm, err, 0, "");
	if (!err && (!creates || comm->rank != 0))
		err = open_existing(t);
	if (mpi_file_on_one_node(comm))
		identity = (int64_t)(t->identity & INT64_MAX);
	err = mpi_file_agree(comm, err, err ? 0 : identity, "the file that the name leads to");
	if (t->mode)
		fchmod(t->file->fd, t->mode);
	return err;
}

/* The file pointers of a file that is appended to. */
static int go_to_end(struct mpi_file *file)
{
	int64_t bytes = 0;
	int err;

	if (!(file->amode & MPI_MODE_APPEND))
		return MPI_SUCCESS;
	err = mpi_disk_size(file, &bytes);
	file->position = file->own_shared = bytes;
	return err;
}

/* The file cannot be opened on all ranks. */
static void undo_open(struct attempt *t)
{
	struct stat st;

	if (t->created && fstat(t->file->fd, &st) == 0 && st.st_size == 0)
		unlink(t->file->path);
	mpi_object_release(t->file);
}

/* Makes the file's own communicator, of the same group and without attributes. */
static int comm_of_file(struct mpi_comm *comm, struct mpi_comm **own)
{
	struct mpi_creation creation = mpi_creation_of(comm);
	uint32_t context[2] = { 0 };
	int err = mpi_creation_contexts(&creation, MPI_SUCCESS, 1, context);

	return err ? err : mpi_comm_make_agreed(context, comm->local, NULL, comm, own);
}

static int end_open(const struct mpi_file *file, int err)
{
	mpi_file_raise(MPI_EVENT_FILE_END, file, MPI_EVENT_FILE_OPEN, err);
	return err;
}

int mpi_file_open(struct mpi_comm *comm, const char *filename, int amode, struct mpi_info *info,
		  struct mpi_file **fh)
{
	struct attempt t = { .permissions = mpi_hints_permissions(info) };
	struct mpi_comm *own = NULL;
	int err;

	if (comm->inter)
		return mpi_fail(MPI_ERR_COMM, "the communicator is an intercommunicator");
	mpi_file_raise(MPI_EVENT_FILE_BEGIN, NULL, MPI_EVENT_FILE_OPEN, MPI_SUCCESS);
	err = comm_of_file(comm, &own);
	if (err)
		return end_open(NULL, err);
	err = check_amode(amode);
	if (!err && filename[0] == '\0')
		err = mpi_fail(MPI_ERR_BAD_FILE, "the name of the file is empty");
	t.file = file_new(mpi_object_keep(own), filename, amode);
	if (!err)
		err = t.file ? mpi_hints_take(t.file, info) : MPI_ERR_NO_MEM;
	err = mpi_file_agree(own, err, amode, "the access mode");
	if (!err)
		err = open_together(&t);
	if (!err) /* on all ranks */
		err = mpi_shared_open(t.file, go_to_end(t.file));
	if (err && t.file)
		undo_open(&t);
	else
		*fh = t.file;
	mpi_object_release(own);
	return end_open(err ? NULL : t.file, err);
}

/* ---- closing --------------------------------------------------------------------------------- */

static int delete_closed(struct mpi_file *file, int err)
{
	if (file->comm->rank == 0 && unlink(file->path) != 0 && !err)
		err = mpi_disk_error(file->name, "deleting", errno);
	return mpi_file_agree(file->comm, err, 0, "");
}

int mpi_file_close(struct mpi_file **fh)
{
	struct mpi_file *file = *fh;
	int err;

	if (file->split.kind != MPI_SPLIT_NONE)
		return mpi_fail(MPI_ERR_OTHER, "a split collective has begun and not ended");
	mpi_file_raise(MPI_EVENT_FILE_BEGIN, file, MPI_EVENT_FILE_CLOSE, MPI_SUCCESS);
	while (file->flights)
		mpi_progress(true);
	mpi_shared_close(file, false);
	err = close_descriptor(file);
	err = mpi_file_agree(file->comm, err, 0, "");
	if (file->amode & MPI_MODE_DELETE_ON_CLOSE)
		err = delete_closed(file, err);
	mpi_file_raise(MPI_EVENT_FILE_END, file, MPI_EVENT_FILE_CLOSE, err);
	if (err)
		mpi_file_closed_badly(file);
	mpi_object_retire(&file->obj);
	mpi_object_release(file);
	*fh = NULL;
	return err;
}

int mpi_file_delete(const char *filename, struct mpi_info *info)
{
	(void)info; /* no hint matters */
	if (unlink(filename) != 0)
		return mpi_disk_error(filename, "deleting", errno);
	return MPI_SUCCESS;
}

void mpi_files_fini(bool all)
{
	struct mpi_file *file;

	if (all)
		mpi_uring_fini();
	for (uint32_t i = 0; (file = mpi_pool_at(MPI_KIND_FILE, i)); i++) {
		if (!file->obj.handle || (!all && file->comm->session))
			continue;
		mpi_shared_close(file, true);
		mpi_object_release(file);
	}
	if (!all)
		return;
	mpi_file_handler_fini();
	mpi_datareps_fini();
}
