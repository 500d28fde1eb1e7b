/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Choosing a provider. The hints require only what the machine needs: reliable unconnected
 * endpoints and ordered messages. Remote memory access and buffers for many messages are used
 * if offered. All modes of memory registration are accepted except raw keys.
 *
 * Of several offers the fastest kind of provider wins, then the offer with the most abilities,
 * then the first in libfabric's own order. So a fabric that can do less is preferred to sockets
 * that can do everything.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/config.h"
#include "nal/ofi/ofi.h"

/* Kinds of providers, the preferred ones first. Providers over the kernel's sockets reach the
 * same peers as the UDP transport, and shared memory is better without libfabric. So both are
 * used only if asked for. */
static const struct {
	const char *name;
	bool fabric;
	bool reads;
} kinds[] = {
	{ "cxi", true, true },   { "efa", true, true },  { "psm3", true, true },
	{ "psm2", true, true },  { "opx", true, true },  { "verbs", true, true },
	{ "ucx", true, true },   { "", true, true }, /* others */
	{ "tcp", false, true },  { "net", false, true }, { "sockets", false, true },
	{ "udp", false, false }, { "shm", false, true }, { "sm2", false, true },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static size_t provider_kind(const struct fi_info *i)
{
	const char *name = i->fabric_attr->prov_name;
	size_t others = 0;

	for (size_t k = 0; k < KINDS; k++) {
		size_t len = strlen(kinds[k].name);

		if (!len)
			others = k;
		else if (!strncasecmp(name, kinds[k].name, len) && (!name[len] || name[len] == ';'))
			return k; /* UDP;ofi_rxd in libfabric 1.11, udp;ofi_rxd in 1.17 */
	}
	return others;
}

bool ofi_reads_well(const struct fi_info *i)
{
	switch (base_config()->ptl_ofi_read) {
	case BASE_READ_ON:
		return i->caps & FI_RMA;
	case BASE_READ_OFF:
		return false;
	default:
		return i->caps & FI_RMA && kinds[provider_kind(i)].reads;
	}
}

const char *ofi_wanted(void)
{
	static _Thread_local char name[64];
	const char *list = base_config()->ptl_nal;

	name[0] = '\0';
	while (list && *list && !name[0]) {
		size_t len;

		list += strspn(list, ", ");
		len = strcspn(list, ", ");
		if (len > 4 && !strncmp(list, "ofi:", 4))
			snprintf(name, sizeof(name), "%.*s", (int)len - 4, list + 4);
		list += len;
	}
	return name;
}

static bool has_entries(const char *path)
{
	const struct dirent *e;
	DIR *dir = opendir(path);
	bool any = false;

	while (dir && !any && (e = readdir(dir)))
		any = e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return any;
}

bool ofi_is_unasked(void)
{
	return !strcmp(base_config()->ptl_nal, "auto");
}

bool ofi_has_fabric(void)
{
	return has_entries("/sys/class/infiniband") || has_entries("/sys/class/cxi") ||
	       has_entries("/sys/class/hfi1");
}

/* Sets of abilities, the largest first. All need messages. */
static const uint64_t caps[] = { FI_MSG | FI_RMA | FI_MULTI_RECV, FI_MSG | FI_RMA,
				 FI_MSG | FI_MULTI_RECV, FI_MSG };

#define CAPS (sizeof(caps) / sizeof(caps[0]))

/* The offers of libfabric for each set of abilities. */
struct offers {
	struct fi_info *list[CAPS];
	int err; /* why it could not answer */
};

static struct fi_info *make_hints(const struct ofi_lib *lib, const char *provider,
				  uint64_t abilities)
{
	struct fi_info *h = lib->dupinfo(NULL);

	if (!h)
		return NULL;
	h->caps = abilities;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->ep_attr->type = FI_EP_RDM;
	h->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	/* all calls are made with the interface's lock held */
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_SAS;
	if (!*provider)
		return h;
	h->fabric_attr->prov_name = strdup(provider);
	if (h->fabric_attr->prov_name)
		return h;
	lib->freeinfo(h);
	return NULL;
}

/* Get the offers with these abilities. Returns 0, also if there are none, or -errno. */
static int ask_provider(const struct ofi_lib *lib, const char *provider, const char *node,
			const char *service, uint64_t abilities, struct fi_info **list)
{
	struct fi_info *h = make_hints(lib, provider, abilities);
	int err;

	if (!h)
		return -FI_ENOMEM;
	err = lib->getinfo(OFI_VERSION, node, service, node || service ? FI_SOURCE : 0, h, list);
	lib->freeinfo(h);
	if (err)
		*list = NULL;
	return err == -FI_ENODATA ? 0 : err;
}

/* Ask for every set: a provider that can do less is missing in the answers for larger sets. */
static void ask_all(const struct ofi_lib *lib, const char *node, const char *service,
		    struct offers *o)
{
	*o = (struct offers){ .err = 0 };
	for (size_t row = 0; row < CAPS; row++) {
		int err = ask_provider(lib, ofi_wanted(), node, service, caps[row], &o->list[row]);

		if (!o->err)
			o->err = err;
	}
}

static void offers_free(const struct ofi_lib *lib, const struct offers *o)
{
	for (size_t row = 0; row < CAPS; row++)
		if (o->list[row])
			lib->freeinfo(o->list[row]);
}

/* Providers that were already printed by ofi_list(). */
struct listed {
	const char *name[32];
	size_t names;
	void (*line)(const char *text);
};

static bool was_listed(const struct listed *t, const struct fi_info *i)
{
	for (size_t k = 0; t && k < t->names; k++)
		if (!strcmp(t->name[k], i->fabric_attr->prov_name))
			return true;
	return false;
}

/* The best offer among providers that were not printed yet. */
static const struct fi_info *best(const struct offers *o, const struct listed *t)
{
	const struct fi_info *found = NULL;

	for (size_t row = 0; row < CAPS; row++)
		for (const struct fi_info *i = o->list[row]; i; i = i->next)
			if (!was_listed(t, i) &&
			    (!found || provider_kind(i) < provider_kind(found)))
				found = i;
	return found;
}

/* May it be used? If libfabric was not asked for, only fabrics may. */
static bool may_take(const struct fi_info *i)
{
	return !ofi_is_unasked() || kinds[provider_kind(i)].fabric;
}

/* The reason why nothing is used, where `found` is the best offer, or NULL if there is none.
 * Valid until the next call. */
static const char *no_provider(const struct ofi_lib *lib, const struct offers *o,
			       const struct fi_info *found)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static char text[160];

	pthread_mutex_lock(&mutex);
	if (found)
		snprintf(text, sizeof(text),
			 "libfabric has no provider for a fabric here; over sockets it is used if "
			 "PTL_NAL names it, as in PTL_NAL=ofi:tcp");
	else if (o->err)
		snprintf(text, sizeof(text),
			 "libfabric does not say what it offers (fi_getinfo): %s",
			 lib->strerror(-o->err));
	else if (*ofi_wanted())
		snprintf(text, sizeof(text),
			 "libfabric's provider %s offers no reliable unconnected "
			 "endpoints here; fi_info -t FI_EP_RDM lists those that do",
			 ofi_wanted());
	else
		snprintf(text, sizeof(text),
			 "no provider of libfabric offers reliable unconnected "
			 "endpoints here; see fi_info -t FI_EP_RDM");
	pthread_mutex_unlock(&mutex);
	return text;
}

