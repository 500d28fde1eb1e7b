/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The node id of this host, and the address it comes from. It is the IPv4 address, in host
 * byte order, of the network interface that PTL_IFACE names. Without PTL_IFACE it is that of
 * the interface of the default route, else of the first one that is up and no bridge of
 * virtual machines.
 *
 * A host without IPv4 gets a number made of its IPv6 address. An interface without either, if
 * PTL_IFACE names it, gets one made of its hardware address.
 */
#ifndef PTL_NID_H
#define PTL_NID_H

#include <portals3.h>

struct ptl_address;

/* The node id of the interface `ifname`; NULL or "": the default choice. 0, or -errno
 * (-ENODEV: no such interface or no address). */
int ptl_nid_of(const char *ifname, ptl_nid_t *nid);

/* The configured node id for Portals interface `iface`; on failure it warns with the remedy.
 * 0, or -errno. */
int ptl_nid_configured(ptl_interface_t iface, ptl_nid_t *nid, struct ptl_address *address);

#endif
