/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Error handlers of Open-MX. MX calls one function of ours, the bridge, for every error. It finds
 * the handler of the endpoint that this thread has in use, calls it with the code translated, and
 * marks what it returned, so that omx_leave() need not translate it back.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "omx.h"

/* Added to what a handler of Open-MX returned; no code of MX is that large. */
enum { OMX_HANDLED = 0x1000 };

/* An open endpoint and its own handler, NULL if it has none. */
struct omx_own_handler {
	struct omx_own_handler *next;
	omx_endpoint_t ep;
	omx_error_handler_t handler;
};

/* Guards what stands below it. It is a leaf: nothing is called while it is held. */
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
static struct omx_own_handler *own_handlers;
static omx_error_handler_t global_handler;

/* Set once, before MX can call the bridge. */
static mx_error_handler_t mx_default_handler;
static pthread_once_t bridge_once = PTHREAD_ONCE_INIT;

/* The endpoint of the call that this thread is in. */
static _Thread_local omx_endpoint_t entered_endpoint __attribute__((tls_model("initial-exec")));

static struct omx_own_handler *find_own_handler(omx_endpoint_t ep)
{
	struct omx_own_handler *own = own_handlers;

	while (own && own->ep != ep)
		own = own->next;
	return own;
}

/* The handler for an error of `ep`; NULL: nobody has set one. */
static omx_error_handler_t handler_of_endpoint(omx_endpoint_t ep)
{
	omx_error_handler_t handler = NULL;
	struct omx_own_handler *own;

	pthread_mutex_lock(&own_lock);
	own = ep ? find_own_handler(ep) : NULL;
	if (own)
		handler = own->handler;
	if (!handler)
		handler = global_handler;
	pthread_mutex_unlock(&own_lock);
	return handler;
}

static mx_return_t bridge_error_to_omx(char *str, mx_return_t ret)
{
	omx_endpoint_t before = entered_endpoint;
	omx_error_handler_t handler = handler_of_endpoint(before);
	omx_return_t code;

	if (!handler)
		return mx_default_handler(str, ret);
	code = handler(str, omx_code_of_return(ret));
	entered_endpoint = before;
	return (mx_return_t)((unsigned int)OMX_HANDLED + (unsigned int)code);
}

static void set_error_bridge(void)
{
	/* the two lines are one for MX: it calls the bridge only after a call of ours failed */
	mx_default_handler = MX_ERRORS_ARE_FATAL;
	mx_default_handler = mx_set_error_handler(bridge_error_to_omx);
}

mx_error_handler_t omx_error_bridge(void)
{
	pthread_once(&bridge_once, set_error_bridge);
	return bridge_error_to_omx;
}

omx_endpoint_t omx_enter(omx_endpoint_t ep)
{
	omx_endpoint_t before = entered_endpoint;

	entered_endpoint = ep;
	return before;
}

omx_return_t omx_leave(omx_endpoint_t before, mx_return_t ret)
{
	entered_endpoint = before;
	if (ret == MX_SUCCESS)
		return OMX_SUCCESS;
	if ((unsigned int)ret >= OMX_HANDLED)
		return (omx_return_t)((unsigned int)ret - (unsigned int)OMX_HANDLED);
	return omx_code_of_return(ret);
}

omx_return_t omx_fail(omx_endpoint_t ep, omx_return_t ret, const char *text)
{
	omx_error_handler_t handler;
	char str[128];
	size_t i;

	omx_error_bridge();
	handler = handler_of_endpoint(ep);
	/* handlers get a text that they may change */
	for (i = 0; i < sizeof(str) - 1 && text[i]; i++)
		str[i] = text[i];
	str[i] = 0;
	if (handler)
		return handler(str, ret);
	return omx_leave(entered_endpoint, mx_default_handler(str, omx_code_to_mx(ret)));
}

/* ---- handlers of endpoints ------------------------------------------------------------------- */

struct omx_own_handler *omx_endpoint_opened(omx_error_handler_t handler)
{
	struct omx_own_handler *own = malloc(sizeof(*own));

	if (own)
		*own = (struct omx_own_handler){ .handler = handler };
	return own;
}

void omx_endpoint_named(struct omx_own_handler *own, omx_endpoint_t ep)
{
	pthread_mutex_lock(&own_lock);
	own->ep = ep;
	own->next = own_handlers;
	own_handlers = own;
	pthread_mutex_unlock(&own_lock);
}

struct omx_own_handler *omx_endpoint_known(omx_endpoint_t ep)
{
	struct omx_own_handler *own;

	pthread_mutex_lock(&own_lock);
	own = find_own_handler(ep);
	pthread_mutex_unlock(&own_lock);
	return own;
}

void omx_endpoint_closed(struct omx_own_handler *own)
{
	struct omx_own_handler **at = &own_handlers;

	pthread_mutex_lock(&own_lock);
	while (*at && *at != own)
		at = &(*at)->next;
	if (*at)
		*at = own->next;
	else
		own = NULL; /* another thread closed it, too */
	pthread_mutex_unlock(&own_lock);
	free(own);
}

omx_error_handler_t omx_set_error_handler(omx_endpoint_t ep, omx_error_handler_t handler)
{
	struct omx_own_handler *own;
	omx_error_handler_t before;

	omx_error_bridge();
	pthread_mutex_lock(&own_lock);
	own = ep ? find_own_handler(ep) : NULL;
	if (own) {
		before = own->handler;
		own->handler = handler;
	} else {
		before = global_handler;
		if (!ep)
			global_handler = handler;
	}
	pthread_mutex_unlock(&own_lock);
	return before ? before : OMX_ERRORS_ARE_FATAL;
}

/* ---- the two that everybody has -------------------------------------------------------------- */

static omx_return_t end_process_on_error(char *str, omx_return_t ret)
{
	MX_ERRORS_ARE_FATAL(str, omx_code_to_mx(ret));
	return ret;
}

static omx_return_t return_error_code(char *str, omx_return_t ret)
{
	(void)str;
	return ret;
}

const omx_error_handler_t OMX_ERRORS_ARE_FATAL = end_process_on_error;
const omx_error_handler_t OMX_ERRORS_RETURN = return_error_code;
