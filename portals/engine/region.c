/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Make, map and check regions, and extend their parts (region.h). The arena of variable-sized
 * blocks (event queues, I/O vectors) is laid out here; its owner manages it in arena.c.
 */
#define _GNU_SOURCE
#include "portals/engine/region.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/shared.h"

#define NDELIVERIES (1u << 16)
#define NOPS        (1u << 20)
#define ARENA_SIZE  (16ull << 30)

/* Bytes of the area mapped in segments that are reserved at first: channels of about ten peers. */
#define FAR_SOON (4ull << 20)

/* Calls until a part that could not grow is tried again: a limit may have been raised. */
#define RETRY 4096

/* No table gets shorter than this where `ulimit -f` allows less. */
#define LEAST 256

/* Bytes of each part that are mapped at first, about. */
static const uint64_t first_bytes[PTL_PARTS] = {
	[PTL_PART_BUCKET] = 128 << 10, [PTL_PART_SLOT] = 1 << 20,       [PTL_PART_MORE] = 512 << 10,
	[PTL_PART_OP] = 1 << 20,       [PTL_PART_DELIVERY] = 768 << 10, [PTL_PART_ARENA] = 2 << 20,
};

static const char *const part_text[PTL_PARTS] = {
	[PTL_PART_BUCKET] = "the hash of match entries",
	[PTL_PART_SLOT] = "match entries and memory descriptors",
	[PTL_PART_MORE] = "memory descriptors",
	[PTL_PART_OP] = "operations",
	[PTL_PART_DELIVERY] = "messages on their way",
	[PTL_PART_ARENA] = "event queues and vectors",
};

/* ---- where everything is --------------------------------------------------------------------- */

/* The number of hash buckets for `mes` entries, a power of two. */
static uint32_t bucket_count(int mes)
{
	uint32_t n = 64;

	while (n / 4 < (uint32_t)mes && n < 1u << 22)
		n *= 2;
	return n;
}

/* The input of the layout. */
struct sizes {
	ptl_ni_limits_t limits;
	uint32_t nops, ndeliveries;
	uint64_t arena, nal, far;
};

struct layout {
	uint64_t eq, ac, pt, nal, fixed; /* always mapped */
	uint64_t off[PTL_PARTS], size[PTL_PARTS];
	uint64_t far, end;
};

static uint64_t lay_out_part(uint64_t *at, uint64_t n, uint64_t size)
{
	uint64_t off = *at;

	*at = off + ptl_page_up(n * size);
	return off;
}

static void lay_out(struct layout *l, const struct sizes *z)
{
	const ptl_ni_limits_t *lim = &z->limits;
	uint64_t at = ptl_page_up(sizeof(struct ptl_region));
	uint64_t slots = (uint64_t)(lim->max_mes > lim->max_mds ? lim->max_mes : lim->max_mds);

	l->pt = lay_out_part(&at, (uint64_t)lim->max_pt_index + 1, sizeof(struct ptl_pt));
	l->ac = lay_out_part(&at, (uint64_t)lim->max_ac_index + 1, sizeof(struct ptl_ac));
	l->eq = lay_out_part(&at, (uint64_t)lim->max_eqs, sizeof(struct ptl_eq));
	l->nal = lay_out_part(&at, z->nal, 1);
	l->fixed = at;
	l->size[PTL_PART_BUCKET] = bucket_count(lim->max_mes) * sizeof(uint32_t);
	l->size[PTL_PART_SLOT] = slots * sizeof(struct ptl_slot);
	l->size[PTL_PART_MORE] = slots * sizeof(struct ptl_md_more);
	l->size[PTL_PART_OP] = z->nops * sizeof(struct ptl_op);
	l->size[PTL_PART_DELIVERY] = z->ndeliveries * sizeof(struct ptl_delivery);
	l->size[PTL_PART_ARENA] = z->arena;
	for (int k = 0; k < PTL_PARTS; k++) {
		/* an empty part is mapped, too */
		l->size[k] = l->size[k] ? ptl_page_up(l->size[k]) : PTL_PAGE;
		l->off[k] = lay_out_part(&at, l->size[k], 1);
	}
	l->far = lay_out_part(&at, z->far, 1);
	l->end = at;
}

