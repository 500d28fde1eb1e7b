/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * From standard input to the ranks that read it: takes some kilobytes when mpiexec is in the
 * foreground and all of these ranks have taken the previous ones.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/mpiexec/input.h"
#include "tools/mpiexec/loop.h"

/* A rank that reads. */
struct reader {
	int child_end; /* of its pipe; until it is started */
	int to;        /* our end; -1: it reads no more */
	struct watch watch;
	size_t done; /* bytes of those below that it has */
};

static bool terminal;
static bool relay; /* bytes are forwarded; else the one reader inherits standard input */
static struct reader *readers;
static int n_readers;
static struct reader **of_rank; /* NULL: it does not read */
static int n_open;              /* readers that read on */
static int waiting;             /* of these, those that have not all of the bytes */
static bool begun;
static struct watch from = { .fd = -1 };
static struct timer later;
static char bytes[65536];
static size_t len; /* bytes that wait for readers */

static void from_ready(struct watch *watch, uint32_t events);

/* ---- ranks that read ------------------------------------------------------------------------- */

/* Is the rank in "1,3-5"? */
static bool is_reader_listed(const char *list, int rank)
{
	for (;;) {
		char *end;
		long first = strtol(list, &end, 10);
		long last = *end == '-' ? strtol(end + 1, &end, 10) : first;

		if (rank >= first && rank <= last)
			return true;
		if (*end != ',')
			return false;
		list = end + 1;
	}
}

int input_init(const char *list, int ranks)
{
	if (list && !strcmp(list, "none"))
		return 0;
	readers = calloc((size_t)ranks, sizeof(*readers));
	of_rank = calloc((size_t)ranks, sizeof(struct reader *));
	if (!readers || !of_rank)
		return -ENOMEM;
	for (int rank = 0; rank < ranks; rank++)
		if (list ? !strcmp(list, "all") || is_reader_listed(list, rank) : !rank) {
			of_rank[rank] = &readers[n_readers++];
			*of_rank[rank] =
				(struct reader){ .child_end = -1, .to = -1, .watch.fd = -1 };
		}
	terminal = isatty(0);
	relay = terminal || n_readers > 1;
	return 0;
}

bool input_is_shared(void)
{
	return n_readers > 1;
}

static struct reader *find_reader(int rank)
{
	return of_rank ? of_rank[rank] : NULL;
}

int input_open(int rank, int *fd)
{
	struct reader *reader = find_reader(rank);
	int fds[2];

	*fd = reader && !relay ? 0 : -1;
	if (!reader || !relay)
		return 0;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	reader->child_end = *fd = fds[0];
	reader->to = fds[1];
	n_open++;
	return 0;
}

void input_started(int rank)
{
	struct reader *reader = relay ? find_reader(rank) : NULL;

	if (!reader)
		return;
	close(reader->child_end);
	reader->child_end = -1;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void stop_reader(struct reader *reader)
{
	loop_remove(&reader->watch);
	if (reader->to < 0)
		return;
	close(reader->to);
	reader->to = -1;
	n_open--;
	waiting -= reader->done < len;
}

static void stop_input(void)
{
	loop_remove(&from);
	for (int i = 0; i < n_readers; i++)
		stop_reader(&readers[i]);
	len = 0;
}

/* Take the next bytes when each reader has the last ones. */
static void check_all_done(void)
{
	if (waiting)
		return;
	len = 0;
	input_check_again();
}

static void rank_ready(struct watch *watch, uint32_t events)
{
	struct reader *reader = watch_of(watch, struct reader, watch);
	ssize_t n = events & EPOLLOUT ? write(reader->to, bytes + reader->done, len - reader->done)
				      : -1;

	if (n < 0 && events & EPOLLOUT && errno == EAGAIN)
		return;
	if (n < 0) { /* nobody reads it */
		stop_reader(reader);
	} else {
		reader->done += (size_t)n;
		if (reader->done < len)
			return;
		waiting--;
		loop_remove(&reader->watch);
	}
	check_all_done();
}

/*
 * Something was typed while another process is in the foreground. Most likely it is for that
 * process, which will soon read it. But nothing tells us if we come to the foreground before
 * that. So check again in a moment, as long as there is input.
 */
static void check_input_later(void)
{
	loop_timer(&later, 0.1, input_check_again);
}

static void from_ready(struct watch *watch, uint32_t events)
{
	ssize_t n;

	(void)watch;
	/* in the background, reading would stop mpiexec */
	if (terminal && !(events & EPOLLHUP) && tcgetpgrp(0) != getpgrp()) {
		check_input_later();
		return;
	}
	n = read(0, bytes, sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		stop_input();
		return;
	}
	len = (size_t)n;
	loop_remove(&from);
	waiting = n_open;
	for (int i = 0; i < n_readers; i++) {
		readers[i].done = 0;
		if (readers[i].to >= 0 &&
		    loop_add(&readers[i].watch, readers[i].to, EPOLLOUT, rank_ready))
			stop_reader(&readers[i]);
	}
	check_all_done(); /* none may be left */
}

void input_begin(void)
{
	begun = true;
	if (relay)
		input_check_again();
}

void input_check_again(void)
{
	int err;

	if (!begun || !n_open || len)
		return;
	loop_remove(&from);
	/* edge-triggered: input for another process is reported once, not again and again */
	err = loop_add(&from, 0, EPOLLIN | (uint32_t)EPOLLET, from_ready);
	if (err == -EPERM)
		from_ready(&from, EPOLLIN); /* a file, which is always ready */
	else if (err)
		stop_input();
}
