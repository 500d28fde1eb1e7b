/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Processes of other jobs: when they are connected, what they may use here, and how they leave.
 *
 * A process of another job is connected while it is in a communicator with this one. A
 * communicator that is freed leaves its processes connected; MPI_Comm_disconnect does not. Both
 * sides count alike, since they make and end communicators together.
 *
 * Before a link is cut each side tells the other that it leaves. It cuts the link when it has
 * heard the same, or when the other process has ended. So no side takes the other's leaving for
 * its death while it still waits in the disconnecting barrier.
 */
#include <portals3_ext.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/pt2pt/protocol.h"

/* The part of the blocks that is set aside, the slots, and the part of what is left that one
 * connection gets. */
enum { BYTES_PART = 8, SLOTS = 1024, GIVEN_PART = 16 };
/* Slots that a process gets at least, and further events that it may cause. */
enum { SLOTS_LEAST = 4, SLOTS_MOST = 64, MORE_EVENTS = 8 };

size_t mpi_others_init(size_t bytes)
{
	mpi_proto.left = (struct mpi_shares){ (uint32_t)(bytes / BYTES_PART), SLOTS };
	mpi_proto.others = 0;
	return bytes - bytes / BYTES_PART;
}

uint32_t mpi_others_slots(void)
{
	return SLOTS + MPI_OTHERS_MOST * (SLOTS_LEAST + MORE_EVENTS);
}

struct mpi_shares mpi_others_can_give(int n)
{
	const uint32_t part = n > GIVEN_PART / 2 ? 2 * (uint32_t)n : GIVEN_PART;
	const uint32_t most = (uint32_t)mpi_proto.short_most + mpi_credit_cost(0);
	struct mpi_shares s = { mpi_proto.left.bytes / part, mpi_proto.left.slots / part };

	if (s.bytes > most)
		s.bytes = most;
	if (s.slots > SLOTS_MOST)
		s.slots = SLOTS_MOST;
	return s;
}

/* ---- coming ---------------------------------------------------------------------------------- */

/* Admits the processes of all jobs, or only of this one. Those of other jobs reach this process
 * if they run as its user on its node, or have a key that they got when they were connected. */
static int admit_other_jobs(bool admit)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	int err = PtlACEntry(mpi_world.ni, 0, any, PTL_UID_ANY, admit ? PTL_JID_ANY : mpi_world.jid,
			     PTL_PT_INDEX_ANY);

	return err == PTL_OK ? MPI_SUCCESS
			     : mpi_fail(MPI_ERR_OTHER, "cannot admit processes of other jobs: %s",
					PtlErrorStr((unsigned int)err));
}

static bool is_linked(const struct mpi_peer *p)
{
	return p->given.slots;
}

int mpi_other_connect(int world, struct mpi_shares share, struct mpi_shares given)
{
	struct mpi_peer *p = &mpi_proto.peer[world];
	int err = MPI_SUCCESS;

	if (!mpi_is_other_job(world))
		return MPI_SUCCESS;
	if (mpi_other_is_connected(world)) {
		p->comms++;
		return MPI_SUCCESS;
	}
	while (is_linked(p)) /* another thread is in MPI_Comm_disconnect */
		mpi_progress(true);
	if (mpi_proto.others == MPI_OTHERS_MOST)
		return mpi_fail(MPI_ERR_OTHER,
				"%d processes of other jobs are connected, and no more can be: "
				"disconnect some",
				MPI_OTHERS_MOST);
	if (mpi_proto.others == 0)
		err = admit_other_jobs(true);
	if (err)
		return err;
	mpi_proto.others++;
	memset(p, 0, sizeof(*p));
	p->comms = 1;
	/* there are SLOTS_LEAST for each, besides those that are given out */
	p->share = (struct mpi_shares){ share.bytes, share.slots + SLOTS_LEAST };
	p->given = (struct mpi_shares){ given.bytes, given.slots + SLOTS_LEAST };
	mpi_proto.left.bytes -= given.bytes;
	mpi_proto.left.slots -= given.slots;
	return MPI_SUCCESS;
}

