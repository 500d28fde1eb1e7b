/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See carrier.h.
 */
#include "nal/net/carrier.h"

const char *net_status_text(enum net_status s)
{
	static const char *const text[] = {
		[NET_OK] = "done",
		[NET_REFUSED] = "not wanted by the receiver",
		[NET_FAILED] = "the receiver could not store it",
		[NET_UNREACHABLE] = "no answer to the first packets",
		[NET_DEAD] = "the peer is silent",
		[NET_RESTARTED] = "the peer does not know the connection any more",
		[NET_CLOSED] = "the peer has closed",
		[NET_NO_MEMORY] = "out of memory",
		[NET_ENDED] = "ended here",
	};

	return (unsigned int)s < sizeof(text) / sizeof(text[0]) ? text[s] : "unknown";
}

const char *net_drop_text(enum net_drop d)
{
	static const char *const text[] = {
#define DROP_TEXT(name, text) text,
		NET_DROPS(DROP_TEXT)
#undef DROP_TEXT
	};

	return (unsigned int)d < NET_DROP_COUNT ? text[d] : "unknown";
}
