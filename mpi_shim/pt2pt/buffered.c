/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Buffered sends: see buffered.h. The user's buffer is a list of segments in the order of their
 * addresses. Each segment has a header in the buffer itself; the standard grants
 * MPI_BSEND_OVERHEAD bytes per message. A new segment goes into the first gap that is large
 * enough.
 */
#include "mpi_shim/pt2pt/buffered.h"

#include <assert.h>

#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/waiting.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

struct segment {
	struct mpi_buffer *of;
	struct segment *next, *prev;
	size_t size;     /* including the header */
	uint64_t number; /* order of the sends */
	_Alignas(16) char data[];
};

static_assert(sizeof(struct segment) + 16 <= MPI_BSEND_OVERHEAD, "what users are told to add");

struct mpi_buffer {
	char *start; /* aligned */
	char *end;
	void *user; /* as attached */
	MPI_Count user_size;
	bool automatic; /* MPI_BUFFER_AUTOMATIC: malloc */
	struct segment *first;
	uint64_t numbers; /* last number given to a segment */
	/* Requests of MPI_Buffer_iflush. Each waits until all segments up to its number are
	 * free. */
	struct mpi_request *flushes;
};

static struct mpi_buffer *of_process;

/* ---- segments -------------------------------------------------------------------------------- */

static struct segment *link_after(struct mpi_buffer *b, struct segment *prev, struct segment *s,
				  size_t size)
{
	struct segment *next = prev ? prev->next : b->first;

	*s = (struct segment){
		.of = b, .next = next, .prev = prev, .size = size, .number = ++b->numbers
	};
	if (prev)
		prev->next = s;
	else
		b->first = s;
	if (next)
		next->prev = s;
	return s;
}

static struct segment *allocate_segment(struct mpi_buffer *b, size_t bytes)
{
	size_t size = sizeof(struct segment) + ((bytes + 15) & ~(size_t)15);
	struct segment *prev = NULL, *s;
	char *at = b->start;

	if (b->automatic) {
		s = malloc(size);
		return s ? link_after(b, NULL, s, size) : NULL;
	}
	for (s = b->first; s; prev = s, s = s->next) {
		if ((size_t)((char *)s - at) >= size)
			break;
		at = (char *)s + s->size;
	}
	if ((size_t)((s ? (char *)s : b->end) - at) < size)
		return NULL;
	return link_after(b, prev, (struct segment *)(void *)at, size);
}

/* Returns the lowest number of the segments in use; UINT64_MAX: none is. */
static uint64_t oldest_number(const struct mpi_buffer *b)
{
	uint64_t oldest = UINT64_MAX;

	for (const struct segment *s = b->first; s; s = s->next)
		oldest = s->number < oldest ? s->number : oldest;
	return oldest;
}

static void end_flushes(struct mpi_buffer *b)
{
	const uint64_t oldest = oldest_number(b);
	struct mpi_request **at = &b->flushes, *r;

	while ((r = *at) != NULL) {
		if (r->number >= oldest) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		mpi_request_done(r);
	}
}

