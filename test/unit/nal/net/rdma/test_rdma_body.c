/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * When the sender of long messages is told that they are over: in the order in which they ended,
 * in few packets where it has many under way, and at once where it may be waiting; and what
 * becomes of memory that is not there. The link and the rest of the machine are stubs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "nal/net/rdma/rdma.h"

enum { MANY = 64, SMALL = 65536, LARGE = 1 << 20 };

static struct rdma d;
static struct rdma_peer peer;
static struct rdma_read *reads[MANY];
static uint32_t nreads, npackets, nover, nlanded, nbusy;
static struct {
	uint32_t id;
	uint8_t status;
	uint64_t length;
} overs[MANY];

/* ---- stubs ----------------------------------------------------------------------------------- */

static int start(void *link, void *way, struct rdma_read *r)
{
	(void)link;
	(void)way;
	reads[nreads++] = r;
	return 0;
}

static const struct rdma_link fake = { .read = start };

static void note(const struct rdma_msg *m)
{
	assert_true(nover < MANY);
	overs[nover].id = m->id;
	overs[nover].status = m->status;
	overs[nover++].length = m->length;
}

/* As it would go over the wire. */
bool rdma_say(struct rdma *rdma, struct rdma_peer *p, struct rdma_msg *m)
{
	uint8_t packet[RDMA_HELLO_MAX];
	struct rdma_msg got;
	uint32_t len = rdma_encode(packet, m);

	assert_ptr_equal(rdma, &d);
	assert_ptr_equal(p, &peer);
	memcpy(packet + len, m->more, m->nmore * sizeof(struct rdma_wire_body));
	len += m->nmore * (uint32_t)sizeof(struct rdma_wire_body);
	assert_int_equal(rdma_decode(packet, len, &got), 0);
	assert_int_equal(got.kind, RDMA_OVER);
	npackets++;
	note(&got);
	for (uint32_t i = 0; i < got.nmore; i++) {
		rdma_decode_over(&got, i);
		note(&got);
	}
	return true;
}

void rdma_break(struct rdma *rdma, struct rdma_peer *p, enum net_status s, const char *why)
{
	(void)rdma;
	(void)why;
	p->failure = s;
}

void rdma_busy(struct rdma *rdma, struct rdma_peer *p)
{
	(void)rdma;
	(void)p;
	nbusy++;
}

void rdma_await(struct rdma *rdma, struct rdma_peer *p)
{
	(void)rdma;
	(void)p;
}

int rdma_reg_body(struct rdma *rdma, const struct net_span *span, void *base, size_t len,
		  enum rdma_use use, struct rdma_mr *mr)
{
	(void)rdma;
	(void)span;
	(void)base;
	(void)len;
	(void)use;
	(void)mr;
	return 0;
}

void rdma_unreg(struct rdma *rdma, struct rdma_mr *mr)
{
	(void)rdma;
	(void)mr;
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
	nlanded++;
}

/* ---- help ------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
	(void)state;
	memset(&d, 0, sizeof(d));
	memset(&peer, 0, sizeof(peer));
	d.link = &fake;
	d.limits.read = LARGE;
	d.limits.copied = RDMA_BEFORE_SEGMENT + RDMA_OVERS * sizeof(struct rdma_wire_body);
	peer.state = RDMA_UP;
	nreads = npackets = nover = nlanded = nbusy = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	rdma_bodies_end(&d, &peer, NET_ENDED);
	rdma_bodies_free(&d);
	return 0;
}

static void fetch(uint32_t id, uint64_t len)
{
	static char somewhere; /* nothing is read, in truth */
	struct rdma_msg m = { .kind = RDMA_LONG, .id = id, .readable = true, .length = len };
	struct net_delivery l = { .mem.base = &somewhere, .length = len };

	rdma_fetch(&d, &peer, &m, &l);
}

