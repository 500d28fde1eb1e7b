/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The reference model of matching: a plain list of entries per portal and the walk over it as the
 * report words it. Slow and obvious on purpose.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <portals3.h>

enum { MODEL_PORTALS = 3, MODEL_LONGEST = 64 };

struct m_md {
	unsigned char memory[MODEL_LONGEST]; /* what the library writes to */
	unsigned char shadow[MODEL_LONGEST]; /* what should be there */
	ptl_handle_md_t handle;
	unsigned int options;
	size_t length, local, max_size;
	int threshold;
	bool active;
	ptl_unlink_t unlink;
	struct m_md *free_next;
};

struct m_me {
	struct m_me *prev, *next; /* one list; entries of a portal keep their order in it */
	int id;
	ptl_handle_me_t handle;
	ptl_pt_index_t portal;
	ptl_match_bits_t bits, ignore;
	ptl_process_id_t from;
	ptl_unlink_t unlink;
	struct m_md *md;
};

/* The bits that entries ignore, and the bits of entries and requests. */
enum model_masks {
	MASKS_FEW,  /* mostly nothing, some the low bits, a few all */
	MASKS_MPI,  /* bits in fields, of which whole ones are ignored */
	MASKS_MANY, /* any few of the 64 bits, so that hardly two entries are alike */
	MASKS_KINDS
};

struct model {
	struct m_me *first, *last;
	struct m_md *free_mds;
	uint64_t entries, aim; /* how many there are, and how many there should be about */
	uint64_t spread;       /* of match bits */
	enum model_masks masks;
	bool oversubscribed; /* most entries are put at one place, before the last */
	int ids;
};

enum request_kind { REQUEST_PUT, REQUEST_GET, REQUEST_GETPUT };

struct request {
	enum request_kind kind;
	ptl_pt_index_t portal;
	ptl_match_bits_t bits;
	ptl_size_t offset;
	size_t length;
	ptl_hdr_data_t hdr;
	bool ack;
};

/* The result of a request: md is NULL when it is dropped. */
struct verdict {
	struct m_me *me;
	struct m_md *md;
	size_t offset, mlength;
	int threshold; /* afterwards */
	bool unlinks, me_unlinks;
};

struct model *model_new(uint64_t seed);
void model_delete(struct model *m);

/* The walk; counts the operation on the MD that takes it. */
struct verdict model_request(struct model *m, const struct request *r);
/* Takes out what the verdict unlinked. */
void model_settle(struct model *m, const struct verdict *v);

/* Adds a copy of the entry: beside base, or at the head or tail of its portal. */
struct m_me *model_insert(struct model *m, const struct m_me *me, struct m_me *base,
			  ptl_ins_pos_t where);
/* Frees the entry and its MD. */
void model_remove(struct model *m, struct m_me *me);
struct m_md *model_new_md(struct model *m);
void model_free_md(struct model *m, struct m_md *md);
/* As creation and PtlMDUpdate do it. */
void model_set_md(struct m_md *md, const ptl_md_t *d);

struct m_me *model_pick_me(struct model *m, uint64_t *random);
ptl_match_bits_t model_random_bits(struct model *m, uint64_t *random);
ptl_match_bits_t model_random_ignore(struct model *m, uint64_t *random);
/* The entry beside which the next one goes, NULL: none. */
struct m_me *model_pick_base(struct model *m, uint64_t *random, ptl_ins_pos_t *where);
const char *model_request_name(enum request_kind kind);

#endif
