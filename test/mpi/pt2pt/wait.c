/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Completion: sets of requests of all kinds (sends, receives, persistent ones, inactive ones, null
 * ones) ended by randomly chosen calls of the Wait and Test families, each exactly once;
 * MPI_Request_get_status; cancelled receives; probes; generalized requests. Even ranks work with
 * the odd rank after them.
 *
 * "tame" leaves out what MPICH 4.0 does otherwise: errors of matched receives, the status of
 * requests that are null or inactive, and of a generalized request when what belongs to it is freed
 * and what its callbacks return.
 */
#include "test/mpi/pt2pt/check.h"

#define MOST  80000
#define SLOTS 40

static int partner;
static MPI_Comm comm;
static uint64_t own_state; /* of choices that the partner need not know */

static int choose(int n)
{
	own_state = mix(own_state + 1);
	return (int)(own_state % (uint64_t)n);
}

/* ---- sets of requests ------------------------------------------------------------------------ */

enum kind { NONE, INACTIVE, SENDING, RECEIVING, PERSISTENT_SEND, PERSISTENT_RECEIVE, KINDS };

static struct slot {
	enum kind kind;
	int bytes;
	bool ended;
	unsigned char *buf;
} slot[SLOTS];
static MPI_Request request[SLOTS];
static int left;

static int drawn_bytes(void)
{
	return draw_below(4) ? draw_below(600) : draw_below(MOST);
}

static void start(int i, bool sync)
{
	struct slot *s = &slot[i];

	s->buf = malloc((size_t)s->bytes + 1);
	request[i] = MPI_REQUEST_NULL;
	s->ended = s->kind == NONE || s->kind == INACTIVE;
	left += !s->ended;
	if (s->kind == SENDING || s->kind == PERSISTENT_SEND)
		fill_bytes(s->buf, (size_t)s->bytes, i);
	switch (s->kind) {
	case INACTIVE:
		MPI_Recv_init(s->buf, s->bytes, MPI_BYTE, partner, i, comm, &request[i]);
		break;
	case SENDING:
		(sync ? MPI_Issend : MPI_Isend)(s->buf, s->bytes, MPI_BYTE, partner, i, comm,
						&request[i]);
		break;
	case RECEIVING:
		MPI_Irecv(s->buf, s->bytes, MPI_BYTE, partner, i, comm, &request[i]);
		break;
	case PERSISTENT_SEND:
		(sync ? MPI_Ssend_init : MPI_Send_init)(s->buf, s->bytes, MPI_BYTE, partner, i,
							comm, &request[i]);
		break;
	case PERSISTENT_RECEIVE:
		MPI_Recv_init(s->buf, s->bytes, MPI_BYTE, partner, i, comm, &request[i]);
		break;
	default:
		break;
	}
}

/* The one side receives what the other sends; both draw all. */
static void start_all(void)
{
	MPI_Request begun[SLOTS];
	int n = 0, place[SLOTS];

	left = 0;
	for (int i = 0; i < SLOTS; i++) {
		bool to_odd = draw_below(2), sync = draw_below(2),
		     sends = to_odd == (tap_rank % 2 == 0);
		int what = draw_below(6), mine = choose(2);

		slot[i].bytes = drawn_bytes();
		if (what == 0)
			slot[i].kind = mine ? NONE : INACTIVE;
		else if (sends)
			slot[i].kind = mine ? SENDING : PERSISTENT_SEND;
		else
			slot[i].kind = mine ? RECEIVING : PERSISTENT_RECEIVE;
		start(i, sync);
		if (slot[i].kind >= PERSISTENT_SEND) {
			place[n] = i;
			begun[n++] = request[i];
		}
	}
	if (choose(2)) {
		MPI_Startall(n, begun);
		return;
	}
	for (int i = 0; i < n; i++)
		MPI_Start(&request[place[i]]);
}

