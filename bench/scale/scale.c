/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The cost of the datagram protocol as jobs grow. From 2 to 65,536 simulated processes enter a
 * barrier, or all send messages to one. Printed are virtual time (LogGP, see
 * nal/net/dgram/sim/sim.h), real time, and the memory of each. Before that comes the machine's own
 * time for a packet, without any network. The runs are checked as well: nobody leaves a barrier
 * that not all have entered, and no message is missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/scale/packets.h"
#include "nal/net/dgram/sim/sim.h"

#define BARRIERS 4u  /* the first one makes the connections */
#define ROUNDS   16u /* of a barrier, at most */

/* Where a process is told how far others are: its rounds are places 1 and on. */
enum { FOLD_IN = 0, FOLD_OUT = ROUNDS + 1, PLACES };

struct member {
	uint32_t number; /* of the barrier it is in */
	uint32_t waits;  /* the place it looks at */
	uint32_t place[PLACES];
};

static struct {
	struct sim *s;
	uint32_t nodes, rounds; /* 2^rounds processes take part in them, the others are folded in */
	struct member *member;
	uint32_t *entered; /* per barrier */
	uint32_t left;     /* members that are through all of them */
	uint32_t arrived;  /* messages of all to one */
	bool wrong;
} job;

/* A number, put to a place. */
struct put {
	uint32_t number, place;
};

static uint64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void say(struct sim_node *n, uint32_t to, const void *header, uint32_t len)
{
	struct net_out o = { .header = header, .header_len = len };

	if (sim_send(n, to, &o))
		job.wrong = true;
}

/* ---- the barrier of mpi_shim's node leaders: pairs exchange the barrier's number, by puts
 * --------- */

static void put(struct sim_node *n, uint32_t to, uint32_t place)
{
	struct put p = { job.member[n->index].number, place };

	say(n, to, &p, sizeof(p));
}

static uint32_t folded(void)
{
	return job.nodes - (1u << job.rounds);
}

static void round_of(struct sim_node *n, uint32_t round)
{
	job.member[n->index].waits = round;
	put(n, n->index ^ 1u << (round - 1), round);
}

static void enter(struct sim_node *n)
{
	struct member *me = &job.member[n->index];
	uint32_t half = 1u << job.rounds;

	job.entered[me->number++]++;
	if (n->index >= half) {
		me->waits = FOLD_OUT;
		put(n, n->index - half, FOLD_IN);
	} else if (n->index < folded()) {
		me->waits = FOLD_IN;
	} else {
		round_of(n, 1);
	}
}

static void leave(struct sim_node *n)
{
	struct member *me = &job.member[n->index];

	if (n->index < folded())
		put(n, n->index + (1u << job.rounds), FOLD_OUT);
	if (job.entered[me->number - 1] != job.nodes)
		job.wrong = true;
	if (me->number < BARRIERS)
		enter(n);
	else
		job.left++;
}

/* The awaited message may have come long ago, and that of the next barrier, too. */
static void go_on(struct sim_node *n)
{
	struct member *me = &job.member[n->index];

	for (uint32_t left = job.left; job.left == left && me->place[me->waits] >= me->number;)
		if (me->waits < job.rounds)
			round_of(n, me->waits + 1);
		else
			leave(n);
}

static enum net_verdict deliver(void *user, uint32_t peer, const struct net_in *in,
				struct net_delivery *delivery)
{
	struct sim_node *n = user;
	struct member *me = &job.member[n->index];
	struct put p;

	(void)peer;
	(void)delivery;
	if (in->header_len != sizeof(p)) {
		job.arrived++;
		return NET_DONE;
	}
	memcpy(&p, in->header, sizeof(p));
	/* nobody is further than in the barrier after this one */
	if (p.place >= PLACES || p.number <= me->place[p.place] || p.number > me->number + 1) {
		job.wrong = true;
		return NET_DROP;
	}
	me->place[p.place] = p.number;
	go_on(n);
	return NET_DONE;
}

static bool all_left(void *arg)
{
	(void)arg;
	return job.left == job.nodes || job.wrong;
}

static bool all_arrived(void *arg)
{
	(void)arg;
	return job.arrived == job.nodes - 1 || job.wrong;
}

struct memory {
	uint64_t bytes;
	uint64_t peers;
};

static struct memory memory_in_use(void)
{
	struct memory sum = { 0, 0 };

	for (uint32_t i = 0; i < job.nodes; i++) {
		struct net_stats st;

		dgram_stats(sim_node(job.s, i)->m, &st);
		sum.bytes += st.bytes;
		sum.peers += st.peers;
	}
	return sum;
}

