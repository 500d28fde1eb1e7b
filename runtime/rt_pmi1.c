/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The process's end of a PMI-1 connection: one request, one answer, in lines.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "runtime/pmi1_wire.h"
#include "runtime/pmi_map_wire.h"
#include "runtime/rt_backend.h"
#include "runtime/rt_parts.h"
#include "runtime/rt_pmi.h"
#include "runtime/rt_pmi1.h"

enum {
	PROGRAM_TIMEOUT_MS = 1000,    /* not every launcher answers it */
	VALUE_MAX = PMI1_LINE_MAX / 2 /* the most that we use of a launcher's limit */
};

static int bad_answer(struct rt_pmi1 *pmi, const char *doing, const char *line, size_t len)
{
	return rt_link_bad_answer(&pmi->link, "PMI-1", doing, line, len);
}

/* Send a request. call is held from here to the answer. */
static int ask_for(struct rt_pmi1 *pmi, const char *doing, const struct pmi1_msg *ask)
{
	int n, err;

	if (pmi->link.error)
		return pmi->link.error;
	n = pmi1_encode(ask, pmi->link.out, PMI1_LINE_MAX);
	if (n < 0)
		return n;
	err = rt_link_send(&pmi->link, pmi->link.out, (size_t)n, pmi->link.timeout_ms);
	return err ? rt_link_broken(&pmi->link, doing, err) : 0;
}

/* Any reply of a launcher to a question that it does not know is an answer, too. */
static void take_program(struct rt_pmi1 *pmi, const char *line, size_t len)
{
	struct pmi1_msg answer;

	pmi->asks_program = false;
	if (!pmi1_decode(line, len, &answer) && answer.cmd == PMI1_CMD_GOT_APPNUM &&
	    answer.num[PMI1_APPNUM] >= 0)
		pmi->program = answer.num[PMI1_APPNUM];
}

static int answer_to(struct rt_pmi1 *pmi, const char *doing, enum pmi1_cmd kind,
		     struct pmi1_msg *answer)
{
	for (;;) {
		const char *line;
		size_t len;
		bool good;
		int err = rt_link_line(&pmi->link, &line, &len);

		if (err)
			return rt_link_broken(&pmi->link, doing, err);
		good = !pmi1_decode(line, len, answer);
		if (good && answer->cmd == kind)
			return 0;
		/* a late answer to ask_program, with or without a number */
		if (!pmi->asks_program ||
		    (kind != PMI1_CMD_MY_KVSNAME && !(good && answer->cmd == PMI1_CMD_GOT_APPNUM)))
			return bad_answer(pmi, doing, line, len);
		take_program(pmi, line, len);
	}
}

/* Send ask and wait for the answer of this kind. call is held. */
static int pmi_request(struct rt_pmi1 *pmi, const char *doing, const struct pmi1_msg *ask,
		       enum pmi1_cmd kind, struct pmi1_msg *answer)
{
	int err = ask_for(pmi, doing, ask);

	*answer = (struct pmi1_msg){ .present = 0 };
	return err ? err : answer_to(pmi, doing, kind, answer);
}

static int ask_limits(struct rt_pmi1 *pmi)
{
	struct pmi1_msg ask, answer;
	int err;

	pmi1_begin(&ask, PMI1_CMD_GET_MAXES);
	err = pmi_request(pmi, "asking for limits", &ask, PMI1_CMD_MAXES, &answer);
	if (err)
		return err;
	if (answer.num[PMI1_KEYLEN_MAX] < RT_PARTS_KEY_LEAST ||
	    answer.num[PMI1_VALLEN_MAX] < RT_PARTS_VALUE_LEAST) {
		base_warn("the launcher stores keys of %d and values of %d characters; at least %d "
			  "and "
			  "%d are needed",
			  answer.num[PMI1_KEYLEN_MAX], answer.num[PMI1_VALLEN_MAX],
			  RT_PARTS_KEY_LEAST, RT_PARTS_VALUE_LEAST);
		return -EPROTO;
	}
	/* the limits count a terminator */
	pmi->key_max = answer.num[PMI1_KEYLEN_MAX] - 1;
	pmi->value_max = answer.num[PMI1_VALLEN_MAX] - 1;
	if (pmi->value_max > VALUE_MAX)
		pmi->value_max = VALUE_MAX;
	return 0;
}

