/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The UDP socket in a rank's card: any bytes are refused, or they are one address and one port of
 * one host, which are written and read again as they are, and become a socket's address and back.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "nal/udp/udp.h"

enum { SCOPE = 7, TEXT_MOST = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_ip6(const struct in6_addr *a, uint32_t scope)
{
	check(!IN6_IS_ADDR_MULTICAST(a) && !IN6_IS_ADDR_UNSPECIFIED(a));
	check(scope == (IN6_IS_ADDR_LINKLOCAL(a) ? SCOPE : 0));
}

static void check_ip4(in_addr_t a, const char *text, const uint8_t *data, size_t size)
{
	check(a && a != INADDR_BROADCAST && !IN_MULTICAST(ntohl(a)));
	/* there is but one way to write these */
	check(strlen(text) == size && !memcmp(text, data, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct net_addr addr, again;
	union udp_sockaddr s;
	char text[TEXT_MOST];
	socklen_t len;

	if (!udp_addr_parse((const char *)data, size, SCOPE, &addr))
		return 0;
	/* not the end of something longer, nor a number with blanks and signs */
	check(size < sizeof(text));
	memcpy(text, data, size);
	text[size] = '\0';
	check(strlen(text) == size && !strpbrk(text, " \t\n+-"));
	len = udp_addr_to(&s, &addr);
	check(len == (s.any.sa_family == AF_INET6 ? sizeof(s.in6) : sizeof(s.in4)));
	udp_addr_from(&again, &s);
	check(udp_addr_same(&addr, &again));
	udp_addr_format(&s, text, sizeof(text));
	check(udp_addr_parse(text, strlen(text), SCOPE, &again) && udp_addr_same(&addr, &again));
	if (s.any.sa_family == AF_INET6) {
		check(s.in6.sin6_port);
		check_ip6(&s.in6.sin6_addr, s.in6.sin6_scope_id);
	} else {
		check(s.any.sa_family == AF_INET && s.in4.sin_port);
		check_ip4(s.in4.sin_addr.s_addr, text, data, size);
	}
	return 0;
}
