/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The message-passing interface of Myrinet Express (MX), as Postern's libmyriexpress offers it.
 * Numbers and layouts are those of MX 1.0 to 1.2, so programs that were built for MX run.
 * mx_extensions.h has the functions that came later. Every function has a man page in section 3.
 */
#ifndef MYRIEXPRESS_H
#define MYRIEXPRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- constants ------------------------------------------------------------------------------- */

#define MX_API 0x301

#define MX_MAX_STR_LEN          128 /* of the texts of mx_get_info, with the 0 at their end */
#define MX_SIZEOF_ADDR          16  /* of mx_endpoint_addr_t */
#define MX_ANY_NIC              0xffffffffU
#define MX_ANY_ENDPOINT         0xffffffffU
#define MX_INFINITE             0   /* as a timeout: wait for ever */
#define MX_MAX_SEGMENTS         256
#define MX_MATCH_MASK_NONE      UINT64_C(0xffffffffffffffff) /* no bit is masked out */
#define MX_MAX_HOSTNAME_LEN     80
#define MX_CONTEXT_ID_BITS_MAX  16

/* The halves of a 64-bit value. The upper half of something shorter is 0. */
#define MX_U32(x) ((uint32_t)(sizeof(x) > 4 ? (uint64_t)(x) >> 32 : 0))
#define MX_L32(x) ((uint32_t)((x) & 0xffffffffU))

/* ---- codes ----------------------------------------------------------------------------------- */

/* Results of functions. */
typedef enum mx_return_code {
	MX_SUCCESS = 0,
	MX_BAD_BAD_BAD,
	MX_FAILURE,
	MX_ALREADY_INITIALIZED,
	MX_NOT_INITIALIZED,
	MX_NO_DEV,
	MX_NO_DRIVER,
	MX_NO_PERM,
	MX_BOARD_UNKNOWN,
	MX_BAD_ENDPOINT,
	MX_BAD_SEG_LIST, /* 10 */
	MX_BAD_SEG_MEM,
	MX_BAD_SEG_CNT,
	MX_BAD_REQUEST,
	MX_BAD_MATCH_MASK,
	MX_NO_RESOURCES,
	MX_BAD_ADDR_LIST,
	MX_BAD_ADDR_COUNT,
	MX_BAD_ROOT,
	MX_NOT_COMPLETED,
	MX_BUSY, /* 20 */
	MX_BAD_INFO_KEY,
	MX_BAD_INFO_VAL,
	MX_BAD_NIC,
	MX_BAD_PARAM_LIST,
	MX_BAD_PARAM_NAME,
	MX_BAD_PARAM_VAL,
	MX_BAD_HOSTNAME_ARGS,
	MX_HOST_NOT_FOUND,
	MX_REQUEST_PENDING,
	MX_TIMEOUT, /* 30 */
	MX_NO_MATCH,
	MX_BAD_ENDPOINT_ID,
	MX_CONNECTION_FAILED,
	MX_BAD_CONNECTION_KEY,
	MX_BAD_INFO_LENGTH,
	MX_NIC_NOT_FOUND,
	MX_BAD_KERNEL_VERSION,
	MX_BAD_LIB_VERSION,
	MX_NIC_DEAD,
	MX_CANCEL_NOT_SUPPORTED, /* 40 */
	MX_CLOSE_IN_HANDLER,
	MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK,
	MX_NOT_SUPPORTED_WITH_CONTEXT_ID
} mx_return_t;

/* How a request ended. */
typedef enum mx_status_code {
	MX_STATUS_SUCCESS = 0,
	MX_STATUS_PENDING,
	MX_STATUS_BUFFERED,
	MX_STATUS_REJECTED,
	MX_STATUS_TIMEOUT,
	MX_STATUS_TRUNCATED,
	MX_STATUS_CANCELLED,
	MX_STATUS_ENDPOINT_UNKNOWN,
	MX_STATUS_ENDPOINT_CLOSED,
	MX_STATUS_ENDPOINT_UNREACHABLE,
	MX_STATUS_BAD_SESSION, /* 10 */
	MX_STATUS_BAD_KEY,
	MX_STATUS_BAD_ENDPOINT,
	MX_STATUS_BAD_RDMAWIN,
	MX_STATUS_ABORTED,
	MX_STATUS_EVENTQ_FULL, /* never shown */
	MX_STATUS_NO_RESOURCES
} mx_status_code_t;

