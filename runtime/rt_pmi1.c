/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The process's end of a PMI-1 connection: one request, one answer, in lines. A value is stored
 * escaped, in as many parts as the launcher's limit requires: key K holds "N:first part", keys
 * K:1 to K:N-1 the others. The first error on the connection ends its use for good. A launcher
 * that dies closes its end, so that nobody waits for ever.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/log.h"
#include "runtime/rt.h"
#include "runtime/rt_pmi1.h"

enum {
	INIT_TIMEOUT_MS = 60000, /* something other than a launcher may be behind PMI_FD */
	FINI_TIMEOUT_MS = 10000,
	PROGRAM_TIMEOUT_MS = 1000, /* not every launcher answers it */
	LOOK_MS = 100,             /* longest single poll */
	PARTS_MAX = 9999,
	KEY_SIZE = RT_KEY_MAX + sizeof(":9999"),
	VALUE_MAX = PMI1_LINE_MAX / 2, /* the most that we use of a launcher's limit */
	KEY_LEAST = 8,                 /* the least that it must offer */
	VALUE_LEAST = 16
};

static const char joining[] = "joining the job";

/* Stop using the connection and warn why. err is a negative errno. */
static int connection_broken(struct rt_pmi1 *pmi, const char *doing, int err)
{
	pmi->error = err;
	if (err == -ECONNRESET && doing == joining)
		base_warn("the launcher closed its connection (PMI_FD=%d) while this process was "
			  "%s: it has "
			  "died, or it does not let a rank run a second program; Postern's mpiexec "
			  "does",
			  pmi->fd, doing);
	else if (err == -ECONNRESET)
		base_warn(
			"the launcher closed its connection (PMI_FD=%d) while this process was %s; "
			"it has died or ended the job",
			pmi->fd, doing);
	else if (err == -ETIMEDOUT)
		base_warn(
			"no answer from the launcher (PMI_FD=%d) while this process was %s; if no "
			"launcher started it, set PTL_LAUNCHER=none",
			pmi->fd, doing);
	else if (err != -EPROTO)
		base_warn(
			"the connection to the launcher (PMI_FD=%d) failed while this process was "
			"%s: %s",
			pmi->fd, doing, strerror(-err));
	return err;
}

static int bad_answer(struct rt_pmi1 *pmi, const char *doing, const char *line, size_t len)
{
	char shown[200];
	int n = pmi1_escape(line, len < 60 ? len : 60, shown, sizeof(shown));

	base_warn(
		"the launcher (PMI_FD=%d) answered \"%.*s\" while this process was %s; that is not "
		"PMI-1. Use Postern's mpiexec, mpiexec.hydra or srun --mpi=pmi2",
		pmi->fd, n < 0 ? 0 : n, shown, doing);
	return connection_broken(pmi, doing, -EPROTO);
}

static void show_line(const struct rt_pmi1 *pmi, const char *arrow, const char *line, size_t len)
{
	if (pmi->debug)
		base_say("pmi %s %.*s", arrow, (int)(len && line[len - 1] == '\n' ? len - 1 : len),
			 line);
}

/* Send one line. May run while another thread waits for an answer. */
static int send_line(struct rt_pmi1 *pmi, const char *line, size_t len)
{
	int err = 0;

	pthread_mutex_lock(&pmi->write);
	show_line(pmi, ">", line, len);
	while (len && !err) {
		ssize_t n = send(pmi->fd, line, len, MSG_NOSIGNAL);

		if (n >= 0) {
			line += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			struct pollfd wait = { .fd = pmi->fd, .events = POLLOUT };

			poll(&wait, 1, -1);
		} else if (errno != EINTR) {
			err = errno == EPIPE ? -ECONNRESET : -errno;
		}
	}
	pthread_mutex_unlock(&pmi->write);
	return err;
}

static long smaller_number(long a, long b)
{
	return a < b ? a : b;
}

static long pmi_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* left: milliseconds to wait; below 0: no limit. Time during which this process is stopped does
 * not count: the launcher may be stopped, too. */
static int wait_readable(struct rt_pmi1 *pmi, long *left)
{
	struct pollfd wait = { .fd = pmi->fd, .events = POLLIN };

	while (*left) {
		long start = pmi_now_ms(), most = *left < 0 ? -1 : smaller_number(*left, LOOK_MS);
		int n = poll(&wait, 1, (int)most);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (*left > 0)
			*left -= smaller_number(pmi_now_ms() - start, most);
		if (n > 0)
			return 0;
	}
	return -ETIMEDOUT;
}

