/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Stretches of memory moved together in one call of the kernel (nal/shm/shm_copy.c): all of them
 * arrive, or each is left to be moved by itself, and then only those fail whose memory is not
 * there. The other process is this one, too.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nal/shm/shm.h"

enum { BYTES = 300000, HERE = 0, THERE = 1, NOWHERE = 2, VECTOR = 3 };

static char here[BYTES], there[BYTES];
static struct ptl_slot slot[4];
static struct ptl_view view = { .slot = slot };
static struct shm_move move[SHM_TOGETHER];

static void md_of(int i, void *start, unsigned int options)
{
	slot[i].md =
		(struct ptl_md){ .start = (uintptr_t)start, .length = BYTES, .options = options };
}

static int set_up(void **state)
{
	void *gone = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(gone != MAP_FAILED);
	munmap(gone, BYTES);
	md_of(HERE, here, 0);
	md_of(THERE, there, 0);
	md_of(NOWHERE, gone, 0);
	md_of(VECTOR, NULL, PTL_MD_IOVEC);
	for (int i = 0; i < BYTES; i++) {
		here[i] = (char)(i * 7);
		there[i] = (char)(i * 7 + i / 250 + 1);
	}
	return 0;
}

static struct shm_span span(uint32_t md, uint64_t offset)
{
	return (struct shm_span){ &view, md == HERE ? 0 : getpid(), md, offset };
}

/* At odd places and of odd lengths, none beside another; to there, or from there. */
static void fill(bool to_there)
{
	uint64_t at = 3;

	for (unsigned int i = 0; i < SHM_TOGETHER; i++) {
		uint64_t len = 1 + (uint64_t)i * 8191;

		move[i] = (struct shm_move){ span(to_there ? THERE : HERE, at),
					     span(to_there ? HERE : THERE, at), len };
		at += len + 5;
	}
}

static bool arrived(const struct shm_move *m)
{
	return memcmp(here + m->to.offset, there + m->to.offset, m->len) == 0;
}

static void all_arrive(bool to_there)
{
	fill(to_there);
	assert_true(shm_copy_together(move, SHM_TOGETHER));
	for (unsigned int i = 0; i < SHM_TOGETHER; i++) {
		assert_true(arrived(&move[i]));
		assert_int_not_equal(here[move[i].to.offset - 1], there[move[i].to.offset - 1]);
		assert_int_not_equal(here[move[i].to.offset + move[i].len],
				     there[move[i].to.offset + move[i].len]);
	}
}

static void what_goes_there_together_arrives(void **state)
{
	(void)state;
	all_arrive(true);
}

static void what_comes_together_arrives(void **state)
{
	(void)state;
	all_arrive(false);
}

static void one_without_memory_is_no_harm_to_others(void **state)
{
	(void)state;
	fill(true);
	move[2].to.md = NOWHERE;
	assert_false(shm_copy_together(move, SHM_TOGETHER));
	for (unsigned int i = 0; i < SHM_TOGETHER; i++) {
		ptl_ni_fail_t fail = shm_copy(&move[i].to, &move[i].from, move[i].len);

		assert_int_equal(fail, i == 2 ? PTL_NI_BAD_ADDRESS : PTL_NI_OK);
		assert_true(i == 2 || arrived(&move[i]));
	}
}

static void refused(unsigned int n)
{
	static char before[BYTES];

	memcpy(before, there, BYTES);
	assert_false(shm_copy_together(move, n));
	assert_memory_equal(there, before, BYTES);
}

static void what_is_not_alike_does_not_go_together(void **state)
{
	(void)state;
	fill(true);
	refused(1);
	move[1].to.md = VECTOR;
	refused(2);
	fill(true);
	move[1].to.pid++;
	refused(2);
	fill(true);
	move[1].to.offset = BYTES - 2;
	refused(2);
	fill(true);
	move[0].to = span(HERE, BYTES / 2);
	refused(2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_goes_there_together_arrives, set_up),
		cmocka_unit_test_setup(what_comes_together_arrives, set_up),
		cmocka_unit_test_setup(one_without_memory_is_no_harm_to_others, set_up),
		cmocka_unit_test_setup(what_is_not_alike_does_not_go_together, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
