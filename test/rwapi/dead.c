/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The last rank ends without a word, killed or by exit(), while the others send and write to it.
 * Each of them is told, goes on with the rest, and leaves.
 *
 * dead kill|exit
 */
#include "check.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH = 1 << 20 };

static int cases_done;

static void say(const char *name)
{
	if (rank == 0)
		printf("ok %d - %s\n", ++cases_done, name);
	fflush(stdout);
}

/* Short messages until one is refused: the sender waits for credit that never comes. */
static void sends_end(int victim)
{
	uint64_t start = now_ns();
	int err;

	do {
		err = rwapi_send(victim, (rwapi_small_t){ { 0 } });
		check(seconds_since(start) < DEADLINE_S);
	} while (err == RWAPI_OK);
	check(err == RWAPI_EPEER);
}

/* Writes under way fail, and later ones are not started. */
static void writes_end(int victim, rwapi_net_t local, rwapi_net_t remote, rwapi_sid_t begun)
{
	uint64_t start = now_ns();
	rwapi_sid_t sid;
	int sent = until_sent(begun);

	check(sent == 1 || sent == RWAPI_EPEER);
	do {
		sid = rwapi_write(victim, local, remote, LENGTH);
		if (sid > 0)
			sent = until_sent(sid);
		check(seconds_since(start) < DEADLINE_S);
	} while (sid > 0 && sent == 1);
	check(sid == RWAPI_EPEER || sent == RWAPI_EPEER);
}

/* The living go on. */
static void others_go_on(void)
{
	int living = size - 1;

	for (uint32_t i = 0; i < 500; i++)
		send_kind((rank + 1) % living, KIND_COUNT, i, i);
	for (uint32_t i = 0; i < 500; i++) {
		uint32_t number;

		expect_kind((rank + living - 1) % living, KIND_COUNT, &number, NULL);
		check(number == i);
	}
}

int main(int argc, char **argv)
{
	bool kills = argc > 1 && !strcmp(argv[1], "kill");
	rwapi_net_t local, remote;
	rwapi_sid_t begun;
	int victim, err;
	unsigned char *block;

	begin(0);
	victim = size - 1;
	block = rwapi_alloc(LENGTH, &local);
	check(block);
	memset(block, 1, LENGTH);
	for (int node = 0; node < size; node++)
		send_kind(node, KIND_NET, 0, local);
	expect_kind(victim, KIND_NET, NULL, &remote);
	barrier();
	if (rank == victim) {
		for (int node = 0; node < victim; node++)
			expect_kind(node, KIND_GO, NULL, NULL);
		if (kills)
			kill(getpid(), SIGKILL);
		_exit(0);
	}
	begun = rwapi_write(victim, local, remote, LENGTH);
	check(begun > 0);
	send_kind(victim, KIND_GO, 0, 0);
	sends_end(victim);
	say("sends to a process that has ended fail");
	writes_end(victim, local, remote, begun);
	say("writes to it fail");
	others_go_on();
	say("the others go on");
	err = rwapi_finalize();
	check(err == RWAPI_EPEER);
	say("finalize ends, and tells");
	if (rank == 0)
		printf("1..%d\n", cases_done);
	return 0;
}