/* Add received bytes to the buffer; waits for at least one. */
static int receive_line(struct rt_pmi1 *pmi, long *left)
{
	ssize_t n;
	int err;

	if (pmi->in_len == PMI1_LINE_MAX)
		return -EMSGSIZE;
	do {
		err = wait_readable(pmi, left);
		if (err)
			return err;
		n = recv(pmi->fd, pmi->in + pmi->in_len, PMI1_LINE_MAX - pmi->in_len, MSG_DONTWAIT);
	} while (n < 0 && (errno == EINTR || errno == EAGAIN));
	if (n <= 0)
		return n ? -errno : -ECONNRESET;
	pmi->in_len += (size_t)n;
	return 0;
}

/* Read the next line. It is valid until the next call. */
static int read_line(struct rt_pmi1 *pmi, const char **line, size_t *len)
{
	long left = pmi->timeout_ms;
	char *end;

	pmi->in_len -= pmi->line;
	memmove(pmi->in, pmi->in + pmi->line, pmi->in_len);
	pmi->line = 0;
	while (!(end = memchr(pmi->in, '\n', pmi->in_len))) {
		int err = receive_line(pmi, &left);

		if (err)
			return err;
	}
	pmi->line = (size_t)(end - pmi->in) + 1;
	*line = pmi->in;
	*len = pmi->line;
	show_line(pmi, "<", *line, *len);
	return 0;
}

