/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The node id of this host, and the address it comes from: the IPv4 address, in host byte order,
 * of the network interface that PTL_IFACE names, else of the one that the default route takes,
 * else of the first that is up and no bridge of virtual machines. A host without IPv4 gets a
 * number made of its IPv6 address, and an interface without any, if PTL_IFACE names it, one made
 * of its hardware address.
 */
#ifndef PTL_NID_H
#define PTL_NID_H

#include <portals3.h>

struct ptl_address;

/* The interface of this name; NULL or "": the default choice. 0, or -errno (-ENODEV: no such
 * interface or no address). */
int ptl_nid_of(const char *ifname, ptl_nid_t *nid);

/* What the configuration says for Portals interface `iface`; warns with the remedy on failure.
 * 0, or -errno. */
int ptl_nid_configured(ptl_interface_t iface, ptl_nid_t *nid, struct ptl_address *address);

#endif
