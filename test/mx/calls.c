/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Calls with bad arguments, before init, after the end; endpoints, ids, parameters, names and
 * information. One process.
 */
#include <mx_internals/mx__driver_interface.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mx_check.h"

static int handler_calls;
static mx_return_t handler_code;

static mx_return_t count_errors(char *str, mx_return_t ret)
{
	mxc_true(str && *str);
	handler_calls++;
	handler_code = ret;
	return ret;
}

static mx_return_t say_busy(char *str, mx_return_t ret)
{
	(void)str;
	(void)ret;
	return MX_BUSY;
}

static void nothing_works_before_init(void)
{
	mx_endpoint_t ep = NULL;
	uint64_t nic;
	uint32_t n;
	char name[MX_MAX_HOSTNAME_LEN];

	mxc_is(mx_finalize(), MX_NOT_INITIALIZED);
	mxc_is(mx_open_endpoint(0, 0, 0, NULL, 0, &ep), MX_NOT_INITIALIZED);
	mxc_is(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &n, sizeof(n)), MX_NOT_INITIALIZED);
	mxc_is(mx_hostname_to_nic_id(name, &nic), MX_NOT_INITIALIZED);
	mxc_is(mx_board_number_to_nic_id(0, &nic), MX_NOT_INITIALIZED);
	mxc_is(mx_progress(NULL), MX_NOT_INITIALIZED);
}