/* Send a request. call is held from here to the answer. */
static int ask_for(struct rt_pmi1 *pmi, const char *doing, const struct pmi1_msg *ask)
{
	int n, err;

	if (pmi->error)
		return pmi->error;
	n = pmi1_encode(ask, pmi->out, PMI1_LINE_MAX);
	if (n < 0)
		return n;
	err = send_line(pmi, pmi->out, (size_t)n);
	return err ? connection_broken(pmi, doing, err) : 0;
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
		int err = read_line(pmi, &line, &len);

		if (err)
			return connection_broken(pmi, doing, err);
		good = !pmi1_decode(line, len, answer);
		if (good && answer->cmd == kind)
			return 0;
		/* the previous program did not wait for this answer */
		if (good && doing == joining && answer->cmd == PMI1_CMD_FINALIZE_ACK)
			continue;
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

static int ask_init(struct rt_pmi1 *pmi)
{
	struct pmi1_msg ask, answer;
	int err;

	pmi1_begin(&ask, PMI1_CMD_INIT);
	pmi1_set_num(&ask, PMI1_VERSION, 1);
	pmi1_set_num(&ask, PMI1_SUBVERSION, 1);
	err = pmi_request(pmi, joining, &ask, PMI1_CMD_RESPONSE_TO_INIT, &answer);
	if (err)
		return err;
	if (answer.num[PMI1_RC]) {
		base_warn(
			"the launcher (PMI_FD=%d) refused this process: %.*s. One process of each "
			"rank can be in the job at a time, and one that has crashed has not left "
			"it; start this program when the other one has ended well, or by a "
			"launcher of its own",
			pmi->fd, (int)answer.text[PMI1_MSG].len, answer.text[PMI1_MSG].ptr);
		return -ECONNREFUSED;
	}
	return 0;
}

static int ask_limits(struct rt_pmi1 *pmi)
{
	struct pmi1_msg ask, answer;
	int err;

	pmi1_begin(&ask, PMI1_CMD_GET_MAXES);
	err = pmi_request(pmi, "asking for limits", &ask, PMI1_CMD_MAXES, &answer);
	if (err)
		return err;
	if (answer.num[PMI1_KEYLEN_MAX] < KEY_LEAST || answer.num[PMI1_VALLEN_MAX] < VALUE_LEAST) {
		base_warn("the launcher stores keys of %d and values of %d characters; at least %d "
			  "and "
			  "%d are needed",
			  answer.num[PMI1_KEYLEN_MAX], answer.num[PMI1_VALLEN_MAX], KEY_LEAST,
			  VALUE_LEAST);
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
	const int timeout_ms = pmi->timeout_ms;
	struct pmi1_msg ask;
	const char *line;
	size_t len;
	int err;

	pmi1_begin(&ask, PMI1_CMD_GET_APPNUM);
	err = ask_for(pmi, doing, &ask);
	if (err)
		return err;
	pmi->asks_program = true;
	pmi->timeout_ms = PROGRAM_TIMEOUT_MS;
	err = read_line(pmi, &line, &len);
	pmi->timeout_ms = timeout_ms;
	if (err == -ETIMEDOUT)
		return 0;
	if (err)
		return connection_broken(pmi, doing, err);
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

static void release(struct rt_pmi1 *pmi)
{
	free(pmi->in);
	free(pmi->out);
	pmi->in = NULL;
	pmi->out = NULL;
}

int rt_pmi1_init(struct rt_pmi1 *pmi, int fd, bool debug)
{
	int err = 0;

	*pmi = (struct rt_pmi1){ .fd = fd, .debug = debug, .timeout_ms = INIT_TIMEOUT_MS };
	pthread_mutex_init(&pmi->call, NULL);
	pthread_mutex_init(&pmi->write, NULL);
	pmi->in = malloc(PMI1_LINE_MAX);
	pmi->out = malloc(PMI1_LINE_MAX);
	if (!pmi->in || !pmi->out)
		err = -ENOMEM;
	if (!err)
		err = ask_init(pmi);
	if (!err)
		err = ask_limits(pmi);
	if (!err)
		err = ask_program(pmi);
	if (!err)
		err = ask_name(pmi);
	if (err)
		release(pmi);
	else
		pmi->timeout_ms = -1;
	return err;
}

void rt_pmi1_fini(struct rt_pmi1 *pmi)
{
	struct pmi1_msg ask, answer;
	struct timespec until;

	/*
	 * Another thread may wait in a fence that cannot end now, because this process exits.
	 * Then leave the connection to that thread; the launcher will see the connection's end.
	 */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	if (pthread_mutex_timedlock(&pmi->call, &until))
		return;
	if (!pmi->error) {
		pmi->timeout_ms = FINI_TIMEOUT_MS;
		pmi1_begin(&ask, PMI1_CMD_FINALIZE);
		if (pmi->at_exit)
			pmi1_set_num(&ask, PMI1_AT_EXIT, 1);
		pmi_request(pmi, "leaving the job", &ask, PMI1_CMD_FINALIZE_ACK, &answer);
	}
	pmi->error = -ESHUTDOWN;
	release(pmi);
	pthread_mutex_unlock(&pmi->call);
}

static int put_part(struct rt_pmi1 *pmi, const char *key, const char *part)
{
	struct pmi1_msg ask, answer;
	int err;

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

/* Make the key of part `part`. */
static int part_key(const struct rt_pmi1 *pmi, const char *key, int part, char *out)
{
	int n = part ? snprintf(out, KEY_SIZE, "%s:%d", key, part)
		     : snprintf(out, KEY_SIZE, "%s", key);

	if (n >= (int)KEY_SIZE || n > pmi->key_max) {
		base_warn("the key \"%s\" is longer than the %d characters the launcher stores",
			  key, pmi->key_max);
		return -EINVAL;
	}
	return 0;
}

static int put_parts(struct rt_pmi1 *pmi, const char *key, const char *text, size_t len)
{
	enum { HEAD = sizeof("9999:") - 1 };
	size_t room = (size_t)pmi->value_max - HEAD; /* the same in all parts */
	size_t parts = len ? (len + room - 1) / room : 1;
	char *part;
	int err = 0;

	if (parts > PARTS_MAX)
		return -E2BIG;
	part = malloc(room + HEAD + 1);
	if (!part)
		return -ENOMEM;
	for (size_t i = 0; i < parts && !err; i++) {
		char name[KEY_SIZE];
		size_t n = len < room ? len : room;
		size_t head = i ? 0 : (size_t)sprintf(part, "%zu:", parts);

		memcpy(part + head, text, n);
		part[head + n] = '\0';
		text += n;
		len -= n;
		err = part_key(pmi, key, (int)i, name);
		if (!err)
			err = put_part(pmi, name, part);
	}
	free(part);
	return err;
}

int rt_pmi1_put(struct rt_pmi1 *pmi, const char *key, const char *value)
{
	size_t len = strlen(value);
	char *text = malloc(len * 3 + 1);
	int n;

	if (!text)
		return -ENOMEM;
	n = pmi1_escape(value, len, text, len * 3 + 1);
	if (n >= 0) {
		pthread_mutex_lock(&pmi->call);
		n = put_parts(pmi, key, text, (size_t)n);
		pthread_mutex_unlock(&pmi->call);
	}
	free(text);
	return n;
}

/* The text is in the receive buffer, valid until the next request. */
static int get_part(struct rt_pmi1 *pmi, const char *key, int part, struct pmi1_text *text)
{
	struct pmi1_msg ask, answer;
	char name[KEY_SIZE];
	int err;

	err = part_key(pmi, key, part, name);
	if (err)
		return err;
	pmi1_begin(&ask, PMI1_CMD_GET);
	pmi1_set_text(&ask, PMI1_KVSNAME, pmi->kvsname);
	pmi1_set_text(&ask, PMI1_KEY, name);
	err = pmi_request(pmi, "reading a value", &ask, PMI1_CMD_GET_RESULT, &answer);
	if (err)
		return err;
	if (answer.num[PMI1_RC] || !pmi1_has(&answer, PMI1_VALUE))
		return -ENOENT;
	*text = answer.text[PMI1_VALUE];
	return 0;
}

/* Remove "N:" from the first part. */
static int split_head(struct pmi1_text *text, int *parts)
{
	int n = 0;

	while (text->len && text->ptr[0] >= '0' && text->ptr[0] <= '9' && n <= PARTS_MAX) {
		n = n * 10 + text->ptr[0] - '0';
		text->ptr++;
		text->len--;
	}
	if (!text->len || text->ptr[0] != ':' || n < 1 || n > PARTS_MAX)
		return -EPROTO;
	text->ptr++;
	text->len--;
	*parts = n;
	return 0;
}

/* Collect the escaped text of all parts in memory that the caller frees. */
static int get_parts(struct rt_pmi1 *pmi, const char *key, char **out, size_t *out_len)
{
	struct pmi1_text text;
	char *all = NULL;
	size_t len = 0;
	int parts = 1;
	int err;

	err = get_part(pmi, key, 0, &text);
	if (!err)
		err = split_head(&text, &parts);
	for (int i = 0; !err; i++) {
		char *more = realloc(all, len + text.len + 1);

		if (!more) {
			err = -ENOMEM;
			break;
		}
		all = more;
		memcpy(all + len, text.ptr, text.len);
		len += text.len;
		if (i + 1 == parts)
			break;
		err = get_part(pmi, key, i + 1, &text);
	}
	if (err) {
		free(all);
		return err;
	}
	*out = all;
	*out_len = len;
	return 0;
}

int rt_pmi1_get(struct rt_pmi1 *pmi, const char *key, char *value, size_t size)
{
	char *text, *plain;
	size_t len;
	int n;

	pthread_mutex_lock(&pmi->call);
	n = get_parts(pmi, key, &text, &len);
	pthread_mutex_unlock(&pmi->call);
	if (n)
		return n;
	plain = malloc(len + 1);
	n = plain ? pmi1_unescape(text, len, plain, len + 1) : -ENOMEM;
	if (n >= 0 && (size_t)n >= size)
		n = -ERANGE;
	if (n >= 0) {
		memcpy(value, plain, (size_t)n);
		value[n] = '\0';
	}
	free(plain);
	free(text);
	return n < 0 ? n : 0;
}

int rt_pmi1_fence(struct rt_pmi1 *pmi)
{
	struct pmi1_msg ask, answer;
	int err;

	pmi1_begin(&ask, PMI1_CMD_BARRIER_IN);
	pthread_mutex_lock(&pmi->call);
	err = pmi_request(pmi, "waiting in a fence", &ask, PMI1_CMD_BARRIER_OUT, &answer);
	if (!err && pmi1_has(&answer, PMI1_RC) && answer.num[PMI1_RC]) {
		base_warn("the launcher (PMI_FD=%d) refused a fence: %.*s", pmi->fd,
			  (int)answer.text[PMI1_MSG].len, answer.text[PMI1_MSG].ptr);
		err = -EIO;
	}
	pthread_mutex_unlock(&pmi->call);
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
	return n < 0 ? n : send_line(pmi, line, (size_t)n);
}
