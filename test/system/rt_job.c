/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A rank for the tests of launchers: `rt_job WHAT [ARG...]` joins the job through runtime/rt.h and
 * does one of the things below. Exits with 0 if all went as WHAT expects, else says what did not.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/rt.h"

static const struct rt_job *job;
static const char *program;

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "rt_job: rank %d: ", job ? job->rank : -1);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(99);
}

static void must(int rc, const char *call)
{
	if (rc)
		fail("%s: %s", call, strerror(-rc));
}

static void must_be(int rc, int expected, const char *call)
{
	if (rc != expected)
		fail("%s gave %d (%s) in place of %d", call, rc, strerror(rc < 0 ? -rc : rc),
		     expected);
}

/* A line at once, in one write. */
static void tell(const char *text)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "rank %d of %d: %s\n", job->rank, job->size, text);

	if (write(1, line, (size_t)n) != n)
		fail("cannot write: %s", strerror(errno));
}

static void whoami(char **args)
{
	(void)args;
	printf("rank %d of %d kind %d job %s\n", job->rank, job->size, job->kind, job->id);
}

/* ROUNDS times: everybody puts, meets, and reads what everybody put. */
static void fence(char **args)
{
	char key[RT_KEY_MAX + 1], value[64], expected[64];

	for (int round = 0; round < atoi(args[0]); round++) {
		snprintf(key, sizeof(key), "round-%d.rank_%d", round, job->rank);
		snprintf(value, sizeof(value), "value %d of rank %d", round, job->rank);
		must(rt_put(key, value), "rt_put");
		must(rt_fence(), "rt_fence");
		for (int rank = 0; rank < job->size; rank++) {
			snprintf(key, sizeof(key), "round-%d.rank_%d", round, rank);
			snprintf(expected, sizeof(expected), "value %d of rank %d", round, rank);
			must(rt_get(rank, key, value, sizeof(value)), "rt_get");
			if (strcmp(value, expected))
				fail("read \"%s\" in place of \"%s\"", value, expected);
		}
	}
	tell("fences done");
}

/* Rank 0 puts a value that nobody may print. */
static void secret(char **args)
{
	char value[64];

	(void)args;
	if (job->rank == 0)
		must(rt_put(RT_SECRET_KEY, "hush"), "rt_put");
	must(rt_fence(), "rt_fence");
	must(rt_get(0, RT_SECRET_KEY, value, sizeof(value)), "rt_get");
	if (strcmp(value, "hush"))
		fail("read \"%s\"", value);
	tell("secret done");
}

/* A text of `len` bytes, of all values but 0. */
static char *make_value(size_t len, int seed)
{
	char *value = malloc(len + 1);

	if (!value)
		fail("out of memory");
	for (size_t i = 0; i < len; i++)
		value[i] = (char)((i * 7 + (size_t)seed) % 255 + 1);
	value[len] = '\0';
	return value;
}

/* Lengths around the launchers' limits, and bytes that have a meaning in the protocol. */
static void values(char **args)
{
	static const size_t lengths[] = {
		0, 1, 300, 339, 340, 341, 1023, 1024, 1025, 5000, 200000
	};
	char key[RT_KEY_MAX + 1];
	char *got = malloc(RT_VALUE_MAX + 1);

	(void)args;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		char *value = make_value(lengths[i], job->rank);

		snprintf(key, sizeof(key), "v%zu.%d", i, job->rank);
		must(rt_put(key, value), "rt_put");
		free(value);
	}
	must(rt_fence(), "rt_fence");
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		int peer = (job->rank + 1) % job->size;
		char *value = make_value(lengths[i], peer);

		snprintf(key, sizeof(key), "v%zu.%d", i, peer);
		must(rt_get(peer, key, got, RT_VALUE_MAX + 1), "rt_get");
		if (strcmp(got, value))
			fail("the value of %zu bytes came back changed", lengths[i]);
		if (lengths[i])
			must_be(rt_get(peer, key, got, lengths[i]), -ERANGE,
				"rt_get to a short buffer");
		free(value);
	}
	must_be(rt_get(0, "nobody", got, 10), -ENOENT, "rt_get of an unknown key");
	must_be(rt_put("no blanks", "x"), -EINVAL, "rt_put of a bad key");
	free(got);
	tell("values done");
}

static void *getter(void *arg)
{
	char key[RT_KEY_MAX + 1], value[64], expected[64];

	for (int i = 0; i < 200; i++) {
		int rank = (i + *(int *)arg) % job->size;

		snprintf(key, sizeof(key), "t.%d", rank);
		snprintf(expected, sizeof(expected), "of %d", rank);
		must(rt_get(rank, key, value, sizeof(value)), "rt_get");
		if (strcmp(value, expected))
			fail("read \"%s\" in place of \"%s\"", value, expected);
	}
	return NULL;
}

