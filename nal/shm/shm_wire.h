/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The formats of what two processes of one node exchange: the handshake on a Unix socket, and
 * the messages in the rings. Both ends are one machine with one byte order. shm_wire.c checks
 * the handshake; a message's fields are checked where they are used (shm_run.c).
 */
#ifndef SHM_WIRE_H
#define SHM_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "portals/engine/engine.h"

/* ---- handshake ------------------------------------------------------------------------------- */

#define SHM_HELLO_MAGIC   0x4d535350u
#define SHM_HELLO_VERSION 1

enum shm_hello_kind {
	SHM_HELLO_CONNECT = 1, /* I want to talk to you; my region's file comes with this */
	SHM_HELLO_ACCEPT,      /* here is mine */
	SHM_HELLO_CROSSED,     /* my own CONNECT to you is on its way: use that */
	SHM_HELLO_REFUSE,      /* another user, or not the process you mean: `channel` says why */
};

/* Single bytes on an established connection. */
#define SHM_DOORBELL          '!'
#define SHM_DOORBELL_DROPPED  '~' /* I end the connection, and live on */
#define SHM_DOORBELL_GIVEN_UP '-' /* no address space for your extended region */

enum shm_refusal {
	SHM_REFUSED_STRANGER, /* not the process you mean */
	SHM_REFUSED_USER,     /* another user */
	SHM_REFUSED_MEMORY,   /* no memory, address space or descriptors for your region */
};

struct shm_hello {             /* offset */
	uint32_t magic;        /*  0 */
	uint16_t version;      /*  4 */
	uint16_t kind;         /*  6 */
	ptl_process_id_t from; /*  8 */
	ptl_process_id_t to;   /* 16 */
	uint32_t interface;    /* 24 */
	uint32_t jid;          /* 28 */
	uint32_t channel; /* 32  the channel in the sender's region that the receiver writes to */
	uint32_t unseen;  /* 36 1: the receiver's process has no pid in the sender's namespace */
	uint64_t region;  /* 40  where the sender has its own region mapped */
};
static_assert(sizeof(struct shm_hello) == 48, "no holes");
static_assert(offsetof(struct shm_hello, region) == 40, "no holes");

/* 0, or -EPROTO. */
int shm_hello_decode(const void *bytes, size_t len, struct shm_hello *h);

/* ---- ring messages --------------------------------------------------------------------------- */

#define SHM_LINE        64u
#define SHM_INLINE      12u    /* payload bytes that fit in the header's line */
#define SHM_MOST        36864u /* longest payload of a message */
#define SHM_ATOMIC_MOST 4096u  /* the same for atomics */

enum shm_kind {
	SHM_PAD = 1,  /* no message: skips the rest of the lap */
	SHM_PUT,      /* payload follows */
	SHM_PUT_LONG, /* payload stays with the initiator's operation */
	SHM_GET,
	SHM_GETPUT,       /* payload follows */
	SHM_ANSWER,       /* final response to an operation: enum ptl_answer */
	SHM_REPLY,        /* payload of a get or getput */
	SHM_GRANT,        /* long get matched: delivery and length */
	SHM_FETCHED,      /* initiator to target: all bytes of a delivery are moved */
	SHM_PLACED,       /* target to initiator: a long get's bytes are all moved */
	SHM_ATOMIC,       /* atomic put; payload follows */
	SHM_FETCH_ATOMIC, /* atomic getput; payload follows */
};

/*
 *    0        4    5     6      8          16             24       32        40   44
 *   +--------+----+-----+------+----------+--------------+--------+---------+----+-------+
 *   |  seq   |kind|flags| size |match_bits|remote_offset |length  |hdr_data | op | op_gen|
 *   +--------+----+-----+------+----------+--------------+--------+---------+----+-------+
 *   48          50          52                              64
 *   | pt_index  | ac_index  | first 12 bytes of payload     |
 *   +-----------+-----------+-------------------------------+
 * A payload of more than 12 bytes is in lines after this one instead, see shm_lines. seq is
 * written last: the line's number, counted from 1 without end. op_gen of an injected put is a
 * hint: how many lines of the target's messages the initiator has consumed, the low 32 bits.
 */
