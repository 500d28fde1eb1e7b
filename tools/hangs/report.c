/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The report. Ranks are numbers in MPI_COMM_WORLD everywhere.
 */
#include "tools/hangs/report.h"

#include <stdlib.h>
#include <string.h>

#include "tools/hangs/waits.h"

enum { RANKS_MOST = 64, CHAIN_MOST = 16, MESSAGES_MOST = 16 };

/* ---- numbers --------------------------------------------------------------------------------- */

/* Ranks as text: "rank 3", "ranks 0-2, 5". */
static void print_ranks(FILE *out, const bool *in, int size)
{
	int n = 0, parts = 0;

	for (int i = 0; i < size; i++)
		n += in[i];
	fprintf(out, n == 1 ? "rank " : "ranks ");
	for (int i = 0; i < size; i++) {
		int last = i;

		if (!in[i])
			continue;
		while (last + 1 < size && in[last + 1])
			last++;
		fprintf(out, "%s%d", parts++ ? ", " : "", i);
		if (last > i)
			fprintf(out, "%s%d", last > i + 1 ? "-" : ", ", last);
		i = last;
	}
}

static int count_in(const bool *in, int size)
{
	int n = 0;

	for (int i = 0; i < size; i++)
		n += in[i];
	return n;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const char *state_text(char state)
{
	switch (state) {
	case 'R':
		return "runs";
	case 'T':
	case 't':
		return "is stopped";
	case 'D':
		return "waits for a device";
	case 'Z':
		return "has ended";
	default:
		return "sleeps";
	}
}

static double age_s(const struct wait_rows *rows, int64_t since_ms)
{
	return (double)(rows->job->now_ms - since_ms) / 1000;
}

/* The length of the message that is waited for, and the age of its request if that is older. */
static void print_op(FILE *out, const struct wait_rows *rows, const struct base_wait *w,
		     const struct base_wait_op *op)
{
	if (!(op->context & 1) && op->kind == BASE_WAIT_OP_SEND)
		fprintf(out, ", %lld bytes", (long long)op->bytes);
	if (!(op->context & 1) && op->kind == BASE_WAIT_OP_RECV)
		fprintf(out, ", at most %lld bytes", (long long)op->bytes);
	if (w->since_ms - op->since_ms >= 1000)
		fprintf(out, ", begun %.1f s ago", age_s(rows, op->since_ms));
	if (op->flags & BASE_WAIT_OP_MOVES)
		fprintf(out, ", on its way");
}

static void print_rank(FILE *out, const struct wait_rows *rows, int rank)
{
	const struct rank_seen *r = &rows->job->ranks[rank];
	const struct wait_row *row = &rows->row[rank];
	const struct base_waits_body *b = &r->record.body;
	char text[512];

	if (!row->waits) {
		fprintf(out, "  rank %-4d pid %-8d does not wait in MPI; it %s\n", rank,
			(int)r->pid, state_text(process_state(r->pid)));
		return;
	}
	fprintf(out, "  rank %-4d pid %-8d %s", rank, (int)r->pid,
		wait_text(row, text, sizeof(text)));
	if (b->wait[0].op != BASE_WAITS_NONE)
		print_op(out, rows, &b->wait[0], &b->op[b->wait[0].op]);
	fprintf(out, ", for %.1f s", age_s(rows, b->wait[0].since_ms));
	if (b->waits > 1)
		fprintf(out, "; %u more threads wait", b->waits - 1);
	fputc('\n', out);
}

static void print_table(FILE *out, const struct wait_rows *rows)
{
	const struct job_seen *job = rows->job;
	int printed = 0;

	fprintf(out, "%s: %d ranks, %d of them on this node\n",
		job->program[0] ? job->program : "a job", job->size, job->here);
	for (int i = 0; i < job->size && printed < RANKS_MOST; i++)
		if (job->ranks[i].pid) {
			print_rank(out, rows, i);
			printed++;
		}
	if (printed < job->here)
		fprintf(out, "  and %d more\n", job->here - printed);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static bool same_place(const struct wait_row *a, const struct wait_row *b)
{
	return a->waits && b->waits && !strcmp(a->place.call, b->place.call) &&
	       !strcmp(a->place.at, b->place.at) && a->place.at[0];
}

/* One line for each place in which several ranks wait. */
static void print_groups(FILE *out, const struct wait_rows *rows, bool *in)
{
	const int size = rows->job->size;
	bool *done = calloc((size_t)size, sizeof(*done));

	for (int i = 0; done && i < size; i++) {
		memset(in, 0, (size_t)size * sizeof(*in));
		for (int k = i; k < size && !done[i]; k++)
			in[k] = !done[k] && same_place(&rows->row[i], &rows->row[k]);
		for (int k = i; k < size; k++)
			done[k] |= in[k];
		if (count_in(in, size) < 2)
			continue;
		fprintf(out, "in one place: ");
		print_ranks(out, in, size);
		fprintf(out, " in %s (%s)\n", rows->row[i].place.call, rows->row[i].place.at);
	}
	free(done);
}

/* ---- who waits for whom ---------------------------------------------------------------------- */

/* Prints the way from a rank to the next, up to one that has been there. Marks those passed with
 * `mark`. */
static void print_chain(FILE *out, const struct wait_rows *rows, int from, int *seen, int mark)
{
	int printed = 0;

	fprintf(out, "waits for: ");
	for (int i = from; i != RANK_NONE; i = rows->row[i].next) {
		if (printed++ == CHAIN_MOST) {
			fprintf(out, " -> ...");
			break;
		}
		fprintf(out, "%s%d", printed > 1 ? " -> " : "", i);
		if (seen[i])
			break;
		seen[i] = mark;
	}
	fputc('\n', out);
}

static void print_chains(FILE *out, const struct wait_rows *rows, int *seen, bool *awaited)
{
	const int size = rows->job->size;

	memset(seen, 0, (size_t)size * sizeof(*seen));
	memset(awaited, 0, (size_t)size * sizeof(*awaited));
	for (int i = 0; i < size; i++)
		if (rows->row[i].next != RANK_NONE)
			awaited[rows->row[i].next] = true;
	/* those that nobody waits for first, then the cycles that are left */
	for (int others = 0; others < 2; others++)
		for (int i = 0; i < size; i++)
			if (!seen[i] && rows->row[i].next != RANK_NONE && (others || !awaited[i]))
				print_chain(out, rows, i, seen, 1);
}

static void print_cycle(FILE *out, const struct wait_rows *rows, int from)
{
	char text[512];
	int i = from, printed = 0;

	fprintf(out, "deadlock: ");
	do {
		if (printed++ == CHAIN_MOST) {
			fprintf(out, ", ...");
			break;
		}
		fprintf(out, "%srank %d %s", i == from ? "" : ", ", i,
			wait_text(&rows->row[i], text, sizeof(text)));
		i = rows->row[i].next;
	} while (i != from);
	fputc('\n', out);
}

/* Each rank has one successor at most: a walk that meets its own mark has closed a cycle. */
static void print_cycles(FILE *out, const struct wait_rows *rows, int *seen)
{
	const int size = rows->job->size;

	memset(seen, 0, (size_t)size * sizeof(*seen));
	for (int start = 0; start < size; start++) {
		int i = start;

		while (i != RANK_NONE && !seen[i]) {
			seen[i] = start + 1;
			i = rows->row[i].next;
		}
		if (i != RANK_NONE && seen[i] == start + 1 && rows->row[i].waits)
			print_cycle(out, rows, i);
	}
}

/* ---- collectives ----------------------------------------------------------------------------- */

static bool same_collective(const struct base_wait_comm *a, const struct base_wait_comm *b)
{
	return a && b && a->context == b->context && a->members == b->members &&
	       a->calls == b->calls;
}

/* The first rank that is in this collective, so that each is told of once. */
static bool is_first_in(const struct wait_rows *rows, int rank)
{
	for (int i = 0; i < rank; i++)
		if (same_collective(rows->row[i].collective, rows->row[rank].collective))
			return false;
	return true;
}

static void print_missing(FILE *out, const struct wait_rows *rows,
			  const struct base_wait_comm *comm)
{
	char text[512];

	for (int i = 0; i < rows->job->size; i++)
		if (is_behind(rows, i, comm))
			fprintf(out, "; rank %d is not in it, but in %s", i,
				wait_text(&rows->row[i], text, sizeof(text)));
		else if (rows->job->ranks[i].pid && !rows->row[i].waits && comm->context == 0)
			fprintf(out, "; rank %d does not wait in MPI", i);
}

static void print_collectives(FILE *out, const struct wait_rows *rows, bool *in)
{
	const int size = rows->job->size;
	char name[64];

	for (int i = 0; i < size; i++) {
		const struct base_wait_comm *comm = rows->row[i].collective;

		if (!comm || !is_first_in(rows, i))
			continue;
		for (int k = 0; k < size; k++)
			in[k] = same_collective(rows->row[k].collective, comm);
		if (count_in(in, size) == comm->size)
			continue;
		fprintf(out, "collective: ");
		print_ranks(out, in, size);
		fprintf(out, " of %d in %s on %s", comm->size,
			rows->row[i].place.call[0] ? rows->row[i].place.call : "a collective",
			comm_text(&rows->job->ranks[i].record, comm->context, name, sizeof(name)));
		print_missing(out, rows, comm);
		fputc('\n', out);
	}
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The message that a posted receive or a probe waits for. */
struct wanted {
	int source, tag;
	uint32_t context;
};

enum { DIFFERS_TAG = 1, DIFFERS_SOURCE = 2, DIFFERS_COMM = 4 };

static unsigned int differs(const struct base_wait_message *m, const struct wanted *w)
{
	return (w->tag != BASE_WAITS_ANY && w->tag != m->tag ? DIFFERS_TAG : 0) |
	       (w->source != BASE_WAITS_ANY && w->source != m->source ? DIFFERS_SOURCE : 0) |
	       (w->context != m->context ? DIFFERS_COMM : 0);
}

/* Takes `w` if it differs in fewer points than the best so far. A message may match another
 * receive than the one that was meant, so 0 is no reason to stop. */
static void take_nearer(const struct base_wait_message *m, const struct wanted *w, int *best,
			struct wanted *nearest)
{
	const int n = __builtin_popcount(differs(m, w));

	if (n >= *best)
		return;
	*best = n;
	*nearest = *w;
}

/* Finds the receive or probe of the rank that is nearest to the message. False: there is none. */
static bool find_nearest(const struct record *record, const struct base_wait_message *m,
			 struct wanted *nearest)
{
	const struct base_waits_body *b = &record->body;
	int best = 4;

	for (uint32_t i = 0; i < b->ops && i < BASE_WAITS_OPS; i++) {
		const struct base_wait_op *op = &b->op[i];
		const struct wanted w = { op->peer, op->tag, op->context };

		if (op->kind == BASE_WAIT_OP_RECV && !(op->context & 1))
			take_nearer(m, &w, &best, nearest);
	}
	for (uint32_t i = 0; i < b->waits && i < BASE_WAITS_MOST; i++) {
		const struct base_wait *p = &b->wait[i];
		const struct wanted w = { p->peer, p->tag, p->context };

		if (p->kind == BASE_WAIT_PROBE)
			take_nearer(m, &w, &best, nearest);
	}
	return best < 4;
}

static void print_difference(FILE *out, const struct record *record,
			     const struct base_wait_message *m, const struct wanted *w)
{
	const unsigned int in = differs(m, w);
	const char *comma = "";
	char one[64], other[64];

	fprintf(out, "; what is nearest to it, from ");
	if (w->source == BASE_WAITS_ANY)
		fprintf(out, "any rank");
	else
		fprintf(out, "%d", w->source);
	fprintf(out, " %s, differs in ", tag_text(w->tag, one, sizeof(one)));
	if (in & DIFFERS_TAG) {
		fprintf(out, "tag: %d and %d", m->tag, w->tag);
		comma = ", ";
	}
	if (in & DIFFERS_SOURCE) {
		fprintf(out, "%ssource: %d and %d", comma, m->source, w->source);
		comma = ", ";
	}
	if (in & DIFFERS_COMM)
		fprintf(out, "%scommunicator: %s and %s", comma,
			comm_text(record, m->context, one, sizeof(one)),
			comm_text(record, w->context, other, sizeof(other)));
}

static void print_message(FILE *out, const struct record *record, int rank,
			  const struct base_wait_message *m)
{
	struct wanted nearest = { 0 };
	char name[64];

	fprintf(out, "not received: rank %d has a message of %lld bytes from %d with tag %d on %s",
		rank, (long long)m->bytes, m->source, m->tag,
		comm_text(record, m->context, name, sizeof(name)));
	if (find_nearest(record, m, &nearest) && differs(m, &nearest))
		print_difference(out, record, m, &nearest);
	fputc('\n', out);
}

static void print_messages(FILE *out, const struct wait_rows *rows)
{
	int printed = 0;

	for (int i = 0; i < rows->job->size; i++) {
		const struct record *record = &rows->job->ranks[i].record;
		uint32_t n = rows->row[i].waits ? record->body.messages : 0;

		for (uint32_t k = 0; k < n && k < BASE_WAITS_MESSAGES; k++) {
			if (printed++ == MESSAGES_MOST) {
				fprintf(out, "not received: more messages\n");
				return;
			}
			print_message(out, record, i, &record->body.message[k]);
		}
	}
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void print_unknown(FILE *out, const struct job_seen *job, bool *in)
{
	for (int i = 0; i < job->size; i++)
		in[i] = !job->ranks[i].pid;
	if (!count_in(in, job->size))
		return;
	fprintf(out, "not known here: ");
	print_ranks(out, in, job->size);
	fprintf(out, "; on another node, or outside of MPI_Init and MPI_Finalize\n");
}

void report_job(FILE *out, const struct job_seen *job)
{
	int *seen = calloc((size_t)job->size, sizeof(*seen));
	bool *in = calloc((size_t)job->size, sizeof(*in));
	struct wait_rows rows = { .row = NULL };
	const char *why_not = symbols_why_not();

	if (seen && in && waits_read(&rows, job)) {
		print_table(out, &rows);
		print_groups(out, &rows, in);
		print_chains(out, &rows, seen, in);
		print_cycles(out, &rows, seen);
		print_collectives(out, &rows, in);
		print_messages(out, &rows);
		print_unknown(out, job, in);
		if (why_not)
			fprintf(out, "lines of the program are not known: %s\n", why_not);
	} else {
		fprintf(out, "out of memory for the report\n");
	}
	waits_free(&rows);
	free(seen);
	free(in);
}
