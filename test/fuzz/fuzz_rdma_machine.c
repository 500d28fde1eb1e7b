/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The message machine of fabrics in the middle of things. Its peer has the job's secret and sends
 * anything. Its link has no room, breaks, and completes operations at any time. The input is a
 * sequence of steps, each a byte; behind that of a packet come its length and its bytes, where a
 * packet of no kind is a headerless one. Whatever comes, nothing is written outside of deliveries
 * nor after they were given back, every message and delivery ends once, and the machine goes to
 * sleep in the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nal/net/rdma/rdma.h"
#include "portals/engine/ni.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The lower three bits of a step; the others say more. */
enum { VERDICT, ROOM, READ, PACKET_OUT, SEND, TIME, PACKET_IN, WRONG_PACKET_IN };

enum { PACKET = 1024, COPIED = 64, MOST = 64, LANDINGS = 64, LONG = 12000, SEGMENT = 100 };

static struct {
	struct rdma d;
	const struct net_carrier *carrier;
	struct ptl_ni ni;
	uint64_t now;
	bool full;
	enum net_verdict verdict;
	bool scattered;
	struct rdma_packet *flying[MOST];
	struct rdma_read *reading[MOST];
	uint32_t nflying, nreading, sent, told, pulled, landed;
	volatile uint8_t seen;
	struct {
		uint8_t *bytes;
		uint64_t len;
	} delivery[LANDINGS];
	uint8_t source[LONG];
} it;

static void see(const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		it.seen ^= ((const uint8_t *)bytes)[i];
}

/* ---- the link -------------------------------------------------------------------------------- */

static void *reach(void *link, net_id_t id, const void *address, size_t len)
{
	(void)id;
	see(address, len);
	return link;
}

static void leave(void *link, void *way)
{
	(void)link;
	(void)way;
}

static size_t own_address(void *link, void *to)
{
	(void)link;
	memset(to, 1, 4);
	return 4;
}

static int send_packet(void *link, void *way, struct rdma_packet *k)
{
	(void)link;
	if (!way || k->len > PACKET)
		abort();
	if (it.full || it.nflying == MOST)
		return -EAGAIN;
	see(k->bytes, k->len);
	if (k->len > COPIED)
		it.flying[it.nflying++] = k;
	return 0;
}

static int start_read(void *link, void *way, struct rdma_read *r)
{
	(void)link;
	if (!way)
		abort();
	if (it.full || it.nreading == MOST)
		return -EAGAIN;
	it.reading[it.nreading++] = r;
	return 0;
}

static unsigned int look(void *link)
{
	(void)link;
	return 0;
}

static bool quit(void *link)
{
	(void)link;
	return true;
}

static const struct rdma_link fake = { .name = "fake",
				       .reach = reach,
				       .leave = leave,
				       .own_address = own_address,
				       .send = send_packet,
				       .read = start_read,
				       .poll = look,
				       .quit = quit };

/* The last read is over. A peer that was given up does not write any more. */
static void end_read(enum rdma_end end)
{
	struct rdma_read *r = it.reading[--it.nreading];

	if (r->body->peer)
		memset(r->to, 7, r->len);
	rdma_moved(&it.d, r, end, "broken");
}

static void end_packet(enum rdma_end end)
{
	struct rdma_packet *k = it.flying[--it.nflying];

	see(k->bytes, k->len);
	rdma_sent(&it.d, k, end, "broken");
}

/* ---- nal/net --------------------------------------------------------------------------------- */

const char *net_begin(struct net *n, const struct net_carrier *c, const char *name, int fd)
{
	(void)name;
	(void)fd;
	n->carrier = it.carrier = c;
	return NULL;
}

void net_stop(struct net *n)
{
	n->carrier->destroy(n);
}

void net_keys_make(struct net_keys *k, const void *secret, size_t len)
{
	(void)k;
	see(secret, len);
}

void net_tag(const struct net_keys *k, const uint8_t *head, size_t head_len,
	     const struct iovec *body, int pieces, uint8_t tag[NET_TAG_BYTES])
{
	(void)k;
	(void)head;
	(void)head_len;
	(void)body;
	(void)pieces;
	memset(tag, 0, NET_TAG_BYTES);
}

void net_read_clock(struct net *n)
{
	n->now = it.now;
	n->now_read = true;
}

void net_up(void *user, uint32_t number, const struct net_who *who)
{
	(void)user;
	(void)number;
	(void)who;
}

void net_peer_failed(struct net *n, uint32_t number, enum net_status s, const char *why)
{
	(void)n;
	(void)number;
	(void)s;
	(void)why;
}

bool net_failover(void *user, uint32_t number, const struct net_out *o)
{
	(void)user;
	(void)number;
	(void)o;
	return false;
}

/* Memory without an address lies in segments. */
int net_segments(void *user, void *cookie, uint64_t offset, uint64_t len, struct iovec *iov,
		 int max)
{
	(void)user;
	(void)max;
	iov->iov_base = (uint8_t *)cookie + offset;
	iov->iov_len = SEGMENT - offset % SEGMENT < len ? SEGMENT - offset % SEGMENT : len;
	return 1;
}

