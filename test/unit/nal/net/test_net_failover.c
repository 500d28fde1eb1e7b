/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Failover to another NAL: requests are handed over, in their order and with their operations;
 * answers are not, nor what comes behind a request that could not be; nor is anything to a NAL that
 * closes. The carriers, and the rest of nal/net, are stubs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/log.h"
#include "nal/net/net.h"

enum { PEER = 1, THERE = 2, PEERS = 3, OPS = 4, MOST = 8 };

static struct ptl_ni ni;
static struct net first, second;
static struct net_peer peers[2][PEERS];
static struct ptl_stat_peer stats[2][PEERS];
static struct net_body *bodies[2][OPS];
static struct ptl_op ops[OPS];
static const ptl_process_id_t id = { 10, 20 };
static uint32_t there; /* the peer's number with the second NAL */
static uint64_t sent[MOST];
static unsigned int nsent, takes, reached, expected[2];

/* ---- stubs ----------------------------------------------------------------------------------- */

static const struct nal_ops first_ops = { .name = "first" }, second_ops = { .name = "second" };

static uint32_t find(const struct net *n, net_id_t who)
{
	if (who != net_id(id))
		return NET_NONE;
	return n == &first ? PEER : there;
}

static int take(struct net *n, uint32_t peer, const struct net_out *o)
{
	struct net_msg m;

	assert_ptr_equal(n, &second);
	assert_int_equal(peer, THERE);
	if (!takes)
		return -1;
	takes--;
	assert_int_equal(net_msg_decode(o->header, o->header_len, o->body_len, &m), 0);
	sent[nsent++] = m.match_bits;
	return 0;
}

static void run(struct net *n)
{
	(void)n;
}

static const struct net_carrier carrier = { .find = find, .send = take, .run = run };

uint32_t net_peer_of(struct net *n, ptl_process_id_t whom)
{
	return find(n, net_id(whom));
}

bool net_connect(struct net *n, ptl_process_id_t whom)
{
	return find(n, net_id(whom)) != NET_NONE;
}

struct ptl_answerer net_who(const struct net *n, uint32_t peer)
{
	(void)n;
	(void)peer;
	return (struct ptl_answerer){ .id = id };
}

void net_expect(struct net *n, uint32_t peer, int change)
{
	(void)peer;
	expected[n == &second] += (unsigned int)change;
}

void base_warn(const char *fmt, ...)
{
	(void)fmt;
	reached++;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void begin(struct net *n, int i, const char *name, const struct nal_ops *nal)
{
	*n = (struct net){
		.ni = &ni,
		.slot = &ni.net[i],
		.name = name,
		.carrier = &carrier,
		.peer = peers[i],
		.npeers = PEERS,
		.stat = stats[i],
		.body_of = bodies[i],
	};
	ni.net[i].nal = ni.order[i] = nal;
	ni.net[i].net = n;
}

static int start(void **state)
{
	(void)state;
	memset(&ni, 0, sizeof(ni));
	memset(peers, 0, sizeof(peers));
	memset(ops, 0, sizeof(ops));
	begin(&first, 0, "first", &first_ops);
	begin(&second, 1, "second", &second_ops);
	ni.nnets = 2;
	ni.view.op = ops;
	peers[0][PEER].who.id = peers[1][THERE].who.id = net_id(id);
	there = THERE;
	takes = MOST;
	nsent = reached = 0;
	memset(expected, 0, sizeof(expected));
	return 0;
}

static int stop(void **state)
{
	(void)state;
	for (int i = 0; i < PEERS; i++)
		net_forget_passing(&peers[0][i]);
	return 0;
}

/* Is a message of this kind passed on? */
static bool goes(uint8_t kind, uint64_t bits, uint32_t op)
{
	struct net_msg m = { .kind = kind, .match_bits = bits, .op = op, .what = PTL_ANSWER_QUIET };
	uint8_t header[NET_HEADER_MAX];
	struct net_out o = { .header = header };

	o.header_len = net_msg_encode(header, &m);
	return net_failover(&first, PEER, &o);
}

static void requests_go_in_their_order_and_with_their_operations(void **state)
{
	(void)state;
	assert_true(goes(NET_PUT, 100, PTL_NIL));
	assert_true(goes(NET_GET, 101, 3));
	assert_true(goes(NET_PUT, 102, PTL_NIL));
	assert_int_equal(nsent, 3);
	for (unsigned int i = 0; i < nsent; i++)
		assert_int_equal(sent[i], 100 + i);
	assert_int_equal(ops[3].peer, ptl_net_peer(&ni, second.slot, THERE));
	assert_int_equal(expected[0], UINT32_MAX);
	assert_int_equal(expected[1], 1);
	net_unreached(&first, PEER, "why");
	assert_string_equal(net_failed_over(&first, id), "why");
	assert_int_equal(reached, 0);
	net_reached(&second, THERE);
	assert_int_equal(reached, 1);
}

static void an_answer_does_not(void **state)
{
	(void)state;
	ops[3].peer = 4711;
	assert_false(goes(NET_ANSWER, 0, 3));
	assert_false(goes(NET_REPLY, 0, 3));
	assert_int_equal(nsent, 0);
	assert_int_equal(ops[3].peer, 4711);
	/* nor does it keep a request back */
	assert_true(goes(NET_PUT, 100, PTL_NIL));
}

static void behind_one_that_cannot_go_none_does(void **state)
{
	(void)state;
	takes = 1;
	assert_true(goes(NET_PUT, 100, PTL_NIL));
	assert_false(goes(NET_PUT, 101, PTL_NIL));
	takes = MOST;
	assert_false(goes(NET_PUT, 102, PTL_NIL));
	net_unreached(&first, PEER, "why");
	/* those are told; later ones may */
	assert_true(goes(NET_PUT, 103, PTL_NIL));
	assert_int_equal(nsent, 2);
}

/* The second NAL knew the peer, and has no room for it any more. */
static void without_a_number_there_nobody_is_met(void **state)
{
	(void)state;
	assert_true(goes(NET_PUT, 100, PTL_NIL));
	there = NET_NONE;
	assert_false(goes(NET_PUT, 101, PTL_NIL));
	net_unreached(&first, PEER, "why");
	assert_int_equal(reached, 0);
	/* told a second time, as by an answer that could not be sent */
	net_unreached(&first, PEER, "another");
	assert_string_equal(net_failed_over(&first, id), "another");
}

static void with_a_nal_that_closes_it_is_forgotten(void **state)
{
	(void)state;
	peers[0][0].from = &second;
	assert_true(goes(NET_PUT, 100, PTL_NIL));
	net_unreached(&first, PEER, "why");
	assert_ptr_equal(peers[0][PEER].to, &second);
	ni.net[1].net = NULL;
	net_forget_path(&second);
	assert_null(peers[0][PEER].to);
	assert_null(peers[0][PEER].why);
	assert_null(peers[0][0].from);
	assert_false(goes(NET_PUT, 101, PTL_NIL));
	net_unreached(&first, PEER, "why");
	assert_null(net_failed_over(&first, id));
	assert_int_equal(nsent, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			requests_go_in_their_order_and_with_their_operations, start, stop),
		cmocka_unit_test_setup_teardown(an_answer_does_not, start, stop),
		cmocka_unit_test_setup_teardown(behind_one_that_cannot_go_none_does, start, stop),
		cmocka_unit_test_setup_teardown(without_a_number_there_nobody_is_met, start, stop),
		cmocka_unit_test_setup_teardown(with_a_nal_that_closes_it_is_forgotten, start,
						stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
