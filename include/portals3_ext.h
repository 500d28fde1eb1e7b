/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What Postern adds to Portals 3.3, for libraries built on top of it. Every function has a man
 * page in section 3.
 */
#ifndef PORTALS3_EXT_H
#define PORTALS3_EXT_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When the target has to have an injected put. */
typedef enum {
	PTL_INJECT_NOW,  /* like any put, whatever it does */
	/* when it next calls Portals, but to send like this; now, if it waits there. Saves the
	 * effort to deliver it on behalf of a target that computes; but one that is not
	 * delivered yet goes with any other put to this target. */
	PTL_INJECT_LAZY,
	/* like this, but by shared memory alone, where it is lost with the target only; else
	 * PTL_NO_SPACE */
	PTL_INJECT_HERE
} ptl_inject_t;

/*
 * A put of `length` bytes at `data` that has taken them when it returns: no memory descriptor,
 * no acknowledgement, no event. PTL_OK; PTL_NO_SPACE if the transport cannot keep that much now,
 * nothing is sent then and a PtlPut is the way (0 bytes always go); PTL_PROCESS_INVALID if the
 * target cannot be reached; PTL_FAIL: no such `when`; PTL_NO_INIT, PTL_NI_INVALID, PTL_SEGV.
 */
int PtlPutInject(ptl_handle_ni_t ni_handle, const void *data, ptl_size_t length,
		 ptl_inject_t when, ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
		 ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/*
 * How long data had better go to or from a process at this moment: *length is that of the
 * pieces, each a PtlPutRegion or PtlGetRegion of its own, or 0: as a whole. Pieces are faster
 * while the target is inside the library and both processes copy, and slower if one of them has
 * to move all data; so ask before each piece, of which a few should be under way at the same
 * time. PTL_OK; PTL_NO_INIT, PTL_NI_INVALID, PTL_SEGV.
 */
int PtlPieceLength(ptl_handle_ni_t ni_handle, ptl_process_id_t target_id, ptl_size_t *length);

/* What an atomic operation makes of an element of the target, `old`, and one of the initiator's,
 * `new`. */
typedef enum {
	PTL_ATOMIC_SUM = 1, /* old + new; whole numbers wrap around */
	PTL_ATOMIC_PROD,    /* old * new, likewise */
	PTL_ATOMIC_MIN,
	PTL_ATOMIC_MAX,
	PTL_ATOMIC_BAND, /* the bitwise ones: not of floating point numbers */
	PTL_ATOMIC_BOR,
	PTL_ATOMIC_BXOR,
	PTL_ATOMIC_LAND, /* the logical ones, 0 or 1: likewise */
	PTL_ATOMIC_LOR,
	PTL_ATOMIC_LXOR,
	PTL_ATOMIC_SWAP,  /* new */
	PTL_ATOMIC_FETCH, /* old; what the initiator sends is not looked at */
	PTL_ATOMIC_CSWAP, /* new where old has the bits of a third one, else old */
	/* with any of them but CSWAP: elements in runs, see ptl_atomic_runs_t */
	PTL_ATOMIC_RUNS = 0x80
} ptl_atomic_op_t;

/* Runs of `bytes` bytes, which are whole elements, every `stride` bytes from `offset` on. */
typedef struct {
	uint32_t offset, bytes, stride, count;
} ptl_atomic_run_t;

/*
 * With PTL_ATOMIC_RUNS what is sent begins with this, at an address that is a multiple of 4; the
 * elements follow the last group, packed in the order of the runs, but for PTL_ATOMIC_FETCH,
 * where there are none.
 */
typedef struct {
	uint32_t span;   /* bytes at the target, from remote_offset on, that the runs are in */
	uint32_t groups; /* so many ptl_atomic_run_t follow */
} ptl_atomic_runs_t;

/* Elements, of the host's byte order, at any address. Of blocks there are SWAP, FETCH and CSWAP
 * only. */
typedef enum {
	PTL_ATOMIC_INT8 = 1,
	PTL_ATOMIC_UINT8,
	PTL_ATOMIC_INT16,
	PTL_ATOMIC_UINT16,
	PTL_ATOMIC_INT32,
	PTL_ATOMIC_UINT32,
	PTL_ATOMIC_INT64,
	PTL_ATOMIC_UINT64,
	PTL_ATOMIC_FLOAT,
	PTL_ATOMIC_DOUBLE,
	PTL_ATOMIC_BLOCK16, /* 16 bytes */
	PTL_ATOMIC_BLOCK32  /* 32 bytes */
} ptl_atomic_type_t;

/*
 * As PtlPutRegion, but `length` bytes at the target are changed, element by element, to what
 * `op` makes of them and those at local_offset; each by itself, and as a whole against other
 * atomic operations and PtlGetPut. For PTL_ATOMIC_CSWAP there are 2 * length bytes at
 * local_offset: first what is compared, then what is stored. What there is at local_offset is at
 * most max_getput_md bytes and whole elements. As with PtlPutRegion, and PTL_MD_ILLEGAL if `op`
 * is not defined on `type` or the length is wrong.
 *
 * With PTL_ATOMIC_RUNS in `op` the elements at the target lie in the runs that are told at
 * local_offset, of a descriptor without PTL_MD_IOVEC. `length` is what the elements are, all
 * together; the region at the target is the span of the runs, and if that is truncated nothing
 * is done. Events tell `length`, or 0 in mlength. What becomes of bytes that are in several runs
 * is not said.
 */
int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	      ptl_ack_req_t ack_req, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
	      ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
	      ptl_hdr_data_t hdr_data, ptl_atomic_op_t op, ptl_atomic_type_t type);

