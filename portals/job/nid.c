/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The node id: see nid.h.
 */
#include "portals/job/nid.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <p3nal_utcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "portals/engine/ni.h"

/* ---- addresses ------------------------------------------------------------------------------- */

#define MAC_BYTES 6

static unsigned int bytes_of(int family)
{
	return family == AF_INET6 ? 16 : family == AF_PACKET ? MAC_BYTES : 4;
}

/* Is this a hardware address? An interface without IP has only that. */
static bool hardware(const struct sockaddr *s)
{
	return s->sa_family == AF_PACKET &&
	       ((const struct sockaddr_ll *)(const void *)s)->sll_halen == MAC_BYTES;
}

static bool take_sockaddr(struct ptl_address *a, const struct sockaddr *s, const char *name)
{
	memset(a, 0, sizeof(*a));
	if (!s || (s->sa_family != AF_INET && s->sa_family != AF_INET6 && !hardware(s)))
		return false;
	a->family = s->sa_family;
	if (s->sa_family == AF_PACKET)
		memcpy(a->bytes, ((const struct sockaddr_ll *)(const void *)s)->sll_addr,
		       MAC_BYTES);
	else if (s->sa_family == AF_INET)
		memcpy(a->bytes, &((const struct sockaddr_in *)(const void *)s)->sin_addr, 4);
	else
		memcpy(a->bytes, &((const struct sockaddr_in6 *)(const void *)s)->sin6_addr, 16);
	strncpy(a->ifname, name, sizeof(a->ifname) - 1);
	a->scope = if_nametoindex(name);
	return true;
}

