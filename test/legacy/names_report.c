/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every name of the 3.3 report with the type clients rely on: a function is what its pointer
 * says, structures have their members in the report's order, and constants are what their uses
 * need. Compiled as C and as C++.
 */
#include <portals3.h>
#include <stddef.h>

/* ---- functions ------------------------------------------------------------------------------- */

static int (*init)(int *) = PtlInit;
static void (*fini)(void) = PtlFini;
static int (*ni_init)(ptl_interface_t, ptl_pid_t, ptl_ni_limits_t *, ptl_ni_limits_t *,
		      ptl_handle_ni_t *) = PtlNIInit;
static int (*ni_fini)(ptl_handle_ni_t) = PtlNIFini;
static int (*ni_status)(ptl_handle_ni_t, ptl_sr_index_t, ptl_sr_value_t *) = PtlNIStatus;
static int (*ni_dist)(ptl_handle_ni_t, ptl_process_id_t, unsigned long *) = PtlNIDist;
static int (*ni_handle)(ptl_handle_any_t, ptl_handle_ni_t *) = PtlNIHandle;
static int (*get_uid)(ptl_handle_ni_t, ptl_uid_t *) = PtlGetUid;
static int (*get_id)(ptl_handle_ni_t, ptl_process_id_t *) = PtlGetId;
static int (*get_jid)(ptl_handle_ni_t, ptl_jid_t *) = PtlGetJid;
static int (*me_attach)(ptl_handle_ni_t, ptl_pt_index_t, ptl_process_id_t, ptl_match_bits_t,
			ptl_match_bits_t, ptl_unlink_t, ptl_ins_pos_t,
			ptl_handle_me_t *) = PtlMEAttach;
static int (*me_attach_any)(ptl_handle_ni_t, ptl_pt_index_t *, ptl_process_id_t, ptl_match_bits_t,
			    ptl_match_bits_t, ptl_unlink_t, ptl_handle_me_t *) = PtlMEAttachAny;
static int (*me_insert)(ptl_handle_me_t, ptl_process_id_t, ptl_match_bits_t, ptl_match_bits_t,
			ptl_unlink_t, ptl_ins_pos_t, ptl_handle_me_t *) = PtlMEInsert;
static int (*me_unlink)(ptl_handle_me_t) = PtlMEUnlink;
static int (*md_attach)(ptl_handle_me_t, ptl_md_t, ptl_unlink_t, ptl_handle_md_t *) = PtlMDAttach;
static int (*md_bind)(ptl_handle_ni_t, ptl_md_t, ptl_unlink_t, ptl_handle_md_t *) = PtlMDBind;
static int (*md_unlink)(ptl_handle_md_t) = PtlMDUnlink;
static int (*md_update)(ptl_handle_md_t, ptl_md_t *, ptl_md_t *, ptl_handle_eq_t) = PtlMDUpdate;
static int (*eq_alloc)(ptl_handle_ni_t, ptl_size_t, ptl_eq_handler_t,
		       ptl_handle_eq_t *) = PtlEQAlloc;
static int (*eq_free)(ptl_handle_eq_t) = PtlEQFree;
static int (*eq_get)(ptl_handle_eq_t, ptl_event_t *) = PtlEQGet;
static int (*eq_wait)(ptl_handle_eq_t, ptl_event_t *) = PtlEQWait;
static int (*eq_poll)(ptl_handle_eq_t *, int, ptl_time_t, ptl_event_t *, int *) = PtlEQPoll;
static int (*ac_entry)(ptl_handle_ni_t, ptl_ac_index_t, ptl_process_id_t, ptl_uid_t, ptl_jid_t,
		       ptl_pt_index_t) = PtlACEntry;
static int (*put)(ptl_handle_md_t, ptl_ack_req_t, ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t,
		  ptl_match_bits_t, ptl_size_t, ptl_hdr_data_t) = PtlPut;