/*
 * Nothing else is asked until this is answered: Slurm's launcher takes one request out of what
 * it reads, and drops the rest. A launcher that does not know the question may say nothing, so
 * the wait is short. A later answer is taken wherever it comes.
 */
static int ask_program(struct rt_pmi1 *pmi)
{
	static const char doing[] = "asking for its program's number";
	const int timeout_ms = pmi->link.timeout_ms;
	struct pmi1_msg ask;
	const char *line;
	size_t len;
	int err;

	pmi1_begin(&ask, PMI1_CMD_GET_APPNUM);
	err = ask_for(pmi, doing, &ask);
	if (err)
		return err;
	pmi->asks_program = true;
	pmi->link.timeout_ms = PROGRAM_TIMEOUT_MS;
	err = rt_link_line(&pmi->link, &line, &len);
	pmi->link.timeout_ms = timeout_ms;
	if (err == -ETIMEDOUT)
		return 0;
	if (err)
		return rt_link_broken(&pmi->link, doing, err);
	take_program(pmi, line, len);
	return 0;
}

static int ask_name(struct rt_pmi1 *pmi)
{
	struct pmi1_msg ask, answer;
	struct pmi1_text name;
	int err;

	pmi1_begin(&ask, PMI1_CMD_GET_MY_KVSNAME);
	err = pmi_request(pmi, "asking for the job's name", &ask, PMI1_CMD_MY_KVSNAME, &answer);
	if (err)
		return err;
	name = answer.text[PMI1_KVSNAME];
	if (name.len > RT_PMI1_KVSNAME_MAX)
		return bad_answer(pmi, "asking for the job's name", name.ptr, name.len);
	memcpy(pmi->kvsname, name.ptr, name.len);
	pmi->kvsname[name.len] = '\0';
	return 0;
}

int rt_pmi1_init(struct rt_pmi1 *pmi, int fd, bool debug)
{
	int err;

	*pmi = (struct rt_pmi1){ .program = 0 };
	err = rt_link_open(&pmi->link, fd, debug);
	if (err)
		return err;
	err = rt_pmi_ask_version(&pmi->link, 1);
	if (err == -EPROTONOSUPPORT)
		base_warn("the launcher (PMI_FD=%d) does not speak PMI-1; use Postern's mpiexec, "
			  "mpiexec.hydra or srun --mpi=pmi2",
			  fd);
	if (!err)
		err = ask_limits(pmi);
	if (!err)
		err = ask_program(pmi);
	if (!err)
		err = ask_name(pmi);
	if (err)
		rt_link_release(&pmi->link);
	else
		pmi->link.timeout_ms = -1;
	return err;
}

void rt_pmi1_fini(struct rt_pmi1 *pmi)
{
	struct pmi1_msg ask, answer;

	if (!rt_link_lock_to_end(&pmi->link))
		return;
	if (!pmi->link.error) {
		pmi1_begin(&ask, PMI1_CMD_FINALIZE);
		if (pmi->at_exit)
			pmi1_set_num(&ask, PMI1_AT_EXIT, 1);
		pmi_request(pmi, "leaving the job", &ask, PMI1_CMD_FINALIZE_ACK, &answer);
	}
	pmi->link.error = -ESHUTDOWN;
	rt_link_release(&pmi->link);
	pthread_mutex_unlock(&pmi->link.call);
}

static int put_part(void *link, const char *key, const char *part)
{
	struct rt_pmi1 *pmi = link;
	struct pmi1_msg ask, answer;
	int err;

	pmi->link.hides = rt_is_secret(key);
	pmi1_begin(&ask, PMI1_CMD_PUT);
	pmi1_set_text(&ask, PMI1_KVSNAME, pmi->kvsname);
	pmi1_set_text(&ask, PMI1_KEY, key);
	pmi1_set_text(&ask, PMI1_VALUE, part);
	err = pmi_request(pmi, "publishing a value", &ask, PMI1_CMD_PUT_RESULT, &answer);
	if (err)
		return err;
	if (answer.num[PMI1_RC]) {
		base_warn("the launcher does not store the value of \"%s\": %.*s", key,
			  (int)answer.text[PMI1_MSG].len, answer.text[PMI1_MSG].ptr);
		return -EIO;
	}
	return 0;
}

