/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every way to send, beside every way to receive, with lengths around the borders between
 * protocols, posted and not; datatypes with gaps; buffered sends; messages to oneself and to
 * nobody; truncation. Even ranks work with the odd rank after them; a rank without partner works
 * with itself.
 *
 * "tame" leaves out what MPICH 4.0 does otherwise: statuses of receives from nobody and of
 * Isendrecv, what follows an error in Waitall, and the bytes of a message that was truncated.
 */
#include "test/mpi/pt2pt/check.h"

#define MOST (1 << 20)

static int partner;
static bool sender;
static MPI_Comm comm;

/* Both sides meet, without a message that the tests could count. */
static void meet(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static const int lengths[] = { 0,     1,     7,     8,     63,    64,    65,     512,
			       1024,  2047,  2048,  2049,  4095,  4096,  4097,   8191,
			       8192,  8193,  16319, 16320, 16383, 16384, 16385,  32767,
			       32768, 32769, 65535, 65536, 65537, 99999, 262144, MOST };
#define LENGTHS ((int)(sizeof(lengths) / sizeof(lengths[0])))

/* ---- all ways by all ways -------------------------------------------------------------------- */

enum { MODES = 4 };

typedef int (*send_call)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*start_call)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static const send_call blocking[MODES] = { MPI_Send, MPI_Ssend, MPI_Bsend, MPI_Rsend };
static const start_call starting[MODES] = { MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend };
static const start_call persistent[MODES] = { MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init,
					      MPI_Rsend_init };

