/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A broadcast made of edges, as DP has no group operations of its own: a binary tree. Process i
 * has endpoint i + 1; a message to it goes on to 2 i + 1 and 2 i + 2. Back up the same tree goes
 * the number of processes below, a reduction.
 *
 *     mpiexec -n 7 dp_broadcast [BYTES]
 */
#include <dp.h>
#include <portals3.h>
#include <p3rt/p3rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tree {
	int fd;
	int own, count;
};

static int child_of(const struct tree *t, int which)
{
	int child = 2 * t->own + 1 + which;

	return child < t->count ? child : -1;
}

static void send_to(const struct tree *t, int process, const void *bytes, int length)
{
	dp_target(t->fd, dp_nid(), process + 1);
	if (dp_write(t->fd, bytes, length) != length) {
		perror("dp_write");
		exit(1);
	}
}

/* From the parent to the children; returns the length. */
static int broadcast(const struct tree *t, char *bytes, int length)
{
	char *at;

	if (t->own > 0) {
		length = dp_read(t->fd, &at);
		if (length < 0) {
			perror("dp_read");
			exit(1);
		}
		memcpy(bytes, at, (size_t)length);
		dp_fsync(t->fd, 1);
	}
	for (int i = 0; i < 2; i++)
		if (child_of(t, i) >= 0)
			send_to(t, child_of(t, i), bytes, length);
	return length;
}

/* From the children to the parent: how many processes have the right bytes? */
static int reduce(const struct tree *t, int sum)
{
	int part;
	char *at;

	for (int i = 0; i < 2; i++) {
		if (child_of(t, i) < 0)
			continue;
		if (dp_read(t->fd, &at) != sizeof(part))
			return -1;
		memcpy(&part, at, sizeof(part));
		dp_fsync(t->fd, 1);
		sum += part;
	}
	if (t->own > 0)
		send_to(t, (t->own - 1) / 2, &sum, sizeof(sum));
	return sum;
}

int main(int argc, char **argv)
{
	static char bytes[DP_MAX_MESSAGE];
	int length = argc > 1 ? atoi(argv[1]) : 1000, right, total = 0;
	unsigned int rank, size;
	ptl_handle_ni_t ni;
	struct tree t;

	if (length < 0 || length > DP_MAX_MESSAGE || dp_nid() < 0)
		return 1;
	if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK ||
	    PtlGetRank(ni, &rank, &size) != PTL_OK)
		return 1;
	PtlNIFini(ni); /* DP has it open, too */
	t = (struct tree){ dp_open((int)rank + 1), (int)rank, (int)size };
	if (t.fd < 0) {
		perror("dp_open");
		return 1;
	}
	for (int round = 0; round < 100; round++) {
		if (t.own == 0)
			memset(bytes, 'a' + round % 26, (size_t)length);
		else
			memset(bytes, 0, (size_t)length);
		right = broadcast(&t, bytes, length) == length;
		for (int i = 0; i < length; i++)
			right = right && bytes[i] == 'a' + round % 26;
		total = reduce(&t, right);
		if (t.own == 0 && total != t.count)
			return 1;
	}
	if (t.own == 0)
		printf("100 broadcasts of %d bytes to %d processes, all right\n", length, total);
	dp_close(t.fd);
	return 0;
}
