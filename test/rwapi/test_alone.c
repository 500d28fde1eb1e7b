/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A machine of one process, from before rwapi_init to after rwapi_finalize: states, arguments,
 * blocks of all sizes, messages and writes to oneself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define RWAPI_SHORT_NAMES
#include <rwapi.h>

static void assert_no_state(void)
{
	rwapi_small_t content = { { 0 } };
	rwapi_net_t net_address = 77;
	int from;

	assert_int_equal(rwapi_size(), -1);
	assert_int_equal(rwapi_rank(), -1);
	assert_null(rwapi_alloc(1, &net_address));
	assert_int_equal(net_address, 77);
	assert_int_equal(rwapi_free(&content), RWAPI_ESTATE);
	assert_int_equal(rwapi_free(NULL), RWAPI_ESTATE);
	assert_int_equal(rwapi_send(0, content), RWAPI_ESTATE);
	assert_int_equal(rwapi_receive(&from, &content), RWAPI_ESTATE);
	assert_int_equal(rwapi_write(0, 1, 1, 1), RWAPI_ESTATE);
	assert_int_equal(rwapi_issent(1), RWAPI_ESTATE);
	assert_int_equal(rwapi_wait(0), RWAPI_ESTATE);
	assert_int_equal(rwapi_finalize(), RWAPI_ESTATE);
}

static void before_init(void **state)
{
	(void)state;
	assert_no_state();
}

static void init_once(void **state)
{
	char name[] = "program", *argv[] = { name, NULL };

	(void)state;
	assert_int_equal(rwapi_init(1, argv), RWAPI_OK);
	assert_int_equal(rwapi_init(0, NULL), RWAPI_ESTATE);
	assert_int_equal(rwapi_size(), 1);
	assert_int_equal(rwapi_rank(), 0);
}

static void the_papers_names(void **state)
{
	net address = 1;
	small content = { .word32 = { 1, 2, 3, 4 } };
	sid number = 2;
	node where = 3;
	size bytes = 4;

	(void)state;
	assert_int_equal(sizeof(content), 16);
	assert_int_equal(address + (net)number + (net)where + (net)bytes, 10);
}

static void texts(void **state)
{
	(void)state;
	for (int e = RWAPI_ENET; e <= RWAPI_OK; e++)
		for (int other = RWAPI_ENET; other < e; other++)
			assert_string_not_equal(rwapi_strerror(e), rwapi_strerror(other));
	assert_string_equal(rwapi_strerror(1), "unknown error");
	assert_string_equal(rwapi_strerror(RWAPI_ENET - 1), "unknown error");
	assert_string_equal(rwapi_strerror(-2147483647 - 1), "unknown error");
}

static void packed_addresses(void **state)
{
	const rwapi_net_t address = 0x0102030405060708;
	unsigned char bytes[8];

	(void)state;
	rwapi_net_pack(bytes, address);
	for (int i = 0; i < 8; i++)
		assert_int_equal(bytes[i], i + 1);
	assert_true(rwapi_net_unpack(bytes) == address);
}

static void no_arguments(void **state)
{
	rwapi_small_t content;
	int from;

	(void)state;
	assert_int_equal(rwapi_receive(NULL, &content), RWAPI_EINVAL);
	assert_int_equal(rwapi_receive(&from, NULL), RWAPI_EINVAL);
	assert_null(rwapi_alloc(8, NULL));
	assert_int_equal(rwapi_free(NULL), RWAPI_OK);
	assert_int_equal(rwapi_free(&content), RWAPI_EINVAL);
	assert_int_equal(rwapi_wait(-2), RWAPI_EINVAL);
	assert_int_equal(rwapi_send(1, content), RWAPI_EINVAL);
	assert_int_equal(rwapi_send(-1, content), RWAPI_EINVAL);
	assert_int_equal(rwapi_issent(1), RWAPI_EINVAL); /* none was started yet */
}

static void blocks(void **state)
{
	rwapi_net_t a, b;
	unsigned char *block, *other;

	(void)state;
	for (uint64_t bytes = 0; bytes <= (uint64_t)1 << 30; bytes = bytes * 4 + 1) {
		block = rwapi_alloc(bytes, &a);
		assert_non_null(block);
		assert_true(a != 0);
		assert_int_equal((uintptr_t)block % (bytes >= 4096 ? 4096 : 64), 0);
		if (bytes) {
			block[0] = 1;
			block[bytes - 1] = 2;
		}
		other = rwapi_alloc(bytes, &b);
		assert_non_null(other);
		assert_true(other != block && a != b);
		assert_int_equal(rwapi_free(block), RWAPI_OK);
		assert_int_equal(rwapi_free(block), RWAPI_EINVAL);
		if (bytes > 1)
			assert_int_equal(rwapi_free(other + 1), RWAPI_EINVAL);
		assert_int_equal(rwapi_free(other), RWAPI_OK);
	}
	assert_null(rwapi_alloc((uint64_t)1 << 40, &a));
	assert_null(rwapi_alloc(SIZE_MAX, &a));
}

