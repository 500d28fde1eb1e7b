/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Names and texts of codes and events, generated from the tables of portals3.h.
 */
#include <portals3.h>

#define NAME(name, ...) #name,

const char *ptl_err_str[] = { PTL_ERR_TABLE(NAME) NULL };
const char *ptl_event_str[] = { PTL_EVENT_TABLE(NAME) NULL };

#define TEXT(name, text) text,

static const char *const fail_text[] = { PTL_NI_FAIL_TABLE(TEXT) };

const char *PtlErrorStr(unsigned int code)
{
	return code < PTL_MAX_ERRNO ? ptl_err_str[code] : "PTL_UNKNOWN_ERROR";
}

const char *PtlEventKindStr(ptl_event_kind_t kind)
{
	return (unsigned int)kind < PTL_EVENT_MAX ? ptl_event_str[kind] : "PTL_EVENT_UNKNOWN";
}

const char *PtlNIFailStr(ptl_handle_ni_t ni_handle, ptl_ni_fail_t code)
{
	(void)ni_handle;
	return code < PTL_NI_FAIL_MAX ? fail_text[code] : "unknown failure";
}
