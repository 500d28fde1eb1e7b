/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The vocabulary of the test bodies: checks that name both sides, shorthands for Portals objects
 * and events, and memory with a pattern that shows misplaced bytes.
 */
#include "ptest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_OF(name, text) #name,
static const char *const code_names[] = { PTL_ERR_TABLE(NAME_OF) };
#undef NAME_OF
#define NAME_OF(name) #name,
static const char *const kind_names[] = { PTL_EVENT_TABLE(NAME_OF) };
#undef NAME_OF

const char *pt_code_name(int code)
{
	return code >= 0 && code < PTL_MAX_ERRNO ? code_names[code] : "no known code";
}

const char *pt_kind_name(ptl_event_kind_t kind)
{
	return (unsigned)kind < PTL_EVENT_MAX ? kind_names[kind] : "no known event kind";
}

void pt_check_code(int got, int want, const char *what, const char *file, int line)
{
	if (got != want)
		pt_fail(file, line, "%s gave %s (%d), not %s", what, pt_code_name(got), got,
			pt_code_name(want));
}

void pt_check_equal(uint64_t a, uint64_t b, const char *ta, const char *tb, const char *file,
		    int line)
{
	if (a != b)
		pt_fail(file, line, "%s is %lld (0x%llx), not %s = %lld (0x%llx)", ta, (long long)a,
			(unsigned long long)a, tb, (long long)b, (unsigned long long)b);
}

void pt_check_memory(const void *a, const void *b, size_t len, const char *what, const char *file,
		     int line)
{
	const unsigned char *x = a, *y = b;

	for (size_t i = 0; i < len; i++)
		if (x[i] != y[i])
			pt_fail(file, line, "%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i,
				len, x[i], y[i]);
}

/* ---- Portals objects ------------------------------------------------------------------------- */

ptl_handle_eq_t pt_eq(ptl_size_t count)
{
	ptl_handle_eq_t eq;

	pt_ok(PtlEQAlloc(pt_ni, count, PTL_EQ_HANDLER_NONE, &eq));
	return eq;
}

ptl_md_t pt_md(void *start, ptl_size_t length, unsigned int options, ptl_handle_eq_t eq)
{
	return (ptl_md_t){ .start = start,
			   .length = length,
			   .threshold = PTL_MD_THRESH_INF,
			   .options = options,
			   .eq_handle = eq };
}

ptl_handle_md_t pt_bind(void *start, ptl_size_t length, unsigned int options, ptl_handle_eq_t eq)
{
	ptl_handle_md_t md;

	pt_ok(PtlMDBind(pt_ni, pt_md(start, length, options, eq), PTL_RETAIN, &md));
	return md;
}

ptl_handle_me_t pt_post(ptl_pt_index_t portal, ptl_match_bits_t bits, ptl_md_t md,
			ptl_unlink_t unlink, ptl_handle_md_t *md_handle)
{
	ptl_handle_me_t me;
	ptl_handle_md_t h;

	pt_ok(PtlMEAttach(pt_ni, portal, pt_any, bits, 0, PTL_UNLINK, PTL_INS_AFTER, &me));
	pt_ok(PtlMDAttach(me, md, unlink, &h));
	if (md_handle)
		*md_handle = h;
	return me;
}

ptl_md_t pt_query(ptl_handle_md_t md)
{
	ptl_md_t old;

	memset(&old, 0, sizeof(old));
	pt_ok(PtlMDUpdate(md, &old, NULL, PTL_EQ_NONE));
	return old;
}

uint64_t pt_status(ptl_sr_index_t reg)
{
	ptl_sr_value_t value = 0;

	pt_ok(PtlNIStatus(pt_ni, reg, &value));
	return value;
}

void pt_wait_drops(uint64_t count)
{
	double end = pt_lived() + pt_patience(10);
	uint64_t now;

	while ((now = pt_status(PTL_SR_DROP_COUNT)) < count) {
		if (pt_lived() > end)
			pt_fail(__FILE__, __LINE__, "%llu requests dropped, waiting for %llu",
				(unsigned long long)now, (unsigned long long)count);
		PtlProgress(pt_ni, 0);
		pt_pause();
	}
	pt_is(now, count);
}

