/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Finds the launcher and forwards the calls of rt.h to it. A process that is alone answers them
 * from a list of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "runtime/rt.h"
#include "runtime/rt_env.h"
#include "runtime/rt_others.h"
#include "runtime/rt_pmi1.h"

#define REMEDY "to run this process alone, set PTL_LAUNCHER=none"

struct pair {
	struct pair *next;
	char *value;
	char key[]; /* with its terminator */
};

/* lock guards the variables below; the_job, pmi and result are constant once tried is set. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool tried, finished;
static int result;
static struct rt_job the_job;
static struct rt_pmi1 pmi;
static struct pair *pairs; /* alone: what was put */

/*
 * The process that joined a launcher's job, 0 before. A child made by fork must not speak in
 * its name: it sees here that it is another process. Without a launcher there is nothing to
 * protect.
 */
static _Atomic pid_t owner;

static uint64_t fnv1a(const void *data, size_t len, uint64_t hash)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3;
	return hash;
}

#define FNV_START 0xcbf29ce484222325

/* The name if it fits, else its start and a hash of the whole name. */
static void set_id(struct rt_job *job, const char *name)
{
	size_t len = strlen(name);

	if (len < sizeof(job->id))
		memcpy(job->id, name, len + 1);
	else
		snprintf(job->id, sizeof(job->id), "%.46s-%016llx", name,
			 (unsigned long long)fnv1a(name, len, FNV_START));
}

static void set_alone(struct rt_job *job)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*job = (struct rt_job){ .kind = RT_ALONE, .rank = 0, .size = 1 };
	snprintf(job->id, sizeof(job->id), "alone-%d-%llx", (int)getpid(),
		 (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec);
}

static void set_env(struct rt_job *job, const struct rt_env *env)
{
	size_t bytes = (size_t)env->size * sizeof(uint32_t);
	uint64_t hash = fnv1a(env->pids, bytes, fnv1a(env->nids, bytes, FNV_START));

	*job = (struct rt_job){ .kind = RT_ENV, .rank = env->rank, .size = env->size };
	snprintf(job->id, sizeof(job->id), "env-%016llx", (unsigned long long)hash);
}

static bool is_socket(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISSOCK(st.st_mode);
}

static bool pmi1_visible(void)
{
	return base_config_env("PMI_FD") || base_config_env("PMI_RANK") ||
	       base_config_env("PMI_SIZE") || base_config_env("PMI_PORT");
}

/* Is fd usable as the connection to a launcher? */
static int check_fd(long fd)
{
	if (fcntl((int)fd, F_GETFD) < 0) {
		base_warn(
			"PMI_FD=%ld is no open file (%m): whatever started this process closed the "
			"connection to the launcher, as sudo does. Start it directly under the "
			"launcher; " REMEDY,
			fd);
		return -EBADF;
	}
	if (!is_socket((int)fd)) {
		base_warn("PMI_FD=%ld is no socket, so no launcher is behind it; " REMEDY, fd);
		return -ENOTSOCK;
	}
	return 0;
}

/* Warn about launcher variables without a usable PMI_FD: which one was seen, and why it cannot
 * be used. */
static int no_connection(void)
{
	const char *fd = base_config_env("PMI_FD");
	const char *port = base_config_env("PMI_PORT");

	if (fd)
		base_warn("PMI_FD=\"%.32s\" is no file number; " REMEDY, fd);
	else if (port)
		base_warn("the launcher waits for connections (PMI_PORT=%.64s), which is not "
			  "supported; start the job without -pmi-port, or with Postern's mpiexec",
			  port);
	else if (pmi1_visible())
		base_warn("PMI_RANK or PMI_SIZE is set but PMI_FD is not: the connection to the "
			  "launcher got lost on the way. Start the process directly under the "
			  "launcher; " REMEDY);
	else
		base_warn("PTL_LAUNCHER=pmi1 asks for a launcher that speaks PMI-1, and none of "
			  "its variables is set. Start the process under Postern's mpiexec, "
			  "Hydra or srun --mpi=pmi2; " REMEDY);
	return -ENOTCONN;
}

static int check_numbers(const struct base_config *cfg)
{
	if (base_config_is_set("PMI_RANK") && base_config_is_set("PMI_SIZE") &&
	    cfg->pmi_rank >= 0 && cfg->pmi_size > 0 && cfg->pmi_rank < cfg->pmi_size)
		return 0;
	base_warn(
		"PMI_FD is set, but PMI_RANK=%ld and PMI_SIZE=%ld name no rank of a job; start the "
		"process directly under the launcher, or " REMEDY,
		cfg->pmi_rank, cfg->pmi_size);
	return -EINVAL;
}

static int join_pmi1(struct rt_job *job)
{
	const struct base_config *cfg = base_config();
	int fd, err;

	if (!base_config_is_set("PMI_FD") || cfg->pmi_fd < 0)
		return no_connection();
	/* a rank has started this program, with its own variables but without its connection */
	if (rt_is_taken((int)cfg->pmi_fd)) {
		set_alone(job);
		return 0;
	}
	err = check_numbers(cfg);
	if (!err)
		err = check_fd(cfg->pmi_fd);
	if (err)
		return err;
	fd = (int)cfg->pmi_fd;
	/* processes that this one starts must not speak to the launcher in its name */
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	err = rt_pmi1_init(&pmi, fd, cfg->ptl_pmi_debug);
	if (err)
		return err;
	*job = (struct rt_job){ .kind = RT_PMI1,
				.rank = (int)cfg->pmi_rank,
				.size = (int)cfg->pmi_size };
	set_id(job, pmi.kvsname);
	return 0;
}

