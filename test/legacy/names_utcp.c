/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every name of Sandia's reference implementation that its clients use besides the report's:
 * p3rt, texts, debugging, status registers, the headers where they were installed under
 * portals/. Compiled as C and as C++.
 */
#include <portals/portals3.h>
#include <portals/p3nal_utcp.h>
#include <portals/p3rt/p3rt.h>
#include <portals/p3api/api.h>
#include <portals/p3api/debug.h>
#include <portals/p3api/misc.h>
#include <portals/p3api/types.h>
#include <portals/p3/errno.h>
#include <portals/p3/nal_types.h>
#include <portals3.h>
#include <p3nal_utcp.h>
#include <p3nal_tcp.h>
#include <p3rt/p3rt.h>
#include <p3api/debug.h>

#include <stdio.h>
#include <string.h>

/* Old clients define where the library is to print. */
FILE *utcp_api_out;
FILE *utcp_lib_out;

static int (*set_rank)(ptl_handle_ni_t, unsigned, unsigned) = PtlSetRank;
static int (*set_nids)(ptl_handle_ni_t, ptl_nid_t *, unsigned) = PtlSetNIDMap;
static int (*set_pids)(ptl_handle_ni_t, ptl_pid_t *, unsigned) = PtlSetPIDMap;
static int (*get_rank)(ptl_handle_ni_t, unsigned *, unsigned *) = PtlGetRank;
static int (*get_rank_id)(ptl_handle_ni_t, unsigned, ptl_process_id_t *) = PtlGetRankId;
static int (*get_nids)(ptl_handle_ni_t, ptl_nid_t *, unsigned) = PtlGetNIDMap;
static int (*get_pids)(ptl_handle_ni_t, ptl_pid_t *, unsigned) = PtlGetPIDMap;
static int (*set_jid)(ptl_jid_t) = PtlSetJID;
static const char *(*error_str)(unsigned) = PtlErrorStr;
static const char *(*kind_str)(ptl_event_kind_t) = PtlEventKindStr;
static const char *(*fail_str)(ptl_handle_ni_t, ptl_ni_fail_t) = PtlNIFailStr;
static unsigned (*debug)(ptl_handle_ni_t, unsigned) = PtlNIDebug;
static int (*table_dump)(ptl_handle_ni_t, int) = PtlTblDump;
static int (*me_dump)(ptl_handle_me_t) = PtlMEDump;
static int (*eq_dump)(ptl_handle_ni_t) = PtlNIEqDump;
static int (*wait_a_while)(ptl_handle_eq_t, ptl_event_t *, int) = PtlEQWait_timeout;
static int (*progress)(ptl_handle_any_t, ptl_time_t) = PtlProgress;
static int (*my_nid)(const char *, unsigned *) = p3tcp_my_nid;

static const ptl_interface_t interfaces[] = { PTL_IFACE_DEFAULT, PTL_IFACE_UTCP,  PTL_IFACE_UTCP0,
					      PTL_IFACE_UTCP1,   PTL_IFACE_UTCP2, PTL_IFACE_UTCP3 };

static const unsigned masks[] = {
	PTL_DBG_API,      PTL_DBG_PARSE,  PTL_DBG_MOVE,  PTL_DBG_DROP,     PTL_DBG_REQUEST,
	PTL_DBG_DELIVERY, PTL_DBG_MD,     PTL_DBG_ME,    PTL_DBG_UNLINK,   PTL_DBG_EQ,
	PTL_DBG_EVENT,    PTL_DBG_MEMORY, PTL_DBG_SETUP, PTL_DBG_SHUTDOWN, PTL_DBG_NI_00,
	PTL_DBG_NI_01,    PTL_DBG_NI_02,  PTL_DBG_NI_03, PTL_DBG_NI_04,    PTL_DBG_NI_05,
	PTL_DBG_NI_06,    PTL_DBG_NI_07,  PTL_DBG_NI_08, PTL_DBG_NI_09,    PTL_DBG_NI_10,
	PTL_DBG_NI_11,    PTL_DBG_NI_12,  PTL_DBG_NI_13, PTL_DBG_NI_14,    PTL_DBG_NI_15,
};

