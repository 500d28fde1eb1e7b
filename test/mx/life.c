/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Connecting, and endpoints that end: keys, ids, other processes that compute, are stopped, close,
 * start again, or are killed. This process forks a new peer for each case.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mx_check.h"

enum { PEER = 5, LONG = 300000 };

static pid_t peer;
static int to_peer[2], from_peer[2];
static unsigned char *memory; /* LONG bytes */

/* A word between the two, outside of MX. */
static void tell_peer(char what)
{
	mxc_is(write(to_peer[1], &what, 1), 1);
}

static char hear_peer(void)
{
	char what = 0;

	if (read(from_peer[0], &what, 1) != 1)
		mxc_fail(__FILE__, __LINE__, "the peer is gone");
	return what;
}

static void tell(char what)
{
	mxc_is(write(from_peer[1], &what, 1), 1);
}

static char hear(void)
{
	char what;

	if (read(to_peer[0], &what, 1) != 1)
		_exit(0); /* the test is over */
	return what;
}

/* The peer: does what it is told, a letter at a time. */
static void serve(void)
{
	mx_request_t r = NULL;
	mx_status_t st;
	mx_endpoint_t ep = NULL;

	mx_set_error_handler(MX_ERRORS_RETURN);
	mxc_ok(mx_init());
	for (;;) {
		char what = hear();

		switch (what) {
		case 'o': /* open */
			mxc_ok(mx_open_endpoint(0, PEER, MXC_KEY, NULL, 0, &ep));
			mxc_ep = ep;
			break;
		case 'c': /* close */
			mxc_ok(mx_close_endpoint(ep));
			break;
		case 'r': /* post a long receive */
			r = mxc_irecv(memory, LONG, 1, MX_MATCH_MASK_NONE);
			break;
		case 's': /* post a short receive */
			r = mxc_irecv(memory, 100, 1, MX_MATCH_MASK_NONE);
			break;
		case 'w': /* wait for it */
			st = mxc_wait(r);
			mxc_is(st.code, MX_STATUS_SUCCESS);
			break;
		case 'a': /* answer its sender */
			mxc_is(mxc_wait(mxc_isend(memory, 100, st.source, 2)).code,
			       MX_STATUS_SUCCESS);
			break;
		case 'L': /* send its sender a long message, and wait for nothing */
			mxc_isend(memory, LONG, st.source, 3);
			break;
		default:
			_exit(3);
		}
		tell(what);
	}
}

static void start_peer(void)
{
	mxc_is(pipe(to_peer), 0);
	mxc_is(pipe(from_peer), 0);
	peer = fork();
	if (!peer) {
		mxc_rank = 1;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to_peer[1]);
		close(from_peer[0]);
		serve();
	}
	mxc_child = peer;
	close(to_peer[0]);
	close(from_peer[1]);
}

static void order(const char *what)
{
	for (; *what; what++) {
		tell_peer(*what);
		mxc_is(hear_peer(), *what);
	}
}

static void end_peer(int sig)
{
	int status;

	if (sig)
		kill(peer, sig);
	close(to_peer[1]);
	close(from_peer[0]);
	mxc_is(waitpid(peer, &status, 0), peer);
	mxc_is(sig ? WTERMSIG(status) : WEXITSTATUS(status), sig);
	mxc_child = 0;
}

/* Children are forked before this process has MX; each case begins and ends without it. */
static void begin(void)
{
	start_peer();
	mxc_ok(mx_init());
	mxc_ok(mx_open_endpoint(0, 1, 1, NULL, 0, &mxc_ep));
	mxc_ok(mx_board_number_to_nic_id(0, &mxc_nic));
}

static void finish(void)
{
	mxc_ok(mx_close_endpoint(mxc_ep));
	mxc_ok(mx_finalize());
}

