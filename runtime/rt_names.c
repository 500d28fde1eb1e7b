/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The folder is /tmp/postern-names-UID. A file holds the process id of the owner and the value,
 * each on a line. It gets its name by a link when it is complete, which fails if there is one.
 */
#include "runtime/rt_names.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MOST = 250, VALUE_MOST = 4096 };

/* Open the folder, which must be ours alone. Returns the descriptor or -errno. */
static int open_folder(bool make)
{
	struct stat st;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/postern-names-%u", (unsigned int)geteuid());
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 077))
		return fd;
	close(fd);
	return -EPERM;
}

/* The file of a name: letters and digits stay, other bytes become "%XX". */
static int file_of(const char *name, char file[FILE_MOST + 1])
{
	size_t at = 0;

	for (; *name; name++) {
		const bool plain = isalnum((unsigned char)*name);

		if (at + 3 > FILE_MOST)
			return -E2BIG;
		at += (size_t)sprintf(file + at, plain ? "%c" : "%%%02X", (unsigned char)*name);
	}
	if (!at)
		at = (size_t)sprintf(file, "%%");
	file[at] = '\0';
	return 0;
}

/* Read a file: its owner, and its value if that is wanted. */
static int read_file(int folder, const char *file, pid_t *owner, char *value, size_t size)
{
	char text[VALUE_MOST + 64], *end, *line;
	int fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	*owner = (pid_t)strtol(text, &end, 10);
	line = *end == '\n' ? strchr(end + 1, '\n') : NULL;
	if (!line || *owner <= 0)
		return -EPROTO;
	*line = '\0';
	if (value && strlen(end + 1) >= size)
		return -ERANGE;
	if (value)
		strcpy(value, end + 1);
	return 0;
}

static bool is_alive(pid_t owner)
{
	return kill(owner, 0) == 0 || errno != ESRCH;
}

/* Write a file that has no name of a publication yet. */
static int write_file(int folder, const char *file, const char *value, pid_t owner)
{
	int fd, err = 0;

	unlinkat(folder, file, 0); /* of a process that was killed */
	fd = openat(folder, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (dprintf(fd, "%d\n%s\n", (int)owner, value) < 0)
		err = -errno;
	if (close(fd) < 0 && !err)
		err = -errno;
	return err;
}

/* Remove the file of an owner that has ended. */
static bool remove_stale(int folder, const char *file)
{
	pid_t owner;

	return !read_file(folder, file, &owner, NULL, 0) && !is_alive(owner) &&
	       !unlinkat(folder, file, 0);
}

int rt_names_publish(const char *name, const char *value, pid_t owner)
{
	char file[FILE_MOST + 1], fresh[32];
	int err = file_of(name, file), folder;

	if (strlen(value) > VALUE_MOST)
		err = -E2BIG;
	if (err)
		return err;
	folder = open_folder(true);
	if (folder < 0)
		return folder;
	snprintf(fresh, sizeof(fresh), ".new-%d", (int)getpid());
	err = write_file(folder, fresh, value, owner);
	for (int tries = 0; !err && linkat(folder, fresh, folder, file, 0) < 0; tries++) {
		err = -errno;
		if (err == -EEXIST && tries < 2 && remove_stale(folder, file))
			err = 0;
	}
	unlinkat(folder, fresh, 0);
	close(folder);
	return err;
}

int rt_names_lookup(const char *name, char *value, size_t size)
{
	char file[FILE_MOST + 1];
	int err = file_of(name, file), folder;
	pid_t owner;

	if (err)
		return err;
	folder = open_folder(false);
	if (folder < 0)
		return folder;
	err = read_file(folder, file, &owner, value, size);
	close(folder);
	return !err && !is_alive(owner) ? -ENOENT : err;
}

int rt_names_unpublish(const char *name)
{
	char file[FILE_MOST + 1];
	int err = file_of(name, file), folder;

	if (err)
		return err;
	folder = open_folder(false);
	if (folder < 0)
		return folder;
	err = unlinkat(folder, file, 0) < 0 ? -errno : 0;
	close(folder);
	return err;
}

void rt_names_forget(pid_t owner)
{
	const int folder = open_folder(false);
	const struct dirent *entry;
	pid_t other = 0;
	DIR *dir;

	if (folder < 0)
		return;
	dir = fdopendir(folder); /* closes it */
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !read_file(folder, entry->d_name, &other, NULL, 0) &&
		    other == owner)
			unlinkat(folder, entry->d_name, 0);
	if (dir)
		closedir(dir);
	else
		close(folder);
}
