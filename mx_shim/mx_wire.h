/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The formats in which endpoints of MX talk. All of it is checked in mx_wire.c, and nowhere else.
 *
 * DATA portal, one of its own for each life of an endpoint: the match bits are the program's. The
 * header data say the rest:
 *
 *    63 62 | 61    54 | 53      40 | 39      30 | 29    16 | 15       0
 *    kind  | sender's | sender's   | receiver's | number   | pull: length - 1
 *          | id       | tag        | tag, low   | of send  | else: sender's life
 *
 * A tag is the low bits of a session, the number of a life of an endpoint; `life` is the next 16,
 * which are random. Messages for or from another life are recognized by them.
 *
 * Fixed portals, shared by the endpoints of a process:
 *
 *    CONNECT  32 bytes to be read, a struct mxs_record. Match bits: what is asked for, the
 *             endpoint's id, the key
 *    READ     the memory of a send; match bits: sender's id, sender's tag, number
 *    CONTROL  empty puts; match bits: kind, receiver's id and tag, sender's id and tag. Header
 *             data: what the kind says
 */
#ifndef MX_SHIM_MX_WIRE_H
#define MX_SHIM_MX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MXS_PT_CONNECT = 50,
	MXS_PT_READ = 51,
	MXS_PT_CONTROL = 52,
	MXS_PT_DATA_FIRST = 8, /* data portals: the free ones among these */
	MXS_PT_DATA_LAST = 39,

	MXS_IDS = 256, /* endpoint ids are less */
	MXS_TAG_BITS = 14,
	MXS_TAG_MASK = (1 << MXS_TAG_BITS) - 1,
	MXS_TAG_LOW = (1 << 10) - 1,
	MXS_LIFE_MASK = (1 << 16) - 1,
	MXS_NUMBERS = 1 << 14,

	MXS_EAGER_MOST = 32768, /* bytes that go with a header */
	MXS_PULL_MOST = 65536,  /* bytes that a block cannot hold are more */
};

/* ---- messages -------------------------------------------------------------------------------- */

enum mxs_wire_kind {
	MXS_EAGER = 0,  /* the bytes are there */
	MXS_SYNC = 1,   /* as well, and the sender waits for DONE */
	MXS_PULL = 2,   /* the bytes are read */
	MXS_DIRECT = 3, /* the bytes went to a posted receive, else they are read */
};

struct mxs_header {
	enum mxs_wire_kind kind;
	uint32_t eid, tag; /* of the sender */
	uint32_t to_tag;   /* of the receiver, low bits */
	uint32_t number;
	uint32_t length; /* PULL: bytes to be read */
	uint32_t life;   /* of the sender; not with PULL */
};

static inline uint32_t mxs_life_of(uint32_t session)
{
	return session >> MXS_TAG_BITS & MXS_LIFE_MASK;
}

uint64_t mxs_header_encode(const struct mxs_header *h);
/* `rlength` is the length of the put. False: this is no message of an endpoint. */
bool mxs_header_decode(uint64_t hdr_data, uint64_t rlength, struct mxs_header *h);

static inline uint64_t mxs_read_bits(uint32_t eid, uint32_t tag, uint32_t number)
{
	return (uint64_t)eid << 32 | tag << MXS_TAG_BITS | number;
}

/* ---- control --------------------------------------------------------------------------------- */

enum mxs_control_kind {
	MXS_CONTROL_CREDIT = 1, /* header data: messages, bytes that may have been sent in all */
	MXS_CONTROL_DONE = 2,   /* header data: number of a send, bytes moved */
	MXS_CONTROL_WAKE = 3,   /* to the process itself */
};

struct mxs_control {
	enum mxs_control_kind kind;
	uint32_t to_eid, to_tag;
	uint32_t eid, tag; /* of the sender */
	uint32_t a, b;     /* the halves of the header data */
};

uint64_t mxs_control_bits(const struct mxs_control *c);
uint64_t mxs_control_data(const struct mxs_control *c);
bool mxs_control_decode(uint64_t match_bits, uint64_t hdr_data, struct mxs_control *c);
/* Match bits and ignore bits of the entry that takes what is meant for an endpoint. */
uint64_t mxs_control_match(uint32_t to_eid, uint32_t to_tag);
uint64_t mxs_control_ignore(void);

/* ---- records --------------------------------------------------------------------------------- */

enum mxs_ask {
	MXS_ASK_KEY = 1,  /* an endpoint, for those who know its key */
	MXS_ASK_ID = 2,   /* for those who have met it, and want to send */
	MXS_ASK_LIFE = 3, /* to know that it lives */
};

static inline uint64_t mxs_ask_bits(enum mxs_ask ask, uint32_t eid, uint32_t key)
{
	return (uint64_t)ask << 56 | (uint64_t)eid << 32 | key;
}

enum mxs_answer {
	MXS_ANSWER_OK = 1,
	MXS_ANSWER_BAD_KEY = 2,
	MXS_ANSWER_CLOSED = 3,
};

enum { MXS_RECORD_BYTES = 32 };

struct mxs_record {
	enum mxs_answer answer;
	uint32_t eid;
	uint32_t session; /* of OK, not 0 */
	uint32_t portal;
	uint32_t slots, bytes; /* that the one who asks may send */
};

void mxs_record_encode(const struct mxs_record *r, unsigned char bytes[MXS_RECORD_BYTES]);
bool mxs_record_decode(const unsigned char *bytes, size_t size, struct mxs_record *r);

#endif
