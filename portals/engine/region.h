/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The region: one file without a name that holds everything a network interface is made of.
 * These are the portal table, match entries, memory descriptors, event queues and operations
 * in flight, linked by index. So the owner can run the engine over it, and so can the other
 * processes of the same user on the node, on the owner's behalf. The file is sparse: the
 * tables have their full size in it, and a page costs memory only when first used.
 *
 * Only the used part of a table is mapped. The tables that may become large are parts, each
 * mapped by itself, at first with a few thousand entries. The owner extends a part when it is
 * full, and says so in part_now and `grown`. Others follow when they next use the region
 * (ptl_region_follow). A longer mapping may lie at another address, so never compare pointers
 * to entries across mappings. The shorter mapping stays for code that still has pointers into
 * it; both show the same memory.
 *
 * Everything here is guarded by `lock` (lock.h), except the words that are said to be atomic.
 */
#ifndef PTL_REGION_H
#define PTL_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "portals/engine/stat.h"

#define PTL_NIL UINT32_MAX

/* Object state word: flags below, generation in bits 8 to 15 (never 255, see ptl_handle in
 * engine.h). */
#define PTL_OBJ_LIVE      0x01u
#define PTL_OBJ_UNLINK    0x02u /* ME: freed with its MD. MD: unlinked automatically */
#define PTL_OBJ_LISTED    0x04u /* ME: on its portal's short list, not in the hash */
#define PTL_OBJ_INACTIVE  0x08u /* MD: refuses operations */
#define PTL_OBJ_UNLINKING 0x10u /* MD: freed when its last operation is done */
#define PTL_OBJ_HANDLER   0x20u /* EQ: has an event handler */
#define PTL_OBJ_FREE      0x40u /* MD: on the free list (md_free) */

#define PTL_PAGE 4096ull /* unit of the parts of a region, in bytes */

static inline uint64_t ptl_page_up(uint64_t bytes)
{
	return (bytes + PTL_PAGE - 1) & ~(PTL_PAGE - 1);
}

static inline uint32_t ptl_obj_gen(uint32_t state)
{
	return state >> 8 & 0xff;
}

/* Match entry, in one cache line: a walk touches only this line of an entry that does not match. */
struct ptl_me {
	uint64_t match_bits;
	uint64_t ignore_bits;
	int64_t label; /* order among the entries of one portal */
	ptl_process_id_t id;
	uint32_t list_prev, list_next; /* all entries of the portal, in order */
	/* hash chain, or the portal's short list, whose first entry has the last as its
	 * chain_prev; or the free list */
	uint32_t chain_prev, chain_next;
	uint32_t md;
	uint32_t hash;
	uint32_t state;
	uint16_t pt_index;
	uint16_t tuple; /* in the hash: index of the portal's tuple */
};
static_assert(sizeof(struct ptl_me) == 64, "one cache line");

/* Memory descriptor: everything that matching and moving need. */
struct ptl_md {
	uint64_t start; /* address in the owner; of a vector: offset of its entries in the region */
	uint64_t length; /* bytes, of a vector: their sum */
	uint64_t local_offset;
	uint64_t max_size;
	uint64_t user_ptr;
	int32_t threshold;
	uint32_t options;
	uint32_t eq;
	uint32_t me;
	uint32_t pending; /* operations accepted or started and not yet ended */
	uint32_t state;
};
static_assert(sizeof(struct ptl_md) == 64, "one cache line");

/* The rest of a memory descriptor, for creation, update and reports. */
struct ptl_md_more {
	uint64_t user_start; /* as given by the application */
	uint64_t user_length;
	/* arena block that this slot owns, 0: none; the slot's next user gets it, too */
	uint64_t iov_block;
	uint64_t iov_size;
	uint32_t serial; /* counts uses of the slot; tells a late ack from a current one */
	uint32_t filled; /* counts uses and updates; tells whether the memory is still the same */
	uint32_t free_prev, free_next; /* the free list */
	uint32_t pad_[4];
};
static_assert(sizeof(struct ptl_md_more) == 64, "one cache line");

/* Match entry i and memory descriptor i. An entry's descriptor has the entry's number if that
 * is free. Then a match far down a long list misses only one page, and one pair of lines,
 * which processors fetch together. */
