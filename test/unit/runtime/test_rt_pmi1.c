/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The PMI-1 client against launchers that are small, slow, wrong or dying. Each case has a thread
 * that plays the launcher on the other end of a socket pair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/rt.h"
#include "runtime/rt_pmi1.h"

enum { PAIRS = 1024 };

struct launcher {
	/* how it behaves */
	int key_max, value_max;
	const char *on;     /* at requests that begin with this ... */
	const char *answer; /* ... it says this; NULL: closes the connection */
	bool drip;          /* sends byte by byte */
	bool drops;         /* all but the first line of what it reads, as Slurm's does */
	int late_ms;        /* before that answer, of time in which it is not held still */
	/* what it has seen */
	char keys[PAIRS][64], values[PAIRS][128];
	int n_pairs;
	size_t longest;
	bool finalized, aborted;

	int fds[2]; /* [0] the client's */
	pthread_t thread;
	struct rt_pmi1 pmi;
};

static void pass_ms(int ms)
{
	struct timespec one = { .tv_nsec = 1000000 };

	while (ms--)
		nanosleep(&one, NULL);
}

static void say(struct launcher *l, const char *text)
{
	size_t step = l->drip ? 1 : strlen(text);

	for (size_t i = 0; i < strlen(text); i += step)
		if (send(l->fds[1], text + i, step, MSG_NOSIGNAL) < 0)
			return;
}

static void store(struct launcher *l, const char *line)
{
	assert_true(l->n_pairs < PAIRS);
	assert_int_equal(sscanf(line, "cmd=put kvsname=kvs key=%63s value=%127s",
				l->keys[l->n_pairs], l->values[l->n_pairs]),
			 2);
	if (strlen(l->values[l->n_pairs]) > l->longest)
		l->longest = strlen(l->values[l->n_pairs]);
	l->n_pairs++;
	say(l, "cmd=put_result rc=0 msg=success\n");
}

static void look_up(struct launcher *l, const char *line)
{
	char key[64], answer[256];

	assert_int_equal(sscanf(line, "cmd=get kvsname=kvs key=%63s", key), 1);
	for (int i = 0; i < l->n_pairs; i++) {
		if (strcmp(l->keys[i], key))
			continue;
		snprintf(answer, sizeof(answer), "cmd=get_result rc=0 msg=success value=%s\n",
			 l->values[i]);
		say(l, answer);
		return;
	}
	say(l, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}

/* False: the connection is to be closed. */
static bool answer_line(struct launcher *l, const char *line)
{
	char text[128];

	if (l->on && !strncmp(line, l->on, strlen(l->on))) {
		pass_ms(l->late_ms);
		if (l->answer)
			say(l, l->answer);
		return l->answer;
	}
	if (!strncmp(line, "cmd=init ", 9)) {
		say(l, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
	} else if (!strcmp(line, "cmd=get_maxes")) {
		snprintf(text, sizeof(text),
			 "cmd=maxes kvsname_max=256 keylen_max=%d vallen_max=%d\n", l->key_max,
			 l->value_max);
		say(l, text);
	} else if (!strcmp(line, "cmd=get_appnum")) {
		say(l, "cmd=appnum appnum=3\n");
	} else if (!strcmp(line, "cmd=get_my_kvsname")) {
		say(l, "cmd=my_kvsname kvsname=kvs\n");
	} else if (!strncmp(line, "cmd=put ", 8)) {
		store(l, line);
	} else if (!strncmp(line, "cmd=get ", 8)) {
		look_up(l, line);
	} else if (!strcmp(line, "cmd=barrier_in")) {
		say(l, "cmd=barrier_out\n");
	} else if (!strcmp(line, "cmd=finalize")) {
		l->finalized = true;
		say(l, "cmd=finalize_ack\n");
	} else if (!strcmp(line, "cmd=abort exitcode=9")) {
		l->aborted = true;
		return false;
	} else {
		return false;
	}
	return true;
}

/* The next request is what a read gives of it, and before it is answered, what else has come is
 * thrown away. */
static bool read_first(const struct launcher *l, char *line, size_t size)
{
	struct pollfd more = { .fd = l->fds[1], .events = POLLIN };
	ssize_t n = recv(l->fds[1], line, size - 1, 0);
	char dropped[256];

	if (n <= 0)
		return false;
	line[n] = '\0';
	while (poll(&more, 1, 50) > 0)
		if (recv(l->fds[1], dropped, sizeof(dropped), 0) <= 0)
			return false;
	return true;
}

static void *launcher_main(void *arg)
{
	struct launcher *l = arg;
	FILE *in = fdopen(dup(l->fds[1]), "r");
	char line[8192];

	while (l->drops ? read_first(l, line, sizeof(line))
			: fgets(line, sizeof(line), in) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (!answer_line(l, line))
			break;
	}
	fclose(in);
	shutdown(l->fds[1], SHUT_RDWR);
	return NULL;
}

static struct launcher *start(void)
{
	struct launcher *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->key_max = 64;
	l->value_max = 100;
	return l;
}

static int join(struct launcher *l)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, l->fds), 0);
	assert_int_equal(pthread_create(&l->thread, NULL, launcher_main, l), 0);
	return rt_pmi1_init(&l->pmi, l->fds[0], false);
}

