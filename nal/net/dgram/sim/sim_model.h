/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The effects of a network on packets: their cost, and faults by chance. The simulation in virtual
 * time and the transport nal/sim in real time both use it. The caller gives the seed of the
 * chances, so a run can be repeated.
 *
 * The cost model is LogGP (Alexandrov and others, 1995). A packet of k bytes keeps its sender's
 * processor busy for o. It leaves the sender's link after another max(g, k G), and travels for L.
 * It enters the receiver's link when that is free, for k G again, and keeps the processor there
 * busy for o. Packets are dropped where the receiver's link is behind by more than its queue takes.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In thousandths of all packets. */
struct sim_faults {
	uint32_t loss;
	uint32_t duplicate; /* arrives twice, at different times */
	uint32_t reorder;   /* is late by up to four times L */
	uint32_t delay;     /* is late by up to delay_ns */
	uint64_t delay_ns;
	uint32_t corrupt;  /* some of its bytes change */
	uint32_t truncate; /* its end is missing */
};

struct sim_model {
	uint64_t L_ns, o_ns, g_ns;
	uint64_t G_ps;      /* picoseconds per byte */
	uint64_t last_G_ps; /* of receivers' links, where they are slower; 0: they are not */
	/* what the queue before a receiver's link takes, as time; 0: everything */
	uint64_t queue_ns;
	uint32_t path_mtu; /* longer datagrams are lost; 0: none are */
	uint32_t jitter;   /* in thousandths of L, up to: added to each */
	struct sim_faults faults;
};

/* How many packets that happened to. */
struct sim_counts {
	uint64_t lost, duplicated, reordered, delayed, corrupted, truncated;
	uint64_t overflowed, too_long; /* queue full, beyond the MTU */
};

/* The next number after *random. */
uint64_t sim_draw(uint64_t *random);
/* True in n of 1000 cases. */
bool sim_happens(uint64_t *random, uint32_t n);

/* A packet that is ready to be sent at `ready`: when it has left the sender's link, which was
 * free at *link, and is again then. */
uint64_t sim_leave(const struct sim_model *m, uint64_t *link, uint64_t ready, size_t len);
/* Is it carried twice? The twin then leaves at *twin. */
bool sim_doubles(const struct sim_model *m, uint64_t *random, struct sim_counts *c, uint64_t left,
		 uint64_t *twin);
/* It left at `left`: *at is when it gets to the receiver's link. False: it never does. */
bool sim_travel(const struct sim_model *m, uint64_t *random, struct sim_counts *c, uint64_t left,
		uint64_t *at);
/* It gets to the receiver's link, which was free at *link, at *at, which becomes the time when
 * all of it is there; one that is `late` keeps nobody waiting. False: there is no room in the
 * queue. */
bool sim_enter(const struct sim_model *m, uint64_t *link, struct sim_counts *c, bool late,
	       size_t len, uint64_t *at);
/* Damage a packet of *len bytes by chance: change some, or cut it. */
void sim_damage(const struct sim_model *m, uint64_t *random, struct sim_counts *c, uint8_t *bytes,
		uint32_t *len);

/* ---- what is to happen later ----------------------------------------------------------------- */

/* Of those at the same time the one that was put in first comes first. */
struct sim_event {
	uint64_t at, order;
	void *packet;
	uint32_t node;
};

/* Begins as zeros; `heap` is to be freed. */
struct sim_queue {
	struct sim_event *heap; /* the next one first */
	size_t n, room;
	uint64_t order;
};

/* False: no memory. */
bool sim_queue_put(struct sim_queue *q, uint64_t at, void *packet, uint32_t node);
/* The next one; there is one. */
struct sim_event sim_queue_take(struct sim_queue *q);

#endif
