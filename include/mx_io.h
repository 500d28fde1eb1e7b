/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The part of MX's driver interface that programs use: the handle of a board and the state of the
 * mapper.
 */
#ifndef MX_IO_H
#define MX_IO_H

#include "myriexpress.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int mx_endpt_handle_t;

#define MX__INVALID_HANDLE (-1)

typedef struct {
	uint32_t board_number;
	uint8_t mapper_mac[6]; /* names the network: the same on all hosts that reach each other */
	uint16_t iport;
	uint32_t map_version;
	uint32_t num_hosts;
	uint32_t network_configured;
	uint32_t routes_valid;
	uint32_t level;
	uint32_t flags;
} mx_mapper_state_t;

#ifdef __cplusplus
}
#endif

#endif