static void halve_count(int *n)
{
	if (*n > LEAST)
		*n /= 2;
}

/* Shorten tables until the file has at most `most` bytes. False: the shortest are still too
 * long. */
static bool fit(struct sizes *z, struct layout *l, uint64_t most)
{
	ptl_ni_limits_t *lim = &z->limits;

	while (z->arena > most / 4 && z->arena > PTL_PAGE)
		z->arena /= 2;
	for (;;) {
		lay_out(l, z);
		if (l->end <= most)
			break;
		if (z->ndeliveries <= LEAST)
			return false;
		z->ndeliveries /= 2;
		z->nops /= 2;
		halve_count(&lim->max_mes);
		halve_count(&lim->max_mds);
	}
	if (lim->max_me_list > lim->max_mes)
		lim->max_me_list = lim->max_mes;
	return true;
}

/* ---- what is mapped of it -------------------------------------------------------------------- */

static void set_pointers(struct ptl_view *v, struct ptl_region *r, const struct sizes *z,
			 const struct layout *l)
{
	char *base = (char *)r;

	v->r = r;
	v->pt = (void *)(base + l->pt);
	v->ac = (void *)(base + l->ac);
	v->eq = (void *)(base + l->eq);
	v->nal = base + l->nal;
	v->arena_off = l->off[PTL_PART_ARENA];
	v->limits = z->limits;
	v->nops = z->nops;
	v->size = l->fixed;
	v->far_off = l->far;
	v->far_size = z->far;
	memcpy(v->part_size, l->size, sizeof(v->part_size));
}

static uint32_t least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* Pointers first: a reader without the lock that sees the new bounds of a part then sees that
 * part. */
static void set_view_bounds(struct ptl_view *v)
{
	const struct ptl_stretch *p = v->part;
	uint64_t slots = least(p[PTL_PART_SLOT].bytes / sizeof(struct ptl_slot),
			       p[PTL_PART_MORE].bytes / sizeof(struct ptl_md_more));
	uint64_t buckets = p[PTL_PART_BUCKET].bytes / sizeof(uint32_t);

	v->bucket = (void *)p[PTL_PART_BUCKET].at;
	v->slot = (void *)p[PTL_PART_SLOT].at;
	v->more = (void *)p[PTL_PART_MORE].at;
	v->op = (void *)p[PTL_PART_OP].at;
	v->delivery = (void *)p[PTL_PART_DELIVERY].at;
	v->arena = (uintptr_t)p[PTL_PART_ARENA].at - v->arena_off;
	atomic_thread_fence(memory_order_release);
	v->mes = least(slots, (uint64_t)v->limits.max_mes);
	v->mds = least(slots, (uint64_t)v->limits.max_mds);
	v->ops = least(p[PTL_PART_OP].bytes / sizeof(struct ptl_op), v->nops);
	v->ndeliveries = (uint32_t)(p[PTL_PART_DELIVERY].bytes / sizeof(struct ptl_delivery));
	v->nbuckets = 1u << (63 - __builtin_clzll(buckets));
	v->arena_end = v->arena_off + p[PTL_PART_ARENA].bytes;
}

/* Map the first `bytes` of a part that is mapped in part already. */
static int stretch(struct ptl_view *v, enum ptl_part k, uint64_t bytes)
{
	struct ptl_stretch *p = &v->part[k];
	void *at = mremap(p->at, p->bytes, bytes, 0);

	if (at == MAP_FAILED) {
		if (v->nold == PTL_STRETCHES)
			return -ENOMEM;
		/* an old length of 0 maps the same memory once more */
		at = mremap(p->at, 0, bytes, MREMAP_MAYMOVE);
		if (at == MAP_FAILED)
			return -errno;
		v->old[v->nold++] = *p;
	}
	*p = (struct ptl_stretch){ at, bytes };
	return 0;
}

static void *map(int fd, uint64_t at, uint64_t bytes)
{
	void *memory = base_shared_map(fd, at, bytes);

	if (memory)
		madvise(memory, bytes, MADV_DONTFORK);
	return memory;
}