static void fetch_many(uint32_t n, uint64_t len)
{
	for (uint32_t id = 0; id < n; id++)
		fetch(id, len);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void a_single_one_is_told_at_once(void **state)
{
	(void)state;
	fetch(7, SMALL);
	rdma_moved(&d, reads[0], RDMA_OK, NULL);
	assert_int_equal(npackets, 1);
	assert_int_equal(overs[0].id, 7);
	assert_int_equal(overs[0].status, NET_OK);
	assert_int_equal(overs[0].length, SMALL);
}

static void so_is_one_of_few(void **state)
{
	(void)state;
	fetch_many(4, SMALL);
	for (uint32_t i = 0; i < 4; i++) {
		rdma_moved(&d, reads[i], RDMA_OK, NULL);
		assert_int_equal(npackets, i + 1);
	}
}

static void of_many_several_are_told_in_a_packet(void **state)
{
	(void)state;
	fetch_many(MANY, SMALL);
	for (uint32_t i = 0; i < MANY; i++) {
		rdma_moved(&d, reads[i], RDMA_OK, NULL);
		/* never more than wait for a packet, nor than a quarter of what is under way */
		assert_in_range(nlanded - nover, 0, RDMA_OVERS - 1);
		assert_true(4 * (nlanded - nover) <= MANY - nlanded);
	}
	assert_in_range(npackets, MANY / RDMA_OVERS, MANY / 3);
	assert_int_equal(nover, MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(overs[i].id, i);
		assert_int_equal(overs[i].length, SMALL);
	}
}

/* ... as many as the fabric takes without memory that it knows. */
static void what_is_told_fits_what_the_fabric_copies(void **state)
{
	(void)state;
	d.limits.copied = RDMA_BEFORE_SEGMENT + sizeof(struct rdma_wire_body);
	fetch_many(MANY, SMALL);
	for (uint32_t i = 0; i < MANY; i++) {
		rdma_moved(&d, reads[i], RDMA_OK, NULL);
		assert_in_range(nlanded - nover, 0, 1);
	}
	assert_int_equal(nover, MANY);
	assert_in_range(npackets, MANY / 2, MANY - 1);
}

static void nothing_waits_for_a_large_one(void **state)
{
	(void)state;
	fetch(0, SMALL);
	fetch(1, LARGE);
	for (uint32_t id = 2; id < MANY; id++)
		fetch(id, SMALL);
	rdma_moved(&d, reads[0], RDMA_OK, NULL);
	assert_int_equal(nover, 1);
}

static void a_failure_is_told_behind_those_before_it(void **state)
{
	(void)state;
	fetch_many(MANY, SMALL);
	rdma_moved(&d, reads[0], RDMA_OK, NULL);
	assert_int_equal(nover, 0);
	rdma_moved(&d, reads[1], RDMA_FAILED, "no");
	rdma_fetch_more(&d, &peer);
	assert_int_equal(npackets, 1);
	assert_int_equal(nover, 2);
	assert_int_equal(overs[0].status, NET_OK);
	assert_int_equal(overs[1].id, 1);
	assert_int_equal(overs[1].status, NET_FAILED);
	assert_int_equal(overs[1].length, 0);
}

static void who_is_lost_is_told_nothing(void **state)
{
	(void)state;
	fetch_many(MANY, SMALL);
	rdma_moved(&d, reads[0], RDMA_OK, NULL);
	for (uint32_t i = 1; i < MANY; i++)
		rdma_moved(&d, reads[i], RDMA_BROKEN, "gone");
	rdma_bodies_end(&d, &peer, NET_DEAD);
	assert_int_equal(npackets, 0);
	assert_int_equal(nlanded, MANY);
	assert_null(peer.overs);
	assert_int_equal(peer.novers + peer.reading, 0);
}

/* Of a vector nothing is there: who has a turn then ends it, and for that gets one. */
static void a_landing_that_is_not_there_fails(void **state)
{
	struct rdma_msg m = { .kind = RDMA_LONG, .id = 7, .readable = true, .length = SMALL };
	struct net_delivery l = { .mem.cookie = &d, .length = SMALL };

	(void)state;
	rdma_fetch(&d, &peer, &m, &l);
	assert_int_equal(nbusy, 1);
	assert_int_equal(nreads, 0);
	assert_false(rdma_fetch_more(&d, &peer));
	assert_int_equal(nover, 1);
	assert_int_equal(overs[0].id, 7);
	assert_int_equal(overs[0].status, NET_FAILED);
	assert_int_equal(nlanded, 1);
}

static void a_body_that_is_not_there_is_zeros(void **state)
{
	struct net_mem mem = { .cookie = &d };
	char bytes[10], zeros[8] = { 0 };

	(void)state;
	memset(bytes, 1, sizeof(bytes));
	rdma_copy_out(&d, bytes + 1, &mem, 0, sizeof(zeros));
	assert_memory_equal(bytes + 1, zeros, sizeof(zeros));
	assert_int_equal(bytes[0], 1);
	assert_int_equal(bytes[9], 1);
}

static void a_packet_that_tells_of_too_many_is_refused(void **state)
{
	uint8_t packet[sizeof(struct rdma_wire_head) +
		       (RDMA_OVERS + 1) * sizeof(struct rdma_wire_body)];
	struct rdma_msg m = { .kind = RDMA_OVER };
	uint32_t len = rdma_encode(packet, &m), last;

	(void)state;
	for (uint32_t i = 0; i < RDMA_OVERS; i++)
		len += rdma_encode_over(packet + len, i, NET_OK, 1);
	assert_true(rdma_decode(packet, len, &m) < 0);
	len -= (uint32_t)sizeof(struct rdma_wire_body);
	assert_int_equal(rdma_decode(packet, len, &m), 0);
	assert_int_equal(m.nmore, RDMA_OVERS - 1);
	assert_true(rdma_decode(packet, len - 1, &m) < 0);
	assert_true(rdma_decode(packet, sizeof(struct rdma_wire_head), &m) < 0);
	last = len - (uint32_t)sizeof(struct rdma_wire_body);
	packet[last + offsetof(struct rdma_wire_body, status)] = NET_ENDED + 1;
	assert_true(rdma_decode(packet, len, &m) < 0);
	packet[last + offsetof(struct rdma_wire_body, status)] = NET_OK;
	packet[last + offsetof(struct rdma_wire_body, offset)] = 1;
	assert_true(rdma_decode(packet, len, &m) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_single_one_is_told_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(so_is_one_of_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_many_several_are_told_in_a_packet, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_told_fits_what_the_fabric_copies, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nothing_waits_for_a_large_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_failure_is_told_behind_those_before_it, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_is_lost_is_told_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_landing_that_is_not_there_fails, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_body_that_is_not_there_is_zeros, set_up,
						tear_down),
		cmocka_unit_test(a_packet_that_tells_of_too_many_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