static int (*put_region)(ptl_handle_md_t, ptl_size_t, ptl_size_t, ptl_ack_req_t, ptl_process_id_t,
			 ptl_pt_index_t, ptl_ac_index_t, ptl_match_bits_t, ptl_size_t,
			 ptl_hdr_data_t) = PtlPutRegion;
static int (*get)(ptl_handle_md_t, ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t,
		  ptl_match_bits_t, ptl_size_t) = PtlGet;
static int (*get_region)(ptl_handle_md_t, ptl_size_t, ptl_size_t, ptl_process_id_t, ptl_pt_index_t,
			 ptl_ac_index_t, ptl_match_bits_t, ptl_size_t) = PtlGetRegion;
static int (*getput)(ptl_handle_md_t, ptl_handle_md_t, ptl_process_id_t, ptl_pt_index_t,
		     ptl_ac_index_t, ptl_match_bits_t, ptl_size_t, ptl_hdr_data_t) = PtlGetPut;

/* ---- constants ------------------------------------------------------------------------------- */

static ptl_handle_md_t no_md = PTL_INVALID_HANDLE; /* statics are initialized with these */
static ptl_handle_any_t none = PTL_HANDLE_NONE;
static ptl_handle_eq_t no_eq = PTL_EQ_NONE;
static ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };
static ptl_eq_handler_t no_handler = PTL_EQ_HANDLER_NONE;

/* As cases of one switch, so that they are constants and differ. */
static int code(int rc)
{
	switch (rc) {
	case PTL_OK:
		return 1;
	case PTL_AC_INDEX_INVALID:
	case PTL_EQ_DROPPED:
	case PTL_EQ_EMPTY:
	case PTL_EQ_INVALID:
	case PTL_FAIL:
	case PTL_HANDLE_INVALID:
	case PTL_IFACE_INVALID:
	case PTL_MD_ILLEGAL:
	case PTL_MD_INVALID:
	case PTL_MD_IN_USE:
	case PTL_MD_NO_UPDATE:
	case PTL_ME_INVALID:
	case PTL_ME_IN_USE:
	case PTL_ME_LIST_TOO_LONG:
	case PTL_NI_INVALID:
	case PTL_NO_INIT:
	case PTL_NO_SPACE:
	case PTL_PID_INVALID:
	case PTL_PROCESS_INVALID:
	case PTL_PT_FULL:
	case PTL_PT_INDEX_INVALID:
	case PTL_SEGV:
	case PTL_SR_INDEX_INVALID:
	case PTL_UNKNOWN_ERROR:
	case PTL_MAX_ERRNO:
		return 0;
	}
	return -1;
}

/* Every kind and no other: -Wswitch is about what is missing. */
static int both_sides(ptl_event_kind_t kind)
{
	switch (kind) {
	case PTL_EVENT_GET_START:
	case PTL_EVENT_GET_END:
	case PTL_EVENT_PUT_START:
	case PTL_EVENT_PUT_END:
	case PTL_EVENT_GETPUT_START:
	case PTL_EVENT_GETPUT_END:
		return 0;
	case PTL_EVENT_REPLY_START:
	case PTL_EVENT_REPLY_END:
	case PTL_EVENT_SEND_START:
	case PTL_EVENT_SEND_END:
	case PTL_EVENT_ACK:
		return 1;
	case PTL_EVENT_UNLINK:
		return 2;
	default:
		return -1;
	}
}

static unsigned options(void)
{
	return PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
	       PTL_MD_ACK_DISABLE | PTL_MD_IOVEC | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE |
	       PTL_MD_EVENT_END_DISABLE;
}

static int bits(unsigned word)
{
	int n = 0;

	for (; word; word &= word - 1)
		n++;
	return n;
}

/* ---- structures ------------------------------------------------------------------------------ */

#define BEFORE(type, a, b) (offsetof(type, a) < offsetof(type, b))

