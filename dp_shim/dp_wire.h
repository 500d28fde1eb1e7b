/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Formats of all that processes with DP endpoints tell each other, and decoders: the two words beside every
 * message, the record that a lookup reads, the words of flow control. All numbers are
 * little-endian in memory. Decoders check everything and set their result only if it is sound.
 *
 *   match bits of a message                    header data of a message
 *   63        62..44   43..24    23..0         63..48  47..24  23..4     3..0
 *   +---------+--------+---------+-------+     +-------+-------+---------+---------+
 *   | charged | sender | target  | DPID  |     | NID   | DPID  | number  | padding |
 *   +---------+--------+---------+-------+     +-------+-------+---------+---------+
 *   of the instances of both ends: low bits    of the sender; of the edge; bytes at the end
 */
#ifndef DP_SHIM_DP_WIRE_H
#define DP_SHIM_DP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DP_DPID_BITS = 24,
	DP_DPID_MASK = (1 << DP_DPID_BITS) - 1,
	DP_NIDS = 1 << 16, /* node ids are below this */
	DP_NUMBER_BITS = 20,
	DP_NUMBER_MASK = (1 << DP_NUMBER_BITS) - 1,
	DP_TARGET_MASK = (1 << 20) - 1, /* of an instance */
	DP_SENDER_MASK = (1 << 19) - 1,
	DP_ASKER_MASK = (1 << 10) - 1,
	DP_NEED_MASK = (1 << 14) - 1,
	DP_ALIGN = 8, /* messages are padded to this */
	DP_RECORD_BYTES = 32,
	DP_WORDS = 1 << 16, /* credit words of an endpoint */
	DP_UNITS_BITS = 40, /* of a total, in units of DP_ALIGN bytes */
	DP_MESSAGES_BITS = 24,
};

/* Beside a message. */
struct dp_header {
	bool charged;    /* the sender has spent credit for it */
	uint32_t sender; /* low bits of the sender's instance */
	uint32_t target; /* low bits of the instance that the sender means */
	uint32_t to;     /* DPID */
	uint32_t nid, dpid;
	uint32_t number;
	uint32_t padding; /* 0 to DP_ALIGN */
};

/* Bits of a request that are not compared with those of an endpoint's entries. */
#define DP_IGNORED_BITS (~(uint64_t)DP_DPID_MASK)

uint64_t dp_wire_match_bits(const struct dp_header *h);
uint64_t dp_wire_header_data(const struct dp_header *h);
/* False: no message of `length` bytes stored can have these, where node ids are below `nodes`. */
bool dp_wire_header(uint64_t match_bits, uint64_t header_data, uint64_t length, uint32_t nodes,
		    struct dp_header *h);

/* The record that a lookup reads. */
struct dp_record {
	bool open;         /* false: there is no such endpoint in that process */
	bool flow;         /* DP_FLOW is set */
	uint32_t nid;      /* of that process */
	uint32_t longest;  /* message, in bytes */
	uint64_t instance; /* not 0 */
};

void dp_wire_put_record(void *to, const struct dp_record *r);
bool dp_wire_record(const void *from, size_t length, struct dp_record *r);

/* Totals of flow control, which wrap. */
struct dp_total {
	uint64_t units; /* of DP_ALIGN bytes */
	uint32_t messages;
};

uint64_t dp_wire_put_total(struct dp_total t);
struct dp_total dp_wire_total(uint64_t word);
/* a - b, and a + b */
struct dp_total dp_total_minus(struct dp_total a, struct dp_total b);
struct dp_total dp_total_plus(struct dp_total a, struct dp_total b);
/* The share granted: false if a word that says `granted` cannot be true of one that has taken
 * `spent`, because no pool is that large. */
bool dp_wire_share(uint64_t word, struct dp_total spent, struct dp_total *share);

/* Messages without bytes between the threads of libraries. */
enum dp_control_kind {
	DP_CONTROL_KICK, /* to oneself: something has changed */
	DP_CONTROL_ASK,  /* sender to receiver: no credit */
	DP_CONTROL_TAKE, /* receiver to sender: give unspent credit back */
	DP_CONTROL_BACK, /* sender to receiver: totals of what was given back */
	DP_CONTROL_KINDS
};

struct dp_control {
	enum dp_control_kind kind;
	uint32_t to;     /* DPID */
	uint32_t target; /* low bits of the instance meant */
	uint32_t word;   /* index of the sender's credit word */
	uint32_t nid, dpid;
	uint32_t sender;       /* low bits of the asking instance */
	uint32_t need;         /* units that it has to have; these four with ASK */
	struct dp_total total; /* with BACK */
};

uint64_t dp_wire_control_bits(const struct dp_control *c);
uint64_t dp_wire_control_data(const struct dp_control *c);
bool dp_wire_control(uint64_t bits, uint64_t data, uint32_t nodes, struct dp_control *c);

#endif