/* The text is in the receive buffer, valid until the next request. */
static int get_part(void *link, const char *key, struct pmi1_text *text)
{
	struct rt_pmi1 *pmi = link;
	struct pmi1_msg ask, answer;
	int err;

	pmi->link.hides = rt_is_secret(key);
	pmi1_begin(&ask, PMI1_CMD_GET);
	pmi1_set_text(&ask, PMI1_KVSNAME, pmi->kvsname);
	pmi1_set_text(&ask, PMI1_KEY, key);
	err = pmi_request(pmi, "reading a value", &ask, PMI1_CMD_GET_RESULT, &answer);
	if (err)
		return err;
	if (answer.num[PMI1_RC] || !pmi1_has(&answer, PMI1_VALUE))
		return -ENOENT;
	*text = answer.text[PMI1_VALUE];
	return 0;
}

static struct rt_parts parts_of(struct rt_pmi1 *pmi)
{
	return (struct rt_parts){ pmi, pmi->key_max, pmi->value_max, put_part, get_part };
}

int rt_pmi1_put(struct rt_pmi1 *pmi, const char *key, const char *value)
{
	const struct rt_parts parts = parts_of(pmi);
	int err;

	pthread_mutex_lock(&pmi->link.call);
	err = rt_parts_put(&parts, key, value);
	pthread_mutex_unlock(&pmi->link.call);
	return err;
}

int rt_pmi1_get(struct rt_pmi1 *pmi, const char *key, char *value, size_t size)
{
	const struct rt_parts parts = parts_of(pmi);
	int err;

	pthread_mutex_lock(&pmi->link.call);
	err = rt_parts_get(&parts, key, value, size);
	pthread_mutex_unlock(&pmi->link.call);
	return err;
}

int rt_pmi1_fence(struct rt_pmi1 *pmi)
{
	struct pmi1_msg ask, answer;
	int err;

	pmi1_begin(&ask, PMI1_CMD_BARRIER_IN);
	pthread_mutex_lock(&pmi->link.call);
	err = pmi_request(pmi, "waiting in a fence", &ask, PMI1_CMD_BARRIER_OUT, &answer);
	if (!err && pmi1_has(&answer, PMI1_RC) && answer.num[PMI1_RC]) {
		base_warn("the launcher (PMI_FD=%d) refused a fence: %.*s", pmi->link.fd,
			  (int)answer.text[PMI1_MSG].len, answer.text[PMI1_MSG].ptr);
		err = -EIO;
	}
	pthread_mutex_unlock(&pmi->link.call);
	return err;
}

int rt_pmi1_abort(struct rt_pmi1 *pmi, int code)
{
	struct pmi1_msg ask;
	char line[64];
	int n;

	pmi1_begin(&ask, PMI1_CMD_ABORT);
	pmi1_set_num(&ask, PMI1_EXITCODE, code);
	n = pmi1_encode(&ask, line, sizeof(line));
	return n < 0 ? n : rt_link_send(&pmi->link, line, (size_t)n, RT_LINK_FINI_MS);
}

/* ---- spawning and names ---------------------------------------------------------------------- */

static struct rt_pmi1 the_pmi;
static struct rt_job joined;

/* A command of several lines as it is written. */
struct lines {
	char *text;
	size_t len;
	bool failed; /* out of memory, or a value that no line can hold */
};

static void __attribute__((format(printf, 3, 4)))
add_spawn_line(struct lines *l, const char *value, const char *name, ...)
{
	char head[64];
	va_list args;
	size_t len;
	char *more;

	va_start(args, name);
	vsnprintf(head, sizeof(head), name, args);
	va_end(args);
	len = strlen(head) + strlen(value) + 2;
	more = realloc(l->text, l->len + len + 1);
	if (!more || strchr(value, '\n') || len >= PMI1_LINE_MAX) {
		l->text = more ? more : l->text;
		l->failed = true;
		return;
	}
	l->text = more;
	l->len += (size_t)sprintf(l->text + l->len, "%s=%s\n", head, value);
}

static void add_number_line(struct lines *l, const char *name, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	add_spawn_line(l, text, "%s", name);
}

static int add_hint_lines(struct lines *l, int n, const char *key, const char *value)
{
	if (!value)
		return n;
	add_spawn_line(l, key, "info_key_%d", n);
	add_spawn_line(l, value, "info_val_%d", n);
	return n + 1;
}

