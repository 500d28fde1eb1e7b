/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The part of MX that the measuring tools use, or of Open-MX with FACE_OMX: so that one source
 * measures either interface. Errors end the tool with a message.
 */
#ifndef TOOLS_MX_FACE_H
#define TOOLS_MX_FACE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern const char *const face_tool; /* its name, for messages */

#ifdef FACE_OMX

#include <open-mx.h>

typedef omx_endpoint_t face_endpoint;
typedef omx_endpoint_addr_t face_addr;
typedef omx_request_t face_request;
typedef omx_status_t face_status;
typedef omx_return_t face_code;

#define FACE(name)    omx_##name
#define FACE_SUCCESS  OMX_SUCCESS
#define FACE_ANY      OMX_ANY_ENDPOINT
#define FACE_NAME_LEN OMX_HOSTNAMELEN_MAX

static inline face_addr face_source(const face_status *status)
{
	return status->addr;
}

static inline const char *face_status_text(const face_status *status)
{
	return omx_strerror(status->code);
}

static inline face_code face_start(void)
{
	omx_set_error_handler(NULL, OMX_ERRORS_RETURN);
	return omx_init();
}

static inline face_code face_reach(face_endpoint ep, uint64_t nic_id, uint32_t eid, uint32_t key,
				   face_addr *addr)
{
	return omx_connect(ep, nic_id, eid, key, OMX_TIMEOUT_INFINITE, addr);
}

static inline face_code face_post_send(face_endpoint ep, void *data, uint32_t length, bool sync,
				       face_addr to, uint64_t match, face_request *req)
{
	return sync ? omx_issend(ep, data, length, to, match, NULL, req)
		    : omx_isend(ep, data, length, to, match, NULL, req);
}

static inline face_code face_post_receive(face_endpoint ep, void *data, uint32_t length,
					  uint64_t match, face_request *req)
{
	return omx_irecv(ep, data, length, match, UINT64_MAX, NULL, req);
}

static inline face_code face_sleep(face_endpoint ep, face_request *req, face_status *status,
				   uint32_t *result)
{
	return omx_wait(ep, req, status, result, OMX_TIMEOUT_INFINITE);
}

#else

#include <mx_extensions.h>

typedef mx_endpoint_t face_endpoint;
typedef mx_endpoint_addr_t face_addr;
typedef mx_request_t face_request;
typedef mx_status_t face_status;
typedef mx_return_t face_code;

#define FACE(name)    mx_##name
#define FACE_SUCCESS  MX_SUCCESS
#define FACE_ANY      MX_ANY_ENDPOINT
#define FACE_NAME_LEN MX_MAX_HOSTNAME_LEN

static inline face_addr face_source(const face_status *status)
{
	return status->source;
}

static inline const char *face_status_text(const face_status *status)
{
	return mx_strstatus(status->code);
}

static inline face_code face_start(void)
{
	mx_set_error_handler(MX_ERRORS_RETURN);
	return mx_init();
}

static inline face_code face_reach(face_endpoint ep, uint64_t nic_id, uint32_t eid, uint32_t key,
				   face_addr *addr)
{
	return mx_connect(ep, nic_id, eid, key, MX_INFINITE, addr);
}

static inline face_code face_post_send(face_endpoint ep, void *data, uint32_t length, bool sync,
				       face_addr to, uint64_t match, face_request *req)
{
	mx_segment_t seg = { data, length };

	return sync ? mx_issend(ep, &seg, 1, to, match, NULL, req)
		    : mx_isend(ep, &seg, 1, to, match, NULL, req);
}

static inline face_code face_post_receive(face_endpoint ep, void *data, uint32_t length,
					  uint64_t match, face_request *req)
{
	mx_segment_t seg = { data, length };

	return mx_irecv(ep, &seg, 1, match, MX_MATCH_MASK_NONE, NULL, req);
}

static inline face_code face_sleep(face_endpoint ep, face_request *req, face_status *status,
				   uint32_t *result)
{
	return mx_wait(ep, req, MX_INFINITE, status, result);
}

#endif

/* Ends the tool unless the call succeeded. */
static inline void face_check(face_code code, const char *what)
{
	if (code == FACE_SUCCESS)
		return;
	fprintf(stderr, "%s: %s: %s\n", face_tool, what, FACE(strerror)(code));
	exit(1);
}

static inline void face_send(face_endpoint ep, void *data, uint32_t length, bool sync, face_addr to,
			     uint64_t match, face_request *req)
{
	face_check(face_post_send(ep, data, length, sync, to, match, req), "send");
}

static inline void face_receive(face_endpoint ep, void *data, uint32_t length, uint64_t match,
				face_request *req)
{
	face_check(face_post_receive(ep, data, length, match, req), "receive");
}

/* How to wait. */
enum face_wait { FACE_POLL, FACE_YIELD, FACE_SLEEP };

/* Has the request ended? It ends the tool if that was not well. */
static inline bool face_ended(face_endpoint ep, face_request *req, face_status *status)
{
	uint32_t result = 0;

	face_check(FACE(test)(ep, req, status, &result), "test");
	if (result && status->code != 0) {
		fprintf(stderr, "%s: a message ended with: %s\n", face_tool,
			face_status_text(status));
		exit(1);
	}
	return result;
}

static inline void face_await(face_endpoint ep, face_request *req, enum face_wait how,
			      face_status *status)
{
	uint32_t result = 0;

	if (how != FACE_SLEEP) {
		while (!face_ended(ep, req, status))
			if (how == FACE_YIELD)
				sched_yield();
		return;
	}
	while (!result)
		face_check(face_sleep(ep, req, status, &result), "wait");
	if (status->code != 0) {
		fprintf(stderr, "%s: a message ended with: %s\n", face_tool,
			face_status_text(status));
		exit(1);
	}
}

#endif
