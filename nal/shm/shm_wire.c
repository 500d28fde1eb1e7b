/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Checks of what another process sent: see shm_wire.h.
 */
#include "nal/shm/shm_wire.h"

#include "portals/engine/atomic.h"

#include <errno.h>
#include <string.h>

int shm_hello_decode(const void *bytes, size_t len, struct shm_hello *h)
{
	struct shm_hello in;

	if (len != sizeof(in))
		return -EPROTO;
	memcpy(&in, bytes, sizeof(in));
	if (in.magic != SHM_HELLO_MAGIC || in.version != SHM_HELLO_VERSION ||
	    in.kind < SHM_HELLO_CONNECT || in.kind > SHM_HELLO_REFUSE)
		return -EPROTO;
	*h = in;
	return 0;
}

uint32_t shm_msg_check(const struct shm_msg *m, uint32_t at, uint32_t lines)
{
	uint32_t n;

	switch (m->kind) {
	case SHM_PAD:
		n = m->size;
		return n && n <= lines - at ? n : 0;
	case SHM_PUT:
	case SHM_GETPUT:
		if (m->size != m->length)
			return 0;
		break;
	case SHM_REPLY:
		if (m->size != m->length)
			return 0;
		break;
	case SHM_ATOMIC:
	case SHM_FETCH_ATOMIC:
		if (m->length >> 48 || m->size > SHM_ATOMIC_MOST)
			return 0;
		if (ptl_atomic_on_runs(
			    shm_atomic_op(m))) /* runs are checked in the copy (take_runs) */
			break;
		if (m->size != ptl_atomic_operand(shm_atomic_op(m), (uint32_t)m->length) ||
		    !ptl_atomic_valid(shm_atomic_op(m), shm_atomic_element(m), (uint32_t)m->length))
			return 0;
		break;
	case SHM_PUT_LONG:
	case SHM_GET:
	case SHM_GRANT:
	case SHM_FETCHED:
	case SHM_PLACED:
		if (m->size)
			return 0;
		break;
	case SHM_ANSWER:
		if (m->size || m->flags > PTL_ANSWER_FAILED)
			return 0;
		break;
	default:
		return 0;
	}
	n = shm_lines(m->size, at);
	return m->size <= SHM_MOST && n <= lines - at ? n : 0;
}