/* ---- types ----------------------------------------------------------------------------------- */

typedef struct mx_endpoint *mx_endpoint_t;
typedef union mx_request *mx_request_t;

/* Has a meaning only in the process that got it. */
typedef struct {
	uint64_t stuff[2];
} mx_endpoint_addr_t;

typedef struct {
	void *segment_ptr;
	uint32_t segment_length;
} mx_segment_t;

struct mx_status {
	mx_status_code_t code;
	mx_endpoint_addr_t source; /* of a send: its destination */
	uint64_t match_info;
	uint32_t msg_length;       /* the sender's length */
	uint32_t xfer_length;      /* bytes moved */
	void *context;
};
typedef struct mx_status mx_status_t;

typedef mx_return_t (*mx_error_handler_t)(char *str, mx_return_t ret);
typedef void (*mx_matching_callback_t)(void *context, uint64_t match_value, int length);

typedef enum mx_param_key {
	MX_PARAM_ERROR_HANDLER = 0,
	MX_PARAM_UNEXP_QUEUE_MAX = 1,
	MX_PARAM_CONTEXT_ID = 2
} mx_param_key_t;

typedef struct {
	mx_param_key_t key;
	union {
		mx_error_handler_t error_handler;
		uint32_t unexp_queue_max;
		struct {
			uint8_t bits;
			uint8_t shift;
		} context_id;
	} val;
} mx_param_t;

typedef enum mx_line_speed {
	MX_SPEED_2G = 0,
	MX_SPEED_10G = 1,
	MX_SPEED_OPEN_MX = 2
} mx_line_speed_t;

#define MX_HAS_NET_TYPE

enum mx_net_type {
	MX_NET_MYRI = 0,
	MX_NET_ETHER = 1
};

typedef enum mx_get_info_key {
	MX_NIC_COUNT = 1,
	MX_NIC_IDS = 2,
	MX_MAX_NATIVE_ENDPOINTS = 3,
	MX_NATIVE_REQUESTS = 4,
	MX_COUNTERS_COUNT = 5,
	MX_COUNTERS_LABELS = 6,
	MX_COUNTERS_VALUES = 7,
	MX_PRODUCT_CODE = 8,
	MX_PART_NUMBER = 9,
	MX_SERIAL_NUMBER = 10,
	MX_PORT_COUNT = 11,
	MX_PIO_SEND_MAX = 12,
	MX_COPY_SEND_MAX = 13,
	MX_NUMA_NODE = 14,
	MX_NET_TYPE = 15,
	MX_LINE_SPEED = 16
} mx_get_info_key_t;

/* ---- library and errors ---------------------------------------------------------------------- */

#define mx_init() mx__init_api(MX_API)
mx_return_t mx__init_api(int api);
mx_return_t mx_finalize(void);
mx_error_handler_t mx_set_error_handler(mx_error_handler_t handler);
extern const mx_error_handler_t MX_ERRORS_ARE_FATAL;
extern const mx_error_handler_t MX_ERRORS_RETURN;
const char *mx_strerror(mx_return_t code);
const char *mx_strstatus(mx_status_code_t code);
mx_return_t mx_get_info(mx_endpoint_t endpoint, mx_get_info_key_t key, void *in_val,
			uint32_t in_len, void *out_val, uint32_t out_len);

/* ---- endpoints ------------------------------------------------------------------------------- */

mx_return_t mx_open_endpoint(uint32_t board_number, uint32_t endpoint_id, uint32_t endpoint_key,
			     mx_param_t *params_array, uint32_t params_count,
			     mx_endpoint_t *endpoint);
