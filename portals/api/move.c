/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Data movement: the arguments of PtlPut, PtlGet, PtlGetPut and their region forms (3.3
 * section 3.13), and of the extensions to them, become a ptl_start for the NAL.
 */
#include <portals3_ext.h>

#include "portals/api/route.h"
#include "portals/engine/atomic.h"
#include "portals/engine/debug.h"

/* The MD that an operation is to start on: live and active. */
static struct ptl_md *initiating(struct ptl_ni *ni, ptl_handle_md_t handle)
{
	struct ptl_md *md = ptl_md_of(ni, handle);

	return md && !(md->state & PTL_OBJ_INACTIVE) ? md : NULL;
}

static bool outside(const struct ptl_md *md, uint64_t offset, uint64_t length)
{
	return offset > md->length || length > md->length - offset;
}

static bool wildcard(ptl_process_id_t id)
{
	return id.nid == PTL_NID_ANY || id.pid == PTL_PID_ANY;
}

static inline __attribute__((always_inline)) int send(struct ptl_ni *ni, const struct ptl_start *s,
						      bool routed)
{
	static const char *const kind[] = {
		[PTL_REQ_PUT] = "put", [PTL_REQ_GET] = "get", [PTL_REQ_GETPUT] = "getput"
	};
	int err = ptl_send(ni, s, routed);

	if (err != NAL_ELSEWHERE && ptl_debugs(ni, PTL_DBG_API | PTL_DBG_REQUEST))
		ptl_debug(ni, "%s%s of %llu bytes to nid 0x%08x pid %u portal %u bits %016llx",
			  s->atomic ? "atomic " : "", kind[s->kind], (unsigned long long)s->length,
			  s->target.nid, s->target.pid, s->pt_index,
			  (unsigned long long)s->match_bits);
	return err;
}

/* Are the runs at the beginning of an atomic's operand valid? Fills in the operand's size and
 * the span. */
static bool runs_good(const struct ptl_md *md, struct ptl_start *s)
{
	const ptl_atomic_runs_t *r;
	uint64_t at = md->start + s->offset, most = md->length - s->offset, bytes;

	if (md->options & PTL_MD_IOVEC || at % _Alignof(ptl_atomic_runs_t) || most < sizeof(*r))
		return false;
	r = (const ptl_atomic_runs_t *)(uintptr_t)at;
	bytes = ptl_runs_bytes(r);
	if (ptl_atomic_plain(s->atomic) != PTL_ATOMIC_FETCH)
		bytes += s->length;
	s->operand = (uint32_t)bytes;
	s->span = r->span;
	return bytes <= most && bytes <= UINT32_MAX &&
	       ptl_runs_valid(r, bytes, s->atomic, s->element, s->length);
}

/* Check an atomic. PTL_OK if it is valid, or if this is not an atomic. Its operand begins
 * inside `md`. */
static int atomic_error(const struct ptl_ni *ni, const struct ptl_md *md, struct ptl_start *s)
{
	const uint64_t most = (uint64_t)ni->view.limits.max_getput_md;

	if (!s->atomic)
		return PTL_OK;
	if (s->length > most)
		return PTL_MD_ILLEGAL;
	if (ptl_atomic_on_runs(s->atomic))
		return runs_good(md, s) && s->operand <= most ? PTL_OK : PTL_MD_ILLEGAL;
	s->operand = (uint32_t)ptl_atomic_operand(s->atomic, s->length);
	if (s->operand > most || !ptl_atomic_valid(s->atomic, s->element, s->length))
		return PTL_MD_ILLEGAL;
	return PTL_OK;
}

/* Start a put or get on an interface that was entered. NAL_ELSEWHERE: there is no path to the
 * target yet. */
static inline __attribute__((always_inline)) int try_start(struct ptl_ni *ni,
							   ptl_handle_md_t handle, bool whole,
							   bool routed, struct ptl_start *s)
{
	const struct ptl_md *md = initiating(ni, handle);
	int err;

	if (!md)
		return PTL_MD_INVALID;
	s->md = ptl_handle_index(handle);
	if (whole)
		s->length = md->length;
	if (wildcard(s->target))
		return PTL_PROCESS_INVALID;
	if (outside(md, s->offset,
		    ptl_atomic_on_runs(s->atomic) ? 0 : ptl_atomic_operand(s->atomic, s->length)))
		return PTL_MD_ILLEGAL; /* P3.3 §3.13.3, §3.13.5 */
	err = atomic_error(ni, md, s);
	if (err != PTL_OK)
		return err;
	s->ack = s->ack && md->eq != PTL_NIL;
	return send(ni, s, routed);
}

/* The same when there was no path. Finding one may release the lock, so everything is checked
 * again. */
