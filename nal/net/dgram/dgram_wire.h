/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The datagrams of the reliable protocol; doc/wire-dgram.md says what they are for. All
 * numbers are little-endian and nothing is aligned. Every byte that arrives goes through a
 * decoder of dgram_wire.c, which takes (pointer, length) and gives a checked host structure.
 * No function blocks or needs a lock.
 */
#ifndef DGRAM_WIRE_H
#define DGRAM_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "nal/net/carrier.h"

#define DGRAM_VERSION 2

/* ---- the packet header ----------------------------------------------------------------------- */

enum dgram_type {
	DGRAM_HELLO = 1, /* I want to talk to you */
	DGRAM_WELCOME,   /* the answer to a HELLO */
	DGRAM_FRAMES,    /* everything else: frames follow */
	DGRAM_RESET,     /* the connection you write to is unknown here */
};

/*
 *    0         1      2          4        8                16               24              40
 *   +---------+------+----------+--------+----------------+----------------+---------------+
 *   | version | type | head_len |  gap   |       to       |       pn       |      tag      |
 *   +---------+------+----------+--------+----------------+----------------+---------------+
 * All packets begin like this. head_len counts the bytes from the first of this header to the
 * last one that is not payload of a DATA frame. Only that payload may follow the head. The tag
 * covers the head without the tag's own bytes, or the whole packet without them.
 */
#define DGRAM_PN_MAX (UINT64_MAX / 2)

struct dgram_wire_head {            /* offset */
	uint8_t version;            /*  0 */
	uint8_t type;               /*  1  enum dgram_type */
	uint8_t head_len[2];        /*  2 */
	uint8_t gap[4];             /*  4  pn - gap: the oldest packet the sender still waits for */
	uint8_t to[8];              /*  8  the receiver's token for the connection, HELLO: 0 */
	uint8_t pn[8];              /* 16  packet number: never used twice for one token; from 1 */
	uint8_t tag[NET_TAG_BYTES]; /* 24 */
};
static_assert(sizeof(struct dgram_wire_head) == 40, "as drawn");
static_assert(offsetof(struct dgram_wire_head, to) == 8, "as drawn");
static_assert(offsetof(struct dgram_wire_head, pn) == 16, "as drawn");
static_assert(offsetof(struct dgram_wire_head, tag) == NET_TAG_OFFSET, "as drawn");

/* ---- HELLO, WELCOME, RESET ------------------------------------------------------------------- */

/*
 *    40          48          56              64         72     76     80
 *   +-----------+-----------+---------------+----------+------+------+
 *   | from      | for       | incarnation   | token    | uid  | jid  |
 *   +-----------+-----------+---------------+----------+------+------+
 * Follows the header of a HELLO and of a WELCOME; pn and gap are 0 there.
 */
struct dgram_wire_hello {       /* offset */
	uint8_t from[8];        /* 0  the sender: nid << 32 | pid */
	uint8_t whom[8];        /* 8  the intended receiver */
	uint8_t incarnation[8]; /* 16  of the sending process */
	uint8_t token[8];       /* 24  the sender's token: answers are sent to it */
	uint8_t uid[4];         /* 32 */
	uint8_t jid[4];         /* 36 */
};
static_assert(sizeof(struct dgram_wire_hello) == 40, "as drawn");
static_assert(offsetof(struct dgram_wire_hello, token) == 24, "as drawn");
static_assert(offsetof(struct dgram_wire_hello, jid) == 36, "as drawn");

/*
 *    40          48
 *   +-----------+
 *   | unknown   |
 *   +-----------+
 */
struct dgram_wire_reset {
	uint8_t unknown[8]; /* 0  the unknown token that was written to */
};
static_assert(sizeof(struct dgram_wire_reset) == 8, "as drawn");

/* ---- frames ---------------------------------------------------------------------------------- */

enum dgram_frame_kind {
	DGRAM_FRAME_PING = 1, /* empty, but acknowledged. 8 bytes */
	DGRAM_FRAME_PAD,      /* the rest of the packet is zeros without meaning */
	DGRAM_FRAME_CONFIRM,  /* my token is this */
	DGRAM_FRAME_ACK,      /* what has arrived; not acknowledged itself */
	DGRAM_FRAME_MSG,      /* a message's header, and its body if that is short */
	DGRAM_FRAME_PULL,     /* how much of a message's body is wanted */
	DGRAM_FRAME_DATA,     /* a segment of a body; the last frame of its packet */
	DGRAM_FRAME_BYE,      /* I close. 8 bytes */
};

