/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The binary interface of MX: numbers and layouts that programs were compiled with. The compiler
 * checks them; the program checks that texts exist for all codes and for others.
 */
#include <mx_extensions.h>
#include <mx_internals/mx__driver_interface.h>
#include <mx_raw.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field)
#define SIZE(type, size)        _Static_assert(sizeof(type) == (size), #type)
#define IS(name, number)        _Static_assert((name) == (number), #name)

SIZE(mx_endpoint_addr_t, 16);
SIZE(mx_endpt_handle_t, 4);
SIZE(mx_return_t, 4);
SIZE(mx_status_code_t, 4);
SIZE(mx_get_info_key_t, 4);
SIZE(mx_line_speed_t, 4);
SIZE(mx_unexp_handler_action_t, 4);
SIZE(mx_mapper_state_t, 36);
AT(mx_mapper_state_t, mapper_mac, 4);
AT(mx_mapper_state_t, iport, 10);
AT(mx_mapper_state_t, map_version, 12);
AT(mx_mapper_state_t, num_hosts, 16);
AT(mx_mapper_state_t, network_configured, 20);
AT(mx_mapper_state_t, routes_valid, 24);
AT(mx_mapper_state_t, level, 28);
AT(mx_mapper_state_t, flags, 32);
#ifdef __x86_64__
SIZE(mx_segment_t, 16);
AT(mx_segment_t, segment_length, 8);
SIZE(mx_status_t, 48);
AT(mx_status_t, code, 0);
AT(mx_status_t, source, 8);
AT(mx_status_t, match_info, 24);
AT(mx_status_t, msg_length, 32);
AT(mx_status_t, xfer_length, 36);
AT(mx_status_t, context, 40);
SIZE(mx_param_t, 16);
AT(mx_param_t, key, 0);
AT(mx_param_t, val.error_handler, 8);
AT(mx_param_t, val.unexp_queue_max, 8);
AT(mx_param_t, val.context_id.bits, 8);
AT(mx_param_t, val.context_id.shift, 9);
#endif

IS(MX_API, 0x301);
IS(MX_MAX_STR_LEN, 128);
IS(MX_SIZEOF_ADDR, 16);
IS(MX_ANY_NIC, 0xffffffffU);
IS(MX_ANY_ENDPOINT, 0xffffffffU);
IS(MX_INFINITE, 0);
IS(MX_MAX_SEGMENTS, 256);
IS(MX_MATCH_MASK_NONE, UINT64_MAX);
IS(MX_MAX_HOSTNAME_LEN, 80);
IS(MX_CONTEXT_ID_BITS_MAX, 16);
IS(MX_HAS_ICONNECT_V2, 1);
IS(MX_BAD_ENDPOINT, 9);
IS(MX_NO_RESOURCES, 15);
IS(MX_BUSY, 20);
IS(MX_BAD_PARAM_LIST, 24);
IS(MX_TIMEOUT, 30);
IS(MX_BAD_INFO_LENGTH, 35);
IS(MX_CANCEL_NOT_SUPPORTED, 40);
IS(MX_NOT_SUPPORTED_WITH_CONTEXT_ID, 43);
IS(MX_STATUS_TRUNCATED, 5);
IS(MX_STATUS_BAD_SESSION, 10);
IS(MX_STATUS_NO_RESOURCES, 16);
IS(MX_PARAM_CONTEXT_ID, 2);
IS(MX_SPEED_OPEN_MX, 2);
IS(MX_NET_ETHER, 1);
IS(MX_LINE_SPEED, 16);
IS(MX_COUNTERS_VALUES, 7);
IS(MX_RECV_FINISHED, 1);
IS(MX__INVALID_HANDLE, -1);
IS(MX_U32(UINT64_C(0x123456789abcdef0)), 0x12345678);
IS(MX_L32(UINT64_C(0x123456789abcdef0)), 0x9abcdef0);
IS(MX_U32(0x9abcdef0U), 0);
#ifndef MX_HAS_NET_TYPE
#error "MX_HAS_NET_TYPE is missing"
#endif

static void report(int number, int good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", number, what);
}

int main(void)
{
	int known = 1, unknown = 1;

	for (int code = 0; code <= MX_NOT_SUPPORTED_WITH_CONTEXT_ID; code++)
		known &= !strstr(mx_strerror((mx_return_t)code), "unknown") &&
			 *mx_strerror((mx_return_t)code);
	for (int code = 0; code <= MX_STATUS_NO_RESOURCES; code++)
		known &= !strstr(mx_strstatus((mx_status_code_t)code), "unknown return") &&
			 *mx_strstatus((mx_status_code_t)code);
	unknown &= strstr(mx_strerror((mx_return_t)4711), "unknown") != NULL;
	unknown &= strstr(mx_strerror((mx_return_t)-1), "unknown") != NULL;
	unknown &= strstr(mx_strstatus((mx_status_code_t)-1), "unknown") != NULL;
	mx_set_error_handler(MX_ERRORS_RETURN);
	printf("1..4\n");
	report(1, known, "every code has a text");
	report(2, unknown, "numbers that are no code have one, too");
	report(3, mx_raw_handle(NULL) == MX__INVALID_HANDLE, "no raw endpoint has a handle");
	report(4, mx_raw_open_endpoint(0, NULL, 0, NULL) == MX_NO_DEV, "there is no raw endpoint");
	return !(known && unknown);
}