static bool make(uint32_t nodes)
{
	struct sim_cfg cfg;

	sim_defaults(&cfg);
	cfg.seed = 1;
	cfg.nodes = nodes;
	cfg.tags = false;
	cfg.ops.deliver = deliver;
	/* so that what is kept of idle peers can be seen soon */
	cfg.machine.linger_ns = 20000000;
	cfg.machine.keepalive_ns = 3600ull * 1000000000u;
	job.nodes = nodes;
	for (job.rounds = 0; 2u << job.rounds <= nodes; job.rounds++)
		;
	job.left = job.arrived = 0;
	job.s = sim_create(&cfg);
	job.member = calloc(nodes, sizeof(*job.member));
	job.entered = calloc(BARRIERS, sizeof(*job.entered));
	return job.s && job.member && job.entered;
}

static void end(void)
{
	sim_destroy(job.s);
	free(job.member);
	free(job.entered);
}

static const uint64_t second = 1000000000u;

/* One line: barriers. The virtual time is that of one barrier with connections made, and of the
 * first. */
static bool barriers(uint32_t nodes)
{
	uint64_t from = wall_ns(), start, first = 0, took;
	struct memory busy, idle;
	uint64_t packets;

	if (!make(nodes)) {
		fprintf(stderr, "scale: not enough memory for %u processes\n", nodes);
		return false;
	}
	start = sim_now(job.s);
	for (uint32_t i = 0; i < nodes; i++)
		enter(sim_node(job.s, i));
	while (!all_left(NULL)) {
		if (!sim_step(job.s, start + 100 * second))
			break;
		if (!first && job.entered[1] == nodes)
			first = sim_now(job.s) - start;
	}
	took = sim_now(job.s) - start;
	busy = memory_in_use();
	packets = sim_stats(job.s)->packets;
	while (sim_step(job.s, start + took + second))
		;
	idle = memory_in_use();
	job.wrong |= job.left != nodes;
	printf("%8u  %-10s %12.1f %12.1f %10.2f %12llu %10llu %10llu %9.0f\n", nodes, "barrier",
	       (double)first / 1e3, (double)(took - first) / 1e3 / (BARRIERS - 1),
	       (double)(wall_ns() - from) / 1e9, (unsigned long long)packets,
	       (unsigned long long)(busy.bytes / nodes), (unsigned long long)(idle.bytes / nodes),
	       (double)idle.peers / nodes);
	end();
	return !job.wrong;
}

/* One line: everybody sends one message to process 0. */
static bool all_to_one(uint32_t nodes)
{
	uint64_t from = wall_ns(), start;
	struct memory busy;

	if (!make(nodes)) {
		fprintf(stderr, "scale: not enough memory for %u processes\n", nodes);
		return false;
	}
	start = sim_now(job.s);
	for (uint32_t i = 1; i < nodes; i++)
		say(sim_node(job.s, i), 0, "one", 3);
	sim_run(job.s, start + 100 * second, all_arrived, NULL);
	busy = memory_in_use();
	job.wrong |= job.arrived != nodes - 1;
	printf("%8u  %-10s %12.1f %12s %10.2f %12llu %10llu %10s %9.0f\n", nodes, "all to one",
	       (double)(sim_now(job.s) - start) / 1e3, "-", (double)(wall_ns() - from) / 1e9,
	       (unsigned long long)sim_stats(job.s)->packets,
	       (unsigned long long)(busy.bytes / nodes), "-", (double)busy.peers / nodes);
	end();
	return !job.wrong;
}

static void usage(FILE *to)
{
	fprintf(to, "usage: scale [--from N] [--to N] [--packets]\n\n"
		    "Barriers and messages of all to one among N simulated processes, for N = 2, "
		    "4, 8, ... 65536\n"
		    "or between the numbers given. --packets: only the cost of a packet in the "
		    "machine.\n");
}

int main(int argc, char **argv)
{
	unsigned long from = 2, to = 65536;
	bool only_packets = false, fine = true;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--from") && i + 1 < argc) {
			from = strtoul(argv[++i], NULL, 0);
		} else if (!strcmp(argv[i], "--to") && i + 1 < argc) {
			to = strtoul(argv[++i], NULL, 0);
		} else if (!strcmp(argv[i], "--packets")) {
			only_packets = true;
		} else {
			usage(strcmp(argv[i], "--help") ? stderr : stdout);
			return strcmp(argv[i], "--help") ? 2 : 0;
		}
	}
	if (from < 2 || to > 65536 || from > to) {
		usage(stderr);
		return 2;
	}
	if (!packets_measure())
		return 1;
	if (only_packets)
		return 0;
	printf("\nvirtual: L 5 us, o 0.5 us, G 0.32 ns/byte; bytes are of one process, idle: %s\n",
	       "a second after");
	printf("%8s  %-10s %12s %12s %10s %12s %10s %10s %9s\n", "processes", "what", "first/us",
	       "each/us", "wall/s", "packets", "busy/B", "idle/B", "peers");
	for (unsigned long n = from; n <= to && fine; n *= 2) {
		fine = barriers((uint32_t)n) && all_to_one((uint32_t)n);
		fflush(stdout);
	}
	if (!fine)
		fprintf(stderr, "scale: a barrier was left too early, or messages are missing\n");
	return fine ? 0 : 1;
}