static bool link_local(const struct ptl_address *a)
{
	return a->family == AF_INET6 && a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

static ptl_nid_t nid_from(const struct ptl_address *a)
{
	ptl_nid_t nid = 2166136261u;

	if (a->family == AF_INET)
		return (ptl_nid_t)a->bytes[0] << 24 | (ptl_nid_t)a->bytes[1] << 16 |
		       (ptl_nid_t)a->bytes[2] << 8 | a->bytes[3];
	for (unsigned int i = 0; i < bytes_of(a->family); i++)
		nid = (nid ^ a->bytes[i]) * 16777619u;
	return 0xf0000000u |
	       /* among IPv4's reserved addresses, which no host has */
	       nid >> 4;
}

/* Are the first `bits` of both the same? */
static bool same_prefix(const unsigned char *a, const unsigned char *b, unsigned int bits)
{
	unsigned int whole = bits / 8, rest = bits % 8;

	return !memcmp(a, b, whole) && (!rest || !((a[whole] ^ b[whole]) >> (8 - rest)));
}

static bool same_address(const struct ptl_address *a, const struct ptl_address *b)
{
	return a->family == b->family && !memcmp(a->bytes, b->bytes, bytes_of(a->family));
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* The choice of PTL_IFACE: a name, an address, or a network that some interface has an address
 * in. */
struct wanted {
	const char *name; /* NULL: not by name */
	int family;       /* 0: no address */
	unsigned char net[16];
	unsigned int bits;
};

static bool parse_network(const char *text, struct wanted *w)
{
	char copy[64], *slash, *end;
	unsigned long bits;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	slash = strchr(copy, '/');
	if (slash)
		*slash = '\0';
	w->family = inet_pton(AF_INET, copy, w->net) == 1    ? AF_INET
		    : inet_pton(AF_INET6, copy, w->net) == 1 ? AF_INET6
							     : 0;
	if (!w->family)
		return false;
	w->bits = 8 * bytes_of(w->family);
	if (!slash)
		return true;
	bits = strtoul(slash + 1, &end, 10);
	if (end == slash + 1 || *end || bits > w->bits)
		return false;
	w->bits = (unsigned int)bits;
	return true;
}

/* Does an interface belong to virtual machines or containers, by its name? It reaches no other
 * host. */
static bool inward(const char *name)
{
	static const char *const names[] = { "docker", "br-",   "virbr",   "podman",
					     "cni",    "lxcbr", "flannel", "cali" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Does a bridge contain a network card of this machine? */
static bool has_card(const char *bridge)
{
	char path[64 + 2 * IFNAMSIZ];
	const struct dirent *e;
	bool has = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/class/net/%.*s/brif", IFNAMSIZ, bridge);
	dir = opendir(path);
	while (dir && !has && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/class/net/%.*s/device", IFNAMSIZ, e->d_name);
		has = e->d_name[0] != '.' && access(path, F_OK) == 0;
	}
	if (dir)
		closedir(dir);
	return has;
}

/* Is this a bridge without a card? It may reach no other host, whatever its name. */
static bool is_bridge(const char *name)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq r = { .ifr_data = (void *)&info };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is = false;

	if (fd < 0 || strlen(name) >= sizeof(r.ifr_name)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	strcpy(r.ifr_name, name);
	if (ioctl(fd, SIOCETHTOOL, &r) == 0)
		is = !strncmp(info.driver, "bridge", sizeof(info.driver)) && !has_card(name);
	close(fd);
	return is;
}

/* The rank of an address as the default; 0: not at all. `routed` is the source address of the
 * default route; for IPv6 its interface counts (find_interface). IPv4 ranks higher, because
 * the other ranks of a job have it. */
static int rank(const struct ifaddrs *i, const struct ptl_address *a,
		const struct ptl_address *routed)
{
	bool there = same_address(a, routed) ||
		     (*routed->ifname && !strcmp(i->ifa_name, routed->ifname));
	int v4 = a->family == AF_INET;

	if (!(i->ifa_flags & IFF_UP) || link_local(a) || a->family == AF_PACKET)
		return 0;
	if (i->ifa_flags & IFF_LOOPBACK)
		return v4;
	if (there)
		return v4 ? 12 : 9 + same_address(a, routed);
	if (inward(i->ifa_name))
		return 0;
	if (is_bridge(i->ifa_name))
		return 2 + v4;
	if (!strncmp(i->ifa_name, "veth", 4))
		return 4 + v4;
	if (!(i->ifa_flags & IFF_RUNNING))
		return 6 + v4;
	return v4 ? 11 : 8;
}

static int how_good(const struct ifaddrs *i, const struct ptl_address *a, const struct wanted *w,
		    const struct ptl_address *routed)
{
	if (w->family)
		return a->family == w->family && same_prefix(a->bytes, w->net, w->bits);
	if (w->name)
		return strcmp(i->ifa_name, w->name) ? 0
		       : a->family == AF_PACKET     ? 1
		       : link_local(a)              ? 2
		       : a->family == AF_INET       ? 4
						    : 3;
	return rank(i, a, routed);
}

/* The source address of packets to a far address. Nothing is sent. False: there is no route. */
static bool leaves_from(const struct sockaddr *far, socklen_t far_len, struct ptl_address *a)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	int fd = socket(far->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	if (fd < 0)
		return false;
	found = connect(fd, far, far_len) == 0 &&
		getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
		take_sockaddr(a, (struct sockaddr *)&own, "");
	close(fd);
	return found;
}

/* The far addresses are those reserved for documentation: 192.0.2.1, 2001:db8::1. */
static void default_route(struct ptl_address *a)
{
	struct sockaddr_in far = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct sockaddr_in6 far6 = { .sin6_family = AF_INET6,
				     .sin6_port = htons(9),
				     .sin6_addr.s6_addr = { 0x20, 1, 0x0d, 0xb8, [15] = 1 } };

	memset(a, 0, sizeof(*a));
	far.sin_addr.s_addr = htonl(0xc0000201);
	if (!leaves_from((struct sockaddr *)&far, sizeof(far), a) &&
	    !leaves_from((struct sockaddr *)&far6, sizeof(far6), a))
		memset(a, 0, sizeof(*a));
}

/* Any address of the loopback network is ours, though only one is listed. */
static bool loopback(const struct wanted *w, struct ptl_address *a)
{
	if (w->family != AF_INET || w->bits != 32 || w->net[0] != 127)
		return false;
	memset(a, 0, sizeof(*a));
	a->family = AF_INET;
	memcpy(a->bytes, w->net, 4);
	strcpy(a->ifname, "lo");
	a->scope = if_nametoindex("lo");
	return true;
}

/* For an IPv6 address find the interface, which may also have an IPv4 address. */
static void find_interface(struct ptl_address *routed, const struct ifaddrs *all)
{
	struct ptl_address a;

	for (; all && routed->family == AF_INET6; all = all->ifa_next)
		if (take_sockaddr(&a, all->ifa_addr, all->ifa_name) && same_address(&a, routed)) {
			*routed = a;
			return;
		}
}

static int choose_address(const char *text, struct ptl_address *address)
{
	struct wanted w = { .name = NULL };
	struct ptl_address routed = { .family = 0 }, a;
	struct ifaddrs *all;
	int best = 0;

	if (text && *text && !parse_network(text, &w))
		w.name = text;
	if (loopback(&w, address))
		return 0;
	if (!w.name && !w.family)
		default_route(&routed);
	if (getifaddrs(&all) < 0)
		return -errno;
	find_interface(&routed, all);
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		int good;

		if (!take_sockaddr(&a, i->ifa_addr, i->ifa_name))
			continue;
		good = how_good(i, &a, &w, &routed);
		if (good > best) {
			best = good;
			*address = a;
		}
	}
	freeifaddrs(all);
	if (best)
		return 0;
	if (w.name || w.family)
		return -ENODEV;
	/* a host without any network can still reach itself */
	w = (struct wanted){ .family = AF_INET, .net = { 127, 0, 0, 1 }, .bits = 32 };
	return loopback(&w, address) ? 0 : -ENODEV;
}

int ptl_nid_of(const char *ifname, ptl_nid_t *nid)
{
	struct ptl_address a = { .family = AF_INET };
	int err = choose_address(ifname, &a);

	if (!err)
		*nid = nid_from(&a);
	return err;
}

int ptl_nid_configured(ptl_interface_t iface, ptl_nid_t *nid, struct ptl_address *address)
{
	const struct base_config *c = base_config();
	const char *const by_number[] = { c->ptl_iface0, c->ptl_iface1, c->ptl_iface2,
					  c->ptl_iface3 };
	const char *name = by_number[iface] ? by_number[iface] : c->ptl_iface;
	int err = choose_address(name, address);

	if (err < 0 && err != -ENODEV)
		base_warn("the network interfaces cannot be listed: getifaddrs: %s; are netlink "
			  "sockets "
			  "refused here (a container's profile)?",
			  strerror(-err));
	else if (err < 0)
		base_warn("PTL_IFACE=%s: no interface has that name or an address in that "
			  "network; `ip addr` lists them, and unset means the default one",
			  name ? name : "");
	else
		*nid = nid_from(address);
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
