/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The operations of the libfabric NAL: opening and closing, and how ranks publish their
 * endpoints.
 */
#include "nal/ofi/ofi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "portals/engine/debug.h"

#define PID_FIRST 32768u /* of those chosen */
#define PID_TRIES 100

extern const struct nal_ops nal_ofi_ops;

static struct ofi *ofi_of(struct ptl_ni *ni)
{
	return ptl_net_of(ni, &nal_ofi_ops)->state;
}

static struct net *net_of_ofi(struct ptl_ni *ni)
{
	return &ofi_of(ni)->rdma.net;
}

/* libfabric takes some tenths of a second to look for providers. A machine without a useful one
 * should not pay for that. */
static const char *ofi_unusable(void)
{
	const char *why = net_seal_unusable();
	struct fi_info *info;

	if (why)
		return why;
	if (ofi_is_unasked() && !ofi_has_fabric())
		return "no fabric's device is here; over sockets it is used if PTL_NAL names it, "
		       "as in PTL_NAL=ofi:tcp";
	info = ofi_choose(NULL, NULL, &why);
	if (!info)
		return why;
	ofi_lib(NULL)->freeinfo(info);
	return NULL;
}

static void ofi_describe(char *text, size_t len)
{
	const char *why = "";
	struct fi_info *i = ofi_choose(NULL, NULL, &why);
	uint32_t version;

	if (!i) {
		snprintf(text, len, "%s", why);
		return;
	}
	version = ofi_lib(NULL)->version();
	snprintf(text, len, "libfabric %u.%u, provider %s on %s, %s", FI_MAJOR(version),
		 FI_MINOR(version), i->fabric_attr->prov_name, i->domain_attr->name,
		 ofi_long_by(ofi_reads_well(i)));
	ofi_lib(NULL)->freeinfo(i);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Our own name for the provider: an address of ours, and the port or name that others look for. */
static void own_name(struct ofi *o, const struct fi_info *probe, ptl_pid_t want,
		     struct ofi_name *name)
{
	const struct ptl_ni *ni = o->ni;
	ptl_process_id_t id = { .nid = ni->id.nid, .pid = want };

	*name = (struct ofi_name){ .node = "" };
	if (!ni->cards && want != PTL_PID_ANY && !ofi_name_of(o, probe, id, name))
		*name = (struct ofi_name){ .node = "" };
	if (ofi_is_ip(probe) && ni->address.family)
		inet_ntop(ni->address.family, ni->address.bytes, name->node, sizeof(name->node));
}

/* Choose a pid that names the endpoint, where there are no ports for the kernel to choose from. */
static ptl_pid_t choose_pid(void)
{
	uint32_t random = 0;

	if (!base_random(&random, sizeof(random)))
		random = (uint32_t)getpid();
	return PID_FIRST + random % PID_FIRST;
}

/*
 * Hold a name within the host. The kernel sees it as held while the process lives. We need this
 * because the shm provider (1.17) takes a name away from its owner, and only then says that it
 * is taken. A name that a dead process left is unlinked. Otherwise the provider would use its
 * memory again as it is, while others have it mapped.
 *
 * The kernel sees one network namespace. Processes that share /dev/shm and the nid with another
 * namespace should not share pids.
 */
static int take_endpoint_name(struct ofi *o, const struct fi_info *probe, ptl_pid_t *want,
			      struct ofi_name *name)
{
	bool any = *want == PTL_PID_ANY;
	char held[sizeof(name->service) + 16];

	for (int tries = 0; tries < (any ? PID_TRIES : 1); tries++) {
		if (any)
			*want = choose_pid();
		own_name(o, probe, *want, name);
		snprintf(held, sizeof(held), "postern-ofi-%s", name->service);
		o->name_fd = net_hold(held);
		if (o->name_fd >= 0)
			shm_unlink(name->service);
		if (o->name_fd != -EADDRINUSE)
			break;
	}
	return o->name_fd < 0 ? o->name_fd : 0;
}

static void ofi_free(struct ofi *o)
{
	if (o->info) {
		ofi_ep_close(o);
		ofi_paths_free(o);
		ofi_domain_close(o);
		o->lib->freeinfo(o->info);
	}
	if (o->name_fd >= 0)
		close(o->name_fd);
	free(o->rank);
	free(o);
}

/* The pid of an interface that may have any, outside a job: the port the kernel gave, or any. */
static ptl_pid_t free_pid(const struct ofi *o)
{
	const struct sockaddr_in *s = (const void *)o->own.bytes;

	if (o->info->addr_format == FI_SOCKADDR_IN && o->own.len >= sizeof(*s))
		return ntohs(s->sin_port);
	return PTL_PID_ANY;
}

static int name_taken(const struct fi_info *i, const struct ofi_name *name, ptl_pid_t want)
{
	bool local = ofi_is_local(i);

	base_warn("libfabric's provider %s: %s %s, which is that of pid %u, is taken by another "
		  "program; ask for another pid%s",
		  i->fabric_attr->prov_name, local ? "the name" : "port", name->service, want,
		  local ? "" : ", or give it another port in PTL_PID2PORT_FILE");
	return PTL_PID_INVALID;
}

static int open_with(struct ofi *o, const struct fi_info *probe, ptl_pid_t want,
		     const struct ofi_name *name)
{
	const char *why = NULL, *what = "";
	int err;

	o->info = ofi_choose(name->node[0] ? name->node : NULL,
			     name->service[0] ? name->service : NULL, &why);
	/* a provider that does not use our host's addresses has one of its own */
	if (!o->info && !name->service[0])
		o->info = o->lib->dupinfo(probe);
	if (!o->info) {
		base_warn("libfabric: no endpoint at %s port %s: %s", name->node, name->service,
			  why);
		return PTL_FAIL;
	}
	err = ofi_ep_open(o, &what);
	if (err == -FI_EADDRINUSE)
		return name_taken(o->info, name, want);
	if (err == 0)
		return PTL_OK;
	base_warn(
		"libfabric's provider %s does not give %s: %s; %sfi_info -p '%s' -v shows what it "
		"has",
		o->info->fabric_attr->prov_name, what, o->lib->strerror(-err), ofi_remedy(err),
		o->info->fabric_attr->prov_name);
	return PTL_FAIL;
}

/* Open with the wanted pid. Sets *pid to the pid that was chosen, or leaves PTL_PID_ANY: none
 * was. */
static int open_named(struct ofi *o, ptl_pid_t *pid)
{
	const char *why = NULL;
	struct fi_info *probe = ofi_choose(NULL, NULL, &why);
	struct ofi_name name;
	int err = 0;

	if (!probe) {
		base_warn("libfabric: %s", why);
		return PTL_FAIL;
	}
	if (!o->ni->cards && ofi_is_local(probe))
		err = take_endpoint_name(o, probe, pid, &name);
	else
		own_name(o, probe, *pid, &name);
	if (err == -EADDRINUSE) {
		err = name_taken(probe, &name, *pid);
	} else if (err < 0) {
		base_warn("libfabric: the name %s cannot be held: %s", name.service,
			  strerror(-err));
		err = PTL_FAIL;
	} else {
		err = open_with(o, probe, *pid, &name);
	}
	o->lib->freeinfo(probe);
	return err;
}

static int ofi_open(struct ptl_ni *ni, ptl_pid_t want)
{
	struct ofi *o = calloc(1, sizeof(*o));
	const struct ofi_lib *lib = ofi_lib(NULL);
	int err;

	if (!o || !lib) {
		free(o);
		return PTL_NO_SPACE;
	}
	o->lib = lib;
	o->ni = ni;
	o->fd = o->name_fd = -1;
	err = open_named(o, &want);
	if (err != PTL_OK) {
		ofi_free(o);
		return err;
	}
	if (!ni->cards)
		ni->id.pid = want == PTL_PID_ANY ? free_pid(o) : want;
	ptl_net_of(ni, &nal_ofi_ops)->state = o;
	return PTL_OK;
}

/* ---- the job --------------------------------------------------------------------------------- */

static void ofi_card(struct ptl_ni *ni, char *text, size_t len)
{
	const struct ofi *o = ofi_of(ni);

	if (!ofi_card_format(text, len, o->info->fabric_attr->prov_name, &o->own))
		*text = '\0';
}

static const char *ofi_join(struct ptl_ni *ni, const struct nal_job *job)
{
	struct ofi *o = ofi_of(ni);

	o->by_id = !job->card;
	if (job->card && !ofi_take_cards(o, job))
		return "out of memory";
	o->started = true;
	return rdma_start(&o->rdma, ni, ptl_net_of(ni, &nal_ofi_ops), &ofi_link, o, &o->limits, job,
			  o->fd);
}

static void ofi_close(struct ptl_ni *ni)
{
	struct ofi *o = ofi_of(ni);

	if (o->started)
		rdma_stop(&o->rdma);
	ofi_free(o);
	ptl_net_of(ni, &nal_ofi_ops)->state = NULL;
}

/* The descriptors are the provider's own. The important ones are closed on exec. */
static void ofi_forked(struct ptl_ni *ni)
{
	struct ofi *o = ofi_of(ni);

	if (o && o->name_fd >= 0)
		close(o->name_fd);
	if (o && o->started)
		net_forked(&o->rdma.net);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static unsigned long ofi_distance(struct ptl_ni *ni, ptl_process_id_t id)
{
	if (!net_lives(net_of_ofi(ni), id))
		return ULONG_MAX;
	return id.nid == ni->id.nid ? 1 : 2;
}

static bool ofi_knows(struct ptl_ni *ni, ptl_process_id_t target)
{
	return net_knows(net_of_ofi(ni), target);
}

static bool ofi_connect(struct ptl_ni *ni, ptl_process_id_t target)
{
	return net_connect(net_of_ofi(ni), target);
}

static int ofi_send(struct ptl_ni *ni, const struct ptl_start *s)
{
	return net_send(net_of_ofi(ni), s);
}

static bool ofi_progress(struct ptl_ni *ni)
{
	return net_progress(net_of_ofi(ni));
}

static uint64_t ofi_arm(struct ptl_ni *ni)
{
	return net_arm(net_of_ofi(ni));
}

static void ofi_working(struct ptl_ni *ni, char *text, size_t len)
{
	const struct ofi *o = ofi_of(ni);

	snprintf(text, len, "libfabric's provider %s on %s, %s", o->info->fabric_attr->prov_name,
		 o->info->domain_attr->name, ofi_long_by(o->limits.read));
}

static const char *ofi_failed_over(struct ptl_ni *ni, ptl_process_id_t id)
{
	return net_failed_over(net_of_ofi(ni), id);
}

const struct nal_ops nal_ofi_ops = {
	.name = "ofi",
	.needs_secret = true,
	.unusable = ofi_unusable,
	.region_bytes = net_region_bytes,
	.open = ofi_open,
	.card = ofi_card,
	.join = ofi_join,
	.close = ofi_close,
	.distance = ofi_distance,
	.knows = ofi_knows,
	.connect = ofi_connect,
	.send = ofi_send,
	.progress = ofi_progress,
	.arm = ofi_arm,
	.failed_over = ofi_failed_over,
	.forked = ofi_forked,
	.working = ofi_working,
	.describe = ofi_describe,
	.list = ofi_list,
};
