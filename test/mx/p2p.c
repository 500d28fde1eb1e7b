/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Messages of every kind between two processes, and to oneself: lengths at every threshold, posted
 * before, after and in the handler; truncation, order, masks, context ids, credit.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mx_check.h"

static const uint32_t lengths[] = { 0,    1,     32,    33,    128,   129,     4096,
				    4097, 32768, 32769, 65536, 65537, 1 << 20, 16 << 20 };
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]), MOST = 16 << 20 };

static unsigned char *out, *in;

static void check_received(mx_status_t st, uint32_t length, uint64_t match,
			   mx_endpoint_addr_t source)
{
	mxc_is(st.code, MX_STATUS_SUCCESS);
	mxc_is(st.msg_length, length);
	mxc_is(st.xfer_length, length);
	mxc_is(st.match_info, match);
	mxc_true(!memcmp(&st.source, &source, sizeof(source)));
}

/* Sends one message of each length from 0 to 1, or to itself. */
static void exchange(bool sync, bool posted, bool self)
{
	mx_endpoint_addr_t to = self ? mxc_self : mxc_peer;

	for (unsigned int i = 0; i < LENGTHS; i++) {
		mx_request_t s = NULL, r = NULL;
		uint64_t match = 0x100 + i;
		uint32_t n = lengths[i];

		memset(in, 0xee, n + 1);
		mxc_fill(out, n, i);
		if (posted && (mxc_rank || self))
			r = mxc_irecv(in, n, match, MX_MATCH_MASK_NONE);
		mxc_barrier();
		if (!mxc_rank || self) {
			s = sync ? mxc_issend(out, n, to, match) : mxc_isend(out, n, to, match);
			if (!posted && !self)
				mx_progress(mxc_ep);
		}
		if (!posted && (mxc_rank || self)) {
			mx_status_t st;
			uint32_t result = 0;

			mxc_until(mxc_ep, mx_iprobe(mxc_ep, match, MX_MATCH_MASK_NONE, &st,
						    &result) == MX_SUCCESS &&
						  result);
			mxc_is(st.msg_length, n);
			mxc_is(st.xfer_length, n);
			r = mxc_irecv(in, n, match, MX_MATCH_MASK_NONE);
		}
		if (r) {
			check_received(mxc_wait(r), n, match, to);
			mxc_holds(in, n, i);
			mxc_is(in[n], 0xee);
		}
		if (s)
			check_received(mxc_wait(s), n, match, to);
	}
}

static void each_length_to_a_posted_receive(void)
{
	exchange(false, true, false);
}
static void each_length_before_its_receive(void)
{
	exchange(false, false, false);
}
static void each_length_synchronous_to_a_posted_receive(void)
{
	exchange(true, true, false);
}
static void each_length_synchronous_before_its_receive(void)
{
	exchange(true, false, false);
}
static void each_length_to_oneself_posted(void)
{
	exchange(false, true, true);
}
static void each_length_to_oneself_unexpected(void)
{
	exchange(false, false, true);
}
static void each_length_to_oneself_synchronous(void)
{
	exchange(true, true, true);
}

/* Segments of odd lengths, some empty, some NULL. */
static uint32_t cut(mx_segment_t *segs, unsigned char *memory, uint32_t length, uint32_t step)
{
	uint32_t n = 0, at = 0;

	while (at < length && n < 255) {
		uint32_t bytes = n % 5 == 4 ? 0 : 1 + (n * step) % (2 * length / 256 + 3);

		if (bytes > length - at)
			bytes = length - at;
		segs[n] = (mx_segment_t){ bytes ? memory + at : NULL, bytes };
		at += bytes;
		n++;
	}
	segs[n++] = (mx_segment_t){ memory + at, length - at };
	return n;
}

