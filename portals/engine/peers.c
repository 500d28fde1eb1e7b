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

static const struct ptl_lost *find_lost(const struct ptl_ni *ni, const struct nal_ops *nal,
					ptl_process_id_t id)
{
	for (uint32_t i = 0; i < PTL_LOST; i++)
		if (ni->lost[i].nal == nal && ptl_same_id(ni->lost[i].id, id))
			return &ni->lost[i];
	return NULL;
}

void ptl_found(struct ptl_ni *ni, const struct nal_ops *nal, ptl_process_id_t id)
{
	for (uint32_t i = 0; i < PTL_LOST; i++)
		if (ptl_same_id(ni->lost[i].id, id) &&
		    (ni->lost[i].nal == nal || ni->lost[i].fail == PTL_NI_PEER_DEAD))
			ni->lost[i].nal = NULL;
}

void ptl_lost(struct ptl_ni *ni, const struct nal_ops *nal, ptl_process_id_t id, ptl_ni_fail_t fail,
	      const char *why)
{
	struct ptl_lost *oldest = &ni->lost[0];
	const struct ptl_lost *was = find_lost(ni, nal, id);

	/* a peer that has ended cannot be reached; that is no news */
	if (was && was->fail == PTL_NI_PEER_DEAD && fail != PTL_NI_PEER_DEAD)
		return;
	if (was)
		ni->lost[was - ni->lost].nal = NULL;
	for (uint32_t i = 0; i < PTL_LOST; i++)
		if (!ni->lost[i].nal || (oldest->nal && ni->lost[i].number < oldest->number))
			oldest = &ni->lost[i];
	oldest->nal = nal;
	oldest->id = id;
	oldest->number = ++ni->nlost;
	oldest->fail = fail;
	snprintf(oldest->why, sizeof(oldest->why), "%s", why);
}

const char *ptl_lost_why(const struct ptl_ni *ni, const struct nal_ops *nal, ptl_process_id_t id)
{
	const struct ptl_lost *l = find_lost(ni, nal, id);

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
