/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The packets of the machine for fabrics; doc/wire-rdma.md says what they are for. All numbers
 * are little-endian, and nothing is aligned. Everything that arrives goes through
 * rdma_decode(), which gives a checked host structure. Its callers check tags, tokens and
 * order.
 */
#ifndef RDMA_WIRE_H
#define RDMA_WIRE_H

#include <assert.h>

#include "base/bytes.h"
#include "nal/net/carrier.h"
#include "nal/net/rdma/rdma_link.h"

#define RDMA_VERSION 6

enum rdma_kind {
	RDMA_HELLO = 1, /* I would talk to you */
	RDMA_WELCOME,   /* the answer to a HELLO */
	RDMA_SHORT,     /* a message with its body; data */
	RDMA_LONG,      /* a message whose body is to be fetched; data */
	RDMA_PULL,      /* so much of a body is wanted in segments */
	RDMA_SEGMENT,   /* a segment of a body; data */
	RDMA_OVER,      /* the receiver is done with long messages */
	RDMA_NOTE,      /* nothing but the head */
	RDMA_PING,      /* nothing but the head; asks for a NOTE */
	RDMA_BYE,       /* I close, or give you up */
	RDMA_BEGIN,     /* a message with the first bytes of its body; data */
	/* The next bytes, or the first bytes of a message that begins as the last BEGIN; data. */
	RDMA_MORE,
};

/* Does it need a credit of the receiver? */
static inline bool rdma_is_data(uint8_t kind)
{
	return kind == RDMA_SHORT || kind == RDMA_LONG || kind == RDMA_SEGMENT ||
	       kind == RDMA_BEGIN || kind == RDMA_MORE;
}

/*
 *    0      1            2    4     6          8
 *   +------+------------+----+-----+----------+-------+
 *   | what | header_len | to | seq | consumed | token |
 *   +------+------------+----+-----+----------+-------+
 * All packets except headerless ones (below) begin so. what: the version in the upper half, the
 * kind in the lower half. `to` and `token` are what the receiver gave to the sender in its
 * greeting. seq counts the packets of a connection, from 1. consumed counts the packets with data
 * that the sender has consumed from the receiver. Only the lower 16 bits of both go: links do
 * not lose packets, and fewer packets with data are under way. In greetings all four are 0.
 *
 * A SHORT packet is this head, a header of header_len bytes, and the body, which is the rest.
 * It is this small because each byte of a short message costs time where the processor computes
 * its checksum, and where one more cache line goes from core to core. A MORE packet is this
 * head and bytes. header_len is 0 in all kinds but SHORT and BEGIN.
 */
struct rdma_wire_head {      /* offset */
	uint8_t what;        /*  0 */
	uint8_t header_len;  /*  1 */
	uint8_t to[2];       /*  2 */
	uint8_t seq[2];      /*  4 */
	uint8_t consumed[2]; /*  6 */
	uint8_t token[8];    /*  8 */
};
static_assert(sizeof(struct rdma_wire_head) == 16, "as drawn");
static_assert(offsetof(struct rdma_wire_head, token) == 8, "as drawn");

/*
 *    16      24    40     48     56            64         72    76
 *   +-------+-----+------+------+-------------+----------+-----+-----+
 *   | token | tag | from | whom | incarnation | greeting | uid | jid |
 *   +-------+-----+------+------+-------------+----------+-----+-----+
 *    80       82        84            86      88
 *   +--------+---------+-------------+-------+--- - -
 *   | number | allowed | address_len | zeros | address
 *   +--------+---------+-------------+-------+--- - -
 * Follows the head of a HELLO and of a WELCOME. greeting is any number in a HELLO; a WELCOME
 * repeats the one of the HELLO.
 */
struct rdma_wire_hello {            /* offset, from that of the token */
	uint8_t token[8];           /* 0 packets to the sender must carry it, with number in `to` */
	uint8_t tag[NET_TAG_BYTES]; /* 8 over all the rest */
	uint8_t from[8];            /* 24 the sender: nid << 32 | pid */
	uint8_t whom[8];            /* 32 the receiver */
	uint8_t incarnation[8];     /* 40 of the sending process */
	uint8_t greeting[8];        /* 48 */
	uint8_t uid[4];             /* 56 */
	uint8_t jid[4];             /* 60 */
	uint8_t number[2];          /* 64 */
	uint8_t allowed[2];         /* 66 packets with data it may be sent ahead */
	uint8_t address_len[2];     /* 68 */
	uint8_t zero[2];            /* 70 */
};
static_assert(sizeof(struct rdma_wire_hello) == 72, "as drawn");
static_assert(sizeof(struct rdma_wire_head) + offsetof(struct rdma_wire_hello, tag) ==
		      NET_TAG_OFFSET,
	      "the tag is where net_tag() leaves it out");
static_assert(offsetof(struct rdma_wire_hello, greeting) == 48, "as drawn");
static_assert(offsetof(struct rdma_wire_hello, address_len) == 68, "as drawn");

/*
 *    16       24
 *   +--------+--------+-------
 *   | length | header | bytes
 *   +--------+--------+-------
 * Follows the head of a BEGIN: the length of the whole body, the header, and the first bytes of
 * the body.
 */
struct rdma_wire_begin {
	uint8_t length[8]; /*  0 */
};
static_assert(sizeof(struct rdma_wire_begin) == 8, "as drawn");

/*
 *    16           17         18      20    24       32        40    48
 *   +------------+----------+-------+-----+--------+---------+-----+--------+
 *   | header_len | readable | zeros | id  | length | address | key | header |
 *   +------------+----------+-------+-----+--------+---------+-----+--------+
 * Follows the head of a LONG. readable 1: the body may be read at this address with this key,
 * until OVER is sent; 0: only in segments.
 */
