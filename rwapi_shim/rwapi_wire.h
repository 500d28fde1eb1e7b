/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The content of RWAPI's messages, all of it in the header fields of puts. The transports carry
 * these as numbers, so hosts of any byte order agree. No field is a pointer or a size of one host.
 *
 *   portal            match bits                            offset   header data
 *   57 short message  word 0                                0        word 1
 *   58 write          tag of the initiator << 24 | name     offset   sid, or QUIET | sid
 *   59 control        kind << 56 | tag << 24                0        see enum rw_control
 *
 * A tag names a record of the initiator, for the acknowledgement. It is 0 in messages that ask
 * for none: writes whose bytes were taken at once, marked with QUIET, and most control messages.
 */
#ifndef RWAPI_WIRE_H
#define RWAPI_WIRE_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#include <portals3.h>
#include <rwapi.h>

/* Of the 64 that MPI's interface has, where both are in a process. MPI uses 40 to 45. */
enum { RW_PT_SMALL = 57, RW_PT_WRITE = 58, RW_PT_CONTROL = 59 };

enum rw_control {
	RW_CREDIT = 1,  /* so many short messages have been taken in, in all */
	RW_REFUSED = 2, /* the write of this sid, which asked for no acknowledgement, was refused */
	RW_DONE = 3,    /* the sender has reached this stage (1 or 2) of rwapi_finalize() */
	RW_PING = 4     /* nothing: only its acknowledgement counts */
};

enum { RW_STAGES = 2 };

#define RW_NAME_BITS   24
#define RW_OFFSET_BITS 40
#define RW_NAME_MASK   (((uint64_t)1 << RW_NAME_BITS) - 1)
#define RW_OFFSET_MASK (((uint64_t)1 << RW_OFFSET_BITS) - 1)
#define RW_QUIET       ((uint64_t)1 << 63)

/* Match bits that entries of the two portals ignore: all but the name, all but the kind. */
#define RW_IGNORE_TAG  (~RW_NAME_MASK)
#define RW_IGNORE_REST ((((uint64_t)1 << 56) - 1))

static inline rwapi_net_t rw_net(uint32_t name, uint64_t offset)
{
	return (uint64_t)name << RW_OFFSET_BITS | offset;
}

static inline uint32_t rw_net_name(rwapi_net_t net)
{
	return (uint32_t)(net >> RW_OFFSET_BITS);
}

static inline uint64_t rw_net_offset(rwapi_net_t net)
{
	return net & RW_OFFSET_MASK;
}

static inline ptl_match_bits_t rw_write_bits(uint32_t tag, uint32_t name)
{
	return (uint64_t)tag << RW_NAME_BITS | name;
}

static inline ptl_match_bits_t rw_control_bits(enum rw_control kind, uint32_t tag)
{
	return (uint64_t)kind << 56 | (uint64_t)tag << RW_NAME_BITS;
}

static inline uint32_t rw_bits_tag(ptl_match_bits_t bits)
{
	return (uint32_t)(bits >> RW_NAME_BITS);
}

/* The content of a short message. Numbers of the header change their bytes between hosts of
 * different byte orders, so the bytes of a message travel as little-endian numbers. */
static inline void rw_small_of(ptl_match_bits_t bits, ptl_hdr_data_t hdr, rwapi_small_t *small)
{
	small->word[0] = le64toh(bits);
	small->word[1] = le64toh(hdr);
}

/* A control message. `value` is a count, a sid or a stage. */
struct rw_control_in {
	enum rw_control kind;
	uint64_t value;
};

/* The state of the sender of a control message, as far as this process knows it. */
struct rw_control_limits {
	uint64_t credit_least, credit_most; /* the count of the last credit, and of messages sent */
	rwapi_sid_t last_sid;               /* of this process */
	unsigned int stage;                 /* that the sender has reached */
};

/* Decode a control message. False: no peer that follows the protocol sends it. */
bool rw_control_decode(ptl_match_bits_t bits, ptl_hdr_data_t hdr,
		       const struct rw_control_limits *limits, struct rw_control_in *out);

/* Decode a write that found no memory. Gives the sid to report to its initiator. False: there is
 * nothing to report, as the acknowledgement says it, or it is no write of RWAPI. */
bool rw_refusal_decode(ptl_match_bits_t bits, ptl_hdr_data_t hdr, rwapi_sid_t *sid);

#endif