static void many_segments_on_both_sides(void)
{
	for (unsigned int i = 0; i < LENGTHS; i++) {
		mx_segment_t segs[256];
		uint32_t n = lengths[i], count;
		mx_request_t r;
		mx_status_t st;

		mxc_fill(out, n, i + 50);
		memset(in, 0, n);
		if (!mxc_rank) {
			count = cut(segs, out, n, 7);
			mxc_ok(mx_isend(mxc_ep, segs, count, mxc_peer, 5, NULL, &r));
		} else {
			count = cut(segs, in, n, 11);
			mxc_ok(mx_irecv(mxc_ep, segs, count, 5, MX_MATCH_MASK_NONE, NULL, &r));
		}
		memset(segs, 0, sizeof(segs)); /* the list was copied */
		st = mxc_wait(r);
		mxc_is(st.code, MX_STATUS_SUCCESS);
		mxc_is(st.xfer_length, n);
		if (mxc_rank)
			mxc_holds(in, n, i + 50);
		mxc_barrier();
	}
}

/* A short send ends without its receiver, also when the partner has no room for its bytes. */
static void short_sends_end_before_their_receives(void)
{
	static const uint32_t n[] = { 20480, 4096, 32768, 1 };
	enum { SENDS = sizeof(n) / sizeof(n[0]) };
	mx_endpoint_t ep;
	mx_endpoint_addr_t addr;
	mx_segment_t seg;
	mx_request_t r;
	mx_status_t st;
	uint32_t done;

	mxc_ok(mx_open_endpoint(0, 100 + (uint32_t)mxc_rank, MXC_KEY, NULL, 0, &ep));
	mxc_ok(mx_get_endpoint_addr(ep, &addr));
	for (unsigned int i = 0; i < SENDS; i++) {
		mxc_fill(out, n[i], i + 9);
		seg = (mx_segment_t){ out, n[i] };
		mxc_ok(mx_isend(ep, &seg, 1, addr, i, NULL, &r));
		mxc_ok(mx_wait(ep, &r, 10000, &st, &done));
		mxc_true(done);
		check_received(st, n[i], i, addr);
		memset(out, 0, n[i]);
	}
	for (unsigned int i = 0; i < SENDS; i++) {
		seg = (mx_segment_t){ in, n[i] };
		mxc_ok(mx_irecv(ep, &seg, 1, i, MX_MATCH_MASK_NONE, NULL, &r));
		mxc_ok(mx_wait(ep, &r, 10000, &st, &done));
		mxc_true(done);
		check_received(st, n[i], i, addr);
		mxc_holds(in, n[i], i + 9);
	}
	mxc_ok(mx_close_endpoint(ep));
}

/* The bytes of a short send that is over are read as its endpoint closes. */
static void short_sends_reach_a_partner_although_their_endpoint_closes(void)
{
	mx_segment_t seg = { out, 30000 };
	mx_endpoint_addr_t addr;
	mx_endpoint_t ep;
	mx_request_t r;
	mx_status_t st;
	uint32_t done;

	mxc_barrier();
	if (mxc_rank) {
		usleep(100000);
		st = mxc_wait(mxc_irecv(in, 30000, 77, MX_MATCH_MASK_NONE));
		mxc_is(st.code, MX_STATUS_SUCCESS);
		mxc_holds(in, 30000, 4);
	} else {
		mxc_fill(out, 30000, 4);
		mxc_ok(mx_open_endpoint(0, 102, MXC_KEY, NULL, 0, &ep));
		mxc_ok(mx_connect(ep, mxc_nic, 1, MXC_KEY, 10000, &addr));
		mxc_ok(mx_isend(ep, &seg, 1, addr, 77, NULL, &r));
		mxc_ok(mx_wait(ep, &r, 10000, &st, &done));
		mxc_true(done);
		mxc_ok(mx_close_endpoint(ep));
	}
	mxc_barrier();
}

