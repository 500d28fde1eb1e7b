/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Moving bytes: memcpy if both ends are ours, process_vm_readv and process_vm_writev if one is
 * a peer's. MDs may be plain or vectors, in any mix.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "nal/shm/shm.h"
#include "portals/engine/atomic.h"

#define BATCH 64 /* segments per system call */

/* A position in a span's segments. */
struct cursor {
	const struct ptl_md *md;
	const ptl_md_iovec_t *iov; /* NULL: a plain MD */
	uint64_t n;                /* entries */
	uint64_t i, skip;          /* current entry, and bytes of it consumed */
	uint64_t plain;            /* address, for a plain MD */
};

static ptl_ni_fail_t cursor_init(struct cursor *c, const struct shm_span *s, uint64_t len)
{
	const struct ptl_md *md = &s->v->slot[s->md].md;
	uint64_t skip = s->offset;

	memset(c, 0, sizeof(*c));
	if (s->offset > md->length || len > md->length - s->offset)
		return PTL_NI_PROTOCOL;
	if (!(md->options & PTL_MD_IOVEC)) {
		c->plain = md->start + s->offset;
		return PTL_NI_OK;
	}
	if (md->start < s->v->arena_off || md->start > s->v->arena_end ||
	    s->v->more[s->md].user_length > (s->v->arena_end - md->start) / sizeof(*c->iov))
		return PTL_NI_PROTOCOL;
	c->iov = ptl_arena_at(s->v, md->start);
	c->n = s->v->more[s->md].user_length;
	while (c->i < c->n && skip >= c->iov[c->i].iov_len)
		skip -= c->iov[c->i++].iov_len;
	c->skip = skip;
	return PTL_NI_OK;
}

/* Return the length of the contiguous segment at the cursor, at most `len`, and its address.
 * 0: the vector ended early. */
static uint64_t cursor_segment(struct cursor *c, uint64_t len, char **at)
{
	uint64_t left;

	if (!c->iov) {
		*at = (char *)(uintptr_t)c->plain;
		return len;
	}
	while (c->i < c->n && c->iov[c->i].iov_len == c->skip) {
		c->i++;
		c->skip = 0;
	}
	if (c->i >= c->n)
		return 0;
	left = c->iov[c->i].iov_len - c->skip;
	*at = (char *)c->iov[c->i].iov_base + c->skip;
	return left < len ? left : len;
}

static void cursor_advance(struct cursor *c, uint64_t len)
{
	if (c->iov)
		c->skip += len;
	else
		c->plain += len;
}

/* Gather up to BATCH segments covering at most `len`; returns the bytes covered. */
static uint64_t gather_iovecs(struct cursor *c, uint64_t len, struct iovec *v, unsigned long *n)
{
	uint64_t got = 0, k;
	char *at;

	for (*n = 0; *n < BATCH && got < len; (*n)++) {
		k = cursor_segment(c, len - got, &at);
		if (!k)
			break;
		v[*n].iov_base = at;
		v[*n].iov_len = k;
		cursor_advance(c, k);
		got += k;
	}
	return got;
}

static ptl_ni_fail_t cma_fail(void)
{
	return errno == ESRCH    ? PTL_NI_PEER_DEAD
	       : errno == EFAULT ? PTL_NI_BAD_ADDRESS
				 : PTL_NI_FAIL;
}

/* Move between our segments and another process's. The cursors of both sides advance in step. */
static ptl_ni_fail_t cma(pid_t pid, struct cursor *mine, struct cursor *theirs, uint64_t len,
			 bool write)
{
	struct iovec lv[BATCH], rv[BATCH];
	unsigned long ln, rn;
	uint64_t want, rest;
	ssize_t moved;

	while (len) {
		struct cursor m = *mine, t = *theirs;

		want = gather_iovecs(&m, len, lv, &ln);
		rest = gather_iovecs(&t, want, rv, &rn);
		if (!rest)
			return PTL_NI_PROTOCOL;
		if (rest < want) { /* the peer's side has more, smaller segments */
			m = *mine;
			gather_iovecs(&m, rest, lv, &ln);
		}
		moved = write ? process_vm_writev(pid, lv, ln, rv, rn, 0)
			      : process_vm_readv(pid, lv, ln, rv, rn, 0);
		if (moved <= 0)
			return moved < 0 ? cma_fail() : PTL_NI_BAD_ADDRESS;
		/* advance both cursors by the bytes moved */
		for (uint64_t k = (uint64_t)moved, p; k; k -= p) {
			char *at;

			p = cursor_segment(mine, k, &at);
			if (!p)
				break;
			cursor_advance(mine, p);
		}
		for (uint64_t k = (uint64_t)moved, p; k; k -= p) {
			char *at;

			p = cursor_segment(theirs, k, &at);
			if (!p)
				break;
			cursor_advance(theirs, p);
		}
		len -= (uint64_t)moved;
	}
	return PTL_NI_OK;
}

