/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets, reads, memory and completions. The context of an operation lies in the operation's
 * record, large enough for providers that keep data there. The word behind it holds its kind
 * and path.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"
#include "nal/ofi/ofi.h"
#include "portals/engine/debug.h"

#define BATCH     16u
#define POLL_MOST 64u
#define POLLS     4 /* polls in one call of a process that waits */
/* Time between polls of a provider that cannot be waited for. It doubles after each poll that
 * finds nothing: one costs about 40 microseconds of a processor that another rank may need. */
#define POLL_NS      100000u
#define POLL_MOST_NS 500000u
#define KEY_TRIES    8

static_assert(sizeof(struct fi_context2) <= (RDMA_LINK_WORDS - 1) * sizeof(uint64_t),
	      "it fits before the last word");

/* Remember for link_error how `call` failed. Returns its error. */
static int call_refused(struct ofi *o, const char *call, ssize_t err)
{
	if (err == -FI_EAGAIN)
		return -EAGAIN;
	snprintf(o->refused, sizeof(o->refused), "%s of provider %s: %s", call,
		 o->info->fabric_attr->prov_name, o->lib->strerror((int)-err));
	return (int)err;
}

static const char *link_error(void *link, int err)
{
	const struct ofi *o = link;

	(void)err;
	return o->refused;
}

/* The last word of a context. */
static uint64_t word_of(const struct ofi_path *w, enum ofi_kind kind)
{
	return (uintptr_t)w | kind;
}

/* Handle the result of a call that starts an operation with a context. */
static int begun(struct ofi *o, struct ofi_path *w, const char *call, ssize_t err)
{
	if (err)
		return call_refused(o, call, err);
	w->under_way++;
	return 0;
}

static int link_send(void *link, void *path, struct rdma_packet *k)
{
	struct ofi_path *w = path;
	struct ofi *o = link;
	ssize_t err;

	if (k->len <= o->limits.copied && !(k->last && o->limits.ends_last)) {
		err = k->headerless ? fi_injectdata(o->ep, k->bytes, k->len, k->word, w->addr)
				    : fi_inject(o->ep, k->bytes, k->len, w->addr);
		return err ? call_refused(o, "fi_inject", err) : 0;
	}
	k->link_word[RDMA_LINK_WORDS - 1] = word_of(w, OFI_PACKET);
	err = k->headerless ? fi_senddata(o->ep, k->bytes, k->len, k->mr ? k->mr->local : NULL,
					  k->word, w->addr, k->link_word)
			    : fi_send(o->ep, k->bytes, k->len, k->mr ? k->mr->local : NULL, w->addr,
				      k->link_word);
	return begun(o, w, "fi_send", err);
}

static int link_read(void *link, void *path, struct rdma_read *r)
{
	struct ofi_path *w = path;
	struct ofi *o = link;
	ssize_t err;

	r->link_word[RDMA_LINK_WORDS - 1] = word_of(w, OFI_READ);
	o->reads = true;
	err = fi_read(o->ep, r->to, r->len, r->mr ? r->mr->local : NULL, w->addr, r->from, r->key,
		      r->link_word);
	return begun(o, w, "fi_read", err);
}

static size_t own_address(void *link, void *to)
{
	const struct ofi *o = link;

	memcpy(to, o->own.bytes, o->own.len);
	return o->own.len;
}

/* ---- memory ---------------------------------------------------------------------------------- */

const char *ofi_remedy(int err)
{
	return err == -ENOMEM && rdma_may_lock() != UINT64_MAX ? RDMA_RAISE_LOCK "; " : "";
}

static void say_why(struct ofi *o, size_t len, int err)
{
	if (o->said_memlock)
		return;
	o->said_memlock = true;
	base_warn(
		"libfabric's provider %s cannot register %zu bytes: %s; %slong messages are copied",
		o->info->fabric_attr->prov_name, len, o->lib->strerror(-err), ofi_remedy(err));
}

/* A key that nobody can guess, for providers that leave the choice to us. */
static uint64_t next_key(struct ofi *o)
{
	size_t bytes = o->info->domain_attr->mr_key_size;
	uint64_t key = ++o->key;

	if (o->info->domain_attr->mr_mode & FI_MR_PROV_KEY)
		return 0;
	if (bytes >= sizeof(key) && base_random(&key, sizeof(key)))
		return key;
	return bytes >= sizeof(key) ? key : key & ((1ull << 8 * bytes) - 1);
}

