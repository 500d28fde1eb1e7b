/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rows of the measuring tools: see bench.h. It is built for MX and for Open-MX.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	ROW_MAGIC = 0x6d786270,
	WINDOW = 16, /* messages of a stream in flight */
	ALIGNMENT = 65536,
};

/* Match bits. Data carry the number of their round. */
#define ROW_BITS   UINT64_C(0x0000222211110000)
#define READY_BITS UINT64_C(0x0000222211110001)
#define THERE_BITS UINT64_C(0x1000000000000000)
#define BACK_BITS  UINT64_C(0x2000000000000000)

/* A row as it is sent, in network order. */
struct row_message {
	uint32_t magic, kind, length, rounds, warmup, flags;
};

enum { ROW_SYNC = 1, ROW_VERIFY = 2, ROW_ALIGNED = 4, ROW_SLEEP = 8, ROW_YIELD = 16 };

static double bench_microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static unsigned char *bench_buffer(const struct bench_row *row, size_t times)
{
	void *at = NULL;
	int err = posix_memalign(&at, row->aligned ? ALIGNMENT : 64,
				 (row->length ? row->length : 1) * times);

	if (err) {
		fprintf(stderr, "%s: no memory for messages of %u bytes\n", face_tool, row->length);
		exit(1);
	}
	memset(at, 0, (row->length ? row->length : 1) * times);
	return at;
}

/* The bytes of round `i`. */
static void fill_pattern(unsigned char *data, uint32_t length, uint32_t i)
{
	for (uint32_t j = 0; j < length; j++)
		data[j] = (unsigned char)(j * 7 + (j >> 8) + i);
}

static void check_pattern(const unsigned char *data, uint32_t length, uint32_t i)
{
	for (uint32_t j = 0; j < length; j++)
		if (data[j] != (unsigned char)(j * 7 + (j >> 8) + i)) {
			fprintf(stderr, "%s: byte %u of %u is wrong in round %u\n", face_tool, j,
				length, i);
			exit(1);
		}
}

