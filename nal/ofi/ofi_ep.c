/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The endpoint and what belongs to it: fabric, domain, completion queue, address vector, and
 * the receive buffers, which all peers share.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "nal/ofi/ofi.h"

/* most providers send this much without asking the receiver first; so do we */
#define PACKET        16384u
#define CQ_SIZE       4096u
#define MULTI_BUFFERS 4u
#define MULTI_BYTES   (512u << 10)
#define LOCAL_BYTES   (64u << 10)  /* within the host: all of them fit into a cache */
#define LOCAL_CQ      1024u        /* this queue, too */
#define LOCAL_QUEUE   (512u << 10) /* of the provider's shared memory, from its beginning */
#define ONE_BUFFERS   256u
#define CREDIT        64u
#define READ_MOST     (4u << 20)

/* Open the address vector: a map if the provider prefers that or has no table. In both cases we
 * keep what it returns for an address. */
static int open_av(struct ofi *o)
{
	bool map = o->info->domain_attr->av_type == FI_AV_MAP;
	struct fi_av_attr attr = { .type = map ? FI_AV_MAP : FI_AV_TABLE };
	int err = fi_av_open(o->domain, &attr, &o->av, o);

	if (err == 0)
		return 0;
	attr = (struct fi_av_attr){ .type = map ? FI_AV_TABLE : FI_AV_MAP };
	return fi_av_open(o->domain, &attr, &o->av, o) == 0 ? 0 : err;
}

static int open_cq(struct ofi *o)
{
	struct fi_cq_attr attr = { .size = ofi_is_local(o->info) ? LOCAL_CQ : CQ_SIZE,
				   .format = FI_CQ_FORMAT_DATA,
				   .wait_obj = FI_WAIT_FD };

	o->fd = -1;
	if (fi_cq_open(o->domain, &attr, &o->cq, o) == 0) {
		if (fi_control(&o->cq->fid, FI_GETWAIT, &o->fd) == 0 && o->fd >= 0)
			return 0;
		fi_close(&o->cq->fid);
	}
	/* the kernel cannot wait for this provider: it is polled now and then */
	o->fd = -1;
	o->cq = NULL;
	attr.wait_obj = FI_WAIT_NONE;
	return fi_cq_open(o->domain, &attr, &o->cq, o);
}

/* Set how many bytes of a buffer must be left for a packet. */
static int set_least(struct ofi *o, const char **what)
{
	size_t least = o->limits.packet;

	*what = "buffers for many packets (fi_setopt)";
	return o->multi ? fi_setopt(&o->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
				    sizeof(least))
			: 0;
}

static int enable(struct ofi *o, const char **what)
{
	bool local = ofi_is_local(o->info);
	int err = 0;

	/* libfabric wants options before the endpoint is enabled, but the shm provider of 1.17
	 * crashes on that */
	if (!local)
		err = set_least(o, what);
	if (err < 0)
		return err;
	*what = "an endpoint (fi_enable)";
	err = fi_enable(o->ep);
	if (err < 0 || !local)
		return err;
	return set_least(o, what);
}

static int open_ep(struct ofi *o, const char **what)
{
	size_t len = sizeof(o->own.bytes);
	int err;

	*what = "an endpoint (fi_endpoint)";
	err = fi_endpoint(o->domain, o->info, &o->ep, o);
	if (err < 0)
		return err;
	*what = "an endpoint with a queue (fi_ep_bind)";
	err = fi_ep_bind(o->ep, &o->av->fid, 0);
	if (err == 0)
		err = fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV);
	if (err < 0)
		return err;
	err = enable(o, what);
	if (err < 0)
		return err;
	*what = "its address (fi_getname)";
	err = fi_getname(&o->ep->fid, o->own.bytes, &len);
	o->own.len = len;
	return err;
}

/*
 * Populate the provider's queue of incoming packets. It is near the beginning of the shared
 * memory that has our name within the host. The kernel allocates a page for each sixteen
 * packets when the first of them is written, and that takes longer than the packets. So it is
 * done now, if there is room for many such queues. If anything fails, the provider does it.
 */
