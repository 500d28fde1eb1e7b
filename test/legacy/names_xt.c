/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every name that clients used on the Cray XT besides the report's: interfaces, job calls, calls
 * that make entry and descriptor in one step, options and codes. Compiled as C and as C++, and
 * again with XT_DEFAULT 1 and 2: such clients said themselves what the default interface is,
 * before the headers and after them.
 */
#if XT_DEFAULT == 1
#define PTL_IFACE_DEFAULT PTL_IFACE_SS
#endif
#include <portals/portals3.h>
#include <catamount/cnos_mpi_os.h>
#include <cnos_mpi_os.h>
#include <pctmbox.h>
#include <portals/p30.h>
#include <string.h>

#if XT_DEFAULT == 2
#undef PTL_IFACE_DEFAULT
#define PTL_IFACE_DEFAULT IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS)
#endif
#ifndef PTL_NOACK_REQ
#define PTL_NOACK_REQ PTL_NO_ACK_REQ
#endif
/* These are for clients written elsewhere; here they are codes of their own. */
#ifndef PTL_IFACE_DUP
#error "PTL_IFACE_DUP"
#endif
#ifndef PTL_EQ_IN_USE
#error "PTL_EQ_IN_USE"
#endif

extern const char *ptl_event_str[];
extern const char *ptl_err_str[];

static int (*rank_of)(void) = cnos_get_rank;
static int (*size_of)(void) = cnos_get_size;
static int (*map_of)(cnos_nidpid_map_t **) = cnos_get_nidpid_map;
static void (*barrier_init)(ptl_handle_ni_t) = cnos_barrier_init;
static int (*barrier)(void) = cnos_barrier;
static int (*register_id)(ptl_process_id_t) = cnos_register_ptlid;
static void (*pm_barrier)(int) = cnos_pm_barrier;
static int (*launcher)(void) = cnos_launcher;
static int (*post)(ptl_handle_ni_t, ptl_handle_me_t, ptl_process_id_t, ptl_match_bits_t,
		   ptl_match_bits_t, ptl_unlink_t, ptl_ins_pos_t, ptl_md_t, ptl_unlink_t,
		   ptl_handle_me_t *, ptl_handle_md_t *, ptl_handle_eq_t) = PtlMEMDPost;
static int (*attach)(ptl_handle_ni_t, ptl_pt_index_t, ptl_process_id_t, ptl_match_bits_t,
		     ptl_match_bits_t, ptl_unlink_t, ptl_ins_pos_t, ptl_md_t, ptl_unlink_t,
		     ptl_handle_me_t *, ptl_handle_md_t *) = PtlMEMDAttach;
static int (*insert)(ptl_handle_me_t, ptl_process_id_t, ptl_match_bits_t, ptl_match_bits_t,
		     ptl_unlink_t, ptl_ins_pos_t, ptl_md_t, ptl_unlink_t, ptl_handle_me_t *,
		     ptl_handle_md_t *) = PtlMEMDInsert;
static int (*swap)(ptl_handle_md_t, ptl_size_t, ptl_handle_md_t, ptl_size_t, ptl_size_t,
		   ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t, ptl_match_bits_t, ptl_size_t,
		   ptl_hdr_data_t) = PtlGetPutRegion;
static int (*peek)(ptl_handle_eq_t, ptl_event_t *) = PtlEQPeek;

static const ptl_interface_t interfaces[] = {
	PTL_IFACE_DEFAULT,
	PTL_IFACE_SS,
	IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS),
	IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_QK, PTL_IFACE_SS),
	CRAY_USER_NAL,
	CRAY_QK_NAL,
	CRAY_KERN_NAL,
	CRAY_ACCEL,
};

static const unsigned options = PTL_MD_EVENT_AUTO_UNLINK_ENABLE |
				PTL_MD_EVENT_MANUAL_UNLINK_ENABLE | PTL_MD_FLAG_AUTO_UNLINK |
				PTL_MD_LUSTRE_COMPLETION_SEMANTICS | PTL_MD_PHYS |
				PTL_MD_LOCAL_ALIGN8;

