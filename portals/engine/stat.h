/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The part of an interface that can be seen from outside: the first page of its region.
 * portals-stat maps it read-only from another process. The process that runs the engine writes
 * the counters under the region's lock; a reader sees values that may be a moment old. Any
 * change of layout changes PTL_STAT_VERSION.
 */
#ifndef PTL_STAT_H
#define PTL_STAT_H

#include <assert.h>
#include <portals3.h>
#include <stdatomic.h>

#define PTL_STAT_MAGIC   0x6e72657473506f33ull
#define PTL_STAT_VERSION 14
#define PTL_STAT_NETS    5
#define PTL_STAT_MEMFD   "postern-ni" /* the region's file, a memfd or deleted, in /proc/PID/fd */

/* Reasons to discard a request, ack or reply. X(NAME, text) */
#define PTL_DROP_TABLE(X)                                                                          \
	X(NO_MATCH, "no match entry accepted it")                                                  \
	X(PT_INDEX, "portal index out of range")                                                   \
	X(AC_INDEX, "access control index out of range")                                           \
	X(ACCESS, "refused by the access control entry")                                           \
	X(ACK_NO_MD, "ack for a memory descriptor that is gone or inactive")                       \
	X(REPLY_NO_MD, "reply for a memory descriptor that is gone or inactive")                   \
	X(REPLY_TOO_LONG, "reply longer than its memory descriptor")                               \
	X(BAD_MESSAGE, "not a valid message")                                                      \
	X(STALE, "answer to an operation that is no longer known")                                 \
	X(REFUSED_PEER, "connection refused: another user, version or job key")

enum ptl_drop {
#define PTL_DROP_ENUM_(name, text) PTL_DROP_##name,
	PTL_DROP_TABLE(PTL_DROP_ENUM_)
#undef PTL_DROP_ENUM_
		PTL_DROP_COUNT_
};

/* Activity of the interface beyond the status registers. X(NAME, text) */
#define PTL_COUNT_TABLE(X)                                                                         \
	X(RUN_BY_PEER, "messages that a peer delivered on this process's behalf")                  \
	X(RUN_FOR_PEER, "messages delivered on behalf of a peer that computes")                    \
	X(BYTES_PIPE, "bytes moved through the shared pipe")                                       \
	X(BYTES_CMA, "bytes moved by cross-memory attach")                                         \
	X(WAY_TRIED, "times the other way of long messages was tried: pipe or claims")             \
	X(WAY_CHANGED, "times it was faster, and kept to")                                         \
	X(SLEEPS, "waits that slept in the kernel")                                                \
	X(DEFERRED, "messages held back because the peer's ring was full")                         \
	X(DOORBELLS, "times a peer's helper thread was woken")                                     \
	X(PEERS_LOST, "peers that died while connected")                                           \
	X(RECOVERIES, "times the engine lock was taken over from a dead process")                  \
	X(BIASED, "times the engine lock was given to one thread for good")                        \
	X(REVOKED, "times it was taken from that thread again")                                    \
	X(RESUMED, "times a stopped lock holder was let run to the end of its critical section")   \
	X(PACKETS_OUT, "packets sent")                                                             \
	X(PACKETS_IN, "packets received and used")                                                 \
	X(PACKETS_LOST, "packets taken for lost, and sent again")                                  \
	X(TIMEOUTS, "retransmission time-outs")                                                    \
	X(DGRAM_MALFORMED, "packets dropped: none of ours, or cut short")                          \
	X(DGRAM_BAD_TAG, "packets dropped: forged, or damaged on their way")                       \
	X(DGRAM_UNKNOWN, "packets dropped: of a connection that is not, or no longer, known")      \
	X(DGRAM_DUPLICATE, "packets dropped: had arrived before")                                  \
	X(DGRAM_TOO_OLD, "packets dropped: older than the replay window")                          \
	X(DGRAM_NOT_ACCEPTED, "packets dropped: a greeting for somebody else")                     \
	X(DGRAM_STALE_HELLO, "packets dropped: a greeting of an attempt that is over")             \
	X(DGRAM_BAD_ACK, "packets dropped: acknowledged what was never sent")                      \
	X(DGRAM_NO_CREDIT, "messages dropped: beyond the credit given")                            \
	X(DGRAM_NO_ROOM, "messages dropped: too much waits for an earlier one")                    \
	X(DGRAM_EARLY, "pieces dropped: of a message that is not known yet")                       \
	X(DGRAM_OUTSIDE, "pieces dropped: outside what was asked for")                             \
	X(RDMA_MADE, "verbs connections made")                                                     \
	X(RDMA_BROKEN, "verbs connections that broke")                                             \
	X(RDMA_REFUSED, "verbs connections refused: no proof of the job's secret")                 \
	X(RDMA_PEER_BYTES, "bytes that each verbs connection takes, about")                        \
	X(FAULTS, "faults made on request (PTL_FAULT)")

