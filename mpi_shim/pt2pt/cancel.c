/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Cancelled sends (MPI-4 §3.8.4), at the receiver. Of a long message only the header is here.
 * It belongs to its sender until a receive takes it, and the sender can cancel it without a
 * call of the receiver's. To do so the sender puts one byte to the CANCEL portal, under the
 * number of the message. One entry takes the bytes of all such cancel requests. Its
 * acknowledgement of one byte is the answer "cancelled".
 *
 * A receive or a matched probe that takes a long message therefore claims it first. The claim
 * is a match entry for this message, before the common one, that takes no bytes. Its
 * acknowledgement is the answer "too late". The claim is posted only if no cancel request has
 * come that is not handled yet (PtlMEMDPost). So both sides always agree.
 *
 * The byte of a cancel request comes with it, whatever path it takes. So an accepted request is
 * in its queue, and a claim never has to wait for a sender.
 *
 * A claim stays until the message is here. A cancel request that comes later gets a wrong
 * answer. But by then the sender's descriptor has counted the get, whose end the sender may see
 * later (send.c). If a receive posted to Portals took the message, the sender has seen the
 * acknowledgement.
 *
 * A cancel request may be handled before the header of its message, which has a queue of its
 * own. It is remembered until the header comes. It is forgotten once that queue was empty,
 * since then it was one of those that were too late. Each sender has a share of the queue of
 * cancel requests, so the queue never overflows.
 */
#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/pt2pt/protocol.h"

#define SHARES      4096 /* cancel requests not handled yet, of all senders */
#define SHARE_LEAST 8    /* of each sender; of those of other jobs, all */

struct early {
	struct early *next;
	uint64_t hdr;
	ptl_process_id_t from;
};

static ptl_handle_eq_t queue;
static ptl_handle_me_t all; /* takes cancel requests; claims are inserted before it */
static struct early *early;

int mpi_cancel_init(void)
{
	static char byte;
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = {
		.start = &byte,
		.length = 1,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
	};
	int err;

	mpi_proto.share_cancels = SHARES / (uint32_t)mpi_world.size;
	if (mpi_proto.share_cancels < SHARE_LEAST)
		mpi_proto.share_cancels = SHARE_LEAST;
	err = PtlEQAlloc(mpi_world.ni,
			 (ptl_size_t)mpi_world.size * mpi_proto.share_cancels +
				 MPI_OTHERS_MOST * SHARE_LEAST + 8,
			 PTL_EQ_HANDLER_NONE, &queue);
	md.eq_handle = queue;
	if (err == PTL_OK)
		err = PtlMEMDAttach(mpi_world.ni, MPI_PT_CANCEL, any, 0, UINT64_MAX, PTL_RETAIN,
				    PTL_INS_AFTER, md, PTL_RETAIN, &all, NULL);
	return err == PTL_OK ? MPI_SUCCESS
			     : mpi_fail(MPI_ERR_NO_MEM, "cannot set up the cancelling of sends: %s",
					PtlErrorStr((unsigned int)err));
}

static void forget_early(void)
{
	for (struct early *e; (e = early);) {
		early = e->next;
		free(e);
	}
}

void mpi_cancel_fini(void)
{
	forget_early();
}

int mpi_cancel_claim(struct mpi_unexpected *u)
{
	const ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
			   PTL_MD_EVENT_START_DISABLE,
		.eq_handle = PTL_EQ_NONE,
	};

	return PtlMEMDPost(mpi_world.ni, all, u->from, u->hdr, 0, PTL_RETAIN, PTL_INS_BEFORE, md,
			   PTL_RETAIN, &u->claim, NULL, queue);
}

uint32_t mpi_cancels_at(int world)
{
	return mpi_is_other_job(world) ? SHARE_LEAST : mpi_proto.share_cancels;
}

/* Returns the credit of cancel requests to their sender, once half a share is owed. */
static void return_cancels(int rank)
{
	struct mpi_peer *p = &mpi_proto.peer[rank];

	if (p->consumed_cancels - p->advertised_cancels < mpi_cancels_at(rank) / 2)
		return;
	if (PtlPutInject(mpi_world.ni, NULL, 0, PTL_INJECT_LAZY, mpi_world.id[rank], MPI_PT_CREDIT,
			 0, (uint64_t)mpi_own_number_at(rank) | MPI_CREDIT_CANCELS, 0,
			 p->consumed_cancels) == PTL_OK)
		p->advertised_cancels = p->consumed_cancels;
}

static void withdrawn(const ptl_event_t *ev)
{
	int rank = mpi_hdr_sender(ev->match_bits, ev->initiator);
	struct early *e;

	if (rank < 0)
		return;
	mpi_proto.peer[rank].consumed_cancels++;
	return_cancels(rank);
	if (mpi_unexpected_cancel(ev->hdr_data, ev->match_bits, ev->initiator))
		return;
	e = malloc(sizeof(*e));
	if (!e) {
		mpi_abort_job(MPI_ERR_NO_MEM, "MPI: no memory to note a send that was cancelled");
		return;
	}
	*e = (struct early){ .next = early, .hdr = ev->match_bits, .from = ev->initiator };
	early = e;
}

bool mpi_cancel_drain(void)
{
	ptl_event_t ev;
	bool any = false;

	while (mpi_event_get(queue, &ev)) {
		any = true;
		if (ev.type == PTL_EVENT_PUT_END && ev.ni_fail_type == PTL_NI_OK)
			withdrawn(&ev);
	}
	return any;
}

bool mpi_cancel_early(const struct mpi_unexpected *u)
{
	for (struct early **at = &early, *e; (e = *at); at = &e->next) {
		if (e->hdr != u->hdr || e->from.nid != u->from.nid || e->from.pid != u->from.pid)
			continue;
		*at = e->next;
		free(e);
		return true;
	}
	return false;
}

void mpi_cancel_check(void)
{
	if (early) {
		while (mpi_drain_unexpected())
			continue;
		forget_early();
	}
	mpi_cancel_drain();
	for (int rank = 0; rank < mpi_world.processes; rank++)
		return_cancels(rank); /* to ranks that could not be told before */
}