enum net_verdict net_deliver(void *user, uint32_t number, const struct net_in *in,
			     struct net_delivery *l)
{
	const uint64_t len = in->body_len < LONG ? in->body_len : LONG;

	(void)user;
	(void)number;
	see(in->header, in->header_len);
	if (in->body)
		see(in->body, in->body_len);
	if (it.verdict != NET_PULL || in->body || !len)
		return it.verdict == NET_PULL ? NET_DONE : it.verdict;
	for (uint32_t i = 0; i < LANDINGS; i++) {
		if (it.delivery[i].bytes)
			continue;
		it.delivery[i].bytes = malloc(len);
		it.delivery[i].len = len;
		if (!it.delivery[i].bytes)
			abort();
		it.pulled++;
		*l = (struct net_delivery){ .length = len, .cookie = &it.delivery[i] };
		if (it.scattered)
			l->mem.cookie = it.delivery[i].bytes;
		else
			l->mem.base = it.delivery[i].bytes;
		return NET_PULL;
	}
	return NET_DROP;
}

/* A delivery is not given back while a read may still write to it, but after the time for that. */
static void reads_are_over(const uint8_t *bytes, uint64_t len)
{
	for (uint32_t i = 0; i < it.nreading; i++) {
		const uint8_t *to = it.reading[i]->to;

		if (to >= bytes && to < bytes + len && it.now - it.d.peer[0]->since < it.d.dead_ns)
			abort();
	}
}

void net_delivered(void *user, uint32_t number, void *cookie, enum net_status s)
{
	const size_t i = (size_t)((char *)cookie - (char *)it.delivery) / sizeof(it.delivery[0]);

	(void)user;
	(void)number;
	(void)s;
	if (i >= LANDINGS || !it.delivery[i].bytes)
		abort();
	reads_are_over(it.delivery[i].bytes, it.delivery[i].len);
	it.landed++;
	free(it.delivery[i].bytes);
	it.delivery[i].bytes = NULL;
}

void net_sent(void *user, uint32_t number, void *cookie, uint64_t length, enum net_status s)
{
	(void)user;
	(void)number;
	(void)s;
	if (cookie != &it || length > LONG)
		abort();
	it.told++;
}

/* ---- registered memory ----------------------------------------------------------------------- */

int rdma_reg(struct rdma *d, void *base, size_t len, enum rdma_use use, struct rdma_mr *mr)
{
	(void)d;
	(void)len;
	(void)use;
	*mr = (struct rdma_mr){ .handle = base, .addr = 1, .key = 2 };
	return 0;
}

int rdma_reg_body(struct rdma *d, const struct net_span *span, void *base, size_t len,
		  enum rdma_use use, struct rdma_mr *mr)
{
	(void)span;
	return rdma_reg(d, base, len, use, mr);
}

void rdma_unreg(struct rdma *d, struct rdma_mr *mr)
{
	(void)d;
	mr->handle = NULL;
}

bool rdma_reg_check(struct rdma *d)
{
	(void)d;
	return false;
}

