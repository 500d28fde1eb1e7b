/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PMIx launchers: Open MPI's mpirun, prterun, and Slurm's srun --mpi=pmix. Their protocol is that
 * of libpmix, which is loaded when the variables of such a launcher are seen, and never linked.
 * It has a thread of its own, and its calls may be made from any thread.
 */
#include <errno.h>
#include <stdio.h>

#include "base/config.h"
#include "base/log.h"
#include "runtime/rt_backend.h"
#include "runtime/rt_bounded.h"
#include "runtime/rt_claim.h"
#include "runtime/rt_others.h"
#include "runtime/rt_pmi.h"

#define REMEDY                                                                                     \
	"start the job with Postern's mpiexec, with mpiexec.hydra or with srun --mpi=pmi2, or "    \
	"set PTL_LAUNCHER=none to run this process alone"

static bool visible(char *text, size_t size)
{
	const bool seen = base_config_env("PMIX_NAMESPACE") || base_config_env("PMIX_RANK");
	const bool nearer = seen && base_config()->ptl_launcher == BASE_LAUNCHER_AUTO &&
			    (rt_pmi_connected() || rt_pmi_is_taken());

	/* variables go through any number of processes, a socket came from the process that
	 * started this one: a PMI launcher that a PMIx launcher has started, or a rank of it */
	if (nearer)
		snprintf(text, size,
			 "the launcher behind PMI_FD is nearer than that of PMIX_NAMESPACE");
	else
		snprintf(text, size, "PMIX_NAMESPACE is %s", seen ? "set" : "not set");
	return seen && !nearer;
}

#ifdef RT_HAVE_PMIX

#include <dlfcn.h>
#include <pmix.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ANSWER_MS = 60000, ABORT_MS = 10000 }; /* as PMI has */

/* Bit 31 of `calls` says that this process has left; the others count calls under way. */
#define LEFT (1u << 31)

#define PMIX_CALLS(X)                                                                              \
	X(Init)                                                                                    \
	X(Finalize)                                                                                \
	X(Put)                                                                                     \
	X(Commit)                                                                                  \
	X(Fence)                                                                                   \
	X(Get)                                                                                     \
	X(Abort)                                                                                   \
	X(Error_string)                                                                            \
	X(Get_version)

#define CALL_MEMBER(name) __typeof__(PMIx_##name) *name;
static struct {
	PMIX_CALLS(CALL_MEMBER)
} lib;

static pmix_proc_t self;
static _Atomic unsigned calls;
static struct rt_claim claim = { .fd = -1 }; /* says on this host that the rank has joined */

/* ---- the library ----------------------------------------------------------------------------- */

