/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which device and port, and what all connections of an interface share. The connection manager
 * knows devices by the addresses of their network interfaces, also InfiniBand's. So our
 * interface's address gives the device. Otherwise another address of this host is used: that of
 * the device the user names, or of the first device.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "nal/verbs/verbs.h"

#define BACKLOG      256
#define FEWEST       32u /* fewest receive buffers that suffice */
#define READS_MOST   16
#define CREDIT_MOST  64u
#define CREDIT_LEAST 8u

/* ---- devices --------------------------------------------------------------------------------- */

const char *verbs_no_device(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list)
		ibv_free_device_list(list);
	if (n)
		return access("/dev/infiniband/rdma_cm", R_OK | W_OK) == 0
			       ? NULL
			       : "there is no /dev/infiniband/rdma_cm to use: load the module "
				 "rdma_ucm";
	return "there is no RDMA device that libibverbs knows";
}

void verbs_list_devices(char *text, size_t len)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	size_t used = 0;

	*text = '\0';
	for (int i = 0; i < n && used < len; i++)
		used += (size_t)snprintf(text + used, len - used, "%s%s (%s)", i ? ", " : "",
					 ibv_get_device_name(list[i]),
					 list[i]->transport_type == IBV_TRANSPORT_IWARP
						 ? "iWARP"
						 : "InfiniBand or RoCE");
	if (list)
		ibv_free_device_list(list);
}

/* Is it the device, and port, of PTL_VERBS_DEVICE? */
static bool is_named(const struct rdma_cm_id *id)
{
	const char *wanted = base_config()->ptl_verbs_device,
		   *name = ibv_get_device_name(id->verbs->device);
	size_t len = strlen(name);

	if (!wanted)
		return true;
	if (strncmp(wanted, name, len) != 0)
		return false;
	return !wanted[len] || (wanted[len] == ':' && atoi(wanted + len + 1) == id->port_num);
}

/* Try an address of this host. Returns NULL, or the reason of the failure. */
static const char *try_address(struct verbs *v, const struct sockaddr *address, uint16_t port,
			       bool *taken)
{
	static const uint8_t no_port[2];
	struct sockaddr_storage at;
	const char *why = NULL;
	struct rdma_cm_id *id;

	if (!verbs_address_from(address, &v->own))
		return "it has no IP address";
	v->own.port[0] = (uint8_t)(port >> 8);
	v->own.port[1] = (uint8_t)port;
	verbs_address_to(&v->own, v->scope, &at);
	if (rdma_create_id(v->channel, &id, NULL, RDMA_PS_TCP) != 0)
		return "rdma_create_id failed";
	if (rdma_bind_addr(id, (struct sockaddr *)&at) != 0) {
		*taken = errno == EADDRINUSE;
		why = "no RDMA device has the address";
	} else if (!id->verbs) {
		why = "no RDMA device has the address";
	} else if (!is_named(id)) {
		why = "it is not an address of the device PTL_VERBS_DEVICE names";
	} else if (rdma_listen(id, BACKLOG) != 0) {
		*taken = errno == EADDRINUSE;
		why = "rdma_listen failed";
	} else if (!verbs_address_from(rdma_get_local_addr(id), &v->own) ||
		   !memcmp(v->own.port, no_port, sizeof(no_port))) {
		why = "it has no port";
	}
	if (why) {
		rdma_destroy_id(id);
		return why;
	}
	v->listener = id;
	return NULL;
}

static uint32_t scope_of(const struct sockaddr *a)
{
	struct sockaddr_in6 in6;

	if (a->sa_family != AF_INET6)
		return 0;
	memcpy(&in6, a, sizeof(in6));
	return in6.sin6_scope_id;
}

/* Try the other addresses of this host. */
static const char *try_others(struct verbs *v, const char *why, uint16_t port, bool *taken)
{
	struct ifaddrs *all = NULL;

	if (getifaddrs(&all) != 0)
		return why;
	for (struct ifaddrs *i = all; i && why && !*taken; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != v->ni->address.family ||
		    !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK)
			continue;
		v->scope = scope_of(i->ifa_addr);
		why = try_address(v, i->ifa_addr, port, taken);
	}
	freeifaddrs(all);
	return why;
}

/* No device has an address of the loopback network. A process that wants to stay on this host
 * may use any address by which a device talks to itself. Other such processes have the same
 * node id, and look for it there. */
