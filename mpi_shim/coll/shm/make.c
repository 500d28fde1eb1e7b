/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Making the shared-memory area, all ranks of a communicator together. It finds out which rank
 * is on which node, shares the pages of the node, and exposes the words that other nodes'
 * leaders write. See shmcoll.h.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/node.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/core/node_segment.h"

#define FIRST_USES 3    /* an area is worth making after so many collectives */
#define RANKS_MOST 1024 /* on a node */

/* ---- who is where ---------------------------------------------------------------------------- */

struct on_node {
	uint64_t node;
	int rank;
};

static int by_node(const void *a, const void *b)
{
	const struct on_node *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->rank - y->rank;
}

/* Fill in homes, nodes, leaders, and the ranks of this node. False: out of memory. */
static bool find_nodes(struct mpi_shmcoll *h)
{
	const struct mpi_comm *comm = h->comm;
	struct on_node *all = malloc((size_t)comm->size * sizeof(*all));

	h->rank = malloc((size_t)comm->size * sizeof(*h->rank));
	h->leader_of = malloc((size_t)comm->size * sizeof(*h->leader_of));
	h->home = malloc((size_t)comm->size * sizeof(*h->home));
	if (!all || !h->rank || !h->leader_of || !h->home) {
		free(all);
		return false;
	}
	for (int i = 0; i < comm->size; i++)
		all[i] = (struct on_node){ mpi_node_number(mpi_comm_peer(comm, i)), i };
	qsort(all, (size_t)comm->size, sizeof(*all), by_node);
	for (int i = 0, first = 0; i < comm->size; i++) {
		if (all[i].node != all[first].node)
			first = i;
		/* the leader's rank for now: nodes are then numbered in the order of their
		 * leaders */
		h->home[all[i].rank] = (struct mpi_shmcoll_home){ all[first].rank, i - first };
	}
	free(all);
	for (int i = 0; i < comm->size; i++) {
		if (h->home[i].slot == 0) {
			h->leader_of[h->nodes] = i;
			h->home[i].node = h->nodes++;
		} else {
			h->home[i].node = h->home[h->home[i].node].node;
		}
	}
	h->counts = malloc((size_t)h->nodes * sizeof(*h->counts));
	h->displs = malloc((size_t)h->nodes * sizeof(*h->displs));
	if (!h->counts || !h->displs)
		return false;
	h->node = h->home[comm->rank].node;
	h->me = h->home[comm->rank].slot;
	for (int i = 0; i < comm->size; i++)
		if (h->home[i].node == h->node)
			h->rank[h->n++] = i;
	return true;
}

/* On a node leader: make the communicator of all leaders. False: out of memory. */
static bool gather_leaders(struct mpi_shmcoll *h)
{
	struct mpi_comm *m = &h->leaders;
	int *world = malloc((size_t)h->nodes * sizeof(*world));

	for (int i = 0; world && i < h->nodes; i++)
		world[i] = mpi_comm_peer(h->comm, h->leader_of[i]);
	if (!world)
		return false;
	m->local = m->remote = mpi_group_make(h->nodes, world);
	if (!m->local)
		return false;
	m->obj.refs = 1; /* it is freed with the area */
	m->context = h->comm->context;
	m->rank = h->node;
	m->size = m->remote_size = h->nodes;
	return true;
}

/* ---- what is shared -------------------------------------------------------------------------- */

static size_t slots_at(void)
{
	return sizeof(struct mpi_shmcoll_shared);
}

static size_t cpus_at(const struct mpi_shmcoll *h)
{
	return slots_at() + (size_t)h->n * sizeof(struct mpi_shmcoll_slot);
}

static size_t flags_at(const struct mpi_shmcoll *h)
{
	return cpus_at(h) + mpi_shmcoll_lines((size_t)h->n * sizeof(*h->cpus));
}

static size_t results_at(const struct mpi_shmcoll *h)
{
	return flags_at(h) + MPI_SHMCOLL_DEPTH * (size_t)h->n * sizeof(struct mpi_shmcoll_flag);
}

static size_t small_slots_at(const struct mpi_shmcoll *h)
{
	return results_at(h) + MPI_SHMCOLL_DEPTH * sizeof(struct mpi_shmcoll_flag);
}

static size_t cells_at(const struct mpi_shmcoll *h)
{
	return small_slots_at(h) +
	       MPI_SHMCOLL_SMALL_SLOTS * (size_t)h->n * sizeof(struct mpi_shmcoll_small_slot);
}

static size_t longs_at(const struct mpi_shmcoll *h)
{
	return cells_at(h) + MPI_SHMCOLL_DEPTH * ((size_t)h->n + 1) * MPI_SHMCOLL_STRIDE;
}

static void lay_out_shmcoll(struct mpi_shmcoll *h, void *memory)
{
	char *at = memory;

	h->shared = memory;
	h->slots = (struct mpi_shmcoll_slot *)(void *)(at + slots_at());
	h->cpus = (_Atomic int32_t *)(void *)(at + cpus_at(h));
	h->flags = (struct mpi_shmcoll_flag *)(void *)(at + flags_at(h));
	h->results = (struct mpi_shmcoll_flag *)(void *)(at + results_at(h));
	h->notes = (struct mpi_shmcoll_small_slot *)(void *)(at + small_slots_at(h));
	h->places = at + cells_at(h);
	h->longs = at + longs_at(h);
}

/* Expose the words that the leaders of other nodes write; their events end a wait in Portals. A
 * put that arrives while this process is in Portals is handled inline, which saves the event. */
