/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The inside of match lists, which the calls do not show: when entries are on the short list and
 * when in the hash, labels at the end of their range, portals that share a bucket, regions that
 * were scribbled on, and what is undone. That the right entry is found is for prop_match to say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "portals/engine/match.h"

enum { MES = 4096, PORTALS = 4 };

static const ptl_process_id_t from = { 1, 2 }, anyone = { PTL_NID_ANY, PTL_PID_ANY };

static struct ptl_view v;
static struct ptl_engine engine;
static uint32_t made; /* entries ever made; none is made twice */
static int fd;

static int create(int entries)
{
	const ptl_ni_limits_t limits = { .max_mes = entries,
					 .max_mds = entries,
					 .max_eqs = 1,
					 .max_ac_index = 0,
					 .max_pt_index = PORTALS - 1 };
	char why[200];

	made = 0;
	engine = (struct ptl_engine){ .v = &v };
	if (ptl_region_create(&v, &limits, 4096, 0, &fd, why, sizeof(why)) < 0)
		return -1;
	ptl_region_store_mapping(&v, 0);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	return create(MES);
}

static int tear_down(void **state)
{
	(void)state;
	ptl_region_unmap(&v);
	return close(fd);
}

/* An entry that takes any put. */
static uint32_t make(uint32_t pt, ptl_process_id_t id, uint64_t bits, uint64_t ignore,
		     uint32_t base, ptl_ins_pos_t where)
{
	uint32_t i = made++;

	assert_true(i < v.mes);
	v.slot[i].me.match_bits = bits;
	v.slot[i].me.ignore_bits = ignore;
	v.slot[i].me.id = id;
	v.slot[i].me.pt_index = (uint16_t)pt;
	v.slot[i].me.state = PTL_OBJ_LIVE;
	v.slot[i].me.md = i;
	v.slot[i].md.options = PTL_MD_OP_PUT;
	v.slot[i].md.length = 8;
	ptl_match_link(&engine, i, base, where);
	return i;
}

static uint32_t append(uint32_t pt, uint64_t bits, uint64_t ignore)
{
	return make(pt, from, bits, ignore, PTL_NIL, PTL_INS_AFTER);
}

static uint32_t found(uint32_t pt, uint64_t bits)
{
	struct ptl_request q = {
		.kind = PTL_REQ_PUT, .pt_index = pt, .initiator = from, .match_bits = bits
	};
	struct ptl_match m;

	return ptl_match_find(&v, &q, &m) ? m.me : PTL_NIL;
}

/* ---- what must always be true ---------------------------------------------------------------- */

/* The chain is linked both ways, and the entries of each portal are in the order of their
 * labels. */
static uint32_t sound_chain(uint32_t head)
{
	int64_t last[PORTALS];
	uint32_t n = 0, prev = PTL_NIL;

	for (int pt = 0; pt < PORTALS; pt++)
		last[pt] = INT64_MIN;
	for (uint32_t i = head; i != PTL_NIL; i = v.slot[i].me.chain_next) {
		if (i != head)
			assert_int_equal(v.slot[i].me.chain_prev, prev);
		assert_true(v.slot[i].me.label > last[v.slot[i].me.pt_index]);
		last[v.slot[i].me.pt_index] = v.slot[i].me.label;
		prev = i;
		n++;
	}
	if (n)
		assert_int_equal(v.slot[head].me.chain_prev, prev);
	return n;
}

static void sound_portal(const struct ptl_pt *pt)
{
	uint32_t n = 0, listed = 0, of[PTL_TUPLES] = { 0 }, prev = PTL_NIL;

	for (uint32_t i = pt->head; i != PTL_NIL; i = v.slot[i].me.list_next) {
		assert_int_equal(v.slot[i].me.list_prev, prev);
		assert_true(prev == PTL_NIL || v.slot[i].me.label > v.slot[prev].me.label);
		if (v.slot[i].me.state & PTL_OBJ_LISTED)
			listed++;
		else
			of[v.slot[i].me.tuple]++;
		prev = i;
		n++;
	}
	assert_int_equal(pt->tail, prev);
	assert_int_equal(pt->count, n);
	assert_int_equal(pt->listed, listed);
	assert_int_equal(sound_chain(pt->list_head), listed);
	for (uint32_t k = 0; k < PTL_TUPLES; k++) {
		assert_int_equal(pt->tuples >> k & 1, of[k] != 0);
		if (of[k])
			assert_int_equal(pt->tuple[k].count, of[k]);
	}
}

