/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The last of three ranks is killed in the middle of an access to a file: the others get an error
 * and not a hang, what they wrote and synchronized is there, and they can close the file.
 * Usage: write|together|ordered|open, for mpiexec --keep-going.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int deadly;

/* Instead of the C library's: the killed rank has begun to write. */
ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	if (deadly && !--deadly)
		raise(SIGKILL);
	return syscall(SYS_pwritev2, fd, iov, (long)n, at, 0L, (long)flags);
}

static int cases, rank;

static void tell(int right, const char *what)
{
	int theirs = 0;

	MPI_Sendrecv(&right, 1, MPI_INT, 1 - rank, 5, &theirs, 1, MPI_INT, 1 - rank, 5,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!right)
		printf("# not on rank %d: %s\n", rank, what);
	if (rank == 0)
		printf("%sok %d - a rank dies: %s\n", right && theirs ? "" : "not ", ++cases, what);
}

static int class_of(int err)
{
	int class = err;

	MPI_Error_class(err, &class);
	return class;
}

/* Blocks of three ranks between each other, in two-phase access: the killed rank is one of those
 * that write for all, in the second round or a later one. */
static int write_together(MPI_File file)
{
	enum { BLOCK = 16, BLOCKS = 20000 };
	char *memory = malloc(BLOCK * BLOCKS);
	MPI_Datatype block, view;
	MPI_Info info;
	int err;

	memset(memory, 'x', BLOCK * BLOCKS);
	MPI_Info_create(&info);
	MPI_Info_set(info, "romio_cb_write", "enable");
	MPI_Info_set(info, "cb_buffer_size", "65536");
	MPI_Type_contiguous(BLOCK, MPI_CHAR, &block);
	MPI_Type_create_resized(block, 0, 3 * BLOCK, &view);
	MPI_Type_commit(&view);
	err = MPI_File_set_view(file, 4096 + BLOCK * rank, MPI_CHAR, view, "native", info);
	if (!err)
		err = MPI_File_write_all(file, memory, BLOCK * BLOCKS, MPI_CHAR, MPI_STATUS_IGNORE);
	MPI_Type_free(&view);
	MPI_Type_free(&block);
	MPI_Info_free(&info);
	free(memory);
	return err;
}

static int read_plainly(const char *path, long at, int *word)
{
	FILE *f = fopen(path, "rb");
	int ok = f && fseek(f, at, SEEK_SET) == 0 && fread(word, sizeof(*word), 1, f) == 1;

	if (f)
		fclose(f);
	return ok;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "write";
	char path[64];
	MPI_File file = MPI_FILE_NULL;
	int data = 4711, back = 0, err, pid = (int)getpid();

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
	snprintf(path, sizeof(path), "/tmp/postern-io-dead-%d", pid);
	MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
	err = MPI_File_write_at_all(file, 4 * rank, &data, 1, MPI_INT, MPI_STATUS_IGNORE);
	if (!err)
		err = MPI_File_sync(file);
	if (rank == 2) {
		deadly = strcmp(way, "together") ? 1 : 2;
		if (!strcmp(way, "open"))
			raise(SIGKILL);
	} else {
		tell(!err, "before that all is well");
	}
	if (!strcmp(way, "open")) {
		MPI_File other;

		err = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &other);
	} else if (!strcmp(way, "together")) {
		err = write_together(file);
	} else if (!strcmp(way, "ordered")) {
		err = MPI_File_write_ordered(file, &data, 1, MPI_INT, MPI_STATUS_IGNORE);
	} else {
		err = MPI_File_write_at_all(file, 100 + 4 * rank, &data, 1, MPI_INT,
					    MPI_STATUS_IGNORE);
	}
	tell(class_of(err) == MPI_ERR_PROC_ABORTED, "the others get an error");
	if (!strcmp(way, "together")) /* the view has other bytes */
		err = !read_plainly(path, 4 * (1 - rank), &back);
	else
		err = MPI_File_read_at(file, 4 * (1 - rank), &back, 1, MPI_INT, MPI_STATUS_IGNORE);
	tell(!err && back == data, "what was synchronized is there");
	err = MPI_File_set_size(file, 1000);
	tell(class_of(err) == MPI_ERR_PROC_ABORTED, "collective calls have errors from then on");
	err = MPI_File_close(&file);
	tell(err == MPI_SUCCESS || class_of(err) == MPI_ERR_PROC_ABORTED, "the file can be closed");
	if (rank == 0) {
		unlink(path);
		printf("1..%d\n", cases);
	}
	MPI_Finalize();
	return 0;
}
