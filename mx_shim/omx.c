/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The functions of Open-MX, each a call of its counterpart of MX. Handles, addresses, segments and
 * statuses have the same layout in both; a status differs in its code alone.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "omx.h"
#include "mx_keep.h"

static_assert(sizeof(omx_endpoint_addr_t) == sizeof(mx_endpoint_addr_t), "addresses are alike");
static_assert(sizeof(omx_seg_t) == sizeof(mx_segment_t) &&
		      offsetof(omx_seg_t, len) == offsetof(mx_segment_t, segment_length),
	      "segments are alike");
static_assert(sizeof(omx_status_t) == sizeof(mx_status_t) &&
		      offsetof(omx_status_t, context) == offsetof(mx_status_t, context),
	      "statuses are alike");
static_assert(sizeof(omx_endpoint_param_t) == sizeof(mx_param_t) &&
		      offsetof(omx_endpoint_param_t, val) == offsetof(mx_param_t, val),
	      "parameters are alike");

static mx_request_t *request_to_mx(omx_request_t *request)
{
	return (mx_request_t *)(void *)request;
}

static mx_segment_t *segments_to_mx(omx_seg_t *segs)
{
	return (mx_segment_t *)(void *)segs;
}

/* A wait that must not wait is a test; the caller has asked. */
static uint32_t timeout_to_mx(uint32_t timeout)
{
	return timeout == OMX_TIMEOUT_INFINITE ? MX_INFINITE : timeout;
}

/* As omx_leave, for calls that show a status if *result is not 0. */
static omx_return_t leave_with_status(omx_endpoint_t before, mx_return_t ret, const mx_status_t *st,
				      omx_status_t *status, const uint32_t *result)
{
	if (ret == MX_SUCCESS && result && *result && status)
		*status = (omx_status_t){
			.code = omx_code_of_status(st->code),
			.addr = omx_addr_of_mx(st->source),
			.match_info = st->match_info,
			.msg_length = st->msg_length,
			.xfer_length = st->xfer_length,
			.context = st->context,
		};
	return omx_leave(before, ret);
}

/* ---- library and endpoints ------------------------------------------------------------------- */

omx_return_t omx__init_api(int api)
{
	omx_endpoint_t before = omx_enter(NULL);

	omx_error_bridge();
	return omx_leave(before, mx__init_api(api));
}

omx_return_t omx_finalize(void)
{
	omx_endpoint_t before = omx_enter(NULL);

	return omx_leave(before, mx_finalize());
}

/* The parameters for MX, whose error handler is always the bridge. Sets *handler to the one that
 * is among them, NULL if there is none. */
static mx_param_t *params_to_mx(const omx_endpoint_param_t *params, uint32_t count,
				omx_error_handler_t *handler)
{
	mx_param_t *list = calloc((size_t)count + 1, sizeof(*list));

	*handler = NULL;
	if (!list)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		memcpy(&list[i], &params[i], sizeof(*list));
		if (params[i].key == OMX_ENDPOINT_PARAM_ERROR_HANDLER) {
			*handler = params[i].val.error_handler;
			list[i].val.error_handler = omx_error_bridge();
		}
	}
	list[count].key = MX_PARAM_ERROR_HANDLER;
	list[count].val.error_handler = omx_error_bridge();
	return list;
}

omx_return_t omx_open_endpoint(uint32_t board_index, uint32_t endpoint_index, uint32_t key,
			       omx_endpoint_param_t *param_array, uint32_t param_count,
			       omx_endpoint_t *epp)
{
	struct omx_own_handler *own = NULL;
	omx_error_handler_t handler;
	mx_endpoint_t ep = NULL;
	omx_endpoint_t before;
	omx_return_t ret;
	mx_param_t *list;

	if (param_count && !param_array)
		return omx_fail(NULL, OMX_ENDPOINT_PARAMS_BAD_LIST, "omx_open_endpoint");
	list = params_to_mx(param_array, param_count, &handler);
	if (list)
		own = omx_endpoint_opened(handler);
	if (!own) {
		free(list);
		return omx_fail(NULL, OMX_NO_RESOURCES, "omx_open_endpoint");
	}
	before = omx_enter(NULL);
	ret = omx_leave(before, mx_open_endpoint(board_index, endpoint_index, key, list,
						 param_count + 1, epp ? &ep : NULL));
	free(list);
	if (!ep) {
		free(own);
		return ret;
	}
	omx_endpoint_named(own, (omx_endpoint_t)(void *)ep);
	*epp = (omx_endpoint_t)(void *)ep;
	return ret;
}