static void sound(void)
{
	uint32_t hashed = 0;

	for (int pt = 0; pt < PORTALS; pt++)
		sound_portal(&v.pt[pt]);
	for (uint32_t b = 0; b < v.r->buckets; b++)
		hashed += sound_chain(v.bucket[b]);
	assert_int_equal(v.r->hashed, hashed);
}

/* ---- list and hash --------------------------------------------------------------------------- */

static void a_short_list_is_not_hashed(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < PTL_MATCH_SHORT; i++)
		append(0, i, 0);
	assert_int_equal(v.pt[0].listed, PTL_MATCH_SHORT);
	assert_int_equal(v.r->hashed, 0);
	sound();
}

static void a_long_list_gives_like_entries_to_the_hash(void **state)
{
	uint32_t other = append(0, 0, 0xff);

	(void)state;
	for (uint64_t i = 0; i < PTL_MATCH_SHORT; i++)
		append(0, 0x100 + i, 1);
	assert_int_equal(v.pt[0].listed, 1);
	assert_int_equal(v.pt[0].list_head, other);
	assert_int_equal(v.r->hashed, PTL_MATCH_SHORT);
	append(0, 0x200, 1); /* follows its like */
	assert_int_equal(v.r->hashed, PTL_MATCH_SHORT + 1);
	append(0, 0x300, 2); /* has none there */
	assert_int_equal(v.pt[0].listed, 2);
	sound();
	assert_int_equal(found(0, 0x201), made - 2);
	assert_int_equal(found(0, 0x302), made - 1);
}

static void the_source_is_part_of_what_is_alike(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < PTL_MATCH_SHORT; i++)
		append(0, i, 1);
	make(0, anyone, 100, 1, PTL_NIL, PTL_INS_AFTER);
	assert_int_equal(v.pt[0].listed, PTL_MATCH_SHORT);
	assert_int_equal(v.r->hashed, 1);
	sound();
	assert_int_equal(found(0, 101), made - 1);
}

static void a_tuple_without_entries_gives_its_place_back(void **state)
{
	uint32_t first;

	(void)state;
	for (uint64_t i = 0; i <= PTL_MATCH_SHORT; i++)
		append(0, i, 1);
	assert_int_equal(v.pt[0].tuples, 1);
	for (first = 0; first <= PTL_MATCH_SHORT; first++)
		ptl_match_unlink(&engine, first);
	assert_int_equal(v.pt[0].tuples, 0);
	assert_int_equal(v.r->hashed, 0);
	append(0, 0, 1);
	assert_int_equal(v.pt[0].listed, 1);
	sound();
}

static void more_kinds_than_places_stay_on_the_list(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 40; i++) /* no two alike */
		append(0, 1ull << i, 1ull << (i + 20));
	assert_int_equal(v.pt[0].tuples, (1u << PTL_TUPLES) - 1);
	assert_int_equal(v.pt[0].listed, 40 - PTL_TUPLES);
	sound();
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(found(0, 1ull << i | 1ull << (i + 20)), i);
	for (uint32_t i = 0; i < 40; i++)
		ptl_match_unlink(&engine, i);
	sound();
}

static void the_hash_grows_with_its_entries(void **state)
{
	uint32_t buckets = v.r->buckets;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		append((uint32_t)(i % PORTALS), i, 0);
	assert_true(v.r->buckets >= 4000 && v.r->buckets > buckets);
	sound();
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(found(i % PORTALS, i), i);
}

/* ---- labels ---------------------------------------------------------------------------------- */

static void labels_at_the_end_of_their_range_start_anew(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 20; i++)
		append(0, i, 0);
	v.slot[v.pt[0].tail].me.label = ((int64_t)1 << 61) + 1;
	append(0, 20, 0);
	sound();
	assert_true(v.slot[v.pt[0].tail].me.label < (int64_t)1 << 40);
	v.slot[v.pt[0].head].me.label = -((int64_t)1 << 61) - 1;
	make(0, from, 21, 0, PTL_NIL, PTL_INS_BEFORE);
	sound();
	assert_true(v.slot[v.pt[0].head].me.label > -((int64_t)1 << 40));
}

