/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A peer is killed at a moment of chance while it exchanges messages of all kinds with this
 * process, and another one does the same: that one notices nothing. Everything is forked before
 * this process has MX; each round has a victim of its own, and they use the same endpoint id.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mx_check.h"

enum { ROUNDS = 12, LONG = 200000, OTHER = 2, VICTIM = 3, LENGTHS = 6 };

static const uint32_t lengths[LENGTHS] = { 0, 100, 5000, 32768, 50000, LONG };
static unsigned char *out, *in[2];
static int go[ROUNDS + 1]; /* a word for each child: begin */
static pid_t child[ROUNDS + 1], victim_pid;

/* Has a child ended? It is still to be waited for. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

/* A child: returns what comes from endpoint 0, until it is killed. */
static void echo(uint32_t eid, int begin)
{
	mx_endpoint_addr_t to;
	char c;

	mxc_rank = 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(begin, &c, 1) != 1)
		_exit(0);
	mx_set_error_handler(MX_ERRORS_RETURN);
	mxc_ok(mx_init());
	mxc_ok(mx_open_endpoint(0, eid, MXC_KEY, NULL, 0, &mxc_ep));
	mxc_ok(mx_board_number_to_nic_id(0, &mxc_nic));
	mxc_ok(mx_connect(mxc_ep, mxc_nic, 0, MXC_KEY, MX_INFINITE, &to));
	mxc_wait(mxc_isend(NULL, 0, to, 1000 + eid)); /* it is there */
	for (uint64_t i = 0;; i++) {
		mx_segment_t s = { in[0], LONG };
		mx_status_t st;
		uint32_t result = 0;
		mx_request_t r;

		mxc_ok(mx_irecv(mxc_ep, &s, 1, i, MX_MATCH_MASK_NONE, NULL, &r));
		mxc_ok(mx_wait(mxc_ep, &r, MX_INFINITE, &st, &result));
		if (!result || st.code != MX_STATUS_SUCCESS)
			_exit(0);
		r = i % 2 ? mxc_issend(in[0], st.msg_length, to, (uint64_t)eid << 32 | i)
			  : mxc_isend(in[0], st.msg_length, to, (uint64_t)eid << 32 | i);
		mxc_ok(mx_wait(mxc_ep, &r, MX_INFINITE, &st, &result));
	}
}

static void fork_echo(int which, uint32_t eid)
{
	int pair[2];

	mxc_is(pipe(pair), 0);
	child[which] = fork();
	if (!child[which]) {
		close(pair[1]);
		echo(eid, pair[0]);
	}
	close(pair[0]);
	go[which] = pair[1];
}

/* Lets a child begin, and returns its address. */
static mx_endpoint_addr_t begin(int which, uint32_t eid)
{
	char c = 1;
	mx_status_t st;

	mxc_is(write(go[which], &c, 1), 1);
	st = mxc_wait(mxc_irecv(NULL, 0, 1000 + eid, MX_MATCH_MASK_NONE));
	mxc_is(st.code, MX_STATUS_SUCCESS);
	return st.source;
}

/* One message to and fro. False: the other one is gone. */
static bool exchange(mx_endpoint_addr_t to, uint32_t eid, uint64_t number, unsigned char *room)
{
	uint32_t length = lengths[number % LENGTHS];
	mx_request_t r, s;
	mx_status_t st;
	uint32_t result = 0;

	mxc_fill(out, length, (unsigned int)number);
	r = mxc_irecv(room, LONG, (uint64_t)eid << 32 | number, MX_MATCH_MASK_NONE);
	s = number % 3 ? mxc_isend(out, length, to, number) : mxc_issend(out, length, to, number);
	st = mxc_wait(s);
	if (st.code == MX_STATUS_SUCCESS) {
		/* what a peer that was killed has not sent never comes */
		while (eid == VICTIM && !result) {
			mxc_ok(mx_wait(mxc_ep, &r, 20, &st, &result));
			if (!result && has_ended(victim_pid))
				break;
		}
		if (eid != VICTIM || result)
			st = result ? st : mxc_wait(r);
		else
			st.code = MX_STATUS_ENDPOINT_UNREACHABLE;
	}
	if (st.code == MX_STATUS_SUCCESS) {
		mxc_is(st.msg_length, length);
		mxc_holds(room, length, (unsigned int)number);
		return true;
	}
	mxc_is(eid, VICTIM);
	if (!result && r)
		mxc_ok(mx_cancel(mxc_ep, &r, &result));
	return false;
}

static void others_go_on_when_one_is_killed(void)
{
	mx_endpoint_addr_t other;
	uint64_t done = 0;

	fork_echo(ROUNDS, OTHER);
	for (int i = 0; i < ROUNDS; i++)
		fork_echo(i, VICTIM);
	mxc_ok(mx_init());
	mxc_ok(mx_open_endpoint(0, 0, MXC_KEY, NULL, 0, &mxc_ep));
	mxc_child = child[ROUNDS];
	other = begin(ROUNDS, OTHER);
	for (int i = 0; i < ROUNDS; i++) {
		mx_endpoint_addr_t victim = begin(i, VICTIM);
		pid_t killer;
		unsigned int us = (unsigned int)(i * 7919 % 20000);

		victim_pid = child[i];
		killer = fork();
		if (!killer) {
			usleep(us);
			kill(victim_pid, SIGKILL);
			_exit(0);
		}
		for (uint64_t n = 0; exchange(victim, VICTIM, n, in[0]); n++)
			mxc_true(exchange(other, OTHER, done++, in[1]));
		mxc_is(waitpid(victim_pid, NULL, 0), victim_pid);
		waitpid(killer, NULL, 0);
		for (int k = 0; k < 2 * LENGTHS; k++)
			mxc_true(exchange(other, OTHER, done++, in[1]));
	}
	kill(child[ROUNDS], SIGKILL);
	waitpid(child[ROUNDS], NULL, 0);
	mxc_ok(mx_close_endpoint(mxc_ep));
	mxc_ok(mx_finalize());
}

static const struct mxc_case cases[] = { MXC_CASE(others_go_on_when_one_is_killed) };

int main(int argc, char **argv)
{
	out = malloc(LONG);
	in[0] = malloc(LONG);
	in[1] = malloc(LONG);
	mxc_start_alone(argc, argv);
	MXC_RUN(cases);
	free(out);
	free(in[0]);
	free(in[1]);
	return 0;
}
