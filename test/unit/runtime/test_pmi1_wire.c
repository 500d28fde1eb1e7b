/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PMI-1 lines: what is taken, what is refused, and that what is written can be read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/pmi1_wire.h"

static int decode(const char *line, struct pmi1_msg *msg)
{
	return pmi1_decode(line, strlen(line), msg);
}

static void assert_text(struct pmi1_text text, const char *expected)
{
	assert_int_equal(text.len, strlen(expected));
	assert_memory_equal(text.ptr, expected, text.len);
}

/* Lines as Hydra 4.0 and MPICH 4.0 exchange them. */
static void lines_of_hydra_are_understood(void **state)
{
	static const struct {
		const char *line;
		enum pmi1_cmd cmd;
	} lines[] = {
		{ "cmd=init pmi_version=1 pmi_subversion=1\n", PMI1_CMD_INIT },
		{ "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
		  PMI1_CMD_RESPONSE_TO_INIT },
		{ "cmd=get_maxes\n", PMI1_CMD_GET_MAXES },
		{ "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n", PMI1_CMD_MAXES },
		{ "cmd=get_appnum\n", PMI1_CMD_GET_APPNUM },
		{ "cmd=appnum appnum=0\n", PMI1_CMD_GOT_APPNUM },
		{ "cmd=get_my_kvsname\n", PMI1_CMD_GET_MY_KVSNAME },
		{ "cmd=my_kvsname kvsname=kvs_1_0_2_h\n", PMI1_CMD_MY_KVSNAME },
		{ "cmd=get kvsname=kvs_1_0_2_h key=PMI_process_mapping\n", PMI1_CMD_GET },
		{ "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))\n", PMI1_CMD_GET_RESULT },
		{ "cmd=put kvsname=k key=-bcast-1-0 value=2F64\n", PMI1_CMD_PUT },
		{ "cmd=put_result rc=0 msg=success\n", PMI1_CMD_PUT_RESULT },
		{ "cmd=barrier_in\n", PMI1_CMD_BARRIER_IN },
		{ "cmd=barrier_out\n", PMI1_CMD_BARRIER_OUT },
		{ "cmd=finalize\n", PMI1_CMD_FINALIZE },
		{ "cmd=finalize_ack\n", PMI1_CMD_FINALIZE_ACK },
		{ "cmd=abort exitcode=3\n", PMI1_CMD_ABORT },
		{ "cmd=abort\n", PMI1_CMD_ABORT },
		{ "mcmd=spawn\n", PMI1_CMD_MULTI },
		{ "cmd=something_new a=b\n", PMI1_CMD_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct pmi1_msg msg;

		assert_int_equal(decode(lines[i].line, &msg), 0);
		assert_int_equal(msg.cmd, lines[i].cmd);
	}
}

static void fields_are_found(void **state)
{
	struct pmi1_msg msg;

	(void)state;
	assert_int_equal(
		decode("cmd=get_result  rc=-2147483648 debug=1 msg=a=b value=x=y==  \n", &msg), 0);
	assert_int_equal(msg.num[PMI1_RC], INT_MIN);
	assert_text(msg.text[PMI1_MSG], "a=b");
	assert_text(msg.text[PMI1_VALUE], "x=y==");
	assert_text(msg.name, "get_result");
	assert_true(pmi1_has(&msg, PMI1_RC));
	assert_false(pmi1_has(&msg, PMI1_KEY));
	assert_int_equal(decode("cmd=put kvsname=k key=x value=", &msg), 0);
	assert_true(pmi1_has(&msg, PMI1_VALUE));
	assert_int_equal(msg.text[PMI1_VALUE].len, 0);
	assert_int_equal(decode("cmd=appnum appnum=2147483647", &msg), 0);
	assert_int_equal(msg.num[PMI1_APPNUM], INT_MAX);
}

static void other_lines_are_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"\n",
		" \n",
		"cmd\n",
		"=init\n",
		"cmd=\n",
		"cmd= rc=0\n",
		"rc=0 cmd=put_result\n", /* the command comes first */
		"cmd=put_result\n",      /* no rc */
		"cmd=put_result rc=\n",  /* numbers */
		"cmd=put_result rc=-\n",
		"cmd=put_result rc=+1\n",
		"cmd=put_result rc=1x\n",
		"cmd=put_result rc=0x1\n",
		"cmd=put_result rc=2147483648\n",
		"cmd=put_result rc=-2147483649\n",
		"cmd=put_result rc=99999999999999999999\n",
		"cmd=put_result rc=0 rc=0\n", /* twice */
		"cmd=put kvsname=k key=a\n",  /* no value */
		"cmd=put kvsname=k key= value=a\n",
		"cmd=put kvsname= key=a value=a\n",
		"cmd=put kvsname=k key=a value=b c\n", /* no "=" in the last word */
		"cmd=put kvsname=k key=a value=b =c\n",
		"cmd=put kvsname=k key=a\tb value=b\n",
		"cmd=put kvsname=k key=a value=\x7f\n",
		"cmd=put kvsname=k key=a value=\xff\n",
		"cmd=get_maxes\n\n",
		"cmd=get_maxes\r\n",
		"cmd=maxes kvsname_max=256 keylen_max=64\n",
	};
	struct pmi1_msg untouched, msg;

	(void)state;
	memset(&untouched, 0x5a, sizeof(untouched));
	memcpy(&msg, &untouched, sizeof(msg));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (decode(lines[i], &msg) != -EPROTO)
			fail_msg("taken: %s", lines[i]);
		assert_memory_equal(&msg, &untouched, sizeof(msg));
	}
	assert_int_equal(pmi1_decode("cmd=get\0 kvsname=k key=a", 24, &msg), -EPROTO);
}

