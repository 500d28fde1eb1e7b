/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The first program: each rank tells the next one the address of a block, gets a text written
 * there, and prints it. Start it with `mpiexec -n 3 rwapi_hello`.
 */
#include <rwapi.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 64 };

/* Sleep until there is a message, and take it. */
static rwapi_small_t receive(int *from)
{
	rwapi_small_t small = { .word = { 0, 0 } };
	int found = rwapi_wait(-1);

	if (found == 1)
		found = rwapi_receive(from, &small);
	if (found != 1)
		fprintf(stderr, "rwapi_receive: %s\n", rwapi_strerror(found));
	return small;
}

int main(int argc, char **argv)
{
	int err = rwapi_init(argc, argv), rank, size, next, previous, from = -1;
	rwapi_net_t out_net, in_net, theirs = 0;
	rwapi_sid_t sid = 0;
	rwapi_small_t small;
	char *out, *in;

	if (err) {
		fprintf(stderr, "rwapi_init: %s\n", rwapi_strerror(err));
		return 1;
	}
	rank = rwapi_rank();
	size = rwapi_size();
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	out = rwapi_alloc(TEXT, &out_net);
	in = rwapi_alloc(TEXT, &in_net);
	if (!out || !in)
		return 1;

	/* 1. the next rank, which is to write here, is told where */
	rwapi_net_pack(small.byte, in_net);
	rwapi_send(next, small);
	for (int i = 0; i < 2; i++) {
		small = receive(&from);
		if (from == previous && !theirs) {
			/* 2. its address: write there; the message behind it comes when the text
			 * is in place */
			theirs = rwapi_net_unpack(small.byte);
			snprintf(out, TEXT, "hello from rank %d of %d", rank, size);
			sid = rwapi_write(previous, out_net, theirs, strlen(out) + 1);
			if (sid < 0)
				fprintf(stderr, "rwapi_write: %s\n", rwapi_strerror((int)sid));
			rwapi_send(previous, small);
		} else {
			/* 3. the notice of the next rank, which may be earlier or later */
			printf("rank %d: \"%s\"\n", rank, in);
		}
	}

	/* 4. before `out` is changed: is it sent? */
	while (rwapi_issent(sid) == 0)
		;
	err = rwapi_finalize();
	if (err)
		fprintf(stderr, "rwapi_finalize: %s\n", rwapi_strerror(err));
	return err != RWAPI_OK || sid < 0;
}