/* Map every part as far as it is in use. */
static int map_parts(struct ptl_view *v, int fd, const struct layout *l)
{
	/* acquire: see ptl_region_followed */
	uint32_t grown = atomic_load_explicit(&v->r->grown, memory_order_acquire);

	for (int k = 0; k < PTL_PARTS; k++) {
		uint64_t now = __atomic_load_n(&v->r->part_now[k], __ATOMIC_RELAXED);

		if (!now || now > l->size[k] || now % PTL_PAGE)
			return -EPROTO;
		v->part[k].at = map(fd, l->off[k], now);
		if (!v->part[k].at)
			return -errno;
		v->part[k].bytes = now;
	}
	set_view_bounds(v);
	atomic_store_explicit(&v->grown, grown, memory_order_relaxed);
	return 0;
}

int ptl_region_follow(struct ptl_view *v)
{
	uint32_t grown = atomic_load_explicit(&v->r->grown, memory_order_acquire);
	int err = 0;

	for (int k = 0; k < PTL_PARTS && !err; k++) {
		uint64_t now = __atomic_load_n(&v->r->part_now[k], __ATOMIC_RELAXED);

		if (now > v->part_size[k] || now % PTL_PAGE)
			err = -EPROTO;
		else if (now > v->part[k].bytes)
			err = stretch(v, (enum ptl_part)k, now);
	}
	set_view_bounds(v);
	/* release: partner of the acquire in ptl_region_followed */
	if (!err)
		atomic_store_explicit(&v->grown, grown, memory_order_release);
	return err;
}

void ptl_region_store_mapping(const struct ptl_view *v, uint32_t peer)
{
	for (int k = 0; k < PTL_PARTS; k++)
		v->r->shift[peer][k] = v->part[k].at - (char *)v->r;
}

void *ptl_region_segment(const struct ptl_view *v, int fd, uint64_t at, size_t bytes)
{
	if (at > v->far_size || bytes > v->far_size - at) {
		errno = EINVAL;
		return NULL;
	}
	return map(fd, v->far_off + at, bytes);
}

void ptl_region_unmap(struct ptl_view *v)
{
	for (int k = 0; k < PTL_PARTS; k++)
		if (v->part[k].at)
			munmap(v->part[k].at, v->part[k].bytes);
	for (uint32_t i = 0; i < v->nold; i++)
		munmap(v->old[i].at, v->old[i].bytes);
	if (v->r)
		munmap(v->r, v->size);
	memset(v, 0, sizeof(*v));
}

/* ---- the owner's ----------------------------------------------------------------------------- */

static uint64_t first_of_kind(const struct layout *l, int k)
{
	return l->size[k] < first_bytes[k] ? l->size[k] : first_bytes[k];
}

static void init_header(struct ptl_region *r, const struct layout *l, const struct sizes *z)
{
	const ptl_ni_limits_t *lim = &z->limits;

	r->stat.version = PTL_STAT_VERSION;
	r->stat.limits = *lim;
	r->stat.region_size = l->end;
	r->stat.eq_off = l->eq;
	r->stat.op_off = l->off[PTL_PART_OP];
	r->pt_off = l->pt;
	r->ac_off = l->ac;
	r->nal_off = l->nal;
	r->nal_size = z->nal;
	r->far_off = l->far;
	r->far_size = z->far;
	memcpy(r->part_off, l->off, sizeof(r->part_off));
	memcpy(r->part_size, l->size, sizeof(r->part_size));
	r->ndeliveries = z->ndeliveries;
	r->nops = z->nops;
	r->me_free = r->md_free = r->eq_free = r->op_free = r->delivery_free = PTL_NIL;
	r->buckets = 64;
	for (int k = 0; k < PTL_PARTS; k++)
		r->part_now[k] = first_of_kind(l, k);
	/* magic last: a reader that sees it sees the rest */
	__atomic_store_n(&r->stat.magic, PTL_STAT_MAGIC, __ATOMIC_RELEASE);
}

