/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Matching in the library. Receives are filed by their mask: those with one mask are in a hash
 * table by their match value, so ten thousand of them cost no more than one. More than eight masks
 * share a list. Messages are filed by their match value for receives that leave nothing open; other
 * receives look through them in order.
 */
#include <stdlib.h>

#include "mx_shim/mx_core.h"

uint32_t mxs_hash(uint64_t bits)
{
	return (uint32_t)((bits ^ bits >> 32) * 0x9e3779b97f4a7c15u >> 40) & (MXS_BUCKETS - 1);
}

static struct mxs_link *new_buckets(void)
{
	struct mxs_link *b = malloc(MXS_BUCKETS * sizeof(*b));

	for (uint32_t i = 0; b && i < MXS_BUCKETS; i++)
		mxs_list_init(&b[i]);
	return b;
}

/* ---- receives -------------------------------------------------------------------------------- */

/* The class for a mask; MXS_CLASSES: there is none. */
static uint32_t class_for(struct mxs_endpoint *ep, uint64_t mask)
{
	uint32_t unused = MXS_CLASSES;

	for (uint32_t i = 0; i < ep->classes; i++) {
		if (ep->class[i].mask == mask)
			return i;
		if (!ep->class[i].count)
			unused = i;
	}
	if (unused == MXS_CLASSES) {
		if (ep->classes == MXS_CLASSES)
			return unused;
		unused = ep->classes;
		if (!ep->class[unused].bucket)
			ep->class[unused].bucket = new_buckets();
		if (!ep->class[unused].bucket)
			return MXS_CLASSES;
		ep->classes++;
	}
	ep->class[unused].mask = mask;
	return unused;
}

void mxs_posted_add(struct mxs_endpoint *ep, struct mxs_request *r)
{
	struct mxs_link *list = &ep->other_masks;

	r->state = MXS_POSTED;
	r->age = ++ep->age;
	r->class = class_for(ep, r->mask);
	if (r->class < MXS_CLASSES) {
		ep->class[r->class].count++;
		list = &ep->class[r->class].bucket[mxs_hash(r->status.match_info)];
	}
	ep->posted++;
	mxs_list_append(list, &r->link);
}

void mxs_posted_remove(struct mxs_request *r)
{
	struct mxs_endpoint *ep = r->ep;

	if (r->class < MXS_CLASSES)
		ep->class[r->class].count--;
	ep->posted--;
	mxs_list_remove(&r->link);
}

/* The first receive of a list that matches. */
static struct mxs_request *first_matching_receive(const struct mxs_link *list, uint64_t match)
{
	for (const struct mxs_link *l = list->next; l != list; l = l->next) {
		struct mxs_request *r = MXS_OF(l, struct mxs_request, link);

		if ((match & r->mask) == r->status.match_info)
			return r;
	}
	return NULL;
}

struct mxs_request *mxs_posted_match(struct mxs_endpoint *ep, uint64_t match)
{
	struct mxs_request *oldest, *r;

	if (!ep->posted)
		return NULL;
	oldest = first_matching_receive(&ep->other_masks, match);
	for (uint32_t i = 0; i < ep->classes; i++) {
		const struct mxs_class *c = &ep->class[i];

		if (!c->count)
			continue;
		r = first_matching_receive(&c->bucket[mxs_hash(match & c->mask)], match);
		if (r && (!oldest || r->age < oldest->age))
			oldest = r;
	}
	if (oldest)
		mxs_posted_remove(oldest);
	return oldest;
}

/* ---- messages -------------------------------------------------------------------------------- */

void mxs_unexp_add(struct mxs_endpoint *ep, struct mxs_unexp *u)
{
	mxs_list_init(&u->bucket);
	if (!ep->unexp_bucket)
		ep->unexp_bucket = new_buckets();
	if (ep->unexp_bucket)
		mxs_list_append(&ep->unexp_bucket[mxs_hash(u->match)], &u->bucket);
	mxs_list_append(&ep->unexpected, &u->all);
	ep->unexps++;
	ep->completions++; /* for threads in mx_probe */
}

void mxs_unexp_remove(struct mxs_endpoint *ep, struct mxs_unexp *u)
{
	mxs_list_remove(&u->bucket);
	mxs_list_remove(&u->all);
	ep->unexps--;
}

struct mxs_unexp *mxs_unexp_find(struct mxs_endpoint *ep, uint64_t match, uint64_t mask)
{
	if (!ep->unexps)
		return NULL;
	if (mask == MX_MATCH_MASK_NONE && ep->unexp_bucket) {
		struct mxs_link *list = &ep->unexp_bucket[mxs_hash(match)];

		for (struct mxs_link *l = list->next; l != list; l = l->next)
			if (MXS_OF(l, struct mxs_unexp, bucket)->match == match)
				return MXS_OF(l, struct mxs_unexp, bucket);
		return NULL;
	}
	for (struct mxs_link *l = ep->unexpected.next; l != &ep->unexpected; l = l->next) {
		struct mxs_unexp *u = MXS_OF(l, struct mxs_unexp, all);

		if ((u->match & mask) == match)
			return u;
	}
	return NULL;
}

void mxs_unexp_free(struct mxs_endpoint *ep, struct mxs_unexp *u)
{
	if (u->h.kind <= MXS_SYNC)
		ep->kept_bytes -= u->h.length;
	if (u->kept)
		mxs_credit_bytes(u->partner, u->kept);
	free(u);
}
