/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A network in one process: as many datagram machines as memory allows, virtual time, and faults
 * by chance. Everything that happens follows from the seed, so a run that went wrong can be had
 * again.
 */
#ifndef SIM_H
#define SIM_H

#include "nal/net/dgram/dgram.h"
#include "nal/net/dgram/sim/sim_model.h"

struct sim;

/* One process. */
struct sim_node {
	struct sim *sim;
	uint32_t index;
	struct dgram *m; /* NULL: crashed */
	void *app;       /* the caller's */
	/* the simulation's own */
	uint32_t lives;
	uint64_t busy, link_out, link_in; /* when processor and links are free again */
	uint64_t wake;                    /* the next event that is for its timers */
};

struct sim_cfg {
	uint64_t seed;
	uint32_t nodes;
	struct sim_model net;
	bool tags;                /* packets carry one, over all of their bytes */
	bool unnamed;             /* machines are not told where packets come from */
	struct dgram_cfg machine; /* id, incarnation and seed are set by the simulation */
	/* deliver, delivered, sent, accept, up, peer_failed, segments;
	 * `user` is the struct sim_node */
	struct dgram_ops ops;
};

struct sim_stats {
	uint64_t packets, bytes;
	struct sim_counts faults;
	uint64_t cut; /* by a partition or a crash */
	uint64_t events;
};

/* Costs of a cluster's Ethernet of today: 25 Gbit/s, some microseconds. */
void sim_defaults(struct sim_cfg *cfg);

/* All nodes are up. NULL: no memory. */
struct sim *sim_create(const struct sim_cfg *cfg);
/* Machines that are left end as by dgram_destroy. Takes NULL. */
void sim_destroy(struct sim *s);

struct sim_node *sim_node(struct sim *s, uint32_t index);
uint64_t sim_now(const struct sim *s);
const struct sim_stats *sim_stats(const struct sim *s);
/* Numbers for the caller, from the same seed. */
uint64_t sim_random(struct sim *s);
/* True in n of 1000 cases. */
bool sim_chance(struct sim *s, uint32_t n);

/* The peer number of `to` at `from`, made known. */
uint32_t sim_peer(struct sim_node *from, uint32_t to);
/* The node behind a peer number. */
uint32_t sim_peer_node(const struct sim_node *n, uint32_t peer);
/* Sends a message from a node, and sees to it that the node's machine runs. As dgram_send. */
int sim_send(struct sim_node *from, uint32_t to, const struct net_out *o);
/* Has the node's machine run now, after it was used from outside of a callback. */
void sim_kick(struct sim_node *n);

/* Other faults from now on. */
void sim_set_faults(struct sim *s, const struct sim_faults *f);
/* From now on nothing passes from one node to another, in this direction (cut), or does again. */
void sim_cut(struct sim *s, uint32_t from, uint32_t to, bool cut);
/* The process is gone, without goodbye; its machine ends as by dgram_destroy. */
void sim_crash(struct sim_node *n);
/* Another one is there in its place. False: no memory. */
bool sim_restart(struct sim_node *n);
/* Looks at every packet that a node hands to the network, and may change it; false: it is lost.
 * NULL: nobody does. */
typedef bool sim_seen(void *arg, uint32_t from, uint32_t to, uint8_t *packet, size_t len);
void sim_watch(struct sim *s, sim_seen *seen, void *arg);
/* A packet from anywhere arrives at a node now. */
void sim_inject(struct sim_node *to, uint32_t from, const void *packet, size_t len);

/* Lets the next thing happen. False: nothing ever will, or not until `until`, which is now then. */
bool sim_step(struct sim *s, uint64_t until);
/* Lets things happen until `done` says true or it is `until`. The last word of `done`. */
bool sim_run(struct sim *s, uint64_t until, bool (*done)(void *arg), void *arg);

#endif
