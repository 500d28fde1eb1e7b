/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which receive gets which message, in a job of any number of ranks: random messages of all
 * modes and sizes among all ranks (itself included), received by random means: posted before,
 * between or after the sends, with wildcards or without, probed or not. All ranks draw all
 * parameters, so each knows what was sent to it.
 *
 * The model: among the receives that say they got a message of rank s, the messages of s, in the
 * order they were sent, each take the first receive that matches.
 */
#include "test/mpi/coll_check.h"

#define PER_PAIR 20
#define MOST     100000
#define RANKS    8
#define ALL      (RANKS * RANKS * PER_PAIR)

struct message {
	int from, to, comm, tag, bytes, mode;
};

/* How it is received: by a posted receive, a persistent one; and when none need be posted before
 * others, at once, after a probe, after a matched probe. */
enum how { IRECV, PERSISTENT, RECV, PROBE, MPROBE, IMPROBE, HOWS };

struct receive {
	int comm, source, tag; /* as asked for */
	enum how how;
	unsigned char *buf;
	MPI_Status status;
	int taken; /* number of the message, by the model */
};

enum mode {
	ISEND,
	ISSEND,
	IBSEND,
	BSEND,
	PSEND,
	PSSEND,
	PBSEND,
	ANYTIME, /* the modes before can always be used; those after, when the receive is posted */
	IRSEND = ANYTIME,
	RSEND,
	SEND,
	SSEND,
	MODES
};

/* When a round's receives are posted. */
enum when { BEFORE, BETWEEN, AFTER };

static MPI_Comm comms[2];
static struct message message[ALL];
static int messages;
static struct receive receive[RANKS * PER_PAIR];
static int receives;
static unsigned char *sent[ALL];
static MPI_Request request[ALL * 2];
static int place[ALL * 2]; /* of a request: receive number, or -1 */
static int requests;

static int draw_bytes(void)
{
	static const int edge[] = { 0, 64, 1024, 2048, 4096, 8192, 16384, 32768, 65536 };

	switch (draw_below(8)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return edge[1 + draw_below(8)] - 2 + draw_below(5);
	case 3:
		return draw_below(MOST);
	default:
		return draw_below(300);
	}
}

static void draw_messages(enum when when)
{
	messages = 0;
	for (int i = 0; i < tap_size * PER_PAIR; i++)
		for (int to = 0; to < tap_size; to++)
			message[messages++] = (struct message){
				.from = i % tap_size,
				.to = to,
				.comm = draw_below(2),
				.tag = draw_below(3),
				.bytes = draw_bytes(),
				.mode = draw_below(when == BEFORE ? MODES : ANYTIME),
			};
}

static unsigned char byte_of(int number, int i)
{
	return (unsigned char)(value_of(number, i / 64) >> (i % 4 * 8)) + (unsigned char)(i % 64);
}

static void swap(struct receive *a, struct receive *b)
{
	struct receive t = *a;

	*a = *b;
	*b = t;
}

static void shuffle(struct receive *r, int n)
{
	for (int i = n - 1; i > 0; i--)
		swap(&r[i], &r[draw_below(i + 1)]);
}

/* 0: exact, 1: open in one way, 2: open in both */
static int width(const struct receive *r)
{
	return (r->source == MPI_ANY_SOURCE) + (r->tag == MPI_ANY_TAG);
}

/*
 * One receive for each message, in any order; but of one communicator the more open ones come
 * later, and those of width 1 are all open in the same way. So none takes what only another one
 * could.
 */
static void draw_receives(enum when when)
{
	int open_source = draw_below(2), exact = draw_below(3), how = draw_below(HOWS + 2);

	receives = 0;
	for (int m = 0; m < messages; m++) {
		struct receive r = {
			message[m].comm, message[m].from, message[m].tag, IRECV, NULL, { 0 }, -1
		};
		int open = exact == 0 ? 0 : draw_below(3);

		if (open == 2 || (open == 1 && open_source))
			r.source = MPI_ANY_SOURCE;
		if (open == 2 || (open == 1 && !open_source))
			r.tag = MPI_ANY_TAG;
		/* all ranks draw the same, also for the receives of others */
		r.how = (enum how)(how < HOWS ? how : draw_below(HOWS));
		if (when != AFTER)
			r.how = (enum how)(r.how % 2);
		if (message[m].to == tap_rank)
			receive[receives++] = r;
	}
	shuffle(receive, receives);
	for (int i = 1; i < receives; i++)
		for (int j = i; j > 0 && width(&receive[j - 1]) > width(&receive[j]); j--)
			swap(&receive[j - 1], &receive[j]);
}

