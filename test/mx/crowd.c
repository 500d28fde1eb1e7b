/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * More endpoints than a host can have connect to one, which computes, and only then send, all that
 * they may. Nothing is lost, and those that may not send at once have their turn. The crowd is
 * processes that speak the wire format (mx_wire.h) for 256 endpoints each. One of them that takes
 * all slots and is killed keeps none.
 */
#include <portals3.h>
#include <portals3_ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mx_check.h"
#include "mx_shim/mx_wire.h"

enum { CROWD = 9, EACH = 256, ALL = CROWD * EACH, TAG = 7 };

static int to_crowd[CROWD][2], from_crowd[2];
static int self; /* which of the crowd */
static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;
static ptl_process_id_t target;
static struct mxs_record record[EACH];
static pid_t children[CROWD];
static ptl_pid_t first_pid; /* argv[1]: PTL_MX_PID */

static void read_record(uint64_t bits, struct mxs_record *to)
{
	unsigned char bytes[MXS_RECORD_BYTES];
	ptl_md_t md = { .start = bytes,
			.length = sizeof(bytes),
			.threshold = 1,
			.options = PTL_MD_EVENT_START_DISABLE,
			.eq_handle = eq };
	ptl_handle_md_t handle;
	ptl_event_t event;
	int which;

	mxc_is(PtlMDBind(ni, md, PTL_UNLINK, &handle), PTL_OK);
	mxc_is(PtlGet(handle, target, MXS_PT_CONNECT, 0, bits, 0), PTL_OK);
	do
		mxc_is(PtlEQPoll(&eq, 1, MXC_SECONDS * 1000, &event, &which), PTL_OK);
	while (event.type != PTL_EVENT_REPLY_END);
	mxc_is(event.ni_fail_type, PTL_NI_OK);
	mxc_true(mxs_record_decode(bytes, (size_t)event.mlength, to));
	mxc_is(to->answer, MXS_ANSWER_OK);
}

static void send_empty(uint32_t eid)
{
	const struct mxs_header h = { .kind = MXS_EAGER,
				      .eid = eid,
				      .tag = TAG,
				      .to_tag = record[eid].session & MXS_TAG_LOW,
				      .life = 1 };

	mxc_is(PtlPutInject(ni, NULL, 0, PTL_INJECT_NOW, target, record[eid].portal, 0, 5, 0,
			    mxs_header_encode(&h)),
	       PTL_OK);
}

static void wait_for_word(void)
{
	char c;

	if (read(to_crowd[self][0], &c, 1) != 1)
		_exit(0);
}

/* Open Portals, when told to, as a process in which the target's endpoint may have partners. */
static void join(int which, ptl_pid_t pid)
{
	int interfaces;

	self = which;
	mxc_rank = 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	wait_for_word();
	mxc_is(PtlInit(&interfaces), PTL_OK);
	mxc_is(PtlNIInit(PTL_IFACE_DEFAULT, pid, NULL, NULL, &ni), PTL_OK);
	mxc_is(PtlGetId(ni, &target), PTL_OK);
	target.pid = first_pid;
	mxc_is(PtlEQAlloc(ni, 16, PTL_EQ_HANDLER_NONE, &eq), PTL_OK);
}

static void be_crowd(int which)
{
	uint32_t sent = 0;

	join(which, first_pid + 20 + (ptl_pid_t)which);
	for (uint32_t i = 0; i < EACH; i++)
		read_record(mxs_ask_bits(MXS_ASK_KEY, 0, MXC_KEY), &record[i]);
	mxc_is(write(from_crowd[1], &sent, sizeof(sent)), sizeof(sent));
	wait_for_word(); /* all have connected */
	for (uint32_t i = 0; i < EACH; i++)
		for (uint32_t k = 0; k < record[i].slots; k++, sent++)
			send_empty(i);
	mxc_is(write(from_crowd[1], &sent, sizeof(sent)), sizeof(sent));
	wait_for_word(); /* now the target looks */
	sent = 0;
	for (uint32_t i = 0; i < EACH; i++) {
		struct mxs_record r = record[i];
		double end = mxc_now() + MXC_SECONDS;

		if (r.slots)
			continue;
		for (; !r.slots; usleep(1000)) {
			read_record(mxs_ask_bits(MXS_ASK_ID, 0, 0), &r);
			mxc_true(mxc_now() < end);
		}
		send_empty(i);
		sent++;
	}
	mxc_is(write(from_crowd[1], &sent, sizeof(sent)), sizeof(sent));
	wait_for_word();
	_exit(0);
}

