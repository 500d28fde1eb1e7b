/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How long libfabric keeps the address of a peer: while somebody sends there, and what is under
 * way is not over. Its address vector is a stub.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "nal/ofi/ofi.h"

static uint32_t inserted, removed;
static fi_addr_t last; /* what was removed last */

static int insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr,
		  uint64_t flags, void *context)
{
	(void)av;
	(void)addr;
	(void)flags;
	(void)context;
	*fi_addr = inserted++;
	return (int)count;
}

static int take_away(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	(void)av;
	(void)count;
	(void)flags;
	last = *fi_addr;
	removed++;
	return 0;
}

const char *ptl_net_card(const char *cards, const char *nal, size_t *len)
{
	(void)cards;
	(void)nal;
	*len = 0;
	return NULL;
}

bool ofi_card_parse(const char *card, size_t len, char provider[OFI_PROVIDER_MAX],
		    struct ofi_addr *addr)
{
	(void)card;
	(void)len;
	(void)provider;
	(void)addr;
	return false;
}

uint16_t net_port_of(ptl_pid_t pid)
{
	return (uint16_t)pid;
}

static struct fi_ops_av ops = { .size = sizeof(ops), .insert = insert, .remove = take_away };
static struct fid_av av = { .ops = &ops };
static struct fi_ep_attr ep;
static struct fi_info info = { .ep_attr = &ep };
static struct ofi o;

static int fresh(void **state)
{
	(void)state;
	o = (struct ofi){ .info = &info, .av = &av, .own = { .len = 4 } };
	ep.protocol = FI_PROTO_EFA;
	info.addr_format = FI_ADDR_EFA;
	inserted = removed = 0;
	last = FI_ADDR_UNSPEC;
	return 0;
}

static int over(void **state)
{
	(void)state;
	ofi_paths_free(&o);
	return 0;
}

static struct ofi_path *reach(const char *address)
{
	struct ofi_path *w = ofi_reach(&o, 1, address, 4);

	assert_non_null(w);
	return w;
}

static void an_address_stays_until_nobody_sends_there(void **state)
{
	struct ofi_path *w = reach("near");

	(void)state;
	assert_ptr_equal(reach("near"), w);
	assert_int_equal(inserted, 1);
	ofi_leave(&o, w);
	assert_int_equal(removed, 0);
	ofi_leave(&o, w);
	assert_int_equal(removed, 1);
	assert_int_equal(last, 0);
}

static void and_until_what_is_under_way_is_over(void **state)
{
	struct ofi_path *w = reach("near");

	(void)state;
	w->under_way = 2;
	ofi_leave(&o, w);
	ofi_path_over(&o, w);
	assert_int_equal(removed, 0);
	ofi_path_over(&o, w);
	assert_int_equal(removed, 1);
}

static void who_comes_back_meanwhile_has_the_same(void **state)
{
	struct ofi_path *w = reach("near");

	(void)state;
	w->under_way = 1;
	ofi_leave(&o, w);
	assert_ptr_equal(reach("near"), w);
	ofi_path_over(&o, w);
	assert_int_equal(removed, 0);
	ofi_leave(&o, w);
	assert_int_equal(removed, 1);
}

/* By which a connection closes. */
static void over_connections_it_goes_at_once(void **state)
{
	static const struct {
		uint32_t protocol, format;
	} kinds[] = { { FI_PROTO_RXM, FI_SOCKADDR_IB },
		      { FI_PROTO_RXM, FI_SOCKADDR_IN },
		      { FI_PROTO_SOCK_TCP, FI_SOCKADDR_IN6 } };

	(void)state;
	for (uint32_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct ofi_path *w, *again;

		ep.protocol = kinds[k].protocol;
		info.addr_format = kinds[k].format;
		w = reach("near");
		w->under_way = 1;
		ofi_leave(&o, w);
		assert_int_equal(removed, 2 * k + 1);
		again = reach("near"); /* another one */
		assert_int_equal(inserted, 2 * k + 2);
		ofi_path_over(&o, w);
		assert_int_equal(removed, 2 * k + 1);
		ofi_leave(&o, again);
		assert_int_equal(removed, 2 * k + 2);
		assert_int_equal(last, 2 * k + 1);
	}
}

/* Nobody hears when those are over. */
static void over_datagrams_it_stays(void **state)
{
	struct ofi_path *w;

	(void)state;
	ep.protocol = FI_PROTO_RXD;
	info.addr_format = FI_SOCKADDR_IN;
	w = reach("near");
	ofi_leave(&o, w);
	assert_int_equal(removed, 0);
	assert_ptr_equal(reach("near"), w);
	assert_int_equal(inserted, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_address_stays_until_nobody_sends_there, fresh,
						over),
		cmocka_unit_test_setup_teardown(and_until_what_is_under_way_is_over, fresh, over),
		cmocka_unit_test_setup_teardown(who_comes_back_meanwhile_has_the_same, fresh, over),
		cmocka_unit_test_setup_teardown(over_connections_it_goes_at_once, fresh, over),
		cmocka_unit_test_setup_teardown(over_datagrams_it_stays, fresh, over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
