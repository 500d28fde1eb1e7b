/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Peers that have the key and went mad, or die at a bad moment: one process uses Portals, the
 * other is a datagram machine on a socket of its own that says what no Portals would. The
 * operations of the first end once, all the same.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <portals3_ext.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/cpu.h"
#include "nal/net/net.h"
#include "test/support/ptest.h"

enum { PORTAL = 4, LONG = 100000, HEARD = 64, MAD = 1 };

/* ---- the other one --------------------------------------------------------------------------- */

static struct mad {
	int fd;
	struct dgram *m;
	struct net net; /* its keys, for net_seal and net_verify */
	uint32_t peer, heard, landed, sent, ups;
	struct net_msg msg[HEARD]; /* messages delivered */
	bool withhold;             /* bodies */
	uint8_t packet[DGRAM_MTU_MAX], head[DGRAM_MTU_MAX];
	char delivery[LONG];
} mad;

static char bytes[LONG];

static struct sockaddr_in victim_address(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	/* without a job the pid is the port */
	a.sin_addr.s_addr = htonl((uint32_t)atomic_load(pt_word(0)));
	a.sin_port = htons((uint16_t)atomic_load(pt_word(1)));
	return a;
}

static void *mad_room(void *user, size_t len)
{
	(void)user;
	return len <= sizeof(mad.head) ? mad.head : NULL;
}

static void mad_transmit(void *user, const struct dgram_packet *p)
{
	struct sockaddr_in a = victim_address();
	struct iovec iov[1 + DGRAM_SEGMENTS] = { { p->head, p->head_len } };
	struct msghdr h = { .msg_name = &a,
			    .msg_namelen = sizeof(a),
			    .msg_iov = iov,
			    .msg_iovlen = 1 + (size_t)p->segments };

	(void)user;
	if (mad.withhold && p->segments)
		return;
	for (int i = 0; i < p->segments; i++)
		iov[1 + i] = p->body[i];
	(void)!sendmsg(mad.fd, &h, MSG_DONTWAIT);
}

static enum net_verdict mad_deliver(void *user, uint32_t peer, const struct net_in *in,
				    struct net_delivery *delivery)
{
	(void)user;
	mad.peer = peer;
	if (mad.heard < HEARD)
		net_msg_decode(in->header, in->header_len, in->body_len, &mad.msg[mad.heard++]);
	if (in->body || !in->body_len)
		return NET_DONE;
	delivery->mem.base = mad.delivery;
	delivery->length = in->body_len < LONG ? in->body_len : LONG;
	return NET_PULL;
}

static void mad_landed(void *user, uint32_t peer, void *cookie, enum net_status s)
{
	(void)user;
	(void)peer;
	(void)cookie;
	mad.landed += s == NET_OK;
}

static void mad_sent(void *user, uint32_t peer, void *cookie, uint64_t length, enum net_status s)
{
	(void)user;
	(void)peer;
	(void)cookie;
	(void)length;
	mad.sent += s == NET_OK;
}

static void mad_up(void *user, uint32_t peer, const struct net_who *who)
{
	(void)user;
	(void)who;
	mad.peer = peer;
	mad.ups++;
}

static int mad_pieces(void *user, void *cookie, uint64_t offset, uint64_t len, struct iovec *iov,
		      int max)
{
	(void)user;
	(void)cookie;
	(void)max;
	iov[0] = (struct iovec){ bytes + offset, len };
	return 1;
}

static const struct dgram_ops mad_ops = {
	.room = mad_room,
	.transmit = mad_transmit,
	.seal = net_seal,
	.verify = net_verify,
	.deliver = mad_deliver,
	.delivered = mad_landed,
	.sent = mad_sent,
	.up = mad_up,
	.segments = mad_pieces,
};