static const ptl_sr_index_t registers[] = {
	PTL_SR_DROP_COUNT,   PTL_SR_DROP_LENGTH,  PTL_SR_RECV_COUNT,   PTL_SR_RECV_LENGTH,
	PTL_SR_SEND_COUNT,   PTL_SR_SEND_LENGTH,  PTL_SR_PTLS_MAX,     PTL_SR_PTLS_CUR,
	PTL_SR_MSGS_ALLOC,   PTL_SR_MSGS_FREED,   PTL_SR_MSGS_MAX,     PTL_SR_MSGS_CUR,
	PTL_SR_MES_ALLOC,    PTL_SR_MES_FREED,    PTL_SR_MES_MAX,      PTL_SR_MES_CUR,
	PTL_SR_MDS_ALLOC,    PTL_SR_MDS_FREED,    PTL_SR_MDS_MAX,      PTL_SR_MDS_CUR,
	PTL_SR_EQS_ALLOC,    PTL_SR_EQS_FREED,    PTL_SR_EQS_MAX,      PTL_SR_EQS_CUR,
	PTL_SR_MD_ALIGN_128, PTL_SR_MD_ALIGN_64,  PTL_SR_MD_ALIGN_32,  PTL_SR_MD_ALIGN_16,
	PTL_SR_MD_ALIGN_8,   PTL_SR_MLIST_LEN(3), PTL_SR_MLIST_MAX(3),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Each mask is set and read back, alone and all together; they differ. */
static int masks_work(ptl_handle_ni_t ni)
{
	unsigned all = 0;

	debug(ni, PTL_DBG_NONE);
	for (size_t i = 0; i < COUNT(masks); i++) {
		if (masks[i] & all || debug(ni, masks[i]) != (i ? masks[i - 1] : PTL_DBG_NONE))
			return 0;
		all |= masks[i];
	}
	debug(ni, PTL_DBG_NONE);
	return (all & ~(PTL_DBG_ALL | PTL_DBG_NI_ALL)) == 0 && (PTL_DBG_ALL & PTL_DBG_NI_ALL) == 0;
}

static int texts_work(ptl_handle_ni_t ni)
{
	return !strcmp(ptl_err_str[PTL_OK], "PTL_OK") &&
	       !strcmp(error_str(PTL_MD_NO_UPDATE), ptl_err_str[PTL_MD_NO_UPDATE]) &&
	       !strcmp(ptl_err_str[PTL_UNKNOWN_ERROR], "PTL_UNKNOWN_ERROR") &&
	       !strcmp(kind_str(PTL_EVENT_PUT_END), "PTL_EVENT_PUT_END") &&
	       *fail_str(ni, PTL_NI_OK) && *fail_str(ni, PTL_NI_FAIL);
}

static int dumps_work(ptl_handle_ni_t ni)
{
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_handle_me_t me;
	int ok = 1;

	p3_out = fopen("/dev/null", "w");
	ok = ok && p3_out &&
	     PtlMEAttach(ni, 3, any, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me) == PTL_OK;
	ok = ok && table_dump(ni, 3) == PTL_OK && me_dump(me) == PTL_OK && eq_dump(ni) == PTL_OK;
	ok = ok && table_dump(ni, 1 << 20) == PTL_PT_INDEX_INVALID;
	ok = ok && table_dump(PTL_INVALID_HANDLE, 0) == PTL_NI_INVALID;
	ok = ok && me_dump(PTL_INVALID_HANDLE) == PTL_ME_INVALID;
	ok = ok && eq_dump(PTL_INVALID_HANDLE) == PTL_NI_INVALID;
	ok = ok && PtlMEUnlink(me) == PTL_OK && me_dump(me) == PTL_ME_INVALID;
	return ok;
}

static int rank_works(ptl_handle_ni_t ni)
{
	ptl_process_id_t id, own;
	ptl_rid_t rank, size;
	ptl_nid_t nid;
	ptl_pid_t pid;

	return get_rank(ni, &rank, &size) == PTL_OK && rank == 0 && size == 1 &&
	       get_rank_id(ni, 0, &id) == PTL_OK && PtlGetId(ni, &own) == PTL_OK &&
	       id.nid == own.nid && id.pid == own.pid && get_nids(ni, &nid, 1) == PTL_OK &&
	       get_pids(ni, &pid, 1) == PTL_OK && nid == own.nid && pid == own.pid;
}

int main(void)
{
	ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
	ptl_sr_value_t value;
	ptl_jid_t jid;
	unsigned nid;
	int n;

	utcp_api_out = utcp_lib_out = stdout;
	if (table_dump(ni, 0) != PTL_NO_INIT || me_dump(ni) != PTL_NO_INIT ||
	    eq_dump(ni) != PTL_NO_INIT)
		return 1;
	if (PtlInit(&n) != PTL_OK || set_jid(77) != PTL_OK)
		return 2;
	PtlNIDebug(PTL_INVALID_HANDLE, PTL_DBG_NONE);
	if (set_rank(PTL_INVALID_HANDLE, (unsigned)-1, (unsigned)-1) != PTL_OK)
		return 3;
	if (PtlNIInit(interfaces[1], PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK)
		return 4;
	if (!masks_work(ni) || !texts_work(ni) || !dumps_work(ni) || !rank_works(ni))
		return 5;
	for (size_t i = 0; i < COUNT(registers); i++)
		if (PtlNIStatus(ni, registers[i], &value) != PTL_OK)
			return 6;
	if (PtlGetJid(ni, &jid) != PTL_OK || jid != 77 || progress(ni, 0) != PTL_OK ||
	    wait_a_while(PTL_EQ_NONE, NULL, 1) != PTL_SEGV)
		return 7;
	if (my_nid("lo", &nid) != 0 || nid != 0x7f000001)
		return 8;
	if (!set_nids || !set_pids || PtlNIFini(ni) != PTL_OK)
		return 9;
	PtlFini();
	return 0;
}