omx_return_t omx_close_endpoint(omx_endpoint_t ep)
{
	struct omx_own_handler *own = omx_endpoint_known(ep);
	omx_endpoint_t before = omx_enter(ep);
	mx_return_t ret = mx_close_endpoint(omx_endpoint_to_mx(ep));

	if (ret == MX_SUCCESS)
		omx_endpoint_closed(own);
	return omx_leave(before, ret);
}

omx_return_t omx_wakeup(omx_endpoint_t ep)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_wakeup(omx_endpoint_to_mx(ep)));
}

omx_return_t omx_get_endpoint_addr(omx_endpoint_t ep, omx_endpoint_addr_t *endpoint_addr)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_get_endpoint_addr(omx_endpoint_to_mx(ep),
						      (mx_endpoint_addr_t *)(void *)endpoint_addr));
}

omx_return_t omx_disable_progression(omx_endpoint_t ep)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_disable_progression(omx_endpoint_to_mx(ep)));
}

omx_return_t omx_reenable_progression(omx_endpoint_t ep)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_reenable_progression(omx_endpoint_to_mx(ep)));
}

omx_return_t omx_progress(omx_endpoint_t ep)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_progress(omx_endpoint_to_mx(ep)));
}

omx_return_t omx_register_unexp_handler(omx_endpoint_t ep, omx_unexp_handler_t handler,
					void *context)
{
	omx_endpoint_t before = omx_enter(ep);

	/* the types differ in the names of an address and of an enumeration only */
	return omx_leave(before, mx_register_unexp_handler(
					 omx_endpoint_to_mx(ep),
					 (mx_unexp_handler_t)(void (*)(void))handler, context));
}

/* ---- names of boards and peers --------------------------------------------------------------- */

omx_return_t omx_hostname_to_nic_id(char *hostname, uint64_t *nic_id)
{
	omx_endpoint_t before = omx_enter(NULL);

	return omx_leave(before, mx_hostname_to_nic_id(hostname, nic_id));
}

omx_return_t omx_nic_id_to_hostname(uint64_t nic_id, char *hostname)
{
	omx_endpoint_t before = omx_enter(NULL);

	return omx_leave(before, mx_nic_id_to_hostname(nic_id, hostname));
}

omx_return_t omx_board_number_to_nic_id(uint32_t board_number, uint64_t *nic_id)
{
	omx_endpoint_t before = omx_enter(NULL);

	return omx_leave(before, mx_board_number_to_nic_id(board_number, nic_id));
}

omx_return_t omx_nic_id_to_board_number(uint64_t nic_id, uint32_t *board_number)
{
	omx_endpoint_t before = omx_enter(NULL);

	return omx_leave(before, mx_nic_id_to_board_number(nic_id, board_number));
}

/* ---- connecting ------------------------------------------------------------------------------ */

omx_return_t omx_connect(omx_endpoint_t ep, uint64_t nic_id, uint32_t endpoint_id, uint32_t key,
			 uint32_t timeout, omx_endpoint_addr_t *addr)
{
	/* an answer at once is one within a millisecond */
	uint32_t ms = timeout_to_mx(timeout ? timeout : 1);
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_connect(omx_endpoint_to_mx(ep), nic_id, endpoint_id, key, ms,
					    (mx_endpoint_addr_t *)(void *)addr));
}

omx_return_t omx_iconnect(omx_endpoint_t ep, uint64_t nic_id, uint32_t endpoint_id, uint32_t key,
			  uint64_t match_info, void *context, omx_request_t *request)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_iconnect(omx_endpoint_to_mx(ep), nic_id, endpoint_id, key,
					     match_info, context, request_to_mx(request)));
}

omx_return_t omx_disconnect(omx_endpoint_t ep, omx_endpoint_addr_t addr)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_disconnect(omx_endpoint_to_mx(ep), omx_addr_to_mx(addr)));
}

omx_return_t omx_decompose_endpoint_addr(omx_endpoint_addr_t endpoint_addr, uint64_t *nic_id,
					 uint32_t *endpoint_id)
{
	omx_endpoint_t before = omx_enter(NULL);

	return omx_leave(before, mx_decompose_endpoint_addr(omx_addr_to_mx(endpoint_addr), nic_id,
							    endpoint_id));
}