int ptl_region_create(struct ptl_view *v, const ptl_ni_limits_t *limits, size_t nal_size,
		      uint64_t far_size, int *fd, char *why, size_t len)
{
	struct sizes z = { *limits, NOPS, NDELIVERIES, ARENA_SIZE, nal_size, far_size };
	struct layout l;
	struct ptl_region *r;
	struct base_shared_span soon[PTL_PARTS + 2];
	int f, err = 0;

	memset(v, 0, sizeof(*v));
	if (!fit(&z, &l, base_shared_most())) {
		snprintf(why, len,
			 "it does not fit into a file of the length that `ulimit -f` "
			 "permits; raise it");
		return -EFBIG;
	}
	for (int k = 0; k < PTL_PARTS; k++)
		soon[k] = (struct base_shared_span){ l.off[k], first_of_kind(&l, k) };
	/* an MPI's event queues extend it at once */
	soon[PTL_PART_ARENA].bytes = least(l.size[PTL_PART_ARENA], 2 * first_bytes[PTL_PART_ARENA]);
	soon[PTL_PARTS] = (struct base_shared_span){ 0, l.fixed };
	soon[PTL_PARTS + 1] =
		(struct base_shared_span){ l.far, far_size < FAR_SOON ? far_size : FAR_SOON };
	f = base_shared_make(PTL_STAT_MEMFD, l.end, soon, PTL_PARTS + 2, why, len);
	if (f < 0)
		return f;
	v->fd = f;
	v->bounded = base_shared_bounded(f);
	r = map(f, 0, l.fixed);
	if (r) {
		init_header(r, &l, &z);
		set_pointers(v, r, &z, &l);
		err = map_parts(v, f, &l);
	} else {
		err = -errno;
	}
	if (err) {
		snprintf(why, len, "%s; raise `ulimit -v`", strerror(-err));
		ptl_region_unmap(v);
		close(f);
		return err;
	}
	r->md_low = v->mds;
	for (uint32_t i = 0; i <= (uint32_t)z.limits.max_pt_index; i++)
		v->pt[i].head = v->pt[i].tail = v->pt[i].list_head = PTL_NIL;
	for (uint32_t i = 0; i < r->buckets; i++)
		v->bucket[i] = PTL_NIL;
	*fd = f;
	return 0;
}

/* Publish an extension, so that others may follow. */
static void extended(struct ptl_view *v)
{
	uint32_t grown = atomic_load_explicit(&v->r->grown, memory_order_relaxed) + 1;

	set_view_bounds(v);
	atomic_store_explicit(&v->grown, grown, memory_order_release);
	/* release: partner of the acquire in ptl_region_followed */
	atomic_store_explicit(&v->r->grown, grown, memory_order_release);
}

/* Double a part, or extend it to `need` bytes if that is more. */
static bool grow_part(struct ptl_view *v, enum ptl_part k, uint64_t need)
{
	struct ptl_region *r = v->r;
	struct ptl_refused *no = &v->refused[k];
	uint64_t full = v->part_size[k], old = v->part[k].bytes, bytes = 2 * old;
	int err;

	if (need > full || old >= full)
		return false;
	bytes = bytes > need ? bytes : ptl_page_up(need);
	bytes = bytes < full ? bytes : full;
	if (no->calls && bytes >= no->bytes) {
		no->calls--;
		return false;
	}
	err = base_shared_reserve(v->fd, r->part_off[k] + old, bytes - old);
	if (!err)
		err = stretch(v, k, bytes);
	if (err) {
		if (!no->bytes)
			base_warn("no room for more than %llu bytes of %s: %s; raise `ulimit -v`, "
				  "or set TMPDIR to where there is more room",
				  (unsigned long long)old, part_text[k], strerror(-err));
		*no = (struct ptl_refused){ bytes, RETRY };
		return false;
	}
	*no = (struct ptl_refused){ 0, 0 };
	__atomic_store_n(&r->part_now[k], bytes, __ATOMIC_RELAXED);
	extended(v);
	return true;
}

bool ptl_grow_slots(struct ptl_view *v)
{
	struct ptl_region *r = v->r;
	uint32_t mds = v->mds;

	/* it may be longer already, if the other could not be extended */
	if (v->part[PTL_PART_MORE].bytes / sizeof(struct ptl_md_more) <=
		    v->part[PTL_PART_SLOT].bytes / sizeof(struct ptl_slot) &&
	    !grow_part(v, PTL_PART_MORE, 0))
		return false;
	if (!grow_part(v, PTL_PART_SLOT, 0))
		return false;
	/* Descriptors without an entry come from the table's end, which has moved. Those at
	 * the old end now lie in between. */
	if (v->mds > mds) {
		r->md_high = mds;
		r->md_low = v->mds;
	}
	return true;
}