static void add_command(struct lines *l, const struct rt_command *c, int number, int total,
			const char *message)
{
	const char *const infos[] = { c->wdir, c->path, c->host, c->soft };
	int n = 0;

	add_spawn_line(l, "spawn", "mcmd");
	add_number_line(l, "nprocs", c->count);
	add_spawn_line(l, c->file, "execname");
	add_number_line(l, "totspawns", total);
	add_number_line(l, "spawnssofar", number + 1);
	for (; c->argv && c->argv[n]; n++)
		add_spawn_line(l, c->argv[n], "arg%d", n + 1);
	add_number_line(l, "argcnt", n);
	add_spawn_line(l, "1", "preput_num");
	add_spawn_line(l, RT_MESSAGE_KEY, "preput_key_0");
	add_spawn_line(l, message, "preput_val_0");
	n = 0;
	for (size_t i = 0; i < sizeof(infos) / sizeof(infos[0]); i++)
		n += infos[i] != NULL;
	add_number_line(l, "info_num", n);
	n = add_hint_lines(l, 0, "wdir", c->wdir);
	n = add_hint_lines(l, n, "path", c->path);
	n = add_hint_lines(l, n, "host", c->host);
	add_hint_lines(l, n, "soft", c->soft);
	if (!l->failed && (l->text = realloc(l->text, l->len + sizeof("endcmd\n"))))
		l->len += (size_t)sprintf(l->text + l->len, "endcmd\n");
}

/* The value as rt_parts_get expects it, in one part. */
static int one_part(struct rt_pmi1 *pmi, const char *message, char *part, size_t size)
{
	int n = pmi1_escape(message, strlen(message), part + 2, size - 3);

	if (n < 0 || n + 2 > pmi->value_max)
		return -E2BIG;
	memcpy(part, "1:", 2);
	part[n + 2] = '\0';
	return 0;
}

static void copy_words(struct pmi1_text text, char *out, size_t size)
{
	size_t n = text.len < size ? text.len : size - 1;

	for (size_t i = 0; i < n; i++)
		out[i] = text.ptr[i] == '_' ? ' ' : text.ptr[i];
	out[n] = '\0';
}

static int send_spawn(struct rt_pmi1 *pmi, const struct lines *l, char *why, size_t size)
{
	static const char doing[] = "spawning processes";
	struct pmi1_msg answer = { .present = 0 };
	int err = pmi->link.error;

	if (err)
		return err;
	pmi->link.hides = true; /* the new processes are told a secret */
	err = rt_link_send(&pmi->link, l->text, l->len, pmi->link.timeout_ms);
	if (err)
		return rt_link_broken(&pmi->link, doing, err);
	err = answer_to(pmi, doing, PMI1_CMD_SPAWN_RESULT, &answer);
	if (err || !answer.num[PMI1_RC])
		return err;
	copy_words(answer.text[PMI1_MSG], why, size);
	return -EIO;
}

static int spawn(const struct rt_command *commands, int n, const char *message, char *why,
		 size_t size)
{
	char part[PMI1_LINE_MAX / 4];
	struct lines l = { .text = NULL };
	int err = one_part(&the_pmi, message, part, sizeof(part));

	if (err)
		return err;
	for (int i = 0; i < n; i++)
		add_command(&l, &commands[i], i, n, part);
	if (l.failed || !l.text) {
		snprintf(why, size,
			 "a program's name, an argument or a hint is too long, or has "
			 "a line's end in it");
		err = -EINVAL;
	}
	if (!err) {
		pthread_mutex_lock(&the_pmi.link.call);
		err = send_spawn(&the_pmi, &l, why, size);
		pthread_mutex_unlock(&the_pmi.link.call);
	}
	free(l.text);
	return err;
}

static int message(char *text, size_t size)
{
	if (!base_config_env("PMI_SPAWNED"))
		return -ENOENT;
	return rt_pmi1_get(&the_pmi, RT_MESSAGE_KEY, text, size);
}

static int universe(int *size)
{
	struct pmi1_msg ask, answer;
	int err;

	pmi1_begin(&ask, PMI1_CMD_GET_UNIVERSE_SIZE);
	pthread_mutex_lock(&the_pmi.link.call);
	err = pmi_request(&the_pmi, "asking for the universe's size", &ask, PMI1_CMD_UNIVERSE_SIZE,
			  &answer);
	pthread_mutex_unlock(&the_pmi.link.call);
	if (err)
		return err;
	*size = answer.num[PMI1_SIZE];
	return *size > 0 ? 0 : -ENOENT; /* not every launcher has an idea */
}

enum { NAME_MOST = 512 };

