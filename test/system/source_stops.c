/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The source of messages of 48000 bytes, which go through the pipe where that can be, is stopped
 * at random moments, some of them while it sends one, and goes on: every message comes whole.
 * Killed there, it leaves the target with the end of what had begun, as a failure or whole, and
 * the target goes on.
 */
#include "ptest.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { TARGET, SOURCE, CONDUCTOR, PORTAL = 7, PLACE = 48000, STEP = 480, STOPS = 200, KILLS = 10 };

static struct stage {
	_Atomic bool over; /* no further messages, or no source */
	_Atomic bool sending;
	_Atomic uint64_t begun, ended;
	_Atomic uint64_t stopped_within, killed_within; /* while it sent a message */
} * stage;

/* Marks all segments of a message with its number: fast, so that the source sends nearly all the
 * time. */
static void mark(unsigned char *place, uint64_t number)
{
	for (size_t i = 0; i < PLACE; i += STEP)
		memcpy(place + i, &number, sizeof(number));
}

static bool is_marked(const unsigned char *place, uint64_t number)
{
	bool all = true;

	for (size_t i = 0; i < PLACE; i += STEP)
		all &= memcmp(place + i, &number, sizeof(number)) == 0;
	return all;
}

static void be_source(void)
{
	unsigned char *out = malloc(PLACE);
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;

	pt_open();
	eq = pt_eq(64);
	md = pt_bind(out, PLACE, PTL_MD_EVENT_START_DISABLE, eq);
	pt_barrier();
	for (uint64_t number = 1; !stage->over; number++) {
		mark(out, number);
		stage->sending = true;
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_id(TARGET), PORTAL, 0, 1, 0, number));
		pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
		stage->sending = false;
		while (stage->ended < number) /* it has been looked at */
			pt_pause();
	}
	pt_barrier();
	pt_close();
	free(out);
}

/* False: it is the end of one that failed. */
static bool take(const ptl_event_t *ev, const unsigned char *place)
{
	if (ev->type == PTL_EVENT_PUT_START) {
		stage->begun++;
		return true;
	}
	pt_is(ev->type, PTL_EVENT_PUT_END);
	if (ev->ni_fail_type == PTL_NI_OK) {
		pt_is(ev->mlength, PLACE);
		pt_true(is_marked(place, ev->hdr_data));
	}
	stage->ended++;
	return ev->ni_fail_type == PTL_NI_OK;
}

/* Until it is over and what had begun has ended. */
static void be_target(bool may_fail)
{
	unsigned char *place = calloc(1, PLACE);
	double end = 0;
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	int which, rc;

	pt_open();
	eq = pt_eq(64);
	pt_post(PORTAL, 1, pt_md(place, PLACE, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq),
		PTL_RETAIN, NULL);
	pt_barrier();
	for (;;) {
		bool over = stage->over;

		rc = PtlEQPoll(&eq, 1, 20, &ev, &which);
		if (rc == PTL_OK) {
			if (take(&ev, place))
				continue;
			pt_true(may_fail);
			continue;
		}
		pt_is(rc, PTL_EQ_EMPTY);
		if (!over)
			continue;
		if (stage->begun == stage->ended)
			break;
		if (!end)
			end = pt_lived() + pt_patience(20);
		pt_truef(pt_lived() < end, "a message that began has no end");
	}
	pt_barrier();
	pt_close();
	free(place);
}

static void random_pause(uint64_t *seed)
{
	struct timespec ts = { .tv_nsec = (long)(pt_random(seed) % 2000) * 1000 };

	nanosleep(&ts, NULL);
}

/* T: stopped; Z: dead, and perhaps gone. */
static bool is_in_state(pid_t pid, char state)
{
	char path[64], text[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	}
	return text[0] ? strchr(text, ')')[2] == state : state == 'Z';
}

static void stop_again_and_again(void)
{
	uint64_t seed = (uint64_t)time(NULL), ended;
	pid_t pid = pt_os_pid(SOURCE);

	pt_until(stage->ended > 100, 20);
	for (int i = 0; i < STOPS; i++) {
		random_pause(&seed);
		kill(pid, SIGSTOP);
		pt_until(is_in_state(pid, 'T'), 20);
		ended = stage->ended;
		stage->stopped_within += stage->sending;
		kill(pid, SIGCONT);
		pt_until(stage->ended > ended + 1, 20);
	}
	stage->over = true;
}

static void every_message_comes_whole_when_its_source_was_stopped(void)
{
	if (pt_rank == TARGET) {
		be_target(false);
	} else if (pt_rank == SOURCE) {
		be_source();
	} else {
		pt_barrier(); /* pt_open */
		pt_barrier();
		stop_again_and_again();
		pt_barrier();
		pt_barrier(); /* pt_close */
		printf("# %d of %d stops while a message was sent\n", (int)stage->stopped_within,
		       STOPS);
		pt_true(stage->stopped_within > 0);
	}
}

static void *instead_of_the_dead(void *unused)
{
	pt_barrier();
	pt_barrier(); /* pt_close */
	return unused;
}

static void a_message_ends_when_its_source_was_killed(void)
{
	uint64_t seed = (uint64_t)pt_os_pid(CONDUCTOR);
	pthread_t stand_in;

	if (pt_rank == TARGET) {
		be_target(true);
	} else if (pt_rank == SOURCE) {
		pt_expect_killed(SOURCE);
		be_source();
	} else {
		stage->over = false;
		stage->begun = stage->ended = 0;
		stage->sending = false;
		pt_barrier(); /* pt_open */
		pt_barrier();
		pt_until(stage->ended > 100, 20);
		random_pause(&seed);
		kill(pt_os_pid(SOURCE), SIGKILL);
		pt_until(is_in_state(pt_os_pid(SOURCE), 'Z'), 20);
		stage->killed_within += stage->sending;
		stage->over = true;
		pt_true(!pthread_create(&stand_in, NULL, instead_of_the_dead, NULL));
		pt_barrier();
		pt_barrier(); /* pt_close */
		pthread_join(stand_in, NULL);
	}
}

static void some_were_killed_in_the_middle(void)
{
	printf("# %d of %d kills while a message was sent\n", (int)stage->killed_within, KILLS);
	pt_true(stage->killed_within > 0);
}

int main(int argc, char **argv)
{
	struct pt_test test[KILLS + 2] = { PT_LONG(
		every_message_comes_whole_when_its_source_was_stopped, CONDUCTOR + 1, 120) };

	for (int i = 0; i < KILLS; i++)
		test[1 + i] = (struct pt_test)PT_CASE(a_message_ends_when_its_source_was_killed,
						      CONDUCTOR + 1);
	test[1 + KILLS] = (struct pt_test)PT_CASE(some_were_killed_in_the_middle, 1);
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (stage == MAP_FAILED)
		return 1;
	return PT_MAIN(argc, argv, test);
}