ptl_event_t pt_next_at(ptl_handle_eq_t eq, ptl_event_kind_t kind, const char *file, int line)
{
	ptl_event_t ev;
	int rc;

	memset(&ev, 0, sizeof(ev));
	pt_at(file, line, pt_kind_name(kind));
	rc = PtlEQWait(eq, &ev);
	if (rc != PTL_OK)
		pt_fail(file, line, "waiting for %s: PtlEQWait gave %s", pt_kind_name(kind),
			pt_code_name(rc));
	if (ev.type != kind)
		pt_fail(file, line,
			"event %s (md %#x, rlength %llu, mlength %llu, offset %llu, hdr %llu, "
			"fail %u) instead of %s",
			pt_kind_name(ev.type), ev.md_handle, (unsigned long long)ev.rlength,
			(unsigned long long)ev.mlength, (unsigned long long)ev.offset,
			(unsigned long long)ev.hdr_data, ev.ni_fail_type, pt_kind_name(kind));
	if (ev.ni_fail_type != PTL_NI_OK)
		pt_fail(file, line, "%s failed with ni_fail_type %u", pt_kind_name(kind),
			ev.ni_fail_type);
	return ev;
}

static bool is_end_of(ptl_event_kind_t kind, unsigned int still_wanted)
{
	bool end = kind == PTL_EVENT_GET_END || kind == PTL_EVENT_PUT_END ||
		   kind == PTL_EVENT_GETPUT_END || kind == PTL_EVENT_REPLY_END ||
		   kind == PTL_EVENT_SEND_END;

	return end && (still_wanted & PT_BIT(kind - 1));
}

void pt_await_at(ptl_handle_eq_t eq, unsigned int kinds, ptl_event_t *evs, const char *file,
		 int line)
{
	ptl_event_t ev;

	while (kinds) {
		pt_at(file, line, pt_kind_name((ptl_event_kind_t)__builtin_ctz(kinds)));
		pt_check_code(PtlEQWait(eq, &ev), PTL_OK, "PtlEQWait", file, line);
		if (!(kinds & PT_BIT(ev.type)) || is_end_of(ev.type, kinds))
			pt_fail(file, line,
				"event %s (md %#x, mlength %llu) while waiting for set %#x",
				pt_kind_name(ev.type), ev.md_handle, (unsigned long long)ev.mlength,
				kinds);
		if (ev.ni_fail_type != PTL_NI_OK)
			pt_fail(file, line, "%s failed with ni_fail_type %u", pt_kind_name(ev.type),
				ev.ni_fail_type);
		kinds &= ~PT_BIT(ev.type);
		if (evs)
			evs[ev.type] = ev;
	}
}

void pt_quiet_at(ptl_handle_eq_t eq, const char *file, int line)
{
	ptl_event_t ev;
	int rc;

	pt_at(file, line, "PtlEQGet");
	rc = PtlEQGet(eq, &ev);
	if (rc == PTL_OK || rc == PTL_EQ_DROPPED)
		pt_fail(file, line, "unexpected event %s (md %#x, mlength %llu)",
			pt_kind_name(ev.type), ev.md_handle, (unsigned long long)ev.mlength);
	pt_check_code(rc, PTL_EQ_EMPTY, "PtlEQGet", file, line);
}

/* ---- patterned memory ------------------------------------------------------------------------ */

enum { GUARD = 0xa5, GUARD_BYTES = 32 };

const size_t pt_sizes[] = {
	0,     1,     8,     12,     13,     63,     64,      65,
	2047,  2048,  2049,  4095,   4096,   4097,   10001,   16385,
	32767, 32768, 32769, 262143, 262144, 262145, 1048576, 16777216 + 3,
};
const size_t pt_size_count = sizeof(pt_sizes) / sizeof(pt_sizes[0]);

enum { PATTERN_BLOCK = 4096 }; /* bytes of the pattern that are made at a time */

static size_t block_at(size_t at, size_t len)
{
	return len - at < PATTERN_BLOCK ? len - at : PATTERN_BLOCK;
}

void pt_fill(void *p, size_t len, uint64_t seed, size_t from)
{
	unsigned char block[PATTERN_BLOCK], *b = p;

	for (size_t at = 0; at < len; at += PATTERN_BLOCK) {
		pt_pattern_block(block, block_at(at, len), seed, from + at);
		memcpy(b + at, block, block_at(at, len));
	}
}