static void check_length(const face_status *status, uint32_t length)
{
	if (status->xfer_length == length && status->msg_length == length)
		return;
	fprintf(stderr, "%s: a message of %u bytes came as one of %u, of which %u were received\n",
		face_tool, length, status->msg_length, status->xfer_length);
	exit(1);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

face_endpoint bench_open(const struct bench_place *place)
{
	face_endpoint ep;

	face_check(face_start(), "start");
	face_check(FACE(open_endpoint)(place->board, place->eid, place->key, NULL, 0, &ep),
		   "open an endpoint");
	return ep;
}

void bench_close(face_endpoint ep)
{
	face_check(FACE(close_endpoint)(ep), "close the endpoint");
	face_check(FACE(finalize)(), "end");
}

void bench_say_where(face_endpoint ep, const char *text)
{
	char name[FACE_NAME_LEN] = "";
	uint64_t nic_id;
	uint32_t eid;
	face_addr addr;

	face_check(FACE(get_endpoint_addr)(ep, &addr), "own address");
	face_check(FACE(decompose_endpoint_addr)(addr, &nic_id, &eid), "own address");
	face_check(FACE(nic_id_to_hostname)(nic_id, name), "own name");
	printf("%s %s, endpoint=%u\n", text, name, eid);
	fflush(stdout);
}

static uint64_t nic_of_host(const char *host)
{
	char name[FACE_NAME_LEN];
	uint64_t nic_id;
	char *end;

	if (strncmp(host, "0x", 2) == 0) {
		nic_id = strtoull(host, &end, 16);
		if (!*end)
			return nic_id;
	}
	snprintf(name, sizeof(name), "%s", host);
	face_check(FACE(hostname_to_nic_id)(name, &nic_id), host);
	return nic_id;
}

face_addr bench_connect(face_endpoint ep, const struct bench_place *place)
{
	uint64_t nic_id = nic_of_host(place->host);
	face_addr addr;

	face_check(face_reach(ep, nic_id, place->remote_eid, place->key, &addr), "connect");
	return addr;
}

/* ---- a row, as both sides do it -------------------------------------------------------------- */

/* Rounds of a ping-pong, first those of the warm-up. Returns the time of the others. */
static double pingpong_rounds(face_endpoint ep, face_addr to, const struct bench_row *row)
{
	uint32_t back = row->kind == BENCH_UNIDIRECTIONAL ? 0 : row->length;
	unsigned char *out = bench_buffer(row, 1), *in = bench_buffer(row, 1);
	face_request sending, receiving;
	face_status status;
	double start = 0;

	for (uint32_t i = 0; i < row->warmup + row->rounds; i++) {
		if (i == row->warmup)
			start = bench_microseconds();
		if (row->verify)
			fill_pattern(out, row->length, i);
		face_receive(ep, in, back, BACK_BITS | i, &receiving);
		face_send(ep, out, row->length, row->sync, to, THERE_BITS | i, &sending);
		face_await(ep, &sending, row->wait, &status);
		face_await(ep, &receiving, row->wait, &status);
		if (row->verify) {
			check_length(&status, back);
			check_pattern(in, back, i);
		}
	}
	start = bench_microseconds() - start;
	free(out);
	free(in);
	return start;
}

/* The other side of that. A receive is posted before the message that it is for can come. */
static void pingpong_answers(face_endpoint ep, face_addr to, const struct bench_row *row)
{
	uint32_t back = row->kind == BENCH_UNIDIRECTIONAL ? 0 : row->length;
	unsigned char *data = bench_buffer(row, 1);
	uint32_t rounds = row->warmup + row->rounds;
	face_request sending, receiving = NULL;
	face_status status;

	if (rounds)
		face_receive(ep, data, row->length, THERE_BITS, &receiving);
	face_send(ep, NULL, 0, false, to, READY_BITS, &sending);
	face_await(ep, &sending, row->wait, &status);
	for (uint32_t i = 0; i < rounds; i++) {
		face_await(ep, &receiving, row->wait, &status);
		check_length(&status, row->length);
		/* it is sent back from where it came, and where the next one will come */
		face_send(ep, data, back, row->sync, to, BACK_BITS | i, &sending);
		if (i + 1 < rounds)
			face_receive(ep, data, row->length, THERE_BITS | (i + 1), &receiving);
		face_await(ep, &sending, row->wait, &status);
	}
	free(data);
}

/* One direction of a stream. */
struct flow {
	uint64_t bits;
	uint32_t count; /* messages in all */
	uint32_t started, ended;
	face_request req[WINDOW];
	unsigned char *data;
	size_t stride; /* from the buffer of one message to that of the next */
};

static unsigned char *flow_place(const struct flow *flow, uint32_t i)
{
	return flow->data + (i % WINDOW) * flow->stride;
}

static bool flow_advances(face_endpoint ep, const struct bench_row *row, face_addr to,
			  struct flow *flow, bool sends)
{
	uint32_t before = flow->started + flow->ended;
	face_status status;

	while (flow->started < flow->count && flow->started - flow->ended < WINDOW) {
		uint32_t i = flow->started++;

		if (sends)
			face_send(ep, flow_place(flow, i), row->length, row->sync, to,
				  flow->bits | i, &flow->req[i % WINDOW]);
		else
			face_receive(ep, flow_place(flow, i), row->length, flow->bits | i,
				     &flow->req[i % WINDOW]);
	}
	while (flow->ended < flow->started &&
	       face_ended(ep, &flow->req[flow->ended % WINDOW], &status)) {
		if (!sends)
			check_length(&status, row->length);
		if (!sends && row->verify)
			check_pattern(flow_place(flow, flow->ended), row->length, 0);
		flow->ended++;
	}
	return flow->started + flow->ended != before;
}

static void flow_waits(face_endpoint ep, const struct bench_row *row, struct flow *flow, bool sends)
{
	face_status status;

	face_await(ep, &flow->req[flow->ended % WINDOW], row->wait, &status);
	if (!sends)
		check_length(&status, row->length);
	if (!sends && row->verify)
		check_pattern(flow_place(flow, flow->ended), row->length, 0);
	flow->ended++;
}

/* Messages of a stream: `out` there, `in` back. Tells the other side when its first may come. */
static void stream_rounds(face_endpoint ep, face_addr to, const struct bench_row *row,
			  struct flow *out, struct flow *in, bool tell)
{
	face_request sending;
	face_status status;

	out->data = bench_buffer(row, 1);
	in->data = bench_buffer(row, row->verify ? WINDOW : 1);
	in->stride = row->verify ? row->length : 0;
	if (row->verify)
		fill_pattern(out->data, row->length, 0);
	flow_advances(ep, row, to, in, false);
	if (tell) {
		face_send(ep, NULL, 0, false, to, READY_BITS, &sending);
		face_await(ep, &sending, row->wait, &status);
	}
	while (out->ended < out->count || in->ended < in->count) {
		bool moved = flow_advances(ep, row, to, in, false);

		moved = flow_advances(ep, row, to, out, true) || moved;
		if (moved || row->wait == FACE_POLL)
			continue;
		if (row->wait == FACE_YIELD)
			sched_yield();
		else if (in->ended < in->started)
			flow_waits(ep, row, in, false);
		else if (out->ended < out->started)
			flow_waits(ep, row, out, true);
	}
	free(out->data);
	free(in->data);
}

/* ---- the sender ------------------------------------------------------------------------------ */

static void send_row_message(face_endpoint ep, face_addr to, const struct bench_row *row)
{
	uint32_t flags = (row->sync ? ROW_SYNC : 0U) | (row->verify ? ROW_VERIFY : 0U) |
			 (row->aligned ? ROW_ALIGNED : 0U) |
			 (row->wait == FACE_SLEEP ? ROW_SLEEP : 0U) |
			 (row->wait == FACE_YIELD ? ROW_YIELD : 0U);
	struct row_message msg = { htonl(ROW_MAGIC),   htonl(row->kind),   htonl(row->length),
				   htonl(row->rounds), htonl(row->warmup), htonl(flags) };
	face_request req;
	face_status status;

	face_send(ep, &msg, sizeof(msg), false, to, ROW_BITS, &req);
	face_await(ep, &req, FACE_SLEEP, &status);
}

double bench_send_row(face_endpoint ep, face_addr to, const struct bench_row *row)
{
	struct flow out = { .bits = THERE_BITS, .count = row->rounds };
	struct flow in = { .bits = BACK_BITS, .count = row->kind == BENCH_BOTH ? row->rounds : 0 };
	face_request req;
	face_status status;
	double start;

	face_receive(ep, NULL, 0, READY_BITS, &req);
	send_row_message(ep, to, row);
	face_await(ep, &req, FACE_SLEEP, &status);
	if (row->kind == BENCH_PINGPONG || row->kind == BENCH_UNIDIRECTIONAL)
		return pingpong_rounds(ep, to, row);
	start = bench_microseconds();
	face_receive(ep, NULL, 0, READY_BITS, &req);
	stream_rounds(ep, to, row, &out, &in, false);
	/* the receiver has them all */
	face_await(ep, &req, row->wait, &status);
	return bench_microseconds() - start;
}

void bench_send_end(face_endpoint ep, face_addr to)
{
	struct bench_row end = { .kind = BENCH_END };
	face_request req;
	face_status status;

	face_receive(ep, NULL, 0, READY_BITS, &req);
	send_row_message(ep, to, &end);
	face_await(ep, &req, FACE_SLEEP, &status);
}

/* ---- the receiver ---------------------------------------------------------------------------- */

static bool row_of_message(const struct row_message *msg, const face_status *status,
			   struct bench_row *row)
{
	uint32_t flags = ntohl(msg->flags);

	if (status->msg_length != sizeof(*msg) || ntohl(msg->magic) != ROW_MAGIC ||
	    ntohl(msg->kind) > BENCH_END || ntohl(msg->rounds) > INT32_MAX ||
	    ntohl(msg->warmup) > INT32_MAX) {
		fprintf(stderr, "%s: a message that is no row was dropped\n", face_tool);
		return false;
	}
	*row = (struct bench_row){
		.kind = (enum bench_kind)ntohl(msg->kind),
		.length = ntohl(msg->length),
		.rounds = ntohl(msg->rounds),
		.warmup = ntohl(msg->warmup),
		.wait = flags & ROW_SLEEP   ? FACE_SLEEP
			: flags & ROW_YIELD ? FACE_YIELD
					    : FACE_POLL,
		.sync = flags & ROW_SYNC,
		.verify = flags & ROW_VERIFY,
		.aligned = flags & ROW_ALIGNED,
	};
	return true;
}

static void serve_row(face_endpoint ep, face_addr from, const struct bench_row *row)
{
	struct flow in = { .bits = THERE_BITS, .count = row->rounds };
	struct flow out = { .bits = BACK_BITS, .count = row->kind == BENCH_BOTH ? row->rounds : 0 };
	face_request req;
	face_status status;

	if (row->kind == BENCH_PINGPONG || row->kind == BENCH_UNIDIRECTIONAL) {
		pingpong_answers(ep, from, row);
		return;
	}
	if (row->kind != BENCH_END)
		stream_rounds(ep, from, row, &out, &in, true);
	/* all is here; nobody waits for a row any more */
	face_send(ep, NULL, 0, true, from, READY_BITS, &req);
	face_await(ep, &req, row->wait, &status);
}

void bench_serve(face_endpoint ep, const struct bench_place *place)
{
	struct row_message msg;
	struct bench_row row;
	face_request req;
	face_status status;

	do {
		face_receive(ep, &msg, sizeof(msg), ROW_BITS, &req);
		face_await(ep, &req, FACE_SLEEP, &status);
		row.kind = BENCH_PINGPONG;
		if (!row_of_message(&msg, &status, &row))
			continue;
		if (place->verbose)
			printf("length %u: %u rounds after %u to warm up\n", row.length, row.rounds,
			       row.warmup);
		fflush(stdout);
		serve_row(ep, face_source(&status), &row);
	} while (place->slave || row.kind != BENCH_END);
}

/* ---- the command line ------------------------------------------------------------------------ */

uint32_t bench_number(int option, const char *text, uint32_t most)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 0);

	if (*text && *text != '-' && !*end && value <= most)
		return (uint32_t)value;
	fprintf(stderr, "%s: -%c %s: not a number up to %u\n", face_tool, option, text, most);
	exit(2);
}