static bool find_symbols(void *handle)
{
#define CALL_SYMBOL(name)                                                                          \
	*(void **)&lib.name = dlsym(handle, "PMIx_" #name);                                        \
	if (!lib.name)                                                                             \
		return false;
	PMIX_CALLS(CALL_SYMBOL)
	return true;
}

static int major_version(const char *text)
{
	while (*text && (*text < '0' || *text > '9'))
		text++;
	return (int)strtol(text, NULL, 10);
}

static int load_pmix(void)
{
	void *handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		base_warn("this process was started by a PMIx launcher (PMIX_NAMESPACE or "
			  "PMIX_RANK is set), and libpmix cannot be loaded: %s. Install it "
			  "(Debian's package libpmix2) or add its folder to LD_LIBRARY_PATH; "
			  "or " REMEDY,
			  dlerror());
	else if (!find_symbols(handle))
		base_warn("this process was started by a PMIx launcher, and libpmix.so.2 is not "
			  "PMIx: %s; " REMEDY,
			  dlerror());
	else if (major_version(lib.Get_version()) < 4)
		base_warn("this process was started by a PMIx launcher, and libpmix is \"%.64s\", "
			  "older than 4; install a newer one, or " REMEDY,
			  lib.Get_version());
	else
		return 0;
	return -ENOTSUP;
}

static int errno_of(pmix_status_t status)
{
	switch (status) {
	case PMIX_SUCCESS:
		return 0;
	case PMIX_ERR_NOT_FOUND:
		return -ENOENT;
	case PMIX_ERR_NOMEM:
		return -ENOMEM;
	case PMIX_ERR_TIMEOUT:
		return -ETIMEDOUT;
	case PMIX_ERR_LOST_CONNECTION:
	case PMIX_ERR_UNREACH:
	case PMIX_ERR_COMM_FAILURE:
		return -ECONNRESET;
	default:
		return -EIO;
	}
}

/* Warn of a call that failed. Returns the negative errno. */
static int pmix_failed(const char *doing, pmix_status_t status)
{
	const int err = errno_of(status);

	if (err == -ECONNRESET)
		base_warn("the connection to the PMIx launcher was lost while this process was "
			  "%s (%s); it has died or ended the job",
			  doing, lib.Error_string(status));
	else
		base_warn("the PMIx launcher failed this process while it was %s: %s", doing,
			  lib.Error_string(status));
	return err;
}

static bool enter(void)
{
	/* acquire: pairs with the release of fini, for a caller that sees LEFT */
	if (!(atomic_fetch_add_explicit(&calls, 1, memory_order_acquire) & LEFT))
		return true;
	atomic_fetch_sub_explicit(&calls, 1, memory_order_release);
	return false;
}

static int leave(int result)
{
	atomic_fetch_sub_explicit(&calls, 1, memory_order_release); /* pairs with fini */
	return result;
}

/* ---- values ---------------------------------------------------------------------------------- */

static pmix_info_t make_flag(const char *key)
{
	pmix_info_t info = { .value = { .type = PMIX_BOOL, .data = { .flag = true } } };

	snprintf(info.key, sizeof(info.key), "%s", key);
	return info;
}

static void free_value(pmix_value_t *value)
{
	if (value->type == PMIX_STRING)
		free(value->data.string);
	free(value);
}

/* A number that the launcher gives for a rank, or for the job (PMIX_RANK_WILDCARD). 0 or -errno. */
static int job_number(pmix_rank_t rank, const char *key, int *number)
{
	pmix_proc_t proc = self;
	pmix_value_t *value = NULL;
	pmix_status_t status;
	int err = 0;

	proc.rank = rank;
	status = lib.Get(&proc, key, NULL, 0, &value);
	if (status != PMIX_SUCCESS || !value)
		return status == PMIX_SUCCESS ? -EPROTO : errno_of(status);
	if (value->type == PMIX_UINT32 && value->data.uint32 <= INT32_MAX)
		*number = (int)value->data.uint32;
	else if (value->type == PMIX_UINT16)
		*number = value->data.uint16;
	else if (value->type == PMIX_INT && value->data.integer >= 0)
		*number = value->data.integer;
	else
		err = -EPROTO;
	free_value(value);
	return err;
}

/* ---- the contract ---------------------------------------------------------------------------- */

static const char *env_text(const char *name)
{
	const char *text = base_config_env(name);

	return text ? text : "";
}

/* The launcher's address: containers may have jobs of one name. */
static const char *server_address(void)
{
	static const char *const names[] = { "PMIX_SERVER_URI41", "PMIX_SERVER_URI4",
					     "PMIX_SERVER_URI3", "PMIX_SERVER_URI2" };
	const char *text = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !*text; i++)
		text = env_text(names[i]);
	return text;
}

/* Take the rank for this process. 0, RT_NOT_A_RANK, or -errno after a warning. */
static int claim_rank(void)
{
	char name[1024];

	snprintf(name, sizeof(name), "pmix %s %s %s", env_text("PMIX_RANK"),
		 env_text("PMIX_NAMESPACE"), server_address());
	return rt_claim(name, &claim);
}

