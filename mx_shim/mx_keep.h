/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The one function that libopen-mx needs of libmyriexpress beyond its public ones.
 */
#ifndef MX_SHIM_MX_KEEP_H
#define MX_SHIM_MX_KEEP_H

#include <mx_extensions.h>

/* As mx_cancel, but a request that was cancelled stays and completes with MX_STATUS_CANCELLED. */
mx_return_t mx__cancel_keep(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result);

#endif