/*
 *    0      1           8                16              24     28     32
 *   +------+-----------+----------------+---------------+------+------+
 *   | kind | zeros     |     token      |  incarnation  | uid  | jid  |
 *   +------+-----------+----------------+---------------+------+------+
 * First in every packet until the peer has shown that it knows the connection, and after time-outs.
 */
struct dgram_wire_confirm {
	uint8_t kind;           /*  0 */
	uint8_t zero[7];        /*  1 */
	uint8_t token[8];       /*  8  the sender's, as in its HELLO or WELCOME */
	uint8_t incarnation[8]; /* 16 */
	uint8_t uid[4];         /* 24 */
	uint8_t jid[4];         /* 28 */
};
static_assert(sizeof(struct dgram_wire_confirm) == 32, "as drawn");
static_assert(offsetof(struct dgram_wire_confirm, incarnation) == 16, "as drawn");
static_assert(offsetof(struct dgram_wire_confirm, jid) == 28, "as drawn");

/*
 *    0      1       2        4           8        12       16
 *   +------+-------+--------+-----------+--------+--------+----------------
 *   | kind | words | credit | delivered | newest | delay  | words x 8 bytes
 *   +------+-------+--------+-----------+--------+--------+----------------
 * Bit b of word w says that packet newest - 64 words + 64 w + b has arrived, too. Only the
 * lower half of newest is sent: no acknowledgement names a packet that is 2^32 or more behind
 * the newest one.
 */
#define DGRAM_ACK_WORDS 32u

struct dgram_wire_ack {
	uint8_t kind;         /*  0 */
	uint8_t words;        /*  1 */
	uint8_t credit[2];    /*  2  messages with numbers below delivered + credit may be sent */
	uint8_t delivered[4]; /*  4  number of the next message to be delivered */
	uint8_t newest[4];    /*  8  highest packet number that has arrived */
	uint8_t delay[4];     /* 12  microseconds since it did */
};
static_assert(sizeof(struct dgram_wire_ack) == 16, "as drawn");
static_assert(offsetof(struct dgram_wire_ack, newest) == 8, "as drawn");
static_assert(offsetof(struct dgram_wire_ack, delay) == 12, "as drawn");

/*
 *    0      1         2          4        8                 8 or 16
 *   +------+---------+----------+--------+- - - - - - - - -+-----------+----------+
 *   | kind | hdr_len | body_now | number |    body_len     | header    | body     |
 *   +------+---------+----------+--------+- - - - - - - - -+-----------+----------+
 * A body comes whole with its header, body_now bytes, or in DATA frames. In the second case
 * body_now is DGRAM_BODY_LATER, and body_len, present only then, is the length of the body.
 */
#define DGRAM_BODY_LATER 0xffffu

struct dgram_wire_msg {
	uint8_t kind;        /* 0 */
	uint8_t hdr_len;     /* 1  at most NET_HEADER_MAX */
	uint8_t body_now[2]; /* 2 */
	uint8_t number[4];   /* 4  of the message: 0, 1, 2, ... in each direction of a connection */
	uint8_t body_len[8]; /* 8  not 0 */
};
static_assert(sizeof(struct dgram_wire_msg) == 16, "as drawn, with all there can be");
static_assert(offsetof(struct dgram_wire_msg, body_len) == 8, "as drawn");

/*
 *    0      1        2       4        8                16
 *   +------+--------+-------+--------+----------------+
 *   | kind | reason | zeros | number |     length     |
 *   +------+--------+-------+--------+----------------+
 * The receiver of message `number` accepts the first `length` bytes of its body, no more; 0:
 * none. If the body does not come with its header, the end is always reported.
 */
struct dgram_wire_pull {
	uint8_t kind;      /* 0 */
	uint8_t reason;    /* 1  enum dgram_pull_reason */
	uint8_t zero[2];   /* 2 */
	uint8_t number[4]; /* 4 */
	uint8_t length[8]; /* 8 */
};
static_assert(sizeof(struct dgram_wire_pull) == 16, "as drawn");
static_assert(offsetof(struct dgram_wire_pull, length) == 8, "as drawn");