static void connect_peer(void)
{
	mxc_ok(mx_connect(mxc_ep, mxc_nic, PEER, MXC_KEY, 30000, &mxc_peer));
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void connect_has_an_answer_for_each_mistake(void)
{
	mx_endpoint_addr_t a, b;
	void *context;

	begin();
	order("o");
	mxc_is(mx_connect(mxc_ep, mxc_nic, PEER, MXC_KEY + 1, 30000, &a), MX_BAD_CONNECTION_KEY);
	mxc_is(mx_connect(mxc_ep, mxc_nic, PEER + 1, MXC_KEY, 30000, &a), MX_CONNECTION_FAILED);
	mxc_is(mx_connect(mxc_ep, mxc_nic, 256, MXC_KEY, 30000, &a), MX_BAD_ENDPOINT_ID);
	mxc_is(mx_connect(mxc_ep, 0xffffffffffff, PEER, MXC_KEY, 30000, &a), MX_NIC_NOT_FOUND);
	mxc_ok(mx_connect(mxc_ep, mxc_nic, PEER, MXC_KEY, 0, &a));
	mxc_ok(mx_get_endpoint_addr_context(a, &context));
	mxc_true(context == NULL);
	mxc_ok(mx_set_endpoint_addr_context(a, memory));
	mxc_ok(mx_connect(mxc_ep, mxc_nic, PEER, MXC_KEY, 0, &b));
	mxc_true(!memcmp(&a, &b, sizeof(a)));
	mxc_ok(mx_get_endpoint_addr_context(b, &context));
	mxc_true(context == memory);
	order("c");
	mxc_is(mx_connect(mxc_ep, mxc_nic, PEER, MXC_KEY, 30000, &a), MX_CONNECTION_FAILED);
	end_peer(0);
	finish();
}

static void iconnect_completes_like_any_request(void)
{
	mx_request_t r;
	mx_status_t st;
	uint32_t result = 0, eid, session = 0;
	uint64_t nic;

	begin();
	order("o");
	mxc_ok(mx_iconnect(mxc_ep, mxc_nic, PEER, MXC_KEY, 0xabc, memory, &r));
	mxc_ok(mx_wait_any(mxc_ep, 30000, 0xabc, MX_MATCH_MASK_NONE, &st, &result));
	mxc_is(result, 1);
	mxc_is(st.code, MX_STATUS_SUCCESS);
	mxc_is(st.match_info, 0xabc);
	mxc_true(st.context == memory);
	mxc_ok(mx_decompose_endpoint_addr2(st.source, &nic, &eid, &session));
	mxc_is(nic, mxc_nic);
	mxc_is(eid, PEER);
	mxc_true(session);
	mxc_ok(mx_iconnect(mxc_ep, mxc_nic, PEER, 77, 0, NULL, &r));
	mxc_is(mxc_wait(r).code, MX_STATUS_BAD_KEY);
	mxc_ok(mx_iconnect(mxc_ep, mxc_nic, PEER + 1, 77, 0, NULL, &r));
	mxc_is(mxc_wait(r).code, MX_STATUS_ENDPOINT_CLOSED);
	end_peer(0);
	finish();
}

static void a_busy_id_is_busy_in_other_processes(void)
{
	mx_endpoint_t ep;

	begin();
	order("o");
	mxc_is(mx_open_endpoint(0, PEER, 0, NULL, 0, &ep), MX_BUSY);
	end_peer(SIGKILL);
	mxc_ok(mx_open_endpoint(0, PEER, 0, NULL, 0, &ep));
	mxc_ok(mx_close_endpoint(ep));
	finish();
}

static void the_receiver_answers_without_a_connect(void)
{
	mx_status_t st;

	begin();
	order("os");
	connect_peer();
	mxc_wait(mxc_isend(memory, 100, mxc_peer, 1));
	order("wa");
	st = mxc_wait(mxc_irecv(memory, 100, 2, MX_MATCH_MASK_NONE));
	mxc_true(!memcmp(&st.source, &mxc_peer, sizeof(mxc_peer)));
	end_peer(0);
	finish();
}

static void short_timeouts_leave_nothing_behind(void)
{
	mx_endpoint_addr_t a;

	begin();
	order("o");
	for (int i = 0; i < 50; i++) {
		mx_return_t ret = mx_connect(mxc_ep, mxc_nic, PEER, MXC_KEY, 1, &a);

		mxc_true(ret == MX_SUCCESS || ret == MX_TIMEOUT);
	}
	connect_peer();
	end_peer(0);
	finish();
}

static void a_stopped_process_is_connected_to_at_last(void)
{
	mx_endpoint_addr_t a;
	mx_return_t ret;
	double start;

	begin();
	order("o");
	kill(peer, SIGSTOP);
	start = mxc_now();
	ret = mx_connect(mxc_ep, mxc_nic, PEER, MXC_KEY, 300, &a);
	if (ret != MX_SUCCESS) {
		mxc_is(ret, MX_TIMEOUT);
		mxc_true(mxc_now() - start >= 0.29);
	}
	kill(peer, SIGCONT);
	connect_peer();
	end_peer(0);
	finish();
}

/* ---- the end of a peer ----------------------------------------------------------------------- */

/* A send to a peer that has ended ends with one of these. */
static void is_lost(mx_status_t st)
{
	mxc_true(st.code == MX_STATUS_ENDPOINT_UNREACHABLE ||
		 st.code == MX_STATUS_ENDPOINT_CLOSED || st.code == MX_STATUS_BAD_SESSION);
}

static void sends_end_when_the_endpoint_closes(void)
{
	mx_request_t r[3];

	begin();
	order("o");
	connect_peer();
	r[0] = mxc_isend(memory, LONG, mxc_peer, 9);
	r[1] = mxc_issend(memory, 100, mxc_peer, 9);
	r[2] = mxc_isend(memory, 40000, mxc_peer, 9);
	order("c");
	for (int i = 0; i < 3; i++)
		is_lost(mxc_wait(r[i]));
	is_lost(mxc_wait(mxc_isend(memory, 100, mxc_peer, 9)));
	end_peer(0);
	finish();
}

static void another_life_does_not_get_old_messages(void)
{
	mx_endpoint_addr_t old;
	mx_request_t r;

	begin();
	order("o");
	connect_peer();
	for (int life = 0; life < 6; life++) {
		old = mxc_peer;
		order("cor");
		r = mxc_issend(memory, LONG, old, 1);
		is_lost(mxc_wait(r));
		mxc_is(mxc_wait(mxc_issend(memory, 10, old, 1)).code != MX_STATUS_SUCCESS, 1);
		connect_peer();
		mxc_true(memcmp(&old, &mxc_peer, sizeof(old)));
		r = mxc_issend(memory, LONG, mxc_peer, 1);
		mxc_is(mxc_wait(r).code, MX_STATUS_SUCCESS);
		order("w");
	}
	end_peer(0);
	finish();
}

/* None of the last lives has the number of this one, and addresses of closed endpoints are none. */
static void lives_have_numbers_of_their_own(void)
{
	enum { LIVES = 200 };
	uint32_t session[LIVES], eid;
	mx_endpoint_addr_t before, addr;
	uint64_t nic;

	mxc_ok(mx_init());
	for (int i = 0; i < LIVES; i++) {
		mxc_ok(mx_open_endpoint(0, 1, 1, NULL, 0, &mxc_ep));
		mxc_ok(mx_get_endpoint_addr(mxc_ep, &addr));
		mxc_ok(mx_decompose_endpoint_addr2(addr, &nic, &eid, &session[i]));
		for (int k = 0; k < i; k++)
			mxc_true(session[k] != session[i]);
		if (i)
			mxc_is(mx_decompose_endpoint_addr(before, &nic, &eid), MX_BAD_ENDPOINT);
		before = addr;
		mxc_ok(mx_close_endpoint(mxc_ep));
	}
	mxc_ok(mx_finalize());
}

static void a_process_that_starts_again_is_another_session(void)
{
	mx_endpoint_addr_t old;
	int keep[2];

	start_peer();
	keep[0] = to_peer[1];
	keep[1] = from_peer[0];
	order("o");
	{ /* the second life is forked before this process has MX */
		pid_t first = peer;

		start_peer();
		mxc_ok(mx_init());
		mxc_ok(mx_open_endpoint(0, 1, 1, NULL, 0, &mxc_ep));
		mxc_ok(mx_board_number_to_nic_id(0, &mxc_nic));
		connect_peer();
		old = mxc_peer;
		kill(first, SIGKILL);
		waitpid(first, NULL, 0);
		close(keep[0]);
		close(keep[1]);
	}
	order("o");
	order("s");
	is_lost(mxc_wait(mxc_issend(memory, 10, old, 1)));
	connect_peer();
	mxc_true(memcmp(&old, &mxc_peer, sizeof(old)));
	mxc_is(mxc_wait(mxc_isend(memory, 100, mxc_peer, 1)).code, MX_STATUS_SUCCESS);
	order("w");
	end_peer(0);
	finish();
}

static void kill_with(const char *orders, bool answered)
{
	mx_request_t r[5];

	begin();
	order(orders);
	connect_peer();
	r[0] = mxc_isend(memory, 100, mxc_peer, 1);
	if (answered) {
		mxc_is(mxc_wait(r[0]).code, MX_STATUS_SUCCESS);
		order("wL");
		r[0] = mxc_irecv(memory, LONG, 3, MX_MATCH_MASK_NONE);
	}
	r[1] = mxc_issend(memory, 1000, mxc_peer, 7);
	r[2] = mxc_isend(memory, 50000, mxc_peer, 7);
	r[3] = mxc_isend(memory, LONG, mxc_peer, 7);
	r[4] = mxc_issend(memory, LONG, mxc_peer, 7);
	end_peer(SIGKILL);
	if (answered) /* the header may have come, or not */
		mxc_ok(mx_set_request_timeout(mxc_ep, r[0], 500));
	mxc_wait(r[0]);
	for (int i = 1; i < 5; i++)
		is_lost(mxc_wait(r[i]));
	is_lost(mxc_wait(mxc_issend(memory, 10, mxc_peer, 7)));
	/* others go on */
	mxc_ok(mx_get_endpoint_addr(mxc_ep, &mxc_self));
	r[0] = mxc_isend(memory, LONG, mxc_self, 4);
	mxc_is(mxc_wait(mxc_irecv(memory, LONG, 4, MX_MATCH_MASK_NONE)).code, MX_STATUS_SUCCESS);
	mxc_is(mxc_wait(r[0]).code, MX_STATUS_SUCCESS);
	finish();
}

static void a_killed_peer_ends_what_is_pending(void)
{
	kill_with("o", false);
	kill_with("os", true);
}

static void disconnect_ends_what_is_pending(void)
{
	mx_status_t st;
	mx_request_t r;
	uint32_t result = 9;

	begin();
	order("os");
	connect_peer();
	mxc_wait(mxc_isend(memory, 100, mxc_peer, 1));
	order("wa"); /* an unexpected message of it is here */
	mxc_until(mxc_ep,
		  mx_iprobe(mxc_ep, 2, MX_MATCH_MASK_NONE, &st, &result) == MX_SUCCESS && result);
	r = mxc_isend(memory, LONG, mxc_peer, 9);
	mxc_ok(mx_disconnect(mxc_ep, mxc_peer));
	mxc_is(mxc_wait(r).code, MX_STATUS_ENDPOINT_UNREACHABLE);
	mxc_ok(mx_iprobe(mxc_ep, 2, MX_MATCH_MASK_NONE, &st, &result));
	mxc_is(result, 0);
	mxc_is(mxc_wait(mxc_isend(memory, 1, mxc_peer, 9)).code, MX_STATUS_ENDPOINT_UNREACHABLE);
	connect_peer();
	order("s");
	mxc_is(mxc_wait(mxc_isend(memory, 100, mxc_peer, 1)).code, MX_STATUS_SUCCESS);
	order("w");
	end_peer(0);
	finish();
}

static void endpoints_of_one_process_find_each_other(void)
{
	mx_endpoint_addr_t a, b;
	mx_endpoint_t other;
	mx_segment_t s = { memory, LONG };
	mx_request_t r[2];
	mx_status_t st;
	uint32_t result;

	mxc_ok(mx_init());
	mxc_ok(mx_open_endpoint(0, 1, 1, NULL, 0, &mxc_ep));
	mxc_ok(mx_open_endpoint(0, 130, 2, NULL, 0, &other));
	mxc_ok(mx_board_number_to_nic_id(0, &mxc_nic));
	mxc_ok(mx_connect(mxc_ep, mxc_nic, 130, 2, 30000, &a));
	mxc_ok(mx_connect(other, mxc_nic, 130, 2, 30000, &b)); /* itself */
	mxc_ok(mx_get_endpoint_addr(other, &mxc_self));
	mxc_true(!memcmp(&b, &mxc_self, sizeof(b)));
	mxc_is(mx_isend(other, &s, 1, a, 1, NULL, &r[0]), MX_BAD_ENDPOINT); /* not its own */
	mxc_ok(mx_isend(mxc_ep, &s, 1, a, 1, NULL, &r[0]));
	mxc_ok(mx_irecv(other, &s, 1, 1, MX_MATCH_MASK_NONE, NULL, &r[1]));
	mxc_ok(mx_wait(other, &r[1], 30000, &st, &result));
	mxc_is(result, 1);
	mxc_is(st.xfer_length, LONG);
	mxc_is(mxc_wait(r[0]).code, MX_STATUS_SUCCESS);
	mxc_ok(mx_close_endpoint(other));
	finish();
}

static const struct mxc_case cases[] = {
	MXC_CASE(connect_has_an_answer_for_each_mistake),
	MXC_CASE(iconnect_completes_like_any_request),
	MXC_CASE(a_busy_id_is_busy_in_other_processes),
	MXC_CASE(the_receiver_answers_without_a_connect),
	MXC_CASE(short_timeouts_leave_nothing_behind),
	MXC_CASE(a_stopped_process_is_connected_to_at_last),
	MXC_CASE(sends_end_when_the_endpoint_closes),
	MXC_CASE(another_life_does_not_get_old_messages),
	MXC_CASE(lives_have_numbers_of_their_own),
	MXC_CASE(a_process_that_starts_again_is_another_session),
	MXC_CASE(a_killed_peer_ends_what_is_pending),
	MXC_CASE(disconnect_ends_what_is_pending),
	MXC_CASE(endpoints_of_one_process_find_each_other),
};

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	memory = calloc(1, LONG);
	mxc_start_alone(argc, argv);
	MXC_RUN(cases);
	free(memory);
	return 0;
}