/* Request i has ended, with this status. */
static const char *ended(int i, const MPI_Status *status)
{
	struct slot *s = &slot[i];
	bool receives = s->kind == RECEIVING || s->kind == PERSISTENT_RECEIVE;
	int flag;

	CHECK_INT(s->ended, false);
	s->ended = true;
	left--;
	CHECK_INT(request[i] == MPI_REQUEST_NULL, s->kind == SENDING || s->kind == RECEIVING);
	MPI_Test_cancelled(status, &flag);
	CHECK_INT(flag, 0);
	if (receives) {
		CHECK_INT(status->MPI_SOURCE, partner);
		CHECK_INT(status->MPI_TAG, i);
		CHECK_INT(count_of(status), s->bytes);
		CHECK_INT(wrong_byte(s->buf, (size_t)s->bytes, i), -1);
	}
	return NULL;
}

static const char *check_empty(const MPI_Status *s)
{
	if (tap_tame)
		return NULL;
	CHECK_INT(s->MPI_SOURCE, MPI_ANY_SOURCE);
	CHECK_INT(s->MPI_TAG, MPI_ANY_TAG);
	CHECK_INT(s->MPI_ERROR, MPI_SUCCESS);
	CHECK_INT(count_of(s), 0);
	return NULL;
}

static const char *end_one(void)
{
	int i = choose(SLOTS), flag = 1;
	bool was = slot[i].ended;
	MPI_Status s;

	switch (choose(4)) {
	case 0:
		MPI_Test(&request[i], &flag, &s);
		break;
	case 1:
		/* it says so as often as asked, and ends nothing */
		MPI_Request_get_status(request[i], &flag, &s);
		if (flag) {
			int again = 0;

			MPI_Request_get_status(request[i], &again, &s);
			CHECK_INT(again, 1);
			CHECK_INT(was || request[i] != MPI_REQUEST_NULL, 1);
			MPI_Wait(&request[i], &s);
		}
		break;
	default:
		if (!was && slot[i].kind != RECEIVING && slot[i].kind != PERSISTENT_RECEIVE)
			return NULL; /* the partner may be waiting for another one */
		MPI_Wait(&request[i], &s);
	}
	if (!flag)
		return was ? tap_wrong("a request that has ended has not") : NULL;
	return was ? check_empty(&s) : ended(i, &s);
}

static const char *end_any(bool wait)
{
	int i, flag = 1;
	MPI_Status s;

	if (wait)
		MPI_Waitany(SLOTS, request, &i, &s);
	else
		MPI_Testany(SLOTS, request, &i, &flag, &s);
	if (!left) {
		CHECK_INT(flag, 1);
		CHECK_INT(i, MPI_UNDEFINED);
		return check_empty(&s);
	}
	if (!flag) {
		CHECK_INT(i, MPI_UNDEFINED);
		return NULL;
	}
	CHECK(i >= 0 && i < SLOTS);
	return ended(i, &s);
}

static const char *end_some(bool wait)
{
	int n = -7, index[SLOTS];
	MPI_Status s[SLOTS];

	if (wait)
		MPI_Waitsome(SLOTS, request, &n, index, s);
	else
		MPI_Testsome(SLOTS, request, &n, index, s);
	if (!left) {
		CHECK_INT(n, MPI_UNDEFINED);
		return NULL;
	}
	CHECK(n >= (wait ? 1 : 0) && n <= left);
	for (int k = 0; k < n; k++) {
		const char *wrong = ended(index[k], &s[k]);

		if (wrong)
			return wrong;
	}
	return NULL;
}

static const char *end_all(bool wait)
{
	MPI_Status s[SLOTS];
	int flag = 1;

	if (wait)
		MPI_Waitall(SLOTS, request, s);
	else
		MPI_Testall(SLOTS, request, &flag, s);
	for (int i = 0; i < SLOTS && flag; i++) {
		const char *wrong = slot[i].ended ? check_empty(&s[i]) : ended(i, &s[i]);

		if (wrong)
			return wrong;
	}
	return NULL;
}

