/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The link over Ethernet frames without IP: one packet socket for each interface. The socket
 * has a receive ring shared with the kernel, so that receiving a packet is a read of memory.
 * All packets of one flush go out with one system call.
 *
 *   eth.c       the operations of the NAL: opening, cards, the job's addresses
 *   eth_addr.c  addresses of packets and ids; the number that tells processes of a host apart;
 *               the kernel's filter
 *   eth_ring.c  incoming frames: the ring
 *   eth_send.c  outgoing frames, several at a time
 *   eth_wire.c  decoders
 *
 * Processes of one host: frames that leave by an interface do not come in by it. So processes
 * of one host that do not use shared memory reach each other by the loopback interface, which
 * carries any frame. The socket listens to both, and a filter in the kernel passes only the
 * frames for this process.
 *
 * The ring has fixed slots (TPACKET_V2). The kernel's newer rings of blocks (TPACKET_V3) save
 * memory, but show a frame only when its block is full or a timer of at least a millisecond has
 * expired.
 *
 * Frames may be lost, and the machine for datagrams (nal/net/dgram) resends them. Packet
 * sockets need CAP_NET_RAW.
 */
#ifndef ETH_H
#define ETH_H

#include <linux/if_packet.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "nal/eth/eth_wire.h"
#include "nal/net/net.h"

#define ETH_MTU_MOST 9000u         /* of a frame, without Ethernet's own header */
#define ETH_FRAMES   128u          /* that wait for flush() */
#define ETH_HEADS    (128u * 1024) /* bytes of their heads */
#define ETH_PID_MOST 65535u        /* highest pid that is an endpoint outside jobs */

/* Slots shared with the kernel. */
struct eth_ring {
	uint8_t *bytes;
	size_t bytes_len;
	uint32_t slots, slot, per_block; /* number, size */
	uint32_t next;
};

/* Frames that wait for flush(). */
struct eth_out {
	uint32_t frames, used;    /* used: bytes of the heads */
	struct sockaddr_ll to[2]; /* by the interface; on this host, by the loopback interface */
	struct mmsghdr msg[ETH_FRAMES];
	struct iovec iov[ETH_FRAMES][2 + DGRAM_SEGMENTS];
	_Alignas(64) uint8_t heads[ETH_HEADS];
};

struct eth {
	struct net net; /* first: the machine's callbacks get it */
	int fd;
	int name_fd; /* holds our endpoint */
	uint16_t type;
	uint8_t mac[ETH_MAC_BYTES];
	int ifindex, loopback;
	uint32_t endpoint;
	uint32_t mtu; /* longest packet */
	ptl_nid_t own_nid;
	struct net_ranks ranks;
	bool by_id; /* others are where their ids say */
	struct eth_ring in;
	struct eth_out out;
};

/* ---- eth_addr.c ------------------------------------------------------------------------------ */

/* An address: how to get there, and which process there. */
struct eth_place {
	bool local; /* by the loopback interface */
	uint8_t mac[ETH_MAC_BYTES];
	uint32_t endpoint;
};

/* Conversion between an address and the machine's three words. */
void eth_addr_from(struct net_addr *a, const struct eth_place *p);
void eth_addr_to(struct eth_place *p, const struct net_addr *a);

/* net_link.address */
bool eth_address(void *link, ptl_process_id_t id, struct net_addr *addr);
/* For net_ranks_take. */
bool eth_parse_card(const void *link, const char *card, size_t len, struct net_addr *addr);

/* Take the endpoint `want`, or with 0 a free one. Returns 0, or -errno; -EADDRINUSE: another
 * process has it. */
int eth_take_endpoint(struct eth *e, uint32_t want);
/* Set the filter: from now on the socket gets our frames only. Returns 0 or -errno. */
int eth_filter(const struct eth *e);

/* ---- eth_ring.c, eth_send.c ------------------------------------------------------------------ */

/* Make a ring of about `bytes` bytes. Returns 0 or -errno. */
int eth_ring_make(struct eth *e, size_t bytes);
void eth_ring_free(struct eth *e);
/* Called when the interfaces are known. */
void eth_send_init(struct eth *e);

/* Of net_link. */
void *eth_room(void *link, size_t len);
void eth_transmit(void *link, const struct dgram_packet *p);
void eth_flush(void *link);
unsigned int eth_receive(void *link, struct net *n);

#endif
