/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Postern's additions to Portals 3.3, for libraries built on top of it. Every function has a
 * man page in section 3.
 */
#ifndef PORTALS3_EXT_H
#define PORTALS3_EXT_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When the target must receive an injected put. */
typedef enum {
	PTL_INJECT_NOW,  /* as soon as any put, whatever the target does */
	/* When the target next calls Portals, unless that call only injects like this itself.
	 * At once if the target waits in Portals. This saves a proxy delivery while the target
	 * computes. Any other put to this target also delivers the lazy ones that are still
	 * pending. */
	PTL_INJECT_LAZY,
	/* As PTL_INJECT_LAZY, but through shared memory only, where the put is lost only if
	 * the target is. Without shared memory to the target: PTL_NO_SPACE. */
	PTL_INJECT_HERE
} ptl_inject_t;

/*
 * Put `length` bytes at `data`. The bytes are copied before the call returns. There is no
 * memory descriptor, no acknowledgement and no event.
 *
 * Returns PTL_OK, or PTL_NO_SPACE if the transport cannot keep that many bytes now. Nothing
 * was sent then; use PtlPut instead. For lack of room 0 bytes never fail. PTL_PROCESS_INVALID:
 * the target cannot be reached. PTL_FAIL: no such `when`. Also PTL_NO_INIT, PTL_NI_INVALID,
 * PTL_SEGV.
 */
int PtlPutInject(ptl_handle_ni_t ni_handle, const void *data, ptl_size_t length,
		 ptl_inject_t when, ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
		 ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/*
 * Set *length to the segment length, in bytes, that suits long data to or from a process at
 * this moment. Each segment is a PtlPutRegion or PtlGetRegion of its own. 0: move the data as
 * a whole.
 *
 * Segments are faster while the target is inside the library and both processes copy. They are
 * slower if one process has to move all data. So ask again before each segment, and keep a few
 * of them in flight. Returns PTL_OK, PTL_NO_INIT, PTL_NI_INVALID or PTL_SEGV.
 */
int PtlPieceLength(ptl_handle_ni_t ni_handle, ptl_process_id_t target_id, ptl_size_t *length);

/* The result of an atomic operation on `old`, an element of the target, and `new`, an element
 * of the initiator. */
typedef enum {
	PTL_ATOMIC_SUM = 1, /* old + new; integers wrap around */
	PTL_ATOMIC_PROD,    /* old * new; integers wrap around */
	PTL_ATOMIC_MIN,
	PTL_ATOMIC_MAX,
	PTL_ATOMIC_BAND, /* bitwise: not for floating point */
	PTL_ATOMIC_BOR,
	PTL_ATOMIC_BXOR,
	PTL_ATOMIC_LAND, /* logical, 0 or 1: not for floating point */
	PTL_ATOMIC_LOR,
	PTL_ATOMIC_LXOR,
	PTL_ATOMIC_SWAP,  /* new */
	PTL_ATOMIC_FETCH, /* old; the initiator's data are ignored */
	PTL_ATOMIC_CSWAP, /* new if old equals the compare value bit for bit, else old */
	/* flag, with any of them but CSWAP: elements in runs, see ptl_atomic_runs_t */
	PTL_ATOMIC_RUNS = 0x80
} ptl_atomic_op_t;

/* `count` runs of `bytes` bytes each, the first at `offset`, each `stride` bytes after the one
 * before. A run is whole elements. `offset` counts bytes from remote_offset. */
typedef struct {
	uint32_t offset, bytes, stride, count;
} ptl_atomic_run_t;

/*
 * With PTL_ATOMIC_RUNS the operand begins with this header, at an address that is a multiple
 * of 4. After the last group follow the elements, packed in the order of the runs.
 * PTL_ATOMIC_FETCH has no elements.
 */
typedef struct {
	uint32_t span;   /* bytes from remote_offset on that contain all runs */
	uint32_t groups; /* number of ptl_atomic_run_t that follow */
} ptl_atomic_runs_t;

/* Elements in the host's byte order, at any address. Blocks allow only SWAP, FETCH and CSWAP. */
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
 * As PtlPutRegion, but replace each element of `length` bytes at the target by the result of
 * `op` on it and the element at local_offset. Each element changes atomically with respect to
 * other atomic operations and PtlGetPut, and so does the whole region. For PTL_ATOMIC_CSWAP
 * there are 2 * length bytes at local_offset: first the values to compare, then the values to
 * store. The operand is at most max_getput_md bytes, and whole elements. Errors are those of
 * PtlPutRegion. PTL_MD_ILLEGAL also if `op` is not defined on `type` or the length is wrong.
 *
 * With PTL_ATOMIC_RUNS in `op` the elements at the target lie in the runs listed at
 * local_offset. The descriptor must not have PTL_MD_IOVEC then. `length` is the bytes of all
 * elements together. The region at the target is the span of the runs; if that is truncated,
 * nothing is done. Events show `length`, or 0 in mlength. The result for bytes that are in
 * several runs is undefined.
 */
int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	      ptl_ack_req_t ack_req, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
	      ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
	      ptl_hdr_data_t hdr_data, ptl_atomic_op_t op, ptl_atomic_type_t type);