#ifdef MPI_ABI_VERSION /* MPI 4.1 */
static const char *status_of_sets(void)
{
	MPI_Status s[SLOTS], one;
	int n, index[SLOTS], flag, i;

	MPI_Request_get_status_any(SLOTS, request, &i, &flag, &one);
	CHECK(flag ? left == 0 || (i >= 0 && !slot[i].ended) : left > 0);
	MPI_Request_get_status_some(SLOTS, request, &n, index, s);
	CHECK(left ? n >= 0 && n <= left : n == MPI_UNDEFINED);
	for (int k = 0; left && k < n; k++)
		CHECK(!slot[index[k]].ended);
	MPI_Request_get_status_all(SLOTS, request, &flag, s);
	CHECK(left || flag);
	return NULL;
}
#endif

static const char *sets(int round)
{
	const char *wrong = NULL;

	own_state = mix((uint64_t)round * 1000 + (uint64_t)tap_rank);
	if (partner == tap_rank)
		return NULL;
	start_all();
	/* once more with nothing left */
	for (int last = 0; !last && !wrong;) {
		last = !left;
		switch (choose(9)) {
		case 0:
			wrong = end_any(true);
			break;
		case 1:
			wrong = end_any(false);
			break;
		case 2:
			wrong = end_some(true);
			break;
		case 3:
			wrong = end_some(false);
			break;
		case 4:
			wrong = end_all(choose(6) == 0);
			break;
#ifdef MPI_ABI_VERSION
		case 5:
			wrong = status_of_sets();
			break;
#endif
		default:
			wrong = end_one();
		}
	}
	for (int i = 0; i < SLOTS; i++) {
		if (request[i] != MPI_REQUEST_NULL)
			MPI_Request_free(&request[i]);
		free(slot[i].buf);
	}
	return wrong;
}

/* ---- cancel ---------------------------------------------------------------------------------- */

static const char *cancel(int round)
{
	bool sends = (tap_rank + round) % 2 == 0;
	char buf[4] = "abc", in[4] = "xyz";
	MPI_Request r, persistent;
	MPI_Status s;
	int flag;

	if (partner == tap_rank)
		return NULL;
	if (sends) {
		MPI_Recv(NULL, 0, MPI_BYTE, partner, 1, comm, &s);
		MPI_Ssend(buf, 3, MPI_BYTE, partner, 2, comm);
		MPI_Ssend(buf, 3, MPI_BYTE, partner, 2, comm);
		return NULL;
	}
	MPI_Irecv(in, 3, MPI_BYTE, partner, 2, comm, &r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &s);
	MPI_Test_cancelled(&s, &flag);
	CHECK_INT(flag, 1);
	MPI_Recv_init(in, 3, MPI_BYTE, MPI_ANY_SOURCE, 2, comm, &persistent);
	for (int i = 0; i < 3; i++) {
		MPI_Start(&persistent);
		MPI_Cancel(&persistent);
		MPI_Wait(&persistent, &s);
		MPI_Test_cancelled(&s, &flag);
		CHECK_INT(flag, 1);
		CHECK(persistent != MPI_REQUEST_NULL);
	}
	CHECK(memcmp(in, "xyz", 3) == 0);
	MPI_Start(&persistent);
	MPI_Send(NULL, 0, MPI_BYTE, partner, 1, comm);
	MPI_Wait(&persistent, &s);
	MPI_Test_cancelled(&s, &flag);
	CHECK_INT(flag, 0);
	CHECK_INT(count_of(&s), 3);
	CHECK(memcmp(in, "abc", 3) == 0);
	/* too late: the message is here */
	MPI_Probe(partner, 2, comm, &s);
	MPI_Start(&persistent);
	MPI_Cancel(&persistent);
	MPI_Wait(&persistent, &s);
	MPI_Test_cancelled(&s, &flag);
	if (flag) /* it may be so: then the message still waits */
		MPI_Recv(in, 3, MPI_BYTE, partner, 2, comm, &s);
	CHECK_INT(count_of(&s), 3);
	MPI_Request_free(&persistent);
	CHECK(persistent == MPI_REQUEST_NULL);
	return NULL;
}

