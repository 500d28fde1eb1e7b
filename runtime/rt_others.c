/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * By the variables that launchers set, and by what /proc says of this process's ancestors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "runtime/rt_others.h"

/* ---- launchers without a connection ---------------------------------------------------------- */

/* Slurm's own steps, such as the script of a batch job or the shell of an allocation, have numbers from here on. */
#define SLURM_SPECIAL 0xfffffff0u

static const struct other {
	const char *name;
	const char *rank;    /* this is set in each of its processes */
	const char *size[2]; /* and their number in one of these */
	const char *remedy;
} others[] = {
	{ "Slurm",
	  "SLURM_PROCID",
	  { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS" },
	  "start the job with srun --mpi=pmi2" },
	{ "Open MPI",
	  "OMPI_COMM_WORLD_RANK",
	  { "OMPI_COMM_WORLD_SIZE" },
	  "start the job with Postern's mpiexec" },
	{ "PALS",
	  "PALS_RANKID",
	  { "PALS_SIZE" },
	  "start the job with Postern's mpiexec or mpiexec.hydra" },
};

/* Slurm sets a task's number in the script of a batch job, too, where nothing is of several. */
static bool is_task(const struct other *other)
{
	const char *step;

	if (!base_config_env(other->rank))
		return false;
	if (strcmp(other->rank, "SLURM_PROCID"))
		return true;
	step = base_config_env("SLURM_STEP_ID");
	return step && strtoul(step, NULL, 10) < SLURM_SPECIAL;
}

/* How many processes there are; 0: it does not say. */
static long tasks_of(const struct other *other)
{
	for (int i = 0; i < 2 && other->size[i]; i++) {
		const char *size = base_config_env(other->size[i]);

		if (size)
			return strtol(size, NULL, 10);
	}
	return 0;
}

int rt_check_others(void)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const struct other *other = &others[i];
		long tasks;

		if (!is_task(other))
			continue;
		tasks = tasks_of(other);
		if (tasks == 1)
			return 0;
		base_warn(
			"this process is number %.16s of those that %s started (%s is set), which "
			"gave it no connection to the others; %s, or unset %s to run it alone",
			base_config_env(other->rank), other->name, other->rank, other->remedy,
			other->rank);
		return -ENOTSUP;
	}
	if (!base_config_env("PMIX_NAMESPACE") && !base_config_env("PMIX_RANK"))
		return 0;
	base_warn(
		"this process was started by a PMIx launcher (PMIX_NAMESPACE or PMIX_RANK is set), "
		"which is not supported; start the job with Postern's mpiexec, with mpiexec.hydra "
		"or "
		"with srun --mpi=pmi2, or unset PMIX_NAMESPACE and PMIX_RANK to run this process "
		"alone");
	return -ENOTSUP;
}

/* ---- what a rank has started ----------------------------------------------------------------- */

enum { ANCESTORS = 100 };

static FILE *open_proc(pid_t pid, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

/* Was this process started with the variable as that connection? */
static bool has_variable(pid_t pid, int fd)
{
	FILE *file = open_proc(pid, "environ");
	char wanted[32], *text = NULL;
	bool found = false;
	size_t size = 0;

	if (!file)
		return false;
	snprintf(wanted, sizeof(wanted), "PMI_FD=%d", fd);
	while (!found && getdelim(&text, &size, '\0', file) > 0)
		found = !strcmp(text, wanted);
	free(text);
	fclose(file);
	return found;
}

/* Has it a socket of this number that it keeps from what it starts? */
static bool keeps_socket(pid_t pid, int fd)
{
	static const char kind[] = "socket:";
	char path[64], target[sizeof(kind)] = "";
	unsigned flags = 0;
	char line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	if (readlink(path, target, sizeof(kind) - 1) != sizeof(kind) - 1 || strcmp(target, kind))
		return false;
	snprintf(path, sizeof(path), "fdinfo/%d", fd);
	file = open_proc(pid, path);
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "flags: %o", &flags) == 1)
			break;
	fclose(file);
	return flags & O_CLOEXEC;
}

static pid_t parent_of(pid_t pid)
{
	FILE *file = open_proc(pid, "status");
	char line[128];
	int parent = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "PPid: %d", &parent) == 1)
			break;
	fclose(file);
	return parent;
}

bool rt_is_taken(int fd)
{
	pid_t pid = getppid();

	/* from the launcher on nobody has the variable */
	for (int i = 0; i < ANCESTORS && pid > 1 && has_variable(pid, fd); i++) {
		if (keeps_socket(pid, fd))
			return true;
		pid = parent_of(pid);
	}
	return false;
}