/* Ends the launcher; what it has seen may be looked at afterwards. */
static void stop(struct launcher *l)
{
	close(l->fds[0]);
	pthread_join(l->thread, NULL);
	close(l->fds[1]);
}

static void values_are_split_and_joined(void **state)
{
	struct launcher *l = start();
	char value[3001], back[3001];

	(void)state;
	l->value_max = 24;
	assert_int_equal(join(l), 0);
	for (size_t len = 0; len <= 3000; len = len * 2 + 1) {
		char key[16];

		for (size_t i = 0; i < len; i++)
			value[i] = (char)(i % 255 + 1);
		value[len] = '\0';
		snprintf(key, sizeof(key), "k%zu", len);
		assert_int_equal(rt_pmi1_put(&l->pmi, key, value), 0);
		assert_int_equal(rt_pmi1_get(&l->pmi, key, back, sizeof(back)), 0);
		assert_string_equal(value, back);
		assert_int_equal(rt_pmi1_get(&l->pmi, key, back, len), -ERANGE);
	}
	rt_pmi1_fini(&l->pmi);
	stop(l);
	assert_in_range(l->longest, 20, 23); /* the limit counts a terminator */
	assert_true(l->finalized);
	free(l);
}

/* The joined segment is good, from here to the end. */
static void works_and_ends(struct launcher *l)
{
	char back[64];

	assert_int_equal(rt_pmi1_put(&l->pmi, "key", "some value"), 0);
	assert_int_equal(rt_pmi1_fence(&l->pmi), 0);
	assert_int_equal(rt_pmi1_get(&l->pmi, "key", back, sizeof(back)), 0);
	assert_string_equal(back, "some value");
	rt_pmi1_fini(&l->pmi);
	stop(l);
	assert_true(l->finalized);
	free(l);
}

static void answers_may_come_in_pieces(void **state)
{
	struct launcher *l = start();

	(void)state;
	l->drip = true;
	assert_int_equal(join(l), 0);
	works_and_ends(l);
}

static void keys_longer_than_the_launcher_stores_are_refused(void **state)
{
	struct launcher *l = start();
	char back[8];

	(void)state;
	l->key_max = 11;
	assert_int_equal(join(l), 0);
	assert_int_equal(rt_pmi1_put(&l->pmi, "0123456789", "x"), 0);
	assert_int_equal(rt_pmi1_put(&l->pmi, "0123456789a", "x"), -EINVAL);
	assert_int_equal(rt_pmi1_get(&l->pmi, "0123456789a", back, sizeof(back)), -EINVAL);
	rt_pmi1_fini(&l->pmi);
	stop(l);
	free(l);
}

/* join() against a launcher that answers `on` with `answer`. */
static void joining_gives(const char *on, const char *answer, int expected)
{
	struct launcher *l = start();

	l->on = on;
	l->answer = answer;
	assert_int_equal(join(l), expected);
	if (!expected)
		rt_pmi1_fini(&l->pmi);
	stop(l);
	free(l);
}

static void joining_fails_with_the_reason(void **state)
{
	(void)state;
	joining_gives("cmd=init", NULL, -ECONNRESET);
	joining_gives("cmd=init", "hello\n", -EPROTO);
	joining_gives("cmd=init", "cmd=barrier_out\n", -EPROTO);
	joining_gives("cmd=init", "cmd=response_to_init rc=-1 msg=no\n", -ECONNREFUSED);
	joining_gives("cmd=init", "cmd=response_to_init rc=-1\n", -ECONNREFUSED);
	joining_gives(
		"cmd=init",
		"cmd=finalize_ack\ncmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n", 0);
	joining_gives("cmd=get_maxes", "cmd=finalize_ack\n", -EPROTO);
	joining_gives("cmd=get_maxes", NULL, -ECONNRESET);
	joining_gives("cmd=get_maxes", "cmd=maxes kvsname_max=9 keylen_max=2 vallen_max=9\n",
		      -EPROTO);
	joining_gives("cmd=get_maxes",
		      "cmd=maxes kvsname_max=9 keylen_max=-5 vallen_max=-2147483648\n", -EPROTO);
	joining_gives("cmd=get_my_kvsname", "cmd=my_kvsname\n", -EPROTO);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	char answer[400] = "cmd=my_kvsname kvsname=";
	size_t len = strlen(answer);

	(void)state;
	memset(answer + len, 'x', 257);
	answer[len + 257] = '\n';
	joining_gives("cmd=get_my_kvsname", answer, -EPROTO);
	answer[len + 256] = '\n';
	answer[len + 257] = '\0';
	joining_gives("cmd=get_my_kvsname", answer, 0);
}

