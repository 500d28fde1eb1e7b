/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A server for anybody: clients send a text, and get it back in capital letters. The server posts
 * no receive. An unexpected handler sees each request, and sends the answer to where it came from.
 * Run it with: uppercase COUNT            it prints where it is, and ends after COUNT requests
 *              uppercase HOST ID TEXT
 */
#include <ctype.h>
#include <mx_extensions.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY = 0xf00d, TEXT = 256, PATIENCE_MS = 10000 };

#define REQUEST UINT64_C(0x100)
#define ANSWER  UINT64_C(0x200)

static void check(mx_return_t code, const char *what)
{
	if (code == MX_SUCCESS)
		return;
	fprintf(stderr, "uppercase: %s: %s\n", what, mx_strerror(code));
	exit(1);
}

/* Called by the library for each message that comes; there is no posted receive. The text is at
 * `data` during this call. A longer one than that would come without data, and is ignored. */
static mx_unexp_handler_action_t serve_request(void *context, mx_endpoint_addr_t source,
					       uint64_t match_value, uint32_t length, void *data)
{
	mx_endpoint_t ep = *(mx_endpoint_t *)context;
	const unsigned char *text = data;
	mx_segment_t segment;
	mx_request_t request;
	char *answer;

	if (match_value != REQUEST || !data || length > TEXT)
		return MX_RECV_FINISHED;
	answer = malloc(length + 1);
	if (!answer)
		return MX_RECV_FINISHED;
	for (uint32_t i = 0; i < length; i++)
		answer[i] = (char)toupper(text[i]);
	segment = (mx_segment_t){ answer, length };
	/* its memory is freed when it has been sent: the request's context leads to it */
	if (mx_isend(ep, &segment, 1, source, ANSWER, answer, &request) != MX_SUCCESS)
		free(answer);
	return MX_RECV_FINISHED;
}

static void serve(mx_endpoint_t ep, int count)
{
	mx_status_t status;
	uint32_t done;

	check(mx_register_unexp_handler(ep, serve_request, &ep), "mx_register_unexp_handler");
	/* The handler runs within this call. Only answers end here. */
	while (count > 0) {
		check(mx_wait_any(ep, MX_INFINITE, ANSWER, MX_MATCH_MASK_NONE, &status, &done),
		      "mx_wait_any");
		if (!done)
			continue;
		printf("answered %u bytes: %s\n", status.msg_length, mx_strstatus(status.code));
		fflush(stdout);
		free(status.context);
		count--;
	}
}

static void ask(mx_endpoint_t ep, mx_endpoint_addr_t server, char *text)
{
	char answer[TEXT + 1] = "";
	mx_segment_t sent = { text, (uint32_t)strlen(text) };
	mx_segment_t received = { answer, TEXT };
	mx_request_t request;
	mx_status_t status;
	uint32_t done;

	check(mx_irecv(ep, &received, 1, ANSWER, MX_MATCH_MASK_NONE, NULL, &request), "mx_irecv");
	/* nobody asks for the send: the answer says that it arrived */
	check(mx_isend(ep, &sent, 1, server, REQUEST, NULL, NULL), "mx_isend");
	check(mx_wait(ep, &request, PATIENCE_MS, &status, &done), "mx_wait");
	if (!done || status.code != MX_STATUS_SUCCESS) {
		fprintf(stderr, "uppercase: %s\n",
			done ? mx_strstatus(status.code) : "the server does not answer");
		exit(1);
	}
	puts(answer);
}

int main(int argc, char **argv)
{
	mx_endpoint_addr_t addr;
	char name[MX_MAX_HOSTNAME_LEN];
	mx_endpoint_t ep;
	uint64_t nic_id;
	uint32_t id;

	if (argc != 2 && argc != 4) {
		fputs("usage: uppercase COUNT\n       uppercase HOST ID TEXT\n", stderr);
		return 2;
	}
	mx_set_error_handler(MX_ERRORS_RETURN);
	check(mx_init(), "mx_init");
	check(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, KEY, NULL, 0, &ep), "mx_open_endpoint");
	if (argc == 2) {
		check(mx_get_endpoint_addr(ep, &addr), "mx_get_endpoint_addr");
		check(mx_decompose_endpoint_addr(addr, &nic_id, &id), "mx_decompose_endpoint_addr");
		check(mx_nic_id_to_hostname(nic_id, name), "mx_nic_id_to_hostname");
		printf("at %s %u\n", name, id);
		fflush(stdout);
		serve(ep, atoi(argv[1]));
	} else {
		check(mx_hostname_to_nic_id(argv[1], &nic_id), argv[1]);
		id = (uint32_t)strtoul(argv[2], NULL, 10);
		check(mx_connect(ep, nic_id, id, KEY, PATIENCE_MS, &addr), "mx_connect");
		ask(ep, addr, argv[3]);
	}
	check(mx_close_endpoint(ep), "mx_close_endpoint");
	check(mx_finalize(), "mx_finalize");
	return 0;
}
