/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The node id: see nid.h.
 */
#include "portals/nid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <p3nal_utcp.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"

/* How much we want this interface as the default: 0 not at all. */
static int rank(const struct ifaddrs *i)
{
	if (!(i->ifa_flags & IFF_UP))
		return 0;
	if (i->ifa_flags & IFF_LOOPBACK)
		return 1;
	if (!strncmp(i->ifa_name, "docker", 6) || !strncmp(i->ifa_name, "br-", 3) ||
	    !strncmp(i->ifa_name, "virbr", 5) || !strncmp(i->ifa_name, "veth", 4))
		return 2;
	return i->ifa_flags & IFF_RUNNING ? 4 : 3;
}

int ptl_nid_of(const char *ifname, ptl_nid_t *nid)
{
	struct ifaddrs *all;
	int best = 0;

	if (getifaddrs(&all) < 0)
		return -errno;
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		int r;

		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
			continue;
		if (ifname && *ifname)
			r = !strcmp(i->ifa_name, ifname);
		else
			r = rank(i);
		if (r > best) {
			best = r;
			*nid = ntohl(((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr.s_addr);
		}
	}
	freeifaddrs(all);
	if (best)
		return 0;
	if (ifname && *ifname)
		return -ENODEV;
	*nid = 0x7f000001; /* a host without any network still has itself */
	return 0;
}

int ptl_nid_configured(ptl_interface_t iface, ptl_nid_t *nid)
{
	const struct base_config *c = base_config();
	const char *const by_number[] = { c->ptl_iface0, c->ptl_iface1, c->ptl_iface2,
					  c->ptl_iface3 };
	const char *name = by_number[iface] ? by_number[iface] : c->ptl_iface;
	int err = ptl_nid_of(name, nid);

	if (err < 0)
		base_warn("PTL_IFACE=%s: no interface of that name with an IPv4 address; "
			  "`ip -4 addr` lists them, and unset means the default one",
			  name ? name : "");
	return err;
}

int p3tcp_my_nid(const char *ifname, unsigned int *nid)
{
	int err = nid ? ptl_nid_of(ifname, nid) : -EFAULT;

	if (err == 0)
		return 0;
	errno = -err;
	return -1;
}