static bool stays_here(const struct ptl_address *a)
{
	static const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;

	return a->family == AF_INET ? a->bytes[0] == 127
				    : !memcmp(a->bytes, &loopback, sizeof(loopback));
}

const char *verbs_listen(struct verbs *v, uint16_t port, bool *taken)
{
	const struct ptl_address *a = &v->ni->address;
	struct verbs_address own = { .family = a->family == AF_INET6 ? 6 : 4 };
	struct sockaddr_storage s;
	const char *why;

	*taken = false;
	v->channel = rdma_create_event_channel();
	if (!v->channel)
		return "rdma_create_event_channel failed";
	if (fcntl(v->channel->fd, F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(v->channel->fd, F_SETFD, FD_CLOEXEC) < 0)
		return "fcntl failed";
	v->scope = a->scope;
	memcpy(own.bytes, a->bytes, a->family == AF_INET6 ? 16 : 4);
	verbs_address_to(&own, a->scope, &s);
	why = try_address(v, (struct sockaddr *)&s, port, taken);
	/* outside a job others look for us where our id says; a user who names an interface
	 * wants that one */
	if (why && !*taken && (stays_here(a) || (v->ni->cards && !base_config_is_set("PTL_IFACE"))))
		why = try_others(v, why, port, taken);
	return why;
}

/* ---- locked memory --------------------------------------------------------------------------- */

void verbs_say_locked(size_t len, int err)
{
	uint64_t limit = rdma_may_lock();

	if (err == ENOMEM && limit != UINT64_MAX)
		base_warn(
			"verbs: %zu KiB of memory cannot be registered: the limit of locked memory "
			"is %llu KiB; until it is higher such messages are copied in "
			"pieces; " RDMA_RAISE_LOCK,
			len / 1024, (unsigned long long)limit / 1024);
	else
		base_warn("verbs: %zu KiB of memory cannot be registered: %s; such messages are "
			  "copied in pieces",
			  len / 1024, strerror(err));
}

/* ---- what connections share ------------------------------------------------------------------ */

static bool make_device_buffers(struct verbs *v, uint32_t n)
{
	size_t len = (size_t)n * VERBS_PACKET;

	v->buffer = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (v->buffer == MAP_FAILED) {
		v->buffer = NULL;
		return false;
	}
	v->buffer_mr = ibv_reg_mr(v->pd, v->buffer, len, IBV_ACCESS_LOCAL_WRITE);
	if (v->buffer_mr) {
		v->buffers = n;
		return true;
	}
	munmap(v->buffer, len);
	v->buffer = NULL;
	return false;
}

/* Get as many receive buffers as were asked for, or as can be had. */
static const char *get_buffers(struct verbs *v, uint32_t most)
{
	uint32_t wanted = (uint32_t)base_config()->ptl_verbs_buffers, n;

	wanted = wanted < most ? wanted : most;
	/* outgoing packets and bodies need registered memory, too */
	while (wanted / 2 >= FEWEST && (uint64_t)wanted * VERBS_PACKET > rdma_may_lock() / 4 * 3)
		wanted /= 2;
	for (n = wanted; n >= FEWEST && !make_device_buffers(v, n); n /= 2)
		;
	if (!v->buffers)
		return "no receive buffers can be registered: the limit of locked memory (ulimit "
		       "-l) is too "
		       "low";
	rdma_warn_of_lock_limit("verbs");
	v->spare = malloc(v->buffers * sizeof(*v->spare));
	if (!v->spare)
		return "out of memory";
	for (uint32_t i = 0; i < v->buffers; i++)
		v->spare[v->nspare++] = i;
	return NULL;
}

struct ibv_qp *verbs_new_qp(const struct verbs *v, uint32_t copied)
{
	struct ibv_qp_init_attr a = {
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.srq = v->srq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = VERBS_DEPTH, .max_send_sge = 1, .max_inline_data = copied },
	};

	return ibv_create_qp(v->pd, &a);
}

/* How many inline bytes a work request of this device can carry. */
static uint32_t find_inline(const struct verbs *v)
{
	for (uint32_t n = VERBS_INLINE; n; n /= 2) {
		struct ibv_qp *qp = verbs_new_qp(v, n);

		if (!qp)
			continue;
		ibv_destroy_qp(qp);
		return n;
	}
	return 0;
}