/* A new machine, on the socket there is, if there is one: a process that was started again. */
static void mad_start(void)
{
	struct sockaddr_in a = victim_address();
	struct dgram_cfg cfg = { .mtu = DGRAM_MTU_MIN };
	unsigned char secret[256];
	socklen_t len = sizeof(a);
	int fd = open(base_config()->ptl_key_file, O_RDONLY);
	ssize_t n;

	pt_true(fd >= 0);
	n = read(fd, secret, sizeof(secret));
	pt_true(n > 0);
	close(fd);
	if (!mad.m) {
		mad.fd = socket(AF_INET, SOCK_DGRAM, 0);
		pt_true(mad.fd >= 0);
		a.sin_port = 0;
		pt_is(bind(mad.fd, (struct sockaddr *)&a, sizeof(a)), 0);
		net_keys_make(&mad.net.keys, secret, (size_t)n);
	}
	pt_is(getsockname(mad.fd, (struct sockaddr *)&a, &len), 0);
	dgram_defaults(&cfg);
	cfg.id = (net_id_t)ntohl(a.sin_addr.s_addr) << 32 | ntohs(a.sin_port);
	cfg.incarnation = base_now_ns();
	cfg.seed = base_now_ns() * 31;
	cfg.uid = (uint32_t)geteuid();
	cfg.jid = PTL_JID_ANY;
	dgram_destroy(mad.m);
	mad.m = dgram_create(&mad_ops, &mad.net, &cfg);
	pt_true(mad.m);
	mad.heard = mad.landed = mad.sent = mad.ups = 0;
	atomic_store(pt_word(2), cfg.id);
}

static void mad_round(void)
{
	struct pollfd f = { .fd = mad.fd, .events = POLLIN };
	struct net_addr from = { { 0 } };
	ssize_t n;

	poll(&f, 1, 1);
	while ((n = recv(mad.fd, mad.packet, sizeof(mad.packet), MSG_DONTWAIT)) >= 0)
		dgram_receive(mad.m, base_now_ns(), &from, mad.packet, (size_t)n);
	dgram_listened(mad.m, base_now_ns());
	dgram_run(mad.m, base_now_ns());
}

/* Until it is so. */
#define mad_until(cond)                                                                            \
	do {                                                                                       \
		double end_ = pt_lived() + pt_patience(20);                                        \
		while (!(cond)) {                                                                  \
			pt_truef(pt_lived() < end_, "not within 20 s: %s", #cond);                 \
			mad_round();                                                               \
		}                                                                                  \
	} while (0)

/* The victim says that it has seen all it wants. */
static void mad_until_told(void)
{
	mad_until(atomic_load(pt_word(3)));
}

static void mad_says(const struct net_msg *msg, uint64_t body)
{
	uint8_t header[NET_HEADER_MAX];
	struct net_out o = { .header = header, .body_len = body, .cookie = &mad };

	o.header_len = net_msg_encode(header, msg);
	pt_is(dgram_send(mad.m, base_now_ns(), mad.peer, &o), 0);
}

static void mad_answers(const struct net_msg *to, enum ptl_answer what)
{
	const struct net_msg answer = { .kind = NET_ANSWER,
					.what = (uint8_t)what,
					.fail = what == PTL_ANSWER_FAILED ? PTL_NI_FAIL : PTL_NI_OK,
					.op = to->op,
					.op_gen = to->op_gen,
					.length = to->length };

	mad_says(&answer, 0);
}

/* ---- the victim ------------------------------------------------------------------------------ */

/* Both sides of a test begin here. True: the one with Portals. */
static bool begin(ptl_handle_eq_t *eq)
{
	ptl_process_id_t id;
	int n;

	if (pt_rank == MAD) {
		pt_until(atomic_load(pt_word(1)), 20);
		mad_start();
		return false;
	}
	pt_ok(PtlInit(&n));
	pt_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &pt_ni));
	pt_ok(PtlGetId(pt_ni, &id));
	*eq = pt_eq(64);
	atomic_store(pt_word(0), id.nid);
	atomic_store(pt_word(1), id.pid);
	pt_until(atomic_load(pt_word(2)), 20);
	return true;
}

static ptl_process_id_t other(void)
{
	uint64_t id = atomic_load(pt_word(2));

	return (ptl_process_id_t){ (ptl_nid_t)(id >> 32), (ptl_pid_t)id };
}

static void put(ptl_handle_md_t md, ptl_ack_req_t ack)
{
	pt_ok(PtlPut(md, ack, other(), PORTAL, 0, 0, 0, 0));
}

/* How the operation ended of which the next event is. */
static ptl_ni_fail_t end_of(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev;

	pt_ok(PtlEQWait(eq, &ev));
	pt_is(ev.type, kind);
	return ev.ni_fail_type;
}

/* Everything is over: no operation is left, no event comes twice, and the MD can go. */
static void all_over(ptl_handle_eq_t eq, ptl_handle_md_t md)
{
	pt_quiet(eq);
	pt_is(pt_status(PTL_SR_MSGS_CUR), 0);
	pt_ok(PtlMDUnlink(md));
	atomic_store(pt_word(3), 1);
}

