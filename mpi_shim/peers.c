/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What is known of the other processes: credit (protocol.h), and whether they live. A wait that has gone on
 * for a while looks after the peers of all operations in progress; an operation whose peer has died
 * ends with MPI_ERR_PROC_ABORTED.
 */
#include <stdlib.h>
#include <time.h>

#include "base/config.h"
#include "mpi_shim/error.h"
#include "mpi_shim/protocol.h"
#include "mpi_shim/rma.h"
#include "mpi_shim/start.h"

size_t mpi_pool_bytes(void)
{
	return (size_t)base_config()->ptl_mpi_pool_kib * 1024;
}

/* The event queue of unexpected messages has a slot for each message that may come, and for what gives credit
 * back: at each half share of bytes, of slots or of withdrawals. */
static int make_queue(void)
{
	uint32_t slots = (uint32_t)base_config()->ptl_mpi_slots / (uint32_t)mpi_world.size;
	int err;

	mpi_proto.share_slots = slots < 8 ? 8 : slots;
	err = PtlEQAlloc(mpi_world.ni,
			 (ptl_size_t)mpi_world.size * (mpi_proto.share_slots + 12) + MPI_BLOCKS + 8,
			 PTL_EQ_HANDLER_NONE, &mpi_proto.unexpected);
	if (err != PTL_OK)
		return mpi_fail(MPI_ERR_NO_MEM, "no event queue for unexpected messages: %s",
				PtlErrorStr((unsigned int)err));
	return MPI_SUCCESS;
}

static int attach(ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_match_bits_t ignore,
		  ptl_handle_me_t *me)
{
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE |
			   PTL_MD_ACK_DISABLE,
		.eq_handle = mpi_proto.unexpected,
	};
	int err = PtlMEMDAttach(mpi_world.ni, pt, any, bits, ignore, PTL_RETAIN, PTL_INS_AFTER, md,
				PTL_RETAIN, me, NULL);

	return err == PTL_OK ? MPI_SUCCESS
			     : mpi_fail(MPI_ERR_NO_MEM, "cannot set up portal %u: %s", pt,
					PtlErrorStr((unsigned int)err));
}

int mpi_peers_init(void)
{
	const struct base_config *c = base_config();
	size_t block = mpi_pool_bytes() / MPI_BLOCKS;
	ptl_handle_me_t credit;
	int err;

	mpi_proto.short_most = (size_t)c->ptl_mpi_short;
	mpi_proto.local_most = c->ptl_mpi_local;
	mpi_proto.share_bytes = (uint32_t)((MPI_BLOCKS - 1) * (block - mpi_proto.short_most) /
					   (size_t)mpi_world.size);
	mpi_proto.next_number = 0;
	mpi_proto.peer = calloc((size_t)mpi_world.size, sizeof(*mpi_proto.peer));
	if (!mpi_proto.peer)
		return mpi_fail_memory("what is known of all ranks");
	err = make_queue();
	if (!err)
		err = attach(MPI_PT_CREDIT, 0, UINT64_MAX, &credit);
	if (!err)
		err = attach(MPI_PT_RECV, mpi_bits(MPI_PROTO_LONG, 0, 0, 0),
			     ~MPI_BITS_PROTO | MPI_BITS_LACKING, &mpi_proto.long_me);
	return err ? err : mpi_withdraw_init();
}

void mpi_peers_fini(void)
{
	mpi_withdraw_fini();
	free(mpi_proto.peer);
	mpi_proto.peer = NULL;
}

/* ---- who lives -------------------------------------------------------------------------------------- */

#define CHECK_MS 250
#define LOOKS    64 /* processes looked after in one check */

static uint32_t checks;
static int64_t checked_ms;

int mpi_lost_source(const struct mpi_comm *comm, int source)
{
	static const struct mpi_comm *asked_comm;
	static uint32_t asked_check;
	const int n = comm->remote_size;
	bool ask;

	if (source != MPI_ANY_SOURCE) {
		struct mpi_peer *p = &mpi_proto.peer[mpi_comm_peer(comm, source)];

		p->asked = true;
		return p->dead ? source : -1;
	}
	ask = asked_comm != comm || asked_check != checks;
	for (int i = 0; i < n && (ask || mpi_proto.any_dead); i++) {
		struct mpi_peer *p = &mpi_proto.peer[mpi_comm_peer(comm, i)];

		p->asked = true;
		if (p->dead)
			return i;
	}
	asked_comm = comm;
	asked_check = checks;
	return -1;
}

/* Looks after those that were asked for since the last time, in turn. What they sent before they died is
 * taken in before the next check, when they count as dead. */
static void look_after_peers(void)
{
	static int at;
	int looks = 0;

	for (int n = 0; n < mpi_world.size && looks < LOOKS; n++) {
		struct mpi_peer *p;
		unsigned long distance;

		at = at + 1 < mpi_world.size ? at + 1 : 0;
		p = &mpi_proto.peer[at];
		if (!p->asked || p->dead)
			continue;
		p->asked = false;
		looks++;
		if (PtlNIDist(mpi_world.ni, mpi_world.id[at], &distance) != PTL_OK)
			p->dead = mpi_proto.any_dead = true;
	}
}

/* What needs all ranks ends when any has died: the one that its message is to come from may have found that out before it sent
 * it, and be gone from there. */
static int lost(const struct mpi_request *r)
{
	bool any = r->kind == MPI_REQ_RECV && r->whole;

	if (r->peer == MPI_PROC_NULL)
		return -1;
	return mpi_lost_source(r->comm, any ? MPI_ANY_SOURCE : r->peer);
}

static void end_if_hopeless(struct mpi_request *r)
{
	int rank = lost(r);

	if (rank < 0)
		return;
	if (r->kind == MPI_REQ_SEND)
		mpi_send_abandon(r);
	else
		mpi_recv_abandon(r, rank);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void mpi_check_peers(void)
{
	struct mpi_request *r;
	bool any = false;

	checks++;
	checked_ms = now_ms();
	for (uint32_t i = 0; (r = mpi_pool_at(MPI_KIND_REQUEST, i)); i++)
		if (r->obj.handle && !r->done &&
		    (r->kind == MPI_REQ_SEND || r->kind == MPI_REQ_RECV))
			end_if_hopeless(r);
	mpi_rma_check_peers();
	mpi_withdraw_look();
	look_after_peers();
	/* there may be memory for what waits for that */
	for (int i = 0; i < mpi_world.size; i++)
		if (mpi_proto.peer[i].queue)
			any |= mpi_send_flush(i);
	if ((any || mpi_proto.any_dead) && mpi_world.threaded)
		mpi_progress_wake();
}

void mpi_check_peers_now_and_then(void)
{
	if (now_ms() - checked_ms >= CHECK_MS)
		mpi_check_peers();
}