static int join_env(struct rt_job *job, bool *described)
{
	const char *missing, *found;
	struct rt_env *env;
	int err = rt_env_read(&env, &missing, &found);

	*described = found;
	if (err)
		return err;
	set_env(job, env);
	rt_env_destroy(env);
	return 0;
}

static int discover(struct rt_job *job)
{
	long wanted = base_config()->ptl_launcher;
	bool described;
	int err;

	if (wanted == BASE_LAUNCHER_NONE) {
		set_alone(job);
		return 0;
	}
	if (wanted == BASE_LAUNCHER_PMI1 || pmi1_visible())
		return join_pmi1(job);
	err = join_env(job, &described);
	if (err != -ENOENT)
		return err;
	/* if some of the variables are set, the program itself gives the rest */
	err = described ? 0 : rt_check_others();
	if (!err)
		set_alone(job);
	return err;
}

static bool is_child(void)
{
	pid_t pid = atomic_load_explicit(&owner, memory_order_acquire); /* pairs with rt_init */

	return pid && pid != getpid();
}

static void finish_at_exit(void) __attribute__((destructor));

int rt_init(const struct rt_job **job)
{
	int err;

	if (is_child())
		return -ECHILD;
	pthread_mutex_lock(&lock);
	if (!tried) {
		result = discover(&the_job);
		/* a launcher is asked once; wrong variables may be corrected */
		tried = !result || base_config()->ptl_launcher == BASE_LAUNCHER_PMI1 ||
			pmi1_visible();
		/* release: a thread that sees the pid sees the connection (is_child) */
		if (the_job.kind == RT_PMI1)
			atomic_store_explicit(&owner, getpid(), memory_order_release);
	}
	err = result;
	pthread_mutex_unlock(&lock);
	if (!err)
		*job = &the_job;
	return err;
}

/* May this process make the call? Joins the job if necessary, and returns it. */
static int job_ready(const struct rt_job **job)
{
	if (is_child()) {
		base_warn("a child made by fork cannot take part in its parent's job");
		return -ECHILD;
	}
	return rt_init(job);
}

static int check_kvs_key(const char *key)
{
	size_t len =
		strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

	return len && !key[len] && len <= RT_KEY_MAX ? 0 : -EINVAL;
}

static struct pair *find_published(const char *key)
{
	struct pair *pair = pairs;

	while (pair && strcmp(pair->key, key))
		pair = pair->next;
	return pair;
}

static int put_alone(const char *key, const char *value)
{
	struct pair *pair = malloc(sizeof(*pair) + strlen(key) + 1);
	int err = -ENOMEM;

	if (!pair)
		return err;
	pair->value = strdup(value);
	strcpy(pair->key, key);
	pthread_mutex_lock(&lock);
	if (finished)
		err = -ESHUTDOWN;
	else if (find_published(key))
		err = -EEXIST;
	else if (pair->value)
		err = 0;
	if (!err) {
		pair->next = pairs;
		pairs = pair;
	}
	pthread_mutex_unlock(&lock);
	if (err) {
		free(pair->value);
		free(pair);
	}
	return err;
}

static int get_alone(const char *key, char *value, size_t len)
{
	struct pair *pair;
	int err = 0;

	pthread_mutex_lock(&lock);
	pair = find_published(key);
	if (finished)
		err = -ESHUTDOWN;
	else if (!pair)
		err = -ENOENT;
	else if (strlen(pair->value) >= len)
		err = -ERANGE;
	else
		strcpy(value, pair->value);
	pthread_mutex_unlock(&lock);
	return err;
}

static int fence_alone(void)
{
	int err;

	pthread_mutex_lock(&lock);
	err = finished ? -ESHUTDOWN : 0;
	pthread_mutex_unlock(&lock);
	return err;
}

int rt_put(const char *key, const char *value)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	if (check_kvs_key(key))
		return -EINVAL;
	if (strlen(value) > RT_VALUE_MAX)
		return -E2BIG;
	if (job->kind == RT_PMI1)
		return rt_pmi1_put(&pmi, key, value);
	return job->kind == RT_ALONE ? put_alone(key, value) : -EOPNOTSUPP;
}

int rt_fence(void)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	if (job->kind == RT_PMI1)
		return rt_pmi1_fence(&pmi);
	return job->kind == RT_ALONE ? fence_alone() : -EOPNOTSUPP;
}

int rt_get(const char *key, char *value, size_t len)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	if (check_kvs_key(key))
		return -EINVAL;
	if (job->kind == RT_PMI1)
		return rt_pmi1_get(&pmi, key, value, len);
	return job->kind == RT_ALONE ? get_alone(key, value, len) : -EOPNOTSUPP;
}

int rt_program(int *number)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	*number = job->kind == RT_PMI1 ? pmi.program : 0;
	return 0;
}

int rt_abort(int code, const char *message)
{
	const struct rt_job *job;
	int err;

	if (message)
		base_say("%s", message);
	err = job_ready(&job);
	if (err)
		return err;
	return job->kind == RT_PMI1 ? rt_pmi1_abort(&pmi, code) : -EOPNOTSUPP;
}

/* Set finished. True for the one call that did it, in a process that has joined a job. */
static bool finish_once(void)
{
	bool first;

	if (is_child())
		return false;
	pthread_mutex_lock(&lock);
	first = tried && !result && !finished;
	finished |= first;
	pthread_mutex_unlock(&lock);
	return first;
}

void rt_fini(void)
{
	if (finish_once() && the_job.kind == RT_PMI1)
		rt_pmi1_fini(&pmi);
}

static void finish_at_exit(void)
{
	pmi.at_exit = true;
	rt_fini();
}
