/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * From the ranks' pipes (sources) to stdout, stderr and files (sinks), in whole lines, with a
 * label or without. A sink keeps bytes that its reader has not taken yet. When these are many, its
 * sources are not read for a while, so that the ranks wait as if they wrote to the reader
 * themselves.
 *
 * A line without its end waits for the rest, but no longer than LINGER_S where there are no labels:
 * it may be a question, or a row of dots.
 *
 * When the reader is gone the sources are closed, and the ranks learn of it as they would
 * without mpiexec. When a file takes no more bytes, one message says so. The ranks go on,
 * because long computations must not end for a log; the exit status reports it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/mpiexec/loop.h"
#include "tools/mpiexec/output.h"

enum {
	LINE_MAX_BYTES = 65536, /* a longer line is broken into two */
	READ_BYTES = 65536,
	PIPE_MOST = 1 << 20, /* a pipe holds no more, unless root has raised the limit */
	LARGE_PIPES = 16,
	QUEUE_HIGH = 1 << 20, /* stop reading sources */
	QUEUE_LOW = 1 << 18,  /* and read them again */
	LINGER_S = 1
};

struct sink {
	int fd;
	const char *name;
	struct watch watch; /* active while there is something to write */
	bool plain;         /* a regular file: written at once, as it cannot be waited for */
	bool gone;          /* nobody reads it */
	bool full;          /* something could not be written, and a message said so */
	bool paused;        /* its sources are not read */
	char *queue;
	size_t start, len, size; /* bytes written already; bytes waiting after them; allocated */
};

struct source {
	int rank;
	int fd; /* -1: closed */
	struct watch watch;
	struct sink *sink;
	char *line; /* the unfinished line, up to LINE_MAX_BYTES; NULL: there was none */
	size_t len;
	time_t since; /* seconds of the monotonic clock when it grew last */
};

static struct sink sinks[2] = {
	{ .fd = 1, .name = "standard output", .watch.fd = -1 },
	{ .fd = 2, .name = "standard error", .watch.fd = -1 },
};
static struct source *sources; /* two for each rank */
static int n_sources;
static bool labels;
static struct output_pipes pipes;
static const char *patterns[2]; /* of the files that output and error go to; NULL: to ours */
static const char *host_name;
static struct sink *messages = &sinks[1]; /* of mpiexec itself */
static bool lost;                         /* something could not be written */
static struct timer linger;

static void source_ready(struct watch *watch, uint32_t events);
static void sink_ready(struct watch *watch, uint32_t events);

static void source_close(struct source *source)
{
	if (source->fd < 0)
		return;
	loop_remove(&source->watch);
	close(source->fd);
	source->fd = -1;
	free(source->line);
	source->line = NULL;
	source->len = 0;
}

static void sink_gone(struct sink *sink)
{
	sink->gone = true;
	sink->len = 0;
	loop_remove(&sink->watch);
	for (int i = 0; i < n_sources; i++)
		if (sources[i].sink == sink)
			source_close(&sources[i]);
}

static void sink_pause(struct sink *sink, bool pause)
{
	if (sink->paused == pause)
		return;
	sink->paused = pause;
	for (int i = 0; i < n_sources; i++) {
		struct source *source = &sources[i];

		if (source->sink != sink || source->fd < 0)
			continue;
		if (pause)
			loop_remove(&source->watch);
		else
			loop_add(&source->watch, source->fd, EPOLLIN, source_ready);
	}
}

/* Drop the waiting bytes, and say so once. */
static void sink_full(struct sink *sink)
{
	const char *why = strerror(errno);

	sink->len = 0;
	if (sink->full)
		return;
	sink->full = true;
	lost = true;
	say("cannot write %s: %s; output is lost", sink->name, why);
}

