/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Strangers can make a process that has a UDP port count, and nothing else. Garbage, headers with
 * wrong tags, greetings without the key and packets that were seen before are sent to the target's
 * port, from this process and to this machine only, a bounded number of them; meanwhile the two go
 * on talking.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nal/net/dgram/dgram_wire.h"
#include "test/support/ptest.h"

#define PORTAL   4
#define GARBAGE  2000 /* packets */
#define MESSAGES 200

/* A socket that sends to the target's port. Without a job the pid is the port. */
static int towards_target(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	a.sin_addr.s_addr = htonl(pt_target().nid);
	a.sin_port = htons((uint16_t)pt_target().pid);
	pt_true(fd >= 0);
	pt_is(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void receive(ptl_handle_eq_t eq)
{
	for (uint64_t i = 0; i < MESSAGES; i++)
		pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, i);
	pt_quiet(eq);
	pt_is(pt_status(PTL_SR_DROP_COUNT), 0);
}

static void random_bytes(uint8_t *to, size_t len, uint64_t *seed)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)pt_random(seed);
}

/* Random bytes of random lengths, half of them behind the start of a sound header. */
static void garbage_is_counted_and_nothing_else(void)
{
	ptl_handle_eq_t eq = pt_open_target(PORTAL);
	uint8_t packet[1400];
	uint64_t seed = 42;
	int fd;

	if (pt_is_target()) {
		receive(eq);
		return;
	}
	fd = towards_target();
	for (int i = 0; i < GARBAGE; i++) {
		size_t len = pt_random(&seed) % sizeof(packet);

		random_bytes(packet, len, &seed);
		if (len >= 40 && i % 2) {
			packet[0] = DGRAM_VERSION;
			packet[1] = (uint8_t)(1 + i % 4);
			base_put16(packet + 2, (uint32_t)len);
		}
		(void)!send(fd, packet, len, MSG_DONTWAIT);
		if (i % (GARBAGE / MESSAGES) == 0) {
			/* also one of no bytes, and most likely nothing else at the same time */
			usleep(1000);
			pt_is(send(fd, packet, 0, 0), 0);
			pt_exchange(eq, PORTAL, (uint64_t)(i / (GARBAGE / MESSAGES)));
		}
	}
	close(fd);
}

/* A greeting that is right in all but the tag makes no connection. */
static void a_greeting_without_the_key_is_not_answered(void)
{
	ptl_handle_eq_t eq = pt_open_target(PORTAL);
	uint8_t packet[128], answer[128];
	struct dgram_hello hello = { .from = 0x7f00000100000007, .incarnation = 5, .token = 6 };
	struct dgram_head head = { .type = DGRAM_HELLO };
	struct timeval patience = { .tv_usec = 300000 };
	size_t len;
	int fd;

	if (pt_is_target()) {
		receive(eq);
		return;
	}
	fd = towards_target();
	pt_is(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	hello.whom = (uint64_t)pt_target().nid << 32 | pt_target().pid;
	memset(packet, 0, sizeof(packet));
	len = sizeof(struct dgram_wire_head) + sizeof(struct dgram_wire_hello);
	head.head_len = (uint32_t)len;
	dgram_head_encode(packet, &head);
	dgram_hello_encode(packet + sizeof(struct dgram_wire_head), &hello);
	for (int i = 0; i < MESSAGES; i++) {
		packet[NET_TAG_OFFSET] = (uint8_t)i;
		pt_is(send(fd, packet, len, 0), (ssize_t)len);
		pt_exchange(eq, PORTAL, (uint64_t)i);
	}
	pt_truef(recv(fd, answer, sizeof(answer), 0) < 0, "a stranger was answered");
	close(fd);
}

static const struct pt_test tests[] = {
	PT_CASE(garbage_is_counted_and_nothing_else, 2),
	PT_CASE(a_greeting_without_the_key_is_not_answered, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
