/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The same messages by sockets between the same two processes: datagrams of UDP and, within a
 * host, of AF_UNIX, and a stream of TCP. Both sides spin. The processes tell each other their
 * addresses by DP.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench.h"

enum { SILENCE_S = 5, UDP_MOST = 65507 };

struct place {
	ptl_nid_t nid;
	socklen_t length;
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_un un;
	} at;
};

static void need(int ok, const char *what)
{
	if (!ok)
		bench_fail(what);
}

/* ---- meeting --------------------------------------------------------------------------------- */

static ptl_nid_t own_nid(void)
{
	ptl_process_id_t id = { 0, 0 };
	ptl_handle_ni_t ni;

	need(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK, "PtlNIInit");
	PtlGetId(ni, &id);
	PtlNIFini(ni);
	return id.nid;
}

static struct place exchange_places(const struct bench *b, const struct place *own)
{
	struct place other;
	char *at;

	need(dp_write(b->orders, own, sizeof(*own)) == (int)sizeof(*own) &&
		     dp_read(b->orders, &at) == (int)sizeof(other),
	     "an address");
	memcpy(&other, at, sizeof(other));
	dp_fsync(b->orders, 1);
	return other;
}

static int new_socket(enum bench_socket kind, struct place *own)
{
	int domain = kind == SOCKET_UNIX ? AF_UNIX : AF_INET;
	int fd = socket(domain, (kind == SOCKET_TCP ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);

	memset(own, 0, sizeof(*own));
	own->nid = own_nid();
	own->at.any.sa_family = (sa_family_t)domain;
	/* of AF_UNIX the system chooses a name */
	own->length = kind == SOCKET_UNIX ? sizeof(sa_family_t) : sizeof(own->at.in);
	need(fd >= 0 && bind(fd, &own->at.any, own->length) == 0, "bind");
	own->length = sizeof(own->at);
	need(getsockname(fd, &own->at.any, &own->length) == 0, "getsockname");
	return fd;
}

/* Addresses of hosts are the node ids of Portals. */
static void lead_to(struct place *other, ptl_nid_t nid)
{
	if (other->at.any.sa_family == AF_INET)
		other->at.in.sin_addr.s_addr =
			htonl(other->nid == nid ? INADDR_LOOPBACK : other->nid);
}

static int accept_other(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	need(fd >= 0, "accept");
	close(listener);
	return fd;
}

/* A socket that leads to the other process; -1: there is none of this kind. */
static int open_socket(const struct bench *b, enum bench_socket kind)
{
	const int on = 1, room = 4 << 20;
	struct place own, other;
	int fd = new_socket(kind, &own);

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (kind == SOCKET_TCP && b->rank == 1)
		need(listen(fd, 1) == 0, "listen");
	other = exchange_places(b, &own);
	lead_to(&other, own.nid);
	if (kind == SOCKET_UNIX && own.nid != other.nid) {
		close(fd);
		return -1;
	}
	if (kind == SOCKET_TCP && b->rank == 1)
		fd = accept_other(fd);
	else
		need(connect(fd, &other.at.any, other.length) == 0, "connect");
	if (kind == SOCKET_TCP)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Send all of a message; a stream may take parts of it. */
static void send_all(int fd, const char *bytes, size_t left)
{
	do {
		ssize_t n = send(fd, bytes, left, MSG_NOSIGNAL);

		if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOBUFS))
			continue;
		need(n >= 0, "send");
		bytes += n;
		left -= (size_t)n;
	} while (left > 0);
}

static void take_all(int fd, char *bytes, size_t left)
{
	uint64_t start = perf_now();

	do {
		ssize_t n = recv(fd, bytes, left, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			errno = ETIMEDOUT;
			need(perf_ns(perf_now() - start) < SILENCE_S * 1e9,
			     "a message by a socket");
			continue;
		}
		need(n > 0, "recv");
		bytes += n;
		left -= (size_t)n;
		start = perf_now();
	} while (left > 0);
}

/* ---- process 0 ------------------------------------------------------------------------------- */

double bench_by_socket(struct bench *b, enum bench_socket kind, size_t bytes, size_t answer)
{
	const int n = bytes > DP_MAX_MESSAGE ? b->rounds / 100 + 5 : b->rounds;
	double *sample = calloc((size_t)n, sizeof(*sample));
	char *buffer = calloc(1, bytes);
	struct perf_stats s;
	int fd;

	need(sample && buffer, "calloc");
	if (kind == SOCKET_UDP && bytes > UDP_MOST) {
		free(sample);
		free(buffer);
		return -1;
	}
	bench_order(b, (struct order){ .kind = ORDER_SOCKETS,
				       .waiting = (int)kind,
				       .size = (int)bytes,
				       .flush = (int)answer,
				       .count = n });
	fd = open_socket(b, kind);
	for (int i = 0; fd >= 0 && i < n; i++) {
		uint64_t start = perf_now();

		send_all(fd, buffer, bytes);
		take_all(fd, buffer, answer);
		sample[i] = perf_ns(perf_now() - start);
	}
	perf_stats_of(sample, (size_t)n, &s);
	if (fd >= 0)
		close(fd);
	free(sample);
	free(buffer);
	return fd >= 0 ? s.middle : -1;
}

/* ---- process 1 ------------------------------------------------------------------------------- */

void bench_socket_answer(struct bench *b, const struct order *o)
{
	int fd = open_socket(b, (enum bench_socket)o->waiting);
	char *buffer = calloc(1, (size_t)o->size);

	need(buffer != NULL, "calloc");
	for (int i = 0; fd >= 0 && i < o->count; i++) {
		take_all(fd, buffer, (size_t)o->size);
		send_all(fd, buffer, (size_t)o->flush);
	}
	if (fd >= 0)
		close(fd);
	free(buffer);
}
