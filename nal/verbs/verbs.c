/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The operations of the verbs NAL: opening and closing, and how ranks publish where they
 * listen.
 */
#include "nal/verbs/verbs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/cpu.h"
#include "base/log.h"

#define END_NS 1000000000ull /* for connections to end when an interface closes */

extern const struct nal_ops nal_verbs_ops;

static struct verbs *verbs_of(struct ptl_ni *ni)
{
	return ptl_net_of(ni, &nal_verbs_ops)->state;
}

static struct net *net_of_verbs(struct ptl_ni *ni)
{
	return &verbs_of(ni)->rdma.net;
}

static const char *verbs_unusable(void)
{
	const char *why = net_seal_unusable();

	/* a fork must leave pages that a device writes to the parent; newer kernels ensure it
	 * themselves */
	if (!why && ibv_is_fork_initialized() == IBV_FORK_DISABLED)
		ibv_fork_init();
	return why ? why : verbs_no_device();
}

static void verbs_describe(char *text, size_t len)
{
	verbs_list_devices(text, len);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void verbs_free(struct verbs *v)
{
	verbs_unprepare(v);
	net_ranks_free(&v->ranks);
	free(v);
}

/* As for UDP: outside a job with cards the pid is the port. */
static uint16_t port_of(const struct ptl_ni *ni, ptl_pid_t want)
{
	return ni->cards || want == PTL_PID_ANY || want > 65535 ? 0 : (uint16_t)want;
}

static int verbs_open(struct ptl_ni *ni, ptl_pid_t want)
{
	struct verbs *v = calloc(1, sizeof(*v));
	const char *why;
	bool taken;

	if (!v)
		return PTL_NO_SPACE;
	v->ni = ni;
	v->epoll_fd = -1;
	why = verbs_listen(v, port_of(ni, want), &taken);
	if (why) {
		why = taken ? "the port is taken" : why;
		/* with "auto" nobody asked for verbs: no warning, only the report says it */
		if (strcmp(base_config()->ptl_nal, "auto") != 0)
			base_warn(
				"verbs cannot listen on %s: %s; PTL_IFACE names another interface, "
				"PTL_VERBS_DEVICE a device",
				ni->address.ifname, why);
		ni->unopened = why;
		verbs_free(v);
		return taken ? PTL_PID_INVALID : PTL_FAIL;
	}
	if (want == PTL_PID_ANY && !ni->cards)
		ni->id.pid = (ptl_pid_t)v->own.port[0] << 8 | v->own.port[1];
	ptl_net_of(ni, &nal_verbs_ops)->state = v;
	return PTL_OK;
}

static void verbs_card(struct ptl_ni *ni, char *text, size_t len)
{
	verbs_address_format(&verbs_of(ni)->own, text, len);
}

/* ---- the job --------------------------------------------------------------------------------- */

static bool parse_verbs_card(const void *link, const char *card, size_t len, struct net_addr *addr)
{
	const struct verbs *v = link;
	struct verbs_address a;

	static_assert(sizeof(a) <= sizeof(*addr), "it fits");
	if (!verbs_address_parse(card, len, &a) || a.family != v->own.family)
		return false;
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &a, sizeof(a));
	return true;
}

static size_t own_address(void *link, void *to)
{
	const struct verbs *v = link;

	static_assert(sizeof(v->own) <= RDMA_ADDRESS_MAX, "it fits");
	memcpy(to, &v->own, sizeof(v->own));
	return sizeof(v->own);
}

/* Close all connections. Everything under way comes back first. */
static bool quit(void *link)
{
	struct verbs *v = link;
	uint64_t end = base_now_ns() + END_NS;

	v->closing = true;
	verbs_show_counts(v);
	for (struct verbs_conn *c = v->conns; c; c = c->next)
		if (c->state == VERBS_UP) {
			/* the last packets may still be under way */
			c->state = VERBS_LEAVING;
			c->until = end - END_NS / 2;
		} else if (c->state != VERBS_LEAVING) {
			verbs_break(v, c, "the interface closes");
		}
	v->restless = true;
	while (v->conns && base_now_ns() < end) {
		verbs_poll(v);
		if (v->conns)
			usleep(50);
	}
	while (v->conns)
		verbs_conn_free(v, v->conns);
	while (v->paths) {
		struct verbs_path *w = v->paths;

		v->paths = w->next;
		free(w);
	}
	return true;
}

