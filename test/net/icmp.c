/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The network's own reports of our packets. A true report that nobody is there is heard at once. A
 * report that somebody else forges ends nothing. Runs in a network namespace of its own, where ICMP
 * can be forged without being seen by anybody.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/support/ptest.h"

#define PORTAL   4
#define MESSAGES 200
#define SILENCE  3 /* s: PTL_NET_DEAD_MS of this test */

/* "Port unreachable", or another code, in the name of `whose`, as if it had thrown away a packet
 * from `to`. */
struct word {
	struct icmphdr icmp;
	struct iphdr ip;
	struct udphdr udp;
	uint8_t bytes[80];
};

static uint16_t checksum(const void *bytes, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i += 2) {
		uint16_t word;

		memcpy(&word, (const char *)bytes + i, 2);
		sum += word;
	}
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void refuse_in_the_name_of(int fd, uint8_t code, ptl_process_id_t whose, ptl_process_id_t to,
				  uint64_t *seed)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(to.nid) };
	struct word w = {
		.icmp = { .type = ICMP_DEST_UNREACH, .code = code },
		.ip = { .version = 4,
			.ihl = 5,
			.ttl = 64,
			.protocol = IPPROTO_UDP,
			.tot_len = htons(sizeof(w) - sizeof(w.icmp)),
			.saddr = htonl(to.nid),
			.daddr = htonl(whose.nid) },
		.udp = { .source = htons((uint16_t)to.pid),
			 .dest = htons((uint16_t)whose.pid),
			 .len = htons(sizeof(w.udp) + sizeof(w.bytes)) },
	};

	for (size_t i = 0; i < sizeof(w.bytes); i++)
		w.bytes[i] = (uint8_t)pt_random(seed);
	/* a HELLO of the right length, but for what its sender alone knows */
	memcpy(w.bytes, (uint8_t[]){ 1, 1, sizeof(w.bytes), 0, 0, 0, 0, 0 }, 8);
	w.ip.check = checksum(&w.ip, sizeof(w.ip));
	w.icmp.checksum = checksum(&w, sizeof(w));
	pt_is(sendto(fd, &w, sizeof(w), 0, (struct sockaddr *)&a, sizeof(a)), (ssize_t)sizeof(w));
}

static int raw_socket(void)
{
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);

	pt_true(fd >= 0);
	return fd;
}

/* How long a put to `whom` takes to fail. */
static double fails_after(ptl_process_id_t whom, int fd)
{
	ptl_handle_eq_t eq = pt_eq(16);
	double start = pt_now();
	uint64_t seed = 5;
	ptl_event_t ev = { .type = PTL_EVENT_SEND_START };
	ptl_handle_md_t md;
	static char c;

	md = pt_bind(&c, 1, PTL_MD_EVENT_START_DISABLE, eq);
	pt_ok(PtlPut(md, PTL_ACK_REQ, whom, PORTAL, 0, 0, 0, 0));
	while (ev.type != PTL_EVENT_SEND_END) {
		int which, err = PtlEQPoll(&eq, 1, 20, &ev, &which);

		if (err != PTL_OK)
			pt_code(err, PTL_EQ_EMPTY);
		if (fd >= 0 && err != PTL_OK)
			refuse_in_the_name_of(fd, ICMP_PORT_UNREACH, whom, pt_id(pt_rank), &seed);
	}
	pt_is(ev.ni_fail_type, PTL_NI_UNREACHABLE);
	return pt_now() - start;
}

/* A socket that takes what comes and says nothing. */
static int silent_socket(ptl_process_id_t *id)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(id->nid) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t len = sizeof(a);

	pt_true(fd >= 0);
	pt_is(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	pt_is(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	id->pid = ntohs(a.sin_port);
	return fd;
}

static void that_nobody_is_there_is_heard_at_once(void)
{
	ptl_process_id_t nobody;
	double start;

	pt_open();
	nobody = pt_id(0);
	/* a port that was somebody's a moment ago */
	close(silent_socket(&nobody));
	start = pt_lived();
	fails_after(nobody, -1);
	pt_true(pt_lived() - start < SILENCE);
}

static void only_who_saw_the_greeting_is_believed(void)
{
	ptl_process_id_t silent;
	int fd, icmp;

	pt_open();
	silent = pt_id(0);
	fd = silent_socket(&silent);
	icmp = raw_socket();
	pt_true(fails_after(silent, icmp) >= SILENCE * 0.9);
	close(icmp);
	close(fd);
}

static void a_connection_does_not_end_by_what_is_said_of_it(void)
{
	static const uint8_t code[] = { ICMP_PORT_UNREACH, ICMP_HOST_UNREACH, ICMP_NET_UNREACH,
					ICMP_PROT_UNREACH, ICMP_HOST_UNREACH };
	ptl_handle_eq_t eq;
	uint64_t seed = 9;
	int fd;

	eq = pt_open_target(PORTAL);
	if (pt_is_target()) {
		for (uint64_t i = 0; i < MESSAGES; i++)
			pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, i);
		pt_barrier();
		return;
	}
	fd = raw_socket();
	for (uint64_t i = 0; i < MESSAGES; i++) {
		pt_exchange(eq, PORTAL, i);
		for (uint8_t k = 0; k < 5; k++) {
			refuse_in_the_name_of(fd, code[k], pt_target(), pt_initiator(), &seed);
			refuse_in_the_name_of(fd, code[k], pt_initiator(), pt_target(), &seed);
		}
	}
	close(fd);
	pt_barrier();
}

static const struct pt_test tests[] = {
	PT_CASE(that_nobody_is_there_is_heard_at_once, 1),
	PT_CASE(only_who_saw_the_greeting_is_believed, 1),
	PT_CASE(a_connection_does_not_end_by_what_is_said_of_it, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