void rdma_reg_free(struct rdma *d)
{
	(void)d;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void run(void)
{
	net_read_clock(&it.d.net);
	it.d.net.listened = it.now; /* packets are given to the machine as they come */
	it.carrier->run(&it.d.net);
}

static void send_one(uint32_t len, bool copy)
{
	const struct net_out o = { .header = "fuzz",
				   .header_len = 4,
				   .body.base = len % 3 ? it.source : NULL,
				   .body.cookie = it.source,
				   .body_len = len,
				   .copy = copy,
				   .cookie = copy ? NULL : &it };

	if (copy && len > NET_COPY_MAX)
		return;
	it.sent += it.carrier->send(&it.d.net, 0, &o) == 0 && !copy;
}

/* A greeting as it should be, but for what `say` changes. */
static uint32_t greet(uint8_t *to, uint8_t kind, uint8_t say)
{
	const struct rdma_peer *p = it.d.peer[0];
	const struct rdma_msg m = { .kind = kind,
				    .from = p->who.id,
				    .whom = net_id(it.ni.id),
				    .incarnation = 1 + (say >> 1 & 1),
				    .own_token = 1 + (say & 1),
				    .greeting = p->greeting,
				    .number = 3,
				    .allowed = say >> 2 & 15 };

	return rdma_encode(to, &m);
}

/* The word and bytes of a headerless packet of the peer's; likewise. */
static void give_bare(const uint8_t *data, uint32_t len, bool right)
{
	const struct rdma_peer *p = it.d.peer[0];
	const uint32_t before = right ? 2 : 8;
	uint64_t word;
	uint8_t *bytes;

	if (len < before)
		return;
	word = right ? rdma_word(0, (uint16_t)(p->seq_in + 1u + (data[0] >> 6)),
				 (uint16_t)(p->its_consumed + (data[1] & 3u)), p->own_token)
		     : base_get64(data);
	bytes = malloc(len - before);
	if (!bytes)
		abort();
	memcpy(bytes, data + before, len - before);
	rdma_arrived_headerless(&it.d, data[0] & 1 ? p->path : NULL, word, bytes, len - before);
	free(bytes);
}

/* A packet of the peer's, in memory of its length; right is what would else be dropped at once,
 * if that is wanted. */
static void give(const uint8_t *data, uint32_t len, bool right)
{
	const struct rdma_peer *p = it.d.peer[0];
	uint8_t head[RDMA_HELLO_MAX] = { 0 }, *packet;
	const uint8_t kind = data[0] & 15;
	uint32_t before = 0;

	if (!kind) {
		give_bare(data + 1, len - 1, right);
		return;
	}
	if (right && (kind == RDMA_HELLO || kind == RDMA_WELCOME)) {
		before = greet(head, kind, len > 1 ? data[1] : 0);
		len = 0;
	}
	packet = malloc(before + len);
	if (!packet)
		abort();
	memcpy(packet, head, before);
	memcpy(packet + before, data, len);
	if (right && len >= sizeof(struct rdma_wire_head)) {
		struct rdma_wire_head *w = (void *)packet;

		w->what = (uint8_t)(RDMA_VERSION << 4 | kind);
		base_put16(w->to, 0);
		base_put16(w->seq, p->seq_in + 1u + (data[4] >> 6));
		base_put16(w->consumed, p->its_consumed + (data[6] & 3u));
		base_put64(w->token, p->own_token);
	}
	rdma_arrived(&it.d, NULL, packet, before + len);
	free(packet);
}

static void step(uint8_t what)
{
	const uint8_t more = what >> 3;
	const enum rdma_end ends[] = { RDMA_OK, RDMA_OK, RDMA_FAILED, RDMA_BROKEN };

	switch (what & 7) {
	case VERDICT:
		it.verdict = more & 3 ? NET_PULL : more & 4 ? NET_LATER : NET_DROP;
		it.scattered = more & 8;
		if (it.verdict != NET_LATER)
			it.carrier->resume(&it.d.net, 0);
		break;
	case ROOM:
		it.full = more & 1;
		break;
	case READ:
		if (it.nreading)
			end_read(ends[more & 3]);
		break;
	case PACKET_OUT:
		if (it.nflying)
			end_packet(more & 7 ? RDMA_OK : RDMA_BROKEN);
		break;
	case SEND:
		send_one(more * 370u, what & 8);
		break;
	case TIME:
		it.now += more * 100000000ull;
		break;
	}
	run();
}

static void open_machine(bool any_order, bool bare)
{
	const struct rdma_limits limits = { .packet = PACKET,
					    .copied = COPIED,
					    .credit = 8,
					    .eager = 4096,
					    .read = 3000,
					    .reads = 2,
					    .local_mr = true,
					    .any_order = any_order,
					    .frame = bare ? PACKET : 0 };
	static const struct nal_job job = { .secret_len = 16 };
	uint8_t head[RDMA_HELLO_MAX];

	memset(&it, 0, sizeof(it));
	it.verdict = NET_PULL;
	it.now = 1000000000;
	it.ni.id.pid = 1;
	if (rdma_start(&it.d, &it.ni, NULL, &fake, &it, &limits, &job, -1))
		abort();
	it.carrier->connect(&it.d.net, 2);
	send_one(LONG, false);
	rdma_arrived(&it.d, NULL, head, greet(head, RDMA_WELCOME, 0xff));
	run();
	if (it.d.peer[0]->state != RDMA_UP)
		abort();
}

/* The link breaks, and nobody answers any more. */
static void wait_for_the_end(void)
{
	it.full = false;
	while (it.nreading)
		end_read(RDMA_BROKEN);
	for (int rounds = 0; it.nflying || it.carrier->wake(&it.d.net) != NET_NEVER; rounds++) {
		uint64_t wake;

		if (rounds > 5000)
			abort();
		while (it.nflying)
			end_packet(RDMA_BROKEN);
		wake = it.carrier->wake(&it.d.net);
		it.now = wake != NET_NEVER && wake > it.now ? wake : it.now;
		run();
	}
	if (it.told != it.sent || it.landed != it.pulled || it.carrier->unfinished(&it.d.net))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	open_machine(data[0] & 1, data[0] & 2);
	for (size_t at = 1; at < size;) {
		const uint8_t what = data[at++];
		size_t len;

		if ((what & 7) < PACKET_IN) {
			step(what);
			continue;
		}
		if (at + 1 >= size)
			break;
		len = data[at++];
		len = len < size - at ? len : size - at;
		if (!len)
			continue;
		give(data + at, (uint32_t)len, (what & 7) == PACKET_IN);
		run();
		at += len;
	}
	wait_for_the_end();
	rdma_stop(&it.d);
	return 0;
}