static int link_reg(void *link, void *base, size_t len, enum rdma_use use, bool quietly,
		    struct rdma_mr *mr)
{
	uint64_t access = use == RDMA_REMOTE ? FI_REMOTE_READ : FI_SEND | FI_RECV | FI_READ;
	struct ofi *o = link;
	struct fid_mr *fid;
	int err = -FI_ENOKEY;

	for (int k = 0; k < KEY_TRIES && err == -FI_ENOKEY; k++)
		err = ofi_reg(o, base, len, access, next_key(o), &fid);
	if (err < 0) {
		if (!quietly)
			say_why(o, len, err);
		return err;
	}
	mr->handle = fid;
	mr->local = fi_mr_desc(fid);
	mr->key = fi_mr_key(fid);
	mr->addr = o->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)base : 0;
	return 0;
}

static void link_unreg(void *link, struct rdma_mr *mr)
{
	struct fid_mr *fid = mr->handle;

	(void)link;
	fi_close(&fid->fid);
}

/* ---- completions ----------------------------------------------------------------------------- */

static enum ofi_kind context_kind(const uint64_t *op_context)
{
	return op_context[RDMA_LINK_WORDS - 1] & (OFI_KINDS - 1);
}

static struct ofi_path *path_of(const uint64_t *op_context)
{
	return (void *)(uintptr_t)(op_context[RDMA_LINK_WORDS - 1] & ~(uint64_t)(OFI_KINDS - 1));
}

static struct rdma_packet *packet_of_context(void *op_context)
{
	return (void *)((char *)op_context - offsetof(struct rdma_packet, link_word));
}

static struct rdma_read *read_of(void *op_context)
{
	return (void *)((char *)op_context - offsetof(struct rdma_read, link_word));
}

/* A receive buffer has completed. Queue it for posting if the provider is done with it. */
static void received(struct ofi *o, struct ofi_recv *r, uint64_t flags)
{
	if (r->idle || (o->multi && !(flags & FI_MULTI_RECV)))
		return; /* a provider may report it twice */
	r->idle = true;
	r->next = o->idle;
	o->idle = r;
}

/* A packet has arrived. If peers may not send us headerless packets, the immediate data are
 * ignored: they would hold only half of a token. */
static void packet_arrived(struct ofi *o, const struct ofi_recv *r,
			   const struct fi_cq_data_entry *e)
{
	const void *bytes = o->multi ? e->buf : r->bytes;

	if (e->flags & FI_REMOTE_CQ_DATA && o->limits.frame)
		rdma_arrived_headerless(&o->rdma, NULL, e->data, bytes, e->len);
	else
		rdma_arrived(&o->rdma, NULL, bytes, e->len);
}

static void operation_completed(struct ofi *o, const struct fi_cq_data_entry *e)
{
	struct ofi_recv *r = e->op_context;

	if (!e->op_context)
		return;
	switch (context_kind(e->op_context)) {
	case OFI_PACKET:
		ofi_path_over(o, path_of(e->op_context));
		rdma_sent(&o->rdma, packet_of_context(e->op_context), RDMA_OK, NULL);
		break;
	case OFI_READ:
		ofi_path_over(o, path_of(e->op_context));
		rdma_moved(&o->rdma, read_of(e->op_context), RDMA_OK, NULL);
		break;
	case OFI_RECV:
		if (e->flags & FI_RECV)
			packet_arrived(o, r, e);
		received(o, r, e->flags);
		break;
	}
}

/* Is it only the operation's own fault, not the peer's or the path's? */
static bool own_fault(int err)
{
	return err == FI_EACCES || err == FI_EINVAL || err == FI_ENOKEY || err == FI_EFAULT ||
	       err == FI_EPERM;
}