uint32_t bench_eid(const char *text)
{
	if (strcmp(text, "any") == 0)
		return FACE_ANY;
	return bench_number('e', text, UINT32_MAX);
}

uint32_t bench_board(const char *nic_id)
{
	uint32_t board;
	char *end;
	uint64_t id = strtoull(nic_id, &end, 16);

	if (!*nic_id || *end) {
		fprintf(stderr, "%s: -n %s: not a hexadecimal number\n", face_tool, nic_id);
		exit(2);
	}
	face_check(face_start(), "start");
	face_check(FACE(nic_id_to_board_number)(id, &board), nic_id);
	face_check(FACE(finalize)(), "end");
	return board;
}

void bench_read_lengths(struct bench_lengths *lengths, const char *file)
{
	FILE *f = fopen(file, "re");
	uint32_t room = 0;
	char line[80];

	if (!f) {
		fprintf(stderr, "%s: %s: %m\n", face_tool, file);
		exit(1);
	}
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!*line)
			continue;
		if (lengths->count == room) {
			room = room ? 2 * room : 64;
			lengths->list = realloc(lengths->list, room * sizeof(*lengths->list));
			if (!lengths->list) {
				fprintf(stderr, "%s: no memory for the lengths in %s\n", face_tool,
					file);
				exit(1);
			}
		}
		lengths->list[lengths->count++] = bench_number('L', line, INT32_MAX);
	}
	fclose(f);
}

bool bench_next_length(const struct bench_lengths *lengths, uint32_t i, uint32_t before,
		       uint32_t *length)
{
	uint64_t next = lengths->start;

	if (lengths->list) {
		if (i >= lengths->count)
			return false;
		*length = lengths->list[i];
		return true;
	}
	if (i > 0 && lengths->factor > 0) {
		next = (uint64_t)((double)before * lengths->factor) + lengths->step;
		if (next <= before)
			next = (uint64_t)before + 1;
	} else if (i > 0) {
		next = (uint64_t)before + (lengths->step ? lengths->step : 1);
	}
	if (next >= lengths->end)
		return false;
	*length = (uint32_t)next;
	return true;
}