static const char *make_queues(struct verbs *v, const struct ibv_device_attr *d)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = v->buffers, .max_sge = 1 } };

	v->completions = ibv_create_comp_channel(v->context);
	if (!v->completions || fcntl(v->completions->fd, F_SETFL, O_NONBLOCK) < 0)
		return "no completion channel";
	/* there are never more completions than the queue has room for */
	if ((uint32_t)d->max_cqe < v->buffers + VERBS_BUSY_ALL)
		return "its completion queues are too short";
	v->cq = ibv_create_cq(v->context, (int)(v->buffers + VERBS_BUSY_ALL), NULL, v->completions,
			      0);
	if (!v->cq)
		return "no completion queue";
	v->srq = ibv_create_srq(v->pd, &srq);
	if (!v->srq)
		return "no shared receive queue";
	v->copied = find_inline(v);
	if (v->copied < sizeof(struct verbs_wire_word))
		return "it sends nothing inline";
	return NULL;
}

static bool watch(const struct verbs *v, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };

	return epoll_ctl(v->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

const char *verbs_prepare(struct verbs *v)
{
	struct ibv_device_attr d;
	const char *why;

	v->context = v->listener->verbs;
	v->port = v->listener->port_num;
	v->iwarp = v->context->device->transport_type == IBV_TRANSPORT_IWARP;
	v->gid = -1;
	if (ibv_query_device(v->context, &d) != 0)
		return "ibv_query_device failed";
	v->reads = (uint32_t)(d.max_qp_init_rd_atom < d.max_qp_rd_atom ? d.max_qp_init_rd_atom
								       : d.max_qp_rd_atom);
	v->reads = v->reads < READS_MOST ? v->reads : READS_MOST;
	v->pd = ibv_alloc_pd(v->context);
	if (!v->pd)
		return "no protection domain";
	why = get_buffers(v, (uint32_t)d.max_srq_wr);
	if (!why)
		why = make_queues(v, &d);
	if (why)
		return why;
	verbs_restock(v, 1);
	if (v->nspare)
		return "the shared receive queue takes no buffers";
	if (fcntl(v->context->async_fd, F_SETFL, O_NONBLOCK) < 0)
		return "the device's events cannot be read";
	v->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (v->epoll_fd < 0 || !watch(v, v->channel->fd) || !watch(v, v->completions->fd) ||
	    !watch(v, v->context->async_fd))
		return "no epoll descriptor";
	return NULL;
}

/* The length of one packet of the fabric. Paths to some peers may carry less: there a message
 * meant to fit takes two packets, as without this optimization. 0: packets carry no immediate
 * data. */
static uint32_t frame(const struct verbs *v)
{
	struct ibv_port_attr port;

	if (v->iwarp || ibv_query_port(v->context, v->port, &port) != 0)
		return 0;
	return 128u << verbs_mtu(port.active_mtu, base_config()->ptl_verbs_mtu);
}

void verbs_limits(const struct verbs *v, uint32_t ranks, struct rdma_limits *l)
{
	uint32_t peers = ranks > 5 ? ranks - 1 : 4, credit = 2 * v->buffers / peers;

	credit = credit < CREDIT_LEAST ? CREDIT_LEAST : credit;
	*l = (struct rdma_limits){
		.packet = VERBS_PACKET,
		.copied = v->copied,
		.credit = credit < CREDIT_MOST ? credit : CREDIT_MOST,
		.read = v->reads ? VERBS_READ : 0,
		.reads = v->reads,
		.frame = frame(v),
		.local_mr = true,
	};
}

void verbs_unprepare(struct verbs *v)
{
	if (v->epoll_fd >= 0)
		close(v->epoll_fd);
	if (v->srq)
		ibv_destroy_srq(v->srq);
	if (v->cq)
		ibv_destroy_cq(v->cq);
	if (v->completions)
		ibv_destroy_comp_channel(v->completions);
	if (v->buffer_mr)
		ibv_dereg_mr(v->buffer_mr);
	if (v->buffer)
		munmap(v->buffer, (size_t)v->buffers * VERBS_PACKET);
	if (v->pd)
		ibv_dealloc_pd(v->pd);
	if (v->listener)
		rdma_destroy_id(v->listener);
	if (v->channel)
		rdma_destroy_event_channel(v->channel);
	free(v->spare);
	free(v->conn);
}
