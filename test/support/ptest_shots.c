/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Shots: numbered puts whose takers are compared with a string of letters. Makes tests of matching
 * and access control readable: post entries A, B, C; shoot; expect "BAC-".
 */
#include "ptest.h"

#include <stdlib.h>
#include <string.h>

enum { SHOTS_EQ_SIZE = 8192, SCRATCH = 65536 };

static ptl_handle_eq_t shots_eq = PTL_EQ_NONE;
static char scratch[SCRATCH];
static uint64_t shot, taken, dropped;

ptl_handle_eq_t pt_shots_eq(void)
{
	if (shots_eq == PTL_EQ_NONE)
		shots_eq = pt_eq(SHOTS_EQ_SIZE);
	return shots_eq;
}

ptl_md_t pt_tagged(char tag, ptl_size_t length, unsigned int options)
{
	ptl_md_t md = pt_md(length ? scratch : NULL, length, options | PTL_MD_EVENT_START_DISABLE,
			    pt_shots_eq());

	pt_true(length <= SCRATCH);
	md.user_ptr = (void *)(uintptr_t)tag;
	return md;
}

ptl_handle_md_t pt_entry(ptl_handle_me_t me, char tag)
{
	ptl_md_t md = pt_tagged(tag, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
	ptl_handle_md_t h;

	pt_ok(PtlMDAttach(me, md, PTL_RETAIN, &h));
	return h;
}

void pt_shoot_at(ptl_process_id_t target, ptl_pt_index_t portal, ptl_ac_index_t ac,
		 ptl_match_bits_t bits, ptl_size_t offset, ptl_size_t length)
{
	static char bytes[SCRATCH];
	static ptl_handle_md_t md = PTL_INVALID_HANDLE;

	if (md == PTL_INVALID_HANDLE)
		md = pt_bind(bytes, sizeof(bytes), 0, PTL_EQ_NONE);
	pt_ok(PtlPutRegion(md, 0, length, PTL_NO_ACK_REQ, target, portal, ac, bits, offset, shot));
	shot++;
}

void pt_shoot(ptl_pt_index_t portal, ptl_match_bits_t bits, ptl_size_t length)
{
	pt_shoot_at(pt_target(), portal, 0, bits, 0, length);
}

/* Only starts are ordered: the END events may come in any order. */
static void take_one(const char *tags, bool *seen, const char *file, int line)
{
	ptl_event_t ev;
	uint64_t i;

	do {
		pt_at(file, line, "waiting for a tagged entry's event");
		pt_check_code(PtlEQWait(shots_eq, &ev), PTL_OK, "PtlEQWait", file, line);
	} while (ev.type == PTL_EVENT_UNLINK);
	pt_check_code(ev.type, PTL_EVENT_PUT_END, "event kind", file, line);
	i = ev.hdr_data - taken;
	if (i >= strlen(tags) || seen[i] || (char)(uintptr_t)ev.md.user_ptr != tags[i])
		pt_fail(file, line, "shot %llu of \"%s\" went to '%c'", (unsigned long long)i, tags,
			(char)(uintptr_t)ev.md.user_ptr);
	seen[i] = true;
}

void pt_taken_at(const char *tags, const char *file, int line)
{
	size_t n = strlen(tags);
	bool *seen = calloc(n + 1, sizeof(*seen));
	ptl_event_t ev;

	pt_shots_eq();
	for (size_t i = 0; i < n; i++) {
		if (tags[i] == '-')
			dropped++;
		else
			take_one(tags, seen, file, line);
	}
	free(seen);
	taken += n;
	pt_at(file, line, "waiting for drops");
	pt_wait_drops(dropped);
	while (PtlEQGet(shots_eq, &ev) == PTL_OK)
		if (ev.type != PTL_EVENT_UNLINK)
			pt_fail(file, line, "one event too many: %s in '%c'", pt_kind_name(ev.type),
				(char)(uintptr_t)ev.md.user_ptr);
}
