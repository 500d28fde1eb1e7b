/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Error handlers: every call that fails goes through one, and what that returns is what the call
 * returns.
 */
#ifndef MX_SHIM_ERROR_H
#define MX_SHIM_ERROR_H

#include <myriexpress.h>

/*
 * A call of this name failed with `code`. Calls `handler`, or the process's own if NULL, and
 * returns what it returns. The caller holds no lock.
 */
mx_return_t mxs_fail(mx_error_handler_t handler, const char *call, mx_return_t code);
/* The same for a call whose endpoint, or address, is none. */
mx_return_t mxs_no_endpoint(const char *call);

#endif