static void fill_queue(const struct ofi *o)
{
	const char *own = (const char *)o->own.bytes, *name = strstr(own, "://");
	int fd = shm_open(name ? name + 3 : own, O_RDWR | O_CLOEXEC, 0);
	struct statvfs room;
	void *at;

	if (fd < 0)
		return;
	if (fstatvfs(fd, &room) < 0 || room.f_bavail * room.f_frsize < 256ull * LOCAL_QUEUE) {
		close(fd);
		return;
	}
	at = mmap(NULL, LOCAL_QUEUE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (at != MAP_FAILED)
		munmap(at, LOCAL_QUEUE);
	close(fd);
}

static int make_recv_buffers(struct ofi *o)
{
	/* since 1.16 reliable datagrams mix up messages of several peers in one buffer
	 * (libfabric's issue 8212) */
	o->multi = o->info->caps & FI_MULTI_RECV && o->info->ep_attr->protocol != FI_PROTO_RXD;
	o->recvs = o->multi ? MULTI_BUFFERS : ONE_BUFFERS;
	o->recv_size = !o->multi               ? o->limits.packet
		       : ofi_is_local(o->info) ? LOCAL_BYTES
					       : MULTI_BYTES;
	o->recv = calloc(o->recvs, sizeof(*o->recv));
	o->recv_bytes = aligned_alloc(4096, (o->recvs * o->recv_size + 4095) & ~(size_t)4095);
	if (!o->recv || !o->recv_bytes)
		return -ENOMEM;
	/* a page fault takes longer than the messages in the page */
	if (ofi_is_local(o->info))
		memset(o->recv_bytes, 0, o->recvs * o->recv_size);
	for (uint32_t i = 0; i < o->recvs; i++) {
		o->recv[i].bytes = o->recv_bytes + i * o->recv_size;
		o->recv[i].word[RDMA_LINK_WORDS - 1] = OFI_RECV;
		o->recv[i].next = o->idle;
		o->idle = &o->recv[i];
		o->recv[i].idle = true;
	}
	return 0;
}

int ofi_reg(struct ofi *o, void *base, size_t len, uint64_t access, uint64_t key,
	    struct fid_mr **mr)
{
	struct fid_mr *fid;
	int err = fi_mr_reg(o->domain, base, len, access, 0, key, 0, &fid, NULL);

	if (err < 0)
		return err;
	if (o->info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		err = fi_mr_bind(fid, &o->ep->fid, 0);
		if (err == 0)
			err = fi_mr_enable(fid);
	}
	if (err < 0)
		fi_close(&fid->fid);
	else
		*mr = fid;
	return err;
}

static int post_recv_buffer(struct ofi *o, struct ofi_recv *r)
{
	struct iovec iov = { r->bytes, o->recv_size };
	void *desc = o->recv_mr ? fi_mr_desc(o->recv_mr) : NULL;
	struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.context = r->word,
	};

	return (int)fi_recvmsg(o->ep, &msg, o->multi ? FI_MULTI_RECV : 0);
}

int ofi_post(struct ofi *o)
{
	int err = -FI_EAGAIN, n = 0;

	while (o->idle && (err = post_recv_buffer(o, o->idle)) == 0) {
		o->idle->idle = false;
		o->idle = o->idle->next;
		n++;
	}
	return n || err == -FI_EAGAIN ? 0 : err;
}

/* Post the first buffers: packets can arrive from now on. */
static int post_first(struct ofi *o, const char **what)
{
	int err = 0;

	*what = "registered memory for packets (fi_mr_reg)";
	if (o->limits.local_mr)
		err = ofi_reg(o, o->recv_bytes, o->recvs * o->recv_size, FI_RECV, ++o->key,
			      &o->recv_mr);
	if (err < 0)
		return err;
	/* a provider that wants memory allocated when it is registered locks it */
	if (o->info->domain_attr->mr_mode & FI_MR_ALLOCATED)
		rdma_warn_of_lock_limit(o->info->fabric_attr->prov_name);
	*what = "room for packets to come (fi_recvmsg)";
	return ofi_post(o);
}