static int expose_words(struct mpi_shmcoll *h)
{
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = {
		.start = (void *)h->word,
		.length = sizeof(h->word),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_ACK_DISABLE |
			   PTL_MD_EVENT_START_DISABLE | PTL_MD_INLINE,
		.user_ptr = h,
		.eq_handle = mpi_proto.unexpected,
	};

	return PtlMEMDAttach(mpi_world.ni, MPI_PT_FLAG, any, h->comm->context, 0, PTL_UNLINK,
			     PTL_INS_AFTER, md, PTL_UNLINK, &h->me_handle, NULL);
}

/* Share the pages of this node; its first rank offers them. All ranks must call. True: this
 * rank has what it needs. */
static bool share_area(struct mpi_shmcoll *h, struct mpi_node_segment_key *notes)
{
	struct mpi_node_segment_key mine = { .token = 0 };
	void *memory = NULL;

	h->bytes = longs_at(h) + MPI_SHMCOLL_LONGS * ((size_t)h->n + 1) * MPI_SHMCOLL_LONG_STRIDE;
	if (h->n > 1 && h->n <= RANKS_MOST && h->me == 0)
		memory = mpi_node_segment_offer(h->bytes, &mine);
	if (mpi_coll_allgather_bytes(&mine, notes, sizeof(mine), h->comm))
		return false;
	if (h->n == 1) {
		h->slots = &h->own_slot;
		h->flags = h->own_flags;
		return true;
	}
	if (h->me != 0)
		/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript): h->n > 1 */
		memory = mpi_node_segment_join(h->bytes, &notes[h->rank[0]]);
	if (memory)
		lay_out_shmcoll(h, memory);
	return memory;
}

/* Make the area. The outcome is the same on all ranks. */
static bool make_shmcoll(struct mpi_shmcoll *h)
{
	struct mpi_node_segment_key *notes = malloc((size_t)h->comm->size * sizeof(*notes));
	uint64_t good = notes != NULL;

	/* a rank without memory takes part all the same */
	good &= find_nodes(h);
	if (good && h->nodes > 1 && h->me == 0)
		good = expose_words(h) == PTL_OK && gather_leaders(h);
	else
		h->me_handle = PTL_INVALID_HANDLE;
	if (mpi_coll_allreduce_and(&good, 1, h->comm) || !good) {
		free(notes);
		return false;
	}
	good = share_area(h, notes) ? 1u | (mpi_shmcoll_can_order_all() ? 2u : 0) : 0;
	if (mpi_coll_allreduce_and(&good, 1, h->comm))
		good = 0;
	h->fence = !(good & 2u);
	if (h->me == 0)
		mpi_node_segment_settle(&notes[h->comm->rank]);
	free(notes);
	if ((good & 1u) && h->nodes == 1)
		h->reads = mpi_shmcoll_try_reading(h);
	mpi_shmcoll_path_init(h);
	return good & 1u;
}

void mpi_shmcoll_free(struct mpi_shmcoll *h)
{
	if (!h)
		return;
	if (h->me_handle != PTL_INVALID_HANDLE)
		PtlMEUnlink(h->me_handle);
	mpi_node_segment_leave(h->shared, h->bytes);
	mpi_object_release(h->leaders.local);
	free(h->rank);
	free(h->leader_of);
	free(h->home);
	free(h->counts);
	free(h->displs);
	free(h);
}

static struct mpi_shmcoll *new_shmcoll(struct mpi_comm *comm)
{
	struct mpi_shmcoll *h = aligned_alloc(64, sizeof(*h));

	if (!h)
		return NULL;
	memset(h, 0, sizeof(*h));
	h->comm = comm;
	h->me_handle = PTL_INVALID_HANDLE;
	h->patience_ns = 100000;
	h->mark = comm->calls.history >> (64 - MPI_SHMCOLL_MARK_BITS);
	h->oversubscribed = mpi_coll_oversubscribed_here();
	h->spin = !mpi_node_short();
	h->processors = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	return h;
}

static bool wanted(const struct mpi_comm *comm)
{
	return base_config()->ptl_mpi_shmcoll && comm->size > 1 && !comm->inter && !comm->others;
}

bool mpi_shmcoll_takes_node(const struct mpi_comm *comm)
{
	bool one = wanted(comm) && comm->size <= RANKS_MOST;

	for (int i = 1; one && i < comm->size; i++)
		one = mpi_node_number(mpi_comm_peer(comm, i)) ==
		      mpi_node_number(mpi_comm_peer(comm, 0));
	return one;
}

struct mpi_shmcoll *mpi_shmcoll_of(struct mpi_comm *comm, bool now)
{
	struct mpi_shmcoll *h = comm->shmcoll;

	if (!h && comm->shmcoll_uses <= FIRST_USES) {
		if (!wanted(comm) || (++comm->shmcoll_uses <= FIRST_USES && !now))
			return NULL;
		comm->shmcoll_uses = FIRST_USES + 1;
		comm->calls.nested = true;
		h = new_shmcoll(comm);
		/* a rank without memory even for this tells the others so */
		if (!h) {
			uint64_t good = 0;

			mpi_coll_allreduce_and(&good, 1, comm);
		} else if (!make_shmcoll(h)) {
			mpi_shmcoll_free(h);
			h = NULL;
		}
		comm->calls.nested = false;
		comm->shmcoll = h;
		if (h)
			mpi_shmcoll_advertise_call(h);
	}
	return h;
}
