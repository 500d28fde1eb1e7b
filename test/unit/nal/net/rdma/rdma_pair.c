/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See rdma_pair.h.
 */
#undef malloc /* theirs is scarce_malloc */
#include "rdma_pair.h"

#include "portals/engine/ni.h"

struct side from, to;
static struct ptl_ni interface;

struct wire wire[MOST];
uint32_t nwire, taken, room, nflying;
struct rdma_packet *flying[MOST];

uint8_t source[EAGER + 1], delivery[EAGER + 1];
char header[HEADER + 1], heard[MOST][HEADER];
enum net_verdict verdict;
uint64_t wanted, delivered, gone, looked;
uint32_t ndelivered, nlanded, nsent;
enum net_status how;
bool answers, scattered, unregistered;
size_t scarce;

/* ---- memory ---------------------------------------------------------------------------------- */

void *scarce_malloc(size_t bytes);

void *scarce_malloc(size_t bytes)
{
	return scarce && bytes >= scarce ? NULL : malloc(bytes);
}

/* ---- the link -------------------------------------------------------------------------------- */

static int link_send(void *link, void *way, struct rdma_packet *k)
{
	struct rdma_msg m;

	(void)way;
	if (link != &from) {
		if (answers)
			rdma_arrived(&from.d, &from, k->bytes, k->len);
		return 0;
	}
	if (!room)
		return -EAGAIN;
	room--;
	assert_true(nwire < MOST);
	assert_in_range(k->len, 1, PACKET);
	memcpy(wire[nwire].bytes, k->bytes, k->len);
	wire[nwire].len = k->len;
	wire[nwire].headerless = k->headerless;
	wire[nwire].word = k->word;
	m.kind = RDMA_MORE;
	if (!k->headerless)
		assert_int_equal(rdma_decode(k->bytes, k->len, &m), 0);
	wire[nwire++].kind = m.kind;
	if (k->len > from.d.limits.copied)
		flying[nflying++] = k;
	return 0;
}

void sent(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		rdma_sent(&from.d, flying[i], RDMA_OK, NULL);
	nflying -= n;
	memmove(flying, flying + n, nflying * sizeof(*flying));
}

static unsigned int link_poll(void *link)
{
	(void)link;
	return 0;
}

static bool link_quit(void *link)
{
	(void)link;
	return true;
}

static const struct rdma_link fake = {
	.name = "fake", .send = link_send, .poll = link_poll, .quit = link_quit
};

/* ---- other stubs ----------------------------------------------------------------------------- */

const char *net_begin(struct net *n, const struct net_carrier *c, const char *name, int fd)
{
	(void)name;
	(void)fd;
	n->carrier = ((struct side *)n)->carrier = c;
	return NULL;
}

void net_stop(struct net *n)
{
	n->carrier->destroy(n);
}

void net_keys_make(struct net_keys *k, const void *secret, size_t len)
{
	(void)k;
	(void)secret;
	(void)len;
}

void net_tag(const struct net_keys *k, const uint8_t *head, size_t head_len,
	     const struct iovec *body, int pieces, uint8_t tag[NET_TAG_BYTES])
{
	(void)k;
	(void)head;
	(void)head_len;
	(void)body;
	(void)pieces;
	(void)tag;
}

void net_read_clock(struct net *n)
{
	(void)n;
}

/* Where memory has no address it is in segments of 100 bytes. */
int net_segments(void *user, void *cookie, uint64_t offset, uint64_t len, struct iovec *iov,
		 int max)
{
	(void)user;
	(void)max;
	if (gone && offset >= gone)
		return 0;
	iov->iov_base = (uint8_t *)cookie + offset;
	iov->iov_len = 100 - offset % 100 < len ? 100 - offset % 100 : len;
	looked += iov->iov_len;
	return 1;
}

enum net_verdict net_deliver(void *user, uint32_t number, const struct net_in *in,
			     struct net_delivery *l)
{
	assert_ptr_equal(user, &to);
	assert_int_equal(number, 0);
	if (verdict == NET_LATER)
		return verdict;
	ndelivered++;
	delivered = in->body_len;
	assert_int_equal(in->header_len, HEADER);
	assert_in_range(ndelivered, 1, MOST);
	memcpy(heard[ndelivered - 1], in->header, HEADER);
	if (in->body) {
		memcpy(delivery, in->body, verdict == NET_PULL ? in->body_len : 0);
		return NET_DONE;
	}
	if (verdict == NET_PULL)
		*l = (struct net_delivery){ .mem.base = scattered ? NULL : delivery,
					    .mem.cookie = delivery,
					    .length = wanted,
					    .cookie = (void *)COOKIE };
	return verdict;
}

void net_delivered(void *user, uint32_t number, void *cookie, enum net_status s)
{
	assert_ptr_equal(user, &to);
	assert_int_equal(number, 0);
	assert_ptr_equal(cookie, (void *)COOKIE);
	nlanded++;
	how = s;
}

void net_sent(void *user, uint32_t number, void *cookie, uint64_t length, enum net_status s)
{
	assert_ptr_equal(user, &from);
	assert_ptr_equal(cookie, (void *)COOKIE);
	(void)number;
	(void)length;
	nsent++;
	how = s;
}

bool net_failover(void *user, uint32_t number, const struct net_out *o)
{
	(void)user;
	(void)number;
	(void)o;
	return false;
}

