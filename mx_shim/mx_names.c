/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Names of boards. A NIC id looks like a locally administered MAC address: 02:50 + the board's
 * number, then the node id, which is the host's IPv4 address. Host names are those of the system.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <p3nal_utcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "mx_shim/mx_core.h"

#define NIC_PREFIX UINT64_C(0x0250)

uint64_t mxs_nic_id(uint32_t board, ptl_nid_t nid)
{
	return (NIC_PREFIX + board) << 32 | nid;
}

bool mxs_nic_parts(uint64_t nic_id, uint32_t *board, ptl_nid_t *nid)
{
	uint64_t number = (nic_id >> 32) - NIC_PREFIX;

	*board = (uint32_t)number;
	*nid = (ptl_nid_t)nic_id;
	return number < MXS_BOARDS;
}

ptl_nid_t mxs_board_nid(uint32_t board)
{
	const char *iface;
	unsigned int nid = 0;
	char name[24];

	if (mxs.board[board].open)
		return mxs.board[board].id.nid;
	snprintf(name, sizeof(name), "PTL_IFACE%u", board);
	iface = base_config_env(name);
	if (!iface)
		iface = base_config_env("PTL_IFACE");
	p3tcp_my_nid(iface, &nid);
	return nid;
}

static bool is_own_name(const char *host)
{
	char own[256] = "";

	gethostname(own, sizeof(own) - 1);
	return !strcmp(host, own) || !strcmp(host, "localhost");
}

/* The node id of a host that the system knows. False: it knows none. */
static bool resolve_host(const char *host, ptl_nid_t *nid)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_DGRAM }, *found;

	if (getaddrinfo(host, NULL, &hints, &found))
		return false;
	*nid = ntohl(((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr.s_addr);
	freeaddrinfo(found);
	return true;
}

static mx_return_t nic_of_name(const char *name, uint64_t *nic_id)
{
	char host[MX_MAX_HOSTNAME_LEN], *colon, *end;
	unsigned long board = 0;
	ptl_nid_t nid;

	if (strlen(name) >= sizeof(host))
		return MX_HOST_NOT_FOUND;
	strcpy(host, name);
	colon = strrchr(host, ':');
	if (colon) {
		*colon = '\0';
		board = strtoul(colon + 1, &end, 10);
		if (end == colon + 1 || *end)
			return MX_HOST_NOT_FOUND;
	}
	if (board >= mxs_boards() || !*host)
		return MX_HOST_NOT_FOUND;
	nid = mxs_board_nid((uint32_t)board);
	if (!is_own_name(host) && !resolve_host(host, &nid))
		return MX_HOST_NOT_FOUND;
	*nic_id = mxs_nic_id((uint32_t)board, nid);
	return MX_SUCCESS;
}

mx_return_t mx_hostname_to_nic_id(char *hostname, uint64_t *nic_id)
{
	mx_return_t ret = MX_BAD_HOSTNAME_ARGS;

	if (!atomic_load(&mxs.initialized))
		ret = MX_NOT_INITIALIZED;
	else if (hostname && nic_id)
		ret = nic_of_name(hostname, nic_id);
	return ret == MX_SUCCESS ? ret : mxs_fail(NULL, "mx_hostname_to_nic_id", ret);
}

/* The name of a host by its address, or the address as text. */
static void name_of_nid(ptl_nid_t nid, char *name, size_t room)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(nid) };

	if (getnameinfo((struct sockaddr *)&a, sizeof(a), name, (socklen_t)room, NULL, 0,
			NI_NAMEREQD))
		inet_ntop(AF_INET, &a.sin_addr, name, (socklen_t)room);
}

mx_return_t mx_nic_id_to_hostname(uint64_t nic_id, char *hostname)
{
	char name[MX_MAX_HOSTNAME_LEN - 8] = "";
	uint32_t board;
	ptl_nid_t nid;

	if (!atomic_load(&mxs.initialized))
		return mxs_fail(NULL, "mx_nic_id_to_hostname", MX_NOT_INITIALIZED);
	if (!hostname)
		return mxs_fail(NULL, "mx_nic_id_to_hostname", MX_BAD_HOSTNAME_ARGS);
	if (!mxs_nic_parts(nic_id, &board, &nid) || board >= mxs_boards())
		return mxs_fail(NULL, "mx_nic_id_to_hostname", MX_NIC_NOT_FOUND);
	if (nid == mxs_board_nid(board))
		gethostname(name, sizeof(name) - 1);
	else
		name_of_nid(nid, name, sizeof(name));
	snprintf(hostname, MX_MAX_HOSTNAME_LEN, "%s:%u", name, board);
	return MX_SUCCESS;
}

mx_return_t mx_board_number_to_nic_id(uint32_t board_number, uint64_t *nic_id)
{
	if (!atomic_load(&mxs.initialized))
		return mxs_fail(NULL, "mx_board_number_to_nic_id", MX_NOT_INITIALIZED);
	if (board_number >= mxs_boards() || !nic_id)
		return mxs_fail(NULL, "mx_board_number_to_nic_id", MX_BOARD_UNKNOWN);
	*nic_id = mxs_nic_id(board_number, mxs_board_nid(board_number));
	return MX_SUCCESS;
}

mx_return_t mx_nic_id_to_board_number(uint64_t nic_id, uint32_t *board_number)
{
	uint32_t board;
	ptl_nid_t nid;

	if (!atomic_load(&mxs.initialized))
		return mxs_fail(NULL, "mx_nic_id_to_board_number", MX_NOT_INITIALIZED);
	if (!mxs_nic_parts(nic_id, &board, &nid) || board >= mxs_boards() ||
	    nid != mxs_board_nid(board) || !board_number)
		return mxs_fail(NULL, "mx_nic_id_to_board_number", MX_NIC_NOT_FOUND);
	*board_number = board;
	return MX_SUCCESS;
}