/* A child without a handler of its own; its exit status. */
static int child_of_default(const char *name, const char *value)
{
	int status = 0, null[2];
	pid_t pid;

	fflush(stdout);
	mxc_is(pipe(null), 0);
	pid = fork();
	if (!pid) {
		dup2(null[1], 2);
		if (name)
			setenv(name, value, 1);
		mx_set_error_handler(NULL);
		mx_finalize();
		_exit(0);
	}
	close(null[0]);
	close(null[1]);
	mxc_is(waitpid(pid, &status, 0), pid);
	mxc_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void the_default_handler_ends_the_process(void)
{
	mxc_is(child_of_default(NULL, NULL), 1);
	mxc_is(child_of_default("OMX_FATAL_ERRORS", "0"), 0);
	mxc_is(child_of_default("MX_ERRORS_ARE_FATAL", "0"), 0);
}

/* A child that opens an endpoint with this setting says the hint; NULL: nothing. */
static void open_says(const char *name, const char *hint)
{
	char said[2000];
	ssize_t n = 0, got;
	int out[2], status;
	pid_t pid;

	fflush(stdout);
	mxc_is(pipe(out), 0);
	pid = fork();
	if (!pid) {
		mx_endpoint_t ep;

		dup2(out[1], 2);
		setenv(name, "1", 1);
		mxc_ok(mx_init());
		mxc_ok(mx_open_endpoint(0, 60, 1, NULL, 0, &ep));
		mxc_ok(mx_close_endpoint(ep));
		mxc_ok(mx_finalize());
		_exit(0);
	}
	close(out[1]);
	while ((got = read(out[0], said + n, sizeof(said) - 1 - (size_t)n)) > 0)
		n += got;
	said[n] = '\0';
	close(out[0]);
	mxc_is(waitpid(pid, &status, 0), pid);
	mxc_is(status, 0);
	mxc_true(hint ? strstr(said, name) && strstr(said, hint) : !n);
}

static void settings_without_effect_have_a_hint(void)
{
	open_says("OMX_DISABLE_SHARED", "PTL_NAL");
	open_says("MX_MAX_RETRIES", "PTL_NET_DEAD_MS");
	open_says("OMX_WAITSPIN", "PTL_SPIN_US");
	open_says("MX_MONOTHREAD", NULL);
}

static void init_takes_the_versions_it_knows(void)
{
	mxc_is(mx__init_api(0), MX_BAD_LIB_VERSION);
	mxc_is(mx__init_api(0x201), MX_BAD_LIB_VERSION);
	mxc_is(mx__init_api(0x401), MX_BAD_LIB_VERSION);
	mxc_ok(mx__init_api(0x300));
	mxc_is(mx_init(), MX_ALREADY_INITIALIZED);
	mxc_ok(mx_finalize());
	mxc_ok(mx_init());
}

static void handlers_see_each_error_and_have_the_last_word(void)
{
	mx_error_handler_t before = mx_set_error_handler(count_errors);
	mx_param_t param = { .key = MX_PARAM_ERROR_HANDLER };
	mx_endpoint_t ep;
	mx_request_t r = NULL;
	uint32_t result;

	mxc_true(before == MX_ERRORS_RETURN);
	handler_calls = 0;
	mxc_is(mx_init(), MX_ALREADY_INITIALIZED);
	mxc_is(handler_calls, 1);
	mxc_is(handler_code, MX_ALREADY_INITIALIZED);
	param.val.error_handler = say_busy;
	mxc_ok(mx_open_endpoint(0, MX_ANY_ENDPOINT, 1, &param, 1, &ep));
	mxc_is(mx_test(ep, &r, NULL, &result), MX_BUSY);
	mxc_is(handler_calls, 1);
	mxc_ok(mx_close_endpoint(ep));
	mxc_true(mx_set_error_handler(MX_ERRORS_RETURN) == count_errors);
}

static void bad_arguments_have_their_codes(void)
{
	mx_param_t param = { .key = (mx_param_key_t)99 };
	mx_endpoint_addr_t addr = { { 1, 2 } };
	mx_segment_t segs[2] = { { NULL, 4 }, { segs, UINT32_MAX } };
	mx_endpoint_t ep, made_up = (mx_endpoint_t)(uintptr_t)0x12345;
	mx_request_t r = NULL;
	mx_status_t st;
	uint64_t nic;
	uint32_t n;
	void *context;

	mxc_is(mx_open_endpoint(99, 0, 0, NULL, 0, &ep), MX_BOARD_UNKNOWN);
	mxc_is(mx_open_endpoint(0, 256, 0, NULL, 0, &ep), MX_BAD_ENDPOINT_ID);
	mxc_is(mx_open_endpoint(0, 0, 0, NULL, 1, &ep), MX_BAD_PARAM_LIST);
	mxc_is(mx_open_endpoint(0, 0, 0, &param, 1, &ep), MX_BAD_PARAM_NAME);
	param.key = MX_PARAM_CONTEXT_ID;
	param.val.context_id.bits = 17;
	param.val.context_id.shift = 0;
	mxc_is(mx_open_endpoint(0, 0, 0, &param, 1, &ep), MX_BAD_PARAM_VAL);
	param.val.context_id.bits = 8;
	param.val.context_id.shift = 57;
	mxc_is(mx_open_endpoint(0, 0, 0, &param, 1, &ep), MX_BAD_PARAM_VAL);
	mxc_is(mx_close_endpoint(NULL), MX_BAD_ENDPOINT);
	mxc_is(mx_close_endpoint(made_up), MX_BAD_ENDPOINT);
	mxc_ok(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, 7, NULL, 0, &ep));
	mxc_is(mx_isend(ep, segs, 1, addr, 0, NULL, &r), MX_BAD_ENDPOINT);
	mxc_ok(mx_get_endpoint_addr(ep, &addr));
	mxc_is(mx_isend(ep, segs, 1, addr, 0, NULL, &r), MX_BAD_SEG_MEM);
	mxc_is(mx_isend(ep, NULL, 1, addr, 0, NULL, &r), MX_BAD_SEG_LIST);
	mxc_is(mx_isend(ep, segs, 257, addr, 0, NULL, &r), MX_BAD_SEG_CNT);
	mxc_is(mx_irecv(ep, NULL, 1, 0, 0, NULL, &r), MX_BAD_SEG_LIST);
	mxc_is(mx_irecv(ep, segs, 257, 0, 0, NULL, &r), MX_BAD_SEG_CNT);
	mxc_is(mx_irecv(ep, NULL, 0, 1, 0, NULL, &r), MX_BAD_MATCH_MASK);
	mxc_is(mx_test_any(ep, 1, 0, &st, &n), MX_BAD_MATCH_MASK);
	mxc_is(mx_test(ep, NULL, &st, &n), MX_BAD_REQUEST);
	mxc_is(mx_test(ep, &r, &st, &n), MX_BAD_REQUEST);
	r = (mx_request_t)(uintptr_t)0x15a;
	mxc_is(mx_test(ep, &r, &st, &n), MX_BAD_REQUEST);
	mxc_is(mx_cancel(ep, &r, &n), MX_BAD_REQUEST);
	mxc_is(mx_forget(ep, &r), MX_BAD_REQUEST);
	mxc_is(mx_ibuffered(ep, &r, &n), MX_BAD_REQUEST);
	mxc_is(mx_context(&r, &context), MX_BAD_REQUEST);
	mxc_is(mx_context(NULL, &context), MX_BAD_REQUEST);
	mxc_ok(mx_board_number_to_nic_id(0, &nic));
	mxc_is(mx_connect(ep, nic, 256, 7, 100, &addr), MX_BAD_ENDPOINT_ID);
	mxc_is(mx_connect(ep, 0x112233445566, 0, 7, 100, &addr), MX_NIC_NOT_FOUND);
	mxc_is(mx_iput(ep, NULL, 0, addr, 0, NULL, &r), MX_BAD_BAD_BAD);
	mxc_is(mx_iget(ep, NULL, 0, addr, 0, NULL, &r), MX_BAD_BAD_BAD);
	mxc_is(mx_buffered(ep, &r, 0, &n), MX_BAD_BAD_BAD);
	mxc_ok(mx_close_endpoint(ep));
	mxc_is(mx_close_endpoint(ep), MX_BAD_ENDPOINT);
	mxc_is(mx_progress(ep), MX_BAD_ENDPOINT);
	mxc_is(mx_decompose_endpoint_addr(addr, &nic, &n), MX_BAD_ENDPOINT);
}