struct ptl_slot {
	_Alignas(128) struct ptl_me me;
	struct ptl_md md;
};
static_assert(sizeof(struct ptl_slot) == 128, "two cache lines");

/* One event as stored in a queue: ptl_event_t with the handles and the MD in their internal
 * form. It begins like ptl_event_t up to the MD's length, so that one copy shows that part
 * (eq.c). */
struct ptl_evt {
	uint32_t type;
	ptl_process_id_t initiator;
	uint32_t uid, jid;
	uint32_t pt_index;
	uint64_t match_bits, rlength, mlength, offset;
	uint32_t md_handle;
	uint32_t md_eq;
	uint64_t md_start, md_length;
	uint64_t md_max_size, md_user_ptr;
	int32_t md_threshold;
	uint32_t md_options;
	uint64_t hdr_data;
	uint32_t link;
	uint32_t ni_fail_type;
	uint32_t sequence;
	uint32_t pad_;
};
static_assert(sizeof(struct ptl_evt) == 128, "two cache lines");

enum ptl_req_kind { PTL_REQ_PUT = 1, PTL_REQ_GET, PTL_REQ_GETPUT };

#define PTL_OP_ACK      0x01u /* put: an ACK event is wanted */
#define PTL_OP_LONG     0x02u /* data is still to be moved; MD is pending */
#define PTL_OP_GRANTED  0x04u /* long get: the target matched, REPLY_START is posted */
#define PTL_OP_UNLISTED 0x08u /* moved by a NAL with lists of its own: in no flow */

/* A message that the target accepted and has not finished: the place the bytes go to (put) or
 * come from (get). `claim` and `done` are atomic, because both processes move chunks at the
 * same time. */
struct ptl_delivery {
	uint32_t gen; /* odd while in use */
	uint8_t kind;
	uint8_t ack;
	uint16_t pt_index;
	uint32_t md;
	uint32_t peer;
	uint32_t op, op_gen; /* the initiator's operation record */
	uint64_t offset, mlength, rlength;
	uint64_t match_bits, hdr_data;
	/* second line */
	_Alignas(64) uint64_t remote_offset;
	ptl_process_id_t initiator;
	uint32_t uid, jid;
	uint32_t link;
	int32_t threshold;
	uint32_t chunks, chunk_size;
	uint32_t front;      /* chunks in the front half; the rest are in the back half */
	uint32_t next, prev; /* free list, or list of the flow */
	uint32_t whole;      /* the bytes came with the request: it ends before the unlock */
	/* third line: contended */
	/* chunks of each half that are claimed; the upper 32 bits hold the generation */
	_Alignas(64) _Atomic uint64_t claim[2];
	_Atomic uint32_t done;   /* chunks in place */
	_Atomic uint32_t failed; /* its ptl_ni_fail_t, if moving a chunk failed */
};
static_assert(sizeof(struct ptl_delivery) == 192, "three cache lines");

/* Entries in the hash that ignore the same bits and name the same parts of a source (match.h). */
struct ptl_tuple {
	uint64_t ignore;
	uint32_t any; /* PTL_TUPLE_ANY_* */
	uint32_t count;
};

#define PTL_TUPLE_ANY_NID 1u
#define PTL_TUPLE_ANY_PID 2u

#define PTL_TUPLES 6 /* most tuples of a portal at a time */

struct ptl_pt {
	uint32_t head, tail; /* all entries in order */
	uint32_t list_head;  /* those not in the hash */
	uint32_t pad_;
	uint32_t count, max;
	uint32_t listed; /* number of those not in the hash */
	uint32_t tuples; /* bit k: tuple[k] has entries */
	struct ptl_tuple tuple[PTL_TUPLES];
};
static_assert(sizeof(struct ptl_pt) == 128, "two cache lines, and a short list needs only one");
static_assert(offsetof(struct ptl_pt, tuple) == 32, "a search of two tuples needs only one, too");

/* Messages between the owner and one peer of shared memory that still have data to move,
 * oldest first. Puts and gets have lists of their own. So a peer that is stopped, or a kind
 * that waits, delays nobody else. The fields are index + 1 of the first and the last, so that
 * zeros are an empty list. */
struct ptl_list {
	uint32_t first, last;
};

enum { PTL_LIST_PUT, PTL_LIST_GET, PTL_LISTS };

