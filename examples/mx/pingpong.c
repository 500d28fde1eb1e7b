/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A ping-pong between two processes that use MX: one opens an endpoint and answers, the other
 * connects, sends a thousand messages, and prints how long one takes.
 * Run it with: pingpong             it prints where it is
 *              pingpong HOST ID     on this or another host
 */
#include <myriexpress.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEY = 0xcafe, BYTES = 1024, ROUNDS = 1000, PATIENCE_MS = 10000 };

/* Match bits: the direction in the upper half, the round in the lower. */
#define PING(round) (UINT64_C(1) << 32 | (uint32_t)(round))
#define PONG(round) (UINT64_C(2) << 32 | (uint32_t)(round))

static void check(mx_return_t code, const char *what)
{
	if (code == MX_SUCCESS)
		return;
	fprintf(stderr, "pingpong: %s: %s\n", what, mx_strerror(code));
	exit(1);
}

/* A peer may end at any time: waiting has a limit, and the status says whether all went well. */
static void wait_for(mx_endpoint_t ep, mx_request_t *request, mx_status_t *status)
{
	uint32_t done;

	check(mx_wait(ep, request, PATIENCE_MS, status, &done), "mx_wait");
	if (!done || status->code != MX_STATUS_SUCCESS) {
		fprintf(stderr, "pingpong: %s\n",
			done ? mx_strstatus(status->code) : "the other side does not answer");
		exit(1);
	}
}

/* The sender's address comes with its messages: there is no need to connect to it. */
static void answer(mx_endpoint_t ep)
{
	unsigned char data[BYTES];
	mx_segment_t segment = { data, sizeof(data) };
	mx_request_t request;
	mx_status_t status;

	for (int i = 0; i < ROUNDS; i++) {
		check(mx_irecv(ep, &segment, 1, PING(i), MX_MATCH_MASK_NONE, NULL, &request),
		      "mx_irecv");
		wait_for(ep, &request, &status);
		check(mx_isend(ep, &segment, 1, status.source, PONG(i), NULL, &request),
		      "mx_isend");
		wait_for(ep, &request, &status);
	}
}

static void ask(mx_endpoint_t ep, mx_endpoint_addr_t peer)
{
	unsigned char out[BYTES], in[BYTES];
	mx_segment_t sent = { out, sizeof(out) }, received = { in, sizeof(in) };
	mx_request_t sending, receiving;
	struct timespec start, end;
	mx_status_t status;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < ROUNDS; i++) {
		memset(out, i, sizeof(out));
		/* posted first, the answer goes straight into the buffer */
		check(mx_irecv(ep, &received, 1, PONG(i), MX_MATCH_MASK_NONE, NULL, &receiving),
		      "mx_irecv");
		check(mx_isend(ep, &sent, 1, peer, PING(i), NULL, &sending), "mx_isend");
		wait_for(ep, &sending, &status);
		wait_for(ep, &receiving, &status);
		if (status.xfer_length != BYTES || memcmp(in, out, BYTES) != 0) {
			fprintf(stderr, "pingpong: round %d came back as something else\n", i);
			exit(1);
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%d bytes: %.3f us one way\n", BYTES,
	       ((double)(end.tv_sec - start.tv_sec) * 1e6 +
		(double)(end.tv_nsec - start.tv_nsec) / 1e3) /
		       ROUNDS / 2);
}

int main(int argc, char **argv)
{
	char name[MX_MAX_HOSTNAME_LEN];
	mx_endpoint_addr_t own, peer;
	mx_endpoint_t ep;
	uint64_t nic_id;
	uint32_t id;

	if (argc != 1 && argc != 3) {
		fputs("usage: pingpong [HOST ID]\n", stderr);
		return 2;
	}
	/* Without this the first error would end the process. */
	mx_set_error_handler(MX_ERRORS_RETURN);
	check(mx_init(), "mx_init");
	check(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, KEY, NULL, 0, &ep), "mx_open_endpoint");
	if (argc == 1) {
		check(mx_get_endpoint_addr(ep, &own), "mx_get_endpoint_addr");
		check(mx_decompose_endpoint_addr(own, &nic_id, &id), "mx_decompose_endpoint_addr");
		check(mx_nic_id_to_hostname(nic_id, name), "mx_nic_id_to_hostname");
		printf("at %s %u\n", name, id);
		fflush(stdout);
		answer(ep);
	} else {
		check(mx_hostname_to_nic_id(argv[1], &nic_id), argv[1]);
		id = (uint32_t)strtoul(argv[2], NULL, 10);
		check(mx_connect(ep, nic_id, id, KEY, PATIENCE_MS, &peer), "mx_connect");
		ask(ep, peer);
	}
	check(mx_close_endpoint(ep), "mx_close_endpoint");
	check(mx_finalize(), "mx_finalize");
	return 0;
}