static void set_limits(struct ofi *o)
{
	const struct fi_info *i = o->info;
	uint64_t most = i->ep_attr->max_msg_size, packet = most < PACKET ? most : PACKET;

	/* a packet must fit in one datagram: reliable datagrams (1.17) lose some longer ones
	 * when the host is busy, and wrongly report that buffers were too short */
	if (i->ep_attr->protocol == FI_PROTO_RXD && i->tx_attr->inject_size < packet)
		packet = i->tx_attr->inject_size;
	/* the receiver reads a longer one, which takes a system call */
	if (ofi_is_local(i) && i->tx_attr->inject_size >= RDMA_PACKET_MIN &&
	    i->tx_attr->inject_size < packet)
		packet = i->tx_attr->inject_size;
	o->limits = (struct rdma_limits){
		.packet = (uint32_t)packet,
		.read = ofi_reads_well(i) ? (most < READ_MOST ? most : READ_MOST) : 0,
		.local_mr = i->domain_attr->mr_mode & FI_MR_LOCAL,
		.credit = CREDIT,
		/* injected packets have no completion, and an endpoint that closes may still
		 * have some; the memory of small packets is not registered */
		.ends_last = !(i->domain_attr->mr_mode & FI_MR_LOCAL),
		/* FI_ORDER_SAS orders only which buffers messages go to. With some providers a
		 * message of several fragments completes later than a short one behind it. A
		 * reliable datagram has one fragment: a missing one was lost. */
		.any_order = i->ep_attr->protocol != FI_PROTO_RXD,
		/* reliable datagrams would be too many at once for few buffers */
		.eager = i->ep_attr->protocol == FI_PROTO_RXD ? 0 : PACKET,
	};
	o->limits.copied = i->tx_attr->inject_size < o->limits.packet
				   ? (uint32_t)i->tx_attr->inject_size
				   : o->limits.packet;
	/* within the host only our peers can send to us with these providers, whatever names
	 * others give their endpoints */
	if (ofi_is_in_host(i) && i->domain_attr->cq_data_size >= sizeof(uint64_t))
		o->limits.frame = o->limits.packet;
}

int ofi_ep_open(struct ofi *o, const char **what)
{
	int err;

	set_limits(o);
	*what = "packets long enough";
	if (o->limits.packet < RDMA_PACKET_MIN)
		return -EMSGSIZE;
	*what = "the fabric (fi_fabric)";
	err = o->lib->fabric(o->info->fabric_attr, &o->fabric, o);
	if (err < 0)
		return err;
	*what = "a domain (fi_domain)";
	err = fi_domain(o->fabric, o->info, &o->domain, o);
	if (err < 0)
		return err;
	*what = "an address vector (fi_av_open)";
	err = open_av(o);
	if (err < 0)
		return err;
	*what = "a completion queue (fi_cq_open)";
	err = open_cq(o);
	if (err < 0)
		return err;
	*what = "memory for packets";
	err = make_recv_buffers(o);
	if (err < 0)
		return err;
	err = open_ep(o, what);
	if (err < 0)
		return err;
	if (ofi_is_local(o->info))
		fill_queue(o);
	return post_first(o, what);
}

static void close_fid(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

static void unreg_buffers(struct ofi *o)
{
	close_fid(o->recv_mr ? &o->recv_mr->fid : NULL);
	o->recv_mr = NULL;
}

bool ofi_ep_close(struct ofi *o)
{
	/* an endpoint that memory is bound to may have to stay until it is unregistered */
	if (o->ep && fi_close(&o->ep->fid) == -FI_EBUSY) {
		unreg_buffers(o);
		return false;
	}
	close_fid(o->cq ? &o->cq->fid : NULL);
	close_fid(o->av ? &o->av->fid : NULL);
	o->ep = NULL;
	o->cq = NULL;
	o->av = NULL;
	return true;
}

void ofi_domain_close(struct ofi *o)
{
	unreg_buffers(o);
	if (!ofi_ep_close(o))
		return;
	close_fid(o->domain ? &o->domain->fid : NULL);
	close_fid(o->fabric ? &o->fabric->fid : NULL);
	free(o->recv);
	free(o->recv_bytes);
}
