/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The node id of this host: the IPv4 address, in host byte order, of the operating system interface
 * that PTL_IFACE names, else of the first that is up, routable and no container bridge.
 */
#ifndef PTL_NID_H
#define PTL_NID_H

#include <portals3.h>

/* ifname NULL or "": the default choice. 0, or -errno (-ENODEV: no such interface or no address). */
int ptl_nid_of(const char *ifname, ptl_nid_t *nid);

/* What the configuration says for Portals interface `iface`; warns with the remedy on failure. */
int ptl_nid_configured(ptl_interface_t iface, ptl_nid_t *nid);

#endif
