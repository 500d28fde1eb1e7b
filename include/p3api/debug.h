/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Debug output as the Portals 3.3 reference implementation offers it: a mask of subjects for
 * each interface, and dumps of the tables. The output goes to p3_out, which is stderr unless
 * changed.
 */
#ifndef P3API_DEBUG_H
#define P3API_DEBUG_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PTL_DBG_NONE     0x00000000u
#define PTL_DBG_ALL      0x0000ffffu
#define PTL_DBG_NI_ALL   0xffff0000u /* reserved for transports: nothing is written for them */
#define PTL_DBG_API      0x00000001u
#define PTL_DBG_PARSE    0x00000002u
#define PTL_DBG_MOVE     0x00000004u
#define PTL_DBG_DROP     0x00000008u
#define PTL_DBG_REQUEST  0x00000010u
#define PTL_DBG_DELIVERY 0x00000020u
#define PTL_DBG_MD       0x00000040u
#define PTL_DBG_ME       0x00000080u
#define PTL_DBG_UNLINK   0x00000100u
#define PTL_DBG_EQ       0x00000200u
#define PTL_DBG_EVENT    0x00000400u
#define PTL_DBG_MEMORY   0x00000800u
#define PTL_DBG_SETUP    0x00001000u
#define PTL_DBG_SHUTDOWN 0x00002000u
#define PTL_DBG_NI_00    0x00010000u
#define PTL_DBG_NI_01    0x00020000u
#define PTL_DBG_NI_02    0x00040000u
#define PTL_DBG_NI_03    0x00080000u
#define PTL_DBG_NI_04    0x00100000u
#define PTL_DBG_NI_05    0x00200000u
#define PTL_DBG_NI_06    0x00400000u
#define PTL_DBG_NI_07    0x00800000u
#define PTL_DBG_NI_08    0x01000000u
#define PTL_DBG_NI_09    0x02000000u
#define PTL_DBG_NI_10    0x04000000u
#define PTL_DBG_NI_11    0x08000000u
#define PTL_DBG_NI_12    0x10000000u
#define PTL_DBG_NI_13    0x20000000u
#define PTL_DBG_NI_14    0x40000000u
#define PTL_DBG_NI_15    0x80000000u
/* Their names on the Cray XT. */
#define PTL_DEBUG_NONE   PTL_DBG_NONE
#define PTL_DEBUG_ALL    PTL_DBG_ALL
#define PTL_DEBUG_NI_ALL PTL_DBG_NI_ALL

extern FILE *p3_out; /* where debug output goes */

/* Set the mask of one NI. With PTL_INVALID_HANDLE: set the mask that later NIs start with.
 * Returns the old mask. */
unsigned int PtlNIDebug(ptl_handle_ni_t ni_handle, unsigned int mask);
int PtlTblDump(ptl_handle_ni_t ni_handle, int pt_index);
int PtlMEDump(ptl_handle_me_t me_handle);
int PtlNIEqDump(ptl_handle_ni_t ni_handle);

#ifdef __cplusplus
}
#endif

#endif