static void an_answer_does_not_end_a_reply_on_its_way(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;

	if (!begin(&eq)) {
		const struct net_msg *get = &mad.msg[0];
		struct net_msg reply = { .kind = NET_REPLY, .length = LONG };

		mad_until(mad.heard);
		reply.op = get->op;
		reply.op_gen = get->op_gen;
		mad.withhold = true;
		mad_says(&reply, LONG);
		mad_answers(get, PTL_ANSWER_FAILED);
		mad_answers(get, PTL_ANSWER_QUIET);
		/* those without a long body are over when they were delivered */
		mad_until(mad.sent == 2);
		mad.withhold = false;
		mad_until_told();
		return;
	}
	md = pt_bind(bytes, LONG, 0, eq);
	pt_ok(PtlGet(md, other(), PORTAL, 0, 0, 0));
	pt_next(eq, PTL_EVENT_REPLY_START);
	pt_is(end_of(eq, PTL_EVENT_REPLY_END), PTL_NI_OK);
	all_over(eq, md);
}

static void a_reply_does_not_end_a_put(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;

	if (!begin(&eq)) {
		struct net_msg reply = { .kind = NET_REPLY };

		for (uint32_t i = 0; i < 2; i++) {
			mad_until(mad.heard == i + 1);
			reply.op = mad.msg[i].op;
			reply.op_gen = mad.msg[i].op_gen;
			mad_says(&reply, 0);
			mad_answers(&mad.msg[i], PTL_ANSWER_ACK);
		}
		mad_until_told();
		return;
	}
	md = pt_bind(bytes, LONG, PTL_MD_EVENT_START_DISABLE, eq);
	for (int i = 0; i < 2; i++) {
		put(md, PTL_ACK_REQ);
		pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
	}
	all_over(eq, md);
}

static void only_the_first_answer_counts(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;

	if (!begin(&eq)) {
		mad_until(mad.heard);
		mad_answers(&mad.msg[0], PTL_ANSWER_ACK);
		mad_answers(&mad.msg[0], PTL_ANSWER_FAILED);
		mad_until_told();
		return;
	}
	md = pt_bind(bytes, LONG, PTL_MD_EVENT_START_DISABLE, eq);
	put(md, PTL_ACK_REQ);
	pt_is(end_of(eq, PTL_EVENT_SEND_END), PTL_NI_OK);
	pt_is(end_of(eq, PTL_EVENT_ACK), PTL_NI_OK);
	all_over(eq, md);
}

/* It dies when it has all of a long put and has not acknowledged it; its place is taken by
 * another one. */
static void who_dies_before_the_ack_does_not_take_that_of_others_along(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md, small;

	if (!begin(&eq)) {
		mad_until(mad.landed);
		/* it is known over there */
		for (int i = 0; i < 20; i++)
			mad_round();
		dgram_close(mad.m, base_now_ns());
		mad_start();
		mad_until(mad.heard);
		mad_answers(&mad.msg[0], PTL_ANSWER_ACK);
		mad_until_told();
		return;
	}
	md = pt_bind(bytes, LONG, PTL_MD_EVENT_START_DISABLE, eq);
	small = pt_bind(bytes, 10, PTL_MD_EVENT_START_DISABLE, eq);
	put(md, PTL_ACK_REQ);
	pt_is(end_of(eq, PTL_EVENT_SEND_END), PTL_NI_PEER_DEAD);
	pt_is(pt_status(PTL_SR_MSGS_CUR), 0);
	put(small, PTL_ACK_REQ);
	pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
	pt_ok(PtlMDUnlink(small));
	all_over(eq, md);
}

/* Also while the application, which slept before, looks at its queue all the time and the
 * network is quiet. */
static void silence_is_noticed_by_who_polls(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t ev;
	int which, err;

	if (!begin(&eq)) {
		mad_until(mad.heard);
		/* it is known over there */
		for (int i = 0; i < 20; i++)
			mad_round();
		pt_until(atomic_load(pt_word(3)), 40);
		return;
	}
	md = pt_bind(bytes, LONG, PTL_MD_EVENT_START_DISABLE, eq);
	pt_ok(PtlGet(md, other(), PORTAL, 0, 0, 0));
	pt_code(PtlEQPoll(&eq, 1, 300, &ev, &which), PTL_EQ_EMPTY);
	pt_until((err = PtlEQGet(eq, &ev)) != PTL_EQ_EMPTY, 30);
	pt_is(err, PTL_OK);
	pt_is(ev.type, PTL_EVENT_REPLY_END);
	pt_is(ev.ni_fail_type, PTL_NI_PEER_DEAD);
	all_over(eq, md);
}