/* ---- communicators --------------------------------------------------------------------------- */

static void count_group(const struct mpi_group *g, int change)
{
	if (g->world && g->others)
		for (int i = 0; i < g->size; i++)
			if (mpi_is_other_job(g->world[i]))
				mpi_proto.peer[g->world[i]].comms += (uint32_t)change;
}

void mpi_others_count(const struct mpi_comm *comm, int change)
{
	if (!mpi_proto.others) /* all links are cut, in MPI_Finalize */
		return;
	count_group(comm->local, change);
	if (comm->remote != comm->local)
		count_group(comm->remote, change);
}

static void keep_group(const struct mpi_group *g)
{
	if (g->world && g->others)
		for (int i = 0; i < g->size; i++)
			if (mpi_is_other_job(g->world[i]))
				mpi_proto.peer[g->world[i]].stays = true;
}

void mpi_others_stay(const struct mpi_comm *comm)
{
	keep_group(comm->local);
	if (comm->remote != comm->local)
		keep_group(comm->remote);
}

/* ---- leaving --------------------------------------------------------------------------------- */

void mpi_other_left(ptl_process_id_t id)
{
	const int world = mpi_process_find(id);

	if (world >= 0)
		mpi_proto.peer[world].leave_came = true;
}

static bool is_leaving(const struct mpi_peer *p, bool all)
{
	return is_linked(p) && (all || (!p->comms && !p->stays));
}

/* False: the process has to be told later. */
static bool tell_leaving(int world)
{
	struct mpi_peer *p = &mpi_proto.peer[world];

	if (!p->leave_sent && !p->dead)
		p->leave_sent =
			PtlPutInject(mpi_world.ni, NULL, 0, PTL_INJECT_NOW, mpi_world.id[world],
				     MPI_PT_CREDIT, 0, MPI_LEAVE_BITS, 0, 0) != PTL_NO_SPACE;
	return p->leave_sent || p->dead;
}

/* Cuts the link to a process. Its share can be given to others. */
static void cut_link(int world)
{
	struct mpi_peer *p = &mpi_proto.peer[world];

	mpi_credit_forget(p);
	mpi_proto.left.bytes += p->given.bytes;
	mpi_proto.left.slots += p->given.slots - SLOTS_LEAST;
	memset(p, 0, sizeof(*p));
	PtlPeerDrop(mpi_world.ni, mpi_world.id[world]);
	if (--mpi_proto.others == 0)
		admit_other_jobs(false);
}

void mpi_other_release(int world)
{
	struct mpi_peer *p = &mpi_proto.peer[world];

	if (!mpi_is_other_job(world))
		return;
	p->comms--;
	/* no communicator came of it, so nothing was said */
	if (is_leaving(p, false) && !p->leave_sent && !p->queue)
		cut_link(world);
}

/* Tells those that leave. Returns whether one of them has to be waited for. */
static bool await_leaving(bool all)
{
	bool wait = false;

	for (int world = mpi_world.size; world < mpi_world.processes; world++) {
		struct mpi_peer *p = &mpi_proto.peer[world];

		if (!is_leaving(p, all))
			continue;
		if (tell_leaving(world) && (p->leave_came || p->dead))
			continue;
		p->asked = true;
		wait = true;
	}
	return wait;
}

void mpi_others_leave(bool all)
{
	if (mpi_proto.others == 0)
		return;
	while (await_leaving(all)) {
		mpi_progress(true);
		mpi_check_peers_now_and_then();
	}
	for (int world = mpi_world.size; world < mpi_world.processes; world++)
		if (is_leaving(&mpi_proto.peer[world], all) && !mpi_proto.peer[world].queue)
			cut_link(world);
}
