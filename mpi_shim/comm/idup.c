/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Comm_idup: groups, topology and attributes are copied at once. The agreement on context
 * numbers goes on in the background. So ranks may call it in any order with respect to their
 * other calls.
 *
 * The agreement is that of the other functions (context.h). Its reductions are sends and
 * receives along a binomial tree to rank 0 and back. In an intercommunicator the two ranks 0
 * exchange their words in between.
 *
 * Until the agreement is reached, the duplicate has a context that no communicator ever gets.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/comm/comm.h"
#include "mpi_shim/coll/calls.h"
#include "mpi_shim/core/context.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/p2p.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/core/hooks.h"

enum place { OFFER, UP, UP_GOT, UP_SENT, BRIDGE, BRIDGED, DOWN, JUDGE };

struct idup {
	struct mpi_hook steps;               /* first member: run_idup() casts it */
	struct mpi_request *request;         /* NULL, as is `copy`: the call failed on this rank */
	struct mpi_comm *comm, *copy, *side; /* comm and copy are referenced */
	int tag;
	enum place place;
	int bit;
	struct mpi_request *op[2]; /* awaited before the next step */
	int err;                   /* the first error; it ends when no message is in progress */
	struct mpi_agree agree;
	uint64_t theirs[MPI_AGREE_WORDS];
};

static MPI_Count length(const struct idup *d)
{
	return d->agree.n * (MPI_Count)sizeof(d->agree.word[0]);
}

static int send_to(struct idup *d, struct mpi_comm *comm, int rank, int op)
{
	return mpi_coll_isend(d->agree.word, length(d), mpi_bytes(), rank, d->tag, comm,
			      &d->op[op]);
}

static int recv_from(struct idup *d, struct mpi_comm *comm, int rank, void *where, int op)
{
	return mpi_coll_irecv(where, length(d), mpi_bytes(), rank, d->tag, comm, &d->op[op]);
}

static void combine_offers(struct idup *d)
{
	for (int i = 0; i < d->agree.n; i++) {
		if (!d->agree.max)
			d->agree.word[i] &= d->theirs[i];
		else if (d->theirs[i] > d->agree.word[i])
			d->agree.word[i] = d->theirs[i];
	}
}

/* Up the tree: receive the next child's words, or send ours to the parent. */
static int idup_up(struct idup *d)
{
	int me = d->side->rank, size = d->side->size;

	for (; d->bit < size; d->bit <<= 1) {
		if (me & d->bit) {
			d->place = UP_SENT;
			return send_to(d, d->side, me - d->bit, 0);
		}
		if (me + d->bit < size) {
			d->place = UP_GOT;
			return recv_from(d, d->side, me + d->bit, d->theirs, 0);
		}
	}
	d->place = d->comm->inter ? BRIDGE : DOWN;
	return MPI_SUCCESS;
}

static int bridge(struct idup *d)
{
	int err = recv_from(d, d->comm, 0, d->theirs, 0);

	d->place = BRIDGED;
	return err == MPI_SUCCESS ? send_to(d, d->comm, 0, 1) : err;
}

static int down(struct idup *d)
{
	int me = d->side->rank, size = d->side->size;

	for (d->bit >>= 1; d->bit > 0; d->bit >>= 1)
		if (me + d->bit < size)
			return send_to(d, d->side, me + d->bit, 0);
	d->place = JUDGE;
	return MPI_SUCCESS;
}

static int next_step(struct idup *d)
{
	switch (d->place) {
	case OFFER:
		mpi_agree_offer(&d->agree);
		d->bit = 1;
		d->place = UP;
		return MPI_SUCCESS;
	case UP:
		return idup_up(d);
	case UP_GOT:
		combine_offers(d);
		d->bit <<= 1;
		d->place = UP;
		return MPI_SUCCESS;
	case UP_SENT:
		d->place = DOWN;
		return recv_from(d, d->side, d->side->rank - d->bit, d->agree.word, 0);
	case BRIDGE:
		return bridge(d);
	case BRIDGED:
		combine_offers(d);
		d->place = DOWN;
		return MPI_SUCCESS;
	case DOWN:
		return down(d);
	default:
		return MPI_SUCCESS;
	}
}