static void ids_are_unique_and_any_is_the_lowest(void)
{
	mx_endpoint_t ep[4], other;
	mx_endpoint_addr_t addr;
	uint32_t eid;

	mxc_ok(mx_open_endpoint(0, 1, 0, NULL, 0, &ep[0]));
	mxc_is(mx_open_endpoint(0, 1, 0, NULL, 0, &other), MX_BUSY);
	mxc_ok(mx_open_endpoint(0, MX_ANY_ENDPOINT, 0, NULL, 0, &ep[1]));
	mxc_ok(mx_open_endpoint(0, MX_ANY_ENDPOINT, 0, NULL, 0, &ep[2]));
	mxc_ok(mx_open_endpoint(0, 200, 0, NULL, 0, &ep[3]));
	for (int i = 0; i < 4; i++) {
		static const uint32_t want[] = { 1, 0, 2, 200 };

		mxc_ok(mx_get_endpoint_addr(ep[i], &addr));
		mxc_ok(mx_decompose_endpoint_addr(addr, NULL, &eid));
		mxc_is(eid, want[i]);
	}
	mxc_ok(mx_close_endpoint(ep[0]));
	mxc_ok(mx_open_endpoint(0, 1, 0, NULL, 0, &ep[0]));
	for (int i = 0; i < 4; i++)
		mxc_ok(mx_close_endpoint(ep[i]));
}

static void *open_and_close(void *arg)
{
	for (unsigned int i = 0; i < 10; i++) {
		mx_segment_t s = { NULL, 0 };
		mx_endpoint_t ep;
		mx_request_t r;

		mxc_ok(mx_open_endpoint(0, MX_ANY_ENDPOINT, 1, NULL, 0, &ep));
		for (unsigned int n = 0; n < 512; n++)
			mxc_ok(mx_irecv(ep, &s, 1, n, MX_MATCH_MASK_NONE, arg, &r));
		mxc_ok(mx_close_endpoint(ep));
	}
	return NULL;
}

