/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * An interface's network NALs remember peers when connections come and go, and when one of them
 * closes. The carriers, the helper threads and the engine are stubs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/config.h"
#include "nal/net/net.h"
#include "portals/engine/debug.h"

enum { PEER = 3, OPS = 4, UID = 1000, JID = 77 };

static struct ptl_ni ni;
static struct net nets[2];
static const ptl_process_id_t id = { 10, 20 };

/* ---- the carriers: each has one peer --------------------------------------------------------- */

static uint32_t find(const struct net *n, net_id_t who)
{
	(void)n;
	return who == net_id(id) ? PEER : NET_NONE;
}

static uint32_t connect_to(struct net *n, net_id_t who)
{
	return find(n, who);
}

static int take(struct net *n, uint32_t peer, const struct net_out *o)
{
	(void)n;
	(void)peer;
	(void)o;
	return 0;
}

static void watch(struct net *n, uint32_t peer, int change)
{
	(void)n;
	(void)peer;
	(void)change;
}

static unsigned int receive(struct net *n)
{
	(void)n;
	return 0;
}

static void nothing(struct net *n)
{
	(void)n;
}

static uint64_t wake(const struct net *n)
{
	(void)n;
	return NET_NEVER;
}

static bool unfinished(const struct net *n)
{
	(void)n;
	return false;
}

static const struct net_carrier carrier = {
	.find = find,
	.connect = connect_to,
	.send = take,
	.watch = watch,
	.receive = receive,
	.run = nothing,
	.wake = wake,
	.unfinished = unfinished,
	.count = nothing,
	.goodbye = nothing,
	.destroy = nothing,
};
const struct net_carrier net_dgram_carrier;

/* ---- other stubs ----------------------------------------------------------------------------- */

void base_warn(const char *fmt, ...)
{
	(void)fmt;
}

void ptl_debug(const struct ptl_ni *interface, const char *format, ...)
{
	(void)interface;
	(void)format;
}

bool ptl_queues_behind(const struct ptl_ni *interface)
{
	(void)interface;
	return false;
}

void ptl_leave(struct ptl_ni *interface)
{
	atomic_store(&interface->view.r->lock, 0);
}

void ptl_lock_wait(struct ptl_ni *interface)
{
	(void)interface;
	fail();
}

void ptl_lock_unbiased(struct ptl_ni *interface, uint32_t biased)
{
	(void)biased;
	ptl_lock_wait(interface);
}

void ptl_engine_peer_failed(struct ptl_engine *e, uint32_t peer, ptl_ni_fail_t fail_type,
			    const struct ptl_answerer *who)
{
	(void)e;
	(void)peer;
	(void)fail_type;
	(void)who;
}

const struct base_config *base_config(void)
{
	static const struct base_config none;

	return &none;
}

void base_wake_close(struct base_wake *w)
{
	(void)w;
}

void ptl_peer_failed(struct ptl_ni *interface, const struct nal_ops *nal, ptl_process_id_t peer,
		     ptl_ni_fail_t fail_type, const char *why)
{
	(void)interface;
	(void)nal;
	(void)peer;
	(void)fail_type;
	(void)why;
}

void ptl_found(struct ptl_ni *interface, const struct nal_ops *nal, ptl_process_id_t peer)
{
	(void)interface;
	(void)nal;
	(void)peer;
}

ptl_ni_fail_t net_fail(enum net_status s)
{
	(void)s;
	return PTL_NI_FAIL;
}

const char *net_status_text(enum net_status s)
{
	(void)s;
	return "";
}

const char *net_dgram_create(struct net *n, uint32_t mtu, uint32_t window)
{
	(void)n;
	(void)mtu;
	(void)window;
	return "this is not for datagrams";
}

void net_keys_make(struct net_keys *k, const void *secret, size_t len)
{
	(void)k;
	(void)secret;
	(void)len;
}

int net_thread_start(struct net *n, int fd)
{
	n->thread.fd = fd;
	return 0;
}

void net_thread_stop(struct net *n)
{
	(void)n;
}

void net_thread_arm(struct net *n)
{
	(void)n;
}