/* Also while the application sleeps, after it has polled until the network was taken for quiet. */
static void silence_is_noticed_by_a_sleeper(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t ev;
	uint64_t quiet;
	int which;

	if (!begin(&eq)) {
		mad_until(mad.heard);
		for (int i = 0; i < 20; i++)
			mad_round();
		pt_until(atomic_load(pt_word(3)), 40);
		return;
	}
	md = pt_bind(bytes, LONG, PTL_MD_EVENT_START_DISABLE, eq);
	pt_ok(PtlGet(md, other(), PORTAL, 0, 0, 0));
	for (quiet = base_now_ns() + 300000000; base_now_ns() < quiet;)
		pt_code(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	pt_ok(PtlEQPoll(&eq, 1, 30000, &ev, &which));
	pt_is(ev.type, PTL_EVENT_REPLY_END);
	pt_is(ev.ni_fail_type, PTL_NI_PEER_DEAD);
	all_over(eq, md);
}

/* Copies that cannot be delivered do not fill the memory. */
static void who_does_not_listen_is_not_written_for_without_end(void)
{
	enum { PUTS = 1024, SEGMENT = 16384, KEPT = 8 << 20 };
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t ev;
	int now = 0;

	if (!begin(&eq)) {
		mad_until(mad.heard);
		mad_answers(&mad.msg[0], PTL_ANSWER_ACK);
		for (int i = 0; i < 20; i++)
			mad_round();
		atomic_store(pt_word(4), 1);
		pt_until(atomic_load(pt_word(5)), 20);
		mad_until_told();
		return;
	}
	pt_ok(PtlEQFree(eq));
	eq = pt_eq(2 * PUTS);
	md = pt_bind(bytes, LONG, PTL_MD_EVENT_START_DISABLE, eq);
	pt_ok(PtlPutRegion(md, 0, 1, PTL_ACK_REQ, other(), PORTAL, 0, 0, 0, 0));
	pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
	pt_until(atomic_load(pt_word(4)), 20);
	for (int i = 0; i < PUTS; i++)
		pt_ok(PtlPutRegion(md, 0, SEGMENT, PTL_NOACK_REQ, other(), PORTAL, 0, 0, 0, 0));
	while (PtlEQGet(eq, &ev) == PTL_OK)
		now++;
	pt_truef(now < KEPT / SEGMENT, "%d puts of %d bytes are over before anything is heard", now,
		 SEGMENT);
	pt_code(PtlPutInject(pt_ni, bytes, 1, PTL_INJECT_NOW, other(), PORTAL, 0, 0, 0, 0),
		PTL_NO_SPACE);
	atomic_store(pt_word(5), 1);
	for (; now < PUTS; now++)
		pt_is(end_of(eq, PTL_EVENT_SEND_END), PTL_NI_OK);
	all_over(eq, md);
}

/* A short put waits in line behind a longer one when the process is started anew: that knows of
 * neither. */
static void answers_are_for_who_asked(void)
{
	const struct net_msg longer = { .kind = NET_PUT,
					.ack = true,
					.pt_index = PORTAL,
					.op = 7,
					.op_gen = 9,
					.length = 2000 },
			     shorter = { .kind = NET_PUT,
					 .ack = true,
					 .pt_index = PORTAL,
					 .op = 8,
					 .op_gen = 9,
					 .length = 10 },
			     bare = { .kind = NET_PUT,
				      .ack = true,
				      .pt_index = PORTAL,
				      .op = 1,
				      .op_gen = 1 };
	ptl_handle_eq_t eq;
	static char place[4096];

	if (!begin(&eq)) {
		struct sockaddr_in a = victim_address();
		net_id_t id = (net_id_t)ntohl(a.sin_addr.s_addr) << 32 | ntohs(a.sin_port);
		struct net_addr to = { { 0 } };

		pt_until(atomic_load(pt_word(4)), 20);
		mad.peer = dgram_peer(mad.m, id, &to);
		mad.withhold = true;
		mad_says(&longer, 2000);
		mad_says(&shorter, 10);
		mad_until(mad.sent == 1);
		mad_start();
		mad.peer = dgram_peer(mad.m, id, &to);
		mad_says(&bare, 0);
		mad_until(mad.heard);
		pt_is(mad.msg[0].op, bare.op);
		mad_until_told();
		return;
	}
	pt_post(PORTAL, 0,
		pt_md(place, sizeof(place),
		      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	atomic_store(pt_word(4), 1);
	pt_is(end_of(eq, PTL_EVENT_PUT_END), PTL_NI_PEER_DEAD);
	pt_is(end_of(eq, PTL_EVENT_PUT_END), PTL_NI_OK);
	/* of the new process */
	pt_is(end_of(eq, PTL_EVENT_PUT_END), PTL_NI_OK);
	pt_quiet(eq);
	atomic_store(pt_word(3), 1);
}

/* Lists of runs: what the header says of the span, and what the list itself says. The last one
 * is as it should be. */
static const struct {
	uint32_t said, span;
	ptl_atomic_run_t run;
} lists[] = {
	{ 2400, 4096, { 0, 500, 600, 4 } },    { 2400, 2400, { 200, 500, 700, 4 } },
	{ 2400, 2400, { 0, 500, 600, 3 } },    { 2400, 2400, { 0, 500, 1u << 31, 4 } },
	{ 2400, 2400, { 0, 500, 600, 1000 } }, { 64, 4096, { 0, 8, 1000, 4 } },
	{ 64, 64, { 60, 8, 16, 4 } },          { 64, 64, { 0, 8, 16, 4 } },
};
enum { LISTS = sizeof(lists) / sizeof(lists[0]) };

static void mad_says_runs(uint32_t said, uint32_t span, ptl_atomic_run_t run)
{
	const ptl_atomic_runs_t head = { .span = span, .groups = 1 };
	const struct net_msg m = { .kind = NET_PUT,
				   .ack = true,
				   .atomic = PTL_ATOMIC_SWAP | PTL_ATOMIC_RUNS,
				   .element = PTL_ATOMIC_UINT8,
				   .pt_index = PORTAL,
				   .op = 3,
				   .op_gen = 5,
				   .span = said,
				   .length = 4 * run.bytes };

	memset(bytes, 0x77, 4096);
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), &run, sizeof(run));
	mad_says(&m, sizeof(head) + sizeof(run) + m.length);
}

static void lists_of_runs_that_lie_change_nothing(void)
{
	static unsigned char place[8192];
	ptl_handle_eq_t eq;

	if (!begin(&eq)) {
		struct sockaddr_in a = victim_address();
		struct net_addr to = { { 0 } };

		pt_until(atomic_load(pt_word(4)), 20);
		mad.peer = dgram_peer(
			mad.m, (net_id_t)ntohl(a.sin_addr.s_addr) << 32 | ntohs(a.sin_port), &to);
		for (uint32_t i = 0; i < LISTS; i++) {
			mad_says_runs(lists[i].said, lists[i].span, lists[i].run);
			mad_until(mad.heard == i + 1);
			pt_is(mad.msg[i].what, i < LISTS - 1 ? PTL_ANSWER_FAILED : PTL_ANSWER_ACK);
		}
		mad_until_told();
		return;
	}
	pt_post(PORTAL, 0,
		pt_md(place, sizeof(place),
		      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	atomic_store(pt_word(4), 1);
	for (int i = 0; i < LISTS; i++)
		pt_is(end_of(eq, PTL_EVENT_PUT_END), i < LISTS - 1 ? PTL_NI_PROTOCOL : PTL_NI_OK);
	for (size_t i = 0; i < sizeof(place); i++)
		pt_is(place[i], i < 64 && i % 16 < 8 ? 0x77 : 0);
	pt_quiet(eq);
	atomic_store(pt_word(3), 1);
}

static const struct pt_test tests[] = {
	PT_CASE(lists_of_runs_that_lie_change_nothing, 2),
	PT_CASE(an_answer_does_not_end_a_reply_on_its_way, 2),
	PT_CASE(a_reply_does_not_end_a_put, 2),
	PT_CASE(only_the_first_answer_counts, 2),
	PT_CASE(who_dies_before_the_ack_does_not_take_that_of_others_along, 2),
	PT_CASE(answers_are_for_who_asked, 2),
	PT_CASE(who_does_not_listen_is_not_written_for_without_end, 2),
	PT_CASE(silence_is_noticed_by_who_polls, 2),
	PT_CASE(silence_is_noticed_by_a_sleeper, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
