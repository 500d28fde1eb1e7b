/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Of several threads that wait, the one whose wait began last is shown.
 */
#include "tools/hangs/waits.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"

enum { NAMED_MOST = 3, LINES_MS = 10000 };

/* ---- communicators --------------------------------------------------------------------------- */

static uint32_t listed(uint32_t n, uint32_t most)
{
	return n < most ? n : most;
}

const struct base_wait_comm *comm_of(const struct record *record, uint32_t context)
{
	const struct base_waits_body *b = &record->body;

	for (uint32_t i = 0; i < listed(b->comms, BASE_WAITS_COMMS); i++)
		if (b->comm[i].context == (context & ~1u))
			return &b->comm[i];
	return NULL;
}

const char *comm_text(const struct record *record, uint32_t context, char *text, size_t size)
{
	const struct base_wait_comm *comm = comm_of(record, context);

	if (!comm)
		snprintf(text, size, "a communicator");
	else if (comm->name[0])
		snprintf(text, size, "%s", comm->name);
	else
		snprintf(text, size, "a communicator of %d ranks", comm->size);
	return text;
}

bool is_behind(const struct wait_rows *rows, int rank, const struct base_wait_comm *comm)
{
	const struct rank_seen *r = &rows->job->ranks[rank];
	const struct base_wait_comm *theirs;

	if (!rows->row[rank].waits)
		return false;
	theirs = comm_of(&r->record, comm->context);
	return theirs && theirs->members == comm->members && theirs->calls < comm->calls;
}

/* ---- in words -------------------------------------------------------------------------------- */

const char *tag_text(int tag, char *text, size_t size)
{
	if (tag == BASE_WAITS_ANY)
		snprintf(text, size, "any tag");
	else
		snprintf(text, size, "tag %d", tag);
	return text;
}

/* "from 1 tag 5", with the communicator unless it is the usual one. */
static void peer_text(const struct record *record, const char *towards, int peer, int tag,
		      uint32_t context, char *text, size_t size)
{
	char of_tag[24], comm[64] = "", where[70] = "";

	if (context)
		snprintf(where, sizeof(where), " on %s",
			 comm_text(record, context, comm, sizeof(comm)));
	tag_text(tag, of_tag, sizeof(of_tag));
	if (peer == BASE_WAITS_ANY)
		snprintf(text, size, "%s any rank %s%s", towards, of_tag, where);
	else
		snprintf(text, size, "%s %d %s%s", towards, peer, of_tag, where);
}

static void op_text(const struct record *record, const struct base_wait_op *op, char *text,
		    size_t size)
{
	char comm[64];

	if (op->kind == BASE_WAIT_OP_SEND && !(op->context & 1))
		peer_text(record, "to", op->peer, op->tag, op->context, text, size);
	else if (op->kind == BASE_WAIT_OP_RECV && !(op->context & 1))
		peer_text(record, "from", op->peer, op->tag, op->context, text, size);
	else if (op->kind == BASE_WAIT_OP_OTHER)
		snprintf(text, size, "for an operation that is none of a message");
	else
		snprintf(text, size, "on %s", comm_text(record, op->context, comm, sizeof(comm)));
}

static void any_text(const struct record *record, char *text, size_t size)
{
	const struct base_waits_body *b = &record->body;
	size_t at = (size_t)snprintf(text, size, "for any of:");
	int named = 0;
	char one[120];

	for (uint32_t i = 0; i < listed(b->ops, BASE_WAITS_OPS) && at < size; i++) {
		if (!(b->op[i].flags & BASE_WAIT_OP_AWAITED))
			continue;
		op_text(record, &b->op[i], one, sizeof(one));
		at += (size_t)snprintf(text + at, size - at, "%s %s", named ? "," : "", one);
		if (++named == NAMED_MOST)
			break;
	}
	if (!named)
		snprintf(text, size, "for operations in progress to end");
}

static void wait_what(const struct record *record, const struct base_wait *w, char *text,
		      size_t size)
{
	const struct base_waits_body *b = &record->body;
	char comm[64];

	comm_text(record, w->context, comm, sizeof(comm));
	switch (w->kind) {
	case BASE_WAIT_REQUEST:
		if (w->op != BASE_WAITS_NONE)
			op_text(record, &b->op[w->op], text, size);
		else
			snprintf(text, size, "for a request");
		break;
	case BASE_WAIT_PROBE:
		peer_text(record, "from", w->peer, w->tag, w->context, text, size);
		break;
	case BASE_WAIT_COLLECTIVE:
		snprintf(text, size, "on %s", comm);
		break;
	case BASE_WAIT_LOCK:
		snprintf(text, size, "for the lock of rank %d's window", w->peer);
		break;
	case BASE_WAIT_EPOCH:
		snprintf(text, size, "for rank %d's call on the window", w->peer);
		break;
	default:
		any_text(record, text, size);
	}
}

