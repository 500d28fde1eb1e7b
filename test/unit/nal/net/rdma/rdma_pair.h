/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Two message machines for fabrics (nal/net/rdma), `from` and `to`, of which one sends to the
 * other. The link between them, their peers, nal/net and malloc are stubs that a case can tell what
 * is short.
 */
#ifndef RDMA_PAIR_H
#define RDMA_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nal/net/rdma/rdma.h"

enum { PACKET = 1024, EAGER = 8192, CREDIT = 16, MOST = 64, TOKEN = 77, COOKIE = 5 };
enum {
	COPIED = 64,
	AT_ONCE = 24
}; /* of a link that copies little, packets before more memory is needed */
enum { HEADER = 3, FITS = PACKET - 16 - HEADER, FIRST = PACKET - 24 - HEADER, NEXT = PACKET - 16 };

struct side {
	struct rdma d; /* first */
	struct rdma_peer peer, *peers;
	const struct net_carrier *carrier;
};
extern struct side from, to;

struct wire {
	uint8_t bytes[PACKET];
	uint32_t len;
	uint8_t kind;
	bool headerless; /* then it is a MORE one, and this goes beside it */
	uint64_t word;
};
extern struct wire wire[MOST];
extern uint32_t nwire, taken;            /* packets of `from`, and those that `to` was given */
extern uint32_t room;                    /* packets the link takes */
extern struct rdma_packet *flying[MOST]; /* that it did not copy */
extern uint32_t nflying;

extern uint8_t source[EAGER + 1], delivery[EAGER + 1];
extern char header[HEADER + 1];  /* of messages that are put */
extern char heard[MOST][HEADER]; /* of those that were delivered */
extern enum net_verdict verdict;
extern uint64_t wanted;
extern uint32_t ndelivered, nlanded, nsent;
extern uint64_t delivered; /* the length of the last one */
extern enum net_status how;
extern bool answers;      /* the sender hears what the receiver says */
extern bool scattered;    /* where it lands is in pieces of memory, */
extern uint64_t gone;     /* of which those from here on are not there */
extern uint64_t looked;   /* bytes of segments that were asked for */
extern size_t scarce;     /* blocks of so many bytes are not to be had; 0: they are */
extern bool unregistered; /* no memory can be registered */

int set_up(void **state);
/* The link copies COPIED bytes at most. */
int set_up_not_copied(void **state);
int tear_down(void **state);

/* The link needs so many packets no more. */
void sent(uint32_t n);
/* The bytes may be changed when it returns, unless the sender wants to be told. */
int try_put(uint64_t len, void *cookie);
void put(uint64_t len, void *cookie);
/* Gives `to` so many packets of those that `from` has sent, */
void take(uint32_t n);
/* or the one of this place. */
void take_one(uint32_t i);
/* `to` has taken them all, and says so. */
void credit(void);
/* So much of `source`, and nothing else, is where messages land. */
void landed(uint64_t len);
/* The head of a packet of `from`, which takes no notice of rules. */
void say(uint8_t kind, uint64_t length, uint32_t bytes);

#define CASE(name)       cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define NOT_COPIED(name) cmocka_unit_test_setup_teardown(name, set_up_not_copied, tear_down)

#endif
