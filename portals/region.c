/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Makes, maps and checks regions (region.h). The arena of variable-sized blocks (event queues,
 * I/O vectors) is laid out here and managed by its owner in arena.c.
 */
#define _GNU_SOURCE
#include "portals/region.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE       4096ull
#define NLANDINGS  (1u << 16)
#define NOPS       (1u << 20)
#define ARENA_SIZE (16ull << 30)

static uint64_t page_up(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

/* Power of two of hash buckets that serves `mes` entries. */
static uint32_t bucket_count(int mes)
{
	uint32_t n = 64;

	while (n / 4 < (uint32_t)mes && n < 1u << 22)
		n *= 2;
	return n;
}

struct layout {
	uint64_t eq, op, ac, pt, bucket, slot, more, land, arena, nal, end;
};

static uint64_t take(uint64_t *at, uint64_t n, uint64_t size)
{
	uint64_t off = *at;

	*at = off + page_up(n * size);
	return off;
}

static void lay_out(struct layout *l, const ptl_ni_limits_t *lim, uint64_t nal_size)
{
	uint64_t at = page_up(sizeof(struct ptl_region));

	l->pt = take(&at, (uint64_t)lim->max_pt_index + 1, sizeof(struct ptl_pt));
	l->ac = take(&at, (uint64_t)lim->max_ac_index + 1, sizeof(struct ptl_ac));
	l->bucket = take(&at, bucket_count(lim->max_mes), sizeof(uint32_t));
	l->slot = take(&at, (uint64_t)(lim->max_mes > lim->max_mds ? lim->max_mes : lim->max_mds),
		       sizeof(struct ptl_slot));
	l->more = take(&at, (uint64_t)lim->max_mds, sizeof(struct ptl_md_more));
	l->eq = take(&at, (uint64_t)lim->max_eqs, sizeof(struct ptl_eq));
	l->op = take(&at, NOPS, sizeof(struct ptl_op));
	l->land = take(&at, NLANDINGS, sizeof(struct ptl_landing));
	l->nal = take(&at, nal_size, 1);
	l->arena = take(&at, ARENA_SIZE, 1);
	l->end = at;
}

static void set_pointers(struct ptl_view *v, struct ptl_region *r)
{
	char *base = (char *)r;

	v->r = r;
	v->pt = (void *)(base + r->pt_off);
	v->ac = (void *)(base + r->ac_off);
	v->bucket = (void *)(base + r->bucket_off);
	v->slot = (void *)(base + r->slot_off);
	v->more = (void *)(base + r->more_off);
	v->eq = (void *)(base + r->stat.eq_off);
	v->op = (void *)(base + r->stat.op_off);
	v->land = (void *)(base + r->land_off);
	v->nal = base + r->nal_off;
	v->arena_off = r->arena_off;
	v->arena_end = r->arena_off + r->arena_size;
	v->limits = r->stat.limits;
	v->nlandings = r->nlandings;
	v->nops = r->nops;
	v->nbuckets = r->nbuckets;
}

static void init_header(struct ptl_region *r, const struct layout *l, const ptl_ni_limits_t *lim,
			uint64_t nal_size)
{
	r->stat.version = PTL_STAT_VERSION;
	r->stat.limits = *lim;
	r->stat.region_size = l->end;
	r->stat.eq_off = l->eq;
	r->stat.op_off = l->op;
	r->pt_off = l->pt;
	r->ac_off = l->ac;
	r->bucket_off = l->bucket;
	r->slot_off = l->slot;
	r->more_off = l->more;
	r->land_off = l->land;
	r->nal_off = l->nal;
	r->nal_size = nal_size;
	r->arena_off = l->arena;
	r->arena_size = ARENA_SIZE;
	r->nbuckets = bucket_count(lim->max_mes);
	r->nlandings = NLANDINGS;
	r->nops = NOPS;
	r->me_free = r->md_free = r->eq_free = r->op_free = r->land_free = PTL_NIL;
	r->md_low = (uint32_t)lim->max_mds;
	r->buckets = 64;
	/* magic last: a reader that sees it sees the rest */
	__atomic_store_n(&r->stat.magic, PTL_STAT_MAGIC, __ATOMIC_RELEASE);
}

int ptl_region_create(struct ptl_view *v, const ptl_ni_limits_t *limits, size_t nal_size, int *fd)
{
	struct layout l;
	struct ptl_region *r;
	int f, err;

	lay_out(&l, limits, nal_size);
	f = memfd_create(PTL_STAT_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (f < 0)
		return -errno;
	r = MAP_FAILED;
	if (ftruncate(f, (off_t)l.end) == 0)
		r = mmap(NULL, l.end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, f, 0);
	if (r == MAP_FAILED) {
		err = errno;
		close(f);
		return -err;
	}
	(void)!fcntl(f, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	madvise(r, l.end, MADV_DONTFORK);
	init_header(r, &l, limits, nal_size);
	set_pointers(v, r);
	v->size = l.end;
	for (uint32_t i = 0; i <= (uint32_t)limits->max_pt_index; i++) {
		v->pt[i].head = v->pt[i].tail = v->pt[i].list_head = PTL_NIL;
	}
	for (uint32_t i = 0; i < r->buckets; i++)
		v->bucket[i] = PTL_NIL;
	*fd = f;
	return 0;
}

int ptl_region_check(struct ptl_view *v, struct ptl_region *r, size_t size)
{
	struct layout l;
	ptl_ni_limits_t lim;
	uint64_t nal_size;

	if (size < sizeof(*r) ||
	    __atomic_load_n(&r->stat.magic, __ATOMIC_ACQUIRE) != PTL_STAT_MAGIC ||
	    r->stat.version != PTL_STAT_VERSION)
		return -EPROTO;
	lim = r->stat.limits;
	nal_size = r->nal_size;
	if (lim.max_mes < 0 || lim.max_mds < 0 || lim.max_eqs < 0 || lim.max_pt_index < 0 ||
	    lim.max_ac_index < 0 || lim.max_mes > 1 << 20 || lim.max_mds > 1 << 20 ||
	    lim.max_eqs > 1 << 20 || lim.max_pt_index > 65534 || lim.max_ac_index > 65534 ||
	    nal_size > 1ull << 40)
		return -EPROTO;
	/* The layout follows from the limits: anything else in the header is not of our making. */
	lay_out(&l, &lim, nal_size);
	if (l.end != size || r->stat.region_size != size || r->stat.eq_off != l.eq ||
	    r->stat.op_off != l.op || r->pt_off != l.pt || r->ac_off != l.ac ||
	    r->bucket_off != l.bucket || r->slot_off != l.slot || r->more_off != l.more ||
	    r->land_off != l.land || r->nal_off != l.nal || r->arena_off != l.arena ||
	    r->arena_size != ARENA_SIZE || r->nbuckets != bucket_count(lim.max_mes) ||
	    r->nlandings != NLANDINGS || r->nops != NOPS)
		return -EPROTO;
	set_pointers(v, r);
	v->size = size;
	v->limits = lim;
	return 0;
}

int ptl_region_map(struct ptl_view *v, int fd)
{
	struct stat st;
	struct ptl_region *r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size < sizeof(*r))
		return -EPROTO;
	r = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		 0);
	if (r == MAP_FAILED)
		return -errno;
	madvise(r, (size_t)st.st_size, MADV_DONTFORK);
	madvise(r, (size_t)st.st_size, MADV_DONTDUMP);
	if (ptl_region_check(v, r, (size_t)st.st_size) < 0) {
		munmap(r, (size_t)st.st_size);
		return -EPROTO;
	}
	return 0;
}

void ptl_region_unmap(struct ptl_view *v)
{
	if (v->r)
		munmap(v->r, v->size);
	memset(v, 0, sizeof(*v));
}
