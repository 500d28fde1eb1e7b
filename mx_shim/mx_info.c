/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Information about boards and the library, and the old and internal names that programs link
 * to.
 */
#include <mx_internals/mx__driver_interface.h>
#include <stdlib.h>
#include <string.h>

#include "mx_shim/mx_core.h"

const char *const mxs_counter_label[MXS_COUNTERS] = {
	[MXS_SENT_EAGER] = "messages sent with their bytes",
	[MXS_SENT_SYNC] = "synchronous messages sent with their bytes",
	[MXS_SENT_PULL] = "messages sent to be read",
	[MXS_SENT_DIRECT] = "long messages sent",
	[MXS_SEND_WAITED] = "sends that waited for their turn",
	[MXS_RECV_EXPECTED] = "messages that a receive waited for",
	[MXS_RECV_UNEXPECTED] = "messages that came before their receive",
	[MXS_RECV_DIRECT] = "long messages that were put in place",
	[MXS_RECV_READ] = "messages that were read",
	[MXS_CREDITS_SENT] = "credits sent",
	[MXS_CREDITS_GOT] = "credits received",
	[MXS_CONNECTS] = "connects",
	[MXS_CHECKS] = "checks of silent partners",
	[MXS_PARTNERS_LOST] = "partners lost",
	[MXS_DROPPED] = "messages dropped, not for this endpoint",
	[MXS_TRUNCATED] = "messages truncated",
};

/* ---- mx_get_info ----------------------------------------------------------------------------- */

/* A call of mx_get_info. */
struct info {
	mx_get_info_key_t key;
	struct mxs_endpoint *ep; /* locked, or NULL */
	const void *in;
	uint32_t in_len;
	char *out;
	uint32_t out_len;
};

static mx_return_t tell(const struct info *i, const void *value, uint32_t length)
{
	if (i->out_len < length)
		return MX_BAD_INFO_LENGTH;
	memcpy(i->out, value, length);
	return MX_SUCCESS;
}

static mx_return_t tell_number(const struct info *i, uint32_t value)
{
	return tell(i, &value, sizeof(value));
}

static mx_return_t tell_text(const struct info *i, const char *text)
{
	if (!i->out_len)
		return MX_BAD_INFO_LENGTH;
	strncpy(i->out, text, i->out_len - 1);
	i->out[i->out_len - 1] = '\0';
	return MX_SUCCESS;
}

/* The board a call is about. Programs give 8 or 32 bits, or an endpoint. */
static mx_return_t board_of_call(const struct info *i, uint32_t *board)
{
	*board = i->ep ? i->ep->board_number : 0;
	if (i->in && i->in_len >= sizeof(*board))
		memcpy(board, i->in, sizeof(*board));
	else if (i->in && i->in_len)
		*board = *(const uint8_t *)i->in;
	return *board < mxs_boards() ? MX_SUCCESS : MX_BOARD_UNKNOWN;
}

static mx_return_t tell_nics(const struct info *i)
{
	uint64_t nic[MXS_BOARDS + 1] = { 0 };
	uint32_t boards = mxs_boards();

	for (uint32_t b = 0; b < boards; b++)
		nic[b] = mxs_nic_id(b, mxs_board_nid(b));
	return tell(i, nic, (boards + 1) * (uint32_t)sizeof(nic[0]));
}

static mx_return_t tell_labels(const struct info *i)
{
	if (i->out_len < MXS_COUNTERS * MX_MAX_STR_LEN)
		return MX_BAD_INFO_LENGTH;
	for (uint32_t c = 0; c < MXS_COUNTERS; c++)
		strncpy(i->out + c * MX_MAX_STR_LEN, mxs_counter_label[c], MX_MAX_STR_LEN);
	return MX_SUCCESS;
}

/* The counters of an endpoint, or the sums of all endpoints of this process on a board. */
static mx_return_t tell_counters(const struct info *i)
{
	uint32_t value[MXS_COUNTERS] = { 0 };
	uint32_t board;
	mx_return_t ret = board_of_call(i, &board);

	if (ret != MX_SUCCESS)
		return ret;
	for (uint32_t s = 0; s < MXS_SLOTS; s++) {
		struct mxs_endpoint *ep =
			atomic_load_explicit(&mxs.endpoint[s], memory_order_acquire);

		if (!ep || (i->ep && ep != i->ep))
			continue;
		if (!i->ep && !mxs_enter(mxs_endpoint_handle(ep)))
			continue;
		for (uint32_t c = 0; ep->board_number == board && ep->seen && c < MXS_COUNTERS; c++)
			value[c] += mx_seen_value(ep->seen, c);
		if (!i->ep)
			mxs_leave(ep);
	}
	return tell(i, value, sizeof(value));
}

static mx_return_t tell_of_board(const struct info *i)
{
	uint32_t board;
	mx_return_t ret = board_of_call(i, &board);

	if (ret != MX_SUCCESS)
		return ret;
	switch (i->key) {
	case MX_PRODUCT_CODE:
		return tell_text(i, "Postern MX");
	case MX_PART_NUMBER:
	case MX_SERIAL_NUMBER:
		return tell_text(i, "N/A");
	case MX_PORT_COUNT:
		return tell_number(i, 1);
	case MX_NUMA_NODE:
		return tell_number(i, UINT32_MAX);
	default:
		return tell_number(i, MX_SPEED_OPEN_MX);
	}
}