#define SHM_WANT_ACK 1u
#define SHM_LONG     2u /* the initiator's operation may move its data by a delivery */
/* A put whose initiator does not rely on the target to poll when it leaves. */
#define SHM_LAZY 4u

struct shm_msg {
	uint32_t seq;
	uint8_t kind;
	uint8_t flags; /* requests: SHM_WANT_ACK, SHM_LONG, SHM_LAZY. ANSWER: enum ptl_answer */
	uint16_t size; /* payload bytes; PAD: lines */
	uint64_t match_bits;
	uint64_t remote_offset; /* GRANT, FETCHED: delivery's index, generation << 32 */
	/* Of requests: bytes requested; of answers: bytes moved; of atomics also the
	 * operation: SHM_ATOMIC_OP. */
	uint64_t length;
	uint64_t hdr_data;   /* ANSWER, FETCHED, PLACED: ptl_ni_fail_t */
	uint32_t op, op_gen; /* initiator's operation, PTL_NIL: none */
	uint16_t pt_index, ac_index;
	uint8_t data[SHM_INLINE];
};
static_assert(sizeof(struct shm_msg) == SHM_LINE, "one cache line");
static_assert(offsetof(struct shm_msg, match_bits) == 8, "as drawn");
static_assert(offsetof(struct shm_msg, op) == 40, "as drawn");
static_assert(offsetof(struct shm_msg, data) == 52, "as drawn");

/* The upper half of an atomic's length, which is short: ptl_atomic_op_t and ptl_atomic_type_t. */
#define SHM_ATOMIC_OP(op, element) ((uint64_t)(op) << 32 | (uint64_t)(element) << 40)

static inline uint8_t shm_atomic_op(const struct shm_msg *m)
{
	return (uint8_t)(m->length >> 32);
}

static inline uint8_t shm_atomic_element(const struct shm_msg *m)
{
	return (uint8_t)(m->length >> 40);
}

/*
 * Processors fetch lines in pairs. The consumer polls the line of the next header and so takes
 * the other line of the pair away from the producer, too. Payload must not be in that line: it
 * is in pairs of its own behind the header's pair.
 */
static inline uint32_t shm_payload_line(uint32_t at)
{
	return (at | 1) + 1;
}

/* Return how many lines a message with `size` bytes of payload takes at line `at`. */
static inline uint32_t shm_lines(uint32_t size, uint32_t at)
{
	const uint32_t pair = 2 * SHM_LINE;

	return size <= SHM_INLINE ? 1 : shm_payload_line(at) - at + 2 * ((size + pair - 1) / pair);
}

/* Check whether this message may stand at line `at` of a ring of `lines` lines. Reads the
 * header only. Returns its number of lines, 0 if it is not valid. */
uint32_t shm_msg_check(const struct shm_msg *m, uint32_t at, uint32_t lines);

/* The same, in a few instructions for the commonest message. */
static inline uint32_t shm_msg_lines(const struct shm_msg *m, uint32_t at, uint32_t lines)
{
	if (m->kind == SHM_PUT && m->size <= SHM_INLINE && m->size == m->length)
		return 1;
	return shm_msg_check(m, at, lines);
}

/* Convert a request message to the engine's form; the caller fills in the identity. */
static inline void shm_msg_request(const struct shm_msg *m, struct ptl_request *q)
{
	bool atomic = m->kind == SHM_ATOMIC || m->kind == SHM_FETCH_ATOMIC;

	q->kind = m->kind == SHM_GET                                     ? PTL_REQ_GET
		  : m->kind == SHM_GETPUT || m->kind == SHM_FETCH_ATOMIC ? PTL_REQ_GETPUT
									 : PTL_REQ_PUT;
	q->atomic = atomic ? shm_atomic_op(m) : 0;
	q->element = atomic ? shm_atomic_element(m) : 0;
	q->ack = m->flags & SHM_WANT_ACK;
	q->pt_index = m->pt_index;
	q->ac_index = m->ac_index;
	q->op = m->op;
	q->op_gen = m->op_gen;
	q->match_bits = m->match_bits;
	q->remote_offset = m->remote_offset;
	q->rlength = atomic ? (uint32_t)m->length : m->length;
	q->hdr_data = m->hdr_data;
	q->data = NULL;
	q->declined = false;
}

#endif
