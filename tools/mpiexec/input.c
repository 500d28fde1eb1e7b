/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * From the terminal to rank 0: reads a few kilobytes when mpiexec is in the foreground and rank
 * 0 has taken the previous ones.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "tools/mpiexec/input.h"
#include "tools/mpiexec/loop.h"

static bool relay;         /* stdin is a terminal */
static int child_end = -1; /* of the pipe; until rank 0 is started */
static int to_child = -1;
static struct watch from_tty = { .fd = -1 }, to_rank = { .fd = -1 };
static struct timer later;
static char bytes[4096];
static size_t start, len; /* bytes that wait for rank 0 */

static void tty_ready(struct watch *watch, uint32_t events);

static void stop_input(void)
{
	loop_remove(&from_tty);
	loop_remove(&to_rank);
	if (to_child >= 0)
		close(to_child);
	to_child = -1;
	len = 0;
}

static void rank_ready(struct watch *watch, uint32_t events)
{
	ssize_t n = events & EPOLLOUT ? write(to_child, bytes + start, len) : -1;

	(void)watch;
	if (n < 0) {
		if (events & EPOLLOUT && errno == EAGAIN)
			return;
		stop_input(); /* nobody reads it */
		return;
	}
	start += (size_t)n;
	len -= (size_t)n;
	if (!len) {
		loop_remove(&to_rank);
		input_check_again();
	}
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

static void tty_ready(struct watch *watch, uint32_t events)
{
	ssize_t n;

	(void)watch;
	/* in the background, reading would stop mpiexec */
	if (!(events & EPOLLHUP) && tcgetpgrp(0) != getpgrp()) {
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
	start = 0;
	len = (size_t)n;
	loop_remove(&from_tty);
	if (loop_add(&to_rank, to_child, EPOLLOUT, rank_ready))
		stop_input();
}

int input_open(void)
{
	int fds[2];

	relay = isatty(0);
	if (!relay)
		return 0;
	if (pipe2(fds, O_CLOEXEC))
		return -1;
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	child_end = fds[0];
	to_child = fds[1];
	return child_end;
}

void input_started(void)
{
	if (!relay)
		return;
	close(child_end);
	child_end = -1;
	input_check_again();
}

void input_check_again(void)
{
	if (to_child < 0 || len)
		return;
	loop_remove(&from_tty);
	/* edge-triggered: input for another process is reported once, not again and again */
	if (loop_add(&from_tty, 0, EPOLLIN | (uint32_t)EPOLLET, tty_ready))
		stop_input();
}