void mpi_buffered_over(void *data)
{
	struct segment *s =
		(struct segment *)(void *)((char *)data - offsetof(struct segment, data));
	struct mpi_buffer *b = s->of;

	if (s->prev)
		s->prev->next = s->next;
	else
		b->first = s->next;
	if (s->next)
		s->next->prev = s->prev;
	if (b->automatic)
		free(s);
	if (b->flushes)
		end_flushes(b);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Makes progress while there is no room, since sends that end free their segments. */
static struct segment *find_buffer_room(struct mpi_buffer *b, size_t bytes)
{
	struct segment *s = allocate_segment(b, bytes);

	while (!s && mpi_progress(false))
		s = allocate_segment(b, bytes);
	return s;
}

/* The buffer of the communicator, else of its session, else of the process (MPI-4.1 §3.6). */
static struct mpi_buffer *buffer_for(const struct mpi_comm *comm)
{
	const struct mpi_session *session = NULL;

	if (comm->session)
		session = mpi_object_of((void *)(uintptr_t)comm->session, MPI_KIND_SESSION);
	if (comm->buffer)
		return comm->buffer;
	return session ? session->buffer : of_process;
}

int mpi_buffered_launch(struct mpi_request *r)
{
	struct mpi_buffer *b = buffer_for(r->comm);
	struct mpi_request *own;
	struct segment *s;
	int err;

	if (!b)
		return mpi_fail(MPI_ERR_BUFFER,
				"no buffer is attached: call MPI_Buffer_attach first");
	s = find_buffer_room(b, (size_t)r->bytes);
	if (!s)
		return mpi_fail(MPI_ERR_BUFFER,
				"the attached buffer of %lld bytes has no room for %lld bytes more",
				(long long)b->user_size, (long long)r->bytes);
	mpi_type_pack_bytes(r->type, r->buf, r->count, 0, s->data, (size_t)r->bytes);
	err = mpi_send_prepare(s->data, r->bytes, mpi_type_of(MPI_BYTE), r->peer, r->tag, r->comm,
			       r->context, MPI_SEND_STANDARD, &own);
	if (err) {
		mpi_buffered_over(s->data);
		return err;
	}
	own->segment = s->data;
	own->freed = true;
	err = mpi_send_launch(own);
	if (err)
		mpi_object_release(own); /* also frees the segment */
	else
		mpi_request_done(r);
	return err;
}

/* ---- attaching ------------------------------------------------------------------------------- */

static int attach_buffer(struct mpi_buffer **at, void *buffer, MPI_Count size)
{
	struct mpi_buffer *b;

	if (*at)
		return mpi_fail(MPI_ERR_BUFFER, "a buffer is attached already: detach it first");
	if (size < 0)
		return mpi_fail(MPI_ERR_ARG, "size %lld is negative", (long long)size);
	b = calloc(1, sizeof(*b));
	if (!b)
		return mpi_fail(MPI_ERR_NO_MEM, "no memory to note the buffer");
	b->user = buffer;
	b->user_size = size;
	b->automatic = buffer == MPI_BUFFER_AUTOMATIC;
	if (!b->automatic) {
		b->start = (char *)(((uintptr_t)buffer + 15) & ~(uintptr_t)15);
		b->end = (char *)buffer + size;
		if (b->end < b->start)
			b->end = b->start;
	}
	*at = b;
	return MPI_SUCCESS;
}

/* Waits until the messages up to this number have left the buffer. */
static void await_buffer(const struct mpi_buffer *b, uint64_t last)
{
	struct mpi_wait wait;

	mpi_wait_begin(&wait, BASE_WAIT_ANY, NULL, BASE_WAITS_ANY, BASE_WAITS_ANY, 0);
	while (b->first && oldest_number(b) <= last)
		mpi_progress(true);
	mpi_wait_end(&wait);
}

static int flush_buffer(const struct mpi_buffer *b)
{
	if (b)
		await_buffer(b, b->numbers);
	return MPI_SUCCESS;
}

static int detach_buffer(struct mpi_buffer **at, void *buffer_addr, MPI_Count *size)
{
	struct mpi_buffer *b = *at;

	if (!b)
		return mpi_fail(MPI_ERR_BUFFER, "no buffer is attached");
	await_buffer(b, UINT64_MAX);
	*(void **)buffer_addr = b->user;
	*size = b->automatic ? 0 : b->user_size;
	*at = NULL;
	free(b);
	return MPI_SUCCESS;
}

static int iflush(struct mpi_buffer *b, struct mpi_request **request)
{
	struct mpi_request *r;

	if (!b || !b->first) {
		*request = mpi_object_keep(&mpi_request_sent);
		return MPI_SUCCESS;
	}
	r = mpi_request_new(MPI_REQ_SEND);
	if (!r)
		return MPI_ERR_NO_MEM;
	r->peer = MPI_PROC_NULL;
	r->number = b->numbers;
	r->next = b->flushes;
	b->flushes = r;
	*request = r;
	return MPI_SUCCESS;
}

int mpi_buffer_attach(void *buffer, MPI_Count size)
{
	return attach_buffer(&of_process, buffer, size);
}

int mpi_buffer_detach(void *buffer_addr, MPI_Count *size)
{
	return detach_buffer(&of_process, buffer_addr, size);
}

int mpi_buffer_flush(void)
{
	return flush_buffer(of_process);
}

int mpi_buffer_iflush(struct mpi_request **request)
{
	return iflush(of_process, request);
}

int mpi_comm_attach_buffer(struct mpi_comm *comm, void *buffer, MPI_Count size)
{
	return attach_buffer(&comm->buffer, buffer, size);
}

int mpi_comm_detach_buffer(struct mpi_comm *comm, void *buffer_addr, MPI_Count *size)
{
	return detach_buffer(&comm->buffer, buffer_addr, size);
}

int mpi_comm_flush_buffer(struct mpi_comm *comm)
{
	return flush_buffer(comm->buffer);
}

int mpi_comm_iflush_buffer(struct mpi_comm *comm, struct mpi_request **request)
{
	return iflush(comm->buffer, request);
}

int mpi_session_attach_buffer(struct mpi_session *session, void *buffer, MPI_Count size)
{
	return attach_buffer(&session->buffer, buffer, size);
}

int mpi_session_detach_buffer(struct mpi_session *session, void *buffer_addr, MPI_Count *size)
{
	return detach_buffer(&session->buffer, buffer_addr, size);
}

int mpi_session_flush_buffer(struct mpi_session *session)
{
	return flush_buffer(session->buffer);
}

int mpi_session_iflush_buffer(struct mpi_session *session, struct mpi_request **request)
{
	return iflush(session->buffer, request);
}

void mpi_buffered_end(struct mpi_buffer **at)
{
	if (!*at)
		return;
	flush_buffer(*at);
	free(*at);
	*at = NULL;
}

void mpi_buffered_fini(void)
{
	mpi_buffered_end(&of_process);
}
