/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Error handlers and the texts of codes. This is the one place of the library that may end the
 * process: a program that sets no handler relies on that.
 */
#include "mx_shim/mx_error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/config.h"
#include "mx_shim/mx_core.h"

static mx_return_t end_process(char *text, mx_return_t code);

static mx_return_t return_code(char *text, mx_return_t code)
{
	(void)text;
	return code;
}

const mx_error_handler_t MX_ERRORS_ARE_FATAL = end_process;
const mx_error_handler_t MX_ERRORS_RETURN = return_code;

static _Atomic(mx_error_handler_t) process_handler; /* NULL: none was set */

/* Do only names that begin with OMX_ count? */
static bool ignores_mx_names(void)
{
	const char *text = base_config_env("OMX_IGNORE_MX_ENV");

	return text && *text == '1';
}

/* A number that the environment has now under one of two names, else `otherwise`. */
static long environment_number(const char *name, const char *mx_name, long otherwise)
{
	const char *text = base_config_env(name);
	char *end;
	long value;

	if (!text && mx_name && !ignores_mx_names())
		text = base_config_env(mx_name);
	if (!text)
		return otherwise;
	value = strtol(text, &end, 0);
	return *end ? otherwise : value;
}

static mx_return_t end_process(char *text, mx_return_t code)
{
	long seconds = environment_number("OMX_ABORT_SLEEPS", NULL, 0);

	fprintf(stderr, "%s: %s\n", text ? text : "MX", mx_strerror(code));
	if (seconds > 0 && seconds < 1000000) {
		fprintf(stderr, "MX: process %ld waits %ld s for a debugger\n", (long)getpid(),
			seconds);
		sleep((unsigned int)seconds);
	}
	fflush(stdout);
	_exit(EXIT_FAILURE);
}

/* The handler in force while the program has set none. */
static mx_error_handler_t default_handler(void)
{
	return environment_number("OMX_FATAL_ERRORS", "MX_ERRORS_ARE_FATAL", 1) ? end_process
										: return_code;
}

mx_error_handler_t mx_set_error_handler(mx_error_handler_t handler)
{
	mx_error_handler_t before =
		atomic_exchange_explicit(&process_handler, handler, memory_order_acq_rel);

	return before ? before : default_handler();
}

mx_return_t mxs_fail(mx_error_handler_t handler, const char *call, mx_return_t code)
{
	char text[64];

	if (!handler)
		handler = atomic_load_explicit(&process_handler, memory_order_acquire);
	if (!handler)
		handler = default_handler();
	snprintf(text, sizeof(text), "%s", call);
	return handler(text, code);
}

const char *mx_strerror(mx_return_t code)
{
	static const char *const texts[] = {
		[MX_SUCCESS] = "success",
		[MX_BAD_BAD_BAD] = "not available in any MX",
		[MX_FAILURE] = "failure",
		[MX_ALREADY_INITIALIZED] = "already initialized",
		[MX_NOT_INITIALIZED] = "not initialized",
		[MX_NO_DEV] = "no such device",
		[MX_NO_DRIVER] = "no transport to run on",
		[MX_NO_PERM] = "permission denied",
		[MX_BOARD_UNKNOWN] = "no such board",
		[MX_BAD_ENDPOINT] = "not an open endpoint",
		[MX_BAD_SEG_LIST] = "segment list is missing",
		[MX_BAD_SEG_MEM] = "memory of a segment is not accessible",
		[MX_BAD_SEG_CNT] = "too many segments",
		[MX_BAD_REQUEST] = "not a request of that kind",
		[MX_BAD_MATCH_MASK] = "match value has bits outside of its mask",
		[MX_NO_RESOURCES] = "out of resources",
		[MX_BAD_ADDR_LIST] = "bad list of addresses",
		[MX_BAD_ADDR_COUNT] = "bad number of addresses",
		[MX_BAD_ROOT] = "bad root",
		[MX_NOT_COMPLETED] = "not completed",
		[MX_BUSY] = "endpoint id is in use",
		[MX_BAD_INFO_KEY] = "no such information",
		[MX_BAD_INFO_VAL] = "bad value for information",
		[MX_BAD_NIC] = "bad NIC id",
		[MX_BAD_PARAM_LIST] = "parameter list is missing",
		[MX_BAD_PARAM_NAME] = "no such parameter",
		[MX_BAD_PARAM_VAL] = "bad value of a parameter",
		[MX_BAD_HOSTNAME_ARGS] = "bad host name argument",
		[MX_HOST_NOT_FOUND] = "host not found",
		[MX_REQUEST_PENDING] = "request is pending",
		[MX_TIMEOUT] = "timed out",
		[MX_NO_MATCH] = "no match",
		[MX_BAD_ENDPOINT_ID] = "endpoint id out of range",
		[MX_CONNECTION_FAILED] = "nobody has that endpoint open",
		[MX_BAD_CONNECTION_KEY] = "connection key is wrong",
		[MX_BAD_INFO_LENGTH] = "room for information has the wrong length",
		[MX_NIC_NOT_FOUND] = "no such NIC",
		[MX_BAD_KERNEL_VERSION] = "kernel version does not fit",
		[MX_BAD_LIB_VERSION] = "program was built for another version of the library",
		[MX_NIC_DEAD] = "NIC is dead",
		[MX_CANCEL_NOT_SUPPORTED] = "request cannot be cancelled",
		[MX_CLOSE_IN_HANDLER] = "endpoint cannot be closed inside its handler",
		[MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK] = "mask leaves a part of the context id open",
		[MX_NOT_SUPPORTED_WITH_CONTEXT_ID] = "not supported with context ids",
	};

	if ((unsigned int)code >= sizeof(texts) / sizeof(texts[0]))
		return "unknown return code";
	return texts[code];
}

const char *mx_strstatus(mx_status_code_t code)
{
	static const char *const texts[] = {
		[MX_STATUS_SUCCESS] = "success",
		[MX_STATUS_PENDING] = "pending",
		[MX_STATUS_BUFFERED] = "buffered",
		[MX_STATUS_REJECTED] = "rejected",
		[MX_STATUS_TIMEOUT] = "timed out",
		[MX_STATUS_TRUNCATED] = "truncated",
		[MX_STATUS_CANCELLED] = "cancelled",
		[MX_STATUS_ENDPOINT_UNKNOWN] = "endpoint is not known",
		[MX_STATUS_ENDPOINT_CLOSED] = "endpoint is closed",
		[MX_STATUS_ENDPOINT_UNREACHABLE] = "endpoint is unreachable",
		[MX_STATUS_BAD_SESSION] = "endpoint was opened anew",
		[MX_STATUS_BAD_KEY] = "connection key is wrong",
		[MX_STATUS_BAD_ENDPOINT] = "no such endpoint",
		[MX_STATUS_BAD_RDMAWIN] = "memory of the sender is gone",
		[MX_STATUS_ABORTED] = "aborted",
		[MX_STATUS_EVENTQ_FULL] = "event queue is full",
		[MX_STATUS_NO_RESOURCES] = "out of resources",
	};

	if ((unsigned int)code >= sizeof(texts) / sizeof(texts[0]))
		return "unknown status code";
	return texts[code];
}

mx_return_t mxs_no_endpoint(const char *call)
{
	return mxs_fail(NULL, call,
			atomic_load(&mxs.initialized) ? MX_BAD_ENDPOINT : MX_NOT_INITIALIZED);
}