struct fi_info *ofi_choose(const char *node, const char *service, const char **why)
{
	const struct ofi_lib *lib = ofi_lib(why);
	struct fi_info *copy = NULL;
	const struct fi_info *found;
	struct offers o;

	if (!lib)
		return NULL;
	ask_all(lib, node, service, &o);
	found = best(&o, NULL);
	if (!found || !may_take(found)) {
		*why = no_provider(lib, &o, found);
	} else {
		copy = lib->dupinfo(found);
		if (!copy)
			*why = "out of memory";
	}
	offers_free(lib, &o);
	return copy;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void list_provider(struct listed *t, const struct fi_info *i, size_t place, const char *text)
{
	char line[160];

	if (t->names == sizeof(t->name) / sizeof(t->name[0]))
		return;
	t->name[t->names++] = i->fabric_attr->prov_name;
	if (place)
		snprintf(line, sizeof(line), "%2zu. %s: %s", place, i->fabric_attr->prov_name,
			 text);
	else
		snprintf(line, sizeof(line), " -  %s: %s", i->fabric_attr->prov_name, text);
	t->line(line);
}

/* Print the providers of a list that were not printed yet. They are not used. */
static void list_other_providers(struct listed *t, const struct fi_info *list, const char *why)
{
	for (const struct fi_info *i = list; i; i = i->next)
		if (!was_listed(t, i))
			list_provider(t, i, 0, why);
}

static void list_offers(struct listed *t, const struct offers *o)
{
	const struct fi_info *i;

	while (t->names < sizeof(t->name) / sizeof(t->name[0]) && (i = best(o, t)))
		if (may_take(i))
			list_provider(t, i, t->names + 1, ofi_long_by(ofi_reads_well(i)));
		else
			list_provider(t, i, 0,
				      "is not for a fabric, and taken only if PTL_NAL names ofi");
}

void ofi_list(void (*line)(const char *text))
{
	const struct ofi_lib *lib = ofi_lib(NULL);
	struct fi_info *unnamed = NULL, *all = NULL;
	struct listed t = { .line = line };
	struct offers o;

	if (!lib)
		return;
	ask_all(lib, NULL, NULL, &o);
	ask_provider(lib, "", NULL, NULL, FI_MSG, &unnamed);
	if (lib->getinfo(OFI_VERSION, NULL, NULL, 0, NULL, &all) != 0)
		all = NULL;
	list_offers(&t, &o);
	list_other_providers(&t, unnamed, "is not the one that PTL_NAL names");
	list_other_providers(
		&t, all,
		"has no reliable unconnected endpoints (FI_EP_RDM) that keep messages in order");
	if (unnamed)
		lib->freeinfo(unnamed);
	if (all)
		lib->freeinfo(all);
	offers_free(lib, &o);
}