static void truncate_to(uint32_t length, uint32_t room, bool sync, bool posted)
{
	mx_request_t r = NULL;
	mx_status_t st;

	memset(in, 0xee, (size_t)room + 1);
	mxc_fill(out, length, 3);
	if (mxc_rank && posted)
		r = mxc_irecv(in, room, 9, MX_MATCH_MASK_NONE);
	mxc_barrier();
	if (!mxc_rank)
		r = sync ? mxc_issend(out, length, mxc_peer, 9)
			 : mxc_isend(out, length, mxc_peer, 9);
	else if (!posted)
		r = mxc_irecv(in, room, 9, MX_MATCH_MASK_NONE);
	st = mxc_wait(r);
	mxc_is(st.msg_length, length);
	if (mxc_rank) {
		mxc_is(st.code, MX_STATUS_TRUNCATED);
		mxc_is(st.xfer_length, room);
		mxc_holds(in, room, 3);
		mxc_is(in[room], 0xee);
	} else if (sync || length > 32768) {
		mxc_is(st.code, MX_STATUS_TRUNCATED);
		mxc_is(st.xfer_length, room);
	} else {
		mxc_is(st.code, MX_STATUS_SUCCESS);
		mxc_is(st.xfer_length, length);
	}
	mxc_barrier();
}

static void truncation_shows_on_both_sides(void)
{
	for (unsigned int i = 1; i < LENGTHS; i++)
		for (int how = 0; how < 4; how++) {
			truncate_to(lengths[i], lengths[i] / 2, how & 1, how & 2);
			truncate_to(lengths[i], 0, how & 1, how & 2);
		}
}

static void messages_match_in_the_order_sent(void)
{
	enum { ROUNDS = 30 };
	static const uint32_t n[] = { 10, 70000, 0, 40000, 5000, 100000, 32768, 1, 65537 };
	enum { KINDS = sizeof(n) / sizeof(n[0]) };
	mx_request_t r[ROUNDS * KINDS];

	for (unsigned int i = 0; i < ROUNDS * KINDS; i++) {
		uint32_t length = n[i % KINDS];

		if (!mxc_rank)
			r[i] = i % 4 == 3 ? mxc_issend(out + i, length, mxc_peer, 77)
					  : mxc_isend(out + i, length, mxc_peer, 77);
		else
			r[i] = mxc_irecv(in, i % 3 ? 100000 : 200000, 77, MX_MATCH_MASK_NONE);
	}
	for (unsigned int i = 0; i < ROUNDS * KINDS; i++) {
		mx_status_t st = mxc_wait(r[i]);

		mxc_is(st.msg_length, n[i % KINDS]);
		mxc_is(st.code, MX_STATUS_SUCCESS);
	}
}

static void short_and_long_receives_take_turns(void)
{
	enum { COUNT = 60 };
	mx_request_t r[COUNT];

	/* all can take any message: the older one must, in the library or in Portals */
	for (unsigned int i = 0; mxc_rank && i < COUNT; i++)
		r[i] = mxc_irecv(in + i * 100000, i % 3 ? 100000 : 1000, 0, 0);
	mxc_barrier();
	for (unsigned int i = 0; i < COUNT; i++) {
		uint32_t length = i % 3 ? (i % 3 == 1 ? 99999 : 40000) : 999;

		if (!mxc_rank) {
			mxc_fill(out, length, i);
			mxc_is(mxc_wait(mxc_isend(out, length, mxc_peer, i)).code,
			       MX_STATUS_SUCCESS);
		} else {
			mx_status_t st = mxc_wait(r[i]);

			check_received(st, length, i, mxc_peer);
			mxc_holds(in + i * 100000, length, i);
		}
	}
}

