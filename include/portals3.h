/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The Portals 3.3 API (SAND2006-0420): types, constants and functions. A client needs only
 * this header. The other names that old clients include (portals/portals3.h, p3api/...,
 * p3nal_utcp.h) lead here. Section numbers are those of the 3.3 report. Every function has a
 * man page in section 3.
 */
#ifndef PORTALS3_H
#define PORTALS3_H

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 3.2 basic types ------------------------------------------------------------------------ */

typedef uint64_t ptl_size_t;       /* bytes, or a count of objects */
typedef uint32_t ptl_handle_any_t; /* any handle; the four below convert to it without loss */
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_me_t;
typedef uint32_t ptl_pt_index_t;   /* portal table index */
typedef uint32_t ptl_ac_index_t;   /* access control table index */
typedef uint64_t ptl_match_bits_t;
/* 64 bits of the initiator's choice, shown in the target's event */
typedef uint64_t ptl_hdr_data_t;
typedef uint32_t ptl_interface_t;
typedef uint32_t ptl_nid_t;        /* node: the host's IPv4 address in host byte order */
typedef uint32_t ptl_pid_t;        /* process on that node */
typedef uint32_t ptl_uid_t;
typedef uint32_t ptl_jid_t;
typedef uint32_t ptl_sr_index_t;   /* status register, PTL_SR_* */
typedef uint64_t ptl_sr_value_t;
typedef uint32_t ptl_ni_fail_t;    /* why an operation failed, PTL_NI_* */
typedef uint32_t ptl_seq_t;        /* event sequence number, wraps */
typedef uint32_t ptl_time_t;       /* milliseconds */

typedef struct {
	ptl_nid_t nid;
	ptl_pid_t pid;
} ptl_process_id_t;

#define PTL_INVALID_HANDLE ((ptl_handle_any_t)0xffffffffu) /* no object */
#define PTL_HANDLE_NONE    ((ptl_handle_any_t)0x7fffffffu) /* the null handle */
#define PTL_EQ_NONE        ((ptl_handle_eq_t)0xbfffffffu)  /* no event queue */
#define PTL_NID_ANY        ((ptl_nid_t)-1)
#define PTL_PID_ANY        ((ptl_pid_t)-1)
#define PTL_UID_ANY        ((ptl_uid_t)-1)
#define PTL_JID_ANY        ((ptl_jid_t)-1)
#define PTL_JID_NONE       ((ptl_jid_t)-2)
#define PTL_PT_INDEX_ANY   ((ptl_pt_index_t)-1)
#define PTL_TIME_FOREVER   ((ptl_time_t)-1)
#define PTL_MAX_TRANS_SZ   ((ptl_size_t)1 << 46) /* longest transfer, bytes */

/* 3.2.5 interfaces. Every name selects one of the PTL_MAX_INTERFACES interfaces. */
#define PTL_MAX_INTERFACES 4
#ifndef PTL_IFACE_DEFAULT /* clients of the XT may define it as one of the names below */
#define PTL_IFACE_DEFAULT  ((ptl_interface_t)0)
#endif

/* ---- return codes (3.14) --------------------------------------------------------------------- */