/* ---- probes ---------------------------------------------------------------------------------- */

/* A matched message is out of reach of other receives, and those matched can be received in any
 * order. */
static const char *matched(int round)
{
	enum { N = 6 };
	static unsigned char out[MOST], in[MOST + 1];
	int bytes[N];
	MPI_Message m[N];
	MPI_Request r[N];
	MPI_Status s;
	int flag;

	for (int i = 0; i < N; i++)
		bytes[i] = drawn_bytes();
	if (partner == tap_rank)
		return NULL;
	if ((tap_rank + round) % 2 == 0) {
		for (int i = 0; i < N; i++) {
			fill_bytes(out, (size_t)bytes[i], i);
			MPI_Irecv(NULL, 0, MPI_BYTE, partner, 2, comm, &r[1]);
			MPI_Isend(out, bytes[i], MPI_BYTE, partner, 1, comm, &r[0]);
			MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		}
		return NULL;
	}
	for (int i = 0; i < N; i++) {
		MPI_Mprobe(MPI_ANY_SOURCE, 1, comm, &m[i], &s);
		CHECK_INT(s.MPI_SOURCE, partner);
		CHECK_INT(count_of(&s), bytes[i]);
		MPI_Iprobe(partner, 1, comm, &flag, &s);
		CHECK_INT(flag, 0);
		/* short of room its sender needs the receive to go on */
		memset(in, 0xee, sizeof(in));
		if (i % 2) {
			MPI_Imrecv(in, bytes[i] + 1, MPI_BYTE, &m[i], &r[i]);
			CHECK(m[i] == MPI_MESSAGE_NULL);
			MPI_Wait(&r[i], &s);
		} else {
			MPI_Mrecv(in, bytes[i] + 1, MPI_BYTE, &m[i], &s);
		}
		CHECK_INT(s.MPI_TAG, 1);
		CHECK_INT(count_of(&s), bytes[i]);
		CHECK_INT(wrong_byte(in, (size_t)bytes[i], i), -1);
		CHECK_INT(in[bytes[i]], 0xee);
		MPI_Send(NULL, 0, MPI_BYTE, partner, 2, comm);
	}
	return NULL;
}

/* Six messages under way, matched in order, received backwards. */
static const char *matched_backwards(int round)
{
	enum { N = 6 };
	static unsigned char out[N][MOST], in[MOST];
	MPI_Message m[N];
	MPI_Request r[N];
	MPI_Status s;

	if (partner == tap_rank)
		return NULL;
	if ((tap_rank + round) % 2 == 0) {
		for (int i = 0; i < N; i++) {
			fill_bytes(out[i], (size_t)(10000 * i + round), i);
			MPI_Isend(out[i], 10000 * i + round, MPI_BYTE, partner, i, comm, &r[i]);
		}
		MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
		return NULL;
	}
	for (int i = 0; i < N; i++) {
		MPI_Mprobe(partner, MPI_ANY_TAG, comm, &m[i], &s);
		CHECK_INT(s.MPI_TAG, i);
	}
	for (int i = N - 1; i >= 0; i--) {
		MPI_Mrecv(in, MOST, MPI_BYTE, &m[i], &s);
		CHECK_INT(s.MPI_TAG, i);
		CHECK_INT(count_of(&s), 10000 * i + round);
		CHECK_INT(wrong_byte(in, (size_t)(10000 * i + round), i), -1);
	}
	return NULL;
}

/* ---- generalized requests -------------------------------------------------------------------- */

static struct user {
	int queried, freed, cancelled, complete;
} user;

