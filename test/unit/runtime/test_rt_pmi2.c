/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The PMI-2 client against launchers that are slow, wrong or dying. Each case has a thread that
 * plays the launcher on the other end of a socket pair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/pmi2_wire.h"
#include "runtime/rt.h"
#include "runtime/rt_pmi2.h"

enum { PAIRS = 64 };

struct launcher {
	/* how it behaves */
	const char *on;     /* at requests that begin with this ... */
	const char *answer; /* ... it says this, as it is; NULL: closes the connection */
	bool drip;          /* sends byte by byte */
	/* what it has seen */
	char keys[PAIRS][80], values[PAIRS][1100];
	int n_pairs;
	bool finalized;
	char aborted[128];

	int fds[2]; /* [0] the client's */
	pthread_t thread;
	struct rt_pmi2 pmi;
};

static void say(struct launcher *l, const char *text)
{
	size_t step = l->drip ? 1 : strlen(text);

	for (size_t i = 0; i < strlen(text); i += step)
		if (send(l->fds[1], text + i, step, MSG_NOSIGNAL) < 0)
			return;
}

static void say_block(struct launcher *l, const char *body)
{
	char text[1400];

	snprintf(text, sizeof(text), "%-6zu%s", strlen(body), body);
	say(l, text);
}

static void store(struct launcher *l, const char *body)
{
	assert_true(l->n_pairs < PAIRS);
	assert_int_equal(sscanf(body, "cmd=kvs-put;key=%79[^;];value=%1099[^;];",
				l->keys[l->n_pairs], l->values[l->n_pairs]),
			 2);
	l->n_pairs++;
	say_block(l, "cmd=kvs-put-response;rc=0;");
}

static void look_up(struct launcher *l, const char *body)
{
	char key[80], answer[1300];

	assert_int_equal(sscanf(body, "cmd=kvs-get;srcid=-1;jobid=job.7;key=%79[^;];", key), 1);
	for (int i = 0; i < l->n_pairs; i++) {
		if (strcmp(l->keys[i], key) != 0)
			continue;
		snprintf(answer, sizeof(answer), "cmd=kvs-get-response;rc=0;found=TRUE;value=%s;",
			 l->values[i]);
		say_block(l, answer);
		return;
	}
	say_block(l, "cmd=kvs-get-response;rc=0;found=FALSE;");
}

/* False: the connection is to be closed. */
static bool answer_to(struct launcher *l, const char *text)
{
	if (l->on && !strncmp(text, l->on, strlen(l->on))) {
		if (l->answer)
			say(l, l->answer);
		return l->answer;
	}
	if (!strcmp(text, "cmd=init pmi_version=2 pmi_subversion=0"))
		say(l, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n");
	else if (!strcmp(text, "cmd=fullinit;pmirank=1;pmijobid=job;threaded=FALSE;"))
		say_block(l, "cmd=fullinit-response;rc=0;rank=1;size=3;appnum=2;");
	else if (!strcmp(text, "cmd=job-getid;"))
		say_block(l, "cmd=job-getid-response;jobid=job.7;rc=0;");
	else if (!strncmp(text, "cmd=kvs-put;", 12))
		store(l, text);
	else if (!strncmp(text, "cmd=kvs-get;", 12))
		look_up(l, text);
	else if (!strcmp(text, "cmd=kvs-fence;"))
		say_block(l, "cmd=kvs-fence-response;rc=0;");
	else if (!strcmp(text, "cmd=info-getjobattr;key=PMI_process_mapping;"))
		say_block(l,
			  "cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,2,2));rc=0;");
	else if (!strncmp(text, "cmd=abort;", 10))
		snprintf(l->aborted, sizeof(l->aborted), "%.100s", text);
	else if (!strcmp(text, "cmd=finalize;")) {
		l->finalized = true;
		say_block(l, "cmd=finalize-response;rc=0;");
	} else
		return false;
	return true;
}

static bool read_block(FILE *in, char *text, size_t size)
{
	char head[PMI2_HEAD + 1] = "";
	int len;

	if (fread(head, 1, PMI2_HEAD, in) != PMI2_HEAD)
		return false;
	len = pmi2_length(head);
	assert_true(len > 0 && (size_t)len < size);
	text[len] = '\0';
	return fread(text, 1, (size_t)len, in) == (size_t)len;
}

static void *launcher_main(void *arg)
{
	struct launcher *l = arg;
	FILE *in = fdopen(dup(l->fds[1]), "r");
	char text[8192];

	if (fgets(text, sizeof(text), in)) {
		text[strcspn(text, "\n")] = '\0';
		while (answer_to(l, text) && read_block(in, text, sizeof(text)))
			;
	}
	fclose(in);
	shutdown(l->fds[1], SHUT_RDWR);
	return NULL;
}

static int join(struct launcher *l)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, l->fds), 0);
	assert_int_equal(pthread_create(&l->thread, NULL, launcher_main, l), 0);
	return rt_pmi2_init(&l->pmi, l->fds[0], 1, "job", false);
}

static struct launcher *start(void)
{
	struct launcher *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	return l;
}

/* Ends the launcher; what it has seen may be looked at afterwards. */
static void stop(struct launcher *l)
{
	close(l->fds[0]);
	pthread_join(l->thread, NULL);
	close(l->fds[1]);
}