omx_return_t omx_decompose_endpoint_addr_with_session(omx_endpoint_addr_t endpoint_addr,
						      uint64_t *nic_id, uint32_t *endpoint_id,
						      uint32_t *session_id)
{
	omx_endpoint_t before = omx_enter(NULL);

	return omx_leave(before, mx_decompose_endpoint_addr2(omx_addr_to_mx(endpoint_addr), nic_id,
							     endpoint_id, session_id));
}

omx_return_t omx_set_endpoint_addr_context(omx_endpoint_addr_t endpoint_addr, void *context)
{
	omx_endpoint_t before = omx_enter(NULL);

	return omx_leave(before,
			 mx_set_endpoint_addr_context(omx_addr_to_mx(endpoint_addr), context));
}

omx_return_t omx_get_endpoint_addr_context(omx_endpoint_addr_t endpoint_addr, void **context)
{
	omx_endpoint_t before = omx_enter(NULL);

	return omx_leave(before,
			 mx_get_endpoint_addr_context(omx_addr_to_mx(endpoint_addr), context));
}

/* ---- sending and receiving ------------------------------------------------------------------- */

omx_return_t omx_isendv(omx_endpoint_t ep, omx_seg_t *segs, uint32_t nseg,
			omx_endpoint_addr_t dest_endpoint, uint64_t match_info, void *context,
			omx_request_t *request)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_isend(omx_endpoint_to_mx(ep), segments_to_mx(segs), nseg,
					  omx_addr_to_mx(dest_endpoint), match_info, context,
					  request_to_mx(request)));
}

omx_return_t omx_issendv(omx_endpoint_t ep, omx_seg_t *segs, uint32_t nseg,
			 omx_endpoint_addr_t dest_endpoint, uint64_t match_info, void *context,
			 omx_request_t *request)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_issend(omx_endpoint_to_mx(ep), segments_to_mx(segs), nseg,
					   omx_addr_to_mx(dest_endpoint), match_info, context,
					   request_to_mx(request)));
}

omx_return_t omx_irecvv(omx_endpoint_t ep, omx_seg_t *segs, uint32_t nseg, uint64_t match_info,
			uint64_t match_mask, void *context, omx_request_t *request)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_irecv(omx_endpoint_to_mx(ep), segments_to_mx(segs), nseg,
					  match_info, match_mask, context, request_to_mx(request)));
}

omx_return_t omx_isend(omx_endpoint_t ep, void *buffer, size_t length,
		       omx_endpoint_addr_t dest_endpoint, uint64_t match_info, void *context,
		       omx_request_t *request)
{
	omx_seg_t seg = { buffer, (uint32_t)length };

	if (length > UINT32_MAX)
		return omx_fail(ep, OMX_SEGMENTS_BAD_COUNT, "omx_isend of 4 GiB or more");
	return omx_isendv(ep, &seg, 1, dest_endpoint, match_info, context, request);
}

omx_return_t omx_issend(omx_endpoint_t ep, void *buffer, size_t length,
			omx_endpoint_addr_t dest_endpoint, uint64_t match_info, void *context,
			omx_request_t *request)
{
	omx_seg_t seg = { buffer, (uint32_t)length };

	if (length > UINT32_MAX)
		return omx_fail(ep, OMX_SEGMENTS_BAD_COUNT, "omx_issend of 4 GiB or more");
	return omx_issendv(ep, &seg, 1, dest_endpoint, match_info, context, request);
}

omx_return_t omx_irecv(omx_endpoint_t ep, void *buffer, size_t length, uint64_t match_info,
		       uint64_t match_mask, void *context, omx_request_t *request)
{
	/* no message is longer than 4 GiB - 1, so a larger buffer needs no more of its bytes */
	omx_seg_t seg = { buffer, length > UINT32_MAX ? UINT32_MAX : (uint32_t)length };

	return omx_irecvv(ep, &seg, 1, match_info, match_mask, context, request);
}

/* ---- completion ------------------------------------------------------------------------------ */

omx_return_t omx_test(omx_endpoint_t ep, omx_request_t *request, omx_status_t *status,
		      uint32_t *result)
{
	omx_endpoint_t before = omx_enter(ep);
	mx_status_t st;
	mx_return_t ret = mx_test(omx_endpoint_to_mx(ep), request_to_mx(request),
				  status ? &st : NULL, result);

	return leave_with_status(before, ret, &st, status, result);
}

omx_return_t omx_wait(omx_endpoint_t ep, omx_request_t *request, omx_status_t *status,
		      uint32_t *result, uint32_t timeout)
{
	omx_endpoint_t before;
	mx_status_t st;
	mx_return_t ret;

	if (!timeout)
		return omx_test(ep, request, status, result);
	before = omx_enter(ep);
	ret = mx_wait(omx_endpoint_to_mx(ep), request_to_mx(request), timeout_to_mx(timeout),
		      status ? &st : NULL, result);
	return leave_with_status(before, ret, &st, status, result);
}