static int in_order(void)
{
	return BEFORE(ptl_process_id_t, nid, pid) && BEFORE(ptl_md_t, start, length) &&
	       BEFORE(ptl_md_t, length, threshold) && BEFORE(ptl_md_t, threshold, max_size) &&
	       BEFORE(ptl_md_t, max_size, options) && BEFORE(ptl_md_t, options, user_ptr) &&
	       BEFORE(ptl_md_t, user_ptr, eq_handle) && BEFORE(ptl_event_t, type, initiator) &&
	       BEFORE(ptl_event_t, initiator, uid) && BEFORE(ptl_event_t, uid, jid) &&
	       BEFORE(ptl_event_t, jid, pt_index) && BEFORE(ptl_event_t, pt_index, match_bits) &&
	       BEFORE(ptl_event_t, match_bits, rlength) && BEFORE(ptl_event_t, rlength, mlength) &&
	       BEFORE(ptl_event_t, mlength, offset) && BEFORE(ptl_event_t, offset, md_handle) &&
	       BEFORE(ptl_event_t, md_handle, md) && BEFORE(ptl_event_t, md, hdr_data) &&
	       BEFORE(ptl_event_t, hdr_data, link) && BEFORE(ptl_event_t, link, ni_fail_type) &&
	       BEFORE(ptl_event_t, ni_fail_type, sequence);
}

/* The order of the members, once more, is that of an initializer. */
static const ptl_ni_limits_t asked = { 1024, 1024, 16, 7, 63, 64, 1024, 256 };

static int as_asked(const ptl_ni_limits_t *l)
{
	return l->max_mes == 1024 && l->max_mds == 1024 && l->max_eqs == 16 &&
	       l->max_ac_index == 7 && l->max_pt_index == 63 && l->max_md_iovecs == 64 &&
	       l->max_me_list == 1024 && l->max_getput_md == 256;
}

int main(void)
{
	static char byte;
	ptl_md_iovec_t piece = { &byte, 1 };
	ptl_ni_limits_t desired = asked, actual;
	ptl_handle_ni_t ni;
	ptl_sr_value_t drops = 1;
	ptl_unlink_t unlink[] = { PTL_RETAIN, PTL_UNLINK };
	ptl_ins_pos_t where[] = { PTL_INS_BEFORE, PTL_INS_AFTER };
	ptl_ack_req_t ack[] = { PTL_ACK_REQ, PTL_NO_ACK_REQ };
	ptl_time_t forever = PTL_TIME_FOREVER;
	int n, ok;

	ok = PTL_OK == 0 && PTL_NI_OK == 0 && code(PTL_OK) == 1 && both_sides(PTL_EVENT_ACK) == 1 &&
	     bits(options()) == 9 && in_order();
	ok = ok && unlink[0] != unlink[1] && where[0] != where[1] && ack[0] != ack[1];
	ok = ok && no_md != none && none != no_eq && no_eq != no_md && !no_handler &&
	     forever + 1 == 0 && PTL_MD_THRESH_INF == -1 && piece.iov_len == 1 &&
	     anybody.nid + 1 == 0 && PTL_UID_ANY == (ptl_uid_t)-1 && PTL_JID_ANY == (ptl_jid_t)-1 &&
	     PTL_PT_INDEX_ANY == (ptl_pt_index_t)-1;
	if (!ok || init(&n) != PTL_OK)
		return 1;
	if (ni_init(PTL_IFACE_DEFAULT, PTL_PID_ANY, &desired, &actual, &ni) != PTL_OK)
		return 2;
	if (!as_asked(&actual) || ni_status(ni, PTL_SR_DROP_COUNT, &drops) != PTL_OK || drops)
		return 3;
	ok = ni_dist && ni_handle && get_uid && get_id && get_jid && me_attach && me_attach_any &&
	     me_insert && me_unlink && md_attach && md_bind && md_unlink && md_update && eq_alloc &&
	     eq_free && eq_get && eq_wait && eq_poll && ac_entry && put && put_region && get &&
	     get_region && getput;
	if (!ok || ni_fini(ni) != PTL_OK)
		return 4;
	fini();
	return 0;
}
