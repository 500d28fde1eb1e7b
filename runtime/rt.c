/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Finds the launcher and forwards the calls of rt.h to the way that leads to it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "runtime/rt.h"
#include "runtime/rt_backend.h"
#include "runtime/rt_env.h"
#include "runtime/rt_names.h"
#include "runtime/rt_others.h"

/* In the order in which they are tried. */
static const struct rt_backend *const backends[] = {
	[0] = &rt_pmix_backend,
	[BASE_LAUNCHER_PMI2 - BASE_LAUNCHER_PMIX] = &rt_pmi2_backend,
	[BASE_LAUNCHER_PMI1 - BASE_LAUNCHER_PMIX] = &rt_pmi1_backend,
};
enum { N_BACKENDS = sizeof(backends) / sizeof(backends[0]), WHY_SIZE = 1024 };
_Static_assert(BASE_LAUNCHER_PMIX + N_BACKENDS == BASE_LAUNCHER_NONE,
	       "PTL_LAUNCHER names all of them");

/* The outcome of trying each, for rt_list. */
static struct outcome {
	const char *state;
	char why[WHY_SIZE];
} outcomes[N_BACKENDS];

/* lock guards the variables below; the_job, backend and result are constant once tried is set. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool tried, finished;
static int result;
static struct rt_job the_job;
static const struct rt_backend *backend; /* NULL with RT_ENV */

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

void rt_set_id(struct rt_job *job, const char *name)
{
	size_t len = strlen(name);

	if (len < sizeof(job->id))
		memcpy(job->id, name, len + 1);
	else
		snprintf(job->id, sizeof(job->id), "%.46s-%016llx", name,
			 (unsigned long long)fnv1a(name, len, FNV_START));
}

bool rt_is_secret(const char *key)
{
	return !strncmp(key, RT_SECRET_KEY, sizeof(RT_SECRET_KEY) - 1) ||
	       !strncmp(key, RT_MESSAGE_KEY, sizeof(RT_MESSAGE_KEY) - 1);
}

static int be_alone(struct rt_job *job)
{
	backend = &rt_alone_backend;
	return backend->join(job);
}

static void set_env(struct rt_job *job, const struct rt_env *env)
{
	size_t bytes = (size_t)env->size * sizeof(uint32_t);
	uint64_t hash = fnv1a(env->pids, bytes, fnv1a(env->nids, bytes, FNV_START));

	*job = (struct rt_job){ .kind = RT_ENV, .rank = env->rank, .size = env->size };
	snprintf(job->id, sizeof(job->id), "env-%016llx", (unsigned long long)hash);
}

/* ---- discovery ------------------------------------------------------------------------------- */

/* Is this the way that PTL_LAUNCHER names, or any? */
static bool is_wanted(int i)
{
	const long wanted = base_config()->ptl_launcher;

	return wanted == BASE_LAUNCHER_AUTO || wanted == BASE_LAUNCHER_PMIX + i;
}

/* Find the launchers: the number of those that can be seen and may be tried. */
static int find_launchers(void)
{
	int seen = 0;

	for (int i = 0; i < N_BACKENDS; i++) {
		struct outcome *outcome = &outcomes[i];

		if (!is_wanted(i)) {
			outcome->state = "not tried";
			snprintf(outcome->why, sizeof(outcome->why), "PTL_LAUNCHER is set");
		} else if (backends[i]->visible(outcome->why, sizeof(outcome->why))) {
			outcome->state = "seen";
			seen++;
		} else {
			outcome->state = "not seen";
		}
	}
	return seen;
}

/* Try one way; what it warns of is kept, and is printed only if no other is left. */
static int try_backend(int i, bool last, struct rt_job *job)
{
	const size_t before = strlen(base_warnings());
	struct rt_job joined = { .kind = RT_LAUNCHER };
	int err;

	if (!last)
		base_hold_warnings(true);
	err = backends[i]->join(&joined);
	if (err == -ENOENT)
		err = -EPROTO; /* -ENOENT says that there is no launcher */
	if (!last)
		base_hold_warnings(false);
	if (err < 0) {
		const char *why = base_warnings() + before;

		outcomes[i].state = "refused";
		/* empty if it was said of the way before */
		snprintf(outcomes[i].why, sizeof(outcomes[i].why), "%s",
			 why + (before && why[0] == ';' ? 2 : 0));
		return err;
	}
	if (err == RT_NOT_A_RANK) {
		outcomes[i].state = "left alone";
		snprintf(outcomes[i].why, sizeof(outcomes[i].why),
			 "another process of this rank has joined the job");
		return be_alone(job);
	}
	outcomes[i].state = "used";
	*job = joined;
	backend = backends[i];
	return 0;
}

/* Say why the ways before the last one failed, too: their warnings were held. */
static void say_refusals(int last)
{
	for (int i = 0; i < last; i++)
		if (!strcmp(outcomes[i].state, "refused") && *outcomes[i].why &&
		    !base_config()->ptl_quiet && !rt_is_silent())
			base_say("%s", outcomes[i].why);
}

