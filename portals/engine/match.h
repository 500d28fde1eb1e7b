/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Match lists. The specification's walk is linear: the first acceptable entry in list order
 * wins. Here every entry has a label that grows along the list. The first few entries of a
 * portal are on a short ordered list, which is cheaper to walk than anything else. When it is no
 * longer short, the entries that leave the same things open (the bits they ignore, and whether
 * they name the source's nid and pid: their tuple) go to a hash by what they do not leave open,
 * and all like them follow as long as there are any. A search looks once into the hash for each
 * tuple in use and walks the short list; the smallest label wins. A portal has PTL_TUPLES of
 * them at a time; with more kinds of entries than that the list grows.
 */
#ifndef PTL_MATCH_H
#define PTL_MATCH_H

#include "portals/engine/undo.h"

/* What a request says, as the target's engine sees it. The id, uid and jid are those of the
 * connection, not what the message claims. */
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
	const void *data; /* a put all of whose bytes are here, to be moved at once; else NULL */
	bool offered;     /* ptl_engine_inline: declined */
};

struct ptl_match {
	uint32_t me, md;
	uint64_t offset;
	uint64_t mlength;
};

/* The first entry that accepts the request (3.3 section 2.2, figure 2.5), changing nothing. */
bool ptl_match_find(const struct ptl_view *v, const struct ptl_request *q, struct ptl_match *m);

/* The first entry of the portal that names this source and these bits; NULL also if there are
 * entries in the hash, which may come before it. */
const struct ptl_me *ptl_match_first(const struct ptl_view *v, uint32_t pt_index,
				     ptl_process_id_t initiator, uint64_t match_bits);

/* A list of up to so many entries is short. */
#define PTL_MATCH_SHORT 8

/* With more entries in the hash than this they are not in the caches, and it pays to ask for
 * what the next messages need before their turn. */
#define PTL_MATCH_FAR 4096

/* A coming search, for which the memory is asked in three steps: the buckets, the slots of their
 * first entries, and those of the next where the first is another's. Each needs what the one
 * before asked for to have arrived. Of the arguments nothing needs to be true. */
struct ptl_ahead {
	uint32_t set; /* tuples to be looked at */
	uint64_t bits;
	const uint32_t *bucket[PTL_TUPLES];
	const struct ptl_me *me[PTL_TUPLES]; /* NULL: none */
};
void ptl_ahead_buckets(const struct ptl_view *v, struct ptl_ahead *a, uint32_t pt_index,
		       ptl_process_id_t initiator, uint64_t match_bits);
void ptl_ahead_entries(const struct ptl_view *v, struct ptl_ahead *a);
void ptl_ahead_others(const struct ptl_view *v, const struct ptl_ahead *a);

/* Owner only. Puts the filled entry `me` on its portal: before or after `base`, or with base
 * PTL_NIL at the head or tail. */
void ptl_match_link(struct ptl_engine *e, uint32_t me, uint32_t base, ptl_ins_pos_t position);

/* Takes it off; the entry's memory is not freed. */
void ptl_match_unlink(struct ptl_engine *e, uint32_t me);

#endif
