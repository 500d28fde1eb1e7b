/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Internal name of MX that programs link to: the state of the mapper.
 */
#ifndef MX__DRIVER_INTERFACE_H
#define MX__DRIVER_INTERFACE_H

#include "mx__fops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The caller sets board_number and iport of *state. */
mx_return_t mx__get_mapper_state(mx_endpt_handle_t handle, mx_mapper_state_t *state);

#ifdef __cplusplus
}
#endif

#endif
