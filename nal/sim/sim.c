/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The operations of the NAL over a simulated network: opening and closing, and where processes
 * are.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "nal/sim/sim_link.h"

extern const struct nal_ops nal_sim_ops;

static struct sim_link *link_of(struct ptl_ni *ni)
{
	return ptl_net_of(ni, &nal_sim_ops)->state;
}

static struct net *net_of_sim(struct ptl_ni *ni)
{
	return &link_of(ni)->net;
}

static const char *sim_unusable(void)
{
	const char *why = net_seal_unusable();
	struct sim_rules r;

	return why ? why : sim_rules_take(&r, base_config()->ptl_sim);
}

static void sim_describe(char *text, size_t len)
{
	struct sim_rules r;
	char rules[128] = "";

	if (!sim_rules_take(&r, base_config()->ptl_sim))
		sim_rules_describe(&r, rules, sizeof(rules));
	snprintf(text, len, "used only if PTL_NAL names it; %s; %s", rules,
		 base_config()->ptl_key_file ? "secret from PTL_KEY_FILE outside jobs"
					     : "outside jobs PTL_KEY_FILE is needed");
}

/* ---- opening --------------------------------------------------------------------------------- */

static int bind_sim(struct sim_link *l, uint16_t port)
{
	struct sockaddr_in s = sim_at(port);
	socklen_t len = sizeof(s);

	if (bind(l->fd, (struct sockaddr *)&s, len) < 0 ||
	    getsockname(l->fd, (struct sockaddr *)&s, &len) < 0)
		return -errno;
	l->port = ntohs(s.sin_port);
	return 0;
}

/* Outside a job with cards the pid gives the port, so that others find us. */
static int take_sim_port(struct sim_link *l, struct ptl_ni *ni, ptl_pid_t want)
{
	uint16_t port = ni->cards || want == PTL_PID_ANY ? 0 : net_port_of(want);
	int err = bind_sim(l, port);

	if (err == -EADDRINUSE) {
		base_warn("port %u of the simulated network, which is that of pid %u, is taken by "
			  "another process "
			  "of this host; ask for another pid",
			  port, want);
		return PTL_PID_INVALID;
	}
	if (err < 0) {
		base_warn("cannot bind the simulated network's socket: %s; is the loopback "
			  "interface up?",
			  strerror(-err));
		return PTL_FAIL;
	}
	if (want == PTL_PID_ANY && !ni->cards)
		ni->id.pid = l->port;
	return PTL_OK;
}

static void close_all(const struct sim_link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->timer >= 0)
		close(l->timer);
	if (l->both >= 0)
		close(l->both);
}

static void sim_free(struct sim_link *l)
{
	sim_link_end(l);
	close_all(l);
	net_ranks_free(&l->ranks);
	free(l->arrived);
	free(l);
}

static int sim_open(struct ptl_ni *ni, ptl_pid_t want)
{
	struct sim_link *l = calloc(1, sizeof(*l));
	const char *why;
	int err;

	if (!l)
		return PTL_NO_SPACE;
	l->own_nid = ni->id.nid;
	l->arrived = malloc(SIM_LONGEST);
	l->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	err = sim_link_begin(l);
	why = sim_rules_take(&l->rules, base_config()->ptl_sim);
	if (why)
		base_warn("%s", why);
	if (why || err < 0 || !l->arrived) {
		sim_free(l);
		return why ? PTL_FAIL : PTL_NO_SPACE;
	}
	/* the simulated network's own queues are to be the shortest */
	net_widen(l->fd, SO_RCVBUFFORCE, SO_RCVBUF);
	net_widen(l->fd, SO_SNDBUFFORCE, SO_SNDBUF);
	err = take_sim_port(l, ni, want);
	if (err != PTL_OK) {
		sim_free(l);
		return err;
	}
	ptl_net_of(ni, &nal_sim_ops)->state = l;
	return PTL_OK;
}

/* ---- the job --------------------------------------------------------------------------------- */

