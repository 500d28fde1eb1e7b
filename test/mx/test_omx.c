/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The functions of Open-MX: each once with what is peculiar to it, its codes, and its error
 * handlers. Two endpoints of one process talk to each other and to themselves; the behaviour of
 * messages as such is tested of MX.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <open-mx.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof(omx_return_t) == 4, "codes have 4 bytes");
_Static_assert(sizeof(omx_endpoint_addr_t) == 16, "addresses have 16 bytes");
_Static_assert(sizeof(omx_endpoint_t) == sizeof(void *), "an endpoint is a pointer");
_Static_assert(sizeof(omx_seg_t) == 16 && offsetof(omx_seg_t, len) == 8, "segments");
_Static_assert(sizeof(omx_status_t) == 48 && offsetof(omx_status_t, addr) == 8 &&
		       offsetof(omx_status_t, match_info) == 24 &&
		       offsetof(omx_status_t, msg_length) == 32 &&
		       offsetof(omx_status_t, xfer_length) == 36 &&
		       offsetof(omx_status_t, context) == 40,
	       "statuses");
_Static_assert(sizeof(omx_endpoint_param_t) == 16 && offsetof(omx_endpoint_param_t, val) == 8,
	       "parameters");
_Static_assert(OMX_INFO_BOARD_MAX == 0 && OMX_INFO_COUNTER_LABEL == 9, "keys");

enum { KEY = 0x12345678, PATIENCE_MS = 20000, EVERYTHING = 0 };

static omx_endpoint_t a, b;
static omx_endpoint_addr_t b_of_a; /* the address of b, as a uses it */

#define OK(call) assert_int_equal(call, OMX_SUCCESS)

/* ---- help ------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
	uint64_t nic_id;
	uint32_t eid;
	omx_endpoint_addr_t own;

	(void)state;
	omx_set_error_handler(NULL, OMX_ERRORS_RETURN);
	OK(omx_init());
	OK(omx_open_endpoint(OMX_ANY_NIC, OMX_ANY_ENDPOINT, KEY, NULL, 0, &a));
	OK(omx_open_endpoint(OMX_ANY_NIC, OMX_ANY_ENDPOINT, KEY, NULL, 0, &b));
	OK(omx_get_endpoint_addr(b, &own));
	OK(omx_decompose_endpoint_addr(own, &nic_id, &eid));
	OK(omx_connect(a, nic_id, eid, KEY, PATIENCE_MS, &b_of_a));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	OK(omx_close_endpoint(a));
	OK(omx_close_endpoint(b));
	OK(omx_finalize());
	return 0;
}

/* The end of a request of one endpoint, while the other makes progress, too. */
static omx_status_t end_of(omx_endpoint_t ep, omx_request_t *req)
{
	omx_endpoint_t other = ep == a ? b : a;
	time_t deadline = time(NULL) + PATIENCE_MS / 1000;
	omx_status_t status;
	uint32_t result = 0;

	while (!result) {
		OK(omx_progress(other));
		OK(omx_wait(ep, req, &status, &result, 1));
		assert_true(time(NULL) < deadline);
	}
	assert_null(*req);
	return status;
}

static void send_text(const char *text, uint64_t match)
{
	omx_request_t req;

	OK(omx_isend(a, (void *)(uintptr_t)text, strlen(text) + 1, b_of_a, match, NULL, &req));
	assert_int_equal(end_of(a, &req).code, OMX_SUCCESS);
}