/* Join the job of the first launcher that lets us. -ENOENT: none can be seen. */
static int join_launcher(struct rt_job *job)
{
	int left = find_launchers(), err = -ENOENT, last = 0;

	for (int i = 0; i < N_BACKENDS && left && err; i++) {
		if (strcmp(outcomes[i].state, "seen") != 0)
			continue;
		left--;
		last = i;
		err = try_backend(i, !left, job);
	}
	if (!err)
		base_forget_warnings(); /* of those that refused */
	else if (err != -ENOENT)
		say_refusals(last);
	return err;
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

static int lacks_launcher(void)
{
	const int wanted = base_config()->ptl_launcher - BASE_LAUNCHER_PMIX;

	base_warn("PTL_LAUNCHER=%s asks for a launcher that speaks %s, and there is none: %s. "
		  "Start the process under %s; to run this process alone, set PTL_LAUNCHER=none",
		  backends[wanted]->name, backends[wanted]->name, outcomes[wanted].why,
		  backends[wanted] == &rt_pmix_backend ? "mpirun, prterun or srun --mpi=pmix"
		  : backends[wanted] == &rt_pmi2_backend
			  ? "mpiexec.hydra or srun --mpi=pmi2"
			  : "Postern's mpiexec, mpiexec.hydra or srun --mpi=pmi2");
	return -ENOTCONN;
}

static int discover(struct rt_job *job)
{
	const long wanted = base_config()->ptl_launcher;
	bool described;
	int err;

	if (wanted == BASE_LAUNCHER_NONE) {
		find_launchers();
		return be_alone(job);
	}
	err = join_launcher(job);
	if (err == -ENOENT && wanted != BASE_LAUNCHER_AUTO)
		return lacks_launcher();
	/* a launcher is asked once; wrong variables may be corrected */
	tried = err != -ENOENT;
	if (tried)
		return err;
	err = join_env(job, &described);
	if (err != -ENOENT)
		return err;
	/* if some of the variables are set, the program itself gives the rest */
	err = described ? 0 : rt_check_others();
	return err ? err : be_alone(job);
}

static bool is_child(void)
{
	pid_t pid = atomic_load_explicit(&owner, memory_order_acquire); /* pairs with rt_init */

	return pid && pid != getpid();
}

/* ---- the process's end ----------------------------------------------------------------------- */

static void finish_at_exit(void) __attribute__((destructor));

static _Atomic int exit_status;

static void see_status(int status, void *unused)
{
	(void)unused;
	atomic_store_explicit(&exit_status, status, memory_order_relaxed);
}

/* Learn this process's exit status. Exit functions are not removed with a library that is
 * unloaded, so the one with this code stays from now on. */
static void watch_exit(void)
{
	Dl_info self;

	if (dladdr(&the_job, &self) && self.dli_fname)
		dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
	on_exit(see_status, NULL);
}

int rt_init(const struct rt_job **job)
{
	int err;

	if (is_child())
		return -ECHILD;
	pthread_mutex_lock(&lock);
	if (!tried) {
		result = discover(&the_job);
		tried |= !result || base_config()->ptl_launcher != BASE_LAUNCHER_AUTO;
		/* release: a thread that sees the pid sees the connection (is_child) */
		if (the_job.kind == RT_LAUNCHER && !owner) {
			watch_exit();
			atomic_store_explicit(&owner, getpid(), memory_order_release);
		}
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
	return backend ? backend->put(key, value) : -EOPNOTSUPP;
}

int rt_fence(void)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	return backend ? backend->fence() : -EOPNOTSUPP;
}

int rt_get(int rank, const char *key, char *value, size_t len)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	if (check_kvs_key(key))
		return -EINVAL;
	return backend ? backend->get(rank, key, value, len) : -EOPNOTSUPP;
}

int rt_program(int *number)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	*number = backend && backend->program ? backend->program() : 0;
	return 0;
}

int rt_local(int *rank, int *size)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	return backend ? backend->local(rank, size) : -EOPNOTSUPP;
}

int rt_spawn(const struct rt_command *commands, int n, const char *message, char *why, size_t size)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	*why = '\0';
	if (err)
		return err;
	if (backend && backend->spawn)
		return backend->spawn(commands, n, message, why, size);
	if (job->kind == RT_LAUNCHER && backend)
		snprintf(why, size,
			 "the launcher, found by %s, cannot spawn for this library; mpiexec and "
			 "mpiexec.hydra can",
			 backend->name);
	else
		snprintf(why, size,
			 "no launcher has started this process; start it with mpiexec -n 1");
	return -EOPNOTSUPP;
}

int rt_message(char *text, size_t size)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	return backend && backend->message ? backend->message(text, size) : -ENOENT;
}

int rt_universe(int *size)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	return backend && backend->universe ? backend->universe(size) : -ENOENT;
}

int rt_publish(const char *name, const char *value)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	return backend && backend->publish ? backend->publish(name, value)
					   : rt_names_publish(name, value, getpid());
}

int rt_lookup(const char *name, char *value, size_t size)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	return backend && backend->lookup ? backend->lookup(name, value, size)
					  : rt_names_lookup(name, value, size);
}

int rt_unpublish(const char *name)
{
	const struct rt_job *job;
	int err = job_ready(&job);

	if (err)
		return err;
	return backend && backend->unpublish ? backend->unpublish(name) : rt_names_unpublish(name);
}

void rt_list(void (*show)(const char *name, const char *state, const char *why))
{
	for (int i = 0; i < N_BACKENDS; i++)
		show(backends[i]->name, outcomes[i].state ? outcomes[i].state : "not tried",
		     outcomes[i].why);
}

/* The result of rt_init, if it was called. */
static int known_result(void)
{
	int err;

	pthread_mutex_lock(&lock);
	err = result;
	pthread_mutex_unlock(&lock);
	return err;
}

int rt_abort(int code, const char *message)
{
	const struct rt_job *job;
	int err = known_result();

	/* others of the job that fail alike say why */
	if (message && !(err && rt_is_silent()))
		base_say("%s", message);
	if (!err)
		err = job_ready(&job);
	if (err)
		return err;
	return backend && backend->abort ? backend->abort(code, message) : -EOPNOTSUPP;
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

static void finish(int status)
{
	if (finish_once() && backend)
		backend->fini(status);
}

void rt_fini(void)
{
	finish(RT_LEAVES);
}

static void finish_at_exit(void)
{
	finish(atomic_load_explicit(&exit_status, memory_order_relaxed) & 0xff);
}