const char *wait_text(const struct wait_row *row, char *text, size_t size)
{
	snprintf(text, size, "%s %s%s%s%s", row->place.call[0] ? row->place.call : "an MPI call",
		 row->what, row->place.at[0] ? " (" : "", row->place.at,
		 row->place.at[0] ? ")" : "");
	return text;
}

/* ---- whom a rank waits for ------------------------------------------------------------------- */

static int first_behind(const struct wait_rows *rows, const struct base_wait_comm *comm)
{
	for (int i = 0; i < rows->job->size; i++)
		if (is_behind(rows, i, comm))
			return i;
	return RANK_NONE;
}

/* A rank that holds the lock. */
static int holder_of(const struct job_seen *job, const struct base_wait *w)
{
	for (int i = 0; i < job->size; i++) {
		const struct base_waits_body *b = &job->ranks[i].record.body;

		for (uint32_t k = 0; job->ranks[i].pid && k < listed(b->ops, BASE_WAITS_OPS); k++)
			if (b->op[k].kind == BASE_WAIT_OP_LOCKED && b->op[k].peer == w->peer &&
			    b->op[k].context == w->context)
				return i;
	}
	return RANK_NONE;
}

/* The collective that the wait is in: its communicator. NULL: it is in none. */
static const struct base_wait_comm *collective_of(const struct record *record,
						  const struct base_wait *w)
{
	const struct base_wait_op *op = w->op != BASE_WAITS_NONE ? &record->body.op[w->op] : NULL;

	if (w->kind == BASE_WAIT_COLLECTIVE)
		return comm_of(record, w->context);
	if (w->kind != BASE_WAIT_REQUEST || !op)
		return NULL;
	return op->context & 1 || op->kind == BASE_WAIT_OP_COLLECTIVE ? comm_of(record, op->context)
								      : NULL;
}

/* The only rank that any of the operations waits for; RANK_NONE: there are several, or more
 * operations than are listed. */
static int only_peer(const struct base_waits_body *b)
{
	int peer = RANK_NONE;

	for (uint32_t i = 0; i < listed(b->ops, BASE_WAITS_OPS); i++) {
		const struct base_wait_op *op = &b->op[i];

		if (!(op->flags & BASE_WAIT_OP_AWAITED))
			continue;
		if (op->peer < 0 || (peer != RANK_NONE && peer != op->peer))
			return RANK_NONE;
		peer = op->peer;
	}
	return b->ops <= BASE_WAITS_OPS ? peer : RANK_NONE;
}

static int next_of(const struct wait_rows *rows, int rank, const struct base_wait *w)
{
	const struct record *record = &rows->job->ranks[rank].record;
	const struct wait_row *row = &rows->row[rank];
	int next = row->collective ? first_behind(rows, row->collective) : RANK_NONE;

	if (next == RANK_NONE && w->kind == BASE_WAIT_REQUEST && w->op != BASE_WAITS_NONE)
		next = record->body.op[w->op].peer;
	else if (w->kind == BASE_WAIT_PROBE || w->kind == BASE_WAIT_EPOCH)
		next = w->peer;
	else if (w->kind == BASE_WAIT_LOCK)
		next = holder_of(rows->job, w);
	else if (w->kind == BASE_WAIT_ANY)
		next = only_peer(&record->body);
	return next >= 0 && next < rows->job->size ? next : RANK_NONE;
}

/* ---- all ------------------------------------------------------------------------------------- */

static const struct base_wait *shown_wait(const struct record *record)
{
	return &record->body.wait[0];
}

static void read_row(struct wait_rows *rows, int rank, bool lines)
{
	const struct rank_seen *r = &rows->job->ranks[rank];
	const struct base_wait *w = shown_wait(&r->record);
	struct wait_row *row = &rows->row[rank];
	struct symbols *symbols = lines && w->frames ? symbols_open(r->pid) : NULL;

	symbols_place(symbols, r->pid, w->frame, w->frames, &row->place);
	symbols_close(symbols);
	wait_what(&r->record, w, row->what, sizeof(row->what));
	row->collective = collective_of(&r->record, w);
}

bool waits_read(struct wait_rows *rows, const struct job_seen *job)
{
	const uint64_t begin = base_now_ms();

	*rows = (struct wait_rows){ .job = job,
				    .row = calloc((size_t)job->size, sizeof(*rows->row)) };
	if (!rows->row)
		return false;
	for (int i = 0; i < job->size; i++) {
		rows->row[i].next = RANK_NONE;
		rows->row[i].waits = rank_waits(job, &job->ranks[i]);
		if (rows->row[i].waits)
			read_row(rows, i, base_now_ms() - begin < LINES_MS);
	}
	for (int i = 0; i < job->size; i++)
		if (rows->row[i].waits)
			rows->row[i].next = next_of(rows, i, shown_wait(&job->ranks[i].record));
	return true;
}

void waits_free(struct wait_rows *rows)
{
	free(rows->row);
	rows->row = NULL;
}