void pt_check_pattern(const void *p, size_t len, uint64_t seed, size_t from, const char *file,
		      int line)
{
	unsigned char block[PATTERN_BLOCK];
	const unsigned char *b = p;

	for (size_t at = 0; at < len; at += PATTERN_BLOCK) {
		pt_pattern_block(block, block_at(at, len), seed, from + at);
		if (!memcmp(b + at, block, block_at(at, len)))
			continue;
		for (size_t i = at; i < len; i++)
			if (b[i] != pt_pattern(seed, from + i))
				pt_fail(file, line,
					"byte %zu of %zu is 0x%02x, not 0x%02x (pattern %llu)", i,
					len, b[i], pt_pattern(seed, from + i),
					(unsigned long long)seed);
	}
}

static void *allocate(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		pt_fail(__FILE__, __LINE__, "out of memory for %zu bytes", bytes);
	return p;
}

/* Uneven sizes that add up to length; every fourth entry is empty. */
static size_t piece_size(const struct pt_buf *b, size_t i, size_t left)
{
	size_t even = b->length / b->pieces;

	if (i == b->pieces - 1)
		return left;
	if (i % 4 == 3)
		return 0;
	even = even + (i % 3) * (even / 3) - even / 4;
	return even < left ? even : left;
}

struct pt_buf pt_buf_new(size_t length, size_t pieces)
{
	struct pt_buf b = { .length = length, .pieces = pieces };
	size_t left = length, at = GUARD_BYTES;

	b.block_length = length + GUARD_BYTES * (pieces + 2);
	b.block = allocate(b.block_length);
	memset(b.block, GUARD, b.block_length);
	if (!pieces)
		return b;
	b.iov = allocate(pieces * sizeof(*b.iov));
	for (size_t i = 0; i < pieces; i++) {
		size_t n = piece_size(&b, i, left);

		b.iov[i] = (ptl_md_iovec_t){ b.block + at, n };
		at += n + GUARD_BYTES;
		left -= n;
	}
	return b;
}

void pt_buf_free(struct pt_buf *buf)
{
	free(buf->iov);
	free(buf->block);
	memset(buf, 0, sizeof(*buf));
}

void pt_buf_fill(struct pt_buf *buf, uint64_t seed)
{
	size_t from = 0;

	if (!buf->iov)
		pt_fill(buf->block + GUARD_BYTES, buf->length, seed, 0);
	for (size_t i = 0; i < buf->pieces; i++) {
		pt_fill(buf->iov[i].iov_base, buf->iov[i].iov_len, seed, from);
		from += buf->iov[i].iov_len;
	}
}

void pt_buf_check(const struct pt_buf *buf, size_t off, size_t len, uint64_t seed, size_t from,
		  const char *file, int line)
{
	if (off > buf->length || len > buf->length - off)
		pt_fail(file, line, "check of [%zu, +%zu) in a buffer of %zu", off, len,
			buf->length);
	if (!buf->iov) {
		pt_check_pattern(buf->block + GUARD_BYTES + off, len, seed, from, file, line);
		return;
	}
	for (size_t i = 0; i < buf->pieces && len; i++) {
		size_t n = buf->iov[i].iov_len;
		const unsigned char *p = buf->iov[i].iov_base;

		if (off >= n) {
			off -= n;
			continue;
		}
		n -= off;
		n = n < len ? n : len;
		pt_check_pattern(p + off, n, seed, from, file, line);
		from += n;
		len -= n;
		off = 0;
	}
}

static void guard_at(const struct pt_buf *buf, size_t at, size_t n, const char *file, int line)
{
	for (size_t i = at; i < at + n; i++)
		if (buf->block[i] != GUARD)
			pt_fail(file, line,
				"byte at %zu of a block of %zu, outside the region, was "
				"overwritten with 0x%02x",
				i, buf->block_length, buf->block[i]);
}

void pt_buf_guarded_at(const struct pt_buf *buf, const char *file, int line)
{
	size_t at = 0;

	for (size_t i = 0; i < buf->pieces; i++) {
		guard_at(buf, at, GUARD_BYTES, file, line);
		at += GUARD_BYTES + buf->iov[i].iov_len;
	}
	if (!buf->iov) {
		guard_at(buf, 0, GUARD_BYTES, file, line);
		at = GUARD_BYTES + buf->length;
	}
	guard_at(buf, at, buf->block_length - at, file, line);
}

ptl_md_t pt_buf_md(const struct pt_buf *buf, unsigned int options, ptl_handle_eq_t eq)
{
	if (buf->iov)
		return pt_md(buf->iov, buf->pieces, options | PTL_MD_IOVEC, eq);
	return pt_md(buf->block + GUARD_BYTES, buf->length, options, eq);
}

uint64_t pt_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}
