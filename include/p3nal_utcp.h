/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Interface names of the reference implementation's TCP NAL. Each selects one of our interfaces;
 * what carries the data is chosen at run time.
 */
#ifndef P3NAL_UTCP_H
#define P3NAL_UTCP_H

#include <portals3.h>

#define PTL_IFACE_UTCP  ((ptl_interface_t)0)
#define PTL_IFACE_UTCP0 ((ptl_interface_t)0)
#define PTL_IFACE_UTCP1 ((ptl_interface_t)1)
#define PTL_IFACE_UTCP2 ((ptl_interface_t)2)
#define PTL_IFACE_UTCP3 ((ptl_interface_t)3)

#ifdef __cplusplus
extern "C" {
#endif

/* The nid that PTL_IFACE=ifname would give (NULL or "": the default choice). 0, or -1 with
 * errno. */
int p3tcp_my_nid(const char *ifname, unsigned int *nid);

#ifdef __cplusplus
}
#endif

#endif