static void endpoint_failed(struct ofi *o)
{
	struct fi_cq_err_entry e = { .err = 0 };
	char why[160], detail[64];
	const char *text;

	if (fi_cq_readerr(o->cq, &e, 0) != 1)
		return;
	text = fi_cq_strerror(o->cq, e.prov_errno, e.err_data, detail, sizeof(detail));
	snprintf(why, sizeof(why), "provider %s: %s (%s)", o->info->fabric_attr->prov_name,
		 o->lib->strerror(e.err), text ? text : "");
	if (!e.op_context) {
		/* an injected packet, which nobody waits for; silence will show whose it was */
		if (ptl_debugs(o->ni, PTL_DBG_SETUP))
			ptl_debug(o->ni, "a packet could not be sent: %s", why);
		return;
	}
	switch (context_kind(e.op_context)) {
	case OFI_PACKET:
		ofi_path_over(o, path_of(e.op_context));
		rdma_sent(&o->rdma, packet_of_context(e.op_context), RDMA_BROKEN, why);
		break;
	case OFI_READ:
		ofi_path_over(o, path_of(e.op_context));
		rdma_moved(&o->rdma, read_of(e.op_context),
			   own_fault(e.err) ? RDMA_FAILED : RDMA_BROKEN, why);
		break;
	case OFI_RECV:
		/* no packet of a peer is too long for our buffers; the gap will break the
		 * connection it came by */
		if (e.err == FI_ETRUNC && !o->said_error)
			base_warn("part of a packet is lost: %s", why);
		o->said_error |= e.err == FI_ETRUNC;
		received(o, e.op_context, e.flags);
		break;
	}
}

/* Warn that little or nothing will complete any more: peers may be found silent for this reason. */
static void blind(struct ofi *o, const char *what, ssize_t err)
{
	if (o->said_blind)
		return;
	o->said_blind = true;
	base_warn("libfabric's provider %s does not %s: %s", o->info->fabric_attr->prov_name, what,
		  o->lib->strerror((int)-err));
}

/*
 * Poll once, or several times in a process that waits. Within the host a poll takes no system
 * call, and half of the time of a call that finds nothing is the call itself. A process whose
 * calls find nothing again and again waits for something, and several polls find it sooner.
 * This is not done where processes share processors.
 */
static ssize_t read_completions(struct ofi *o, struct fi_cq_data_entry *entry)
{
	ssize_t n = fi_cq_read(o->cq, entry, BATCH);

	for (int i = 1; n == -FI_EAGAIN && o->vain && i < POLLS; i++)
		n = fi_cq_read(o->cq, entry, BATCH);
	o->vain = n == -FI_EAGAIN && ofi_is_local(o->info) && o->ni->spin_ns;
	return n;
}

static unsigned int link_poll(void *link)
{
	struct fi_cq_data_entry entry[BATCH];
	struct ofi *o = link;
	unsigned int done = 0;
	bool again = true;
	ssize_t n;
	int err;

	/* each poll makes the provider check everything: do not poll once more to find nothing */
	do {
		o->reads = false;
		n = read_completions(o, entry);
		if (n == -FI_EAVAIL) {
			endpoint_failed(o);
			done++;
			continue;
		}
		if (n < 0 && n != -FI_EAGAIN)
			blind(o, "say any more what has arrived (fi_cq_read)", n);
		for (ssize_t i = 0; i < n; i++)
			operation_completed(o, &entry[i]);
		done += n > 0 ? (unsigned int)n : 0;
		/* within the host a read is over when it has begun */
		again = n == BATCH || (o->reads && ofi_is_local(o->info) && done < BATCH);
	} while (again && done < POLL_MOST);
	if (o->idle && (err = ofi_post(o)) < 0)
		blind(o, "take buffers for what arrives (fi_recvmsg)", err);
	if (done)
		o->poll_ns = POLL_NS;
	return done;
}

static bool link_arm(void *link, uint64_t *within_ns)
{
	struct ofi *o = link;
	struct fid *fid = &o->cq->fid;

	if (o->fd >= 0)
		return fi_trywait(o->fabric, &fid, 1) == FI_SUCCESS;
	*within_ns = o->poll_ns ? o->poll_ns : POLL_NS;
	o->poll_ns = *within_ns < POLL_MOST_NS / 2 ? 2 * *within_ns : POLL_MOST_NS;
	return true;
}

static bool quit(void *link)
{
	return ofi_ep_close(link);
}

const struct rdma_link ofi_link = {
	.name = "ofi",
	.reach = ofi_reach,
	.leave = ofi_leave,
	.own_address = own_address,
	.send = link_send,
	.read = link_read,
	.error = link_error,
	.reg = link_reg,
	.unreg = link_unreg,
	.poll = link_poll,
	.arm = link_arm,
	.quit = quit,
};