struct ptl_flow {
	struct ptl_list delivery[PTL_LISTS]; /* started by the peer */
	struct ptl_list op[PTL_LISTS];       /* started by the owner */
};
static_assert(sizeof(struct ptl_flow) == 32, "half a cache line");

#define PTL_FLOWS 1024 /* a power of two */

/* The parts of a region that can grow. */
enum ptl_part {
	PTL_PART_BUCKET,
	PTL_PART_SLOT,
	PTL_PART_MORE,
	PTL_PART_OP,
	PTL_PART_DELIVERY,
	PTL_PART_ARENA,
	PTL_PARTS
};

/* Entries that a single comparison decides. */
enum ptl_ac_only { PTL_AC_ALL, PTL_AC_UID, PTL_AC_JID };

struct ptl_ac {
	ptl_process_id_t id;
	uint32_t uid, jid;
	uint32_t pt_index;
	uint32_t only; /* enum ptl_ac_only: no other field restricts */
};

/* Words changed since the last commit by a peer that runs the engine and may die halfway
 * (undo.h). */
#define PTL_UNDO_MAX 256
struct ptl_undo {
	_Atomic uint32_t n;
	struct {
		/* distance from the region's beginning in the writer's mapping; bit 0 set: a
		 * 64-bit word */
		uint64_t where;
		uint64_t old;
	} entry[PTL_UNDO_MAX];
};

/* Slots for threads of the owner that the lock can be biased to, one at a time. */
#define PTL_BIAS_THREADS 4

struct ptl_region {
	struct ptl_stat stat;

	/* Hot words, on a line each, because different processes write and read them. Words
	 * written all the time have a pair of lines each, because processors fetch lines in
	 * pairs. */
	_Alignas(4096) _Atomic uint32_t lock; /* lock.h */
	struct {
		/* 1: the thread of this slot is inside; meaningful only while the lock is
		 * biased to it */
		_Alignas(128) _Atomic uint32_t inside;
	} bias[PTL_BIAS_THREADS];
	_Alignas(128) _Atomic uint32_t doorbell; /* futex for the owner's waiting threads */
	/* peers may not run the engine, because the owner must see each event */
	_Alignas(64) _Atomic uint32_t no_run;
	/* a peer made room in the ring we write to it; the owner checks and clears it */
	_Atomic uint32_t space;

	/* Counters that the engine uses all the time. */
	_Alignas(64) uint32_t me_free, me_high;
	uint32_t md_free;         /* free ones from md_low on, and others that belong to no entry */
	uint32_t md_high, md_low; /* none between the two was ever in use */
	uint32_t eq_free, op_free;
	uint32_t delivery_free, deliveries_high;
	uint32_t flowing; /* deliveries and operations in all flows */
	uint32_t buckets; /* in use, a power of two */
	uint32_t hashed;  /* entries in the buckets */
	uint32_t md_serial;
	uint32_t cray; /* PTL_CRAY behaviour */

	/* Offsets of the tables. They are set at creation; a peer that maps the region checks
	 * them once. */
	_Alignas(64) uint64_t ac_off, pt_off, nal_off;
	uint64_t nal_size;
	uint64_t far_off, far_size; /* the NAL's, mapped in segments: ptl_region_segment */
	uint64_t part_off[PTL_PARTS], part_size[PTL_PARTS];
	uint32_t ndeliveries, nops; /* in a part of full size */
	/* bytes of a part that are in use; written under the lock, before `grown` */
	uint64_t part_now[PTL_PARTS];
	/* how often a part was extended; others poll it, so it lies among words that are
	 * hardly ever written */
	_Atomic uint32_t grown;

	_Alignas(64) struct ptl_undo undo;

	_Alignas(64) struct ptl_flow flow[PTL_FLOWS]; /* by peer */
	/* for each peer that runs the engine: distance of its mapping of the parts from the
	 * beginning (undo.h) */
	int64_t shift[PTL_FLOWS][PTL_PARTS];
};

static_assert(offsetof(struct ptl_region, grown) / 64 > offsetof(struct ptl_region, cray) / 64,
	      "not on a line that is written all the time");
static_assert(offsetof(struct ptl_region, grown) / 64 < offsetof(struct ptl_region, undo) / 64,
	      "nor on this one");

#define PTL_STRETCHES 64 /* each at least doubles a part */

