/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Node ids and the addresses behind them: from a file of lines "nid address", or the hosts of a
 * job in the order of their lowest ranks, or this node alone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <p3rt/p3rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/config.h"
#include "base/log.h"
#include "dp_shim/core.h"

/* Make room for node ids below `count`. */
static bool grow_nodes(int count)
{
	struct dp_node *more;

	if (count <= dp_lib.nodes)
		return true;
	more = realloc(dp_lib.node, (size_t)count * sizeof(*more));
	if (!more)
		return false;
	memset(more + dp_lib.nodes, 0, (size_t)(count - dp_lib.nodes) * sizeof(*more));
	dp_lib.node = more;
	dp_lib.nodes = count;
	return true;
}

static bool resolve_address(const char *text, ptl_nid_t *address)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *found;
	struct in_addr ip;

	if (inet_pton(AF_INET, text, &ip) == 1) {
		*address = ntohl(ip.s_addr);
		return true;
	}
	if (getaddrinfo(text, NULL, &hints, &found))
		return false;
	*address =
		ntohl(((const struct sockaddr_in *)(const void *)found->ai_addr)->sin_addr.s_addr);
	freeaddrinfo(found);
	return true;
}

/* One line of the file. NULL, or what is wrong with it. */
static const char *read_node(char *line)
{
	char *save, *number, *name, *end;
	ptl_nid_t address;
	long nid;

	line[strcspn(line, "#\n")] = '\0';
	number = strtok_r(line, " \t\r", &save);
	if (!number)
		return NULL;
	nid = strtol(number, &end, 10);
	name = strtok_r(NULL, " \t\r", &save);
	if (*end || nid < 0 || nid >= DP_NIDS)
		return "the node id is no number from 0 to 65535";
	if (!name || strtok_r(NULL, " \t\r", &save))
		return "it is not \"nid address\"";
	if (!resolve_address(name, &address))
		return "the address is not known";
	if (!grow_nodes((int)nid + 1))
		return "memory is short";
	if (dp_lib.node[nid].known)
		return "the node id is there already";
	for (int i = 0; i < dp_lib.nodes; i++)
		if (dp_lib.node[i].known && dp_lib.node[i].address == address)
			return "the address is there already";
	dp_lib.node[nid] = (struct dp_node){ true, address };
	return NULL;
}

static int read_node_file(const char *path)
{
	FILE *file = fopen(path, "re");
	const char *wrong = NULL;
	char line[512];
	int number = 0;

	if (!file) {
		base_warn("cannot read the nodes of PTL_DP_NODES=%s: %m", path);
		return -1;
	}
	while (!wrong && fgets(line, sizeof(line), file)) {
		number++;
		wrong = read_node(line);
	}
	fclose(file);
	if (!wrong)
		return 0;
	base_warn("PTL_DP_NODES=%s, line %d: %s", path, number, wrong);
	errno = EINVAL;
	return -1;
}

/* The hosts of the job, in the order of their lowest ranks. */
static int number_hosts(void)
{
	for (unsigned int r = 0; r < dp_lib.nranks; r++) {
		int n = 0;

		while (n < dp_lib.nodes && dp_lib.node[n].address != dp_lib.ranks[r].nid)
			n++;
		if (n >= DP_NIDS || !grow_nodes(n + 1)) {
			errno = ENOMEM;
			return -1;
		}
		dp_lib.node[n] = (struct dp_node){ true, dp_lib.ranks[r].nid };
	}
	return 0;
}

static int learn_ranks(void)
{
	unsigned int rank, size = 1;

	if (PtlGetRank(dp_lib.ni, &rank, &size) != PTL_OK || size < 2)
		return 0;
	dp_lib.ranks = calloc(size, sizeof(*dp_lib.ranks));
	if (!dp_lib.ranks) {
		errno = ENOMEM;
		return -1;
	}
	for (unsigned int i = 0; i < size; i++) {
		if (PtlGetRankId(dp_lib.ni, i, &dp_lib.ranks[i]) != PTL_OK) {
			base_warn("the ids of the other ranks are not known on the interface that "
				  "DP uses");
			errno = ENODEV;
			return -1;
		}
	}
	dp_lib.nranks = size;
	return 0;
}

static int find_own_node(void)
{
	struct in_addr own = { htonl(dp_lib.id.nid) };
	char text[INET_ADDRSTRLEN];

	for (int i = 0; i < dp_lib.nodes; i++) {
		if (dp_lib.node[i].known && dp_lib.node[i].address == dp_lib.id.nid) {
			dp_lib.nid = i;
			return 0;
		}
	}
	base_warn("PTL_DP_NODES has no line for this node, %s; PTL_IFACE chooses the address",
		  inet_ntop(AF_INET, &own, text, sizeof(text)));
	errno = EADDRNOTAVAIL;
	return -1;
}

int dp_nodes_learn(void)
{
	const char *path = base_config()->ptl_dp_nodes;

	free(dp_lib.node);
	free(dp_lib.ranks);
	dp_lib.node = NULL;
	dp_lib.ranks = NULL;
	dp_lib.nodes = 0;
	dp_lib.nranks = 0;
	if (learn_ranks() < 0)
		return -1;
	if (path) {
		if (read_node_file(path) < 0)
			return -1;
	} else if (dp_lib.nranks) {
		if (number_hosts() < 0)
			return -1;
	} else {
		if (!grow_nodes(1)) {
			errno = ENOMEM;
			return -1;
		}
		dp_lib.node[0] = (struct dp_node){ true, dp_lib.id.nid };
	}
	return find_own_node();
}

bool dp_node_process(uint32_t nid, unsigned int i, ptl_process_id_t *process)
{
	ptl_nid_t address = dp_lib.node[nid].address;

	if (!dp_lib.ranks) {
		*process = (ptl_process_id_t){ address, dp_lib.first_pid + i };
		return i < dp_lib.pids;
	}
	for (unsigned int r = 0; r < dp_lib.nranks; r++) {
		if (dp_lib.ranks[r].nid != address)
			continue;
		if (i-- == 0) {
			*process = dp_lib.ranks[r];
			return true;
		}
	}
	return false;
}
