/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Addresses of the ranks of a job: what each published on its card, by id.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "nal/net/net.h"

static int compare_ranked(const void *a, const void *b)
{
	const struct net_rank *x = a, *y = b;

	if (x->id.nid != y->id.nid)
		return x->id.nid < y->id.nid ? -1 : 1;
	return (x->id.pid > y->id.pid) - (x->id.pid < y->id.pid);
}

bool net_ranks_take(struct net_ranks *r, const struct nal_job *job, const char *name,
		    bool (*parse)(const void *link, const char *card, size_t len,
				  struct net_addr *addr),
		    const void *link)
{
	r->count = 0;
	r->rank = calloc(job->size, sizeof(*r->rank));
	if (!r->rank)
		return false;
	for (unsigned int i = 0; i < job->size; i++) {
		struct net_rank *to = &r->rank[r->count];
		size_t len;
		const char *card = ptl_net_card(job->card[i], name, &len);

		if (!card || !parse(link, card, len, &to->addr))
			continue;
		to->id = job->ids[i];
		r->count++;
	}
	qsort(r->rank, r->count, sizeof(*r->rank), compare_ranked);
	return true;
}

void net_ranks_free(struct net_ranks *r)
{
	free(r->rank);
	*r = (struct net_ranks){ .rank = NULL };
}

const struct net_addr *net_ranks_find(const struct net_ranks *r, ptl_process_id_t id)
{
	struct net_rank key = { .id = id };
	const struct net_rank *found = NULL;

	if (r->count)
		found = bsearch(&key, r->rank, r->count, sizeof(*r->rank), compare_ranked);
	return found ? &found->addr : NULL;
}

uint16_t net_port_parse(const char *text, size_t len)
{
	uint32_t port = 0;

	if (!len || len > 5 || *text == '0')
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		port = port * 10 + (uint32_t)(text[i] - '0');
	}
	return port <= UINT16_MAX ? (uint16_t)port : 0;
}

uint16_t net_port_of(ptl_pid_t pid)
{
	FILE *f = fopen(base_config()->ptl_pid2port_file, "re");
	uint16_t port = pid <= 65535 ? (uint16_t)pid : 0;
	unsigned int its_pid, its_port;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%u %u", &its_pid, &its_port) == 2 && its_pid == pid &&
		    its_port <= 65535)
			port = (uint16_t)its_port;
	if (f)
		fclose(f);
	return port;
}