mx_return_t mx_close_endpoint(mx_endpoint_t endpoint);
mx_return_t mx_wakeup(mx_endpoint_t endpoint);
mx_return_t mx_get_endpoint_addr(mx_endpoint_t endpoint, mx_endpoint_addr_t *endpoint_addr);
mx_return_t mx_disable_progression(mx_endpoint_t endpoint);
mx_return_t mx_reenable_progression(mx_endpoint_t endpoint);

/* ---- names of boards and peers --------------------------------------------------------------- */

mx_return_t mx_hostname_to_nic_id(char *hostname, uint64_t *nic_id);
mx_return_t mx_nic_id_to_hostname(uint64_t nic_id, char *hostname);
mx_return_t mx_board_number_to_nic_id(uint32_t board_number, uint64_t *nic_id);
mx_return_t mx_nic_id_to_board_number(uint64_t nic_id, uint32_t *board_number);

/* ---- connecting ------------------------------------------------------------------------------ */

mx_return_t mx_connect(mx_endpoint_t endpoint, uint64_t nic_id, uint32_t endpoint_id, uint32_t key,
		       uint32_t timeout, mx_endpoint_addr_t *addr);
mx_return_t mx_decompose_endpoint_addr(mx_endpoint_addr_t endpoint_addr, uint64_t *nic_id,
				       uint32_t *endpoint_id);

/* ---- sending and receiving ------------------------------------------------------------------- */

mx_return_t mx_isend(mx_endpoint_t endpoint, mx_segment_t *segments_list, uint32_t segments_count,
		     mx_endpoint_addr_t dest_endpoint, uint64_t match_info, void *context,
		     mx_request_t *request);
mx_return_t mx_issend(mx_endpoint_t endpoint, mx_segment_t *segments_list, uint32_t segments_count,
		      mx_endpoint_addr_t dest_endpoint, uint64_t match_info, void *context,
		      mx_request_t *request);
mx_return_t mx_irecv(mx_endpoint_t endpoint, mx_segment_t *segments_list, uint32_t segments_count,
		     uint64_t match_info, uint64_t match_mask, void *context,
		     mx_request_t *request);

/* ---- completion ------------------------------------------------------------------------------ */

mx_return_t mx_test(mx_endpoint_t endpoint, mx_request_t *request, mx_status_t *status,
		    uint32_t *result);
mx_return_t mx_wait(mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout,
		    mx_status_t *status, uint32_t *result);
mx_return_t mx_test_any(mx_endpoint_t endpoint, uint64_t match_info, uint64_t match_mask,
			mx_status_t *status, uint32_t *result);
mx_return_t mx_wait_any(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info,
			uint64_t match_mask, mx_status_t *status, uint32_t *result);
mx_return_t mx_ipeek(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result);
mx_return_t mx_peek(mx_endpoint_t endpoint, uint32_t timeout, mx_request_t *request,
		    uint32_t *result);
mx_return_t mx_iprobe(mx_endpoint_t endpoint, uint64_t match_info, uint64_t match_mask,
		      mx_status_t *status, uint32_t *result);
mx_return_t mx_probe(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info,
		     uint64_t match_mask, mx_status_t *status, uint32_t *result);
mx_return_t mx_ibuffered(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result);
mx_return_t mx_context(mx_request_t *request, void **context);
mx_return_t mx_cancel(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result);

/* ---- old ------------------------------------------------------------------------------------- */

mx_return_t mx_register_unexp_callback(mx_endpoint_t endpoint, mx_matching_callback_t callback,
				       void *context);
/* These three never worked in any MX: they return MX_BAD_BAD_BAD. */
mx_return_t mx_iput(mx_endpoint_t endpoint, void *local_addr, uint32_t length,
		    mx_endpoint_addr_t dest_endpoint, uint64_t remote_addr, void *context,
		    mx_request_t *request);
mx_return_t mx_iget(mx_endpoint_t endpoint, void *local_addr, uint32_t length,
		    mx_endpoint_addr_t dest_endpoint, uint64_t remote_addr, void *context,
		    mx_request_t *request);
mx_return_t mx_buffered(mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout,
			uint32_t *result);

#ifdef __cplusplus
}
#endif

#endif