static int query(void *state, MPI_Status *s)
{
	((struct user *)state)->queried++;
	MPI_Status_set_elements(s, MPI_INT, 11);
	MPI_Status_set_cancelled(s, ((struct user *)state)->cancelled);
	s->MPI_SOURCE = 5;
	s->MPI_TAG = 6;
	return MPI_SUCCESS;
}

static int set_free(void *state)
{
	((struct user *)state)->freed++;
	return MPI_SUCCESS;
}

static int set_cancelled(void *state, int complete)
{
	((struct user *)state)->cancelled = 1;
	((struct user *)state)->complete = complete;
	return MPI_SUCCESS;
}

static const char *generalized(int round)
{
	MPI_Request r[2];
	MPI_Status s, two[2];
	int flag = 1, n;

	(void)round;
	user = (struct user){ .complete = -1 };
	MPI_Grequest_start(query, set_free, set_cancelled, &user, &r[0]);
	MPI_Test(&r[0], &flag, &s);
	CHECK_INT(flag, 0);
	MPI_Request_get_status(r[0], &flag, &s);
	CHECK_INT(flag, 0);
	MPI_Cancel(&r[0]);
	CHECK_INT(user.complete, 0);
	MPI_Grequest_complete(r[0]);
	CHECK_INT(user.freed, 0);
	MPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, &r[1]);
	MPI_Waitall(2, r, two);
	CHECK(r[0] == MPI_REQUEST_NULL && user.freed == 1 && user.queried >= 1);
	CHECK(two[0].MPI_SOURCE == 5 && two[0].MPI_TAG == 6);
	MPI_Get_count(&two[0], MPI_INT, &n);
	CHECK_INT(n, 11);
	MPI_Test_cancelled(&two[0], &flag);
	CHECK_INT(flag, 1);
	/* freed by the user before it is complete */
	user = (struct user){ 0 };
	MPI_Grequest_start(query, set_free, set_cancelled, &user, &r[0]);
	r[1] = r[0];
	MPI_Request_free(&r[1]);
	CHECK(r[1] == MPI_REQUEST_NULL && (!user.freed || tap_tame));
	MPI_Grequest_complete(r[0]);
	CHECK_INT(user.freed, 1);
	CHECK_INT(user.queried, 0);
	return NULL;
}

/* ---- generalized requests whose callbacks fail ----------------------------------------------- */

static int query_code, free_code;

static int query_badly(void *state, MPI_Status *s)
{
	query(state, s);
	return query_code;
}

static int free_badly(void *state)
{
	set_free(state);
	return free_code;
}

static MPI_Request complete_one(void)
{
	MPI_Request r;

	user = (struct user){ 0 };
	MPI_Grequest_start(query_badly, free_badly, set_cancelled, &user, &r);
	MPI_Grequest_complete(r);
	return r;
}