/* The same as PtlGetPutRegion: what was at the target comes back. */
int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t get_local_offset,
		   ptl_handle_md_t put_md_handle, ptl_size_t put_local_offset, ptl_size_t length,
		   ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
		   ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data,
		   ptl_atomic_op_t op, ptl_atomic_type_t type);

/*
 * As PtlEQPoll, but the event stays in its queue: waits until one of the queues has an event,
 * PTL_OK and *which_eq, at most `timeout` milliseconds, PTL_EQ_EMPTY. Any number of threads may
 * wait, and others take events meanwhile. PTL_NO_INIT, PTL_EQ_INVALID (*which_eq says which),
 * PTL_SEGV.
 */
int PtlEQAwait(ptl_handle_eq_t *eq_handles, int size, ptl_time_t timeout, int *which_eq);

/* MD option: puts that the descriptor accepts, and the ends of operations that it started, may
 * be offered to a taker first (PtlEQPollMany). */
#define PTL_MD_INLINE 0x1000u

/*
 * A put on its way into a descriptor with PTL_MD_INLINE (PTL_EVENT_PUT_END), or the end of an
 * operation on one (PTL_EVENT_REPLY_END, PTL_EVENT_ACK). All of it is there, of meaning during
 * the call of the taker.
 */
typedef struct {
	ptl_process_id_t initiator; /* who has sent it, or has answered */
	ptl_match_bits_t match_bits;
	ptl_hdr_data_t hdr_data;
	const void *data;  /* of a put; else NULL: they are in their place */
	ptl_size_t length; /* bytes at data, or that were moved */
	void *user_ptr;    /* of the descriptor */
	ptl_event_kind_t type;
} ptl_arrival_t;

/* What a taker says: it has taken what came; ... and this is what the call was to wait for, so
 * it need look for no more. */
#define PTL_HANDLED        1
#define PTL_HANDLED_ENOUGH 2

/* 0: it has no use for it. Calls no function of Portals. */
typedef int (*ptl_inline_handler_t)(const ptl_arrival_t *arrival);

