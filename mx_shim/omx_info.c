/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * omx_get_info: what Open-MX tells of boards and counters, put together from what MX tells.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <portals3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "omx.h"

static omx_return_t info_error(omx_endpoint_t ep, omx_return_t ret)
{
	return omx_fail(ep, ret, "omx_get_info");
}

/* A key that MX has, too. */
static omx_return_t info_of_mx(omx_endpoint_t ep, mx_get_info_key_t key, void *in, uint32_t in_len,
			       void *out_val, uint32_t out_len)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before,
			 mx_get_info(omx_endpoint_to_mx(ep), key, in, in_len, out_val, out_len));
}

/* The board that is meant: that of the endpoint, else the number at in_val. */
static omx_return_t board_of_info(omx_endpoint_t ep, const void *in_val, uint32_t in_len,
				  uint32_t *board, uint64_t *nic_id)
{
	omx_endpoint_addr_t addr = { { 0 } };
	omx_return_t ret;
	uint32_t eid;

	if (!ep) {
		if (!in_val || !in_len)
			return info_error(ep, OMX_BAD_INFO_ADDRESS);
		*board = *(const uint8_t *)in_val;
		return omx_board_number_to_nic_id(*board, nic_id);
	}
	ret = omx_get_endpoint_addr(ep, &addr);
	if (ret == OMX_SUCCESS)
		ret = omx_decompose_endpoint_addr(addr, nic_id, &eid);
	if (ret == OMX_SUCCESS)
		ret = omx_nic_id_to_board_number(*nic_id, board);
	return ret;
}

static omx_return_t info_text(omx_endpoint_t ep, const char *text, void *out_val, uint32_t out_len)
{
	size_t len = strlen(text) + 1;

	if (len > out_len)
		return info_error(ep, OMX_BAD_INFO_LENGTH);
	memcpy(out_val, text, len);
	return OMX_SUCCESS;
}

static omx_return_t info_number(omx_endpoint_t ep, uint32_t number, void *out_val, uint32_t out_len)
{
	if (out_len < sizeof(number))
		return info_error(ep, OMX_BAD_INFO_LENGTH);
	memcpy(out_val, &number, sizeof(number));
	return OMX_SUCCESS;
}

/* The network interface that has the address of this board; "none" if no interface has it. */
static void interface_of_nic(uint64_t nic_id, char *name, size_t len)
{
	struct ifaddrs *list, *i;

	snprintf(name, len, "none");
	if (getifaddrs(&list) < 0)
		return;
	for (i = list; i; i = i->ifa_next) {
		struct sockaddr_in in;

		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
			continue;
		memcpy(&in, i->ifa_addr, sizeof(in));
		if (ntohl(in.sin_addr.s_addr) == (uint32_t)nic_id) {
			snprintf(name, len, "%s", i->ifa_name);
			break;
		}
	}
	freeifaddrs(list);
}

static omx_return_t info_of_board(omx_endpoint_t ep, omx_info_key_t key, const void *in_val,
				  uint32_t in_len, void *out_val, uint32_t out_len)
{
	char text[OMX_HOSTNAMELEN_MAX] = "";
	omx_return_t ret;
	uint64_t nic_id = 0; /* a handler may make a success of a failure */
	uint32_t board = 0;

	ret = board_of_info(ep, in_val, in_len, &board, &nic_id);
	if (ret != OMX_SUCCESS)
		return ret;
	switch (key) {
	case OMX_INFO_BOARD_HOSTNAME:
		ret = omx_nic_id_to_hostname(nic_id, text);
		return ret == OMX_SUCCESS ? info_text(ep, text, out_val, out_len) : ret;
	case OMX_INFO_BOARD_IFACENAME:
		interface_of_nic(nic_id, text, sizeof(text));
		return info_text(ep, text, out_val, out_len);
	case OMX_INFO_BOARD_NUMA_NODE:
		return info_of_mx(ep, MX_NUMA_NODE, &board, sizeof(board), out_val, out_len);
	default:
		return info_of_mx(ep, MX_COUNTERS_VALUES, &board, sizeof(board), out_val, out_len);
	}
}

static omx_return_t label_of_counter(omx_endpoint_t ep, const void *in_val, uint32_t in_len,
				     void *out_val, uint32_t out_len)
{
	uint32_t count = 0, index;
	omx_return_t ret;
	char *labels;

	if (!in_val || !in_len)
		return info_error(ep, OMX_BAD_INFO_ADDRESS);
	index = *(const uint8_t *)in_val;
	ret = info_of_mx(ep, MX_COUNTERS_COUNT, NULL, 0, &count, sizeof(count));
	if (ret != OMX_SUCCESS)
		return ret;
	if (index >= count)
		return info_error(ep, OMX_BAD_INFO_ADDRESS);
	labels = malloc((size_t)count * MX_MAX_STR_LEN);
	if (!labels)
		return info_error(ep, OMX_NO_RESOURCES);
	ret = info_of_mx(ep, MX_COUNTERS_LABELS, NULL, 0, labels, count * MX_MAX_STR_LEN);
	if (ret == OMX_SUCCESS)
		ret = info_text(ep, labels + (size_t)index * MX_MAX_STR_LEN, out_val, out_len);
	free(labels);
	return ret;
}

omx_return_t omx_get_info(omx_endpoint_t ep, omx_info_key_t key, const void *in_val,
			  uint32_t in_len, void *out_val, uint32_t out_len)
{
	if (!out_val)
		return info_error(ep, OMX_BAD_INFO_ADDRESS);
	switch (key) {
	case OMX_INFO_BOARD_MAX:
		return info_number(ep, PTL_MAX_INTERFACES, out_val, out_len);
	case OMX_INFO_ENDPOINT_MAX:
		return info_of_mx(ep, MX_MAX_NATIVE_ENDPOINTS, NULL, 0, out_val, out_len);
	case OMX_INFO_BOARD_COUNT:
		return info_of_mx(ep, MX_NIC_COUNT, NULL, 0, out_val, out_len);
	case OMX_INFO_BOARD_IDS:
		return info_of_mx(ep, MX_NIC_IDS, NULL, 0, out_val, out_len);
	case OMX_INFO_BOARD_HOSTNAME:
	case OMX_INFO_BOARD_IFACENAME:
	case OMX_INFO_BOARD_NUMA_NODE:
	case OMX_INFO_COUNTER_VALUES:
		return info_of_board(ep, key, in_val, in_len, out_val, out_len);
	case OMX_INFO_COUNTER_MAX:
		return info_of_mx(ep, MX_COUNTERS_COUNT, NULL, 0, out_val, out_len);
	case OMX_INFO_COUNTER_LABEL:
		return label_of_counter(ep, in_val, in_len, out_val, out_len);
	}
	return info_error(ep, OMX_BAD_INFO_KEY);
}
