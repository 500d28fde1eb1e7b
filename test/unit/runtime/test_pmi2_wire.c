/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PMI-2 messages and the mapping of ranks to hosts: what is taken, what is refused, and that what
 * is written can be read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "runtime/pmi2_wire.h"
#include "runtime/pmi_map_wire.h"

static int decode(const char *body, struct pmi2_msg *msg)
{
	return pmi2_decode(body, strlen(body), msg);
}

static void assert_text(struct pmi1_text text, const char *expected)
{
	assert_int_equal(text.len, strlen(expected));
	assert_memory_equal(text.ptr, expected, text.len);
}

/* Messages as Hydra 4.0 and Slurm 22.05 send them. */
static void messages_of_launchers_are_understood(void **state)
{
	static const struct {
		const char *body;
		enum pmi2_cmd cmd;
	} bodies[] = {
		{ "cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=0;size=1;appnum=0;"
		  "debugged=FALSE;pmiverbose=FALSE;rc=0;",
		  PMI2_CMD_GOT_FULLINIT },
		{ "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=3;size=4;"
		  "appnum=-1;debugged=FALSE;pmiverbose=FALSE;",
		  PMI2_CMD_GOT_FULLINIT },
		{ "cmd=job-getid-response;rc=0;jobid=1.0;", PMI2_CMD_GOT_ID },
		{ "cmd=kvs-put-response;rc=0;", PMI2_CMD_PUT_DONE },
		{ "cmd=kvs-get-response;rc=0;found=TRUE;value=1:abc;", PMI2_CMD_GOT },
		{ "cmd=kvs-get-response;rc=0;found=FALSE;", PMI2_CMD_GOT },
		{ "cmd=kvs-fence-response;rc=0;", PMI2_CMD_FENCE_DONE },
		{ "cmd=kvs-fence-response;rc=1;errmsg=mpi/pmi2: failed to send temp kvs;",
		  PMI2_CMD_FENCE_DONE },
		{ "cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,(0,2,2));",
		  PMI2_CMD_GOT_JOBATTR },
		{ "cmd=finalize-response;rc=0;", PMI2_CMD_FINALIZED },
		{ "cmd=something-new;a=b;", PMI2_CMD_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct pmi2_msg msg;

		assert_int_equal(decode(bodies[i].body, &msg), 0);
		assert_int_equal(msg.cmd, bodies[i].cmd);
	}
}

static void fields_are_found(void **state)
{
	struct pmi2_msg msg;

	(void)state;
	assert_int_equal(decode("cmd=kvs-get-response;rc=-3;found=TRUE;value=a=b;;c d;;;", &msg),
			 0);
	assert_int_equal(msg.num[PMI2_RC], -3);
	assert_text(msg.text[PMI2_FOUND], "TRUE");
	assert_text(msg.text[PMI2_VALUE], "a=b;;c d;;");
	assert_false(pmi2_has(&msg, PMI2_KEY));
}

static void others_are_refused_and_change_nothing(void **state)
{
	static const char *const bodies[] = {
		"",
		";",
		"cmd",
		"cmd=",
		"cmd=;",
		"cmd=finalize-response",
		"rc=0;cmd=finalize-response;",
		"cmd=kvs-put-response;",
		"cmd=kvs-put-response;rc=;",
		"cmd=kvs-put-response;rc=-;",
		"cmd=kvs-put-response;rc=1x;",
		"cmd=kvs-put-response;rc=99999999999;",
		"cmd=kvs-put-response;rc=0;rc=0;",
		"cmd=kvs-put-response;rc=0;x",
		"cmd=kvs-put-response;rc=0;=x;",
		"cmd=kvs-put-response;rc=0;a;b=x;",
		"cmd=kvs-put-response;rc=0;msg=\n;",
		"cmd=kvs-put-response;rc=0;msg=\x80;",
		"cmd=job-getid-response;rc=0;jobid=;",
		"cmd=kvs-get-response;rc=0;found=TRUE;value=a;;",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct pmi2_msg msg = { .present = 0x5555 };

		assert_int_equal(decode(bodies[i], &msg), -EPROTO);
		assert_int_equal(msg.present, 0x5555);
	}
}

static void lengths_are_six_characters(void **state)
{
	(void)state;
	assert_int_equal(pmi2_length("    38"), 38);
	assert_int_equal(pmi2_length("38    "), 38);
	assert_int_equal(pmi2_length("000038"), 38);
	assert_int_equal(pmi2_length(" 65530"), 65530);
	assert_int_equal(pmi2_length(" 65531"), -EPROTO);
	assert_int_equal(pmi2_length("999999"), -EPROTO);
	assert_int_equal(pmi2_length("      "), -EPROTO);
	assert_int_equal(pmi2_length("  -1  "), -EPROTO);
	assert_int_equal(pmi2_length(" 1 2  "), -EPROTO);
	assert_int_equal(pmi2_length("cmd=in"), -EPROTO);
}

static void what_is_written_is_what_launchers_read(void **state)
{
	struct pmi2_msg msg;
	char buf[128];
	int n;

	(void)state;
	pmi2_begin(&msg, PMI2_CMD_FULLINIT);
	pmi2_set_num(&msg, PMI2_PMIRANK, 3);
	pmi2_set_text(&msg, PMI2_THREADED, "FALSE");
	n = pmi2_encode(&msg, buf, sizeof(buf));
	assert_int_equal(n, 6 + 38);
	assert_memory_equal(buf, "    38cmd=fullinit;pmirank=3;threaded=FALSE;", (size_t)n);
	for (size_t size = 0; size < (size_t)n; size++)
		assert_int_equal(pmi2_encode(&msg, buf, size), -EMSGSIZE);
	pmi2_set_text(&msg, PMI2_MSG, "a;b");
	assert_int_equal(pmi2_encode(&msg, buf, sizeof(buf)), -EINVAL);
	pmi2_set_text(&msg, PMI2_MSG, "a\nb");
	assert_int_equal(pmi2_encode(&msg, buf, sizeof(buf)), -EINVAL);
	pmi2_begin(&msg, PMI2_CMD_PUT);
	assert_int_equal(pmi2_encode(&msg, buf, sizeof(buf)), -EINVAL);
	msg.cmd = PMI2_CMD_UNKNOWN;
	assert_int_equal(pmi2_encode(&msg, buf, sizeof(buf)), -EINVAL);
}

static void assert_place(const char *mapping, int rank, int size, int local_rank, int local_size)
{
	int found_rank = -1, found_size = -1;

	assert_int_equal(
		pmi_map_local(mapping, strlen(mapping), rank, size, &found_rank, &found_size), 0);
	assert_int_equal(found_rank, local_rank);
	assert_int_equal(found_size, local_size);
}

static void mappings_place_ranks_block_by_block(void **state)
{
	(void)state;
	assert_place("(vector,(0,1,4))", 3, 4, 3, 4);
	assert_place("(vector,(0,2,2))", 2, 4, 0, 2);
	assert_place("(vector,(0,2,1))", 2, 4, 1, 2); /* round and round */
	assert_place("(vector,(0,1,3),(1,1,1))", 3, 4, 0, 1);
	assert_place("(vector,(0,1,3),(1,1,1))", 2, 4, 2, 3);
	assert_place("(vector,(0,1,2),(1,1,1),(0,1,2))", 4, 5, 3, 4);
	assert_place("(vector,(0,1,8))", 2, 3, 2, 3); /* the last block has room */
	assert_place("(vector,(5,1,1),(7,3,2))", 6, 7, 1, 2);
}

static void other_mappings_are_refused(void **state)
{
	static const char *const mappings[] = {
		"",
		"(vector",
		"(vector)",
		"(vector,)",
		"(vector,(0,1,1)",
		"(vector,(0,1,1)) ",
		"(vector,(0,1))",
		"(vector,(0,1,0))",
		"(vector,(0,0,1))",
		"(vector,(-1,1,1))",
		"(vector,(0,1,99999999999))",
		"(scalar,(0,1,1))",
	};
	int rank, size;

	(void)state;
	for (size_t i = 0; i < sizeof(mappings) / sizeof(mappings[0]); i++)
		assert_int_equal(
			pmi_map_local(mappings[i], strlen(mappings[i]), 1, 2, &rank, &size),
			-EPROTO);
	assert_int_equal(pmi_map_local("(vector,(0,1,1))", 16, 2, 2, &rank, &size), -EPROTO);
	assert_int_equal(pmi_map_local("(vector,(0,1,1))", 16, -1, 2, &rank, &size), -EPROTO);
	assert_int_equal(
		pmi_map_local("(vector,(0,1,1))", 16, 0, PMI_MAP_RANKS_MAX + 1, &rank, &size),
		-EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_launchers_are_understood),
		cmocka_unit_test(fields_are_found),
		cmocka_unit_test(others_are_refused_and_change_nothing),
		cmocka_unit_test(lengths_are_six_characters),
		cmocka_unit_test(what_is_written_is_what_launchers_read),
		cmocka_unit_test(mappings_place_ranks_block_by_block),
		cmocka_unit_test(other_mappings_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
