/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A request whose body does not arrive: its delivery ends, and who waits for an answer hears of
 * that, but where there is no connection any more. The carrier, the engine, and the rest of
 * nal/net are stubs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "nal/net/net.h"
#include "portals/engine/debug.h"

enum { PEER = 1, PEERS = 2, OP = 5, OP_GEN = 7, LONG = 8000 };

static struct ptl_ni ni;
static struct ptl_net slot;
static struct net_peer peers[PEERS];
static struct ptl_stat_peer stats[PEERS];
static struct net n;
static char memory[LONG];
static ptl_ni_fail_t ended_as;
static struct net_msg answer; /* the last one */
static unsigned int nanswers, nended;

/* ---- stubs ----------------------------------------------------------------------------------- */

static int take(struct net *net, uint32_t peer, const struct net_out *o)
{
	assert_ptr_equal(net, &n);
	assert_int_equal(peer, PEER);
	assert_int_equal(net_msg_decode(o->header, o->header_len, o->body_len, &answer), 0);
	nanswers++;
	return 0;
}

static const struct net_carrier carrier = { .send = take };

int ptl_engine_match(struct ptl_engine *e, const struct ptl_request *q, struct ptl_delivery *l)
{
	(void)e;
	*l = (struct ptl_delivery){ .kind = (uint8_t)q->kind,
				    .ack = q->ack,
				    .op = q->op,
				    .op_gen = q->op_gen,
				    .mlength = q->rlength,
				    .rlength = q->rlength };
	return 0;
}

void ptl_engine_done(struct ptl_engine *e, const struct ptl_delivery *l, ptl_ni_fail_t fail)
{
	(void)e;
	(void)l;
	ended_as = fail;
	nended++;
}

bool ptl_queues_behind(const struct ptl_ni *interface)
{
	(void)interface;
	return false;
}

void ptl_debug(const struct ptl_ni *interface, const char *format, ...)
{
	(void)interface;
	(void)format;
}

struct net_body *net_body_get(struct net *net, uint32_t peer)
{
	struct net_body *b = aligned_alloc(_Alignof(struct net_body), sizeof(*b));

	(void)net;
	assert_non_null(b);
	memset(b, 0, sizeof(*b));
	b->peer = peer;
	return b;
}

void net_body_put(struct net *net, struct net_body *b)
{
	(void)net;
	free(b);
}

struct net_mem net_mem(struct net *net, struct net_body *body)
{
	(void)net;
	(void)body;
	return (struct net_mem){ .base = memory };
}

struct net_mem net_mem_of(struct net *net, struct net_span *span)
{
	(void)net;
	(void)span;
	return (struct net_mem){ .base = memory };
}

void net_copy_in(struct net *net, const struct net_span *to, const void *from, uint64_t len)
{
	(void)net;
	(void)to;
	(void)from;
	(void)len;
}

void net_copy_out(struct net *net, void *to, const struct net_span *from, uint64_t len)
{
	(void)net;
	(void)from;
	memset(to, 0, len);
}

bool net_may_copy(const struct net *net, uint32_t peer)
{
	(void)net;
	(void)peer;
	return true;
}

ptl_ni_fail_t net_fail(enum net_status s)
{
	return s == NET_OK ? PTL_NI_OK : s == NET_FAILED ? PTL_NI_FAIL : PTL_NI_PEER_DEAD;
}

struct ptl_answerer net_who(const struct net *net, uint32_t peer)
{
	(void)net;
	(void)peer;
	return (struct ptl_answerer){ .uid = 0 };
}

void net_put_sent(struct net *net, struct net_body *b, enum net_status s)
{
	(void)net;
	(void)b;
	(void)s;
	fail();
}

void net_reply_delivered(struct net *net, struct net_body *b, enum net_status s)
{
	net_put_sent(net, b, s);
}

void net_take_answer(struct net *net, uint32_t peer, const struct net_msg *msg)
{
	(void)net;
	(void)peer;
	(void)msg;
	fail();
}

enum net_verdict net_take_reply(struct net *net, uint32_t peer, const struct net_msg *msg,
				const struct net_in *in, struct net_delivery *delivery)
{
	(void)in;
	(void)delivery;
	net_take_answer(net, peer, msg);
	return NET_DROP;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static int start(void **state)
{
	(void)state;
	memset(peers, 0, sizeof(peers));
	n = (struct net){
		.ni = &ni, .slot = &slot, .carrier = &carrier, .peer = peers, .stat = stats
	};
	nanswers = nended = 0;
	return 0;
}

/* A request comes, and its body ends so. */
static void comes(uint8_t kind, uint32_t op, enum net_status how)
{
	struct net_msg m = { .kind = kind,
			     .ack = op != PTL_NIL && kind == NET_PUT,
			     .op = op,
			     .op_gen = op == PTL_NIL ? 0 : OP_GEN,
			     .length = LONG };
	struct net_delivery delivery = { .length = 0 };
	uint8_t header[NET_HEADER_MAX];
	struct net_in in = { .header = header, .body_len = LONG };

	in.header_len = net_msg_encode(header, &m);
	assert_int_equal(net_deliver(&n, PEER, &in, &delivery), NET_PULL);
	assert_int_equal(delivery.length, LONG);
	net_delivered(&n, PEER, delivery.cookie, how);
	assert_int_equal(nended, 1);
	assert_null(peers[PEER].line);
}

static void hears_of_failure(void)
{
	assert_int_equal(ended_as, PTL_NI_FAIL);
	assert_int_equal(nanswers, 1);
	assert_int_equal(answer.kind, NET_ANSWER);
	assert_int_equal(answer.what, PTL_ANSWER_FAILED);
	assert_int_equal(answer.fail, PTL_NI_FAIL);
	assert_int_equal(answer.op, OP);
	assert_int_equal(answer.op_gen, OP_GEN);
}

static void who_waits_for_an_ack_hears_that_it_failed(void **state)
{
	(void)state;
	comes(NET_PUT, OP, NET_FAILED);
	hears_of_failure();
}

static void so_does_who_waits_for_a_reply(void **state)
{
	(void)state;
	comes(NET_GETPUT, OP, NET_FAILED);
	hears_of_failure();
}

static void who_does_not_wait_hears_nothing(void **state)
{
	(void)state;
	comes(NET_PUT, PTL_NIL, NET_FAILED);
	assert_int_equal(ended_as, PTL_NI_FAIL);
	assert_int_equal(nanswers, 0);
}

static void nor_does_who_is_lost(void **state)
{
	(void)state;
	comes(NET_PUT, OP, NET_DEAD);
	assert_int_equal(ended_as, PTL_NI_PEER_DEAD);
	assert_int_equal(nanswers, 0);
}

static void what_arrives_is_acknowledged(void **state)
{
	(void)state;
	comes(NET_PUT, OP, NET_OK);
	assert_int_equal(ended_as, PTL_NI_OK);
	assert_int_equal(nanswers, 1);
	assert_int_equal(answer.what, PTL_ANSWER_ACK);
	assert_int_equal(answer.length, LONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_waits_for_an_ack_hears_that_it_failed, start),
		cmocka_unit_test_setup(so_does_who_waits_for_a_reply, start),
		cmocka_unit_test_setup(who_does_not_wait_hears_nothing, start),
		cmocka_unit_test_setup(nor_does_who_is_lost, start),
		cmocka_unit_test_setup(what_arrives_is_acknowledged, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