/* X(name, text): every code a Portals function returns; also makes ptl_err_str[]. */
#define PTL_ERR_TABLE(X)                                                                          \
	X(PTL_OK, "success")                                                                      \
	X(PTL_FAIL, "failure in initialization or cleanup")                                       \
	X(PTL_NO_INIT, "PtlInit has not been called")                                             \
	X(PTL_NO_SPACE, "out of memory or of objects")                                            \
	X(PTL_SEGV, "bad pointer argument")                                                       \
	X(PTL_HANDLE_INVALID, "invalid handle")                                                   \
	X(PTL_NI_INVALID, "invalid network interface handle")                                     \
	X(PTL_ME_INVALID, "invalid match entry handle")                                           \
	X(PTL_MD_INVALID, "invalid or inactive memory descriptor")                                \
	X(PTL_EQ_INVALID, "invalid event queue handle")                                           \
	X(PTL_IFACE_INVALID, "no such interface")                                                 \
	X(PTL_PID_INVALID, "process id not usable")                                               \
	X(PTL_PROCESS_INVALID, "invalid process")                                                 \
	X(PTL_PT_INDEX_INVALID, "invalid portal table index")                                     \
	X(PTL_AC_INDEX_INVALID, "invalid access control index")                                   \
	X(PTL_SR_INDEX_INVALID, "invalid status register")                                        \
	X(PTL_PT_FULL, "no free portal table index")                                              \
	X(PTL_MD_ILLEGAL, "illegal memory descriptor or region outside it")                       \
	X(PTL_MD_IN_USE, "memory descriptor has pending operations")                              \
	X(PTL_MD_NO_UPDATE, "memory descriptor not updated: event queue not empty")               \
	X(PTL_ME_IN_USE, "match entry has a memory descriptor or pending operations")             \
	X(PTL_ME_LIST_TOO_LONG, "match list too long")                                            \
	X(PTL_EQ_EMPTY, "event queue empty")                                                      \
	X(PTL_EQ_DROPPED, "an event is returned, but events before it were lost")                 \
	X(PTL_EQ_IN_USE, "event queue in use by a memory descriptor")                             \
	X(PTL_IFACE_DUP, "interface already initialized")                                         \
	X(PTL_VAL_FAILED, "address validation failed")                                            \
	X(PTL_UNKNOWN_ERROR, "unknown error")

#define PTL_ERR_ENUM_(name, text) name,
typedef enum { PTL_ERR_TABLE(PTL_ERR_ENUM_) PTL_MAX_ERRNO } ptl_err_t;
#undef PTL_ERR_ENUM_

/* The same codes, for clients that test for them with #ifdef. */
#define PTL_IFACE_DUP  PTL_IFACE_DUP
#define PTL_EQ_IN_USE  PTL_EQ_IN_USE
#define PTL_VAL_FAILED PTL_VAL_FAILED

/* Why an operation failed: ptl_event_t.ni_fail_type (3.11.4). */
#define PTL_NI_FAIL_TABLE(X)                                                                      \
	X(PTL_NI_OK, "success")                                                                   \
	X(PTL_NI_FAIL, "failure")                                                                 \
	X(PTL_NI_UNREACHABLE, "no path to the process, or no such process")                       \
	X(PTL_NI_PEER_DEAD, "the peer process died")                                              \
	X(PTL_NI_BAD_ADDRESS, "memory of the initiator or target is not accessible")              \
	X(PTL_NI_PROTOCOL, "the peer sent something that is no valid message")

enum {
#define PTL_NI_FAIL_ENUM_(name, text) name,
	PTL_NI_FAIL_TABLE(PTL_NI_FAIL_ENUM_)
#undef PTL_NI_FAIL_ENUM_
	PTL_NI_FAIL_MAX
};

/* ---- status registers (3.2.7) ---------------------------------------------------------------- */

enum {
	PTL_SR_DROP_COUNT = 0, /* requests, acks and replies discarded */
	PTL_SR_DROP_LENGTH,    /* requested bytes of discarded requests */
	PTL_SR_RECV_COUNT,     /* messages accepted */
	PTL_SR_RECV_LENGTH,    /* bytes accepted */
	PTL_SR_SEND_COUNT,     /* requests initiated */
	PTL_SR_SEND_LENGTH,    /* bytes sent by put and getput */
	PTL_SR_PTLS_MAX,       /* portal table entries in use: most so far, now */
	PTL_SR_PTLS_CUR,
	/* operations that needed a record: allocated, freed, most at once, now */
	PTL_SR_MSGS_ALLOC,
	PTL_SR_MSGS_FREED,
	PTL_SR_MSGS_MAX,
	PTL_SR_MSGS_CUR,
	PTL_SR_MES_ALLOC,
	PTL_SR_MES_FREED,
	PTL_SR_MES_MAX,
	PTL_SR_MES_CUR,
	PTL_SR_MDS_ALLOC,
	PTL_SR_MDS_FREED,
	PTL_SR_MDS_MAX,
	PTL_SR_MDS_CUR,
	PTL_SR_EQS_ALLOC,
	PTL_SR_EQS_FREED,
	PTL_SR_EQS_MAX,
	PTL_SR_EQS_CUR,
	PTL_SR_MD_ALIGN_128,   /* MDs created, by the largest alignment of their start */
	PTL_SR_MD_ALIGN_64,
	PTL_SR_MD_ALIGN_32,
	PTL_SR_MD_ALIGN_16,
	PTL_SR_MD_ALIGN_8,
	PTL_SR_LAST_
};
/* entries on a portal now */
#define PTL_SR_MLIST_LEN(pt_index) ((ptl_sr_index_t)(0x40000000u | (pt_index)))
#define PTL_SR_MLIST_MAX(pt_index) ((ptl_sr_index_t)(0x60000000u | (pt_index))) /* most so far */

