/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * This process's knowledge of the others: credit (protocol.h), and whether they live and can be
 * reached. A wait that goes on for a while checks the peers of all operations in progress. An
 * operation whose peer has died ends with MPI_ERR_PROC_ABORTED.
 *
 * A collective also needs ranks that this one exchanges no messages with. It hears of their
 * deaths from others. A rank that finds a dead one tells the ranks whose distance is a power of
 * two, and these do the same. The report is a put of one byte into memory of the other rank, at
 * the place of the dead rank.
 */
#include <portals3_ext.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/events.h"
#include "mpi_shim/core/node.h"
#include "mpi_shim/pt2pt/generalized.h"
#include "mpi_shim/pt2pt/partitioned.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

struct mpi_protocol_state mpi_proto;

size_t mpi_pool_bytes(void)
{
	return (size_t)base_config()->ptl_mpi_pool_kib * 1024;
}

/* The event queue of unexpected messages has a slot for each message that may come. It also has
 * slots for the puts that return credit: one for each half share of bytes, of slots or of
 * cancel requests. */
static int make_queue(void)
{
	uint32_t slots = (uint32_t)base_config()->ptl_mpi_slots / (uint32_t)mpi_world.size;
	int err;

	mpi_proto.share.slots = slots < 8 ? 8 : slots;
	err = PtlEQAlloc(mpi_world.ni,
			 (ptl_size_t)mpi_world.size * (mpi_proto.share.slots + 12) + MPI_BLOCKS +
				 8 + mpi_others_slots(),
			 PTL_EQ_HANDLER_NONE, &mpi_proto.unexpected);
	if (err != PTL_OK)
		return mpi_fail(MPI_ERR_NO_MEM, "no event queue for unexpected messages: %s",
				PtlErrorStr((unsigned int)err));
	return MPI_SUCCESS;
}

static int attach_entry(ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_match_bits_t ignore,
			ptl_md_t md, ptl_handle_me_t *me)
{
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	int err = PtlMEMDAttach(mpi_world.ni, pt, any, bits, ignore, PTL_RETAIN, PTL_INS_AFTER, md,
				PTL_RETAIN, me, NULL);

	return err == PTL_OK ? MPI_SUCCESS
			     : mpi_fail(MPI_ERR_NO_MEM, "cannot set up portal %u: %s", pt,
					PtlErrorStr((unsigned int)err));
}

/* Failed ranks, as others report them: one byte per rank, 0 for the others. */
enum { ENDED = 1, NOT_REACHED };
static char *deaths;
static ptl_handle_md_t death; /* the two values, in this order */

static int expose_deaths(void)
{
	static char both[] = { ENDED, NOT_REACHED };
	ptl_md_t md = {
		.start = deaths,
		.length = (ptl_size_t)mpi_world.size,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE |
			   PTL_MD_EVENT_END_DISABLE | PTL_MD_ACK_DISABLE,
		.eq_handle = PTL_EQ_NONE,
	};
	ptl_handle_me_t me;
	int err = attach_entry(MPI_PT_FLAG, MPI_DEATH_BITS, 0, md, &me);

	md.start = both;
	md.length = sizeof(both);
	if (!err && PtlMDBind(mpi_world.ni, md, PTL_RETAIN, &death) != PTL_OK)
		err = mpi_fail_memory("what is told of ranks that have died");
	return err;
}

void mpi_messages_init(void)
{
	mpi_request_ops[MPI_REQ_SEND] = mpi_send_ops;
	mpi_request_ops[MPI_REQ_RECV] = mpi_recv_ops;
	mpi_request_ops[MPI_REQ_GENERALIZED] = mpi_generalized_ops;
	mpi_request_ops[MPI_REQ_PSEND] = mpi_psend_ops;
	mpi_request_ops[MPI_REQ_PRECV] = mpi_precv_ops;
	mpi_events_at_change(mpi_messages_watched);
	mpi_probe_init();
}

int mpi_peers_init(void)
{
	const struct base_config *c = base_config();
	size_t block = mpi_pool_bytes() / MPI_BLOCKS;
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE |
			   PTL_MD_ACK_DISABLE,
	};
	ptl_handle_me_t credit;
	int err;

	mpi_proto.short_most = (size_t)c->ptl_mpi_short;
	mpi_proto.at_once_most = c->ptl_mpi_short;
	mpi_proto.local_most = c->ptl_mpi_local;
	mpi_proto.share.bytes =
		(uint32_t)(mpi_others_init((MPI_BLOCKS - 1) * (block - mpi_proto.short_most)) /
			   (size_t)mpi_world.size);
	mpi_proto.next_number = 0;
	/* pages that are not used take no memory, and the array never moves */
	mpi_proto.peer = calloc((size_t)mpi_processes_room(), sizeof(*mpi_proto.peer));
	deaths = calloc((size_t)mpi_world.size, 1);
	if (!mpi_proto.peer || !deaths)
		return mpi_fail_memory("what is known of all ranks");
	err = make_queue();
	for (int i = 0; i < mpi_world.size; i++)
		mpi_proto.peer[i].share = mpi_proto.peer[i].given = mpi_proto.share;
	md.eq_handle = mpi_proto.unexpected;
	if (!err)
		err = attach_entry(MPI_PT_CREDIT, 0, UINT64_MAX, md, &credit);
	if (!err)
		err = attach_entry(MPI_PT_RECV, mpi_bits(MPI_PROTO_LONG, 0, 0, 0),
				   ~MPI_BITS_PROTO | MPI_BITS_NO_MEMORY, md, &mpi_proto.long_me);
	if (!err)
		err = expose_deaths();
	return err ? err : mpi_cancel_init();
}