/* The same operations as a PtlGetPutRegion: the old contents of the target come back. */
int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t get_local_offset,
		   ptl_handle_md_t put_md_handle, ptl_size_t put_local_offset, ptl_size_t length,
		   ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
		   ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data,
		   ptl_atomic_op_t op, ptl_atomic_type_t type);

/* A timeout of PtlEQAwait: wait for ever, and do not poll first. It is for threads that watch
 * queues beside a program, whose processor they must not take. */
#define PTL_TIME_ASLEEP (PTL_TIME_FOREVER - 2)

/*
 * As PtlEQPoll, but leave the event in its queue. Wait until one of the queues has an event
 * (PTL_OK and *which_eq), or for `timeout` milliseconds (PTL_EQ_EMPTY). Any number of threads
 * may wait, and others take events meanwhile. Errors: PTL_NO_INIT, PTL_EQ_INVALID (*which_eq
 * names the queue), PTL_SEGV.
 */
int PtlEQAwait(ptl_handle_eq_t *eq_handles, int size, ptl_time_t timeout, int *which_eq);

/* MD option: the inline handler of PtlEQPollMany may see the puts that the descriptor accepts,
 * and the ends of operations started on it, before they become events. */
#define PTL_MD_INLINE 0x1000u

/*
 * A put into a descriptor with PTL_MD_INLINE (PTL_EVENT_PUT_END), or the end of an operation
 * on one (PTL_EVENT_REPLY_END, PTL_EVENT_ACK). All its data have arrived. It is valid only
 * during the call of the inline handler.
 */
typedef struct {
	ptl_process_id_t initiator; /* the process that sent or answered it */
	ptl_match_bits_t match_bits;
	ptl_hdr_data_t hdr_data;
	const void *data;  /* of a put; else NULL: the data are in the MD */
	ptl_size_t length; /* bytes at data, or bytes moved */
	void *user_ptr;    /* of the descriptor */
	ptl_event_kind_t type;
} ptl_arrival_t;

/* Results of an inline handler: it handled the message; it handled the message and the call
 * need not poll further, because this is what it waits for. */
#define PTL_HANDLED        1
#define PTL_HANDLED_ENOUGH 2

/* Returns 0 to decline the message. It must not call any Portals function. */
typedef int (*ptl_inline_handler_t)(const ptl_arrival_t *arrival);

/* Names of the last release, good for one more. */
#define PTL_MD_OFFER     PTL_MD_INLINE
#define PTL_TAKEN        PTL_HANDLED
#define PTL_TAKEN_ENOUGH PTL_HANDLED_ENOUGH
typedef ptl_inline_handler_t ptl_taker_t;

/* A timeout of PtlEQPollMany: poll, as with 0, and never yield the processor. It is for
 * callers that hold a lock other threads need. With 0, a caller that polls in vain many times
 * yields where the processors are oversubscribed. */
#define PTL_TIME_LOOK (PTL_TIME_FOREVER - 1)

/*
 * As PtlEQPoll, but take up to `max` events: all that are there, from one queue after another,
 * in order within each queue. *count is their number, also with an error. With PTL_EQ_DROPPED
 * events are missing before the last one. event.md.eq_handle names the queue. PTL_SEGV also if
 * max < 1.
 *
 * `handler`, if not NULL, is called by this thread during this call. It sees the puts
 * that a descriptor with PTL_MD_INLINE accepts, in the order of their arrival, as long as the
 * descriptor's queue is empty; that queue must be one of eq_handles. A put that it handles is
 * over: nothing is stored, the descriptor stays as it is, and there is no event. A put that it
 * declines goes the ordinary path. So does one that cannot be handled inline: an acknowledgement
 * is asked for, or its bytes are not here yet. PTL_OK with *count 0: some were handled inline,
 * and there is no event.
 *
 * The same holds for replies to and acknowledgements of operations that were started on a
 * descriptor with PTL_MD_INLINE, if all bytes asked for were moved. Handling one inline
 * replaces its event. The descriptor counts it as usual.
 *
 * With PTL_TIME_LOOK, PTL_EQ_EMPTY and *count -1 mean that a yield was due here. The caller
 * then calls sched_yield as soon as it holds no lock.
 */
int PtlEQPollMany(ptl_handle_eq_t *eq_handles, int size, ptl_time_t timeout,
		  ptl_inline_handler_t handler, ptl_event_t *events, int max, int *count);

