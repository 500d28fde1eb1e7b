/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which memory stays registered: that of a descriptor that is there for more than one operation,
 * while it is there. The link and the rest of the machine are stubs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nal/net/rdma/rdma.h"
#include "portals/engine/ni.h"

enum { BYTES = 4096 };

static struct rdma d;
static struct ptl_ni interface;
static struct ptl_slot slot;
static struct ptl_md_more more;
static char memory[BYTES];
static int registered;

static int reg(void *link, void *base, size_t len, enum rdma_use use, bool quietly,
	       struct rdma_mr *mr)
{
	(void)link;
	(void)len;
	(void)use;
	(void)quietly;
	mr->handle = base;
	mr->addr = (uintptr_t)base;
	registered++;
	return 0;
}

static void unreg(void *link, struct rdma_mr *mr)
{
	(void)link;
	(void)mr;
	registered--;
}

static const struct rdma_link fake = { .name = "fake", .reg = reg, .unreg = unreg };

void rdma_check_soon(struct rdma *rdma)
{
	(void)rdma;
}

static void start(int32_t threshold)
{
	registered = 0;
	d = (struct rdma){ .link = &fake, .net.ni = &interface };
	more = (struct ptl_md_more){ .filled = 7 };
	slot.md = (struct ptl_md){ .state = PTL_OBJ_LIVE,
				   .threshold = threshold,
				   .start = (uintptr_t)memory,
				   .length = BYTES };
	interface.view.slot = &slot;
	interface.view.more = &more;
}

/* A message of all of it, from beginning to end. */
static void message(void)
{
	const struct net_span span = { .md = 0 };
	struct rdma_mr mr = { .handle = NULL };

	assert_int_equal(rdma_reg_body(&d, &span, memory, BYTES, RDMA_REMOTE, &mr), 0);
	assert_int_equal(registered, 1);
	rdma_unreg(&d, &mr);
}

static void of_one_operation_it_does_not(void **state)
{
	(void)state;
	for (int32_t left = 0; left <= 1; left++) { /* before it is counted, and behind */
		start(left);
		message();
		assert_int_equal(registered, 0);
		assert_false(rdma_reg_check(&d));
		rdma_reg_free(&d);
	}
}

static void of_many_it_does_while_the_descriptor_is_there(void **state)
{
	const int32_t threshold[] = { PTL_MD_THRESH_INF, 2, 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof(threshold) / sizeof(threshold[0]); i++) {
		start(threshold[i]);
		message();
		assert_int_equal(registered, 1);
		message();
		message();
		assert_true(rdma_reg_check(&d));
		assert_int_equal(registered, 1);
		slot.md.state = 0;
		rdma_reg_check(&d);
		assert_int_equal(registered, 0);
		rdma_reg_free(&d);
	}
}

static void of_another_in_its_place_it_does_not(void **state)
{
	(void)state;
	start(PTL_MD_THRESH_INF);
	message();
	assert_int_equal(registered, 1);
	more.filled++;
	rdma_reg_check(&d);
	assert_int_equal(registered, 0);
	rdma_reg_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_one_operation_it_does_not),
		cmocka_unit_test(of_many_it_does_while_the_descriptor_is_there),
		cmocka_unit_test(of_another_in_its_place_it_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