bool ptl_grow_ops(struct ptl_view *v)
{
	return grow_part(v, PTL_PART_OP, 0);
}

bool ptl_grow_deliveries(struct ptl_view *v)
{
	return grow_part(v, PTL_PART_DELIVERY, 0);
}

bool ptl_grow_buckets(struct ptl_view *v)
{
	return grow_part(v, PTL_PART_BUCKET, 0);
}

bool ptl_grow_arena(struct ptl_view *v, uint64_t end)
{
	return grow_part(v, PTL_PART_ARENA, end - v->arena_off);
}

/* ---- others' --------------------------------------------------------------------------------- */

/* Read a header and check it: the layout follows from it. */
static int read_header(const struct ptl_region *r, uint64_t size, struct sizes *z, struct layout *l)
{
	ptl_ni_limits_t *lim = &z->limits;

	if (size < sizeof(*r) ||
	    __atomic_load_n(&r->stat.magic, __ATOMIC_ACQUIRE) != PTL_STAT_MAGIC ||
	    r->stat.version != PTL_STAT_VERSION)
		return -EPROTO;
	*z = (struct sizes){ r->stat.limits, r->nops,
			     r->ndeliveries, r->part_size[PTL_PART_ARENA],
			     r->nal_size,    r->far_size };
	if (lim->max_mes < 0 || lim->max_mds < 0 || lim->max_eqs < 0 || lim->max_pt_index < 0 ||
	    lim->max_ac_index < 0 || lim->max_mes > 1 << 20 || lim->max_mds > 1 << 20 ||
	    lim->max_eqs > 1 << 20 || lim->max_pt_index > 65534 || lim->max_ac_index > 65534 ||
	    z->nops > NOPS || z->ndeliveries > NDELIVERIES || z->arena > ARENA_SIZE ||
	    z->nal > 1ull << 40 || z->far > 1ull << 40)
		return -EPROTO;
	lay_out(l, z);
	/* a header that differs from the layout is not of our making */
	if (l->end != size || r->stat.region_size != size || r->stat.eq_off != l->eq ||
	    r->stat.op_off != l->off[PTL_PART_OP] || r->pt_off != l->pt || r->ac_off != l->ac ||
	    r->nal_off != l->nal || r->far_off != l->far ||
	    memcmp(r->part_off, l->off, sizeof(l->off)) != 0 ||
	    memcmp(r->part_size, l->size, sizeof(l->size)) != 0)
		return -EPROTO;
	return 0;
}

int ptl_region_check(struct ptl_view *v, struct ptl_region *r, uint64_t size)
{
	struct sizes z;
	struct layout l;

	if (read_header(r, size, &z, &l) < 0)
		return -EPROTO;
	set_pointers(v, r, &z, &l);
	return 0;
}

int ptl_region_map(struct ptl_view *v, int fd)
{
	struct stat st;
	struct sizes z;
	struct layout l, again;
	struct ptl_region *r;
	int err;

	memset(v, 0, sizeof(*v));
	v->fd = -1;
	if (!base_shared_sound(fd, sizeof(*r)) || fstat(fd, &st) < 0)
		return -EPROTO;
	r = map(fd, 0, sizeof(*r));
	if (!r)
		return -errno;
	err = read_header(r, (uint64_t)st.st_size, &z, &l);
	munmap(r, sizeof(*r));
	if (err)
		return err;
	r = map(fd, 0, l.fixed);
	if (!r)
		return -errno;
	v->r = r;
	v->size = l.fixed;
	err = read_header(r, (uint64_t)st.st_size, &z, &again);
	/* another process may change the header meanwhile: check again that the mapped layout
	 * is the checked one */
	if (!err && memcmp(&l, &again, sizeof(l)) != 0)
		err = -EPROTO;
	if (!err) {
		set_pointers(v, r, &z, &l);
		err = map_parts(v, fd, &l);
	}
	if (err)
		ptl_region_unmap(v);
	return err;
}