static void any_number_of_entries_fit_between_two(void **state)
{
	uint32_t last = append(0, 0, 0), where, n;

	(void)state;
	append(0, 1, 0);
	for (n = 0; n < 1000; n++) /* before the same one */
		make(0, from, n, n % 2, last, PTL_INS_BEFORE);
	sound();
	for (n = 0; n < 1000; n++) /* behind the same one */
		make(0, from, n, n % 2, last, PTL_INS_AFTER);
	sound();
	for (where = last, n = 0; n < 1000; n++) /* before the newest */
		where = make(0, from, n, n % 2, where, PTL_INS_BEFORE);
	sound();
}

/* Bits whose exact entries of the portal, which has such in the hash, are in the bucket. */
static uint64_t bits_in(uint32_t pt, uint32_t bucket)
{
	for (uint64_t bits = 2000;; bits++) {
		uint32_t i = append(pt, bits, 0);
		bool there = (v.slot[i].me.hash & (v.r->buckets - 1)) == bucket;

		ptl_match_unlink(&engine, i);
		if (there)
			return bits;
	}
}

/* Labels of different portals say nothing to each other, and their order changes when one begins
 * anew. */
static void portals_that_share_a_bucket_keep_their_order(void **state)
{
	uint32_t bucket, zero, one;
	uint64_t bits;

	(void)state;
	for (uint64_t i = 0; i < 50; i++) /* so that both are in the hash, and it need not grow */
		append(i % 5 > 1, 1000 + i, 0);
	zero = append(0, 7, 0);
	append(0, 7, 0);
	for (uint32_t i = v.pt[0].head; i != PTL_NIL; i = v.slot[i].me.list_next)
		v.slot[i].me.label += (int64_t)1 << 61;
	bucket = v.slot[zero].me.hash & (v.r->buckets - 1);
	bits = bits_in(1, bucket);
	one = append(1, bits, 0);
	append(1, bits, 0);
	assert_int_equal(v.slot[one].me.hash & (v.r->buckets - 1), bucket);
	sound();
	append(0, 7, 0); /* portal 0 begins anew, below portal 1 */
	assert_true(v.slot[zero].me.label < v.slot[one].me.label);
	sound();
	make(0, from, 7, 0, zero + 1, PTL_INS_BEFORE);
	sound();
	make(1, from, bits, 0, one + 1, PTL_INS_BEFORE);
	sound();
	make(0, from, 7, 0, PTL_NIL, PTL_INS_BEFORE);
	make(1, from, bits, 0, PTL_NIL, PTL_INS_BEFORE);
	sound();
	assert_int_equal(v.slot[one].me.hash & (v.r->buckets - 1), bucket);
}

/* ---- on another's behalf --------------------------------------------------------------------- */

static void a_broken_entry_is_left_alone(void **state)
{
	struct ptl_me good;
	struct ptl_pt before;

	(void)state;
	for (uint64_t i = 0; i < 20; i++)
		append(0, i, 0);
	good = v.slot[5].me;
	before = v.pt[0];
#define TRY(field, value)                                                                          \
	do {                                                                                       \
		v.slot[5].me.field = (value);                                                      \
		ptl_match_unlink(&engine, 5);                                                      \
		v.slot[5].me = good;                                                               \
		assert_memory_equal(&v.pt[0], &before, sizeof(before));                            \
		sound();                                                                           \
	} while (0)
	TRY(tuple, PTL_TUPLES);
	TRY(tuple, 0xffff);
	TRY(pt_index, PORTALS);
	TRY(pt_index, 0xffff);
	TRY(chain_prev, MES);
	TRY(chain_prev, PTL_NIL);
	TRY(chain_next, MES);
	TRY(list_prev, MES);
	TRY(list_next, PTL_NIL - 1);
#undef TRY
}

static void look_ahead(uint32_t pt_index, uint64_t bits)
{
	struct ptl_ahead a;

	ptl_ahead_buckets(&v, &a, pt_index, from, bits);
	ptl_ahead_entries(&v, &a);
	ptl_ahead_others(&v, &a);
}

static void a_broken_portal_does_no_harm(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 20; i++)
		append(0, i, 0);
	v.pt[0].tuples = UINT32_MAX;
	assert_int_equal(found(0, 3), 3);
	v.r->buckets = 0;
	(void)found(0, 3);
	v.r->buckets = 3 << 28;
	(void)found(0, 3);
	look_ahead(0, 3);
}

static void looking_ahead_takes_any_message(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 20; i++)
		append(0, i, i % 2);
	v.bucket[v.slot[5].me.hash & (v.r->buckets - 1)] =
		MES; /* the end of the table, or beyond */
	v.slot[7].me.chain_next = MES;
	v.slot[7].me.match_bits = 1000;
	v.slot[9].me.md = MES;
	for (uint64_t bits = 0; bits < 30; bits++)
		look_ahead(0, bits);
	look_ahead(PORTALS, 3);
	look_ahead(UINT32_MAX, 3);
}