void net_thread_rouse(struct net *n)
{
	(void)n;
}

void net_thread_disarm(struct net *n)
{
	(void)n;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static int start(void **state)
{
	static const struct nal_ops ops[2] = { { .name = "first" }, { .name = "second" } };

	(void)state;
	memset(&ni, 0, sizeof(ni));
	memset(nets, 0, sizeof(nets));
	ni.view.r = aligned_alloc(_Alignof(struct ptl_region), sizeof(*ni.view.r));
	ni.view.nal = calloc(2, net_region_bytes());
	assert_true(ni.view.r && ni.view.nal);
	memset(ni.view.r, 0, sizeof(*ni.view.r));
	ni.view.nops = OPS;
	ni.nnets = 2;
	for (int i = 0; i < 2; i++) {
		ni.net[i] = (struct ptl_net){ .nal = &ops[i],
					      .region = (uint64_t)i * net_region_bytes() };
		ni.order[i] = &ops[i];
		nets[i].ni = &ni;
		nets[i].slot = &ni.net[i];
		assert_null(net_begin(&nets[i], &carrier, ops[i].name, 0));
	}
	return 0;
}

static int stop(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		if (ni.net[i].net)
			net_stop(&nets[i]);
	free(ni.view.nal);
	free(ni.view.r);
	return 0;
}

static void comes_up(struct net *n)
{
	struct net_who who = { .id = net_id(id), .uid = UID, .jid = JID };

	net_up(n, PEER, &who);
}

static void what_a_connection_said_of_it_stays(void **state)
{
	(void)state;
	comes_up(&nets[0]);
	assert_true(net_connect(&nets[0], id));
	assert_int_equal(net_who(&nets[0], PEER).uid, UID);
	assert_int_equal(net_who(&nets[0], PEER).jid, JID);
	assert_int_equal(nets[0].stat[PEER].state, 1);
}

/* The NAL has an address of it, but that is all. */
static void of_whom_nothing_is_known_anybody_may_be(void **state)
{
	(void)state;
	assert_true(net_connect(&nets[0], id));
	assert_int_equal(net_who(&nets[0], PEER).uid, PTL_UID_ANY);
	assert_int_equal(net_who(&nets[0], PEER).jid, PTL_JID_ANY);
	assert_int_equal(nets[0].stat[PEER].state, 2);
}

static void whom_a_nal_no_longer_reaches_it_no_longer_knows(void **state)
{
	(void)state;
	comes_up(&nets[0]);
	net_peer_failed(&nets[0], PEER, NET_DEAD, NULL);
	assert_true(net_knows(&nets[0], id));
	net_peer_failed(&nets[0], PEER, NET_UNREACHABLE, NULL);
	assert_false(net_knows(&nets[0], id));
	assert_true(net_knows(&nets[1], id));
	/* nor does the other one, which met it for a while: all begin anew */
	comes_up(&nets[1]);
	net_peer_failed(&nets[1], PEER, NET_DEAD, NULL);
	net_peer_failed(&nets[1], PEER, NET_UNREACHABLE, NULL);
	assert_true(net_knows(&nets[0], id));
}

static void a_nal_that_closes_leads_nowhere(void **state)
{
	(void)state;
	assert_true(net_connect(&nets[0], id));
	net_peer_failed(&nets[0], PEER, NET_UNREACHABLE, NULL);
	assert_false(net_knows(&nets[0], id));
	net_stop(&nets[1]);
	assert_null(ni.net[1].net);
	assert_true(net_knows(&nets[0], id));
	net_peer_failed(&nets[0], PEER, NET_UNREACHABLE, NULL);
	assert_true(net_knows(&nets[0], id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_a_connection_said_of_it_stays, start, stop),
		cmocka_unit_test_setup_teardown(of_whom_nothing_is_known_anybody_may_be, start,
						stop),
		cmocka_unit_test_setup_teardown(whom_a_nal_no_longer_reaches_it_no_longer_knows,
						start, stop),
		cmocka_unit_test_setup_teardown(a_nal_that_closes_leads_nowhere, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
