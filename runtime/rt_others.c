/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Recognized by the variables that launchers set, and by what /proc says of this process's
 * ancestors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "runtime/rt_backend.h"
#include "runtime/rt_others.h"

/* ---- launchers without a connection ---------------------------------------------------------- */

/* Slurm's own steps, such as the script of a batch job or the shell of an allocation, have
 * numbers from here on. */
#define SLURM_SPECIAL 0xfffffff0u

static const struct other {
	const char *name;
	const char *rank;    /* set in each of its processes */
	const char *size[2]; /* one of these holds their number */
	const char *remedy;
} others[] = {
	{ "Slurm",
	  "SLURM_PROCID",
	  { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS" },
	  "start the job with srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list shows which it has)" },
	{ "Open MPI",
	  "OMPI_COMM_WORLD_RANK",
	  { "OMPI_COMM_WORLD_SIZE" },
	  "the variables of PMIx got lost on the way: start the process directly under mpirun" },
	{ "PALS",
	  "PALS_RANKID",
	  { "PALS_SIZE" },
	  "start the job with Postern's mpiexec or mpiexec.hydra" },
};

/* Slurm sets a task's number also in the script of a batch job, which is not one of several
 * tasks. */
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

/* The number of processes; 0: it does not say. */
static long tasks_of(const struct other *other)
{
	for (int i = 0; i < 2 && other->size[i]; i++) {
		const char *size = base_config_env(other->size[i]);

		if (size)
			return strtol(size, NULL, 10);
	}
	return 0;
}

static bool is_first(const char *const *names)
{
	for (; *names; names++) {
		const char *number = base_config_env(*names);

		if (number)
			return !strcmp(number, "0");
	}
	return true;
}

static _Atomic bool silent;

int rt_say_once(bool whole_job, int (*check)(void))
{
	static const char *const of_host[] = { "OMPI_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID",
					       "MPI_LOCALRANKID", "SLURM_LOCALID", NULL };
	static const char *const of_job[] = {
		"OMPI_COMM_WORLD_RANK", "PALS_RANKID", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", NULL
	};
	const bool speaks = is_first(whole_job ? of_job : of_host);
	int err;

	if (!speaks)
		base_hold_warnings(true);
	err = check();
	if (!speaks)
		base_hold_warnings(false);
	silent = err && !speaks;
	return err;
}

bool rt_is_silent(void)
{
	return silent;
}

static int refuse_others(void)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const struct other *other = &others[i];

		/* alone here: another launcher may have been started by this one, and may have
		 * started several */
		if (!is_task(other) || tasks_of(other) == 1)
			continue;
		base_warn("%s started this process as one of several (%s is set) and gave it no "
			  "connection to the others; %s, or set PTL_LAUNCHER=none to run it alone",
			  other->name, other->rank, other->remedy);
		return -ENOTSUP;
	}
	return 0;
}

int rt_check_others(void)
{
	return rt_say_once(true, refuse_others);
}

/* ---- what a rank has started ----------------------------------------------------------------- */

enum { ANCESTORS = 100, NAME_SIZE = 64 };

static FILE *open_proc(pid_t pid, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

/* Was this process started with our connection's number, our rank and our PMIx job? Another
 * job's launcher in between changes one of them. */
static bool is_of_rank(pid_t pid)
{
	static const char *const names[] = { "PMI_FD", "PMI_RANK", "PMIX_NAMESPACE" };
	enum { N = sizeof(names) / sizeof(names[0]) };
	FILE *file = open_proc(pid, "environ");
	unsigned wanted = 0, found = 0;
	char *text = NULL;
	size_t size = 0;

	if (!file)
		return false;
	for (int i = 0; i < N; i++)
		wanted |= (unsigned)!!base_config_env(names[i]) << i;
	while (getdelim(&text, &size, '\0', file) > 0)
		for (int i = 0; i < N; i++) {
			const char *own = base_config_env(names[i]);
			size_t len = strlen(names[i]);

			if (own && !strncmp(text, names[i], len) && text[len] == '=' &&
			    !strcmp(text + len + 1, own))
				found |= 1u << i;
		}
	free(text);
	fclose(file);
	return found == wanted;
}

/* The name of the socket that has this number in process `pid`. False: not a socket; the name
 * is then empty. */
static bool socket_of(pid_t pid, int fd, char name[NAME_SIZE])
{
	char path[64], text[NAME_SIZE];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	n = readlink(path, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	if (strncmp(text, "socket:", 7))
		text[0] = '\0';
	snprintf(name, NAME_SIZE, "%s", text);
	return *text;
}

/* Does the process keep that file from the processes it starts? */
static bool keeps(pid_t pid, int fd)
{
	unsigned flags = 0;
	char name[32], line[128];
	FILE *file;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	file = open_proc(pid, name);
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

/* The process that made our socket: the launcher, if it is the connection. 0: none that we can
 * see. */
static pid_t maker_of(int fd)
{
	struct ucred maker = { .pid = 0 };
	socklen_t len = sizeof(maker);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &len) ? 0 : maker.pid;
}

enum finding { NOTHING, OURS, TAKEN };

/* Check pid, the process that started it, and so on, up to the launcher. *top is the last one
 * before the launcher. */
static enum finding look_from(pid_t pid, int fd, pid_t *top)
{
	char ours[NAME_SIZE], theirs[NAME_SIZE];
	const pid_t maker = maker_of(fd);

	socket_of(getpid(), fd, ours);
	for (int i = 0; i < ANCESTORS && pid > 1; i++) {
		/* a launcher that runs in another one's job has the variables, too */
		if (pid == maker)
			return OURS;
		if (!is_of_rank(pid))
			break;
		if (socket_of(pid, fd, theirs) && strcmp(ours, theirs) != 0 && keeps(pid, fd))
			return TAKEN;
		*top = pid;
		pid = parent_of(pid);
	}
	return NOTHING;
}

bool rt_is_taken(int fd)
{
	const pid_t leader = getpgrp();
	pid_t top = getpid(), top_of_leader = 0;
	enum finding found = look_from(getppid(), fd, &top);

	if (found != NOTHING || leader == getpid())
		return found == TAKEN;
	/* our parent may have ended and left this process to the launcher; the rank leads the
	 * process group */
	found = look_from(leader, fd, &top_of_leader);
	if (found != NOTHING || fcntl(fd, F_GETFD) >= 0)
		return found == TAKEN;
	/* or a script leads it, which has started the process that joined */
	return top_of_leader == leader && top != leader && parent_of(top) == parent_of(leader);
}
