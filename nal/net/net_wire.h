/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Headers of the messages that nal/net/dgram carries between Portals processes. Numbers are
 * little-endian. Received headers are untrusted: net_wire.c decodes them into checked host
 * structures. Nothing here blocks or needs a lock.
 */
#ifndef NET_WIRE_H
#define NET_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum net_kind {
	NET_PUT = 1, /* the body is the data */
	NET_GET,
	NET_GETPUT, /* the body is the new contents */
	NET_ANSWER, /* final response to an operation that gets no reply */
	NET_REPLY,  /* the body is the data of a get or getput */
};

/*
 *    0      1       2        3         4           6          8              16
 *   +------+-------+--------+---------+-----------+----------+---------------+
 *   | kind | flags | atomic | element | pt_index  | ac_index |  match_bits   |
 *   +------+-------+--------+---------+-----------+----------+---------------+
 * A request: PUT, GET or GETPUT. Optional words of 8 bytes follow, each only if its flag is
 * set, in this order:
 *   op, op_gen      4 bytes each: the answer repeats them; without them there is no answer
 *   remote_offset   else 0
 *   length          bytes asked for, else the body's length. For an atomic on runs, the upper half
 *                   is the span that contains them. The body (list of runs, elements) is laid out
 *                   as in memory
 *   hdr_data        else 0
 */
struct net_wire_request {
	uint8_t kind;            /*  0 */
	uint8_t flags;           /*  1 */
	uint8_t atomic, element; /*  2  as in struct ptl_start */
	uint8_t pt_index[2];     /*  4 */
	uint8_t ac_index[2];     /*  6 */
	uint8_t match_bits[8];   /*  8 */
};
static_assert(sizeof(struct net_wire_request) == 16, "as drawn");
static_assert(offsetof(struct net_wire_request, match_bits) == 8, "as drawn");

#define NET_WANT_ACK     0x01u
#define NET_HAS_OP       0x02u
#define NET_HAS_OFFSET   0x04u
#define NET_HAS_LENGTH   0x08u
#define NET_HAS_DATA     0x10u
#define NET_HAS          (NET_HAS_OP | NET_HAS_OFFSET | NET_HAS_LENGTH | NET_HAS_DATA)
#define NET_REQUEST_MOST (sizeof(struct net_wire_request) + 4 * 8)

/*
 *    0      1      2      3       4      8        12       16       24
 *   +------+------+------+-------+------+--------+--------+--------+
 *   | kind | what | fail | zero  |  op  | op_gen | zeros  | length |
 *   +------+------+------+-------+------+--------+--------+--------+
 * An ANSWER: what is enum ptl_answer, fail a ptl_ni_fail_t, length the bytes stored. A REPLY:
 * length is that of the body, the others are 0.
 */
struct net_wire_answer {
	uint8_t kind;             /*  0 */
	uint8_t what;             /*  1 */
	uint8_t fail;             /*  2 */
	uint8_t zero;             /*  3 */
	uint8_t op[4], op_gen[4]; /*  4 */
	uint8_t zeros[4];         /* 12 */
	uint8_t length[8];        /* 16 */
};
static_assert(sizeof(struct net_wire_answer) == 24, "as drawn");
static_assert(offsetof(struct net_wire_answer, length) == 16, "as drawn");

/* Longest operand of a getput or an atomic. */
#define NET_SWAP_MOST 8192u

/* A header, decoded or to be encoded. The kind decides which members are valid. */
struct net_msg {
	uint8_t kind;
	bool ack;
	uint8_t atomic, element;
	uint8_t what, fail;
	uint16_t pt_index, ac_index, zero; /* fills the gap */
	uint32_t op, op_gen;
	uint32_t span; /* for an atomic on runs */
	uint64_t match_bits, remote_offset, length, hdr_data;
};

/* Decode the header of a message with a body of body_len bytes. Returns 0, or -EPROTO if it is
 * malformed. */
int net_msg_decode(const void *header, size_t len, uint64_t body_len, struct net_msg *msg);

/* Is it the header of a put that is not atomic? */
static inline bool net_is_put(const void *header, size_t len)
{
	const struct net_wire_request *w = header;

	return len >= sizeof(*w) && w->kind == NET_PUT && !w->atomic;
}

/* Is it a request, judged by its first byte? */
static inline bool net_is_request(const void *header, size_t len)
{
	const uint8_t *kind = header;

	return len && *kind <= NET_GETPUT;
}

/* Write the header at `to`, which has NET_HEADER_MAX bytes. Returns its length. */
uint32_t net_msg_encode(uint8_t *to, const struct net_msg *msg);

#endif