enum dgram_pull_reason {
	DGRAM_PULL_ACCEPT = 0, /* send it; an end follows */
	DGRAM_PULL_DONE,       /* the end: it is all here */
	DGRAM_PULL_REFUSE,     /* the end: not wanted; length is 0 */
};

/*
 *    0      1      2        4        8                16
 *   +------+------+--------+--------+----------------+
 *   | kind | zero | length | number |     offset     |     `length` bytes after the head
 *   +------+------+--------+--------+----------------+
 */
struct dgram_wire_data {
	uint8_t kind;      /* 0 */
	uint8_t zero;      /* 1 */
	uint8_t length[2]; /* 2  not 0 */
	uint8_t number[4]; /* 4 */
	uint8_t offset[8]; /* 8 */
};
static_assert(sizeof(struct dgram_wire_data) == 16, "as drawn");
static_assert(offsetof(struct dgram_wire_data, offset) == 8, "as drawn");

#define DGRAM_FRAME_SHORT 8u /* PING and BYE: the kind and seven zeros */

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A datagram of this length passes everywhere (RFC 8899 section 5.1.2, BASE_PLPMTU): no link
 * may offer less. */
#define DGRAM_MTU_MIN 1200u
#define DGRAM_MTU_MAX 65500u

/* The longest body that travels with its header, on any path. */
#define DGRAM_INLINE_MAX                                                                           \
	(DGRAM_MTU_MIN - sizeof(struct dgram_wire_head) - sizeof(struct dgram_wire_confirm) -      \
	 sizeof(struct dgram_wire_msg) - NET_HEADER_MAX)
static_assert(DGRAM_INLINE_MAX >= 1000, "short messages take one packet");

/* ---- checked host structures ----------------------------------------------------------------- */

struct dgram_head {
	uint8_t type;
	uint32_t head_len;
	uint32_t gap;
	uint64_t to, pn;
};

struct dgram_hello {
	uint64_t from, whom, incarnation, token;
	uint32_t uid, jid;
};

/* A frame, decoded. Its kind decides which members are valid. Pointers lead into the packet. */
struct dgram_frame {
	uint8_t kind;
	uint8_t reason;    /* PULL */
	uint32_t number;   /* MSG, PULL, DATA; ACK: delivered */
	uint32_t credit;   /* ACK */
	uint32_t words;    /* ACK */
	uint32_t delay_us; /* ACK */
	uint32_t hdr_len;  /* MSG */
	uint32_t body_now; /* MSG; DATA: length */
	/* MSG; PULL: length; DATA: offset; ACK: newest, its lower half; CONFIRM: token */
	uint64_t body_len;
	const uint8_t *bytes; /* MSG: header, then body; DATA: payload; ACK: words */
	uint64_t incarnation; /* CONFIRM, and these two */
	uint32_t uid, jid;
};

/* Decode the header of a packet of `len` bytes. 0, or -EPROTO: not one of ours (too short, too
 * long, another version or type, or a head_len outside the packet). */
int dgram_head_decode(const void *packet, size_t len, struct dgram_head *h);

/* Length of the first packet by its own fields, where several of one length may have been
 * joined. Returns `len` if it is alone or malformed. */
size_t dgram_packet_length(const void *packet, size_t len);

/* May the source address of this packet matter? It does not for packets that continue a
 * connection. */
bool dgram_packet_names(const void *packet, size_t len);

/* Decode what follows the header of a HELLO or WELCOME. 0, or -EPROTO. */
int dgram_hello_decode(const void *packet, size_t len, struct dgram_hello *hello);
int dgram_reset_decode(const void *packet, size_t len, uint64_t *unknown);

/* Decode the frame at byte position *at of a FRAMES packet whose header was decoded. Moves *at
 * past it. 1: *f is filled; 0: there are no more; -EPROTO: malformed. */
int dgram_frame_decode(const void *packet, size_t len, const struct dgram_head *h, size_t *at,
		       struct dgram_frame *f);

/* Each encodes its argument at `to` and returns the number of bytes. */
size_t dgram_head_encode(uint8_t *to, const struct dgram_head *h);
size_t dgram_hello_encode(uint8_t *to, const struct dgram_hello *hello);
/* The caller writes the header and words or bytes that follow ACK, MSG and DATA; PAD is one
 * byte. */
size_t dgram_frame_encode(uint8_t *to, const struct dgram_frame *f);

#endif