/* ---- running --------------------------------------------------------------------------------- */

static MPI_Request *new_request(int receive_number)
{
	place[requests] = receive_number;
	return &request[requests++];
}

static void send(int number)
{
	const struct message *m = &message[number];
	MPI_Comm c = comms[m->comm];
	unsigned char *b = malloc((size_t)m->bytes + 1);

	for (int i = 0; i < m->bytes; i++)
		b[i] = byte_of(number, i);
	sent[number] = b;
	switch (m->mode) {
	case ISEND:
		MPI_Isend(b, m->bytes, MPI_BYTE, m->to, m->tag, c, new_request(-1));
		break;
	case ISSEND:
		MPI_Issend(b, m->bytes, MPI_BYTE, m->to, m->tag, c, new_request(-1));
		break;
	case IBSEND:
		MPI_Ibsend(b, m->bytes, MPI_BYTE, m->to, m->tag, c, new_request(-1));
		break;
	case IRSEND:
		MPI_Irsend(b, m->bytes, MPI_BYTE, m->to, m->tag, c, new_request(-1));
		break;
	case BSEND:
		MPI_Bsend(b, m->bytes, MPI_BYTE, m->to, m->tag, c);
		memset(b, 0xee, (size_t)m->bytes);
		break;
	case RSEND:
		MPI_Rsend(b, m->bytes, MPI_BYTE, m->to, m->tag, c);
		break;
	case SEND:
		MPI_Send(b, m->bytes, MPI_BYTE, m->to, m->tag, c);
		memset(b, 0xee, (size_t)m->bytes);
		break;
	case SSEND:
		MPI_Ssend(b, m->bytes, MPI_BYTE, m->to, m->tag, c);
		memset(b, 0xee, (size_t)m->bytes);
		break;
	case PSEND:
		MPI_Send_init(b, m->bytes, MPI_BYTE, m->to, m->tag, c, new_request(-1));
		MPI_Start(&request[requests - 1]);
		break;
	case PSSEND:
		MPI_Ssend_init(b, m->bytes, MPI_BYTE, m->to, m->tag, c, new_request(-1));
		MPI_Start(&request[requests - 1]);
		break;
	case PBSEND:
		MPI_Bsend_init(b, m->bytes, MPI_BYTE, m->to, m->tag, c, new_request(-1));
		MPI_Start(&request[requests - 1]);
		break;
	}
}

static const char *start_receive(int number)
{
	struct receive *r = &receive[number];
	MPI_Comm c = comms[r->comm];
	MPI_Message handle;
	MPI_Status seen;
	int flag = 0, n;

	r->buf = malloc(MOST + 64);
	memset(r->buf, 0xa5, MOST + 64);
	switch (r->how) {
	case IRECV:
		MPI_Irecv(r->buf, MOST, MPI_BYTE, r->source, r->tag, c, new_request(number));
		break;
	case PERSISTENT:
		MPI_Recv_init(r->buf, MOST, MPI_BYTE, r->source, r->tag, c, new_request(number));
		MPI_Start(&request[requests - 1]);
		break;
	case RECV:
		MPI_Recv(r->buf, MOST, MPI_BYTE, r->source, r->tag, c, &r->status);
		break;
	case PROBE:
		MPI_Probe(r->source, r->tag, c, &seen);
		MPI_Get_count(&seen, MPI_BYTE, &n);
		MPI_Recv(r->buf, n, MPI_BYTE, seen.MPI_SOURCE, seen.MPI_TAG, c, &r->status);
		MPI_Get_count(&r->status, MPI_BYTE, &flag);
		if (flag != n)
			return tap_wrong("%d bytes probed, %d received", n, flag);
		break;
	case MPROBE:
		MPI_Mprobe(r->source, r->tag, c, &handle, &seen);
		MPI_Mrecv(r->buf, MOST, MPI_BYTE, &handle, &r->status);
		if (handle != MPI_MESSAGE_NULL || seen.MPI_TAG != r->status.MPI_TAG ||
		    seen.MPI_SOURCE != r->status.MPI_SOURCE)
			return tap_wrong("a matched receive took another message");
		break;
	default:
		while (!flag)
			MPI_Improbe(r->source, r->tag, c, &flag, &handle, &seen);
		MPI_Imrecv(r->buf, MOST, MPI_BYTE, &handle, new_request(number));
		break;
	}
	return NULL;
}