/* ---- 3.5.1 limits ---------------------------------------------------------------------------- */

typedef struct {
	int max_mes;
	int max_mds;
	int max_eqs;
	int max_ac_index;  /* largest valid index */
	int max_pt_index;  /* largest valid index */
	int max_md_iovecs;
	int max_me_list;
	int max_getput_md; /* bytes */
} ptl_ni_limits_t;

/* ---- 3.9, 3.10 match entries and memory descriptors ------------------------------------------ */

typedef enum { PTL_RETAIN = 0, PTL_UNLINK } ptl_unlink_t;
typedef enum { PTL_INS_BEFORE = 0, PTL_INS_AFTER } ptl_ins_pos_t;
/* Both spellings are constants. A client may define the one it misses as the other. */
typedef enum {
	PTL_ACK_REQ = 0,
	PTL_NO_ACK_REQ,
#ifndef PTL_NOACK_REQ
	PTL_NOACK_REQ = PTL_NO_ACK_REQ /* as 3.2 and Cray spell it */
#endif
} ptl_ack_req_t;

typedef struct {
	void *iov_base;
	ptl_size_t iov_len;
} ptl_md_iovec_t;

typedef struct {
	void *start;               /* first byte, or ptl_md_iovec_t array with PTL_MD_IOVEC */
	ptl_size_t length;         /* bytes, or array entries with PTL_MD_IOVEC */
	int threshold;             /* operations left; PTL_MD_THRESH_INF: no limit; 0: inactive */
	/* with PTL_MD_MAX_SIZE: inactive when less room than this is left */
	ptl_size_t max_size;
	unsigned int options;      /* PTL_MD_* */
	void *user_ptr;            /* returned in every event */
	ptl_handle_eq_t eq_handle; /* or PTL_EQ_NONE */
} ptl_md_t;

#define PTL_MD_THRESH_INF (-1)

#define PTL_MD_OP_PUT              0x0001u
#define PTL_MD_OP_GET              0x0002u
#define PTL_MD_MANAGE_REMOTE       0x0004u
#define PTL_MD_TRUNCATE            0x0008u
#define PTL_MD_ACK_DISABLE         0x0010u
#define PTL_MD_IOVEC               0x0020u
#define PTL_MD_MAX_SIZE            0x0040u
#define PTL_MD_EVENT_START_DISABLE 0x0080u
#define PTL_MD_EVENT_END_DISABLE   0x0100u
/* Cray: ask for UNLINK events. Automatic ones always come, explicit ones only if asked for. */
#define PTL_MD_EVENT_AUTO_UNLINK_ENABLE   0x0200u
#define PTL_MD_EVENT_MANUAL_UNLINK_ENABLE 0x0400u
/* Cray: the same as unlink_op = PTL_UNLINK, as an option. */
#define PTL_MD_FLAG_AUTO_UNLINK           0x0800u
/* Options of Cray kernel clients. They have no effect here. */
#define PTL_MD_LUSTRE_COMPLETION_SEMANTICS 0u
#define PTL_MD_PHYS                        0u
#define PTL_MD_LOCAL_ALIGN8                0u

/* ---- 3.11 events ----------------------------------------------------------------------------- */

