/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Match lists. The specification's walk is linear: the first acceptable entry in list order
 * wins. Here every entry has a label that grows along the list, and the smallest label wins.
 *
 * The first few entries of a portal are on a short ordered list, which is the cheapest to
 * walk. When it is no longer short, entries move to a hash. All entries that ignore the same
 * things form a tuple: the ignored bits, and whether the source's nid and pid are named. The
 * hash key is everything that the tuple does not ignore. New entries of a tuple in the hash
 * follow it there, as long as it has any.
 *
 * A search looks into the hash once for each tuple in use, and walks the short list. A portal
 * has at most PTL_TUPLES tuples at a time; entries of further kinds stay on the list, which
 * grows.
 */
#ifndef PTL_MATCH_H
#define PTL_MATCH_H

#include "portals/engine/undo.h"

/* A request as the target's engine sees it. The id, uid and jid are those of the connection,
 * not those the message claims. */
struct ptl_request {
	uint8_t kind; /* enum ptl_req_kind */
	bool ack;
	uint8_t atomic, element; /* as in struct ptl_start; valid if atomic is set */
	uint32_t pt_index;
	uint32_t ac_index;
	uint32_t peer;       /* the NAL's index of the initiator */
	uint32_t op, op_gen; /* initiator's record, PTL_NIL: none */
	ptl_process_id_t initiator;
	uint32_t uid, jid;
	uint64_t match_bits;
	uint64_t remote_offset;
	uint64_t rlength;
	uint64_t hdr_data;
	const void *data; /* a put with all its bytes here, to be stored now; else NULL */
	bool declined;    /* the inline handler declined it, in ptl_engine_inline */
};

struct ptl_match {
	uint32_t me, md;
	uint64_t offset;
	uint64_t mlength;
};

/* Find the first entry that accepts the request (3.3 section 2.2, figure 2.5). It changes
 * nothing. */
bool ptl_match_find(const struct ptl_view *v, const struct ptl_request *q, struct ptl_match *m);

/* The first entry of the portal that names this source and these bits. NULL if there is none,
 * and also if there are entries in the hash, because these may come before it. */
const struct ptl_me *ptl_match_first(const struct ptl_view *v, uint32_t pt_index,
				     ptl_process_id_t initiator, uint64_t match_bits);

/* A list of up to this many entries is short. */
#define PTL_MATCH_SHORT 8

/* With more entries in the hash than this they are not in the caches. Then it pays to prefetch
 * for the next messages. */
#define PTL_MATCH_FAR 4096

/* A coming search, prefetched in three steps: the buckets, the slots of their first entries,
 * and the next slots where the first entry is another's. Each step needs the results of the
 * step before in the cache. The arguments are hints; they need not be valid. */
struct ptl_ahead {
	uint32_t set; /* tuples to search */
	uint64_t bits;
	const uint32_t *bucket[PTL_TUPLES];
	const struct ptl_me *me[PTL_TUPLES]; /* NULL: none */
};
void ptl_ahead_buckets(const struct ptl_view *v, struct ptl_ahead *a, uint32_t pt_index,
		       ptl_process_id_t initiator, uint64_t match_bits);
void ptl_ahead_entries(const struct ptl_view *v, struct ptl_ahead *a);
void ptl_ahead_others(const struct ptl_view *v, const struct ptl_ahead *a);

/* Owner only. Link the filled entry `me` into its portal before or after `base`. With base
 * PTL_NIL: at the head or tail. */
void ptl_match_link(struct ptl_engine *e, uint32_t me, uint32_t base, ptl_ins_pos_t position);

/* Unlink an entry. Its memory is not freed. */
void ptl_match_unlink(struct ptl_engine *e, uint32_t me);

#endif