/* Takes every slot there is and uses none. */
static void be_greedy(int which)
{
	uint32_t taken = 0;

	join(which, first_pid + 40);
	for (read_record(mxs_ask_bits(MXS_ASK_ID, 0, 0), &record[0]); record[0].slots; taken++)
		read_record(mxs_ask_bits(MXS_ASK_ID, 0, 0), &record[0]);
	mxc_is(write(from_crowd[1], &taken, sizeof(taken)), sizeof(taken));
	wait_for_word();
	pause();
}

/* Asks for a slot until it has one, and sends. */
static void be_patient(int which)
{
	double end;

	join(which, first_pid + 41);
	read_record(mxs_ask_bits(MXS_ASK_ID, 0, 0), &record[0]);
	mxc_is(write(from_crowd[1], &record[0].slots, sizeof(uint32_t)), sizeof(uint32_t));
	wait_for_word();
	for (end = mxc_now() + MXC_SECONDS; !record[0].slots; usleep(1000)) {
		read_record(mxs_ask_bits(MXS_ASK_ID, 0, 0), &record[0]);
		mxc_true(mxc_now() < end);
	}
	send_empty(0);
	wait_for_word();
	_exit(0);
}

static void tell_one(int which)
{
	mxc_is(write(to_crowd[which][1], "", 1), 1);
}

static void tell_crowd(void)
{
	for (int i = 0; i < CROWD; i++)
		tell_one(i);
}

/* The number that one of the crowd tells. */
static uint32_t hear_crowd(void)
{
	uint32_t sent;

	mxc_is(read(from_crowd[0], &sent, sizeof(sent)), sizeof(sent));
	return sent;
}

static void take(uint32_t messages)
{
	for (uint32_t i = 0; i < messages; i++) {
		mx_status_t st = mxc_wait(mxc_irecv(NULL, 0, 5, MX_MATCH_MASK_NONE));

		mxc_is(st.code, MX_STATUS_SUCCESS);
	}
}

static void a_crowd_may_connect_before_it_sends(void)
{
	uint32_t sent = 0;
	mx_status_t st;
	uint32_t result;

	mxc_is(pipe(from_crowd), 0);
	for (int i = 0; i < CROWD; i++) {
		mxc_is(pipe(to_crowd[i]), 0);
		children[i] = fork();
		if (!children[i])
			be_crowd(i);
	}
	mxc_ok(mx_init());
	mxc_ok(mx_open_endpoint(0, 0, MXC_KEY, NULL, 0, &mxc_ep));
	for (int step = 0; step < 2; step++) { /* connect; send */
		tell_crowd();
		for (int i = 0; i < CROWD; i++)
			sent += hear_crowd();
	}
	mxc_true(sent >= 256 && sent < 4096);
	take(sent);
	mxc_ok(mx_iprobe(mxc_ep, 0, 0, &st, &result));
	mxc_is(result, 0);
	tell_crowd();
	take(ALL - sent / 2); /* those with slots had two each */
	for (int i = 0; i < CROWD; i++)
		hear_crowd();
	mxc_ok(mx_iprobe(mxc_ep, 0, 0, &st, &result));
	mxc_is(result, 0);
	tell_crowd();
	for (int i = 0; i < CROWD; i++)
		waitpid(children[i], NULL, 0);
	mxc_ok(mx_close_endpoint(mxc_ep));
	mxc_ok(mx_finalize());
}

/* Forks a child that the parent tells what to do, as number `which`. */
static void fork_one(int which, void (*be)(int which))
{
	mxc_is(pipe(to_crowd[which]), 0);
	children[which] = fork();
	if (!children[which])
		be(which);
}

static void slots_of_the_killed_come_back(void)
{
	enum { GREEDY, PATIENT };

	mxc_is(pipe(from_crowd), 0);
	fork_one(GREEDY, be_greedy);
	fork_one(PATIENT, be_patient);
	mxc_ok(mx_init());
	mxc_ok(mx_open_endpoint(0, 0, MXC_KEY, NULL, 0, &mxc_ep));
	tell_one(GREEDY);
	mxc_true(hear_crowd() > 0);
	tell_one(PATIENT);
	mxc_is(hear_crowd(), 0); /* there is none left */
	kill(children[GREEDY], SIGKILL);
	waitpid(children[GREEDY], NULL, 0);
	tell_one(PATIENT);
	take(1);
	tell_one(PATIENT);
	waitpid(children[PATIENT], NULL, 0);
	mxc_ok(mx_close_endpoint(mxc_ep));
	mxc_ok(mx_finalize());
}

static const struct mxc_case cases[] = { MXC_CASE(a_crowd_may_connect_before_it_sends),
					 MXC_CASE(slots_of_the_killed_come_back) };

int main(int argc, char **argv)
{
	first_pid = argc > 1 ? (ptl_pid_t)atoi(argv[1]) : 0;
	mxc_start_alone(1, argv);
	MXC_RUN(cases);
	return 0;
}