static ptl_ni_fail_t local(struct cursor *to, struct cursor *from, uint64_t len)
{
	while (len) {
		char *d = NULL, *s = NULL;
		uint64_t k = cursor_segment(from, len, &s);

		k = k ? cursor_segment(to, k, &d) : 0;
		if (!k || !d || !s)
			return PTL_NI_PROTOCOL;
		memmove(d, s, k);
		cursor_advance(to, k);
		cursor_advance(from, k);
		len -= k;
	}
	return PTL_NI_OK;
}

static struct cursor buffer(const void *at)
{
	return (struct cursor){ .plain = (uintptr_t)at };
}

ptl_ni_fail_t shm_copy_in_any(const struct shm_span *to, const void *from, uint64_t len)
{
	const struct ptl_md *md = &to->v->slot[to->md].md;
	struct cursor t, f = buffer(from);
	ptl_ni_fail_t fail;

	if (!len)
		return PTL_NI_OK;
	if (to->offset > md->length || len > md->length - to->offset)
		return PTL_NI_PROTOCOL;
	if (!to->pid && !(md->options & PTL_MD_IOVEC)) { /* the common case */
		memcpy((char *)(uintptr_t)md->start + to->offset, from, len);
		return PTL_NI_OK;
	}
	fail = cursor_init(&t, to, len);
	if (fail != PTL_NI_OK)
		return fail;
	return to->pid ? cma(to->pid, &f, &t, len, true) : local(&t, &f, len);
}

ptl_ni_fail_t shm_copy_out_any(void *to, const struct shm_span *from, uint64_t len)
{
	const struct ptl_md *md = &from->v->slot[from->md].md;
	struct cursor t = buffer(to), f;
	ptl_ni_fail_t fail;

	if (!len)
		return PTL_NI_OK;
	if (from->offset > md->length || len > md->length - from->offset)
		return PTL_NI_PROTOCOL;
	if (!from->pid && !(md->options & PTL_MD_IOVEC)) {
		memcpy(to, (char *)(uintptr_t)md->start + from->offset, len);
		return PTL_NI_OK;
	}
	fail = cursor_init(&f, from, len);
	if (fail != PTL_NI_OK)
		return fail;
	return from->pid ? cma(from->pid, &t, &f, len, false) : local(&t, &f, len);
}

/* Runs in another process, as many as one system call takes. */
struct runs_batch {
	struct iovec v[BATCH];
	unsigned long n;
	uint64_t bytes;
	char *here;
};

static ptl_ni_fail_t flush_runs(struct runs_batch *b, pid_t pid, bool in)
{
	struct iovec here = { b->here, b->bytes };
	ssize_t moved;

	if (!b->n)
		return PTL_NI_OK;
	moved = in ? process_vm_writev(pid, &here, 1, b->v, b->n, 0)
		   : process_vm_readv(pid, &here, 1, b->v, b->n, 0);
	if (moved < 0 || (uint64_t)moved != b->bytes)
		return moved < 0 ? cma_fail() : PTL_NI_BAD_ADDRESS;
	b->here += b->bytes;
	b->n = 0;
	b->bytes = 0;
	return PTL_NI_OK;
}

static ptl_ni_fail_t copy_run(const struct shm_span *there, const struct ptl_md *md,
			      struct runs_batch *b, uint64_t offset, uint32_t bytes, bool in)
{
	struct shm_span run = *there;
	char *at = (char *)(uintptr_t)md->start + there->offset + offset;
	ptl_ni_fail_t fail = PTL_NI_OK;

	if (there->pid && !(md->options & PTL_MD_IOVEC)) {
		if (b->n == BATCH)
			fail = flush_runs(b, there->pid, in);
		if (fail != PTL_NI_OK)
			return fail;
		b->v[b->n++] = (struct iovec){ at, bytes };
		b->bytes += bytes;
		return PTL_NI_OK;
	}
	run.offset += offset;
	fail = in ? shm_copy_in_any(&run, b->here, bytes) : shm_copy_out_any(b->here, &run, bytes);
	b->here += bytes;
	return fail;
}

/* Copy runs of our own memory, which may have any alignment. Usual element sizes need no call
 * of memcpy. */