/* One process's mapping of one region: pointers for indexes. Its bounds are those of the
 * mapping. */
struct ptl_view {
	struct ptl_region *r;
	struct ptl_pt *pt;
	struct ptl_ac *ac;
	uint32_t *bucket; /* first entries of hash chains */
	struct ptl_slot *slot;
	struct ptl_md_more *more; /* of MDs */
	struct ptl_eq *eq;
	struct ptl_op *op;
	struct ptl_delivery *delivery;
	char *nal;
	uintptr_t arena; /* address of offset 0: ptl_arena_at */
	uint32_t mes, mds;
	uint32_t ndeliveries, ops, nbuckets;
	uint64_t arena_off, arena_end;
	_Atomic uint32_t grown;
	uint32_t nops;          /* operations in a part of full size */
	ptl_ni_limits_t limits; /* a copy, because a peer's region may be overwritten */
	size_t size;            /* bytes mapped in one piece from the beginning */
	uint64_t far_off, far_size;
	int fd;       /* the owner's; else -1 */
	bool bounded; /* used bytes must be reserved: base/shared.h */
	struct ptl_stretch {
		char *at;
		uint64_t bytes;
	} part[PTL_PARTS], old[PTL_STRETCHES];
	uint32_t nold;
	uint64_t part_size[PTL_PARTS];
	/* owner only: a length that a part could not get, and the calls left before the next try */
	struct ptl_refused {
		uint64_t bytes;
		uint32_t calls;
	} refused[PTL_PARTS];
};

/* Create a region for `limits` and map it. The limits are lowered where `ulimit -f` requires
 * it. The NALs get `nal_size` bytes that are always mapped, and `far_size` bytes that are not.
 * *fd is the file. Returns 0, or -errno with `why` set. */
int ptl_region_create(struct ptl_view *v, const ptl_ni_limits_t *limits, size_t nal_size,
		      uint64_t far_size, int *fd, char *why, size_t len);

/* Map a peer's region and check every offset in it. 0, or -errno (-EPROTO: not a region of
 * ours). */
int ptl_region_map(struct ptl_view *v, int fd);

/* Check the header of a file of `size` bytes, and fill the view except for the parts. 0, or
 * -EPROTO. */
int ptl_region_check(struct ptl_view *v, struct ptl_region *r, uint64_t size);

/* Map `bytes` at offset `at` of the area that is mapped in segments. `fd` is the region's
 * file. NULL: errno says why. */
void *ptl_region_segment(const struct ptl_view *v, int fd, uint64_t at, size_t bytes);

/* Map the parts as far as the owner has extended them since. One thread at a time. Hold the
 * owner's lock, or need only data that are known to be there. 0, or -errno: the view is as
 * before, except for parts that did grow. */
int ptl_region_follow(struct ptl_view *v);

/* Store in the region how this process, its peer number `peer`, has it mapped. The rollback of
 * its writes needs that (undo.h). */
void ptl_region_store_mapping(const struct ptl_view *v, uint32_t peer);

/* Does the view show all there is? */
static inline bool ptl_region_followed(const struct ptl_view *v)
{
	/* acquire: the extension is there; partner of the release in extended() */
	return atomic_load_explicit(&v->grown, memory_order_acquire) ==
	       atomic_load_explicit(&v->r->grown, memory_order_acquire);
}

void ptl_region_unmap(struct ptl_view *v);

/* Make room for more entries. Owner only. False: there is none. Unless the limits forbid more,
 * it has warned. Locked. */
bool ptl_grow_slots(struct ptl_view *v);
bool ptl_grow_ops(struct ptl_view *v);
bool ptl_grow_deliveries(struct ptl_view *v);
bool ptl_grow_buckets(struct ptl_view *v);
/* ... up to the offset `end` */
bool ptl_grow_arena(struct ptl_view *v, uint64_t end);

/* Could more be mapped? */
static inline bool ptl_may_grow(const struct ptl_view *v, enum ptl_part part)
{
	return v->part[part].bytes < v->part_size[part];
}

/* The address of an offset in the arena. */
static inline void *ptl_arena_at(const struct ptl_view *v, uint64_t off)
{
	return (void *)(v->arena + off); /* NOLINT(performance-no-int-to-ptr) */
}

#endif