static void sim_card(struct ptl_ni *ni, char *text, size_t len)
{
	snprintf(text, len, "%u", link_of(ni)->port);
}

static void address_of_port(uint16_t port, struct net_addr *addr)
{
	*addr = (struct net_addr){ { port, 0, 0 } };
}

static bool parse_sim_card(const void *link, const char *card, size_t len, struct net_addr *addr)
{
	uint16_t port = net_port_parse(card, len);

	(void)link;
	address_of_port(port, addr);
	return port;
}

static bool address(void *link, ptl_process_id_t id, struct net_addr *addr)
{
	const struct sim_link *l = link;
	const struct net_addr *found = net_ranks_find(&l->ranks, id);
	uint16_t port;

	if (found) {
		*addr = *found;
		return true;
	}
	if (!l->by_id || id.nid != l->own_nid)
		return false;
	port = net_port_of(id.pid);
	address_of_port(port, addr);
	return port;
}

static const struct net_link sim_net_link = {
	.name = "sim",
	.address = address,
	.room = sim_room,
	.transmit = sim_transmit,
	.flush = sim_flush,
	.receive = sim_receive,
};

static const char *sim_join(struct ptl_ni *ni, const struct nal_job *job)
{
	struct sim_link *l = link_of(ni);

	l->by_id = !job->card;
	if (job->card && !net_ranks_take(&l->ranks, job, nal_sim_ops.name, parse_sim_card, l))
		return "out of memory";
	/* each rank has its own random sequence, the same in each run */
	l->random = l->rules.seed;
	l->random = sim_draw(&l->random) + (job->size ? job->own : 0);
	l->net.ni = ni;
	l->net.slot = ptl_net_of(ni, &nal_sim_ops);
	l->net.link = &sim_net_link;
	l->net.link_state = l;
	l->net.ranks = &l->ranks;
	return net_start(&l->net, job, l->both, l->rules.mtu, net_window(l->fd));
}

static void sim_close(struct ptl_ni *ni)
{
	struct sim_link *l = link_of(ni);

	if (l->net.ni)
		net_stop(&l->net);
	sim_free(l);
	ptl_net_of(ni, &nal_sim_ops)->state = NULL;
}

static void sim_forked(struct ptl_ni *ni)
{
	struct sim_link *l = link_of(ni);

	if (!l)
		return;
	close_all(l);
	if (l->net.ni)
		net_forked(&l->net);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static unsigned long sim_distance(struct ptl_ni *ni, ptl_process_id_t id)
{
	return net_lives(net_of_sim(ni), id) ? 1 : ULONG_MAX;
}

static bool sim_knows(struct ptl_ni *ni, ptl_process_id_t target)
{
	return net_knows(net_of_sim(ni), target);
}

static bool sim_connect(struct ptl_ni *ni, ptl_process_id_t target)
{
	return net_connect(net_of_sim(ni), target);
}

static int sim_send(struct ptl_ni *ni, const struct ptl_start *s)
{
	return net_send(net_of_sim(ni), s);
}

static bool sim_progress(struct ptl_ni *ni)
{
	return net_progress(net_of_sim(ni));
}

static uint64_t sim_arm(struct ptl_ni *ni)
{
	return net_arm(net_of_sim(ni));
}

static const char *sim_failed_over(struct ptl_ni *ni, ptl_process_id_t id)
{
	return net_failed_over(net_of_sim(ni), id);
}

const struct nal_ops nal_sim_ops = {
	.name = "sim",
	.needs_secret = true,
	.by_name = true,
	.unusable = sim_unusable,
	.region_bytes = net_region_bytes,
	.open = sim_open,
	.card = sim_card,
	.join = sim_join,
	.close = sim_close,
	.distance = sim_distance,
	.knows = sim_knows,
	.connect = sim_connect,
	.send = sim_send,
	.progress = sim_progress,
	.arm = sim_arm,
	.failed_over = sim_failed_over,
	.forked = sim_forked,
	.describe = sim_describe,
};