omx_return_t omx_test_any(omx_endpoint_t ep, uint64_t match_info, uint64_t match_mask,
			  omx_status_t *status, uint32_t *result)
{
	omx_endpoint_t before = omx_enter(ep);
	mx_status_t st;
	mx_return_t ret = mx_test_any(omx_endpoint_to_mx(ep), match_info, match_mask,
				      status ? &st : NULL, result);

	return leave_with_status(before, ret, &st, status, result);
}

omx_return_t omx_wait_any(omx_endpoint_t ep, uint64_t match_info, uint64_t match_mask,
			  omx_status_t *status, uint32_t *result, uint32_t timeout)
{
	omx_endpoint_t before;
	mx_status_t st;
	mx_return_t ret;

	if (!timeout)
		return omx_test_any(ep, match_info, match_mask, status, result);
	before = omx_enter(ep);
	ret = mx_wait_any(omx_endpoint_to_mx(ep), timeout_to_mx(timeout), match_info, match_mask,
			  status ? &st : NULL, result);
	return leave_with_status(before, ret, &st, status, result);
}

omx_return_t omx_ipeek(omx_endpoint_t ep, omx_request_t *request, uint32_t *result)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_ipeek(omx_endpoint_to_mx(ep), request_to_mx(request), result));
}

omx_return_t omx_peek(omx_endpoint_t ep, omx_request_t *request, uint32_t *result, uint32_t timeout)
{
	omx_endpoint_t before;

	if (!timeout)
		return omx_ipeek(ep, request, result);
	before = omx_enter(ep);
	return omx_leave(before, mx_peek(omx_endpoint_to_mx(ep), timeout_to_mx(timeout),
					 request_to_mx(request), result));
}

omx_return_t omx_iprobe(omx_endpoint_t ep, uint64_t match_info, uint64_t match_mask,
			omx_status_t *status, uint32_t *result)
{
	omx_endpoint_t before = omx_enter(ep);
	mx_status_t st;
	mx_return_t ret = mx_iprobe(omx_endpoint_to_mx(ep), match_info, match_mask,
				    status ? &st : NULL, result);

	return leave_with_status(before, ret, &st, status, result);
}

omx_return_t omx_probe(omx_endpoint_t ep, uint64_t match_info, uint64_t match_mask,
		       omx_status_t *status, uint32_t *result, uint32_t timeout)
{
	omx_endpoint_t before;
	mx_status_t st;
	mx_return_t ret;

	if (!timeout)
		return omx_iprobe(ep, match_info, match_mask, status, result);
	before = omx_enter(ep);
	ret = mx_probe(omx_endpoint_to_mx(ep), timeout_to_mx(timeout), match_info, match_mask,
		       status ? &st : NULL, result);
	return leave_with_status(before, ret, &st, status, result);
}

omx_return_t omx_ibuffered(omx_endpoint_t ep, omx_request_t *request, uint32_t *result)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before,
			 mx_ibuffered(omx_endpoint_to_mx(ep), request_to_mx(request), result));
}

omx_return_t omx_context(omx_request_t *request, void **context)
{
	omx_endpoint_t before = omx_enter(NULL);

	return omx_leave(before, mx_context(request_to_mx(request), context));
}

omx_return_t omx_cancel(omx_endpoint_t ep, omx_request_t *request, uint32_t *result)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_cancel(omx_endpoint_to_mx(ep), request_to_mx(request), result));
}

omx_return_t omx_cancel_notest(omx_endpoint_t ep, omx_request_t *request, uint32_t *result)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before,
			 mx__cancel_keep(omx_endpoint_to_mx(ep), request_to_mx(request), result));
}

omx_return_t omx_forget(omx_endpoint_t ep, omx_request_t *request)
{
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_forget(omx_endpoint_to_mx(ep), request_to_mx(request)));
}

omx_return_t omx_set_request_timeout(omx_endpoint_t ep, omx_request_t request,
				     uint32_t milliseconds)
{
	uint32_t ms = timeout_to_mx(milliseconds ? milliseconds : 1);
	omx_endpoint_t before = omx_enter(ep);

	return omx_leave(before, mx_set_request_timeout(omx_endpoint_to_mx(ep),
							(mx_request_t)(void *)request, ms));
}
