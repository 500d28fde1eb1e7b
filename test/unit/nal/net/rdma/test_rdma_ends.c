/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ends of long messages that were held back go before anything else to the sender of those
 * messages. They go in the order of the packets' numbers, also where the link has no room, and
 * before the BYE of an interface that closes. A packet that the link had no room for goes when it
 * has some again, though nothing arrives. When an interface closes, its link does before memory is
 * unregistered, if it can. The link, the peers and nal/net are stubs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "nal/net/rdma/rdma.h"
#include "portals/engine/ni.h"

enum { MANY = 64, SMALL = 65536, MOST = 32 };

static struct rdma d;
static struct rdma_peer peer, *peers[] = { &peer };
static struct ptl_ni interface;
static const struct net_carrier *carrier;
static struct rdma_read *reads[MANY];
static uint32_t nreads, npackets;
static bool refuses;                 /* the link takes nothing any more */
static bool full;                    /* the link has no room */
static const char *said;             /* of why a connection broke */
static uint32_t looks;               /* until it has some again; 0: it stays as it is */
static struct rdma_packet *last_one; /* the last one, until there is room again */
static int clings; /* it does not close while memory is registered (1), or at all (2) */
static uint32_t quits, registered, at_first; /* at_first: registered when it was first to close */
static struct {
	uint8_t kind;
	uint32_t ends; /* that it tells of */
	bool last;
} packet[MOST];

static struct {
	uint8_t header, first;
	uint64_t len;
	bool copy;
	void *cookie;
} passed[MOST];
static uint32_t npassed, takes, nfailed;

/* ---- the link -------------------------------------------------------------------------------- */

static int link_send(void *link, void *way, struct rdma_packet *k)
{
	struct rdma_msg m;

	(void)link;
	(void)way;
	if (refuses)
		return -ENETDOWN;
	if (full)
		return -EAGAIN;
	assert_true(npackets < MOST);
	assert_int_equal(rdma_decode(k->bytes, k->len, &m), 0);
	assert_int_equal(m.seq, npackets + 1);
	packet[npackets].kind = m.kind;
	packet[npackets].ends = m.kind == RDMA_OVER ? 1 + m.nmore : 0;
	packet[npackets++].last = k->last;
	if (k->last && d.limits.ends_last)
		last_one = k;
	return 0;
}

static int link_read(void *link, void *way, struct rdma_read *r)
{
	(void)link;
	(void)way;
	if (refuses)
		return -ENETDOWN;
	reads[nreads++] = r;
	return 0;
}

static const char *link_error(void *link, int err)
{
	(void)link;
	return err == -ENETDOWN ? "the cable is out" : "no idea";
}

static unsigned int link_poll(void *link)
{
	(void)link;
	if (looks && !--looks) {
		full = false;
		if (last_one)
			rdma_sent(&d, last_one, RDMA_OK, NULL);
		last_one = NULL;
	}
	return 0;
}

static bool link_quit(void *link)
{
	(void)link;
	quits++;
	at_first = quits == 1 ? registered : at_first;
	return !clings || (clings == 1 && !registered);
}

static const struct rdma_link fake = { .name = "fake",
				       .send = link_send,
				       .read = link_read,
				       .error = link_error,
				       .poll = link_poll,
				       .quit = link_quit };

/* ---- other stubs ----------------------------------------------------------------------------- */

const char *net_begin(struct net *n, const struct net_carrier *c, const char *name, int fd)
{
	(void)name;
	(void)fd;
	carrier = n->carrier = c;
	return NULL;
}