void mpi_peers_fini(void)
{
	mpi_cancel_fini();
	free(deaths);
	deaths = NULL;
	free(mpi_proto.peer);
	mpi_proto.peer = NULL;
}

/* ---- which ranks live ------------------------------------------------------------------------ */

#define CHECKS 64 /* processes checked in one round */

static uint32_t checks;

static bool has_met(const struct mpi_peer *p)
{
	return (p->sent_slots | p->consumed_slots) != 0;
}

/* Returns how a rank has failed, as far as this one knows (0: it has not), and the reason in
 * *fail and `why`. */
static int how_rank_failed(int world, ptl_ni_fail_t *fail, char *why, size_t size)
{
	*why = '\0';
	if (PtlPeerReason(mpi_world.ni, mpi_world.id[world], fail, why, size) != PTL_OK)
		*fail = PTL_NI_OK;
	if (mpi_is_other_job(world)) /* nobody reports it */
		return *fail == PTL_NI_PEER_DEAD ? ENDED : *fail != PTL_NI_OK ? NOT_REACHED : 0;
	if (*fail == PTL_NI_PEER_DEAD || deaths[world] == ENDED)
		return ENDED;
	return *fail != PTL_NI_OK || deaths[world] ? NOT_REACHED : 0;
}

const char *mpi_failed_text(int world, ptl_ni_fail_t fail)
{
	static char text[MPI_MAX_ERROR_STRING - 100];
	char why[sizeof(text) - 40];
	ptl_ni_fail_t known;

	switch (how_rank_failed(world, &known, why, sizeof(why))) {
	case ENDED:
		return "its process has ended";
	case NOT_REACHED:
		if (!*why)
			return "another rank cannot reach it, and says why";
		snprintf(text, sizeof(text), "it cannot be reached (%s)", why);
		return text;
	default:
		if (fail == PTL_NI_OK || fail == PTL_NI_PEER_DEAD || fail == PTL_NI_UNREACHABLE)
			return "its process has ended, or it cannot be reached";
		snprintf(text, sizeof(text), "the transfer failed: %s",
			 PtlNIFailStr(mpi_world.ni, fail));
		return text;
	}
}

/* Sends an empty put, which only ends a wait. A network finds out that a process is gone when
 * it has something to send to it. */
static bool greet(int world)
{
	return PtlPutInject(mpi_world.ni, NULL, 0, PTL_INJECT_LAZY, mpi_world.id[world],
			    MPI_PT_CREDIT, 0, MPI_SHMCOLL_WAKE_BITS, 0, 0) != PTL_NO_SPACE;
}

/* Greets a process of another job, since nobody else reports its death. */
static bool is_met_anew(int world)
{
	struct mpi_peer *p = &mpi_proto.peer[world];

	if (!mpi_is_other_job(world))
		return false;
	if (!p->greeted && !has_met(p))
		p->greeted = greet(world);
	return true;
}

/* When a search last had all ranks of a communicator checked. */
struct asked {
	const struct mpi_comm *comm;
	uint32_t check;
};

/* Returns a dead rank, or -1. Has the live ranks checked: all of them, or only those that are
 * on this node or have exchanged messages with this one. */
static int search(const struct mpi_comm *comm, struct asked *last, bool all)
{
	const int n = comm->remote_size;

	if (last->comm == comm && last->check == checks && !mpi_proto.any_dead)
		return -1;
	for (int i = 0; i < n; i++) {
		int world = mpi_comm_peer(comm, i);
		struct mpi_peer *p = &mpi_proto.peer[world];

		if (p->dead)
			return i;
		p->asked |= all || has_met(p) || mpi_is_here(world) || is_met_anew(world);
	}
	*last = (struct asked){ comm, checks };
	return -1;
}

int mpi_failed_source(const struct mpi_comm *comm, int source)
{
	static struct asked last;
	struct mpi_peer *p;

	if (source == MPI_ANY_SOURCE)
		return search(comm, &last, true);
	p = &mpi_proto.peer[mpi_comm_peer(comm, source)];
	p->asked = true;
	if (!p->greeted && !has_met(p))
		p->greeted = greet(mpi_comm_peer(comm, source));
	return p->dead ? source : -1;
}