static int __attribute__((noinline))
start_anew(struct ptl_ni *ni, ptl_handle_md_t handle, bool whole, struct ptl_start *s)
{
	ptl_route(ni, s->target);
	return try_start(ni, handle, whole, true, s);
}

/* `s` lacks only the MD and, with `whole`, the region. It is inlined into its callers, so that
 * the compiler drops the checks that they decide already. */
static inline __attribute__((always_inline)) int start_as(ptl_handle_md_t handle, bool whole,
							  struct ptl_start *s)
{
	struct ptl_ni *ni;
	int err;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(handle, PTL_KIND_MD);
	if (!ni)
		return PTL_MD_INVALID;
	err = try_start(ni, handle, whole, false, s);
	if (__builtin_expect(err == NAL_ELSEWHERE, 0))
		err = start_anew(ni, handle, whole, s);
	ptl_leave(ni);
	return err;
}

static int start_move(ptl_handle_md_t handle, bool whole, struct ptl_start *s)
{
	return start_as(handle, whole, s);
}

int PtlPut(ptl_handle_md_t md_handle, ptl_ack_req_t ack_req, ptl_process_id_t target_id,
	   ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
	   ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	struct ptl_start s = {
		.kind = PTL_REQ_PUT,
		.ack = ack_req == PTL_ACK_REQ,
		.target = target_id,
		.pt_index = pt_index,
		.ac_index = ac_index,
		.match_bits = match_bits,
		.remote_offset = remote_offset,
		.hdr_data = hdr_data,
	};

	return start_as(md_handle, true, &s);
}

int PtlPutRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
		 ptl_ack_req_t ack_req, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
		 ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
		 ptl_hdr_data_t hdr_data)
{
	struct ptl_start s = {
		.kind = PTL_REQ_PUT,
		.ack = ack_req == PTL_ACK_REQ,
		.offset = local_offset,
		.length = length,
		.target = target_id,
		.pt_index = pt_index,
		.ac_index = ac_index,
		.match_bits = match_bits,
		.remote_offset = remote_offset,
		.hdr_data = hdr_data,
	};

	return start_move(md_handle, false, &s);
}

int PtlPutInject(ptl_handle_ni_t ni_handle, const void *data, ptl_size_t length, ptl_inject_t when,
		 ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
		 ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	struct ptl_start s = {
		.kind = PTL_REQ_PUT,
		.inject = data ? data : "",
		.lazy = when != PTL_INJECT_NOW,
		.md = PTL_NIL,
		.length = length,
		.target = target_id,
		.pt_index = pt_index,
		.ac_index = ac_index,
		.match_bits = match_bits,
		.remote_offset = remote_offset,
		.hdr_data = hdr_data,
	};
	struct ptl_ni *ni;
	int err;

	if (!data && length)
		return PTL_SEGV;
	if (when != PTL_INJECT_NOW && when != PTL_INJECT_LAZY && when != PTL_INJECT_HERE)
		return PTL_FAIL;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	if (wildcard(target_id))
		err = PTL_PROCESS_INVALID;
	else if (when == PTL_INJECT_HERE && !ni->nal->knows(ni, target_id))
		err = PTL_NO_SPACE;
	else
		err = send(ni, &s, false);
	if (__builtin_expect(err == NAL_ELSEWHERE, 0)) {
		ptl_route(ni, target_id);
		err = send(ni, &s, true);
	}
	if (s.lazy)
		ptl_leave_lazily(ni);
	else
		ptl_leave(ni);
	return err;
}

int PtlPieceLength(ptl_handle_ni_t ni_handle, ptl_process_id_t target_id, ptl_size_t *length)
{
	struct ptl_ni *ni;

	if (!length)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	*length = ni->nal->segment(ni, target_id);
	ptl_leave(ni);
	return PTL_OK;
}

int PtlGet(ptl_handle_md_t md_handle, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
	   ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset)
{
	struct ptl_start s = {
		.kind = PTL_REQ_GET,
		.target = target_id,
		.pt_index = pt_index,
		.ac_index = ac_index,
		.match_bits = match_bits,
		.remote_offset = remote_offset,
	};

	return start_move(md_handle, true, &s);
}

int PtlGetRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
		 ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
		 ptl_match_bits_t match_bits, ptl_size_t remote_offset)
{
	struct ptl_start s = {
		.kind = PTL_REQ_GET,
		.offset = local_offset,
		.length = length,
		.target = target_id,
		.pt_index = pt_index,
		.ac_index = ac_index,
		.match_bits = match_bits,
		.remote_offset = remote_offset,
	};

	return start_move(md_handle, false, &s);
}

