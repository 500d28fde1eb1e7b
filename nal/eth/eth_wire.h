/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The fields of an Ethernet frame before a packet of nal/net/dgram. Our numbers are
 * little-endian. eth_wire.c makes checked host structures of frames that arrive.
 */
#ifndef ETH_WIRE_H
#define ETH_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETH_VERSION   1
#define ETH_MAC_BYTES 6

/*
 *    0             6        12     14        15     16       18            22              26
 *   +-------------+--------+------+---------+------+--------+-------------+---------------+--- - -
 *   | destination | source | type | version | zero | length | to endpoint | from endpoint | packet
 *   +-------------+--------+------+---------+------+--------+-------------+---------------+--- - -
 * `type` is the EtherType, big-endian. `length` is that of the packet: short frames are padded.
 * An endpoint is a process on a host.
 */
struct eth_wire_frame {
	uint8_t destination[ETH_MAC_BYTES]; /*  0 */
	uint8_t source[ETH_MAC_BYTES];      /*  6 */
	uint8_t type[2];                    /* 12 */
	uint8_t version;                    /* 14 */
	uint8_t zero;                       /* 15 */
	uint8_t length[2];                  /* 16 */
	uint8_t to[4];                      /* 18 */
	uint8_t from[4];                    /* 22 */
};
static_assert(sizeof(struct eth_wire_frame) == 26, "as drawn");
static_assert(offsetof(struct eth_wire_frame, version) == 14, "as drawn");
static_assert(offsetof(struct eth_wire_frame, to) == 18, "as drawn");

#define ETH_HEADER 14u /* of Ethernet itself */
#define ETH_OURS   ((uint32_t)sizeof(struct eth_wire_frame) - ETH_HEADER)

struct eth_frame {
	uint8_t destination[ETH_MAC_BYTES], source[ETH_MAC_BYTES];
	uint16_t type;
	uint32_t to, from;
	const uint8_t *packet;
	uint32_t length;
};

/* Where a process is, as a rank publishes it: "02:00:00:00:00:01/88b5/1a2b". */
struct eth_card {
	uint8_t mac[ETH_MAC_BYTES];
	uint16_t type;
	uint32_t endpoint;
};

/* Decode a frame of `len` bytes. Returns 0, or -EPROTO: not our frame, or cut short. */
int eth_frame_decode(const void *frame, size_t len, struct eth_frame *f);

/* Write everything but the packet of f->length bytes, which follows it. */
void eth_frame_encode(struct eth_wire_frame *w, const struct eth_frame *f);

/* Decode `len` characters. Returns 0, or -EPROTO: not a card, or the address is not that of one
 * host. */
int eth_card_decode(const char *text, size_t len, struct eth_card *c);
void eth_card_encode(const struct eth_card *c, char *text, size_t len);

#endif