static long pages_in_memory(void)
{
	long all, here;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %ld", &all, &here), 2);
	fclose(f);
	return here;
}

/* In any order, again and again: each keeps its content, and memory does not grow. */
static void thousands_of_blocks(void **state)
{
	enum { BLOCKS = 10000, ROUNDS = 12 };
	static unsigned char *block[BLOCKS];
	static size_t length[BLOCKS];
	uint32_t random = 1;
	long first = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < BLOCKS; i++) {
			rwapi_net_t address;

			if (block[i])
				continue;
			random = random * 1103515245 + 12345;
			length[i] = 1 + random / 65536 % (random % 64 ? 300 : 20000);
			block[i] = rwapi_alloc(length[i], &address);
			assert_non_null(block[i]);
			memset(block[i], i & 255, length[i]);
		}
		if (round == ROUNDS / 2)
			first = pages_in_memory();
		for (int i = 0; i < BLOCKS; i++) {
			random = random * 1103515245 + 12345;
			if (round < ROUNDS - 1 && random / 65536 % 3 == 0)
				continue;
			assert_int_equal(block[i][0], i & 255);
			assert_int_equal(block[i][length[i] - 1], i & 255);
			assert_int_equal(rwapi_free(block[i]), RWAPI_OK);
			block[i] = NULL;
		}
	}
	assert_true(pages_in_memory() < first + 1024);
}

static void messages_to_oneself(void **state)
{
	rwapi_small_t content;
	int from;

	(void)state;
	assert_int_equal(rwapi_receive(&from, &content), 0);
	for (uint64_t i = 0; i < 1000; i++) { /* more than there are slots */
		content.word[0] = i;
		content.word[1] = ~i;
		assert_int_equal(rwapi_send(0, content), RWAPI_OK);
	}
	assert_int_equal(rwapi_wait(-1), 1);
	for (uint64_t i = 0; i < 1000; i++) {
		assert_int_equal(rwapi_receive(&from, &content), 1);
		assert_int_equal(from, 0);
		assert_true(content.word[0] == i && content.word[1] == ~i);
	}
	assert_int_equal(rwapi_receive(&from, &content), 0);
}

static void write_to_self(size_t length)
{
	rwapi_net_t a, b;
	unsigned char *source = rwapi_alloc(length, &a), *target = rwapi_alloc(length, &b);
	rwapi_small_t content = { { 0 } };
	rwapi_sid_t number;
	int from, sent;

	assert_true(source && target);
	memset(source, 5, length);
	memset(target, 0, length);
	number = rwapi_write(0, a, b, length);
	assert_true(number > 0);
	assert_int_equal(rwapi_send(0, content), RWAPI_OK);
	assert_int_equal(rwapi_wait(-1), 1);
	assert_int_equal(rwapi_receive(&from, &content), 1);
	assert_int_equal(memcmp(source, target, length), 0);
	while ((sent = rwapi_issent(number)) == 0)
		;
	assert_int_equal(sent, 1);
	assert_int_equal(rwapi_issent(number + 1), RWAPI_EINVAL);
	assert_int_equal(rwapi_free(source), RWAPI_OK);
	assert_int_equal(rwapi_free(target), RWAPI_OK);
}

static void writes_to_oneself(void **state)
{
	(void)state;
	write_to_self(0);
	write_to_self(1);
	write_to_self(30000);
	write_to_self(40000);
	write_to_self((size_t)20 << 20);
}

static void waits(void **state)
{
	struct timespec before, after;
	long ms;

	(void)state;
	assert_int_equal(rwapi_wait(0), 0);
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(rwapi_wait(50), 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
	assert_true(ms >= 49);
}

/* The child of a fork() has no part in it; the parent goes on. */
static void forks(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0)
		_exit(rwapi_send(0, (rwapi_small_t){ { 0 } }) != RWAPI_ESTATE ||
		      rwapi_size() != -1 || rwapi_finalize() != RWAPI_ESTATE);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	write_to_self(100);
}

static void finalize_once(void **state)
{
	rwapi_net_t address;

	(void)state;
	/* what is not received or freed does no harm */
	assert_int_equal(rwapi_send(0, (rwapi_small_t){ { 0 } }), RWAPI_OK);
	assert_non_null(rwapi_alloc(100, &address));
	assert_int_equal(rwapi_finalize(), RWAPI_OK);
	assert_int_equal(rwapi_init(0, NULL), RWAPI_ESTATE);
	assert_no_state();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_init),
		cmocka_unit_test(init_once),
		cmocka_unit_test(the_papers_names),
		cmocka_unit_test(texts),
		cmocka_unit_test(packed_addresses),
		cmocka_unit_test(no_arguments),
		cmocka_unit_test(blocks),
		cmocka_unit_test(thousands_of_blocks),
		cmocka_unit_test(messages_to_oneself),
		cmocka_unit_test(writes_to_oneself),
		cmocka_unit_test(waits),
		cmocka_unit_test(forks),
		cmocka_unit_test(finalize_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