static void threads_open_and_close(void)
{
	pthread_t t[8];

	for (int i = 0; i < 8; i++)
		mxc_is(pthread_create(&t[i], NULL, open_and_close, NULL), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
}

static void thousands_of_receives_are_pending_at_close(void)
{
	static unsigned char memory[65536];
	mx_endpoint_t ep;
	mx_request_t r;

	mxc_ok(mx_open_endpoint(0, MX_ANY_ENDPOINT, 1, NULL, 0, &ep));
	for (unsigned int i = 0; i < 8192; i++) {
		mx_segment_t s = { memory, i % 2 ? 65536 : 100 };

		mxc_ok(mx_irecv(ep, &s, 1, i, MX_MATCH_MASK_NONE, NULL, &r));
	}
	mxc_ok(mx_close_endpoint(ep));
}

static void names_lead_to_nics_and_back(void)
{
	char host[MX_MAX_HOSTNAME_LEN], name[300] = "", local[] = "localhost";
	uint64_t nic, again;
	uint32_t board = 9;

	mxc_ok(mx_board_number_to_nic_id(0, &nic));
	mxc_is(nic >> 48, 0);
	mxc_true(nic);
	mxc_ok(mx_nic_id_to_board_number(nic, &board));
	mxc_is(board, 0);
	mxc_ok(mx_nic_id_to_hostname(nic, host));
	gethostname(name, sizeof(name) - 3);
	name[MX_MAX_HOSTNAME_LEN - 12] = '\0';
	strcat(name, ":0");
	mxc_true(!strcmp(host, name));
	mxc_ok(mx_hostname_to_nic_id(host, &again));
	mxc_is(again, nic);
	mxc_ok(mx_hostname_to_nic_id(local, &again));
	mxc_is(again, nic);
	strcpy(host, "localhost:7");
	mxc_is(mx_hostname_to_nic_id(host, &again), MX_HOST_NOT_FOUND);
	strcpy(host, "localhost:x");
	mxc_is(mx_hostname_to_nic_id(host, &again), MX_HOST_NOT_FOUND);
	mxc_is(mx_hostname_to_nic_id(NULL, &again), MX_BAD_HOSTNAME_ARGS);
	mxc_is(mx_nic_id_to_hostname(1, host), MX_NIC_NOT_FOUND);
	mxc_is(mx_board_number_to_nic_id(32, &nic), MX_BOARD_UNKNOWN);
	strcpy(host, "10.1.2.3:0");
	mxc_ok(mx_hostname_to_nic_id(host, &again));
	mxc_is(again & 0xffffffff, 0x0a010203);
	mxc_is(mx_nic_id_to_board_number(again, &board), MX_NIC_NOT_FOUND);
}

static void every_key_has_its_information(void)
{
	char text[MX_MAX_STR_LEN], *labels;
	uint64_t nics[2] = { 0, 1 }, nic;
	uint32_t n = 0, count, board = 0, values[64];
	uint8_t small_board = 0;
	mx_endpoint_t ep;

	mxc_ok(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &n, sizeof(n)));
	mxc_is(n, 1);
	mxc_is(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, NULL, 4), MX_BAD_INFO_VAL);
	mxc_is(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &n, 3), MX_BAD_INFO_LENGTH);
	mxc_is(mx_get_info(NULL, (mx_get_info_key_t)77, NULL, 0, &n, 4), MX_BAD_INFO_KEY);
	mxc_ok(mx_board_number_to_nic_id(0, &nic));
	mxc_ok(mx_get_info(NULL, MX_NIC_IDS, NULL, 0, nics, sizeof(nics)));
	mxc_is(nics[0], nic);
	mxc_is(nics[1], 0);
	mxc_is(mx_get_info(NULL, MX_NIC_IDS, NULL, 0, nics, 8), MX_BAD_INFO_LENGTH);
	mxc_ok(mx_get_info(NULL, MX_MAX_NATIVE_ENDPOINTS, NULL, 0, &n, sizeof(n)));
	mxc_true(n >= 32);
	mxc_ok(mx_get_info(NULL, MX_NATIVE_REQUESTS, NULL, 0, &n, sizeof(n)));
	mxc_is(n, UINT32_MAX);
	mxc_ok(mx_get_info(NULL, MX_COUNTERS_COUNT, NULL, 0, &count, sizeof(count)));
	mxc_true(count > 4 && count <= 64);
	labels = malloc((size_t)count * MX_MAX_STR_LEN);
	mxc_ok(mx_get_info(NULL, MX_COUNTERS_LABELS, NULL, 0, labels, count * MX_MAX_STR_LEN));
	for (uint32_t i = 0; i < count; i++)
		mxc_true(labels[i * MX_MAX_STR_LEN] && !labels[(i + 1) * MX_MAX_STR_LEN - 1]);
	free(labels);
	mxc_ok(mx_get_info(NULL, MX_COUNTERS_VALUES, &board, 4, values, count * 4));
	for (int key = MX_PRODUCT_CODE; key <= MX_SERIAL_NUMBER; key++) {
		memset(text, 1, sizeof(text));
		mxc_ok(mx_get_info(NULL, (mx_get_info_key_t)key, &board, 4, text, sizeof(text)));
		mxc_true(memchr(text, 0, sizeof(text)) && *text);
	}
	mxc_ok(mx_get_info(NULL, MX_PORT_COUNT, &board, 4, &n, 4));
	mxc_is(n, 1);
	mxc_ok(mx_get_info(NULL, MX_PIO_SEND_MAX, NULL, 0, &n, 4));
	mxc_is(n, 128);
	mxc_ok(mx_get_info(NULL, MX_COPY_SEND_MAX, NULL, 0, &n, 4));
	mxc_is(n, 32768);
	mxc_ok(mx_get_info(NULL, MX_NUMA_NODE, &small_board, 1, &n, 4));
	mxc_ok(mx_get_info(NULL, MX_NET_TYPE, NULL, 0, &n, 4));
	mxc_is(n, MX_NET_ETHER);
	mxc_ok(mx_get_info(NULL, MX_LINE_SPEED, &board, 4, &n, 4));
	mxc_is(n, MX_SPEED_OPEN_MX);
	board = 9;
	mxc_is(mx_get_info(NULL, MX_LINE_SPEED, &board, 4, &n, 4), MX_BOARD_UNKNOWN);
	mxc_ok(mx_open_endpoint(0, MX_ANY_ENDPOINT, 0, NULL, 0, &ep));
	mxc_ok(mx_get_info(ep, MX_COPY_SEND_MAX, NULL, 0, &n, 4));
	mxc_ok(mx_get_info(ep, MX_COUNTERS_VALUES, NULL, 0, values, count * 4));
	mxc_ok(mx_close_endpoint(ep));
}

