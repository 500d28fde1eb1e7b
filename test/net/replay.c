/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * An attacker that listens on the wire and sends packets again, as they were or changed, makes
 * processes count and nothing else. Runs over the loopback interface of a network namespace of its
 * own, where a packet socket sees every frame and can send any; the same for UDP and for Ethernet
 * frames. Segments must not be joined: a frame is a packet.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nal/eth/eth_wire.h"
#include "portals/engine/stat.h"
#include "test/support/ptest.h"

enum { PORTAL = 4, ROUNDS = 8, AFTER = 20, PLACE = 300000, FRAMES = 4096, LONGEST = 66000 };
enum { WORD_REPLAYED }; /* frames sent again */

/* ---- the wire -------------------------------------------------------------------------------- */

static struct wire {
	int fd;
	unsigned int frames;
	struct {
		uint8_t *bytes;
		size_t len;
	} frame[FRAMES];
} wire;

static void tap_wire(void)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int room = 64 << 20;

	a.sll_ifindex = (int)if_nametoindex("lo");
	wire.fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	pt_true(wire.fd >= 0);
	if (setsockopt(wire.fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0)
		pt_is(setsockopt(wire.fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
	pt_is(bind(wire.fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

/* The kernel leaves the sum of UDP to the card, and this one has none: no sum is right, too. */
static void forget_sum(uint8_t *frame, size_t len)
{
	if (len >= 42 && frame[12] == 8 && frame[13] == 0 && frame[14 + 9] == IPPROTO_UDP)
		frame[14 + 20 + 6] = frame[14 + 20 + 7] = 0;
}

/* Keeps what has passed; every frame of the loopback interface is seen on its way out and on its
 * way in. */
static void listen_in(void)
{
	static uint8_t bytes[LONGEST];
	struct sockaddr_ll from;
	socklen_t size = sizeof(from);
	ssize_t len;

	while ((len = recvfrom(wire.fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size)) >
	       0) {
		size = sizeof(from);
		if (from.sll_pkttype == PACKET_OUTGOING || wire.frames == FRAMES)
			continue;
		forget_sum(bytes, (size_t)len);
		wire.frame[wire.frames].bytes = malloc((size_t)len);
		pt_true(wire.frame[wire.frames].bytes);
		memcpy(wire.frame[wire.frames].bytes, bytes, (size_t)len);
		wire.frame[wire.frames++].len = (size_t)len;
	}
}

static void send_frame(const uint8_t *bytes, size_t len)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6 };

	to.sll_ifindex = (int)if_nametoindex("lo");
	memcpy(&to.sll_protocol, bytes + 12, 2);
	while (sendto(wire.fd, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)) < 0) {
		struct pollfd f = { .fd = wire.fd, .events = POLLOUT };

		pt_true(errno == EAGAIN || errno == ENOBUFS);
		poll(&f, 1, 10);
	}
}

/* ---- the counters ---------------------------------------------------------------------------- */

static const struct ptl_stat *own_page(void)
{
	const struct ptl_stat *s = MAP_FAILED;
	char path[300], target[256];
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		ssize_t len;
		int fd;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = 0;
		if (strncmp(target, "/memfd:" PTL_STAT_MEMFD, sizeof("/memfd:" PTL_STAT_MEMFD) - 1))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		s = mmap(NULL, sizeof(*s), PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
	}
	closedir(d);
	pt_true(s != MAP_FAILED && s->magic == PTL_STAT_MAGIC);
	return s;
}

/* Packets that were dropped, for whatever reason. */
static uint64_t counted(const struct ptl_stat *s)
{
	uint64_t sum = 0;

	for (int i = PTL_COUNT_DGRAM_MALFORMED; i <= PTL_COUNT_DGRAM_OUTSIDE; i++)
		sum += *(const volatile uint64_t *)&s->counts[i];
	return sum;
}

/* ---- traffic --------------------------------------------------------------------------------- */

static char place[PLACE], bytes[PLACE];
static const ptl_size_t sizes[] = { 0, 8, 900, 5000, 100000 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static ptl_handle_eq_t open_both(void)
{
	ptl_handle_eq_t eq;

	pt_open();
	eq = pt_eq(1024);
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_md(place, sizeof(place),
			      PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE |
				      PTL_MD_EVENT_START_DISABLE,
			      eq),
			PTL_RETAIN, NULL);
	pt_barrier();
	return eq;
}

static void put(ptl_handle_eq_t eq, ptl_size_t length, ptl_size_t offset, uint64_t value)
{
	ptl_handle_md_t md = pt_bind(bytes, length, PTL_MD_EVENT_START_DISABLE, eq);

	pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, offset, value));
	pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
	pt_ok(PtlMDUnlink(md));
}

static void get(ptl_handle_eq_t eq, ptl_size_t length)
{
	ptl_handle_md_t md = pt_bind(bytes, length, PTL_MD_EVENT_START_DISABLE, eq);

	pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 0, 0));
	pt_await(eq, PT_BIT(PTL_EVENT_REPLY_END), NULL);
	pt_ok(PtlMDUnlink(md));
}