static const struct rdma_link verbs_link = {
	.name = "verbs",
	.reach = verbs_reach,
	.leave = verbs_leave,
	.own_address = own_address,
	.send = verbs_send,
	.read = verbs_read,
	.reg = verbs_reg,
	.unreg = verbs_unreg,
	.poll = verbs_poll,
	.arm = verbs_arm,
	.quit = quit,
};

static const char *verbs_join(struct ptl_ni *ni, const struct nal_job *job)
{
	struct verbs *v = verbs_of(ni);
	struct rdma_limits limits;
	const char *why;

	if (!job->secret_len)
		return "there is no secret of the job's; the launcher's exchange gave none, and "
		       "PTL_KEY_FILE names no file";
	v->by_id = !job->card;
	if (job->card && !net_ranks_take(&v->ranks, job, nal_verbs_ops.name, parse_verbs_card, v))
		return "out of memory";
	verbs_key_make(&v->key, job->secret, job->secret_len);
	why = verbs_prepare(v);
	if (why)
		return why;
	verbs_limits(v, job->size, &limits);
	v->joined = true;
	return rdma_start(&v->rdma, ni, ptl_net_of(ni, &nal_verbs_ops), &verbs_link, v, &limits,
			  job, v->epoll_fd);
}

static void verbs_close(struct ptl_ni *ni)
{
	struct verbs *v = verbs_of(ni);

	if (v->joined)
		rdma_stop(&v->rdma);
	verbs_free(v);
	ptl_net_of(ni, &nal_verbs_ops)->state = NULL;
}

static void verbs_forked(struct ptl_ni *ni)
{
	struct verbs *v = verbs_of(ni);

	if (!v)
		return;
	close(v->channel->fd);
	if (!v->joined)
		return;
	close(v->epoll_fd);
	close(v->completions->fd);
	close(v->context->cmd_fd);
	close(v->context->async_fd);
	net_forked(&v->rdma.net);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static unsigned long verbs_distance(struct ptl_ni *ni, ptl_process_id_t id)
{
	if (!net_lives(net_of_verbs(ni), id))
		return ULONG_MAX;
	return id.nid == ni->id.nid ? 1 : 2;
}

static bool verbs_knows(struct ptl_ni *ni, ptl_process_id_t target)
{
	return net_knows(net_of_verbs(ni), target);
}

static bool verbs_connect(struct ptl_ni *ni, ptl_process_id_t target)
{
	return net_connect(net_of_verbs(ni), target);
}

static int verbs_start(struct ptl_ni *ni, const struct ptl_start *s)
{
	return net_send(net_of_verbs(ni), s);
}

static bool verbs_progress(struct ptl_ni *ni)
{
	return net_progress(net_of_verbs(ni));
}

static uint64_t verbs_sleep(struct ptl_ni *ni)
{
	return net_arm(net_of_verbs(ni));
}

static void verbs_working(struct ptl_ni *ni, char *text, size_t len)
{
	const struct verbs *v = verbs_of(ni);
	char gid[24] = "";

	if (v->gid >= 0)
		snprintf(gid, sizeof(gid), "GID %d, ", v->gid);
	snprintf(text, len, "device %s, port %u, %s%s, long messages %s",
		 ibv_get_device_name(v->context->device), v->port, gid,
		 v->iwarp ? "iWARP" : "InfiniBand or RoCE",
		 v->rdma.limits.read ? "read from the sender's memory" : "in pieces");
}

static const char *verbs_failed_over(struct ptl_ni *ni, ptl_process_id_t id)
{
	return net_failed_over(net_of_verbs(ni), id);
}

const struct nal_ops nal_verbs_ops = {
	.name = "verbs",
	.needs_secret = true,
	.unusable = verbs_unusable,
	.region_bytes = net_region_bytes,
	.open = verbs_open,
	.card = verbs_card,
	.join = verbs_join,
	.close = verbs_close,
	.distance = verbs_distance,
	.knows = verbs_knows,
	.connect = verbs_connect,
	.send = verbs_start,
	.progress = verbs_progress,
	.arm = verbs_sleep,
	.failed_over = verbs_failed_over,
	.forked = verbs_forked,
	.working = verbs_working,
	.describe = verbs_describe,
};
