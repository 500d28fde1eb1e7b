/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Addresses: those that are no memory of the target are refused there, whatever the length of the
 * write, change no byte, and the number of the write tells. Local ones are refused at once.
 *
 * refused [MIB]
 */
#include "check.h"

#include <string.h>

enum { GUARD = 256, LENGTH = 100000, SHORT = 64 };

static rwapi_net_t local, mine, theirs;
static unsigned char *from, *to;
static int next, previous;
static size_t large; /* bytes of a block that is freed while it is written to */

static void swap_addresses(rwapi_net_t own, rwapi_net_t *other)
{
	send_kind(previous, KIND_NET, 0, own);
	expect_kind(next, KIND_NET, NULL, other);
}

/* Until the write is known to be refused, or the time is over; its last result. */
static int until_refused(rwapi_sid_t sid)
{
	uint64_t start = now_ns();
	int sent;

	do {
		sent = rwapi_issent(sid);
		if (sent >= 0)
			rwapi_wait(1);
	} while (sent >= 0 && seconds_since(start) < DEADLINE_S);
	return sent;
}

/* Each rank makes the same mistakes; a rank has to call in, to report those of others. */
static void expect_refusal(rwapi_net_t remote, size_t length)
{
	rwapi_sid_t sid = rwapi_write(next, local, remote, length);

	check(sid > 0);
	check(until_refused(sid) == RWAPI_EADDRESS);
	check(rwapi_issent(sid) == RWAPI_EADDRESS);
}

static void remote_addresses(void)
{
	const size_t lengths[] = { 1, SHORT, 40000, LENGTH };
	const size_t n = sizeof(lengths) / sizeof(lengths[0]);

	memset(to, 0xaa, LENGTH);
	barrier();
	for (size_t i = 0; i < n; i++) {
		size_t length = lengths[i];

		/* past the end by a byte, from within; wholly outside; no such block; far away */
		expect_refusal(theirs + LENGTH - length + 1, length);
		expect_refusal(theirs + LENGTH + 1, length);
		expect_refusal(theirs ^ (uint64_t)0x400000 << 40, length);
		expect_refusal(theirs | 0xffffffffffull, length);
		/* a block of ours is none there */
		expect_refusal(local, length);
	}
	barrier();
	for (size_t i = 0; i < LENGTH; i++)
		check(to[i] == 0xaa);
	barrier();
	/* the last byte, and nothing behind it */
	check(rwapi_write(next, local, theirs + LENGTH - 1, 1) > 0);
	check(rwapi_write(next, local, theirs + LENGTH, 0) > 0);
	send_kind(next, KIND_NOTICE, 0, 0);
	expect_kind(previous, KIND_NOTICE, NULL, NULL);
	check(to[LENGTH - 1] == from[0]);
}

static void local_addresses(void)
{
	check(rwapi_write(next, 0, theirs, 1) == RWAPI_EINVAL);
	check(rwapi_write(next, local, 0, 1) == RWAPI_EINVAL);
	check(rwapi_write(next, theirs, theirs, 1) == RWAPI_EINVAL);
	check(rwapi_write(next, local, theirs, LENGTH + 1) == RWAPI_EINVAL);
	check(rwapi_write(next, local + 1, theirs, LENGTH) == RWAPI_EINVAL);
	check(rwapi_write(next, local + LENGTH + 1, theirs, 0) == RWAPI_EINVAL);
	check(rwapi_write(next, local, theirs, (size_t)1 << 40) == RWAPI_EINVAL);
	check(rwapi_write(next, local, theirs, SIZE_MAX) == RWAPI_EINVAL);
	check(rwapi_write(-1, local, theirs, 1) == RWAPI_EINVAL);
	check(rwapi_write(size, local, theirs, 1) == RWAPI_EINVAL);
	check(rwapi_send(-1, (rwapi_small_t){ { 0 } }) == RWAPI_EINVAL);
	check(rwapi_send(size, (rwapi_small_t){ { 0 } }) == RWAPI_EINVAL);
}