static void masks_have_holes(void)
{
	mx_request_t r[4];
	mx_status_t st;

	if (mxc_rank) {
		mx_request_t bad;
		mx_segment_t s = { in, 4 };

		mxc_is(mx_irecv(mxc_ep, &s, 1, 3, 1, NULL, &bad), MX_BAD_MATCH_MASK);
		r[0] = mxc_irecv(in, 4, 0x00a0000000000001, 0xf0f000000000000f);
		r[1] = mxc_irecv(in + 4, 4, 0, 0);
		r[2] = mxc_irecv(in + 8, 4, 0x1111000000000000, 0xffff000000000000);
		r[3] = mxc_irecv(in + 12, 4, 0x8000000000000000, 0x8000000000000000);
		mxc_barrier();
		st = mxc_wait(r[0]);
		mxc_is(st.match_info, 0x0fa0123456789a01);
		st = mxc_wait(r[1]);
		mxc_is(st.match_info, 0x1111000000000007);
		st = mxc_wait(r[2]);
		mxc_is(st.match_info, 0x1111222233334444);
		st = mxc_wait(r[3]);
		mxc_is(st.match_info, UINT64_MAX);
	} else {
		mxc_barrier();
		mxc_wait(mxc_isend(out, 4, mxc_peer, 0x1111000000000007));
		mxc_wait(mxc_isend(out, 4, mxc_peer, 0x0fa0123456789a01));
		mxc_wait(mxc_isend(out, 4, mxc_peer, 0x1111222233334444));
		mxc_wait(mxc_isend(out, 4, mxc_peer, UINT64_MAX));
	}
}

static void a_sleeping_receiver_loses_nothing(void)
{
	enum { COUNT = 10000, LENGTH = 32768 };
	static mx_request_t r[COUNT];

	if (!mxc_rank) {
		for (unsigned int i = 0; i < COUNT; i++) {
			memcpy(out + i * 8, &i, sizeof(i));
			r[i] = mxc_isend(out + i * 8, LENGTH, mxc_peer, 4);
		}
		mxc_barrier(); /* until then the receiver calls nothing */
		for (unsigned int i = 0; i < COUNT; i++)
			mxc_is(mxc_wait(r[i]).code, MX_STATUS_SUCCESS);
	} else {
		mxc_barrier();
		for (unsigned int i = 0; i < COUNT; i++) {
			unsigned int number;

			check_received(mxc_wait(mxc_irecv(in, LENGTH, 4, MX_MATCH_MASK_NONE)),
				       LENGTH, 4, mxc_peer);
			memcpy(&number, in, sizeof(number));
			mxc_is(number, i);
		}
	}
}

static void unexpected_messages_are_found_behind_others(void)
{
	enum { COUNT = 3000 };

	if (!mxc_rank) {
		for (unsigned int i = 0; i < COUNT; i++) {
			mx_segment_t s = { &i, sizeof(i) };

			mxc_ok(mx_isend(mxc_ep, &s, 1, mxc_peer, i, NULL, NULL));
			mxc_wait(mxc_isend(&i, sizeof(i), mxc_peer, 1 << 20 | i));
		}
	} else {
		for (unsigned int i = COUNT; i-- > 0;) {
			unsigned int got = 0;

			mxc_wait(mxc_irecv(&got, sizeof(got), 1 << 20 | i, MX_MATCH_MASK_NONE));
			mxc_is(got, i);
		}
		for (unsigned int i = 0; i < COUNT; i++) {
			unsigned int got = 0;
			mx_status_t st = mxc_wait(mxc_irecv(&got, sizeof(got), 0, 0));

			mxc_is(got, i);
			mxc_is(st.match_info, i);
		}
	}
}

/* 64 MiB, to a posted receive and before its receive. */
static void very_long_messages_arrive(void)
{
	const uint32_t length = 64 << 20;
	unsigned char *bytes = malloc(length);
	mx_request_t r = NULL;

	mxc_true(bytes != NULL);
	for (unsigned int posted = 0; posted < 2; posted++) {
		mxc_fill(bytes, length, mxc_rank ? 0 : posted + 1);
		if (mxc_rank && posted)
			r = mxc_irecv(bytes, length, 8, MX_MATCH_MASK_NONE);
		mxc_barrier();
		if (!mxc_rank)
			r = mxc_isend(bytes, length, mxc_peer, 8);
		else if (!posted)
			r = mxc_irecv(bytes, length, 8, MX_MATCH_MASK_NONE);
		check_received(mxc_wait(r), length, 8, mxc_peer);
		mxc_holds(bytes, length, posted + 1);
	}
	free(bytes);
}

