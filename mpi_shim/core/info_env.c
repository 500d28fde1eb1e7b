/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The contents of MPI_INFO_ENV: how the program was started (MPI-4 §10). A key whose value
 * cannot be found out is left out.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "mpi_shim/core/info.h"
#include "mpi_shim/core/world.h"

struct mpi_info mpi_info_env;

/* Appends a word to a list. False: it does not fit and is left out; the caller also leaves out
 * those after it. */
static bool append_word(char *list, size_t size, const char *word)
{
	size_t used = strlen(list), n = strlen(word), gap = used ? 1 : 0;

	if (used + gap + n >= size)
		return false;
	if (gap)
		list[used] = ' ';
	memcpy(list + used + gap, word, n + 1);
	return true;
}

static int put_arguments(struct mpi_info *info, int argc, char *argv[])
{
	char list[MPI_MAX_INFO_VAL] = "";
	int err = MPI_SUCCESS;

	for (int i = 1; i < argc && argv[i] && append_word(list, sizeof(list), argv[i]); i++)
		;
	if (argv[0] && strlen(argv[0]) < MPI_MAX_INFO_VAL)
		err = mpi_info_put(info, "command", argv[0]);
	if (err == MPI_SUCCESS && list[0])
		err = mpi_info_put(info, "argv", list);
	return err;
}

/* Sets the arguments as the system has them: strings one after the other. */
static int put_system_arguments(struct mpi_info *info)
{
	char buf[4096], *argv[64];
	FILE *f = fopen("/proc/self/cmdline", "re");
	size_t n, at = 0;
	int argc = 0;

	if (!f)
		return MPI_SUCCESS;
	n = fread(buf, 1, sizeof(buf) - 1, f);
	fclose(f);
	buf[n] = '\0';
	while (at < n && argc < 64) {
		argv[argc++] = buf + at;
		at += strlen(buf + at) + 1;
	}
	return argc ? put_arguments(info, argc, argv) : MPI_SUCCESS;
}

static int put_system(struct mpi_info *info)
{
	char wdir[PATH_MAX];
	struct utsname u;
	int err = MPI_SUCCESS;

	if (uname(&u) == 0) {
		err = mpi_info_put(info, "host", u.nodename);
		if (err == MPI_SUCCESS)
			err = mpi_info_put(info, "arch", u.machine);
	}
	if (err == MPI_SUCCESS && getcwd(wdir, sizeof(wdir)) && strlen(wdir) < MPI_MAX_INFO_VAL)
		err = mpi_info_put(info, "wdir", wdir);
	return err;
}

const char *mpi_level_name(int level)
{
	switch (level) {
	case MPI_THREAD_SINGLE:
		return "MPI_THREAD_SINGLE";
	case MPI_THREAD_FUNNELED:
		return "MPI_THREAD_FUNNELED";
	case MPI_THREAD_SERIALIZED:
		return "MPI_THREAD_SERIALIZED";
	default:
		return "MPI_THREAD_MULTIPLE";
	}
}

/* Sets the keys that describe the job. Before MPI_Init they are unknown and left out. */
static int put_job(struct mpi_info *info)
{
	char n[16];
	int err;

	if (mpi_world.size <= 0)
		return MPI_SUCCESS;
	snprintf(n, sizeof(n), "%d", mpi_world.size);
	err = mpi_info_put(info, "maxprocs", n);
	if (err == MPI_SUCCESS)
		err = mpi_info_put(info, "soft", n);
	if (err == MPI_SUCCESS)
		err = mpi_info_put(info, "thread_level", mpi_level_name(mpi_world.level));
	return err;
}

int mpi_info_env_fill(int argc, char *argv[], struct mpi_info *info)
{
	int err;

	if (argc > 0 && argv)
		err = put_arguments(info, argc, argv);
	else
		err = put_system_arguments(info);
	if (err == MPI_SUCCESS)
		err = put_system(info);
	if (err == MPI_SUCCESS)
		err = put_job(info);
	return err;
}
