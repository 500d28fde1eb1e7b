/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * From the ranks' pipes (sources) to stdout and stderr (sinks): lines with a label, or any
 * bytes to a file. A sink keeps bytes that its reader has not taken yet. When these are many,
 * its sources are not read for a while, so that the ranks wait as if they wrote to the reader
 * themselves.
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
#include <unistd.h>

#include "tools/mpiexec/loop.h"
#include "tools/mpiexec/output.h"

enum {
	LINE_MAX_BYTES = 65536, /* a longer line is broken into two */
	READ_BYTES = 65536,
	PIPE_MOST = 1 << 20, /* a pipe holds no more, unless root has raised the limit */
	LARGE_PIPES = 16,
	QUEUE_HIGH = 1 << 20, /* stop reading sources */
	QUEUE_LOW = 1 << 18   /* and read them again */
};

struct sink {
	int fd;
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
	char *line; /* the unfinished line, up to LINE_MAX_BYTES; NULL: without labels */
	size_t len;
};

static struct sink sinks[2] = { { .fd = 1, .watch.fd = -1 }, { .fd = 2, .watch.fd = -1 } };
static struct source *sources; /* two for each rank */
static int n_sources;
static bool labels;
static struct output_pipes pipes;

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
	say("cannot write standard %s: %s; output is lost", sink->fd == 1 ? "output" : "error",
	    why);
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
	int label_len = snprintf(label, sizeof(label), "[%d] ", source->rank);

	sink_put(source->sink, label, (size_t)label_len);
	sink_put(source->sink, line, len);
	if (line[len - 1] != '\n')
		sink_put(source->sink, "\n", 1);
}

/* Add to the unfinished line. It is put out when complete or too long. */
static void take_output(struct source *source, const char *bytes, size_t len)
{
	while (len) {
		const char *end = memchr(bytes, '\n', len);
		size_t n = end ? (size_t)(end - bytes) + 1 : len;

		if (n > LINE_MAX_BYTES - source->len) {
			n = LINE_MAX_BYTES - source->len;
			end = NULL;
		}
		memcpy(source->line + source->len, bytes, n);
		source->len += n;
		bytes += n;
		len -= n;
		if (end || source->len == LINE_MAX_BYTES) {
			put_line(source, source->line, source->len);
			source->len = 0;
		}
	}
}

static ssize_t read_some(struct source *source)
{
	static char bytes[READ_BYTES];
	ssize_t n;

	do
		n = read(source->fd, bytes, sizeof(bytes));
	while (n < 0 && errno == EINTR);
	if (n > 0 && source->line)
		take_output(source, bytes, (size_t)n);
	else if (n > 0)
		sink_put(source->sink, bytes, (size_t)n);
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
	if (source->len)
		put_line(source, source->line, source->len);
	source_close(source);
	return false;
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

int output_init(int ranks, bool label, bool room)
{
	struct stat out, err;

	labels = label;
	sinks[0].plain = !fstat(1, &out) && S_ISREG(out.st_mode);
	sinks[1].plain = !fstat(2, &err) && S_ISREG(err.st_mode);
	pipes.out = label || (room && sinks[0].plain);
	pipes.err = label || (room && sinks[1].plain);
	/* one pipe keeps the order of output to one file */
	pipes.one = !label && pipes.out && pipes.err && out.st_dev == err.st_dev &&
		    out.st_ino == err.st_ino;
	if (!pipes.out && !pipes.err)
		return 0;
	sources = calloc((size_t)ranks * 2, sizeof(*sources));
	if (!sources)
		return -ENOMEM;
	n_sources = ranks * 2;
	for (int i = 0; i < n_sources; i++)
		sources[i] = (struct source){ .fd = -1, .watch.fd = -1 };
	return 0;
}

struct output_pipes output_pipes(void)
{
	return pipes;
}

static int source_open(struct source *source, int rank, int fd, struct sink *sink)
{
	*source = (struct source){ .rank = rank, .fd = fd, .watch.fd = -1, .sink = sink };
	if (labels) {
		source->line = malloc(LINE_MAX_BYTES);
		if (!source->line)
			return -ENOMEM;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	/* the writer sleeps less often; a user's pipes share a limit, so only where there are
	 * few pipes */
	if (n_sources <= LARGE_PIPES)
		fcntl(fd, F_SETPIPE_SZ, PIPE_MOST);
	if (sink->gone) {
		source_close(source);
		return 0;
	}
	return sink->paused ? 0 : loop_add(&source->watch, fd, EPOLLIN, source_ready);
}

int output_attach(int rank, int out_fd, int err_fd)
{
	int err = 0;

	if (out_fd >= 0)
		err = source_open(&sources[rank * 2], rank, out_fd, &sinks[0]);
	if (!err && err_fd >= 0)
		err = source_open(&sources[rank * 2 + 1], rank, err_fd, &sinks[1]);
	return err;
}

/* Read up to a full pipe: everything written before, and no more from a writer without end. */
static void source_collect(struct source *source)
{
	for (int n = 0; n <= PIPE_MOST && source->fd >= 0 && source_read(source); n += READ_BYTES)
		;
	if (source->sink)
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
		if (source->fd >= 0 && source->len)
			put_line(source, source->line, source->len);
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
	return sinks[0].full || sinks[1].full;
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
	sink_put(&sinks[1], name, sizeof(name) - 1);
	sink_put(&sinks[1], text, (size_t)n);
	sink_put(&sinks[1], "\n", 1);
	sink_start(&sinks[1]);
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
