/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The NALs of an interface, and which of them leads to a peer (nal/nal.h). A peer is bound to
 * one where it is first talked to; from then on the NALs' own tables of peers say whose it is,
 * the host's first, so that a message through shared memory costs nothing for the others.
 */
#ifndef PTL_ROUTE_H
#define PTL_ROUTE_H

#include "nal/nal.h"
#include "portals/engine/ni.h"

/* The NALs of PTL_NAL that can be used, the host always. PTL_OK, or PTL_IFACE_INVALID after a
 * warning. */
int ptl_nets_choose(struct ptl_ni *ni);

/* Bytes all of them want in the region; and, once it is there, where. */
size_t ptl_nets_bytes(struct ptl_ni *ni);

/* Opens all. PTL_OK, or as nal_ops.open. */
int ptl_nets_open(struct ptl_ni *ni, ptl_pid_t want);

/* What the other ranks must know of them. */
void ptl_nets_card(struct ptl_ni *ni, char *text, size_t len);

/* The job is known: the network NALs begin, or are closed where they are not needed. PTL_OK, or
 * PTL_IFACE_INVALID after a warning: none of PTL_NAL is left. */
int ptl_nets_join(struct ptl_ni *ni);

void ptl_nets_close(struct ptl_ni *ni);
void ptl_nets_forked(struct ptl_ni *ni);

/* PtlNIDist. Not locked. */
int ptl_distance(struct ptl_ni *ni, ptl_process_id_t id, unsigned long *distance);

/* PTL_REPORT: which NAL leads to which peer, by what, and why others are not used. */
void ptl_nets_report(struct ptl_ni *ni);

/* What is known of a peer: PTL_NI_OK, or how and why, by NAL. Locked. */
ptl_ni_fail_t ptl_lost_text(struct ptl_ni *ni, ptl_process_id_t id, char *text, size_t len);

/* Their names, for reports. */
void ptl_nets_names(const struct ptl_ni *ni, char *text, size_t len);

/* The rest of what follows. Locked. */
void ptl_route_new(struct ptl_ni *ni, ptl_process_id_t target);
int ptl_send_elsewhere(struct ptl_ni *ni, const struct ptl_start *s, bool routed);
bool ptl_nets_progress(struct ptl_ni *ni, bool any);

/* Sees to it that `target` is somebody's peer, if it can be. May let go of the lock. Locked. */
static inline void ptl_route(struct ptl_ni *ni, ptl_process_id_t target)
{
	if (!ni->nal->knows(ni, target))
		ptl_route_new(ni, target);
}

/* As nal_ops.send. A target that is nobody's peer: NAL_ELSEWHERE, but after ptl_route() it
 * cannot be reached. Locked. */
static inline int ptl_send(struct ptl_ni *ni, const struct ptl_start *s, bool routed)
{
	int err = ni->nal->send(ni, s);

	return __builtin_expect(err == NAL_ELSEWHERE, 0) ? ptl_send_elsewhere(ni, s, routed) : err;
}

/* One round of progress of all NALs that need it. Locked. */
static inline bool ptl_progress(struct ptl_ni *ni)
{
	bool any = ni->nal->progress(ni);

	return __builtin_expect(atomic_load_explicit(&ni->polled, memory_order_relaxed), 0)
		       ? ptl_nets_progress(ni, any)
		       : any;
}

#endif