static const char *errors_of_callbacks(int of_query, int of_free, int want)
{
	MPI_Request r = complete_one(), two[2];
	MPI_Status s, ss[2];
	int flag, i, n, at[2];

	query_code = of_query;
	free_code = of_free;
	CHECK_CLASS(MPI_Wait(&r, &s), want);
	CHECK(r == MPI_REQUEST_NULL && user.freed == 1 && s.MPI_TAG == 6);
	r = complete_one();
	CHECK_CLASS(MPI_Test(&r, &flag, MPI_STATUS_IGNORE), want);
	CHECK(r == MPI_REQUEST_NULL && user.freed == 1 && flag);
	r = complete_one();
	CHECK_CLASS(MPI_Waitany(1, &r, &i, &s), want);
	CHECK(r == MPI_REQUEST_NULL && user.freed == 1 && i == 0);
	r = complete_one();
	CHECK_CLASS(MPI_Testany(1, &r, &i, &flag, &s), want);
	CHECK(r == MPI_REQUEST_NULL && user.freed == 1 && flag && i == 0);
	for (int how = 0; how < 4; how++) {
		two[0] = complete_one();
		MPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, &two[1]);
		n = 2, flag = 1;
		if (how == 0)
			CHECK_CLASS(MPI_Waitall(2, two, ss), MPI_ERR_IN_STATUS);
		else if (how == 1)
			CHECK_CLASS(MPI_Testall(2, two, &flag, ss), MPI_ERR_IN_STATUS);
		else if (how == 2)
			CHECK_CLASS(MPI_Waitsome(2, two, &n, at, ss), MPI_ERR_IN_STATUS);
		else
			CHECK_CLASS(MPI_Testsome(2, two, &n, at, ss), MPI_ERR_IN_STATUS);
		CHECK(flag && n == 2 && user.freed == 1);
		CHECK(two[0] == MPI_REQUEST_NULL && two[1] == MPI_REQUEST_NULL);
		CHECK_CLASS(ss[0].MPI_ERROR, want);
		CHECK_CLASS(ss[1].MPI_ERROR, MPI_SUCCESS);
	}
	two[0] = complete_one();
	CHECK_CLASS(MPI_Waitall(1, two, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
	return NULL;
}

/* MPI-4 §13.2: who calls back returns what the callback did, the last one's error if both fail. */
static const char *generalized_badly(int round)
{
	const char *wrong = errors_of_callbacks(MPI_SUCCESS, MPI_ERR_BUFFER, MPI_ERR_BUFFER);
	MPI_Request r, copy;

	(void)round;
	if (!wrong)
		wrong = errors_of_callbacks(MPI_ERR_TAG, MPI_SUCCESS, MPI_ERR_TAG);
	if (!wrong)
		wrong = errors_of_callbacks(MPI_ERR_TAG, MPI_ERR_BUFFER, MPI_ERR_BUFFER);
	if (wrong)
		return wrong;
	r = complete_one();
	CHECK_CLASS(MPI_Request_free(&r), MPI_ERR_BUFFER);
	CHECK(r == MPI_REQUEST_NULL && user.freed == 1 && user.queried == 0);
	user = (struct user){ 0 };
	MPI_Grequest_start(query_badly, free_badly, set_cancelled, &user, &r);
	copy = r;
	CHECK_OK(MPI_Request_free(&r));
	CHECK(r == MPI_REQUEST_NULL && user.freed == 0);
	CHECK_CLASS(MPI_Grequest_complete(copy), MPI_ERR_BUFFER);
	CHECK_INT(user.freed, 1);
	return NULL;
}

/* The message was of this communicator, and so is what goes wrong with its receive, of this
 * alone. */
static const char *matched_error(int round)
{
	static unsigned char out[MOST], in[1];
	const int lengths[] = { 10, MOST };
	MPI_Request send;
	MPI_Message m;
	MPI_Status s;
	MPI_Comm own;

	MPI_Comm_dup(comm, &own);
	MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
	MPI_Isend(out, lengths[round % 2], MPI_BYTE, tap_rank, 7, own, &send);
	MPI_Mprobe(tap_rank, 7, own, &m, &s);
	CHECK_CLASS(MPI_Mrecv(in, 1, MPI_BYTE, &m, &s), MPI_ERR_TRUNCATE);
	CHECK(m == MPI_MESSAGE_NULL);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	MPI_Comm_free(&own);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 60);
	if (tap_rank % 2)
		partner = tap_rank - 1;
	else
		partner = tap_rank + 1 < tap_size ? tap_rank + 1 : tap_rank;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* of callbacks */
	tap_case("wait: sets of requests, by any calls", sets);
	tap_case("wait: matched probes", matched);
	tap_rounds_set(4);
	tap_case("wait: matched messages received backwards", matched_backwards);
	if (!tap_tame)
		tap_case("wait: errors of matched receives are the communicator's", matched_error);
	tap_case("wait: cancelled receives", cancel);
	tap_case("wait: generalized requests", generalized);
	if (!tap_tame)
		tap_case("wait: generalized requests whose callbacks fail", generalized_badly);
	MPI_Comm_free(&comm);
	return tap_end();
}
