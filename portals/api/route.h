/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The NALs of an interface, and the choice of the one that leads to a peer (nal/nal.h). A peer
 * is bound to a NAL when the first message goes to it. From then on the NALs' own tables of
 * peers say whose it is. The host's table comes first, so that the other NALs cost a message
 * through shared memory nothing.
 */
#ifndef PTL_ROUTE_H
#define PTL_ROUTE_H

#include "nal/nal.h"
#include "portals/engine/ni.h"

/* Choose the NALs of PTL_NAL that can be used; the host always. PTL_OK, or PTL_IFACE_INVALID
 * after a warning. */
int ptl_nets_choose(struct ptl_ni *ni);

/* Bytes that all of them want in the region. It also sets the offset of each NAL's part. */
size_t ptl_nets_bytes(struct ptl_ni *ni);

/* Open all. PTL_OK, or as nal_ops.open. */
int ptl_nets_open(struct ptl_ni *ni, ptl_pid_t want);

/* Write the card: the addresses by which other ranks reach these NALs. */
void ptl_nets_card(struct ptl_ni *ni, char *text, size_t len);

/* The job is known: start the network NALs, or close those that are not needed. PTL_OK, or
 * PTL_IFACE_INVALID after a warning: none of PTL_NAL is left. */
int ptl_nets_join(struct ptl_ni *ni);

void ptl_nets_close(struct ptl_ni *ni);
void ptl_nets_forked(struct ptl_ni *ni);

/* PtlNIDist. Not locked. */
int ptl_distance(struct ptl_ni *ni, ptl_process_id_t id, unsigned long *distance);

/* PTL_REPORT: the NAL of each peer, the means it works by, and why others are not used. */
void ptl_nets_report(struct ptl_ni *ni);

/* End the connection to a process, whatever NAL has it. Locked. */
void ptl_drop(struct ptl_ni *ni, ptl_process_id_t id);

/* Why a peer cannot be reached, NAL by NAL; PTL_NI_OK: nothing is known to be wrong. Locked. */
ptl_ni_fail_t ptl_peer_failed_text(struct ptl_ni *ni, ptl_process_id_t id, char *text, size_t len);

/* Their names, for reports. */
void ptl_nets_names(const struct ptl_ni *ni, char *text, size_t len);

/* The slow paths of the functions below. Locked. */
void ptl_route_new(struct ptl_ni *ni, ptl_process_id_t target);
int ptl_send_elsewhere(struct ptl_ni *ni, const struct ptl_start *s, bool routed);
bool ptl_nets_progress(struct ptl_ni *ni, bool any);

/* Make `target` some NAL's peer, if possible. It may release the lock for a time. Locked. */
static inline void ptl_route(struct ptl_ni *ni, ptl_process_id_t target)
{
	if (!ni->nal->knows(ni, target))
		ptl_route_new(ni, target);
}

/* As nal_ops.send. A target that is no NAL's peer: NAL_ELSEWHERE, or with `routed`, after
 * ptl_route(), the operation fails as unreachable. Locked. */
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