static int escape_text(const char *text, char *out, size_t size)
{
	int n = pmi1_escape(text, strlen(text), out, size - 1);

	if (n < 1)
		return -E2BIG;
	out[n] = '\0';
	return 0;
}

/* Ask something about a name. `none`: the error if the launcher refuses. */
static int ask_name_service(enum pmi1_cmd cmd, enum pmi1_cmd kind, const char *name,
			    const char *value, int none, char *out, size_t size)
{
	char escaped[NAME_MOST], port[PMI1_LINE_MAX / 4];
	struct pmi1_msg ask, answer;
	int err = escape_text(name, escaped, sizeof(escaped)), n;

	if (!err && value)
		err = escape_text(value, port, sizeof(port));
	if (err)
		return err;
	pmi1_begin(&ask, cmd);
	pmi1_set_text(&ask, PMI1_SERVICE, escaped);
	if (value)
		pmi1_set_text(&ask, PMI1_PORT, port);
	pthread_mutex_lock(&the_pmi.link.call);
	the_pmi.link.hides = true; /* a port's name has a secret in it */
	err = pmi_request(&the_pmi, "asking for a name", &ask, kind, &answer);
	if (!err && answer.num[PMI1_RC])
		err = none;
	if (!err && out) {
		n = pmi1_unescape(answer.text[PMI1_PORT].ptr, answer.text[PMI1_PORT].len, out,
				  size - 1);
		err = n > 0 ? 0 : -ENOENT;
		out[n > 0 ? n : 0] = '\0';
	}
	pthread_mutex_unlock(&the_pmi.link.call);
	return err;
}

static int publish(const char *name, const char *value)
{
	return ask_name_service(PMI1_CMD_PUBLISH_NAME, PMI1_CMD_PUBLISH_RESULT, name, value,
				-EEXIST, NULL, 0);
}

static int lookup(const char *name, char *value, size_t size)
{
	return ask_name_service(PMI1_CMD_LOOKUP_NAME, PMI1_CMD_LOOKUP_RESULT, name, NULL, -ENOENT,
				value, size);
}

static int unpublish(const char *name)
{
	return ask_name_service(PMI1_CMD_UNPUBLISH_NAME, PMI1_CMD_UNPUBLISH_RESULT, name, NULL,
				-ENOENT, NULL, 0);
}

/* ---- for rt.c -------------------------------------------------------------------------------- */

static int join(struct rt_job *job)
{
	int fd, err = rt_pmi_socket(job, &fd);

	if (!err)
		err = rt_pmi1_init(&the_pmi, fd, base_config()->ptl_pmi_debug);
	if (err)
		return err;
	rt_set_id(job, the_pmi.kvsname);
	joined = *job;
	return 0;
}

static int put(const char *key, const char *value)
{
	return rt_pmi1_put(&the_pmi, key, value);
}

static int fence(void)
{
	return rt_pmi1_fence(&the_pmi);
}

static int get(int rank, const char *key, char *value, size_t len)
{
	(void)rank; /* the launcher has one store */
	return rt_pmi1_get(&the_pmi, key, value, len);
}

static int program(void)
{
	return the_pmi.program;
}

static int local(int *rank, int *size)
{
	struct pmi1_text mapping;
	int err;

	pthread_mutex_lock(&the_pmi.link.call);
	err = get_part(&the_pmi, PMI_MAP_KEY, &mapping);
	if (!err)
		err = pmi_map_local(mapping.ptr, mapping.len, joined.rank, joined.size, rank, size);
	pthread_mutex_unlock(&the_pmi.link.call);
	return err;
}

static int abort_by_pmi1(int code, const char *message)
{
	(void)message; /* has been printed, and the protocol has no place for it */
	return rt_pmi1_abort(&the_pmi, code);
}

static void fini(int status)
{
	the_pmi.at_exit = status != RT_LEAVES;
	if (status <= 0 || the_pmi.link.knows_exit)
		rt_pmi1_fini(&the_pmi);
}

const struct rt_backend rt_pmi1_backend = {
	.name = "pmi1",
	.visible = rt_pmi_visible,
	.join = join,
	.put = put,
	.fence = fence,
	.get = get,
	.program = program,
	.local = local,
	.abort = abort_by_pmi1,
	.spawn = spawn,
	.message = message,
	.universe = universe,
	.publish = publish,
	.lookup = lookup,
	.unpublish = unpublish,
	.fini = fini,
};
