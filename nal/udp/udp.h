/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The UDP link: one socket for each interface, bound to the address of the network interface
 * that was chosen, so that nothing leaves by another one.
 *
 *   udp.c       the operations of the NAL: opening, cards, the job's addresses
 *   udp_addr.c  addresses: of packets, of cards, of ids
 *   udp_send.c  packets out, several at a time, as one segmented datagram where the kernel does
 *               that
 *   udp_recv.c  packets in, likewise
 *   udp_path.c   sockets of their own for those who are written to all the time
 *   udp_call.h  the two system calls of a short message
 */
#ifndef UDP_H
#define UDP_H

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "nal/net/net.h"

#define UDP_HEADS   (256u * 1024) /* bytes of heads, and of short bodies, that wait for flush() */
#define UDP_PACKETS 128u          /* packets that do */
#define UDP_IOVECS  1024u         /* their pieces: as many as one system call takes */
#define UDP_BUFFERS 8u            /* datagrams, maybe of many segments, received at once */
#define UDP_BUFFER  65536u
#define UDP_PATHS   8u

union udp_sockaddr {
	struct sockaddr any;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

struct udp_packet {
	struct net_addr to;
	uint32_t iov, segments; /* in `iov`, the head first */
	uint32_t len;
	bool probe, anywhere;
	bool cut; /* it goes in segments */
};

struct udp_path {
	struct net_addr to;
	int fd;        /* -1: none (yet) */
	uint32_t sent; /* times that something was, since there is one or none */
	uint32_t need; /* how often that must be before one is made, or trusted again */
};

struct udp {
	struct net net; /* first: it is what the machine's callbacks get */
	int fd;
	int family;
	uint16_t port;
	uint32_t mtu;       /* longest datagram, */
	uint32_t mtu_once;  /* as it was first, */
	uint32_t local_mtu; /* to processes of this host, which go by the loopback interface, */
	uint32_t train;     /* in segments that are joined again before we receive them */
	struct net_addr own;
	bool segments_out, segments_in;
	/* a send heard of an error of an earlier packet: there is more in the queue of errors */
	bool errors_pending;

	struct net_ranks ranks;
	unsigned int scope; /* of link-local addresses */
	bool by_id;         /* others are where their ids say */
	ptl_nid_t own_nid;

	struct udp_path path[UDP_PATHS];
	uint32_t last_path, next_path; /* found last; to be given to somebody else next */
	bool no_paths;

	struct udp_out {
		uint8_t *heads;
		uint32_t used, packets, iovs;
		struct udp_packet packet[UDP_PACKETS];
		struct iovec iov[UDP_IOVECS];
	} out;
	struct udp_in {
		uint8_t *bytes;
		uint64_t named_until; /* the sender of packets is asked for; 0: it is not */
		struct mmsghdr msg[UDP_BUFFERS];
		struct iovec iov[UDP_BUFFERS];
		union udp_sockaddr from[UDP_BUFFERS];
		union {
			struct cmsghdr align;
			char space[64];
		} control[UDP_BUFFERS];
	} in;
};

/* ---- udp.c ----------------------------------------------------------------------------------- */

/* The longest datagram to that address that goes as one. */
uint32_t udp_whole(const struct udp *u, const struct net_addr *to);
/* Something was too long: do the interfaces carry less than they did? */
bool udp_narrow(struct udp *u);

/* ---- udp_addr.c ------------------------------------------------------------------------------ */

void udp_addr_from(struct net_addr *a, const union udp_sockaddr *s);
socklen_t udp_addr_to(union udp_sockaddr *s, const struct net_addr *a);
static inline bool udp_addr_same(const struct net_addr *a, const struct net_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* "10.0.0.1:4711" or "[fe80::1]:4711"; a link-local address gets this scope. False: it is none,
 * or not that of one host. */
bool udp_addr_parse(const char *text, size_t len, uint32_t scope, struct net_addr *a);
void udp_addr_format(const union udp_sockaddr *s, char *text, size_t len);

/* The address of `id`, by the job or by its id. */
bool udp_address(void *link, ptl_process_id_t id, struct net_addr *addr);

/* ---- udp_send.c, udp_recv.c ------------------------------------------------------------------ */

void *udp_room(void *link, size_t len);
void udp_transmit(void *link, const struct dgram_packet *p);
void udp_flush(void *link);
unsigned int udp_receive(void *link, struct net *n);

/* Datagrams from this socket are not cut into fragments: the machine finds out what passes. */
void udp_never_fragment(const struct udp *u, int fd);
/* Prepares the receive buffers of a new link. */
void udp_recv_init(struct udp *u);
/* Does the kernel cut a datagram into segments on its way out; and join those that come in?
 * Tries. */
bool udp_can_segment(int fd);
/* Bytes of as many segments of so many as can be one datagram. */
uint32_t udp_train(uint32_t mtu);
bool udp_can_join(int fd);

/* ---- udp_path.c ------------------------------------------------------------------------------ */

void udp_paths_init(struct udp *u);
void udp_paths_close(struct udp *u);
/* The way that all packets that wait can take; NULL: they are to be sent by the shared socket. */
struct udp_path *udp_path_of(struct udp *u);
/* One packet; false: it is not gone. */
bool udp_path_send(struct udp_path *w, const struct iovec *packet);
/* Messages without an address; how many are gone. */
uint32_t udp_path_send_all(struct udp_path *w, struct mmsghdr *m, uint32_t n);

#endif