static void both_flood_each_other(void)
{
	enum { COUNT = 2000 };
	static mx_request_t s[COUNT], r[COUNT];

	for (unsigned int i = 0; i < COUNT; i++)
		s[i] = mxc_isend(out, i % 7 == 6 ? 50000 : i % 300, mxc_peer, i);
	for (unsigned int i = 0; i < COUNT; i++)
		r[i] = mxc_irecv(in, 50000, i, MX_MATCH_MASK_NONE);
	for (unsigned int i = 0; i < COUNT; i++) {
		mxc_is(mxc_wait(s[i]).code, MX_STATUS_SUCCESS);
		mxc_is(mxc_wait(r[i]).msg_length, i % 7 == 6 ? 50000 : i % 300);
	}
}

static void a_receive_buffer_is_sent_on(void)
{
	mx_status_t st;

	for (unsigned int i = 0; i < 20; i++) {
		uint32_t n = 200000 + i;

		if (!mxc_rank) {
			mxc_fill(out, n, i);
			mxc_wait(mxc_isend(out, n, mxc_peer, 1));
			st = mxc_wait(mxc_irecv(in, n, 2, MX_MATCH_MASK_NONE));
			mxc_is(st.xfer_length, n);
			mxc_holds(in, n, i);
		} else {
			mxc_wait(mxc_irecv(in, n, 1, MX_MATCH_MASK_NONE));
			mxc_wait(mxc_isend(in, n, mxc_peer, 2));
		}
	}
}

/* The receiver does nothing until the sender has seen the end of its message. */
static void a_long_message_lands_while_the_receiver_computes(void)
{
	mx_request_t r = NULL;

	if (mxc_rank)
		r = mxc_irecv(in, 1 << 20, 6, MX_MATCH_MASK_NONE);
	mxc_barrier();
	if (!mxc_rank) {
		mxc_fill(out, 1 << 20, 6);
		mxc_is(mxc_wait(mxc_isend(out, 1 << 20, mxc_peer, 6)).code, MX_STATUS_SUCCESS);
	}
	mxc_barrier();
	if (r) {
		check_received(mxc_wait(r), 1 << 20, 6, mxc_peer);
		mxc_holds(in, 1 << 20, 6);
	}
}

static const struct mxc_case cases[] = {
	MXC_CASE(each_length_to_a_posted_receive),
	MXC_CASE(each_length_before_its_receive),
	MXC_CASE(each_length_synchronous_to_a_posted_receive),
	MXC_CASE(each_length_synchronous_before_its_receive),
	MXC_CASE(each_length_to_oneself_posted),
	MXC_CASE(each_length_to_oneself_unexpected),
	MXC_CASE(each_length_to_oneself_synchronous),
	MXC_CASE(many_segments_on_both_sides),
	MXC_CASE(short_sends_end_before_their_receives),
	MXC_CASE(short_sends_reach_a_partner_although_their_endpoint_closes),
	MXC_CASE(truncation_shows_on_both_sides),
	MXC_CASE(messages_match_in_the_order_sent),
	MXC_CASE(short_and_long_receives_take_turns),
	MXC_CASE(masks_have_holes),
	MXC_CASE(a_sleeping_receiver_loses_nothing),
	MXC_CASE(unexpected_messages_are_found_behind_others),
	MXC_CASE(very_long_messages_arrive),
	MXC_CASE(both_flood_each_other),
	MXC_CASE(a_receive_buffer_is_sent_on),
	MXC_CASE(a_long_message_lands_while_the_receiver_computes),
};

int main(int argc, char **argv)
{
	out = malloc(MOST + 1);
	in = malloc(MOST + 1);
	mxc_start(argc, argv);
	MXC_RUN(cases);
	free(out);
	free(in);
	return mxc_end();
}