/* Everything there is, while the wire is listened to. */
static void talk(ptl_handle_eq_t eq)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		put(eq, sizes[i % SIZES], 0, i);
		get(eq, sizes[(i + 3) % SIZES]);
		listen_in();
	}
	pt_true(wire.frames > 4 * ROUNDS);
}

/* The target's part: what it hears is what was said, and nothing is written twice. */
static void be_target(ptl_handle_eq_t eq)
{
	const struct ptl_stat *s = own_page();
	ptl_event_t ev;
	double deadline;
	uint64_t before;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, i);
		pt_next(eq, PTL_EVENT_GET_END);
	}
	memset(place, 0x55, sizeof(place));
	before = counted(s);
	pt_barrier();
	for (uint64_t i = 0; i < AFTER; i++)
		pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, ROUNDS + i);
	pt_barrier(); /* all has been sent */
	/* half of it may have been for the other one, and lost in a full queue */
	deadline = pt_lived() + pt_patience(20);
	while (counted(s) < before + *pt_word(WORD_REPLAYED) / 8) {
		pt_truef(pt_lived() < deadline, "%llu counted of %llu that were sent again",
			 (unsigned long long)(counted(s) - before),
			 (unsigned long long)*pt_word(WORD_REPLAYED));
		pt_code(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
		pt_pause();
	}
	pt_quiet(eq);
	pt_is(pt_status(PTL_SR_DROP_COUNT), 0);
	pt_is(pt_status(PTL_SR_RECV_COUNT), 2 * ROUNDS + AFTER);
	pt_is(s->counts[PTL_COUNT_PEERS_LOST], 0);
	/* the later puts went to the end */
	for (size_t i = 0; i < PLACE - AFTER; i++)
		pt_truef(place[i] == 0x55, "byte %zu was written again", i);
	pt_barrier();
}

/* Sends what was heard again, twice, each frame changed by `change`, between messages that are
 * right. */
static void be_initiator(ptl_handle_eq_t eq, size_t (*change)(uint8_t *frame, size_t len))
{
	static uint8_t copy[LONGEST];
	unsigned int n = 2 * wire.frames, per = n / AFTER + 1;

	for (unsigned int i = 0; i < n || i < per * AFTER; i++) {
		if (i < n) {
			size_t len = wire.frame[i % wire.frames].len;

			memcpy(copy, wire.frame[i % wire.frames].bytes, len);
			len = change ? change(copy, len) : len;
			send_frame(copy, len);
		}
		if (i % per == 0 && i / per < AFTER)
			put(eq, 1, PLACE - AFTER + i / per, ROUNDS + i / per);
	}
	*pt_word(WORD_REPLAYED) = n;
	pt_barrier();
	pt_barrier();
	pt_is(own_page()->counts[PTL_COUNT_PEERS_LOST], 0);
}

static void again(size_t (*change)(uint8_t *frame, size_t len))
{
	ptl_handle_eq_t eq;

	tap_wire();
	eq = open_both();
	if (pt_is_target()) {
		be_target(eq);
		return;
	}
	talk(eq);
	pt_barrier();
	be_initiator(eq, change);
}

static void what_is_sent_again_is_only_counted(void)
{
	again(NULL);
}

/* Where the packet begins in a frame of either kind. */
static size_t packet_at(const uint8_t *frame)
{
	return frame[12] == 8 && frame[13] == 0 ? 14 + sizeof(struct iphdr) + sizeof(struct udphdr)
						: sizeof(struct eth_wire_frame);
}

/* Some byte of the packet's head. */
static size_t change_a_byte(uint8_t *frame, size_t len)
{
	static uint64_t seed = 11;
	size_t at = packet_at(frame) + pt_random(&seed) % 40;

	if (at < len)
		frame[at] ^= (uint8_t)(1 + pt_random(&seed) % 255);
	return len;
}

static void what_is_changed_is_only_counted(void)
{
	again(change_a_byte);
}

/* All behind the addresses is by chance, and its length, too. */
static size_t make_garbage(uint8_t *frame, size_t len)
{
	static uint64_t seed = 12;
	bool udp = packet_at(frame) != sizeof(struct eth_wire_frame);
	size_t from = udp ? packet_at(frame) : pt_random(&seed) % 2 ? 14 : 26;

	for (size_t i = from; i < len; i++)
		frame[i] = (uint8_t)pt_random(&seed);
	/* what is to reach the process has its number */
	if (!udp && from == 14)
		frame[14] = (uint8_t)(pt_random(&seed) % 4);
	else if (!udp && len > 60)
		len = 26 + pt_random(&seed) % (len - 26);
	return len;
}

static void garbage_is_only_counted(void)
{
	again(make_garbage);
}

static const struct pt_test tests[] = {
	PT_CASE(what_is_sent_again_is_only_counted, 2),
	PT_CASE(what_is_changed_is_only_counted, 2),
	PT_CASE(garbage_is_only_counted, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
