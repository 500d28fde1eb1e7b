/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Registered memory. A memory descriptor is registered as a whole when as many bytes have gone
 * through it as it is long, and stays registered for its lifetime: a program that keeps a
 * descriptor has said that its memory stays. The memory of a descriptor for one operation is
 * registered for that operation only. So nothing is remembered of memory that may be unmapped
 * and mapped anew.
 *
 * No call tells when a descriptor is gone, because a peer may have unlinked it in our region.
 * So every use compares, and rdma_reg_check() looks now and then.
 */
#include <errno.h>
#include <stdlib.h>

#include "nal/net/rdma/rdma.h"

#define MOST 1024u /* records */

static struct rdma_kept **bucket(struct rdma *d, uint32_t md)
{
	return &d->kept[md % RDMA_KEPT_BUCKETS];
}

/* Does the descriptor still exist, with the same memory? */
static bool same_registration(const struct rdma *d, const struct rdma_kept *k)
{
	const struct ptl_view *v = &d->net.ni->view;
	const struct ptl_md *md = &v->slot[k->md].md;

	return md->state & PTL_OBJ_LIVE && v->more[k->md].filled == k->filled;
}

/* Release the unused ones whose descriptor is gone; with `all`, all unused ones. */
static void drop_registration(struct rdma *d, struct rdma_kept **at, bool all)
{
	struct rdma_kept *k;

	while ((k = *at)) {
		if (k->users || (!all && same_registration(d, k))) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		if (k->mr.handle) {
			d->link->unreg(d->state, &k->mr);
			d->full = false;
		}
		free(k);
		d->nkept--;
	}
}

static void drop_all(struct rdma *d, bool all)
{
	for (uint32_t i = 0; i < RDMA_KEPT_BUCKETS && d->nkept; i++)
		drop_registration(d, &d->kept[i], all);
}

bool rdma_reg_check(struct rdma *d)
{
	drop_all(d, false);
	return d->nkept;
}

void rdma_reg_free(struct rdma *d)
{
	drop_all(d, true);
}

int rdma_reg(struct rdma *d, void *base, size_t len, enum rdma_use use, struct rdma_mr *mr)
{
	int err = d->link->reg(d->state, base, len, use, d->nkept, mr);

	if (err < 0 && d->nkept) {
		drop_all(d, true);
		err = d->link->reg(d->state, base, len, use, false, mr);
	}
	return err;
}

void rdma_unreg(struct rdma *d, struct rdma_mr *mr)
{
	if (mr->kept) {
		mr->kept->users--;
	} else if (mr->handle) {
		d->link->unreg(d->state, mr);
		d->full = false;
	}
	mr->handle = NULL;
	mr->kept = NULL;
}

/* The record of a descriptor that exists for more than one operation. NULL: it has none and
 * gets none. */
static struct rdma_kept *record_of_use(struct rdma *d, uint32_t i, enum rdma_use use)
{
	const struct ptl_view *v = &d->net.ni->view;
	const struct ptl_md *md = &v->slot[i].md;
	struct rdma_kept *k;

	for (k = *bucket(d, i); k; k = k->next)
		if (k->md == i && k->use == use && same_registration(d, k))
			return k;
	/* a last operation under way may be counted when it is sent */
	if (!(md->state & PTL_OBJ_LIVE) || (uint32_t)md->threshold <= 1 ||
	    md->options & PTL_MD_IOVEC)
		return NULL;
	/* Programs that use one descriptor for each message reuse a few slots: release now what
	 * the last one left behind. */
	drop_registration(d, bucket(d, i), false);
	if (d->nkept >= MOST)
		drop_all(d, false);
	k = d->nkept < MOST ? calloc(1, sizeof(*k)) : NULL;
	if (!k)
		return NULL;
	*k = (struct rdma_kept){
		.next = *bucket(d, i),
		.md = i,
		.filled = v->more[i].filled,
		.start = md->start,
		.length = md->length,
		.use = use,
	};
	*bucket(d, i) = k;
	d->nkept++;
	rdma_check_soon(d);
	return k;
}

int rdma_reg_body(struct rdma *d, const struct net_span *span, void *base, size_t len,
		  enum rdma_use use, struct rdma_mr *mr)
{
	struct rdma_kept *k = span && !span->staged ? record_of_use(d, span->md, use) : NULL;

	if (!k || (uintptr_t)base < k->start || (uintptr_t)base - k->start > k->length ||
	    len > k->length - ((uintptr_t)base - k->start))
		return rdma_reg(d, base, len, use, mr);
	k->moved += len;
	if (!k->mr.handle && k->moved >= k->length &&
	    d->link->reg(d->state, (void *)(uintptr_t)k->start, k->length, use, true, &k->mr) < 0)
		k->moved = 0;
	if (!k->mr.handle)
		return rdma_reg(d, base, len, use, mr);
	*mr = k->mr;
	mr->addr += (uintptr_t)base - k->start;
	mr->kept = k;
	k->users++;
	return 0;
}