void rdma_break(struct rdma *d, struct rdma_peer *p, enum net_status s, const char *why)
{
	(void)why;
	p->failure = s;
	rdma_busy(d, p);
}

void rdma_busy(struct rdma *d, struct rdma_peer *p)
{
	d->busy = d->busy_end = p; /* there is but one */
}

void rdma_peer_fail(struct rdma *d, struct rdma_peer *p)
{
	p->state = RDMA_IDLE;
	rdma_late_free(p);
	rdma_outs_end(d, p, p->failure);
	rdma_bodies_end(d, p, p->failure);
}

void rdma_await(struct rdma *d, struct rdma_peer *p)
{
	(void)d;
	p->awaited = p->coming.len || p->bodies;
}

void rdma_call(struct rdma *d, struct rdma_peer *p)
{
	(void)d;
	(void)p;
}

void rdma_check(struct rdma *d)
{
	(void)d;
}

void rdma_greeted(struct rdma *d, const struct rdma_msg *m, const void *packet, size_t len)
{
	(void)d;
	(void)m;
	(void)packet;
	(void)len;
}

struct rdma_peer *rdma_peer_find(const struct rdma *d, net_id_t id)
{
	(void)d;
	(void)id;
	return NULL;
}

struct rdma_peer *rdma_peer_add(struct rdma *d, net_id_t id)
{
	(void)d;
	(void)id;
	return NULL;
}

void rdma_peers_free(struct rdma *d)
{
	rdma_late_free(d->peer[0]);
}

int rdma_reg(struct rdma *d, void *base, size_t len, enum rdma_use use, struct rdma_mr *mr)
{
	(void)d;
	(void)base;
	(void)len;
	(void)use;
	(void)mr;
	return unregistered ? -ENOMEM : 0;
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
	(void)mr;
}

void rdma_reg_free(struct rdma *d)
{
	(void)d;
}

/* ---- help ------------------------------------------------------------------------------------ */

static void make(struct side *s, uint32_t copied)
{
	const struct rdma_limits limits = { .packet = PACKET,
					    .copied = copied,
					    .credit = CREDIT,
					    .eager = EAGER,
					    .local_mr = copied < PACKET };
	static const struct nal_job job = { .secret_len = 16 };

	memset(s, 0, sizeof(*s));
	assert_null(rdma_start(&s->d, &interface, NULL, &fake, s, &limits, &job, -1));
	s->peers = &s->peer;
	s->d.peer = &s->peers;
	s->d.npeers = 1;
	s->peer.state = RDMA_UP;
	s->peer.path = s;
	s->peer.token = s->peer.own_token = TOKEN;
	s->peer.allowed = CREDIT;
}

int set_up(void **state)
{
	(void)state;
	scarce = 0;
	unregistered = scattered = answers = false;
	gone = looked = 0;
	make(&from, PACKET);
	make(&to, PACKET);
	nwire = taken = ndelivered = nlanded = nsent = nflying = 0;
	room = MOST;
	verdict = NET_PULL;
	wanted = EAGER;
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)(i * 7 + i / 251 + 1);
	memset(delivery, 0, sizeof(delivery));
	memcpy(header, "abc", sizeof(header));
	return 0;
}

int set_up_not_copied(void **state)
{
	set_up(state);
	rdma_stop(&from.d);
	make(&from, COPIED);
	return 0;
}

int tear_down(void **state)
{
	(void)state;
	rdma_stop(&from.d);
	rdma_stop(&to.d);
	return 0;
}

int try_put(uint64_t len, void *cookie)
{
	struct net_out o = { .header = header,
			     .header_len = HEADER,
			     .body.base = source,
			     .body_len = len,
			     .copy = !cookie,
			     .cookie = cookie };

	return rdma_send(&from.d.net, 0, &o);
}

void put(uint64_t len, void *cookie)
{
	assert_int_equal(try_put(len, cookie), 0);
}

void take_one(uint32_t i)
{
	if (wire[i].headerless)
		rdma_arrived_headerless(&to.d, NULL, wire[i].word, wire[i].bytes, wire[i].len);
	else
		rdma_arrived(&to.d, NULL, wire[i].bytes, wire[i].len);
}

void take(uint32_t n)
{
	for (; n && taken < nwire; n--)
		take_one(taken++);
}

void credit(void)
{
	from.peer.its_consumed = to.peer.consumed;
	rdma_busy(&from.d, &from.peer);
	from.carrier->run(&from.d.net);
}

void landed(uint64_t len)
{
	uint8_t want[sizeof(source)] = { 0 };

	for (size_t i = 0; i < len; i++)
		want[i] = (uint8_t)(i * 7 + i / 251 + 1);
	assert_memory_equal(delivery, want, sizeof(want));
	assert_memory_equal(heard[ndelivered - 1], header, HEADER);
}

void say(uint8_t kind, uint64_t length, uint32_t bytes)
{
	struct rdma_msg m = {
		.kind = kind, .token = TOKEN, .length = length, .header_len = HEADER
	};
	uint8_t packet[PACKET] = { 0 };
	uint32_t len;

	m.seq = (uint16_t)(to.peer.seq_in + 1);
	len = rdma_encode(packet, &m);
	if (kind != RDMA_MORE) {
		memcpy(packet + len, header, HEADER);
		len += HEADER;
	}
	rdma_arrived(&to.d, NULL, packet, len + bytes);
}
