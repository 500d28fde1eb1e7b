/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Codes of Open-MX: their texts, and what stands for the codes of MX. Open-MX has one set of codes
 * for what functions return and for how requests end; MX has two.
 */
#include "omx.h"

/* Returns of MX whose numbers Open-MX does not have -> what stands for them. Others are equal. */
static const unsigned char omx_renamed[] = {
	[MX_FAILURE] = OMX_BAD_ERROR,
	[MX_BAD_SEG_LIST] = OMX_SEGMENTS_BAD_COUNT,
	[MX_BAD_SEG_MEM] = OMX_SEGMENTS_BAD_COUNT,
	[MX_BAD_ADDR_LIST] = OMX_BAD_ERROR,
	[MX_BAD_ADDR_COUNT] = OMX_BAD_ERROR,
	[MX_BAD_ROOT] = OMX_BAD_ERROR,
	[MX_NOT_COMPLETED] = OMX_BAD_ERROR,
	[MX_BAD_NIC] = OMX_NIC_ID_NOT_FOUND,
	[MX_BAD_HOSTNAME_ARGS] = OMX_PEER_NOT_FOUND,
	[MX_REQUEST_PENDING] = OMX_BAD_ERROR,
	[MX_NO_MATCH] = OMX_BAD_ERROR,
	[MX_NIC_DEAD] = OMX_BAD_ERROR,
	[MX_CANCEL_NOT_SUPPORTED] = OMX_BAD_REQUEST,
	[MX_CLOSE_IN_HANDLER] = OMX_NOT_SUPPORTED_IN_HANDLER,
	[MX_NOT_SUPPORTED_WITH_CONTEXT_ID] = OMX_NOT_IMPLEMENTED,
};

omx_return_t omx_code_of_return(mx_return_t ret)
{
	if ((unsigned int)ret >= sizeof(omx_renamed))
		return OMX_BAD_ERROR;
	return omx_renamed[ret] ? (omx_return_t)omx_renamed[ret] : (omx_return_t)ret;
}

mx_return_t omx_code_to_mx(omx_return_t ret)
{
	switch (ret) {
	case OMX_CANCELLED:
	case OMX_MESSAGE_ABORTED:
	case OMX_MESSAGE_TRUNCATED:
	case OMX_REMOTE_RDMA_WINDOW_BAD_ID:
		return MX_FAILURE;
	case OMX_REMOTE_ENDPOINT_UNREACHABLE:
	case OMX_REMOTE_ENDPOINT_BAD_SESSION:
		return MX_CONNECTION_FAILED;
	case OMX_NOT_SUPPORTED_IN_HANDLER:
		return MX_CLOSE_IN_HANDLER;
	case OMX_NO_SYSTEM_RESOURCES:
		return MX_NO_RESOURCES;
	default:
		return (unsigned int)ret < sizeof(omx_renamed) ? (mx_return_t)ret : MX_BAD_BAD_BAD;
	}
}

omx_return_t omx_code_of_status(mx_status_code_t code)
{
	switch (code) {
	case MX_STATUS_SUCCESS:
		return OMX_SUCCESS;
	case MX_STATUS_TIMEOUT:
		return OMX_TIMEOUT;
	case MX_STATUS_TRUNCATED:
		return OMX_MESSAGE_TRUNCATED;
	case MX_STATUS_CANCELLED:
		return OMX_CANCELLED;
	case MX_STATUS_ENDPOINT_UNKNOWN:
		return OMX_PEER_NOT_FOUND;
	case MX_STATUS_ENDPOINT_CLOSED:
		return OMX_REMOTE_ENDPOINT_CLOSED;
	case MX_STATUS_ENDPOINT_UNREACHABLE:
		return OMX_REMOTE_ENDPOINT_UNREACHABLE;
	case MX_STATUS_BAD_SESSION:
		return OMX_REMOTE_ENDPOINT_BAD_SESSION;
	case MX_STATUS_BAD_KEY:
		return OMX_REMOTE_ENDPOINT_BAD_CONNECTION_KEY;
	case MX_STATUS_BAD_ENDPOINT:
		return OMX_REMOTE_ENDPOINT_BAD_ID;
	case MX_STATUS_BAD_RDMAWIN:
		return OMX_REMOTE_RDMA_WINDOW_BAD_ID;
	case MX_STATUS_ABORTED:
		return OMX_MESSAGE_ABORTED;
	case MX_STATUS_NO_RESOURCES:
		return OMX_NO_RESOURCES;
	default:
		return OMX_BAD_ERROR;
	}
}