static int check_place(const struct rt_job *job)
{
	const char *space = base_config_env("PMIX_NAMESPACE");

	if (space && !strcmp(space, self.nspace) && job->size > 0 && job->rank >= 0 &&
	    job->rank < job->size)
		return 0;
	base_warn("the PMIx launcher of PMIX_NAMESPACE=%.64s does not answer: libpmix gave this "
		  "process rank %d of %d in a job of its own, \"%.64s\". The variables were left "
		  "by a launcher that is gone; " REMEDY,
		  space ? space : "(unset)", job->rank, job->size, self.nspace);
	return -ENOTCONN;
}

/* The part of joining that waits for the launcher, and what came of it. */
static pmix_status_t init_status;
static int job_size, size_err;

static void ask_launcher(void *unused)
{
	(void)unused;
	init_status = lib.Init(&self, NULL, 0);
	if (init_status == PMIX_SUCCESS)
		size_err = job_number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &job_size);
}

static void leave_launcher(void *unused)
{
	(void)unused;
	if (init_status == PMIX_SUCCESS)
		lib.Finalize(NULL, 0);
}

/* Call libpmix, which knows no bound of its own. */
static int init_pmix(void)
{
	const int err = rt_bounded(ask_launcher, leave_launcher, NULL, ANSWER_MS);

	if (err == -ETIMEDOUT)
		base_warn("the PMIx launcher (PMIX_NAMESPACE=%.64s) has not answered this process "
			  "for %d s: it is stopped (continue it with kill -CONT), or something "
			  "else has its address; " REMEDY,
			  env_text("PMIX_NAMESPACE"), ANSWER_MS / 1000);
	else if (err)
		base_warn("cannot start the thread that asks the PMIx launcher: %s; raise the "
			  "limit (ulimit -u), or " REMEDY,
			  strerror(-err));
	if (err || init_status == PMIX_SUCCESS)
		return err;
	base_warn("the PMIx launcher (PMIX_NAMESPACE=%.64s) refused this process: %s. If "
		  "it is gone, or this is another program of a rank that has left, " REMEDY,
		  env_text("PMIX_NAMESPACE"), lib.Error_string(init_status));
	return -ECONNREFUSED;
}

static int connect_launcher(struct rt_job *job)
{
	int err = init_pmix();

	if (err)
		return err;
	if (size_err) {
		base_warn("the PMIx launcher does not say how many ranks the job has; " REMEDY);
		err = -EPROTO;
	}
	job->rank = (int)self.rank;
	job->size = job_size;
	if (!err)
		err = check_place(job);
	if (err) {
		lib.Finalize(NULL, 0);
		return err;
	}
	job->gets_are_local = true;
	rt_set_id(job, self.nspace);
	return 0;
}

static int join(struct rt_job *job)
{
	int err = rt_say_once(false, load_pmix);

	if (!err)
		err = claim_rank();
	if (err)
		return err;
	err = connect_launcher(job);
	if (err)
		rt_unclaim(&claim);
	return err;
}

static void show_call(const char *what, const char *key, const char *value)
{
	if (base_config()->ptl_pmi_debug)
		base_say("pmix %s %s %.200s", what, key,
			 rt_is_secret(key) && *value ? "(secret)" : value);
}

static int put(const char *key, const char *value)
{
	pmix_value_t text = { .type = PMIX_STRING };
	pmix_status_t status;

	show_call("put", key, value);
	if (!enter())
		return -ESHUTDOWN;
	text.data.string = (char *)(uintptr_t)value; /* is copied */
	status = lib.Put(PMIX_GLOBAL, key, &text);
	return leave(status == PMIX_SUCCESS ? 0 : pmix_failed("publishing a value", status));
}

/* All data go to all hosts in this one collective. */
static int fence(void)
{
	const pmix_info_t collect = make_flag(PMIX_COLLECT_DATA);
	pmix_status_t status;

	show_call("fence", "", "");
	if (!enter())
		return -ESHUTDOWN;
	status = lib.Commit();
	if (status == PMIX_SUCCESS)
		status = lib.Fence(NULL, 0, &collect, 1);
	return leave(status == PMIX_SUCCESS ? 0 : pmix_failed("waiting in a fence", status));
}

