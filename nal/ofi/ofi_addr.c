/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Addresses. Ranks of a job publish theirs on cards. Outside a job a process is where its id
 * says: at the nid's IPv4 address and the port of its pid, or, within a host, under a name made
 * of both. A process that has greeted us is where its greeting says.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nal/ofi/ofi.h"

bool ofi_name_of(const struct ofi *o, const struct fi_info *i, ptl_process_id_t id,
		 struct ofi_name *name)
{
	struct in_addr in = { .s_addr = htonl(id.nid) };
	uint16_t port = net_port_of(id.pid);

	if (ofi_is_local(i)) {
		if (id.nid != o->ni->id.nid)
			return false;
		name->node[0] = '\0';
		snprintf(name->service, sizeof(name->service), "ptl-%08x-%u", id.nid, id.pid);
		return true;
	}
	if (i->addr_format != FI_SOCKADDR_IN || !port ||
	    !inet_ntop(AF_INET, &in, name->node, sizeof(name->node)))
		return false;
	snprintf(name->service, sizeof(name->service), "%u", port);
	return true;
}

/* ---- cards ----------------------------------------------------------------------------------- */

static int compare_entries(const void *a, const void *b)
{
	const struct ofi_rank *x = a, *y = b;

	if (x->id.nid != y->id.nid)
		return x->id.nid < y->id.nid ? -1 : 1;
	return (x->id.pid > y->id.pid) - (x->id.pid < y->id.pid);
}

bool ofi_take_cards(struct ofi *o, const struct nal_job *job)
{
	char provider[OFI_PROVIDER_MAX];

	o->rank = calloc(job->size, sizeof(*o->rank));
	if (!o->rank)
		return false;
	for (unsigned int i = 0; i < job->size; i++) {
		struct ofi_rank *r = &o->rank[o->ranks];
		size_t len;
		const char *card = ptl_net_card(job->card[i], "ofi", &len);

		/* another provider's endpoints cannot be reached with ours */
		if (!card || !ofi_card_parse(card, len, provider, &r->addr) ||
		    strcmp(provider, o->info->fabric_attr->prov_name) != 0)
			continue;
		r->id = job->ids[i];
		o->ranks++;
	}
	qsort(o->rank, o->ranks, sizeof(*o->rank), compare_entries);
	return true;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static struct ofi_path **place_of_path(struct ofi *o, const struct ofi_addr *a)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < a->len; i++)
		hash = (hash ^ a->bytes[i]) * 16777619u;
	return &o->paths[hash % (sizeof(o->paths) / sizeof(o->paths[0]))];
}

static struct ofi_path *path_to(struct ofi *o, const struct ofi_addr *a)
{
	struct ofi_path **at = place_of_path(o, a), *w = *at;

	while (w &&
	       (w->removed || w->raw.len != a->len || memcmp(w->raw.bytes, a->bytes, a->len) != 0))
		w = w->next;
	if (w) {
		w->refs++;
		return w;
	}
	w = malloc(sizeof(*w));
	if (!w)
		return NULL;
	w->raw = *a;
	w->refs = 1;
	w->under_way = 0;
	w->removed = false;
	if (fi_av_insert(o->av, w->raw.bytes, 1, &w->addr, 0, NULL) != 1) {
		free(w);
		return NULL;
	}
	w->next = *at;
	*at = w;
	return w;
}

/* The address of a process by its id alone. */
static bool resolve(struct ofi *o, ptl_process_id_t id, struct ofi_addr *a)
{
	struct fi_info *hints, *found = NULL;
	struct ofi_name name;
	bool ok = false;

	if (!ofi_name_of(o, o->info, id, &name))
		return false;
	hints = o->lib->dupinfo(o->info);
	if (!hints)
		return false;
	free(hints->src_addr);
	hints->src_addr = NULL;
	hints->src_addrlen = 0;
	if (o->lib->getinfo(OFI_VERSION, name.node[0] ? name.node : NULL, name.service, 0, hints,
			    &found) == 0 &&
	    found->dest_addr && found->dest_addrlen && found->dest_addrlen <= sizeof(a->bytes)) {
		memcpy(a->bytes, found->dest_addr, found->dest_addrlen);
		a->len = found->dest_addrlen;
		ok = true;
	}
	if (found)
		o->lib->freeinfo(found);
	o->lib->freeinfo(hints);
	return ok;
}

void *ofi_reach(void *link, net_id_t id, const void *address, size_t len)
{
	struct ofi *o = link;
	struct ofi_rank key = { .id = { (ptl_nid_t)(id >> 32), (ptl_pid_t)id } };
	const struct ofi_rank *rank = NULL;
	struct ofi_addr a;

	if (address) {
		/* as long as ours: libfabric does not say how much of it a provider reads */
		if (len != o->own.len && !ofi_is_local(o->info))
			return NULL;
		if (!len || len > sizeof(a.bytes) ||
		    (ofi_is_local(o->info) && ((const char *)address)[len - 1]))
			return NULL;
		memcpy(a.bytes, address, len);
		a.len = len;
		return path_to(o, &a);
	}
	if (o->ranks)
		rank = bsearch(&key, o->rank, o->ranks, sizeof(*o->rank), compare_entries);
	if (rank)
		return path_to(o, &rank->addr);
	if (!o->by_id || !resolve(o, key.id, &a))
		return NULL;
	return path_to(o, &a);
}

/*
 * Remove the address of an unused path. libfabric does not define what happens to operations
 * under way to a removed address. So the address is normally removed when they are over.
 *
 * Over connections it is removed at once. That closes the connection and ends the operations: a
 * peer that is only slow can write to no memory any more. For reliable datagrams nobody reports
 * the end of operations, and resending needs the address: it stays.
 */
static void path_unused(struct ofi *o, struct ofi_path *w)
{
	struct ofi_path **at;

	if (w->refs || o->info->ep_attr->protocol == FI_PROTO_RXD)
		return;
	if (!w->removed &&
	    (!w->under_way || o->info->ep_attr->protocol == FI_PROTO_RXM || ofi_is_ip(o->info))) {
		w->removed = true;
		fi_av_remove(o->av, &w->addr, 1, 0);
	}
	if (!w->removed || w->under_way)
		return;
	for (at = place_of_path(o, &w->raw); *at != w;)
		at = &(*at)->next;
	*at = w->next;
	free(w);
}

void ofi_leave(void *link, void *path)
{
	struct ofi_path *w = path;

	w->refs--;
	path_unused(link, w);
}

void ofi_path_over(struct ofi *o, struct ofi_path *w)
{
	w->under_way--;
	path_unused(o, w);
}

void ofi_paths_free(struct ofi *o)
{
	struct ofi_path *w;

	for (size_t i = 0; i < sizeof(o->paths) / sizeof(o->paths[0]); i++)
		while ((w = o->paths[i])) {
			o->paths[i] = w->next;
			free(w);
		}
}
