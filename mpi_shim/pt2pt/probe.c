/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Probes, and matched probes, which take the message off the list for a later MPI_Mrecv.
 */
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/events.h"
#include "mpi_shim/core/waiting.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

struct mpi_message {
	struct mpi_obj obj;
	struct mpi_unexpected *u; /* NULL: from MPI_PROC_NULL */
	struct mpi_comm *comm;    /* referenced: errors of its receive go there */
};

static struct mpi_message no_proc;

static void destroy_message(void *object)
{
	mpi_object_release(((struct mpi_message *)object)->comm);
}

void mpi_probe_init(void)
{
	mpi_pool_setup(MPI_KIND_MESSAGE, sizeof(struct mpi_message), destroy_message);
	no_proc.comm = &mpi_comm_self;
	mpi_object_predefine(&no_proc, MPI_KIND_MESSAGE, (uint32_t)(uintptr_t)MPI_MESSAGE_NO_PROC);
}

/* Fails if the source has died: no such message has come, and none will. */
static int fail_for_failed_source(const struct mpi_comm *comm, int source)
{
	int rank = mpi_failed_source(comm, source);

	return rank < 0 ? MPI_SUCCESS
			: mpi_fail(MPI_ERR_PROC_ABORTED,
				   "rank %d has sent no such message, and will not: %s", rank,
				   mpi_failed_text(mpi_comm_peer(comm, rank), PTL_NI_OK));
}

/* Finds the first message that matches: *found, or NULL. */
static int search_messages(const struct mpi_comm *comm, int source, int tag, bool wait,
			   struct mpi_unexpected **found)
{
	const unsigned int open = mpi_open_of(source, tag);
	uint64_t bits = mpi_bits(0, comm->context, source, tag) & ~mpi_open_bits[open];
	bool watched = false;
	int err = MPI_SUCCESS;

	while (!(*found = mpi_unexpected_find(bits, open)) && !err) {
		bool any;

		if (wait && mpi_events_watched && !watched) {
			watched = true;
			mpi_event_wait_probe(MPI_EVENT_WAIT_BEGIN, comm, source, tag);
		}
		any = mpi_progress(wait);
		*found = mpi_unexpected_find(bits, open);
		if (*found || (!wait && any))
			break;
		err = any ? MPI_SUCCESS : fail_for_failed_source(comm, source);
		if (!wait)
			break;
	}
	if (watched)
		mpi_event_wait_probe(MPI_EVENT_WAIT_END, comm, source, tag);
	return err;
}

static int search_message(const struct mpi_comm *comm, int source, int tag, bool wait,
			  struct mpi_unexpected **found)
{
	const int world = source == MPI_ANY_SOURCE ? BASE_WAITS_ANY : mpi_comm_peer(comm, source);
	struct mpi_wait waits;
	int err;

	if (!wait)
		return search_messages(comm, source, tag, false, found);
	mpi_wait_begin(&waits, BASE_WAIT_PROBE, comm, world, tag, 0);
	err = search_messages(comm, source, tag, true, found);
	mpi_wait_end(&waits);
	return err;
}

static void show_status(const struct mpi_unexpected *u, MPI_Status *status)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	status->MPI_SOURCE = mpi_bits_source(u->bits);
	status->MPI_TAG = mpi_bits_tag(u->bits);
	mpi_status_set_bytes(status, u->bytes, false);
}

static int probe(int source, int tag, struct mpi_comm *comm, bool wait, int *flag,
		 MPI_Status *status)
{
	struct mpi_unexpected *u;
	int err;

	*flag = 1;
	if (source == MPI_PROC_NULL) {
		mpi_status_none(status, MPI_PROC_NULL);
		return MPI_SUCCESS;
	}
	err = search_message(comm, source, tag, wait, &u);
	*flag = u != NULL;
	if (u)
		show_status(u, status);
	return err;
}

int mpi_probe(int source, int tag, struct mpi_comm *comm, MPI_Status *status)
{
	int flag;

	return probe(source, tag, comm, true, &flag, status);
}

int mpi_iprobe(int source, int tag, struct mpi_comm *comm, int *flag, MPI_Status *status)
{
	return probe(source, tag, comm, false, flag, status);
}

static int mprobe(int source, int tag, struct mpi_comm *comm, bool wait, int *flag,
		  struct mpi_message **message, MPI_Status *status)
{
	struct mpi_message *m = NULL;
	struct mpi_unexpected *u;
	int err;

	*flag = 1;
	*message = &no_proc;
	if (source == MPI_PROC_NULL) {
		mpi_status_none(status, MPI_PROC_NULL);
		return MPI_SUCCESS;
	}
	*message = NULL;
	do {
		err = search_message(comm, source, tag, wait, &u);
		if (err || !u)
			break;
		if (!m)
			m = mpi_object_new(MPI_KIND_MESSAGE);
		err = m ? mpi_unexpected_take(&u)
			: mpi_fail(MPI_ERR_NO_MEM, "no memory for a message handle");
	} while (!err && !u && wait); /* without `wait` the caller may ask again */
	*flag = !err && u;
	if (!*flag) {
		if (m) {
			m->comm = NULL;
			mpi_object_release(m);
		}
		return err;
	}
	show_status(u, status);
	m->u = u;
	m->comm = mpi_object_keep(comm);
	*message = m;
	return MPI_SUCCESS;
}

int mpi_mprobe(int source, int tag, struct mpi_comm *comm, struct mpi_message **message,
	       MPI_Status *status)
{
	int flag;

	return mprobe(source, tag, comm, true, &flag, message, status);
}

int mpi_improbe(int source, int tag, struct mpi_comm *comm, int *flag, struct mpi_message **message,
		MPI_Status *status)
{
	return mprobe(source, tag, comm, false, flag, message, status);
}

int mpi_imrecv(void *buf, MPI_Count count, struct mpi_type *datatype, struct mpi_message **message,
	       struct mpi_request **request)
{
	struct mpi_message *m = *message;
	struct mpi_request *r;
	int err;

	if (!m)
		return mpi_fail(MPI_ERR_REQUEST, "the message is MPI_MESSAGE_NULL");
	err = mpi_recv_prepare(buf, count, datatype, MPI_PROC_NULL, MPI_ANY_TAG, m->comm, 0, &r);
	if (err)
		return err;
	if (m->u && mpi_event_watched(MPI_EVENT_MATCHED))
		mpi_event_message(MPI_EVENT_MATCHED, m->comm->context, mpi_bits_source(m->u->bits),
				  mpi_bits_tag(m->u->bits), m->u->bytes, true);
	if (m->u)
		mpi_recv_take(r, m->u);
	else
		err = mpi_recv_launch(r); /* as from MPI_PROC_NULL */
	mpi_object_release(m);
	*message = NULL;
	*request = r;
	return err;
}

int mpi_mrecv(void *buf, MPI_Count count, struct mpi_type *datatype, struct mpi_message **message,
	      MPI_Status *status)
{
	struct mpi_request *r = NULL;
	int err = mpi_imrecv(buf, count, datatype, message, &r);

	if (err)
		return err;
	mpi_request_wait(r);
	return mpi_request_finish(r, status);
}
