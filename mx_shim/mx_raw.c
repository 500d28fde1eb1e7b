/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The raw endpoints of MX, for its fabric mapper. There is no fabric to map: every function says
 * that there is no device. Programs that can do without then go on.
 */
#include <mx_raw.h>
#include <stddef.h>

#include "mx_shim/mx_error.h"

mx_endpt_handle_t mx_raw_handle(mx_raw_endpoint_t endpoint)
{
	(void)endpoint;
	return MX__INVALID_HANDLE;
}

mx_return_t mx_raw_open_endpoint(uint32_t board_number, mx_param_t *params_array,
				 uint32_t params_count, mx_raw_endpoint_t *endpoint)
{
	(void)board_number;
	(void)params_array;
	(void)params_count;
	(void)endpoint;
	return mxs_fail(NULL, "mx_raw_open_endpoint", MX_NO_DEV);
}

mx_return_t mx_raw_close_endpoint(mx_raw_endpoint_t endpoint)
{
	(void)endpoint;
	return mxs_fail(NULL, "mx_raw_close_endpoint", MX_NO_DEV);
}

mx_return_t mx_raw_send(mx_raw_endpoint_t endpoint, uint32_t physical_port, void *route_pointer,
			uint32_t route_length, void *send_buffer, uint32_t buffer_length,
			void *context)
{
	(void)endpoint;
	(void)physical_port;
	(void)route_pointer;
	(void)route_length;
	(void)send_buffer;
	(void)buffer_length;
	(void)context;
	return mxs_fail(NULL, "mx_raw_send", MX_NO_DEV);
}

mx_return_t mx_raw_next_event(mx_raw_endpoint_t endpoint, uint32_t *incoming_port, void **context,
			      void *recv_buffer, uint32_t *recv_bytes, uint32_t timeout_ms,
			      mx_raw_status_t *status)
{
	(void)endpoint;
	(void)incoming_port;
	(void)context;
	(void)recv_buffer;
	(void)recv_bytes;
	(void)timeout_ms;
	(void)status;
	return mxs_fail(NULL, "mx_raw_next_event", MX_NO_DEV);
}

mx_return_t mx_raw_set_route_begin(mx_raw_endpoint_t endpoint)
{
	(void)endpoint;
	return mxs_fail(NULL, "mx_raw_set_route_begin", MX_NO_DEV);
}

mx_return_t mx_raw_set_route_end(mx_raw_endpoint_t endpoint)
{
	(void)endpoint;
	return mxs_fail(NULL, "mx_raw_set_route_end", MX_NO_DEV);
}

mx_return_t mx_raw_set_route_mag(mx_raw_endpoint_t endpoint, uint64_t destination_id, void *route,
				 uint32_t route_length, uint32_t input_port, uint32_t output_port,
				 mx_host_type_t host_type, uint32_t mag_id)
{
	(void)endpoint;
	(void)destination_id;
	(void)route;
	(void)route_length;
	(void)input_port;
	(void)output_port;
	(void)host_type;
	(void)mag_id;
	return mxs_fail(NULL, "mx_raw_set_route_mag", MX_NO_DEV);
}

mx_return_t mx_raw_set_route(mx_raw_endpoint_t endpoint, uint64_t destination_id, void *route,
			     uint32_t route_length, uint32_t input_port, uint32_t output_port,
			     mx_host_type_t host_type)
{
	(void)endpoint;
	(void)destination_id;
	(void)route;
	(void)route_length;
	(void)input_port;
	(void)output_port;
	(void)host_type;
	return mxs_fail(NULL, "mx_raw_set_route", MX_NO_DEV);
}

mx_return_t mx_raw_clear_routes(mx_raw_endpoint_t endpoint, uint64_t destination_id, uint32_t port)
{
	(void)endpoint;
	(void)destination_id;
	(void)port;
	return mxs_fail(NULL, "mx_raw_clear_routes", MX_NO_DEV);
}

mx_return_t mx_raw_remove_peer(mx_raw_endpoint_t endpoint, uint64_t destination_id)
{
	(void)endpoint;
	(void)destination_id;
	return mxs_fail(NULL, "mx_raw_remove_peer", MX_NO_DEV);
}

mx_return_t mx_raw_set_map_version(mx_raw_endpoint_t endpoint, uint32_t physical_port,
				   uint64_t mapper_id, uint32_t map_version, uint32_t num_nodes,
				   uint32_t mapping_complete)
{
	(void)endpoint;
	(void)physical_port;
	(void)mapper_id;
	(void)map_version;
	(void)num_nodes;
	(void)mapping_complete;
	return mxs_fail(NULL, "mx_raw_set_map_version", MX_NO_DEV);
}

mx_return_t mx_raw_num_ports(mx_raw_endpoint_t endpoint, uint32_t *num_ports)
{
	(void)endpoint;
	(void)num_ports;
	return mxs_fail(NULL, "mx_raw_num_ports", MX_NO_DEV);
}

mx_return_t mx_raw_line_speed(mx_raw_endpoint_t endpoint, mx_line_speed_t *speed)
{
	(void)endpoint;
	(void)speed;
	return mxs_fail(NULL, "mx_raw_line_speed", MX_NO_DEV);
}

mx_return_t mx_raw_set_hostname(mx_raw_endpoint_t endpoint, char *hostname)
{
	(void)endpoint;
	(void)hostname;
	return mxs_fail(NULL, "mx_raw_set_hostname", MX_NO_DEV);
}

mx_return_t mx_raw_set_peer_name(mx_raw_endpoint_t endpoint, uint64_t nic_id, char *hostname)
{
	(void)endpoint;
	(void)nic_id;
	(void)hostname;
	return mxs_fail(NULL, "mx_raw_set_peer_name", MX_NO_DEV);
}

mx_return_t mx_raw_set_nic_reply_info(mx_raw_endpoint_t endpoint, void *blob, uint32_t size)
{
	(void)endpoint;
	(void)blob;
	(void)size;
	return mxs_fail(NULL, "mx_raw_set_nic_reply_info", MX_NO_DEV);
}