/*
 * As PtlEQPollMany with a timeout of 0, but keep polling for some microseconds at most. It
 * ends when there is an event, when a message was handled inline, or when *word is `least` or
 * more.
 *
 * It is for a process that waits for another process to change a word in shared memory, and
 * that is also a target whose initiators wait for its polls. The word is read with acquire
 * semantics. PTL_SEGV also if word is NULL.
 */
int PtlEQPollWatch(ptl_handle_eq_t *eq_handles, int size, const uint64_t *word, uint64_t least,
		   ptl_inline_handler_t handler, ptl_event_t *events, int max, int *count);

/*
 * Why the last PtlInit or PtlNIInit of this thread failed: the warnings of the thread since
 * that call began, printed or, with PTL_QUIET, not. "" if there were none. The text is valid
 * until the thread's next call of Portals.
 */
const char *PtlInitReason(void);

/*
 * Why a process cannot be reached. *fail_type is PTL_NI_OK if nothing is known to be wrong,
 * and PTL_NI_PEER_DEAD if the process has ended or closed its interface. Any other value: it
 * may be alive, and `text` says why no transport leads there and what could help. `text` has
 * `size` bytes; a longer text is cut. Returns PTL_OK, PTL_NO_INIT, PTL_NI_INVALID or PTL_SEGV.
 */
int PtlPeerReason(ptl_handle_ni_t ni_handle, ptl_process_id_t process, ptl_ni_fail_t *fail_type,
		  char *text, ptl_size_t size);

/*
 * End the connection to a process, and release what it takes here: shared memory, descriptors.
 * Operations to it that are under way fail. Later operations, of either side, connect again. No
 * effect if there is no connection. Returns PTL_OK, PTL_NO_INIT or PTL_NI_INVALID.
 */
int PtlPeerDrop(ptl_handle_ni_t ni_handle, ptl_process_id_t process);

/*
 * Ask the launcher to end the job with this exit code after printing `message` (may be NULL).
 * PTL_OK: the launcher was asked. PTL_FAIL: there is none. The call returns either way.
 */
int PtlJobAbort(int code, const char *message);

/*
 * Wait until all ranks of the job have called this as often; a process that is alone returns
 * at once. PTL_OK, or PTL_FAIL: the launcher is gone, or there is none (a job described by
 * PTL_NIDMAP).
 */
int PtlJobFence(void);

/*
 * Tell the launcher that this process needs it no more: PtlJobFence fails from now on, and the
 * exit code of the process is no reason to end the job. Interfaces stay open. PtlFini does it by
 * itself. PTL_OK, or PTL_FAIL: there is no launcher, or the ranks have not met yet.
 */
int PtlJobLeave(void);

/*
 * Set *number to the index, from 0, of this process's program among those given to the
 * launcher. It is 0 without a launcher, and where the launcher does not tell. Returns PTL_OK,
 * PTL_FAIL if the job could not be joined or was left, or PTL_SEGV if `number` is NULL.
 */
int PtlJobProgram(int *number);

/* One program of a job that is to be started, see PtlJobSpawn. A NULL pointer in all members but
 * `file`: the launcher's default. */
typedef struct {
	const char *file;
	char *const *argv; /* without the program's name; ends with NULL */
	int count;         /* number of processes */
	const char *wdir, *path, *host, *soft;
} ptl_command_t;

/*
 * Ask the launcher to start another job of these programs, and wait until it runs. Its processes
 * get the text `message` by PtlJobMessage. Returns PTL_OK, PTL_SEGV, or PTL_FAIL: `why`, of `size`
 * bytes, says why not.
 */
int PtlJobSpawn(const ptl_command_t *commands, int n, const char *message, char *why, ptl_size_t size);

/*
 * The message that PtlJobSpawn got when this job was started. PTL_OK; PTL_FAIL: it was not
 * started so, or the text is longer; or PTL_SEGV.
 */
int PtlJobMessage(char *text, ptl_size_t size);

/* Set *size to the number of processes that the launcher has room for. PTL_OK, PTL_FAIL if it
 * does not say, or PTL_SEGV. */
int PtlJobUniverse(int *size);

/*
 * Publish a text under a name, find it, and take it back: with the launcher, if it keeps names,
 * else among the processes of this host and user. Returns PTL_OK; PTL_ME_IN_USE: the name is
 * published already; PTL_HANDLE_INVALID: it is not published; PTL_NO_SPACE: something is too long;
 * PTL_FAIL: names cannot be kept here; or PTL_SEGV.
 */
int PtlNamePublish(const char *name, const char *text);
int PtlNameLookup(const char *name, char *text, ptl_size_t size);
int PtlNameUnpublish(const char *name);

#ifdef __cplusplus
}
#endif

#endif