enum ptl_count {
#define PTL_COUNT_ENUM_(name, text) PTL_COUNT_##name,
	PTL_COUNT_TABLE(PTL_COUNT_ENUM_)
#undef PTL_COUNT_ENUM_
		PTL_COUNT_COUNT_
};

/* One event queue. Its size is fixed at a cache line: the table has max_eqs of them, and an
 * entry costs memory only once it is touched. */
struct ptl_eq {
	uint64_t head;  /* events taken */
	uint64_t tail;  /* events posted */
	uint64_t slots; /* offset of the event records in the region */
	uint32_t mask;  /* records - 1 */
	uint32_t owed;  /* operations in progress that will post here */
	uint32_t refs;  /* MDs that name this queue */
	uint32_t state; /* PTL_OBJ_* flags, generation << 8 */
	uint32_t next_free;
	uint32_t pad_[5];
};
static_assert(sizeof(struct ptl_eq) == 64, "one cache line");

/* An operation that this process started and that waits for its peer: a get, a getput, or a
 * put that is long or wants an ack. Two cache lines; an answer needs only the first. */
struct ptl_op {
	/* odd while in use; it grows with each change, which tells late answers apart */
	uint32_t gen;
	uint32_t flags; /* PTL_OP_* */
	uint16_t kind;  /* enum ptl_req_kind */
	uint16_t pt_index;
	uint32_t md; /* get: where the reply goes; put: the source */
	uint32_t md_serial;
	uint32_t peer;
	uint64_t local_offset;
	uint64_t length;
	uint64_t match_bits;
	uint64_t remote_offset;
	uint32_t next, prev; /* free list, or the flow's */
	/* second line: hints that other processes may write, and fields for reports only */
	/* index + 1 of the target's delivery record, 0 before; the peer writes it */
	_Alignas(64) uint32_t delivery;
	uint32_t delivery_gen;
	uint64_t hdr_data;
	ptl_process_id_t target;
	uint32_t link;
	int32_t threshold;
	uint64_t started_ms; /* CLOCK_MONOTONIC */
	uint64_t mlength;    /* long get: bytes that the target granted */
	uint64_t pad_;
};
static_assert(sizeof(struct ptl_op) == 128, "two cache lines");

struct ptl_stat_peer {
	ptl_process_id_t id;
	uint32_t os_pid;
	uint32_t state; /* 0 unused, 1 live, 2 not connected (any more) */
	uint32_t flags; /* PTL_PEER_* */
	uint32_t pad_;
	uint64_t sent;     /* messages pushed to it, as this process counts */
	uint64_t received; /* ring lines consumed from it */
	char nal[8];
};

#define PTL_PEER_CMA 1u /* CMA: this process may read and write its memory */

/* The page at offset 0 of a region. */
struct ptl_stat {
	uint64_t magic;
	uint32_t version;
	uint32_t os_pid;
	ptl_process_id_t id;
	uint32_t uid, jid;
	uint32_t interface;
	uint32_t closed; /* the NI was shut down properly */
	uint64_t region_size;
	uint64_t started_ms; /* CLOCK_MONOTONIC */
	ptl_ni_limits_t limits;
	char program[32];
	char progress[64]; /* what moves data, and why */
	char nals[32];     /* in order of preference */
	/* tables for the tool: offset of the first entry, number of entries ever used */
	uint64_t eq_off, op_off, peer_off;
	uint32_t eq_high, op_high, peer_high;
	/* peers of the network NALs */
	uint64_t net_peer_off[PTL_STAT_NETS];
	uint32_t net_peer_high[PTL_STAT_NETS];
	/* threads asleep in the kernel until something arrives; on a line of its own, because
	 * peers read it */
	_Alignas(64) _Atomic uint32_t waiters;
	_Alignas(64) uint64_t sr[PTL_SR_LAST_];
	uint64_t drops[PTL_DROP_COUNT_];
	uint64_t counts[PTL_COUNT_COUNT_];
};
static_assert(sizeof(struct ptl_stat) <= 4096, "the stat page is one page");

#endif