/* ---- the model ------------------------------------------------------------------------------- */

static bool fits(const struct receive *r, const struct message *m)
{
	return r->comm == m->comm && r->status.MPI_SOURCE == m->from &&
	       (r->source == MPI_ANY_SOURCE || r->source == m->from) &&
	       (r->tag == MPI_ANY_TAG || r->tag == m->tag);
}

static const char *check_one(const struct receive *r)
{
	const struct message *m = &message[r->taken];
	int n;

	MPI_Get_count(&r->status, MPI_BYTE, &n);
	if (r->status.MPI_TAG != m->tag || n != m->bytes)
		return tap_wrong("expected %d bytes with tag %d of rank %d, got %d with tag %d",
				 m->bytes, m->tag, m->from, n, r->status.MPI_TAG);
	for (int i = 0; i < n; i++)
		if (r->buf[i] != byte_of(r->taken, i))
			return tap_wrong("byte %d of %d from rank %d is %x, not %x (mode %d)", i, n,
					 m->from, r->buf[i], byte_of(r->taken, i), m->mode);
	for (int i = n; i < n + 64 && i < MOST + 64; i++)
		if (r->buf[i] != 0xa5)
			return tap_wrong("byte %d beyond the end of %d was written", i, n);
	return NULL;
}

static const char *check(void)
{
	for (int m = 0; m < messages; m++) {
		int i = 0;

		if (message[m].to != tap_rank)
			continue;
		while (i < receives && (receive[i].taken >= 0 || !fits(&receive[i], &message[m])))
			i++;
		if (i == receives)
			return tap_wrong("no receive took message %d of rank %d", m,
					 message[m].from);
		receive[i].taken = m;
	}
	for (int i = 0; i < receives; i++) {
		const char *wrong = check_one(&receive[i]);

		if (wrong)
			return wrong;
	}
	return NULL;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void finish(void)
{
	static MPI_Status status[ALL * 2];

	MPI_Waitall(requests, request, status);
	for (int i = 0; i < requests; i++) {
		if (place[i] >= 0)
			receive[place[i]].status = status[i];
		if (request[i] != MPI_REQUEST_NULL)
			MPI_Request_free(&request[i]);
	}
}

static const char *run(enum when when)
{
	static char buffer[32 << 20];
	const char *wrong = NULL, *first = NULL;
	void *address;
	int next = 0, size;

	/* receives from anybody must not get messages of the next round */
	MPI_Barrier(MPI_COMM_WORLD);
	requests = 0;
	MPI_Buffer_attach(buffer, sizeof(buffer));
	draw_messages(when);
	draw_receives(when);
	while (when == BEFORE && next < receives)
		start_receive(next++);
	if (when == BEFORE)
		MPI_Barrier(MPI_COMM_WORLD);
	for (int m = 0; m < messages; m++) {
		while (when == BETWEEN && next < receives && message[m].from == tap_rank &&
		       value_of(m, next) % 2)
			start_receive(next++);
		if (message[m].from == tap_rank)
			send(m);
	}
	if (when == AFTER && draw_below(2))
		MPI_Barrier(MPI_COMM_WORLD);
	while (next < receives) {
		wrong = start_receive(next++);
		first = first ? first : wrong;
	}
	finish();
	if (!first)
		first = check();
	MPI_Buffer_detach(&address, &size);
	for (int m = 0; m < messages; m++)
		if (message[m].from == tap_rank)
			free(sent[m]);
	for (int i = 0; i < receives; i++)
		free(receive[i].buf);
	return first;
}

static const char *before(int round)
{
	(void)round;
	return run(BEFORE);
}

static const char *between(int round)
{
	(void)round;
	return run(BETWEEN);
}

static const char *after(int round)
{
	(void)round;
	return run(AFTER);
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 20);
	if (tap_size > RANKS)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int i = 0; i < 2; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	tap_case("order: receives that are posted before the messages come", before);
	tap_case("order: receives and sends in turn", between);
	tap_case("order: receives after the messages", after);
	for (int i = 0; i < 2; i++)
		MPI_Comm_free(&comms[i]);
	return tap_end();
}