/* Write the start of the queue: as much as cannot block, or all of it. */
static void sink_flush(struct sink *sink, bool all)
{
	while (sink->len) {
		size_t most = all || sink->len < PIPE_BUF ? sink->len : PIPE_BUF;
		ssize_t n = write(sink->fd, sink->queue + sink->start, most);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && !all)
			return; /* another process has made it non-blocking */
		if (n < 0) {
			if (sink->plain && errno != EPIPE)
				sink_full(sink);
			else
				sink_gone(sink);
			return;
		}
		sink->start += (size_t)n;
		sink->len -= (size_t)n;
		if (!all)
			break;
	}
}

/* Wait for the sink to take the queue. Write at once where waiting is not possible. */
static void sink_start(struct sink *sink)
{
	if (!sink->len || sink->watch.fd >= 0)
		return;
	if (!sink->plain && loop_add(&sink->watch, sink->fd, EPOLLOUT, sink_ready))
		sink->plain = true;
	if (sink->plain)
		sink_flush(sink, true);
}

static void sink_ready(struct watch *watch, uint32_t events)
{
	struct sink *sink = watch_of(watch, struct sink, watch);

	if (events & EPOLLOUT)
		sink_flush(sink, false);
	else
		sink_gone(sink);
	if (!sink->len)
		loop_remove(&sink->watch);
	if (sink->len <= QUEUE_LOW && !sink->gone)
		sink_pause(sink, false);
}

/* Make room for len more bytes behind those that wait. */
static bool sink_room(struct sink *sink, size_t len)
{
	size_t size = (sink->len + len) * 2;
	char *more;

	if (sink->queue && sink->start + sink->len + len <= sink->size)
		return true;
	if (sink->queue && sink->len + len <= sink->size) {
		memmove(sink->queue, sink->queue + sink->start, sink->len);
		sink->start = 0;
		return true;
	}
	more = malloc(size);
	if (!more)
		return false;
	if (sink->queue)
		memcpy(more, sink->queue + sink->start, sink->len);
	free(sink->queue);
	sink->queue = more;
	sink->size = size;
	sink->start = 0;
	return true;
}

static void sink_put(struct sink *sink, const char *bytes, size_t len)
{
	if (sink->gone || !sink_room(sink, len))
		return; /* out of memory: a line is lost and the job goes on */
	memcpy(sink->queue + sink->start + sink->len, bytes, len);
	sink->len += len;
}

/* Put out one line of a rank, with or without its newline. */
static void put_line(struct source *source, const char *line, size_t len)
{
	char label[16];

	if (labels) {
		int n = snprintf(label, sizeof(label), "[%d] ", source->rank);

		sink_put(source->sink, label, (size_t)n);
	}
	sink_put(source->sink, line, len);
	if (labels && line[len - 1] != '\n')
		sink_put(source->sink, "\n", 1);
}

static void put_unfinished(struct source *source)
{
	if (source->len)
		put_line(source, source->line, source->len);
	source->len = 0;
}

static time_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void linger_over(void);

/* Add to the unfinished line. It is put out when it is too long. */
static void keep_unfinished(struct source *source, const char *bytes, size_t len)
{
	if (!source->line)
		source->line = malloc(LINE_MAX_BYTES);
	if (!source->line) {
		put_line(source, bytes, len); /* out of memory: better in two than lost */
		return;
	}
	while (len) {
		size_t room = LINE_MAX_BYTES - source->len;
		size_t n = len < room ? len : room;

		memcpy(source->line + source->len, bytes, n);
		source->len += n;
		bytes += n;
		len -= n;
		if (source->len == LINE_MAX_BYTES)
			put_unfinished(source);
	}
	source->since = now_s();
	if (!labels && !linger.due)
		loop_timer(&linger, LINGER_S, linger_over);
}

/* Put out what is complete, and keep the rest. */
static void take_output(struct source *source, const char *bytes, size_t len)
{
	while (len) {
		const char *end = memchr(bytes, '\n', len);
		size_t n = end ? (size_t)(end - bytes) + 1 : len;

		/* lines without labels are put out together */
		if (end && !labels && !source->len)
			n = (size_t)((const char *)memrchr(bytes, '\n', len) - bytes) + 1;
		if (!end || source->len || (labels && n > LINE_MAX_BYTES))
			keep_unfinished(source, bytes, n);
		else
			put_line(source, bytes, n);
		if (end)
			put_unfinished(source);
		bytes += n;
		len -= n;
	}
}