static void boards_have_a_mapper_state(void)
{
	static const uint8_t none[6];
	mx_mapper_state_t ms = { .board_number = 0 };
	mx_endpt_handle_t handle = MX__INVALID_HANDLE;

	mxc_ok(mx_open_board(0, &handle));
	mxc_ok(mx__get_mapper_state(handle, &ms));
	mxc_true(memcmp(ms.mapper_mac, none, 6));
	mxc_is(mx_open_board(5, &handle), MX_BOARD_UNKNOWN);
	mxc_is(mx__get_mapper_state(-1, &ms), MX_BOARD_UNKNOWN);
	mxc_is(mx__regcache_clean(&ms, sizeof(ms)), 0);
}

static void two_boards_are_two_networks(void)
{
	mx_endpoint_addr_t addr;
	mx_endpoint_t ep[2];
	mx_request_t r, s;
	mx_status_t st;
	uint64_t nic[3], id;
	uint32_t n = 0, eid;
	mx_return_t ret = mx_init(); /* alone it is the first case */

	mxc_true(ret == MX_SUCCESS || ret == MX_ALREADY_INITIALIZED);
	mxc_ok(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &n, sizeof(n)));
	if (n < 2)
		return; /* the other run has two */
	mxc_ok(mx_get_info(NULL, MX_NIC_IDS, NULL, 0, nic, sizeof(nic)));
	mxc_true(nic[0] != nic[1]);
	mxc_is(nic[2], 0);
	for (int i = 0; i < 2; i++) {
		mxc_ok(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, 1, NULL, 0, &ep[i]));
		mxc_ok(mx_get_endpoint_addr(ep[i], &addr));
		mxc_ok(mx_decompose_endpoint_addr(addr, &id, &eid));
		mxc_is(id, nic[i]); /* boards in turn for each id */
		mxc_is(eid, 0);
	}
	mxc_is(mx_connect(ep[1], nic[0], 0, 1, 10000, &addr), MX_NIC_NOT_FOUND);
	mxc_ok(mx_connect(ep[1], nic[1], 0, 1, 10000, &addr));
	mxc_ok(mx_isend(ep[1], NULL, 0, addr, 5, NULL, &s));
	mxc_ok(mx_irecv(ep[1], NULL, 0, 5, MX_MATCH_MASK_NONE, NULL, &r));
	mxc_ok(mx_wait(ep[1], &r, 10000, &st, &n));
	mxc_is(n, 1);
	for (int i = 0; i < 2; i++)
		mxc_ok(mx_close_endpoint(ep[i]));
}