/* Several threads read at the same time. */
static void threads(char **args)
{
	pthread_t thread[4];
	int number[4];
	char key[RT_KEY_MAX + 1], value[64];

	(void)args;
	snprintf(key, sizeof(key), "t.%d", job->rank);
	snprintf(value, sizeof(value), "of %d", job->rank);
	must(rt_put(key, value), "rt_put");
	must(rt_fence(), "rt_fence");
	for (int i = 0; i < 4; i++) {
		number[i] = i;
		must(-pthread_create(&thread[i], NULL, getter, &number[i]), "pthread_create");
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	tell("threads done");
}

static void *waiter(void *arg)
{
	(void)arg;
	rt_fence();
	return NULL;
}

static bool is_rank(const char *number)
{
	return job->rank == atoi(number);
}

static void join(void)
{
	must(rt_fence(), "rt_fence");
}

/* RANK dies of SIGNAL while the others wait for it. */
static void crash(char **args)
{
	join();
	if (is_rank(args[0])) {
		raise(atoi(args[1]));
		fail("still alive");
	}
	rt_fence();
	pause();
}

/* RANK exits with CODE while the others wait for it in a fence. */
static void quit(char **args)
{
	join();
	if (is_rank(args[0]))
		_exit(atoi(args[1]));
	rt_fence();
	pause();
}

/* RANK leaves the job in good order while the others still wait for it in a fence. */
static void leave(char **args)
{
	join();
	if (is_rank(args[0]))
		exit(0);
	rt_fence();
	pause();
}

/* RANK exits with CODE by exit(3), and the others wait for nothing that a launcher sees. */
static void give_up(char **args)
{
	join();
	if (is_rank(args[0]))
		exit(atoi(args[1]));
	pause();
}

/* RANK exits with CODE after all have left the job; the others go on to their end. */
static void late(char **args)
{
	join();
	rt_fini();
	must_be(rt_fence(), -ESHUTDOWN, "rt_fence after rt_fini");
	if (is_rank(args[0]))
		exit(atoi(args[1]));
	tell("at its end");
}

/* RANK aborts with CODE, from another thread than the one that waits. */
static void abort_job(char **args)
{
	pthread_t thread;

	join();
	if (!is_rank(args[0])) {
		rt_fence();
		pause();
	}
	must(-pthread_create(&thread, NULL, waiter, NULL), "pthread_create");
	must(rt_abort(atoi(args[1]), "this is the reason"), "rt_abort");
	pause();
}

/* Tells that it is there, and waits for a signal. */
static void wait_here(char **args)
{
	(void)args;
	join();
	tell("waiting");
	for (;;)
		pause();
}

/* Tells of every signal until SIGTERM comes. */
static void signals(char **args)
{
	sigset_t all;
	char text[32];
	int sig = 0;

	(void)args;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	tell("waiting");
	while (sig != SIGTERM) {
		if (sigwait(&all, &sig))
			fail("sigwait");
		snprintf(text, sizeof(text), "got signal %d", sig);
		tell(text);
	}
}

/* A child made by fork must leave the connection alone. */
static void fork_one(char **args)
{
	int status;
	pid_t child;

	(void)args;
	join();
	child = fork();
	if (!child) {
		const struct rt_job *again;

		if (rt_fence() != -ECHILD || rt_init(&again) != -ECHILD)
			_exit(1);
		exit(0); /* its destructor must not leave the job */
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		fail("the child was not refused");
	join();
	tell("fork done");
}

/* A program that a rank starts while it is in the job is no rank, and runs alone, however it is
 * started. */
static void nested(char **args)
{
	char command[4096];

	join();
	if (job->rank == 1) {
		snprintf(command, sizeof(command), args[0], program);
		if (system(command))
			fail("what it started failed");
	}
	join();
	tell("nested done");
}

/* Stays in the fence until the launcher is gone, which must be told as an error. */
static void lose(char **args)
{
	(void)args;
	join();
	if (job->rank == 0) {
		tell("waiting");
		for (;;)
			pause();
	}
	must_be(rt_fence(), -ECONNRESET, "rt_fence without a launcher");
}

static const struct {
	const char *name;
	int args;
	void (*run)(char **args);
} things[] = {
	{ "whoami", 0, whoami },   { "fence", 1, fence },     { "values", 0, values },
	{ "threads", 0, threads }, { "crash", 2, crash },     { "quit", 2, quit },
	{ "give_up", 2, give_up }, { "leave", 1, leave },     { "late", 2, late },
	{ "abort", 2, abort_job }, { "wait", 0, wait_here },  { "fork", 0, fork_one },
	{ "lose", 0, lose },       { "signals", 0, signals }, { "nested", 1, nested },
	{ "secret", 0, secret },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(things) / sizeof(things[0]); i++) {
		if (strcmp(argv[1], things[i].name) || argc - 2 != things[i].args)
			continue;
		program = argv[0];
		if (rt_init(&job))
			return 98;
		things[i].run(argv + 2);
		return 0;
	}
	fprintf(stderr, "usage: rt_job WHAT [ARG...]; see its source\n");
	return 2;
}