static ssize_t read_some(struct source *source)
{
	static char bytes[READ_BYTES];
	ssize_t n;

	do
		n = read(source->fd, bytes, sizeof(bytes));
	while (n < 0 && errno == EINTR);
	if (n > 0)
		take_output(source, bytes, (size_t)n);
	return n;
}

/* Read once. False at the end, or when there is nothing now. */
static bool source_read(struct source *source)
{
	ssize_t n = read_some(source);

	if (n > 0)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	put_unfinished(source);
	source_close(source);
	return false;
}

/* Put out lines whose rest does not come. One that waits in its pipe, behind others, does come. */
static void linger_over(void)
{
	bool some = false;

	for (int i = 0; i < n_sources; i++) {
		struct source *source = &sources[i];

		if (source->fd >= 0 && source->len && !source->sink->paused &&
		    now_s() > source->since + LINGER_S && !source_read(source)) {
			put_unfinished(source);
			sink_start(source->sink);
		}
		some |= source->len > 0;
	}
	if (some)
		loop_timer(&linger, LINGER_S, linger_over);
}

static void source_ready(struct watch *watch, uint32_t events)
{
	struct source *source = watch_of(watch, struct source, watch);
	struct sink *sink = source->sink;

	(void)events;
	source_read(source);
	sink_start(sink);
	if (sink->len > QUEUE_HIGH)
		sink_pause(sink, true);
}

/* Does what ranks write there go through mpiexec? */
static bool is_routed(const struct stat *st, int ranks)
{
	return S_ISREG(st->st_mode) ||
	       (ranks > 1 && (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode)));
}

