/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Memory descriptors as ranges of memory: one contiguous range, or the entries of a vector.
 */
#include <string.h>

#include "base/usermem.h"
#include "nal/net/net.h"

struct net_mem net_mem_of(struct net *n, struct net_span *span)
{
	const struct ptl_md *md = &n->ni->view.slot[span->md].md;

	if (span->staged)
		return (struct net_mem){ .base = span->staged };
	if (md->options & PTL_MD_IOVEC)
		return (struct net_mem){ .cookie = span };
	return (struct net_mem){ .base = (char *)(uintptr_t)md->start + span->offset };
}

struct net_mem net_mem(struct net *n, struct net_body *body)
{
	return net_mem_of(n, &body->span);
}

/* The iovecs of [offset, offset + len) of a span. For a vector, those of the entries that have
 * bytes in it. */
static int __attribute__((noinline))
segments(const struct net *n, const struct net_span *span, uint64_t offset, uint64_t len,
	 struct iovec *iov, int max)
{
	const struct ptl_view *v = &n->ni->view;
	const struct ptl_md *md = &v->slot[span->md].md;
	uint64_t skip = span->offset + offset;
	const ptl_md_iovec_t *at, *end;
	int k = 0;

	if (!(md->options & PTL_MD_IOVEC)) {
		iov[0] = (struct iovec){ (char *)(uintptr_t)md->start + skip, len };
		return 1;
	}
	/* the region is shared, so its values are untrusted: the vector must lie within the
	 * arena */
	if (md->start < v->arena_off || md->start > v->arena_end ||
	    v->more[span->md].user_length > (v->arena_end - md->start) / sizeof(*at))
		return 0;
	at = ptl_arena_at(v, md->start);
	end = at + v->more[span->md].user_length;
	while (at < end && skip >= at->iov_len)
		skip -= at++->iov_len;
	for (; at < end && len && k < max; at++, skip = 0) {
		uint64_t bytes = at->iov_len - skip < len ? at->iov_len - skip : len;

		if (!bytes)
			continue;
		iov[k++] = (struct iovec){ (char *)at->iov_base + skip, bytes };
		len -= bytes;
	}
	return k;
}

int net_segments(void *user, void *cookie, uint64_t offset, uint64_t len, struct iovec *iov,
		 int max)
{
	return segments(user, cookie, offset, len, iov, max);
}

static void copy(const struct net *n, const struct net_span *span, char *bytes, uint64_t len,
		 bool in)
{
	const struct ptl_md *md = &n->ni->view.slot[span->md].md;
	char *at = (char *)(uintptr_t)md->start + span->offset;
	struct iovec iov[16];
	uint64_t done = 0;

	if (!len) /* there may be no buffer */
		return;
	if (!(md->options & PTL_MD_IOVEC)) {
		base_copy_user(in ? at : bytes, in ? bytes : at, len);
		return;
	}
	while (done < len) {
		int k = segments(n, span, done, len - done, iov, 16);

		if (!k) {
			if (!in)
				memset(bytes + done, 0, len - done);
			return;
		}
		for (int i = 0; i < k; i++) {
			if (in)
				base_copy_user(iov[i].iov_base, bytes + done, iov[i].iov_len);
			else
				base_copy_user(bytes + done, iov[i].iov_base, iov[i].iov_len);
			done += iov[i].iov_len;
		}
	}
}

void net_copy_in(struct net *n, const struct net_span *to, const void *from, uint64_t len)
{
	copy(n, to, (char *)(uintptr_t)from, len, true);
}

void net_copy_out(struct net *n, void *to, const struct net_span *from, uint64_t len)
{
	copy(n, from, to, len, false);
}