static void one_request_is_under_way_at_a_time(void **state)
{
	struct launcher *l = start();

	(void)state;
	l->drops = true;
	assert_int_equal(join(l), 0);
	assert_int_equal(l->pmi.program, 3);
	works_and_ends(l);
}

/* The meaning of a launcher's answer to the question for the program's number. */
static void the_number_is(const char *answer, int expected)
{
	struct launcher *l = start();

	l->on = answer ? "cmd=get_appnum" : NULL;
	l->answer = answer;
	assert_int_equal(join(l), 0);
	assert_int_equal(l->pmi.program, expected);
	works_and_ends(l);
}

static void a_launcher_need_not_know_of_programs(void **state)
{
	(void)state;
	the_number_is(NULL, 3);
	the_number_is("", 0);
	the_number_is("cmd=appnum rc=-1\n", 0);
	the_number_is("cmd=error msg=unknown_command\n", 0);
	the_number_is("what?\n", 0);
	joining_gives("cmd=get_appnum", "cmd=no\ncmd=no\n", -EPROTO);
	joining_gives("cmd=get_appnum", NULL, -ECONNRESET);
}

/* One that has others answer for it may be late. */
static void the_number_of_the_program_may_come_late(void **state)
{
	struct launcher *l = start();

	(void)state;
	l->on = "cmd=get_appnum";
	l->answer = "";
	assert_int_equal(join(l), 0);
	say(l, "cmd=appnum appnum=2\n");
	assert_int_equal(rt_pmi1_fence(&l->pmi), 0);
	assert_int_equal(l->pmi.program, 2);
	say(l, "cmd=appnum appnum=2\n");
	assert_int_equal(rt_pmi1_fence(&l->pmi), -EPROTO);
	rt_pmi1_fini(&l->pmi);
	stop(l);
	free(l);
}

static void the_launchers_death_ends_a_fence(void **state)
{
	struct launcher *l = start();
	char back[8];

	(void)state;
	l->on = "cmd=barrier_in";
	assert_int_equal(join(l), 0);
	assert_int_equal(rt_pmi1_fence(&l->pmi), -ECONNRESET);
	/* and everything after it */
	assert_int_equal(rt_pmi1_fence(&l->pmi), -ECONNRESET);
	assert_int_equal(rt_pmi1_put(&l->pmi, "key", "x"), -ECONNRESET);
	assert_int_equal(rt_pmi1_get(&l->pmi, "key", back, sizeof(back)), -ECONNRESET);
	rt_pmi1_fini(&l->pmi);
	assert_int_equal(rt_pmi1_fence(&l->pmi), -ESHUTDOWN);
	stop(l);
	free(l);
}

/* get against a launcher that answers `answer`. */
static void reading_gives(const char *answer, int expected)
{
	struct launcher *l = start();
	char back[8];

	l->on = "cmd=get ";
	l->answer = answer;
	assert_int_equal(join(l), 0);
	assert_int_equal(rt_pmi1_get(&l->pmi, "key", back, sizeof(back)), expected);
	rt_pmi1_fini(&l->pmi);
	stop(l);
	free(l);
}

/* A job that is held still, launcher and all, has lost nothing. */
static void standing_still_is_not_the_launchers_silence(void **state)
{
	enum { PATIENCE_MS = 3000 };
	struct launcher *l = start();
	int status;
	pid_t pid;

	(void)state;
	l->on = "cmd=barrier_in";
	l->answer = "cmd=barrier_out\n";
	l->late_ms = PATIENCE_MS / 10;
	pid = fork();
	if (!pid) {
		int err = join(l);

		l->pmi.link.timeout_ms = PATIENCE_MS;
		_exit(err || rt_pmi1_fence(&l->pmi) ? 1 : 0);
	}
	pass_ms(PATIENCE_MS / 20);
	kill(pid, SIGSTOP);
	pass_ms(PATIENCE_MS + PATIENCE_MS / 10);
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	free(l);
}