/* A timeout of PtlEQPollMany: looks, as with 0, and keeps the processor. For who holds a lock
 * that other threads need: without it, who looks in vain again and again gives its turn away
 * where processors are short. */
#define PTL_TIME_LOOK (PTL_TIME_FOREVER - 1)

/*
 * As PtlEQPoll, but takes up to `max` events, all that are there, of one queue after another;
 * those of one queue in order. *count says how many, also with an error: with PTL_EQ_DROPPED
 * events are missing before the last one. event.md.eq_handle tells the queue. PTL_SEGV also if
 * max < 1.
 *
 * `taker`, if not NULL, is called during this call, by its thread, for puts that a descriptor
 * with PTL_MD_INLINE accepts, in the order of their arrival, as long as the descriptor's queue is
 * empty. What it takes is over: nothing is stored, the descriptor stays as it is, and there is
 * no event. What it does not take, and what cannot be offered (an acknowledgement is asked for,
 * or the bytes are not there yet), goes the ordinary way. PTL_OK with *count 0: some were taken,
 * and there is no event.
 *
 * Likewise for replies and acknowledgements of operations that were started on a descriptor with
 * PTL_MD_INLINE, if all that was asked for has been moved. Taking one stands for its event; the
 * descriptor counts it as ever.
 *
 * With PTL_TIME_LOOK, PTL_EQ_EMPTY and *count -1 say that a turn was to be given away here: the
 * caller does so (sched_yield) as soon as it holds no lock.
 */
int PtlEQPollMany(ptl_handle_eq_t *eq_handles, int size, ptl_time_t timeout, ptl_inline_handler_t inline_handler,
		  ptl_event_t *events, int max, int *count);

/*
 * As PtlEQPollMany with a timeout of 0, but goes on looking for some microseconds at most, until
 * there is an event, the taker has taken something, or *word is `least` or more: for who waits
 * for another process to change the word in memory that both have, and is a target meanwhile,
 * whose initiators wait for its looks. The word is read with acquire semantics. PTL_SEGV also if
 * word is NULL.
 */
int PtlEQPollWatch(ptl_handle_eq_t *eq_handles, int size, const uint64_t *word, uint64_t least,
		   ptl_inline_handler_t inline_handler, ptl_event_t *events, int max, int *count);

/*
 * Why the last PtlInit or PtlNIInit of this thread failed: what the thread has warned of since it
 * called that, or with PTL_QUIET would have. "" if there was nothing. Of meaning until the thread's
 * next call of Portals.
 */
const char *PtlInitReason(void);

/*
 * What is known of a process that cannot be reached: *fail_type is PTL_NI_OK (nothing is known to
 * be wrong), PTL_NI_PEER_DEAD (it has ended, or closed its interface), or else it may live, and at
 * `text` is why no transport leads there, and what could be done; of `size` bytes, cut if that is
 * too short. PTL_OK; PTL_NO_INIT, PTL_NI_INVALID, PTL_SEGV.
 */
int PtlPeerReason(ptl_handle_ni_t ni_handle, ptl_process_id_t process, ptl_ni_fail_t *fail_type,
		  char *text, ptl_size_t size);

/*
 * Asks the launcher to end the job with this exit code after printing `message` (may be NULL).
 * PTL_OK if a launcher was told, PTL_FAIL if there is none; returns either way.
 */
int PtlJobAbort(int code, const char *message);

/*
 * Waits until all ranks of the job have called it as often; at once if alone. PTL_OK, or
 * PTL_FAIL if the launcher is gone or there is none to meet at (a job described by PTL_NIDMAP).
 */
int PtlJobFence(void);

/*
 * Which of the programs of the job this process runs, as the launcher was given them, counted
 * from 0; 0 without a launcher, and where it does not say. PTL_OK; PTL_FAIL if its job could not
 * be joined, or was left; PTL_SEGV: `number` is NULL.
 */
int PtlJobProgram(int *number);

#ifdef __cplusplus
}
#endif

#endif
