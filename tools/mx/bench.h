/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rows that mx_pingpong, mx_stream and omx_perf measure. The sender tells the receiver each
 * row before it starts it, so one receiver serves all three.
 */
#ifndef TOOLS_MX_BENCH_H
#define TOOLS_MX_BENCH_H

#include "face.h"

enum bench_kind {
	BENCH_PINGPONG,       /* a message there, one of the same length back */
	BENCH_UNIDIRECTIONAL, /* a message there, an empty one back */
	BENCH_STREAM,         /* many messages there, an empty one at the end */
	BENCH_BOTH,           /* many messages both ways at once */
	BENCH_END,            /* no more rows */
};

struct bench_row {
	enum bench_kind kind;
	uint32_t length; /* of messages, in bytes */
	uint32_t rounds;
	uint32_t warmup; /* rounds before these */
	enum face_wait wait;
	bool sync;    /* synchronous sends */
	bool verify;  /* compare what comes with what was sent */
	bool aligned; /* buffers begin at multiples of 64 KiB */
};

/* An endpoint id that the command line does not have. */
#define BENCH_USUAL_EID (FACE_ANY - 1)

/* Where the endpoint is, and of a sender where its receiver is. */
struct bench_place {
	uint32_t board, eid, key;
	const char *host; /* NULL: this is the receiver */
	uint32_t remote_eid;
	bool slave; /* serve one sender after the other */
	bool verbose;
};

/* Starts the library and opens the endpoint. */
face_endpoint bench_open(const struct bench_place *place);
void bench_close(face_endpoint ep);
/* Prints where the endpoint is, for those who will send to it. */
void bench_say_where(face_endpoint ep, const char *text);

/* The sender's half of a row. Returns the microseconds of its rounds. */
double bench_send_row(face_endpoint ep, face_addr to, const struct bench_row *row);
/* Connects to the receiver. */
face_addr bench_connect(face_endpoint ep, const struct bench_place *place);
/* Tells the receiver that there are no more rows. */
void bench_send_end(face_endpoint ep, face_addr to);
/* The receiver: rows until a sender has ended. */
void bench_serve(face_endpoint ep, const struct bench_place *place);

/* ---- the command line ------------------------------------------------------------------------ */

/* The number that an option has, up to `most`; ends the tool with status 2 if it has none. */
uint32_t bench_number(int option, const char *text, uint32_t most);
/* An endpoint id, or the word any. */
uint32_t bench_eid(const char *text);
/* Of a board, by its NIC id in hexadecimal. */
uint32_t bench_board(const char *nic_id);

/* The lengths of the rows: from start to less than end, by a factor, or else by steps. */
struct bench_lengths {
	uint32_t start, end, step;
	double factor; /* 0: by steps */
	/* of a file, instead of all that */
	uint32_t *list;
	uint32_t count;
};

void bench_read_lengths(struct bench_lengths *lengths, const char *file);
/* The length of row `i`, which follows `before`. False: there is none. */
bool bench_next_length(const struct bench_lengths *lengths, uint32_t i, uint32_t before,
		       uint32_t *length);

#endif