/* Copy a text that the launcher gave. */
static int take_text(const pmix_value_t *got, char *value, size_t len)
{
	if (got->type != PMIX_STRING || !got->data.string)
		return -EPROTO;
	if (strlen(got->data.string) >= len)
		return -ERANGE;
	strcpy(value, got->data.string);
	return 0;
}

static int get(int rank, const char *key, char *value, size_t len)
{
	/* what is not here after a fence does not come later */
	const pmix_info_t now = make_flag(PMIX_IMMEDIATE);
	pmix_proc_t proc = self;
	pmix_value_t *got = NULL;
	pmix_status_t status;
	int err;

	if (!enter())
		return -ESHUTDOWN;
	proc.rank = (pmix_rank_t)rank;
	status = lib.Get(&proc, key, &now, 1, &got);
	if (status == PMIX_SUCCESS && got)
		err = take_text(got, value, len);
	else if (errno_of(status) == -ENOENT)
		err = -ENOENT;
	else
		err = pmix_failed("reading a value", status);
	if (got)
		free_value(got);
	show_call("get", key, err ? strerror(-err) : value);
	return leave(err);
}

static int program(void)
{
	int number = 0;

	if (!enter())
		return 0;
	if (job_number(self.rank, PMIX_APPNUM, &number))
		number = 0;
	return leave(number);
}

static int local(int *rank, int *size)
{
	int err;

	if (!enter())
		return -ESHUTDOWN;
	err = job_number(self.rank, PMIX_LOCAL_RANK, rank);
	if (!err)
		err = job_number(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE, size);
	return leave(err);
}

struct abort_call {
	pmix_status_t status;
	int code;
	char message[];
};

static void call_abort(void *arg)
{
	struct abort_call *call = arg;

	call->status = lib.Abort(call->code, call->message, NULL, 0);
}

/* A launcher that is stopped does not answer, and this process is to end. */
static int abort_by_pmix(int code, const char *message)
{
	const size_t len = message ? strlen(message) + 1 : 1;
	struct abort_call *call = malloc(sizeof(*call) + len);
	int err;

	if (!call)
		return -ENOMEM;
	call->code = code;
	memcpy(call->message, message ? message : "", len);
	if (!enter()) {
		free(call);
		return -ESHUTDOWN;
	}
	err = rt_bounded(call_abort, free, call, ABORT_MS);
	if (err && err != -ETIMEDOUT) { /* no thread can be had */
		call_abort(call);
		err = 0;
	}
	if (!err) {
		err = errno_of(call->status);
		free(call);
	}
	return leave(err);
}

/* Have other threads left their calls? Waits for them for a second. */
static bool others_left(void)
{
	const struct timespec step = { .tv_nsec = 1000000 };

	for (int i = 0; i < 1000; i++) {
		/* acquire: pairs with leave */
		if (atomic_load_explicit(&calls, memory_order_acquire) == LEFT)
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

static void fini(int status)
{
	atomic_fetch_or_explicit(&calls, LEFT, memory_order_acq_rel); /* pairs with enter */
	/* a thread that waits in a fence that cannot end now keeps the library; the launcher sees
	 * this process's end */
	if (status <= 0 && others_left())
		lib.Finalize(NULL, 0);
	rt_unclaim(&claim);
}

const struct rt_backend rt_pmix_backend = {
	.name = "pmix",
	.visible = visible,
	.join = join,
	.put = put,
	.fence = fence,
	.get = get,
	.program = program,
	.local = local,
	.abort = abort_by_pmix,
	.fini = fini,
};

#else

static int lacks_pmix(void)
{
	base_warn("this process was started by a PMIx launcher (PMIX_NAMESPACE or PMIX_RANK is "
		  "set), and Postern was built without PMIx; install libpmix-dev and build it "
		  "again with -Dpmix=enabled, or " REMEDY);
	return -ENOTSUP;
}

static int join(struct rt_job *job)
{
	(void)job;
	return rt_say_once(false, lacks_pmix);
}

const struct rt_backend rt_pmix_backend = { .name = "pmix", .visible = visible, .join = join };

#endif