int output_init(const struct options *opt, bool room, const char *host)
{
	struct stat out = { .st_mode = 0 }, err = { .st_mode = 0 };
	bool same;

	labels = opt->label;
	patterns[0] = opt->outfile;
	patterns[1] = opt->errfile;
	host_name = host;
	sinks[0].plain = !fstat(1, &out) && S_ISREG(out.st_mode);
	sinks[1].plain = !fstat(2, &err) && S_ISREG(err.st_mode);
	same = out.st_dev == err.st_dev && out.st_ino == err.st_ino;
	pipes.out = labels || patterns[0] || (room && is_routed(&out, opt->ranks));
	pipes.err = labels || patterns[1] || (room && is_routed(&err, opt->ranks));
	/* one pipe keeps the order of output to one file */
	if (patterns[0] && patterns[1])
		pipes.one = !labels && !strcmp(patterns[0], patterns[1]);
	else if (!patterns[0] && !patterns[1])
		pipes.one = !labels && pipes.out && pipes.err && same;
	if (opt->merge)
		pipes.one = pipes.err = pipes.out;
	if (!pipes.out && !pipes.err)
		return 0;
	n_sources = opt->ranks * 2;
	sources = calloc((size_t)n_sources, sizeof(*sources));
	if (!sources)
		return -ENOMEM;
	for (int i = 0; i < n_sources; i++)
		sources[i] = (struct source){
			.rank = i / 2, .fd = -1, .watch.fd = -1, .sink = &sinks[same ? 0 : i % 2]
		};
	/* two queues to one pipe or terminal would tear each other's lines */
	if (same)
		messages = &sinks[0];
	return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_for_each_rank(const char *pattern)
{
	for (const char *c = strchr(pattern, '%'); c; c = strchr(c + 1 + (c[1] == '%'), '%'))
		if (c[1] == 'r' || c[1] == 't')
			return true;
	return false;
}

/* The name of a rank's file; allocated, or NULL. */
static char *file_name(const char *pattern, int rank)
{
	size_t size = 0;
	char *name = NULL;
	FILE *text = open_memstream(&name, &size);

	if (!text)
		return NULL;
	for (const char *c = pattern; *c; c++) {
		if (*c != '%') {
			fputc(*c, text);
			continue;
		}
		c++;
		if (*c == 'r' || *c == 't')
			fprintf(text, "%d", rank);
		else if (*c == 'h' || *c == 'N')
			fputs(host_name, text);
		else
			fputc(*c == '%' ? '%' : '0', text); /* the job, and the host's number */
	}
	if (fclose(text)) {
		free(name);
		return NULL;
	}
	return name;
}

static int file_open(struct source *source, const char *pattern)
{
	char *name = file_name(pattern, source->rank);
	struct sink *sink = name ? calloc(1, sizeof(*sink)) : NULL;

	if (!sink) {
		free(name);
		say("out of memory for the output of rank %d", source->rank);
		return -1;
	}
	*sink = (struct sink){ .name = name, .plain = true, .watch.fd = -1 };
	sink->fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (sink->fd < 0) {
		say("cannot write %s, where output of rank %d is to go: %m", name, source->rank);
		free(name);
		free(sink);
		return -1;
	}
	source->sink = sink;
	return 0;
}

int output_open(int rank)
{
	for (int i = 0; i < 2 && sources; i++) {
		struct source *source = &sources[rank * 2 + i];

		if (!patterns[i] || (i && pipes.one))
			continue;
		if (rank && !is_for_each_rank(patterns[i]))
			source->sink = sources[i].sink;
		else if (file_open(source, patterns[i]))
			return -1;
	}
	return 0;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

struct output_pipes output_pipes(void)
{
	return pipes;
}

static int source_open(struct source *source, int fd)
{
	source->fd = fd;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	/* the writer sleeps less often; a user's pipes share a limit, so only where there are
	 * few pipes */
	if (n_sources <= LARGE_PIPES)
		fcntl(fd, F_SETPIPE_SZ, PIPE_MOST);
	if (source->sink->gone) {
		source_close(source);
		return 0;
	}
	return source->sink->paused ? 0 : loop_add(&source->watch, fd, EPOLLIN, source_ready);
}

int output_attach(int rank, int out_fd, int err_fd)
{
	int err = 0;

	if (out_fd >= 0)
		err = source_open(&sources[rank * 2], out_fd);
	if (!err && err_fd >= 0)
		err = source_open(&sources[rank * 2 + 1], err_fd);
	return err;
}

/* Read up to a full pipe: everything written before, and no more from a writer without end. */
static void source_collect(struct source *source)
{
	for (int n = 0; n <= PIPE_MOST && source->fd >= 0 && source_read(source); n += READ_BYTES)
		;
	sink_start(source->sink);
}

void output_collect(int rank)
{
	for (int i = rank * 2; i < rank * 2 + 2 && i < n_sources; i++)
		source_collect(&sources[i]);
}

void output_finish(void)
{
	for (int i = 0; i < n_sources; i++) {
		struct source *source = &sources[i];

		if (source->fd < 0)
			continue;
		source_collect(source);
		put_unfinished(source);
		sink_start(source->sink);
		source_close(source);
	}
	sink_start(&sinks[0]);
	sink_start(&sinks[1]);
}

bool output_idle(void)
{
	return !sinks[0].len && !sinks[1].len;
}

bool output_lost(void)
{
	return lost;
}

void say(const char *fmt, ...)
{
	static const char name[] = "mpiexec: ";
	va_list args;
	char *text;
	int n;

	/* of any length: the reason stands behind paths */
	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	sink_put(messages, name, sizeof(name) - 1);
	sink_put(messages, text, (size_t)n);
	sink_put(messages, "\n", 1);
	sink_start(messages);
	free(text);
}

int say_refused(const char *call, int err)
{
	if (err == EPERM || err == ENOSYS)
		say("%s is refused here (%s); does a container's profile forbid it?", call,
		    strerror(err));
	else
		say("%s: %s", call, strerror(err));
	return -1;
}