static void wrong_values_are_refused(void **state)
{
	(void)state;
	reading_gives("cmd=get_result rc=0 msg=success value=1:abc\n", 0);
	reading_gives("cmd=get_result rc=-1 msg=x value=1:abc\n", -ENOENT);
	reading_gives("cmd=get_result rc=0 msg=success\n", -ENOENT);
	reading_gives("cmd=get_result rc=0 msg=success value=\n", -EPROTO);
	reading_gives("cmd=get_result rc=0 msg=success value=abc\n", -EPROTO);
	reading_gives("cmd=get_result rc=0 msg=success value=:abc\n", -EPROTO);
	reading_gives("cmd=get_result rc=0 msg=success value=0:abc\n", -EPROTO);
	reading_gives("cmd=get_result rc=0 msg=success value=10000:abc\n", -EPROTO);
	reading_gives("cmd=get_result rc=0 msg=success value=99999999999:abc\n", -EPROTO);
	reading_gives("cmd=get_result rc=0 msg=success value=1:a~0\n", -EPROTO);
	reading_gives("cmd=get_result rc=0 msg=success value=1:a=b\n", -EPROTO);
	reading_gives("cmd=get_result rc=0 msg=success value=1:12345678\n", -ERANGE);
	reading_gives("nonsense\n", -EPROTO);
	reading_gives("cmd=put_result rc=0\n", -EPROTO);
}

static void a_line_without_end_is_refused(void **state)
{
	size_t len = RT_LINK_MAX + 10;
	char *endless = malloc(len + 1);

	(void)state;
	assert_non_null(endless);
	memset(endless, 'x', len);
	endless[len] = '\0';
	reading_gives(endless, -EMSGSIZE);
	free(endless);
}

static void a_refused_put_is_told(void **state)
{
	struct launcher *l = start();

	(void)state;
	l->on = "cmd=put ";
	l->answer = "cmd=put_result rc=-1 msg=duplicate_key\n";
	assert_int_equal(join(l), 0);
	assert_int_equal(rt_pmi1_put(&l->pmi, "key", "x"), -EIO);
	assert_int_equal(rt_pmi1_fence(&l->pmi), 0); /* the connection is still good */
	rt_pmi1_fini(&l->pmi);
	stop(l);
	free(l);
}

static void a_refused_fence_is_told(void **state)
{
	struct launcher *l = start();

	(void)state;
	l->on = "cmd=barrier_in";
	l->answer = "cmd=barrier_out rc=-1 msg=out_of_memory\n";
	assert_int_equal(join(l), 0);
	assert_int_equal(rt_pmi1_fence(&l->pmi), -EIO);
	assert_int_equal(rt_pmi1_put(&l->pmi, "key", "x"), 0); /* the connection is still good */
	rt_pmi1_fini(&l->pmi);
	stop(l);
	free(l);
}

static void *wait_in_fence(void *arg)
{
	struct launcher *l = arg;

	return (void *)(intptr_t)rt_pmi1_fence(&l->pmi);
}

static void an_abort_goes_out_while_a_fence_waits(void **state)
{
	struct launcher *l = start();
	pthread_t waiter;
	void *result;

	(void)state;
	l->on = "cmd=barrier_in";
	l->answer = ""; /* never */
	assert_int_equal(join(l), 0);
	assert_int_equal(pthread_create(&waiter, NULL, wait_in_fence, l), 0);
	/* whether the fence has been entered by then or not */
	assert_int_equal(rt_pmi1_abort(&l->pmi, 9), 0);
	pthread_join(waiter, &result);
	assert_int_equal((intptr_t)result, -ECONNRESET);
	rt_pmi1_fini(&l->pmi);
	stop(l);
	assert_true(l->aborted);
	assert_false(l->finalized);
	free(l);
}

/* A launcher that is stopped takes no more bytes. */
static void a_full_socket_is_given_up(void **state)
{
	struct rt_link link;
	char text[64];
	int fds[2];

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(rt_link_open(&link, fds[0], false), 0);
	while (send(fds[0], text, sizeof(text), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	assert_int_equal(rt_link_send(&link, text, sizeof(text), 20), -ETIMEDOUT);
	rt_link_release(&link);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_split_and_joined),
		cmocka_unit_test(answers_may_come_in_pieces),
		cmocka_unit_test(keys_longer_than_the_launcher_stores_are_refused),
		cmocka_unit_test(joining_fails_with_the_reason),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
		cmocka_unit_test(one_request_is_under_way_at_a_time),
		cmocka_unit_test(a_launcher_need_not_know_of_programs),
		cmocka_unit_test(the_number_of_the_program_may_come_late),
		cmocka_unit_test(the_launchers_death_ends_a_fence),
		cmocka_unit_test(standing_still_is_not_the_launchers_silence),
		cmocka_unit_test(wrong_values_are_refused),
		cmocka_unit_test(a_line_without_end_is_refused),
		cmocka_unit_test(a_refused_put_is_told),
		cmocka_unit_test(a_refused_fence_is_told),
		cmocka_unit_test(a_full_socket_is_given_up),
		cmocka_unit_test(an_abort_goes_out_while_a_fence_waits),
	};

	setenv("PTL_QUIET", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
