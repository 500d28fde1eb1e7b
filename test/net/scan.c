/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A port scan while two processes talk over UDP: every port of the address that they use gets
 * datagrams of no bytes, of one, and of many, and a call by TCP. Nobody is answered, nobody is
 * disturbed, and what came to a port of ours is counted. Runs in a network namespace of its own,
 * where there is nobody else to be scanned.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/support/ptest.h"

enum { PORTAL = 4, PORTS = 65536, EVERY = 256, MESSAGES = PORTS / EVERY };
enum { OURS = 1 }; /* the port that is scanned from, lest it is one that is scanned */
enum { SCANNED };  /* word: all ports were */

static ptl_handle_eq_t eq;
static const size_t lengths[] = { 0, 1, 600 };
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static struct sockaddr_in at_port(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_addr.s_addr = htonl(pt_target().nid);
	a.sin_port = htons((uint16_t)port);
	return a;
}

static int scanner(int type)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(OURS) };
	int fd = socket(AF_INET, type, 0);

	pt_true(fd >= 0);
	pt_is(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* An answer to what was sent; that nobody is there is none. */
static bool answered(int fd)
{
	char bytes[2048];

	for (;;) {
		if (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0)
			return true;
		if (errno != ECONNREFUSED)
			return false;
	}
}

static void scan_by_udp(int fd, int port, uint64_t *seed)
{
	struct sockaddr_in a = at_port(port);
	uint8_t garbage[600];

	for (int i = 0; i < LENGTHS; i++) {
		ssize_t len;

		for (size_t at = 0; at < lengths[i]; at++)
			garbage[at] = (uint8_t)pt_random(seed);
		do {
			len = sendto(fd, garbage, lengths[i], 0, (struct sockaddr *)&a, sizeof(a));
		} while (len < 0 && (errno == ECONNREFUSED || errno == ENOBUFS));
		pt_is(len, lengths[i]);
	}
}

/* Nothing of ours listens for connections. */
static void scan_by_tcp(int port)
{
	struct sockaddr_in a = at_port(port);
	int fd = scanner(SOCK_STREAM);

	pt_truef(connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0, "port %d takes calls", port);
	pt_is(errno, ECONNREFUSED);
	close(fd);
}

static void scan(void)
{
	int fd = scanner(SOCK_DGRAM);
	uint64_t seed = 17;

	for (int port = 0; port < PORTS; port++) {
		if (port % EVERY == 0)
			pt_exchange(eq, PORTAL, (uint64_t)(port / EVERY));
		if (port <= OURS)
			continue;
		scan_by_udp(fd, port, &seed);
		scan_by_tcp(port);
		pt_truef(!answered(fd), "something was answered before port %d", port + 1);
	}
	close(fd);
}

static const char none_of_ours[] = "packets dropped: none of ours";

/* For a moment in the library, where what came to us is counted. */
static void attend(void)
{
	ptl_event_t ev;
	int which;

	pt_code(PtlEQPoll(&eq, 1, 10, &ev, &which), PTL_EQ_EMPTY);
}

/* The datagrams of no bytes, too. */
static void all_are_counted(void)
{
	double end = pt_lived() + pt_patience(20);

	for (int rank = 0; rank < pt_size; rank++)
		while (pt_stat(pt_os_pid(rank), none_of_ours) < LENGTHS) {
			pt_truef(pt_lived() < end, "rank %d counted %d of %d", rank,
				 (int)pt_stat(pt_os_pid(rank), none_of_ours), LENGTHS);
			attend();
		}
}

static void a_port_scan_is_only_counted(void)
{
	eq = pt_open_target(PORTAL);
	if (pt_is_target()) {
		for (uint64_t i = 0; i < MESSAGES; i++)
			pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, i);
		while (!*pt_word(SCANNED))
			attend();
		pt_is(pt_status(PTL_SR_RECV_COUNT), MESSAGES);
	} else {
		scan();
		all_are_counted();
		*pt_word(SCANNED) = 1;
	}
	pt_barrier();
	pt_is(pt_status(PTL_SR_DROP_COUNT), 0);
	pt_is(pt_stat(getpid(), "peers that died while connected"), 0);
	pt_is(pt_stat(getpid(), none_of_ours), LENGTHS);
	pt_quiet(eq);
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = {
		PT_LONG(a_port_scan_is_only_counted, 2, 120),
	};

	return PT_MAIN(argc, argv, tests);
}