#define COPY_GROUP(size)                                                                           \
	for (uint32_t k = 0; k < g->count; k++)                                                    \
		if (in)                                                                            \
			memcpy(at + (uint64_t)k * g->stride, here + k * (uint64_t)(size), size);   \
		else                                                                               \
			memcpy(here + k * (uint64_t)(size), at + (uint64_t)k * g->stride, size);

static void copy_group(char *at, char *here, const ptl_atomic_run_t *g, bool in)
{
	if (g->bytes == 8)
		COPY_GROUP(8)
	else if (g->bytes == 4)
		COPY_GROUP(4)
	else if (g->bytes == 16)
		COPY_GROUP(16)
	else
		COPY_GROUP(g->bytes)
}

ptl_ni_fail_t shm_copy_runs(const struct shm_span *there, const ptl_atomic_runs_t *runs, char *here,
			    bool in)
{
	const struct ptl_md *md = &there->v->slot[there->md].md;
	struct runs_batch b = { .here = here };
	ptl_ni_fail_t fail = PTL_NI_OK;

	if (there->offset > md->length || runs->span > md->length - there->offset)
		return PTL_NI_PROTOCOL;
	for (uint32_t i = 0; i < runs->groups && fail == PTL_NI_OK; i++) {
		const ptl_atomic_run_t *g = &ptl_runs_groups(runs)[i];

		if (!there->pid && !(md->options & PTL_MD_IOVEC)) {
			copy_group((char *)(uintptr_t)md->start + there->offset + g->offset, here,
				   g, in);
			here += (uint64_t)g->bytes * g->count;
			continue;
		}
		for (uint32_t k = 0; k < g->count && fail == PTL_NI_OK; k++)
			fail = copy_run(there, md, &b, g->offset + (uint64_t)k * g->stride,
					g->bytes, in);
	}
	return fail == PTL_NI_OK ? flush_runs(&b, there->pid, in) : fail;
}

ptl_ni_fail_t shm_copy(const struct shm_span *to, const struct shm_span *from, uint64_t len)
{
	struct cursor t, f;
	ptl_ni_fail_t fail = cursor_init(&t, to, len);

	if (fail == PTL_NI_OK)
		fail = cursor_init(&f, from, len);
	if (fail != PTL_NI_OK || !len)
		return fail;
	if (to->pid)
		return cma(to->pid, &f, &t, len, true);
	return from->pid ? cma(from->pid, &t, &f, len, false) : local(&t, &f, len);
}

/* Return whether a span is contiguous and in process `pid` (0: ours); *v is its place. */
static bool plain_at(struct iovec *v, const struct shm_span *s, uint64_t len, pid_t pid)
{
	const struct ptl_md *md = &s->v->slot[s->md].md;

	v->iov_base = (char *)(uintptr_t)md->start + s->offset;
	v->iov_len = len;
	return s->pid == pid && !(md->options & PTL_MD_IOVEC) && s->offset <= md->length &&
	       len <= md->length - s->offset;
}

bool shm_copy_together(const struct shm_move *moves, unsigned int n)
{
	const bool write = moves->to.pid;
	const pid_t pid = write ? moves->to.pid : moves->from.pid;
	struct iovec here[SHM_TOGETHER], there[SHM_TOGETHER];
	uint64_t bytes = 0;
	ssize_t moved;

	if (n < 2 || n > SHM_TOGETHER || !pid)
		return false;
	for (unsigned int i = 0; i < n; i++) {
		const struct shm_move *m = &moves[i];

		if (!plain_at(&there[i], write ? &m->to : &m->from, m->len, pid) ||
		    !plain_at(&here[i], write ? &m->from : &m->to, m->len, 0))
			return false;
		bytes += m->len;
	}
	moved = write ? process_vm_writev(pid, here, n, there, n, 0)
		      : process_vm_readv(pid, here, n, there, n, 0);
	return moved >= 0 && (uint64_t)moved == bytes;
}

bool shm_copy_allowed(pid_t pid, uint64_t remote, uint64_t expect, uint64_t scratch)
{
	uint64_t seen = 0, mark = 0x746573742d636d61ull;
	struct iovec lv = { &seen, 8 }, rv = { (void *)(uintptr_t)remote, 8 };

	if (process_vm_readv(pid, &lv, 1, &rv, 1, 0) != 8 || seen != expect)
		return false;
	lv.iov_base = &mark;
	rv.iov_base = (void *)(uintptr_t)scratch;
	return process_vm_writev(pid, &lv, 1, &rv, 1, 0) == 8;
}
