/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See verbs_wire.h.
 */
#include "nal/verbs/verbs_wire.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* ---- addresses ------------------------------------------------------------------------------- */

bool verbs_address_decode(const void *bytes, size_t len, struct verbs_address *a)
{
	static const uint8_t zeros[12];

	if (len != sizeof(*a))
		return false;
	memcpy(a, bytes, sizeof(*a));
	if (a->zero || !(a->port[0] | a->port[1]))
		return false;
	return a->family == 6 || (a->family == 4 && !memcmp(a->bytes + 4, zeros, sizeof(zeros)));
}

bool verbs_address_parse(const char *text, size_t len, struct verbs_address *a)
{
	char copy[VERBS_TEXT_MOST], *host = copy, *colon, *end;
	unsigned long port;

	if (!len || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	colon = strrchr(copy, ':');
	if (!colon || colon == copy || colon[1] < '0' || colon[1] > '9')
		return false;
	port = strtoul(colon + 1, &end, 10);
	if (*end || !port || port > 65535)
		return false;
	memset(a, 0, sizeof(*a));
	a->family = 4;
	if (*host == '[') {
		if (colon[-1] != ']')
			return false;
		a->family = 6;
		host++;
		colon--;
	}
	*colon = '\0';
	a->port[0] = (uint8_t)(port >> 8);
	a->port[1] = (uint8_t)port;
	return inet_pton(a->family == 6 ? AF_INET6 : AF_INET, host, a->bytes) == 1;
}

void verbs_address_format(const struct verbs_address *a, char *text, size_t len)
{
	char host[INET6_ADDRSTRLEN] = "?";

	inet_ntop(a->family == 6 ? AF_INET6 : AF_INET, a->bytes, host, sizeof(host));
	snprintf(text, len, a->family == 6 ? "[%s]:%u" : "%s:%u", host,
		 (unsigned int)a->port[0] << 8 | a->port[1]);
}

socklen_t verbs_address_to(const struct verbs_address *a, uint32_t scope,
			   struct sockaddr_storage *to)
{
	struct sockaddr_in in4 = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	memset(to, 0, sizeof(*to));
	if (a->family == 6) {
		memcpy(&in6.sin6_addr, a->bytes, 16);
		memcpy(&in6.sin6_port, a->port, 2);
		if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
			in6.sin6_scope_id = scope;
		memcpy(to, &in6, sizeof(in6));
		return sizeof(in6);
	}
	memcpy(&in4.sin_addr, a->bytes, 4);
	memcpy(&in4.sin_port, a->port, 2);
	memcpy(to, &in4, sizeof(in4));
	return sizeof(in4);
}

bool verbs_address_from(const struct sockaddr *from, struct verbs_address *a)
{
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;

	memset(a, 0, sizeof(*a));
	if (from->sa_family == AF_INET) {
		memcpy(&in4, from, sizeof(in4));
		a->family = 4;
		memcpy(a->bytes, &in4.sin_addr, 4);
		memcpy(a->port, &in4.sin_port, 2);
		return true;
	}
	if (from->sa_family != AF_INET6)
		return false;
	memcpy(&in6, from, sizeof(in6));
	a->family = 6;
	memcpy(a->bytes, &in6.sin6_addr, 16);
	memcpy(a->port, &in6.sin6_port, 2);
	return true;
}

/* ---- calls and words ------------------------------------------------------------------------- */

bool verbs_call_decode(const void *bytes, size_t len, struct verbs_call *call)
{
	struct verbs_wire_call w;

	if (!bytes || len < sizeof(w))
		return false;
	memcpy(&w, bytes, sizeof(w));
	if (memcmp(w.magic, VERBS_MAGIC, sizeof(w.magic)) != 0 ||
	    !verbs_address_decode(&w.address, sizeof(w.address), &call->address))
		return false;
	call->id = (net_id_t)base_get32(w.nid) << 32 | base_get32(w.pid);
	return true;
}

void verbs_call_encode(struct verbs_wire_call *w, const struct verbs_call *call, uint64_t number)
{
	memset(w, 0, sizeof(*w));
	memcpy(w->magic, VERBS_MAGIC, sizeof(w->magic));
	w->address = call->address;
	base_put32(w->nid, (uint32_t)(call->id >> 32));
	base_put32(w->pid, (uint32_t)call->id);
	base_put64(w->number, number);
}

bool verbs_word_decode(const void *bytes, size_t len, enum verbs_word kind, enum verbs_refusal *why)
{
	struct verbs_wire_word w;

	if (!bytes || len < sizeof(w))
		return false;
	memcpy(&w, bytes, sizeof(w));
	if (memcmp(w.magic, VERBS_MAGIC, sizeof(w.magic)) != 0 || w.kind != kind ||
	    w.why > VERBS_BUSY || w.zero[0] || w.zero[1])
		return false;
	*why = (enum verbs_refusal)w.why;
	return true;
}

void verbs_word_encode(struct verbs_wire_word *w, enum verbs_word kind, enum verbs_refusal why,
		       uint64_t number)
{
	memset(w, 0, sizeof(*w));
	memcpy(w->magic, VERBS_MAGIC, sizeof(w->magic));
	w->kind = (uint8_t)kind;
	w->why = (uint8_t)why;
	base_put64(w->number, number);
}

uint64_t verbs_word_number(const struct verbs_wire_word *word)
{
	return base_get64(word->number);
}