static void keep_error(struct idup *d, int err)
{
	if (err == MPI_SUCCESS || d->err != MPI_SUCCESS)
		return;
	d->err = err;
	if (d->request)
		mpi_request_fail(d->request, err, "%s", mpi_fail_text());
}

/* Finish the messages in progress. False: some are still in progress. */
static bool ops_over(struct idup *d)
{
	for (int i = 0; i < 2; i++) {
		int e;

		if (!d->op[i])
			continue;
		if (!d->op[i]->done)
			return false;
		e = mpi_request_finish(d->op[i], MPI_STATUS_IGNORE);
		d->op[i] = NULL;
		keep_error(d, e);
	}
	return true;
}

static bool end_idup(struct idup *d)
{
	if (d->err != MPI_SUCCESS) {
		mpi_agree_abandon(&d->agree);
	} else {
		d->copy->context = d->agree.context[0];
		mpi_calls_forget(d->agree.context[0]);
		if (d->copy->local_comm)
			d->copy->local_comm->context = d->agree.context[1];
	}
	if (d->request)
		mpi_request_done(d->request);
	mpi_object_release(d->copy);
	mpi_object_release(d->comm);
	free(d);
	return true;
}

static bool run_idup(struct mpi_hook *s)
{
	struct idup *d = (struct idup *)s;

	while (ops_over(d)) {
		if (d->err == MPI_SUCCESS && d->place == JUDGE) {
			d->place = OFFER;
			if (!mpi_agree_judge(&d->agree))
				continue;
			keep_error(d, d->agree.error);
			return end_idup(d);
		}
		if (d->err != MPI_SUCCESS)
			return end_idup(d);
		keep_error(d, next_step(d));
	}
	return false;
}

/* Make the duplicate, except for its contexts. */
static int prepare_copy(struct mpi_comm *comm, struct mpi_info *info, struct mpi_comm **copy)
{
	static const uint32_t none[2] = { MPI_CONTEXT_NONE, MPI_CONTEXT_NONE };
	int err = mpi_comm_make_agreed(none, comm->local, comm->inter ? comm->remote : NULL, comm,
				       copy);

	return err == MPI_SUCCESS ? mpi_comm_complete_dup(comm, info, copy) : err;
}

int mpi_comm_idup_with_info(struct mpi_comm *comm, struct mpi_info *info, struct mpi_comm **out,
			    struct mpi_request **request)
{
	struct mpi_comm *copy = NULL;
	struct idup *d;
	int err = prepare_copy(comm, info, &copy);

	d = calloc(1, sizeof(*d));
	*request = d && !err ? mpi_request_new(MPI_REQ_HOOK) : NULL;
	if (!err && !*request) {
		mpi_comm_unmake(copy);
		err = mpi_fail_memory("a request");
	}
	if (!d)
		return err;
	if (*request)
		(*request)->comm = mpi_object_keep(comm);
	/* take part after an error, too: the others wait for this rank */
	d->steps.run = run_idup;
	d->request = *request;
	d->comm = mpi_object_keep(comm);
	d->copy = err ? NULL : mpi_object_keep(copy);
	d->side = comm->inter ? comm->local_comm : comm;
	d->tag = MPI_TAG_COMM_IDUP + (int)(comm->idups++ & 0xffffff);
	mpi_agree_begin(&d->agree, err, comm->inter ? 2 : 1);
	if (!err)
		*out = copy;
	mpi_hooks_start(&d->steps);
	return err;
}

int mpi_comm_idup(struct mpi_comm *comm, struct mpi_comm **out, struct mpi_request **request)
{
	return mpi_comm_idup_with_info(comm, NULL, out, request);
}