struct rdma_wire_long {
	uint8_t header_len; /*  0 */
	uint8_t readable;   /*  1 */
	uint8_t zero[2];    /*  2 */
	uint8_t id[4];      /*  4 */
	uint8_t length[8];  /*  8 */
	uint8_t address[8]; /* 16 */
	uint8_t key[8];     /* 24 */
};
static_assert(sizeof(struct rdma_wire_long) == 32, "as drawn");
static_assert(offsetof(struct rdma_wire_long, key) == 24, "as drawn");

/*
 *    16   20        21      24       32
 *   +----+--------+-------+--------+--------+-------
 *   | id | status | zeros | length | offset | bytes
 *   +----+--------+-------+--------+--------+-------
 * PULL: the first `length` bytes are wanted. OVER: status is an enum net_status, length the
 * number of bytes received; up to RDMA_OVERS - 1 more messages may follow in the same form.
 * SEGMENT: `length` bytes from `offset` on.
 */
struct rdma_wire_body {
	uint8_t id[4];     /*  0 */
	uint8_t status;    /*  4 */
	uint8_t zero[3];   /*  5 */
	uint8_t length[8]; /*  8 */
	uint8_t offset[8]; /* 16 */
};
static_assert(sizeof(struct rdma_wire_body) == 24, "as drawn");
static_assert(offsetof(struct rdma_wire_body, offset) == 16, "as drawn");

#define RDMA_PARTS_MOST 65536u /* bytes of a body that comes in several packets, unasked */
#define RDMA_OVERS      7u     /* most messages of one OVER */

/*
 *    0    16    24         32      64
 *   +----+-----+----------+-------+     bits
 *   | to | seq | consumed | token |
 *   +----+-----+----------+-------+
 * The word that goes beside a headerless packet, which is a MORE without its head. The fields
 * are those of the head, but only the lower bits of seq, consumed and token. A link that knows the
 * packet's path does not send the token.
 */
static inline uint64_t rdma_word(uint16_t to, uint16_t seq, uint16_t consumed, uint64_t token)
{
	return to | (uint64_t)(uint8_t)seq << 16 | (uint64_t)(uint8_t)consumed << 24 | token << 32;
}

#define RDMA_WORD_CREDIT 127u /* most packets with data under way that the lower bits tell apart */

static inline uint16_t rdma_word_to(uint64_t word)
{
	return (uint16_t)word;
}

/* The number with these lower eight bits; `from` is the smallest possible one. */
static inline uint16_t rdma_word_seq(uint64_t word, uint16_t from)
{
	return (uint16_t)(from + (uint8_t)((uint8_t)(word >> 16) - (uint8_t)from));
}

static inline uint16_t rdma_word_consumed(uint64_t word, uint16_t from)
{
	return rdma_word_seq(word >> 8, from);
}

static inline bool rdma_word_fits(uint64_t word, uint64_t token)
{
	return word >> 32 == (token & UINT32_MAX);
}

/* Bytes of a packet before the header of a message, and before a segment. */
#define RDMA_BEFORE_SHORT   sizeof(struct rdma_wire_head)
#define RDMA_BEFORE_BEGIN   (sizeof(struct rdma_wire_head) + sizeof(struct rdma_wire_begin))
#define RDMA_BEFORE_MORE    sizeof(struct rdma_wire_head)
#define RDMA_BEFORE_SEGMENT (sizeof(struct rdma_wire_head) + sizeof(struct rdma_wire_body))
#define RDMA_HELLO_MAX                                                                             \
	(sizeof(struct rdma_wire_head) + sizeof(struct rdma_wire_hello) + RDMA_ADDRESS_MAX)

/* A packet, decoded or to be encoded. The kind says which members are valid; in a SHORT one the
 * others are undefined. Pointers lead into the packet. */
struct rdma_msg {
	uint8_t kind;
	uint16_t to, seq, consumed;
	uint64_t token;
	/* SHORT, LONG, BEGIN */
	const void *header, *body; /* body: of a SEGMENT and of a MORE, too */
	uint32_t header_len, id;
	bool readable;
	uint64_t length, address, key, offset;
	uint64_t here; /* of a BEGIN: bytes of the body that are in it */
	uint8_t status;
	/* of an OVER: `nmore` messages besides the first, for rdma_decode_over() */
	const void *more;
	uint32_t nmore;
	/* greetings; undefined in others */
	const void *link_address;
	size_t link_address_len;
	uint64_t from, whom, incarnation, own_token, greeting;
	uint32_t uid, jid;
	uint16_t number, allowed;
};

static inline bool rdma_is_short(const void *packet, size_t len)
{
	const struct rdma_wire_head *w = packet;

	return len >= sizeof(*w) && w->what == (RDMA_VERSION << 4 | RDMA_SHORT);
}

/* Returns 0, or -EPROTO: not our packet, cut short, or invalid. The tag of a greeting is still
 * to be checked. */
int rdma_decode(const void *packet, size_t len, struct rdma_msg *m);

/* Decode message `i` of m->more of a valid packet: sets m->id, m->status and m->length. */
void rdma_decode_over(struct rdma_msg *m, uint32_t i);

/* Write the packet without its tag and without the header, body, bytes, address or messages
 * that `m` points to. These follow. Returns the length so far. */
uint32_t rdma_encode(uint8_t *to, const struct rdma_msg *m);

/* Write one more message of an OVER. Returns its length. */
uint32_t rdma_encode_over(uint8_t *to, uint32_t id, uint8_t status, uint64_t length);

/* rdma_encode() for a SHORT packet, the most frequent kind. m->kind need not be set. */
uint32_t rdma_encode_short(uint8_t *to, const struct rdma_msg *m);

#endif