static void works_and_ends(struct launcher *l)
{
	char value[3001], back[3001];
	int rank, size;

	assert_int_equal(l->pmi.rank, 1);
	assert_int_equal(l->pmi.size, 3);
	assert_int_equal(l->pmi.program, 2);
	assert_string_equal(l->pmi.jobid, "job.7");
	for (int i = 0; i < 3000; i++)
		value[i] = (char)(i % 255 + 1);
	value[3000] = '\0';
	assert_int_equal(rt_pmi2_put(&l->pmi, "key", value), 0);
	assert_int_equal(rt_pmi2_fence(&l->pmi), 0);
	assert_int_equal(rt_pmi2_get(&l->pmi, "key", back, sizeof(back)), 0);
	assert_string_equal(value, back);
	assert_int_equal(rt_pmi2_get(&l->pmi, "key", back, 3000), -ERANGE);
	assert_int_equal(rt_pmi2_get(&l->pmi, "other", back, sizeof(back)), -ENOENT);
	assert_int_equal(rt_pmi2_local(&l->pmi, &rank, &size), 0);
	assert_int_equal(rank, 1);
	assert_int_equal(size, 2);
	rt_pmi2_fini(&l->pmi);
	assert_int_equal(rt_pmi2_fence(&l->pmi), -ESHUTDOWN);
	stop(l);
	assert_true(l->finalized);
	assert_true(l->n_pairs > 3);
	free(l);
}

static void a_job_puts_meets_and_gets(void **state)
{
	struct launcher *l = start();

	(void)state;
	assert_int_equal(join(l), 0);
	works_and_ends(l);
}

static void answers_may_come_in_pieces(void **state)
{
	struct launcher *l = start();

	(void)state;
	l->drip = true;
	assert_int_equal(join(l), 0);
	works_and_ends(l);
}

static void joining_gives(const char *on, const char *answer, int expected)
{
	struct launcher *l = start();

	l->on = on;
	l->answer = answer;
	assert_int_equal(join(l), expected);
	if (!expected)
		rt_pmi2_fini(&l->pmi);
	stop(l);
	free(l);
}

static void a_launcher_of_pmi1_is_told_from_one_that_fails(void **state)
{
	(void)state;
	joining_gives("cmd=init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n",
		      -EPROTONOSUPPORT);
	joining_gives("cmd=init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
		      -EPROTONOSUPPORT);
	joining_gives("cmd=init", "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1\n",
		      -ECONNREFUSED);
	joining_gives("cmd=init", "HTTP/1.1 400 Bad Request\n", -EPROTO);
	joining_gives("cmd=init", NULL, -ECONNRESET);
}

static void wrong_places_are_refused(void **state)
{
	(void)state;
	joining_gives("cmd=fullinit", "39    cmd=fullinit-response;rank=3;size=3;x=;", -EPROTO);
	joining_gives("cmd=fullinit", "40    cmd=fullinit-response;rank=-1;size=3;x=;", -EPROTO);
	joining_gives("cmd=fullinit", "39    cmd=fullinit-response;rank=0;size=0;x=;", -EPROTO);
	joining_gives("cmd=fullinit", "41    cmd=fullinit-response;rank=0;size=1;rc=9;", -EIO);
	joining_gives("cmd=fullinit", "14    cmd=job-getid;", -EPROTO);
	joining_gives("cmd=fullinit", "a long line that is no block", -EPROTO);
	joining_gives("cmd=job-getid", "26    cmd=job-getid-response;rc=", -EPROTO);
	joining_gives("cmd=job-getid", NULL, -ECONNRESET);
}

static void the_launchers_death_ends_a_fence(void **state)
{
	struct launcher *l = start();
	char back[8];

	(void)state;
	l->on = "cmd=kvs-fence";
	assert_int_equal(join(l), 0);
	assert_int_equal(rt_pmi2_fence(&l->pmi), -ECONNRESET);
	/* and everything after it */
	assert_int_equal(rt_pmi2_put(&l->pmi, "key", "x"), -ECONNRESET);
	assert_int_equal(rt_pmi2_get(&l->pmi, "key", back, sizeof(back)), -ECONNRESET);
	rt_pmi2_fini(&l->pmi);
	stop(l);
	free(l);
}

static void a_fence_that_fails_is_told(void **state)
{
	struct launcher *l = start();

	(void)state;
	l->on = "cmd=kvs-fence";
	l->answer = "48    cmd=kvs-fence-response;rc=1;errmsg=no such luck;";
	assert_int_equal(join(l), 0);
	assert_int_equal(rt_pmi2_fence(&l->pmi), -EIO);
	rt_pmi2_fini(&l->pmi);
	stop(l);
	free(l);
}

static void an_abort_carries_code_and_text(void **state)
{
	struct launcher *l = start();

	(void)state;
	assert_int_equal(join(l), 0);
	assert_int_equal(rt_pmi2_abort(&l->pmi, 9, "a; \"b\"\n\xe9"), 0);
	rt_pmi2_fini(&l->pmi);
	stop(l);
	assert_string_equal(l->aborted, "cmd=abort;exitcode=9;isworld=TRUE;msg=a  \"b\"  ;");
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_puts_meets_and_gets),
		cmocka_unit_test(answers_may_come_in_pieces),
		cmocka_unit_test(a_launcher_of_pmi1_is_told_from_one_that_fails),
		cmocka_unit_test(wrong_places_are_refused),
		cmocka_unit_test(the_launchers_death_ends_a_fence),
		cmocka_unit_test(a_fence_that_fails_is_told),
		cmocka_unit_test(an_abort_carries_code_and_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
