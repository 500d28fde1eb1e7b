/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Records of the peers that NALs cannot reach, and the NALs' questions about the job's other
 * processes.
 */
#include <stdio.h>
#include <string.h>

#include "nal/nal.h"
#include "portals/engine/ni.h"

static const struct ptl_failed_peer *find_failed_peer(const struct ptl_ni *ni,
						      const struct nal_ops *nal,
						      ptl_process_id_t id)
{
	for (uint32_t i = 0; i < PTL_FAILED_PEERS; i++)
		if (ni->failed_peer[i].nal == nal && ptl_same_id(ni->failed_peer[i].id, id))
			return &ni->failed_peer[i];
	return NULL;
}

void ptl_found(struct ptl_ni *ni, const struct nal_ops *nal, ptl_process_id_t id)
{
	for (uint32_t i = 0; i < PTL_FAILED_PEERS; i++)
		if (ptl_same_id(ni->failed_peer[i].id, id) &&
		    (ni->failed_peer[i].nal == nal || ni->failed_peer[i].fail == PTL_NI_PEER_DEAD))
			ni->failed_peer[i].nal = NULL;
}

void ptl_peer_failed(struct ptl_ni *ni, const struct nal_ops *nal, ptl_process_id_t id,
		     ptl_ni_fail_t fail, const char *why)
{
	struct ptl_failed_peer *oldest = &ni->failed_peer[0];
	const struct ptl_failed_peer *was = find_failed_peer(ni, nal, id);

	/* a peer that has ended cannot be reached; that is no news */
	if (was && was->fail == PTL_NI_PEER_DEAD && fail != PTL_NI_PEER_DEAD)
		return;
	if (was)
		ni->failed_peer[was - ni->failed_peer].nal = NULL;
	for (uint32_t i = 0; i < PTL_FAILED_PEERS; i++)
		if (!ni->failed_peer[i].nal ||
		    (oldest->nal && ni->failed_peer[i].number < oldest->number))
			oldest = &ni->failed_peer[i];
	oldest->nal = nal;
	oldest->id = id;
	oldest->number = ++ni->nfailed_peers;
	oldest->fail = fail;
	snprintf(oldest->why, sizeof(oldest->why), "%s", why);
}

const char *ptl_peer_failed_why(const struct ptl_ni *ni, const struct nal_ops *nal,
				ptl_process_id_t id)
{
	const struct ptl_failed_peer *l = find_failed_peer(ni, nal, id);

	return l ? l->why : NULL;
}

const struct ptl_apart *ptl_apart(const struct ptl_ni *ni, ptl_process_id_t id)
{
	for (unsigned int i = 0; i < ni->napart; i++)
		if (ptl_same_id(ni->apart[i].id, id))
			return &ni->apart[i];
	return NULL;
}

const char *ptl_net_card(const char *card, const char *name, size_t *len)
{
	size_t n = strlen(name);

	while (card) {
		if (!strncmp(card, name, n) && card[n] == '=') {
			*len = strcspn(card + n + 1, ";");
			return card + n + 1;
		}
		card = strchr(card, ';');
		card = card ? card + 1 : NULL;
	}
	return NULL;
}