#define PTL_EVENT_TABLE(X)                                                                        \
	X(PTL_EVENT_GET_START)                                                                    \
	X(PTL_EVENT_GET_END)                                                                      \
	X(PTL_EVENT_PUT_START)                                                                    \
	X(PTL_EVENT_PUT_END)                                                                      \
	X(PTL_EVENT_GETPUT_START)                                                                 \
	X(PTL_EVENT_GETPUT_END)                                                                   \
	X(PTL_EVENT_REPLY_START)                                                                  \
	X(PTL_EVENT_REPLY_END)                                                                    \
	X(PTL_EVENT_SEND_START)                                                                   \
	X(PTL_EVENT_SEND_END)                                                                     \
	X(PTL_EVENT_ACK)                                                                          \
	X(PTL_EVENT_UNLINK)

#define PTL_EVENT_ENUM_(name) name,
typedef enum { PTL_EVENT_TABLE(PTL_EVENT_ENUM_) PTL_EVENT_MAX } ptl_event_kind_t;
#undef PTL_EVENT_ENUM_

typedef struct {
	ptl_event_kind_t type;
	ptl_process_id_t initiator;  /* in ACK and REPLY events: the process that answered */
	ptl_uid_t uid;
	ptl_jid_t jid;
	ptl_pt_index_t pt_index;
	ptl_match_bits_t match_bits;
	ptl_size_t rlength;          /* bytes asked for */
	ptl_size_t mlength;          /* bytes moved */
	ptl_size_t offset;           /* displacement in this MD's memory */
	ptl_handle_md_t md_handle;
	ptl_md_t md;                 /* the MD after this operation was counted */
	ptl_hdr_data_t hdr_data;
	ptl_seq_t link;              /* equal in START and END, and in UNLINK and its cause */
	ptl_ni_fail_t ni_fail_type;
	volatile ptl_seq_t sequence;
} ptl_event_t;

typedef void (*ptl_eq_handler_t)(ptl_event_t *event);
#define PTL_EQ_HANDLER_NONE ((ptl_eq_handler_t)0)

/* ---- 3.4 initialization ---------------------------------------------------------------------- */

int PtlInit(int *max_interfaces);
void PtlFini(void);

/* ---- 3.5 network interfaces ------------------------------------------------------------------ */

int PtlNIInit(ptl_interface_t interface, ptl_pid_t pid, ptl_ni_limits_t *desired,
	      ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle);
int PtlNIFini(ptl_handle_ni_t ni_handle);
int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t register_index, ptl_sr_value_t *status);
int PtlNIDist(ptl_handle_ni_t ni_handle, ptl_process_id_t process, unsigned long *distance);
int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle);

/* ---- 3.6 to 3.8 identities ------------------------------------------------------------------- */

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);
int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_id_t *id);
int PtlGetJid(ptl_handle_ni_t ni_handle, ptl_jid_t *jid);

/* ---- 3.9 match entries ----------------------------------------------------------------------- */

int PtlMEAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_process_id_t match_id,
		ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
		ptl_ins_pos_t position, ptl_handle_me_t *me_handle);
int PtlMEAttachAny(ptl_handle_ni_t ni_handle, ptl_pt_index_t *pt_index, ptl_process_id_t match_id,
		   ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
		   ptl_handle_me_t *me_handle);
int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
		ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position,
		ptl_handle_me_t *me_handle);
int PtlMEUnlink(ptl_handle_me_t me_handle);

/* ---- 3.10 memory descriptors ----------------------------------------------------------------- */

int PtlMDAttach(ptl_handle_me_t me_handle, ptl_md_t md, ptl_unlink_t unlink_op,
		ptl_handle_md_t *md_handle);
int PtlMDBind(ptl_handle_ni_t ni_handle, ptl_md_t md, ptl_unlink_t unlink_op,
	      ptl_handle_md_t *md_handle);
int PtlMDUnlink(ptl_handle_md_t md_handle);
int PtlMDUpdate(ptl_handle_md_t md_handle, ptl_md_t *old_md, ptl_md_t *new_md,
		ptl_handle_eq_t eq_handle);

/* ---- 3.11 event queues ----------------------------------------------------------------------- */

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_eq_handler_t eq_handler,
	       ptl_handle_eq_t *eq_handle);
int PtlEQFree(ptl_handle_eq_t eq_handle);
int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event);
int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event);
int PtlEQPoll(ptl_handle_eq_t *eq_handles, int size, ptl_time_t timeout, ptl_event_t *event,
	      int *which_eq);