int mpi_failed_any(const struct mpi_comm *comm)
{
	static struct asked last;

	return search(comm, &last, false);
}

/* Reports a dead rank to others. Those that cannot be told now are told in a later check. */
static void notify_of_death(struct mpi_peer *p)
{
	const ptl_size_t dead = (ptl_size_t)(p - mpi_proto.peer);
	char why[8];
	ptl_ni_fail_t fail;
	ptl_size_t at = how_rank_failed((int)dead, &fail, why, sizeof(why)) != ENDED;

	for (int step; (step = 1 << p->notified / 2) < mpi_world.size; p->notified++) {
		int far = p->notified % 2 ? mpi_world.size - step : step;
		int to = (int)(((long)mpi_world.rank + far) % mpi_world.size);

		if (!mpi_proto.peer[to].dead &&
		    PtlPutRegion(death, at, 1, PTL_NO_ACK_REQ, mpi_world.id[to], MPI_PT_FLAG, 0,
				 MPI_DEATH_BITS, dead, 0) == PTL_NO_SPACE)
			return;
	}
}

/* Takes in what others report, and reports deaths to others. A rank that is gone during
 * MPI_Finalize has ended, as far as anyone knows. */
static void report_deaths(void)
{
	for (int i = 0; i < mpi_world.size; i++)
		if (deaths[i] && i != mpi_world.rank)
			mpi_proto.peer[i].dead = mpi_proto.any_dead = true;
	for (int i = 0; i < mpi_world.size && mpi_proto.any_dead; i++)
		if (mpi_proto.peer[i].dead && (!mpi_proto.ending || mpi_proto.peer[i].notified))
			notify_of_death(&mpi_proto.peer[i]);
}

/* A process that leaves cuts the link: asking for it would connect it again. */
static bool has_left(const struct mpi_peer *p)
{
	while (!p->leave_came && mpi_drain_unexpected())
		continue;
	return p->leave_came;
}

/* Checks the ranks that were asked for since the last time, in turn. Messages that they sent
 * before they died are handled before the next check, which treats the ranks as dead. */
static void check_asked_peers(void)
{
	static int at;
	int checked = 0;

	for (int n = 0; n < mpi_world.processes && checked < CHECKS; n++) {
		struct mpi_peer *p;
		unsigned long distance;

		at = at + 1 < mpi_world.processes ? at + 1 : 0;
		p = &mpi_proto.peer[at];
		if (!p->asked || p->dead)
			continue;
		p->asked = false;
		checked++;
		if (p->leave_sent && has_left(p))
			continue;
		if (PtlNIDist(mpi_world.ni, mpi_world.id[at], &distance) != PTL_OK)
			p->dead = mpi_proto.any_dead = true;
	}
}

int mpi_failed_member(const struct mpi_comm *comm)
{
	int rank = mpi_failed_any(comm);

	if (rank >= 0)
		return mpi_comm_peer(comm, rank);
	return comm->inter ? mpi_failed_member(comm->local_comm) : -1;
}

static void (*check_also)(void);
static int (*hopeless)(const struct mpi_request *r);

void mpi_peers_check_also(void (*check)(void))
{
	check_also = check;
}

void mpi_peers_ask_of_whole(int (*of)(const struct mpi_request *r))
{
	hopeless = of;
}

static void end_if_hopeless(struct mpi_request *r)
{
	int rank = r->peer == MPI_PROC_NULL ? -1 : mpi_failed_source(r->comm, r->peer), err;

	if (rank < 0) {
		err = r->whole ? hopeless(r) : MPI_SUCCESS;
		if (err)
			(r->kind == MPI_REQ_SEND ? mpi_send_give_up : mpi_recv_give_up)(r, err);
		return;
	}
	if (r->kind == MPI_REQ_SEND)
		mpi_send_abandon(r);
	else
		mpi_recv_abandon(r, rank);
}

void mpi_peers_check(void)
{
	struct mpi_request *r;
	bool any = false;

	checks++;
	for (uint32_t i = 0; (r = mpi_pool_at(MPI_KIND_REQUEST, i)); i++) {
		if (!r->obj.handle)
			continue;
		if (!r->done && (r->kind == MPI_REQ_SEND || r->kind == MPI_REQ_RECV))
			end_if_hopeless(r);
		else if (r->kind == MPI_REQ_PSEND || r->kind == MPI_REQ_PRECV)
			mpi_partitioned_check(r);
	}
	if (check_also)
		check_also();
	mpi_cancel_check();
	check_asked_peers();
	report_deaths();
	/* Sends that wait for memory may find some now. */
	for (int i = 0; i < mpi_world.processes; i++)
		if (mpi_proto.peer[i].queue)
			any |= mpi_send_flush(i);
	if ((any || mpi_proto.any_dead) && mpi_world.threaded)
		mpi_progress_wake();
}