/* All these are names of the one interface: its handle is always the same. */
static int one_interface(ptl_handle_ni_t ni)
{
	ptl_handle_ni_t again;

	for (size_t i = 0; i < sizeof(interfaces) / sizeof(interfaces[0]); i++) {
		int rc = PtlNIInit(interfaces[i], PTL_PID_ANY, NULL, NULL, &again);

		if ((rc != PTL_OK && rc != PTL_IFACE_DUP) || again != ni)
			return 0;
		if (PtlNIFini(again) != PTL_OK)
			return 0;
	}
	return 1;
}

static int job_works(ptl_handle_ni_t ni, ptl_process_id_t id)
{
	cnos_nidpid_map_t *map;

	barrier_init(ni);
	return rank_of() == 0 && size_of() == 1 && register_id(id) == 0 && map_of(&map) == 1 &&
	       map[0].nid == id.nid && map[0].pid == id.pid && barrier() == 0 &&
	       launcher() != CNOS_LAUNCHER_YOD;
}

static int posts_work(ptl_handle_ni_t ni, ptl_process_id_t id)
{
	ptl_handle_me_t me[3];
	ptl_handle_md_t md_h[3];
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	ptl_md_t md;
	int ok;

	memset(&md, 0, sizeof(md));
	md.threshold = PTL_MD_THRESH_INF;
	md.options = options;
	ok = PtlEQAlloc(ni, 8, PTL_EQ_HANDLER_NONE, &eq) == PTL_OK;
	md.eq_handle = eq;
	ok = ok && attach(ni, 30, id, 1, 0, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &me[0],
			  &md_h[0]) == PTL_OK;
	ok = ok && insert(me[0], id, 2, 0, PTL_RETAIN, PTL_INS_BEFORE, md, PTL_RETAIN, &me[1],
			  &md_h[1]) == PTL_OK;
	ok = ok && post(ni, me[0], id, 3, 0, PTL_RETAIN, PTL_INS_BEFORE, md, PTL_RETAIN, &me[2],
			&md_h[2], eq) == PTL_OK;
	ok = ok && peek(eq, &ev) == PTL_EQ_EMPTY;
	ok = ok && swap(md_h[0], 0, md_h[1], 0, 0, id, 31, 0, 0, 0, 0) == PTL_OK;
	return ok;
}

int main(void)
{
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	ptl_ack_req_t ack = PTL_NOACK_REQ;
	int n;

	if (PtlInit(&n) != PTL_OK)
		return 1;
	PtlNIDebug(PTL_INVALID_HANDLE, PTL_DEBUG_NONE);
	PtlNIDebug(PTL_INVALID_HANDLE, PTL_DBG_NONE);
	if ((PTL_DEBUG_ALL | PTL_DEBUG_NI_ALL) != (PTL_DBG_ALL | PTL_DBG_NI_ALL))
		return 2;
	if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK)
		return 3;
	if (PtlGetId(ni, &id) != PTL_OK || id.pid + ACCEL_PTLS_PID_SPACE_OFFSET < id.pid)
		return 4;
	if (!one_interface(ni) || !job_works(ni, id) || !posts_work(ni, id))
		return 5;
	if (strcmp(ptl_event_str[PTL_EVENT_ACK], "PTL_EVENT_ACK") ||
	    strcmp(ptl_err_str[PTL_IFACE_DUP], "PTL_IFACE_DUP"))
		return 6;
	if (ack == PTL_ACK_REQ || PTL_VAL_FAILED == PTL_OK || PTL_MAX_TRANS_SZ < 1 << 30)
		return 7;
	pm_barrier(1);
	if (PtlNIFini(ni) != PTL_OK)
		return 8;
	PtlFini();
	return 0;
}