/* ---- 3.12 access control --------------------------------------------------------------------- */

int PtlACEntry(ptl_handle_ni_t ni_handle, ptl_ac_index_t ac_index, ptl_process_id_t match_id,
	       ptl_uid_t user_id, ptl_jid_t job_id, ptl_pt_index_t pt_index);

/* ---- 3.13 data movement ---------------------------------------------------------------------- */

int PtlPut(ptl_handle_md_t md_handle, ptl_ack_req_t ack_req, ptl_process_id_t target_id,
	   ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
	   ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);
int PtlPutRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
		 ptl_ack_req_t ack_req, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
		 ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
		 ptl_hdr_data_t hdr_data);
int PtlGet(ptl_handle_md_t md_handle, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
	   ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset);
int PtlGetRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
		 ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
		 ptl_match_bits_t match_bits, ptl_size_t remote_offset);
int PtlGetPut(ptl_handle_md_t get_md_handle, ptl_handle_md_t put_md_handle,
	      ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
	      ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/* ---- Cray XT additions (not in the report) --------------------------------------------------- */

int PtlGetPutRegion(ptl_handle_md_t get_md_handle, ptl_size_t get_local_offset,
		    ptl_handle_md_t put_md_handle, ptl_size_t put_local_offset, ptl_size_t length,
		    ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
		    ptl_match_bits_t match_bits, ptl_size_t remote_offset,
		    ptl_hdr_data_t hdr_data);
int PtlMEMDAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_process_id_t match_id,
		  ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
		  ptl_ins_pos_t position, ptl_md_t md, ptl_unlink_t unlink_op,
		  ptl_handle_me_t *me_handle, ptl_handle_md_t *md_handle);
int PtlMEMDInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
		  ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position,
		  ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_me_t *me_handle,
		  ptl_handle_md_t *md_handle);
int PtlMEMDPost(ptl_handle_ni_t ni_handle, ptl_handle_me_t base, ptl_process_id_t match_id,
		ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
		ptl_ins_pos_t position, ptl_md_t md, ptl_unlink_t unlink_op,
		ptl_handle_me_t *me_handle, ptl_handle_md_t *md_handle, ptl_handle_eq_t eq_handle);
int PtlEQPeek(ptl_handle_eq_t eq_handle, ptl_event_t *event);

/* Interface names of the XT. All of them name the default interface, so PTL_IFACE_DEFAULT may
 * be any. */
#define PTL_BRIDGE_UK 1
#define PTL_BRIDGE_QK 2
#define PTL_BRIDGE_KK 3
#define PTL_IFACE_SS  ((ptl_interface_t)0)
#define IFACE_FROM_BRIDGE_AND_NALID(bridge, nal) ((ptl_interface_t)0)
#define CRAY_USER_NAL PTL_IFACE_SS
#define CRAY_QK_NAL   PTL_IFACE_SS
#define CRAY_UK_SSNAL PTL_IFACE_SS
#define CRAY_QK_SSNAL PTL_IFACE_SS
#define CRAY_KERN_NAL PTL_IFACE_SS
#define CRAY_ACCEL    PTL_IFACE_SS
#define ACCEL_PTLS_PID_SPACE_OFFSET 0

/* ---- texts and debugging, as in the reference implementation --------------------------------- */

extern const char *ptl_err_str[];   /* by return code, PTL_MAX_ERRNO entries */
extern const char *ptl_event_str[]; /* by event kind, PTL_EVENT_MAX entries */

const char *PtlErrorStr(unsigned code);
const char *PtlEventKindStr(ptl_event_kind_t kind);
const char *PtlNIFailStr(ptl_handle_ni_t ni_handle, ptl_ni_fail_t code);

/* PtlEQWait for at most `timeout` seconds, then PTL_EQ_EMPTY; 0 or less: without limit. */
int PtlEQWait_timeout(ptl_handle_eq_t eq_handle, ptl_event_t *event, int timeout);
/* One round of progress on the NI of `handle` (any kind); waits up to `timeout` ms for work. */
int PtlProgress(ptl_handle_any_t handle, ptl_time_t timeout);

#ifdef __cplusplus
}
#endif

#include <p3api/debug.h>

#endif