/* Entries that a peer unlinked before it died come back: of the hash, its last of a tuple, and of
 * the list. */
static void an_unlinking_can_be_undone(void **state)
{
	const uint32_t last = PTL_MATCH_SHORT + 1;

	(void)state;
	for (uint64_t i = 0; i <= PTL_MATCH_SHORT; i++)
		append(0, i, 0);
	append(0, 100, 1);
	append(1, 0, 0);
	for (uint32_t i = 1; i <= PTL_MATCH_SHORT; i++)
		ptl_match_unlink(&engine, i); /* by the owner: these stay out */
	engine.undo = &v.r->undo;
	ptl_match_unlink(&engine, 0);
	ptl_match_unlink(&engine, last);
	ptl_match_unlink(&engine, last + 1);
	assert_int_equal(v.pt[0].count, 0);
	assert_int_equal(v.pt[0].tuples, 0);
	ptl_rollback(&v, v.r->shift[0]);
	sound();
	assert_int_equal(v.pt[0].count, 2);
	assert_int_equal(v.pt[0].tuples, 1);
	assert_int_equal(found(0, 0), 0);
	assert_int_equal(found(0, 101), last);
	assert_int_equal(found(1, 0), last + 1);
}

/* A process that had less of the region mapped, and all of it elsewhere than its owner. */
static void what_others_did_is_undone_in_what_came_later(void **state)
{
	struct ptl_engine other = { 0 };
	struct ptl_view w;
	uint32_t mes;

	assert_int_equal(tear_down(state), 0);
	assert_int_equal(create(1 << 16), 0);
	assert_int_equal(ptl_region_map(&w, fd), 0);
	mes = made = w.mes;
	assert_true(mes < 1 << 16);
	assert_true(ptl_grow_slots(&v));
	append(0, 1, 0);
	assert_false(ptl_region_followed(&w));
	assert_int_equal(ptl_region_follow(&w), 0);
	assert_true(ptl_region_followed(&w));
	assert_true(w.mes > mes && w.slot != v.slot);
	ptl_region_store_mapping(&w, 5);
	other = (struct ptl_engine){ .v = &w, .undo = &w.r->undo };
	ptl_match_unlink(&other, mes);
	assert_int_equal(v.pt[0].count, 0);
	assert_int_equal(found(0, 1), PTL_NIL);
	ptl_rollback(&v, v.r->shift[5]);
	assert_int_equal(v.pt[0].count, 1);
	assert_int_equal(found(0, 1), mes);
	ptl_region_unmap(&w);
}

/* Of 4 or 8 bytes, the last that are mapped contiguously, and of every part. */
static void the_last_word_of_a_part_is_put_back(void **state)
{
	(void)state;
	engine.undo = &v.r->undo;
	for (int k = -1; k < PTL_PARTS; k++) {
		char *end = k < 0 ? (char *)v.r + v.size : v.part[k].at + v.part[k].bytes;
		uint32_t *word = (uint32_t *)(void *)(end - 4);
		uint64_t *wide = (uint64_t *)(void *)(end - 8);

		*wide = 0x1111111122222222;
		ptl_set32(&engine, word, 3);
		ptl_rollback(&v, v.r->shift[0]);
		assert_int_equal(*wide, 0x1111111122222222);
		ptl_commit(&engine);
		ptl_set64(&engine, wide, 3);
		ptl_rollback(&v, v.r->shift[0]);
		assert_int_equal(*wide, 0x1111111122222222);
		ptl_commit(&engine);
	}
}

/* The lengths in a header that others may have overwritten are not mapped. */
static void a_part_is_no_longer_than_it_can_be(void **state)
{
	struct ptl_view w;

	assert_int_equal(tear_down(state), 0);
	assert_int_equal(create(1 << 16), 0);
	assert_int_equal(ptl_region_map(&w, fd), 0);
	v.r->part_now[PTL_PART_SLOT] = 1ull << 40;
	atomic_fetch_add(&v.r->grown, 1);
	assert_int_equal(ptl_region_follow(&w), -EPROTO);
	ptl_region_unmap(&w);
	assert_int_equal(ptl_region_map(&w, fd), -EPROTO);
}

