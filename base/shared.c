/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Files without a name: see shared.h.
 */
#define _GNU_SOURCE
#include "base/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/config.h"

#define PAGE 4096ull
/* Bytes reserved by one call. File systems in memory abandon the call when a signal comes. */
#define SEGMENT (4ull << 20)

uint64_t base_shared_most(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_FSIZE, &l) < 0 || l.rlim_cur == RLIM_INFINITY)
		return INT64_MAX;
	return l.rlim_cur;
}

static uint64_t total(const struct base_shared_span *soon, unsigned int n)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < n; i++)
		bytes += soon[i].bytes;
	return bytes;
}

/* Bytes left in the file system of a directory. */
static uint64_t room_in(const char *dir)
{
	struct statvfs v;

	if (access(dir, W_OK | X_OK) < 0 || statvfs(dir, &v) < 0)
		return 0;
	return (uint64_t)v.f_bavail * v.f_frsize;
}

/* Reserve all that will be used at once. 0, or -1 with errno. */
static int reserve_all(int fd, const struct base_shared_span *soon, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		int err = base_shared_reserve(fd, soon[i].at, soon[i].bytes);

		if (err) {
			errno = -err;
			return -1;
		}
	}
	return 0;
}

/* Make a file in a directory and delete its name. */
static int make_in(const char *dir, const char *name, uint64_t bytes)
{
	char path[4096];
	int fd, err;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s-XXXXXX", dir, name) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -1;
	unlink(path);
	if (ftruncate(fd, (off_t)bytes) == 0)
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* Make a deleted file in the first directory with enough room: the user's TMPDIR, one in
 * memory, or the usual one. Others take room from it at the same time, so only reserved memory
 * is sure. */
static int make_deleted(const char *name, uint64_t bytes, const struct base_shared_span *soon,
			unsigned int n)
{
	const char *const dirs[] = { base_config()->tmpdir, "/dev/shm", "/tmp" };
	uint64_t need = total(soon, n);
	int fd, err = ENOSPC;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		if (!dirs[i] || room_in(dirs[i]) < need)
			continue;
		fd = make_in(dirs[i], name, bytes);
		if (fd >= 0 && reserve_all(fd, soon, n) == 0)
			return fd;
		err = errno;
		if (fd >= 0)
			close(fd);
	}
	errno = err;
	return -1;
}

int base_shared_make(const char *name, uint64_t bytes, const struct base_shared_span *soon,
		     unsigned int n, char *why, size_t len)
{
	int fd, refused, err;

	if (bytes > base_shared_most()) {
		snprintf(why, len, "%llu bytes are more than `ulimit -f` permits; raise it",
			 (unsigned long long)bytes);
		return -EFBIG;
	}
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	refused = errno;
	if (fd >= 0) {
		if (ftruncate(fd, (off_t)bytes) == 0 &&
		    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
			return fd;
		err = errno;
		snprintf(why, len, "a memfd of %llu bytes: %s", (unsigned long long)bytes,
			 strerror(err));
		close(fd);
		return -err;
	}
	if (refused == EMFILE || refused == ENFILE) {
		snprintf(why, len, "memfd_create: %s; raise `ulimit -n`", strerror(refused));
		return -refused;
	}
	fd = make_deleted(name, bytes, soon, n);
	if (fd >= 0)
		return fd;
	err = errno;
	snprintf(why, len,
		 "memfd_create: %s; and a file of %llu bytes, %llu MiB of them at once, in "
		 "TMPDIR, "
		 "/dev/shm or /tmp: %s; permit memfd_create, or set TMPDIR to where there is room",
		 strerror(refused), (unsigned long long)bytes,
		 (unsigned long long)(total(soon, n) >> 20), strerror(err));
	return -err;
}

bool base_shared_bounded(int fd)
{
	/* files of other kinds in memory have seals, too, but none that prevents shrinking */
	int seals = fcntl(fd, F_GET_SEALS);

	return seals < 0 || !(seals & F_SEAL_SHRINK);
}

/* Write a byte of each page, which has the effect of fallocate. */
static int touch(int fd, uint64_t at, uint64_t bytes)
{
	if (at + bytes > base_shared_most())
		return -EFBIG;
	for (uint64_t k = 0; k < bytes;) {
		ssize_t n = pwrite(fd, "", 1, (off_t)(at + k));

		if (n == 1)
			k += PAGE;
		else if (n == 0)
			return -ENOSPC;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int base_shared_reserve(int fd, uint64_t at, uint64_t bytes)
{
	uint64_t most = SEGMENT, done = 0; /* halved when signals come too fast for a call to end */

	if (!base_shared_bounded(fd))
		return 0;
	while (done < bytes) {
		uint64_t n = bytes - done < most ? bytes - done : most;

		if (fallocate(fd, 0, (off_t)(at + done), (off_t)n) == 0)
			done += n;
		else if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM)
			return touch(fd, at + done, bytes - done);
		else if (errno != EINTR)
			return -errno;
		else if (most > PAGE)
			most /= 2;
	}
	return 0;
}

bool base_shared_sound(int fd, uint64_t bytes)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < bytes)
		return false;
	/* a deleted file of ours can be found only through a descriptor of ours */
	return !base_shared_bounded(fd) || (st.st_nlink == 0 && st.st_uid == geteuid());
}

void *base_shared_map(int fd, uint64_t at, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
			    (off_t)at);

	if (memory == MAP_FAILED)
		return NULL;
	base_shared_hide(memory, bytes);
	return memory;
}

void base_shared_hide(void *at, size_t bytes)
{
	if (!base_config()->ptl_dump_shared)
		madvise(at, bytes, MADV_DONTDUMP);
}

void base_shared_show(void *at, size_t bytes)
{
	uintptr_t start = (uintptr_t)at & ~(uintptr_t)(PAGE - 1);

	if (bytes)
		madvise((void *)start, bytes + ((uintptr_t)at - start), MADV_DODUMP);
}

void base_shared_clear(void *at, size_t bytes, bool bounded)
{
	if (bounded || madvise(at, bytes, MADV_REMOVE) < 0)
		memset(at, 0, bytes);
}