static void finalize_closes_what_is_left(void)
{
	mx_endpoint_t ep;

	mxc_ok(mx_open_endpoint(0, 3, 0, NULL, 0, &ep));
	mxc_ok(mx_finalize());
	mxc_is(mx_progress(ep), MX_NOT_INITIALIZED);
	mxc_is(mx_finalize(), MX_NOT_INITIALIZED);
	mxc_ok(mx_init());
	mxc_ok(mx_open_endpoint(0, 3, 0, NULL, 0, &ep));
	mxc_ok(mx_close_endpoint(ep));
	mxc_ok(mx_finalize());
}

/* A child that lives on holds no id of its parent. */
static void a_child_keeps_no_id(void)
{
	mx_endpoint_t ep;
	pid_t child;

	mxc_ok(mx_init());
	mxc_ok(mx_open_endpoint(0, 3, 0, NULL, 0, &ep));
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	mxc_child = child;
	usleep(200000);
	mxc_ok(mx_close_endpoint(ep));
	mxc_ok(mx_open_endpoint(0, 3, 0, NULL, 0, &ep));
	mxc_ok(mx_close_endpoint(ep));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	mxc_child = 0;
	mxc_ok(mx_finalize());
}

/* An id is refused although no socket can be had that would claim it. */
static void ids_are_unique_without_descriptors(void)
{
	struct rlimit all, few;
	mx_endpoint_t ep, other;

	mxc_ok(mx_init());
	mxc_ok(mx_open_endpoint(0, 3, 0, NULL, 0, &ep));
	mxc_is(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = all;
	few.rlim_cur = 3;
	mxc_is(setrlimit(RLIMIT_NOFILE, &few), 0);
	mxc_is(mx_open_endpoint(0, 3, 0, NULL, 0, &other), MX_BUSY);
	mxc_is(setrlimit(RLIMIT_NOFILE, &all), 0);
	mxc_ok(mx_close_endpoint(ep));
	mxc_ok(mx_finalize());
}

static const struct mxc_case cases[] = {
	MXC_CASE(nothing_works_before_init),
	MXC_CASE(the_default_handler_ends_the_process),
	MXC_CASE(settings_without_effect_have_a_hint),
	MXC_CASE(init_takes_the_versions_it_knows),
	MXC_CASE(handlers_see_each_error_and_have_the_last_word),
	MXC_CASE(bad_arguments_have_their_codes),
	MXC_CASE(ids_are_unique_and_any_is_the_lowest),
	MXC_CASE(threads_open_and_close),
	MXC_CASE(thousands_of_receives_are_pending_at_close),
	MXC_CASE(names_lead_to_nics_and_back),
	MXC_CASE(every_key_has_its_information),
	MXC_CASE(boards_have_a_mapper_state),
	MXC_CASE(two_boards_are_two_networks),
	MXC_CASE(finalize_closes_what_is_left),
	MXC_CASE(a_child_keeps_no_id),
	MXC_CASE(ids_are_unique_without_descriptors),
};

int main(int argc, char **argv)
{
	mxc_start_alone(argc, argv);
	MXC_RUN(cases);
	return 0;
}