static const char *const omx_texts[OMX_RETURN_CODE_MAX] = {
	[OMX_SUCCESS] = "Success",
	[OMX_BAD_ERROR] = "Unexpected error",
	[OMX_ALREADY_INITIALIZED] = "The library has been initialized before",
	[OMX_NOT_INITIALIZED] = "The library has not been initialized",
	[OMX_NO_DEVICE_FILE] = "There is no board",
	[OMX_NO_DRIVER] = "There is no transport to run on",
	[OMX_ACCESS_DENIED] = "Permission denied",
	[OMX_BOARD_NOT_FOUND] = "There is no such board",
	[OMX_BAD_ENDPOINT] = "Not an open endpoint",
	[OMX_SEGMENTS_BAD_COUNT] = "Bad list of segments",
	[OMX_BAD_REQUEST] = "Not a request that this can be done with",
	[OMX_BAD_MATCH_MASK] = "Match value has bits that the mask leaves out",
	[OMX_NO_RESOURCES] = "Out of resources",
	[OMX_BUSY] = "The endpoint is in use",
	[OMX_BAD_INFO_KEY] = "No such information",
	[OMX_BAD_INFO_ADDRESS] = "Bad value for an information",
	[OMX_ENDPOINT_PARAMS_BAD_LIST] = "Endpoint parameters without a list",
	[OMX_ENDPOINT_PARAM_BAD_KEY] = "No such endpoint parameter",
	[OMX_ENDPOINT_PARAM_BAD_VALUE] = "Bad value of an endpoint parameter",
	[OMX_PEER_NOT_FOUND] = "There is no peer of that name",
	[OMX_TIMEOUT] = "Time is over",
	[OMX_REMOTE_ENDPOINT_BAD_ID] = "Remote endpoint id is out of range",
	[OMX_REMOTE_ENDPOINT_CLOSED] = "Remote endpoint is closed",
	[OMX_REMOTE_ENDPOINT_BAD_CONNECTION_KEY] = "Remote endpoint has another key",
	[OMX_BAD_INFO_LENGTH] = "Not enough room for an information",
	[OMX_NIC_ID_NOT_FOUND] = "There is no board with that id",
	[OMX_BAD_KERNEL_ABI] = "Interface of another kernel driver",
	[OMX_BAD_LIB_ABI] = "Interface of another library version",
	[OMX_BAD_MATCHING_FOR_CONTEXT_ID_MASK] = "Mask leaves context id bits out",
	[OMX_CANCELLED] = "Cancelled",
	[OMX_REMOTE_RDMA_WINDOW_BAD_ID] = "Remote memory is gone",
	[OMX_REMOTE_ENDPOINT_UNREACHABLE] = "Remote endpoint cannot be reached",
	[OMX_REMOTE_ENDPOINT_BAD_SESSION] = "Remote endpoint has been opened anew",
	[OMX_MESSAGE_ABORTED] = "Message aborted",
	[OMX_MESSAGE_TRUNCATED] = "Message truncated",
	[OMX_NOT_SUPPORTED_IN_HANDLER] = "Not allowed in a handler",
	[OMX_NO_SYSTEM_RESOURCES] = "The system is out of resources",
	[OMX_NOT_IMPLEMENTED] = "Not implemented",
};

const char *omx_strerror(omx_return_t ret)
{
	if ((unsigned int)ret >= OMX_RETURN_CODE_MAX || !omx_texts[ret])
		return "Unknown code";
	return omx_texts[ret];
}