static mx_return_t tell_info(const struct info *i)
{
	switch (i->key) {
	case MX_NIC_COUNT:
		return tell_number(i, mxs_boards());
	case MX_NIC_IDS:
		return tell_nics(i);
	case MX_MAX_NATIVE_ENDPOINTS:
		return tell_number(i, MXS_ENDPOINTS);
	case MX_NATIVE_REQUESTS:
		return tell_number(i, UINT32_MAX);
	case MX_COUNTERS_COUNT:
		return tell_number(i, MXS_COUNTERS);
	case MX_COUNTERS_LABELS:
		return tell_labels(i);
	case MX_COUNTERS_VALUES:
		return tell_counters(i);
	case MX_PRODUCT_CODE:
	case MX_PART_NUMBER:
	case MX_SERIAL_NUMBER:
	case MX_PORT_COUNT:
	case MX_NUMA_NODE:
	case MX_LINE_SPEED:
		return tell_of_board(i);
	case MX_PIO_SEND_MAX:
		return tell_number(i, MXS_PIO_MOST);
	case MX_COPY_SEND_MAX:
		return tell_number(i, i->ep ? i->ep->eager_most : MXS_EAGER_MOST);
	case MX_NET_TYPE:
		return tell_number(i, MX_NET_ETHER);
	default:
		return MX_BAD_INFO_KEY;
	}
}

mx_return_t mx_get_info(mx_endpoint_t endpoint, mx_get_info_key_t key, void *in_val,
			uint32_t in_len, void *out_val, uint32_t out_len)
{
	struct info i = { key, NULL, in_val, in_len, out_val, out_len };
	mx_error_handler_t handler = NULL;
	mx_return_t ret;

	if (!atomic_load(&mxs.initialized))
		return mxs_fail(NULL, "mx_get_info", MX_NOT_INITIALIZED);
	if (endpoint) {
		i.ep = mxs_enter(endpoint);
		if (!i.ep)
			return mxs_fail(NULL, "mx_get_info", MX_BAD_ENDPOINT);
		handler = i.ep->handler;
	}
	ret = out_val ? tell_info(&i) : MX_BAD_INFO_VAL;
	if (i.ep)
		mxs_leave(i.ep);
	return ret == MX_SUCCESS ? ret : mxs_fail(handler, "mx_get_info", ret);
}

/* ---- internal names -------------------------------------------------------------------------- */

mx_return_t mx_open_board(int board_number, mx_endpt_handle_t *handle)
{
	if (!atomic_load(&mxs.initialized))
		return mxs_fail(NULL, "mx_open_board", MX_NOT_INITIALIZED);
	if (board_number < 0 || (uint32_t)board_number >= mxs_boards() || !handle)
		return mxs_fail(NULL, "mx_open_board", MX_BOARD_UNKNOWN);
	*handle = board_number;
	return MX_SUCCESS;
}

mx_return_t mx__get_mapper_state(mx_endpt_handle_t handle, mx_mapper_state_t *state)
{
	/* the same on all hosts: everything that can be reached is one network for each board */
	const uint8_t mac[6] = { 0x02, 0x50, 0x4d, 0x58, 0x00, (uint8_t)handle };

	if (handle < 0 || (uint32_t)handle >= mxs_boards())
		return mxs_fail(NULL, "mx__get_mapper_state", MX_BOARD_UNKNOWN);
	if (!state)
		return mxs_fail(NULL, "mx__get_mapper_state", MX_FAILURE);
	memcpy(state->mapper_mac, mac, sizeof(mac));
	state->map_version = 1;
	state->num_hosts = 1;
	state->network_configured = 1;
	state->routes_valid = 1;
	state->level = 0;
	state->flags = 0;
	return MX_SUCCESS;
}

int mx__regcache_clean(void *ptr, size_t length)
{
	(void)ptr;
	(void)length;
	return 0;
}

/* ---- what never worked ----------------------------------------------------------------------- */

mx_return_t mx_iput(mx_endpoint_t endpoint, void *local_addr, uint32_t length,
		    mx_endpoint_addr_t dest_endpoint, uint64_t remote_addr, void *context,
		    mx_request_t *request)
{
	(void)endpoint;
	(void)local_addr;
	(void)length;
	(void)dest_endpoint;
	(void)remote_addr;
	(void)context;
	(void)request;
	return mxs_fail(NULL, "mx_iput", MX_BAD_BAD_BAD);
}

mx_return_t mx_iget(mx_endpoint_t endpoint, void *local_addr, uint32_t length,
		    mx_endpoint_addr_t dest_endpoint, uint64_t remote_addr, void *context,
		    mx_request_t *request)
{
	(void)endpoint;
	(void)local_addr;
	(void)length;
	(void)dest_endpoint;
	(void)remote_addr;
	(void)context;
	(void)request;
	return mxs_fail(NULL, "mx_iget", MX_BAD_BAD_BAD);
}

mx_return_t mx_buffered(mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout,
			uint32_t *result)
{
	(void)endpoint;
	(void)request;
	(void)timeout;
	(void)result;
	return mxs_fail(NULL, "mx_buffered", MX_BAD_BAD_BAD);
}