/* ---- what cannot grow ------------------------------------------------------------------------ */

static struct rlimit addresses;

/* No more addresses than are in use, and `more`. */
static void limit_addresses(uint64_t more)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f)
		skip();
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	assert_int_equal(getrlimit(RLIMIT_AS, &addresses), 0);
	assert_int_equal(
		setrlimit(RLIMIT_AS, &(struct rlimit){ pages * (rlim_t)sysconf(_SC_PAGESIZE) + more,
						       addresses.rlim_max }),
		0);
}

static void unlimit_addresses(void)
{
	assert_int_equal(setrlimit(RLIMIT_AS, &addresses), 0);
}

/* It is not tried at every call, and said once, but tried again. */
static void a_part_that_cannot_grow_is_left_alone_for_a_while(void **state)
{
	FILE *said = tmpfile();
	int calls = 0, lines = 0, err = dup(2), c;
	bool grew = false;

	(void)state;
	assert_non_null(said);
	limit_addresses(0);
	dup2(fileno(said), 2);
	for (int i = 0; i < 10000; i++)
		grew |= ptl_grow_deliveries(&v);
	unlimit_addresses();
	while (!ptl_grow_deliveries(&v) && calls < 100000)
		calls++;
	dup2(err, 2);
	close(err);
	rewind(said);
	while ((c = getc(said)) != EOF)
		lines += c == '\n';
	fclose(said);
	assert_false(grew);
	assert_int_equal(lines, 1);
	assert_in_range(calls, 1, 10000);
}

/* Of two parts that grow together one could: others have that as its owner has it. */
static void what_grew_of_two_parts_is_told(void **state)
{
	struct ptl_view w;
	uint64_t more;
	bool grew;

	assert_int_equal(tear_down(state), 0);
	assert_int_equal(create(1 << 16), 0);
	assert_int_equal(ptl_region_map(&w, fd), 0);
	more = w.part[PTL_PART_MORE].bytes;
	limit_addresses(2 * more + 65536);
	grew = ptl_grow_slots(&v);
	unlimit_addresses();
	assert_false(grew);
	assert_int_equal(v.part[PTL_PART_MORE].bytes, 2 * more);
	assert_false(ptl_region_followed(&w));
	assert_int_equal(ptl_region_follow(&w), 0);
	assert_int_equal(w.part[PTL_PART_MORE].bytes, 2 * more);
	ptl_region_unmap(&w);
}

/* ---- all of it at random --------------------------------------------------------------------- */

static void nothing_comes_apart(void **state)
{
	uint32_t live[MES], n = 0;

	(void)state;
	srandom(1);
	while (made < MES) {
		uint32_t r = (uint32_t)random(), k = n ? (uint32_t)random() % n : 0;

		if (n && r % 100 < (n > 200 ? 60 : 45)) {
			ptl_match_unlink(&engine, live[k]);
			live[k] = live[--n];
		} else {
			uint32_t base = n && r & 0x100 ? live[k] : PTL_NIL;
			uint32_t pt = base == PTL_NIL ? r >> 9 & 1 : v.slot[base].me.pt_index;

			live[n++] = make(pt, r & 0x1000 ? anyone : from, r >> 13 & 15,
					 1ull << (r >> 17 & 3), base,
					 r & 0x800 ? PTL_INS_BEFORE : PTL_INS_AFTER);
		}
		sound();
	}
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_short_list_is_not_hashed),
		CASE(a_long_list_gives_like_entries_to_the_hash),
		CASE(the_source_is_part_of_what_is_alike),
		CASE(a_tuple_without_entries_gives_its_place_back),
		CASE(more_kinds_than_places_stay_on_the_list),
		CASE(the_hash_grows_with_its_entries),
		CASE(labels_at_the_end_of_their_range_start_anew),
		CASE(any_number_of_entries_fit_between_two),
		CASE(portals_that_share_a_bucket_keep_their_order),
		CASE(a_broken_entry_is_left_alone),
		CASE(a_broken_portal_does_no_harm),
		CASE(looking_ahead_takes_any_message),
		CASE(an_unlinking_can_be_undone),
		CASE(what_others_did_is_undone_in_what_came_later),
		CASE(the_last_word_of_a_part_is_put_back),
		CASE(a_part_is_no_longer_than_it_can_be),
		CASE(a_part_that_cannot_grow_is_left_alone_for_a_while),
		CASE(what_grew_of_two_parts_is_told),
		CASE(nothing_comes_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