/* Start a swap on an interface that was entered: as try_start(). */
static inline __attribute__((always_inline)) int try_swap(struct ptl_ni *ni,
							  ptl_handle_md_t get_handle,
							  ptl_handle_md_t put_handle, bool whole,
							  bool routed, struct ptl_start *s)
{
	const struct ptl_ni *get_ni = ptl_ni_of(get_handle, PTL_KIND_MD);
	const struct ptl_md *put = initiating(ni, put_handle);
	const struct ptl_md *get = get_ni == ni ? initiating(ni, get_handle) : NULL;
	int err;

	if (!put || !get_ni)
		return PTL_MD_INVALID;
	if (get_ni != ni)
		return PTL_MD_ILLEGAL;
	if (!get)
		return PTL_MD_INVALID;
	if (wildcard(s->target))
		return PTL_PROCESS_INVALID;
	s->md = ptl_handle_index(put_handle);
	s->get_md = ptl_handle_index(get_handle);
	if (whole)
		s->length = put->length;
	if (s->length > (uint64_t)ni->view.limits.max_getput_md ||
	    outside(put, s->offset,
		    ptl_atomic_on_runs(s->atomic) ? 0 : ptl_atomic_operand(s->atomic, s->length)) ||
	    outside(get, s->get_offset, s->length))
		return PTL_MD_ILLEGAL;
	err = atomic_error(ni, put, s);
	return err == PTL_OK ? send(ni, s, routed) : err;
}

/* Start a swap. `s` has everything but the MDs and, with `whole`, the length (the put MD's). */
static int start_swap(ptl_handle_md_t get_handle, ptl_handle_md_t put_handle, bool whole,
		      struct ptl_start *s)
{
	struct ptl_ni *ni;
	int err;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(put_handle, PTL_KIND_MD);
	if (!ni)
		return PTL_MD_INVALID;
	err = try_swap(ni, get_handle, put_handle, whole, false, s);
	if (__builtin_expect(err == NAL_ELSEWHERE, 0)) {
		/* finding a path may release the lock, so everything is checked again */
		ptl_route(ni, s->target);
		err = try_swap(ni, get_handle, put_handle, whole, true, s);
	}
	ptl_leave(ni);
	return err;
}

int PtlGetPut(ptl_handle_md_t get_md_handle, ptl_handle_md_t put_md_handle,
	      ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
	      ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	struct ptl_start s = {
		.kind = PTL_REQ_GETPUT,
		.target = target_id,
		.pt_index = pt_index,
		.ac_index = ac_index,
		.match_bits = match_bits,
		.remote_offset = remote_offset,
		.hdr_data = hdr_data,
	};

	return start_swap(get_md_handle, put_md_handle, true, &s);
}

int PtlGetPutRegion(ptl_handle_md_t get_md_handle, ptl_size_t get_local_offset,
		    ptl_handle_md_t put_md_handle, ptl_size_t put_local_offset, ptl_size_t length,
		    ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
		    ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	struct ptl_start s = {
		.kind = PTL_REQ_GETPUT,
		.offset = put_local_offset,
		.get_offset = get_local_offset,
		.length = length,
		.target = target_id,
		.pt_index = pt_index,
		.ac_index = ac_index,
		.match_bits = match_bits,
		.remote_offset = remote_offset,
		.hdr_data = hdr_data,
	};

	return start_swap(get_md_handle, put_md_handle, false, &s);
}

/* The stored number of an operation or type; UINT8_MAX for an invalid one. */
static uint8_t known_operation(unsigned int number)
{
	return number > UINT8_MAX || !number ? UINT8_MAX : (uint8_t)number;
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	      ptl_ack_req_t ack_req, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
	      ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
	      ptl_hdr_data_t hdr_data, ptl_atomic_op_t op, ptl_atomic_type_t type)
{
	struct ptl_start s = {
		.kind = PTL_REQ_PUT,
		.ack = ack_req == PTL_ACK_REQ,
		.atomic = known_operation(op),
		.element = known_operation(type),
		.offset = local_offset,
		.length = length,
		.target = target_id,
		.pt_index = pt_index,
		.ac_index = ac_index,
		.match_bits = match_bits,
		.remote_offset = remote_offset,
		.hdr_data = hdr_data,
	};

	return start_move(md_handle, false, &s);
}

int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t get_local_offset,
		   ptl_handle_md_t put_md_handle, ptl_size_t put_local_offset, ptl_size_t length,
		   ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
		   ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data,
		   ptl_atomic_op_t op, ptl_atomic_type_t type)
{
	struct ptl_start s = {
		.kind = PTL_REQ_GETPUT,
		.atomic = known_operation(op),
		.element = known_operation(type),
		.offset = put_local_offset,
		.get_offset = get_local_offset,
		.length = length,
		.target = target_id,
		.pt_index = pt_index,
		.ac_index = ac_index,
		.match_bits = match_bits,
		.remote_offset = remote_offset,
		.hdr_data = hdr_data,
	};

	return start_swap(get_md_handle, put_md_handle, false, &s);
}