/* Waits until b has a message that no receive has taken. */
static omx_status_t until_unexpected(uint64_t match)
{
	omx_status_t status;
	uint32_t result = 0;

	OK(omx_probe(b, match, UINT64_MAX, &status, &result, PATIENCE_MS));
	assert_int_equal(result, 1);
	return status;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- codes ----------------------------------------------------------------------------------- */

static void codes_have_the_numbers_of_open_mx(void **state)
{
	static const struct {
		omx_return_t code;
		int number;
	} want[] = {
		{ OMX_SUCCESS, 0 },
		{ OMX_BAD_ERROR, 1 },
		{ OMX_ALREADY_INITIALIZED, 3 },
		{ OMX_NOT_INITIALIZED, 4 },
		{ OMX_BOARD_NOT_FOUND, 8 },
		{ OMX_BAD_ENDPOINT, 9 },
		{ OMX_SEGMENTS_BAD_COUNT, 12 },
		{ OMX_BAD_REQUEST, 13 },
		{ OMX_BAD_MATCH_MASK, 14 },
		{ OMX_NO_RESOURCES, 15 },
		{ OMX_BUSY, 20 },
		{ OMX_BAD_INFO_KEY, 21 },
		{ OMX_BAD_INFO_ADDRESS, 22 },
		{ OMX_ENDPOINT_PARAMS_BAD_LIST, 24 },
		{ OMX_ENDPOINT_PARAM_BAD_KEY, 25 },
		{ OMX_ENDPOINT_PARAM_BAD_VALUE, 26 },
		{ OMX_PEER_NOT_FOUND, 28 },
		{ OMX_TIMEOUT, 30 },
		{ OMX_REMOTE_ENDPOINT_BAD_ID, 32 },
		{ OMX_REMOTE_ENDPOINT_CLOSED, 33 },
		{ OMX_REMOTE_ENDPOINT_BAD_CONNECTION_KEY, 34 },
		{ OMX_BAD_INFO_LENGTH, 35 },
		{ OMX_NIC_ID_NOT_FOUND, 36 },
		{ OMX_BAD_LIB_ABI, 38 },
		{ OMX_BAD_MATCHING_FOR_CONTEXT_ID_MASK, 42 },
		{ OMX_CANCELLED, 90 },
		{ OMX_REMOTE_RDMA_WINDOW_BAD_ID, 91 },
		{ OMX_REMOTE_ENDPOINT_UNREACHABLE, 92 },
		{ OMX_REMOTE_ENDPOINT_BAD_SESSION, 93 },
		{ OMX_MESSAGE_ABORTED, 94 },
		{ OMX_MESSAGE_TRUNCATED, 95 },
		{ OMX_NOT_SUPPORTED_IN_HANDLER, 96 },
		{ OMX_NO_SYSTEM_RESOURCES, 97 },
		{ OMX_NOT_IMPLEMENTED, 99 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		assert_int_equal(want[i].code, want[i].number);
		assert_string_not_equal(omx_strerror(want[i].code), "Unknown code");
	}
	for (int i = -5; i < 300; i++)
		assert_non_null(omx_strerror((omx_return_t)i));
}

static void calls_before_the_start_say_so(void **state)
{
	uint64_t nic_id;
	omx_endpoint_t ep = NULL;

	(void)state;
	omx_set_error_handler(NULL, OMX_ERRORS_RETURN);
	assert_int_equal(omx_open_endpoint(0, OMX_ANY_ENDPOINT, 0, NULL, 0, &ep),
			 OMX_NOT_INITIALIZED);
	assert_null(ep);
	assert_int_equal(omx_board_number_to_nic_id(0, &nic_id), OMX_NOT_INITIALIZED);
	assert_int_equal(omx_finalize(), OMX_NOT_INITIALIZED);
	assert_int_equal(omx__init_api(0), OMX_BAD_LIB_ABI);
	assert_int_equal(omx__init_api(0x401), OMX_BAD_LIB_ABI);
	OK(omx__init_api(0x300));
	assert_int_equal(omx_init(), OMX_ALREADY_INITIALIZED);
	OK(omx_finalize());
}

/* ---- error handlers -------------------------------------------------------------------------- */

static omx_return_t seen_code, answer_code;
static int seen_calls;

static omx_return_t note_error(char *str, omx_return_t ret)
{
	assert_non_null(str);
	seen_code = ret;
	seen_calls++;
	return answer_code;
}

static omx_return_t other_handler(char *str, omx_return_t ret)
{
	(void)str;
	(void)ret;
	return OMX_NOT_IMPLEMENTED;
}

static void an_error_is_what_the_handler_makes_of_it(void **state)
{
	char byte, text[128] = "";
	omx_endpoint_t none = NULL;

	(void)state;
	assert_ptr_equal(omx_set_error_handler(NULL, note_error), OMX_ERRORS_RETURN);
	answer_code = OMX_MESSAGE_TRUNCATED;
	seen_calls = 0;
	/* found by MX, by this library, of an endpoint, of none */
	assert_int_equal(omx_irecv(a, &byte, 1, 2, 1, NULL, NULL), OMX_MESSAGE_TRUNCATED);
	assert_int_equal(seen_code, OMX_BAD_MATCH_MASK);
	assert_int_equal(omx_get_info(a, (omx_info_key_t)77, NULL, 0, &byte, 1),
			 OMX_MESSAGE_TRUNCATED);
	assert_int_equal(seen_code, OMX_BAD_INFO_KEY);
	assert_int_equal(omx_nic_id_to_hostname(1, NULL), OMX_MESSAGE_TRUNCATED);
	assert_int_equal(seen_calls, 3);
	answer_code = OMX_SUCCESS;
	OK(omx_irecv(a, &byte, 1, 2, 1, NULL, NULL));
	assert_int_equal(seen_calls, 4);
	/* nothing goes on with what a failed call did not give */
	OK(omx_get_info(NULL, OMX_INFO_BOARD_HOSTNAME, NULL, 0, text, sizeof(text)));
	OK(omx_get_info(NULL, OMX_INFO_COUNTER_LABEL, NULL, 0, text, sizeof(text)));
	OK(omx_open_endpoint(4711, OMX_ANY_ENDPOINT, 0, NULL, 0, &none));
	assert_null(none);
	OK(omx_close_endpoint(NULL));
	assert_ptr_equal(omx_set_error_handler(NULL, OMX_ERRORS_RETURN), note_error);
	assert_int_equal(omx_irecv(a, &byte, 1, 2, 1, NULL, NULL), OMX_BAD_MATCH_MASK);
}

static void an_endpoint_may_have_a_handler_of_its_own(void **state)
{
	omx_endpoint_param_t param = { .key = OMX_ENDPOINT_PARAM_ERROR_HANDLER,
				       .val.error_handler = other_handler };
	omx_endpoint_t ep;
	char byte;

	(void)state;
	omx_set_error_handler(a, note_error);
	answer_code = OMX_BUSY;
	assert_int_equal(omx_irecv(a, &byte, 1, 2, 1, NULL, NULL), OMX_BUSY);
	assert_int_equal(omx_irecv(b, &byte, 1, 2, 1, NULL, NULL), OMX_BAD_MATCH_MASK);
	assert_ptr_equal(omx_set_error_handler(a, NULL), note_error);
	assert_int_equal(omx_irecv(a, &byte, 1, 2, 1, NULL, NULL), OMX_BAD_MATCH_MASK);

	OK(omx_open_endpoint(OMX_ANY_NIC, OMX_ANY_ENDPOINT, KEY, &param, 1, &ep));
	assert_int_equal(omx_irecv(ep, &byte, 1, 2, 1, NULL, NULL), OMX_NOT_IMPLEMENTED);
	assert_ptr_equal(omx_set_error_handler(ep, OMX_ERRORS_RETURN), other_handler);
	assert_int_equal(omx_irecv(ep, &byte, 1, 2, 1, NULL, NULL), OMX_BAD_MATCH_MASK);
	OK(omx_close_endpoint(ep));
	assert_int_equal(omx_irecv(ep, &byte, 1, 2, 1, NULL, NULL), OMX_BAD_ENDPOINT);
}

static void parameters_of_endpoints_are_checked(void **state)
{
	omx_endpoint_param_t param = { .key = (omx_endpoint_param_key_t)9 };
	omx_endpoint_t ep;

	(void)state;
	assert_int_equal(omx_open_endpoint(0, OMX_ANY_ENDPOINT, 0, NULL, 1, &ep),
			 OMX_ENDPOINT_PARAMS_BAD_LIST);
	assert_int_equal(omx_open_endpoint(0, OMX_ANY_ENDPOINT, 0, &param, 1, &ep),
			 OMX_ENDPOINT_PARAM_BAD_KEY);
	param.key = OMX_ENDPOINT_PARAM_CONTEXT_ID;
	param.val.context_id.bits = 17;
	assert_int_equal(omx_open_endpoint(0, OMX_ANY_ENDPOINT, 0, &param, 1, &ep),
			 OMX_ENDPOINT_PARAM_BAD_VALUE);
	assert_int_equal(omx_open_endpoint(4711, OMX_ANY_ENDPOINT, 0, NULL, 0, &ep),
			 OMX_BOARD_NOT_FOUND);
	assert_int_equal(omx_open_endpoint(0, 4711, 0, NULL, 0, &ep), OMX_REMOTE_ENDPOINT_BAD_ID);
	param.val.context_id.bits = 16;
	OK(omx_open_endpoint(0, OMX_ANY_ENDPOINT, 0, &param, 1, &ep));
	assert_int_equal(omx_irecv(ep, NULL, 0, 0, 0, NULL, NULL),
			 OMX_BAD_MATCHING_FOR_CONTEXT_ID_MASK);
	OK(omx_close_endpoint(ep));
	assert_int_equal(omx_close_endpoint(ep), OMX_BAD_ENDPOINT);
	assert_int_equal(omx_close_endpoint(NULL), OMX_BAD_ENDPOINT);
}

/* ---- information ----------------------------------------------------------------------------- */

static void boards_are_described(void **state)
{
	char host[OMX_HOSTNAMELEN_MAX], again[OMX_HOSTNAMELEN_MAX], iface[OMX_HOSTNAMELEN_MAX];
	uint32_t most, endpoints, count, numa, board;
	uint8_t zero = 0, strange = 200;
	uint64_t ids[33], nic_id;

	(void)state;
	OK(omx_get_info(NULL, OMX_INFO_BOARD_MAX, NULL, 0, &most, sizeof(most)));
	OK(omx_get_info(NULL, OMX_INFO_ENDPOINT_MAX, NULL, 0, &endpoints, sizeof(endpoints)));
	OK(omx_get_info(a, OMX_INFO_BOARD_COUNT, NULL, 0, &count, sizeof(count)));
	assert_true(count >= 1 && count <= most && endpoints >= 32);
	OK(omx_get_info(NULL, OMX_INFO_BOARD_IDS, NULL, 0, ids, sizeof(ids)));
	assert_true(ids[count] == 0);
	OK(omx_board_number_to_nic_id(0, &nic_id));
	assert_true(ids[0] == nic_id);
	OK(omx_nic_id_to_board_number(nic_id, &board));
	assert_int_equal(board, 0);
	OK(omx_get_info(NULL, OMX_INFO_BOARD_HOSTNAME, &zero, 1, host, sizeof(host)));
	OK(omx_nic_id_to_hostname(nic_id, again));
	assert_string_equal(host, again);
	OK(omx_hostname_to_nic_id(host, &nic_id));
	assert_true(ids[0] == nic_id);
	OK(omx_get_info(a, OMX_INFO_BOARD_HOSTNAME, NULL, 0, again, sizeof(again)));
	assert_string_equal(host, again);
	OK(omx_get_info(NULL, OMX_INFO_BOARD_IFACENAME, &zero, 1, iface, sizeof(iface)));
	assert_true(strlen(iface) > 0);
	OK(omx_get_info(NULL, OMX_INFO_BOARD_NUMA_NODE, &zero, 1, &numa, sizeof(numa)));
	assert_int_equal(
		omx_get_info(NULL, OMX_INFO_BOARD_HOSTNAME, &strange, 1, host, sizeof(host)),
		OMX_BOARD_NOT_FOUND);
	assert_int_equal(omx_get_info(NULL, OMX_INFO_BOARD_HOSTNAME, NULL, 0, host, sizeof(host)),
			 OMX_BAD_INFO_ADDRESS);
	assert_int_equal(omx_get_info(NULL, OMX_INFO_BOARD_HOSTNAME, &zero, 1, host, 1),
			 OMX_BAD_INFO_LENGTH);
	assert_int_equal(omx_get_info(NULL, OMX_INFO_BOARD_MAX, NULL, 0, &most, 3),
			 OMX_BAD_INFO_LENGTH);
	assert_int_equal(omx_get_info(NULL, OMX_INFO_BOARD_MAX, NULL, 0, NULL, 4),
			 OMX_BAD_INFO_ADDRESS);
	assert_int_equal(omx_get_info(NULL, (omx_info_key_t)10, NULL, 0, &most, 4),
			 OMX_BAD_INFO_KEY);
	assert_int_equal(omx_hostname_to_nic_id((char[]){ "no-such-host.invalid" }, &nic_id),
			 OMX_PEER_NOT_FOUND);
}

static void counters_are_described(void **state)
{
	uint32_t count, *values, before = 0, after = 0;
	uint8_t zero = 0;
	char label[128];

	(void)state;
	OK(omx_get_info(NULL, OMX_INFO_COUNTER_MAX, NULL, 0, &count, sizeof(count)));
	assert_true(count > 0 && count < 256);
	values = calloc(count, sizeof(*values));
	assert_non_null(values);
	for (unsigned int i = 0; i < count; i++) {
		uint8_t index = (uint8_t)i;

		memset(label, 0, sizeof(label));
		OK(omx_get_info(NULL, OMX_INFO_COUNTER_LABEL, &index, 1, label, sizeof(label)));
		assert_true(strlen(label) > 0);
	}
	OK(omx_get_info(NULL, OMX_INFO_COUNTER_VALUES, &zero, 1, values, count * 4));
	OK(omx_get_info(a, OMX_INFO_COUNTER_VALUES, NULL, 0, values, count * 4));
	for (unsigned int i = 0; i < count; i++)
		before += values[i];
	send_text("counted", 1);
	until_unexpected(1);
	OK(omx_get_info(a, OMX_INFO_COUNTER_VALUES, NULL, 0, values, count * 4));
	for (unsigned int i = 0; i < count; i++)
		after += values[i];
	assert_true(after > before);
	assert_int_equal(omx_get_info(NULL, OMX_INFO_COUNTER_VALUES, &zero, 1, values, 3),
			 OMX_BAD_INFO_LENGTH);
	zero = 255;
	assert_int_equal(omx_get_info(NULL, OMX_INFO_COUNTER_LABEL, &zero, 1, label, sizeof(label)),
			 OMX_BAD_INFO_ADDRESS);
	free(values);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void connects_that_fail_say_why(void **state)
{
	omx_endpoint_addr_t own, addr;
	omx_request_t req;
	omx_status_t status;
	uint32_t eid, session;
	uint64_t nic_id;

	(void)state;
	OK(omx_get_endpoint_addr(b, &own));
	OK(omx_decompose_endpoint_addr_with_session(own, &nic_id, &eid, &session));
	assert_int_equal(omx_connect(a, nic_id, eid, KEY + 1, PATIENCE_MS, &addr),
			 OMX_REMOTE_ENDPOINT_BAD_CONNECTION_KEY);
	assert_int_equal(omx_connect(a, nic_id, 4711, KEY, PATIENCE_MS, &addr),
			 OMX_REMOTE_ENDPOINT_BAD_ID);
	OK(omx_iconnect(a, nic_id, eid, KEY + 1, 0x77, &eid, &req));
	status = end_of(a, &req);
	assert_int_equal(status.code, OMX_REMOTE_ENDPOINT_BAD_CONNECTION_KEY);
	assert_true(status.match_info == 0x77 && status.context == &eid);
	OK(omx_iconnect(a, nic_id, eid, KEY, 0x78, NULL, &req));
	status = end_of(a, &req);
	assert_int_equal(status.code, OMX_SUCCESS);
	assert_memory_equal(&status.addr, &b_of_a, sizeof(b_of_a));
}

static void a_closed_endpoint_is_said_to_be(void **state)
{
	omx_endpoint_addr_t addr;
	omx_endpoint_t ep;
	uint64_t nic_id;
	uint32_t eid;

	(void)state;
	OK(omx_open_endpoint(OMX_ANY_NIC, OMX_ANY_ENDPOINT, KEY, NULL, 0, &ep));
	OK(omx_get_endpoint_addr(ep, &addr));
	OK(omx_decompose_endpoint_addr(addr, &nic_id, &eid));
	OK(omx_close_endpoint(ep));
	assert_int_equal(omx_connect(a, nic_id, eid, KEY, PATIENCE_MS, &addr),
			 OMX_REMOTE_ENDPOINT_CLOSED);
}

static void addresses_keep_a_context(void **state)
{
	void *context = &a;
	uint32_t eid, eid2, session;
	uint64_t nic_id, nic_id2;

	(void)state;
	OK(omx_get_endpoint_addr_context(b_of_a, &context));
	assert_null(context);
	OK(omx_set_endpoint_addr_context(b_of_a, &b));
	OK(omx_get_endpoint_addr_context(b_of_a, &context));
	assert_ptr_equal(context, &b);
	OK(omx_decompose_endpoint_addr(b_of_a, &nic_id, &eid));
	OK(omx_decompose_endpoint_addr_with_session(b_of_a, &nic_id2, &eid2, &session));
	assert_true(nic_id == nic_id2 && eid == eid2);
}

static void a_disconnect_ends_what_is_under_way(void **state)
{
	omx_request_t req;
	omx_status_t status;

	(void)state;
	OK(omx_issend(a, NULL, 0, b_of_a, 5, NULL, &req));
	OK(omx_disconnect(a, b_of_a));
	status = end_of(a, &req);
	assert_int_equal(status.code, OMX_REMOTE_ENDPOINT_UNREACHABLE);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void buffers_and_lists_carry_messages(void **state)
{
	char out[] = "abcdefgh", in[9] = "", more[9] = "";
	omx_seg_t parts[2] = { { out, 3 }, { out + 3, 6 } },
		  places[2] = { { in, 5 }, { in + 5, 4 } };
	omx_request_t sent, received;
	omx_status_t status;

	(void)state;
	OK(omx_irecvv(b, places, 2, 7, UINT64_MAX, &in, &received));
	OK(omx_isendv(a, parts, 2, b_of_a, 7, &out, &sent));
	status = end_of(a, &sent);
	assert_true(status.code == OMX_SUCCESS && status.context == &out && status.match_info == 7);
	assert_memory_equal(&status.addr, &b_of_a, sizeof(b_of_a));
	status = end_of(b, &received);
	assert_true(status.code == OMX_SUCCESS && status.context == &in && status.match_info == 7);
	assert_true(status.msg_length == 9 && status.xfer_length == 9);
	assert_string_equal(in, out);

	OK(omx_irecv(b, more, 9, 8, UINT64_MAX, NULL, &received));
	OK(omx_issendv(a, parts, 2, b_of_a, 8, NULL, &sent));
	assert_int_equal(end_of(b, &received).code, OMX_SUCCESS);
	assert_int_equal(end_of(a, &sent).code, OMX_SUCCESS);
	assert_string_equal(more, out);
	assert_int_equal(omx_isend(a, out, (size_t)UINT32_MAX + 1, b_of_a, 8, NULL, &sent),
			 OMX_SEGMENTS_BAD_COUNT);
	assert_int_equal(omx_isendv(a, NULL, 2, b_of_a, 8, NULL, &sent), OMX_SEGMENTS_BAD_COUNT);
	assert_int_equal(omx_isendv(a, parts, 257, b_of_a, 8, NULL, &sent), OMX_SEGMENTS_BAD_COUNT);
}

static void both_sides_hear_of_truncation(void **state)
{
	omx_request_t sent, received;
	omx_status_t status;
	char out[64] = "truncated", in[10];

	(void)state;
	OK(omx_irecv(b, in, sizeof(in), 9, UINT64_MAX, NULL, &received));
	OK(omx_issend(a, out, sizeof(out), b_of_a, 9, NULL, &sent));
	status = end_of(b, &received);
	assert_int_equal(status.code, OMX_MESSAGE_TRUNCATED);
	assert_true(status.msg_length == 64 && status.xfer_length == 10);
	status = end_of(a, &sent);
	assert_int_equal(status.code, OMX_MESSAGE_TRUNCATED);
	assert_int_equal(status.xfer_length, 10);
}

static void a_timeout_of_0_does_not_wait(void **state)
{
	int64_t start = now_ms();
	omx_request_t req, some = NULL;
	omx_status_t status = { .code = OMX_BUSY };
	uint32_t result = 7;
	char in[8];

	(void)state;
	OK(omx_irecv(b, in, sizeof(in), 11, UINT64_MAX, NULL, &req));
	OK(omx_wait(b, &req, &status, &result, 0));
	assert_int_equal(result, 0);
	assert_non_null(req);
	OK(omx_wait_any(b, EVERYTHING, EVERYTHING, &status, &result, 0));
	assert_int_equal(result, 0);
	OK(omx_peek(b, &some, &result, 0));
	assert_int_equal(result, 0);
	OK(omx_probe(b, EVERYTHING, EVERYTHING, &status, &result, 0));
	assert_int_equal(result, 0);
	assert_int_equal(status.code, OMX_BUSY); /* nobody touched it */
	assert_true(now_ms() - start < 5000);
	start = now_ms();
	OK(omx_wait(b, &req, &status, &result, 100));
	assert_int_equal(result, 0);
	assert_true(now_ms() - start >= 99);
}

static void any_request_can_be_found(void **state)
{
	omx_request_t req, peeked = NULL;
	omx_status_t status;
	uint32_t result;
	char in[8];

	(void)state;
	OK(omx_irecv(b, in, sizeof(in), 0x21, UINT64_MAX, &in, &req));
	send_text("seven", 0x21);
	OK(omx_peek(b, &peeked, &result, OMX_TIMEOUT_INFINITE));
	assert_int_equal(result, 1);
	assert_ptr_equal(peeked, req);
	OK(omx_ipeek(b, &peeked, &result));
	assert_int_equal(result, 1);
	OK(omx_test_any(b, 0x20, UINT64_MAX, &status, &result));
	assert_int_equal(result, 0);
	OK(omx_wait_any(b, 0x20, 0xf0, &status, &result, OMX_TIMEOUT_INFINITE));
	assert_true(result == 1 && status.context == &in && status.xfer_length == 6);
	assert_string_equal(in, "seven");
	OK(omx_ipeek(b, &peeked, &result));
	assert_int_equal(result, 0);
	assert_int_equal(omx_test(b, &req, &status, &result), OMX_BAD_REQUEST);
}

static void unexpected_messages_are_probed(void **state)
{
	omx_status_t status;
	uint32_t result;

	(void)state;
	send_text("probed", 0x31);
	status = until_unexpected(0x31);
	assert_true(status.code == OMX_SUCCESS && status.msg_length == 7 &&
		    status.match_info == 0x31);
	OK(omx_iprobe(b, 0x32, UINT64_MAX, &status, &result));
	assert_int_equal(result, 0);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void a_cancelled_receive_is_gone_or_ends(void **state)
{
	omx_request_t req, peeked;
	omx_status_t status;
	uint32_t result = 0;
	char in[8];

	(void)state;
	OK(omx_irecv(b, in, sizeof(in), 0x41, UINT64_MAX, NULL, &req));
	OK(omx_cancel(b, &req, &result));
	assert_int_equal(result, 1);
	OK(omx_test_any(b, EVERYTHING, EVERYTHING, &status, &result));
	assert_int_equal(result, 0);

	OK(omx_irecv(b, in, sizeof(in), 0x42, UINT64_MAX, &in, &req));
	OK(omx_cancel_notest(b, &req, &result));
	assert_int_equal(result, 1);
	assert_non_null(req);
	OK(omx_ipeek(b, &peeked, &result));
	assert_true(result == 1 && peeked == req);
	OK(omx_test(b, &req, &status, &result));
	assert_true(result == 1 && status.code == OMX_CANCELLED && status.context == &in &&
		    status.match_info == 0x42);
	assert_null(req);

	OK(omx_irecv(b, in, sizeof(in), 0x43, UINT64_MAX, &in, &req));
	OK(omx_cancel_notest(b, &req, &result));
	OK(omx_test_any(b, 0x43, UINT64_MAX, &status, &result));
	assert_true(result == 1 && status.code == OMX_CANCELLED);
	send_text("not for it", 0x43);
	until_unexpected(0x43);
}

static void what_cannot_be_cancelled_goes_on(void **state)
{
	omx_request_t sent, received;
	omx_status_t status;
	uint32_t result = 7;
	char in[8];

	(void)state;
	OK(omx_issend(a, NULL, 0, b_of_a, 0x51, NULL, &sent));
	assert_int_equal(omx_cancel(a, &sent, &result), OMX_BAD_REQUEST);
	assert_int_equal(omx_cancel_notest(a, &sent, &result), OMX_BAD_REQUEST);
	OK(omx_irecv(b, in, sizeof(in), 0x51, UINT64_MAX, NULL, &received));
	status = end_of(a, &sent);
	assert_int_equal(status.code, OMX_SUCCESS);
	OK(omx_cancel_notest(b, &received, &result));
	assert_int_equal(result, 0);
	assert_int_equal(end_of(b, &received).code, OMX_SUCCESS);
}

static void requests_are_asked_about(void **state)
{
	omx_request_t req;
	void *context = NULL;
	uint32_t result = 0;
	char in[8];

	(void)state;
	OK(omx_isend(a, NULL, 0, b_of_a, 0x61, &result, &req));
	OK(omx_context(&req, &context));
	assert_ptr_equal(context, &result);
	OK(omx_ibuffered(a, &req, &result));
	assert_int_equal(result, 1);
	end_of(a, &req);
	OK(omx_irecv(b, in, sizeof(in), 0x62, UINT64_MAX, NULL, &req));
	assert_int_equal(omx_ibuffered(b, &req, &result), OMX_BAD_REQUEST);
	OK(omx_forget(b, &req));
	assert_null(req);
	assert_int_equal(omx_forget(b, &req), OMX_BAD_REQUEST);
}

static void a_request_may_have_a_time(void **state)
{
	omx_request_t req;
	omx_status_t status;
	char in[8];

	(void)state;
	OK(omx_irecv(b, in, sizeof(in), 0x71, UINT64_MAX, NULL, &req));
	OK(omx_set_request_timeout(b, req, 50));
	status = end_of(b, &req);
	assert_int_equal(status.code, OMX_TIMEOUT);
	OK(omx_set_request_timeout(b, NULL, 50));
	OK(omx_irecv(b, in, sizeof(in), 0x72, UINT64_MAX, NULL, &req));
	assert_int_equal(end_of(b, &req).code, OMX_TIMEOUT);
	OK(omx_set_request_timeout(b, NULL, OMX_TIMEOUT_INFINITE));
}

/* ---- handlers and threads -------------------------------------------------------------------- */

static struct {
	int calls;
	uint64_t match;
	uint32_t length;
	char data[16];
	omx_endpoint_addr_t source;
	omx_return_t close;
} shown;

static omx_unexp_handler_action_t show(void *context, omx_endpoint_addr_t source, uint64_t match,
				       uint32_t length, void *data)
{
	omx_endpoint_t ep = *(omx_endpoint_t *)context;

	shown.calls++;
	shown.match = match;
	shown.length = length;
	shown.source = source;
	if (data && length <= sizeof(shown.data))
		memcpy(shown.data, data, length);
	shown.close = omx_close_endpoint(ep);
	return match == 0x81 ? OMX_UNEXP_HANDLER_RECV_FINISHED : OMX_UNEXP_HANDLER_RECV_CONTINUE;
}

static void until_shown(int calls)
{
	time_t deadline = time(NULL) + PATIENCE_MS / 1000;

	while (shown.calls < calls) {
		OK(omx_progress(b));
		assert_true(time(NULL) < deadline);
	}
	assert_int_equal(shown.calls, calls);
}

static void a_handler_sees_unexpected_messages(void **state)
{
	omx_endpoint_addr_t a_of_b;
	omx_request_t req;
	omx_status_t status;
	uint64_t nic_id;
	uint32_t result, eid;

	(void)state;
	memset(&shown, 0, sizeof(shown));
	OK(omx_register_unexp_handler(b, show, &b));
	send_text("over", 0x81);
	until_shown(1);
	assert_true(shown.match == 0x81 && shown.length == 5);
	assert_string_equal(shown.data, "over");
	assert_int_equal(shown.close, OMX_NOT_SUPPORTED_IN_HANDLER);
	OK(omx_get_endpoint_addr(a, &a_of_b));
	OK(omx_decompose_endpoint_addr(a_of_b, &nic_id, &eid));
	OK(omx_connect(b, nic_id, eid, KEY, PATIENCE_MS, &a_of_b));
	assert_memory_equal(&shown.source, &a_of_b, sizeof(a_of_b));
	OK(omx_iprobe(b, EVERYTHING, EVERYTHING, &status, &result));
	assert_int_equal(result, 0);

	send_text("kept", 0x82);
	until_shown(2);
	until_unexpected(0x82);

	/* the sender of a synchronous one hears that nobody took its bytes */
	OK(omx_issend(a, shown.data, 5, b_of_a, 0x81, NULL, &req));
	until_shown(3);
	status = end_of(a, &req);
	assert_true(status.code == OMX_MESSAGE_TRUNCATED && status.xfer_length == 0);

	OK(omx_disable_progression(b));
	send_text("later", 0x82);
	for (int i = 0; i < 100; i++)
		OK(omx_progress(b));
	assert_int_equal(shown.calls, 3);
	OK(omx_reenable_progression(b));
	until_shown(4);
	OK(omx_register_unexp_handler(b, NULL, NULL));
}

static _Atomic int sleeping;

static void *sleep_on_b(void *arg)
{
	omx_request_t req;
	uint32_t *result = arg;

	sleeping = 1;
	return (void *)(intptr_t)omx_peek(b, &req, result, OMX_TIMEOUT_INFINITE);
}

static void a_sleeper_is_woken(void **state)
{
	pthread_t thread;
	uint32_t result = 7;
	void *ret = &result;
	struct timespec t = { 0, 20000000 };

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, sleep_on_b, &result), 0);
	while (!sleeping)
		nanosleep(&t, NULL);
	/* a wakeup that comes before the wait has no effect on it, so there are several */
	while (pthread_tryjoin_np(thread, &ret) != 0) {
		OK(omx_wakeup(b));
		nanosleep(&t, NULL);
	}
	assert_int_equal((int)(intptr_t)ret, OMX_SUCCESS);
	assert_int_equal(result, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_have_the_numbers_of_open_mx),
		cmocka_unit_test(calls_before_the_start_say_so),
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		CASE(an_error_is_what_the_handler_makes_of_it),
		CASE(an_endpoint_may_have_a_handler_of_its_own),
		CASE(parameters_of_endpoints_are_checked),
		CASE(boards_are_described),
		CASE(counters_are_described),
		CASE(connects_that_fail_say_why),
		CASE(a_closed_endpoint_is_said_to_be),
		CASE(addresses_keep_a_context),
		CASE(a_disconnect_ends_what_is_under_way),
		CASE(buffers_and_lists_carry_messages),
		CASE(both_sides_hear_of_truncation),
		CASE(a_timeout_of_0_does_not_wait),
		CASE(any_request_can_be_found),
		CASE(unexpected_messages_are_probed),
		CASE(a_cancelled_receive_is_gone_or_ends),
		CASE(what_cannot_be_cancelled_goes_on),
		CASE(requests_are_asked_about),
		CASE(a_request_may_have_a_time),
		CASE(a_handler_sees_unexpected_messages),
		CASE(a_sleeper_is_woken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
