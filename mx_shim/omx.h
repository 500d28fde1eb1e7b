/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Declarations that the files of libopen-mx share. The library has the functions of open-mx.h on
 * top of the public ones of libmyriexpress: handles and addresses are the same bits, codes are
 * translated.
 */
#ifndef MX_SHIM_OMX_H
#define MX_SHIM_OMX_H

#include <mx_extensions.h>
#include <open-mx.h>

/* ---- codes: omx_codes.c ---------------------------------------------------------------------- */

omx_return_t omx_code_of_return(mx_return_t ret);
omx_return_t omx_code_of_status(mx_status_code_t code);
/* The nearest code of MX. */
mx_return_t omx_code_to_mx(omx_return_t ret);

/* ---- errors: omx_error.c --------------------------------------------------------------------- */

/*
 * MX's error handlers are not told the endpoint, but Open-MX has one for each. So every call that
 * is passed on notes its endpoint for its thread: `before = omx_enter(ep)`, the call of MX, then
 * `return omx_leave(before, ret)`, which also translates what MX returned.
 */
omx_endpoint_t omx_enter(omx_endpoint_t ep);
omx_return_t omx_leave(omx_endpoint_t before, mx_return_t ret);

/* An error that this library finds itself: calls the handler, returns what that returns. */
omx_return_t omx_fail(omx_endpoint_t ep, omx_return_t ret, const char *text);

/* The handler that MX gets for endpoints. From its first call on it is MX's global one, too. */
mx_error_handler_t omx_error_bridge(void);

/* Handlers of endpoints. `omx_endpoint_opened` returns NULL if memory is exhausted. */
struct omx_own_handler;
struct omx_own_handler *omx_endpoint_opened(omx_error_handler_t handler);
void omx_endpoint_named(struct omx_own_handler *own, omx_endpoint_t ep);
struct omx_own_handler *omx_endpoint_known(omx_endpoint_t ep);
void omx_endpoint_closed(struct omx_own_handler *own);

/* ---- handles --------------------------------------------------------------------------------- */

static inline mx_endpoint_t omx_endpoint_to_mx(omx_endpoint_t ep)
{
	return (mx_endpoint_t)(void *)ep;
}

static inline mx_endpoint_addr_t omx_addr_to_mx(omx_endpoint_addr_t addr)
{
	return (mx_endpoint_addr_t){ { addr.data[0], addr.data[1] } };
}

static inline omx_endpoint_addr_t omx_addr_of_mx(mx_endpoint_addr_t addr)
{
	return (omx_endpoint_addr_t){ { addr.stuff[0], addr.stuff[1] } };
}

#endif