static void the_length_is_limited(void **state)
{
	size_t len = PMI1_LINE_MAX;
	char *line = malloc(len + 1);
	struct pmi1_msg msg;

	(void)state;
	assert_non_null(line);
	memset(line, 'x', len + 1);
	memcpy(line, "cmd=abort a=", 12);
	assert_int_equal(pmi1_decode(line, len, &msg), 0);
	assert_int_equal(pmi1_decode(line, len + 1, &msg), -EPROTO);
	free(line);
}

static void what_is_written_can_be_read(void **state)
{
	struct pmi1_msg put, msg;
	char line[128];
	int n;

	(void)state;
	pmi1_begin(&put, PMI1_CMD_PUT);
	pmi1_set_text(&put, PMI1_KVSNAME, "k_1");
	pmi1_set_text(&put, PMI1_KEY, "a.b");
	pmi1_set_text(&put, PMI1_VALUE, "1=2");
	n = pmi1_encode(&put, line, sizeof(line));
	assert_int_equal(n, strlen("cmd=put kvsname=k_1 key=a.b value=1=2\n"));
	assert_memory_equal(line, "cmd=put kvsname=k_1 key=a.b value=1=2\n", (size_t)n);
	assert_int_equal(pmi1_decode(line, (size_t)n, &msg), 0);
	assert_int_equal(msg.cmd, PMI1_CMD_PUT);
	assert_text(msg.text[PMI1_VALUE], "1=2");

	pmi1_begin(&put, PMI1_CMD_RESPONSE_TO_INIT);
	pmi1_set_num(&put, PMI1_RC, -7);
	n = pmi1_encode(&put, line, sizeof(line));
	assert_true(n > 0);
	assert_int_equal(pmi1_decode(line, (size_t)n, &msg), 0);
	assert_int_equal(msg.num[PMI1_RC], -7);
}

static void what_cannot_be_read_is_not_written(void **state)
{
	struct pmi1_msg msg;
	char line[64];

	(void)state;
	pmi1_begin(&msg, PMI1_CMD_MY_KVSNAME);
	assert_int_equal(pmi1_encode(&msg, line, sizeof(line)), -EINVAL); /* no kvsname */
	pmi1_set_text(&msg, PMI1_KVSNAME, "two words");
	assert_int_equal(pmi1_encode(&msg, line, sizeof(line)), -EINVAL);
	pmi1_set_text(&msg, PMI1_KVSNAME, "line\n");
	assert_int_equal(pmi1_encode(&msg, line, sizeof(line)), -EINVAL);
	pmi1_set_text(&msg, PMI1_KVSNAME, "good");
	assert_int_equal(pmi1_encode(&msg, line, 27), -EMSGSIZE);
	assert_int_equal(pmi1_encode(&msg, line, 28), 28);
	pmi1_begin(&msg, PMI1_CMD_UNKNOWN);
	assert_int_equal(pmi1_encode(&msg, line, sizeof(line)), -EINVAL);
}

static void every_byte_survives_escaping(void **state)
{
	char all[256], text[768], back[256];
	int n;

	(void)state;
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	n = pmi1_escape(all, sizeof(all), text, sizeof(text));
	assert_true(n > 256);
	for (int i = 0; i < n; i++)
		assert_true(text[i] > ' ' && text[i] <= '~' && text[i] != '=' && text[i] != '%');
	assert_int_equal(pmi1_escape(all, sizeof(all), text, (size_t)n - 1), -EMSGSIZE);
	assert_int_equal(pmi1_unescape(text, (size_t)n, back, sizeof(back)), 256);
	assert_memory_equal(back, all, 256);
	assert_int_equal(pmi1_unescape(text, (size_t)n, back, 255), -EMSGSIZE);
	assert_int_equal(pmi1_escape("", 0, text, 0), 0);
	assert_int_equal(pmi1_unescape("", 0, back, 0), 0);
}

static void broken_escapes_are_refused(void **state)
{
	static const char *const texts[] = { "~",    "~4",  "a~4", "~4g", "~G0",
					     "~ab~", "a b", "a=b", "~AB", "%20" };
	char back[16];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(pmi1_unescape(texts[i], strlen(texts[i]), back, sizeof(back)),
				 -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_hydra_are_understood),
		cmocka_unit_test(fields_are_found),
		cmocka_unit_test(other_lines_are_refused),
		cmocka_unit_test(the_length_is_limited),
		cmocka_unit_test(what_is_written_can_be_read),
		cmocka_unit_test(what_cannot_be_read_is_not_written),
		cmocka_unit_test(every_byte_survives_escaping),
		cmocka_unit_test(broken_escapes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
