/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * All ranks write to each other and send notices; each checks what has come and confirms it.
 * Meanwhile rank 0 kills all but rank 1 and itself, one by one, by a timer: in the middle of
 * whatever either of them does. The two miss nothing of each other, learn of every death, and
 * leave.
 *
 * killed SEED
 */
#include "check.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SURVIVORS = 2, LONGEST = 100000, ROUNDS_AFTER = 100, RANKS_MOST = 16, KILL_US = 15000 };

static const size_t lengths[] = { 0, 1, 8, 4096, 32768, 32769, 65536, LONGEST };

/* Another rank, as this one knows it. */
static struct peer {
	rwapi_net_t net; /* of its memory for what this rank writes */
	bool dead, finished;
	bool waits; /* for a confirmation */
	uint32_t rounds;
} peers[RANKS_MOST];

static unsigned char *from[RANKS_MOST], *to[RANKS_MOST];
static rwapi_net_t from_net[RANKS_MOST];
static uint64_t seed;

/* ---- the killer ------------------------------------------------------------------------------ */

static volatile sig_atomic_t victims_left;
static volatile pid_t victim[RANKS_MOST];

static void kill_next(int signal)
{
	(void)signal;
	if (victims_left)
		kill(victim[--victims_left], SIGKILL);
}

static void next_kill_soon(void)
{
	const struct itimerval soon = { .it_value.tv_usec =
						1 + (long)(next_random(&seed) % KILL_US) };

	setitimer(ITIMER_REAL, &soon, NULL);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* A message to a peer. False: the peer is gone. */
static bool tell(int node, enum kind kind, uint32_t value, uint64_t word)
{
	int err =
		rwapi_send(node, (rwapi_small_t){ .word = { (uint64_t)value << 8 | kind, word } });

	check(err == RWAPI_OK || err == RWAPI_EPEER);
	peers[node].dead |= err == RWAPI_EPEER;
	return err == RWAPI_OK;
}

/* Write something to a peer, and say what. */
static void write_to(int node)
{
	struct peer *p = &peers[node];
	size_t length = lengths[next_random(&seed) % (sizeof(lengths) / sizeof(lengths[0]))];
	uint32_t key = (uint32_t)next_random(&seed) & 0xffffff;
	rwapi_sid_t sid;

	fill(from[node], length, key);
	sid = rwapi_write(node, from_net[node], p->net, length);
	check(sid > 0 || sid == RWAPI_EPEER);
	p->dead |= sid == RWAPI_EPEER;
	p->waits = sid > 0 && tell(node, KIND_NOTICE, key, length);
}

static void take_in(int node, enum kind kind, uint32_t value, uint64_t word)
{
	struct peer *p = &peers[node];

	if (kind == KIND_NOTICE) {
		check(word <= LONGEST);
		check(first_wrong(to[node], word, value) == word);
		tell(node, KIND_DONE, 0, 0);
	} else if (kind == KIND_DONE) {
		check(p->waits);
		p->waits = false;
		p->rounds++;
	} else if (kind == KIND_BARRIER) {
		p->finished = true;
	}
}

/* A confirmation that is awaited may never come: the next message tells. */
static void find_the_dead(void)
{
	for (int node = 0; node < size; node++)
		if (node != rank && !peers[node].dead)
			tell(node, KIND_GO, 0, 0);
}

static void receive_all(void)
{
	static const enum kind kinds[] = { KIND_NOTICE, KIND_DONE, KIND_GO, KIND_BARRIER };
	uint32_t value;
	uint64_t word;
	int found;

	for (int i = 0; i < 4; i++)
		while (has_kind(-1, kinds[i])) {
			int node = expect_kind(-1, kinds[i], &value, &word);

			take_in(node, kinds[i], value, word);
		}
	found = rwapi_wait(20);
	check(found >= 0 || found == RWAPI_EPEER);
	if (found == RWAPI_EPEER)
		find_the_dead();
}

static int living(void)
{
	int count = 0;

	for (int node = 0; node < size; node++)
		count += node != rank && !peers[node].dead;
	return count;
}

/* ---- a rank's life --------------------------------------------------------------------------- */

static void meet(void)
{
	rwapi_net_t net;
	uint64_t pid;

	for (int node = 0; node < size; node++) {
		from[node] = rwapi_alloc(LONGEST, &from_net[node]);
		to[node] = rwapi_alloc(LONGEST, &net);
		check(from[node] && to[node]);
		send_kind(node, KIND_NET, 0, net);
	}
	for (int node = 0; node < size; node++)
		expect_kind(node, KIND_NET, NULL, &peers[node].net);
	send_kind(0, KIND_COUNT, 0, (uint64_t)getpid());
	for (int node = 0; rank == 0 && node < size; node++) {
		expect_kind(node, KIND_COUNT, NULL, &pid);
		if (node >= SURVIVORS)
			victim[node - SURVIVORS] = (pid_t)pid;
	}
}

/* Writes to all that live, until ROUNDS_AFTER of them have reached the other survivor after the
 * last death. For the victims it never ends. */
static void work(void)
{
	uint64_t start = now_ns();
	uint32_t after = 0;
	int left = size;

	while (living() > 1 || peers[!rank].rounds < after + ROUNDS_AFTER) {
		for (int node = 0; node < size; node++)
			if (node != rank && !peers[node].dead && !peers[node].waits)
				write_to(node);
		receive_all();
		if (living() < left) {
			left = living();
			after = peers[!rank].rounds;
			if (rank == 0)
				next_kill_soon();
		}
		check(seconds_since(start) < DEADLINE_S);
	}
}

int main(int argc, char **argv)
{
	begin(0);
	check(size > SURVIVORS && size <= RANKS_MOST);
	seed = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 1000 + (uint64_t)rank;
	meet();
	if (rank == 0) {
		victims_left = size - SURVIVORS;
		signal(SIGALRM, kill_next);
	}
	work();
	check(tell(!rank, KIND_BARRIER, 0, 0));
	while (!peers[!rank].finished)
		receive_all();
	check(rwapi_finalize() == RWAPI_EPEER);
	printf("rank %d: went on\n", rank);
	return 0;
}