void net_stop(struct net *n)
{
	n->carrier->goodbye(n);
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

int net_segments(void *user, void *cookie, uint64_t offset, uint64_t len, struct iovec *iov,
		 int max)
{
	(void)user;
	(void)cookie;
	(void)offset;
	(void)len;
	(void)iov;
	(void)max;
	return 0;
}

void net_delivered(void *user, uint32_t number, void *cookie, enum net_status s)
{
	(void)user;
	(void)number;
	(void)cookie;
	(void)s;
}

void net_sent(void *user, uint32_t number, void *cookie, uint64_t length, enum net_status s)
{
	(void)user;
	(void)number;
	(void)cookie;
	(void)length;
	assert_true(s == NET_UNREACHABLE || s == NET_ENDED);
	nfailed++;
}

/* Takes back the first `takes` of those that it is offered. */
bool net_failover(void *user, uint32_t number, const struct net_out *o)
{
	assert_ptr_equal(user, &d);
	assert_int_equal(number, 0);
	if (npassed == takes)
		return false;
	assert_int_equal(o->header_len, 1);
	passed[npassed].header = *(const uint8_t *)o->header;
	passed[npassed].first = o->body_len ? *(const uint8_t *)o->body.base : 0;
	passed[npassed].len = o->body_len;
	passed[npassed].copy = o->copy;
	passed[npassed++].cookie = o->cookie;
	return true;
}

void rdma_break(struct rdma *rdma, struct rdma_peer *p, enum net_status s, const char *why)
{
	(void)rdma;
	said = why;
	p->failure = s;
}

void rdma_busy(struct rdma *rdma, struct rdma_peer *p)
{
	rdma->busy = rdma->busy_end = p; /* there is but one */
}

void rdma_await(struct rdma *rdma, struct rdma_peer *p)
{
	(void)rdma;
	(void)p;
}

void rdma_call(struct rdma *rdma, struct rdma_peer *p)
{
	(void)rdma;
	(void)p;
}

void rdma_check(struct rdma *rdma)
{
	(void)rdma;
}

void rdma_peer_fail(struct rdma *rdma, struct rdma_peer *p)
{
	(void)rdma;
	(void)p;
}

struct rdma_peer *rdma_peer_find(const struct rdma *rdma, net_id_t id)
{
	(void)rdma;
	(void)id;
	return NULL;
}

struct rdma_peer *rdma_peer_add(struct rdma *rdma, net_id_t id)
{
	(void)rdma;
	(void)id;
	return NULL;
}

void rdma_peers_free(struct rdma *rdma)
{
	(void)rdma;
}

void rdma_take_late(struct rdma *rdma, struct rdma_peer *p)
{
	(void)rdma;
	(void)p;
}

int rdma_reg(struct rdma *rdma, void *base, size_t len, enum rdma_use use, struct rdma_mr *mr)
{
	(void)rdma;
	(void)base;
	(void)len;
	(void)use;
	mr->handle = &registered;
	registered++;
	return 0;
}

int rdma_reg_body(struct rdma *rdma, const struct net_span *span, void *base, size_t len,
		  enum rdma_use use, struct rdma_mr *mr)
{
	(void)span;
	return rdma_reg(rdma, base, len, use, mr);
}

void rdma_unreg(struct rdma *rdma, struct rdma_mr *mr)
{
	(void)rdma;
	registered -= mr->handle != NULL;
	mr->handle = NULL;
}

void rdma_reg_free(struct rdma *rdma)
{
	(void)rdma;
}

/* ---- help ------------------------------------------------------------------------------------ */

/* A machine whose link wants packets' memory registered, or does not. */
static void begin(bool local_mr)
{
	const struct rdma_limits limits = {
		.packet = 16384, .copied = 1024, .read = SMALL, .local_mr = local_mr
	};
	static const struct nal_job job = { .secret_len = 16 };

	memset(&d, 0, sizeof(d));
	memset(&peer, 0, sizeof(peer));
	full = refuses = false;
	said = NULL;
	nreads = npackets = looks = npassed = takes = nfailed = quits = registered = 0;
	clings = 0;
	assert_null(rdma_start(&d, &interface, NULL, &fake, NULL, &limits, &job, -1));
	d.peer = peers;
	d.npeers = 1;
	peer.state = RDMA_UP;
	peer.path = &peer;
	peer.allowed = MANY;
}

static int set_up(void **state)
{
	(void)state;
	begin(false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	peer.state = RDMA_IDLE;
	rdma_stop(&d);
	return 0;
}

/* Of so many long messages a peer has been told that they are over, and of `held` it has not
 * yet. */
static void hold_back(uint32_t held)
{
	static char somewhere; /* nothing is read, in truth */
	struct rdma_msg m = { .kind = RDMA_LONG, .readable = true, .length = SMALL };
	struct net_delivery l = { .mem.base = &somewhere, .length = SMALL };

	for (m.id = 0; m.id < MANY; m.id++)
		rdma_fetch(&d, &peer, &m, &l);
	for (uint32_t i = 0; i < held; i++)
		rdma_moved(&d, reads[i], RDMA_OK, NULL);
	assert_int_equal(npackets, 0);
	assert_int_equal(peer.novers, held);
}

static void put(uint64_t len)
{
	static char bytes[SMALL];
	struct net_out o = { .header = "", .header_len = 1, .body.base = bytes, .body_len = len };

	assert_int_equal(rdma_send(&d.net, 0, &o), 0);
	rdma_push(&d, &peer);
}

/* The first packet told of so many ends, the second is of this kind, and there is no other. */
static void ends_then(uint32_t ends, uint8_t kind)
{
	assert_int_equal(npackets, 2);
	assert_int_equal(packet[0].kind, RDMA_OVER);
	assert_int_equal(packet[0].ends, ends);
	assert_int_equal(packet[1].kind, kind);
	assert_int_equal(peer.novers, 0);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void what_the_link_says_of_an_error_is_kept(void **state)
{
	(void)state;
	refuses = true;
	put(8);
	assert_int_equal(peer.failure, NET_DEAD);
	assert_string_equal(said, "the cable is out");
}

static void of_a_read_too(void **state)
{
	(void)state;
	refuses = true;
	hold_back(0);
	assert_int_equal(peer.failure, NET_DEAD);
	assert_string_equal(said, "the cable is out");
}

static void or_what_it_means_by_errno(void **state)
{
	struct rdma_link mute = fake;

	(void)state;
	mute.error = NULL;
	d.link = &mute;
	refuses = true;
	put(8);
	assert_string_equal(said, strerror(ENETDOWN));
	d.link = &fake;
}

static void a_short_message_goes_behind_them(void **state)
{
	(void)state;
	hold_back(3);
	put(8);
	ends_then(3, RDMA_SHORT);
}

/* ... one that is too long to be copied by the link, too. */
static void so_does_one_in_memory_of_a_packet(void **state)
{
	(void)state;
	hold_back(3);
	put(4096);
	ends_then(3, RDMA_SHORT);
}

static void so_does_a_long_one(void **state)
{
	(void)state;
	hold_back(2);
	put(SMALL);
	ends_then(2, RDMA_LONG);
}

static void so_does_what_is_asked_for_in_pieces(void **state)
{
	(void)state;
	put(SMALL);
	npackets = 0;
	peer.seq_out = 0;
	hold_back(2);
	rdma_want_segments(&d, rdma_long(&d, &peer, 0), 100);
	rdma_push(&d, &peer);
	ends_then(2, RDMA_SEGMENT);
}

static void so_does_a_sign_of_life(void **state)
{
	(void)state;
	hold_back(1);
	peer.want_note = true;
	rdma_push(&d, &peer);
	ends_then(1, RDMA_NOTE);
}

static void nothing_passes_them_where_the_link_has_no_room(void **state)
{
	(void)state;
	hold_back(3);
	full = true;
	put(8);
	put(4096);
	assert_int_equal(npackets, 0);
	full = false;
	rdma_push(&d, &peer);
	assert_int_equal(npackets, 3);
	assert_int_equal(packet[0].kind, RDMA_OVER);
	assert_int_equal(packet[0].ends, 3);
	assert_int_equal(packet[1].kind, RDMA_SHORT);
	assert_int_equal(packet[2].kind, RDMA_SHORT);
}

static void who_closes_tells_of_them_first(void **state)
{
	(void)state;
	hold_back(3);
	carrier->goodbye(&d.net);
	ends_then(3, RDMA_BYE);
	assert_false(packet[0].last);
	assert_true(packet[1].last);
}

/* ... also where the link has room only later. */
static void and_waits_for_room(void **state)
{
	(void)state;
	hold_back(3);
	full = true;
	put(8);
	looks = 3;
	carrier->goodbye(&d.net);
	assert_int_equal(npackets, 3);
	assert_int_equal(packet[0].kind, RDMA_OVER);
	assert_int_equal(packet[1].kind, RDMA_SHORT);
	assert_int_equal(packet[2].kind, RDMA_BYE);
	assert_false(packet[1].last);
	assert_true(packet[2].last);
}

static void and_for_its_arrival_if_that_is_told(void **state)
{
	(void)state;
	d.limits.ends_last = true;
	looks = 5;
	carrier->goodbye(&d.net);
	assert_int_equal(packet[0].kind, RDMA_BYE);
	assert_int_equal(looks, 0);
	assert_int_equal(peer.flying, 0);
}

static void what_found_no_room_goes_soon_after_there_is_some(void **state)
{
	(void)state;
	d.net.now_read = true;
	d.net.now = 1000;
	full = true;
	put(8);
	carrier->run(&d.net);
	assert_int_equal(npackets, 0);
	assert_in_range(carrier->wake(&d.net), 1001, 1000000);
	/* time passes, and nothing arrives */
	full = false;
	d.net.now = carrier->wake(&d.net);
	assert_true(carrier->wake(&d.net) <= d.net.now);
	carrier->run(&d.net);
	assert_int_equal(npackets, 1);
	assert_true(carrier->wake(&d.net) == NET_NEVER);
}

/* To a peer that was never reached, the cookie being the place of its header; `copy`, its body
 * is gone afterwards. */
static void give(char *header, uint64_t len, bool copy)
{
	static char all[4][SMALL];
	char *bytes = all[*header - 'a'];
	struct net_out o = { .header = header,
			     .header_len = 1,
			     .body.base = bytes,
			     .body_len = len,
			     .copy = copy,
			     .cookie = copy ? NULL : header };

	memset(bytes, *header, SMALL);
	assert_int_equal(rdma_send(&d.net, 0, &o), 0);
	if (copy)
		memset(bytes, 0, SMALL);
}

static void what_was_never_sent_can_be_taken_back_in_its_order(void **state)
{
	static char headers[] = "abcd";
	static const uint64_t lens[] = { 8, 0, SMALL, 4096 };

	(void)state;
	peer.state = RDMA_CALLING;
	for (int i = 0; i < 4; i++)
		give(headers + i, lens[i], i == 0);
	takes = 3;
	rdma_outs_end(&d, &peer, NET_UNREACHABLE);
	assert_int_equal(npassed, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(passed[i].header, headers[i]);
		assert_int_equal(passed[i].first, lens[i] ? headers[i] : 0);
		assert_int_equal(passed[i].len, lens[i]);
		assert_true(passed[i].copy == (i == 0));
		assert_ptr_equal(passed[i].cookie, i ? headers + i : NULL);
	}
	assert_int_equal(nfailed, 1);
	assert_null(peer.queue);
}

/* Memory is registered for packets, for a body that is sent, and for those that come. */
static void under_way(void)
{
	begin(true);
	hold_back(0);
	put(SMALL);
	assert_true(registered > 2);
}

static void a_link_closes_before_memory_is_unregistered(void **state)
{
	(void)state;
	under_way();
	rdma_stop(&d);
	assert_int_equal(quits, 1);
	assert_true(at_first > 2);
	assert_int_equal(registered, 0);
}

static void one_that_cannot_closes_after_it(void **state)
{
	(void)state;
	under_way();
	clings = 1;
	rdma_stop(&d);
	assert_int_equal(quits, 2);
	assert_int_equal(registered, 0);
	assert_null(peer.bodies);
}

static void one_that_does_not_close_keeps_what_it_was_given(void **state)
{
	(void)state;
	under_way();
	clings = 2;
	rdma_stop(&d);
	assert_int_equal(quits, 2);
	assert_int_equal(registered, 0);
	/* it may still look at these */
	assert_non_null(d.slabs);
	assert_non_null(d.all_reads);
	rdma_outs_free(&d);
	rdma_bodies_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_short_message_goes_behind_them, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(so_does_one_in_memory_of_a_packet, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(so_does_a_long_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_never_sent_can_be_taken_back_in_its_order,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(so_does_what_is_asked_for_in_pieces, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(so_does_a_sign_of_life, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_passes_them_where_the_link_has_no_room,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_closes_tells_of_them_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(and_for_its_arrival_if_that_is_told, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(and_waits_for_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_found_no_room_goes_soon_after_there_is_some,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_the_link_says_of_an_error_is_kept, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(of_a_read_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(or_what_it_means_by_errno, set_up, tear_down),
		cmocka_unit_test(a_link_closes_before_memory_is_unregistered),
		cmocka_unit_test(one_that_cannot_closes_after_it),
		cmocka_unit_test(one_that_does_not_close_keeps_what_it_was_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