/* The name of a freed block is not given to the next one. */
static void stale_addresses(void)
{
	rwapi_net_t old, new, stale;
	unsigned char *block = rwapi_alloc(SHORT, &old);

	check(block);
	swap_addresses(old, &stale);
	check(rwapi_free(block) == RWAPI_OK);
	block = rwapi_alloc(SHORT, &new);
	check(block);
	memset(block, 0xbb, SHORT);
	barrier();
	expect_refusal(stale, SHORT);
	barrier();
	for (int i = 0; i < SHORT; i++)
		check(block[i] == 0xbb);
	check(rwapi_free(block) == RWAPI_OK);
	check(rwapi_free(block) == RWAPI_EINVAL);
}

/* A block is freed while a long write into it, and one from it, are under way. */
static void free_meanwhile(void)
{
	rwapi_net_t own, other;
	unsigned char *source = rwapi_alloc(large, &own), *target;
	rwapi_net_t source_net = own;
	rwapi_sid_t sid;
	int sent;

	target = rwapi_alloc(large, &own);
	check(source && target);
	memset(source, 1, large);
	memset(target, 2, large);
	swap_addresses(own, &other);
	sid = rwapi_write(next, source_net, other, large);
	check(sid > 0);
	check(rwapi_free(source) == RWAPI_OK);
	sent = rwapi_issent(sid);
	check(sent == 1 || sent == RWAPI_EADDRESS);
	check(rwapi_free(target) == RWAPI_OK);
	sent = until_sent(sid);
	check(sent == 1 || sent == RWAPI_EADDRESS);
	barrier();
	/* what is allocated there now stays as it is */
	target = rwapi_alloc(large, &own);
	check(target);
	memset(target, 3, large);
	barrier();
	for (size_t i = 0; i < large; i += 4096)
		check(target[i] == 3);
	check(rwapi_free(target) == RWAPI_OK);
}

/* The area is changed as soon as the write is sent. */
static void reuse(void)
{
	for (size_t length = 1; length <= LENGTH; length = length * 3 + 1) {
		rwapi_sid_t sid;
		int sent;

		memset(from, 0x55, length);
		sid = rwapi_write(next, local, theirs, length);
		check(sid > 0);
		check(until_sent(sid) == 1);
		memset(from, 0x66, length);
		send_kind(next, KIND_NOTICE, 0, 0);
		expect_kind(previous, KIND_NOTICE, NULL, NULL);
		for (size_t i = 0; i < length; i++)
			check(to[i] == 0x55);
		/* once sent, always sent */
		sent = rwapi_issent(sid);
		check(sent == 1);
		barrier();
	}
	check(rwapi_issent(0) == RWAPI_EINVAL);
	check(rwapi_issent(-1) == RWAPI_EINVAL);
	check(rwapi_issent(INT64_MAX) == RWAPI_EINVAL);
}

int main(int argc, char **argv)
{
	unsigned char *guarded;

	large = (size_t)(argc > 1 ? atoi(argv[1]) : 64) << 20;
	begin(5);
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	from = rwapi_alloc(LENGTH, &local);
	guarded = rwapi_alloc(LENGTH + 2 * GUARD, &mine);
	check(from && guarded);
	to = guarded + GUARD;
	check(rwapi_free(guarded) == RWAPI_OK);
	check(rwapi_free(to) == RWAPI_EINVAL);
	to = rwapi_alloc(LENGTH, &mine);
	check(to);
	memset(from, 0xcc, LENGTH);
	swap_addresses(mine, &theirs);
	reuse();
	passed("the area of a write that is sent may be changed");
	local_addresses();
	passed("bad local addresses and ranks");
	remote_addresses();
	passed("bad remote addresses are refused, and change nothing");
	stale_addresses();
	passed("the address of a freed block is refused");
	free_meanwhile();
	passed("a block is freed while bytes come and go");
	return end(RWAPI_EADDRESS);
}
