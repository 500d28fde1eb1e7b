/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The bytes that two processes exchange while they connect: the private data of the connection
 * manager's request, answer and refusal, the first packet of the caller, and the text of a
 * card. Bytes from outside become structs here, and nowhere else.
 *
 * The caller and the answering process each contribute a random number. Each proves with a
 * keyed tag over both numbers that it has the job's secret. So a process that repeats what it
 * has overheard has no answer to a new number.
 */
#ifndef VERBS_WIRE_H
#define VERBS_WIRE_H

#include <assert.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nal/net/carrier.h"

#define VERBS_MAGIC     "PVB1"
#define VERBS_TAG_BYTES 16u
#define VERBS_TEXT_MOST 64u /* of an address */

/* Where a process listens. */
struct verbs_address {
	uint8_t family; /* 4 or 6 */
	uint8_t zero;
	uint8_t port[2]; /* big-endian, as the address */
	uint8_t bytes[16];
};
static_assert(sizeof(struct verbs_address) == 20, "without holes: compared and sent as it is");

/*
 *    0        4              24            32        40       56
 *   +--------+--------------+-------------+---------+--------+
 *   | magic  | address      | id          | number  | tag    |
 *   +--------+--------------+-------------+---------+--------+
 * A call. It is as long as the private data of a request may be. address: where the caller
 * listens. id: its nid and pid.
 */
struct verbs_wire_call {
	uint8_t magic[4];             /*  0 */
	struct verbs_address address; /*  4 */
	uint8_t nid[4], pid[4];       /* 24  little-endian */
	uint8_t number[8];            /* 32 */
	uint8_t tag[VERBS_TAG_BYTES]; /* 40 */
};
static_assert(sizeof(struct verbs_wire_call) == 56, "the room there is");
static_assert(offsetof(struct verbs_wire_call, tag) == 40, "as drawn");

/*
 *    0        4        8         16       32
 *   +--------+--------+---------+--------+
 *   | magic  | kind   | number  | tag    |
 *   +--------+--------+---------+--------+
 * An answer, a refusal, and the first packet of the caller. Of a refusal only `why` counts:
 * nobody has proved anything yet.
 */
struct verbs_wire_word {
	uint8_t magic[4];             /*  0 */
	uint8_t kind;                 /*  4  enum verbs_word */
	uint8_t why;                  /*  5  enum verbs_refusal */
	uint8_t zero[2];              /*  6 */
	uint8_t number[8];            /*  8 */
	uint8_t tag[VERBS_TAG_BYTES]; /* 16 */
};
static_assert(sizeof(struct verbs_wire_word) == 32, "as drawn");
static_assert(offsetof(struct verbs_wire_word, tag) == 16, "as drawn");

enum verbs_word {
	VERBS_ANSWER = 1,
	VERBS_REFUSAL,
	VERBS_CONFIRM,
};

enum verbs_refusal {
	VERBS_NO_REASON = 0,
	VERBS_CROSSED,  /* we are calling you: wait for that */
	VERBS_NOT_OURS, /* another version, or another secret */
	VERBS_BUSY,     /* too many are connecting, or out of memory: call again */
};

struct verbs_call {
	struct verbs_address address;
	net_id_t id;
};

/* Decoders. Bytes beyond the structure are padding of the connection manager. False: invalid. */
bool verbs_call_decode(const void *bytes, size_t len, struct verbs_call *call);
bool verbs_word_decode(const void *bytes, size_t len, enum verbs_word kind,
		       enum verbs_refusal *why);

void verbs_call_encode(struct verbs_wire_call *w, const struct verbs_call *call, uint64_t number);
void verbs_word_encode(struct verbs_wire_word *w, enum verbs_word kind, enum verbs_refusal why,
		       uint64_t number);

/* Parse `len` characters: "10.0.0.1:4711" or "[fe80::1]:4711". False: not an address. */
bool verbs_address_parse(const char *text, size_t len, struct verbs_address *a);
void verbs_address_format(const struct verbs_address *a, char *text, size_t len);
/* Decode the address that came with a greeting. False: not an address. */
bool verbs_address_decode(const void *bytes, size_t len, struct verbs_address *a);

/* To and from sockets. A link-local address gets `scope`. */
socklen_t verbs_address_to(const struct verbs_address *a, uint32_t scope,
			   struct sockaddr_storage *to);
bool verbs_address_from(const struct sockaddr *from, struct verbs_address *a);

/* ---- proofs ---------------------------------------------------------------------------------- */

struct verbs_key {
	unsigned char bytes[32];
};

/* Derive the key of tags from the job's secret. */
void verbs_key_make(struct verbs_key *k, const void *secret, size_t len);

/* The tag of a call, and of an answer or confirmation to that call. `number` is the answer's. */
void verbs_seal_call(const struct verbs_key *k, struct verbs_wire_call *call);
void verbs_seal_word(const struct verbs_key *k, const struct verbs_wire_call *call, uint64_t number,
		     struct verbs_wire_word *word);
bool verbs_check_call(const struct verbs_key *k, const struct verbs_wire_call *call);
bool verbs_check_word(const struct verbs_key *k, const struct verbs_wire_call *call,
		      uint64_t number, const struct verbs_wire_word *word);
uint64_t verbs_word_number(const struct verbs_wire_word *word);

#endif
