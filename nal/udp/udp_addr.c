/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Addresses. To the machine an address is three words: family, scope and port, then the
 * sixteen bytes of an IPv6 address or the four of an IPv4 one.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "nal/udp/udp.h"

void udp_addr_from(struct net_addr *a, const union udp_sockaddr *s)
{
	memset(a, 0, sizeof(*a));
	if (s->any.sa_family == AF_INET6) {
		a->word[0] = (uint64_t)AF_INET6 << 48 |
			     (uint64_t)(s->in6.sin6_scope_id & 0xffffffffu) << 16 |
			     ntohs(s->in6.sin6_port);
		memcpy(&a->word[1], &s->in6.sin6_addr, 16);
	} else {
		a->word[0] = (uint64_t)AF_INET << 48 | ntohs(s->in4.sin_port);
		a->word[1] = s->in4.sin_addr.s_addr;
	}
}

socklen_t udp_addr_to(union udp_sockaddr *s, const struct net_addr *a)
{
	uint16_t port = htons((uint16_t)a->word[0]);

	memset(s, 0, sizeof(*s));
	if (a->word[0] >> 48 == AF_INET6) {
		s->in6.sin6_family = AF_INET6;
		s->in6.sin6_port = port;
		s->in6.sin6_scope_id = (uint32_t)(a->word[0] >> 16);
		memcpy(&s->in6.sin6_addr, &a->word[1], 16);
		return sizeof(s->in6);
	}
	s->in4.sin_family = AF_INET;
	s->in4.sin_port = port;
	s->in4.sin_addr.s_addr = (uint32_t)a->word[1];
	return sizeof(s->in4);
}

/* Is it the address of one host: not multicast, broadcast or unspecified? */
static bool one_host4(const struct in_addr *a)
{
	in_addr_t host = ntohl(a->s_addr);

	return host != INADDR_ANY && host != INADDR_BROADCAST && !IN_MULTICAST(host);
}

static bool one_host6(const struct in6_addr *a)
{
	return !IN6_IS_ADDR_UNSPECIFIED(a) && !IN6_IS_ADDR_MULTICAST(a);
}

bool udp_addr_parse(const char *text, size_t len, uint32_t scope, struct net_addr *a)
{
	union udp_sockaddr s = { .any.sa_family = AF_INET };
	char copy[64], *host = copy, *colon;
	uint16_t port;

	if (!len || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	colon = strrchr(copy, ':');
	if (!colon || strlen(copy) != len)
		return false;
	*colon = '\0';
	port = net_port_parse(colon + 1, strlen(colon + 1));
	if (!port)
		return false;
	if (*host == '[') {
		host++;
		if (colon[-1] != ']')
			return false;
		colon[-1] = '\0';
		s.in6.sin6_family = AF_INET6;
		s.in6.sin6_port = htons(port);
		if (inet_pton(AF_INET6, host, &s.in6.sin6_addr) != 1 ||
		    !one_host6(&s.in6.sin6_addr))
			return false;
		if (IN6_IS_ADDR_LINKLOCAL(&s.in6.sin6_addr))
			s.in6.sin6_scope_id = scope;
	} else {
		s.in4.sin_port = htons(port);
		if (inet_pton(AF_INET, host, &s.in4.sin_addr) != 1 || !one_host4(&s.in4.sin_addr))
			return false;
	}
	udp_addr_from(a, &s);
	return true;
}

void udp_addr_format(const union udp_sockaddr *s, char *text, size_t len)
{
	char host[INET6_ADDRSTRLEN];

	if (s->any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &s->in6.sin6_addr, host, sizeof(host));
		snprintf(text, len, "[%s]:%u", host, ntohs(s->in6.sin6_port));
	} else {
		inet_ntop(AF_INET, &s->in4.sin_addr, host, sizeof(host));
		snprintf(text, len, "%s:%u", host, ntohs(s->in4.sin_port));
	}
}

bool udp_address(void *link, ptl_process_id_t id, struct net_addr *addr)
{
	const struct udp *u = link;
	const struct net_addr *found = net_ranks_find(&u->ranks, id);
	union udp_sockaddr s = { .any.sa_family = AF_INET };

	if (found) {
		*addr = *found;
		return true;
	}
	if (!u->by_id || u->family != AF_INET)
		return false;
	s.in4.sin_addr.s_addr = htonl(id.nid);
	s.in4.sin_port = htons(net_port_of(id.pid));
	if (!s.in4.sin_port)
		return false;
	udp_addr_from(addr, &s);
	return true;
}
