/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which partitioned send belongs to which receive: the first with its communicator, ranks and
 * tag. For each rank of a communicator from which a receive waits, one message receive is posted
 * for the next offer. Offers of other tags than those that wait are kept.
 */
#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/hooks.h"
#include "mpi_shim/pt2pt/partitioned.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

/* On the collective context; comm/comm.h lists the others. */
#define TAG_OFFER 0x42000000

struct kept_offer {
	struct kept_offer *next;
	struct mpi_part_offer offer;
};

/* The offers of one rank of a communicator, and the receives for them. */
struct mailbox {
	struct mpi_hook hook; /* active while receives wait */
	struct mailbox *next;
	struct mpi_comm *comm; /* referenced, so that its context is not used again */
	int source;
	struct mpi_partitioned *waiting; /* receives without an offer, in the order of the calls */
	struct kept_offer *kept;         /* offers without a receive, likewise */
	struct mpi_request *receive;     /* of the next offer; NULL: not posted */
	struct mpi_part_offer in;
};

static struct mailbox *mailboxes;

int mpi_partitioned_offer(const struct mpi_partitioned *p)
{
	const struct mpi_request *r = p->r;
	struct mpi_part_offer *offer = malloc(sizeof(*offer));
	struct mpi_request *own;
	int err;

	if (!offer)
		return mpi_fail_memory("a partitioned send");
	*offer = (struct mpi_part_offer){ .number = p->number,
					  .total = (uint64_t)p->total,
					  .partitions = (uint32_t)p->partitions,
					  .per_unit = (uint32_t)p->per_unit,
					  .tag = p->tag };
	err = mpi_send_prepare(offer, sizeof(*offer), mpi_type_of(MPI_BYTE), r->peer, TAG_OFFER,
			       r->comm, r->comm->context + 1, MPI_SEND_STANDARD, &own);
	if (err) {
		free(offer);
		return err;
	}
	own->packed = offer; /* goes with the request */
	own->freed = true;   /* which ends by itself */
	err = mpi_send_launch(own);
	if (err)
		mpi_object_release(own);
	return err;
}

/* ---- mailboxes ------------------------------------------------------------------------------- */

static struct mailbox *mailbox_of(struct mpi_comm *comm, int source)
{
	struct mailbox *b = mailboxes;

	while (b && (b->comm != comm || b->source != source))
		b = b->next;
	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->comm = mpi_object_keep(comm);
	b->source = source;
	b->next = mailboxes;
	mailboxes = b;
	return b;
}

static void drop_if_empty(struct mailbox *b)
{
	struct mailbox **at = &mailboxes;

	if (b->waiting || b->kept)
		return;
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	mpi_object_release(b->comm);
	free(b);
}

/* A receive that was freed takes its offer all the same: the next receive is for the next one. */
static void hand_over(struct mpi_partitioned *p, const struct mpi_part_offer *offer)
{
	if (p->r)
		mpi_partitioned_matched(p, offer);
	else
		mpi_partitioned_release(p);
}

/* Takes the first receive with this tag off the list; NULL: none waits. */
static struct mpi_partitioned *take_waiting(struct mailbox *b, int tag)
{
	struct mpi_partitioned **at = &b->waiting, *p;

	while (*at && (*at)->tag != tag)
		at = &(*at)->next;
	p = *at;
	if (p)
		*at = p->next;
	return p;
}

static void fail_waiting(struct mailbox *b, int code)
{
	struct mpi_partitioned *p;

	while ((p = b->waiting) != NULL) {
		b->waiting = p->next;
		if (p->r)
			mpi_partitioned_unmatched(p, code);
		else
			mpi_partitioned_release(p);
	}
}

/* Gives the offer that has come to its receive, or keeps it. */
static void sort_in(struct mailbox *b)
{
	struct mpi_partitioned *p = take_waiting(b, b->in.tag);
	struct kept_offer **at = &b->kept, *k;

	if (p) {
		hand_over(p, &b->in);
		return;
	}
	k = malloc(sizeof(*k));
	if (!k) {
		fail_waiting(b, mpi_fail_memory("the offer of a partitioned send"));
		return;
	}
	*k = (struct kept_offer){ .offer = b->in };
	while (*at)
		at = &(*at)->next;
	*at = k;
}

static int post(struct mailbox *b)
{
	return mpi_start_recv(&b->in, sizeof(b->in), mpi_type_of(MPI_BYTE), b->source, TAG_OFFER,
			      b->comm, b->comm->context + 1, &b->receive);
}

static void take_in(struct mailbox *b)
{
	MPI_Status status;
	int err = mpi_request_finish(b->receive, &status);

	b->receive = NULL;
	if (err == MPI_SUCCESS && mpi_status_bytes(&status) != sizeof(b->in))
		err = mpi_fail(MPI_ERR_OTHER, "rank %d offers a partitioned send of another kind",
			       b->source);
	if (err)
		fail_waiting(b, err);
	else
		sort_in(b);
	err = b->waiting ? post(b) : MPI_SUCCESS;
	if (err)
		fail_waiting(b, err);
}

static bool run(struct mpi_hook *hook)
{
	struct mailbox *b = (struct mailbox *)(void *)hook;

	while (b->receive && b->receive->done)
		take_in(b);
	if (b->receive)
		return false;
	drop_if_empty(b);
	return true;
}

static struct kept_offer *take_kept(struct mailbox *b, int tag)
{
	struct kept_offer **at = &b->kept, *k;

	while (*at && (*at)->offer.tag != tag)
		at = &(*at)->next;
	k = *at;
	if (k)
		*at = k->next;
	return k;
}

int mpi_partitioned_await(struct mpi_partitioned *p)
{
	struct mailbox *b = mailbox_of(p->r->comm, p->r->peer);
	struct mpi_partitioned **at;
	struct kept_offer *k;
	int err = MPI_SUCCESS;

	if (!b)
		return mpi_fail_memory("a partitioned receive");
	k = take_kept(b, p->tag);
	if (k) {
		mpi_partitioned_matched(p, &k->offer);
		free(k);
		drop_if_empty(b);
		return MPI_SUCCESS;
	}
	if (!b->receive) {
		err = post(b);
		if (err) {
			drop_if_empty(b);
			return err;
		}
		b->hook.run = run;
	}
	for (at = &b->waiting; *at; at = &(*at)->next)
		continue;
	*at = p;
	if (at == &b->waiting)
		mpi_hooks_start(&b->hook);
	return MPI_SUCCESS;
}

void mpi_partitioned_fini(void)
{
	struct mailbox *b;
	struct kept_offer *k;

	for (b = mailboxes; b; b = b->next)
		if (b->receive)
			mpi_recv_cancel(b->receive);
	mpi_hooks_round(); /* ends those that were cancelled */
	for (struct mailbox *next, *at = mailboxes; at; at = next) {
		next = at->next;
		while ((k = at->kept) != NULL) {
			at->kept = k->next;
			free(k);
		}
		if (!at->receive)
			drop_if_empty(at);
	}
}