/* 0: blocking, 1: started, 2: persistent */
static void send_as(int way, int mode, const void *buf, int n, int tag)
{
	MPI_Request r;

	if (way == 0) {
		blocking[mode](buf, n, MPI_BYTE, partner, tag, comm);
		return;
	}
	if (way == 1) {
		starting[mode](buf, n, MPI_BYTE, partner, tag, comm, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		return;
	}
	persistent[mode](buf, n, MPI_BYTE, partner, tag, comm, &r);
	for (int i = 0; i < 2; i++) {
		MPI_Start(&r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
	MPI_Request_free(&r);
}

static const char *check_bytes(const unsigned char *buf, int n, int number, const MPI_Status *s)
{
	CHECK_INT(s->MPI_SOURCE, partner);
	CHECK_INT(s->MPI_TAG, number);
	CHECK_INT(count_of(s), n);
	CHECK_INT(wrong_byte(buf, (size_t)n, number), -1);
	CHECK_INT(buf[n], 0xee);
	return NULL;
}

static unsigned char out[MOST + 1], in[2][MOST + 1];

static const char *exchange(int way, int mode, bool posted, int n, int tag)
{
	int times = way == 2 ? 2 : 1;
	const char *wrong = NULL;
	MPI_Request r[2];
	MPI_Status s[2];

	for (int i = 0; i < times && !sender; i++) {
		memset(in[i], 0xee, (size_t)n + 1);
		if (posted)
			MPI_Irecv(in[i], n, MPI_BYTE, partner, tag, comm, &r[i]);
	}
	if (posted)
		meet();
	if (sender) {
		fill_bytes(out, (size_t)n, tag);
		send_as(way, mode, out, n, tag);
		memset(out, 0, (size_t)n);
		return NULL;
	}
	for (int i = 0; i < times; i++) {
		if (posted) {
			MPI_Wait(&r[i], &s[i]);
		} else {
			MPI_Probe(partner, tag, comm, &s[i]); /* it is here */
			MPI_Recv(in[i], n, MPI_BYTE, partner, tag, comm, &s[i]);
		}
		wrong = wrong ? wrong : check_bytes(in[i], n, tag, &s[i]);
	}
	return wrong;
}

static const char *all_ways(bool posted)
{
	static char buffer[4 * MOST];
	const char *wrong = NULL;
	void *address;
	int size;

	if (partner == tap_rank)
		return NULL;
	MPI_Buffer_attach(buffer, sizeof(buffer));
	for (int i = 0; i < LENGTHS && !wrong; i++)
		for (int way = 0; way < 3; way++)
			for (int mode = 0; mode < (posted ? MODES : MODES - 1); mode++) {
				const char *one = exchange(way, mode, posted, lengths[i],
							   i * 16 + way * 4 + mode);

				wrong = wrong ? wrong : one;
			}
	MPI_Buffer_detach(&address, &size);
	CHECK(address == buffer && size == sizeof(buffer));
	return wrong;
}

static const char *modes_posted(int round)
{
	const char *wrong;

	(void)round;
	wrong = all_ways(true);
	if (partner == tap_rank) /* its part of the meetings */
		for (int i = 0; i < LENGTHS * 3 * MODES; i++)
			meet();
	return wrong;
}

static const char *modes_unexpected(int round)
{
	(void)round;
	return all_ways(false);
}

/* ---- synchronous ----------------------------------------------------------------------------- */

/* It is not over before its receive has begun, whatever its length; told over another
 * communicator. */
static const char *synchronous(int round)
{
	static const int n[] = { 0, 1, 100, 20000, 70000 };
	MPI_Request r;
	int flag = 0;

	(void)round;
	if (partner == tap_rank)
		return NULL;
	for (int i = 0; i < 5; i++) {
		if (!sender) {
			/* before it tells, it is not over; it may be here, or not yet */
			MPI_Recv(NULL, 0, MPI_BYTE, partner, 1, comm, MPI_STATUS_IGNORE);
			for (int k = 0; k < 100; k++)
				MPI_Iprobe(partner, 0, comm, &flag, MPI_STATUS_IGNORE);
			MPI_Send(NULL, 0, MPI_BYTE, partner, 2, comm);
			MPI_Recv(NULL, 0, MPI_BYTE, partner, 3, comm, MPI_STATUS_IGNORE);
			MPI_Recv(in[0], n[i], MPI_BYTE, partner, 0, comm, MPI_STATUS_IGNORE);
			CHECK_INT(wrong_byte(in[0], (size_t)n[i], i), -1);
			continue;
		}
		fill_bytes(out, (size_t)n[i], i);
		MPI_Issend(out, n[i], MPI_BYTE, partner, 0, comm, &r);
		MPI_Send(NULL, 0, MPI_BYTE, partner, 1, comm);
		MPI_Recv(NULL, 0, MPI_BYTE, partner, 2, comm, MPI_STATUS_IGNORE);
		MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
		MPI_Send(NULL, 0, MPI_BYTE, partner, 3, comm);
		if (!flag)
			MPI_Wait(&r, MPI_STATUS_IGNORE);
		CHECK_INT(flag, 0);
	}
	return NULL;
}

/* ---- Sendrecv -------------------------------------------------------------------------------- */

static const char *sendrecv(int round)
{
	int right = (tap_rank + 1) % tap_size, left = (tap_rank + tap_size - 1) % tap_size;
	int n = lengths[round % LENGTHS];
	MPI_Request r;
	MPI_Status s;

	fill_bytes(out, (size_t)n, tap_rank);
	memset(in[0], 0xee, (size_t)n + 1);
	MPI_Sendrecv(out, n, MPI_BYTE, right, 5, in[0], n, MPI_BYTE, left, 5, comm, &s);
	CHECK_INT(wrong_byte(in[0], (size_t)n, left), -1);
	CHECK_INT(s.MPI_SOURCE, left);
	CHECK_INT(count_of(&s), n);
	/* on to the next */
	MPI_Sendrecv_replace(in[0], n, MPI_BYTE, right, 6, left, 6, comm, &s);
	CHECK_INT(wrong_byte(in[0], (size_t)n, (left + tap_size - 1) % tap_size), -1);
	CHECK_INT(in[0][n], 0xee);
#if MPI_VERSION >= 4
	memset(in[0], 0xee, (size_t)n + 1);
	MPI_Isendrecv(out, n, MPI_BYTE, right, 7, in[0], n, MPI_BYTE, left, 7, comm, &r);
	MPI_Wait(&r, &s);
	CHECK_INT(wrong_byte(in[0], (size_t)n, left), -1);
	CHECK(tap_tame || (s.MPI_TAG == 7 && count_of(&s) == n));
	MPI_Isendrecv_replace(in[0], n, MPI_BYTE, right, 8, left, 8, comm, &r);
	MPI_Wait(&r, &s);
	CHECK_INT(wrong_byte(in[0], (size_t)n, (left + tap_size - 1) % tap_size), -1);
	CHECK_INT(r == MPI_REQUEST_NULL, 1);
	/* the ends of a line */
	MPI_Isendrecv(out, n, MPI_BYTE, right ? right : MPI_PROC_NULL, 9, in[0], n, MPI_BYTE,
		      tap_rank ? left : MPI_PROC_NULL, 9, comm, &r);
	MPI_Wait(&r, &s);
	CHECK(tap_tame || s.MPI_SOURCE == (tap_rank ? left : MPI_PROC_NULL));
	CHECK(tap_tame || count_of(&s) == (tap_rank ? n : 0));
#else
	(void)r;
#endif
	return NULL;
}

/* ---- nobody, oneself ------------------------------------------------------------------------- */

static const char *check_nobody(const MPI_Status *s)
{
	if (tap_tame)
		return NULL;
	CHECK_INT(s->MPI_SOURCE, MPI_PROC_NULL);
	CHECK_INT(s->MPI_TAG, MPI_ANY_TAG);
	CHECK_INT(count_of(s), 0);
	CHECK_INT(s->MPI_ERROR, -77); /* calls that return one status leave it alone */
	return NULL;
}

static const char *nobody(int round)
{
	MPI_Request r[4];
	MPI_Status s = { .MPI_ERROR = -77 };
	MPI_Message m;
	const char *wrong;
	int flag;

	(void)round;
	for (int mode = 0; mode < MODES; mode++) {
		CHECK_OK(blocking[mode](out, 10, MPI_BYTE, MPI_PROC_NULL, 1, comm));
		CHECK_OK(starting[mode](out, 10, MPI_BYTE, MPI_PROC_NULL, 1, comm, &r[mode]));
	}
	MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
	memset(in[0], 0xee, 10);
	MPI_Recv(in[0], 10, MPI_BYTE, MPI_PROC_NULL, 3, comm, &s);
	if ((wrong = check_nobody(&s)))
		return wrong;
	CHECK_INT(in[0][0], 0xee);
	MPI_Irecv(in[0], 10, MPI_BYTE, MPI_PROC_NULL, 3, comm, r);
	MPI_Wait(r, &s);
	if ((wrong = check_nobody(&s)))
		return wrong;
	MPI_Probe(MPI_PROC_NULL, 3, comm, &s);
	if ((wrong = check_nobody(&s)))
		return wrong;
	MPI_Iprobe(MPI_PROC_NULL, 3, comm, &flag, &s);
	CHECK_INT(flag, 1);
	if ((wrong = check_nobody(&s)))
		return wrong;
	MPI_Mprobe(MPI_PROC_NULL, 3, comm, &m, &s);
	CHECK(m == MPI_MESSAGE_NO_PROC);
	if ((wrong = check_nobody(&s)))
		return wrong;
	MPI_Mrecv(in[0], 10, MPI_BYTE, &m, &s);
	CHECK(m == MPI_MESSAGE_NULL);
	if ((wrong = check_nobody(&s)))
		return wrong;
	MPI_Improbe(MPI_PROC_NULL, 3, comm, &flag, &m, &s);
	CHECK(flag && m == MPI_MESSAGE_NO_PROC);
	MPI_Imrecv(in[0], 10, MPI_BYTE, &m, r);
	MPI_Wait(r, &s);
	return check_nobody(&s);
}

/* Posted first, and sent first: what is sent first ends without a receive only as far as Isend
 * goes. */
static const char *oneself(int round)
{
	int n = lengths[round % LENGTHS];
	MPI_Request r[2];
	MPI_Status s[2];

	fill_bytes(out, (size_t)n, 3);
	MPI_Irecv(in[0], n, MPI_BYTE, tap_rank, 1, comm, &r[0]);
	MPI_Ssend(out, n, MPI_BYTE, tap_rank, 1, comm);
	MPI_Wait(&r[0], &s[0]);
	CHECK_INT(wrong_byte(in[0], (size_t)n, 3), -1);
	MPI_Isend(out, n, MPI_BYTE, tap_rank, 1, comm, &r[0]);
	MPI_Issend(out, n, MPI_BYTE, tap_rank, 2, comm, &r[1]);
	MPI_Recv(in[1], n, MPI_BYTE, MPI_ANY_SOURCE, 2, comm, &s[1]);
	MPI_Recv(in[0], n, MPI_BYTE, tap_rank, MPI_ANY_TAG, comm, &s[0]);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	CHECK_INT(wrong_byte(in[0], (size_t)n, 3), -1);
	CHECK_INT(wrong_byte(in[1], (size_t)n, 3), -1);
	CHECK_INT(s[0].MPI_TAG, 1);
	CHECK_INT(s[1].MPI_SOURCE, tap_rank);
	MPI_Sendrecv(out, n, MPI_BYTE, tap_rank, 1, in[0], n, MPI_BYTE, tap_rank, 1, comm, &s[0]);
	CHECK_INT(count_of(&s[0]), n);
	return NULL;
}

/* ---- datatypes ------------------------------------------------------------------------------- */

/* Any shape on either side, of any length; the receive may have room for more. */
static const char *datatypes(int round)
{
	const struct shape *from = &shapes[draw_below(SHAPES)], *to = &shapes[draw_below(SHAPES)];
	int items = SHAPE_LCM * draw_length(8000), room = draw_below(5);
	bool posted = draw_below(2);
	struct buf b;
	MPI_Request r;
	MPI_Status s;
	int n, elements;

	(void)round;
	if (partner == tap_rank) {
		meet();
		return NULL;
	}
	if (sender) {
		b = buf_new(from, 0, items / from->k);
		buf_fill(&b, from, 0, items / from->k, 0, 0);
		buf_keep(&b);
		meet();
		if (draw_below(2))
			MPI_Ssend(b.base, items / from->k, from->type, partner, 4, comm);
		else
			MPI_Send(b.base, items / from->k, from->type, partner, 4, comm);
		return buf_end(&b, "sent");
	}
	b = buf_new(to, 0, items / to->k + room);
	buf_keep(&b);
	buf_want(&b, to, 0, items / to->k, 0, 0);
	if (posted)
		MPI_Irecv(b.base, items / to->k + room, to->type, partner, 4, comm, &r);
	meet();
	if (posted)
		MPI_Wait(&r, &s);
	else
		MPI_Recv(b.base, items / to->k + room, to->type, partner, 4, comm, &s);
	MPI_Get_count(&s, to->type, &n);
	MPI_Get_elements(&s, to->type, &elements);
	CHECK_INT(n, items / to->k);
	CHECK_INT(elements, items);
	return buf_end(&b, "received");
}

/* A message that ends within an element. */
static const char *part_of_element(int round)
{
	const struct shape *to = &shapes[2];
	int n, elements, ints = 4 * (round * 997 % 5000) + 3;
	struct buf b;
	MPI_Status s;
	MPI_Count many;

	if (partner == tap_rank)
		return NULL;
	if (sender) {
		int *v = malloc((size_t)ints * sizeof(*v));

		for (int i = 0; i < ints; i++)
			v[i] = (int)value_of(0, i);
		MPI_Send(v, ints, MPI_INT, partner, 4, comm);
		free(v);
		return NULL;
	}
	b = buf_new(to, 0, ints / 4 + 1);
	for (int i = 0; i < ints / 4; i++)
		buf_want(&b, to, i, 1, 0, i * 4L);
	buf_keep(&b);
	buf_want(&b, to, 0, ints / 4, 0, 0);
	for (int j = 0; j < 3; j++)
		b.want[b.base - b.mem + ints / 4 * to->extent + to->off[j]] =
			(int)value_of(0, ints / 4 * 4 + j);
	MPI_Recv(b.base, ints / 4 + 1, to->type, partner, 4, comm, &s);
	MPI_Get_count(&s, to->type, &n);
	CHECK_INT(n, MPI_UNDEFINED);
	MPI_Get_elements(&s, to->type, &elements);
	CHECK_INT(elements, ints);
	MPI_Get_elements_x(&s, to->type, &many);
	CHECK_INT(many, ints);
	return buf_end(&b, "received in part");
}

/* ---- truncation ------------------------------------------------------------------------------ */

/* The first bytes are there, the error is the receiver's, and what follows is not disturbed. */
static const char *truncated(int round)
{
	static const int sent[] = { 1, 100, 5000, 20000, 40000, 300000 };
	int n = sent[round % 6], room = round / 6 % 3 == 0 ? 0 : round / 6 % 3 == 1 ? n / 2 : n - 1;
	bool posted = round / 18 % 2, gaps = round / 36 % 2 && room % 2 == 0;
	MPI_Datatype pairs;
	MPI_Request r;
	MPI_Status s = { .MPI_SOURCE = -5 };
	int err;

	if (partner == tap_rank) {
		meet();
		return NULL;
	}
	if (sender) {
		fill_bytes(out, (size_t)n, 1);
		meet();
		MPI_Send(out, n, MPI_BYTE, partner, 4, comm);
		MPI_Send(out, n, MPI_BYTE, partner, 4, comm);
		return NULL;
	}
	memset(in[0], 0xee, (size_t)n * 2);
	MPI_Type_create_resized(MPI_BYTE, 0, 2, &pairs);
	MPI_Type_commit(&pairs);
	if (posted)
		MPI_Irecv(in[0], room, gaps ? pairs : MPI_BYTE, partner, 4, comm, &r);
	meet();
	if (posted)
		err = MPI_Wait(&r, &s);
	else
		err = MPI_Recv(in[0], room, gaps ? pairs : MPI_BYTE, partner, 4, comm, &s);
	CHECK_CLASS(err, MPI_ERR_TRUNCATE);
	if (posted)
		CHECK(r == MPI_REQUEST_NULL);
	for (int i = 0; gaps && i < room; i++) {
		CHECK(i == room - 1 || in[0][2 * i + 1] == 0xee);
		in[0][i] = in[0][2 * i];
	}
	CHECK(tap_tame || wrong_byte(in[0], (size_t)room, 1) == -1);
	CHECK(gaps || in[0][room] == 0xee);
	MPI_Type_free(&pairs);
	CHECK_OK(MPI_Recv(in[1], n, MPI_BYTE, partner, 4, comm, &s));
	CHECK_INT(count_of(&s), n);
	CHECK_INT(wrong_byte(in[1], (size_t)n, 1), -1);
	return NULL;
}

/* In a set of requests it is the one's error alone. */
static const char *truncated_among_others(int round)
{
	MPI_Request r[3];
	MPI_Status s[3];

	(void)round;
	if (partner == tap_rank)
		return NULL;
	fill_bytes(out, 40000, 1);
	if (sender) {
		for (int i = 0; i < 3; i++)
			MPI_Send(out, 40000, MPI_BYTE, partner, i, comm);
		return NULL;
	}
	for (int i = 0; i < 3; i++)
		MPI_Irecv(in[0] + 50000 * i, i == 1 ? 39999 : 40000, MPI_BYTE, partner, i, comm,
			  &r[i]);
	CHECK_CLASS(MPI_Waitall(3, r, s), MPI_ERR_IN_STATUS);
	CHECK_CLASS(s[0].MPI_ERROR, MPI_SUCCESS);
	CHECK_CLASS(s[1].MPI_ERROR, MPI_ERR_TRUNCATE);
	CHECK(s[2].MPI_ERROR == MPI_SUCCESS || tap_tame);
	CHECK_INT(wrong_byte(in[0] + 100000, 40000, 1), -1);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 1);
	if (tap_rank % 2)
		partner = tap_rank - 1;
	else
		partner = tap_rank + 1 < tap_size ? tap_rank + 1 : tap_rank;
	sender = tap_rank % 2 == 0;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH: of Waitall */
	shapes_make();
	tap_case("modes: every way and length into a posted receive", modes_posted);
	tap_case("modes: every way and length before its receive", modes_unexpected);
	tap_case("modes: a synchronous send waits for its receive", synchronous);
	tap_case("modes: to and from nobody", nobody);
	tap_case("modes: truncated among others", truncated_among_others);
	tap_rounds_set(LENGTHS);
	tap_case("modes: Sendrecv and its kin", sendrecv);
	tap_case("modes: messages to oneself", oneself);
	tap_rounds_set(72);
	tap_case("modes: datatypes with gaps on either side", datatypes);
	tap_case("modes: a message that ends within an element", part_of_element);
	tap_case("modes: truncated messages", truncated);
	shapes_free();
	MPI_Comm_free(&comm);
	return tap_end();
}
