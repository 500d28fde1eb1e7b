/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The first error on the connection ends its use for good. A launcher that dies closes its end,
 * so that nobody waits for ever.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cpu.h"
#include "base/log.h"
#include "runtime/pmi1_wire.h"
#include "runtime/pmi2_wire.h"
#include "runtime/rt_link.h"

enum {
	LOOK_MS = 100, /* longest single poll */
	END_LOCK_MS = 1000,
};

_Static_assert((int)RT_LINK_MAX >= (int)PMI1_LINE_MAX && (int)RT_LINK_MAX >= (int)PMI2_MESSAGE_MAX,
	       "any message fits");

const char rt_link_joining[] = "joining the job";

int rt_link_open(struct rt_link *link, int fd, bool debug)
{
	*link = (struct rt_link){ .fd = fd, .debug = debug, .timeout_ms = RT_LINK_INIT_MS };
	pthread_mutex_init(&link->call, NULL);
	pthread_mutex_init(&link->write, NULL);
	link->in = malloc(RT_LINK_MAX);
	link->out = malloc(RT_LINK_MAX);
	if (link->in && link->out)
		return 0;
	rt_link_release(link);
	return -ENOMEM;
}

void rt_link_release(struct rt_link *link)
{
	free(link->in);
	free(link->out);
	link->in = NULL;
	link->out = NULL;
}

bool rt_link_lock_to_end(struct rt_link *link)
{
	uint64_t until = base_now_ms() + END_LOCK_MS;

	/* not pthread_mutex_timedlock, whose clock may be set */
	while (pthread_mutex_trylock(&link->call)) {
		if (base_now_ms() >= until)
			return false;
		poll(NULL, 0, 1);
	}
	link->timeout_ms = RT_LINK_FINI_MS;
	return true;
}

int rt_link_broken(struct rt_link *link, const char *doing, int err)
{
	link->error = err;
	if (err == -ECONNRESET && doing == rt_link_joining)
		base_warn("the launcher closed its connection (PMI_FD=%d) while this process was "
			  "%s: it has died, or it does not let a rank run a second program; "
			  "Postern's mpiexec does",
			  link->fd, doing);
	else if (err == -ECONNRESET)
		base_warn(
			"the launcher closed its connection (PMI_FD=%d) while this process was %s; "
			"it has died or ended the job",
			link->fd, doing);
	else if (err == -ETIMEDOUT)
		base_warn(
			"no answer from the launcher (PMI_FD=%d) while this process was %s; if no "
			"launcher started it, set PTL_LAUNCHER=none",
			link->fd, doing);
	else if (err != -EPROTO)
		base_warn(
			"the connection to the launcher (PMI_FD=%d) failed while this process was "
			"%s: %s",
			link->fd, doing, strerror(-err));
	return err;
}

int rt_link_bad_answer(struct rt_link *link, const char *protocol, const char *doing,
		       const char *text, size_t len)
{
	char shown[200];
	int n = pmi1_escape(text, len < 60 ? len : 60, shown, sizeof(shown));

	base_warn("the launcher (PMI_FD=%d) answered \"%.*s\" while this process was %s; that is "
		  "not %s. Use Postern's mpiexec, mpiexec.hydra or srun --mpi=pmi2",
		  link->fd, n < 0 ? 0 : n, shown, doing, protocol);
	return rt_link_broken(link, doing, -EPROTO);
}

static void show_pmi_text(const struct rt_link *link, const char *arrow, const char *text,
			  size_t len)
{
	static const char field[] = "value=";
	const char *value = link->hides ? memmem(text, len, field, sizeof(field) - 1) : NULL;

	if (!link->debug)
		return;
	if (value)
		len = (size_t)(value - text) + sizeof(field) - 1;
	else if (len && text[len - 1] == '\n')
		len--;
	base_say("pmi %s %.*s%s", arrow, (int)len, text, value ? "(secret)" : "");
}

static long smaller_number(long a, long b)
{
	return a < b ? a : b;
}

/* left: milliseconds to wait; below 0: no limit. Time during which this process is stopped does
 * not count: the launcher may be stopped, too. */
static int wait_for(const struct rt_link *link, short events, long *left)
{
	struct pollfd wait = { .fd = link->fd, .events = events };

	while (*left) {
		long start = (long)base_now_ms(),
		     most = *left < 0 ? -1 : smaller_number(*left, LOOK_MS);
		int n = poll(&wait, 1, (int)most);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (*left > 0)
			*left -= smaller_number((long)base_now_ms() - start, most);
		if (n > 0)
			return 0;
	}
	return -ETIMEDOUT;
}

int rt_link_send(struct rt_link *link, const char *bytes, size_t len, int timeout_ms)
{
	long left = timeout_ms;
	int err = 0;

	pthread_mutex_lock(&link->write);
	show_pmi_text(link, ">", bytes, len);
	while (len && !err) {
		ssize_t n = send(link->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			err = wait_for(link, POLLOUT, &left);
		} else if (errno != EINTR) {
			err = errno == EPIPE ? -ECONNRESET : -errno;
		}
	}
	pthread_mutex_unlock(&link->write);
	return err;
}

/* Add received bytes to the buffer; waits for at least one. */
static int receive_more(struct rt_link *link, long *left)
{
	ssize_t n;
	int err;

	if (link->in_len == RT_LINK_MAX)
		return -EMSGSIZE;
	do {
		err = wait_for(link, POLLIN, left);
		if (err)
			return err;
		n = recv(link->fd, link->in + link->in_len, RT_LINK_MAX - link->in_len,
			 MSG_DONTWAIT);
	} while (n < 0 && (errno == EINTR || errno == EAGAIN));
	if (n <= 0)
		return n ? -errno : -ECONNRESET;
	link->in_len += (size_t)n;
	return 0;
}

static void drop_used(struct rt_link *link)
{
	link->in_len -= link->used;
	memmove(link->in, link->in + link->used, link->in_len);
	link->used = 0;
}

int rt_link_line(struct rt_link *link, const char **line, size_t *len)
{
	long left = link->timeout_ms;
	char *end;

	drop_used(link);
	while (!(end = memchr(link->in, '\n', link->in_len))) {
		int err = receive_more(link, &left);

		if (err)
			return err;
	}
	link->used = (size_t)(end - link->in) + 1;
	*line = link->in;
	*len = link->used;
	show_pmi_text(link, "<", *line, *len);
	return 0;
}

int rt_link_block(struct rt_link *link, const char **block, size_t *len)
{
	long left = link->timeout_ms;
	int body = -1;

	drop_used(link);
	for (;;) {
		int err;

		if (body < 0 && link->in_len >= PMI2_HEAD) {
			body = pmi2_length(link->in);
			if (body < 0)
				return body;
		}
		if (body >= 0 && link->in_len >= PMI2_HEAD + (size_t)body)
			break;
		err = receive_more(link, &left);
		if (err)
			return err;
	}
	link->used = PMI2_HEAD + (size_t)body;
	*block = link->in + PMI2_HEAD;
	*len = (size_t)body;
	show_pmi_text(link, "<", *block, *len);
	return 0;
}
