/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The routes to a peer when one NAL leads there and another one does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "portals/api/route.h"
#include "portals/engine/ni.h"

static const ptl_process_id_t peer = { 7, 9 };
static bool host_knows, network_knows;

static bool knows_by_host(struct ptl_ni *ni, ptl_process_id_t id)
{
	(void)ni;
	return host_knows && id.pid == peer.pid;
}

static bool knows_by_network(struct ptl_ni *ni, ptl_process_id_t id)
{
	(void)ni;
	return network_knows && id.pid == peer.pid;
}

static const struct nal_ops host = { .name = "host", .knows = knows_by_host };
static const struct nal_ops network = { .name = "network", .knows = knows_by_network };

static int set_up(void **state)
{
	struct ptl_ni *ni = calloc(1, sizeof(*ni));

	ni->nal = &host;
	ni->net[ni->nnets++].nal = &network;
	host_knows = network_knows = false;
	*state = ni;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static ptl_ni_fail_t known(struct ptl_ni *ni)
{
	char text[200];

	return ptl_peer_failed_text(ni, peer, text, sizeof(text));
}

static void who_is_reached_by_another_nal_is_not_unreachable(void **state)
{
	struct ptl_ni *ni = *state;

	ptl_peer_failed(ni, &host, peer, PTL_NI_UNREACHABLE, "another user");
	assert_int_equal(known(ni), PTL_NI_UNREACHABLE);
	network_knows = true;
	ptl_found(ni, &network, peer);
	assert_int_equal(known(ni), PTL_NI_OK);
	/* nor if it calls by the first one later */
	ptl_peer_failed(ni, &host, peer, PTL_NI_UNREACHABLE, "another user");
	assert_int_equal(known(ni), PTL_NI_OK);
	assert_string_equal(ptl_peer_failed_why(ni, &host, peer), "another user");
	ptl_peer_failed(ni, &network, peer, PTL_NI_UNREACHABLE, "no sign of life");
	assert_int_equal(known(ni), PTL_NI_UNREACHABLE);
}

static void the_host_may_lead_where_a_network_does_not(void **state)
{
	struct ptl_ni *ni = *state;

	network_knows = true;
	ptl_peer_failed(ni, &network, peer, PTL_NI_UNREACHABLE, "no answer");
	assert_int_equal(known(ni), PTL_NI_UNREACHABLE);
	host_knows = true;
	assert_int_equal(known(ni), PTL_NI_OK);
}

static void who_has_ended_has_ended(void **state)
{
	struct ptl_ni *ni = *state;

	network_knows = true;
	ptl_peer_failed(ni, &host, peer, PTL_NI_PEER_DEAD, "its process has ended");
	assert_int_equal(known(ni), PTL_NI_PEER_DEAD);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(who_is_reached_by_another_nal_is_not_unreachable),
		CASE(the_host_may_lead_where_a_network_does_not),
		CASE(who_has_ended_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
